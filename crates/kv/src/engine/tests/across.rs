//! Transactions across two groups, over lost leaders: made of branches by hand here, and by
//! [`super::database`] as sessions make them.

use std::sync::atomic::AtomicBool;

use base::cluster::Administration;
use base::engine::{Administrator, Reading, Writing};
use spanning::{Message, Participant, SpanningId};

use super::pipes::Pipes;
use super::*;

pub(super) const FIRST: GroupId = GroupId(1);
pub(super) const SECOND: GroupId = GroupId(2);
const VOTERS: u64 = 3;

/// A node with its engines of both groups.
pub(super) struct Both {
    pub host: Arc<Host>,
    pub engines: [Arc<KvEngine>; 2],
    pub database: Arc<Database>,
}

impl Neighbours for Both {
    fn engine(&self, group: GroupId) -> Option<Arc<KvEngine>> {
        let found = self.engines.iter().find(|one| one.group().id() == group);
        found.cloned()
    }

    fn engines(&self) -> Vec<Arc<KvEngine>> {
        self.engines.to_vec()
    }
}

impl Both {
    fn leads(&self, group: usize) -> bool {
        self.engines[group].group().leading().is_some()
    }

    /// Waits until what rests on this debt may be told.
    pub fn settle(&self, debt: &Debt) -> Result<()> {
        for part in debt.groups() {
            let engine = self.engine(part.group).expect("one of two");
            let debt = Debt::of(part.group, part.position);
            coro::wait(engine.settle(debt, Durability::On))??;
        }
        Ok(())
    }
}

pub(super) type All = Arc<Mutex<BTreeMap<NodeId, Arc<Both>>>>;

/// Where the two groups are led.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Leaders {
    Together,
    Apart,
}

pub(super) struct Groups {
    pub world: World,
    pub nodes: All,
    leaders: Leaders,
}

impl Groups {
    pub fn new(seed: u64) -> Groups {
        let mut groups = Groups {
            world: World::new(seed),
            nodes: All::default(),
            leaders: Leaders::Together,
        };
        (1..=VOTERS).for_each(|id| groups.start(NodeId(id)));
        groups
    }

    fn start(&mut self, node: NodeId) {
        let host = self.world.start(node);
        let members: Vec<_> = (1..=VOTERS)
            .map(|id| Member {
                node: NodeId(id),
                name: format!("n{id}").into(),
                voter: true,
                ..Member::default()
            })
            .collect();
        let engines = [FIRST, SECOND].map(|group| {
            let config = GroupConfig {
                cluster: 9,
                group,
                node,
                directory: format!("g{group}"),
                founded: Directory::founded(&members, 1),
                settings: GroupSettings::default(),
                room: GroupSettings::default().room(),
            };
            let open = KvEngine::open(host.clone(), config, host.clone(), Arc::new(()));
            let engine = self.world.run(open).expect("the group opens");
            self.world.attach(node, engine.group().clone());
            engine
        });
        let both = Arc::new_cyclic(|me: &Weak<Both>| Both {
            host,
            database: Database::new(
                engines[0].clone(),
                me.clone(),
                Arc::new(AtomicBool::new(true)),
                Some(Box::new(Pipes {
                    nodes: self.nodes.clone(),
                    from: node,
                })),
            ),
            engines,
        });
        let known: Arc<dyn Neighbours> = both.clone();
        for engine in &both.engines {
            let database = Arc::downgrade(&both.database);
            engine.set_beside(&both.engines, database);
            engine.set_neighbours(Arc::downgrade(&known));
        }
        self.nodes.lock().insert(node, both);
    }

    fn crash(&mut self, node: NodeId) {
        self.nodes.lock().remove(&node);
        self.world.crash(node);
    }

    fn cut_off(&mut self, node: NodeId, is_cut: bool) {
        for other in (1..=VOTERS).map(NodeId) {
            self.world.link(node, other, !is_cut);
        }
    }

    /// The node that leads the first group, once the second is led as it should be.
    pub fn leader(&mut self) -> (NodeId, Arc<Both>) {
        let (nodes, leaders) = (self.nodes.clone(), self.leaders);
        self.world
            .until("leaders", |_| home_of(&nodes, leaders).is_some());
        home_of(&self.nodes, leaders).expect("just found")
    }

