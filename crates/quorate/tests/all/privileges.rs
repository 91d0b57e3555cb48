//! Who may do what, however it is done: every kind of statement × every way to run it × every kind
//! of role, on PostgreSQL 15 and on one node, with the same outcome.
//!
//! A cell is one statement of [`table::STATEMENTS`], run one [`Way`] as one of [`ROLES`], in a
//! transaction that is rolled back:
//!
//! ```text
//! begin; set local role reader            ─┐
//! declare c cursor for select k from m.t   ├ 42501: permission denied for table t
//! fetch all from c; rollback              ─┘
//! ```
//! Its outcome is `ok`, or the first error: the SQLSTATE, and the words too where a privilege is
//! missing. Cells are made from the tables, so a statement that is added is tried in every way it
//! can be run in. Every kind of statement that the session dispatches on must be in the table; what
//! Quorate does not have must be listed in [`table::UNSUPPORTED`].
//!
//! # What it leaves out
//! What only shows between two sessions, and what cannot be rolled back but by its own opposite.

mod table;

use std::collections::{BTreeMap, BTreeSet};

use lab::host::Endpoint;

use crate::transcripts::{bind, describe, execute, message, parse, query, sync, Wire};
use crate::{shared, source};
use table::{Statement, SETUP, STATEMENTS, UNSUPPORTED};

/// The database in which all of it happens.
const DATABASE: &str = "matrix";

/// There are at least so many cells.
const CELLS_MIN: usize = 3_000;

/// So many differences are shown.
const SHOWN_MAX: usize = 60;

/// How an outcome begins where USAGE of a type is missing.
const TYPE_REFUSED: &str = "42501: permission denied for type";

/// Cells that are sent before their answers are read.
const PIPELINED: usize = 16;

/// Who runs a statement.
const ROLES: [&str; 8] = [
    "m_owner",
    // All privileges on everything.
    "m_granted",
    // Some privileges on the column k.
    "m_column",
    // A member of m_owner who inherits, and one who does not.
    "m_member",
    "m_noinherit",
    "m_stranger",
    // A member of pg_read_all_data and pg_write_all_data.
    "m_data",
    "postgres",
];

/// What can be done with a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A query that may stand anywhere.
    Query,
    /// A query that may not stand inside of another.
    Outer,
    /// It writes.
    Write,
    /// It writes and returns rows.
    Returning,
    /// It is carried out, not planned.
    Utility,
    /// The same, and cannot stand in a transaction block.
    Alone,
}

/// How a statement is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Simple,
    Unnamed,
    NamedPortal,
    PreparedBefore,
    Prepare,
    Declare,
    Explain,
    ExplainAnalyze,
    CopyTo,
    CreateTableAs,
    CreateTableAsNoData,
    SelectInto,
    MaterializedView,
    Refresh,
    InsertSelect,
    With,
    Subquery,
    Exists,
    OwnView,
    ViewOfSuperuser,
    ViewOfStranger,
    DoStatic,
    DoLoop,
    DoAssign,
    DoCondition,
    DoExecute,
    Outside,
}

impl Way {
    const ALL: [Way; 27] = [
        Way::Simple,
        Way::Unnamed,
        Way::NamedPortal,
        Way::PreparedBefore,
        Way::Prepare,
        Way::Declare,
        Way::Explain,
        Way::ExplainAnalyze,
        Way::CopyTo,
        Way::CreateTableAs,
        Way::CreateTableAsNoData,
        Way::SelectInto,
        Way::MaterializedView,
        Way::Refresh,
        Way::InsertSelect,
        Way::With,
        Way::Subquery,
        Way::Exists,
        Way::OwnView,
        Way::ViewOfSuperuser,
        Way::ViewOfStranger,
        Way::DoStatic,
        Way::DoLoop,
        Way::DoAssign,
        Way::DoCondition,
        Way::DoExecute,
        Way::Outside,
    ];

