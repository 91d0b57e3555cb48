//! A client that changes the schema: tables that come and go, indexes and primary keys made after
//! the load, TRUNCATE, rollbacks, and, where tables are spread over groups, moves from one to another;
//! while the nodes fail.
//!
//! It has a table to itself, of more rows than are built in line, so that indexes and new keys are
//! built beside the work ([`kv::build`]). What it asks is drawn by chance, and most of what fails
//! may: nodes die, and a table may or may not be there. What it judges:
//!
//! - No answer says that something inside is broken (class XX).
//! - Rows counted by an index and rows counted by the table are as many, in one statement.
//!
//! That replicas hold the same, and that on every disk rows and indexes agree, is judged at the end
//! of the run, as for all tables.

use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env};
use base::sync::Mutex;
use lab::client::{Addresses, Client, Failure};
use lab::registers::{Mood, Oracle};

/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// How long it rests between statements, on average.
const PACE: Duration = Duration::from_millis(40);

/// Rows that one INSERT adds; a full table has more than are built in line.
const ROWS: u64 = 700;

/// What it asks wherever it is, and how often.
const STATEMENTS: [(&str, u64); 12] = [
    (
        "create table changing (a int, b int, c text, primary key (a))",
        2,
    ),
    ("create table changing (a int, b int, c text)", 6),
    ("@load", 12),
    ("create index on changing (b)", 4),
    ("create unique index on changing (a, b)", 3),
    ("alter table changing add primary key (a)", 6),
    ("alter table changing drop constraint changing_pkey", 3),
    ("begin; create index on changing (c); rollback", 2),
    (
        "begin; update changing set b = b + 1 where a % 9 = 0; create index on changing (b); commit",
        2,
    ),
    ("update changing set b = a % 11 where a % 5 = 0", 3),
    ("truncate changing", 1),
    ("drop table changing", 2),
];

/// What it asks besides where tables are spread over three groups.
const MOVES: [(&str, u64); 4] = [
    ("alter table changing set (quorate.group = 1)", 3),
    ("alter table changing set (quorate.group = 2)", 3),
    ("alter table changing set (quorate.group = 3)", 3),
    (
        "begin; alter table changing set (quorate.group = 2); delete from changing where a % 7 = 0; \
         alter table changing set (quorate.group = 3); rollback",
        2,
    ),
];

/// Counts by the rows and, where there is one, by an index.
const COUNT: &str = "select (select count(*) from changing) \
     - (select count(*) from changing where b < 5) \
     - (select count(*) from changing where b >= 5)";

/// The client.
pub struct SchemaClient {
    env: Arc<dyn Env>,
    addresses: Addresses,
    oracle: Arc<Mutex<Oracle>>,
    client: Option<Client>,
    next: u64,
    /// What it asks, and how often.
    statements: Vec<(&'static str, u64)>,
}

impl SchemaClient {
    /// A client that is not connected yet, and may move its table among three groups.
    pub fn new(
        env: Arc<dyn Env>,
        addresses: Addresses,
        oracle: Arc<Mutex<Oracle>>,
        among_groups: bool,
    ) -> SchemaClient {
        let moves = MOVES.into_iter().filter(|_| among_groups);
        SchemaClient {
            env,
            addresses,
            oracle,
            client: None,
            next: 1,
            statements: STATEMENTS.into_iter().chain(moves).collect(),
        }
    }

    /// Works until it is told to stop.
    pub async fn run(mut self, mood: impl Fn() -> Mood) {
        loop {
            match mood() {
                Mood::Stop => return,
                Mood::Read => {}
                Mood::Work => self.work().await,
            }
            let nanos = PACE.as_nanos() as u64;
            let rest = self.env.random() % (2 * nanos);
            sleep(&*self.env, Duration::from_nanos(rest)).await;
        }
    }

    async fn work(&mut self) {
        if self.client.is_none() {
            let address = self.addresses.pick(&*self.env);
            let client = Client::connect(&*self.env, &address, PATIENCE).await;
            self.client = client.ok();
        }
        if self.env.random() % 4 == 0 {
            return self.count().await;
        }
        let statement = self.draw();
        self.ask(&statement).await;
    }

    /// A statement, by chance.
    fn draw(&mut self) -> String {
        let total: u64 = self.statements.iter().map(|(_, weight)| weight).sum();
        let mut pick = self.env.random() % total;
        for &(statement, weight) in &self.statements {
            if pick >= weight {
                pick -= weight;
                continue;
            }
            if statement != "@load" {
                return statement.to_owned();
            }
            let (first, last) = (self.next, self.next + ROWS - 1);
            self.next += ROWS;
            return format!(
                "insert into changing select g, g % 10, 'row ' || g % 17 \
                 from generate_series({first}, {last}) g"
            );
        }
        unreachable!("{pick} is below the sum of the weights")
    }

    /// The first column of the first row, if there is an answer.
    async fn ask(&mut self, statement: &str) -> Option<String> {
        let client = self.client.as_mut()?;
        match client.query(&*self.env, statement, PATIENCE).await {
            Ok(reply) => reply.text(0, 0).map(str::to_owned),
            Err(Failure::Broken(_)) => {
                self.client = None;
                None
            }
            Err(Failure::Refused(error)) => {
                // What an earlier connection began may still be on its way.
                let is_race = error.message().contains("concurrently");
                let is_internal = error.state().as_str().starts_with("XX");
                let _ = client.query(&*self.env, "rollback", PATIENCE).await;
                if is_internal && !is_race {
                    self.accuse(format!("{statement}: {error}"));
                }
                None
            }
        }
    }

    async fn count(&mut self) {
        let difference = self.ask(COUNT).await;
        if difference.is_some_and(|difference| difference != "0") {
            self.accuse(format!("{COUNT}: rows and index differ"));
        }
    }

    fn accuse(&self, what: String) {
        self.oracle.lock().violation.get_or_insert(what);
    }
}
