//! What nodes of one group send to one another, one frame at a time.
//!
//! Consensus messages to one node that are ready together travel in one frame. A checkpoint is
//! fetched by its receiver, chunk by chunk, so that it sets the pace and goes on where it was when
//! a connection breaks:
//!
//! ```text
//! n3 (too far behind)                       n1 (leader)
//!   ◄──────────────── Raft: a snapshot at (7, 4000) is offered
//!   ChunkRequest (7, 4000) chunk 0 ────────►
//!   ◄──────────────── Chunk (7, 4000) 0 of 12, bytes
//!   …                                                    each with what is there already
//!   (imported whole, then Raft is told)
//! ```
//!
//! | part | form |
//! |---|---|
//! | format | 1 byte, [`FORMAT`] |
//! | group | varint |
//! | kind | 1 byte: 1 consensus, 2 chunk request, 3 chunk, 4 no such checkpoint, 5 built, 6 consensus, unhurried, 7 removed, 8 how far?, 9 so far |

use base::codec::{put_bytes, put_varint, Reader};
use base::{Error, GroupId, Lsn, Position, Result, Term, TreeId};

/// The version of this encoding; a frame of another is refused.
pub const FORMAT: u8 = 5;

const CONSENSUS: u8 = 1;
const CHUNK_REQUEST: u8 = 2;
const CHUNK: u8 = 3;
const NO_CHECKPOINT: u8 = 4;
const BUILT: u8 = 5;
const UNHURRIED: u8 = 6;
const REMOVED: u8 = 7;
const ASK_VISIBLE: u8 = 8;
const VISIBLE: u8 = 9;

/// One frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Messages of the consensus, in order.
    Consensus(Vec<raft::Message>),
    /// The same; nobody waits for what they bring to be on disk.
    Unhurried(Vec<raft::Message>),
    /// Asks for a part of a checkpoint.
    ChunkRequest {
        /// Which checkpoint.
        checkpoint: Position,
        /// The number of the chunk, from 0.
        index: u64,
        /// What the sender has of it, from an earlier try: [`storage::Importer::having`].
        having: Vec<u64>,
    },
    /// A part of a checkpoint.
    Chunk {
        /// Which checkpoint.
        checkpoint: Position,
        /// The number of the chunk, from 0.
        index: u64,
        /// How many there are.
        chunks: u64,
        /// What it holds.
        bytes: Vec<u8>,
    },
    /// The sender has done a [build](crate::build).
    Built {
        /// Which: the first of its trees.
        tree: TreeId,
    },
    /// Asks the leader how far it is.
    AskVisible {
        /// When, by the clock of who asks.
        asked: u64,
    },
    /// So far the leader was after it was asked.
    Visible {
        /// When it was asked.
        asked: u64,
        /// The newest position that it showed, in the term in which it leads.
        visible: Position,
    },
    /// That checkpoint is not to be had here any more.
    NoCheckpoint {
        /// Which checkpoint.
        checkpoint: Position,
    },
    /// The receiver has no part in the group any more.
    Removed {
        /// The group's incarnation.
        incarnation: u64,
        /// The position from which that goes on.
        begun_after: Lsn,
    },
}

/// The group that a frame is for.
///
/// # Errors
/// XX001 when it is no frame.
pub fn group_of(frame: &[u8]) -> Result<GroupId> {
    header(&mut Reader::new(frame))
}

fn header(reader: &mut Reader<'_>) -> Result<GroupId> {
    let format = reader.u8()?;
    if format != FORMAT {
        let message = format!("a frame of format {format}, and {FORMAT} is known");
        return Err(Error::corrupted(message));
    }
    reader.varint_as().map(GroupId)
}

fn header_of(group: GroupId, more: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + more);
    out.push(FORMAT);
    put_varint(&mut out, u64::from(group.0));
    out
}

/// A frame of consensus messages, given their bytes.
pub fn encode_consensus(group: GroupId, messages: &[Vec<u8>], unhurried: bool) -> Vec<u8> {
    let bytes: usize = messages.iter().map(|message| message.len() + 8).sum();
    let mut out = header_of(group, bytes);
    out.push(if unhurried { UNHURRIED } else { CONSENSUS });
    put_varint(&mut out, messages.len() as u64);
    for message in messages {
        put_bytes(&mut out, message);
    }
    out
}

fn put_position(out: &mut Vec<u8>, position: Position) {
    put_varint(out, position.term.0);
    put_varint(out, position.lsn.0);
}

fn position(reader: &mut Reader<'_>) -> Result<Position> {
    Ok(Position {
        term: Term(reader.varint()?),
        lsn: Lsn(reader.varint()?),
    })
}

fn digests(reader: &mut Reader<'_>) -> Result<Vec<u64>> {
    let count = reader.varint()?;
    (0..count).map(|_| reader.u64()).collect()
}

fn messages(reader: &mut Reader<'_>) -> Result<Vec<raft::Message>> {
    let count = reader.varint()?;
    (0..count)
        .map(|_| raft::Message::decode(reader.bytes()?))
        .collect()
}

