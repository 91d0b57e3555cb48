//! The rows of one partition, as far as they are read and not forgotten.
//!
//! ```text
//! forgotten │ in scratch space      │ in memory         │ not read yet
//!           │ [▪▪▪▪][▪▪▪▪][▪▪▪▪]    │ ▪▪▪▪▪▪▪           │
//!           from                    first                first + kept.len()
//! ```
//! Beyond `work_mem` all rows but the last go to scratch space, and come back a block at a time: what
//! looks at a partition goes over it in a few places at once, each of which moves forward.

use std::collections::VecDeque;

use base::large::Large;
use base::memory::Reservation;
use base::{Error, Result};

use crate::exec::cursor::{open, Cursor};
use crate::exec::measure::Measuring;
use crate::exec::Exec;
use crate::kept::row_bytes;
use crate::spool::{Spill, SpoolWriter};
use planner::plan::{Row, WindowPlan};
use types::Datum;

/// What an error calls the memory of a window.
const WHAT: &str = "A window";

/// So many blocks of rows in scratch space are at hand at a time: where frames begin and end, and
/// where the row at work and its peers are.
const BLOCKS_AT_HAND: usize = 4;

struct Kept {
    row: Row,
    /// The number of its peer group within the partition.
    group: usize,
    bytes: usize,
}

/// The rows around the row at work.
///
/// Positions count from the partition's first row. Invariant: the row at work is kept, and so is
/// every read row behind it.
pub struct Partition<'p> {
    plan: &'p WindowPlan,
    input: Box<dyn Cursor + 'p>,
    kept: Large<VecDeque<Kept>>,
    /// The position of the first row that is kept in memory.
    first: usize,
    /// The rows before it.
    spooled: Option<Box<SpooledPart>>,
    /// When rows go to scratch space.
    spill: Option<Spill>,
    at: usize,
    /// Where the peers of the row at work begin, and end if that is known.
    peers: (usize, Option<usize>),
    /// Whether all rows are read.
    whole: bool,
    /// The first row of the next partition.
    ahead: Option<Row>,
    held: Reservation,
}

