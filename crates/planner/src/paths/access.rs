//! Which keys of a table its conditions leave.
//!
//! An index is asked for by its keys: columns, or expressions that the statement has as well. A
//! computed one with a condition is asked only if the statement's conditions imply it
//! ([`super::implies`]).
//!
//! ```text
//! k = 5 AND n < 9           index (k, n)     one range
//! k IN (1, 5, 9), k = ANY ($1), k = 1 OR k = 5 OR k = 9
//!                           index (k)        one range for each element, in the index's order
//! ```
//! # Invariants
//! - Of one way's keys at most one is asked for by a list.
//! - Where ANALYZE has looked, no way is taken that is expected to cost more than reading the table.
//!
//! Where no one index serves, several may serve one OR ([`super::alternatives`]).

use std::borrow::Cow;
use std::rc::Rc;

use base::Result;

use super::conditions::{count_of, is_known, selectivity};
use super::estimate::{descent, fetch, DESCENT, EQUAL, ONE_SIDE, ROW, TEST};
use super::implies::{fix_constants, implied};
use super::{inverted, prefix, Planner};
use crate::logical::{all_of, leaks, surely};
use crate::plan::compile;
use crate::plan::{Access, ComputedAccess, Expr, ExprKind, Program, Scan, SlowerWay, Way};
use catalog::Index;
use functions::resolve_operator;
use types::TypeId;

/// A longer list is looked through for each row: to weigh it takes time as well …
const LIST_LENGTH_MAX: usize = 10_000;

/// … and more parts of an OR are tested on each row: to look at each of them takes more.
const PARTS_MAX: usize = 1_000;

/// What stands on one side of a comparison.
#[derive(Clone, Copy)]
enum Side<'e> {
    Column(usize),
    /// What an index is on.
    Expression(&'e Expr),
}

/// A condition of the form `column operator value`, or such of an expression, or what follows from
/// one.
pub(super) struct Bound<'e> {
    /// Which condition it is.
    number: usize,
    side: Side<'e>,
    operator: &'static str,
    value: Cow<'e, Expr>,
    /// Whether the value is an array, of which any element will do.
    among: bool,
    /// Whether it is all that the condition says.
    whole: bool,
}

/// Bounds on the leading keys of an index.
pub(super) struct Leading<'b, 'e>(Vec<&'b Bound<'e>>);

impl<'b, 'e> Leading<'b, 'e> {
    /// How many keys must equal something.
    pub(super) fn equal(&self) -> usize {
        let equal = self.0.iter().filter(|bound| bound.operator == "=");
        equal.count()
    }

    /// The list of which a key must equal an element.
    fn list(&self) -> Option<&'b Expr> {
        let bound = self.0.iter().find(|bound| bound.among)?;
        Some(&bound.value)
    }

    /// The conditions that say so, by number.
    fn conditions(&self) -> Vec<usize> {
        let mut numbers: Vec<_> = self.0.iter().map(|bound| bound.number).collect();
        numbers.dedup();
        numbers
    }

    /// Those of these conditions of which they say all.
    fn used_up(&self) -> Vec<usize> {
        let whole = self.0.iter().filter(|bound| bound.whole);
        whole.map(|bound| bound.number).collect()
    }

    /// What they say of where to look.
    pub(super) fn access(&self) -> Access {
        let mut access = Access::default();
        for bound in &self.0 {
            let value = compile(&bound.value);
            match bound.operator {
                "=" => {
                    access.among = access.among.or(bound.among.then_some(access.equal.len()));
                    access.equal.push(value);
                }
                ">" | ">=" => access.low = Some(Box::new((value, bound.operator == ">="))),
                _ => access.high = Some(Box::new((value, bound.operator == "<="))),
            }
        }
        access
    }

    /// How well they lead to rows by an index with so many keys.
    fn reach(&self, index: &Index, keys: usize) -> Reach {
        let equal = self.equal();
        match self.list() {
            _ if self.0.is_empty() => Reach::All,
            None if index.unique && equal == keys => Reach::Row,
            Some(list) if index.unique && equal == keys => Reach::Rows(count_of(list)),
            _ if equal == 0 => Reach::Range,
            _ => Reach::Prefix(equal),
        }
    }
}

