//! What a session says to the server's log: who connects and how that ends, errors, and the
//! statements that the settings want there.
//!
//! ```text
//! 2026-11-22 09:07:48.076 UTC [873] ERROR:  division by zero
//! 2026-11-22 09:07:48.076 UTC [873] STATEMENT:  select 1/0;
//! ```
//! A session's messages are in the log of the node that serves it; that a connection came in is in
//! the log of the node that it came to. The forms are PostgreSQL's: lines of text, CSV, JSON
//! ([`lines`]). Passwords are masked in all of them ([`secrets`]).
//!
//! # What it leaves out
//! The ids of transactions, which have one only once somebody asks for it, those of queries, and
//! places in source files: their columns are empty, but for the query's id, which is 0 as in PostgreSQL
//! without one.
//!
//! Source: PostgreSQL 15 manual, section 20.8.

pub mod lines;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use ::sql::session::{secrets, LogContext, LogLevel, LogSettings};
use base::env::{Env, LogDestination};
use base::error::{Error, ErrorClass, SqlState};
use base::Timestamp;

use lines::Line;

/// Who a session is to the log.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// The session's number.
    pub pid: i32,
    /// The role that the client names; empty while it has not.
    pub user: String,
    /// The database that it names; empty while it has not.
    pub database: String,
    /// The client's address and port.
    pub client: Option<(String, u16)>,
    /// When its connection was taken.
    pub started: Timestamp,
    /// What the process is.
    pub kind: Kind,
}

/// `backend_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    /// A connection that nothing is known of.
    NotInitialized,
    /// A client's session.
    #[default]
    Client,
    /// The node itself.
    Node,
}

impl Kind {
    /// As the log names it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NotInitialized => "not initialized",
            Kind::Client => "client backend",
            Kind::Node => "node",
        }
    }
}

/// A message for the log.
#[derive(Debug)]
pub struct Entry<'a> {
    /// How serious it is.
    pub level: LogLevel,
    /// Its state, message and fields.
    pub body: &'a Error,
    /// The statement at work.
    pub statement: Option<&'a str>,
}

/// One session's way to the log. That of nobody says nothing.
#[derive(Default)]
pub struct SessionLog {
    env: Option<Arc<dyn Env>>,
    who: Who,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    context: Option<LogContext>,
    /// The statement that has ended the session.
    statement: Option<String>,
    /// How many lines there were, by destination.
    counts: [u64; 3],
}

impl std::fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionLog({})", self.who.pid)
    }
}

impl SessionLog {
    /// That of a connection that was just taken, under the settings of the node.
    pub fn new(env: Arc<dyn Env>, who: Who, settings: Arc<LogSettings>) -> SessionLog {
        let context = LogContext {
            settings,
            application: String::new(),
            command: match who.kind {
                Kind::NotInitialized | Kind::Node => "",
                Kind::Client => "authentication",
            },
            virtual_xid: 0,
            xid: 0,
        };
        SessionLog {
            env: Some(env),
            who,
            state: RefCell::new(State {
                context: Some(context),
                ..State::default()
            }),
        }
    }

    /// The session is that of a connection which [`SessionLog::received`] was told of: its lines are
    /// counted on from there.
    pub fn follows_received(&self) {
        let is_logged = self.settings().is_some_and(|settings| settings.connections);
        if is_logged {
            self.state.borrow_mut().counts = [1; 3];
        }
    }

    /// Remembers what the session is, for what is said when it is no more.
    pub fn remember(&self, context: Option<LogContext>) {
        if context.is_some() {
            self.state.borrow_mut().context = context;
        }
    }

    /// Names what the session does before it has begun.
    pub fn set_command(&self, command: &'static str) {
        if let Some(context) = &mut self.state.borrow_mut().context {
            context.command = command;
        }
    }

    /// Remembers the statement at which the session ends.
    pub fn ends_in(&self, statement: Option<&str>) {
        self.state.borrow_mut().statement = statement.map(str::to_owned);
    }

    /// The settings that were remembered last.
    fn settings(&self) -> Option<Arc<LogSettings>> {
        let state = self.state.borrow();
        state
            .context
            .as_ref()
            .map(|context| context.settings.clone())
    }

    // ---- Connections ----

    /// A connection came in.
    pub fn received(&self) {
        if !self.settings().is_some_and(|settings| settings.connections) {
            return;
        }
        let message = match &self.who.client {
            Some((host, port)) => format!("connection received: host={host} port={port}"),
            None => "connection received: host=[local]".to_owned(),
        };
        self.say(message);
    }

    /// The client has shown who it is, by a method, as a line of the rules asks.
    pub fn authenticated(&self, identity: &str, method: &str, line: u32) {
        if self.settings().is_some_and(|settings| settings.connections) {
            self.say(format!(
                "connection authenticated: identity=\"{identity}\" method={method} \
                 (pg_hba.conf:{line})"
            ));
        }
    }

