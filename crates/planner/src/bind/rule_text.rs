//! Rules as `pg_get_ruledef` prints them, in PostgreSQL's layout.
//!
//! ```text
//! CREATE RULE r AS
//!     ON UPDATE TO public.t
//!    WHERE (new.a > 5) DO  INSERT INTO log (a)
//!   VALUES (new.a);
//! ```
//! # What it leaves out
//! Actions with what [`super::definition_write`] leaves out stand in the layout in which the catalog has
//! them.

use std::sync::Arc;

use base::{Error, Result};
use pg_query::protobuf::NotifyStmt;

use super::definition::{Called, Shown};
use super::expr::Place;
use super::fixed::Recorded;
use super::rule_made::RuleRows;
use super::scope::Scope;
use super::{boxed, inner, BindContext, Binder};
use crate::deparse::layout::spaced;
use catalog::cast::without_note;
use catalog::{Rule, Table};
use functions::strings::quote_identifier;
use syntax::parser::{self, NodeEnum};

/// A rule as it is shown.
#[derive(Debug)]
pub struct ShownRule {
    /// Its WHERE.
    pub condition: Option<String>,
    /// Its actions, each from the space before its first word.
    pub actions: Vec<String>,
}

/// A rule of a relation as text.
///
/// # Errors
/// What binding it gives, if what it rests on is gone.
pub fn shown(
    cx: BindContext<'_>,
    table: &Arc<Table>,
    rule: &Rule,
    pretty: bool,
) -> Result<ShownRule> {
    let rows = RuleRows::of(table, Some(&rule.body));
    let bind = |text: &str, show: &dyn Fn(&mut Binder<'_>, &NodeEnum) -> Result<String>| {
        parser::large_stack(|| {
            let cx = BindContext {
                variables: Some(&rows),
                ..cx
            };
            let mut binder = Binder::new(cx, Vec::new(), false);
            binder.noted = cx.catalog.noted_in_text(text);
            binder.names_only = true;
            binder.recorded = Some(Recorded::default());
            binder.shown_queries = Some(Shown::of_rule(rows.shown(), pretty));
            let statements = parser::parse(text)?;
            let first = statements.first();
            let first = first.ok_or_else(|| Error::internal("a statement that is none"))?;
            show(&mut binder, first.node())
        })
    };
    let condition = rule.condition.as_deref().map(|text| {
        bind(text, &|binder, node| {
            let shown = binder.condition_text_of_rule(node);
            let as_stored = |binder: &Binder<'_>| {
                let text = binder.renamed(without_note(text))?;
                Ok(format!("({})", text.trim_start_matches("SELECT ")))
            };
            shown.or_else(|_| as_stored(binder))
        })
    });
    let mut actions = Vec::new();
    for action in &rule.body.statements {
        let text = bind(&action.text, &|binder, node| {
            if let NodeEnum::NotifyStmt(notify) = node {
                return Ok(notify_text(notify));
            }
            match binder.written_text(node, Called::Nothing) {
                Ok(Some(text)) => Ok(spaced(&text)),
                _ => Ok(format!(" {}", binder.renamed(without_note(&action.text))?)),
            }
        })?;
        actions.push(text);
    }
    Ok(ShownRule {
        condition: condition.transpose()?,
        actions,
    })
}

fn notify_text(notify: &NotifyStmt) -> String {
    let payload = match notify.payload.as_str() {
        "" => String::new(),
        payload => format!(", '{}'", payload.replace('\'', "''")),
    };
    format!(
        "\n NOTIFY {}{payload}",
        quote_identifier(&notify.conditionname)
    )
}

impl Binder<'_> {
    fn condition_text_of_rule(&mut self, node: &NodeEnum) -> Result<String> {
        let none = || Error::internal("a condition that is none");
        let NodeEnum::SelectStmt(select) = node else {
            return Err(none());
        };
        let NodeEnum::ResTarget(target) = inner(select.target_list.first().ok_or_else(none)?)?
        else {
            return Err(none());
        };
        let scope = Scope::default();
        self.name_items_after(&scope, Vec::new());
        let bound = self.expr(boxed(&target.val)?, &scope, Place::plain("WHERE"))?;
        let bound = self.condition(bound, "WHERE")?;
        self.shown_expr(&bound, &scope, false, 0)
    }
}
