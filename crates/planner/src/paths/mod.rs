//! From what a query asks for to a plan: how each item of FROM is read, in which order items are
//! joined and how, and where each condition is tested.
//!
//! ```text
//! select … from lineitem, orders, customer
//! where l_orderkey = o_orderkey and o_custkey = c_custkey and c_name = 'x'
//!
//! Nested Loop                       layout: customer, orders, lineitem
//! ├─ Nested Loop                    layout: customer, orders
//! │  ├─ Scan customer, c_name = 'x'
//! │  └─ Lookup orders by o_custkey
//! └─ Lookup lineitem by l_orderkey
//! ```
//!
//! [`Planner::plan`] takes a [`Source`] and its conditions; the rows of its plan have their columns at
//! the places that the query calls them by. In between a [`Path`] says which place each of its columns
//! has, since whatever is joined first stands first.
//!
//! # Invariants
//! - A condition is tested once (what a disjunction says of single items besides, [`factor`]), as far down as its columns and the kinds of the joins allow; one
//!   without columns once for all rows.
//! - Guards of a scan come before whatever could tell of a row ([`access`]).
//! - Plans follow from the statement, the catalog and the [`Statistics`] alone.
//!
//! Before an order is looked for, queries in FROM become a part of the one around them ([`flatten`]), outer
//! joins inner ones where that is the same ([`reduce`]), conditions that are known already go ([`fold`]),
//! and equalities are completed ([`equivalence`]).
//!
//! # What it leaves out
//! FULL joins stay where they are written, as do LATERAL items that do not become a part of the query around
//! them: with what they look at ([`apart`]), or on a side of an outer join.

pub(crate) mod access;
mod alternatives;
mod apart;
mod conditions;
mod equivalence;
pub(crate) mod estimate;
mod factor;
mod flatten;
mod fold;
pub(crate) mod implies;
mod inverted;
mod join;
mod join_order;
mod methods;
mod partition;
mod prefix;
mod push_down;
pub(crate) mod reduce;
mod scalar;
mod selectivity;
mod single;
mod together;

pub use estimate::origin_of;
pub use methods::Methods;

use std::rc::Rc;
use std::sync::Arc;

use base::hash::HashMap;
use base::{Error, Result};
use catalog::statistics::ColumnStatistics;
use catalog::{system, Table};
use types::TypeId;

use self::apart::stands_apart;
use self::flatten::{flattened, Meanings};
use self::fold::{folded, Folded};
use self::reduce::reduced;
use self::single::with_single_pairs;
use crate::logical::{all_of, columns_of, names_columns, shifted, Source, SourceKind};
use crate::plan::{compile, Expected, Expr, ExprKind, JoinKind, Plan, Program, Scan};

/// What is known of the data when a plan is made.
pub trait Statistics {
    /// How many rows a table has, more or less; none if nobody knows.
    fn rows(&self, table: &Table) -> Option<f64>;

    /// As [`Statistics::rows`], for a plan that does not rest on it.
    fn glance(&self, table: &Table) -> Option<f64> {
        self.rows(table)
    }

    /// What ANALYZE has found of a column, by its place.
    fn column(&self, table: &Table, column: usize) -> Option<Arc<ColumnStatistics>> {
        let _ = (table, column);
        None
    }
}

/// Makes plans.
#[derive(Clone, Copy)]
pub(crate) struct Planner<'a> {
    /// What is known of the data; none where only names and types matter.
    pub(crate) statistics: Option<&'a dyn Statistics>,
    /// Whether something is chosen by it, so that the plan rests on it.
    pub(crate) chooses: bool,
    /// By which ways.
    pub(crate) methods: Methods,
}

/// The places that the columns of some rows have in FROM.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    places: Vec<usize>,
    positions: HashMap<usize, usize>,
}

impl Layout {
    fn new(places: Vec<usize>) -> Layout {
        let positions = places.iter().enumerate();
        let positions = positions
            .map(|(position, place)| (*place, position))
            .collect();
        Layout { places, positions }
    }

    /// That of an item.
    fn of(start: usize, width: usize) -> Layout {
        Layout::new((start..start + width).collect())
    }

    /// The columns of both, those of the other behind.
    fn followed_by(&self, other: &Layout) -> Layout {
        Layout::new(self.places.iter().chain(&other.places).copied().collect())
    }

    fn width(&self) -> usize {
        self.places.len()
    }

    /// Whether all columns that an expression names are among them, and it names some.
    fn holds(&self, expr: &Expr) -> bool {
        let strange = |part: &Expr| match part.kind {
            ExprKind::Column(place) => !self.positions.contains_key(&place),
            _ => false,
        };
        names_columns(expr) && !expr.any(&strange)
    }

    /// The expression over rows that are laid out so.
    fn localize(&self, expr: &Expr) -> Result<Expr> {
        fn walk(expr: &mut Expr, layout: &Layout) -> Result<()> {
            if let ExprKind::Column(place) = &mut expr.kind {
                let position = layout.positions.get(place);
                let missing = || Error::internal("a column that is not in the row");
                *place = *position.ok_or_else(missing)?;
            }
            expr.parts_mut()
                .into_iter()
                .try_for_each(|part| walk(part, layout))
        }
        let mut local = expr.clone();
        walk(&mut local, self)?;
        Ok(local)
    }

