//! Transcripts of both protocols over scripted SQL ([`crate::script`]), the gate opened by hand.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::coro::{self, Interrupts};
use base::env::{BoxFuture, Disk, Env, Instant, Net, Reactor, TaskStart};
use base::{Debt, Timestamp};

use crate::channel::Channel;
use crate::frontend::{put_bind, put_parse, Frontend, Target};
use crate::script::{Control, Script};
use crate::session::{run, Session, Turn};
use crate::startup::CancelKey;

/// An environment in which nothing happens.
struct Still;

impl Env for Still {
    fn now(&self) -> Instant {
        Instant(0)
    }
    fn wall_clock(&self) -> Timestamp {
        Timestamp(0)
    }
    fn random(&self) -> u64 {
        4
    }
    fn secret(&self) -> [u8; 32] {
        base::env::no_secret(self.random())
    }

    fn sleep_until(&self, _: Instant) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
    fn spawn(&self, _: Reactor, _: &'static str, _: TaskStart) {}
    fn session_reactors(&self) -> usize {
        1
    }
    fn disk(&self) -> Arc<dyn Disk> {
        panic!("no disk")
    }
    fn net(&self) -> Arc<dyn Net> {
        panic!("no network")
    }
    fn log(&self, _: base::env::Severity, _: &str) {}
    fn stop_node(&self, _: &str) {}
}

struct Rig {
    session: Option<Box<Session<Script>>>,
    channel: Rc<Channel>,
    client: Vec<u8>,
    settled: u64,
}

impl Rig {
    fn new() -> Rig {
        let channel = Rc::new(Channel::default());
        let sql = Script::new(Rc::new(Control::default()));
        let interrupts = Arc::new(Interrupts::default());
        let session = Session::with(sql, Arc::new(Still), channel.clone(), interrupts);
        Rig {
            session: Some(Box::new(session)),
            channel,
            client: Vec::new(),
            settled: 0,
        }
    }

    fn query(&mut self, text: &str) -> &mut Rig {
        Frontend::Query(text.as_bytes()).encode(&mut self.client);
        self
    }

    fn parse(&mut self, name: &str, text: &str) -> &mut Rig {
        put_parse(&mut self.client, name, text, &[]);
        self
    }

    fn bind(&mut self, portal: &str, name: &str) -> &mut Rig {
        put_bind(&mut self.client, portal, name, &[], false);
        self
    }

    fn send(&mut self, message: Frontend<'_>) -> &mut Rig {
        message.encode(&mut self.client);
        self
    }

    fn execute(&mut self, portal: &str) -> &mut Rig {
        self.send(Frontend::Execute {
            portal: portal.as_bytes(),
            rows_max: 0,
        })
    }

    fn sync(&mut self) -> &mut Rig {
        self.send(Frontend::Sync)
    }

    /// Everything up to `lsn` is durable.
    fn settle(&mut self, lsn: u64) -> String {
        self.settled = lsn;
        self.leaves()
    }

    fn run(&mut self) -> Turn {
        self.channel.input.borrow_mut().feed(&self.client);
        self.client.clear();
        let session = self.session.take().unwrap();
        let mut work = coro::run(Arc::default(), move || run(session));
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(&mut work).poll(&mut cx) {
            Poll::Ready((session, turn)) => {
                self.session = Some(session);
                turn
            }
            Poll::Pending => panic!("the script waits"),
        }
    }

    fn answers(&mut self) -> String {
        let turn = self.run();
        assert!(matches!(turn, Turn::Idle), "{turn:?}");
        self.leaves()
    }

