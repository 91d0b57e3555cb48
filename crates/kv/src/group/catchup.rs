//! Catching up by checkpoint: for a replica whose log ends before the leader's begins.
//!
//! The consensus offers a checkpoint; its receiver fetches it chunk by chunk into its own
//! directory, puts it in place, and only then tells the consensus, which makes the log go on after
//! it. While it is put in place the node is *deaf* to its group, so that nothing can change its
//! mind. A crash on the way leaves either the old state or a checkpoint that
//! [`Group::open`](super::Group::open) takes up.
//!
//! A fetch that was interrupted goes on. While connections come and go, it asks for the same chunk
//! again; after a longer silence, a restart of either side, or under a newer checkpoint, it begins
//! anew, tells what it has, and gets what differs ([`storage::Importer`]). What is left of a fetch
//! goes when this replica makes a checkpoint of its own, because then it has caught up otherwise.

use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Instant, LocalBoxFuture, Reactor, Severity};
use base::hash::HashMap;
use base::sync::Mutex;
use base::{ErrorClass, NodeId, Position, Result, SqlState};
use raft::SnapshotOffer;
use storage::{Exporter, Importer, Store};

use super::Group;
use crate::frame::Frame;

/// A chunk that has not come for so long is asked for again.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// So many requests for one chunk get no answer before the fetch is given up.
const REQUESTS_MAX: u32 = 10;

/// A checkpoint that nobody fetches from is let go of after this.
const EXPORT_IDLE: Duration = Duration::from_secs(30);

/// How often the end of a running checkpoint is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Checkpoints on their way, in both directions.
#[derive(Debug, Default)]
pub struct Catchup {
    fetch: Mutex<Option<Fetch>>,
    exports: Mutex<HashMap<NodeId, Export>>,
    /// Of the last fetch that was finished: pages that were here already, and all.
    #[cfg(test)]
    pub(super) fetched: Mutex<(u64, u64)>,
}

/// A checkpoint that is being fetched.
#[derive(Debug)]
struct Fetch {
    offer: SnapshotOffer,
    importer: Option<Importer>,
    next: u64,
    asked_at: Instant,
    requests: u32,
}

/// A checkpoint that another node fetches.
#[derive(Debug)]
struct Export {
    checkpoint: Position,
    exporter: Arc<Exporter>,
    used_at: Instant,
}

