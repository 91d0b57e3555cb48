//! One client's session as a state machine: messages in, output with its debt out.
//!
//! A [`Session`] lives inside a coroutine while it works ([`run`]) and belongs to its driver while
//! it idles; what both need at once is the [`Channel`]: received bytes, output, the deadline of the
//! statement. The driver reads, writes, opens the gate and keeps the time; see
//! `crates/node/src/session.rs` for the one that serves sockets.
//!
//! ```text
//!  stream ─read→ Channel.input ──→ Session ──→ sql::Session ──→ engine
//!  stream ←write─ Channel.output ←─ Replies (Sink) ←──┘
//!                     ▲ the driver opens the gate
//! ```
//!
//! # Cycles
//! A Query is answered up to ReadyForQuery, and so is a FunctionCall. In the extended protocol
//! everything up to Sync is one cycle; after an error the rest of it is skipped. Outside a block a cycle is one implicit
//! transaction, which `sql` keeps (PostgreSQL 15 manual, sections 55.2.2.1 and 55.2.3).
//!
//! # COPY
//! COPY FROM STDIN waits inside its statement for CopyData, and takes it straight from the
//! [`Channel`]; Flush and Sync among it say nothing, as in PostgreSQL. What still comes after the
//! statement has failed is thrown away. Rows of COPY TO STDOUT are output like others: at
//! [`base::limits::HELD_OUTPUT_BYTES_MAX`] the statement waits until some has left.
//!
//! # Panics
//! A panic is the error of the message that met it: XX000, its transaction is rolled back, what was
//! half said is taken back, and the log has the statement beside the panic. One in the middle of a
//! commit ends the session with 08007, because its outcome is not known here. Panics with a latch
//! held stop the node (`crates/node/src/real/mod.rs`): what others share may be half changed.
//!
//! # What it leaves out
//! The `F` and `L` fields of errors, which name PostgreSQL's source files; of `R` what drivers go by.

mod extended;
mod function_call;
mod hearing;

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::sql::catalog::shared::Catalogs;
use ::sql::session::activity::{Activity, Registry};
use ::sql::session::{secrets, LogLevel};
use base::coro::{self, Interrupt, Interrupts};
use base::engine::{Engine, Flight, Heard};
use base::env::{self, Env, Instant};
use base::error::{Error, ErrorClass, Result, SqlState};
use base::hash::HashMap;
use base::memory::Reservation;
use base::Lsn;
use sql::session as sql;
use sql::{Format, SessionStart};

use crate::auth::{Access, Request};
use crate::backend::{self, Backend, Severity, TransactionStatus};
use crate::channel::{Channel, RowFormats};
use crate::frame::{violation, Message};
use crate::frontend::{in_utf8, Frontend};
use crate::handover::{answer_lost, look_into_flight, lost_with_leader, InFlight, Note, Resume};
use crate::log::{duration_text, Entry};
use crate::output::Content;
use crate::replies::{severity_of, Replies};
use crate::seam::Sql;
use crate::startup::{CancelKey, StartupParameters};

pub use hearing::hear;

/// Pipelined messages that a session handles before it gives way to others.
const MESSAGES_PER_YIELD: usize = 64;

/// Parameters of a Bind that need no memory of their own.
const INLINE_PARAMS: usize = 16;

/// What clients of PostgreSQL 15 expect to be told when they connect, and what they are told of
/// settings that `sql` does not report itself.
const REPORTED_DEFAULTS: &[(&str, &str)] = &[
    ("application_name", ""),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("default_transaction_read_only", "off"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "on"),
    ("server_encoding", "UTF8"),
    ("server_version", SERVER_VERSION),
    ("session_authorization", "postgres"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "UTC"),
];

/// Clients read the number in front: to them this is PostgreSQL 15.
pub const SERVER_VERSION: &str = concat!("15.0 (Quorate ", env!("CARGO_PKG_VERSION"), ")");

