//! The rows of extensions ([`super::extension`]), as DDL writes them.

use base::engine::{Inserted, Reading, Transaction};
use base::Result;

use super::cluster::{self, Address};
use super::extension::{decode, encode, Extension};
use super::layout::EXTENSIONS;
use super::store;

/// Whether a database has an extension of that name.
///
/// # Errors
/// As reads.
pub fn is_anywhere(txn: &mut dyn Reading, name: &str) -> Result<bool> {
    let mut found = false;
    store::scan(txn, EXTENSIONS, &[], 2, |_, row| {
        found |= decode(row)?.name == name;
        Ok(())
    })?;
    Ok(found)
}

/// Inserts an extension; false when there is one of that name.
///
/// # Errors
/// As writes.
pub fn insert(txn: &mut dyn Transaction, database: u32, extension: &Extension) -> Result<bool> {
    let class = store::NameClass::Extension;
    if !store::claim_name(txn, class, database, 0, &extension.name, extension.oid)? {
        return Ok(false);
    }
    let key = store::oid_key(&[database, extension.oid]);
    let inserted = txn.insert(EXTENSIONS, &key, &encode(extension))?;
    Ok(inserted == Inserted::Done)
}

/// Replaces an extension of the same name.
///
/// # Errors
/// As writes.
pub fn update(txn: &mut dyn Transaction, database: u32, extension: &Extension) -> Result<()> {
    let row = encode(extension);
    cluster::put(txn, EXTENSIONS, &[database, extension.oid], &row)
}

/// Removes an extension, whose members are the caller's affair.
///
/// # Errors
/// As writes.
pub fn remove(txn: &mut dyn Transaction, database: u32, extension: &Extension) -> Result<()> {
    let class = store::NameClass::Extension;
    store::free_name(txn, class, database, 0, &extension.name)?;
    cluster::forget_object(txn, database, Address::EXTENSION, extension.oid)?;
    store::remove(txn, EXTENSIONS, &store::oid_key(&[database, extension.oid]))
}
