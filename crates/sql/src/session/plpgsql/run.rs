//! Carries out compiled blocks.

use std::rc::Rc;

use base::engine::{Savepoint, TxnOptions};
use base::limits::ROWS_PER_YIELD;
use base::memory::Reservation;
use base::{coro, Error, ErrorClass, Result, SqlState};

use super::super::transaction::State;
use super::super::{Column, Session, Sink};
use super::code::{BlockCode, Code, Returns, RowsFrom, Step, StepKind, Target};
use super::piece::{add_context, record_of, unassigned, Names, Piece, Slot};
use super::place::At;
use execution::kept::{apart, large_bytes, RowStore};
use planner::plan::Row;
use syntax::parser::{self, TokenKind};
use syntax::plpgsql::ast::{Condition, Message};
use syntax::plpgsql::conditions;
use types::{self, Datum, TypeId};

/// How a statement ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next one follows.
    Next,
    /// EXIT: of the innermost loop, or of what has that label.
    Exit(Option<String>),
    /// CONTINUE.
    Continue(Option<String>),
    /// RETURN.
    Return,
}

/// A block that runs.
pub(super) struct Frame<'f> {
    pub slots: Vec<Slot>,
    pub sink: &'f mut dyn Sink,
    pub found: usize,
    /// Whether transactions must not end here.
    pub atomic: bool,
    /// How many blocks with handlers it is in.
    pub guarded: usize,
    pub rows: u64,
    ticks: usize,
    /// The long values of variables.
    large: Reservation,
    /// The errors being handled, the innermost last.
    pub errors: Vec<Error>,
    /// What errors call it.
    pub name: Rc<str>,
    /// What it gives back, and so far has.
    pub returns: &'f Returns,
    pub returned: Option<(Datum, TypeId)>,
    pub out_rows: RowStore,
    /// Whether errors of INTO STRICT show parameters.
    pub prints_strict: bool,
    /// What a text that EXECUTE runs sees.
    pub rows_named: Rc<Names>,
}

/// What a block gave.
pub(in crate::session) struct Done {
    pub returned: Datum,
    pub rows: RowStore,
}

impl Session {
    /// Runs a compiled block.
    pub(in crate::session) fn run_block(
        &mut self,
        code: &Code,
        slots: Vec<Slot>,
        atomic: bool,
        sink: &mut dyn Sink,
    ) -> Result<Done> {
        let mut frame = Frame {
            slots,
            sink,
            found: code.found,
            name: code.name.clone(),
            returns: &code.returns,
            returned: None,
            out_rows: RowStore::of("The rows of a function"),
            atomic,
            guarded: 0,
            rows: 0,
            ticks: 0,
            large: Reservation::of("A variable"),
            errors: Vec::new(),
            prints_strict: code.prints_strict,
            rows_named: code.rows.clone(),
        };
        self.ensure_open()?;
        if let Some(open) = &mut self.open {
            open.begun = true;
        }
        let returned = self.placed(&code.name, At::Start, |session| {
            session.block(&code.body, &mut frame)?;
            session.end_of_block(&mut frame)
        })?;
        Ok(Done {
            returned,
            rows: frame.out_rows,
        })
    }

    pub(super) fn block(&mut self, block: &BlockCode, frame: &mut Frame<'_>) -> Result<Flow> {
        coro::check_depth()?;
        let flow = match block.handlers.is_empty() {
            true => self.block_body(block, frame)?,
            false => self.guarded_block(block, frame)?,
        };
        Ok(match flow {
            Flow::Exit(Some(label)) if block.label.as_ref() == Some(&label) => Flow::Next,
            flow => flow,
        })
    }

