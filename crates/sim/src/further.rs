//! Clients of the further groups, which no SQL reaches: they live on the nodes and talk to the engine
//! of whichever leads.
//!
//! ```text
//! n2 leads group 3:  insert row 41, commit, wait until it is settled ──► 41 is acknowledged
//!                    read all rows, wait until that is settled       ──► 41 is among them
//! n2 dies, n1 leads: insert row 42 …                                 ──► 41 is among them still
//! ```
//! At the end every replica must have every row that was acknowledged. A row whose commit was not
//! answered may be there or not.
//!
//! Where a node leads two of the groups, its clients write rows in both at once, and read both in one
//! statement: whatever is seen of such a row is seen in both, and so it is on the replicas at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::coro;
use base::engine::{
    Direction, Gate, Inserted, RowBatch, Transaction, Transactions, TxnOptions, Writing,
};
use base::env::{sleep, Env, Reactor};
use base::limits::SCAN_BATCH_ROWS;
use base::row::RowBuilder;
use base::sync::Mutex;
use base::{Debt, Durability, GroupId, KeyRange, Result, Timestamp, TreeId};
use kv::apply::for_each_row;
use kv::engine::{begin_statement_across, commit_across, Branch};
use kv::{Group, KvEngine};
use node::hosting::Hosting;

use crate::cluster::Cluster;

/// Where the rows are: a tree that needs no descriptor and that nobody else uses.
const ROWS: TreeId = TreeId(15);

/// How long a client rests between operations, on average.
const PACE_MS: u64 = 30;

/// One client: the node, its start, the group.
type Name = (usize, u64, GroupId);

/// The clients of all further groups.
#[derive(Default)]
pub(crate) struct Further {
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    next: u64,
    acknowledged: BTreeMap<GroupId, BTreeSet<u64>>,
    /// What was acknowledged before a majority was lost may be gone, and whoever was at it then has
    /// nothing to say.
    losses: u64,
    /// Rows that were written in several groups at once, which must all have them, or none.
    together: Vec<(u64, Vec<GroupId>)>,
    at_work: BTreeSet<Name>,
    violation: Option<String>,
    commits: u64,
}

impl Further {
    /// Sees to it that each leader of a further group has a client, until `stop`.
    pub fn tend(&self, cluster: &Cluster, stop: &Arc<AtomicBool>) {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        for node in cluster.present() {
            let Some(running) = cluster.node(node).filter(|_| cluster.is_alive(node)) else {
                continue;
            };
            for group in running.hosting().groups() {
                let name = (node, cluster.starts(node), group.id());
                let leads = group.leading().is_some() && group.id() > GroupId(1);
                let Some(engine) = running.hosting().engine(group.id()).filter(|_| leads) else {
                    continue;
                };
                if self.known.lock().at_work.insert(name) {
                    let env = cluster.world.env(cluster.host(node));
                    let client = Client {
                        env: env.clone(),
                        hosting: running.hosting().clone(),
                        engine,
                        known: self.known.clone(),
                        stop: stop.clone(),
                        name,
                    };
                    let task = move || -> base::env::LocalBoxFuture<'static, ()> {
                        Box::pin(client.run())
                    };
                    env.spawn(Reactor::Session(0), "client of a group", Box::new(task));
                }
            }
        }
    }

    /// What was acknowledged so far may be lost.
    pub fn forget(&self) {
        let mut known = self.known.lock();
        known.losses += 1;
        known.acknowledged.clear();
        // Each group goes on from what it has.
        known.together.clear();
    }

    /// What a client has found to be wrong.
    pub fn violation(&self) -> Option<String> {
        self.known.lock().violation.clone()
    }

    /// Commits that were acknowledged.
    pub fn commits(&self) -> u64 {
        self.known.lock().commits
    }

    /// Whether every transaction across groups is resolved in all replicas of members: whoever a group
    /// has let go hears no more of what becomes of them.
    pub fn is_settled(cluster: &Cluster) -> bool {
        let nodes = cluster.present().into_iter();
        let running = nodes.filter_map(|node| cluster.node(node));
        let groups: Vec<_> = running.flat_map(|node| node.hosting().groups()).collect();
        groups.iter().all(|group| {
            let mut same = groups.iter().filter(|other| other.id() == group.id());
            let leader = same.find(|other| other.leading().is_some());
            let is_gone = |leader: &Arc<Group>| leader.directory().member(group.node()).is_none();
            let stands = group.prepared().newest().parts().next().is_some();
            leader.is_some_and(is_gone) || !stands && group.decisions().newest().is_empty()
        })
    }

    /// Whether the replicas of a node have each row that was written in several groups in all of
    /// them, or in none.
    ///
    /// # Errors
    /// Which one is not so.
    pub fn judge_together(
        &self,
        groups: &[Arc<Group>],
        name: &str,
    ) -> std::result::Result<(), String> {
        let known = self.known.lock();
        let mut rows = BTreeMap::new();
        for group in groups {
            let of_group = rows_of(group).map_err(|error| error.to_string())?;
            rows.insert(group.id(), of_group);
        }
        for (row, groups) in &known.together {
            let of = groups.iter().filter_map(|group| rows.get(group));
            let there: BTreeSet<bool> = of.map(|rows| rows.contains(row)).collect();
            if there.len() > 1 {
                return Err(format!("{name} has row {row} in some of {groups:?} alone"));
            }
        }
        Ok(())
    }

    /// Whether a replica has every row that was acknowledged.
    ///
    /// # Errors
    /// What it lacks.
    pub fn judge(&self, group: &Group, name: &str) -> std::result::Result<(), String> {
        let known = self.known.lock();
        let Some(acknowledged) = known.acknowledged.get(&group.id()) else {
            return Ok(());
        };
        let rows = rows_of(group).map_err(|error| error.to_string())?;
        match acknowledged.difference(&rows).next() {
            Some(lost) => Err(format!("{name} lacks row {lost} of group {}", group.id())),
            None => Ok(()),
        }
    }
}

