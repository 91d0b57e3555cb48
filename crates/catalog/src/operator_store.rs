//! The rows of operators ([`super::operator`]), as DDL writes them.

use base::engine::{Locking, RowLock, Transaction};
use base::{Error, Result, SqlState};

use super::cluster::{self, Address};
use super::layout::OPERATORS;
use super::operator::{decode, encode, OwnOperator};
use super::store::{self, claim_name, free_name, oid_key, NameClass};

/// 42723.
pub fn exists(name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_FUNCTION,
        format!("operator {name} already exists"),
    )
}

fn claim(txn: &mut dyn Transaction, database: u32, made: &OwnOperator) -> Result<()> {
    let name = made.unique_name();
    let class = NameClass::Operator;
    match claim_name(txn, class, database, made.schema, &name, made.oid)? {
        true => Ok(()),
        false => Err(exists(&made.name)),
    }
}

/// Inserts an operator.
///
/// # Errors
/// 42723 when there is one of its name between its types.
pub fn insert(txn: &mut dyn Transaction, database: u32, made: &OwnOperator) -> Result<()> {
    claim(txn, database, made)?;
    cluster::put(txn, OPERATORS, &[database, made.oid], &encode(made))
}

/// Replaces an operator, which is locked; its schema may be new.
///
/// # Errors
/// 42723 when there is one of its name between its types in the new schema.
pub fn update(
    txn: &mut dyn Transaction,
    database: u32,
    old: &OwnOperator,
    new: &OwnOperator,
) -> Result<()> {
    if old.schema != new.schema {
        let class = NameClass::Operator;
        free_name(txn, class, database, old.schema, &old.unique_name())?;
        claim(txn, database, new)?;
    }
    cluster::put(txn, OPERATORS, &[database, new.oid], &encode(new))
}

/// Links the commutator and the negator of an operator to it.
///
/// # Errors
/// 42P13 where they are those of another.
pub fn link(txn: &mut dyn Transaction, database: u32, made: &OwnOperator) -> Result<()> {
    if let Some(known) = newest(txn, database, made.commutator)? {
        refuse_other(
            txn,
            database,
            (&known, known.commutator),
            made,
            "commutator",
        )?;
    }
    change(txn, database, made.commutator, |other| {
        other.commutator = made.oid;
    })?;
    if let Some(known) = newest(txn, database, made.negator)? {
        refuse_other(txn, database, (&known, known.negator), made, "negator")?;
    }
    change(txn, database, made.negator, |other| {
        other.negator = made.oid;
    })
}

fn refuse_other(
    txn: &mut dyn Transaction,
    database: u32,
    (known, linked): (&OwnOperator, u32),
    made: &OwnOperator,
    what: &str,
) -> Result<()> {
    if linked == 0 || linked == made.oid {
        return Ok(());
    }
    let other = newest(txn, database, linked)?;
    let other = other.map_or_else(|| linked.to_string(), |other| other.name);
    Err(Error::new(
        SqlState::of("42P13"),
        format!(
            "{what} operator {} is already the {what} of operator {other}",
            known.name
        ),
    ))
}

/// Takes the links of others to an operator away.
fn unlink(txn: &mut dyn Transaction, database: u32, gone: &OwnOperator) -> Result<()> {
    change(txn, database, gone.commutator, |other| {
        if other.commutator == gone.oid {
            other.commutator = 0;
        }
    })?;
    change(txn, database, gone.negator, |other| {
        if other.negator == gone.oid {
            other.negator = 0;
        }
    })
}

/// Changes an operator of a user's, if it is there.
fn change(
    txn: &mut dyn Transaction,
    database: u32,
    oid: u32,
    change: impl FnOnce(&mut OwnOperator),
) -> Result<()> {
    let Some(old) = newest(txn, database, oid)? else {
        return Ok(());
    };
    let mut new = old.clone();
    change(&mut new);
    match new == old {
        true => Ok(()),
        false => cluster::put(txn, OPERATORS, &[database, oid], &encode(&new)),
    }
}

/// Removes an operator.
pub fn remove(txn: &mut dyn Transaction, database: u32, gone: &OwnOperator) -> Result<()> {
    unlink(txn, database, gone)?;
    store::remove(txn, OPERATORS, &oid_key(&[database, gone.oid]))?;
    let class = NameClass::Operator;
    free_name(txn, class, database, gone.schema, &gone.unique_name())?;
    cluster::forget_object(txn, database, Address::OPERATOR, gone.oid)
}

/// The newest that is known of an operator, with what this transaction has changed.
pub fn newest(txn: &mut dyn Transaction, database: u32, oid: u32) -> Result<Option<OwnOperator>> {
    let row = store::newest(txn, OPERATORS, &oid_key(&[database, oid]))?;
    row.map(|row| decode(oid, &row)).transpose()
}

/// Locks an operator until the end of the transaction: [`RowLock::Update`] to change or to drop it,
/// [`RowLock::KeyShare`] to have it stay.
///
/// # Errors
/// As PostgreSQL, where somebody has removed it meanwhile.
pub fn hold(txn: &mut dyn Locking, database: u32, oid: u32, strength: RowLock) -> Result<()> {
    store::hold(txn, OPERATORS, &oid_key(&[database, oid]), strength)
}
