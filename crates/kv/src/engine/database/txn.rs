//! A transaction over the groups of a database: a branch in each that it has touched.
//!
//! The first branch is that of the first group, and is always there. Others join when one of their
//! trees is locked, which a statement does with each of its tables before it begins. So when it begins
//! its groups are known, and it sees one state of them.
//!
//! ```text
//! lock_table(t2)        group 2 joins
//! begin_statement       the first group and group 2, as of one timestamp
//! get(t3)               of group 3, from within a function: joins now, if nothing has changed in the
//!                       others since; else 40001, and from then on all join all
//! savepoint             one in each branch; who joins later gets those that there are
//! commit                nobody has written: nothing; one has: its own commit; several: parts
//! ```
//! # Invariants
//! - What a statement reads of several groups is one state, with all that was committed before.
//! - A commit is appended in one group only when all that it owes in others is committed there.
//! - Whoever has locked rows for a commit takes part in it, so that a later leader locks them too.

use std::time::Duration;

use base::engine::{
    AdvisoryLocking, Announced, Build, Building, Built, Direction, Inserted, Isolation, LockWait,
    LockedRow, Locking, Notifying, Preparation, Reading, RowBatch, RowLock, Savepoint, Savepoints,
    SnapshotSharing, TableLock, Ticket, Transaction, TxnOptions, TxnOutcome, ViewId, Views,
    Writing,
};
use base::ids::FIRST_GROUP;
use base::{coro, Debt, Durability, Error, GroupId, Key, KeyRange, Result, TreeId, TxnId};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::super::across::append_parts;
use super::super::{Branch, GroupView};
use super::Database;
use crate::group::{shown_in, Group};
use crate::txn::Txn;

/// The error for what is known of one group alone.
fn of_one_group(what: &str) -> Error {
    Error::unsupported(format!("{what} over several groups"))
}

/// A branch, and what the transaction's savepoints and views are called in it.
struct Joined {
    branch: Branch,
    savepoints: Vec<(Savepoint, Savepoint)>,
    views: Vec<(ViewId, ViewId)>,
    /// What it sees is of the state that the statement sees.
    is_shown: bool,
}

impl Joined {
    fn group(&self) -> &Arc<Group> {
        self.branch.engine.group()
    }

    fn txn(&mut self) -> &mut Txn<Arc<Group>> {
        &mut self.branch.txn
    }

    fn own(&self, savepoint: Savepoint) -> Option<Savepoint> {
        let found = self
            .savepoints
            .iter()
            .find(|(of_all, _)| *of_all == savepoint);
        found.map(|(_, own)| *own)
    }
}

/// A transaction of a session.
pub struct DatabaseTxn {
    database: Arc<Database>,
    options: TxnOptions,
    lock_timeout: Duration,
    /// The first group's first.
    joined: Vec<Joined>,
    /// Those that there are, as the first branch calls them.
    savepoints: Vec<Savepoint>,
    /// A statement has begun.
    has_begun: bool,
    /// Where something was announced last.
    announced_in: usize,
    debt: Debt,
}

impl DatabaseTxn {
    /// Around a transaction of the first group that has done nothing yet.
    pub fn new(
        database: Arc<Database>,
        first: Txn<Arc<Group>>,
        options: TxnOptions,
    ) -> DatabaseTxn {
        let engine = database.first.clone();
        let txn = Box::new(first);
        DatabaseTxn {
            joined: vec![Joined {
                branch: Branch { engine, txn },
                savepoints: Vec::new(),
                views: Vec::new(),
                is_shown: false,
            }],
            database,
            options,
            lock_timeout: Duration::ZERO,
            savepoints: Vec::new(),
            has_begun: false,
            announced_in: 0,
            debt: Debt::NONE,
        }
    }

    fn first(&mut self) -> &mut Txn<Arc<Group>> {
        self.joined[0].txn()
    }

    fn is_alone(&self) -> bool {
        self.joined.len() == 1
    }

    /// Whether all its statements see what the first one does.
    fn keeps_its_snapshot(&self) -> bool {
        self.options.isolation != Isolation::ReadCommitted
    }

    fn place_of(&self, group: GroupId) -> Option<usize> {
        self.joined.iter().position(|one| one.group().id() == group)
    }

    /// The group of a tree, or of the tree that a row of descriptors is of.
    fn group_of(tree: TreeId, key: &[u8]) -> GroupId {
        match tree == TreeId::DESCRIPTORS {
            true => TreeId::of_descriptor_key(key).map_or(FIRST_GROUP, TreeId::group),
            false => tree.group(),
        }
    }

