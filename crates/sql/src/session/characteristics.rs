//! What a transaction is like: isolation level, read only, deferrable, and until when each may be
//! changed (PostgreSQL 15 manual, SET TRANSACTION).

use base::engine::{CatalogVersion, Isolation, TxnOptions};
use base::{Error, Result, SqlState};

use super::Session;
use execution::settings::isolation;

fn too_late(message: &str) -> Error {
    Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message)
}

impl Session {
    /// One of `transaction_isolation`, `transaction_read_only` and `transaction_deferrable` is to
    /// become `value`, of the transaction that is open. Other settings, and no transaction, are no
    /// concern of this.
    ///
    /// # Errors
    /// 25001 when it is too late for that.
    /// On a standby nobody may write.
    pub(super) fn check_read_write(&self, read_only: bool) -> Result<()> {
        match !read_only && self.shared.engine.cluster.is_standby() {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot set transaction read-write mode during recovery",
            )),
        }
    }

    /// Whether the open transaction may write nothing: it began so, or a statement, or `set_config`
    /// in one, has said so since.
    pub(super) fn is_read_only(&self) -> bool {
        let began_so = self.open.as_ref().is_some_and(|open| open.read_only);
        began_so || self.shared.settings.made_read_only()
    }

    pub(super) fn set_characteristic(&mut self, name: &str, value: &str) -> Result<()> {
        let is_on = matches!(
            value.to_ascii_lowercase().as_str(),
            "on" | "true" | "yes" | "t" | "y" | "1"
        );
        let Some(open) = &self.open else {
            return Ok(());
        };
        let (begun, nested) = (open.begun, !open.savepoints.is_empty());
        let before = TxnOptions {
            read_only: self.is_read_only(),
            ..self.characteristics
        };
        let mut wanted = before;
        match name {
            "transaction_isolation" => {
                wanted.isolation = isolation(&value.to_ascii_lowercase());
                if wanted.isolation == before.isolation {
                    return Ok(());
                }
                if begun {
                    return Err(too_late(
                        "SET TRANSACTION ISOLATION LEVEL must be called before any query",
                    ));
                }
                if nested {
                    return Err(too_late(
                        "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction",
                    ));
                }
            }
            "transaction_read_only" => {
                wanted.read_only = is_on;
                self.check_read_write(is_on)?;
                if before.read_only && !is_on && nested {
                    return Err(too_late(
                        "cannot set transaction read-write mode inside a read-only transaction",
                    ));
                }
                if before.read_only && !is_on && begun {
                    return Err(too_late(
                        "transaction read-write mode must be set before any query",
                    ));
                }
            }
            "transaction_deferrable" => {
                wanted.deferrable = is_on;
                if nested {
                    return Err(too_late(
                        "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction",
                    ));
                }
                if begun {
                    return Err(too_late(
                        "SET TRANSACTION [NOT] DEFERRABLE must be called before any query",
                    ));
                }
            }
            _ => return Ok(()),
        }
        self.characteristics = wanted;
        if let Some(open) = &mut self.open {
            open.read_only = wanted.read_only;
            if !begun {
                open.txn.set_options(wanted);
            }
        }
        Ok(())
    }

    /// SET TRANSACTION SNAPSHOT: the open transaction sees what another one exported.
    ///
    /// # Errors
    /// 25001 when it is too late for that; 0A000 at a level that takes a snapshot for each statement,
    /// and at SERIALIZABLE; 22023 when nobody exports anything by that name.
    pub(super) fn import_snapshot(&mut self, name: &str) -> Result<()> {
        let now = self.shared.engine.transactions.catalog_version();
        let invalid = || {
            let message = format!("invalid snapshot identifier: \"{name}\"");
            Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
        };
        self.ensure_open()?;
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| Error::internal("nothing is open"))?;
        if open.begun || !open.savepoints.is_empty() {
            return Err(too_late(
                "SET TRANSACTION SNAPSHOT must be called before any query",
            ));
        }
        match open.txn.isolation() {
            Isolation::ReadCommitted => {
                return Err(Error::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "a snapshot-importing transaction must have isolation level SERIALIZABLE or \
                     REPEATABLE READ",
                ))
            }
            Isolation::RepeatableRead => {}
            Isolation::Serializable => {
                let what = "SET TRANSACTION SNAPSHOT at isolation level SERIALIZABLE";
                return Err(Error::unsupported(what));
            }
        }
        let shown = open
            .txn
            .snapshots()?
            .import_snapshot(name)?
            .ok_or_else(invalid)?;
        open.begun = true;
        if shown < now.lsn {
            // The catalog may have changed since: it is none of those that there can be from now on.
            open.began_with = CatalogVersion::default();
        }
        Ok(())
    }
}
