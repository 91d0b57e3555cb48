//! A client's session that is served by another node, the leader: its bytes forth, the answers
//! back, and what is needed to go on when that node is lost.
//!
//! ```text
//!  client ──bytes──► sent, until a note says that it was handled ──► leader
//!         ◄── whole messages, and what notes have ◄── cycle by cycle ◄┘
//! ```
//! The leader may die, freeze, be cut off or step down; the client's connection is to *this* node
//! and stays. What is kept of the session is a [`Resume`], and the input that was not answered:
//!
//! | when the leader is lost | then, on the next leader |
//! |---|---|
//! | nothing is in flight | the session is made anew; its client notices nothing |
//! | something is, and nothing of its answer was shown | the new leader looks whether anything of it was committed. If not, the input comes again: outside a block it just runs, inside one it gets 40001. If so, 08007 |
//! | the same, and another leader was lost with it before | the same look; then 08007, or FATAL 40001: it may be what ends them |
//! | some of the answer was shown | the same look; then 08007, or FATAL 40001: the connection ends |
//! | it holds what cannot move | 57P01 |
//!
//! # Invariants
//! - Input comes again only if the leader that looks has committed an entry of its own term, and
//!   found no commit of the flight below it: whoever had the input before can append nothing any
//!   more that counts.
//! - What goes to the client ends between two messages when anything of our own follows.

use std::task::{Context, Poll};

use base::coro::{Interrupt, Interrupts};
use base::env::{BoxFuture, Stream};
use base::Lsn;
use pg::backend::TransactionStatus;
use pg::handover::{InFlight, Note, Resume, NOTE};

/// Bytes read at once, and held in each direction: a slow reader slows its writer down.
const BUFFER_BYTES: usize = 64 << 10;

/// Input in flight that is kept to come again; beyond it, only its outcome is looked for.
pub const REPEATED_BYTES_MAX: usize = 256 << 10;

/// What a session is told by a client that leaves in order.
const GOODBYE: &[u8] = b"X\0\0\0\x04";

/// Type and length of a message.
const HEADER_BYTES: usize = 5;

/// Why a passage is over.
#[derive(Debug, PartialEq, Eq)]
pub enum Over {
    /// The client is gone, or has been told goodbye.
    Ended,
    /// The session was told to end.
    Terminated,
    /// The serving node is lost.
    Lost,
}

/// What is known of a session, from link to link.
#[derive(Debug, Default)]
pub struct Known {
    /// What the session was when it last idled; none before it has begun.
    pub resume: Option<Resume>,
    /// What it holds that cannot move.
    pub pinned: String,
    /// What the client has sent and was not answered, as far as it is kept.
    pub input: Vec<u8>,
    /// Some of that is not kept.
    pub is_input_lost: bool,
    /// Some of that was sent to a leader.
    pub is_in_flight: bool,
    /// What was known to be committed before that.
    pub since: Lsn,
    /// It was sent to a second leader already, after the first was lost with it. What ends the
    /// process that runs it is not to end one after the other.
    pub is_repeated: bool,
    /// The client was shown something since the last ReadyForQuery.
    pub is_shown: bool,
    /// The client was shown part of a message.
    pub is_torn: bool,
}

impl Known {
    /// What the next leader is told.
    pub fn resume(&self) -> Option<Resume> {
        let is_lost = self.is_input_lost || self.is_shown || !self.pinned.is_empty();
        let is_lost = is_lost || self.is_repeated;
        let in_flight = match (self.is_in_flight, is_lost) {
            (false, _) => InFlight::Nothing,
            (true, false) => InFlight::Repeated,
            (true, true) => InFlight::Lost,
        };
        let resume = self.resume.clone();
        resume.map(|resume| Resume {
            in_flight,
            since: self.since,
            ..resume
        })
    }

    /// A leader is given what was not answered, if there is anything, when so much is known to be
    /// committed.
    fn give_again(&mut self, any: bool, commit: Lsn) {
        self.is_repeated = self.is_in_flight && any;
        if any {
            self.begins_flight(commit);
        }
    }

    /// Something is sent to a leader, when so much is known to be committed.
    fn begins_flight(&mut self, commit: Lsn) {
        if !std::mem::replace(&mut self.is_in_flight, true) {
            self.since = commit;
        }
    }

    /// Whether the client has said goodbye, and nothing else is left to do.
    pub fn has_said_goodbye(&self) -> bool {
        self.input == GOODBYE
    }
}

