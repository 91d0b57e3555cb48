//! Serving one client: the task between its stream and its [`pg::session::Session`].
//!
//! One task does everything for one client and never blocks: it reads (also while a statement
//! runs, so that pipelined messages and a client that is gone are noticed), resumes the statement's
//! coroutine, opens the gate for held output as the engine settles its debt, writes what may leave,
//! and keeps the session's timers.
//!
//! ```text
//!             ┌───────────── Driver::poll, until nothing moves ─────────────┐
//!  stream ──→ │ read → statement (coroutine) → gate (Gate::settle) → write │ ──→ stream
//!             └── interrupts: cancel, terminate ── timers ───────────────────┘
//! ```
//!
//! # How a session ends
//! | because | the client gets |
//! |---|---|
//! | it says goodbye, or its stream ends | what is open; a statement in progress is interrupted |
//! | the node shuts down, `Interrupt::Terminate` | FATAL 57P01, once what is held has settled |
//! | the node no longer leads | nothing: it goes on elsewhere ([`Left`]), once it idles outside a block and all is settled |
//! | it holds what cannot go elsewhere | FATAL 57P01 |
//! | it idles in a transaction for too long | FATAL 25P03 |
//! | it idles for too long | FATAL 57P05 |
//! | it breaks the protocol | FATAL 08P01 |
//! | an outcome is held and nobody can wait | FATAL 08007 |
//!
//! # Who gets a cancel
//! The statement that runs; where none runs, the wait of what is held first (DESIGN, P5).
//!
//! # What it leaves out
//! On which node a client is served, and which rules it has to pass, is decided before
//! ([`read_startup`] only reads, and encrypts if it is asked to); what it shows is `pg`'s affair.

use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::budget::SMALL_BYTES_MAX;
use base::coro::{self, Interrupt, Interrupts};
use base::engine::{ClusterMonitor, ClusterStatus, Engine, Gate, Outcomes};
use base::env::{BoxFuture, Env, Instant, Stream};
use base::error::{Error, ErrorClass, Result, SqlState};
use base::memory::Reservation;
use base::{Debt, Xid};
use pg::backend::TransactionStatus;
use pg::channel::Channel;
use pg::handover::Resume;
use pg::log::{Entry, Kind, SessionLog, Who};
use pg::output::{outcome_unknown, settled_by, Undone};
use pg::seam::Sql;
use pg::session::{Identity, Session, Turn};
use sql::catalog::shared::Catalogs;
use sql::session::activity::{Activity, Registry};
use sql::session::statistics::Ended;
use sql::session::{LogLevel, LogSettings};

use pg::auth::Access;
use pg::startup::{CancelKey, StartupParameters};

use crate::stretches::{Resumed, Sampled, Stretches};
use crate::unproved::Proving;
use hearing::Hearing;

mod hearing;
mod startup;

pub(crate) use startup::part;
pub use startup::{read_startup, refuse, StartupInfo};

/// A session that is told to end waits so long for what it holds to settle; then an outcome that
/// it still holds is unknown (08007).
pub const OUTCOME_WAIT_MAX: Duration = Duration::from_secs(5);

/// The same where nobody leads, or nobody follows: a node that stops is not to wait for others.
pub const HOPELESS_WAIT_MAX: Duration = Duration::from_millis(200);

/// A client that does not read its last messages is given up after this.
pub const CLOSE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Pipelined bytes that are taken from a client while a statement runs; beyond it they wait in the
/// operating system. A single longer message is still taken whole.
pub const PIPELINED_BYTES_MAX: usize = 1 << 20;

