//! Values that are too long for a row: compressed, and out of the row when that is not enough.
//!
//! ```text
//!   row in the table's tree                       the table's tree of long values
//!   id 1 │ note "short"                           17, 0 │ piece
//!   id 2 │ note ▪ LZ4, 9,000 bytes                17, 1 │ piece
//!   id 3 │ note ▪ number 17, 150,000 bytes ─────► 17, 2 │ piece
//! ```
//!
//! A value of more than [`SHORT_VALUE_BYTES_MAX`] bytes is compressed, if its column's storage has
//! that done ([`catalog::column_storage`]); if it still has more than [`ROW_VALUE_BYTES_MAX`], it gets
//! a number of its own and is cut into pieces of [`PIECE_BYTES`], each compressed by itself under the
//! same condition, which are rows of another tree of its table. They are
//! rows like any other: versions, rollback, savepoints, chunks of large transactions, standbys and
//! checkpoints know nothing of long values. A piece never changes; a new value gets a new number.
//!
//! A row that is read has [`Datum::Long`] in the place of such a value, and whoever looks at the
//! column reads the pieces ([`read`]): a statement that does not ask for it reads none. UPDATE of
//! other columns keeps what stands for the value, so that neither value nor pieces are written.
//!
//! # Invariants
//! - A number is in one row, or in versions of one row: INSERT never takes over what stands for a
//!   value of another row ([`encode`]).
//! - Pieces are written with the row that has their number, after it, and deleted with it.
//! - Who may change a row may change its pieces: nobody else does, so they need no locks.
//! - What stands for a long value is in no key: the engine refuses it with 54000.
//!
//! # What it leaves out
//! Reading part of a value (`substr` reads all of it). Pieces of a dropped column stay until their
//! rows change or the table is emptied. Temporary tables have all values in their rows, as they are.

use base::codec::{put_varint, Reader};
use base::engine::{Direction, Inserted, Reading, RowBatch, Writing};
use base::key::KeyRange;
use base::limits::{ROW_VALUE_BYTES_MAX, SHORT_VALUE_BYTES_MAX, VALUE_BYTES_MAX};
use base::row::{Row as StoredRow, RowBuilder, StoredColumn};
use base::{Error, Key, Result, SqlState, TreeId};
use lz4_flex::block::{compress, decompress};

use super::Exec;
use catalog::layout::LONG_VALUES;
use catalog::store::NO_TREE;
use catalog::{Column, Table};
use types::{self, Datum, LongValue};

/// Bytes of a value in one piece, before it is compressed: with what stands around them, they fill
/// eight pages of the store.
pub const PIECE_BYTES: usize = 64_000;

/// What stands for a value begins with one of these: it follows, compressed …
const IN_ROW: u8 = 0;
/// … or its number, and the value lies elsewhere.
const ELSEWHERE: u8 = 1;

/// How a piece begins.
const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;

/// A row as bytes, and what has yet to be written beside it.
#[derive(Debug)]
pub struct Encoded {
    /// The row.
    pub row: Vec<u8>,
    /// The values that are not in it, by their numbers.
    values: Vec<(u64, Elsewhere)>,
}

/// A value that goes out of its row.
#[derive(Debug)]
struct Elsewhere {
    bytes: Vec<u8>,
    /// Whether its pieces are compressed.
    compresses: bool,
}

/// What stands for a value.
enum Place<'a> {
    InRow { len: usize, bytes: &'a [u8] },
    Elsewhere { number: u64, len: usize },
}

