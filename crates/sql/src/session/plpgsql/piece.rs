//! Pieces of SQL inside a block: expressions, assignments, statements.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};

use super::super::plan::Way;
use super::super::{Column, Session};
use catalog::sql_body::SqlBody;
use catalog::Table;
use execution::exec::program::Evaluate;
use execution::exec::Exec;
use execution::kept::RowStore;
use execution::state::prepared::Planned;
use execution::system::Relations;
use pg_query::protobuf::Node;
use planner::bind::{Conflict, Variables};
use planner::plan::Program;
use planner::plan::{Collated, Plan};
use syntax::parser::{self, Statement};
use types::{Datum, EvalContext, Record, TypeId};

/// What a piece is; errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// An expression.
    Expression,
    /// The value of an assignment.
    Assignment,
    /// A statement.
    Statement,
    /// The query of a cursor.
    Query,
    /// A statement of a function in SQL.
    Function,
}

/// A piece of SQL and, once it was needed, its plan.
#[derive(Debug)]
pub struct Piece {
    pub kind: PieceKind,
    /// What is parsed.
    pub text: String,
    /// What errors show; the parsed text lies in it.
    pub shown: Rc<str>,
    /// By how many characters a position in `text` is more than one in `shown`.
    pub shift: i64,
    pub names: Rc<Names>,
    /// Of a statement of a function in SQL: whether it may be computed like an expression.
    pub simple: bool,
    /// Of an assignment to a part of a variable: the variable, and what leads to the part.
    pub part: Option<Vec<Node>>,
    pub planned: RefCell<Option<Rc<Compiled>>>,
}

/// A planned piece.
#[derive(Debug)]
pub struct Compiled {
    pub statement: Statement,
    pub planned: Rc<Planned>,
    /// The variables it looks at.
    params: Vec<Source>,
    /// The shapes of the records among them.
    shapes: Vec<(usize, Option<Rc<Shape>>)>,
    /// Whether the whole piece is one expression that looks at no table.
    pub simple: bool,
}

/// Where a parameter's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Slot(usize),
    Field(usize, usize),
}

/// The columns of a record.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub columns: Vec<(String, TypeId)>,
    /// Their modifiers; where there are none, they have none.
    pub typmods: Vec<i32>,
    /// The oids of their collations; where there are none, those of their types.
    pub collations: Vec<u32>,
    /// Their names, as values have them, if they are a type's.
    pub names: Option<Arc<[String]>>,
    /// That type, or none if 0.
    pub ty: TypeId,
}

impl Shape {
    /// The collation of a column.
    pub fn collation(&self, place: usize) -> Collated {
        Collated::implicit(self.collations.get(place).copied().unwrap_or(0))
    }

    /// The modifier of a column.
    pub fn typmod(&self, place: usize) -> i32 {
        self.typmods.get(place).copied().unwrap_or(types::NO_TYPMOD)
    }
}

/// The names that can be seen from a place.
#[derive(Debug, Default)]
pub struct Names {
    pub parent: Option<Rc<Names>>,
    pub label: Option<String>,
    pub variables: Vec<(String, usize)>,
    /// What a name means that is a column's too; said where all names begin.
    pub conflict: Conflict,
    /// What names the rows of a trigger's statement, likewise: that, the table, whether it is the new
    /// rows.
    pub rows: Vec<(String, Arc<Table>, bool)>,
    /// The body in standard SQL whose statements they are for, as the catalog keeps it.
    pub sql_body: Option<Arc<SqlBody>>,
}

impl Names {
    fn levels(&self) -> impl Iterator<Item = &Names> {
        std::iter::successors(Some(self), |names| names.parent.as_deref())
    }

    fn own(&self, name: &str) -> Option<usize> {
        let found = self
            .variables
            .iter()
            .rev()
            .find(|variable| variable.0 == name);
        found.map(|variable| variable.1)
    }

