//! Sessions over streams in memory, a clock moved by hand and a gate opened by hand.

use std::future::Future;
use std::pin::{pin, Pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::limits::HELD_OUTPUT_BYTES_MAX;
use base::sync::{Event, Mutex};
use base::{Durability, NodeId, Timestamp};
use pg::client::{Client, Reply};
use pg::frontend::Frontend;
use pg::script::{Control, Script};
use pg::startup::{put_cancel, put_ssl_request, put_startup, FirstPacket};

use super::world::{ClientEnd, WorldEnv};
use super::*;
use crate::config::AUTHENTICATION_TIMEOUT;

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn startup_packet() -> Vec<u8> {
    let startup = StartupParameters {
        user: "postgres".into(),
        database: "postgres".into(),
        ..StartupParameters::default()
    };
    let mut bytes = Vec::new();
    put_startup(&mut bytes, &startup);
    bytes
}

/// What the server says to a client that sends these bytes first, and what it makes of them.
fn first_packet(bytes: &[u8]) -> (Option<StartupInfo>, Vec<u8>) {
    let env = WorldEnv::default();
    let client = ClientEnd::default();
    let stream = client.server_end();
    client.send(bytes);
    client.close();
    let info = {
        let log = SessionLog::default();
        let read = pin!(read_startup(
            stream,
            &env,
            None,
            AUTHENTICATION_TIMEOUT,
            &log
        ));
        match poll(read) {
            Poll::Ready(read) => read.map(|(_, info)| info),
            Poll::Pending => panic!("the stream has ended"),
        }
    };
    (info, client.receive().0)
}

#[test]
fn encryption_is_refused_and_the_session_goes_on() {
    let mut bytes = Vec::new();
    put_ssl_request(&mut bytes);
    bytes.extend(startup_packet());
    bytes.extend_from_slice(b"more");
    let (info, answer) = first_packet(&bytes);
    let info = info.unwrap();
    assert_eq!(answer, b"N");
    assert_eq!(info.bytes, startup_packet());
    assert_eq!(info.following, b"more");
    let FirstPacket::Startup(startup) = info.packet else {
        panic!("{info:?}");
    };
    assert_eq!(startup.user, "postgres");
}

#[test]
fn a_cancel_request_is_told_apart() {
    let key = CancelKey { pid: 5, secret: 6 };
    let mut bytes = Vec::new();
    put_cancel(&mut bytes, key);
    let (info, answer) = first_packet(&bytes);
    assert_eq!(info.unwrap().packet, FirstPacket::Cancel(key));
    assert!(answer.is_empty());
}

#[test]
fn nonsense_is_told_what_is_wrong() {
    let (info, answer) = first_packet(b"GET / HTTP/1.1\r\n\r\n");
    assert!(info.is_none());
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.starts_with('E') && answer.contains("08P01"),
        "{answer}"
    );
    let (info, answer) = first_packet(b"\0\0");
    assert!(info.is_none() && answer.is_empty());
}

#[test]
fn a_silent_client_is_given_up() {
    let env = WorldEnv::default();
    let client = ClientEnd::default();
    client.send(b"\0\0");
    let log = SessionLog::default();
    let mut read = pin!(read_startup(
        client.server_end(),
        &env,
        None,
        AUTHENTICATION_TIMEOUT,
        &log
    ));
    assert!(poll(read.as_mut()).is_pending());
    env.0.pass(AUTHENTICATION_TIMEOUT - Duration::from_secs(1));
    assert!(poll(read.as_mut()).is_pending());
    env.0.pass(Duration::from_secs(1));
    assert!(matches!(poll(read.as_mut()), Poll::Ready(None)));
}

// ---- Whole sessions over scripted SQL ----

/// A gate that is opened by hand, on a node that leads or follows.
#[derive(Default)]
struct GateByHand {
    state: Mutex<GateState>,
    moved: Event,
}

#[derive(Default)]
struct GateState {
    /// What has settled at `local`, and at the levels above.
    local: u64,
    durable: u64,
    /// The history was cut: what rests above this never happened.
    cut: Option<u64>,
    is_follower: bool,
}

impl GateByHand {
    fn change(&self, change: impl FnOnce(&mut GateState)) {
        change(&mut self.state.lock());
        self.moved.notify_all();
    }