/// Why [`run`] returned.
#[derive(Debug)]
pub enum Turn {
    /// Every message that was there has been handled, or too much output is held.
    Idle,
    /// The leader was lost, or leads no longer, before anything of a cycle was done: its input is to
    /// be handled elsewhere. None of its output is left.
    Elsewhere,
    /// The client has said goodbye.
    Terminated,
    /// The connection cannot go on.
    Fatal(Error),
}

/// Who a session is and where it comes from.
pub struct Identity {
    /// What the client asked for.
    pub startup: StartupParameters,
    /// Settings that the node's configuration gives to every session.
    pub defaults: Vec<(String, String)>,
    /// Names the session to whoever wants to cancel its statement.
    pub key: CancelKey,
    /// The client's address, without and with its port.
    pub client: Option<(String, u16)>,
    /// The address and port on which it was accepted.
    pub server: Option<(String, u16)>,
    /// Where others leave interrupts.
    pub interrupts: Arc<Interrupts>,
    /// Where others see what the session does.
    pub activity: Arc<Activity>,
    /// The sessions of this node.
    pub registry: Arc<dyn Registry>,
    /// The catalogs that they share.
    pub catalogs: Arc<Catalogs>,
    /// What is known of the connection.
    pub access: Access,
    /// The cluster's, for roles that are not there ([`crate::auth::scram::Exchange::mock`]).
    pub mock_key: Vec<u8>,
    /// The client must have shown who it is within this time.
    pub authentication_timeout: Duration,
    /// The session's number among those that are passed on.
    pub number: u64,
    /// Whether another node has the client.
    pub passed_on: bool,
    /// What it was, if it was served elsewhere before.
    pub resume: Option<Resume>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.key.pid)
    }
}

/// A portal with the formats that its rows are wanted in.
struct OpenPortal<S: Sql> {
    portal: S::Portal,
    formats: RowFormats,
    complete: bool,
    /// Whether SQL has declared it, as a cursor; then it is looked for anew each time.
    of_sql: bool,
    /// The names of its statement and its own, where the log may want them.
    logged_as: Option<String>,
}

/// One client's session.
pub struct Session<S: Sql = sql::Session> {
    sql: S,
    env: Arc<dyn Env>,
    channel: Rc<Channel>,
    interrupts: Arc<Interrupts>,
    message: Message,
    unnamed_statement: Option<Rc<S::Prepared>>,
    unnamed_portal: Option<OpenPortal<S>>,
    portals: HashMap<String, OpenPortal<S>>,
    /// Cycles that were answered.
    cycles: u64,
    /// The session's number, where another node has its client.
    passed_on: Option<u64>,
    /// An error was answered; everything up to Sync is skipped.
    skipping: bool,
    /// An extended-protocol cycle has begun and awaits its Sync.
    in_batch: bool,
    /// The statement of the message at work, for the log.
    at_work: Option<Rc<S::Prepared>>,
    /// The text of a statement that could not be prepared.
    unprepared: Option<String>,
    /// The session can go on elsewhere.
    moves: bool,
    /// Where a cycle began outside a block, with nothing said that was still to leave: how many
    /// commits there were. None where it can only be answered here.
    repeatable: Option<u64>,
    /// Up to where whoever has the client was told that it has heard notifications.
    told_heard: Option<Heard>,
}

impl<S: Sql> std::fmt::Debug for Session<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({:?})", self.status())
    }
}

/// Handles every message that has arrived, inside a coroutine.
pub fn run<S: Sql>(mut session: Box<Session<S>>) -> (Box<Session<S>>, Turn) {
    let mut handled = 0;
    let turn = loop {
        if !session.channel.has_room() {
            break Turn::Idle;
        }
        match session.step() {
            Ok(Step::Handled) => {}
            Ok(Step::NothingThere) => break Turn::Idle,
            Ok(Step::Elsewhere) => break Turn::Elsewhere,
            Ok(Step::Terminate) => break Turn::Terminated,
            Err(error) => break Turn::Fatal(error),
        }
        handled += 1;
        if handled % MESSAGES_PER_YIELD == 0 {
            give_way();
        }
    };
    (session, turn)
}

/// Lets other sessions run, without looking for interrupts, which belong to statements.
fn give_way() {
    coro::wait_uninterrupted(base::turns::give_way());
}

