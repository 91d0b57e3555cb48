//! What a node that serves a passed-on session tells the node that has its client.
//!
//! With the end of each cycle goes one message more, a *note*, which the other node takes out of
//! the stream: how far the input was handled, and what the session is now, if that has changed.
//! When the serving node is lost, the other knows what was in flight, and can have the session
//! made anew ([`Resume`]).
//!
//! ```text
//! serving node   … CommandComplete  Note  ReadyForQuery ──►  other node ──► client
//!                                    └─ held by the gate with the rest of its cycle
//! ```
//!
//! | part of a note | form |
//! |---|---|
//! | input handled since the link began | varint bytes |
//! | what the session cannot leave behind | bytes, empty for nothing |
//! | what the session is | 1 byte: whether it follows; bytes |
//! | of a session that listens: up to where it has heard | two varints |
//! | messages for the client | bytes |
//!
//! What a session hears while it idles is told by a note of its own. The node with the client passes
//! on the messages of a note when it has all of it, and so knows exactly what its client has heard.

use base::codec::{put_bytes, put_varint, Reader};
use base::engine::{Flight, Heard, Outcomes};
use base::{Error, ErrorClass, Lsn, Result, SqlState, Xid};

use crate::backend::TransactionStatus;
use crate::frame::put_message;

/// The type of a note. No message of the protocol has it.
pub const NOTE: u8 = b'!';

/// What is told at the end of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Bytes of input that were handled since the link began.
    pub handled: u64,
    /// What it holds that lives on its node only; then it cannot move.
    pub pinned: String,
    /// What the session is, if that has changed.
    pub state: Option<Vec<u8>>,
    /// Up to where it has heard notifications, if it listens to any …
    pub heard: Option<Heard>,
    /// … and those that it has heard last, as messages for its client.
    pub messages: Vec<u8>,
}

impl Note {
    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_message(out, NOTE, |out| {
            put_varint(out, self.handled);
            put_bytes(out, self.pinned.as_bytes());
            out.push(u8::from(self.state.is_some()));
            if let Some(state) = &self.state {
                put_bytes(out, state);
            }
            if let Some(heard) = self.heard {
                heard.encode(out);
                put_bytes(out, &self.messages);
            }
        });
    }

    /// Reads a message's body.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn decode(body: &[u8]) -> Result<Note> {
        let mut reader = Reader::new(body);
        let mut note = Note {
            handled: reader.varint()?,
            pinned: reader.str()?.to_owned(),
            state: match reader.u8()? {
                0 => None,
                _ => Some(reader.bytes()?.to_vec()),
            },
            ..Note::default()
        };
        if !reader.is_empty() {
            note.heard = Some(Heard::decode(&mut reader)?);
            note.messages = reader.bytes()?.to_vec();
        }
        reader.finish()?;
        Ok(note)
    }
}

/// What became of the input that a lost leader had and did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InFlight {
    /// There is none.
    #[default]
    Nothing,
    /// It comes again, if nothing of it was committed.
    Repeated,
    /// It cannot come again: some of its answer was shown, it is too long, or two leaders were lost
    /// with it.
    Lost,
}

/// A session that is to go on elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// Cycles that were answered.
    pub cycles: u64,
    /// What the last ReadyForQuery said.
    pub status: TransactionStatus,
    /// What was in flight.
    pub in_flight: InFlight,
    /// Something that was committed before that was sent for the first time.
    pub since: Lsn,
    /// What the session was.
    pub state: Vec<u8>,
    /// Up to where it has heard notifications, if it listens to any.
    pub heard: Option<Heard>,
}

/// In the byte that says what was in flight: the session listens.
const LISTENS: u8 = 0x80;

impl Resume {
    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.cycles);
        out.push(self.status.code());
        let listens = if self.heard.is_some() { LISTENS } else { 0 };
        out.push(self.in_flight as u8 | listens);
        put_varint(out, self.since.0);
        put_bytes(out, &self.state);
        if let Some(heard) = self.heard {
            heard.encode(out);
        }
    }

    /// Reads what [`Resume::encode`] appended.
    ///
    /// # Errors
    /// XX001 and 08P01 when it is something else.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Resume> {
        let (cycles, status) = (reader.varint()?, TransactionStatus::of(reader.u8()?)?);
        let in_flight = reader.u8()?;
        Ok(Resume {
            cycles,
            status,
            in_flight: match in_flight & !LISTENS {
                0 => InFlight::Nothing,
                1 => InFlight::Repeated,
                _ => InFlight::Lost,
            },
            since: Lsn(reader.varint()?),
            state: reader.bytes()?.to_vec(),
            heard: match in_flight & LISTENS {
                0 => None,
                _ => Some(Heard::decode(reader)?),
            },
        })
    }
}

/// Fails unless nothing of what was in flight was committed, so that it may come again.
pub(crate) fn look_into_flight(
    outcomes: &dyn Outcomes,
    session: u64,
    resume: &Resume,
) -> Result<()> {
    if resume.in_flight == InFlight::Nothing {
        return Ok(());
    }
    let number = resume.cycles + 1;
    let committed = outcomes.flight_outcome(Flight { session, number }, resume.since)?;
    match committed {
        Some(xid) => Err(answer_lost(Some(xid))),
        None if resume.in_flight == InFlight::Repeated => Ok(()),
        None => Err(Error::of_class(
            ErrorClass::Session,
            SqlState::SERIALIZATION_FAILURE,
            "could not serialize access due to a failover",
        )
        .with_detail("Nothing was committed, and it is not run again.")),
    }
}

/// FATAL 08007: the leader was lost with its answer.
pub fn answer_lost(xid: Option<Xid>) -> Error {
    let error = Error::of_class(
        ErrorClass::Session,
        SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
        "the outcome of the transaction is unknown",
    );
    let lost = "The leader was lost before it answered.";
    match xid.filter(|xid| *xid > Xid(0)) {
        Some(xid) => error
            .with_detail(format!(
                "{lost} The last transaction it committed is {xid}."
            ))
            .with_hint(format!("Later, txid_status({xid}) says what became of it.")),
        None => error.with_detail(lost),
    }
}

/// FATAL 57P01: the session holds what died with its leader.
pub fn lost_with_leader(held: &str) -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::ADMIN_SHUTDOWN,
        "terminating connection: its node no longer leads its group",
    )
    .with_detail(format!("The session's {held} cannot move to another node."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_sessions_come_back() {
        let heard = Some(Heard {
            lsn: Lsn(52),
            number: 3,
        });
        for (state, heard) in [(None, heard), (Some(b"state".to_vec()), None)] {
            let messages = heard.map_or(&b""[..], |_| b"messages").to_vec();
            let note = Note {
                handled: 7_000,
                pinned: "held cursors".to_owned(),
                state,
                heard,
                messages,
            };
            let mut out = Vec::new();
            note.encode(&mut out);
            assert_eq!((out[0], Note::decode(&out[5..]).unwrap()), (NOTE, note));
        }
        for heard in [None, heard] {
            let resume = Resume {
                cycles: 3,
                status: TransactionStatus::Block,
                in_flight: InFlight::Lost,
                since: Lsn(4_711),
                state: b"state".to_vec(),
                heard,
            };
            let mut out = Vec::new();
            resume.encode(&mut out);
            assert_eq!(Resume::decode(&mut Reader::new(&out)).unwrap(), resume);
        }
    }
}
