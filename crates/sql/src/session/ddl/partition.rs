//! Partitioned tables and their partitions: PARTITION BY, PARTITION OF, and what their bounds may be.
//!
//! ```text
//! create table m (k int, v text) partition by range (k)       m: a key, and partitions []
//! create table m1 partition of m for values from (1) to (9)   m1: m's columns, its bound; m: partitions [m1]
//! ```
//! Whoever makes a partition holds the parent's lock against everybody, and that of the default partition,
//! whose rows are looked at: none may belong to the new one.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    ConstrType, Constraint, CreateStmt, Node, PartitionBoundSpec, PartitionElem, PartitionSpec,
    PartitionStrategy,
};

use super::super::Session;
use super::alter::about;
use catalog::local::is_local;
use catalog::partition::{has_hash, Bound, KeyPart, PartitionKey, PartitionOf, Strategy};
use catalog::{Catalog, Check, Identity, KeySource, RelationKind, Table};
use execution::exec::program::Evaluate;
use syntax::parser::{self, NodeEnum};
use types::{self, Datum};

mod bounds;
mod foreign;
mod indexes;
mod triggers;

pub(super) use indexes::{adds_key, check_covers, refuse_dropping_part, same_index};
use indexes::{put_index, two_keys};
pub(super) use triggers::refuse_dropping_part as refuse_dropping_trigger;

/// A key has at most so many parts.
const KEY_PARTS_MAX: usize = 32;

/// 42P17.
fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("42P17"), message)
}

