//! ANALYZE that runs by itself: which tables it looks at, and how it gives way.
//!
//! A table is due when more rows of it were changed since it was last looked at than its threshold says,
//! and the same part of its rows (PostgreSQL 15 manual, section 25.1.3):
//!
//! ```text
//! autovacuum_analyze_threshold + autovacuum_analyze_scale_factor * rows then  <  rows changed since
//!            50                              0.1                   1,000              151
//! ```
//! Rows changed are what the node has counted (`execution/src/state/statistics.rs`), which a new leader has
//! not; so at least as many as the table has become longer or shorter by, which everybody knows.
//!
//! The node that leads runs it (`node/src/analyzer.rs`), in a session of its own that others see and can
//! end. It rests as long as it works, and what it writes waits for nobody.
//!
//! # Invariants
//! - Whoever waits for a lock that it has, has it end: it is tried again in the next round.
//!
//! # What it leaves out
//! Temporary tables, which only their sessions know.

use std::sync::Arc;
use std::time::Duration;

use base::engine::{ClusterSettings, Engine};
use base::env::{Env, Instant};
use base::hash::HashMap;
use base::{coro, env, Error, ErrorClass, Result, SessionId, SqlState};

use super::{Session, SessionStart};
use catalog::shared::Catalogs;
use catalog::{Catalog, RelationKind, Table, SUPERUSER};
use execution::exec::sizes;
use execution::settings::{Asker, Settings};
use execution::state::Nowhere;
use functions::strings::quote_identifier;

/// The database whose catalog says which others there are.
const FIRST_DATABASE: &str = "template1";

/// Settings of the session: what is written waits for nobody, and no limits of its role hold.
const SETTINGS: [(&str, &str); 7] = [
    ("application_name", ""),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("idle_in_transaction_session_timeout", "0"),
    ("lock_timeout", "0"),
    ("statement_timeout", "0"),
    ("synchronous_commit", "off"),
];

/// It rests, and looks whether somebody waits for it, after so many rows.
pub(super) const ROWS_BETWEEN_RESTS: usize = 10_000;

/// It rests no shorter than this.
const REST_MIN: Duration = Duration::from_millis(1);

/// When ANALYZE runs by itself, as the settings of the cluster say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Automatic {
    /// Whether it does at all: `autovacuum` and `track_counts`.
    pub runs: bool,
    /// From one round to the next.
    pub nap: Duration,
    threshold: f64,
    scale: f64,
}

impl Automatic {
    /// What the settings say.
    pub fn read(cluster: &dyn ClusterSettings, defaults: &[(String, String)]) -> Automatic {
        let mut settings = Settings::of_nobody();
        let is_own = |name: &str| name.starts_with("autovacuum") || name == "track_counts";
        for (name, value) in defaults.iter().filter(|(name, _)| is_own(name)) {
            // What is wrong with it, the node has refused to start with.
            let _ = settings.begin_with(Asker::Configuration, name, value);
        }
        settings.load(&cluster.configuration());
        let shown = |name| {
            settings
                .show(name)
                .map_or_else(|_| String::new(), |shown| shown.1)
        };
        let number = |name| shown(name).parse().unwrap_or(f64::INFINITY);
        Automatic {
            runs: shown("autovacuum") == "on" && shown("track_counts") == "on",
            nap: settings.nap(),
            threshold: number("autovacuum_analyze_threshold"),
            scale: number("autovacuum_analyze_scale_factor"),
        }
    }

    /// Whether a table is due that had so many rows, if it was looked at, has so many now, and of which
    /// so many were changed.
    fn is_due(&self, table: &Table, (then, now): (Option<f64>, f64), changed: u64) -> bool {
        let option = |name: &str| {
            let mut options = table.options.iter();
            options
                .find(|known| known.0 == name)
                .map(|known| known.1.as_str())
        };
        let number = |name| option(name).and_then(|value: &str| value.parse::<f64>().ok());
        if option("autovacuum_enabled").is_some_and(|value| !is_true(value)) {
            return false;
        }
        let threshold = number("autovacuum_analyze_threshold").unwrap_or(self.threshold);
        let scale = number("autovacuum_analyze_scale_factor").unwrap_or(self.scale);
        let then = then.unwrap_or(0.0);
        let changed = (changed as f64).max((now - then).abs());
        changed > threshold + scale * then
    }
}

/// Whether a storage parameter is on.
fn is_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "on" | "true" | "1") || "yes".starts_with(&value)
}

/// One round: what is due in each database.
///
/// # Errors
/// What ends a session: a failover, an operator.
pub fn analyze_what_is_due(
    engine: &Arc<Engine>,
    env: &Arc<dyn Env>,
    start: &SessionStart,
    how: Automatic,
    log: &dyn Fn(String),
) -> Result<()> {
    for (user, database) in databases(engine, &start.catalogs)? {
        let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let start = SessionStart {
            user,
            database,
            settings: settings.into(),
            is_automatic: true,
            ..start.clone()
        };
        let mut session = Session::new(engine.clone(), env.clone(), start)?;
        let done = session.analyze_due(how, log);
        let registry = session.shared.start.registry.as_ref();
        if let Some(node) = registry.and_then(|registry| registry.statistics()) {
            node.finish(&session.shared.start.activity, env.wall_clock().0);
        }
        done?;
    }
    Ok(())
}

