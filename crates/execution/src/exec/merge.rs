//! MERGE at work.
//!
//! ```text
//! row of the join     the target's columns come first; with the key of a row of the target: matched, else not
//! matched             first clause whose AND holds ─► lock the row; if it has changed meanwhile: does ON
//!                     still hold? then choose again, else it is not matched
//! not matched         first clause whose AND holds
//! ```
//! What a clause does is done by the cursor of an INSERT, UPDATE or DELETE.
//!
//! # Invariants
//! - A row of the target is changed once: if the source has two rows for it, 21000.
//!
//! Source: PostgreSQL 15 manual, MERGE and section 13.2.1.

use base::engine::{LockWait, RowLock};
use base::{Error, Result, SqlState};

use super::cursor::{open, Cursor};
use super::measure::Measuring;
use super::new_row::check_old_row;
use super::trigger::OwnRows;
use super::update::{DeleteCursor, UpdateCursor};
use super::write::{begin, end, lock, strength, InsertCursor, Stage};
use super::{partition, Exec};
use crate::exec::program::Evaluate;
use catalog::trigger::Events;
use planner::plan::{Merge, MergeAction, MergeKind, Row, Target};
use types::Datum;

/// A clause and what carries it out.
struct Action<'p> {
    action: &'p MergeAction,
    doer: Doer<'p>,
}

