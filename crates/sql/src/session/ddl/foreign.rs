//! Making FOREIGN KEY constraints, with CREATE TABLE and ALTER TABLE.
//!
//! What it refers to is settled here: the table, its columns, the unique index over them. The table
//! that is referred to is locked against writers until the transaction ends, and rows that are there
//! already are checked ([`Session::check_foreign_key`]).

use std::sync::Arc;

use base::engine::{LockWait, TableLock};
use base::{Error, Result, SqlState};
use pg_query::protobuf::{Constraint, Node};

use super::super::Session;
use super::alter::{check_no_constraint, has_constraint};
use super::table::{choose_name, cut_name};
use catalog::access::{denied, Guarded, Privileges};
use catalog::local::is_local;
use catalog::{Action, Catalog, ForeignKey, Index, RelationKind, Table};
use execution::exec::{foreign, Exec};
use execution::system::Relations;
use planner::bind::foreign::are_comparable;
use planner::bind::{self, qualified, BindContext};
use planner::plan::permit::Permit;
use syntax::parser::NodeEnum;

/// The state of a foreign key that cannot be one.
const INVALID_FOREIGN_KEY: SqlState = SqlState::of("42830");

impl Session {
    /// Adds a foreign key to a table's definition.
    ///
    /// # Errors
    /// 42703, 42830, 42804, 42710 as PostgreSQL has them.
    pub(super) fn add_foreign_key(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        constraint: &Constraint,
        column: Option<usize>,
        table: &mut Table,
    ) -> Result<()> {
        let parent = self.referenced_table(text, catalog, constraint, table)?;
        if parent.unlogged && !table.unlogged && !is_local(table.oid) {
            return Err(Error::new(
                SqlState::INVALID_TABLE_DEFINITION,
                "constraints on permanent tables may reference only permanent tables",
            ));
        }
        let columns = match column {
            Some(column) => vec![column],
            None => named_columns(table, &constraint.fk_attrs, "foreign key constraint")?,
        };
        let (referenced, index) = referenced_columns(&parent, &constraint.pk_attrs)?;
        if !catalog.is_whole(&parent, index.oid) {
            return Err(no_unique(&parent));
        }
        self.may_refer_to(catalog, &parent, &referenced)?;
        if columns.len() != referenced.len() {
            return Err(Error::new(
                INVALID_FOREIGN_KEY,
                "number of referencing and referenced columns for foreign key disagree",
            ));
        }
        let set_columns =
            named_columns(table, &constraint.fk_del_set_cols, "foreign key constraint")?;
        if let Some(place) = set_columns.iter().find(|place| !columns.contains(place)) {
            return Err(Error::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "column \"{}\" referenced in ON DELETE SET action must be part of foreign key",
                    table.columns[*place].name
                ),
            ));
        }
        if constraint.skip_validation && table.kind == RelationKind::Partitioned {
            let message = format!(
                "cannot add NOT VALID foreign key on partitioned table \"{}\" referencing relation \"{}\"",
                table.name, parent.name
            );
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message)
                .with_detail("This feature is not yet supported on partitioned tables."));
        }
        let name = constraint_name(catalog, table, &constraint.conname, &columns, "fkey")?;
        check_types(&name, table, &columns, &parent, &referenced)?;
        let key = ForeignKey {
            oid: self.new_oid()?,
            name,
            columns,
            table: parent.oid,
            index: index.oid,
            referenced,
            match_full: constraint.fk_matchtype == "f",
            on_delete: Action::of_letter(&constraint.fk_del_action),
            on_update: Action::of_letter(&constraint.fk_upd_action),
            set_columns,
            deferrable: constraint.deferrable,
            initially_deferred: constraint.initdeferred,
            validated: !constraint.skip_validation,
        };
        if parent.kind == RelationKind::Partitioned {
            let below = catalog.below_by_bounds(&parent);
            let below: Vec<u32> = below.iter().map(|table| table.oid).collect();
            for partition in &below {
                let (_, partition) = self.own_table(*partition)?;
                self.lock_mode(&partition, TableLock::ShareRowExclusive)?;
            }
            // The name is taken from now on.
            table.foreign_keys.push(key.clone());
            self.name_foreign_parts(catalog, table, (&key, &below))?;
            table.foreign_keys.pop();
        }
        table.foreign_keys.push(key);
        Ok(())
    }

    /// 42501 unless the role may make foreign keys to these columns.
    fn may_refer_to(&self, catalog: &Catalog, parent: &Table, columns: &[usize]) -> Result<()> {
        if catalog.table_by_oid(parent.oid).is_none() {
            // It is being made by the same statement.
            return Ok(());
        }
        let (role, refer) = (self.shared.settings.current_role(), Privileges::REFERENCES);
        let holds = |place: &usize| {
            let column = u32::try_from(place + 1).unwrap_or(u32::MAX);
            catalog.holds_column(role, parent.oid, column, refer)
        };
        if catalog.holds(role, Guarded::Table, parent.oid, refer) || columns.iter().all(holds) {
            return Ok(());
        }
        Err(denied(parent.kind.noun(), &parent.name))
    }

    /// The table that a foreign key refers to, locked against writers; perhaps the one that is
    /// being made.
    fn referenced_table(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        constraint: &Constraint,
        table: &Table,
    ) -> Result<Arc<Table>> {
        let range = constraint
            .pktable
            .as_ref()
            .ok_or_else(|| Error::internal("a foreign key to no table"))?;
        let search_path = self.search_path(catalog);
        let schema = match range.schemaname.as_str() {
            "" => None,
            name => catalog.schema(name).map(|schema| schema.oid),
        };
        let cx = BindContext {
            catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text: "",
            literals: None,
            variables: None,
        };
        let is_own = range.relname == table.name
            && (schema == Some(table.schema) || range.schemaname.is_empty());
        let found = bind::find_table(&cx, range);
        let parent = match found {
            Err(_) if is_own => return Ok(Arc::new(table.clone())),
            Ok(found) if is_own && found.oid == table.oid => return Ok(Arc::new(table.clone())),
            found => found?,
        };
        let _ = text;
        if !matches!(parent.kind, RelationKind::Table | RelationKind::Partitioned) {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "referenced relation \"{}\" is not a table",
                    qualified(range)
                ),
            ));
        }
        self.lock_mode(&parent, TableLock::ShareRowExclusive)?;
        let now = self.current_catalog()?;
        match now.table_by_oid(parent.oid) {
            Some(same) if same.tree == parent.tree => Ok(same.clone()),
            _ => Err(Error::serialization(
                "could not serialize access due to concurrent update",
            )),
        }
    }

    pub(super) fn lock_mode(&mut self, table: &Table, mode: TableLock) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.txn.lock_table(table.tree, mode, LockWait::Block)?;
        open.txn.begin_statement()
    }

    /// Checks that the rows of a table, which is in the catalog, meet one of its foreign keys.
    ///
    /// # Errors
    /// 23503 for the first that does not.
    pub(super) fn check_foreign_key(&mut self, table: &Arc<Table>, key: &ForeignKey) -> Result<()> {
        let catalog = self.current_catalog()?;
        let rules = self.try_binding("", &catalog, |binder| binder.rules_of(table, key))?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.txn.begin_statement()?;
        let permit = Permit::of_definition(&catalog);
        let eval = self.eval.clone();
        let mut cx = Exec::new(&Relations, self, permit, &eval, &[]);
        foreign::check_existing(&rules, 0, &mut cx)
    }
}