/// The keys of an index.
enum Keys<'s> {
    Plain(&'s Index),
    Computed(&'s ComputedAccess),
}

impl Keys<'_> {
    fn len(&self) -> usize {
        match self {
            Keys::Plain(index) => index.columns.len(),
            Keys::Computed(access) => access.keys.len(),
        }
    }

    /// Whether a key is this.
    fn is(&self, place: usize, side: Side<'_>) -> bool {
        match (self, side) {
            (Keys::Plain(index), Side::Column(column)) => index.columns[place].column == column,
            (Keys::Plain(_), Side::Expression(_)) => false,
            (Keys::Computed(access), Side::Column(column)) => {
                column_of(&access.keys[place]) == Some(column)
            }
            (Keys::Computed(access), Side::Expression(expr)) => {
                access.keys[place].bare().same(expr.bare())
            }
        }
    }

    fn has_condition(&self) -> bool {
        matches!(self, Keys::Computed(access) if !access.condition.is_empty())
    }
}

impl Scan {
    /// The keys of an index, unless it lacks rows that are wanted.
    fn keys(&self, place: usize) -> Option<Keys<'_>> {
        let index = self.table.indexes.get(place)?;
        // One that is inverted has no keys in an order.
        if index.is_inverted() {
            return None;
        }
        if index.computed.is_none() {
            return Some(Keys::Plain(index));
        }
        let mut computed = self.computed.iter().flat_map(|computed| computed.iter());
        computed
            .find(|access| access.index == place)
            .map(Keys::Computed)
    }

    /// All indexes that have the rows that are wanted, by their places.
    fn all_keys(&self) -> impl Iterator<Item = (usize, &Index, Keys<'_>)> {
        let indexes = self.table.indexes.iter().enumerate();
        indexes.filter_map(|(place, index)| Some((place, index, self.keys(place)?)))
    }

    /// Leaves out the computed indexes that lack rows which meet the conditions.
    fn settle_computed(&mut self, conditions: &[Expr]) {
        let Some(computed) = &self.computed else {
            return;
        };
        let usable: Vec<_> = computed
            .iter()
            .filter(|access| implied(&access.condition, conditions))
            .cloned()
            .collect();
        self.computed = (!usable.is_empty()).then(|| usable.into());
    }
}

/// The conditions by which rows may be looked for: the guards, and what tells of no row.
fn leading(guards: &[Expr], conditions: &[Expr]) -> Vec<Expr> {
    let early = conditions.iter().filter(|condition| !leaks(condition));
    guards.iter().chain(early).cloned().collect()
}

pub(super) const OPERATORS: [(&str, &str); 5] = [
    ("=", "="),
    ("<", ">"),
    ("<=", ">="),
    (">", "<"),
    (">=", "<="),
];

/// How well conditions lead to the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Every row is read.
    All,
    /// A range of an index.
    Range,
    /// The rows that agree in so many leading columns of an index.
    Prefix(usize),
    /// At most so many rows.
    Rows(usize),
    /// At most one row.
    Row,
}

impl Reach {
    /// How many of so many rows are looked at, where nothing is known of the columns.
    pub(super) fn examined(self, all: f64) -> f64 {
        match self {
            Reach::All => all,
            Reach::Range => all * ONE_SIDE,
            Reach::Prefix(columns) => all * EQUAL.powi(columns as i32),
            Reach::Rows(most) => all.min(most as f64),
            Reach::Row => 1.0,
        }
    }
}

/// How the way of a scan that is settled leads to its rows.
pub(super) fn reach_of(scan: &Scan) -> Reach {
    let access = &scan.access;
    let (equal, bounded) = (
        access.equal.len(),
        access.low.is_some() || access.high.is_some(),
    );
    let keys = scan.by_index();
    match equal {
        0 if bounded => Reach::Range,
        0 => Reach::All,
        _ if keys.is_some_and(|index| index.unique && access.is_one_key(index.key_count())) => {
            Reach::Row
        }
        _ => Reach::Prefix(equal),
    }
}

