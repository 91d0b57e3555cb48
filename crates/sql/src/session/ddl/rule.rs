//! CREATE RULE, ENABLE and DISABLE RULE, RENAME of rules; DROP RULE is [`super::drop_absent`]'s.
//!
//! # What it leaves out
//! Rules ON SELECT, and actions other than INSERT, UPDATE, DELETE, NOTIFY and NOTHING.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterTableCmd, AlterTableType as Type, CmdType, RangeVar, RuleStmt};

use super::super::utility::tag;
use super::super::{CommandTag, Session};
use super::sql_body::gathered;
use super::table::cut_name;
use catalog::rule::{query_rule_oid, RETURN};
use catalog::sql_body::{Known, SqlBody, SqlStatement};
use catalog::trigger::{Enabled, Events};
use catalog::{RelationKind, Rule, Table};
use planner::bind::rule_made::{MadeStatement, RuleRows};
use syntax::parser::NodeEnum;

/// 42704.
pub(super) fn no_rule(table: &Table, name: &str) -> Error {
    let message = format!(
        "rule \"{name}\" for relation \"{}\" does not exist",
        table.name
    );
    Error::new(SqlState::UNDEFINED_OBJECT, message)
}

fn exists(table: &Table, name: &str) -> Error {
    let message = format!(
        "rule \"{name}\" for relation \"{}\" already exists",
        table.name
    );
    Error::new(SqlState::DUPLICATE_OBJECT, message)
}

/// The oid of the rule of that name, which may be the query of a view.
///
/// # Errors
/// 42704.
pub(super) fn rule_oid(table: &Table, name: &str) -> Result<u32> {
    match table.rule(name) {
        Some(rule) => Ok(rule.oid),
        None if is_query(table, name) => Ok(query_rule_oid(table.oid)),
        None => Err(no_rule(table, name)),
    }
}

/// Whether it is the rule that a view is.
fn is_query(table: &Table, name: &str) -> bool {
    table.view.is_some() && name == RETURN
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::of("42P17"), message)
}

/// Refuses what a relation of its kind has no rules for.
fn check_kind(table: &Table) -> Result<()> {
    match table.kind {
        RelationKind::Table | RelationKind::View | RelationKind::Partitioned => Ok(()),
        RelationKind::MaterializedView => Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "rules on materialized views are not supported",
        )),
        RelationKind::Sequence | RelationKind::System => {
            let message = format!("relation \"{}\" cannot have rules", table.name);
            let detail = format!(
                "This operation is not supported for {}s.",
                table.kind.noun()
            );
            Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message).with_detail(detail))
        }
    }
}

fn event_of(create: &RuleStmt) -> Result<Events> {
    match CmdType::try_from(create.event) {
        Ok(CmdType::CmdInsert) => Ok(Events::INSERT),
        Ok(CmdType::CmdUpdate) => Ok(Events::UPDATE),
        Ok(CmdType::CmdDelete) => Ok(Events::DELETE),
        _ => Err(Error::unsupported("a rule ON SELECT")),
    }
}

/// The actions of a rule; NOTHING is none.
fn actions(create: &RuleStmt) -> Vec<&NodeEnum> {
    let nodes = create.actions.iter();
    nodes.filter_map(|action| action.node.as_ref()).collect()
}

/// Refuses statements that are no actions here.
fn check_actions(create: &RuleStmt) -> Result<()> {
    for action in actions(create) {
        match action {
            NodeEnum::InsertStmt(_) | NodeEnum::UpdateStmt(_) | NodeEnum::DeleteStmt(_) => {}
            NodeEnum::NotifyStmt(_) if create.where_clause.is_some() => {
                return Err(invalid(
                    "rules with WHERE conditions can only have SELECT, INSERT, UPDATE, or DELETE actions"
                        .to_owned(),
                ));
            }
            NodeEnum::NotifyStmt(_) => {}
            NodeEnum::SelectStmt(_) => return Err(Error::unsupported("SELECT in a rule")),
            _ => return Err(Error::unsupported("this statement in a rule")),
        }
    }
    Ok(())
}

impl Session {
    /// CREATE RULE. Errors show the whole text.
    pub(in crate::session) fn create_rule(
        &mut self,
        text: &str,
        create: &RuleStmt,
    ) -> Result<CommandTag> {
        let range = create.relation.as_ref();
        let range = range.ok_or_else(|| Error::internal("a rule without a relation"))?;
        let found = self.find_table(range)?;
        check_kind(&found)?;
        let event = event_of(create)?;
        let table = self.lock_table(range)?;
        self.refuse_in_use(&table, "CREATE RULE")?;
        check_actions(create)?;
        let mut rule = Rule {
            name: cut_name(&create.rulename),
            event,
            instead: create.instead,
            ..Rule::default()
        };
        self.fix_rule(text, create, &table, &mut rule)?;
        if rule.name == RETURN {
            let message = format!(
                "non-view rule for \"{}\" must not be named \"{RETURN}\"",
                table.name
            );
            return Err(invalid(message));
        }
        rule.oid = match table.rule(&rule.name) {
            Some(_) if !create.replace => return Err(exists(&table, &rule.name)),
            Some(known) => {
                rule.enabled = known.enabled;
                known.oid
            }
            None => self.new_oid()?,
        };
        let mut new = (*table).clone();
        new.put_rule(rule);
        self.put_table(&new)?;
        // What only comes to light where it is applied.
        let (catalog, name) = (self.current_catalog()?, cut_name(&create.rulename));
        self.try_binding("", &catalog, |binder| binder.try_rule(new.oid, &name))?;
        Ok(tag("CREATE RULE"))
    }

