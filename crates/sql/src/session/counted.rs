//! What statements cost, as it is counted for `pg_stat_statements` ([`execution::state::statements`]).
//!
//! ```text
//! begin_counted(plan)    the id of the statement, the clock                     nothing while nobody counts
//!    run it              an error: nothing is counted
//! end_counted(rows)      the clock again, one addition in the node's counts
//! ```
//! What has a plan is counted where plans are run: for clients, and with `pg_stat_statements.track` =
//! `all` for routines; what has none, where [`Session::utility`] has it run, with its text. PREPARE and
//! DEALLOCATE are not counted, and EXECUTE is as what it runs. The time of a query that gives its rows
//! in portions is that of all portions, and it is counted with its last row.
//!
//! # What it leaves out
//! The rows of REFRESH MATERIALIZED VIEW, which its tag does not say; queries that were given up before
//! their last row; what EXPLAIN ANALYZE, COPY and CREATE TABLE AS run
//! inside of themselves, also with `all`; simple expressions of PL/pgSQL, as in PostgreSQL.

use std::sync::Arc;

use base::engine::Engine;
use base::env::{Env, Instant};
use base::Result;

use super::{CommandTag, Session, SessionStart};
use execution::settings::QueryIds;
use execution::state::prepared::{Identified, Planned};
use execution::state::statements::{Key, Ran, EXTENSION};
use syntax::parser::{self, NodeEnum, Statement};

/// A statement that runs and is counted.
#[derive(Debug)]
pub(super) struct Begun {
    identified: Identified,
    toplevel: bool,
    /// When it began, or went on.
    at: Instant,
    ran: Ran,
}

impl Begun {
    fn new(identified: Identified, toplevel: bool, at: Instant) -> Begun {
        Begun {
            identified,
            toplevel,
            at,
            ran: Ran::default(),
        }
    }

    /// It goes on after a rest.
    pub fn goes_on(&mut self, env: &dyn Env) {
        self.at = env.now();
    }

    /// It rests, or has ended, and has given so many rows.
    pub fn rests(&mut self, env: &dyn Env, rows: u64) {
        self.ran.took += env.now().since(self.at);
        self.ran.rows += rows;
    }
}

/// A session begins: looks whether statements are to be counted, where the catalog has changed since
/// another did.
///
/// # Errors
/// As reads.
pub(super) fn look(engine: &Engine, start: &SessionStart, now: i64) -> Result<()> {
    let registry = start.registry.as_ref();
    match registry.and_then(|registry| registry.statistics()) {
        Some(node) => node.statements.look(&*engine.transactions, now),
        None => Ok(()),
    }
}

/// The rows of a statement without a plan that are counted.
pub(super) fn rows_of(tag: &CommandTag) -> u64 {
    match tag.name {
        "COPY" | "FETCH" | "SELECT" => tag.rows.unwrap_or(0),
        _ => 0,
    }
}

impl Session {
    /// Whether a client has given what runs now, and no routine.
    fn is_toplevel(&self) -> bool {
        self.nested.is_empty() && self.places.is_empty()
    }

    fn is_counted(&self, toplevel: bool) -> bool {
        let tracked = &self.shared.settings.parsed().tracking.statements;
        self.shared.counted_statements().is_some()
            && tracked.counts(toplevel)
            && !self.shared.start.is_automatic
    }

    /// A statement with this plan begins.
    ///
    /// # Errors
    /// Those of a long text that is read: 53200, the pending interrupt.
    pub(super) fn begin_counted(&self, planned: &Planned) -> Result<Option<Begun>> {
        self.begin_counted_at(planned, self.is_toplevel())
    }

    /// A statement with this plan begins that a client gave, or another statement.
    ///
    /// # Errors
    /// As [`Session::begin_counted`].
    pub(super) fn begin_counted_at(
        &self,
        planned: &Planned,
        toplevel: bool,
    ) -> Result<Option<Begun>> {
        if !self.is_counted(toplevel) && !self.makes_ids(toplevel) {
            return Ok(None);
        }
        let Some(identified) = planned.counted.identified(&self.shared.env)? else {
            return Ok(None);
        };
        Ok(self.begun(identified, toplevel).map(|mut begun| {
            begun.ran.planning = planned.counted.take_planning();
            begun
        }))
    }

    /// A statement without a plan begins.
    pub(super) fn begin_counted_utility(&self, statement: &Statement) -> Option<Begun> {
        let toplevel = self.is_toplevel() && !statement.is_inner();
        let tracked = &self.shared.settings.parsed().tracking.statements;
        let is_counted = self.is_counted(toplevel) && tracked.utility;
        let is_other = matches!(
            statement.node(),
            NodeEnum::ExecuteStmt(_) | NodeEnum::PrepareStmt(_) | NodeEnum::DeallocateStmt(_)
        );
        if is_other || !is_counted && !self.makes_ids(toplevel) {
            return None;
        }
        let text = statement.own_text();
        let identified = Identified {
            id: parser::id_of_text(text),
            text: Arc::from(text),
        };
        self.begun(identified, toplevel).filter(|_| is_counted)
    }

    /// Whether ids are made although nothing is counted: others see them.
    fn makes_ids(&self, toplevel: bool) -> bool {
        let ids = self.shared.settings.parsed().tracking.statements.ids;
        toplevel && ids == QueryIds::On
    }

    fn begun(&self, identified: Identified, toplevel: bool) -> Option<Begun> {
        if toplevel {
            self.shared.start.activity.set_query_id(identified.id);
        }
        let begun = Begun::new(identified, toplevel, self.shared.env.now());
        self.is_counted(toplevel).then_some(begun)
    }

    /// A statement has ended that gave or wrote so many rows.
    pub(super) fn end_counted(&self, begun: Option<Begun>, rows: u64) {
        if let Some(mut begun) = begun {
            begun.rests(&*self.shared.env, rows);
            self.count_run(begun);
        }
    }

    /// Counts a statement that has ended.
    pub(super) fn count_run(&self, begun: Begun) {
        let Some(node) = self.shared.counted_statements() else {
            return;
        };
        let settings = &self.shared.settings;
        let key = Key {
            user: settings.current_role(),
            database: self.catalog.database.oid,
            id: begun.identified.id,
            toplevel: begun.toplevel,
        };
        let most = settings.parsed().tracking.statements.most;
        node.count(key, &begun.ran, most, || begun.identified.text);
    }

    /// When planning begins, if somebody wants to know.
    pub(super) fn planning_begins(&self) -> Option<Instant> {
        let tracked = &self.shared.settings.parsed().tracking.statements;
        let is_counted = tracked.planning && self.shared.counted_statements().is_some();
        is_counted.then(|| self.shared.env.now())
    }

    /// The id of a statement with a plan, as EXPLAIN shows it: where the database has the extension, or
    /// the session asks for ids.
    ///
    /// # Errors
    /// As [`Session::begin_counted`].
    pub(super) fn explained_id(&self, planned: &Planned) -> Result<Option<i64>> {
        let ids = self.shared.settings.parsed().tracking.statements.ids;
        let is_on = self.catalog.extension(EXTENSION).is_some();
        match ids == QueryIds::On || ids == QueryIds::Auto && is_on {
            true => Ok(planned
                .counted
                .identified(&self.shared.env)?
                .map(|known| known.id)),
            false => Ok(None),
        }
    }
}
