//! A branch in a group that another node leads, as its transaction's node has it.
//!
//! Each step is a call on a connection, whose answer the statement waits for; what nobody has to answer
//! ([`Call::is_answered`]) goes along with the next call. After each, the branch's debt is known here:
//! what is committed already is none, so that nobody has to hear of it again from the group's log.
//!
//! ```text
//! insert ──► NextCommand, Insert ──► n2 … waits for a lock there
//!   │            a second later: does whoever has it wait for this session?  ([`Circles`])  40P01
//!   │            cancelled, timed out, terminated: Cancel ──► n2
//!   ◄─────────── an answer; or another leads the group, or the connection breaks: 40001
//! ```
//! # Invariants
//! - A branch ends with its connection, and with the leader that has begun it: after that everything is
//!   40001, and what was done there is taken back.
//! - What was prepared is in the group's log, and ends with the transaction alone.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::coro;
use base::engine::{
    Announced, Build, Building, Built, Direction, Inserted, LockInfo, LockWait, LockedRow, Locking,
    Reading, RowBatch, RowKey, RowLock, Savepoint, Savepoints, TableLock, Ticket, TxnOptions,
    ViewId, Views, Writing,
};
use base::env::sleep;
use base::{
    Debt, Durability, Error, GroupId, Key, KeyRange, NodeId, Result, Term, Timestamp, TreeId,
};
use spanning::Participant;

use super::calls::{check_fits, decode_answer, Answer, Call, Condition};
use super::link::{Connection, Connections};
use super::prepare::{Asked, Handed, Preparing};
use super::{Access, Branch, Branching, Stake};
use crate::group::Group;
use crate::locks::{deadlock_detected_elsewhere, DEADLOCK_TIMEOUT};

/// Who has been told to stop waiting says so within this, or is given up.
const CANCEL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Finds circles of sessions that wait for one another at several nodes.
pub(in super::super) trait Circles {
    /// Whether a session waits, in the end, for itself, and is the one of the circle to give up.
    ///
    /// # Errors
    /// The interrupt that ended the search.
    fn is_victim(&self) -> Result<bool>;
}

/// Where a group is led.
#[derive(Clone)]
pub(in super::super) struct Place {
    /// The group, as this node has it.
    pub group: Arc<Group>,
    /// The node that leads it.
    pub node: NodeId,
    /// The connections to others.
    pub connections: Arc<Connections>,
}

/// A branch in a group that another node leads.
pub(in super::super) struct RemoteBranch {
    place: Place,
    circles: Box<dyn Circles>,
    /// None once it is over or lost.
    connection: RefCell<Option<Connection>>,
    /// What goes along with the next call.
    posted: RefCell<Vec<u8>>,
    debt: Debt,
    condition: Condition,
    /// At which timestamp it has found what is shown.
    found: Option<Timestamp>,
    last_savepoint: u32,
    last_view: u32,
}

/// The branch's leader, or the connection to it, was lost.
fn lost() -> Error {
    Error::failover()
}

pub(super) fn unexpected<T>() -> Result<T> {
    Err(Error::internal(
        "a branch of another group answers something else",
    ))
}

/// What ended the wait for an answer.
enum Woken {
    Answer(io::Result<Vec<u8>>),
    Lost,
    Check,
}

/// How an answer is waited for.
enum Wait<'a> {
    /// Whatever is said to the session meanwhile.
    ToTheEnd,
    /// As long as the session may wait.
    With(&'a dyn Circles),
}

impl Place {
    /// Ready when this is not the group's leader any more, as far as is known here.
    async fn lost(&self) {
        let node = Some(self.node);
        self.group.until_leadership(|now| now.leader != node).await;
    }

    /// A connection, idle or new.
    fn connected(&self) -> Result<Connection> {
        if let Some(idle) = self.connections.take(self.node) {
            return Ok(idle);
        }
        let connected = coro::wait(self.connections.connect(self.node))?;
        connected.map_err(|_| lost())
    }

    /// Sends a frame and waits for its answer. The connection is gone if anything but an answer ends
    /// the wait.
    fn exchange(
        &self,
        connection: &mut Option<Connection>,
        frame: &[u8],
        wait: Wait<'_>,
    ) -> Result<(Result<Answer>, Condition)> {
        connection.as_mut().ok_or_else(lost)?.put(frame);
        self.answer(connection, wait)
    }

    /// The answer to the last thing that is said on a connection, which is kept for others then.
    ///
    /// # Errors
    /// 40001 when it does not come.
    pub(super) fn last_answer(
        &self,
        connection: &mut Option<Connection>,
    ) -> Result<(Result<Answer>, Condition)> {
        let answer = self.answer(connection, Wait::ToTheEnd)?;
        if let Some(connection) = connection.take() {
            self.connections.give_back(self.node, connection);
        }
        Ok(answer)
    }

