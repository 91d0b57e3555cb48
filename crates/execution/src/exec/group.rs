//! GROUP BY and aggregates, DISTINCT and whatever else asks for equal rows.

use base::hash::HashMap;
use base::Result;

use super::cursor::{open, Cursor};
use super::sort::sort_rows;
use super::{row_bytes, Exec};
use crate::exec::program::Evaluate;
use functions::Accumulator;
use planner::plan::Program;
use planner::plan::{AggregatePlan, GroupingSet, Plan, Row};
use types::hash_row;
use types::{self, Datum, TypeId};

/// Distinct rows, numbered in the order they were first seen. NULLs are equal here.
#[derive(Debug)]
pub struct Groups {
    types: Vec<TypeId>,
    by_hash: HashMap<u64, Vec<usize>>,
    keys: Vec<Row>,
    bytes: usize,
}

impl Groups {
    /// None yet, of columns of these types.
    pub fn new(types: Vec<TypeId>) -> Groups {
        Groups {
            types,
            by_hash: HashMap::default(),
            keys: Vec::new(),
            bytes: 0,
        }
    }

    /// The memory that they take, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of a row, and whether it is new.
    pub fn find_or_add(&mut self, row: Row) -> (usize, bool) {
        let hash = hash_row(&self.types, &row);
        let known = self.by_hash.entry(hash).or_default();
        let found = known.iter().find(|group| {
            let key = &self.keys[**group];
            let mut columns = self.types.iter().zip(key.iter().zip(&row));
            columns.all(|(ty, (a, b))| types::equal(*ty, a, b))
        });
        if let Some(group) = found {
            return (*group, false);
        }
        known.push(self.keys.len());
        self.bytes += row_bytes(&row);
        self.keys.push(row);
        (self.keys.len() - 1, true)
    }

    /// The rows, in order.
    pub fn into_keys(self) -> Vec<Row> {
        self.keys
    }
}

/// One aggregate within one group.
struct State {
    accumulator: Accumulator,
    /// With DISTINCT or ORDER BY, the arguments wait here until the end.
    seen: Option<Groups>,
    waiting: Vec<Row>,
    waiting_bytes: usize,
}

impl State {
    fn new(plan: &AggregatePlan) -> State {
        State {
            accumulator: plan.aggregate.start(&plan.types),
            seen: plan.distinct.then(|| Groups::new(plan.types.clone())),
            waiting: Vec::new(),
            waiting_bytes: 0,
        }
    }

    fn step(&mut self, plan: &AggregatePlan, cx: &mut Exec<'_>, row: &[Datum]) -> Result<()> {
        if let Some(filter) = &plan.filter {
            if !filter.test(cx, row)? {
                return Ok(());
            }
        }
        let is_plain = plan.order.is_empty() && !plan.distinct;
        if let ([arg], true) = (plan.args.as_slice(), is_plain) {
            return match arg.eval(cx, row) {
                Ok(ref value) => {
                    let args = std::slice::from_ref(value);
                    self.accumulator.step(cx.context, args)
                }
                Err(error) => Err(error),
            };
        }
        let mut args = Vec::with_capacity(plan.args.len());
        for arg in &plan.args {
            args.push(arg.eval(cx, row)?);
        }
        if let Some(seen) = &mut self.seen {
            if !seen.find_or_add(args.clone()).1 {
                return Ok(());
            }
            cx.check_held(seen.bytes())?;
        }
        if is_plain {
            return self.accumulator.step(cx.context, &args);
        }
        for key in &plan.order {
            args.push(key.value.eval(cx, row)?);
        }
        self.waiting_bytes += row_bytes(&args);
        self.waiting.push(args);
        cx.check_held(self.waiting_bytes)
    }

    fn finish(mut self, plan: &AggregatePlan, cx: &mut Exec<'_>) -> Result<Datum> {
        let width = plan.args.len();
        let order: Vec<_> = plan
            .order
            .iter()
            .enumerate()
            .map(|(place, key)| (width + place, key.ty, key.descending, key.nulls_first))
            .collect();
        let by_value: Vec<_> = plan
            .types
            .iter()
            .enumerate()
            .map(|(place, ty)| (place, *ty, false, false))
            .collect();
        let order = if order.is_empty() { by_value } else { order };
        sort_rows(&mut self.waiting, &order)?;
        for row in &self.waiting {
            cx.tick()?;
            self.accumulator.step(cx.context, &row[..width])?;
        }
        self.accumulator.finish(cx.context)
    }
}

