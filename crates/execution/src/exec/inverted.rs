//! Items of inverted indexes ([`catalog::inverted`]): those of a value, and those that a condition
//! asks for.
//!
//! ```text
//! {"a": [1, "b"]}   jsonb_ops  k a, n 1, k b      jsonb_path_ops  a 1, a "b" (hashed)
//! ```
//! An item is some bytes; what is longer than [`ITEM_BYTES_MAX`] is there as its hash. Two that are
//! equal for SQL have the same bytes.

use std::collections::BTreeSet;

use base::engine::{Direction, RowBatch};
use base::jsonb::{Value, View};
use base::key::{put_key_column, ColumnOrder, KeyKind};
use base::memory::Reservation;
use base::{coro, Error, Key, KeyRange, Result};

use super::program::Evaluate;
use super::{rows, Exec};
use catalog::inverted::Items;
use catalog::{Index, KeyOrder, Table};
use functions::extensions::trigram;
use functions::hashing::md5_of;
use functions::search::matching::needed;
use planner::plan::{Asked, InvertedAccess, Term};
use types::search::vector::entries;
use types::search::{Operand, Query};
use types::{Datum, TypeId};

/// A longer item is kept as a hash of this many bytes.
const ITEM_BYTES_MAX: usize = 64;
/// What ends an item in a key.
const ITEM_END: &[u8] = &[0, 0];
/// Rows that are read from an index at once.
const BATCH: usize = 1_024;

type Item = Vec<u8>;

/// An item, or what items begin with.
struct Probe {
    item: Item,
    is_prefix: bool,
}

/// What a condition asks for.
enum Wanted {
    All(BTreeSet<Item>),
    Any(BTreeSet<Item>),
    /// Of each list one.
    Lists(Vec<Vec<Probe>>),
    /// It cannot be told by items.
    Every,
}

/// A value as bytes that are the same for equal ones.
fn put_value(ty: TypeId, value: &Datum, out: &mut Item) -> Result<()> {
    let order = KeyOrder {
        type_id: ty,
        order: ColumnOrder::ASCENDING,
    };
    let mut key = Key::new();
    rows::put_key(order, value, &mut key)?;
    out.extend_from_slice(&key);
    Ok(())
}

/// A scalar of a `jsonb` with a letter for its kind.
fn put_scalar(value: Value<'_>, is_key: bool, out: &mut Item) -> Result<()> {
    match value.view() {
        View::Bool(value) => out.push(if value { b't' } else { b'f' }),
        View::Number(bytes) => {
            out.push(b'n');
            let number = types::json::number(bytes);
            put_value(TypeId::NUMERIC, &Datum::Numeric(number), out)?;
        }
        View::String(text) => {
            out.push(if is_key { b'k' } else { b's' });
            out.extend_from_slice(text.as_bytes());
        }
        _ => out.push(b'0'),
    }
    Ok(())
}

/// The keys and scalars of a `jsonb`. A string that is an element counts as a key, as for `?`.
fn put_parts(value: Value<'_>, is_element: bool, out: &mut BTreeSet<Item>) -> Result<()> {
    coro::check_depth()?;
    match value.view() {
        View::Object(object) => {
            for (key, value) in object.iter() {
                coro::work(16 + key.len())?;
                let mut item = vec![b'k'];
                item.extend_from_slice(key.as_bytes());
                out.insert(item);
                put_parts(value, false, out)?;
            }
        }
        View::Array(array) => {
            for value in array.iter() {
                coro::work(16)?;
                put_parts(value, true, out)?;
            }
        }
        _ => {
            let mut item = Item::new();
            put_scalar(value, is_element, &mut item)?;
            out.insert(item);
        }
    }
    Ok(())
}

