//! Transactions over whole groups, in a small world where nodes crash.

mod across;
mod builds;
mod database;
mod notifications;
mod outcomes;
mod pipes;
mod prepared;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use base::coro;
use base::engine::{
    IndexColumn, IndexDescriptor, Inserted, Isolation, LockWait, LockedRow, RowLock,
    TreeDescriptor, TreeKind,
};
use base::env::{self, Reactor};
use base::ids::FIRST_GROUP;
use base::key::{ColumnOrder, KeyKind};
use base::row::{Row, RowBuilder};
use base::sync::Event;
use base::{NodeId, SqlState};

use super::*;
use crate::apply::for_each_row;
use crate::config::{GroupSettings, Member};
use crate::directory::Directory;
use crate::testing::{Host, World};

const ACCOUNTS: TreeId = TreeId(16_384);
const LEDGER: TreeId = TreeId(16_385);
const BY_MOVE: TreeId = TreeId(16_386);

#[derive(Clone)]
struct Node {
    host: Arc<Host>,
    engine: Arc<KvEngine>,
}

type Nodes = Arc<Mutex<BTreeMap<NodeId, Node>>>;

/// A world of a few voters, each with its engine.
struct Cluster {
    world: World,
    nodes: Nodes,
    voters: u64,
    settings: GroupSettings,
}

impl Cluster {
    fn new(seed: u64, voters: u64) -> Cluster {
        let settings = GroupSettings {
            segment_bytes: 64 << 10,
            ..GroupSettings::default()
        };
        Cluster::with(seed, voters, settings)
    }

    fn with(seed: u64, voters: u64, settings: GroupSettings) -> Cluster {
        let mut cluster = Cluster {
            world: World::new(seed),
            nodes: Nodes::default(),
            voters,
            settings,
        };
        (1..=voters).for_each(|id| cluster.start(NodeId(id)));
        cluster
    }

    fn start(&mut self, node: NodeId) {
        let host = self.world.start(node);
        let members = (1..=self.voters).map(|id| Member {
            node: NodeId(id),
            name: format!("n{id}").into(),
            peer_address: "".into(),
            sql_address: "".into(),
            voter: true,
            ..Member::default()
        });
        let members: Vec<_> = members.collect();
        let config = GroupConfig {
            cluster: 9,
            group: GroupId(1),
            node,
            directory: "g1".to_owned(),
            founded: Directory::founded(&members, 1),
            settings: self.settings.clone(),
            room: self.settings.room(),
        };
        let open = KvEngine::open(host.clone(), config, host.clone(), Arc::new(()));
        let engine = self.world.run(open).expect("the group opens");
        self.world.attach(node, engine.group().clone());
        self.nodes.lock().insert(node, Node { host, engine });
    }

    fn crash(&mut self, node: NodeId) {
        self.nodes.lock().remove(&node);
        self.world.crash(node);
    }

    /// Cuts a node off from the others, or lets it back.
    fn cut_off(&mut self, node: NodeId, is_cut: bool) {
        for other in (1..=self.voters).map(NodeId) {
            self.world.link(node, other, !is_cut);
        }
    }

    fn leader(&mut self) -> (NodeId, Node) {
        let nodes = self.nodes.clone();
        self.world.until("a leader", |_| leader(&nodes).is_some());
        leader(&self.nodes).expect("just found")
    }

    /// Runs a session to its end on the leader.
    fn session<T: 'static>(&mut self, body: impl FnOnce(&Node) -> Result<T> + 'static) -> T {
        let (_, node) = self.leader();
        let body = move || body(&node);
        self.world.session(body).expect("it succeeds")
    }
}

fn leader(nodes: &Nodes) -> Option<(NodeId, Node)> {
    let nodes = nodes.lock();
    let leads = |node: &Node| node.engine.group().leading().is_some();
    let found = nodes.iter().find(|(_, node)| leads(node));
    found.map(|(id, node)| (*id, node.clone()))
}

/// Starts a session on a node. It dies with the node, and then the reply never comes.
fn start<T: Send + 'static>(
    node: &Node,
    body: impl FnOnce(&Node) -> T + Send + 'static,
) -> impl Future<Output = T> {
    let reply = Arc::new((Mutex::new(None), Event::new()));
    let (slot, inner) = (reply.clone(), node.clone());
    let session = move || -> env::LocalBoxFuture<'static, ()> {
        Box::pin(coro::run(Arc::default(), move || {
            let result = body(&inner);
            *slot.0.lock() = Some(result);
            slot.1.notify_all();
        }))
    };
    node.host
        .spawn(Reactor::Session(0), "session", Box::new(session));
    async move { reply.1.until(|| reply.0.lock().take()).await }
}

fn begin(engine: &KvEngine) -> Result<Box<dyn Transaction>> {
    engine.begin(TxnOptions::default())
}

