//! The records of a group's log: what a transaction did, row by row.
//!
//! A record carries changed columns only, no page images, and nothing for secondary indexes: their
//! entries are derived when the record is applied. Decoding is total: any bytes give a record or
//! an error.
//!
//! | part | form |
//! |---|---|
//! | format and kind | 1 byte: eight times [`FORMAT`], and 1 transaction, 2 counter, 3 sequence, 4 chunk, 5 decision |
//! | timestamp | 8 bytes, big-endian, put in last of all ([`stamp`]) |
//! | transaction | varint id, varint trees, then each tree in ascending order |
//! | chunk | as a transaction |
//! | decision | varint id, 1 byte: 1 committed, 0 aborted; then as a transaction, its id left out |
//! | a tree | varint difference of its id to that of the tree before, then each row in ascending order of keys |
//! | a row | varint bytes shared with the key before (not for the first of a tree), varint head, the key's other bytes, row or delta with its length |
//! | head of a row | eight times the number of the key's other bytes, 4 if a row of the same tree follows, and 0 insert, 1 update, 2 delete |
//! | counter | varint id, varint first number that is not yet granted |
//! | sequence | varint id, signed last value that may be given, 1 byte: whether it may have been |
//!
//! A chunk is a part of a large transaction, and a decision its end ([`crate::group`]). A chunk's
//! rows of [`TreeId::DESCRIPTORS`] and [`TreeId::BUILDS`] announce what the decision will write.
//!
//! # What it leaves out
//! Prepare records and schema versions of rows are further kinds.

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::engine::SequencePosition;
use base::limits::KEY_BYTES_MAX;
use base::row::RowDelta;
use base::{usage, Error, Key, Result, SequenceId, Timestamp, TreeId, TxnId};

/// The version of this encoding.
pub const FORMAT: u8 = 3;

const TRANSACTION: u8 = 1;
const SEQUENCE: u8 = 2;
const POSITION: u8 = 3;
const CHUNK: u8 = 4;
const DECISION: u8 = 5;

/// Kinds take so many bits of the first byte, and the format the others.
const KIND_BITS: u32 = 3;

const TIMESTAMP_AT: usize = 1;
const HEADER_BYTES: usize = TIMESTAMP_AT + 8;

/// One row that a transaction changes. Secondary indexes are not mentioned: their entries are
/// derived when the record is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// The tree of the table's rows (never an index's).
    pub tree: TreeId,
    /// The key of the row.
    pub key: Key,
    /// What happens to it.
    pub change: Change,
}

impl RowChange {
    /// About as many bytes as it has in a record.
    pub fn bytes(&self) -> usize {
        let change = match &self.change {
            Change::Insert(row) => row.len(),
            Change::Update(delta) => delta.as_bytes().len(),
            Change::Delete => 0,
        };
        self.key.len() + change
    }
}

/// What happens to a row, compared with the newest version before the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was absent and is now this.
    Insert(Vec<u8>),
    /// It was present and these columns change.
    Update(RowDelta),
    /// It was present and goes.
    Delete,
}

const INSERT: u8 = 0;
const UPDATE: u8 = 1;
const DELETE: u8 = 2;

/// In the head of a row: another one of the same tree follows.
const MORE: u64 = 4;

/// The length of a key stands above what happens and [`MORE`].
const HEAD_BITS: u32 = 3;

/// One record, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was committed; larger than that of every earlier record.
    pub timestamp: Timestamp,
    /// What it says.
    pub body: Body,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A transaction inside this group, whole and committed.
    Transaction {
        /// Its id.
        txn: TxnId,
        /// Its changes, in ascending order of tree and key, at most one for each row.
        changes: Vec<RowChange>,
    },
    /// A part of a transaction, of which nothing is seen before it is decided on.
    Chunk {
        /// Its id.
        txn: TxnId,
        /// Some of its changes, as in a transaction.
        changes: Vec<RowChange>,
    },
    /// The end of a transaction that came in chunks.
    Decision {
        /// Its id.
        txn: TxnId,
        /// Whether it is committed.
        committed: bool,
        /// What of it was in no chunk.
        changes: Vec<RowChange>,
    },
    /// Numbers of a sequence below `next` are granted to the leader that logged this.
    Sequence {
        /// The sequence.
        sequence: SequenceId,
        /// The first number that is not granted.
        next: u64,
    },
    /// A sequence of SQL stands here, or may have come so far.
    Position {
        /// The sequence.
        sequence: SequenceId,
        /// Where.
        at: SequencePosition,
    },
}

