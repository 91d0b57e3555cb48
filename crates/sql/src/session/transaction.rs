//! Transactions: blocks, savepoints, commit, and what the output owes.
//!
//! | state | what a statement does | what an error does |
//! |---|---|---|
//! | `None` | begins an implicit transaction, but for SET | takes back what SET has done since the message began |
//! | `Implicit` | runs in it; the end of the message commits | rolls it back |
//! | `Block` | runs in it | the block has failed |
//! | `Failed` | 25P02, but for what ends the block or goes back to a savepoint | nothing changes |

use base::engine::{CatalogVersion, Savepoint, Transaction, TxnOptions};
use base::memory::Reservation;
use base::{Debt, Durability, Error, Result, SessionId, SqlState, TreeId};

use super::{Session, Sink, TransactionStatus};
use catalog::Catalog;
use execution::settings::planted;
use execution::settings::FollowerReads;
use execution::state::constraints::{Constraints, Mark};
use execution::state::large_objects::LargeObjects;
use execution::state::notify::NotifyMark;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use types::TypeId;

/// Where the session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is open.
    None,
    /// A transaction that ends with the message.
    Implicit,
    /// BEGIN was given.
    Block,
    /// BEGIN was given, and a statement has failed.
    Failed,
}

/// Whether the open block was lost with its leader ([`super::handover`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// It was not.
    None,
    /// It was, and the client is still to be told.
    Untold,
    /// It was, and the client has been told; the block is still open.
    Told,
}

/// 40001: the block went with its leader.
pub(super) fn lost_block() -> Error {
    Error::serialization("could not serialize access due to a failover")
}

/// A transaction that is open.
pub(super) struct Open {
    pub txn: Box<dyn Transaction>,
    pub read_only: bool,
    /// Whether it has run a statement: its isolation level is settled then.
    pub begun: bool,
    /// Whether it has written anything: its commit is logged then.
    pub wrote: bool,
    /// Whether it has changed the catalog, and the catalog as it sees it since.
    pub catalog_changed: bool,
    pub own_catalog: Option<OwnCatalog>,
    /// Labels that it has added to enums, which it may not use itself.
    pub new_labels: Vec<(TypeId, u64)>,
    /// The catalog that there was when it began.
    pub began_with: CatalogVersion,
    /// The trees that its snapshot shows, once somebody has asked.
    pub trees_seen: Option<Rc<BTreeSet<TreeId>>>,
    pub savepoints: Vec<Named>,
    /// How many blocks of PL/pgSQL with handlers it is in; each is a savepoint without a name.
    pub guards: usize,
    /// The memory of the savepoints.
    pub savepoint_memory: Reservation,
}

/// The catalog as a transaction sees it that has changed it.
pub(super) struct OwnCatalog {
    pub catalog: Arc<Catalog>,
    /// How many of the rows that the transaction has written are in it.
    pub written: usize,
    /// Whether it was changed since.
    pub is_stale: bool,
}

impl Open {
    /// What the transaction sees of the catalog is to be looked at again.
    pub(super) fn forget_own_catalog(&mut self) {
        if let Some(own) = &mut self.own_catalog {
            own.is_stale = true;
        }
    }

    /// How many savepoints it is in, with and without names.
    pub(super) fn depth(&self) -> usize {
        self.savepoints.len() + self.guards
    }

    /// Forgets savepoints from a place on.
    fn forget_savepoints(&mut self, place: usize) {
        for named in self.savepoints.drain(place..) {
            self.savepoint_memory.shrink(named.bytes());
        }
    }

    /// The transaction has gone back to where it had written so many rows of the catalog.
    pub(super) fn take_back_catalog(&mut self, changed: bool, written: usize) {
        self.catalog_changed = changed;
        match &mut self.own_catalog {
            // What was written since is read again, as it was before.
            Some(own) if changed => {
                own.is_stale = true;
                own.written = own.written.min(written);
            }
            own => *own = None,
        }
    }
}

/// What the transaction and its locks note of a savepoint, in bytes, or more.
const SAVEPOINT_BYTES: usize = 160;

/// A savepoint.
pub(super) struct Named {
    pub name: String,
    pub savepoint: Savepoint,
    pub settings: usize,
    pub read_only: bool,
    pub catalog_changed: bool,
    /// How many rows of the catalog were written before.
    pub catalog_writes: usize,
    pub constraints: Mark,
    pub notify: NotifyMark,
    /// How many large objects were opened before.
    pub large_objects: u64,
}

