//! The loops of a block.

use std::rc::Rc;

use base::{Error, Result, SqlState};

use super::super::in_use::Using;
use super::super::Session;
use super::compile::{RowsFrom, Step, StepKind};
use super::piece::Piece;
use super::run::{at_line, Flow, Frame};
use execution::kept::RowStore;
use execution::state::prepared::Planned;
use types::{Datum, TypeId};

/// The rows that a loop goes over: their types, and what describes them if a query gave them.
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
            StepKind::ForEach { source, .. } => {
                let rows = self.loop_rows(source, frame);
                let rows = rows.map_err(|error| at_line(error, step, &frame.name))?;
                match rows.planned.clone() {
                    // As in PostgreSQL, where its rows are read as the loop goes on.
                    Some(planned) => self.using(Using::Plan(planned), |session| {
                        session.each_row(step, rows, frame)
                    }),
                    None => self.each_row(step, rows, frame),
                }
            }
            _ => self.integers(step, frame),
        }
    }

    fn loop_rows(&mut self, source: &RowsFrom, frame: &mut Frame<'_>) -> Result<LoopRows> {
        let mut rows = RowStore::of("The rows of a statement");
        let planned = match source {
            RowsFrom::Query(query) => {
                let outcome = self.run_piece(query, &frame.slots, &mut rows, usize::MAX);
                outcome.map_err(|error| query.explain(error))?.1
            }
            RowsFrom::Dynamic(query, using) => {
                let (_, planned) = self.dynamic(query, using, &mut rows, usize::MAX, frame)?;
                planned.ok_or_else(|| {
                    Error::new(
                        SqlState::INVALID_CURSOR_STATE,
                        "cannot open non-SELECT query as cursor",
                    )
                })?
            }
            RowsFrom::Elements(array) => return self.elements(array, frame),
        };
        Ok(LoopRows {
            types: planned.types.clone(),
            planned: Some(planned),
            rows,
        })
    }

    fn elements(&mut self, array: &Piece, frame: &Frame<'_>) -> Result<LoopRows> {
        match self.value_of(array, &frame.slots)? {
            (Datum::Array(array), ty) => {
                let mut rows = RowStore::of("The elements of an array");
                for value in &array.elements {
                    rows.push(vec![value.clone()])?;
                }
                Ok(LoopRows {
                    types: vec![ty.array_element().unwrap_or(array.element)],
                    planned: None,
                    rows,
                })
            }
            (Datum::Null, _) => Err(Error::new(
                SqlState::of("22004"),
                "FOREACH expression must not be null",
            )),
            _ => Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                "FOREACH expression must yield an array",
            )),
        }
    }

    fn each_row(&mut self, step: &Step, rows: LoopRows, frame: &mut Frame<'_>) -> Result<Flow> {
        let StepKind::ForEach {
            label,
            targets,
            body,
            ..
        } = &step.kind
        else {
            return Err(Error::internal("no loop over rows"));
        };
        let any = !rows.rows.is_empty();
        let mut flow = Flow::Next;
        for row in rows.rows {
            self.tick(frame)?;
            let shape = (rows.types.as_slice(), rows.planned.as_deref());
            self.fill_row(targets, shape, row, frame)
                .map_err(|error| at_line(error, step, &frame.name))?;
            if let Some(end) = self.turn(label.as_ref(), body, frame)? {
                flow = end;
                break;
            }
        }
        frame.slots[frame.found].value = Datum::Bool(any);
        Ok(flow)
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
