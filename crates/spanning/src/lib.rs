//! Transactions that span groups: what a leader does for them, as `step(input) → outputs`, without
//! a clock, a disk, a socket or a random source.
//!
//! Each group is a log with a leader. A transaction that writes in several of them appends a
//! *prepare* to each: its writes, not yet shown, and the timestamp that the group proposes. It is
//! committed exactly if all of its prepares are committed in their groups' logs, at the greatest
//! of the proposals: a function of the logs and of nothing else, so whoever has read them all
//! knows the outcome, and no decision has to be logged before the client hears of it.
//!
//! # One commit across groups 1 and 2
//! ```text
//! group 1, term 4 (coordinates)               group 2, term 9
//!   coordinate([1 in term 4, 2 in term 9]) ─►  Message::Prepare
//!   prepare at LSN 70, proposes 105              admit() ─► prepare at LSN 31, proposes 98
//!   committed(70): its own vote                  committed(31) ─► Message::Vote(Prepared 98)
//!   both have voted: Output::Decided(105), the client hears of it
//!   resolution at LSN 71 ─► Message::Outcome     resolution at LSN 32, its timestamp past 105
//!   committed(71)                                committed(32) ─► Message::Resolved
//!   all are resolved: Forgotten at LSN 72 ─►     Message::Forget
//! ```
//! A [`Ledger`] is what a replica knows from the log of its group: prepares without a resolution,
//! outcomes that somebody may still ask for, the clock and its ceiling. A [`Leader`] is what its
//! leader remembers beside that, for as long as its term lasts.
//!
//! A vote is known half a round trip earlier where the coordinator hears of replicas themselves what they
//! have flushed ([`Flushed`]): a majority that had a prepare on disk in the named term has committed it.
//!
//! # When a leader is lost
//! A prepare is accepted in the term of which its participant is named, and in no other. So once a
//! later leader has committed an entry of its own term and has no prepare, there never will be one,
//! and it answers [`Vote::Refused`] for good; who still leads in the named term refuses the
//! prepare from then on, and then says so. While the coordinator's term lasts it alone is asked for
//! an outcome: asking others may make them refuse what is on its way. Afterwards each participant in
//! doubt asks all the others and finds out by itself, as all of them will find the same.
//!
//! # Invariants
//! * Votes and outcomes are facts: they may arrive late, twice and in any order.
//! * Timestamps grow with the LSN in each group, and a resolution's is greater than the commit
//!   timestamp that it carries.
//! * An outcome is kept until every participant's resolution is committed in its own log; an
//!   abort need not be kept, because who finds no prepare concludes the same.
//! * What is read at a timestamp is what every later reader at that timestamp finds, under later
//!   leaders too: they begin above the ceiling that their predecessors had committed.
//!
//! # What it leaves out
//! Rows, locks and logs belong to the host: it validates a prepare before it appends it, keeps its
//! writes from readers, and appends what [`Output::Append`] asks for. Which node leads a group,
//! and how messages reach it, is the host's as well. Nothing here knows what a transaction has read.
//!
//! The host is `kv`. Here it runs in a world of its own (the module `world`, in its tests), in which
//! groups lose their leaders, messages are lost, late and doubled, clocks jump, and clients look for
//! what must not be.

mod clock;
mod leader;
mod ledger;
mod messages;
pub mod planted;
mod snapshot;

pub use clock::{trusted, Clock};
pub use leader::{Admission, Leader, Output};
pub use ledger::{Kept, Ledger, Open};
pub use messages::{Event, Flushed, Message, Outcome, Participant, SpanningId, Stamped, Vote};
pub use snapshot::{standing, Shown, Snapshot};

#[cfg(test)]
mod world;
