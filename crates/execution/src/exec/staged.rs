//! Long scans: a row's conditions are tested in stages, and each stage makes only the values that it
//! looks at.
//!
//! ```text
//! l_shipdate >= date '1994-01-01' and l_discount between 0.05 and 0.07 and l_comment like '%x%'
//!
//! stage 1, 2, 3   on the stored bytes: no value is made
//! stage 4         l_comment is made, and the program of its condition runs
//! then            the columns by which joins above have rows left out ([`super::join_filter`])
//! then            the other columns that are needed
//! ```
//! Most rows of a long scan are dropped, and most of a row's columns are dear to make. So a row's
//! bytes are taken apart once ([`Cells`]), a comparison of a column with another, or with a value or a
//! list that is the same for all rows, is decided on the bytes ([`types::compare_column`]), and any other condition sees a row in
//! which its own columns are there and others may be those of an earlier row.
//!
//! # Invariants
//! - Conditions are tested in the order in which they are written, and the first that is not true
//!   drops the row: none behind it is computed, so none raises an error. So it is in PostgreSQL.
//! - A value that a comparison needs is computed when the comparison is first reached, not before.
//! - After [`Stages::take`] has taken a row, all its needed columns are its own and all others NULL. Where a
//!   scan keeps only some columns ([`Scan::kept`]), conditions see a row of the table aside, and what is
//!   taken has those columns alone.
//!
//! # What it leaves out
//! Scans of a few rows, which are over before stages have paid for themselves: they make a row and
//! then run its filter as one program.

use std::cmp::Ordering;
use std::ops::Range;

use base::codec::Reader;
use base::row::StoredColumn;
use base::Result;

use super::join_filter::JoinFilter;
use super::program::{test_part, value_of_rows};
use super::{long, Exec};
use catalog::Table;
use functions::Function;
use planner::plan::program::Op;
use planner::plan::{Program, Row, Scan};
use types::{Datum, TypeId};

/// The stored columns of a row, as far as anybody looks.
#[derive(Default)]
struct Cells {
    /// Where the bytes of each column begin and end; a mark for what has none.
    ends: Vec<(u32, u32, Mark)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Null,
    Value,
    Long,
    /// The row is older than the column.
    Missing,
}

impl Cells {
    /// Takes the first columns of a row apart.
    fn read(&mut self, bytes: &[u8], count: usize) -> Result<()> {
        let mut reader = Reader::new(bytes);
        let stored: usize = reader.varint_as()?;
        let mut at = bytes.len() - reader.rest().len();
        self.ends.resize(count, (0, 0, Mark::Missing));
        let (stored, missing) = self.ends.split_at_mut(stored.min(count));
        missing.fill((0, 0, Mark::Missing));
        for cell in stored {
            // Most are short: their length and one in a byte, or none for NULL.
            if let Some(byte @ ..0x80) = bytes.get(at).copied() {
                let end = at + usize::from(byte).max(1);
                if end <= bytes.len() {
                    let mark = if byte == 0 { Mark::Null } else { Mark::Value };
                    *cell = (at as u32 + 1, end as u32, mark);
                    at = end;
                    continue;
                }
            }
            let mut reader = Reader::new(&bytes[at.min(bytes.len())..]);
            let (len, mark) = match StoredColumn::read(&mut reader)? {
                StoredColumn::Null => (0, Mark::Null),
                StoredColumn::Value(value) => (value.len(), Mark::Value),
                StoredColumn::Long(value) => (value.len(), Mark::Long),
            };
            at = bytes.len() - reader.rest().len();
            *cell = ((at - len) as u32, at as u32, mark);
        }
        Ok(())
    }

    fn get<'b>(&self, table: &'b Table, bytes: &'b [u8], place: usize) -> StoredColumn<'b> {
        let (start, end, mark) = self.ends[place];
        let own = &bytes[start as usize..end as usize];
        match mark {
            Mark::Null => StoredColumn::Null,
            Mark::Value => StoredColumn::Value(own),
            Mark::Long => StoredColumn::Long(own),
            Mark::Missing => match &table.columns[place].missing {
                Some(bytes) => StoredColumn::Value(bytes),
                None => StoredColumn::Null,
            },
        }
    }

