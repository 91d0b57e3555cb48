//! Queries inside expressions.

use std::rc::Rc;
use std::sync::Arc;

use base::{coro, Error, Result, SqlState};

use super::cursor::{open, Cursor};
use super::program::Evaluate;
use super::{collect_in_memory, Exec};
use crate::kept::{apart, row_bytes, HashedPlaces, RowStore, HASHED_BYTES};
use base::memory::Reservation;
use functions::Call;
use planner::plan::{Func, Row, SubKind, SubQuery};
use types::hash_row;
use types::{self, growth, Array, Datum, Record, TypeId};

/// The value of a subquery for a row, of which it sees the values at these places. One that does
/// not look at it is computed once.
///
/// # Errors
/// 21000 when a scalar one gives several rows.
pub fn eval(
    cx: &mut Exec<'_>,
    query: &SubQuery,
    test: Option<Datum>,
    places: &[usize],
    seen: Vec<Datum>,
) -> Result<Datum> {
    coro::check_depth()?;
    let once = !query.correlated && test.is_none();
    if once {
        if let Some(value) = cx.values.get(&query.number) {
            return Ok(value.clone());
        }
    }
    if let (false, Some(test)) = (query.correlated, &test) {
        let members = members(cx, query)?;
        return is_member(cx, query, test, &members);
    }
    // Whatever is further out stays the same only where there is nothing.
    let remembers = test.is_none() && query.correlated && cx.outer.is_empty();
    if remembers {
        let known = cx.memos.get_mut(&query.number);
        if let Some(value) = known.and_then(|memo| memo.find(&seen)) {
            return Ok(value);
        }
    }
    let kept = remembers.then(|| seen.clone());
    let width = places.iter().max().map_or(0, |last| last + 1);
    let mut row = vec![Datum::Null; width];
    for (place, value) in places.iter().zip(seen) {
        row[*place] = value;
    }
    cx.outer.push(row);
    let mut cursor = open(&query.plan, cx.measures.as_ref());
    let outcome = run(cx, query, test, cursor.as_mut());
    cx.outer.pop();
    let value = outcome?;
    if once {
        cx.values.insert(query.number, value.clone());
    }
    if let Some(seen) = kept {
        let memo = cx.memos.entry(query.number);
        let memo = memo.or_insert_with(|| Memo::of(query));
        memo.keep(seen, &value)?;
    }
    Ok(value)
}

/// What a subquery gave for values of the row around it: rows often come that look the same to it,
/// one behind the other even.
pub struct Memo {
    places: HashedPlaces,
    known: Vec<(Row, Datum)>,
    held: Reservation,
    /// How often something was found, and how often not.
    found: usize,
    missed: usize,
    /// Whether it gives the same each time, and it pays to look.
    is_worth_it: bool,
}

/// So many results are remembered; then all are forgotten.
const REMEMBERED_MAX: usize = 4_096;

/// After so many that were not found, one in [`FOUND_MIN`] must have been.
const MISSED_MIN: usize = 512;
const FOUND_MIN: usize = 8;

impl Memo {
    fn of(query: &SubQuery) -> Memo {
        Memo {
            places: HashedPlaces::default(),
            known: Vec::new(),
            held: Reservation::of("A subquery"),
            found: 0,
            missed: 0,
            is_worth_it: query.plan.is_settled(),
        }
    }

    fn hash(seen: &[Datum]) -> u64 {
        let each = seen.iter().map(|value| types::hash(TypeId::UNKNOWN, value));
        each.fold(0, |all: u64, one| all.rotate_left(5) ^ one)
    }

    /// What was given for values that nothing tells from these.
    fn find(&mut self, seen: &[Datum]) -> Option<Datum> {
        if !self.is_worth_it {
            return None;
        }
        let mut place = self.places.first(Memo::hash(seen));
        while let Some(at) = place {
            if self.known[at].0 == seen {
                self.found += 1;
                return Some(self.known[at].1.clone());
            }
            place = self.places.next(at);
        }
        None
    }

