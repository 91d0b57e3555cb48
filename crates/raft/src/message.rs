//! What replicas of a group say to one another, and its bytes.
//!
//! The consensus library's messages travel in an encoding of our own: its protobuf decoder must
//! never see bytes from a peer. Sender and receiver are not in the bytes: the transport knows
//! them, and what a peer claims about itself is worth nothing.
//!
//! ```text
//! tag   0 Raft           type flags term log_term index commit commit_term reject_hint
//!                        [chain]  [position [chain] membership]  count × (term kind data)
//!       1 Watermarks     term received applied
//!       2 LeaseRequest   term round flags promise commit
//!       3 LeaseResponse  term round flags slowest_sync starved
//!       4 SnapshotFailed term lsn
//!       5 Compare        term position chain
//! ```
//! Entries of a Raft message follow its index without a gap, so their LSNs are not written.

use std::time::Duration;

use base::codec::{put_bytes, put_varint, Reader};
use base::{Chain, Error, Lsn, NodeId, Position, Result, Term};
use raft_rs::eraftpb;
use raft_rs::eraftpb::MessageType;

use crate::adapter;
use crate::status::Condition;
use crate::types::{micros, number, EntryKind, SnapshotMeta};

/// A message between two replicas of one group.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// One of the consensus library's.
    Raft(RaftMessage),
    /// How far a follower has received (the operating system has it) and applied what it knows to
    /// match the log of the leader of that term.
    Watermarks {
        /// The leader's term.
        term: Term,
        /// Received up to here.
        received: Lsn,
        /// Applied up to here.
        applied: Lsn,
    },
    /// A leader asks who follows it.
    LeaseRequest {
        /// The leader's term.
        term: Term,
        /// Numbers the questions of one term.
        round: u64,
        /// Whether received and applied watermarks are wanted as soon as they move, or may wait
        /// for the next acknowledged flush.
        eager: bool,
        /// How long whoever answers must take no part in electing another leader; in whole
        /// microseconds, as it travels.
        promise: Duration,
        /// What it knows to be committed.
        commit: Lsn,
    },
    /// A follower answers, and thereby promises what it was asked for.
    LeaseResponse {
        /// The leader's term.
        term: Term,
        /// The question answered.
        round: u64,
        /// Whether the follower is at work on the snapshot that it was last offered.
        fetching: bool,
        /// How fit it is to lead.
        condition: Condition,
    },
    /// A follower could not fetch the snapshot that it was offered.
    SnapshotFailed {
        /// The leader's term.
        term: Term,
        /// The snapshot's position.
        lsn: Lsn,
    },
    /// A leader has another history up to a position that a follower has acknowledged.
    Compare {
        /// The leader's term.
        term: Term,
        /// The position.
        position: Position,
        /// The chain there, in the leader's log.
        chain: Chain,
    },
}

/// A message of the consensus library, and the sender's chain behind the entry that it names: the one
/// before those that it brings, the last that it acknowledges, or the last of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct RaftMessage(pub(crate) Box<eraftpb::Message>, pub(crate) Option<Chain>);

impl RaftMessage {
    pub(crate) fn kind(&self) -> MessageType {
        self.0.get_msg_type()
    }
}

const TAG_RAFT: u8 = 0;
const TAG_WATERMARKS: u8 = 1;
const TAG_LEASE_REQUEST: u8 = 2;
const TAG_LEASE_RESPONSE: u8 = 3;
const TAG_SNAPSHOT_FAILED: u8 = 4;
const TAG_COMPARE: u8 = 5;

const FLAG_FETCHING: u64 = 1;
const FLAG_FULL: u64 = 2;

const FLAG_REJECT: u8 = 1;
const FLAG_TRANSFER: u8 = 2;
const FLAG_CHAIN: u8 = 4;