impl Named {
    /// The memory that it takes here and in the transaction, in bytes.
    fn bytes(&self) -> usize {
        // While a list grows, the old one is there beside one of twice the places.
        3 * size_of::<Named>() + self.name.len() + self.constraints.bytes() + SAVEPOINT_BYTES
    }
}

/// What the current message's output rests on: commits, each at its own level, and reads of ended
/// transactions at theirs.
#[derive(Debug, Default)]
pub(super) struct Owed {
    levels: Vec<(Debt, Durability)>,
}

impl Owed {
    pub(super) fn add(&mut self, debt: &Debt, durability: Durability) {
        if debt.is_none() {
            return;
        }
        match self.levels.iter_mut().find(|level| level.1 == durability) {
            Some(level) => level.0.merge(debt),
            None => self.levels.push((debt.clone(), durability)),
        }
    }

    pub(super) fn clear(&mut self) {
        self.levels.clear();
    }

    pub(super) fn levels(&self) -> &[(Debt, Durability)] {
        &self.levels
    }

    fn tell(&self, sink: &mut dyn Sink) {
        for (debt, level) in &self.levels {
            sink.owe(debt, *level);
        }
    }
}

impl Session {
    /// The open transaction; begins one if there is none.
    pub(super) fn ensure_open(&mut self) -> Result<()> {
        if let Some(locks) = &self.shared.advisory {
            locks.check()?;
        }
        if self.open.is_some() {
            return Ok(());
        }
        self.check_not_lost()?;
        let parsed = self.shared.settings.parsed();
        let options = TxnOptions {
            isolation: parsed.default_isolation,
            read_only: parsed.default_read_only,
            deferrable: parsed.default_deferrable,
            ..TxnOptions::default()
        };
        self.begin(options)?;
        if self.state == State::None {
            self.state = State::Implicit;
        }
        Ok(())
    }

    /// Fails inside a block that was lost with its leader.
    fn check_not_lost(&self) -> Result<()> {
        match self.loss {
            Loss::None => Ok(()),
            Loss::Untold | Loss::Told => Err(lost_block()),
        }
    }

    pub(super) fn begin(&mut self, mut options: TxnOptions) -> Result<()> {
        options.session = u32::try_from(self.shared.start.backend_pid)
            .ok()
            .map(SessionId);
        options.flight = self.shared.flight;
        options.standby_age_max = match self.shared.settings.parsed().follower_reads {
            FollowerReads::Within(time) => Some(time),
            FollowerReads::Off | FollowerReads::Settled => None,
        };
        options.read_only |= self.shared.engine.cluster.is_standby();
        self.characteristics = options;
        self.shared.constraints = Constraints::default();
        self.shared.large_objects = LargeObjects::default();
        // Before any snapshot.
        let began_with = self.shared.engine.transactions.catalog_version();
        let ended = self.ended.take();
        let again = ended.and_then(|mut ended| ended.begin_again(options).then_some(ended));
        let mut txn = match again {
            Some(txn) => txn,
            None => self.shared.engine.transactions.begin(options)?,
        };
        // Where leadership was lost and won again meanwhile, somebody else may have this work now.
        if self.shared.start.interrupts.is_cut() {
            return Err(lost_block());
        }
        txn.set_lock_timeout(self.shared.settings.parsed().lock_timeout);
        self.open = Some(Open {
            txn,
            read_only: options.read_only,
            begun: false,
            wrote: false,
            catalog_changed: false,
            own_catalog: None,
            new_labels: Vec::new(),
            began_with,
            trees_seen: None,
            savepoints: Vec::new(),
            guards: 0,
            savepoint_memory: Reservation::of("Savepoints"),
        });
        self.shared.transactions += 1;
        self.shared.virtual_xid = self.shared.transactions;
        let activity = &self.shared.start.activity;
        activity.set_transaction(self.shared.transactions);
        self.shared.xid = 0;
        let now = self.shared.env.wall_clock().0;
        Rc::make_mut(&mut self.eval).transaction_start = now;
        Ok(())
    }

    /// Does what was put off until the end of the transaction. After an error nothing is open.
    pub(super) fn complete(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let done = self.check_not_lost().and_then(|()| {
            let checked = self.check_deferred();
            // What triggers have said that waited so long.
            self.hand_on_notices(sink).and(checked)
        });
        if done.is_err() {
            self.roll_back();
        }
        done
    }

