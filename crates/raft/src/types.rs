//! What crosses the border of this crate: entries, the hard state, memberships, and the view of
//! the log that the group driver provides.

use std::time::Duration;

use base::codec::{put_bytes, put_varint, Reader};
use base::{chain, Chain, Error, Lsn, NodeId, Position, Result, Term};

/// Numbers of terms, LSNs and nodes that come from outside are below this, so that adding to them
/// never overflows; a larger one is refused as corrupt.
pub const NUMBER_MAX: u64 = 1 << 62;

/// Members of a group, learners included; a membership with more is refused.
pub const MEMBERS_MAX: usize = 255;

/// Bytes of a membership's context; more are refused.
pub const CONTEXT_BYTES_MAX: usize = 256 << 10;

/// What an entry of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// What a new leader logs first: no data, but an LSN of its own.
    Empty,
    /// A record of the state machine.
    Normal,
    /// A change of the group's configuration; effective when committed.
    ConfChange,
    /// Begins the [chain](base::chain) of the log anew, for a log whose chain nobody knows.
    ChainBegins,
}

impl EntryKind {
    /// The byte that stands for the kind on disk and on the wire.
    pub fn code(self) -> u8 {
        match self {
            EntryKind::Empty => 0,
            EntryKind::Normal => 1,
            EntryKind::ConfChange => 2,
            EntryKind::ChainBegins => chain::BEGINS,
        }
    }

    /// The kind of that byte.
    pub fn from_code(code: u8) -> Result<EntryKind> {
        match code {
            0 => Ok(EntryKind::Empty),
            1 => Ok(EntryKind::Normal),
            2 => Ok(EntryKind::ConfChange),
            chain::BEGINS => Ok(EntryKind::ChainBegins),
            _ => Err(Error::corrupted(format!("there is no entry kind {code}"))),
        }
    }
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The term of the leader that appended it.
    pub term: Term,
    /// Its position.
    pub lsn: Lsn,
    /// What it is.
    pub kind: EntryKind,
    /// What it says; empty exactly if the kind is [`EntryKind::Empty`] or a configuration change
    /// that leaves a joint configuration.
    pub data: Vec<u8>,
}

impl Entry {
    /// Term and LSN.
    pub fn position(&self) -> Position {
        Position {
            term: self.term,
            lsn: self.lsn,
        }
    }
}

/// What a replica must remember besides its log. Term and vote must be durable before anything
/// that rests on them leaves; the commit index is a hint that saves work after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    /// The newest term that this replica knows.
    pub term: Term,
    /// Whom it voted for in that term.
    pub vote: Option<NodeId>,
    /// The commit index that it knows.
    pub commit: Lsn,
    /// No promise that it may have given ([`crate::lease`]) is longer. It was kept before such a
    /// promise was given, so that a restart knows it whatever the settings are by then.
    pub promise: Duration,
}

impl HardState {
    /// The bytes for the log, which keeps them without understanding them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        put_varint(&mut out, self.term.0);
        put_varint(&mut out, self.vote.map_or(0, |node| node.0));
        put_varint(&mut out, self.commit.0);
        put_varint(&mut out, micros(self.promise));
        out
    }

    /// Reads what [`HardState::encode`] wrote, or what it wrote when promises were not kept; no bytes at all are the state of a new replica.
    pub fn decode(bytes: &[u8]) -> Result<HardState> {
        if bytes.is_empty() {
            return Ok(HardState::default());
        }
        let mut reader = Reader::new(bytes);
        let state = HardState {
            term: Term(number(&mut reader)?),
            vote: Some(NodeId(number(&mut reader)?)).filter(|node| node.0 != 0),
            commit: Lsn(number(&mut reader)?),
            promise: match reader.rest() {
                [] => Duration::ZERO,
                _ => Duration::from_micros(number(&mut reader)?),
            },
        };
        reader.finish()?;
        Ok(state)
    }
}

/// Who takes part in a group. In a joint configuration, `outgoing` are the voters of the old one,
/// and both majorities are needed for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The voters, ascending.
    pub voters: Vec<NodeId>,
    /// The learners, ascending.
    pub learners: Vec<NodeId>,
    /// The voters of the configuration that is being left, ascending; empty if none is.
    pub outgoing: Vec<NodeId>,
    /// Voters of the outgoing configuration that then become learners.
    pub learners_next: Vec<NodeId>,
    /// Whether the leader leaves the joint configuration by itself.
    pub auto_leave: bool,
    /// What the driver knows of the members besides: kept, carried and changed with the rest, and
    /// not understood here.
    pub context: Vec<u8>,
}

impl Membership {
    /// A plain membership.
    pub fn new(voters: &[NodeId], learners: &[NodeId]) -> Membership {
        let sorted = |nodes: &[NodeId]| {
            let mut nodes = nodes.to_vec();
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        };
        Membership {
            voters: sorted(voters),
            learners: sorted(learners),
            ..Membership::default()
        }
    }

    /// Whether the node votes, in either configuration.
    pub fn is_voter(&self, node: NodeId) -> bool {
        self.voters.contains(&node) || self.outgoing.contains(&node)
    }

