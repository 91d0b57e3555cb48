//! GROUP BY and aggregates by hash, and the hash table for whatever else asks for equal rows.
//!
//! Once the groups of a query have as much memory as they may have (`work_mem`, `hash_mem_multiplier`
//! times), no group is added to them: rows of groups that are not known are divided into [`Parts`],
//! for each set of a GROUPING SETS its own, and each part is grouped by itself at the end. A group's
//! rows so all come to one table, in their order.
//!
//! # What it leaves out
//! The states of aggregates stay in memory: the arguments of one with DISTINCT or ORDER BY are bounded
//! by `quorate.query_mem`, those of the others by the node's memory alone.

use base::large::{Items, Large};
use base::memory::Reservation;
use base::Result;

use super::accumulate::Accumulating;
use super::cursor::{open, Cursor};
use super::measure::Measuring;
use super::parts::{Part, Parts};
use super::sort::sort_rows;
use super::sorted_groups::SortedGroupCursor;
use super::Exec;
use crate::exec::program::Evaluate;
use crate::kept::{row_bytes, HashedPlaces, RowStore, HASHED_BYTES};
use crate::spool::SpoolReader;
use planner::plan::Program;
use planner::plan::{AggregatePlan, GroupingSet, Plan, Row};
use types::{self, Datum, TypeId};
use types::{hash_row, hash_values};

/// Distinct rows, numbered in the order they were first seen. NULLs are equal here.
#[derive(Debug)]
pub struct Groups {
    types: Vec<TypeId>,
    places: HashedPlaces,
    keys: Large<Vec<Row>>,
    held: Reservation,
}

impl Groups {
    /// None yet, of columns of these types.
    pub fn new(types: Vec<TypeId>) -> Groups {
        Groups {
            types,
            places: HashedPlaces::default(),
            keys: Large::default(),
            held: Reservation::of("A hash table"),
        }
    }

    /// The memory that they take, in bytes.
    pub fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// Counts what is kept for them elsewhere.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        self.held.grow(bytes)
    }

    /// The number of a row, and whether it is new.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn find_or_add(&mut self, mut row: Row) -> Result<(usize, bool)> {
        self.find_or_take(&mut row)
    }

    /// As [`Groups::find_or_add`], of a row that is taken only if it is new.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn find_or_take(&mut self, row: &mut Row) -> Result<(usize, bool)> {
        let hash = self.hash(row);
        match self.find(hash, row) {
            Some(group) => Ok((group, false)),
            None => Ok((self.add(hash, std::mem::take(row))?, true)),
        }
    }

    /// The hash of a row.
    #[inline]
    pub fn hash(&self, row: &[Datum]) -> u64 {
        hash_row(&self.types, row)
    }

    /// The number of a row of that hash, if it is there.
    #[inline]
    pub fn find(&self, hash: u64, row: &[Datum]) -> Option<usize> {
        self.find_values(hash, row.iter())
    }

    /// As [`Groups::find`], of values that stand apart.
    #[inline]
    fn find_values<'d>(
        &self,
        hash: u64,
        values: impl Iterator<Item = &'d Datum> + Clone,
    ) -> Option<usize> {
        let mut known = self.places.first(hash);
        while let Some(group) = known {
            let mut columns = self
                .types
                .iter()
                .zip(self.keys[group].iter().zip(values.clone()));
            if columns.all(|(ty, (a, b))| types::equal(*ty, a, b)) {
                return Some(group);
            }
            known = self.places.next(group);
        }
        None
    }

    /// Adds a row of that hash, which is not there; its number.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    #[inline]
    pub fn add(&mut self, hash: u64, row: Row) -> Result<usize> {
        let group = self.keys.len();
        self.held.grow(row_bytes(&row) + HASHED_BYTES)?;
        self.places.add(hash, group);
        self.keys.push(row);
        Ok(group)
    }

    /// The rows, in order, and the memory that they take.
    pub fn into_keys(self) -> (Large<Vec<Row>>, Reservation) {
        (self.keys, self.held)
    }
}

/// One aggregate within one group.
pub(super) struct State {
    accumulator: Accumulating,
    /// With DISTINCT or ORDER BY, the arguments wait here until the end.
    waiting: Option<Box<Waiting>>,
    /// The memory of the accumulator that was counted.
    counted: usize,
}

/// Arguments of an aggregate that wait.
struct Waiting {
    /// Those that were there before, with DISTINCT.
    seen: Option<Groups>,
    rows: RowStore,
}

