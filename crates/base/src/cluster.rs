//! What an operator may ask of a cluster: the same from the command line, from SQL, and from one
//! node to another.

use std::sync::Arc;

use crate::codec::{put_bytes, put_varint, Reader};
use crate::error::{Error, Result};

/// A wish that concerns the members or the groups of a cluster. Members go by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Administration {
    /// A further node, as a learner. The answer is its number.
    AddNode(NewNode),
    /// A node leaves for good. The answer is the position of the change.
    RemoveNode(Arc<str>),
    /// A learner that has caught up votes from now on. The answer is the position of the change.
    PromoteNode(Arc<str>),
    /// A voter votes no more. The answer is the position of the change.
    DemoteNode(Arc<str>),
    /// What is known of a node changes. The answer is the position of the change.
    SetNode {
        /// Which.
        name: Arc<str>,
        /// Its zone, if that changes.
        zone: Option<Arc<str>>,
        /// Its priority, if that changes.
        priority: Option<u32>,
        /// The SHA-256 of the public key with which it shows who it is, if that changes.
        key: Option<[u8; 32]>,
    },
    /// Leaders are preferred in this zone from now on; empty for none. The answer is the position
    /// of the change.
    SetLeaderZone(Arc<str>),
    /// Another voter leads, this one or the most fitting. The answer is its number.
    Switchover(Option<Arc<str>>),
    /// This very node goes on alone with what it has. The answer is the last position that it has.
    PromoteAlone,
    /// What the replicas hold is compared now. The answer is in how many ranges they differ.
    CheckConsistency,
    /// A further group. The answer is its number.
    AddGroup,
}

/// A node that is to be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewNode {
    /// Its name.
    pub name: Arc<str>,
    /// Where it will listen for other nodes, `ip:port`.
    pub peer_address: Arc<str>,
    /// Where it will listen for clients, `ip:port`.
    pub sql_address: Arc<str>,
    /// Where it stands; may be empty.
    pub zone: Arc<str>,
    /// See [`crate::engine::ReplicaStatus::priority`].
    pub priority: u32,
}

const ADD: u8 = 1;
const REMOVE: u8 = 2;
const PROMOTE: u8 = 3;
const DEMOTE: u8 = 4;
const SET: u8 = 5;
const LEADER_ZONE: u8 = 6;
const SWITCHOVER: u8 = 7;
const PROMOTE_ALONE: u8 = 8;
const CHECK_CONSISTENCY: u8 = 9;
const ADD_GROUP: u8 = 10;

fn put(out: &mut Vec<u8>, kind: u8, texts: &[&str]) {
    out.push(kind);
    texts
        .iter()
        .for_each(|text| put_bytes(out, text.as_bytes()));
}

fn put_optional(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    put_bytes(out, text.unwrap_or_default().as_bytes());
}

fn optional(reader: &mut Reader<'_>) -> Result<Option<Arc<str>>> {
    let is_there = reader.u8()? != 0;
    let text = reader.str()?;
    Ok(is_there.then(|| text.into()))
}

impl Administration {
    /// The bytes, for another node.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Administration::AddNode(node) => {
                let texts: [&str; 4] = [
                    &node.name,
                    &node.peer_address,
                    &node.sql_address,
                    &node.zone,
                ];
                put(&mut out, ADD, &texts);
                put_varint(&mut out, u64::from(node.priority));
            }
            Administration::RemoveNode(name) => put(&mut out, REMOVE, &[name]),
            Administration::PromoteNode(name) => put(&mut out, PROMOTE, &[name]),
            Administration::DemoteNode(name) => put(&mut out, DEMOTE, &[name]),
            Administration::SetNode {
                name,
                zone,
                priority,
                key,
            } => {
                put(&mut out, SET, &[name]);
                put_optional(&mut out, zone.as_deref());
                put_varint(
                    &mut out,
                    priority.map_or(0, |priority| u64::from(priority) + 1),
                );
                put_bytes(&mut out, key.as_ref().map_or(&[], |key| &key[..]));
            }
            Administration::SetLeaderZone(zone) => put(&mut out, LEADER_ZONE, &[zone]),
            Administration::Switchover(name) => {
                out.push(SWITCHOVER);
                put_optional(&mut out, name.as_deref());
            }
            Administration::PromoteAlone => out.push(PROMOTE_ALONE),
            Administration::CheckConsistency => out.push(CHECK_CONSISTENCY),
            Administration::AddGroup => out.push(ADD_GROUP),
        }
        out
    }

    /// Reads what [`Administration::encode`] wrote.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn decode(bytes: &[u8]) -> Result<Administration> {
        let mut reader = Reader::new(bytes);
        let wish = match reader.u8()? {
            ADD => Administration::AddNode(NewNode {
                name: reader.str()?.into(),
                peer_address: reader.str()?.into(),
                sql_address: reader.str()?.into(),
                zone: reader.str()?.into(),
                priority: reader.varint_as()?,
            }),
            REMOVE => Administration::RemoveNode(reader.str()?.into()),
            PROMOTE => Administration::PromoteNode(reader.str()?.into()),
            DEMOTE => Administration::DemoteNode(reader.str()?.into()),
            SET => Administration::SetNode {
                name: reader.str()?.into(),
                zone: optional(&mut reader)?,
                priority: match reader.varint_as::<u64>()? {
                    0 => None,
                    more => u32::try_from(more - 1).ok(),
                },
                key: match reader.bytes()? {
                    [] => None,
                    key => Some(key.try_into().map_err(|_| {
                        Error::corrupted(format!("a key's hash of {} bytes", key.len()))
                    })?),
                },
            },
            LEADER_ZONE => Administration::SetLeaderZone(reader.str()?.into()),
            SWITCHOVER => Administration::Switchover(optional(&mut reader)?),
            PROMOTE_ALONE => Administration::PromoteAlone,
            CHECK_CONSISTENCY => Administration::CheckConsistency,
            ADD_GROUP => Administration::AddGroup,
            other => return Err(Error::corrupted(format!("there is no wish {other}"))),
        };
        reader.finish()?;
        Ok(wish)
    }

    /// Whether it concerns the node that is asked and not the leader.
    pub fn is_local(&self) -> bool {
        matches!(self, Administration::PromoteAlone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_come_back() {
        let set = |zone: Option<&str>, priority| Administration::SetNode {
            name: "n2".into(),
            zone: zone.map(Arc::from),
            priority,
            key: priority.map(|byte| [byte as u8; 32]),
        };
        for wish in [
            Administration::AddNode(NewNode {
                name: "n4".into(),
                peer_address: "10.0.0.4:6433".into(),
                sql_address: "10.0.0.4:5433".into(),
                zone: "a".into(),
                priority: 3,
            }),
            Administration::RemoveNode("n1".into()),
            Administration::PromoteNode("n1".into()),
            Administration::DemoteNode("n1".into()),
            set(Some(""), None),
            set(None, Some(0)),
            Administration::SetLeaderZone("b".into()),
            Administration::Switchover(None),
            Administration::Switchover(Some("n3".into())),
            Administration::PromoteAlone,
            Administration::CheckConsistency,
            Administration::AddGroup,
        ] {
            let bytes = wish.encode();
            assert_eq!(Administration::decode(&bytes).unwrap(), wish);
            assert!(Administration::decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
