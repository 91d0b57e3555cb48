//! What leaves, and when: before the flush or after it.
//!
//! ```text
//!                                        may leave
//! whatever, while term or vote is new    once term and vote are on disk
//! whatever, while a promise is longer    once its length is on disk
//!   than any before
//! a leader's messages                    at once
//! heartbeat and lease answers, refusals  at once
//! votes given                            at once (the vote is on disk)
//! an append acknowledged                 once all of it is on disk
//! a vote asked for                       once the whole log is on disk
//! ```

use super::*;

impl<L: LogView> Consensus<L> {
    pub(super) fn hand_out(&mut self, mut ready: raft_rs::Ready, state: State) -> Ready {
        let number = ready.number();
        let raft = &self.raw.raft;
        let vote = (raft.term, raft.vote);
        let hard_state = match self.must_keep_promise() {
            true => Some(raft.hard_state()),
            false => ready.hs().cloned(),
        };
        let must_sync = ready.must_sync() || self.must_keep_promise();
        let hard_state = hard_state.map(|state| {
            let promise = self.promise.hand_out();
            adapter::hard_state(&state, promise)
        });
        let library = match ready.messages().is_empty() {
            true => ready.take_persisted_messages(),
            false => ready.take_messages(),
        };
        let entries: Vec<Entry> = ready.entries().iter().map(adapter::entry).collect();
        let snapshot = Some(ready.snapshot())
            .filter(|snapshot| !snapshot.is_empty())
            .map(adapter::snapshot_meta);
        self.replaced(&entries, snapshot.as_ref(), number);

        let mut messages = std::mem::take(&mut self.outbox);
        let mut held = Vec::new();
        let flushed = self.pending.is_empty() && !must_sync;
        self.sort_messages(library, flushed, &mut messages, &mut held);

        let last = entries.last().map(|entry| entry.lsn);
        let last = last.or(snapshot.as_ref().map(|meta| meta.position.lsn));
        if must_sync {
            self.pending.push_back(Pending {
                number,
                last,
                vote,
                held,
            });
        } else if let Some(before) = self.pending.back_mut() {
            before.held.extend(held);
        } else {
            assert!(held.is_empty(), "{held:?} waits for no flush");
        }

        let out = Ready {
            number,
            state: Some(state).filter(|state| *state != self.state),
            messages,
            hard_state,
            must_sync,
            committed: self.committed(),
            membership: std::mem::take(&mut self.membership_changed)
                .then(|| self.membership.clone()),
            offer: self.offer.take(),
            snapshot,
            entries,
        };
        self.state = state;
        self.outstanding = Some(self.outstanding(ready, &out, last));
        out
    }

    /// Whether a promise is longer than what the disk has, or is about to have.
    pub(super) fn must_keep_promise(&self) -> bool {
        let promise = &self.promise;
        promise.is_to_be_kept() || !promise.is_kept() && self.pending.is_empty()
    }

    fn outstanding(
        &self,
        mut ready: raft_rs::Ready,
        out: &Ready,
        last: Option<Lsn>,
    ) -> Outstanding {
        let committed = ready.take_committed_entries();
        let processed = committed.last().map(|entry| Lsn(entry.index));
        let installed = out.snapshot.as_ref().map(|meta| meta.position.lsn);
        let is_change = |kind| kind == crate::EntryKind::ConfChange;
        Outstanding {
            changes: out
                .entries
                .iter()
                .filter(|entry| is_change(entry.kind) && entry.lsn > self.settled)
                .map(|entry| (entry.lsn, entry.data.clone()))
                .collect(),
            first: out.entries.first().map(|entry| entry.lsn),
            last,
            processed: processed.max(installed).unwrap_or(Lsn::ZERO),
            committed_changes: committed
                .iter()
                .filter(|entry| is_change(adapter::kind_of(entry)))
                .filter(|entry| Lsn(entry.index) > self.settled)
                .map(|entry| entry.data.to_vec())
                .collect(),
            ready,
        }
    }

    /// A tail that is replaced takes everything back that was said of it.
    fn replaced(&mut self, entries: &[Entry], snapshot: Option<&SnapshotMeta>, number: u64) {
        let first = entries.first().map(|entry| entry.lsn.prev());
        let Some(kept) = snapshot.map(|_| Lsn::ZERO).or(first) else {
            return;
        };
        self.written = self.written.min(kept);
        self.applied = self.applied.min(kept);
        for pending in &mut self.pending {
            pending.last = pending.last.map(|last| last.min(kept));
        }
        if let Some(meta) = snapshot {
            self.installing = Some(number);
            self.applied = meta.position.lsn;
            self.set_membership(meta.membership.clone());
        }
    }

