//! Functions and procedures that users have made, as the catalog keeps them.
//!
//! ```text
//! create function add(a int, b int default 1) returns int language sql as 'select a + b'
//! a row of ROUTINES: add, [(a, int4, in), (b, int4, in, "1")], int4, sql, "select a + b"
//! ```
//! Overloads differ in the types of their inputs ([`Routine::inputs`]).
//!
//! # What it leaves out
//! What a body names is looked up when it runs, as PostgreSQL does for bodies that are strings; a body
//! in standard SQL (`BEGIN ATOMIC`) has the names' oids ([`super::sql_body`]), and [`Routine::uses`]
//! says what it needs.

use std::sync::{Arc, OnceLock};

use base::codec::{put_bytes, put_varint, Reader};
use base::hash::HashMap;
use base::row::{Row, RowBuilder};
use base::{Error, Result};

use super::descriptor::{put_text, read_text};
use super::lists::read_list;
use super::sql_body::{self, SqlBody};
use super::view::{put_uses, read_uses, Uses};
use super::Catalog;
use types::TypeId;

/// What a routine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutineKind {
    /// Called in expressions.
    #[default]
    Function,
    /// Called by CALL.
    Procedure,
    /// Called over many rows ([`Routine::aggregate`]).
    Aggregate,
}

impl RoutineKind {
    /// What PostgreSQL's messages call it.
    pub fn noun(self) -> &'static str {
        match self {
            RoutineKind::Function => "function",
            RoutineKind::Procedure => "procedure",
            RoutineKind::Aggregate => "aggregate",
        }
    }
}

/// What its body is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// SQL statements.
    #[default]
    Sql,
    /// A block of PL/pgSQL.
    PlPgSql,
    /// A function of an extension: its symbol ([`super::extension`]).
    C,
    /// What makes ranges of one's own: its symbol ([`functions::ranges::constructor`]).
    Internal,
}

impl Language {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Language::Sql => "sql",
            Language::PlPgSql => "plpgsql",
            Language::C => "c",
            Language::Internal => "internal",
        }
    }
}

/// How an argument is passed; the numbers are `proargmodes`' letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Given by the caller.
    #[default]
    In,
    /// Given back.
    Out,
    /// Both.
    InOut,
    /// The rest of what is given, as an array.
    Variadic,
    /// A column of the rows that are given back.
    Table,
}

impl Mode {
    const ALL: [Mode; 5] = [
        Mode::In,
        Mode::Out,
        Mode::InOut,
        Mode::Variadic,
        Mode::Table,
    ];

    /// The letter by which `pg_proc` shows it.
    pub fn letter(self) -> u8 {
        match self {
            Mode::In => b'i',
            Mode::Out => b'o',
            Mode::InOut => b'b',
            Mode::Variadic => b'v',
            Mode::Table => b't',
        }
    }

    /// Whether the caller gives it.
    pub fn is_input(self) -> bool {
        matches!(self, Mode::In | Mode::InOut | Mode::Variadic)
    }

    /// Whether it is given back.
    pub fn is_output(self) -> bool {
        matches!(self, Mode::Out | Mode::InOut | Mode::Table)
    }
}

/// An argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Argument {
    /// Its name, or nothing.
    pub name: String,
    /// Its type.
    pub type_id: TypeId,
    /// How it is passed.
    pub mode: Mode,
    /// What it is if it is not given, as SQL.
    pub default: Option<String>,
}

/// What an aggregate is made of. Functions are named by oid, also built-in ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AggregateParts {
    /// What makes a new state of the state and a row's arguments.
    pub transition: u32,
    /// The type of the state.
    pub state: TypeId,
    /// The state before the first row, as text; NULL if there is none.
    pub initial: Option<String>,
    /// What makes the result of the state, or 0: it is the result.
    pub last: u32,
    /// Whether that is given NULLs in the places of the arguments.
    pub last_extra: bool,
    /// What that does to the state, `aggfinalmodify`: nothing (`r`), or something (`s`, `w`).
    pub last_modifies: u8,
    /// What makes one state of two, or 0. Nothing calls it: rows are never divided.
    pub combine: u32,
    /// How large a state is, in bytes; 0 for what is usual.
    pub space: u32,
}

