//! A branch in a group that another node leads, as its transaction's node has it.
//!
//! Each step is a call on a connection, whose answer the statement waits for; what nobody has to answer
//! ([`Call::is_answered`]) goes along with the next call. After each, the branch's debt is known here:
//! what is committed already is none, so that nobody has to hear of it again from the group's log.
//!
//! ```text
//! insert ──► NextCommand, Insert ──► n2 … waits for a lock there
//!   │            a second later: does whoever has it wait for this session?  40P01
//!   │            cancelled, timed out, terminated: Cancel ──► n2
//!   ◄─────────── an answer; or another leads the group, or the connection breaks: 40001
//! ```
//! # Fewer round trips
//! - What is sure to be asked next may be asked at once ([`RemoteBranch::ask_early`]), and its answer is
//!   there, or on its way, when it is: the rest of a scan, what other groups' looks are waited for beside.
//! - Rows that will be read or locked one by one are read or locked together ([`Ahead`]), and a row that is
//!   read to be locked is locked at once.
//! - A table that is locked is not locked again.
//! - What is written is posted, where whoever writes it can do with hearing later that its values are
//!   taken: the rows of an INSERT are one message, and those of an UPDATE or DELETE none of their own.
//!
//! # Invariants
//! - A branch ends with its connection, and with the leader that has begun it: after that everything is
//!   40001, and what was done there is taken back.
//! - What was prepared is in the group's log, and ends with the transaction alone.

use std::cell::RefCell;
use std::time::Duration;

use base::engine::{
    Announced, Build, Building, Built, Direction, Inserted, LockWait, LockedRow, Locking, Post,
    Reading, RowBatch, RowLock, Savepoint, Savepoints, TableLock, Ticket, TxnOptions, ViewId,
    Views, Write, Writing,
};
use base::limits::SCAN_BATCH_ROWS;
use base::{Debt, Durability, Error, GroupId, Key, KeyRange, Result, Term, Timestamp, TreeId};
use raft::planted::{is_planted, Bug};
use spanning::Participant;

use super::ahead::Ahead;
use super::calls::{check_fits, Answer, Call, Condition, Posted};
use super::link::Connection;
use super::place::{lost, unexpected, Answered, Place, Wait};
use super::prepare::{Asked, Handed, Preparing};
use super::{Access, Branch, Branching, Stake};

/// So much is posted before its other side is waited for.
const POSTED_BYTES_MAX: usize = 256 << 10;

/// Of so many tables it is known that they are locked.
const TABLES_MAX: usize = 256;

/// What was asked before it was needed.
struct Early {
    /// None once nobody needs it.
    call: Option<Call>,
    /// None while it is on its way.
    answer: Option<Answered>,
}

/// A branch in a group that another node leads.
pub(in super::super) struct RemoteBranch {
    place: Place,
    /// None once it is over or lost.
    connection: RefCell<Option<Connection>>,
    /// What goes along with the next call.
    posted: RefCell<Vec<u8>>,
    early: RefCell<Option<Early>>,
    ahead: Ahead,
    /// The tables that are locked, how, and behind which savepoint.
    tables: Vec<(TreeId, TableLock, u32)>,
    debt: Debt,
    condition: Condition,
    /// Something was written of which the answers so far may not know.
    has_posted: bool,
    /// At which timestamp it has found what is shown.
    found: Option<Timestamp>,
    last_savepoint: u32,
    last_view: u32,
}

impl RemoteBranch {
    /// Begins one, of a session with a `home` on this node. Whether it has begun, the answer to the first
    /// call tells.
    ///
    /// # Errors
    /// 40001 where that node cannot be reached.
    pub fn begin(place: Place, home: Participant, options: TxnOptions) -> Result<RemoteBranch> {
        let begin = Call::Begin(place.group.id(), home, options);
        let branch = RemoteBranch {
            connection: RefCell::new(Some(place.connected()?)),
            place,
            posted: RefCell::default(),
            early: RefCell::default(),
            ahead: Ahead::default(),
            tables: Vec::new(),
            debt: Debt::NONE,
            condition: Condition::default(),
            has_posted: false,
            found: None,
            last_savepoint: 0,
            last_view: 0,
        };
        branch.say(&begin);
        Ok(branch)
    }

