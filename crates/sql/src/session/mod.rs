//! One client's session: statements in, rows and tags out.
//!
//! The protocol layer owns a [`Session`] and calls it inside a coroutine ([`base::coro`]), because
//! every statement may wait. What the session shows goes to a [`Sink`]:
//!
//! ```no_run
//! # use sql::session::*; use base::Result;
//! # fn example(session: &mut Session, sink: &mut dyn Sink) -> Result<()> {
//! // The simple protocol: one message, perhaps several statements.
//! session.simple_query("create table t(i int); insert into t values (1)", sink)?;
//! // The extended protocol: Parse, Bind, Execute, Sync.
//! let prepared = session.prepare("select i from t where i = $1", &[])?;
//! let value = Param { format: Format::Text, value: Some(b"1") };
//! let mut portal = session.bind(&prepared, &[value])?;
//! session.execute(&mut portal, 0, sink)?;
//! session.sync(sink)?;
//! # Ok(()) }
//! ```
//!
//! # Transactions
//! Outside a block, [`Session::simple_query`] runs the whole message in one implicit transaction
//! and [`Session::execute`] runs everything up to [`Session::sync`] in one, as PostgreSQL does. An
//! error that a method returns has already been taken into account: the implicit transaction is
//! rolled back, or the block is in the failed state.
//!
//! # Debt
//! Before anything is given to the sink, [`Sink::owe`] tells it what the following output rests
//! on; an error that a method returns rests on [`Session::owed`].

mod settings;
mod sink;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::coro::Interrupts;
use base::engine::Engine;
use base::env::Env;
use base::{Debt, Durability, Error, Result};

pub use sink::{
    Column, CommandTag, Format, Notice, NoticeSeverity, Oid, Param, RowView, Sink,
    TransactionStatus,
};

/// What a session begins with.
#[derive(Clone, Debug)]
pub struct SessionStart {
    /// The role that the client names.
    pub user: String,
    /// The database that the client names.
    pub database: String,
    /// What `pg_backend_pid()` shows.
    pub backend_pid: i32,
    /// The client's address without its port, where it has one.
    pub client_address: Option<String>,
    /// The client's port.
    pub client_port: Option<u16>,
    /// The address and port on which the client was accepted.
    pub server_address: Option<(String, u16)>,
    /// Where others leave interrupts for this session.
    pub interrupts: Arc<Interrupts>,
    /// Settings of the startup message (`application_name`, `client_encoding`, `options`, …).
    pub settings: Vec<(String, String)>,
}

/// A statement that is parsed and planned; used again for as long as the session lives.
#[derive(Debug)]
pub struct Prepared {
    param_types: Vec<Oid>,
    columns: Option<Vec<Column>>,
}

impl Prepared {
    /// The types of the parameters, `$1` first.
    pub fn param_types(&self) -> &[Oid] {
        &self.param_types
    }

    /// The columns of the rows it returns; none when it returns no rows.
    pub fn columns(&self) -> Option<&[Column]> {
        self.columns.as_deref()
    }

    /// Whether the text held no statement.
    pub fn is_empty(&self) -> bool {
        true
    }
}

/// A prepared statement with its parameters, perhaps half executed.
#[derive(Debug)]
pub struct Portal {
    prepared: Rc<Prepared>,
}

impl Portal {
    /// The statement.
    pub fn prepared(&self) -> &Rc<Prepared> {
        &self.prepared
    }
}

/// How far an execution came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executed {
    /// To its end. An empty statement has no tag.
    Complete(Option<CommandTag>),
    /// To the number of rows that was asked for; there may be more.
    Suspended,
}

/// One client's session.
pub struct Session {
    engine: Arc<dyn Engine>,
    env: Arc<dyn Env>,
    start: SessionStart,
    owed: Vec<(Debt, Durability)>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({} at {})", self.start.user, self.start.database)
    }
}

