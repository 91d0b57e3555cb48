//! UPDATE and DELETE, row by row: each is locked, looked at again if it has changed, and written.

use base::engine::{LockWait, RowLock};
use base::Result;

use super::ahead::LockedAhead;
use super::cursor::{open, open_to_lock, Cursor};
use super::measure::Measuring;
use super::new_row::{check_row, check_views};
use super::trigger::OwnRows;
use super::write::{
    assign, begin, end, instead, lock, lock_moved, moves_keys, replace_row, returned, strength,
    Stage,
};
use super::{entries, foreign, long, partition, trigger, Exec};
use catalog::trigger::{Events, Timing};
use catalog::RelationKind;
use planner::plan::{Delete, Row, Update};
use types::Datum;

/// The rows that an UPDATE returns.
pub struct UpdateCursor<'p> {
    update: &'p Update,
    input: LockedAhead<'p>,
    stage: Stage,
    own: OwnRows,
}

impl<'p> UpdateCursor<'p> {
    /// A cursor over what such an UPDATE returns.
    pub fn new(update: &'p Update, measures: Measuring<'_>) -> UpdateCursor<'p> {
        let is_view = update.target.table.kind == RelationKind::View;
        // Where keys may move, a row has to be looked at before it is known how to lock it.
        let input = match update.sets_keys || is_view {
            true => open(&update.input, measures),
            false => open_to_lock(&update.input, strength(false), measures),
        };
        let (plan, target) = (&update.input, &update.target);
        let known = (!update.sets_keys).then(|| strength(false));
        UpdateCursor {
            update,
            input: LockedAhead::new((plan, input), target, known),
            stage: Stage::Fresh,
            own: OwnRows::default(),
        }
    }

    pub(super) fn write(&mut self, mut row: Row, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let update = self.update;
        let table = &update.target.table;
        let width = table.columns.len();
        let triggers = update.target.triggers.as_ref();
        if let Some(routes) = &update.target.routes {
            return partition::update(update, routes, row, &mut self.own, cx);
        }
        if table.kind == RelationKind::View {
            let new = self.new_row(&row, cx)?;
            let new = instead(&update.target, Events::UPDATE, &row, Some(new), cx)?;
            let Some(new) = new.flatten() else {
                return Ok(None);
            };
            check_views(&update.target, &new, cx)?;
            row[..width].clone_from_slice(&new);
            return Ok(Some(row));
        }
        if let (Some(_), Datum::Bytea(key)) = (triggers, &row[width]) {
            if self.own.has(table.tree, key, cx)? {
                return Ok(None);
            }
        }
        let mut new = match update.sets_keys {
            true => Some(self.new_row(&row, cx)?),
            false => None,
        };
        loop {
            let moves = |new: &Row| moves_keys(table, &row[..width], new);
            let strength = strength(new.as_ref().is_some_and(moves));
            let (wait, recheck) = (LockWait::Block, update.recheck.as_ref());
            let Some(locked) = lock(table, 0, &mut row, strength, wait, recheck, cx)? else {
                return Ok(None);
            };
            let new_row = match new.take().filter(|_| !locked.is_changed) {
                Some(new) => new,
                None => self.new_row(&row, cx)?,
            };
            if strength < RowLock::Update && moves_keys(table, &row[..width], &new_row) {
                // What came of the row meanwhile makes its keys move.
                new = Some(new_row);
                continue;
            }
            let new_row = match triggers {
                None => new_row,
                Some(_) => match self.triggered(&locked.key, &row, new_row, strength, cx)? {
                    Some(new_row) => new_row,
                    None => return Ok(None),
                },
            };
            let key = replace_row(&update.target, &locked.key, &row[..width], &new_row, cx)?;
            if triggers.is_some() {
                self.own.note(&locked.key, cx)?;
                self.own.note(&key, cx)?;
            }
            row[..width].clone_from_slice(&new_row);
            return Ok(Some(row));
        }
    }

    /// What becomes of a row, of which the first columns are the table's.
    fn new_row(&self, row: &Row, cx: &mut Exec<'_>) -> Result<Row> {
        let update = self.update;
        let mut new = row[..update.target.table.columns.len()].to_vec();
        assign(&update.set, row, &mut new, cx)?;
        // Those that triggers may still change are checked after that.
        if update.target.triggers.is_none() {
            check_row(&update.target, &update.target.policy_checks, &mut new, cx)?;
        }
        Ok(new)
    }

    /// What triggers make of a row that is locked, checked; none if it is to be passed over.
    fn triggered(
        &self,
        key: &[u8],
        row: &Row,
        new: Row,
        held: RowLock,
        cx: &mut Exec<'_>,
    ) -> Result<Option<Row>> {
        let target = &self.update.target;
        let Some(triggers) = &target.triggers else {
            return Ok(Some(new));
        };
        let old = &row[..target.table.columns.len()];
        let (event, updated) = (Events::UPDATE, &triggers.updated);
        let before = trigger::before(triggers, event, updated, Some(old), new, cx)?;
        let Some(mut new) = before else {
            return Ok(None);
        };
        trigger::check_untouched(target.table.tree, key, "updated", cx)?;
        check_row(target, &target.policy_checks, &mut new, cx)?;
        lock_moved(&target.table, key, old, &new, held, cx)?;
        Ok(Some(new))
    }
}

