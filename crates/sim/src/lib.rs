//! The simulator: whole nodes in a world of chance, on one thread, and checkers outside of them.
//!
//! [`world::World`] is the world: hosts with clocks, disks and a network, all driven by one seed. A
//! node runs in it unchanged, because it reaches everything through [`base::env::Env`].

pub mod world;

mod disk;
mod env;
mod net;

#[cfg(test)]
mod tests;
