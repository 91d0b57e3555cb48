//! Whose statement runs: the transaction and the session around the executor, and the routines that
//! its expressions call.
//!
//! ```text
//! Session ── Exec(&mut dyn Host) ── f(1) ── Host::call ── statements of f, each with an Exec of its own
//! ```
//! The executor stands below sessions and knows only this trait. A routine's statements need all of the
//! session, its transaction included, so neither is lent to the executor for longer than one step: it
//! asks for them each time.
//!
//! # Invariants
//! - A transaction is open while anything runs.

use base::engine::Transaction;
use base::Result;

use super::trigger::{Fired, Firing};
use crate::kept::RowStore;
use crate::state::Shared;
use planner::plan::RoutineCall;
use types::Datum;

/// Who runs a statement.
pub trait Host {
    /// The open transaction.
    fn txn(&mut self) -> &mut dyn Transaction;

    /// What the session and its statement share.
    fn session(&mut self) -> &mut Shared;

    /// The same, to be looked at.
    fn shared(&self) -> &Shared;

    /// Calls a routine that gives one value.
    ///
    /// # Errors
    /// What its statements raise; 54001 when calls are nested too deep.
    fn call(&mut self, call: &RoutineCall, args: Vec<Datum>) -> Result<Datum>;

    /// Calls a routine that gives rows.
    ///
    /// # Errors
    /// As [`Host::call`].
    fn call_rows(&mut self, call: &RoutineCall, args: Vec<Datum>) -> Result<RowStore>;

    /// Calls the function of a trigger.
    ///
    /// # Errors
    /// As [`Host::call`].
    fn fire(&mut self, firing: &Firing<'_>) -> Result<Fired>;
}
