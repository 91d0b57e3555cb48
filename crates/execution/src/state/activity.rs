//! What each session does, for `pg_stat_activity`, and how one session interrupts another.
//!
//! A session writes its own [`Activity`] when a message begins and when it has been answered; the
//! others read it through the [`Registry`] of the node that serves them. Every session of a cluster
//! is served by the node that leads, whichever node its client came to, so that node's registry
//! knows them all.
//!
//! # What it leaves out
//! Background processes: what PostgreSQL does in processes of their own are tasks here, but for the session
//! that runs ANALYZE by itself. Waits
//! other than those for locks, for the client and for replicas.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;

use base::coro::Interrupt;
use base::sync::{Mutex, MutexGuard};

use super::secrets::mask;
use super::statistics::{Statistics, Tally};

/// Bytes of a statement that are shown (PostgreSQL's `track_activity_query_size`, less the zero).
pub const QUERY_BYTES_MAX: usize = 1_023;

/// The session itself is told the text of its statement up to so many; what is longer is not kept.
const LONG_QUERY_BYTES_MAX: usize = 64 << 10;

/// What TLS tells of a connection, as `pg_stat_ssl` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsInfo {
    /// `TLSv1.3`.
    pub version: String,
    /// The cipher's name.
    pub cipher: String,
    /// The length of its key.
    pub bits: u16,
    /// Whom the client's certificate names.
    pub client_subject: Option<String>,
    /// Its number, in decimal.
    pub client_serial: Option<String>,
    /// Who made it.
    pub issuer: Option<String>,
}

/// One line of a node's rules of access, as `pg_hba_file_rules` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct HbaRule {
    pub line: u32,
    pub kind: Option<&'static str>,
    pub databases: Vec<String>,
    pub users: Vec<String>,
    pub address: Option<String>,
    pub netmask: Option<String>,
    pub method: Option<&'static str>,
    pub options: Vec<String>,
    pub error: Option<String>,
}

/// The sessions of a node.
pub trait Registry: Send + Sync {
    /// What they do, by the number of the session.
    fn all(&self) -> Vec<Arc<Activity>>;

    /// Counts a session whose client has shown who it is.
    ///
    /// # Errors
    /// 53300 when there are as many as there may be, or when what is left is for superusers.
    fn admit(&self, pid: i32, is_superuser: bool) -> base::Result<()>;

    /// Leaves an interrupt for a session; false when there is none of that number.
    fn interrupt(&self, pid: i32, interrupt: Interrupt) -> bool;

    /// The rules of the node's file as it is now, good and bad.
    fn hba_rules(&self) -> Vec<HbaRule> {
        Vec::new()
    }

    /// When the node began to serve sessions, where there is one.
    fn started(&self) -> Option<i64> {
        None
    }

    /// What was done on the node; none where nobody counts that.
    fn statistics(&self) -> Option<Arc<Statistics>> {
        None
    }

    /// Settings of the node that sessions can show and not change.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What the node's file gave it when it started: settings and their values.
    fn file_settings(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Has every node read its files anew; false when that could not begin.
    fn reload(&self) -> bool {
        false
    }
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SessionState {
    /// It runs a statement.
    #[default]
    Active,
    /// It waits for its client.
    Idle,
    /// It waits for its client, in a transaction block.
    IdleInTransaction,
    /// It waits for its client, in a transaction block that has failed.
    IdleInFailedTransaction,
}

impl SessionState {
    /// As `pg_stat_activity` names it.
    pub fn name(self) -> &'static str {
        match self {
            SessionState::Active => "active",
            SessionState::Idle => "idle",
            SessionState::IdleInTransaction => "idle in transaction",
            SessionState::IdleInFailedTransaction => "idle in transaction (aborted)",
        }
    }
}

/// What is known of a session at one moment.
#[derive(Clone, Debug, Default)]
pub struct Doing {
    /// The role as its client named it; none while the session has not begun.
    pub user: Option<String>,
    /// The oid of that role, whatever it is called now.
    pub role: u32,
    /// The database.
    pub database: String,
    /// `application_name`.
    pub application: String,
    /// The client's address.
    pub client_address: Option<String>,
    /// The client's port.
    pub client_port: Option<u16>,
    /// What TLS tells of its connection.
    pub tls: Option<TlsInfo>,
    /// When it began; like all instants here, microseconds since 2000.
    pub started: i64,
    /// When its transaction began.
    pub transaction: Option<i64>,
    /// When its statement, or its last one, began.
    pub statement: Option<i64>,
    /// When its state changed.
    pub changed: i64,
    /// Its state.
    pub state: SessionState,
    /// It is the node's own, which analyzes tables by itself.
    pub is_automatic: bool,
    /// The statement at work, or the last one.
    pub query: String,
    /// How long it has run statements and idled in transactions, until its state changed.
    pub times: Times,
}

/// How long a session was in some of its states, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// In all.
    pub session: u64,
    /// It ran statements.
    pub active: u64,
    /// It waited for its client, in a transaction block.
    pub idle_in_transaction: u64,
}

impl Doing {
    /// Counts the time since the state changed, until now.
    fn count_time(&mut self, now: i64) {
        let passed = u64::try_from(now - self.changed).unwrap_or(0);
        match self.state {
            SessionState::Active => self.times.active += passed,
            SessionState::Idle => {}
            SessionState::IdleInTransaction | SessionState::IdleInFailedTransaction => {
                self.times.idle_in_transaction += passed;
            }
        }
    }
}

