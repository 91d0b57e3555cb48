//! Joins: the right input is kept in memory, hashed where an equality allows it.
//!
//! Where a key leads from a left row to its right rows, the first [`Join::lookups`] left rows look
//! theirs up. Whoever has more reads the right input after all: nobody knows for certain how large
//! the inputs are, and this way neither a few rows pay for a large table nor many for lookups.

use std::rc::Rc;

use base::hash::HashMap;
use base::{coro, Result};

use super::cursor::{open, Cursor};
use super::measure::Measuring;
use super::{collect, Exec};
use crate::exec::program::Evaluate;
use crate::kept::{RowStore, HASHED_BYTES};
use planner::plan::{Join, JoinKind, Plan, Row};
use types::hash_row;
use types::{Datum, TypeId};

/// The rows of a [`Join`].
pub struct JoinCursor<'p> {
    join: &'p Join,
    left: Box<dyn Cursor + 'p>,
    right: Option<Rc<Right>>,
    /// The left row at work: itself, the right rows to try, how many were tried, any match yet.
    current: Option<Current>,
    matched: Vec<bool>,
    /// RIGHT and FULL: which right rows still have to be shown alone.
    rest: usize,
    /// How many left rows have looked up theirs.
    lookups: usize,
}

struct Current {
    row: Row,
    right: Rc<Right>,
    candidates: Option<Vec<usize>>,
    tried: usize,
    matched: bool,
}

struct Right {
    rows: RowStore,
    by_hash: HashMap<u64, Vec<usize>>,
}

