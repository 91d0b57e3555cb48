//! Rows of a column definition list.
//!
//! The binder passes the list as further arguments behind those of the call: the names, the types' OIDs and
//! their modifiers.
//!
//! ```text
//! select * from json_to_record('{"a": 1}') as t (a int)    json_to_record('{"a": 1}', '{a}', '{23}', '{-1}')
//! select * from coalesce(row(1), row(2)) as t (a int)      LISTED(coalesce(row(1), row(2)), '{a}', '{23}', '{-1}')
//! ```

use std::sync::Arc;

use base::error::{Error, Result, SqlState};

use crate::arguments::Arguments;
use crate::table::{CastContext, CastRow};
use crate::table_casts::CASTS;
use crate::{Body, Call, Function, Volatility};
use types::{Datum, Record, RowField, TypeId};

/// The most arguments that a function with a list has without it.
const OWN_ARGUMENTS_MAX: usize = 3;

/// What is advised where nothing says of which columns a row is.
pub(crate) const HINT: &str =
    "Provide a non-null record argument, or call the function in the FROM \
                               clause using a column definition list.";

/// How a cast is written that leaves the bits as they are.
const SAME_BITS: u32 = 0;

/// The row of the first argument, for the binder, if it is one of the columns of the list.
pub static LISTED: Function = Function {
    oid: 0,
    name: "listed",
    arguments: &[
        TypeId::RECORD,
        TypeId::TEXT_ARRAY,
        TypeId(1028),
        TypeId::INT4_ARRAY,
    ],
    variadic: false,
    defaults: 0,
    result: TypeId::RECORD,
    volatility: Volatility::Immutable,
    strict: false,
    body: Body::Native(listed),
};

fn listed(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let fields = fields(args)?.unwrap_or_default();
    match args.any(0)? {
        Datum::Record(record) => {
            check(record, &fields)?;
            Ok(Datum::Record(record.clone()))
        }
        _ => Ok(empty(&fields)),
    }
}

/// The row of NULLs.
pub(crate) fn empty(fields: &[RowField]) -> Datum {
    Datum::Record(Arc::new(Record {
        types: fields.iter().map(|field| field.kind).collect(),
        values: vec![Datum::Null; fields.len()],
        names: None,
    }))
}

/// The columns of the list behind the arguments; none without one.
pub(crate) fn fields(args: &[Datum]) -> Result<Option<Vec<RowField>>> {
    if args.len() <= OWN_ARGUMENTS_MAX {
        return Ok(None);
    }
    let first = args.len() - 3;
    let (names, types, typmods) = (
        args.array(first)?,
        args.array(first + 1)?,
        args.array(first + 2)?,
    );
    let types = types.elements.iter().zip(&typmods.elements);
    let columns = names.elements.iter().zip(types);
    let field = |(name, (kind, typmod)): (&Datum, (&Datum, &Datum))| RowField {
        name: name.as_str().to_owned(),
        kind: TypeId(kind.as_i64().unwrap_or(0) as u32),
        typmod: typmod.as_i64().unwrap_or(-1) as i32,
        of_domain: false,
    };
    Ok(Some(columns.map(field).collect()))
}

/// # Errors
/// 42804 for a row of other columns than those of the list.
pub(crate) fn check(record: &Record, fields: &[RowField]) -> Result<()> {
    let wrong = |detail: String| {
        let message = "function return row and query-specified return row do not match";
        Err(Error::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail))
    };
    let (has, wanted) = (record.types.len(), fields.len());
    if has != wanted {
        let attributes = if has == 1 { "attribute" } else { "attributes" };
        return wrong(format!(
            "Returned row contains {has} {attributes}, but query expects {wanted}."
        ));
    }
    for (number, (own, field)) in (1..).zip(record.types.iter().zip(fields)) {
        if !is_binary_coercible(*own, field.kind) {
            return wrong(format!(
                "Returned type {own} at ordinal position {number}, but query expects {}.",
                field.kind
            ));
        }
    }
    Ok(())
}

/// Whether a value of one type is one of another as it is.
fn is_binary_coercible(from: TypeId, to: TypeId) -> bool {
    let is_free = |cast: &CastRow| {
        (cast.source, cast.target) == (from, to)
            && cast.context == CastContext::Implicit
            && cast.how == SAME_BITS
    };
    from == to || (from.is_composite() && to == TypeId::RECORD) || CASTS.iter().any(is_free)
}
