//! Comparison of rows as values: field by field, NULLs equal to one another and last.
//!
//! Source: PostgreSQL 15 manual, section 9.24.6.

use std::cmp::Ordering;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::comparison::{check_equality, check_sortable};
use super::Call;
use types::{compare, Datum, TypeId};

/// What comparing a field counts for, in the units of [`coro::work`].
const FIELD_WORK: usize = 16;

fn mismatch(message: String) -> Error {
    Error::new(SqlState::DATATYPE_MISMATCH, message)
}

/// Compares two rows field by field, up to the first that differ.
///
/// # Errors
/// 42804 for rows of other columns, as far as they are looked at; what `compare` says of a field.
pub(super) fn by_field(
    args: &[Datum],
    compare: impl Fn(TypeId, &Datum, &Datum) -> Result<Ordering>,
) -> Result<Ordering> {
    let [Datum::Record(a), Datum::Record(b)] = args else {
        return Err(Error::internal("a comparison of other than two rows"));
    };
    let types = a.types.iter().zip(&b.types);
    let values = a.values.iter().zip(&b.values);
    for (number, ((of_a, of_b), (a, b))) in (1..).zip(types.zip(values)) {
        coro::work(FIELD_WORK)?;
        if of_a != of_b {
            return Err(mismatch(format!(
                "cannot compare dissimilar column types {of_a} and {of_b} at record column {number}"
            )));
        }
        let order = compare(*of_a, a, b)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    match a.values.len() == b.values.len() {
        true => Ok(Ordering::Equal),
        false => Err(mismatch(
            "cannot compare record types with different numbers of columns".to_owned(),
        )),
    }
}

fn order(args: &[Datum], check: fn(TypeId) -> Result<()>) -> Result<Ordering> {
    by_field(args, |kind, a, b| {
        check(kind)?;
        Ok(compare::compare(kind, a, b))
    })
}

macro_rules! comparisons {
    ($($name:ident $check:ident $test:expr;)*) => {
        $(pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            order(args, $check).map($test)
        })*
    };
}

comparisons! {
    eq check_equality |order| Datum::Bool(order.is_eq());
    ne check_equality |order| Datum::Bool(order.is_ne());
    lt check_sortable |order| Datum::Bool(order.is_lt());
    gt check_sortable |order| Datum::Bool(order.is_gt());
    le check_sortable |order| Datum::Bool(order.is_le());
    ge check_sortable |order| Datum::Bool(order.is_ge());
    cmp check_sortable |order| Datum::Int4(order as i32);
}
