//! Output and its debt: what a session says is held until what it rests on can no longer vanish.
//!
//! Output is a sequence of *chunks*, each a run of whole messages with the debt that it had when it
//! was made: positions in logs, by level (DESIGN, sections 3.6 and 4). Chunks leave in order; the
//! first that is not settled holds those behind it, whatever they owe.
//!
//! ```text
//!   written    open                held
//!  ─────────┬───────────┬────────────────────┬──────────────────────────┐
//!   gone    │ may leave │ rows, owe 17 at on │ tag, owes 21 at on │ … Z │
//!  ─────────┴───────────┴────────────────────┴──────────────────────────┘
//!                       ▲ the gate           a cycle ends with ReadyForQuery
//! ```
//!
//! A *cycle* is what one Query, or everything up to one Sync, is answered with. When a debt cannot
//! be paid (a failover took it back, a cancel gives the wait up), the rest of the cycle is what has
//! to be replaced: an error stands in its place, and the cycle's ReadyForQuery stays.
//!
//! # Invariants
//! - `written <= open <= bytes.len()`, `written <= due`, `due <= open`.
//! - The held chunks are the bytes from `open` to the end, without gaps.
//! - A chunk never spans two cycles.
//!
//! # What it leaves out
//! It knows no clock and no engine: whoever drives it says what has settled.

use std::collections::VecDeque;

use base::engine::Gate;
use base::error::{Error, ErrorClass, SqlState};
use base::{Debt, Durability, GroupId, Term, Xid};

use crate::backend::{put_error, put_notice, Backend, Severity, TransactionStatus};

/// Open output leaves without waiting for the end of its cycle from this size on.
const WRITE_BYTES_MIN: usize = 8 << 10;

/// Memory above this is given back once everything has left, and written bytes in front of what
/// is held are dropped once there are so many.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// What output rests on, by level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owes {
    first: Option<(Debt, Durability)>,
    rest: Vec<(Debt, Durability)>,
}

impl Owes {
    /// Rests on nothing.
    pub const NOTHING: Owes = Owes {
        first: None,
        rest: Vec::new(),
    };

    /// Adds a debt; whether that changed anything.
    pub fn add(&mut self, debt: &Debt, durability: Durability) -> bool {
        if debt.is_none() {
            return false;
        }
        let mut known = self.first.iter_mut().chain(&mut self.rest);
        if let Some((known, _)) = known.find(|(_, level)| *level == durability) {
            if known == debt {
                return false;
            }
            known.merge(debt);
            return true;
        }
        let part = (debt.clone(), durability);
        match self.first {
            None => self.first = Some(part),
            Some(_) => self.rest.push(part),
        }
        true
    }

    /// Whether nothing is waited for.
    pub fn is_nothing(&self) -> bool {
        self.first.is_none()
    }

    /// The debts, one for each level.
    pub fn iter(&self) -> impl Iterator<Item = &(Debt, Durability)> {
        self.first.iter().chain(&self.rest)
    }

    /// The first debt that has not settled.
    pub fn unsettled(
        &self,
        mut settled: impl FnMut(&Debt, Durability) -> bool,
    ) -> Option<&(Debt, Durability)> {
        self.iter().find(|(debt, level)| !settled(debt, *level))
    }

    /// Whether every debt of `other` is owed here too.
    fn covers(&self, other: &Owes) -> bool {
        other.iter().all(|(debt, level)| {
            self.iter().any(|(own, own_level)| {
                let mut merged = own.clone();
                merged.merge(debt);
                own_level == level && merged == *own
            })
        })
    }
}

/// Whether all of this was made under one term of each group, so that what takes back the first
/// takes back the others as well.
fn of_one_history<'a>(owes: impl Iterator<Item = &'a Owes>) -> bool {
    let mut terms: Vec<(GroupId, Term)> = Vec::new();
    for part in owes
        .flat_map(Owes::iter)
        .flat_map(|(debt, _)| debt.groups())
    {
        match terms.iter().find(|(group, _)| *group == part.group) {
            Some((_, term)) if *term != part.position.term => return false,
            Some(_) => {}
            None => terms.push((part.group, part.position.term)),
        }
    }
    true
}

/// What a piece of output is, as far as its debt is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Owes nothing of its own: the protocol's own answers, errors that the engine raised itself,
    /// tags without rows inside a block.
    Free,
    /// Says that something was done: a tag, ReadyForQuery.
    Tag,
    /// Shows something: rows, notices, errors.
    Shown,
}

