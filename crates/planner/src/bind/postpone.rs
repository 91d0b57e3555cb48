//! What is computed of a sorted row only once it is in its place.
//!
//! ```text
//! select a, nextval('s') from t order by b limit 10
//!     Limit 10
//!       Project  column 0, nextval('s'), column 2        ten values of s, in the order of the rows
//!         Sort  column 2
//!           Project  a, NULL, b
//! ```
//! Calls whose values are others each time, and sets, are not sorted by others' columns with; where there is
//! a LIMIT, neither are calls of routines and subqueries, most of which nobody would look at (PostgreSQL 15
//! manual, SELECT, *ORDER BY*: functions in the output are evaluated after the sort).
//!
//! # Invariants
//! - Columns that are sorted by are computed below.
//! - Where a column that is sorted by makes rows, all sets stay where it is.
//!
//! # What it leaves out
//! DISTINCT looks at all columns, so that nothing waits there.

use crate::plan::{Expr, ExprKind};
use types::Datum;

/// Which of a row's columns are computed above the sort, where it sorts by others.
pub(super) struct Postponed {
    /// What the row has below.
    pub below: Vec<Expr>,
    /// And above, over that.
    pub above: Vec<Expr>,
}

impl Postponed {
    /// The columns of a row that is sorted by some of them; none where all may be computed below.
    pub fn of(exprs: &[Expr], sorted_by: &[usize], is_limited: bool) -> Option<Postponed> {
        let sorts_sets = sorted_by.iter().any(|place| exprs[*place].has_sets());
        let is_costly =
            |part: &Expr| matches!(part.kind, ExprKind::Routine(..) | ExprKind::Sub(..));
        let waits = |place: usize, expr: &Expr| match expr.has_sets() {
            _ if sorted_by.contains(&place) => false,
            true => !sorts_sets,
            false => expr.any(&Expr::is_volatile_call) || is_limited && expr.any(&is_costly),
        };
        let waiting: Vec<_> = (exprs.iter().enumerate())
            .map(|(place, expr)| waits(place, expr))
            .collect();
        if !waiting.contains(&true) {
            return None;
        }
        let mut below: Vec<_> = (exprs.iter().zip(&waiting))
            .map(|(expr, waits)| match waits {
                true => Expr::constant(Datum::Null, expr.ty, -1),
                false => expr.clone(),
            })
            .collect();
        let mut above = Vec::with_capacity(exprs.len());
        for (place, (expr, waits)) in exprs.iter().zip(&waiting).enumerate() {
            let mut expr = expr.clone();
            match waits {
                true => carry(&mut expr, exprs.len(), &mut below),
                false => expr.kind = ExprKind::Column(place),
            }
            above.push(expr);
        }
        Some(Postponed { below, above })
    }
}

/// Makes an expression one over the row below, behind whose own columns stand those that it looks at.
fn carry(expr: &mut Expr, own: usize, below: &mut Vec<Expr>) {
    if matches!(expr.kind, ExprKind::Column(_)) {
        let known = below[own..].iter().position(|column| column.same(expr));
        let place = known.map_or(below.len(), |place| own + place);
        if known.is_none() {
            below.push(expr.clone());
        }
        expr.kind = ExprKind::Column(place);
        return;
    }
    for part in expr.parts_mut() {
        carry(part, own, below);
    }
}
