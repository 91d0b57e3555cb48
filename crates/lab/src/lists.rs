//! Clients that append to lists and read them, several at once in a transaction, for the oracle of
//! [`crate::check::history`].
//!
//! ```text
//! begin isolation level repeatable read
//! append 17 to list 4          a text that grows, or a row behind the last
//! read list 5                  [3, 9, 12]
//! commit
//! ```
//! Each transaction's level is drawn anew; lists with even numbers are one row of text, the others a
//! row for each number, so that reads are of ranges. Statements go one by one, so that transactions
//! interleave, now and then all at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env, Instant, Severity};
use base::sync::Mutex;
use base::Durability;
use pg::client::Reply;

use crate::check::history::{End, Isolation, Step, Transaction};
use crate::client::{rest, Addresses, Client, Failure};
use crate::registers::{Mood, Oracle};

/// Lists in use at one time.
const LISTS: u64 = 5;

/// After about so many numbers a list gives way to a new one.
const LENGTH: u64 = 24;

/// Steps of a transaction at most.
const STEPS_MAX: u64 = 4;

/// How long it waits for an answer, and before it connects anew.
const PATIENCE: Duration = Duration::from_millis(900);
const RECONNECT_PAUSE: Duration = Duration::from_millis(30);

/// How long it rests between transactions, on average.
const PACE: Duration = Duration::from_millis(25);

/// How long the last read waits for an answer.
const LAST_READ_PATIENCE: Duration = Duration::from_secs(20);

/// One client.
pub struct ListClient {
    env: Arc<dyn Env>,
    oracle: Arc<Mutex<Oracle>>,
    addresses: Addresses,
    level: Durability,
    client: Option<Client>,
}

impl std::fmt::Debug for ListClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ListClient({})", self.level.name())
    }
}

/// How far a transaction came.
enum Course {
    /// So far that its COMMIT was sent.
    Sent(End),
    /// Not so far: it did not happen.
    Abandoned,
}

impl ListClient {
    /// A client at a level of `synchronous_commit` that connects to any of these addresses.
    pub fn new(
        env: Arc<dyn Env>,
        oracle: Arc<Mutex<Oracle>>,
        addresses: &Addresses,
        level: Durability,
    ) -> ListClient {
        ListClient {
            env,
            oracle,
            addresses: addresses.clone(),
            level,
            client: None,
        }
    }

    /// Works as the mood allows, until that is to stop.
    pub async fn run(mut self, mood: impl Fn() -> Mood) {
        loop {
            let writes = match mood() {
                Mood::Work => true,
                Mood::Read => false,
                Mood::Stop => return,
            };
            if self.client.is_none() && !self.connect().await {
                sleep(&*self.env, RECONNECT_PAUSE).await;
                continue;
            }
            self.transact(writes).await;
            rest(&*self.env, PACE).await;
        }
    }

    async fn connect(&mut self) -> bool {
        let settings = [("synchronous_commit", self.level.name())];
        let connecting = self.addresses.connect(&*self.env, &settings, PATIENCE);
        self.client = connecting.await.map(|(client, _)| client);
        self.client.is_some()
    }

    async fn transact(&mut self, writes: bool) {
        let level = Isolation::ALL[(self.env.random() % 4).min(2) as usize];
        let steps = self.draw(writes);
        let (generation, judged) = {
            let oracle = self.oracle.lock();
            (oracle.generation(), self.level >= oracle.surviving())
        };
        let mut transaction = Transaction {
            level,
            steps,
            began: self.env.now(),
            ended: Instant(0),
            end: End::Unknown,
        };
        let course = match self.env.random() % 5 {
            0 => self.run_at_once(&mut transaction).await,
            _ => self.run_one_by_one(&mut transaction).await,
        };
        transaction.ended = self.env.now();
        transaction.end = match course {
            Course::Sent(end) => end,
            Course::Abandoned => End::Refused,
        };
        let mut oracle = self.oracle.lock();
        match transaction.end {
            End::Committed => oracle.commits += 1,
            End::Refused => {}
            End::Unknown => oracle.unknown += 1,
        }
        if oracle.generation() != generation || !judged && transaction.end != End::Refused {
            transaction.forget();
        } else if !judged {
            transaction.forget();
            transaction.end = End::Refused;
        }
        drop(oracle);
        if transaction.end != End::Committed {
            let said = format!("lists: {transaction:?}");
            self.env.log(Severity::Info, &said);
        }
        self.oracle.lock().history.push(transaction);
    }

    fn draw(&self, writes: bool) -> Vec<Step> {
        let count = self.env.random() % STEPS_MAX + 1;
        let mut oracle = self.oracle.lock();
        let steps = (0..count).map(|_| {
            let generation = oracle.numbers / (LISTS * LENGTH);
            let key = generation * LISTS + self.env.random() % LISTS;
            if writes && self.env.random() % 2 == 0 {
                oracle.numbers += 1;
                return Step::Append(key, oracle.numbers);
            }
            Step::Read(key, None)
        });
        steps.collect()
    }

