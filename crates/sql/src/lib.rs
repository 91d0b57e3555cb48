//! SQL: a client's session, on top of what parses, binds, plans and runs its statements.
//!
//! A [`session::Session`] takes text and gives rows to a [`session::Sink`]. It reaches data only
//! through [`base::engine::Engine`], and knows nothing of sockets, logs or other nodes.
//!
//! A statement goes through [`parser`] (text to tree), [`bind`] (names and types, giving a
//! [`plan`]) and [`exec`] (rows); what it may name is in [`catalog`].

pub mod session;

// What the crates below have, for whoever stands above.
pub use ::catalog;
pub use ::functions;
pub use ::types;
pub use catalog::{layout, local};
pub use execution::{exec, settings, state, system};
pub use planner::{bind, deparse, plan};
pub use syntax::{parser, plpgsql};