    fn sort_messages(
        &mut self,
        library: Vec<eraftpb::Message>,
        flushed: bool,
        now: &mut Vec<Envelope>,
        held: &mut Vec<Envelope>,
    ) {
        let raft = &self.raw.raft;
        let known = self.durable == (raft.term, raft.vote) && self.promise.is_kept();
        let persisted = raft.raft_log.persisted;
        let mut acknowledged = false;
        for message in library {
            if !travels(message.get_msg_type()) {
                continue;
            }
            let acknowledges = self.note_sent(&message);
            let leaves = known && (flushed || may_leave_unflushed(&message, persisted));
            // What was received and applied travels with the acknowledgement.
            acknowledged |= acknowledges && leaves;
            let to = NodeId(message.to);
            let chain = self.chain_to_tell(&message);
            let message = Message::Raft(RaftMessage(Box::new(message), chain));
            let envelope = Envelope { to, message };
            match leaves {
                true => now.push(envelope),
                false => held.push(envelope),
            }
        }
        if acknowledged {
            self.report_watermarks_now();
        }
        let own = std::mem::take(&mut self.own);
        match known {
            true => now.extend(own),
            false => held.extend(own),
        }
    }

    /// A message that waited for a flush may leave. Of two acknowledgements in a row the later says
    /// all that the earlier does.
    pub(super) fn release(&mut self, envelope: Envelope) {
        if let Some(last) = self.outbox.last_mut() {
            if last.to == envelope.to && envelope.message.supersedes(&last.message) {
                *last = envelope;
                return;
            }
        }
        self.outbox.push(envelope);
    }

    /// Learns from a message that is about to leave. True if it acknowledges an append.
    fn note_sent(&mut self, message: &eraftpb::Message) -> bool {
        match message.get_msg_type() {
            // Up to here this log is the leader's.
            MessageType::MsgAppendResponse if !message.reject => {
                if message.term == self.raw.raft.term {
                    let matched = &mut self.following.matched;
                    *matched = (*matched).max(Lsn(message.index));
                }
                true
            }
            MessageType::MsgAppend => {
                let entries = message.get_entries().iter();
                let bytes: usize = entries.map(|entry| entry.data.len()).sum();
                if bytes > LARGE_APPEND_BYTES {
                    let peer = self.peers.entry(NodeId(message.to)).or_default();
                    peer.large_bytes += bytes as u64;
                }
                false
            }
            MessageType::MsgSnapshot => {
                let newest = self.rounds.as_ref().map(Rounds::newest);
                let peer = self.peers.entry(NodeId(message.to)).or_default();
                peer.snapshot_sent = newest;
                false
            }
            _ => false,
        }
    }

    // ---- watermarks of a follower ----

    /// Tells the leader how far this replica is, if it wants to know at once.
    pub(super) fn report_watermarks(&mut self) {
        if self.following.eager {
            self.report_watermarks_now();
        }
    }

    pub(super) fn report_watermarks_now(&mut self) {
        let Some(leader) = self.leader().filter(|leader| *leader != self.config.node) else {
            return;
        };
        let matched = self.following.matched;
        let told = (self.written.min(matched), self.applied.min(matched));
        if told == self.following.told || self.role() != Role::Follower {
            return;
        }
        self.following.told = told;
        let (received, applied) = told;
        let term = self.term();
        self.send(
            leader,
            Message::Watermarks {
                term,
                received,
                applied,
            },
        );
    }

    // ---- figures ----

    pub(super) fn current_state(&self) -> State {
        State {
            role: self.role(),
            term: self.term(),
            leader: self.leader(),
        }
    }

    pub(super) fn is_active(&self, node: NodeId, now: Instant) -> bool {
        let heard = self.peers.get(&node).and_then(|peer| peer.heard);
        heard.is_some_and(|heard| now.since(heard) < self.config.election_timeout)
    }

    pub(super) fn replica(&self, node: NodeId, now: Instant) -> Option<Replica> {
        if node == self.config.node {
            return Some(Replica {
                node,
                active: true,
                received: self.written.max(self.flushed()),
                flushed: self.flushed(),
                applied: self.applied,
            });
        }
        let flushed = Lsn(self.raw.raft.prs().get(node.0)?.matched);
        let peer = self.peers.get(&node).copied().unwrap_or_default();
        Some(Replica {
            node,
            active: self.is_active(node, now),
            received: peer.received.max(flushed),
            flushed,
            applied: peer.applied,
        })
    }

    pub(super) fn peer_status(&self, node: NodeId, now: Instant) -> Option<PeerStatus> {
        if node == self.config.node {
            return None;
        }
        let progress = self.raw.raft.prs().get(node.0)?;
        let replica = self.replica(node, now)?;
        Some(PeerStatus {
            node,
            voter: self.membership.is_voter(node),
            active: replica.active,
            state: match progress.state {
                ProgressState::Probe => PeerState::Probe,
                ProgressState::Replicate => PeerState::Replicate,
                ProgressState::Snapshot => PeerState::Snapshot,
            },
            sent: Lsn(progress.next_idx).prev(),
            received: replica.received,
            flushed: replica.flushed,
            applied: replica.applied,
            heard: self.peers.get(&node).and_then(|peer| peer.heard),
            condition: self
                .peers
                .get(&node)
                .map_or_else(Condition::default, |peer| peer.condition),
        })
    }
}

/// Whether a message may leave although entries before it are not on disk. Term and vote are.
fn may_leave_unflushed(message: &eraftpb::Message, persisted: u64) -> bool {
    match message.get_msg_type() {
        MessageType::MsgAppendResponse => message.reject || message.index <= persisted,
        MessageType::MsgRequestVote => false,
        _ => true,
    }
}
