//! ALTER TABLE of tables that inherit and of those that others inherit from: what goes down to heirs, and
//! what a child has from its parents and cannot change by itself.
//!
//! ```text
//! create table m (k int); create table c (n int) inherits (m)
//! alter table m add column v text           m and c have v; where c has a v already, both are merged
//! alter table m drop column v               c's v goes as well, unless it is c's own too, or another parent's
//! alter table c drop column k               42P16: it is m's
//! alter table m alter column k set default 7         m and c
//! alter table only m alter column k set default 7    m
//! ```
//! Which columns and constraints are inherited follows from what the parents have, so a column that a parent
//! loses is the child's own from then on.
//!
//! # What it leaves out
//! ONLY with DROP COLUMN and DROP CONSTRAINT (0A000).

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterTableCmd, AlterTableType as Type, ConstrType, Constraint, RangeVar};

use super::super::super::{NoticeSeverity, Session, Sink};
use super::super::attach::check_has_all;
use super::super::inherit::check_persistence;
use super::{constraint_of, constraint_said, is_retype};
use catalog::{Catalog, Column, Object, RelationKind, Table};
use syntax::parser::NodeEnum;

/// 42P16.
fn definition(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

fn check_of(table: &Table, name: &str) -> Option<usize> {
    table.checks.iter().position(|check| check.name == name)
}

/// Refuses to change what a table has from its parents.
fn refuse_inherited(catalog: &Catalog, table: &Table, command: &AlterTableCmd) -> Result<()> {
    let name = &command.name;
    let kind = Type::try_from(command.subtype).unwrap_or(Type::Undefined);
    let is_column = || catalog.inherited_column(table, name) > 0 && table.column(name).is_some();
    match kind {
        Type::AtDropColumn if is_column() => Err(definition(format!(
            "cannot drop inherited column \"{name}\""
        ))),
        Type::AtAlterColumnType if is_column() => Err(definition(format!(
            "cannot alter inherited column \"{name}\""
        ))),
        Type::AtDropConstraint
            if check_of(table, name).is_some() && catalog.inherited_check(table, name) > 0 =>
        {
            Err(definition(format!(
                "cannot drop inherited constraint \"{name}\" of relation \"{}\"",
                table.name
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses what ONLY would leave undone in heirs, of which there are some.
fn refuse_only(table: &Table, command: &AlterTableCmd) -> Result<()> {
    let name = &command.name;
    let kind = Type::try_from(command.subtype).unwrap_or(Type::Undefined);
    match kind {
        Type::AtAddColumn => Err(definition("column must be added to child tables too")),
        Type::AtAlterColumnType => Err(definition(format!(
            "type of inherited column \"{name}\" must be changed in child tables too"
        ))),
        Type::AtAddConstraint if hands_on(command) => {
            Err(definition("constraint must be added to child tables too"))
        }
        Type::AtValidateConstraint if check_of(table, name).is_some() => Err(definition(
            "constraint must be validated on child tables too",
        )),
        Type::AtDropColumn => Err(Error::unsupported(
            "ONLY with DROP COLUMN of a table that others inherit from",
        )),
        Type::AtDropConstraint if check_of(table, name).is_some() => Err(Error::unsupported(
            "ONLY with DROP CONSTRAINT of a table that others inherit from",
        )),
        _ => Ok(()),
    }
}

/// Whether a command adds a CHECK constraint that heirs get too.
fn hands_on(command: &AlterTableCmd) -> bool {
    let is_local = |constraint: &Constraint| constraint.is_no_inherit;
    constraint_of(command) == Some(ConstrType::ConstrCheck)
        && !constraint_said(command).is_some_and(is_local)
}

impl Session {
    /// Carries out an action that has to do with what a table inherits, or with its heirs; false if this
    /// one is to be carried out on the table itself.
    pub(super) fn alter_inherited(
        &mut self,
        text: &str,
        table: &Arc<Table>,
        (group, only): (&[&AlterTableCmd], bool),
        sink: &mut dyn Sink,
    ) -> Result<bool> {
        let catalog = self.current_catalog()?;
        let Some(command) = group.first() else {
            return Ok(false);
        };
        for command in group {
            refuse_inherited(&catalog, table, command)?;
            if only && table.has_children() {
                refuse_only(table, command)?;
            }
        }
        let goes_down = match Type::try_from(command.subtype).unwrap_or(Type::Undefined) {
            Type::AtAlterColumnType
            | Type::AtColumnDefault
            | Type::AtSetNotNull
            | Type::AtDropNotNull
            | Type::AtSetStatistics => true,
            Type::AtValidateConstraint => check_of(table, &command.name).is_some(),
            _ => false,
        };
        if only || !goes_down || !table.has_children() {
            return Ok(false);
        }
        let all = self.with_below(table.oid, command)?;
        for command in group.iter().filter(|command| is_retype(command)) {
            let catalog = self.current_catalog()?;
            let has = |parent: &Table| parent.column(&command.name).is_some();
            if let Some(heir) = has_other_parent(&catalog, &all, has) {
                return Err(definition(format!(
                    "cannot alter inherited column \"{}\" of relation \"{}\"",
                    command.name, heir.name
                )));
            }
        }
        for table in all {
            self.alter_step(text, table.oid, (group, only), sink)?;
        }
        Ok(true)
    }

    /// Gives the children of a table its newest column, and theirs. One may have it already, or have got it
    /// from another parent, which is among `given` then.
    ///
    /// # Errors
    /// 42804 and 42P21 if it is another there.
    pub(super) fn add_column_to_children(
        &mut self,
        table: &Table,
        given: &mut Vec<u32>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let Some(column) = table.columns.last() else {
            return Ok(());
        };
        let catalog = self.current_catalog()?;
        for child in catalog.children(table) {
            let (_, child) = self.own_table(child.oid)?;
            let Some(place) = child.column(&column.name) else {
                given.push(child.oid);
                let new = self.add_column_of(table, &child)?;
                self.add_column_to_children(&new, given, sink)?;
                continue;
            };
            check_same(&child, place, column)?;
            let message = format!(
                "merging definition of column \"{}\" for child \"{}\"",
                column.name, child.name
            );
            let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
            self.notice(NoticeSeverity::Notice, body, sink)?;
            if !given.contains(&child.oid) {
                let mut new = (*child).clone();
                note_own(&mut new.inheritance_mut().local_columns, place);
                self.put_table(&new)?;
            }
        }
        Ok(())
    }

    /// ALTER TABLE … INHERIT: a table becomes the child of another whose columns and CHECK constraints it
    /// has.
    pub(super) fn alter_inherit(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let parent = self.lock_table(named_parent(command)?)?;
        let wrong = |message: String| Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        if table.partition_of.is_some() {
            return wrong("cannot change inheritance of a partition".to_owned());
        }
        if table.kind == RelationKind::Partitioned {
            return wrong("cannot change inheritance of partitioned table".to_owned());
        }
        match parent.kind {
            RelationKind::Partitioned => {
                let name = &parent.name;
                return wrong(format!("cannot inherit from partitioned table \"{name}\""));
            }
            RelationKind::Table if parent.partition_of.is_some() => {
                return wrong("cannot inherit from a partition".to_owned());
            }
            RelationKind::Table => {}
            _ => {
                return wrong(format!(
                    "\"{}\" is not a table or foreign table",
                    parent.name
                ))
            }
        }
        check_persistence(&parent, table)?;
        self.refuse_in_use(&parent, "ALTER TABLE")?;
        let catalog = self.current_catalog()?;
        let duplicate = |message: String| Error::new(SqlState::DUPLICATE_TABLE, message);
        if table.inherits_from().contains(&parent.oid) {
            return Err(duplicate(format!(
                "relation \"{}\" would be inherited from more than once",
                parent.name
            )));
        }
        if parent.oid == table.oid || catalog.inherits(&parent, table.oid) {
            let detail = format!(
                "\"{}\" is already a child of \"{}\".",
                parent.name, table.name
            );
            let message = "circular inheritance not allowed".to_owned();
            return Err(duplicate(message).with_detail(detail));
        }
        check_has_all(&parent, table)?;
        let mut new = (**table).clone();
        for column in parent.columns.iter().filter(|column| !column.dropped) {
            let place = table.column(&column.name);
            let place = place.filter(|place| catalog.column_origin(table, *place).1);
            if let Some(place) = place {
                note_own(&mut new.inheritance_mut().local_columns, place);
            }
        }
        for check in parent.checks.iter().filter(|check| !check.no_inherit) {
            let known = table.checks.iter().find(|known| known.name == check.name);
            if let Some(known) = known.filter(|known| catalog.check_origin(table, known).1) {
                note_own(&mut new.inheritance_mut().local_checks, known.oid);
            }
        }
        new.inheritance_mut().parents.push(parent.oid);
        self.put_table(&new)?;
        let (_, parent) = self.own_table(parent.oid)?;
        let mut above = (*parent).clone();
        above.inheritance_mut().children.push(table.oid);
        self.put_table(&above)
    }

    /// ALTER TABLE … NO INHERIT: what it had from the parent alone is its own from then on.
    pub(super) fn alter_no_inherit(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        if table.partition_of.is_some() {
            let message = "cannot change inheritance of a partition";
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        let range = named_parent(command)?;
        let parent = self.find_table(range)?;
        self.lock_mode(&parent, TableLock::AccessExclusive)?;
        let (_, parent) = self.own_table(parent.oid)?;
        if !table.inherits_from().contains(&parent.oid) {
            let message = format!(
                "relation \"{}\" is not a parent of relation \"{}\"",
                parent.name, table.name
            );
            return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
        }
        self.refuse_in_use(&parent, "ALTER TABLE")?;
        let mut new = (**table).clone();
        new.inheritance_mut()
            .parents
            .retain(|known| *known != parent.oid);
        self.put_table(&new)?;
        let mut above = (*parent).clone();
        above
            .inheritance_mut()
            .children
            .retain(|known| *known != table.oid);
        self.put_table(&above)
    }
}

fn named_parent(command: &AlterTableCmd) -> Result<&RangeVar> {
    match command.def.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::RangeVar(range)) => Ok(range),
        _ => Err(Error::internal("INHERIT without a parent")),
    }
}

fn note_own<T: PartialEq>(own: &mut Vec<T>, one: T) {
    if !own.contains(&one) {
        own.push(one);
    }
}

fn check_same(child: &Table, place: usize, column: &Column) -> Result<()> {
    let known = &child.columns[place];
    let differs = |what: &str, state| {
        let message = format!(
            "child table \"{}\" has different {what} for column \"{}\"",
            child.name, column.name
        );
        Err(Error::new(state, message))
    };
    if known.declared() != column.declared() {
        return differs("type", SqlState::DATATYPE_MISMATCH);
    }
    if known.collation != column.collation {
        return differs("collation", SqlState::of("42P21"));
    }
    Ok(())
}

/// The first heir of a table that has something from another parent as well, which is not among them all.
pub(super) fn has_other_parent<'t>(
    catalog: &Catalog,
    all: &'t [Arc<Table>],
    has: impl Fn(&Table) -> bool,
) -> Option<&'t Arc<Table>> {
    let is_other = |parent: &&Arc<Table>| all.iter().all(|one| one.oid != parent.oid);
    all[1..].iter().find(|heir| {
        let mut parents = catalog.parents(heir).into_iter();
        parents.any(|parent| is_other(&parent) && has(parent))
    })
}

/// The columns of heirs that go with a column of a table: those that are nobody else's.
pub(super) fn columns_with(catalog: &Catalog, table: &Table, name: &str) -> Vec<Object> {
    let mut going = vec![table.oid];
    let mut columns = Vec::new();
    for heir in catalog.heirs(table) {
        let Some(place) = heir.column(name) else {
            continue;
        };
        let has = |parent: &&Arc<Table>| parent.column(name).is_some();
        let mut parents = catalog.parents(&heir).into_iter().filter(has);
        let is_own = catalog.column_origin(&heir, place).1;
        if !is_own && parents.all(|parent| going.contains(&parent.oid)) {
            going.push(heir.oid);
            columns.push(Object::Column(heir.oid, place));
        }
    }
    columns
}

/// The CHECK constraints of heirs that go with one of a table: those that are nobody else's.
pub(super) fn checks_with(catalog: &Catalog, table: &Table, name: &str) -> Vec<Object> {
    let handed_on = |table: &Table| {
        let mut checks = table.checks.iter();
        checks.any(|check| check.name == name && !check.no_inherit)
    };
    if !handed_on(table) {
        return Vec::new();
    }
    let mut going = vec![table.oid];
    let mut checks = Vec::new();
    for heir in catalog.heirs(table) {
        let Some(place) = check_of(&heir, name) else {
            continue;
        };
        let mut parents = catalog.parents(&heir).into_iter();
        let stays = parents.any(|parent| handed_on(parent) && !going.contains(&parent.oid));
        if !stays && !catalog.check_origin(&heir, &heir.checks[place]).1 {
            going.push(heir.oid);
            checks.push(Object::Constraint(heir.checks[place].oid));
        }
    }
    checks
}
