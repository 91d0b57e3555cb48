//! Groups in a small world: one node that crashes, three that lose their leader, large records.

mod bulk;
mod chaos;
mod cluster;
mod handover;
mod large;
mod members;
mod named;
mod one;
mod promotion;
mod schema;
mod slow;
mod three;
mod values;
