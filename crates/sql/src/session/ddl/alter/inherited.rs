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
use super::super::attach::{check_has_all, check_same_type};
use super::super::inherit::check_persistence;
use super::super::texts;
use super::{constraint_of, constraint_said, is_retype};
use catalog::{Catalog, Object, RelationKind, Table};
use syntax::parser::NodeEnum;

/// 42P16.
fn definition(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

/// Whether there is a check of that name that children have as well.
fn has_inherited_check(table: &Table, name: &str) -> bool {
    check_of(table, name).is_some_and(|place| !table.checks[place].no_inherit)
}

fn check_of(table: &Table, name: &str) -> Option<usize> {
    table.checks.iter().position(|check| check.name == name)
}

/// Refuses to change what a table, or a partition, has from those above it.
///
/// # Errors
/// 42P16.
pub(super) fn refuse_inherited(
    catalog: &Catalog,
    table: &Table,
    command: &AlterTableCmd,
) -> Result<()> {
    let name = &command.name;
    let kind = Type::try_from(command.subtype).unwrap_or(Type::Undefined);
    let refused = match kind {
        Type::AtDropColumn if has_column_from_above(catalog, table, name) => {
            format!("cannot drop inherited column \"{name}\"")
        }
        Type::AtAlterColumnType if has_column_from_above(catalog, table, name) => {
            format!("cannot alter inherited column \"{name}\"")
        }
        Type::AtDropConstraint if has_check_from_above(catalog, table, name) => format!(
            "cannot drop inherited constraint \"{name}\" of relation \"{}\"",
            table.name
        ),
        _ => return Ok(()),
    };
    Err(definition(refused))
}

/// Whether a table has a column of that name from a table above it.
pub(super) fn has_column_from_above(catalog: &Catalog, table: &Table, name: &str) -> bool {
    let place = table.column(name);
    place.is_some_and(|place| catalog.column_origin(table, place).0 > 0)
}

/// Whether a table has a CHECK constraint of that name from a table above it.
pub(super) fn has_check_from_above(catalog: &Catalog, table: &Table, name: &str) -> bool {
    check_of(table, name).is_some() && catalog.inherited_check(table, name) > 0
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
        Type::AtValidateConstraint if has_inherited_check(table, name) => Err(definition(
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
            | Type::AtSetStatistics
            | Type::AtSetStorage => true,
            Type::AtValidateConstraint => has_inherited_check(table, &command.name),
            _ => false,
        };
        if only || !table.has_children() {
            return Ok(false);
        }
        if !goes_down {
            for name in primary_key_columns(table, command) {
                self.set_not_null_below(table, &name, command)?;
            }
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

    /// Refuses NULL in a column of all heirs of a table, for it is to be in the table's primary key.
    fn set_not_null_below(
        &mut self,
        table: &Table,
        name: &str,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let named = AlterTableCmd {
            name: name.to_owned(),
            ..AlterTableCmd::default()
        };
        for heir in &self.with_below(table.oid, command)?[1..] {
            self.alter_not_null(heir, &named, true)?;
        }
        Ok(())
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
            check_same_type(&child, &child.columns[place], column)?;
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

/// The columns of the primary key that a command adds; none if it adds none.
fn primary_key_columns(table: &Table, command: &AlterTableCmd) -> Vec<String> {
    let constraint = constraint_said(command);
    let is_primary = constraint_of(command) == Some(ConstrType::ConstrPrimary);
    let Some(constraint) = constraint.filter(|_| is_primary) else {
        return Vec::new();
    };
    let named = texts(&constraint.keys).into_iter();
    let mut indexes = table.indexes.iter();
    let used = indexes.find(|index| index.name == constraint.indexname);
    let places = used.iter().flat_map(|index| &index.columns);
    let of_index = places.map(|column| table.columns[column.column].name.clone());
    let is_live = |name: &String| table.column(name).is_some();
    named.chain(of_index).filter(is_live).collect()
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
    let has = |table: &Table| table.column(name).is_some();
    parts_with(catalog, table, has, |heir| {
        let place = heir.column(name)?;
        let is_own = catalog.column_origin(heir, place).1;
        Some((Object::Column(heir.oid, place), is_own))
    })
}

/// The CHECK constraints of heirs that go with one of a table: those that are nobody else's.
pub(super) fn checks_with(catalog: &Catalog, table: &Table, name: &str) -> Vec<Object> {
    let hands_on = |table: &Table| {
        let mut checks = table.checks.iter();
        checks.any(|check| check.name == name && !check.no_inherit)
    };
    parts_with(catalog, table, hands_on, |heir| {
        let check = &heir.checks[check_of(heir, name)?];
        let is_own = catalog.check_origin(heir, check).1;
        Some((Object::Constraint(check.oid), is_own))
    })
}

/// What heirs of a table have from it, and from nobody who keeps it: `part` says what one of them has, and
/// whether that is its own as well.
fn parts_with(
    catalog: &Catalog,
    table: &Table,
    hands_on: impl Fn(&Table) -> bool,
    part: impl Fn(&Table) -> Option<(Object, bool)>,
) -> Vec<Object> {
    let mut parts = Vec::new();
    if !hands_on(table) {
        return parts;
    }
    let mut going = vec![table.oid];
    for heir in catalog.heirs(table) {
        let Some((object, is_own)) = part(&heir) else {
            continue;
        };
        let mut parents = catalog.parents(&heir).into_iter();
        let stays = parents.any(|parent| hands_on(parent) && !going.contains(&parent.oid));
        if !is_own && !stays {
            going.push(heir.oid);
            parts.push(object);
        }
    }
    parts
}