    /// The variable of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.levels().find_map(|names| names.own(name))
    }

    /// The variable of that name in the block of that label.
    pub fn find_in(&self, label: &str, name: &str) -> Option<usize> {
        let block = self
            .levels()
            .find(|names| names.label.as_deref() == Some(label))?;
        block.own(name)
    }
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Slot {
    pub name: Rc<str>,
    pub ty: TypeId,
    pub typmod: i32,
    /// Its collation, if it is a text.
    pub collation: Collated,
    pub not_null: bool,
    pub constant: bool,
    /// Whether it is a record, whose shape comes with its value.
    pub is_record: bool,
    pub value: Datum,
    pub shape: Option<Rc<Shape>>,
    /// The columns that a row of a table always has.
    pub fixed: Option<Rc<Shape>>,
}

/// The variables as the binder sees them.
pub(in crate::session) struct View<'v> {
    names: &'v Names,
    slots: &'v [Slot],
    used: RefCell<Vec<Source>>,
}

impl View<'_> {
    fn take(&self, source: Source, ty: TypeId, typmod: i32) -> (usize, TypeId, i32) {
        let mut used = self.used.borrow_mut();
        let place = used.iter().position(|known| *known == source);
        let place = place.unwrap_or_else(|| {
            used.push(source);
            used.len() - 1
        });
        (place, ty, typmod)
    }

    fn field(&self, slot: usize, field: &str) -> Result<Option<(usize, TypeId, i32)>> {
        let record = &self.slots[slot];
        if !record.is_record {
            return Ok(None);
        }
        let Some(shape) = &record.shape else {
            return Err(unassigned(&record.name));
        };
        let place = shape.columns.iter().position(|column| column.0 == field);
        match place {
            Some(place) => {
                let (ty, typmod) = (shape.columns[place].1, shape.typmod(place));
                Ok(Some(self.take(Source::Field(slot, place), ty, typmod)))
            }
            None => Err(Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("record \"{}\" has no field \"{field}\"", record.name),
            )),
        }
    }
}

/// 55000 for a record without a value.
pub fn unassigned(name: &str) -> Error {
    Error::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("record \"{name}\" is not assigned yet"),
    )
    .with_detail("The tuple structure of a not-yet-assigned record is indeterminate.")
}

impl View<'_> {
    pub fn of<'v>(names: &'v Names, slots: &'v [Slot]) -> View<'v> {
        View {
            names,
            slots,
            used: RefCell::new(Vec::new()),
        }
    }
}

impl View<'_> {
    /// What was named.
    pub fn into_sources(self) -> Vec<Source> {
        self.used.into_inner()
    }
}

impl Slot {
    /// A variable without a value.
    pub fn of(name: &str, ty: TypeId) -> Slot {
        Slot {
            name: name.into(),
            ty,
            typmod: types::NO_TYPMOD,
            collation: Collated::default(),
            not_null: false,
            constant: false,
            is_record: ty == TypeId::RECORD,
            value: Datum::Null,
            shape: None,
            fixed: None,
        }
    }
}

