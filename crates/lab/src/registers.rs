//! The workload behind the oracle of [`crate::register`]: clients that write registers of their own
//! and read those of all, and a bank whose sum never changes.
//!
//! ```text
//! client 0 ── insert k=1 v=1 ── update v=2 ── delete ── …  (outcome unknown) ── goes on with k=9
//! client 1 ── read k=1 ── transfer ── sum ── …
//! ```
//! Everything that clients send and are told passes through one [`Oracle`], which is outside of
//! the system under test and keeps the first thing that is wrong.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env};
use base::sync::Mutex;
use base::{Durability, SqlState};

use crate::client::{Answer, Client, Failure};
use crate::register::{Register, WriteNumber};

/// Accounts of the bank, and what each holds at first.
pub const ACCOUNTS: u64 = 8;
const OPENING_BALANCE: u64 = 100;

/// How long a client waits for an answer before it gives its connection up.
const PATIENCE: Duration = Duration::from_secs(8);

/// How long it waits before it connects anew.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// What the clients have been promised, and what was wrong.
#[derive(Debug, Default)]
pub struct Oracle {
    registers: BTreeMap<u64, Register>,
    /// Commits acknowledged.
    pub commits: u64,
    /// Reads answered.
    pub reads: u64,
    /// Operations whose outcome is not known.
    pub unknown: u64,
    /// The first thing that was wrong.
    pub violation: Option<String>,
    next_key: u64,
}

impl Oracle {
    fn new_key(&mut self) -> u64 {
        self.next_key += 1;
        self.registers.insert(self.next_key, Register::default());
        self.next_key
    }

    fn register(&mut self, key: u64) -> &mut Register {
        self.registers.entry(key).or_default()
    }

    fn blame(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// All keys that were ever written.
    pub fn keys(&self) -> Vec<u64> {
        self.registers.keys().copied().collect()
    }
}

/// What makes the tables; sent once.
pub const SETUP: &str = "create table register(k int primary key, v int); \
                         create table bank(id int primary key, balance int)";

/// Fills the bank; sent once after [`SETUP`].
pub fn opening() -> String {
    let accounts: Vec<String> = (0..ACCOUNTS)
        .map(|account| format!("({account}, {OPENING_BALANCE})"))
        .collect();
    format!("insert into bank values {}", accounts.join(", "))
}

/// One client's part.
pub struct Worker {
    env: Arc<dyn Env>,
    oracle: Arc<Mutex<Oracle>>,
    addresses: Rc<[String]>,
    /// The level of its writes; its reads are always at `on`.
    durability: Durability,
    client: Option<Client>,
    /// Its register, and the newest write of it that is known to have happened.
    own: Option<(u64, Option<WriteNumber>)>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Worker({:?})", self.durability)
    }
}

impl Worker {
    /// A client that connects to any of these addresses.
    pub fn new(
        env: Arc<dyn Env>,
        oracle: Arc<Mutex<Oracle>>,
        addresses: &[String],
        durability: Durability,
    ) -> Worker {
        Worker {
            env,
            oracle,
            addresses: addresses.into(),
            durability,
            client: None,
            own: None,
        }
    }

    /// Works until `stop` says so.
    pub async fn run(mut self, stop: impl Fn() -> bool) {
        while !stop() {
            if self.client.is_none() && !self.connect().await {
                sleep(&*self.env, RECONNECT_PAUSE).await;
                continue;
            }
            match self.env.random() % 10 {
                0..=4 => self.write().await,
                5..=7 => self.read().await,
                8 => self.transfer().await,
                _ => self.sum().await,
            }
        }
    }

    async fn connect(&mut self) -> bool {
        let pick = self.env.random() as usize % self.addresses.len();
        let client = Client::connect(&*self.env, &self.addresses[pick], PATIENCE).await;
        self.client = client.ok();
        self.client.is_some()
    }

    async fn query(&mut self, sql: &str) -> Result<Answer, Failure> {
        let Some(client) = &mut self.client else {
            return Err(Failure::Refused(base::Error::internal("not connected")));
        };
        let result = client.query(&*self.env, sql, PATIENCE).await;
        if let Err(Failure::Broken(_)) = &result {
            self.client = None;
            self.oracle.lock().unknown += 1;
        }
        result
    }

