//! What synchronous replication costs, measured: workloads, and the systems they run against.
//!
//! The systems are real processes: a cluster of Quorate's own binary ([`quorate`]) and PostgreSQL's
//! topologies from the installed server ([`postgres`]). They are driven by the real psql and
//! pgbench, interleaved, round after round, and the report gives medians with their spread
//! ([`report`]), because the machine is never quiet.
//!
//! [`commit_loop`] is experiment A: rows per second of one session that commits row by row.
//! [`pgbench`] is experiment B beside pgbench's own scripts: transactions per second of many clients,
//! and what each costs the servers' processors. [`latency`] puts distance between the servers, by
//! relays ([`real::relay`]), and counts the round trips of a commit. [`tpcc`] is TPC-C.

pub mod client;
pub mod commit_loop;
pub mod host;
pub mod journal;
pub mod latency;
pub mod pgbench;
pub mod postgres;
pub mod quorate;
pub mod real;
pub mod register;
pub mod registers;
pub mod report;
pub mod session;
pub mod systems;
pub mod tpcc;
pub mod url;
