//! Correctness alone, of any server that speaks the protocol, under a fault that the user causes.
//!
//! Three workloads run at once, each over sessions of its own, which go to the next of the servers
//! named when theirs is gone or takes no writes:
//!
//! | workload | what must hold |
//! |---|---|
//! | acknowledged rows | every row whose insert was acknowledged is found at the end |
//! | bank | every sum of all accounts is the same, whatever transfers are under way |
//! | list-append | some order of the transactions explains all that they read ([`history`]) |
//!
//! After a third of the time the fault command runs, if there is one. At the end everything is read
//! once more; and where TPC-C's tables are loaded, their consistency conditions are checked.
//!
//! All sessions run at SERIALIZABLE and at the servers' own `synchronous_commit`. What a client was
//! not told counts neither way.

pub mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, Result};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env};
use base::SqlState;

use crate::client::{within, Failure};
use crate::driver::{explain, Driver};
use crate::host::{output, pause};
use crate::session::{Arg, Session, Statement, Target};
use crate::tpcc::consistency;
use crate::tpcc::random::Random;
use history::{End, Isolation, Step, Transaction, Wrong};

/// How long a session waits for an answer before it goes elsewhere.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// How long the last look may take.
const LAST_LOOK: Duration = Duration::from_secs(60);

/// Accounts, and what each holds at first.
const ACCOUNTS: i64 = 8;
const OPENING: i64 = 100;

/// Lists.
const LISTS: u64 = 12;

/// Numbers after which a list is left alone, and a new one taken in its place.
const LIST_LENGTH_MAX: u64 = 60;

/// Steps of a transaction at most.
const STEPS_MAX: u64 = 4;

const INSERT: Statement = Statement {
    number: 0,
    text: "insert into lab_acknowledged values ($1, $2)",
};
const TAKE: Statement = Statement {
    number: 1,
    text: "update lab_bank set balance = balance - $2 where id = $1",
};
const GIVE: Statement = Statement {
    number: 2,
    text: "update lab_bank set balance = balance + $2 where id = $1",
};
const SUM: Statement = Statement {
    number: 3,
    text: "select sum(balance), count(*) from lab_bank",
};
const APPEND: Statement = Statement {
    number: 4,
    text: "insert into lab_lists values ($1, $2) \
           on conflict (k) do update set v = lab_lists.v || ',' || excluded.v",
};
const READ: Statement = Statement {
    number: 5,
    text: "select v from lab_lists where k = $1",
};
const BEGIN: Statement = Statement {
    number: 6,
    text: "begin isolation level serializable",
};
const COMMIT: Statement = Statement {
    number: 7,
    text: "commit",
};
const ROLLBACK: Statement = Statement {
    number: 8,
    text: "rollback",
};

/// What to check.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The servers: the one that takes writes first, the others where it may go.
    pub targets: Vec<Target>,
    /// Sessions of each workload.
    pub sessions: usize,
    /// How long the workloads run.
    pub length: Duration,
    /// What is run by the shell after a third of that.
    pub fault: Option<String>,
    /// For everything that is drawn.
    pub seed: u64,
}

/// What one check found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was checked, with what was done to see it.
    pub what: String,
    /// What is wrong; empty where all held.
    pub wrong: Vec<String>,
    /// Whether it breaks only the order of time, which not every SERIALIZABLE promises.
    pub is_strict: bool,
}

/// A session that goes to the next server when its own is of no use.
struct Roamer<'a> {
    env: &'a dyn Env,
    targets: &'a [Target],
    node: usize,
    session: Option<Session>,
}