enum Step {
    Handled,
    NothingThere,
    Elsewhere,
    Terminate,
}

impl Session {
    /// Begins a session, inside a coroutine: lets the client show who it is, checks the role and the
    /// database, and answers the startup message.
    ///
    /// One that was served elsewhere greets nobody: what was in flight there is looked into first.
    ///
    /// # Errors
    /// Those that end the connection: 28P01, 28000, 3D000, 53300, settings that are refused, 08007;
    /// and 40001 when this node does not lead any more, and the session may begin elsewhere.
    pub fn start(
        engine: Arc<Engine>,
        env: Arc<dyn Env>,
        channel: Rc<Channel>,
        identity: Identity,
    ) -> Result<Box<Session>> {
        let Identity {
            startup,
            defaults,
            key,
            client,
            server,
            interrupts,
            activity,
            registry,
            catalogs,
            access,
            mock_key,
            authentication_timeout,
            number,
            passed_on,
            resume,
        } = identity;
        let request = Request {
            engine: &engine,
            env: &*env,
            channel: &channel,
            startup: &startup,
            client: client.as_ref().map(|(address, _)| &address[..]),
            access: &access,
            mock_key: &mock_key,
            within: authentication_timeout,
        };
        // One that was served elsewhere has shown there who it is.
        if resume.is_none() {
            request.authenticate().map_err(into_fatal)?;
            let application = startup.settings.iter();
            let mut application = application.filter(|(name, _)| name == "application_name");
            let application = application.next_back().map_or("", |(_, value)| value);
            channel.log.authorized(application, access.encryption());
            channel.log.set_command("startup");
        }
        let (client_address, client_port) = client.unzip();
        let start = SessionStart {
            user: startup.user,
            database: startup.database,
            backend_pid: key.pid,
            client_address,
            client_port,
            server_address: server,
            interrupts: interrupts.clone(),
            defaults,
            settings: startup.settings,
            activity,
            tls: access.tls_info(),
            registry: Some(registry),
            catalogs,
            is_automatic: false,
        };
        if let Some(resume) = &resume {
            look_into_flight(engine.outcomes()?, number, resume)?;
        }
        let moves = !engine.cluster.is_standby();
        let sql = sql::Session::new(engine, env.clone(), start).map_err(into_fatal)?;
        let mut session = Session::with(sql, env, channel, interrupts);
        session.moves = moves;
        session.passed_on = passed_on.then_some(number);
        match &resume {
            Some(resume) => {
                session.resume(resume).map_err(into_fatal)?;
                session.note(Vec::new());
            }
            None => session.greet(key, startup.minor, &startup.unknown_options),
        }
        session.remember();
        Ok(Box::new(session))
    }
}

impl<S: Sql> Session<S> {
    /// A session that has not greeted its client.
    pub fn with(
        sql: S,
        env: Arc<dyn Env>,
        channel: Rc<Channel>,
        interrupts: Arc<Interrupts>,
    ) -> Session<S> {
        Session {
            sql,
            env,
            channel,
            interrupts,
            message: Message::default(),
            unnamed_statement: None,
            unnamed_portal: None,
            portals: HashMap::default(),
            cycles: 0,
            passed_on: None,
            skipping: false,
            in_batch: false,
            at_work: None,
            unprepared: None,
            moves: false,
            repeatable: None,
            told_heard: None,
        }
    }

    /// Tells the client that it is in.
    pub fn greet(&mut self, key: CancelKey, minor: u16, unknown_options: &[String]) {
        let warnings = self.sql.take_warnings();
        let encoding = self.sql.client_encoding();
        self.channel.encoding.set(encoding);
        let mut output = self.channel.output.borrow_mut();
        for (debt, durability) in self.sql.owed() {
            output.owe(debt, *durability);
        }
        output.push(Content::Shown, |out| {
            if minor > 0 || !unknown_options.is_empty() {
                let names = unknown_options.iter().map(String::as_bytes).collect();
                Backend::NegotiateProtocolVersion(0, names).encode(out);
            }
            Backend::AuthenticationOk.encode(out);
            let settings = self.sql.reported_settings();
            for (name, value) in &settings {
                put_status(out, name, value, encoding);
            }
            for (name, value) in REPORTED_DEFAULTS {
                if !settings.iter().any(|(known, _)| known == name) {
                    Backend::ParameterStatus(name.as_bytes(), value.as_bytes()).encode(out);
                }
            }
            Backend::BackendKeyData(key).encode(out);
            for warning in &warnings {
                backend::put_notice(out, severity_of(warning), &warning.body);
            }
        });
        drop(output);
        self.end_cycle();
    }

