//! SQL: parser glue, binder, planner, executor, PL/pgSQL, catalog and types.
//!
//! A [`session::Session`] takes text and gives rows to a [`session::Sink`]. It reaches data only
//! through [`base::engine::Engine`], and knows nothing of sockets, logs or other nodes.
//!
//! A statement goes through [`parser`] (text to tree), [`bind`] (names and types, giving a
//! [`plan`]) and [`exec`] (rows); what it may name is in [`catalog`].

pub mod bind;
pub mod catalog;
pub mod deparse;
pub mod exec;
pub mod functions;
pub mod local;
pub mod parser;
pub mod plan;
pub mod plpgsql;
pub mod regex;
pub mod session;
pub mod types;
