//! ADD, VALIDATE, ALTER and DROP CONSTRAINT.

use base::key::ColumnOrder;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterTableCmd, ConstrType, Constraint, DropBehavior};

use super::super::super::{NoticeSeverity, Session, Sink};
use super::super::foreign::constraint_name;
use super::super::table::cut_name;
use super::inherited::checks_with;
use super::rewrite::about;
use catalog::store::{self, duplicate_relation};
use catalog::{Catalog, Checked, Column, Computed, Object, RelationKind, RelationRef, Table};
use execution::exec::program::Evaluate;
use syntax::parser::NodeEnum;
use types::Datum;

impl Session {
    /// ADD CONSTRAINT.
    pub(super) fn alter_add_constraint(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        match command.def.as_ref().and_then(|node| node.node.as_ref()) {
            Some(NodeEnum::Constraint(constraint)) => {
                self.add_to_existing(text, catalog, table, (constraint, None), command, sink)
            }
            _ => Err(Error::internal("a constraint without a definition")),
        }
    }

    /// Adds a constraint to a table that has rows.
    pub(super) fn add_to_existing(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        old: &Arc<Table>,
        (constraint, column): (&Constraint, Option<usize>),
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let kind = ConstrType::try_from(constraint.contype);
        let is_key = matches!(
            kind,
            Ok(ConstrType::ConstrPrimary | ConstrType::ConstrUnique | ConstrType::ConstrExclusion)
        );
        if is_key && !constraint.indexname.is_empty() {
            return self.add_using_index(catalog, old, constraint, sink);
        }
        let mut new = (**old).clone();
        if self.merges_check((text, catalog), (constraint, column), &mut new, sink)? {
            return self.put_table(&new);
        }
        self.add_constraint(text, catalog, constraint, column, &mut new)?;
        if is_key && old.kind == RelationKind::Partitioned {
            return self.add_partitioned_index(old, new, true);
        }
        if is_key {
            let columns = new.columns.clone();
            self.add_index(old, new)?;
            // A table whose rows get other keys has no NULLs in these.
            return match constraint.deferrable {
                true => self.check_key_columns(old, &columns),
                false => Ok(()),
            };
        }
        self.put_table(&new)?;
        let is_check = kind == Ok(ConstrType::ConstrCheck);
        if is_check && !constraint.is_no_inherit {
            self.add_check_below(&new, command, sink)?;
        }
        let has_rows = old.kind != RelationKind::Partitioned;
        if constraint.skip_validation || is_check && !has_rows {
            return Ok(());
        }
        let (_, table) = self.own_table(old.oid)?;
        match kind {
            Ok(ConstrType::ConstrCheck) => match table.checks.last() {
                Some(check) => self.check_condition(&table, &check.name),
                None => Ok(()),
            },
            Ok(ConstrType::ConstrForeign) => match table.foreign_keys.last() {
                Some(key) if old.kind == RelationKind::Partitioned => {
                    let key = key.clone();
                    self.add_foreign_key_below(&table, &key)
                }
                Some(key) => self.check_foreign_key(&table, key),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// UNIQUE or PRIMARY KEY USING INDEX.
    fn add_using_index(
        &mut self,
        catalog: &Arc<Catalog>,
        old: &Arc<Table>,
        constraint: &Constraint,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let place = usable_index(catalog, old, &constraint.indexname)?;
        let mut new = (**old).clone();
        let was = new.indexes[place].name.clone();
        let name = match constraint.conname.as_str() {
            "" => was.clone(),
            name => constraint_name(catalog, old, name, &[], "")?,
        };
        if name != was {
            let message = format!(
                "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{was}\" to \"{name}\""
            );
            let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
            self.notice(NoticeSeverity::Notice, body, sink)?;
            self.rename_claim(old.schema, &was, &name, new.indexes[place].oid)?;
            new.indexes[place].name = name;
        }
        new.indexes[place].constraint = self.new_oid()?;
        let primary = constraint.contype == ConstrType::ConstrPrimary as i32;
        if !primary && !constraint.deferrable {
            return self.put_table(&new);
        }
        if primary && old.primary_index().is_some() {
            return Err(Error::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!(
                    "multiple primary keys for table \"{}\" are not allowed",
                    old.name
                ),
            ));
        }
        let mut index = new.indexes.remove(place);
        // To a primary key NULLs are nothing.
        let nulls_equal = index.nulls_equal && !primary;
        index = index.of_columns();
        if primary {
            for column in &index.columns {
                new.columns[column.column].not_null = true;
            }
        }
        let database = catalog.database.oid;
        if constraint.deferrable {
            let initially_deferred = constraint.initdeferred;
            index.nulls_equal = nulls_equal;
            index.unique = false;
            index.checked = Some(Checked {
                primary,
                initially_deferred,
            });
            let old_tree = index.tree;
            index.tree = self.new_tree_beside(old_tree)?;
            new.indexes.insert(place, index);
            self.check_key_columns(old, &new.columns)?;
            self.build_indexes(database, old, &new)?;
            match &mut self.open {
                Some(open) => store::drop_tree(open.txn.as_mut(), old_tree)?,
                None => return Err(Error::internal("nothing is open")),
            }
        } else {
            self.check_key_columns(old, &new.columns)?;
            index.primary = true;
            new.indexes.insert(0, index);
            let new = self.with_new_trees(&new)?;
            self.rekey(database, old, &new)?;
        }
        self.changed_catalog();
        Ok(())
    }

    /// 23502 if a column that is NOT NULL from now on is NULL in any row.
    fn check_key_columns(&mut self, old: &Table, new: &[Column]) -> Result<()> {
        for (place, column) in new.iter().enumerate() {
            if column.not_null && old.columns.get(place).is_some_and(|old| !old.not_null) {
                self.check_not_null(old, place)?;
            }
        }
        Ok(())
    }

    /// Gives the name of an index to another one.
    pub(super) fn rename_claim(
        &mut self,
        schema: u32,
        from: &str,
        to: &str,
        oid: u32,
    ) -> Result<()> {
        let database = self.current_catalog()?.database.oid;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let (class, txn) = (store::NameClass::Relation, open.txn.as_mut());
        if !store::claim_name(txn, class, database, schema, to, oid)? {
            return Err(duplicate_relation(to));
        }
        store::free_name(txn, class, database, schema, from)
    }

    /// Checks all rows against one CHECK constraint.
    ///
    /// # Errors
    /// 23514.
    pub(super) fn check_condition(&mut self, table: &Arc<Table>, name: &str) -> Result<()> {
        let catalog = self.current_catalog()?;
        let checks = self.try_binding("", &catalog, |binder| binder.checks(table))?;
        let condition = checks.iter().find(|check| check.0 == name);
        let condition = condition.ok_or_else(|| Error::internal("a check that is not there"))?;
        self.for_each_row(table, |cx, _, row| {
            if condition.1.eval(cx, row)? != Datum::Bool(false) {
                return Ok(());
            }
            let message = format!(
                "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                table.name
            );
            let mut error = Error::new(SqlState::CHECK_VIOLATION, message);
            error.fields_mut().constraint = Some(name.to_owned());
            Err(about(error, &catalog, table))
        })
    }

    /// VALIDATE CONSTRAINT.
    pub(super) fn alter_validate(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let name = &command.name;
        let mut new = (**table).clone();
        if let Some(check) = new.checks.iter_mut().find(|check| check.name == *name) {
            if check.validated {
                return Ok(());
            }
            check.validated = true;
            self.check_condition(table, name)?;
        } else if let Some(key) = new.foreign_keys.iter_mut().find(|key| key.name == *name) {
            if key.validated {
                return Ok(());
            }
            key.validated = true;
            let parent = self.current_catalog()?.table_by_oid(key.table).cloned();
            if let Some(parent) = parent {
                self.lock_mode(&parent, base::engine::TableLock::RowShare)?;
            }
            let key = key.clone();
            self.check_foreign_key(table, &key)?;
        } else if constraint_oid(table, name).is_some() {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
                    table.name
                ),
            ));
        } else {
            return Err(missing(table, name));
        }
        self.put_table(&new)
    }

    /// ALTER CONSTRAINT: whether a foreign key can be deferred.
    pub(super) fn alter_constraint(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let definition = command.def.as_ref().and_then(|node| node.node.as_ref());
        let (name, deferrable, deferred) = match definition {
            Some(NodeEnum::Constraint(c)) => (&c.conname, c.deferrable, c.initdeferred),
            Some(NodeEnum::AtalterConstraint(c)) => (&c.conname, c.deferrable, c.initdeferred),
            _ => return Err(Error::internal("a constraint without a definition")),
        };
        let mut new = (**table).clone();
        let Some(key) = new.foreign_keys.iter_mut().find(|key| key.name == *name) else {
            return Err(match constraint_oid(table, name) {
                None => missing(table, name),
                Some(_) => Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!(
                        "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint",
                        table.name
                    ),
                ),
            });
        };
        let oid = key.oid;
        key.deferrable = deferrable;
        key.initially_deferred = deferred;
        let catalog = self.current_catalog()?;
        if table.part_above(oid).is_some() {
            return Err(derived(&catalog, table, (oid, name.as_str())));
        }
        self.put_table(&new)?;
        let mut changed = vec![oid];
        for below in &self.with_below(table.oid, command)?[1..] {
            let mut new = (**below).clone();
            for key in &mut new.foreign_keys {
                let above = below.part_above(key.oid);
                if above.is_some_and(|above| changed.contains(&above)) {
                    key.deferrable = deferrable;
                    key.initially_deferred = deferred;
                    changed.push(key.oid);
                }
            }
            self.put_table(&new)?;
        }
        Ok(())
    }

    /// DROP CONSTRAINT.
    pub(super) fn alter_drop_constraint(
        &mut self,
        table: &Arc<Table>,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if table
            .foreign_parts
            .iter()
            .any(|part| part.name == command.name)
        {
            return Err(Error::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!(
                    "cannot drop inherited constraint \"{}\" of relation \"{}\"",
                    command.name, table.name
                ),
            ));
        }
        let Some(oid) = constraint_oid(table, &command.name) else {
            let missing = missing(table, &command.name);
            return match command.missing_ok {
                true => self.skip(missing.message(), sink),
                false => Err(missing),
            };
        };
        let mut roots = vec![Object::Constraint(oid)];
        if table.checks.iter().any(|check| check.oid == oid) {
            if table.has_children() {
                self.with_below(table.oid, command)?;
            }
            let catalog = self.current_catalog()?;
            roots.extend(checks_with(&catalog, table, &command.name));
            let below = catalog.below(table);
            let checks = below.iter().flat_map(|below| &below.checks);
            let same = checks.filter(|check| check.name == command.name);
            roots.extend(same.map(|check| Object::Constraint(check.oid)));
        }
        let cascade = command.behavior == DropBehavior::DropCascade as i32;
        self.drop_objects(|_| Ok(roots.clone()), cascade, sink)
    }
}

