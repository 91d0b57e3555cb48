//! Where a scan looks: the ranges of keys that its conditions leave, one behind the other in its direction.
//!
//! ```text
//! k = 5 AND n < 9            [5, 5·9)
//! k IN (9, 1, 5) AND n < 9   [1, 1·9)  [5, 5·9)  [9, 9·9)     each once, however often it is listed
//! k = ANY (NULL), k = NULL   nowhere
//! ```
//! # Invariants
//! - Ranges do not overlap, and come in the order of the index, or against it where the scan goes
//!   backwards: so what the scan gives is in that order.
//! - Of a long list only the values that the key begins with are kept, and counted; a range is made when
//!   the scan comes to it.

use std::ops::Bound;

use base::key::successor;
use base::memory::Reservation;
use base::{Key, KeyRange, Result};

use super::program::Evaluate;
use super::{rows, Exec};
use catalog::{Index, KeyOrder, Table};
use planner::plan::{Access, Program, Scan};
use types::Datum;

/// How many elements of a list are taken between two looks at whether the statement is to end.
const TICK_EVERY: usize = 256;

/// The places behind the first one.
#[derive(Default)]
pub(super) struct Places {
    prefixes: std::vec::IntoIter<Key>,
    within: Within,
    held: Option<Reservation>,
}

impl Iterator for Places {
    type Item = KeyRange;

    fn next(&mut self) -> Option<KeyRange> {
        let prefix = self.prefixes.next()?;
        Some(self.within.range(&prefix))
    }
}

impl Places {
    /// Where each of them begins, and the memory of that.
    pub fn into_keys(self) -> (std::vec::IntoIter<Key>, Reservation) {
        let held = self.held.unwrap_or_else(|| Reservation::of(WHAT));
        (self.prefixes, held)
    }
}

/// What an error calls the memory of a list.
const WHAT: &str = "A list of keys";

/// What the key column behind a prefix is bound by: bytes that follow the prefix.
#[derive(Default)]
struct Within(Option<(Bound<Key>, Bound<Key>)>);

impl Within {
    /// The keys with a prefix.
    fn range(&self, prefix: &[u8]) -> KeyRange {
        let mut range = match prefix {
            [] => KeyRange::all(),
            _ => KeyRange::prefix(prefix),
        };
        let Some((start, end)) = &self.0 else {
            return range;
        };
        let key = |rest: &Key| [prefix, rest].concat();
        match start {
            Bound::Included(rest) => range.start = key(rest),
            Bound::Excluded(rest) => {
                let key = key(rest);
                range.start = successor(&key).unwrap_or(key);
            }
            Bound::Unbounded => {}
        }
        match end {
            Bound::Included(rest) => range.end = successor(&key(rest)),
            Bound::Excluded(rest) => range.end = Some(key(rest)),
            Bound::Unbounded => {}
        }
        range
    }
}

/// The first place where a scan looks, and those behind it; nowhere when no key can meet its conditions.
///
/// # Errors
/// What computing the values raises; 53200.
pub(super) fn places(scan: &Scan, cx: &mut Exec<'_>) -> Result<(Option<KeyRange>, Places)> {
    match scan.by_index() {
        Some(index) => places_in(&scan.table, index, (&scan.access, scan.backward), cx),
        None => Ok((Some(KeyRange::all()), Places::default())),
    }
}

/// The same in an index of a table, backwards or not.
///
/// # Errors
/// As there.
pub(super) fn places_in(
    table: &Table,
    index: &Index,
    (access, backward): (&Access, bool),
    cx: &mut Exec<'_>,
) -> Result<(Option<KeyRange>, Places)> {
    let order = |place| index.key_order(table, place);
    let mut prefixes = vec![Key::new()];
    let mut held = None;
    for (place, value) in access.equal.iter().enumerate() {
        let value = value.eval(cx, &[])?;
        let order = order(place).expect("no more values than keys");
        if access.among == Some(place) {
            let (each, memory) = elements(&value, order, &prefixes[0], cx)?;
            (prefixes, held) = (each, Some(memory));
            continue;
        }
        for prefix in &mut prefixes {
            if !put(order, &value, prefix)? {
                return Ok((None, Places::default()));
            }
        }
    }
    let within = match order(access.equal.len()) {
        Some(order) => bounds(order, (&access.low, &access.high), cx)?,
        None => Some(Within::default()),
    };
    let Some(within) = within else {
        return Ok((None, Places::default()));
    };
    if backward {
        prefixes.reverse();
    }
    let mut places = Places {
        prefixes: prefixes.into_iter(),
        within,
        held,
    };
    let first = places.next();
    // Both bounds are the same behind every prefix.
    let is_empty = |range: &KeyRange| range.end.as_ref().is_some_and(|end| *end <= range.start);
    match first.as_ref().is_some_and(is_empty) {
        true => Ok((None, Places::default())),
        false => Ok((first, places)),
    }
}

