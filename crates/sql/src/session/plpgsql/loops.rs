//! The loops of a block.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};

use super::super::in_use::Using;
use super::super::{Column, Session};
use super::code::{RowsFrom, Step, StepKind, Target};
use super::piece::Piece;
use super::run::{at_line, Flow, Frame};
use super::statement::Wanted;
use execution::kept::RowStore;
use execution::state::prepared::Planned;
use planner::plan::Row;
use types::{Datum, TypeId};

/// How many rows a loop over a query fetches at a time, as in PostgreSQL: few at first, for it may be
/// left soon.
const AHEAD: [i64; 2] = [10, 50];

/// The turns of a loop over rows.
pub(super) struct Turns<'t> {
    pub step: &'t Step,
    pub label: Option<&'t String>,
    pub targets: &'t [Target],
    pub body: &'t [Step],
    /// How many rows of a cursor are fetched at a time; the last number goes on.
    pub ahead: &'t [i64],
}

/// What a loop over rows reads.
enum Source {
    /// A query, as the loop goes on: the name of its cursor.
    Cursor(String),
    /// What is there before the first turn: elements, and rows of a statement that does more than read.
    Rows(LoopRows),
}

/// The rows that a loop goes over: their types, and what describes them if a statement gave them.
struct LoopRows {
    types: Vec<TypeId>,
    planned: Option<Rc<Planned>>,
    rows: RowStore,
}

impl Session {
    /// Any of the loops.
    pub(super) fn loop_step(&mut self, step: &Step, frame: &mut Frame<'_>) -> Result<Flow> {
        match &step.kind {
            StepKind::Forever(label, body) => loop {
                let ticked = self.tick(frame);
                ticked.map_err(|error| at_line(error, step, &frame.name))?;
                if let Some(flow) = self.turn(label.as_ref(), body, frame)? {
                    return Ok(flow);
                }
            },
            StepKind::While(label, condition, body) => loop {
                let ticked = self.tick(frame);
                ticked.map_err(|error| at_line(error, step, &frame.name))?;
                match self.is_true(condition, frame) {
                    Ok(true) => {}
                    Ok(false) => return Ok(Flow::Next),
                    Err(error) => return Err(at_line(error, step, &frame.name)),
                }
                if let Some(flow) = self.turn(label.as_ref(), body, frame)? {
                    return Ok(flow);
                }
            },
            StepKind::ForEach {
                label,
                targets,
                source,
                body,
            } => {
                let turns = Turns {
                    step,
                    label: label.as_ref(),
                    targets,
                    body,
                    ahead: &AHEAD,
                };
                let rows = self.loop_rows(source, targets, frame);
                let rows = rows.map_err(|error| at_line(error, step, &frame.name))?;
                let rows = match rows {
                    Source::Cursor(name) => return self.each_fetched(&name, &turns, frame),
                    Source::Rows(rows) => rows,
                };
                match rows.planned.clone() {
                    // As in PostgreSQL, where the statement ends with the loop.
                    Some(planned) => self.using(Using::Plan(planned), |session| {
                        session.each_row(&turns, rows, frame)
                    }),
                    None => self.each_row(&turns, rows, frame),
                }
            }
            StepKind::ForCursor { .. } => self.each_of_cursor(step, frame),
            _ => self.integers(step, frame),
        }
    }

    fn loop_rows(
        &mut self,
        source: &RowsFrom,
        into: &[Target],
        frame: &mut Frame<'_>,
    ) -> Result<Source> {
        let mut rows = RowStore::of("The rows of a statement");
        let planned = match source {
            RowsFrom::Query(query) => {
                if let Some(name) = self.open_loop(query, frame)? {
                    return Ok(Source::Cursor(name));
                }
                self.rows_of_piece(query, &mut rows, frame)?
            }
            RowsFrom::Dynamic(query, using) => {
                let text = self.dynamic_text(query, using, frame)?;
                if let Some(name) = self.open_dynamic_loop(&text)? {
                    return Ok(Source::Cursor(name));
                }
                let (_, planned) =
                    self.dynamic(&text, &mut rows, Wanted::Most(usize::MAX), frame)?;
                planned.ok_or_else(|| Error::internal("rows that nothing describes"))?
            }
            RowsFrom::Elements(array, slice) => {
                return self.elements(array, *slice, into, frame).map(Source::Rows);
            }
        };
        Ok(Source::Rows(LoopRows {
            types: planned.types.clone(),
            planned: Some(planned),
            rows,
        }))
    }

