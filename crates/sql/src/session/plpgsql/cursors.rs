//! Cursors of a block: how they are declared, opened, moved, looped over and closed.
//!
//! A cursor variable is a text, the name of one of the session's cursors ([`crate::session::cursors`]),
//! which SQL's FETCH, MOVE and CLOSE know too. Whoever gets the name may go on with the cursor, so a
//! function can return one:
//!
//! ```text
//! DECLARE c refcursor;                    c is NULL
//! BEGIN OPEN c FOR SELECT a FROM t;       c is '<unnamed portal 1>', and so is the session's cursor
//!       RETURN c; END                     FETCH ALL FROM "<unnamed portal 1>"
//! ```
//! A bound cursor has its own name as its value from the start. Its query sees the variables that were
//! declared before it, and its arguments; what these are when it is opened counts.
//!
//! A cursor that is opened inside of a block with handlers goes with the block, if that fails. One that a
//! loop goes over is read to its end before COMMIT and ROLLBACK in the loop.
//!
//! # What it leaves out
//! Cursors over INSERT, UPDATE and DELETE with RETURNING, and over what has rows without being a query,
//! such as SHOW (0A000). Loops go over all of these.
//!
//! Source: PostgreSQL 15 manual, section 43.7.

use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{FetchDirection, FetchStmt};

use super::super::cursors::{row_lock_of, scrolls};
use super::super::plan::has_into;
use super::super::statements::about;
use super::super::Session;
use super::code::{BoundCursor, CountCode, CursorCall, OpenCode, Step, StepKind, Target};
use super::compile::Compiler;
use super::loops::Turns;
use super::piece::{add_context, Names, Piece, PieceKind};
use super::run::{at_line, Flow, Frame};
use execution::state::prepared::Planned;
use execution::state::{CursorInfo, KeptRows};
use syntax::parser::{NodeEnum, Statement};
use syntax::plpgsql::ast::{Count, CursorDeclaration, CursorUse, Fragment, Loop, Opened};
use syntax::plpgsql::parse::fold;
use types::{Datum, TypeId};

/// What errors call a statement.
pub(super) fn command_of(statement: &Statement) -> &'static str {
    match statement.node() {
        NodeEnum::SelectStmt(select) if has_into(select) => "SELECT INTO",
        node => about(node).command,
    }
}

/// # Errors
/// 42P11 for a statement that gives no rows.
fn check_gives_rows(planned: &Planned, command: &str) -> Result<()> {
    match planned.columns {
        Some(_) => Ok(()),
        None => Err(Error::new(
            SqlState::INVALID_CURSOR_DEFINITION,
            format!("cannot open {command} query as cursor"),
        )),
    }
}

/// Whether a statement gives rows and does nothing else.
fn reads_only(planned: &Planned) -> bool {
    let bound = planned.bound.as_ref();
    planned.columns.is_some() && bound.is_some_and(|bound| !bound.writes)
}