    /// Says what nobody has to answer.
    fn say(&self, call: &Call) {
        call.encode(&mut self.posted.borrow_mut());
    }

    /// A frame with a call, and what goes along with it.
    fn frame(&self, call: &Call) -> Result<Vec<u8>> {
        let mut posted = self.posted.borrow_mut();
        let before = posted.len();
        call.encode(&mut posted);
        if let Err(error) = check_fits(posted.len()) {
            posted.truncate(before);
            return Err(error);
        }
        Ok(std::mem::take(&mut *posted))
    }

    /// Sends a call and what goes along with it.
    fn send(&self, call: &Call) -> Result<()> {
        let frame = self.frame(call)?;
        let mut connection = self.connection.borrow_mut();
        connection.as_mut().ok_or_else(lost)?.ask(&frame);
        Ok(())
    }

    fn exchange(&self, call: &Call, wait: Wait) -> Result<Answered> {
        self.send(call)?;
        self.last(wait)
    }

    /// The answer to what was sent last.
    fn last(&self, wait: Wait) -> Result<Answered> {
        let mut connection = self.connection.borrow_mut();
        let mut early = self.early.borrow_mut();
        while connection.as_ref().is_some_and(|one| one.awaited() > 1) {
            match (self.place.answer(&mut connection, wait), &mut *early) {
                (Ok(answer), Some(early)) => early.answer = Some(answer),
                (Ok(_), None) => {}
                (Err(error), _) => {
                    *early = None;
                    return Err(error);
                }
            }
        }
        let answered = self.place.answer(&mut connection, wait);
        if answered.is_err() {
            // Whatever was on its way has come, or never will.
            *early = None;
        }
        answered
    }

    /// Asks what will be asked next, or after what is asked meanwhile.
    ///
    /// # Errors
    /// 40001 where its leader is lost.
    fn ask_early(&mut self, call: Call) -> Result<()> {
        let is_awaited = |connection: &Connection| connection.awaited() > 0;
        if self.connection.get_mut().as_ref().is_some_and(is_awaited) {
            return Ok(());
        }
        self.send(&call)?;
        *self.early.get_mut() = Some(Early {
            call: Some(call),
            answer: None,
        });
        Ok(())
    }

    /// The answer to a call that was asked early.
    fn take_early(&mut self, call: &Call) -> Option<Result<Answered>> {
        let is_it = |early: &mut Early| early.call.as_ref() == Some(call);
        let early = self.early.get_mut().take_if(is_it)?;
        Some(match early.answer {
            // What the branch is like is known from a later answer.
            Some((answer, condition)) => Ok((
                answer,
                Condition {
                    debt: condition.debt,
                    ..self.condition.clone()
                },
            )),
            None => self.last(Wait::Interruptible),
        })
    }

    /// What is seen, and what is locked, may be something else from here on.
    fn forget(&mut self) {
        self.ahead.clear();
        if let Some(early) = self.early.get_mut() {
            early.call = None;
        }
    }

    fn ask(&mut self, call: &Call) -> Result<Answer> {
        let (answer, condition) = match self.take_early(call) {
            Some(answered) => answered?,
            None => self.exchange(call, Wait::Interruptible)?,
        };
        self.debt.merge(&condition.debt);
        self.condition = condition;
        answer
    }

    /// A table is locked.
    fn note_table(&mut self, tree: TreeId, mode: TableLock) {
        if self.tables.len() < TABLES_MAX {
            self.tables.push((tree, mode, self.last_savepoint));
        }
    }

