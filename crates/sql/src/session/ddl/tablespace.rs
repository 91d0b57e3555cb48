//! TABLESPACE of what is made: there is one for tables and indexes, `pg_default`, which is each
//! database's own.

use base::{Error, Result, SqlState};
use catalog::access::{denied, Guarded, Privileges};
use catalog::system::tablespace_named;
use catalog::Catalog;

use crate::session::Session;

/// Where tables and indexes are.
const DEFAULT: &str = "pg_default";

impl Session {
    /// Checks the tablespace that a statement names for a relation; none is `""`.
    ///
    /// # Errors
    /// 42704 for one that there is not, 42501 for one that the role may not use, 22023 for that of
    /// what all databases share; 0A000 where a partitioned relation names the default.
    pub(super) fn check_tablespace(
        &self,
        catalog: &Catalog,
        name: &str,
        partitioned: bool,
    ) -> Result<()> {
        if name.is_empty() || (name == DEFAULT && !partitioned) {
            return Ok(());
        }
        if name == DEFAULT {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot specify default tablespace for partitioned relations",
            ));
        }
        let oid = tablespace_named(name).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("tablespace \"{name}\" does not exist"),
            )
        })?;
        let role = self.shared.settings.current_role();
        if !catalog.holds(role, Guarded::Tablespace, oid, Privileges::CREATE) {
            return Err(denied("tablespace", name));
        }
        Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("only shared relations can be placed in {name} tablespace"),
        ))
    }
}
