//! Notifications: rows of a tree of their own, and who listens on this node.
//!
//! What a transaction tells others are rows that its commit writes ([`TreeId::NOTIFICATIONS`]). So a
//! notification is there exactly if the commit is, every replica has it, and what a failover takes
//! back it takes back too. Its place in the order of all commits is the LSN of its record, which
//! nobody knows before the record is proposed; the record says *the LSN of this* instead, and
//! whoever applies it puts the LSN in ([`placed`]).
//!
//! ```text
//! in the record   (all ones, 0) = jobs: 7     (all ones, 1) = jobs: 8
//! in the tree     (52, 0)       = jobs: 7     (52, 1)       = jobs: 8
//! ```
//!
//! | key | row |
//! |---|---|
//! | LSN, 8 bytes, and number, 4 bytes, big-endian | database, sender, seconds, channel, payload |
//! | [`DELETED`] | the newest place of a row that was deleted |
//!
//! # Who hears what when
//! A session that listens is known here by the channels that it listens to, as bits ([`Channels`]).
//! A record with notifications is noted when it is applied, and when it is committed, those whose
//! bits it has are woken; they read the tree from where they were. What two channels have in common
//! a bit for costs a look in vain.
//!
//! # How long rows are kept
//! Until all who listen here have heard them, and for [`KEPT_SECONDS`] after that, for sessions that
//! come from a leader that was lost. Later commits with notifications delete what is older, as many
//! rows as they write and some more ([`Listeners::deletes`]). Beyond [`QUEUE_BYTES_MAX`] what
//! everybody has heard goes at once, and if that is not enough, the commit fails (54000).
//!
//! # Invariants
//! - Notifications up to [`Listeners::settled`] are in the tree, for good.
//! - A session has heard all up to the first commit that is noted for it as unheard.
//! - A session that has not heard a row which was deleted finds that out, by [`DELETED`].
//!
//! # What it leaves out
//! PostgreSQL warns when the queue is half full, and tells who holds it up. All that a transaction
//! tells is one record, so it is 32 MB at most (54000). Ages go by wall clocks: where that of a new
//! leader is far ahead, rows may go before sessions of the old one have come, which then end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use base::codec::Reader;
use base::engine::{Heard, Notification};
use base::hash;
use base::row::{Row, RowBuilder};
use base::sync::Mutex;
use base::{Error, Key, Lsn, Result, TreeId};

use crate::record::{Change, RowChange};

/// How long rows are kept that everybody has heard who listens on the leader. Sessions that are
/// passed on have their nodes told well within this how far they have heard.
pub const KEPT_SECONDS: i64 = 15 * 60;

/// Bytes of the tree from which on nothing is kept that everybody has heard, and a commit that finds
/// nothing of that fails. PostgreSQL's queue has as many.
pub const QUEUE_BYTES_MAX: u64 = 8 << 30;

/// Whenever so many notifications were written, old ones are looked for.
const ROWS_PER_LOOK: u64 = 64;

/// So many rows, and twice as many as were written, are deleted at a look at most.
pub const DELETED_PER_LOOK: usize = 256;

/// The key of what is known of rows that were deleted. It stands before all others.
pub const DELETED: &[u8] = &[0];

/// The key of a notification.
pub fn key_of(place: Heard) -> Key {
    let mut key = place.lsn.0.to_be_bytes().to_vec();
    key.extend_from_slice(&place.number.to_be_bytes());
    key
}

/// The key that comes after that of a notification.
pub fn key_after(place: Heard) -> Key {
    let Heard { lsn, number } = place;
    key_of(match number.checked_add(1) {
        Some(number) => Heard { lsn, number },
        None => Heard {
            lsn: lsn.next(),
            number: 0,
        },
    })
}

/// The place that a key names.
///
/// # Errors
/// XX001 when it names none.
pub fn place_of(key: &[u8]) -> Result<Heard> {
    let mut reader = Reader::new(key);
    let place = Heard {
        lsn: Lsn(reader.u64()?),
        number: reader.u32()?,
    };
    reader.finish()?;
    Ok(place)
}