/// Puts the changes of a transaction in the order of a record.
///
/// # Panics
/// When two changes are of the same row.
pub fn sort(changes: &mut [RowChange]) {
    changes.sort_unstable_by(|a, b| (a.tree, &a.key).cmp(&(b.tree, &b.key)));
    for pair in changes.windows(2) {
        let rows = [&pair[0], &pair[1]].map(|change| (change.tree, &change.key));
        assert!(rows[0] < rows[1], "a row changes once: {rows:?}");
    }
}

/// Encodes a transaction whose changes are [sorted](sort); its timestamp is still missing.
pub fn encode_transaction(txn: TxnId, changes: &[RowChange]) -> Vec<u8> {
    let mut out = header(TRANSACTION);
    put_varint(&mut out, txn.0);
    put_changes(&mut out, changes);
    out
}

/// Encodes a chunk of a transaction, whose changes are [sorted](sort); its timestamp is still
/// missing.
pub fn encode_chunk(txn: TxnId, changes: &[RowChange]) -> Vec<u8> {
    let mut out = header(CHUNK);
    put_varint(&mut out, txn.0);
    put_changes(&mut out, changes);
    out
}

/// Encodes the decision on a transaction that came in chunks, with changes that are
/// [sorted](sort); its timestamp is still missing.
pub fn encode_decision(txn: TxnId, committed: bool, changes: &[RowChange]) -> Vec<u8> {
    let mut out = header(DECISION);
    put_varint(&mut out, txn.0);
    out.push(u8::from(committed));
    put_changes(&mut out, changes);
    out
}

fn put_changes(out: &mut Vec<u8>, changes: &[RowChange]) {
    let trees = || changes.chunk_by(|a, b| a.tree == b.tree);
    put_varint(out, trees().count() as u64);
    let mut tree = 0;
    for rows in trees() {
        put_varint(out, rows[0].tree.0 - tree);
        tree = rows[0].tree.0;
        let mut previous = None;
        for (place, row) in rows.iter().enumerate() {
            put_row(out, previous, row, place + 1 < rows.len());
            previous = Some(&row.key[..]);
        }
    }
}

