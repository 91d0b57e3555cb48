//! The heart of a group: consensus, the applier, and what follows from their outputs.
//!
//! Everything here happens under one latch, in [`Group::pump`]: what the consensus says is carried
//! out (append, apply, take back, send), and what has changed is announced (gate, lease,
//! leadership, visible position). Nothing here waits: the log is written and synced elsewhere.
//!
//! ```text
//!   commit ─┐
//!   frame ──┤            ┌─► transport          (before the fsync)
//!   tick ───┼─► consensus ─► log in memory ─► log writer (fsync) ─┐
//!   synced ─┘            └─► trees ─► visible                     │
//!      ▲                                                          │
//!      └──────────────────────────────────────────────────────────┘
//! ```
//!
//! # Apply on append
//! Entries are applied when they are appended, without waiting for the commit index. When another
//! leader's entries replace the end of the log, the trees go back first ([`Group::cut`]). A leader
//! has applied its own records before they come back as entries, so those are passed over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::env::{Instant, Severity};
use base::{Chain, Error, Lsn, NodeId, Position, Result, Term, Timestamp, TxnId};
use raft::planted::{is_planted, Bug};
use raft::watermarks::View;
use raft::{Consensus, Entry, EntryKind, HardState, LogView, Ready, Role, SnapshotMeta, State};
use storage::log::{Log, LogEntry};
use storage::Store;

use super::ahead::Prepared;
use super::handover::Preference;
use super::latch::After;
use super::meta::{Beginning, Kept};
use super::outbox::Outbox;
use super::pace::Pace;
use super::pieces::Applying;
use super::sequences::Sequences;
use super::slow::{LogDisk, Stalls};
use super::standbys::Named;
use super::standing::Proposals;
use super::Group;
use crate::apply::{self, apply};
use crate::config::Leads;
use crate::gate::Satisfied;

/// Entries that one turn applies; the rest follows in further turns, so that nobody waits long for
/// the latch. A leader applies all at once.
const APPLIED_PER_TURN_MAX: usize = 256;

/// Bytes of entries after which a turn ends too.
const APPLIED_BYTES_PER_TURN: usize = 128 << 10;

/// Changes that one turn lets go of, when their versions are not needed any more.
const RELEASED_PER_TURN_MAX: usize = 256;

/// The log is told of the commit index when so many more entries are committed …
const COMMITS_KEPT: u64 = 256;

/// … or when it was not told for so long.
const COMMIT_KEPT_FOR: Duration = Duration::from_secs(1);

/// The log as the consensus reads it.
#[derive(Debug)]
pub struct LogReader {
    pub(super) log: Arc<Log>,
    /// No entry below is given to others: a decree has overruled what those say of memberships, of
    /// which a replica that begins with them would know nothing.
    pub(super) floor: Arc<AtomicU64>,
    pub(super) checkpoint: Arc<base::sync::Mutex<Option<SnapshotMeta>>>,
}

impl LogView for LogReader {
    fn first(&self) -> Lsn {
        self.log.first().max(Lsn(self.floor.load(Ordering::SeqCst)))
    }
    fn last(&self) -> Lsn {
        self.log.last().lsn
    }
    fn term(&self, lsn: Lsn) -> Option<Term> {
        self.log.term(lsn)
    }
    fn chain(&self, lsn: Lsn) -> Option<Chain> {
        self.log.chain(lsn)
    }
    fn entries(&self, low: Lsn, high: Lsn, bytes_max: usize) -> Result<Vec<Entry>> {
        let entries = self.log.entries(low, high, bytes_max)?;
        entries.into_iter().map(to_raft).collect()
    }
    fn snapshot(&self) -> Option<SnapshotMeta> {
        self.checkpoint.lock().clone()
    }
}

/// An entry of the log as the consensus sees it.
pub(super) fn to_raft(entry: LogEntry) -> Result<Entry> {
    Ok(Entry {
        term: entry.term,
        lsn: entry.lsn,
        kind: EntryKind::from_code(entry.kind)?,
        data: entry.data,
    })
}