/// The key of the record's notification of this number, while its LSN is not known: behind all that
/// are there.
pub fn unplaced(number: u32) -> Key {
    let lsn = Lsn::MAX;
    key_of(Heard { lsn, number })
}

/// Puts the LSN of its record into the key of a notification that the record has.
pub fn placed(key: &mut Key, lsn: Lsn) {
    let of_the_record = Lsn::MAX.0.to_be_bytes();
    if key.starts_with(&of_the_record) {
        key[..of_the_record.len()].copy_from_slice(&lsn.0.to_be_bytes());
    }
}

/// The row of a notification.
pub fn row_of(database: u32, told: &Notification, now_seconds: i64) -> Vec<u8> {
    RowBuilder::new(5)
        .value(&database.to_be_bytes())
        .value(&told.sender.to_be_bytes())
        .value(&now_seconds.to_be_bytes())
        .value(told.channel.as_bytes())
        .value(told.payload.as_bytes())
        .finish()
}

/// A row, taken apart.
pub struct Told<'a> {
    row: Row<'a>,
}

impl<'a> Told<'a> {
    /// Reads a row.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn of(row: &'a [u8]) -> Result<Told<'a>> {
        Ok(Told {
            row: Row::parse(row)?,
        })
    }

    fn column(&self, place: usize) -> Result<&'a [u8]> {
        let missing = || Error::corrupted("a notification lacks a column");
        self.row.column(place).ok_or_else(missing)
    }

    fn number<const N: usize>(&self, place: usize) -> Result<[u8; N]> {
        let wrong = |_| Error::corrupted("a number of a notification has another length");
        self.column(place)?.try_into().map_err(wrong)
    }

    fn text(&self, place: usize) -> Result<&'a str> {
        let wrong = |_| Error::corrupted("a text of a notification is none");
        std::str::from_utf8(self.column(place)?).map_err(wrong)
    }

    /// The database, by its OID.
    pub fn database(&self) -> Result<u32> {
        self.number(0).map(u32::from_be_bytes)
    }

    /// When it was written.
    pub fn seconds(&self) -> Result<i64> {
        self.number(2).map(i64::from_be_bytes)
    }

    /// The channel.
    pub fn channel(&self) -> Result<&'a str> {
        self.text(3)
    }

    /// All that a client is told.
    pub fn notification(&self) -> Result<Notification> {
        Ok(Notification {
            channel: self.channel()?.to_owned(),
            payload: self.text(4)?.to_owned(),
            sender: self.number(1).map(i32::from_be_bytes)?,
        })
    }
}

/// The row of [`DELETED`].
pub fn deleted_row(newest: Heard) -> Vec<u8> {
    RowBuilder::new(1).value(&key_of(newest)).finish()
}

/// What such a row says.
pub fn deleted_place(row: &[u8]) -> Result<Heard> {
    place_of(Row::parse(row)?.column(0).unwrap_or_default())
}

/// Channels of databases, as bits: those of several have all of theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels([u64; 4]);

impl Channels {
    /// Adds a channel.
    pub fn add(&mut self, database: u32, channel: &str) {
        let bytes = [&database.to_be_bytes()[..], channel.as_bytes()].concat();
        // The upper bits are those that depend on all of it.
        let bit = hash::digest(&bytes) >> 56;
        self.0[bit as usize / 64] |= 1 << (bit % 64);
    }

    fn meet(&self, other: &Channels) -> bool {
        let pairs = self.0.iter().zip(other.0);
        pairs.into_iter().any(|(own, other)| own & other != 0)
    }

