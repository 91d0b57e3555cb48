//! Who belongs to a group, by name and address: what travels with the membership.
//!
//! The consensus counts nodes by their numbers. What is known of them besides (names, addresses,
//! zones, priorities, the keys with which they show who they are) is the *context* of the membership: it stands in the same log entries, takes
//! effect in the same instant, and is part of the same checkpoints. So all replicas agree on it, and
//! no crash tears the two apart.
//!
//! ```text
//! founded as            n1 n2 n3                 next number 4
//! add_node('n4', …)     n1 n2 n3 n4(learner)     next number 5
//! remove_node('n2')     n1 n3 n4(learner)        next number 5, so 2 was a member and is none
//! ```
//!
//! # Invariants
//! * A node's number is never given twice: one below [`Directory::next_node`] that is not listed
//!   belongs to a node that was removed. A node whose disk was wiped comes back under a new number.
//! * A key, once noted, stays until the member shows the one that an operator has said is its next:
//!   whoever has a certificate of the same authority and name, but neither key, is not the member.
//! * The incarnation only grows. A larger one was begun by an operator who accepted that what the
//!   survivor did not have is lost; nodes of a smaller one have no say any more.
//!
//! * Directories of all groups but the first follow that of the first, and never an older one than
//!   they have followed before ([`Directory::aligned`]).
//!
//! # What it leaves out
//! A node's addresses cannot be changed from here. The node's own configuration overrides what is
//! listed, so that a cluster on one machine can be started at other ports.

use std::sync::Arc;

use base::codec::{put_bytes, put_varint, Reader};
use base::{Error, Lsn, NodeId, Result};
use raft::Membership;

use crate::config::{KeyHash, Keys, Member, KEY_HASH_BYTES};

const FORMAT: u8 = 4;

/// A format without members that leave, and without [`Directory::aligned`]; written where there is
/// nothing of these.
const OF_ONE_GROUP: u8 = 3;

/// A format with one key of each member, which earlier builds have written.
const WITH_ONE_KEY: u8 = 2;

/// A format without keys, which earlier builds have written.
const WITHOUT_KEYS: u8 = 1;

/// Bytes of a node's name at most, as of every identifier.
pub const NAME_BYTES_MAX: usize = 63;

/// Who belongs to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// How many times an operator began the group anew, and one.
    pub incarnation: u64,
    /// The last position of the incarnation before that this one goes on from.
    pub begun_after: Lsn,
    /// The number of the next node that is added.
    pub next_node: u64,
    /// Leaders are preferred in this zone; empty if in none.
    pub leader_zone: Arc<str>,
    /// In another group than the first: it has the members that the first had at this position of
    /// that, or later. Zero as it was founded.
    pub aligned: Lsn,
    /// The members, by number.
    pub members: Vec<Member>,
}

impl Directory {
    /// A group that has just been founded by these members.
    pub fn founded(members: &[Member], incarnation: u64) -> Directory {
        let mut members = members.to_vec();
        members.sort_by_key(|member| member.node);
        Directory {
            incarnation,
            begun_after: Lsn::ZERO,
            next_node: members.last().map_or(0, |last| last.node.0) + 1,
            leader_zone: Arc::from(""),
            aligned: Lsn::ZERO,
            members,
        }
    }

    /// The directory of a membership. What `known` says of a node's addresses goes first.
    ///
    /// # Errors
    /// XX001 when the context is none of ours.
    pub fn of(membership: &Membership, known: &[Member]) -> Result<Directory> {
        let mut directory = Directory::decode(&membership.context)?;
        let members = &mut directory.members;
        members.retain(|member| membership.contains(member.node));
        for member in members.iter_mut() {
            member.voter = membership.voters.contains(&member.node);
            if let Some(known) = known.iter().find(|known| known.node == member.node) {
                member.peer_address = known.peer_address.clone();
                member.sql_address = known.sql_address.clone();
            }
        }
        Ok(directory)
    }

    /// The member of that number.
    pub fn member(&self, node: NodeId) -> Option<&Member> {
        self.members.iter().find(|member| member.node == node)
    }

