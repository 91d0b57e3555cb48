//! Joins: the right input is kept in memory, hashed where an equality allows it.
//!
//! Where a key leads from a left row to its right rows, the first [`LOOKUPS_MAX`] left rows look
//! theirs up. Whoever has more reads the right input after all: nobody knows beforehand how large
//! the inputs are, and this way neither a few rows pay for a large table nor many for lookups.

use std::rc::Rc;

use base::hash::HashMap;
use base::Result;

use super::cursor::{open, Cursor};
use super::{collect, Exec};
use crate::exec::program::Evaluate;
use planner::plan::{Join, JoinKind, Row};
use types::hash_row;
use types::{Datum, TypeId};

/// So many left rows look up their right rows by key, before the right input is read as a whole.
const LOOKUPS_MAX: usize = 2_000;

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
    rows: Vec<Row>,
    by_hash: HashMap<u64, Vec<usize>>,
}

impl<'p> JoinCursor<'p> {
    /// A cursor over such a join.
    pub fn new(join: &'p Join) -> JoinCursor<'p> {
        JoinCursor {
            join,
            left: open(&join.left),
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
        let rows = collect(&self.join.right, cx)?;
        let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::default();
        if !self.join.hash.is_empty() {
            let types = self.types();
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
        let lookup = join.lookup.as_ref().filter(|_| self.lookups < LOOKUPS_MAX);
        if self.right.is_none() && !join.lateral && lookup.is_none() {
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
                cx.outer.push(row.clone());
                let rows = collect(plan, cx);
                cx.outer.pop();
                Rc::new(Right {
                    rows: rows?,
                    by_hash: HashMap::default(),
                })
            }
            (None, None) => {
                cx.outer.push(row.clone());
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
            if let Some(row) = self.pair(cx)? {
                return Ok(Some(row));
            }
            if let Some(current) = self.current.take() {
                let keeps_left = matches!(self.join.kind, JoinKind::Left | JoinKind::Full);
                if !current.matched && keeps_left {
                    let mut row = current.row;
                    row.resize(row.len() + self.join.right_width, Datum::Null);
                    return Ok(Some(row));
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