    /// The channels that a record tells something, if it tells any.
    ///
    /// # Errors
    /// XX001 when a row is no notification.
    pub fn told_by(changes: &[RowChange]) -> Result<Option<Channels>> {
        let mut told = None;
        for change in changes {
            match &change.change {
                Change::Insert(row)
                    if change.tree == TreeId::NOTIFICATIONS && change.key != DELETED =>
                {
                    let row = Told::of(row)?;
                    let channels: &mut Channels = told.get_or_insert_default();
                    channels.add(row.database()?, row.channel()?);
                }
                _ => {}
            }
        }
        Ok(told)
    }
}

/// Who listens on this node, and which commits tell something.
#[derive(Debug, Default)]
pub struct Listeners {
    state: Mutex<State>,
    /// The LSN of the first pending record, 0 for none.
    next: AtomicU64,
    settled: AtomicU64,
    written: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Records with notifications that are applied and not known to be committed, in order.
    pending: VecDeque<(Lsn, Channels)>,
    /// The newest that was committed.
    newest: Lsn,
    listeners: BTreeMap<u64, Entry>,
    last_id: u64,
}

/// One who listens.
#[derive(Debug, Default)]
struct Entry {
    channels: Channels,
    /// The first and the last commit that may tell it something which it has not heard.
    unheard: Option<(Lsn, Lsn)>,
    waker: Option<Waker>,
}

impl Entry {
    fn has_unheard(&mut self, lsn: Lsn) {
        let (first, _) = self.unheard.unwrap_or((lsn, lsn));
        self.unheard = Some((first, lsn));
    }
}

impl Listeners {
    /// A record that tells these something is applied.
    pub fn note(&self, lsn: Lsn, channels: Channels) {
        let mut state = self.state.lock();
        let newest = state.pending.back().map_or(state.newest, |(lsn, _)| *lsn);
        assert!(lsn > newest, "what {lsn} tells after what {newest} tells");
        state.pending.push_back((lsn, channels));
        self.publish(&state);
    }

    fn publish(&self, state: &State) {
        let next = state.pending.front().map_or(0, |(lsn, _)| lsn.0);
        self.next.store(next, Ordering::Release);
    }

    /// What is applied is committed up to there. Whom that tells something is left in `released`,
    /// for the caller to wake.
    pub fn commit(&self, commit: Lsn, released: &mut Vec<Waker>) {
        let next = self.next.load(Ordering::Acquire);
        if next == 0 || next > commit.0 {
            self.settled.fetch_max(commit.0, Ordering::AcqRel);
            return;
        }
        let mut state = self.state.lock();
        let state = &mut *state;
        while let Some((lsn, channels)) = state.pending.front().copied() {
            if lsn > commit {
                break;
            }
            state.pending.pop_front();
            state.newest = lsn;
            let listeners = state.listeners.values_mut();
            for entry in listeners.filter(|entry| entry.channels.meet(&channels)) {
                entry.has_unheard(lsn);
                released.extend(entry.waker.take());
            }
        }
        self.publish(state);
        self.settled.fetch_max(commit.0, Ordering::AcqRel);
    }

    /// Entries above `to` were taken out of the log.
    pub fn cut(&self, to: Lsn) {
        let mut state = self.state.lock();
        state.pending.retain(|(lsn, _)| *lsn <= to);
        self.publish(&state);
    }

    /// A checkpoint at this LSN, which is committed, has taken the place of the trees.
    pub fn begin_anew(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        state.pending.clear();
        state.newest = state.newest.max(lsn);
        self.publish(&state);
    }

    /// Notifications up to there are in the tree, for good.
    pub fn settled(&self) -> Lsn {
        Lsn(self.settled.load(Ordering::Acquire))
    }

    /// Rows from there on are not to be deleted: somebody has not heard them, or they are not
    /// committed.
    pub fn unheard(&self) -> Lsn {
        let listeners = &self.state.lock().listeners;
        let unheard = listeners.values().filter_map(|entry| entry.unheard);
        let first = unheard.map(|(first, _)| first).min();
        first.unwrap_or(Lsn::MAX).min(self.settled().next())
    }