impl Frame {
    /// The bytes.
    pub fn encode(&self, group: GroupId) -> Vec<u8> {
        let mut out = header_of(group, 0);
        match self {
            Frame::Consensus(messages) | Frame::Unhurried(messages) => {
                let messages: Vec<_> = messages.iter().map(raft::Message::encode).collect();
                let unhurried = matches!(self, Frame::Unhurried(_));
                return encode_consensus(group, &messages, unhurried);
            }
            Frame::ChunkRequest {
                checkpoint,
                index,
                having,
            } => {
                out.push(CHUNK_REQUEST);
                put_position(&mut out, *checkpoint);
                put_varint(&mut out, *index);
                put_varint(&mut out, having.len() as u64);
                for digest in having {
                    out.extend_from_slice(&digest.to_be_bytes());
                }
            }
            Frame::Chunk {
                checkpoint,
                index,
                chunks,
                bytes,
            } => {
                out.push(CHUNK);
                put_position(&mut out, *checkpoint);
                put_varint(&mut out, *index);
                put_varint(&mut out, *chunks);
                put_bytes(&mut out, bytes);
            }
            Frame::AskVisible { asked } => {
                out.push(ASK_VISIBLE);
                put_varint(&mut out, *asked);
            }
            Frame::Visible { asked, visible } => {
                out.push(VISIBLE);
                put_varint(&mut out, *asked);
                put_position(&mut out, *visible);
            }
            Frame::Built { tree } => {
                out.push(BUILT);
                put_varint(&mut out, tree.0);
            }
            Frame::NoCheckpoint { checkpoint } => {
                out.push(NO_CHECKPOINT);
                put_position(&mut out, *checkpoint);
            }
            Frame::Removed {
                incarnation,
                begun_after,
            } => {
                out.push(REMOVED);
                put_varint(&mut out, *incarnation);
                put_varint(&mut out, begun_after.0);
            }
        }
        out
    }

    /// Reads a frame and the group that it is for.
    ///
    /// # Errors
    /// XX001 when it is none.
    pub fn decode(bytes: &[u8]) -> Result<(GroupId, Frame)> {
        let mut reader = Reader::new(bytes);
        let group = header(&mut reader)?;
        let frame = match reader.u8()? {
            CONSENSUS => Frame::Consensus(messages(&mut reader)?),
            UNHURRIED => Frame::Unhurried(messages(&mut reader)?),
            CHUNK_REQUEST => Frame::ChunkRequest {
                checkpoint: position(&mut reader)?,
                index: reader.varint()?,
                having: digests(&mut reader)?,
            },
            CHUNK => Frame::Chunk {
                checkpoint: position(&mut reader)?,
                index: reader.varint()?,
                chunks: reader.varint()?,
                bytes: reader.bytes()?.to_vec(),
            },
            NO_CHECKPOINT => Frame::NoCheckpoint {
                checkpoint: position(&mut reader)?,
            },
            ASK_VISIBLE => Frame::AskVisible {
                asked: reader.varint()?,
            },
            VISIBLE => Frame::Visible {
                asked: reader.varint()?,
                visible: position(&mut reader)?,
            },
            BUILT => Frame::Built {
                tree: TreeId(reader.varint()?),
            },
            REMOVED => Frame::Removed {
                incarnation: reader.varint()?,
                begun_after: Lsn(reader.varint()?),
            },
            other => return Err(Error::corrupted(format!("a frame of kind {other}"))),
        };
        reader.finish()?;
        Ok((group, frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        let checkpoint = Position {
            term: Term(7),
            lsn: Lsn(4_000),
        };
        let frames = [
            Frame::Consensus(vec![raft::Message::LeaseRequest {
                term: Term(7),
                round: 3,
                eager: true,
                promise: std::time::Duration::from_millis(300),
            }]),
            Frame::Unhurried(vec![raft::Message::LeaseRequest {
                term: Term(7),
                round: 4,
                eager: false,
                promise: std::time::Duration::from_secs(7),
            }]),
            Frame::ChunkRequest {
                checkpoint,
                index: 5,
                having: vec![0, u64::MAX, 7],
            },
            Frame::Chunk {
                checkpoint,
                index: 5,
                chunks: 12,
                bytes: vec![1, 2, 3],
            },
            Frame::NoCheckpoint { checkpoint },
            Frame::Removed {
                incarnation: 2,
                begun_after: Lsn(77),
            },
            Frame::AskVisible { asked: 1 << 40 },
            Frame::Visible {
                asked: 1 << 40,
                visible: Position {
                    term: Term(7),
                    lsn: Lsn(4_711),
                },
            },
            Frame::Built {
                tree: TreeId(20_000),
            },
        ];
        for frame in frames {
            let bytes = frame.encode(GroupId(9));
            assert_eq!(group_of(&bytes).unwrap(), GroupId(9));
            assert_eq!(Frame::decode(&bytes).unwrap(), (GroupId(9), frame));
            for end in 0..bytes.len() {
                assert!(Frame::decode(&bytes[..end]).is_err(), "cut at {end}");
            }
        }
    }
}