    /// The node that leads the second group, once both are led as they should be.
    pub fn leader_of_second(&mut self) -> Arc<Both> {
        self.leader();
        let nodes = self.nodes.lock();
        let second = nodes.values().find(|node| node.leads(1));
        second.expect("just found").clone()
    }

    pub fn session<T: 'static>(&mut self, body: impl FnOnce(&Both) -> Result<T> + 'static) -> T {
        let (_, node) = self.leader();
        let body = move || body(&node);
        self.world.session(body).expect("it succeeds")
    }

    /// Makes the accounts of both groups, where each is led.
    pub fn create_accounts(&mut self) {
        self.leader();
        for group in 0..2 {
            let nodes = self.nodes.clone();
            let made = move || {
                let nodes = nodes.lock().clone();
                let led = |node: &&Arc<Both>| node.leads(group);
                let node = nodes.values().find(led).expect("a leader");
                create(&node.engines[group], BALANCES)
            };
            self.world.session(made).expect("it succeeds");
        }
    }

    /// Has the second group led as it is said, as long as the world runs.
    pub fn keep(&mut self, leaders: Leaders) {
        self.leaders = leaders;
        let nodes = self.nodes.clone();
        self.world.spawn(async move {
            loop {
                let known: Vec<_> = nodes.lock().values().cloned().collect();
                let first = known.iter().find(|node| node.leads(0));
                let second = known.iter().find(|node| node.leads(1));
                if let (Some(first), Some(second)) = (first, second) {
                    let are_together = Arc::ptr_eq(first, second);
                    let to = match leaders {
                        Leaders::Together => Some(first),
                        Leaders::Apart => known.iter().find(|node| !Arc::ptr_eq(node, first)),
                    };
                    if let Some(to) = to.filter(|_| are_together != (leaders == Leaders::Together))
                    {
                        let name = format!("n{}", to.engines[0].group().node());
                        let wish = Administration::Switchover(Some(name.into()));
                        let _ = second.engines[1].administer(wish).await;
                    }
                }
                let Some(any) = known.first() else { return };
                env::sleep(&*any.host, Duration::from_millis(50)).await;
            }
        });
    }
}

/// The node that leads the first group, if the second is led as it should be.
fn home_of(nodes: &All, leaders: Leaders) -> Option<(NodeId, Arc<Both>)> {
    let nodes = nodes.lock();
    let second_is_led = nodes.values().any(|node| node.leads(1));
    let is_home = |node: &Both| {
        let are_together = node.leads(1);
        node.leads(0) && second_is_led && are_together == (leaders == Leaders::Together)
    };
    let found = nodes.iter().find(|(_, node)| is_home(node));
    found.map(|(id, node)| (*id, node.clone()))
}

/// Moves an amount from an account of the first group to one of the second, and notes it in both.
fn transfer_across(node: &Both, id: &str, (from, to): (i64, i64), amount: i64) -> Result<Debt> {
    let [first, second] = &node.engines;
    let mut branches = Vec::new();
    for (engine, account, amount) in [(first, from, -amount), (second, to, amount)] {
        let mut txn = engine.begin_branch(TxnOptions::default())?;
        let group = engine.group().id();
        add_in(group, &mut txn, account, amount)?;
        coro::wait(env::sleep(&*node.host, Duration::from_millis(1)))?;
        txn.begin_statement()?;
        let row = RowBuilder::new(3)
            .value(id.as_bytes())
            .value(account.to_string().as_bytes())
            .value(amount.to_string().as_bytes());
        let inserted = txn.insert(LEDGER.in_group(group), id.as_bytes(), &row.finish())?;
        assert_eq!(inserted, Inserted::Done);
        branches.push(Branch::new(engine.clone(), txn));
    }
    commit_across(branches, Timestamp(0), Durability::On)
}