    /// Joins a group that it has not touched yet.
    fn join(&mut self, group: GroupId) -> Result<usize> {
        let engine = self.database.led(group)?;
        let mut options = self.options;
        // What becomes of it is noted in the first group.
        options.flight = None;
        let mut txn = Box::new(engine.begin_branch(options)?);
        txn.set_lock_timeout(self.lock_timeout);
        txn.set_numbering(self.joined[0].group().clone());
        let begun = |all: &Savepoint| (*all, txn.savepoint());
        let savepoints = self.savepoints.iter().map(begun).collect();
        self.joined.push(Joined {
            branch: Branch { engine, txn },
            savepoints,
            views: Vec::new(),
            is_shown: false,
        });
        Ok(self.joined.len() - 1)
    }

    /// The branch of a group, to write or lock there.
    fn touch(&mut self, group: GroupId) -> Result<usize> {
        let place = match self.place_of(group) {
            Some(place) => place,
            None => self.join(group)?,
        };
        if self.has_begun && !self.joined[place].branch.txn.has_snapshot() {
            if self.keeps_its_snapshot() {
                return Err(Self::joins_late(group));
            }
            // What is written and locked is looked at as it is now.
            self.joined[place].txn().begin_statement()?;
        }
        Ok(place)
    }

    /// The branch of a group, to read there what the statement sees.
    fn see(&mut self, group: GroupId) -> Result<usize> {
        let place = self.touch(group)?;
        if !self.joined[place].is_shown {
            self.show_late(place)?;
        }
        Ok(place)
    }

    fn joins_late(group: GroupId) -> Error {
        let message = format!("could not serialize access: group {group} joins a statement late");
        Error::serialization(message)
    }

    /// Shows the statement at work what a group has, if that is of the state that it sees of others.
    fn show_late(&mut self, place: usize) -> Result<()> {
        let asked: Vec<usize> = (0..self.joined.len())
            .filter(|other| *other == place || self.joined[*other].is_shown)
            .collect();
        let groups: Vec<_> = asked
            .iter()
            .map(|one| self.joined[*one].group().clone())
            .collect();
        let (shown, timestamp) = shown_in(&groups, self.database.heard())?;
        self.database.hear(timestamp);
        for (asked, shown) in asked.into_iter().zip(shown) {
            let view = GroupView::of(self.joined[asked].group(), shown);
            if asked == place {
                self.joined[place].txn().begin_statement_with(view)?;
                self.joined[place].is_shown = true;
            } else if !self.joined[asked].branch.txn.shown()?.is_same(&view) {
                self.database.joins_all.store(true, Ordering::Relaxed);
                return Err(Self::joins_late(self.joined[place].group().id()));
            }
        }
        self.owe_all();
        Ok(())
    }

    /// Shows the statement that begins one state of all groups that have joined; false where a snapshot
    /// that must be safe is not.
    fn show_all(&mut self) -> Result<bool> {
        self.joined
            .iter_mut()
            .for_each(|one| one.txn().expect_snapshot());
        let groups: Vec<_> = self.joined.iter().map(|one| one.group().clone()).collect();
        let (shown, timestamp) = shown_in(&groups, self.database.heard())?;
        self.database.hear(timestamp);
        for (one, shown) in self.joined.iter_mut().zip(shown) {
            let view = GroupView::of(one.group(), shown);
            one.txn().begin_statement_with(view)?;
            one.is_shown = true;
        }
        let mut are_safe = true;
        for one in &mut self.joined {
            are_safe &= one.txn().is_safe()?;
        }
        Ok(are_safe)
    }

    /// Joins all groups that this node leads.
    fn join_all(&mut self) -> Result<()> {
        for engine in self.database.engines() {
            let group = engine.group();
            if group.leading().is_some() && self.place_of(group.id()).is_none() {
                self.join(group.id())?;
            }
        }
        Ok(())
    }

    fn owe_all(&mut self) {
        for one in &self.joined {
            self.debt.merge(one.branch.txn.debt());
        }
    }

    /// Does something in a branch, and owes what that rests on.
    fn in_branch<R>(
        &mut self,
        place: usize,
        act: impl FnOnce(&mut Txn<Arc<Group>>) -> Result<R>,
    ) -> Result<R> {
        let done = act(&mut self.joined[place].branch.txn);
        self.debt.merge(self.joined[place].branch.txn.debt());
        done
    }

    fn writing<R>(
        &mut self,
        (tree, key): (TreeId, &[u8]),
        act: impl FnOnce(&mut Txn<Arc<Group>>) -> Result<R>,
    ) -> Result<R> {
        let place = self.touch(Self::group_of(tree, key))?;
        self.in_branch(place, act)
    }

