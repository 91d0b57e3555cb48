//! Clients that commit in two phases: they prepare transfers between a few accounts, and resolve
//! them later, over other connections and leaders.
//!
//! ```text
//! begin; account 3 - 1; account 5 + 1; note "2-17" in the ledger; prepare transaction '2-17'
//! …                                   the ledger does not show 2-17; the node may be gone by now
//! commit prepared '2-17'              again and again, until it is known to be done
//! ```
//! What is judged:
//!
//! - What was said to be prepared is there to be resolved, until somebody has.
//! - Nobody sees anything of it before, and the accounts' sum never changes.
//! - At the end the ledger has what was committed and nothing that was rolled back, and nothing is
//!   prepared but what nobody knows whether it was.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env};
use base::sync::Mutex;
use base::Error;
use lab::client::{Addresses, Client, Failure};
use lab::registers::{Mood, Oracle};

/// How long they wait for an answer.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// How long they rest between one thing and the next, on average.
const PACE: Duration = Duration::from_millis(25);

/// How long one waits at the most before it resolves what it has prepared.
const WAIT_MAX: Duration = Duration::from_millis(900);

/// How long an answer may take when nothing fails any more.
const LAST_PATIENCE: Duration = Duration::from_secs(20);

const ACCOUNTS: u64 = 6;

/// States of errors after which it is certain that nothing was prepared.
const CERTAIN: [&str; 7] = [
    "40001", "40P01", "55P03", "42P01", "53100", "53200", "57P03",
];

/// What is known of prepared transactions, by name.
#[derive(Debug, Default)]
pub struct Books {
    committed: BTreeSet<String>,
    /// They may have been prepared, and may be committed where that was tried.
    doubtful: BTreeSet<String>,
}

impl Books {
    /// How many are known to be committed.
    pub fn committed(&self) -> u64 {
        self.committed.len() as u64
    }
}

/// One client.
pub struct TwoPhaseClient {
    env: Arc<dyn Env>,
    addresses: Addresses,
    oracle: Arc<Mutex<Oracle>>,
    books: Arc<Mutex<Books>>,
    number: usize,
    client: Option<Client>,
    next: u64,
}

/// What became of a statement.
enum Answer {
    /// It was carried out; the first column of the first row.
    Done(Option<String>),
    /// It was not.
    Refused(Error),
    /// Nobody knows.
    Unknown,
}

impl TwoPhaseClient {
    /// A client that is not connected yet.
    pub fn new(
        env: Arc<dyn Env>,
        addresses: Addresses,
        oracle: Arc<Mutex<Oracle>>,
        books: Arc<Mutex<Books>>,
        number: usize,
    ) -> TwoPhaseClient {
        TwoPhaseClient {
            env,
            addresses,
            oracle,
            books,
            number,
            client: None,
            next: 0,
        }
    }

    /// Works until it is told to stop; what it has prepared by then it resolves.
    pub async fn run(mut self, mood: impl Fn() -> Mood) {
        let mut is_set_up = false;
        loop {
            match mood() {
                Mood::Stop => return,
                Mood::Read => {}
                Mood::Work if !is_set_up => is_set_up = self.set_up().await,
                Mood::Work => self.work().await,
            }
            self.rest(2 * PACE).await;
        }
    }

    async fn rest(&self, most: Duration) {
        let nanos = self.env.random() % most.as_nanos() as u64;
        sleep(&*self.env, Duration::from_nanos(nanos)).await;
    }

    async fn set_up(&mut self) -> bool {
        let made = self
            .ask(&format!(
                "create table if not exists account (k int primary key, v int); \
                 create table if not exists ledger (id text primary key); \
                 insert into account select k, 100 from generate_series(1, {ACCOUNTS}) k \
                 on conflict do nothing"
            ))
            .await;
        matches!(made, Answer::Done(_))
    }

    async fn work(&mut self) {
        if self.env.random() % 3 == 0 {
            let sum = self.ask("select sum(v) from account").await;
            let expected = (100 * ACCOUNTS).to_string();
            if matches!(&sum, Answer::Done(Some(sum)) if *sum != expected) {
                self.accuse("the accounts' sum has changed".to_owned());
            }
            return;
        }
        self.next += 1;
        let name = format!("{}-{}", self.number, self.next);
        let account = |random: u64| 1 + random % ACCOUNTS;
        let (from, to) = (account(self.env.random()), account(self.env.random()));
        let prepared = self
            .ask(&format!(
                "begin; set local lock_timeout = '300ms'; \
                 update account set v = v - 1 where k = {from}; \
                 update account set v = v + 1 where k = {to}; \
                 insert into ledger values ('{name}'); \
                 prepare transaction '{name}'"
            ))
            .await;
        let is_certain = match prepared {
            Answer::Done(_) => true,
            Answer::Refused(_) => return,
            Answer::Unknown => {
                self.books.lock().doubtful.insert(name.clone());
                false
            }
        };
        if self.env.random() % 2 == 0 {
            self.rest(WAIT_MAX).await;
        }
        if is_certain {
            let noted = format!("select count(*) from ledger where id = '{name}'");
            if matches!(self.ask(&noted).await, Answer::Done(Some(count)) if count != "0") {
                self.accuse(format!("{name} was seen before it was committed"));
            }
        }
        self.resolve(&name, is_certain).await;
    }