/// XX000, as in PostgreSQL, for a foreign key of a partition that is a part of another.
fn derived(catalog: &Catalog, table: &Arc<Table>, (oid, name): (u32, &str)) -> Error {
    let (parent, whole) = catalog.whole_of(table, oid);
    let known = parent.foreign_keys.iter().find(|key| key.oid == whole);
    let message = format!(
        "cannot alter constraint \"{name}\" on relation \"{}\"",
        table.name
    );
    Error::new(SqlState::of("XX000"), message)
        .with_detail(format!(
            "Constraint \"{name}\" is derived from constraint \"{}\" of relation \"{}\".",
            known.map_or("", |key| &key.name),
            parent.name
        ))
        .with_hint("You may alter the constraint it derives from, instead.")
}

/// The oid of a table's constraint.
pub(super) fn constraint_oid(table: &Table, name: &str) -> Option<u32> {
    let mut indexes = table.indexes.iter().filter(|index| index.constraint != 0);
    let index = indexes.find(|index| index.name == name);
    let check = table.checks.iter().find(|check| check.name == name);
    let key = table.foreign_keys.iter().find(|key| key.name == name);
    index
        .map(|index| index.constraint)
        .or(check.map(|check| check.oid))
        .or(key.map(|key| key.oid))
}

/// Whether the table has a constraint of that name.
pub(in super::super) fn has_constraint(table: &Table, name: &str) -> bool {
    let mut parts = table.foreign_parts.iter();
    constraint_oid(table, name).is_some() || parts.any(|part| part.name == name)
}

