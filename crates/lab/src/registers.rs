//! The workload behind the oracles of [`crate::register`] and [`crate::journal`]: clients that write
//! registers and journals of their own and read those of all, and a bank whose sum never changes.
//!
//! ```text
//! client 0 ── insert k=1 v=1 ── update v=2 ── delete ── …  (outcome unknown) ── goes on with k=9
//! client 1 ── read k=1 ── transfer ── sum ── DO loop with COMMITs: journal 7, numbers 1 to 5 ── …
//! ```
//! Everything that clients send and are told passes through one [`Oracle`], which is outside of
//! the system under test and keeps the first thing that is wrong.
//!
//! # What is promised to whom
//! A client works at one level of `synchronous_commit`. At the world's *surviving* level or above,
//! whatever it is told must hold for good: its writes are never lost, and what it read, or read to
//! be absent, never vanishes. Below that level a client writes without any such promise, and its
//! reads are not judged; but what others read of its writes is.
//!
//! Clients that read on standbys ([`Manner::standby`]) may be shown the past, unless they ask for
//! what is no older than their question. But a session never goes back in time, and what one was
//! shown nobody may miss.
//!
//! # When promises end
//! Where an operator lets a node go on alone, what was promised after that node was last whole is
//! void ([`Oracle::mark`], [`Oracle::forget`]): it may have happened or not. Clients then leave
//! alone what they have written, and what they asked before is not judged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env};
use base::sync::Mutex;
use base::{Durability, SqlState};

use pg::client::Reply;

use crate::check::history::{self, Transaction};
use crate::client::{rest, Addresses, Client, Failure};
use crate::journal::{Journal, JournalRead};
use crate::lists;
use crate::register::{Read, Register, WriteNumber};

/// Accounts of the bank, and what each holds at first.
pub const ACCOUNTS: u64 = 8;
const OPENING_BALANCE: u64 = 100;

/// Pairs of which one must always be present.
const PAIRS: u64 = 3;

/// How long it waits before it connects anew.
const RECONNECT_PAUSE: Duration = Duration::from_millis(30);

/// Registers that one read of a range asks for.
const RANGE_KEYS: u64 = 6;

/// Numbers that one statement appends to a journal at most.
const JOURNAL_STEP_MAX: u64 = 6;

/// Journals that are read while the run goes on; all are at its end.
const RECENT_JOURNALS: usize = 12;

/// How long the last reads wait for an answer.
const LAST_READ_PATIENCE: Duration = Duration::from_secs(20);

/// What the clients have been promised, and what was wrong.
#[derive(Debug, Default)]
pub struct Oracle {
    registers: BTreeMap<u64, Register>,
    /// Journals, by number from 1.
    journals: Vec<Journal>,
    /// The registers that clients write at present.
    owned: BTreeMap<usize, u64>,
    /// The weakest level whose promises this world's faults never break.
    surviving: Durability,
    /// Commits acknowledged.
    pub commits: u64,
    /// Reads answered.
    pub reads: u64,
    /// Writes refused because a disk was full.
    pub lacked_space: u64,
    /// Operations whose outcome is not known.
    pub unknown: u64,
    /// The first thing that was wrong.
    pub violation: Option<String>,
    /// Transactions on lists, in the order in which they ended.
    pub history: Vec<Transaction>,
    /// Numbers that were appended to lists, or tried.
    pub(crate) numbers: u64,
    next_key: u64,
    /// What is promised at the mark.
    mark: Option<Mark>,
    /// How often promises have become void.
    generation: u64,
}

/// What was promised at one time.
#[derive(Debug)]
struct Mark {
    registers: BTreeMap<u64, Register>,
    journals: Vec<Journal>,
    history: usize,
}

impl Oracle {
    /// An oracle for a world whose faults never break the promises of this level.
    pub fn new(surviving: Durability) -> Oracle {
        Oracle {
            surviving,
            ..Oracle::default()
        }
    }

    /// What is promised from now on may become void.
    pub fn mark(&mut self) {
        self.mark = Some(Mark {
            registers: self.registers.clone(),
            journals: self.journals.clone(),
            history: self.history.len(),
        });
    }

