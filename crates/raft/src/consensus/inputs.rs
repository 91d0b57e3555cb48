//! How inputs are judged before the library sees them, and what they change besides.
//!
//! Every decision that safety rests on is a function of its own here: who may vote
//! ([`Consensus::may_vote`]), who may campaign, whose answer counts for the lease, and whose
//! watermark counts.

use super::*;
use crate::planted::{is_planted, Bug};

impl<L: LogView> Consensus<L> {
    pub(super) fn assert_advanced(&self) {
        assert!(
            self.outstanding.is_none(),
            "the readies handed out must be advanced before the next input"
        );
    }

    pub(super) fn is_sole_voter(&self) -> bool {
        self.membership.is_sole_voter(self.config.node)
    }

    pub(super) fn step_raft(
        &mut self,
        from: NodeId,
        message: RaftMessage,
        now: Instant,
    ) -> Result<()> {
        let raft = &self.raw.raft;
        let (last, term) = (raft.raft_log.last_index(), raft.term);
        let library = &message.0;
        match message.kind() {
            kind @ (MessageType::MsgRequestVote | MessageType::MsgRequestPreVote) => {
                let forced = kind == MessageType::MsgRequestVote && is_transfer(library);
                if !self.may_vote(now, forced) || self.contradicts_candidate(from, &message) {
                    return Ok(());
                }
            }
            MessageType::MsgTimeoutNow => {
                let leads = library.term == term && self.leader() == Some(from);
                if !leads || !self.may_take_over(now) {
                    return Ok(());
                }
                self.step_library(from, message);
                self.asked_term = self.term();
                return Ok(());
            }
            MessageType::MsgHeartbeat if library.term >= term && library.commit > last => {
                return Err(Error::corrupted(format!(
                    "node {from} knows that this replica acknowledged LSN {}, but its log ends \
                     at {last}",
                    library.commit
                )));
            }
            MessageType::MsgAppend if (library.index == 0) != (library.log_term == 0) => {
                return Ok(());
            }
            MessageType::MsgAppend if library.term >= term => self.check_append(from, &message)?,
            MessageType::MsgAppendResponse
                if !library.reject
                    && (library.index > last || self.is_contradicted(from, &message)) =>
            {
                return Ok(());
            }
            MessageType::MsgSnapshot if library.term >= term => {
                let meta = adapter::snapshot_meta(library.get_snapshot());
                self.check_matches(from, meta.position, meta.chain)?;
                if !self.must_fetch(&message) {
                    self.step_library(from, message);
                    return Ok(());
                }
                self.hold_snapshot(from, message);
                return Ok(());
            }
            _ => {}
        }
        self.step_library(from, message);
        Ok(())
    }

    pub(super) fn step_library(&mut self, from: NodeId, message: RaftMessage) {
        let mut message = *message.0;
        let is_altered = is_planted(Bug::EntryAltered) || is_planted(Bug::ChainUnchecked);
        if is_altered && self.config.node.0 % 2 == 1 {
            message.entries.iter_mut().for_each(alter_entry);
        }
        message.from = from.0;
        message.to = self.config.node.0;
        if message.get_msg_type() == MessageType::MsgPropose {
            // As the library marks proposals.
            message.term = 0;
        }
        self.raw.store().begin_sending(SENT_AT_ONCE_MAX);
        // Answers from nodes that are no members are refused, which is no news.
        let _ = self.raw.step(message);
        self.note_behind(from);
    }

    /// What was sent just now was for this node.
    fn note_behind(&mut self, node: NodeId) {
        match self.raw.store().end_sending() {
            true => self.behind.insert(node),
            false => self.behind.remove(&node),
        };
    }

    // ---- votes and elections ----

    /// Whether a vote may be given. A sole voter is asked by nobody that counts, and promised
    /// nothing.
    fn may_vote(&self, now: Instant, transfer: bool) -> bool {
        self.is_sole_voter() || self.promise.allows(now, transfer)
    }

    /// Whether this replica may stand for election by itself.
    pub(super) fn may_campaign(&self, now: Instant) -> bool {
        self.may_vote(now, false) && self.is_electable()
    }

    /// Whether this replica may stand for election because its leader asks it to.
    fn may_take_over(&self, now: Instant) -> bool {
        self.may_vote(now, true) && self.is_electable()
    }

