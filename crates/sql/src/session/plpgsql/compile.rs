//! Blocks into code: variables get places, fragments become pieces.

use std::cell::RefCell;
use std::rc::Rc;

use base::{Error, Result, SqlState};

use super::super::Session;
use super::piece::{Names, Piece, PieceKind, Slot};
use planner::bind::{self, BindContext};
use syntax::parser::{self, char_position, NodeEnum};
use syntax::plpgsql::ast::{
    Block, Condition, Fragment, Loop, LoopHead, Message, Raise, Statement, StatementKind,
};
use syntax::plpgsql::conditions;
use types::{Datum, TypeId};

/// A compiled block.
pub struct Code {
    pub body: BlockCode,
    pub slots: Vec<Slot>,
    /// The place of FOUND.
    pub found: usize,
}

/// One block.
pub struct BlockCode {
    pub label: Option<String>,
    /// Variables: place, first value, line.
    pub declarations: Vec<(usize, Option<Piece>, usize)>,
    pub body: Vec<Step>,
    pub handlers: Vec<HandlerCode>,
    /// The places of SQLSTATE and SQLERRM inside its handlers.
    pub error_slots: (usize, usize),
}

/// What catches errors.
pub struct HandlerCode {
    pub conditions: Vec<Condition>,
    pub body: Vec<Step>,
}

/// A statement and its line.
pub struct Step {
    pub line: usize,
    pub kind: StepKind,
}

/// What INTO fills.
pub struct IntoCode {
    pub strict: bool,
    pub targets: Vec<usize>,
}

/// Where the rows of a loop come from.
pub enum RowsFrom {
    Query(Piece),
    /// A text, with its parameters.
    Dynamic(Piece, Vec<Piece>),
    /// An array.
    Elements(Piece),
}

/// What a statement does.
pub enum StepKind {
    Block(BlockCode),
    Assign(usize, Option<String>, Piece),
    If(Vec<(Piece, Vec<Step>)>, Vec<Step>),
    Case(Vec<(Piece, Vec<Step>)>, Option<Vec<Step>>),
    /// The operand's place and value, then the branches.
    SimpleCase(usize, Piece, Vec<(Piece, Vec<Step>)>, Option<Vec<Step>>),
    Forever(Option<String>, Vec<Step>),
    While(Option<String>, Piece, Vec<Step>),
    Integers {
        label: Option<String>,
        slot: usize,
        reverse: bool,
        first: Piece,
        last: Piece,
        step: Option<Piece>,
        body: Vec<Step>,
    },
    ForEach {
        label: Option<String>,
        targets: Vec<usize>,
        source: RowsFrom,
        body: Vec<Step>,
    },
    Leave {
        next: bool,
        label: Option<String>,
        when: Option<Piece>,
    },
    Return,
    Raise(Raise, Vec<Piece>, Vec<(String, Piece)>),
    Assert(Piece, Option<Piece>),
    Perform(Piece),
    Sql(Piece, Option<IntoCode>),
    Execute(Piece, Option<IntoCode>, Vec<Piece>),
    Diagnostics(bool, Vec<(usize, String)>),
    Null,
    EndTransaction(bool, bool),
}

struct Compiler<'a> {
    text: &'a str,
    cx: BindContext<'a>,
    slots: Vec<Slot>,
    found: usize,
    /// The labels of the loops and blocks around, the innermost last; whether each is a loop.
    around: Vec<(bool, Option<String>)>,
}

impl Session {
    /// Compiles a block. Positions in errors are those in the block's text.
    pub(super) fn compile_block(&mut self, text: &str, block: &Block) -> Result<Code> {
        let catalog = self.current_catalog()?;
        let search_path = self.search_path(&catalog);
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
            around: Vec::new(),
        };
        let found = compiler.slot("found", TypeId::BOOL, -1);
        compiler.found = found;
        compiler.slots[found].value = Datum::Bool(false);
        let names = Rc::new(Names {
            variables: vec![("found".to_owned(), found)],
            ..Names::default()
        });
        let body = compiler.block(block, &names)?;
        Ok(Code {
            body,
            slots: compiler.slots,
            found,
        })
    }
}