    /// Makes the values of some columns.
    fn make(&self, table: &Table, bytes: &[u8], places: &[usize], row: &mut [Datum]) -> Result<()> {
        for place in places {
            self.make_one(table, bytes, *place, &mut row[*place])?;
        }
        Ok(())
    }

    #[inline]
    fn make_one(&self, table: &Table, bytes: &[u8], place: usize, into: &mut Datum) -> Result<()> {
        let column = &table.columns[place];
        match self.get(table, bytes, place) {
            StoredColumn::Value(bytes) if !column.dropped => {
                types::decode_column_into(column.type_id, column.typmod, bytes, into)?;
            }
            StoredColumn::Long(stored) => *into = long::unread(table, column, stored),
            _ => *into = Datum::Null,
        }
        Ok(())
    }
}

/// A comparison that is decided on stored bytes.
struct Comparison {
    /// The column.
    place: usize,
    with: With,
    /// The value or list, once it was asked for.
    known: Option<Datum>,
    holds: fn(Ordering) -> bool,
}

/// What a column is compared with.
enum With {
    /// A value that is the same for all rows: the step of the program that gives it.
    Value(usize),
    /// Any (false) or all elements of such a value.
    Elements(usize, bool),
    /// A column of the same type.
    Column(usize),
}

impl Comparison {
    /// The columns that it looks at.
    fn places(&self) -> impl Iterator<Item = usize> {
        let other = match self.with {
            With::Column(other) => Some(other),
            With::Value(..) | With::Elements(..) => None,
        };
        std::iter::once(self.place).chain(other)
    }

    /// Whether it is true; none where the bytes do not tell.
    fn test(
        &mut self,
        table: &Table,
        (cells, bytes): (&Cells, &[u8]),
        ops: &[Op],
        cx: &mut Exec<'_>,
    ) -> Result<Option<bool>> {
        let kind = table.columns[self.place].type_id;
        let given = match (&self.with, &mut self.known) {
            (With::Column(_), _) => &Datum::Null,
            (_, Some(value)) => &*value,
            (With::Value(step) | With::Elements(step, _), known) => {
                &*known.insert(value_of_rows(&ops[*step], cx)?)
            }
        };
        let stored = match cells.get(table, bytes, self.place) {
            // Of an empty list even NULL is all or none.
            StoredColumn::Null if matches!(self.with, With::Elements(..)) => return Ok(None),
            StoredColumn::Null => return Ok(Some(false)),
            StoredColumn::Value(stored) => stored,
            StoredColumn::Long(_) => return Ok(None),
        };
        let holds = |order: Option<Ordering>| order.map(self.holds);
        Ok(match (&self.with, given) {
            (With::Column(other), _) => match cells.get(table, bytes, *other) {
                StoredColumn::Null => Some(false),
                StoredColumn::Value(other) => holds(types::compare_columns(kind, stored, other)),
                StoredColumn::Long(_) => None,
            },
            (_, Datum::Null) => Some(false),
            (With::Value(..), value) => holds(types::compare_column(kind, stored, value)),
            (With::Elements(_, all), Datum::Array(array)) => {
                let mut outcome = Some(*all);
                for element in &array.elements {
                    let one = match element {
                        // It decides nothing, and keeps all from being true.
                        Datum::Null if *all => Some(false),
                        Datum::Null => continue,
                        element => holds(types::compare_column(kind, stored, element)),
                    };
                    match one {
                        Some(one) if one == *all => {}
                        other => {
                            outcome = other;
                            break;
                        }
                    }
                }
                outcome
            }
            _ => None,
        })
    }
}

/// One condition.
struct Stage {
    /// Its steps in the filter's program.
    part: Range<usize>,
    /// The columns that it looks at and no stage before it has made.
    columns: Vec<usize>,
    comparison: Option<Comparison>,
}

/// A scan's conditions, in stages.
pub struct Stages<'p> {
    tests: Tests<'p>,
    /// The needed columns that no stage makes, and those that nobody needs.
    others: Vec<usize>,
    unneeded: Vec<usize>,
    narrow: Option<Narrow>,
}

