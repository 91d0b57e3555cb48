//! Queries inside expressions.

use std::rc::Rc;
use std::sync::Arc;

use base::{coro, Error, ErrorClass, Result, SqlState};

use super::cursor::{open, Cursor};
use super::members::Members;
use super::program::Evaluate;
use super::Exec;
use crate::kept::{apart, row_bytes, HashedPlaces, HASHED_BYTES};
use base::memory::Reservation;
use functions::Call;
use planner::plan::keyed::Keyed;
use planner::plan::{Func, Row, SubKind, SubQuery};
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
        return is_member(cx, query, test, &members, &[]);
    }
    let mut is_missing = false;
    if let (Some(keyed), Some(ByKey::Known(..))) = (&query.keyed, cx.by_key.get(&query.number)) {
        match by_key(cx, query, keyed, test.as_ref(), &row_of(places, &seen))? {
            Answer::Value(value) => return Ok(value),
            Answer::Missing => is_missing = true,
            Answer::Nobody => {}
        }
    }
    // Whatever is further out stays the same only where there is nothing.
    let remembers = test.is_none() && query.correlated && cx.outer.is_empty();
    if remembers {
        let known = cx.memos.get_mut(&query.number);
        if let Some(value) = known.and_then(|memo| memo.find(&seen)) {
            return Ok(value);
        }
    }
    let row = row_of(places, &seen);
    if let Some(keyed) = &query.keyed {
        if is_due(cx, query, keyed)? {
            match by_key(cx, query, keyed, test.as_ref(), &row)? {
                Answer::Value(value) => return Ok(value),
                Answer::Missing => is_missing = true,
                Answer::Nobody => {}
            }
        }
    }
    let kept = remembers.then_some(seen);
    cx.outer.push(row);
    let mut cursor = open(&query.plan, cx.measures.as_ref());
    let outcome = run(cx, query, test, cursor.as_mut());
    cx.outer.pop();
    let value = outcome?;
    if let (true, Some(ByKey::Known(_, empty))) = (is_missing, cx.by_key.get_mut(&query.number)) {
        *empty = Some(value.clone());
    }
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

/// The row around a subquery as it sees it: values at these places.
fn row_of(places: &[usize], seen: &[Datum]) -> Row {
    let width = places.iter().max().map_or(0, |last| last + 1);
    let mut row = vec![Datum::Null; width];
    for (place, value) in places.iter().zip(seen) {
        row[*place] = value.clone();
    }
    row
}

/// The rows of a subquery for all rows around it.
pub(super) enum ByKey {
    /// Not yet: for so many rows it was computed.
    After(usize),
    /// Here they are, and what the subquery gives where there is none, once that is known.
    Known(Rc<Members>, Option<Datum>),
    /// They cannot be had.
    Refused,
}

/// What they say of a row.
enum Answer {
    Value(Datum),
    /// There is none to aggregate, and it is not known what that gives.
    Missing,
    /// Nothing: the subquery is to be computed.
    Nobody,
}

/// Whether an error is about values or memory, so that without these rows there may be none.
fn is_of_rows(error: &Error) -> bool {
    let state = error.state();
    error.class() == ErrorClass::User && matches!(&state.as_str()[..2], "21" | "22" | "53" | "54")
}

/// Whether a subquery's rows are there for all rows around it, as it has been computed for so many that
/// they are worth it.
fn is_due(cx: &mut Exec<'_>, query: &SubQuery, keyed: &Keyed) -> Result<bool> {
    match cx.by_key.entry(query.number).or_insert(ByKey::After(0)) {
        ByKey::After(runs) if *runs < keyed.after => {
            *runs += 1;
            return Ok(false);
        }
        ByKey::After(_) => {}
        ByKey::Known(..) | ByKey::Refused => return Ok(false),
    }
    let keys = keyed.keys.iter().map(|key| key.1).collect();
    let (depth, cases) = (cx.outer.len(), cx.cases.len());
    cx.outer.push(Row::new());
    let rows = Members::of(&keyed.plan, hashed_types(query), (keyed.width, keys), cx);
    cx.outer.truncate(depth);
    cx.cases.truncate(cases);
    let (now, is_there) = match rows {
        Ok(rows) => (ByKey::Known(Rc::new(rows), None), true),
        Err(error) if is_of_rows(&error) => (ByKey::Refused, false),
        Err(error) => return Err(error),
    };
    cx.by_key.insert(query.number, now);
    Ok(is_there)
}