    /// Whether an election would find the replica in order: it votes, no checkpoint is being
    /// installed, its disk would take its vote, and, because a sole voter is elected in the same
    /// instant, that one has everything on disk.
    fn is_electable(&self) -> bool {
        let log = &self.raw.raft.raft_log;
        let whole = self.installing.is_none()
            && log.unstable.snapshot.is_none()
            && log.applied + 1 >= log.first_index();
        let flushed = self.pending.is_empty() && log.persisted == log.last_index();
        self.membership.is_voter(self.config.node)
            && whole
            && !self.disk_hangs
            && (flushed || !self.is_sole_voter())
    }

    /// A tick of a replica that does not lead. Ticks count while a promise is kept too, so that
    /// whoever is due stands as soon as it may.
    pub(super) fn tick_elections(&mut self, now: Instant) {
        let rests = self.tend_rest() && !self.is_sole_voter();
        if self.disk_hangs || rests {
            // Once its vote is on disk, the others' need as long, and no other try in between.
            self.raw.raft.election_elapsed = 0;
            return;
        }
        if let Some(ticks) = &mut self.retry_in {
            *ticks = ticks.saturating_sub(1);
        }
        let raft = &self.raw.raft;
        let is_out = raft.election_elapsed + 1 >= raft.randomized_election_timeout();
        let is_due = is_out || self.retry_in == Some(0) || self.is_sole_voter();
        match is_due {
            true if self.may_campaign(now) => self.stand(),
            // It stays due.
            true => {}
            false => drop(self.raw.tick()),
        }
    }

    /// Stands for election.
    pub(super) fn stand(&mut self) {
        self.elections += 1;
        self.tries += 1;
        let retry = FIRST_RETRY_TICKS + (self.draw() % FIRST_RETRY_TICKS as u64) as usize;
        self.retry_in = (self.tries == 1).then_some(retry);
        self.raw.raft.election_elapsed = 0;
        // Fails only for messages that a peer sent.
        let _ = self.raw.campaign();
    }

    /// Another number for every try of every replica.
    fn draw(&self) -> u64 {
        let numbers = [self.config.node.0, self.term().0, self.elections];
        let one = |state: u64, number: u64| mix(state ^ number);
        numbers.into_iter().fold(self.config.seed, one)
    }

    /// The library draws timeouts from a generator of its own whenever it resets itself. They are
    /// replaced after every input, before anything looks at them, by a function of the seed and of
    /// what happened.
    pub(super) fn draw_election_timeout(&mut self) {
        let ticks = self.config.election_ticks();
        let spread = match self.tries {
            0 | 1 => ticks.div_ceil(ELECTION_SPREAD_DIVISOR),
            _ => ticks,
        };
        let timeout = ticks + (self.draw() % spread as u64) as usize;
        self.raw.raft.set_randomized_election_timeout(timeout);
    }

    // ---- what every input may have changed ----

    pub(super) fn settle(&mut self, now: Instant) {
        self.promise.forget_expired(now);
        if matches!(self.role(), Role::Follower | Role::Leader) {
            self.retry_in = None;
            if self.leader().is_some() {
                self.tries = 0;
            }
        }
        self.draw_election_timeout();
        let term = self.term();
        if self.is_leader() && self.raw.raft.lead_transferee.is_none() {
            match &mut self.rounds {
                Some(rounds) if rounds.is_given_up() && is_planted(Bug::TransferForgotten) => {
                    rounds.forget_that_it_was_given_up();
                }
                Some(rounds) if rounds.is_given_up() => {
                    // The transfer failed, and the lease stays given up.
                    self.raw.raft.become_follower(term.0, raft_rs::INVALID_ID);
                    self.draw_election_timeout();
                }
                _ => {}
            }
        }
        if self.is_leader() {
            if self.rounds.is_none() {
                self.begin_leading(now);
            }
        } else if let Some(rounds) = self.rounds.take() {
            self.end_leading(&rounds, now);
        }
        if term != self.following_term {
            self.following_term = term;
            self.following = Following {
                eager: true,
                ..Following::default()
            };
            self.held = None;
            self.offer = None;
        }
    }