    /// Condition and actions of a rule as the catalog keeps them.
    fn fix_rule(
        &mut self,
        text: &str,
        create: &RuleStmt,
        table: &Arc<Table>,
        rule: &mut Rule,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let rows = RuleRows::of(table, None);
        let mut known = vec![Known::relation(table)];
        let mut uses = Vec::new();
        let mut keep = |made: MadeStatement| {
            for new in made.known {
                if known.iter().all(|known| known.oid != new.oid) {
                    known.push(new);
                }
            }
            uses.extend(made.uses);
            made.text
        };
        let condition = create.where_clause.as_deref();
        if let Some(node) = condition {
            rows.in_condition(rule.event);
            self.try_binding_with(text, &catalog, &rows, |binder| {
                binder.check_rule_condition(node)
            })?;
            rows.check(rule.event)?;
            let made = self.try_binding_with("", &catalog, &rows, |binder| {
                binder.fixed_rule_condition(node)
            })?;
            rule.condition = Some(keep(made));
            rows.in_condition(Events::NONE);
        }
        let mut returns = false;
        let mut statements = Vec::new();
        for node in actions(create) {
            let (is_conditional, instead) = (condition.is_some(), create.instead);
            let columns = self.try_binding_with(text, &catalog, &rows, |binder| {
                binder.check_rule_action(node, is_conditional)
            })?;
            rows.check(rule.event)?;
            if let Some(columns) = columns {
                let refused = if returns {
                    Some("cannot have multiple RETURNING lists in a rule")
                } else if is_conditional {
                    Some("RETURNING lists are not supported in conditional rules")
                } else if !instead {
                    Some("RETURNING lists are not supported in non-INSTEAD rules")
                } else {
                    None
                };
                if let Some(message) = refused {
                    return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                planner::bind::rule_made::check_returned(table, &columns)?;
                returns = true;
            }
            let made = self
                .try_binding_with("", &catalog, &rows, |binder| binder.fixed_rule_action(node))?;
            statements.push(SqlStatement {
                is_return: false,
                text: keep(made),
            });
        }
        uses.push(rows.uses());
        self.may_use_types_of(&catalog, uses.iter().map(|uses| uses.relation))?;
        rule.uses = gathered(uses);
        rule.body = SqlBody {
            is_block: true,
            statements,
            known,
        };
        Ok(())
    }

    /// The relation of a rule that is altered, locked.
    fn ruled_table(&mut self, range: Option<&RangeVar>) -> Result<Arc<Table>> {
        let range = range.ok_or_else(|| Error::internal("a rule without a relation"))?;
        let found = self.find_table(range)?;
        if found.kind == RelationKind::MaterializedView {
            let message = format!("relation \"{}\" cannot have rules", found.name);
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_detail("This operation is not supported for materialized views."));
        }
        check_kind(&found)?;
        self.lock_table(range)
    }

    /// ALTER RULE … RENAME TO.
    pub(super) fn rename_rule(
        &mut self,
        range: Option<&RangeVar>,
        from: &str,
        to: &str,
    ) -> Result<CommandTag> {
        let table = self.ruled_table(range)?;
        let to = cut_name(to);
        let known = table.rule(from);
        if known.is_none() && !is_query(&table, from) {
            return Err(no_rule(&table, from));
        }
        if table.rule(&to).is_some() || is_query(&table, &to) {
            return Err(exists(&table, &to));
        }
        let Some(mut rule) = known.cloned() else {
            let message = "renaming an ON SELECT rule is not allowed";
            return Err(invalid(message.to_owned()));
        };
        let mut new = (*table).clone();
        new.rules.retain(|known| known.oid != rule.oid);
        rule.name = to;
        new.put_rule(rule);
        self.put_table(&new)?;
        Ok(tag("ALTER RULE"))
    }

    /// ENABLE and DISABLE RULE.
    pub(super) fn alter_rule(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
        kind: Type,
    ) -> Result<()> {
        let rule = table.rule(&command.name);
        let mut rule = rule.ok_or_else(|| no_rule(table, &command.name))?.clone();
        rule.enabled = match kind {
            Type::AtEnableRule => Enabled::Origin,
            Type::AtEnableReplicaRule => Enabled::Replica,
            Type::AtEnableAlwaysRule => Enabled::Always,
            _ => Enabled::Disabled,
        };
        let mut new = (**table).clone();
        new.put_rule(rule);
        self.put_table(&new)
    }
}
