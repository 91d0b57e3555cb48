//! How safe a reply must be before it leaves, and what it still waits for.
//!
//! Source: PostgreSQL 15 manual, section 20.5.1 (`synchronous_commit`); DESIGN, section 4.

use crate::ids::{GroupId, Position};

/// A level of `synchronous_commit`, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Durability {
    /// Nothing is waited for; flushed within [`crate::limits::OFF_FLUSH_DELAY`].
    Off,
    /// The leader's own fsync.
    Local,
    /// A majority has it in the operating system.
    RemoteWrite,
    /// The group's commit index: a majority has it on disk.
    #[default]
    On,
    /// `On`, and a majority (and the standbys named) has applied it.
    RemoteApply,
}

impl Durability {
    /// All levels, weakest first.
    pub const ALL: [Durability; 5] = [
        Durability::Off,
        Durability::Local,
        Durability::RemoteWrite,
        Durability::On,
        Durability::RemoteApply,
    ];

    /// The name that `SHOW synchronous_commit` prints.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Off => "off",
            Durability::Local => "local",
            Durability::RemoteWrite => "remote_write",
            Durability::On => "on",
            Durability::RemoteApply => "remote_apply",
        }
    }

    /// The level of that name; the boolean spellings of PostgreSQL are taken too.
    pub fn parse(name: &str) -> Option<Durability> {
        match name.to_ascii_lowercase().as_str() {
            "off" | "false" | "no" | "0" => Some(Durability::Off),
            "local" => Some(Durability::Local),
            "remote_write" => Some(Durability::RemoteWrite),
            "on" | "true" | "yes" | "1" => Some(Durability::On),
            "remote_apply" => Some(Durability::RemoteApply),
            _ => None,
        }
    }
}

/// What a reply rests on in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupDebt {
    /// The group.
    pub group: GroupId,
    /// The newest position in that group's log that the reply rests on, with the term of the
    /// leader under which it was seen: when the log is cut below it, the reply is void.
    pub position: Position,
}

/// What a reply rests on: per group and term, the newest position that was read or written.
///
/// Merging keeps the newest position of each group and term, so a debt only ever grows until it is
/// paid. Terms stay apart because they are different histories: a later term's position says
/// nothing of what the term before it has lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    first: Option<GroupDebt>,
    rest: Vec<GroupDebt>,
}

impl Debt {
    /// Rests on nothing.
    pub const NONE: Debt = Debt {
        first: None,
        rest: Vec::new(),
    };

    /// Rests on one position.
    pub fn of(group: GroupId, position: Position) -> Debt {
        Debt {
            first: Some(GroupDebt { group, position }),
            rest: Vec::new(),
        }
    }

    /// Whether nothing is waited for.
    pub fn is_none(&self) -> bool {
        self.first.is_none()
    }

    /// The parts, one per group and term.
    pub fn groups(&self) -> impl Iterator<Item = GroupDebt> + '_ {
        self.first.iter().chain(&self.rest).copied()
    }

    /// Adds one position; does not allocate while only one group and term is involved.
    pub fn add(&mut self, group: GroupId, position: Position) {
        let part = GroupDebt { group, position };
        let Some(first) = &mut self.first else {
            self.first = Some(part);
            return;
        };
        let mut known = std::iter::once(first).chain(&mut self.rest);
        let same =
            |known: &&mut GroupDebt| known.group == group && known.position.term == position.term;
        match known.find(same) {
            Some(known) => known.position = known.position.max(position),
            None => self.rest.push(part),
        }
    }

    /// The same without what it has in these groups.
    #[must_use]
    pub fn without(&self, groups: &[GroupId]) -> Debt {
        let mut rest = Debt::NONE;
        for part in self.groups().filter(|part| !groups.contains(&part.group)) {
            rest.add(part.group, part.position);
        }
        rest
    }

    /// Adds all of another debt.
    pub fn merge(&mut self, other: &Debt) {
        for part in other.groups() {
            self.add(part.group, part.position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Lsn, Term};

    fn at(lsn: u64) -> Position {
        Position {
            term: Term(1),
            lsn: Lsn(lsn),
        }
    }

    #[test]
    fn merging_keeps_the_newest_of_each_group() {
        let mut debt = Debt::of(GroupId(1), at(7));
        debt.add(GroupId(1), at(5));
        debt.add(GroupId(2), at(3));
        debt.merge(&Debt::of(GroupId(2), at(9)));
        let parts: Vec<_> = debt.groups().map(|part| part.position.lsn.0).collect();
        assert_eq!(parts, [7, 9]);
    }

    #[test]
    fn a_later_term_does_not_hide_what_an_earlier_one_owes() {
        let mut debt = Debt::of(GroupId(1), at(7));
        let later = Position {
            term: Term(2),
            lsn: Lsn(9),
        };
        debt.add(GroupId(1), later);
        let parts: Vec<_> = debt.groups().map(|part| part.position).collect();
        assert_eq!(parts, [at(7), later]);
    }

    #[test]
    fn every_name_parses_to_its_level() {
        for level in Durability::ALL {
            assert_eq!(Durability::parse(level.name()), Some(level));
        }
        assert_eq!(Durability::parse("maybe"), None);
    }
}