/// The places of the columns that a list names.
fn named_columns(table: &Table, names: &[Node], what: &str) -> Result<Vec<usize>> {
    let mut places = Vec::new();
    for node in names {
        let Some(NodeEnum::String(name)) = &node.node else {
            continue;
        };
        let place = table.column(&name.sval).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{}\" referenced in {what} does not exist",
                    name.sval
                ),
            )
        })?;
        places.push(place);
    }
    Ok(places)
}

/// The columns that are referred to and the unique index over them: those of the primary key if
/// none are named.
fn referenced_columns<'t>(parent: &'t Table, names: &[Node]) -> Result<(Vec<usize>, &'t Index)> {
    if names.is_empty() {
        let index = parent.primary_index().ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "there is no primary key for referenced table \"{}\"",
                    parent.name
                ),
            )
        })?;
        if index.checked.is_some() {
            return Err(deferrable("primary key", parent));
        }
        let columns = index.columns.iter().map(|column| column.column).collect();
        return Ok((columns, index));
    }
    let places = named_columns(parent, names, "foreign key constraint")?;
    for (at, place) in places.iter().enumerate() {
        if places[..at].contains(place) {
            return Err(Error::new(
                INVALID_FOREIGN_KEY,
                "foreign key referenced-columns list must not contain duplicates",
            ));
        }
    }
    let is_on = |index: &Index| {
        let mut columns = index.columns.iter();
        index.columns.len() == places.len() && columns.all(|column| places.contains(&column.column))
    };
    let fits = |index: &&Index| index.unique && is_on(index);
    let is_on_null_too = |index: &Index| {
        let mut keys = (0..index.key_count()).map(|at| index.key_column(at));
        index.nulls_equal
            && index.key_count() == places.len()
            && keys.all(|key| key.is_some_and(|key| places.contains(&key)))
    };
    match parent.indexes.iter().find(fits) {
        Some(index) => Ok((places, index)),
        None if parent
            .indexes
            .iter()
            .any(|index| index.checked.is_some() && is_on(index)) =>
        {
            Err(deferrable("unique constraint", parent))
        }
        None if parent.indexes.iter().any(is_on_null_too) => Err(Error::unsupported(
            "a foreign key to a NULLS NOT DISTINCT constraint",
        )),
        None => Err(no_unique(parent)),
    }
}