    /// The elements of an array, or, with a slice, its parts of so many dimensions.
    fn elements(
        &mut self,
        array: &Piece,
        slice: i64,
        into: &[Target],
        frame: &Frame<'_>,
    ) -> Result<LoopRows> {
        let (array, ty) = match self.value_of(array, &frame.slots)? {
            (Datum::Array(array), ty) => (array, ty),
            (Datum::Null, _) => {
                return Err(Error::new(
                    SqlState::of("22004"),
                    "FOREACH expression must not be null",
                ))
            }
            (_, ty) => {
                let shown = types::format_type(ty, types::NO_TYPMOD);
                return Err(Error::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("FOREACH expression must yield an array, not type {shown}"),
                ));
            }
        };
        let dimensions = array.dimensions.len();
        let Some(kept) = usize::try_from(slice).ok().filter(|it| *it <= dimensions) else {
            return Err(Error::new(
                SqlState::of("2202E"),
                format!("slice dimension ({slice}) is out of the valid range 0..{dimensions}"),
            ));
        };
        if let [Target { slot, field: None }] = into {
            let target = &frame.slots[*slot];
            let is_array = target.ty.array_element().is_some();
            if !target.is_record && is_array != (kept > 0) {
                let message = match kept {
                    0 => "FOREACH loop variable must not be of an array type",
                    _ => "FOREACH ... SLICE loop variable must be of an array type",
                };
                return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
            }
        }
        let element = ty.array_element().unwrap_or(array.element);
        let mut rows = RowStore::of("The elements of an array");
        // Several variables take the fields of a row.
        let fields = match into.len() > 1 {
            true => self.known_catalog().fields(element),
            false => None,
        };
        if let (0, Some(fields)) = (kept, fields) {
            let types: Vec<_> = fields.iter().map(|field| field.ty).collect();
            for value in &array.elements {
                rows.push(match value {
                    Datum::Record(row) => row.values.clone(),
                    _ => vec![Datum::Null; types.len()],
                })?;
            }
            return Ok(LoopRows {
                types,
                planned: None,
                rows,
            });
        }
        if kept == 0 {
            for value in &array.elements {
                rows.push(vec![value.clone()])?;
            }
        } else {
            let inner = &array.dimensions[dimensions - kept..];
            let each: usize = inner.iter().map(|it| it.len as usize).product();
            for part in array.elements.chunks(each.max(1)) {
                let part = types::Array {
                    element: array.element,
                    dimensions: inner.to_vec(),
                    elements: part.to_vec(),
                };
                rows.push(vec![Datum::Array(Arc::new(part))])?;
            }
        }
        Ok(LoopRows {
            types: vec![if kept == 0 { element } else { ty }],
            planned: None,
            rows,
        })
    }

    fn each_row(
        &mut self,
        turns: &Turns<'_>,
        rows: LoopRows,
        frame: &mut Frame<'_>,
    ) -> Result<Flow> {
        let any = !rows.rows.is_empty();
        let columns = rows.planned.as_ref().and_then(|it| it.columns.as_deref());
        let shape = (rows.types.as_slice(), columns);
        let mut flow = Flow::Next;
        for row in rows.rows {
            if let Some(end) = self.turn_with(turns, shape, row, frame)? {
                flow = end;
                break;
            }
        }
        frame.slots[frame.found].value = Datum::Bool(any);
        Ok(flow)
    }

    /// One turn of a loop with a row of these types and columns.
    pub(super) fn turn_with(
        &mut self,
        turns: &Turns<'_>,
        shape: (&[TypeId], Option<&[Column]>),
        row: Row,
        frame: &mut Frame<'_>,
    ) -> Result<Option<Flow>> {
        self.tick(frame)?;
        let counted = self.check_count(turns.targets, shape.0.len(), frame);
        counted
            .and_then(|()| self.fill_row(turns.targets, shape, row, frame))
            .map_err(|error| at_line(error, turns.step, &frame.name))?;
        self.turn(turns.label, turns.body, frame)
    }

    /// One turn of a loop; some flow when the loop ends with it.
    fn turn(
        &mut self,
        label: Option<&String>,
        body: &[Step],
        frame: &mut Frame<'_>,
    ) -> Result<Option<Flow>> {
        Ok(match self.steps(body, frame)? {
            Flow::Next | Flow::Continue(None) => None,
            Flow::Exit(None) => Some(Flow::Next),
            Flow::Continue(Some(name)) if label == Some(&name) => None,
            Flow::Exit(Some(name)) if label == Some(&name) => Some(Flow::Next),
            flow => Some(flow),
        })
    }

    fn integers(&mut self, step: &Step, frame: &mut Frame<'_>) -> Result<Flow> {
        let StepKind::Integers {
            label,
            slot,
            reverse,
            first,
            last,
            step: by,
            body,
        } = &step.kind
        else {
            return Err(Error::internal("no loop over integers"));
        };
        let mut bound = |piece: &Piece, what: &str| -> Result<i32> {
            let (value, ty) = self.value_of(piece, &frame.slots)?;
            match self.convert(value, ty, TypeId::INT4, -1)? {
                Datum::Int4(value) => Ok(value),
                _ => Err(Error::new(
                    SqlState::of("22004"),
                    format!("{what} of FOR loop cannot be null"),
                )),
            }
        };
        let bounds = bound(first, "lower bound").and_then(|first| {
            let last = bound(last, "upper bound")?;
            let by = match by {
                Some(by) => bound(by, "BY value")?,
                None => 1,
            };
            if by <= 0 {
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "BY value of FOR loop must be greater than zero",
                ));
            }
            Ok((first, last, by))
        });
        let (first, last, by) = bounds.map_err(|error| at_line(error, step, &frame.name))?;
        let by = if *reverse { -by } else { by };
        let mut value = first;
        let mut any = false;
        let flow = loop {
            let over = if *reverse { value < last } else { value > last };
            if over {
                break Flow::Next;
            }
            any = true;
            self.tick(frame)?;
            frame.slots[*slot].value = Datum::Int4(value);
            if let Some(flow) = self.turn(label.as_ref(), body, frame)? {
                break flow;
            }
            match value.checked_add(by) {
                Some(next) => value = next,
                None => break Flow::Next,
            }
        };
        frame.slots[frame.found].value = Datum::Bool(any);
        Ok(flow)
    }
}
