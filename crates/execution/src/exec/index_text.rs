//! The text of indexes: `pg_get_indexdef`, and the names of keys in messages.
//!
//! ```text
//! CREATE UNIQUE INDEX i ON public.t USING btree (lower((name)::text), b DESC) INCLUDE (c) WHERE (a > 5)
//! ```
//!
//! An expression that is no call stands in parentheses of its own. In pretty style, which messages
//! and `\d` have, there are no others than needed.

use std::sync::Arc;

use base::Result;

use super::catalog_functions::{qualified_name, search_path};
use super::Exec;
use catalog::{ComputedKey, Index, KeySource, Table, SUPERUSER};
use functions::strings::quote_identifier;
use planner::bind::stored;
use planner::bind::BindContext;
use types::Datum;

fn bound<T>(cx: &Exec<'_>, f: impl FnOnce(BindContext<'_>) -> Result<T>) -> Result<T> {
    let path = search_path(cx);
    f(BindContext {
        catalog: cx.catalog,
        search_path: &path,
        role: SUPERUSER,
        eval: cx.context,
        text: "",
        literals: None,
        variables: None,
    })
}

fn column(table: &Table, place: usize) -> String {
    let column = table.columns.get(place);
    column.map_or_else(String::new, |column| quote_identifier(&column.name))
}

fn computed_key(
    cx: &Exec<'_>,
    table: &Arc<Table>,
    key: &ComputedKey,
    pretty: bool,
) -> Result<String> {
    match &key.source {
        KeySource::Column(place) => Ok(column(table, *place)),
        KeySource::Expression { text, .. } => {
            let (text, is_call) = bound(cx, |bind| stored::index_key(bind, table, text, pretty))?;
            Ok(match is_call {
                true => text,
                false => format!("({text})"),
            })
        }
    }
}

/// The text of each key, without its order.
fn keys(cx: &Exec<'_>, table: &Arc<Table>, index: &Index, pretty: bool) -> Result<Vec<String>> {
    match &index.computed {
        None => {
            let columns = index.columns.iter();
            Ok(columns.map(|own| column(table, own.column)).collect())
        }
        Some(computed) => {
            let keys = computed.keys.iter();
            keys.map(|key| computed_key(cx, table, key, pretty))
                .collect()
        }
    }
}

/// The keys of an index, as messages name them.
pub(super) fn key_names(cx: &Exec<'_>, table: &Table, index: &Index) -> String {
    let names = keys(cx, &Arc::new(table.clone()), index, true);
    names.map_or_else(|_| String::new(), |names: Vec<_>| names.join(", "))
}

/// The text of one key, or of a column that is included; NULL if there is none.
pub(super) fn key_text(
    cx: &Exec<'_>,
    table: &Arc<Table>,
    index: &Index,
    place: usize,
    pretty: bool,
) -> Result<Datum> {
    if let Some(included) = place.checked_sub(index.key_count()) {
        let included = index.include.get(included);
        return Ok(included.map_or(Datum::Null, |place| Datum::text(column(table, *place))));
    }
    let mut keys = keys(cx, table, index, pretty)?;
    Ok(match place < keys.len() {
        true => Datum::text(keys.swap_remove(place)),
        false => Datum::Null,
    })
}

/// ` INCLUDE (a, b)`, or nothing.
pub(super) fn included(table: &Table, index: &Index) -> String {
    let names: Vec<_> = index.include.iter().map(|at| column(table, *at)).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" INCLUDE ({})", names.join(", ")),
    }
}

/// `CREATE INDEX …`, as it could be given; the table's name without its schema if it is `visible`.
///
/// # Errors
/// What binding expressions gives.
pub(super) fn definition(
    cx: &Exec<'_>,
    table: &Arc<Table>,
    index: &Index,
    visible: bool,
    pretty: bool,
) -> Result<String> {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let table_name = match visible {
        true => quote_identifier(&table.name),
        false => qualified_name(cx.catalog, table),
    };
    let mut keys = keys(cx, table, index, pretty)?;
    for (place, key) in keys.iter_mut().enumerate() {
        let order = index.key_order(table, place);
        if order.is_some_and(|order| order.descending) {
            key.push_str(" DESC");
        }
    }
    let mut out = format!(
        "CREATE {unique}INDEX {} ON {table_name} USING btree ({}){}",
        quote_identifier(&index.name),
        keys.join(", "),
        included(table, index)
    );
    if index.nulls_equal {
        out.push_str(" NULLS NOT DISTINCT");
    }
    let condition = index.computed.as_ref().and_then(|c| c.condition.as_ref());
    if let Some(text) = condition {
        let text = bound(cx, |bind| {
            stored::index_condition(bind, table, text, pretty)
        })?;
        out.push_str(" WHERE ");
        out.push_str(&text);
    }
    Ok(out)
}