/// Everything that a session needs besides its stream.
pub struct SessionContext {
    /// The node's transactions.
    pub engine: Arc<Engine>,
    /// The node's world.
    pub env: Arc<dyn Env>,
    /// What the client asked for.
    pub startup: StartupParameters,
    /// Settings that the node gives to every session.
    pub defaults: Vec<(String, String)>,
    /// What came after its startup message.
    pub following: Vec<u8>,
    /// Names the session in cancel requests.
    pub key: CancelKey,
    /// Where others leave interrupts for the session.
    pub interrupts: Arc<Interrupts>,
    /// Where others see what the session does.
    pub activity: Arc<Activity>,
    /// The sessions of this node.
    pub registry: Arc<dyn Registry>,
    /// The catalogs that they share.
    pub catalogs: Arc<Catalogs>,
    /// The session's number among those that are passed on.
    pub number: u64,
    /// Whether another node has the client; that one has the session go on when this one is lost.
    pub passed_on: bool,
    /// What the session was, if it was served elsewhere before.
    pub resume: Option<Resume>,
    /// Whether the session has to leave. An interrupt comes with it.
    pub departed: Box<dyn Fn() -> bool>,
    /// What the client has to show.
    pub access: Access,
    /// The cluster's, for roles that are not there.
    pub mock_key: Vec<u8>,
    /// The client must have shown who it is within this time.
    pub authentication_timeout: Duration,
    /// Told once it has, and its session has begun.
    pub proving: Proving,
    /// Told how long its statements run without giving way.
    pub stretches: Arc<Stretches>,
    /// Where the client comes from, `ip:port`.
    pub client_address: String,
    /// Where it was accepted, `ip:port`.
    pub server_address: String,
    /// How the node logs what happens before it has begun.
    pub log_settings: Arc<LogSettings>,
}

impl std::fmt::Debug for SessionContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionContext({})", self.key.pid)
    }
}

/// A session that is to go on on another node.
pub struct Left {
    /// Its client.
    pub stream: Box<dyn Stream>,
    /// What it is; none if it has not begun.
    pub resume: Option<Resume>,
    /// What its client has sent and nobody has handled.
    pub following: Vec<u8>,
}

/// Serves one client until its session ends or has to go on elsewhere; to be run on a reactor for
/// sessions.
pub async fn serve(stream: Box<dyn Stream>, context: SessionContext) -> Option<Left> {
    let SessionContext {
        engine,
        env,
        startup,
        defaults,
        following,
        key,
        interrupts,
        activity,
        registry,
        catalogs,
        number,
        passed_on,
        resume,
        departed,
        access,
        mock_key,
        authentication_timeout,
        proving,
        stretches,
        client_address,
        server_address,
        log_settings,
    } = context;
    let who = Who {
        pid: key.pid,
        user: startup.user.clone(),
        database: startup.database.clone(),
        client: split_address(&client_address),
        started: env.wall_clock(),
        kind: Kind::Client,
    };
    let log = SessionLog::new(env.clone(), who, log_settings);
    if !passed_on && resume.is_none() {
        log.follows_received();
    }
    let channel = Rc::new(Channel::with_log(log));
    channel.input.borrow_mut().feed(&following);
    let identity = Identity {
        startup,
        defaults,
        key,
        client: split_address(&client_address),
        server: split_address(&server_address),
        interrupts: interrupts.clone(),
        activity: activity.clone(),
        registry,
        catalogs,
        number,
        passed_on,
        resume: resume.clone(),
        access,
        mock_key,
        authentication_timeout,
    };
    let start = (engine.clone(), env.clone(), channel.clone());
    let starting = coro::run(interrupts.clone(), move || {
        let (engine, env, channel) = start;
        Session::start(engine, env, channel, identity)
    });
    let asked = (engine.gate.clone(), engine.cluster.clone());
    let mut driver = Driver::new(stream, env, asked, interrupts, channel, starting);
    driver.outcomes = engine.outcomes.clone();
    driver.activity = Some(activity);
    driver.departed = Some(departed);
    driver.passed_on = passed_on;
    driver.unbegun = Some(resume);
    driver.proving = proving;
    driver.stretches = stretches;
    poll_fn(|cx| driver.poll(cx)).await;
    let Some(resume) = driver.left.take() else {
        // One that goes on elsewhere has not ended, and neither has one that never began.
        if driver.unbegun.is_none() && !driver.goes_on {
            driver.channel.log.disconnected();
        }
        let env = driver.env.clone();
        part(&mut *driver.into_stream(), &*env).await;
        return None;
    };
    let following = driver.channel.input.borrow().buffered().to_vec();
    Some(Left {
        stream: driver.stream,
        resume,
        following,
    })
}

