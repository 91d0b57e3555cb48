//! A transaction over the groups of a database: a branch in each that it has touched.
//!
//! The first branch is that of the session's home, a group that this node leads, and is always there.
//! Others join when one of their trees is locked, which a statement does with each of its tables before
//! it begins. So when it begins its groups are known, and it sees one state of them. A branch of a group
//! that another node leads is on that node ([`super::super::branch`]).
//!
//! ```text
//! lock_table(t2)        group 2 joins
//! begin_statement       the home and group 2, as of one timestamp
//! get(t3)               of group 3, from within a function: joins now, if nothing has changed in the
//!                       others since; else 40001, and from then on all join all
//! savepoint             one in each branch; who joins later gets those that there are
//! commit                nobody has written: nothing; one has: its own commit; several: parts
//! ```
//! Where another node leads a group in which it has written, the home has a part too, and coordinates:
//! so what became of it follows from logs, whatever is lost meanwhile.
//!
//! # Invariants
//! - What a statement reads of several groups is one state, with all that was committed before.
//! - A commit is appended in one group only when all that it owes in others is committed there.
//! - Whoever has locked rows for a commit takes part in it, so that a later leader locks them too.

use std::collections::BTreeMap;
use std::time::Duration;

use base::engine::{
    AdvisoryLocking, Announced, Build, Building, Built, Direction, Inserted, Isolation, LockWait,
    LockedRow, Locking, Notifying, Post, Preparation, Reading, RowBatch, RowLock, Savepoint,
    Savepoints, SnapshotSharing, TableLock, Ticket, Transaction, TxnOptions, TxnOutcome, ViewId,
    Views, Write, Writing,
};
use base::ids::FIRST_GROUP;
use base::{coro, Debt, Durability, Error, GroupId, Key, KeyRange, Result, TreeId, TxnId};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::super::branch::{agree, Access, Branch, Branching, Stake};
use super::{Database, Patience};
use crate::group::Group;
use crate::txn::Txn;

/// The error for what is known of one group alone.
fn of_one_group(what: &str) -> Error {
    Error::unsupported(format!("{what} over several groups"))
}

/// A branch in another group than the home, and what the transaction's savepoints and views are
/// called in it.
pub(super) struct Joined {
    /// The branch.
    pub branch: Box<dyn Branching>,
    savepoints: Vec<(Savepoint, Savepoint)>,
    views: Vec<(ViewId, ViewId)>,
    /// What it sees is of the state that the statement sees.
    is_shown: bool,
}

impl Joined {
    fn own(&self, savepoint: Savepoint) -> Option<Savepoint> {
        let found = self
            .savepoints
            .iter()
            .find(|(of_all, _)| *of_all == savepoint);
        found.map(|(_, own)| *own)
    }
}

/// Which of the branches: 0 is that of the home.
type Place = usize;

/// A transaction of a session.
pub struct DatabaseTxn {
    database: Arc<Database>,
    options: TxnOptions,
    lock_timeout: Duration,
    /// The branch of the home.
    home: Branch,
    /// What that sees is of the state that the statement sees.
    home_is_shown: bool,
    /// Those of others.
    joined: Vec<Joined>,
    /// Those that there are, as the home's branch calls them.
    savepoints: Vec<Savepoint>,
    /// A statement has begun.
    has_begun: bool,
    /// Where something was announced last.
    announced_in: usize,
    /// The row that was posted last.
    last_post: Post,
    debt: Debt,
}

impl DatabaseTxn {
    /// Around a branch of the home that has done nothing yet.
    pub fn new(database: Arc<Database>, home: Branch, options: TxnOptions) -> DatabaseTxn {
        DatabaseTxn {
            home,
            home_is_shown: false,
            joined: Vec::new(),
            database,
            options,
            lock_timeout: Duration::ZERO,
            savepoints: Vec::new(),
            has_begun: false,
            announced_in: 0,
            last_post: Post(0),
            debt: Debt::NONE,
        }
    }

    fn home(&mut self) -> &mut Txn<Arc<Group>> {
        &mut self.home.txn
    }

