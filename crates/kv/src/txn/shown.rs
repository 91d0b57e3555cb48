//! What a statement sees of transactions across groups ([`crate::group`], *standing*).

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
            _ => self.snapshot = Some(snapshot),
        }
        self.locks.bind(term)?;
        self.owe_shown()?;
        self.next_command();
        Ok(())
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
