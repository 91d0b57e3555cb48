//! The log of one group.

use std::sync::Arc;

use base::env::Env;
use base::{Error, Lsn, Position, Result, Term};

use crate::Owner;

/// One entry of a group's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The term of the leader that proposed it.
    pub term: Term,
    /// Its place in the log.
    pub lsn: Lsn,
    /// What it is; the caller's affair.
    pub kind: u8,
    /// Its content.
    pub data: Vec<u8>,
}

/// How a log is kept.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Whose log it is.
    pub owner: Owner,
    /// Bytes of one segment.
    pub segment_bytes: u64,
    /// Bytes of recent entries that are kept in memory.
    pub cache_bytes: usize,
}

impl LogOptions {
    /// The usual sizes.
    pub fn new(owner: Owner) -> LogOptions {
        LogOptions {
            owner,
            segment_bytes: 16 << 20,
            cache_bytes: 32 << 20,
        }
    }
}

/// What was found when a log was opened. All of it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecovered {
    /// The newest hard state, empty if there never was one.
    pub hard_state: Vec<u8>,
    /// The position before the first entry.
    pub base: Position,
    /// The last entry, or `base`.
    pub last: Position,
}

/// The log of one group.
#[derive(Debug)]
pub struct Log {
    _env: Arc<dyn Env>,
}

impl Log {
    /// Opens or makes the log in `dir`.
    pub async fn open(
        env: Arc<dyn Env>,
        _dir: &str,
        _options: LogOptions,
    ) -> Result<(Arc<Log>, LogRecovered)> {
        drop(env);
        Err(Error::unsupported("log"))
    }

    /// Appends to memory: entries in order, then the hard state. An entry that is not above the
    /// last one replaces the tail from its LSN on.
    pub fn append(&self, _entries: Vec<LogEntry>, _hard_state: Option<&[u8]>) -> Result<()> {
        Err(Error::unsupported("log"))
    }

    /// Gives everything appended so far to the operating system; returns the last position that
    /// is there.
    pub fn write(&self) -> Result<Position> {
        Err(Error::unsupported("log"))
    }

    /// Makes everything written so far durable; returns the last position that is.
    pub async fn sync(&self) -> Result<Position> {
        Err(Error::unsupported("log"))
    }

    /// The position before the first entry.
    pub fn base(&self) -> Position {
        Position::default()
    }

    /// The LSN of the first entry that is there, or would be.
    pub fn first(&self) -> Lsn {
        self.base().lsn.next()
    }

    /// The last entry appended, or [`Log::base`].
    pub fn last(&self) -> Position {
        Position::default()
    }

    /// The last entry that the operating system has.
    pub fn written(&self) -> Position {
        Position::default()
    }

    /// The last entry that is durable.
    pub fn durable(&self) -> Position {
        Position::default()
    }

    /// The term of an entry, [`Log::base`] included; none outside the log.
    pub fn term(&self, _lsn: Lsn) -> Option<Term> {
        None
    }

    /// The entries from `low` up to and excluding `high`, as many as fit `bytes_max` and at least
    /// one; fewer when `low` is below [`Log::first`]: none.
    pub fn entries(&self, _low: Lsn, _high: Lsn, _bytes_max: usize) -> Result<Vec<LogEntry>> {
        Err(Error::unsupported("log"))
    }

    /// Bytes of entries above `lsn`.
    pub fn bytes_after(&self, _lsn: Lsn) -> u64 {
        0
    }

    /// Lets go of entries up to `up_to`, in whole segments.
    pub fn compact(&self, _up_to: Lsn) -> Result<()> {
        Err(Error::unsupported("log"))
    }

    /// Empties the log: it goes on after `base`, whose state is in a checkpoint. In memory; durable
    /// with the next sync.
    pub fn install(&self, _base: Position) -> Result<()> {
        Err(Error::unsupported("log"))
    }

    /// Bytes that can be appended without asking the file system for space.
    pub fn room(&self) -> u64 {
        0
    }
}