impl<'p> JoinCursor<'p> {
    /// A cursor over such a join.
    pub fn new(join: &'p Join, measures: Measuring<'_>) -> JoinCursor<'p> {
        JoinCursor {
            join,
            left: open(&join.left, measures),
            right: None,
            current: None,
            matched: Vec::new(),
            rest: 0,
            lookups: 0,
        }
    }

    fn types(&self) -> Vec<TypeId> {
        self.join.hash.iter().map(|hash| hash.2).collect()
    }

    fn load(&self, cx: &mut Exec<'_>) -> Result<Right> {
        let mut rows = collect(&self.join.right, "A join", cx)?;
        let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::default();
        if !self.join.hash.is_empty() {
            let types = self.types();
            rows.grow(rows.len() * HASHED_BYTES)?;
            for (place, row) in rows.iter().enumerate() {
                cx.tick()?;
                let mut key = Vec::with_capacity(types.len());
                for (_, value, _) in &self.join.hash {
                    key.push(value.eval(cx, row)?);
                }
                if !key.iter().any(Datum::is_null) {
                    by_hash
                        .entry(hash_row(&types, &key))
                        .or_default()
                        .push(place);
                }
            }
        }
        Ok(Right { rows, by_hash })
    }

    /// Takes the next left row and finds what to try it with.
    fn advance(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        let join = self.join;
        let lookup = join.lookup.as_ref().filter(|_| self.lookups < join.lookups);
        if self.right.is_none() && join.lateral.is_none() && lookup.is_none() {
            let right = Rc::new(self.load(cx)?);
            self.matched = vec![false; right.rows.len()];
            self.right = Some(right);
        }
        let Some(row) = self.left.next(cx)? else {
            return Ok(false);
        };
        let right = match (&self.right, lookup) {
            (Some(right), _) => right.clone(),
            (None, Some(plan)) => {
                self.lookups += 1;
                let rows = match join.kind {
                    JoinKind::Semi | JoinKind::Anti => self.first_match(plan, &row, cx)?,
                    _ => {
                        cx.outer.push(row.clone());
                        let rows = collect(plan, "A join", cx);
                        cx.outer.pop();
                        rows?
                    }
                };
                Rc::new(Right {
                    rows,
                    by_hash: HashMap::default(),
                })
            }
            (None, None) => {
                let mut seen = vec![Datum::Null; join.lateral.unwrap_or(0)];
                seen.extend_from_slice(&row);
                cx.outer.push(seen);
                let right = self.load(cx);
                cx.outer.pop();
                Rc::new(right?)
            }
        };
        let candidates = match join.hash.is_empty() || self.right.is_none() {
            true => None,
            false => {
                let types = self.types();
                let mut key = Vec::with_capacity(types.len());
                for (value, _, _) in &join.hash {
                    key.push(value.eval(cx, &row)?);
                }
                let found = match key.iter().any(Datum::is_null) {
                    true => None,
                    false => right.by_hash.get(&hash_row(&types, &key)),
                };
                Some(found.cloned().unwrap_or_default())
            }
        };
        self.current = Some(Current {
            row,
            right,
            candidates,
            tried: 0,
            matched: false,
        });
        Ok(true)
    }

    /// The first right row that a lookup finds and that makes a pair, if there is one: whether there
    /// is a second does not matter to a semi-join.
    fn first_match(&self, plan: &'p Plan, left: &Row, cx: &mut Exec<'_>) -> Result<RowStore> {
        coro::check_depth()?;
        let mut found = RowStore::of("A join");
        let mut rows = open(plan, cx.measures.as_ref());
        let (mut pair, mut seen) = (left.clone(), left.clone());
        loop {
            cx.tick()?;
            // The lookup sees the left row as one around it; the condition sees the pair.
            cx.outer.push(std::mem::take(&mut seen));
            let next = rows.next(cx);
            seen = cx.outer.pop().unwrap_or_default();
            let Some(right) = next? else {
                return Ok(found);
            };
            pair.truncate(left.len());
            pair.extend_from_slice(&right);
            let holds = match &self.join.condition {
                Some(condition) => condition.test(cx, &pair)?,
                None => true,
            };
            if holds {
                found.push(right)?;
                return Ok(found);
            }
        }
    }

    /// The next pair of the current left row that meets the condition.
    fn pair(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let Some(current) = &mut self.current else {
            return Ok(None);
        };
        loop {
            let place = match &current.candidates {
                Some(candidates) => candidates.get(current.tried).copied(),
                None => (current.tried < current.right.rows.len()).then_some(current.tried),
            };
            let Some(place) = place else {
                return Ok(None);
            };
            current.tried += 1;
            cx.tick()?;
            let mut row = current.row.clone();
            row.extend_from_slice(&current.right.rows[place]);
            let holds = match &self.join.condition {
                Some(condition) => condition.test(cx, &row)?,
                None => true,
            };
            if holds {
                current.matched = true;
                if let Some(matched) = self.matched.get_mut(place) {
                    *matched = true;
                }
                return Ok(Some(row));
            }
        }
    }

    fn unmatched_right(&mut self) -> Option<Row> {
        let right = self.right.as_ref()?;
        while self.rest < right.rows.len() {
            let place = self.rest;
            self.rest += 1;
            if !self.matched[place] {
                let mut row = vec![Datum::Null; self.join.left_width];
                row.extend_from_slice(&right.rows[place]);
                return Some(row);
            }
        }
        None
    }
}

impl Cursor for JoinCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        loop {
            let pair = self.pair(cx)?;
            match (self.join.kind, pair) {
                (JoinKind::Semi, Some(_)) => return Ok(self.current.take().map(|left| left.row)),
                (JoinKind::Anti, Some(_)) => self.current = None,
                (_, Some(pair)) => return Ok(Some(pair)),
                (kind, None) => {
                    let alone = self.current.take().filter(|current| !current.matched);
                    match (kind, alone) {
                        (JoinKind::Anti, Some(left)) => return Ok(Some(left.row)),
                        (JoinKind::Left | JoinKind::Full, Some(left)) => {
                            let mut row = left.row;
                            row.resize(row.len() + self.join.right_width, Datum::Null);
                            return Ok(Some(row));
                        }
                        _ => {}
                    }
                }
            }
            if !self.advance(cx)? {
                break;
            }
        }
        match self.join.kind {
            JoinKind::Right | JoinKind::Full => Ok(self.unmatched_right()),
            _ => Ok(None),
        }
    }
}
