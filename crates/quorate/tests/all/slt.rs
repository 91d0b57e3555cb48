//! The statement corpus: every `.slt` file of tests/slt, statement by statement, on PostgreSQL 15,
//! on one node and on three.
//!
//! The format is sqllogictest's: a record is `statement ok`, `statement count 3`, `statement error`
//! or `query`, the SQL, and what it gives. What it gives is made, never written by hand: `make
//! expected` runs all files on PostgreSQL and writes it anew, and a test fails where that is not
//! what the files say ([`crate::recorded`] has what holds with another minor version of PostgreSQL
//! than made them). So a new record needs no more than
//!
//! ```text
//! query T
//! select 1 + 1
//! ----
//! ```
//!
//! Each file runs in a database of its own, and cleans up nothing. Rows are shown as text, columns
//! parted by a blank; NULL is `NULL`, an empty string `(empty)`. Errors are shown with SQLSTATE,
//! DETAIL, HINT, the names of what was violated and the position. How psql lays results out, and
//! notices, are [`crate::corpus`]'s.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use postgres::{Client, NoTls, SimpleQueryMessage};
use sqllogictest::{
    default_column_validator, update_record_with_output, DBOutput, DefaultColumnType, Normalizer,
    Record, Runner, DB,
};

use lab::host::Endpoint;

use crate::recorded::{self, Answers, Recorded, Versions};
use crate::{shared, source};

/// Where the files are.
const DIRECTORY: &str = "tests/slt";

/// The corpus is at least this large.
const STATEMENTS_MIN: usize = 1_500;

/// How many failures of one file are shown.
const SHOWN_MAX: usize = 20;

/// A session as the runner sees it.
struct Session(Client);

/// What a server said, as one text.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl From<postgres::Error> for Refusal {
    fn from(error: postgres::Error) -> Refusal {
        let Some(said) = error.as_db_error() else {
            return Refusal(error.to_string());
        };
        let mut text = format!("{}: {}", said.code().code(), said.message());
        let fields = [
            ("DETAIL", said.detail()),
            ("HINT", said.hint()),
            ("WHERE", said.where_()),
            ("TABLE", said.table()),
            ("COLUMN", said.column()),
            ("CONSTRAINT", said.constraint()),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                text.push_str(&format!("\n{name}: {value}"));
            }
        }
        if let Some(postgres::error::ErrorPosition::Original(position)) = said.position() {
            text.push_str(&format!("\nPOSITION: {position}"));
        }
        Refusal(text)
    }
}

/// One value on one line.
fn shown(value: Option<&str>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => text.replace('\n', "\\n"),
    }
}

impl DB for Session {
    type Error = Refusal;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Refusal> {
        let mut types = None;
        let mut rows = Vec::new();
        let mut count = 0;
        for message in self.0.simple_query(sql)? {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    types = Some(vec![DefaultColumnType::Text; columns.len()]);
                }
                SimpleQueryMessage::Row(row) => {
                    let values: Vec<String> = (0..row.len())
                        .map(|column| shown(row.get(column)))
                        .collect();
                    if !values.iter().any(|value| recorded::is_unknown_here(value)) {
                        rows.push(values);
                    }
                }
                SimpleQueryMessage::CommandComplete(affected) => count = affected,
                _ => {}
            }
        }
        Ok(match types {
            Some(types) => DBOutput::Rows { types, rows },
            None => DBOutput::StatementComplete(count),
        })
    }
}

fn connect(endpoint: &Endpoint, database: &str) -> Result<Session, Refusal> {
    let mut config = postgres::Config::new();
    config
        .host(&endpoint.host)
        .port(endpoint.port)
        .user("postgres")
        .dbname(database)
        .options("-c TimeZone=UTC");
    Ok(Session(config.connect(NoTls)?))
}

/// Rows must be as they are written, blanks included.
fn same(_: Normalizer, found: &[Vec<String>], expected: &[String]) -> bool {
    let found: Vec<String> = found.iter().map(|row| row.join(" ")).collect();
    found == expected
}

