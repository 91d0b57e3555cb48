//! In which order items are joined.
//!
//! Inner joins, and the outer and semi-joins on top of them, are a *join list* of elements. What an outer
//! or semi-join adds may come at any time once the elements that its condition names are there: it
//! neither needs the others nor changes what they find. So
//!
//! ```sql
//! select … from a left join b on b.i = a.i, c where a.j = c.j and c.k = 1
//! ```
//!
//! begins with `c`, looks up `a`, and then `b`. Up to [`EXACT_MAX`] elements all orders are compared
//! in which each join has at least one side that is an element (Selinger et al., *Access Path
//! Selection in a Relational Database Management System*, 1979, over zig-zag trees); beyond that the
//! next element is always the one that leaves the fewest rows, for the least cost.

use std::sync::Arc;

use base::hash::HashMap;
use base::{coro, Error, Result, SqlState};
use catalog::Table;

use super::apart::{apart, stands_apart};
use super::conditions::{self, Columns, Unknown};
use super::equivalence::{carried, completed};
use super::estimate::{sides, system_rows, DISTINCT_UNKNOWN, ROW};
use super::factor::{factored, implied_of};
use super::fold::{emptied, folded, no_rows, Folded};
use super::join::{Found, Looked, Pair};
use super::selectivity::Facts;
use super::{Layout, Path, Planner};
use crate::logical::{columns_of, Source, SourceKind};
use crate::plan::{Expr, ExprKind, JoinKind, Plan, Scan};

/// All orders are compared for as many elements.
const EXACT_MAX: usize = 10;

/// A join list may have as many.
const ELEMENTS_MAX: usize = 512;

/// What turning a left join must save: it gives left rows without a pair last, and all others in the
/// order of the right ones. So must turning the join with a system relation, of whose size little is
/// known: who reads the catalog without ORDER BY expects, say, columns in the order of their table.
const TURNED_MIN: f64 = 10.0;

/// What comparing two ways to join counts for, in the units of [`coro::work`].
const STEP_WORK: usize = 200;

/// Some elements of a join list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Set([u64; ELEMENTS_MAX / 64]);

impl Set {
    fn one(element: usize) -> Set {
        let mut set = Set::default();
        set.0[element / 64] |= 1 << (element % 64);
        set
    }

    fn with(self, other: Set) -> Set {
        let mut set = self;
        set.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
        set
    }

    fn common(self, other: Set) -> Set {
        let mut set = self;
        set.0.iter_mut().zip(other.0).for_each(|(a, b)| *a &= b);
        set
    }

    fn is_empty(self) -> bool {
        self == Set::default()
    }

    fn has_all(self, other: Set) -> bool {
        self.common(other) == other
    }

    fn has(self, element: usize) -> bool {
        self.0[element / 64] >> (element % 64) & 1 == 1
    }
}

/// What is to be joined, and how it joins what is there.
struct Item {
    kind: JoinKind,
    source: Source,
    /// The condition of an outer or semi-join.
    on: Vec<Expr>,
}

/// Takes joins apart: their items, and the conditions over all of them.
fn take_apart(source: Source, items: &mut Vec<Item>, conditions: &mut Vec<Expr>) {
    let (start, width) = (source.start, source.width);
    let of = |kind, source, on| Item { kind, source, on };
    match source.kind {
        SourceKind::Join {
            kind: JoinKind::Inner,
            left,
            right,
            on,
            lateral: false,
        } => {
            take_apart(*left, items, conditions);
            take_apart(*right, items, conditions);
            conditions.extend(on);
        }
        SourceKind::Join {
            kind: JoinKind::Right,
            left,
            right,
            on,
            lateral: false,
        } => {
            take_apart(*right, items, conditions);
            items.push(of(JoinKind::Left, *left, on));
        }
        SourceKind::Join {
            kind,
            left,
            right,
            on,
            lateral: false,
        } if kind != JoinKind::Full => {
            take_apart(*left, items, conditions);
            items.push(of(kind, *right, on));
        }
        SourceKind::Join {
            kind: JoinKind::Inner,
            left,
            right,
            on,
            lateral: true,
        } if stands_apart(&left, &right) => {
            let (beside, others) = apart(*left, *right, conditions);
            items.push(of(JoinKind::Inner, beside, Vec::new()));
            for other in others {
                take_apart(other, items, conditions);
            }
            conditions.extend(on);
        }
        kind => {
            let source = Source { kind, start, width };
            items.push(of(JoinKind::Inner, source, Vec::new()));
        }
    }
}

