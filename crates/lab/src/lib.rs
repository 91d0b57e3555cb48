//! What synchronous replication costs, measured: workloads, and the systems they run against.
//!
//! The systems are real processes: a cluster of Quorate's own binary ([`quorate`]) and PostgreSQL's
//! topologies from the installed server ([`postgres`]). They are driven by the real psql and
//! pgbench, interleaved, round after round, and the report gives medians with their spread
//! ([`report`]), because the machine is never quiet.
//!
//! [`experiments`] are what `quorate lab run` measures, each a small file; their figures are
//! [`results`], each with an [answer][answers] in one sentence, shown as a [`page`] and as JSON. [`real::relay`] puts distance between servers.
//! [`tpcc`] is TPC-C, [`tpch`] TPC-H. [`check`] judges the correctness of any server, under faults.

pub mod answers;
pub mod check;
pub mod client;
pub mod driver;
pub mod experiments;
pub mod fuzz;
pub mod host;
pub mod journal;
pub mod lists;
pub mod page;
pub mod pgbench;
pub mod postgres;
pub mod quorate;
pub mod real;
pub mod register;
pub mod registers;
pub mod report;
pub mod restless;
pub mod results;
pub mod session;
pub mod systems;
pub mod tpcc;
pub mod tpch;
pub mod upserts;
pub mod url;