    /// Has something written by what goes along with the next call.
    fn say_write(&mut self, call: &Call) -> Result<()> {
        self.has_posted = true;
        self.say(call);
        match self.posted.get_mut().len() > POSTED_BYTES_MAX {
            true => self.ask_done(&Call::Confirm),
            false => Ok(()),
        }
    }

    /// The last thing that it is asked: there is nothing to take back then.
    fn ask_last(&mut self, call: &Call) -> Result<Debt> {
        self.send(call)?;
        let connection = self.connection.get_mut();
        let (answer, condition) = self.place.last_answer(connection)?;
        self.debt.merge(&condition.debt);
        match answer? {
            Answer::Done => Ok(std::mem::take(&mut self.debt)),
            _ => unexpected(),
        }
    }

    fn ask_flag(&mut self, call: &Call) -> Result<bool> {
        match self.ask(call)? {
            Answer::Flag(flag) => Ok(flag),
            _ => unexpected(),
        }
    }

    fn ask_done(&mut self, call: &Call) -> Result<()> {
        match self.ask(call)? {
            Answer::Done => Ok(()),
            _ => unexpected(),
        }
    }

    fn ask_row(&mut self, call: &Call, row: &mut Vec<u8>) -> Result<bool> {
        row.clear();
        match self.ask(call)? {
            Answer::Row(found) => {
                row.extend_from_slice(found.as_deref().unwrap_or_default());
                Ok(found.is_some())
            }
            _ => unexpected(),
        }
    }

    fn ask_rows(&mut self, call: &Call, batch: &mut RowBatch) -> Result<Option<KeyRange>> {
        batch.clear();
        match self.ask(call)? {
            Answer::Rows(rows, rest) => {
                *batch = rows;
                Ok(rest)
            }
            _ => unexpected(),
        }
    }

    fn ask_locked(&mut self, call: &Call, newest: &mut Vec<u8>) -> Result<LockedRow> {
        match self.ask(call)? {
            Answer::Locked(locked, found) => {
                if locked == LockedRow::Changed {
                    *newest = found;
                }
                Ok(locked)
            }
            _ => unexpected(),
        }
    }

    fn ask_inserted(&mut self, call: &Call) -> Result<Inserted> {
        match self.ask(call)? {
            Answer::Inserted(inserted) => Ok(inserted),
            _ => unexpected(),
        }
    }
}

impl Drop for RemoteBranch {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.borrow_mut().take() {
            self.place.connections.end(self.place.node, connection);
        }
    }
}

impl Branching for RemoteBranch {
    fn group(&self) -> GroupId {
        self.place.group.id()
    }

    fn is_here(&self) -> bool {
        false
    }

    fn has_begun(&self) -> bool {
        self.condition.term > Term(0)
    }

    fn confirm(&mut self) -> Result<()> {
        match self.has_begun() {
            true => Ok(()),
            false => self.ask_done(&Call::Confirm),
        }
    }

    fn access(&mut self) -> &mut dyn Access {
        self
    }

    fn access_ref(&self) -> &dyn Access {
        self
    }

    fn debt(&self) -> &Debt {
        &self.debt
    }

    fn set_options(&mut self, options: TxnOptions) {
        self.say(&Call::SetOptions(options));
    }

    fn begin_statement(&mut self) -> Result<()> {
        self.forget();
        self.condition.has_snapshot = true;
        self.say(&Call::BeginStatement);
        Ok(())
    }

    fn next_command(&mut self) {
        self.forget();
        self.say(&Call::NextCommand);
    }

    fn has_snapshot(&self) -> bool {
        self.condition.has_snapshot
    }

    fn expect_snapshot(&mut self) {
        self.say(&Call::ExpectSnapshot);
    }

    fn begin_to_look(&mut self, heard: Timestamp) -> Result<()> {
        self.ask_early(Call::Look(heard))
    }

    fn look(&mut self, heard: Timestamp) -> Result<Option<Timestamp>> {
        match self.ask(&Call::Look(heard))? {
            Answer::Timestamp(timestamp) => self.found = timestamp,
            _ => return unexpected(),
        }
        Ok(self.found)
    }