/// Folds the conditions of outer and semi-joins: what is never met, if that leaves no rows at all.
fn fold_items(items: &mut Vec<Item>) -> Option<Expr> {
    let mut none = None;
    items.retain_mut(|item| {
        match folded(std::mem::take(&mut item.on)) {
            Folded::To(on) => item.on = on,
            Folded::Never(condition) => match item.kind {
                JoinKind::Semi => none = Some(condition),
                JoinKind::Anti => return false,
                _ => item.source = emptied(&item.source, &condition),
            },
        }
        true
    });
    none
}

/// The conditions of a join that stays where it is, and those above it; else what is never met by any of
/// its rows.
fn folded_of_join(
    kind: JoinKind,
    on: Vec<Expr>,
    above: Vec<Expr>,
) -> std::result::Result<(Vec<Expr>, Vec<Expr>), Expr> {
    match (kind, folded(on), folded(above)) {
        (_, _, Folded::Never(never)) | (JoinKind::Inner, Folded::Never(never), _) => Err(never),
        (_, Folded::Never(never), Folded::To(above)) => Ok((vec![never], above)),
        (_, Folded::To(on), Folded::To(above)) => Ok((on, above)),
    }
}

/// Where the left input of a lateral join began when its right one was bound, which calls the left row's
/// columns by their places then.
fn left_as_bound(left: &Source, right: &Source) -> usize {
    match &right.kind {
        SourceKind::Other { moved, .. } if left.width > 0 => {
            left.start.saturating_add_signed(-moved)
        }
        _ => left.start,
    }
}

/// The places of the columns that joined items have.
fn places_of(items: &[Item]) -> Vec<usize> {
    let stays = |item: &&Item| !matches!(item.kind, JoinKind::Semi | JoinKind::Anti);
    let ranges = items.iter().filter(stays).map(|item| item.source.ranges());
    ranges.flatten().flatten().collect()
}

/// An item whose own conditions are settled.
struct Element {
    kind: JoinKind,
    path: Option<Path>,
    rows: f64,
    cost: f64,
    /// As what lookups see it.
    looked: Option<Looked>,
    /// The elements that its condition names.
    needs: Set,
    /// For one side of its joins: the rows of its table, its columns that are a key by themselves, and
    /// those that are one together.
    table_rows: f64,
    /// What turning the join with it must save.
    turned_min: f64,
    keys: Vec<usize>,
    composite_keys: Vec<Vec<usize>>,
    /// Its table, and the place in FROM at which its columns begin.
    table: Option<(Arc<Table>, usize)>,
}

/// A condition over several elements.
struct Condition {
    expr: Expr,
    elements: Set,
    /// The elements of both sides, if it is an equality of values of one type.
    sides: Option<(Set, Set)>,
    /// The outer or semi-join that it belongs to; none: WHERE.
    of: Option<usize>,
    /// How often it holds.
    selectivity: f64,
    /// The class of equal columns that it is of; a join tests one of each.
    class: Option<usize>,
    /// Of an equality, the columns that it is about, and those of its class.
    equal: Vec<usize>,
    /// Whether it holds anyway, by what each of its columns equals.
    settled: bool,
    /// What it says of single elements, which is tested there.
    implied: Vec<Expr>,
}

