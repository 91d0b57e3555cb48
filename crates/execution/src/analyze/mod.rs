//! ANALYZE: what a sample of a table's rows tells of its columns (PostgreSQL 15 manual, sections 14.2
//! and 72.1).
//!
//! ```text
//! sample ([`Sample`])   300 rows for each value or bound that is to be kept at most
//!   ├─ each column      its values, sorted ([`column`]) → catalog::statistics
//!   └─ several columns  their values row by row ([`together`]) → catalog::extended
//! ```
//! What is computed is what PostgreSQL computes of the same sample, so that a table which is sampled
//! whole has the same statistics there and here.

pub mod column;
mod sample;
pub mod together;

pub use sample::{Sample, SAMPLE_BYTES_MAX};

/// Rows of a sample for each common value, or bound of a histogram, that is kept at most (Chaudhuri,
/// Motwani and Narasayya, *Random Sampling for Histogram Construction: How much is enough?*, 1998).
pub const ROWS_PER_TARGET: usize = 300;