/// The rows that a replica has.
fn rows_of(group: &Group) -> Result<BTreeSet<u64>> {
    let mut rows = BTreeSet::new();
    for_each_row(&group.store(), ROWS, |key, _| {
        rows.insert(number(key));
        Ok(())
    })?;
    Ok(rows)
}

fn number(key: &[u8]) -> u64 {
    key.iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// All rows that a statement sees.
fn read_all(txn: &mut dyn Transaction) -> Result<BTreeSet<u64>> {
    let (mut rows, mut batch) = (BTreeSet::new(), RowBatch::default());
    let mut rest = Some(KeyRange::all());
    while let Some(range) = rest {
        let forward = Direction::Forward;
        rest = txn.scan(ROWS, &range, forward, SCAN_BATCH_ROWS, &mut batch)?;
        rows.extend(batch.iter().map(|(key, _)| number(key)));
    }
    Ok(rows)
}

/// A transaction's branches in these groups.
fn branches_of(engines: &[Arc<KvEngine>]) -> Result<Vec<Branch>> {
    let branch = |engine: &Arc<KvEngine>| -> Result<Branch> {
        let txn = engine.begin_branch(TxnOptions::default())?;
        Ok(Branch::new(engine.clone(), txn))
    };
    engines.iter().map(branch).collect()
}

/// Ready when what rests on this debt may be told.
async fn settle(engines: &[Arc<KvEngine>], debt: Debt) -> Result<()> {
    for part in debt.groups() {
        let engine = engines.iter().find(|one| one.group().id() == part.group);
        let debt = Debt::of(part.group, part.position);
        if let Some(engine) = engine {
            engine.settle(debt, Durability::On).await?;
        }
    }
    Ok(())
}

struct Client {
    env: Arc<dyn Env>,
    hosting: Arc<Hosting>,
    engine: Arc<KvEngine>,
    known: Arc<Mutex<Known>>,
    stop: Arc<AtomicBool>,
    name: Name,
}

impl Client {
    async fn run(self) {
        let group = self.engine.group().clone();
        while group.leading().is_some() && !self.stop.load(Ordering::SeqCst) {
            let draw = self.env.random();
            // Whoever is refused goes on as long as this node leads.
            let _ = match (draw % 6, self.neighbour()) {
                (0, Some(other)) => self.read_both(other).await,
                (1 | 2, Some(other)) => self.write_both(other).await,
                (0 | 1, _) => self.read().await,
                _ => self.write().await,
            };
            let pause = draw / 6 % (2 * PACE_MS);
            sleep(&*self.env, Duration::from_millis(pause)).await;
        }
        self.known.lock().at_work.remove(&self.name);
    }

    async fn write(&self) -> Result<()> {
        let (row, losses) = {
            let mut known = self.known.lock();
            known.next += 1;
            (known.next, known.losses)
        };
        let engine = self.engine.clone();
        let written = coro::run(Arc::default(), move || -> Result<(Inserted, Debt)> {
            let mut txn = engine.begin(TxnOptions::default())?;
            txn.begin_statement()?;
            let value = RowBuilder::new(1).value(&row.to_be_bytes()).finish();
            let inserted = txn.insert(ROWS, &row.to_be_bytes(), &value)?;
            Ok((inserted, txn.commit(Durability::On)?))
        });
        let (inserted, debt) = written.await?;
        self.engine.settle(debt, Durability::On).await?;
        let group = self.name.2;
        let mut known = self.known.lock();
        if inserted != Inserted::Done {
            known.violation = Some(format!("a new row {row} was in group {group} already"));
        }
        if known.losses == losses {
            known.acknowledged.entry(group).or_default().insert(row);
            known.commits += 1;
        }
        Ok(())
    }

    /// The next further group that this node leads too.
    fn neighbour(&self) -> Option<Arc<KvEngine>> {
        let groups = self.hosting.groups().into_iter();
        let mut others = groups.filter(|group| group.id() > self.name.2);
        let led = others.find(|group| group.leading().is_some())?;
        self.hosting.engine(led.id())
    }

    /// Inserts a row into both groups.
    async fn write_both(&self, other: Arc<KvEngine>) -> Result<()> {
        let groups = vec![self.name.2, other.group().id()];
        let (row, losses) = {
            let mut known = self.known.lock();
            known.next += 1;
            let row = known.next;
            known.together.push((row, groups.clone()));
            (row, known.losses)
        };
        let engines = [self.engine.clone(), other];
        let written = {
            let engines = engines.clone();
            coro::run(Arc::default(), move || -> Result<Debt> {
                let mut branches = branches_of(&engines)?;
                for branch in &mut branches {
                    branch.txn.begin_statement()?;
                    let value = RowBuilder::new(1).value(&row.to_be_bytes()).finish();
                    branch.txn.insert(ROWS, &row.to_be_bytes(), &value)?;
                }
                commit_across(branches, Timestamp(i64::MIN), Durability::On)
            })
        };
        settle(&engines, written.await?).await?;
        let mut known = self.known.lock();
        if known.losses == losses {
            for group in groups {
                known.acknowledged.entry(group).or_default().insert(row);
            }
            known.commits += 1;
        }
        Ok(())
    }

    /// Reads both groups in one statement.
    async fn read_both(&self, other: Arc<KvEngine>) -> Result<()> {
        let groups = [self.name.2, other.group().id()];
        let (expected, losses) = {
            let known = self.known.lock();
            let of = |group| known.acknowledged.get(group).cloned().unwrap_or_default();
            (groups.iter().map(of).collect::<Vec<_>>(), known.losses)
        };
        let engines = [self.engine.clone(), other];
        let read = {
            let engines = engines.clone();
            coro::run(
                Arc::default(),
                move || -> Result<(Vec<BTreeSet<u64>>, Debt)> {
                    let mut branches = branches_of(&engines)?;
                    begin_statement_across(&mut branches, Timestamp(i64::MIN))?;
                    let (mut rows, mut debt) = (Vec::new(), Debt::NONE);
                    for branch in &mut branches {
                        rows.push(read_all(&mut *branch.txn)?);
                        debt.merge(branch.txn.debt());
                    }
                    Ok((rows, debt))
                },
            )
        };
        let (rows, debt) = read.await?;
        settle(&engines, debt).await?;
        let mut known = self.known.lock();
        if known.losses != losses {
            return Ok(());
        }
        let mut wrong = None;
        for ((group, expected), rows) in groups.iter().zip(&expected).zip(&rows) {
            if let Some(lost) = expected.difference(rows).next() {
                wrong = Some(format!(
                    "row {lost} of group {group} is not seen beside another"
                ));
            }
        }
        let both = known.together.iter().filter(|(_, of)| *of == groups);
        for (row, _) in both {
            if rows[0].contains(row) != rows[1].contains(row) {
                wrong = Some(format!("row {row} is seen in one of {groups:?} alone"));
            }
        }
        known.violation = wrong.or(known.violation.take());
        Ok(())
    }

    async fn read(&self) -> Result<()> {
        let group = self.name.2;
        let (expected, losses) = {
            let known = self.known.lock();
            let acknowledged = known.acknowledged.get(&group).cloned();
            (acknowledged.unwrap_or_default(), known.losses)
        };
        let engine = self.engine.clone();
        let read = coro::run(Arc::default(), move || -> Result<(BTreeSet<u64>, Debt)> {
            let mut txn = engine.begin(TxnOptions::default())?;
            txn.begin_statement()?;
            let rows = read_all(&mut *txn)?;
            Ok((rows, txn.debt().clone()))
        });
        let (rows, debt) = read.await?;
        self.engine.settle(debt, Durability::On).await?;
        let mut known = self.known.lock();
        if let Some(lost) = expected
            .difference(&rows)
            .next()
            .filter(|_| known.losses == losses)
        {
            known.violation = Some(format!("row {lost} of group {group} is not there any more"));
        }
        Ok(())
    }
}