    fn block_body(&mut self, block: &BlockCode, frame: &mut Frame<'_>) -> Result<Flow> {
        for (slot, default, line) in &block.declarations {
            let outcome = match default {
                Some(default) => {
                    let value = self.value_of(default, &frame.slots);
                    value.and_then(|(value, ty)| self.store(frame, *slot, value, ty))
                }
                // A domain may refuse it.
                None if frame.slots[*slot].ty.is_of_domain() => {
                    self.store(frame, *slot, Datum::Null, TypeId::UNKNOWN)
                }
                None => {
                    let slot = &mut frame.slots[*slot];
                    slot.value = Datum::Null;
                    slot.shape = slot.fixed.clone();
                    Ok(())
                }
            };
            outcome.map_err(|mut error| {
                let place = "during statement block local variable initialization";
                let name = &frame.name;
                let line = format!("PL/pgSQL function {name} line {line} {place}");
                // The literal itself was refused when it was planned.
                if let Some(piece) = default {
                    drop_piece_context(&mut error, piece);
                }
                add_context(&mut error, &line);
                error
            })?;
        }
        self.steps(&block.body, frame)
    }

    fn guarded_block(&mut self, block: &BlockCode, frame: &mut Frame<'_>) -> Result<Flow> {
        self.ensure_open()?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let savepoint = open.txn.savepoint();
        let catalog = (open.catalog_changed, open.txn.catalog_writes().len());
        open.guards += 1;
        let depth = open.depth();
        let settings = self.shared.settings.mark();
        let constraints = self.shared.constraints.mark();
        let notify = self.shared.notify.mark();
        let large_objects = self.shared.large_objects.mark();
        frame.guarded += 1;
        let outcome = self.block_body(block, frame);
        frame.guarded -= 1;
        if let Some(open) = &mut self.open {
            open.guards = open.guards.saturating_sub(1);
        }
        let error = match outcome {
            Ok(flow) => {
                if let Some(open) = &mut self.open {
                    open.txn.release(savepoint);
                }
                self.release_cursors(depth - 1);
                return Ok(flow);
            }
            Err(error) => error,
        };
        let handler = block.handlers.iter().find(|handler| {
            handler
                .conditions
                .iter()
                .any(|condition| catches(condition, &error))
        });
        let Some(handler) = handler else {
            return Err(error);
        };
        let error = self.eval.name_types_in(error);
        self.roll_back_cursors(depth);
        self.undo_to(savepoint, settings, catalog);
        self.shared.constraints.roll_back_to(&constraints);
        self.shared.notify.roll_back_to(notify);
        let closed = self.shared.large_objects.roll_back_to(large_objects);
        if let Some(open) = &mut self.open {
            closed.into_iter().for_each(|view| open.txn.drop_view(view));
        }
        let (state, message) = block.error_slots;
        let outer = (
            frame.slots[state].value.clone(),
            frame.slots[message].value.clone(),
        );
        frame.slots[state].value = Datum::text(error.state().as_str());
        frame.slots[message].value = Datum::text(error.message());
        frame.errors.push(error);
        let flow = self.steps(&handler.body, frame);
        frame.errors.pop();
        (frame.slots[state].value, frame.slots[message].value) = outer;
        flow
    }

    fn undo_to(&mut self, savepoint: Savepoint, settings: usize, catalog: (bool, usize)) {
        if let Some(open) = &mut self.open {
            open.txn.rollback_to(savepoint);
            open.txn.release(savepoint);
            let changed = open.catalog_changed;
            open.take_back_catalog(catalog.0, catalog.1);
            if changed {
                self.refresh_names();
            }
        }
        self.shared.settings.roll_back_to(settings);
        self.settings_changed();
    }

