//! The rows of casts ([`super::cast`]), as DDL writes them.

use base::engine::{Inserted, Transaction};
use base::key::Key;
use base::Result;

use super::cast::{encode, OwnCast};
use super::cluster::{self, Address};
use super::layout::CASTS;
use super::store;

fn key(database: u32, cast: &OwnCast) -> Key {
    store::oid_key(&[database, cast.source.0, cast.target.0])
}

/// Inserts a cast; false when there is one between these types.
///
/// # Errors
/// As writes.
pub fn insert(txn: &mut dyn Transaction, database: u32, cast: &OwnCast) -> Result<bool> {
    let inserted = txn.insert(CASTS, &key(database, cast), &encode(cast))?;
    Ok(inserted == Inserted::Done)
}

/// Removes a cast.
///
/// # Errors
/// As writes.
pub fn remove(txn: &mut dyn Transaction, database: u32, cast: &OwnCast) -> Result<()> {
    cluster::forget_object(txn, database, Address::CAST, cast.oid)?;
    store::remove(txn, CASTS, &key(database, cast))
}