/// The balances of a group and what its ledger says of them, by transfer.
fn contents(engine: &KvEngine) -> (Vec<i64>, BTreeMap<String, i64>) {
    let store = engine.group().store();
    let lies = |tree: TreeId| tree.in_group(engine.group().id());
    let mut balances = Vec::new();
    for_each_row(&store, lies(ACCOUNTS), |_, row| {
        balances.push(value_of(row));
        Ok(())
    })
    .unwrap();
    let mut moves = BTreeMap::new();
    for_each_row(&store, lies(LEDGER), |_, row| {
        let row = Row::parse(row)?;
        let text = |column| std::str::from_utf8(row.column(column).unwrap()).unwrap();
        moves.insert(text(0).to_owned(), text(2).parse().unwrap());
        Ok(())
    })
    .unwrap();
    (balances, moves)
}

/// One statement that reads both groups: the sum of all balances, and the transfers that each ledger
/// has.
fn read_both(node: &Both) -> Result<(i64, [BTreeSet<String>; 2])> {
    let branch = |engine: &Arc<KvEngine>| -> Result<Branch> {
        let txn = engine.begin_branch(TxnOptions::default())?;
        Ok(Branch::new(engine.clone(), txn))
    };
    let mut branches: Vec<_> = node.engines.iter().map(branch).collect::<Result<_>>()?;
    begin_statement_across(&mut branches, Timestamp(i64::MIN))?;
    let (mut sum, mut ledgers) = (0, [BTreeSet::new(), BTreeSet::new()]);
    let mut debt = Debt::NONE;
    for (branch, ledger) in branches.iter_mut().zip(&mut ledgers) {
        // Whatever happens in between, it is of one state.
        coro::wait(env::sleep(&*node.host, Duration::from_millis(2)))?;
        for tree in [ACCOUNTS, LEDGER] {
            let (mut rest, mut batch) = (Some(KeyRange::all()), RowBatch::default());
            while let Some(range) = rest {
                let forward = Direction::Forward;
                let there = tree.in_group(branch.engine.group().id());
                rest = branch.txn.scan(there, &range, forward, 10, &mut batch)?;
                for (key, row) in batch.iter() {
                    match tree == ACCOUNTS {
                        true => sum += value_of(row),
                        false => drop(ledger.insert(String::from_utf8_lossy(key).into())),
                    }
                }
            }
        }
        debt.merge(branch.txn.debt());
    }
    node.settle(&debt)?;
    Ok((sum, ledgers))
}

/// The sum of all accounts, and the transfers of which each group has a row.
type Read = (i64, [BTreeSet<String>; 2]);

/// How transfers are made, and how both groups are read.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    pub transfer: fn(&Both, &str, (i64, i64), i64) -> Result<Debt>,
    pub read: fn(&Both) -> Result<Read>,
    pub leaders: Leaders,
    /// Where sessions are.
    pub sessions: Sessions,
}

/// Where sessions are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sessions {
    /// Where the first group is led.
    AtFirst,
    /// Where either group is led.
    AtBoth,
}

impl Ways {
    /// A node for a session, now that groups are led as they should be.
    fn node(&self, nodes: &All, random: u64) -> Option<Arc<Both>> {
        let (_, first) = home_of(nodes, self.leaders)?;
        match (self.sessions, random % 2) {
            (Sessions::AtBoth, 1) => nodes.lock().values().find(|one| one.leads(1)).cloned(),
            _ => Some(first),
        }
    }
}

/// By branches, which are committed together.
const BY_HAND: Ways = Ways {
    transfer: transfer_across,
    read: read_both,
    leaders: Leaders::Together,
    sessions: Sessions::AtFirst,
};

/// Reads until `until`; how often that was answered. What was acknowledged before is seen, and
/// never one group's half of a transfer.
async fn reader(nodes: All, ways: Ways, told: Arc<Mutex<Told>>, until: env::Instant) -> usize {
    let mut answered = 0;
    loop {
        let Some(any) = nodes.lock().values().next().cloned() else {
            return answered;
        };
        if any.host.now() >= until {
            return answered;
        }
        let random = any.host.random();
        env::sleep(&*any.host, Duration::from_micros(random % 10_000)).await;
        let Some(node) = ways.node(&nodes, random / 10_000) else {
            continue;
        };
        let acknowledged = told.lock().committed.clone();
        let read = run_on(&node, ways.read);
        let patience = Duration::from_secs(3);
        let Some(Ok((sum, [first, second]))) =
            crate::group::within(&*any.host, patience, read).await
        else {
            continue;
        };
        assert_eq!(sum, 2 * 100 * BALANCES);
        assert_eq!(first, second);
        let lost = acknowledged.difference(&first).next();
        assert_eq!(lost, None, "acknowledged before, and not seen");
        answered += 1;
    }
}