/// What a passage asks of its node.
pub struct Ties<'a> {
    /// Where others leave interrupts for the session.
    pub interrupts: &'a Interrupts,
    /// Told when the session has begun there: its client has shown who it is.
    pub begun: Box<dyn Fn() + 'a>,
    /// What is known to be committed.
    pub commit: Box<dyn Fn() -> Lsn + 'a>,
    /// Has the serving node cancel the session's statement.
    pub cancel: Box<dyn Fn() + 'a>,
    /// Ready when another node leads.
    pub replaced: BoxFuture<'a, ()>,
    /// Begins a pause, after which a session that waits for an answer is given up.
    pub pause: Box<dyn Fn() -> BoxFuture<'static, ()> + 'a>,
}

/// The two streams, and what is on its way between them.
pub struct Passage<'a> {
    client: &'a mut dyn Stream,
    there: Box<dyn Stream>,
    known: &'a mut Known,
    ties: Ties<'a>,
    is_replaced: bool,
    pausing: Option<BoxFuture<'static, ()>>,
    /// Bytes for the client, and how many of them it has.
    back: Vec<u8>,
    back_written: usize,
    /// Bytes of the serving node that were not looked at.
    inbox: Vec<u8>,
    /// How much of a message that is passed on piece by piece is still to come.
    rest_of_message: usize,
    /// Bytes for the serving node, and how many of them it has.
    forth: Vec<u8>,
    forth_written: usize,
    /// How many bytes of input this link was given, and how many of them were answered.
    received: u64,
    handled: u64,
    /// The serving node has said its last.
    is_last: bool,
    buffer: Vec<u8>,
}