/// What a session does.
#[derive(Debug)]
pub struct Activity {
    pid: i32,
    doing: Mutex<Doing>,
    /// What it has said is held until replicas have what it rests on.
    held: AtomicBool,
    /// Which of its transactions is open; 0 for none.
    transaction: AtomicU64,
    /// The id of its statement, or of its last one; 0 where there is none.
    query_id: AtomicI64,
    /// What its transactions have done.
    tally: Mutex<Tally>,
    /// The whole text of its statement, where others see a part of it.
    long: Mutex<LongQuery>,
}

/// A text that is longer than [`QUERY_BYTES_MAX`].
#[derive(Debug, Default)]
enum LongQuery {
    /// It is not.
    #[default]
    Short,
    Kept(Box<str>),
    /// It is longer than [`LONG_QUERY_BYTES_MAX`].
    TooLong,
}

impl Activity {
    /// A session of that number, which has not begun.
    pub fn new(pid: i32) -> Activity {
        Activity {
            pid,
            doing: Mutex::default(),
            held: AtomicBool::new(false),
            transaction: AtomicU64::new(0),
            query_id: AtomicI64::new(0),
            tally: Mutex::default(),
            long: Mutex::default(),
        }
    }

    /// Which of its transactions is open, from 1; 0 for none.
    pub fn transaction(&self) -> u64 {
        self.transaction.load(Ordering::Relaxed)
    }

    /// A transaction of that number is open; 0 for none.
    pub fn set_transaction(&self, number: u64) {
        self.transaction.store(number, Ordering::Relaxed);
    }

    /// The id of its statement, or of its last one, if it has one.
    pub fn query_id(&self) -> Option<i64> {
        Some(self.query_id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// The statement has that id.
    pub fn set_query_id(&self, id: i64) {
        self.query_id.store(id, Ordering::Relaxed);
    }

    /// What its transactions have done, to be looked at or changed in an instant.
    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock()
    }

    /// How long it has done what until now; none while it has not begun.
    pub fn times(&self, now: i64) -> Option<Times> {
        self.read(|doing| {
            let mut doing = Doing {
                changed: doing.changed,
                state: doing.state,
                times: doing.times,
                started: doing.started,
                ..Doing::default()
            };
            doing.count_time(now);
            let session = now - doing.started - i64::try_from(doing.times.session).unwrap_or(0);
            Times {
                session: u64::try_from(session).unwrap_or(0),
                ..doing.times
            }
        })
    }

    /// Forgets how long it has done what until now.
    pub(super) fn forget_times(&self, now: i64) {
        self.change(|doing| {
            let session = u64::try_from(now - doing.started).unwrap_or(0);
            doing.times = Times {
                session,
                ..Times::default()
            };
        });
    }

    /// The session's number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// What it does now; none while it has not begun.
    pub fn doing(&self) -> Option<Doing> {
        self.read(Doing::clone)
    }

    /// Looks at what it does now, which must be quick; none while it has not begun.
    pub fn read<T>(&self, look: impl FnOnce(&Doing) -> T) -> Option<T> {
        let doing = self.doing.lock();
        doing.user.is_some().then(|| look(&doing))
    }

    /// Whether what it has said is held.
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// What it has said is held, or no more.
    pub fn set_held(&self, held: bool) {
        self.held.store(held, Ordering::Relaxed);
    }

    /// Changes what is known of it.
    pub fn change(&self, change: impl FnOnce(&mut Doing)) {
        change(&mut self.doing.lock());
    }

    /// The whole text of its statement; none while it has not begun.
    ///
    /// # Errors
    /// 0A000 for one that is longer than [`LONG_QUERY_BYTES_MAX`].
    pub fn query(&self) -> base::Result<Option<String>> {
        match &*self.long.lock() {
            LongQuery::Short => Ok(self.read(|doing| doing.query.clone())),
            LongQuery::Kept(query) => Ok(Some(query.to_string())),
            LongQuery::TooLong => Err(base::Error::unsupported(
                "current_query() in a statement of more than 64 kB",
            )),
        }
    }

    /// A statement begins.
    pub fn begin(&self, query: &str, statement: i64, transaction: i64) {
        // Whether a cut text holds a password cannot be told from what is left of it.
        let whole = match query.len() <= QUERY_BYTES_MAX {
            true => Cow::Borrowed(query),
            false => mask(query),
        };
        let long = match query.len() {
            bytes if bytes <= QUERY_BYTES_MAX => LongQuery::Short,
            bytes if bytes <= LONG_QUERY_BYTES_MAX => LongQuery::Kept(query.into()),
            _ => LongQuery::TooLong,
        };
        *self.long.lock() = long;
        let ends = (0..=QUERY_BYTES_MAX.min(whole.len())).rev();
        let end = ends.into_iter().find(|end| whole.is_char_boundary(*end));
        let shown = &whole[..end.unwrap_or(0)];
        self.set_query_id(0);
        let mut doing = self.doing.lock();
        doing.count_time(statement);
        doing.state = SessionState::Active;
        doing.query.clear();
        doing.query.push_str(shown);
        doing.statement = Some(statement);
        doing.transaction = Some(transaction);
        doing.changed = statement;
    }

    /// Its message has been answered.
    pub fn end(&self, state: SessionState, now: i64, transaction: Option<i64>) {
        let mut doing = self.doing.lock();
        doing.count_time(now);
        doing.state = state;
        doing.changed = now;
        doing.transaction = transaction;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_statements_are_cut_between_characters() {
        let activity = Activity::new(1);
        activity.change(|doing| doing.user = Some("ann".to_owned()));
        let text = "ä".repeat(QUERY_BYTES_MAX);
        activity.begin(&text, 1, 1);
        let shown = activity.doing().unwrap().query;
        assert_eq!(shown, "ä".repeat(QUERY_BYTES_MAX / 2));
    }
}