impl<'a> Roamer<'a> {
    fn new(env: &'a dyn Env, targets: &'a [Target]) -> Roamer<'a> {
        Roamer {
            env,
            targets,
            node: 0,
            session: None,
        }
    }

    /// A session, when one can be had now; else after a pause none.
    async fn session(&mut self) -> Option<&mut Session> {
        if self.session.is_none() {
            let target = &self.targets[self.node % self.targets.len()];
            match within(self.env, PATIENCE, Session::connect(self.env, target)).await {
                Some(Ok(session)) => self.session = Some(session),
                _ => {
                    self.node += 1;
                    sleep(self.env, RETRY_PAUSE).await;
                }
            }
        }
        self.session.as_mut()
    }

    /// Runs what was queued.
    async fn run(&mut self) -> End {
        let Some(session) = &mut self.session else {
            return End::Refused;
        };
        match within(self.env, PATIENCE, session.run()).await {
            Some(Ok(())) => End::Committed,
            Some(Err(Failure::Refused(error))) => {
                let is_standby = error.state() == SqlState::READ_ONLY_SQL_TRANSACTION;
                if session.in_block() {
                    session.queue(ROLLBACK, &[]);
                    if !matches!(
                        within(self.env, PATIENCE, session.run()).await,
                        Some(Ok(()))
                    ) {
                        self.leave();
                    }
                }
                if is_standby {
                    self.leave();
                }
                sleep(self.env, RETRY_PAUSE / 10).await;
                End::Refused
            }
            Some(Err(Failure::Broken(_))) | None => {
                self.leave();
                End::Unknown
            }
        }
    }

    fn leave(&mut self) {
        self.session = None;
        self.node += 1;
    }
}

/// Runs all checks.
///
/// # Errors
/// No server lets itself be prepared, or none answers at the end.
pub fn run(driver: &Driver, plan: &Plan) -> Result<Vec<Finding>> {
    let targets = plan.targets.clone();
    driver
        .block_on(move |env| async move { prepare(&*env, &targets).await })?
        .map_err(explain)?;
    let over = Arc::new(AtomicBool::new(false));
    let numbers = Arc::new(AtomicU64::new(1));
    let (mut writers, mut bankers, mut appenders) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..plan.sessions {
        let (targets, stop) = (plan.targets.clone(), over.clone());
        writers.push(driver.spawn(index, move |env| async move {
            write(&*env, &targets, index as i64, &stop).await
        }));
        let (targets, stop) = (plan.targets.clone(), over.clone());
        let random = Random::new(plan.seed ^ (index as u64) << 8);
        bankers.push(driver.spawn(index, move |env| async move {
            bank(&*env, &targets, random, index % 3 == 2, &stop).await
        }));
        let (targets, stop) = (plan.targets.clone(), over.clone());
        let random = Random::new(plan.seed ^ (index as u64) << 16);
        let numbers = numbers.clone();
        appenders.push(driver.spawn(index, move |env| async move {
            append(&*env, &targets, random, &numbers, &stop).await
        }));
    }
    pause(plan.length / 3);
    let mut faults = Vec::new();
    if let Some(fault) = &plan.fault {
        let done = output(Command::new("sh").args(["-c", fault]))?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            faults.push(format!("the fault command failed: {said}"));
        }
    }
    pause(plan.length * 2 / 3);
    over.store(true, Ordering::Relaxed);
    let panicked = |_| Error::other("a workload panicked");
    let mut acknowledged = BTreeSet::new();
    for writer in writers {
        acknowledged.extend(writer.recv().map_err(panicked)?);
    }
    let mut banks = Vec::new();
    for banker in bankers {
        banks.push(banker.recv().map_err(panicked)?);
    }
    let mut history = Vec::new();
    for appender in appenders {
        history.extend(appender.recv().map_err(panicked)?);
    }
    let targets = plan.targets.clone();
    let last = driver.block_on(move |env| async move { look(&*env, &targets).await })??;
    let mut findings = vec![judge_rows(&acknowledged, &last), judge_bank(&banks, &last)];
    findings.extend(judge_history(&history, &last));
    findings.extend(check_tpcc(driver, &plan.targets));
    if plan.fault.is_some() {
        findings.push(Finding {
            what: "the fault command ran".to_owned(),
            wrong: faults,
            is_strict: false,
        });
    }
    Ok(findings)
}

async fn prepare(env: &dyn Env, targets: &[Target]) -> std::result::Result<(), Failure> {
    let mut session = Session::connect(env, &targets[0]).await?;
    for sql in [
        "drop table if exists lab_acknowledged, lab_bank, lab_lists",
        "create table lab_acknowledged(s int, i int, primary key(s, i))",
        "create table lab_bank(id int primary key, balance int)",
        "create table lab_lists(k int primary key, v text)",
        &format!("insert into lab_bank select g, {OPENING} from generate_series(1, {ACCOUNTS}) g"),
    ] {
        session.query(sql).await?;
    }
    Ok(())
}