/// The cheapest way found to join some elements.
#[derive(Clone, Copy)]
struct Best {
    rows: f64,
    cost: f64,
    last: Last,
}

#[derive(Clone, Copy)]
enum Last {
    Alone,
    /// The element that was joined last, and whether it is the left input.
    Joined(usize, bool),
}

/// A join list whose order is looked for.
struct JoinList<'p> {
    planner: &'p Planner<'p>,
    elements: Vec<Element>,
    conditions: Vec<Condition>,
    /// What lookups in an element find, by what is known by then.
    found: HashMap<(usize, Set), Option<Found>>,
}

impl Planner<'_> {
    /// A path to the rows of joins, in a good order.
    pub(super) fn join_in_order(&self, source: Source, conditions: Vec<Expr>) -> Result<Path> {
        coro::check_depth()?;
        let (mut items, mut all) = (Vec::new(), conditions);
        take_apart(source, &mut items, &mut all);
        let all = match folded(factored(all)) {
            Folded::To(all) => all,
            Folded::Never(condition) => return Ok(no_rows(&condition, places_of(&items))),
        };
        if let Some(condition) = fold_items(&mut items) {
            return Ok(no_rows(&condition, places_of(&items)));
        }
        if items.len() > ELEMENTS_MAX {
            let message = format!("a join of more than {ELEMENTS_MAX} tables");
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let (mut list, rest) = JoinList::of(self, items, all)?;
        let order = match list.elements.len() {
            count if count <= EXACT_MAX => list.compare_all()?,
            _ => list.one_by_one()?,
        };
        list.build(&order)?.once(rest)
    }

    /// A path to the rows of a join that stays where it is.
    pub(super) fn join_as_written(
        &self,
        kind: JoinKind,
        left: Source,
        right: Source,
        on: Vec<Expr>,
        lateral: bool,
        conditions: Vec<Expr>,
    ) -> Result<Path> {
        let (of_left, of_right) = (
            Layout::of(left.start, left.width),
            Layout::of(right.start, right.width),
        );
        let (on, conditions) = match folded_of_join(kind, on, conditions) {
            Ok(conditions) => conditions,
            Err(never) => return Ok(no_rows(&never, of_left.followed_by(&of_right).places)),
        };
        // A lateral input sees the left row as one more enclosing query: what looks outside on its
        // own account stays out of it.
        let in_right =
            |expr: &Expr| of_right.holds(expr) && !(lateral && crate::logical::looks_outside(expr));
        let (keeps_left, keeps_right) = match kind {
            JoinKind::Inner => (false, false),
            JoinKind::Full => (true, true),
            _ => (true, false),
        };
        let (mut to_left, mut to_right) = (Vec::new(), Vec::new());
        let (mut here, mut above) = (Vec::new(), Vec::new());
        for condition in on {
            // A condition of ON may be tested early only on the side that is not kept whole.
            if of_left.holds(&condition) && !keeps_left {
                to_left.push(condition);
            } else if in_right(&condition) && !keeps_right {
                to_right.push(condition);
            } else {
                here.push(condition);
            }
        }
        for condition in conditions {
            if of_left.holds(&condition) && !keeps_right {
                to_left.push(condition);
            } else if in_right(&condition) && !keeps_left {
                to_right.push(condition);
            } else if kind == JoinKind::Inner {
                here.push(condition);
            } else {
                above.push(condition);
            }
        }
        let lateral = lateral.then(|| left_as_bound(&left, &right));
        let (start, width) = (left.start, left.width);
        let (right_start, right_width) = (right.start, right.width);
        let left = self.path(left, to_left)?;
        let right = self.path(right, to_right)?;
        let rows = left
            .rows
            .max(right.rows)
            .max(left.rows * right.rows * conditions::selectivity(&here, &Unknown));
        // A lateral input names the columns of the left row by their places.
        let settled = |path: Path, start, width| {
            let (rows, cost) = (path.rows, path.cost);
            let plan = path.in_places(start, width)?;
            let layout = Layout::new((start..start + width).collect());
            Ok::<_, Error>(Path {
                plan,
                layout,
                rows,
                cost,
            })
        };
        let pair = Pair {
            kind,
            left: settled(left, start, width)?,
            right: settled(right, right_start, right_width)?,
            looked: None,
            on: here,
            lateral,
            rows,
        };
        self.join(pair)?.filtered(&above)
    }
}