    /// Waits until what it owes elsewhere than in these groups is committed.
    fn settle_beside(&self, groups: &[GroupId]) -> Result<()> {
        for part in self.debt.groups() {
            if groups.contains(&part.group) {
                continue;
            }
            let (engine, debt) = self.database.part(part)?;
            if !base::engine::Gate::is_settled(&*engine, &debt, Durability::On) {
                coro::wait(base::engine::Gate::settle(&*engine, debt, Durability::On))??;
            }
        }
        Ok(())
    }

    /// Whether a branch has something to say in the commit.
    fn takes_part(&self, place: usize) -> bool {
        let txn = &self.joined[place].branch.txn;
        txn.has_written() || txn.holds_rows() || txn.has_marks() || txn.is_asked_about()
    }
}

impl Transaction for DatabaseTxn {
    fn id(&self) -> TxnId {
        self.joined[0].branch.txn.id()
    }

    fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    fn set_options(&mut self, options: TxnOptions) {
        self.options = options;
        for (place, one) in self.joined.iter_mut().enumerate() {
            let mut own = options;
            own.flight = options.flight.filter(|_| place == 0);
            one.txn().set_options(own);
        }
    }

    fn begin_statement(&mut self) -> Result<()> {
        let is_first = !self.has_begun;
        self.has_begun = true;
        let joins_all = self.database.joins_all.load(Ordering::Relaxed);
        if is_first && self.keeps_its_snapshot() || joins_all && !self.keeps_its_snapshot() {
            self.join_all()?;
        }
        if self.is_alone() || !is_first && self.keeps_its_snapshot() {
            self.database.pass_in_first();
            for one in &mut self.joined {
                if one.branch.txn.has_snapshot() || is_first {
                    one.txn().begin_statement()?;
                    one.is_shown = true;
                }
            }
            self.owe_all();
            return Ok(());
        }
        while !self.show_all()? {
            self.joined
                .iter_mut()
                .for_each(|one| one.txn().give_up_snapshot());
        }
        self.owe_all();
        Ok(())
    }

    fn next_command(&mut self) {
        self.joined
            .iter_mut()
            .for_each(|one| one.txn().next_command());
    }

    fn owe(&mut self, debt: &Debt) {
        self.debt.merge(debt);
    }

    fn debt(&self) -> &Debt {
        &self.debt
    }

    fn advisory(&mut self) -> Result<&mut dyn AdvisoryLocking> {
        self.first().advisory()
    }

    fn outcome(&mut self) -> Result<&mut dyn TxnOutcome> {
        self.first().outcome()
    }

    fn snapshots(&mut self) -> Result<&mut dyn SnapshotSharing> {
        Err(of_one_group("exporting a snapshot"))
    }

    fn notifying(&mut self) -> Result<&mut dyn Notifying> {
        self.first().notifying()
    }

    fn end_reading(&mut self) -> bool {
        self.is_alone() && self.first().end_reading()
    }