/// Inserts rows until it is over; returns those that were acknowledged.
async fn write(
    env: &dyn Env,
    targets: &[Target],
    number: i64,
    over: &AtomicBool,
) -> Vec<(i64, i64)> {
    let mut roamer = Roamer::new(env, targets);
    let mut acknowledged = Vec::new();
    let mut row = 0;
    while !over.load(Ordering::Relaxed) {
        let Some(session) = roamer.session().await else {
            continue;
        };
        session.queue(INSERT, &[Arg::Int(number), Arg::Int(row)]);
        match roamer.run().await {
            End::Committed => acknowledged.push((number, row)),
            // The same row again.
            End::Refused => continue,
            End::Unknown => {}
        }
        row += 1;
    }
    acknowledged
}

/// What a banker did and saw.
#[derive(Debug, Default)]
struct Banker {
    transfers: u64,
    sums: u64,
    wrong: Option<String>,
}

/// Transfers, or reads sums, until it is over.
async fn bank(
    env: &dyn Env,
    targets: &[Target],
    mut random: Random,
    reads: bool,
    over: &AtomicBool,
) -> Banker {
    let mut roamer = Roamer::new(env, targets);
    let mut done = Banker::default();
    while !over.load(Ordering::Relaxed) {
        let Some(session) = roamer.session().await else {
            continue;
        };
        if reads {
            session.queue(SUM, &[]);
            if roamer.run().await == End::Committed {
                done.sums += 1;
                let Some(session) = &roamer.session else {
                    continue;
                };
                let sum = (session.int(0, 0, 0), session.int(0, 0, 1));
                if sum != (Some(ACCOUNTS * OPENING), Some(ACCOUNTS)) && done.wrong.is_none() {
                    done.wrong = Some(format!("a sum was {sum:?} (sum and accounts)"));
                }
            }
            continue;
        }
        let from = random.between(1, ACCOUNTS as u64 - 1);
        let to = random.between(from + 1, ACCOUNTS as u64);
        let (from, to) = match random.percent(50) {
            true => (from, to),
            false => (to, from),
        };
        let amount = Arg::Int(random.between(1, 10) as i64);
        session.queue(BEGIN, &[]);
        session.queue(TAKE, &[Arg::Int(from as i64), amount]);
        session.queue(GIVE, &[Arg::Int(to as i64), amount]);
        session.queue(COMMIT, &[]);
        done.transfers += u64::from(roamer.run().await == End::Committed);
    }
    done
}

/// Appends to lists and reads them until it is over.
async fn append(
    env: &dyn Env,
    targets: &[Target],
    mut random: Random,
    numbers: &AtomicU64,
    over: &AtomicBool,
) -> Vec<Transaction> {
    let mut roamer = Roamer::new(env, targets);
    let mut history = Vec::new();
    while !over.load(Ordering::Relaxed) {
        if roamer.session().await.is_none() {
            continue;
        }
        let mut steps = Vec::new();
        let (mut texts, first) = (Vec::new(), numbers.load(Ordering::Relaxed));
        for _ in 0..random.between(1, STEPS_MAX) {
            // Lists give way to new ones, so that none grows for ever.
            let generation = first / (LISTS * LIST_LENGTH_MAX);
            let key = generation * LISTS + random.between(1, LISTS);
            steps.push(match random.percent(50) {
                true => Step::Append(key, numbers.fetch_add(1, Ordering::Relaxed)),
                false => Step::Read(key, None),
            });
        }
        for step in &steps {
            texts.push(match step {
                Step::Append(_, number) => number.to_string(),
                Step::Read(..) => String::new(),
            });
        }
        let began = env.now();
        if let Some(session) = &mut roamer.session {
            session.queue(BEGIN, &[]);
            for (step, text) in steps.iter().zip(&texts) {
                match step {
                    Step::Append(key, _) => {
                        session.queue(APPEND, &[Arg::Int(*key as i64), Arg::Text(text)]);
                    }
                    Step::Read(key, _) => session.queue(READ, &[Arg::Int(*key as i64)]),
                }
            }
            session.queue(COMMIT, &[]);
        }
        let end = roamer.run().await;
        if let (End::Committed, Some(session)) = (end, &roamer.session) {
            for (index, step) in steps.iter_mut().enumerate() {
                if let Step::Read(_, list) = step {
                    *list = Some(parse_list(
                        session.text(index + 1, 0, 0).unwrap_or_default(),
                    ));
                }
            }
        }
        history.push(Transaction {
            level: Isolation::Serializable,
            steps,
            began,
            ended: env.now(),
            end,
        });
    }
    history
}

