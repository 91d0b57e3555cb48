//! From a tree to a plan: names and types are bound, rows are looked for where they are found soonest.
//!
//! ```text
//! select upper(b) from t where a = 1
//!   ─bind→ Project upper(column 1) over Scan t, a = 1
//! ```
//! [`plan`] is what comes out, [`bind`] makes it, [`deparse`] prints its expressions as PostgreSQL does.
//! Nothing here runs a statement or waits for one.

pub mod bind;
pub mod deparse;
pub mod plan;