    fn outcome(&self, debt: &Debt, durability: Durability) -> Option<Result<()>> {
        let state = self.state.lock();
        let lsn = debt.groups().map(|part| part.position.lsn.0).max();
        let lsn = lsn.unwrap_or_default();
        if state.cut.is_some_and(|cut| lsn > cut) {
            return Some(Err(Error::serialization("it never happened")));
        }
        let settled = match durability {
            Durability::Off => u64::MAX,
            Durability::Local => state.local,
            _ => state.durable,
        };
        (lsn <= settled).then_some(Ok(()))
    }
}

/// The gate behind its interface, shared with the futures that wait for it.
#[derive(Clone, Default)]
struct SharedGate(Arc<GateByHand>);

impl Gate for SharedGate {
    fn is_settled(&self, debt: &Debt, durability: Durability) -> bool {
        matches!(self.0.outcome(debt, durability), Some(Ok(())))
    }

    fn settle(&self, debt: Debt, durability: Durability) -> BoxFuture<'static, Result<()>> {
        let gate = self.0.clone();
        Box::pin(async move { gate.moved.until(|| gate.outcome(&debt, durability)).await })
    }
}

impl ClusterMonitor for SharedGate {
    fn status(&self) -> ClusterStatus {
        let leader = if self.0.state.lock().is_follower {
            2
        } else {
            1
        };
        ClusterStatus {
            node: NodeId(1),
            leader: Some(NodeId(leader)),
            ..ClusterStatus::default()
        }
    }

    fn is_standby(&self) -> bool {
        false
    }

    fn replayed_until(&self) -> Option<Timestamp> {
        None
    }
}

/// One session with its client, its clock and its gate.
struct Rig {
    env: WorldEnv,
    gate: Arc<GateByHand>,
    control: Rc<Control>,
    interrupts: Arc<Interrupts>,
    wire: ClientEnd,
    client: Client,
    driver: Option<Driver<Script>>,
    writes: usize,
}

impl Rig {
    /// A session that has greeted its client.
    fn new() -> Rig {
        let env = WorldEnv::default();
        let shared = Arc::new(SharedGate::default());
        let gate = shared.0.clone();
        let control = Rc::new(Control::default());
        let interrupts = Arc::new(Interrupts::default());
        let wire = ClientEnd::default();
        let channel = Rc::new(Channel::default());
        let shared_env: Arc<dyn Env> = Arc::new(env.clone());
        let parts = (control.clone(), shared_env.clone());
        let start = (channel.clone(), interrupts.clone());
        let starting = coro::run(interrupts.clone(), move || {
            let mut session = Session::with(Script::new(parts.0), parts.1, start.0, start.1);
            session.greet(CancelKey { pid: 7, secret: 8 }, 0, &[]);
            Ok(Box::new(session))
        });
        let driver = Driver::new(
            wire.server_end(),
            shared_env,
            (shared.clone(), shared),
            interrupts.clone(),
            channel,
            starting,
        );
        let mut rig = Rig {
            env,
            gate,
            control,
            interrupts,
            wire,
            client: Client::new("postgres", "postgres", &[]),
            driver: Some(driver),
            writes: 0,
        };
        // The startup message was read before the session began.
        let length = rig.client.outgoing().len();
        rig.client.sent(length);
        let greeting = rig.reply();
        assert!(greeting.error.is_none(), "{greeting:?}");
        rig
    }

    /// Lets the session do what it can.
    fn run(&mut self) {
        let outgoing = self.client.outgoing().to_vec();
        self.client.sent(outgoing.len());
        if !outgoing.is_empty() {
            self.wire.send(&outgoing);
        }
        if let Some(driver) = &mut self.driver {
            let mut cx = Context::from_waker(Waker::noop());
            if driver.poll(&mut cx).is_ready() {
                self.driver = None;
            }
        }
        let (bytes, writes) = self.wire.receive();
        self.writes += writes;
        self.client.feed(&bytes);
    }

    fn poll(&mut self) -> Option<Reply> {
        self.run();
        self.client.poll().unwrap()
    }

    /// The next reply, which must be there.
    fn reply(&mut self) -> Reply {
        self.poll().expect("a reply")
    }

    fn holds(&mut self) {
        let reply = self.poll();
        assert!(reply.is_none(), "{reply:?}");
    }

    fn query(&mut self, text: &str) -> Reply {
        self.client.query(text);
        self.reply()
    }

    fn durable(&self, lsn: u64) {
        self.gate.change(|state| {
            state.local = lsn.max(state.local);
            state.durable = lsn;
        });
    }

    fn local(&self, lsn: u64) {
        self.gate.change(|state| state.local = lsn);
    }

    fn cut(&self, lsn: u64) {
        self.gate.change(|state| state.cut = Some(lsn));
    }

