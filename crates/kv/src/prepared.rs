//! Prepared transactions: rows until they are resolved, and locks of whoever leads.
//!
//! What a transaction has written, its locks and as what it is prepared are rows of trees of the
//! engine's own, which one record makes. So they are replicated, taken back and kept by checkpoints
//! as any rows; nothing of the transaction is in the trees that it has written to.
//!
//! ```text
//! LSN 40   prepare "a"      rows of PREPARED and PREPARED_CHANGES: k = 7, k locked
//!          … another leads: takes k's lock before it serves anybody …
//! LSN 90   commit "a"       k = 7, and those rows go
//! ```
//!
//! | tree | key | row |
//! |---|---|---|
//! | `PREPARED` | name | [`Header`]; in a second column its [`Part`], if it has one |
//! | `PREPARED_CHANGES` | name, a zero byte, number of the part, 4 bytes, big-endian | changes, as a chunk of them is logged ([`crate::record`]) |
//!
//! What a transaction across groups has written in one of them is prepared in the same manner, under a
//! name that no client can say, and resolved by the leaders of those groups ([`crate::parts`]).
//!
//! # Invariants
//! - Who leads holds the locks of everything that is prepared in its log, from before it serves
//!   anybody until the record that resolves it is applied.
//! - The changes fit the newest rows: each of those is locked from before the transaction was
//!   prepared.
//!
//! # What it leaves out
//! A transaction is prepared by one record, so it has written at most [`CHANGES_BYTES_MAX`]. At
//! SERIALIZABLE none can be: what it has read would have to be remembered beyond its leader.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::engine::{Preparation, PreparedTransaction};
use base::row::{Row, RowBuilder};
use base::{Error, Key, Lsn, Result, SqlState, Timestamp, TreeId, TxnId, Xid};

use crate::parts::Part;
use crate::record::{self, Body, Change, Record, RowChange};

/// Bytes of changes of one prepared transaction: its record must fit a message.
pub const CHANGES_BYTES_MAX: usize = 16 << 20;

/// Bytes of changes in one row of `PREPARED_CHANGES`, apart from the last change.
const PART_BYTES: usize = 64 << 10;

/// What is known of a prepared transaction besides what it has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// As what and when it was prepared, and its id for clients.
    pub prepared: PreparedTransaction,
    /// Its id, by which its locks are held.
    pub txn: TxnId,
    /// How many rows its changes are in.
    pub parts: u32,
    /// Its locks, as [`crate::locks`] lists them.
    pub locks: Vec<u8>,
    /// Rows that it has taken to other trees.
    pub moved: Vec<(TreeId, Key)>,
    /// The first tree of each build that it switches to ([`crate::build`]).
    pub builds: Vec<TreeId>,
    /// What makes it a part of a transaction across groups.
    pub part: Option<Part>,
}

impl Header {
    /// Its key in [`TreeId::PREPARED`].
    pub fn key(&self) -> Key {
        self.prepared.preparation.name.clone().into_bytes()
    }

    /// Its row in [`TreeId::PREPARED`].
    pub fn to_row(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let prepared = &self.prepared;
        put_varint(&mut out, prepared.xid.0);
        put_signed(&mut out, prepared.prepared_at.0);
        put_varint(&mut out, prepared.preparation.owner.into());
        put_varint(&mut out, prepared.preparation.database.into());
        put_varint(&mut out, self.txn.0);
        put_varint(&mut out, self.parts.into());
        put_bytes(&mut out, &self.locks);
        for (tree, key) in &self.moved {
            put_varint(&mut out, tree.0);
            put_bytes(&mut out, key);
        }
        for build in &self.builds {
            put_varint(&mut out, TreeId::BUILDS.0);
            put_bytes(&mut out, &build.descriptor_key());
        }
        match &self.part {
            None => RowBuilder::new(1).value(&out).finish(),
            Some(part) => {
                let part = part.to_column();
                RowBuilder::new(2).value(&out).value(&part).finish()
            }
        }
    }

