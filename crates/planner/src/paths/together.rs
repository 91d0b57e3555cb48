//! How often conditions hold that look at several columns of a table together, by extended statistics
//! (PostgreSQL 15 manual, sections 14.2.2 and 72.2).
//!
//! ```text
//! city = 'Paris' and zip = '75001' and age > 30
//! └─ common combinations: 0.02 ─┘   └ by itself ┘
//! ```
//! | first | common combinations | of those that meet all (or one) of the conditions they have, and the rest is as often as it would be by itself |
//! | then | dependencies | `P(a, b) = f min(P(a), P(b)) + (1 - f) P(a) P(b)` where `a` says `b` with degree `f` |
//! | last | nothing | what is left is estimated condition by condition ([`super::conditions`]) |
//!
//! # Invariants
//! - A condition is estimated once, by one of them.
//! - What a condition is compared with is looked at only where statistics have what it looks at.
//!
//! # What it leaves out
//! Conditions over several tables.

use std::collections::BTreeSet;

use catalog::extended::{Combination, CommonCombinations};
use types::{Datum, TypeId};

use super::conditions::{
    each_of, elements_of, of_condition, value_of, Columns, Comparison, Operator,
};
use super::selectivity::{order, Facts};
use crate::plan::{Expr, ExprKind, KnownTogether};

/// Statistics that a query has this many parts of are of use.
const PARTS_MIN: u32 = 2;

/// The same columns with nothing known of several of them together.
struct Alone<'c>(&'c dyn Columns);

impl Columns for Alone<'_> {
    fn facts(&self, place: usize) -> Option<Facts> {
        self.0.facts(place)
    }

    fn expression(&self, expr: &Expr) -> Option<(usize, Facts)> {
        self.0.expression(expr)
    }

    fn chooses(&self) -> bool {
        self.0.chooses()
    }
}

/// Conditions without OR below NOT: what is none of several is not each of them.
pub(super) fn apart(conditions: &[&Expr]) -> Vec<Expr> {
    let mut all = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match &condition.kind {
            ExprKind::Not(inner) => match &inner.kind {
                ExprKind::Or(parts) => all.extend(parts.iter().map(|part| Expr {
                    kind: ExprKind::Not(Box::new(part.clone())),
                    ..(*condition).clone()
                })),
                _ => all.push((*condition).clone()),
            },
            _ => all.push((*condition).clone()),
        }
    }
    all
}

/// How often those of some conditions hold, all of them, of which more is known than of each by itself;
/// and the others.
pub(super) fn all_of<'e>(conditions: &[&'e Expr], columns: &dyn Columns) -> (f64, Vec<&'e Expr>) {
    let mut left = conditions.to_vec();
    if left.len() < 2 {
        return (1.0, left);
    }
    let mut holds = 1.0;
    while let Some(best) = Best::of(&left, columns) {
        let covered = best.take_from(&mut left, columns);
        let simple = each_of(&covered, &Alone(columns));
        let meets = |item: &Combination| {
            let mut all = covered.iter();
            all.all(|condition| meets(condition, best.known, item, columns))
        };
        let mut sums = Sums::default();
        best.common.items.iter().for_each(|item| {
            sums.add(item, meets(item));
        });
        holds *= sums.combined(simple, sums.total);
    }
    let (by_dependencies, left) = by_dependencies(left, columns);
    (holds * by_dependencies, left)
}

/// How often one of those conditions holds of which more is known together; and the others.
pub(super) fn any_of<'e>(conditions: &[&'e Expr], columns: &dyn Columns) -> (f64, Vec<&'e Expr>) {
    let mut left = conditions.to_vec();
    let mut holds = 0.0;
    while let Some(best) = Best::of(&left, columns) {
        let covered = best.take_from(&mut left, columns);
        let by_it = best.any_of(&covered, columns);
        holds += by_it - holds * by_it;
    }
    (holds, left)
}

