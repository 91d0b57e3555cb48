//! Queries inside expressions.

use base::{coro, Error, Result, SqlState};

use super::cursor::{open, Cursor};
use super::Exec;
use crate::functions::Call;
use crate::plan::{SubKind, SubQuery};
use crate::types::{Array, Datum, TypeId};

/// The value of a subquery for a row. One that does not look at it is computed once.
///
/// # Errors
/// 21000 when a scalar one gives several rows.
pub fn eval(
    cx: &mut Exec<'_>,
    query: &SubQuery,
    test: Option<Datum>,
    row: &[Datum],
) -> Result<Datum> {
    coro::check_depth()?;
    let once = !query.correlated && test.is_none();
    if once {
        if let Some(value) = cx.values.get(&query.number) {
            return Ok(value.clone());
        }
    }
    cx.outer.push(row.to_vec());
    let mut cursor = open(&query.plan);
    let outcome = run(cx, query, test, cursor.as_mut());
    cx.outer.pop();
    let value = outcome?;
    if once {
        cx.values.insert(query.number, value.clone());
    }
    Ok(value)
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
        SubKind::Exists => Ok(Datum::Bool(cursor.next(cx)?.is_some())),
        SubKind::Array(element) => {
            let mut elements = Vec::new();
            while let Some(mut row) = cursor.next(cx)? {
                elements.push(row.swap_remove(0));
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
    columns: &[(crate::plan::Func, std::rc::Rc<[TypeId]>)],
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
