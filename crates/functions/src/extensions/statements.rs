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
