//! The threads of a node, and the tasks on them.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use base::env::{Reactor, TaskStart, LOG_REACTORS, PAGE_REACTORS, PARSE_REACTORS};
use base::sync::Mutex;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::clock;

/// The stack of a thread that parses SQL: PostgreSQL's parser recurses once per nested operator,
/// and stops by itself before this is used up.
const SESSION_STACK_BYTES: usize = 64 << 20;

/// The stack of every other thread.
const STACK_BYTES: usize = 4 << 20;

thread_local! {
    /// One per thread, which ends with the process.
    static PUT_OFF: &'static PutOff = Box::leak(Box::default());
    static CURRENT: Cell<Option<Reactor>> = const { Cell::new(None) };
    static SPINNER: Cell<Option<&'static Spinner>> = const { Cell::new(None) };
}

/// The reactor that this thread is.
pub fn current() -> Option<Reactor> {
    CURRENT.with(Cell::get)
}

/// The threads of one node.
pub struct Reactors {
    sessions: Vec<Mailbox>,
    group: Mailbox,
    handshakes: Mailbox,
    logs: Vec<Mailbox>,
    background: Mailbox,
    pages: Vec<Mailbox>,
    parse: Vec<Mailbox>,
}

/// Where other threads leave tasks for a reactor.
///
/// The latch makes the sender usable from every thread and is held for one push.
struct Mailbox(Mutex<UnboundedSender<TaskStart>>);

impl Reactors {
    /// Starts the threads.
    pub fn start(sessions: usize, spin: Duration) -> io::Result<Reactors> {
        assert!(sessions > 0, "a node without session reactors: {sessions}");
        Ok(Reactors {
            sessions: (0..sessions)
                .map(|index| thread(Reactor::Session(index), spin))
                .collect::<io::Result<_>>()?,
            group: thread(Reactor::Group, Duration::ZERO)?,
            handshakes: thread(Reactor::Handshakes, Duration::ZERO)?,
            logs: (0..LOG_REACTORS)
                .map(|index| thread(Reactor::Log(index), Duration::ZERO))
                .collect::<io::Result<_>>()?,
            background: thread(Reactor::Background, Duration::ZERO)?,
            pages: (0..PAGE_REACTORS)
                .map(|index| thread(Reactor::Pages(index), Duration::ZERO))
                .collect::<io::Result<_>>()?,
            parse: (0..PARSE_REACTORS)
                .map(|index| thread(Reactor::Parse(index), Duration::ZERO))
                .collect::<io::Result<_>>()?,
        })
    }

    /// How many reactors serve sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Runs a task on a reactor.
    pub fn spawn(&self, reactor: Reactor, _name: &'static str, start: TaskStart) {
        if current() == Some(reactor) {
            tokio::task::spawn_local(start());
            return;
        }
        let mailbox = match reactor {
            Reactor::Session(index) => &self.sessions[index % self.sessions.len()],
            Reactor::Group => &self.group,
            Reactor::Handshakes => &self.handshakes,
            Reactor::Log(index) => &self.logs[index % self.logs.len()],
            Reactor::Background => &self.background,
            Reactor::Pages(index) => &self.pages[index % self.pages.len()],
            Reactor::Parse(index) => &self.parse[index % self.parse.len()],
        };
        // A reactor ends only with the process.
        let _ = mailbox.0.lock().send(start);
    }
}

/// Starts one reactor's thread.
fn thread(reactor: Reactor, spin: Duration) -> io::Result<Mailbox> {
    let (sender, receiver) = unbounded_channel();
    let (name, stack) = match reactor {
        Reactor::Session(index) => (format!("session-{index}"), SESSION_STACK_BYTES),
        Reactor::Group => ("group".to_owned(), STACK_BYTES),
        Reactor::Handshakes => ("handshakes".to_owned(), STACK_BYTES),
        Reactor::Log(index) => (format!("log-{index}"), STACK_BYTES),
        Reactor::Background => ("background".to_owned(), STACK_BYTES),
        Reactor::Pages(index) => (format!("pages-{index}"), STACK_BYTES),
        Reactor::Parse(index) => (format!("parse-{index}"), SESSION_STACK_BYTES),
    };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time();
    if !matches!(
        reactor,
        Reactor::Log(_) | Reactor::Pages(_) | Reactor::Parse(_)
    ) {
        // These threads have no sockets: without them they sleep on a futex, which wakes faster.
        builder.enable_io();
    }
    let runtime = builder.build()?;
    std::thread::Builder::new()
        .name(name)
        .stack_size(stack)
        .spawn(move || {
            CURRENT.with(|current| current.set(Some(reactor)));
            let tasks = LocalSet::new();
            base::turns::put_off_with(|waker| PUT_OFF.with(|list| list.put_off(waker)));
            tasks.spawn_local(wake_put_off());
            if spin > Duration::ZERO {
                tasks.spawn_local(spin_after_activity(spin));
            }
            tasks.block_on(&runtime, serve(receiver));
        })?;
    Ok(Mailbox(Mutex::new(sender)))
}

async fn serve(mut mailbox: UnboundedReceiver<TaskStart>) {
    while let Some(start) = mailbox.recv().await {
        tokio::task::spawn_local(start());
    }
}

