//! Joins: the right input is kept, hashed where an equality allows it.
//!
//! Beyond `work_mem` (`hash_mem_multiplier` times, where it is hashed) a hashed input is divided, and the
//! left one with it, into parts that are joined one after the other ([`SpilledJoin`]); of one that is
//! not hashed the rows that do not fit are read from scratch space for each left row.
//!
//! Where a key leads from a left row to its right rows, the first [`Join::lookups`] left rows look
//! theirs up. Whoever has more reads the right input after all: nobody knows for certain how large
//! the inputs are, and this way neither a few rows pay for a large table nor many for lookups.
//!
//! # Invariants
//! - A pair of rows is only put together when what is hashed is equal, and where somebody looks at it:
//!   a condition, or whoever asks for rows. A semi-join without further conditions makes none.
//! - The pairs of a left row come in the order of the right rows, and left rows in the order of their
//!   input, unless they were divided.

use std::rc::Rc;

use base::{coro, Result};

use super::cursor::{open, Cursor};
use super::join_filter::JoinFilter;
use super::measure::Measuring;
use super::parts::Parts;
use super::spilled_join::{SpilledJoin, LEVELS_MAX};
use super::Exec;
use crate::exec::program::Evaluate;
use crate::kept::{HashedPlaces, PackedRows, HASHED_BYTES};
use crate::spool::{Spill, SpoolReader, SpoolWriter, Spooled};
use planner::plan::{Join, JoinKind, Plan, Program, Row};
use types::hash_row;
use types::{self, Datum, TypeId};

/// What an error calls the memory of a join.
const WHAT: &str = "A join";

/// Whether a statement has more memory than it may is looked at each time rows have grown by so much.
const CHECKED_BYTES: usize = 64 << 10;

/// The rows of a [`Join`].
pub struct JoinCursor<'p> {
    join: &'p Join,
    left: Box<dyn Cursor + 'p>,
    types: Rc<[TypeId]>,
    /// What joins above know of the right rows that they can use, until these are read.
    filters: Vec<JoinFilter>,
    /// All right rows, once they were read.
    right: Option<Right>,
    /// The right rows of the left row at work, where they are its own.
    own: Option<Right>,
    /// The left row at work, if there is one.
    row: Row,
    current: Option<Current>,
    /// The left row's values that are hashed.
    key: Row,
    /// A right row on its way.
    scratch: Row,
    matched: Vec<bool>,
    /// RIGHT and FULL: which right rows still have to be shown alone.
    rest: usize,
    /// How many left rows have looked up theirs.
    lookups: usize,
    /// What gave the right rows of the left row before, where they are its own.
    looked: Option<Box<dyn Cursor + 'p>>,
    /// Both inputs, where the right one does not fit in memory.
    spilled: Option<Box<SpilledJoin>>,
    kept: Option<Kept<'p>>,
}

/// The columns of a pair that are handed on, where not all are.
struct Kept<'p> {
    of_pair: &'p [usize],
    /// Those of the left row, and those of the right one.
    left: Vec<usize>,
    right: Vec<usize>,
    /// Whether the row that was made last has these columns alone.
    is_done: bool,
}

impl<'p> Kept<'p> {
    fn of(of_pair: &'p [usize], left_width: usize) -> Kept<'p> {
        let (left, right): (Vec<_>, Vec<_>) =
            of_pair.iter().partition(|place| **place < left_width);
        Kept {
            of_pair,
            left,
            right: right.into_iter().map(|place| place - left_width).collect(),
            is_done: false,
        }
    }

    /// Makes the row of a left row, of which this is the last pair or not.
    #[inline]
    fn put_left(&mut self, row: &mut [Datum], is_last: bool, out: &mut Row) {
        out.clear();
        out.extend(self.left.iter().map(|place| match is_last {
            true => std::mem::replace(&mut row[*place], Datum::Null),
            false => row[*place].clone(),
        }));
        self.is_done = true;
    }

    /// Leaves out the other columns of a pair, if they are there.
    #[inline]
    fn narrow(&mut self, pair: &mut Row) {
        if std::mem::take(&mut self.is_done) {
            return;
        }
        for (to, from) in self.of_pair.iter().enumerate() {
            pair.swap(to, *from);
        }
        pair.truncate(self.of_pair.len());
    }
}

/// What is known of the left row at work.
#[derive(Clone, Copy)]
struct Current {
    /// The next right row to try.
    next: Option<usize>,
    /// Whether there was a pair.
    matched: bool,
}

/// Right rows.
struct Right {
    rows: PackedRows,
    hashed: Option<Hashed>,
    /// Those behind them; none where rows are hashed.
    spooled: Option<Box<SpooledRows>>,
}

/// Rows in scratch space, and where somebody is in them.
struct SpooledRows {
    rows: Spooled,
    reader: SpoolReader,
    row: Row,
}

/// Right rows by the hash of what must be equal.
struct Hashed {
    places: HashedPlaces,
    /// Where the values that are hashed stand in a kept row, if they are columns.
    keys: Option<Vec<usize>>,
}

impl Right {
    /// No rows yet.
    fn new(rows: PackedRows) -> Right {
        Right {
            rows,
            hashed: None,
            spooled: None,
        }
    }

