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
//! | kind | 1 byte: 1 consensus, 2 chunk request, 3 chunk, 4 no such checkpoint, 5 built, 6 consensus, unhurried, 7 removed, 8 how far?, 9 so far, 10 sum up a range, 11 its sum, 12 what the sums have shown, 13 of a transaction across groups |

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::engine::{Consistency, Inconsistency};
use base::{Error, GroupId, Key, Lsn, NodeId, Position, Result, Term, Timestamp, TreeId};

use crate::contents::{RangeSum, Sum};
use crate::parts::codec;

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
const CHECK_RANGE: u8 = 10;
const RANGE_SUM: u8 = 11;
const CONSISTENCY: u8 = 12;
const ACROSS: u8 = 13;

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
    /// The leader wants a range summed up.
    CheckRange {
        /// As it is at this position.
        at: Position,
        /// Of this tree.
        tree: TreeId,
        /// From this key on.
        from: Key,
    },
    /// What a range adds up to.
    RangeSum {
        /// At this position.
        at: Position,
        /// The sum.
        sum: RangeSum,
    },
    /// The leader says what comparing the replicas has shown.
    Consistency(Consistency),
    /// What the leader of another group says of a transaction across groups.
    Across {
        /// That group.
        from: GroupId,
        /// What it says.
        message: spanning::Message,
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

fn put_key(out: &mut Vec<u8>, key: Option<&Key>) {
    out.push(u8::from(key.is_some()));
    put_bytes(out, key.map_or(&[][..], Vec::as_slice));
}

fn key(reader: &mut Reader<'_>) -> Result<Option<Key>> {
    let is_there = reader.u8()? != 0;
    let key = reader.bytes()?.to_vec();
    Ok(is_there.then_some(key))
}

fn put_nodes(out: &mut Vec<u8>, nodes: &[NodeId]) {
    put_varint(out, nodes.len() as u64);
    nodes.iter().for_each(|node| put_varint(out, node.0));
}

fn nodes(reader: &mut Reader<'_>) -> Result<Vec<NodeId>> {
    let count = reader.varint()?;
    (0..count).map(|_| reader.varint().map(NodeId)).collect()
}

fn put_consistency(out: &mut Vec<u8>, told: &Consistency) {
    out.push(u8::from(told.is_running));
    put_signed(out, told.checked_at.unwrap_or_default().0);
    put_varint(out, told.rows);
    put_varint(out, told.inconsistencies.len() as u64);
    for one in &told.inconsistencies {
        put_varint(out, one.tree.0);
        put_bytes(out, &one.from);
        put_key(out, one.to.as_ref());
        put_varint(out, one.lsn.0);
        put_nodes(out, &one.deviating);
        put_nodes(out, &one.agreeing);
    }
}

fn consistency(reader: &mut Reader<'_>) -> Result<Consistency> {
    let is_running = reader.u8()? != 0;
    let checked_at = Timestamp(reader.signed()?);
    let rows = reader.varint()?;
    let count = reader.varint()?;
    let one = |_| -> Result<Inconsistency> {
        Ok(Inconsistency {
            tree: TreeId(reader.varint()?),
            from: reader.bytes()?.to_vec(),
            to: key(reader)?,
            lsn: Lsn(reader.varint()?),
            deviating: nodes(reader)?,
            agreeing: nodes(reader)?,
        })
    };
    Ok(Consistency {
        is_running,
        checked_at: Some(checked_at).filter(|at| *at != Timestamp::default()),
        rows,
        inconsistencies: (0..count).map(one).collect::<Result<_>>()?,
    })
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
            Frame::CheckRange { at, tree, from } => {
                out.push(CHECK_RANGE);
                put_position(&mut out, *at);
                put_varint(&mut out, tree.0);
                put_bytes(&mut out, from);
            }
            Frame::RangeSum { at, sum } => {
                out.push(RANGE_SUM);
                put_position(&mut out, *at);
                put_varint(&mut out, sum.sum.rows);
                put_varint(&mut out, sum.sum.checksum);
                put_key(&mut out, sum.end.as_ref());
            }
            Frame::Consistency(told) => {
                out.push(CONSISTENCY);
                put_consistency(&mut out, told);
            }
            Frame::Across { from, message } => {
                out.push(ACROSS);
                put_varint(&mut out, from.0.into());
                codec::put_message(&mut out, message);
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
            CHECK_RANGE => Frame::CheckRange {
                at: position(&mut reader)?,
                tree: TreeId(reader.varint()?),
                from: reader.bytes()?.to_vec(),
            },
            RANGE_SUM => Frame::RangeSum {
                at: position(&mut reader)?,
                sum: RangeSum {
                    sum: Sum {
                        rows: reader.varint()?,
                        checksum: reader.varint()?,
                    },
                    end: key(&mut reader)?,
                },
            },
            CONSISTENCY => Frame::Consistency(consistency(&mut reader)?),
            ACROSS => Frame::Across {
                from: GroupId(reader.varint_as()?),
                message: codec::message(&mut reader)?,
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
                commit: Lsn(4_001),
            }]),
            Frame::Unhurried(vec![raft::Message::LeaseRequest {
                term: Term(7),
                round: 4,
                eager: false,
                promise: std::time::Duration::from_secs(7),
                commit: Lsn::ZERO,
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
            Frame::CheckRange {
                at: checkpoint,
                tree: TreeId(20_000),
                from: vec![1, 2],
            },
            Frame::RangeSum {
                at: checkpoint,
                sum: RangeSum {
                    sum: Sum {
                        rows: 1_000,
                        checksum: u64::MAX,
                    },
                    end: Some(vec![7]),
                },
            },
            Frame::Consistency(Consistency {
                is_running: true,
                checked_at: Some(Timestamp(-7)),
                rows: 1_000,
                inconsistencies: vec![Inconsistency {
                    tree: TreeId(20_000),
                    from: vec![1],
                    to: None,
                    lsn: Lsn(4_000),
                    deviating: vec![NodeId(3)],
                    agreeing: vec![NodeId(1), NodeId(2)],
                }],
            }),
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