    /// What ReadyForQuery would say.
    pub fn status(&self) -> TransactionStatus {
        match self.sql.transaction_status() {
            sql::TransactionStatus::Idle => TransactionStatus::Idle,
            sql::TransactionStatus::InBlock => TransactionStatus::Block,
            sql::TransactionStatus::Failed => TransactionStatus::Failed,
        }
    }

    /// Whether the client has sent part of an extended-protocol cycle and not its Sync.
    pub fn in_batch(&self) -> bool {
        self.in_batch
    }

    /// For how long the session may idle as it is now, and with what it ends after that.
    pub fn idle_limit(&self) -> Option<(Duration, Error)> {
        if self.in_batch || self.status() != TransactionStatus::Idle {
            let limit = self.sql.idle_in_transaction_timeout()?;
            return Some((limit, Error::from(Interrupt::IdleTimeout)));
        }
        let limit = self.sql.idle_session_timeout()?;
        let message = "terminating connection due to idle-session timeout";
        let state = SqlState::IDLE_SESSION_TIMEOUT;
        Some((limit, Error::of_class(ErrorClass::Session, state, message)))
    }

    /// What the session's transaction has shown or done cannot stand: it fails, and the rest of
    /// the cycle, if one is going on, is skipped.
    pub fn fail(&mut self) {
        self.sql.fail();
        self.skipping |= self.in_batch;
    }

    fn step(&mut self) -> Result<Step> {
        if !self.in_batch && self.moves {
            self.begin_cycle();
        }
        let mut message = std::mem::take(&mut self.message);
        let taken = self.channel.input.borrow_mut().next_into(&mut message);
        let step = match taken {
            Ok(true) => self.handle_contained(message.kind, &message.body),
            Ok(false) => Ok(Step::NothingThere),
            Err(error) => Err(error),
        };
        self.message = message;
        step
    }

    /// Handles a message; a panic on the way becomes its error.
    fn handle_contained(&mut self, kind: u8, body: &[u8]) -> Result<Step> {
        if !self.env.contains_panics() {
            return self.handle(kind, body);
        }
        match coro::catch_panic(|| self.handle(kind, body)) {
            Ok(step) => step,
            Err(panic) => coro::catch_panic(|| self.panicked(kind, &panic))
                .unwrap_or_else(|panic| Err(lost_to(&panic))),
        }
    }

    /// What was going on has panicked: nothing of it stays, and the session goes on.
    fn panicked(&mut self, kind: u8, panic: &str) -> Result<Step> {
        let statement = self.sql.running();
        let what = format!("a statement ended by a panic: {panic}; statement: {statement}");
        self.env.log(env::Severity::Error, &what);
        if self.sql.is_committing() {
            return Err(answer_lost(None));
        }
        self.sql.fail();
        if self.status() == TransactionStatus::Idle {
            self.drop_portals();
        }
        let error = Error::internal(format!("internal error: {panic}"));
        self.error(&error, Some(&statement))?;
        match kind {
            // Whatever was skipped, Sync ends it.
            b'Q' | b'S' | b'F' => {
                let channel = self.channel.clone();
                let mut replies = Replies::new(&channel, RowFormats::All(Format::Text), None);
                self.sql.sync(&mut replies)?;
                self.skipping = false;
                self.in_batch = false;
                self.end_cycle();
            }
            _ => {
                self.skipping = true;
                let mut output = self.channel.output.borrow_mut();
                output.flush();
                output.end_message();
            }
        }
        Ok(Step::Handled)
    }

