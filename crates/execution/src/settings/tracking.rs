//! The settings that say what is counted for the statistics views and by statement, and when ANALYZE runs
//! by itself.

use std::time::Duration;

use super::{define, seconds, Definition, Kind, Settings, INT_MAX};

/// Values of `autovacuum_naptime`, in seconds.
pub(super) const NAP: Kind = Kind::Seconds(1, 2_147_483);

#[rustfmt::skip]
pub(super) const SETTINGS: &[Definition] = &[
    define("autovacuum", Kind::Bool, "on", "Starts the autovacuum subprocess."),
    define("autovacuum_analyze_scale_factor", Kind::Share, "0.1", "Number of tuple inserts, updates, or deletes prior to analyze as a fraction of reltuples."),
    define("autovacuum_analyze_threshold", Kind::Int(0, INT_MAX), "50", "Minimum number of tuple inserts, updates, or deletes prior to analyze."),
    define("autovacuum_naptime", NAP, "1min", "Time to sleep between autovacuum runs."),
    define("compute_query_id", Kind::Enum(&["auto", "regress", "on", "off"]), "auto", "Enables in-core computation of query identifiers."),
    define("pg_stat_statements.max", Kind::Int(100, 1_073_741_823), "5000", "Sets the maximum number of statements tracked by pg_stat_statements."),
    define("pg_stat_statements.save", Kind::Bool, "on", "Save pg_stat_statements statistics across server shutdowns."),
    define("pg_stat_statements.track", Kind::Enum(&["none", "top", "all"]), "top", "Selects which statements are tracked by pg_stat_statements."),
    define("pg_stat_statements.track_planning", Kind::Bool, "off", "Selects whether planning duration is tracked by pg_stat_statements."),
    define("pg_stat_statements.track_utility", Kind::Bool, "on", "Selects whether utility commands are tracked by pg_stat_statements."),
    define("stats_fetch_consistency", Kind::Enum(&["none", "cache", "snapshot"]), "cache", "Sets the consistency of accesses to statistics data."),
    define("track_counts", Kind::Bool, "on", "Collects statistics on database activity."),
    define("track_functions", Kind::Enum(&["none", "pl", "all"]), "none", "Collects function-level statistics on database activity."),
];

impl Settings {
    /// `autovacuum_naptime`.
    pub fn nap(&self) -> Duration {
        let shown = self.show("autovacuum_naptime").ok();
        let seconds = shown.and_then(|(_, shown)| seconds(&shown));
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Duration::from_secs(seconds.unwrap_or(60))
    }
}

/// Which routines are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackedRoutines {
    /// None.
    #[default]
    None,
    /// Those in procedural languages.
    Procedural,
    /// Those in SQL too.
    All,
}

/// Which statements are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackedLevels {
    /// None.
    None,
    /// Those that clients give.
    #[default]
    Top,
    /// Those of routines too.
    All,
}

/// `compute_query_id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryIds {
    /// They are made where statements are counted, and shown; `regress` hides them in EXPLAIN.
    #[default]
    Auto,
    /// The same, but for EXPLAIN.
    Regress,
    /// They are made and shown.
    On,
    /// There are none, and nothing is counted by them.
    Off,
}

/// How statements are counted: `compute_query_id` and the settings of `pg_stat_statements`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedStatements {
    /// `compute_query_id`.
    pub ids: QueryIds,
    /// `pg_stat_statements.track`.
    pub levels: TrackedLevels,
    /// `pg_stat_statements.track_utility`.
    pub utility: bool,
    /// `pg_stat_statements.track_planning`.
    pub planning: bool,
    /// `pg_stat_statements.max`.
    pub most: usize,
}

impl Default for TrackedStatements {
    fn default() -> TrackedStatements {
        TrackedStatements {
            ids: QueryIds::Auto,
            levels: TrackedLevels::Top,
            utility: true,
            planning: false,
            most: 5_000,
        }
    }
}

impl TrackedStatements {
    fn read<'t>(text: impl Fn(&'static str) -> &'t str) -> TrackedStatements {
        let usual = TrackedStatements::default();
        TrackedStatements {
            ids: match text("compute_query_id") {
                "regress" => QueryIds::Regress,
                "on" => QueryIds::On,
                "off" => QueryIds::Off,
                _ => QueryIds::Auto,
            },
            levels: match text("pg_stat_statements.track") {
                "none" => TrackedLevels::None,
                "all" => TrackedLevels::All,
                _ => TrackedLevels::Top,
            },
            utility: text("pg_stat_statements.track_utility") == "on",
            planning: text("pg_stat_statements.track_planning") == "on",
            most: text("pg_stat_statements.max").parse().unwrap_or(usual.most),
        }
    }

    /// Whether statements are counted that clients give, or those of routines.
    pub fn counts(&self, toplevel: bool) -> bool {
        let least = match toplevel {
            true => TrackedLevels::Top,
            false => TrackedLevels::All,
        };
        self.ids != QueryIds::Off && self.levels >= least
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// `track_counts`.
    pub counts: bool,
    /// `track_functions`.
    pub routines: TrackedRoutines,
    /// How statements are counted.
    pub statements: TrackedStatements,
    /// Whether `stats_fetch_consistency` has each statement look anew.
    pub looks_anew: bool,
}

impl Default for Tracking {
    fn default() -> Tracking {
        Tracking {
            counts: true,
            routines: TrackedRoutines::None,
            statements: TrackedStatements::default(),
            looks_anew: false,
        }
    }
}

impl Tracking {
    /// What the settings of these names say.
    pub(super) fn read<'t>(text: impl Fn(&'static str) -> &'t str) -> Tracking {
        Tracking {
            counts: text("track_counts") == "on",
            routines: match text("track_functions") {
                "pl" => TrackedRoutines::Procedural,
                "all" => TrackedRoutines::All,
                _ => TrackedRoutines::None,
            },
            statements: TrackedStatements::read(&text),
            looks_anew: text("stats_fetch_consistency") == "none",
        }
    }
}