/// A function or a procedure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routine {
    /// Its oid.
    pub oid: u32,
    /// The schema's oid.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: u32,
    /// What it is.
    pub kind: RoutineKind,
    /// What its body is written in.
    pub language: Language,
    /// Its arguments, outputs included.
    pub arguments: Vec<Argument>,
    /// The type of its result; of several outputs `record`.
    pub result: TypeId,
    /// The relation whose rows it gives, or 0.
    pub result_relation: u32,
    /// Whether it gives any number of results.
    pub set: bool,
    /// `provolatile`: `i`, `s` or `v`.
    pub volatility: u8,
    /// Whether a NULL argument makes the result NULL.
    pub strict: bool,
    /// Whether it runs with the rights of its owner.
    pub security_definer: bool,
    /// LEAKPROOF.
    pub leakproof: bool,
    /// `proparallel`.
    pub parallel: u8,
    /// `procost`, or 0 for what is usual.
    pub cost: f32,
    /// `prorows`, or 0 for what is usual.
    pub rows: f32,
    /// Its SET clauses.
    pub settings: Vec<(String, String)>,
    /// Its body, if that is a string.
    pub body: String,
    /// Its body, if that stands in the statement itself, so that its names are fixed.
    pub sql_body: Option<Arc<SqlBody>>,
    /// What such a body needs.
    pub uses: Vec<Uses>,
    /// Of an aggregate what it is made of; it has no body.
    pub aggregate: Option<Box<AggregateParts>>,
}

impl Routine {
    /// The arguments that a caller gives.
    pub fn inputs(&self) -> impl Iterator<Item = &Argument> + Clone {
        self.arguments
            .iter()
            .filter(|argument| argument.mode.is_input())
    }

    /// The types of what a caller gives.
    pub fn input_types(&self) -> Vec<TypeId> {
        self.inputs().map(|argument| argument.type_id).collect()
    }

    /// What it gives back, column by column, if that are named outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &Argument> + Clone {
        self.arguments
            .iter()
            .filter(|argument| argument.mode.is_output())
    }

    /// The name of its only output, if it has one with a name and no other.
    pub fn only_output(&self) -> Option<&str> {
        let mut outputs = self.outputs();
        match (outputs.next(), outputs.next()) {
            (Some(only), None) if !only.name.is_empty() => Some(&only.name),
            _ => None,
        }
    }

    /// Whether its last input takes any number of values.
    pub fn is_variadic(&self) -> bool {
        self.inputs()
            .any(|argument| argument.mode == Mode::Variadic)
    }

    /// What identifies it among overloads: of a procedure the outputs count too.
    pub fn identity(&self) -> Vec<TypeId> {
        let counts = |argument: &&Argument| match self.kind {
            RoutineKind::Function | RoutineKind::Aggregate => argument.mode.is_input(),
            RoutineKind::Procedure => argument.mode != Mode::Table,
        };
        let counted = self.arguments.iter().filter(counts);
        counted.map(|argument| argument.type_id).collect()
    }

    /// `add(integer,integer)`, as messages and CONTEXT show it.
    pub fn signature(&self) -> String {
        let types: Vec<_> = self.input_types().iter().map(TypeId::to_string).collect();
        format!("{}({})", self.name, types.join(","))
    }
}

/// The functions and procedures of a database.
#[derive(Clone, Debug, Default)]
pub struct Routines {
    /// By oid.
    all: Arc<Vec<Arc<Routine>>>,
    /// By name, their places.
    by_name: Arc<HashMap<String, Vec<usize>>>,
}

impl Routines {
    pub(super) fn new(mut made: Vec<Routine>) -> Routines {
        made.sort_by_key(|routine| routine.oid);
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::default();
        for (place, routine) in made.iter().enumerate() {
            by_name.entry(routine.name.clone()).or_default().push(place);
        }
        Routines {
            all: Arc::new(made.into_iter().map(Arc::new).collect()),
            by_name: Arc::new(by_name),
        }
    }
}

