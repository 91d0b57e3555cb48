//! Clients that do not wait: they pipeline, cancel their statements, and disconnect in the middle.
//!
//! | what | what must hold |
//! |---|---|
//! | several writes and reads of the own register, each with its own Sync | answered in order; a read shows no less than the write before it |
//! | several statements up to one Sync | one transaction: all or nothing |
//! | a write, and a CancelRequest soon after | 57014: it never happened; a tag with a warning: no promise |
//! | a write, and the connection is dropped, perhaps in the middle of a message | it may have happened or not |
//! | a block with a write, dropped before its COMMIT | it never happened |
//!
//! They write registers of their own, which the oracle of [`crate::registers`] judges as it judges
//! all others, and share its bank.

use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env};
use base::sync::Mutex;
use base::{Durability, SqlState};
use pg::backend::Severity;
use pg::client::Reply;

use crate::client::{cancel, rest, Addresses, Client};
use crate::register::WriteNumber;
use crate::registers::{never_happened, Mood, Oracle, ACCOUNTS};

/// How long it waits for an answer, and before it connects anew.
const PATIENCE: Duration = Duration::from_millis(800);
const RECONNECT_PAUSE: Duration = Duration::from_millis(30);

/// How long it rests, on average.
const PACE: Duration = Duration::from_millis(20);

/// Messages that are under way at once, at most.
const PIPELINE_MAX: u64 = 7;

/// It cancels, or drops the connection, at most so long after it has asked.
const HASTE_MICROS_MAX: u64 = 6_000;

/// One client.
pub struct RestlessClient {
    env: Arc<dyn Env>,
    oracle: Arc<Mutex<Oracle>>,
    addresses: Addresses,
    number: usize,
    level: Durability,
    judged: bool,
    client: Option<(Client, String)>,
    /// Its register.
    own: Option<u64>,
    /// That of the oracle when the operation at hand began.
    generation: u64,
}

impl std::fmt::Debug for RestlessClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RestlessClient({})", self.number)
    }
}

/// What the answer to one message tells.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Write(WriteNumber),
    Read(crate::register::Read),
}

/// What an answer says of a write.
enum Said {
    Acknowledged,
    Refused,
    Unknown,
}

impl RestlessClient {
    /// A client at a level of `synchronous_commit` that connects to any of these addresses.
    pub fn new(
        env: Arc<dyn Env>,
        oracle: Arc<Mutex<Oracle>>,
        addresses: &Addresses,
        number: usize,
        level: Durability,
    ) -> RestlessClient {
        let judged = level >= oracle.lock().surviving();
        RestlessClient {
            env,
            oracle,
            addresses: addresses.clone(),
            number,
            level,
            judged,
            client: None,
            own: None,
            generation: 0,
        }
    }

    /// Works as the mood allows, until that is to stop.
    pub async fn run(mut self, mood: impl Fn() -> Mood) {
        loop {
            match mood() {
                Mood::Work => {}
                Mood::Read => {
                    sleep(&*self.env, PACE).await;
                    continue;
                }
                Mood::Stop => return,
            }
            if self.client.is_none() && !self.connect().await {
                sleep(&*self.env, RECONNECT_PAUSE).await;
                continue;
            }
            let generation = self.oracle.lock().generation();
            if std::mem::replace(&mut self.generation, generation) != generation {
                self.own = None;
            }
            match self.env.random() % 8 {
                0..=2 => self.pipeline().await,
                3 => self.one_sync().await,
                4..=5 => self.cancelled_write().await,
                6 => self.dropped_write().await,
                _ => self.dropped_block().await,
            }
            rest(&*self.env, PACE).await;
        }
    }

    async fn connect(&mut self) -> bool {
        let settings = [("synchronous_commit", self.level.name())];
        let connecting = self.addresses.connect(&*self.env, &settings, PATIENCE);
        self.client = connecting.await;
        self.client.is_some()
    }

    /// The own register, and the number of its next write.
    fn next_write(&mut self) -> (u64, WriteNumber, bool) {
        let present = self.env.random() % 3 > 0;
        let mut oracle = self.oracle.lock();
        let key = *self.own.get_or_insert_with(|| oracle.new_key(self.number));
        (key, oracle.register(key).write(present), present)
    }

    /// Several messages, none of which waits for the answer to the one before.
    async fn pipeline(&mut self) {
        let count = self.env.random() % PIPELINE_MAX + 1;
        let mut asked = Vec::new();
        for _ in 0..count {
            if asked.is_empty() || self.env.random() % 3 > 0 {
                let (key, number, present) = self.next_write();
                self.say(&[write_text(key, number, present)]);
                asked.push(Asked::Write(number));
            } else if let Some(key) = self.own {
                let read = self.oracle.lock().register(key).begin_read();
                self.say(&[format!("select v from register where k = {key}")]);
                asked.push(Asked::Read(read));
            }
        }
        if !self.send().await {
            return;
        }
        self.judge(&asked).await;
    }

    /// Several statements up to one Sync: a transfer and a write.
    async fn one_sync(&mut self) {
        let (from, to) = (self.env.random() % ACCOUNTS, self.env.random() % ACCOUNTS);
        let (key, number, present) = self.next_write();
        self.say(&[
            format!("update bank set balance = balance - 1 where id = {from}"),
            write_text(key, number, present),
            format!("update bank set balance = balance + 1 where id = {to}"),
        ]);
        if self.send().await {
            self.judge(&[Asked::Write(number)]).await;
        }
    }

