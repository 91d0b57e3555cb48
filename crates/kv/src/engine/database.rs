//! One database over all groups of a node: the engine of sessions on a node that leads any.
//!
//! Which group a row lies in follows from the id of its tree ([`TreeId::group`]). The first group has
//! the catalog, sequences, advisory locks, notifications and what sessions are known by; a further one
//! has nothing but trees and their descriptors. A transaction begins at its *home*, a group that this
//! node leads, and joins another when it touches a tree there ([`txn`]).
//!
//! ```text
//! session on n1 ──► Database ──► first group    catalog, sequences, tables; its home
//!                      └───────► group 2        tables
//! BEGIN                                  a branch at home
//! SELECT FROM t2       locks t2          … and one in group 2
//!                      begin_statement   one state of both, as of a timestamp
//! UPDATE t1, UPDATE t2
//! COMMIT               both have written: a part in each log, all at once (`engine/across.rs`)
//! ```
//! Where there is one group only, a transaction is that group's own, and all this costs nothing.
//!
//! # What has been heard
//! A commit in one group may be known to a session that reads another as it is. Nothing that is
//! written there afterwards may have an earlier timestamp, or a third one could see it without what
//! came before. So the greatest timestamp that any transaction of this node has heard of is kept, and
//! the clock of a group is moved past it before the group is read by itself.
//!
//! # What has been numbered
//! Trees and hidden rows have numbers of sequences, which are in the log of the first group. What is
//! written elsewhere under such a number must not outlive it: the next leader would give it again. So
//! the last number that was given is kept too, and whoever writes elsewhere waits first until it is
//! committed, which it nearly always is.
//!
//! # Groups that other nodes lead
//! A transaction has a branch there ([`super::branch`]): its rows and locks are that node's, and each
//! step is a message. Where it writes in such a group, the home has a part and coordinates, and the
//! session waits until that knows that all parts are committed. Nobody sees there alone that sessions
//! wait for one another in a circle over several nodes: who has waited for a second is asked about along
//! the edges, from node to node, and one of those who come back to themselves gives up (40P01,
//! [`circles`]).
//!
//! # What it leaves out
//! Sessions have their home in the first group ([`Database::to_engine`]); transactions with another
//! ([`Database::begin_at`]) have no catalog, numbers, advisory locks and notifications yet. A group
//! without a leader is 57P03 after a while. PREPARE TRANSACTION and exported snapshots know the first
//! group alone (0A000).

mod circles;
mod txn;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::engine::{
    Build, CatalogChanges, CatalogVersion, Engine, Flight, Gate, LockInfo, LockManager, Outcomes,
    RowKey, SequencePosition, SequenceSpec, SequenceValues, Sequences, SessionLocks,
    StorageMonitor, StorageStatus, Transaction, Transactions, TreeSize, TxnOptions, Writing,
    XidStatus,
};
use base::env::{sleep, BoxFuture, Instant};
use base::ids::FIRST_GROUP;
use base::sync::Mutex;
use base::{
    coro, Debt, Durability, Error, GroupDebt, GroupId, Lsn, Position, Result, SequenceId,
    SessionId, SqlState, Timestamp, TreeId, Xid,
};
use spanning::{Outcome, Participant};

use super::across::{append_parts, Appended};
use super::branch::link::{Connections, Links};
use super::branch::place::{ask_locks, Place};
use super::branch::prepare::Elsewhere;
use super::branch::remote::RemoteBranch;
use super::branch::{Branch, Branching};
use super::{KvEngine, Neighbours};
use crate::gate::outcome_unknown;
use txn::{DatabaseTxn, Joined};

/// How long a transaction waits until this node leads a group that it has touched, as after the loss
/// of a leader …
const LEADERSHIP_WAIT_MAX: Duration = Duration::from_secs(3);

/// … and how often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The groups of a node, as one.
pub struct Database {
    first: Arc<KvEngine>,
    groups: Weak<dyn Neighbours>,
    /// There is any group but the first.
    has_further: Arc<AtomicBool>,
    /// The greatest timestamp that transactions here have heard of.
    heard: AtomicI64,
    /// The last number that was given.
    numbered: Mutex<Option<Position>>,
    /// A statement has met a group that it had not joined when it began: all join all from now on.
    joins_all: AtomicBool,
    /// To the nodes that lead other groups, where transactions have branches on them.
    connections: Option<Arc<Connections>>,
}

