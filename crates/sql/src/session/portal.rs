//! Queries whose rows are given piece by piece: portals with a row limit, and cursors.
//!
//! A [`Running`] query keeps its plan, its cursor, what it has computed once, and under which view
//! of its transaction it reads: other statements may run in between, and it goes on seeing what it
//! saw when it began.
//!
//! ```text
//! Execute 2   begin_statement, keep_view │ row row │ ── suspended
//! UPDATE …    a statement of its own, with a newer snapshot
//! Execute 2   swap_view                  │ row row │ swap_view back
//! ```
//!
//! # Invariants
//! - A query reads only in the transaction that it began in.

use std::cell::RefCell;
use std::rc::Rc;

use base::engine::ViewId;
use base::{Debt, Error, Result, SqlState, TxnId};

use super::counted::Begun;
use super::in_use::Held;
use super::run::Output;
use super::Session;
use execution::exec::{Computed, Cursor, Exec, KeptCursor};
use execution::state::prepared::Planned;
use execution::state::RowView;
use execution::system::Relations;
use types::Datum;

/// Views whose queries are gone; the session gives them up when it runs the next one.
pub(super) type Forgotten = Rc<RefCell<Vec<(TxnId, ViewId)>>>;

/// A query whose rows are given piece by piece.
pub(super) struct Running {
    cursor: KeptCursor,
    computed: Option<Computed>,
    held: Rc<Held>,
    params: Rc<[Datum]>,
    txn: TxnId,
    view: ViewId,
    forgotten: Forgotten,
    /// What stands behind the columns of the row that it has given last.
    hidden: Vec<Datum>,
    /// What was counted of it, if that is to be counted once it has given its last row.
    pub counted: Option<Begun>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Running({:?} of {:?})", self.view, self.txn)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let forgotten = (self.txn, self.view);
        self.forgotten.borrow_mut().push(forgotten);
    }
}

impl Running {
    /// It has failed: what it reads is no longer in use.
    pub fn let_go(&mut self) {
        let planned = self.held.planned.clone();
        self.held = Rc::new(Held { planned });
    }

    /// What stands behind the columns of the row that it has given last.
    pub fn hidden(&self) -> &[Datum] {
        &self.hidden
    }

    /// Begins again with the first row.
    pub fn restart(&mut self) {
        self.cursor.restart();
        self.computed = None;
    }
}

/// How far reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// Rows given.
    pub rows: u64,
    /// Whether there are no more.
    pub ended: bool,
}

impl Session {
    /// Begins a query whose locks are taken.
    ///
    /// # Errors
    /// 42501.
    pub(super) fn start_query(
        &mut self,
        planned: Rc<Planned>,
        params: Rc<[Datum]>,
    ) -> Result<Running> {
        self.forget_views();
        let cursor = KeptCursor::open(self.permitted(&planned)?);
        let durability = self.shared.settings.parsed().durability;
        self.owed.add(&planned.catalog.debt, durability);
        let open = self
            .open
            .as_mut()
            .ok_or_else(|| Error::internal("nothing is open"))?;
        open.begun = true;
        match self.nested.is_empty() {
            true => open.txn.begin_statement()?,
            false => self.begin_statement()?,
        }
        let open = self
            .open
            .as_mut()
            .ok_or_else(|| Error::internal("nothing is open"))?;
        let (txn, view) = (open.txn.id(), open.txn.keep_view()?);
        Ok(Running {
            cursor,
            computed: None,
            held: self.in_use.hold(planned),
            params,
            txn,
            view,
            forgotten: self.forgotten.clone(),
            hidden: Vec::new(),
            counted: None,
        })
    }

    /// Gives up the views of queries that are gone.
    fn forget_views(&mut self) {
        let forgotten = std::mem::take(&mut *self.forgotten.borrow_mut());
        let Some(open) = &mut self.open else {
            return;
        };
        for (txn, view) in forgotten {
            if open.txn.id() == txn {
                open.txn.drop_view(view);
            }
        }
    }

    /// Gives the next rows of a query, at most so many.
    ///
    /// # Errors
    /// What computing them raises; the query is not used after that.
    pub(super) fn read_query(
        &mut self,
        running: &mut Running,
        most: u64,
        output: &mut Output<'_>,
    ) -> Result<Read> {
        if let Output::Sink(sink) = output {
            self.tell(*sink)?;
        }
        let durability = self.shared.settings.parsed().durability;
        let open = self
            .open
            .as_mut()
            .filter(|open| open.txn.id() == running.txn);
        let Some(open) = open else {
            return Err(Error::new(
                SqlState::INVALID_CURSOR_STATE,
                "the query's transaction has ended",
            ));
        };
        open.txn.swap_view(running.view)?;
        if let Some(counted) = &mut running.counted {
            counted.goes_on(&*self.shared.env);
        }
        let planned = running.held.planned.clone();
        let params = running.params.clone();
        let (rows, permit) = running.cursor.parts();
        let eval = self.eval.clone();
        let mut cx = Exec::new(&Relations, self, permit, &eval, &params);
        cx.take_up(running.computed.take().unwrap_or_default());
        let mut told = Debt::NONE;
        let mut read = Read {
            rows: 0,
            ended: false,
        };
        let outcome = loop {
            if read.rows >= most {
                break Ok(());
            }
            let row = match rows.next(&mut cx) {
                Ok(Some(row)) => row,
                Ok(None) => {
                    read.ended = true;
                    break Ok(());
                }
                Err(error) => break Err(error),
            };
            read.rows += 1;
            let shown = planned.types.len().min(row.len());
            if shown < row.len() {
                running.hidden.clear();
                running.hidden.extend_from_slice(&row[shown..]);
            }
            match output {
                Output::Rows(kept, _) => match kept.push(row) {
                    Ok(()) => {}
                    Err(error) => break Err(error),
                },
                Output::Spool(kept) => match kept.push(row) {
                    Ok(()) => {}
                    Err(error) => break Err(error),
                },
                Output::Nowhere | Output::Measured(_) => {}
                Output::Sink(sink) | Output::Copy(sink) => {
                    if *cx.host.txn().debt() != told {
                        told = cx.host.txn().debt().clone();
                        sink.owe(&told, durability);
                    }
                    let given = sink.row(&RowView {
                        values: &row[..shown],
                        types: &planned.types,
                        context: cx.context,
                    });
                    if let Err(error) = given {
                        break Err(error);
                    }
                }
            }
        };
        running.computed = Some(cx.into_computed());
        if let Output::Sink(sink) | Output::Copy(sink) = output {
            self.hand_on_notices(*sink)?;
        }
        // Where leadership was lost meanwhile, everything that the transaction does next says so.
        let swapped = match &mut self.open {
            Some(open) => open.txn.swap_view(running.view),
            None => Ok(()),
        };
        outcome.and(swapped)?;
        if let Some(mut counted) = running.counted.take() {
            counted.rests(&*self.shared.env, read.rows);
            match read.ended {
                true => self.count_run(counted),
                false => running.counted = Some(counted),
            }
        }
        Ok(read)
    }
}