impl Variables for View<'_> {
    fn collation(&self, place: usize) -> Collated {
        match self.used.borrow().get(place) {
            Some(Source::Slot(slot)) => self.slots[*slot].collation,
            Some(Source::Field(slot, place)) => {
                let shape = self.slots[*slot].shape.as_ref();
                shape.map_or_else(Collated::default, |shape| shape.collation(*place))
            }
            None => Collated::default(),
        }
    }

    fn conflict(&self) -> Conflict {
        let root = self.names.levels().last();
        root.map_or(Conflict::Error, |names| names.conflict)
    }

    fn label(&self) -> Option<&str> {
        self.names.label.as_deref()
    }

    fn sql_body(&self) -> Option<&SqlBody> {
        self.names.levels().last()?.sql_body.as_deref()
    }

    fn fields(&self, record: &str) -> Option<Vec<String>> {
        let record = &self.slots[self.names.find(record)?];
        let shape = record.shape.as_ref().filter(|_| record.is_record)?;
        Some(
            shape
                .columns
                .iter()
                .map(|column| column.0.clone())
                .collect(),
        )
    }

    fn rows_named(&self, name: &str) -> Option<(Arc<Table>, bool)> {
        let root = self.names.levels().last()?;
        let known = root.rows.iter().find(|known| known.0 == name);
        known.map(|(_, table, is_new)| (table.clone(), *is_new))
    }

    fn find(&self, names: &[&str]) -> Result<Option<(usize, TypeId, i32)>> {
        let whole = |slot: usize| {
            let variable = &self.slots[slot];
            let of_rows = variable
                .shape
                .as_ref()
                .map_or(TypeId::NONE, |shape| shape.ty);
            let ty = match variable.ty {
                TypeId::RECORD if of_rows != TypeId::NONE => of_rows,
                ty => ty,
            };
            self.take(Source::Slot(slot), ty, variable.typmod)
        };
        match names {
            [name] => Ok(self.names.find(name).map(whole)),
            [first, second] => {
                if let Some(slot) = self.names.find_in(first, second) {
                    return Ok(Some(whole(slot)));
                }
                match self.names.find(first) {
                    Some(slot) => self.field(slot, second),
                    None => Ok(None),
                }
            }
            [label, record, field] => match self.names.find_in(label, record) {
                Some(slot) => self.field(slot, field),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

impl Piece {
    /// An error of its planning or of its running, with the place in the block's text.
    pub fn explain(&self, mut error: Error) -> Error {
        let fields = error.fields_mut();
        if fields.internal_query.is_some() {
            return error;
        }
        if self.names.sql_body.is_some() {
            // Nobody has seen that text.
            fields.position = None;
            return error;
        }
        if let Some(position) = fields.position.take() {
            fields.internal_query = Some(self.shown.to_string());
            let shifted = i64::from(position) - self.shift;
            fields.internal_position = u32::try_from(shifted).ok().filter(|at| *at > 0);
            return error;
        }
        let what = match self.kind {
            PieceKind::Expression => "SQL expression",
            PieceKind::Assignment => "PL/pgSQL assignment",
            PieceKind::Statement | PieceKind::Query => "SQL statement",
            // Its function says where it is.
            PieceKind::Function => return error,
        };
        add_context(&mut error, &format!("{what} \"{}\"", self.shown));
        error
    }
}

/// Adds a line to the CONTEXT of an error.
pub fn add_context(error: &mut Error, line: &str) {
    let context = &mut error.fields_mut().context;
    match context {
        Some(context) => {
            context.push('\n');
            context.push_str(line);
        }
        None => *context = Some(line.to_owned()),
    }
}

impl Session {
    /// The plan of a piece as catalog and records are now.
    pub(in crate::session) fn compiled(
        &mut self,
        piece: &Piece,
        slots: &[Slot],
    ) -> Result<Rc<Compiled>> {
        if let Some(compiled) = &*piece.planned.borrow() {
            let shaped = compiled
                .shapes
                .iter()
                .all(|(slot, shape)| slots[*slot].shape == *shape);
            if shaped && (compiled.planned.bound.is_none() || self.holds(&compiled.planned)) {
                return Ok(compiled.clone());
            }
        }
        let compiled = Rc::new(
            self.compile_piece(piece, slots)
                .map_err(|e| piece.explain(e))?,
        );
        *piece.planned.borrow_mut() = Some(compiled.clone());
        Ok(compiled)
    }

    fn compile_piece(&mut self, piece: &Piece, slots: &[Slot]) -> Result<Compiled> {
        let (strings, env) = (parser::Strings::Conforming, &self.shared.env);
        let mut statements = parser::parse_beside(&piece.text, strings, env)?;
        let statement = match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => statement,
            _ => {
                return Err(Error::new(
                    SqlState::SYNTAX_ERROR,
                    "syntax error at end of input",
                ))
            }
        };
        let mut statement = statement;
        if let Some(part) = &piece.part {
            statement.assign_part(part)?;
        }
        let view = View::of(&piece.names, slots);
        let way = Way {
            for_cursor: piece.kind == PieceKind::Query,
            ..Way::default()
        };
        let (planned, ..) = self.plan_watched(&statement, &[], false, Some(&view), way)?;
        let params = view.used.into_inner();
        let shapes = params
            .iter()
            .filter_map(|source| match source {
                Source::Field(slot, _) => Some((*slot, slots[*slot].shape.clone())),
                Source::Slot(slot) if slots[*slot].is_record => {
                    Some((*slot, slots[*slot].shape.clone()))
                }
                Source::Slot(_) => None,
            })
            .collect();
        let is_statement = matches!(piece.kind, PieceKind::Statement | PieceKind::Query);
        let simple = !is_statement && is_simple(&planned);
        let simple = simple && (piece.kind != PieceKind::Function || piece.simple);
        Ok(Compiled {
            statement,
            planned: Rc::new(planned),
            params,
            shapes,
            simple,
        })
    }

    /// The value of a piece that is an expression, with its type.
    pub(in crate::session) fn value_of(
        &mut self,
        piece: &Piece,
        slots: &[Slot],
    ) -> Result<(Datum, TypeId)> {
        let compiled = self.compiled(piece, slots)?;
        let params = compiled.values(slots);
        if compiled.simple {
            let is_own_query = piece.kind != PieceKind::Function;
            let value = self.simple_value(&compiled, &params, is_own_query);
            // What has no variable in it fails when it is planned, to PostgreSQL.
            let bound = compiled.planned.bound.as_ref();
            let program = bound.and_then(|bound| lone_program(bound.plan.plan()));
            let is_late = program.is_some_and(Program::calls_late);
            let value = match params.is_empty() && !is_late {
                true => value.map_err(|error| piece.explain(error)),
                false => value,
            };
            return Ok((value?, compiled.planned.types[0]));
        }
        let mut rows = RowStore::of("The rows of a statement");
        self.run_piece(piece, slots, &mut rows, 2)
            .map_err(|error| piece.explain(error))?;
        let mut rows = rows.into_iter();
        let (first, second) = (rows.next(), rows.next());
        if second.is_some() {
            let mut error = Error::new(
                SqlState::CARDINALITY_VIOLATION,
                "query returned more than one row",
            );
            add_context(&mut error, &format!("query: {}", piece.shown));
            return Err(error);
        }
        let types = &compiled.planned.types;
        if types.len() != 1 {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                format!("query returned {} columns", types.len()),
            ));
        }
        let value = first
            .and_then(|row| row.into_iter().next())
            .unwrap_or(Datum::Null);
        Ok((value, types[0]))
    }

    /// The value of a lone expression; a function in SQL computes one as if it stood in the statement
    /// around it.
    fn simple_value(
        &mut self,
        compiled: &Compiled,
        params: &[Datum],
        is_own_query: bool,
    ) -> Result<Datum> {
        let permitted = self.permitted(&compiled.planned)?;
        let Some(program) = lone_program(permitted.plan()) else {
            return Err(Error::internal("an expression without a program"));
        };
        self.ensure_open()?;
        // What it calls may look at what has been written since the statement around began.
        if is_own_query && program.may_look_at_rows() {
            self.begin_statement()?;
        }
        let eval = self.eval.clone();
        let mut cx = Exec::new(&Relations, self, permitted.permit(), &eval, params);
        program.eval(&mut cx, &[])
    }

    /// Runs a piece that has rows; at most `most` are kept. Returns how many it gave or wrote.
    pub(in crate::session) fn run_piece(
        &mut self,
        piece: &Piece,
        slots: &[Slot],
        rows: &mut RowStore,
        most: usize,
    ) -> Result<(u64, Rc<Planned>)> {
        let (planned, params) = self.settled(piece, slots)?;
        let begun = self.begin_counted(&planned)?;
        let mut output = super::super::run::Output::Rows(rows, most);
        let count = match piece.kind {
            PieceKind::Function => self.run_plan(&planned, &params, &mut output)?,
            _ => self.running_text(&piece.shown, |session| {
                session.run_plan(&planned, &params, &mut output)
            })?,
        };
        self.end_counted(begun, count);
        Ok((count, planned))
    }

    /// The plan of a piece whose locks are taken, and the values of its parameters.
    pub(super) fn settled(
        &mut self,
        piece: &Piece,
        slots: &[Slot],
    ) -> Result<(Rc<Planned>, Vec<Datum>)> {
        let mut latest = self.compiled(piece, slots)?;
        let planned = self.settle_plan(latest.planned.clone(), |session| {
            latest = session.compiled(piece, slots)?;
            Ok(latest.planned.clone())
        })?;
        if let Some(bound) = &planned.bound {
            self.check_bound(bound, latest.statement.node())?;
        }
        Ok((planned, latest.values(slots)))
    }
}

