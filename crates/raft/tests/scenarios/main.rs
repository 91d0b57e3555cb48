//! A group of replicas in a simulated world: scripts with golden output, and random schedules.

mod cluster;
mod random;
mod script;
