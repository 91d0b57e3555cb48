//! The state machine of one replica: inputs in, [`Ready`] out.
//!
//! See the crate's page for the order of calls. All methods are plain functions of the state and
//! their arguments; `now` is read by the caller, after the message at hand has arrived.

mod disks;
mod histories;
mod inputs;
mod lateness;
mod outputs;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::env::Instant;
use base::hash::HashMap;
use base::{Chain, Durability, Error, GroupId, Lsn, NodeId, Position, Result, SqlState, Term};
use raft_rs::eraftpb::{self, MessageType};
use raft_rs::{ProgressState, RawNode, SnapshotStatus, StateRole};
use slog::o;

use self::inputs::{check_recovered, has_taken_part};
use self::lateness::Lateness;
use crate::adapter::{self, Adapter};
use crate::lease::{default_drift, Lease, Promise, Rounds};
use crate::message::{is_transfer, travels, Envelope, Message, RaftMessage};
use crate::planted::{is_planted, Bug};
use crate::standby_names::Standbys;
use crate::status::{Condition, PeerState, PeerStatus, Status};
use crate::types::{
    ConfChange, Entry, HardState, LogView, Membership, Reconfiguration, Recovered, Role,
    SnapshotMeta, SnapshotOffer,
};
use crate::watermarks::{self, Replica, View};

/// A follower that hears nothing for this long, or up to half as long again, stands for election.
///
/// With heartbeats of 50 ms, three lost ones change nothing, and a failover takes 0.3 to 0.45 s
/// plus two round trips and a flush. The time runs from the last heartbeat, as the promise does that
/// goes with its answer ([`crate::lease`]), so neither waits for the other.
pub const ELECTION_TIMEOUT: Duration = Duration::from_millis(300);

/// A leader says this often that it is there.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(50);

/// Ticks between two heartbeats; more of them spread election timeouts more finely.
const TICKS_PER_HEARTBEAT: usize = 2;

/// Election timeouts differ by up to one in so many parts of the shortest, so that rarely two stand
/// at once. After a second try in vain they differ by all of it.
const ELECTION_SPREAD_DIVISOR: usize = 2;

/// Who stands in vain for the first time, because votes were split or a voter's promise still ran,
/// tries again after so many ticks, up to twice as many. Further tries take a whole timeout: where a
/// disk is so slow that a vote takes longer, hurry would end every election in the next.
const FIRST_RETRY_TICKS: usize = 4;

/// Appends in flight to one follower; at it, further entries wait for an acknowledgement.
const APPENDS_IN_FLIGHT_MAX: usize = 256;

/// Bytes of entries in one append; at it, the rest goes into the next.
const APPEND_BYTES_MAX: u64 = 1 << 20;

/// Bytes of entries that are sent to one follower at one time; at it, the rest waits for its answer. A
/// replica that is far behind would take everybody's time otherwise, heartbeats' included.
const SENT_AT_ONCE_MAX: usize = 4 << 20;

/// An append of more bytes than this gets a follower time before its silence counts …
const LARGE_APPEND_BYTES: usize = 1 << 20;

/// … a second for so many bytes. It answers nothing else until it has taken the append in.
const LARGE_APPEND_BYTES_PER_SECOND: u64 = 10 << 20;

/// What a replica is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// The group.
    pub group: GroupId,
    /// This replica's node.
    pub node: NodeId,
    /// See [`ELECTION_TIMEOUT`]. Replicas of a group need not agree on it ([`crate::lease`]).
    pub election_timeout: Duration,
    /// See [`HEARTBEAT_INTERVAL`].
    pub heartbeat_interval: Duration,
    /// By how much a lease is shorter than the election timeout.
    pub drift_max: Duration,
    /// What election timeouts are drawn from.
    pub seed: u64,
}

impl Config {
    /// The usual times.
    pub fn new(group: GroupId, node: NodeId, seed: u64) -> Config {
        Config {
            group,
            node,
            election_timeout: ELECTION_TIMEOUT,
            heartbeat_interval: HEARTBEAT_INTERVAL,
            drift_max: default_drift(ELECTION_TIMEOUT),
            seed,
        }
    }

    fn tick_interval(&self) -> Duration {
        self.heartbeat_interval / TICKS_PER_HEARTBEAT as u32
    }