/// Shares of rows, of common combinations.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Of those that meet something.
    met: f64,
    /// The same, if the parts had nothing to do with one another.
    base: f64,
    /// Of all.
    total: f64,
}

impl Sums {
    fn add(&mut self, item: &Combination, meets: bool) {
        self.total += item.frequency;
        if meets {
            self.met += item.frequency;
            self.base += item.base_frequency;
        }
    }

    /// How often something holds that would hold so often if the parts had nothing to do with one another;
    /// the common combinations are so many rows together.
    fn combined(&self, simple: f64, total: f64) -> f64 {
        let others = (simple - self.base).clamp(0.0, 1.0).min(1.0 - total);
        (self.met + others).clamp(0.0, 1.0)
    }
}

/// The statistics that have most of what conditions look at.
struct Best<'k> {
    known: &'k KnownTogether,
    common: &'k CommonCombinations,
}

impl<'k> Best<'k> {
    fn of(conditions: &[&Expr], columns: &'k dyn Columns) -> Option<Best<'k>> {
        let mut best: Option<(u32, usize, Best<'k>)> = None;
        for known in columns.together() {
            let Some(common) = &known.found.common else {
                continue;
            };
            let parts = conditions.iter();
            let parts = parts.filter_map(|condition| looked_at(condition, known, columns));
            let matched = parts.fold(0_u32, |all, one| all | one).count_ones();
            let size = common.types.len();
            let is_better = match &best {
                None => matched >= PARTS_MIN,
                Some((most, least, _)) => matched > *most || (matched == *most && size < *least),
            };
            if is_better {
                best = Some((matched, size, Best { known, common }));
            }
        }
        best.map(|best| best.2)
    }

    /// Takes the conditions that look at nothing else.
    fn take_from<'e>(&self, left: &mut Vec<&'e Expr>, columns: &dyn Columns) -> Vec<&'e Expr> {
        let all = std::mem::take(left).into_iter();
        let (covered, others) =
            all.partition(|condition| looked_at(condition, self.known, columns).is_some());
        *left = others;
        covered
    }

    /// How often one of the conditions holds: `P(A or B) = P(A) + P(B) - P(A and B)`, one after the other.
    fn any_of(&self, conditions: &[&Expr], columns: &dyn Columns) -> f64 {
        let items = &self.common.items;
        let mut before = vec![false; items.len()];
        let (mut simple_before, mut holds) = (0.0_f64, 0.0_f64);
        for condition in conditions {
            let simple = of_condition(condition, &Alone(columns));
            let simple_both = simple_before * simple;
            simple_before = (simple_before + simple - simple_both).clamp(0.0, 1.0);
            let (mut sums, mut both) = (Sums::default(), Sums::default());
            for (item, before) in items.iter().zip(&mut before) {
                let meets = meets(condition, self.known, item, columns);
                sums.add(item, meets);
                both.add(item, meets && *before);
                *before |= meets;
            }
            let parts = looked_at(condition, self.known, columns).unwrap_or(0);
            let own = match parts.count_ones() {
                1 => simple,
                _ => sums.combined(simple, sums.total),
            };
            holds = (holds + own - both.combined(simple_both, sums.total)).clamp(0.0, 1.0);
        }
        holds
    }
}

/// A comparison of a part with a constant.
struct Test<'e> {
    part: usize,
    operator: Operator,
    value: &'e Datum,
}