impl<'a> Place<'a> {
    fn parse(stored: &'a [u8]) -> Result<Place<'a>> {
        let mut reader = Reader::new(stored);
        let kind = reader.u8()?;
        let len: usize = reader.varint_as()?;
        if len > VALUE_BYTES_MAX {
            return Err(Error::corrupted(format!("a value of {len} bytes")));
        }
        match kind {
            IN_ROW => Ok(Place::InRow {
                len,
                bytes: reader.rest(),
            }),
            ELSEWHERE => {
                let number = reader.varint()?;
                reader.finish()?;
                Ok(Place::Elsewhere { number, len })
            }
            other => Err(Error::corrupted(format!("a long value of kind {other}"))),
        }
    }
}

fn piece_key(number: u64, piece: usize) -> Key {
    let mut key = number.to_be_bytes().to_vec();
    key.extend_from_slice(&(piece as u32).to_be_bytes());
    key
}

/// A long value as a row has it.
pub fn unread(table: &Table, column: &Column, stored: &[u8]) -> Datum {
    Datum::Long(std::sync::Arc::new(LongValue {
        type_id: column.type_id,
        typmod: column.typmod,
        tree: table.long_tree,
        stored: stored.into(),
    }))
}

/// The value of a column, read if it is a long one.
///
/// # Errors
/// XX001 when it is damaged; what reading raises.
#[inline]
pub fn read(value: &Datum, txn: &mut dyn Reading) -> Result<Datum> {
    match value {
        Datum::Long(long) => fetch(long, txn),
        value => Ok(value.clone()),
    }
}

#[cold]
fn fetch(long: &LongValue, txn: &mut dyn Reading) -> Result<Datum> {
    let bytes = match Place::parse(&long.stored)? {
        Place::InRow { len, bytes } => unpack(bytes, len)?,
        Place::Elsewhere { number, len } => {
            // A row that was changed since the snapshot has pieces that came after it.
            match pieces(txn, long.tree, (number, len), false)? {
                Some(bytes) => bytes,
                None => pieces(txn, long.tree, (number, len), true)?.ok_or_else(|| {
                    Error::corrupted(format!(
                        "long value {number} of tree {} is not there",
                        long.tree
                    ))
                })?,
            }
        }
    };
    types::decode_column(long.type_id, long.typmod, &bytes)
}

fn unpack(bytes: &[u8], len: usize) -> Result<Vec<u8>> {
    let unpacked = decompress(bytes, len);
    let unpacked = unpacked.map_err(|_| Error::corrupted("a compressed value"))?;
    match unpacked.len() == len {
        true => Ok(unpacked),
        false => Err(Error::corrupted(format!(
            "a value has {} bytes and should have {len}",
            unpacked.len()
        ))),
    }
}

/// The pieces of a value, one after another; none if any is missing.
fn pieces(
    txn: &mut dyn Reading,
    tree: TreeId,
    (number, len): (u64, usize),
    newest: bool,
) -> Result<Option<Vec<u8>>> {
    let mut out = Vec::with_capacity(len);
    let mut batch = RowBatch::default();
    let mut rest = Some(KeyRange::prefix(&number.to_be_bytes()));
    let mut expected = 0;
    while let Some(range) = rest {
        let forward = Direction::Forward;
        rest = match newest {
            true => txn.scan_newest(tree, &range, usize::MAX, &mut batch)?,
            false => txn.scan(tree, &range, forward, usize::MAX, &mut batch)?,
        };
        for (key, row) in batch.iter() {
            if key != piece_key(number, expected) || out.len() >= len {
                return Ok(None);
            }
            let wanted = PIECE_BYTES.min(len - out.len());
            put_piece(row, wanted, &mut out)?;
            expected += 1;
        }
    }
    Ok((out.len() == len).then_some(out))
}

fn put_piece(row: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
    let row = StoredRow::parse(row)?;
    let piece = row.column(0).and_then(<[u8]>::split_first);
    match piece {
        Some((&PLAIN, bytes)) if bytes.len() == len => out.extend_from_slice(bytes),
        Some((&COMPRESSED, bytes)) => out.extend_from_slice(&unpack(bytes, len)?),
        _ => return Err(Error::corrupted("a piece of a long value")),
    }
    Ok(())
}

/// The bytes of a row. Long values that `old`, the row in whose place it is put, has in the same
/// columns stay where they are.
///
/// # Errors
/// 0A000 for a type that cannot be stored; 54000 for a value that is too long.
pub fn encode(
    table: &Table,
    row: &[Datum],
    old: Option<&[Datum]>,
    cx: &mut Exec<'_>,
) -> Result<Encoded> {
    let mut builder = RowBuilder::new(table.columns.len());
    let mut values = Vec::new();
    let mut bytes = Vec::new();
    for (place, (column, value)) in table.columns.iter().zip(row).enumerate() {
        if value.is_null() || column.dropped {
            builder.push(None);
            continue;
        }
        let read;
        let value = match value {
            Datum::Long(long) if old.is_some_and(|old| old[place] == *value) => {
                builder.push_stored(StoredColumn::Long(&long.stored));
                continue;
            }
            Datum::Long(long) => {
                read = fetch(long, cx.host.txn())?;
                &read
            }
            value => value,
        };
        bytes.clear();
        types::encode_column(column.type_id, column.typmod, value, &mut bytes)?;
        check_length(bytes.len())?;
        if bytes.len() <= SHORT_VALUE_BYTES_MAX || table.long_tree == NO_TREE {
            builder.push(Some(&bytes));
            continue;
        }
        let compresses = column.storage().compresses();
        match packed(&bytes, compresses) {
            Packed::Plain => builder.push(Some(&bytes)),
            Packed::InRow(stored) => builder.push_stored(StoredColumn::Long(&stored)),
            Packed::Elsewhere => {
                let number = cx.host.session().next_number(LONG_VALUES)?;
                let mut stored = vec![ELSEWHERE];
                put_varint(&mut stored, bytes.len() as u64);
                put_varint(&mut stored, number);
                builder.push_stored(StoredColumn::Long(&stored));
                let bytes = std::mem::take(&mut bytes);
                values.push((number, Elsewhere { bytes, compresses }));
            }
        }
    }
    let row = builder.finish();
    Ok(Encoded { row, values })
}

fn check_length(bytes: usize) -> Result<()> {
    if bytes <= VALUE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("a value of {bytes} bytes is too long"),
    )
    .with_detail(format!("The maximum is {VALUE_BYTES_MAX} bytes.")))
}

