//! The simulator: whole nodes in a world of chance, on one thread, and checkers outside of them.
//!
//! [`world::World`] is the world: hosts with clocks, disks and a network, all driven by one seed. A
//! node runs in it unchanged, because it reaches everything through [`base::env::Env`].
//! [`cluster`] starts nodes on hosts, and [`scenario`] puts them under a workload and faults.
//!
//! ```no_run
//! use sim::scenario::{run, Config};
//! let outcome = run(Config { seed: 1, nodes: 3, faults: std::time::Duration::from_secs(20), verbose: false });
//! assert_eq!(outcome.violation, None);
//! ```

pub mod cluster;
pub mod scenario;
pub mod world;

mod disk;
mod env;
mod net;

#[cfg(test)]
mod tests;
