//! Transactions over a leader in memory: a map of versions, without log, replicas or disk.

mod anomalies;
mod keys;
mod model;
mod moving_on;
mod serializable;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::coro::{self, Interrupts, Run};
use base::engine::{IndexColumn, IndexDescriptor, Locking, Views as _};
use base::env::Env;
use base::key::{ColumnOrder, KeyKind};
use base::row::{Row, RowBuilder};
use base::{Key, NodeId, SqlState};

use super::*;
use crate::locks::tests::{Clock, TestEnv};
use crate::locks::{LockTable, Party};
use crate::record::Change;
use crate::registry::{index_key, Registry};
use crate::serial::Serial;
use crate::testing::World;

const TABLE: TreeId = TreeId(16_384);
const INDEX: TreeId = TreeId(16_385);
const UNIQUE: TreeId = TreeId(16_386);

/// Versions of a key, oldest first.
type Versions = Vec<(Lsn, Option<Vec<u8>>)>;

/// A leader that is alone in the world.
#[derive(Clone)]
struct Alone(Rc<Inner>);

struct Inner {
    locks: Arc<LockTable>,
    serial: Arc<Serial>,
    registry: Registry,
    rows: RefCell<BTreeMap<(TreeId, Key), Versions>>,
    visible: Cell<Lsn>,
    term: Cell<Term>,
    next_txn: Cell<u64>,
    next_number: Cell<u64>,
    /// Where write sets go that take more memory than a few rows.
    scratch: Arc<Scratch>,
}

#[derive(Clone)]
struct At {
    leader: Alone,
    position: Position,
}

fn as_of(versions: &Versions, at: Lsn) -> Option<&(Lsn, Option<Vec<u8>>)> {
    versions.iter().rev().find(|(lsn, _)| *lsn <= at)
}

impl Alone {
    fn new() -> Alone {
        let disk = World::new(1).start(NodeId(1)).disk();
        let locks = LockTable::new(Arc::new(TestEnv(Arc::new(Clock::default()))));
        locks.begin_term(Term(1));
        Alone(Rc::new(Inner {
            locks: Arc::new(locks),
            serial: Serial::new(),
            registry: Registry::default(),
            rows: RefCell::default(),
            visible: Cell::new(Lsn::ZERO),
            term: Cell::new(Term(1)),
            next_txn: Cell::new(1),
            next_number: Cell::new(1),
            scratch: Scratch::open(&disk, "writes").unwrap(),
        }))
    }

    /// With a table of two columns, an index on the first and a unique index on the second.
    fn with_table() -> Alone {
        let leader = Alone::new();
        let descriptors = [
            (TABLE, TreeKind::Table),
            (INDEX, TreeKind::Index(index_on(0, false))),
            (UNIQUE, TreeKind::Index(index_on(1, true))),
        ];
        let mut txn = leader.begin(Isolation::ReadCommitted);
        txn.begin_statement().unwrap();
        for (id, kind) in descriptors {
            let row = TreeDescriptor { id, kind }.to_row();
            let key = id.descriptor_key();
            let inserted = txn.insert(TreeId::DESCRIPTORS, &key, &row).unwrap();
            assert_eq!(inserted, Inserted::Done);
        }
        txn.commit(Durability::On).unwrap();
        leader
    }

    fn begin(&self, isolation: Isolation) -> Box<Txn<Alone>> {
        self.begin_with(TxnOptions {
            isolation,
            ..TxnOptions::default()
        })
    }

    fn begin_with(&self, options: TxnOptions) -> Box<Txn<Alone>> {
        let id = TxnId(self.0.next_txn.get());
        self.0.next_txn.set(id.0 + 1);
        let locks = TxnLocks::new(self.0.locks.clone(), Party::Transaction(id));
        Box::new(Txn::new(self.clone(), id, locks, &self.0.serial, options))
    }

    fn put(&self, tree: TreeId, key: Key, row: Option<Vec<u8>>) {
        let lsn = self.0.visible.get().next();
        let mut rows = self.0.rows.borrow_mut();
        rows.entry((tree, key)).or_default().push((lsn, row));
    }

    fn newest(&self, tree: TreeId, key: &[u8]) -> Option<Vec<u8>> {
        let rows = self.0.rows.borrow();
        rows.get(&(tree, key.to_vec()))?.last()?.1.clone()
    }

    /// All rows of a tree now.
    fn all(&self, tree: TreeId) -> BTreeMap<Key, Vec<u8>> {
        let rows = self.0.rows.borrow();
        let of_tree = rows.iter().filter(|((id, _), _)| *id == tree);
        of_tree
            .filter_map(|((_, key), versions)| {
                let (_, row) = versions.last()?;
                Some((key.clone(), row.clone()?))
            })
            .collect()
    }

