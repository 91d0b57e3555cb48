//! PostgreSQL's wire protocol, version 3.0, without IO: bytes in, bytes out.
//!
//! | module | what it is |
//! |---|---|
//! | [`frame`] | a stream cut into messages, and the pieces of messages |
//! | [`startup`] | the first packet of a connection |
//! | [`auth`], [`hba`] | who may come in, and what a client must show |
//! | [`frontend`], [`backend`] | the messages of the two sides, decoded and encoded |
//! | [`channel`] | what a session and its driver share |
//! | [`output`] | what a session says, held until its debt is paid |
//! | `replies` | what statements show, as messages |
//! | [`session`] | the server's side of one connection, driving `sql` |
//! | [`seam`] | what that needs of `sql` |
//! | [`script`] | SQL as tests write it |
//! | [`client`] | the client's side, for workloads and simulations |
//!
//! Nothing here reads, writes or keeps time: a driver feeds bytes in and takes them out.

pub mod auth;
pub mod backend;
pub mod channel;
pub mod client;
pub mod frame;
pub mod frontend;
pub mod handover;
pub mod hba;
pub mod log;
pub mod output;
mod replies;
pub mod script;
pub mod seam;
pub mod session;
pub mod startup;

#[cfg(test)]
mod tests;
