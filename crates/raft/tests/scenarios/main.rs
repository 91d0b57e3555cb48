//! A group of replicas in a simulated world: scripts with golden output, and random schedules.

mod catching_up;
mod cluster;
mod codec;
mod drawings;
mod histories;
mod random;
mod recovery;
mod script;