    /// All of the conditions, over rows that are laid out so.
    fn compile_all(&self, conditions: &[Expr]) -> Result<Option<Program>> {
        let local: Result<Vec<_>> = conditions.iter().map(|one| self.localize(one)).collect();
        Ok(all_of(local?).as_ref().map(compile))
    }
}

/// A plan, what its columns are, and what is expected of it.
pub(crate) struct Path {
    plan: Plan,
    layout: Layout,
    /// How many rows it gives.
    rows: f64,
    /// What computing all of them costs, in the units of [`estimate`].
    cost: f64,
}

impl Path {
    /// The plan with the columns of an item at their places.
    fn in_places(self, start: usize, width: usize) -> Result<Plan> {
        self.with_columns(start..start + width, &Meanings::default())
    }

    /// The plan with the columns of these places, some of which stand for something else.
    fn with_columns(
        self,
        wanted: impl Iterator<Item = usize> + Clone,
        meanings: &Meanings,
    ) -> Result<Plan> {
        if self.layout.places.iter().copied().eq(wanted.clone()) {
            return Ok(self.plan);
        }
        let column = |place: usize| {
            let mut column = Expr::new(ExprKind::Column(place), TypeId::UNKNOWN, -1);
            flatten::put(&mut column, meanings);
            Ok(compile(&self.layout.localize(&column)?))
        };
        let columns: Result<_> = wanted.map(column).collect();
        Ok(Plan::Project(Rc::new(self.plan), columns?))
    }

    /// Those of its rows that meet conditions.
    fn filtered(self, conditions: &[Expr]) -> Result<Path> {
        let Some(condition) = self.layout.compile_all(conditions)? else {
            return Ok(self);
        };
        Ok(Path {
            rows: self.rows * conditions::selectivity(conditions, &conditions::Unknown),
            cost: self.cost + self.rows * estimate::TEST,
            plan: Plan::Filter(Rc::new(self.plan), condition),
            layout: self.layout,
        })
    }
}

impl Planner<'_> {
    /// The plan of a source's rows that meet the conditions, its columns at their places.
    ///
    /// # Errors
    /// XX000 for a scan whose guards are not settled.
    pub(crate) fn plan(&self, source: Source, conditions: Vec<Expr>) -> Result<Plan> {
        let (start, width) = (source.start, source.width);
        let conditions = match folded(factor::factored(conditions)) {
            Folded::To(conditions) => conditions,
            Folded::Never(condition) => return Ok(fold::nothing(&condition)),
        };
        let (for_rows, once): (Vec<_>, Vec<_>) = conditions.into_iter().partition(differs);
        let plan = match source.kind {
            SourceKind::Scan { scan, guards, own } if scan.partitions.is_some() => {
                self.append(&scan, (guards, own), for_rows, start)?.0
            }
            SourceKind::Scan { scan, guards, own } => {
                // There is nothing to choose by numbers of rows.
                let glancing = Planner {
                    chooses: false,
                    ..*self
                };
                let (scan, _) = glancing.scan_plan(*scan, (guards, own), for_rows, start)?;
                Plan::Scan(scan)
            }
            SourceKind::Join { .. } => {
                let (path, meanings) = self.join_path(source, for_rows)?;
                path.with_columns(start..start + width, &meanings)?
            }
            _ => self.path(source, for_rows)?.in_places(start, width)?,
        };
        Ok(match all_of(once) {
            None => plan,
            Some(condition) => Plan::Once(Rc::new(plan), compile(&condition)),
        })
    }

    /// A scan for rows that meet conditions, which are over the columns from a place on, and what is
    /// expected of it.
    fn scan_plan(
        &self,
        scan: Scan,
        (guards, own): (Option<Vec<Expr>>, Vec<Expr>),
        conditions: Vec<Expr>,
        start: usize,
    ) -> Result<(Scan, Expected)> {
        let guards = guards.ok_or_else(|| Error::internal("a scan without guards"))?;
        let guards = shifted(guards, start);
        let all = shifted(own.into_iter().chain(conditions).collect(), start);
        let expected = self.estimate_scan(&scan, &guards, &all);
        let mut scan = self.choose_access(scan, guards, all)?;
        scan.expected = self.statistics.map(|_| Box::new(expected));
        Ok((scan, expected))
    }

    /// A path to a source's rows that meet the conditions.
    fn path(&self, source: Source, conditions: Vec<Expr>) -> Result<Path> {
        let start = source.start;
        match source.kind {
            SourceKind::Scan { scan, guards, own } => {
                let layout = Layout::of(start, source.width);
                let (plan, expected) = match scan.partitions {
                    Some(_) => self.append(&scan, (guards, own), conditions, start)?,
                    None => {
                        let found = self.scan_plan(*scan, (guards, own), conditions, start)?;
                        (Plan::Scan(found.0), found.1)
                    }
                };
                Ok(Path {
                    plan,
                    layout,
                    rows: expected.rows,
                    cost: expected.cost,
                })
            }
            SourceKind::Other { plan, .. } => {
                let layout = Layout::of(start, source.width);
                let local = shifted(conditions, start);
                let plan = keyed(*plan, &local);
                let (plan, local) = self.push_down(plan, local)?;
                let estimate = self.estimate_plan(&plan);
                let path = Path {
                    layout: Layout::new((0..layout.width()).collect()),
                    plan,
                    rows: estimate.rows,
                    cost: estimate.cost,
                };
                Ok(Path {
                    layout,
                    ..path.filtered(&local)?
                })
            }
            SourceKind::Derived(derived) => {
                self.derived_path(*derived, (start, source.width), conditions)
            }
            SourceKind::Join { .. } => {
                let wanted: Vec<usize> = source.ranges().into_iter().flatten().collect();
                let (path, meanings) = self.join_path(source, conditions)?;
                if meanings.is_empty() {
                    return Ok(path);
                }
                // What stands on the right of a semi-join is gone.
                let known = |place: &usize| {
                    let mut column = Expr::new(ExprKind::Column(*place), TypeId::UNKNOWN, -1);
                    flatten::put(&mut column, &meanings);
                    let mut columns = columns_of(&column).into_iter();
                    columns.all(|column| path.layout.positions.contains_key(&column))
                };
                let wanted: Vec<usize> = wanted.into_iter().filter(known).collect();
                let (rows, cost) = (path.rows, path.cost);
                Ok(Path {
                    plan: path.with_columns(wanted.iter().copied(), &meanings)?,
                    layout: Layout::new(wanted),
                    rows,
                    cost,
                })
            }
        }
    }

    /// A path to the rows of joins, and what those of their columns stand for that it does not have.
    fn join_path(&self, source: Source, conditions: Vec<Expr>) -> Result<(Path, Meanings)> {
        let source = reduced(source, &conditions);
        let (source, conditions, meanings) = flattened(source, conditions);
        let source = with_single_pairs(reduced(source, &conditions));
        let path = match source.kind {
            SourceKind::Join {
                kind,
                left,
                right,
                on,
                lateral,
            } if kind == JoinKind::Full
                || lateral && !(kind == JoinKind::Inner && stands_apart(&left, &right)) =>
            {
                self.join_as_written(kind, *left, *right, on, lateral, conditions)
            }
            _ => self.join_in_order(source, conditions),
        };
        Ok((path?, meanings))
    }
}

