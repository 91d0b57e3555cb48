//! One server of Quorate: its reactors, sockets and peers, and the glue between protocol, SQL and
//! the transaction engine.

pub mod real;