    /// Whether the session has ended, in turns.
    fn is_over(&self) -> bool {
        assert!(!self.control.dropped_outside.get(), "it could not give way");
        self.driver.is_none() && self.wire.is_closed()
    }

    /// The session has ended with this error.
    fn ends_with(&mut self, state: &str) {
        let reply = self.reply();
        assert!(reply.is_fatal, "{reply:?}");
        assert_eq!(reply.state().unwrap().as_str(), state, "{reply:?}");
        assert!(self.is_over());
    }
}

fn state(reply: &Reply) -> String {
    let state = reply.state();
    state.map(|state| state.to_string()).unwrap_or_default()
}

/// A session that waits before it copies, and more data than is taken from a client meanwhile.
fn flooded(first: &str) -> Rig {
    let rig = Rig::new();
    let mut bytes = Vec::new();
    if !first.is_empty() {
        Frontend::Query(first.as_bytes()).encode(&mut bytes);
    }
    Frontend::Query(b"wait; copy").encode(&mut bytes);
    rig.wire.send(&bytes);
    let piece = [7; FLOOD_PIECE_BYTES];
    let mut data = Vec::new();
    for _ in 0..FLOOD_PIECES {
        Frontend::CopyData(&piece).encode(&mut data);
    }
    rig.wire.send(&data);
    rig
}

const FLOOD_PIECE_BYTES: usize = 10_000;
const FLOOD_PIECES: usize = 3 * PIPELINED_BYTES_MAX / FLOOD_PIECE_BYTES;

impl Rig {
    /// Lets the session do what it can, and returns what it says.
    fn run_raw(&mut self) -> String {
        if let Some(driver) = &mut self.driver {
            let mut cx = Context::from_waker(Waker::noop());
            if driver.poll(&mut cx).is_ready() {
                self.driver = None;
            }
        }
        String::from_utf8_lossy(&self.wire.receive().0).into_owned()
    }
}

#[test]
fn a_copy_takes_what_came_while_it_waited() {
    let mut rig = flooded("");
    assert_eq!(rig.run_raw(), "");
    rig.control.go_on();
    let answer = rig.run_raw();
    assert!(answer.contains('G'), "{answer:?}");
    let mut done = Vec::new();
    Frontend::CopyDone.encode(&mut done);
    rig.wire.send(&done);
    let answer = rig.run_raw();
    let tag = format!("COPY {}", FLOOD_PIECES * FLOOD_PIECE_BYTES);
    assert!(answer.contains(&tag), "{answer:?}");
}

#[test]
fn a_copy_that_is_ended_leaves_its_data() {
    // Its end waits for what is held, and nothing moves meanwhile.
    let mut rig = flooded("insert 5");
    assert_eq!(rig.run_raw(), "");
    rig.control.go_on();
    rig.interrupts.raise(Interrupt::Terminate);
    assert_eq!(rig.run_raw(), "");
    rig.durable(5);
    let mut answer = rig.run_raw();
    answer += &rig.run_raw();
    assert!(answer.contains("57P01"), "{answer:?}");
    assert!(rig.is_over());
}

#[test]
fn a_query_is_answered_in_one_write() {
    let mut rig = Rig::new();
    rig.durable(9);
    rig.writes = 0;
    assert_eq!(rig.query("insert 5").results[0].tag, "INSERT 0 1");
    assert_eq!(rig.writes, 1);
    rig.client.parse("s", "select 5", &[]);
    rig.client.execute("s", &[]);
    rig.client.sync();
    assert_eq!(rig.reply().results[0].tag, "SELECT 0");
    assert_eq!(rig.writes, 2);
}

#[test]
fn a_commit_is_answered_when_it_is_durable() {
    let mut rig = Rig::new();
    rig.client.query("insert 5");
    rig.holds();
    rig.local(5);
    rig.holds();
    rig.durable(5);
    assert_eq!(rig.reply().results[0].tag, "INSERT 0 1");
}

#[test]
fn pipelined_queries_execute_while_the_first_waits() {
    let mut rig = Rig::new();
    rig.client.query("insert 5");
    rig.holds();
    rig.client.query("insert 6");
    rig.client.query("insert 7");
    rig.holds();
    assert_eq!(rig.control.executed.get(), 3);
    rig.durable(6);
    assert!(rig.reply().error.is_none());
    assert!(rig.reply().error.is_none());
    rig.holds();
    rig.durable(7);
    assert!(rig.reply().error.is_none());
}

