//! What a block gives back: RETURN, RETURN NEXT and RETURN QUERY, and the outputs of CALL.
//!
//! ```text
//! returns int            RETURN 1
//! out a int, out b int   the variables a and b, when the block ends
//! returns setof int      RETURN NEXT 1; RETURN NEXT 2; RETURN QUERY SELECT 3
//! ```
//! Also the types that declarations name by something else (`t.c%TYPE`, `t%ROWTYPE`).

use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::CallStmt;

use super::super::Session;
use super::code::ReturnKind;
use super::compile::Compiler;
use super::cursors::command_of;
use super::piece::{Names, Piece, Shape};
use super::run::Frame;
use super::statement::{check_returns_rows, Wanted};
use catalog::{RelationRef, Table};
use execution::kept::RowStore;
use planner::plan::Row;
use syntax::parser::NodeEnum;
use syntax::plpgsql::ast::Fragment;
use syntax::plpgsql::parse::fold;
use types::{Datum, Record, TypeId, NO_TYPMOD};

fn mismatch(message: &str) -> Error {
    Error::new(SqlState::DATATYPE_MISMATCH, message)
}

fn no_row() -> Error {
    mismatch("cannot return non-composite value from function returning composite type")
}

impl Compiler<'_> {
    fn at_value(&self, error: Error, value: &Fragment) -> Error {
        let lead = value.text.len() - value.text.trim_start().len();
        self.at(error, value.start + lead)
    }

    fn has_outs(&self) -> bool {
        self.signature.arguments.iter().any(|argument| argument.3)
    }

    pub(super) fn optional(
        &self,
        value: Option<&Fragment>,
        names: &Rc<Names>,
    ) -> Result<Option<Piece>> {
        value.map(|value| self.checked(value, names)).transpose()
    }

    /// What RETURN may have.
    pub(super) fn check_return(&self, value: Option<&Fragment>) -> Result<()> {
        let signature = self.signature;
        let Some(value) = value else {
            let needs = !signature.set
                && !self.has_outs()
                && !matches!(signature.kind, ReturnKind::Nothing | ReturnKind::Procedure);
            return match needs {
                true => Err(Error::new(
                    SqlState::SYNTAX_ERROR,
                    "missing expression at or near \";\"",
                )),
                false => Ok(()),
            };
        };
        if signature.set {
            let error = mismatch("RETURN cannot have a parameter in function returning set")
                .with_hint("Use RETURN NEXT or RETURN QUERY.");
            return Err(self.at_value(error, value));
        }
        let message = match signature.kind {
            ReturnKind::Procedure => "RETURN cannot have a parameter in a procedure",
            ReturnKind::Nothing => "RETURN cannot have a parameter in function returning void",
            _ if self.has_outs() => {
                "RETURN cannot have a parameter in function with OUT parameters"
            }
            _ => return Ok(()),
        };
        Err(self.at_value(mismatch(message), value))
    }

    pub(super) fn check_return_next(&self, value: Option<&Fragment>) -> Result<()> {
        if !self.signature.set {
            return Err(mismatch("cannot use RETURN NEXT in a non-SETOF function"));
        }
        match (self.has_outs(), value) {
            (true, Some(value)) => {
                let message = "RETURN NEXT cannot have a parameter in function with OUT parameters";
                Err(self.at_value(mismatch(message), value))
            }
            (false, None) => Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "missing expression at or near \";\"",
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn check_return_query(&self) -> Result<()> {
        match self.signature.set {
            true => Ok(()),
            false => Err(mismatch("cannot use RETURN QUERY in a non-SETOF function")),
        }
    }

    /// The table that a name means.
    fn named_table(&self, name: &str) -> Option<&Table> {
        let parts: Vec<_> = name.split('.').map(|part| fold(part.trim())).collect();
        let catalog = self.cx.catalog;
        let find = |schema: u32, name: &str| match catalog.relation(schema, name)? {
            RelationRef::Table(at) => Some(&*catalog.tables[at]),
            RelationRef::Index(..) => None,
        };
        match parts.as_slice() {
            [name] => self
                .cx
                .search_path
                .iter()
                .find_map(|schema| find(*schema, name)),
            [schema, name] => find(catalog.schema(schema)?.oid, name),
            _ => None,
        }
    }

    /// The type of a declaration: also that of a variable or a column (`%TYPE`), and rows of a table.
    pub(super) fn declared_type(
        &self,
        written: &Fragment,
        own: &Names,
        outer: &Rc<Names>,
    ) -> Result<(TypeId, i32, Option<Rc<Shape>>)> {
        let text = written.text.trim();
        let lower = text.to_ascii_lowercase();
        if let Some(stem) = lower.strip_suffix("%type") {
            let stem = text[..stem.len()].trim();
            let name = fold(stem);
            let own = own.variables.iter().rev().find(|known| known.0 == name);
            let slot = own.map(|known| known.1).or_else(|| outer.find(&name));
            if let Some(slot) = slot {
                let slot = &self.slots[slot];
                return Ok((slot.ty, slot.typmod, slot.fixed.clone()));
            }
            if let Some((table, column)) = stem.rsplit_once('.') {
                let table = self.named_table(table).ok_or_else(|| {
                    let message = format!("relation \"{}\" does not exist", table.trim());
                    Error::new(SqlState::UNDEFINED_TABLE, message)
                })?;
                let place = table.column(&fold(column.trim())).ok_or_else(|| {
                    let message = format!(
                        "column \"{}\" of relation \"{}\" does not exist",
                        column.trim(),
                        table.name
                    );
                    Error::new(SqlState::UNDEFINED_COLUMN, message)
                })?;
                let column = &table.columns[place];
                let (ty, typmod) = column.declared();
                return Ok((ty, typmod, None));
            }
        }
        let stem = lower.strip_suffix("%rowtype");
        let named = text[..stem.map_or(text.len(), str::len)].trim();
        if stem.is_some() || !text.contains(['(', '[', ' ']) {
            let is_type = stem.is_none() && self.type_of(written).is_ok();
            if let Some(table) = self.named_table(named).filter(|_| !is_type) {
                let shape = shape_of(table);
                let ty = match shape.ty {
                    TypeId::NONE => TypeId::RECORD,
                    ty => ty,
                };
                return Ok((ty, -1, Some(Rc::new(shape))));
            }
        }
        if stem.is_some() {
            let of_type = Fragment {
                text: named.to_owned(),
                start: written.start,
            };
            if let Ok((ty, typmod)) = self.type_of(&of_type) {
                if ty.is_composite() {
                    return Ok((ty, typmod, None));
                }
            }
            let message = format!("relation \"{named}\" does not exist");
            return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
        }
        let (ty, typmod) = self.type_of(written)?;
        Ok((ty, typmod, None))
    }
}

/// The columns of a table.
pub(in crate::session) fn shape_of(table: &Table) -> Shape {
    let kept = || table.columns.iter().filter(|column| !column.dropped);
    Shape {
        columns: kept()
            .map(|column| (column.name.clone(), column.declared().0))
            .collect(),
        typmods: kept().map(|column| column.declared().1).collect(),
        collations: kept().map(|column| column.collation).collect(),
        names: Some(kept().map(|column| column.name.clone()).collect()),
        ty: table.row_type().unwrap_or(TypeId::NONE),
    }
}

impl Session {
    /// RETURN.
    pub(super) fn return_value(
        &mut self,
        value: Option<&Piece>,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let Some(piece) = value else {
            return Ok(());
        };
        let (value, ty) = self.value_of(piece, &frame.slots)?;
        let is_row = matches!(value, Datum::Null | Datum::Record(_));
        if matches!(frame.returns.kind, ReturnKind::Record(_)) && !is_row {
            return Err(no_row());
        }
        frame.returned = Some((value, ty));
        Ok(())
    }

    /// What RETURN gave as the result, when the block has ended: no handler catches what fails here.
    fn cast_result(&mut self, (value, ty): (Datum, TypeId), frame: &Frame<'_>) -> Result<Datum> {
        let kind = frame.returns.kind.clone();
        self.as_result(&kind, value, ty).map_err(|mut error| {
            let name = &frame.name;
            let what = "while casting return value to function's return type";
            super::piece::add_context(&mut error, &format!("PL/pgSQL function {name} {what}"));
            error
        })
    }

    /// A value as one result.
    fn as_result(&mut self, kind: &ReturnKind, value: Datum, ty: TypeId) -> Result<Datum> {
        match (kind, value) {
            (ReturnKind::Value(wanted), value) => self.convert(value, ty, *wanted, NO_TYPMOD),
            (_, Datum::Null) => Ok(Datum::Null),
            (ReturnKind::Record(columns), Datum::Record(record)) => {
                if columns.is_empty() {
                    return Ok(Datum::Record(record));
                }
                let types = record.types.clone();
                let row = self.as_columns(columns, record.values.clone(), &types, || {
                    mismatch("returned record type does not match expected record type")
                })?;
                Ok(record_of(columns, row))
            }
            (ReturnKind::Record(_), _) => Err(no_row()),
            (_, value) => Ok(value),
        }
    }

    /// A row with the types of these columns.
    pub(in crate::session) fn as_columns(
        &mut self,
        columns: &[(String, TypeId)],
        row: Row,
        types: &[TypeId],
        wrong: impl FnOnce() -> Error,
    ) -> Result<Row> {
        if row.len() != columns.len() {
            let error = wrong();
            return Err(match error.fields().detail {
                Some(_) => error,
                None => error.with_detail(format!(
                    "Number of returned columns ({}) does not match expected column count ({}).",
                    row.len(),
                    columns.len()
                )),
            });
        }
        let mut out = Vec::with_capacity(row.len());
        for ((value, from), (_, to)) in row.into_iter().zip(types).zip(columns) {
            out.push(self.convert(value, *from, *to, NO_TYPMOD)?);
        }
        Ok(out)
    }

    fn keep_row(&mut self, row: Row, frame: &mut Frame<'_>) -> Result<()> {
        if matches!(&frame.returns.kind, ReturnKind::Record(columns) if columns.is_empty()) {
            let message = "materialize mode required, but it is not allowed in this context";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        frame.out_rows.push(row)?;
        if frame.out_rows.bytes() > self.shared.settings.parsed().query_memory {
            return Err(
                Error::new(SqlState::OUT_OF_MEMORY, "out of memory").with_hint(
                    "Consider increasing the configuration parameter \"quorate.query_mem\".",
                ),
            );
        }
        self.tick(frame)
    }

    /// RETURN NEXT.
    pub(super) fn return_next(
        &mut self,
        value: Option<&Piece>,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let row = match value {
            None => outs_of(frame),
            Some(piece) => {
                let (value, ty) = self.value_of(piece, &frame.slots)?;
                let kind = frame.returns.kind.clone();
                match self.as_result(&kind, value, ty)? {
                    Datum::Record(record) if kind != ReturnKind::Value(TypeId::RECORD) => {
                        record.values.clone()
                    }
                    Datum::Null => match &kind {
                        ReturnKind::Record(columns) => vec![Datum::Null; columns.len()],
                        _ => vec![Datum::Null],
                    },
                    value => vec![value],
                }
            }
        };
        self.keep_row(row, frame)
    }

    /// RETURN QUERY and RETURN QUERY EXECUTE.
    pub(super) fn return_query(
        &mut self,
        query: &Piece,
        using: Option<&[Piece]>,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let mut rows = RowStore::of("The rows of a statement");
        let planned = match using {
            None => {
                let compiled = self.compiled(query, &frame.slots)?;
                check_returns_rows(&compiled.planned, command_of(&compiled.statement))
                    .map_err(|error| query.explain(error))?;
                self.rows_of_piece(query, &mut rows, frame)?
            }
            Some(using) => {
                let text = self.dynamic_text(query, using, frame)?;
                let (_, planned) = self.dynamic(&text, &mut rows, Wanted::All, frame)?;
                planned.ok_or_else(|| {
                    Error::new(
                        SqlState::SYNTAX_ERROR,
                        "cannot open non-SELECT query as cursor",
                    )
                })?
            }
        };
        let columns = match &frame.returns.kind {
            ReturnKind::Value(ty) => vec![(String::new(), *ty)],
            ReturnKind::Record(columns) => columns.clone(),
            _ => Vec::new(),
        };
        frame.set_rows(rows.len() as u64);
        for row in rows {
            let row = match columns.is_empty() {
                true => row,
                false => self.as_columns(&columns, row, &planned.types, || {
                    mismatch("structure of query does not match function result type")
                })?,
            };
            self.keep_row(row, frame)?;
        }
        Ok(())
    }

    /// What a block has given when it ends.
    pub(super) fn end_of_block(&mut self, frame: &mut Frame<'_>) -> Result<Datum> {
        let returns = frame.returns;
        if returns.set {
            return Ok(Datum::Null);
        }
        if !returns.outs.is_empty() {
            let mut row = outs_of(frame);
            return Ok(match &returns.kind {
                ReturnKind::Value(_) if row.len() == 1 => row.pop().unwrap_or(Datum::Null),
                _ => {
                    let types = returns
                        .outs
                        .iter()
                        .map(|slot| frame.slots[*slot].ty)
                        .collect();
                    Datum::Record(std::sync::Arc::new(Record {
                        types,
                        values: row,
                        names: None,
                    }))
                }
            });
        }
        match (&returns.kind, frame.returned.take()) {
            (_, Some(given)) => self.cast_result(given, frame),
            (ReturnKind::Nothing | ReturnKind::Procedure, None) => Ok(Datum::text("")),
            (_, None) => {
                let what = if returns.trigger {
                    "trigger procedure"
                } else {
                    "function"
                };
                let message = format!("control reached end of {what} without RETURN");
                let mut error = Error::new(SqlState::of("2F005"), message);
                let line = format!("PL/pgSQL function {}", frame.name);
                super::piece::add_context(&mut error, &line);
                Err(error)
            }
        }
    }

    /// CALL: its outputs go into the variables that stand in their places.
    pub(super) fn call_step(
        &mut self,
        piece: &Piece,
        call: &CallStmt,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let atomic = frame.atomic || frame.guarded > 0;
        let (called, args) = self.procedure_of(call, piece, &frame.slots)?;
        let done = self.call_procedure(&called, args, atomic, frame.sink);
        let done = done.map_err(|error| piece.explain(error))?;
        let Some(written) = &call.funccall else {
            return Ok(());
        };
        let values = match done {
            Datum::Record(record) => record.values.clone(),
            _ => Vec::new(),
        };
        let arguments = called.routine.arguments.iter().enumerate();
        let outputs = arguments.filter(|(_, argument)| argument.mode.is_output());
        for ((place, argument), (value, column)) in
            outputs.zip(values.into_iter().zip(&called.columns))
        {
            let by_place = written.args.get(place).and_then(|node| node.node.as_ref());
            let named = written.args.iter().find_map(|node| match &node.node {
                Some(NodeEnum::NamedArgExpr(named)) if named.name == argument.name => {
                    named.arg.as_ref().and_then(|node| node.node.as_ref())
                }
                _ => None,
            });
            let names = match named.or(by_place) {
                Some(NodeEnum::ColumnRef(column)) => column
                    .fields
                    .iter()
                    .filter_map(|field| match &field.node {
                        Some(NodeEnum::String(name)) => Some(name.sval.as_str()),
                        _ => None,
                    })
                    .collect(),
                _ => Vec::new(),
            };
            let slot = match names.as_slice() {
                [name] => piece.names.find(name),
                [label, name] => piece.names.find_in(label, name),
                _ => None,
            };
            let slot = slot.ok_or_else(|| {
                Error::new(
                    SqlState::SYNTAX_ERROR,
                    format!(
                        "procedure parameter \"{}\" is an output parameter but corresponding \
                         argument is not writable",
                        argument.name
                    ),
                )
            })?;
            self.store(frame, slot, value, column.1)?;
        }
        Ok(())
    }
}

fn outs_of(frame: &Frame<'_>) -> Row {
    let outs = frame.returns.outs.iter();
    outs.map(|slot| frame.slots[*slot].value.clone()).collect()
}

/// A row as a record.
pub(in crate::session) fn record_of(columns: &[(String, TypeId)], row: Row) -> Datum {
    let types = columns.iter().map(|column| column.1).collect();
    Datum::Record(std::sync::Arc::new(Record {
        types,
        values: row,
        names: None,
    }))
}
