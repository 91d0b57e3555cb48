//! ALTER TABLE … ATTACH PARTITION and DETACH PARTITION: a table that is there becomes a partition, or is
//! no longer one.
//!
//! ```text
//! alter table m attach partition t for values from (20) to (30)    each row of t is looked at
//! ```
//! Both hold the partitioned table and the other against everybody.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterTableCmd, PartitionCmd, RangeVar};

use super::super::Session;
use super::alter::about;
use catalog::local::is_local;
use catalog::partition::{Bound, PartitionOf};
use catalog::{Column, Identity, RelationKind, RelationRef, Table};
use execution::exec::program::Evaluate;
use syntax::parser::NodeEnum;
use types::{Datum, TypeId};

fn mismatch(message: String) -> Error {
    Error::new(SqlState::DATATYPE_MISMATCH, message)
}

fn wrong_kind(message: String) -> Error {
    Error::new(SqlState::WRONG_OBJECT_TYPE, message)
}

fn command_of(command: &AlterTableCmd) -> Result<&PartitionCmd> {
    match command.def.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::PartitionCmd(command)) => Ok(command),
        _ => Err(Error::internal("a partition without a name")),
    }
}

/// Refuses a column of a table that is of another type, or under another collation, than the one above it.
///
/// # Errors
/// 42804, 42P21.
pub(super) fn check_same_type(table: &Table, own: &Column, above: &Column) -> Result<()> {
    let differs = |what: &str| {
        format!(
            "child table \"{}\" has different {what} for column \"{}\"",
            table.name, above.name
        )
    };
    if own.declared() != above.declared() {
        return Err(mismatch(differs("type")));
    }
    if own.collation != above.collation {
        return Err(Error::new(SqlState::of("42P21"), differs("collation")));
    }
    Ok(())
}

/// Refuses a table as a child of another when it lacks a column of that or a CHECK constraint, or has it
/// otherwise.
///
/// # Errors
/// 42804, 42P21, 42P17.
pub(super) fn check_has_all(parent: &Table, table: &Table) -> Result<()> {
    let name = &table.name;
    for column in parent.columns.iter().filter(|column| !column.dropped) {
        let place = table.column(&column.name).ok_or_else(|| {
            mismatch(format!("child table is missing column \"{}\"", column.name))
        })?;
        let own = &table.columns[place];
        check_same_type(table, own, column)?;
        if column.not_null && !own.not_null {
            return Err(mismatch(format!(
                "column \"{}\" in child table must be marked NOT NULL",
                column.name
            )));
        }
        if column.generated != own.generated {
            let is = if column.generated { "" } else { "not " };
            return Err(mismatch(format!(
                "column \"{}\" in child table must {is}be a generated column",
                column.name
            )));
        }
        if column.generated && column.default != own.default {
            return Err(mismatch(format!(
                "column \"{}\" in child table has a conflicting generation expression",
                column.name
            )));
        }
    }
    for check in parent.checks.iter().filter(|check| !check.no_inherit) {
        let known = table.checks.iter().find(|own| own.name == check.name);
        let known = known.ok_or_else(|| {
            mismatch(format!(
                "child table is missing constraint \"{}\"",
                check.name
            ))
        })?;
        let conflicts = |what: &str| {
            let message = format!(
                "constraint \"{}\" conflicts with {what} constraint on child table \"{name}\"",
                check.name
            );
            Err(Error::new(SqlState::of("42P17"), message))
        };
        if known.condition != check.condition {
            return Err(mismatch(format!(
                "child table \"{name}\" has different definition for check constraint \"{}\"",
                check.name
            )));
        }
        if known.no_inherit {
            return conflicts("non-inherited");
        }
        if check.validated && !known.validated {
            return conflicts("NOT VALID");
        }
    }
    Ok(())
}

