//! The log as the consensus library wants it, and the translation of its types into ours.
//!
//! The library reads the log for three reasons only: to send entries, to search committed entries
//! for configuration changes, and to ask for terms. Only the first reads data; for the second the
//! adapter remembers the few configuration changes there are and answers with hollow entries, so
//! that committing costs no read of what was just appended.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use base::codec::Reader;
use base::{Chain, Error, Lsn, NodeId, Position, Result, Term};
use raft_rs::eraftpb::{self, ConfChangeType, EntryType};
use raft_rs::{GetEntriesContext, RaftState, StorageError};

use crate::types::{
    ConfChange, Entry, EntryKind, HardState, LogView, Membership, Reconfiguration, Recovered, Role,
    SnapshotMeta,
};

/// The library's storage over a [`LogView`].
pub(crate) struct Adapter<L> {
    pub(crate) log: L,
    initial: RaftState,
    /// Configuration changes in the log that may not have taken effect yet.
    conf_changes: RefCell<BTreeMap<u64, Vec<u8>>>,
    /// The first failed read, for the driver, which stops the node.
    failure: RefCell<Option<Error>>,
    /// Bytes of entries that may still be read to be sent, as [`Adapter::begin_sending`] says.
    to_send: Cell<usize>,
    /// There was more to send.
    has_more: Cell<bool>,
}

impl<L: LogView> Adapter<L> {
    /// Reads the log's configuration changes after the checkpoint.
    pub(crate) fn new(log: L, hard_state: HardState, recovered: &Recovered) -> Result<Adapter<L>> {
        let settled = recovered.checkpoint.max(recovered.settled);
        let low = settled.next().max(log.first());
        let conf_changes = log
            .conf_changes(low, log.last().next())?
            .into_iter()
            .map(|entry| (entry.lsn.0, entry.data))
            .collect::<BTreeMap<_, _>>();
        // A change is proposed only after the one before it took effect. So all but the last are
        // committed, even where the commit index that was kept says less: an election with a
        // configuration two changes old could be won without the majority that decides now.
        let before_last = conf_changes.keys().rev().nth(1).copied();
        let hard_state = HardState {
            commit: hard_state.commit.max(Lsn(before_last.unwrap_or(0))),
            ..hard_state
        };
        let initial = RaftState::new(
            raft_hard_state(hard_state),
            conf_state(&recovered.membership),
        );
        Ok(Adapter {
            log,
            initial,
            conf_changes: RefCell::new(conf_changes),
            failure: RefCell::new(None),
            to_send: Cell::new(usize::MAX),
            has_more: Cell::new(false),
        })
    }

    /// Until [`Adapter::end_sending`] no more entries are read to be sent than so many bytes, and what
    /// one read more gives: the library would send a replica that is far behind all that it lacks, at
    /// once.
    pub(crate) fn begin_sending(&self, bytes_max: usize) {
        self.to_send.set(bytes_max);
        self.has_more.set(false);
    }

    /// Whether there was more to send than that. It goes on with the next answer.
    pub(crate) fn end_sending(&self) -> bool {
        self.to_send.set(usize::MAX);
        self.has_more.replace(false)
    }

    /// Notes the configuration changes among entries that the log was just given.
    pub(crate) fn appended(&self, first: Lsn, changes: Vec<(Lsn, Vec<u8>)>) {
        let mut known = self.conf_changes.borrow_mut();
        known.split_off(&first.0);
        known.extend(changes.into_iter().map(|(lsn, data)| (lsn.0, data)));
    }

    /// Forgets the configuration changes up to here, which took effect.
    pub(crate) fn took_effect(&self, up_to: Lsn) {
        let mut known = self.conf_changes.borrow_mut();
        if known
            .first_key_value()
            .is_some_and(|(lsn, _)| *lsn <= up_to.0)
        {
            *known = known.split_off(&(up_to.0 + 1));
        }
    }

    /// Whether there are changes of membership that have not taken effect.
    pub(crate) fn has_changes(&self) -> bool {
        !self.conf_changes.borrow().is_empty()
    }