    fn leaves(&mut self) -> String {
        let settled = self.settled;
        let gate = |debt: &Debt, _| debt.groups().all(|part| part.position.lsn.0 <= settled);
        let mut output = self.channel.output.borrow_mut();
        output.open(gate);
        let bytes = output.writable().to_vec();
        output.wrote(bytes.len());
        super::transcript(&bytes)
    }
}

#[test]
fn a_session_is_greeted() {
    let mut rig = Rig::new();
    let session = rig.session.as_mut().unwrap();
    let key = CancelKey { pid: 9, secret: 1 };
    session.greet(key, 2, &["_pq_.x".to_owned()]);
    assert_eq!(
        rig.leaves(),
        "version 3.0 and 1 unknown, trusted, client_encoding=UTF8, application_name=, \
         DateStyle=ISO, MDY, default_transaction_read_only=off, in_hot_standby=off, \
         integer_datetimes=on, IntervalStyle=postgres, is_superuser=on, server_encoding=UTF8, \
         server_version=15.0 (Quorate 0.1.0), session_authorization=postgres, \
         standard_conforming_strings=on, TimeZone=UTC, key 9, I"
    );
}

#[test]
fn each_statement_of_a_string_has_its_tag() {
    let mut rig = Rig::new();
    rig.query("begin; insert 5; commit");
    assert_eq!(rig.answers(), "");
    assert_eq!(rig.settle(5), "BEGIN, INSERT 0 1, COMMIT, I");
    rig.query("insert 6; insert 7");
    assert_eq!(rig.answers(), "");
    assert_eq!(rig.settle(7), "INSERT 0 1, INSERT 0 1, I");
    rig.query("");
    assert_eq!(rig.answers(), "empty, I");
}

#[test]
fn tags_inside_a_block_leave_at_once() {
    let mut rig = Rig::new();
    rig.query("begin");
    assert_eq!(rig.answers(), "BEGIN, T");
    rig.query("insert 5");
    assert_eq!(rig.answers(), "INSERT 0 1, T");
    rig.query("select 3");
    assert_eq!(rig.answers(), "");
    assert_eq!(rig.settle(3), "columns 1, SELECT 0, T");
    rig.query("insert 5");
    assert_eq!(rig.answers(), "INSERT 0 1, T");
    rig.query("commit");
    assert_eq!(rig.answers(), "");
    assert_eq!(rig.settle(5), "COMMIT, I");
}

#[test]
fn an_error_ends_the_string_and_fails_the_block() {
    let mut rig = Rig::new();
    rig.query("insert 5; conflict; insert 6");
    assert_eq!(rig.answers(), "INSERT 0 1, ERROR 40001, I");
    rig.query("begin; conflict")
        .query("insert 7")
        .query("commit");
    assert_eq!(
        rig.answers(),
        "BEGIN, ERROR 40001, E, ERROR 25P02, E, ROLLBACK, I"
    );
}

#[test]
fn an_error_caused_by_data_waits_for_the_data() {
    let mut rig = Rig::new();
    rig.query("error 9");
    assert_eq!(rig.answers(), "");
    assert_eq!(rig.settle(9), "ERROR 22012, I");
}

#[test]
fn a_notice_pays_what_was_committed_before_it() {
    let mut rig = Rig::new();
    rig.query("commits 5; +notice five; +commits 6");
    assert_eq!(rig.answers(), "");
    assert_eq!(rig.settle(5), "NOTICE 00000");
    assert_eq!(rig.settle(6), "DO, I");
}

#[test]
fn a_level_of_off_owes_at_off() {
    let mut rig = Rig::new();
    rig.query("set level off; insert 5");
    assert_eq!(rig.answers(), "");
    let output = rig.channel.output.borrow();
    let owes = output.waits_for().unwrap().iter().next().unwrap().1;
    assert_eq!(owes, base::Durability::Off);
}

#[test]
fn text_that_is_not_utf8_is_an_error_of_the_statement() {
    let mut rig = Rig::new();
    rig.send(Frontend::Query(b"select \xc3\x28"));
    assert_eq!(rig.answers(), "ERROR 22021, I");
    rig.query("set a b");
    assert_eq!(rig.answers(), "a=b, SET, I");
}

#[test]
fn the_extended_protocol_answers_message_by_message() {
    let mut rig = Rig::new();
    rig.parse("s", "insert 5")
        .bind("", "s")
        .send(Frontend::Describe(Target::Portal(b"")))
        .execute("")
        .sync();
    assert_eq!(rig.answers(), "");
    assert_eq!(rig.settle(5), "parsed, bound, no data, INSERT 0 1, I");
    rig.bind("", "s").execute("").sync();
    assert_eq!(rig.answers(), "bound, INSERT 0 1, I");
    rig.parse("", "select 5")
        .send(Frontend::Describe(Target::Statement(b"")))
        .bind("p", "")
        .execute("p")
        .send(Frontend::Close(Target::Portal(b"p")))
        .send(Frontend::Close(Target::Statement(b"s")))
        .sync();
    assert_eq!(
        rig.answers(),
        "parsed, parameters 0, columns 1, bound, SELECT 0, closed, closed, I"
    );
    rig.bind("", "s").sync();
    assert_eq!(rig.answers(), "ERROR 26000, I");
}

#[test]
fn after_an_error_everything_up_to_sync_is_skipped() {
    let mut rig = Rig::new();
    rig.parse("", "insert 5")
        .bind("", "")
        .execute("")
        .parse("", "?")
        .bind("", "")
        .execute("")
        .query("insert 6")
        .sync()
        .query("set a b");
    assert_eq!(
        rig.answers(),
        "parsed, bound, INSERT 0 1, ERROR 42601, I, a=b, SET, I"
    );
}

#[test]
fn portals_end_with_their_transaction() {
    let mut rig = Rig::new();
    rig.query("begin")
        .parse("", "select 0")
        .bind("p", "")
        .send(Frontend::Execute {
            portal: b"p",
            rows_max: 2,
        })
        .sync();
    rig.settled = 5;
    assert_eq!(rig.answers(), "BEGIN, T, parsed, bound, suspended, T");
    rig.execute("p").sync().query("commit").execute("p").sync();
    assert_eq!(rig.answers(), "SELECT 0, T, COMMIT, I, ERROR 34000, I");
    rig.parse("", "insert 1")
        .bind("", "")
        .sync()
        .execute("")
        .sync();
    assert_eq!(rig.answers(), "parsed, bound, I, ERROR 34000, I");
}

#[test]
fn a_portal_that_was_run_to_its_end_is_not_run_again() {
    let mut rig = Rig::new();
    rig.settled = 9;
    rig.parse("", "insert 5")
        .bind("", "")
        .execute("")
        .execute("");
    rig.sync();
    assert_eq!(rig.answers(), "parsed, bound, INSERT 0 1, ERROR 55000, I");
}

#[test]
fn flush_lets_out_what_owes_nothing() {
    let mut rig = Rig::new();
    rig.parse("s", "insert 5");
    assert_eq!(rig.answers(), "");
    rig.send(Frontend::Flush);
    assert_eq!(rig.answers(), "parsed");
}

#[test]
fn binding_the_wrong_number_of_parameters_is_refused() {
    let mut rig = Rig::new();
    put_parse(&mut rig.client, "s", "insert 5", &[23]);
    rig.bind("", "s").sync();
    assert_eq!(rig.answers(), "parsed, ERROR 08P01, I");
}

#[test]
fn what_cannot_go_on_is_fatal() {
    let mut rig = Rig::new();
    rig.client.extend_from_slice(b"Q\0\0\0\x09no\xffend");
    assert!(matches!(rig.run(), Turn::Fatal(_)));
    let mut rig = Rig::new();
    rig.query("fatal");
    assert!(matches!(rig.run(), Turn::Fatal(_)));
    let mut rig = Rig::new();
    rig.send(Frontend::Terminate);
    assert!(matches!(rig.run(), Turn::Terminated));
    let mut rig = Rig::new();
    rig.client
        .extend_from_slice(b"F\0\0\0\x0e\0\0\x03\xb8\0\0\0\0\0\0");
    assert_eq!(rig.answers(), "ERROR 0A000, I");
    rig.send(Frontend::CopyDone).query("set a b");
    assert_eq!(rig.answers(), "a=b, SET, I");
}

#[test]
fn pipelined_messages_go_on_executing_while_output_is_held() {
    let mut rig = Rig::new();
    rig.query("insert 5").query("insert 6").query("select 6");
    assert_eq!(rig.answers(), "");
    assert_eq!(rig.settle(5), "INSERT 0 1, I");
    assert_eq!(rig.settle(6), "INSERT 0 1, I, columns 1, SELECT 0, I");
}

#[test]
fn too_much_held_output_stops_the_pipeline() {
    let mut rig = Rig::new();
    let notice = format!("notice {}", "x".repeat(100_000));
    for _ in 0..20 {
        rig.query(&format!("commits 5; +{notice}"));
    }
    assert_eq!(rig.answers(), "");
    let held = rig.channel.output.borrow().pending();
    let limit = base::limits::HELD_OUTPUT_BYTES_MAX;
    assert!(held > limit && held < limit + 200_000, "{held} bytes held");
    assert!(rig.channel.input.borrow().has_message());
    assert_eq!(rig.settle(5).matches("NOTICE").count(), 11);
    assert_eq!(rig.answers().matches("NOTICE").count(), 9);
}

/// Messages in any order, with names that may or may not exist: every cycle is answered, and what
/// leaves is always whole messages.
#[test]
fn any_order_of_messages_is_answered() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let texts = [
        "begin",
        "commit",
        "rollback",
        "insert 5",
        "select 3",
        "error 4",
        "conflict",
        "?",
        "",
        "commits 2; +notice two",
        "set a b",
        "begin; insert 1; commit",
    ];
    let names = ["", "a", "b"];
    for _ in 0..300 {
        let mut rig = Rig::new();
        let mut cycles = 0;
        let mut seen = 0;
        let mut lsn = 0;
        for _ in 0..60 {
            let text = texts[random(texts.len() as u64) as usize];
            let name = names[random(3) as usize];
            let other = names[random(3) as usize];
            match random(9) {
                0 => {
                    rig.query(text);
                }
                1 => {
                    rig.parse(name, text);
                }
                2 | 3 => {
                    rig.bind(name, other);
                }
                4 | 5 => {
                    let rows_max = random(2) as u32;
                    let portal = name.as_bytes();
                    rig.send(Frontend::Execute { portal, rows_max });
                }
                6 => {
                    let target = match random(2) {
                        0 => Target::Portal(name.as_bytes()),
                        _ => Target::Statement(name.as_bytes()),
                    };
                    match random(2) {
                        0 => rig.send(Frontend::Close(target)),
                        _ => rig.send(Frontend::Describe(target)),
                    };
                }
                _ => {
                    rig.sync();
                    cycles += 1;
                }
            }
            if random(4) == 0 {
                rig.run();
                lsn = (lsn + random(2)).min(9);
                seen += cycles_of(&rig.settle(lsn));
            }
        }
        rig.sync();
        rig.run();
        seen += cycles_of(&rig.settle(9));
        assert!(seen > cycles, "{seen} cycles answered, {cycles} syncs");
        assert_eq!(rig.channel.output.borrow().pending(), 0);
    }
}

/// How many times ReadyForQuery is in a transcript.
fn cycles_of(transcript: &str) -> usize {
    let messages = transcript.split(", ");
    messages
        .filter(|message| matches!(*message, "I" | "T" | "E"))
        .count()
}

#[test]
fn an_error_leaves_without_waiting_for_sync() {
    let mut rig = Rig::new();
    rig.parse("", "set a").send(Frontend::Flush);
    assert_eq!(rig.answers(), "parsed");
    rig.bind("nosuch", "nosuch").send(Frontend::Flush);
    let answer = rig.answers();
    assert!(answer.starts_with("ERROR 26000"), "{answer}");
    rig.sync();
    assert_eq!(rig.answers(), "I");
}
