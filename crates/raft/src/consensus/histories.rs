//! Telling histories apart that have the same terms and LSNs.
//!
//! The library takes two logs for the same up to an entry if that has the same term and LSN in both.
//! So it is as long as no voter votes twice in a term, which one does that has lost its memory. Here,
//! at the seam where messages come in and go out, the [chain](base::chain) of the logs is compared
//! besides:
//!
//! | message | tells the chain | and who receives it |
//! |---|---|---|
//! | append | before its first entry | stops if it has another there, or other entries that it knows to be committed |
//! | acknowledgement | behind the last entry acknowledged | (the leader) does not count it if it has another there, and says so with a [`Message::Compare`] |
//! | request for a vote | behind the candidate's last entry | does not vote if it has another there, or knows more to be committed than the candidate has |
//! | snapshot | behind its last entry | stops if it has another there |
//!
//! Who stops keeps what it has: it may be the only copy of something, and which of two histories is
//! the right one is not for a replica to say.
//!
//! # What it leaves out
//! A log that was compacted is compared above its base only, and one that is thrown away for a
//! checkpoint beyond its end is not compared at all.

use super::*;
use crate::planted::{is_planted, Bug};
use crate::EntryKind;

impl<L: LogView> Consensus<L> {
    /// The chain behind an entry, those included that were not handed out yet.
    pub(super) fn chain(&self, lsn: Lsn) -> Option<Chain> {
        if is_planted(Bug::ChainUnchecked) {
            return None;
        }
        let unstable = &self.raw.raft.raft_log.unstable;
        let is_unstable = |entry: &&eraftpb::Entry| entry.index <= lsn.0;
        let first = match unstable.entries.first() {
            Some(first) if first.index <= lsn.0 && lsn <= self.last() => first.index,
            _ => return self.handed_out_chain(lsn),
        };
        let before = self.handed_out_chain(Lsn(first).prev());
        let entries = unstable.entries.iter().take_while(is_unstable);
        entries.fold(before, chain_after)
    }

    fn handed_out_chain(&self, lsn: Lsn) -> Option<Chain> {
        match &self.raw.raft.raft_log.unstable.snapshot {
            Some(snapshot) if snapshot.get_metadata().index == lsn.0 => {
                adapter::snapshot_meta(snapshot).chain
            }
            Some(_) => None,
            None => self.raw.store().log.chain(lsn),
        }
    }

    /// What a message that leaves says of the sender's history.
    pub(super) fn chain_to_tell(&self, message: &eraftpb::Message) -> Option<Chain> {
        let lsn = Lsn(message.index);
        match message.get_msg_type() {
            MessageType::MsgAppend
            | MessageType::MsgRequestVote
            | MessageType::MsgRequestPreVote => {
                let is_same = self.entry_term(lsn) == Some(Term(message.log_term));
                is_same.then(|| self.chain(lsn)).flatten()
            }
            MessageType::MsgAppendResponse if !message.reject => self.chain(lsn),
            _ => None,
        }
    }

    /// Logs what makes the chain known from here on, where nobody knows it.
    pub(super) fn begin_chain(&mut self) {
        let (term, kind) = (self.term(), EntryKind::ChainBegins);
        if let Ok(entry) = adapter::raft_entry(term, Lsn::ZERO, kind, vec![0]) {
            // If it cannot be had, logs match by term and LSN, as they did.
            let _ = self.append(entry);
        }
    }

    /// Fails if this log has another history than that of `from`, which has that chain behind that
    /// entry: another chain there, or another entry where this replica knows what is committed.
    pub(super) fn check_matches(
        &self,
        from: NodeId,
        theirs: Position,
        chain: Option<Chain>,
    ) -> Result<()> {
        let Some(term) = self.entry_term(theirs.lsn) else {
            return Ok(());
        };
        let differs = match (term == theirs.term, chain, self.chain(theirs.lsn)) {
            (true, Some(theirs), Some(mine)) => theirs != mine,
            (true, ..) => false,
            (false, ..) => theirs.lsn <= self.committed(),
        };
        match differs {
            true => Err(self.contradicted(from, theirs.lsn)),
            false => Ok(()),
        }
    }

    /// Fails if what an append says of the leader's log contradicts this one.
    pub(super) fn check_append(&self, from: NodeId, message: &RaftMessage) -> Result<()> {
        let RaftMessage(library, told) = message;
        let position = |term, index| Position {
            term: Term(term),
            lsn: Lsn(index),
        };
        let mut chain = *told;
        self.check_matches(from, position(library.log_term, library.index), chain)?;
        let last = self.last().0;
        for entry in library.entries.iter().take_while(|one| one.index <= last) {
            chain = chain_after(chain, entry);
            let theirs = position(entry.term, entry.index);
            self.check_matches(from, theirs, chain)?;
            if self.entry_term(theirs.lsn) != Some(theirs.term) {
                // From here on the leader's replace what this replica has.
                break;
            }
        }
        Ok(())
    }

    fn contradicted(&self, from: NodeId, lsn: Lsn) -> Error {
        let (group, commit, last) = (self.config.group, self.committed(), self.last());
        Error::corrupted(format!(
            "the log of this replica of group {group} is another history than that of node {from}, \
             which leads: they differ from LSN {lsn} on, or from before. This one knows up to {commit} to \
             be committed, and has the log up to {last}"
        ))
    }

    /// Whether a follower acknowledges another history than this leader has, and is told so.
    pub(super) fn is_contradicted(&mut self, from: NodeId, message: &RaftMessage) -> bool {
        let RaftMessage(library, told) = message;
        let lsn = Lsn(library.index);
        if library.term != self.term().0 || !self.is_leader() {
            return false;
        }
        let (Some(theirs), Some(mine)) = (*told, self.chain(lsn)) else {
            return false;
        };
        let Some(position_term) = self.entry_term(lsn).filter(|_| theirs != mine) else {
            return false;
        };
        let compare = Message::Compare {
            term: self.term(),
            position: Position {
                term: position_term,
                lsn,
            },
            chain: mine,
        };
        self.send(from, compare);
        true
    }

    /// Whether a candidate must not lead, because its log is another history, or lacks what this
    /// replica knows to be committed. The library refuses whoever is behind.
    pub(super) fn contradicts_candidate(&mut self, from: NodeId, message: &RaftMessage) -> bool {
        let RaftMessage(library, told) = message;
        let lsn = Lsn(library.index);
        let own_term = self.entry_term(self.last());
        let is_behind = Some(Term(library.log_term)) < own_term
            || Some(Term(library.log_term)) == own_term && lsn < self.last();
        if is_behind {
            return false;
        }
        let is_same = self.entry_term(lsn) == Some(Term(library.log_term));
        let is_other = match (*told, self.chain(lsn)) {
            (Some(theirs), Some(mine)) => is_same && theirs != mine,
            _ => false,
        };
        let contradicts = lsn < self.committed() || is_other;
        if contradicts {
            self.suspect = Some((from, lsn));
        }
        contradicts
    }
}

/// The chain behind an entry of the library.
fn chain_after(before: Option<Chain>, entry: &eraftpb::Entry) -> Option<Chain> {
    let position = Position {
        term: Term(entry.term),
        lsn: Lsn(entry.index),
    };
    let kind = adapter::kind_of(entry).code();
    let digest = base::chain::digest(position, kind, &entry.data);
    Chain::next(before, kind, digest)
}