impl Session {
    /// ATTACH PARTITION to a table that is locked against everybody.
    pub(super) fn attach_partition(
        &mut self,
        text: &str,
        parent: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        if parent.kind != RelationKind::Partitioned {
            return Err(wrong_kind(format!(
                "table \"{}\" is not partitioned",
                parent.name
            )));
        }
        let command = command_of(command)?;
        let range = command.name.as_ref();
        let range = range.ok_or_else(|| Error::internal("a partition without a name"))?;
        let spec = command.bound.as_ref();
        let spec = spec.ok_or_else(|| Error::internal("a partition without a bound"))?;
        let table = self.lock_table(range)?;
        self.refuse_in_use(&table, "ALTER TABLE")?;
        self.check_attachable(parent, &table)?;
        let of = self.bound_of(text, parent, spec)?;
        let catalog = self.current_catalog()?;
        self.check_partition_bound(text, &catalog, parent, &of, Some(spec), &table.name)?;
        self.check_attached_rows(parent, &table, &of)?;
        let default = catalog.partitions(parent);
        let mut default = default.filter(|(_, known)| known.bound == Bound::Default);
        let default = default.next().map(|(default, _)| default.clone());
        if let Some(default) = default {
            self.check_default(parent, &default, &of.bound)?;
        }
        let mut above = (**parent).clone();
        if let Some(key) = &mut above.partition_key {
            key.partitions.push(table.oid);
        }
        let mut below = (*table).clone();
        below.partition_of = Some(Box::new(of));
        self.put_table(&above)?;
        self.put_table(&below)?;
        for index in &parent.indexes {
            let (catalog, table) = self.own_table(below.oid)?;
            self.extend_index(&catalog, &above, index, &table)?;
        }
        let above = Arc::new(above);
        for key in &above.foreign_keys {
            self.extend_foreign_key(&above, key, below.oid)?;
        }
        for trigger in above.triggers.iter().filter(|own| own.for_each_row) {
            self.extend_trigger(&above, trigger, below.oid)?;
        }
        let mut new = vec![below.oid];
        let (catalog, table) = self.own_table(below.oid)?;
        new.extend(
            catalog
                .below_by_bounds(&table)
                .iter()
                .map(|table| table.oid),
        );
        self.name_parts_of_new(&above, &new)
    }