    pub(super) fn steps(&mut self, steps: &[Step], frame: &mut Frame<'_>) -> Result<Flow> {
        for step in steps {
            let flow = self.step(step, frame)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn step(&mut self, step: &Step, frame: &mut Frame<'_>) -> Result<Flow> {
        let before = self.come_to(step);
        let flow = self.step_here(step, frame);
        self.go_to(before);
        flow
    }

    fn step_here(&mut self, step: &Step, frame: &mut Frame<'_>) -> Result<Flow> {
        // Statements with others inside: those name their own lines.
        let outcome = match &step.kind {
            StepKind::Block(block) => return self.block(block, frame),
            StepKind::If(branches, otherwise) => match self.first_true(branches, frame) {
                Ok(Some(body)) => return self.steps(body, frame),
                Ok(None) => return self.steps(otherwise, frame),
                Err(error) => Err(error),
            },
            StepKind::Case(branches, otherwise) => match self.first_true(branches, frame) {
                Ok(Some(body)) => return self.steps(body, frame),
                Ok(None) => match otherwise {
                    Some(body) => return self.steps(body, frame),
                    None => Err(case_not_found()),
                },
                Err(error) => Err(error),
            },
            StepKind::SimpleCase(slot, operand, branches, otherwise) => {
                let found = self.set_case(*slot, operand, frame);
                match found.and_then(|()| self.first_true(branches, frame)) {
                    Ok(Some(body)) => return self.steps(body, frame),
                    Ok(None) => match otherwise {
                        Some(body) => return self.steps(body, frame),
                        None => Err(case_not_found()),
                    },
                    Err(error) => Err(error),
                }
            }
            StepKind::Forever(..)
            | StepKind::While(..)
            | StepKind::Integers { .. }
            | StepKind::ForEach { .. }
            | StepKind::ForCursor { .. } => return self.loop_step(step, frame),
            StepKind::Leave { next, label, when } => {
                let leave = match when {
                    Some(when) => self.is_true(when, frame),
                    None => Ok(true),
                };
                leave.map(|leave| match (leave, next) {
                    (false, _) => Flow::Next,
                    (true, true) => Flow::Continue(label.clone()),
                    (true, false) => Flow::Exit(label.clone()),
                })
            }
            StepKind::Return(value) => self
                .return_value(value.as_ref(), frame)
                .map(|()| Flow::Return),
            _ => {
                let done = self.plain_step(step, frame);
                self.hand_on_notices(frame.sink)?;
                done.map(|()| Flow::Next)
            }
        };
        outcome.map_err(|error| match &step.kind {
            // It says where it came from first.
            StepKind::Raise(raise, ..)
                if raise.message == Message::Again && !frame.errors.is_empty() =>
            {
                error
            }
            _ => at_line(error, step, &frame.name),
        })
    }

    /// Computes what a simple CASE compares with.
    fn set_case(&mut self, slot: usize, operand: &Piece, frame: &mut Frame<'_>) -> Result<()> {
        let (value, ty) = self.value_of(operand, &frame.slots)?;
        let slot = &mut frame.slots[slot];
        slot.value = value;
        slot.ty = if ty == TypeId::UNKNOWN {
            TypeId::TEXT
        } else {
            ty
        };
        Ok(())
    }

    /// Statements without others inside.
    fn plain_step(&mut self, step: &Step, frame: &mut Frame<'_>) -> Result<()> {
        match &step.kind {
            StepKind::Assign(slot, field, piece) => {
                let (value, ty) = self.value_of(piece, &frame.slots)?;
                let literal = ty == TypeId::UNKNOWN || frame_is_constant(piece);
                let ty = match literal && !self.known_catalog().casts.is_empty() {
                    true => literal_type(piece, ty),
                    false => ty,
                };
                let stored = match field {
                    None => self.store(frame, *slot, value, ty),
                    Some(field) => self.store_field(frame, *slot, field, value, ty),
                };
                stored.map_err(|error| {
                    // These are found when it is stored.
                    let late = [
                        SqlState::NOT_NULL_VIOLATION,
                        SqlState::CHECK_VIOLATION,
                        SqlState::of("22004"),
                        SqlState::UNDEFINED_COLUMN,
                        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    ];
                    match literal && !late.contains(&error.state()) {
                        true => piece.explain(error),
                        false => error,
                    }
                })
            }
            StepKind::Raise(raise, arguments, options) => {
                self.raise(raise, step.line, (arguments, options), frame)
            }
            StepKind::Assert(condition, message) => self.assert(condition, message.as_ref(), frame),
            StepKind::Perform(query) => {
                let mut rows = RowStore::of("The rows of a statement");
                let (count, _) = self
                    .run_piece(query, &frame.slots, &mut rows, usize::MAX)
                    .map_err(|error| query.explain(error))?;
                frame.set_rows(count);
                Ok(())
            }
            StepKind::Sql(piece, into) => self.sql(piece, into.as_ref(), frame),
            StepKind::Call(piece, call) => self.call_step(piece, call, frame),
            StepKind::ReturnNext(value) => self.return_next(value.as_ref(), frame),
            StepKind::ReturnQuery(query, using) => {
                self.return_query(query, using.as_deref(), frame)
            }
            StepKind::Execute(query, into, using) => {
                self.execute_step(query, into.as_ref(), using, frame)
            }
            StepKind::Diagnostics(stacked, items) => self.diagnostics(*stacked, items, frame),
            StepKind::Open(cursor, what) => self.open_step(*cursor, what, frame),
            StepKind::Fetch {
                cursor,
                direction,
                count,
                into,
            } => self.fetch_step(*cursor, (*direction, count), into.as_deref(), frame),
            StepKind::Close(cursor) => self.close_step(*cursor, frame),
            StepKind::EndTransaction(commit, chain) => self.end_transaction(*commit, *chain, frame),
            _ => Ok(()),
        }
    }

    pub(super) fn tick(&mut self, frame: &mut Frame<'_>) -> Result<()> {
        frame.ticks += 1;
        if frame.ticks % ROWS_PER_YIELD == 0 && coro::inside() {
            coro::yield_now()?;
        }
        Ok(())
    }

    pub(super) fn is_true(&mut self, condition: &Piece, frame: &Frame<'_>) -> Result<bool> {
        let (value, ty) = self.value_of(condition, &frame.slots)?;
        match value {
            Datum::Bool(value) => Ok(value),
            Datum::Null => Ok(false),
            value => self
                .convert(value, ty, TypeId::BOOL, -1)
                .map(|value| value.is_true()),
        }
    }

    fn first_true<'s>(
        &mut self,
        branches: &'s [(Piece, Vec<Step>)],
        frame: &Frame<'_>,
    ) -> Result<Option<&'s [Step]>> {
        for (condition, body) in branches {
            if self.is_true(condition, frame)? {
                return Ok(Some(body));
            }
        }
        Ok(None)
    }

