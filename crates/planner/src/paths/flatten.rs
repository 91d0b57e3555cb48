//! Queries in FROM that become a part of the query around them.
//!
//! ```text
//! select d.s from (select a.i, a.x + b.y as s from a, b where a.j = b.j) as d, c
//! where d.i = c.i and d.s > 7
//!
//! Join Inner                            d.i is a.i, d.s is a.x + b.y
//! ├─ Join Inner: a, b                   a.j = b.j and a.i = c.i and a.x + b.y > 7
//! └─ Scan c
//! ```
//! The tables of such a query get places of their own behind all others, so that they are joined in
//! any order and found by their keys. What its columns stand for is put wherever they are named in
//! conditions, and computed at the end for whoever looks at them: expressions of the query around still
//! name them by their places.
//!
//! # Invariants
//! - A column that an outer join may replace by NULL stands for a column, never for something computed,
//!   which would not be NULL.
//! - A condition of such a query on the side of an outer join that may be missing becomes one of that join.
//! - Nothing volatile is moved ([`Derived`]). A column that is a subquery is computed at the end, for
//!   the rows that are left; where a condition names it, the query stays by itself, so that the
//!   subquery is computed once for each of its rows.
//!
//! # What it leaves out
//! Queries under FULL joins and beside LATERAL items that stay by themselves, and those with such joins in
//! them, are planned by themselves; conditions on their columns are tested inside nevertheless ([`Planner::derived_path`]).

use std::ops::Range;

use base::hash::{HashMap, HashSet};
use base::Result;

use super::{Layout, Path, Planner};
use crate::logical::{
    columns_of, end_of, inward, move_columns, shifted, Derived, Source, SourceKind,
};
use crate::plan::{compile, Expr, ExprKind, JoinKind, Plan};
use types::Datum;

/// Joins of more items take in no further queries.
const ITEMS_MAX: usize = 64;

/// What stands for a column may be made of as many parts, with all that stands for columns in it.
const PARTS_MAX: usize = 200;

/// A condition that is tested inside of a query may be made of as many parts.
const CONDITION_PARTS_MAX: usize = 1_000;

/// What columns stand for, by their places.
pub(super) type Meanings = HashMap<usize, Expr>;

/// Joins without queries that could be a part of them, the conditions over them, and what the columns
/// of these queries stand for.
pub(super) fn flattened(source: Source, conditions: Vec<Expr>) -> (Source, Vec<Expr>, Meanings) {
    if !has_derived(&source) {
        return (source, conditions, Meanings::default());
    }
    let source = with_certain_rows(source);
    let ends = conditions.iter().map(end_of);
    let mut weights = Weights::default();
    weigh(&source, &mut weights);
    let mut flattening = Flattening {
        next: ends.fold(source.end(), usize::max),
        items: source.ranges().len(),
        named: HashSet::default(),
        weights,
        meanings: Meanings::default(),
    };
    flattening.name(&conditions);
    flattening.name_joins(&source);
    let mut all = Vec::new();
    let mut source = flattening.source(source, &mut all, None, PARTS_MAX);
    all.extend(conditions);
    let meanings = flattening.meanings;
    put_meanings(&mut source, &meanings);
    all.iter_mut().for_each(|one| put(one, &meanings));
    (source, all, meanings)
}

fn has_derived(source: &Source) -> bool {
    match &source.kind {
        SourceKind::Derived(_) => true,
        SourceKind::Join { left, right, .. } => has_derived(left) || has_derived(right),
        SourceKind::Scan { .. } | SourceKind::Other { .. } => false,
    }
}

/// Makes inner joins of left ones without a condition whose right side has a row whatever happens.
fn with_certain_rows(source: Source) -> Source {
    let Source { kind, start, width } = source;
    let SourceKind::Join {
        mut kind,
        left,
        right,
        on,
        lateral,
    } = kind
    else {
        return Source { kind, start, width };
    };
    let certain = match &right.kind {
        SourceKind::Derived(derived) => {
            derived.source.is_one_row() && derived.conditions.is_empty()
        }
        _ => false,
    };
    if kind == JoinKind::Left && certain && on.iter().all(is_true) {
        kind = JoinKind::Inner;
    }
    let kind = SourceKind::Join {
        kind,
        left: Box::new(with_certain_rows(*left)),
        right: Box::new(with_certain_rows(*right)),
        on,
        lateral,
    };
    Source { kind, start, width }
}