    /// Election timeout in ticks. One more than fit: the first may come at once.
    fn election_ticks(&self) -> usize {
        let ticks = self
            .election_timeout
            .as_nanos()
            .div_ceil(self.tick_interval().as_nanos().max(1));
        usize::try_from(ticks).unwrap_or(usize::MAX / 4) + 1
    }

    fn validate(&self) -> Result<()> {
        let heartbeats = self.heartbeat_interval * 2;
        let sound = self.node.0 != 0
            && !self.tick_interval().is_zero()
            && heartbeats <= self.election_timeout
            && self.drift_max < self.election_timeout;
        match sound {
            true => Ok(()),
            false => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("the times of a group do not fit one another: {self:?}"),
            )),
        }
    }
}

/// To which followers proposals leave late: not before they have acknowledged what they were sent.
///
/// So what nobody waits for reaches them in few, large appends, one at a time, and they are never
/// further behind than by what was proposed within one round trip and one flush of theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Laziness {
    /// To none.
    #[default]
    Nobody,
    /// To all others than these.
    Except(Arc<[NodeId]>),
    /// To all.
    Everybody,
}

impl Laziness {
    fn covers(&self, node: NodeId) -> bool {
        match self {
            Laziness::Nobody => false,
            Laziness::Except(hurried) => !hurried.contains(&node),
            Laziness::Everybody => true,
        }
    }
}

/// A replica's place in its group. A change of it is what aborts work in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Its role.
    pub role: Role,
    /// Its term.
    pub term: Term,
    /// The leader that it knows.
    pub leader: Option<NodeId>,
}

/// What the driver has to do. In this order: take note of `state` (and publish that a lease is
/// gone), send `messages`, install `snapshot`, append `entries`, then [`Consensus::advance`].
#[derive(Debug)]
pub struct Ready {
    /// For [`Consensus::advance`], [`Consensus::written`] and [`Consensus::persisted`].
    pub number: u64,
    /// The replica's place in the group, if it changed.
    pub state: Option<State>,
    /// To be sent now, before any flush.
    pub messages: Vec<Envelope>,
    /// A checkpoint that was fetched is to take the place of trees and log.
    pub snapshot: Option<SnapshotMeta>,
    /// To be appended. If the first is not past the end of the log, the tail from there on is
    /// replaced, and whatever rested on it is undone first.
    pub entries: Vec<Entry>,
    /// To be kept with the entries, if it changed. If only its commit index did, it need not be
    /// flushed.
    pub hard_state: Option<HardState>,
    /// Whether the driver owes [`Consensus::persisted`] for this number.
    pub must_sync: bool,
    /// The commit index.
    pub committed: Lsn,
    /// The membership, if a change of it took effect since the last time.
    pub membership: Option<Membership>,
    /// A checkpoint to fetch; see [`Consensus::snapshot_fetched`].
    pub offer: Option<SnapshotOffer>,
}

/// What was handed out to be flushed and is not yet.
#[derive(Debug)]
struct Pending {
    number: u64,
    /// The last of its entries that still is in the log.
    last: Option<Lsn>,
    /// Term and vote that are durable with it.
    vote: (u64, u64),
    /// What may leave once it is flushed.
    held: Vec<Envelope>,
}

/// What a leader heard from another replica in its term.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    heard: Option<Instant>,
    received: Lsn,
    applied: Lsn,
    /// The newest lease round when it was sent a snapshot.
    snapshot_sent: Option<u64>,
    /// Bytes of large appends sent to it since the last tick.
    large_bytes: u64,
    /// Until then its silence makes nobody step down. Its lease runs out all the same.
    excused_until: Instant,
    condition: Condition,
}

/// How far the follower knows its log to match the leader's, and what it last told the leader.
#[derive(Clone, Copy, Debug, Default)]
struct Following {
    matched: Lsn,
    told: (Lsn, Lsn),
    eager: bool,
}

/// What was handed out by [`Consensus::ready`] and not yet advanced.
struct Outstanding {
    ready: raft_rs::Ready,
    changes: Vec<(Lsn, Vec<u8>)>,
    first: Option<Lsn>,
    last: Option<Lsn>,
    processed: Lsn,
    committed_changes: Vec<Vec<u8>>,
}