    /// Refuses a table that can be no partition of another.
    fn check_attachable(&mut self, parent: &Table, table: &Table) -> Result<()> {
        let name = &table.name;
        if !matches!(table.kind, RelationKind::Table | RelationKind::Partitioned) {
            return Err(wrong_kind(format!("\"{name}\" is not a table")));
        }
        if table.partition_of.is_some() {
            return Err(wrong_kind(format!("\"{name}\" is already a partition")));
        }
        if table.of_type != TypeId::NONE {
            let message = "cannot attach a typed table as partition";
            return Err(wrong_kind(message.to_owned()));
        }
        let catalog = self.current_catalog()?;
        if table.oid == parent.oid || catalog.below(table).iter().any(|t| t.oid == parent.oid) {
            let message = "circular inheritance not allowed";
            return Err(
                Error::new(SqlState::of("42P07"), message).with_detail(format!(
                    "\"{}\" is already a child of \"{name}\".",
                    parent.name
                )),
            );
        }
        if is_local(table.oid) {
            return Err(Error::unsupported("a temporary partition"));
        }
        if !table.inherits_from().is_empty() {
            return Err(wrong_kind(
                "cannot attach inheritance child as partition".to_owned(),
            ));
        }
        if table.has_children() {
            return Err(wrong_kind(
                "cannot attach inheritance parent as partition".to_owned(),
            ));
        }
        for column in table.columns.iter().filter(|column| !column.dropped) {
            if column.identity != Identity::None {
                return Err(Error::unsupported("an identity column of a partition"));
            }
            if parent.column(&column.name).is_none() {
                return Err(mismatch(format!(
                    "table \"{name}\" contains column \"{}\" not found in parent \"{}\"",
                    column.name, parent.name
                ))
                .with_detail("The new partition may contain only the columns present in parent."));
            }
        }
        check_has_all(parent, table)?;
        let mut triggers = table.triggers.iter().filter(|trigger| trigger.for_each_row);
        match triggers.find(|own| own.old_table.is_some() || own.new_table.is_some()) {
            None => Ok(()),
            Some(trigger) => Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "trigger \"{}\" prevents table \"{name}\" from becoming a partition",
                    trigger.name
                ),
            )
            .with_detail("ROW triggers with transition tables are not supported on partitions.")),
        }
    }

    /// 23514 if a row of a table would not be the partition's.
    fn check_attached_rows(
        &mut self,
        parent: &Arc<Table>,
        table: &Arc<Table>,
        of: &PartitionOf,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let mut tables = vec![table.clone()];
        tables.extend(catalog.below(table));
        let siblings = catalog.partitions(parent);
        let mut bounds: Vec<Bound> = siblings.map(|(_, known)| known.bound.clone()).collect();
        let place = bounds.len();
        bounds.push(of.bound.clone());
        for below in tables {
            self.lock_fully(&below)?;
            let catalog = self.current_catalog()?;
            let Some(below) = catalog.table_by_oid(below.oid).cloned() else {
                continue;
            };
            if !below.kind.has_rows() {
                continue;
            }
            let (level, above) = self.try_binding("", &catalog, |binder| {
                let level = binder.partition_level(&below, parent, bounds.clone())?;
                Ok((level, binder.check_of_parent(&below, parent)?))
            })?;
            let levels = above.iter().flat_map(|check| &check.levels);
            let levels: Vec<_> = levels.map(|(level, place)| (&**level, *place)).collect();
            let levels: Vec<_> = levels.into_iter().chain([(&level, place)]).collect();
            self.for_each_row(&below, |cx, _, row| {
                for (level, place) in &levels {
                    let key = level.programs.iter().map(|part| part.eval(cx, row));
                    let key: Vec<Datum> = key.collect::<Result<_>>()?;
                    if level.place_of(&key) != Some(*place) {
                        let message = format!(
                            "partition constraint of relation \"{}\" is violated by some row",
                            below.name
                        );
                        let error = Error::new(SqlState::CHECK_VIOLATION, message);
                        return Err(about(error, &catalog, &below));
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// DETACH PARTITION from a table that is locked against everybody.
    pub(super) fn detach_partition(
        &mut self,
        parent: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        if parent.kind != RelationKind::Partitioned {
            return Err(wrong_kind(format!(
                "table \"{}\" is not partitioned",
                parent.name
            )));
        }
        let command = command_of(command)?;
        if command.concurrent {
            return Err(Error::unsupported("DETACH PARTITION CONCURRENTLY"));
        }
        let range = command.name.as_ref();
        let range = range.ok_or_else(|| Error::internal("a partition without a name"))?;
        let table = self.lock_table(range)?;
        self.refuse_in_use(&table, "ALTER TABLE")?;
        let is_own = table
            .partition_of
            .as_ref()
            .is_some_and(|of| of.parent == parent.oid);
        if !is_own {
            return Err(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!(
                    "relation \"{}\" is not a partition of relation \"{}\"",
                    table.name, parent.name
                ),
            ));
        }
        let catalog = self.current_catalog()?;
        for above in Session::forget_children(&catalog, &[table.oid]) {
            self.put_table(&above)?;
        }
        let mut gone = vec![table.oid];
        gone.extend(catalog.below(&table).iter().map(|table| table.oid));
        let mut below = (*table).clone();
        let parts = below.partition_of.take().map(|of| of.parts);
        let keys: Vec<u32> = parts.iter().flatten().map(|part| part.0).collect();
        self.name_own_parts(&catalog, &mut below, &keys)?;
        self.forget_trigger_parts(&mut below, &keys)?;
        self.put_table(&below)?;
        self.forget_foreign_parts(&table, &gone)
    }

    /// ALTER TABLE ONLY … ADD of a key, which the partitions get their parts of later.
    pub(super) fn alter_only(
        &mut self,
        text: &str,
        oid: u32,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let (catalog, table) = self.own_table(oid)?;
        let Some(Some(NodeEnum::Constraint(constraint))) =
            command.def.as_ref().map(|node| &node.node)
        else {
            return Err(Error::internal("a key without a definition"));
        };
        let mut new = (*table).clone();
        self.add_constraint(text, &catalog, constraint, None, &mut new)?;
        self.add_partitioned_index(&table, new, false)
    }

    /// ALTER INDEX … ATTACH PARTITION.
    pub(super) fn alter_index_partition(
        &mut self,
        range: &RangeVar,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let found = self.find_range(range)?;
        let catalog = self.current_catalog()?;
        let Some(RelationRef::Index(place, at)) = found else {
            return Err(wrong_kind(format!("\"{}\" is not an index", range.relname)));
        };
        let parent = catalog.tables[place].clone();
        let index = parent.indexes[at].clone();
        self.must_own_index(&parent, &index)?;
        if parent.kind != RelationKind::Partitioned {
            return Err(wrong_kind(format!(
                "\"{}\" is not a partitioned index",
                range.relname
            )));
        }
        self.lock_fully(&parent)?;
        let (_, parent) = self.own_table(parent.oid)?;
        self.attach_index(&parent, index.oid, command)
    }

    /// An index of a partition becomes a part of one of its parent.
    fn attach_index(
        &mut self,
        parent: &Arc<Table>,
        above: u32,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let command = command_of(command)?;
        let range = command.name.as_ref();
        let range = range.ok_or_else(|| Error::internal("an index without a name"))?;
        let found = self.find_range(range)?;
        let catalog = self.current_catalog()?;
        let Some(RelationRef::Index(place, at)) = found else {
            return Err(wrong_kind(format!("\"{}\" is not an index", range.relname)));
        };
        let table = catalog.tables[place].clone();
        let index = table.indexes[at].clone();
        self.must_own_index(&table, &index)?;
        self.lock_fully(&table)?;
        let (catalog, table) = self.own_table(table.oid)?;
        let known = parent.indexes.iter().find(|known| known.oid == above);
        let known = known.ok_or_else(|| Error::internal("an index that is gone"))?;
        let cannot = |detail: String| {
            let message = format!(
                "cannot attach index \"{}\" as a partition of index \"{}\"",
                index.name, known.name
            );
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            Error::new(state, message).with_detail(detail)
        };
        if table.part_above(index.oid) == Some(above) {
            return Ok(());
        }
        if table
            .partition_of
            .as_ref()
            .is_none_or(|of| of.parent != parent.oid)
        {
            return Err(cannot(format!(
                "Index \"{}\" is not an index on any partition of table \"{}\".",
                index.name, parent.name
            )));
        }
        let taken = table.partition_of.iter().flat_map(|of| &of.parts);
        if taken.into_iter().any(|known| known.1 == above) {
            return Err(cannot(format!(
                "Another index is already attached for partition \"{}\".",
                table.name
            )));
        }
        if let Some(other) = table.part_above(index.oid) {
            let other = catalog
                .index_by_oid(other)
                .map_or("", |found| &found.1.name);
            return Err(cannot(format!(
                "Index \"{}\" is already attached to index \"{other}\".",
                index.name
            )));
        }
        let wanted = self.index_below(&catalog, parent, known, &table)?;
        if !super::partition::same_index(&wanted, &index) {
            return Err(cannot("The index definitions do not match.".to_owned()));
        }
        let mut new = (*table).clone();
        if let Some(of) = &mut new.partition_of {
            of.parts.push((index.oid, above));
        }
        self.put_table(&new)
    }
}
