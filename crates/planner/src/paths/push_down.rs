//! Conditions on what a query in FROM gives, tested as far inside of it as they may be.
//!
//! ```text
//! select * from (select k, count(*) as n from t group by k) as d where k = 7 and n > 2
//!     Filter n > 2 over Aggregate by k over Scan t, k = 7
//! ```
//! A condition on columns that are grouped by leaves whole groups out; one on a union leaves rows of its
//! parts out; one on columns of DISTINCT leaves out all rows that are alike.
//!
//! # Invariants
//! - Only what tells nothing of a row moves ([`leaks`]), so that it may come before a barrier's own
//!   conditions, and before what would fail.
//! - Rows keep their order, unless what they move below has none.
//!
//! # What it leaves out
//! Windows, INTERSECT and EXCEPT, and whatever limits rows.

use std::rc::Rc;

use base::Result;

use super::{filtered, Planner};
use crate::logical::{columns_of, leaks, looks_outside, names_columns};
use crate::plan::{Expr, ExprKind, Plan, Program, Scan, SetOperation};

impl Planner<'_> {
    /// A plan's rows that meet the conditions, and the conditions that are to be tested of them yet.
    pub(super) fn push_down(&self, plan: Plan, conditions: Vec<Expr>) -> Result<(Plan, Vec<Expr>)> {
        if !takes_conditions(&plan) {
            return Ok((plan, conditions));
        }
        let may_move = |condition: &Expr| {
            let stays =
                |part: &Expr| matches!(part.kind, ExprKind::Sub(..)) || part.is_volatile_call();
            let tells = leaks(condition) || condition.any(&stays);
            names_columns(condition) && !tells && !looks_outside(condition)
        };
        let (inside, above): (Vec<_>, Vec<_>) = conditions.into_iter().partition(may_move);
        Ok((self.push(plan, inside, false)?, above))
    }

    /// A plan's rows that meet the conditions; `free` says that their order does not matter.
    fn push(&self, plan: Plan, conditions: Vec<Expr>, free: bool) -> Result<Plan> {
        if conditions.is_empty() {
            return Ok(plan);
        }
        Ok(match plan {
            Plan::Project(input, columns) => {
                let of = |place: usize| columns.get(place).and_then(Program::as_column);
                let (below, above) = moved(conditions, &of);
                let input = self.push_shared(input, below, free)?;
                filtered(Plan::Project(input, columns), above)
            }
            Plan::Aggregate {
                input,
                groups,
                aggregates,
                sets,
            } => {
                let whole = sets.len() == 1 && sets[0].columns.len() == groups.len();
                let of = |place: usize| {
                    let group = groups.get(place).filter(|_| whole);
                    group.and_then(|group| group.0.as_column())
                };
                let (below, above) = moved(conditions, &of);
                let input = self.push_shared(input, below, true)?;
                let plan = Plan::Aggregate {
                    input,
                    groups,
                    aggregates,
                    sets,
                };
                filtered(plan, above)
            }
            Plan::Distinct(input, columns) => {
                let of = |place: usize| {
                    let is_told_apart = columns.iter().any(|column| column.0 == place);
                    is_told_apart.then_some(place)
                };
                let (below, above) = moved(conditions, &of);
                let input = self.push_shared(input, below, free)?;
                filtered(Plan::Distinct(input, columns), above)
            }
            Plan::SetOperation(SetOperation::Union, all, parts, types) => {
                let parts = parts.into_iter();
                let parts = parts.map(|part| self.push(part, conditions.clone(), true));
                let parts: Result<Vec<_>> = parts.collect();
                Plan::SetOperation(SetOperation::Union, all, parts?, types)
            }
            Plan::Filter(input, condition) => {
                Plan::Filter(self.push_shared(input, conditions, free)?, condition)
            }
            Plan::Sort(input, keys) => Plan::Sort(self.push_shared(input, conditions, free)?, keys),
            Plan::Trim(input, width) => {
                Plan::Trim(self.push_shared(input, conditions, free)?, width)
            }
            Plan::Scan(scan) if free && is_whole(&scan) => {
                let expected = self.estimate_scan(&scan, &[], &conditions);
                let mut scan = self.choose_access(scan, Vec::new(), conditions)?;
                scan.expected = self.statistics.map(|_| Box::new(expected));
                Plan::Scan(scan)
            }
            plan => filtered(plan, conditions),
        })
    }

    /// As [`Planner::push`], of an input that others may have as well.
    fn push_shared(&self, input: Rc<Plan>, conditions: Vec<Expr>, free: bool) -> Result<Rc<Plan>> {
        if conditions.is_empty() {
            return Ok(input);
        }
        match Rc::try_unwrap(input) {
            Ok(input) => self.push(input, conditions, free).map(Rc::new),
            Err(shared) => Ok(match super::all_of(conditions) {
                None => shared,
                Some(condition) => Rc::new(Plan::Filter(shared, crate::plan::compile(&condition))),
            }),
        }
    }
}

/// Whether conditions on a plan's rows may be tested anywhere but above it.
fn takes_conditions(plan: &Plan) -> bool {
    match plan {
        Plan::Project(input, _)
        | Plan::Filter(input, _)
        | Plan::Sort(input, _)
        | Plan::Trim(input, _) => takes_conditions(input),
        Plan::Aggregate { .. } | Plan::Distinct(..) => true,
        Plan::SetOperation(operation, ..) => *operation == SetOperation::Union,
        _ => false,
    }
}

/// Whether a scan reads all of its table, in the order of its own.
fn is_whole(scan: &Scan) -> bool {
    let access = &scan.access;
    let keyed = !access.equal.is_empty() || access.low.is_some() || access.high.is_some();
    let looks = scan.inverted.is_some() || !scan.alternatives.is_empty();
    let chosen = keyed || looks || scan.index.is_some() || scan.backward;
    scan.filter.is_none() && !chosen
}

/// The conditions whose columns are all columns of an input, over that input, and the others.
fn moved(conditions: Vec<Expr>, below: &dyn Fn(usize) -> Option<usize>) -> (Vec<Expr>, Vec<Expr>) {
    let (mut inside, mut above) = (Vec::new(), Vec::new());
    for mut condition in conditions {
        match columns_of(&condition)
            .into_iter()
            .all(|place| below(place).is_some())
        {
            true => {
                put_below(&mut condition, below);
                inside.push(condition);
            }
            false => above.push(condition),
        }
    }
    (inside, above)
}

fn put_below(expr: &mut Expr, below: &dyn Fn(usize) -> Option<usize>) {
    if let ExprKind::Column(place) = &mut expr.kind {
        *place = below(*place).unwrap_or(*place);
    }
    for part in expr.parts_mut() {
        put_below(part, below);
    }
}