/// The types that cross the network. All others are local to a replica, forward proposals, or
/// read through the leader, none of which Quorate does.
const RAFT_TYPES: [(MessageType, u8); TYPES] = [
    (MessageType::MsgAppend, 1),
    (MessageType::MsgAppendResponse, 2),
    (MessageType::MsgRequestVote, 3),
    (MessageType::MsgRequestVoteResponse, 4),
    (MessageType::MsgSnapshot, 5),
    (MessageType::MsgHeartbeat, 6),
    (MessageType::MsgHeartbeatResponse, 7),
    (MessageType::MsgTimeoutNow, 8),
    (MessageType::MsgRequestPreVote, 9),
    (MessageType::MsgRequestPreVoteResponse, 10),
    #[cfg(feature = "planted-bugs")]
    (MessageType::MsgPropose, 11),
];

/// How many these are; a build that can show bugs has one more.
const TYPES: usize = 10 + cfg!(feature = "planted-bugs") as usize;

/// A forwarded proposal, for a planted bug.
pub(crate) fn proposal(term: Term, entry: eraftpb::Entry) -> RaftMessage {
    let mut message = eraftpb::Message {
        term: term.0,
        ..eraftpb::Message::default()
    };
    message.set_msg_type(MessageType::MsgPropose);
    message.mut_entries().push(entry);
    RaftMessage(Box::new(message), None)
}

/// Whether the consensus library's message may leave this replica.
pub(crate) fn travels(kind: MessageType) -> bool {
    RAFT_TYPES.iter().any(|(known, _)| *known == kind)
}

/// The mark of a vote that a leadership transfer asks for.
pub(crate) fn is_transfer(message: &eraftpb::Message) -> bool {
    message.context.as_ref() == raft_rs::CAMPAIGN_TRANSFER
}

impl Message {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.entry_bytes());
        self.encode_into(&mut out);
        out
    }

    /// Appends the bytes.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Message::Raft(message) => encode_raft(&message.0, message.1, out),
            Message::Watermarks {
                term,
                received,
                applied,
            } => put_all(out, TAG_WATERMARKS, &[term.0, received.0, applied.0]),
            Message::LeaseRequest {
                term,
                round,
                eager,
                promise,
                commit,
            } => {
                let eager = u64::from(*eager);
                let numbers = [term.0, *round, eager, micros(*promise), commit.0];
                put_all(out, TAG_LEASE_REQUEST, &numbers);
            }
            Message::LeaseResponse {
                term,
                round,
                fetching,
                condition,
            } => {
                let fetching = if *fetching { FLAG_FETCHING } else { 0 };
                let full = if condition.is_full { FLAG_FULL } else { 0 };
                let numbers = [
                    term.0,
                    *round,
                    fetching | full,
                    micros(condition.slowest_sync),
                    micros(condition.starved),
                ];
                put_all(out, TAG_LEASE_RESPONSE, &numbers);
            }
            Message::SnapshotFailed { term, lsn } => {
                put_all(out, TAG_SNAPSHOT_FAILED, &[term.0, lsn.0]);
            }
            Message::Compare {
                term,
                position,
                chain,
            } => {
                let numbers = [term.0, position.term.0, position.lsn.0, u64::from(chain.0)];
                put_all(out, TAG_COMPARE, &numbers);
            }
        }
    }

    /// Reads what [`Message::encode`] wrote. Whatever the bytes are, the answer is a message that
    /// [`crate::Consensus::step`] can take, or an error.
    pub fn decode(bytes: &[u8]) -> Result<Message> {
        let mut reader = Reader::new(bytes);
        let message = match reader.u8()? {
            TAG_RAFT => Message::Raft(decode_raft(&mut reader)?),
            TAG_WATERMARKS => Message::Watermarks {
                term: term(&mut reader)?,
                received: Lsn(number(&mut reader)?),
                applied: Lsn(number(&mut reader)?),
            },
            TAG_LEASE_REQUEST => Message::LeaseRequest {
                term: term(&mut reader)?,
                round: number(&mut reader)?,
                eager: number(&mut reader)? != 0,
                promise: Duration::from_micros(number(&mut reader)?),
                commit: Lsn(number(&mut reader)?),
            },
            TAG_LEASE_RESPONSE => {
                let (term, round) = (term(&mut reader)?, number(&mut reader)?);
                let flags = number(&mut reader)?;
                Message::LeaseResponse {
                    term,
                    round,
                    fetching: flags & FLAG_FETCHING != 0,
                    condition: Condition {
                        slowest_sync: Duration::from_micros(number(&mut reader)?),
                        starved: Duration::from_micros(number(&mut reader)?),
                        is_full: flags & FLAG_FULL != 0,
                    },
                }
            }
            TAG_SNAPSHOT_FAILED => Message::SnapshotFailed {
                term: term(&mut reader)?,
                lsn: Lsn(number(&mut reader)?),
            },
            TAG_COMPARE => Message::Compare {
                term: term(&mut reader)?,
                position: Position {
                    term: term(&mut reader)?,
                    lsn: Lsn(number(&mut reader)?),
                },
                chain: Chain(reader.varint_as()?),
            },
            tag => return Err(Error::corrupted(format!("there is no message {tag}"))),
        };
        reader.finish()?;
        Ok(message)
    }

    /// Whether both acknowledge appends of one leader, and this one no less than the other.
    pub(crate) fn supersedes(&self, other: &Message) -> bool {
        let (Message::Raft(this), Message::Raft(other)) = (self, other) else {
            return false;
        };
        let acknowledges = |message: &RaftMessage| {
            message.kind() == MessageType::MsgAppendResponse && !message.0.reject
        };
        acknowledges(this)
            && acknowledges(other)
            && this.0.term == other.0.term
            && this.0.index >= other.0.index
    }

    /// How many bytes of entries it brings.
    pub fn entry_bytes(&self) -> usize {
        let entries = match self {
            Message::Raft(message) => message.0.get_entries(),
            _ => &[],
        };
        entries.iter().map(|entry| entry.data.len() + 16).sum()
    }

    /// The sender's term, as the message says.
    pub fn term(&self) -> Term {
        match self {
            Message::Raft(message) => Term(message.0.term),
            Message::Watermarks { term, .. }
            | Message::LeaseRequest { term, .. }
            | Message::LeaseResponse { term, .. }
            | Message::SnapshotFailed { term, .. }
            | Message::Compare { term, .. } => *term,
        }
    }
}