/// Runs a session on a node. It dies with the node, and then never answers.
pub(super) fn run_on<T: Send + 'static>(
    node: &Arc<Both>,
    body: impl FnOnce(&Both) -> T + Send + 'static,
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

/// Whether nothing of a transaction across groups is left on the leader.
pub(super) fn is_settled_down(node: &Both) -> bool {
    node.engines.iter().all(|engine| {
        let (prepared, decisions) = (engine.group().prepared(), engine.group().decisions());
        prepared.newest().iter().next().is_none()
            && decisions.newest().is_empty()
            && engine.locks().is_empty()
    })
}

pub(super) fn check(node: &Both, told: &Told) {
    let [first, second] = [0, 1].map(|group| contents(&node.engines[group]));
    let opposite = |moves: &BTreeMap<String, i64>| -> BTreeMap<String, i64> {
        moves
            .iter()
            .map(|(id, amount)| (id.clone(), -amount))
            .collect()
    };
    assert_eq!(first.1, opposite(&second.1), "all or nothing");
    for (balances, moves) in [&first, &second] {
        let expected = 100 * BALANCES + moves.values().sum::<i64>();
        assert_eq!(balances.iter().sum::<i64>(), expected);
    }
    let there = |id: &&String| first.1.contains_key(*id);
    assert_eq!(told.committed.iter().find(|id| !there(id)), None, "lost");
    assert_eq!(told.refused.iter().find(there), None, "refused, and there");
}

#[test]
fn a_commit_across_groups_is_resolved_in_both_and_forgotten() {
    let mut groups = Groups::new(61);
    groups.keep(Leaders::Together);
    groups.create_accounts();
    groups.session(|node| {
        let debt = transfer_across(node, "one", (0, 1), 30)?;
        assert_eq!(debt.groups().count(), 2);
        assert_eq!(node.engines[0].prepared()?.0, [], "no client sees it");
        node.settle(&debt)
    });
    let (_, node) = groups.leader();
    let all = node.clone();
    groups
        .world
        .until("nothing to be left", move |_| is_settled_down(&all));
    let told = Told {
        committed: ["one".to_owned()].into(),
        ..Told::default()
    };
    check(&node, &told);
}

#[test]
fn what_cannot_be_prepared_in_one_group_is_aborted_in_the_other() {
    let mut groups = Groups::new(62);
    groups.keep(Leaders::Together);
    groups.create_accounts();
    let error = groups.session(|node| {
        let [first, second] = &node.engines;
        let mut branches = Vec::new();
        for engine in [first, second] {
            let mut txn = engine.begin_branch(TxnOptions::default())?;
            add_in(engine.group().id(), &mut txn, 1, 5)?;
            if engine.group().id() == SECOND {
                txn.snapshots()?.export_snapshot()?;
            }
            branches.push(Branch::new(engine.clone(), txn));
        }
        let committed = commit_across(branches, Timestamp(0), Durability::On);
        Ok(committed.unwrap_err())
    });
    assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED);
    let (_, node) = groups.leader();
    let all = node.clone();
    groups
        .world
        .until("nothing to be left", move |_| is_settled_down(&all));
    check(&node, &Told::default());
}

#[test]
fn a_leader_that_has_nothing_else_to_do_answers_by_what_is_committed_now() {
    let mut groups = Groups::new(64);
    groups.keep(Leaders::Together);
    groups.session(|node| {
        let second = &node.engines[1];
        let (group, term) = (second.group(), second.group().leading().expect("it leads"));
        second.begin_tending();
        coro::wait(env::sleep(&*node.host, Duration::from_millis(50)))?;
        // Its first entry is committed, and nothing has told it so.
        let first = group.committed();
        second
            .across
            .begin_term(group.id(), term, first, first.prev());
        let of = |group, term| Participant { group, term };
        let inquiry = Message::Inquiry {
            id: SpanningId {
                group: FIRST,
                term: Term(1),
                number: 1,
            },
            participants: vec![of(FIRST, Term(1)), of(SECOND, Term(0))],
        };
        second.receive_across(FIRST, inquiry);
        assert!(second.across.has_work(), "it says that it has no such part");
        Ok(())
    });
}

