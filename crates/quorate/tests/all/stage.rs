//! Several sessions of one server, each with a thread of its own, so that a test can watch one of
//! them wait while it goes on with another.
//!
//! ```ignore
//! let (ann, bob) = (stage.session(), stage.session());
//! ann.ok("begin; update t set v = 1");
//! bob.start("update t set v = 2");
//! bob.waits();
//! ann.ok("commit");
//! assert_eq!(bob.finish(), Ok("UPDATE 1".into()));
//! ```
//!
//! On three nodes of Quorate, sessions go round the nodes: the first to one that does not lead.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use lab::host::Endpoint;
use postgres::{CancelToken, Client, SimpleQueryMessage};

use crate::shared;
use crate::writers::connect;

/// A statement that has not answered after this waits for something.
const WAITING: Duration = Duration::from_millis(150);

/// A statement that has not answered after this never will: others may be making gigabytes beside it.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// What a statement gives: rows as `a|b`, one a line, or the SQLSTATE of its error and its message.
pub type Outcome = Result<String, Refusal>;

/// An error of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its SQLSTATE.
    pub state: String,
    /// Its message.
    pub message: String,
}

/// A server with room for sessions.
pub struct Stage {
    nodes: Vec<Endpoint>,
    next: AtomicUsize,
}

impl Stage {
    /// PostgreSQL.
    pub fn postgresql() -> Stage {
        Stage::of(vec![shared::postgres().clone()])
    }

    /// Three nodes of Quorate.
    pub fn quorate() -> Stage {
        Stage::of(shared::follower_first())
    }

    /// One node of Quorate.
    pub fn one_node() -> Stage {
        Stage::of(shared::one_node().nodes().to_vec())
    }

    /// The same server, for another thread.
    pub fn another(&self) -> Stage {
        Stage::of(self.nodes.clone())
    }

    fn of(nodes: Vec<Endpoint>) -> Stage {
        let next = AtomicUsize::new(0);
        Stage { nodes, next }
    }

    /// Where the server listens.
    pub fn nodes(&self) -> &[Endpoint] {
        &self.nodes
    }

    /// A new session, at the next node.
    pub fn session(&self) -> Session {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let node = &self.nodes[next % self.nodes.len()];
        Session::new(connect(node).expect("a session"))
    }

    /// Makes a table, anew.
    pub fn table(&self, name: &str, columns: &str, rows: &str) {
        let session = self.session();
        session.ok(&format!("drop table if exists {name}"));
        session.ok(&format!("create table {name} ({columns})"));
        if !rows.is_empty() {
            session.ok(&format!("insert into {name} values {rows}"));
        }
    }
}

/// A session with a thread of its own. Dropping it closes the connection.
pub struct Session {
    statements: Sender<String>,
    outcomes: Receiver<Outcome>,
    cancel: CancelToken,
}

impl Session {
    /// The session of a client.
    pub fn new(mut client: Client) -> Session {
        let (statements, asked) = channel::<String>();
        let (told, outcomes) = channel();
        let cancel = client.cancel_token();
        std::thread::spawn(move || {
            for statement in asked {
                if told.send(outcome(&mut client, &statement)).is_err() {
                    return;
                }
            }
        });
        Session {
            statements,
            outcomes,
            cancel,
        }
    }

    /// Sends a statement and goes on; [`Session::finish`] gives its outcome.
    pub fn start(&self, statement: &str) {
        let sent = self.statements.send(statement.to_owned());
        sent.expect("the session lives");
    }

    /// Asserts that what was started waits.
    pub fn waits(&self) {
        match self.outcomes.recv_timeout(WAITING) {
            Err(RecvTimeoutError::Timeout) => {}
            other => panic!("it does not wait: {other:?}"),
        }
    }

    /// The outcome of what was started.
    pub fn finish(&self) -> Outcome {
        let outcome = self.outcomes.recv_timeout(ANSWER_MAX);
        outcome.expect("an answer in time")
    }

    /// The outcome of what was started, unless it takes longer than `patience`.
    pub fn answered(&self, patience: Duration) -> Option<Outcome> {
        match self.outcomes.recv_timeout(patience) {
            Ok(outcome) => Some(outcome),
            Err(RecvTimeoutError::Timeout) => None,
            Err(error) => panic!("the session is gone: {error}"),
        }
    }

    /// Runs a statement.
    pub fn answer(&self, statement: &str) -> Outcome {
        self.start(statement);
        self.finish()
    }

    /// Runs a statement that must succeed.
    pub fn ok(&self, statement: &str) -> String {
        self.start(statement);
        match self.finish() {
            Ok(answer) => answer,
            Err(refusal) => panic!("{statement}: {refusal:?}"),
        }
    }

    /// Runs a statement that must fail, and returns the SQLSTATE.
    pub fn refused(&self, statement: &str) -> String {
        self.start(statement);
        match self.finish() {
            Ok(answer) => panic!("{statement} succeeded: {answer}"),
            Err(refusal) => refusal.state,
        }
    }

    /// Cancels the running statement, as a driver does.
    pub fn cancel(&self) {
        let cancelled = self.cancel.cancel_query(postgres::NoTls);
        cancelled.expect("the request is sent");
    }
}

fn outcome(client: &mut Client, statement: &str) -> Outcome {
    let messages = client
        .simple_query(statement)
        .map_err(|error| match error.as_db_error() {
            Some(error) => Refusal {
                state: error.code().code().to_owned(),
                message: error.message().to_owned(),
            },
            None => Refusal {
                state: "broken".to_owned(),
                message: error.to_string(),
            },
        })?;
    let mut lines = Vec::new();
    for message in &messages {
        if let SimpleQueryMessage::Row(row) = message {
            let values = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
            lines.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    // Without rows, the number of rows that the last statement touched.
    if let (true, Some(SimpleQueryMessage::CommandComplete(count))) =
        (lines.is_empty(), messages.last())
    {
        lines.push(format!("{count} touched"));
    }
    Ok(lines.join("\n"))
}