impl std::ops::Deref for Routines {
    type Target = [Arc<Routine>];

    fn deref(&self) -> &[Arc<Routine>] {
        &self.all
    }
}

impl Catalog {
    /// The routines of that name in a schema.
    pub fn routines_named<'c>(
        &'c self,
        schema: u32,
        name: &str,
    ) -> impl Iterator<Item = &'c Arc<Routine>> {
        let places = self.routines.by_name.get(name).into_iter().flatten();
        let found = places.map(|place| &self.routines[*place]);
        found.filter(move |routine| routine.schema == schema)
    }

    /// Whether any schema has a routine of that name.
    pub fn knows_routine(&self, name: &str) -> bool {
        !self.routines.is_empty() && self.routines.by_name.contains_key(name)
    }

    /// The routine of that oid.
    pub fn routine(&self, oid: u32) -> Option<&Arc<Routine>> {
        let place = self.routines.binary_search_by_key(&oid, |known| known.oid);
        let own = place.ok().map(|place| &self.routines[place]);
        own.or_else(|| built_in_trigger(oid))
    }
}

/// The oid of `tsvector_update_trigger`.
pub const TSVECTOR_UPDATE: u32 = 3_752;
/// The oid of `tsvector_update_trigger_column`.
pub const TSVECTOR_UPDATE_COLUMN: u32 = 3_753;

const BUILT_IN_TRIGGERS: [(u32, &str); 2] = [
    (TSVECTOR_UPDATE, "tsvector_update_trigger"),
    (TSVECTOR_UPDATE_COLUMN, "tsvector_update_trigger_column"),
];

/// The functions for triggers that are there from the start; what each does follows from its trigger.
pub fn built_in_triggers() -> &'static [Arc<Routine>] {
    static BUILT: OnceLock<Vec<Arc<Routine>>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let all = BUILT_IN_TRIGGERS.iter().map(|(oid, name)| {
            Arc::new(Routine {
                oid: *oid,
                schema: crate::PG_CATALOG,
                name: (*name).to_owned(),
                owner: crate::SUPERUSER,
                language: Language::PlPgSql,
                result: TypeId::TRIGGER,
                volatility: b'v',
                parallel: b's',
                ..Routine::default()
            })
        });
        all.collect()
    })
}

/// One of them.
pub fn built_in_trigger(oid: u32) -> Option<&'static Arc<Routine>> {
    built_in_triggers().iter().find(|known| known.oid == oid)
}

/// The row of a routine.
pub(super) fn encode(routine: &Routine) -> Vec<u8> {
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, text: &str| put_bytes(out, text.as_bytes());
    for number in [routine.oid, routine.schema, routine.owner] {
        put_varint(&mut out, u64::from(number));
    }
    text(&mut out, &routine.name);
    out.push(match routine.kind {
        RoutineKind::Function => 0,
        RoutineKind::Procedure => 1,
        RoutineKind::Aggregate => 2,
    });
    out.push(match routine.language {
        Language::Sql => 0,
        Language::PlPgSql => 1,
        Language::C => 2,
        Language::Internal => 3,
    });
    put_varint(&mut out, routine.arguments.len() as u64);
    for argument in &routine.arguments {
        text(&mut out, &argument.name);
        put_varint(&mut out, u64::from(argument.type_id.0));
        out.push(argument.mode.letter());
        out.push(u8::from(argument.default.is_some()));
        text(&mut out, argument.default.as_deref().unwrap_or_default());
    }
    put_varint(&mut out, u64::from(routine.result.0));
    put_varint(&mut out, u64::from(routine.result_relation));
    for flag in [
        routine.set,
        routine.strict,
        routine.security_definer,
        routine.leakproof,
        routine.sql_body.is_some(),
    ] {
        out.push(u8::from(flag));
    }
    out.push(routine.volatility);
    out.push(routine.parallel);
    put_varint(&mut out, u64::from(routine.cost.to_bits()));
    put_varint(&mut out, u64::from(routine.rows.to_bits()));
    put_varint(&mut out, routine.settings.len() as u64);
    for (name, value) in &routine.settings {
        text(&mut out, name);
        text(&mut out, value);
    }
    text(&mut out, &routine.body);
    put_uses(&mut out, &routine.uses);
    if let Some(body) = &routine.sql_body {
        sql_body::encode(body, &mut out);
    }
    if let Some(parts) = &routine.aggregate {
        for number in [
            parts.transition,
            parts.state.0,
            parts.last,
            parts.combine,
            parts.space,
        ] {
            put_varint(&mut out, u64::from(number));
        }
        out.push(u8::from(parts.last_extra));
        out.push(parts.last_modifies);
        put_text(&mut out, parts.initial.as_deref());
    }
    RowBuilder::new(1).value(&out).finish()
}