fn to_log(entry: Entry) -> LogEntry {
    LogEntry {
        term: entry.term,
        lsn: entry.lsn,
        kind: entry.kind.code(),
        data: entry.data,
    }
}

/// What the latch of a group guards.
pub struct Core {
    pub(super) consensus: Consensus<LogReader>,
    /// The newest entry that the trees show.
    pub(super) applied: Position,
    /// Appended and not yet applied; empty on a leader.
    pub(super) queue: VecDeque<Entry>,
    /// The record that is being applied piece by piece, next after `applied`.
    pub(super) applying: Option<Applying>,
    /// How many were so far.
    pub(super) pieces_begun: u64,
    /// That of the newest record in the log.
    pub(super) timestamp: Timestamp,
    pub(super) sequences: Sequences,
    /// When its newest records were proposed, while it leads.
    pub(super) proposals: Proposals,
    /// The term in which this node has announced that it leads.
    pub(super) led: Option<Term>,
    /// Role and term for which the gate was last told.
    gate_state: Option<(Role, Term)>,
    /// The newest output of the consensus that must be synced, and the newest that is.
    pub(super) owed: u64,
    pub(super) synced: u64,
    /// Somebody writes or syncs the log.
    pub(super) writing: bool,
    /// Since when.
    pub(super) writing_since: Instant,
    /// Records of this leader that are not committed, with their bytes.
    pub(super) uncommitted: VecDeque<(Lsn, usize)>,
    /// The newest change of membership that was appended since the start.
    pub(super) membership_changed: Lsn,
    /// A checkpoint is being written.
    pub(super) checkpointing: bool,
    /// A checkpoint is to begin as soon as no large transaction is in its chunks …
    pub(super) checkpoint_wanted: bool,
    /// … and has begun.
    pub(super) checkpoint_begun: Option<super::meta::Meta>,
    /// Large transactions of this leader whose abort is still to be logged.
    pub(super) aborting: Vec<(Term, TxnId)>,
    /// The membership that an operator decreed, until a checkpoint has it.
    pub(super) beginning: Option<Beginning>,
    /// What was last given to the log to keep, and when.
    kept: Option<(HardState, Instant)>,
    /// The other members were asked whether the group goes on without this node.
    pub(super) has_asked: bool,
    /// A fetched checkpoint is being put in place: nothing is heard until it is.
    pub(super) deaf: bool,
    /// The store of that checkpoint.
    pub(super) fetched: Option<Arc<Store>>,
    /// Whether another should lead.
    pub(super) preference: Preference,
    /// How the log's disk is.
    pub(super) disk: LogDisk,
    pub(super) stalls: Stalls,
    /// Who is hurried.
    pub(super) pace: Pace,
    /// Who is waited for beside the majority.
    pub(super) named: Named,
    /// When each other member was last heard of.
    pub(super) heard: BTreeMap<NodeId, Instant>,
    /// Members that have stood for election with another history: said once of each.
    pub(super) suspects: BTreeSet<NodeId>,
    /// Nothing works any more.
    pub(super) failed: bool,
    /// What is done once the latch is free.
    pub(super) after: After,
}

impl Core {
    pub(super) fn new(consensus: Consensus<LogReader>, timestamp: Timestamp) -> Core {
        Core {
            consensus,
            applied: Position::default(),
            queue: VecDeque::new(),
            applying: None,
            pieces_begun: 0,
            timestamp,
            sequences: Sequences::default(),
            proposals: Proposals::default(),
            led: None,
            gate_state: None,
            owed: 0,
            synced: 0,
            writing: false,
            writing_since: Instant(0),
            uncommitted: VecDeque::new(),
            membership_changed: Lsn::ZERO,
            checkpointing: false,
            checkpoint_wanted: false,
            checkpoint_begun: None,
            aborting: Vec::new(),
            beginning: None,
            kept: None,
            has_asked: false,
            deaf: false,
            fetched: None,
            preference: Preference::default(),
            disk: LogDisk::default(),
            stalls: Stalls::default(),
            pace: Pace::default(),
            named: Named::default(),
            heard: BTreeMap::new(),
            suspects: BTreeSet::new(),
            failed: false,
            after: After::default(),
        }
    }
}