    /// One message a statement.
    async fn run_one_by_one(&mut self, transaction: &mut Transaction) -> Course {
        let begin = begin(transaction);
        if self.query(&begin).await.is_none() {
            return Course::Abandoned;
        }
        for step in &mut transaction.steps {
            let Some(reply) = self.query(&statement(step)).await else {
                return Course::Abandoned;
            };
            note(step, &reply, 0);
        }
        let Some(client) = &mut self.client else {
            return Course::Abandoned;
        };
        let result = client.query(&*self.env, "commit", PATIENCE).await;
        Course::Sent(self.end(result.as_ref()))
    }

    /// Everything in one message.
    async fn run_at_once(&mut self, transaction: &mut Transaction) -> Course {
        let Some(client) = &mut self.client else {
            return Course::Abandoned;
        };
        let statements: Vec<String> = transaction.steps.iter().map(statement).collect();
        let text = format!("{}; {}; commit", begin(transaction), statements.join("; "));
        let result = client.query(&*self.env, &text, PATIENCE).await;
        if let Ok(reply) = &result {
            for (index, step) in transaction.steps.iter_mut().enumerate() {
                note(step, reply, index + 1);
            }
        }
        let end = self.end(result.as_ref());
        if let Err(Failure::Refused(error)) = &result {
            let said = format!("lists: {text}: {error:?}");
            self.env.log(Severity::Info, &said);
        }
        if end == End::Refused {
            self.query("rollback").await;
        }
        Course::Sent(end)
    }

    fn end(&mut self, result: Result<&Reply, &Failure>) -> End {
        match result {
            // A COMMIT of a failed block is answered so.
            Ok(reply)
                if reply
                    .results
                    .last()
                    .is_some_and(|one| one.tag == "ROLLBACK") =>
            {
                End::Refused
            }
            Ok(_) => End::Committed,
            Err(Failure::Refused(_)) => End::Refused,
            Err(Failure::Broken(_)) => {
                self.client = None;
                End::Unknown
            }
        }
    }

    /// Runs a statement of a transaction, which is rolled back if it fails.
    async fn query(&mut self, sql: &str) -> Option<Reply> {
        let client = self.client.as_mut()?;
        match client.query(&*self.env, sql, PATIENCE).await {
            Ok(reply) => return Some(reply),
            Err(Failure::Broken(_)) => self.client = None,
            Err(Failure::Refused(error)) => {
                let said = format!("lists: {sql}: {error}");
                self.env.log(Severity::Info, &said);
                if error.state().as_str().starts_with("XX") {
                    self.oracle.lock().blame(format!("lists: {sql}: {error}"));
                }
                let rolled_back = client.query(&*self.env, "rollback", PATIENCE).await;
                if rolled_back.is_err() {
                    self.client = None;
                }
            }
        }
        None
    }
}

fn begin(transaction: &Transaction) -> String {
    format!("begin isolation level {}", transaction.level.name())
}

fn statement(step: &Step) -> String {
    match step {
        Step::Append(key, number) if key % 2 == 0 => format!(
            "insert into list values ({key}, '{number}') \
             on conflict (k) do update set v = list.v || ',{number}'"
        ),
        Step::Append(key, number) => format!(
            "insert into item select {key}, coalesce(max(place), 0) + 1, {number} \
             from item where k = {key}"
        ),
        Step::Read(key, _) if key % 2 == 0 => format!("select v from list where k = {key}"),
        Step::Read(key, _) => format!("select v from item where k = {key} order by place"),
    }
}

/// Takes what a read has shown out of a reply's result.
fn note(step: &mut Step, reply: &Reply, index: usize) {
    if let (Step::Read(_, list), Some(result)) = (step, reply.results.get(index)) {
        let rows = (0..result.rows.len()).filter_map(|row| result.text(row, 0));
        *list = Some(rows.flat_map(parse).collect());
    }
}

fn parse(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split(',').filter_map(|number| number.parse().ok())
}

/// All lists, as they stand.
///
/// # Errors
/// A query fails.
pub async fn read_all(
    env: &dyn Env,
    client: &mut Client,
) -> Result<BTreeMap<u64, Vec<u64>>, Failure> {
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for sql in [
        "select k, v from list",
        "select k, v from item order by k, place",
    ] {
        let answer = client.query(env, sql, LAST_READ_PATIENCE).await?;
        for row in 0..answer.rows().len() {
            let key = answer.text(row, 0).and_then(|key| key.parse().ok());
            if let (Some(key), Some(numbers)) = (key, answer.text(row, 1)) {
                lists.entry(key).or_default().extend(parse(numbers));
            }
        }
    }
    Ok(lists)
}
