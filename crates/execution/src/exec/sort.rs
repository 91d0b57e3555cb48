//! ORDER BY: in memory, and beyond `work_mem` by merging sorted runs that lie in scratch space.
//!
//! With LIMIT above it a sort keeps no more than the first rows of those that it has seen, and twice
//! as many for a while: a row that comes behind all of them is forgotten at once.

use std::cmp::Ordering;

use base::{coro, Result};

use super::cursor::{open, Cursor};
use super::Exec;
use crate::exec::program::Evaluate;
use crate::kept::{RowStore, StoredRows};
use crate::spool::{Spill, SpoolReader, SpoolWriter, Spooled};
use planner::plan::{Plan, Row, SortKey};
use types::{self, Datum, TypeId};

/// A column to sort by: place, type, descending, NULLs first.
pub type SortColumn = (usize, TypeId, bool, bool);

/// What comparing two rows counts for, in the units of [`coro::work`].
const COMPARE_WORK: usize = 32;

/// Sorts rows by columns; rows that are equal there keep their order.
///
/// # Errors
/// The pending interrupt.
pub fn sort_rows(rows: &mut [Row], columns: &[SortColumn]) -> Result<()> {
    let order = |a: &Row, b: &Row| {
        coro::work_or_unwind(COMPARE_WORK);
        order(columns, a, b)
    };
    Ok(coro::interruptible(|| rows.sort_by(order))?)
}

#[inline]
fn order(columns: &[SortColumn], a: &Row, b: &Row) -> Ordering {
    for (place, ty, descending, nulls_first) in columns {
        let order = compare(*ty, &a[*place], &b[*place], *descending, *nulls_first);
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn compare(ty: TypeId, a: &Datum, b: &Datum, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if descending => types::compare(ty, b, a),
        (false, false) => types::compare(ty, a, b),
    }
}

/// Sorts rows, in memory as long as they fit.
///
/// ```text
/// push    ▪▪▪▪▪▪▪▪ sorted ─► run 1          scratch space
///         ▪▪▪▪▪▪▪▪ sorted ─► run 2
///         ▪▪▪▪     sorted ─► run 3  ─┐
/// finish  merge of all runs, of many in several rounds ◄┘
/// ```
/// Runs are merged in the order in which they were written, so rows that are equal keep their order.
/// Where only so many are wanted, they are sorted each time twice as many have come, and the others
/// are forgotten.
pub struct Sorter {
    columns: Vec<SortColumn>,
    /// How many columns the rows have that are asked for; what is sorted by may stand behind them.
    width: usize,
    rows: RowStore,
    spill: Spill,
    runs: Vec<Spooled>,
    /// No more rows than these are wanted.
    wanted: usize,
    /// Whether the first of the rows are as many as are wanted, in order: another must come before
    /// the last of them.
    is_full: bool,
}

/// Rows are not cut to those that are wanted before there are so many.
const CUT_MIN: usize = 64;

/// What an error calls the memory of a sort.
const WHAT: &str = "A sort";

impl Sorter {
    /// No rows yet.
    pub fn new(columns: Vec<SortColumn>, width: usize, spill: Spill) -> Sorter {
        Sorter {
            columns,
            width,
            rows: RowStore::of(WHAT),
            spill,
            runs: Vec::new(),
            wanted: usize::MAX,
            is_full: false,
        }
    }

    /// Takes a row.
    ///
    /// # Errors
    /// As [`crate::spool::RowSpool::push`].
    #[inline]
    pub fn push(&mut self, row: Row) -> Result<()> {
        if self.is_full {
            coro::work(COMPARE_WORK)?;
            if order(&self.columns, &row, &self.rows[self.wanted - 1]).is_ge() {
                return Ok(());
            }
        }
        self.rows.push(row)?;
        if self.rows.len() >= self.wanted.saturating_mul(2).max(CUT_MIN) {
            self.cut()?;
        }
        if !self.spill.is_due(self.rows.bytes())? {
            return Ok(());
        }
        // What nobody wants makes room, if it is not so little that the next rows would ask again.
        if self.rows.len() > self.wanted.saturating_add(self.wanted / 4) {
            self.cut()?;
        }
        match self.spill.is_due(self.rows.bytes())? {
            true => self.write_run(),
            false => Ok(()),
        }
    }

    /// Forgets the rows that nobody wants.
    fn cut(&mut self) -> Result<()> {
        if self.rows.len() <= self.wanted {
            return Ok(());
        }
        sort_rows(self.rows.rows_mut(), &self.columns)?;
        self.rows.truncate(self.wanted);
        self.is_full = self.wanted > 0;
        Ok(())
    }

    #[cold]
    fn write_run(&mut self) -> Result<()> {
        sort_rows(self.rows.rows_mut(), &self.columns)?;
        let mut writer = SpoolWriter::new(&self.spill, WHAT);
        for row in self.rows.iter() {
            writer.push(row)?;
        }
        self.runs.push(writer.finish()?);
        self.rows.clear();
        self.is_full = false;
        Ok(())
    }

    /// The rows in order.
    ///
    /// # Errors
    /// As [`Sorter::push`].
    pub fn finish(mut self) -> Result<SortedRows> {
        if self.runs.is_empty() {
            sort_rows(self.rows.rows_mut(), &self.columns)?;
            for row in self.rows.rows_mut() {
                row.truncate(self.width);
            }
            return Ok(SortedRows::InMemory(self.rows.into_iter()));
        }
        if !self.rows.is_empty() {
            self.write_run()?;
        }
        let at_once = self.spill.parts();
        while self.runs.len() > at_once {
            // One round: neighbours become one run.
            let mut runs = std::mem::take(&mut self.runs).into_iter();
            loop {
                let some: Vec<_> = runs.by_ref().take(at_once).collect();
                if some.is_empty() {
                    break;
                }
                self.runs.push(self.merged(some)?);
            }
        }
        let merge = Merge::of(self.runs, self.columns)?;
        let width = self.width;
        Ok(SortedRows::Merged(Box::new((merge, width))))
    }

    fn merged(&self, runs: Vec<Spooled>) -> Result<Spooled> {
        let mut merge = Merge::of(runs, self.columns.clone())?;
        let mut writer = SpoolWriter::new(&self.spill, WHAT);
        let mut row = Row::new();
        while merge.next_into(&mut row)? {
            writer.push(&row)?;
        }
        writer.finish()
    }
}

/// The rows of a [`Sorter`], one after the other.
pub enum SortedRows {
    /// They fit.
    InMemory(StoredRows),
    /// Those of runs, cut to so many columns.
    Merged(Box<(Merge, usize)>),
}

impl SortedRows {
    /// The next row.
    ///
    /// # Errors
    /// As [`crate::spool::SpoolReader::next_into`].
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<Row>> {
        match self {
            SortedRows::InMemory(rows) => Ok(rows.next()),
            SortedRows::Merged(merged) => {
                let (merge, width) = &mut **merged;
                let mut row = Row::new();
                if !merge.next_into(&mut row)? {
                    return Ok(None);
                }
                row.truncate(*width);
                Ok(Some(row))
            }
        }
    }
}

/// A run, and its next row.
struct Source {
    run: Spooled,
    reader: SpoolReader,
    row: Row,
}

/// Several runs as one.
pub struct Merge {
    columns: Vec<SortColumn>,
    sources: Vec<Source>,
    /// The sources that have rows, as a heap: none comes before its parent, at half its place.
    heap: Vec<usize>,
}

impl Merge {
    fn of(runs: Vec<Spooled>, columns: Vec<SortColumn>) -> Result<Merge> {
        let mut merge = Merge {
            columns,
            sources: Vec::with_capacity(runs.len()),
            heap: Vec::with_capacity(runs.len()),
        };
        for (number, run) in runs.into_iter().enumerate() {
            let (mut reader, mut row) = (SpoolReader::new(), Row::new());
            if reader.next_into(&run, &mut row)? {
                merge.heap.push(number);
            }
            merge.sources.push(Source { run, reader, row });
        }
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sink(place);
        }
        Ok(merge)
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        let order = order(&self.columns, &self.sources[a].row, &self.sources[b].row);
        order.then(a.cmp(&b)).is_lt()
    }

    /// Moves a source down to its place.
    fn sink(&mut self, mut place: usize) {
        loop {
            let mut least = 2 * place + 1;
            if least >= self.heap.len() {
                return;
            }
            let other = least + 1;
            if other < self.heap.len() && self.is_before(self.heap[other], self.heap[least]) {
                least = other;
            }
            if !self.is_before(self.heap[least], self.heap[place]) {
                return;
            }
            self.heap.swap(place, least);
            place = least;
        }
    }

    /// The next row; false at the end.
    fn next_into(&mut self, row: &mut Row) -> Result<bool> {
        let Some(first) = self.heap.first().copied() else {
            return Ok(false);
        };
        coro::work(COMPARE_WORK * (usize::BITS - self.heap.len().leading_zeros()) as usize)?;
        let source = &mut self.sources[first];
        std::mem::swap(row, &mut source.row);
        if !source.reader.next_into(&source.run, &mut source.row)? {
            self.heap.swap_remove(0);
            // Nobody reads it any more.
            source.run = Spooled::default();
            source.reader = SpoolReader::new();
        }
        self.sink(0);
        Ok(true)
    }
}