impl Core {
    /// The consensus starts over: what was counted for the one before is void.
    pub(super) fn begin_anew(&mut self) {
        self.led = None;
        self.gate_state = None;
        self.kept = None;
        (self.owed, self.synced) = (0, 0);
        self.uncommitted.clear();
        self.pace = Pace::default();
        self.membership_changed = Lsn::ZERO;
    }
}

impl Group {
    /// Carries out what the consensus wants until it wants nothing, and announces what changed.
    pub(super) fn pump(&self, core: &mut Core) {
        if core.failed || core.deaf {
            return;
        }
        let result = self
            .try_carry_out(core)
            .and_then(|()| self.settle_down(core));
        if let Err(error) = result {
            self.fail(core, &error);
        }
    }

    /// As [`Group::pump`], but what was appended to be applied waits for the next one.
    pub(super) fn pump_before_apply(&self, core: &mut Core) {
        if core.failed || core.deaf {
            return;
        }
        let result = self
            .try_carry_out(core)
            .and_then(|()| match core.queue.is_empty() {
                true => self.settle_down(core),
                false => Ok(()),
            });
        if let Err(error) = result {
            self.fail(core, &error);
        }
    }

    /// Carries out what the consensus wants; the log writer gets to work on what was appended.
    fn try_carry_out(&self, core: &mut Core) -> Result<()> {
        let mut outbox = Outbox::default();
        self.shared.gathered.store(0, Ordering::SeqCst);
        let now = self.env.now();
        core.consensus.gather(self.gathers(core, now));
        let laziness = self.laziness(core);
        core.consensus.be_lazy(laziness);
        let written = self.shared.written.load(Ordering::SeqCst);
        core.consensus.written(written);
        while let Some(ready) = core.consensus.ready()? {
            self.carry_out(core, ready, &mut outbox)?;
        }
        if !outbox.is_empty() {
            self.choose_needed(core);
        }
        let group = self.config.group;
        let is_unhurried = |to| self.is_unhurried(core, to);
        let sent = outbox.send(&*self.transport, group, is_unhurried);
        core.after.send |= sent;
        if core.owed > core.synced && !core.writing && core.pace.may_sync() {
            core.writing = true;
            core.writing_since = now;
            core.after.write = Some(self.choose_writer(core));
        }
        Ok(())
    }

    /// Applies, and announces what changed.
    fn settle_down(&self, core: &mut Core) -> Result<()> {
        loop {
            let count = self.apply_queued(core)?;
            // The consensus takes new entries for ones that are not applied yet; a leader has
            // applied its own before.
            core.consensus.applied(core.applied);
            // What a follower has applied, the leader may want to hear.
            if count == 0 || core.consensus.is_leader() {
                break;
            }
            self.try_carry_out(core)?;
        }
        self.announce(core)
    }

    fn carry_out(&self, core: &mut Core, ready: Ready, outbox: &mut Outbox) -> Result<()> {
        if let Some(state) = ready.state {
            self.note_state(core, state);
        }
        ready
            .messages
            .into_iter()
            .for_each(|envelope| outbox.add(envelope));
        if let Some(meta) = &ready.snapshot {
            self.install(core, meta)?;
        }
        let first = ready.entries.first().map(|entry| entry.lsn);
        if let Some(first) = first.filter(|first| *first <= self.log.last().lsn) {
            self.cut(core, first.prev())?;
        }
        let taken_up = core.applying.map_or(core.applied, |record| record.position);
        let mut entries = Vec::with_capacity(ready.entries.len());
        for entry in ready.entries {
            if entry.kind == EntryKind::ConfChange {
                core.membership_changed = entry.lsn;
            }
            if entry.lsn > taken_up.lsn {
                core.queue.push_back(entry.clone());
            }
            entries.push(to_log(entry));
        }
        let state = ready.hard_state;
        let kept = state.and_then(|state| self.kept(core, state));
        self.log.append(entries, kept.as_deref())?;
        core.consensus.advance(ready.number);
        if let Some(membership) = &ready.membership {
            self.note_membership(core, membership)?;
        }
        if ready.must_sync {
            core.owed = ready.number;
            // Whoever reads this writes all of what was appended.
            self.shared.owed.store(ready.number, Ordering::SeqCst);
        }
        if let Some(offer) = ready.offer {
            let position = offer.meta.position;
            if !self.begin_fetch(offer)? {
                core.consensus.snapshot_failed(position);
            }
        }
        Ok(())
    }

