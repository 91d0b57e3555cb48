//! Commits of transactions across groups that another group may still ask about, as rows.
//!
//! | tree | key | row |
//! |---|---|---|
//! | `DECISIONS` | group, 4 bytes, term and number of the transaction, 8 bytes each, big-endian | the timestamp of its commit and its participants |
//!
//! # Invariants
//! - The record that makes a transaction's changes in a group makes its row there, and it goes when
//!   all participants' have been committed: so whoever finds neither a prepare nor a row concludes
//!   that there was no commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::codec::{put_signed, Reader};
use base::row::{Row, RowBuilder};
use base::{Error, GroupId, Key, Lsn, Result, Term, Timestamp};
use spanning::{Kept, Participant, SpanningId};

use super::codec::{participants, put_participants};
use crate::record::{Change, RowChange};

/// The decisions that a group keeps, by transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions(BTreeMap<SpanningId, Arc<Kept>>);

impl Decisions {
    /// All of them, by transaction.
    pub fn iter(&self) -> impl Iterator<Item = (SpanningId, &Arc<Kept>)> {
        self.0.iter().map(|(id, kept)| (*id, kept))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a row of [`TreeId::DECISIONS`], which was there at `lsn`.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn take(&mut self, key: &[u8], row: &[u8], lsn: Lsn) -> Result<()> {
        let id = id_of(key)?;
        let row = Row::parse(row)?;
        let mut reader = Reader::new(row.column(0).unwrap_or_default());
        let kept = Kept {
            lsn,
            timestamp: Timestamp(reader.signed()?),
            participants: participants(&mut reader)?,
        };
        self.0.insert(id, Arc::new(kept));
        Ok(())
    }

    /// As these, with what the record at `lsn` changes.
    ///
    /// # Errors
    /// XX001 when it changes what never changes.
    pub fn changed(&self, changes: &[RowChange], lsn: Lsn) -> Result<Decisions> {
        let mut changed = self.clone();
        for change in changes {
            match &change.change {
                Change::Insert(row) => changed.take(&change.key, row, lsn)?,
                Change::Delete => {
                    changed.0.remove(&id_of(&change.key)?);
                }
                Change::Update(_) => {
                    return Err(Error::corrupted("a decision was changed"));
                }
            }
        }
        Ok(changed)
    }
}

/// The key of a transaction's row.
pub fn key_of(id: SpanningId) -> Key {
    let mut key = id.group.0.to_be_bytes().to_vec();
    key.extend_from_slice(&id.term.0.to_be_bytes());
    key.extend_from_slice(&id.number.to_be_bytes());
    key
}

fn id_of(key: &[u8]) -> Result<SpanningId> {
    let mut reader = Reader::new(key);
    let id = SpanningId {
        group: GroupId(reader.u32()?),
        term: Term(reader.u64()?),
        number: reader.u64()?,
    };
    reader.finish()?;
    Ok(id)
}

/// The row of a commit.
pub fn row_of(timestamp: Timestamp, participants: &[Participant]) -> Vec<u8> {
    let mut out = Vec::new();
    put_signed(&mut out, timestamp.0);
    put_participants(&mut out, participants);
    RowBuilder::new(1).value(&out).finish()
}

#[cfg(test)]
mod tests {
    use base::TreeId;

    use super::*;

    #[test]
    fn decisions_come_and_go() {
        let id = SpanningId {
            group: GroupId(2),
            term: Term(3),
            number: 4,
        };
        let participants = vec![Participant {
            group: GroupId(2),
            term: Term(3),
        }];
        let kept = Kept {
            lsn: Lsn(40),
            timestamp: Timestamp(-9),
            participants: participants.clone(),
        };
        let insert = RowChange {
            tree: TreeId::DECISIONS,
            key: key_of(id),
            change: Change::Insert(row_of(kept.timestamp, &participants)),
        };
        let there = Decisions::default()
            .changed(std::slice::from_ref(&insert), Lsn(40))
            .unwrap();
        assert_eq!(there.iter().collect::<Vec<_>>(), [(id, &Arc::new(kept))]);
        let delete = RowChange {
            change: Change::Delete,
            ..insert
        };
        assert!(there.changed(&[delete], Lsn(41)).unwrap().is_empty());
        let mut none = Decisions::default();
        assert!(none.take(&key_of(id)[1..], &[], Lsn(1)).is_err());
    }
}
