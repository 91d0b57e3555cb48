//! Branches of other nodes' transactions, in the groups that this node leads.
//!
//! A connection has a task ([`serve`]) on a reactor of sessions. It runs one transaction after the
//! other, each in a coroutine of its own: calls come in by a mailbox, and what they are answered leaves
//! by it. A transaction ends with its commit, its prepare or [`Call::End`], with its connection, and
//! when another than the node that has begun it leads its home, since nobody can commit it then.
//!
//! ```text
//! connection ──frames──► task ──► mailbox ──► coroutine: a Branch, one call after the other
//!            ◄─────────────────── mailbox ◄──
//!              Cancel ──► interrupts the call at work
//! ```
//! # Invariants
//! - Whatever ends a transaction but a commit takes back what it has done and gives up its locks.
//! - An error that this node cannot go on after stops this node, and is a lost leader to the other.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use base::budget::Budget;
use base::coro::{self, Interrupt, Interrupts};
use base::engine::{
    Gate, Inserted, LockManager, LockWait, Post, RowBatch, Savepoint, TxnOptions, ViewId,
};
use base::env::Stream;
use base::{Debt, Durability, Error, ErrorClass, NodeId, Result, Term, TreeId};
use raft::planted::{is_planted, Bug};
use spanning::SpanningId;

use super::calls::{encode_answer, Answer, Call, Condition, Number, Posted};
use super::link::Connection;
use super::prepare::{Handed, Prepared};
use super::{Access, Branch, Branching};
use crate::engine::{KvEngine, Neighbours};
use crate::group::{not_leader, Group};

/// What a node serves branches with.
#[derive(Clone)]
pub struct Served {
    /// Its groups.
    pub groups: Arc<dyn Neighbours>,
    /// Where transactions take their memory from, if that is counted.
    pub memory: Option<Arc<Budget>>,
}

/// What a transaction's task and its coroutine hand each other.
#[derive(Default)]
struct Mailbox {
    calls: RefCell<VecDeque<Vec<Call>>>,
    answers: RefCell<Vec<Vec<u8>>>,
    /// A call is at work.
    is_at_work: Cell<bool>,
    /// Nobody waits for an answer any more.
    is_ending: Cell<bool>,
}

/// Serves the branches that a node begins on a connection, until it closes that.
///
/// # Errors
/// Whatever the stream gives; `InvalidData` where what comes in makes no sense.
pub async fn serve(
    served: Served,
    from: NodeId,
    stream: Box<dyn Stream>,
    read: Vec<u8>,
) -> io::Result<()> {
    let mut connection = Connection::over(stream, read);
    // What came in behind the end of a transaction begins the next one.
    let mut behind = VecDeque::new();
    loop {
        let first = match behind.pop_front() {
            Some(calls) => calls,
            None => match next_calls(&mut connection).await? {
                Some(calls) => calls,
                None => return Ok(()),
            },
        };
        match &first[..] {
            // What was to be ended is over.
            [Call::Cancel | Call::End] => {}
            [Call::Blockers(group, session)] => {
                let engine = served.groups.engine(*group).ok_or_else(not_leader);
                let answer = engine.map(|engine| Answer::Sessions(engine.blockers(*session)));
                connection.put(&encode_answer(&answer, &Condition::default()));
                std::future::poll_fn(|cx| connection.poll_flush(cx)).await?;
            }
            [Call::Locks(group)] => {
                let engine = served.groups.engine(*group).ok_or_else(not_leader);
                let answer = engine.map(|engine| Answer::Locks(engine.locks.infos()));
                connection.put(&encode_answer(&answer, &Condition::default()));
                std::future::poll_fn(|cx| connection.poll_flush(cx)).await?;
            }
            _ => {
                behind.push_front(first);
                behind = match converse(&served, from, &mut connection, behind).await? {
                    Some(behind) => behind,
                    // Whoever has begun it learns so by the end of the connection.
                    None => return Ok(()),
                };
            }
        }
    }
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.message().to_owned())
}

async fn next_calls(connection: &mut Connection) -> io::Result<Option<Vec<Call>>> {
    match std::future::poll_fn(|cx| connection.poll_frame(cx)).await? {
        Some(frame) => Call::decode_all(&frame).map(Some).map_err(invalid),
        None => Ok(None),
    }
}

