//! What the commit of a transaction tells others ([`crate::notifications`]): rows that it writes, and
//! the deletion of old ones.

use std::rc::Rc;

use base::engine::{
    Direction, Heard, LockWait, Notification, Notifying, RowBatch, RowLock, Transaction,
};
use base::limits::SCAN_BATCH_ROWS;
use base::{Error, Key, KeyRange, Lsn, Result, SqlState, TreeId};

use super::{Leader, Txn, AFTER_ALL};
use crate::locks::Acquired;
use crate::notifications::{
    deleted_place, deleted_row, key_of, place_of, row_of, unplaced, Told, DELETED,
    DELETED_PER_LOOK, KEPT_SECONDS, QUEUE_BYTES_MAX,
};

const TREE: TreeId = TreeId::NOTIFICATIONS;

/// Rows that are to go: of places below one, and as old as that or older.
struct Old {
    below: Lsn,
    seconds: i64,
}

impl<L: Leader> Notifying for Txn<L> {
    fn notify(&mut self, database: u32, told: &[Rc<Notification>]) -> Result<()> {
        if self.snapshot.is_none() {
            self.begin_statement()?;
        }
        self.make_room(told.len())?;
        let now = self.leader.now_seconds();
        self.next_command();
        for (number, told) in told.iter().enumerate() {
            let key = unplaced(number as u32);
            self.put(TREE, &key, None, Some(&row_of(database, told, now)))?;
        }
        Ok(())
    }
}

impl<L: Leader> Txn<L> {
    /// Deletes what is kept no longer, for so many new rows.
    fn make_room(&mut self, rows: usize) -> Result<()> {
        let (listeners, bytes) = self.leader.notifications()?;
        let is_full = bytes >= QUEUE_BYTES_MAX;
        let (most, seconds) = match (listeners.deletes(rows), is_full) {
            (0, false) => return Ok(()),
            (usual, false) => (usual, self.leader.now_seconds() - KEPT_SECONDS),
            (_, true) => (2 * rows + DELETED_PER_LOOK, i64::MAX),
        };
        let below = listeners.unheard();
        let deleted = self.delete_old(Old { below, seconds }, most)?;
        match is_full && deleted < rows {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "too many notifications in the NOTIFY queue",
            )),
        }
    }

    /// Deletes so many old rows at most, the oldest first; how many. Nobody waits for another who is
    /// about it.
    fn delete_old(&mut self, old: Old, most: usize) -> Result<usize> {
        let old = self.old_notifications(&old, most)?;
        let Some((newest, _)) = old.last() else {
            return Ok(0);
        };
        let mut newest = place_of(newest)?;
        // Who has this lock may delete.
        let locked = self
            .locks
            .row(TREE, DELETED, RowLock::Update, LockWait::Skip)?;
        if locked == Acquired::Skipped {
            return Ok(0);
        }
        let mut row = Vec::new();
        let before = match self.get_newest(TREE, DELETED, &mut row)?.exists {
            true => deleted_place(&row)?,
            false => Heard::default(),
        };
        newest = newest.max(before);
        let mut count = 0;
        // Another one may have deleted some meanwhile.
        for (key, row) in old.iter().filter(|(key, _)| *key > key_of(before)) {
            self.put(TREE, key, Some(row), None)?;
            count += 1;
        }
        if count > 0 {
            self.put_own(TREE, DELETED, &deleted_row(newest))?;
        }
        Ok(count)
    }

    /// The oldest rows, if they are old.
    fn old_notifications(&mut self, old: &Old, most: usize) -> Result<Vec<(Key, Vec<u8>)>> {
        let (mut found, mut batch) = (Vec::new(), RowBatch::default());
        let mut rest = Some(KeyRange {
            start: key_of(Heard::default()),
            end: Some(key_of(Heard {
                lsn: old.below,
                number: 0,
            })),
        });
        while let Some(range) = rest.filter(|_| found.len() < most) {
            let newest = (self.leader.visible(), AFTER_ALL);
            let limit = SCAN_BATCH_ROWS.min(most - found.len());
            rest = self.scan_as_of(TREE, &range, Direction::Forward, newest, limit, &mut batch)?;
            for (key, row) in batch.iter() {
                if Told::of(row)?.seconds()? > old.seconds {
                    return Ok(found);
                }
                found.push((key.to_vec(), row.to_vec()));
            }
        }
        Ok(found)
    }
}