fn parse_list(text: &str) -> Vec<u64> {
    let numbers = text.split(',').filter(|number| !number.is_empty());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Everything as it stands at the end.
#[derive(Debug, Default)]
struct Last {
    rows: BTreeSet<(i64, i64)>,
    sum: Option<i64>,
    lists: BTreeMap<u64, Vec<u64>>,
}

/// Looks, at whichever server takes writes.
async fn look(env: &dyn Env, targets: &[Target]) -> Result<Last> {
    let begin = env.now();
    let mut node = 0;
    loop {
        let read = look_at(env, &targets[node % targets.len()]);
        let failure = match within(env, LAST_LOOK, read).await {
            Some(Ok(last)) => return Ok(last),
            Some(Err(failure)) => explain(failure),
            None => Error::other("no answer in time"),
        };
        if env.now().since(begin) > LAST_LOOK {
            return Err(failure);
        }
        node += 1;
        sleep(env, RETRY_PAUSE).await;
    }
}

async fn look_at(env: &dyn Env, target: &Target) -> std::result::Result<Last, Failure> {
    let mut session = Session::connect(env, target).await?;
    let mut last = Last::default();
    // Whoever takes no writes is not the one that clients are left with.
    session
        .query("begin; create table lab_writable(i int); rollback")
        .await?;
    session.query("select s, i from lab_acknowledged").await?;
    for row in 0..session.rows(0) {
        if let (Some(s), Some(i)) = (session.int(0, row, 0), session.int(0, row, 1)) {
            last.rows.insert((s, i));
        }
    }
    session.query("select sum(balance) from lab_bank").await?;
    last.sum = session.int(0, 0, 0);
    session.query("select k, v from lab_lists").await?;
    for row in 0..session.rows(0) {
        if let (Some(key), Some(list)) = (session.int(0, row, 0), session.text(0, row, 1)) {
            last.lists.insert(key as u64, parse_list(list));
        }
    }
    Ok(last)
}

fn judge_rows(acknowledged: &BTreeSet<(i64, i64)>, last: &Last) -> Finding {
    let lost: Vec<_> = acknowledged.difference(&last.rows).collect();
    let mut wrong = Vec::new();
    if let Some((session, row)) = lost.first() {
        wrong.push(format!(
            "{} acknowledged rows are lost, the first of them row {row} of session {session}",
            lost.len()
        ));
    }
    Finding {
        what: format!("acknowledged rows: all {} are found", acknowledged.len()),
        wrong,
        is_strict: false,
    }
}

fn judge_bank(bankers: &[Banker], last: &Last) -> Finding {
    let mut wrong: Vec<String> = bankers.iter().filter_map(|one| one.wrong.clone()).collect();
    if last.sum != Some(ACCOUNTS * OPENING) {
        wrong.push(format!("the last sum is {:?}", last.sum));
    }
    let transfers: u64 = bankers.iter().map(|one| one.transfers).sum();
    let sums: u64 = bankers.iter().map(|one| one.sums).sum();
    Finding {
        what: format!("bank: {sums} sums during {transfers} transfers are the same"),
        wrong,
        is_strict: false,
    }
}

fn judge_history(history: &[Transaction], last: &Last) -> Vec<Finding> {
    let committed = history
        .iter()
        .filter(|one| one.end == End::Committed)
        .count();
    let finding = |what: &str, is_strict| Finding {
        what: format!("list-append: {committed} transactions {what}"),
        wrong: Vec::new(),
        is_strict,
    };
    let mut findings = vec![
        finding("are all there at the end", false),
        finding("have some order that explains them", false),
        finding("have one that follows time", true),
    ];
    for wrong in history::judge(history, &last.lists) {
        match wrong {
            Wrong::Lost(said) => findings[0].wrong.push(said),
            Wrong::Serializable(said) => findings[1].wrong.push(said),
            Wrong::Strict(said) => findings[2].wrong.push(said),
        }
    }
    findings
}

/// TPC-C's conditions, where its tables are.
fn check_tpcc(driver: &Driver, targets: &[Target]) -> Option<Finding> {
    let checked = targets
        .iter()
        .find_map(|target| driver.check_tpcc(target).ok())?;
    let holds = checked.iter().all(|one| one.broken == 0);
    let said = consistency::verdict(&checked);
    Some(Finding {
        what: "TPC-C: all consistency conditions hold".to_owned(),
        wrong: if holds { Vec::new() } else { vec![said] },
        is_strict: false,
    })
}
