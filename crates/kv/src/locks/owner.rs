//! Who holds a lock, and who is never in whose way.

use std::fmt;

use base::{SessionId, Term, TxnId};

/// One that waits for at most one lock at a time, and whose own locks are never in its way: a
/// session with its transaction, a transaction without a session, or one that is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// A transaction that belongs to no session.
    Transaction(TxnId),
    /// A session: its transaction's locks and its own.
    Session(SessionId),
    /// A transaction that is prepared ([`crate::prepared`]), under the leader of a term.
    Prepared {
        /// Its id.
        txn: TxnId,
        /// The term.
        term: Term,
    },
}

impl Party {
    /// The session, where it is one.
    pub fn session(self) -> Option<SessionId> {
        match self {
            Party::Session(session) => Some(session),
            Party::Transaction(_) | Party::Prepared { .. } => None,
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Transaction(txn) | Party::Prepared { txn, .. } => write!(f, "transaction {txn}"),
            Party::Session(session) => write!(f, "process {session}"),
        }
    }
}

/// A holder of locks: what a session holds beyond its transactions is held apart from what its
/// transaction holds, so that each can be given up without the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) party: Party,
    /// Held until the session ends or gives it up, not until the transaction ends.
    pub(crate) lasting: bool,
}

impl Owner {
    /// What a party's transaction holds.
    pub(crate) fn transaction(party: Party) -> Owner {
        Owner {
            party,
            lasting: false,
        }
    }

    /// What a session holds beyond its transactions.
    pub(crate) fn lasting(session: SessionId) -> Owner {
        Owner {
            party: Party::Session(session),
            lasting: true,
        }
    }
}
