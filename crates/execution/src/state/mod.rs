//! What a session is to its running statement: settings, cursors, values of sequences, constraints
//! that wait, and who is connected.
//!
//! ```text
//! Session (transactions, statements)      Exec (one statement at work)
//!           └────────────  Shared  ────────────┘
//! ```
//! A session owns its [`Shared`] and lends it to the statement that runs.

pub mod activity;
pub mod constraints;
pub mod cursor;
pub mod large_objects;
pub mod notify;
pub mod prepared;
pub mod secrets;
mod sink;
pub mod statements;
pub mod statistics;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use types::Remarks;

use base::coro::{Interrupt, Interrupts};
use base::engine::{Engine, Flight, SessionLocks};
use base::env::Env;
use base::hash::HashMap;
use base::{Debt, Error, Result, SequenceId};

use crate::settings::{LogSettings, NoticeSeverity, Settings};
use crate::spool::{Spill, TempFiles};
use catalog::local::Local;
use catalog::shared::Catalogs;

use activity::{Activity, Registry, TlsInfo};
use constraints::{Constraints, Transition};
use large_objects::LargeObjects;
use notify::Notify;
use statements::Statements;
use statistics::{Counting, Snapshot, Statistics};

pub use cursor::CursorInfo;
pub use prepared::{Named, Prepared};
pub use sink::KeptRows;
pub use sink::{
    Column, CommandTag, Format, Notice, Nowhere, Oid, Param, RowView, Sink, TransactionStatus,
};

/// Hidden row numbers are taken from the engine so many at a time, at most.
const NUMBERS_AT_ONCE_MAX: u64 = 1_024;

/// A trigger whose function is at work.
pub struct ActiveTrigger {
    /// Its table, by oid.
    pub table: u32,
    /// What it may refer to as tables.
    pub transition: Option<Rc<RefCell<Transition>>>,
}

/// What a session's running statement and the session itself both know.
pub struct Shared {
    /// Where its data is.
    pub engine: Arc<Engine>,
    /// Clocks and randomness.
    pub env: Arc<dyn Env>,
    /// What it began with.
    pub start: SessionStart,
    /// Its settings.
    pub settings: Settings,
    /// What its statements have in scratch space, where there is any.
    pub temp: Option<Rc<TempFiles>>,
    /// Its prepared statements, by name.
    pub statements: Versioned<HashMap<String, Named>>,
    /// What the constraints of the open transaction wait for.
    pub constraints: Constraints,
    /// The cursors that are open.
    pub cursors: BTreeMap<String, CursorInfo>,
    numbers: HashMap<SequenceId, Numbers>,
    /// The last values that nextval gave here, by sequence.
    pub sequence_values: Versioned<HashMap<u32, i64>>,
    /// The sequence that nextval was called for last.
    pub last_sequence: Option<u32>,
    /// Values of sequences that were taken and not yet given (CACHE).
    pub sequences_ahead: HashMap<SequenceId, Ahead>,
    /// Whether the transaction may not write.
    pub read_only: bool,
    /// The schema that CREATE SCHEMA is filling: names are looked for there first.
    pub filling: Option<u32>,
    /// The advisory locks that outlast transactions, once there was one.
    pub advisory: Option<Box<dyn SessionLocks>>,
    /// The large objects that its transaction has opened.
    pub large_objects: LargeObjects,
    /// What its transaction tells others, and what it listens to.
    pub notify: Notify,
    /// What commits are noted under, where another node has the client.
    pub flight: Option<Flight>,
    /// What its transaction does, and what it has looked at of what was done.
    pub counting: Counting,
    /// What is counted on its node, where there is one.
    pub node_statistics: Option<Arc<Statistics>>,
    /// The temporary objects of the session, once there was one.
    pub local: Option<Local>,
    /// Warnings of the running statement's functions, which go before its next row.
    pub warnings: Vec<Error>,
    /// Notices of routines that the running statement has called, which go before its next row.
    pub notices: Vec<(NoticeSeverity, Error)>,
    /// Notices of functions that the running statement has called.
    pub remarks: Arc<Remarks>,
    /// The triggers whose functions are at work, the innermost last.
    pub firing: Vec<ActiveTrigger>,
    /// What the session does, as its log names it.
    pub command: &'static str,
    /// How many transactions there were.
    pub transactions: u64,
    /// Which of them is at work; 0 for none.
    pub virtual_xid: u64,
    /// Its id, once somebody has asked for it; 0 before.
    pub xid: u64,
}

