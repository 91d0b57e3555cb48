//! PostgreSQL's wire protocol, version 3.0, without IO: bytes in, bytes out.
//!
//! - [`frame`] cuts a stream into messages, [`startup`] reads the first packet;
//! - [`frontend`] and [`backend`] are the messages of the two sides, each decoded and encoded.

pub mod backend;
pub mod frame;
pub mod frontend;
pub mod output;
pub mod session;
pub mod startup;

#[cfg(test)]
mod tests;
