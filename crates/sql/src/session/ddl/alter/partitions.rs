//! ALTER TABLE of partitioned tables and partitions: what goes down to all that is below, and what a
//! partition has from its parent and cannot change by itself.
//!
//! ```text
//! alter table m add column c int default 7     m, m1, m2: each gets the column at its own end
//! alter table only m add column c int          42P16: its partitions would lack it
//! alter table m1 drop column c                 42P16: it is m's
//! ```
//! Every table below is locked as the partitioned one is, then changed as if the action named it.
//!
//! # Invariants
//! - A column of a partitioned table is in all that is below it, with its type and its name; so are its
//!   NOT NULL and its CHECK constraints.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterTableCmd, AlterTableType as Type, ConstrType};

use super::super::super::{NoticeSeverity, Session, Sink};
use super::super::partition::adds_key;
use super::constraint::check_no_constraint;
use super::inherited::{
    has_check_from_above, has_column_from_above, has_other_parent, refuse_inherited,
};
use super::rename::Part;
use super::{constraint_of, lock_of};
use catalog::partition::column_map;
use catalog::{Catalog, Check, Identity, RelationKind, Table};
use syntax::parser::NodeEnum;

/// 42P16.
fn definition(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

const NOT_ONLY: &str = "Do not specify the ONLY keyword.";

fn parent_of<'c>(catalog: &'c Catalog, table: &Table) -> Option<&'c Arc<Table>> {
    let of = table.partition_of.as_ref()?;
    catalog.table_by_oid(of.parent)
}

