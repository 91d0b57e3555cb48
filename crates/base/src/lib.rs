//! What every crate of Quorate shares: identifiers, errors, keys and rows, and the two seams.
//!
//! The seams are [`env::Env`], through which all code reaches time, randomness, disk and network,
//! and [`engine::Engine`], through which SQL reaches transactions without knowing how they are
//! kept. Statements wait through [`coro`], and threads share memory through [`sync`].
//!
//! This crate imports no other crate of Quorate, and does no IO.

pub mod budget;
pub mod chain;
pub mod cluster;
pub mod codec;
pub mod coro;
pub mod durability;
pub mod engine;
pub mod env;
pub mod error;
pub mod fold;
pub mod framed;
pub mod hash;
pub mod ids;
pub mod key;
pub mod large;
pub mod limits;
pub mod memory;
pub mod row;
pub mod sync;
mod tally;
mod threads;
pub mod turns;
pub mod usage;

#[cfg(test)]
mod model;
#[cfg(test)]
mod sync_stress;

pub use chain::Chain;
pub use durability::{Debt, Durability, GroupDebt};
pub use error::{Error, ErrorClass, Result, SqlState};
pub use ids::{
    CommandId, GroupId, Lsn, NodeId, Position, SequenceId, SessionId, Term, Timestamp, TreeId,
    TxnId, Xid,
};
pub use key::{jsonb, Key, KeyRange};