    /// The first failed read since the last call.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.failure.borrow_mut().take()
    }

    /// Entries without data, except for configuration changes.
    fn hollow(&self, low: u64, high: u64) -> Vec<eraftpb::Entry> {
        let known = self.conf_changes.borrow();
        (low..high)
            .map(|index| {
                let mut entry = eraftpb::Entry {
                    index,
                    ..eraftpb::Entry::default()
                };
                if let Some(data) = known.get(&index) {
                    entry.set_entry_type(EntryType::EntryConfChangeV2);
                    entry.data = data.clone().into();
                }
                entry
            })
            .collect()
    }

    fn full(&self, low: u64, high: u64, bytes_max: usize) -> Result<Vec<eraftpb::Entry>> {
        let entries = self.log.entries(Lsn(low), Lsn(high), bytes_max)?;
        let contiguous = entries
            .iter()
            .zip(low..high)
            .all(|(entry, index)| entry.lsn.0 == index);
        if entries.is_empty() || !contiguous || entries.len() as u64 > high - low {
            return Err(Error::corrupted(format!(
                "the log was asked for {low} to {high} and gave {} entries from {:?}",
                entries.len(),
                entries.first().map(Entry::position)
            )));
        }
        entries
            .into_iter()
            .map(|entry| raft_entry(entry.term, entry.lsn, entry.kind, entry.data))
            .collect()
    }
}

