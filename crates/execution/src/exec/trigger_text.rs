//! Triggers of one's own as text: `pg_get_triggerdef`.
//!
//! ```text
//! CREATE TRIGGER t BEFORE UPDATE OF a ON public.accounts FOR EACH ROW EXECUTE FUNCTION f('x')
//! ```

use std::sync::Arc;

use base::Result;

use super::catalog_functions::{binding, qualified_name, search_path};
use super::Exec;
use catalog::depend::{routine_name, shown_name};
use catalog::trigger::{ConstraintTrigger, Events};
use catalog::{Table, Trigger};
use functions::strings::quote_identifier;
use planner::bind::stored;

/// What CREATE TRIGGER would take.
///
/// # Errors
/// What binding its condition gives, if what that rests on is gone.
pub(super) fn definition(
    cx: &Exec<'_>,
    table: &Arc<Table>,
    trigger: &Trigger,
    pretty: bool,
) -> Result<String> {
    let path = search_path(cx);
    let named = |oid: u32| shown_name(cx.catalog, &path, oid).unwrap_or_default();
    let constraint = if trigger.constraint.is_some() {
        "CONSTRAINT "
    } else {
        ""
    };
    let mut out = format!(
        "CREATE {constraint}TRIGGER {} {} {} ON ",
        quote_identifier(&trigger.name),
        trigger.timing.words(),
        events(table, trigger)
    );
    out.push_str(&match pretty {
        true => named(table.oid),
        false => qualified_name(cx.catalog, table),
    });
    out.push(' ');
    if let Some(constraint) = &trigger.constraint {
        out.push_str(&constraint_clauses(constraint, &named));
    }
    if trigger.old_table.is_some() || trigger.new_table.is_some() {
        out.push_str("REFERENCING ");
        for (noun, name) in [("OLD", &trigger.old_table), ("NEW", &trigger.new_table)] {
            if let Some(name) = name {
                out.push_str(&format!("{noun} TABLE AS {} ", quote_identifier(name)));
            }
        }
    }
    out.push_str(match trigger.for_each_row {
        true => "FOR EACH ROW ",
        false => "FOR EACH STATEMENT ",
    });
    if let Some(node) = stored::trigger_node(trigger) {
        let condition = stored::node_text(binding(cx, &path), table, &node, pretty)?;
        out.push_str(&format!("WHEN ({condition}) "));
    }
    let function = cx.catalog.routine(trigger.function);
    let function = function.map(|routine| routine_name(cx.catalog, &path, routine));
    let quoted = |text: &String| format!("'{}'", text.replace('\'', "''"));
    let arguments: Vec<_> = trigger.arguments.iter().map(quoted).collect();
    out.push_str(&format!(
        "EXECUTE FUNCTION {}({})",
        function.unwrap_or_default(),
        arguments.join(", ")
    ));
    Ok(out)
}

fn events(table: &Table, trigger: &Trigger) -> String {
    let all = Events::ALL.into_iter();
    let shown = all.filter(|event| trigger.events.has(*event)).map(|event| {
        if event != Events::UPDATE || trigger.columns.is_empty() {
            return event.name().to_owned();
        }
        let columns = trigger.columns.iter();
        let columns: Vec<_> = columns
            .map(|place| quote_identifier(&table.columns[*place].name))
            .collect();
        format!("UPDATE OF {}", columns.join(", "))
    });
    shown.collect::<Vec<_>>().join(" OR ")
}

fn constraint_clauses(constraint: &ConstraintTrigger, named: &dyn Fn(u32) -> String) -> String {
    let from = match constraint.table {
        0 => String::new(),
        table => format!("FROM {} ", named(table)),
    };
    let not = if constraint.deferrable { "" } else { "NOT " };
    let initially = match constraint.initially_deferred {
        true => "DEFERRED",
        false => "IMMEDIATE",
    };
    format!("{from}{not}DEFERRABLE INITIALLY {initially} ")
}