impl Group {
    /// The consensus offers a checkpoint. False when it cannot be fetched now: the disk is full, or
    /// an earlier one is just being put in place.
    ///
    /// # Errors
    /// 58030 when the directory cannot be written.
    pub(super) fn begin_fetch(&self, offer: SnapshotOffer) -> Result<bool> {
        let position = offer.meta.position;
        let mut fetch = self.catchup.fetch.lock();
        if let Some(fetch) = &*fetch {
            if fetch.offer.meta.position == position && fetch.offer.from == offer.from {
                return Ok(true);
            }
            if fetch.importer.is_none() {
                return Ok(false);
            }
        }
        let message = format!(
            "fetching checkpoint {} from node {}",
            position.lsn, offer.from
        );
        self.env.log(Severity::Info, &message);
        let directory = self.config.store_directory();
        // What was begun before is let go of before its place is taken.
        *fetch = None;
        let owner = self.config.owner();
        let importer = match Importer::start(self.env.clone(), &directory, owner) {
            Ok(importer) => importer,
            Err(error) if error.state() == SqlState::DISK_FULL => {
                self.env.log(Severity::Warning, error.message());
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let from = offer.from;
        *fetch = Some(Fetch {
            offer,
            importer: Some(importer),
            next: 0,
            asked_at: self.env.now(),
            requests: 1,
        });
        self.ask(from, position, 0, Vec::new());
        Ok(true)
    }

    fn ask(&self, from: NodeId, checkpoint: Position, index: u64, having: Vec<u64>) {
        let frame = Frame::ChunkRequest {
            checkpoint,
            index,
            having,
        };
        self.transport.send(from, frame.encode(self.config.group));
        self.transport.flush();
    }

    /// A frame that concerns a checkpoint.
    pub(super) fn receive_checkpoint_frame(&self, from: NodeId, frame: Frame) {
        match frame {
            Frame::Consensus(_) | Frame::Unhurried(_) => {}
            Frame::Built { .. } | Frame::Removed { .. } => {}
            Frame::AskVisible { .. } | Frame::Visible { .. } => {}
            Frame::CheckRange { .. } | Frame::RangeSum { .. } | Frame::Consistency(_) => {}
            Frame::Across { .. } => {}
            Frame::ChunkRequest {
                checkpoint,
                index,
                having,
            } => self.serve(from, checkpoint, index, having),
            Frame::Chunk {
                checkpoint,
                index,
                chunks,
                bytes,
            } => self.take_chunk(from, checkpoint, index, chunks, &bytes),
            Frame::NoCheckpoint { checkpoint } => self.give_up(from, checkpoint),
        }
    }

    /// Sends a chunk, read where it holds nobody up.
    fn serve(&self, to: NodeId, checkpoint: Position, index: u64, having: Vec<u64>) {
        let group = self.config.group;
        let Some(exporter) = self.exporter(to, checkpoint) else {
            let frame = Frame::NoCheckpoint { checkpoint };
            self.transport.send(to, frame.encode(group));
            return self.transport.flush();
        };
        let Some(this) = self.me.upgrade() else {
            return;
        };
        let task = move || -> LocalBoxFuture<'static, ()> {
            Box::pin(async move {
                let chunks = exporter.chunks();
                if index >= chunks {
                    return;
                }
                match exporter.chunk(index, &having) {
                    Ok(bytes) => {
                        let frame = Frame::Chunk {
                            checkpoint,
                            index,
                            chunks,
                            bytes,
                        };
                        this.transport.send(to, frame.encode(group));
                        this.transport.flush();
                    }
                    Err(error) => this.fail(&mut this.lock(), &error),
                }
            })
        };
        self.env
            .spawn(Reactor::Background, "export", Box::new(task));
    }

    fn exporter(&self, to: NodeId, checkpoint: Position) -> Option<Arc<Exporter>> {
        let now = self.env.now();
        let mut exports = self.catchup.exports.lock();
        if let Some(export) = exports.get_mut(&to) {
            if export.checkpoint == checkpoint {
                export.used_at = now;
                return Some(export.exporter.clone());
            }
        }
        let exporter = Arc::new(self.store().exporter());
        let meta = super::meta::Meta::decode(&exporter.info().meta).ok()?;
        if meta.position != checkpoint {
            return None;
        }
        let export = Export {
            checkpoint,
            exporter: exporter.clone(),
            used_at: now,
        };
        exports.insert(to, export);
        Some(exporter)
    }

    fn take_chunk(
        &self,
        from: NodeId,
        checkpoint: Position,
        index: u64,
        chunks: u64,
        bytes: &[u8],
    ) {
        let mut slot = self.catchup.fetch.lock();
        let Some(fetch) = slot.as_mut().filter(|fetch| {
            let expected = (fetch.offer.from, fetch.offer.meta.position, fetch.next);
            expected == (from, checkpoint, index)
        }) else {
            return;
        };
        let Some(importer) = &mut fetch.importer else {
            return;
        };
        if let Err(error) = importer.write(bytes) {
            drop(slot);
            let message = format!("chunk {index} of checkpoint {}: {error}", checkpoint.lsn);
            self.env.log(Severity::Error, &message);
            if error.state() == SqlState::IO_ERROR && error.class() == ErrorClass::Node {
                return self.fail(&mut self.lock(), &error);
            }
            return self.give_up(from, checkpoint);
        }
        fetch.next += 1;
        fetch.asked_at = self.env.now();
        fetch.requests = 1;
        if fetch.next < chunks {
            return self.ask(from, checkpoint, fetch.next, importer.having());
        }
        let (importer, offer) = (fetch.importer.take(), fetch.offer.clone());
        drop(slot);
        let (Some(importer), Some(this)) = (importer, self.me.upgrade()) else {
            return;
        };
        let task = move || -> LocalBoxFuture<'static, ()> {
            Box::pin(async move {
                if let Err(error) = this.put_in_place(importer, &offer).await {
                    this.fail(&mut this.lock(), &error);
                }
                *this.catchup.fetch.lock() = None;
            })
        };
        self.env
            .spawn(Reactor::Background, "import", Box::new(task));
    }

