//! What nodes say to one another on a connection between them.
//!
//! ```text
//! n2 (connects)                             n1 (peer port)
//!   Hello ──────────────────────────────►   checks version, cluster, who it is
//!         ◄──────────────────────────────   Answer: welcome, not the leader, refused, removed
//!   frames of groups, one way, or the bytes of a client's session, both ways
//! ```
//!
//! Hello and answer are *framed*: a length of 4 bytes, big-endian, then so many bytes; frames of
//! the group likewise. The answer to a session that was let in is followed by what the server sends
//! its client, as it is.
//!
//! | part of a Hello | form |
//! |---|---|
//! | magic | `QUOR` |
//! | version | 1 byte, [`VERSION`] |
//! | cluster | 16 bytes |
//! | from, to | node ids, varints |
//! | incarnation | varint: that of the group as the node that connects knows it |
//! | name, address | of the node that connects, so that one who does not know it can answer |
//! | purpose | 1 byte: 1 group, 2 session, 3 cancel, 4 administer, 5 directory, 9 reload, 10 groups, 12 branches; then what belongs to it |
//!
//! Whoever is refused is told just that: nobody who does not belong here learns of which cluster or
//! version a node is, nor what was wrong. It stands in the log of the node that refuses.

use std::fmt;
use std::sync::Arc;

use base::cluster::Administration;
use base::codec::{put_bytes, put_varint, Reader};
use base::ids::FIRST_GROUP;
use base::{Error, GroupId, Lsn, NodeId, Result, SqlState};
use kv::groups::GROUPS_MAX;
use kv::{Start, StartLine};
use pg::auth::Access;
use pg::handover::Resume;
use pg::startup::CancelKey;

/// The version of everything that nodes say to one another, and of what whoever leads must know of the
/// log; a node of another is refused. (14: sessions that listen to notifications, which are rows of a tree.)
pub const VERSION: u8 = 15;

/// A frame between nodes may be at most this long; a longer one closes the connection.
pub const FRAME_BYTES_MAX: usize = 256 << 20;

/// A Hello or an answer may be at most this long.
///
/// A session's Hello carries the rules of access that fit it, [`pg::hba::RULES_MAX`] at most.
/// And what the session was: its settings and prepared statements.
pub const HELLO_BYTES_MAX: usize = 4 << 20;

const MAGIC: &[u8; 4] = b"QUOR";

/// A cluster, drawn at random when it is made: nodes of different clusters never talk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u128);

impl ClusterId {
    /// The half of it that a group keeps in its files.
    pub fn short(self) -> u64 {
        self.0 as u64
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterId({self})")
    }
}

impl std::str::FromStr for ClusterId {
    type Err = Error;

    fn from_str(text: &str) -> Result<ClusterId> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(id) if is_hex => Ok(ClusterId(id)),
            _ => Err(Error::corrupted(format!("\"{text}\" is no cluster id"))),
        }
    }
}

/// The first thing on a connection between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The cluster of the node that connects.
    pub cluster: ClusterId,
    /// The node that connects.
    pub from: NodeId,
    /// The node that it means to reach.
    pub to: NodeId,
    /// The group's incarnation as it knows it.
    pub incarnation: u64,
    /// Its name.
    pub name: Arc<str>,
    /// Where it takes other nodes.
    pub address: Arc<str>,
    /// What the connection is for.
    pub purpose: Purpose,
}

/// What a connection between nodes is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Frames of groups follow.
    Groups(Lines),
    /// A client's session is passed on.
    Session {
        /// The client's address, `ip:port`.
        client: String,
        /// Where the client was accepted, `ip:port`.
        server: String,
        /// The client's startup packet; what it sends after it comes after the welcome.
        packet: Vec<u8>,
        /// What the client has to show, and what is known of its connection.
        access: Box<Access>,
        /// What names the session to whoever wants to cancel its statement.
        key: CancelKey,
        /// The session's number, drawn at random.
        number: u64,
        /// What it was, if it was served elsewhere before.
        resume: Option<Box<Resume>>,
    },
    /// Transactions of the node that connects have branches in groups that this one leads: their calls
    /// follow, and what they are answered.
    Branches,
    /// The node is to read its files anew.
    Reload,
    /// The node is asked who the members are: a framed directory follows the welcome.
    Directory,
    /// A client's CancelRequest is passed on.
    Cancel {
        /// Which session.
        pid: i32,
        /// What only its client knows.
        secret: i32,
    },
    /// The leader is asked to do what an operator wants; a framed [`Outcome`] follows the welcome.
    Administer(Administration),
}

