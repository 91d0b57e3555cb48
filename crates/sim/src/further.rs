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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::coro;
use base::engine::{Direction, Gate, Inserted, RowBatch, Transactions, TxnOptions};
use base::env::{sleep, Env, Reactor};
use base::limits::SCAN_BATCH_ROWS;
use base::row::RowBuilder;
use base::sync::Mutex;
use base::{Debt, Durability, GroupId, KeyRange, Result, TreeId};
use kv::apply::for_each_row;
use kv::{Group, KvEngine};

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
    }

    /// What a client has found to be wrong.
    pub fn violation(&self) -> Option<String> {
        self.known.lock().violation.clone()
    }

    /// Commits that were acknowledged.
    pub fn commits(&self) -> u64 {
        self.known.lock().commits
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
        let mut rows = BTreeSet::new();
        let read = for_each_row(&group.store(), ROWS, |key, _| {
            rows.insert(number(key));
            Ok(())
        });
        read.map_err(|error| error.to_string())?;
        match acknowledged.difference(&rows).next() {
            Some(lost) => Err(format!("{name} lacks row {lost} of group {}", group.id())),
            None => Ok(()),
        }
    }
}

fn number(key: &[u8]) -> u64 {
    key.iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

struct Client {
    env: Arc<dyn Env>,
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
            let _ = match draw % 3 {
                0 => self.read().await,
                _ => self.write().await,
            };
            let pause = draw / 3 % (2 * PACE_MS);
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
            let (mut rows, mut batch) = (BTreeSet::new(), RowBatch::default());
            let mut rest = Some(KeyRange::all());
            while let Some(range) = rest {
                let forward = Direction::Forward;
                rest = txn.scan(ROWS, &range, forward, SCAN_BATCH_ROWS, &mut batch)?;
                rows.extend(batch.iter().map(|(key, _)| number(key)));
            }
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