#[derive(Debug)]
struct Chunk {
    bytes: usize,
    owes: Owes,
    /// Which of the session's debts `owes` is, so that comparing is cheap.
    version: u64,
    content: Content,
    /// Whether a commit record of the session's own is among what it rests on.
    commits: bool,
    /// What that commit returned, the newest if there are several.
    commit: Debt,
    /// Whether it should leave as soon as it may.
    due: bool,
    cycle_end: Option<TransactionStatus>,
    /// What goes before the cycle's end, whatever stands for the rest of it.
    note: Vec<u8>,
}

/// What became of held output whose wait failed or was given up.
#[derive(Debug)]
pub enum Undone {
    /// It may leave, after a warning.
    Released,
    /// An error stands in its place. If the session is still in what was replaced, its transaction
    /// must fail.
    Replaced {
        /// Whether it is.
        session_fails: bool,
    },
    /// Nothing true can be said any more: the connection must close with this.
    Close(Error),
    /// Nobody knows what became of the session's own commit: the connection must close, and say
    /// which.
    Unknown(Debt),
}

/// The output of one session.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    written: usize,
    open: usize,
    due: usize,
    chunks: VecDeque<Chunk>,
    owes: Owes,
    version: u64,
    commits: bool,
    /// What the newest commit of the session's own returned.
    last_commit: Debt,
    /// How many commits there were.
    commit_count: u64,
    /// The rest of this cycle was replaced by an error.
    replaced: bool,
    closed: bool,
}

impl Output {
    /// What follows, until the end of the message, rests on this too.
    pub fn owe(&mut self, debt: &Debt, durability: Durability) {
        if self.owes.add(debt, durability) {
            self.version += 1;
        }
    }

    /// What follows, until the end of the message, rests on a commit of the session's own.
    pub fn committed(&mut self, commit: &Debt) {
        self.commits = true;
        self.commit_count += 1;
        self.last_commit.clone_from(commit);
        self.version += 1;
    }

    /// The message has been answered; the next begins without debt.
    pub fn end_message(&mut self) {
        if !self.owes.is_nothing() || self.commits {
            self.owes = Owes::NOTHING;
            self.commits = false;
            self.version += 1;
        }
    }

    /// Appends one or more whole messages.
    pub fn push(&mut self, content: Content, write: impl FnOnce(&mut Vec<u8>)) {
        let appended = self.try_push(content, |bytes| {
            write(bytes);
            Ok(())
        });
        debug_assert!(appended.is_ok());
    }