fn is_true(condition: &Expr) -> bool {
    matches!(condition.kind, ExprKind::Const(Datum::Bool(true), None))
}

/// How many parts that has which stands for a column, once all of them are parts, by places.
type Weights = HashMap<usize, usize>;

/// Weighs the columns of queries, those of others that they look at first.
fn weigh(source: &Source, weights: &mut Weights) {
    match &source.kind {
        SourceKind::Join { left, right, .. } => {
            weigh(left, weights);
            weigh(right, weights);
        }
        SourceKind::Derived(derived) => {
            let mut inside = Weights::default();
            weigh(&derived.source, &mut inside);
            for (place, expr) in (source.start..).zip(&derived.exprs) {
                let mut weight = 0_usize;
                expr.visit(&mut |part| {
                    let known = match part.kind {
                        ExprKind::Column(place) => inside.get(&place),
                        ExprKind::Outer(1, place) => weights.get(&place),
                        _ => None,
                    };
                    weight = weight.saturating_add(*known.unwrap_or(&1));
                });
                weights.insert(place, weight);
            }
        }
        SourceKind::Scan { .. } | SourceKind::Other { .. } => {}
    }
}

/// The places of that side of an outer join in whose place there may be NULLs which is the innermost
/// around an item, if there is one.
type Missing<'r> = Option<&'r [Range<usize>]>;

struct Flattening {
    /// The first place that nothing has.
    next: usize,
    /// How many items are joined.
    items: usize,
    /// The places that conditions and LATERAL items name.
    named: HashSet<usize>,
    weights: Weights,
    meanings: Meanings,
}

impl Flattening {
    fn name(&mut self, conditions: &[Expr]) {
        self.named.extend(conditions.iter().flat_map(columns_of));
    }

    /// Notes what the conditions of joins name, and LATERAL items.
    fn name_joins(&mut self, source: &Source) {
        match &source.kind {
            SourceKind::Join {
                left, right, on, ..
            } => {
                self.name(on);
                self.name_joins(left);
                self.name_joins(right);
            }
            SourceKind::Derived(derived) if derived.reach < source.start => {
                for expr in derived.conditions.iter().chain(&derived.exprs) {
                    expr.visit(&mut |part| {
                        if let ExprKind::Outer(1, place) = part.kind {
                            self.named.insert(place);
                        }
                    });
                }
            }
            _ => {}
        }
    }

    /// A source without such queries; their conditions go to those of the join around, or of WHERE.
    /// What stands for a column may have so many parts.
    fn source(
        &mut self,
        source: Source,
        into: &mut Vec<Expr>,
        missing: Missing<'_>,
        parts_max: usize,
    ) -> Source {
        let Source { kind, start, width } = source;
        match kind {
            SourceKind::Derived(derived)
                if self.may_be_part(&derived, (start, false), missing, parts_max) =>
            {
                self.part(*derived, (start, false), into, missing, parts_max)
            }
            SourceKind::Join {
                kind,
                left,
                right,
                on,
                lateral,
            } if self.enters(kind, &right, lateral, missing, parts_max) => {
                let join = Joined {
                    kind,
                    left: *left,
                    right: *right,
                    on,
                    lateral,
                };
                self.join(join, (start, width), into, missing, parts_max)
            }
            kind => Source { kind, start, width },
        }
    }

    /// Whether queries on both sides of a join may become parts of the query around: beside a LATERAL
    /// item only if it becomes one itself, as it looks for columns in their places otherwise.
    fn enters(
        &self,
        kind: JoinKind,
        right: &Source,
        lateral: bool,
        missing: Missing<'_>,
        parts_max: usize,
    ) -> bool {
        let of_right = right.ranges();
        let missing = match kind {
            JoinKind::Full => return false,
            JoinKind::Left => Some(&of_right[..]),
            _ => missing,
        };
        match &right.kind {
            _ if !lateral => true,
            SourceKind::Derived(derived) => {
                self.may_be_part(derived, (right.start, true), missing, parts_max)
            }
            _ => false,
        }
    }