    /// What was promised since the mark is void.
    pub fn forget(&mut self) {
        let Some(mark) = self.mark.take() else {
            return;
        };
        self.generation += 1;
        let none = Register::default();
        for (key, register) in &mut self.registers {
            register.forget_since(mark.registers.get(key).unwrap_or(&none));
        }
        let none = Journal::default();
        for (index, journal) in self.journals.iter_mut().enumerate() {
            journal.forget_since(mark.journals.get(index).unwrap_or(&none));
        }
        for transaction in &mut self.history[mark.history..] {
            transaction.forget();
        }
    }

    /// Judges all transactions on lists; these are the lists as they stand at the end.
    fn judge_lists(&mut self, last: &BTreeMap<u64, Vec<u64>>) {
        if let Some(wrong) = history::judge(&self.history, last).first() {
            self.blame(format!("lists: {wrong:?}"));
        }
    }

    /// Changes when promises become void.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The weakest level whose promises are kept.
    pub fn surviving(&self) -> Durability {
        self.surviving
    }

    pub(crate) fn new_key(&mut self, owner: usize) -> u64 {
        self.next_key += 1;
        self.registers.insert(self.next_key, Register::default());
        self.owned.insert(owner, self.next_key);
        self.next_key
    }

    pub(crate) fn register(&mut self, key: u64) -> &mut Register {
        self.registers.entry(key).or_default()
    }

    /// A new journal's number.
    fn new_journal(&mut self) -> usize {
        self.journals.push(Journal::default());
        self.journals.len()
    }

    /// Judges a read of one journal: how many numbers, and the largest.
    fn end_journal(&mut self, journal: usize, read: JournalRead, seen: (u64, u64), who: &str) {
        let (count, largest) = seen;
        if let Err(wrong) = self.journals[journal - 1].end_read(read, count, largest) {
            self.blame(format!("{who}: journal {journal}: {wrong}"));
        }
    }

    pub(crate) fn blame(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    fn begin_reads(&self, keys: std::ops::Range<u64>) -> Vec<(u64, Read)> {
        let registers = self.registers.range(keys);
        registers
            .map(|(key, register)| (*key, register.begin_read()))
            .collect()
    }

    /// As [`Oracle::begin_reads`], by a session that may be shown the past, but none before what
    /// it was shown before.
    fn begin_reads_of_past(
        &self,
        keys: std::ops::Range<u64>,
        shown: &BTreeMap<u64, WriteNumber>,
    ) -> Vec<(u64, Read)> {
        let registers = self.registers.range(keys);
        registers
            .map(|(key, register)| {
                let shown = shown.get(key).copied().unwrap_or(0);
                (*key, register.begin_read_of_past(shown))
            })
            .collect()
    }

    /// Judges reads by an answer with rows of key and value; returns the states that were shown.
    fn end_reads(
        &mut self,
        reads: Vec<(u64, Read)>,
        answer: &Reply,
        who: &str,
    ) -> Vec<(u64, WriteNumber)> {
        let mut shown = Vec::new();
        let mut seen: BTreeMap<u64, WriteNumber> = BTreeMap::new();
        for (index, row) in answer.rows().iter().enumerate() {
            let number = |column| answer.text(index, column)?.parse::<u64>().ok();
            match (number(0), number(1)) {
                (Some(key), Some(value)) => {
                    if seen.insert(key, value as WriteNumber).is_some() {
                        self.blame(format!("{who}: register {key} came twice"));
                    }
                }
                _ => self.blame(format!("{who}: register and value came as {row:?}")),
            }
        }
        for (key, read) in reads {
            let value = seen.remove(&key);
            match self.register(key).end_read(read, value) {
                Ok(state) => shown.push((key, state)),
                Err(wrong) => self.blame(format!("{who}: register {key}: {wrong}")),
            }
        }
        shown
    }
}

/// What makes the tables; sent once.
pub const SETUP: &str = "create table register(k int primary key, v int); \
                         create index on register(v); \
                         create table bank(id int primary key, balance int); \
                         create table journal(j int, n int, mark int unique, \
                         primary key (j, n)); \
                         create table duty(pair int, who int, present int, \
                         primary key (pair, who)); \
                         create table list(k int primary key, v text); \
                         create table item(k int, place int, v int, primary key (k, place))";

/// The same where tables lie in several groups: what is made later and the journals in the second, all
/// others in all of them, but for pairs on duty: of each the one is in the first and the other in the second.
pub fn setup_in_groups(groups: usize) -> String {
    let partitioned = |table: &str, columns: &str, by: &str| {
        let of_group = |group: usize| {
            let remainder = group - 1;
            format!(
                "create table {table}_{group} partition of {table} \
                 for values with (modulus {groups}, remainder {remainder}) \
                 with (quorate.group = {group}); "
            )
        };
        let partitions: String = (1..=groups).map(of_group).collect();
        format!("create table {table}({columns}) partition by hash ({by}); {partitions}")
    };
    let tables = [
        ("register", "k int primary key, v int", "k"),
        ("bank", "id int primary key, balance int", "id"),
        ("list", "k int primary key, v text", "k"),
        (
            "item",
            "k int, place int, v int, primary key (k, place)",
            "k",
        ),
    ];
    let tables = tables.map(|(table, columns, by)| partitioned(table, columns, by));
    format!(
        "{}create index on register(v); \
         create table duty(pair int, who int, present int, primary key (pair, who)) \
         partition by list (who); \
         create table duty_1 partition of duty for values in (0); \
         create table duty_2 partition of duty for values in (1) with (quorate.group = 2); \
         create table journal(j int, n int, mark int unique, primary key (j, n)) \
         with (quorate.group = 2); \
         alter database postgres set quorate.default_group = 2",
        tables.concat()
    )
}

/// Fills the bank and the pairs on duty; sent once after [`SETUP`].
pub fn opening() -> String {
    let accounts: Vec<String> = (0..ACCOUNTS)
        .map(|account| format!("({account}, {OPENING_BALANCE})"))
        .collect();
    let duties: Vec<String> = (0..PAIRS)
        .map(|pair| format!("({pair}, 0, 1), ({pair}, 1, 1)"))
        .collect();
    format!(
        "insert into bank values {}; insert into duty values {}",
        accounts.join(", "),
        duties.join(", ")
    )
}

/// What clients may do at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Everything.
    Work,
    /// Nothing that writes.
    Read,
    /// Nothing, for good.
    Stop,
}