impl<'e> Test<'e> {
    fn of(condition: &'e Expr, known: &KnownTogether, columns: &dyn Columns) -> Option<Test<'e>> {
        let comparison = Comparison::of(condition)?;
        let (part, other, turned) = match known.part(comparison.left) {
            Some(part) => (part, comparison.right, false),
            None => (known.part(comparison.right)?, comparison.left, true),
        };
        let operator = match comparison.operator {
            Operator::Order(order) if turned => Operator::Order(order.turned()),
            operator @ (Operator::Equal | Operator::Differ | Operator::Order(_)) => operator,
            _ => return None,
        };
        Some(Test {
            part,
            operator,
            value: value_of(other, columns, true)?,
        })
    }
}

/// The elements of a list of constants.
fn listed<'e>(list: &'e Expr, columns: &dyn Columns) -> Option<Vec<&'e Datum>> {
    let list = elements_of(list);
    match &list.kind {
        ExprKind::Array(elements, _) => {
            let values = elements.iter();
            values.map(|one| value_of(one, columns, true)).collect()
        }
        _ => match value_of(list, columns, true)? {
            Datum::Array(array) => Some(array.elements.iter().collect()),
            _ => None,
        },
    }
}

fn operator_of_list(condition: &Expr) -> Operator {
    match &condition.kind {
        ExprKind::AnyArray(_, _, function, types, _) => match types[..] {
            [left, right] => Operator::of(*function, left, right),
            _ => Operator::Other,
        },
        _ => Operator::Other,
    }
}

/// The parts that a condition looks at, a bit for each; none if it looks at something else, or if it is not
/// known which combinations meet it.
fn looked_at(condition: &Expr, known: &KnownTogether, columns: &dyn Columns) -> Option<u32> {
    let bit = |part: usize| 1_u32 << part;
    match &condition.kind {
        ExprKind::And(parts) | ExprKind::Or(parts) => {
            let mut parts = parts.iter();
            parts.try_fold(0, |all, part| Some(all | looked_at(part, known, columns)?))
        }
        ExprKind::Not(part) => looked_at(part, known, columns),
        ExprKind::IsNull(of, _) => known.part(of).map(bit),
        ExprKind::AnyArray(subject, list, ..) => {
            let part = known.part(subject)?;
            let has_order = matches!(
                operator_of_list(condition),
                Operator::Equal | Operator::Differ | Operator::Order(_)
            );
            let is_known = has_order && listed(list, columns).is_some();
            is_known.then(|| bit(part))
        }
        _ if condition.ty != TypeId::BOOL => None,
        _ => match Test::of(condition, known, columns) {
            Some(test) => Some(bit(test.part)),
            None => known.part(condition).map(bit),
        },
    }
}

fn compares(operator: Operator, ty: TypeId, value: &Datum, with: &Datum) -> bool {
    if value.is_null() || with.is_null() {
        return false;
    }
    let order = order(ty, value, with);
    order.is_some_and(|order| match operator {
        Operator::Equal => order.is_eq(),
        Operator::Differ => order.is_ne(),
        Operator::Order(wanted) => wanted.holds(order),
        _ => false,
    })
}

/// Whether a combination meets a condition.
fn meets(
    condition: &Expr,
    known: &KnownTogether,
    item: &Combination,
    columns: &dyn Columns,
) -> bool {
    let again = |part: &Expr| meets(part, known, item, columns);
    let Some(common) = &known.found.common else {
        return false;
    };
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().all(again),
        ExprKind::Or(parts) => parts.iter().any(again),
        ExprKind::Not(part) => match Test::of(part, known, columns) {
            // Of NULL neither is true.
            Some(test) if item.values[test.part].is_null() || test.value.is_null() => false,
            _ => !again(part),
        },
        ExprKind::IsNull(of, wanted) => {
            let part = known.part(of);
            part.is_some_and(|part| item.values[part].is_null() == *wanted)
        }
        ExprKind::AnyArray(subject, list, _, _, all) => {
            let (Some(part), Some(values)) = (known.part(subject), listed(list, columns)) else {
                return false;
            };
            let (operator, ty) = (operator_of_list(condition), common.types[part]);
            let own = &item.values[part];
            let mut values = values.into_iter();
            match all {
                true => values.all(|value| compares(operator, ty, own, value)),
                false => values.any(|value| compares(operator, ty, own, value)),
            }
        }
        _ => match Test::of(condition, known, columns) {
            Some(test) => {
                let ty = common.types[test.part];
                compares(test.operator, ty, &item.values[test.part], test.value)
            }
            None => {
                let part = known.part(condition);
                part.is_some_and(|part| item.values[part] == Datum::Bool(true))
            }
        },
    }
}