    /// What the log is to keep beside its entries, if it must: term, vote and promise always, the commit index
    /// now and then, because a replica learns it anew from whoever leads; but at once when it has
    /// reached a change of membership, because who does not know the members may find nobody to
    /// learn it from.
    fn kept(&self, core: &mut Core, state: HardState) -> Option<Vec<u8>> {
        let now = self.env.now();
        let is_known = core.kept.is_some_and(|(kept, at)| {
            let change = core.membership_changed;
            (kept.term, kept.vote, kept.promise) == (state.term, state.vote, state.promise)
                && !(kept.commit < change && change <= state.commit)
                && state.commit.0 < kept.commit.0.saturating_add(COMMITS_KEPT)
                && now.since(at) < COMMIT_KEPT_FOR
        });
        if is_known {
            return None;
        }
        core.kept = Some((state, now));
        if let Some(beginning) = &core.beginning {
            let checkpoint = self.checkpoint.lock();
            let checkpoint = checkpoint.as_ref().map(|meta| meta.position.lsn);
            if checkpoint.is_some_and(|lsn| lsn > beginning.after) {
                core.beginning = None;
            }
        }
        let beginning = core.beginning.clone();
        Some(Kept { state, beginning }.encode())
    }

    /// Gives the log the commit index as it is now to keep: with it, who compares the directories of
    /// stopped nodes knows which entries no other leader may replace.
    pub(super) fn keep_commit(&self, core: &mut Core) -> Result<()> {
        let Some((kept, _)) = core.kept.filter(|_| !core.failed && !core.deaf) else {
            return Ok(());
        };
        let commit = core.consensus.committed().min(self.log.last().lsn);
        if commit <= kept.commit {
            return Ok(());
        }
        let state = HardState { commit, ..kept };
        core.kept = Some((state, self.env.now()));
        let beginning = core.beginning.clone();
        let kept = Kept { state, beginning }.encode();
        self.log.append(Vec::new(), Some(&kept))
    }

    /// Leadership that has ended is ended here before anything else happens.
    fn note_state(&self, core: &mut Core, state: State) {
        let name = state.role.name();
        let leader = state.leader.map_or(0, |node| node.0);
        let message = format!("{name} in term {}, leader {leader}", state.term);
        self.env.log(Severity::Info, &message);
        let goes_on = state.role == Role::Leader && core.led == Some(state.term);
        core.pace.hurry();
        self.shared.leader.store(leader, Ordering::SeqCst);
        if core.led.is_none() || goes_on {
            return self.leadership_changed.notify_all();
        }
        if core.consensus.rests() {
            let message = "answers of a majority came too late for a lease: another is to lead";
            self.env.log(Severity::Warning, message);
        }
        self.shared.leading.store(0, Ordering::SeqCst);
        self.shared.lease_until.store(0, Ordering::SeqCst);
        core.led = None;
        core.sequences.clear();
        core.proposals.clear();
        core.named.end_term();
        self.values.clear();
        core.uncommitted.clear();
        self.shared.uncommitted.store(0, Ordering::SeqCst);
        self.lag.lock().clear();
        if let Err(error) = self.observer.leading(None) {
            self.fail(core, &error);
        }
        self.lease_changed.notify_all();
        self.leadership_changed.notify_all();
        self.room.notify_all();
        self.registry.builds().changed.notify_all();
    }