/// How a client behaves.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The level of its session.
    pub level: Durability,
    /// Whether it writes at all.
    pub writes: bool,
    /// How long it waits for an answer before it gives its connection up.
    pub patience: Duration,
    /// How long it rests between operations, on average.
    pub pace: Duration,
    /// Reads on whatever node it is connected to, as `quorate.follower_reads` says.
    pub standby: Option<&'static str>,
}

impl Manner {
    /// Whether it may be shown the past.
    fn may_be_late(&self) -> bool {
        self.standby.is_some_and(|age| age != NO_AGE)
    }
}

/// The value of `quorate.follower_reads` at which reads are as new as on the leader.
pub const NO_AGE: &str = "0ms";

/// One client's part.
pub struct Worker {
    env: Arc<dyn Env>,
    oracle: Arc<Mutex<Oracle>>,
    addresses: Addresses,
    number: usize,
    manner: Manner,
    client: Option<Client>,
    /// That of the oracle when the operation at hand began.
    generation: u64,
    /// Its register, and the newest write of it that is known to have happened.
    own: Option<(u64, Option<WriteNumber>)>,
    /// Its journal.
    journal: Option<usize>,
    /// Whether what it is told is judged.
    judged: bool,
    /// Of each register, the newest state that this session was shown.
    shown: BTreeMap<u64, WriteNumber>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Worker({}, {:?})", self.number, self.manner)
    }
}

impl Worker {
    /// A client that connects to any of these addresses.
    pub fn new(
        env: Arc<dyn Env>,
        oracle: Arc<Mutex<Oracle>>,
        addresses: &Addresses,
        number: usize,
        manner: Manner,
    ) -> Worker {
        let judged = manner.level >= oracle.lock().surviving;
        Worker {
            env,
            oracle,
            addresses: addresses.clone(),
            number,
            manner,
            client: None,
            generation: 0,
            own: None,
            journal: None,
            judged,
            shown: BTreeMap::new(),
        }
    }