    fn join(
        &mut self,
        join: Joined,
        (start, width): (usize, usize),
        into: &mut Vec<Expr>,
        missing: Missing<'_>,
        parts_max: usize,
    ) -> Source {
        let Joined {
            kind,
            left,
            right,
            mut on,
            lateral,
        } = join;
        let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
        let (left_ranges, right_ranges) = (left.ranges(), right.ranges());
        let (left_missing, right_missing) = match kind {
            JoinKind::Right => (Some(&left_ranges[..]), missing),
            JoinKind::Left => (missing, Some(&right_ranges[..])),
            _ => (missing, missing),
        };
        let right = match right.kind {
            // That it may be a part has been found with as many items as there are now.
            SourceKind::Derived(derived) if lateral => {
                let item = (right.start, true);
                self.part(*derived, item, &mut of_right, right_missing, parts_max)
            }
            _ => self.source(right, &mut of_right, right_missing, parts_max),
        };
        let left = self.source(left, &mut of_left, left_missing, parts_max);
        let (to_left, to_right) = match kind {
            JoinKind::Inner | JoinKind::Full => (false, false),
            JoinKind::Right => (true, false),
            JoinKind::Left | JoinKind::Semi | JoinKind::Anti => (false, true),
        };
        for (conditions, to_join) in [(of_left, to_left), (of_right, to_right)] {
            match to_join {
                true => on.extend(conditions),
                false => into.extend(conditions),
            }
        }
        // What reads nothing is no item any more.
        if kind == JoinKind::Inner && (left.is_one_row() || right.is_one_row()) {
            into.extend(on);
            return if right.is_one_row() { left } else { right };
        }
        let kind = SourceKind::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            on,
            lateral: false,
        };
        Source { kind, start, width }
    }

    /// Whether a query, LATERAL or not, may become a part of the one around it, on a side of an outer
    /// join that may be missing or elsewhere.
    fn may_be_part(
        &self,
        derived: &Derived,
        (start, lateral): (usize, bool),
        missing: Missing<'_>,
        parts_max: usize,
    ) -> bool {
        let weight = |place: usize, expr: &Expr| match lateral {
            true => self.weights.get(&place).copied().unwrap_or(usize::MAX),
            false => parts_of(expr),
        };
        let fits = |(place, expr): (usize, &Expr)| match missing {
            Some(missing) => match expr.bare().kind {
                ExprKind::Column(_) => true,
                // NULL wherever the item itself is.
                ExprKind::Outer(1, beside) if lateral => {
                    missing.iter().any(|range| range.contains(&beside))
                }
                _ => false,
            },
            None if expr.any(&is_subquery) => {
                !self.named.contains(&place) && weight(place, expr) <= parts_max
            }
            None => weight(place, expr) <= parts_max,
        };
        (start..).zip(&derived.exprs).all(fits)
            && self.items + derived.source.ranges().len() <= ITEMS_MAX
            && !has_lateral(&derived.source)
    }

    /// The FROM of a query whose columns begin at a place, moved to where nothing else is, without
    /// queries that may be parts as well.
    fn part(
        &mut self,
        derived: Derived,
        (start, lateral): (usize, bool),
        into: &mut Vec<Expr>,
        missing: Missing<'_>,
        parts_max: usize,
    ) -> Source {
        self.items += derived.source.ranges().len();
        let heaviest = derived.exprs.iter().map(parts_of).max();
        let parts_max = parts_max / heaviest.unwrap_or(1).max(1);
        let end = derived.end();
        let Derived {
            mut source,
            mut conditions,
            mut exprs,
            ..
        } = derived;
        let places: Vec<usize> = (self.next..self.next + end).collect();
        self.next += end;
        source.move_columns(&places);
        for expr in conditions.iter_mut().chain(&mut exprs) {
            move_columns(expr, &places);
            if lateral {
                inward(expr, 1);
            }
        }
        self.name(&conditions);
        self.name_joins(&source);
        into.append(&mut conditions);
        for (column, expr) in exprs.into_iter().enumerate() {
            if self.named.contains(&(start + column)) {
                self.named.extend(columns_of(&expr));
            }
            self.meanings.insert(start + column, expr);
        }
        self.source(source, into, missing, parts_max)
    }
}