    /// It is let in.
    pub fn authorized(&self, application: &str, encryption: Option<String>) {
        if !self.settings().is_some_and(|settings| settings.connections) {
            return;
        }
        let Who { user, database, .. } = &self.who;
        let mut message = format!("connection authorized: user={user} database={database}");
        if !application.is_empty() {
            message.push_str(&format!(" application_name={application}"));
        }
        if let Some(encryption) = encryption {
            message.push_str(&format!(" SSL enabled ({encryption})"));
        }
        self.say(message);
    }

    /// The session has ended.
    pub fn disconnected(&self) {
        let (Some(env), Some(settings)) = (&self.env, self.settings()) else {
            return;
        };
        if !settings.disconnections {
            return;
        }
        self.set_command("idle");
        let millis = (env.wall_clock().0 - self.who.started.0).max(0) / 1_000;
        let (seconds, millis) = (millis / 1_000, millis % 1_000);
        let time = format!(
            "{}:{:02}:{:02}.{millis:03}",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60
        );
        let Who { user, database, .. } = &self.who;
        let from = match &self.who.client {
            Some((host, port)) => format!("host={host} port={port}"),
            None => "host=[local]".to_owned(),
        };
        self.say(format!(
            "disconnection: session time: {time} user={user} database={database} {from}"
        ));
    }

    fn say(&self, message: impl Into<String>) {
        let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
        self.report(&Entry {
            level: LogLevel::Log,
            body: &body,
            statement: None,
        });
    }

    // ---- Messages ----

    /// Logs what ends the session, or its beginning.
    pub fn fatal(&self, error: &Error) {
        let level = match error.class() {
            ErrorClass::Node => LogLevel::Panic,
            _ => LogLevel::Fatal,
        };
        let statement = self.state.borrow_mut().statement.take();
        self.report(&Entry {
            level,
            body: error,
            statement: statement.as_deref(),
        });
    }

    /// Logs a message of a session that is still as it was when [`SessionLog::remember`] was told.
    pub fn report(&self, entry: &Entry<'_>) {
        let context = self.state.borrow().context.clone();
        if let Some(context) = context {
            self.write(entry, &context);
        }
    }

    /// Logs a message, if the settings want it.
    pub fn write(&self, entry: &Entry<'_>, context: &LogContext) {
        let (Some(env), settings) = (&self.env, &context.settings) else {
            return;
        };
        if entry.level < settings.min_messages || settings.destinations.is_empty() {
            return;
        }
        let now = env.wall_clock();
        let entry = Entry {
            statement: entry
                .statement
                .filter(|_| entry.level >= settings.min_error_statement),
            ..*entry
        };
        let body = masked(&entry);
        let statement = entry.statement.map(secrets::mask);
        for destination in &settings.destinations {
            let mut state = self.state.borrow_mut();
            let count = &mut state.counts[match destination {
                LogDestination::Stderr => 0,
                LogDestination::Csv => 1,
                LogDestination::Json => 2,
            }];
            let mut line = Line {
                who: &self.who,
                context,
                level: entry.level,
                body: &body,
                statement: statement.as_deref(),
                now,
                count,
            };
            let text = match destination {
                LogDestination::Stderr => line.text(),
                LogDestination::Csv => line.csv(),
                LogDestination::Json => line.json(),
            };
            drop(state);
            env.write_log(*destination, text);
        }
    }
}

/// A line that the node of that name says of itself, as CSV or JSON; the columns that are about
/// sessions are empty.
pub fn own_record(
    to: LogDestination,
    (who, name): (&Who, &str),
    (level, body): (LogLevel, &Error),
    now: Timestamp,
    count: &mut u64,
) -> String {
    let context = LogContext {
        settings: Arc::new(LogSettings::usual()),
        application: name.to_owned(),
        command: "",
        virtual_xid: 0,
        xid: 0,
    };
    let mut line = Line {
        who,
        context: &context,
        level,
        body,
        statement: None,
        now,
        count,
    };
    match to {
        LogDestination::Json => line.json(),
        LogDestination::Stderr | LogDestination::Csv => line.csv(),
    }
}

/// What is said without the passwords of the statements that it is about.
fn masked(entry: &Entry<'_>) -> Error {
    let fields = entry.body.fields();
    let inner = fields.internal_query.as_deref().unwrap_or("");
    let outer = entry.statement.unwrap_or("");
    let clean = |text: &str| {
        let text = secrets::mask_message(outer, text);
        secrets::mask_message(inner, &text).into_owned()
    };
    let mut body = Error::new(entry.body.state(), clean(entry.body.message()));
    let shown = body.fields_mut();
    *shown = fields.clone();
    for field in [&mut shown.detail, &mut shown.log_detail, &mut shown.hint] {
        *field = field.as_deref().map(clean);
    }
    shown.internal_query = (!inner.is_empty()).then(|| secrets::mask(inner).into_owned());
    shown.context = fields
        .context
        .as_deref()
        .map(|context| clean(&secrets::mask_context(context)));
    body
}

/// A time as the log gives it for statements: milliseconds, with three digits behind the point.
pub fn duration_text(took: Duration) -> String {
    let micros = took.as_micros();
    format!("{}.{:03} ms", micros / 1_000, micros % 1_000)
}
