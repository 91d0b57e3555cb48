//! Expressions that the catalog keeps as SQL: how `pg_node_tree` carries them, and their text.
//!
//! PostgreSQL keeps trees, which clients only ever hand back to `pg_get_expr`. Here such a value
//! says what it belongs to and has the expression as it was written: `{DEFAULT 2} 'x'` is the
//! default of the third column, `{CHECK} a > 1` a condition.

use std::sync::Arc;

use base::Result;

use super::expression::{expression, Names, Style};
use crate::bind::{BindContext, Binder};
use crate::catalog::{Check, Table};
use crate::functions::strings::quote_identifier;
use crate::parser;

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
        let place = kind.strip_prefix("DEFAULT ").and_then(|p| p.parse().ok());
        let place = place.filter(|place: &usize| *place < table.columns.len());
        let bound = match place {
            Some(place) => binder.stored_default(table, place, text)?,
            None => binder.stored_condition(table, text)?,
        };
        expression(&bound, &Columns(table), eval, style, false)
    })
}