    /// Whether anybody has not heard something that is committed.
    pub fn is_unheard(&self) -> bool {
        let listeners = &self.state.lock().listeners;
        listeners.values().any(|entry| entry.unheard.is_some())
    }

    /// So many rows are written: how many old ones are to be deleted for that, at most.
    pub fn deletes(&self, rows: usize) -> usize {
        let before = self.written.fetch_add(rows as u64, Ordering::Relaxed);
        let is_time = before / ROWS_PER_LOOK != (before + rows as u64) / ROWS_PER_LOOK;
        if is_time {
            2 * rows + DELETED_PER_LOOK
        } else {
            0
        }
    }

    // ---- One who listens ----

    /// Somebody listens, to nothing yet.
    pub fn enter(&self) -> u64 {
        let mut state = self.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.listeners.insert(id, Entry::default());
        id
    }

    /// It listens no more.
    pub fn leave(&self, id: u64) {
        self.state.lock().listeners.remove(&id);
    }

    /// It listens to these.
    pub fn set_channels(&self, id: u64, channels: Channels) {
        if let Some(entry) = self.state.lock().listeners.get_mut(&id) {
            entry.channels = channels;
        }
    }

    /// It goes on from there.
    pub fn go_on(&self, id: u64, heard: Lsn) {
        let mut state = self.state.lock();
        let settled = self.settled();
        if let Some(entry) = state.listeners.get_mut(&id) {
            entry.unheard = Some((heard, settled.max(heard)));
        }
    }

    /// Between which commits, both included, there may be something that it has not heard.
    pub fn due(&self, id: u64) -> Option<(Lsn, Lsn)> {
        let state = self.state.lock();
        let unheard = state.listeners.get(&id)?.unheard;
        unheard.map(|(first, _)| (first, self.settled()))
    }

    /// As [`Listeners::due`]; where there is nothing, whoever waits is woken once there is.
    pub fn due_or_wake(&self, id: u64, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        let Some(entry) = state.listeners.get_mut(&id) else {
            return false;
        };
        let is_due = entry.unheard.is_some();
        if !is_due {
            entry.waker = Some(waker.clone());
        }
        is_due
    }

    /// It has heard so much of what is due, `all` of it up to there or not.
    pub fn has_heard(&self, id: u64, heard: Lsn, all: bool) {
        let mut state = self.state.lock();
        let Some(entry) = state.listeners.get_mut(&id) else {
            return;
        };
        entry.unheard = entry.unheard.and_then(|(first, last)| match all {
            true if last <= heard => None,
            true => Some((first.max(heard.next()), last)),
            false => Some((first.max(heard), last)),
        });
    }