impl Cursor for UpdateCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        begin(&self.update.target, Events::UPDATE, &mut self.stage, cx)?;
        while let Some(row) = self.input.next(cx)? {
            let Some(row) = self.write(row, cx)? else {
                continue;
            };
            cx.note_written();
            if let Some(row) = returned(&self.update.target, &row, cx)? {
                return Ok(Some(row));
            }
        }
        end(&self.update.target, Events::UPDATE, &mut self.stage, cx)?;
        Ok(None)
    }
}

/// The rows that a DELETE returns.
pub struct DeleteCursor<'p> {
    delete: &'p Delete,
    input: LockedAhead<'p>,
    stage: Stage,
    own: OwnRows,
}

impl<'p> DeleteCursor<'p> {
    /// A cursor over what such a DELETE returns.
    pub fn new(delete: &'p Delete, measures: Measuring<'_>) -> DeleteCursor<'p> {
        let input = match delete.target.table.kind {
            RelationKind::View => open(&delete.input, measures),
            _ => open_to_lock(&delete.input, RowLock::Update, measures),
        };
        DeleteCursor {
            delete,
            input: LockedAhead::new(
                (&delete.input, input),
                &delete.target,
                Some(RowLock::Update),
            ),
            stage: Stage::Fresh,
            own: OwnRows::default(),
        }
    }

    /// What triggers say of a row that is locked: whether it is to be deleted.
    fn triggered(&mut self, key: &[u8], row: &Row, cx: &mut Exec<'_>) -> Result<bool> {
        let target = &self.delete.target;
        let Some(triggers) = &target.triggers else {
            return Ok(true);
        };
        let old = &row[..target.table.columns.len()];
        let timing = (Timing::Before, Events::DELETE);
        if trigger::row(triggers, timing, &[], Some(old), None, cx)?.is_none() {
            return Ok(false);
        }
        trigger::check_untouched(target.table.tree, key, "deleted", cx)?;
        self.own.note(key, cx)?;
        Ok(true)
    }
}

impl DeleteCursor<'_> {
    /// Deletes a row, and what RETURNING shows of it; none if it is passed over.
    pub(super) fn write(&mut self, mut row: Row, cx: &mut Exec<'_>) -> Result<Option<Option<Row>>> {
        let table = &self.delete.target.table;
        if let Some(routes) = &self.delete.target.routes {
            let deleted = partition::delete(self.delete, routes, row, &mut self.own, cx)?;
            let Some((row, old)) = deleted else {
                return Ok(None);
            };
            cx.note_written();
            let shown = returned(&self.delete.target, &row, cx)?;
            old.forget(cx)?;
            return Ok(Some(shown));
        }
        let triggers = self.delete.target.triggers.as_ref();
        if table.kind == RelationKind::View {
            if instead(&self.delete.target, Events::DELETE, &row, None, cx)?.is_none() {
                return Ok(None);
            }
            cx.note_written();
            return returned(&self.delete.target, &row, cx).map(Some);
        }
        if let (Some(_), Datum::Bytea(key)) = (triggers, &row[table.columns.len()]) {
            if self.own.has(table.tree, key, cx)? {
                return Ok(None);
            }
        }
        let recheck = self.delete.recheck.as_ref();
        let wait = LockWait::Block;
        let Some(locked) = lock(table, 0, &mut row, RowLock::Update, wait, recheck, cx)? else {
            return Ok(None);
        };
        let key = locked.key;
        if triggers.is_some() && !self.triggered(&key, &row, cx)? {
            return Ok(None);
        }
        cx.host.txn().delete(table.tree, &key)?;
        cx.host.session().counting.deleted(table.oid);
        let old = &row[..table.columns.len()];
        entries::delete(&self.delete.target.entries, table, &key, old, cx)?;
        let foreign_keys = |cx: &mut Exec<'_>| match &self.delete.target.rules {
            Some(rules) => foreign::deleted(rules, 0, old, cx),
            None => Ok(()),
        };
        match triggers {
            None => foreign_keys(cx)?,
            Some(triggers) => {
                let rows = (Some(old), None);
                trigger::after(triggers, Events::DELETE, &[], rows, cx, foreign_keys)?;
            }
        }
        cx.note_written();
        // What is returned may have to be read first.
        let shown = returned(&self.delete.target, &row, cx)?;
        long::forget(table, &row[..table.columns.len()], None, cx.host.txn())?;
        Ok(Some(shown))
    }
}

impl Cursor for DeleteCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        begin(&self.delete.target, Events::DELETE, &mut self.stage, cx)?;
        while let Some(row) = self.input.next(cx)? {
            if let Some(Some(row)) = self.write(row, cx)? {
                return Ok(Some(row));
            }
        }
        end(&self.delete.target, Events::DELETE, &mut self.stage, cx)?;
        Ok(None)
    }
}