    /// Puts a row into variables, or into one record; its columns are known if a query gave it.
    pub(super) fn fill_row(
        &mut self,
        targets: &[Target],
        (types, columns): (&[TypeId], Option<&[Column]>),
        row: Row,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        if let (
            [Target {
                slot: only,
                field: None,
            }],
            Some(columns),
        ) = (targets, columns)
        {
            if frame.slots[*only].fixed.is_some() {
                return self.store_fixed(frame, *only, row, types);
            }
            if frame.slots[*only].is_record {
                let (value, shape) = record_of(columns, types, row);
                frame.slots[*only].value = value;
                frame.slots[*only].shape = Some(shape);
                return Ok(());
            }
        }
        let mut values = row.into_iter().zip(types.iter().copied());
        for target in targets {
            let (value, ty) = values.next().unwrap_or((Datum::Null, TypeId::TEXT));
            match &target.field {
                None => self.store(frame, target.slot, value, ty)?,
                Some(field) => self.store_field(frame, target.slot, field, value, ty)?,
            }
        }
        Ok(())
    }

    fn end_transaction(&mut self, commit: bool, chain: bool, frame: &mut Frame<'_>) -> Result<()> {
        let verb = if commit { "commit" } else { "roll back" };
        if frame.atomic {
            return Err(Error::new(
                SqlState::INVALID_TRANSACTION_TERMINATION,
                "invalid transaction termination",
            ));
        }
        if frame.guarded > 0 {
            return Err(Error::new(
                SqlState::INVALID_TRANSACTION_TERMINATION,
                format!("cannot {verb} while a subtransaction is active"),
            ));
        }
        let options = self.open.as_ref().map(|open| TxnOptions {
            isolation: open.txn.isolation(),
            read_only: open.read_only,
            ..self.characteristics
        });
        self.hold_pinned_cursors()?;
        match commit {
            true => {
                self.commit(frame.sink)?;
                self.note_in_flight()?;
            }
            false => self.roll_back(),
        }
        self.in_use.transaction_ended();
        self.settings_changed();
        match options.filter(|_| chain) {
            Some(options) => {
                self.begin(options)?;
                self.state = State::Implicit;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn diagnostics(
        &mut self,
        stacked: bool,
        items: &[(Target, String)],
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        for (target, item) in items {
            let (value, ty) = match (stacked, item.as_str()) {
                (false, "ROW_COUNT") => (Datum::Int8(frame.rows as i64), TypeId::INT8),
                (false, "PG_CONTEXT") => (Datum::text(self.context()), TypeId::TEXT),
                (true, item) => {
                    let Some(error) = frame.errors.last() else {
                        return Err(Error::new(
                            SqlState::of("0Z002"),
                            "GET STACKED DIAGNOSTICS cannot be used outside an exception handler",
                        ));
                    };
                    (Datum::text(stacked_item(error, item)), TypeId::TEXT)
                }
                _ => return Err(Error::unsupported(format!("diagnostics item {item}"))),
            };
            match &target.field {
                None => self.store(frame, target.slot, value, ty)?,
                Some(field) => self.store_field(frame, target.slot, field, value, ty)?,
            }
        }
        Ok(())
    }

    /// Assigns to a variable.
    pub(super) fn store(
        &mut self,
        frame: &mut Frame<'_>,
        slot: usize,
        value: Datum,
        ty: TypeId,
    ) -> Result<()> {
        let target = &frame.slots[slot];
        if target.is_record {
            let wanted = target.ty;
            let is_row = matches!(value, Datum::Null | Datum::Record(_));
            let value = match !is_row && wanted.is_composite() {
                true => self.convert(value, ty, wanted, types::NO_TYPMOD)?,
                false => value,
            };
            return self.store_record(frame, slot, value);
        }
        let (wanted, typmod) = (target.ty, target.typmod);
        let value = match ty == wanted && typmod == types::NO_TYPMOD {
            true => value,
            false => self.convert(value, ty, wanted, typmod)?,
        };
        let target = &mut frame.slots[slot];
        if target.not_null && value.is_null() {
            return Err(Error::new(
                SqlState::of("22004"),
                format!(
                    "null value cannot be assigned to variable \"{}\" declared NOT NULL",
                    target.name
                ),
            ));
        }
        let (before, after) = (variable_bytes(&target.value), variable_bytes(&value));
        if before + after > 0 {
            frame.large.shrink(before);
            frame.large.grow(after)?;
        }
        target.value = value;
        Ok(())
    }

    /// A row into a variable that has the columns of a table.
    fn store_fixed(
        &mut self,
        frame: &mut Frame<'_>,
        slot: usize,
        row: Row,
        given: &[TypeId],
    ) -> Result<()> {
        let Some(shape) = frame.slots[slot].fixed.clone() else {
            return Err(Error::internal("no columns"));
        };
        let mut given = row.into_iter().zip(given.iter().copied());
        let mut values = Vec::with_capacity(shape.columns.len());
        for (place, (_, ty)) in shape.columns.iter().enumerate() {
            let (value, from) = given.next().unwrap_or((Datum::Null, *ty));
            values.push(self.convert(value, from, *ty, shape.typmod(place))?);
        }
        let types = shape.columns.iter().map(|column| column.1).collect();
        let record = types::Record {
            types,
            values,
            names: shape.names.clone(),
        };
        frame.slots[slot].value = Datum::Record(std::sync::Arc::new(record));
        Ok(())
    }

    fn store_record(&mut self, frame: &mut Frame<'_>, slot: usize, value: Datum) -> Result<()> {
        if let (Datum::Record(record), true) = (&value, frame.slots[slot].fixed.is_some()) {
            let (values, types) = (record.values.clone(), record.types.clone());
            return self.store_fixed(frame, slot, values, &types);
        }
        let target = &mut frame.slots[slot];
        match value {
            Datum::Null => {
                target.value = Datum::Null;
                Ok(())
            }
            Datum::Record(record) => {
                let names = (1..=record.types.len()).map(|number| format!("f{number}"));
                let columns = names.zip(record.types.iter().copied()).collect();
                target.shape = Some(Rc::new(super::piece::Shape {
                    columns,
                    ..Default::default()
                }));
                target.value = Datum::Record(record);
                Ok(())
            }
            _ => Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                "cannot assign non-composite value to a record variable",
            )),
        }
    }

    fn store_field(
        &mut self,
        frame: &mut Frame<'_>,
        slot: usize,
        field: &str,
        value: Datum,
        ty: TypeId,
    ) -> Result<()> {
        let target = &frame.slots[slot];
        let Some(shape) = target.shape.clone() else {
            return Err(unassigned(&target.name));
        };
        let Some(place) = shape.columns.iter().position(|column| column.0 == field) else {
            return Err(Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("record \"{}\" has no field \"{field}\"", target.name),
            ));
        };
        let value = self.convert(value, ty, shape.columns[place].1, shape.typmod(place))?;
        let before = std::mem::replace(&mut frame.slots[slot].value, Datum::Null);
        let mut record = match before {
            Datum::Record(record) => record,
            _ => std::sync::Arc::new(types::Record {
                types: shape.columns.iter().map(|column| column.1).collect(),
                values: vec![Datum::Null; shape.columns.len()],
                names: shape.names.clone(),
            }),
        };
        std::sync::Arc::make_mut(&mut record).values[place] = value;
        frame.slots[slot].value = Datum::Record(record);
        Ok(())
    }
}