    /// How many rows there are.
    fn len(&self) -> usize {
        self.rows.len()
            + self
                .spooled
                .as_ref()
                .map_or(0, |spooled| spooled.rows.len())
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row to others' columns.
    #[inline]
    fn append_to(&mut self, place: usize, row: &mut Row) -> Result<()> {
        match &mut self.spooled {
            Some(spooled) if place >= self.rows.len() => {
                let number = place - self.rows.len();
                let (rows, own) = (&spooled.rows, &mut spooled.row);
                spooled.reader.read_at(rows, number, own)?;
                row.append(own);
            }
            _ => self.rows.append_to(place, row),
        }
        Ok(())
    }

    /// Appends some columns of a row.
    #[inline]
    fn append_some(&mut self, place: usize, columns: &[usize], row: &mut Row) -> Result<()> {
        match &mut self.spooled {
            Some(spooled) if place >= self.rows.len() => {
                let number = place - self.rows.len();
                let (rows, own) = (&spooled.rows, &mut spooled.row);
                spooled.reader.read_at(rows, number, own)?;
                let values = columns.iter();
                row.extend(values.map(|column| std::mem::replace(&mut own[*column], Datum::Null)));
            }
            _ => self.rows.append_some(place, columns, row),
        }
        Ok(())
    }

    /// The place of the row to be tried after one, if all are tried in turn or, of a hash, those that
    /// have it.
    fn after(&self, place: usize) -> Option<usize> {
        match &self.hashed {
            Some(hashed) => hashed.places.next(place),
            None => (place + 1 < self.len()).then_some(place + 1),
        }
    }
}

impl Hashed {
    /// Whether what is hashed of a kept row equals the values of a key; none if that takes computing.
    fn equals(&self, values: &[Datum], key: &[Datum], types: &[TypeId]) -> Option<bool> {
        for ((at, value), ty) in self.keys.as_ref()?.iter().zip(key).zip(types) {
            if values[*at].is_long() {
                return None;
            }
            if !types::equal(*ty, value, &values[*at]) {
                return Some(false);
            }
        }
        Some(true)
    }
}

impl<'p> JoinCursor<'p> {
    /// A cursor over such a join.
    pub fn new(join: &'p Join, measures: Measuring<'_>) -> JoinCursor<'p> {
        let kept = join.kept.as_deref();
        JoinCursor {
            join,
            left: open(&join.left, measures),
            types: join.hash.iter().map(|hash| hash.2).collect(),
            filters: Vec::new(),
            right: None,
            own: None,
            row: Row::new(),
            current: None,
            key: Row::new(),
            scratch: Row::new(),
            matched: Vec::new(),
            rest: 0,
            lookups: 0,
            looked: None,
            spilled: None,
            kept: kept.map(|kept| Kept::of(kept, join.left_width)),
        }
    }

