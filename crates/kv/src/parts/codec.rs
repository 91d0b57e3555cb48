//! The bytes of what leaders say to each other about transactions across groups, and of their parts
//! in rows.
//!
//! | what | form |
//! |---|---|
//! | id | group, term, number: varints |
//! | participants | varint count, then group and term of each |
//! | outcome | 0 for an abort; 1 and the timestamp, signed |
//! | message | 1 byte, then its fields in the order of [`Message`] |

use base::codec::{put_signed, put_varint, Reader};
use base::{Error, GroupId, Result, Term, Timestamp};
use spanning::{Message, Outcome, Participant, SpanningId, Vote};

const PREPARE: u8 = 1;
const VOTE: u8 = 2;
const OUTCOME: u8 = 3;
const INQUIRY: u8 = 4;
const RESOLVED: u8 = 5;
const FORGET: u8 = 6;

/// Appends an id.
pub fn put_id(out: &mut Vec<u8>, id: SpanningId) {
    put_varint(out, id.group.0.into());
    put_varint(out, id.term.0);
    put_varint(out, id.number);
}

/// Reads an id.
///
/// # Errors
/// XX001 when it is none.
pub fn id(reader: &mut Reader<'_>) -> Result<SpanningId> {
    Ok(SpanningId {
        group: GroupId(reader.varint_as()?),
        term: Term(reader.varint()?),
        number: reader.varint()?,
    })
}

/// Appends a list of participants.
pub fn put_participants(out: &mut Vec<u8>, participants: &[Participant]) {
    put_varint(out, participants.len() as u64);
    for one in participants {
        put_varint(out, one.group.0.into());
        put_varint(out, one.term.0);
    }
}

/// Reads a list of participants.
///
/// # Errors
/// XX001 when it is none.
pub fn participants(reader: &mut Reader<'_>) -> Result<Vec<Participant>> {
    let count = reader.varint()?;
    let one = |_| -> Result<Participant> {
        Ok(Participant {
            group: GroupId(reader.varint_as()?),
            term: Term(reader.varint()?),
        })
    };
    (0..count).map(one).collect()
}

/// An outcome as one number that may be absent: the timestamp of a commit, nothing for an abort.
fn put_timestamp(out: &mut Vec<u8>, timestamp: Option<Timestamp>) {
    out.push(timestamp.is_some().into());
    if let Some(timestamp) = timestamp {
        put_signed(out, timestamp.0);
    }
}

fn timestamp(reader: &mut Reader<'_>) -> Result<Option<Timestamp>> {
    match reader.u8()? {
        0 => Ok(None),
        1 => Ok(Some(Timestamp(reader.signed()?))),
        other => Err(Error::corrupted(format!("an outcome of kind {other}"))),
    }
}

/// Appends a message.
pub fn put_message(out: &mut Vec<u8>, message: &Message) {
    let begin = |out: &mut Vec<u8>, kind: u8, id: SpanningId| {
        out.push(kind);
        put_id(out, id);
    };
    match message {
        Message::Prepare {
            id,
            participants,
            unfinished,
        } => {
            begin(out, PREPARE, *id);
            put_participants(out, participants);
            put_varint(out, *unfinished);
        }
        Message::Vote { id, vote, term } => {
            begin(out, VOTE, *id);
            put_timestamp(
                out,
                match vote {
                    Vote::Prepared(proposed) => Some(*proposed),
                    Vote::Refused => None,
                },
            );
            put_varint(out, term.0);
        }
        Message::Outcome {
            id,
            outcome,
            participants,
        } => {
            begin(out, OUTCOME, *id);
            put_timestamp(
                out,
                match outcome {
                    Outcome::Committed(at) => Some(*at),
                    Outcome::Aborted => None,
                },
            );
            put_participants(out, participants);
        }
        Message::Inquiry { id, participants } => {
            begin(out, INQUIRY, *id);
            put_participants(out, participants);
        }
        Message::Resolved { id } => begin(out, RESOLVED, *id),
        Message::Forget { id } => begin(out, FORGET, *id),
    }
}

/// Reads a message.
///
/// # Errors
/// XX001 when it is none.
pub fn message(reader: &mut Reader<'_>) -> Result<Message> {
    let kind = reader.u8()?;
    let id = id(reader)?;
    Ok(match kind {
        PREPARE => Message::Prepare {
            id,
            participants: participants(reader)?,
            unfinished: reader.varint()?,
        },
        VOTE => Message::Vote {
            id,
            vote: timestamp(reader)?.map_or(Vote::Refused, Vote::Prepared),
            term: Term(reader.varint()?),
        },
        OUTCOME => Message::Outcome {
            id,
            outcome: timestamp(reader)?.map_or(Outcome::Aborted, Outcome::Committed),
            participants: participants(reader)?,
        },
        INQUIRY => Message::Inquiry {
            id,
            participants: participants(reader)?,
        },
        RESOLVED => Message::Resolved { id },
        FORGET => Message::Forget { id },
        other => return Err(Error::corrupted(format!("a message of kind {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        let id = SpanningId {
            group: GroupId(3),
            term: Term(7),
            number: 300,
        };
        let one = |group, term| Participant {
            group: GroupId(group),
            term: Term(term),
        };
        let participants = vec![one(1, 4), one(3, 7)];
        let term = Term(4);
        let messages = [
            Message::Prepare {
                id,
                participants: participants.clone(),
                unfinished: 12,
            },
            Message::Vote {
                id,
                vote: Vote::Prepared(Timestamp(-5)),
                term,
            },
            Message::Vote {
                id,
                vote: Vote::Refused,
                term,
            },
            Message::Outcome {
                id,
                outcome: Outcome::Committed(Timestamp(1 << 50)),
                participants: participants.clone(),
            },
            Message::Outcome {
                id,
                outcome: Outcome::Aborted,
                participants: participants.clone(),
            },
            Message::Inquiry { id, participants },
            Message::Resolved { id },
            Message::Forget { id },
        ];
        for sent in messages {
            let mut bytes = Vec::new();
            put_message(&mut bytes, &sent);
            let mut reader = Reader::new(&bytes);
            assert_eq!(message(&mut reader).unwrap(), sent);
            reader.finish().unwrap();
            assert!(message(&mut Reader::new(&bytes[..bytes.len() - 1])).is_err());
        }
        assert!(message(&mut Reader::new(&[9, 1, 1, 1])).is_err());
    }
}