    /// A write that is cancelled soon after.
    async fn cancelled_write(&mut self) {
        let (key, number, present) = self.next_write();
        self.say(&[write_text(key, number, present)]);
        let Some((client, address)) = &self.client else {
            return;
        };
        let (packet, address) = (client.cancel_packet(), address.clone());
        if !self.send().await {
            return;
        }
        self.haste().await;
        cancel(&*self.env, &address, &packet, PATIENCE).await;
        self.judge(&[Asked::Write(number)]).await;
    }

    /// A write whose answer nobody waits for; now and then it is not even sent whole.
    async fn dropped_write(&mut self) {
        let (key, number, present) = self.next_write();
        self.say(&[write_text(key, number, present)]);
        if self.env.random() % 3 == 0 {
            if let Some((client, _)) = &mut self.client {
                let bytes = client.protocol().outgoing().len();
                let kept = self.env.random() as usize % bytes;
                client.cut_short(kept);
            }
        }
        if self.send().await {
            self.haste().await;
        }
        // The write may come, and later ones of this client could overtake it elsewhere.
        (self.client, self.own) = (None, None);
        self.oracle.lock().unknown += 1;
    }

    /// A block that is left before its COMMIT.
    async fn dropped_block(&mut self) {
        let (key, number, present) = self.next_write();
        if let Some((client, _)) = &mut self.client {
            client.protocol().query("begin");
            let text = write_text(key, number, present);
            client.protocol().query(&text);
        }
        if self.send().await {
            self.haste().await;
        }
        self.client = None;
        let mut oracle = self.oracle.lock();
        if oracle.generation() == self.generation {
            oracle.register(key).refused(number);
        }
    }

    async fn haste(&self) {
        let micros = self.env.random() % HASTE_MICROS_MAX;
        sleep(&*self.env, Duration::from_micros(micros)).await;
    }

    /// Puts statements into words, up to one Sync.
    fn say(&mut self, statements: &[String]) {
        let Some((client, _)) = &mut self.client else {
            return;
        };
        for statement in statements {
            client.protocol().parse("", statement, &[]);
            client.protocol().execute("", &[]);
        }
        client.protocol().sync();
    }

    /// False when the connection is gone; what was written then is not known.
    async fn send(&mut self) -> bool {
        let sent = match &mut self.client {
            Some((client, _)) => client.send(&*self.env, PATIENCE).await.is_ok(),
            None => false,
        };
        if !sent {
            self.lose();
        }
        sent
    }

    fn lose(&mut self) {
        (self.client, self.own) = (None, None);
        self.oracle.lock().unknown += 1;
    }

    /// Takes the answers to what was asked of the own register, in order.
    async fn judge(&mut self, asked: &[Asked]) {
        let Some(key) = self.own else {
            return;
        };
        // What the newest write of this pipeline was that is known to have happened.
        let mut done = 0;
        for one in asked {
            let reply = match &mut self.client {
                Some((client, _)) => client.answer(&*self.env, PATIENCE).await,
                None => return,
            };
            let reply = match reply {
                Ok(reply) if !reply.is_fatal => reply,
                _ => return self.lose(),
            };
            let oracle = self.oracle.clone();
            let mut oracle = oracle.lock();
            if oracle.generation() != self.generation {
                self.own = None;
                continue;
            }
            match *one {
                Asked::Write(number) => match said(&reply) {
                    Said::Acknowledged => {
                        oracle.commits += 1;
                        if self.judged {
                            oracle.register(key).acknowledged(number);
                            done = number;
                        }
                    }
                    Said::Refused => oracle.register(key).refused(number),
                    Said::Unknown => self.own = None,
                },
                Asked::Read(read) if self.judged && reply.error.is_none() => {
                    oracle.reads += 1;
                    let seen = reply.text(0, 0).and_then(|text| text.parse().ok());
                    let register = oracle.register(key);
                    let read = register.after(read, done);
                    if let Err(wrong) = register.end_read(read, seen) {
                        oracle.blame(format!("in a pipeline: register {key}: {wrong}"));
                    }
                }
                Asked::Read(_) => {}
            }
            if let Some(error) = &reply.error {
                if error.state().as_str().starts_with("XX") {
                    oracle.blame(format!("in a pipeline: register {key}: {error:?}"));
                }
            }
        }
        if !self.judged {
            self.own = None;
        }
    }
}

fn write_text(key: u64, number: WriteNumber, present: bool) -> String {
    match present {
        true => format!(
            "insert into register values ({key}, {number}) \
             on conflict (k) do update set v = excluded.v"
        ),
        false => format!("delete from register where k = {key}"),
    }
}

fn said(reply: &Reply) -> Said {
    match &reply.error {
        None if reply.notices.iter().any(|one| one.0 == Severity::Warning) => Said::Unknown,
        None => Said::Acknowledged,
        Some(error) if error.state() == SqlState::QUERY_CANCELED => Said::Refused,
        Some(error) if never_happened(error.state()) => Said::Refused,
        Some(_) => Said::Unknown,
    }
}