    fn begin_leading(&mut self, now: Instant) {
        // Nothing was proposed yet, so the last entry is the one that a leader begins with.
        self.term_start = self.last();
        let knows_chain = self.chain(self.term_start).is_some();
        assert_eq!(
            self.entry_term(self.term_start),
            Some(self.term()),
            "a leader begins with an entry of its term"
        );
        let length = self.config.election_timeout - self.config.drift_max;
        self.rounds = Some(Rounds::new(self.term(), length));
        self.forget_peers();
        self.behind.clear();
        self.ticks_to_heartbeat = TICKS_PER_HEARTBEAT;
        self.begin_round(now);
        if !knows_chain {
            self.begin_chain();
        }
    }

    /// A leader that steps down counted on its own vote too, so it keeps it until its lease ends,
    /// unless it gave the lease up.
    fn end_leading(&mut self, rounds: &Rounds, now: Instant) {
        self.forget_peers();
        (self.proposed, self.withheld) = (false, false);
        if let Some(lease) = rounds.lease(self.config.node, &self.membership) {
            let longest = now.after(self.config.election_timeout);
            self.promise.extend(lease.until.min(longest));
        }
    }

    // ---- the lease ----

    pub(super) fn heartbeat(&mut self, now: Instant) {
        self.ticks_to_heartbeat -= 1;
        if self.ticks_to_heartbeat == 0 {
            self.ticks_to_heartbeat = TICKS_PER_HEARTBEAT;
            self.begin_round(now);
        }
    }

    /// Followers that have a large append to take in count as heard of, for the library's question
    /// whether a quorum is there. Nothing but stepping down rests on that.
    pub(super) fn excuse(&mut self, now: Instant) {
        for (node, peer) in &mut self.peers {
            let nanos = peer.large_bytes * 1_000_000_000 / LARGE_APPEND_BYTES_PER_SECOND;
            peer.large_bytes = 0;
            if nanos > 0 {
                let from = peer.excused_until.max(now);
                peer.excused_until = from.after(Duration::from_nanos(nanos));
            }
            if now < peer.excused_until {
                if let Some(progress) = self.raw.raft.mut_prs().get_mut(node.0) {
                    progress.recent_active = true;
                }
            }
        }
    }

    pub(super) fn begin_round(&mut self, now: Instant) {
        let (term, eager) = (self.term(), self.eager);
        let promise = self.config.election_timeout;
        let commit = self.committed();
        let leads = self.is_leader();
        let Some(rounds) = self.rounds.as_mut().filter(|_| leads) else {
            return;
        };
        let round = rounds.begin(now);
        for node in self.nodes.clone() {
            if node != self.config.node {
                self.send(
                    node,
                    Message::LeaseRequest {
                        term,
                        round,
                        eager,
                        promise,
                        commit,
                    },
                );
            }
        }
    }

    /// Only a follower of the leader that asks, in its term, answers, and thereby promises. Whether
    /// this one did.
    pub(super) fn answer_lease(
        &mut self,
        from: NodeId,
        term: Term,
        round: u64,
        eager: bool,
        promise: Duration,
        now: Instant,
    ) -> bool {
        let follows =
            term == self.term() && self.role() == Role::Follower && self.leader() == Some(from);
        if !follows {
            return false;
        }
        self.promise.give(now, promise);
        self.raw.raft.election_elapsed = 0;
        self.following.eager = eager;
        let fetching = self.held.is_some() || self.installing.is_some();
        self.report_watermarks_now();
        self.send(
            from,
            Message::LeaseResponse {
                term,
                round,
                fetching,
                condition: self.condition,
            },
        );
        true
    }

    /// What this replica's leader knows to be committed is so here too, as far as this log is known
    /// to be the leader's. The library tells a follower of no more than that has acknowledged: one
    /// whose disk hangs would not learn what has become of what it proposed while it led.
    pub(super) fn learn_commit(&mut self, commit: Lsn) {
        let known = commit.min(self.following.matched).min(self.last());
        if known > self.committed() {
            self.raw.raft.raft_log.commit_to(known.0);
        }
    }

