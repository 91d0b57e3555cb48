//! TPC-C, by revision 5.11 of its specification: a client that drives any number of terminals.
//!
//! ```text
//! wheel: who thinks or types ──▶ ready queue ──▶ connection tasks ──▶ server
//!   ▲                                                   │
//!   └────────────── the next transaction's time ◀───────┘
//! ```
//! A terminal is a few bytes: its place in a timer wheel ([`wheel`]) and what it will do next. Only
//! transactions under way take more, and there are never more of them than connections. So 150,000
//! terminals, those of 15,000 warehouses, fit one small process ([`run`]).
//!
//! [`transactions`] has the five transactions, [`random`] the specification's randomness, [`load`]
//! the initial population, [`consistency`] what must hold after every run, [`stub`] a server that
//! knows all answers beforehand, to measure the client alone.
//!
//! # What differs from the specification
//! Screens are not drawn. Terminals share connections, as through a transaction monitor. Foreign
//! keys are not declared. A run may be shorter than two hours, and its checkpoints are the system's.

pub mod consistency;
pub mod load;
pub mod random;
pub mod report;
pub mod run;
pub mod schema;
pub mod stub;
pub mod transactions;
pub mod wheel;

/// Items that a company sells.
pub const ITEMS: u64 = 100_000;

/// Districts of a warehouse, and so its terminals.
pub const DISTRICTS_PER_WAREHOUSE: u64 = 10;

/// Customers of a district.
pub const CUSTOMERS_PER_DISTRICT: u64 = 3_000;

/// New orders per minute and warehouse that think and keying times allow at most.
pub const TPMC_PER_WAREHOUSE_MAX: f64 = 12.86;