/// The rows of a [`Plan::Sort`].
pub struct SortCursor<'p> {
    plan: &'p Plan,
    input: &'p Plan,
    keys: &'p [SortKey],
    rows: Option<SortedRows>,
    wanted: usize,
}

impl<'p> SortCursor<'p> {
    /// A cursor over the rows of `input`, sorted, for the node `plan`.
    pub fn new(plan: &'p Plan, input: &'p Plan, keys: &'p [SortKey]) -> SortCursor<'p> {
        SortCursor {
            plan,
            input,
            keys,
            rows: None,
            wanted: usize::MAX,
        }
    }

    fn compute(&self, cx: &mut Exec<'_>) -> Result<SortedRows> {
        let mut sorter = Sorter::new(Vec::new(), 0, cx.spill());
        sorter.wanted = self.wanted;
        let mut input = open(self.input, cx.measures.as_ref());
        while let Some(mut row) = input.next(cx)? {
            if sorter.columns.is_empty() {
                let width = row.len();
                let keys = self.keys.iter().enumerate();
                let column = |(place, key): (usize, &SortKey)| {
                    (width + place, key.ty, key.descending, key.nulls_first)
                };
                sorter.columns = keys.map(column).collect();
                sorter.width = width;
            }
            for key in self.keys {
                let value = key.value.eval(cx, &row[..sorter.width])?;
                row.push(value);
            }
            sorter.push(row)?;
        }
        if let Some(measures) = &cx.measures {
            let disk = sorter.runs.iter().map(Spooled::bytes).sum();
            measures.keeps(self.plan, sorter.rows.bytes(), disk);
        }
        sorter.finish()
    }
}

impl Cursor for SortCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let rows = match &mut self.rows {
            Some(rows) => rows,
            None => self.rows.insert(self.compute(cx)?),
        };
        rows.next_row()
    }

    fn at_most(&mut self, rows: u64) {
        self.wanted = usize::try_from(rows).unwrap_or(usize::MAX);
    }
}