/// The starts of a node in each of its groups, the first group's first.
pub type Lines = Vec<(GroupId, StartLine)>;

/// What a Hello is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Go on.
    Welcome,
    /// A session was passed on to a node that does not lead; try again.
    NotLeader,
    /// The node wants nothing to do with the other.
    Refused,
    /// The one that connects has no part in the group any more.
    Removed(Removed),
    /// The one that connects was seen in a start that it knows nothing of.
    Outdated(Outdated),
}

/// A node of one group has no other words for its starts than it had before there were several.
fn put_lines(out: &mut Vec<u8>, lines: &Lines) {
    match &lines[..] {
        [(FIRST_GROUP, line)] => {
            out.push(GROUP);
            line.encode(out);
        }
        lines => {
            out.push(GROUPS);
            put_varint(out, lines.len() as u64);
            for (group, line) in lines {
                put_varint(out, u64::from(group.0));
                line.encode(out);
            }
        }
    }
}

fn read_lines(reader: &mut Reader<'_>) -> Result<Lines> {
    let count: usize = reader.varint_as()?;
    if count > GROUPS_MAX {
        return Err(Error::corrupted(format!("a node of {count} groups")));
    }
    let line = |_| Ok((GroupId(reader.varint_as()?), StartLine::decode(reader)?));
    (0..count).map(line).collect()
}

/// What a node learns that has no part in the group any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The incarnation in which the group goes on.
    pub incarnation: u64,
    /// From which position it does.
    pub begun_after: Lsn,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (incarnation, lsn) = (self.incarnation, self.begun_after);
        write!(
            f,
            "it is no member of incarnation {incarnation}, which goes on from {lsn}"
        )
    }
}

impl std::error::Error for Removed {}

/// What a node learns whose directory is older than what another knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outdated {
    /// Of which group.
    pub group: GroupId,
    /// In which start of it the other has seen the node.
    pub seen: Start,
}

impl fmt::Display for Outdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.seen.number;
        write!(
            f,
            "it has seen start {number} of this node, of which this directory knows nothing"
        )
    }
}

impl std::error::Error for Outdated {}

/// What became of an operator's wish.
#[derive(Clone, Debug)]
pub struct Outcome(pub Result<u64>);

impl Outcome {
    /// The bytes, without their length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.0 {
            Ok(number) => {
                out.push(0);
                put_varint(&mut out, *number);
            }
            Err(error) => {
                out.push(1);
                let fields = error.fields();
                let more = [&fields.detail, &fields.hint].map(|text| text.as_deref());
                put_bytes(&mut out, error.state().as_str().as_bytes());
                put_bytes(&mut out, error.message().as_bytes());
                for text in more {
                    put_bytes(&mut out, text.unwrap_or_default().as_bytes());
                }
            }
        }
        out
    }

    /// Reads an outcome.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(bytes: &[u8]) -> Result<Outcome> {
        let mut reader = Reader::new(bytes);
        let outcome = match reader.u8()? {
            0 => Ok(reader.varint()?),
            _ => {
                let state = SqlState::parse(reader.str()?);
                let state = state.unwrap_or(SqlState::INTERNAL_ERROR);
                let mut error = Error::new(state, reader.str()?);
                let (detail, hint) = (reader.str()?, reader.str()?);
                if !detail.is_empty() {
                    error = error.with_detail(detail);
                }
                if !hint.is_empty() {
                    error = error.with_hint(hint);
                }
                Err(error)
            }
        };
        reader.finish()?;
        Ok(Outcome(outcome))
    }
}

const GROUP: u8 = 1;
const SESSION: u8 = 2;
const CANCEL: u8 = 3;
const ADMINISTER: u8 = 4;
const DIRECTORY: u8 = 5;
const RELOAD: u8 = 9;
const GROUPS: u8 = 10;
// 11 and 12 were branches of earlier forms.
const BRANCHES: u8 = 13;

