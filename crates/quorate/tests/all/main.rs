//! Everything that is tested across crates: the rules of the source tree, and real clusters of the
//! built binary under the real psql. One binary, because linking is what takes long.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod bulk;
mod commands;
mod corpus;
mod damage;
mod documents;
mod dump;
mod failover;
mod first_hour;
mod floods;
mod fsync;
mod input;
mod install;
mod intruders;
mod isolation;
mod kill;
mod laboratory;
mod layers;
mod levels;
mod long;
mod losses;
mod members;
mod pasted;
mod pgbench;
mod privacy;
mod privileges;
mod protocol;
mod questions;
mod recorded;
mod regexps;
mod relay;
mod scripts;
mod security;
mod sessions;
mod shared;
mod sizes;
mod slt;
mod source;
mod space;
mod stage;
mod switchover;
mod tidy;
mod values;
mod writers;
