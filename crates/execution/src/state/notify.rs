//! What the open transaction tells others when it commits, and the session's own listening.
//!
//! ```text
//! notify jobs, '7'      told: [jobs 7]          listen mail     asked: [listen mail]
//! savepoint s           mark: (1, 1)
//! notify jobs, '7'      told: [jobs 7]          the same is told once
//! notify jobs, '8'      told: [jobs 7, jobs 8]
//! rollback to s         told: [jobs 7]          asked: [listen mail]
//! commit                all of it happens
//! ```
//! Source: PostgreSQL 15 manual, NOTIFY.

use std::rc::Rc;

use base::engine::{Channel, Listener, Notification};
use base::hash::HashSet;
use base::memory::Reservation;
use base::{Debt, Error, Lsn, Result, SqlState};

use types::text::NAME_BYTES_MAX;

/// Bytes of a payload; one with so many is 22023.
const PAYLOAD_BYTES: usize = 8_000;

/// About what a notification takes beside its text.
const ENTRY_BYTES: usize = 160;

/// About what a channel takes that the session listens to.
const CHANNEL_BYTES: usize = ENTRY_BYTES + 2 * NAME_BYTES_MAX;

/// What the transaction has asked for its own session.
#[derive(Debug)]
pub enum Asked {
    /// To listen to a channel.
    Listen(String),
    /// To listen to a channel no more, or to none.
    Unlisten(Option<String>),
}

/// A place to go back to.
#[derive(Clone, Copy, Debug)]
pub struct NotifyMark {
    told: usize,
    asked: usize,
}

/// What the open transaction tells others, and the session's own listening.
pub struct Notify {
    told: Vec<Rc<Notification>>,
    known: HashSet<Rc<Notification>>,
    asked: Vec<Asked>,
    memory: Reservation,
    channel_memory: Reservation,
    /// Who listens, while the session listens to anything.
    pub listener: Option<Box<dyn Listener>>,
    /// Larger after every change of its channels.
    pub version: u64,
    /// A commit whose notifications are for the session too, and are to come with its answer.
    pub own: Option<Debt>,
}

impl Default for Notify {
    fn default() -> Notify {
        Notify {
            told: Vec::new(),
            known: HashSet::default(),
            asked: Vec::new(),
            memory: memory(),
            channel_memory: Reservation::of("Channels"),
            listener: None,
            version: 0,
            own: None,
        }
    }
}

fn memory() -> Reservation {
    Reservation::of("Notifications")
}

impl Notify {
    /// The transaction tells something when it commits, once.
    ///
    /// # Errors
    /// 22023 for a channel or a payload that is none; 53200.
    pub fn tell(&mut self, notification: Notification) -> Result<()> {
        check(&notification)?;
        let notification = Rc::new(notification);
        if self.known.contains(&notification) {
            return Ok(());
        }
        let bytes = notification.channel.len() + notification.payload.len();
        self.memory.grow(ENTRY_BYTES + bytes)?;
        self.known.insert(notification.clone());
        self.told.push(notification);
        Ok(())
    }

    /// The transaction has asked for something that happens when it commits.
    ///
    /// # Errors
    /// 53200.
    pub fn ask(&mut self, asked: Asked) -> Result<()> {
        self.memory.grow(ENTRY_BYTES)?;
        if let Asked::Listen(_) = asked {
            self.channel_memory.grow(CHANNEL_BYTES)?;
        }
        self.asked.push(asked);
        Ok(())
    }

    /// What the transaction tells.
    pub fn told(&self) -> &[Rc<Notification>] {
        &self.told
    }

    /// The channels that it has asked for.
    pub fn wanted(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().filter_map(|asked| match asked {
            Asked::Listen(name) => Some(&name[..]),
            Asked::Unlisten(_) => None,
        })
    }

    /// Whether it has asked for anything.
    pub fn asks(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Whether the transaction has done nothing of all this.
    pub fn is_unused(&self) -> bool {
        self.told.is_empty() && self.asked.is_empty()
    }

    /// Where it is now.
    pub fn mark(&self) -> NotifyMark {
        NotifyMark {
            told: self.told.len(),
            asked: self.asked.len(),
        }
    }

    /// Forgets what was said since.
    pub fn roll_back_to(&mut self, mark: NotifyMark) {
        for told in self.told.drain(mark.told..) {
            self.known.remove(&told);
        }
        self.asked.truncate(mark.asked);
    }

    /// The transaction is over, and nothing of this happens.
    pub fn forget(&mut self) {
        if self.memory.bytes() > 0 {
            let kept = CHANNEL_BYTES * self.channels().len();
            let less = self.channel_memory.bytes().saturating_sub(kept);
            self.channel_memory.shrink(less);
            self.told = Vec::new();
            self.known = HashSet::default();
            self.asked = Vec::new();
            self.memory = memory();
        }
        self.listener
            .take_if(|listener| listener.channels().is_empty());
    }

    /// What was asked for happens: channels are heard from there on.
    pub fn carry_out(&mut self, since: Lsn) {
        for asked in std::mem::take(&mut self.asked) {
            let Some(listener) = &mut self.listener else {
                continue;
            };
            self.version += 1;
            match asked {
                Asked::Listen(name) => listener.listen(Channel { name, since }),
                Asked::Unlisten(name) => listener.unlisten(name.as_deref()),
            }
        }
    }

    /// The channels that the session listens to.
    pub fn channels(&self) -> &[Channel] {
        let listener = self.listener.as_ref();
        listener.map_or(&[], |listener| listener.channels())
    }
}

fn check(notification: &Notification) -> Result<()> {
    let Notification {
        channel, payload, ..
    } = notification;
    let wrong = if channel.is_empty() {
        "channel name cannot be empty"
    } else if channel.len() > NAME_BYTES_MAX {
        "channel name too long"
    } else if payload.len() >= PAYLOAD_BYTES {
        "payload string too long"
    } else {
        return Ok(());
    };
    Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(channel: &str, payload: &str) -> Notification {
        Notification {
            channel: channel.to_owned(),
            payload: payload.to_owned(),
            sender: 1,
        }
    }

    #[test]
    fn what_is_told_twice_is_told_once() {
        let mut notify = Notify::default();
        notify.tell(notification("a", "7")).unwrap();
        let mark = notify.mark();
        notify.tell(notification("a", "7")).unwrap();
        notify.tell(notification("a", "8")).unwrap();
        notify.ask(Asked::Listen("b".to_owned())).unwrap();
        assert_eq!((notify.told().len(), notify.wanted().count()), (2, 1));
        notify.roll_back_to(mark);
        assert_eq!((notify.told().len(), notify.asks()), (1, false));
        notify.tell(notification("a", "8")).unwrap();
        assert_eq!(notify.told().len(), 2);
        notify.forget();
        assert!(notify.is_unused());
    }

    #[test]
    fn channels_and_payloads_have_limits() {
        let long = |bytes| "x".repeat(bytes);
        for (channel, payload, is_fine) in [
            (long(63), long(7_999), true),
            (long(64), String::new(), false),
            (long(1), long(8_000), false),
            (String::new(), String::new(), false),
        ] {
            let told = Notify::default().tell(notification(&channel, &payload));
            assert_eq!(told.is_ok(), is_fine, "{told:?}");
        }
    }
}
