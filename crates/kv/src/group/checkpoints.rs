//! Checkpoints: when one is made, and what of the log is let go of afterwards. The same task gives
//! back what space transactions have taken on disk and no longer need.
//!
//! A checkpoint is begun in an instant under the latch, at the LSN C that is applied then; written
//! at leisure; and published once C is committed. If C is taken back meanwhile, the store discards
//! it. Afterwards the log below C is kept only as far as another replica may still need it:
//!
//! A restart replays what the published checkpoint lacks. That is bounded by bytes and by records,
//! since a record costs time however short it is: a checkpoint begins at half of either bound, and is
//! written so fast that it is published at the whole. What comes meanwhile is not held up, so a disk
//! that cannot write so fast makes it more.
//!
//! While a large transaction is in its chunks ([`super::bulk`]) no checkpoint begins: the chunks
//! would be in it, and whose they are would not. A leader therefore begins no further large
//! transaction while a checkpoint is wanted, and every replica begins the one that it wants at the
//! very entry that ends the last of them. The log is longer by those transactions meanwhile.
//!
//! ```text
//!        needed by a replica          C
//!   ─────┬────────────────────────────┬──────────────── last
//!   gone │ kept: at most absent_log_bytes_max above the lowest replica,
//!        │ and at least kept_log_bytes anyway
//! ```

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Instant, Severity};
use base::{Error, Lsn, Result, SqlState};
use raft::planted::{is_planted, Bug};
use raft::SnapshotMeta;
use storage::SPENT_ALL;

use super::core::Core;
use super::meta::Meta;
use super::{not_leader, Group};

/// How often it is asked whether a checkpoint is due.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A checkpoint for which there was no space is tried again after this.
const FULL_DISK_PAUSE: Duration = Duration::from_secs(5);

/// How often it is asked whether a written checkpoint is committed.
const COMMIT_LOOK_EVERY: Duration = Duration::from_millis(20);

/// A part of a whole, of [`SPENT_ALL`].
fn share(part: u64, whole: u64) -> u64 {
    part.saturating_mul(SPENT_ALL) / whole.max(1)
}

impl Group {
    /// The task that makes checkpoints.
    pub(super) async fn make_checkpoints(self: Arc<Self>) {
        let mut last_at = self.env.now();
        while !self.is_over() {
            sleep(&*self.env, LOOK_EVERY).await;
            for trimmed in [self.scratch.trim(), self.temp.trim()] {
                if let Err(error) = trimmed {
                    self.fail(&mut self.lock(), &error);
                }
            }
            if !self.is_due(last_at) {
                continue;
            }
            let begun = self.env.now();
            let is_timed = begun.since(last_at) >= self.config.settings.checkpoint_interval;
            last_at = begun;
            let result = self.checkpoint_now().await;
            self.lock().checkpointing = false;
            match result {
                Ok(true) => {
                    let made = &self.shared.checkpoints;
                    let of_kind = if is_timed {
                        &made.timed
                    } else {
                        &made.requested
                    };
                    of_kind.fetch_add(1, Ordering::Relaxed);
                    let micros = self.env.now().since(begun).as_micros();
                    let micros = u64::try_from(micros).unwrap_or(u64::MAX);
                    made.write_micros.fetch_add(micros, Ordering::Relaxed);
                }
                Ok(false) => {}
                Err(error) if error.state() == SqlState::DISK_FULL => {
                    let message = format!("no checkpoint: {}", error.message());
                    self.env.log(Severity::Warning, &message);
                    let refused = &self.shared.checkpoints_refused;
                    refused.fetch_add(1, Ordering::SeqCst);
                    sleep(&*self.env, FULL_DISK_PAUSE).await;
                }
                Err(error) => self.fail(&mut self.lock(), &error),
            }
        }
    }

    fn is_due(&self, last_at: Instant) -> bool {
        let store = self.store();
        let since = store.checkpoint().lsn;
        if self.visible().lsn <= since || self.is_over() {
            return false;
        }
        let settings = &self.config.settings;
        let is_asked = since.0 < self.shared.checkpoint_asked.load(Ordering::SeqCst);
        if is_asked || self.somebody_needs_one() {
            return true;
        }
        self.log_spent(since) >= SPENT_ALL / 2
            || self.env.now().since(last_at) >= settings.checkpoint_interval
            || store.outgrows(settings.checkpoint_percent)
    }

    /// How much a restart would replay that begins at a checkpoint, of [`SPENT_ALL`] for the most that
    /// it should.
    fn log_spent(&self, checkpoint: Lsn) -> u64 {
        let settings = &self.config.settings;
        let records = self.visible().lsn.0.saturating_sub(checkpoint.0);
        let of_bytes = share(
            self.log.bytes_after(checkpoint),
            settings.checkpoint_log_bytes,
        );
        of_bytes.max(share(records, settings.checkpoint_log_records))
    }

