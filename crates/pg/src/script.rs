//! SQL as tests write it: statements that say outright what they rest on.
//!
//! | statement | does |
//! |---|---|
//! | `begin`, `rollback`, `commit` | as in SQL |
//! | `insert N` | writes; the transaction's commit record will have LSN N |
//! | `select N` | describes columns; the answer rests on LSN N |
//! | `commits N` | commits at N in mid-statement, as a DO block does |
//! | `notice TEXT` | a notice |
//! | `set NAME VALUE` | a reported setting changes; `level` is the level of commits |
//! | `wait` | waits until [`Control::go_on`] |
//! | `spin` | computes for ever |
//! | `copy` | takes data from the client until its end; the tag says how many bytes |
//! | `error N`, `conflict`, `fatal` | an error resting on N, one of the engine's own, one that ends the session |
//!
//! A `+` in front continues the statement before it, so that `+commits 5; +notice five` is one.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use base::coro;
use base::hash::HashMap;
use base::sync::Event;
use base::{Debt, Durability, Error, ErrorClass, GroupId, Lsn, Position, Result, SqlState, Term};
use sql::session::{
    Column, CommandTag, Executed, Format, Notice, NoticeSeverity, Oid, Param, Sink,
    TransactionStatus,
};

use crate::seam::Sql;

/// What a test holds of its script while the session runs it.
#[derive(Debug, Default)]
pub struct Control {
    /// `wait` waits for this.
    pub event: Event,
    /// How often `wait` may go on.
    pub passes: Cell<u32>,
    /// `statement_timeout`.
    pub statement_timeout: Cell<Option<Duration>>,
    /// `idle_in_transaction_session_timeout`.
    pub idle_timeout: Cell<Option<Duration>>,
    /// `idle_session_timeout`.
    pub idle_session_timeout: Cell<Option<Duration>>,
    /// How many statements have been executed to their end.
    pub executed: Cell<u32>,
    /// Whether the script was dropped where it could not have given way.
    pub dropped_outside: Cell<bool>,
}

impl Control {
    /// Lets one `wait` go on.
    pub fn go_on(&self) {
        self.passes.set(self.passes.get() + 1);
        self.event.notify_all();
    }
}

/// A statement of the script.
#[derive(Debug)]
pub struct Statement {
    text: String,
    types: Vec<Oid>,
    columns: Option<Vec<Column>>,
}

/// Executes statements of the script.
#[derive(Debug)]
pub struct Script {
    control: Rc<Control>,
    status: TransactionStatus,
    /// What the open transaction has written.
    write: Option<u64>,
    /// What the open transaction rests on.
    debt: Debt,
    owed: Vec<(Debt, Durability)>,
    level: Durability,
    statements: HashMap<String, Rc<Statement>>,
}

/// A debt at an LSN of the first term.
pub fn debt(lsn: u64) -> Debt {
    let position = Position {
        term: Term(1),
        lsn: Lsn(lsn),
    };
    Debt::of(GroupId(1), position)
}

impl Drop for Script {
    fn drop(&mut self) {
        self.control.dropped_outside.set(!coro::inside());
    }
}

impl Script {
    /// A session that has executed nothing.
    pub fn new(control: Rc<Control>) -> Script {
        Script {
            control,
            status: TransactionStatus::Idle,
            write: None,
            debt: Debt::NONE,
            owed: Vec::new(),
            level: Durability::On,
            statements: HashMap::default(),
        }
    }

    fn owe(&mut self, lsn: u64, sink: &mut dyn Sink) {
        self.debt.merge(&debt(lsn));
        self.owed = vec![(self.debt.clone(), self.level)];
        sink.owe(&self.debt, self.level);
    }

    /// Commits what was written; what a transaction rests on is forgotten with it.
    fn commit(&mut self, sink: &mut dyn Sink) {
        if let Some(lsn) = self.write.take() {
            sink.committed(&Debt::NONE);
            self.owe(lsn, sink);
        }
        self.debt = Debt::NONE;
    }

    fn begin_message(&mut self) {
        self.owed.clear();
    }