/// The consensus of one group at one replica.
pub struct Consensus<L: LogView> {
    config: Config,
    raw: RawNode<Adapter<L>>,
    membership: Membership,
    nodes: Vec<NodeId>,
    membership_changed: bool,
    /// The place last reported.
    state: State,
    promise: Promise,
    next_tick: Instant,
    ticks_to_heartbeat: usize,
    elections: u64,
    /// Tries to be elected since a leader was last known.
    tries: u64,
    /// Ticks until a first try is taken for one in vain.
    retry_in: Option<usize>,
    /// A leader's lease, and the first entry of its term.
    rounds: Option<Rounds>,
    term_start: Lsn,
    peers: HashMap<NodeId, Peer>,
    eager: bool,
    following: Following,
    following_term: Term,
    /// Entries were proposed and not yet sent.
    proposed: bool,
    /// They are not to be sent yet.
    gathers: bool,
    /// Who gets them late, and whether somebody is yet to get some.
    laziness: Laziness,
    withheld: bool,
    /// Who was sent all that may be sent at one time, and lacks more.
    behind: BTreeSet<NodeId>,
    written: Lsn,
    applied: Lsn,
    /// Term and vote on disk.
    durable: (u64, u64),
    pending: VecDeque<Pending>,
    /// Flushed for, and free to leave.
    outbox: Vec<Envelope>,
    /// Messages that are not the library's.
    own: Vec<Envelope>,
    outstanding: Option<Outstanding>,
    /// Configuration changes up to here have taken effect.
    processed: Lsn,
    /// Those up to here never do: the membership that the replica began with overrules them.
    settled: Lsn,
    /// An offered snapshot whose checkpoint is being fetched.
    held: Option<(NodeId, RaftMessage)>,
    offer: Option<SnapshotOffer>,
    /// A snapshot that is being installed, until it is flushed.
    installing: Option<u64>,
    /// Who stood for election with another history, and where that differs.
    suspect: Option<(NodeId, Lsn)>,
    /// How fit this replica is, and whether the disk of its log hangs.
    condition: Condition,
    disk_hangs: bool,
    lateness: Lateness,
    /// The newest term for which a leader has asked this replica to take over.
    asked_term: Term,
}

impl<L: LogView> Consensus<L> {
    /// Starts a replica from what was on disk. What does not fit together is an error that the
    /// node cannot get over.
    pub fn new(config: Config, log: L, recovered: Recovered, now: Instant) -> Result<Consensus<L>> {
        config.validate()?;
        recovered.membership.validate()?;
        let (last, hard_state) = (log.last(), check_recovered(&log, &recovered)?);
        let election_ticks = config.election_ticks();
        let raft_config = raft_rs::Config {
            id: config.node.0,
            // Voters hear the same heartbeat: nobody stands before it has run out for the others too.
            election_tick: election_ticks - 1,
            min_election_tick: election_ticks,
            max_election_tick: 2 * election_ticks,
            heartbeat_tick: TICKS_PER_HEARTBEAT,
            applied: recovered.checkpoint.0,
            max_size_per_msg: APPEND_BYTES_MAX,
            max_inflight_msgs: APPENDS_IN_FLIGHT_MAX,
            check_quorum: true,
            pre_vote: true,
            // Followers apply on append, so they need not hear of every commit at once.
            skip_bcast_commit: true,
            batch_append: true,
            // The limit on uncommitted bytes is the group driver's, which can wait.
            max_uncommitted_size: raft_rs::NO_LIMIT,
            ..raft_rs::Config::default()
        };
        let adapter = Adapter::new(log, hard_state, &recovered)?;
        let logger = slog::Logger::root(slog::Discard, o!());
        let raw = RawNode::new(&raft_config, adapter, &logger)
            .map_err(|error| Error::corrupted(format!("a group cannot start: {error}")))?;
        let promise = if has_taken_part(&hard_state) {
            Promise::after_restart(now, config.election_timeout, hard_state.promise)
        } else {
            Promise::new(config.election_timeout)
        };
        let mut consensus = Consensus {
            state: State {
                role: Role::Follower,
                term: hard_state.term,
                leader: None,
            },
            nodes: recovered.membership.nodes(),
            membership: recovered.membership,
            membership_changed: false,
            promise,
            next_tick: now.after(config.tick_interval()),
            ticks_to_heartbeat: TICKS_PER_HEARTBEAT,
            elections: 0,
            tries: 0,
            retry_in: None,
            rounds: None,
            term_start: Lsn::MAX,
            peers: HashMap::default(),
            eager: true,
            following: Following::default(),
            following_term: hard_state.term,
            proposed: false,
            gathers: false,
            laziness: Laziness::default(),
            withheld: false,
            behind: BTreeSet::new(),
            written: last,
            applied: recovered.checkpoint,
            durable: (hard_state.term.0, hard_state.vote.map_or(0, |node| node.0)),
            pending: VecDeque::new(),
            outbox: Vec::new(),
            own: Vec::new(),
            outstanding: None,
            processed: recovered.checkpoint,
            settled: recovered.settled,
            held: None,
            offer: None,
            installing: None,
            suspect: None,
            condition: Condition::default(),
            disk_hangs: false,
            lateness: Lateness::default(),
            asked_term: Term(0),
            config,
            raw,
        };
        consensus.draw_election_timeout();
        Ok(consensus)
    }

