//! Aggregates as state machines.

use base::error::{Error, Result};

use crate::types::{Datum, EvalContext, TypeId};

/// An aggregate function.
#[derive(Clone, Copy, Debug)]
pub struct Aggregate {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The declared types of its arguments; none for `count(*)`.
    pub arguments: &'static [TypeId],
    /// The declared type of its result.
    pub result: TypeId,
}

/// The state of one group of one aggregate.
#[derive(Debug)]
pub struct Accumulator {
    aggregate: &'static Aggregate,
}

impl Aggregate {
    /// The state before the first row. `argument_types` are the concrete ones.
    pub fn start(&'static self, argument_types: &[TypeId]) -> Accumulator {
        let _ = argument_types;
        Accumulator { aggregate: self }
    }
}

impl Accumulator {
    /// Takes one row's arguments, coerced. Rows with NULLs are passed too; the aggregate knows
    /// what to do with them.
    ///
    /// # Errors
    /// 22003 on overflow.
    pub fn step(&mut self, context: &EvalContext, arguments: &[Datum]) -> Result<()> {
        let _ = (context, arguments);
        Err(Error::unsupported(format!(
            "aggregate {}",
            self.aggregate.name
        )))
    }

    /// Takes in the state of the same aggregate over other rows, which come after this one's.
    ///
    /// # Errors
    /// As [`Accumulator::step`].
    pub fn merge(&mut self, other: &Accumulator) -> Result<()> {
        let _ = other;
        Err(Error::unsupported(format!(
            "aggregate {}",
            self.aggregate.name
        )))
    }

    /// The result over the rows taken so far.
    ///
    /// # Errors
    /// As [`Accumulator::step`].
    pub fn finish(&self, context: &EvalContext) -> Result<Datum> {
        let _ = context;
        Err(Error::unsupported(format!(
            "aggregate {}",
            self.aggregate.name
        )))
    }
}