    fn is_alone(&self) -> bool {
        self.joined.is_empty()
    }

    /// All branches, the home's first.
    fn all(&mut self) -> impl Iterator<Item = &mut dyn Branching> {
        let others = self.joined.iter_mut();
        let others = others.map(|one| &mut *one.branch as &mut dyn Branching);
        std::iter::once(&mut self.home as &mut dyn Branching).chain(others)
    }

    fn branch(&mut self, place: Place) -> &mut dyn Branching {
        match place.checked_sub(1) {
            None => &mut self.home,
            Some(place) => &mut *self.joined[place].branch,
        }
    }

    fn branch_ref(&self, place: Place) -> &dyn Branching {
        match place.checked_sub(1) {
            None => &self.home,
            Some(place) => &*self.joined[place].branch,
        }
    }

    fn is_shown(&self, place: Place) -> bool {
        match place.checked_sub(1) {
            None => self.home_is_shown,
            Some(place) => self.joined[place].is_shown,
        }
    }

    fn set_shown(&mut self, place: Place) {
        match place.checked_sub(1) {
            None => self.home_is_shown = true,
            Some(place) => self.joined[place].is_shown = true,
        }
    }

    /// Whether all its statements see what the first one does.
    fn keeps_its_snapshot(&self) -> bool {
        self.options.isolation != Isolation::ReadCommitted
    }

    fn place_of(&self, group: GroupId) -> Option<Place> {
        if group == self.home.group() {
            return Some(0);
        }
        let place = self
            .joined
            .iter()
            .position(|one| one.branch.group() == group);
        place.map(|place| place + 1)
    }

    /// The group of a tree, or of the tree that a row of descriptors is of.
    fn group_of(tree: TreeId, key: &[u8]) -> GroupId {
        match tree == TreeId::DESCRIPTORS {
            true => TreeId::of_descriptor_key(key).map_or(FIRST_GROUP, TreeId::group),
            false => tree.group(),
        }
    }

    /// Joins a group that it has not touched yet, as soon as somebody leads that, by what it does there
    /// first.
    ///
    /// # Errors
    /// 57P03 when nobody leads it for a while; the interrupt that ended the wait; as `first`.
    fn join<R>(
        &mut self,
        group: GroupId,
        mut first: impl FnMut(&mut dyn Branching) -> Result<R>,
    ) -> Result<(Place, R)> {
        let options = self.options_of_others();
        let patience = Patience::with(&self.home.engine, group);
        loop {
            if let Some(branch) = self.database.try_branch(group, &self.home, options)? {
                self.add(branch);
                let place = self.joined.len();
                let done = first(self.branch(place));
                self.owe_branch(place);
                match done {
                    // It was led by somebody else meanwhile.
                    Err(error) if error.is_failover() && !self.branch(place).has_begun() => {
                        self.joined.pop();
                    }
                    done => return done.map(|done| (place, done)),
                }
            }
            patience.wait()?;
        }
    }

    /// What becomes of a transaction is noted at its home.
    fn options_of_others(&self) -> TxnOptions {
        TxnOptions {
            flight: None,
            ..self.options
        }
    }

    fn add(&mut self, mut branch: Box<dyn Branching>) {
        branch.access().set_lock_timeout(self.lock_timeout);
        let begun = |all: &Savepoint| (*all, branch.access().savepoint());
        let savepoints = self.savepoints.iter().map(begun).collect();
        self.joined.push(Joined {
            branch,
            savepoints,
            views: Vec::new(),
            is_shown: false,
        });
    }

    /// The branch of a group, to write or lock there.
    fn touch(&mut self, group: GroupId) -> Result<Place> {
        let place = match self.place_of(group) {
            Some(place) => place,
            None => self.join(group, |branch| branch.confirm())?.0,
        };
        if self.has_begun && !self.branch_ref(place).has_snapshot() {
            if self.keeps_its_snapshot() {
                return Err(Self::joins_late(group));
            }
            // What is written and locked is looked at as it is now.
            self.branch(place).begin_statement()?;
        }
        Ok(place)
    }

