//! What a session's statements at work and its open queries use, which its own DDL must not change:
//! locks keep out other sessions only.
//!
//! ```text
//! select f(a) from t     using [the plan: t]
//!   f: for r in select * from u loop     using [the plan: t, the loop's: u]
//!     alter table t …    55006
//!     alter table w …    goes through
//! ```
//! Whatever runs a plan, or goes over a table's rows, does so inside of [`Session::using`]; a query whose
//! rows are given piece by piece holds a [`Held`] plan for as long as there may be more. DDL asks
//! [`Session::refuse_in_use`] and its siblings before it changes anything.
//!
//! # Invariants
//! - However a statement ends, it is no longer among those at work: [`Session::using`] takes it off, and
//!   where a panic has gone through that, the end of the statement that the client gave does.
//! - What a plan uses is looked up when DDL asks; a statement at work costs a reference to its plan.
//!
//! # What it leaves out
//! PostgreSQL knows what a statement has opened so far. Here a statement uses all that it may come to:
//! all partitions of a table that it writes, and the tables that foreign keys lead to.

use std::rc::{Rc, Weak};

use base::{Error, Result, SqlState};

use super::Session;
use catalog::{Index, Table};
use execution::state::prepared::Planned;
use planner::plan::Uses;

/// Something at work.
pub(super) enum Using {
    /// A plan that runs.
    Plan(Rc<Planned>),
    /// Relations, by their oids, that DDL goes through or whose triggers fire.
    Relations(Vec<u32>),
}

impl Using {
    /// Tables and all of their indexes.
    pub fn tables<'t>(tables: impl IntoIterator<Item = &'t Table>) -> Using {
        let mut oids = Vec::new();
        for table in tables {
            oids.push(table.oid);
            oids.extend(table.indexes.iter().map(|index| index.oid));
        }
        Using::Relations(oids)
    }
}

/// The plan of a query that may give more rows.
#[derive(Debug)]
pub(super) struct Held {
    pub planned: Rc<Planned>,
}

/// Of open queries that have been closed, so many may be remembered before they are looked for.
const CLOSED_MAX: usize = 16;

/// What is in use.
#[derive(Default)]
pub(super) struct InUse {
    /// The statements at work, the innermost last.
    at_work: Vec<Using>,
    /// The queries that were opened, some of which have been closed.
    queries: Vec<Weak<Held>>,
    /// How many of these there may be before the closed ones are taken out.
    queries_max: usize,
}

impl InUse {
    /// A plan of which rows are given piece by piece; in use until it is dropped.
    pub fn hold(&mut self, planned: Rc<Planned>) -> Rc<Held> {
        if self.queries.len() >= self.queries_max {
            self.queries.retain(|query| query.strong_count() > 0);
            self.queries_max = 2 * self.queries.len() + CLOSED_MAX;
        }
        let held = Rc::new(Held { planned });
        self.queries.push(Rc::downgrade(&held));
        held
    }

    /// The transaction has ended within statements at work, which have read all that they will.
    pub fn transaction_ended(&mut self) {
        let ended = || Using::Relations(Vec::new());
        self.at_work.iter_mut().for_each(|using| *using = ended());
    }

    /// Forgets statements that have not come to their ends.
    pub fn clear(&mut self) {
        self.at_work.clear();
    }

    /// All that is in use.
    fn uses(&self) -> Uses {
        let mut uses = Uses::default();
        let mut add = |planned: &Planned| {
            let bound = planned.bound.iter();
            bound.for_each(|bound| uses.add(bound.plan.plan()));
        };
        let queries = self.queries.iter().filter_map(Weak::upgrade);
        queries.for_each(|held| add(&held.planned));
        let mut relations = Vec::new();
        for using in &self.at_work {
            match using {
                Using::Plan(planned) => add(planned),
                Using::Relations(oids) => relations.extend(oids),
            }
        }
        uses.tables.extend(&relations);
        uses.indexes.extend(&relations);
        uses
    }
}

impl Session {
    /// Does what uses a plan or tables.
    pub(super) fn using<T>(&mut self, using: Using, f: impl FnOnce(&mut Session) -> T) -> T {
        let depth = self.in_use.at_work.len();
        self.in_use.at_work.push(using);
        let done = f(self);
        self.in_use.at_work.truncate(depth);
        done
    }

    /// Refuses to change a table that is in use, or that constraints or triggers wait for.
    ///
    /// # Errors
    /// 55006.
    pub(super) fn refuse_in_use(&self, table: &Table, verb: &str) -> Result<()> {
        self.refuse_at_work(table, verb)?;
        match self.shared.constraints.waits_for(table) {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::OBJECT_IN_USE,
                format!(
                    "cannot {verb} \"{}\" because it has pending trigger events",
                    table.name
                ),
            )),
        }
    }

    /// Refuses to change a table that statements at work or open queries use.
    ///
    /// # Errors
    /// 55006.
    pub(super) fn refuse_at_work(&self, table: &Table, verb: &str) -> Result<()> {
        match self.in_use.uses().tables.contains(&table.oid) {
            false => Ok(()),
            true => Err(at_work(&table.name, verb)),
        }
    }

    /// Refuses to give up the tree of an index that statements at work or open queries use.
    ///
    /// # Errors
    /// 55006.
    pub(super) fn refuse_index_at_work(&self, index: &Index, verb: &str) -> Result<()> {
        match self.in_use.uses().indexes.contains(&index.oid) {
            false => Ok(()),
            true => Err(at_work(&index.name, verb)),
        }
    }
}

fn at_work(name: &str, verb: &str) -> Error {
    Error::new(
        SqlState::OBJECT_IN_USE,
        format!(
            "cannot {verb} \"{name}\" because it is being used by active queries in this session"
        ),
    )
}