impl Planner<'_> {
    /// The conditions that lead to the table's rows by the best way.
    pub(super) fn leading_conditions(
        &self,
        scan: &Scan,
        guards: &[Expr],
        conditions: &[Expr],
    ) -> Vec<Expr> {
        let all = match guards {
            [] => conditions.to_vec(),
            _ => leading(guards, conditions),
        };
        let mut settled = scan.clone();
        settled.settle_computed(&all);
        let bounds = self.bounds(&settled, &all);
        let Some((_, used)) = self.way(&settled, &bounds, &all) else {
            return Vec::new();
        };
        let numbers = used.conditions().into_iter();
        numbers.map(|number| all[number].clone()).collect()
    }

    /// The index by which the fewest rows are looked at, by its place, and the bounds on its keys: by what
    /// is known of their columns, or by their number. None where the whole table is read for less.
    pub(super) fn way<'b, 'e>(
        &self,
        scan: &Scan,
        bounds: &'b [Bound<'e>],
        conditions: &[Expr],
    ) -> Option<(usize, Leading<'b, 'e>)> {
        let (place, used) = best_way(scan, bounds)?;
        let index = &scan.table.indexes[place];
        if used.reach(index, index.key_count()) == Reach::Row {
            return Some((place, used));
        }
        match self.cheapest_way(scan, bounds, conditions) {
            Cheapest::Unknown => Some((place, used)),
            Cheapest::Whole => None,
            Cheapest::Index(place, used) => Some((place, used)),
        }
    }

    /// What it costs to go by an index to the rows that all of these conditions lead to, which are so
    /// many; none where too little is known.
    pub(super) fn cost_of_way(
        &self,
        scan: &Scan,
        place: usize,
        used: &Leading<'_, '_>,
        conditions: &[Expr],
    ) -> Option<f64> {
        let deciding = Planner {
            chooses: true,
            ..*self
        };
        let columns = deciding.columns(scan);
        let all = deciding.table_rows(scan);
        let index = &scan.table.indexes[place];
        let leading = used.conditions().into_iter();
        let leading: Vec<Expr> = leading.map(|number| conditions[number].clone()).collect();
        let rows = match used.reach(index, index.key_count()) {
            Reach::Row => 1.0,
            Reach::Rows(most) => all.min(most as f64),
            _ if leading.iter().all(|one| is_known(one, &columns)) => {
                all * selectivity(&leading, &columns)
            }
            _ => return None,
        };
        let each = if index.primary { ROW } else { ROW + fetch(all) };
        let places = used.list().map_or(1, count_of) as f64;
        Some(rows.max(1.0) * each + places * descent(all))
    }

    /// What it costs to read a table whole.
    pub(super) fn cost_of_whole(&self, scan: &Scan) -> f64 {
        match self.methods.seq_scan {
            true => DESCENT + self.table_rows(scan) * (ROW + TEST),
            false => f64::INFINITY,
        }
    }

    /// The cheapest way, if the columns that lead along each of them are known.
    fn cheapest_way<'b, 'e>(
        &self,
        scan: &Scan,
        bounds: &'b [Bound<'e>],
        conditions: &[Expr],
    ) -> Cheapest<'b, 'e> {
        let ways = scan.all_keys();
        let ways = ways.map(|(place, index, keys)| (place, index, usable(&keys, bounds), keys));
        let ways: Vec<_> = ways.filter(|(_, _, used, _)| !used.0.is_empty()).collect();
        let is_clear = match &ways[..] {
            // Part of a table is less than all of it.
            [(_, index, used, _)] => index.primary && used.list().is_none(),
            _ => false,
        };
        if self.statistics.is_none() || is_clear {
            return Cheapest::Unknown;
        }
        let (mut cost, mut cheapest) = (self.cost_of_whole(scan), Cheapest::Whole);
        for (place, _, used, _) in ways {
            let Some(by_it) = self.cost_of_way(scan, place, &used, conditions) else {
                return Cheapest::Unknown;
            };
            if by_it < cost {
                (cost, cheapest) = (by_it, Cheapest::Index(place, used));
            }
        }
        cheapest
    }

    /// What conditions say of keys, unless nothing is to be found by them.
    pub(super) fn bounds<'e>(&self, scan: &Scan, conditions: &'e [Expr]) -> Vec<Bound<'e>> {
        match self.methods.by_index() {
            true => bounds(scan, conditions),
            false => Vec::new(),
        }
    }

    /// Whether the best way to the rows that meet these conditions is the primary key, by which they
    /// are neighbours.
    pub(super) fn is_by_key(&self, scan: &Scan, guards: &[Expr], conditions: &[Expr]) -> bool {
        let all = leading(guards, conditions);
        let mut settled = scan.clone();
        settled.settle_computed(&all);
        let bounds = self.bounds(&settled, &all);
        let way = self.way(&settled, &bounds, &all);
        way.is_some_and(|(place, _)| settled.table.indexes[place].primary)
    }

    /// How well these conditions lead to the table's rows.
    pub(super) fn reach_by(&self, scan: &Scan, guards: &[Expr], conditions: &[Expr]) -> Reach {
        let all;
        let conditions = match guards {
            [] => conditions,
            _ => {
                all = leading(guards, conditions);
                &all
            }
        };
        let mut settled;
        let scan = match scan.computed {
            None => scan,
            Some(_) => {
                settled = scan.clone();
                settled.settle_computed(conditions);
                &settled
            }
        };
        let bounds = self.bounds(scan, conditions);
        match self.way(scan, &bounds, conditions) {
            Some((place, used)) => {
                let index = &scan.table.indexes[place];
                used.reach(index, index.key_count())
            }
            None => Reach::All,
        }
    }

    /// What it costs to go by several indexes, where that is less than reading the table whole.
    pub(super) fn cost_of_alternatives(
        &self,
        scan: &Scan,
        guards: &[Expr],
        conditions: &[Expr],
    ) -> Option<f64> {
        let is_or = |condition: &Expr| matches!(condition.kind, ExprKind::Or(_));
        if !guards.iter().chain(conditions).any(is_or) {
            return None;
        }
        let all = leading(guards, conditions);
        let mut settled = scan.clone();
        settled.settle_computed(&all);
        let (ways, cost) = self.alternatives(&settled, &all);
        (!ways.is_empty()).then_some(cost)
    }

    /// The scan with the best way to the rows that meet the conditions, of which the guards are
    /// tested before any other that could tell of a row.
    pub(super) fn choose_access(
        &self,
        mut scan: Scan,
        guards: Vec<Expr>,
        conditions: Vec<Expr>,
    ) -> Result<Scan> {
        let guarding = guards.len();
        let (early, late) = match guarding {
            0 => (conditions, Vec::new()),
            _ => conditions
                .into_iter()
                .partition(|condition| !leaks(condition)),
        };
        let conditions: Vec<_> = guards.into_iter().chain(early).collect();
        scan.settle_computed(&conditions);
        let bounds = match scan.current_of {
            // Its key is known.
            Some(_) => Vec::new(),
            None => self.bounds(&scan, &conditions),
        };
        let mut best = self.way(&scan, &bounds, &conditions);
        let is_equal = |way: &(usize, Leading<'_, '_>)| way.1.equal() > 0;
        if self.methods.by_index() && !best.as_ref().is_some_and(is_equal) {
            scan.inverted = inverted::access_of(&scan, &conditions).map(Rc::new);
        }
        if scan.inverted.is_some() {
            best = None;
        }
        let mut used_up = Vec::new();
        if let Some((place, used)) = best {
            let primary = scan.table.indexes[place].primary;
            used_up = used.used_up();
            scan.index = (!primary).then_some(place);
            scan.access = used.access();
        } else if scan.inverted.is_none() && scan.current_of.is_none() {
            scan.alternatives = self.alternatives(&scan, &conditions).0;
            let slower = slower_ways(&scan, &bounds, |used_up| {
                rest(&conditions, guarding, used_up, late.clone())
            });
            scan.slower = (!slower.is_empty()).then(|| slower.into());
        }
        scan.filter = rest(&conditions, guarding, &used_up, late);
        Ok(scan)
    }
}