    /// Whether statements of a kind can be run so.
    fn serves(self, kind: Kind) -> bool {
        let has_plan = !matches!(kind, Kind::Utility | Kind::Alone);
        match self {
            Way::Simple | Way::Unnamed | Way::DoExecute => kind != Kind::Alone,
            Way::NamedPortal
            | Way::PreparedBefore
            | Way::Prepare
            | Way::Explain
            | Way::ExplainAnalyze => has_plan,
            Way::Declare | Way::DoLoop => matches!(kind, Kind::Query | Kind::Outer),
            Way::CopyTo | Way::With => matches!(kind, Kind::Query | Kind::Returning),
            Way::CreateTableAs
            | Way::CreateTableAsNoData
            | Way::SelectInto
            | Way::MaterializedView
            | Way::Refresh
            | Way::InsertSelect
            | Way::Subquery
            | Way::Exists
            | Way::OwnView
            | Way::ViewOfSuperuser
            | Way::ViewOfStranger
            | Way::DoAssign
            | Way::DoCondition => kind == Kind::Query,
            Way::DoStatic => matches!(kind, Kind::Write | Kind::Utility),
            Way::Outside => kind == Kind::Alone,
        }
    }

    /// What is sent to run a statement so, as a role.
    fn script(self, statement: &str, role: &str) -> Vec<u8> {
        let simple = |texts: &[&str]| texts.iter().flat_map(|text| query(text)).collect();
        let act = format!("set local role {role}");
        let inside = |middle: Vec<u8>| {
            let begin: Vec<u8> = [query("begin"), query(&act)].concat();
            [begin, middle, query("rollback")].concat()
        };
        let one = |text: String| inside(query(&text));
        let block = |body: &str| {
            inside(query(&format!(
                "do $do$ declare x text; r record; begin {body} end $do$"
            )))
        };
        match self {
            Way::Simple => inside([query(statement), copy_done(statement)].concat()),
            Way::Unnamed => inside(
                [
                    parse("", statement),
                    bind("", "", &[], false),
                    describe(b'P', ""),
                    execute("", 0),
                    copy_done(statement),
                    sync(),
                ]
                .concat(),
            ),
            Way::NamedPortal => inside(
                [
                    parse("", statement),
                    bind("portal", "", &[], false),
                    execute("portal", 1),
                    execute("portal", 0),
                    sync(),
                ]
                .concat(),
            ),
            Way::PreparedBefore => [
                query("begin"),
                [parse("before", statement), sync()].concat(),
                query(&act),
                [bind("", "before", &[], false), execute("", 0), sync()].concat(),
                query("rollback"),
                query("deallocate all"),
            ]
            .concat(),
            Way::Prepare => [
                query("begin"),
                query(&act),
                query(&format!("prepare p as {statement}")),
                query("execute p"),
                query("rollback"),
                query("deallocate all"),
            ]
            .concat(),
            Way::Declare => inside(simple(&[
                &format!("declare c cursor for {statement}"),
                "fetch 1 from c",
                "fetch all from c",
            ])),
            Way::Explain => one(format!("explain (costs off) {statement}")),
            Way::ExplainAnalyze => one(format!("explain (analyze, costs off) {statement}")),
            Way::CopyTo => one(format!("copy ({statement}) to stdout")),
            Way::CreateTableAs => one(format!("create table room.made as {statement}")),
            Way::CreateTableAsNoData => one(format!(
                "create table room.made as {statement} with no data"
            )),
            Way::SelectInto => one(format!("select * into room.made from ({statement}) q")),
            Way::MaterializedView => {
                one(format!("create materialized view room.made as {statement}"))
            }
            Way::Refresh => simple(&[
                "begin",
                &format!("create materialized view room.made as {statement} with no data"),
                &format!("alter materialized view room.made owner to {role}"),
                &act,
                "refresh materialized view room.made",
                "rollback",
            ]),
            Way::InsertSelect => one(format!(
                "insert into room.sink select count(*) from ({statement}) q"
            )),
            Way::With => one(format!("with w as ({statement}) select * from w")),
            Way::Subquery => one(format!("select count(*) from ({statement}) q")),
            Way::Exists => one(format!("select 1 where exists ({statement})")),
            Way::OwnView => inside(simple(&[
                &format!("create view room.made as {statement}"),
                "select * from room.made",
            ])),
            Way::ViewOfSuperuser => simple(&[
                "begin",
                &format!("create view room.made as {statement}"),
                "grant select on room.made to public",
                &act,
                "select * from room.made",
                "rollback",
            ]),
            Way::ViewOfStranger => simple(&[
                "begin",
                &format!("create view room.made as {statement}"),
                "alter view room.made owner to m_stranger",
                "grant select on room.made to public",
                &act,
                "select * from room.made",
                "rollback",
            ]),
            Way::DoStatic => block(&format!("{statement};")),
            Way::DoLoop => block(&format!("for r in {statement} loop end loop;")),
            Way::DoAssign => block(&format!("x := (select count(*) from ({statement}) q);")),
            Way::DoCondition => block(&format!("if exists ({statement}) then end if;")),
            Way::DoExecute => block(&format!("execute $text${statement}$text$;")),
            Way::Outside => simple(&[&format!("set role {role}"), statement, "reset role"]),
        }
    }
}

