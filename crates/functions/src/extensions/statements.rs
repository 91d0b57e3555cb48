//! Extension `pg_stat_statements`: what statements have cost, by their texts without constants.
//!
//! ```text
//! select query, calls, rows from pg_stat_statements
//! select v from t where k = $1 | 4711 | 4711
//! ```
//! The functions ask the session, which knows what its node has counted (`execution/src/state/statements.rs`);
//! the views are made of them where the extension is created ([`SCRIPT`]).
//!
//! Source: PostgreSQL 15 manual, section F.32.

use super::super::table::functions;
use types::TypeId;

functions! {
    9950 "pg_stat_statements" (BOOL) RECORD "v" session Statements::List;
    9951 "pg_stat_statements_info" () RECORD "v" session Statements::Info;
    9952 "pg_stat_statements_reset" (OID OID INT8) VOID "v" session Statements::Reset;
}

/// What the inputs of the functions are called, and their defaults.
pub(super) const INPUTS: &[super::Inputs] = &[
    ("pg_stat_statements", &[("showtext", None)]),
    (
        "pg_stat_statements_reset",
        &[
            ("userid", Some("0")),
            ("dbid", Some("0")),
            ("queryid", Some("0")),
        ],
    ),
];

/// What is made beside the functions, in the schema that stands for `@extschema@`.
pub(super) const SCRIPT: &[&str] = &[
    "CREATE VIEW @extschema@.pg_stat_statements_info AS \
     SELECT * FROM @extschema@.pg_stat_statements_info() AS pg_stat_statements_info",
    "CREATE VIEW @extschema@.pg_stat_statements AS \
     SELECT * FROM @extschema@.pg_stat_statements(true) AS pg_stat_statements",
    "GRANT SELECT ON @extschema@.pg_stat_statements_info, @extschema@.pg_stat_statements TO PUBLIC",
    "REVOKE ALL ON FUNCTION @extschema@.pg_stat_statements_reset(oid, oid, bigint) FROM PUBLIC",
];

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