    fn apply_entries(&self, table: TreeId, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) {
        for (tree, index) in self
            .0
            .registry
            .indexes(table)
            .iter()
            .flat_map(|all| all.iter())
        {
            let entry = |row| index_key(index, &Row::parse(row).unwrap(), key).unwrap();
            let (before, after) = (old.map(entry), new.map(entry));
            if before == after {
                continue;
            }
            if let Some(entry) = before {
                assert!(self.newest(*tree, &entry).is_some(), "no entry to delete");
                self.put(*tree, entry, None);
            }
            if let Some(entry) = after {
                assert!(self.newest(*tree, &entry).is_none(), "an entry twice");
                self.put(*tree, entry, Some(Vec::new()));
            }
        }
    }

    fn apply_descriptor(&self, key: &[u8], row: Option<&[u8]>) {
        let Some(row) = row else {
            let id = u64::from_be_bytes(key.try_into().unwrap());
            return self.0.registry.remove(TreeId(id));
        };
        let descriptor = TreeDescriptor::from_row(row).unwrap();
        if let TreeKind::Index(index) = &descriptor.kind {
            for (key, row) in self.all(index.table) {
                let entry = index_key(index, &Row::parse(&row).unwrap(), &key).unwrap();
                self.put(descriptor.id, entry, Some(Vec::new()));
            }
        }
        self.0.registry.insert(descriptor);
    }
}

impl View for At {
    fn position(&self) -> Position {
        self.position
    }
    fn get(&self, tree: TreeId, key: &[u8], at: Lsn, row: &mut Vec<u8>) -> Result<Read> {
        let rows = self.leader.0.rows.borrow();
        let found = rows.get(&(tree, key.to_vec())).and_then(|v| as_of(v, at));
        row.clear();
        let (version, state) = found.map_or((Lsn::ZERO, None), |(lsn, row)| (*lsn, row.as_ref()));
        row.extend_from_slice(state.map_or(&[], Vec::as_slice));
        let exists = state.is_some();
        drop(rows);
        let owes = if exists {
            version
        } else {
            self.leader.leaf(tree, at)
        };
        Ok(Read {
            exists,
            version,
            owes,
        })
    }
    fn gap(&self, tree: TreeId, key: &[u8]) -> Result<Option<Gap>> {
        let rows = self.leader.0.rows.borrow();
        let next = rows.keys().find(|(id, k)| *id == tree && &k[..] >= key);
        Ok(match next {
            None => Some(Gap::ToTheEnd),
            Some((_, next)) => (next != key).then(|| Gap::UpTo(next.clone())),
        })
    }
    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        at: Lsn,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Scanned> {
        let rows = self.leader.0.rows.borrow();
        let found = rows
            .iter()
            .filter(|((id, key), _)| *id == tree && range.contains(key));
        let mut found: Vec<_> = found
            .filter_map(|((_, key), versions)| {
                let (_, row) = as_of(versions, at)?;
                Some((key, row.as_ref()?))
            })
            .collect();
        if direction == Direction::Backward {
            found.reverse();
        }
        batch.clear();
        // Fewer than asked for, as pages give.
        let count = limit.min(3);
        found
            .iter()
            .take(count)
            .for_each(|(key, row)| batch.push(key, row));
        let rest = found
            .get(count)
            .map(|(key, _)| rest_of(range, direction, key));
        drop(rows);
        let owes = self.leader.leaf(tree, at);
        Ok(Scanned { rest, owes })
    }
}

impl Leader for Alone {
    type Snapshot = At;

