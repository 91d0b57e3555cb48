//! Bugs on purpose, with which the world of this crate's tests shows that it would find such bugs:
//! each is a sentence of the protocol left out. They exist in those tests only.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A group forgets an outcome once its own resolution is committed, whatever the others' are.
    ForgottenEarly,
    /// A prepare is accepted in a later term than the one that its transaction names.
    PreparedInLaterTerm,
    /// A leader in the named term says that there is no prepare, and accepts it afterwards.
    RefusalForgotten,
    /// A prepare that arrives again after it was resolved is appended again.
    PreparedTwice,
    /// A prepare counts when it is appended.
    CountedUncommitted,
    /// One replica's flush counts as a majority's.
    FlushedByOne,
    /// A resolution does not move its group's clock past the timestamp of the commit.
    ClockBehindCommit,
    /// Who is asked to read at a timestamp does not move its clock past it.
    ClockNotPassed,
    /// A new leader begins at the end of its log, below what its predecessor has promised readers.
    CeilingIgnored,
    /// A reader passes by every prepare.
    PreparePassed,
    /// A reader sees what is prepared.
    PrepareShown,
    /// A snapshot stays below the commits of prepares that stood when it was taken.
    StandingPassed,
    /// A transaction's commit is not above what its session has heard of.
    HeardIgnored,
    /// A session that has heard of a later timestamp elsewhere reads one group as it is, and leaves
    /// its clock behind.
    ReadUnheard,
    /// A coordinator tells of an abort before its own log has it.
    AbortUngated,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 15] = [
        Bug::ForgottenEarly,
        Bug::PreparedInLaterTerm,
        Bug::RefusalForgotten,
        Bug::PreparedTwice,
        Bug::CountedUncommitted,
        Bug::FlushedByOne,
        Bug::ClockBehindCommit,
        Bug::ClockNotPassed,
        Bug::CeilingIgnored,
        Bug::PreparePassed,
        Bug::PrepareShown,
        Bug::StandingPassed,
        Bug::HeardIgnored,
        Bug::ReadUnheard,
        Bug::AbortUngated,
    ];
}

pub(crate) use chosen::is_planted;
#[cfg(test)]
pub(crate) use chosen::plant;

#[cfg(not(test))]
mod chosen {
    use super::Bug;

    /// Never.
    #[inline(always)]
    pub(crate) const fn is_planted(_bug: Bug) -> bool {
        false
    }
}

#[cfg(test)]
mod chosen {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static CHOSEN: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// From now on this thread shows this bug, or none.
    pub(crate) fn plant(bug: Option<Bug>) {
        CHOSEN.set(bug);
    }

    /// Whether this thread shows that bug.
    pub(crate) fn is_planted(bug: Bug) -> bool {
        CHOSEN.get() == Some(bug)
    }
}
