//! Conditions that are known when a plan is made.
//!
//! ```text
//! where a.x = b.x and false            no row, and neither table is looked at
//! where 1 = 2 or a.x = 7               a.x = 7
//! a left join b on null                b has no row for any of a's
//! ```
//! # Invariants
//! - A literal that decides is fixed ([`crate::plan::Literal`]): another might decide otherwise.
//! - What is made of constants, could fail, and stands before a condition that is never met is computed all
//!   the same, once, as PostgreSQL does when it folds constants.
//!
//! # What it leaves out
//! Functions that need more than a few instructions: their values are computed once when the plan runs.

use std::rc::Rc;

use functions::Volatility;
use types::{Datum, TypeId};

use super::{Layout, Path};
use crate::logical::{all_of, truth, Source, SourceKind, NOWHERE};
use crate::plan::{compile, Expr, ExprKind, JoinKind, Plan};

/// Conditions as far as they are not known.
pub(super) enum Folded {
    /// Those that must be met.
    To(Vec<Expr>),
    /// No row meets them; what is to be computed to find that out.
    Never(Expr),
}

enum Known {
    Always,
    Never,
    No(Expr),
}

/// The conditions that must all be met, without those that always are.
pub(super) fn folded(conditions: Vec<Expr>) -> Folded {
    let mut all = Vec::new();
    for condition in conditions {
        let location = condition.location.0;
        match fold(condition) {
            Known::Always => {}
            Known::No(condition) => all.push(condition),
            Known::Never => {
                let never = Expr::constant(Datum::Bool(false), TypeId::BOOL, location);
                all.retain(may_fail_at_once);
                all.push(never.clone());
                return Folded::Never(all_of(all).unwrap_or(never));
            }
        }
    }
    Folded::To(all)
}

/// Whether it is made of constants and might fail.
fn may_fail_at_once(condition: &Expr) -> bool {
    condition.any(&|part| matches!(part.kind, ExprKind::Call(..)))
        && !condition.any(&|part| match &part.kind {
            ExprKind::Call(function, ..) => function.0.volatility != Volatility::Immutable,
            ExprKind::Const(..)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Not(_)
            | ExprKind::IsNull(..)
            | ExprKind::IsTruth(..) => false,
            _ => true,
        })
}

/// What is known of a condition; NULL is as good as false.
fn fold(condition: Expr) -> Known {
    if let Some(value) = value_of(&condition) {
        fix(&condition);
        return match value.is_true() {
            true => Known::Always,
            false => Known::Never,
        };
    }
    let location = condition.location.0;
    match condition.kind {
        ExprKind::Or(parts) => {
            let mut unknown = Vec::new();
            for part in parts {
                match fold(part) {
                    Known::Always => return Known::Always,
                    Known::Never => {}
                    Known::No(part) => unknown.push(part),
                }
            }
            match unknown.len() {
                0 => Known::Never,
                1 => unknown.pop().map_or(Known::Never, Known::No),
                _ => Known::No(truth(ExprKind::Or(unknown), location)),
            }
        }
        ExprKind::And(parts) => match folded(parts) {
            Folded::Never(_) => Known::Never,
            Folded::To(parts) => all_of(parts).map_or(Known::Always, Known::No),
        },
        kind => Known::No(Expr { kind, ..condition }),
    }
}

/// The value of an expression, if it is known and cannot fail.
fn value_of(expr: &Expr) -> Option<Datum> {
    match &expr.kind {
        ExprKind::Const(value, _) => Some(value.clone()),
        ExprKind::Call(function, args, _) if function.0.volatility == Volatility::Immutable => {
            let [a, b] = args.as_slice() else {
                return None;
            };
            let (a, b) = (value_of(a)?, value_of(b)?);
            match function.0.strict && (a.is_null() || b.is_null()) {
                true => Some(Datum::Null),
                false => function.0.quick(&a, &b),
            }
        }
        ExprKind::Not(of) => Some(match value_of(of)? {
            Datum::Bool(holds) => Datum::Bool(!holds),
            _ => Datum::Null,
        }),
        // A row is NULL by a rule of its own.
        ExprKind::IsNull(of, wanted) => match value_of(of)? {
            Datum::Record(_) => None,
            value => Some(Datum::Bool(value.is_null() == *wanted)),
        },
        ExprKind::IsTruth(of, wanted, negated) => {
            let value = match value_of(of)? {
                Datum::Bool(holds) => Some(holds),
                _ => None,
            };
            Some(Datum::Bool((value == *wanted) != *negated))
        }
        _ => None,
    }
}

