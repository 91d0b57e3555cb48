//! One row by its whole primary key: the query that most clients send most of the time.
//!
//! `select v from t where k = $1` needs no cursors: [`columns_of`] says, once, whether a plan is of
//! this form, and [`read`] runs it in buffers that are used again, so that values of fixed size
//! cost no memory at all.
//!
//! # What it leaves out
//! Further conditions, expressions over the row, keys that must be computed: the cursors do them.

use base::engine::Reading;
use base::{Key, Result};

use super::{long, rows};
use crate::state::statistics::Counting;
use catalog::RelationKind;
use planner::plan::permit::PermittedPlan;
use planner::plan::{Plan, Program, Row, Scan};
use types::Datum;

/// Memory that is used again.
#[derive(Debug, Default)]
pub struct Buffers {
    key: Key,
    bytes: Vec<u8>,
    stored: Row,
    /// The row that was found.
    pub row: Row,
}

/// The columns of the table that a plan of this form returns; none for other plans.
pub fn columns_of(plan: &Plan) -> Option<Box<[usize]>> {
    let Plan::Project(_, columns) = plan else {
        return None;
    };
    let scan = scan_of(plan)?;
    let index = scan.table.primary_key()?;
    let access = &scan.access;
    let whole = access.is_one_key(index.columns.len());
    let simple = scan.index.is_none()
        && scan.table.kind == RelationKind::Table
        && scan.filter.is_none()
        && !scan.with_key
        && access.low.is_none()
        && access.high.is_none()
        && access.equal.iter().all(|value| value.is_given());
    match whole && simple {
        true => {
            let width = scan.table.columns.len();
            let own = |column: &Program| column.as_column().filter(|place| *place < width);
            columns.iter().map(own).collect()
        }
        false => None,
    }
}

fn scan_of(plan: &Plan) -> Option<&Scan> {
    match plan {
        Plan::Project(input, _) => match &**input {
            Plan::Scan(scan) => Some(scan),
            _ => None,
        },
        _ => None,
    }
}

/// Runs a plan of this form; whether there is a row, which is then in `buffers.row`.
///
/// # Errors
/// What reading raises.
pub fn read(
    permitted: PermittedPlan<'_>,
    columns: &[usize],
    (txn, counting): (&mut dyn Reading, &mut Counting),
    (params, literals): (&[Datum], &[Datum]),
    buffers: &mut Buffers,
) -> Result<bool> {
    let scan = scan_of(permitted.plan()).filter(|scan| scan.table.primary_key().is_some());
    let Some((scan, index)) = scan.and_then(|scan| Some((scan, scan.table.primary_key()?))) else {
        return Err(base::Error::internal("a plan that reads no single row"));
    };
    buffers.key.clear();
    for (column, value) in index.columns.iter().zip(&scan.access.equal) {
        let value = value.given(params, literals)?;
        match rows::fit_key(scan.table.columns[column.column].type_id, value) {
            rows::KeyFit::Value(value) => {
                rows::put_key_value(&scan.table, column, &value, &mut buffers.key)?;
            }
            _ => return Ok(false),
        }
    }
    let found = txn.get(scan.table.tree, &buffers.key, &mut buffers.bytes)?;
    counting.looked_up(index.oid, found);
    if !found {
        return Ok(false);
    }
    buffers.stored.clear();
    let needed = scan.needed.borrow();
    rows::decode_into(&scan.table, &needed, &buffers.bytes, &mut buffers.stored)?;
    buffers.row.clear();
    for place in columns {
        let value = long::read(&buffers.stored[*place], txn)?;
        buffers.row.push(value);
    }
    Ok(true)
}
