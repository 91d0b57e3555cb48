//! The settings that planning goes by and that differ from what is built in, for SETTINGS.
//!
//! ```text
//! Settings: enable_seqscan = 'off', work_mem = '64kB'
//! ```
//! Which these are is PostgreSQL's word (`pg_settings_get_flags`), those among them that are taken here
//! without effect.

use base::Result;
use execution::settings::Settings;

/// The names, in order.
const EXPLAINED: [&str; 57] = [
    "constraint_exclusion",
    "cpu_index_tuple_cost",
    "cpu_operator_cost",
    "cpu_tuple_cost",
    "cursor_tuple_fraction",
    "effective_cache_size",
    "effective_io_concurrency",
    "enable_async_append",
    "enable_bitmapscan",
    "enable_gathermerge",
    "enable_hashagg",
    "enable_hashjoin",
    "enable_incremental_sort",
    "enable_indexonlyscan",
    "enable_indexscan",
    "enable_material",
    "enable_memoize",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_parallel_append",
    "enable_parallel_hash",
    "enable_partition_pruning",
    "enable_partitionwise_aggregate",
    "enable_partitionwise_join",
    "enable_seqscan",
    "enable_sort",
    "enable_tidscan",
    "force_parallel_mode",
    "from_collapse_limit",
    "geqo",
    "geqo_effort",
    "geqo_generations",
    "geqo_pool_size",
    "geqo_seed",
    "geqo_selection_bias",
    "geqo_threshold",
    "hash_mem_multiplier",
    "jit",
    "jit_above_cost",
    "jit_inline_above_cost",
    "jit_optimize_above_cost",
    "join_collapse_limit",
    "maintenance_io_concurrency",
    "max_parallel_workers",
    "max_parallel_workers_per_gather",
    "min_parallel_index_scan_size",
    "min_parallel_table_scan_size",
    "parallel_leader_participation",
    "parallel_setup_cost",
    "parallel_tuple_cost",
    "plan_cache_mode",
    "random_page_cost",
    "recursive_worktable_factor",
    "search_path",
    "seq_page_cost",
    "temp_buffers",
    "work_mem",
];

/// Those that differ, with their values.
pub(super) fn changed(settings: &Settings) -> Result<Vec<(&'static str, String)>> {
    let rows = settings.rows();
    let mut changed = Vec::new();
    for name in EXPLAINED {
        let row = rows.iter().find(|row| row.name == name);
        if row.is_some_and(|row| row.setting != row.boot) {
            changed.push((name, settings.show(name)?.1));
        }
    }
    Ok(changed)
}