impl Compiled {
    /// Whether it looks at no variable.
    pub fn is_constant(&self) -> bool {
        self.params.is_empty()
    }

    /// The values of its parameters.
    pub fn values(&self, slots: &[Slot]) -> Vec<Datum> {
        values_of(&self.params, slots)
    }

    /// Its parameters as [`shown_params`] wants them.
    pub fn named<'s>(
        &'s self,
        slots: &'s [Slot],
    ) -> impl Iterator<Item = (String, &'s Datum, TypeId)> {
        self.params.iter().map(|source| match source {
            Source::Slot(slot) => {
                let slot = &slots[*slot];
                (slot.name.to_string(), &slot.value, slot.ty)
            }
            Source::Field(slot, field) => {
                let slot = &slots[*slot];
                let column = slot.shape.as_ref().and_then(|it| it.columns.get(*field));
                let (name, ty) = column.cloned().unwrap_or_default();
                match &slot.value {
                    Datum::Record(record) => (name, &record.values[*field], ty),
                    _ => (name, &Datum::Null, ty),
                }
            }
        })
    }
}

/// What errors of INTO STRICT say of the parameters of a statement, if it has any.
pub fn shown_params<'p>(
    context: &EvalContext,
    params: impl Iterator<Item = (String, &'p Datum, TypeId)>,
) -> Result<Option<String>> {
    let mut shown = Vec::new();
    for (name, value, ty) in params {
        let value = match value {
            Datum::Null => "NULL".to_owned(),
            value => {
                let text = types::output(context, ty, value)?;
                format!("'{}'", text.replace('\'', "''"))
            }
        };
        shown.push(format!("{name} = {value}"));
    }
    Ok(match shown.is_empty() {
        true => None,
        false => Some(format!("parameters: {}", shown.join(", "))),
    })
}

