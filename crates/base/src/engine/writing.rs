//! Writing rows, into the transaction's private write set.
//!
//! ```text
//! insert(t, k, …)   Done, or Duplicate(t): k is there; Duplicate(i): i has the row's values
//! post(t, k, …)     none: do it yourself; or post 7: another node does it, and nobody waits
//! posted(7)         what has become of 7 and all that came later
//! ```
//! # Invariants
//! - A row is locked before it is changed: whoever updates or deletes has called
//!   [`super::Locking::lock_row`], and has been told that the row is there.
//! - Nothing of it is seen by others before [`super::Transaction::commit`] has returned.

use crate::error::Result;
use crate::ids::TreeId;
use crate::key::Key;

/// What an insert found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The row is in the transaction's write set.
    Done,
    /// A row with the same key is there: in the table itself, or in the unique index named.
    Duplicate(TreeId),
}

/// What is to become of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write<'a> {
    /// As [`Writing::insert`].
    Insert(&'a [u8]),
    /// As [`Writing::insert_new`].
    InsertNew(&'a [u8]),
    /// As [`Writing::update`].
    Update(&'a [u8]),
}

/// A row that another node was told to write; later ones of a transaction have greater numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Post(pub u64);

/// Writes rows.
pub trait Writing {
    /// Inserts a row: waits for others that write the same key, checks the newest version of the
    /// key and of every unique index.
    fn insert(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted>;

    /// The same for a key that was never used before and that nobody else can use: it needs neither
    /// lock nor look.
    fn insert_new(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        self.insert(tree, key, row)
    }

    /// Replaces a row that was locked with `NoKeyUpdate` or `Update` and is there.
    ///
    /// Returns `Duplicate` when a unique index already has the new values.
    fn update(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted>;

    /// Does what is to become of a row.
    ///
    /// # Errors
    /// As what that is.
    fn write_as(&mut self, tree: TreeId, key: &[u8], write: Write<'_>) -> Result<Inserted> {
        match write {
            Write::Insert(row) => self.insert(tree, key, row),
            Write::InsertNew(row) => self.insert_new(tree, key, row),
            Write::Update(row) => self.update(tree, key, row),
        }
    }

    /// Has a row written, and does not wait for what comes of it, where another node writes it. None where
    /// this one does: then nothing was done. Whoever may meet a [`Inserted::Duplicate`] asks for what has
    /// become of it before anybody is told that it is written ([`Writing::posted`]).
    ///
    /// # Errors
    /// As [`Writing::insert`], of what came before it too.
    fn post(&mut self, tree: TreeId, key: &[u8], write: Write<'_>) -> Result<Option<Post>> {
        let _ = (tree, key, write);
        Ok(None)
    }

    /// The first of what was posted from `since` on whose values are taken, and the table or index that
    /// has them: that row is not written.
    ///
    /// # Errors
    /// What was wrong with any of them.
    fn posted(&mut self, since: Post) -> Result<Option<(Post, TreeId)>> {
        let _ = since;
        Ok(None)
    }

    /// Deletes a row that was locked with `Update` and is there.
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()>;

    /// Says of a row that this transaction has deleted that it goes on in another tree.
    fn note_moved(&mut self, tree: TreeId, key: &[u8]);

    /// Whether a row that the statement has read, and that others have deleted since, went on in another
    /// tree; true as well where that is no longer known.
    fn was_moved(&self, tree: TreeId, key: &[u8]) -> Result<bool>;

    /// Whether the current command itself has written this row. To [`super::Locking::lock_row`]
    /// such a row is gone, so that UPDATE passes over it; `ON CONFLICT DO UPDATE` fails with 21000.
    fn is_written_by_command(&self, tree: TreeId, key: &[u8]) -> bool;

    /// The rows of catalog trees that were written so far, in order; what a rollback to a savepoint
    /// has taken back stays among them.
    fn catalog_writes(&self) -> &[(TreeId, Key)];
}
