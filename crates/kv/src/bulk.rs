//! What chunks of a large transaction announce of its end.
//!
//! The rows of a large transaction are logged in chunks, before the record that decides on it
//! ([`crate::group`]). A table that it makes must be there before its rows, and an index that it
//! makes must get an entry with each row, or the decision would have all of them to do in line. So
//! the first chunk announces the trees which the decision will make and drop:
//!
//! ```text
//! LSN 10   chunk      makes tree t and its index i, drops u        the trees are there, and seen by nobody
//! LSN 12   chunk      rows of t, and so entries of i
//! LSN 15   decision   the same descriptors, rows of the catalog    registered, u is dropped
//! ```
//!
//! Each replica keeps what was announced in memory, for as long as its store remembers the
//! transaction. After a restart it comes from the log again, because no checkpoint lies within a
//! transaction.

use base::engine::{IndexDescriptor, TreeDescriptor, TreeKind};
use base::{Error, Result, TreeId};

use crate::apply::made_by;
use crate::record::{Change, RowChange};

/// What the decision on a transaction will do to trees.
#[derive(Debug, Default)]
pub struct Announced {
    /// Trees that it makes.
    pub made: Vec<TreeDescriptor>,
    /// Trees that it drops.
    pub dropped: Vec<TreeId>,
}

impl Announced {
    /// Reads the changes of a chunk that announces.
    ///
    /// # Errors
    /// XX001 when it does anything else.
    pub fn read(changes: &[RowChange]) -> Result<Announced> {
        let mut announced = Announced {
            made: made_by(changes)?,
            dropped: Vec::new(),
        };
        for change in changes {
            match &change.change {
                _ if change.tree != TreeId::DESCRIPTORS => {
                    let message = format!("a chunk announces trees and changes {}", change.tree);
                    return Err(Error::corrupted(message));
                }
                Change::Insert(_) => {}
                Change::Delete => announced
                    .dropped
                    .push(TreeId::of_descriptor_key(&change.key)?),
                Change::Update(_) => {
                    return Err(Error::corrupted("a chunk changes a descriptor"));
                }
            }
        }
        Ok(announced)
    }

    /// The indexes that it makes.
    pub fn indexes(&self) -> impl Iterator<Item = (TreeId, IndexDescriptor)> + '_ {
        self.made.iter().filter_map(|made| match &made.kind {
            TreeKind::Index(index) => Some((made.id, index.clone())),
            TreeKind::Table => None,
        })
    }
}