#[test]
fn queries_that_come_while_a_statement_waits_follow_it() {
    let mut rig = Rig::new();
    rig.client.query("wait");
    rig.holds();
    rig.client.query("set a b");
    rig.holds();
    rig.control.go_on();
    assert_eq!(rig.reply().results[0].tag, "WAIT");
    assert_eq!(rig.reply().results[0].tag, "SET");
}

#[test]
fn a_notice_leaves_while_its_statement_goes_on() {
    let mut rig = Rig::new();
    rig.client.query("notice hello; +wait");
    rig.run();
    assert!(rig.writes > 1, "the notice is out");
    rig.control.go_on();
    assert_eq!(rig.reply().notices.len(), 1);
}

#[test]
fn a_cancel_ends_the_statement_that_runs() {
    let mut rig = Rig::new();
    for statement in ["wait", "spin"] {
        rig.client.query(statement);
        rig.holds();
        rig.interrupts.raise(Interrupt::Cancel);
        assert_eq!(state(&rig.reply()), "57014");
    }
    // One that comes too late concerns nobody.
    rig.interrupts.raise(Interrupt::Cancel);
    assert!(rig.query("set a b").error.is_none());
}

#[test]
fn a_cancelled_wait_for_a_commit_warns() {
    let mut rig = Rig::new();
    rig.client.query("insert 5");
    rig.holds();
    rig.local(5);
    rig.interrupts.raise(Interrupt::Cancel);
    let reply = rig.reply();
    assert_eq!(reply.results[0].tag, "INSERT 0 1");
    assert_eq!(reply.notices[0].1.state(), SqlState::WARNING);
}

#[test]
fn a_cancelled_wait_before_the_local_flush_closes() {
    let mut rig = Rig::new();
    rig.client.query("insert 5");
    rig.holds();
    rig.interrupts.raise(Interrupt::Cancel);
    rig.ends_with("08007");
}

#[test]
fn a_cancelled_wait_for_what_was_read_discards_it() {
    let mut rig = Rig::new();
    rig.client.query("select 5");
    rig.holds();
    rig.interrupts.raise(Interrupt::Cancel);
    assert_eq!(state(&rig.reply()), "57014");
    assert!(rig.query("set a b").error.is_none());
    assert!(rig.query("begin").error.is_none());
    rig.client.query("select 5");
    rig.holds();
    rig.interrupts.raise(Interrupt::Cancel);
    let reply = rig.reply();
    assert_eq!(state(&reply), "57014");
    assert_eq!(reply.status, pg::backend::TransactionStatus::Failed);
    assert_eq!(state(&rig.query("set a b")), "25P02");
}

#[test]
fn statement_timeout_ends_statements_and_waits_for_reads_only() {
    let mut rig = Rig::new();
    let second = Duration::from_secs(1);
    rig.control.statement_timeout.set(Some(second));
    for statement in ["wait", "select 5"] {
        rig.client.query(statement);
        rig.holds();
        rig.env.0.pass(second);
        let reply = rig.reply();
        assert_eq!(state(&reply), "57014", "{statement}");
        let error = reply.error.unwrap();
        assert!(error.message().contains("timeout"), "{error}");
    }
    rig.client.query("insert 5");
    rig.holds();
    rig.env.0.pass(10 * second);
    rig.holds();
    rig.durable(5);
    assert!(rig.reply().error.is_none());
}

#[test]
fn idling_in_a_transaction_ends_the_session() {
    let mut rig = Rig::new();
    let second = Duration::from_secs(1);
    rig.control.idle_timeout.set(Some(second));
    rig.holds();
    rig.env.0.pass(5 * second);
    rig.holds();
    assert!(rig.query("begin").error.is_none());
    rig.env.0.pass(second / 2);
    assert!(rig.query("insert 5").error.is_none());
    rig.env.0.pass(second / 2);
    rig.holds();
    rig.env.0.pass(second / 2);
    rig.ends_with("25P03");
    // Outside of a transaction another limit holds.
    let mut rig = Rig::new();
    rig.control.idle_session_timeout.set(Some(second));
    assert!(rig.query("set a b").error.is_none());
    rig.env.0.pass(second / 2);
    rig.holds();
    rig.env.0.pass(second);
    rig.ends_with("57P05");
}

#[test]
fn what_never_happened_is_answered_with_40001() {
    let mut rig = Rig::new();
    rig.client.query("insert 5");
    rig.client.query("set a b");
    rig.holds();
    rig.cut(4);
    assert_eq!(state(&rig.reply()), "40001");
    assert!(rig.reply().error.is_none());
}