/// One transaction, from its first frame on; what has come in behind its end, or none where it was
/// ended here.
async fn converse(
    served: &Served,
    from: NodeId,
    connection: &mut Connection,
    calls: VecDeque<Vec<Call>>,
) -> io::Result<Option<VecDeque<Vec<Call>>>> {
    let home = calls.iter().flatten().find_map(|call| match call {
        Call::Begin(_, home, _) => Some(*home),
        _ => None,
    });
    let home =
        home.ok_or_else(|| invalid(Error::corrupted("a transaction without a beginning")))?;
    let mailbox = Rc::new(Mailbox::default());
    *mailbox.calls.borrow_mut() = calls;
    let interrupts = Arc::new(match &served.memory {
        Some(budget) => Interrupts::within(budget.clone()),
        None => Interrupts::default(),
    });
    let (groups, handed) = (served.groups.clone(), mailbox.clone());
    let interrupted = interrupts.clone();
    let has_panicked = Rc::new(Cell::new(false));
    let panicked = has_panicked.clone();
    let body = move || {
        let ended = coro::catch_panic(|| transaction(&*groups, from, &handed, &interrupted));
        if let Err(panic) = ended {
            panicked.set(true);
            let error = Error::internal(panic);
            let answer = encode_answer(&Err(error), &Condition::default());
            handed.answers.borrow_mut().push(answer);
        }
    };
    let home_here = served.groups.engine(home.group);
    let mut run = pin!(coro::run(interrupts.clone(), body));
    let mut replaced = pin!(async {
        match &home_here {
            Some(engine) => is_led_elsewhere(engine.group(), from, home.term).await,
            None => std::future::pending().await,
        }
    });
    let mut closed = None;
    let (mut is_ending, mut is_over) = (false, false);
    std::future::poll_fn(|cx| {
        while closed.is_none() && !is_over {
            match connection.poll_frame(cx) {
                Poll::Ready(Ok(Some(frame))) => match Call::decode_all(&frame) {
                    Ok(calls) if calls == [Call::Cancel] => {
                        // One that comes late is for what was answered meanwhile.
                        if mailbox.has_work() {
                            mailbox.cancel_waiting();
                            interrupts.raise(Interrupt::Cancel);
                        }
                    }
                    Ok(calls) => mailbox.calls.borrow_mut().push_back(calls),
                    Err(error) => closed = Some(Err(invalid(error))),
                },
                Poll::Ready(Ok(None)) => closed = Some(Ok(())),
                Poll::Ready(Err(error)) => closed = Some(Err(error)),
                Poll::Pending => break,
            }
        }
        if !is_ending && (closed.is_some() || replaced.as_mut().poll(cx).is_ready()) {
            is_ending = true;
            mailbox.is_ending.set(true);
            interrupts.raise(Interrupt::Terminate);
        }
        is_over = is_over || run.as_mut().poll(cx).is_ready();
        for answer in mailbox.answers.borrow_mut().drain(..) {
            connection.put(&answer);
        }
        let flushed = connection.poll_flush(cx);
        if let (Poll::Ready(Err(_)), false) = (&flushed, is_over) {
            // Its end is read next, and ends the transaction.
            return Poll::Pending;
        }
        match flushed {
            _ if !is_over => Poll::Pending,
            Poll::Pending if closed.is_none() => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(closed.take().unwrap_or(Ok(()))),
        }
    })
    .await?;
    let is_ended_here = mailbox.is_ending.get() || has_panicked.get();
    Ok((!is_ended_here).then(|| mailbox.calls.take()))
}

/// Ready when another node leads a group than the one that did in a term.
async fn is_led_elsewhere(group: &Arc<Group>, node: NodeId, term: Term) {
    let is_replaced = |leader: Option<NodeId>| {
        let elsewhere = leader.is_some_and(|leader| leader != node);
        elsewhere && group.status().term > term
    };
    group.until_leadership(|now| is_replaced(now.leader)).await;
}

impl Mailbox {
    fn has_work(&self) -> bool {
        self.is_at_work.get() || !self.calls.borrow().is_empty()
    }