    // ---- inputs ----

    /// Lets time pass. Late ticks are not made up: one call is one tick at most.
    pub fn tick(&mut self, now: Instant) {
        self.assert_advanced();
        if now < self.next_tick {
            return;
        }
        self.next_tick = now.after(self.config.tick_interval());
        if self.is_leader() {
            self.excuse(now);
            self.raw.tick();
            self.heartbeat(now);
            self.tend_lateness(now);
        } else {
            self.tick_elections(now);
        }
        self.settle(now);
    }

    /// When [`Consensus::tick`] wants to be called next.
    pub fn next_tick(&self) -> Instant {
        self.next_tick
    }

    /// Takes a message. What a peer must not say is dropped; an error means that this replica
    /// lost what it once acknowledged, and the node must stop.
    ///
    /// `now` must have been read after the message arrived.
    pub fn step(&mut self, from: NodeId, message: Message, now: Instant) -> Result<()> {
        self.assert_advanced();
        if from == self.config.node {
            return Ok(());
        }
        if message.term() == self.term() {
            self.peers.entry(from).or_default().heard = Some(now);
        }
        match message {
            Message::Raft(message) => self.step_raft(from, message, now)?,
            Message::Watermarks {
                term,
                received,
                applied,
            } => self.take_watermarks(from, term, received, applied),
            Message::LeaseRequest {
                term,
                round,
                eager,
                promise,
                commit,
            } => {
                if self.answer_lease(from, term, round, eager, promise, now) {
                    self.learn_commit(commit);
                }
            }
            Message::LeaseResponse {
                term,
                round,
                fetching,
                condition,
            } => self.take_lease_answer(from, term, round, fetching, condition),
            Message::SnapshotFailed { term, .. } => {
                if term == self.term() && self.is_leader() {
                    self.snapshot_lost(from);
                }
            }
            Message::Compare {
                term,
                position,
                chain,
            } => {
                if term == self.term() && self.leader() == Some(from) {
                    self.check_matches(from, position, Some(chain))?;
                }
            }
        }
        self.settle(now);
        Ok(())
    }

    /// Appends a record to the log of the leader of that term. The position is final within the
    /// term; nothing is known yet of its durability.
    ///
    /// A replica that does not lead in that term, or has begun to hand leadership over, refuses
    /// with 40001. Nothing was appended then.
    pub fn propose(&mut self, term: Term, data: Vec<u8>) -> Result<Position> {
        self.assert_advanced();
        if data.is_empty() {
            return Err(Error::internal("an empty record was proposed"));
        }
        self.check_may_propose(term)?;
        self.append(eraftpb::Entry {
            data: data.into(),
            ..eraftpb::Entry::default()
        })
    }

    /// Sends a record to whoever leads, as one who leads no longer must not. Only the planted bug
    /// does ([`Bug::ProposalForwarded`]).
    pub fn forward(&mut self, data: Vec<u8>) {
        let Some(leader) = self.leader().filter(|leader| *leader != self.config.node) else {
            return;
        };
        let (term, lsn) = (self.term(), Lsn(1));
        let entry = adapter::raft_entry(term, lsn, crate::EntryKind::Normal, data);
        if let Ok(entry) = entry {
            self.send(leader, Message::Raft(crate::message::proposal(term, entry)));
        }
    }