/// The value of a subquery for a row around it, by its key.
fn by_key(
    cx: &mut Exec<'_>,
    query: &SubQuery,
    keyed: &Keyed,
    test: Option<&Datum>,
    row: &[Datum],
) -> Result<Answer> {
    let Some(ByKey::Known(members, empty)) = cx.by_key.get(&query.number) else {
        return Ok(Answer::Nobody);
    };
    let (members, empty) = (members.clone(), empty.clone());
    let mut key = Row::with_capacity(keyed.keys.len());
    for (program, _) in &keyed.keys {
        match program.eval(cx, row) {
            Ok(value) => key.push(value),
            // Where there is no row to compare it with, nobody computes it.
            Err(error) if is_of_rows(&error) => return Ok(Answer::Nobody),
            Err(error) => return Err(error),
        }
    }
    if keyed.is_never_empty && members.rows_of(&key).next().is_none() {
        return Ok(match (&query.kind, empty) {
            (SubKind::Scalar, Some(value)) => Answer::Value(value),
            (SubKind::Scalar, None) => Answer::Missing,
            _ => Answer::Nobody,
        });
    }
    let value = match test {
        Some(test) => is_member(cx, query, test, &members, &key),
        None => {
            let mut rows = Given(members.rows_of(&key));
            run(cx, query, None, &mut rows)
        }
    };
    value.map(Answer::Value)
}

/// The types of the values that are compared, if each pair is of one type and compared by plain
/// equality.
fn hashed_types(query: &SubQuery) -> Option<Vec<TypeId>> {
    let one = |types: &[TypeId]| match types {
        [a, b] if a == b && a.has_equality() => Some(*a),
        _ => None,
    };
    match &query.kind {
        SubKind::Any(function, all) => {
            let kind = one(&query.types)?;
            let name = if *all { "<>" } else { "=" };
            is_named(function, name, kind).then(|| vec![kind])
        }
        SubKind::AnyRow(columns) => columns.iter().map(|column| one(&column.1)).collect(),
        _ => None,
    }
}

fn is_named(function: &Func, operator: &str, kind: TypeId) -> bool {
    functions::operators_for(operator, kind)
        .iter()
        .any(|operator| std::ptr::eq(operator.function, function.0))
}

fn members(cx: &mut Exec<'_>, query: &SubQuery) -> Result<Rc<Members>> {
    if let Some(known) = cx.members.get(&query.number) {
        return Ok(known.clone());
    }
    let types = hashed_types(query);
    let width = match &query.kind {
        SubKind::AnyRow(columns) => columns.len(),
        _ => 1,
    };
    cx.outer.push(Row::new());
    let members = Members::of(&query.plan, types, (width, Vec::new()), cx);
    cx.outer.pop();
    let members = Rc::new(members?);
    cx.members.insert(query.number, members.clone());
    Ok(members)
}

/// Whether the value compares so with any member of a key, or with all of them.
fn is_member(
    cx: &mut Exec<'_>,
    query: &SubQuery,
    test: &Datum,
    members: &Members,
    key: &[Datum],
) -> Result<Datum> {
    let values = match (&query.kind, test) {
        (SubKind::AnyRow(_), Datum::Record(record)) => &record.values[..],
        (_, value) => std::slice::from_ref(value),
    };
    if let Some(found) = members.has(values, key) {
        // What differs from all of them is none of them.
        let negated = matches!(query.kind, SubKind::Any(_, true));
        return Ok(match found {
            Datum::Bool(found) => Datum::Bool(found != negated),
            unknown => unknown,
        });
    }
    let mut rows = Given(members.rows_of(key));
    run(cx, query, Some(test.clone()), &mut rows)
}

/// Rows that are already there.
struct Given<I>(I);

impl<'r, I: Iterator<Item = &'r Row>> Cursor for Given<I> {
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
        SubKind::Compare(condition, all, _) => {
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
            let stacks = element.array_element().is_some();
            while let Some(mut row) = cursor.next(cx)? {
                held.grow(row_bytes(&row))?;
                let value = row.swap_remove(0);
                if stacks {
                    functions::check_stackable(elements.first(), &value)?;
                }
                let more = growth::ELEMENT_BYTES + growth::bytes_of(&value);
                growth::check_room(bytes, more)?;
                bytes += more;
                elements.push(value);
            }
            if stacks && !elements.is_empty() {
                return functions::stacked(&elements);
            }
            let element = element.array_element().unwrap_or(*element);
            Ok(Datum::Array(Arc::new(Array::of(element, elements))))
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
