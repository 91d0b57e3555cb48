//! Getting records to the disk: the log writer, the flush of a lone commit, the wait for a level.
//!
//! There is one fsync in flight, always of everything appended so far. Whoever holds the *claim*
//! (`core.writing`) writes and syncs. Each change of thread costs as much as half an fsync, so while
//! the disk is fast ([`DiskSpeed`]) there are as few as can be:
//!
//! | where | who has the claim | changes of thread |
//! |---|---|---|
//! | the leader of one or two voters, a commit that is alone ([`InlinePolicy`]) | its session | none |
//! | any other leader, many commits | the log writer, on a thread of its own | two |
//! | a follower | the near writer, on the thread that receives: it appends, syncs, acknowledges, applies | none |
//! | anybody whose disk is slow, or was for a moment of late ([`super::slow`]), or writes a checkpoint | the log writer | two |
//!
//! What a follower's thread receives during a sync is appended after it, and has the next one. A
//! heartbeat is answered after the sync, too: that is why a slow disk goes to a thread of its own. Where
//! others can commit without the leader's disk, no session waits for it: it may hang.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, BoxFuture};
use base::sync::Event;
use base::{Durability, Error, NodeId, Position, Result, SqlState};
use raft::planted::{is_planted, Bug};

use super::core::Core;
use super::pace::waits_for_majority;
use super::Group;
use crate::gate::Verdict;

/// A log that did not fit the disk is tried again after this.
const FULL_LOG_PAUSE: Duration = Duration::from_millis(50);

/// The right and the duty to make an output of the consensus durable.
#[derive(Debug)]
struct Claim {
    group: Arc<Group>,
    done: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.done {
            // A session was torn down in the middle of its flush: the log writer takes over.
            self.group.hand_claim(Writer::Own);
        }
    }
}

/// Who writes and syncs the log when no session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The log writer, on the log's own thread.
    Own,
    /// The near writer, on the thread that receives from other nodes.
    Near,
}

/// A sync that takes longer must not hold up a thread that others need.
const FAST_SYNC_MAX: Duration = Duration::from_millis(1);

/// So many fast syncs in a row make a fast disk.
const FAST_SYNCS: u32 = 16;

/// More bytes than these are written and synced on the log's own thread.
const FAST_BYTES_MAX: usize = 32 << 10;

/// So few voters commit nothing without each of them.
const VOTERS_ALL_NEEDED: usize = 2;

/// How fast syncs were lately.
#[derive(Debug)]
pub struct DiskSpeed {
    /// Fast syncs until the disk counts as fast.
    wanting: AtomicU32,
}

impl Default for DiskSpeed {
    fn default() -> DiskSpeed {
        DiskSpeed {
            wanting: AtomicU32::new(FAST_SYNCS),
        }
    }
}

impl DiskSpeed {
    /// A sync has taken so long. There is one at a time.
    fn note(&self, took: Duration) {
        let wanting = match took > FAST_SYNC_MAX {
            true => FAST_SYNCS,
            false => self.wanting.load(Ordering::Relaxed).saturating_sub(1),
        };
        self.wanting.store(wanting, Ordering::Relaxed);
    }

    fn is_fast(&self) -> bool {
        self.wanting.load(Ordering::Relaxed) == 0
    }
}

/// Whether a session may sync in its own thread.
///
/// That is best for a lone client and bad for many: while one syncs, the others of its reactor
/// stand still. So company must be noticed, and it cannot be noticed while everybody syncs inline:
/// every [`PROBE_EVERY`]th flush goes to the log writer, and if anybody else asks for a flush
/// meanwhile, the next [`CROWDED_FOR`] go there too.
#[derive(Debug, Default)]
pub struct InlinePolicy {
    asked: AtomicU32,
    crowded: AtomicU32,
    waiting: AtomicU32,
}

const PROBE_EVERY: u32 = 16;
const CROWDED_FOR: u32 = 64;

impl InlinePolicy {
    fn enter(&self) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) > 0 {
            self.crowded.store(CROWDED_FOR, Ordering::Relaxed);
        }
    }

    /// Whether anybody waits for a flush.
    pub(super) fn somebody_waits(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn leave(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    fn allows(&self) -> bool {
        let crowded = self.crowded.load(Ordering::Relaxed);
        if crowded > 0 {
            self.crowded.store(crowded - 1, Ordering::Relaxed);
            return false;
        }
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        asked % PROBE_EVERY != 0
    }
}

/// Counts one who waits for a flush.
struct Waiting<'a> {
    group: &'a Group,
    for_majority: bool,
}