    /// Writes the own register: inserts, updates or deletes, as its state and chance have it.
    async fn write(&mut self) {
        let (key, present) = match self.own {
            Some((key, last)) => (key, last),
            None => (self.oracle.lock().new_key(), None),
        };
        self.own = Some((key, present));
        let delete = present.is_some() && self.env.random() % 4 == 0;
        let number = self.oracle.lock().register(key).write(!delete);
        let change = match present {
            None => format!("insert into register values ({key}, {number})"),
            Some(_) if delete => format!("delete from register where k = {key}"),
            Some(_) => format!("update register set v = {number} where k = {key}"),
        };
        let result = self.write_at_level(&change).await;
        let mut oracle = self.oracle.lock();
        match result {
            Ok(()) => {
                if self.durability >= Durability::On {
                    oracle.register(key).acknowledged(number);
                }
                oracle.commits += 1;
                self.own = Some((key, (!delete).then_some(number)));
            }
            Err(Failure::Refused(error)) if never_happened(error.state()) => {
                oracle.register(key).refused(number);
            }
            Err(Failure::Refused(error)) => {
                oracle.blame(format!("register {key}, write {number}: {error:?}"));
            }
            Err(Failure::Broken(_)) => self.own = None,
        }
        // What a weaker level has acknowledged may be gone, and then the state is not known.
        if self.durability < Durability::On {
            self.own = None;
        }
    }

    /// Sends a change whose own reply is at the client's level.
    async fn write_at_level(&mut self, change: &str) -> Result<(), Failure> {
        let level = self.durability.name();
        let set = format!("set synchronous_commit = '{level}'");
        for statement in [&set, change, "reset synchronous_commit"] {
            self.query(statement).await?;
        }
        Ok(())
    }

    /// Reads any register, and has the oracle judge what came.
    async fn read(&mut self) {
        let (key, read) = {
            let mut oracle = self.oracle.lock();
            if oracle.next_key == 0 {
                return;
            }
            let key = self.env.random() % oracle.next_key + 1;
            (key, oracle.register(key).begin_read())
        };
        let sql = format!("select v from register where k = {key}");
        let Ok(answer) = self.query(&sql).await else {
            return;
        };
        let seen = answer.value().and_then(|value| value.parse().ok());
        let mut oracle = self.oracle.lock();
        oracle.reads += 1;
        if let Err(wrong) = oracle.register(key).end_read(read, seen) {
            oracle.blame(format!("register {key}: {wrong}"));
        }
    }

    async fn transfer(&mut self) {
        let (from, to) = (self.env.random() % ACCOUNTS, self.env.random() % ACCOUNTS);
        let sql = format!(
            "begin; update bank set balance = balance - 1 where id = {from}; \
             update bank set balance = balance + 1 where id = {to}; commit"
        );
        let mut failed = false;
        for statement in sql.split("; ") {
            match self.query(statement).await {
                Ok(_) => {}
                Err(Failure::Refused(_)) => failed = true,
                Err(Failure::Broken(_)) => return,
            }
        }
        if !failed {
            self.oracle.lock().commits += 1;
        }
    }

    async fn sum(&mut self) {
        let Ok(answer) = self.query("select sum(balance) from bank").await else {
            return;
        };
        let expected = (ACCOUNTS * OPENING_BALANCE).to_string();
        let mut oracle = self.oracle.lock();
        oracle.reads += 1;
        if answer.value() != Some(&expected) {
            let seen = answer.value().map(ToOwned::to_owned);
            oracle.blame(format!("the bank holds {seen:?}, not {expected}"));
        }
    }
}

/// Whether an error says for certain that the statement has changed nothing.
fn never_happened(state: SqlState) -> bool {
    [
        SqlState::SERIALIZATION_FAILURE,
        SqlState::DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ]
    .contains(&state)
}

/// Reads every register once more and lets the oracle judge; for the end of a run.
///
/// # Errors
/// A query fails.
pub async fn read_all(env: &dyn Env, address: &str, oracle: &Mutex<Oracle>) -> Result<(), Failure> {
    let mut client = Client::connect(env, address, PATIENCE)
        .await
        .map_err(Failure::Broken)?;
    let keys = oracle.lock().keys();
    for key in keys {
        let read = oracle.lock().register(key).begin_read();
        let sql = format!("select v from register where k = {key}");
        let answer = client.query(env, &sql, PATIENCE).await?;
        let seen = answer.value().and_then(|value| value.parse().ok());
        let mut oracle = oracle.lock();
        if let Err(wrong) = oracle.register(key).end_read(read, seen) {
            oracle.blame(format!("register {key}, at the end: {wrong}"));
        }
    }
    Ok(())
}