    fn run(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Option<CommandTag>> {
        let mut words = text.trim().splitn(2, ' ');
        let verb = words.next().unwrap_or_default().trim_start_matches('+');
        let rest = words.next().unwrap_or_default();
        let lsn: u64 = rest.parse().unwrap_or_default();
        if self.status == TransactionStatus::Failed && !matches!(verb, "rollback" | "commit") {
            return Err(Error::new(
                SqlState::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        let name = match verb {
            "" => return Ok(None),
            "begin" => {
                self.status = TransactionStatus::InBlock;
                "BEGIN"
            }
            "commit" if self.status != TransactionStatus::Failed => {
                self.commit(sink);
                self.status = TransactionStatus::Idle;
                "COMMIT"
            }
            "rollback" | "commit" => {
                self.write = None;
                self.debt = Debt::NONE;
                self.status = TransactionStatus::Idle;
                "ROLLBACK"
            }
            "insert" => {
                self.write = Some(lsn);
                return Ok(Some(tag("INSERT", Some(1))));
            }
            "select" => {
                self.owe(lsn, sink);
                return Ok(Some(tag("SELECT", Some(0))));
            }
            "commits" => {
                self.write = Some(lsn);
                self.commit(sink);
                "DO"
            }
            "notice" => {
                let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, rest);
                let severity = NoticeSeverity::Notice;
                sink.notice(&Notice { severity, body })?;
                "DO"
            }
            "set" => {
                let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
                match name {
                    "level" => self.level = Durability::parse(value).unwrap_or_default(),
                    _ => sink.parameter_status(name, value)?,
                }
                "SET"
            }
            "wait" => {
                let passes = &self.control.passes;
                let passed = || passes.get().checked_sub(1).map(|left| passes.set(left));
                coro::wait(self.control.event.until(passed))?;
                "WAIT"
            }
            "spin" => loop {
                coro::yield_now()?;
            },
            "copy" => {
                sink.copy_in(1, Format::Text)?;
                let (mut data, mut bytes) = (Vec::new(), 0);
                while sink.copy_data(&mut data)? {
                    bytes += data.len() as u64;
                    data.clear();
                }
                return Ok(Some(tag("COPY", Some(bytes))));
            }
            "error" => {
                self.owe(lsn, sink);
                return Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
            }
            "conflict" => return Err(Error::serialization("conflict")),
            "fatal" => {
                let state = SqlState::ADMIN_SHUTDOWN;
                return Err(Error::of_class(ErrorClass::Session, state, "over"));
            }
            other => {
                let message = format!("syntax error at or near \"{other}\"");
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
        };
        Ok(Some(tag(name, None)))
    }

    fn simple(&mut self, text: &str, sink: &mut dyn Sink) -> Result<()> {
        if text.trim().is_empty() {
            return sink.empty_query();
        }
        let mut statements = text.split(';').map(str::trim).peekable();
        while let Some(statement) = statements.next() {
            if statement.starts_with("select") {
                let lsn = statement.split(' ').nth(1).and_then(|lsn| lsn.parse().ok());
                self.owe(lsn.unwrap_or_default(), sink);
                sink.row_description(&columns())?;
            }
            let Some(tag) = self.run(statement, sink)? else {
                continue;
            };
            self.control.executed.set(self.control.executed.get() + 1);
            let next = statements.peek();
            if next.is_some_and(|next| next.starts_with('+')) {
                continue;
            }
            if next.is_none() && self.status == TransactionStatus::Idle {
                self.commit(sink);
            }
            sink.command_complete(&tag)?;
        }
        Ok(())
    }
}

fn tag(name: &'static str, rows: Option<u64>) -> CommandTag {
    CommandTag { name, rows }
}

fn columns() -> Vec<Column> {
    vec![Column {
        name: "id".into(),
        table: Oid(0),
        number: 0,
        type_oid: Oid(23),
        type_len: 4,
        type_mod: -1,
    }]
}

impl Sql for Script {
    type Prepared = Statement;
    type Portal = Rc<Statement>;

    fn param_types(prepared: &Statement) -> &[Oid] {
        &prepared.types
    }

    fn columns(prepared: &Statement) -> Option<&[Column]> {
        prepared.columns.as_deref()
    }

    fn prepared_of(portal: &Rc<Statement>) -> &Rc<Statement> {
        portal
    }

    fn simple_query(&mut self, text: &str, sink: &mut dyn Sink) -> Result<()> {
        self.begin_message();
        self.simple(text, sink).inspect_err(|_| self.fail())
    }

    fn prepare(&mut self, text: &str, types: &[Oid]) -> Result<Rc<Statement>> {
        self.begin_message();
        if text.starts_with('?') {
            self.fail();
            return Err(Error::new(SqlState::SYNTAX_ERROR, "syntax error"));
        }
        Ok(Rc::new(Statement {
            text: text.to_owned(),
            types: types.to_vec(),
            columns: text.starts_with("select").then(columns),
        }))
    }

    fn keep_prepared(&mut self, name: &str, prepared: Rc<Statement>) -> Result<()> {
        if self.statements.contains_key(name) {
            return Err(Error::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        self.statements.insert(name.to_owned(), prepared);
        Ok(())
    }

    fn prepared(&self, name: &str) -> Result<Rc<Statement>> {
        self.statements.get(name).cloned().ok_or_else(|| {
            Error::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                format!("prepared statement \"{name}\" does not exist"),
            )
        })
    }

    fn drop_prepared(&mut self, name: &str) {
        self.statements.remove(name);
    }

    fn bind(&mut self, prepared: &Rc<Statement>, _: &[Param<'_>]) -> Result<Rc<Statement>> {
        self.begin_message();
        Ok(prepared.clone())
    }

    fn execute(
        &mut self,
        portal: &mut Rc<Statement>,
        rows_max: u64,
        sink: &mut dyn Sink,
    ) -> Result<Executed> {
        self.begin_message();
        let statement = portal.clone();
        let tag = self
            .run(&statement.text, sink)
            .inspect_err(|_| self.fail())?;
        self.control.executed.set(self.control.executed.get() + 1);
        match rows_max {
            0 => Ok(Executed::Complete(tag)),
            _ => Ok(Executed::Suspended),
        }
    }

    fn sync(&mut self, sink: &mut dyn Sink) -> Result<()> {
        self.begin_message();
        if self.status == TransactionStatus::Idle {
            self.commit(sink);
        }
        Ok(())
    }

    fn fail(&mut self) {
        self.write = None;
        if self.status == TransactionStatus::InBlock {
            self.status = TransactionStatus::Failed;
        }
    }

    fn transaction_status(&self) -> TransactionStatus {
        self.status
    }

    fn owed(&self) -> &[(Debt, Durability)] {
        &self.owed
    }

    fn take_warnings(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    fn reported_settings(&self) -> Vec<(&'static str, String)> {
        vec![("client_encoding", "UTF8".to_owned())]
    }

    fn statement_timeout(&self) -> Option<Duration> {
        self.control.statement_timeout.get()
    }

    fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        self.control.idle_timeout.get()
    }

    fn idle_session_timeout(&self) -> Option<Duration> {
        self.control.idle_session_timeout.get()
    }
}
