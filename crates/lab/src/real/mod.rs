//! What of the lab needs real sockets, threads and clocks, and so never runs in a simulated world.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod cgroup;
pub mod relay;