/// The values of what was named.
pub fn values_of(sources: &[Source], slots: &[Slot]) -> Vec<Datum> {
    let value = |source: &Source| match source {
        Source::Slot(slot) => slots[*slot].value.clone(),
        Source::Field(slot, field) => match &slots[*slot].value {
            Datum::Record(record) => record.values[*field].clone(),
            _ => Datum::Null,
        },
    };
    sources.iter().map(value).collect()
}

/// Whether it is one expression that looks at no table.
fn is_simple(planned: &Planned) -> bool {
    let bound = planned.bound.as_ref();
    bound.is_some_and(|bound| {
        bound.locks.is_empty() && !bound.writes && lone_program(bound.plan.plan()).is_some()
    })
}

/// The only expression of a query without a table.
fn lone_program(plan: &Plan) -> Option<&Program> {
    match plan {
        Plan::Project(input, columns) => match (&**input, columns.as_slice()) {
            (Plan::Values(rows), [only]) if rows.len() == 1 && rows[0].is_empty() => Some(only),
            _ => None,
        },
        _ => None,
    }
}

/// A row as the value of a record.
pub fn record_of(columns: &[Column], types: &[TypeId], row: Vec<Datum>) -> (Datum, Rc<Shape>) {
    let names = columns.iter().map(|column| column.name.clone());
    let columns = names.zip(types.iter().copied()).collect();
    let record = Record {
        types: types.to_vec(),
        values: row,
        names: None,
    };
    (
        Datum::Record(std::sync::Arc::new(record)),
        Rc::new(Shape {
            columns,
            ..Shape::default()
        }),
    )
}
