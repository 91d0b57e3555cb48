//! One server of Quorate: its reactors, sockets and peers, and the glue between protocol, SQL and
//! the transaction engine.
//!
//! | module | what it does |
//! |---|---|
//! | [`server`] | the node itself |
//! | [`starting`] | what it says before it serves |
//! | [`access`] | who may connect: the rules of `pg_hba.conf`, and what may be listened on |
//! | [`secure`] | how connections are encrypted; [`real::tls`] does it |
//! | [`config`] | what a node is told when it starts |
//! | [`hosting`] | the groups that it has |
//! | [`peers`] | connections between nodes; [`wire`] is what they say |
//! | [`session`] | serving one client: its stream, its statements, its gate, its timers |
//! | [`sessions`] | which clients are served here, and how one is cancelled |
//! | [`memory`] | the node's memory, of which statements take theirs |
//! | [`stretches`] | how long statements run without giving way |
//! | [`splice`] | passing a client's bytes on to the leader |
//! | [`real`] | the only module that names threads, sockets, files and clocks |
//!
//! Everything but [`real`] runs in the simulator as it is.

pub mod access;
pub mod administration;
mod analyzer;
mod clients;
pub mod config;
pub mod hosting;
pub mod memory;
#[cfg(test)]
mod model;
mod passage;
pub mod peers;
pub mod real;
pub mod secure;
pub mod server;
pub mod session;
pub mod sessions;
pub mod starting;
pub mod stretches;
pub mod unproved;
pub mod wait;
pub mod wire;

/// What is kept of a password: the verifier of `pg_authid`. The salt is taken from `secret`.
pub fn password_verifier(password: &str, secret: &[u8; 32]) -> String {
    use sql::functions::scram;
    scram::verifier(password, &secret[..scram::SALT_BYTES])
}
