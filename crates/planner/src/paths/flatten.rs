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
//! Queries under FULL and lateral joins, and those with such joins in them, are planned by themselves;
//! conditions on their columns are tested inside nevertheless ([`Planner::derived_path`]).

use base::hash::{HashMap, HashSet};
use base::Result;

use super::{Layout, Path, Planner};
use crate::logical::{columns_of, end_of, move_columns, shifted, Derived, Source, SourceKind};
use crate::plan::{compile, Expr, ExprKind, JoinKind, Plan};

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
    let ends = conditions.iter().map(end_of);
    let mut flattening = Flattening {
        next: ends.fold(source.end(), usize::max),
        items: source.ranges().len(),
        named: HashSet::default(),
        meanings: Meanings::default(),
    };
    flattening.name(&conditions);
    flattening.name_joins(&source);
    let mut all = Vec::new();
    let mut source = flattening.source(source, &mut all, false, PARTS_MAX);
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

struct Flattening {
    /// The first place that nothing has.
    next: usize,
    /// How many items are joined.
    items: usize,
    /// The places that conditions name.
    named: HashSet<usize>,
    meanings: Meanings,
}

impl Flattening {
    fn name(&mut self, conditions: &[Expr]) {
        self.named.extend(conditions.iter().flat_map(columns_of));
    }

    /// Notes what the conditions of joins name.
    fn name_joins(&mut self, source: &Source) {
        if let SourceKind::Join {
            left, right, on, ..
        } = &source.kind
        {
            self.name(on);
            self.name_joins(left);
            self.name_joins(right);
        }
    }

    /// A source without such queries; their conditions go to those of the join around, or of WHERE.
    /// What stands for a column may have so many parts.
    fn source(
        &mut self,
        source: Source,
        into: &mut Vec<Expr>,
        nullable: bool,
        parts_max: usize,
    ) -> Source {
        let Source { kind, start, width } = source;
        let kind = match kind {
            SourceKind::Derived(derived)
                if self.may_be_part(&derived, start, nullable, parts_max) =>
            {
                let heaviest = derived.exprs.iter().map(parts_of).max();
                let parts_max = parts_max / heaviest.unwrap_or(1).max(1);
                let source = self.part(*derived, start, into);
                return self.source(source, into, nullable, parts_max);
            }
            SourceKind::Join {
                kind,
                left,
                right,
                mut on,
                lateral: false,
            } if kind != JoinKind::Full => {
                let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
                let left_missing = kind == JoinKind::Right;
                let right_missing = kind == JoinKind::Left;
                let left = self.source(*left, &mut of_left, nullable || left_missing, parts_max);
                let right =
                    self.source(*right, &mut of_right, nullable || right_missing, parts_max);
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
                SourceKind::Join {
                    kind,
                    left: Box::new(left),
                    right: Box::new(right),
                    on,
                    lateral: false,
                }
            }
            kind => kind,
        };
        Source { kind, start, width }
    }

    /// Whether a query may become a part of the one around it, on a side of an outer join that may be
    /// missing or elsewhere.
    fn may_be_part(
        &mut self,
        derived: &Derived,
        start: usize,
        nullable: bool,
        parts_max: usize,
    ) -> bool {
        let fits = |(place, expr): (usize, &Expr)| match nullable {
            true => matches!(expr.bare().kind, ExprKind::Column(_)),
            false if expr.any(&is_subquery) => {
                !self.named.contains(&place) && parts_of(expr) <= parts_max
            }
            false => parts_of(expr) <= parts_max,
        };
        let items = self.items + derived.source.ranges().len();
        let may = (start..).zip(&derived.exprs).all(fits)
            && items <= ITEMS_MAX
            && !has_lateral(&derived.source);
        if may {
            self.items = items;
        }
        may
    }

    /// The FROM of a query whose columns begin at a place, moved to where nothing else is.
    fn part(&mut self, derived: Derived, start: usize, into: &mut Vec<Expr>) -> Source {
        let end = derived.end();
        let Derived {
            mut source,
            mut conditions,
            exprs,
        } = derived;
        let places: Vec<usize> = (self.next..self.next + end).collect();
        self.next += end;
        source.move_columns(&places);
        for condition in &mut conditions {
            move_columns(condition, &places);
        }
        self.name(&conditions);
        self.name_joins(&source);
        into.append(&mut conditions);
        for (column, mut expr) in exprs.into_iter().enumerate() {
            move_columns(&mut expr, &places);
            if self.named.contains(&(start + column)) {
                self.named.extend(columns_of(&expr));
            }
            self.meanings.insert(start + column, expr);
        }
        source
    }
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