    fn keep(&mut self, seen: Row, value: &Datum) -> Result<()> {
        if !self.is_worth_it {
            return Ok(());
        }
        self.missed += 1;
        let is_rare = self.found < self.missed / FOUND_MIN;
        self.is_worth_it = self.missed < MISSED_MIN || !is_rare;
        if self.known.len() >= REMEMBERED_MAX || !self.is_worth_it {
            (self.places, self.known) = (HashedPlaces::default(), Vec::new());
            self.held = Reservation::of("A subquery");
        }
        if self.is_worth_it {
            self.held
                .grow(row_bytes(&seen) + apart(value) + HASHED_BYTES)?;
            self.places.add(Memo::hash(&seen), self.known.len());
            self.known.push((seen, value.clone()));
        }
        Ok(())
    }
}

/// The rows of a subquery that is the same for every row, for `IN` and its kin.
pub struct Members {
    rows: RowStore,
    /// The types of the values, where the comparison is plain equality of values of one type.
    types: Option<Vec<TypeId>>,
    /// By the hash of its values; only where there are types, and of rows without NULLs.
    by_hash: HashedPlaces,
    has_null: bool,
}

/// The types of the values that are compared, if each pair is of one type and compared by plain
/// equality.
fn hashed_types(query: &SubQuery) -> Option<Vec<TypeId>> {
    let one = |types: &[TypeId]| match types {
        [a, b] if a == b && a.has_equality() => Some(*a),
        _ => None,
    };
    match &query.kind {
        SubKind::Any(function, false) if is_equality(function) => Some(vec![one(&query.types)?]),
        SubKind::AnyRow(columns) => columns.iter().map(|column| one(&column.1)).collect(),
        _ => None,
    }
}

fn is_equality(function: &Func) -> bool {
    let equalities = functions::operators_named("=");
    equalities
        .iter()
        .any(|operator| std::ptr::eq(operator.function, function.0))
}

fn members(cx: &mut Exec<'_>, query: &SubQuery) -> Result<Rc<Members>> {
    if let Some(known) = cx.members.get(&query.number) {
        return Ok(known.clone());
    }
    cx.outer.push(Row::new());
    let rows = collect_in_memory(&query.plan, "A subquery", cx);
    cx.outer.pop();
    let mut rows = rows?;
    let mut by_hash = HashedPlaces::default();
    let mut has_null = false;
    let types = hashed_types(query);
    if let Some(types) = &types {
        rows.grow(rows.len() * HASHED_BYTES)?;
        for (place, row) in rows.iter().enumerate() {
            if row.iter().any(Datum::is_null) {
                has_null = true;
                continue;
            }
            let hash = hash_row(types, row);
            by_hash.add(hash, place);
        }
    }
    let members = Rc::new(Members {
        rows,
        types,
        by_hash,
        has_null,
    });
    cx.members.insert(query.number, members.clone());
    Ok(members)
}

/// Whether the value compares so with any member, or with all of them.
fn is_member(
    cx: &mut Exec<'_>,
    query: &SubQuery,
    test: &Datum,
    members: &Members,
) -> Result<Datum> {
    let values = match test {
        Datum::Record(record) => &record.values[..],
        value => std::slice::from_ref(value),
    };
    let whole = !values.iter().any(Datum::is_null);
    if let Some(types) = members.types.as_ref().filter(|_| whole) {
        let mut found = members.by_hash.first(hash_row(types, values));
        while let Some(place) = found {
            let mut pairs = types.iter().zip(values.iter().zip(&members.rows[place]));
            if pairs.all(|(ty, (a, b))| types::equal(*ty, a, b)) {
                return Ok(Datum::Bool(true));
            }
            found = members.by_hash.next(place);
        }
        if !members.has_null {
            return Ok(Datum::Bool(false));
        }
    }
    let mut rows = Given(members.rows.iter());
    run(cx, query, Some(test.clone()), &mut rows)
}

/// Rows that are already there.
struct Given<'r>(std::slice::Iter<'r, Row>);

impl Cursor for Given<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        cx.tick()?;
        Ok(self.0.next().cloned())
    }
}

