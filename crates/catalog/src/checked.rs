//! Constraints that an index helps to check, and does not enforce by itself: unique constraints and
//! primary keys that can be deferred.
//!
//! ```text
//! create table t (k int unique deferrable)
//!
//!   t_k_key:   1 │ row 7        begin;  update t set k = 1 where k = 2;   both are there meanwhile
//!              2 │ row 8                update t set k = 2 where …;       commit looks for 1 and 2
//! ```
//! Such an index has its rows' keys in its entries, like one that is not unique, and so has room for
//! equal ones. It is the statement that looks for them, at its end or at that of its transaction
//! (`execution::exec::checked`).
//!
//! # Invariants
//! - [`Index::unique`](super::Index::unique) and [`Index::primary`](super::Index::primary) do not hold
//!   of such an index: whoever plans, stores or finds rows by it counts with equal keys. Who shows or
//!   defines constraints asks [`Index::is_unique`] and [`Index::is_primary`].
//! - A table whose primary key can be deferred has its rows under numbers.
//! - It is on columns alone, also where NULLs are equal to it.
use base::codec::Reader;
use base::Result;

use super::{Index, Table};

/// A constraint that an index does not enforce by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Whether it is the primary key.
    pub primary: bool,
    /// Whether it is deferred until SET CONSTRAINTS says otherwise.
    pub initially_deferred: bool,
}

impl Index {
    /// Whether it is that of the primary key, deferrable or not.
    pub fn is_primary(&self) -> bool {
        self.primary || self.checked.is_some_and(|checked| checked.primary)
    }

    /// Whether no committed rows are equal in it, whenever that is checked.
    pub fn is_unique(&self) -> bool {
        self.unique || self.checked.is_some()
    }

    /// Whether its constraint is deferred until SET CONSTRAINTS says otherwise.
    pub fn is_initially_deferred(&self) -> bool {
        let exclusion = self.exclusion.as_ref();
        self.checked
            .is_some_and(|checked| checked.initially_deferred)
            || exclusion.is_some_and(|exclusion| exclusion.initially_deferred)
    }
}

impl Table {
    /// The index of the primary key, deferrable or not. By [`Table::primary_key`] rows are found.
    pub fn primary_index(&self) -> Option<&Index> {
        self.indexes.iter().find(|index| index.is_primary())
    }
}

/// Appends the stored form: 1 for the primary key, 2 for what is deferred at first.
pub fn encode(checked: &Checked, out: &mut Vec<u8>) {
    out.push(u8::from(checked.primary) | u8::from(checked.initially_deferred) << 1);
}

/// Reads what [`encode`] made.
///
/// # Errors
/// XX001 when nothing is left.
pub fn decode(reader: &mut Reader<'_>) -> Result<Checked> {
    let flags = reader.u8()?;
    Ok(Checked {
        primary: flags & 1 != 0,
        initially_deferred: flags & 2 != 0,
    })
}