impl Hello {
    /// The bytes, without their length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        out.extend_from_slice(&self.cluster.0.to_be_bytes());
        put_varint(&mut out, self.from.0);
        put_varint(&mut out, self.to.0);
        put_varint(&mut out, self.incarnation);
        put_bytes(&mut out, self.name.as_bytes());
        put_bytes(&mut out, self.address.as_bytes());
        match &self.purpose {
            Purpose::Groups(lines) => put_lines(&mut out, lines),
            Purpose::Session {
                client,
                server,
                packet,
                access,
                key,
                number,
                resume,
            } => {
                out.push(SESSION);
                put_bytes(&mut out, client.as_bytes());
                put_bytes(&mut out, server.as_bytes());
                put_bytes(&mut out, packet);
                access.encode(&mut out);
                out.extend_from_slice(&key.pid.to_be_bytes());
                out.extend_from_slice(&key.secret.to_be_bytes());
                out.extend_from_slice(&number.to_be_bytes());
                out.push(u8::from(resume.is_some()));
                if let Some(resume) = resume {
                    resume.encode(&mut out);
                }
            }
            Purpose::Branches => out.push(BRANCHES),
            Purpose::Reload => out.push(RELOAD),
            Purpose::Directory => out.push(DIRECTORY),
            Purpose::Cancel { pid, secret } => {
                out.push(CANCEL);
                out.extend_from_slice(&pid.to_be_bytes());
                out.extend_from_slice(&secret.to_be_bytes());
            }
            Purpose::Administer(wish) => {
                out.push(ADMINISTER);
                put_bytes(&mut out, &wish.encode());
            }
        }
        out
    }

    /// Reads a Hello.
    ///
    /// # Errors
    /// When it is none, or one of another version.
    pub fn decode(bytes: &[u8]) -> Result<Hello> {
        let mut reader = Reader::new(bytes);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(Error::corrupted("this is no node of Quorate"));
        }
        let version = reader.u8()?;
        if version != VERSION {
            let message = format!("the node speaks version {version}, this one version {VERSION}");
            return Err(Error::corrupted(message));
        }
        let cluster = array(&mut reader).map(|bytes| ClusterId(u128::from_be_bytes(bytes)))?;
        let from = NodeId(reader.varint()?);
        let to = NodeId(reader.varint()?);
        let incarnation = reader.varint()?;
        let name = reader.str()?.into();
        let address = reader.str()?.into();
        let purpose = match reader.u8()? {
            GROUP => Purpose::Groups(vec![(FIRST_GROUP, StartLine::decode(&mut reader)?)]),
            GROUPS => Purpose::Groups(read_lines(&mut reader)?),
            SESSION => Purpose::Session {
                client: reader.str()?.to_owned(),
                server: reader.str()?.to_owned(),
                packet: reader.bytes()?.to_vec(),
                access: Box::new(Access::decode(&mut reader)?),
                key: CancelKey {
                    pid: i32::from_be_bytes(array(&mut reader)?),
                    secret: i32::from_be_bytes(array(&mut reader)?),
                },
                number: reader.u64()?,
                resume: match reader.u8()? {
                    0 => None,
                    _ => Some(Box::new(Resume::decode(&mut reader)?)),
                },
            },
            BRANCHES => Purpose::Branches,
            RELOAD => Purpose::Reload,
            DIRECTORY => Purpose::Directory,
            CANCEL => Purpose::Cancel {
                pid: i32::from_be_bytes(array(&mut reader)?),
                secret: i32::from_be_bytes(array(&mut reader)?),
            },
            ADMINISTER => Purpose::Administer(Administration::decode(reader.bytes()?)?),
            other => {
                let message = format!("a connection for purpose {other}");
                return Err(Error::corrupted(message));
            }
        };
        reader.finish()?;
        Ok(Hello {
            cluster,
            from,
            to,
            incarnation,
            name,
            address,
            purpose,
        })
    }
}

