//! What conditions say of columns of which something is known, and how often they hold together.
//!
//! ```text
//! a >= 10 and a < 20 and b = any ('{1,2}') and not c
//! └── one range ───┘     └ a list ───────┘     └ a truth value
//! ```
//! Columns are asked for by their places in whatever row the conditions are over ([`Columns`]). Where
//! nobody has looked at a column, a condition holds as often as PostgreSQL assumes that knows nothing
//! ([`super::estimate`]).
//!
//! # Invariants
//! - A constant that is a literal of the statement's text is looked at only if another would make another
//!   plan, and then the plan is for that literal alone ([`crate::plan::Literal`]): so which plan a statement
//!   has follows from itself and the catalog, not from what was asked before.

use functions::pattern::like_prefix;
use functions::{resolve_operator, sample};
use types::{Category, Datum, TypeId};

use super::estimate::{DISTINCT_UNKNOWN, EQUAL, LIST_UNKNOWN, ONE_SIDE, SUBQUERY, TRUTH, UNKNOWN};
use super::selectivity::{self, Facts, Inequality};
use super::together;
use crate::logical::conjuncts;
use crate::plan::{Expr, ExprKind, Func, KnownTogether, SubKind};

/// What is known of the columns of a row.
pub(super) trait Columns {
    /// Of the column at a place.
    fn facts(&self, place: usize) -> Option<Facts>;

    /// Of an expression over columns, with a place that nothing else has.
    fn expression(&self, expr: &Expr) -> Option<(usize, Facts)> {
        let _ = expr;
        None
    }

    /// What is known of several columns together.
    fn together(&self) -> &[KnownTogether] {
        &[]
    }

    /// Whether something is chosen by what is found out, so that literals are looked at.
    fn chooses(&self) -> bool {
        true
    }
}

/// Columns of which nothing is known.
pub(super) struct Unknown;

impl Columns for Unknown {
    fn facts(&self, _: usize) -> Option<Facts> {
        None
    }
}

/// How much of a table a sample has of which nothing is known.
const SAMPLE: f64 = 0.1;

/// One side of a range.
struct Side {
    place: usize,
    low: bool,
    holds: f64,
}

/// How often all of the conditions hold.
pub(super) fn selectivity(conditions: &[Expr], columns: &dyn Columns) -> f64 {
    let all = conditions.iter().cloned();
    let all: Vec<Expr> = all.flat_map(|one| conjuncts(Some(one))).collect();
    let all: Vec<&Expr> = all.iter().collect();
    if columns.together().is_empty() {
        return each_of(&all, columns);
    }
    let all = together::apart(&all);
    let all: Vec<&Expr> = all.iter().collect();
    let (known, others) = together::all_of(&all, columns);
    known * each_of(&others, columns)
}

/// The same, where nothing is known of several columns together: ranges aside, conditions have nothing to
/// do with one another.
pub(super) fn each_of(conditions: &[&Expr], columns: &dyn Columns) -> f64 {
    let mut product = 1.0;
    let mut sides: Vec<Side> = Vec::new();
    for condition in conditions {
        let Some((side, facts)) = side_of(condition, columns) else {
            product *= of_condition(condition, columns);
            continue;
        };
        let is_other = |known: &Side| known.place == side.place && known.low != side.low;
        match sides.iter().position(is_other) {
            Some(place) => {
                let other = sides.swap_remove(place);
                product *= selectivity::range(&facts, side.holds, other.holds);
            }
            None => sides.push(side),
        }
    }
    sides.iter().fold(product, |all, side| all * side.holds)
}

/// A comparison of a column with a value that is known.
fn side_of(condition: &Expr, columns: &dyn Columns) -> Option<(Side, Facts)> {
    let comparison = Comparison::of(condition)?;
    let Operator::Order(inequality) = comparison.operator else {
        return None;
    };
    let (place, facts, other, turned) = comparison.column(columns)?;
    let value = value_of(other, columns, true)?;
    let inequality = if turned {
        inequality.turned()
    } else {
        inequality
    };
    let side = Side {
        place,
        low: inequality.is_low(),
        holds: selectivity::inequality(&facts, inequality, value),
    };
    Some((side, facts))
}