    /// Waits for the answer to what was sent, as [`Place::exchange`].
    fn answer(
        &self,
        connection: &mut Option<Connection>,
        mut wait: Wait<'_>,
    ) -> Result<(Result<Answer>, Condition)> {
        let mut at_work = connection.take().ok_or_else(lost)?;
        let env = self.group.env().clone();
        let mut check = sleep(&*env, DEADLOCK_TIMEOUT);
        let mut is_lost = pin!(self.lost());
        loop {
            let woken = std::future::poll_fn(|cx| {
                if let Poll::Ready(answer) = at_work.poll_answer(cx) {
                    return Poll::Ready(Woken::Answer(answer));
                }
                if is_lost.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Woken::Lost);
                }
                check.as_mut().poll(cx).map(|()| Woken::Check)
            });
            let woken = match &wait {
                Wait::ToTheEnd => coro::wait_uninterrupted(woken),
                Wait::With(_) => match coro::wait(woken) {
                    Ok(woken) => woken,
                    Err(interrupt) => {
                        *connection = self.cancel(at_work);
                        return Err(interrupt.into());
                    }
                },
            };
            match (woken, &mut wait) {
                (Woken::Answer(Ok(answer)), _) => {
                    let decoded = decode_answer(&answer).map_err(|_| lost())?;
                    *connection = Some(at_work);
                    return Ok(decoded);
                }
                (Woken::Answer(Err(_)) | Woken::Lost, _) => return Err(lost()),
                (Woken::Check, Wait::ToTheEnd) => check = sleep(&*env, DEADLOCK_TIMEOUT),
                (Woken::Check, Wait::With(circles)) => {
                    match circles.is_victim() {
                        Ok(false) => check = sleep(&*env, DEADLOCK_TIMEOUT),
                        Ok(true) => {
                            *connection = self.cancel(at_work);
                            return Err(deadlock_detected_elsewhere());
                        }
                        Err(error) => {
                            *connection = self.cancel(at_work);
                            return Err(error);
                        }
                    };
                }
            }
        }
    }

    /// Has the other side stop what it does, and waits until it has; none if it does not.
    fn cancel(&self, mut connection: Connection) -> Option<Connection> {
        let mut frame = Vec::new();
        Call::Cancel.encode(&mut frame);
        connection.put(&frame);
        let mut limit = sleep(&**self.group.env(), CANCEL_WAIT_MAX);
        let mut is_lost = pin!(self.lost());
        let stopped = std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = connection.poll_answer(cx) {
                return Poll::Ready(answer.is_ok());
            }
            if is_lost.as_mut().poll(cx).is_ready() {
                return Poll::Ready(false);
            }
            limit.as_mut().poll(cx).map(|()| false)
        });
        coro::wait_uninterrupted(stopped).then_some(connection)
    }
}

/// Asks another node something that belongs to no transaction.
fn ask_alone(place: &Place, call: &Call) -> Result<Answer> {
    let mut frame = Vec::new();
    call.encode(&mut frame);
    let mut connection = place.connected()?;
    connection.put(&frame);
    let (answer, _) = place.last_answer(&mut Some(connection))?;
    answer
}

/// For whom a session waits in a group that another node leads.
///
/// # Errors
/// As a branch.
pub(in super::super) fn ask_blockers(
    place: &Place,
    session: base::SessionId,
) -> Result<Vec<base::SessionId>> {
    match ask_alone(place, &Call::Blockers(place.group.id(), session))? {
        Answer::Sessions(sessions) => Ok(sessions),
        _ => unexpected(),
    }
}

/// The locks in a group that another node leads.
///
/// # Errors
/// As a branch.
pub(in super::super) fn ask_locks(place: &Place) -> Result<Vec<LockInfo>> {
    match ask_alone(place, &Call::Locks(place.group.id()))? {
        Answer::Locks(infos) => Ok(infos),
        _ => unexpected(),
    }
}

impl RemoteBranch {
    /// Begins one, of a session whose node leads the first group in `home`. Whether it has begun, the
    /// answer to the first call tells.
    ///
    /// # Errors
    /// 40001 where that node cannot be reached.
    pub fn begin(
        place: Place,
        home: Term,
        options: TxnOptions,
        circles: Box<dyn Circles>,
    ) -> Result<RemoteBranch> {
        let begin = Call::Begin(place.group.id(), home, options);
        let branch = RemoteBranch {
            connection: RefCell::new(Some(place.connected()?)),
            place,
            circles,
            posted: RefCell::default(),
            debt: Debt::NONE,
            condition: Condition::default(),
            found: None,
            last_savepoint: 0,
            last_view: 0,
        };
        branch.post(&begin);
        Ok(branch)
    }

