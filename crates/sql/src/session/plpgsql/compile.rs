//! Blocks into code: variables get places, fragments become pieces.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use base::{coro, Error, Result, SqlState};

use super::super::Session;
use super::code::{
    BlockCode, BoundCursor, Code, HandlerCode, IntoCode, Returns, RowsFrom, Signature, Step,
    StepKind, Target,
};
use super::piece::{Names, Piece, PieceKind, Shape, Slot};
use catalog::collation;
use catalog::composite::Field;
use execution::settings::VariableConflict;
use pg_query::protobuf::CallStmt;
use planner::bind::collation::named;
use planner::bind::{self, BindContext, Conflict};
use planner::plan::Collated;
use syntax::parser::{self, char_position, NodeEnum};
use syntax::plpgsql::ast::{
    Block, Condition, Fragment, Loop, LoopHead, Message, Raise, Statement, StatementKind,
};
use syntax::plpgsql::conditions;
use types::{Datum, TypeId};

/// What a trigger gives its function.
///
/// Source: PostgreSQL 15 manual, section 43.10.1.
const TRIGGER_VARIABLES: [(&str, TypeId); 12] = [
    ("new", TypeId::RECORD),
    ("old", TypeId::RECORD),
    ("tg_name", TypeId::NAME),
    ("tg_when", TypeId::TEXT),
    ("tg_level", TypeId::TEXT),
    ("tg_op", TypeId::TEXT),
    ("tg_relid", TypeId::OID),
    ("tg_relname", TypeId::NAME),
    ("tg_table_name", TypeId::NAME),
    ("tg_table_schema", TypeId::NAME),
    ("tg_nargs", TypeId::INT4),
    ("tg_argv", TEXTS),
];

/// `text[]`.
const TEXTS: TypeId = TypeId(1_009);

/// What parsing one of a body's pieces costs, in units of [`coro::work`].
const PIECE_WORK: usize = 10_000;

pub(super) struct Compiler<'a> {
    pub(super) text: &'a str,
    pub(super) cx: BindContext<'a>,
    pub(super) slots: Vec<Slot>,
    found: usize,
    /// The variables that are bound cursors.
    pub(super) bound: BTreeMap<usize, Rc<BoundCursor>>,
    /// Which variables may not have the name of another, and of which it is warned.
    shadowed: (bool, bool),
    warnings: Vec<Error>,
    /// The labels of the loops and blocks around, the innermost last; whether each is a loop.
    around: Vec<(bool, Option<String>)>,
    pub(super) signature: &'a Signature,
}

impl Session {
    /// Compiles a block. Positions in errors are those in the block's text.
    pub(in crate::session) fn compile_block(
        &mut self,
        text: &str,
        block: &Block,
        signature: &Signature,
    ) -> Result<Code> {
        let catalog = self.current_catalog()?;
        let search_path = self.search_path(&catalog);
        let settings = self.shared.settings.parsed().procedural;
        let mut compiler = Compiler {
            text,
            cx: BindContext {
                catalog: &catalog,
                search_path: &search_path,
                role: self.shared.settings.current_role(),
                eval: &self.eval,
                text,
                literals: None,
                variables: None,
            },
            slots: Vec::new(),
            found: 0,
            bound: BTreeMap::new(),
            shadowed: match signature.is_new {
                true => (
                    settings.errors.shadowed_variables,
                    settings.warnings.shadowed_variables,
                ),
                false => (false, false),
            },
            warnings: Vec::new(),
            around: Vec::new(),
            signature,
        };
        let found = compiler.slot("found", TypeId::BOOL, -1);
        compiler.found = found;
        compiler.slots[found].value = Datum::Bool(false);
        let mut names = Names {
            variables: vec![("found".to_owned(), found)],
            label: Some(signature.name.clone()),
            rows: signature.rows.clone(),
            conflict: match (
                block.variable_conflict.as_deref(),
                settings.variable_conflict,
            ) {
                (Some("use_variable"), _) | (None, VariableConflict::UseVariable) => {
                    Conflict::Variable
                }
                (Some("use_column"), _) | (None, VariableConflict::UseColumn) => Conflict::Column,
                _ => Conflict::Error,
            },
            ..Names::default()
        };
        for (name, ty) in TRIGGER_VARIABLES.iter().filter(|_| signature.trigger) {
            let slot = compiler.slot(name, *ty, -1);
            names.variables.push(((*name).to_owned(), slot));
        }
        let (mut inputs, mut outs) = (Vec::new(), Vec::new());
        for ((name, ty, given, given_back), number) in signature.arguments.iter().zip(1..) {
            let slot = compiler.slot(if name.is_empty() { "" } else { name }, *ty, -1);
            names.variables.push((format!("${number}"), slot));
            if !name.is_empty() {
                names.variables.push((name.clone(), slot));
            }
            inputs.extend(given.then_some(slot));
            outs.extend(given_back.then_some(slot));
        }
        let body = compiler.block(block, &Rc::new(names))?;
        Ok(Code {
            body,
            slots: compiler.slots,
            found,
            name: signature.shown.as_str().into(),
            returns: Returns {
                kind: signature.kind.clone(),
                set: signature.set,
                outs,
                trigger: signature.trigger,
            },
            inputs,
            prints_strict: block
                .print_strict_params
                .unwrap_or(settings.print_strict_params),
            rows: Rc::new(Names {
                rows: signature.rows.clone(),
                ..Names::default()
            }),
            warnings: compiler.warnings,
        })
    }
}