    fn handle(&mut self, kind: u8, body: &[u8]) -> Result<Step> {
        let encoding = self.sql.client_encoding();
        self.channel.encoding.set(encoding);
        if encoding.is_kept() || self.skipping {
            return self.handle_text(kind, body, Ok(()));
        }
        // It lies in memory in both encodings for a while.
        let mut held = Reservation::of("A message");
        let text = held.grow(3 * body.len());
        match text.and_then(|()| in_utf8(kind, body, encoding)) {
            Ok(text) => self.handle_text(kind, &text, Ok(())),
            Err(unreadable) => {
                let unreadable = Err(self.failed(unreadable));
                self.handle_text(kind, body, unreadable)
            }
        }
    }

    /// Handles a message whose text is in UTF-8, if it could be read.
    fn handle_text(&mut self, kind: u8, body: &[u8], read: Result<()>) -> Result<Step> {
        let message = Frontend::decode(kind, body)?;
        if self.skipping && !matches!(message, Frontend::Sync | Frontend::Terminate) {
            return Ok(Step::Handled);
        }
        // The message lies in memory of its own, and what is in it is copied once more.
        let mut held = Reservation::of("A message");
        let kept = read.and_then(|()| held.grow(2 * body.len()));
        match message {
            Frontend::Query(text) => return self.query(text, kept),
            Frontend::Parse(parse) => {
                return self.extended(|session| kept.and_then(|()| session.parse(&parse)));
            }
            Frontend::Bind(bind) => {
                return self.extended(|session| kept.and_then(|()| session.bind(&bind)));
            }
            Frontend::Describe(target) => {
                return self.extended(|session| kept.and_then(|()| session.describe(target)));
            }
            Frontend::Execute { portal, rows_max } => {
                return self
                    .extended(|session| kept.and_then(|()| session.execute(portal, rows_max)));
            }
            Frontend::Close(target) => {
                return self.extended(|session| kept.and_then(|()| session.close(target)));
            }
            Frontend::Flush => self.channel.output.borrow_mut().flush(),
            Frontend::Sync => return self.sync(),
            Frontend::Terminate => return Ok(Step::Terminate),
            // As PostgreSQL: the rest of a COPY that has failed may still be on its way.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => {}
            Frontend::FunctionCall(call) => return self.function_call(&call, kept),
            Frontend::Password => {
                return Err(violation(format!("invalid frontend message type {kind}")))
            }
        }
        Ok(Step::Handled)
    }

    // ---- The simple protocol ----

    /// Answers a query whose text there is memory for, or not.
    fn query(&mut self, text: &[u8], kept: Result<()>) -> Result<Step> {
        let began = self.env.now();
        self.begin_statement();
        self.unnamed_statement = None;
        self.unnamed_portal = None;
        let before = self.status();
        let channel = self.channel.clone();
        let shown = std::str::from_utf8(text).ok();
        let mut replies = Replies::new(&channel, RowFormats::All(Format::Text), shown);
        let result = kept
            .and_then(|()| utf8(text))
            .inspect_err(|_| self.sql.fail())
            .and_then(|text| self.sql.simple_query(text, &mut replies));
        let was_logged = replies.was_logged;
        let in_block = before == TransactionStatus::Block && before == self.status();
        match result {
            Ok(()) => replies.finish(in_block),
            Err(error) if self.goes_elsewhere(&error) => return Ok(Step::Elsewhere),
            Err(error) => {
                replies.finish(false);
                self.error(&error, shown)?;
                self.in_batch = false;
                self.end_cycle();
                return Ok(Step::Handled);
            }
        }
        self.log_duration(began, was_logged, || {
            format!("statement: {}", shown.unwrap_or_default())
        });
        self.in_batch = false;
        self.end_cycle();
        Ok(Step::Handled)
    }

    // ---- What both protocols share ----