    fn group(&self) -> GroupId {
        base::ids::FIRST_GROUP
    }
    fn snapshot(&self) -> Result<At> {
        Ok(At {
            leader: self.clone(),
            position: Position {
                term: self.0.term.get(),
                lsn: self.0.visible.get(),
            },
        })
    }
    fn refresh(&self, snapshot: &mut At) -> Result<()> {
        self.check_term(snapshot.position.term)?;
        snapshot.position.lsn = self.0.visible.get();
        Ok(())
    }
    fn check_term(&self, term: Term) -> Result<()> {
        match self.0.term.get() == term {
            true => Ok(()),
            false => Err(crate::group::term_is_over()),
        }
    }
    fn visible(&self) -> Lsn {
        self.0.visible.get()
    }
    fn indexes(&self, table: TreeId) -> Option<Indexes> {
        self.0.registry.indexes(table)
    }
    fn rows_built_in_line(&self) -> usize {
        usize::MAX
    }
    fn begin_build(&self, _: Term, _: TxnId, plan: &Plan) -> Result<BuildHandle> {
        panic!("{plan:?} beside, and there is nobody")
    }
    fn ask_xid(&self, term: Term) -> Result<AskedXid> {
        Arc::<crate::group::outcomes::Asked>::default().next(term, 0, u64::MAX)
    }
    fn now_micros(&self) -> i64 {
        0
    }
    fn scratch(&self) -> Option<(Arc<Scratch>, usize)> {
        Some((self.0.scratch.clone(), 1_000))
    }
    fn numbers(&self, _: SequenceId, count: u64) -> Result<(u64, GroupDebt)> {
        let first = self.0.next_number.get();
        self.0.next_number.set(first + count);
        let (group, position) = (self.group(), Position::default());
        Ok((first, GroupDebt { group, position }))
    }
    fn commit(&self, request: CommitRequest) -> Result<Position> {
        self.check_term(request.term)?;
        let is_stream = matches!(request.changes, Changes::Stream(_));
        let changes = request.changes.all()?;
        assert!(is_stream || !changes.is_empty(), "a record without changes");
        if let Some(ticket) = &request.serial {
            ticket.validate()?;
        }
        let lsn = self.visible().next();
        // Rows before descriptors, as a new index finds the rows that its record leaves.
        let (descriptors, rows): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|change| change.tree == TreeId::DESCRIPTORS);
        for change in rows.into_iter().chain(descriptors) {
            let old = self.newest(change.tree, &change.key);
            let new = match (change.change, &old) {
                (Change::Insert(row), None) => Some(row),
                (Change::Update(delta), Some(old)) => Some(delta.apply(old)?),
                (Change::Delete, Some(_)) => None,
                (other, old) => panic!("{other:?} of {old:?}"),
            };
            self.apply_entries(change.tree, &change.key, old.as_deref(), new.as_deref());
            if change.tree == TreeId::DESCRIPTORS {
                self.apply_descriptor(&change.key, new.as_deref());
            }
            self.put(change.tree, change.key, new);
        }
        if let Some(ticket) = &request.serial {
            ticket.appended(lsn);
        }
        self.0.visible.set(lsn);
        Ok(Position {
            term: request.term,
            lsn,
        })
    }
}

impl Alone {
    /// A tree is one leaf here.
    fn leaf(&self, tree: TreeId, at: Lsn) -> Lsn {
        let rows = self.0.rows.borrow();
        let of_tree = rows.iter().filter(|((id, _), _)| *id == tree);
        let lsns = of_tree
            .flat_map(|(_, versions)| versions)
            .map(|(lsn, _)| *lsn);
        lsns.max().unwrap_or_default().min(at)
    }
}

fn index_on(column: usize, unique: bool) -> IndexDescriptor {
    IndexDescriptor {
        table: TABLE,
        columns: vec![IndexColumn {
            column,
            kind: KeyKind::Bytes,
            order: ColumnOrder::ASCENDING,
        }],
        unique,
        missing: Vec::new(),
    }
}

/// A row of two columns; an empty second one is NULL.
fn row(first: &str, second: &str) -> Vec<u8> {
    let mut row = RowBuilder::new(2).value(first.as_bytes());
    row.push((!second.is_empty()).then_some(second.as_bytes()));
    row.finish()
}

fn first_of(row: &[u8]) -> String {
    let row = Row::parse(row).unwrap();
    String::from_utf8(row.column(0).unwrap().to_vec()).unwrap()
}

/// One client: a transaction that statements, each a coroutine, take turns at.
struct Client {
    leader: Alone,
    isolation: Isolation,
    txn: Rc<RefCell<Option<Box<Txn<Alone>>>>>,
    interrupts: Arc<Interrupts>,
}

impl Client {
    fn new(leader: &Alone, isolation: Isolation) -> Client {
        Client {
            leader: leader.clone(),
            isolation,
            txn: Rc::new(RefCell::new(Some(leader.begin(isolation)))),
            interrupts: Arc::default(),
        }
    }