    /// Commits what is open. After an error nothing is open.
    pub(super) fn commit(&mut self, sink: &mut dyn Sink) -> Result<()> {
        self.complete(sink)?;
        if let Err(error) = self.hold_cursors() {
            self.roll_back();
            return Err(error);
        }
        self.end_cursors();
        let prepared = self.before_commit();
        let prepared = prepared.and_then(|emptied| Ok((emptied, self.before_notify()?)));
        let (emptied, since) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                self.roll_back();
                return Err(error);
            }
        };
        let Some(mut open) = self.open.take() else {
            self.state = State::None;
            self.shared.count_transaction(true);
            self.shared.settings.end_transaction();
            return Ok(());
        };
        self.state = State::None;
        open.wrote |= self.shared.large_objects.wrote;
        let durability = self.shared.settings.parsed().durability;
        self.owed.add(open.txn.debt(), durability);
        if !open.wrote && open.txn.end_reading() {
            self.ended = Some(open.txn);
            self.shared.count_transaction(true);
            self.after_commit(emptied);
            self.after_notify(since, None);
            self.shared.settings.end_transaction();
            return Ok(());
        }
        // Whoever has asked for its id has something to commit.
        let is_noted = open.wrote || has_xid(open.txn.as_mut());
        let debt = self.log_end(open.txn, |txn| txn.commit(durability))?;
        if is_noted {
            sink.committed(&debt);
        }
        self.after_commit(emptied);
        self.after_notify(since, Some(&debt).filter(|_| open.wrote));
        self.shared.settings.end_transaction();
        Ok(())
    }

    /// Has what is open logged, as the end of its transaction; the debt of that is owed.
    pub(super) fn log_end(
        &mut self,
        mut txn: Box<dyn Transaction>,
        end: impl FnOnce(Box<dyn Transaction>) -> Result<Debt>,
    ) -> Result<Debt> {
        // A block was begun in an earlier flight than the one that ends it.
        let noted = match self.shared.flight {
            Some(flight) => txn.outcome().map(|outcome| outcome.set_flight(flight)),
            None => Ok(()),
        };
        self.committing = true;
        planted::panic_at(&self.shared.settings, "commit");
        let logged = noted.and_then(|()| end(txn));
        self.committing = false;
        self.shared.count_transaction(logged.is_ok());
        match &logged {
            Ok(debt) => self
                .owed
                .add(debt, self.shared.settings.parsed().durability),
            Err(_) => {
                self.shared.settings.roll_back_to(0);
                self.shared.notify.forget();
            }
        }
        logged
    }

    /// The end of a message: commits what it has done outside a block.
    pub(super) fn end_implicit(&mut self, sink: &mut dyn Sink) -> Result<()> {
        match self.state {
            // SET needs no transaction to be open.
            State::None if self.shared.settings.mark() > 0 => {
                self.shared.settings.end_transaction();
                self.settings_changed();
                Ok(())
            }
            State::Implicit => self.commit(sink),
            State::None | State::Block | State::Failed => Ok(()),
        }
    }

    /// Rolls back what is open.
    pub(super) fn roll_back(&mut self) {
        if self.state != State::None {
            self.shared.count_transaction(false);
        }
        if let Some(open) = self.open.take() {
            let durability = self.shared.settings.parsed().durability;
            self.owed.add(open.txn.debt(), durability);
            if open.catalog_changed {
                self.refresh_names();
            }
        }
        self.state = State::None;
        self.loss = Loss::None;
        self.end_cursors();
        self.shared.notify.forget();
        self.shared.settings.roll_back_to(0);
        self.shared.settings.end_transaction();
    }

    /// As [`Session::failed`], by an error that a statement gives.
    pub(super) fn failed_by(&mut self, error: &Error) {
        if error.state() == SqlState::DEADLOCK_DETECTED {
            self.shared.counting.deadlocked();
        }
        self.failed();
    }

    /// An error: the implicit transaction is rolled back, a block fails.
    pub(super) fn failed(&mut self) {
        // What could not be said before the error is no part of what comes next.
        self.shared.remarks.take();
        self.nested.clear();
        self.places.clear();
        self.shared.firing.clear();
        self.in_use.clear();
        while self.shared.settings.is_acting() {
            self.shared.settings.stop_acting();
        }
        match self.state {
            State::None | State::Implicit => self.roll_back(),
            State::Block => {
                self.state = State::Failed;
                let Some(open) = &mut self.open else {
                    return;
                };
                let durability = self.shared.settings.parsed().durability;
                self.owed.add(open.txn.debt(), durability);
                // Without a savepoint to go back to, the locks may go at once.
                if open.savepoints.is_empty() {
                    self.open = None;
                    self.refresh_names();
                    self.shared.settings.roll_back_to(0);
                }
            }
            State::Failed => {}
        }
    }

    pub(super) fn status(&self) -> TransactionStatus {
        match self.state {
            State::None | State::Implicit => TransactionStatus::Idle,
            State::Block => TransactionStatus::InBlock,
            State::Failed => TransactionStatus::Failed,
        }
    }

    /// Tells the sink what everything from here on rests on, and what settings have changed.
    pub(super) fn tell(&mut self, sink: &mut dyn Sink) -> Result<()> {
        self.owed.tell(sink);
        if let Some(open) = &self.open {
            let debt = open.txn.debt();
            if !debt.is_none() {
                sink.owe(debt, self.shared.settings.parsed().durability);
            }
        }
        for (name, value) in self.shared.settings.take_reports() {
            sink.parameter_status(name, &value)?;
        }
        Ok(())
    }

    /// SAVEPOINT.
    pub(super) fn make_savepoint(&mut self, name: &str) -> Result<()> {
        self.ensure_open()?;
        let settings = self.shared.settings.mark();
        let open = self
            .open
            .as_mut()
            .ok_or_else(|| Error::internal("nothing is open"))?;
        let named = Named {
            name: name.to_owned(),
            savepoint: open.txn.savepoint(),
            settings,
            read_only: open.read_only,
            catalog_changed: open.catalog_changed,
            catalog_writes: open.txn.catalog_writes().len(),
            constraints: self.shared.constraints.mark(),
            notify: self.shared.notify.mark(),
            large_objects: self.shared.large_objects.mark(),
        };
        let bytes = named.bytes();
        open.savepoints.push(named);
        open.savepoint_memory.grow(bytes)
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        let found = self
            .open
            .as_ref()
            .and_then(|open| open.savepoints.iter().rposition(|known| known.name == name));
        found.ok_or_else(|| {
            Error::new(
                SqlState::INVALID_SAVEPOINT,
                format!("savepoint \"{name}\" does not exist"),
            )
        })
    }

    /// RELEASE SAVEPOINT.
    pub(super) fn release_savepoint(&mut self, name: &str) -> Result<()> {
        let place = self.find_savepoint(name)?;
        if let Some(open) = &mut self.open {
            open.txn.release(open.savepoints[place].savepoint);
            // Whether it only reads is again as it was before.
            let before = open.savepoints[place].read_only;
            open.forget_savepoints(place);
            if open.read_only != before {
                open.read_only = before;
                self.characteristics.read_only = before;
                let value = if before { "on" } else { "off" };
                let settings = &mut self.shared.settings;
                settings.set(None, "transaction_read_only", Some(value), true)?;
            }
        }
        self.release_cursors(place);
        Ok(())
    }

    /// ROLLBACK TO SAVEPOINT; the savepoint stays.
    pub(super) fn roll_back_to_savepoint(&mut self, name: &str) -> Result<()> {
        let place = self.find_savepoint(name)?;
        self.roll_back_cursors(place + 1);
        if let Some(open) = &mut self.open {
            let named = &open.savepoints[place];
            open.txn.rollback_to(named.savepoint);
            open.read_only = named.read_only;
            let (changed, written) = (named.catalog_changed, named.catalog_writes);
            self.shared.settings.roll_back_to(named.settings);
            self.shared.constraints.roll_back_to(&named.constraints);
            self.shared.notify.roll_back_to(named.notify);
            let closed = self.shared.large_objects.roll_back_to(named.large_objects);
            closed.into_iter().for_each(|view| open.txn.drop_view(view));
            open.forget_savepoints(place + 1);
            open.take_back_catalog(changed, written);
        }
        // Labels and types that are gone must not be found by their names.
        self.refresh_names();
        if self.state == State::Failed {
            self.state = State::Block;
        }
        Ok(())
    }
}

/// Whether a transaction's client has asked for its id.
fn has_xid(txn: &mut dyn Transaction) -> bool {
    let outcome = txn.outcome();
    outcome.is_ok_and(|outcome| matches!(outcome.xid(false), Ok(Some(_))))
}
