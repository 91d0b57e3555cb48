//! Notifications on their way to the client: before the end of a cycle, or while the session idles.
//!
//! ```text
//! a cycle ends outside a block   … CommandComplete  NotificationResponse …  ReadyForQuery
//! the session idles there                           NotificationResponse …
//! ```
//! What is told is committed for good, so it goes with the note of the cycle, which stays whatever an
//! error stands for, and where another node has the client, inside of it ([`crate::handover`]).
//!
//! Source: PostgreSQL 15 manual, section 55.2.7 (asynchronous operations).

use std::task::{Context, Poll};

use base::coro::{self, Interrupt};
use base::{Error, ErrorClass, Result, SqlState};

use super::{into_fatal, lost_to, Session, Turn};
use crate::backend::{Backend, TransactionStatus};
use crate::output::Content;
use crate::seam::Sql;

/// What a client is told at once, about. The rest follows when that has left.
const TOLD_BYTES_MAX: usize = 64 << 10;

/// Tells the client of an idle session what there is to hear, inside a coroutine.
pub fn hear<S: Sql>(mut session: Box<Session<S>>) -> (Box<Session<S>>, Turn) {
    let told = coro::catch_panic(|| session.tell());
    let turn = match told.unwrap_or_else(|panic| Err(lost_to(&panic))) {
        Ok(()) => Turn::Idle,
        // Meant for a statement; what there is to hear is still there.
        Err(error) if is_passing(&error) => Turn::Idle,
        Err(error) => Turn::Fatal(into_fatal(error)),
    };
    (session, turn)
}

/// Whether an error says that the session was interrupted, and not what is wrong.
fn is_passing(error: &Error) -> bool {
    let states = [
        SqlState::QUERY_CANCELED,
        SqlState::SERIALIZATION_FAILURE,
        SqlState::OUT_OF_MEMORY,
    ];
    error.class() == ErrorClass::Engine && states.contains(&error.state())
}

impl<S: Sql> Session<S> {
    /// Whether the session may tell its client something now: it idles outside of blocks.
    pub fn may_tell(&self) -> bool {
        !self.in_batch && self.status() == TransactionStatus::Idle
    }

    /// Whether the session listens to anything.
    pub fn listens(&mut self) -> bool {
        self.sql.heard().is_some()
    }

    /// Ready when there may be something to hear.
    pub fn poll_hearing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sql.poll_hearing(cx)
    }

    /// Whether another node has the client, and knows less than all of what it has heard.
    pub fn is_ahead(&mut self) -> bool {
        self.passed_on.is_some() && self.sql.heard() != self.told_heard
    }

    fn tell(&mut self) -> Result<()> {
        let messages = self.notifications()?;
        let note = self.note(messages);
        let mut output = self.channel.output.borrow_mut();
        output.push(Content::Free, |out| out.extend_from_slice(&note));
        output.flush();
        output.end_message();
        Ok(())
    }

    /// What there is to hear when a cycle ends. What goes wrong shows when the session idles.
    pub(super) fn hear_at_end(&mut self) -> Vec<u8> {
        self.notifications().unwrap_or_else(|error| {
            if error.state() == SqlState::ADMIN_SHUTDOWN {
                self.interrupts.raise(Interrupt::Terminate);
            }
            Vec::new()
        })
    }

    /// What there is to hear, as messages.
    fn notifications(&mut self) -> Result<Vec<u8>> {
        let told = self.sql.hear(TOLD_BYTES_MAX)?;
        let encoding = self.sql.client_encoding();
        let mut out = Vec::new();
        for told in &told {
            // What the client cannot read it is at least told of.
            let text = |text| encoding.encode(text).unwrap_or(b"?"[..].into());
            let (channel, payload) = (text(&told.channel), text(&told.payload));
            Backend::NotificationResponse(told.sender, &channel, &payload).encode(&mut out);
        }
        Ok(out)
    }
}
