//! Scratch space for statements: what sorts, joins, groupings and kept rows do not hold in memory.
//!
//! ```text
//!  session's thread          a thread for pages            statements.scratch
//!  write(bytes) ──────────►  Scratch::write   ──────────►  ▪▪▪▪
//!      waits    ◄──────────  the block
//! ```
//! As what a transaction writes ([`storage::Scratch`]), it lies in one file of the group's directory,
//! which is removed when the node starts and becomes shorter when its end is free. The disk may keep a
//! reader or a writer waiting, so both happen on the reactors for pages, and the session's thread goes
//! on with others meanwhile.
//!
//! # Invariants
//! - A statement that is ended while it waits leaves nothing behind: the task that still writes for it
//!   drops the block.
//!
//! # What it leaves out
//! One block at a time is written or read for a statement: nothing is read ahead, which the system does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use base::coro;
use base::engine::{TempBlock, TempSpace};
use base::env::{Env, LocalBoxFuture, Reactor, PAGE_REACTORS};
use base::sync::{Event, Mutex};
use base::Result;
use storage::{Run, Scratch};

/// The scratch space of a node's statements.
pub(crate) struct StatementScratch {
    disk: Arc<Threads>,
    scratch: Arc<Scratch>,
}

/// On which threads blocks are read and written.
struct Threads {
    env: Arc<dyn Env>,
    turn: AtomicUsize,
}

/// What another thread answers.
struct Answer<T> {
    value: Mutex<Option<T>>,
    is_there: Event,
}

impl Threads {
    /// Does something on another thread, and waits for it.
    ///
    /// # Errors
    /// The pending interrupt; what was begun comes to its end nevertheless.
    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        if !coro::inside() {
            return Ok(job());
        }
        let answer = Arc::new(Answer {
            value: Mutex::new(None),
            is_there: Event::new(),
        });
        let to = answer.clone();
        let task = move || -> LocalBoxFuture<'static, ()> {
            Box::pin(async move {
                let value = job();
                *to.value.lock() = Some(value);
                to.is_there.notify_all();
            })
        };
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let reactor = Reactor::Pages(turn % PAGE_REACTORS);
        self.env.spawn(reactor, "statement scratch", Box::new(task));
        Ok(coro::wait(
            answer.is_there.until(|| answer.value.lock().take()),
        )?)
    }
}

impl StatementScratch {
    /// In that file; what an earlier process left there is forgotten.
    ///
    /// # Errors
    /// 58030 when the old file cannot be removed.
    pub(crate) fn open(env: Arc<dyn Env>, path: &str) -> Result<StatementScratch> {
        let scratch = Scratch::open(&env.disk(), path)?;
        let turn = AtomicUsize::new(0);
        let disk = Arc::new(Threads { env, turn });
        Ok(StatementScratch { disk, scratch })
    }

    /// Gives the end of the file back if it is free. It may block on the disk.
    ///
    /// # Errors
    /// 58030.
    pub(crate) fn trim(&self) -> Result<()> {
        self.scratch.trim()
    }
}

impl TempSpace for StatementScratch {
    fn write(&self, bytes: Vec<u8>) -> Result<(Box<dyn TempBlock>, Vec<u8>)> {
        let scratch = self.scratch.clone();
        let (written, bytes) = self.disk.run(move || (scratch.write(&bytes), bytes))?;
        let block = Block {
            run: Arc::new(written?),
            disk: self.disk.clone(),
        };
        Ok((Box::new(block), bytes))
    }

    fn used(&self) -> u64 {
        self.scratch.used()
    }
}

struct Block {
    run: Arc<Run>,
    disk: Arc<Threads>,
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.run.fmt(f)
    }
}

impl TempBlock for Block {
    fn bytes(&self) -> usize {
        self.run.len()
    }

    fn read(&self, out: &mut Vec<u8>) -> Result<()> {
        let (run, mut bytes) = (self.run.clone(), std::mem::take(out));
        bytes.clear();
        let (read, bytes) = self.disk.run(move || {
            let read = run.read(&mut bytes);
            (read, bytes)
        })?;
        *out = bytes;
        read
    }
}