    /// Reads a row of [`TreeId::PREPARED`], which was there at `lsn`.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn from_row(key: &[u8], row: &[u8], lsn: Lsn) -> Result<Header> {
        let damaged = |_| Error::corrupted("the name of a prepared transaction is no text");
        let name = String::from_utf8(key.to_vec()).map_err(damaged)?;
        let row = Row::parse(row)?;
        let mut reader = Reader::new(row.column(0).unwrap_or_default());
        let xid = Xid(reader.varint()?);
        let prepared_at = Timestamp(reader.signed()?);
        let preparation = Preparation {
            name,
            owner: reader.varint_as()?,
            database: reader.varint_as()?,
        };
        let txn = TxnId(reader.varint()?);
        let parts = reader.varint_as()?;
        let locks = reader.bytes()?.to_vec();
        let (mut moved, mut builds) = (Vec::new(), Vec::new());
        while !reader.is_empty() {
            match (TreeId(reader.varint()?), reader.bytes()?) {
                (TreeId::BUILDS, key) => builds.push(TreeId::of_descriptor_key(key)?),
                (tree, key) => moved.push((tree, key.to_vec())),
            }
        }
        let part = row.column(1).map(|column| Part::from_column(column, lsn));
        Ok(Header {
            prepared: PreparedTransaction {
                preparation,
                xid,
                prepared_at,
            },
            txn,
            parts,
            locks,
            moved,
            builds,
            part: part.transpose()?,
        })
    }

    /// The key of a part of its changes in [`TreeId::PREPARED_CHANGES`].
    pub fn part_key(&self, part: u32) -> Key {
        part_key(&self.prepared.preparation.name, part)
    }
}

/// Puts the timestamp of its record into a row of [`TreeId::PREPARED`], if that is of a part.
pub fn stamp(row: &mut [u8], timestamp: Timestamp) {
    let is_part = Row::parse(row).is_ok_and(|row| row.column(1).is_some());
    if let (true, Some(last)) = (is_part, row.last_chunk_mut()) {
        *last = timestamp.0.to_be_bytes();
    }
}

fn part_key(name: &str, part: u32) -> Key {
    let mut key = name.as_bytes().to_vec();
    key.push(0);
    key.extend_from_slice(&part.to_be_bytes());
    key
}

/// What a transaction has written, as rows of [`TreeId::PREPARED_CHANGES`], in order.
///
/// # Errors
/// What the changes say; 54000 when there are too many.
pub fn parts_of(
    txn: TxnId,
    changes: impl Iterator<Item = Result<RowChange>>,
) -> Result<Vec<Vec<u8>>> {
    let (mut parts, mut all) = (Vec::new(), 0);
    let (mut part, mut bytes) = (Vec::new(), 0);
    let row = |changes: &mut Vec<RowChange>| {
        record::sort(changes);
        let row = RowBuilder::new(1).value(&record::encode_chunk(txn, changes));
        changes.clear();
        row.finish()
    };
    for change in changes {
        let change = change?;
        bytes += change.bytes();
        all += change.bytes();
        if all > CHANGES_BYTES_MAX {
            let message = "a transaction that has written so much cannot be prepared";
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .with_detail(format!("The maximum is {CHANGES_BYTES_MAX} bytes.")));
        }
        part.push(change);
        if bytes >= PART_BYTES {
            parts.push(row(&mut part));
            bytes = 0;
        }
    }
    if !part.is_empty() {
        parts.push(row(&mut part));
    }
    Ok(parts)
}

/// The changes that a row of [`TreeId::PREPARED_CHANGES`] has.
///
/// # Errors
/// XX001 when it is something else.
pub fn changes_in(row: &[u8]) -> Result<Vec<RowChange>> {
    let row = Row::parse(row)?;
    match Record::decode(row.column(0).unwrap_or_default())?.body {
        Body::Chunk { changes, .. } => Ok(changes),
        _ => Err(Error::corrupted("a prepared transaction has no changes")),
    }
}

/// What is prepared, as rows say, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared(BTreeMap<String, Arc<Header>>);

