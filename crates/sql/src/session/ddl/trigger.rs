//! CREATE TRIGGER, ENABLE and DISABLE TRIGGER, RENAME of triggers; DROP TRIGGER is [`super::drop`]'s.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterTableCmd, AlterTableType as Type, CreateTrigStmt, Node, RangeVar, TriggerTransition,
};

use super::super::utility::tag;
use super::super::{CommandTag, Session};
use super::table::cut_name;
use super::{system_table, texts};
use catalog::access::{denied, must_own, Guarded, Privileges};
use catalog::depend::routine_path;
use catalog::routine::built_in_triggers;
use catalog::trigger::{ConstraintTrigger, Enabled, Events, Timing};
use catalog::PG_CATALOG;
use catalog::{Catalog, Object, RelationKind, Routine, Table, Trigger};
use planner::bind::copy::no_column;
use syntax::parser::NodeEnum;
use types::TypeId;

/// Functions of PostgreSQL for triggers that are not there.
const BUILT_IN: [&str; 1] = ["suppress_redundant_updates_trigger"];

/// 42704.
pub(super) fn no_trigger(table: &Table, name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!(
            "trigger \"{name}\" for table \"{}\" does not exist",
            table.name
        ),
    )
}

pub(super) fn exists(table: &Table, name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_OBJECT,
        format!(
            "trigger \"{name}\" for relation \"{}\" already exists",
            table.name
        ),
    )
}

fn unsupported(message: &str) -> Error {
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn invalid(message: &str) -> Error {
    Error::new(SqlState::of("42P17"), message)
}

/// Refuses what a relation of its kind has no triggers for.
fn check_kind(table: &Table, create: &CreateTrigStmt, timing: Timing) -> Result<()> {
    let name = &table.name;
    let wrong = |is: &str, detail: &str| {
        let message = format!("\"{name}\" is a {is}");
        Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message).with_detail(detail.to_owned()))
    };
    match table.kind {
        RelationKind::Table | RelationKind::Partitioned if timing == Timing::InsteadOf => {
            wrong("table", "Tables cannot have INSTEAD OF triggers.")
        }
        RelationKind::Partitioned if create.row && !create.transition_rels.is_empty() => {
            let message = format!("\"{name}\" is a partitioned table");
            let detail =
                "ROW triggers with transition tables are not supported on partitioned tables.";
            Err(unsupported(&message).with_detail(detail))
        }
        RelationKind::Table | RelationKind::Partitioned => Ok(()),
        RelationKind::View if create.row && timing != Timing::InsteadOf => wrong(
            "view",
            "Views cannot have row-level BEFORE or AFTER triggers.",
        ),
        RelationKind::View if events_of(create).has(Events::TRUNCATE) => {
            wrong("view", "Views cannot have TRUNCATE triggers.")
        }
        RelationKind::View => Ok(()),
        RelationKind::System => Err(system_table(name)),
        kind => {
            let message = format!("relation \"{name}\" cannot have triggers");
            Err(
                Error::new(SqlState::WRONG_OBJECT_TYPE, message).with_detail(format!(
                    "This operation is not supported for {}s.",
                    kind.noun()
                )),
            )
        }
    }
}

fn events_of(create: &CreateTrigStmt) -> Events {
    Events(u8::try_from(create.events).unwrap_or_default())
}

fn timing_of(create: &CreateTrigStmt) -> Timing {
    match create.timing {
        2 => Timing::Before,
        64 => Timing::InsteadOf,
        _ => Timing::After,
    }
}

/// Refuses clauses that do not go together.
fn check_clauses(create: &CreateTrigStmt, timing: Timing) -> Result<()> {
    if create.row && events_of(create).has(Events::TRUNCATE) {
        return Err(unsupported(
            "TRUNCATE FOR EACH ROW triggers are not supported",
        ));
    }
    if timing == Timing::InsteadOf {
        if !create.row {
            return Err(unsupported("INSTEAD OF triggers must be FOR EACH ROW"));
        }
        if create.when_clause.is_some() {
            return Err(unsupported(
                "INSTEAD OF triggers cannot have WHEN conditions",
            ));
        }
        if !create.columns.is_empty() {
            return Err(unsupported("INSTEAD OF triggers cannot have column lists"));
        }
    }
    Ok(())
}