/// What a row must meet, and its bytes as far as that looks at them.
struct Tests<'p> {
    table: &'p Table,
    filter: Option<&'p Program>,
    stages: Vec<Stage>,
    /// How many columns are looked at, from the first on.
    count: usize,
    cells: Cells,
    filters: Vec<Restriction>,
}

/// How a row is made that has only some of the table's columns.
struct Narrow {
    /// The row that conditions look at.
    wide: Row,
    /// The columns that some stage makes there: their place there, and in what is taken.
    made: Vec<(usize, usize)>,
    /// The other columns.
    others: Vec<(usize, usize)>,
    width: usize,
}

impl Narrow {
    fn of(kept: &[usize], made: &[bool], width: usize) -> Narrow {
        let places = kept.iter().enumerate().map(|(to, from)| (*from, to));
        let (made, others) = places.partition(|(from, _)| made[*from]);
        Narrow {
            wide: vec![Datum::Null; width],
            made,
            others,
            width: kept.len(),
        }
    }

    /// Makes the row.
    fn take(&mut self, table: &Table, cells: &Cells, bytes: &[u8], row: &mut Row) -> Result<()> {
        row.truncate(self.width);
        row.resize(self.width, Datum::Null);
        for (from, to) in &self.made {
            std::mem::swap(&mut self.wide[*from], &mut row[*to]);
        }
        for (from, to) in &self.others {
            cells.make_one(table, bytes, *from, &mut row[*to])?;
        }
        Ok(())
    }
}

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is there.
    Whole,
    /// It does not meet the conditions.
    NoneByCondition,
    /// A join above would find no pair for it.
    NoneByJoin,
}

/// A join filter, and how well it does.
struct Restriction {
    filter: JoinFilter,
    /// Of how many rows it was asked, and how many passed.
    asked: u32,
    passed: u32,
}

/// After so many rows it is seen whether a filter is worth being asked: it must have left out one in
/// [`LEFT_OUT_MIN`].
const FILTER_TRIAL: u32 = 2_048;
const LEFT_OUT_MIN: u32 = 8;

impl Restriction {
    /// Whether a row passes, whose columns that are looked at are there.
    #[inline]
    fn passes(&mut self, row: &Row) -> bool {
        let passes = self.filter.passes(row);
        self.asked += 1;
        self.passed += u32::from(passes);
        passes
    }

    /// Whether it is worth being asked of more rows.
    fn is_worth_it(&mut self) -> bool {
        if self.asked < FILTER_TRIAL {
            return true;
        }
        let left_out = self.asked - self.passed;
        let worth = left_out >= self.asked / LEFT_OUT_MIN;
        (self.asked, self.passed) = (0, 0);
        worth
    }
}

