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
use pg_query::protobuf::{NotifyStmt, RangeVar};

use super::definition::{Called, Shown};
use super::expr::Place;
use super::fixed::Recorded;
use super::rule_made::{source_of, RuleRows};
use super::scope::Scope;
use super::{boxed, inner, BindContext, Binder};
use crate::deparse::layout::{spaced, STEP};
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
            let shown = binder.condition_text_of_rule(node, rule);
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
            match binder.written_text(node, Called::Itself) {
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
    fn condition_text_of_rule(&mut self, node: &NodeEnum, rule: &Rule) -> Result<String> {
        let none = || Error::internal("a condition that is none");
        let NodeEnum::SelectStmt(select) = node else {
            return Err(none());
        };
        let NodeEnum::ResTarget(target) = inner(select.target_list.first().ok_or_else(none)?)?
        else {
            return Err(none());
        };
        let scope = Scope::default();
        // It stands beside the items of the first action.
        let names = match rule.body.statements.first() {
            Some(action) => self.names_beside(&action.text)?,
            None => Vec::new(),
        };
        self.name_items_after(&scope, names);
        let bound = self.expr(boxed(&target.val)?, &scope, Place::plain("WHERE"))?;
        let bound = self.condition(bound, "WHERE")?;
        let text = self.shown_expr(&bound, &scope, false, STEP)?;
        Ok(spaced(&text))
    }

    /// What the relations are called that stand in an action itself.
    fn names_beside(&self, action: &str) -> Result<Vec<String>> {
        let statements = parser::parse(action)?;
        let node = statements.first().map(|first| first.node());
        let selected = node.and_then(source_of);
        let selected = selected.filter(|select| select.values_lists.is_empty());
        let (range, others) = match (node, selected) {
            (_, Some(select)) => (&None, select.from_clause.as_slice()),
            (Some(NodeEnum::InsertStmt(it)), None) => (&it.relation, &[][..]),
            (Some(NodeEnum::UpdateStmt(it)), _) => (&it.relation, it.from_clause.as_slice()),
            (Some(NodeEnum::DeleteStmt(it)), _) => (&it.relation, it.using_clause.as_slice()),
            _ => return Ok(Vec::new()),
        };
        let others = others.iter().filter_map(|other| match &other.node {
            Some(NodeEnum::RangeVar(range)) => Some(range),
            _ => None,
        });
        let named = |range: &RangeVar| match &range.alias {
            Some(alias) => alias.aliasname.clone(),
            None => {
                let oid = range.relname.parse().unwrap_or(0);
                let table = self.cx.catalog.table_by_oid(oid);
                table.map_or_else(String::new, |table| table.name.clone())
            }
        };
        Ok(range.iter().chain(others).map(named).collect())
    }
}