    /// Works as the mood allows, until that is to stop.
    pub async fn run(mut self, mood: impl Fn() -> Mood) {
        loop {
            let writes = match mood() {
                Mood::Work => self.manner.writes,
                Mood::Read => false,
                Mood::Stop => return,
            };
            if self.client.is_none() && !self.connect().await {
                sleep(&*self.env, RECONNECT_PAUSE).await;
                continue;
            }
            self.begin();
            match self.env.random() % 16 {
                0..=6 if writes => self.write().await,
                7..=8 if writes && self.env.random() % 3 == 0 => self.leave_duty().await,
                7..=8 if writes => self.transfer().await,
                9 if writes => self.write_journal().await,
                0..=13 => self.read().await,
                14 if self.env.random() % 2 == 0 && !self.manner.may_be_late() => {
                    self.read_journal().await;
                }
                14 => self.read_range().await,
                _ if self.env.random() % 3 == 0 => self.look_at_duties().await,
                _ => self.sum().await,
            }
            rest(&*self.env, self.manner.pace).await;
        }
    }

    /// What was promised and is void, is forgotten.
    fn begin(&mut self) {
        let generation = self.oracle.lock().generation;
        if std::mem::replace(&mut self.generation, generation) != generation {
            (self.own, self.journal) = (None, None);
            self.shown.clear();
        }
    }

    async fn connect(&mut self) -> bool {
        let standby = self.manner.standby;
        let settings = standby.map(|age| ("quorate.follower_reads", age));
        let settings = settings.as_slice();
        let patience = self.manner.patience;
        let connecting = self.addresses.connect(&*self.env, settings, patience);
        self.client = connecting.await.map(|(client, _)| client);
        self.shown.clear();
        if self.client.is_none() {
            return false;
        }
        let set = format!("set synchronous_commit = '{}'", self.manner.level.name());
        if self.query(&set).await.is_err() {
            self.client = None;
        }
        self.client.is_some()
    }