    /// The newest commit that told anybody something, if there is nothing that it has not heard.
    pub fn quiet_until(&self, id: u64) -> Option<Lsn> {
        let state = self.state.lock();
        let entry = state.listeners.get(&id)?;
        entry.unheard.is_none().then_some(state.newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::Arc;
    use std::task::Wake;

    fn told(channel: &str) -> Notification {
        Notification {
            channel: channel.to_owned(),
            payload: "7".to_owned(),
            sender: 42,
        }
    }

    fn channels(names: &[&str]) -> Channels {
        let mut channels = Channels::default();
        names.iter().for_each(|name| channels.add(5, name));
        channels
    }

    #[test]
    fn a_key_takes_the_place_of_its_record() {
        let mut key = unplaced(3);
        placed(&mut key, Lsn(52));
        let place = Heard {
            lsn: Lsn(52),
            number: 3,
        };
        assert_eq!(place_of(&key).unwrap(), place);
        let there = key.clone();
        placed(&mut key, Lsn(60));
        assert_eq!(key, there);
        assert!(key_of(place) < key_after(place) && DELETED < &key[..]);
        assert_eq!(
            key_after(Heard::all_of(Lsn(52))),
            key_of(Heard {
                lsn: Lsn(53),
                number: 0
            })
        );
        assert_eq!(deleted_place(&deleted_row(place)).unwrap(), place);
    }

    #[test]
    fn rows_come_back() {
        let row = row_of(5, &told("jobs"), 1_000);
        let read = Told::of(&row).unwrap();
        assert_eq!(read.database().unwrap(), 5);
        assert_eq!(read.seconds().unwrap(), 1_000);
        assert_eq!(read.notification().unwrap(), told("jobs"));
        assert!(Told::of(&deleted_row(Heard::default()))
            .unwrap()
            .seconds()
            .is_err());
    }

    #[test]
    fn a_record_says_whom_it_tells_something() {
        let insert = |tree, key: Key, row| RowChange {
            tree,
            key,
            change: Change::Insert(row),
        };
        let others = [insert(TreeId(20_000), b"k".to_vec(), b"row".to_vec())];
        assert_eq!(Channels::told_by(&others).unwrap(), None);
        let changes = [
            insert(
                TreeId::NOTIFICATIONS,
                DELETED.to_vec(),
                deleted_row(Heard::default()),
            ),
            insert(TreeId::NOTIFICATIONS, unplaced(0), row_of(5, &told("a"), 0)),
            insert(TreeId::NOTIFICATIONS, unplaced(1), row_of(5, &told("b"), 0)),
        ];
        assert_eq!(
            Channels::told_by(&changes).unwrap(),
            Some(channels(&["a", "b"]))
        );
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn who_listens_is_woken_by_what_is_committed() {
        let listeners = Listeners::default();
        let (count, mut released) = (Arc::new(Count::default()), Vec::new());
        let waker = Waker::from(count.clone());
        let [a, b] = [listeners.enter(), listeners.enter()];
        listeners.set_channels(a, channels(&["a"]));
        listeners.set_channels(b, channels(&["b"]));
        assert!(!listeners.due_or_wake(a, &waker) && !listeners.due_or_wake(b, &waker));
        listeners.note(Lsn(10), channels(&["a"]));
        listeners.note(Lsn(12), channels(&["a"]));
        listeners.commit(Lsn(9), &mut released);
        assert_eq!((released.len(), listeners.due(a)), (0, None));
        listeners.commit(Lsn(11), &mut released);
        released.drain(..).for_each(Waker::wake);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(listeners.due(a), Some((Lsn(10), Lsn(11))));
        assert_eq!(listeners.due(b), None);
        assert_eq!(listeners.quiet_until(b), Some(Lsn(10)));
        assert_eq!(
            (listeners.unheard(), listeners.is_unheard()),
            (Lsn(10), true)
        );
        // What comes while it hears is not forgotten.
        listeners.commit(Lsn(13), &mut released);
        listeners.has_heard(a, Lsn(11), true);
        assert_eq!(listeners.due(a), Some((Lsn(12), Lsn(13))));
        listeners.has_heard(a, Lsn(12), false);
        assert_eq!(listeners.due(a), Some((Lsn(12), Lsn(13))));
        listeners.has_heard(a, Lsn(13), true);
        assert_eq!((listeners.due(a), listeners.unheard()), (None, Lsn(14)));
        // What is cut off is heard by nobody.
        listeners.note(Lsn(15), channels(&["a", "b"]));
        listeners.cut(Lsn(14));
        listeners.note(Lsn(15), channels(&["b"]));
        listeners.commit(Lsn(15), &mut released);
        assert_eq!((listeners.due(a), released.len()), (None, 1));
        listeners.leave(b);
        assert!(!listeners.is_unheard());
    }

    #[test]
    fn old_rows_are_looked_for_now_and_then() {
        let listeners = Listeners::default();
        let deleted: usize = (0..640).map(|_| listeners.deletes(1)).sum();
        assert!(deleted > 640, "{deleted}");
        assert!(listeners.deletes(10_000) > 10_000);
    }
}