    /// Puts a checkpoint that was fetched whole in the place of the trees, then tells the
    /// consensus.
    async fn put_in_place(&self, mut importer: Importer, offer: &SnapshotOffer) -> Result<()> {
        let position = offer.meta.position;
        if let Err(error) = importer.complete().await {
            if error.class() == ErrorClass::Node {
                return Err(error);
            }
            // No space: it is offered again.
            self.env.log(Severity::Warning, error.message());
            let mut core = self.lock();
            if !core.failed && !core.deaf {
                core.consensus.snapshot_failed(position);
                self.pump(&mut core);
            }
            return Ok(());
        }
        loop {
            {
                let mut core = self.lock();
                let useful = core.consensus.term() == offer.term
                    && core.consensus.committed() < position.lsn
                    && core.consensus.entry_term(position.lsn) != Some(position.term);
                if !useful || core.failed {
                    core.consensus.snapshot_failed(position);
                    self.pump(&mut core);
                    return Ok(());
                }
                if !core.checkpointing && !core.writing {
                    core.deaf = true;
                    break;
                }
                self.store().discard_checkpoint();
            }
            sleep(&*self.env, LOOK_EVERY).await;
        }
        let (kept, pages) = importer.pages();
        #[cfg(test)]
        {
            *self.catchup.fetched.lock() = (kept, pages);
        }
        importer.finish().await?;
        let directory = self.config.store_directory();
        let options = self.config.store_options();
        let store = Store::open(self.env.clone(), &directory, options).await?;
        let now = self.env.now();
        let mut core = self.lock();
        core.deaf = false;
        core.fetched = Some(store);
        if !core.consensus.snapshot_fetched(position, now)? {
            return Err(base::Error::internal("a fetched checkpoint was refused"));
        }
        self.pump(&mut core);
        let message = format!(
            "continuing from checkpoint {} of {pages} pages, of which {kept} were here already",
            position.lsn
        );
        self.env.log(Severity::Info, &message);
        Ok(())
    }

    /// This replica goes on without what a fetch has left.
    pub(super) fn forget_fetch(&self) -> Result<()> {
        let fetch = self.catchup.fetch.lock();
        match &*fetch {
            Some(_) => Ok(()),
            None => Importer::forget(&*self.env, &self.config.store_directory()),
        }
    }

    /// Whether a checkpoint is on its way here.
    pub(super) fn is_fetching(&self) -> bool {
        self.catchup.fetch.lock().is_some()
    }

    fn give_up(&self, from: NodeId, checkpoint: Position) {
        let mut slot = self.catchup.fetch.lock();
        let matches = slot.as_ref().is_some_and(|fetch| {
            let fetching = fetch.importer.is_some();
            fetching && fetch.offer.from == from && fetch.offer.meta.position == checkpoint
        });
        if !matches {
            return;
        }
        *slot = None;
        drop(slot);
        let mut core = self.lock();
        if !core.failed && !core.deaf {
            core.consensus.snapshot_failed(checkpoint);
            self.pump(&mut core);
        }
    }

    /// Asks again for what got lost, and lets go of what nobody fetches.
    pub(super) fn tend_catchup(&self, now: Instant) {
        let mut given_up = None;
        if let Some(fetch) = &mut *self.catchup.fetch.lock() {
            let late = now.since(fetch.asked_at) >= ASK_AGAIN_AFTER;
            if let Some(importer) = fetch.importer.as_ref().filter(|_| late) {
                fetch.asked_at = now;
                fetch.requests += 1;
                let (from, position) = (fetch.offer.from, fetch.offer.meta.position);
                match fetch.requests > REQUESTS_MAX {
                    true => given_up = Some((from, position)),
                    false => self.ask(from, position, fetch.next, importer.having()),
                }
            }
        }
        if let Some((from, position)) = given_up {
            self.give_up(from, position);
        }
        let mut exports = self.catchup.exports.lock();
        exports.retain(|_, export| now.since(export.used_at) < EXPORT_IDLE);
    }
}