/// What rows must meet besides the conditions that a way says all of, by their numbers; the first ones
/// are guards, and `late` is tested last.
fn rest(conditions: &[Expr], guards: usize, used_up: &[usize], late: Vec<Expr>) -> Option<Program> {
    let conditions = conditions.iter().cloned().enumerate();
    let rest = conditions
        .filter(|(number, _)| !used_up.contains(number))
        .map(|(number, condition)| match number < guards {
            true => surely(condition),
            false => condition,
        })
        .chain(late)
        .collect();
    all_of(rest).as_ref().map(compile)
}

/// The ways by secondary indexes that are not gone, with what rows must meet besides.
fn slower_ways(
    scan: &Scan,
    bounds: &[Bound<'_>],
    rest: impl Fn(&[usize]) -> Option<Program>,
) -> Vec<SlowerWay> {
    let others = scan.all_keys().filter(|(_, index, _)| !index.primary);
    let ways = others.map(|(place, _, keys)| (place, usable(&keys, bounds)));
    let ways = ways.filter(|(_, used)| !used.0.is_empty());
    let ways = ways.map(|(place, used)| {
        let way = Way {
            index: Some(place),
            access: used.access(),
        };
        SlowerWay {
            way,
            filter: rest(&used.used_up()),
        }
    });
    ways.collect()
}

/// Takes a slower way, if one has an order.
fn take_slower(scan: &mut Scan, order: &[(Expr, bool, bool)]) -> bool {
    let Some(slower) = scan.slower.take() else {
        return false;
    };
    for SlowerWay { way, filter } in slower.iter() {
        let before = std::mem::replace(&mut scan.access, way.access.clone());
        let keys = way.index.and_then(|place| scan.keys(place));
        if let Some(backward) = keys.and_then(|keys| order_of(scan, &keys, order)) {
            scan.index = way.index;
            scan.filter.clone_from(filter);
            scan.backward = backward;
            return true;
        }
        scan.access = before;
    }
    false
}

/// The cheapest way to rows.
enum Cheapest<'b, 'e> {
    /// Too little is known.
    Unknown,
    /// Reading the table.
    Whole,
    /// An index, by its place, and the bounds on its keys.
    Index(usize, Leading<'b, 'e>),
}

/// The index that leads to the fewest rows, by its place, and the bounds on its keys.
fn best_way<'b, 'e>(scan: &Scan, bounds: &'b [Bound<'e>]) -> Option<(usize, Leading<'b, 'e>)> {
    scan.all_keys()
        .map(|(place, index, keys)| (place, index, usable(&keys, bounds), keys))
        .filter(|(_, _, used, _)| !used.0.is_empty())
        .max_by_key(|(_, index, used, keys)| {
            let whole = used.reach(index, keys.len()) == Reach::Row;
            // An element of a list is less than one value, and more than a range; an index with a
            // condition is the smaller one.
            (
                whole,
                2 * used.equal() - usize::from(used.list().is_some()),
                used.0.len(),
                keys.has_condition(),
                index.primary,
            )
        })
        .map(|(place, _, used, _)| (place, used))
}