/// One client: transfers, one after the other, until `until`.
async fn client(nodes: All, ways: Ways, told: Arc<Mutex<Told>>, name: usize, until: env::Instant) {
    let mut number = 0;
    loop {
        let Some(any) = nodes.lock().values().next().cloned() else {
            return;
        };
        if any.host.now() >= until {
            return;
        }
        let Some(node) = ways.node(&nodes, any.host.random()) else {
            env::sleep(&*any.host, Duration::from_millis(5)).await;
            continue;
        };
        let id = format!("{name}-{number}");
        number += 1;
        let random = node.host.random();
        env::sleep(&*node.host, Duration::from_micros(random % 20_000)).await;
        let accounts = (random as i64 & 7) % BALANCES;
        let between = (accounts, (random as i64 >> 8 & 7) % BALANCES);
        let own = id.clone();
        let answered = run_on(&node, move |node: &Both| {
            let debt = (ways.transfer)(node, &own, between, 1)?;
            node.settle(&debt)
        });
        let patience = Duration::from_secs(3);
        let answer = crate::group::within(&*any.host, patience, answered).await;
        let mut told = told.lock();
        match answer {
            Some(Ok(())) => drop(told.committed.insert(id)),
            Some(Err(error)) if error.state() == SqlState::SERIALIZATION_FAILURE => {
                told.refused.insert(id);
            }
            _ => told.unknown += 1,
        }
    }
}

/// What clients were told, and how many reads were answered.
pub(super) fn bank(seed: u64, ways: Ways, faults: usize) -> (Told, usize) {
    let mut groups = Groups::new(seed);
    groups.keep(ways.leaders);
    groups.create_accounts();
    let told = Arc::new(Mutex::new(Told::default()));
    let end = groups.world.now().after(Duration::from_millis(500));
    let end = end.after(Duration::from_secs(2) * faults as u32);
    let running = Arc::new(Mutex::new(8));
    let reads = Arc::new(Mutex::new(0));
    for _ in 0..3 {
        let (nodes, told, reads) = (groups.nodes.clone(), told.clone(), reads.clone());
        groups.world.spawn(async move {
            let answered = reader(nodes, ways, told, end).await;
            *reads.lock() += answered;
        });
    }
    for name in 0..8 {
        let (nodes, told, running) = (groups.nodes.clone(), told.clone(), running.clone());
        groups.world.spawn(async move {
            client(nodes, ways, told, name, end).await;
            *running.lock() -= 1;
        });
    }
    for fault in 0..faults {
        groups.world.pass(Duration::from_millis(700));
        let (home, _) = groups.leader();
        let nodes = groups.nodes.lock().clone();
        let of_second = nodes.iter().find(|(_, node)| node.leads(1));
        let leader = match (fault / 2 % 2, of_second) {
            (0, Some((node, _))) => *node,
            _ => home,
        };
        drop(nodes);
        if fault % 2 == 0 {
            groups.crash(leader);
            groups.world.pass(Duration::from_millis(500));
            groups.start(leader);
            continue;
        }
        groups.cut_off(leader, true);
        groups.world.pass(Duration::from_secs(1));
        groups.cut_off(leader, false);
    }
    groups.world.until("the clients", |_| *running.lock() == 0);
    let nodes = groups.nodes.clone();
    groups.world.until("nothing to be left", move |_| {
        let nodes = nodes.lock();
        nodes.values().all(|node| is_settled_down(node))
    });
    let (_, node) = groups.leader();
    let told = std::mem::take(&mut *told.lock());
    check(&node, &told);
    let reads = *reads.lock();
    (told, reads)
}

#[test]
fn transfers_across_groups_are_all_or_nothing_whoever_leads() {
    let (mut committed, mut refused, mut read) = (0, 0, 0);
    for seed in 0..3 {
        let (told, reads) = bank(seed, BY_HAND, 4);
        committed += told.committed.len();
        refused += told.refused.len();
        read += reads;
    }
    assert!(
        committed > 200 && refused > 10 && read > 200,
        "{committed}, {refused}, {read}"
    );
}