impl<'a> Passage<'a> {
    /// A passage to a node that has welcomed the session. The input that is known goes first.
    pub fn new(
        client: &'a mut dyn Stream,
        there: Box<dyn Stream>,
        first_from_there: Vec<u8>,
        known: &'a mut Known,
        ties: Ties<'a>,
    ) -> Passage<'a> {
        let forth = known.input.clone();
        known.give_again(!forth.is_empty(), (ties.commit)());
        Passage {
            received: forth.len() as u64,
            client,
            there,
            known,
            ties,
            is_replaced: false,
            pausing: None,
            back: Vec::new(),
            back_written: 0,
            inbox: first_from_there,
            rest_of_message: 0,
            forth,
            forth_written: 0,
            handled: 0,
            is_last: false,
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// Moves what can be moved; ready at the end.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Over> {
        loop {
            match self.poll_once(cx) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(over) => return Poll::Ready(self.over(over)),
            }
        }
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let mut moved = self.poll_back(cx)?;
        moved |= self.poll_forth(cx)?;
        if let Poll::Ready(interrupt) = self.ties.interrupts.poll_take(cx) {
            match interrupt {
                Interrupt::Cancel => (self.ties.cancel)(),
                Interrupt::Terminate => return Err(Over::Terminated),
                _ => {}
            }
            moved = true;
        }
        self.poll_replaced(cx)?;
        Ok(moved)
    }

    /// When another node leads, the serving one gets a while to say what became of what it has.
    fn poll_replaced(&mut self, cx: &mut Context<'_>) -> Result<(), Over> {
        self.is_replaced = self.is_replaced || self.ties.replaced.as_mut().poll(cx).is_ready();
        if !self.is_replaced {
            return Ok(());
        }
        let waits = self.received > self.handled || self.known.is_shown;
        let pausing = self.pausing.get_or_insert_with(|| (self.ties.pause)());
        match !waits || pausing.as_mut().poll(cx).is_ready() {
            true => Err(Over::Lost),
            false => Ok(()),
        }
    }

    fn over(&mut self, over: Over) -> Over {
        self.known.is_torn = self.rest_of_message > 0 || self.back_written < self.back.len();
        match over {
            Over::Lost if self.is_last || self.known.has_said_goodbye() => Over::Ended,
            over => over,
        }
    }

    /// From the serving node to the client.
    fn poll_back(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let mut moved = false;
        loop {
            self.look();
            while self.back_written < self.back.len() {
                match self.client.poll_write(cx, &self.back[self.back_written..]) {
                    Poll::Ready(Ok(count)) if count > 0 => self.back_written += count,
                    Poll::Ready(_) => return Err(Over::Ended),
                    Poll::Pending => return Ok(moved),
                }
                moved = true;
            }
            self.back.clear();
            self.back_written = 0;
            match self.there.poll_read(cx, &mut self.buffer) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.inbox.extend_from_slice(&self.buffer[..count]);
                }
                Poll::Ready(_) => return Err(Over::Lost),
                Poll::Pending => return Ok(moved),
            }
            moved = true;
        }
    }

    /// Takes what can be taken out of the inbox.
    fn look(&mut self) {
        let inbox = std::mem::take(&mut self.inbox);
        let mut rest = &inbox[..];
        while let Some(count) = self.look_at(rest) {
            rest = &rest[count..];
        }
        self.inbox = match rest.len() == inbox.len() {
            true => inbox,
            false => rest.to_vec(),
        };
    }

    /// Takes a message, or part of a long one; how much.
    fn look_at(&mut self, rest: &[u8]) -> Option<usize> {
        if self.rest_of_message == 0 {
            let header = rest.get(..HEADER_BYTES)?;
            let length = header[1..].try_into().map_or(0, u32::from_be_bytes) as usize;
            let length = length.saturating_add(1).max(HEADER_BYTES);
            if matches!(header[0], NOTE | b'Z' | b'E') {
                let message = rest.get(..length)?;
                self.look_into(header[0], message);
                return Some(length);
            }
            self.known.is_shown = true;
            self.rest_of_message = length;
        }
        let count = self.rest_of_message.min(rest.len());
        self.back.extend_from_slice(&rest[..count]);
        self.rest_of_message -= count;
        (count > 0).then_some(count)
    }

    fn look_into(&mut self, kind: u8, message: &[u8]) {
        let body = &message[HEADER_BYTES..];
        if kind == NOTE {
            if let Ok(note) = Note::decode(body) {
                self.note(note);
            }
            return;
        }
        self.back.extend_from_slice(message);
        self.known.is_shown = kind == b'E';
        self.is_last |= kind == b'E' && is_fatal(body);
        let status = body.first().map(|code| TransactionStatus::of(*code));
        if let (b'Z', Some(resume), Some(Ok(status))) = (kind, &mut self.known.resume, status) {
            resume.cycles += 1;
            resume.status = status;
        }
    }

    fn note(&mut self, note: Note) {
        let handled = note.handled.clamp(self.handled, self.received);
        let count = (handled - self.handled) as usize;
        self.handled = handled;
        let known = &mut *self.known;
        known.is_in_flight = self.received > handled;
        known.is_repeated &= count == 0;
        if known.is_input_lost {
            known.is_input_lost = known.is_in_flight;
        } else {
            known.input.drain(..count);
        }
        known.pinned = note.pinned;
        if known.resume.is_none() {
            (self.ties.begun)();
        }
        let resume = known.resume.get_or_insert_with(Resume::default);
        if let Some(state) = note.state {
            resume.state = state;
        }
        resume.heard = note.heard;
        self.back.extend_from_slice(&note.messages);
    }

    /// From the client to the serving node.
    fn poll_forth(&mut self, cx: &mut Context<'_>) -> Result<bool, Over> {
        let mut moved = false;
        loop {
            while self.forth_written < self.forth.len() {
                let bytes = &self.forth[self.forth_written..];
                match self.there.poll_write(cx, bytes) {
                    Poll::Ready(Ok(count)) if count > 0 => self.forth_written += count,
                    // What it has still said may wait to be read.
                    Poll::Ready(_) => return Ok(moved),
                    Poll::Pending => return Ok(moved),
                }
                moved = true;
            }
            self.forth.clear();
            self.forth_written = 0;
            match self.client.poll_read(cx, &mut self.buffer) {
                Poll::Ready(Ok(count)) if count > 0 => self.take_in(count),
                Poll::Ready(_) => return Err(Over::Ended),
                Poll::Pending => return Ok(moved),
            }
            moved = true;
        }
    }

    /// The client has sent so many bytes more.
    fn take_in(&mut self, count: usize) {
        let bytes = &self.buffer[..count];
        self.forth.extend_from_slice(bytes);
        self.received += count as u64;
        let known = &mut *self.known;
        known.begins_flight((self.ties.commit)());
        known.is_input_lost |= known.input.len() + count > REPEATED_BYTES_MAX;
        match known.is_input_lost {
            true => known.input.clear(),
            false => known.input.extend_from_slice(bytes),
        }
    }
}

/// Whether an ErrorResponse ends the connection.
fn is_fatal(body: &[u8]) -> bool {
    let mut fields = body.split(|byte| *byte == 0);
    fields.any(|field| matches!(field, b"VFATAL" | b"VPANIC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_run_again_once() {
        let mut known = Known {
            resume: Some(Resume::default()),
            input: b"select poison()".to_vec(),
            ..Known::default()
        };
        let in_flight = |known: &Known| known.resume().map(|resume| resume.in_flight);
        assert_eq!(in_flight(&known), Some(InFlight::Nothing));
        known.give_again(true, Lsn(0));
        assert_eq!(in_flight(&known), Some(InFlight::Repeated));
        known.give_again(true, Lsn(0));
        assert_eq!(in_flight(&known), Some(InFlight::Lost));
    }
}