/// Whether how often a comparison holds follows from what is known of its column.
pub(super) fn is_known(condition: &Expr, columns: &dyn Columns) -> bool {
    match &condition.kind {
        ExprKind::AnyArray(subject, ..) => return facts_of(subject, columns).is_some(),
        ExprKind::Or(parts) => return parts.iter().all(|part| is_known(part, columns)),
        _ => {}
    }
    let Some(comparison) = Comparison::of(condition) else {
        return false;
    };
    let column = comparison.column(columns);
    match (comparison.operator, column) {
        (Operator::Equal, Some(_)) => true,
        (Operator::Order(_), Some(_)) => side_of(condition, columns).is_some(),
        (Operator::Like, Some((_, _, pattern, _))) => value_of(pattern, columns, true).is_some(),
        _ => false,
    }
}

/// The value of a constant, if the plan may rest on it: `matters` says whether another value would
/// tell something else.
pub(super) fn value_of<'e>(
    expr: &'e Expr,
    columns: &dyn Columns,
    matters: bool,
) -> Option<&'e Datum> {
    match &expr.bare().kind {
        // Numbers are compared by value, whatever their types.
        ExprKind::Coerce(inner, _) if is_number(expr.ty) && is_number(inner.ty) => {
            value_of(inner, columns, matters)
        }
        ExprKind::Const(value, None) => Some(value),
        ExprKind::Const(value, Some(literal)) if matters && columns.chooses() => {
            literal.fix();
            Some(value)
        }
        _ => None,
    }
}

fn is_number(ty: TypeId) -> bool {
    ty.category() == Category::Numeric
}

/// A list, as it is before its elements get another type.
pub(super) fn elements_of(list: &Expr) -> &Expr {
    match &list.kind {
        ExprKind::Coerce(inner, _) if inner.ty.array_element().is_some() => elements_of(inner),
        _ => list,
    }
}

/// How many elements a list has.
pub(super) fn count_of(list: &Expr) -> usize {
    match &elements_of(list).kind {
        ExprKind::Array(elements, _) => elements.len(),
        ExprKind::Const(Datum::Array(array), _) => array.elements.len(),
        _ => LIST_UNKNOWN,
    }
}

/// The facts of an expression that is a column.
fn facts_of(expr: &Expr, columns: &dyn Columns) -> Option<(usize, Facts)> {
    match expr.bare().kind {
        ExprKind::Column(place) => Some((place, columns.facts(place)?)),
        _ => columns.expression(expr),
    }
}

#[derive(Clone, Copy)]
pub(super) enum Operator {
    Equal,
    Differ,
    Order(Inequality),
    Like,
    Unlike,
    Other,
}

/// `~~` and `!~~` of texts.
const LIKE: [u32; 2] = [850, 1_631];
const UNLIKE: [u32; 2] = [851, 1_632];

impl Operator {
    pub(super) fn of(function: Func, left: TypeId, right: TypeId) -> Operator {
        let oid = function.0.oid;
        let is = |name: &&str| {
            let found = resolve_operator(name, left, right);
            found.is_ok_and(|found| found.operator.function.oid == oid)
        };
        match ["=", "<>", "<", "<=", ">", ">="]
            .iter()
            .find(|name| is(name))
        {
            Some(&"=") => Operator::Equal,
            Some(&"<>") => Operator::Differ,
            Some(name) => Inequality::named(name).map_or(Operator::Other, Operator::Order),
            None if LIKE.contains(&oid) => Operator::Like,
            None if UNLIKE.contains(&oid) => Operator::Unlike,
            None => Operator::Other,
        }
    }
}

/// A call of an operator with two sides.
pub(super) struct Comparison<'e> {
    pub(super) operator: Operator,
    pub(super) left: &'e Expr,
    pub(super) right: &'e Expr,
}