impl<L: LogView> raft_rs::Storage for Adapter<L> {
    fn initial_state(&self) -> raft_rs::Result<RaftState> {
        Ok(self.initial.clone())
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft_rs::Result<Vec<eraftpb::Entry>> {
        if low < self.log.first().0 {
            return Err(StorageError::Compacted.into());
        }
        // Only what is to be sent may be fetched later; all else is a search for changes.
        if !context.can_async() {
            return Ok(self.hollow(low, high));
        }
        if self.to_send.get() == 0 {
            self.has_more.set(true);
            return Err(StorageError::LogTemporarilyUnavailable.into());
        }
        let bytes_max = max_size
            .into()
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(usize::MAX);
        let entries = self.full(low, high, bytes_max).map_err(|error| {
            self.failure.borrow_mut().get_or_insert(error);
            raft_rs::Error::from(StorageError::LogTemporarilyUnavailable)
        })?;
        let bytes: usize = entries.iter().map(|entry| entry.data.len()).sum();
        self.to_send.set(self.to_send.get().saturating_sub(bytes));
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft_rs::Result<u64> {
        match self.log.term(Lsn(index)) {
            Some(term) => Ok(term.0),
            None if index < self.log.first().0 => Err(StorageError::Compacted.into()),
            None => Err(StorageError::Unavailable.into()),
        }
    }

    fn first_index(&self) -> raft_rs::Result<u64> {
        Ok(self.log.first().0)
    }

    fn last_index(&self) -> raft_rs::Result<u64> {
        Ok(self.log.last().0)
    }

    fn snapshot(&self, request_index: u64, to: u64) -> raft_rs::Result<eraftpb::Snapshot> {
        self.log
            .snapshot()
            // One of before it was added is of no use to a replica.
            .filter(|meta| meta.membership.contains(NodeId(to)))
            .filter(|meta| {
                let lsn = meta.position.lsn;
                lsn > Lsn::ZERO && lsn.0 >= request_index && lsn.next() >= self.log.first()
            })
            .map(|meta| snapshot(&meta))
            .ok_or_else(|| StorageError::SnapshotTemporarilyUnavailable.into())
    }
}

/// A node of the library; 0 is none.
pub(crate) fn node(id: u64) -> Option<NodeId> {
    Some(NodeId(id)).filter(|node| node.0 != 0)
}

/// Our role for the library's.
pub(crate) fn role(state: raft_rs::StateRole) -> Role {
    match state {
        raft_rs::StateRole::Follower => Role::Follower,
        raft_rs::StateRole::PreCandidate => Role::PreCandidate,
        raft_rs::StateRole::Candidate => Role::Candidate,
        raft_rs::StateRole::Leader => Role::Leader,
    }
}

/// Our hard state: the library's, and the longest promise.
pub(crate) fn hard_state(state: &eraftpb::HardState, promise: Duration) -> HardState {
    HardState {
        term: Term(state.term),
        vote: node(state.vote),
        commit: Lsn(state.commit),
        promise,
    }
}

fn raft_hard_state(state: HardState) -> eraftpb::HardState {
    eraftpb::HardState {
        term: state.term.0,
        vote: state.vote.map_or(0, |node| node.0),
        commit: state.commit.0,
        ..eraftpb::HardState::default()
    }
}

/// The mark of an entry of that kind; the library carries it along.
const CHAIN_BEGINS: &[u8] = &[1];

/// The kind of one of the library's entries.
pub(crate) fn kind_of(entry: &eraftpb::Entry) -> EntryKind {
    match entry.get_entry_type() {
        EntryType::EntryNormal if !entry.context.is_empty() => EntryKind::ChainBegins,
        EntryType::EntryNormal if entry.data.is_empty() => EntryKind::Empty,
        EntryType::EntryNormal => EntryKind::Normal,
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => EntryKind::ConfChange,
    }
}

/// The library's entry for ours. Kind and data must agree.
pub(crate) fn raft_entry(
    term: Term,
    lsn: Lsn,
    kind: EntryKind,
    data: Vec<u8>,
) -> Result<eraftpb::Entry> {
    let mut entry = eraftpb::Entry {
        term: term.0,
        index: lsn.0,
        ..eraftpb::Entry::default()
    };
    if kind == EntryKind::ConfChange {
        Reconfiguration::decode(&data)?;
        entry.set_entry_type(EntryType::EntryConfChangeV2);
    } else if data.is_empty() != (kind == EntryKind::Empty) {
        return Err(Error::corrupted(format!(
            "an entry of kind {kind:?} has {} bytes",
            data.len()
        )));
    }
    if kind == EntryKind::ChainBegins {
        entry.context = CHAIN_BEGINS.into();
    }
    entry.data = data.into();
    Ok(entry)
}

/// Our entry for the library's.
pub(crate) fn entry(raft: &eraftpb::Entry) -> Entry {
    Entry {
        term: Term(raft.term),
        lsn: Lsn(raft.index),
        kind: kind_of(raft),
        data: raft.data.to_vec(),
    }
}

/// The library's membership for ours.
pub(crate) fn conf_state(membership: &Membership) -> eraftpb::ConfState {
    let ids = |nodes: &[NodeId]| nodes.iter().map(|node| node.0).collect::<Vec<_>>();
    let mut state = eraftpb::ConfState::default();
    state.set_voters(ids(&membership.voters));
    state.set_learners(ids(&membership.learners));
    state.set_voters_outgoing(ids(&membership.outgoing));
    state.set_learners_next(ids(&membership.learners_next));
    state.auto_leave = membership.auto_leave;
    state
}

/// Our membership for the library's, which knows no context.
pub(crate) fn membership(state: &eraftpb::ConfState, context: Vec<u8>) -> Membership {
    let nodes = |ids: &[u64]| {
        let mut nodes: Vec<_> = ids.iter().copied().map(NodeId).collect();
        nodes.sort_unstable();
        nodes
    };
    Membership {
        voters: nodes(state.get_voters()),
        learners: nodes(state.get_learners()),
        outgoing: nodes(state.get_voters_outgoing()),
        learners_next: nodes(state.get_learners_next()),
        auto_leave: state.auto_leave,
        context,
    }
}

/// The library's snapshot for ours: metadata, and for data the chain (if it is known) and the
/// context.
pub(crate) fn snapshot(meta: &SnapshotMeta) -> eraftpb::Snapshot {
    let mut snapshot = eraftpb::Snapshot::default();
    snapshot.mut_metadata().index = meta.position.lsn.0;
    snapshot.mut_metadata().term = meta.position.term.0;
    snapshot
        .mut_metadata()
        .set_conf_state(conf_state(&meta.membership));
    let mut data = vec![u8::from(meta.chain.is_some())];
    if let Some(chain) = meta.chain {
        data.extend_from_slice(&chain.0.to_be_bytes());
    }
    data.extend_from_slice(&meta.membership.context);
    snapshot.data = data.into();
    snapshot
}

/// Our snapshot for the library's.
pub(crate) fn snapshot_meta(snapshot: &eraftpb::Snapshot) -> SnapshotMeta {
    let meta = snapshot.get_metadata();
    let mut reader = Reader::new(&snapshot.data);
    // Made by `snapshot`; one that the library made itself is empty.
    let chain = match reader.u8() {
        Ok(1) => reader.u32().ok().map(Chain),
        _ => None,
    };
    SnapshotMeta {
        position: Position {
            term: Term(meta.term),
            lsn: Lsn(meta.index),
        },
        chain,
        membership: membership(meta.get_conf_state(), reader.rest().to_vec()),
    }
}

/// The library's change of membership for ours. No changes leave a joint configuration.
pub(crate) fn conf_change(ours: &Reconfiguration) -> eraftpb::ConfChangeV2 {
    let mut change = eraftpb::ConfChangeV2::default();
    if ours.joint {
        change.set_transition(eraftpb::ConfChangeTransition::Implicit);
    }
    for single in &ours.changes {
        let (kind, node) = match single {
            ConfChange::AddVoter(node) => (ConfChangeType::AddNode, node),
            ConfChange::AddLearner(node) => (ConfChangeType::AddLearnerNode, node),
            ConfChange::Remove(node) => (ConfChangeType::RemoveNode, node),
        };
        let mut raft = eraftpb::ConfChangeSingle::default();
        raft.set_change_type(kind);
        raft.node_id = node.0;
        change.mut_changes().push(raft);
    }
    change
}
