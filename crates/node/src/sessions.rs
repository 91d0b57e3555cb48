//! The sessions that this node serves: who may come in, and how one is cancelled.
//!
//! A session's number, which `pg_backend_pid()` shows, is unique in the cluster: its upper bits are
//! the node's. So any node can tell where a CancelRequest belongs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use base::budget::Budget;
use base::coro::{Interrupt, Interrupts};
use base::env::Env;
use base::sync::{Event, Mutex};
use base::{Error, ErrorClass, Lsn, NodeId, Result, SqlState, Term};
use kv::{Leads, Observer};
use pg::startup::CancelKey;
use sql::session::activity::{Activity, HbaRule, Registry};
use sql::session::statistics::Statistics;

/// Bits of a session's number that count sessions of one node; the bits above are the node's.
const COUNTER_BITS: u32 = 20;

/// Node ids are told apart by so many of their lowest bits.
const NODE_BITS: u32 = 31 - COUNTER_BITS;

/// Sessions that one node serves at once at most, whatever `max_connections` says: their numbers
/// must not run out.
pub const SESSIONS_MAX: usize = 1 << (COUNTER_BITS - 1);

/// The sessions of one node.
pub struct Sessions {
    env: Arc<dyn Env>,
    node: NodeId,
    limits: Limits,
    memory: Option<Arc<Budget>>,
    /// What those have done that have ended.
    statistics: Arc<Statistics>,
    started: i64,
    state: Mutex<State>,
    ended: Event,
    /// How often everybody who is served here had to leave.
    departures: AtomicU64,
    files: OnceLock<Weak<dyn Files>>,
}

/// How many sessions there may be. Only those count whose clients have shown who they are: the others
/// are few anyhow ([`crate::unproved`]), and must not keep anybody out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `max_connections`.
    pub all: usize,
    /// `superuser_reserved_connections`: the last so many are for superusers.
    pub reserved: usize,
}

/// What sessions ask of their node's files.
pub trait Files: Send + Sync {
    /// The rules of access, as they are in the file now.
    fn hba_rules(&self) -> Vec<HbaRule>;

    /// Has every node read its files anew.
    fn reload(&self) -> bool;

    /// Settings of the node that sessions can show.
    fn settings(&self) -> Vec<(&'static str, String)>;

    /// What the node's file gave it when it started.
    fn file_settings(&self) -> Vec<(String, String)>;
}

#[derive(Default)]
struct State {
    next: u32,
    entries: u64,
    closed: bool,
    live: BTreeMap<i32, Live>,
}

struct Live {
    /// Its client has shown who it is.
    is_admitted: bool,
    /// It reads here whether this node leads or not.
    stays: bool,
    secret: i32,
    /// Tells sessions of one number apart: another link may have brought one back already.
    entry: u64,
    /// Another node has its client.
    is_foreign: bool,
    /// It is served here, and not passed on.
    is_served: bool,
    activity: Arc<Activity>,
    interrupts: Arc<Interrupts>,
}

/// One session's place among the sessions; it is free again when this is dropped.
pub struct Place {
    sessions: Arc<Sessions>,
    key: CancelKey,
    entry: u64,
    activity: Arc<Activity>,
    interrupts: Arc<Interrupts>,
}

impl Place {
    /// It reads here from now on, whether this node leads or not.
    pub fn set_stays(&self) {
        let mut state = self.sessions.state.lock();
        if let Some(live) = state.live.get_mut(&self.key.pid) {
            live.stays = true;
        }
    }

    /// Where others see what the session does.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// The sessions among which it is.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// The session's number and secret.
    pub fn key(&self) -> CancelKey {
        self.key
    }

    /// Says whether the session is served here now, or by another node.
    pub fn set_served(&self, is_served: bool) {
        let mut state = self.sessions.state.lock();
        if let Some(live) = state.live.get_mut(&self.key.pid) {
            live.is_served = is_served;
        }
    }

    /// Another node, which serves it, has let its client in.
    pub fn set_admitted(&self) {
        let mut state = self.sessions.state.lock();
        if let Some(live) = state.live.get_mut(&self.key.pid) {
            live.is_admitted = true;
        }
    }