impl State {
    /// Before the first row.
    pub(super) fn new(plan: &AggregatePlan) -> State {
        let mut accumulator = Accumulating::start(&plan.aggregate, &plan.types);
        if plan.aggregate.ordered_set().is_some() {
            let order = plan.order.iter();
            let order = order.map(|key| (key.descending, key.nulls_first));
            if let Some(built_in) = accumulator.built_in() {
                built_in.sort_by(order.collect());
            }
        }
        State {
            accumulator,
            waiting: (plan.distinct || !plan.order.is_empty()).then(|| {
                Box::new(Waiting {
                    seen: plan.distinct.then(|| Groups::new(plan.types.clone())),
                    rows: RowStore::of("An aggregate"),
                })
            }),
            counted: 0,
        }
    }

    /// Takes in a row.
    ///
    /// # Errors
    /// What the arguments and the aggregate raise.
    pub(super) fn step(
        &mut self,
        plan: &AggregatePlan,
        cx: &mut Exec<'_>,
        row: &[Datum],
    ) -> Result<()> {
        if let Some(filter) = &plan.filter {
            if !filter.test(cx, row)? {
                return Ok(());
            }
        }
        let Some(waiting) = &mut self.waiting else {
            return match plan.args.as_slice() {
                [] => self.accumulator.step(cx, &[]),
                [arg] => match arg.as_column() {
                    // What stands in the row needs no copy.
                    Some(place) if !row[place].is_long() => {
                        self.accumulator.step(cx, &row[place..=place])
                    }
                    _ => {
                        let value = arg.eval(cx, row)?;
                        self.accumulator.step(cx, std::slice::from_ref(&value))
                    }
                },
                several => {
                    let args = several.iter().map(|arg| arg.eval(cx, row));
                    let args = args.collect::<Result<Row>>()?;
                    self.accumulator.step(cx, &args)
                }
            };
        };
        let mut args = Vec::with_capacity(plan.args.len() + plan.order.len());
        for arg in &plan.args {
            args.push(arg.eval(cx, row)?);
        }
        if let Some(seen) = &mut waiting.seen {
            if !seen.find_or_add(args.clone())?.1 {
                return Ok(());
            }
            cx.check_held(seen.bytes())?;
        }
        for key in &plan.order {
            args.push(key.value.eval(cx, row)?);
        }
        waiting.rows.push(args)?;
        cx.check_held(waiting.rows.bytes())
    }

    /// By how much the accumulator has grown since it was asked last.
    #[inline]
    pub(super) fn growth(&mut self) -> usize {
        let bytes = self.accumulator.bytes();
        let more = bytes.saturating_sub(self.counted);
        self.counted += more;
        more
    }

    /// Its value.
    ///
    /// # Errors
    /// What the aggregate raises.
    pub(super) fn finish(mut self, plan: &AggregatePlan, cx: &mut Exec<'_>) -> Result<Datum> {
        let Some(waiting) = &mut self.waiting else {
            return self.accumulator.finish(cx);
        };
        let width = plan.args.len();
        let is_sorted = plan.aggregate.ordered_set().is_some();
        if let (true, Some(direct)) = (is_sorted && width > plan.order.len(), plan.args.first()) {
            // It names no columns.
            let direct = direct.eval(cx, &[])?;
            if let Some(built_in) = self.accumulator.built_in() {
                built_in.set_direct(direct);
            }
        }
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
        sort_rows(waiting.rows.rows_mut(), &order)?;
        let mut held = Reservation::of("An aggregate");
        for row in waiting.rows.iter() {
            cx.tick()?;
            self.accumulator.step(cx, &row[..width])?;
            held.set(self.accumulator.bytes())?;
        }
        self.accumulator.finish(cx)
    }
}

/// A cursor over the rows of a [`Plan::Aggregate`].
pub(super) fn open_groups<'p>(plan: &'p Plan, measures: Measuring<'_>) -> Box<dyn Cursor + 'p> {
    let Plan::Aggregate {
        input,
        groups,
        aggregates,
        sets,
    } = plan
    else {
        return Box::new(GroupCursor::new(plan));
    };
    match (plan.sorted_groups(), sets.as_slice()) {
        (Some(columns), [set]) => {
            let types = groups.iter().map(|group| group.1);
            let columns = columns.into_iter().zip(types).collect();
            let input = open(input, measures);
            Box::new(SortedGroupCursor::new(
                input,
                columns,
                aggregates,
                &set.answers,
            ))
        }
        _ => Box::new(GroupCursor::new(plan)),
    }
}