impl Database {
    /// Over the first group, and whatever others its node has, if it has any; `links` reach the nodes
    /// that lead them, without which this one has to lead whatever a transaction touches.
    pub fn new(
        first: Arc<KvEngine>,
        groups: Weak<dyn Neighbours>,
        has_further: Arc<AtomicBool>,
        links: Option<Box<dyn Links>>,
    ) -> Arc<Database> {
        Arc::new(Database {
            first,
            groups,
            has_further,
            heard: AtomicI64::new(i64::MIN),
            numbered: Mutex::new(None),
            joins_all: AtomicBool::new(false),
            connections: links.map(|links| Arc::new(Connections::new(links))),
        })
    }

    /// The engine of sessions on the leader: of what it answers to, only this concerns all groups.
    pub fn to_engine(self: &Arc<Database>) -> Engine {
        Engine {
            transactions: Arc::new(Begins(self.clone())),
            gate: self.clone(),
            sequences: self.clone(),
            storage: self.clone(),
            locks: Some(self.clone()),
            outcomes: Some(self.clone()),
            ..self.first.to_engine()
        }
    }

    fn engine(&self, group: GroupId) -> Option<Arc<KvEngine>> {
        self.groups.upgrade()?.engine(group)
    }

    fn engines(&self) -> Vec<Arc<KvEngine>> {
        let groups = self.groups.upgrade();
        groups.map_or_else(|| vec![self.first.clone()], |groups| groups.engines())
    }

    /// A transaction whose home is a group that this node leads.
    ///
    /// # Errors
    /// 40001 where it does not lead it.
    pub fn begin_at(
        self: &Arc<Self>,
        home: GroupId,
        options: TxnOptions,
    ) -> Result<Box<dyn Transaction>> {
        let home = self.engine(home).ok_or_else(crate::group::not_leader)?;
        let txn = home.begin_branch(options)?;
        let home = Branch::new(home, txn);
        Ok(Box::new(DatabaseTxn::new(self.clone(), home, options)))
    }

