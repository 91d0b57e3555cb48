//! Groups whose rows stand one behind the other: each is given as soon as the next one begins.
//!
//! Nothing is hashed, and only the group at work takes memory.
//!
//! # Invariants
//! - The rows of a group are neighbours ([`Plan::sorted_groups`](planner::plan::Plan::sorted_groups)), so groups come in the order in which
//!   a table of them would have seen them first.

use base::memory::Reservation;
use base::Result;

use super::cursor::Cursor;
use super::group::{State, WHAT};
use super::{long, Exec};
use crate::kept::row_bytes;
use planner::plan::{AggregatePlan, Row};
use types::{Datum, TypeId};

/// The rows of a `Plan::Aggregate` over such an input.
pub(super) struct SortedGroupCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    /// The columns that are grouped by, and their types.
    columns: Vec<(usize, TypeId)>,
    aggregates: &'p [AggregatePlan],
    answers: &'p [i32],
    row: Row,
    /// The values of the group at work; none before the first and behind the last.
    key: Row,
    states: Vec<State>,
    held: Reservation,
    is_over: bool,
}

impl<'p> SortedGroupCursor<'p> {
    /// A cursor over an aggregation of this input, by these columns.
    pub(super) fn new(
        input: Box<dyn Cursor + 'p>,
        columns: Vec<(usize, TypeId)>,
        aggregates: &'p [AggregatePlan],
        answers: &'p [i32],
    ) -> SortedGroupCursor<'p> {
        SortedGroupCursor {
            input,
            columns,
            aggregates,
            answers,
            row: Row::new(),
            key: Row::new(),
            states: Vec::new(),
            held: Reservation::of(WHAT),
            is_over: false,
        }
    }

    /// Whether the row at work is of the group at work.
    fn is_same(&self) -> bool {
        let mut columns = self.columns.iter().zip(&self.key);
        !self.key.is_empty()
            && columns.all(|((place, ty), value)| types::equal(*ty, value, &self.row[*place]))
    }

    /// Begins the group of the row at work.
    fn begin(&mut self) -> Result<()> {
        let values = self.columns.iter().map(|(place, _)| &self.row[*place]);
        self.key
            .reserve_exact(self.columns.len() + self.aggregates.len() + self.answers.len());
        self.key.extend(values.cloned());
        self.states.extend(self.aggregates.iter().map(State::new));
        self.held.set(row_bytes(&self.key))
    }

    /// Takes in the row at work.
    fn step(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        let mut more = 0;
        for (state, plan) in self.states.iter_mut().zip(self.aggregates) {
            state.step(plan, cx, &self.row)?;
            more += state.growth();
        }
        match more {
            0 => Ok(()),
            more => self.held.grow(more),
        }
    }

    /// The row of the group at work; none if there is none.
    fn finish(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if self.key.is_empty() {
            return Ok(None);
        }
        let mut row = std::mem::take(&mut self.key);
        for (plan, state) in self.aggregates.iter().zip(self.states.drain(..)) {
            row.push(state.finish(plan, cx)?);
        }
        row.extend(self.answers.iter().map(|bits| Datum::Int4(*bits)));
        Ok(Some(row))
    }
}

impl Cursor for SortedGroupCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        while !self.is_over {
            if !self.input.next_into(cx, &mut self.row)? {
                self.is_over = true;
                break;
            }
            cx.tick()?;
            for (place, _) in &self.columns {
                if self.row[*place].is_long() {
                    self.row[*place] = long::read(&self.row[*place], cx.host.txn())?;
                }
            }
            let done = match self.is_same() {
                true => None,
                false => {
                    let done = self.finish(cx)?;
                    self.begin()?;
                    done
                }
            };
            self.step(cx)?;
            if done.is_some() {
                return Ok(done);
            }
        }
        self.finish(cx)
    }
}
