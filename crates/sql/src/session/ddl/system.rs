//! ALTER SYSTEM, and what `pg_reload_conf()` does: the settings of the whole cluster.
//!
//! Both are transactions of their own, as in PostgreSQL, where they write files. They wait until a
//! majority has them, and for no standby that is named: else nobody could name others while one is
//! away. What they answer shows nothing of the database, so the reply owes nothing either.
//!
//! ```text
//! alter system set synchronous_standby_names = 'ANY 1 (n2, n3)';   written
//! select pg_reload_conf();                                         loaded, and in force
//! ```

use std::sync::Arc;

use base::coro;
use base::engine::{
    configuration_key, configuration_row, read_configuration, Direction, Engine, LockWait,
    RowBatch, RowLock, Stage, Transaction, TxnOptions,
};
use base::limits::SCAN_BATCH_ROWS;
use base::{Durability, Error, ErrorClass, KeyRange, Result, SqlState, TreeId};
use pg_query::protobuf::{AlterSystemStmt, VariableSetKind};

use crate::catalog::access::Privileges;
use crate::catalog::audit;
use crate::session::settings::configured;
use crate::session::utility::tag;
use crate::session::{CommandTag, Session};

impl Session {
    /// ALTER SYSTEM SET and RESET.
    pub(in crate::session) fn alter_system(
        &mut self,
        text: &str,
        alter: &AlterSystemStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let set = alter.setstmt.as_ref();
        let set = set.ok_or_else(|| Error::internal("ALTER SYSTEM of nothing"))?;
        let all = VariableSetKind::try_from(set.kind) == Ok(VariableSetKind::VarResetAll);
        let denied = |message| Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        if all && !own.superuser {
            return denied("permission denied to perform ALTER SYSTEM RESET ALL".to_owned());
        }
        if !catalog.holds_parameter(own.oid, &set.name, Privileges::ALTER_SYSTEM) {
            let message = format!("permission denied to set parameter \"{}\"", set.name);
            return denied(message);
        }
        let given = self.value_given(set)?;
        let change = match given {
            None => None,
            Some((name, value)) => {
                let (name, value) = configured(&name, value.as_deref())?;
                if let Some(value) = &value {
                    self.shared.engine.check_configuration(name, value)?;
                }
                Some((name, value))
            }
        };
        let engine = self.shared.engine.clone();
        let entry = self.audited("ALTER SYSTEM", text)?;
        let kept = self.shared.settings.parsed().audit_entries;
        change_configuration(&engine, |txn| {
            match &change {
                Some((name, value)) => put(txn, Stage::Written, name, value.as_deref())?,
                None => {
                    for (name, _) in stored(txn, Stage::Written)? {
                        put(txn, Stage::Written, &name, None)?;
                    }
                }
            }
            audit::write(txn, &*engine, entry, kept)
        })?;
        Ok(tag("ALTER SYSTEM"))
    }
}

/// Makes what is loaded the same as what is written; returns once it is in force.
///
/// # Errors
/// As a commit; 08007 when the wait is given up.
pub fn reload(engine: &Arc<dyn Engine>) -> Result<()> {
    change_configuration(engine, |txn| {
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

fn change_configuration(
    engine: &Arc<dyn Engine>,
    change: impl FnOnce(&mut dyn Transaction) -> Result<()>,
) -> Result<()> {
    let mut txn = engine.begin(TxnOptions::default())?;
    txn.begin_statement()?;
    change(txn.as_mut())?;
    let debt = txn.commit(Durability::On)?;
    // It is in the log, so that no wait that ends early may say that it is not.
    match coro::wait(engine.configured(debt)) {
        Ok(settled) => settled,
        Err(_) => Err(Error::of_class(
            ErrorClass::Session,
            SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
            "the outcome of the change of settings is unknown",
        )),
    }
}

/// The settings of a stage.
fn stored(txn: &mut dyn Transaction, stage: Stage) -> Result<Vec<(String, String)>> {
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

fn put(txn: &mut dyn Transaction, stage: Stage, name: &str, value: Option<&str>) -> Result<()> {
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