    /// The next message begins a cycle, which may have to be handled elsewhere.
    fn begin_cycle(&mut self) {
        let output = self.channel.output.borrow();
        let is_first = output.pending() == 0 && self.status() == TransactionStatus::Idle;
        self.repeatable = is_first.then(|| output.commit_count());
        // Who has passed the session on has its input.
        if self.passed_on.is_none() {
            let mut input = self.channel.input.borrow_mut();
            match is_first {
                true => input.keep(),
                false => input.forget(),
            }
        }
    }

    /// Whether the cycle is to be handled elsewhere, instead of being answered with this error:
    /// nothing of it was appended to the log, and nobody has heard anything of it. Then it is as if
    /// it had not come.
    fn goes_elsewhere(&mut self, error: &Error) -> bool {
        let mut output = self.channel.output.borrow_mut();
        let is_undone = error.is_failover()
            && self.repeatable == Some(output.commit_count())
            && self.status() == TransactionStatus::Idle
            && output.is_unheard();
        if !is_undone || self.passed_on.is_none() && !self.channel.input.borrow_mut().rewind() {
            return false;
        }
        output.unsay();
        drop(output);
        self.sql.fail();
        self.skipping = false;
        self.in_batch = false;
        self.drop_portals();
        self.channel.deadline.set(None);
        true
    }

    /// A cancel that came while nothing ran does not concern this statement, and its time begins.
    fn begin_statement(&mut self) {
        self.interrupts.clear_statement();
        let timeout = self.sql.statement_timeout();
        let deadline = timeout.map(|timeout| self.env.now().after(timeout));
        self.channel.deadline.set(deadline);
    }

    fn end_cycle(&mut self) {
        let status = self.status();
        if status == TransactionStatus::Idle {
            self.drop_portals();
        }
        self.cycles += 1;
        self.channel.input.borrow_mut().forget();
        let messages = match status {
            TransactionStatus::Idle => self.hear_at_end(),
            _ => Vec::new(),
        };
        let note = self.note(messages);
        let mut output = self.channel.output.borrow_mut();
        output.end_cycle_with(status, note);
        output.end_message();
        // What is held and was only read stays under the statement's time.
        if !output.waits_for_read() {
            self.channel.deadline.set(None);
        }
    }

    /// What whoever has the client is told with the end of the cycle, or while the session idles, and
    /// what the client is told beside.
    fn note(&mut self, messages: Vec<u8>) -> Vec<u8> {
        let Some(session) = self.passed_on else {
            return messages;
        };
        self.sql.set_flight(Flight {
            session,
            number: self.cycles + 1,
        });
        let note = Note {
            handled: self.channel.input.borrow().taken(),
            pinned: self.sql.is_pinned().unwrap_or_default().to_owned(),
            state: self.sql.changes(),
            heard: self.sql.heard(),
            messages,
        };
        self.told_heard = note.heard;
        let mut out = Vec::new();
        note.encode(&mut out);
        out
    }

    /// What the session is, for another node to go on with; or what keeps it here.
    ///
    /// # Errors
    /// 57P01.
    pub fn leave(&mut self) -> Result<Resume> {
        if let Some(held) = self.sql.is_pinned() {
            return Err(lost_with_leader(held));
        }
        Ok(Resume {
            cycles: self.cycles,
            status: self.status(),
            in_flight: InFlight::Nothing,
            since: Lsn::ZERO,
            state: self.sql.pack(),
            heard: self.sql.heard(),
        })
    }

    /// Goes on as a session that was served elsewhere.
    fn resume(&mut self, resume: &Resume) -> Result<()> {
        self.cycles = resume.cycles;
        let status = match resume.status {
            TransactionStatus::Idle => sql::TransactionStatus::Idle,
            TransactionStatus::Block => sql::TransactionStatus::InBlock,
            TransactionStatus::Failed => sql::TransactionStatus::Failed,
        };
        self.sql.resume(&resume.state, status, resume.heard)
    }

    fn drop_portals(&mut self) {
        self.unnamed_portal = None;
        self.portals.clear();
    }

    /// What the session is to the log goes there, for whatever ends it.
    pub fn remember(&self) {
        self.channel.log.remember(self.sql.log_context());
    }