/// What is expected of a plan, with what is known of the data.
pub fn expected(plan: &Plan, statistics: &dyn Statistics) -> Expected {
    let planner = Planner {
        statistics: Some(statistics),
        chooses: false,
        methods: Methods::default(),
    };
    planner.estimate_plan(plan)
}

impl Path {
    /// Its rows if conditions are met that name none of its columns.
    fn once(self, conditions: Vec<Expr>) -> Result<Path> {
        let (for_rows, once): (Vec<_>, Vec<_>) = conditions.into_iter().partition(differs);
        let path = self.filtered(&for_rows)?;
        Ok(match all_of(once) {
            None => path,
            Some(condition) => Path {
                plan: Plan::Once(Rc::new(path.plan), compile(&condition)),
                ..path
            },
        })
    }
}

/// Whether a condition's value may differ from row to row.
fn differs(condition: &Expr) -> bool {
    condition.any(&|part| matches!(part.kind, ExprKind::Column(_)) || part.is_volatile_call())
}

/// The plan's rows that meet the conditions, which are over its columns.
pub(crate) fn filtered(plan: Plan, conditions: Vec<Expr>) -> Plan {
    match all_of(conditions) {
        None => plan,
        Some(condition) => Plan::Filter(Rc::new(plan), compile(&condition)),
    }
}

/// The equality function of oids.
const OID_EQUAL: u32 = 184;
/// The equality function of names.
const NAME_EQUAL: u32 = 62;

/// The plan, which looks rows up by a column if one of the conditions says what it must be.
fn keyed(plan: Plan, conditions: &[Expr]) -> Plan {
    let Plan::System(table, catalog, None) = plan else {
        return plan;
    };
    let key = conditions.iter().find_map(|condition| {
        let ExprKind::Call(function, args, _) = &condition.kind else {
            return None;
        };
        let [left, right] = args.as_slice() else {
            return None;
        };
        if !matches!(function.0.oid, OID_EQUAL | NAME_EQUAL) {
            return None;
        }
        [(left, right), (right, left)]
            .into_iter()
            .find_map(|(column, value)| match column.bare().kind {
                ExprKind::Column(place) if system::has_lookup(&table, place) && is_fixed(value) => {
                    Some((place, compile(value)))
                }
                _ => None,
            })
    });
    Plan::System(table, catalog, key)
}

/// Whether the value is the same for all rows.
fn is_fixed(expr: &Expr) -> bool {
    !expr.any(&|part| matches!(part.kind, ExprKind::Column(_) | ExprKind::Sub(..)))
}