/// The routine of a row.
///
/// # Errors
/// XX001 for a row that is none.
pub(super) fn decode(row: &[u8]) -> Result<Routine> {
    let row = Row::parse(row)?;
    let bytes = row.column(0);
    let bytes = bytes.ok_or_else(|| Error::corrupted("a routine without its row"))?;
    let mut reader = Reader::new(bytes);
    let reader = &mut reader;
    let (oid, schema, owner) = (
        reader.varint_as()?,
        reader.varint_as()?,
        reader.varint_as()?,
    );
    let name = reader.str()?.to_owned();
    let kind = match reader.u8()? {
        0 => RoutineKind::Function,
        1 => RoutineKind::Procedure,
        2 => RoutineKind::Aggregate,
        other => return Err(Error::corrupted(format!("a routine of kind {other}"))),
    };
    let language = match reader.u8()? {
        0 => Language::Sql,
        1 => Language::PlPgSql,
        2 => Language::C,
        3 => Language::Internal,
        other => return Err(Error::corrupted(format!("a routine in language {other}"))),
    };
    let arguments = read_list(reader, |reader| {
        let name = reader.str()?.to_owned();
        let type_id = TypeId(reader.varint_as()?);
        let letter = reader.u8()?;
        let mode = Mode::ALL.into_iter().find(|mode| mode.letter() == letter);
        let mode = mode.ok_or_else(|| Error::corrupted(format!("an argument of mode {letter}")))?;
        let has_default = reader.u8()? != 0;
        let default = reader.str()?.to_owned();
        Ok(Argument {
            name,
            type_id,
            mode,
            default: has_default.then_some(default),
        })
    })?;
    let result = TypeId(reader.varint_as()?);
    let result_relation = reader.varint_as()?;
    let mut flag = || Ok::<_, Error>(reader.u8()? != 0);
    let (set, strict, security_definer) = (flag()?, flag()?, flag()?);
    let (leakproof, has_sql_body) = (flag()?, flag()?);
    Ok(Routine {
        oid,
        schema,
        name,
        owner,
        kind,
        language,
        arguments,
        result,
        result_relation,
        set,
        strict,
        security_definer,
        leakproof,
        volatility: reader.u8()?,
        parallel: reader.u8()?,
        cost: f32::from_bits(reader.varint_as()?),
        rows: f32::from_bits(reader.varint_as()?),
        settings: read_list(reader, |reader| {
            Ok((reader.str()?.to_owned(), reader.str()?.to_owned()))
        })?,
        body: reader.str()?.to_owned(),
        uses: read_uses(reader)?,
        sql_body: match has_sql_body {
            true => Some(Arc::new(sql_body::decode(reader)?)),
            false => None,
        },
        aggregate: match kind {
            RoutineKind::Aggregate => Some(Box::new(read_parts(reader)?)),
            _ => None,
        },
    })
}

fn read_parts(reader: &mut Reader<'_>) -> Result<AggregateParts> {
    Ok(AggregateParts {
        transition: reader.varint_as()?,
        state: TypeId(reader.varint_as()?),
        last: reader.varint_as()?,
        combine: reader.varint_as()?,
        space: reader.varint_as()?,
        last_extra: reader.u8()? != 0,
        last_modifies: reader.u8()?,
        initial: read_text(reader)?,
    })
}
