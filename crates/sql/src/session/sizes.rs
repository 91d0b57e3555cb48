//! What is known of the data, for the planner: what ANALYZE has found, and how many rows the trees of
//! tables have on this node now.
//!
//! ```text
//! planned when t had 40 rows, run when it has 100,000: planned anew
//! ```
//!
//! A plan that was made with other numbers is as right as any, only slower: it is kept as long as they
//! are alike. Plans that read one table do not rest on numbers.

use std::cell::RefCell;
use std::sync::Arc;

use base::engine::StorageMonitor;
use base::TreeId;
use catalog::statistics::ColumnStatistics;
use catalog::{Catalog, Table};
use planner::paths::Statistics;

/// A table that has so many times the rows that it had, or fewer by that, is another one.
const ALIKE: u64 = 8;

/// Beyond so many times the rows that ANALYZE has counted, or fewer by that, they are counted anew.
const COUNTED: f64 = 2.0;

/// So many rows more or fewer are never a matter.
const ALIKE_ROWS: u64 = 1_000;

/// The numbers of rows, and which were asked for.
pub(super) struct Sizes<'a> {
    catalog: &'a Catalog,
    storage: &'a dyn StorageMonitor,
    /// By the trees of tables.
    pub(super) asked: RefCell<Vec<(TreeId, u64)>>,
}

impl<'a> Sizes<'a> {
    /// Those of a node.
    pub(super) fn of(catalog: &'a Catalog, storage: &'a dyn StorageMonitor) -> Sizes<'a> {
        Sizes {
            catalog,
            storage,
            asked: RefCell::default(),
        }
    }
}

impl Sizes<'_> {
    /// How many rows a table has whose tree has so many on this node now.
    fn counted(&self, table: &Table, now: u64) -> f64 {
        let now = now as f64;
        let found = self.catalog.table_statistics(table.oid);
        // What ANALYZE has counted is the same on all nodes, so it stands as long as it is not wrong.
        let stands = |then: &f64| *then <= now * COUNTED && now <= *then * COUNTED;
        found.map(|found| found.rows).filter(stands).unwrap_or(now)
    }
}

impl Statistics for Sizes<'_> {
    fn rows(&self, table: &Table) -> Option<f64> {
        let rows = self.storage.tree_size(table.tree)?.rows;
        let mut asked = self.asked.borrow_mut();
        if !asked.iter().any(|known| known.0 == table.tree) {
            asked.push((table.tree, rows));
        }
        Some(self.counted(table, rows))
    }

    fn glance(&self, table: &Table) -> Option<f64> {
        let rows = self.storage.tree_size(table.tree)?.rows;
        Some(self.counted(table, rows))
    }

    fn column(&self, table: &Table, column: usize) -> Option<Arc<ColumnStatistics>> {
        self.catalog.column_statistics(table, column).cloned()
    }
}

/// Whether tables have about as many rows as they had.
pub(super) fn are_alike(sizes: &[(TreeId, u64)], storage: &dyn StorageMonitor) -> bool {
    sizes.iter().all(|(tree, then)| {
        let now = storage.tree_size(*tree).map_or(0, |size| size.rows);
        let (few, many) = if now < *then {
            (now, *then)
        } else {
            (*then, now)
        };
        many <= few * ALIKE + ALIKE_ROWS
    })
}

#[cfg(test)]
mod tests {
    use base::engine::{StorageStatus, TreeSize};

    use super::*;

    struct Rows(u64);

    impl StorageMonitor for Rows {
        fn tree_size(&self, _: TreeId) -> Option<TreeSize> {
            Some(TreeSize {
                bytes: 0,
                rows: self.0,
            })
        }

        fn storage(&self) -> Vec<StorageStatus> {
            Vec::new()
        }
    }

    #[test]
    fn few_rows_more_change_nothing() {
        let alike = |then, now| are_alike(&[(TreeId(1), then)], &Rows(now));
        assert!(alike(0, 1_000) && alike(1_000, 0) && alike(100_000, 800_000));
        assert!(!alike(0, 1_001) && !alike(40, 100_000) && !alike(100_000, 1_000));
        assert!(are_alike(&[], &Rows(0)));
    }
}