impl<'p> Stages<'p> {
    /// Those of a scan of a table, of which these columns are needed unless it says itself which it
    /// keeps. None for a filter that looks at more than the table's columns.
    pub fn of(scan: &'p Scan, needed: &[bool]) -> Option<Stages<'p>> {
        let (table, filter) = (&*scan.table, scan.filter.as_ref());
        let width = table.columns.len();
        let is_stored = |op: &Op| !matches!(op, Op::Column(place) if *place >= width);
        if !filter.is_none_or(|filter| filter.ops().iter().all(is_stored)) {
            return None;
        }
        let is_needed = |place: usize| match &scan.kept {
            Some(kept) => kept.binary_search(&place).is_ok(),
            None => needed.get(place).copied().unwrap_or(true),
        };
        let mut made = vec![false; width];
        let mut stages = Vec::new();
        let parts = filter.map_or(Vec::new(), Program::conjuncts);
        for part in parts {
            let ops = filter.map_or(&[][..], |filter| &filter.ops()[part.clone()]);
            let comparison = comparison(table, ops, part.start);
            let mut columns = Vec::new();
            for op in ops {
                if let (Op::Column(place), None) = (op, &comparison) {
                    if !std::mem::replace(&mut made[*place], true) {
                        columns.push(*place);
                    }
                }
            }
            stages.push(Stage {
                part,
                columns,
                comparison,
            });
        }
        let looked_at = stages.iter().filter_map(|stage| stage.comparison.as_ref());
        let looked_at = looked_at.flat_map(Comparison::places);
        let last = (0..width)
            .filter(|place| is_needed(*place) || made[*place])
            .chain(looked_at);
        let narrow = scan.kept.as_ref();
        Some(Stages {
            narrow: narrow.map(|kept| Narrow::of(kept, &made, width)),
            others: (0..width)
                .filter(|place| is_needed(*place) && !made[*place])
                .collect(),
            unneeded: (0..width).filter(|place| !is_needed(*place)).collect(),
            tests: Tests {
                table,
                filter,
                count: last.map(|place| place + 1).max().unwrap_or(0),
                stages,
                cells: Cells::default(),
                filters: Vec::new(),
            },
        })
    }

    /// Has rows left out that a filter does not pass.
    pub fn restrict(&mut self, filter: JoinFilter) {
        let is_made = |place: &usize| *place < self.tests.count && !self.unneeded.contains(place);
        if filter.columns().iter().all(is_made) {
            self.tests.filters.push(Restriction {
                filter,
                asked: 0,
                passed: 0,
            });
        }
    }

    /// Makes a row of stored bytes if it meets the conditions and passes the filters. The row's memory
    /// is used again.
    ///
    /// # Errors
    /// XX001 when they are no row of the table; what a condition raises.
    pub fn take(&mut self, bytes: &[u8], row: &mut Row, cx: &mut Exec<'_>) -> Result<Taken> {
        let table = self.tests.table;
        let tests = &mut self.tests;
        if let Some(narrow) = &mut self.narrow {
            let taken = tests.take(bytes, &mut narrow.wide, cx)?;
            if taken == Taken::Whole {
                narrow.take(table, &tests.cells, bytes, row)?;
            }
            return Ok(taken);
        }
        let width = table.columns.len();
        row.truncate(width);
        row.resize(width, Datum::Null);
        let taken = tests.take(bytes, row, cx)?;
        if taken == Taken::Whole {
            tests.cells.make(table, bytes, &self.others, row)?;
            for place in &self.unneeded {
                if !row[*place].is_null() {
                    row[*place] = Datum::Null;
                }
            }
        }
        Ok(taken)
    }
}

impl Tests<'_> {
    /// Takes a row apart, and whether it meets the conditions and passes the filters; what these look at
    /// is made.
    fn take(&mut self, bytes: &[u8], row: &mut Row, cx: &mut Exec<'_>) -> Result<Taken> {
        self.cells.read(bytes, self.count)?;
        for stage in &mut self.stages {
            if !holds(
                self.table,
                self.filter,
                &self.cells,
                stage,
                (bytes, row),
                cx,
            )? {
                return Ok(Taken::NoneByCondition);
            }
        }
        Ok(match self.filters.is_empty() || self.passes(bytes, row)? {
            true => Taken::Whole,
            false => Taken::NoneByJoin,
        })
    }

    /// Whether all filters pass a row, of which it makes the columns that they look at.
    fn passes(&mut self, bytes: &[u8], row: &mut Row) -> Result<bool> {
        for one in &mut self.filters {
            self.cells
                .make(self.table, bytes, one.filter.columns(), row)?;
            if !one.passes(row) {
                return Ok(false);
            }
        }
        // All have passed it, so the first was asked of all rows.
        if self.filters.iter().any(|one| one.asked >= FILTER_TRIAL) {
            self.filters.retain_mut(Restriction::is_worth_it);
        }
        Ok(true)
    }
}

/// Whether a condition is true of a row.
fn holds(
    table: &Table,
    filter: Option<&Program>,
    cells: &Cells,
    stage: &mut Stage,
    (bytes, row): (&[u8], &mut Row),
    cx: &mut Exec<'_>,
) -> Result<bool> {
    let Some(filter) = filter else {
        return Ok(true);
    };
    if let Some(comparison) = &mut stage.comparison {
        let decided = comparison.test(table, (cells, bytes), filter.ops(), cx)?;
        if let Some(holds) = decided {
            return Ok(holds);
        }
        // Only the values tell.
        for place in comparison.places() {
            cells.make(table, bytes, &[place], row)?;
        }
    }
    cells.make(table, bytes, &stage.columns, row)?;
    test_part(filter, stage.part.clone(), cx, row)
}