/// # Errors
/// 42710 where it has.
pub(in super::super) fn check_no_constraint(table: &Table, name: &str) -> Result<()> {
    match has_constraint(table, name) {
        true => Err(constraint_twice(table, name)),
        false => Ok(()),
    }
}

/// 42710.
pub(in super::super) fn constraint_twice(table: &Table, name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_OBJECT,
        format!(
            "constraint \"{name}\" for relation \"{}\" already exists",
            table.name
        ),
    )
}

fn missing(table: &Table, name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!(
            "constraint \"{name}\" of relation \"{}\" does not exist",
            table.name
        ),
    )
}

/// The place of the index that is to become a constraint.
fn usable_index(catalog: &Catalog, table: &Table, name: &str) -> Result<usize> {
    let name = cut_name(name);
    let found = catalog.relation(table.schema, &name);
    let Some(RelationRef::Index(of, place)) = found else {
        return Err(Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("index \"{name}\" does not exist"),
        ));
    };
    let index = match catalog.tables[of].oid == table.oid {
        true => &table.indexes[place],
        false => {
            return Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "index \"{name}\" does not belong to table \"{}\"",
                    table.name
                ),
            ))
        }
    };
    if index.constraint != 0 {
        return Err(Error::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("index \"{name}\" is already associated with a constraint"),
        ));
    }
    let refused = |message: String| {
        Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
            .with_detail("Cannot create a primary key or unique constraint using such an index."))
    };
    if !index.is_unique() {
        return refused(format!("\"{name}\" is not a unique index"));
    }
    let on_columns = |computed: &Computed| {
        computed.condition.is_none() && computed.keys.iter().all(|key| key.text().is_none())
    };
    let computed = index.computed.as_deref();
    if let Some(computed) = computed.filter(|computed| !on_columns(computed)) {
        return refused(match computed.keys.iter().any(|key| key.text().is_some()) {
            true => format!("index \"{name}\" contains expressions"),
            false => format!("\"{name}\" is a partial index"),
        });
    }
    let is_other = |at: usize| {
        let order = index.key_order(table, at);
        order.is_some_and(|order| order.order != ColumnOrder::ASCENDING)
            || index.form.class(at) != 0
    };
    if let Some(at) = (0..index.key_count()).position(is_other) {
        return refused(format!(
            "index \"{name}\" column number {} does not have default sorting behavior",
            at + 1
        ));
    }
    Ok(place)
}