impl Prepared {
    /// All headers, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Header>> {
        self.0.values()
    }

    /// The one of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Header>> {
        self.0.get(name)
    }

    /// Whether a transaction with this id is among them.
    pub fn has(&self, xid: Xid) -> bool {
        self.iter().any(|header| header.prepared.xid == xid)
    }

    /// Takes a row of [`TreeId::PREPARED`], which was there at `lsn`.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn take(&mut self, key: &[u8], row: &[u8], lsn: Lsn) -> Result<()> {
        let header = Header::from_row(key, row, lsn)?;
        let name = header.prepared.preparation.name.clone();
        self.0.insert(name, Arc::new(header));
        Ok(())
    }

    /// Whether what makes a tree is prepared.
    pub fn builds(&self, tree: TreeId) -> bool {
        self.iter().any(|header| header.builds.contains(&tree))
    }

    /// The parts of transactions across groups.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.iter().filter_map(|header| header.part.as_ref())
    }

    /// As these, with what the record at `lsn` changes.
    ///
    /// # Errors
    /// XX001 when it changes what never changes.
    pub fn changed(&self, changes: &[RowChange], lsn: Lsn) -> Result<Prepared> {
        let mut changed = self.clone();
        for change in changes {
            match &change.change {
                Change::Insert(row) => changed.take(&change.key, row, lsn)?,
                Change::Delete => {
                    let name = std::str::from_utf8(&change.key);
                    name.ok().and_then(|name| changed.0.remove(name));
                }
                Change::Update(_) => {
                    return Err(Error::corrupted("a prepared transaction was changed"));
                }
            }
        }
        Ok(changed)
    }
}

/// The error for a name that is none.
pub fn unknown(name: &str) -> Error {
    let message = format!("prepared transaction with identifier \"{name}\" does not exist");
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

#[cfg(test)]
mod tests {
    use base::{GroupId, Term};
    use spanning::{Participant, SpanningId};

    use super::*;

    fn header() -> Header {
        Header {
            prepared: PreparedTransaction {
                preparation: Preparation {
                    name: "order 7".to_owned(),
                    owner: 10,
                    database: 5,
                },
                xid: Xid(700),
                prepared_at: Timestamp(-3),
            },
            txn: TxnId(9),
            parts: 2,
            locks: b"locks".to_vec(),
            moved: vec![(TreeId(20_000), b"k".to_vec())],
            builds: vec![TreeId(20_007)],
            part: None,
        }
    }

    #[test]
    fn headers_come_back() {
        let header = header();
        let row = header.to_row();
        let read = |row: &[u8]| Header::from_row(&header.key(), row, Lsn(40));
        assert_eq!(read(&row).unwrap(), header);
        assert!(read(&row[..row.len() - 1]).is_err());
        let insert = RowChange {
            tree: TreeId::PREPARED,
            key: header.key(),
            change: Change::Insert(row),
        };
        let there = Prepared::default()
            .changed(std::slice::from_ref(&insert), Lsn(40))
            .unwrap();
        assert!(there.has(Xid(700)) && there.get("order 7").is_some());
        let delete = RowChange {
            change: Change::Delete,
            ..insert
        };
        assert_eq!(
            there.changed(&[delete], Lsn(41)).unwrap(),
            Prepared::default()
        );
    }

    #[test]
    fn a_part_gets_the_timestamp_of_its_record() {
        let group = GroupId(2);
        let mut header = Header {
            part: Some(Part {
                id: SpanningId {
                    group,
                    term: Term(4),
                    number: 9,
                },
                participants: vec![Participant {
                    group,
                    term: Term(4),
                }],
                proposed: Timestamp(0),
                lsn: Lsn(40),
            }),
            ..header()
        };
        let mut row = header.to_row();
        stamp(&mut row, Timestamp(-7));
        let part = header.part.as_mut().unwrap();
        part.proposed = Timestamp(-7);
        let read = Header::from_row(&header.key(), &row, Lsn(40)).unwrap();
        assert_eq!(read, header);
        let mut local = self::header().to_row();
        stamp(&mut local, Timestamp(-7));
        assert_eq!(local, self::header().to_row());
    }

    #[test]
    fn changes_come_back_in_parts() {
        let change = |key: u32, bytes| RowChange {
            tree: TreeId(20_000),
            key: key.to_be_bytes().to_vec(),
            change: Change::Insert(vec![7; bytes]),
        };
        let changes: Vec<_> = (0..10).map(|key| change(key, PART_BYTES / 3)).collect();
        let parts = parts_of(TxnId(9), changes.iter().cloned().map(Ok)).unwrap();
        assert!((2..10).contains(&parts.len()), "{} parts", parts.len());
        let back: Vec<_> = (parts.iter())
            .flat_map(|part| changes_in(part).unwrap())
            .collect();
        assert_eq!(back, changes);
        let large = [Ok(change(1, CHANGES_BYTES_MAX))];
        let error = parts_of(TxnId(9), large.into_iter()).unwrap_err();
        assert_eq!(error.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