    /// Reads all right rows, hashed if there is something to hash, or divides both inputs.
    fn load(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        coro::check_depth()?;
        let join = self.join;
        let mut right = Right::new(self.no_rows(&join.right));
        if join.hash.is_empty() {
            let mut cursor = open(&join.right, cx.measures.as_ref());
            self.read(&mut *cursor, &mut right, cx)?;
            self.set_right(right);
            return Ok(());
        }
        let spill = cx.hash_spill();
        let mut hashes = Vec::new();
        let mut cursor = open(&join.right, cx.measures.as_ref());
        let filters = self.filters.drain(..);
        filters.for_each(|filter| cursor.restrict(&filter));
        let mut checked = 0;
        while cursor.next_into(cx, &mut self.scratch)? {
            cx.tick()?;
            self.keep_hashed(&mut right.rows, &mut hashes, cx)?;
            if right.rows.bytes() >= checked + CHECKED_BYTES {
                checked = right.rows.bytes();
                if spill.is_due(checked)? {
                    let rest = &mut |row: &mut Row, cx: &mut Exec<'_>| cursor.next_into(cx, row);
                    return self.divide_inputs(spill, right.rows, hashes, rest, cx);
                }
            }
        }
        right.hashed = Some(self.hashed(&right.rows, &hashes, cx)?);
        self.set_right(right);
        self.restrict_left(&hashes)
    }

    /// Tells the left input which of its rows may have a pair, if no others count.
    fn restrict_left(&mut self, hashes: &[Option<u64>]) -> Result<()> {
        let keys = self.join.hash.iter().map(|hash| hash.0.as_column());
        let columns = keys.collect::<Option<Vec<_>>>();
        let (Some(columns), false) = (columns, keeps_left(self.join.kind)) else {
            return Ok(());
        };
        let filter = JoinFilter::of(columns, self.types.clone(), hashes)?;
        self.left.restrict(&filter);
        Ok(())
    }

    /// Whether it is known that there are no pairs, and nothing is shown but these.
    fn has_no_pairs(&self) -> bool {
        let has_rows = |right: &Right| !right.is_empty();
        let may_have = self.right.as_ref().is_none_or(has_rows) || self.spilled.is_some();
        !may_have && !keeps_left(self.join.kind)
    }

    fn set_right(&mut self, right: Right) {
        if SpilledJoin::needs_right(self.join.kind) {
            self.matched.clear();
            self.matched.resize(right.len(), false);
            self.rest = 0;
        }
        self.right = Some(right);
    }

    /// Keeps the right row on its way, and its hash.
    #[inline]
    fn keep_hashed(
        &mut self,
        rows: &mut PackedRows,
        hashes: &mut Vec<Option<u64>>,
        cx: &mut Exec<'_>,
    ) -> Result<()> {
        hashes.push(self.right_hash(cx)?);
        rows.grow(HASHED_BYTES)?;
        rows.push(&mut self.scratch)
    }

    /// The hash of the right row on its way.
    #[inline]
    fn right_hash(&mut self, cx: &mut Exec<'_>) -> Result<Option<u64>> {
        let values = self.join.hash.iter().map(|hash| &hash.1);
        hash_of(values, &self.types, &self.scratch, &mut self.key, cx)
    }

    /// The hash of the left row at work.
    #[inline]
    fn left_hash(&mut self, cx: &mut Exec<'_>) -> Result<Option<u64>> {
        let values = self.join.hash.iter().map(|hash| &hash.0);
        hash_of(values, &self.types, &self.row, &mut self.key, cx)
    }

    /// The right input does not fit: divides it, those rows of it and the rest, and the left one.
    #[cold]
    fn divide_inputs(
        &mut self,
        spill: Spill,
        rows: PackedRows,
        hashes: Vec<Option<u64>>,
        rest: NextRow<'_>,
        cx: &mut Exec<'_>,
    ) -> Result<()> {
        let kind = self.join.kind;
        let right = self.divide_right(Parts::new(&spill, WHAT, 0), rows, hashes, rest, cx)?;
        let right = right.finish()?;
        let mut left = Parts::new(&spill, WHAT, 0);
        while self.left.next_into(cx, &mut self.row)? {
            cx.tick()?;
            let hash = self.left_hash(cx)?;
            if !SpilledJoin::needs_left(kind) {
                let part = hash.map(|hash| left.part_of(hash));
                if part.is_none_or(|part| right[part].rows.is_empty()) {
                    continue;
                }
            }
            left.push(hash.unwrap_or(0), &self.row)?;
        }
        let left = left.finish()?;
        self.spilled = Some(Box::new(SpilledJoin::new(spill, kind, left, right)));
        self.set_right(Right::new(self.no_rows(&self.join.right)));
        self.next_piece(cx)?;
        Ok(())
    }