    /// The branch of a group, to read there what the statement sees.
    fn see(&mut self, group: GroupId) -> Result<Place> {
        let place = self.touch(group)?;
        if !self.is_shown(place) {
            self.show_late(place)?;
        }
        Ok(place)
    }

    fn joins_late(group: GroupId) -> Error {
        let message = format!("could not serialize access: group {group} joins a statement late");
        Error::serialization(message)
    }

    /// Shows the statement at work what a group has, if that is of the state that it sees of others.
    fn show_late(&mut self, place: Place) -> Result<()> {
        let heard = self.database.heard();
        let shown: Vec<bool> = (0..=self.joined.len())
            .map(|other| self.is_shown(other))
            .collect();
        let places = self.all().enumerate();
        let asked = places.filter(|(other, _)| *other == place || shown[*other]);
        let mut asked: Vec<_> = asked.map(|(_, branch)| branch).collect();
        let timestamp = agree(&mut asked, heard)?;
        self.database.hear(timestamp);
        for other in (0..shown.len()).filter(|other| *other != place && shown[*other]) {
            if !self.branch(other).has_same_view()? {
                self.database.joins_all.store(true, Ordering::Relaxed);
                return Err(Self::joins_late(self.branch_ref(place).group()));
            }
        }
        self.branch(place).take_view()?;
        self.set_shown(place);
        self.owe_all();
        Ok(())
    }

    /// Shows the statement that begins one state of all groups that have joined; false where a snapshot
    /// that must be safe is not.
    fn show_all(&mut self) -> Result<bool> {
        let heard = self.database.heard();
        let mut all: Vec<_> = self.all().collect();
        all.iter_mut().for_each(|branch| branch.expect_snapshot());
        let timestamp = agree(&mut all, heard)?;
        for branch in &mut all {
            branch.take_view()?;
        }
        let mut are_safe = true;
        if self.options.deferrable {
            for branch in self.all() {
                are_safe &= branch.is_safe()?;
            }
        }
        self.database.hear(timestamp);
        (0..=self.joined.len()).for_each(|place| self.set_shown(place));
        Ok(are_safe)
    }

    /// Joins all groups that are led anywhere.
    fn join_all(&mut self) -> Result<()> {
        let options = self.options_of_others();
        for group in self.database.led_groups() {
            if self.place_of(group).is_none() {
                // Who comes to touch a group that could not join hears so then.
                let Some(branch) = self.database.try_branch(group, &self.home, options)? else {
                    continue;
                };
                self.add(branch);
                let place = self.joined.len();
                match self.branch(place).confirm() {
                    Err(error) if error.is_failover() => drop(self.joined.pop()),
                    confirmed => confirmed?,
                }
            }
        }
        Ok(())
    }

    /// Owes what a branch rests on.
    fn owe_branch(&mut self, place: Place) {
        let debt = match place.checked_sub(1) {
            None => self.home.debt(),
            Some(place) => self.joined[place].branch.debt(),
        };
        self.debt.merge(debt);
    }

    fn owe_all(&mut self) {
        (0..=self.joined.len()).for_each(|place| self.owe_branch(place));
    }

    /// Does something in a branch, and owes what that rests on.
    fn in_branch<R>(
        &mut self,
        place: Place,
        act: impl FnOnce(&mut dyn Access) -> Result<R>,
    ) -> Result<R> {
        let done = act(self.branch(place).access());
        self.owe_branch(place);
        done
    }

    fn writing<R>(
        &mut self,
        (tree, key): (TreeId, &[u8]),
        act: impl FnOnce(&mut dyn Access) -> Result<R>,
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

    /// What each branch has to say in the commit, and whether any has written.
    fn stakes(&self) -> (Vec<Stake>, bool) {
        let others = self.joined.iter().map(|one| one.branch.stake());
        let stakes: Vec<_> = std::iter::once(self.home.stake()).chain(others).collect();
        let has_written = stakes.iter().any(|stake| stake.has_written);
        (stakes, has_written)
    }
}

impl Transaction for DatabaseTxn {
    fn id(&self) -> TxnId {
        self.home.txn.id()
    }

    fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    fn set_options(&mut self, options: TxnOptions) {
        self.options = options;
        self.home.set_options(options);
        let options = self.options_of_others();
        let others = self.joined.iter_mut();
        others.for_each(|one| one.branch.set_options(options));
    }

    fn begin_statement(&mut self) -> Result<()> {
        let is_first = !self.has_begun;
        self.has_begun = true;
        let joins_all = self.database.joins_all.load(Ordering::Relaxed);
        if is_first && self.keeps_its_snapshot() || joins_all && !self.keeps_its_snapshot() {
            self.join_all()?;
        }
        if self.is_alone() || !is_first && self.keeps_its_snapshot() {
            self.database.pass_in(&self.home.engine);
            for place in 0..=self.joined.len() {
                if self.branch_ref(place).has_snapshot() || is_first {
                    self.branch(place).begin_statement()?;
                    self.set_shown(place);
                }
            }
            self.owe_all();
            return Ok(());
        }
        while !self.show_all()? {
            self.all().for_each(Branching::give_up_snapshot);
        }
        self.owe_all();
        Ok(())
    }

    fn next_command(&mut self) {
        self.all().for_each(Branching::next_command);
    }

    fn owe(&mut self, debt: &Debt) {
        self.debt.merge(debt);
    }

    fn debt(&self) -> &Debt {
        &self.debt
    }

    fn advisory(&mut self) -> Result<&mut dyn AdvisoryLocking> {
        self.home().advisory()
    }

    fn outcome(&mut self) -> Result<&mut dyn TxnOutcome> {
        self.home().outcome()
    }

    fn snapshots(&mut self) -> Result<&mut dyn SnapshotSharing> {
        Err(of_one_group("exporting a snapshot"))
    }

    fn notifying(&mut self) -> Result<&mut dyn Notifying> {
        self.home().notifying()
    }

    fn end_reading(&mut self) -> bool {
        self.is_alone() && self.home().end_reading()
    }

