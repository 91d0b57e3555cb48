//! DISTINCT, UNION, INTERSECT and EXCEPT: equal rows, known by a hash table.
//!
//! Once the table has as much memory as it may have, no row is added to it any more: rows that it does
//! not know are divided into [`Parts`], and each of those has a table of its own when the input has
//! come to its end.
//!
//! # Invariants
//! - DISTINCT gives rows in the order of its input, also those of parts: they carry their numbers and
//!   are sorted by them.

use base::memory::Reservation;
use base::{coro, Result};

use super::cursor::{open, Cursor};
use super::group::Groups;
use super::parts::{Part, Parts};
use super::sort::{SortedRows, Sorter};
use super::Exec;
use crate::spool::SpoolReader;
use planner::plan::{Plan, Row, SetOperation};
use types::{Datum, TypeId};

/// The rows of a [`Plan::Distinct`].
pub struct DistinctCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    columns: &'p [(usize, TypeId)],
    seen: Groups,
    spilled: Option<Box<Spilled>>,
}

/// Rows that the table does not know.
enum Spilled {
    /// They are still coming: their parts, and how many there were.
    Coming(Parts, i64),
    /// Those that are left of them.
    Left(SortedRows),
}

/// What an error calls these rows.
const WHAT: &str = "DISTINCT";

impl<'p> DistinctCursor<'p> {
    /// The first of the rows that agree in these columns.
    pub fn new(input: Box<dyn Cursor + 'p>, columns: &'p [(usize, TypeId)]) -> DistinctCursor<'p> {
        DistinctCursor {
            input,
            columns,
            seen: no_groups(columns),
            spilled: None,
        }
    }

    /// What tells a row from others.
    fn values(&self, row: &[Datum]) -> Row {
        let values = self.columns.iter();
        values.map(|(place, _)| row[*place].clone()).collect()
    }

    /// The input has ended: the first rows of those that the table did not know.
    #[cold]
    fn rest(&mut self, cx: &mut Exec<'_>) -> Result<Option<SortedRows>> {
        let Some(Spilled::Coming(parts, _)) = self.spilled.take().map(|spilled| *spilled) else {
            return Ok(None);
        };
        self.seen = no_groups(self.columns);
        let spill = cx.hash_spill();
        let mut sorter: Option<Sorter> = None;
        let mut left: Vec<Part> = parts.finish_filled()?.collect();
        while let Some(part) = left.pop() {
            let mut seen = no_groups(self.columns);
            let mut deeper: Option<Parts> = None;
            let (mut reader, mut row) = (SpoolReader::new(), Row::new());
            while reader.next_into(&part.rows, &mut row)? {
                cx.tick()?;
                let values = self.values(&row);
                let hash = seen.hash(&values);
                if seen.find(hash, &values).is_some() {
                    continue;
                }
                if let Some(deeper) = &mut deeper {
                    deeper.push(hash, &row)?;
                    continue;
                }
                seen.add(hash, values)?;
                if spill.is_due(seen.bytes())? {
                    deeper = Some(Parts::new(&spill, WHAT, part.level + 1));
                }
                let width = row.len() - 1;
                let by_number = || vec![(width, TypeId::INT8, false, false)];
                let sorter =
                    sorter.get_or_insert_with(|| Sorter::new(by_number(), width, cx.spill()));
                sorter.push(std::mem::take(&mut row))?;
            }
            if let Some(deeper) = deeper {
                left.extend(deeper.finish_filled()?);
            }
        }
        sorter.map(Sorter::finish).transpose()
    }
}

fn no_groups(columns: &[(usize, TypeId)]) -> Groups {
    Groups::new(columns.iter().map(|column| column.1).collect())
}

impl Cursor for DistinctCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if let Some(Spilled::Left(rows)) = self.spilled.as_deref_mut() {
            return rows.next_row();
        }
        while let Some(mut row) = self.input.next(cx)? {
            let values = self.values(&row);
            let hash = self.seen.hash(&values);
            if self.seen.find(hash, &values).is_some() {
                continue;
            }
            if let Some(Spilled::Coming(parts, number)) = self.spilled.as_deref_mut() {
                cx.tick()?;
                row.push(Datum::Int8(*number));
                *number += 1;
                parts.push(hash, &row)?;
                continue;
            }
            self.seen.add(hash, values)?;
            if cx.is_hash_due(self.seen.bytes())? {
                let parts = Parts::new(&cx.hash_spill(), WHAT, 0);
                self.spilled = Some(Box::new(Spilled::Coming(parts, 0)));
            }
            return Ok(Some(row));
        }
        let Some(mut rows) = self.rest(cx)? else {
            return Ok(None);
        };
        let first = rows.next_row();
        self.spilled = Some(Box::new(Spilled::Left(rows)));
        first
    }
}