    /// What waits is not done any more, but it is answered.
    fn cancel_waiting(&self) {
        let mut calls = self.calls.borrow_mut();
        for call in calls.iter_mut().filter_map(|frame| frame.last_mut()) {
            if call.is_answered() {
                *call = Call::Confirm;
            }
        }
    }

    /// The calls of the next frame; none when the transaction is to end.
    async fn next(&self) -> Option<Vec<Call>> {
        std::future::poll_fn(|_| {
            // The task that puts them in runs this as well.
            if self.is_ending.get() {
                return Poll::Ready(None);
            }
            match self.calls.borrow_mut().pop_front() {
                Some(calls) => Poll::Ready(Some(calls)),
                None => Poll::Pending,
            }
        })
        .await
    }
}

/// Does what comes in, until the transaction is over.
fn transaction(groups: &dyn Neighbours, from: NodeId, mailbox: &Mailbox, interrupts: &Interrupts) {
    let mut serving = Serving {
        from,
        ..Serving::default()
    };
    loop {
        mailbox.is_at_work.set(false);
        interrupts.clear_statement();
        let calls = match coro::wait(mailbox.next()) {
            Ok(Some(calls)) => calls,
            Ok(None) => return,
            // What was to be cancelled is answered already.
            Err(_) => continue,
        };
        mailbox.is_at_work.set(true);
        for call in calls {
            if call == Call::End {
                return;
            }
            let is_answered = call.is_answered();
            let is_last = matches!(call, Call::PreparePart(_) | Call::Commit(_));
            let mut answer = serving.next(groups, call);
            if let Err(error) = &answer {
                if error.class() == ErrorClass::Node {
                    serving.stop(error);
                    answer = Err(Error::failover());
                }
            }
            if is_answered {
                let answer = encode_answer(&answer, &serving.condition());
                mailbox.answers.borrow_mut().push(answer);
            }
            if is_last {
                return;
            }
        }
    }
}

/// A transaction's branch, and what its savepoints and views are called by whoever has begun it.
#[derive(Default)]
struct Serving {
    /// The node that has begun it.
    from: NodeId,
    branch: Option<Box<Branch>>,
    engine: Option<Arc<KvEngine>>,
    /// In which its group is led; 0 where it has not begun.
    term: Term,
    savepoints: Vec<(Number, Savepoint)>,
    /// What the savepoint that was made last is called.
    last_savepoint: Number,
    views: Vec<(Number, ViewId)>,
    /// How it or the statement at work has failed, before it was asked for anything: nothing goes on but by
    /// another statement, or by going back.
    failed: Option<Error>,
    /// What was wrong with a row that nobody waited for, and behind which savepoint: nothing goes on but by
    /// going back to that or one before.
    broken: Option<(Error, Number)>,
    /// The rows that nobody waited for and that were taken; what has them; behind which savepoint.
    taken: Vec<(Post, TreeId, Number)>,
    /// What the commit rests on.
    committed: Debt,
}

fn found<T: Copy>(known: &[(Number, T)], number: Number) -> Result<T> {
    let mut known = known.iter().filter(|(name, _)| *name == number);
    let unknown = || Error::internal(format!("a branch knows nothing of {number}"));
    known.next().map(|(_, own)| *own).ok_or_else(unknown)
}

impl Serving {
    fn branch(&mut self) -> Result<&mut Branch> {
        let missing = || Error::internal("a branch that has not begun");
        self.branch.as_deref_mut().ok_or_else(missing)
    }

    fn access(&mut self) -> Result<&mut dyn Access> {
        Ok(self.branch()?.access())
    }

    /// The branch, to be committed: nothing of which nobody has heard that it is not written.
    fn take(&mut self) -> Result<Box<Branch>> {
        if !self.taken.is_empty() {
            return Err(Error::internal("nobody has asked for rows that were taken"));
        }
        let missing = || Error::internal("a branch that has not begun");
        self.branch.take().ok_or_else(missing)
    }

    /// This node cannot go on.
    fn stop(&self, error: &Error) {
        if let Some(engine) = &self.engine {
            let message = format!("a branch of another node's transaction: {error}");
            engine.group().env().stop_node(&message);
        }
    }