/// The rows of a [`Plan::Aggregate`].
pub struct GroupCursor<'p> {
    plan: &'p Plan,
    rows: Option<std::vec::IntoIter<Row>>,
}

impl<'p> GroupCursor<'p> {
    /// A cursor over such a plan.
    pub fn new(plan: &'p Plan) -> GroupCursor<'p> {
        GroupCursor { plan, rows: None }
    }

    fn compute(&self, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
        let Plan::Aggregate {
            input,
            groups,
            aggregates,
            sets,
        } = self.plan
        else {
            return Ok(Vec::new());
        };
        let mut known: Vec<_> = sets
            .iter()
            .map(|set| Grouped::new(set, groups, aggregates))
            .collect();
        let mut input = open(input);
        let mut row = Row::new();
        while input.next_into(cx, &mut row)? {
            cx.tick()?;
            let mut grew = false;
            for grouped in &mut known {
                grew |= grouped.take(groups, aggregates, &row, cx)?;
            }
            if grew {
                cx.check_held(known.iter().map(|grouped| grouped.known.bytes()).sum())?;
            }
        }
        let mut out = Vec::with_capacity(known.iter().map(|grouped| grouped.states.len()).sum());
        for grouped in known {
            grouped.finish(groups.len(), aggregates, &mut out, cx)?;
        }
        Ok(out)
    }
}

/// The groups of one set.
struct Grouped<'p> {
    set: &'p GroupingSet,
    known: Groups,
    /// The aggregates of each group.
    states: Vec<Vec<State>>,
}

impl<'p> Grouped<'p> {
    fn new(
        set: &'p GroupingSet,
        groups: &[(Program, TypeId)],
        aggregates: &[AggregatePlan],
    ) -> Grouped<'p> {
        let types = set.columns.iter().map(|column| groups[*column].1);
        let mut grouped = Grouped {
            set,
            known: Groups::new(types.collect()),
            states: Vec::new(),
        };
        if set.columns.is_empty() {
            grouped.known.find_or_add(Vec::new());
            grouped.states.push(fresh(aggregates));
        }
        grouped
    }

    /// Takes in a row; whether a group is new.
    fn take(
        &mut self,
        groups: &[(Program, TypeId)],
        aggregates: &[AggregatePlan],
        row: &[Datum],
        cx: &mut Exec<'_>,
    ) -> Result<bool> {
        let (mut group, mut new) = (0, false);
        if !self.set.columns.is_empty() {
            let mut key = Vec::with_capacity(groups.len() + aggregates.len());
            for column in &self.set.columns {
                key.push(groups[*column].0.eval(cx, row)?);
            }
            (group, new) = self.known.find_or_add(key);
            if new {
                self.states.push(fresh(aggregates));
            }
        }
        for (state, plan) in self.states[group].iter_mut().zip(aggregates) {
            state.step(plan, cx, row)?;
        }
        Ok(new)
    }

    fn finish(
        self,
        groups: usize,
        aggregates: &[AggregatePlan],
        out: &mut Vec<Row>,
        cx: &mut Exec<'_>,
    ) -> Result<()> {
        let whole = self.set.columns.len() == groups;
        for (mut row, states) in self.known.into_keys().into_iter().zip(self.states) {
            if !whole {
                let mut wider = vec![Datum::Null; groups];
                for (column, value) in self.set.columns.iter().zip(row) {
                    wider[*column] = value;
                }
                row = wider;
            }
            cx.tick()?;
            for (state, plan) in states.into_iter().zip(aggregates) {
                row.push(state.finish(plan, cx)?);
            }
            row.extend(self.set.answers.iter().map(|bits| Datum::Int4(*bits)));
            out.push(row);
        }
        Ok(())
    }
}

/// Aggregates before the first row.
fn fresh(aggregates: &[AggregatePlan]) -> Vec<State> {
    aggregates.iter().map(State::new).collect()
}

impl Cursor for GroupCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if self.rows.is_none() {
            self.rows = Some(self.compute(cx)?.into_iter());
        }
        Ok(self.rows.as_mut().and_then(Iterator::next))
    }
}
