//! What a group has in memory and on disk.

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
        StorageStatus {
            checkpoint: checkpoint.lsn,
            checkpoint_age: age,
            log_bytes_since_checkpoint: self.log.bytes_after(checkpoint.lsn),
            log_bytes: self.log.bytes_after(self.log.base().lsn),
            log_appended_bytes: self.log.appended_bytes(),
            ..store.storage_status()
        }
    }
}
