//! The state of an aggregate over rows, whoever has made the aggregate.
//!
//! ```text
//! built in    functions::Accumulator: step, finish
//! one's own   a value, and programs over it: step over the state and a row's arguments, finish
//! ```
//! A step of one's own that is strict passes rows with NULLs over. Where there is no state yet, the
//! first argument becomes it; where a step has given NULL, the state stays NULL (PostgreSQL 15 manual,
//! CREATE AGGREGATE).

use std::rc::Rc;

use base::Result;

use super::program::Evaluate;
use super::Exec;
use functions::Accumulator;
use planner::plan::{Agg, OwnAggregate, Row};
use types::{growth, Datum, TypeId, NO_TYPMOD};

/// The state of one group of one aggregate.
pub(super) enum Accumulating {
    /// Of a built-in one.
    BuiltIn(Accumulator),
    /// Of one of one's own.
    Own(OwnState),
}

/// The state of an aggregate of one's own.
pub(super) struct OwnState {
    own: Rc<OwnAggregate>,
    /// The state; none before it was asked for, as reading its text may fail.
    state: Option<Datum>,
    /// Whether the state is NULL because there was no row yet, nor a first state.
    waits: bool,
}

impl Accumulating {
    /// Before the first row.
    pub(super) fn start(aggregate: &Agg, types: &[TypeId]) -> Accumulating {
        match aggregate {
            Agg::BuiltIn(aggregate) => Accumulating::BuiltIn(aggregate.start(types)),
            Agg::Own(own) => Accumulating::Own(OwnState {
                own: own.clone(),
                state: None,
                waits: false,
            }),
        }
    }

    /// Takes in the arguments of a row.
    ///
    /// # Errors
    /// What the aggregate raises.
    #[inline]
    pub(super) fn step(&mut self, cx: &mut Exec<'_>, args: &[Datum]) -> Result<()> {
        match self {
            Accumulating::BuiltIn(accumulator) => accumulator.step(cx.context, args),
            Accumulating::Own(state) => state.step(cx, args),
        }
    }

    /// The value over the rows so far.
    ///
    /// # Errors
    /// What the aggregate raises.
    pub(super) fn finish(&mut self, cx: &mut Exec<'_>) -> Result<Datum> {
        match self {
            Accumulating::BuiltIn(accumulator) => accumulator.finish(cx.context),
            Accumulating::Own(state) => state.finish(cx),
        }
    }

    /// The memory that grows with the rows, in bytes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        match self {
            Accumulating::BuiltIn(accumulator) => accumulator.bytes(),
            Accumulating::Own(own) => own.state.as_ref().map_or(0, growth::bytes_of),
        }
    }

    /// The state of a built-in one.
    pub(super) fn built_in(&mut self) -> Option<&mut Accumulator> {
        match self {
            Accumulating::BuiltIn(accumulator) => Some(accumulator),
            Accumulating::Own(_) => None,
        }
    }
}

impl OwnState {
    /// The state, which begins as the aggregate says.
    fn begun(&mut self, cx: &Exec<'_>) -> Result<Datum> {
        if let Some(state) = self.state.take() {
            return Ok(state);
        }
        let state = match &self.own.initial {
            Some(text) => types::input(cx.context, self.own.state, NO_TYPMOD, text)?,
            None => Datum::Null,
        };
        self.waits = state.is_null();
        Ok(state)
    }

    fn step(&mut self, cx: &mut Exec<'_>, args: &[Datum]) -> Result<()> {
        let state = self.begun(cx)?;
        if self.own.is_strict {
            let is_passed = args.iter().any(Datum::is_null) || state.is_null() && !self.waits;
            if is_passed {
                self.state = Some(state);
                return Ok(());
            }
            if let (true, Some(first)) = (self.waits, args.first()) {
                self.waits = false;
                self.state = Some(first.clone());
                return Ok(());
            }
        }
        self.waits = false;
        let row: Row = std::iter::once(state).chain(args.iter().cloned()).collect();
        self.state = Some(self.own.step.eval(cx, &row)?);
        Ok(())
    }

    fn finish(&mut self, cx: &mut Exec<'_>) -> Result<Datum> {
        let state = self.begun(cx)?;
        self.state = Some(state.clone());
        let Some(finish) = &self.own.finish else {
            return Ok(state);
        };
        let nulls = std::iter::repeat_n(Datum::Null, finish.nulls);
        let row: Row = std::iter::once(state).chain(nulls).collect();
        finish.value.eval(cx, &row)
    }
}