/// The tasks of this thread that give way until it has looked for events: the runtime's own task
/// set does so only after 61 turns while somebody is always ready.
#[derive(Default)]
struct PutOff {
    wakers: RefCell<Vec<Waker>>,
    any: Notify,
}

impl PutOff {
    fn put_off(&self, waker: &Waker) {
        self.wakers.borrow_mut().push(waker.clone());
        self.any.notify_one();
    }
}

/// Wakes those who gave way, once the thread has looked for events.
async fn wake_put_off() {
    let list = PUT_OFF.with(|list| *list);
    loop {
        list.any.notified().await;
        tokio::task::yield_now().await;
        let wakers = list.wakers.take();
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Keeps a reactor awake for a short while after it has read or answered something, because waking
/// a sleeping core costs a lone client more than its statement.
///
/// With several clients the cores have better things to do, the clients themselves among them: a
/// reactor whose reads come from more than one connection does not spin, and of several reactors
/// only one does at a time. Except for a moment after [`hurry`]: where transactions stand in line
/// for one row, each step of its holder is waited for by all, and the cores are idle meanwhile.
/// Such a reactor offers its core to whatever else could run, over and over; where something else
/// takes it for long, the cores are not idle at all, and it sleeps like the others for a while.
#[derive(Default)]
struct Spinner {
    /// When something was last read or written.
    active_at: Cell<u64>,
    /// Until when it stays awake whatever is read.
    hurries_until: Cell<u64>,
    /// Until when it does not, because others need the cores.
    yields_until: Cell<u64>,
    awake: Cell<bool>,
    activity: Notify,
    /// The connection that was read from last.
    reader: Cell<u64>,
    /// How crowded the reactor is: rises with each read of another connection than the last, and
    /// falls with each of the same one. Above zero, nobody spins.
    crowd: Cell<u32>,
}

/// A reactor is taken for crowded until so many reads in a row came from one connection.
const CROWD_READS: u32 = 16;

/// How long a reactor stays awake after [`hurry`]: what a client takes to send its next statements.
const HURRY: Duration = Duration::from_micros(500);

/// An offered core that comes back later than this is needed by others.
const OFFER: Duration = Duration::from_micros(300);

/// For how long a reactor whose core was needed by others does not stay awake.
const OFFERED_FOR: Duration = Duration::from_millis(100);

/// Whether a reactor of this process spins.
static IS_SPINNING: AtomicBool = AtomicBool::new(false);

/// Says that a socket of this reactor has delivered something.
pub fn note_read(connection: u64) {
    if let Some(spinner) = SPINNER.with(Cell::get) {
        let crowd = match spinner.reader.replace(connection) == connection {
            true => spinner.crowd.get().saturating_sub(1),
            false => CROWD_READS,
        };
        spinner.crowd.set(crowd);
        spinner.note();
    }
}

/// Says that a socket of this reactor has taken something.
pub fn note_write() {
    if let Some(spinner) = SPINNER.with(Cell::get) {
        spinner.note();
    }
}

/// Keeps this reactor awake for [`HURRY`], however many connections it serves.
pub fn hurry() {
    if let Some(spinner) = SPINNER.with(Cell::get) {
        let now = clock::now();
        if now.0 < spinner.yields_until.get() {
            return;
        }
        spinner.hurries_until.set(now.after(HURRY).0);
        if !spinner.awake.get() {
            spinner.activity.notify_one();
        }
    }
}

impl Spinner {
    fn note(&self) {
        if self.crowd.get() > 0 {
            return;
        }
        self.active_at.set(clock::now().0);
        if !self.awake.get() {
            self.activity.notify_one();
        }
    }

    /// Lets other threads run that could, and notes when they took long.
    fn offer_core(&self) {
        let before = clock::now();
        std::thread::yield_now();
        let after = clock::now();
        if after > before.after(OFFER) {
            self.hurries_until.set(0);
            self.yields_until.set(after.after(OFFERED_FOR).0);
        }
    }

    fn hurries(&self) -> bool {
        clock::now().0 < self.hurries_until.get()
    }

    /// Whether something was read or written less than `spin` ago, by one connection only.
    fn goes_on(&self, spin: u64) -> bool {
        self.crowd.get() == 0 && clock::now().0.saturating_sub(self.active_at.get()) < spin
    }
}

/// Yields over and over for `spin` after each read or write; each yield lets the runtime look for
/// events without sleeping.
async fn spin_after_activity(spin: Duration) {
    let spin = u64::try_from(spin.as_nanos()).unwrap_or(u64::MAX);
    // One per thread, which ends with the process.
    let spinner: &'static Spinner = Box::leak(Box::default());
    SPINNER.with(|current| current.set(Some(spinner)));
    loop {
        spinner.activity.notified().await;
        spinner.awake.set(true);
        while spinner.hurries() {
            spinner.offer_core();
            tokio::task::yield_now().await;
        }
        spinner.awake.set(false);
        if IS_SPINNING.swap(true, Ordering::AcqRel) {
            continue;
        }
        spinner.awake.set(true);
        while spinner.goes_on(spin) {
            tokio::task::yield_now().await;
        }
        spinner.awake.set(false);
        IS_SPINNING.store(false, Ordering::Release);
    }
}
