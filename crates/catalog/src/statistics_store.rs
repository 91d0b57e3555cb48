//! Writes of what ANALYZE finds, and of how much it is to find ([`super::statistics`]).

use std::sync::Arc;

use base::engine::Transaction;
use base::{Error, Result, SqlState};

use super::cluster::{self, Address};
use super::depend;
use super::extended::{Extended, Gathered, GATHERED, OBJECT};
use super::statistics::{
    encode, number, ColumnStatistics, Known, Place, TableStatistics, FOUND, TARGET,
};
use super::store::{self, claim_name, free_name, NameClass};
use crate::layout::STATISTICS;
use crate::local::is_local;

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

/// 42710 for the name of extended statistics.
pub fn extended_exists(name: &str) -> Error {
    let message = format!("statistics object \"{name}\" already exists");
    Error::new(SqlState::DUPLICATE_OBJECT, message)
}

fn claim(txn: &mut dyn Transaction, database: u32, made: &Extended) -> Result<()> {
    let class = NameClass::Statistics;
    match claim_name(txn, class, database, made.schema, &made.name, made.oid)? {
        true => Ok(()),
        false => Err(extended_exists(&made.name)),
    }
}

fn put_extended(txn: &mut dyn Transaction, database: u32, made: &Extended) -> Result<()> {
    if !is_local(made.oid) && depend::extended_need_local(made) {
        return Err(store::needs_temporary());
    }
    let known = Known::Extended(Arc::new(made.clone()));
    put(txn, database, (made.table, made.oid, OBJECT), &known)
}

/// Inserts extended statistics.
///
/// # Errors
/// 42710 when their name is taken.
pub fn insert_extended(txn: &mut dyn Transaction, database: u32, made: &Extended) -> Result<()> {
    claim(txn, database, made)?;
    put_extended(txn, database, made)
}

/// Replaces extended statistics, whose table is locked; their name and their schema may be new.
///
/// # Errors
/// 42710 when their new name is taken.
pub fn update_extended(
    txn: &mut dyn Transaction,
    database: u32,
    old: &Extended,
    new: &Extended,
) -> Result<()> {
    if (old.schema, &old.name) != (new.schema, &new.name) {
        let class = NameClass::Statistics;
        free_name(txn, class, database, old.schema, &old.name)?;
        claim(txn, database, new)?;
    }
    put_extended(txn, database, new)
}

/// Removes extended statistics, with what was found.
pub fn remove_extended(txn: &mut dyn Transaction, database: u32, gone: &Extended) -> Result<()> {
    for what in [OBJECT, GATHERED] {
        cluster::erase(
            txn,
            STATISTICS,
            &key(database, (gone.table, gone.oid, what)),
        )?;
    }
    free_extended(txn, database, gone)
}

/// Gives free what extended statistics have besides their rows, which go with their table.
pub fn free_extended(txn: &mut dyn Transaction, database: u32, gone: &Extended) -> Result<()> {
    let class = NameClass::Statistics;
    free_name(txn, class, database, gone.schema, &gone.name)?;
    cluster::forget_object(txn, database, Address::STATISTIC_EXT, gone.oid)
}

/// Replaces what was found of several columns together.
pub fn put_gathered(
    txn: &mut dyn Transaction,
    database: u32,
    of: &Extended,
    found: Gathered,
) -> Result<()> {
    let known = Known::Gathered(Arc::new(found));
    put(txn, database, (of.table, of.oid, GATHERED), &known)
}

/// Forgets what was found of columns that are others now.
pub fn forget_gathered(txn: &mut dyn Transaction, database: u32, of: &Extended) -> Result<()> {
    cluster::erase(
        txn,
        STATISTICS,
        &key(database, (of.table, of.oid, GATHERED)),
    )
}

fn key(database: u32, (table, column, what): Place) -> [u32; 4] {
    [database, table, column, what]
}

fn put(txn: &mut dyn Transaction, database: u32, place: Place, known: &Known) -> Result<()> {
    cluster::put(txn, STATISTICS, &key(database, place), &encode(known)?)
}
