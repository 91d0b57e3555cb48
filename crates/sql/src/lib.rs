//! SQL: parser glue, binder, planner, executor, PL/pgSQL, catalog and types.
//!
//! A [`session::Session`] takes text and gives rows to a [`session::Sink`]. It reaches data only
//! through [`base::engine::Engine`], and knows nothing of sockets, logs or other nodes.

pub mod functions;
pub mod session;
pub mod types;
