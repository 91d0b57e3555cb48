//! The rows of collations ([`super::collation`]), as DDL writes them.

use base::engine::{Locking, RowLock, Transaction};
use base::{Error, Result, SqlState};

use super::cluster::{self, Address};
use super::collation::{encode, Collation};
use super::layout::COLLATIONS;
use super::store::{self, claim_name, free_name, oid_key, NameClass};

/// 42710.
pub fn exists(name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_OBJECT,
        format!("collation \"{name}\" already exists"),
    )
}

fn claim(txn: &mut dyn Transaction, database: u32, made: &Collation) -> Result<()> {
    let class = NameClass::Collation;
    match claim_name(txn, class, database, made.schema, &made.name, made.oid)? {
        true => Ok(()),
        false => Err(exists(&made.name)),
    }
}

/// Inserts a collation.
///
/// # Errors
/// 42710 when its name is taken.
pub fn insert(txn: &mut dyn Transaction, database: u32, made: &Collation) -> Result<()> {
    claim(txn, database, made)?;
    cluster::put(txn, COLLATIONS, &[database, made.oid], &encode(made))
}

/// Replaces a collation, which is locked; its name and its schema may be new.
///
/// # Errors
/// 42710 when its new name is taken.
pub fn update(
    txn: &mut dyn Transaction,
    database: u32,
    old: &Collation,
    new: &Collation,
) -> Result<()> {
    if (old.schema, &old.name) != (new.schema, &new.name) {
        free_name(txn, NameClass::Collation, database, old.schema, &old.name)?;
        claim(txn, database, new)?;
    }
    cluster::put(txn, COLLATIONS, &[database, new.oid], &encode(new))
}

/// Removes a collation.
pub fn remove(txn: &mut dyn Transaction, database: u32, gone: &Collation) -> Result<()> {
    store::remove(txn, COLLATIONS, &oid_key(&[database, gone.oid]))?;
    free_name(txn, NameClass::Collation, database, gone.schema, &gone.name)?;
    cluster::forget_object(txn, database, Address::COLLATION, gone.oid)
}

/// Locks a collation of one's own until the end of the transaction: [`RowLock::Update`] to change or to
/// drop it, [`RowLock::KeyShare`] to have it stay.
///
/// # Errors
/// As PostgreSQL, where somebody has removed it meanwhile.
pub fn hold(txn: &mut dyn Locking, database: u32, oid: u32, strength: RowLock) -> Result<()> {
    store::hold(txn, COLLATIONS, &oid_key(&[database, oid]), strength)
}