    async fn query(&mut self, sql: &str) -> Result<Reply, Failure> {
        let Some(client) = &mut self.client else {
            return Err(Failure::Refused(base::Error::internal("not connected")));
        };
        let result = client.query(&*self.env, sql, self.manner.patience).await;
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
            None => (self.oracle.lock().new_key(self.number), None),
        };
        self.own = Some((key, present));
        let delete = present.is_some() && self.env.random() % 2 == 0;
        let number = self.oracle.lock().register(key).write(!delete);
        let (change, expected) = match present {
            None => (
                format!("insert into register values ({key}, {number})"),
                "INSERT 0 1",
            ),
            Some(_) if delete => (format!("delete from register where k = {key}"), "DELETE 1"),
            Some(_) => (
                format!("update register set v = {number} where k = {key}"),
                "UPDATE 1",
            ),
        };
        let result = self.query(&change).await;
        let mut oracle = self.oracle.lock();
        if oracle.generation != self.generation {
            return;
        }
        match result {
            Ok(answer) => {
                let tag = answer.results.last().map_or("", |result| &result.tag);
                if tag != expected {
                    oracle.blame(format!("register {key}: {change} was answered with {tag}"));
                }
                if self.judged {
                    oracle.register(key).acknowledged(number);
                }
                oracle.commits += 1;
                self.own = Some((key, (!delete).then_some(number)));
            }
            Err(Failure::Refused(error)) if never_happened(error.state()) => {
                oracle.lacked_space += u64::from(error.state() == SqlState::DISK_FULL);
                oracle.register(key).refused(number);
            }
            Err(Failure::Refused(error)) => {
                oracle.blame(format!("register {key}: {change}: {error:?}"));
            }
            Err(Failure::Broken(_)) => self.own = None,
        }
        // What a weaker level has acknowledged may be gone, and then the state is not known.
        if !self.judged {
            self.own = None;
        }
    }

    /// A register that somebody writes now, or any.
    fn pick(&self) -> Option<u64> {
        let oracle = self.oracle.lock();
        if oracle.next_key == 0 {
            return None;
        }
        let owned: Vec<u64> = oracle.owned.values().copied().collect();
        match self.env.random() % 4 {
            0 => Some(self.env.random() % oracle.next_key + 1),
            _ => Some(owned[self.env.random() as usize % owned.len()]),
        }
    }

    /// Reads any register, and has the oracle judge what came.
    async fn read(&mut self) {
        let Some(key) = self.pick() else {
            return;
        };
        let sql = format!("select k, v from register where k = {key}");
        self.judge_read(key..key + 1, &sql).await;
    }

    /// Reads some registers whose keys are neighbours.
    async fn read_range(&mut self) {
        let Some(key) = self.pick() else {
            return;
        };
        let low = key.saturating_sub(RANGE_KEYS / 2);
        let high = low + RANGE_KEYS;
        let sql = format!("select k, v from register where k >= {low} and k < {high}");
        self.judge_read(low..high, &sql).await;
    }

    async fn judge_read(&mut self, keys: std::ops::Range<u64>, sql: &str) {
        let reads = match self.manner.may_be_late() {
            true => {
                let oracle = self.oracle.lock();
                oracle.begin_reads_of_past(keys, &self.shown)
            }
            false => self.oracle.lock().begin_reads(keys),
        };
        let Ok(answer) = self.query(sql).await else {
            return;
        };
        let mut oracle = self.oracle.lock();
        oracle.reads += 1;
        if self.judged && oracle.generation == self.generation {
            let who = self.manner.standby.unwrap_or(self.manner.level.name());
            let shown = oracle.end_reads(reads, &answer, who);
            self.shown.extend(shown);
        }
    }

    /// Appends some numbers to the own journal, each committed by itself, in one statement.
    async fn write_journal(&mut self) {
        let count = self.env.random() % JOURNAL_STEP_MAX + 1;
        let (journal, first, last) = {
            let mut oracle = self.oracle.lock();
            let journal = *self.journal.get_or_insert_with(|| oracle.new_journal());
            let (first, last) = oracle.journals[journal - 1].append(count);
            (journal, first, last)
        };
        let block = format!(
            "do $$ begin for i in {first}..{last} loop \
             insert into journal values ({journal}, i, {journal} * 1000 + i); commit; end loop; end; $$"
        );
        let result = self.query(&block).await;
        let mut oracle = self.oracle.lock();
        if oracle.generation != self.generation {
            return;
        }
        match result {
            Ok(_) => {
                oracle.commits += count;
                if self.judged {
                    oracle.journals[journal - 1].acknowledged(last);
                }
            }
            // Some of the numbers may have been committed before the failover.
            Err(Failure::Refused(error)) if never_happened(error.state()) => self.journal = None,
            Err(Failure::Refused(error)) => {
                oracle.blame(format!("journal {journal}: {block}: {error:?}"));
            }
            Err(Failure::Broken(_)) => self.journal = None,
        }
        if !self.judged {
            self.journal = None;
        }
    }

    /// Reads any of the newest journals.
    async fn read_journal(&mut self) {
        let (journal, read) = {
            let oracle = self.oracle.lock();
            let count = oracle.journals.len();
            if count == 0 {
                return;
            }
            let back = self.env.random() as usize % count.min(RECENT_JOURNALS);
            let journal = count - back;
            (journal, oracle.journals[journal - 1].begin_read())
        };
        let sql = format!("select count(*), max(n) from journal where j = {journal}");
        let Ok(answer) = self.query(&sql).await else {
            return;
        };
        let mut oracle = self.oracle.lock();
        oracle.reads += 1;
        if self.judged && oracle.generation == self.generation {
            let number = |column| answer.text(0, column)?.parse::<u64>().ok();
            let seen = (number(0).unwrap_or(0), number(1).unwrap_or(0));
            oracle.end_journal(journal, read, seen, self.manner.level.name());
        }
    }

    async fn transfer(&mut self) {
        let (from, to) = (self.env.random() % ACCOUNTS, self.env.random() % ACCOUNTS);
        let begin = match self.env.random() % 3 {
            0 => "begin",
            1 => "begin isolation level serializable",
            _ => "begin isolation level repeatable read",
        };
        let withdraw = format!("update bank set balance = balance - 1 where id = {from}");
        let deposit = format!("update bank set balance = balance + 1 where id = {to}");
        for statement in [begin, &withdraw, &deposit, "commit"] {
            if self.ask(statement).await.is_none() {
                return;
            }
        }
        self.oracle.lock().commits += 1;
    }

    /// Runs a statement of a transaction, which is rolled back if it fails.
    async fn ask(&mut self, statement: &str) -> Option<Reply> {
        match self.query(statement).await {
            Ok(answer) => return Some(answer),
            Err(Failure::Refused(_)) => drop(self.query("rollback").await),
            Err(Failure::Broken(_)) => {}
        }
        None
    }

    /// One of a pair leaves if it sees both present, else both come: write skew would leave a pair
    /// without anybody.
    async fn leave_duty(&mut self) {
        let (pair, who) = (self.env.random() % PAIRS, self.env.random() % 2);
        if self
            .ask("begin isolation level serializable")
            .await
            .is_none()
        {
            return;
        }
        let count = format!("select sum(present) from duty where pair = {pair}");
        let Some(answer) = self.ask(&count).await else {
            return;
        };
        let change = match answer.text(0, 0) {
            Some("2") => {
                format!("update duty set present = 0 where pair = {pair} and who = {who}")
            }
            _ => format!("update duty set present = 1 where pair = {pair}"),
        };
        for statement in [change.as_str(), "commit"] {
            if self.ask(statement).await.is_none() {
                return;
            }
        }
        self.oracle.lock().commits += 1;
    }

    async fn look_at_duties(&mut self) {
        let absent = "select count(*) from (select pair from duty group by pair \
                      having sum(present) = 0) as absent";
        let Ok(answer) = self.query(absent).await else {
            return;
        };
        let mut oracle = self.oracle.lock();
        oracle.reads += 1;
        let seen = answer.text(0, 0);
        if seen != Some("0") {
            oracle.blame(format!("of {seen:?} pairs nobody is present"));
        }
    }

    async fn sum(&mut self) {
        let Ok(answer) = self.query("select sum(balance) from bank").await else {
            return;
        };
        let expected = (ACCOUNTS * OPENING_BALANCE).to_string();
        let mut oracle = self.oracle.lock();
        oracle.reads += 1;
        let seen = answer.text(0, 0);
        if seen != Some(&expected) {
            oracle.blame(format!("the bank holds {seen:?}, not {expected}"));
        }
    }
}