    /// Logs how long a message took, if the settings want it.
    fn log_duration(&self, began: Instant, was_logged: bool, what: impl FnOnce() -> String) {
        let Some(settings) = self.sql.log_settings().filter(|settings| settings.times()) else {
            return;
        };
        let took = self.env.now().since(began);
        let is_long = settings.min_duration.is_some_and(|least| took >= least);
        if !is_long && !settings.duration {
            return;
        }
        let mut message = format!("duration: {}", duration_text(took));
        if is_long && !was_logged {
            message.push_str("  ");
            message.push_str(&secrets::mask(&what()));
        }
        self.log(
            LogLevel::Log,
            &Error::new(SqlState::SUCCESSFUL_COMPLETION, message),
            None,
        );
    }

    fn log(&self, level: LogLevel, body: &Error, statement: Option<&str>) {
        if let Some(context) = self.sql.log_context() {
            let entry = Entry {
                level,
                body,
                statement,
            };
            self.channel.log.write(&entry, &context);
        }
    }

    /// Answers with an error that `sql` knows of, and logs it with the statement that it is of.
    ///
    /// # Errors
    /// The error itself, when the connection cannot go on after it.
    fn error(&mut self, error: &Error, statement: Option<&str>) -> Result<()> {
        if matches!(error.class(), ErrorClass::Session | ErrorClass::Node) {
            self.remember();
            self.channel.log.ends_in(statement);
            return Err(error.clone());
        }
        let loss = self.sql.tell_loss();
        let error = loss.as_ref().unwrap_or(error);
        self.log(LogLevel::Error, error, statement);
        let mut output = self.channel.output.borrow_mut();
        let content = match error.class() {
            ErrorClass::Engine => Content::Free,
            _ => {
                for (debt, durability) in self.sql.owed() {
                    output.owe(debt, *durability);
                }
                Content::Shown
            }
        };
        let encoding = self.channel.encoding.get();
        output.push(content, |out| {
            let mark = out.len();
            backend::put_error(out, Severity::Error, error);
            // What the client cannot read it is at least told of.
            if let Err(unreadable) = backend::convert_text(out, mark, encoding) {
                out.truncate(mark);
                backend::put_error(out, Severity::Error, &unreadable);
            }
        });
        Ok(())
    }

    /// An error that `sql` does not know of yet.
    fn failed(&mut self, error: Error) -> Error {
        self.sql.fail();
        error
    }

    fn answer(&self, message: &Backend<'_>) {
        let mut output = self.channel.output.borrow_mut();
        output.push(Content::Free, |out| message.encode(out));
    }

    fn name<'a>(&mut self, name: &'a [u8]) -> Result<&'a str> {
        utf8(name).inspect_err(|_| self.sql.fail())
    }
}

/// Text from a client.
fn utf8(bytes: &[u8]) -> Result<&str> {
    let wrong = |error: std::str::Utf8Error| {
        let from = error.valid_up_to();
        sql::Encoding::UTF8.invalid(&bytes[from..])
    };
    std::str::from_utf8(bytes).map_err(wrong)
}

/// Appends a ParameterStatus; a mere `?` for a value that the client's encoding has not.
fn put_status(out: &mut Vec<u8>, name: &str, value: &str, encoding: sql::Encoding) {
    let value = encoding.encode(value);
    let value = value.unwrap_or(Cow::Borrowed(b"?"));
    Backend::ParameterStatus(name.as_bytes(), &value).encode(out);
}

/// A session that panics while it looks after a panic cannot go on.
fn lost_to(panic: &str) -> Error {
    let message = format!("internal error: {panic}");
    Error::of_class(ErrorClass::Session, SqlState::INTERNAL_ERROR, message)
}

/// An error during startup ends the connection, unless the session may begin elsewhere.
fn into_fatal(error: Error) -> Error {
    if error.class() == ErrorClass::Node || error.state() == SqlState::SERIALIZATION_FAILURE {
        return error;
    }
    let mut fatal = Error::of_class(ErrorClass::Session, error.state(), error.message());
    *fatal.fields_mut() = error.fields().clone();
    fatal
}