    /// A branch of a transaction in another group than its home, if there is a leader now that can be
    /// reached. Whether that takes it, is sure once it is [`confirmed`](Branching::confirm).
    ///
    /// # Errors
    /// The interrupt that ended the wait; whatever else than leadership is in the way.
    fn try_branch(
        &self,
        group: GroupId,
        home: &Branch,
        options: TxnOptions,
    ) -> Result<Option<Box<dyn Branching>>> {
        let Some(engine) = self.engine(group) else {
            return Ok(None);
        };
        if engine.group().leading().is_some() {
            return match engine.begin_branch(options) {
                Ok(mut txn) => {
                    txn.set_numbering(self.first.group().clone());
                    Ok(Some(Box::new(Branch::new(engine, txn))))
                }
                // It was handed over meanwhile.
                Err(error) if error.is_failover() => Ok(None),
                Err(error) => Err(error),
            };
        }
        let Some(place) = self.place(&engine) else {
            return Ok(None);
        };
        match RemoteBranch::begin(place, self.led(&home.engine)?, options) {
            Ok(branch) => Ok(Some(Box::new(branch))),
            Err(error) if error.is_failover() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The term in which this node leads a group.
    fn led(&self, engine: &KvEngine) -> Result<Participant> {
        let leading = engine.group().leading();
        Ok(Participant {
            group: engine.group().id(),
            term: leading.ok_or_else(crate::group::not_leader)?,
        })
    }

    /// Waits until the catalog is what whoever had a table's lock has made of it, once that was given up.
    ///
    /// # Errors
    /// As [`Group::wait_for_standing`](crate::group::Group::wait_for_standing).
    fn wait_for_catalog(&self) -> Result<()> {
        let first = self.first.group();
        match first.leading() {
            Some(_) => first.wait_for_standing(),
            None => Ok(()),
        }
    }

    /// Whether the rows of a further group can be numbered as a build wants it: numbers are given where
    /// the first group is led.
    ///
    /// # Errors
    /// 0A000 where they cannot.
    fn check_numbers_for(&self, build: &Build) -> Result<()> {
        let key = build.rekeyed.as_ref().map(|rekeyed| &rekeyed.key);
        let are_wanted = matches!(key, Some(RowKey::Numbers(_)));
        let group = self.engine(build.source.group());
        let leads = |engine: &Arc<KvEngine>| engine.group().leading().is_some();
        if are_wanted && !(leads(&self.first) && group.is_some_and(|group| leads(&group))) {
            let what = "numbering the rows of a table whose group another node leads";
            return Err(Error::unsupported(what));
        }
        Ok(())
    }

    /// The other node that leads a group.
    fn place(&self, engine: &Arc<KvEngine>) -> Option<Place> {
        let group = engine.group();
        let node = group.leader().filter(|node| *node != group.node())?;
        Some(Place {
            group: group.clone(),
            node,
            connections: self.connections.clone()?,
        })
    }

    /// The groups but the first that have a leader.
    fn led_groups(&self) -> Vec<GroupId> {
        let engines = self
            .engines()
            .into_iter()
            .map(|engine| engine.group().clone());
        let others = engines.filter(|group| group.id() != FIRST_GROUP);
        let led = others.filter(|group| match self.connections {
            Some(_) => group.leader().is_some(),
            None => group.leading().is_some(),
        });
        led.map(|group| group.id()).collect()
    }

    /// Commits what a transaction has written in these groups, or has to hold there until then;
    /// `home` coordinates if it is one of them.
    fn commit_parts(
        &self,
        home: Option<Branch>,
        mut others: Vec<Joined>,
        durability: Durability,
    ) -> Result<Debt> {
        if others.is_empty() {
            let Some(Branch { engine, txn, .. }) = home else {
                return Ok(Debt::NONE);
            };
            return self.commit_alone(&engine, || txn.commit(durability));
        }
        let durability = durability.max(Durability::On);
        let spreads = others.iter().any(|one| !one.branch.is_here());
        let mut awaited: Vec<_> = (others.iter().filter(|one| one.branch.is_here()))
            .filter_map(|one| self.engine(one.branch.group()))
            .collect();
        let changes_catalog = home
            .as_ref()
            .is_some_and(|home| !home.txn.catalog_writes().is_empty());
        let coordinator = match home {
            Some(home) => {
                awaited.insert(0, home.engine.clone());
                home
            }
            None => {
                // All of them are here.
                let one = others.remove(0).branch;
                if others.is_empty() {
                    let engine = self
                        .engine(one.group())
                        .ok_or_else(crate::group::not_leader)?;
                    return self.commit_alone(&engine, || one.commit(durability));
                }
                *one.into_local()?
            }
        };
        let engine = coordinator.engine.clone();
        let others = others.into_iter().map(|one| one.branch).collect();
        let appended = append_parts(coordinator, others, self.heard(), durability)?;
        let id = appended.id;
        let mut committed = match spreads {
            true => self.decided(&engine, appended)?,
            false => appended.debt,
        };
        match (durability, changes_catalog) {
            // Whoever reads on a standby is to see it, and not that it is prepared.
            (Durability::RemoteApply, _) => {}
            // Who goes on here goes by the catalog's version.
            (_, true) => awaited.truncate(1),
            (_, false) => awaited.clear(),
        }
        for engine in awaited {
            engine.await_resolution(id, &mut committed);
        }
        Ok(committed)
    }

    /// What a transaction rests on that has parts in groups which other nodes lead, once it is known to
    /// be committed or that is up to the logs.
    ///
    /// # Errors
    /// What one of its groups has against it, once it is sure that it is aborted; 08007 when that cannot
    /// be known here.
    fn decided(&self, engine: &Arc<KvEngine>, appended: Appended) -> Result<Debt> {
        let outcome = engine.await_decision(appended.id, &appended.elsewhere);
        match (outcome, appended.refusal) {
            (Some(Outcome::Committed(at)), _) => {
                self.hear(at);
                let elsewhere: Vec<_> = appended.elsewhere.iter().map(Elsewhere::group).collect();
                Ok(appended.debt.without(&elsewhere))
            }
            (_, None) => Ok(appended.debt),
            (Some(Outcome::Aborted), Some(refusal)) if engine.await_abort(appended.id) => {
                Err(refusal)
            }
            (_, Some(_)) => Err(outcome_unknown()),
        }
    }

    /// Commits in one group that this node leads.
    fn commit_alone(
        &self,
        engine: &Arc<KvEngine>,
        commit: impl FnOnce() -> Result<Debt>,
    ) -> Result<Debt> {
        engine.group().pass(self.heard());
        let committed = commit()?;
        self.hear(engine.group().timestamp());
        Ok(committed)
    }

    /// The greatest timestamp that any transaction here has heard of.
    fn heard(&self) -> Timestamp {
        Timestamp(self.heard.load(Ordering::SeqCst))
    }

    /// A transaction has heard of this.
    fn hear(&self, timestamp: Timestamp) {
        self.heard.fetch_max(timestamp.0, Ordering::SeqCst);
    }

    /// A group is about to be read by itself.
    fn pass_in(&self, engine: &KvEngine) {
        let heard = self.heard();
        if engine.passed.load(Ordering::SeqCst) < heard.0 {
            engine.group().pass(heard);
            engine.passed.fetch_max(heard.0, Ordering::SeqCst);
        }
    }

    /// What is owed by whoever writes in another group than the first.
    fn numbered(&self) -> Debt {
        let first = self.first.group();
        // What was given in another term is committed, or nobody has it who could still commit.
        let given = self
            .numbered
            .lock()
            .filter(|at| first.leading() == Some(at.term));
        given.map_or(Debt::NONE, |at| Debt::of(first.id(), at))
    }

    fn is_of_first(&self, debt: &Debt) -> bool {
        let first = self.first.group().id();
        debt.groups().all(|part| part.group == first)
    }

    /// Whom a part of a debt is owed to, and as a debt of its own.
    fn part(&self, part: GroupDebt) -> Result<(Arc<KvEngine>, Debt)> {
        let debt = Debt::of(part.group, part.position);
        match part.group == self.first.group().id() {
            true => Ok((self.first.clone(), debt)),
            false => {
                let absent = || Error::internal(format!("a debt in group {}", part.group));
                Ok((self.engine(part.group).ok_or_else(absent)?, debt))
            }
        }
    }
}

/// Somebody waits until a group is led.
struct Patience {
    home: Arc<KvEngine>,
    group: GroupId,
    until: Instant,
}

impl Patience {
    /// Whoever has this home waits for a leader of a group.
    fn with(home: &Arc<KvEngine>, group: GroupId) -> Patience {
        let now = home.group().env().now();
        Patience {
            home: home.clone(),
            group,
            until: now.after(LEADERSHIP_WAIT_MAX),
        }
    }

    /// Waits a moment.
    ///
    /// # Errors
    /// 57P03 when it has taken too long; 40001 where this node does not lead the home any more; the
    /// interrupt that ended the wait.
    fn wait(&self) -> Result<()> {
        let home = self.home.group();
        // Whoever leads that no more has nothing to wait for.
        if home.leading().is_none() {
            return Err(crate::group::not_leader());
        }
        let env = home.env();
        if env.now() >= self.until {
            let message = format!("group {} has no leader that can be reached", self.group);
            let hint = "It has one as soon as a majority of its voters is there.";
            return Err(Error::new(SqlState::CANNOT_CONNECT_NOW, message).with_hint(hint));
        }
        coro::wait(sleep(&**env, LOOK_EVERY))?;
        Ok(())
    }
}

/// Begins transactions at home in the first group; they keep the database.
struct Begins(Arc<Database>);

impl Transactions for Begins {
    fn begin(&self, options: TxnOptions) -> Result<Box<dyn Transaction>> {
        let Begins(database) = self;
        match database.has_further.load(Ordering::Relaxed) {
            true => database.begin_at(FIRST_GROUP, options),
            false => Ok(Box::new(database.first.begin_branch(options)?)),
        }
    }

    fn catalog_version(&self) -> CatalogVersion {
        self.0.first.catalog_version()
    }

    fn catalog_changes(&self, since: CatalogVersion) -> Option<CatalogChanges> {
        self.0.first.catalog_changes(since)
    }
}

impl Sequences for Database {
    fn advance(&self, sequence: SequenceId, count: u64) -> Result<(u64, Debt)> {
        let (number, debt) = self.first.advance(sequence, count)?;
        let mut numbered = self.numbered.lock();
        let given = debt.groups().map(|part| part.position);
        *numbered = given.chain(*numbered).max();
        Ok((number, debt))
    }

    fn next_values(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
        count: u64,
    ) -> Result<(SequenceValues, Debt)> {
        self.first.next_values(sequence, spec, count)
    }

    fn set_sequence(&self, sequence: SequenceId, to: SequencePosition) -> Result<Debt> {
        self.first.set_sequence(sequence, to)
    }

    fn sequence_position(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
    ) -> Result<(SequencePosition, u64, Debt)> {
        self.first.sequence_position(sequence, spec)
    }
}

impl Gate for Database {
    fn is_settled(&self, debt: &Debt, durability: Durability) -> bool {
        if self.is_of_first(debt) {
            return self.first.is_settled(debt, durability);
        }
        debt.groups().all(|part| {
            let part = self.part(part);
            part.is_ok_and(|(engine, debt)| engine.is_settled(&debt, durability))
        })
    }

    fn settle(&self, debt: Debt, durability: Durability) -> BoxFuture<'static, Result<()>> {
        if self.is_of_first(&debt) {
            return self.first.settle(debt, durability);
        }
        let mut parts = Vec::new();
        for part in debt.groups() {
            match self.part(part) {
                Ok((engine, debt)) => parts.push(engine.settle(debt, durability)),
                Err(error) => return Box::pin(std::future::ready(Err(error))),
            }
        }
        Box::pin(async move {
            for part in parts {
                part.await?;
            }
            Ok(())
        })
    }
}

impl StorageMonitor for Database {
    fn tree_size(&self, tree: TreeId) -> Option<TreeSize> {
        self.engine(tree.group())?.tree_size(tree)
    }