    /// Puts right rows into parts. Those without a hash have no pair; where they count nevertheless,
    /// they go to any part.
    fn divide_right(
        &mut self,
        mut parts: Parts,
        rows: PackedRows,
        hashes: Vec<Option<u64>>,
        rest: NextRow<'_>,
        cx: &mut Exec<'_>,
    ) -> Result<Parts> {
        let keeps_all = SpilledJoin::needs_right(self.join.kind);
        let mut row = Row::new();
        for (place, hash) in hashes.into_iter().enumerate() {
            cx.tick()?;
            if hash.is_some() || keeps_all {
                row.clear();
                rows.append_to(place, &mut row);
                parts.push(hash.unwrap_or(0), &row)?;
            }
        }
        drop(rows);
        while rest(&mut self.scratch, cx)? {
            cx.tick()?;
            let hash = self.right_hash(cx)?;
            if hash.is_some() || keeps_all {
                parts.push(hash.unwrap_or(0), &self.scratch)?;
            }
        }
        Ok(parts)
    }

    /// Puts the next piece of what was divided to work; false when there is none.
    #[cold]
    fn next_piece(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        let Some(mut spilled) = self.spilled.take() else {
            return Ok(false);
        };
        let outcome = self.next_piece_of(&mut spilled, cx);
        self.spilled = Some(spilled);
        outcome
    }

    fn next_piece_of(&mut self, spilled: &mut SpilledJoin, cx: &mut Exec<'_>) -> Result<bool> {
        // The memory of the piece before goes first.
        self.right = None;
        let spill = spilled.spill.clone();
        'pairs: loop {
            let mut level = LEVELS_MAX;
            if spilled.is_part_done() {
                match spilled.begin_pair() {
                    Some(of_pair) => level = of_pair,
                    None => {
                        self.set_right(Right::new(self.no_rows(&self.join.right)));
                        return Ok(false);
                    }
                }
            }
            let mut right = Right::new(self.no_rows(&self.join.right));
            let mut hashes: Vec<Option<u64>> = Vec::new();
            while spilled.next_right(&mut self.scratch)? {
                cx.tick()?;
                self.keep_hashed(&mut right.rows, &mut hashes, cx)?;
                if !spill.is_due(right.rows.bytes())? {
                    continue;
                }
                let has_several = hashes.iter().any(|hash| *hash != hashes[0]);
                if level < LEVELS_MAX && has_several {
                    let parts = Parts::new(&spill, WHAT, level + 1);
                    let rest = &mut |row: &mut Row, _: &mut Exec<'_>| spilled.next_right(row);
                    let parts = self.divide_right(parts, right.rows, hashes, rest, cx)?;
                    let left = self.divide_left(spilled, level + 1, cx)?;
                    spilled.replace(left.finish()?, parts.finish()?);
                    continue 'pairs;
                }
                break;
            }
            spilled.begin_piece()?;
            right.hashed = Some(self.hashed(&right.rows, &hashes, cx)?);
            self.set_right(right);
            return Ok(true);
        }
    }

    /// Divides the left rows of a pair again.
    fn divide_left(
        &mut self,
        spilled: &mut SpilledJoin,
        level: u32,
        cx: &mut Exec<'_>,
    ) -> Result<Parts> {
        let mut parts = Parts::new(&spilled.spill, WHAT, level);
        while spilled.next_left(&mut self.row)? {
            cx.tick()?;
            let hash = self.left_hash(cx)?;
            parts.push(hash.unwrap_or(0), &self.row)?;
        }
        Ok(parts)
    }

    /// The next left row; false at the end of the input, or of the part at work.
    #[inline]
    fn next_left(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        match &mut self.spilled {
            None => self.left.next_into(cx, &mut self.row),
            Some(spilled) => spilled.next_left(&mut self.row),
        }
    }

    /// Reads the right rows of the left row at work; the first of them.
    fn load_own(&mut self, plan: &'p Plan, cx: &mut Exec<'_>) -> Result<Option<usize>> {
        let own = self.own.take();
        let mut own = own.unwrap_or_else(|| Right::new(self.no_rows(plan)));
        own.rows.clear();
        own.spooled = None;
        let mut cursor = self.own_rows(plan, cx);
        self.read(&mut *cursor, &mut own, cx)?;
        self.looked = Some(cursor);
        let first = (!own.is_empty()).then_some(0);
        self.own = Some(own);
        Ok(first)
    }

