//! Expressions that the catalog keeps as SQL: how `pg_node_tree` carries them, and their text.
//!
//! PostgreSQL keeps trees, which clients only ever hand back to `pg_get_expr`. Here such a value
//! says what it belongs to and has the expression as it was written: `{DEFAULT 2} 'x'` is the
//! default of the third column, `{CHECK} a > 1` a condition.

use std::sync::Arc;

use base::Result;

use super::{BindContext, Binder};
use crate::deparse::{expression, is_call, Names, Style};
use catalog::{Check, Computed, Table};
use functions::strings::quote_identifier;
use syntax::parser;

struct Columns<'a>(&'a Table);

impl Names for Columns<'_> {
    fn column(&self, place: usize, _: usize) -> String {
        let column = self.0.columns.get(place);
        column.map_or_else(String::new, |column| quote_identifier(&column.name))
    }
}

/// The default of a column as a `pg_node_tree`.
pub fn column_default(table: &Table, place: usize) -> String {
    let text = table.columns[place].default.as_deref().unwrap_or("NULL");
    format!("{{DEFAULT {place}}} {text}")
}

/// A CHECK constraint as a `pg_node_tree`.
pub fn check(check: &Check) -> String {
    format!("{{CHECK}} {}", check.condition)
}

/// The condition of an index as a `pg_node_tree`.
pub fn index_node(condition: &str) -> String {
    format!("{{CHECK}} {condition}")
}

/// The condition of a policy as a `pg_node_tree`.
pub fn policy_node(condition: &str) -> String {
    format!("{{POLICY}} {condition}")
}

/// The expressions that an index is on as a `pg_node_tree`: how long each is, then all of them; none
/// if it is on columns alone.
pub fn index_keys_node(computed: &Computed) -> Option<String> {
    let texts: Vec<_> = computed.keys.iter().filter_map(|key| key.text()).collect();
    let lengths: Vec<_> = texts.iter().map(|text| text.len().to_string()).collect();
    let node = format!("{{KEYS {}}} {}", lengths.join(","), texts.concat());
    (!texts.is_empty()).then_some(node)
}

/// The text of an expression that an index is on, and whether it looks like a call.
///
/// # Errors
/// What binding it gives, if what it rests on is gone.
pub fn index_key(
    cx: BindContext<'_>,
    table: &Arc<Table>,
    text: &str,
    pretty: bool,
) -> Result<(String, bool)> {
    let (eval, style) = (cx.eval, Style { pretty, indent: 0 });
    parser::large_stack(|| {
        let bound = Binder::new(cx, Vec::new(), false).index_expression(table, text)?;
        let shown = expression(&bound, &Columns(table), eval, style, false)?;
        Ok((shown, is_call(&bound)))
    })
}

/// The text of the condition of an index.
///
/// # Errors
/// As [`index_key`].
pub fn index_condition(
    cx: BindContext<'_>,
    table: &Arc<Table>,
    text: &str,
    pretty: bool,
) -> Result<String> {
    let (eval, style) = (cx.eval, Style { pretty, indent: 0 });
    parser::large_stack(|| {
        let bound = Binder::new(cx, Vec::new(), false).kept_condition(table, text)?;
        expression(&bound, &Columns(table), eval, style, false)
    })
}

/// The text of a `pg_node_tree` that belongs to a table.
///
/// # Errors
/// What binding it gives, if what it rests on is gone.
pub fn node_text(
    cx: BindContext<'_>,
    table: &Arc<Table>,
    node: &str,
    pretty: bool,
) -> Result<String> {
    let style = Style { pretty, indent: 0 };
    let eval = cx.eval;
    let (kind, text) = node
        .strip_prefix('{')
        .and_then(|rest| rest.split_once("} "))
        .unwrap_or(("", node));
    parser::large_stack(|| {
        let mut binder = Binder::new(cx, Vec::new(), false);
        if let Some(lengths) = kind.strip_prefix("KEYS ") {
            let (mut rest, mut shown) = (text, Vec::new());
            for length in lengths.split(',') {
                let length = length.parse().unwrap_or(rest.len());
                let (text, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
                let bound = binder.index_expression(table, text)?;
                shown.push(expression(&bound, &Columns(table), eval, style, false)?);
                rest = after;
            }
            return Ok(shown.join(", "));
        }
        if kind == "POLICY" {
            let bound = binder.shown_policy(table, text)?;
            return match expression(&bound, &Columns(table), eval, style, false) {
                Ok(shown) => Ok(shown),
                // A query inside keeps the layout in which the catalog has it.
                Err(_) => binder.stored_policy(text),
            };
        }
        let place = kind.strip_prefix("DEFAULT ").and_then(|p| p.parse().ok());
        let place = place.filter(|place: &usize| *place < table.columns.len());
        let bound = match place {
            Some(place) => binder.stored_default(table, place, text)?,
            None => binder.stored_condition(table, text)?,
        };
        expression(&bound, &Columns(table), eval, style, false)
    })
}
