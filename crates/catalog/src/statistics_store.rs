//! Writes of what ANALYZE finds, and of how much it is to find ([`super::statistics`]).

use std::sync::Arc;

use base::engine::Transaction;
use base::Result;

use super::cluster;
use super::statistics::{
    encode, number, ColumnStatistics, Known, Place, TableStatistics, FOUND, TARGET,
};
use crate::layout::STATISTICS;

/// Replaces what was found of a table.
pub fn put_table(
    txn: &mut dyn Transaction,
    database: u32,
    table: u32,
    found: TableStatistics,
) -> Result<()> {
    let known = Known::Table(Arc::new(found));
    put(txn, database, (table, 0, FOUND), &known)
}

/// Replaces what was found of a column, by its place.
pub fn put_column(
    txn: &mut dyn Transaction,
    database: u32,
    (table, column): (u32, usize),
    found: ColumnStatistics,
) -> Result<()> {
    let known = Known::Column(Arc::new(found));
    put(txn, database, (table, number(column), FOUND), &known)
}

/// Replaces what was said of how much there is to be found of a column; none: what is usual.
pub fn put_target(
    txn: &mut dyn Transaction,
    database: u32,
    (table, column): (u32, usize),
    target: Option<i32>,
) -> Result<()> {
    let place = (table, number(column), TARGET);
    match target {
        Some(target) => put(txn, database, place, &Known::Target(target)),
        None => cluster::erase(txn, STATISTICS, &key(database, place)),
    }
}

/// Forgets what was found of a column that is another now; what was said of it stays.
pub fn forget_found(
    txn: &mut dyn Transaction,
    database: u32,
    (table, column): (u32, usize),
) -> Result<()> {
    let place = (table, number(column), FOUND);
    cluster::erase(txn, STATISTICS, &key(database, place))
}

fn key(database: u32, (table, column, what): Place) -> [u32; 4] {
    [database, table, column, what]
}

fn put(txn: &mut dyn Transaction, database: u32, place: Place, known: &Known) -> Result<()> {
    cluster::put(txn, STATISTICS, &key(database, place), &encode(known)?)
}