impl Columns for JoinList<'_> {
    fn facts(&self, place: usize) -> Option<Facts> {
        let mut tables = self
            .elements
            .iter()
            .filter_map(|element| element.table.as_ref());
        let (table, start) =
            tables.find(|(table, start)| (*start..start + table.columns.len()).contains(&place))?;
        self.planner.facts(table, place - start)
    }
}

impl<'p> JoinList<'p> {
    /// A join list, and the conditions that name none of its columns.
    fn of(
        planner: &'p Planner<'p>,
        items: Vec<Item>,
        all: Vec<Expr>,
    ) -> Result<(JoinList<'p>, Vec<Expr>)> {
        let spans: Vec<_> = items.iter().map(|item| item.source.ranges()).collect();
        let covers = |element: usize, place: usize| {
            let mut ranges = spans[element].iter();
            ranges.any(|range| range.contains(&place))
        };
        let named = |expr: &Expr| {
            columns_of(expr)
                .into_iter()
                .fold(Set::default(), |set, place| {
                    let element = (0..spans.len()).find(|element| covers(*element, place));
                    element.map_or(set, |element| set.with(Set::one(element)))
                })
        };
        let is_whole = |place: usize| {
            let mut inner = (0..items.len()).filter(|one| items[*one].kind == JoinKind::Inner);
            inner.any(|element| covers(element, place))
        };
        let all = completed(all, &is_whole);
        let mut conditions = Vec::new();
        let mut rest = Vec::new();
        let mut own: Vec<Vec<Expr>> = items.iter().map(|_| Vec::new()).collect();
        let shared = |expr: Expr, of| Condition {
            elements: named(&expr),
            sides: sides(&expr)
                .filter(|(a, b)| a.ty == b.ty)
                .map(|(a, b)| (named(a), named(b))),
            selectivity: 1.0,
            class: None,
            equal: sides_of_columns(&expr),
            settled: false,
            implied: Vec::new(),
            expr,
            of,
        };
        let mut of_items: Vec<Vec<Expr>> = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let carried = item.on.iter().filter_map(|on| {
                let own = |column| covers(place, column);
                carried(on, &own, &all)
            });
            of_items.push(carried.collect());
        }
        for classed in all {
            let condition = classed.expr;
            let elements = named(&condition);
            let only = (0..items.len()).find(|one| Set::one(*one) == elements);
            match only {
                Some(only) if items[only].kind == JoinKind::Inner => own[only].push(condition),
                _ if elements.is_empty() => rest.push(condition),
                _ => {
                    let mut of_one = Vec::new();
                    for (place, item) in items.iter().enumerate() {
                        if item.kind == JoinKind::Inner && elements.has(place) {
                            let of_item = |part: &Expr| named(part) == Set::one(place);
                            let implied = implied_of(&condition, &of_item).filter(is_cheap);
                            own[place].extend(implied.clone());
                            of_one.extend(implied);
                        }
                    }
                    conditions.push(Condition {
                        class: classed.class,
                        settled: classed.settled,
                        implied: of_one,
                        ..shared(condition, None)
                    });
                }
            }
        }
        let mut elements = Vec::new();
        for (place, item) in items.into_iter().enumerate() {
            let Source { start, .. } = item.source;
            own[place].append(&mut of_items[place]);
            let mut needs = Set::default();
            for condition in item.on {
                let columns = columns_of(&condition);
                if !columns.is_empty() && columns.iter().all(|one| covers(place, *one)) {
                    own[place].push(condition);
                    continue;
                }
                let condition = shared(condition, Some(place));
                needs = needs.with(condition.elements);
                conditions.push(condition);
            }
            needs.0[place / 64] &= !(1 << (place % 64));
            let own = std::mem::take(&mut own[place]);
            let looked = Looked::of(&item.source, &own);
            let scan = match &item.source.kind {
                SourceKind::Scan { scan, .. } if scan.partitions.is_none() => Some(scan),
                _ => None,
            };
            let system = match &item.source.kind {
                SourceKind::Other { plan, .. } => match &**plan {
                    Plan::System(table, ..) => Some(table.clone()),
                    _ => None,
                },
                _ => None,
            };
            let of_system = system.as_ref().map(|table| system_rows(table));
            let table_rows = scan.map(|scan| planner.table_rows(scan)).or(of_system);
            let keys = match (scan, &system) {
                (Some(scan), _) => keys_of(scan, start),
                (None, Some(table)) => oid_key(table, start),
                (None, None) => Vec::new(),
            };
            let (composite_keys, single): (Vec<_>, Vec<_>) =
                keys.into_iter().partition(|key| key.len() > 1);
            let table = scan.map(|scan| (scan.table.clone(), start));
            let path = planner.path(item.source, own)?;
            elements.push(Element {
                kind: item.kind,
                rows: path.rows,
                cost: path.cost,
                table_rows: table_rows.unwrap_or(path.rows),
                turned_min: system.map_or(0.0, |_| TURNED_MIN),
                path: Some(path),
                looked,
                needs,
                keys: single.concat(),
                composite_keys,
                table,
            });
        }
        let mut list = JoinList {
            planner,
            elements,
            conditions,
            found: HashMap::default(),
        };
        let classed: Vec<_> = (list.conditions.iter())
            .map(|one| (one.class, one.equal.clone()))
            .collect();
        for place in 0..list.conditions.len() {
            let condition = &mut list.conditions[place];
            let class = condition.class;
            let alike = classed
                .iter()
                .filter(|one| class.is_some() && one.0 == class);
            condition.equal.extend(alike.flat_map(|one| &one.1));
            let condition = &list.conditions[place];
            // What is tested early leaves fewer rows already.
            let early = conditions::selectivity(&condition.implied, &list);
            let holds = match condition.settled {
                true => 1.0,
                false => (list.selectivity(condition) / early.max(f64::MIN_POSITIVE)).min(1.0),
            };
            list.conditions[place].selectivity = holds;
        }
        Ok((list, rest))
    }

    /// How often a condition over several elements holds for what they have together.
    ///
    /// Of an equality with a key it is assumed that the other side has the key's values, as a foreign
    /// key does.
    fn selectivity(&self, condition: &Condition) -> f64 {
        let Some((a, b)) = sides(&condition.expr).filter(|_| condition.sides.is_some()) else {
            return conditions::selectivity(std::slice::from_ref(&condition.expr), self);
        };
        let of = |expr: &Expr| match expr.bare().kind {
            ExprKind::Column(place) => self.facts(place),
            _ => None,
        };
        let (key_a, key_b) = (self.key_rows(a), self.key_rows(b));
        if let Some(known) = conditions::join((of(a), key_a), (of(b), key_b)) {
            return known;
        }
        let known = key_a.into_iter().chain(key_b);
        1.0 / known.reduce(f64::max).unwrap_or(DISTINCT_UNKNOWN).max(1.0)
    }

    /// How many values an expression has, if it is a key by itself.
    fn key_rows(&self, expr: &Expr) -> Option<f64> {
        let ExprKind::Column(place) = expr.bare().kind else {
            return None;
        };
        let mut elements = self.elements.iter();
        let element = elements.find(|element| element.keys.contains(&place))?;
        Some(element.table_rows)
    }

    /// Whether an element may join these.
    fn may_follow(&self, known: Set, next: usize) -> bool {
        let element = &self.elements[next];
        match element.kind {
            JoinKind::Inner => true,
            _ => known.has_all(element.needs),
        }
    }

    /// The conditions of the join of an element: those that it completes.
    fn completed(&self, known: Set, next: usize) -> impl Iterator<Item = &Condition> {
        let all = known.with(Set::one(next));
        let inner = self.elements[next].kind == JoinKind::Inner;
        let mut classes = Vec::new();
        self.conditions
            .iter()
            .filter(move |condition| match condition.of {
                Some(of) => of == next,
                None => inner && condition.elements.has(next) && all.has_all(condition.elements),
            })
            // All that is joined of a class is equal already.
            .filter(move |condition| match condition.class {
                Some(class) if classes.contains(&class) => false,
                Some(class) => {
                    classes.push(class);
                    true
                }
                None => true,
            })
    }

    /// How often conditions hold together that an element's join completes.
    ///
    /// Columns that are a key together are not independent: where all of them equal something, it is
    /// assumed, as of a key of one column, that there is a row with these values.
    fn fraction(&self, joined: Set, completed: &[&Condition]) -> f64 {
        let mut fraction: f64 = completed.iter().map(|one| one.selectivity).product();
        if completed.len() < 2 {
            return fraction;
        }
        let mut rest = completed.to_vec();
        for (place, element) in self.elements.iter().enumerate() {
            if !joined.has(place) {
                continue;
            }
            for key in &element.composite_keys {
                let Some(covering) = JoinList::covering(key, &rest) else {
                    continue;
                };
                let independent: f64 = covering.iter().map(|at| rest[*at].selectivity).product();
                let together = 1.0 / element.table_rows.max(1.0);
                if independent > 0.0 && independent < together {
                    fraction *= together / independent;
                    let mut at = 0..;
                    rest.retain(|_| at.next().is_some_and(|at| !covering.contains(&at)));
                }
            }
        }
        fraction
    }

    /// The places of the equalities that say of each column of a key what it equals; none where one
    /// has none.
    fn covering(key: &[usize], equalities: &[&Condition]) -> Option<Vec<usize>> {
        let mut places = Vec::new();
        for column in key {
            let mut found = equalities.iter();
            places.push(found.position(|one| one.equal.contains(column))?);
        }
        places.sort_unstable();
        places.dedup();
        (places.len() == key.len()).then_some(places)
    }

    /// How many rows come of these and one more.
    fn rows(&self, known: Set, rows: f64, next: usize) -> f64 {
        let element = &self.elements[next];
        let completed: Vec<&Condition> = self.completed(known, next).collect();
        let matches = element.rows * self.fraction(known.with(Set::one(next)), &completed);
        let joined = match element.kind {
            JoinKind::Semi => rows * matches.min(0.9),
            JoinKind::Anti => rows * (1.0 - matches).max(0.1),
            JoinKind::Left => rows * matches.max(1.0),
            _ => rows * matches,
        };
        joined.max(1.0)
    }

    /// What a lookup in an element finds when others are known; none where there is no key.
    fn found(&mut self, known: Set, next: usize) -> Option<Found> {
        self.elements[next].looked.as_ref()?;
        let equalities: Vec<&Condition> = self
            .completed(known, next)
            .filter(|condition| condition.sides.is_some() || sides(&condition.expr).is_some())
            .collect();
        let near = equalities.iter().fold(Set::default(), |set, condition| {
            set.with(condition.elements)
        });
        if let Some(found) = self.found.get(&(next, near)) {
            return *found;
        }
        let fraction = self.fraction(near.with(Set::one(next)), &equalities);
        let pairs: Vec<&Expr> = equalities.iter().map(|one| &one.expr).collect();
        let element = &self.elements[next];
        let looked = element.looked.as_ref()?;
        let mut found = match pairs.is_empty() {
            true => None,
            false => self.planner.found(looked, &pairs, fraction),
        };
        if let (JoinKind::Semi | JoinKind::Anti, Some(found)) = (element.kind, &mut found) {
            // It ends with the first row that fits, which may be any of them.
            found.rows = 2.0 * found.rows / (1.0 + found.rows);
        }
        self.found.insert((next, near), found);
        found
    }

    /// Whether a hash can serve the join of an element.
    fn is_hashed(&self, known: Set, next: usize) -> bool {
        let own = Set::one(next);
        self.completed(known, next).any(|condition| {
            condition.sides.is_some_and(|(a, b)| {
                let fits = |a: Set, b: Set| a == own && !b.is_empty() && known.has_all(b);
                fits(a, b) || fits(b, a)
            })
        })
    }

    /// The better way to join one more element to what is known.
    fn step(&mut self, known: Set, best: &Best, next: usize) -> Result<Best> {
        coro::work(STEP_WORK)?;
        let rows = self.rows(known, best.rows, next);
        let hashed = self.is_hashed(known, next);
        let found = self.found(known, next);
        let element = &self.elements[next];
        let (there, one) = ((best.rows, best.cost), (element.rows, element.cost));
        let planner = self.planner;
        let cost = planner.join_cost(there, one, found, hashed);
        let turned = match (element.kind, best.last) {
            (JoinKind::Inner, Last::Joined(..)) => {
                planner.join_cost(one, there, None, hashed) + element.turned_min
            }
            (JoinKind::Left, _) if hashed => planner.join_cost(one, there, None, true) + TURNED_MIN,
            _ => f64::INFINITY,
        };
        Ok(Best {
            rows,
            cost: cost.min(turned) + rows * ROW,
            last: Last::Joined(next, turned < cost),
        })
    }

    fn alone(&self, element: usize) -> Option<Best> {
        let element = &self.elements[element];
        (element.kind == JoinKind::Inner).then_some(Best {
            rows: element.rows,
            cost: element.cost,
            last: Last::Alone,
        })
    }

    /// The cheapest order: the elements with what is joined last, from the first on.
    fn compare_all(&mut self) -> Result<Vec<(usize, bool)>> {
        let count = self.elements.len();
        let mut best: Vec<Option<Best>> = vec![None; 1 << count];
        for known in 1..best.len() {
            if known.is_power_of_two() {
                best[known] = self.alone(known.trailing_zeros() as usize);
                continue;
            }
            // Of equals the first is kept: what is written last comes last.
            for next in (0..count).rev().filter(|next| known >> next & 1 == 1) {
                let before = known & !(1 << next);
                let Some(there) = best[before] else {
                    continue;
                };
                let mut set = Set::default();
                set.0[0] = before as u64;
                if !self.may_follow(set, next) {
                    continue;
                }
                let way = self.step(set, &there, next)?;
                if best[known].is_none_or(|known| way.cost < known.cost) {
                    best[known] = Some(way);
                }
            }
        }
        let mut order = Vec::new();
        let mut known = best.len() - 1;
        while let Some(Best {
            last: Last::Joined(next, turned),
            ..
        }) = best[known]
        {
            order.push((next, turned));
            known &= !(1 << next);
        }
        order.push((known.trailing_zeros() as usize, false));
        order.reverse();
        Ok(order)
    }

    /// An order that is found step by step.
    fn one_by_one(&mut self) -> Result<Vec<(usize, bool)>> {
        let firsts = (0..self.elements.len()).filter_map(|one| Some((one, self.alone(one)?)));
        let first = firsts.min_by(|a, b| a.1.rows.total_cmp(&b.1.rows));
        let (first, mut best) = first.ok_or_else(|| Error::internal("a join of nothing"))?;
        let mut known = Set::one(first);
        let mut order = vec![(first, false)];
        while order.len() < self.elements.len() {
            let mut next: Option<(usize, Best)> = None;
            for one in 0..self.elements.len() {
                if known.has(one) || !self.may_follow(known, one) {
                    continue;
                }
                let way = self.step(known, &best, one)?;
                let better = |other: &(usize, Best)| {
                    way.rows
                        .total_cmp(&other.1.rows)
                        .then(way.cost.total_cmp(&other.1.cost))
                        .is_lt()
                };
                if next.as_ref().is_none_or(better) {
                    next = Some((one, way));
                }
            }
            let (one, way) = next.ok_or_else(|| Error::internal("no element can follow"))?;
            let turned = matches!(way.last, Last::Joined(_, true));
            order.push((one, turned));
            known = known.with(Set::one(one));
            best = way;
        }
        Ok(order)
    }

    /// The path that joins the elements in this order.
    fn build(mut self, order: &[(usize, bool)]) -> Result<Path> {
        let mut known = Set::default();
        let mut joined: Option<Path> = None;
        for (next, turned) in order {
            let element = &mut self.elements[*next];
            let path = element.path.take();
            let path = path.ok_or_else(|| Error::internal("an element is joined twice"))?;
            let Some(there) = joined else {
                known = Set::one(*next);
                joined = Some(path);
                continue;
            };
            let rows = self.rows(known, there.rows, *next);
            let found = self.found(known, *next).filter(|_| !turned);
            let on = self
                .completed(known, *next)
                .map(|one| one.expr.clone())
                .collect();
            let all = known.with(Set::one(*next));
            let above = self.conditions.iter().filter(|condition| {
                let of_where =
                    condition.of.is_none() && self.elements[*next].kind != JoinKind::Inner;
                of_where && condition.elements.has(*next) && all.has_all(condition.elements)
            });
            let above: Vec<Expr> = above.map(|one| one.expr.clone()).collect();
            let looked = self.elements[*next].looked.as_ref();
            let (left, right) = if *turned {
                (path, there)
            } else {
                (there, path)
            };
            let pair = Pair {
                kind: match self.elements[*next].kind {
                    JoinKind::Left if *turned => JoinKind::Right,
                    kind => kind,
                },
                left,
                right,
                looked: looked.and_then(|looked| Some((looked, found?))),
                on,
                lateral: None,
                rows,
            };
            joined = Some(self.planner.join(pair)?.filtered(&above)?);
            known = all;
        }
        joined.ok_or_else(|| Error::internal("a join of nothing"))
    }
}