impl Session {
    /// Begins a session: looks up the role and the database, takes the settings.
    ///
    /// # Errors
    /// 28000 and 3D000 for a role or a database that does not exist; what the settings give.
    pub fn new(engine: Arc<dyn Engine>, env: Arc<dyn Env>, start: SessionStart) -> Result<Session> {
        let _ = (&engine, &env);
        Ok(Session {
            engine,
            env,
            start,
            owed: Vec::new(),
        })
    }

    /// Runs one message of the simple protocol: every statement in turn, in one implicit
    /// transaction where they stand outside a block. The sink gets descriptions, rows and tags;
    /// an empty text gives [`Sink::empty_query`].
    pub fn simple_query(&mut self, text: &str, sink: &mut dyn Sink) -> Result<()> {
        let _ = (text, sink, &self.engine, &self.env);
        Err(Error::unsupported("a statement"))
    }

    /// Parses and plans at most one statement. Parameter types of 0, or missing ones, are inferred.
    pub fn prepare(&mut self, text: &str, param_types: &[Oid]) -> Result<Rc<Prepared>> {
        let _ = (text, param_types);
        Err(Error::unsupported("a statement"))
    }

    /// Keeps a prepared statement under a name, which SQL's EXECUTE knows too.
    ///
    /// # Errors
    /// 42P05 when there is one of that name.
    pub fn keep_prepared(&mut self, name: &str, prepared: Rc<Prepared>) -> Result<()> {
        let _ = (name, prepared);
        Ok(())
    }

    /// The prepared statement of that name.
    ///
    /// # Errors
    /// 26000 when there is none.
    pub fn prepared(&self, name: &str) -> Result<Rc<Prepared>> {
        Err(Error::new(
            base::SqlState::INVALID_SQL_STATEMENT_NAME,
            format!("prepared statement \"{name}\" does not exist"),
        ))
    }

    /// Forgets a prepared statement, if there is one of that name.
    pub fn drop_prepared(&mut self, name: &str) {
        let _ = name;
    }

    /// Gives a prepared statement its parameters.
    pub fn bind(&mut self, prepared: &Rc<Prepared>, params: &[Param<'_>]) -> Result<Portal> {
        let _ = params;
        Ok(Portal {
            prepared: prepared.clone(),
        })
    }

    /// Executes a portal, to its end or until it has given `max_rows` rows (0: to its end). The
    /// sink gets rows, notices and parameter changes; no description, no tag.
    pub fn execute(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn Sink,
    ) -> Result<Executed> {
        let _ = (portal, max_rows, sink);
        Ok(Executed::Complete(None))
    }

    /// Ends the implicit transaction, if there is one: commits it, or gives it up after an error.
    /// To be called at Sync; [`Session::simple_query`] does it itself.
    pub fn sync(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let _ = sink;
        Ok(())
    }

    /// Takes an error into account that the protocol layer found itself (a malformed message):
    /// the implicit transaction is rolled back, or the block is in the failed state.
    pub fn fail(&mut self) {}

    /// What ReadyForQuery shows.
    pub fn transaction_status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// What the output of the current message rests on until now, by level: an error that is shown
    /// waits for this, unless its class is [`base::ErrorClass::Engine`].
    pub fn owed(&self) -> &[(Debt, Durability)] {
        &self.owed
    }

    /// The value of a setting as SHOW prints it.
    pub fn setting(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// The settings that ParameterStatus reports at the start of a session, with their values.
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The level of `synchronous_commit` in force.
    pub fn durability(&self) -> Durability {
        Durability::On
    }

    /// Time after which the statement that begins now is to be interrupted.
    pub fn statement_timeout(&self) -> Option<Duration> {
        None
    }

    /// Time after which a session that idles in a transaction is to be ended.
    pub fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        None
    }
}

/// First start of a cluster: writes the catalog's first rows, in one ordinary transaction, and
/// returns what must settle before anyone is let in. Does nothing when they are there.
///
/// The database and role `postgres` and those of `user` will exist.
pub fn bootstrap(engine: &dyn Engine, env: &dyn Env, user: &str) -> Result<Debt> {
    let _ = (engine, env, user);
    Ok(Debt::NONE)
}
