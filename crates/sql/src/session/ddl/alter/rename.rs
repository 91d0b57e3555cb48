//! Other names for columns and constraints of tables, OWNER TO, and storage parameters.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterTableCmd, AlterTableType};

use super::super::super::Session;
use super::super::of_type::refused;
use super::super::placement::{placement_among, says_placement};
use super::constraint::{check_no_constraint, constraint_oid};
use super::parameters::set_options;
use super::rewrite::about;
use catalog::local::is_local;
use catalog::{Catalog, CheckOption, KeySource, RelationKind, Table};
use syntax::parser::NodeEnum;
use types::TypeId;

/// A part of a table that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Part {
    /// A column.
    Column,
    /// A constraint.
    Constraint,
}

impl Session {
    /// Gives a part of a table, which is locked, another name.
    pub(in super::super) fn rename_part(
        &mut self,
        table: &Arc<Table>,
        part: Part,
        (from, to): (&str, &str),
        only: bool,
    ) -> Result<()> {
        let has_constraints = matches!(table.kind, RelationKind::Table | RelationKind::Partitioned);
        if !has_constraints && part == Part::Constraint {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a table", table.name),
            ));
        }
        if part == Part::Column && table.of_type != TypeId::NONE {
            return Err(refused("rename column of"));
        }
        for table in self.renamed_with(table, (part, from), only)? {
            match part {
                Part::Column => self.rename_column(&table, from, to)?,
                Part::Constraint => self.rename_constraint(&table, from, to)?,
            }
        }
        Ok(())
    }

    /// Gives a column of a typed table, which is locked, the name that it has in its type.
    pub(in super::super) fn rename_with_type(
        &mut self,
        table: &Arc<Table>,
        (from, to): (&str, &str),
    ) -> Result<()> {
        for table in self.renamed_with(table, (Part::Column, from), false)? {
            self.rename_column(&table, from, to)?;
        }
        Ok(())
    }

    fn rename_column(&mut self, table: &Arc<Table>, from: &str, to: &str) -> Result<()> {
        let place = table.column(from).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{from}\" does not exist"),
            )
        })?;
        if table.column(to).is_some() {
            return Err(Error::new(
                SqlState::DUPLICATE_COLUMN,
                format!(
                    "column \"{to}\" of relation \"{}\" already exists",
                    table.name
                ),
            ));
        }
        let mut new = (**table).clone();
        self.restate(table, &mut new, Some((place, to)))?;
        new.columns[place].name = to.to_owned();
        self.restate_policies(table, &mut new)?;
        self.put_table(&new)
    }

    /// Writes the stored expressions over a table's columns anew, for a column with another name or
    /// a table with another one.
    pub(in super::super) fn restate(
        &mut self,
        table: &Arc<Table>,
        new: &mut Table,
        renamed: Option<(usize, &str)>,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let restate = |session: &Session, text: &str| {
            session.try_binding("", &catalog, |binder| {
                binder.with_renamed_column(text, table, renamed)
            })
        };
        for check in &mut new.checks {
            check.condition = restate(self, &check.condition)?;
        }
        for computed in new
            .indexes
            .iter_mut()
            .filter_map(|own| own.computed.as_mut())
        {
            for key in &mut computed.keys {
                if let KeySource::Expression { text, .. } = &mut key.source {
                    *text = restate(self, text)?;
                }
            }
            if let Some(text) = &computed.condition {
                computed.condition = Some(restate(self, text)?);
            }
        }
        for part in new.partition_key.iter_mut().flat_map(|key| &mut key.parts) {
            if let KeySource::Expression { text, .. } = &mut part.source {
                *text = restate(self, text)?;
            }
        }
        for column in new.columns.iter_mut().filter(|column| column.generated) {
            if let Some(text) = &column.default {
                column.default = Some(restate(self, text)?);
            }
        }
        self.restate_statistics(table, renamed)
    }

    fn rename_constraint(&mut self, table: &Arc<Table>, from: &str, to: &str) -> Result<()> {
        if constraint_oid(table, from).is_none() {
            return Err(Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "constraint \"{from}\" for table \"{}\" does not exist",
                    table.name
                ),
            ));
        }
        let mut new = (**table).clone();
        let index = new.indexes.iter_mut();
        let index = index
            .filter(|index| index.constraint != 0)
            .find(|index| index.name == from);
        if let Some(index) = index {
            self.rename_claim(table.schema, from, to, index.oid)?;
            check_no_constraint(table, to)?;
            index.name = to.to_owned();
            return self.put_table(&new);
        }
        check_no_constraint(table, to)?;
        let checks = new.checks.iter_mut().map(|check| &mut check.name);
        let keys = new.foreign_keys.iter_mut().map(|key| &mut key.name);
        if let Some(name) = checks.chain(keys).find(|name| *name == from) {
            *name = to.to_owned();
        }
        self.put_table(&new)
    }

    /// OWNER TO.
    pub(super) fn alter_owner(
        &mut self,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let spec = command.newowner.as_ref();
        let spec = spec.ok_or_else(|| Error::internal("an owner without a name"))?;
        let owner = self.role_of(catalog, spec)?.oid;
        if owner != table.owner {
            self.may_give_to(catalog, owner, table.schema)?;
        }
        self.give_relation(catalog, table, owner)
    }

    /// SET LOGGED and SET UNLOGGED, also of the sequences that are its own.
    pub(super) fn alter_logged(
        &mut self,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        unlogged: bool,
    ) -> Result<()> {
        let refused = |message: String| Error::new(SqlState::INVALID_TABLE_DEFINITION, message);
        if is_local(table.oid) {
            let message = format!(
                "cannot change logged status of table \"{}\" because it is temporary",
                table.name
            );
            return Err(about(refused(message), catalog, table));
        }
        let differs = |other: &&Arc<Table>| other.oid != table.oid && other.unlogged != unlogged;
        let (own, other) = match unlogged {
            true => ("unlogged", "logged"),
            false => ("logged", "unlogged"),
        };
        let concerned = match unlogged {
            true => {
                let mut referrers = catalog.referrers(table.oid);
                let found = referrers.find(|found| differs(&found.0));
                found.map(|(other, key)| (other.name.clone(), key.name.clone()))
            }
            false => {
                let keys = table.foreign_keys.iter();
                let mut parents =
                    keys.filter_map(|key| Some((catalog.table_by_oid(key.table)?, key)));
                let found = parents.find(|found| differs(&found.0));
                found.map(|(other, key)| (other.name.clone(), key.name.clone()))
            }
        };
        if let Some((name, constraint)) = concerned {
            let message = format!(
                "could not change table \"{}\" to {own} because it references {other} table \"{name}\"",
                table.name
            );
            let mut error = about(refused(message), catalog, table);
            error.fields_mut().constraint = Some(constraint);
            return Err(error);
        }
        let is_own = |sequence: &&Arc<Table>| {
            let owner = sequence
                .sequence
                .as_ref()
                .and_then(|known| known.owner.as_ref());
            owner.is_some_and(|owner| owner.table == table.oid)
        };
        let sequences: Vec<_> = catalog.tables.iter().filter(is_own).cloned().collect();
        for changed in std::iter::once(table).chain(&sequences) {
            let mut new = (**changed).clone();
            new.unlogged = unlogged;
            self.put_table(&new)?;
        }
        Ok(())
    }

    /// SET (…) and RESET (…).
    pub(super) fn alter_options(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let Some(Some(NodeEnum::List(list))) = command.def.as_ref().map(|node| &node.node) else {
            return Ok(());
        };
        let mut new = (**table).clone();
        let mut group = None;
        if command.subtype == AlterTableType::AtResetRelOptions as i32 {
            if says_placement(command) {
                group = Some(self.default_group()?);
            }
            for node in &list.items {
                if let Some(NodeEnum::DefElem(option)) = &node.node {
                    new.options.retain(|known| known.0 != option.defname);
                    if let Some(view) = &mut new.view {
                        if option.defname == "check_option" {
                            view.check_option = CheckOption::None;
                        }
                    }
                }
            }
        } else if table.kind == RelationKind::View {
            self.set_view_options(&mut new, &list.items)?;
        } else {
            set_options(&mut new, &list.items)?;
            group = placement_among(&list.items)?;
        }
        match group.filter(|group| *group != table.tree.group()) {
            Some(group) => self.move_table(table, &new, group),
            None => self.put_table(&new),
        }
    }
}
