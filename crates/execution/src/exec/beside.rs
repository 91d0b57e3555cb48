//! Rows of several plans side by side (`ROWS FROM`).

use std::rc::Rc;

use base::Result;

use super::cursor::{open, Cursor};
use super::Exec;
use planner::plan::{Plan, Row};
use types::Datum;

/// The rows of a [`Plan::Beside`].
pub(super) struct BesideCursor<'p> {
    /// Each with how many columns it has, and none once it has ended.
    inputs: Vec<(Option<Box<dyn Cursor + 'p>>, usize)>,
    ordinality: bool,
    number: i64,
}

impl<'p> BesideCursor<'p> {
    /// A cursor over such a plan.
    pub(super) fn new(parts: &'p [(Rc<Plan>, usize)], ordinality: bool) -> BesideCursor<'p> {
        let inputs = parts
            .iter()
            .map(|(plan, width)| (Some(open(plan, None)), *width));
        BesideCursor {
            inputs: inputs.collect(),
            ordinality,
            number: 0,
        }
    }
}

impl Cursor for BesideCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        cx.tick()?;
        let mut row = Row::new();
        let mut any = false;
        for (input, width) in &mut self.inputs {
            let next = match input {
                Some(cursor) => cursor.next(cx)?,
                None => None,
            };
            match next {
                Some(own) => {
                    any = true;
                    row.extend(own);
                }
                None => {
                    *input = None;
                    row.resize(row.len() + *width, Datum::Null);
                }
            }
        }
        if !any {
            return Ok(None);
        }
        if self.ordinality {
            self.number += 1;
            row.push(Datum::Int8(self.number));
        }
        Ok(Some(row))
    }
}