enum Doer<'p> {
    Nothing,
    Insert(InsertCursor<'p>),
    Update(UpdateCursor<'p>),
    Delete(DeleteCursor<'p>),
}

impl<'p> Action<'p> {
    fn of(action: &'p MergeAction) -> Action<'p> {
        let doer = match &action.kind {
            MergeKind::Nothing => Doer::Nothing,
            MergeKind::Insert(insert, _) => Doer::Insert(InsertCursor::over(insert)),
            MergeKind::Update(update) => Doer::Update(UpdateCursor::new(update, None)),
            MergeKind::Delete(delete) => Doer::Delete(DeleteCursor::new(delete, None)),
        };
        Action { action, doer }
    }

    /// What it writes to, and as what, unless it does nothing.
    fn target(&self) -> Option<(&'p Target, Events)> {
        match &self.action.kind {
            MergeKind::Nothing => None,
            MergeKind::Insert(insert, _) => Some((&insert.target, Events::INSERT)),
            MergeKind::Update(update) => Some((&update.target, Events::UPDATE)),
            MergeKind::Delete(delete) => Some((&delete.target, Events::DELETE)),
        }
    }

    /// How the row must be locked that it changes.
    fn strength(&self) -> RowLock {
        match &self.action.kind {
            MergeKind::Update(update) => {
                strength(update.sets_keys || update.target.routes.is_some())
            }
            _ => RowLock::Update,
        }
    }
}

/// The first of the clauses that a row comes to.
fn choose(actions: &[Action<'_>], row: &[Datum], cx: &mut Exec<'_>) -> Result<Option<usize>> {
    for (place, one) in actions.iter().enumerate() {
        match &one.action.condition {
            Some(condition) if !condition.test(cx, row)? => {}
            _ => return Ok(Some(place)),
        }
    }
    Ok(None)
}

/// 21000.
fn second_time() -> Error {
    Error::new(
        SqlState::CARDINALITY_VIOLATION,
        "MERGE command cannot affect row a second time",
    )
    .with_hint("Ensure that not more than one source row matches any one target row.")
}

/// A MERGE, which gives no rows.
pub(super) struct MergeCursor<'p> {
    merge: &'p Merge,
    input: Box<dyn Cursor + 'p>,
    matched: Vec<Action<'p>>,
    others: Vec<Action<'p>>,
    /// How far the triggers of the statement are, for INSERT, UPDATE and DELETE.
    stages: [Stage; 3],
    own: OwnRows,
}

const EVENTS: [Events; 3] = [Events::INSERT, Events::UPDATE, Events::DELETE];

impl<'p> MergeCursor<'p> {
    /// A cursor that carries out such a MERGE.
    pub(super) fn new(merge: &'p Merge, measures: Measuring<'_>) -> MergeCursor<'p> {
        MergeCursor {
            merge,
            input: open(&merge.input, measures),
            matched: merge.matched.iter().map(Action::of).collect(),
            others: merge.others.iter().map(Action::of).collect(),
            stages: Default::default(),
            own: OwnRows::default(),
        }
    }

    /// What is written to as that, if anything is.
    fn target_of(&self, event: Events) -> Option<&'p Target> {
        let actions = self.matched.iter().chain(&self.others);
        let mut targets = actions.filter_map(Action::target);
        targets.find(|known| known.1 == event).map(|known| known.0)
    }

    /// Does what the statement says for a row of the join.
    fn write(&mut self, mut row: Row, cx: &mut Exec<'_>) -> Result<()> {
        let width = self.merge.table.columns.len();
        if !row[width].is_null() {
            match self.settle(&mut row, cx)? {
                Settled::Passed => return Ok(()),
                Settled::Matched(place) => return self.change(place, row, cx),
                Settled::Other => {
                    row[..self.merge.width].fill(Datum::Null);
                }
            }
        }
        let Some(place) = choose(&self.others, &row, cx)? else {
            return Ok(());
        };
        let one = &mut self.others[place];
        if let (Doer::Insert(cursor), MergeKind::Insert(_, values)) =
            (&mut one.doer, &one.action.kind)
        {
            let new = values.iter().map(|value| value.eval(cx, &row));
            let new = new.collect::<Result<Row>>()?;
            if cursor.write(new, cx)?.is_some() {
                cx.note_written();
            }
        }
        Ok(())
    }

    /// Locks the row that is matched, as the clause that it comes to needs it.
    fn settle(&self, row: &mut Row, cx: &mut Exec<'_>) -> Result<Settled> {
        let merge = self.merge;
        let mut held = None;
        loop {
            let Some(place) = choose(&self.matched, row, cx)? else {
                return Ok(Settled::Passed);
            };
            let one = &self.matched[place];
            let Some((target, _)) = one.target() else {
                return Ok(Settled::Passed);
            };
            check_old_row(&merge.table, &one.action.old_checks, row, cx)?;
            let wanted = one.strength();
            if held.is_some_and(|held| held >= wanted) {
                return Ok(Settled::Matched(place));
            }
            self.check_once(target, row, cx)?;
            let recheck = merge.recheck.as_ref();
            let locked = match &target.routes {
                None => lock(&merge.table, 0, row, wanted, LockWait::Block, recheck, cx)?,
                Some(routes) => {
                    let how = (wanted, LockWait::Block, recheck);
                    partition::lock(&merge.table, &routes.partitions, 0, row, how, cx)?
                }
            };
            match locked {
                None => return Ok(Settled::Other),
                Some(locked) if !locked.is_changed => return Ok(Settled::Matched(place)),
                Some(_) => held = Some(wanted),
            }
        }
    }

    /// Refuses a row that the statement has changed already.
    fn check_once(&self, target: &Target, row: &Row, cx: &mut Exec<'_>) -> Result<()> {
        let width = self.merge.table.columns.len();
        let Datum::Bytea(key) = &row[width] else {
            return Ok(());
        };
        let (tree, triggers) = match &target.routes {
            None => (target.table.tree, &target.triggers),
            Some(routes) => {
                let leaf = partition::target_of(routes, row, width)?;
                (leaf.table.tree, &leaf.triggers)
            }
        };
        let is_again = match triggers {
            None => cx.host.txn().is_written_by_command(tree, key),
            Some(_) => self.own.has(tree, key, cx)?,
        };
        match is_again {
            true => Err(second_time()),
            false => Ok(()),
        }
    }

    /// Has the clause change the row, which is locked.
    fn change(&mut self, place: usize, row: Row, cx: &mut Exec<'_>) -> Result<()> {
        let key = row[self.merge.table.columns.len()].clone();
        let done = match &mut self.matched[place].doer {
            Doer::Update(cursor) => {
                let done = cursor.write(row, cx)?.is_some();
                if done {
                    cx.note_written();
                }
                done
            }
            // It counts what it deletes.
            Doer::Delete(cursor) => cursor.write(row, cx)?.is_some(),
            Doer::Insert(_) | Doer::Nothing => false,
        };
        if let (true, Datum::Bytea(key)) = (done, &key) {
            self.own.note(key, cx)?;
        }
        Ok(())
    }
}

/// What has come of a row that was matched.
enum Settled {
    /// No clause does anything for it.
    Passed,
    /// It is locked for this clause.
    Matched(usize),
    /// It is gone, or is not matched any more.
    Other,
}

impl Cursor for MergeCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        for (place, event) in EVENTS.into_iter().enumerate() {
            if let Some(target) = self.target_of(event) {
                begin(target, event, &mut self.stages[place], cx)?;
            }
        }
        while let Some(mut row) = self.input.next(cx)? {
            cx.tick()?;
            row.rotate_right(self.merge.width);
            self.write(row, cx)?;
        }
        for (place, event) in EVENTS.into_iter().enumerate().rev() {
            if let Some(target) = self.target_of(event) {
                end(target, event, &mut self.stages[place], cx)?;
            }
        }
        Ok(None)
    }
}
