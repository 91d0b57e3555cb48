//! ALTER SYSTEM: the settings of the whole cluster.
//!
//! It is a transaction of its own, as in PostgreSQL, where they write files. They wait until a
//! majority has them, and for no standby that is named: else nobody could name others while one is
//! away. What they answer shows nothing of the database, so the reply owes nothing either.
//!
//! ```text
//! alter system set synchronous_standby_names = 'ANY 1 (n2, n3)';   written
//! select pg_reload_conf();                                         loaded, and in force
//! ```

use base::engine::Stage;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterSystemStmt, VariableSetKind};

use crate::session::utility::tag;
use crate::session::{CommandTag, Session};
use catalog::access::Privileges;
use catalog::{audit, configuration};
use execution::settings::configured;

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
                    self.shared.engine.settings.check(name, value)?;
                }
                Some((name, value))
            }
        };
        let engine = self.shared.engine.clone();
        let entry = self.audited("ALTER SYSTEM", text)?;
        let kept = self.shared.settings.parsed().audit_entries;
        configuration::change(&engine, |txn| {
            match &change {
                Some((name, value)) => {
                    configuration::put(txn, Stage::Written, name, value.as_deref())?
                }
                None => {
                    for (name, _) in configuration::stored(txn, Stage::Written)? {
                        configuration::put(txn, Stage::Written, &name, None)?;
                    }
                }
            }
            audit::write(txn, &*engine.sequences, entry, kept)
        })?;
        Ok(tag("ALTER SYSTEM"))
    }
}