/// REFERENCING: the names of the old rows and of the new ones.
fn transitions(
    create: &CreateTrigStmt,
    table: &Table,
    timing: Timing,
) -> Result<(Option<String>, Option<String>)> {
    let (mut old, mut new) = (None, None);
    let events = events_of(create);
    for node in &create.transition_rels {
        let Some(NodeEnum::TriggerTransition(named)) = &node.node else {
            continue;
        };
        check_transition(create, table, timing, named)?;
        let (place, noun, of) = match named.is_new {
            true => (&mut new, "NEW TABLE", Events::INSERT),
            false => (&mut old, "OLD TABLE", Events::DELETE),
        };
        if !events.has(of.with(Events::UPDATE)) {
            let article = if named.is_new { "an" } else { "a" };
            let of = of.name();
            let message =
                format!("{noun} can only be specified for {article} {of} or UPDATE trigger");
            return Err(invalid(&message));
        }
        if place.is_some() {
            return Err(invalid(&format!(
                "{noun} cannot be specified multiple times"
            )));
        }
        *place = Some(cut_name(&named.name));
    }
    if old.is_some() && old == new {
        return Err(invalid(
            "OLD TABLE name and NEW TABLE name cannot be the same",
        ));
    }
    Ok((old, new))
}

fn check_transition(
    create: &CreateTrigStmt,
    table: &Table,
    timing: Timing,
    named: &TriggerTransition,
) -> Result<()> {
    if !named.is_table {
        let message = "ROW variable naming in the REFERENCING clause is not supported";
        return Err(unsupported(message)
            .with_hint("Use OLD TABLE or NEW TABLE for naming transition tables."));
    }
    if table.kind == RelationKind::View {
        let message = format!("\"{}\" is a view", table.name);
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
            .with_detail("Triggers on views cannot have transition tables."));
    }
    if timing != Timing::After {
        return Err(invalid(
            "transition table name can only be specified for an AFTER trigger",
        ));
    }
    if create.row && table.partition_of.is_some() {
        return Err(unsupported(
            "ROW triggers with transition tables are not supported on partitions",
        ));
    }
    let events = events_of(create);
    if events.has(Events::TRUNCATE) {
        return Err(unsupported(
            "TRUNCATE triggers with transition tables are not supported",
        ));
    }
    if events.0.count_ones() > 1 {
        return Err(unsupported(
            "transition tables cannot be specified for triggers with more than one event",
        ));
    }
    if !create.columns.is_empty() {
        return Err(unsupported(
            "transition tables cannot be specified for triggers with column lists",
        ));
    }
    Ok(())
}

