//! A session that listens, on the leader: it reads the tree of notifications from where it was.
//!
//! ```text
//! heard (40, 2) ─┐                         ┌─ settled: 60
//!   40,2   44,0  │ 52,0 jobs  52,1 mail  58,0 jobs │ 63,0 …
//!                └── take: jobs, jobs → heard 60 ──┘   not committed yet
//! ```
//! # What it leaves out
//! What others are told that it does not listen to lies between, and is read past.

use std::sync::Arc;
use std::task::{Context, Poll};

use base::engine::{Channel, Direction, Heard, Listener, Notification, RowBatch};
use base::hash::HashMap;
use base::{
    coro, Durability, Error, ErrorClass, KeyRange, Lsn, Position, Result, SqlState, TreeId,
};

use storage::Store;

use crate::group::{not_leader, Group};
use crate::notifications::{deleted_place, key_after, place_of, Channels, Told, DELETED};

/// Rows that are read at once.
const ROWS_PER_LOOK: usize = 64;

/// A session that listens.
#[derive(Debug)]
pub struct KvListener {
    group: Arc<Group>,
    database: u32,
    id: u64,
    channels: Vec<Channel>,
    /// From where on each of them is heard, by its name.
    since: HashMap<String, Lsn>,
    /// What it is woken by: these, and perhaps some that it has announced and never listened to.
    bits: Channels,
    heard: Heard,
}

impl KvListener {
    /// One who listens to nothing yet.
    pub fn new(group: Arc<Group>, database: u32) -> KvListener {
        let id = group.listeners().enter();
        KvListener {
            group,
            database,
            id,
            channels: Vec::new(),
            since: HashMap::default(),
            bits: Channels::default(),
            heard: Heard::default(),
        }
    }

    /// Has itself woken by what it listens to, and by `more`.
    fn show_channels(&mut self, more: &mut dyn Iterator<Item = &str>) {
        more.for_each(|name| self.bits.add(self.database, name));
        self.group.listeners().set_channels(self.id, self.bits);
    }

    /// The same, after others were given up.
    fn show_other_channels(&mut self) {
        let mut bits = Channels::default();
        let names = self.since.keys();
        names.for_each(|name| bits.add(self.database, name));
        self.bits = bits;
        self.show_channels(&mut std::iter::empty());
    }

    fn is_for_it(&self, lsn: Lsn, told: &Told<'_>) -> Result<bool> {
        if told.database()? != self.database {
            return Ok(false);
        }
        let since = self.since.get(told.channel()?);
        Ok(since.is_some_and(|since| lsn > *since))
    }

    /// Fails where a row behind a place was deleted.
    fn check_kept(store: &Store, since: Heard) -> Result<()> {
        let mut row = Vec::new();
        let found = store.get(TreeId::NOTIFICATIONS, DELETED, Lsn::MAX, &mut row)?;
        if !found.exists || deleted_place(&row)? <= since {
            return Ok(());
        }
        Err(Error::of_class(
            ErrorClass::Session,
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "terminating connection because notifications were deleted that it has not received",
        )
        .with_detail(
            "The session was cut off from the leader for too long, or the queue was full.",
        ))
    }
}

impl Drop for KvListener {
    fn drop(&mut self) {
        self.group.listeners().leave(self.id);
    }
}

impl Listener for KvListener {
    fn channels(&self) -> &[Channel] {
        &self.channels
    }

    fn announce(&mut self, names: &mut dyn Iterator<Item = &str>) -> Result<Lsn> {
        // In this order: what becomes visible from now on wakes it.
        self.show_channels(names);
        let term = self.group.leading().ok_or_else(not_leader)?;
        let lsn = self.group.visible().lsn;
        self.group.check_term(term)?;
        coro::wait(self.group.settle(Position { term, lsn }, Durability::On))??;
        Ok(lsn)
    }

    fn listen(&mut self, channel: Channel) {
        if self.channels.is_empty() {
            self.heard = self.heard.max(Heard::all_of(channel.since));
        }
        if self.since.contains_key(&channel.name) {
            return;
        }
        self.since.insert(channel.name.clone(), channel.since);
        self.show_channels(&mut [&channel.name[..]].into_iter());
        self.channels.push(channel);
    }

    fn unlisten(&mut self, name: Option<&str>) {
        let is_kept = |channel: &str| name.is_some_and(|name| channel != name);
        self.channels.retain(|channel| is_kept(&channel.name));
        self.since.retain(|channel, _| is_kept(channel));
        self.show_other_channels();
    }

    fn resume(&mut self, channels: Vec<Channel>, heard: Heard) {
        let since = channels.iter();
        self.since = since
            .map(|channel| (channel.name.clone(), channel.since))
            .collect();
        self.channels = channels;
        self.heard = heard;
        self.show_other_channels();
        self.group.listeners().go_on(self.id, heard.lsn);
    }

    fn heard(&mut self) -> Heard {
        if let Some(lsn) = self.group.listeners().quiet_until(self.id) {
            self.heard = self.heard.max(Heard::all_of(lsn));
        }
        self.heard
    }

    fn is_due(&self) -> bool {
        self.group.listeners().due(self.id).is_some()
    }

    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.group.listeners().due_or_wake(self.id, cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn take(&mut self, bytes_max: usize) -> Result<Vec<Notification>> {
        let Some((first, settled)) = self.group.listeners().due(self.id) else {
            return Ok(Vec::new());
        };
        let since = self.heard.max(Heard::all_of(first.prev()));
        let (mut heard, mut taken, mut bytes) = (since, Vec::new(), 0);
        let (mut batch, store) = (RowBatch::default(), self.group.store());
        let end = Some(key_after(Heard::all_of(settled)));
        let mut rest = (heard.lsn <= settled).then(|| KeyRange {
            start: key_after(heard),
            end,
        });
        while let Some(range) = rest.filter(|_| bytes < bytes_max) {
            let (tree, forward) = (TreeId::NOTIFICATIONS, Direction::Forward);
            batch.clear();
            let found = store.scan(tree, &range, forward, Lsn::MAX, ROWS_PER_LOOK, &mut batch)?;
            for (key, row) in batch.iter() {
                if bytes >= bytes_max {
                    break;
                }
                let told = Told::of(row)?;
                heard = place_of(key)?;
                if self.is_for_it(heard.lsn, &told)? {
                    bytes += row.len();
                    taken.push(told.notification()?);
                }
            }
            coro::work(batch.len() * 100)?;
            rest = found.rest;
        }
        KvListener::check_kept(&store, since)?;
        let all = bytes < bytes_max;
        self.heard = match all {
            true => since.max(Heard::all_of(settled)),
            false => heard,
        };
        self.group
            .listeners()
            .has_heard(self.id, self.heard.lsn, all);
        Ok(taken)
    }
}