/// The rows of a [`Plan::Aggregate`], by a table of groups.
struct GroupCursor<'p> {
    plan: &'p Plan,
    rows: Option<Items<std::vec::IntoIter<Row>>>,
    /// The memory that they take.
    held: Vec<Reservation>,
    /// Rows of groups that come after those, and by which set they are grouped.
    left: Vec<(usize, Part)>,
}

/// What an error calls these rows.
pub(super) const WHAT: &str = "A grouping";

impl<'p> GroupCursor<'p> {
    fn new(plan: &'p Plan) -> GroupCursor<'p> {
        GroupCursor {
            plan,
            rows: None,
            held: Vec::new(),
            left: Vec::new(),
        }
    }

    fn compute(&mut self, cx: &mut Exec<'_>) -> Result<Large<Vec<Row>>> {
        let Plan::Aggregate {
            input,
            groups,
            aggregates,
            sets,
        } = self.plan
        else {
            return Ok(Large::default());
        };
        let mut known: Vec<_> = sets
            .iter()
            .map(|set| Grouped::new(set, groups, aggregates, 0))
            .collect();
        let mut input = open(input, cx.measures.as_ref());
        let mut row = Row::new();
        while input.next_into(cx, &mut row)? {
            cx.tick()?;
            let mut grew = false;
            for grouped in &mut known {
                grew |= grouped.take(groups, aggregates, &row, cx)?;
            }
            if grew && cx.is_hash_due(known.iter().map(|grouped| grouped.known.bytes()).sum())? {
                known.iter_mut().for_each(|grouped| grouped.is_full = true);
            }
        }
        let memory = known.iter().map(|grouped| grouped.known.bytes()).sum();
        let groups_known = known.iter().map(|grouped| grouped.groups).sum();
        let parts_before = self.left.len();
        let mut out = Large::from(Vec::with_capacity(groups_known));
        for (number, mut grouped) in known.into_iter().enumerate() {
            if let Some(parts) = grouped.parts.take() {
                let parts = parts.finish_filled()?;
                self.left.extend(parts.map(|part| (number, part)));
            }
            let held = grouped.finish(groups.len(), aggregates, &mut out, cx)?;
            self.held.push(held);
        }
        self.note_kept(memory, parts_before, cx);
        Ok(out)
    }

    /// Notes what a batch took, with the parts of its rows that were put elsewhere, if that is measured.
    fn note_kept(&self, memory: usize, parts_before: usize, cx: &Exec<'_>) {
        if let Some(measures) = &cx.measures {
            let parts = self.left.iter().skip(parts_before);
            let disk = parts.map(|(_, part)| part.rows.bytes()).sum();
            measures.keeps(self.plan, memory, disk);
        }
    }

    /// The groups of a part of the rows.
    #[cold]
    fn compute_part(
        &mut self,
        set: usize,
        part: &Part,
        cx: &mut Exec<'_>,
    ) -> Result<Large<Vec<Row>>> {
        let Plan::Aggregate {
            groups,
            aggregates,
            sets,
            ..
        } = self.plan
        else {
            return Ok(Large::default());
        };
        let mut grouped = Grouped::new(&sets[set], groups, aggregates, part.level + 1);
        let (mut reader, mut row) = (SpoolReader::new(), Row::new());
        while reader.next_into(&part.rows, &mut row)? {
            cx.tick()?;
            if grouped.take(groups, aggregates, &row, cx)? {
                grouped.is_full = cx.is_hash_due(grouped.known.bytes())?;
            }
        }
        let (memory, parts_before) = (grouped.known.bytes(), self.left.len());
        if let Some(parts) = grouped.parts.take() {
            let parts = parts.finish_filled()?;
            self.left.extend(parts.map(|part| (set, part)));
        }
        self.note_kept(memory, parts_before, cx);
        let mut out = Large::from(Vec::with_capacity(grouped.groups));
        let held = grouped.finish(groups.len(), aggregates, &mut out, cx)?;
        self.held.push(held);
        Ok(out)
    }
}

/// The groups of one set.
struct Grouped<'p> {
    set: &'p GroupingSet,
    /// The columns of the input that the values are by which rows are grouped, if they are columns.
    columns: Option<Vec<usize>>,
    known: Groups,
    /// The aggregates of each group, one group behind the other.
    states: Large<Vec<State>>,
    groups: usize,
    /// The values by which the row at work is grouped, where they are not taken from the row as they
    /// stand there.
    key: Row,
    /// Whether no group is added any more.
    is_full: bool,
    /// Rows of groups that would have to be added.
    parts: Option<Parts>,
    /// On which level they are divided.
    level: u32,
}

