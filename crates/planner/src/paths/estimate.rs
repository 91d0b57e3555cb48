//! How many rows come of something, and what it costs to compute them.
//!
//! One unit is what PostgreSQL's planner means by one (a page read in sequence), so that a row read in
//! passing costs [`ROW`]. What is here was measured on rows in memory and is good to a factor of two or
//! so; a join whose inputs turn out otherwise than expected changes its method on the way
//! ([`crate::plan::Join::lookups`]).
//!
//! How often conditions hold is found out by [`super::conditions`]; where ANALYZE has not looked, it is the
//! constants here, which PostgreSQL takes where it knows no better.

use catalog::extended::PARTS_MAX;
use catalog::Table;
use functions::resolve_operator;

use super::access::{reach_of, Reach};
use super::conditions::{self, Columns};
use super::selectivity::{groups, Facts};
use super::together::distinct_together;
use super::{Methods, Planner};
use crate::plan::{
    Expected, Expr, ExprKind, JoinKind, KnownTogether, Plan, Program, Scan, SubQuery,
};
use types::TypeId;

/// Reading a row in passing.
pub(super) const ROW: f64 = 0.01;
/// Testing conditions on a row.
pub(super) const TEST: f64 = 0.0025;
/// Going to a place in a small tree.
pub(crate) const DESCENT: f64 = 0.05;
/// Finding the row of an index's entry in a small table.
const FETCH: f64 = 0.04;
/// A tree is small up to so many rows: the pages on the way are in the processor's caches. What each
/// doubling beyond that adds to a descent, of which one more look then waits for memory.
const SMALL_ROWS: f64 = 1_000.0;
const DOUBLING: f64 = 0.02;
/// Keeping a row and its hash.
pub(crate) const BUILD: f64 = 0.015;
/// Looking for a hash.
pub(super) const PROBE: f64 = 0.005;
/// Trying a pair of rows.
pub(super) const PAIR: f64 = 0.005;

/// How many rows something of which nothing is known has.
const ROWS_UNKNOWN: f64 = 1_000.0;
/// About how many rows a system relation has.
pub(super) fn system_rows(table: &Table) -> f64 {
    match table.name.as_str() {
        "pg_attribute" | "pg_depend" | "pg_description" | "pg_proc" => 3_000.0,
        "pg_class" | "pg_operator" | "pg_type" => 500.0,
        "pg_am" | "pg_collation" | "pg_database" | "pg_language" | "pg_namespace" => 10.0,
        _ => ROWS_UNKNOWN,
    }
}

/// How many rows a function gives.
const ROWS_OF_FUNCTION: f64 = 100.0;
/// How many values a column has of which nothing is known.
pub(super) const DISTINCT_UNKNOWN: f64 = 200.0;

/// How often a column equals one value.
pub(super) const EQUAL: f64 = 1.0 / DISTINCT_UNKNOWN;
/// How often it is on one side of a value.
pub(super) const ONE_SIDE: f64 = 1.0 / 3.0;
/// How often any other comparison holds.
pub(super) const UNKNOWN: f64 = 0.25;
/// How often any other truth value is true.
pub(super) const TRUTH: f64 = 0.5;
/// How often a subquery has a row, or the one that is looked for.
pub(super) const SUBQUERY: f64 = 0.5;
/// How many elements a list has that is not known.
pub(super) const LIST_UNKNOWN: usize = 10;

/// Going to a place in a tree of so many rows.
pub(super) fn descent(rows: f64) -> f64 {
    DESCENT + beyond_small(rows)
}

/// Finding the row of an index's entry in a table of so many.
pub(super) fn fetch(rows: f64) -> f64 {
    FETCH + beyond_small(rows)
}

fn beyond_small(rows: f64) -> f64 {
    DOUBLING * (rows / SMALL_ROWS).max(1.0).log2()
}

/// What is known of the columns of a table that is scanned.
pub(super) struct ScanColumns<'a> {
    planner: &'a Planner<'a>,
    scan: &'a Scan,
}

impl Columns for ScanColumns<'_> {
    fn facts(&self, place: usize) -> Option<Facts> {
        self.planner.facts(&self.scan.table, place)
    }

    fn expression(&self, expr: &Expr) -> Option<(usize, Facts)> {
        let known = self.together().iter().enumerate();
        let mut found = known.filter_map(|(at, known)| {
            let place = known.expression(expr)?;
            let found = known.found.expressions.get(place)?.clone()?;
            Some((usize::MAX - at * PARTS_MAX - place, found))
        });
        let (place, found) = found.next()?;
        let facts = Facts {
            found,
            rows: self.planner.table_rows(self.scan),
            unique: false,
        };
        Some((place, facts))
    }

    fn together(&self) -> &[KnownTogether] {
        self.scan.together.as_deref().unwrap_or_default()
    }

    fn chooses(&self) -> bool {
        self.planner.chooses
    }
}

