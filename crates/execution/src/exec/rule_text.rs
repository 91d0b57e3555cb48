//! Rules as text: `pg_get_ruledef`.
//!
//! ```text
//! CREATE RULE r AS
//!     ON DELETE TO public.accounts DO  INSERT INTO gone (id)
//!   VALUES (old.id);
//! ```

use std::sync::Arc;

use base::Result;

use super::catalog_functions::{binding, qualified_name, search_path};
use super::Exec;
use catalog::depend::shown_name;
use catalog::rule::RETURN;
use catalog::{Rule, Table};
use functions::strings::quote_identifier;
use planner::bind::{rule_text, Binder};
use syntax::parser;

/// What CREATE RULE would take.
///
/// # Errors
/// What binding the rule gives, if what that rests on is gone.
pub(super) fn definition(
    cx: &Exec<'_>,
    table: &Arc<Table>,
    rule: &Rule,
    pretty: bool,
) -> Result<String> {
    let path = search_path(cx);
    let shown = rule_text::shown(binding(cx, &path), table, rule, pretty)?;
    let mut out = beginning(cx, table, &rule.name, rule.event.name(), pretty);
    if let Some(condition) = shown.condition {
        out.push_str(&format!("\n   WHERE {condition}"));
    }
    out.push_str(if rule.instead { " DO INSTEAD " } else { " DO " });
    match shown.actions.as_slice() {
        [] => out.push_str("NOTHING;"),
        [action] => {
            // NOTIFY begins a line, and no line ends with a space.
            if action.starts_with('\n') {
                out.truncate(out.trim_end().len());
            }
            out.push_str(&format!("{action};"));
        }
        actions => {
            let actions: String = actions
                .iter()
                .map(|action| format!("{action};\n"))
                .collect();
            out.push_str(&format!("({actions});"));
        }
    }
    Ok(out)
}

/// The rule that a view is.
///
/// # Errors
/// What binding its query gives.
pub(super) fn of_view(cx: &Exec<'_>, view: &Arc<Table>, pretty: bool) -> Result<String> {
    let path = search_path(cx);
    let query = parser::large_stack(|| {
        let mut binder = Binder::new(binding(cx, &path), Vec::new(), false);
        binder.definition(view, pretty)
    })?;
    let begun = beginning(cx, view, RETURN, "SELECT", pretty);
    Ok(format!("{begun} DO INSTEAD {query}"))
}

fn beginning(cx: &Exec<'_>, table: &Table, name: &str, event: &str, pretty: bool) -> String {
    let named = match pretty {
        true => shown_name(cx.catalog, &search_path(cx), table.oid).unwrap_or_default(),
        false => qualified_name(cx.catalog, table),
    };
    format!(
        "CREATE RULE {} AS\n    ON {event} TO {named}",
        quote_identifier(name)
    )
}