    pub(super) fn take_lease_answer(
        &mut self,
        from: NodeId,
        term: Term,
        round: u64,
        fetching: bool,
        condition: Condition,
    ) {
        if term != self.term() || !self.is_leader() {
            return;
        }
        self.peers.entry(from).or_default().condition = condition;
        if let Some(rounds) = &mut self.rounds {
            rounds.answer(from, round);
        }
        // The request left after the snapshot, so the snapshot was lost or came to nothing.
        let sent = self.peers.get(&from).and_then(|peer| peer.snapshot_sent);
        if !fetching && sent.is_some_and(|sent| round > sent + 1) {
            self.snapshot_lost(from);
        }
    }

    // ---- watermarks ----

    /// What was reported in one term says nothing in another.
    fn forget_peers(&mut self) {
        if !is_planted(Bug::StaleWatermark) {
            self.peers.clear();
        }
    }

    /// Only what was reported in this leader's own term counts.
    pub(super) fn take_watermarks(
        &mut self,
        from: NodeId,
        term: Term,
        received: Lsn,
        applied: Lsn,
    ) {
        let last = self.last();
        let current = term == self.term() || is_planted(Bug::StaleWatermark);
        if !current || !self.is_leader() || received > last || applied > last {
            return;
        }
        let peer = self.peers.entry(from).or_default();
        peer.received = peer.received.max(received);
        // Trees do not go back within a term, save by an installed checkpoint.
        peer.applied = peer.applied.max(applied);
    }

    // ---- snapshots ----

    /// Whether the library would throw this replica's log away for the snapshot. If it would not,
    /// it answers by itself.
    fn must_fetch(&self, message: &RaftMessage) -> bool {
        let meta = message.0.get_snapshot().get_metadata();
        let log = &self.raw.raft.raft_log;
        message.0.term >= self.raw.raft.term
            && meta.index > log.committed
            && !log.match_term(meta.index, meta.term)
    }

    fn hold_snapshot(&mut self, from: NodeId, message: RaftMessage) {
        let term = Term(message.0.term);
        if term == self.term() && self.is_leader() {
            return;
        }
        if term > self.term() || self.leader() != Some(from) {
            self.raw.raft.become_follower(term.0, from.0);
        }
        self.raw.raft.election_elapsed = 0;
        let meta = adapter::snapshot_meta(message.0.get_snapshot());
        self.offer = Some(SnapshotOffer { from, term, meta });
        self.held = Some((from, message));
    }

    pub(super) fn take_held(&mut self, position: Position) -> Option<(NodeId, RaftMessage)> {
        let (_, message) = self.held.as_ref()?;
        let held = adapter::snapshot_meta(message.0.get_snapshot()).position;
        if held != position {
            return None;
        }
        self.offer = None;
        self.held.take()
    }

