//! The groups of a cluster, as rows of its first one.
//!
//! The first group, the *system group*, is there from the beginning, and every node is a member of
//! it. Each further one is a row of its tree [`TreeId::GROUPS`]: its number, and who founded it. A
//! node that has the row, committed, opens the group with just these members, so that all of them
//! begin with one membership:
//!
//! ```text
//! log of group 1   … 70: group 2, founded by n1 n2 n3 …
//! n1, n2, n3       see 70 committed, and open group 2 with the voters n1 n2 n3
//! n4, added later  replays 70, and opens group 2 as a learner beside these
//! ```
//! What becomes of the members afterwards stands in the log of the group itself, which its leader
//! keeps in step with the system group ([`crate::group`]).
//!
//! | tree | key | row |
//! |---|---|---|
//! | `GROUPS` | number, 4 bytes, big-endian | the [`Directory`] that it is founded with, all of whose members vote |
//!
//! # Invariants
//! - A row is written once and never changes: a group that was opened from it anew, with nothing on
//!   disk, has the members that it had at first.
//! - Numbers grow, and none is given twice.
//!
//! # What it leaves out
//! Groups stay: there is no row that ends one. Which rows lie in which group is no affair of this
//! tree.

use std::collections::BTreeMap;

use base::ids::FIRST_GROUP;
use base::row::{Row, RowBuilder};
use base::{Error, GroupId, Result, TreeId};

use crate::directory::Directory;
use crate::record::{Change, RowChange};

/// Groups of a cluster at most. Each costs every one of its nodes a log and a heartbeat.
pub const GROUPS_MAX: usize = 64;

/// The groups of a cluster but the first, and what they were founded with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    founded: BTreeMap<GroupId, Directory>,
}

impl Groups {
    /// Their numbers, in ascending order, and the directory with which each was founded: all of its
    /// members vote.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, &Directory)> {
        self.founded
            .iter()
            .map(|(group, directory)| (*group, directory))
    }

    /// How many there are, the first included.
    pub fn count(&self) -> usize {
        self.founded.len() + 1
    }

    /// The number of the next.
    pub fn next(&self) -> GroupId {
        let last = self.founded.last_key_value();
        let last = last.map_or(FIRST_GROUP, |(group, _)| *group);
        GroupId(last.0 + 1)
    }

    /// Takes a row of [`TreeId::GROUPS`].
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn take(&mut self, key: &[u8], row: &[u8]) -> Result<()> {
        let number: [u8; 4] = key
            .try_into()
            .map_err(|_| Error::corrupted(format!("a group's key of {} bytes", key.len())))?;
        let group = GroupId(u32::from_be_bytes(number));
        let row = Row::parse(row)?;
        let Some(directory) = row.column(0) else {
            return Err(Error::corrupted(format!("group {group} has no founders")));
        };
        let mut directory = Directory::decode(directory)?;
        let founders = directory.members.iter_mut();
        founders.for_each(|member| member.voter = true);
        self.founded.insert(group, directory);
        Ok(())
    }
}

/// What makes a group.
pub fn founding(group: GroupId, directory: &Directory) -> RowChange {
    RowChange {
        tree: TreeId::GROUPS,
        key: group.0.to_be_bytes().to_vec(),
        change: Change::Insert(RowBuilder::new(1).value(&directory.encode()).finish()),
    }
}

#[cfg(test)]
mod tests {
    use base::{Lsn, NodeId};

    use super::*;
    use crate::config::Member;

    #[test]
    fn groups_come_back() {
        let member = |node| Member {
            node: NodeId(node),
            name: format!("n{node}").into(),
            voter: true,
            ..Member::default()
        };
        let first = Directory::founded(&[1, 4].map(member), 3);
        let directory = Directory::founded(&[], 1).aligned_with(&first, Lsn(9));
        let mut groups = Groups::default();
        assert_eq!((groups.count(), groups.next()), (1, GroupId(2)));
        for group in [2, 3] {
            let made = founding(GroupId(group), &directory);
            let Change::Insert(row) = &made.change else {
                panic!("{made:?}");
            };
            groups.take(&made.key, row).unwrap();
            assert!(groups.take(&made.key, &row[..row.len() - 1]).is_err());
            assert!(groups.take(&made.key[1..], row).is_err());
        }
        let found: Vec<_> = groups.iter().collect();
        assert_eq!(found, [(GroupId(2), &directory), (GroupId(3), &directory)]);
        assert_eq!((groups.count(), groups.next()), (3, GroupId(4)));
    }
}
