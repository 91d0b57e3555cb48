//! Two-phase commit: PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.
//!
//! ```text
//! begin; update account …; prepare transaction 'order 7';   the session has no transaction any more
//! commit prepared 'order 7';                                in any session, on any leader, later
//! ```
//! A transaction is prepared as it is committed: deferred constraints are checked before, and if
//! anything is wrong, it is rolled back. What must end with the session cannot be part of it:
//! temporary objects, cursors WITH HOLD, exported snapshots.
//!
//! Source: PostgreSQL 15 manual, PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.

use base::engine::{Preparation, PreparedTransaction, TxnOptions};
use base::{Error, Result, SessionId, SqlState};

use super::transaction::State;
use super::utility::tag;
use super::{CommandTag, Session, Sink};

/// Bytes of a name; longer ones are 22023.
const NAME_BYTES_MAX: usize = 199;

impl Session {
    /// PREPARE TRANSACTION. After an error nothing is open.
    pub(super) fn prepare_transaction(
        &mut self,
        name: &str,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        match self.state {
            State::Block => {}
            State::Failed => {
                self.roll_back();
                return Ok(tag("ROLLBACK"));
            }
            State::None | State::Implicit => {
                self.no_transaction(sink)?;
                self.roll_back();
                return Ok(tag("ROLLBACK"));
            }
        }
        self.ensure_open()?;
        self.complete(sink)?;
        let database = self.current_catalog()?.database.oid;
        if let Err(error) = self.check_may_prepare(name) {
            self.roll_back();
            return Err(error);
        }
        self.end_cursors();
        let Some(open) = self.open.take() else {
            return Err(Error::internal("nothing is open"));
        };
        self.state = State::None;
        let durability = self.shared.settings.parsed().durability;
        self.owed.add(open.txn.debt(), durability);
        let preparation = Preparation {
            name: name.to_owned(),
            owner: self.shared.settings.current_role(),
            database,
        };
        let done = self.log_end(open.txn, |txn| txn.prepare(preparation, durability));
        if open.catalog_changed {
            self.refresh_names();
        }
        sink.committed(&done?);
        self.shared.settings.end_transaction();
        Ok(tag("PREPARE TRANSACTION"))
    }

    fn check_may_prepare(&self, name: &str) -> Result<()> {
        if name.len() > NAME_BYTES_MAX {
            let message = format!("transaction identifier \"{name}\" is too long");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        if self.has_new_holdable_cursor() {
            let message = "cannot PREPARE a transaction that has created a cursor WITH HOLD";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if !self.shared.notify.is_unused() {
            let message =
                "cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let (_, most) = self.shared.settings.show("max_prepared_transactions")?;
        let most: usize = most.parse().unwrap_or(0);
        let (there, _) = self.shared.engine.prepared()?.prepared()?;
        if there.len() >= most {
            let message = "maximum number of prepared transactions reached";
            let hint = format!("Increase max_prepared_transactions (currently {most}).");
            return Err(Error::new(SqlState::OUT_OF_MEMORY, message).with_hint(hint));
        }
        Ok(())
    }

    /// COMMIT PREPARED, or ROLLBACK PREPARED.
    pub(super) fn resolve_prepared(
        &mut self,
        name: &str,
        commit: bool,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let settings = &self.shared.settings;
        let (role, database) = (settings.current_role(), catalog.database.oid);
        let may_resolve = |prepared: &PreparedTransaction| {
            let preparation = &prepared.preparation;
            if preparation.owner != role && !catalog.is_superuser(role) {
                let message = "permission denied to finish prepared transaction";
                let hint = "Must be superuser or the user that prepared the transaction.";
                let state = SqlState::INSUFFICIENT_PRIVILEGE;
                return Err(Error::new(state, message).with_hint(hint));
            }
            if preparation.database != database {
                let message = "prepared transaction belongs to another database";
                let hint = "Connect to the database where the transaction was prepared to finish \
                            it.";
                let state = SqlState::FEATURE_NOT_SUPPORTED;
                return Err(Error::new(state, message).with_hint(hint));
            }
            Ok(())
        };
        let session = u32::try_from(self.shared.start.backend_pid).ok();
        let options = TxnOptions {
            session: session.map(SessionId),
            flight: self.shared.flight,
            ..TxnOptions::default()
        };
        let durability = settings.parsed().durability;
        let engine = self.shared.engine.prepared()?;
        self.committing = true;
        let debt = engine.resolve(name, commit, options, durability, &may_resolve);
        self.committing = false;
        let debt = debt?;
        sink.committed(&debt);
        self.owed.add(&debt, durability);
        Ok(tag(match commit {
            true => "COMMIT PREPARED",
            false => "ROLLBACK PREPARED",
        }))
    }
}
