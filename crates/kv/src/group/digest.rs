//! What a replica holds, as one value: equal replicas have equal digests.

use base::codec::checksum_append;
use base::{Lsn, Result};

use super::Group;

/// The newest versions of everything that one replica holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The newest entry that it has applied.
    pub applied: Lsn,
    /// Entries of all its trees.
    pub entries: u64,
    /// A checksum over trees, keys and rows, in order.
    pub checksum: u32,
}

impl Group {
    /// Checks this replica's trees and sums them up, while nothing is applied. For tests: it reads
    /// everything.
    ///
    /// # Errors
    /// XX001 when a tree is not sound.
    pub fn digest(&self) -> Result<Digest> {
        let core = self.lock();
        let mut digest = Digest {
            applied: core.applied.lsn,
            entries: 0,
            checksum: 0,
        };
        self.store().check_trees(&mut |tree, key, row| {
            digest.entries += 1;
            for part in [&tree.0.to_be_bytes(), key, row] {
                digest.checksum = checksum_append(digest.checksum, part);
            }
            Ok(())
        })?;
        Ok(digest)
    }
}
