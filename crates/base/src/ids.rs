//! The identifiers that cross module boundaries, each a type of its own.
//!
//! A bare `u64` never crosses one: an [`Lsn`] cannot be handed where a [`Term`] is meant. All are
//! ordered, and all are 64 bits wide where they count events, so that none ever wraps around.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// One process of a cluster. Never reused: a node whose disk was lost joins under a new id.
    NodeId(u64)
}
id! {
    /// One Raft group: one log, one leader, voters and learners.
    GroupId(u32)
}
id! {
    /// A position in a group's log: the index that Raft gave the entry. 0 is before the first.
    Lsn(u64)
}
id! {
    /// A Raft term: at most one leader per term and group.
    Term(u64)
}
id! {
    /// Microseconds since 2000-01-01 00:00 UTC (PostgreSQL's epoch), never going back in a group.
    Timestamp(i64)
}
id! {
    /// A transaction, unique in a cluster for ever (64 bits, no wraparound).
    TxnId(u64)
}
id! {
    /// A transaction as its client knows it (`pg_current_xact_id()`): whoever has it can ask what
    /// became of the transaction. Given when it is asked for, or when the transaction commits.
    Xid(u64)
}
id! {
    /// A client's session: what it sees as `pg_backend_pid()`, unique in a cluster.
    SessionId(u32)
}
id! {
    /// The number of a statement within its transaction; a statement sees what smaller ones wrote.
    CommandId(u32)
}
id! {
    /// One B+tree: the rows of a table or the entries of an index. Never reused.
    TreeId(u64)
}
id! {
    /// A sequence, named by the OID of its catalog row; small numbers are the system's own.
    SequenceId(u64)
}

impl Lsn {
    /// Before the first entry of any log.
    pub const ZERO: Lsn = Lsn(0);
    /// After the last entry of any log.
    pub const MAX: Lsn = Lsn(u64::MAX);

    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Lsn {
        Lsn(self.0 + 1)
    }

    /// The position before this one; [`Lsn::ZERO`] has none and stays.
    #[must_use]
    pub fn prev(self) -> Lsn {
        Lsn(self.0.saturating_sub(1))
    }
}

/// The group that a cluster starts with.
pub const FIRST_GROUP: GroupId = GroupId(1);

/// A point in a group's history: an LSN alone does not name one, because a failover may put other
/// entries above what was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// The term of the leader under which the position was observed.
    pub term: Term,
    /// Where in the log.
    pub lsn: Lsn,
}