/// Commits, and waits until the reply may leave.
fn commit(engine: &KvEngine, txn: Box<dyn Transaction>) -> Result<()> {
    let debt = txn.commit(Durability::On)?;
    coro::wait(engine.settle(debt.clone(), Durability::On))??;
    assert!(engine.is_settled(&debt, Durability::On));
    Ok(())
}

fn number(value: i64) -> Vec<u8> {
    RowBuilder::new(1)
        .value(value.to_string().as_bytes())
        .finish()
}

fn value_of(row: &[u8]) -> i64 {
    let row = Row::parse(row).expect("a row");
    let text = std::str::from_utf8(row.column(0).expect("a value")).expect("digits");
    text.parse().expect("a number")
}

/// Makes the accounts, and a ledger with a unique index on its only column.
fn create(engine: &KvEngine, accounts: i64) -> Result<()> {
    let mut txn = begin(engine)?;
    txn.begin_statement()?;
    let column = IndexColumn {
        column: 0,
        kind: KeyKind::Bytes,
        order: ColumnOrder::ASCENDING,
    };
    let lies = |tree: TreeId| tree.in_group(engine.group().id());
    let by_move = IndexDescriptor {
        table: lies(LEDGER),
        columns: vec![column],
        unique: true,
        missing: Vec::new(),
    };
    let kinds = [
        (ACCOUNTS, TreeKind::Table),
        (LEDGER, TreeKind::Table),
        (BY_MOVE, TreeKind::Index(by_move)),
    ];
    for (id, kind) in kinds {
        let id = lies(id);
        let row = TreeDescriptor { id, kind }.to_row();
        txn.insert(TreeId::DESCRIPTORS, &id.descriptor_key(), &row)?;
    }
    for account in 0..accounts {
        txn.insert(lies(ACCOUNTS), account.to_string().as_bytes(), &number(100))?;
    }
    commit(engine, txn)
}

/// Changes a balance as `UPDATE` does at READ COMMITTED.
fn add(txn: &mut dyn Transaction, account: i64, amount: i64) -> Result<()> {
    add_in(FIRST_GROUP, txn, account, amount)
}

/// The same of an account in a group.
fn add_in(group: GroupId, txn: &mut dyn Transaction, account: i64, amount: i64) -> Result<()> {
    let accounts = ACCOUNTS.in_group(group);
    let key = account.to_string().into_bytes();
    let (mut row, mut newest) = (Vec::new(), Vec::new());
    txn.begin_statement()?;
    assert!(txn.get(accounts, &key, &mut row)?, "account {account}");
    let strength = RowLock::NoKeyUpdate;
    match txn.lock_row(accounts, &key, strength, LockWait::Block, &mut newest)? {
        LockedRow::Unchanged => {}
        LockedRow::Changed => row = newest,
        other => panic!("{other:?}"),
    }
    let new = number(value_of(&row) + amount);
    assert_eq!(txn.update(accounts, &key, &new)?, Inserted::Done);
    Ok(())
}

/// Moves an amount between accounts and notes it in the ledger: all of that or nothing.
fn transfer(node: &Node, id: &str, from: i64, to: i64, amount: i64) -> Result<()> {
    let engine = &*node.engine;
    // Half of the clients run at each isolation level.
    let isolation = match id.as_bytes()[0] % 2 {
        0 => Isolation::ReadCommitted,
        _ => Isolation::RepeatableRead,
    };
    let mut txn = engine.begin(TxnOptions {
        isolation,
        ..TxnOptions::default()
    })?;
    add(&mut *txn, from, -amount)?;
    coro::wait(env::sleep(&*node.host, Duration::from_millis(1)))?;
    add(&mut *txn, to, amount)?;
    txn.begin_statement()?;
    let row = RowBuilder::new(3)
        .value(id.as_bytes())
        .value(format!("{from} {to}").as_bytes())
        .value(amount.to_string().as_bytes());
    let inserted = txn.insert(LEDGER, id.as_bytes(), &row.finish())?;
    assert_eq!(inserted, Inserted::Done);
    commit(engine, txn)
}

fn read_all(engine: &KvEngine, tree: TreeId) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut txn = begin(engine)?;
    txn.begin_statement()?;
    let mut found = Vec::new();
    let mut batch = RowBatch::default();
    let mut rest = Some(KeyRange::all());
    while let Some(range) = rest {
        rest = txn.scan(tree, &range, Direction::Forward, 10, &mut batch)?;
        found.extend(batch.iter().map(|(key, row)| (key.to_vec(), row.to_vec())));
    }
    let debt = txn.commit(Durability::On)?;
    coro::wait(engine.settle(debt, Durability::On))??;
    Ok(found)
}

