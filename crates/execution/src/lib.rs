//! Plans at work, and what a session is to the statement that runs.
//!
//! ```text
//! settings ← state ← exec ← system
//! ```
//! [`settings`] are a session's settings, [`state`] is what it shares with its running statement,
//! [`exec`] computes the rows of plans, and [`system`] has the rows of the system relations, which
//! `exec` reaches through a trait of its own.

pub mod exec;
pub mod settings;
pub mod state;
pub mod system;
