//! Queries inside expressions.

use std::rc::Rc;
use std::sync::Arc;

use base::hash::HashMap;
use base::{coro, Error, Result, SqlState};

use super::cursor::{open, Cursor};
use super::program::Evaluate;
use super::{collect, Exec};
use crate::kept::{row_bytes, RowStore, HASHED_BYTES};
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
    Ok(value)
}

/// The rows of a subquery that is the same for every row, for `IN` and its kin.
pub struct Members {
    rows: RowStore,
    /// The types of the values, where the comparison is plain equality of values of one type.
    types: Option<Vec<TypeId>>,
    /// By the hash of its values; only where there are types, and of rows without NULLs.
    by_hash: HashMap<u64, Vec<usize>>,
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
    let rows = collect(&query.plan, "A subquery", cx);
    cx.outer.pop();
    let mut rows = rows?;
    let mut by_hash: HashMap<u64, Vec<usize>> = HashMap::default();
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
            by_hash.entry(hash).or_default().push(place);
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
        let found = members.by_hash.get(&hash_row(types, values));
        let equal = |place: &usize| {
            let mut pairs = types.iter().zip(values.iter().zip(&members.rows[*place]));
            pairs.all(|(ty, (a, b))| types::equal(*ty, a, b))
        };
        if found.is_some_and(|places| places.iter().any(equal)) {
            return Ok(Datum::Bool(true));
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