impl<'p> Partition<'p> {
    /// Nothing yet: the first partition has to begin.
    pub fn new(plan: &'p WindowPlan, measures: Measuring<'_>) -> Partition<'p> {
        Partition {
            plan,
            input: open(&plan.input, measures),
            kept: Large::default(),
            first: 0,
            spooled: None,
            spill: None,
            at: 0,
            peers: (0, None),
            whole: false,
            ahead: None,
            held: Reservation::of(WHAT),
        }
    }

    /// Begins the next partition with its first row at work; false when there is none.
    pub fn begin(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        let row = match self.ahead.take() {
            Some(row) => row,
            // Only the first partition begins with a row that nobody has read.
            None if self.whole => return Ok(false),
            None => match self.input.next(cx)? {
                Some(row) => row,
                None => {
                    self.whole = true;
                    return Ok(false);
                }
            },
        };
        self.kept.clear();
        self.spooled = None;
        (self.first, self.at) = (0, 0);
        self.held.shrink(self.held.bytes());
        self.peers = (0, None);
        self.whole = false;
        self.keep(row, 0, cx)?;
        Ok(true)
    }

    /// Puts the next row to work; false at the partition's end.
    pub fn advance(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        if self.kept.is_empty() || !self.has(self.at + 1, cx)? {
            return Ok(false);
        }
        self.at += 1;
        if self.group(self.at)? != self.group(self.at - 1)? {
            self.peers = (self.at, None);
        }
        Ok(true)
    }

    fn keep(&mut self, row: Row, group: usize, cx: &Exec<'_>) -> Result<()> {
        let bytes = row_bytes(&row) + size_of::<Kept>() - size_of::<Row>();
        self.held.grow(bytes)?;
        self.kept.push_back(Kept { row, group, bytes });
        let spill = self.spill.get_or_insert_with(|| cx.spill());
        match spill.is_due(self.held.bytes())? {
            true => self.spool(),
            false => Ok(()),
        }
    }

    /// Puts all rows but the last into scratch space.
    #[cold]
    fn spool(&mut self) -> Result<()> {
        let Some(spill) = &self.spill else {
            return Ok(());
        };
        let from = self.first;
        let new = || Box::new(SpooledPart::new(spill, from));
        let spooled = self.spooled.get_or_insert_with(new);
        while self.kept.len() > 1 {
            let Some(mut kept) = self.kept.pop_front() else {
                break;
            };
            kept.row.push(Datum::Int8(kept.group as i64));
            spooled.rows.push(&kept.row)?;
            self.held.shrink(kept.bytes);
            self.first += 1;
        }
        spooled.rows.flush()
    }

    /// Reads the next row, unless it belongs to the next partition.
    fn read(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        if self.whole {
            return Ok(false);
        }
        cx.tick()?;
        let Some(row) = self.input.next(cx)? else {
            self.whole = true;
            return Ok(false);
        };
        let plan = self.plan;
        let last = self.kept.back().expect("the row at work is kept");
        let same = |place: usize, ty| types::equal(ty, &last.row[place], &row[place]);
        if !plan.partition.iter().all(|(place, ty)| same(*place, *ty)) {
            self.whole = true;
            self.ahead = Some(row);
            return Ok(false);
        }
        let is_peer = plan.order.iter().all(|(place, ty, ..)| same(*place, *ty));
        let group = last.group + usize::from(!is_peer);
        self.keep(row, group, cx)?;
        Ok(true)
    }

    /// Whether the partition has a row at a position.
    pub fn has(&mut self, position: usize, cx: &mut Exec<'_>) -> Result<bool> {
        while self.first + self.kept.len() <= position {
            if !self.read(cx)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many rows the partition has.
    pub fn count(&mut self, cx: &mut Exec<'_>) -> Result<usize> {
        while self.read(cx)? {}
        Ok(self.first + self.kept.len())
    }

    /// The position of the row at work.
    pub fn at(&self) -> usize {
        self.at
    }

    /// A row that is read and not forgotten.
    ///
    /// # Errors
    /// What reading scratch space raises.
    #[inline]
    pub fn row(&mut self, position: usize) -> Result<&Row> {
        Ok(&self.known(position)?.row)
    }

    /// The number of the peer group of such a row.
    ///
    /// # Errors
    /// As [`Partition::row`].
    pub fn group(&mut self, position: usize) -> Result<usize> {
        Ok(self.known(position)?.group)
    }

    #[inline]
    fn known(&mut self, position: usize) -> Result<&Kept> {
        let end = self.first + self.kept.len();
        match (position.checked_sub(self.first), &mut self.spooled) {
            (Some(place), _) if place < self.kept.len() => Ok(&self.kept[place]),
            (None, Some(spooled)) if position >= spooled.from => spooled.known(position),
            _ => panic!(
                "row {position} is not kept: those from {} to {end} are",
                self.first
            ),
        }
    }

    /// The position of the first peer of the row at work.
    pub fn peers_from(&self) -> usize {
        self.peers.0
    }

    /// The position behind the last peer of the row at work.
    pub fn peers_to(&mut self, cx: &mut Exec<'_>) -> Result<usize> {
        if let Some(end) = self.peers.1 {
            return Ok(end);
        }
        let group = self.group(self.at)?;
        let mut end = self.at + 1;
        while self.has(end, cx)? && self.group(end)? == group {
            end += 1;
        }
        self.peers.1 = Some(end);
        Ok(end)
    }

    /// Forgets the rows before a position, which nobody asks for any more; the row at work is kept
    /// until the next one is.
    pub fn forget(&mut self, before: usize) {
        let before = before.min(self.at);
        if let Some(spooled) = &mut self.spooled {
            match before < self.first {
                true => spooled.forget(before),
                false => self.spooled = None,
            }
        }
        while self.first < before {
            let gone = self.kept.pop_front();
            self.held.shrink(gone.map_or(0, |gone| gone.bytes));
            self.first += 1;
        }
    }
}

/// Rows of a partition that lie in scratch space, each with the number of its peer group behind it.
struct SpooledPart {
    /// The position of the first of them, which may be forgotten.
    start: usize,
    /// Rows before this position are forgotten.
    from: usize,
    rows: SpoolWriter,
    at_hand: VecDeque<BlockAtHand>,
    bytes: Vec<u8>,
}

/// A block of rows that is in memory.
struct BlockAtHand {
    /// The position of its first row.
    first: usize,
    rows: Vec<Kept>,
    _held: Reservation,
}

impl SpooledPart {
    fn new(spill: &Spill, start: usize) -> SpooledPart {
        SpooledPart {
            start,
            from: start,
            rows: SpoolWriter::new(spill, WHAT),
            at_hand: VecDeque::new(),
            bytes: Vec::new(),
        }
    }

    fn known(&mut self, position: usize) -> Result<&Kept> {
        let has = |block: &BlockAtHand| {
            let place = position.checked_sub(block.first);
            place.is_some_and(|place| place < block.rows.len())
        };
        let place = match self.at_hand.iter().position(has) {
            Some(place) => place,
            None => self.load(position)?,
        };
        let block = &self.at_hand[place];
        Ok(&block.rows[position - block.first])
    }

    /// Reads the block of a row; where it is among those at hand.
    fn load(&mut self, position: usize) -> Result<usize> {
        let spooled = self.rows.spooled();
        let (block, first) = spooled.block_of(position - self.start);
        let mut held = Reservation::of(WHAT);
        let mut rows = Vec::new();
        for mut row in spooled.read_block(block, &mut self.bytes)? {
            let group = match row.pop() {
                Some(Datum::Int8(group)) => group as usize,
                _ => return Err(Error::corrupted("a row of a window in scratch space")),
            };
            let bytes = row_bytes(&row);
            held.grow(bytes)?;
            rows.push(Kept { row, group, bytes });
        }
        if self.at_hand.len() == BLOCKS_AT_HAND {
            self.at_hand.pop_front();
        }
        self.at_hand.push_back(BlockAtHand {
            first: self.start + first,
            rows,
            _held: held,
        });
        Ok(self.at_hand.len() - 1)
    }

    fn forget(&mut self, before: usize) {
        self.from = self.from.max(before);
        self.rows.forget(self.from - self.start);
    }
}