/// Notes for who counts ([`base::usage`]) that a change of a row goes to the log, with the bytes that it
/// has in a record by itself: beside others of its tree, its key takes fewer.
///
/// # Errors
/// As [`RowDelta::between`].
pub fn note_logged(tree: TreeId, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result<()> {
    let change = match (old, new) {
        (Some(old), Some(new)) => Change::Update(RowDelta::between(old, new)?),
        (None, Some(new)) => Change::Insert(new.to_vec()),
        (_, None) => Change::Delete,
    };
    let key = key.to_vec();
    let mut out = Vec::new();
    put_row(&mut out, None, &RowChange { tree, key, change }, false);
    usage::logged(out.len());
    Ok(())
}

/// Encodes a grant of sequence numbers; its timestamp is still missing.
pub fn encode_sequence(sequence: SequenceId, next: u64) -> Vec<u8> {
    let mut out = header(SEQUENCE);
    put_varint(&mut out, sequence.0);
    put_varint(&mut out, next);
    out
}

/// Encodes where a sequence of SQL stands; its timestamp is still missing.
pub fn encode_position(sequence: SequenceId, at: SequencePosition) -> Vec<u8> {
    let mut out = header(POSITION);
    put_varint(&mut out, sequence.0);
    put_signed(&mut out, at.last);
    out.push(u8::from(at.called));
    out
}

/// Puts the timestamp into an encoded record.
pub fn stamp(record: &mut [u8], timestamp: Timestamp) {
    record[TIMESTAMP_AT..HEADER_BYTES].copy_from_slice(&timestamp.0.to_be_bytes());
}

fn header(kind: u8) -> Vec<u8> {
    let mut out = vec![0; HEADER_BYTES];
    out[0] = FORMAT << KIND_BITS | kind;
    out
}

fn put_row(out: &mut Vec<u8>, previous: Option<&[u8]>, row: &RowChange, more: bool) {
    let mut shared = 0;
    if let Some(previous) = previous {
        let pairs = previous.iter().zip(&row.key);
        shared = pairs.take_while(|(a, b)| a == b).count();
        put_varint(out, shared as u64);
    }
    let suffix = &row.key[shared..];
    let (what, bytes) = match &row.change {
        Change::Insert(row) => (INSERT, Some(&row[..])),
        Change::Update(delta) => (UPDATE, Some(delta.as_bytes())),
        Change::Delete => (DELETE, None),
    };
    let more = if more { MORE } else { 0 };
    let head = (suffix.len() as u64) << HEAD_BITS | more | u64::from(what);
    put_varint(out, head);
    out.extend_from_slice(suffix);
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

impl Record {
    /// Takes an encoded record apart.
    ///
    /// # Errors
    /// XX001 when the bytes are not a record.
    pub fn decode(bytes: &[u8]) -> Result<Record> {
        let mut reader = Reader::new(bytes);
        let first = reader.u8()?;
        let (format, kind) = (first >> KIND_BITS, first & ((1 << KIND_BITS) - 1));
        if format != FORMAT {
            let message = format!("a record of format {format}, and {FORMAT} is known");
            return Err(Error::corrupted(message));
        }
        let timestamp = Timestamp(reader.u64()? as i64);
        let body = match kind {
            TRANSACTION => Body::Transaction {
                txn: TxnId(reader.varint()?),
                changes: read_changes(&mut reader)?,
            },
            CHUNK => Body::Chunk {
                txn: TxnId(reader.varint()?),
                changes: read_changes(&mut reader)?,
            },
            DECISION => Body::Decision {
                txn: TxnId(reader.varint()?),
                committed: reader.u8()? != 0,
                changes: read_changes(&mut reader)?,
            },
            SEQUENCE => Body::Sequence {
                sequence: SequenceId(reader.varint()?),
                next: reader.varint()?,
            },
            POSITION => Body::Position {
                sequence: SequenceId(reader.varint()?),
                at: SequencePosition {
                    last: reader.signed()?,
                    called: reader.u8()? != 0,
                },
            },
            other => return Err(Error::corrupted(format!("a record of kind {other}"))),
        };
        reader.finish()?;
        Ok(Record { timestamp, body })
    }
}

fn read_changes(reader: &mut Reader<'_>) -> Result<Vec<RowChange>> {
    let trees = reader.varint()?;
    let mut changes: Vec<RowChange> = Vec::new();
    let mut tree = 0u64;
    for place in 0..trees {
        let difference = reader.varint()?;
        let next = tree.checked_add(difference);
        let next = next.filter(|_| place == 0 || difference > 0);
        tree = next.ok_or_else(|| Error::corrupted("the trees of a record are out of order"))?;
        let first = changes.len();
        let mut more = true;
        while more {
            let previous = changes.get(first..).and_then(<[RowChange]>::last);
            let (row, follows) = read_row(reader, TreeId(tree), previous)?;
            changes.push(row);
            more = follows;
        }
    }
    Ok(changes)
}

/// A row, and whether another one of its tree follows.
fn read_row(
    reader: &mut Reader<'_>,
    tree: TreeId,
    previous: Option<&RowChange>,
) -> Result<(RowChange, bool)> {
    let prefix = match previous {
        None => &b""[..],
        Some(before) => {
            let shared: usize = reader.varint_as()?;
            let prefix = before.key.get(..shared);
            prefix.ok_or_else(|| Error::corrupted("a key shares more than there is"))?
        }
    };
    let head = reader.varint()?;
    let len = usize::try_from(head >> HEAD_BITS)
        .ok()
        .filter(|len| *len <= KEY_BYTES_MAX - prefix.len().min(KEY_BYTES_MAX))
        .ok_or_else(|| Error::corrupted(format!("a key longer than {KEY_BYTES_MAX} bytes")))?;
    let key = [prefix, reader.take(len)?].concat();
    if previous.is_some_and(|row| row.key >= key) {
        return Err(Error::corrupted("the keys of a record are out of order"));
    }
    let change = match (head & (MORE - 1)) as u8 {
        INSERT => Change::Insert(reader.bytes()?.to_vec()),
        UPDATE => Change::Update(RowDelta::from_bytes(reader.bytes()?)),
        DELETE => Change::Delete,
        other => return Err(Error::corrupted(format!("a change of kind {other}"))),
    };
    Ok((RowChange { tree, key, change }, head & MORE != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::row::RowBuilder;

    fn change(tree: u64, key: &str, change: Change) -> RowChange {
        RowChange {
            tree: TreeId(tree),
            key: key.into(),
            change,
        }
    }

    fn sample() -> Vec<RowChange> {
        let mut changes = vec![
            change(20_000, "apply", Change::Delete),
            change(16, "b", Change::Insert(b"row".to_vec())),
            change(
                20_000,
                "apple",
                Change::Update(RowDelta::from_bytes(b"\x01")),
            ),
            change(16, "", Change::Insert(Vec::new())),
        ];
        sort(&mut changes);
        changes
    }

    #[test]
    fn records_come_back() {
        let mut bytes = encode_transaction(TxnId(7), &sample());
        stamp(&mut bytes, Timestamp(-5));
        let record = Record::decode(&bytes).unwrap();
        assert_eq!(record.timestamp, Timestamp(-5));
        let Body::Transaction { txn, changes } = record.body else {
            panic!("{record:?}")
        };
        assert_eq!((txn, changes), (TxnId(7), sample()));

        let body = Body::Chunk {
            txn: TxnId(7),
            changes: sample(),
        };
        let bytes = encode_chunk(TxnId(7), &sample());
        assert_eq!(Record::decode(&bytes).unwrap().body, body);
        let body = Body::Decision {
            txn: TxnId(7),
            committed: true,
            changes: sample(),
        };
        let bytes = encode_decision(TxnId(7), true, &sample());
        assert_eq!(Record::decode(&bytes).unwrap().body, body);

        let bytes = encode_sequence(SequenceId(3), 65);
        let body = Body::Sequence {
            sequence: SequenceId(3),
            next: 65,
        };
        assert_eq!(Record::decode(&bytes).unwrap().body, body);

        let at = SequencePosition {
            last: i64::MIN,
            called: true,
        };
        let bytes = encode_position(SequenceId(1 << 40), at);
        let body = Body::Position {
            sequence: SequenceId(1 << 40),
            at,
        };
        assert_eq!(Record::decode(&bytes).unwrap().body, body);
    }

    #[test]
    fn any_bytes_are_a_record_or_an_error() {
        let good = encode_transaction(TxnId(7), &sample());
        for end in 0..good.len() {
            assert!(Record::decode(&good[..end]).is_err(), "cut at {end}");
        }
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                let _ = Record::decode(&bad);
            }
        }
    }

    /// What a TPC-B transaction changes: three balances, and a row of history.
    #[test]
    fn a_small_transaction_takes_few_bytes() {
        let key = |number: u32| [&[1][..], &(number | 1 << 31).to_be_bytes()].concat();
        let balance = |tree: u64, id: u32, columns: u8, place: u8| RowChange {
            tree: TreeId(tree),
            key: key(id),
            change: Change::Update(RowDelta::from_bytes(&[columns, place, 5, 0, 1, 2, 3])),
        };
        let history = RowBuilder::new(6)
            .value(&[0, 0, 0, 90])
            .value(&[0, 0, 0, 1])
            .value(&[0, 10, 63, 46])
            .value(&[0, 0, 7, 101])
            .value(&[0, 3, 3, 198, 184, 45, 92, 8])
            .null()
            .finish();
        let mut changes = vec![
            RowChange {
                tree: TreeId(16_390),
                key: vec![0, 0, 0, 0, 0, 0, 15, 20],
                change: Change::Insert(history),
            },
            balance(16_392, 1, 3, 1),
            balance(16_396, 90, 4, 2),
            balance(16_394, 671_534, 4, 2),
        ];
        sort(&mut changes);
        // 31 bytes of the row, 21 of the deltas, 23 of keys, 8 of time, and 18 that say what is what.
        let mut bytes = encode_transaction(TxnId(70_000), &changes);
        assert_eq!(bytes.len(), 102);
        stamp(&mut bytes, Timestamp(848_000_000_000_000));
        let body = Body::Transaction {
            txn: TxnId(70_000),
            changes,
        };
        assert_eq!(Record::decode(&bytes).unwrap().body, body);
    }

    #[test]
    #[should_panic(expected = "a row changes once")]
    fn a_row_changes_once() {
        sort(&mut [
            change(16, "a", Change::Delete),
            change(16, "a", Change::Delete),
        ]);
    }
}