    /// The member of that name.
    pub fn named(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| &*member.name == name)
    }

    /// Whether a node was a member and is none any more.
    pub fn was_removed(&self, node: NodeId) -> bool {
        node.0 < self.next_node && self.member(node).is_none()
    }

    /// What the directory of another group becomes that has the members of the first: those that do
    /// not leave, as they were at a position of the first.
    pub fn aligned_with(&self, first: &Directory, at: Lsn) -> Directory {
        let stay = first
            .members
            .iter()
            .filter(|member| member.leaves.is_none());
        Directory {
            incarnation: self.incarnation,
            begun_after: self.begun_after,
            next_node: first.next_node,
            leader_zone: first.leader_zone.clone(),
            aligned: at,
            members: stay.map(Member::of_another_group).collect(),
        }
    }

    /// How much a member is preferred as the leader: one that does not leave first, as other groups may
    /// have let that go already, then by zone, then by priority.
    pub fn rank(&self, member: &Member) -> (bool, bool, u32) {
        let in_zone = !self.leader_zone.is_empty() && member.zone == self.leader_zone;
        (member.leaves.is_none(), in_zone, member.priority)
    }

    /// The bytes, as context of a membership. Who votes is not among them.
    pub fn encode(&self) -> Vec<u8> {
        let leaves = |member: &Member| member.leaves.is_some();
        let is_more = self.aligned > Lsn::ZERO || self.members.iter().any(leaves);
        let mut out = vec![if is_more { FORMAT } else { OF_ONE_GROUP }];
        put_varint(&mut out, self.incarnation);
        put_varint(&mut out, self.begun_after.0);
        put_varint(&mut out, self.next_node);
        put_bytes(&mut out, self.leader_zone.as_bytes());
        if is_more {
            put_varint(&mut out, self.aligned.0);
        }
        put_varint(&mut out, self.members.len() as u64);
        for member in &self.members {
            put_varint(&mut out, member.node.0);
            put_varint(&mut out, u64::from(member.priority));
            for text in [
                &member.name,
                &member.peer_address,
                &member.sql_address,
                &member.zone,
            ] {
                put_bytes(&mut out, text.as_bytes());
            }
            for key in [&member.keys.noted, &member.keys.next] {
                put_bytes(&mut out, key.as_ref().map_or(&[], |key| &key.0[..]));
            }
            if is_more {
                put_varint(&mut out, member.leaves.map_or(0, |since| since.0 + 1));
            }
        }
        out
    }

    /// Reads what [`Directory::encode`] wrote; nobody votes in it.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn decode(bytes: &[u8]) -> Result<Directory> {
        let mut reader = Reader::new(bytes);
        let format = reader.u8()?;
        if ![FORMAT, OF_ONE_GROUP, WITH_ONE_KEY, WITHOUT_KEYS].contains(&format) {
            let message = format!("a directory of format {format}, and {FORMAT} is known");
            return Err(Error::corrupted(message));
        }
        let incarnation = reader.varint()?;
        let begun_after = Lsn(reader.varint()?);
        let next_node = reader.varint()?;
        let leader_zone = reader.str()?.into();
        let aligned = match format {
            FORMAT => Lsn(reader.varint()?),
            _ => Lsn::ZERO,
        };
        let count: usize = reader.varint_as()?;
        if count > raft::MEMBERS_MAX {
            return Err(Error::corrupted(format!("a directory of {count} members")));
        }
        let mut member = || -> Result<Member> {
            Ok(Member {
                node: NodeId(reader.varint()?),
                priority: reader.varint_as()?,
                name: reader.str()?.into(),
                peer_address: reader.str()?.into(),
                sql_address: reader.str()?.into(),
                zone: reader.str()?.into(),
                voter: false,
                keys: Keys {
                    noted: match format {
                        WITHOUT_KEYS => None,
                        _ => read_key(reader.bytes()?)?,
                    },
                    next: match format {
                        FORMAT | OF_ONE_GROUP => read_key(reader.bytes()?)?,
                        _ => None,
                    },
                },
                leaves: match format {
                    FORMAT => reader.varint()?.checked_sub(1).map(Lsn),
                    _ => None,
                },
            })
        };
        let members: Result<Vec<_>> = (0..count).map(|_| member()).collect();
        let directory = Directory {
            incarnation,
            begun_after,
            next_node,
            leader_zone,
            aligned,
            members: members?,
        };
        reader.finish()?;
        Ok(directory)
    }
}