fn put_all(out: &mut Vec<u8>, tag: u8, numbers: &[u64]) {
    out.push(tag);
    numbers.iter().for_each(|number| put_varint(out, *number));
}

/// A term in a message is never 0: the library takes such a message for one of its own.
fn term(reader: &mut Reader<'_>) -> Result<Term> {
    match number(reader)? {
        0 => Err(Error::corrupted("a message has term 0")),
        term => Ok(Term(term)),
    }
}

fn encode_raft(message: &eraftpb::Message, chain: Option<Chain>, out: &mut Vec<u8>) {
    let kind = message.get_msg_type();
    let Some((_, code)) = RAFT_TYPES.iter().find(|(known, _)| *known == kind) else {
        unreachable!("{kind:?} never leaves its replica");
    };
    let mut flags = 0;
    if message.reject {
        flags |= FLAG_REJECT;
    }
    if is_transfer(message) {
        flags |= FLAG_TRANSFER;
    }
    if chain.is_some() {
        flags |= FLAG_CHAIN;
    }
    out.extend([TAG_RAFT, *code, flags]);
    for number in [
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.reject_hint,
    ] {
        put_varint(out, number);
    }
    put_chain(out, chain);
    if kind == MessageType::MsgSnapshot {
        let meta = adapter::snapshot_meta(message.get_snapshot());
        put_varint(out, meta.position.term.0);
        put_varint(out, meta.position.lsn.0);
        out.push(u8::from(meta.chain.is_some()));
        put_chain(out, meta.chain);
        meta.membership.encode(out);
    }
    put_varint(out, message.entries.len() as u64);
    for entry in message.entries.iter() {
        put_varint(out, entry.term);
        out.push(adapter::kind_of(entry).code());
        put_bytes(out, &entry.data);
    }
}

fn put_chain(out: &mut Vec<u8>, chain: Option<Chain>) {
    if let Some(chain) = chain {
        out.extend_from_slice(&chain.0.to_be_bytes());
    }
}

fn chain(reader: &mut Reader<'_>, is_there: bool) -> Result<Option<Chain>> {
    match is_there {
        true => Ok(Some(Chain(reader.u32()?))),
        false => Ok(None),
    }
}