    fn begin_to_find(&mut self, at: Timestamp) -> Result<()> {
        match self.found == Some(at) {
            true => Ok(()),
            false => self.ask_early(Call::FindView(at)),
        }
    }

    fn find_view(&mut self, at: Timestamp) -> Result<bool> {
        if self.found == Some(at) {
            return Ok(true);
        }
        self.found = self.ask_flag(&Call::FindView(at))?.then_some(at);
        Ok(self.found.is_some())
    }

    fn take_view(&mut self) -> Result<()> {
        self.forget();
        self.condition.has_snapshot = true;
        self.say(&Call::TakeView);
        Ok(())
    }

    fn has_same_view(&mut self) -> Result<bool> {
        self.ask_flag(&Call::HasSameView)
    }

    fn give_up_snapshot(&mut self) {
        self.condition.has_snapshot = false;
        self.say(&Call::GiveUpSnapshot);
    }

    fn is_safe(&mut self) -> Result<bool> {
        self.ask_flag(&Call::IsSafe)
    }

    fn begin_to_lock(&mut self, tables: &[(TreeId, TableLock)]) -> Result<()> {
        self.ask_early(Call::LockTables(tables.to_vec()))
    }

    fn lock_tables(&mut self, tables: &[(TreeId, TableLock)]) -> Result<()> {
        let locked = match self.ask(&Call::LockTables(tables.to_vec()))? {
            Answer::Flags(locked) => locked,
            _ => return unexpected(),
        };
        for ((tree, mode), _) in tables.iter().zip(locked).filter(|(_, locked)| *locked) {
            self.note_table(*tree, *mode);
        }
        Ok(())
    }

    fn post_write(
        &mut self,
        post: Post,
        tree: TreeId,
        key: &[u8],
        write: Write<'_>,
    ) -> Result<bool> {
        let row = match write {
            Write::Insert(row) => Posted::Insert(row.to_vec()),
            Write::InsertNew(row) => Posted::InsertNew(row.to_vec()),
            Write::Update(row) => Posted::Update(row.to_vec()),
        };
        self.say_write(&Call::Post(post, tree, key.to_vec(), row))?;
        Ok(true)
    }

    fn begin_to_hear(&mut self, since: Post) -> Result<()> {
        self.ask_early(Call::Posted(since))
    }

    fn hear_posted(&mut self, since: Post) -> Result<Option<(Post, TreeId)>> {
        match self.ask(&Call::Posted(since))? {
            Answer::Taken(taken) => Ok(taken),
            _ => unexpected(),
        }
    }

    fn stake(&self) -> Stake {
        let has_posted = self.has_posted && !is_planted(Bug::PostedForgotten);
        Stake {
            has_written: has_posted || self.condition.stake.has_written,
            ..self.condition.stake
        }
    }

    fn participant(&self) -> Result<Participant> {
        Ok(Participant {
            group: self.group(),
            term: self.condition.term,
        })
    }

    fn prepare_part(mut self: Box<Self>, preparing: &Preparing) -> Result<Handed> {
        let frame = self.frame(&Call::PreparePart(preparing.clone()))?;
        let mut connection = self.connection.take().ok_or_else(lost)?;
        connection.ask(&frame);
        Ok(Handed::Asked(Asked {
            place: self.place.clone(),
            connection: Some(connection),
            debt: std::mem::take(&mut self.debt),
        }))
    }

    fn commit(mut self: Box<Self>, durability: Durability) -> Result<Debt> {
        // Nobody there has anything against it.
        if !self.stake().is_part() {
            return Ok(std::mem::take(&mut self.debt));
        }
        self.ask_last(&Call::Commit(durability))
    }

    fn into_local(self: Box<Self>) -> Result<Box<Branch>> {
        Err(Error::internal("another node leads the group of a branch"))
    }
}