    /// A follower will not answer for the snapshot it was sent: it is probed again.
    pub(super) fn snapshot_lost(&mut self, node: NodeId) {
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.snapshot_sent = None;
        }
        self.raw.report_snapshot(node.0, SnapshotStatus::Failure);
    }

    // ---- proposals ----

    pub(super) fn check_may_propose(&self, term: Term) -> Result<()> {
        let handed_over = self.rounds.as_ref().is_some_and(Rounds::is_given_up);
        let member = self.nodes.contains(&self.config.node);
        if self.is_leader() && self.term() == term && !handed_over && member {
            return Ok(());
        }
        let group = self.config.group;
        Err(Error::failover().with_detail(format!("The leader of group {group} has changed.")))
    }

    pub(super) fn append(&mut self, entry: eraftpb::Entry) -> Result<Position> {
        let before = self.last();
        if !self.raw.raft.append_entry(&mut [entry]) {
            return Err(Error::internal("the consensus library refused an entry"));
        }
        self.proposed = true;
        let position = Position {
            term: self.term(),
            lsn: self.last(),
        };
        assert_eq!(position.lsn, before.next(), "one entry takes one LSN");
        Ok(position)
    }

    /// Sends what was proposed since the last time, together.
    pub(super) fn send_proposals(&mut self) {
        if !std::mem::take(&mut self.proposed) || !self.is_leader() {
            return;
        }
        for node in self.nodes.clone() {
            if node == self.config.node {
                continue;
            }
            let comes_later = self.laziness.covers(node) || self.behind.contains(&node);
            match comes_later && self.awaits_acknowledgement(node) {
                // It gets them when it acknowledges, by the library.
                true => self.withheld = true,
                false => self.send_entries(node),
            }
        }
    }

    /// Whether a follower was sent entries that it has not acknowledged.
    fn awaits_acknowledgement(&self, node: NodeId) -> bool {
        let progress = self.raw.raft.prs().get(node.0);
        progress.is_some_and(|progress| {
            progress.state == ProgressState::Replicate && progress.ins.count() > 0
        })
    }

    fn send_entries(&mut self, node: NodeId) {
        self.raw.store().begin_sending(SENT_AT_ONCE_MAX);
        self.send_all_entries(node);
        self.note_behind(node);
    }

    fn send_all_entries(&mut self, node: NodeId) {
        let raft = &mut self.raw.raft;
        let last = raft.raft_log.last_index();
        // One append takes so many bytes; more follow while the window is open.
        while let Some(before) = raft.prs().get(node.0).map(|progress| progress.next_idx) {
            if before > last {
                return;
            }
            raft.send_append(node.0);
            let after = raft.prs().get(node.0).map(|progress| progress.next_idx);
            if after == Some(before) {
                return;
            }
        }
    }

    // ---- memberships ----

    /// A committed change takes effect.
    pub(super) fn change_membership(&mut self, data: &[u8]) {
        // It was decoded when it came in, from a peer or from the log.
        let Ok(ours) = Reconfiguration::decode(data) else {
            return;
        };
        let change = adapter::conf_change(&ours);
        // A change that makes no sense is refused everywhere alike, and changes nothing.
        if let Ok(state) = self.raw.apply_conf_change(&change) {
            let context = match ours.context.is_empty() {
                true => std::mem::take(&mut self.membership.context),
                false => ours.context,
            };
            self.set_membership(adapter::membership(&state, context));
        }
    }

    pub(super) fn set_membership(&mut self, membership: Membership) {
        self.nodes = membership.nodes();
        self.membership = membership;
        self.membership_changed = true;
    }

    /// Tells the library that what is committed and on disk was seen. Applying happens elsewhere.
    pub(super) fn note_applied(&mut self) {
        let log = &self.raw.raft.raft_log;
        let applied = self.processed.0.min(log.committed).min(log.persisted);
        if applied > log.applied {
            let last = log.last_index();
            self.raw.advance_apply_to(applied);
            // The library may go on to leave a joint configuration.
            self.proposed |= self.raw.raft.raft_log.last_index() > last;
        }
    }

    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        self.own.push(Envelope { to, message });
    }
}

/// Whether a replica ever took part in its group. One that did not has promised nothing: it
/// answers nothing before its term is on disk.
pub(super) fn has_taken_part(state: &HardState) -> bool {
    state.term > Term(0) && !is_planted(Bug::VoteAfterRestart)
}

/// Refuses what no crash leaves behind, and raises the commit index to the checkpoint's.
pub(super) fn check_recovered<L: LogView>(log: &L, recovered: &Recovered) -> Result<HardState> {
    let (first, last) = (log.first(), log.last());
    let checkpoint = recovered.checkpoint;
    if checkpoint > last || checkpoint.next() < first {
        return Err(Error::corrupted(format!(
            "the checkpoint is at LSN {checkpoint}, but the log has {first} to {last}"
        )));
    }
    let newest = match (log.term(first.prev()), log.term(last)) {
        (Some(_), Some(newest)) => newest,
        _ => {
            return Err(Error::corrupted(format!(
                "the log has {first} to {last} and knows no term at its ends"
            )))
        }
    };
    let state = recovered.hard_state;
    if state.term < newest {
        return Err(Error::corrupted(format!(
            "the log ends in term {newest}, but the replica knows of term {} only",
            state.term
        )));
    }
    Ok(HardState {
        // The commit index may have run ahead of what was flushed here.
        commit: state.commit.max(checkpoint).min(last),
        ..state
    })
}

/// Spreads the bits of a number evenly (SplitMix64's finish).
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What [`Bug::EntryAltered`] does to a text at the end of an entry, if that is a number.
fn alter_entry(entry: &mut eraftpb::Entry) {
    let mut data = entry.data.to_vec();
    if let [.., before, last] = &mut data[..] {
        let is_text = before.is_ascii_graphic() && last.is_ascii_digit();
        *last ^= u8::from(is_text);
    }
    entry.data = data.into();
}