impl Planner<'_> {
    /// How many rows a table has; none if nobody knows.
    fn known_rows(&self, table: &Table) -> Option<f64> {
        match self.chooses {
            true => self.statistics?.rows(table),
            false => self.statistics?.glance(table),
        }
    }

    /// How many rows a table has.
    pub(super) fn table_rows(&self, scan: &Scan) -> f64 {
        let known = self.known_rows(&scan.table);
        known.unwrap_or(ROWS_UNKNOWN).max(1.0)
    }

    /// What is known of the columns of a scan's rows.
    pub(super) fn columns<'s>(&'s self, scan: &'s Scan) -> ScanColumns<'s> {
        ScanColumns {
            planner: self,
            scan,
        }
    }

    /// What is known of a column of a table.
    pub(super) fn facts(&self, table: &Table, place: usize) -> Option<Facts> {
        let statistics = self.statistics?;
        let found = statistics.column(table, place)?;
        let is_key = |index: &catalog::Index| {
            let of = index.columns.first().map(|column| column.column);
            index.unique
                && index.computed.is_none()
                && index.columns.len() == 1
                && of == Some(place)
        };
        Some(Facts {
            found,
            rows: self.known_rows(table)?.max(1.0),
            unique: table.indexes.iter().any(is_key),
        })
    }

    /// What is expected of a scan for rows that meet conditions, over its own columns.
    pub(super) fn estimate_scan(&self, scan: &Scan, guards: &[Expr], own: &[Expr]) -> Expected {
        let all = self.table_rows(scan);
        let columns = self.columns(scan);
        let together: Vec<Expr> = guards.iter().chain(own).cloned().collect();
        let fraction = conditions::selectivity(&together, &columns);
        let reach = self.reach_by(scan, guards, own);
        let rows = match reach {
            Reach::Row => 1.0,
            Reach::Rows(most) => (all * fraction).min(most as f64).max(1.0),
            _ => (all * fraction).max(1.0),
        };
        let tests = match together.len() {
            0 => 0.0,
            _ => TEST,
        };
        let penalty = match reach {
            Reach::All => Methods::penalty(self.methods.seq_scan),
            _ => Methods::penalty(self.methods.index_scan),
        };
        let examined = match reach {
            Reach::All => all,
            // What it looks at is known better than by the number of columns.
            _ => self
                .examined(scan, guards, own, &columns)
                .unwrap_or_else(|| reach.examined(all))
                .max(rows),
        };
        let is_apart = reach != Reach::All && !self.is_by_key(scan, guards, own);
        let fetch = if is_apart { fetch(all) } else { 0.0 };
        let subqueries = self.cost_of_subqueries(&together, examined, &columns);
        let by_several = match reach {
            Reach::All => self.cost_of_alternatives(scan, guards, own),
            _ => None,
        };
        let cost = match by_several {
            Some(cost) => cost + rows * tests,
            None => DESCENT + examined * (ROW + tests + fetch) + penalty,
        };
        Expected {
            rows,
            cost: cost + subqueries,
        }
    }

    /// What the subqueries of conditions cost that look at the row around them, for so many rows: those of
    /// them that meet the other conditions.
    pub(super) fn cost_of_subqueries(
        &self,
        conditions: &[Expr],
        rows: f64,
        columns: &dyn Columns,
    ) -> f64 {
        let has = |condition: &&Expr| condition.any(&|part| is_correlated(part));
        if !conditions.iter().any(|condition| has(&condition)) {
            return 0.0;
        }
        let (with, others): (Vec<&Expr>, Vec<&Expr>) = conditions.iter().partition(has);
        let others: Vec<Expr> = others.into_iter().cloned().collect();
        let rows = rows * conditions::selectivity(&others, columns);
        let mut cost = 0.0;
        for condition in with {
            condition.visit(&mut |part| {
                if let ExprKind::Sub(query, ..) = &part.kind {
                    cost += match query.correlated {
                        true => self.cost_of_subquery(query, rows),
                        false => 0.0,
                    };
                }
            });
        }
        cost
    }

    /// What a subquery costs for so many rows: each by itself, or all at once by their keys.
    fn cost_of_subquery(&self, query: &SubQuery, rows: f64) -> f64 {
        let each = rows * (self.estimate_plan(&query.plan).cost + DESCENT);
        match &query.keyed {
            Some(keyed) => {
                let all = self.estimate_plan(&keyed.plan);
                each.min(all.cost + all.rows * BUILD + rows * PROBE)
            }
            None => each,
        }
    }

    /// How many rows a scan looks at by its way to them, if anything is known of the columns that lead
    /// there.
    fn examined(
        &self,
        scan: &Scan,
        guards: &[Expr],
        own: &[Expr],
        columns: &ScanColumns<'_>,
    ) -> Option<f64> {
        let leading = self.leading_conditions(scan, guards, own);
        let known = leading.iter().any(|condition| {
            condition.any(&|part| match part.kind {
                ExprKind::Column(place) => columns.facts(place).is_some(),
                _ => false,
            })
        });
        let fraction = conditions::selectivity(&leading, columns);
        known.then(|| (self.table_rows(scan) * fraction).max(1.0))
    }

    /// What is expected of a plan made before.
    pub(crate) fn estimate_plan(&self, plan: &Plan) -> Expected {
        let of = |rows: f64, cost: f64| Expected {
            rows: rows.max(1.0),
            cost,
        };
        match plan {
            Plan::Values(rows) => of(rows.len() as f64, rows.len() as f64 * ROW),
            Plan::Scan(scan) => {
                let all = self.table_rows(scan);
                let examined = reach_of(scan).examined(all);
                let rows = match &scan.filter {
                    None => examined,
                    Some(_) => examined * UNKNOWN,
                };
                let by_itself = of(rows, DESCENT + examined * (ROW + TEST));
                scan.expected.as_deref().copied().unwrap_or(by_itself)
            }
            Plan::System(table, ..) => {
                let rows = system_rows(table);
                of(rows, rows * ROW)
            }
            Plan::Function { .. } | Plan::Routine { .. } | Plan::Beside(..) => {
                of(ROWS_OF_FUNCTION, ROWS_OF_FUNCTION * ROW)
            }
            Plan::Once(input, _)
            | Plan::Project(input, _)
            | Plan::Trim(input, _)
            | Plan::Lock(input, _)
            | Plan::Anew(_, input)
            | Plan::Shared(_, input) => self.estimate_plan(input),
            Plan::Filter(input, _) => {
                let input = self.estimate_plan(input);
                of(input.rows * UNKNOWN, input.cost + input.rows * TEST)
            }
            Plan::ProjectSet(input, _) => {
                let input = self.estimate_plan(input);
                of(input.rows * ROWS_OF_FUNCTION, input.cost + input.rows)
            }
            Plan::Join(join) if join.expected.is_some() => join.expected.unwrap_or_default(),
            Plan::Join(join) => {
                let (left, right) = (
                    self.estimate_plan(&join.left),
                    self.estimate_plan(&join.right),
                );
                let pairs = match join.kind {
                    JoinKind::Semi | JoinKind::Anti => left.rows * 0.5,
                    _ if join.hash.is_empty() => left.rows * right.rows * UNKNOWN,
                    _ => left.rows.max(right.rows),
                };
                of(
                    pairs,
                    left.cost + right.cost + (left.rows + right.rows) * BUILD,
                )
            }
            Plan::Window(window) => {
                let input = self.estimate_plan(&window.input);
                of(input.rows, input.cost + input.rows * BUILD)
            }
            Plan::Aggregate { input, groups, .. } => {
                let of_input = self.estimate_plan(input);
                let keys: Vec<_> = groups.iter().map(|group| &group.0).collect();
                let rows = match groups.len() {
                    0 => 1.0,
                    _ => self.groups_of(input, &keys, of_input.rows),
                };
                of(rows, of_input.cost + of_input.rows * BUILD)
            }
            Plan::Sort(input, _) => {
                let input = self.estimate_plan(input);
                of(input.rows, input.cost + input.rows * BUILD * 2.0)
            }
            Plan::Distinct(input, columns) => {
                let of_input = self.estimate_plan(input);
                let places = columns.iter().map(|column| Some(column.0));
                let rows = self.groups_at(input, places, of_input.rows);
                of(rows, of_input.cost + of_input.rows * BUILD)
            }
            Plan::Limit(input, count, ..) => {
                let input = self.estimate_plan(input);
                let most = if count.is_some() { 10.0 } else { f64::INFINITY };
                of(input.rows.min(most), input.cost)
            }
            Plan::SetOperation(_, _, parts, _) => {
                let parts = parts.iter().map(|part| self.estimate_plan(part));
                parts.fold(of(0.0, 0.0), |sum, part| {
                    of(sum.rows + part.rows, sum.cost + part.cost)
                })
            }
            Plan::Recursive(_) | Plan::Working(_) | Plan::With(_) | Plan::Transition(_) => {
                of(ROWS_UNKNOWN, ROWS_UNKNOWN)
            }
            Plan::Insert(_)
            | Plan::Update(_)
            | Plan::Delete(_)
            | Plan::Merge(_)
            | Plan::Rewritten(_) => of(ROWS_UNKNOWN, ROWS_UNKNOWN),
        }
    }
}