impl Frame<'_> {
    pub(super) fn set_rows(&mut self, rows: u64) {
        self.rows = rows;
        self.slots[self.found].value = Datum::Bool(rows > 0);
    }
}

/// The bytes of a value that is counted while a variable has it; 0 for all others.
fn variable_bytes(value: &Datum) -> usize {
    match value {
        Datum::Array(_) => apart(value),
        value => large_bytes(value),
    }
}

/// Whether an assignment's value names no variable.
fn frame_is_constant(piece: &Piece) -> bool {
    let compiled = piece.planned.borrow();
    compiled
        .as_ref()
        .is_some_and(|compiled| compiled.is_constant())
}

/// The type of a constant that is assigned: a literal is no text that a cast of users would take.
fn literal_type(piece: &Piece, ty: TypeId) -> TypeId {
    let tokens = parser::tokens(&piece.text).unwrap_or_default();
    match tokens.as_slice() {
        [_select, only] if ty == TypeId::TEXT && only.kind == TokenKind::String => TypeId::UNKNOWN,
        _ => ty,
    }
}

/// Takes back the line that a piece has added to an error.
fn drop_piece_context(error: &mut Error, piece: &Piece) {
    let line = format!("SQL expression \"{}\"", piece.shown);
    let context = &mut error.fields_mut().context;
    if context.as_deref() == Some(line.as_str()) {
        *context = None;
    }
}

