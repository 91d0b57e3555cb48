//! From a tree to a plan: names and types are bound, rows are looked for where they are found soonest.
//!
//! ```text
//! select upper(b) from t where a = 1
//!   ─bind→ Scan t; a = 1          what is asked for ([`logical`])
//!   ─paths→ Project upper(column 1) over Scan t by its key
//! ```
//! [`plan`] is what comes out, [`bind`] finds what names mean, [`paths`] how rows are found,
//! [`deparse`] prints expressions as PostgreSQL does. Nothing here runs a statement or waits for one.

pub mod bind;
pub mod deparse;
mod logical;
pub mod paths;
pub mod plan;
