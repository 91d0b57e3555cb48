//! Set-returning functions inside expressions.
//!
//! ```text
//! select x, generate_series(1, y) * 2 from t
//!     Project  x: column 0, column 1 * 2
//!       ProjectSet  column 0: x, column 1: generate_series(1, y)
//!         Scan  t
//! ```
//! Sets that stand inside expressions, or in the arguments of each other, are computed below the
//! expressions, by one [`Plan::ProjectSet`] for each depth: first all those whose arguments hold no set,
//! side by side, then those whose arguments hold these, and so on. So sets of one depth go on in step,
//! and what is at the top of a target list is of the depth that its arguments give it, as in PostgreSQL
//! (PostgreSQL 15 manual, section 38.5.9). Sets that are the same are computed once for each depth.
//!
//! # Invariants
//! What [`below`] has changed names no set, and is over the rows of the plan that it gives.

use std::rc::Rc;

use crate::plan::{compile, Expr, ExprKind, Plan, SetColumn};
use types::Datum;

impl Expr {
    /// Whether there is a set-returning function in it.
    pub fn has_sets(&self) -> bool {
        self.any(&Expr::is_set)
    }

    /// Whether it is a set-returning function whose arguments hold none.
    fn is_lowest_set(&self) -> bool {
        self.is_set() && !self.parts().into_iter().any(Expr::has_sets)
    }
}

/// The plan's rows with other columns.
pub(super) fn projection(input: Plan, exprs: &[Expr]) -> Plan {
    let is_direct = |expr: &Expr| expr.is_lowest_set() || !expr.has_sets();
    if exprs.iter().all(is_direct) {
        return last_projection(input, exprs);
    }
    let mut exprs = exprs.to_vec();
    exprs.iter_mut().for_each(settle_nulls);
    let mut plan = input;
    while !exprs.iter().all(is_direct) {
        plan = one_depth(plan, &mut exprs.iter_mut().collect::<Vec<_>>());
    }
    last_projection(plan, &exprs)
}

/// The rows with the sets of some expressions computed, which are over these rows from then on.
pub(super) fn below(input: Plan, exprs: &mut [&mut Expr]) -> Plan {
    let mut plan = input;
    let with_sets = exprs.iter_mut().filter(|expr| expr.has_sets());
    with_sets.for_each(|expr| settle_nulls(expr));
    while exprs.iter().any(|expr| expr.has_sets()) {
        plan = one_depth(plan, exprs);
    }
    plan
}

/// Makes NULLs of what can be nothing else, as it is called with NULL: a set among its other arguments
/// makes no rows then.
fn settle_nulls(expr: &mut Expr) {
    expr.parts_mut().into_iter().for_each(settle_nulls);
    let is_null = |arg: &Expr| matches!(arg.kind, ExprKind::Const(Datum::Null, _));
    let gives_null = match &expr.kind {
        ExprKind::Call(function, args, _) => function.0.strict && args.iter().any(is_null),
        ExprKind::Routine(call, args) => {
            call.routine.strict && !call.routine.set && args.iter().any(is_null)
        }
        ExprKind::Coerce(arg, _) => is_null(arg),
        _ => false,
    };
    if gives_null {
        expr.kind = ExprKind::Const(Datum::Null, None);
    }
}

/// A projection of expressions that are sets at their top, if at all.
fn last_projection(input: Plan, exprs: &[Expr]) -> Plan {
    match exprs.iter().any(Expr::is_set) {
        false => Plan::Project(Rc::new(input), exprs.iter().map(compile).collect()),
        true => Plan::ProjectSet(Rc::new(input), exprs.iter().map(set_column).collect()),
    }
}

fn set_column(expr: &Expr) -> SetColumn {
    match &expr.kind {
        ExprKind::SetCall(function, args, types) => SetColumn::Set(
            *function,
            args.iter().map(compile).collect(),
            types.clone(),
            expr.ty,
        ),
        ExprKind::Routine(call, args) if call.routine.set => {
            SetColumn::Routine(call.clone(), args.iter().map(compile).collect())
        }
        _ => SetColumn::One(compile(expr)),
    }
}

/// Computes the sets whose arguments hold none, and hands on the columns that are looked at above.
fn one_depth(input: Plan, exprs: &mut [&mut Expr]) -> Plan {
    let mut columns = Vec::new();
    for expr in exprs.iter_mut() {
        lift(expr, &mut columns);
    }
    let made = columns.iter().map(set_column).collect();
    Plan::ProjectSet(Rc::new(input), made)
}

/// Makes an expression one over the columns, to which it adds what is missing.
fn lift(expr: &mut Expr, columns: &mut Vec<Expr>) {
    if expr.is_lowest_set() || matches!(expr.kind, ExprKind::Column(_)) {
        let known = columns.iter().position(|column| column.same(expr));
        let place = known.unwrap_or(columns.len());
        if known.is_none() {
            columns.push(expr.clone());
        }
        expr.kind = ExprKind::Column(place);
        return;
    }
    for part in expr.parts_mut() {
        lift(part, columns);
    }
}