impl<'a> Waiting<'a> {
    fn new(group: &'a Group, level: Durability) -> Waiting<'a> {
        group.inline.enter();
        group.note_waiting();
        let for_majority = waits_for_majority(level);
        if for_majority {
            group.shared.majority_waiting.fetch_add(1, Ordering::SeqCst);
        }
        Waiting {
            group,
            for_majority,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.group.inline.leave();
        if self.for_majority {
            let waiting = &self.group.shared.majority_waiting;
            waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Group {
    /// As [`base::engine::Gate::settle`], for one position.
    pub fn settle(
        self: &Arc<Self>,
        position: Position,
        durability: Durability,
    ) -> BoxFuture<'static, Result<()>> {
        let group = self.clone();
        Box::pin(async move {
            if group.gate.verdict(position, durability) == Verdict::Waits {
                let _waiting = Waiting::new(&group, durability);
                if let Some(claim) = group.push(durability) {
                    group.flush(claim).await;
                }
                group.gate.settle(position, durability).await?;
            } else {
                group.gate.settle(position, durability).await?;
            }
            match durability == Durability::Off || group.is_of_history(position)? {
                true => Ok(()),
                false => Err(Error::failover()),
            }
        })
    }

    /// As [`base::engine::Gate::is_settled`], for one position.
    pub fn is_settled(&self, position: Position, durability: Durability) -> bool {
        let is_off = durability == Durability::Off;
        let is_there = || is_off || self.is_of_history(position).unwrap_or(false);
        self.gate.is_settled(position, durability) && is_there()
    }

    /// Gets everything proposed so far moving. The claim is returned when the caller should flush
    /// by itself.
    fn push(self: &Arc<Self>, level: Durability) -> Option<Claim> {
        let mut core = self.lock();
        if core.failed || core.deaf {
            return None;
        }
        if matches!(level, Durability::RemoteWrite | Durability::RemoteApply) {
            core.consensus.want_eager_watermarks(true, self.env.now());
        }
        if core.writing {
            // The log writer goes on with it when it is done. A few who wait for followers too need
            // not wait for that; what many commit leaves together then.
            if waits_for_majority(level) && !self.is_sole_member() && !self.many_wait() {
                self.pump(&mut core);
                self.hurry_needed(&mut core);
            }
            return None;
        }
        if self.may_sync_inline(&core) {
            // The claim comes first, so that the pump does not wake the log writer.
            core.writing = true;
            core.writing_since = self.env.now();
            self.pump(&mut core);
            core.writing = false;
            let claim = self.claim(&mut core);
            if claim.is_some() {
                if waits_for_majority(level) {
                    self.hurry_needed(&mut core);
                }
                return claim;
            }
        }
        self.pump(&mut core);
        if waits_for_majority(level) {
            self.hurry_needed(&mut core);
        }
        None
    }

    /// Whether a session may write and sync in its own thread. Where others are told too, they are
    /// told first, and their answers come to another thread.
    fn may_sync_inline(&self, core: &Core) -> bool {
        let voters = core.consensus.membership().voters.len();
        let needs_this = voters <= VOTERS_ALL_NEEDED;
        let leads = || core.led.is_some() && needs_this && !self.many_wait() && self.is_quick(core);
        (self.is_sole_member() || leads()) && self.inline.allows()
    }

    /// Whether what is to be synced now will be so in a moment.
    fn is_quick(&self, core: &Core) -> bool {
        self.disk_speed.is_fast()
            && core.disk.is_calm(self.env.now())
            && !core.checkpointing
            && self.log.unwritten_bytes() < FAST_BYTES_MAX
    }

    /// Who is to write and sync. Where somebody waits for what was applied, that goes on meanwhile.
    pub(super) fn choose_writer(&self, core: &Core) -> Writer {
        let waits = core.consensus.is_leader() || core.consensus.is_eager();
        match !waits && self.is_quick(core) {
            true => Writer::Near,
            false => Writer::Own,
        }
    }

    /// Gives the claim to a writer.
    pub(super) fn hand_claim(&self, writer: Writer) {
        let (claimed, work) = self.mailbox(writer);
        claimed.store(true, Ordering::SeqCst);
        work.notify_all();
    }

    fn mailbox(&self, writer: Writer) -> (&AtomicBool, &Event) {
        match writer {
            Writer::Own => (&self.shared.claimed, &self.log_work),
            Writer::Near => (&self.shared.claimed_near, &self.near_work),
        }
    }

    /// The claim, if there is something to flush and nobody has it.
    fn claim(self: &Arc<Self>, core: &mut Core) -> Option<Claim> {
        if core.writing || core.failed || core.deaf || core.owed <= core.synced {
            return None;
        }
        core.writing = true;
        core.writing_since = self.env.now();
        Some(Claim {
            group: self.clone(),
            done: false,
        })
    }

    /// Writes and syncs everything appended so far, and says so.
    async fn flush(self: &Arc<Self>, mut claim: Claim) {
        // Read before the write, which takes all of this and may take more.
        let number = self.shared.owed.load(Ordering::SeqCst);
        let result = self.write_and_sync(number).await;
        claim.done = true;
        let mut core = self.lock();
        core.writing = false;
        match result {
            Ok(Some(took)) => {
                self.note_sync(&mut core, took);
                self.note_synced(&mut core, number);
            }
            Ok(None) => {}
            Err(error) => self.fail(&mut core, &error),
        }
        // What is acknowledged has left by now.
        drop(core);
        let mut core = self.lock();
        if !core.queue.is_empty() {
            self.pump(&mut core);
        }
    }

    /// How long it took; none when the group was closed before there was space for it.
    async fn write_and_sync(&self, number: u64) -> Result<Option<Duration>> {
        let mut begun = self.env.now();
        // Who commits has reserved space; what comes from others, or is about who leads, has not.
        while let Err(error) = self.log.write() {
            if error.state() != SqlState::DISK_FULL {
                return Err(error);
            }
            sleep(&*self.env, FULL_LOG_PAUSE).await;
            if self.is_over() {
                return Ok(None);
            }
            begun = self.env.now();
        }
        self.shared.written.store(number, Ordering::SeqCst);
        if !self.is_sole_member() && self.shared.eager.load(Ordering::SeqCst) {
            self.pump(&mut self.lock());
        }
        if is_planted(Bug::AckBeforeFlush) {
            self.note_synced(&mut self.lock(), number);
        }
        let written = self.env.now();
        self.log.sync().await?;
        let now = self.env.now();
        self.disk_speed.note(now.since(written));
        Ok(Some(now.since(begun)))
    }

    /// Only here does this node say that something is on its disk.
    fn note_synced(&self, core: &mut Core, number: u64) {
        core.synced = core.synced.max(number);
        if core.failed || core.deaf {
            return;
        }
        let now = self.env.now();
        core.consensus.persisted(number, now);
        self.note_flushed(core.consensus.flushed(), now);
        self.log_changed.notify_all();
        match core.consensus.is_leader() {
            true => self.pump(core),
            // The acknowledgement leaves before anything is applied.
            false => self.pump_before_apply(core),
        }
    }

    /// Ready when an entry that the leader of a term has appended is on this replica's disk while that
    /// term lasts here, so that whoever leads next by this replica's vote has it too; or when it is known
    /// here to be committed. False when the term is over before, or the log has let go of the entry.
    pub(crate) async fn has_flushed(&self, position: Position) -> bool {
        let known = || {
            let core = self.lock();
            let consensus = &core.consensus;
            let term = consensus.entry_term(position.lsn);
            let is_it = term == Some(position.term);
            let is_committed = consensus.committed() >= position.lsn;
            let is_flushed = consensus.term() == position.term
                && consensus.flushed() >= position.lsn
                && !core.failed
                && !core.deaf;
            if is_it && (is_flushed || is_committed) {
                return Some(true);
            }
            let is_gone = term.is_none() && is_committed;
            let is_over = core.failed || core.deaf || consensus.term() > position.term;
            (is_gone || is_over || self.is_over()).then_some(false)
        };
        self.log_changed.until(known).await
    }

    /// The voters of the group that this node leads, while no change of them is under way.
    pub(crate) fn settled_voters(&self) -> Vec<NodeId> {
        let core = self.lock();
        let consensus = &core.consensus;
        match consensus.is_changing_membership() || consensus.has_unsettled_membership() {
            true => Vec::new(),
            false => consensus.membership().voters.clone(),
        }
    }

    /// The task of a writer.
    pub(super) async fn write_log(self: Arc<Self>, writer: Writer) {
        let (claimed, work) = self.mailbox(writer);
        loop {
            let claim = work.until(|| {
                if self.is_over() {
                    return Some(None);
                }
                let claimed = claimed.swap(false, Ordering::SeqCst);
                claimed.then(|| {
                    Some(Claim {
                        group: self.clone(),
                        done: false,
                    })
                })
            });
            let Some(claim) = claim.await else {
                return;
            };
            self.flush(claim).await;
        }
    }

    /// Before an orderly end: the log says what is committed, and that everything in it was synced, so
    /// that what is gone from it at the next start is noticed.
    pub(super) async fn seal_log(&self) {
        if self.is_over() || self.log.has_unwritten() {
            return;
        }
        let kept = self.keep_commit(&mut self.lock());
        let sealed = async {
            kept?;
            self.log.flush().await?;
            self.log.seal().await
        };
        let failed = sealed.await.err();
        // Without space for it, the log ends as it would in a crash.
        if let Some(error) = failed.filter(|error| error.state() != SqlState::DISK_FULL) {
            self.fail(&mut self.lock(), &error);
        }
    }

    /// Ready when everything proposed so far is on this node's disk, or cannot be for want of space.
    pub(super) async fn flush_all(self: &Group) {
        {
            let mut core = self.lock();
            core.pace.hurry();
            self.pump(&mut core);
        }
        while !self.is_over() {
            {
                let core = self.lock();
                if core.owed <= core.synced || self.log.lacks_space() {
                    return;
                }
            }
            sleep(&*self.env, base::limits::OFF_FLUSH_DELAY / 10).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_fast_after_many_fast_syncs_and_slow_after_one_slow_one() {
        let (fast, slow) = (Duration::from_micros(90), Duration::from_millis(3));
        let speed = DiskSpeed::default();
        for _ in 1..FAST_SYNCS {
            speed.note(fast);
        }
        assert!(!speed.is_fast());
        speed.note(fast);
        assert!(speed.is_fast());
        speed.note(slow);
        assert!(!speed.is_fast());
        (0..FAST_SYNCS).for_each(|_| speed.note(fast));
        assert!(speed.is_fast());
    }
}
