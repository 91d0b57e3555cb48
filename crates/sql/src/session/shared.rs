//! What a session's running statement and the session itself both know.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use base::engine::{Engine, Flight, SessionLocks};
use base::env::Env;
use base::hash::HashMap;
use base::{Error, Result, SequenceId};

use super::constraints::Constraints;
use super::cursors::CursorInfo;
use super::settings::Settings;
use super::{Notice, NoticeSeverity, Prepared, SessionStart, Sink};
use crate::exec::sequences::Ahead;
use crate::local::Local;

/// Hidden row numbers are taken from the engine so many at a time, at most.
const NUMBERS_AT_ONCE_MAX: u64 = 1_024;

/// What a session's running statement and the session itself both know.
pub struct Shared {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) start: SessionStart,
    pub(crate) settings: Settings,
    pub(crate) statements: Versioned<HashMap<String, Rc<Prepared>>>,
    /// What the constraints of the open transaction wait for.
    pub(crate) constraints: Constraints,
    /// The cursors that are open.
    pub(crate) cursors: BTreeMap<String, CursorInfo>,
    numbers: HashMap<SequenceId, Numbers>,
    /// The last values that nextval gave here, by sequence; the last of all.
    pub(crate) sequence_values: Versioned<HashMap<u32, i64>>,
    pub(crate) last_sequence: Option<u32>,
    /// Values of sequences that were taken and not yet given (CACHE).
    pub(crate) sequences_ahead: HashMap<SequenceId, Ahead>,
    /// Whether the transaction may not write.
    pub(crate) read_only: bool,
    /// The schema that CREATE SCHEMA is filling: names are looked for there first.
    pub(crate) filling: Option<u32>,
    /// The advisory locks that outlast transactions, once there was one.
    pub(crate) advisory: Option<Box<dyn SessionLocks>>,
    /// What commits are noted under, where another node has the client.
    pub(crate) flight: Option<Flight>,
    /// The temporary objects of the session, once there was one.
    pub(crate) local: Option<Local>,
    /// Warnings of the running statement's functions, which go before its next row.
    pub(crate) warnings: Vec<Error>,
    /// What the session does, as its log names it.
    pub(crate) command: &'static str,
}

/// A value that counts how often it may have been changed.
#[derive(Debug, Default)]
pub(crate) struct Versioned<T> {
    value: T,
    version: u64,
}

impl<T> Versioned<T> {
    /// Larger after every change.
    pub(crate) fn version(&self) -> u64 {
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
pub(super) struct Stamp {
    pub settings: u64,
    pub statements: u64,
    pub sequences: u64,
}

/// Numbers of a counter that are taken and not yet given.
struct Numbers {
    next: u64,
    end: u64,
    /// How many to take next time: twice as many as last time.
    ask: u64,
}

impl Shared {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        env: Arc<dyn Env>,
        start: SessionStart,
        settings: Settings,
        warnings: Vec<Error>,
    ) -> Shared {
        Shared {
            engine,
            env,
            start,
            settings,
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
            flight: None,
            local: None,
            warnings,
            command: "startup",
        }
    }

    /// Shows a warning to the client if `client_min_messages` lets it through, and logs it.
    pub(crate) fn warn(&self, body: Error, sink: &mut dyn Sink) -> Result<()> {
        let severity = NoticeSeverity::Warning;
        let notice = Notice { severity, body };
        self.log_notice(&notice, sink);
        match self.settings.parsed().min_messages {
            Some(least) if severity >= least => sink.notice(&notice),
            _ => Ok(()),
        }
    }

    /// Forgets the values of sequences that this session was given, and those taken ahead.
    pub(crate) fn forget_sequences(&mut self) {
        self.sequence_values.clear();
        self.sequences_ahead.clear();
        self.last_sequence = None;
    }

    /// How many other sessions are in a database.
    pub(crate) fn sessions_in(&self, database: &str) -> usize {
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

    /// The next number of a counter, for keys that nobody sees.
    pub(crate) fn next_number(&mut self, sequence: SequenceId) -> Result<u64> {
        let numbers = self.numbers.entry(sequence).or_insert(Numbers {
            next: 0,
            end: 0,
            ask: 1,
        });
        if numbers.next == numbers.end {
            // The row's own debt covers that of its number: both are in one log.
            let (first, _) = self.engine.advance(sequence, numbers.ask)?;
            numbers.next = first;
            numbers.end = first + numbers.ask;
            numbers.ask = (numbers.ask * 2).min(NUMBERS_AT_ONCE_MAX);
        }
        numbers.next += 1;
        Ok(numbers.next - 1)
    }
}
