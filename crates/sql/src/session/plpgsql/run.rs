//! Carries out compiled blocks.

use std::rc::Rc;

use base::engine::{Savepoint, TxnOptions};
use base::limits::ROWS_PER_YIELD;
use base::memory::Reservation;
use base::{coro, Error, ErrorClass, Result, SqlState};

use super::super::plan::has_into;
use super::super::run::Output;
use super::super::statements::{about, Given, InPlpgsql};
use super::super::transaction::State;
use super::super::{Prepared, Session, Sink};
use super::compile::{BlockCode, Code, IntoCode, Returns, RowsFrom, Step, StepKind, Target};
use super::piece::{add_context, record_of, unassigned, Compiled, Piece, PieceKind, Slot};
use execution::kept::{apart, large_bytes, RowStore};
use execution::state::prepared::Planned;
use execution::state::KeptRows;
use planner::plan::Row;
use syntax::parser::{self, NodeEnum, TokenKind};
use syntax::plpgsql::ast::Condition;
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
    rows: u64,
    ticks: usize,
    /// The long values of variables.
    large: Reservation,
    /// The errors being handled, the innermost last.
    pub errors: Vec<Error>,
    /// What errors call it.
    pub name: Rc<str>,
    /// What it gives back, and so far has.
    pub returns: &'f Returns,
    pub returned: Option<Datum>,
    pub out_rows: RowStore,
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
        };
        self.ensure_open()?;
        if let Some(open) = &mut self.open {
            open.begun = true;
        }
        self.block(&code.body, &mut frame)?;
        let returned = self.end_of_block(&mut frame)?;
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
        let settings = self.shared.settings.mark();
        let constraints = self.shared.constraints.mark();
        let notify = self.shared.notify.mark();
        frame.guarded += 1;
        let outcome = self.block_body(block, frame);
        frame.guarded -= 1;
        let error = match outcome {
            Ok(flow) => {
                if let Some(open) = &mut self.open {
                    open.txn.release(savepoint);
                }
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
        self.undo_to(savepoint, settings, catalog);
        self.shared.constraints.roll_back_to(&constraints);
        self.shared.notify.roll_back_to(notify);
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
            open.take_back_catalog(catalog.0, catalog.1);
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
            | StepKind::ForEach { .. } => return self.loop_step(step, frame),
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
        outcome.map_err(|error| at_line(error, step, &frame.name))
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
                let ty = match literal && !self.catalog.casts.is_empty() {
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
                let most = rows_wanted(into.as_ref());
                let mut rows = RowStore::of("The rows of a statement");
                let (count, planned) = self.dynamic(query, using, &mut rows, most, frame)?;
                frame.rows = count;
                match (into, planned) {
                    (Some(into), Some(planned)) => self.fill(into, &planned, rows, frame),
                    (Some(_), None) => Err(Error::new(
                        SqlState::SYNTAX_ERROR,
                        "INTO used with a command that cannot return data",
                    )),
                    (None, _) => Ok(()),
                }
            }
            StepKind::Diagnostics(stacked, items) => self.diagnostics(*stacked, items, frame),
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

    /// Puts a row into variables, or into one record.
    pub(super) fn fill_row(
        &mut self,
        targets: &[Target],
        (types, planned): (&[TypeId], Option<&Planned>),
        row: Row,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        if let (
            [Target {
                slot: only,
                field: None,
            }],
            Some(planned),
        ) = (targets, planned)
        {
            if frame.slots[*only].fixed.is_some() {
                return self.store_fixed(frame, *only, row, types);
            }
            if frame.slots[*only].is_record {
                let (value, shape) = record_of(planned, row);
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

    /// What INTO does with the rows of a statement.
    fn fill(
        &mut self,
        into: &IntoCode,
        planned: &Planned,
        rows: RowStore,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        if into.strict && rows.is_empty() {
            return Err(Error::new(SqlState::of("P0002"), "query returned no rows"));
        }
        if into.strict && rows.len() > 1 {
            return Err(
                Error::new(SqlState::of("P0003"), "query returned more than one row")
                    .with_hint("Make sure the query returns a single row, or use LIMIT 1."),
            );
        }
        let row = rows.into_iter().next();
        let row = row.unwrap_or_else(|| vec![Datum::Null; planned.types.len()]);
        self.fill_row(&into.targets, (&planned.types, Some(planned)), row, frame)
    }

    fn sql(&mut self, piece: &Piece, into: Option<&IntoCode>, frame: &mut Frame<'_>) -> Result<()> {
        let compiled = self.compiled(piece, &frame.slots)?;
        if compiled.planned.bound.is_none() {
            return self.sql_utility(piece, &compiled, frame);
        }
        let select = matches!(compiled.statement.node(), NodeEnum::SelectStmt(_));
        if into.is_none() && compiled.planned.columns.is_some() {
            let error = Error::new(
                SqlState::SYNTAX_ERROR,
                "query has no destination for result data",
            );
            return Err(match select {
                true => error.with_hint(
                    "If you want to discard the results of a SELECT, use PERFORM instead.",
                ),
                false => error,
            });
        }
        let most = if select {
            rows_wanted(into)
        } else {
            usize::MAX
        };
        let mut rows = RowStore::of("The rows of a statement");
        let (count, planned) = self
            .run_piece(piece, &frame.slots, &mut rows, most)
            .map_err(|error| piece.explain(error))?;
        frame.set_rows(count);
        match into {
            Some(into) => self.fill(into, &planned, rows, frame),
            None => Ok(()),
        }
    }

    fn sql_utility(
        &mut self,
        piece: &Piece,
        compiled: &Rc<Compiled>,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        about(compiled.statement.node()).in_plpgsql.check(false)?;
        self.ensure_open()?;
        self.utility(&mut Given {
            statement: &compiled.statement,
            params: &[],
            param_types: &[],
            sink: &mut KeptRows::new(frame.sink),
            alone: false,
        })
        .map_err(|error| piece.explain(error))?;
        match compiled.planned.columns {
            None => Ok(()),
            Some(_) => Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "query has no destination for result data",
            )),
        }
    }

    /// EXECUTE: runs a text; with rows, also what describes them.
    pub(super) fn dynamic(
        &mut self,
        query: &Piece,
        using: &[Piece],
        rows: &mut RowStore,
        most: usize,
        frame: &mut Frame<'_>,
    ) -> Result<(u64, Option<Rc<Planned>>)> {
        let (text, ty) = self.value_of(query, &frame.slots)?;
        if text.is_null() {
            return Err(Error::new(
                SqlState::of("22004"),
                "query string argument of EXECUTE is null",
            ));
        }
        let text = self
            .convert(text, ty, TypeId::TEXT, -1)?
            .as_str()
            .to_owned();
        let mut params = Vec::new();
        let mut types = Vec::new();
        for piece in using {
            let (value, ty) = self.value_of(piece, &frame.slots)?;
            params.push(value);
            types.push(if ty == TypeId::UNKNOWN {
                TypeId::TEXT
            } else {
                ty
            });
        }
        let shown = Piece {
            kind: PieceKind::Statement,
            shown: text.clone(),
            text: text.clone(),
            shift: 0,
            names: Rc::default(),
            simple: false,
            part: None,
            planned: std::cell::RefCell::default(),
        };
        let parsed = self.parse_as_set(&text);
        let mut statements = parsed.map_err(|error| shown.explain(error))?;
        let Some(statement) = statements.pop() else {
            return Ok((0, None));
        };
        let in_plpgsql = about(statement.node()).in_plpgsql;
        if in_plpgsql == InPlpgsql::Transaction {
            in_plpgsql.check(true)?;
        }
        if !statements.is_empty() {
            return Err(Error::unsupported("EXECUTE of several commands"));
        }
        in_plpgsql.check(true)?;
        let makes_table =
            matches!(statement.node(), NodeEnum::SelectStmt(select) if has_into(select));
        let outcome = self.dynamic_statement(statement, &params, &types, rows, most, frame);
        let outcome = outcome.map_err(|error| shown.explain(error))?;
        match makes_table {
            false => Ok(outcome),
            true => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "EXECUTE of SELECT ... INTO is not implemented",
            )
            .with_hint(
                "You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.",
            )),
        }
    }

    fn dynamic_statement(
        &mut self,
        statement: parser::Statement,
        params: &[Datum],
        types: &[TypeId],
        rows: &mut RowStore,
        most: usize,
        frame: &mut Frame<'_>,
    ) -> Result<(u64, Option<Rc<Planned>>)> {
        let prepared: Rc<Prepared> = self.prepare_statement(statement, types, false)?;
        let planned = self.current_plan(&prepared)?;
        if planned.bound.is_none() {
            if let Some(statement) = prepared.statement() {
                self.ensure_open()?;
                let mut kept = KeptRows::new(frame.sink);
                self.utility(&mut Given {
                    statement,
                    params,
                    param_types: &[],
                    sink: &mut kept,
                    alone: false,
                })?;
                for row in kept.into_rows().into_iter().take(most) {
                    rows.push(row)?;
                }
            }
            let described = planned.columns.is_some().then_some(planned);
            return Ok((rows.len() as u64, described));
        }
        let planned = self.settle_plan(planned, |session| session.current_plan(&prepared))?;
        let count = self.run_plan(&planned, params, &mut Output::Rows(rows, most))?;
        let described = planned.columns.is_some().then(|| planned.clone());
        Ok((count, described))
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
        items: &[(usize, String)],
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        for (slot, item) in items {
            let (value, ty) = match (stacked, item.as_str()) {
                (false, "ROW_COUNT") => (Datum::Int8(frame.rows as i64), TypeId::INT8),
                (false, "PG_CONTEXT") => (Datum::text(""), TypeId::TEXT),
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
            self.store(frame, *slot, value, ty)?;
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

/// How many rows of a SELECT with INTO are needed.
fn rows_wanted(into: Option<&IntoCode>) -> usize {
    match into {
        Some(into) if into.strict => 2,
        Some(_) => 1,
        None => usize::MAX,
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
    let what = match &step.kind {
        StepKind::Block(_) => "statement block",
        StepKind::Assign(..) => "assignment",
        StepKind::If(..) => "IF",
        StepKind::Case(..) | StepKind::SimpleCase(..) => "CASE",
        StepKind::Forever(..) => "LOOP",
        StepKind::While(..) => "WHILE",
        StepKind::Integers { .. } => "FOR with integer loop variable",
        StepKind::ForEach { source, .. } => match source {
            RowsFrom::Elements(_) => "FOREACH over array",
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
        StepKind::Diagnostics(..) => "GET DIAGNOSTICS",
        StepKind::Null => "NULL",
        StepKind::EndTransaction(true, _) => "COMMIT",
        StepKind::EndTransaction(false, _) => "ROLLBACK",
    };
    let line = format!("PL/pgSQL function {name} line {} at {what}", step.line);
    add_context(&mut error, &line);
    error
}