/// A runner over sessions in a new database named after the file.
fn runner(
    endpoint: &Endpoint,
    path: &str,
) -> Runner<Session, impl FnMut() -> std::future::Ready<Result<Session, Refusal>>> {
    let name = path.trim_start_matches("tests/slt/");
    let database = format!(
        "slt_{}",
        name.trim_end_matches(".slt").replace(['/', '-'], "_")
    );
    let mut first = connect(endpoint, "postgres").expect("a session");
    let create = format!("create database {database}");
    first.run(&create).expect(&create);
    let endpoint = endpoint.clone();
    let mut runner = Runner::new(move || std::future::ready(connect(&endpoint, &database)));
    runner.with_validator(same);
    runner.with_normalizer(String::clone);
    runner
}

fn records(path: &str) -> Vec<Record<DefaultColumnType>> {
    sqllogictest::parse_file(source::root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What a server gives to every record of a file, written as a file has it.
fn play(endpoint: &Endpoint, path: &str) -> Vec<String> {
    let mut runner = runner(endpoint, path);
    let mut given = Vec::new();
    for record in records(path) {
        let output = futures::executor::block_on(runner.apply_record(record.clone()));
        let updated = update_record_with_output(
            &record,
            &output,
            " ",
            same,
            String::clone,
            default_column_validator,
        );
        given.push(updated.unwrap_or(record).to_string());
    }
    given
}

/// What the installed PostgreSQL gives to every record of each file.
fn live() -> &'static BTreeMap<String, Vec<String>> {
    static LIVE: OnceLock<BTreeMap<String, Vec<String>>> = OnceLock::new();
    LIVE.get_or_init(|| {
        let paths = source::files(DIRECTORY, ".slt").into_iter();
        paths
            .map(|path| {
                let given = play(shared::postgres(), &path);
                (path, given)
            })
            .collect()
    })
}

/// How a server's answers to a file differ.
fn differences(path: &str, given: &[String], live: Option<&[String]>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (index, (record, found)) in records(path).iter().zip(given).enumerate() {
        let answers = Answers {
            recorded: record.to_string(),
            live: live.map(|live| live[index].clone()),
        };
        if !answers.accept(found) {
            wrong.push(answers.difference(found));
        }
    }
    wrong
}

fn assert_corpus(configuration: &str, endpoint: &Endpoint) {
    let installed = Versions::of_server(shared::postgres());
    let is_recorded = Versions::recorded(DIRECTORY) == installed;
    let mut wrong = Vec::new();
    for path in source::files(DIRECTORY, ".slt") {
        let live = (!is_recorded).then(|| live()[&path].as_slice());
        let failures = differences(&path, &play(endpoint, &path), live);
        if !failures.is_empty() {
            let shown = failures.len().min(SHOWN_MAX);
            wrong.push(format!(
                "== {path}: {} failures\n{}",
                failures.len(),
                failures[..shown].join("\n")
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} files differ on {configuration}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn expected_outputs_of_statements_are_postgresqls() {
    let endpoint = shared::postgres();
    let installed = Versions::of_server(endpoint);
    if !recorded::is_rewritten() {
        let text = |records: &[String]| records.join("\n");
        let output = |(path, given): (&String, &Vec<String>)| {
            let recorded: Vec<String> = records(path).iter().map(Record::to_string).collect();
            Recorded {
                path: path.clone(),
                expected: text(&recorded),
                found: text(given),
            }
        };
        let outputs: Vec<_> = live().iter().map(output).collect();
        return recorded::assert_recorded(DIRECTORY, &installed, &outputs);
    }
    for path in source::files(DIRECTORY, ".slt") {
        let file = source::root().join(&path);
        let mut runner = runner(endpoint, &path);
        let updated =
            runner.update_test_file(&file, " ", same, String::clone, default_column_validator);
        futures::executor::block_on(updated).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    installed.write(DIRECTORY);
}

#[test]
fn statements_give_the_same_on_one_node() {
    assert_corpus("one node", &shared::one_node().nodes()[0]);
}

#[test]
fn statements_give_the_same_on_three_nodes() {
    assert_corpus("three nodes", &shared::follower_first()[0]);
}

#[test]
fn the_corpus_of_statements_is_large() {
    let is_statement = |record: &Record<DefaultColumnType>| {
        matches!(record, Record::Statement { .. } | Record::Query { .. })
    };
    let statements: usize = source::files("tests/slt", ".slt")
        .iter()
        .map(|path| {
            records(path)
                .iter()
                .filter(|record| is_statement(record))
                .count()
        })
        .sum();
    assert!(
        statements >= STATEMENTS_MIN,
        "{statements} statements, fewer than {STATEMENTS_MIN}"
    );
}