    /// Where others leave interrupts for the session.
    pub fn interrupts(&self) -> &Arc<Interrupts> {
        &self.interrupts
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.sessions.state.lock();
        let live = state.live.get(&self.key.pid);
        if live.is_some_and(|live| live.entry == self.entry) {
            state.live.remove(&self.key.pid);
        }
        drop(state);
        let now = self.sessions.env.wall_clock().0;
        self.sessions.statistics.finish(&self.activity, now);
        self.sessions.ended.notify_all();
    }
}

impl Sessions {
    /// No sessions yet, and at most so many of them, which take their memory from that budget.
    pub fn new(
        env: Arc<dyn Env>,
        node: NodeId,
        limits: Limits,
        memory: Option<Arc<Budget>>,
    ) -> Sessions {
        Sessions {
            started: env.wall_clock().0,
            env,
            node,
            limits,
            memory,
            statistics: Arc::default(),
            state: Mutex::default(),
            ended: Event::new(),
            departures: AtomicU64::new(0),
            files: OnceLock::new(),
        }
    }

    /// From whom sessions learn of the node's files. Said once.
    pub fn serve_files(&self, files: Weak<dyn Files>) {
        let is_first = self.files.set(files).is_ok();
        assert!(is_first, "a node's files are served once");
    }

    fn files(&self) -> Option<Arc<dyn Files>> {
        self.files.get()?.upgrade()
    }

    /// Lets one more session in; one that `stays` does so when this node no longer leads.
    ///
    /// # Errors
    /// 53300 when there are too many; 57P03 when the node shuts down.
    pub fn enter(self: &Arc<Self>) -> Result<Place> {
        let secret = self.env.secret();
        let secret = i32::from_le_bytes([secret[0], secret[1], secret[2], secret[3]]);
        let mut state = self.state.lock();
        if state.admitted(None) >= self.limits.all {
            return Err(too_many());
        }
        let pid = loop {
            state.next = (state.next + 1) % (1 << COUNTER_BITS);
            let pid = number(self.node, state.next);
            if !state.live.contains_key(&pid) {
                break pid;
            }
        };
        self.insert(&mut state, CancelKey { pid, secret }, false)
    }

    /// Lets a session in whose client another node has, which has numbered it.
    ///
    /// # Errors
    /// As [`Sessions::enter`].
    pub fn enter_foreign(self: &Arc<Self>, key: CancelKey) -> Result<Place> {
        self.insert(&mut self.state.lock(), key, true)
    }

    /// Ends the session of that number, if there is one, whose client another node has.
    pub async fn end_foreign(&self, pid: i32) {
        self.interrupt(pid, Interrupt::Terminate);
        let gone = || (!self.state.lock().live.contains_key(&pid)).then_some(());
        self.ended.until(gone).await;
    }

    fn insert(self: &Arc<Self>, state: &mut State, key: CancelKey, foreign: bool) -> Result<Place> {
        if state.closed {
            return Err(fatal(
                SqlState::CANNOT_CONNECT_NOW,
                "the database system is shutting down",
            ));
        }
        if state.live.len() >= SESSIONS_MAX {
            return Err(too_many());
        }
        let interrupts = match &self.memory {
            Some(budget) => Interrupts::within(budget.clone()),
            None => Interrupts::default(),
        };
        let interrupts = Arc::new(interrupts);
        let activity = Arc::new(Activity::new(key.pid));
        state.entries += 1;
        let entry = state.entries;
        let live = Live {
            is_admitted: false,
            stays: false,
            secret: key.secret,
            entry,
            is_foreign: foreign,
            is_served: true,
            activity: activity.clone(),
            interrupts: interrupts.clone(),
        };
        state.live.insert(key.pid, live);
        Ok(Place {
            sessions: self.clone(),
            key,
            entry,
            activity,
            interrupts,
        })
    }

    /// Ends the sessions whose clients are with a node for which `is_removed` says so.
    pub fn end_those_of(&self, is_removed: impl Fn(i32) -> bool) {
        let pids: Vec<i32> = {
            let state = self.state.lock();
            let foreign = state.live.iter().filter(|(_, live)| live.is_foreign);
            foreign.map(|(pid, _)| *pid).collect()
        };
        for pid in pids.into_iter().filter(|pid| is_removed(*pid)) {
            self.interrupt(pid, Interrupt::Terminate);
        }
    }

    /// How often everybody who is served here had to leave.
    pub fn departures(&self) -> u64 {
        self.departures.load(Ordering::SeqCst)
    }

    /// Cancels the statement of a session, if the secret is right; says nothing if it is not.
    pub fn cancel(&self, key: CancelKey) {
        let interrupts = {
            let state = self.state.lock();
            let live = state.live.get(&key.pid);
            live.filter(|live| live.secret == key.secret)
                .map(|live| live.interrupts.clone())
        };
        if let Some(interrupts) = interrupts {
            interrupts.raise(Interrupt::Cancel);
        }
    }