    fn begin_again(&mut self, options: TxnOptions) -> bool {
        self.options = options;
        self.savepoints.clear();
        self.has_begun = false;
        self.debt = Debt::NONE;
        let first = &mut self.joined[0];
        first.is_shown = false;
        first.savepoints.clear();
        first.views.clear();
        self.first().begin_again(options)
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<Debt> {
        let mut this = *self;
        let writes = this.joined.iter().any(|one| one.branch.txn.has_written());
        let is_asked = this.joined[0].branch.txn.is_asked_about();
        let takes_part = |place: usize| match place {
            // Whoever has asked for an id has written nothing, perhaps.
            0 if !writes => is_asked,
            place => writes && this.takes_part(place),
        };
        let places: Vec<bool> = (0..this.joined.len()).map(takes_part).collect();
        let with = |part: bool| {
            let joined = this.joined.iter().zip(&places);
            joined
                .filter(move |(_, takes)| **takes == part)
                .map(|(one, _)| one.group().id())
        };
        let groups: Vec<_> = with(true).collect();
        if writes {
            if groups.iter().any(|group| *group != FIRST_GROUP) {
                this.debt.merge(&this.database.numbered());
            }
            this.settle_beside(&groups)?;
        }
        let mut debt = std::mem::take(&mut this.debt);
        let (mut parts, mut others) = (Vec::new(), Vec::new());
        for (one, takes) in this.joined.into_iter().zip(places) {
            let to = if takes { &mut parts } else { &mut others };
            to.push(one.branch);
        }
        let changes_catalog = parts.first().is_some_and(|first| {
            first.engine.group().id() == FIRST_GROUP && !first.txn.catalog_writes().is_empty()
        });
        if !writes {
            // Before anything says that it has committed, all groups say that what it has read fits.
            for Branch { txn, .. } in others.drain(..) {
                debt.merge(&txn.commit(durability)?);
            }
        }
        let committed = match parts.len() {
            0 => Debt::NONE,
            1 => {
                let Branch { engine, txn } = parts.remove(0);
                engine.group().pass(this.database.heard());
                let committed = txn.commit(durability)?;
                this.database.hear(engine.group().timestamp());
                committed
            }
            _ => {
                let durability = durability.max(Durability::On);
                let mut engines: Vec<_> = parts.iter().map(|part| part.engine.clone()).collect();
                let (id, mut committed) = append_parts(parts, this.database.heard(), durability)?;
                match (durability, changes_catalog) {
                    // Whoever reads on a standby is to see it, and not that it is prepared.
                    (Durability::RemoteApply, _) => {}
                    // Who goes on here goes by the catalog's version.
                    (_, true) => engines.truncate(1),
                    (_, false) => engines.clear(),
                }
                for engine in engines {
                    engine.await_resolution(id, &mut committed);
                }
                committed
            }
        };
        debt.merge(&committed);
        for Branch { txn, .. } in others {
            debt.merge(&txn.commit(durability)?);
        }
        Ok(debt)
    }

    fn prepare(
        mut self: Box<Self>,
        preparation: Preparation,
        durability: Durability,
    ) -> Result<Debt> {
        if (1..self.joined.len()).any(|place| self.takes_part(place)) {
            return Err(of_one_group("preparing a transaction"));
        }
        self.settle_beside(&[FIRST_GROUP])?;
        let first = self.joined.swap_remove(0).branch.txn;
        let mut debt = std::mem::take(&mut self.debt);
        debt.merge(&first.prepare(preparation, durability)?);
        Ok(debt)
    }
}

impl Reading for DatabaseTxn {
    fn get(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<bool> {
        let group = Self::group_of(tree, key);
        // Whoever looks at a descriptor has locked what it is of, and may find that only now.
        let place = match tree == TreeId::DESCRIPTORS {
            true => self.touch(group)?,
            false => self.see(group)?,
        };
        self.in_branch(place, |txn| txn.get(tree, key, row))
    }

    fn get_to_lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        let place = self.see(tree.group())?;
        self.in_branch(place, |txn| txn.get_to_lock(tree, key, strength, row))
    }

    fn scan(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        let place = self.see(tree.group())?;
        self.in_branch(place, |txn| txn.scan(tree, range, direction, limit, batch))
    }

    fn scan_newest_in(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        let place = self.touch(tree.group())?;
        self.in_branch(place, |txn| {
            txn.scan_newest_in(tree, range, direction, limit, batch)
        })
    }
}

impl Locking for DatabaseTxn {
    fn set_lock_timeout(&mut self, timeout: Duration) {
        self.lock_timeout = timeout;
        let branches = self.joined.iter_mut();
        branches.for_each(|one| one.txn().set_lock_timeout(timeout));
    }

    fn lock_row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        let row = (tree, key);
        self.writing(row, |txn| txn.lock_row(tree, key, strength, wait, newest))
    }

    fn lock_row_in_the_way(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        self.writing((tree, key), |txn| {
            txn.lock_row_in_the_way(tree, key, strength, newest)
        })
    }

    fn lock_key(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<bool> {
        self.writing((tree, key), |txn| txn.lock_key(tree, key, strength, wait))
    }

    fn wait_for_key(&mut self, tree: TreeId, key: &[u8], strength: RowLock) -> Result<()> {
        self.writing((tree, key), |txn| txn.wait_for_key(tree, key, strength))
    }

    fn announce(&mut self, tree: TreeId, key: &[u8], note: &[u8]) -> Result<Ticket> {
        let place = self.touch(tree.group())?;
        self.announced_in = place;
        self.in_branch(place, |txn| txn.announce(tree, key, note))
    }

    fn announced(&mut self, tree: TreeId, prefix: &[u8], ticket: Ticket) -> Result<Vec<Announced>> {
        let place = self.touch(tree.group())?;
        self.in_branch(place, |txn| txn.announced(tree, prefix, ticket))
    }

    fn wait_for_announced(&mut self, announced: &Announced) -> Result<()> {
        let tree = announced
            .name
            .first_chunk()
            .copied()
            .map(u64::from_be_bytes);
        let missing = || Error::internal("an announcement without a tree");
        let place = self.touch(TreeId(tree.ok_or_else(missing)?).group())?;
        self.in_branch(place, |txn| txn.wait_for_announced(announced))
    }

    fn withdraw(&mut self, ticket: Ticket) {
        let place = self.announced_in;
        self.joined[place].txn().withdraw(ticket);
    }

    fn lock_table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<bool> {
        let group = tree.group();
        // It need not see anything there yet.
        let place = match self.place_of(group) {
            Some(place) => place,
            None => self.join(group)?,
        };
        let locked = self.in_branch(place, |txn| txn.lock_table(tree, mode, wait))?;
        if place != 0 {
            // Whoever has held it may have changed the catalog as well, and has given it up as soon as
            // its part of this group was resolved.
            self.joined[0].group().wait_for_standing()?;
        }
        Ok(locked)
    }
}

impl Writing for DatabaseTxn {
    fn insert(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        self.writing((tree, key), |txn| txn.insert(tree, key, row))
    }