    /// Whether the node takes part at all.
    pub fn contains(&self, node: NodeId) -> bool {
        self.is_voter(node) || self.learners.contains(&node) || self.learners_next.contains(&node)
    }

    /// Whether the node alone decides.
    pub fn is_sole_voter(&self, node: NodeId) -> bool {
        let alone = |voters: &[NodeId]| voters.iter().all(|voter| *voter == node);
        self.voters.contains(&node) && alone(&self.voters) && alone(&self.outgoing)
    }

    /// Whether those nodes for which `holds` says so are a majority of the voters, of both
    /// configurations while two are joint.
    pub fn is_majority(&self, holds: impl Fn(NodeId) -> bool) -> bool {
        let is_majority = |voters: &[NodeId]| {
            let count = voters.iter().filter(|voter| holds(**voter)).count();
            count > voters.len() / 2
        };
        is_majority(&self.voters) && (self.outgoing.is_empty() || is_majority(&self.outgoing))
    }

    /// All members, ascending.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut nodes = [
            &self.voters[..],
            &self.outgoing,
            &self.learners,
            &self.learners_next,
        ]
        .concat();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Appends the bytes for a checkpoint or a message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for nodes in [
            &self.voters,
            &self.learners,
            &self.outgoing,
            &self.learners_next,
        ] {
            put_varint(out, nodes.len() as u64);
            nodes.iter().for_each(|node| put_varint(out, node.0));
        }
        out.push(u8::from(self.auto_leave));
        put_bytes(out, &self.context);
    }

    /// Reads what [`Membership::encode`] wrote and checks that it makes sense.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Membership> {
        let membership = Membership {
            voters: node_list(reader)?,
            learners: node_list(reader)?,
            outgoing: node_list(reader)?,
            learners_next: node_list(reader)?,
            auto_leave: reader.u8()? != 0,
            context: context(reader)?,
        };
        membership.validate()?;
        Ok(membership)
    }

    /// Refuses what no sequence of configuration changes leads to.
    pub fn validate(&self) -> Result<()> {
        let bad = |what: &str| Err(Error::corrupted(format!("a membership {what}: {self:?}")));
        if self.voters.is_empty() {
            return bad("has no voter");
        }
        let lists = [
            &self.voters,
            &self.learners,
            &self.outgoing,
            &self.learners_next,
        ];
        if lists
            .iter()
            .any(|nodes| nodes.windows(2).any(|pair| pair[0] >= pair[1]))
        {
            return bad("is out of order");
        }
        if lists.iter().any(|nodes| nodes.contains(&NodeId(0))) {
            return bad("has a node 0");
        }
        if self.learners.iter().any(|node| self.is_voter(*node)) {
            return bad("has a voter that is a learner");
        }
        if !self
            .learners_next
            .iter()
            .all(|node| self.outgoing.contains(node) && !self.voters.contains(node))
        {
            return bad("has a learner to be that is no outgoing voter");
        }
        if self.outgoing.is_empty() && self.auto_leave {
            return bad("is to leave what is not joint");
        }
        Ok(())
    }
}

fn context(reader: &mut Reader<'_>) -> Result<Vec<u8>> {
    let bytes = reader.bytes()?;
    match bytes.len() <= CONTEXT_BYTES_MAX {
        true => Ok(bytes.to_vec()),
        false => Err(Error::corrupted(format!(
            "a membership has a context of {} bytes, more than {CONTEXT_BYTES_MAX}",
            bytes.len()
        ))),
    }
}

fn node_list(reader: &mut Reader<'_>) -> Result<Vec<NodeId>> {
    let len: usize = reader.varint_as()?;
    if len > MEMBERS_MAX {
        return Err(Error::corrupted(format!(
            "a membership has {len} nodes, more than {MEMBERS_MAX}"
        )));
    }
    (0..len).map(|_| number(reader).map(NodeId)).collect()
}

/// A varint below [`NUMBER_MAX`].
pub(crate) fn number(reader: &mut Reader<'_>) -> Result<u64> {
    let value = reader.varint()?;
    if value >= NUMBER_MAX {
        return Err(Error::corrupted(format!("the number {value} is too large")));
    }
    Ok(value)
}

/// A time as it travels and is kept.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).map_or(NUMBER_MAX - 1, |micros| micros.min(NUMBER_MAX - 1))
}

/// One step of a change of membership; several at once go through a joint configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfChange {
    /// Adds a voter, or makes a learner one.
    AddVoter(NodeId),
    /// Adds a learner, or makes a voter one.
    AddLearner(NodeId),
    /// Removes a member.
    Remove(NodeId),
}

/// A change of membership as the log has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconfiguration {
    /// Whether it goes through a joint configuration, in which both majorities decide.
    pub joint: bool,
    /// The steps; none at all leave a joint configuration.
    pub changes: Vec<ConfChange>,
    /// The context from then on; empty to keep the one there is.
    pub context: Vec<u8>,
}

