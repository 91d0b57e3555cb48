//! How two inputs are joined.
//!
//! | method | when |
//! |---|---|
//! | hash | an equality of a left and a right value; the right rows are kept by its hash |
//! | lookups | a key of the right table follows from the left row: it is looked up for each |
//! | all pairs | neither; the right rows are kept |
//!
//! Lookups are cheaper for few left rows, and nobody knows for certain how many will come: a join that
//! may look up does so for the first [`Join::lookups`] left rows and reads its right input then. The
//! count is where both cost the same; if more rows than that are expected, a small part of it, so that
//! a query that ends early ends soon.

use std::rc::Rc;

use base::Result;

use super::access::Reach;
use super::estimate::{descent, fetch, sides, BUILD, PAIR, PROBE, ROW};
use super::{Layout, Methods, Path, Planner};
use crate::logical::{looks_outside, shifted, Source, SourceKind};
use crate::plan::{compile, Expected, Expr, ExprKind, Join, JoinKind, Plan, Program, Scan};
use types::TypeId;

/// A table as the right input of lookups.
#[derive(Clone)]
pub(super) struct Looked {
    scan: Scan,
    guards: Vec<Expr>,
    /// What its rows must meet by themselves, over its own columns.
    own: Vec<Expr>,
    /// Where its columns begin in FROM.
    start: usize,
    /// How many it has.
    width: usize,
}

impl Looked {
    /// The table that a source is, if it is one and nothing about it looks at enclosing queries.
    pub(super) fn of(source: &Source, conditions: &[Expr]) -> Option<Looked> {
        let SourceKind::Scan { scan, guards, own } = &source.kind else {
            return None;
        };
        if scan.partitions.is_some() {
            return None;
        }
        let guards: Vec<_> = guards.iter().flatten().cloned().collect();
        let own: Vec<_> = own.iter().chain(conditions).cloned().collect();
        if guards.iter().chain(&own).any(looks_outside) {
            return None;
        }
        Some(Looked {
            scan: (**scan).clone(),
            guards: shifted(guards, source.start),
            own: shifted(own, source.start),
            start: source.start,
            width: source.width,
        })
    }

    /// A pair condition as the scan of the right table sees it: what it names of the left row is that
    /// of an enclosing query, at its position there if that is known.
    fn seen_from(&self, pair: &Expr, left: Option<&Layout>) -> Expr {
        fn walk(expr: &mut Expr, looked: &Looked, left: Option<&Layout>) {
            if let ExprKind::Column(place) = expr.kind {
                let own = place
                    .checked_sub(looked.start)
                    .filter(|own| *own < looked.width);
                expr.kind = match (own, left) {
                    (Some(own), _) => ExprKind::Column(own),
                    (None, None) => ExprKind::Outer(1, place),
                    (None, Some(left)) => ExprKind::Outer(1, left.positions[&place]),
                };
            }
            for part in expr.parts_mut() {
                walk(part, looked, left);
            }
        }
        let mut pair = pair.clone();
        walk(&mut pair, self, left);
        pair
    }
}

/// What one lookup is expected to find.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// How many rows it reads.
    pub(super) rows: f64,
    /// What going there costs, and each of these rows.
    descent: f64,
    each: f64,
}

impl Found {
    /// The cost of one.
    pub(super) fn cost(&self) -> f64 {
        self.descent + self.rows * self.each
    }
}

/// The inputs of a join and what their pairs must meet.
pub(super) struct Pair<'e> {
    pub(super) kind: JoinKind,
    pub(super) left: Path,
    pub(super) right: Path,
    /// The right input as a table, and what a lookup there finds.
    pub(super) looked: Option<(&'e Looked, Found)>,
    /// What pairs must meet.
    pub(super) on: Vec<Expr>,
    /// Where the left row begins to a lateral right input.
    pub(super) lateral: Option<usize>,
    /// How many rows are expected.
    pub(super) rows: f64,
}

