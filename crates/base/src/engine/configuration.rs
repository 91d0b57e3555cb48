//! Settings of the whole cluster, as every node has them.
//!
//! They are rows of [`crate::TreeId::CONFIGURATION`], twice: as they were *written* last, and as they were
//! *loaded* last. `ALTER SYSTEM` changes what is written; `pg_reload_conf()` makes what is loaded
//! the same. Only what is loaded has an effect, from the moment on at which its record is committed,
//! on every node that has applied it:
//!
//! ```text
//! LSN 41   ALTER SYSTEM SET a = 1    written a = 1   loaded         nothing happens
//! LSN 42   pg_reload_conf()          written a = 1   loaded a = 1   in force once 42 is committed
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::durability::Debt;
use crate::env::BoxFuture;
use crate::ids::Lsn;
use crate::key::Key;
use crate::row::{Row, RowBuilder};
use crate::{Error, Result};

/// Which of the two a row of the configuration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// As ALTER SYSTEM wrote it.
    Written,
    /// As it was when the configuration was loaded.
    Loaded,
}

impl Stage {
    /// The byte with which keys of this stage begin.
    pub const fn prefix(self) -> u8 {
        match self {
            Stage::Written => 0,
            Stage::Loaded => 1,
        }
    }
}

/// What was loaded, as of one position of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The newest record that changed any row of the configuration.
    pub lsn: Lsn,
    /// Settings by name, in lower case.
    pub values: BTreeMap<String, String>,
}

/// Knows the settings that are in force on one node, and obeys some of them itself.
pub trait ClusterSettings: Send + Sync {
    /// Those in force.
    fn configuration(&self) -> Arc<Configuration>;

    /// Changes whenever others come in force.
    fn generation(&self) -> u64;

    /// Whether a value may be given to a setting that the engine itself obeys.
    ///
    /// # Errors
    /// As PostgreSQL answers to a malformed one.
    fn check(&self, name: &str, value: &str) -> Result<()>;

    /// Ready when what was written to [`crate::TreeId::CONFIGURATION`] up to there is committed and
    /// in force. Standbys that are named are not waited for: else nobody could name others while one
    /// is away.
    ///
    /// # Errors
    /// As [`super::Gate::settle`].
    fn configured(&self, debt: Debt) -> BoxFuture<'static, Result<()>>;
}

/// The key of a setting's row.
pub fn configuration_key(stage: Stage, name: &str) -> Key {
    let mut key = vec![stage.prefix()];
    key.extend_from_slice(name.to_ascii_lowercase().as_bytes());
    key
}

/// The row of a setting.
pub fn configuration_row(value: &str) -> Vec<u8> {
    RowBuilder::new(1).value(value.as_bytes()).finish()
}

/// The name and the value in a row of that stage; nothing in one of the other.
///
/// # Errors
/// XX001 when it is no such row.
pub fn read_configuration(
    stage: Stage,
    key: &[u8],
    row: &[u8],
) -> Result<Option<(String, String)>> {
    let Some((_, name)) = key
        .split_first()
        .filter(|(first, _)| **first == stage.prefix())
    else {
        return Ok(None);
    };
    let row = Row::parse(row)?;
    let value = row.column(0).unwrap_or_default();
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned);
    match (text(name), text(value)) {
        (Ok(name), Ok(value)) => Ok(Some((name, value))),
        _ => Err(Error::corrupted("a setting of the cluster is no text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_stage_come_back() {
        let key = configuration_key(Stage::Loaded, "TimeZone");
        let row = configuration_row("UTC");
        let found = read_configuration(Stage::Loaded, &key, &row).unwrap();
        assert_eq!(found, Some(("timezone".to_owned(), "UTC".to_owned())));
        assert_eq!(
            read_configuration(Stage::Written, &key, &row).unwrap(),
            None
        );
    }
}
