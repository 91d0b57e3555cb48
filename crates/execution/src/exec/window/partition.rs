//! The rows of one partition, as far as they are read and not forgotten.

use std::collections::VecDeque;

use base::memory::Reservation;
use base::Result;

use crate::exec::cursor::{open, Cursor};
use crate::exec::measure::Measuring;
use crate::exec::Exec;
use crate::kept::row_bytes;
use planner::plan::{Row, WindowPlan};

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
    kept: VecDeque<Kept>,
    /// The position of the first row that is kept.
    first: usize,
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
            kept: VecDeque::new(),
            first: 0,
            at: 0,
            peers: (0, None),
            whole: false,
            ahead: None,
            held: Reservation::of("A window"),
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
        if self.group(self.at) != self.group(self.at - 1) {
            self.peers = (self.at, None);
        }
        Ok(true)
    }

    fn keep(&mut self, row: Row, group: usize, cx: &Exec<'_>) -> Result<()> {
        let bytes = row_bytes(&row) + size_of::<Kept>() - size_of::<Row>();
        self.held.grow(bytes)?;
        self.kept.push_back(Kept { row, group, bytes });
        cx.check_held(self.held.bytes())
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
    pub fn row(&self, position: usize) -> &Row {
        &self.known(position).row
    }

    /// The number of the peer group of such a row.
    pub fn group(&self, position: usize) -> usize {
        self.known(position).group
    }

    fn known(&self, position: usize) -> &Kept {
        let place = position.checked_sub(self.first);
        let known = place.and_then(|place| self.kept.get(place));
        known.unwrap_or_else(|| {
            let end = self.first + self.kept.len();
            panic!(
                "row {position} is not kept: those from {} to {end} are",
                self.first
            )
        })
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
        let group = self.group(self.at);
        let mut end = self.at + 1;
        while self.has(end, cx)? && self.group(end) == group {
            end += 1;
        }
        self.peers.1 = Some(end);
        Ok(end)
    }

    /// Forgets the rows before a position, which nobody asks for any more; the row at work is kept
    /// until the next one is.
    pub fn forget(&mut self, before: usize) {
        while self.first < before.min(self.at) {
            let gone = self.kept.pop_front();
            self.held.shrink(gone.map_or(0, |gone| gone.bytes));
            self.first += 1;
        }
    }
}
