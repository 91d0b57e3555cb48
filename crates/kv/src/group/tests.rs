//! Groups in a small world: one node that crashes, three that lose their leader.

mod chaos;
mod cluster;
mod one;
mod schema;
mod three;