/// The rows of a [`Plan::SetOperation`]: UNION of any number of inputs, INTERSECT and EXCEPT of two.
///
/// Counts the equal rows of the first and of the others.
pub struct SetCursor<'p> {
    operation: SetOperation,
    all: bool,
    inputs: &'p [Plan],
    types: &'p [TypeId],
    begun: bool,
    /// Rows, and how often each is still to be given.
    out: std::vec::IntoIter<(Row, usize)>,
    last: Option<(Row, usize)>,
    held: Option<Reservation>,
    left: Vec<Part>,
}

/// Equal rows, and how many the first input has, and the others.
struct Counted {
    groups: Groups,
    counts: Vec<(usize, usize)>,
    /// Where rows go that are not known, once there are enough.
    parts: Option<Parts>,
    level: u32,
}

/// What an error calls the rows of a set operation.
const SETS: &str = "A set operation";

impl Counted {
    fn new(types: &[TypeId], level: u32) -> Counted {
        Counted {
            groups: Groups::new(types.to_vec()),
            counts: Vec::new(),
            parts: None,
            level,
        }
    }

    /// Counts a row of the first input or of another; `adds` says that one of another counts even if
    /// the first has none like it.
    fn take(&mut self, mut row: Row, is_other: bool, adds: bool, cx: &mut Exec<'_>) -> Result<()> {
        cx.tick()?;
        let hash = self.groups.hash(&row);
        let group = match self.groups.find(hash, &row) {
            Some(group) => group,
            None => {
                if let Some(parts) = &mut self.parts {
                    row.push(Datum::Bool(is_other));
                    return parts.push(hash, &row);
                }
                if is_other && !adds {
                    return Ok(());
                }
                let group = self.groups.add(hash, row)?;
                self.groups.grow(size_of::<(usize, usize)>())?;
                self.counts.push((0, 0));
                if cx.is_hash_due(self.groups.bytes())? {
                    self.parts = Some(Parts::new(&cx.hash_spill(), SETS, self.level));
                }
                group
            }
        };
        match is_other {
            false => self.counts[group].0 += 1,
            true => self.counts[group].1 += 1,
        }
        Ok(())
    }
}

impl<'p> SetCursor<'p> {
    /// A cursor over such a plan.
    pub fn new(
        operation: SetOperation,
        all: bool,
        inputs: &'p [Plan],
        types: &'p [TypeId],
    ) -> SetCursor<'p> {
        SetCursor {
            operation,
            all,
            inputs,
            types,
            begun: false,
            out: Vec::new().into_iter(),
            last: None,
            held: None,
            left: Vec::new(),
        }
    }

    /// Whether rows count that the first input does not have.
    fn adds(&self) -> bool {
        self.operation == SetOperation::Union
    }

    fn compute(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        coro::check_depth()?;
        let mut counted = Counted::new(self.types, 0);
        for (number, input) in self.inputs.iter().enumerate() {
            let mut rows = open(input, cx.measures.as_ref());
            while let Some(row) = rows.next(cx)? {
                counted.take(row, number > 0, self.adds(), cx)?;
            }
        }
        self.give(counted)
    }

    fn compute_part(&mut self, part: &Part, cx: &mut Exec<'_>) -> Result<()> {
        let mut counted = Counted::new(self.types, part.level + 1);
        let (mut reader, mut row) = (SpoolReader::new(), Row::new());
        while reader.next_into(&part.rows, &mut row)? {
            let is_other = row.pop().is_some_and(|side| side.is_true());
            counted.take(std::mem::take(&mut row), is_other, self.adds(), cx)?;
        }
        self.give(counted)
    }

    fn give(&mut self, counted: Counted) -> Result<()> {
        let (operation, all) = (self.operation, self.all);
        let copies = |(left, right): (usize, usize)| match (operation, all) {
            (SetOperation::Union, _) => 1,
            (SetOperation::Intersect, true) => left.min(right),
            (SetOperation::Intersect, false) => usize::from(left > 0 && right > 0),
            (SetOperation::Except, true) => left.saturating_sub(right),
            (SetOperation::Except, false) => usize::from(left > 0 && right == 0),
        };
        if let Some(parts) = counted.parts {
            self.left.extend(parts.finish_filled()?);
        }
        let (keys, held) = counted.groups.into_keys();
        let counts = counted.counts.into_iter().map(copies);
        self.out = keys.into_iter().zip(counts).collect::<Vec<_>>().into_iter();
        self.held = Some(held);
        Ok(())
    }
}

impl Cursor for SetCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if !std::mem::replace(&mut self.begun, true) {
            self.compute(cx)?;
        }
        loop {
            match self.last.take() {
                None | Some((_, 0)) => {}
                Some((row, 1)) => return Ok(Some(row)),
                Some((row, copies)) => {
                    let next = row.clone();
                    self.last = Some((row, copies - 1));
                    return Ok(Some(next));
                }
            }
            self.last = self.out.next();
            if self.last.is_some() {
                cx.tick()?;
                continue;
            }
            self.held = None;
            match self.left.pop() {
                Some(part) => self.compute_part(&part, cx)?,
                None => return Ok(None),
            }
        }
    }
}