/// What a session begins with.
#[derive(Clone)]
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
    /// Settings that the node's configuration gives to every session.
    pub defaults: Vec<(String, String)>,
    /// Settings of the startup message (`application_name`, `client_encoding`, `options`, …).
    pub settings: Vec<(String, String)>,
    /// Where others see what this session does.
    pub activity: Arc<Activity>,
    /// What TLS tells of the connection, where it is encrypted.
    pub tls: Option<TlsInfo>,
    /// The sessions of this node; none where there is no node.
    pub registry: Option<Arc<dyn Registry>>,
    /// The catalogs that the sessions of its node share.
    pub catalogs: Arc<Catalogs>,
    /// It is the node's own, which analyzes tables by itself.
    pub is_automatic: bool,
}

impl std::fmt::Debug for SessionStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionStart({} at {})", self.user, self.database)
    }
}

/// Values of a sequence that the session has taken and not yet used (CACHE).
#[derive(Debug)]
pub struct Ahead {
    /// The next of them.
    pub next: i64,
    /// How many are left.
    pub left: u64,
    /// From one to the next.
    pub increment: i64,
    /// What they rest on.
    pub debt: Debt,
}

/// What a session is at the moment when it says something to the log.
#[derive(Clone, Debug)]
pub struct LogContext {
    /// How things are logged.
    pub settings: Arc<LogSettings>,
    /// `application_name`.
    pub application: String,
    /// What it does: a command, or a part of the protocol.
    pub command: &'static str,
    /// Which of its transactions is open, or was when its statement failed, from 1; 0 for none.
    pub virtual_xid: u64,
    /// The id of that transaction, if anybody has asked for it; otherwise 0.
    pub xid: u64,
}

impl Shared {
    /// What the session is to the log.
    pub fn log_context(&self) -> LogContext {
        let application = self.settings.show("application_name");
        LogContext {
            settings: self.settings.log().clone(),
            application: application.map_or_else(|_| String::new(), |shown| shown.1),
            command: self.command,
            virtual_xid: self.virtual_xid,
            xid: self.xid,
        }
    }

    /// Has a message logged, if the settings want it.
    pub fn log_notice(&self, notice: &Notice, sink: &mut dyn Sink) {
        if notice.severity.level() >= self.settings.log().min_messages {
            sink.log_notice(notice, &self.log_context());
        }
    }
}

/// A value that counts how often it may have been changed.
#[derive(Debug, Default)]
pub struct Versioned<T> {
    value: T,
    version: u64,
}

impl<T> Versioned<T> {
    /// Larger after every change.
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl<T> std::ops::Deref for Versioned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> std::ops::DerefMut for Versioned<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.version += 1;
        &mut self.value
    }
}

/// The versions of what a session has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Of the settings.
    pub settings: u64,
    /// Of the prepared statements.
    pub statements: u64,
    /// Of the values of sequences.
    pub sequences: u64,
    /// Of the channels that it listens to.
    pub channels: u64,
}

/// Numbers of a counter that are taken and not yet given.
struct Numbers {
    next: u64,
    end: u64,
    /// How many to take next time: twice as many as last time.
    ask: u64,
}

impl Shared {
    /// What a session begins with; the warnings are shown with its first statement.
    pub fn new(
        engine: Arc<Engine>,
        env: Arc<dyn Env>,
        start: SessionStart,
        settings: Settings,
        warnings: Vec<Error>,
    ) -> Shared {
        let temp = engine.temp.clone();
        let registry = start.registry.as_ref();
        let node_statistics = registry.and_then(|registry| registry.statistics());
        Shared {
            node_statistics,
            engine,
            env,
            start,
            settings,
            temp: temp.map(TempFiles::new),
            statements: Versioned::default(),
            constraints: Constraints::default(),
            cursors: BTreeMap::new(),
            numbers: HashMap::default(),
            sequence_values: Versioned::default(),
            last_sequence: None,
            sequences_ahead: HashMap::default(),
            read_only: false,
            filling: None,
            advisory: None,
            large_objects: LargeObjects::default(),
            notify: Notify::default(),
            flight: None,
            counting: Counting::default(),
            local: None,
            warnings,
            notices: Vec::new(),
            remarks: Arc::default(),
            firing: Vec::new(),
            command: "startup",
            transactions: 0,
            virtual_xid: 0,
            xid: 0,
        }
    }

    /// Where statements are counted; none while no database has the extension that shows it.
    #[inline]
    pub fn counted_statements(&self) -> Option<&Statements> {
        let node = self.node_statistics.as_deref();
        node.map(|node| &node.statements).filter(|all| all.is_on())
    }

    /// The transaction has ended: counts what it has done.
    pub fn count_transaction(&mut self, committed: bool) {
        let temp = self.temp.as_ref().map_or((0, 0), |temp| temp.written());
        let how = (committed, self.settings.parsed().tracking.counts);
        let registry = self.start.registry.as_ref();
        let node = || registry.and_then(|registry| registry.statistics());
        self.start.activity.set_transaction(0);
        self.counting.end(how, temp, &self.start.activity, node);
    }