    /// Takes back what lies above `to`, because the leader's log is another one there.
    fn cut(&self, core: &mut Core, to: Lsn) -> Result<()> {
        let term = core.consensus.term();
        self.env
            .log(Severity::Info, &format!("log cut to {to} in term {term}"));
        self.shared.cuts.fetch_add(1, Ordering::SeqCst);
        core.queue.retain(|entry| entry.lsn <= to);
        let applying = core.applying.take_if(|record| record.position.lsn > to);
        if core.applied.lsn <= to && applying.is_some() {
            self.take_back_trees(to)?;
            self.room.notify_all();
        }
        if core.applied.lsn > to {
            if !is_planted(Bug::TailKept) {
                self.take_back_trees(to)?;
            }
            let before = self.log.term(to);
            let before = before.ok_or_else(|| Error::internal(format!("no term at {to}")))?;
            core.applied = Position {
                term: before,
                lsn: to,
            };
            self.shared.visible.store(to.0, Ordering::SeqCst);
        }
        self.registry.configurations().cut(to);
        self.registry.groups().cut(to);
        self.registry.prepared().cut(to);
        self.registry.decisions().cut(to);
        self.registry.resolutions().cut(to);
        self.registry.listeners().cut(to);
        if !is_planted(Bug::TailReleased) {
            self.gate.cut(term, to, true);
            self.observer.cut(term, to);
        }
        Ok(())
    }

    fn take_back_trees(&self, to: Lsn) -> Result<()> {
        let store = self.store();
        // What was half built is of rows that may have been others: begun anew, where it still is
        // under way.
        self.registry.builds().clear(&store);
        store.take_back(to)?;
        self.registry.builds().load(&store)?;
        if self.registry.catalog().newest().lsn > to && !is_planted(Bug::DdlKept) {
            apply::load_registry(&store, &self.registry, to)?;
        }
        Ok(())
    }

    /// Puts a fetched checkpoint in the place of trees and log.
    fn install(&self, core: &mut Core, meta: &SnapshotMeta) -> Result<()> {
        let position = meta.position;
        let store = core.fetched.take();
        let store = store.ok_or_else(|| Error::internal("no checkpoint was fetched"))?;
        let found = store.checkpoint().lsn;
        if found != position.lsn {
            let message = format!("a checkpoint at {found} and not at {}", position.lsn);
            return Err(Error::internal(message));
        }
        let commit = self.gate.commit();
        let term = core.consensus.term();
        self.shared.cuts.fetch_add(1, Ordering::SeqCst);
        self.log.install(position, meta.chain);
        self.registry.builds().clear(&self.store());
        apply::load_registry(&store, &self.registry, position.lsn)?;
        let settings = apply::configuration(&store, position.lsn)?;
        self.registry
            .configurations()
            .begin_anew(position.lsn, settings);
        let groups = apply::groups(&store)?;
        self.registry.groups().begin_anew(position.lsn, groups);
        let prepared = apply::prepared(&store, position.lsn)?;
        self.registry.prepared().begin_anew(position.lsn, prepared);
        let decisions = apply::decisions(&store, position.lsn)?;
        self.registry
            .decisions()
            .begin_anew(position.lsn, decisions);
        self.registry.listeners().begin_anew(position.lsn);
        self.registry.builds().load(&store)?;
        let timestamp = super::meta::Meta::decode(&store.checkpoint().meta)?.timestamp;
        core.timestamp = core.timestamp.max(timestamp);
        *self.store.write() = store;
        core.queue.clear();
        core.applying = None;
        self.room.notify_all();
        core.applied = position;
        self.shared.visible.store(position.lsn.0, Ordering::SeqCst);
        self.gate.cut(term, commit, false);
        self.observer.cut(term, commit);
        *self.checkpoint.lock() = Some(meta.clone());
        Ok(())
    }

