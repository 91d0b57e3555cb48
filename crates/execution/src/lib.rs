//! Plans at work, and what a session is to the statement that runs.
//!
//! ```text
//! settings, kept ← spool ← state ← exec ← system
//! ```
//! [`settings`] are a session's settings, [`kept`] are rows in memory, [`spool`]
//! those that go on to scratch space, [`state`] is what it shares with its running statement,
//! [`exec`] computes the rows of plans, and [`system`] has the rows of the system relations, which
//! `exec` reaches through a trait of its own. [`server_file`] reaches files. [`analyze`] makes statistics of samples of rows.

pub mod analyze;
pub mod exec;
pub mod kept;
pub mod server_file;
pub mod settings;
pub mod spool;
pub mod state;
pub mod system;