impl Answer {
    /// The bytes, without their length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Answer::Welcome => vec![0],
            Answer::NotLeader => vec![1],
            Answer::Refused => vec![2],
            Answer::Removed(removed) => {
                let mut out = vec![3];
                put_varint(&mut out, removed.incarnation);
                put_varint(&mut out, removed.begun_after.0);
                out
            }
            Answer::Outdated(Outdated { group, seen }) => {
                let is_first = *group == FIRST_GROUP;
                let mut out = vec![if is_first { 4 } else { 5 }];
                put_varint(&mut out, seen.number);
                out.extend_from_slice(&seen.token.to_be_bytes());
                if !is_first {
                    put_varint(&mut out, u64::from(group.0));
                }
                out
            }
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(bytes: &[u8]) -> Result<Answer> {
        let mut reader = Reader::new(bytes);
        let answer = match reader.u8()? {
            0 => Answer::Welcome,
            1 => Answer::NotLeader,
            2 => Answer::Refused,
            3 => Answer::Removed(Removed {
                incarnation: reader.varint()?,
                begun_after: Lsn(reader.varint()?),
            }),
            kind @ (4 | 5) => Answer::Outdated(Outdated {
                seen: Start {
                    number: reader.varint()?,
                    token: reader.u64()?,
                },
                group: match kind {
                    4 => FIRST_GROUP,
                    _ => GroupId(reader.varint_as()?),
                },
            }),
            other => return Err(Error::corrupted(format!("an answer of kind {other}"))),
        };
        reader.finish()?;
        Ok(answer)
    }
}

fn array<const N: usize>(reader: &mut Reader<'_>) -> Result<[u8; N]> {
    let bytes = reader.take(N)?;
    bytes
        .try_into()
        .map_err(|_| Error::corrupted(format!("{} bytes instead of {N}", bytes.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_and_answers_come_back() {
        let outdated = |group| {
            let (number, token) = (7, u64::MAX);
            let seen = Start { number, token };
            Answer::Outdated(Outdated { group, seen })
        };
        let mut line = StartLine::default();
        (1..300).for_each(|token| line.extend(token << 40));
        let purposes = [
            Purpose::Groups(vec![(FIRST_GROUP, line.clone())]),
            Purpose::Groups(vec![
                (FIRST_GROUP, StartLine::default()),
                (GroupId(7), line),
            ]),
            Purpose::Session {
                client: "127.0.0.1:4711".to_owned(),
                server: "127.0.0.2:5433".to_owned(),
                packet: vec![0, 1, 2],
                access: Box::new(Access::trusted()),
                key: CancelKey { pid: 7, secret: 8 },
                number: 9,
                resume: Some(Box::default()),
            },
            Purpose::Reload,
            Purpose::Branches,
            Purpose::Cancel { pid: 7, secret: -9 },
            Purpose::Administer(Administration::Switchover(None)),
        ];
        for purpose in purposes {
            let hello = Hello {
                cluster: ClusterId(0x0123_4567_89ab_cdef),
                from: NodeId(2),
                to: NodeId(1),
                incarnation: 3,
                name: "n2".into(),
                address: "127.0.0.2:6433".into(),
                purpose,
            };
            let bytes = hello.encode();
            assert_eq!(Hello::decode(&bytes).unwrap(), hello);
            for cut in 0..bytes.len() {
                assert!(Hello::decode(&bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
        for answer in [
            Answer::Welcome,
            Answer::NotLeader,
            Answer::Refused,
            Answer::Removed(Removed {
                incarnation: 2,
                begun_after: Lsn(9),
            }),
            outdated(FIRST_GROUP),
            outdated(GroupId(300)),
        ] {
            assert_eq!(Answer::decode(&answer.encode()).unwrap(), answer);
        }
        assert!(Hello::decode(b"GET / HTTP/1.1\r\n\r\n").is_err());
    }

    #[test]
    fn outcomes_come_back() {
        let outcome = Outcome::decode(&Outcome(Ok(7)).encode()).unwrap();
        assert_eq!(outcome.0.unwrap(), 7);
        let error = Error::new(SqlState::UNDEFINED_OBJECT, "none").with_hint("try another");
        let outcome = Outcome::decode(&Outcome(Err(error)).encode()).unwrap();
        let error = outcome.0.unwrap_err();
        assert_eq!(error.state(), SqlState::UNDEFINED_OBJECT);
        assert_eq!(error.fields().hint.as_deref(), Some("try another"));
        assert_eq!(error.fields().detail, None);
    }

    #[test]
    fn cluster_ids_come_back() {
        let id = ClusterId(0xfeed);
        assert_eq!(id.to_string().parse::<ClusterId>().unwrap(), id);
        assert!("feed".parse::<ClusterId>().is_err());
        assert!("+0000000000000000000000000000000"
            .parse::<ClusterId>()
            .is_err());
    }
}