enum Packed {
    Plain,
    InRow(Vec<u8>),
    Elsewhere,
}

/// Where a value of more than [`SHORT_VALUE_BYTES_MAX`] bytes goes.
fn packed(bytes: &[u8], compresses: bool) -> Packed {
    if bytes.len() > PIECE_BYTES {
        return Packed::Elsewhere;
    }
    if !compresses {
        return match bytes.len() <= ROW_VALUE_BYTES_MAX {
            true => Packed::Plain,
            false => Packed::Elsewhere,
        };
    }
    let mut stored = vec![IN_ROW];
    put_varint(&mut stored, bytes.len() as u64);
    stored.extend_from_slice(&compress(bytes));
    match (stored.len(), bytes.len()) {
        (packed, plain) if packed < plain && packed <= ROW_VALUE_BYTES_MAX => Packed::InRow(stored),
        (_, plain) if plain <= ROW_VALUE_BYTES_MAX => Packed::Plain,
        _ => Packed::Elsewhere,
    }
}

impl Encoded {
    /// Writes the values that are not in the row, once that is written.
    ///
    /// # Errors
    /// What the engine raises.
    pub fn store(self, table: &Table, txn: &mut dyn Writing) -> Result<()> {
        for (number, value) in self.values {
            for (place, piece) in value.bytes.chunks(PIECE_BYTES).enumerate() {
                let stored = stored_piece(piece, value.compresses);
                let row = RowBuilder::new(1).value(&stored).finish();
                let key = piece_key(number, place);
                match txn.insert_new(table.long_tree, &key, &row)? {
                    Inserted::Done => {}
                    Inserted::Duplicate(_) => {
                        let message = format!("long value {number} is there already");
                        return Err(Error::internal(message));
                    }
                }
            }
        }
        Ok(())
    }
}

/// A piece as its row has it.
fn stored_piece(piece: &[u8], compresses: bool) -> Vec<u8> {
    let packed = compresses.then(|| compress(piece));
    let packed = packed.filter(|packed| packed.len() < piece.len());
    let (kind, bytes) = match &packed {
        Some(packed) => (COMPRESSED, packed.as_slice()),
        None => (PLAIN, piece),
    };
    let mut stored = Vec::with_capacity(1 + bytes.len());
    stored.push(kind);
    stored.extend_from_slice(bytes);
    stored
}

/// Deletes the long values of a row that was replaced by `new`, or deleted.
///
/// # Errors
/// What the engine raises.
pub fn forget(
    table: &Table,
    old: &[Datum],
    new: Option<&[Datum]>,
    txn: &mut dyn Writing,
) -> Result<()> {
    for (place, (column, value)) in table.columns.iter().zip(old).enumerate() {
        let Datum::Long(long) = value else {
            continue;
        };
        if !column.dropped && new.is_some_and(|new| new[place] == *value) {
            continue;
        }
        if let Place::Elsewhere { number, len } = Place::parse(&long.stored)? {
            for piece in 0..len.div_ceil(PIECE_BYTES) {
                txn.delete(long.tree, &piece_key(number, piece))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_where_they_fit() {
        let noise = |len: usize| -> Vec<u8> {
            let step = |state: &mut u64| {
                *state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                Some((*state >> 33) as u8)
            };
            std::iter::successors(Some(7u64), |_| None)
                .flat_map(|mut state| std::iter::from_fn(move || step(&mut state)))
                .take(len)
                .collect()
        };
        assert!(matches!(packed(&noise(3_000), true), Packed::Plain));
        assert!(matches!(packed(&noise(5_000), true), Packed::Elsewhere));
        let same = |len: usize| vec![b'a'; len];
        assert!(matches!(packed(&same(64_001), true), Packed::Elsewhere));
        assert!(matches!(packed(&same(3_000), false), Packed::Plain));
        assert!(matches!(packed(&same(5_000), false), Packed::Elsewhere));
        assert_eq!(stored_piece(&same(5_000), false).len(), 5_001);
        assert!(stored_piece(&same(5_000), true).len() < 100);
        let Packed::InRow(stored) = packed(&same(60_000), true) else {
            panic!("60,000 times the same byte is short");
        };
        assert!(stored.len() < 1_000, "{}", stored.len());
        let Place::InRow { len, bytes } = Place::parse(&stored).unwrap() else {
            panic!("it is in the row");
        };
        assert_eq!(unpack(bytes, len).unwrap(), vec![b'a'; 60_000]);
        assert!(unpack(bytes, len - 1).is_err());
        assert!(Place::parse(&[9, 1]).is_err());
    }

    #[test]
    fn a_value_has_its_limit() {
        assert!(check_length(VALUE_BYTES_MAX).is_ok());
        let error = check_length(VALUE_BYTES_MAX + 1).unwrap_err();
        assert_eq!(error.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
