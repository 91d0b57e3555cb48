//! Whether the conditions of a query imply that of an index, so that the index has every row that
//! the query can want.
//!
//! | the index's | is implied by |
//! |---|---|
//! | any condition | the same one; `b` by `b = true` and `b is true`, `not b` by `b = false` |
//! | `a is not null` | whatever is never true where `a` is NULL: `a = 5`, `a + 1 > x`, `a in (1, 2)` |
//! | `a > 5` | `a > 7`, `a >= 6`, `a = 8`: the same operand, and constants that are in order |
//! | `a in (1, 2)` | `a = 1`, `a in (2)` |
//! | `p and q` | conditions that imply both |
//! | `p or q` | one that implies either; `r or s` where both do |
//!
//! A no may be wrong, which costs an index; a yes may not.
//!
//! # Literals
//! A plan is kept for other literals in the same places ([`crate::bind::literals`]). A condition that
//! looks at a column of the index's is fixed with its constants, whatever came of it: `state =
//! 'done'` must not be planned once and for all as what `state = 'new'` can do without the index.

use std::cmp::Ordering;

use crate::logical::{columns_of, conjuncts};
use crate::plan::{Expr, ExprKind};
use functions::resolve_operator;
use types::{compare, Datum, TypeId};

/// Whether conditions that all hold imply all of an index's.
pub(crate) fn implied(index: &[Expr], query: &[Expr]) -> bool {
    if index.is_empty() {
        return true;
    }
    let looked_at: Vec<_> = index.iter().flat_map(columns_of).collect();
    let query: Vec<Expr> = query
        .iter()
        .filter(|condition| {
            let columns = columns_of(condition);
            columns.iter().any(|place| looked_at.contains(place))
        })
        .flat_map(|condition| conjuncts(Some(normal(condition.clone()))))
        .collect();
    query.iter().for_each(fix_constants);
    index.iter().all(|wanted| all_imply(&query, wanted))
}

/// Notes that the plan rests on the constants in an expression.
pub(super) fn fix_constants(expr: &Expr) {
    expr.visit(&mut |part| {
        if let ExprKind::Const(_, Some(literal)) = &part.kind {
            literal.fix();
        }
    });
}

/// A condition with its comparisons of truth values written as what they mean.
pub(crate) fn normal(mut condition: Expr) -> Expr {
    let comparison = comparison(&condition);
    match &mut condition.kind {
        ExprKind::And(parts) | ExprKind::Or(parts) => {
            for part in parts {
                let taken = std::mem::replace(part, Expr::constant(Datum::Null, TypeId::BOOL, -1));
                *part = normal(taken);
            }
        }
        // As a condition, what is not true is as good as false.
        ExprKind::IsTruth(inner, Some(true), false) => return normal((**inner).clone()),
        ExprKind::IsTruth(inner, Some(false), false) => return negated((**inner).clone()),
        ExprKind::Call(_, args, _) => {
            if let ([left, right], Some("=")) = (&args[..], comparison) {
                if left.ty == TypeId::BOOL && right.ty == TypeId::BOOL {
                    let (value, constant) = match (&left.kind, &right.kind) {
                        (_, ExprKind::Const(constant, _)) => (left, constant),
                        (ExprKind::Const(constant, _), _) => (right, constant),
                        _ => return condition,
                    };
                    match constant {
                        Datum::Bool(true) => return normal(value.clone()),
                        Datum::Bool(false) => return negated(value.clone()),
                        _ => {}
                    }
                }
            }
        }
        _ => {}
    }
    condition
}

fn negated(value: Expr) -> Expr {
    let location = value.location.0;
    Expr::new(ExprKind::Not(Box::new(value)), TypeId::BOOL, location)
}

fn all_imply(query: &[Expr], wanted: &Expr) -> bool {
    match &wanted.kind {
        ExprKind::And(parts) => parts.iter().all(|part| all_imply(query, part)),
        ExprKind::Or(parts) => {
            query.iter().any(|given| implies(given, wanted))
                || parts.iter().any(|part| all_imply(query, part))
        }
        _ => query.iter().any(|given| implies(given, wanted)),
    }
}

/// Whether one condition implies another.
fn implies(given: &Expr, wanted: &Expr) -> bool {
    if given.same(wanted) {
        return true;
    }
    match (&given.kind, &wanted.kind) {
        (ExprKind::Or(parts), _) => parts.iter().all(|part| implies(part, wanted)),
        (ExprKind::And(parts), _) => all_imply(parts, wanted),
        (_, ExprKind::And(parts)) => parts.iter().all(|part| implies(given, part)),
        (_, ExprKind::Or(parts)) => parts.iter().any(|part| implies(given, part)),
        (_, ExprKind::IsNull(value, false)) => is_false_for_null(given, value),
        _ => in_order(given, wanted) || is_among(given, wanted),
    }
}