/// A table by whose columns rows are grouped.
struct GroupedTable<'p> {
    scan: &'p Scan,
    /// How many of its rows the scan leaves.
    kept: f64,
    /// The columns, and how many values each has.
    columns: Vec<(usize, f64)>,
}

impl Planner<'_> {
    /// How many groups rows make by these values.
    fn groups_of(&self, input: &Plan, keys: &[&Program], rows: f64) -> f64 {
        self.groups_at(input, keys.iter().map(|key| key.as_column()), rows)
    }

    /// How many groups rows make by these columns; none: by something that is computed.
    fn groups_at(
        &self,
        input: &Plan,
        columns: impl Iterator<Item = Option<usize>>,
        rows: f64,
    ) -> f64 {
        let mut tables: Vec<GroupedTable<'_>> = Vec::new();
        let mut truths = 1.0;
        for column in columns {
            let origin = column.and_then(|place| origin_of(input, place));
            let known = origin
                .and_then(|(scan, place)| Some((scan, place, self.facts(&scan.table, place)?)));
            let Some((scan, place, facts)) = known else {
                return (rows * 0.1).max(DISTINCT_UNKNOWN).min(rows);
            };
            // What the scan leaves of the table's rows leaves fewer values.
            let kept = scan
                .expected
                .as_ref()
                .map_or(facts.rows, |expected| expected.rows);
            let distinct = facts.distinct();
            if facts.found.type_id == TypeId::BOOL {
                // Truth values have nothing to do with others.
                truths *= distinct;
                continue;
            }
            let same =
                |known: &&mut GroupedTable<'_>| std::ptr::eq(&*known.scan.table, &*scan.table);
            match tables.iter_mut().find(same) {
                Some(table) => table.columns.push((place, distinct)),
                None => tables.push(GroupedTable {
                    scan,
                    kept,
                    columns: vec![(place, distinct)],
                }),
            }
        }
        let of_table = |table: &GroupedTable<'_>| {
            let all = self.known_rows(&table.scan.table);
            let known = table.scan.together.as_deref().unwrap_or_default();
            let distinct = distinct_together(known, &table.columns);
            groups(&distinct, table.kept, all.unwrap_or(table.kept))
        };
        let all: f64 = tables.iter().map(of_table).product();
        (all * truths).min(rows).max(1.0)
    }
}