    fn storage(&self) -> Vec<StorageStatus> {
        let engines = self.engines();
        engines.iter().flat_map(|engine| engine.storage()).collect()
    }
}

impl Outcomes for Database {
    fn committed_xid(&self, commit: &Debt) -> Option<Xid> {
        self.first.committed_xid(commit)
    }

    fn row_place(&self, tree: TreeId, key: &[u8]) -> Result<Option<Lsn>> {
        match self.engine(tree.group()) {
            Some(engine) => engine.row_place(tree, key),
            None => Ok(None),
        }
    }

    fn xid_status(&self, xid: Xid) -> Result<Option<XidStatus>> {
        self.first.xid_status(xid)
    }

    fn flight_outcome(&self, flight: Flight, since: Lsn) -> Result<Option<Xid>> {
        self.first.flight_outcome(flight, since)
    }
}

impl LockManager for Database {
    fn session_locks(&self, session: SessionId) -> Result<Box<dyn SessionLocks>> {
        self.first.session_locks(session)
    }

    fn blockers(&self, session: SessionId) -> Vec<SessionId> {
        let engines = self.engines().into_iter();
        let mut all: Vec<_> = engines
            .flat_map(|engine| engine.blockers(session))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn snapshot_blockers(&self, session: SessionId) -> Vec<SessionId> {
        self.first.snapshot_blockers(session)
    }

    fn blockers_everywhere(&self, session: SessionId) -> Result<Vec<SessionId>> {
        let mut all = self.waits_of(session)?;
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    fn lock_infos(&self) -> Result<Vec<LockInfo>> {
        let mut all = Vec::new();
        for engine in self.engines() {
            match self.place(&engine) {
                None => all.extend(engine.locks.infos()),
                Some(place) => match ask_locks(&place) {
                    Ok(infos) => all.extend(infos),
                    Err(error) if error.is_failover() => {}
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(all)
    }
}