/// Whether a condition is never true where a value is NULL.
fn is_false_for_null(condition: &Expr, value: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Not(inner) => is_null_for_null(inner, value),
        ExprKind::IsNull(inner, false) => is_null_for_null(inner, value),
        _ => is_null_for_null(condition, value),
    }
}

/// Whether an expression is NULL where a value in it is.
fn is_null_for_null(expr: &Expr, value: &Expr) -> bool {
    if expr.bare().same(value.bare()) {
        return true;
    }
    match &expr.kind {
        ExprKind::Call(function, args, _) if function.0.strict => {
            args.iter().any(|arg| is_null_for_null(arg, value))
        }
        ExprKind::AnyArray(left, right, function, ..) if function.0.strict => {
            let has_elements = match &right.kind {
                ExprKind::Const(Datum::Array(array), _) => !array.elements.is_empty(),
                ExprKind::Array(elements, _) => !elements.is_empty(),
                _ => false,
            };
            has_elements && is_null_for_null(left, value)
        }
        ExprKind::Not(inner) | ExprKind::Coerce(inner, _) | ExprKind::Fit(inner, _) => {
            is_null_for_null(inner, value)
        }
        _ => false,
    }
}

const COMPARISONS: [&str; 5] = ["=", "<", "<=", ">", ">="];

/// Which comparison an expression is.
fn comparison(expr: &Expr) -> Option<&'static str> {
    let ExprKind::Call(function, args, _) = &expr.kind else {
        return None;
    };
    let [left, right] = args.as_slice() else {
        return None;
    };
    COMPARISONS.into_iter().find(|name| {
        resolve_operator(name, left.ty, right.ty)
            .is_ok_and(|found| found.operator.function.oid == function.0.oid)
    })
}

/// `operand operator constant`, from either side.
fn compared(expr: &Expr) -> Option<(&Expr, &'static str, &Expr)> {
    let name = comparison(expr)?;
    let ExprKind::Call(_, args, _) = &expr.kind else {
        return None;
    };
    let is_constant =
        |expr: &Expr| matches!(&expr.kind, ExprKind::Const(value, _) if !value.is_null());
    match (is_constant(&args[0]), is_constant(&args[1])) {
        (false, true) => Some((&args[0], name, &args[1])),
        (true, false) => {
            let turned = match name {
                "<" => ">",
                "<=" => ">=",
                ">" => "<",
                ">=" => "<=",
                name => name,
            };
            Some((&args[1], turned, &args[0]))
        }
        _ => None,
    }
}

fn value_of(constant: &Expr) -> Option<&Datum> {
    match &constant.kind {
        ExprKind::Const(value, _) => Some(value),
        _ => None,
    }
}

/// Whether two comparisons of one operand with constants are such that the first implies the
/// second.
fn in_order(given: &Expr, wanted: &Expr) -> bool {
    let (Some((operand, have, a)), Some((other, want, b))) = (compared(given), compared(wanted))
    else {
        return false;
    };
    if !operand.bare().same(other.bare()) || a.ty != b.ty {
        return false;
    }
    let (Some(a), Some(b)) = (value_of(a), value_of(b)) else {
        return false;
    };
    let order = compare(operand.ty, a, b);
    match (have, want) {
        ("=", "=") => order == Ordering::Equal,
        ("=", "<") | ("<=", "<") => order == Ordering::Less,
        ("=", "<=") | ("<", "<") | ("<", "<=") | ("<=", "<=") => order != Ordering::Greater,
        ("=", ">") | (">=", ">") => order == Ordering::Greater,
        ("=", ">=") | (">", ">") | (">", ">=") | (">=", ">=") => order != Ordering::Less,
        _ => false,
    }
}

/// The operand of `operand = any (array)`, and the constants of the array.
fn listed(expr: &Expr) -> Option<(&Expr, Vec<&Datum>)> {
    if let Some((operand, "=", constant)) = compared(expr) {
        return Some((operand, vec![value_of(constant)?]));
    }
    let ExprKind::AnyArray(left, right, function, _, false) = &expr.kind else {
        return None;
    };
    let element = right.ty.array_element()?;
    let found = resolve_operator("=", left.ty, element).ok()?;
    if found.operator.function.oid != function.0.oid {
        return None;
    }
    let values = match &right.kind {
        ExprKind::Const(Datum::Array(array), _) => array.elements.iter().collect(),
        ExprKind::Array(elements, _) => elements.iter().map(value_of).collect::<Option<_>>()?,
        _ => return None,
    };
    Some((left, values))
}

/// Whether what the first allows its operand to be is among what the second does.
fn is_among(given: &Expr, wanted: &Expr) -> bool {
    let (Some((operand, have)), Some((other, want))) = (listed(given), listed(wanted)) else {
        return false;
    };
    operand.bare().same(other.bare())
        && have.iter().all(|value| {
            !value.is_null()
                && want.iter().any(|known| {
                    !known.is_null() && compare(operand.ty, value, known) == Ordering::Equal
                })
        })
}