    /// Whether a change of membership is under way, or may be: a new leader does not know before
    /// an entry of its own term is committed.
    pub fn is_changing_membership(&self) -> bool {
        self.raw.raft.has_pending_conf() || !self.membership.outgoing.is_empty()
    }

    /// Whether the log has changes of membership that are not in effect: they may still be taken
    /// back.
    pub fn has_unsettled_membership(&self) -> bool {
        self.raw.store().has_changes()
    }

    /// Proposes a change of membership, and of its context unless that is empty. What concerns
    /// voters goes through a joint configuration that is left by itself.
    pub fn propose_conf_change(
        &mut self,
        term: Term,
        changes: &[ConfChange],
        context: Vec<u8>,
    ) -> Result<Position> {
        self.assert_advanced();
        self.check_may_propose(term)?;
        if changes.is_empty() || self.is_changing_membership() {
            return Err(Error::new(
                SqlState::OBJECT_IN_USE,
                "another change of the group's membership is under way",
            ));
        }
        let concerns_voters = |change: &ConfChange| match change {
            ConfChange::AddVoter(node) => !self.membership.is_voter(*node),
            ConfChange::AddLearner(node) | ConfChange::Remove(node) => {
                self.membership.is_voter(*node)
            }
        };
        let change = Reconfiguration {
            joint: changes.iter().any(concerns_voters),
            changes: changes.to_vec(),
            context,
        };
        let data = change.encode();
        let entry = adapter::raft_entry(term, Lsn::ZERO, crate::EntryKind::ConfChange, data)?;
        let position = self.append(entry)?;
        self.raw.raft.pending_conf_index = position.lsn.0;
        Ok(position)
    }