#[test]
fn a_block_that_read_what_never_happened_fails() {
    let mut rig = Rig::new();
    assert!(rig.query("begin").error.is_none());
    rig.client.query("select 5");
    rig.holds();
    rig.cut(4);
    let reply = rig.reply();
    assert_eq!(state(&reply), "40001");
    assert_eq!(reply.status, pg::backend::TransactionStatus::Failed);
    assert_eq!(state(&rig.query("insert 5")), "25P02");
}

#[test]
fn a_running_statement_whose_notice_never_happened_fails() {
    let mut rig = Rig::new();
    rig.client
        .query("commits 5; +notice five; +wait; +notice six");
    rig.holds();
    rig.cut(4);
    let reply = rig.reply();
    assert_eq!(state(&reply), "40001");
    assert!(reply.notices.is_empty(), "{reply:?}");
    assert!(rig.query("set a b").error.is_none());
}

#[test]
fn a_session_that_is_told_to_end_waits_for_the_outcome() {
    let mut rig = Rig::new();
    rig.client.query("insert 5");
    rig.holds();
    rig.interrupts.raise(Interrupt::Terminate);
    rig.holds();
    rig.durable(5);
    assert!(rig.reply().error.is_none());
    rig.ends_with("57P01");

    let mut rig = Rig::new();
    rig.client.query("insert 5");
    rig.holds();
    rig.interrupts.raise(Interrupt::Terminate);
    rig.holds();
    rig.env.0.pass(OUTCOME_WAIT_MAX);
    rig.ends_with("08007");
}

#[test]
fn a_statement_that_runs_when_the_session_must_end_is_interrupted() {
    let mut rig = Rig::new();
    rig.client.query("wait");
    rig.holds();
    rig.gate.change(|state| state.is_follower = true);
    rig.interrupts.raise(Interrupt::Terminate);
    let reply = rig.reply();
    let error = reply.error.unwrap();
    assert_eq!(error.state(), SqlState::ADMIN_SHUTDOWN);
    assert!(error.message().contains("no longer leads"), "{error}");
    assert!(rig.is_over());
}

#[test]
fn a_client_that_is_gone_takes_its_statement_with_it() {
    let mut rig = Rig::new();
    rig.client.query("wait");
    rig.holds();
    rig.wire.close();
    rig.run();
    assert!(rig.is_over());
    assert_eq!(rig.control.executed.get(), 0);
}

#[test]
fn a_client_that_is_gone_while_it_idles_takes_its_session_with_it() {
    let mut rig = Rig::new();
    rig.wire.close();
    rig.run();
    assert!(rig.is_over());
}

#[test]
fn a_client_that_says_goodbye_gets_its_last_query_executed() {
    let mut rig = Rig::new();
    rig.durable(5);
    rig.client.query("insert 5");
    rig.client.terminate();
    let outgoing = rig.client.outgoing().to_vec();
    rig.client.sent(outgoing.len());
    rig.wire.send(&outgoing);
    rig.wire.close();
    assert!(rig.reply().error.is_none());
    assert!(rig.is_over());
    assert_eq!(rig.control.executed.get(), 1);
}

#[test]
fn a_violation_of_the_protocol_ends_the_session_behind_what_was_asked_before() {
    let mut rig = Rig::new();
    rig.client.query("insert 5");
    rig.run();
    rig.wire.send(b"?");
    rig.holds();
    rig.durable(5);
    assert!(rig.reply().error.is_none());
    rig.ends_with("08P01");
}

#[test]
fn a_slow_reader_stops_its_statement_and_nobody_else() {
    let mut rig = Rig::new();
    rig.wire.take_at_most(Some(0));
    let notices = vec![format!("notice {}", "x".repeat(100_000)); 30].join("; +");
    rig.client.query(&notices);
    rig.holds();
    assert!(rig.control.executed.get() < 20);
    let held = rig
        .driver
        .as_ref()
        .unwrap()
        .channel
        .output
        .borrow()
        .pending();
    assert!(held < HELD_OUTPUT_BYTES_MAX + 200_000, "{held} bytes held");
    rig.wire.take_at_most(None);
    assert_eq!(rig.reply().notices.len(), 30);
}

#[test]
fn held_output_stops_the_pipeline_until_the_gate_opens() {
    let mut rig = Rig::new();
    let text = format!("commits 5; +notice {}", "x".repeat(100_000));
    for _ in 0..40 {
        rig.client.query(&text);
    }
    rig.holds();
    assert!(rig.control.executed.get() < 40);
    rig.durable(5);
    for _ in 0..40 {
        assert!(rig.reply().error.is_none());
    }
}
