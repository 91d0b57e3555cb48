//! Expressions that the catalog keeps as SQL: how `pg_node_tree` carries them, and their text.
//!
//! PostgreSQL keeps trees, which clients only ever hand back to `pg_get_expr`. Here such a value
//! says what it belongs to and has the expression as it was written: `{DEFAULT 2} 'x'` is the
//! default of the third column, `{CHECK} a > 1` a condition.

use std::sync::Arc;

use base::{Error, Result};

use super::trigger::whole_row;
use super::{BindContext, Binder};
use crate::deparse::{expression, is_call, Names, Style};
use crate::plan::{Expr, ExprKind};
use catalog::routine::Argument;
use catalog::{Check, Computed, Domain, DomainCheck, Table, Trigger};
use functions::strings::quote_identifier;
use syntax::parser;
use types::{Datum, TypeId};

pub(super) struct Columns<'a>(pub(super) &'a Table);

impl Names for Columns<'_> {
    fn column(&self, place: usize, _: usize) -> String {
        let column = self.0.columns.get(place);
        column.map_or_else(String::new, |column| quote_identifier(&column.name))
    }

    fn row(&self, fields: &[Expr]) -> Option<String> {
        let is_whole = !fields.is_empty() && is_row_of(self.0, 0, fields);
        is_whole.then(|| format!("{}.*", quote_identifier(&self.0.name)))
    }
}

/// Whether these are all columns of a table, in their order, whose row begins at a place.
pub(super) fn is_row_of(table: &Table, start: usize, fields: &[Expr]) -> bool {
    let columns = table.columns.iter().enumerate();
    let places = columns.filter(|(_, column)| !column.dropped);
    let places: Vec<_> = places.map(|(place, _)| start + place).collect();
    let is_it = |(field, place): (&Expr, &usize)| matches!(field.kind, ExprKind::Column(at) if at == *place);
    fields.len() == places.len() && fields.iter().zip(&places).all(is_it)
}

/// The old row and the new one of a trigger.
struct Rows<'a>(&'a Table);

impl Names for Rows<'_> {
    fn column(&self, place: usize, level: usize) -> String {
        let width = self.0.columns.len();
        let row = if place < width { "old" } else { "new" };
        format!("{row}.{}", Columns(self.0).column(place % width, level))
    }

    fn row(&self, fields: &[Expr]) -> Option<String> {
        let is_new = whole_row(self.0, fields)?;
        Some(format!("{}.*", if is_new { "new" } else { "old" }))
    }
}

/// WHEN of a trigger as a `pg_node_tree`, which says of which one it is.
pub fn trigger_node(trigger: &Trigger) -> Option<String> {
    let condition = trigger.condition.as_ref()?;
    Some(format!("{{TRIGGER {}}} {}", trigger.oid, condition.text))
}

/// The bound of a partition as a `pg_node_tree`, which says of which one it is.
pub fn bound_node(table: &Table) -> String {
    format!("{{BOUND {}}} ", table.oid)
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
    keys_node(&texts)
}

/// Expressions over a table as a `pg_node_tree`, in the same form; none if there are none.
pub fn keys_node(texts: &[&str]) -> Option<String> {
    let lengths: Vec<_> = texts.iter().map(|text| text.len().to_string()).collect();
    let node = format!("{{KEYS {}}} {}", lengths.join(","), texts.concat());
    (!texts.is_empty()).then_some(node)
}

/// The text of the default of a routine's argument.
///
/// # Errors
/// As [`index_key`].
pub fn argument_default(cx: BindContext<'_>, argument: &Argument, text: &str) -> Result<String> {
    let (eval, none) = (cx.eval, Table::default());
    parser::large_stack(|| {
        let mut binder = Binder::new(cx, Vec::new(), false);
        let bound = binder.stored_argument(argument, text)?;
        expression(&bound, &Columns(&none), eval, Style::default(), false)
    })
}

/// What a check of a domain calls the value.
struct Value;

impl Names for Value {
    fn column(&self, _: usize, _: usize) -> String {
        "VALUE".to_owned()
    }
}

/// The text of the default of a domain.
///
/// # Errors
/// As [`index_key`].
pub fn domain_default(cx: BindContext<'_>, domain: &Domain, text: &str) -> Result<String> {
    let eval = cx.eval;
    parser::large_stack(|| {
        let bound = Binder::new(cx, Vec::new(), false).domain_default(domain, text)?;
        expression(&bound, &Value, eval, Style::default(), false)
    })
}