impl Reconfiguration {
    /// The data of an entry of kind [`EntryKind::ConfChange`].
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.joint)];
        put_varint(&mut out, self.changes.len() as u64);
        for change in &self.changes {
            let (code, node) = match change {
                ConfChange::AddVoter(node) => (0, node),
                ConfChange::AddLearner(node) => (1, node),
                ConfChange::Remove(node) => (2, node),
            };
            out.push(code);
            put_varint(&mut out, node.0);
        }
        put_bytes(&mut out, &self.context);
        out
    }

    /// Reads such data; no bytes at all leave a joint configuration.
    pub fn decode(bytes: &[u8]) -> Result<Reconfiguration> {
        if bytes.is_empty() {
            return Ok(Reconfiguration::default());
        }
        let mut reader = Reader::new(bytes);
        let joint = reader.u8()? != 0;
        let count: usize = reader.varint_as()?;
        if count == 0 || count > MEMBERS_MAX {
            let message = format!("a change of membership has {count} steps");
            return Err(Error::corrupted(message));
        }
        let changes: Result<Vec<_>> = (0..count).map(|_| step(&mut reader)).collect();
        let read = Reconfiguration {
            joint,
            changes: changes?,
            context: context(&mut reader)?,
        };
        reader.finish()?;
        Ok(read)
    }
}

fn step(reader: &mut Reader<'_>) -> Result<ConfChange> {
    let code = reader.u8()?;
    let node = NodeId(number(reader)?);
    match code {
        0 => Ok(ConfChange::AddVoter(node)),
        1 => Ok(ConfChange::AddLearner(node)),
        2 => Ok(ConfChange::Remove(node)),
        _ => {
            let message = format!("there is no change of membership {code}");
            Err(Error::corrupted(message))
        }
    }
}

/// What a checkpoint is to Raft: the position after which the log goes on, and who was a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotMeta {
    /// The term and LSN of the last entry that the checkpoint holds.
    pub position: Position,
    /// The chain behind that entry, if it is known.
    pub chain: Option<Chain>,
    /// The membership there.
    pub membership: Membership,
}

/// A checkpoint that a leader offers to this replica, whose log ends too early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotOffer {
    /// The leader.
    pub from: NodeId,
    /// Its term.
    pub term: Term,
    /// What it offers.
    pub meta: SnapshotMeta,
}

/// What was on disk when a replica starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The hard state; the default for a new replica.
    pub hard_state: HardState,
    /// The LSN of the published checkpoint; [`Lsn::ZERO`] for none. The log must reach it.
    pub checkpoint: Lsn,
    /// The membership at that checkpoint; that of the group's beginning for none.
    pub membership: Membership,
    /// Changes of membership up to here are in `membership` already, or were overruled by it.
    pub settled: Lsn,
}

/// What a node is in its group at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Follows a leader, or waits for one; a learner always does.
    Follower,
    /// Asks whether it could win an election.
    PreCandidate,
    /// Stands for election.
    Candidate,
    /// Leads.
    Leader,
}

impl Role {
    /// The name that `quorate status` prints.
    pub fn name(self) -> &'static str {
        match self {
            Role::Follower => "follower",
            Role::PreCandidate => "pre-candidate",
            Role::Candidate => "candidate",
            Role::Leader => "leader",
        }
    }
}

/// The log as Raft reads it, everything appended so far included, whether flushed or not.
///
/// Between [`crate::Consensus::ready`] and [`crate::Consensus::advance`] the driver brings the
/// log up to date; at other times it changes only by compaction, which must stay at or below the
/// checkpoint that [`LogView::snapshot`] reports and the commit index.
pub trait LogView {
    /// The first LSN whose entry is kept; one past [`LogView::last`] if the log is empty.
    fn first(&self) -> Lsn;

    /// The last LSN; one before [`LogView::first`] if the log is empty.
    fn last(&self) -> Lsn;

    /// The term of an entry from one before the first (what was compacted or installed last;
    /// term 0 at LSN 0) to the last; nothing outside.
    fn term(&self, lsn: Lsn) -> Option<Term>;

    /// The chain behind an entry, wherever [`LogView::term`] is known and the chain is.
    fn chain(&self, lsn: Lsn) -> Option<Chain>;

    /// The entries from `low` up to but not including `high`, cut when their data exceeds
    /// `bytes_max`, but at least one. Both bounds lie within the log. An error is fatal.
    fn entries(&self, low: Lsn, high: Lsn, bytes_max: usize) -> Result<Vec<Entry>>;

    /// The newest published checkpoint that a follower can be sent; nothing if there is none yet.
    fn snapshot(&self) -> Option<SnapshotMeta>;

    /// The configuration changes from `low` up to but not including `high`; read once, at start.
    fn conf_changes(&self, low: Lsn, high: Lsn) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        let mut at = low;
        while at < high {
            let entries = self.entries(at, high, CONF_SCAN_BYTES)?;
            let Some(last) = entries.last() else { break };
            at = last.lsn.next();
            found.extend(
                entries
                    .into_iter()
                    .filter(|entry| entry.kind == EntryKind::ConfChange),
            );
        }
        Ok(found)
    }
}

/// How much of the log is read at a time when it is searched for configuration changes.
const CONF_SCAN_BYTES: usize = 1 << 20;