/// A prefix for each element of an array, in their order, and the memory of these.
fn elements(
    list: &Datum,
    order: KeyOrder,
    before: &Key,
    cx: &mut Exec<'_>,
) -> Result<(Vec<Key>, Reservation)> {
    let mut held = Reservation::of(WHAT);
    let mut prefixes = Vec::new();
    let list = super::long::read(list, cx.host.txn())?;
    let Datum::Array(array) = &list else {
        return Ok((prefixes, held));
    };
    for (at, element) in array.elements.iter().enumerate() {
        if at % TICK_EVERY == 0 {
            cx.tick()?;
        }
        let mut prefix = before.clone();
        if put(order, element, &mut prefix)? {
            held.grow(prefix.capacity() + std::mem::size_of::<Key>())?;
            prefixes.push(prefix);
        }
    }
    prefixes.sort_unstable();
    prefixes.dedup();
    Ok((prefixes, held))
}

/// An end of what a column is bound by, and whether that belongs to it.
type End = Option<Box<(Program, bool)>>;

/// What a key column is bound by; none where no value is within.
fn bounds(order: KeyOrder, (low, high): (&End, &End), cx: &mut Exec<'_>) -> Result<Option<Within>> {
    if low.is_none() && high.is_none() {
        return Ok(Some(Within::default()));
    }
    let (mut start, mut end) = (Bound::Unbounded, Bound::Unbounded);
    for (bound, is_low) in [(low, true), (high, false)] {
        let Some((value, inclusive)) = bound.as_deref() else {
            continue;
        };
        let value = value.eval(cx, &[])?;
        let mut key = Key::new();
        match rows::fit_key(order.type_id, &value) {
            rows::KeyFit::Value(value) => rows::put_key(order, &value, &mut key)?,
            rows::KeyFit::Null => return Ok(None),
            // Every value of the column lies on one side of the bound.
            rows::KeyFit::Above if is_low => return Ok(None),
            rows::KeyFit::Below if !is_low => return Ok(None),
            _ => continue,
        }
        let bound = match inclusive {
            true => Bound::Included(key),
            false => Bound::Excluded(key),
        };
        match is_low != order.order.descending {
            true => start = bound,
            false => end = bound,
        }
    }
    // NULLs stand at one end, and meet no condition.
    let mut nulls = Key::new();
    rows::put_key(order, &Datum::Null, &mut nulls)?;
    match (order.order.nulls_first, &start, &end) {
        (true, Bound::Unbounded, _) => start = Bound::Excluded(nulls),
        (false, _, Bound::Unbounded) => end = Bound::Excluded(nulls),
        _ => {}
    }
    Ok(Some(Within(Some((start, end)))))
}

fn put(order: KeyOrder, value: &Datum, key: &mut Key) -> Result<bool> {
    match rows::fit_key(order.type_id, value) {
        rows::KeyFit::Value(value) => {
            rows::put_key(order, &value, key)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_bound_by_what_follows_it() {
        let range = |start, end| Within(Some((start, end))).range(b"p");
        let key = |text: &str| text.as_bytes().to_vec();
        let whole = Within::default();
        assert_eq!(whole.range(b""), KeyRange::all());
        assert_eq!(whole.range(b"p"), KeyRange::prefix(b"p"));
        assert_eq!(
            range(Bound::Included(key("b")), Bound::Excluded(key("d"))),
            KeyRange {
                start: key("pb"),
                end: Some(key("pd")),
            }
        );
        assert_eq!(
            range(Bound::Excluded(key("b")), Bound::Included(key("d"))),
            KeyRange {
                start: key("pc"),
                end: Some(key("pe")),
            }
        );
        let open = range(Bound::Unbounded, Bound::Excluded(key("d")));
        assert_eq!(open.start, key("p"));
    }
}