fn case_not_found() -> Error {
    Error::new(SqlState::of("20000"), "case not found")
        .with_hint("CASE statement is missing ELSE part.")
}

fn catches(condition: &Condition, error: &Error) -> bool {
    // What ends the session or the node cannot be caught.
    if matches!(error.class(), ErrorClass::Session | ErrorClass::Node) {
        return false;
    }
    let state = error.state();
    match condition {
        Condition::Others => state != SqlState::QUERY_CANCELED && state != SqlState::of("P0004"),
        Condition::Named(name) => {
            conditions::states(name).any(|condition| conditions::matches(condition, state))
        }
        Condition::State(text) => match <[u8; 5]>::try_from(text.as_bytes()) {
            Ok(code) => conditions::matches(SqlState(code), state),
            Err(_) => false,
        },
    }
}

fn stacked_item(error: &Error, item: &str) -> String {
    let fields = error.fields();
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    match item {
        "RETURNED_SQLSTATE" => error.state().as_str().to_owned(),
        "MESSAGE_TEXT" => error.message().to_owned(),
        "PG_EXCEPTION_DETAIL" => text(&fields.detail),
        "PG_EXCEPTION_HINT" => text(&fields.hint),
        "PG_EXCEPTION_CONTEXT" => text(&fields.context),
        "COLUMN_NAME" => text(&fields.column),
        "CONSTRAINT_NAME" => text(&fields.constraint),
        "PG_DATATYPE_NAME" => text(&fields.datatype),
        "TABLE_NAME" => text(&fields.table),
        "SCHEMA_NAME" => text(&fields.schema),
        _ => String::new(),
    }
}

