//! Bugs on purpose, with which the simulator shows that it would find such bugs.
//!
//! Each is one decision of this crate or of the group's driver, taken wrongly. They exist only in
//! builds with the feature `planted-bugs`, which no released binary has; without it
//! [`is_planted`] is a constant false. With it, one build holds them all, and the one to show is
//! chosen at run time, for the thread that asks: the simulator runs a whole world on one thread.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Entries count as flushed once they are written.
    AckBeforeFlush,
    /// A leader's lease is that it leads, as far as the consensus library knows.
    LeaseByLibrary,
    /// A voter that restarted votes and campaigns at once.
    VoteAfterRestart,
    /// Watermarks that were reported in an older term go on counting.
    StaleWatermark,
    /// A read that finds no row owes nothing.
    AbsenceUngated,
    /// The trees keep the tail that another leader's log replaces.
    TailKept,
    /// What is read on a standby is shown before its commit index covers it.
    StandbyAhead,
    /// A checkpoint is published before its LSN is committed.
    CheckpointAhead,
    /// What a replica that leads no longer cannot propose, it sends to the one that leads.
    ProposalForwarded,
    /// What was in flight when a leader was lost runs again, whether it was committed or not.
    CommitRetried,
    /// A reply that rests on entries which were cut leaves once other entries reach their LSN.
    TailReleased,
    /// Who goes on alone stays in its incarnation, and keeps the others as learners.
    IncarnationKept,
    /// What a tail that is cut changed in the catalog is taken back in the trees, but not in what
    /// the node knows from them.
    DdlKept,
    /// A leader whose transfer has failed takes its lease back and goes on, though the word that
    /// makes the other stand may still be under way.
    TransferForgotten,
    /// A voter promises by its own setting, instead of the length in the request.
    PromiseByOwnSetting,
    /// A replica that does not lead applies some rows with another byte.
    RowAltered,
    /// Some replicas take entries with another byte than they were sent with.
    EntryAltered,
    /// The same, and nobody compares the chains of logs.
    ChainUnchecked,
    /// A log whose last segment is shorter than it was made is taken for one that ends there.
    LengthUnchecked,
    /// A SERIALIZABLE transaction across groups commits although what it has read was changed.
    ReadsChanged,
    /// A part of a transaction across groups counts as committed once its leader has appended it.
    PartUncommitted,
    /// A transaction forgets what it has posted to another node and has not heard of.
    PostedForgotten,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 22] = [
        Bug::AckBeforeFlush,
        Bug::LeaseByLibrary,
        Bug::VoteAfterRestart,
        Bug::StaleWatermark,
        Bug::AbsenceUngated,
        Bug::TailKept,
        Bug::StandbyAhead,
        Bug::CheckpointAhead,
        Bug::ProposalForwarded,
        Bug::CommitRetried,
        Bug::TailReleased,
        Bug::IncarnationKept,
        Bug::DdlKept,
        Bug::TransferForgotten,
        Bug::PromiseByOwnSetting,
        Bug::RowAltered,
        Bug::EntryAltered,
        Bug::ChainUnchecked,
        Bug::LengthUnchecked,
        Bug::ReadsChanged,
        Bug::PartUncommitted,
        Bug::PostedForgotten,
    ];

    /// Its name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Bug::AckBeforeFlush => "ack-before-flush",
            Bug::LeaseByLibrary => "lease-by-library",
            Bug::VoteAfterRestart => "vote-after-restart",
            Bug::StaleWatermark => "stale-watermark",
            Bug::AbsenceUngated => "absence-ungated",
            Bug::TailKept => "tail-kept",
            Bug::StandbyAhead => "standby-ahead",
            Bug::CheckpointAhead => "checkpoint-ahead",
            Bug::ProposalForwarded => "proposal-forwarded",
            Bug::CommitRetried => "commit-retried",
            Bug::TailReleased => "tail-released",
            Bug::IncarnationKept => "incarnation-kept",
            Bug::DdlKept => "ddl-kept",
            Bug::TransferForgotten => "transfer-forgotten",
            Bug::PromiseByOwnSetting => "promise-by-own-setting",
            Bug::RowAltered => "row-altered",
            Bug::EntryAltered => "entry-altered",
            Bug::ChainUnchecked => "chain-unchecked",
            Bug::LengthUnchecked => "length-unchecked",
            Bug::ReadsChanged => "reads-changed",
            Bug::PartUncommitted => "part-uncommitted",
            Bug::PostedForgotten => "posted-forgotten",
        }
    }

    /// The bug of that name.
    pub fn parse(name: &str) -> Option<Bug> {
        Bug::ALL.into_iter().find(|bug| bug.name() == name)
    }
}

/// Whether this build can show bugs at all.
pub const AVAILABLE: bool = cfg!(feature = "planted-bugs");

#[cfg(feature = "planted-bugs")]
mod chosen {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static CHOSEN: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// From now on this thread shows this bug, or none.
    pub fn plant(bug: Option<Bug>) {
        CHOSEN.set(bug);
    }

    /// Whether this thread shows that bug.
    pub fn is_planted(bug: Bug) -> bool {
        CHOSEN.get() == Some(bug)
    }
}

#[cfg(not(feature = "planted-bugs"))]
mod chosen {
    use super::Bug;

    /// This build has no bugs to show.
    pub fn plant(bug: Option<Bug>) {
        assert_eq!(bug, None, "this build lacks the feature planted-bugs");
    }

    /// Never.
    #[inline(always)]
    pub const fn is_planted(_bug: Bug) -> bool {
        false
    }
}

pub use chosen::{is_planted, plant};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_name_of_its_own() {
        for bug in Bug::ALL {
            assert_eq!(Bug::parse(bug.name()), Some(bug));
        }
        assert_eq!(Bug::parse("none"), None);
    }
}