/// UPDATE OF: the places of the columns.
fn columns(create: &CreateTrigStmt, table: &Table) -> Result<Vec<usize>> {
    let mut places = Vec::new();
    for name in texts(&create.columns) {
        let place = table.column(&name).ok_or_else(|| no_column(table, &name))?;
        if places.contains(&place) {
            return Err(Error::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        places.push(place);
    }
    Ok(places)
}

impl Session {
    /// CREATE TRIGGER. Errors show the whole text.
    pub(in crate::session) fn create_trigger(
        &mut self,
        text: &str,
        create: &CreateTrigStmt,
    ) -> Result<CommandTag> {
        let range = create.relation.as_ref();
        let range = range.ok_or_else(|| Error::internal("a trigger without a table"))?;
        let timing = timing_of(create);
        let found = self.find_table_in("", range)?;
        check_kind(&found, create, timing)?;
        self.must_hold(&found, Privileges::TRIGGER)?;
        let mode = TableLock::ShareRowExclusive;
        let table = self.lock_table_for(range, Privileges::TRIGGER, mode)?;
        let from = match &create.constrrel {
            None => None,
            Some(range) => {
                let other =
                    self.lock_table_for(range, Privileges::TRIGGER, TableLock::AccessShare)?;
                Some(other.oid)
            }
        };
        check_clauses(create, timing)?;
        let (old_table, new_table) = transitions(create, &table, timing)?;
        let mut trigger = Trigger {
            name: cut_name(&create.trigname),
            timing,
            for_each_row: create.row,
            events: events_of(create),
            arguments: texts(&create.args),
            old_table,
            new_table,
            ..Trigger::default()
        };
        let catalog = self.current_catalog()?;
        if let Some(node) = &create.when_clause {
            let bound = self.try_binding(text, &catalog, |binder| {
                binder.fixed_when(&table, &trigger, node)
            })?;
            self.may_use_types_of(&catalog, bound.uses.iter().map(|uses| uses.relation))?;
            trigger.condition = Some(bound.kept);
        }
        let routine = self.trigger_function(&catalog, &create.funcname)?;
        trigger.function = routine.oid;
        trigger.columns = columns(create, &table)?;
        self.put_new_trigger(&table, trigger, create, from)
    }

    fn put_new_trigger(
        &mut self,
        table: &Table,
        mut trigger: Trigger,
        create: &CreateTrigStmt,
        from: Option<u32>,
    ) -> Result<CommandTag> {
        let known = table.trigger(&trigger.name);
        if let Some(known) = known {
            if !create.replace {
                return Err(exists(table, &trigger.name));
            }
            if table.part_above(known.oid).is_some() {
                return Err(Error::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!(
                        "trigger \"{}\" for relation \"{}\" is an internal or a child trigger",
                        known.name, table.name
                    ),
                ));
            }
            if known.constraint.is_some() {
                return Err(Error::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!(
                        "trigger \"{}\" for relation \"{}\" is a constraint trigger",
                        known.name, table.name
                    ),
                ));
            }
        }
        trigger.oid = match known {
            Some(known) => known.oid,
            None => self.new_oid()?,
        };
        if create.isconstraint {
            trigger.constraint = Some(ConstraintTrigger {
                oid: self.new_oid()?,
                table: from.unwrap_or(0),
                deferrable: create.deferrable,
                initially_deferred: create.initdeferred,
            });
        }
        let mut new = table.clone();
        new.put_trigger(trigger.clone());
        self.put_table(&new)?;
        if new.kind == RelationKind::Partitioned && trigger.for_each_row {
            for below in self.current_catalog()?.below(&new) {
                self.lock_mode(&below, TableLock::ShareRowExclusive)?;
            }
            self.extend_trigger_below(&new, &trigger)?;
        }
        Ok(tag("CREATE TRIGGER"))
    }

    /// The function that a trigger is to call.
    fn trigger_function(&mut self, catalog: &Catalog, names: &[Node]) -> Result<Arc<Routine>> {
        let names = texts(names);
        let name = names.last().map_or("", String::as_str);
        let shown = names.join(".");
        let schemas = match names.as_slice() {
            [.., schema, _] => match catalog.schema(schema) {
                Some(schema) => vec![schema.oid],
                None => {
                    return Err(Error::new(
                        SqlState::INVALID_SCHEMA_NAME,
                        format!("schema \"{schema}\" does not exist"),
                    ))
                }
            },
            _ => routine_path(&self.search_path(catalog)),
        };
        let found = schemas.iter().find_map(|schema| {
            let mut known = catalog.routines_named(*schema, name);
            known.find(|routine| routine.inputs().next().is_none())
        });
        let mut for_triggers = built_in_triggers().iter();
        let for_triggers = for_triggers.find(|known| known.name == name);
        let is_seen = names.len() == 1 || schemas.contains(&PG_CATALOG);
        if let Some(routine) = for_triggers.filter(|_| is_seen) {
            return Ok(routine.clone());
        }
        let mut built_in = functions::functions_named(name).iter();
        if found.is_none() && built_in.any(|function| function.arguments.is_empty()) {
            return Err(invalid(&format!(
                "function {shown} must return type trigger"
            )));
        }
        if found.is_none() && BUILT_IN.contains(&name) {
            return Err(Error::unsupported(format!("the trigger function {name}")));
        }
        let routine = found.ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {shown}() does not exist"),
            )
        })?;
        let role = self.shared.settings.current_role();
        let execute = Privileges::EXECUTE;
        if !catalog.holds(role, Guarded::Function, routine.oid, execute) {
            return Err(denied("function", &shown));
        }
        match routine.result == TypeId::TRIGGER {
            true => Ok(routine.clone()),
            false => Err(invalid(&format!(
                "function {shown} must return type trigger"
            ))),
        }
    }

    /// ALTER TRIGGER … RENAME TO.
    pub(super) fn rename_trigger(
        &mut self,
        range: Option<&RangeVar>,
        from: &str,
        to: &str,
    ) -> Result<CommandTag> {
        let range = range.ok_or_else(|| Error::internal("a trigger without a table"))?;
        let table = self.lock_table(range)?;
        let catalog = self.current_catalog()?;
        let to = cut_name(to);
        let known = table
            .trigger(from)
            .ok_or_else(|| no_trigger(&table, from))?;
        let above = table.part_above(known.oid);
        if let Some((parent, _)) = above.and_then(|oid| catalog.trigger(oid)) {
            let message = format!(
                "cannot rename trigger \"{from}\" on table \"{}\"",
                table.name
            );
            return Err(
                Error::new(SqlState::of("XX000"), message).with_hint(format!(
                    "Rename the trigger on the partitioned table \"{}\" instead.",
                    parent.name
                )),
            );
        }
        let mut renamed = vec![known.oid];
        let mut all = vec![table.clone()];
        for below in catalog.below(&table) {
            self.lock_fully(&below)?;
            all.push(below);
        }
        for table in all {
            let is_meant = |own: &&Trigger| {
                let above = table.part_above(own.oid);
                renamed.contains(&own.oid) || above.is_some_and(|oid| renamed.contains(&oid))
            };
            let Some(mut trigger) = table.triggers.iter().find(is_meant).cloned() else {
                continue;
            };
            if table.trigger(&to).is_some() {
                return Err(exists(&table, &to));
            }
            renamed.push(trigger.oid);
            let mut new = (*table).clone();
            new.triggers.retain(|known| known.oid != trigger.oid);
            trigger.name = to.clone();
            new.put_trigger(trigger);
            self.put_table(&new)?;
        }
        Ok(tag("ALTER TRIGGER"))
    }

    /// ENABLE and DISABLE TRIGGER.
    pub(super) fn alter_triggers(
        &mut self,
        catalog: &Catalog,
        table: &Arc<Table>,
        (command, only): (&AlterTableCmd, bool),
        kind: Type,
    ) -> Result<()> {
        let enabled = match kind {
            Type::AtEnableTrig | Type::AtEnableTrigAll | Type::AtEnableTrigUser => Enabled::Origin,
            Type::AtEnableReplicaTrig => Enabled::Replica,
            Type::AtEnableAlwaysTrig => Enabled::Always,
            _ => Enabled::Disabled,
        };
        let all = matches!(kind, Type::AtEnableTrigAll | Type::AtDisableTrigAll);
        let has_keys =
            !table.foreign_keys.is_empty() || catalog.referrers(table.oid).next().is_some();
        // What foreign keys do goes on, so nobody is told that it does not.
        if all && kind == Type::AtDisableTrigAll && has_keys {
            return Err(Error::unsupported(
                "DISABLE TRIGGER ALL of a table with foreign keys",
            ));
        }
        let every = all || matches!(kind, Type::AtEnableTrigUser | Type::AtDisableTrigUser);
        if !every && table.trigger(&command.name).is_none() {
            return Err(no_trigger(table, &command.name));
        }
        let mut new = (**table).clone();
        let mut changed = Vec::new();
        for trigger in &mut new.triggers {
            if every || trigger.name == command.name {
                trigger.enabled = enabled;
                changed.push(trigger.oid);
            }
        }
        self.put_table(&new)?;
        if only {
            return Ok(());
        }
        for below in &self.with_below(table.oid, command)?[1..] {
            let mut new = (**below).clone();
            for trigger in &mut new.triggers {
                let above = below.part_above(trigger.oid);
                if above.is_some_and(|oid| changed.contains(&oid)) {
                    trigger.enabled = enabled;
                    changed.push(trigger.oid);
                }
            }
            self.put_table(&new)?;
        }
        Ok(())
    }

    /// The trigger that a name, the last, of a table means.
    pub(super) fn trigger_for_drop(
        &mut self,
        catalog: &Catalog,
        names: &[String],
    ) -> Result<std::result::Result<Object, Error>> {
        let Some((name, of)) = names.split_last() else {
            return Err(Error::internal("DROP TRIGGER of nothing"));
        };
        if let [.., schema, _] = of {
            if catalog.schema(schema).is_none() {
                let message = format!("schema \"{schema}\" does not exist");
                return Ok(Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message)));
            }
        }
        let table = match self.find_named(of)? {
            Some((_, catalog::RelationRef::Table(place))) => &catalog.tables[place],
            _ => {
                let message = format!("relation \"{}\" does not exist", of.join("."));
                return Ok(Err(Error::new(SqlState::UNDEFINED_TABLE, message)));
            }
        };
        let Some(trigger) = table.trigger(name) else {
            return Ok(Err(no_trigger(table, name)));
        };
        let role = self.shared.settings.current_role();
        if !catalog.has_privileges_of(role, table.owner) {
            return Err(must_own("relation", &table.name));
        }
        super::partition::refuse_dropping_trigger(catalog, table, trigger)?;
        Ok(Ok(Object::Trigger(trigger.oid)))
    }
}