/// The scalars of a `jsonb`, each with the keys that lead to it.
fn put_paths(value: Value<'_>, path: &mut Vec<u8>, out: &mut BTreeSet<Item>) -> Result<()> {
    coro::check_depth()?;
    match value.view() {
        View::Object(object) => {
            for (key, value) in object.iter() {
                coro::work(16 + key.len())?;
                let before = path.len();
                path.extend_from_slice(key.as_bytes());
                path.push(0);
                put_paths(value, path, out)?;
                path.truncate(before);
            }
        }
        View::Array(array) => {
            for value in array.iter() {
                coro::work(16)?;
                put_paths(value, path, out)?;
            }
        }
        _ => {
            let mut item = path.clone();
            put_scalar(value, false, &mut item)?;
            out.insert(md5_of(&item)?.into_bytes());
        }
    }
    Ok(())
}

fn jsonb(value: &Datum) -> Result<Value<'_>> {
    match value {
        Datum::Jsonb(bytes) => Ok(Value(bytes)),
        other => Err(Error::internal(format!("{other:?} is no jsonb"))),
    }
}

fn of_trigrams(all: &[trigram::Trigram]) -> BTreeSet<Item> {
    all.iter().map(|own| own.bytes().to_vec()).collect()
}

/// The items of a value; none of NULL.
fn items_of(items: Items, value: &Datum) -> Result<BTreeSet<Item>> {
    let mut out = BTreeSet::new();
    if value.is_null() {
        return Ok(out);
    }
    match items {
        Items::Elements(ty) => {
            let Datum::Array(array) = value else {
                return Err(Error::internal(format!("{value:?} is no array")));
            };
            for element in array.elements.iter().filter(|element| !element.is_null()) {
                coro::work(16)?;
                let mut item = Item::new();
                put_value(ty, element, &mut item)?;
                out.insert(item);
            }
        }
        // A scalar stands for the array of itself.
        Items::Jsonb => put_parts(jsonb(value)?, true, &mut out)?,
        Items::JsonbPaths => put_paths(jsonb(value)?, &mut Vec::new(), &mut out)?,
        Items::Lexemes => {
            let Datum::TsVector(bytes) = value else {
                return Err(Error::internal(format!("{value:?} is no tsvector")));
            };
            let entries = entries(bytes)?;
            out.extend(entries.iter().map(|entry| entry.text.as_bytes().to_vec()));
        }
        Items::Pairs => {
            let Datum::Hstore(bytes) = value else {
                return Err(Error::internal(format!("{value:?} is no hstore")));
            };
            for (key, value) in types::hstore::pairs(bytes)? {
                out.insert(key_item(key));
                out.insert(pair_item(key, value));
            }
        }
        Items::Trigrams => out = of_trigrams(&trigram::trigrams(value.as_str())?),
        Items::Whole(ty) => {
            let mut item = Item::new();
            put_value(ty, value, &mut item)?;
            out.insert(item);
        }
    }
    Ok(out)
}

/// The key of an entry up to the row's.
fn prefix_of(place: usize, item: &[u8]) -> Result<Key> {
    match item.len() > ITEM_BYTES_MAX {
        false => tagged(place, 0, item),
        true => tagged(place, 1, md5_of(item)?.as_bytes()),
    }
}

/// The number of a key, and an item behind its tag: 1 for hashes.
fn tagged(place: usize, tag: u8, bytes: &[u8]) -> Result<Key> {
    let place = u8::try_from(place).map_err(|_| Error::internal("too many keys"))?;
    let mut key = Key::from(vec![place]);
    let mut tagged = vec![tag];
    tagged.extend_from_slice(bytes);
    put_key_column(
        &mut key,
        KeyKind::Bytes,
        ColumnOrder::ASCENDING,
        Some(&tagged),
    )?;
    Ok(key)
}

/// What the keys of the entries of a row begin with, each once.
///
/// # Errors
/// The pending interrupt; 54000 for keys that are too long.
pub(super) fn prefixes(
    table: &Table,
    index: &Index,
    values: &[(TypeId, Datum)],
) -> Result<BTreeSet<Key>> {
    let mut out = BTreeSet::new();
    for (place, (_, value)) in values.iter().enumerate() {
        let items = index.items(table, place).ok_or_else(no_items)?;
        for item in items_of(items, value)? {
            out.insert(prefix_of(place, &item)?);
        }
    }
    Ok(out)
}