impl Compiler<'_> {
    pub(super) fn slot(&mut self, name: &str, ty: TypeId, typmod: i32) -> usize {
        let shape = self.cx.catalog.fields(ty).map(|fields| {
            let declared = |field: &Field| match field.domain {
                TypeId::NONE => field.ty,
                domain => domain,
            };
            Rc::new(Shape {
                columns: fields
                    .iter()
                    .map(|field| (field.name.clone(), declared(field)))
                    .collect(),
                typmods: fields.iter().map(|field| field.typmod).collect(),
                collations: fields.iter().map(|field| field.collation).collect(),
                names: Some(fields.iter().map(|field| field.name.clone()).collect()),
                ty,
            })
        });
        self.slots.push(Slot {
            name: name.into(),
            ty,
            typmod,
            collation: self.signature.collation,
            not_null: false,
            constant: false,
            is_record: ty == TypeId::RECORD || shape.is_some(),
            value: Datum::Null,
            shape: shape.clone(),
            fixed: shape,
        });
        self.slots.len() - 1
    }

    /// The collation of a variable that is declared with COLLATE.
    fn declared_collation(&self, names: &[String], ty: TypeId) -> Result<Collated> {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let known = named((self.cx.catalog, self.cx.search_path, self.cx.role), &names)?;
        let (base, _) = self.cx.catalog.base_type(ty);
        match collation::of_type(base) {
            0 => Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!("collations are not supported by type {ty}"),
            )),
            own if own == known.oid => Ok(Collated::default()),
            _ => Ok(Collated::implicit(known.oid)),
        }
    }

    pub(super) fn at(&self, error: Error, start: usize) -> Error {
        match char_position(self.text, i32::try_from(start).unwrap_or(-1)) {
            Some(position) => error.at(position),
            None => error,
        }
    }

    fn piece(&self, kind: PieceKind, fragment: &Fragment, names: &Rc<Names>) -> Piece {
        let trimmed = fragment.text.trim();
        let (text, shift) = match kind {
            // PERFORM became SELECT with the space that followed it.
            PieceKind::Statement => (trimmed.replacen("SELECT  ", "SELECT ", 1), 0),
            _ => (format!("SELECT {trimmed}"), "SELECT ".len() as i64),
        };
        Piece {
            kind,
            shown: match kind {
                PieceKind::Statement => text.as_str().into(),
                _ => trimmed.into(),
            },
            text,
            shift,
            names: names.clone(),
            simple: false,
            part: None,
            planned: RefCell::new(None),
        }
    }

    fn expr(&self, fragment: &Fragment, names: &Rc<Names>) -> Piece {
        self.piece(PieceKind::Expression, fragment, names)
    }

    /// Refuses what SQL's grammar refuses, before anything runs.
    pub(super) fn statement(&self, fragment: &Fragment, names: &Rc<Names>) -> Result<Piece> {
        coro::work(PIECE_WORK)?;
        if let Err(error) = parser::parse(&fragment.text) {
            let position = error.fields().position;
            let start = char_position(self.text, i32::try_from(fragment.start).unwrap_or(0));
            return Err(match (position, start) {
                (Some(position), Some(start)) => error.at(position + start - 1),
                _ => error,
            });
        }
        Ok(self.piece(PieceKind::Statement, fragment, names))
    }

    pub(super) fn checked(&self, fragment: &Fragment, names: &Rc<Names>) -> Result<Piece> {
        let piece = self.expr(fragment, names);
        coro::work(PIECE_WORK)?;
        if let Err(error) = parser::parse(&piece.text) {
            let lead = fragment.text.len() - fragment.text.trim_start().len();
            let start = fragment.start + lead;
            let position = error.fields().position;
            let start = char_position(self.text, i32::try_from(start).unwrap_or(0));
            return Err(match (position, start) {
                (Some(position), Some(start)) if position > 7 => error.at(position - 7 + start - 1),
                _ => error,
            });
        }
        Ok(piece)
    }

    /// A variable's type as written; `t.c%TYPE` is that of a column.
    pub(super) fn type_of(&self, fragment: &Fragment) -> Result<(TypeId, i32)> {
        let written = fragment.text.trim();
        let lower = written.to_ascii_lowercase();
        if lower == "record" {
            return Ok((TypeId::RECORD, -1));
        }
        let missing = || {
            let error = Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("type \"{written}\" does not exist"),
            );
            self.at(error, fragment.start)
        };
        if let Some(name) = lower.strip_suffix("%type") {
            let parts: Vec<_> = name.trim().split('.').map(str::trim).collect();
            if let [table, column] = parts[..] {
                let found = self.cx.search_path.iter().find_map(|schema| {
                    match self.cx.catalog.relation(*schema, table)? {
                        catalog::RelationRef::Table(at) => Some(&self.cx.catalog.tables[at]),
                        catalog::RelationRef::Index(..) => None,
                    }
                });
                let column = found.and_then(|table| {
                    let place = table.column(column)?;
                    Some(table.columns[place].declared())
                });
                return column.ok_or_else(missing);
            }
            return Err(missing());
        }
        if lower.ends_with("%rowtype") {
            return Ok((TypeId::RECORD, -1));
        }
        let cast = format!("SELECT NULL::{written}");
        let statements = parser::parse(&cast).map_err(|_| missing())?;
        let target = match statements.first().map(|statement| statement.node()) {
            Some(NodeEnum::SelectStmt(select)) => select.target_list.first().cloned(),
            _ => None,
        };
        let Some(NodeEnum::ResTarget(target)) = target.and_then(|node| node.node) else {
            return Err(missing());
        };
        let Some(NodeEnum::TypeCast(cast)) = target.val.and_then(|node| node.node) else {
            return Err(missing());
        };
        let name = cast.type_name.as_ref().ok_or_else(missing)?;
        bind::type_names::resolve(&self.cx, name).map_err(|mut error| {
            error.fields_mut().position = None;
            self.at(error, fragment.start)
        })
    }

    fn block(&mut self, block: &Block, outer: &Rc<Names>) -> Result<BlockCode> {
        let mut names = Names {
            parent: Some(outer.clone()),
            label: block.label.clone(),
            ..Names::default()
        };
        let mut declarations = Vec::new();
        for declaration in &block.declarations {
            if let Some(of) = &declaration.alias {
                let slot = names.variables.iter().find(|known| known.0 == *of);
                let slot = slot.map(|known| known.1).or_else(|| outer.find(of));
                let slot = slot.ok_or_else(|| {
                    let message = format!("variable \"{of}\" does not exist");
                    Error::new(SqlState::of("42704"), message)
                })?;
                names.variables.push((declaration.name.clone(), slot));
                continue;
            }
            // A default sees the variables before its own.
            let so_far = Rc::new(Names {
                parent: Some(outer.clone()),
                label: block.label.clone(),
                variables: names.variables.clone(),
                ..Names::default()
            });
            if names
                .variables
                .iter()
                .any(|known| known.0 == declaration.name)
            {
                let error = Error::new(
                    SqlState::SYNTAX_ERROR,
                    format!("duplicate declaration at or near \"{}\"", declaration.name),
                );
                return Err(error);
            }
            self.check_shadowed(&declaration.name, declaration.start, outer)?;
            if let Some(cursor) = &declaration.cursor {
                let (slot, name) = self.bound_cursor(&declaration.name, cursor, &so_far)?;
                names.variables.push((declaration.name.clone(), slot));
                declarations.push((slot, Some(name), declaration.line));
                continue;
            }
            let (ty, typmod, fixed) = self.declared_type(&declaration.type_name, &names, outer)?;
            let default = match &declaration.default {
                Some(fragment) => Some(self.checked(fragment, &so_far)?),
                None => None,
            };
            if declaration.not_null && default.is_none() {
                let error = Error::new(
                    SqlState::of("22004"),
                    format!(
                        "variable \"{}\" must have a default value, since it's declared NOT NULL",
                        declaration.name
                    ),
                );
                let end = declaration.type_name.start + declaration.type_name.text.trim_end().len();
                let rest = &self.text[end.min(self.text.len())..];
                let null = rest.to_ascii_lowercase().find("not").unwrap_or(0);
                return Err(self.at(error, end + null));
            }
            let slot = self.slot(&declaration.name, ty, typmod);
            if !declaration.collation.is_empty() {
                self.slots[slot].collation = self.declared_collation(&declaration.collation, ty)?;
            }
            self.slots[slot].not_null = declaration.not_null;
            self.slots[slot].constant = declaration.constant;
            if fixed.is_some() {
                self.slots[slot].is_record = true;
                self.slots[slot].shape = fixed.clone();
                self.slots[slot].fixed = fixed;
            }
            names.variables.push((declaration.name.clone(), slot));
            declarations.push((slot, default, declaration.line));
        }
        let names = Rc::new(names);
        self.around.push((false, block.label.clone()));
        let body = self.steps(&block.body, &names);
        self.around.pop();
        let body = body?;
        let state = self.slot("sqlstate", TypeId::TEXT, -1);
        let message = self.slot("sqlerrm", TypeId::TEXT, -1);
        let inside = Rc::new(Names {
            parent: Some(names.clone()),
            variables: vec![
                ("sqlstate".to_owned(), state),
                ("sqlerrm".to_owned(), message),
            ],
            ..Names::default()
        });
        let mut handlers = Vec::new();
        for handler in &block.handlers {
            for condition in &handler.conditions {
                if let Condition::Named(name) = condition {
                    check_condition(name)
                        .map_err(|error| compiling(error, near(handler), &self.signature.name))?;
                }
            }
            handlers.push(HandlerCode {
                conditions: handler.conditions.clone(),
                body: self.steps(&handler.body, &inside)?,
            });
        }
        Ok(BlockCode {
            label: block.label.clone(),
            declarations,
            body,
            handlers,
            error_slots: (state, message),
        })
    }

    /// Looks whether a variable has the name of one around it, where that is asked for.
    pub(super) fn check_shadowed(&mut self, name: &str, start: usize, outer: &Names) -> Result<()> {
        if self.shadowed == (false, false) || outer.find(name).is_none() {
            return Ok(());
        }
        let message = format!("variable \"{name}\" shadows a previously defined variable");
        let found = self.at(Error::new(SqlState::of("42712"), message), start);
        match self.shadowed.0 {
            true => Err(found),
            false => {
                self.warnings.push(found);
                Ok(())
            }
        }
    }

    pub(super) fn steps(
        &mut self,
        statements: &[Statement],
        names: &Rc<Names>,
    ) -> Result<Vec<Step>> {
        coro::check_depth()?;
        statements
            .iter()
            .map(|statement| {
                Ok(Step {
                    line: statement.line,
                    kind: self.step(statement, names)?,
                })
            })
            .collect()
    }

    fn branches(
        &mut self,
        branches: &[(Fragment, Vec<Statement>)],
        names: &Rc<Names>,
    ) -> Result<Vec<(Piece, Vec<Step>)>> {
        branches
            .iter()
            .map(|(condition, body)| {
                Ok((self.checked(condition, names)?, self.steps(body, names)?))
            })
            .collect()
    }

    pub(super) fn pieces(&self, fragments: &[Fragment], names: &Rc<Names>) -> Result<Vec<Piece>> {
        fragments
            .iter()
            .map(|fragment| self.checked(fragment, names))
            .collect()
    }

    fn step(&mut self, statement: &Statement, names: &Rc<Names>) -> Result<StepKind> {
        Ok(match &statement.kind {
            StatementKind::Block(block) => StepKind::Block(self.block(block, names)?),
            StatementKind::Assign { target, value } => self.assign(target, value, names)?,
            StatementKind::If {
                branches,
                otherwise,
            } => StepKind::If(
                self.branches(branches, names)?,
                self.steps(otherwise, names)?,
            ),
            StatementKind::Case {
                operand,
                branches,
                otherwise,
            } => self.case(operand.as_ref(), branches, otherwise.as_deref(), names)?,
            StatementKind::Loop(inner) => self.any_loop(inner, names)?,
            StatementKind::Leave { next, label, when } => StepKind::Leave {
                next: self.check_leave(*next, label.as_ref(), statement.line)?,
                label: label.clone(),
                when: when
                    .as_ref()
                    .map(|when| self.checked(when, names))
                    .transpose()?,
            },
            StatementKind::Return(value) => {
                self.check_return(value.as_ref())?;
                StepKind::Return(self.optional(value.as_ref(), names)?)
            }
            StatementKind::ReturnNext(value) => {
                self.check_return_next(value.as_ref())?;
                StepKind::ReturnNext(self.optional(value.as_ref(), names)?)
            }
            StatementKind::ReturnQuery(query) => {
                self.check_return_query()?;
                StepKind::ReturnQuery(self.statement(query, names)?, None)
            }
            StatementKind::ReturnExecute { query, using } => {
                self.check_return_query()?;
                let using = self.pieces(using, names)?;
                StepKind::ReturnQuery(self.checked(query, names)?, Some(using))
            }
            StatementKind::Raise(raise) => self.raise(raise, names, statement.line)?,
            StatementKind::Assert { condition, message } => StepKind::Assert(
                self.checked(condition, names)?,
                message
                    .as_ref()
                    .map(|message| self.checked(message, names))
                    .transpose()?,
            ),
            StatementKind::Perform(query) => StepKind::Perform(self.statement(query, names)?),
            StatementKind::Sql { query, into } => {
                let into = self.compile_into(into.as_ref(), names)?;
                if let Some(call) = call_in(&query.text) {
                    return Ok(StepKind::Call(
                        self.statement(query, names)?,
                        Box::new(call),
                    ));
                }
                StepKind::Sql(self.statement(query, names)?, into)
            }
            StatementKind::Execute { query, into, using } => {
                let into = self.compile_into(into.as_ref(), names)?;
                StepKind::Execute(
                    self.checked(query, names)?,
                    into,
                    self.pieces(using, names)?,
                )
            }
            StatementKind::GetDiagnostics { stacked, items } => {
                let items = items
                    .iter()
                    .map(|(target, item)| Ok((self.target(target, names)?, item.clone())))
                    .collect::<Result<_>>()?;
                StepKind::Diagnostics(*stacked, items)
            }
            StatementKind::Open { cursor, what } => self.open(cursor, what, names)?,
            StatementKind::Fetch {
                cursor,
                direction,
                count,
                into,
            } => self.fetch(cursor, (*direction, count), into.as_deref(), names)?,
            StatementKind::Close(cursor) => StepKind::Close(self.cursor(cursor, names)?),
            StatementKind::Null => StepKind::Null,
            StatementKind::EndTransaction { commit, chain } => {
                StepKind::EndTransaction(*commit, *chain)
            }
        })
    }

    /// What GET DIAGNOSTICS fills: no whole record.
    fn target(&self, target: &Fragment, names: &Rc<Names>) -> Result<Target> {
        let (slot, field) = self.target_field(target, names)?;
        if field.is_none() && self.slots[slot].is_record {
            let message = format!("\"{}\" is not a scalar variable", target.text.trim());
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            return Err(self.at(error, target.start));
        }
        Ok(Target { slot, field })
    }

    fn case(
        &mut self,
        operand: Option<&Fragment>,
        branches: &[(Fragment, Vec<Statement>)],
        otherwise: Option<&[Statement]>,
        names: &Rc<Names>,
    ) -> Result<StepKind> {
        let otherwise = match otherwise {
            Some(statements) => Some(self.steps(statements, names)?),
            None => None,
        };
        let Some(operand) = operand else {
            return Ok(StepKind::Case(self.branches(branches, names)?, otherwise));
        };
        // The operand becomes a variable that the branches compare with.
        const NAME: &str = "__Case__Variable__";
        let slot = self.slot(NAME, TypeId::TEXT, -1);
        let inside = Rc::new(Names {
            parent: Some(names.clone()),
            variables: vec![(NAME.to_owned(), slot)],
            ..Names::default()
        });
        let mut compared = Vec::new();
        for (values, body) in branches {
            let condition = Fragment {
                text: format!("\"{NAME}\" IN ({})", values.text.trim()),
                start: values.start,
            };
            compared.push((self.checked(&condition, &inside)?, self.steps(body, names)?));
        }
        let operand = self.checked(operand, names)?;
        Ok(StepKind::SimpleCase(slot, operand, compared, otherwise))
    }

    /// EXIT and CONTINUE must stand inside what they leave.
    fn check_leave(&self, next: bool, label: Option<&String>, line: usize) -> Result<bool> {
        let verb = if next { "CONTINUE" } else { "EXIT" };
        let message = match label {
            None if self.around.iter().any(|around| around.0) => return Ok(next),
            None if next => "CONTINUE cannot be used outside a loop".to_owned(),
            None => "EXIT cannot be used outside a loop, unless it has a label".to_owned(),
            Some(label) => match self
                .around
                .iter()
                .rev()
                .find(|a| a.1.as_ref() == Some(label))
            {
                Some((is_loop, _)) if *is_loop || !next => return Ok(next),
                Some(_) => format!("block label \"{label}\" cannot be used in CONTINUE"),
                None => format!(
                    "there is no label \"{label}\" attached to any block or loop enclosing this \
                     statement"
                ),
            },
        };
        let error = Error::new(SqlState::SYNTAX_ERROR, message);
        // The statement's own place: the first such word of its line.
        let start: usize = self
            .text
            .split_inclusive('\n')
            .take(line - 1)
            .map(str::len)
            .sum();
        let rest = self.text.get(start..).unwrap_or("").to_ascii_uppercase();
        Err(self.at(error, start + rest.find(verb).unwrap_or(0)))
    }

    fn any_loop(&mut self, inner: &Loop, names: &Rc<Names>) -> Result<StepKind> {
        self.around.push((true, inner.label.clone()));
        let compiled = self.one_loop(inner, names);
        self.around.pop();
        compiled
    }

    fn one_loop(&mut self, inner: &Loop, names: &Rc<Names>) -> Result<StepKind> {
        let label = inner.label.clone();
        Ok(match &inner.head {
            LoopHead::Forever => StepKind::Forever(label, self.steps(&inner.body, names)?),
            LoopHead::While(condition) => {
                let condition = self.checked(condition, names)?;
                StepKind::While(label, condition, self.steps(&inner.body, names)?)
            }
            LoopHead::Integers {
                variable,
                reverse,
                first,
                last,
                step,
            } => {
                let slot = self.slot(variable, TypeId::INT4, -1);
                let inside = Rc::new(Names {
                    parent: Some(names.clone()),
                    label: label.clone(),
                    variables: vec![(variable.clone(), slot)],
                    ..Names::default()
                });
                StepKind::Integers {
                    slot,
                    reverse: *reverse,
                    first: self.checked(first, names)?,
                    last: self.checked(last, names)?,
                    step: step
                        .as_ref()
                        .map(|step| self.checked(step, names))
                        .transpose()?,
                    body: self.steps(&inner.body, &inside)?,
                    label,
                }
            }
            LoopHead::Elements {
                targets,
                slice,
                array,
            } => {
                let source = RowsFrom::Elements(self.checked(array, names)?, *slice);
                self.for_each(inner, targets, source, names)?
            }
            LoopHead::Query {
                targets,
                query,
                cursor,
            } => {
                let known = cursor.as_ref().and_then(|used| {
                    let slot = self.cursor(&used.name, names).ok()?;
                    Some((slot, used))
                });
                if let Some(known) = known {
                    return self.for_cursor(inner, targets, known, names);
                }
                let source = RowsFrom::Query(self.statement(query, names)?);
                self.for_each(inner, targets, source, names)?
            }
            LoopHead::Execute {
                targets,
                query,
                using,
            } => {
                let using = self.pieces(using, names)?;
                let source = RowsFrom::Dynamic(self.checked(query, names)?, using);
                self.for_each(inner, targets, source, names)?
            }
        })
    }

    fn for_each(
        &mut self,
        inner: &Loop,
        targets: &[Fragment],
        source: RowsFrom,
        names: &Rc<Names>,
    ) -> Result<StepKind> {
        Ok(StepKind::ForEach {
            label: inner.label.clone(),
            targets: self.targets(targets, names)?,
            source,
            body: self.steps(&inner.body, names)?,
        })
    }

    pub(super) fn targets(&self, targets: &[Fragment], names: &Rc<Names>) -> Result<Vec<Target>> {
        targets
            .iter()
            .map(|target| {
                let (slot, field) = self.target_field(target, names)?;
                Ok(Target { slot, field })
            })
            .collect()
    }

    fn compile_into(
        &self,
        into: Option<&syntax::plpgsql::ast::Into>,
        names: &Rc<Names>,
    ) -> Result<Option<IntoCode>> {
        let Some(into) = into else {
            return Ok(None);
        };
        Ok(Some(IntoCode {
            strict: into.strict,
            targets: self.targets(&into.targets, names)?,
        }))
    }

    fn raise(&mut self, raise: &Raise, names: &Rc<Names>, line: usize) -> Result<StepKind> {
        let arguments = match &raise.message {
            Message::Format { format, arguments } => {
                let wanted = format.replace("%%", "").matches('%').count();
                let wrong = match arguments.len().cmp(&wanted) {
                    std::cmp::Ordering::Less => Some("few"),
                    std::cmp::Ordering::Greater => Some("many"),
                    std::cmp::Ordering::Equal => None,
                };
                if let Some(wrong) = wrong {
                    let message = format!("too {wrong} parameters specified for RAISE");
                    let error = Error::new(SqlState::SYNTAX_ERROR, message);
                    return Err(compiling(error, line, &self.signature.name));
                }
                self.pieces(arguments, names)?
            }
            _ => Vec::new(),
        };
        if let Message::Condition(Condition::Named(name)) = &raise.message {
            check_condition(name).map_err(|error| compiling(error, line, &self.signature.name))?;
        }
        let mut options = Vec::new();
        for (name, value) in &raise.options {
            options.push((name.clone(), self.checked(value, names)?));
        }
        Ok(StepKind::Raise(raise.clone(), arguments, options))
    }
}

/// The line of a handler's first statement, as near as its own.
fn near(handler: &syntax::plpgsql::ast::Handler) -> usize {
    handler.body.first().map_or(1, |statement| statement.line)
}

/// An error found while a block is compiled.
fn compiling(mut error: Error, line: usize, name: &str) -> Error {
    let place = format!("compilation of PL/pgSQL function \"{name}\" near line {line}");
    super::piece::add_context(&mut error, &place);
    error
}

/// The CALL that a text is.
fn call_in(text: &str) -> Option<CallStmt> {
    let statements = parser::parse(text).ok()?;
    match statements.first()?.node() {
        NodeEnum::CallStmt(call) => Some((**call).clone()),
        _ => None,
    }
}

fn check_condition(name: &str) -> Result<()> {
    if conditions::states(name).next().is_some() {
        return Ok(());
    }
    Err(Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("unrecognized exception condition \"{name}\""),
    ))
}