impl Reading for RemoteBranch {
    fn is_far(&self, _tree: TreeId) -> bool {
        true
    }

    fn read_ahead(&mut self, tree: TreeId, keys: &[Key]) -> Result<()> {
        let rows = match self.ask(&Call::GetAll(tree, keys.to_vec()))? {
            Answer::AllRows(rows) => rows,
            _ => return unexpected(),
        };
        self.ahead.keep_read(tree, keys, rows);
        Ok(())
    }

    fn scan_ahead(&mut self, tree: TreeId, range: &KeyRange, direction: Direction) -> Result<()> {
        let limit = SCAN_BATCH_ROWS as u64;
        self.ask_early(Call::Scan(tree, range.clone(), direction, limit))
    }

    fn get(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<bool> {
        if let Some(found) = self.ahead.take_read(tree, key) {
            row.clear();
            row.extend_from_slice(found.as_deref().unwrap_or_default());
            return Ok(found.is_some());
        }
        self.ask_row(&Call::Get(tree, key.to_vec()), row)
    }

    fn get_to_lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        row.clear();
        match self.ask(&Call::GetToLock(tree, key.to_vec(), strength))? {
            Answer::RowLocked(Some((found, locked, newest))) => {
                row.extend_from_slice(&found);
                let key = key.to_vec();
                self.ahead
                    .keep_locked(tree, key, strength, (locked, newest));
                Ok(true)
            }
            Answer::RowLocked(None) => Ok(false),
            _ => unexpected(),
        }
    }

    fn scan(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        let limit = limit.min(SCAN_BATCH_ROWS);
        let call = |range: &KeyRange| Call::Scan(tree, range.clone(), direction, limit as u64);
        let rest = self.ask_rows(&call(range), batch)?;
        // Whoever reads as much as there is comes back.
        if let (Some(rest), SCAN_BATCH_ROWS) = (&rest, limit) {
            self.ask_early(call(rest))?;
        }
        Ok(rest)
    }

    fn scan_newest_in(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        let call = Call::ScanNewest(tree, range.clone(), direction, limit as u64);
        self.ask_rows(&call, batch)
    }
}

impl Locking for RemoteBranch {
    fn set_lock_timeout(&mut self, timeout: Duration) {
        self.say(&Call::SetLockTimeout(timeout));
    }