    /// What is known of it to whoever has begun it. What is committed needs no waiting.
    fn condition(&self) -> Condition {
        let (Some(branch), Some(engine)) = (&self.branch, &self.engine) else {
            return Condition {
                term: self.term,
                debt: self.committed.clone(),
                ..Condition::default()
            };
        };
        let mut debt = Debt::NONE;
        for part in branch.debt().groups() {
            let of_part = Debt::of(part.group, part.position);
            if !engine.is_settled(&of_part, Durability::On) {
                debt.merge(&of_part);
            }
        }
        Condition {
            term: self.term,
            debt,
            has_snapshot: branch.has_snapshot(),
            stake: branch.stake(),
        }
    }

    fn begin(&mut self, engine: Arc<KvEngine>, options: TxnOptions) -> Result<()> {
        let txn = engine.begin_branch(options)?;
        let branch = Box::new(Branch::new(engine.clone(), txn));
        self.term = branch.participant()?.term;
        self.branch = Some(branch);
        self.engine = Some(engine);
        Ok(())
    }

    /// It is over, and its group has something to write that nobody here waits for.
    fn over(&mut self, committed: Debt) {
        if let Some(engine) = self
            .engine
            .as_ref()
            .filter(|_| !is_planted(Bug::PartUncommitted))
        {
            engine.push(committed.clone());
        }
        self.committed = committed;
    }

    /// Does what it is asked; or says, instead, how it or the statement at work has failed to begin.
    fn next(&mut self, groups: &dyn Neighbours, call: Call) -> Result<Answer> {
        let begins = matches!(
            call,
            Call::Begin(..) | Call::BeginStatement | Call::TakeView
        );
        if begins || matches!(call, Call::RollbackTo(_)) {
            self.failed = None;
        }
        if let Some(error) = self.failed.as_ref().filter(|_| call.is_answered()) {
            return Err(error.clone());
        }
        let writes = matches!(call, Call::Post(..) | Call::Delete(..));
        if let Some((error, _)) = &self.broken {
            if writes || call.is_answered() {
                return Err(error.clone());
            }
        }
        let done = self.act(groups, call);
        if let Err(error) = &done {
            if begins {
                self.failed = Some(error.clone());
            }
            if writes {
                self.broken = Some((error.clone(), self.last_savepoint));
            }
        }
        done
    }

    /// What was wrong behind a savepoint is so no longer.
    fn go_back(&mut self, savepoint: Number) {
        self.broken.take_if(|(_, behind)| *behind >= savepoint);
        self.taken.retain(|(.., behind)| *behind < savepoint);
    }

    /// Writes a row that nobody waits for.
    fn post(&mut self, post: Post, (tree, key): (TreeId, &[u8]), row: &Posted) -> Result<()> {
        let written = self.access()?.write_as(tree, key, row.write())?;
        if let Inserted::Duplicate(tree) = written {
            self.taken.push((post, tree, self.last_savepoint));
        }
        Ok(())
    }

    /// The first of those that were taken, which are told with that.
    fn taken_since(&mut self, since: Post) -> Option<(Post, TreeId)> {
        let at = self.taken.partition_point(|(post, ..)| *post < since);
        let first = self.taken.drain(at..).next();
        first.map(|(post, tree, _)| (post, tree))
    }

    /// What there is to say of a part, as soon as it is on disk here, or it is known anyhow what becomes
    /// of it.
    fn prepared(&self, id: SpanningId) -> Prepared {
        let mut prepared = Prepared::default();
        let Some(group) = self.engine.as_ref().map(|engine| engine.group()) else {
            return prepared;
        };
        let mut parts = self.committed.groups();
        let Some(part) = parts.find(|part| part.group == group.id()) else {
            return prepared;
        };
        let has_flushed = || coro::wait_uninterrupted(group.has_flushed(part.position));
        if is_planted(Bug::PartUncommitted) || has_flushed() {
            let standing = group.prepared().newest();
            let part = standing.parts().find(|part| part.id == id);
            if let Some(part) = part {
                prepared.proposed = part.proposed;
                prepared.voters = group.settled_voters();
            }
        }
        prepared
    }