fn no_items() -> Error {
    Error::corrupted("an inverted index with a key that has no items")
}

fn key_item(key: &str) -> Item {
    let mut item = vec![b'k'];
    item.extend_from_slice(key.as_bytes());
    item
}

/// A key of an `hstore` with its value: no text has a zero, which parts the two.
fn pair_item(key: &str, value: Option<&str>) -> Item {
    let mut item = vec![if value.is_some() { b'v' } else { b'n' }];
    item.extend_from_slice(key.as_bytes());
    item.push(0);
    item.extend_from_slice(value.unwrap_or_default().as_bytes());
    item
}

/// The texts of a text or an array of them, as keys of a `jsonb` or an `hstore`.
fn keys_of(value: &Datum) -> BTreeSet<Item> {
    let key = key_item;
    match value {
        Datum::Array(array) => {
            let texts = array.elements.iter().filter(|text| !text.is_null());
            texts.map(|text| key(text.as_str())).collect()
        }
        value => BTreeSet::from([key(value.as_str())]),
    }
}

/// The lexemes that a query cannot be met without.
fn lexemes_of(value: &Datum) -> Result<Wanted> {
    let Datum::TsQuery(bytes) = value else {
        return Err(Error::internal(format!("{value:?} is no tsquery")));
    };
    let query = Query::decode(bytes)?;
    // An empty one is never met.
    if query.is_empty() {
        return Ok(Wanted::Any(BTreeSet::new()));
    }
    let probe = |operand: &Operand| Probe {
        item: operand.text.as_bytes().to_vec(),
        is_prefix: operand.prefix,
    };
    Ok(match needed(&query) {
        None => Wanted::Every,
        Some(lists) => {
            let lists = lists.into_iter();
            let probes = lists.map(|list| list.into_iter().map(probe).collect());
            Wanted::Lists(probes.collect())
        }
    })
}

fn wanted(items: Items, asked: Asked, value: &Datum, cx: &Exec<'_>) -> Result<Wanted> {
    // No operator of these holds for NULL.
    if value.is_null() {
        return Ok(Wanted::Any(BTreeSet::new()));
    }
    let similar = |threshold: f64| match threshold > 0.0 {
        true => items_of(items, value).map(Wanted::Any),
        false => Ok(Wanted::Every),
    };
    let thresholds = cx.context.similarity;
    let found = match asked {
        Asked::Contains => Wanted::All(items_of(items, value)?),
        Asked::Overlaps => Wanted::Any(items_of(items, value)?),
        Asked::Exists | Asked::ExistsAll => Wanted::All(keys_of(value)),
        Asked::ExistsAny => Wanted::Any(keys_of(value)),
        Asked::Meets => lexemes_of(value)?,
        Asked::Like => Wanted::All(of_trigrams(&trigram::of_pattern(value.as_str())?)),
        Asked::Similar => similar(thresholds.any)?,
        Asked::SimilarWord => similar(thresholds.word)?,
        Asked::SimilarWords => similar(thresholds.strict_word)?,
    };
    Ok(match found {
        // What has no items is contained in anything.
        Wanted::All(items) if items.is_empty() => Wanted::Every,
        found => found,
    })
}

