//! The settings that say what is counted for the statistics views, and when ANALYZE runs by itself.

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

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// `track_counts`.
    pub counts: bool,
    /// `track_functions`.
    pub routines: TrackedRoutines,
    /// Whether `stats_fetch_consistency` has each statement look anew.
    pub looks_anew: bool,
}

impl Default for Tracking {
    fn default() -> Tracking {
        Tracking {
            counts: true,
            routines: TrackedRoutines::None,
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
            looks_anew: text("stats_fetch_consistency") == "none",
        }
    }
}