/// 55000 for a foreign key to what may be equal for a while.
fn deferrable(what: &str, parent: &Table) -> Error {
    Error::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "cannot use a deferrable {what} for referenced table \"{}\"",
            parent.name
        ),
    )
}

fn no_unique(parent: &Table) -> Error {
    let message = format!(
        "there is no unique constraint matching given keys for referenced table \"{}\"",
        parent.name
    );
    Error::new(INVALID_FOREIGN_KEY, message)
}

pub(super) fn check_types(
    name: &str,
    table: &Table,
    columns: &[usize],
    parent: &Table,
    referenced: &[usize],
) -> Result<()> {
    for (from, to) in columns.iter().zip(referenced) {
        let (child, parent) = (&table.columns[*from], &parent.columns[*to]);
        if are_comparable(child.type_id, parent.type_id) {
            continue;
        }
        return Err(Error::new(
            SqlState::DATATYPE_MISMATCH,
            format!("foreign key constraint \"{name}\" cannot be implemented"),
        )
        .with_detail(format!(
            "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
            child.name, parent.name, child.type_id, parent.type_id
        )));
    }
    Ok(())
}

/// The name of a new constraint that has no index: the one given, or one made of the table's and the
/// columns' names that no constraint of the schema has.
///
/// # Errors
/// 42710 when the table has one of the name given.
pub(super) fn constraint_name(
    catalog: &Catalog,
    table: &Table,
    given: &str,
    columns: &[usize],
    suffix: &str,
) -> Result<String> {
    if !given.is_empty() {
        let name = cut_name(given);
        check_no_constraint(table, &name)?;
        return Ok(name);
    }
    let names: Vec<_> = columns
        .iter()
        .map(|place| table.columns[*place].name.as_str())
        .collect();
    Ok(choose_name(&table.name, &names.join("_"), suffix, |name| {
        let mut others = catalog.tables.iter();
        has_constraint(table, name)
            || others.any(|other| other.schema == table.schema && has_constraint(other, name))
    }))
}