    /// Appends what `write` writes, or nothing if it fails.
    ///
    /// # Errors
    /// That of `write`.
    pub fn try_push(
        &mut self,
        content: Content,
        write: impl FnOnce(&mut Vec<u8>) -> base::Result<()>,
    ) -> base::Result<()> {
        /// Takes back what was appended unless it stays, also when `write` panics.
        struct Appended<'a> {
            bytes: &'a mut Vec<u8>,
            start: usize,
            stays: bool,
        }
        impl Drop for Appended<'_> {
            fn drop(&mut self) {
                if !self.stays {
                    self.bytes.truncate(self.start);
                }
            }
        }
        let start = self.bytes.len();
        let mut appended = Appended {
            bytes: &mut self.bytes,
            start,
            stays: false,
        };
        write(appended.bytes)?;
        appended.stays = !(self.replaced || self.closed);
        drop(appended);
        if self.bytes.len() > start {
            self.account(self.bytes.len() - start, content);
        }
        Ok(())
    }

    fn account(&mut self, bytes: usize, content: Content) {
        let free = content == Content::Free || self.owes.is_nothing();
        let Some(last) = self.chunks.back_mut() else {
            if free {
                self.open += bytes;
            } else {
                self.hold(bytes, content);
            }
            return;
        };
        let same =
            last.version == self.version && (last.content == content || content == Content::Tag);
        if last.cycle_end.is_none() && (free || same) {
            last.bytes += bytes;
        } else if free {
            self.hold_free(bytes);
        } else {
            self.hold(bytes, content);
        }
    }

    fn hold(&mut self, bytes: usize, content: Content) {
        self.chunks.push_back(Chunk {
            bytes,
            owes: self.owes.clone(),
            version: self.version,
            content,
            commits: self.commits,
            commit: match self.commits {
                true => self.last_commit.clone(),
                false => Debt::NONE,
            },
            due: false,
            cycle_end: None,
            note: Vec::new(),
        });
    }

    /// Begins a chunk of a new cycle that owes nothing but stands behind others.
    fn hold_free(&mut self, bytes: usize) {
        self.chunks.push_back(Chunk {
            bytes,
            owes: Owes::NOTHING,
            version: u64::MAX,
            content: Content::Free,
            commits: false,
            commit: Debt::NONE,
            due: false,
            cycle_end: None,
            note: Vec::new(),
        });
    }

    /// What has been appended should leave as soon as it may.
    pub fn flush(&mut self) {
        match self.chunks.back_mut() {
            Some(last) => last.due = true,
            None => self.due = self.open,
        }
    }

    /// Ends a cycle with ReadyForQuery.
    pub fn end_cycle(&mut self, status: TransactionStatus) {
        self.end_cycle_with(status, Vec::new());
    }

    /// The same, with a message before it that stays whatever an error stands for.
    pub fn end_cycle_with(&mut self, status: TransactionStatus, note: Vec<u8>) {
        // Behind an error that stands for the cycle there is nothing left to wait for.
        let content = match std::mem::take(&mut self.replaced) {
            true => Content::Free,
            false => Content::Tag,
        };
        self.push(content, |out| {
            out.extend_from_slice(&note);
            Backend::ReadyForQuery(status).encode(out);
        });
        self.coalesce();
        if let Some(last) = self.chunks.back_mut() {
            last.cycle_end = Some(status);
            last.note = note;
        }
        self.flush();
    }

    /// Joins the tags of the cycle that ends, where waiting for the last is waiting for all.
    fn coalesce(&mut self) {
        while let [.., before, last] = self.chunks.make_contiguous() {
            let joins = before.cycle_end.is_none()
                && !before.due
                && before.content != Content::Shown
                && before.commits <= last.commits
                && last.owes.covers(&before.owes);
            if !joins {
                return;
            }
            last.bytes += before.bytes;
            let at = self.chunks.len() - 2;
            self.chunks.remove(at);
        }
    }

    /// Opens the gate as far as `settled` allows; whether anything may leave that could not before.
    pub fn open(&mut self, mut settled: impl FnMut(&Debt, Durability) -> bool) -> bool {
        let before = self.open;
        while let Some(front) = self.chunks.front() {
            if front.owes.unsettled(&mut settled).is_some() {
                break;
            }
            self.open_front();
        }
        self.open > before
    }

    fn open_front(&mut self) {
        if let Some(front) = self.chunks.pop_front() {
            self.open += front.bytes;
            if front.due {
                self.due = self.open;
            }
        }
    }

    /// What the first held chunk rests on.
    pub fn waits_for(&self) -> Option<&Owes> {
        self.chunks.front().map(|front| &front.owes)
    }

    /// Whether what is held next rests on nothing but what was read.
    pub fn waits_for_read(&self) -> bool {
        !self.chunks.is_empty() && !self.rest_of_cycle().any(|chunk| chunk.commits)
    }

    /// The first commit of the session's own on which something rests that is held, as it was
    /// returned: were the connection to close now, its client would not know the outcome.
    pub fn holds_outcome(&self) -> Option<&Debt> {
        let mut commits = self.chunks.iter().filter(|chunk| chunk.commits);
        commits.next().map(|chunk| &chunk.commit)
    }

    fn unknown(&self) -> Undone {
        Undone::Unknown(self.holds_outcome().cloned().unwrap_or_default())
    }

    /// Bytes that have not left.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// How many commits of the session's own there were.
    pub fn commit_count(&self) -> u64 {
        self.commit_count
    }

    /// Whether everything said since nothing was pending could still be left unsaid.
    pub fn is_unheard(&self) -> bool {
        self.written == 0 && !self.replaced && !self.closed
    }

    /// Leaves that unsaid.
    pub fn unsay(&mut self) {
        assert!(self.is_unheard(), "{} bytes were heard", self.written);
        self.bytes.clear();
        self.chunks.clear();
        (self.open, self.due) = (0, 0);
        self.end_message();
    }

    /// What should be written now.
    pub fn writable(&self) -> &[u8] {
        let end = if self.open - self.written >= WRITE_BYTES_MIN {
            self.open
        } else {
            self.due.max(self.written)
        };
        &self.bytes[self.written..end]
    }

    /// The first `count` bytes of [`Output::writable`] have left.
    pub fn wrote(&mut self, count: usize) {
        self.written += count;
        assert!(
            self.written <= self.open,
            "{} bytes written, {} open",
            self.written,
            self.open
        );
        self.due = self.due.max(self.written);
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES_MAX);
            (self.written, self.open, self.due) = (0, 0, 0);
        } else if self.written > KEPT_BYTES_MAX {
            self.bytes.drain(..self.written);
            self.open -= self.written;
            self.due -= self.written;
            self.written = 0;
        }
    }

    /// The wait of the first held chunk has failed.
    pub fn fail(&mut self, error: &Error) -> Undone {
        if error.class() != ErrorClass::Engine {
            return Undone::Close(error.clone());
        }
        let Some(front) = self.chunks.front() else {
            return Undone::Replaced {
                session_fails: false,
            };
        };
        let commits: Vec<_> = self
            .rest_of_cycle()
            .filter(|chunk| chunk.commits)
            .map(|chunk| &chunk.owes)
            .collect();
        let front = std::iter::once(&front.owes);
        if !commits.is_empty() && !of_one_history(commits.into_iter().chain(front)) {
            return self.unknown();
        }
        self.replace(error)
    }

    /// Whoever waits for the first held chunk gives up, because of `error` (57014). `settled` says
    /// what is durable where.
    pub fn cancel(
        &mut self,
        error: &Error,
        mut settled: impl FnMut(&Debt, Durability) -> bool,
    ) -> Undone {
        if !self.rest_of_cycle().any(|chunk| chunk.commits) {
            return self.replace(error);
        }
        let shown = self
            .rest_of_cycle()
            .any(|chunk| chunk.content == Content::Shown);
        let local = self.rest_of_cycle().flat_map(|chunk| chunk.owes.iter());
        let local = local
            .map(|(debt, level)| (debt, (*level).min(Durability::Local)))
            .all(|(debt, level)| settled(debt, level));
        if shown || !local {
            return self.unknown();
        }
        let mut warning = Vec::new();
        put_notice(&mut warning, Severity::Warning, &wait_canceled());
        let count = self.rest_of_cycle().count();
        self.bytes
            .splice(self.open..self.open, warning.iter().copied());
        self.open += warning.len();
        for _ in 0..count {
            self.open_front();
        }
        Undone::Released
    }

    /// Puts an error in the place of what is held of the first cycle.
    fn replace(&mut self, error: &Error) -> Undone {
        let count = self.rest_of_cycle().count();
        let bytes: usize = self.rest_of_cycle().map(|chunk| chunk.bytes).sum();
        let end = self.rest_of_cycle().find_map(|chunk| chunk.cycle_end);
        let others_follow = self.chunks.len() > count || self.bytes.len() > self.open + bytes;
        if others_follow && end.is_some_and(|status| status != TransactionStatus::Idle) {
            let class = ErrorClass::Session;
            return Undone::Close(Error::of_class(class, error.state(), error.message()));
        }
        let mut instead = Vec::new();
        put_error(&mut instead, Severity::Error, error);
        let end = end.map(|status| match status {
            TransactionStatus::Idle => TransactionStatus::Idle,
            _ => TransactionStatus::Failed,
        });
        match end {
            Some(status) => {
                self.rest_of_cycle()
                    .for_each(|chunk| instead.extend_from_slice(&chunk.note));
                Backend::ReadyForQuery(status).encode(&mut instead);
            }
            None => self.replaced = true,
        }
        self.bytes
            .splice(self.open..self.open + bytes, instead.iter().copied());
        self.chunks.drain(..count);
        self.open += instead.len();
        self.due = self.open;
        Undone::Replaced {
            session_fails: end != Some(TransactionStatus::Idle),
        }
    }

    /// Discards what is held and ends with an error; nothing can follow.
    pub fn close(&mut self, error: &Error) {
        if self.closed {
            return;
        }
        self.closed = true;
        self.bytes.truncate(self.open);
        self.chunks.clear();
        let severity = Severity::of(error.class()).max(Severity::Fatal);
        put_error(&mut self.bytes, severity, error);
        self.open = self.bytes.len();
        self.due = self.open;
    }

    /// Discards everything: nobody reads it.
    pub fn discard(&mut self) {
        *self = Output {
            closed: true,
            ..Output::default()
        };
    }

    fn rest_of_cycle(&self) -> impl Iterator<Item = &Chunk> {
        let mut ended = false;
        self.chunks
            .iter()
            .take_while(move |chunk| !std::mem::replace(&mut ended, chunk.cycle_end.is_some()))
    }
}

/// Whether a debt has settled, as an engine sees it.
pub fn settled_by(gate: &dyn Gate) -> impl FnMut(&Debt, Durability) -> bool + '_ {
    |debt, durability| gate.is_settled(debt, durability)
}

/// FATAL 08007, with what the client needs to ask later.
pub fn outcome_unknown(xid: Option<Xid>) -> Error {
    let named = match xid {
        Some(xid) => format!("The commit record of transaction {xid} is in the log"),
        None => "Its commit record is in the log".to_owned(),
    };
    let error = Error::of_class(
        ErrorClass::Session,
        SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
        "the outcome of the transaction is unknown",
    )
    .with_detail(format!(
        "{named}, but the connection ended before it was known to be durable."
    ));
    match xid {
        Some(xid) => error.with_hint(format!("Later, txid_status({xid}) says what became of it.")),
        None => error,
    }
}

/// What PostgreSQL says when a wait for standbys is cancelled.
fn wait_canceled() -> Error {
    Error::new(
        SqlState::WARNING,
        "canceling wait for synchronous replication due to user request",
    )
    .with_detail(
        "The transaction has already committed locally, but might not have been replicated to the standby.",
    )
}
