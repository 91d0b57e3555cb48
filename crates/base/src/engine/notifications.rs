//! Notifications: what a transaction tells others when it commits, and who listens.
//!
//! ```text
//! session A   announce("jobs") → since 40 … commit … listen("jobs", 40)
//! session B   notify("jobs", "7") … commit at 52          in the log, exactly if the commit is
//! session A   poll_due … take() → ("jobs", "7")           once 52 is committed for good
//! ```
//! A notification is logged with its transaction, and kept for a while. So a listener needs no queue
//! of its own: it remembers how far it has [`Heard`], goes on from there whenever there is more, and a
//! session that moves to another leader tells that one.
//!
//! # Invariants
//! - Notifications are heard in the order of their commits, and those of a commit in the order in
//!   which they were given.
//! - What is heard can no longer be taken back.
//! - Whoever goes on where it was hears nothing twice, and misses nothing: where something that it
//!   has not heard is kept no longer, it is told so.
//!
//! Source: PostgreSQL 15 manual, NOTIFY, LISTEN, UNLISTEN, section 34.9 (asynchronous notification).

use std::rc::Rc;
use std::task::{Context, Poll};

use crate::codec::{put_varint, Reader};
use crate::error::Result;
use crate::ids::Lsn;

/// What a transaction tells whoever listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    /// To whom: those that listen to this name.
    pub channel: String,
    /// What.
    pub payload: String,
    /// The session that tells it, as `pg_backend_pid()` shows it there.
    pub sender: i32,
}

/// Up to where a session has heard what there was, this included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Heard {
    /// The commit.
    pub lsn: Lsn,
    /// The notification of that commit, from 0.
    pub number: u32,
}

impl Heard {
    /// All that was committed up to there.
    pub fn all_of(lsn: Lsn) -> Heard {
        let number = u32::MAX;
        Heard { lsn, number }
    }

    /// Appends it.
    pub fn encode(self, out: &mut Vec<u8>) {
        put_varint(out, self.lsn.0);
        put_varint(out, self.number.into());
    }

    /// Reads what [`Heard::encode`] appended.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Heard> {
        Ok(Heard {
            lsn: Lsn(reader.varint()?),
            number: reader.varint_as()?,
        })
    }
}

/// A channel that a session listens to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// What was committed up to there is not heard.
    pub since: Lsn,
}

/// Knows who listens.
pub trait Notifications: Send + Sync {
    /// One who listens in a database, by its OID, to no channel yet.
    fn listener(&self, database: u32) -> Box<dyn Listener>;

    /// Which part of the space for notifications is used by what somebody has not heard.
    fn usage(&self) -> f64;
}

/// A session that listens, until it is dropped.
pub trait Listener {
    /// The channels, in the order in which they came.
    fn channels(&self) -> &[Channel];

    /// Prepares to listen to more channels: from where on they will be heard, once
    /// [`Listener::listen`] is called. Waits until all that is visible now is committed.
    ///
    /// # Errors
    /// 40001 when this node does not lead any more; the pending interrupt.
    fn announce(&mut self, names: &mut dyn Iterator<Item = &str>) -> Result<Lsn>;

    /// Listens to a channel that was announced, unless it does already.
    fn listen(&mut self, channel: Channel);

    /// Listens to a channel no more, or to none at all.
    fn unlisten(&mut self, name: Option<&str>);

    /// Goes on as another one that has heard so much.
    fn resume(&mut self, channels: Vec<Channel>, heard: Heard);

    /// Up to where it has heard what there was for it.
    fn heard(&mut self) -> Heard;

    /// Whether there may be something to hear.
    fn is_due(&self) -> bool;

    /// Ready when there may be something to hear; else the task is woken when there is.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// What is to be heard next, up to about so many bytes of it. It is due again where there is
    /// more. Waits, inside a coroutine, for pages.
    ///
    /// # Errors
    /// 54000, which ends the session, where something was deleted that it has not heard; those of
    /// reads, after which nothing was heard.
    fn take(&mut self, bytes_max: usize) -> Result<Vec<Notification>>;
}

/// Tells others something when a transaction commits.
pub trait Notifying {
    /// Has this told in a database, by its OID, when the transaction commits; to be called once, as
    /// the last thing before that.
    ///
    /// # Errors
    /// 54000 when too much is kept that somebody has not heard.
    fn notify(&mut self, database: u32, told: &[Rc<Notification>]) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_in_their_order() {
        let places = [
            Heard::default(),
            Heard::all_of(Lsn(6)),
            Heard {
                lsn: Lsn(7),
                number: 0,
            },
            Heard {
                lsn: Lsn(7),
                number: 1,
            },
            Heard::all_of(Lsn(7)),
        ];
        assert!(places.is_sorted());
        for heard in places {
            let mut out = Vec::new();
            heard.encode(&mut out);
            assert_eq!(Heard::decode(&mut Reader::new(&out)).unwrap(), heard);
        }
    }
}