/// The error with the line and the kind of the statement that it comes from.
pub(super) fn at_line(mut error: Error, step: &Step, name: &str) -> Error {
    let what = name_of(&step.kind);
    let line = format!("PL/pgSQL function {name} line {} at {what}", step.line);
    add_context(&mut error, &line);
    error
}

/// What a statement is called where it is told of.
pub(super) fn name_of(kind: &StepKind) -> &'static str {
    match kind {
        StepKind::Block(_) => "statement block",
        StepKind::Assign(..) => "assignment",
        StepKind::If(..) => "IF",
        StepKind::Case(..) | StepKind::SimpleCase(..) => "CASE",
        StepKind::Forever(..) => "LOOP",
        StepKind::While(..) => "WHILE",
        StepKind::Integers { .. } => "FOR with integer loop variable",
        StepKind::ForEach { source, .. } => match source {
            RowsFrom::Elements(..) => "FOREACH over array",
            RowsFrom::Query(_) => "FOR over SELECT rows",
            RowsFrom::Dynamic(..) => "FOR over EXECUTE statement",
        },
        StepKind::Leave { next: true, .. } => "CONTINUE",
        StepKind::Leave { .. } => "EXIT",
        StepKind::Return(_) => "RETURN",
        StepKind::ReturnNext(_) => "RETURN NEXT",
        StepKind::ReturnQuery(..) => "RETURN QUERY",
        StepKind::Raise(..) => "RAISE",
        StepKind::Assert(..) => "ASSERT",
        StepKind::Perform(_) => "PERFORM",
        StepKind::Call(..) => "CALL",
        StepKind::Sql(..) => "SQL statement",
        StepKind::Execute(..) => "EXECUTE",
        StepKind::Diagnostics(true, _) => "GET STACKED DIAGNOSTICS",
        StepKind::Diagnostics(..) => "GET DIAGNOSTICS",
        StepKind::ForCursor { .. } => "FOR over cursor",
        StepKind::Open(..) => "OPEN",
        StepKind::Fetch { into: Some(_), .. } => "FETCH",
        StepKind::Fetch { .. } => "MOVE",
        StepKind::Close(_) => "CLOSE",
        StepKind::Null => "NULL",
        StepKind::EndTransaction(true, _) => "COMMIT",
        StepKind::EndTransaction(false, _) => "ROLLBACK",
    }
}
