//! Scans: the rows of a table, by its own order or through an index.
//!
//! ```text
//! start     where to look, by the values of the day ([`super::places`]); full keys are looked up at once
//! fill      a batch of stored rows, the first small, so that LIMIT 1 reads little
//! take      a row of the batch: in stages once there are many ([`super::staged`])
//! ```
//! A row has the columns that the scan keeps ([`Scan::kept`]), then the key and the oid of the table where
//! they are asked for.

use base::engine::{Direction, RowBatch, RowLock};
use base::limits::SCAN_BATCH_ROWS;
use base::memory::Reservation;
use base::{Key, KeyRange, Result, TreeId};

use super::cursor::Cursor;
use super::join_filter::JoinFilter;
use super::measure::Removed;
use super::places::{places, Places};
use super::staged::{Stages, Taken};
use super::statistics::counted;
use super::{alternatives, inverted, rows, Exec};
use crate::exec::program::Evaluate;
use crate::state::cursor::{current_row, name_of};
use planner::plan::{Row, Scan};
use types::Datum;

/// The rows of a [`Scan`].
pub(super) struct ScanCursor<'p> {
    scan: &'p Scan,
    started: bool,
    /// Where it looks next, and where then.
    rest: Option<KeyRange>,
    places: Places,
    batch: RowBatch,
    at: usize,
    row: Vec<u8>,
    /// How many rows the next batch asks for; grows, so that LIMIT 1 reads little.
    ask: usize,
    /// How whatever it gives is then locked.
    locks: Option<RowLock>,
    removed: Removed,
    /// The keys of the rows, where they are known first.
    keys: Option<(std::vec::IntoIter<Key>, Reservation)>,
    /// How rows are tested once there are many.
    stages: Option<Stages<'p>>,
    /// What joins above know, until there are stages.
    filters: Vec<JoinFilter>,
    /// A row as wide as the table's, of which only some columns are kept.
    wide: Row,
}

/// How many rows a scan asks for first.
const ASKED_FIRST: usize = 16;

/// The same where another node has the rows: few more of them cost less than another message.
const ASKED_FIRST_FAR: usize = SCAN_BATCH_ROWS / 2;

/// A scan that asks for so many rows at once has been through enough to test rows in stages.
const STAGED_FROM: usize = 64;