/// Whether a condition may be tested of more rows than it was written for, and then again.
fn is_cheap(condition: &Expr) -> bool {
    !condition.any(&|part| matches!(part.kind, ExprKind::Sub(..)) || part.is_volatile_call())
}

/// The key of a system relation whose columns begin there: its oid, if it has one.
fn oid_key(table: &Table, start: usize) -> Vec<Vec<usize>> {
    let mut columns = table.columns.iter();
    let oid = columns.position(|column| column.name == "oid");
    oid.map(|place| vec![start + place]).into_iter().collect()
}

/// The columns on both sides of an equality.
fn sides_of_columns(condition: &Expr) -> Vec<usize> {
    let column = |expr: &Expr| match expr.bare().kind {
        ExprKind::Column(place) => Some(place),
        _ => None,
    };
    let (a, b) = match sides(condition) {
        Some((a, b)) => (column(a), column(b)),
        None => (None, None),
    };
    a.into_iter().chain(b).collect()
}

/// The keys of a table, each with its columns' places in FROM.
fn keys_of(scan: &Scan, start: usize) -> Vec<Vec<usize>> {
    let indexes = scan.table.indexes.iter();
    indexes
        .filter(|index| index.unique && index.computed.is_none())
        .map(|index| index.columns.iter().map(|one| start + one.column).collect())
        .collect()
}