/// Lets a scan give its rows in an order (value, descending, NULLs first), if an index can.
///
/// The index that the conditions have chosen stays. Where they have chosen none, another one is
/// taken for the order's sake only if `few` rows are wanted: each of its entries costs a look at the
/// row.
pub(crate) fn scan_in_order(scan: &mut Scan, order: &[(Expr, bool, bool)], few: bool) -> bool {
    if scan.inverted.is_some() || !scan.alternatives.is_empty() {
        return false;
    }
    let bounded =
        !scan.access.equal.is_empty() || scan.access.low.is_some() || scan.access.high.is_some();
    let own = match scan.index {
        Some(place) => scan.keys(place),
        None => scan.table.primary_key().map(Keys::Plain),
    };
    if let Some(backward) = own.and_then(|keys| order_of(scan, &keys, order)) {
        scan.backward = backward;
        return true;
    }
    if few && take_slower(scan, order) {
        return true;
    }
    if bounded || !few {
        return false;
    }
    let mut indexes: Vec<_> = scan
        .all_keys()
        .filter(|(_, index, _)| !index.primary)
        .collect();
    // One with a condition has fewer entries.
    indexes.sort_by_key(|(_, _, keys)| !keys.has_condition());
    let found = indexes.iter().find_map(|(place, _, keys)| {
        order_of(scan, keys, order).map(|backward| (*place, backward))
    });
    if let Some((place, backward)) = found {
        scan.index = Some(place);
        scan.backward = backward;
    }
    found.is_some()
}