    /// Applies what was appended: everything on a leader, some of it elsewhere.
    fn apply_queued(&self, core: &mut Core) -> Result<usize> {
        let most = match core.consensus.is_leader() {
            true => usize::MAX,
            false => APPLIED_PER_TURN_MAX,
        };
        let (mut count, mut bytes) = (0, 0);
        while core.applying.is_none() {
            let Some(entry) = core.queue.pop_front() else {
                break;
            };
            if Group::is_in_pieces(&entry) {
                self.apply_beside(core, entry);
                break;
            }
            bytes += entry.data.len();
            if !self.apply_or_load(core, entry)? {
                break;
            }
            count += 1;
            if count == most || (most < usize::MAX && bytes > APPLIED_BYTES_PER_TURN) {
                break;
            }
        }
        core.after.work |= core.applying.is_none() && !core.queue.is_empty();
        if count > 0 && core.led.is_some() {
            // Whoever wants to append waits for entries that came from elsewhere.
            self.room.notify_all();
        }
        if count > 0 {
            self.shared
                .visible
                .store(core.applied.lsn.0, Ordering::SeqCst);
        }
        Ok(count)
    }

    pub(super) fn apply_entry(&self, core: &mut Core, entry: &Entry) -> Result<()> {
        let timestamp = apply_to(&self.store(), &self.registry, entry)?;
        self.note_entry(core, entry.position(), timestamp)
    }

    /// The trees show an entry.
    pub(super) fn note_entry(
        &self,
        core: &mut Core,
        position: Position,
        timestamp: Option<Timestamp>,
    ) -> Result<()> {
        let expected = core.applied.lsn.next();
        assert_eq!(position.lsn, expected, "entries are applied in order");
        core.timestamp = core.timestamp.max(timestamp.unwrap_or(core.timestamp));
        core.applied = position;
        self.shared.visible.store(position.lsn.0, Ordering::SeqCst);
        self.note_applied_for_comparing(core);
        self.begin_wanted_checkpoint(core)
    }

    /// Tells everybody what has changed.
    fn announce(&self, core: &mut Core) -> Result<()> {
        let commit = core.consensus.committed();
        self.registry.configurations().commit(commit);
        self.registry.groups().commit(commit);
        let prepared = self.registry.prepared().commit(commit);
        if self.registry.decisions().commit(commit) || prepared {
            self.standing_changed.notify_all();
        }
        // Before the gate tells anybody.
        let decided = commit.min(core.applied.lsn);
        let listeners = self.registry.listeners();
        listeners.commit(decided, &mut core.after.released);
        self.take_settings(core);
        self.announce_leadership(core);
        let state = (core.consensus.role(), core.consensus.term());
        let satisfied = self.satisfied(core);
        let lowest = satisfied.iter().copied().fold(Lsn::MAX, Lsn::min);
        match core.gate_state.replace(state) == Some(state) {
            true => self.gate.raise(commit, satisfied, &mut core.after.released),
            false => {
                self.gate.change_term(commit, satisfied);
                self.log_changed.notify_all();
            }
        }
        self.announce_lease(core);
        let eager = core.consensus.is_eager();
        self.shared.eager.store(eager, Ordering::SeqCst);
        let mut settled = 0;
        while core
            .uncommitted
            .front()
            .is_some_and(|first| first.0 <= commit)
        {
            settled += core.uncommitted.pop_front().map_or(0, |first| first.1);
        }
        if settled > 0 {
            self.shared.uncommitted.fetch_sub(settled, Ordering::SeqCst);
            self.room.notify_all();
            self.log_changed.notify_all();
        }
        let horizon = self.snapshots.horizon(decided);
        let store = self.store();
        let (snapshots, others_from) = self.snapshots.below(decided);
        store.set_needed(snapshots.into_iter(), others_from);
        let all = store.release_in_memory(horizon, RELEASED_PER_TURN_MAX)?;
        let clean = store.clean(decided, lowest, RELEASED_PER_TURN_MAX)?;
        core.after.work |= !all || !clean;
        self.begin_wanted_checkpoint(core)
    }

