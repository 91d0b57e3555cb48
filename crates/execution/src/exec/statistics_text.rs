//! The text of extended statistics: `pg_get_statisticsobjdef` and its kin.
//!
//! ```text
//! CREATE STATISTICS public.s (dependencies) ON city, zip, lower(name) FROM t
//! ```
//! As in indexes, an expression that is no call stands in parentheses of its own.

use std::sync::Arc;

use base::Result;

use super::catalog_functions::shown_name;
use super::{index_text, Exec};
use catalog::extended::Extended;
use catalog::Table;
use functions::strings::quote_identifier;
use planner::bind::stored;
use types::{Array, Datum, TypeId};

/// The statistics of that oid, with their table.
fn found<'c>(cx: &Exec<'c>, oid: u32) -> Option<(Arc<Extended>, &'c Arc<Table>)> {
    let known = cx.catalog.extended(oid)?.clone();
    let table = cx.catalog.table_by_oid(known.table)?;
    Some((known, table))
}

fn listed(cx: &Exec<'_>, known: &Extended, table: &Arc<Table>) -> Result<String> {
    let mut parts = Vec::new();
    for place in &known.columns {
        let column = table.columns.get(*place);
        parts.push(column.map_or_else(String::new, |column| quote_identifier(&column.name)));
    }
    for expression in &known.expressions {
        let (text, is_call) = index_text::bound(cx, |bind| {
            stored::statistics_part(bind, table, &expression.text)
        })?;
        parts.push(match is_call {
            true => text,
            false => format!("({text})"),
        });
    }
    Ok(parts.join(", "))
}

/// `CREATE STATISTICS …`, as it could be given.
///
/// # Errors
/// What binding expressions gives.
pub(super) fn definition(cx: &Exec<'_>, oid: u32) -> Result<Datum> {
    let Some((known, table)) = found(cx, oid) else {
        return Ok(Datum::Null);
    };
    let schema = cx.catalog.schema_by_oid(known.schema);
    let schema = schema.map_or("", |schema| &schema.name);
    let kinds = [
        (known.kinds.distinct, "ndistinct"),
        (known.kinds.dependencies, "dependencies"),
        (known.kinds.common, "mcv"),
    ];
    let named: Vec<_> = kinds
        .iter()
        .filter(|kind| kind.0)
        .map(|kind| kind.1)
        .collect();
    let is_single = known.columns.len() + known.expressions.len() < 2;
    let kinds = match named.len() == kinds.len() || is_single {
        true => String::new(),
        false => format!(" ({})", named.join(", ")),
    };
    Ok(Datum::text(format!(
        "CREATE STATISTICS {}.{}{kinds} ON {} FROM {}",
        quote_identifier(schema),
        quote_identifier(&known.name),
        listed(cx, &known, table)?,
        shown_name(cx, table)
    )))
}

/// What they are about.
///
/// # Errors
/// As [`definition`].
pub(super) fn columns(cx: &Exec<'_>, oid: u32) -> Result<Datum> {
    match found(cx, oid) {
        Some((known, table)) => listed(cx, &known, table).map(Datum::text),
        None => Ok(Datum::Null),
    }
}

/// Their expressions, as a list; NULL if there are none.
///
/// # Errors
/// As [`definition`].
pub(super) fn expressions(cx: &Exec<'_>, oid: u32) -> Result<Datum> {
    let Some((known, table)) = found(cx, oid).filter(|found| !found.0.expressions.is_empty())
    else {
        return Ok(Datum::Null);
    };
    let mut shown = Vec::with_capacity(known.expressions.len());
    for expression in &known.expressions {
        let (text, _) = index_text::bound(cx, |bind| {
            stored::index_key(bind, table, &expression.text, false)
        })?;
        shown.push(Datum::text(text));
    }
    Ok(Datum::Array(Arc::new(Array::of(TypeId::TEXT, shown))))
}