    /// What was done in a database and with what is in it, the same for all of a transaction.
    ///
    /// # Errors
    /// 53200 when it does not fit in memory.
    pub fn statistics(&mut self, database: u32) -> Result<Rc<Snapshot>> {
        if let Some(snapshot) = self.counting.snapshot() {
            return Ok(snapshot.clone());
        }
        let (sessions, now) = (self.sessions(), self.env.wall_clock().0);
        let registry = self.start.registry.as_ref();
        let snapshot = match registry.and_then(|registry| registry.statistics()) {
            Some(node) => node.snapshot(database, &sessions, now)?,
            None => Snapshot::of_sessions(database, &sessions, now)?,
        };
        let snapshot = Rc::new(snapshot);
        self.counting.keep(snapshot.clone());
        Ok(snapshot)
    }

    /// What the sessions of this node do.
    pub fn sessions(&self) -> Vec<Arc<Activity>> {
        match &self.start.registry {
            Some(registry) => registry.all(),
            None => vec![self.start.activity.clone()],
        }
    }

    /// When the rows of a sort and their kin go to scratch space: beyond `work_mem`.
    pub fn spill(&self) -> Spill {
        let memory = self.settings.parsed().work_memory;
        self.spill_beyond(memory)
    }

    /// When the rows of a hash table do: beyond `work_mem`, `hash_mem_multiplier` times.
    pub fn hash_spill(&self) -> Spill {
        let memory = self.settings.parsed().hash_memory;
        self.spill_beyond(memory)
    }

    fn spill_beyond(&self, memory: usize) -> Spill {
        let parsed = self.settings.parsed();
        let (most, limit) = (parsed.query_memory, parsed.temp_file_limit);
        Spill::new(self.temp.clone(), memory, most, limit)
    }

    /// Shows a warning to the client if `client_min_messages` lets it through, and logs it.
    pub fn warn(&self, body: Error, sink: &mut dyn Sink) -> Result<()> {
        self.notify(NoticeSeverity::Warning, body, sink)
    }

    fn notify(&self, severity: NoticeSeverity, body: Error, sink: &mut dyn Sink) -> Result<()> {
        let notice = Notice { severity, body };
        self.log_notice(&notice, sink);
        match self.settings.parsed().min_messages {
            Some(least) if severity == NoticeSeverity::Info || severity >= least => {
                sink.notice(&notice)
            }
            _ => Ok(()),
        }
    }

    /// Puts the notices of functions behind those of routines.
    pub fn gather_remarks(&mut self) {
        let remarks = self.remarks.take().into_iter();
        self.notices
            .extend(remarks.map(|body| (NoticeSeverity::Notice, body)));
    }

    /// Sends the notices that wait.
    ///
    /// # Errors
    /// What sending them gives.
    pub fn send_notices(&mut self, sink: &mut dyn Sink) -> Result<()> {
        self.gather_remarks();
        for (severity, body) in std::mem::take(&mut self.notices) {
            self.notify(severity, body, sink)?;
        }
        Ok(())
    }

    /// Forgets the values of sequences that this session was given, and those taken ahead.
    pub fn forget_sequences(&mut self) {
        self.sequence_values.clear();
        self.sequences_ahead.clear();
        self.last_sequence = None;
    }

    /// How many other sessions are in a database.
    pub fn sessions_in(&self, database: &str) -> usize {
        let Some(registry) = &self.start.registry else {
            return 0;
        };
        let all = registry.all();
        let others = all
            .iter()
            .filter(|other| other.pid() != self.start.backend_pid)
            .filter_map(|other| other.doing());
        others.filter(|other| other.database == database).count()
    }

    /// Ends what the node does by itself in a database.
    pub fn end_automatic_in(&self, database: &str) {
        let Some(registry) = &self.start.registry else {
            return;
        };
        for session in registry.all() {
            let is_automatic =
                |doing: &activity::Doing| doing.is_automatic && doing.database == database;
            if session.read(is_automatic).unwrap_or(false) {
                registry.interrupt(session.pid(), Interrupt::Terminate);
            }
        }
    }

    /// The next number of a counter, for keys that nobody sees.
    pub fn next_number(&mut self, sequence: SequenceId) -> Result<u64> {
        let numbers = self.numbers.entry(sequence).or_insert(Numbers {
            next: 0,
            end: 0,
            ask: 1,
        });
        if numbers.next == numbers.end {
            // Whoever writes the row owes its number: it is in the same log, or the engine sees to it.
            let (first, _) = self.engine.sequences.advance(sequence, numbers.ask)?;
            numbers.next = first;
            numbers.end = first + numbers.ask;
            numbers.ask = (numbers.ask * 2).min(NUMBERS_AT_ONCE_MAX);
        }
        numbers.next += 1;
        Ok(numbers.next - 1)
    }
}