/// Whether an error says for certain that the statement has changed nothing.
pub(crate) fn never_happened(state: SqlState) -> bool {
    [
        SqlState::SERIALIZATION_FAILURE,
        SqlState::DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::DISK_FULL,
    ]
    .contains(&state)
}

/// Reads every register once more, at `on`, and lets the oracle judge; for the end of a run.
///
/// # Errors
/// A query fails.
pub async fn read_all(env: &dyn Env, address: &str, oracle: &Mutex<Oracle>) -> Result<(), Failure> {
    let mut client = Client::connect(env, address, LAST_READ_PATIENCE)
        .await
        .map_err(Failure::Broken)?;
    let reads = oracle.lock().begin_reads(0..u64::MAX);
    let sql = "select k, v from register";
    let answer = client.query(env, sql, LAST_READ_PATIENCE).await?;
    oracle.lock().end_reads(reads, &answer, "at the end");
    read_all_journals(env, &mut client, oracle).await?;
    let lists = lists::read_all(env, &mut client).await?;
    oracle.lock().judge_lists(&lists);
    Ok(())
}

async fn read_all_journals(
    env: &dyn Env,
    client: &mut Client,
    oracle: &Mutex<Oracle>,
) -> Result<(), Failure> {
    let reads: Vec<JournalRead> = {
        let oracle = oracle.lock();
        oracle.journals.iter().map(Journal::begin_read).collect()
    };
    let sql = "select j, count(*), max(n) from journal group by j";
    let answer = client.query(env, sql, LAST_READ_PATIENCE).await?;
    let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for index in 0..answer.rows().len() {
        let number = |column| answer.text(index, column)?.parse::<u64>().ok();
        if let (Some(journal), Some(count), Some(largest)) = (number(0), number(1), number(2)) {
            found.insert(journal, (count, largest));
        }
    }
    let mut oracle = oracle.lock();
    for (read, journal) in reads.into_iter().zip(1..) {
        let seen = found.remove(&journal).unwrap_or((0, 0));
        oracle.end_journal(journal as usize, read, seen, "at the end");
    }
    Ok(())
}