    /// Begins to hand leadership over. From here on the leader has no lease and takes no
    /// proposals, for the rest of its term: if the transfer fails, it steps down.
    pub fn transfer_leadership(&mut self, to: NodeId) -> Result<()> {
        self.assert_advanced();
        let term = self.term();
        self.check_may_propose(term)?;
        let voter = self.membership.voters.contains(&to);
        if !voter || to == self.config.node {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("node {to} is no other voter of group {}", self.config.group),
            ));
        }
        self.send_proposals();
        if let Some(rounds) = &mut self.rounds {
            rounds.give_up();
        }
        self.raw.transfer_leader(to.0);
        Ok(())
    }

    /// Stands for election now, unless this replica must not.
    pub fn campaign(&mut self, now: Instant) {
        self.assert_advanced();
        if !self.is_leader() && self.may_campaign(now) {
            self.stand();
        }
        self.settle(now);
    }

    /// Asks the followers once more for a lease, if this replica leads.
    pub fn request_lease(&mut self, now: Instant) {
        self.assert_advanced();
        self.begin_round(now);
    }

    /// Whether followers report what they received and applied as soon as it moves (the default),
    /// or with their next acknowledgement, which saves messages while nobody waits at
    /// `remote_write` or `remote_apply`. The levels stay correct either way.
    pub fn want_eager_watermarks(&mut self, eager: bool, now: Instant) {
        self.assert_advanced();
        if self.eager != eager {
            self.eager = eager;
            self.begin_round(now);
        }
    }

    /// Whether proposals gather here (no by default), to leave together later. A follower that
    /// acknowledges what it was sent gets them even so.
    pub fn gather(&mut self, gathers: bool) {
        self.gathers = gathers;
    }

    /// Says to whom proposals may leave late.
    pub fn be_lazy(&mut self, laziness: Laziness) {
        if self.laziness != laziness {
            self.laziness = laziness;
            self.proposed |= std::mem::take(&mut self.withheld);
        }
    }

    /// Whether somebody wants to hear at once what this replica received and applied.
    pub fn is_eager(&self) -> bool {
        match self.is_leader() {
            true => self.eager,
            false => self.following.eager,
        }
    }

    /// The connection to a node broke: what was sent to it may be lost.
    pub fn unreachable(&mut self, node: NodeId) {
        self.assert_advanced();
        self.raw.report_unreachable(node.0);
    }

    /// The offered checkpoint was fetched whole; the next [`Ready`] says to install it. False if
    /// the offer has lapsed meanwhile, and the checkpoint is of no use.
    pub fn snapshot_fetched(&mut self, position: Position, now: Instant) -> Result<bool> {
        self.assert_advanced();
        let Some((from, message)) = self.take_held(position) else {
            return Ok(false);
        };
        self.step_library(from, message);
        self.settle(now);
        Ok(self.raw.snap().is_some())
    }

    /// The offered checkpoint could not be fetched; the leader is told and will offer another.
    pub fn snapshot_failed(&mut self, position: Position) {
        self.assert_advanced();
        let term = self.term();
        if let Some((from, _)) = self.take_held(position) {
            let lsn = position.lsn;
            self.send(from, Message::SnapshotFailed { term, lsn });
        }
    }

    /// The trees show the log up to this entry. Ignored if the entry is no longer in the log.
    /// After the driver has undone a tail, it reports where the trees stand now.
    pub fn applied(&mut self, position: Position) {
        if self.entry_term(position.lsn) == Some(position.term) {
            self.applied = position.lsn;
        }
    }

    /// What this [`Ready`] and all before it asked to append has reached the operating system.
    pub fn written(&mut self, number: u64) {
        let written = self
            .pending
            .iter()
            .take_while(|pending| pending.number <= number)
            .filter_map(|pending| pending.last)
            .max();
        self.written = self.written.max(written.unwrap_or(Lsn::ZERO));
    }

    /// What this [`Ready`] and all before it asked to keep is on disk.
    pub fn persisted(&mut self, number: u64, now: Instant) {
        self.assert_advanced();
        self.written(number);
        let flushed = |pending: &Pending| pending.number <= number;
        let mut released = false;
        while self.pending.front().is_some_and(flushed) {
            if let Some(pending) = self.pending.pop_front() {
                self.durable = pending.vote;
                released |= !pending.held.is_empty();
                for envelope in pending.held {
                    self.release(envelope);
                }
            }
        }
        if released {
            self.report_watermarks_now();
        }
        if self.pending.is_empty() {
            self.promise.persisted();
        }
        // Readies that needed no flush of their own are durable with those before them.
        let up_to = self
            .pending
            .front()
            .map_or(u64::MAX, |next| next.number - 1);
        self.raw.on_persist_ready(up_to);
        if self
            .installing
            .is_some_and(|installing| installing <= up_to)
        {
            self.installing = None;
        }
        self.note_applied();
        self.settle(now);
    }

    // ---- outputs ----

    /// What is to be done, if anything. Call it after every input until nothing is left. An error
    /// means that the log could not be read, and the node must stop.
    pub fn ready(&mut self) -> Result<Option<Ready>> {
        self.assert_advanced();
        if !self.gathers {
            self.send_proposals();
        }
        if let Some(error) = self.raw.store().take_failure() {
            return Err(error);
        }
        self.report_watermarks();
        let state = self.current_state();
        let idle = !self.raw.has_ready()
            && self.outbox.is_empty()
            && self.own.is_empty()
            && state == self.state
            && !self.membership_changed
            && self.offer.is_none();
        if idle {
            return Ok(None);
        }
        let ready = self.raw.ready();
        Ok(Some(self.hand_out(ready, state)))
    }

    /// The log now holds what the [`Ready`] of this number asked for.
    pub fn advance(&mut self, number: u64) {
        let Some(done) = self.outstanding.take() else {
            panic!("ready {number} was advanced, but none is outstanding");
        };
        let expected = done.ready.number();
        assert_eq!(number, expected, "readies are advanced in order");
        if let Some(last) = done.last {
            let log = self.raw.store().log.last();
            assert_eq!(log, last, "the log was not brought up to date");
        }
        if let Some(first) = done.first {
            self.raw.store().appended(first, done.changes);
        }
        self.raw.advance_append_async(done.ready);
        if self.pending.is_empty() {
            self.raw.on_persist_ready(number);
        }
        for change in done.committed_changes {
            self.change_membership(&change);
        }
        self.processed = self.processed.max(done.processed);
        self.note_applied();
        self.raw.store().took_effect(self.processed);
    }

    /// Who stood for election with another history than this replica's since this was last asked,
    /// and an LSN at which the two differ. It got no vote.
    pub fn take_suspect(&mut self) -> Option<(NodeId, Lsn)> {
        self.suspect.take()
    }

    /// Whether this replica leads, as far as it knows.
    pub fn is_leader(&self) -> bool {
        self.raw.raft.state == StateRole::Leader
    }

    /// The leader that it knows.
    pub fn leader(&self) -> Option<NodeId> {
        adapter::node(self.raw.raft.leader_id)
    }

    /// The leader, if it was heard of within an election timeout.
    pub fn leader_heard(&self, now: Instant) -> Option<NodeId> {
        self.leader().filter(|leader| self.is_active(*leader, now))
    }

    /// Its term.
    pub fn term(&self) -> Term {
        Term(self.raw.raft.term)
    }

    /// Its role.
    pub fn role(&self) -> Role {
        adapter::role(self.raw.raft.state)
    }

    /// The commit index.
    pub fn committed(&self) -> Lsn {
        Lsn(self.raw.raft.raft_log.committed)
    }

    /// The last entry, those included that were not handed out yet.
    pub fn last(&self) -> Lsn {
        Lsn(self.raw.raft.raft_log.last_index())
    }

    /// How far this replica's disk has the log.
    pub fn flushed(&self) -> Lsn {
        Lsn(self.raw.raft.raft_log.persisted)
    }

    /// The first entry of a leader's own term; [`Lsn::MAX`] unless this replica leads.
    pub fn term_start(&self) -> Lsn {
        match self.is_leader() {
            true => self.term_start,
            false => Lsn::MAX,
        }
    }

    /// The term of an entry of the log, those included that were not handed out yet.
    pub fn entry_term(&self, lsn: Lsn) -> Option<Term> {
        let log = &self.raw.raft.raft_log;
        if lsn.0 > log.last_index() || lsn.next().0 < log.first_index() {
            return None;
        }
        log.term(lsn.0).ok().map(Term)
    }

    /// The membership in effect.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// The log.
    pub fn log(&self) -> &L {
        &self.raw.store().log
    }

    /// Until when this leader may serve reads.
    pub fn lease(&self) -> Option<Lease> {
        let rounds = self.rounds.as_ref().filter(|_| self.is_leader())?;
        if is_planted(Bug::LeaseByLibrary) {
            let (term, until) = (self.term(), Instant(u64::MAX));
            return Some(Lease { term, until });
        }
        rounds.lease(self.config.node, &self.membership)
    }

    /// Whether this replica leads, and surely does so alone. `now` must have been read after
    /// whatever rests on the answer was read.
    pub fn lease_is_valid(&self, now: Instant) -> bool {
        self.lease().is_some_and(|lease| lease.is_valid(now))
    }

    /// Up to where the log satisfies a level. At a replica that does not lead, that is what it
    /// knows to be committed, for every level above `local`.
    pub fn satisfied(&self, level: Durability, standbys: &Standbys, now: Instant) -> Lsn {
        if self.is_leader() {
            let replicas = self.replicas(now);
            let view = View {
                membership: &self.membership,
                leader: self.config.node,
                replicas: &replicas,
                commit: self.committed(),
                term_start: self.term_start,
            };
            return watermarks::satisfied(level, &view, standbys);
        }
        match level {
            Durability::Off => Lsn::MAX,
            Durability::Local => self.flushed(),
            _ => self.committed(),
        }
    }

    /// What a leader knows of all replicas, itself included.
    pub fn replicas(&self, now: Instant) -> Vec<Replica> {
        let known = |node: &NodeId| self.replica(*node, now);
        self.nodes.iter().filter_map(known).collect()
    }

    /// The figures for status pages.
    pub fn status(&self, now: Instant) -> Status {
        let peers = match self.is_leader() {
            true => self
                .nodes
                .iter()
                .filter_map(|node| self.peer_status(*node, now))
                .collect(),
            false => Vec::new(),
        };
        let state = self.current_state();
        Status {
            node: self.config.node,
            role: state.role,
            term: state.term,
            leader: state.leader,
            commit: self.committed(),
            last: self.last(),
            received: self.written.max(self.flushed()),
            flushed: self.flushed(),
            applied: self.applied,
            membership: self.membership.clone(),
            peers,
        }
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    #[allow(dead_code)]
    const fn consensus_is_send<L: LogView + Send>() {
        is_send::<Consensus<L>>();
    }
};