    fn no_rows(&self, plan: &Plan) -> PackedRows {
        let width = self.join.right_width;
        PackedRows::new(WHAT, width, filled(plan, width))
    }

    /// The right rows of the left row at work, from the first on.
    fn own_rows(&mut self, plan: &'p Plan, cx: &mut Exec<'_>) -> Box<dyn Cursor + 'p> {
        let kept = self.looked.take();
        let kept = kept.and_then(|mut cursor| cursor.rewind().then_some(cursor));
        kept.unwrap_or_else(|| open(plan, cx.measures.as_ref()))
    }

    /// Keeps the rows of a cursor, which are not hashed.
    fn read(
        &mut self,
        cursor: &mut dyn Cursor,
        right: &mut Right,
        cx: &mut Exec<'_>,
    ) -> Result<()> {
        coro::check_depth()?;
        let mut checked = 0;
        while cursor.next_into(cx, &mut self.scratch)? {
            cx.tick()?;
            right.rows.push(&mut self.scratch)?;
            if right.rows.bytes() >= checked + CHECKED_BYTES {
                checked = right.rows.bytes();
                let spill = cx.spill();
                if spill.is_due(checked)? {
                    return self.spool(cursor, right, &spill, cx);
                }
            }
        }
        Ok(())
    }

    /// Puts the rest of the right rows into scratch space.
    #[cold]
    fn spool(
        &mut self,
        cursor: &mut dyn Cursor,
        right: &mut Right,
        spill: &Spill,
        cx: &mut Exec<'_>,
    ) -> Result<()> {
        let mut writer = SpoolWriter::new(spill, WHAT);
        while cursor.next_into(cx, &mut self.scratch)? {
            cx.tick()?;
            writer.push(&self.scratch)?;
        }
        right.spooled = Some(Box::new(SpooledRows {
            rows: writer.finish()?,
            reader: SpoolReader::new(),
            row: Row::new(),
        }));
        Ok(())
    }

    fn hashed(
        &self,
        rows: &PackedRows,
        hashes: &[Option<u64>],
        cx: &mut Exec<'_>,
    ) -> Result<Hashed> {
        let mut places = HashedPlaces::with_capacity(hashes.len());
        // What is added last is shown first.
        for (place, hash) in hashes.iter().enumerate().rev() {
            cx.tick()?;
            if let Some(hash) = hash {
                places.add(*hash, place);
            }
        }
        let keys = self.join.hash.iter();
        let keys = keys.map(|hash| rows.position(hash.1.as_column()?));
        Ok(Hashed {
            places,
            keys: keys.collect(),
        })
    }

    /// Takes the next left row and finds what to try it with.
    fn advance(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        let join = self.join;
        let lookup = join.lookup.as_ref().filter(|_| self.lookups < join.lookups);
        if self.right.is_none() && join.lateral.is_none() && lookup.is_none() {
            self.load(cx)?;
            self.own = None;
        }
        if self.has_no_pairs() || !self.next_left(cx)? {
            return Ok(false);
        }
        cx.tick()?;
        let mut current = Current {
            next: None,
            matched: false,
        };
        if let Some(right) = &self.right {
            current.next = match &right.hashed {
                None => (!right.is_empty()).then_some(0),
                Some(hashed) => {
                    let values = join.hash.iter().map(|hash| &hash.0);
                    let hash = hash_of(values, &self.types, &self.row, &mut self.key, cx)?;
                    hash.and_then(|hash| hashed.places.first(hash))
                }
            };
        } else if let Some(plan) = lookup {
            self.lookups += 1;
            if matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                current.matched = self.has_match(plan, cx)?;
            } else {
                // The lookup sees the left row as one around it.
                cx.outer.push(std::mem::take(&mut self.row));
                let first = self.load_own(plan, cx);
                self.row = cx.outer.pop().unwrap_or_default();
                current.next = first?;
            }
        } else {
            let mut seen = vec![Datum::Null; join.lateral.unwrap_or(0)];
            seen.extend_from_slice(&self.row);
            cx.outer.push(seen);
            let first = self.load_own(&join.right, cx);
            cx.outer.pop();
            current.next = first?;
        }
        if let Some(spilled) = &self.spilled {
            let is_semi = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
            current.matched = is_semi && spilled.had_match();
        }
        self.current = Some(current);
        Ok(true)
    }

    /// Whether a lookup finds a right row that makes a pair. Whether there is a second does not matter
    /// to a semi-join.
    fn has_match(&mut self, plan: &'p Plan, cx: &mut Exec<'_>) -> Result<bool> {
        coro::check_depth()?;
        let mut rows = self.own_rows(plan, cx);
        let found = self.has_match_among(&mut *rows, cx)?;
        self.looked = Some(rows);
        Ok(found)
    }

    fn has_match_among(&mut self, rows: &mut dyn Cursor, cx: &mut Exec<'_>) -> Result<bool> {
        let mut pair = Row::new();
        loop {
            cx.tick()?;
            // The lookup sees the left row as one around it; the condition sees the pair.
            cx.outer.push(std::mem::take(&mut self.row));
            let next = rows.next_into(cx, &mut self.scratch);
            self.row = cx.outer.pop().unwrap_or_default();
            if !next? {
                return Ok(false);
            }
            // What must be equal is, since the lookup has found it.
            let Some(condition) = &self.join.rest else {
                return Ok(true);
            };
            pair.clear();
            pair.extend_from_slice(&self.row);
            pair.extend_from_slice(&self.scratch);
            if condition.test(cx, &pair)? {
                return Ok(true);
            }
        }
    }

    /// Puts the next pair of the current left row that meets the conditions into `out`; whether there
    /// is one. Of a semi-join nothing is put anywhere.
    fn pair(&mut self, cx: &mut Exec<'_>, out: &mut Row) -> Result<bool> {
        let (Some(current), join) = (&mut self.current, self.join) else {
            return Ok(false);
        };
        let Some(right) = self.right.as_mut().or(self.own.as_mut()) else {
            return Ok(false);
        };
        let is_semi = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
        // Without the left row's values in it yet.
        let mut begun = false;
        while let Some(place) = current.next {
            cx.tick()?;
            current.next = right.after(place);
            let condition = match &right.hashed {
                // All are tried, or a lookup has found what is equal.
                None => &join.rest,
                Some(hashed) => {
                    match hashed.equals(right.rows.get(place), &self.key, &self.types) {
                        Some(false) => continue,
                        Some(true) => &join.rest,
                        None => &join.condition,
                    }
                }
            };
            if let (Some(kept), None, false) = (&mut self.kept, condition, is_semi) {
                let is_last = current.next.is_none();
                kept.put_left(&mut self.row, is_last, out);
                right.append_some(place, &kept.right, out)?;
            } else if !(is_semi && condition.is_none()) {
                // Whose last right row it is needs no copy of the left one.
                let is_last = !begun && !is_semi && current.next.is_none();
                if is_last {
                    std::mem::swap(out, &mut self.row);
                } else if !begun {
                    out.clear();
                    out.extend_from_slice(&self.row);
                }
                begun = true;
                out.truncate(join.left_width);
                right.append_to(place, out)?;
                let holds = match condition {
                    Some(condition) => condition.test(cx, out)?,
                    None => true,
                };
                if !holds {
                    if is_last {
                        out.truncate(join.left_width);
                        std::mem::swap(out, &mut self.row);
                    }
                    continue;
                }
            }
            current.matched = true;
            if let Some(matched) = self.matched.get_mut(place) {
                *matched = true;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// The next right row that had no pair.
    fn unmatched_right(&mut self, out: &mut Row) -> Result<bool> {
        let Some(right) = &mut self.right else {
            return Ok(false);
        };
        while self.rest < right.len() {
            let place = self.rest;
            self.rest += 1;
            if !self.matched[place] {
                out.clear();
                out.resize(self.join.left_width, Datum::Null);
                right.append_to(place, out)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether left rows without a pair count.
fn keeps_left(kind: JoinKind) -> bool {
    match kind {
        JoinKind::Inner | JoinKind::Semi | JoinKind::Right => false,
        JoinKind::Left | JoinKind::Full | JoinKind::Anti => true,
    }
}

/// Puts the next row of an input into a row; false at its end.
type NextRow<'n> = &'n mut dyn FnMut(&mut Row, &mut Exec<'_>) -> Result<bool>;

/// The hash of the values of programs for a row, which are left in `key`; none if one is NULL.
fn hash_of<'a>(
    values: impl Iterator<Item = &'a Program>,
    types: &[TypeId],
    row: &[Datum],
    key: &mut Row,
    cx: &mut Exec<'_>,
) -> Result<Option<u64>> {
    key.clear();
    for value in values {
        let value = value.eval(cx, row)?;
        if value.is_null() {
            return Ok(None);
        }
        key.push(value);
    }
    Ok(Some(hash_row(types, key)))
}

/// The columns of a plan's rows, of so many, that ever have a value: of tables only those that are
/// needed do.
fn filled(plan: &Plan, width: usize) -> Vec<usize> {
    match plan {
        Plan::Scan(scan) if scan.kept.is_none() => {
            let needed = scan.needed.borrow();
            let columns = scan.table.columns.len();
            let is_needed =
                |place: &usize| *place >= columns || needed.get(*place).copied().unwrap_or(true);
            (0..width).filter(is_needed).collect()
        }
        Plan::Filter(input, _) | Plan::Once(input, _) => filled(input, width),
        Plan::Join(join) => match join.kind {
            _ if join.kept.is_some() => (0..width).collect(),
            JoinKind::Semi | JoinKind::Anti => filled(&join.left, width),
            _ if join.left_width + join.right_width == width => {
                let left = filled(&join.left, join.left_width);
                let right = filled(&join.right, join.right_width).into_iter();
                let right = right.map(|place| join.left_width + place);
                left.into_iter().chain(right).collect()
            }
            _ => (0..width).collect(),
        },
        _ => (0..width).collect(),
    }
}

impl Cursor for JoinCursor<'_> {
    fn restrict(&mut self, filter: &JoinFilter) {
        let width = self.join.left_width;
        if !self.join.condition.iter().all(Program::is_settled) {
            return;
        }
        let Some(filter) = filter.moved(|place| self.join.pair_column(place)) else {
            return;
        };
        match self.join.kind {
            // A right row without its left one would be shown alone.
            JoinKind::Right | JoinKind::Full => {}
            _ if filter.columns().iter().all(|place| *place < width) => self.left.restrict(&filter),
            JoinKind::Inner if self.join.lateral.is_none() => {
                self.filters
                    .extend(filter.moved(|place| place.checked_sub(width)));
            }
            _ => {}
        }
    }

    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let mut row = Row::new();
        Ok(self.next_into(cx, &mut row)?.then_some(row))
    }

    fn next_into(&mut self, cx: &mut Exec<'_>, out: &mut Row) -> Result<bool> {
        let found = self.next_pair(cx, out)?;
        if let (Some(kept), true) = (&mut self.kept, found) {
            kept.narrow(out);
        }
        Ok(found)
    }
}

impl JoinCursor<'_> {
    /// The next row; of what is kept of it the other columns may be there too.
    fn next_pair(&mut self, cx: &mut Exec<'_>, out: &mut Row) -> Result<bool> {
        let kind = self.join.kind;
        loop {
            if let Some(current) = self.current {
                let is_semi = matches!(kind, JoinKind::Semi | JoinKind::Anti);
                let found = (is_semi && current.matched) || self.pair(cx, out)?;
                if found && !is_semi {
                    return Ok(true);
                }
                let matched = found || self.current.is_some_and(|current| current.matched);
                self.current = None;
                let gives = match (&mut self.spilled, kind) {
                    (Some(spilled), _) => spilled.gives(matched),
                    (None, JoinKind::Semi) => matched,
                    (None, JoinKind::Anti | JoinKind::Left | JoinKind::Full) => !matched,
                    (None, JoinKind::Inner | JoinKind::Right) => false,
                };
                if gives {
                    std::mem::swap(out, &mut self.row);
                    if !is_semi {
                        out.resize(self.join.left_width + self.join.right_width, Datum::Null);
                    }
                    return Ok(true);
                }
            }
            if self.advance(cx)? {
                continue;
            }
            if SpilledJoin::needs_right(kind) && self.unmatched_right(out)? {
                return Ok(true);
            }
            if self.spilled.is_none() || !self.next_piece(cx)? {
                return Ok(false);
            }
        }
    }
}
