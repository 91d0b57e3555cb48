//! Rows of routines, in FROM and in target lists.
//!
//! A routine's rows are there as a whole before the first is used, as in PostgreSQL.

use std::sync::Arc;

use base::{coro, Result};

use super::program::Evaluate;
use super::{session_functions, Exec};
use crate::kept::RowStore;
use functions::{Body, Call};
use planner::plan::{Program, RoutineCall, Row};
use types::{Datum, Record, TypeId};

fn called(
    call: &RoutineCall,
    args: &[Program],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<RowStore>> {
    let args = args.iter().map(|arg| arg.eval(cx, row));
    let args = args.collect::<Result<Vec<_>>>()?;
    if call.routine.strict && args.iter().any(Datum::is_null) {
        return Ok(None);
    }
    if let Some(function) = call.function() {
        let mut rows = RowStore::of("A function");
        let of = Call {
            context: cx.context,
            argument_types: &call.types,
            result: call.result,
        };
        let made = match function.body {
            Body::Set(set) => coro::interruptible(|| set(&of, &args))??,
            Body::Records(records) => coro::interruptible(|| (records.rows)(&of, &args))??,
            Body::Session(which) => {
                match session_functions::call(cx, function, which, &args)? {
                    Datum::Array(array) if which.gives_rows() => {
                        for value in &array.elements {
                            coro::work(16)?;
                            rows.push(spread(call, value.clone()))?;
                        }
                    }
                    value => rows.push(spread(call, value))?,
                }
                return Ok(Some(rows));
            }
            Body::Native(_) => {
                rows.push(spread(call, function.call(&of, &args)?))?;
                return Ok(Some(rows));
            }
        };
        for value in made {
            coro::work(16)?;
            rows.push(spread(call, value?))?;
        }
        cx.check_held(rows.bytes())?;
        return Ok(Some(rows));
    }
    if call.routine.set {
        let rows = cx.host.call_rows(call, args)?;
        cx.check_held(rows.bytes())?;
        return Ok(Some(rows));
    }
    let mut rows = RowStore::of("A function");
    rows.push(spread(call, cx.host.call(call, args)?))?;
    Ok(Some(rows))
}

/// A value as the columns of a row.
fn spread(call: &RoutineCall, value: Datum) -> Row {
    match value {
        Datum::Record(record) if call.result == TypeId::RECORD => record.values.clone(),
        Datum::Null if call.result == TypeId::RECORD => vec![Datum::Null; call.columns.len()],
        value => vec![value],
    }
}

/// The rows of a routine in FROM.
pub(super) fn rows(
    call: &RoutineCall,
    args: &[Program],
    ordinality: bool,
    cx: &mut Exec<'_>,
) -> Result<RowStore> {
    let mut rows = match called(call, args, &[], cx)? {
        Some(rows) => rows,
        None => RowStore::of("A function"),
    };
    if rows.is_empty() && !call.routine.set {
        rows.push(spread(call, Datum::Null))?;
    }
    if ordinality {
        for (row, number) in rows.rows_mut().iter_mut().zip(1..) {
            row.push(Datum::Int8(number));
        }
    }
    Ok(rows)
}

/// The values of a routine in a target list: rows of several columns are records.
pub(super) fn values(
    call: &RoutineCall,
    args: &[Program],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Vec<Datum>> {
    let rows = called(call, args, row, cx)?.unwrap_or_default();
    let types: Vec<TypeId> = call.columns.iter().map(|column| column.1).collect();
    let is_known = !types.is_empty();
    let value = |row: Row| match call.result {
        // Of rows of no type that is known, each is a record already.
        TypeId::RECORD if is_known => Datum::Record(Arc::new(Record {
            types: types.clone(),
            values: row,
            names: None,
        })),
        _ => row.into_iter().next().unwrap_or(Datum::Null),
    };
    Ok(rows.into_iter().map(value).collect())
}