/// What ends a COPY FROM STDIN that gives no rows.
fn copy_done(statement: &str) -> Vec<u8> {
    match statement.starts_with("copy") && statement.contains("from stdin") {
        true => message(b'c', &[]),
        false => Vec::new(),
    }
}

/// A statement, run one way, as one role.
#[derive(Clone, Copy)]
struct Cell {
    statement: &'static Statement,
    way: Way,
    role: &'static str,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for statement in STATEMENTS {
        for way in Way::ALL
            .into_iter()
            .filter(|way| way.serves(statement.kind))
        {
            for role in ROLES {
                cells.push(Cell {
                    statement,
                    way,
                    role,
                });
            }
        }
    }
    cells
}

impl Cell {
    fn script(&self) -> Vec<u8> {
        let mut script = self.way.script(self.statement.text, self.role);
        if let Some(undo) = self.statement.undo {
            script.extend(query(undo));
        }
        script
    }
}

/// How many answers end with ReadyForQuery.
fn syncs(mut script: &[u8]) -> usize {
    let mut count = 0;
    while let [kind, a, b, c, d, ..] = script {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        count += usize::from(matches!(kind, b'Q' | b'S'));
        script = &script[length + 1..];
    }
    count
}

/// The first error of an answer, or `ok`.
fn outcome(wire: &mut Wire, syncs: usize) -> String {
    let mut first = None;
    for _ in 0..syncs {
        for (kind, body) in wire.until_ready() {
            if kind != b'E' || first.is_some() {
                continue;
            }
            let field = |wanted: u8| {
                let mut fields = body.split(|byte| *byte == 0);
                let found = fields.find(|field| field.first() == Some(&wanted));
                String::from_utf8_lossy(&found.unwrap_or_default()[1..]).into_owned()
            };
            first = Some(match field(b'C') {
                code if code == "42501" => format!("{code}: {}", field(b'M')),
                code => code,
            });
        }
    }
    first.unwrap_or_else(|| "ok".to_owned())
}

/// The outcomes of all cells on one server.
fn outcomes(endpoint: &Endpoint, cells: &[Cell]) -> Vec<String> {
    let mut wire = Wire::connect(endpoint);
    for text in SETUP.split(";\n").filter(|text| !text.trim().is_empty()) {
        match text.trim() {
            "connect" => wire = Wire::connect_to(endpoint, DATABASE),
            text => {
                wire.send(&query(text));
                let said = outcome(&mut wire, 1);
                assert_eq!(said, "ok", "{text}");
            }
        }
    }
    let mut all = Vec::with_capacity(cells.len());
    for some in cells.chunks(PIPELINED) {
        let scripts: Vec<_> = some.iter().map(Cell::script).collect();
        wire.send(&scripts.concat());
        all.extend(
            scripts
                .iter()
                .map(|script| outcome(&mut wire, syncs(script))),
        );
    }
    all
}

/// Whether an outcome tells that the role lacks something.
fn is_refusal(outcome: &str) -> bool {
    outcome.starts_with("42501")
}

/// Whether PostgreSQL asks for USAGE of the types in what a view stores: minor versions do since one
/// that came after 15.18.
fn asks_for_stored_types(cells: &[Cell], expected: &[String]) -> bool {
    let mut outcomes = cells.iter().zip(expected);
    outcomes.any(|(cell, outcome)| {
        cell.way == Way::OwnView && outcome.starts_with(TYPE_REFUSED) && !cell.statement.open
    })
}

