//! What a group has in memory and on disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::engine::StorageStatus;

use super::meta::Meta;
use super::Group;

impl Group {
    /// What this replica has in memory and on disk.
    pub fn storage_status(&self) -> StorageStatus {
        let store = self.store();
        let checkpoint = store.checkpoint();
        // The empty one that a replica begins with says nothing of itself.
        let made = Meta::decode(&checkpoint.meta).ok();
        let age = made.map(|meta| {
            let micros = self.env.wall_clock().0.saturating_sub(meta.timestamp.0);
            Duration::from_micros(u64::try_from(micros).unwrap_or(0))
        });
        let (frames, syncs) = self.log.appended_frames_and_syncs();
        let count = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let made = &self.shared.checkpoints;
        StorageStatus {
            log_appended_frames: frames,
            log_syncs: syncs,
            checkpoints_timed: count(&made.timed),
            checkpoints_requested: count(&made.requested),
            checkpoint_write_time: Duration::from_micros(count(&made.write_micros)),
            checkpoint: checkpoint.lsn,
            checkpoint_age: age,
            log_bytes_since_checkpoint: self.log.bytes_after(checkpoint.lsn),
            log_bytes: self.log.bytes_after(self.log.base().lsn),
            log_appended_bytes: self.log.appended_bytes(),
            ..store.storage_status()
        }
    }
}