/// Whether an index has its rows in an order; true: read backwards.
fn order_of(scan: &Scan, keys: &Keys<'_>, order: &[(Expr, bool, bool)]) -> Option<bool> {
    let bounded = scan.access.equal.len();
    let mut next = 0;
    let mut direction = None;
    for (value, descending, nulls_first) in order {
        let side = match column_of(value) {
            Some(place) => Side::Column(place),
            None => Side::Expression(value),
        };
        // A key that equals one value takes no part in the order.
        if (0..bounded).any(|place| scan.access.is_fixed(place) && keys.is(place, side)) {
            continue;
        }
        let place = loop {
            let at = next;
            if at == keys.len() {
                return None;
            }
            next += 1;
            if keys.is(at, side) {
                break at;
            }
            if !scan.access.is_fixed(at) {
                return None;
            }
        };
        let (kept, not_null) = match keys {
            Keys::Plain(index) => {
                let column = index.columns[place];
                let not_null = scan.table.columns.get(column.column)?.not_null;
                (column.order, not_null)
            }
            Keys::Computed(access) => {
                let index = &scan.table.indexes[access.index];
                let order = index.key_order(&scan.table, place)?;
                let column = index.key_column(place);
                let column = column.and_then(|column| scan.table.columns.get(column));
                (order.order, column.is_some_and(|column| column.not_null))
            }
        };
        let backward = kept.descending != *descending;
        // Read backwards, NULLs come where they are not kept.
        if !not_null && *nulls_first != (kept.nulls_first != backward) {
            return None;
        }
        if *direction.get_or_insert(backward) != backward {
            return None;
        }
    }
    direction.or(Some(false))
}

/// The bounds on leading keys of an index, in their order.
fn usable<'b, 'e>(keys: &Keys<'_>, bounds: &'b [Bound<'e>]) -> Leading<'b, 'e> {
    let mut used: Vec<&Bound<'_>> = Vec::new();
    for place in 0..keys.len() {
        let own: Vec<_> = bounds
            .iter()
            .filter(|bound| keys.is(place, bound.side))
            .collect();
        let has_list = used.iter().any(|bound| bound.among);
        let mut equal = own.iter().filter(|bound| bound.operator == "=");
        let one = equal.clone().find(|bound| !bound.among);
        if let Some(equal) = one.or(equal.next().filter(|_| !has_list)) {
            used.push(*equal);
            continue;
        }
        used.extend(own.iter().find(|bound| bound.operator.starts_with('>')));
        used.extend(own.iter().find(|bound| bound.operator.starts_with('<')));
        break;
    }
    Leading(used)
}

fn bounds<'e>(scan: &Scan, conditions: &'e [Expr]) -> Vec<Bound<'e>> {
    let conditions = conditions.iter().enumerate();
    conditions
        .flat_map(|(number, condition)| match &condition.kind {
            ExprKind::AnyArray(..) => list_bound(scan, number, condition).into_iter().collect(),
            ExprKind::Or(parts) => alternatives(scan, number, parts).into_iter().collect(),
            _ => match bound(scan, number, condition) {
                Some(bound) => vec![bound],
                None => prefix_bounds(scan, number, condition),
            },
        })
        .collect()
}

/// What `column LIKE 'abc%'` says of the order of the column's values.
fn prefix_bounds<'e>(scan: &Scan, number: usize, condition: &'e Expr) -> Vec<Bound<'e>> {
    let Some((subject, pattern, bounds)) = prefix::bounds_of(condition) else {
        return Vec::new();
    };
    let side = match column_of(subject) {
        Some(column) => Side::Column(column),
        None if scan.computed.is_some() && !is_fixed(subject) => {
            fix_constants(subject);
            Side::Expression(subject)
        }
        None => return Vec::new(),
    };
    // Another pattern has other bounds.
    fix_constants(pattern);
    let bounds = bounds.into_iter();
    let bound = |(operator, value)| Bound {
        number,
        side,
        operator,
        value: Cow::Owned(value),
        among: false,
        whole: false,
    };
    bounds.map(bound).collect()
}