    fn begin_again(&mut self, options: TxnOptions) -> bool {
        self.options = options;
        self.savepoints.clear();
        self.has_begun = false;
        self.last_post = Post(0);
        self.debt = Debt::NONE;
        self.home_is_shown = false;
        self.home().begin_again(options)
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<Debt> {
        let mut this = *self;
        let (stakes, writes) = this.stakes();
        let mut joined = this.joined.iter().zip(&stakes[1..]);
        // What another node has of it is decided where it is known what became of it.
        let elsewhere =
            writes && joined.any(|(one, stake)| stake.is_part() && !one.branch.is_here());
        let home_is_part = match writes {
            true => elsewhere || stakes[0].is_part(),
            // Whoever has asked for an id has written nothing, perhaps.
            false => this.home.txn.is_asked_about(),
        };
        let (mut parts, mut others) = (Vec::new(), Vec::new());
        for (one, stake) in std::mem::take(&mut this.joined)
            .into_iter()
            .zip(&stakes[1..])
        {
            match writes && stake.is_part() {
                true => parts.push(one),
                false => others.push(one.branch),
            }
        }
        if writes {
            let mut groups: Vec<_> = parts.iter().map(|one| one.branch.group()).collect();
            if !groups.is_empty() {
                this.debt.merge(&this.database.numbered());
            }
            groups.extend(home_is_part.then_some(this.home.group()));
            this.settle_beside(&groups)?;
        }
        let DatabaseTxn {
            database,
            home,
            mut debt,
            ..
        } = this;
        let coordinator = match home_is_part {
            true => Some(home),
            false => {
                others.insert(0, Box::new(home));
                None
            }
        };
        if !writes {
            // Before anything says that it has committed, all groups say that what it has read fits.
            for branch in others.drain(..) {
                debt.merge(&branch.commit(durability)?);
            }
        }
        debt.merge(&database.commit_parts(coordinator, parts, durability)?);
        // They have nothing to say, and nothing that happens to them undoes what is committed.
        drop(others);
        Ok(debt)
    }

    fn prepare(
        mut self: Box<Self>,
        preparation: Preparation,
        durability: Durability,
    ) -> Result<Debt> {
        let (stakes, _) = self.stakes();
        let are_beside = stakes[1..].iter().any(|stake| stake.is_part());
        // Who resolves it asks the first group.
        if are_beside || self.home.group() != FIRST_GROUP {
            return Err(of_one_group("preparing a transaction"));
        }
        self.settle_beside(&[FIRST_GROUP])?;
        let mut debt = std::mem::take(&mut self.debt);
        let home = self.home.txn;
        debt.merge(&home.prepare(preparation, durability)?);
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

    fn is_far(&self, tree: TreeId) -> bool {
        let place = self.place_of(tree.group());
        place.is_some_and(|place| !self.branch_ref(place).is_here())
    }

    fn read_ahead(&mut self, tree: TreeId, keys: &[Key]) -> Result<()> {
        let place = self.see(tree.group())?;
        self.in_branch(place, |txn| txn.read_ahead(tree, keys))
    }

    fn scan_ahead(&mut self, tree: TreeId, range: &KeyRange, direction: Direction) -> Result<()> {
        let place = self.see(tree.group())?;
        self.in_branch(place, |txn| txn.scan_ahead(tree, range, direction))
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
        let all = self.all();
        all.for_each(|branch| branch.access().set_lock_timeout(timeout));
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

    fn lock_ahead(
        &mut self,
        tree: TreeId,
        keys: &[Key],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<()> {
        let place = self.touch(tree.group())?;
        self.in_branch(place, |txn| txn.lock_ahead(tree, keys, strength, wait))
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
        self.branch(place).access().withdraw(ticket);
    }

    fn lock_tables_ahead(&mut self, tables: &[(TreeId, TableLock)]) -> Result<()> {
        let mut by_group: BTreeMap<GroupId, Vec<(TreeId, TableLock)>> = BTreeMap::new();
        for table in tables
            .iter()
            .filter(|(tree, _)| tree.group() != self.home.group())
        {
            by_group.entry(table.0.group()).or_default().push(*table);
        }
        // One table of one group is one message anyhow.
        if by_group.values().map(Vec::len).sum::<usize>() < 2 {
            return Ok(());
        }
        let options = self.options_of_others();
        let mut places = Vec::new();
        for group in by_group.keys() {
            let place = match self.place_of(*group) {
                Some(place) => place,
                None => match self.database.try_branch(*group, &self.home, options)? {
                    Some(branch) => {
                        self.add(branch);
                        self.joined.len()
                    }
                    None => continue,
                },
            };
            places.push(place);
        }
        for place in &places {
            let branch = self.branch(*place);
            let wanted = &by_group[&branch.group()];
            branch.begin_to_lock(wanted)?;
        }
        let mut asked = Ok(());
        for place in places {
            let branch = self.branch(place);
            let locked = branch.lock_tables(&by_group[&branch.group()]);
            // Where somebody else leads it meanwhile, whoever locks the table finds out.
            let is_ours = branch.has_begun();
            self.owe_branch(place);
            asked = asked.and(locked.or_else(|error| match is_ours {
                true => Err(error),
                false => Ok(()),
            }));
        }
        self.joined.retain(|one| one.branch.has_begun());
        asked
    }

    fn lock_table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<bool> {
        let group = tree.group();
        // It need not see anything there yet.
        let lock = |txn: &mut dyn Access| txn.lock_table(tree, mode, wait);
        let locked = match self.place_of(group) {
            Some(place) => self.in_branch(place, lock)?,
            None => self.join(group, |branch| lock(branch.access()))?.1,
        };
        if group != FIRST_GROUP {
            // Whoever has held it may have changed the catalog as well, and has given it up as soon as
            // its part of this group was resolved.
            self.database.wait_for_catalog()?;
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

    fn post(&mut self, tree: TreeId, key: &[u8], write: Write<'_>) -> Result<Option<Post>> {
        let place = self.touch(Self::group_of(tree, key))?;
        let post = Post(self.last_post.0 + 1);
        let posted = self.branch(place).post_write(post, tree, key, write);
        self.owe_branch(place);
        Ok(posted?.then(|| {
            self.last_post = post;
            post
        }))
    }

    fn posted(&mut self, since: Post) -> Result<Option<(Post, TreeId)>> {
        for one in &mut self.joined {
            one.branch.begin_to_hear(since)?;
        }
        let mut first: Option<(Post, TreeId)> = None;
        for one in &mut self.joined {
            let taken = one.branch.hear_posted(since)?;
            first = first.into_iter().chain(taken).min_by_key(|(post, _)| *post);
        }
        self.owe_all();
        Ok(first)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.writing((tree, key), |txn| txn.delete(tree, key))
    }

    fn note_moved(&mut self, tree: TreeId, key: &[u8]) {
        if let Some(place) = self.place_of(tree.group()) {
            self.branch(place).access().note_moved(tree, key);
        }
    }

    fn was_moved(&self, tree: TreeId, key: &[u8]) -> Result<bool> {
        match self.place_of(tree.group()) {
            Some(place) => self.branch_ref(place).access_ref().was_moved(tree, key),
            None => Ok(false),
        }
    }

    fn is_written_by_command(&self, tree: TreeId, key: &[u8]) -> bool {
        let place = self.place_of(tree.group());
        place.is_some_and(|place| {
            let access = self.branch_ref(place).access_ref();
            access.is_written_by_command(tree, key)
        })
    }

    fn catalog_writes(&self) -> &[(TreeId, Key)] {
        self.home.txn.catalog_writes()
    }
}

impl Building for DatabaseTxn {
    fn build(&mut self, build: &Build) -> Result<Built> {
        let group = build.source.group();
        let place = self.touch(group)?;
        if group != FIRST_GROUP {
            self.database.check_numbers_for(build)?;
            // That it begins is in the log at once.
            self.debt.merge(&self.database.numbered());
            self.settle_beside(&[group])?;
        }
        self.in_branch(place, |txn| txn.build(build))
    }
}

impl Savepoints for DatabaseTxn {
    fn savepoint(&mut self) -> Savepoint {
        let of_all = self.home().savepoint();
        for one in &mut self.joined {
            let own = one.branch.access().savepoint();
            one.savepoints.push((of_all, own));
        }
        self.savepoints.push(of_all);
        of_all
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.home().rollback_to(savepoint);
        for one in &mut self.joined {
            if let Some(own) = one.own(savepoint) {
                one.branch.access().rollback_to(own);
            }
            one.savepoints.retain(|(of_all, _)| *of_all <= savepoint);
        }
        self.savepoints.retain(|of_all| *of_all <= savepoint);
    }

    fn release(&mut self, savepoint: Savepoint) {
        self.home().release(savepoint);
        for one in &mut self.joined {
            if let Some(own) = one.own(savepoint) {
                one.branch.access().release(own);
            }
            one.savepoints.retain(|(of_all, _)| *of_all < savepoint);
        }
        self.savepoints.retain(|of_all| *of_all < savepoint);
    }
}

impl Views for DatabaseTxn {
    fn keep_view(&mut self) -> Result<ViewId> {
        let of_all = self.home().keep_view()?;
        for one in &mut self.joined {
            if one.is_shown {
                let own = one.branch.access().keep_view()?;
                one.views.push((of_all, own));
            }
        }
        Ok(of_all)
    }

    fn swap_view(&mut self, view: ViewId) -> Result<()> {
        self.home().swap_view(view)?;
        for one in &mut self.joined {
            let own = one.views.iter().find(|(of_all, _)| *of_all == view);
            // A group that has joined since has nothing that belongs to the view.
            if let Some((_, own)) = own.copied() {
                one.branch.access().swap_view(own)?;
            }
        }
        Ok(())
    }

    fn drop_view(&mut self, view: ViewId) {
        self.home().drop_view(view);
        for one in &mut self.joined {
            if let Some(at) = one.views.iter().position(|(of_all, _)| *of_all == view) {
                let (_, own) = one.views.swap_remove(at);
                one.branch.access().drop_view(own);
            }
        }
    }
}
