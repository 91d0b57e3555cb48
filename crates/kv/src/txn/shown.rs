//! What a transaction that is a branch of one across groups is asked besides
//! ([`crate::engine::database`]), and what a statement sees of such ([`crate::group`], *standing*).

use base::engine::{Isolation, Transaction};
use base::Result;

use super::{Leader, Txn, View};
use crate::group::term_is_over;

impl<L: Leader> Txn<L> {
    /// As [`Transaction::begin_statement`], with a snapshot that was taken for this statement; one that
    /// keeps its first snapshot keeps it.
    ///
    /// # Errors
    /// 40001 when leadership has changed.
    pub fn begin_statement_with(&mut self, snapshot: L::Snapshot) -> Result<()> {
        let term = snapshot.position().term;
        match &self.snapshot {
            Some(kept) if self.isolation != Isolation::ReadCommitted => {
                self.leader.check_term(kept.position().term)?;
            }
            Some(before) if before.position().term != term => return Err(term_is_over()),
            _ => {
                self.snapshot = Some(snapshot);
                self.take_expected()?;
            }
        }
        self.locks.bind(term)?;
        self.owe_shown()?;
        self.next_command();
        Ok(())
    }

    /// Rows get their numbers from another group.
    pub fn set_numbering(&mut self, by: L) {
        self.numbering = Some(by);
    }

    /// What the statement at work sees.
    ///
    /// # Errors
    /// XX000 before the first statement.
    pub fn shown(&self) -> Result<&L::Snapshot> {
        self.view()
    }

    /// Whether it has seen anything yet.
    pub fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Whether it has written anything.
    pub fn has_written(&self) -> bool {
        !self.writes.is_empty() || !self.builds.is_empty()
    }

    /// Whether somebody may ask later what became of it.
    pub fn is_asked_about(&self) -> bool {
        self.asked.is_some() || self.options.flight.is_some()
    }

    /// Whether rows of the group have to stay locked until it is decided, as after a look at a foreign
    /// key.
    pub fn holds_rows(&self) -> bool {
        self.locks.holds_rows()
    }

    /// What a snapshot shows of what was committed across groups is owed at once: it may be that rows
    /// are gone.
    pub(super) fn owe_shown(&mut self) -> Result<()> {
        let view = self.view()?;
        let (at, newest) = (view.position(), view.newest());
        if newest > at.lsn {
            self.owe(at.term, newest);
        }
        Ok(())
    }
}