/// The column of a table that a column of a plan's rows is, if it is one.
pub fn origin_of(plan: &Plan, place: usize) -> Option<(&Scan, usize)> {
    match plan {
        Plan::Scan(scan) => Some((scan, scan.table_column(place)?)),
        Plan::Project(input, columns) => origin_of(input, columns.get(place)?.as_column()?),
        Plan::Join(join) => {
            let place = join.pair_column(place)?;
            match place.checked_sub(join.left_width) {
                None => origin_of(&join.left, place),
                Some(place) => origin_of(&join.right, place),
            }
        }
        Plan::Aggregate { input, groups, .. } => {
            origin_of(input, groups.get(place)?.0.as_column()?)
        }
        plan => origin_of(plan.same_columns()?, place),
    }
}

fn is_correlated(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Sub(query, ..) => query.correlated,
        _ => false,
    }
}

/// Whether it is an equality, and both its sides.
pub(crate) fn sides(condition: &Expr) -> Option<(&Expr, &Expr)> {
    let ExprKind::Call(function, args, _) = &condition.kind else {
        return None;
    };
    let [a, b] = args.as_slice() else {
        return None;
    };
    let equality = resolve_operator("=", a.ty, b.ty).ok()?;
    (equality.operator.function.oid == function.0.oid).then_some((a, b))
}
