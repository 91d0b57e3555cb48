//! Which aggregate a call means: a built-in one, or one that CREATE AGGREGATE has made.
//!
//! One of one's own is two functions, which are bound with the call, to the types that it has there:
//!
//! ```text
//! create aggregate mean (float8) (sfunc = add, stype = pair, finalfunc = divide, initcond = '(0,0)')
//! step      add($state, $1)     over the state, and behind it the arguments of a row
//! finish    divide($state)      over the state alone
//! ```
//!
//! # What it leaves out
//! What a row that leaves a frame takes away (`MSFUNC`, `MINVFUNC`): the frame is computed anew.

use std::rc::Rc;
use std::sync::Arc;

use super::Program;
use catalog::Routine;
use functions::ordered_set::OrderedSet;
use functions::Aggregate;
use types::TypeId;

/// An aggregate, compared by identity.
#[derive(Clone, Debug)]
pub enum Agg {
    /// A built-in one.
    BuiltIn(&'static Aggregate),
    /// One of one's own.
    Own(Rc<OwnAggregate>),
}

/// An aggregate of one's own, as one call needs it.
#[derive(Debug)]
pub struct OwnAggregate {
    /// What the catalog says of it.
    pub routine: Arc<Routine>,
    /// What it is called, with its schema where it must be.
    pub shown: String,
    /// The type of its state.
    pub state: TypeId,
    /// The state before the first row, as text; NULL if there is none.
    pub initial: Option<String>,
    /// The state after a row: over the state, followed by the arguments.
    pub step: Program,
    /// Whether rows with NULLs are passed over, and the first row's argument is the state where
    /// there was none.
    pub is_strict: bool,
    /// The value over the state, where that is not the state itself.
    pub finish: Option<Finish>,
}

/// What becomes of the state at the end.
#[derive(Debug)]
pub struct Finish {
    /// The value: over the state, followed by as many NULLs.
    pub value: Program,
    /// How many.
    pub nulls: usize,
}

impl Agg {
    /// Its oid.
    pub fn oid(&self) -> u32 {
        match self {
            Agg::BuiltIn(aggregate) => aggregate.oid,
            Agg::Own(own) => own.routine.oid,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Agg::BuiltIn(aggregate) => aggregate.name,
            Agg::Own(own) => &own.routine.name,
        }
    }

    /// It, if it is built in.
    pub fn built_in(&self) -> Option<&'static Aggregate> {
        match self {
            Agg::BuiltIn(aggregate) => Some(aggregate),
            Agg::Own(_) => None,
        }
    }

    /// What it computes, if it is one over sorted rows (WITHIN GROUP).
    pub fn ordered_set(&self) -> Option<OrderedSet> {
        self.built_in().and_then(Aggregate::ordered_set)
    }
}

impl PartialEq for Agg {
    fn eq(&self, other: &Agg) -> bool {
        self.oid() == other.oid()
    }
}
