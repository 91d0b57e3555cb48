//! The statements that rules make of one, one after the other.
//!
//! Each sees what those before it have done, and what it sets off is carried out before the next begins, as
//! with statements of a session; all of them have one snapshot.

use std::rc::Rc;

use base::Result;

use super::cursor::{open, Cursor};
use super::{foreign, trigger, Exec};
use planner::plan::{Plan, Rewritten, Row};

/// The rows that one of the statements gives; it runs them all.
pub(super) struct RewrittenCursor<'p> {
    rewritten: &'p Rewritten,
    at: usize,
    running: Option<Running<'p>>,
}

/// The statement at work, and how many rows had been written before it.
struct Running<'p> {
    rows: Box<dyn Cursor + 'p>,
    written: u64,
}

impl<'p> RewrittenCursor<'p> {
    pub(super) fn new(rewritten: &'p Rewritten) -> RewrittenCursor<'p> {
        RewrittenCursor {
            rewritten,
            at: 0,
            running: None,
        }
    }

    fn begin(&self, statement: &'p Rc<Plan>, cx: &mut Exec<'_>) -> Running<'p> {
        if self.at > 0 {
            cx.host.txn().next_command();
        }
        let measures = cx.measures.clone();
        Running {
            rows: open(statement, measures.as_ref()),
            written: cx.written,
        }
    }

    /// The statement at work has ended: what it has set off is carried out.
    fn end(&mut self, written: u64, cx: &mut Exec<'_>) -> Result<()> {
        foreign::finish(cx)?;
        cx.triggers = trigger::Underway::default();
        if self.rewritten.tagged != Some(self.at) {
            cx.written_beside += cx.written - written;
            cx.written = written;
        }
        self.at += 1;
        Ok(())
    }
}

impl Cursor for RewrittenCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        while let Some(statement) = self.rewritten.statements.get(self.at) {
            let mut running = match self.running.take() {
                Some(running) => running,
                None => self.begin(statement, cx),
            };
            match running.rows.next(cx)? {
                Some(row) => {
                    self.running = Some(running);
                    if self.rewritten.giving == Some(self.at) {
                        return Ok(Some(row));
                    }
                }
                None => self.end(running.written, cx)?,
            }
        }
        Ok(None)
    }
}