impl<'p> ScanCursor<'p> {
    /// A cursor over the rows of a scan.
    pub(super) fn new(scan: &'p Scan) -> ScanCursor<'p> {
        ScanCursor {
            scan,
            started: false,
            rest: None,
            places: Places::default(),
            batch: RowBatch::default(),
            at: 0,
            row: Vec::new(),
            ask: ASKED_FIRST,
            locks: None,
            removed: Removed::default(),
            keys: None,
            stages: None,
            filters: Vec::new(),
            wide: Row::new(),
        }
    }

    /// A cursor over rows that are then locked at this strength.
    pub(super) fn to_lock(scan: &'p Scan, strength: RowLock) -> ScanCursor<'p> {
        ScanCursor {
            locks: Some(strength),
            ..ScanCursor::new(scan)
        }
    }

    /// Where to look; a full key is looked up at once.
    fn start(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        let scan = self.scan;
        if let Some(cursor) = &scan.current_of {
            let name = name_of(cursor, cx.params)?;
            let cursors = &cx.host.shared().cursors;
            let key = current_row(cursors, cx.catalog, name, &scan.table)?;
            let keys: Vec<Key> = key.into_iter().collect();
            self.keys = Some((keys.into_iter(), Reservation::of("The row of a cursor")));
            return Ok(());
        }
        if let Some(access) = &scan.inverted {
            let found = inverted::row_keys(access, &scan.table, cx)?;
            self.keys = found.map(|(keys, held)| (Vec::from_iter(keys).into_iter(), held));
            if let Some((keys, _)) = &self.keys {
                let index = scan.table.indexes[access.index].oid;
                let counting = &mut cx.host.session().counting;
                counting.scanned(index);
                counting.read(index, keys.len(), true);
                return Ok(());
            }
        }
        if !scan.alternatives.is_empty() {
            let (keys, held) = alternatives::row_keys(scan, cx)?;
            self.keys = Some((keys.into_iter(), held));
            return Ok(());
        }
        let counted = counted(scan).0;
        let (first, others) = places(scan, cx)?;
        self.places = others;
        let Some(range) = first else {
            return Ok(());
        };
        let whole_key = scan.index.is_none()
            && scan
                .by_index()
                .is_some_and(|index| index.columns.len() == scan.access.equal.len());
        if whole_key && scan.access.among.is_some() {
            let (keys, held) = std::mem::take(&mut self.places).into_keys();
            let keys: Vec<Key> = std::iter::once(range.start).chain(keys).collect();
            self.keys = Some((keys.into_iter(), held));
            return Ok(());
        }
        if !whole_key {
            cx.host.session().counting.scanned(counted);
            self.rest = Some(range);
            if cx.host.txn().is_far(self.tree()) {
                self.ask = ASKED_FIRST_FAR;
            }
            return Ok(());
        }
        let (tree, key, row) = (scan.table.tree, &range.start, &mut self.row);
        let found = match self.locks {
            Some(strength) => cx.host.txn().get_to_lock(tree, key, strength, row)?,
            None => cx.host.txn().get(tree, key, row)?,
        };
        cx.host.session().counting.looked_up(counted, found);
        if found {
            self.batch.push(&range.start, &self.row);
        }
        Ok(())
    }

    /// What it goes through: its table, or the index that it goes by.
    fn tree(&self) -> TreeId {
        match self.scan.index {
            Some(place) => self.scan.table.indexes[place].tree,
            None => self.scan.table.tree,
        }
    }

    fn direction(&self) -> Direction {
        match self.scan.backward {
            true => Direction::Backward,
            false => Direction::Forward,
        }
    }

    /// The next rows of those whose keys are known.
    fn fill_by_keys(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        let Some((keys, _)) = &mut self.keys else {
            return Ok(false);
        };
        let tree = self.scan.table.tree;
        let is_far = cx.host.txn().is_far(tree);
        let most = if is_far { SCAN_BATCH_ROWS } else { 1 };
        (self.at, self.batch) = (0, RowBatch::default());
        if is_far {
            let ahead = keys.as_slice();
            let ahead = &ahead[..ahead.len().min(most)];
            cx.host.txn().read_ahead(tree, ahead)?;
        }
        let by_list = self.scan.access.among.map(|_| counted(self.scan).0);
        for key in keys.by_ref().take(most) {
            cx.tick()?;
            let (txn, row) = (cx.host.txn(), &mut self.row);
            let found = match self.locks {
                // Those of another node are locked many at a time, once they were read.
                Some(strength) if !is_far => txn.get_to_lock(tree, &key, strength, row)?,
                _ => txn.get(tree, &key, row)?,
            };
            if let Some(index) = by_list {
                cx.host.session().counting.looked_up(index, found);
            }
            if found {
                self.batch.push(&key, &self.row);
            }
        }
        Ok(!keys.as_slice().is_empty() || !self.batch.is_empty())
    }

    /// Reads the rows that the entries of a batch lead to, where another node has them.
    fn read_ahead(&self, place: usize, cx: &mut Exec<'_>) -> Result<()> {
        let table = &self.scan.table;
        if self.batch.len() < 2 || !cx.host.txn().is_far(table.tree) {
            return Ok(());
        }
        let index = &table.indexes[place];
        let keys = self.batch.iter().map(|entry| {
            let key = rows::row_key_of_entry(table, index, entry)?;
            Ok(key.to_vec())
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        cx.host.txn().read_ahead(table.tree, &keys)
    }

    fn fill(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        if self.keys.is_some() {
            return self.fill_by_keys(cx);
        }
        let range = match self.rest.take() {
            Some(range) => range,
            None => {
                let Some(range) = self.places.next() else {
                    return Ok(false);
                };
                let counted = counted(self.scan).0;
                cx.host.session().counting.scanned(counted);
                range
            }
        };
        let (tree, direction) = (self.tree(), self.direction());
        self.rest = cx
            .host
            .txn()
            .scan(tree, &range, direction, self.ask, &mut self.batch)?;
        if let Some(place) = self.scan.index {
            self.read_ahead(place, cx)?;
        }
        let (counted, by_index) = counted(self.scan);
        let counting = &mut cx.host.session().counting;
        counting.read(counted, self.batch.len(), by_index);
        self.ask = (self.ask * 2).min(SCAN_BATCH_ROWS);
        self.at = 0;
        if self.ask >= STAGED_FROM && self.stages.is_none() {
            let (scan, needed) = (self.scan, self.scan.needed.borrow());
            self.stages = Stages::of(scan, &needed);
            if let Some(stages) = &mut self.stages {
                self.filters.drain(..).for_each(|one| stages.restrict(one));
            }
        }
        Ok(true)
    }

    /// Takes the next row of the batch; whether it is there, since an index may lead to none, and
    /// meets the conditions.
    fn take(&mut self, cx: &mut Exec<'_>, row: &mut Row) -> Result<bool> {
        let scan = self.scan;
        let (mut key, mut bytes) = self.batch.get(self.at);
        self.at += 1;
        if let Some(place) = scan.index {
            key = rows::row_key_of_entry(&scan.table, &scan.table.indexes[place], (key, bytes))?;
            if !cx.host.txn().get(scan.table.tree, key, &mut self.row)? {
                return Ok(false);
            }
            bytes = &self.row;
        }
        let taken = match &mut self.stages {
            Some(stages) => stages.take(bytes, row, cx)?,
            None => match scan.kept {
                None => whole(scan, (key, bytes), row, cx)?,
                Some(_) => whole(scan, (key, bytes), &mut self.wide, cx)?,
            },
        };
        match taken {
            Taken::Whole => {}
            Taken::NoneByCondition => {
                self.removed.by_condition += 1;
                return Ok(false);
            }
            Taken::NoneByJoin => {
                self.removed.by_join += 1;
                return Ok(false);
            }
        }
        match (&scan.kept, &self.stages) {
            (_, Some(_)) => put_hidden(scan, key, row),
            (Some(kept), None) => {
                row.clear();
                let hidden = scan.table.columns.len()..self.wide.len();
                let places = kept.iter().copied().chain(hidden);
                row.extend(
                    places.map(|place| std::mem::replace(&mut self.wide[place], Datum::Null)),
                );
            }
            (None, None) => {}
        }
        Ok(true)
    }
}

/// Makes a row of stored bytes with what follows its columns, and tests it.
fn whole(
    scan: &Scan,
    (key, bytes): (&[u8], &[u8]),
    row: &mut Row,
    cx: &mut Exec<'_>,
) -> Result<Taken> {
    let needed = &*scan.needed.borrow();
    let width = scan.table.columns.len();
    if row.len() == width {
        rows::decode_over(&scan.table, needed, bytes, row)?;
    } else {
        row.clear();
        rows::decode_into(&scan.table, needed, bytes, row)?;
    }
    put_hidden(scan, key, row);
    Ok(match &scan.filter {
        Some(filter) if !filter.test(cx, row)? => Taken::NoneByCondition,
        _ => Taken::Whole,
    })
}

/// Puts what follows its columns behind a row.
fn put_hidden(scan: &Scan, key: &[u8], row: &mut Row) {
    if scan.with_key {
        row.push(Datum::bytea(key));
    }
    if scan.with_oid {
        row.push(Datum::Oid(scan.table.oid));
    }
}

impl Cursor for ScanCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let mut row = Row::new();
        Ok(self.next_into(cx, &mut row)?.then_some(row))
    }

    fn next_into(&mut self, cx: &mut Exec<'_>, row: &mut Row) -> Result<bool> {
        if !self.started {
            self.started = true;
            self.start(cx)?;
        }
        loop {
            while self.at >= self.batch.len() {
                if !self.fill(cx)? {
                    return Ok(false);
                }
            }
            cx.tick()?;
            if self.take(cx, row)? {
                return Ok(true);
            }
        }
    }

    fn begin_ahead(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        let scan = self.scan;
        let has_one_way = scan.inverted.is_none() && scan.alternatives.is_empty();
        let is_plain = scan.current_of.is_none() && has_one_way;
        let is_free = scan.by_index().is_none_or(|_| scan.access.is_everything());
        if self.started || !is_plain || !is_free || !cx.host.txn().is_far(self.tree()) {
            return Ok(());
        }
        self.started = true;
        self.start(cx)?;
        if let Some(range) = &self.rest {
            self.ask = SCAN_BATCH_ROWS;
            let (tree, direction) = (self.tree(), self.direction());
            cx.host.txn().scan_ahead(tree, range, direction)?;
        }
        Ok(())
    }

    fn rewind(&mut self) -> bool {
        (self.started, self.at, self.ask) = (false, 0, ASKED_FIRST);
        (self.rest, self.keys) = (None, None);
        self.places = Places::default();
        self.batch.clear();
        true
    }

    fn restrict(&mut self, filter: &JoinFilter) {
        let of_table = filter.moved(|place| self.scan.table_column(place));
        match (&mut self.stages, of_table) {
            (Some(stages), Some(filter)) => stages.restrict(filter),
            (None, Some(filter)) => self.filters.push(filter),
            (_, None) => {}
        }
    }

    fn removed(&self) -> Removed {
        self.removed
    }
}