// ---- Dependencies ----

/// A column by its number, or an expression by -1, -2 and so on.
type Part = i32;

/// A dependency between what conditions look at; the last part follows from the others.
struct Follows {
    parts: Vec<Part>,
    degree: f64,
}

/// What an expression is to dependencies; expressions that are new among those that are known come to them.
fn part_of<'e>(
    expr: &'e Expr,
    columns: &dyn Columns,
    expressions: &mut Vec<&'e Expr>,
) -> Option<Part> {
    let expr = expr.bare();
    if let ExprKind::Column(place) = expr.kind {
        return Part::try_from(place + 1).ok();
    }
    let mut known = columns.together().iter();
    known.find(|known| known.found.dependencies.is_some() && known.expression(expr).is_some())?;
    let place = expressions.iter().position(|other| other.same(expr));
    let place = place.unwrap_or_else(|| {
        expressions.push(expr);
        expressions.len() - 1
    });
    Some(-Part::try_from(place + 1).ok()?)
}

/// The one part that a condition says the value of, or the values.
fn said_part<'e>(
    condition: &'e Expr,
    columns: &dyn Columns,
    expressions: &mut Vec<&'e Expr>,
) -> Option<Part> {
    let is_fixed = |expr: &Expr| {
        !expr.any(&|part| matches!(part.kind, ExprKind::Column(_) | ExprKind::Sub(..)))
    };
    match &condition.kind {
        ExprKind::Or(parts) => {
            let first = said_part(parts.first()?, columns, expressions)?;
            let mut others = parts[1..].iter();
            others
                .all(|part| said_part(part, columns, expressions) == Some(first))
                .then_some(first)
        }
        ExprKind::Not(part) => part_of(part, columns, expressions),
        ExprKind::AnyArray(subject, list, _, _, false) if is_fixed(list) => {
            match operator_of_list(condition) {
                Operator::Equal => part_of(subject, columns, expressions),
                _ => None,
            }
        }
        _ if condition.ty != TypeId::BOOL => None,
        _ => match Comparison::of(condition) {
            Some(comparison) if matches!(comparison.operator, Operator::Equal) => {
                if is_fixed(comparison.right) {
                    part_of(comparison.left, columns, expressions)
                } else if is_fixed(comparison.left) {
                    part_of(comparison.right, columns, expressions)
                } else {
                    None
                }
            }
            _ => part_of(condition, columns, expressions),
        },
    }
}

/// How often those conditions hold between whose parts there are dependencies; and the others.
fn by_dependencies<'e>(conditions: Vec<&'e Expr>, columns: &dyn Columns) -> (f64, Vec<&'e Expr>) {
    let mut statistics = columns.together().iter();
    if !statistics.any(|known| known.found.dependencies.is_some()) {
        return (1.0, conditions);
    }
    let mut expressions = Vec::new();
    let said: Vec<Option<Part>> = conditions
        .iter()
        .map(|condition| said_part(condition, columns, &mut expressions))
        .collect();
    let mut open: BTreeSet<Part> = said.iter().flatten().copied().collect();
    let known = dependencies_between(&open, columns, &expressions);
    let mut chosen: Vec<&Follows> = Vec::new();
    while let Some(strongest) = strongest(&known, &open) {
        if let Some(last) = strongest.parts.last() {
            open.remove(last);
        }
        chosen.push(strongest);
    }
    let parts = chosen.iter().flat_map(|one| &one.parts).copied();
    let parts: BTreeSet<Part> = parts.collect();
    let mut holds: Vec<(Part, f64)> = Vec::new();
    for part in parts {
        let of_part = conditions.iter().zip(&said);
        let of_part: Vec<&Expr> = of_part
            .filter(|(_, said)| **said == Some(part))
            .map(|(condition, _)| *condition)
            .collect();
        holds.push((part, each_of(&of_part, &Alone(columns))));
    }
    // Of a chain, what is said last comes first.
    for follows in chosen.iter().rev() {
        apply(follows, &mut holds);
    }
    let product: f64 = holds.iter().map(|one| one.1).product();
    let is_left = |said: &Option<Part>| !holds.iter().any(|one| *said == Some(one.0));
    let left = conditions.into_iter().zip(&said);
    let left = left.filter(|(_, said)| is_left(said));
    (product.clamp(0.0, 1.0), left.map(|one| one.0).collect())
}