/// 42P16.
fn definition(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

pub(super) fn placed(text: &str, location: i32, error: Error) -> Error {
    match parser::char_position(text, location) {
        Some(position) => error.at(position),
        None => error,
    }
}

/// Refuses what cannot be there with partitions.
pub(super) fn refuse_combinations(create: &CreateStmt, local: bool) -> Result<()> {
    let partitioned = create.partspec.is_some() || create.partbound.is_some();
    match partitioned && local {
        true => Err(Error::unsupported("a temporary partitioned table")),
        false => Ok(()),
    }
}

impl Session {
    /// PARTITION BY of a table whose columns are there.
    pub(super) fn add_partition_key(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        spec: &PartitionSpec,
        table: &mut Table,
    ) -> Result<()> {
        let strategy = match PartitionStrategy::try_from(spec.strategy) {
            Ok(PartitionStrategy::List) => Strategy::List,
            Ok(PartitionStrategy::Range) => Strategy::Range,
            Ok(PartitionStrategy::Hash) => Strategy::Hash,
            _ => return Err(Error::unsupported("this strategy of PARTITION BY")),
        };
        if spec.part_params.len() > KEY_PARTS_MAX {
            let message = format!("cannot partition using more than {KEY_PARTS_MAX} columns");
            return Err(Error::new(SqlState::of("54011"), message));
        }
        if strategy == Strategy::List && spec.part_params.len() != 1 {
            return Err(invalid(
                "cannot use \"list\" partition strategy with more than one column",
            ));
        }
        let mut parts = Vec::new();
        for node in &spec.part_params {
            if let Some(NodeEnum::PartitionElem(element)) = &node.node {
                parts.push(self.key_part(text, catalog, element, strategy, table)?);
            }
        }
        table.kind = RelationKind::Partitioned;
        table.partition_key = Some(Box::new(PartitionKey {
            strategy,
            parts,
            partitions: Vec::new(),
        }));
        Ok(())
    }

    fn key_part(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        element: &PartitionElem,
        strategy: Strategy,
        table: &Table,
    ) -> Result<KeyPart> {
        if !element.opclass.is_empty() || !element.collation.is_empty() {
            let what = "an operator class or collation in a partition key";
            return Err(placed(text, element.location, Error::unsupported(what)));
        }
        let (source, uses) = match &element.expr {
            None => {
                let place = table.column(&element.name).ok_or_else(|| {
                    let message = format!(
                        "column \"{}\" named in partition key does not exist",
                        element.name
                    );
                    let error = Error::new(SqlState::UNDEFINED_COLUMN, message);
                    placed(text, element.location, error)
                })?;
                (KeySource::Column(place), vec![place])
            }
            Some(expr) => {
                let so_far = Arc::new(table.clone());
                let checked = self.try_binding(text, catalog, |binder| {
                    binder.check_partition_key(&so_far, expr)
                })?;
                let named = checked.uses.iter().map(|uses| uses.relation);
                self.may_use_types_of(catalog, named)?;
                (checked.kept, checked.columns)
            }
        };
        let given = uses.iter().map(|place| table.columns[*place].collation);
        let mut given = given.filter_map(|oid| catalog.collation(oid));
        if strategy == Strategy::Range && given.any(|known| !known.is_bytewise()) {
            let what = "partitions by ranges of texts under a collation of ICU";
            return Err(placed(text, element.location, Error::unsupported(what)));
        }
        let generated = uses.iter().find(|place| table.columns[**place].generated);
        if let Some(place) = generated {
            let error =
                invalid("cannot use generated column in partition key").with_detail(format!(
                    "Column \"{}\" is a generated column.",
                    table.columns[*place].name
                ));
            return Err(placed(text, element.location, error));
        }
        let part = KeyPart {
            source,
            collation: 0,
            uses,
        };
        let ty = part.type_id(table);
        let (known, method) = match strategy {
            Strategy::Hash => (ty.is_sortable() && ty.is_hashable(), "hash"),
            _ => (ty.is_sortable(), "btree"),
        };
        if !known {
            let message = format!(
                "data type {ty} has no default operator class for access method \"{method}\""
            );
            let hint = format!(
                "You must specify a {method} operator class or define a default {method} operator \
                 class for the data type."
            );
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message).with_hint(hint));
        }
        if strategy == Strategy::Hash && !has_hash(ty) {
            return Err(Error::unsupported(format!(
                "PARTITION BY HASH of a key of type {ty}"
            )));
        }
        Ok(part)
    }

    /// The columns and constraints that a partition has from its parent.
    pub(super) fn inherit(&mut self, parent: &Table, table: &mut Table) -> Result<()> {
        let mut places = Vec::with_capacity(parent.columns.len());
        for column in &parent.columns {
            places.push(table.columns.len());
            if column.dropped {
                continue;
            }
            let mut own = column.clone();
            own.missing = None;
            if own.identity != Identity::None {
                own.identity = Identity::None;
                own.default = None;
                own.default_uses.clear();
            }
            table.columns.push(own);
        }
        for column in &mut table.columns {
            for from in &mut column.generated_from {
                *from = places[*from];
            }
        }
        for check in &parent.checks {
            table.checks.push(Check {
                oid: self.new_oid()?,
                columns: check.columns.iter().map(|place| places[*place]).collect(),
                ..check.clone()
            });
        }
        Ok(())
    }

    /// What CREATE TABLE … PARTITION OF and OF say of columns, which are the parent's or the type's.
    pub(super) fn own_clauses(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        create: &CreateStmt,
        table: &mut Table,
        constraints: &mut Vec<(Constraint, Option<usize>)>,
    ) -> Result<()> {
        let mut named = Vec::new();
        for element in &create.table_elts {
            let Some(NodeEnum::ColumnDef(column)) = &element.node else {
                continue;
            };
            let name = &column.colname;
            let wrong = |state, message| Err(Error::new(state, message));
            let Some(place) = table.column(name) else {
                let message = format!("column \"{name}\" does not exist");
                return wrong(SqlState::UNDEFINED_COLUMN, message);
            };
            if named.contains(&place) {
                let message = format!("column \"{name}\" specified more than once");
                return wrong(SqlState::DUPLICATE_COLUMN, message);
            }
            named.push(place);
            let generation = |node: &Node| match &node.node {
                Some(NodeEnum::Constraint(constraint)) => {
                    match ConstrType::try_from(constraint.contype) {
                        Ok(ConstrType::ConstrIdentity) => Some("identity"),
                        Ok(ConstrType::ConstrGenerated) => Some("generated"),
                        _ => None,
                    }
                }
                _ => None,
            };
            if let Some(what) = column.constraints.iter().find_map(generation) {
                let of_type = create.of_typename.is_some();
                return Err(match of_type {
                    false => Error::unsupported("GENERATED for a column of a partition"),
                    true => Error::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!("{what} columns are not supported on typed tables"),
                    ),
                });
            }
            let mut made = table.columns[place].clone();
            let about = (place, &*table.name, false);
            self.column_clauses(text, catalog, column, &mut made, about, constraints)?;
            table.columns[place] = made;
        }
        Ok(())
    }

    /// Makes a table that is to be a partition one, if its bound leaves room for it: of a parent that is
    /// locked against everybody.
    pub(super) fn add_partition(
        &mut self,
        text: &str,
        parent: &Arc<Table>,
        of: PartitionOf,
        spec: Option<&PartitionBoundSpec>,
        table: &mut Table,
    ) -> Result<Table> {
        let catalog = self.current_catalog()?;
        self.check_partition_bound(text, &catalog, parent, &of, spec, &table.name)?;
        let default = catalog.partitions(parent);
        let mut default = default.filter(|(_, known)| known.bound == Bound::Default);
        let default = default.next().map(|(default, _)| default.clone());
        if let Some(default) = default {
            self.check_default(parent, &default, &of.bound)?;
        }
        let mut new = (**parent).clone();
        if let Some(key) = &mut new.partition_key {
            key.partitions.push(table.oid);
        }
        table.partition_of = Some(Box::new(of));
        for index in &parent.indexes {
            let own = self.index_below(&catalog, parent, index, table)?;
            if own.is_primary() && table.primary_index().is_some() {
                return Err(two_keys(table));
            }
            check_covers(table, &own)?;
            put_index(table, own, index.oid);
        }
        for key in &parent.foreign_keys {
            self.lower_foreign_key(&catalog, (parent, key), table)?;
        }
        for trigger in parent.triggers.iter().filter(|own| own.for_each_row) {
            self.lower_trigger(parent, trigger, table)?;
        }
        Ok(new)
    }

    /// 23514 if a row of the default partition would be another's.
    pub(super) fn check_default(
        &mut self,
        parent: &Table,
        default: &Arc<Table>,
        bound: &Bound,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let mut tables = vec![default.clone()];
        tables.extend(catalog.below(default));
        for table in tables {
            self.lock_fully(&table)?;
            if !table.kind.has_rows() {
                continue;
            }
            let catalog = self.current_catalog()?;
            let Some(table) = catalog.table_by_oid(table.oid).cloned() else {
                continue;
            };
            let shown = Arc::new(parent.clone());
            let level = self.try_binding("", &catalog, |binder| {
                binder.partition_level(&table, &shown, vec![bound.clone()])
            })?;
            self.for_each_row(&table, |cx, _, row| {
                let key: Result<Vec<Datum>> = level
                    .programs
                    .iter()
                    .map(|part| part.eval(cx, row))
                    .collect();
                match bound.names(&level.types, &key?) {
                    false => Ok(()),
                    true => {
                        let message = format!(
                            "updated partition constraint for default partition \"{}\" would be \
                             violated by some row",
                            table.name
                        );
                        let error = Error::new(SqlState::CHECK_VIOLATION, message);
                        Err(about(error, &catalog, &table))
                    }
                }
            })?;
        }
        Ok(())
    }

    /// The partitioned table that PARTITION OF names, locked against everybody.
    pub(super) fn parent_of(&mut self, create: &CreateStmt) -> Result<Arc<Table>> {
        let named = create
            .inh_relations
            .first()
            .and_then(|node| node.node.as_ref());
        let Some(NodeEnum::RangeVar(range)) = named else {
            return Err(Error::internal("PARTITION OF nothing"));
        };
        let parent = self.lock_table(range)?;
        if parent.kind != RelationKind::Partitioned {
            return Err(invalid(format!("\"{}\" is not partitioned", parent.name)));
        }
        match is_local(parent.oid) {
            true => Err(Error::unsupported("a temporary partitioned table")),
            false => {
                self.refuse_in_use(&parent, "CREATE TABLE .. PARTITION OF")?;
                Ok(parent)
            }
        }
    }

    /// Takes tables that are dropped off the lists of parents that stay.
    pub(super) fn forget_children(catalog: &Catalog, dropped: &[u32]) -> Vec<Table> {
        let mut changed: Vec<Table> = Vec::new();
        for oid in dropped {
            let Some(table) = catalog.table_by_oid(*oid) else {
                continue;
            };
            let of = table.partition_of.iter().map(|of| &of.parent);
            let parents = of.chain(table.inherits_from());
            for above in parents.filter(|above| !dropped.contains(above)) {
                let known = changed.iter().position(|known| known.oid == *above);
                let place = match (known, catalog.table_by_oid(*above)) {
                    (Some(place), _) => place,
                    (None, Some(parent)) => {
                        changed.push((**parent).clone());
                        changed.len() - 1
                    }
                    (None, None) => continue,
                };
                if let Some(key) = &mut changed[place].partition_key {
                    key.partitions.retain(|known| known != oid);
                }
                if let Some(own) = &mut changed[place].inheritance {
                    own.children.retain(|known| known != oid);
                }
            }
        }
        changed
    }
}