    fn lock_row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        if let Some((locked, found)) = self.ahead.take_locked(tree, key, strength) {
            if locked == LockedRow::Changed {
                *newest = found;
            }
            return Ok(locked);
        }
        self.ask_locked(&Call::LockRow(tree, key.to_vec(), strength, wait), newest)
    }

    fn lock_ahead(
        &mut self,
        tree: TreeId,
        keys: &[Key],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<()> {
        let is_new = |key: &&Key| !self.ahead.has_locked(tree, key, strength);
        let keys: Vec<_> = keys.iter().filter(is_new).cloned().collect();
        if keys.is_empty() {
            return Ok(());
        }
        let all = match self.ask(&Call::LockRows(tree, keys.clone(), strength, wait))? {
            Answer::AllLocked(all) => all,
            _ => return unexpected(),
        };
        for (key, found) in keys.into_iter().zip(all) {
            if found.0 != LockedRow::Skipped {
                self.ahead.keep_locked(tree, key, strength, found);
            }
        }
        Ok(())
    }

    fn lock_row_in_the_way(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        let call = Call::LockRowInTheWay(tree, key.to_vec(), strength);
        self.ask_locked(&call, newest)
    }

    fn lock_key(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<bool> {
        self.ask_flag(&Call::LockKey(tree, key.to_vec(), strength, wait))
    }

    fn wait_for_key(&mut self, tree: TreeId, key: &[u8], strength: RowLock) -> Result<()> {
        self.ask_done(&Call::WaitForKey(tree, key.to_vec(), strength))
    }

    fn announce(&mut self, tree: TreeId, key: &[u8], note: &[u8]) -> Result<Ticket> {
        match self.ask(&Call::Announce(tree, key.to_vec(), note.to_vec()))? {
            Answer::Ticket(ticket) => Ok(ticket),
            _ => unexpected(),
        }
    }

    fn announced(&mut self, tree: TreeId, prefix: &[u8], ticket: Ticket) -> Result<Vec<Announced>> {
        match self.ask(&Call::Announced(tree, prefix.to_vec(), ticket))? {
            Answer::Announced(all) => Ok(all),
            _ => unexpected(),
        }
    }

    fn wait_for_announced(&mut self, announced: &Announced) -> Result<()> {
        self.ask_done(&Call::WaitForAnnounced(announced.clone()))
    }

    fn withdraw(&mut self, ticket: Ticket) {
        self.say(&Call::Withdraw(ticket));
    }

    fn lock_table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<bool> {
        let is_it = |table: &(TreeId, TableLock, u32)| (table.0, table.1) == (tree, mode);
        if self.tables.iter().any(is_it) {
            return Ok(true);
        }
        let locked = self.ask_flag(&Call::LockTable(tree, mode, wait))?;
        if locked {
            self.note_table(tree, mode);
        }
        Ok(locked)
    }
}

impl Writing for RemoteBranch {
    fn insert(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        self.ask_inserted(&Call::Insert(tree, key.to_vec(), row.to_vec()))
    }

    fn insert_new(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        self.ask_inserted(&Call::InsertNew(tree, key.to_vec(), row.to_vec()))
    }

    fn update(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        self.ask_inserted(&Call::Update(tree, key.to_vec(), row.to_vec()))
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.say_write(&Call::Delete(tree, key.to_vec()))
    }

    fn note_moved(&mut self, tree: TreeId, key: &[u8]) {
        self.say(&Call::NoteMoved(tree, key.to_vec()));
    }

    fn was_moved(&self, tree: TreeId, key: &[u8]) -> Result<bool> {
        let call = Call::WasMoved(tree, key.to_vec());
        match self.exchange(&call, Wait::Interruptible)?.0? {
            Answer::Flag(flag) => Ok(flag),
            _ => unexpected(),
        }
    }

    fn is_written_by_command(&self, tree: TreeId, key: &[u8]) -> bool {
        let call = Call::IsWrittenByCommand(tree, key.to_vec());
        // Where its leader is lost nothing else succeeds either.
        let answered = self.exchange(&call, Wait::ToTheEnd);
        matches!(answered, Ok((Ok(Answer::Flag(true)), _)))
    }

    fn catalog_writes(&self) -> &[(TreeId, Key)] {
        &[]
    }
}

impl Building for RemoteBranch {
    fn build(&mut self, build: &Build) -> Result<Built> {
        match self.ask(&Call::Build(build.clone()))? {
            Answer::Built(built) => Ok(built),
            _ => unexpected(),
        }
    }
}

impl Savepoints for RemoteBranch {
    fn savepoint(&mut self) -> Savepoint {
        self.last_savepoint += 1;
        self.say(&Call::Savepoint(self.last_savepoint));
        Savepoint(self.last_savepoint)
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.forget();
        self.tables.retain(|(.., behind)| *behind < savepoint.0);
        self.say(&Call::RollbackTo(savepoint.0));
    }

    fn release(&mut self, savepoint: Savepoint) {
        self.say(&Call::Release(savepoint.0));
    }
}

impl Views for RemoteBranch {
    fn keep_view(&mut self) -> Result<ViewId> {
        self.last_view += 1;
        let number = self.last_view;
        self.ask_done(&Call::KeepView(number))?;
        Ok(ViewId(number))
    }

    fn swap_view(&mut self, view: ViewId) -> Result<()> {
        self.forget();
        self.ask_done(&Call::SwapView(view.0))
    }

    fn drop_view(&mut self, view: ViewId) {
        self.say(&Call::DropView(view.0));
    }
}