impl Compiler<'_> {
    /// A cursor that is declared with its query: its place, and its name as its first value.
    pub(super) fn bound_cursor(
        &mut self,
        name: &str,
        declared: &CursorDeclaration,
        names: &Rc<Names>,
    ) -> Result<(usize, Piece)> {
        let slot = self.slot(name, TypeId::REFCURSOR, types::NO_TYPMOD);
        let mut arguments: Vec<(String, usize)> = Vec::new();
        for (argument, start, written) in &declared.arguments {
            self.check_shadowed(argument, *start, names)?;
            if arguments.iter().any(|known| known.0 == *argument) {
                let message = format!("duplicate declaration at or near \"{argument}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            let (ty, typmod) = self.type_of(written)?;
            arguments.push((argument.clone(), self.slot(argument, ty, typmod)));
        }
        let inside = Rc::new(Names {
            parent: Some(names.clone()),
            label: Some(name.to_owned()),
            variables: arguments.clone(),
            ..Names::default()
        });
        let cursor = BoundCursor {
            scroll: declared.scroll,
            arguments,
            query: self.query(&declared.query, &inside)?,
        };
        self.bound.insert(slot, Rc::new(cursor));
        let literal = functions::strings::quote_string(name);
        let first = Fragment {
            text: format!("{literal}::pg_catalog.refcursor"),
            start: declared.query.start,
        };
        Ok((slot, self.checked(&first, names)?))
    }

    fn query(&self, fragment: &Fragment, names: &Rc<Names>) -> Result<Piece> {
        Ok(Piece {
            kind: PieceKind::Query,
            ..self.statement(fragment, names)?
        })
    }

    /// The variable of a cursor.
    pub(super) fn cursor(&self, written: &Fragment, names: &Rc<Names>) -> Result<usize> {
        let parts: Vec<_> = written
            .text
            .split('.')
            .map(|part| fold(part.trim()))
            .collect();
        let found = match parts.as_slice() {
            [name] => names.find(name),
            [label, name] => names.find_in(label, name),
            _ => None,
        };
        let refused = |state, message: String| {
            let error = Error::new(state, message);
            Err(self.at(error, written.start))
        };
        match found {
            None => refused(
                SqlState::SYNTAX_ERROR,
                format!("\"{}\" is not a known variable", written.text.trim()),
            ),
            Some(slot) if self.slots[slot].is_record => refused(
                SqlState::DATATYPE_MISMATCH,
                "cursor variable must be a simple variable".to_owned(),
            ),
            Some(slot) if self.slots[slot].ty != TypeId::REFCURSOR => {
                let name = &self.slots[slot].name;
                refused(
                    SqlState::DATATYPE_MISMATCH,
                    format!("variable \"{name}\" must be of type cursor or refcursor"),
                )
            }
            Some(slot) => Ok(slot),
        }
    }

    /// A bound cursor with its arguments, in the order of its own.
    fn call(&self, slot: usize, used: &CursorUse, names: &Rc<Names>) -> Result<Option<CursorCall>> {
        let Some(cursor) = self.bound.get(&slot) else {
            return Ok(None);
        };
        let shown = &self.slots[slot].name;
        let refused = |message: String, start: usize| {
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            Err(self.at(error, start))
        };
        let after = used.after.0;
        let given = match (cursor.arguments.is_empty(), &used.arguments) {
            (true, None) => &[][..],
            (true, Some(_)) => {
                return refused(format!("cursor \"{shown}\" has no arguments"), after)
            }
            (false, None) => return refused(format!("cursor \"{shown}\" has arguments"), after),
            (false, Some(given)) => given,
        };
        let mut values: Vec<Option<&Fragment>> = vec![None; cursor.arguments.len()];
        let mut end = after;
        for (number, argument) in given.iter().enumerate() {
            let place = match &argument.name {
                None => number,
                Some(name) => {
                    let known = cursor.arguments.iter().position(|known| known.0 == *name);
                    let Some(place) = known else {
                        return refused(
                            format!("cursor \"{shown}\" has no argument named \"{name}\""),
                            argument.start,
                        );
                    };
                    place
                }
            };
            match values.get_mut(place) {
                None => return refused(format!("too many arguments for cursor \"{shown}\""), end),
                Some(Some(_)) => {
                    let name = &cursor.arguments[place].0;
                    return refused(
                        format!(
                            "value for parameter \"{name}\" of cursor \"{shown}\" specified more \
                             than once"
                        ),
                        argument.start,
                    );
                }
                Some(free) => *free = Some(&argument.value),
            }
            end = argument.after;
        }
        let mut arguments = Vec::new();
        for (value, (_, place)) in values.into_iter().zip(&cursor.arguments) {
            let Some(value) = value else {
                return refused(format!("not enough arguments for cursor \"{shown}\""), end);
            };
            arguments.push((*place, self.checked(value, names)?));
        }
        Ok(Some(CursorCall {
            cursor: cursor.clone(),
            arguments,
        }))
    }

    pub(super) fn open(
        &self,
        used: &CursorUse,
        what: &Opened,
        names: &Rc<Names>,
    ) -> Result<StepKind> {
        let slot = self.cursor(&used.name, names)?;
        let unexpected = |message: &str| {
            let (start, next) = &used.after;
            let message = format!("{message} at or near \"{next}\"");
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            Err(self.at(error, *start))
        };
        let is_bound = self.bound.contains_key(&slot);
        let code = match what {
            Opened::Bound => match self.call(slot, used, names)? {
                Some(call) => OpenCode::Bound(call),
                None => return unexpected("syntax error, expected \"FOR\""),
            },
            _ if is_bound => return unexpected("syntax error"),
            Opened::Query { scroll, query } => OpenCode::Query(*scroll, self.query(query, names)?),
            Opened::Execute {
                scroll,
                query,
                using,
            } => {
                let using = self.pieces(using, names)?;
                OpenCode::Dynamic(*scroll, self.checked(query, names)?, using)
            }
        };
        Ok(StepKind::Open(slot, code))
    }

    pub(super) fn fetch(
        &self,
        written: &Fragment,
        (direction, count): (FetchDirection, &Count),
        into: Option<&[Fragment]>,
        names: &Rc<Names>,
    ) -> Result<StepKind> {
        Ok(StepKind::Fetch {
            cursor: self.cursor(written, names)?,
            direction,
            count: match count {
                Count::Of(count) => CountCode::Of(*count),
                Count::Given(count) => CountCode::Given(self.checked(count, names)?),
            },
            into: into
                .map(|targets| self.targets(targets, names))
                .transpose()?,
        })
    }

    /// A loop over a cursor, whose row is a record of the loop's own.
    pub(super) fn for_cursor(
        &mut self,
        inner: &Loop,
        targets: &[Fragment],
        (cursor, used): (usize, &CursorUse),
        names: &Rc<Names>,
    ) -> Result<StepKind> {
        let refused = |message: &str, start: usize| {
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            Err(self.at(error, start))
        };
        let [target] = targets else {
            let message = "cursor FOR loop must have only one target variable";
            return refused(message, targets.first().map_or(0, |target| target.start));
        };
        let Some(call) = self.call(cursor, used, names)? else {
            let message = "cursor FOR loop must use a bound cursor variable";
            return refused(message, used.name.start);
        };
        let name = fold(target.text.trim());
        let row = self.slot(&name, TypeId::RECORD, types::NO_TYPMOD);
        let inside = Rc::new(Names {
            parent: Some(names.clone()),
            label: inner.label.clone(),
            variables: vec![(name, row)],
            ..Names::default()
        });
        Ok(StepKind::ForCursor {
            label: inner.label.clone(),
            row,
            cursor,
            call,
            body: self.steps(&inner.body, &inside)?,
        })
    }
}

impl Session {
    /// OPEN.
    pub(super) fn open_step(
        &mut self,
        slot: usize,
        what: &OpenCode,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let given = self.free_name(slot, frame)?;
        let variable = &frame.slots[slot];
        if given.is_none() && variable.constant {
            return Err(Error::new(
                SqlState::of("22005"),
                format!("variable \"{}\" is declared CONSTANT", variable.name),
            ));
        }
        let name = match what {
            OpenCode::Bound(call) => self.open_bound(given, call, frame)?,
            OpenCode::Query(scroll, query) => self.open_query(given, query, *scroll, frame)?,
            OpenCode::Dynamic(scroll, query, using) => {
                let (shown, params, types) = self.dynamic_text(query, using, frame)?;
                self.open_dynamic(given, &shown, *scroll, (params, &types))?
            }
        };
        frame.slots[slot].value = Datum::text(name);
        Ok(())
    }

    /// The name that a cursor variable has, if it has one, which no cursor may have yet.
    fn free_name(&self, slot: usize, frame: &Frame<'_>) -> Result<Option<String>> {
        let Datum::Text(name) = &frame.slots[slot].value else {
            return Ok(None);
        };
        match self.cursor_shape(name) {
            Ok(_) => Err(Error::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{name}\" already in use"),
            )),
            Err(_) => Ok(Some(name.to_string())),
        }
    }

    fn open_bound(
        &mut self,
        name: Option<String>,
        call: &CursorCall,
        frame: &mut Frame<'_>,
    ) -> Result<String> {
        let mut values = Vec::with_capacity(call.arguments.len());
        for (_, piece) in &call.arguments {
            values.push(self.value_of(piece, &frame.slots)?);
        }
        for ((place, _), (value, ty)) in call.arguments.iter().zip(values) {
            self.store(frame, *place, value, ty)?;
        }
        self.open_query(name, &call.cursor.query, call.cursor.scroll, frame)
    }

    fn open_query(
        &mut self,
        name: Option<String>,
        query: &Piece,
        scroll: Option<bool>,
        frame: &Frame<'_>,
    ) -> Result<String> {
        let command = command_of(&self.compiled(query, &frame.slots)?.statement);
        let settled = self.settled(query, &frame.slots);
        let (planned, params) = settled.map_err(|error| query.explain(error))?;
        self.start_cursor((name, query), (planned, command), params, scroll)
    }

    /// The statement that a text is.
    ///
    /// # Errors
    /// Those of parsing; 42P11 for none, and for several.
    fn only_query(&mut self, text: &Piece) -> Result<Statement> {
        let parsed = self.parse_as_set(&text.text);
        let mut statements = parsed.map_err(|error| text.explain(error))?;
        match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => Ok(statement),
            _ => Err(Error::new(
                SqlState::INVALID_CURSOR_DEFINITION,
                "cannot open multi-query plan as cursor",
            )),
        }
    }

    fn open_dynamic(
        &mut self,
        name: Option<String>,
        text: &Piece,
        scroll: Option<bool>,
        (params, types): (Vec<Datum>, &[TypeId]),
    ) -> Result<String> {
        let statement = self.only_query(text)?;
        let planned = self.plan_text(&statement, text, types, true);
        let planned = planned
            .and_then(|planned| self.settle_text(planned, &statement, text, types, true))
            .map_err(|error| text.explain(error))?;
        let command = command_of(&statement);
        self.start_cursor((name, text), (planned, command), params, scroll)
    }

    /// Begins the query of a cursor, which gets a name if it has none; its name.
    fn start_cursor(
        &mut self,
        (name, query): (Option<String>, &Piece),
        (planned, command): (Rc<Planned>, &str),
        params: Vec<Datum>,
        scroll: Option<bool>,
    ) -> Result<String> {
        let info = self.cursor_info(name, &query.text, (&planned, command), scroll)?;
        let name = info.name.clone();
        let opened = self.open_cursor(info, planned, params.into());
        opened.map_err(|error| query.explain(error))?;
        Ok(name)
    }

    /// What is known of a cursor that is about to be opened.
    ///
    /// # Errors
    /// 42P11 for what is no query, 0A000 for one that locks rows and is to go back.
    fn cursor_info(
        &mut self,
        name: Option<String>,
        text: &str,
        (planned, command): (&Planned, &str),
        scroll: Option<bool>,
    ) -> Result<CursorInfo> {
        check_gives_rows(planned, command)?;
        let bound = planned.bound.as_ref().filter(|bound| !bound.writes);
        let Some(bound) = bound else {
            return Err(Error::unsupported(format!("a cursor over {command}")));
        };
        let plan = bound.plan.plan();
        let locks = row_lock_of(plan).is_some();
        if locks && scroll == Some(true) {
            let mut error = Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "DECLARE SCROLL CURSOR ... FOR UPDATE/SHARE is not supported",
            )
            .with_detail("Scrollable cursors must be READ ONLY.");
            add_context(&mut error, &format!("SQL statement \"{text}\""));
            return Err(error);
        }
        let scrollable = scroll.unwrap_or_else(|| !locks && scrolls(plan));
        Ok(CursorInfo {
            name: name.unwrap_or_else(|| self.new_cursor_name()),
            statement: text.to_owned(),
            scrollable,
            created: self.eval.statement_start,
            ..CursorInfo::default()
        })
    }

    /// The name of the cursor that a variable stands for.
    fn cursor_name(&self, slot: usize, frame: &Frame<'_>) -> Result<String> {
        match &frame.slots[slot].value {
            Datum::Text(name) => Ok(name.to_string()),
            _ => Err(Error::new(
                SqlState::of("22004"),
                format!("cursor variable \"{}\" is null", frame.slots[slot].name),
            )),
        }
    }

    /// FETCH, and MOVE, which has no targets.
    pub(super) fn fetch_step(
        &mut self,
        slot: usize,
        (direction, count): (FetchDirection, &CountCode),
        into: Option<&[Target]>,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let name = self.cursor_name(slot, frame)?;
        // Whether there is one comes before how far.
        self.cursor_shape(&name)?;
        let how_many = match count {
            CountCode::Of(count) => *count,
            CountCode::Given(piece) => {
                let (value, ty) = self.value_of(piece, &frame.slots)?;
                match self.convert(value, ty, TypeId::INT4, types::NO_TYPMOD)? {
                    Datum::Int4(count) => i64::from(count),
                    _ => {
                        return Err(Error::new(
                            SqlState::of("22004"),
                            "relative or absolute cursor position is null",
                        ))
                    }
                }
            }
        };
        let fetch = FetchStmt {
            direction: direction as i32,
            how_many,
            portalname: name,
            ismove: into.is_none(),
        };
        let rows = match into {
            None => self.fetch(&fetch, frame.sink)?.rows,
            Some(targets) => Some(u64::from(self.fetch_into(&fetch, targets, frame)?)),
        };
        frame.set_rows(rows.unwrap_or(0));
        Ok(())
    }

    /// Fetches a row into variables; without one they become NULL. Whether there was one.
    fn fetch_into(
        &mut self,
        fetch: &FetchStmt,
        targets: &[Target],
        frame: &mut Frame<'_>,
    ) -> Result<bool> {
        let shape = self.cursor_shape(&fetch.portalname)?;
        let mut kept = KeptRows::new(frame.sink);
        self.fetch(fetch, &mut kept)?;
        let row = kept.into_rows().into_iter().next();
        let found = row.is_some();
        if found {
            self.check_count(targets, shape.types.len(), frame)?;
        }
        let row = row.unwrap_or_else(|| vec![Datum::Null; shape.types.len()]);
        self.fill_row(targets, (&shape.types, Some(&shape.columns)), row, frame)?;
        Ok(found)
    }

    /// CLOSE.
    pub(super) fn close_step(&mut self, slot: usize, frame: &Frame<'_>) -> Result<()> {
        let name = self.cursor_name(slot, frame)?;
        // Without a name it would be all.
        self.cursor_shape(&name)?;
        self.close_cursor(&name).map(|_| ())
    }

    /// A loop over a cursor: opened before it, closed behind it however that ends.
    pub(super) fn each_of_cursor(&mut self, step: &Step, frame: &mut Frame<'_>) -> Result<Flow> {
        let StepKind::ForCursor {
            label,
            row,
            cursor,
            call,
            body,
        } = &step.kind
        else {
            return Err(Error::internal("no loop over a cursor"));
        };
        let opened = self
            .free_name(*cursor, frame)
            .and_then(|given| self.open_bound(given, call, frame));
        let name = opened.map_err(|error| at_line(error, step, &frame.name))?;
        let was_null = frame.slots[*cursor].value.is_null();
        frame.slots[*cursor].value = Datum::text(&name);
        let targets = [Target {
            slot: *row,
            field: None,
        }];
        // Others may move it meanwhile, so nothing is read ahead.
        let turns = Turns {
            step,
            label: label.as_ref(),
            targets: &targets,
            body,
            ahead: &[1],
        };
        let flow = self.each_fetched(&name, &turns, frame);
        if was_null {
            frame.slots[*cursor].value = Datum::Null;
        }
        flow
    }

    /// Opens a cursor for the loop over a query; none for what is no query.
    pub(super) fn open_loop(&mut self, query: &Piece, frame: &Frame<'_>) -> Result<Option<String>> {
        let compiled = self.compiled(query, &frame.slots)?;
        check_gives_rows(&compiled.planned, command_of(&compiled.statement))?;
        if !reads_only(&compiled.planned) {
            return Ok(None);
        }
        let settled = self.settled(query, &frame.slots);
        let (planned, params) = settled.map_err(|error| query.explain(error))?;
        let name = self.start_cursor((None, query), (planned, "SELECT"), params, Some(false))?;
        Ok(Some(name))
    }

    /// As [`Session::open_loop`], for a text.
    pub(super) fn open_dynamic_loop(
        &mut self,
        (text, params, types): &(Piece, Vec<Datum>, Vec<TypeId>),
    ) -> Result<Option<String>> {
        let statement = self.only_query(text)?;
        let planned = self.plan_text(&statement, text, types, false);
        let planned = planned.map_err(|error| text.explain(error))?;
        check_gives_rows(&planned, command_of(&statement))?;
        if !reads_only(&planned) {
            return Ok(None);
        }
        let planned = self.settle_text(planned, &statement, text, types, false);
        let planned = planned.map_err(|error| text.explain(error))?;
        let started = (planned, "SELECT");
        let name = self.start_cursor((None, text), started, params.clone(), Some(false))?;
        Ok(Some(name))
    }

    /// Goes over the rows of a cursor, and closes it however that ends.
    pub(super) fn each_fetched(
        &mut self,
        name: &str,
        turns: &Turns<'_>,
        frame: &mut Frame<'_>,
    ) -> Result<Flow> {
        self.pin_cursor(name, true);
        let flow = self.fetched_turns(name, turns, frame);
        self.pin_cursor(name, false);
        // A failure that ends its transaction, or a part of it, closes it too.
        if flow.is_ok() {
            self.close_portal(name);
        }
        flow
    }

    fn fetched_turns(
        &mut self,
        name: &str,
        turns: &Turns<'_>,
        frame: &mut Frame<'_>,
    ) -> Result<Flow> {
        let shape = self.cursor_shape(name)?;
        let mut fetch = FetchStmt {
            direction: FetchDirection::FetchForward as i32,
            how_many: 0,
            portalname: name.to_owned(),
            ismove: false,
        };
        let mut any = false;
        let mut round = 0;
        let flow = 'turns: loop {
            fetch.how_many = turns.ahead[round.min(turns.ahead.len() - 1)];
            round += 1;
            let mut kept = KeptRows::new(frame.sink);
            let fetched = self.fetch(&fetch, &mut kept);
            let rows = kept.into_rows();
            fetched.map_err(|error| at_line(error, turns.step, &frame.name))?;
            any |= !rows.is_empty();
            let is_last = (rows.len() as i64) < fetch.how_many;
            for row in rows {
                let shape = (shape.types.as_slice(), Some(shape.columns.as_slice()));
                if let Some(flow) = self.turn_with(turns, shape, row, frame)? {
                    break 'turns flow;
                }
            }
            if is_last {
                break Flow::Next;
            }
        };
        frame.slots[frame.found].value = Datum::Bool(any);
        Ok(flow)
    }
}