    fn act(&mut self, groups: &dyn Neighbours, call: Call) -> Result<Answer> {
        Ok(match call {
            Call::Begin(group, _, options) => {
                let engine = groups.engine(group).ok_or_else(not_leader)?;
                self.begin(engine, options)?;
                Answer::Done
            }
            Call::Confirm | Call::Blockers(..) | Call::Locks(_) | Call::Cancel | Call::End => {
                Answer::Done
            }
            Call::SetOptions(options) => {
                self.branch()?.set_options(options);
                Answer::Done
            }
            Call::SetLockTimeout(timeout) => {
                self.access()?.set_lock_timeout(timeout);
                Answer::Done
            }
            Call::NextCommand => {
                self.branch()?.next_command();
                Answer::Done
            }
            Call::ExpectSnapshot => {
                self.branch()?.expect_snapshot();
                Answer::Done
            }
            Call::GiveUpSnapshot => {
                self.branch()?.give_up_snapshot();
                Answer::Done
            }
            Call::Savepoint(number) => {
                let own = self.access()?.savepoint();
                self.savepoints.push((number, own));
                self.last_savepoint = number;
                Answer::Done
            }
            Call::RollbackTo(number) => {
                let own = found(&self.savepoints, number)?;
                self.access()?.rollback_to(own);
                self.go_back(number);
                self.savepoints.retain(|(name, _)| *name <= number);
                Answer::Done
            }
            Call::Release(number) => {
                let own = found(&self.savepoints, number)?;
                self.access()?.release(own);
                self.savepoints.retain(|(name, _)| *name < number);
                Answer::Done
            }
            Call::NoteMoved(tree, key) => {
                self.access()?.note_moved(tree, &key);
                Answer::Done
            }
            Call::Withdraw(ticket) => {
                self.access()?.withdraw(ticket);
                Answer::Done
            }
            Call::DropView(number) => {
                let own = found(&self.views, number)?;
                self.access()?.drop_view(own);
                self.views.retain(|(name, _)| *name != number);
                Answer::Done
            }
            Call::BeginStatement => {
                self.branch()?.begin_statement()?;
                Answer::Done
            }
            Call::Look(heard) => {
                let branch = self.branch()?;
                let shown = match branch.look(heard)? {
                    Some(at) => branch.find_view(at)?.then_some(at),
                    None => None,
                };
                Answer::Timestamp(shown)
            }
            Call::FindView(at) => Answer::Flag(self.branch()?.find_view(at)?),
            Call::TakeView => {
                self.branch()?.take_view()?;
                Answer::Done
            }
            Call::HasSameView => Answer::Flag(self.branch()?.has_same_view()?),
            Call::IsSafe => Answer::Flag(self.branch()?.is_safe()?),
            Call::KeepView(number) => {
                let own = self.access()?.keep_view()?;
                self.views.push((number, own));
                Answer::Done
            }
            Call::SwapView(number) => {
                let own = found(&self.views, number)?;
                self.access()?.swap_view(own)?;
                Answer::Done
            }
            call => return self.act_on_rows(call),
        })
    }