/// A join of which queries become parts of the query around.
struct Joined {
    kind: JoinKind,
    left: Source,
    right: Source,
    on: Vec<Expr>,
    lateral: bool,
}

/// How many parts an expression is made of.
fn parts_of(expr: &Expr) -> usize {
    let mut count = 0;
    expr.visit(&mut |_| count += 1);
    count
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Sub(..))
}

/// Whether items in it name others by their places, which must not change.
fn has_lateral(source: &Source) -> bool {
    match &source.kind {
        SourceKind::Join {
            left,
            right,
            lateral,
            ..
        } => *lateral || has_lateral(left) || has_lateral(right),
        _ => false,
    }
}

/// Puts what columns stand for in their place, in all conditions of joins.
fn put_meanings(source: &mut Source, meanings: &Meanings) {
    if let SourceKind::Join {
        left, right, on, ..
    } = &mut source.kind
    {
        on.iter_mut().for_each(|one| put(one, meanings));
        put_meanings(left, meanings);
        put_meanings(right, meanings);
    }
}

/// Puts what columns stand for in their place.
pub(super) fn put(expr: &mut Expr, meanings: &Meanings) {
    let meaning = match expr.kind {
        ExprKind::Column(place) => meanings.get(&place),
        _ => None,
    };
    if let Some(meaning) = meaning {
        let location = expr.location;
        *expr = meaning.clone();
        expr.location = location;
        // It may name columns of another such query.
        return put(expr, meanings);
    }
    for part in expr.parts_mut() {
        put(part, meanings);
    }
}

impl Planner<'_> {
    /// A path to the rows of a query in FROM that stays by itself, those that meet the conditions.
    pub(super) fn derived_path(
        &self,
        derived: Derived,
        (start, width): (usize, usize),
        conditions: Vec<Expr>,
    ) -> Result<Path> {
        let Derived {
            source,
            conditions: mut inside,
            exprs,
            ..
        } = derived;
        let columns = exprs.iter().cloned().enumerate();
        let columns: Meanings = columns.collect();
        let mut above = Vec::new();
        for condition in shifted(conditions, start) {
            let names_subquery = |part: &Expr| match part.kind {
                ExprKind::Column(place) => columns[&place].any(&is_subquery),
                _ => false,
            };
            let mut parts = 0;
            condition.visit(&mut |part| match part.kind {
                ExprKind::Column(place) => parts += parts_of(&columns[&place]),
                _ => parts += 1,
            });
            // A subquery's value is computed for the column that it is.
            if condition.any(&names_subquery) || parts > CONDITION_PARTS_MAX {
                above.push(condition);
                continue;
            }
            inside.push(with_meanings(condition, &columns));
        }
        let plan = self.plan(source, inside)?;
        let expected = self.estimate_plan(&plan);
        let columns = exprs.iter().map(compile).collect();
        let path = Path {
            plan: Plan::Project(std::rc::Rc::new(plan), columns),
            layout: Layout::of(0, width),
            rows: expected.rows,
            cost: expected.cost,
        };
        Ok(Path {
            layout: Layout::of(start, width),
            ..path.filtered(&above)?
        })
    }
}

/// An expression over other columns, those that its own stand for: what these name is not looked at
/// again.
fn with_meanings(mut expr: Expr, meanings: &Meanings) -> Expr {
    fn walk(expr: &mut Expr, meanings: &Meanings) {
        if let ExprKind::Column(place) = expr.kind {
            let location = expr.location;
            *expr = meanings[&place].clone();
            expr.location = location;
            return;
        }
        for part in expr.parts_mut() {
            walk(part, meanings);
        }
    }
    walk(&mut expr, meanings);
    expr
}