#[test]
fn who_may_do_what_is_as_in_postgresql() {
    let cells = cells();
    assert!(cells.len() >= CELLS_MIN, "{} cells", cells.len());
    let (expected, found) = std::thread::scope(|scope| {
        let postgresql = scope.spawn(|| outcomes(shared::postgres(), &cells));
        let found = outcomes(&shared::one_node().nodes()[0], &cells);
        (postgresql.join().expect("PostgreSQL answers"), found)
    });
    let asks = asks_for_stored_types(&cells, &expected);
    let mut wrong = Vec::new();
    let mut differing: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut unsupported = BTreeSet::new();
    let mut met = BTreeSet::new();
    let mut seen: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for ((cell, expected), found) in cells.iter().zip(&expected).zip(&found) {
        let is_stored = matches!(cell.way, Way::OwnView | Way::MaterializedView);
        let is_asked_later = !asks && is_stored && found.starts_with(TYPE_REFUSED);
        let expected = if is_asked_later { found } else { expected };
        let sides = seen.entry(cell.statement.text).or_default();
        sides.0 |= !is_refusal(expected);
        sides.1 |= is_refusal(expected);
        if found == expected {
            continue;
        }
        if found == "0A000" {
            unsupported.insert((cell.way, cell.statement.text));
            continue;
        }
        let alike = differing.entry((cell.statement.text, expected, found));
        alike.or_default().push((cell.way, cell.role));
    }
    for ((text, expected, found), alike) in differing {
        wrong.push(format!(
            "{text}\n    expected {expected}\n    found    {found}\n    {alike:?}"
        ));
    }
    for (way, text) in unsupported {
        let listed = UNSUPPORTED.iter().position(|(ways, part)| {
            (ways.is_empty() || ways.contains(&way)) && text.contains(part)
        });
        match listed {
            Some(place) => drop(met.insert(place)),
            None => wrong.push(format!("{way:?}: {text}\n    is not supported, nor listed")),
        }
    }
    let unmet = (0..UNSUPPORTED.len()).filter(|place| !met.contains(place));
    wrong.extend(unmet.map(|place| format!("{:?} is supported", UNSUPPORTED[place])));
    for statement in STATEMENTS {
        let (allowed, refused) = seen[statement.text];
        let wanted = (true, !statement.open);
        if (allowed, refused) != wanted {
            wrong.push(format!(
                "{}: allowed {allowed}, refused {refused}",
                statement.text
            ));
        }
    }
    let shown = wrong.len().min(SHOWN_MAX);
    assert!(
        wrong.is_empty(),
        "{} differences in {} cells:\n{}",
        wrong.len(),
        cells.len(),
        wrong[..shown].join("\n")
    );
}

#[test]
fn every_way_has_statements() {
    for way in Way::ALL {
        let mut kinds = STATEMENTS.iter().map(|statement| statement.kind);
        assert!(kinds.any(|kind| way.serves(kind)), "{way:?}");
    }
}

#[test]
fn every_kind_of_statement_has_cells() {
    let tried: BTreeSet<String> = STATEMENTS
        .iter()
        .map(|statement| {
            let parsed = sql::parser::parse(statement.text);
            let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", statement.text));
            let node = format!("{:?}", parsed[0].node());
            let end = node.find('(').expect("a node with a body");
            node[..end].to_owned()
        })
        .collect();
    let supported = sql::session::statement_kinds().filter(|kind| kind.1);
    let missing: Vec<_> = supported
        .map(|kind| kind.0)
        .filter(|kind| !tried.contains(*kind) && !table::BY_WAYS.contains(kind))
        .collect();
    assert!(missing.is_empty(), "no cells for {missing:?}");
}

#[test]
fn only_definitions_are_computed_without_asking() {
    // What these compute follows from a definition that its owner has made, and holds no query.
    let known = [
        "crates/sql/src/session/constraints.rs",
        "crates/sql/src/session/ddl/alter/column.rs",
        "crates/sql/src/session/ddl/alter/rewrite.rs",
        "crates/sql/src/session/ddl/build.rs",
        "crates/sql/src/session/ddl/foreign.rs",
        "crates/sql/src/session/ddl/gather.rs",
        "crates/sql/src/session/ddl/truncate.rs",
        "crates/sql/src/session/plpgsql/convert.rs",
    ];
    let naming = |what: &str| -> Vec<String> {
        let files = source::files("crates", ".rs").into_iter();
        let code = files.filter(|path| path.contains("/src/"));
        code.filter(|path| source::text(path).contains(what))
            .collect()
    };
    assert_eq!(naming("Permit::of_definition("), known);
    // What an open cursor was permitted is its own affair.
    let cursor = ["crates/execution/src/exec/cursor.rs"];
    assert_eq!(naming("Permit::of_open_cursor("), cursor);
}