impl<'p> Grouped<'p> {
    fn new(
        set: &'p GroupingSet,
        groups: &[(Program, TypeId)],
        aggregates: &[AggregatePlan],
        level: u32,
    ) -> Grouped<'p> {
        let types = set.columns.iter().map(|column| groups[*column].1);
        let columns = set
            .columns
            .iter()
            .map(|column| groups[*column].0.as_column());
        let mut grouped = Grouped {
            set,
            columns: columns.collect(),
            known: Groups::new(types.collect()),
            states: Large::default(),
            groups: 0,
            key: Row::new(),
            is_full: false,
            parts: None,
            level,
        };
        if set.columns.is_empty() {
            // The only one, which needs no table.
            grouped.known.keys.push(Vec::new());
            grouped.begin(aggregates);
        }
        grouped
    }

    /// Adds a group without rows.
    fn begin(&mut self, aggregates: &[AggregatePlan]) {
        self.states.extend(aggregates.iter().map(State::new));
        self.groups += 1;
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
            let (hash, known) = self.find(groups, row, cx)?;
            if known.is_none() && self.is_full {
                self.put_off(hash, row, cx)?;
                return Ok(false);
            }
            (group, new) = match known {
                Some(group) => (group, false),
                None => {
                    let mut key = Row::with_capacity(groups.len() + aggregates.len());
                    key.append(&mut self.key);
                    if let (Some(columns), true) = (&self.columns, key.is_empty()) {
                        key.extend(columns.iter().map(|column| row[*column].clone()));
                    }
                    (self.known.add(hash, key)?, true)
                }
            };
            if new {
                self.known.grow(aggregates.len() * size_of::<State>())?;
                self.begin(aggregates);
            }
        }
        let mut more = 0;
        let start = group * aggregates.len();
        for (state, plan) in self.states[start..].iter_mut().zip(aggregates) {
            state.step(plan, cx, row)?;
            more += state.growth();
        }
        if more > 0 {
            self.known.grow(more)?;
        }
        Ok(new)
    }

    /// The hash of what a row is grouped by, and the group that it is of, if that is known.
    #[inline]
    fn find(
        &mut self,
        groups: &[(Program, TypeId)],
        row: &[Datum],
        cx: &mut Exec<'_>,
    ) -> Result<(u64, Option<usize>)> {
        self.key.clear();
        if let Some(columns) = &self.columns {
            // What stands in the row needs no copy.
            let values = columns.iter().map(|column| &row[*column]);
            if !values.clone().any(Datum::is_long) {
                let hash = hash_values(&self.known.types, values.clone());
                return Ok((hash, self.known.find_values(hash, values)));
            }
        }
        for column in &self.set.columns {
            self.key.push(groups[*column].0.eval(cx, row)?);
        }
        let hash = self.known.hash(&self.key);
        Ok((hash, self.known.find(hash, &self.key)))
    }

    /// Leaves a row for later.
    #[cold]
    fn put_off(&mut self, hash: u64, row: &[Datum], cx: &mut Exec<'_>) -> Result<()> {
        let level = self.level;
        let new = || Parts::new(&cx.hash_spill(), WHAT, level);
        self.parts.get_or_insert_with(new).push(hash, row)
    }

    fn finish(
        self,
        groups: usize,
        aggregates: &[AggregatePlan],
        out: &mut Vec<Row>,
        cx: &mut Exec<'_>,
    ) -> Result<Reservation> {
        let whole = self.set.columns.len() == groups;
        let (keys, held) = self.known.into_keys();
        let mut states = self.states.into_iter();
        for mut row in keys {
            if !whole {
                let mut wider = vec![Datum::Null; groups];
                for (column, value) in self.set.columns.iter().zip(row) {
                    wider[*column] = value;
                }
                row = wider;
            }
            cx.tick()?;
            for (plan, state) in aggregates.iter().zip(&mut states) {
                row.push(state.finish(plan, cx)?);
            }
            row.extend(self.set.answers.iter().map(|bits| Datum::Int4(*bits)));
            out.push(row);
        }
        Ok(held)
    }
}

impl Cursor for GroupCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if self.rows.is_none() {
            self.rows = Some(self.compute(cx)?.into_iter());
        }
        loop {
            if let Some(row) = self.rows.as_mut().and_then(Iterator::next) {
                return Ok(Some(row));
            }
            let Some((set, part)) = self.left.pop() else {
                return Ok(None);
            };
            self.held.clear();
            self.rows = Some(self.compute_part(set, &part, cx)?.into_iter());
        }
    }
}
