//! The settings by which the planner can be steered, as PostgreSQL's. Those about ways that there are not
//! here (joins by merging, groups by sorting, parallel workers) are taken, kept and shown, and say that they
//! change nothing.

use super::{define, Definition, Kind};

const NOTHING: &str = "Accepted and without effect: there is no such way to a row here.";

#[rustfmt::skip]
pub(super) const SETTINGS: &[Definition] = &[
    define("constraint_exclusion", Kind::Enum(&["partition", "on", "off"]), "partition", NOTHING),
    define("default_statistics_target", Kind::Int(1, 10_000), "100", "Sets the default statistics target."),
    define("enable_async_append", Kind::Bool, "on", NOTHING),
    define("enable_bitmapscan", Kind::Bool, "on", NOTHING),
    define("enable_gathermerge", Kind::Bool, "on", NOTHING),
    define("enable_hashagg", Kind::Bool, "on", NOTHING),
    define("enable_hashjoin", Kind::Bool, "on", "Enables the planner's use of hash join plans."),
    define("enable_incremental_sort", Kind::Bool, "on", NOTHING),
    define("enable_indexonlyscan", Kind::Bool, "on", NOTHING),
    define("enable_indexscan", Kind::Bool, "on", "Enables the planner's use of index-scan plans, by the primary key and of inverted indexes included."),
    define("enable_material", Kind::Bool, "on", NOTHING),
    define("enable_memoize", Kind::Bool, "on", NOTHING),
    define("enable_mergejoin", Kind::Bool, "on", NOTHING),
    define("enable_nestloop", Kind::Bool, "on", "Enables the planner's use of nested-loop join plans, with or without looking rows up."),
    define("enable_parallel_append", Kind::Bool, "on", NOTHING),
    define("enable_parallel_hash", Kind::Bool, "on", NOTHING),
    define("enable_partition_pruning", Kind::Bool, "on", NOTHING),
    define("enable_partitionwise_aggregate", Kind::Bool, "off", NOTHING),
    define("enable_partitionwise_join", Kind::Bool, "off", NOTHING),
    define("enable_seqscan", Kind::Bool, "on", "Enables the planner's use of sequential-scan plans."),
    define("enable_sort", Kind::Bool, "on", "Enables the planner's use of explicit sort steps where an index has the order."),
    define("enable_tidscan", Kind::Bool, "on", NOTHING),
    define("force_parallel_mode", Kind::Enum(&["off", "on", "regress"]), "off", NOTHING),
    define("max_parallel_workers_per_gather", Kind::Int(0, 1_024), "0", NOTHING),
    define("min_parallel_index_scan_size", Kind::Memory(0), "512kB", NOTHING),
    define("min_parallel_table_scan_size", Kind::Memory(0), "8MB", NOTHING),
    define("parallel_leader_participation", Kind::Bool, "on", NOTHING),
    define("parallel_setup_cost", Kind::Real, "1000", NOTHING),
    define("parallel_tuple_cost", Kind::Real, "0.1", NOTHING),
];