/// Refuses what ALTER TABLE cannot do to partitioned tables and partitions.
pub(super) fn refuse(catalog: &Catalog, table: &Table, command: &AlterTableCmd) -> Result<()> {
    let kind = Type::try_from(command.subtype).unwrap_or(Type::Undefined);
    let options = matches!(kind, Type::AtSetRelOptions | Type::AtResetRelOptions);
    if options && table.kind == RelationKind::Partitioned {
        return Err(Error::unsupported(
            "storage parameters of a partitioned table",
        ));
    }
    let Some(parent) = parent_of(catalog, table) else {
        return Ok(());
    };
    refuse_inherited(catalog, table, command)?;
    let name = &command.name;
    match kind {
        Type::AtAddColumn => Err(Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            "cannot add column to a partition",
        )),
        Type::AtDropNotNull => match parent.column(name).map(|place| &parent.columns[place]) {
            Some(column) if column.not_null => Err(definition(format!(
                "column \"{name}\" is marked NOT NULL in parent table"
            ))),
            _ => Ok(()),
        },
        Type::AtDropConstraint => {
            let indexes = table.indexes.iter().filter(|own| own.name == *name);
            let keys = table.foreign_keys.iter().filter(|own| own.name == *name);
            let oids = indexes.map(|own| own.oid).chain(keys.map(|own| own.oid));
            let mut parts = oids.map(|oid| table.part_above(oid));
            match parts.any(|above| above.is_some()) {
                true => Err(definition(format!(
                    "cannot drop inherited constraint \"{name}\" of relation \"{}\"",
                    table.name
                ))),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Refuses what ONLY leaves undone in partitions, of which there are some.
fn refuse_only(
    catalog: &Catalog,
    table: &Table,
    command: &AlterTableCmd,
    kind: Type,
) -> Result<()> {
    let name = &command.name;
    Err(match kind {
        Type::AtAddColumn => definition("column must be added to child tables too"),
        Type::AtDropColumn => {
            let message =
                "cannot drop column from only the partitioned table when partitions exist";
            definition(message).with_hint(NOT_ONLY)
        }
        Type::AtAlterColumnType => definition(format!(
            "type of inherited column \"{name}\" must be changed in child tables too"
        )),
        Type::AtSetNotNull => {
            let mut partitions = catalog.partitions(table);
            let lacking = partitions.find(|(partition, _)| {
                let place = partition.column(name);
                place.is_some_and(|place| !partition.columns[place].not_null)
            });
            let Some((partition, _)) = lacking else {
                return Ok(());
            };
            definition("constraint must be added to child tables too")
                .with_detail(format!(
                    "Column \"{name}\" of relation \"{}\" is not already NOT NULL.",
                    partition.name
                ))
                .with_hint(NOT_ONLY)
        }
        Type::AtDropConstraint if !table.checks.iter().any(|own| own.name == *name) => {
            return Ok(())
        }
        Type::AtDropNotNull | Type::AtDropConstraint => {
            let message =
                "cannot remove constraint from only the partitioned table when partitions exist";
            definition(message).with_hint(NOT_ONLY)
        }
        Type::AtAddConstraint if constraint_of(command) == Some(ConstrType::ConstrCheck) => {
            definition("constraint must be added to child tables too")
        }
        Type::AtValidateConstraint => {
            definition("constraint must be validated on child tables too")
        }
        _ => return Ok(()),
    })
}

fn only_foreign_key(table: &Table, command: &AlterTableCmd) -> Error {
    let definition = command.def.as_ref().and_then(|node| node.node.as_ref());
    let parent = match definition {
        Some(NodeEnum::Constraint(constraint)) => constraint.pktable.as_ref(),
        _ => None,
    };
    let message = format!(
        "cannot use ONLY for foreign key on partitioned table \"{}\" referencing relation \"{}\"",
        table.name,
        parent.map_or("", |range| &range.relname)
    );
    Error::new(SqlState::WRONG_OBJECT_TYPE, message)
}

/// Refuses to drop a column, or to change its type, that tables are divided by.
fn refuse_key_column(tables: &[Arc<Table>], name: &str, verb: &str) -> Result<()> {
    for table in tables {
        let parts = table.partition_key.iter().flat_map(|key| &key.parts);
        let place = table.column(name);
        let mut uses = parts.flat_map(|part| &part.uses);
        if place.is_some_and(|place| uses.any(|used| *used == place)) {
            return Err(definition(format!(
                "cannot {verb} column \"{name}\" because it is part of the partition key of \
                 relation \"{}\"",
                table.name
            )));
        }
    }
    Ok(())
}

impl Session {
    /// A table that is locked and all below it, locked like it, each before what is below it.
    pub(in super::super) fn with_below(
        &mut self,
        oid: u32,
        command: &AlterTableCmd,
    ) -> Result<Vec<Arc<Table>>> {
        let mut locked = vec![oid];
        loop {
            let (catalog, table) = self.own_table(oid)?;
            let mut all = vec![table.clone()];
            all.extend(catalog.below(&table));
            all.extend(catalog.heirs(&table));
            let new = all.iter().find(|table| !locked.contains(&table.oid));
            let Some(new) = new.cloned() else {
                return Ok(all);
            };
            self.must_own_relation(&new)?;
            self.lock_mode(&new, lock_of(command))?;
            self.refuse_in_use(&new, "ALTER TABLE")?;
            self.forget_own_catalog();
            locked.push(new.oid);
        }
    }

    /// Carries out an action that has to do with what is below a partitioned table; false if this one
    /// has not.
    pub(super) fn alter_partitioned(
        &mut self,
        text: &str,
        oid: u32,
        (group, only): (&[&AlterTableCmd], bool),
        sink: &mut dyn Sink,
    ) -> Result<bool> {
        let (catalog, table) = self.own_table(oid)?;
        if table.inheritance.is_some() {
            return self.alter_inherited(text, &table, (group, only), sink);
        }
        let command = match group.first() {
            Some(command) if table.kind == RelationKind::Partitioned => *command,
            _ => return Ok(false),
        };
        let kind = Type::try_from(command.subtype).unwrap_or(Type::Undefined);
        if only && adds_key(command) {
            return self.alter_only(text, oid, command).map(|()| true);
        }
        if only && constraint_of(command) == Some(ConstrType::ConstrForeign) {
            return Err(only_foreign_key(&table, command));
        }
        if only && catalog.partitions(&table).next().is_some() {
            for command in group {
                refuse_only(&catalog, &table, command, kind)?;
            }
            return Ok(false);
        }
        let goes_down = matches!(
            kind,
            Type::AtDropColumn
                | Type::AtAlterColumnType
                | Type::AtColumnDefault
                | Type::AtSetNotNull
                | Type::AtDropNotNull
                | Type::AtSetStatistics
                | Type::AtSetStorage
                | Type::AtValidateConstraint
        );
        if !goes_down {
            return Ok(false);
        }
        let all = self.with_below(oid, command)?;
        match kind {
            Type::AtDropColumn => {
                refuse_key_column(&all, &command.name, "drop")?;
                return Ok(false);
            }
            Type::AtAlterColumnType => {
                for command in group {
                    refuse_key_column(&all, &command.name, "alter")?;
                }
            }
            Type::AtValidateConstraint => {
                let is_check = |table: &Arc<Table>| {
                    let mut checks = table.checks.iter();
                    checks.any(|check| check.name == command.name)
                };
                if !is_check(&all[0]) {
                    return Ok(false);
                }
            }
            _ => {}
        }
        for table in all {
            self.alter_step(text, table.oid, (group, only), sink)?;
        }
        Ok(true)
    }

    /// Gives all that is below a partitioned table, or inherits from a table, its newest column.
    pub(super) fn add_column_below(
        &mut self,
        parent: &Table,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let Some(column) = parent.columns.last() else {
            return Ok(());
        };
        let all = self.with_below(parent.oid, command)?;
        if column.identity != Identity::None && all.len() > 1 {
            return Err(definition(
                "cannot recursively add identity column to table that has child tables",
            ));
        }
        if parent.has_children() {
            return self.add_column_to_children(parent, &mut Vec::new(), sink);
        }
        for below in &all[1..] {
            self.add_column_of(parent, below)?;
        }
        Ok(())
    }

    /// Gives a table the newest column of another above it.
    pub(super) fn add_column_of(&mut self, parent: &Table, below: &Arc<Table>) -> Result<Table> {
        let column = parent.columns.last();
        let mut own = column
            .cloned()
            .ok_or_else(|| Error::internal("a table without columns"))?;
        for from in &mut own.generated_from {
            let place = below.column(&parent.columns[*from].name);
            *from = place.ok_or_else(|| Error::internal("a child without a column"))?;
        }
        own.missing = None;
        let mut new = (**below).clone();
        new.columns.push(own);
        self.fill_column(below, new)?;
        let (_, new) = self.own_table(below.oid)?;
        Ok((*new).clone())
    }

    /// Gives all that is below a partitioned table, or inherits from a table, its newest CHECK constraint.
    pub(super) fn add_check_below(
        &mut self,
        parent: &Table,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let Some(check) = parent.checks.last() else {
            return Ok(());
        };
        for below in &self.with_below(parent.oid, command)?[1..] {
            let known = below.checks.iter().find(|own| own.name == check.name);
            if let Some(known) = known.filter(|known| known.condition == check.condition) {
                if known.no_inherit {
                    let message = format!(
                        "constraint \"{}\" conflicts with non-inherited constraint on relation \
                         \"{}\"",
                        check.name, below.name
                    );
                    return Err(Error::new(SqlState::of("42P17"), message));
                }
                if check.validated && !known.validated {
                    let message = format!(
                        "constraint \"{}\" conflicts with NOT VALID constraint on relation \"{}\"",
                        check.name, below.name
                    );
                    return Err(Error::new(SqlState::of("42P17"), message));
                }
                if below.partition_of.is_none() {
                    let mut new = (**below).clone();
                    new.inheritance_mut().local_checks.push(known.oid);
                    self.put_table(&new)?;
                }
                let message = format!(
                    "merging constraint \"{}\" with inherited definition",
                    check.name
                );
                let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                self.notice(NoticeSeverity::Notice, body, sink)?;
                continue;
            }
            check_no_constraint(below, &check.name)?;
            let map = column_map(parent, below)?;
            let moved = |place: &usize| match &map {
                None => Some(*place),
                Some(map) => map[*place],
            };
            let mut new = (**below).clone();
            new.checks.push(Check {
                oid: self.new_oid()?,
                columns: check.columns.iter().filter_map(moved).collect(),
                ..check.clone()
            });
            self.put_table(&new)?;
            if check.validated {
                self.check_condition(&Arc::new(new), &check.name)?;
            }
        }
        Ok(())
    }

    /// Refuses other names for what partitions have from their parents; otherwise all the tables where
    /// the part gets its name.
    pub(super) fn renamed_with(
        &mut self,
        table: &Arc<Table>,
        (part, name): (Part, &str),
        only: bool,
    ) -> Result<Vec<Arc<Table>>> {
        let catalog = self.current_catalog()?;
        let inherits = match part {
            Part::Column => table.column(name).is_some(),
            Part::Constraint => table.checks.iter().any(|check| check.name == name),
        };
        if !inherits {
            return Ok(vec![table.clone()]);
        }
        let (noun, is_from_parent) = match part {
            Part::Column => ("column", has_column_from_above(&catalog, table, name)),
            Part::Constraint => ("constraint", has_check_from_above(&catalog, table, name)),
        };
        if only && (table.has_children() || catalog.partitions(table).next().is_some()) {
            return Err(definition(format!(
                "inherited {noun} \"{name}\" must be renamed in child tables too"
            )));
        }
        if is_from_parent {
            return Err(definition(format!(
                "cannot rename inherited {noun} \"{name}\""
            )));
        }
        let is_local = |check: &&Check| check.name == name && check.no_inherit;
        if part == Part::Constraint && table.checks.iter().find(is_local).is_some() {
            return Ok(vec![table.clone()]);
        }
        let all = self.with_below(table.oid, &AlterTableCmd::default())?;
        let catalog = self.current_catalog()?;
        let has = |parent: &Table| match part {
            Part::Column => parent.column(name).is_some(),
            Part::Constraint => parent.checks.iter().any(|check| check.name == name),
        };
        if has_other_parent(&catalog, &all, has).is_some() {
            return Err(definition(format!(
                "cannot rename inherited {noun} \"{name}\""
            )));
        }
        Ok(all)
    }
}