impl Planner<'_> {
    /// How a table is reached by conditions over a left row's columns and its own, if that is better
    /// than without the left row; the fraction of its rows that meets these conditions is known.
    pub(super) fn found(&self, looked: &Looked, pairs: &[&Expr], fraction: f64) -> Option<Found> {
        if pairs.iter().any(|pair| looks_outside(pair)) {
            return None;
        }
        let mut all = looked.own.clone();
        let equalities = pairs.iter().filter(|pair| sides(pair).is_some());
        all.extend(equalities.map(|pair| looked.seen_from(pair, None)));
        let alone = self.reach_by(&looked.scan, &looked.guards, &looked.own);
        let by_row = self.reach_by(&looked.scan, &looked.guards, &all);
        let equal = |reach| match reach {
            Reach::All | Reach::Range => 0,
            Reach::Prefix(columns) => columns,
            Reach::Rows(_) => usize::MAX - 1,
            Reach::Row => usize::MAX,
        };
        if alone == Reach::Row || equal(by_row) <= equal(alone) {
            return None;
        }
        let rows = match by_row {
            Reach::Row => 1.0,
            _ => (self.table_rows(&looked.scan) * fraction).max(1.0),
        };
        let all_rows = self.table_rows(&looked.scan);
        let each = match self.is_by_key(&looked.scan, &looked.guards, &all) {
            true => ROW,
            false => fetch(all_rows),
        };
        let columns = self.columns(&looked.scan);
        let each = each + self.cost_of_subqueries(&looked.own, 1.0, &columns);
        Some(Found {
            rows,
            descent: descent(all_rows),
            each,
        })
    }

    fn lookup_plan(&self, looked: &Looked, left: &Layout, pairs: &[Expr]) -> Result<Plan> {
        let mut all = looked.own.clone();
        let equalities = pairs.iter().filter(|pair| sides(pair).is_some());
        all.extend(equalities.map(|pair| looked.seen_from(pair, Some(left))));
        let scan = self.choose_access(looked.scan.clone(), looked.guards.clone(), all)?;
        Ok(Plan::Scan(scan))
    }

    /// The join.
    pub(super) fn join(&self, pair: Pair<'_>) -> Result<Path> {
        let Pair {
            kind,
            left,
            right,
            looked,
            on,
            lateral,
            rows,
        } = pair;
        let both = left.layout.followed_by(&right.layout);
        let (mut hash, mut rest) = (Vec::new(), Vec::new());
        for condition in &on {
            let equality = match lateral {
                Some(_) => None,
                None => equality(condition, &left.layout, &right.layout)?,
            };
            match equality {
                Some(equality) => hash.push(equality),
                None => rest.push(condition.clone()),
            }
        }
        let cost = self.join_cost(
            (left.rows, left.cost),
            (right.rows, right.cost),
            looked.map(|looked| looked.1),
            !hash.is_empty(),
        );
        if self.methods.avoids_hash() {
            hash.clear();
            rest.clone_from(&on);
        }
        let avoids_lookups = self.methods.avoids_lookups() && !hash.is_empty();
        let (lookup, lookups) = match looked.filter(|_| !avoids_lookups) {
            None => (None, 0),
            Some((looked, found)) => {
                let plan = self.lookup_plan(looked, &left.layout, &on)?;
                let lookups = lookups_of(&left, &right, found, !hash.is_empty());
                (Some(Rc::new(plan)), lookups)
            }
        };
        let cost = cost + rows * ROW;
        let join = Join {
            expected: self.statistics.map(|_| Expected { rows, cost }),
            kind,
            lookup,
            lookups,
            left_width: left.layout.width(),
            right_width: right.layout.width(),
            condition: both.compile_all(&on)?,
            rest: both.compile_all(&rest)?,
            left: Rc::new(left.plan),
            right: Rc::new(right.plan),
            hash,
            lateral,
            kept: None,
        };
        Ok(Path {
            plan: Plan::Join(Box::new(join)),
            layout: match kind {
                JoinKind::Semi | JoinKind::Anti => left.layout,
                _ => both,
            },
            rows,
            cost,
        })
    }
}

impl Planner<'_> {
    /// What a join of inputs with these rows and costs costs beside the rows it gives: by lookups or by
    /// reading the right input, whatever is less.
    pub(super) fn join_cost(
        &self,
        left: (f64, f64),
        right: (f64, f64),
        found: Option<Found>,
        hashed: bool,
    ) -> f64 {
        let by_loop = Methods::penalty(self.methods.nested_loop);
        let by_lookups = found.map_or(f64::INFINITY, |found| left.0 * found.cost() + by_loop);
        let whole = match hashed && !self.methods.avoids_hash() {
            true => whole_cost(left.0, right, true) + Methods::penalty(self.methods.hash_join),
            false => whole_cost(left.0, right, false) + by_loop,
        };
        left.1 + whole.min(by_lookups)
    }
}

/// What reading the right input for so many left rows costs.
fn whole_cost(left_rows: f64, (rows, cost): (f64, f64), hashed: bool) -> f64 {
    match hashed {
        true => cost + rows * BUILD + left_rows * PROBE,
        false => cost + rows * BUILD + left_rows * rows * PAIR,
    }
}

/// How many left rows look up before the right input is read as a whole.
fn lookups_of(left: &Path, right: &Path, found: Found, hashed: bool) -> usize {
    let once = whole_cost(0.0, (right.rows, right.cost), hashed);
    let each = if hashed { PROBE } else { right.rows * PAIR };
    let saved = found.cost() - each;
    if saved <= 0.0 {
        return usize::MAX;
    }
    let even = once / saved;
    let most = match left.rows < even {
        true => 2.0 * even,
        false => even / 8.0,
    };
    most as usize
}

/// Both sides of an equality between the inputs, if the condition is one: as programs over their rows.
fn equality(
    condition: &Expr,
    left: &Layout,
    right: &Layout,
) -> Result<Option<(Program, Program, TypeId)>> {
    let is_hashed = |(a, b): &(&Expr, &Expr)| a.ty == b.ty && a.ty.has_equality();
    let Some((a, b)) = sides(condition).filter(is_hashed) else {
        return Ok(None);
    };
    let (of_left, of_right) = match () {
        _ if left.holds(a) && right.holds(b) => (a, b),
        _ if left.holds(b) && right.holds(a) => (b, a),
        _ => return Ok(None),
    };
    let local = |expr: &Expr, layout: &Layout| layout.localize(expr).map(|expr| compile(&expr));
    Ok(Some((local(of_left, left)?, local(of_right, right)?, a.ty)))
}