fn bound<'e>(scan: &Scan, number: usize, condition: &'e Expr) -> Option<Bound<'e>> {
    let ExprKind::Call(function, args, _) = &condition.kind else {
        return None;
    };
    let [left, right] = args.as_slice() else {
        return None;
    };
    let (side, value, swapped) = match (column_of(left), column_of(right)) {
        (Some(column), None) => (Side::Column(column), right, false),
        (None, Some(column)) => (Side::Column(column), left, true),
        (None, None) if scan.computed.is_some() => match (is_fixed(left), is_fixed(right)) {
            (false, true) => (Side::Expression(left), right, false),
            (true, false) => (Side::Expression(right), left, true),
            _ => return None,
        },
        _ => return None,
    };
    let ty = match side {
        Side::Column(column) => scan.table.columns.get(column)?.type_id,
        Side::Expression(expr) => expr.bare().ty,
    };
    if !is_fixed(value) || !comparable(ty, value.ty) {
        return None;
    }
    let (name, swapped_name) = OPERATORS.into_iter().find(|(name, _)| {
        resolve_operator(name, left.ty, right.ty)
            .is_ok_and(|found| found.operator.function.oid == function.0.oid)
    })?;
    if let Side::Expression(expr) = side {
        // `a + 2` must not be planned once and for all as what `a + 1` has an index for.
        fix_constants(expr);
    }
    Some(Bound {
        number,
        side,
        operator: if swapped { swapped_name } else { name },
        value: Cow::Borrowed(value),
        among: false,
        whole: true,
    })
}

/// What `column = ANY (list)` says.
fn list_bound<'e>(scan: &Scan, number: usize, condition: &'e Expr) -> Option<Bound<'e>> {
    let ExprKind::AnyArray(subject, list, function, types, false) = &condition.kind else {
        return None;
    };
    let [left, element] = types[..] else {
        return None;
    };
    if count_of(list) > LIST_LENGTH_MAX {
        return None;
    }
    let (side, ty) = match column_of(subject) {
        Some(column) => (
            Side::Column(column),
            scan.table.columns.get(column)?.type_id,
        ),
        None if scan.computed.is_some() && !is_fixed(subject) => {
            (Side::Expression(subject), subject.bare().ty)
        }
        None => return None,
    };
    let equality = resolve_operator("=", left, element).ok()?;
    let is_equality = equality.operator.function.oid == function.0.oid;
    if !is_equality || !is_fixed(list) || !comparable(ty, element) {
        return None;
    }
    if let Side::Expression(expr) = side {
        fix_constants(expr);
    }
    Some(Bound {
        number,
        side,
        operator: "=",
        value: Cow::Borrowed(&**list),
        among: true,
        whole: true,
    })
}

/// What `column = a OR column = b OR …` says.
fn alternatives<'e>(scan: &Scan, number: usize, parts: &'e [Expr]) -> Option<Bound<'e>> {
    if parts.len() > PARTS_MAX {
        return None;
    }
    let mut all = parts.iter().map(|part| bound(scan, number, part));
    let first = all.next()??;
    let side = first.side;
    let ty = first.value.ty;
    let array = ty.array_of()?;
    let mut values = vec![first.value.into_owned()];
    for next in all {
        let next = next?;
        let is_same = match (next.side, side) {
            (Side::Column(own), Side::Column(other)) => own == other,
            (Side::Expression(own), Side::Expression(other)) => own.bare().same(other.bare()),
            _ => false,
        };
        if !is_same || next.operator != "=" || next.value.ty != ty {
            return None;
        }
        values.push(next.value.into_owned());
    }
    (first.operator == "=").then(|| Bound {
        number,
        side,
        operator: "=",
        value: Cow::Owned(Expr::new(ExprKind::Array(values, ty), array, -1)),
        among: true,
        whole: true,
    })
}

pub(super) fn column_of(expr: &Expr) -> Option<usize> {
    match expr.bare().kind {
        ExprKind::Column(place) => Some(place),
        _ => None,
    }
}

/// Whether its value is the same for every row of the scan.
pub(super) fn is_fixed(expr: &Expr) -> bool {
    !super::differs(expr)
}

/// Whether values of the second type can be bounds on a key of the first.
fn comparable(column: TypeId, value: TypeId) -> bool {
    let integer = |ty| matches!(ty, TypeId::INT2 | TypeId::INT4 | TypeId::INT8);
    let text = |ty| matches!(ty, TypeId::TEXT | TypeId::VARCHAR);
    column == value || (integer(column) && integer(value)) || (text(column) && text(value))
}