    /// Waits for a checkpoint of all that is visible now, on whatever replica this is.
    ///
    /// # Errors
    /// [`not_leader`] when this node leads no more; 53100 when there is no space for one.
    pub(crate) async fn checkpoint_of_now(&self) -> Result<()> {
        let lsn = self.visible().lsn;
        let led = self.leading().is_some();
        let refused = || self.shared.checkpoints_refused.load(Ordering::SeqCst);
        let before = refused();
        let asked = &self.shared.checkpoint_asked;
        asked.fetch_max(lsn.0, Ordering::SeqCst);
        // A follower's log may be cut meanwhile.
        while self.store().checkpoint_lsn() < lsn.min(self.visible().lsn) {
            if self.is_over() || led && self.leading().is_none() {
                return Err(not_leader());
            }
            if refused() > before {
                let message = "could not make a checkpoint: no space left on device";
                return Err(Error::new(SqlState::DISK_FULL, message));
            }
            sleep(&*self.env, COMMIT_LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Whether a member was added after the last checkpoint, which therefore is none that it could
    /// begin with, and the log no longer begins at its beginning, or is not given to it from there.
    fn somebody_needs_one(&self) -> bool {
        let is_cut = self.log.base().lsn > Lsn::ZERO || self.floor.load(Ordering::SeqCst) > 0;
        if !is_cut || self.leading().is_none() {
            return false;
        }
        let checkpoint = self.checkpoint.lock();
        let can_begin = |member: &crate::config::Member| {
            let checkpoint = checkpoint.as_ref();
            checkpoint.is_some_and(|checkpoint| checkpoint.membership.contains(member.node))
        };
        let directory = self.directory();
        let mut others = directory
            .members
            .iter()
            .filter(|member| member.node != self.config.node);
        others.any(|member| !can_begin(member))
    }

    /// Makes a checkpoint and lets go of log. False when it could not be begun, or was discarded.
    async fn checkpoint_now(&self) -> Result<bool> {
        let Some(meta) = self.begin_checkpoint().await? else {
            return Ok(false);
        };
        // It may have had to wait, and a fetched checkpoint have come meanwhile, with another store.
        let store = self.store();
        let percent = self.config.settings.checkpoint_percent;
        let published = store.checkpoint().lsn;
        let before = self.log_spent(published);
        let spent = || {
            let since = self.log_spent(published).saturating_sub(before);
            share(since, SPENT_ALL.saturating_sub(before))
        };
        if !store.write_checkpoint_before(percent, &spent).await? {
            return Ok(false);
        }
        while self.gate.commit() < meta.position.lsn && !is_planted(Bug::CheckpointAhead) {
            if self.is_over() || store.pending_checkpoint().is_none() {
                return Ok(false);
            }
            sleep(&*self.env, COMMIT_LOOK_EVERY).await;
        }
        if !store.publish_checkpoint().await? {
            return Ok(false);
        }
        let lsn = meta.position.lsn;
        self.env
            .log(Severity::Info, &format!("checkpoint at {lsn}"));
        *self.checkpoint.lock() = Some(SnapshotMeta {
            position: meta.position,
            chain: meta.chain,
            membership: meta.membership,
        });
        self.compact(lsn)?;
        self.forget_fetch()?;
        Ok(true)
    }

    /// Begins a checkpoint, now or at the next moment at which that can be.
    async fn begin_checkpoint(&self) -> Result<Option<Meta>> {
        {
            let mut core = self.lock();
            core.checkpoint_begun = None;
            core.checkpoint_wanted = true;
            self.begin_wanted_checkpoint(&mut core)?;
        }
        loop {
            {
                let mut core = self.lock();
                let begun = core.checkpoint_begun.take();
                let patient = core.checkpoint_wanted && self.store().has_undecided();
                if begun.is_some() || !patient || self.is_over() {
                    core.checkpoint_wanted = false;
                    drop(core);
                    self.room.notify_all();
                    return Ok(begun);
                }
            }
            sleep(&*self.env, COMMIT_LOOK_EVERY).await;
        }
    }

    /// Begins the checkpoint that is wanted, if it can be begun. Called after each entry, because a
    /// replica that is behind may be between two large transactions for no longer than that.
    pub(super) fn begin_wanted_checkpoint(&self, core: &mut Core) -> Result<()> {
        if !core.checkpoint_wanted {
            return Ok(());
        }
        // A change of membership must be committed before it can be part of a checkpoint, and
        // none may be on the way.
        let unsure =
            core.consensus.has_unsettled_membership() || core.membership_changed > core.applied.lsn;
        let applying = core.applying.is_some() || self.store().has_undecided();
        if core.failed || core.deaf || unsure || applying {
            return Ok(());
        }
        let meta = Meta {
            position: core.applied,
            chain: self.log.chain(core.applied.lsn),
            timestamp: core.timestamp,
            membership: core.consensus.membership().clone(),
        };
        let lsn = self.store().start_checkpoint(meta.encode())?;
        let applied = core.applied.lsn;
        assert_eq!(lsn, applied, "a checkpoint is of what is applied");
        core.checkpointing = true;
        core.checkpoint_wanted = false;
        core.checkpoint_begun = Some(meta);
        Ok(())
    }

    fn compact(&self, checkpoint: Lsn) -> Result<()> {
        let settings = &self.config.settings;
        let always = self.with_bytes_above(settings.kept_log_bytes);
        let mut up_to = checkpoint.min(always);
        let lowest = {
            let core = self.lock();
            let status = core.consensus.status(self.env.now());
            status.peers.iter().map(|peer| peer.flushed).min()
        };
        if let Some(lowest) = lowest {
            let bound = self.with_bytes_above(settings.absent_log_bytes_max);
            up_to = up_to.min(lowest.max(bound));
        }
        self.log.compact(up_to)
    }

    /// The highest LSN above which the log has at least so many bytes.
    fn with_bytes_above(&self, bytes: u64) -> Lsn {
        let (mut low, mut high) = (self.log.base().lsn.0, self.log.last().lsn.0);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match self.log.bytes_after(Lsn(middle)) >= bytes {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        Lsn(low)
    }
}
