//! The settings of the whole cluster, as rows: what ALTER SYSTEM has written, and what is loaded.
//!
//! ```text
//! alter system set synchronous_standby_names = 'ANY 1 (n2, n3)';   written
//! select pg_reload_conf();                                         loaded, and in force
//! ```
//! Each change is a transaction of its own, as in PostgreSQL, where these are files. It waits until a
//! majority has it, and for no standby that is named: else nobody could name others while one is
//! away.

use base::coro;
use base::engine::{
    configuration_key, configuration_row, read_configuration, Direction, Engine, LockWait,
    RowBatch, RowLock, Stage, Transaction, TxnOptions,
};
use base::limits::SCAN_BATCH_ROWS;
use base::{Durability, Error, ErrorClass, KeyRange, Result, SqlState, TreeId};

/// Makes what is loaded the same as what is written; returns once it is in force.
///
/// # Errors
/// As a commit; 08007 when the wait is given up.
pub fn reload(engine: &Engine) -> Result<()> {
    change(engine, |txn| {
        let written = stored(txn, Stage::Written)?;
        let loaded = stored(txn, Stage::Loaded)?;
        for (name, value) in &written {
            if !loaded
                .iter()
                .any(|(known, old)| known == name && old == value)
            {
                put(txn, Stage::Loaded, name, Some(value))?;
            }
        }
        let is_gone = |name: &String| written.iter().all(|(known, _)| known != name);
        for (name, _) in loaded.iter().filter(|(name, _)| is_gone(name)) {
            put(txn, Stage::Loaded, name, None)?;
        }
        Ok(())
    })
}

/// Changes settings, and returns once that is in force.
///
/// # Errors
/// As a commit; 08007 when the wait is given up.
pub fn change(
    engine: &Engine,
    write: impl FnOnce(&mut dyn Transaction) -> Result<()>,
) -> Result<()> {
    let mut txn = engine.transactions.begin(TxnOptions::default())?;
    txn.begin_statement()?;
    write(txn.as_mut())?;
    let debt = txn.commit(Durability::On)?;
    // It is in the log, so that no wait that ends early may say that it is not.
    match coro::wait(engine.settings.configured(debt)) {
        Ok(settled) => settled,
        Err(_) => Err(Error::of_class(
            ErrorClass::Session,
            SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
            "the outcome of the change of settings is unknown",
        )),
    }
}

/// The settings of a stage.
///
/// # Errors
/// What the engine raises.
pub fn stored(txn: &mut dyn Transaction, stage: Stage) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut rest = Some(KeyRange::all());
    let mut batch = RowBatch::default();
    while let Some(range) = rest {
        rest = txn.scan(
            TreeId::CONFIGURATION,
            &range,
            Direction::Forward,
            SCAN_BATCH_ROWS,
            &mut batch,
        )?;
        for (key, row) in batch.iter() {
            found.extend(read_configuration(stage, key, row)?);
        }
    }
    Ok(found)
}

/// Writes a setting in a stage, or takes it out.
///
/// # Errors
/// What the engine raises.
pub fn put(txn: &mut dyn Transaction, stage: Stage, name: &str, value: Option<&str>) -> Result<()> {
    let tree = TreeId::CONFIGURATION;
    let key = configuration_key(stage, name);
    let mut old = Vec::new();
    let is_there = txn.get(tree, &key, &mut old)?;
    if is_there {
        txn.lock_row(tree, &key, RowLock::Update, LockWait::Block, &mut old)?;
    }
    match value {
        Some(value) if is_there => txn.update(tree, &key, &configuration_row(value)).map(drop),
        Some(value) => txn.insert(tree, &key, &configuration_row(value)).map(drop),
        None if is_there => txn.delete(tree, &key),
        None => Ok(()),
    }
}
