//! What a session and its driver share: what has arrived, and what is to leave.
//!
//! ```text
//! driver: bytes ─→ input ─→ session ─→ output ─→ driver: bytes
//! ```
//! The session handles what is in the input, and waits for room where too much output is held; the
//! driver feeds and drains.

use std::cell::{Cell, RefCell};

use ::sql::session::{Encoding, Format};
use base::coro;
use base::env::Instant;
use base::error::{Error, Result, SqlState};
use base::limits::HELD_OUTPUT_BYTES_MAX;
use base::sync::Event;

use crate::frame::{violation, Framer, Side};
use crate::frontend::{Formats, Frontend};
use crate::log::SessionLog;
use crate::output::Output;

/// COPY FROM STDIN goes to work on what has arrived from this size on.
const COPY_TAKEN_BYTES_MIN: usize = 64 << 10;

/// What a session and its driver share. Both stay on one thread, and no borrow outlives a call.
#[derive(Debug)]
pub struct Channel {
    /// What the client has sent and nobody has handled.
    pub input: RefCell<Framer>,
    /// What the client has not been sent.
    pub output: RefCell<Output>,
    /// Notified when something has been received.
    pub arrived: Event,
    /// Notified when output has left.
    pub room: Event,
    /// When the statement that runs, or whose output is held, is to be interrupted.
    pub deadline: Cell<Option<Instant>>,
    /// The session's way to the server's log.
    pub log: SessionLog,
    /// How the client writes text.
    pub encoding: Cell<Encoding>,
}

impl Default for Channel {
    fn default() -> Channel {
        Channel {
            input: RefCell::new(Framer::new(Side::Frontend)),
            output: RefCell::default(),
            arrived: Event::new(),
            room: Event::new(),
            deadline: Cell::new(None),
            log: SessionLog::default(),
            encoding: Cell::default(),
        }
    }
}

impl Channel {
    /// That of a session which has a log.
    pub fn with_log(log: SessionLog) -> Channel {
        Channel {
            log,
            ..Channel::default()
        }
    }

    /// Whether the session may go on producing output.
    pub fn has_room(&self) -> bool {
        self.output.borrow().pending() <= HELD_OUTPUT_BYTES_MAX
    }

    /// Waits, inside a coroutine, until there is room for output.
    pub(crate) fn wait_for_room(&self) -> Result<()> {
        if self.has_room() {
            return Ok(());
        }
        let room = self.room.until(|| self.has_room().then_some(()));
        Ok(coro::wait(room)?)
    }
}

/// What the input holds for a COPY FROM STDIN.
pub(crate) enum CopyInput {
    /// Data, which was taken.
    Data,
    /// The end.
    Done,
    /// No whole message yet.
    NotYet,
}

impl Channel {
    /// Takes what the client sends to a COPY FROM STDIN and has arrived.
    pub(crate) fn take_copy_data(&self, data: &mut Vec<u8>) -> Result<CopyInput> {
        let mut input = self.input.borrow_mut();
        let before = data.len();
        loop {
            let taken = data.len() - before;
            match input.peek() {
                Some(b'd' | b'H' | b'S') if taken >= COPY_TAKEN_BYTES_MIN => {
                    return Ok(CopyInput::Data)
                }
                Some(b'c' | b'f') | None if taken > 0 => return Ok(CopyInput::Data),
                None if !input.has_message() => return Ok(CopyInput::NotYet),
                Some(kind) if !matches!(kind, b'd' | b'c' | b'f' | b'H' | b'S') => {
                    return Err(violation(format!(
                        "unexpected message type 0x{kind:02X} during COPY from stdin"
                    )));
                }
                _ => {}
            }
            let Some(frame) = input.next()? else {
                return Ok(CopyInput::NotYet);
            };
            match Frontend::decode(frame.kind, frame.body)? {
                Frontend::CopyData(bytes) => data.extend_from_slice(bytes),
                Frontend::CopyDone => return Ok(CopyInput::Done),
                Frontend::CopyFail(reason) => {
                    let reason = String::from_utf8_lossy(reason);
                    let message = format!("COPY from stdin failed: {reason}");
                    return Err(Error::new(SqlState::QUERY_CANCELED, message));
                }
                // Clients that send Sync behind Execute do not know yet that data is wanted.
                _ => {}
            }
        }
    }
}

/// One format for every column, or one for each.
#[derive(Clone, Debug)]
pub(crate) enum RowFormats {
    All(Format),
    Each(Vec<Format>),
}

impl RowFormats {
    pub(crate) fn of(formats: &Formats<'_>) -> RowFormats {
        match formats.count() {
            0 | 1 => RowFormats::All(format(formats, 0)),
            count => RowFormats::Each((0..count).map(|index| format(formats, index)).collect()),
        }
    }

    pub(crate) fn get(&self, column: usize) -> Format {
        match self {
            RowFormats::All(format) => *format,
            RowFormats::Each(formats) => formats.get(column).copied().unwrap_or_default(),
        }
    }
}

/// How the value of that number is written.
pub(crate) fn format(formats: &Formats<'_>, index: usize) -> Format {
    match formats.is_binary(index) {
        true => Format::Binary,
        false => Format::Text,
    }
}
