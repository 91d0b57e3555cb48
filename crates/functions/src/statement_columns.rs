//! The columns of what the functions of extension `pg_stat_statements` give.
//!
//! ```text
//! pg_stat_statements(true)      userid, dbid, toplevel, queryid, query, …
//! ```
//! They stand by themselves, since both who computes such rows and who binds a call must know them.
//!
//! Source: PostgreSQL 15 manual, section F.32.

use types::TypeId;

/// The columns of the statements.
pub const COLUMNS: &[(&str, TypeId)] = &[
    ("userid", TypeId::OID),
    ("dbid", TypeId::OID),
    ("toplevel", TypeId::BOOL),
    ("queryid", TypeId::INT8),
    ("query", TypeId::TEXT),
    ("plans", TypeId::INT8),
    ("total_plan_time", TypeId::FLOAT8),
    ("min_plan_time", TypeId::FLOAT8),
    ("max_plan_time", TypeId::FLOAT8),
    ("mean_plan_time", TypeId::FLOAT8),
    ("stddev_plan_time", TypeId::FLOAT8),
    ("calls", TypeId::INT8),
    ("total_exec_time", TypeId::FLOAT8),
    ("min_exec_time", TypeId::FLOAT8),
    ("max_exec_time", TypeId::FLOAT8),
    ("mean_exec_time", TypeId::FLOAT8),
    ("stddev_exec_time", TypeId::FLOAT8),
    ("rows", TypeId::INT8),
    ("shared_blks_hit", TypeId::INT8),
    ("shared_blks_read", TypeId::INT8),
    ("shared_blks_dirtied", TypeId::INT8),
    ("shared_blks_written", TypeId::INT8),
    ("local_blks_hit", TypeId::INT8),
    ("local_blks_read", TypeId::INT8),
    ("local_blks_dirtied", TypeId::INT8),
    ("local_blks_written", TypeId::INT8),
    ("temp_blks_read", TypeId::INT8),
    ("temp_blks_written", TypeId::INT8),
    ("blk_read_time", TypeId::FLOAT8),
    ("blk_write_time", TypeId::FLOAT8),
    ("temp_blk_read_time", TypeId::FLOAT8),
    ("temp_blk_write_time", TypeId::FLOAT8),
    ("wal_records", TypeId::INT8),
    ("wal_fpi", TypeId::INT8),
    ("wal_bytes", TypeId::NUMERIC),
    ("jit_functions", TypeId::INT8),
    ("jit_generation_time", TypeId::FLOAT8),
    ("jit_inlining_count", TypeId::INT8),
    ("jit_inlining_time", TypeId::FLOAT8),
    ("jit_optimization_count", TypeId::INT8),
    ("jit_optimization_time", TypeId::FLOAT8),
    ("jit_emission_count", TypeId::INT8),
    ("jit_emission_time", TypeId::FLOAT8),
];

/// The columns of what is known of counting itself.
pub const INFO_COLUMNS: &[(&str, TypeId)] = &[
    ("dealloc", TypeId::INT8),
    ("stats_reset", TypeId::TIMESTAMPTZ),
];
