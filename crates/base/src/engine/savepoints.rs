//! Going back to a point within a transaction, and reading what an earlier statement saw.
//!
//! ```text
//! savepoint() → 1   insert k   savepoint() → 2   insert l
//! rollback_to(2)    l is gone, its lock too; 2 is still there
//! release(1)        both are forgotten, k stays
//! ```
//! A *view* is what a cursor reads: the snapshot of the statement that opened it, and what the
//! transaction had written before. A rollback to a savepoint leaves it as it is.

use crate::error::Result;

/// A savepoint of one transaction; larger ones were made later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub u32);

/// What a statement sees, kept so that its rows can be read piece by piece between others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewId(pub u32);

/// Goes back to savepoints.
///
/// # Invariant
/// A savepoint that is named is one that was made here, and that no rollback to an earlier one and
/// no release has ended.
pub trait Savepoints {
    /// Marks this point.
    fn savepoint(&mut self) -> Savepoint;

    /// Undoes what came after the savepoint, its locks included; the savepoint stays.
    fn rollback_to(&mut self, savepoint: Savepoint);

    /// Forgets the savepoint and later ones, keeping what came after.
    fn release(&mut self, savepoint: Savepoint);
}

/// Keeps views.
pub trait Views {
    /// Keeps what the statement at work sees, under a name.
    ///
    /// # Errors
    /// XX000 before the first statement.
    fn keep_view(&mut self) -> Result<ViewId>;

    /// Changes what is kept under a name with what the transaction sees now; a second call changes
    /// them back. Nothing may be written in between.
    ///
    /// # Errors
    /// 40001 when leadership has changed.
    fn swap_view(&mut self, view: ViewId) -> Result<()>;

    /// Keeps what that name stands for no longer.
    fn drop_view(&mut self, view: ViewId);
}