    /// Says what nobody has to answer.
    fn post(&self, call: &Call) {
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

    fn exchange(&self, call: &Call, wait: Wait<'_>) -> Result<(Result<Answer>, Condition)> {
        let frame = self.frame(call)?;
        let mut connection = self.connection.borrow_mut();
        self.place.exchange(&mut connection, &frame, wait)
    }

    fn ask(&mut self, call: &Call) -> Result<Answer> {
        let (answer, condition) = self.exchange(call, Wait::With(&*self.circles))?;
        self.debt.merge(&condition.debt);
        self.condition = condition;
        answer
    }

    /// The last thing that it is asked: there is nothing to take back then.
    fn ask_last(&mut self, call: &Call) -> Result<Debt> {
        let frame = self.frame(call)?;
        let connection = self.connection.get_mut();
        connection.as_mut().ok_or_else(lost)?.put(&frame);
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
        self.post(&Call::SetOptions(options));
    }

    fn begin_statement(&mut self) -> Result<()> {
        self.condition.has_snapshot = true;
        self.post(&Call::BeginStatement);
        Ok(())
    }

    fn next_command(&mut self) {
        self.post(&Call::NextCommand);
    }

    fn has_snapshot(&self) -> bool {
        self.condition.has_snapshot
    }

    fn expect_snapshot(&mut self) {
        self.post(&Call::ExpectSnapshot);
    }

    fn look(&mut self, heard: Timestamp) -> Result<Option<Timestamp>> {
        match self.ask(&Call::Look(heard))? {
            Answer::Timestamp(timestamp) => self.found = timestamp,
            _ => return unexpected(),
        }
        Ok(self.found)
    }

    fn find_view(&mut self, at: Timestamp) -> Result<bool> {
        if self.found == Some(at) {
            return Ok(true);
        }
        self.found = self.ask_flag(&Call::FindView(at))?.then_some(at);
        Ok(self.found.is_some())
    }

    fn take_view(&mut self) -> Result<()> {
        self.condition.has_snapshot = true;
        self.post(&Call::TakeView);
        Ok(())
    }

    fn has_same_view(&mut self) -> Result<bool> {
        self.ask_flag(&Call::HasSameView)
    }

    fn give_up_snapshot(&mut self) {
        self.condition.has_snapshot = false;
        self.post(&Call::GiveUpSnapshot);
    }

    fn is_safe(&mut self) -> Result<bool> {
        self.ask_flag(&Call::IsSafe)
    }

    fn stake(&self) -> Stake {
        self.condition.stake
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
        connection.send(&frame);
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
    fn get(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<bool> {
        self.ask_row(&Call::Get(tree, key.to_vec()), row)
    }

    fn get_to_lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        self.ask_row(&Call::GetToLock(tree, key.to_vec(), strength), row)
    }

    fn scan(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        let call = Call::Scan(tree, range.clone(), direction, limit as u64);
        self.ask_rows(&call, batch)
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
        self.post(&Call::SetLockTimeout(timeout));
    }

    fn lock_row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        self.ask_locked(&Call::LockRow(tree, key.to_vec(), strength, wait), newest)
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
        self.post(&Call::Withdraw(ticket));
    }

    fn lock_table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<bool> {
        self.ask_flag(&Call::LockTable(tree, mode, wait))
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
        self.ask_done(&Call::Delete(tree, key.to_vec()))
    }

    fn note_moved(&mut self, tree: TreeId, key: &[u8]) {
        self.post(&Call::NoteMoved(tree, key.to_vec()));
    }

    fn was_moved(&self, tree: TreeId, key: &[u8]) -> Result<bool> {
        let call = Call::WasMoved(tree, key.to_vec());
        match self.exchange(&call, Wait::With(&*self.circles))?.0? {
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
        let key = build.rekeyed.as_ref().map(|rekeyed| &rekeyed.key);
        if matches!(key, Some(RowKey::Numbers(_))) {
            let what = "numbering the rows of a table whose group another node leads";
            return Err(Error::unsupported(what));
        }
        match self.ask(&Call::Build(build.clone()))? {
            Answer::Built(built) => Ok(built),
            _ => unexpected(),
        }
    }
}

impl Savepoints for RemoteBranch {
    fn savepoint(&mut self) -> Savepoint {
        self.last_savepoint += 1;
        self.post(&Call::Savepoint(self.last_savepoint));
        Savepoint(self.last_savepoint)
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.post(&Call::RollbackTo(savepoint.0));
    }

    fn release(&mut self, savepoint: Savepoint) {
        self.post(&Call::Release(savepoint.0));
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
        self.ask_done(&Call::SwapView(view.0))
    }

    fn drop_view(&mut self, view: ViewId) {
        self.post(&Call::DropView(view.0));
    }
}
