//! The log read ahead of its replay.
//!
//! While the replay applies, a task on another thread reads the entries that come next, takes their
//! records apart, and has the leaves read that they change:
//!
//! ```text
//!   task     │ read, decode, touch 3 │ 4 │ 5 │ waits │ 6 …
//!   replay          │ apply 1 │ apply 2 │ apply 3 │ …
//!                                        at most so many batches between them
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use base::env::{Env, LocalBoxFuture, Reactor};
use base::sync::{Event, Mutex};
use base::{Error, Lsn, Position, Result};
use raft::EntryKind;
use storage::log::{Log, LogEntry};
use storage::Store;

use super::leaves::keys_of;
use crate::record::Record;

/// Bytes of the log that are read at one time.
const BATCH_BYTES: usize = 256 << 10;

/// Batches that are ready before they are wanted.
const BATCHES_AHEAD: usize = 4;

/// Records whose leaves are looked for at one time.
const RECORDS_AT_ONCE: usize = 32;

/// An entry, taken apart.
pub(super) struct Prepared {
    pub(super) position: Position,
    pub(super) kind: EntryKind,
    /// That of a normal entry.
    pub(super) record: Option<Record>,
}

impl Prepared {
    pub(super) fn of(position: Position, kind: EntryKind, data: &[u8]) -> Result<Prepared> {
        let is_record = kind == EntryKind::Normal;
        Ok(Prepared {
            position,
            kind,
            record: is_record.then(|| Record::decode(data)).transpose()?,
        })
    }
}

#[derive(Default)]
struct Queue {
    batches: Mutex<VecDeque<Result<Vec<Prepared>>>>,
    changed: Event,
    /// Nobody wants more.
    over: AtomicBool,
}

/// What is read ahead; dropped, it ends.
pub(super) struct Ahead {
    queue: Arc<Queue>,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.queue.over.store(true, Ordering::Release);
        self.queue.changed.notify_all();
    }
}

impl Ahead {
    /// Begins to read the entries from `first` up to and excluding `end`, on the log's reactor.
    pub(super) fn begin(
        env: &dyn Env,
        reader: Reactor,
        (log, store): (&Arc<Log>, &Arc<Store>),
        (first, end): (Lsn, Lsn),
    ) -> Ahead {
        let queue = Arc::<Queue>::default();
        let (shared, log, store) = (queue.clone(), log.clone(), store.clone());
        let task = move || -> LocalBoxFuture<'static, ()> {
            Box::pin(async move { shared.fill(&log, &store, first, end).await })
        };
        env.spawn(reader, "log reader", Box::new(task));
        Ahead { queue }
    }

    /// The entries that come next.
    ///
    /// # Errors
    /// XX001 or 58030 when they cannot be read.
    pub(super) async fn next(&self) -> Result<Vec<Prepared>> {
        let queue = &self.queue;
        let next = || queue.batches.lock().pop_front();
        let batch = queue.changed.until(next).await;
        queue.changed.notify_all();
        batch
    }
}

impl Queue {
    async fn fill(&self, log: &Log, store: &Store, mut next: Lsn, end: Lsn) {
        while next < end {
            let batch = prepare(log, store, next, end);
            let last = batch.as_ref().ok().and_then(|batch| batch.last());
            next = last.map_or(end, |last| last.position.lsn.next());
            let is_over = || self.over.load(Ordering::Acquire);
            let has_room = || self.batches.lock().len() < BATCHES_AHEAD;
            let room = || (is_over() || has_room()).then_some(());
            self.changed.until(room).await;
            if is_over() {
                return;
            }
            self.batches.lock().push_back(batch);
            self.changed.notify_all();
        }
    }
}

fn prepare(log: &Log, store: &Store, first: Lsn, end: Lsn) -> Result<Vec<Prepared>> {
    let entries = log.entries(first, end, BATCH_BYTES)?;
    if entries.is_empty() {
        return Err(Error::corrupted(format!("the log has no entry {first}")));
    }
    let take_apart = |entry: LogEntry| {
        let kind = EntryKind::from_code(entry.kind)?;
        Prepared::of(entry.position(), kind, &entry.data)
    };
    let batch: Result<Vec<Prepared>> = entries.into_iter().map(take_apart).collect();
    let batch = batch?;
    for some in batch.chunks(RECORDS_AT_ONCE) {
        let records = some.iter().filter_map(|prepared| prepared.record.as_ref());
        // Even where all is in memory, it is nearer once it was touched.
        if let Some(missing) = store.find_missing(records.flat_map(keys_of))? {
            store.prefetch(missing);
        }
    }
    Ok(batch)
}