fn decode_raft(reader: &mut Reader<'_>) -> Result<RaftMessage> {
    let code = reader.u8()?;
    let Some((kind, _)) = RAFT_TYPES.iter().find(|(_, known)| *known == code) else {
        return Err(Error::corrupted(format!("there is no Raft message {code}")));
    };
    let flags = reader.u8()?;
    let mut message = eraftpb::Message::default();
    message.set_msg_type(*kind);
    message.reject = flags & FLAG_REJECT != 0;
    if flags & FLAG_TRANSFER != 0 {
        message.context = raft_rs::CAMPAIGN_TRANSFER.into();
    }
    message.term = term(reader)?.0;
    message.log_term = number(reader)?;
    message.index = number(reader)?;
    message.commit = number(reader)?;
    message.commit_term = number(reader)?;
    message.reject_hint = number(reader)?;
    let told = chain(reader, flags & FLAG_CHAIN != 0)?;
    if *kind == MessageType::MsgSnapshot {
        let position = Position {
            term: term(reader)?,
            lsn: Lsn(number(reader)?),
        };
        let has_chain = reader.u8()? != 0;
        let chain = chain(reader, has_chain)?;
        let membership = crate::Membership::decode(reader)?;
        if position.lsn == Lsn::ZERO || position.term.0 > message.term {
            return Err(Error::corrupted("a snapshot is at no possible position"));
        }
        let meta = SnapshotMeta {
            position,
            chain,
            membership,
        };
        message.set_snapshot(adapter::snapshot(&meta));
    }
    decode_entries(reader, &mut message)?;
    Ok(RaftMessage(Box::new(message), told))
}

fn decode_entries(reader: &mut Reader<'_>, message: &mut eraftpb::Message) -> Result<()> {
    let count: u64 = number(reader)?;
    let carries = [MessageType::MsgAppend, MessageType::MsgPropose];
    if count > 0 && !carries.contains(&message.get_msg_type()) {
        return Err(Error::corrupted("only an append carries entries"));
    }
    let mut last_term = message.log_term;
    for offset in 0..count {
        let entry_term = term(reader)?;
        let kind = EntryKind::from_code(reader.u8()?)?;
        let data = reader.bytes()?;
        if entry_term.0 < last_term || entry_term.0 > message.term {
            return Err(Error::corrupted(format!(
                "an entry of term {entry_term} follows one of term {last_term} in term {}",
                message.term
            )));
        }
        last_term = entry_term.0;
        let lsn = message.index + 1 + offset;
        let entry = adapter::raft_entry(entry_term, Lsn(lsn), kind, data.to_vec())?;
        message.mut_entries().push(entry);
    }
    Ok(())
}

/// A message and whom it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The receiver.
    pub to: NodeId,
    /// What it is told.
    pub message: Message,
}

/// As scripts and traces show it.
impl std::fmt::Display for RaftMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let message = &self.0;
        let name = format!("{:?}", self.kind());
        write!(
            f,
            "{} term {}",
            name.trim_start_matches("Msg"),
            message.term
        )?;
        match self.kind() {
            MessageType::MsgAppend
            | MessageType::MsgRequestVote
            | MessageType::MsgRequestPreVote => {
                write!(f, " after {}.{}", message.log_term, message.index)?;
            }
            MessageType::MsgAppendResponse => write!(f, " up to {}", message.index)?,
            MessageType::MsgSnapshot => {
                let at = message.get_snapshot().get_metadata();
                write!(f, " at {}.{}", at.term, at.index)?;
            }
            _ => {}
        }
        if let [first, .., last] = message.get_entries() {
            write!(f, " entries {} to {}", first.index, last.index)?;
        } else if let [entry] = message.get_entries() {
            write!(f, " entry {}.{}", entry.term, entry.index)?;
        }
        if message.commit > 0 {
            write!(f, " commit {}", message.commit)?;
        }
        if message.reject {
            write!(f, " rejected, hint {}", message.reject_hint)?;
        }
        if is_transfer(message) {
            f.write_str(" for a transfer")?;
        }
        Ok(())
    }
}
