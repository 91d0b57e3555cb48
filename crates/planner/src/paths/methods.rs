//! By which ways rows are found and joined.
//!
//! ```text
//! set enable_hashjoin = off       a hash join costs 10,000,000,000 more, so any other is taken
//! ```
//! As in PostgreSQL (manual of 15, section 20.7.1) a way that is switched off is taken nevertheless where
//! there is no other.

/// What a way costs more that is switched off.
const DISABLED: f64 = 1.0e10;

/// The ways that are not switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods {
    /// Joins by hash: `enable_hashjoin`.
    pub hash_join: bool,
    /// Joins that look rows up, or try all pairs: `enable_nestloop`.
    pub nested_loop: bool,
    /// Ways by an index, the primary key's included: `enable_indexscan`.
    pub index_scan: bool,
    /// Reading a whole table: `enable_seqscan`.
    pub seq_scan: bool,
    /// Sorting where an index has the order: `enable_sort`.
    pub sort: bool,
}

impl Default for Methods {
    fn default() -> Methods {
        Methods {
            hash_join: true,
            nested_loop: true,
            index_scan: true,
            seq_scan: true,
            sort: true,
        }
    }
}

impl Methods {
    /// What a way costs more.
    pub(super) fn penalty(is_on: bool) -> f64 {
        match is_on {
            true => 0.0,
            false => DISABLED,
        }
    }

    /// Whether a table is looked into by its indexes: also where both ways are switched off.
    pub(crate) fn by_index(&self) -> bool {
        self.index_scan || !self.seq_scan
    }

    /// Whether a join that a hash could serve goes without.
    pub(super) fn avoids_hash(&self) -> bool {
        !self.hash_join && self.nested_loop
    }

    /// Whether a join that a hash serves looks nothing up.
    pub(super) fn avoids_lookups(&self) -> bool {
        !self.nested_loop && self.hash_join
    }
}