type Starting<S> = coro::Run<Result<Box<Session<S>>>>;
type Running<S> = coro::Run<(Box<Session<S>>, Turn)>;

/// Where the session's state is.
enum Work<S: Sql> {
    /// The startup message is being answered.
    Starting(Starting<S>),
    /// A statement runs and has it.
    Running(Running<S>),
    /// It idles.
    Idle(Box<Session<S>>),
    /// It is dropped, with all that it has.
    Ending(coro::Run<()>),
    /// There is none any more.
    Ended,
}

/// How far the end has come.
#[derive(Debug)]
enum End {
    NotYet,
    /// What is held may settle until then; after it, or when all has settled, the error is sent.
    /// A client that said goodbye gets none.
    Settling(Instant, Option<Error>),
    /// The last bytes are written, until then at the latest.
    Closing(Instant),
    /// Nothing more is read or written. A statement that still runs has been told to end.
    Over,
}

/// A wait of one kind: until when, and the timer.
#[derive(Default)]
struct Timer(Option<(Instant, BoxFuture<'static, ()>)>);

impl Timer {
    /// Whether `deadline` has passed; the task is woken when it does.
    fn passed(&mut self, env: &dyn Env, deadline: Option<Instant>, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = deadline else {
            self.0 = None;
            return false;
        };
        if self.0.as_ref().is_none_or(|(known, _)| *known != deadline) {
            self.0 = Some((deadline, env.sleep_until(deadline)));
        }
        let passed = self
            .0
            .as_mut()
            .is_some_and(|(_, timer)| timer.as_mut().poll(cx).is_ready());
        if passed {
            self.0 = None;
        }
        passed
    }
}

/// An error that ends the session.
fn fatal_of(error: &Error) -> Error {
    Error::of_class(ErrorClass::Session, error.state(), error.message())
}

struct Driver<S: Sql> {
    env: Arc<dyn Env>,
    gate: Arc<dyn Gate>,
    cluster: Arc<dyn ClusterMonitor>,
    /// Who knows the ids of commits, if anybody does.
    outcomes: Option<Arc<dyn Outcomes>>,
    stream: Box<dyn Stream>,
    interrupts: Arc<Interrupts>,
    /// What the input that has arrived takes.
    input_memory: Reservation,
    channel: Rc<Channel>,
    /// Where it is seen that output is held, and what was shown there last.
    activity: Option<Arc<Activity>>,
    is_held: bool,
    work: Work<S>,
    /// Waits for the debt of the first held chunk.
    settling: Option<BoxFuture<'static, Result<()>>>,
    end: End,
    is_readable: bool,
    /// Nothing was read because enough pipelined bytes wait to be handled.
    is_input_full: bool,
    /// Since when the session idles.
    idle_since: Instant,
    statement_timer: Timer,
    idle_timer: Timer,
    end_timer: Timer,
    hearing: Hearing,
    /// Whether the session has to leave; none once it is known that it has.
    departed: Option<Box<dyn Fn() -> bool>>,
    /// Since when it has to.
    leaves_since: Option<Instant>,
    leave_timer: Timer,
    /// Another node has the client.
    passed_on: bool,
    /// What the session was before it began here, until it has.
    unbegun: Option<Option<Resume>>,
    proving: Proving,
    stretches: Arc<Stretches>,
    sampled: Sampled,
    /// What goes on elsewhere.
    left: Option<Option<Resume>>,
    /// Whether it goes on elsewhere, and whoever has its client knows all of it.
    goes_on: bool,
}

impl<S: Sql> Driver<S> {
    fn new(
        stream: Box<dyn Stream>,
        env: Arc<dyn Env>,
        (gate, cluster): (Arc<dyn Gate>, Arc<dyn ClusterMonitor>),
        interrupts: Arc<Interrupts>,
        channel: Rc<Channel>,
        starting: Starting<S>,
    ) -> Driver<S> {
        Driver {
            idle_since: env.now(),
            env,
            gate,
            cluster,
            outcomes: None,
            stream,
            input_memory: Reservation::for_session("Input", interrupts.clone()),
            interrupts,
            channel,
            activity: None,
            is_held: false,
            work: Work::Starting(starting),
            settling: None,
            end: End::NotYet,
            is_readable: true,
            is_input_full: false,
            statement_timer: Timer::default(),
            idle_timer: Timer::default(),
            end_timer: Timer::default(),
            hearing: Hearing::default(),
            departed: None,
            leaves_since: None,
            leave_timer: Timer::default(),
            passed_on: false,
            unbegun: None,
            proving: Proving::default(),
            stretches: Arc::default(),
            sampled: Sampled::default(),
            left: None,
            goes_on: false,
        }
    }

    /// The stream; everything else of the session ends.
    fn into_stream(self) -> Box<dyn Stream> {
        self.stream
    }

    /// Moves everything that can move.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.notice_departure();
            let mut moved = self.poll_read(cx);
            moved |= self.poll_work(cx);
            // A COPY FROM STDIN makes room while its statement runs.
            moved |= self.is_input_full && !self.has_enough_input();
            moved |= self.poll_gate(cx);
            moved |= self.poll_write(cx);
            moved |= self.poll_interrupts(cx);
            moved |= self.poll_timers(cx);
            moved |= self.poll_leave(cx);
            moved |= self.poll_end(cx);
            if matches!(self.end, End::Over) {
                match self.work {
                    Work::Ended => return Poll::Ready(()),
                    Work::Idle(_) => {
                        self.let_go();
                        continue;
                    }
                    Work::Starting(_) | Work::Running(_) | Work::Ending(_) => {}
                }
            }
            if !moved {
                self.show_held();
                return Poll::Pending;
            }
        }
    }

    /// Shows whether output is held.
    fn show_held(&mut self) {
        let is_held = self.channel.output.borrow().waits_for().is_some();
        if std::mem::replace(&mut self.is_held, is_held) == is_held {
            return;
        }
        if let Some(activity) = &self.activity {
            activity.set_held(is_held);
        }
    }

    // ---- Reading ----

    fn poll_read(&mut self, cx: &mut Context<'_>) -> bool {
        self.is_input_full = false;
        if !self.is_readable || !matches!(self.end, End::NotYet) {
            return false;
        }
        self.is_input_full = self.has_enough_input();
        if self.is_input_full {
            return false;
        }
        let mut input = self.channel.input.borrow_mut();
        match self.stream.poll_read(cx, input.space()) {
            Poll::Pending => false,
            Poll::Ready(Ok(count)) if count > 0 => {
                input.filled(count);
                let memory = input.memory();
                drop(input);
                match self.input_memory.set(memory) {
                    Ok(()) => self.channel.arrived.notify_all(),
                    Err(error) => self.end_with(Some(fatal_of(&error))),
                }
                true
            }
            Poll::Ready(_) => {
                drop(input);
                self.client_is_gone();
                true
            }
        }
    }

    fn has_enough_input(&self) -> bool {
        let input = self.channel.input.borrow();
        input.buffered().len() > PIPELINED_BYTES_MAX && input.has_message()
    }

    /// The client has closed its side. One that has said goodbye behind its last query gets it
    /// executed; any other is gone, and so is what it was doing.
    fn client_is_gone(&mut self) {
        const GOODBYE: &[u8] = b"X\0\0\0\x04";
        self.is_readable = false;
        let said_goodbye = self.channel.input.borrow().buffered().ends_with(GOODBYE);
        if !said_goodbye {
            self.note_lost_client();
            self.count_end(Ended::Abandoned);
            self.give_up();
        }
    }

    /// Logs that the client is gone in the midst of a transaction.
    fn note_lost_client(&self) {
        let Work::Idle(session) = &self.work else {
            return;
        };
        session.remember();
        if session.status() != TransactionStatus::Idle {
            let message = "unexpected EOF on client connection with an open transaction";
            let body = Error::new(SqlState::CONNECTION_FAILURE, message);
            self.channel.log.report(&Entry {
                level: LogLevel::Log,
                body: &body,
                statement: None,
            });
        }
    }

    /// Nobody is there to answer.
    fn give_up(&mut self) {
        self.channel.output.borrow_mut().discard();
        self.channel.room.notify_all();
        self.settling = None;
        self.end = End::Over;
        self.interrupts.raise(Interrupt::Terminate);
    }

    // ---- Executing ----

    fn poll_work(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.work {
            Work::Starting(starting) => match Pin::new(starting).poll(cx) {
                Poll::Pending => false,
                Poll::Ready(Ok(session)) => {
                    self.unbegun = None;
                    self.proving.done();
                    self.become_idle(session);
                    true
                }
                // The leader was lost before the session began.
                Poll::Ready(Err(error)) if self.may_begin_elsewhere(&error) => {
                    self.work = Work::Ended;
                    self.end = End::Over;
                    self.left = self.unbegun.take();
                    true
                }
                Poll::Ready(Err(error)) => {
                    self.work = Work::Ended;
                    self.end_with(Some(error));
                    true
                }
            },
            Work::Running(running) => {
                let resumed = Resumed::now(&*self.env, &mut self.sampled);
                let polled = Pin::new(running).poll(cx);
                let activity = self.activity.as_deref();
                self.stretches.note(&*self.env, resumed, activity);
                match polled {
                    Poll::Pending => false,
                    Poll::Ready((session, turn)) => {
                        self.turn_over(session, turn);
                        true
                    }
                }
            }
            Work::Idle(_) => self.start_work() || self.start_hearing(cx),
            Work::Ending(run) => match Pin::new(run).poll(cx) {
                Poll::Pending => false,
                Poll::Ready(()) => {
                    self.work = Work::Ended;
                    true
                }
            },
            Work::Ended => false,
        }
    }

    fn start_work(&mut self) -> bool {
        let ready = matches!(self.end, End::NotYet)
            && !self.could_leave()
            && self.channel.has_room()
            && self.channel.input.borrow().has_message();
        if !ready {
            return false;
        }
        match std::mem::replace(&mut self.work, Work::Ended) {
            Work::Idle(session) => {
                let run = coro::run(self.interrupts.clone(), move || pg::session::run(session));
                self.work = Work::Running(run);
                true
            }
            other => {
                self.work = other;
                false
            }
        }
    }

    fn turn_over(&mut self, session: Box<Session<S>>, turn: Turn) {
        self.work = Work::Ended;
        if !matches!(turn, Turn::Idle) || matches!(self.end, End::Over) {
            session.remember();
        }
        self.become_idle(session);
        match turn {
            Turn::Idle => {}
            Turn::Elsewhere => {
                self.departed = None;
                self.leaves_since.get_or_insert(self.env.now());
            }
            Turn::Terminated => {
                self.let_go();
                self.end_with(None);
            }
            Turn::Fatal(error) => {
                self.let_go();
                self.end_with(Some(error));
            }
        }
    }

    /// Drops the session, in a coroutine: it may have much to roll back.
    fn let_go(&mut self) {
        self.work = match std::mem::replace(&mut self.work, Work::Ended) {
            Work::Idle(session) => Work::Ending(coro::run(Arc::default(), move || drop(session))),
            Work::Ending(run) => Work::Ending(run),
            Work::Starting(_) | Work::Running(_) | Work::Ended => Work::Ended,
        };
    }

    fn become_idle(&mut self, session: Box<Session<S>>) {
        self.work = Work::Idle(session);
        self.idle_since = self.env.now();
    }

    // ---- The gate ----

    fn poll_gate(&mut self, cx: &mut Context<'_>) -> bool {
        let mut opened = false;
        loop {
            if let Some(settling) = &mut self.settling {
                match settling.as_mut().poll(cx) {
                    Poll::Pending => return opened,
                    Poll::Ready(Ok(())) => self.settling = None,
                    Poll::Ready(Err(error)) => {
                        self.settling = None;
                        self.log_late(&error);
                        let undone = self.channel.output.borrow_mut().fail(&error);
                        self.undone(undone);
                        return true;
                    }
                }
            }
            let gate = &*self.gate;
            let mut output = self.channel.output.borrow_mut();
            opened |= output.open(settled_by(gate));
            let Some(owes) = output.waits_for() else {
                return opened;
            };
            if let Some((debt, durability)) = owes.unsettled(settled_by(gate)) {
                self.settling = Some(gate.settle(debt.clone(), *durability));
            }
        }
    }

    /// Logs what has befallen an answer after its statement had ended.
    fn log_late(&self, error: &Error) {
        if let Work::Idle(session) = &self.work {
            session.remember();
        }
        self.channel.log.report(&Entry {
            level: LogLevel::Error,
            body: error,
            statement: None,
        });
    }

    /// Held output was let go, replaced, or is lost.
    fn undone(&mut self, undone: Undone) {
        self.settling = None;
        match undone {
            Undone::Released
            | Undone::Replaced {
                session_fails: false,
            } => {}
            Undone::Replaced {
                session_fails: true,
            } => match std::mem::replace(&mut self.work, Work::Ended) {
                // In a coroutine: it may have much to roll back.
                Work::Idle(mut session) => {
                    let run = coro::run(self.interrupts.clone(), move || {
                        session.fail();
                        (session, Turn::Idle)
                    });
                    self.work = Work::Running(run);
                }
                other => {
                    self.work = other;
                    self.interrupts.raise(Interrupt::HistoryCut);
                }
            },
            Undone::Close(error) => {
                self.interrupts.raise(Interrupt::Terminate);
                self.close(Some(&error));
            }
            Undone::Unknown(commit) => {
                self.interrupts.raise(Interrupt::Terminate);
                self.close(Some(&outcome_unknown(self.id_of(&commit))));
            }
        }
    }

    // ---- Writing ----

    fn poll_write(&mut self, cx: &mut Context<'_>) -> bool {
        let mut wrote = false;
        loop {
            let mut output = self.channel.output.borrow_mut();
            if output.writable().is_empty() {
                break;
            }
            match self.stream.poll_write(cx, output.writable()) {
                Poll::Pending => break,
                Poll::Ready(Ok(count)) if count > 0 => {
                    output.wrote(count);
                    wrote = true;
                }
                Poll::Ready(_) => {
                    drop(output);
                    self.give_up();
                    return true;
                }
            }
        }
        if wrote {
            self.channel.room.notify_all();
            self.idle_since = self.env.now();
        }
        wrote
    }

    // ---- Interrupts and timers ----

    fn poll_interrupts(&mut self, cx: &mut Context<'_>) -> bool {
        // A statement that runs takes its own interrupts.
        if !matches!(self.work, Work::Idle(_)) || !matches!(self.end, End::NotYet) {
            return false;
        }
        let Poll::Ready(interrupt) = self.interrupts.poll_take(cx) else {
            return false;
        };
        match interrupt {
            Interrupt::Cancel => self.cancel_wait(&Error::from(interrupt)),
            // It was for a statement that has just ended.
            Interrupt::StatementTimeout => {
                if self.channel.output.borrow().waits_for_read() {
                    self.cancel_wait(&Error::from(interrupt));
                }
            }
            // The gate looks after what is held, and the engine refuses whatever a transaction
            // that has lost its history does next.
            Interrupt::HistoryCut => {}
            // What it holds for later, in cursors or temporary tables, is too much for the node.
            Interrupt::OutOfMemory => {
                if self.interrupts.memory().reserved() > SMALL_BYTES_MAX {
                    self.end_with(Some(fatal_of(&Error::from(interrupt))));
                }
            }
            Interrupt::IdleTimeout | Interrupt::Terminate => {
                self.end_with(Some(Error::from(interrupt)));
            }
        }
        true
    }

    /// Gives up the wait of what is held first, if anything is.
    fn cancel_wait(&mut self, error: &Error) {
        let mut output = self.channel.output.borrow_mut();
        if output.waits_for().is_none() {
            return;
        }
        let undone = output.cancel(error, settled_by(&*self.gate));
        drop(output);
        self.log_late(error);
        self.undone(undone);
    }

    fn poll_timers(&mut self, cx: &mut Context<'_>) -> bool {
        if !matches!(self.end, End::NotYet) {
            return false;
        }
        let is_idle = matches!(self.work, Work::Idle(_));
        let waits_for_read = is_idle && self.channel.output.borrow().waits_for_read();
        let deadline = match !is_idle || waits_for_read {
            true => self.channel.deadline.get(),
            false => None,
        };
        if self.statement_timer.passed(&*self.env, deadline, cx) {
            self.channel.deadline.set(None);
            if is_idle {
                self.cancel_wait(&Error::from(Interrupt::StatementTimeout));
            } else {
                self.interrupts.raise(Interrupt::StatementTimeout);
            }
            return true;
        }
        let idle_limit = match &self.work {
            Work::Idle(session) if self.channel.output.borrow().pending() == 0 => {
                session.idle_limit()
            }
            _ => None,
        };
        let deadline = idle_limit
            .as_ref()
            .map(|(limit, _)| self.idle_since.after(*limit));
        if self.idle_timer.passed(&*self.env, deadline, cx) {
            self.end_with(idle_limit.map(|(_, error)| error));
            return true;
        }
        false
    }

    // ---- Leaving ----

    /// Whether nothing but what is held keeps a session that has to leave.
    fn could_leave(&self) -> bool {
        let Work::Idle(session) = &self.work else {
            return false;
        };
        let is_outside = session.status() == TransactionStatus::Idle && !session.in_batch();
        self.leaves_since.is_some() && is_outside
    }

    /// Before anything is started: a session that has to leave begins nothing more, not even when
    /// this node leads again by now.
    fn notice_departure(&mut self) {
        if self.departed.as_ref().is_some_and(|departed| departed()) {
            self.departed = None;
            self.leaves_since = Some(self.env.now());
        }
    }

    fn may_begin_elsewhere(&self, error: &Error) -> bool {
        let is_shown = self.channel.output.borrow().pending() > 0;
        let is_unused = self.channel.input.borrow().taken() == 0;
        let is_failover = error.state() == SqlState::SERIALIZATION_FAILURE;
        is_failover && error.class() == ErrorClass::Engine && is_unused && !is_shown
    }

    /// A session that has to leave does so when it idles outside a block and nothing is held. An
    /// open block fails by itself.
    fn poll_leave(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(since) = self.leaves_since.filter(|_| self.could_leave()) else {
            return false;
        };
        if !matches!(self.end, End::NotYet) {
            return false;
        }
        if self.channel.output.borrow().pending() > 0 {
            let deadline = since.after(OUTCOME_WAIT_MAX);
            let is_held = self.channel.output.borrow().waits_for().is_some();
            if is_held && self.leave_timer.passed(&*self.env, Some(deadline), cx) {
                self.end_with(Some(Error::from(Interrupt::Terminate)));
                if let End::Settling(limit, _) = &mut self.end {
                    *limit = self.env.now();
                }
                return true;
            }
            return false;
        }
        let Work::Idle(session) = &mut self.work else {
            return false;
        };
        match session.leave() {
            // Whoever has the client knows all that was told.
            Ok(_) if self.passed_on => {
                self.goes_on = true;
                self.let_go();
                self.close(None);
            }
            Ok(resume) => {
                self.let_go();
                self.end = End::Over;
                self.left = Some(Some(resume));
            }
            Err(error) => self.end_with(Some(error)),
        }
        true
    }

    // ---- The end ----

    /// The session ends with an error, once what it holds has settled or cannot be waited for.
    fn end_with(&mut self, error: Option<Error>) {
        if !matches!(self.end, End::NotYet) {
            return;
        }
        if let Work::Idle(session) = &self.work {
            session.remember();
        }
        self.let_go();
        if let Some(error) = &error {
            self.count_end(match error.state() {
                SqlState::ADMIN_SHUTDOWN => Ended::Killed,
                _ => Ended::Fatal,
            });
        }
        let error = error.map(|error| self.explain(error));
        let patience = match can_settle(&self.cluster.status()) {
            true => OUTCOME_WAIT_MAX,
            false => HOPELESS_WAIT_MAX,
        };
        let limit = self.env.now().after(patience);
        self.end = End::Settling(limit, error);
    }

    /// Counts how the session ends.
    fn count_end(&self, how: Ended) {
        if let Some(activity) = &self.activity {
            activity.tally().end(how);
        }
    }

    /// Who is told to end because the node no longer leads should know it.
    fn explain(&self, error: Error) -> Error {
        if error.state() != SqlState::ADMIN_SHUTDOWN {
            return error;
        }
        let status = self.cluster.status();
        if status.leader == Some(status.node) {
            return error;
        }
        Error::of_class(
            ErrorClass::Session,
            SqlState::ADMIN_SHUTDOWN,
            "terminating connection: this node no longer leads its group",
        )
    }

    /// The id of a commit that is held, if it has one.
    fn id_of(&self, commit: &Debt) -> Option<Xid> {
        let outcomes = self.outcomes.as_ref()?;
        outcomes.committed_xid(commit)
    }

    /// Discards what is held and writes what is left.
    fn close(&mut self, error: Option<&Error>) {
        if let Some(error) = error {
            self.channel.log.fatal(error);
            if error.class() == ErrorClass::Node {
                self.env.stop_node(&error.to_string());
            }
            self.channel.output.borrow_mut().close(error);
        }
        self.settling = None;
        self.end = End::Closing(self.env.now().after(CLOSE_WAIT_MAX));
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> bool {
        let deadline = match &self.end {
            End::NotYet | End::Over => return false,
            End::Settling(deadline, _) | End::Closing(deadline) => *deadline,
        };
        let passed = self.end_timer.passed(&*self.env, Some(deadline), cx);
        let output = self.channel.output.borrow();
        let (holds, commit) = (
            output.waits_for().is_some(),
            output.holds_outcome().cloned(),
        );
        let is_written = output.writable().is_empty();
        drop(output);
        match std::mem::replace(&mut self.end, End::Over) {
            End::Settling(_, error) if passed || !holds => {
                let unknown = commit.map(|commit| outcome_unknown(self.id_of(&commit)));
                self.close(unknown.as_ref().or(error.as_ref()));
                true
            }
            End::Closing(_) if passed || is_written => true,
            unchanged => {
                self.end = unchanged;
                false
            }
        }
    }
}

/// Whether what is held may settle soon: there is a leader, and a majority behind it.
fn can_settle(status: &ClusterStatus) -> bool {
    let voters = || status.replicas.iter().filter(|replica| replica.voter);
    let connected = voters().filter(|replica| replica.connected).count();
    match status.leader {
        None => false,
        // An engine that is no group has no replicas.
        Some(leader) if leader == status.node => {
            status.replicas.is_empty() || connected > voters().count() / 2
        }
        Some(_) => true,
    }
}

/// The address and the port of `ip:port`.
pub(crate) fn split_address(address: &str) -> Option<(String, u16)> {
    let (ip, port) = address.rsplit_once(':')?;
    let ip = ip.trim_start_matches('[').trim_end_matches(']');
    Some((ip.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod world;
