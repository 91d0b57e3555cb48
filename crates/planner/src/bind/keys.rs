//! The equalities by which a subquery looks at the row around it.
//!
//! ```text
//! where t.k = o.k + 1 and t.y > 0      inner t.k, outer o.k + 1; what is left: t.y > 0
//! ```

use super::group::Grouping;
use super::outputs::Outputs;
use super::OutputColumn;
use crate::logical::{looks_outside, names_columns, Source};
use crate::paths::estimate::sides;
use crate::plan::{Expr, ExprKind};
use types::TypeId;

/// The equalities of a subquery with the row around it.
#[derive(Debug, Default)]
pub struct Keys {
    /// What is equal, over the subquery's own rows.
    pub(super) inner: Vec<Expr>,
    /// To what, over the row around it.
    pub(super) outer: Vec<Expr>,
    /// Whether there is a row where there is none to aggregate.
    pub(super) is_never_empty: bool,
}

impl Keys {
    /// Takes the equalities out of the conditions.
    pub(super) fn of(conditions: &mut Vec<Expr>) -> Keys {
        let mut keys = Keys::default();
        conditions.retain(|condition| match key(condition) {
            None => true,
            Some((inner, outer)) => {
                keys.inner.push(inner.clone());
                keys.outer.push(outer.clone());
                false
            }
        });
        keys
    }

    /// The types of the keys.
    pub(super) fn types(&self) -> impl Iterator<Item = TypeId> + '_ {
        self.inner.iter().map(|key| key.ty)
    }
}

/// The inner and the outer side of an equality of a subquery's row with the row around it.
fn key(condition: &Expr) -> Option<(&Expr, &Expr)> {
    let (a, b) = sides(condition)?;
    if a.ty != b.ty || !a.ty.has_equality() {
        return None;
    }
    let is_outer = |expr: &Expr| {
        let strange = |part: &Expr| match part.kind {
            ExprKind::Outer(up, _) => up != 1,
            ExprKind::Column(_) | ExprKind::Sub(..) => true,
            _ => part.is_volatile_call(),
        };
        looks_outside(expr) && !expr.any(&strange)
    };
    let is_inner = |expr: &Expr| {
        let strange = |part: &Expr| matches!(part.kind, ExprKind::Sub(..));
        names_columns(expr) && !looks_outside(expr) && !expr.any(&strange)
    };
    match () {
        _ if is_inner(a) && is_outer(b) => Some((a, b)),
        _ if is_inner(b) && is_outer(a) => Some((b, a)),
        _ => None,
    }
}

/// What a query consists of, once it is bound.
pub(super) struct Parts<'p> {
    pub(super) source: Option<&'p Source>,
    pub(super) conditions: &'p [Expr],
    pub(super) having: Option<&'p Expr>,
    pub(super) grouping: &'p mut Option<Grouping>,
    pub(super) outputs: &'p mut Outputs,
    pub(super) columns: &'p mut Vec<OutputColumn>,
}