    /// Starts a statement.
    fn start<R: 'static>(
        &self,
        body: impl FnOnce(&mut Txn<Alone>) -> Result<R> + 'static,
    ) -> Statement<R> {
        self.run(move |txn| {
            txn.begin_statement()?;
            body(txn)
        })
    }

    fn run<R: 'static>(
        &self,
        body: impl FnOnce(&mut Txn<Alone>) -> Result<R> + 'static,
    ) -> Statement<R> {
        let slot = self.txn.clone();
        let mut statement = Statement {
            run: coro::run(self.interrupts.clone(), move || {
                let mut txn = slot.borrow_mut().take().expect("one statement at a time");
                let result = body(&mut txn);
                *slot.borrow_mut() = Some(txn);
                result
            }),
            result: None,
        };
        statement.poll();
        statement
    }

    /// Runs a statement that need not wait.
    fn now<R: 'static>(&self, body: impl FnOnce(&mut Txn<Alone>) -> Result<R> + 'static) -> R {
        self.start(body).end().unwrap()
    }

    fn read(&self, key: &str) -> Option<String> {
        let key = key.to_string();
        self.now(move |txn| {
            let mut row = Vec::new();
            let exists = txn.get(TABLE, key.as_bytes(), &mut row)?;
            Ok(exists.then(|| first_of(&row)))
        })
    }

    fn insert(&self, key: &str, row: Vec<u8>) -> Statement<Inserted> {
        let key = key.to_string();
        self.start(move |txn| txn.insert(TABLE, key.as_bytes(), &row))
    }

    /// `UPDATE … SET … WHERE key = …`, as SQL does it: read, lock, check again, write.
    fn update(
        &self,
        key: &str,
        change: impl Fn(&[u8]) -> Vec<u8> + 'static,
    ) -> Statement<Option<Inserted>> {
        let key = key.to_string();
        self.start(move |txn| update(txn, key.as_bytes(), change))
    }

    fn delete(&self, key: &str) -> Statement<bool> {
        let key = key.to_string();
        self.start(move |txn| {
            let (mut row, mut newest) = (Vec::new(), Vec::new());
            let key = key.as_bytes();
            if !txn.get_to_lock(TABLE, key, RowLock::Update, &mut row)? {
                return Ok(false);
            }
            match txn.lock_row(TABLE, key, RowLock::Update, LockWait::Block, &mut newest)? {
                LockedRow::Gone | LockedRow::Skipped => Ok(false),
                _ => txn.delete(TABLE, key).map(|()| true),
            }
        })
    }

    fn commit(&self) -> Result<Debt> {
        let txn = self.txn.borrow_mut().take().expect("no statement runs");
        let debt = txn.commit(Durability::On);
        *self.txn.borrow_mut() = Some(self.leader.begin(self.isolation));
        debt
    }

    fn rollback(&self) {
        *self.txn.borrow_mut() = None;
        *self.txn.borrow_mut() = Some(self.leader.begin(self.isolation));
    }
}

fn update(
    txn: &mut Txn<Alone>,
    key: &[u8],
    change: impl Fn(&[u8]) -> Vec<u8>,
) -> Result<Option<Inserted>> {
    let (mut row, mut newest) = (Vec::new(), Vec::new());
    let strength = RowLock::NoKeyUpdate;
    if !txn.get_to_lock(TABLE, key, strength, &mut row)? {
        return Ok(None);
    }
    match txn.lock_row(TABLE, key, strength, LockWait::Block, &mut newest)? {
        LockedRow::Unchanged => {}
        LockedRow::Changed => row = newest,
        LockedRow::Gone | LockedRow::Skipped => return Ok(None),
    }
    txn.update(TABLE, key, &change(&row)).map(Some)
}

/// All rows of a range, read a few at a time.
fn scan_all(
    txn: &mut Txn<Alone>,
    tree: TreeId,
    range: KeyRange,
    direction: Direction,
    limit: usize,
) -> Result<Vec<(Key, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut batch = RowBatch::default();
    let mut rest = Some(range);
    while let Some(range) = rest {
        rest = txn.scan(tree, &range, direction, limit, &mut batch)?;
        assert!(
            rest.is_none() || !batch.is_empty(),
            "an empty batch and more"
        );
        assert!(batch.len() <= limit, "{} rows of {limit}", batch.len());
        found.extend(batch.iter().map(|(key, row)| (key.to_vec(), row.to_vec())));
    }
    Ok(found)
}

struct Statement<R: 'static> {
    run: Run<Result<R>>,
    result: Option<Result<R>>,
}

impl<R> Statement<R> {
    fn poll(&mut self) -> bool {
        if self.result.is_none() {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(result) = Pin::new(&mut self.run).poll(&mut cx) {
                self.result = Some(result);
            }
        }
        self.result.is_some()
    }

    fn waits(&mut self) -> bool {
        !self.poll()
    }

    fn end(mut self) -> Result<R> {
        // A scan may give way a few times without having to wait for anyone.
        for _ in 0..100 {
            if self.poll() {
                break;
            }
        }
        self.result.expect("the statement still waits")
    }

    fn state(self) -> SqlState {
        match self.end() {
            Ok(_) => panic!("no error"),
            Err(error) => error.state(),
        }
    }
}