    fn insert_new(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        self.writing((tree, key), |txn| txn.insert_new(tree, key, row))
    }

    fn update(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        self.writing((tree, key), |txn| txn.update(tree, key, row))
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.writing((tree, key), |txn| txn.delete(tree, key))
    }

    fn note_moved(&mut self, tree: TreeId, key: &[u8]) {
        if let Some(place) = self.place_of(tree.group()) {
            self.joined[place].txn().note_moved(tree, key);
        }
    }

    fn was_moved(&self, tree: TreeId, key: &[u8]) -> Result<bool> {
        match self.place_of(tree.group()) {
            Some(place) => self.joined[place].branch.txn.was_moved(tree, key),
            None => Ok(false),
        }
    }

    fn is_written_by_command(&self, tree: TreeId, key: &[u8]) -> bool {
        let place = self.place_of(tree.group());
        place.is_some_and(|place| {
            self.joined[place]
                .branch
                .txn
                .is_written_by_command(tree, key)
        })
    }

    fn catalog_writes(&self) -> &[(TreeId, Key)] {
        self.joined[0].branch.txn.catalog_writes()
    }
}

impl Building for DatabaseTxn {
    fn build(&mut self, build: &Build) -> Result<Built> {
        let group = build.source.group();
        let place = self.touch(group)?;
        if group != FIRST_GROUP {
            // That it begins is in the log at once.
            self.debt.merge(&self.database.numbered());
            self.settle_beside(&[group])?;
        }
        self.in_branch(place, |txn| txn.build(build))
    }
}

impl Savepoints for DatabaseTxn {
    fn savepoint(&mut self) -> Savepoint {
        let of_all = self.joined[0].txn().savepoint();
        for one in &mut self.joined[1..] {
            let own = one.txn().savepoint();
            one.savepoints.push((of_all, own));
        }
        self.savepoints.push(of_all);
        of_all
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.joined[0].txn().rollback_to(savepoint);
        for one in &mut self.joined[1..] {
            if let Some(own) = one.own(savepoint) {
                one.txn().rollback_to(own);
            }
            one.savepoints.retain(|(of_all, _)| *of_all <= savepoint);
        }
        self.savepoints.retain(|of_all| *of_all <= savepoint);
    }

    fn release(&mut self, savepoint: Savepoint) {
        self.joined[0].txn().release(savepoint);
        for one in &mut self.joined[1..] {
            if let Some(own) = one.own(savepoint) {
                one.txn().release(own);
            }
            one.savepoints.retain(|(of_all, _)| *of_all < savepoint);
        }
        self.savepoints.retain(|of_all| *of_all < savepoint);
    }
}

impl Views for DatabaseTxn {
    fn keep_view(&mut self) -> Result<ViewId> {
        let of_all = self.first().keep_view()?;
        for one in &mut self.joined[1..] {
            if one.is_shown {
                let own = one.txn().keep_view()?;
                one.views.push((of_all, own));
            }
        }
        Ok(of_all)
    }

    fn swap_view(&mut self, view: ViewId) -> Result<()> {
        self.first().swap_view(view)?;
        for one in &mut self.joined[1..] {
            let own = one.views.iter().find(|(of_all, _)| *of_all == view);
            // A group that has joined since has nothing that belongs to the view.
            if let Some((_, own)) = own.copied() {
                one.txn().swap_view(own)?;
            }
        }
        Ok(())
    }

    fn drop_view(&mut self, view: ViewId) {
        self.first().drop_view(view);
        for one in &mut self.joined[1..] {
            if let Some(at) = one.views.iter().position(|(of_all, _)| *of_all == view) {
                let (_, own) = one.views.swap_remove(at);
                one.txn().drop_view(own);
            }
        }
    }
}