fn read_key(bytes: &[u8]) -> Result<Option<KeyHash>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let key: [u8; KEY_HASH_BYTES] = bytes
        .try_into()
        .map_err(|_| Error::corrupted(format!("a key's hash of {} bytes", bytes.len())))?;
    Ok(Some(KeyHash(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: u64, voter: bool) -> Member {
        Member {
            node: NodeId(node),
            name: format!("n{node}").into(),
            peer_address: format!("10.0.0.{node}:6433").into(),
            sql_address: format!("10.0.0.{node}:5433").into(),
            voter,
            zone: "a".into(),
            priority: 7,
            keys: Keys {
                noted: (node == 2).then_some(KeyHash([9; KEY_HASH_BYTES])),
                next: (node == 2 && voter).then_some(KeyHash([8; KEY_HASH_BYTES])),
            },
            leaves: None,
        }
    }

    #[test]
    fn it_travels_with_the_membership() {
        let members = [member(2, true), member(1, true)];
        let mut directory = Directory::founded(&members, 3);
        directory.leader_zone = "b".into();
        let mut membership = Membership::new(&[NodeId(1), NodeId(2)], &[]);
        membership.context = directory.encode();
        let found = Directory::of(&membership, &[]).unwrap();
        assert_eq!(found, directory);
        assert_eq!(found.next_node, 3);

        let moved = Member {
            sql_address: "10.0.0.9:1".into(),
            ..member(1, true)
        };
        let found = Directory::of(&membership, &[moved]).unwrap();
        assert_eq!(&*found.members[0].sql_address, "10.0.0.9:1");
        assert!(Directory::decode(&[9]).is_err());
    }

    #[test]
    fn other_groups_follow_the_first() {
        let mut first = Directory::founded(&[1, 2, 3].map(|node| member(node, true)), 3);
        assert_eq!(first.encode()[0], OF_ONE_GROUP, "earlier builds read it");
        first.next_node = 9;
        first.members[1].leaves = Some(Lsn(69));
        let mut again = Directory::decode(&first.encode()).unwrap();
        again.members.iter_mut().for_each(|one| one.voter = true);
        assert_eq!(again, first);
        let other = Directory::founded(&first.members[..2], 1);
        let other = other.aligned_with(&first, Lsn(70));
        let nodes: Vec<_> = other.members.iter().map(|one| one.node.0).collect();
        assert_eq!((nodes, other.incarnation), (vec![1, 3], 1));
        assert!(other.was_removed(NodeId(2)));
        let again = Directory::decode(&other.encode()).unwrap();
        assert_eq!((again.aligned, again.next_node), (Lsn(70), 9));
    }

    #[test]
    fn directories_of_earlier_builds_know_no_keys() {
        let mut bytes = vec![WITHOUT_KEYS];
        put_varint(&mut bytes, 1);
        put_varint(&mut bytes, 0);
        put_varint(&mut bytes, 2);
        put_bytes(&mut bytes, b"");
        put_varint(&mut bytes, 1);
        put_varint(&mut bytes, 1);
        put_varint(&mut bytes, 7);
        for text in ["n1", "10.0.0.1:6433", "10.0.0.1:5433", "a"] {
            put_bytes(&mut bytes, text.as_bytes());
        }
        let found = Directory::decode(&bytes).unwrap();
        assert_eq!(found.members, [member(1, false)]);
        assert_eq!(Directory::decode(&found.encode()).unwrap(), found);
        let hash = KeyHash([0xa5; KEY_HASH_BYTES]);
        assert_eq!(hash.to_string().parse::<KeyHash>().unwrap(), hash);
        assert!("a5".parse::<KeyHash>().is_err());
    }

    #[test]
    fn two_keys_count_until_the_next_is_shown() {
        let key = |byte| KeyHash([byte; KEY_HASH_BYTES]);
        let mut keys = Keys::default();
        assert!(keys.fit(key(1)) && keys.is_news(key(1)));
        keys.note(key(1));
        assert!(keys.fit(key(1)) && !keys.is_news(key(1)) && !keys.fit(key(2)));
        keys.expect(key(2));
        assert!(keys.fit(key(1)) && keys.fit(key(2)) && !keys.fit(key(3)));
        assert!(!keys.is_news(key(1)) && keys.is_news(key(2)));
        let mut other = keys;
        other.expect(key(3));
        assert!(
            other.fit(key(3)) && !other.fit(key(2)),
            "it replaces the other"
        );
        other.expect(key(1));
        assert_eq!(other.next, None, "it takes back what was said before");
        keys.note(key(2));
        assert!(keys.fit(key(2)) && !keys.fit(key(1)));
    }

    #[test]
    fn who_is_no_member_any_more_was_removed() {
        let members = [member(1, true), member(2, true)];
        let mut membership = Membership::new(&[NodeId(1)], &[]);
        membership.context = Directory::founded(&members, 1).encode();
        let found = Directory::of(&membership, &[]).unwrap();
        assert!(found.was_removed(NodeId(2)));
        assert!(!found.was_removed(NodeId(1)));
        assert!(!found.was_removed(NodeId(3)), "it is not known yet");
    }

    #[test]
    fn a_zone_goes_before_a_priority() {
        let mut directory = Directory::founded(&[], 1);
        let (near, far) = (member(1, true), member(2, true));
        let far = Member {
            zone: "b".into(),
            priority: 9,
            ..far
        };
        assert!(directory.rank(&far) > directory.rank(&near));
        directory.leader_zone = "a".into();
        assert!(directory.rank(&far) < directory.rank(&near));
        let leaving = Member {
            leaves: Some(Lsn::ZERO),
            ..near.clone()
        };
        assert!(directory.rank(&leaving) < directory.rank(&far));
    }
}