    /// A leader leads for its clients once it has applied an entry of its own term. Where that has
    /// aborted somebody, it must be committed: what is locked anew must be nobody else's.
    fn announce_leadership(&self, core: &mut Core) {
        let start = core.consensus.term_start();
        let ready = core.consensus.is_leader()
            && core.led.is_none()
            && core.applied.lsn >= start
            && (core.consensus.committed() >= start || !self.store().has_undecided());
        if !ready {
            return;
        }
        let term = core.consensus.term();
        let commit = core.consensus.committed();
        let satisfied = self.satisfied(core);
        // Before a position of this term can exist.
        self.gate.change_term(commit, satisfied);
        core.gate_state = Some((Role::Leader, term));
        core.led = Some(term);
        let overruled = self.directory().begun_after;
        if overruled > Lsn::ZERO {
            self.floor.fetch_max(overruled.next().0, Ordering::SeqCst);
        }
        let prepared = self.registry.prepared().newest();
        let prepared = &prepared;
        let leads = Leads {
            term,
            first: start,
            commit,
            prepared,
        };
        if let Err(error) = self.observer.leading(Some(leads)) {
            return self.fail(core, &error);
        }
        self.shared.leading.store(term.0, Ordering::SeqCst);
        self.lease_changed.notify_all();
        self.leadership_changed.notify_all();
        self.standing_changed.notify_all();
    }

    fn announce_lease(&self, core: &Core) {
        let lease = core.consensus.lease().filter(|_| core.led.is_some());
        let until = lease.map_or(0, |lease| lease.until.0);
        if self.shared.lease_until.swap(until, Ordering::SeqCst) != until {
            self.lease_changed.notify_all();
        }
    }

    /// For each level the LSN up to which it is satisfied. A replica that does not lead knows of
    /// the commit index alone.
    fn satisfied(&self, core: &Core) -> Satisfied {
        let commit = core.consensus.committed();
        if !core.consensus.is_leader() {
            return [Lsn::MAX, commit, commit, commit, commit];
        }
        let replicas = core.consensus.replicas(self.env.now());
        let view = View {
            membership: core.consensus.membership(),
            leader: self.config.node,
            replicas: &replicas,
            commit,
            term_start: core.consensus.term_start(),
        };
        core.named.satisfied(&view)
    }

    /// Followers report what they received and applied at once while somebody waits for that, and
    /// when there is little to report; else with their next acknowledgement.
    pub(super) fn tend_eagerness(&self, core: &mut Core, busy: bool, now: Instant) {
        let eager = self.gate.wants_eager() || !busy;
        core.consensus.want_eager_watermarks(eager, now);
    }

    /// The node cannot go on.
    pub(super) fn fail(&self, core: &mut Core, error: &Error) {
        core.failed = true;
        self.shared.leading.store(0, Ordering::SeqCst);
        self.shared.lease_until.store(0, Ordering::SeqCst);
        self.shared.failed.store(true, Ordering::SeqCst);
        self.gate.close();
        self.lease_changed.notify_all();
        self.leadership_changed.notify_all();
        self.room.notify_all();
        self.registry.builds().changed.notify_all();
        self.comparing.changed.notify_all();
        self.registry.groups().changed.notify_all();
        self.standing_changed.notify_all();
        self.log_changed.notify_all();
        self.env
            .stop_node(&format!("group {}: {error}", self.config.group));
    }
}

/// Applies one entry to the trees; returns its record's timestamp.
pub(super) fn apply_to(
    store: &Store,
    registry: &crate::registry::Registry,
    entry: &Entry,
) -> Result<Option<Timestamp>> {
    let prepared = Prepared::of(entry.position(), entry.kind, &entry.data)?;
    apply_prepared(store, registry, &prepared)
}

/// As [`apply_to`], of an entry that was taken apart.
pub(super) fn apply_prepared(
    store: &Store,
    registry: &crate::registry::Registry,
    entry: &Prepared,
) -> Result<Option<Timestamp>> {
    let lsn = entry.position.lsn;
    if entry.kind == EntryKind::Empty {
        let derived = apply::derive_new_term(store, registry, entry.position)?;
        apply(store, registry, lsn, derived)?;
        return Ok(None);
    }
    let Some(record) = &entry.record else {
        store.advance(lsn)?;
        return Ok(None);
    };
    let mut derived = apply::derive_record(store, registry, record)?;
    if is_planted(Bug::RowAltered) {
        derived.alter_rows();
    }
    apply(store, registry, lsn, derived)?;
    Ok(Some(record.timestamp))
}