impl<'e> Comparison<'e> {
    pub(super) fn of(condition: &'e Expr) -> Option<Comparison<'e>> {
        let ExprKind::Call(function, args, types) = &condition.kind else {
            return None;
        };
        let ([left, right], [of_left, of_right]) = (&args[..], &types[..]) else {
            return None;
        };
        Some(Comparison {
            operator: Operator::of(*function, *of_left, *of_right),
            left,
            right,
        })
    }

    /// The side that is a column, with its place, what is known of it, the other side, and whether the
    /// column stands on the right.
    fn column(&self, columns: &dyn Columns) -> Option<(usize, Facts, &'e Expr, bool)> {
        let of = |expr| facts_of(expr, columns);
        match of(self.left) {
            Some((place, facts)) => Some((place, facts, self.right, false)),
            None => {
                let (place, facts) = of(self.right)?;
                Some((place, facts, self.left, true))
            }
        }
    }

    fn selectivity(&self, columns: &dyn Columns) -> f64 {
        let Some((_, facts, other, turned)) = self.column(columns) else {
            return self.unknown();
        };
        match self.operator {
            Operator::Equal => equal(&facts, other, columns),
            Operator::Differ => {
                let value = value_of(other, columns, facts.is_skewed());
                selectivity::differs(&facts, value)
            }
            Operator::Order(_) => ONE_SIDE,
            Operator::Like | Operator::Unlike => {
                let matches = match value_of(other, columns, true) {
                    Some(Datum::Text(pattern)) if !turned => {
                        let (beginning, whole) = like_prefix(pattern);
                        selectivity::pattern(&facts, pattern, &beginning, whole)
                    }
                    _ => return self.unknown(),
                };
                match self.operator {
                    Operator::Like => matches,
                    _ => (1.0 - matches - facts.nulls()).max(0.0),
                }
            }
            Operator::Other => self.unknown(),
        }
    }

    fn unknown(&self) -> f64 {
        match self.operator {
            Operator::Equal => EQUAL,
            Operator::Differ => 1.0 - EQUAL,
            Operator::Order(_) => ONE_SIDE,
            Operator::Like | Operator::Unlike | Operator::Other => UNKNOWN,
        }
    }
}

fn equal(facts: &Facts, value: &Expr, columns: &dyn Columns) -> f64 {
    selectivity::equal(facts, value_of(value, columns, facts.is_skewed()))
}

pub(super) fn of_condition(condition: &Expr, columns: &dyn Columns) -> f64 {
    match &condition.kind {
        ExprKind::Const(Datum::Bool(true), _) => 1.0,
        ExprKind::Const(..) => 0.0,
        ExprKind::And(parts) => selectivity(parts, columns),
        ExprKind::Or(parts) => {
            let parts: Vec<&Expr> = parts.iter().collect();
            let (known, others) = match columns.together().is_empty() {
                true => (0.0, parts),
                false => together::any_of(&parts, columns),
            };
            let none = others.iter();
            let none = none.map(|part| 1.0 - of_condition(part, columns));
            1.0 - (1.0 - known) * none.product::<f64>()
        }
        ExprKind::Not(part) => 1.0 - of_condition(part, columns),
        ExprKind::IsNull(of, wanted) => match (facts_of(of, columns), *wanted) {
            (Some((_, facts)), wanted) => selectivity::null(&facts, wanted),
            (None, true) => EQUAL,
            (None, false) => 1.0 - EQUAL,
        },
        ExprKind::Column(place) if condition.ty == TypeId::BOOL => {
            let facts = columns.facts(*place);
            facts.map_or(TRUTH, |facts| selectivity::truth(&facts, Some(true)))
        }
        _ if condition.ty == TypeId::BOOL && columns.expression(condition).is_some() => {
            let facts = columns.expression(condition);
            facts.map_or(TRUTH, |(_, facts)| selectivity::truth(&facts, Some(true)))
        }
        ExprKind::IsTruth(of, wanted, negated) => is_truth(of, *wanted, *negated, columns),
        ExprKind::AnyArray(..) => of_list(condition, columns),
        ExprKind::Call(method, args, _) if sample::is_method(method.0) => {
            let percent = args
                .first()
                .and_then(|percent| value_of(percent, columns, true));
            let whole = percent.and_then(Datum::as_i64);
            let share = whole.map_or(SAMPLE, |percent| percent as f64 / 100.0);
            share.clamp(0.0, 1.0)
        }
        ExprKind::Call(..) => match Comparison::of(condition) {
            Some(comparison) => comparison.selectivity(columns),
            None => TRUTH,
        },
        ExprKind::Sub(query, ..) => match query.kind {
            SubKind::Exists | SubKind::Any(..) | SubKind::AnyRow(_) | SubKind::Compare(..) => {
                SUBQUERY
            }
            SubKind::Scalar | SubKind::Array(_) | SubKind::Row(_) => UNKNOWN,
        },
        _ => TRUTH,
    }
}

/// `of IS [NOT] wanted`.
fn is_truth(of: &Expr, wanted: Option<bool>, negated: bool, columns: &dyn Columns) -> f64 {
    let holds = match facts_of(of, columns) {
        Some((_, facts)) => selectivity::truth(&facts, wanted),
        // What a policy lets through is wrapped so.
        None if wanted == Some(true) && says_something(of, columns) => of_condition(of, columns),
        None => return TRUTH,
    };
    match negated {
        true => 1.0 - holds,
        false => holds,
    }
}

/// Whether it names a column of which something is known.
fn says_something(expr: &Expr, columns: &dyn Columns) -> bool {
    expr.any(&|part| match part.kind {
        ExprKind::Column(place) => columns.facts(place).is_some(),
        _ => false,
    })
}

/// `subject operator ANY (list)`, or ALL.
fn of_list(condition: &Expr, columns: &dyn Columns) -> f64 {
    let ExprKind::AnyArray(subject, list, function, types, all) = &condition.kind else {
        return TRUTH;
    };
    let (list, operator) = (
        elements_of(list),
        match types[..] {
            [left, right] => Operator::of(*function, left, right),
            _ => Operator::Other,
        },
    );
    let known = facts_of(subject, columns);
    let count = count_of(list);
    let is_known = matches!(
        operator,
        Operator::Equal | Operator::Differ | Operator::Order(_)
    );
    let (Some((_, facts)), true) = (known, is_known) else {
        return match *all {
            true => UNKNOWN,
            false => (count as f64 * EQUAL).min(0.5),
        };
    };
    let one = |value: Option<&Datum>| match operator {
        Operator::Order(order) => match value {
            Some(value) => selectivity::inequality(&facts, order, value),
            None => ONE_SIDE,
        },
        Operator::Differ => selectivity::differs(&facts, value),
        _ => selectivity::equal(&facts, value),
    };
    let skewed = facts.is_skewed() || matches!(operator, Operator::Order(_));
    let each: Vec<f64> = match &list.kind {
        ExprKind::Array(elements, _) => {
            let values = elements.iter().map(|of| value_of(of, columns, skewed));
            values.map(one).collect()
        }
        ExprKind::Const(..) => match value_of(list, columns, skewed) {
            Some(Datum::Array(array)) => {
                let values = array.elements.iter();
                values.map(|value| one(Some(value))).collect()
            }
            _ => vec![one(None); count],
        },
        _ => vec![one(None); count],
    };
    // Only these exclude one another.
    match (operator, *all) {
        (Operator::Equal, false) | (Operator::Differ, true) => {
            selectivity::list(each.iter().copied(), *all)
        }
        (_, true) => each.iter().product(),
        (_, false) => 1.0 - each.iter().map(|one| 1.0 - one).product::<f64>(),
    }
}

/// How often two columns of different tables agree; none if nothing is known of either. Of a key, how many
/// rows its table has is known in any case.
pub(super) fn join(
    (a, key_a): (Option<Facts>, Option<f64>),
    (b, key_b): (Option<Facts>, Option<f64>),
) -> Option<f64> {
    match (a, b) {
        (None, None) => None,
        (Some(a), Some(b)) => Some(selectivity::join(&a, &b)),
        (Some(one), None) | (None, Some(one)) => {
            let other = key_a.or(key_b).filter(|_| !one.unique);
            let distinct = one
                .distinct()
                .max(other.unwrap_or(DISTINCT_UNKNOWN.min(one.rows)));
            Some((1.0 - one.nulls()) / distinct.max(1.0))
        }
    }
}