/// The keys of the rows that may meet what is asked, in order; none if that may be any row.
///
/// # Errors
/// What computing the values raises; 53200 for too many.
pub(super) fn row_keys(
    access: &InvertedAccess,
    table: &Table,
    cx: &mut Exec<'_>,
) -> Result<Option<(BTreeSet<Key>, Reservation)>> {
    let index = &table.indexes[access.index];
    let mut held = Reservation::of("An index scan");
    let mut found: Option<BTreeSet<Key>> = None;
    for Term { key, asked, value } in &access.terms {
        let items = index.items(table, *key).ok_or_else(no_items)?;
        let value = value.eval(cx, &[])?;
        let value = super::long::read(&value, cx.host.txn())?;
        match wanted(items, *asked, &value, cx)? {
            Wanted::Every => {}
            Wanted::Any(items) => {
                let mut any = BTreeSet::new();
                for item in items {
                    any.append(&mut rows_with(
                        index,
                        &prefix_of(*key, &item)?,
                        &mut held,
                        cx,
                    )?);
                }
                found = Some(both(found, any));
            }
            Wanted::Lists(lists) => {
                for list in lists {
                    if found.as_ref().is_some_and(BTreeSet::is_empty) {
                        break;
                    }
                    let mut any = BTreeSet::new();
                    for probe in list {
                        any.append(&mut rows_of_probe(index, *key, &probe, &mut held, cx)?);
                    }
                    found = Some(both(found, any));
                }
            }
            Wanted::All(items) => {
                for item in items {
                    if found.as_ref().is_some_and(BTreeSet::is_empty) {
                        break;
                    }
                    let own = rows_with(index, &prefix_of(*key, &item)?, &mut held, cx)?;
                    found = Some(both(found, own));
                }
            }
        }
    }
    Ok(found.map(|found| (found, held)))
}

fn both(known: Option<BTreeSet<Key>>, mut other: BTreeSet<Key>) -> BTreeSet<Key> {
    if let Some(known) = known {
        other.retain(|key| known.contains(key));
    }
    other
}

/// The keys of the rows that have an item, or one that begins so.
fn rows_of_probe(
    index: &Index,
    key: usize,
    probe: &Probe,
    held: &mut Reservation,
    cx: &mut Exec<'_>,
) -> Result<BTreeSet<Key>> {
    if !probe.is_prefix {
        return rows_with(index, &prefix_of(key, &probe.item)?, held, cx);
    }
    let mut found = BTreeSet::new();
    if probe.item.len() <= ITEM_BYTES_MAX {
        let mut from = tagged(key, 0, &probe.item)?;
        from.truncate(from.len() - ITEM_END.len());
        found = rows_below(index, &from, held, cx)?;
    }
    // What long items begin with their hashes do not say.
    let mut hashed = tagged(key, 1, b"")?;
    hashed.truncate(hashed.len() - ITEM_END.len());
    found.append(&mut rows_below(index, &hashed, held, cx)?);
    Ok(found)
}

/// The keys of the rows whose entries begin so.
fn rows_with(
    index: &Index,
    prefix: &Key,
    held: &mut Reservation,
    cx: &mut Exec<'_>,
) -> Result<BTreeSet<Key>> {
    rows_in(index, prefix, |key| key.get(prefix.len()..), held, cx)
}

/// The same, where items go on behind the prefix.
fn rows_below(
    index: &Index,
    prefix: &Key,
    held: &mut Reservation,
    cx: &mut Exec<'_>,
) -> Result<BTreeSet<Key>> {
    let row_of = |key: &[u8]| {
        let rest = key.get(prefix.len()..)?;
        let end = rest
            .windows(ITEM_END.len())
            .position(|pair| pair == ITEM_END)?;
        Some(key.len() - rest.len() + end + ITEM_END.len())
    };
    rows_in(index, prefix, |key| key.get(row_of(key)?..), held, cx)
}

fn rows_in(
    index: &Index,
    prefix: &Key,
    row_of: impl Fn(&[u8]) -> Option<&[u8]>,
    held: &mut Reservation,
    cx: &mut Exec<'_>,
) -> Result<BTreeSet<Key>> {
    let mut out = BTreeSet::new();
    let mut batch = RowBatch::default();
    let mut rest = Some(KeyRange::prefix(prefix));
    while let Some(range) = rest {
        let forward = Direction::Forward;
        rest = cx
            .host
            .txn()
            .scan(index.tree, &range, forward, BATCH, &mut batch)?;
        coro::work(64 * batch.len())?;
        for (key, _) in batch.iter() {
            let own = row_of(key).ok_or_else(no_items)?;
            held.grow(own.len() + 48)?;
            out.insert(Key::from(own.to_vec()));
        }
    }
    Ok(out)
}