#[test]
fn a_transaction_is_there_after_a_crash() {
    for seed in 0..10 {
        let mut cluster = Cluster::new(seed, 1);
        cluster.session(|node| create(&node.engine, 3));
        cluster.session(|node| transfer(node, "one", 0, 1, 30));
        cluster.crash(NodeId(1));
        cluster.start(NodeId(1));
        let accounts = cluster.session(|node| read_all(&node.engine, ACCOUNTS));
        let balances: Vec<_> = accounts.iter().map(|(_, row)| value_of(row)).collect();
        assert_eq!(balances, [70, 130, 100]);
        let moves = cluster.session(|node| read_all(&node.engine, BY_MOVE));
        assert_eq!(moves.len(), 1);
        let again = cluster.session(|node| {
            let engine = &*node.engine;
            let mut txn = begin(engine)?;
            txn.begin_statement()?;
            let row = RowBuilder::new(1).value(b"one").finish();
            txn.insert(LEDGER, b"two", &row)
        });
        assert_eq!(again, Inserted::Duplicate(BY_MOVE));
    }
}

#[test]
fn who_waits_for_a_lock_goes_on_when_it_is_released() {
    let mut cluster = Cluster::new(5, 1);
    cluster.session(|node| create(&node.engine, 1));
    let (_, node) = cluster.leader();
    let transfers: Vec<_> = (0..20)
        .map(|id| {
            start(&node, move |node| {
                transfer(node, &format!("0-{id}"), 0, 0, 1)
            })
        })
        .collect();
    cluster.world.run(async move {
        for transfer in transfers {
            transfer.await.expect("all of them are served");
        }
    });
    assert!(node.engine.locks().is_empty());
    assert_eq!(
        cluster.session(|node| read_all(&node.engine, LEDGER)).len(),
        20
    );
}

#[test]
fn a_truncated_table_is_empty_and_writable_at_once() {
    let mut cluster = Cluster::new(6, 1);
    cluster.session(|node| create(&node.engine, 5));
    const NEW: TreeId = TreeId(20_000);
    cluster.session(|node| {
        let engine = &*node.engine;
        let mut txn = begin(engine)?;
        txn.begin_statement()?;
        let key = ACCOUNTS.descriptor_key();
        let strength = RowLock::Update;
        let (tree, wait) = (TreeId::DESCRIPTORS, LockWait::Block);
        let locked = txn.lock_row(tree, &key, strength, wait, &mut Vec::new())?;
        assert_eq!(locked, LockedRow::Unchanged);
        txn.delete(tree, &key)?;
        let (id, kind) = (NEW, TreeKind::Table);
        let row = TreeDescriptor { id, kind }.to_row();
        txn.insert(tree, &NEW.descriptor_key(), &row)?;
        txn.insert(NEW, b"k", &number(7))?;
        txn.begin_statement()?;
        assert!(txn.get(NEW, b"k", &mut Vec::new())?);
        commit(engine, txn)
    });
    assert_eq!(cluster.session(|node| read_all(&node.engine, NEW)).len(), 1);
    cluster.crash(NodeId(1));
    cluster.start(NodeId(1));
    assert_eq!(cluster.session(|node| read_all(&node.engine, NEW)).len(), 1);
}

#[test]
fn a_follower_begins_nothing() {
    let mut cluster = Cluster::new(7, 3);
    let (leader, _) = cluster.leader();
    let nodes = cluster.nodes.lock().clone();
    for (id, node) in nodes {
        let begun = begin(&node.engine);
        match id == leader {
            true => assert!(begun.is_ok()),
            false => assert_eq!(
                begun.err().unwrap().state(),
                SqlState::SERIALIZATION_FAILURE
            ),
        }
    }
}

/// What the clients of a bank were told.
#[derive(Default)]
struct Told {
    committed: BTreeSet<String>,
    refused: BTreeSet<String>,
    unknown: usize,
}

const BALANCES: i64 = 6;

/// One client: transfers, one after the other, until `until`.
async fn client(nodes: Nodes, told: Arc<Mutex<Told>>, name: usize, until: env::Instant) {
    let mut number = 0;
    loop {
        let Some((_, node)) = leader(&nodes) else {
            let Some(any) = nodes.lock().values().next().cloned() else {
                return;
            };
            env::sleep(&*any.host, Duration::from_millis(5)).await;
            continue;
        };
        if node.host.now() >= until {
            return;
        }
        let id = format!("{name}-{number}");
        number += 1;
        let random = node.host.random();
        env::sleep(&*node.host, Duration::from_micros(random % 20_000)).await;
        let below = |shift: u64| (random >> shift) as i64 & 0xff;
        let (from, to, amount) = (below(8) % BALANCES, below(16) % BALANCES, below(24) % 20);
        let noted = id.clone();
        let session = start(&node, move |node| transfer(node, &noted, from, to, amount));
        let mut session = std::pin::pin!(session);
        let mut patience = env::sleep(&*node.host, Duration::from_secs(3));
        let outcome = std::future::poll_fn(|cx| match session.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => patience.as_mut().poll(cx).map(|()| None),
        });
        match outcome.await {
            Some(Ok(())) => drop(told.lock().committed.insert(id)),
            Some(Err(error)) => {
                let expected = [SqlState::SERIALIZATION_FAILURE, SqlState::DEADLOCK_DETECTED];
                match expected.contains(&error.state()) {
                    true => drop(told.lock().refused.insert(id)),
                    false => {
                        assert_eq!(error.state(), SqlState::TRANSACTION_RESOLUTION_UNKNOWN);
                        told.lock().unknown += 1;
                    }
                }
            }
            None => told.lock().unknown += 1,
        }
    }
}

