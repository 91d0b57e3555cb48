//! The simulator: whole nodes in a world of chance, on one thread, and checkers outside of them.
//!
//! [`world::World`] is the world: hosts with clocks, disks and a network, all driven by one seed. A
//! node runs in it unchanged, because it reaches everything through [`base::env::Env`].
//! [`cluster`] starts nodes on hosts, [`scenario`] puts them under a workload and [`faults`] as a
//! [`mix`] has them, and [`series`] runs many seeds and adds up what they have shown.
//!
//! ```no_run
//! use sim::scenario::{run, Config};
//! let outcome = run(Config::new(1, 3));
//! assert_eq!(outcome.violation, None);
//! ```

pub mod cluster;
pub mod faults;
pub mod mix;
pub mod scenario;
pub mod series;
pub mod world;

mod disk;
mod env;
mod further;
mod net;
mod operator;
mod schema;
mod two_phase;
mod watch;

pub use kv::planted::{Bug, AVAILABLE as CAN_PLANT_BUGS};

#[cfg(test)]
mod tests;
