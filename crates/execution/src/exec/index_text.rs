//! The text of indexes: `pg_get_indexdef`, and the names of keys in messages.
//!
//! ```text
//! CREATE UNIQUE INDEX i ON public.t USING btree (lower((name)::text), b DESC) INCLUDE (c) WHERE (a > 5)
//! ```
//!
//! An expression that is no call stands in parentheses of its own. In pretty style, which messages
//! and `\d` have, there are no others than needed.

use std::sync::Arc;

use base::key::ColumnOrder;
use base::Result;

use super::catalog_functions::{qualified_name, search_path};
use super::Exec;
use catalog::operator_class::{extension_of, method_name, OperatorClass};
use catalog::{ComputedKey, Extension, Index, KeySource, RelationKind, Table, SUPERUSER};
use functions::extensions::operators_of;
use functions::strings::quote_identifier;
use functions::Operator;
use planner::bind::stored;
use planner::bind::BindContext;
use types::Datum;

pub(super) fn bound<T>(cx: &Exec<'_>, f: impl FnOnce(BindContext<'_>) -> Result<T>) -> Result<T> {
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
        KeySource::Expression { text, .. } => expression(cx, table, text, pretty),
    }
}

/// An expression over a table's columns as a part of a key, in pretty style.
pub(super) fn expression(
    cx: &Exec<'_>,
    table: &Arc<Table>,
    text: &str,
    pretty: bool,
) -> Result<String> {
    let (text, is_call) = bound(cx, |bind| stored::index_key(bind, table, text, pretty))?;
    Ok(match is_call {
        true => text,
        false => format!("({text})"),
    })
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
    let unique = if index.is_unique() { "UNIQUE " } else { "" };
    let only = match table.kind {
        RelationKind::Partitioned => "ONLY ",
        _ => "",
    };
    let table_name = match visible {
        true => quote_identifier(&table.name),
        false => qualified_name(cx.catalog, table),
    };
    let out = format!(
        "CREATE {unique}INDEX {} ON {only}{table_name} USING ",
        quote_identifier(&index.name)
    );
    described(cx, table, index, pretty, (out, false))
}

/// `EXCLUDE …`, as ALTER TABLE ADD would take it.
///
/// # Errors
/// What binding expressions gives.
pub(super) fn exclusion(
    cx: &Exec<'_>,
    table: &Arc<Table>,
    index: &Index,
    pretty: bool,
) -> Result<String> {
    described(
        cx,
        table,
        index,
        pretty,
        ("EXCLUDE USING ".to_owned(), true),
    )
}

/// What stands behind USING, of an index or of its exclusion constraint.
fn described(
    cx: &Exec<'_>,
    table: &Arc<Table>,
    index: &Index,
    pretty: bool,
    (mut out, of_constraint): (String, bool),
) -> Result<String> {
    let exclusion = index.exclusion.as_ref().filter(|_| of_constraint);
    let mut keys = keys(cx, table, index, pretty)?;
    for (place, key) in keys.iter_mut().enumerate() {
        if let (given @ 1.., path) = (index.form.collation(place), search_path(cx)) {
            let shown = cx.catalog.shown_collation(&path, given);
            key.push_str(&format!(" COLLATE {}", shown.unwrap_or_default()));
        }
        if let Some(class) = index.form.shown_class(place) {
            key.push(' ');
            key.push_str(&class_name(cx, class));
        }
        let order = index.key_order(table, place).map(|order| order.order);
        let order = order.unwrap_or(ColumnOrder::ASCENDING);
        key.push_str(match (order.descending, order.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, false) => " DESC NULLS LAST",
            (true, true) => " DESC",
        });
        if let Some(operator) = exclusion.and_then(|exclusion| exclusion.operator(place)) {
            key.push_str(" WITH ");
            key.push_str(&operator_name(cx, operator));
        }
    }
    out.push_str(&format!(
        "{} ({}){}",
        method_name(index.form.method),
        keys.join(", "),
        included(table, index)
    ));
    if index.nulls_equal {
        out.push_str(" NULLS NOT DISTINCT");
    }
    let options = index.form.options.iter();
    let options: Vec<_> = options
        .map(|(name, value)| format!("{}={}", quote_identifier(name), option_value(value)))
        .collect();
    if !options.is_empty() {
        out.push_str(&format!(" WITH ({})", options.join(", ")));
    }
    let condition = index.computed.as_ref().and_then(|c| c.condition.as_ref());
    if let Some(text) = condition {
        let text = bound(cx, |bind| {
            stored::index_condition(bind, table, text, pretty)
        })?;
        out.push_str(&match of_constraint {
            true => format!(" WHERE ({text})"),
            false => format!(" WHERE {text}"),
        });
    }
    Ok(out)
}

/// The name of an operator, with its schema unless the search path finds it.
fn operator_name(cx: &Exec<'_>, operator: &Operator) -> String {
    let mut extensions = cx.catalog.extensions.iter();
    let brings =
        |made: &&Extension| operators_of(&made.name).any(|known| known.oid == operator.oid);
    let schema = extensions.find(brings).map(|made| made.schema);
    match schema.filter(|schema| !search_path(cx).contains(schema)) {
        None => operator.name.to_owned(),
        Some(schema) => {
            let schema = cx.catalog.schema_by_oid(schema);
            let schema = schema.map_or_else(String::new, |known| quote_identifier(&known.name));
            format!("OPERATOR({schema}.{})", operator.name)
        }
    }
}

/// The name of an operator class, with its schema unless the search path finds it.
fn class_name(cx: &Exec<'_>, class: &OperatorClass) -> String {
    let extension = extension_of(class.oid).and_then(|name| cx.catalog.extension(name));
    match extension.map(|known| known.schema) {
        Some(schema) if !search_path(cx).contains(&schema) => {
            let schema = cx.catalog.schema_by_oid(schema);
            let schema = schema.map_or_else(String::new, |known| quote_identifier(&known.name));
            format!("{schema}.{}", class.name)
        }
        _ => class.name.to_owned(),
    }
}

/// The value of a storage parameter, quoted unless it is a word.
fn option_value(value: &str) -> String {
    match quote_identifier(value) == value {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', "''")),
    }
}
