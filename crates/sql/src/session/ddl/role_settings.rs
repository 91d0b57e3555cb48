//! The settings with which sessions of a role, or in a database, begin: ALTER ROLE … SET and ALTER
//! DATABASE … SET. Which settings may be stored, and by whom, is the settings' own affair
//! ([`Settings::storable`](execution::settings::Settings::storable)).

use base::{Error, Result};
use pg_query::protobuf::{AlterRoleSetStmt, VariableSetStmt};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::database::{must_own, named};
use super::role::{check_not_predefined, denied};
use catalog::cluster::{self, RoleSettings};
use catalog::Catalog;

impl Session {
    /// ALTER ROLE … SET.
    pub(in crate::session) fn alter_role_set(
        &mut self,
        alter: &AlterRoleSetStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let role = match &alter.role {
            Some(spec) => {
                let role = self.role_of(&catalog, spec)?;
                check_not_predefined(&role)?;
                if role.superuser && !own.superuser {
                    return Err(denied("must be superuser to alter superusers"));
                }
                if !own.superuser && !own.create_role && role.oid != own.oid {
                    return Err(denied("permission denied"));
                }
                role.oid
            }
            None => 0,
        };
        let database = match alter.database.as_str() {
            "" => 0,
            name => {
                let database = named(&catalog, name)?;
                if role == 0 {
                    must_own(&catalog, &own, database)?;
                }
                database.oid
            }
        };
        if (role, database) == (0, 0) && !own.superuser {
            return Err(denied("must be superuser to alter settings globally"));
        }
        let set = alter.setstmt.as_ref();
        let set = set.ok_or_else(|| Error::internal("ALTER ROLE SET of nothing"))?;
        self.change_settings(&catalog, database, role, set, sink)?;
        Ok(tag("ALTER ROLE"))
    }

    /// Changes the settings of a role in a database as SET and RESET say.
    pub(super) fn change_settings(
        &mut self,
        catalog: &Catalog,
        database: u32,
        role: u32,
        set: &VariableSetStmt,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let same = |known: &&RoleSettings| (known.database, known.role) == (database, role);
        let mut stored = match catalog.settings.iter().find(same) {
            Some(known) => known.clone(),
            None => RoleSettings {
                database,
                role,
                values: Vec::new(),
            },
        };
        let given = self.setting_given(set)?;
        let settings = &self.shared.settings;
        match given {
            // What this session may not store stays.
            None => stored
                .values
                .retain(|(name, _)| settings.check_storable(catalog, name).is_err()),
            Some((name, Some(value))) => {
                let storable = settings.storable(catalog, &name, &value)?;
                let name = storable.name;
                match stored.values.iter_mut().find(|known| known.0 == name) {
                    Some(known) => known.1 = value,
                    None => stored.values.push((name, value)),
                }
                if let Some(notice) = storable.notice {
                    self.notice(NoticeSeverity::Notice, notice, sink)?;
                }
            }
            Some((_, None)) if stored.values.is_empty() => {}
            Some((name, None)) => {
                settings.check_storable(catalog, &name)?;
                let is_other = |known: &str| !known.eq_ignore_ascii_case(&name);
                stored.values.retain(|(known, _)| is_other(known));
            }
        }
        match &mut self.open {
            Some(open) => cluster::put_settings(open.txn.as_mut(), &stored),
            None => Err(Error::internal("nothing is open")),
        }
    }
}