impl Compiler<'_> {
    fn slot(&mut self, name: &str, ty: TypeId, typmod: i32) -> usize {
        self.slots.push(Slot {
            name: name.to_owned(),
            ty,
            typmod,
            not_null: false,
            constant: false,
            is_record: ty == TypeId::RECORD,
            value: Datum::Null,
            shape: None,
        });
        self.slots.len() - 1
    }

    fn at(&self, error: Error, start: usize) -> Error {
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
                PieceKind::Statement => text.clone(),
                _ => trimmed.to_owned(),
            },
            text,
            shift,
            names: names.clone(),
            planned: RefCell::new(None),
        }
    }

    fn expr(&self, fragment: &Fragment, names: &Rc<Names>) -> Piece {
        self.piece(PieceKind::Expression, fragment, names)
    }

    /// Refuses what SQL's grammar refuses, before anything runs.
    fn statement(&self, fragment: &Fragment, names: &Rc<Names>) -> Result<Piece> {
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

    fn checked(&self, fragment: &Fragment, names: &Rc<Names>) -> Result<Piece> {
        let piece = self.expr(fragment, names);
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
    fn type_of(&self, fragment: &Fragment) -> Result<(TypeId, i32)> {
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
                    Some((table.columns[place].type_id, table.columns[place].typmod))
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
            variables: Vec::new(),
        };
        let mut declarations = Vec::new();
        for declaration in &block.declarations {
            let (ty, typmod) = self.type_of(&declaration.type_name)?;
            // A default sees the variables before its own.
            let so_far = Rc::new(Names {
                parent: Some(outer.clone()),
                label: block.label.clone(),
                variables: names.variables.clone(),
            });
            let default = match &declaration.default {
                Some(fragment) => Some(self.checked(fragment, &so_far)?),
                None => None,
            };
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
            self.slots[slot].not_null = declaration.not_null;
            self.slots[slot].constant = declaration.constant;
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
            label: None,
            variables: vec![
                ("sqlstate".to_owned(), state),
                ("sqlerrm".to_owned(), message),
            ],
        });
        let mut handlers = Vec::new();
        for handler in &block.handlers {
            for condition in &handler.conditions {
                if let Condition::Named(name) = condition {
                    check_condition(name).map_err(|error| compiling(error, near(handler)))?;
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

    fn steps(&mut self, statements: &[Statement], names: &Rc<Names>) -> Result<Vec<Step>> {
        base::coro::check_depth()?;
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

    fn pieces(&self, fragments: &[Fragment], names: &Rc<Names>) -> Result<Vec<Piece>> {
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
            StatementKind::Return(None) => StepKind::Return,
            StatementKind::Return(Some(value)) => {
                let error = Error::new(
                    SqlState::DATATYPE_MISMATCH,
                    "RETURN cannot have a parameter in function returning void",
                );
                let lead = value.text.len() - value.text.trim_start().len();
                return Err(self.at(error, value.start + lead));
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
            StatementKind::Null => StepKind::Null,
            StatementKind::EndTransaction { commit, chain } => {
                StepKind::EndTransaction(*commit, *chain)
            }
        })
    }

    /// The variable that a target names.
    fn target(&self, target: &Fragment, names: &Rc<Names>) -> Result<usize> {
        let (slot, field) = self.target_field(target, names)?;
        match field {
            None => Ok(slot),
            Some(_) => Err(Error::unsupported("INTO a field of a record")),
        }
    }

    fn target_field(
        &self,
        target: &Fragment,
        names: &Rc<Names>,
    ) -> Result<(usize, Option<String>)> {
        let written = target.text.trim();
        let parts: Vec<_> = written
            .split('.')
            .map(|part| syntax::plpgsql::parse::fold(part.trim()))
            .collect();
        let found = match parts.as_slice() {
            [name] => names.find(name).map(|slot| (slot, None)),
            [first, second] => names
                .find_in(first, second)
                .map(|slot| (slot, None))
                .or_else(|| {
                    let slot = names
                        .find(first)
                        .filter(|slot| self.slots[*slot].is_record)?;
                    Some((slot, Some(second.clone())))
                }),
            _ => None,
        };
        if written.contains('[') {
            return Err(Error::unsupported("assigning an element of an array"));
        }
        let Some((slot, field)) = found else {
            let error = Error::new(
                SqlState::SYNTAX_ERROR,
                format!("\"{written}\" is not a known variable"),
            );
            return Err(self.at(error, target.start));
        };
        if self.slots[slot].constant {
            let error = Error::new(
                SqlState::of("22005"),
                format!(
                    "variable \"{}\" is declared CONSTANT",
                    self.slots[slot].name
                ),
            );
            return Err(self.at(error, target.start));
        }
        Ok((slot, field))
    }

    fn assign(
        &mut self,
        target: &Fragment,
        value: &Fragment,
        names: &Rc<Names>,
    ) -> Result<StepKind> {
        let (slot, field) = self.target_field(target, names)?;
        let mut piece = self.checked(value, names)?;
        piece.kind = PieceKind::Assignment;
        let end = value.start + value.text.trim_end().len();
        if let Some(whole) = self.text.get(target.start..end) {
            let lead = value.text.len() - value.text.trim_start().len();
            let before = self
                .text
                .get(target.start..value.start + lead)
                .unwrap_or("");
            piece.shift -= before.chars().count() as i64;
            piece.shown = whole.to_owned();
        }
        Ok(StepKind::Assign(slot, field, piece))
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
            label: None,
            variables: vec![(NAME.to_owned(), slot)],
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
            LoopHead::Elements { targets, array } => {
                let source = RowsFrom::Elements(self.checked(array, names)?);
                self.for_each(inner, targets, source, names)?
            }
            LoopHead::Query { targets, query } => {
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

    fn targets(&self, targets: &[Fragment], names: &Rc<Names>) -> Result<Vec<usize>> {
        targets
            .iter()
            .map(|target| self.target(target, names))
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
                    return Err(compiling(Error::new(SqlState::SYNTAX_ERROR, message), line));
                }
                self.pieces(arguments, names)?
            }
            _ => Vec::new(),
        };
        if let Message::Condition(Condition::Named(name)) = &raise.message {
            check_condition(name).map_err(|error| compiling(error, line))?;
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
fn compiling(mut error: Error, line: usize) -> Error {
    let place = format!("compilation of PL/pgSQL function \"inline_code_block\" near line {line}");
    super::piece::add_context(&mut error, &place);
    error
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