fn run(
    cx: &mut Exec<'_>,
    query: &SubQuery,
    test: Option<Datum>,
    cursor: &mut dyn Cursor,
) -> Result<Datum> {
    match &query.kind {
        SubKind::AnyRow(columns) => {
            let Some(Datum::Record(test)) = test else {
                return Ok(Datum::Null);
            };
            let mut unknown = false;
            while let Some(row) = cursor.next(cx)? {
                match rows_equal(cx, columns, &test.values, row)? {
                    Datum::Bool(true) => return Ok(Datum::Bool(true)),
                    Datum::Null => unknown = true,
                    _ => {}
                }
            }
            Ok(if unknown {
                Datum::Null
            } else {
                Datum::Bool(false)
            })
        }
        SubKind::Scalar => {
            let Some(mut row) = cursor.next(cx)? else {
                return Ok(Datum::Null);
            };
            if cursor.next(cx)?.is_some() {
                return Err(Error::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "more than one row returned by a subquery used as an expression",
                ));
            }
            Ok(row.swap_remove(0))
        }
        SubKind::Row(types) => {
            let Some(mut row) = cursor.next(cx)? else {
                return Ok(Datum::Null);
            };
            if cursor.next(cx)?.is_some() {
                return Err(Error::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "more than one row returned by a subquery used as an expression",
                ));
            }
            row.truncate(types.len());
            Ok(Datum::Record(Arc::new(Record {
                types: types.to_vec(),
                values: row,
                names: None,
            })))
        }
        SubKind::Compare(condition, all) => {
            let Some(Datum::Record(test)) = test else {
                return Err(Error::internal("no row to compare"));
            };
            let mut unknown = false;
            while let Some(row) = cursor.next(cx)? {
                let both: Row = test.values.iter().cloned().chain(row).collect();
                match condition.eval(cx, &both)? {
                    Datum::Bool(holds) if holds != *all => return Ok(Datum::Bool(holds)),
                    Datum::Null => unknown = true,
                    _ => {}
                }
            }
            Ok(match unknown {
                true => Datum::Null,
                false => Datum::Bool(*all),
            })
        }
        SubKind::Exists => Ok(Datum::Bool(cursor.next(cx)?.is_some())),
        SubKind::Array(element) => {
            let mut elements = Vec::new();
            let mut bytes = 0;
            let mut held = Reservation::of("An array");
            while let Some(mut row) = cursor.next(cx)? {
                held.grow(row_bytes(&row))?;
                let element = row.swap_remove(0);
                let more = growth::ELEMENT_BYTES + growth::bytes_of(&element);
                growth::check_room(bytes, more)?;
                bytes += more;
                elements.push(element);
            }
            Ok(Datum::Array(std::sync::Arc::new(Array::of(
                *element, elements,
            ))))
        }
        SubKind::Any(function, all) => {
            let test = test.unwrap_or(Datum::Null);
            let mut unknown = false;
            while let Some(mut row) = cursor.next(cx)? {
                let pair = [test.clone(), row.swap_remove(0)];
                let call = Call {
                    context: cx.context,
                    argument_types: &query.types,
                    result: TypeId::BOOL,
                };
                match function.0.call(&call, &pair)? {
                    Datum::Bool(holds) if holds != *all => return Ok(Datum::Bool(holds)),
                    Datum::Null => unknown = true,
                    _ => {}
                }
            }
            Ok(if unknown {
                Datum::Null
            } else {
                Datum::Bool(*all)
            })
        }
    }
}

/// Whether two rows are equal, column by column.
fn rows_equal(
    cx: &Exec<'_>,
    columns: &[(planner::plan::Func, std::rc::Rc<[TypeId]>)],
    left: &[Datum],
    right: Vec<Datum>,
) -> Result<Datum> {
    let mut outcome = Datum::Bool(true);
    for ((function, types), (left, right)) in columns.iter().zip(left.iter().zip(right)) {
        let call = Call {
            context: cx.context,
            argument_types: types,
            result: TypeId::BOOL,
        };
        match function.0.call(&call, &[left.clone(), right])? {
            Datum::Bool(false) => return Ok(Datum::Bool(false)),
            Datum::Null => outcome = Datum::Null,
            _ => {}
        }
    }
    Ok(outcome)
}
