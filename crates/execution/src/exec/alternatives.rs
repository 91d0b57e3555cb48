//! The rows of a table that several ways lead to: their keys first, each once and in order, then the rows.
//!
//! ```text
//! k = 1 OR n = 5      table: 1        index (n): 5·1, 5·40        keys 1, 40
//! ```
//! # Invariants
//! - The memory of the keys is counted.
//!
//! # What it leaves out
//! Rows that the primary key leads to are read twice.

use std::collections::BTreeSet;

use base::engine::{Direction, RowBatch};
use base::limits::SCAN_BATCH_ROWS;
use base::memory::Reservation;
use base::{Error, Key, Result};

use super::places::places_in;
use super::{rows, Exec};
use planner::plan::{Scan, Way};

/// The keys of a scan's rows, in their order.
///
/// # Errors
/// What looking for them raises; 53200.
pub(super) fn row_keys(scan: &Scan, cx: &mut Exec<'_>) -> Result<(Vec<Key>, Reservation)> {
    let (mut keys, mut held) = (BTreeSet::new(), Reservation::of("Rows of several indexes"));
    for way in &scan.alternatives {
        add(scan, way, &mut keys, &mut held, cx)?;
    }
    Ok((keys.into_iter().collect(), held))
}

/// Adds the keys that one way leads to.
fn add(
    scan: &Scan,
    way: &Way,
    keys: &mut BTreeSet<Key>,
    held: &mut Reservation,
    cx: &mut Exec<'_>,
) -> Result<()> {
    let table = &scan.table;
    let index = match way.index {
        Some(place) => table.indexes.get(place),
        None => table.primary_key(),
    };
    let index = index.ok_or_else(|| Error::internal("a way by an index that is not there"))?;
    let tree = if index.primary {
        table.tree
    } else {
        index.tree
    };
    let (first, others) = places_in(table, index, (&way.access, false), cx)?;
    let mut batch = RowBatch::default();
    for range in first.into_iter().chain(others) {
        cx.host.session().counting.scanned(index.oid);
        let mut rest = Some(range);
        while let Some(range) = rest {
            let (forward, most) = (Direction::Forward, SCAN_BATCH_ROWS);
            rest = cx
                .host
                .txn()
                .scan(tree, &range, forward, most, &mut batch)?;
            let counting = &mut cx.host.session().counting;
            counting.read(index.oid, batch.len(), true);
            for (key, entry) in batch.iter() {
                cx.tick()?;
                let key = match index.primary {
                    true => key,
                    false => rows::row_key_of_entry(table, index, (key, entry))?,
                };
                if !keys.contains(key) {
                    held.grow(key.len() + std::mem::size_of::<Key>())?;
                    keys.insert(key.to_vec());
                }
            }
        }
    }
    Ok(())
}