/// A condition that compares a column in types of which stored bytes can be compared.
fn comparison(table: &Table, ops: &[Op], start: usize) -> Option<Comparison> {
    let [first, second, last] = ops else {
        return None;
    };
    let type_of = |place: usize| {
        let column = &table.columns[place];
        (!column.dropped).then_some(column.type_id)
    };
    let (function, types) = match last {
        Op::Call {
            function, types, ..
        }
        | Op::AnyArray(function, types, _) => (*function, types),
        _ => return None,
    };
    let (place, with, turned) = match (first, second, last) {
        (Op::Column(place), list, Op::AnyArray(_, _, all)) if is_given(list) => {
            (*place, With::Elements(start + 1, *all), false)
        }
        (_, _, Op::AnyArray(..)) => return None,
        (Op::Column(place), other, _) if is_given(other) => (*place, With::Value(start + 1), false),
        (other, Op::Column(place), _) if is_given(other) => (*place, With::Value(start), true),
        (Op::Column(place), Op::Column(other), _) => {
            let kind = type_of(*place)?;
            if type_of(*other) != Some(kind) || types.contains(&TypeId::BPCHAR) {
                return None;
            }
            (*place, With::Column(*other), false)
        }
        _ => return None,
    };
    if !is_compared(type_of(place)?, types) {
        return None;
    }
    Some(Comparison {
        place,
        with,
        known: None,
        holds: test_of(function, types, turned)?,
    })
}

fn is_given(op: &Op) -> bool {
    match op {
        Op::Const(_) | Op::Param(_) | Op::Literal(_) | Op::Once(_) => true,
        Op::Sub(query, false, _) => !query.correlated,
        _ => false,
    }
}

/// Whether a comparison of these types is the order of the column's stored bytes with a value.
fn is_compared(column: TypeId, types: &[TypeId]) -> bool {
    let is_text = |kind: &TypeId| matches!(*kind, TypeId::TEXT | TypeId::VARCHAR);
    let is_integer = |kind: &TypeId| matches!(*kind, TypeId::INT2 | TypeId::INT4 | TypeId::INT8);
    match column {
        TypeId::TEXT | TypeId::VARCHAR => types.iter().all(is_text),
        TypeId::INT2 | TypeId::INT4 | TypeId::INT8 => types.iter().all(is_integer),
        TypeId::DATE => types
            .iter()
            .all(|kind| matches!(*kind, TypeId::DATE | TypeId::TIMESTAMP)),
        TypeId::BPCHAR | TypeId::NUMERIC | TypeId::TIMESTAMP | TypeId::TIMESTAMPTZ => {
            types.iter().all(|kind| *kind == column)
        }
        _ => false,
    }
}

/// What a comparison's function asks of the order of a column and a value; turned: of a value and a
/// column.
fn test_of(function: &Function, types: &[TypeId], turned: bool) -> Option<fn(Ordering) -> bool> {
    let [left, right] = types else {
        return None;
    };
    let is = |name: &&str| {
        functions::operators_named(name).iter().any(|operator| {
            let fits = operator.left == *left && operator.right == *right;
            // varchar is compared as text is.
            let is_text = operator.left == TypeId::TEXT && operator.right == TypeId::TEXT;
            (fits || is_text) && operator.function.oid == function.oid
        })
    };
    let name = ["=", "<>", "<", "<=", ">", ">="].into_iter().find(is)?;
    Some(match (name, turned) {
        ("=", _) => Ordering::is_eq,
        ("<>", _) => Ordering::is_ne,
        ("<", false) | (">", true) => Ordering::is_lt,
        ("<=", false) | (">=", true) => Ordering::is_le,
        (">", false) | ("<", true) => Ordering::is_gt,
        _ => Ordering::is_ge,
    })
}