/// What is known of dependencies between parts of which conditions say something.
fn dependencies_between(
    said: &BTreeSet<Part>,
    columns: &dyn Columns,
    expressions: &[&Expr],
) -> Vec<Follows> {
    let mut all = Vec::new();
    for known in columns.together() {
        let named = |number: &i16| match usize::try_from(-i32::from(*number) - 1) {
            Ok(place) => {
                let own = known.expressions.get(place)?.bare();
                let place = expressions.iter().position(|other| other.same(own))?;
                Some(-Part::try_from(place + 1).ok()?)
            }
            Err(_) => Some(Part::from(*number)),
        };
        for found in known.found.dependencies.iter().flatten() {
            let parts: Option<Vec<Part>> = found.parts.iter().map(named).collect();
            if let Some(parts) = parts.filter(|parts| parts.iter().all(|one| said.contains(one))) {
                all.push(Follows {
                    parts,
                    degree: found.degree,
                });
            }
        }
    }
    all
}

/// The dependency with most parts, and of those the one of the highest degree, all of whose parts are open.
fn strongest<'f>(known: &'f [Follows], open: &BTreeSet<Part>) -> Option<&'f Follows> {
    let is_open = |one: &&Follows| one.parts.iter().all(|part| open.contains(part));
    let open = known.iter().filter(is_open);
    open.reduce(|best, one| {
        let is_stronger = one.parts.len() > best.parts.len()
            || (one.parts.len() == best.parts.len() && one.degree >= best.degree);
        if is_stronger {
            one
        } else {
            best
        }
    })
}

/// Puts how often the last part is as it should be, where the others are, in the place of how often it is
/// so by itself.
fn apply(follows: &Follows, holds: &mut [(Part, f64)]) {
    let Some((last, others)) = follows.parts.split_last() else {
        return;
    };
    let of = |part: &Part| holds.iter().find(|one| one.0 == *part);
    let first: f64 = others.iter().filter_map(of).map(|one| one.1).product();
    let degree = follows.degree;
    if let Some(one) = holds.iter_mut().find(|one| one.0 == *last) {
        let second = one.1;
        one.1 = match first <= second {
            true => degree + (1.0 - degree) * second,
            false => degree * second / first + (1.0 - degree) * second,
        };
    }
}

