//! The rows of types of one's own ([`super::user_type`]): DDL writes them, and whoever uses a type
//! for something that lasts holds them.

use base::engine::{Inserted, Locking, Reading, RowLock, Transaction};
use base::{Error, Result};

use super::access::Guarded;
use super::cluster::{self, Address};
use super::store::{self, claim_name, free_name, oid_key, NameClass};
use super::user_type::{decode, encode, exists, UserType};
use super::{depend, Catalog};
use crate::layout::USER_TYPES;
use types::TypeId;

fn claim(txn: &mut dyn Transaction, database: u32, made: &UserType) -> Result<()> {
    let class = NameClass::Type;
    match claim_name(txn, class, database, made.schema, &made.name, made.id.0)? {
        true => Ok(()),
        false => Err(exists(&made.name)),
    }
}

/// Inserts a type, with the privileges that ALTER DEFAULT PRIVILEGES has said for such.
///
/// # Errors
/// 42710 when its name is taken.
pub fn insert(txn: &mut dyn Transaction, catalog: &Catalog, made: &UserType) -> Result<()> {
    check_shared(made)?;
    let database = catalog.database.oid;
    claim(txn, database, made)?;
    let key = oid_key(&[database, made.id.0]);
    if let Inserted::Duplicate(_) = txn.insert(USER_TYPES, &key, &encode(made))? {
        return Err(Error::internal(format!(
            "type {} is there already",
            made.id.0
        )));
    }
    match catalog.acl_of_new(Guarded::Type, made.owner, made.schema) {
        Some(acl) => {
            let address = Address::of(Address::TYPE, made.id.0);
            cluster::put_acl(txn, database, address, Some(&acl))
        }
        None => Ok(()),
    }
}

/// 0A000 for a type that would need what one session has to itself.
fn check_shared(made: &UserType) -> Result<()> {
    let needs_local = |domain| depend::domain_needs_local(made.id, domain);
    match made.domain().is_some_and(needs_local) {
        true => Err(store::needs_temporary()),
        false => Ok(()),
    }
}

/// Replaces a type, which is locked; its name and its schema may be new.
///
/// # Errors
/// 42710 when its new name is taken.
pub fn update(
    txn: &mut dyn Transaction,
    database: u32,
    old: &UserType,
    new: &UserType,
) -> Result<()> {
    check_shared(new)?;
    if (old.schema, &old.name) != (new.schema, &new.name) {
        free_name(txn, NameClass::Type, database, old.schema, &old.name)?;
        claim(txn, database, new)?;
    }
    let row = encode(new);
    cluster::put(txn, USER_TYPES, &[database, new.id.0], &row)
}

/// Removes a type.
pub fn remove(txn: &mut dyn Transaction, database: u32, gone: &UserType) -> Result<()> {
    store::remove(txn, USER_TYPES, &oid_key(&[database, gone.id.0]))?;
    free_name(txn, NameClass::Type, database, gone.schema, &gone.name)?;
    cluster::forget_object(txn, database, Address::TYPE, gone.id.0)
}

/// Locks a type until the end of the transaction: [`RowLock::Update`] to change or to drop it,
/// [`RowLock::KeyShare`] to have it stay.
///
/// # Errors
/// As PostgreSQL, where somebody has removed it meanwhile.
pub fn hold(txn: &mut dyn Locking, database: u32, id: TypeId, strength: RowLock) -> Result<()> {
    store::hold(txn, USER_TYPES, &oid_key(&[database, id.0]), strength)
}

/// The newest that is known of a type, with what this transaction has changed.
pub fn newest(txn: &mut dyn Reading, database: u32, id: TypeId) -> Result<Option<UserType>> {
    let row = store::newest(txn, USER_TYPES, &oid_key(&[database, id.0]))?;
    row.map(|row| decode(&row)).transpose()
}