/// Checks a replica: balances follow from the ledger, and the index from both.
fn check_bank(engine: &KvEngine, told: &Told) {
    let store = engine.group().store();
    let mut balances = BTreeMap::new();
    for_each_row(&store, ACCOUNTS, |key, row| {
        let account: i64 = std::str::from_utf8(key).unwrap().parse().unwrap();
        balances.insert(account, value_of(row));
        Ok(())
    })
    .unwrap();
    let mut expected: BTreeMap<_, _> = (0..BALANCES).map(|account| (account, 100)).collect();
    let mut moves = BTreeSet::new();
    for_each_row(&store, LEDGER, |_, row| {
        let row = Row::parse(row)?;
        let text = |column| std::str::from_utf8(row.column(column).unwrap()).unwrap();
        let amount: i64 = text(2).parse().unwrap();
        let (from, to) = text(1).split_once(' ').unwrap();
        *expected.get_mut(&from.parse().unwrap()).unwrap() -= amount;
        *expected.get_mut(&to.parse().unwrap()).unwrap() += amount;
        moves.insert(text(0).to_owned());
        Ok(())
    })
    .unwrap();
    assert_eq!(balances, expected);
    let mut entries = 0;
    for_each_row(&store, BY_MOVE, |_, _| {
        entries += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(entries, moves.len());
    let missing: Vec<_> = told.committed.difference(&moves).collect();
    assert!(missing.is_empty(), "acknowledged and missing: {missing:?}");
    let there: Vec<_> = told.refused.intersection(&moves).collect();
    assert!(there.is_empty(), "refused and there: {there:?}");
}

fn bank(seed: u64, voters: u64, faults: usize) -> Told {
    let mut cluster = Cluster::new(seed, voters);
    cluster.session(|node| create(&node.engine, BALANCES));
    let told = Arc::new(Mutex::new(Told::default()));
    let end = cluster.world.now().after(Duration::from_millis(200));
    let end = end.after(Duration::from_secs(2) * faults as u32);
    let running = Arc::new(Mutex::new(8));
    for name in 0..8 {
        let (nodes, told, running) = (cluster.nodes.clone(), told.clone(), running.clone());
        cluster.world.spawn(async move {
            client(nodes, told, name, end).await;
            *running.lock() -= 1;
        });
    }
    for fault in 0..faults {
        cluster.world.pass(Duration::from_millis(700));
        let (leader, _) = cluster.leader();
        if fault % 2 == 0 {
            cluster.crash(leader);
            cluster.world.pass(Duration::from_millis(500));
            cluster.start(leader);
            continue;
        }
        cluster.cut_off(leader, true);
        cluster.world.pass(Duration::from_secs(1));
        cluster.cut_off(leader, false);
    }
    cluster.world.until("the clients", |_| *running.lock() == 0);
    let (_, node) = cluster.leader();
    let told = std::mem::take(&mut *told.lock());
    // A read that is settled shows what everyone will show.
    cluster.session(|node| read_all(&node.engine, ACCOUNTS));
    check_bank(&node.engine, &told);
    assert!(node.engine.locks().is_empty());
    told
}

#[test]
fn transfers_on_one_node_are_all_or_nothing() {
    let mut committed = 0;
    for seed in 0..5 {
        committed += bank(seed, 1, 2).committed.len();
    }
    assert!(committed > 500, "{committed}");
}

#[test]
fn transfers_survive_their_leader() {
    let (mut committed, mut refused) = (0, 0);
    for seed in 0..5 {
        let told = bank(seed, 3, 4);
        committed += told.committed.len();
        refused += told.refused.len();
    }
    assert!(committed > 500 && refused > 100, "{committed}, {refused}");
}

#[test]
fn the_same_seed_is_the_same_history() {
    let runs = [0, 1].map(|_| {
        let mut cluster = Cluster::new(11, 3);
        cluster.session(|node| create(&node.engine, BALANCES));
        cluster.session(|node| transfer(node, "one", 0, 1, 5));
        cluster.world.trace()
    });
    assert_eq!(runs[0], runs[1]);
}