/// The databases that can be connected to, each with the name of whoever owns all of them.
fn databases(engine: &Engine, catalogs: &Catalogs) -> Result<Vec<(String, String)>> {
    let Some(catalog) = catalogs.current(&*engine.transactions, FIRST_DATABASE)? else {
        return Ok(Vec::new());
    };
    let Some(role) = catalog.role_by_oid(SUPERUSER).filter(|role| role.login) else {
        return Ok(Vec::new());
    };
    let open = catalog.databases.iter().filter(|database| database.open);
    Ok(open
        .map(|database| (role.name.clone(), database.name.clone()))
        .collect())
}

impl Session {
    /// Looks at the tables of this database that are due.
    fn analyze_due(&mut self, how: Automatic, log: &dyn Fn(String)) -> Result<()> {
        let catalog = self.catalog.clone();
        let of = catalog.database.oid;
        let sessions = self.shared.sessions();
        let registry = self.shared.start.registry.clone();
        let node = registry.and_then(|registry| registry.statistics());
        let changed = match &node {
            Some(node) => {
                let databases = catalog.databases.iter().map(|database| database.oid);
                let is_there = |oid| is_relation(&catalog, oid);
                node.retain(of, is_there, &databases.collect::<Vec<_>>());
                node.changed(of, &sessions)
            }
            None => HashMap::default(),
        };
        let storage = self.shared.engine.storage.clone();
        let due = catalog.tables.iter().filter(|table| {
            let has_rows = matches!(
                table.kind,
                RelationKind::Table | RelationKind::MaterializedView
            );
            if !has_rows {
                return false;
            }
            let then = catalog.table_statistics(table.oid).map(|found| found.rows);
            let now = sizes::size_of_relation(&catalog, &*storage, table.oid);
            let now = now.map_or(0.0, |size| size.rows as f64);
            let changed = changed.get(&table.oid).copied().unwrap_or(0);
            how.is_due(table, (then, now), changed)
        });
        let due: Vec<Arc<Table>> = due.cloned().collect();
        for table in due {
            coro::yield_now()?;
            let Some(schema) = catalog.schema_by_oid(table.schema) else {
                continue;
            };
            let name = format!(
                "{}.{}",
                quote_identifier(&schema.name),
                quote_identifier(&table.name)
            );
            let text = format!("ANALYZE (SKIP_LOCKED) {name}");
            match self.simple_query(&text, &mut Nowhere) {
                Ok(()) => {}
                Err(error) if is_of_table(&error) => {
                    let (message, database) = (error.message(), &catalog.database.name);
                    log(format!(
                        "{message}: automatic analyze of \"{database}.{name}\""
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Rests as long as it has worked since the rest before, which was at that time.
    ///
    /// # Errors
    /// 57014 if somebody waits for a lock that it has; the pending interrupt.
    pub(super) fn rest(&self, since: Instant) -> Result<()> {
        let env = &*self.shared.env;
        let worked = env.now().since(since).max(REST_MIN);
        coro::wait(env::sleep(env, worked))?;
        let Some(locks) = self.shared.engine.locks.as_deref() else {
            return Ok(());
        };
        let own = self.shared.start.backend_pid;
        let number = |pid: i32| SessionId(pid as u32);
        let sessions = self.shared.sessions();
        let mut others = sessions.iter().filter(|other| other.pid() != own);
        let is_waited_for = others.any(|other| {
            let blockers = locks.blockers(number(other.pid()));
            blockers.contains(&number(own))
        });
        match is_waited_for {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::QUERY_CANCELED,
                "canceling autovacuum task",
            )),
        }
    }
}

/// Whether an error concerns one table, and not the session.
fn is_of_table(error: &Error) -> bool {
    let goes_on = matches!(error.class(), ErrorClass::User | ErrorClass::Engine);
    goes_on && error.state() != SqlState::SERIALIZATION_FAILURE
}

/// Whether a table, an index or a sequence of that oid is there.
fn is_relation(catalog: &Catalog, oid: u32) -> bool {
    catalog.table_by_oid(oid).is_some() || catalog.index_by_oid(oid).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: Automatic = Automatic {
        runs: true,
        nap: Duration::ZERO,
        threshold: 50.0,
        scale: 0.1,
    };

    fn with(options: &[(&str, &str)]) -> Table {
        let options = options.iter();
        Table {
            options: options
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..Table::default()
        }
    }

    #[test]
    fn a_table_is_due_after_its_threshold() {
        let plain = with(&[]);
        assert!(!HOW.is_due(&plain, (Some(1_000.0), 1_000.0), 150));
        assert!(HOW.is_due(&plain, (Some(1_000.0), 1_000.0), 151));
        assert!(!HOW.is_due(&plain, (None, 50.0), 0));
        assert!(HOW.is_due(&plain, (None, 51.0), 0));
        // What was counted before a failover shows in the number of rows.
        assert!(HOW.is_due(&plain, (Some(1_000.0), 800.0), 3));
    }

    #[test]
    fn tables_say_otherwise() {
        let never = with(&[("autovacuum_enabled", "false")]);
        assert!(!HOW.is_due(&never, (None, 1e6), 1_000_000));
        let often = with(&[
            ("autovacuum_analyze_threshold", "0"),
            ("autovacuum_analyze_scale_factor", "0"),
        ]);
        assert!(HOW.is_due(&often, (Some(1e6), 1e6), 1));
        assert!(!HOW.is_due(&often, (Some(1e6), 1e6), 0));
    }
}