    fn act_on_rows(&mut self, call: Call) -> Result<Answer> {
        let mut row = Vec::new();
        Ok(match call {
            Call::Get(tree, key) => {
                let is_there = self.access()?.get(tree, &key, &mut row)?;
                Answer::Row(is_there.then_some(row))
            }
            Call::GetAll(tree, keys) => {
                let (access, mut all) = (self.access()?, Vec::with_capacity(keys.len()));
                for key in &keys {
                    let is_there = access.get(tree, key, &mut row)?;
                    all.push(is_there.then(|| std::mem::take(&mut row)));
                }
                Answer::AllRows(all)
            }
            Call::GetToLock(tree, key, strength) => {
                let access = self.access()?;
                match access.get_to_lock(tree, &key, strength, &mut row)? {
                    true => {
                        let (wait, mut newest) = (LockWait::Block, Vec::new());
                        let locked = access.lock_row(tree, &key, strength, wait, &mut newest)?;
                        Answer::RowLocked(Some((row, locked, newest)))
                    }
                    false => Answer::RowLocked(None),
                }
            }
            Call::Scan(tree, range, direction, limit) => {
                let mut batch = RowBatch::default();
                let access = self.access()?;
                let rest = access.scan(tree, &range, direction, limit as usize, &mut batch)?;
                Answer::Rows(batch, rest)
            }
            Call::ScanNewest(tree, range, direction, limit) => {
                let mut batch = RowBatch::default();
                let (access, limit) = (self.access()?, limit as usize);
                let rest = access.scan_newest_in(tree, &range, direction, limit, &mut batch)?;
                Answer::Rows(batch, rest)
            }
            Call::LockRow(tree, key, strength, wait) => {
                let access = self.access()?;
                let locked = access.lock_row(tree, &key, strength, wait, &mut row)?;
                Answer::Locked(locked, row)
            }
            Call::LockRows(tree, keys, strength, wait) => {
                let (access, mut all) = (self.access()?, Vec::with_capacity(keys.len()));
                for key in &keys {
                    let mut newest = Vec::new();
                    match access.lock_row(tree, key, strength, wait, &mut newest) {
                        Ok(locked) => all.push((locked, newest)),
                        Err(error) if all.is_empty() => return Err(error),
                        Err(error) => {
                            self.failed = Some(error);
                            break;
                        }
                    }
                }
                Answer::AllLocked(all)
            }
            Call::LockRowInTheWay(tree, key, strength) => {
                let access = self.access()?;
                let locked = access.lock_row_in_the_way(tree, &key, strength, &mut row)?;
                Answer::Locked(locked, row)
            }
            Call::LockKey(tree, key, strength, wait) => {
                Answer::Flag(self.access()?.lock_key(tree, &key, strength, wait)?)
            }
            Call::WaitForKey(tree, key, strength) => {
                self.access()?.wait_for_key(tree, &key, strength)?;
                Answer::Done
            }
            Call::Announce(tree, key, note) => {
                Answer::Ticket(self.access()?.announce(tree, &key, &note)?)
            }
            Call::Announced(tree, prefix, ticket) => {
                Answer::Announced(self.access()?.announced(tree, &prefix, ticket)?)
            }
            Call::WaitForAnnounced(announced) => {
                self.access()?.wait_for_announced(&announced)?;
                Answer::Done
            }
            Call::LockTable(tree, mode, wait) => {
                Answer::Flag(self.access()?.lock_table(tree, mode, wait)?)
            }
            Call::LockTables(tables) => {
                let access = self.access()?;
                let lock = |(tree, mode)| access.lock_table(tree, mode, LockWait::Skip);
                Answer::Flags(tables.into_iter().map(lock).collect::<Result<_>>()?)
            }
            Call::Insert(tree, key, row) => {
                Answer::Inserted(self.access()?.insert(tree, &key, &row)?)
            }
            Call::InsertNew(tree, key, row) => {
                Answer::Inserted(self.access()?.insert_new(tree, &key, &row)?)
            }
            Call::Update(tree, key, row) => {
                Answer::Inserted(self.access()?.update(tree, &key, &row)?)
            }
            Call::Delete(tree, key) => {
                self.access()?.delete(tree, &key)?;
                Answer::Done
            }
            Call::Post(post, tree, key, row) => {
                self.post(post, (tree, &key), &row)?;
                Answer::Done
            }
            Call::Posted(since) => Answer::Taken(self.taken_since(since)),
            Call::WasMoved(tree, key) => Answer::Flag(self.access()?.was_moved(tree, &key)?),
            Call::IsWrittenByCommand(tree, key) => {
                Answer::Flag(self.access()?.is_written_by_command(tree, &key))
            }
            Call::Build(build) => Answer::Built(self.access()?.build(&build)?),
            Call::PreparePart(preparing) => {
                if let Some(engine) = &self.engine {
                    engine.group().need(self.from);
                }
                match self.take()?.prepare_part(&preparing)? {
                    Handed::Appended(debt) => self.over(debt),
                    Handed::Asked(_) => return Err(Error::internal("a branch of a branch")),
                }
                Answer::Prepared(self.prepared(preparing.id))
            }
            Call::Commit(durability) => {
                let committed = self.take()?.commit(durability)?;
                self.over(committed);
                Answer::Done
            }
            _ => return Err(Error::internal("a call that is none of rows")),
        })
    }
}