/// The plan rests on the literals in an expression.
fn fix(expr: &Expr) {
    expr.visit(&mut |part| {
        if let ExprKind::Const(_, Some(literal)) = &part.kind {
            literal.fix();
        }
    });
}

/// A plan without rows, for which a condition is computed that is never met.
pub(super) fn nothing(condition: &Expr) -> Plan {
    Plan::Once(Rc::new(Plan::Values(vec![Vec::new()])), compile(condition))
}

/// A source without rows whose columns have the places of another's.
pub(super) fn emptied(source: &Source, condition: &Expr) -> Source {
    let item = |range: std::ops::Range<usize>| Source {
        kind: SourceKind::Other {
            plan: Box::new(nothing(condition)),
            escapes: false,
            reach: NOWHERE,
            moved: 0,
        },
        start: range.start,
        width: range.len(),
    };
    let items = source.ranges().into_iter().map(item);
    let pair = |left: Source, right: Source| Source {
        start: left.start,
        width: left.width + right.width,
        kind: SourceKind::Join {
            kind: JoinKind::Inner,
            left: Box::new(left),
            right: Box::new(right),
            on: Vec::new(),
            lateral: false,
        },
    };
    let whole = items.reduce(pair);
    whole.unwrap_or_else(|| item(source.start..source.start))
}

/// A path to no rows with the columns of these places.
pub(super) fn no_rows(condition: &Expr, places: Vec<usize>) -> Path {
    Path {
        plan: nothing(condition),
        layout: Layout::new(places),
        rows: 1.0,
        cost: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Func, Literal};
    use functions::resolve_operator;

    fn column(place: usize) -> Expr {
        Expr::new(ExprKind::Column(place), TypeId::INT4, -1)
    }

    fn number(value: i32, literal: Option<Rc<Literal>>) -> Expr {
        Expr::new(
            ExprKind::Const(Datum::Int4(value), literal),
            TypeId::INT4,
            -1,
        )
    }

    fn call(name: &str, a: Expr, b: Expr) -> Expr {
        let found = resolve_operator(name, a.ty, b.ty).unwrap();
        let types = found.argument_types.as_slice().into();
        let function = found.operator.function;
        truth(ExprKind::Call(Func(function), vec![a, b], types), -1)
    }

    fn constant(value: Datum) -> Expr {
        Expr::constant(value, TypeId::BOOL, -1)
    }

    #[test]
    fn what_is_known_goes_and_what_may_fail_before_it_stays() {
        let of_row = || call("=", column(0), number(7, None));
        let one_is_two = || call("=", number(1, None), number(2, None));
        let fails = || {
            let mut quotient = call("/", number(1, None), number(0, None));
            quotient.ty = TypeId::INT4;
            call("=", quotient, number(1, None))
        };
        let either = |a, b| truth(ExprKind::Or(vec![a, b]), -1);
        let both = |a, b| truth(ExprKind::And(vec![a, b]), -1);
        let parts = |conditions| match folded(conditions) {
            Folded::To(left) => Ok(left.len()),
            Folded::Never(Expr {
                kind: ExprKind::And(parts),
                ..
            }) => Err(parts.len()),
            Folded::Never(_) => Err(1),
        };
        assert_eq!(parts(vec![of_row(), constant(Datum::Bool(true))]), Ok(1));
        assert_eq!(parts(vec![of_row(), constant(Datum::Null)]), Err(1));
        assert_eq!(parts(vec![one_is_two(), of_row()]), Err(1));
        assert_eq!(parts(vec![either(one_is_two(), of_row())]), Ok(1));
        assert_eq!(
            parts(vec![either(
                both(of_row(), one_is_two()),
                constant(Datum::Null)
            )]),
            Err(1)
        );
        assert_eq!(
            parts(vec![either(constant(Datum::Bool(true)), of_row())]),
            Ok(0)
        );
        assert_eq!(parts(vec![fails(), of_row(), one_is_two()]), Err(2));
        assert_eq!(parts(vec![one_is_two(), fails()]), Err(1));
        assert_eq!(parts(vec![fails()]), Ok(1));
    }

    #[test]
    fn a_literal_that_decides_is_fixed() {
        let (decides, beside) = (Literal::new(0, false), Literal::new(1, false));
        let known = call("=", number(1, None), number(1, Some(decides.clone())));
        let of_row = call("=", column(0), number(1, Some(beside.clone())));
        assert!(matches!(folded(vec![known, of_row]), Folded::To(left) if left.len() == 1));
        assert_eq!((decides.is_fixed(), beside.is_fixed()), (true, false));
    }
}