    fn depart(&self) {
        self.departures.fetch_add(1, Ordering::SeqCst);
    }

    /// Lets nobody in any more, and tells every session to end; one whose client another node has
    /// may go on elsewhere.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.depart();
        self.raise(|live| match live.is_foreign {
            true => Some(Interrupt::HistoryCut),
            false => Some(Interrupt::Terminate),
        });
    }

    /// Leaves an interrupt for the sessions for which there is one.
    fn raise(&self, which: impl Fn(&Live) -> Option<Interrupt>) {
        let live: Vec<_> = {
            let state = self.state.lock();
            let live = state.live.values();
            live.filter_map(|live| Some((live.interrupts.clone(), which(live)?)))
                .collect()
        };
        for (interrupts, interrupt) in live {
            interrupts.raise(interrupt);
        }
    }

    /// Ready when there is no session left.
    pub async fn ended(&self) {
        let none = || self.state.lock().live.is_empty().then_some(());
        self.ended.until(none).await;
    }

    /// How many are served here.
    pub fn count(&self) -> usize {
        let state = self.state.lock();
        state.live.values().filter(|live| live.is_served).count()
    }
}

impl State {
    /// How many clients have shown who they are, one session not counted.
    fn admitted(&self, but: Option<i32>) -> usize {
        let admitted = self.live.iter().filter(|(_, live)| live.is_admitted);
        admitted.filter(|(pid, _)| Some(**pid) != but).count()
    }
}

impl Registry for Sessions {
    fn admit(&self, pid: i32, is_superuser: bool) -> Result<()> {
        let mut state = self.state.lock();
        let Limits { all, reserved } = self.limits;
        let free = all.saturating_sub(state.admitted(Some(pid)));
        if free == 0 {
            return Err(too_many());
        }
        // Its own place is no free one any more.
        if !is_superuser && free - 1 < reserved {
            return Err(fatal(
                SqlState::TOO_MANY_CONNECTIONS,
                "remaining connection slots are reserved for non-replication superuser \
                 connections",
            ));
        }
        if let Some(live) = state.live.get_mut(&pid) {
            live.is_admitted = true;
        }
        Ok(())
    }

    fn all(&self) -> Vec<Arc<Activity>> {
        let state = self.state.lock();
        let live = state.live.values().filter(|live| live.is_served);
        live.map(|live| live.activity.clone()).collect()
    }

    fn interrupt(&self, pid: i32, interrupt: Interrupt) -> bool {
        let found = {
            let state = self.state.lock();
            state.live.get(&pid).map(|live| live.interrupts.clone())
        };
        let Some(interrupts) = found else {
            return false;
        };
        interrupts.raise(interrupt);
        true
    }

    fn started(&self) -> Option<i64> {
        Some(self.started)
    }

    fn statistics(&self) -> Option<Arc<Statistics>> {
        Some(self.statistics.clone())
    }

    fn hba_rules(&self) -> Vec<HbaRule> {
        self.files().map_or(Vec::new(), |files| files.hba_rules())
    }

    fn reload(&self) -> bool {
        self.files().is_some_and(|files| files.reload())
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        self.files().map_or(Vec::new(), |files| files.settings())
    }

    fn file_settings(&self) -> Vec<(String, String)> {
        self.files()
            .map_or(Vec::new(), |files| files.file_settings())
    }
}

/// Sessions are served where the leader is, so they leave with its leadership; what they rest on
/// ends where the log is cut.
impl Observer for Sessions {
    fn leading(&self, leads: Option<Leads<'_>>) -> Result<()> {
        if leads.is_none() {
            self.depart();
            self.raise(|live| (!live.stays).then_some(Interrupt::HistoryCut));
        }
        Ok(())
    }

    fn cut(&self, _term: Term, _to: Lsn) {
        self.raise(|_| Some(Interrupt::HistoryCut));
    }
}

fn number(node: NodeId, counter: u32) -> i32 {
    let node = (node.0 & ((1 << NODE_BITS) - 1)) as i32;
    (node << COUNTER_BITS) | counter as i32
}

/// Whether a session of that number lives on `node`.
pub fn lives_on(pid: i32, node: NodeId) -> bool {
    pid >> COUNTER_BITS == number(node, 0) >> COUNTER_BITS
}

fn too_many() -> Error {
    fatal(
        SqlState::TOO_MANY_CONNECTIONS,
        "sorry, too many clients already",
    )
}

/// An error that ends a connection before its session begins.
pub fn fatal(state: SqlState, message: impl Into<String>) -> Error {
    Error::of_class(ErrorClass::Session, state, message)
}