    /// Resolves what was prepared, or may have been, and notes what has become of it.
    async fn resolve(&mut self, name: &str, is_certain: bool) {
        let commits = self.env.random() % 3 > 0;
        let verb = if commits { "commit" } else { "rollback" };
        let mut may_be_done = false;
        loop {
            match self.ask(&format!("{verb} prepared '{name}'")).await {
                Answer::Done(_) => break,
                Answer::Unknown => may_be_done = true,
                Answer::Refused(error) if error.state().as_str() == "42704" => {
                    match (may_be_done, is_certain) {
                        (true, true) => break,
                        (false, true) => {
                            return self.accuse(format!("{name} was prepared: {error}"));
                        }
                        // It may be prepared yet, or have been committed.
                        (_, false) => return,
                    }
                }
                Answer::Refused(_) => {}
            }
            self.rest(2 * PACE).await;
        }
        let mut books = self.books.lock();
        books.doubtful.remove(name);
        if commits {
            books.committed.insert(name.to_owned());
        }
    }

    async fn ask(&mut self, statement: &str) -> Answer {
        if self.client.is_none() {
            let address = self.addresses.pick(&*self.env);
            let client = Client::connect(&*self.env, &address, PATIENCE).await;
            self.client = client.ok();
        }
        let Some(client) = self.client.as_mut() else {
            return Answer::Refused(Error::unsupported("asking nobody"));
        };
        match client.query(&*self.env, statement, PATIENCE).await {
            Ok(reply) => Answer::Done(reply.text(0, 0).map(str::to_owned)),
            Err(Failure::Broken(_)) => {
                self.client = None;
                Answer::Unknown
            }
            Err(Failure::Refused(error)) => {
                let state = error.state();
                let state = state.as_str();
                let is_certain = CERTAIN.contains(&state) || matches!(state, "42704" | "55000");
                if state.starts_with("XX") {
                    self.accuse(format!("{statement}: {error}"));
                }
                let client = self.client.as_mut();
                if let Some(client) = client {
                    let _ = client.query(&*self.env, "rollback", PATIENCE).await;
                }
                match is_certain {
                    true => Answer::Refused(error),
                    false => Answer::Unknown,
                }
            }
        }
    }

    fn accuse(&self, what: String) {
        let what = format!("two-phase: {what}");
        self.oracle.lock().violation.get_or_insert(what);
    }
}

/// Looks at what there is when all clients have ended; what nobody knows of is rolled back.
///
/// # Errors
/// What is wrong.
pub async fn judge(env: &dyn Env, address: &str, books: &Arc<Mutex<Books>>) -> Result<(), String> {
    let connected = Client::connect(env, address, LAST_PATIENCE).await;
    let mut client = connected.map_err(|error| format!("two-phase: {error:?}"))?;
    let (committed, doubtful) = {
        let books = books.lock();
        (books.committed.clone(), books.doubtful.clone())
    };
    let left = column(&mut client, env, "select gid from pg_prepared_xacts").await?;
    for name in &left {
        if !doubtful.contains(name) {
            return Err(format!("two-phase: {name} was resolved, and is prepared"));
        }
        let rolled_back = format!("rollback prepared '{name}'");
        column(&mut client, env, &rolled_back).await?;
    }
    let noted = column(&mut client, env, "select id from ledger").await?;
    if let Some(name) = committed.difference(&noted).next() {
        return Err(format!("two-phase: {name} was committed, and is not there"));
    }
    let known = |name: &&String| committed.contains(*name);
    let extra = noted.iter().filter(|name| !known(name));
    for name in extra {
        if !doubtful.contains(name) || left.contains(name) {
            return Err(format!("two-phase: {name} was not committed, and is there"));
        }
    }
    let sum = column(&mut client, env, "select sum(v) from account").await?;
    match sum == BTreeSet::from([(100 * ACCOUNTS).to_string()]) {
        true => Ok(()),
        false => Err(format!("two-phase: the accounts' sum is {sum:?}")),
    }
}

/// The first column of what a statement gives.
async fn column(
    client: &mut Client,
    env: &dyn Env,
    statement: &str,
) -> Result<BTreeSet<String>, String> {
    let reply = client.query(env, statement, LAST_PATIENCE).await;
    let reply = reply.map_err(|failure| format!("two-phase: {statement}: {failure:?}"))?;
    let rows = (0..).map_while(|row| reply.text(row, 0));
    Ok(rows.map(str::to_owned).collect())
}