/// How many combinations several columns have, as far as statistics have two or more of them: the numbers
/// stand in the place of those of single columns.
pub(super) fn distinct_together(known: &[KnownTogether], columns: &[(usize, f64)]) -> Vec<f64> {
    let mut left = columns.to_vec();
    let mut found = Vec::new();
    loop {
        let matched = |known: &KnownTogether| {
            let of = left
                .iter()
                .filter(|(place, _)| known.made.columns.contains(place));
            of.count()
        };
        let mut best: Option<(usize, &KnownTogether)> = None;
        for one in known.iter().filter(|one| one.found.distinct.is_some()) {
            let count = matched(one);
            if count >= PARTS_MIN as usize && best.is_none_or(|(most, _)| count > most) {
                best = Some((count, one));
            }
        }
        let Some((_, best)) = best else { break };
        let is_covered = |place: usize| best.made.columns.contains(&place);
        let mut parts: Vec<i16> = left
            .iter()
            .filter(|(place, _)| is_covered(*place))
            .filter_map(|(place, _)| i16::try_from(place + 1).ok())
            .collect();
        parts.sort_unstable();
        let mut items = best.found.distinct.iter().flatten();
        let Some(item) = items.find(|item| item.parts == parts) else {
            break;
        };
        found.push(item.distinct);
        left.retain(|(place, _)| !is_covered(*place));
    }
    found.extend(left.iter().map(|one| one.1));
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::extended::{Combined, Extended, Gathered};

    use super::*;

    fn follows(parts: &[Part], degree: f64) -> Follows {
        Follows {
            parts: parts.to_vec(),
            degree,
        }
    }

    #[test]
    fn what_follows_adds_nothing_to_what_it_follows_from() {
        let mut holds = vec![(1, 0.01), (2, 0.02)];
        apply(&follows(&[1, 2], 1.0), &mut holds);
        assert_eq!(holds, [(1, 0.01), (2, 1.0)]);
        // Of rows that are more than those it can be true of.
        let mut holds = vec![(1, 0.04), (2, 0.02)];
        apply(&follows(&[1, 2], 0.5), &mut holds);
        assert_eq!(holds[1].1, 0.5 * 0.02 / 0.04 + 0.5 * 0.02);
    }

    #[test]
    fn the_widest_dependency_is_first_and_of_those_the_strongest() {
        let known = [
            follows(&[1, 2], 1.0),
            follows(&[1, 2, 3], 0.2),
            follows(&[1, 3, 2], 0.4),
            follows(&[4, 1, 2], 1.0),
        ];
        let open = |parts: &[Part]| parts.iter().copied().collect::<BTreeSet<Part>>();
        let of = |parts: &[Part]| strongest(&known, &open(parts)).map(|one| one.parts.clone());
        assert_eq!(of(&[1, 2, 3]), Some(vec![1, 3, 2]));
        assert_eq!(of(&[1, 2]), Some(vec![1, 2]));
        assert_eq!(of(&[1, 4]), None);
    }

    /// Common combinations are as often as they were found; what the conditions would be without them, but
    /// for what is common by chance, is left for the others.
    #[test]
    fn common_combinations_and_the_rest() {
        let sums = Sums {
            met: 0.02,
            base: 0.0004,
            total: 1.0,
        };
        assert_eq!(sums.combined(0.0004, 1.0), 0.02);
        assert_eq!(sums.combined(0.5, 1.0), 0.02);
        assert!((sums.combined(0.0104, 0.5) - 0.03).abs() < 1e-9);
        assert!((sums.combined(0.9, 0.5) - 0.52).abs() < 1e-9);
    }

    #[test]
    fn columns_together_have_fewer_combinations() {
        let made = Extended {
            columns: vec![0, 1, 2],
            ..Extended::default()
        };
        let of = |parts: &[i16], distinct: f64| Combined {
            parts: parts.to_vec(),
            distinct,
        };
        let distinct = vec![of(&[1, 2], 12.0), of(&[1, 3], 7.0), of(&[1, 2, 3], 30.0)];
        let known = [KnownTogether {
            made: Arc::new(made),
            found: Arc::new(Gathered {
                distinct: Some(distinct),
                ..Gathered::default()
            }),
            expressions: Vec::new(),
        }];
        assert_eq!(distinct_together(&known, &[(0, 10.0), (2, 9.0)]), [7.0]);
        let all = [(2, 9.0), (0, 10.0), (1, 5.0), (4, 3.0)];
        assert_eq!(distinct_together(&known, &all), [30.0, 3.0]);
        assert_eq!(
            distinct_together(&known, &[(0, 10.0), (4, 3.0)]),
            [10.0, 3.0]
        );
        assert_eq!(distinct_together(&[], &[(0, 10.0)]), [10.0]);
    }
}