/// The text of a check of a domain.
///
/// # Errors
/// As [`index_key`].
pub fn domain_check(
    cx: BindContext<'_>,
    domain: &Domain,
    text: &str,
    pretty: bool,
) -> Result<String> {
    let (eval, style) = (
        cx.eval,
        Style {
            pretty,
            ..Style::default()
        },
    );
    parser::large_stack(|| {
        let bound = Binder::new(cx, Vec::new(), false).domain_condition(domain, text)?;
        expression(&bound, &Value, eval, style, false)
    })
}

/// The default of a domain as a `pg_node_tree`, which says of which one it is.
pub fn domain_default_node(id: TypeId, text: &str) -> String {
    format!("{{DOMAIN {}}} {text}", id.0)
}

/// A check of a domain as a `pg_node_tree`, which says which one it is.
pub fn domain_check_node(check: &DomainCheck) -> String {
    format!("{{VALUE {}}} {}", check.oid, check.condition)
}

/// The text of a `pg_node_tree` that belongs to a domain; none if it belongs to something else.
///
/// # Errors
/// As [`index_key`].
pub fn domain_node_text(cx: BindContext<'_>, node: &str, pretty: bool) -> Result<Option<String>> {
    let split = node
        .strip_prefix('{')
        .and_then(|rest| rest.split_once("} "));
    let Some((kind, text)) = split else {
        return Ok(None);
    };
    let catalog = cx.catalog;
    if let Some(domain) = kind.strip_prefix("DOMAIN ") {
        let domain = domain
            .parse()
            .ok()
            .and_then(|id| catalog.domain(TypeId(id)));
        let shown = domain.map(|domain| domain_default(cx, domain, text));
        return shown.transpose();
    }
    if let Some(oid) = kind.strip_prefix("VALUE ") {
        let found = oid.parse().ok().and_then(|oid| catalog.domain_check(oid));
        let domain = found.and_then(|(made, _)| made.domain());
        let shown = domain.map(|domain| domain_check(cx, domain, text, pretty));
        return shown.transpose();
    }
    Ok(None)
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
    let style = Style {
        pretty,
        ..Style::default()
    };
    part(cx, table, text, style)
}

/// The text of an expression that statistics are about, in pretty style and on one line, and whether it
/// looks like a call.
///
/// # Errors
/// As [`index_key`].
pub fn statistics_part(
    cx: BindContext<'_>,
    table: &Arc<Table>,
    text: &str,
) -> Result<(String, bool)> {
    let style = Style {
        pretty: true,
        flat: true,
        ..Style::default()
    };
    part(cx, table, text, style)
}

fn part(
    cx: BindContext<'_>,
    table: &Arc<Table>,
    text: &str,
    style: Style,
) -> Result<(String, bool)> {
    let eval = cx.eval;
    parser::large_stack(|| {
        let bound = Binder::new(cx, Vec::new(), false).index_expression(table, text)?;
        let shown = expression(&bound, &Columns(table), eval, style, false)?;
        Ok((shown, is_call(&bound)))
    })
}

/// A constant as definitions have it.
///
/// # Errors
/// What printing its value gives.
pub fn constant(cx: BindContext<'_>, value: &Datum, ty: TypeId, typmod: i32) -> Result<String> {
    let mut bound = Expr::constant(value.clone(), ty, -1);
    bound.typmod = typmod;
    let none = Arc::new(Table::default());
    let style = Style {
        pretty: false,
        indent: 0,
        ..Style::default()
    };
    expression(&bound, &Columns(&none), cx.eval, style, false)
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
    let (eval, style) = (
        cx.eval,
        Style {
            pretty,
            ..Style::default()
        },
    );
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
    let style = Style {
        pretty,
        ..Style::default()
    };
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
        if let Some(oid) = kind.strip_prefix("TRIGGER ") {
            let mut triggers = table.triggers.iter();
            let trigger = triggers.find(|trigger| oid.parse() == Ok(trigger.oid));
            let condition = trigger.and_then(|trigger| trigger.condition.as_ref());
            let condition = condition.ok_or_else(|| Error::internal("a trigger that is none"))?;
            let bound = binder.stored_when(table, condition)?;
            return expression(&bound, &Rows(table), eval, style, false);
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
