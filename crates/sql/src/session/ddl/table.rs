//! CREATE TABLE.

use base::key::ColumnOrder;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{ColumnDef, ConstrType, Constraint, CreateStmt, Node};

use super::super::utility::tag;
use super::super::{CommandTag, Session, Sink};
use super::alter::{check_no_constraint, compression_of, set_options};
use super::foreign::constraint_name;
use super::index::index_of;
use catalog::local::is_local;
use catalog::store::{self, duplicate_relation};
use catalog::{
    view, Catalog, Check, Checked, Column, ComputedKey, Identity, Index, KeySource, RelationKind,
    Table,
};
use planner::bind::{self, BindContext, Binder, Variables};
use syntax::parser::{self, NodeEnum};
use types::{self, TypeId};

/// Names are cut at this length, as PostgreSQL's are.
const NAME_BYTES_MAX: usize = 63;

impl Session {
    pub(in crate::session) fn create_table(
        &mut self,
        text: &str,
        create: &CreateStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let range = create
            .relation
            .as_ref()
            .ok_or_else(|| Error::internal("a table without a name"))?;
        let catalog = self.current_catalog()?;
        let schema = self.schema_for(&catalog, text, range)?;
        let partitioned = create.partspec.is_some();
        self.check_tablespace(&catalog, &create.tablespacename, partitioned)?;
        let name = cut_name(&range.relname);
        if catalog.has_relation(schema, &name) {
            self.pass_over_existing(&name, create.if_not_exists, sink)?;
            return Ok(tag("CREATE TABLE"));
        }
        let parent = match &create.partbound {
            Some(_) => Some(self.parent_of(create)?),
            None => None,
        };
        let parents = self.named_parents(create)?;
        let catalog = self.current_catalog()?;
        let oid = self.new_oid()?;
        super::partition::refuse_combinations(create, is_local(oid))?;
        self.note_on_commit(oid, create.oncommit, is_local(oid))?;
        let mut table = Table {
            oid,
            schema,
            name,
            owner: self.own_role(&catalog)?,
            kind: RelationKind::Table,
            tree: self.new_rows_tree(&create.options, parent.as_deref())?,
            unlogged: range.relpersistence == "u",
            ..Table::default()
        };
        set_options(&mut table, &create.options)?;
        let mut constraints = Vec::new();
        let mut sequences = Vec::new();
        let mut inherited = self.inherit_from(&catalog, parents, &mut table, sink)?;
        if let Some(parent) = &parent {
            self.inherit(parent, &mut table)?;
        }
        if let Some(name) = &create.of_typename {
            self.add_columns_of_type(&catalog, name, &mut table)?;
        }
        // Columns are another's, and what stands here is said of them.
        let has_columns = parent.is_some() || create.of_typename.is_some();
        if has_columns {
            self.own_clauses(text, &catalog, create, &mut table, &mut constraints)?;
        }
        for element in &create.table_elts {
            match &element.node {
                Some(NodeEnum::ColumnDef(_)) if has_columns => {}
                Some(NodeEnum::ColumnDef(column)) => {
                    let (of, others) = (&mut inherited, &sequences);
                    let at = (text, &catalog);
                    let made = self.add_own_column(
                        at,
                        column,
                        of,
                        &mut table,
                        &mut constraints,
                        others,
                        sink,
                    )?;
                    sequences.extend(made);
                }
                Some(NodeEnum::Constraint(constraint)) => {
                    constraints.push(((**constraint).clone(), None));
                }
                Some(NodeEnum::TableLikeClause(_)) if !table.inherits_from().is_empty() => {
                    return Err(Error::unsupported("LIKE beside INHERITS"));
                }
                Some(NodeEnum::TableLikeClause(like)) => {
                    self.add_like(text, like, &mut table, &mut sequences)?;
                }
                _ => return Err(Error::unsupported("this part of CREATE TABLE")),
            }
        }
        let own = create.table_elts.iter().filter(|_| !has_columns);
        for element in own {
            if let Some(NodeEnum::ColumnDef(column)) = &element.node {
                self.add_generation(text, &catalog, column, &mut table)?;
            }
        }
        Self::check_inherited_defaults(&inherited, &table)?;
        order_constraints(&mut constraints);
        if let Some(spec) = &create.partspec {
            self.add_partition_key(text, &catalog, spec, &mut table)?;
        }
        for (constraint, column) in &constraints {
            let said = (constraint, *column);
            if !self.merges_check((text, &catalog), said, &mut table, sink)? {
                self.add_constraint(text, &catalog, constraint, *column, &mut table)?;
            }
        }
        let parent = match (&parent, &create.partbound) {
            (Some(parent), Some(spec)) => {
                let of = self.bound_of(text, parent, spec)?;
                Some(self.add_partition(text, parent, of, Some(spec), &mut table)?)
            }
            _ => None,
        };
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        if table.kind.has_rows() {
            table.long_tree = store::long_tree(&table);
        }
        store::insert_table(open.txn.as_mut(), &catalog, &table)?;
        if let Some(parent) = &parent {
            store::update_table(open.txn.as_mut(), catalog.database.oid, parent)?;
        }
        inherited.list(open.txn.as_mut(), catalog.database.oid, oid)?;
        for sequence in &mut sequences {
            sequence.unlogged = table.unlogged;
            store::insert_table(open.txn.as_mut(), &catalog, sequence)?;
        }
        if let Some(parent) = parent {
            self.changed_catalog();
            self.name_parts_of_new(&Arc::new(parent), &[oid])?;
        }
        Ok(tag("CREATE TABLE"))
    }

    /// The sequence of the serial or identity column that was added last.
    pub(super) fn own_sequence(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        column: &ColumnDef,
        table: &mut Table,
        others: &[Table],
    ) -> Result<Option<Table>> {
        let place = table.columns.len() - 1;
        let identity = column.constraints.iter().find_map(|node| match &node.node {
            Some(NodeEnum::Constraint(constraint))
                if constraint.contype == ConstrType::ConstrIdentity as i32 =>
            {
                Some(constraint)
            }
            _ => None,
        });
        let is_serial = serial_type(column).is_some();
        let made = &mut table.columns[place];
        if let Some(identity) = identity {
            if !matches!(made.type_id, TypeId::INT2 | TypeId::INT4 | TypeId::INT8) {
                return Err(super::sequence::wrong_type(true));
            }
            if made.default.is_some() || is_serial {
                let message = format!(
                    "both default and identity specified for column \"{}\" of table \"{}\"",
                    made.name, table.name
                );
                return Err(placed(text, identity, message));
            }
            made.not_null = true;
            made.identity = match identity.generated_when.as_str() {
                "a" => Identity::Always,
                _ => Identity::ByDefault,
            };
        } else if !is_serial {
            return Ok(None);
        }
        let taken = |name: &str| name == table.name || others.iter().any(|one| one.name == name);
        let options = identity.map(|identity| identity.options.as_slice());
        let sequence = self.column_sequence(text, catalog, table, place, options, taken)?;
        let made = &mut table.columns[place];
        made.default_uses = vec![sequence.oid];
        if identity.is_none() {
            made.default = Some(view::next_value(sequence.oid));
        }
        Ok(Some(sequence))
    }

    /// What a generated column is computed from, once all columns are known.
    pub(super) fn add_generation(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        column: &ColumnDef,
        table: &mut Table,
    ) -> Result<()> {
        let found = column.constraints.iter().find_map(|node| match &node.node {
            Some(NodeEnum::Constraint(constraint))
                if constraint.contype == ConstrType::ConstrGenerated as i32 =>
            {
                Some(constraint)
            }
            _ => None,
        });
        let (Some(constraint), Some(place)) = (found, table.column(&cut_name(&column.colname)))
        else {
            return Ok(());
        };
        if constraint.generated_kind == "v" {
            return Err(Error::unsupported("a virtual generated column"));
        }
        let made = &table.columns[place];
        let other = match (made.default.is_some(), made.identity) {
            (true, _) => Some("default"),
            (_, Identity::None) => None,
            _ => Some("identity"),
        };
        if let Some(other) = other {
            let message = format!(
                "both {other} and generation expression specified for column \"{}\" of table \"{}\"",
                made.name, table.name
            );
            return Err(placed(text, constraint, message));
        }
        let expression = constraint
            .raw_expr
            .as_ref()
            .ok_or_else(|| Error::internal("an empty generation expression"))?;
        let so_far = Arc::new(table.clone());
        let from = self.try_binding(text, catalog, |binder| {
            binder.check_generated(&so_far, place, expression)
        })?;
        let (kept, named) = self.try_binding("", catalog, |binder| {
            binder.fixed_part(expression, |binder, node| {
                binder.check_generated(&so_far, place, node).map(drop)
            })
        })?;
        self.may_use_types_of(catalog, named.uses().iter().map(|uses| uses.relation))?;
        let made = &mut table.columns[place];
        made.default = Some(kept);
        made.generated_from = from;
        Ok(())
    }

    /// The oid of the role that owns what the session makes.
    ///
    /// # Errors
    /// 42704 when it is gone.
    pub(in crate::session) fn own_role(&self, catalog: &Catalog) -> Result<u32> {
        let own = self.shared.settings.current_role();
        catalog.known_role(own).map(|role| role.oid)
    }

    pub(super) fn add_column(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        column: &ColumnDef,
        table: &mut Table,
        constraints: &mut Vec<(Constraint, Option<usize>)>,
    ) -> Result<()> {
        let name = cut_name(&column.colname);
        let serial = serial_type(column);
        if table.column(&name).is_some() {
            return Err(Error::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        if table.columns.len() >= base::limits::COLUMNS_MAX {
            return Err(Error::new(
                SqlState::TOO_MANY_COLUMNS,
                format!(
                    "tables can have at most {} columns",
                    base::limits::COLUMNS_MAX
                ),
            ));
        }
        let search_path = self.search_path(catalog);
        let cx = BindContext {
            catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text,
            literals: None,
            variables: None,
        };
        let type_name = column
            .type_name
            .as_ref()
            .ok_or_else(|| Error::internal("a column without a type"))?;
        let (type_id, typmod) = match serial {
            Some(type_id) => (type_id, types::NO_TYPMOD),
            None => bind::type_names::resolve(&cx, type_name)?,
        };
        self.may_use_type(catalog, type_id)?;
        super::composite::check_not_itself(catalog, table, type_id)?;
        let (declared, (type_id, typmod)) = match type_id.is_of_domain() {
            true => (type_id, catalog.base_type(type_id)),
            false => (TypeId::NONE, (type_id, typmod)),
        };
        if type_id.category() == types::Category::Pseudo || type_id == TypeId::UNKNOWN {
            return Err(Error::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("column \"{name}\" has pseudo-type {type_id}"),
            ));
        }
        let collation = match &column.coll_clause {
            Some(clause) => self.given_collation(text, catalog, clause, type_id)?,
            None => catalog.domain_collation(declared),
        };
        let place = table.columns.len();
        let mut made = Column {
            name,
            type_id,
            typmod,
            domain: declared,
            collation,
            not_null: column.is_not_null || serial.is_some(),
            ..Column::default()
        };
        if !column.storage_name.is_empty() {
            return Err(Error::unsupported("STORAGE of a new column"));
        }
        if !column.compression.is_empty() {
            made.compression = compression_of(&column.compression, &made)?;
        }
        let about = (place, &*table.name, serial.is_some());
        self.column_clauses(text, catalog, column, &mut made, about, constraints)?;
        table.columns.push(made);
        Ok(())
    }

    /// What stands behind the name and the type of a column, as far as it is the column's.
    pub(super) fn column_clauses(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        column: &ColumnDef,
        made: &mut Column,
        (place, table, mut has_default): (usize, &str, bool),
        constraints: &mut Vec<(Constraint, Option<usize>)>,
    ) -> Result<()> {
        check_attributes(text, &column.constraints)?;
        let mut nullness = None;
        let mut has_identity = false;
        for node in &column.constraints {
            let Some(NodeEnum::Constraint(constraint)) = &node.node else {
                continue;
            };
            match ConstrType::try_from(constraint.contype) {
                Ok(kind @ (ConstrType::ConstrNotnull | ConstrType::ConstrNull)) => {
                    let wanted = kind == ConstrType::ConstrNotnull;
                    if nullness.is_some_and(|said| said != wanted) {
                        return Err(conflicting_nulls(text, constraint, &made.name, table));
                    }
                    nullness = Some(wanted);
                    made.not_null |= wanted;
                }
                Ok(ConstrType::ConstrDefault) => {
                    let default = constraint
                        .raw_expr
                        .as_ref()
                        .ok_or_else(|| Error::internal("an empty default"))?;
                    if has_default {
                        let message = format!(
                            "multiple default values specified for column \"{}\" of table \"{}\"",
                            made.name, table
                        );
                        return Err(placed(text, constraint, message));
                    }
                    (made.default, made.default_uses) =
                        self.column_default(text, catalog, made, default)?;
                    has_default = true;
                }
                Ok(ConstrType::ConstrIdentity) => {
                    if std::mem::replace(&mut has_identity, true) {
                        let message = format!(
                            "multiple identity specifications for column \"{}\" of table \"{}\"",
                            made.name, table
                        );
                        return Err(placed(text, constraint, message));
                    }
                    if nullness == Some(false) {
                        return Err(conflicting_nulls(text, constraint, &made.name, table));
                    }
                    nullness = Some(true);
                }
                Ok(ConstrType::ConstrGenerated) => {
                    if std::mem::replace(&mut made.generated, true) {
                        let message = format!(
                            "multiple generation clauses specified for column \"{}\" of table \"{}\"",
                            made.name, table
                        );
                        return Err(placed(text, constraint, message));
                    }
                }
                _ => constraints.push(((**constraint).clone(), Some(place))),
            }
        }
        Ok(())
    }

    /// A default as it is kept, and what it names; none for NULL, which a column has without saying.
    pub(super) fn column_default(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        column: &Column,
        node: &Node,
    ) -> Result<(Option<String>, Vec<u32>)> {
        let says = self.try_binding(text, catalog, |binder| binder.check_default(column, node))?;
        if !says {
            return Ok((None, Vec::new()));
        }
        let fixed = self.try_binding("", catalog, |binder| binder.fixed(node, column))?;
        self.may_use_types_of(catalog, fixed.1.iter().copied())?;
        Ok((Some(fixed.0), fixed.1))
    }

    pub(super) fn add_constraint(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        constraint: &Constraint,
        column: Option<usize>,
        table: &mut Table,
    ) -> Result<()> {
        match ConstrType::try_from(constraint.contype) {
            Ok(ConstrType::ConstrCheck)
                if constraint.is_no_inherit && table.kind == RelationKind::Partitioned =>
            {
                Err(Error::new(
                    SqlState::INVALID_TABLE_DEFINITION,
                    format!(
                        "cannot add NO INHERIT constraint to partitioned table \"{}\"",
                        table.name
                    ),
                ))
            }
            Ok(ConstrType::ConstrPrimary | ConstrType::ConstrUnique) => {
                self.add_key(text, catalog, constraint, column, table)
            }
            Ok(ConstrType::ConstrCheck) => {
                let condition = constraint
                    .raw_expr
                    .as_ref()
                    .ok_or_else(|| Error::internal("an empty CHECK"))?;
                let so_far = Arc::new(table.clone());
                let columns = self.try_binding(text, catalog, |binder| {
                    binder.check_check(&so_far, condition)
                })?;
                let (kept, named) = self.try_binding("", catalog, |binder| {
                    binder.fixed_part(condition, |binder, node| {
                        binder.check_check(&so_far, node).map(drop)
                    })
                })?;
                self.may_use_types_of(catalog, named.uses().iter().map(|uses| uses.relation))?;
                // A condition on one column has that column's name.
                let named = match columns.as_slice() {
                    [one] => &columns[..usize::from(*one < table.columns.len())],
                    _ => &[],
                };
                let name = constraint_name(catalog, table, &constraint.conname, named, "check")?;
                table.checks.push(Check {
                    oid: self.new_oid()?,
                    name,
                    condition: kept,
                    validated: !constraint.skip_validation,
                    no_inherit: constraint.is_no_inherit,
                    columns,
                });
                Ok(())
            }
            Ok(ConstrType::ConstrForeign) => {
                self.add_foreign_key(text, catalog, constraint, column, table)
            }
            Ok(ConstrType::ConstrExclusion) => self.add_exclusion(text, catalog, constraint, table),
            Ok(ConstrType::ConstrAttrNotDeferrable | ConstrType::ConstrAttrImmediate) => Ok(()),
            _ => Err(Error::internal("a constraint of no kind")),
        }
    }

    /// PRIMARY KEY or UNIQUE.
    fn add_key(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        constraint: &Constraint,
        column: Option<usize>,
        table: &mut Table,
    ) -> Result<()> {
        let primary = constraint.contype == ConstrType::ConstrPrimary as i32;
        let place_error = |error: Error| match parser::char_position(text, constraint.location) {
            Some(position) => error.at(position),
            None => error,
        };
        let partitioned = table.kind == RelationKind::Partitioned;
        self.check_tablespace(catalog, &constraint.indexspace, partitioned)?;
        if primary && table.primary_index().is_some() {
            let error = Error::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!(
                    "multiple primary keys for table \"{}\" are not allowed",
                    table.name
                ),
            );
            let known = catalog.table_by_oid(table.oid);
            return Err(
                match known.is_some_and(|known| known.primary_index().is_some()) {
                    true => error,
                    false => place_error(error),
                },
            );
        }
        let mut columns = Vec::new();
        columns.extend(column);
        for node in &constraint.keys {
            let Some(NodeEnum::String(name)) = &node.node else {
                continue;
            };
            let place = table.column(&name.sval).ok_or_else(|| {
                place_error(Error::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{}\" named in key does not exist", name.sval),
                ))
            })?;
            if columns.contains(&place) {
                let kind = if primary { "primary key" } else { "unique" };
                return Err(place_error(Error::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!(
                        "column \"{}\" appears twice in {kind} constraint",
                        name.sval
                    ),
                )));
            }
            columns.push(place);
        }
        let mut include = Vec::new();
        for node in &constraint.including {
            let Some(NodeEnum::String(name)) = &node.node else {
                continue;
            };
            include.push(table.column(&name.sval).ok_or_else(|| {
                place_error(Error::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{}\" named in key does not exist", name.sval),
                ))
            })?);
        }
        if primary {
            for place in &columns {
                table.columns[*place].not_null = true;
            }
        }
        let suffix = if primary { "pkey" } else { "key" };
        let names: Vec<_> = columns
            .iter()
            .chain(&include)
            .map(|at| table.columns[*at].name.as_str())
            .collect();
        let middle = if primary {
            String::new()
        } else {
            names.join("_")
        };
        let name = index_constraint_name(catalog, table, constraint, &middle, suffix)?;
        let mut uses = columns.clone();
        uses.sort_unstable();
        let checked = constraint.deferrable.then_some(Checked {
            primary,
            initially_deferred: constraint.initdeferred,
        });
        let is_key = primary && checked.is_none();
        let tree = match is_key {
            true => table.tree,
            false => self.new_tree_beside(table.tree)?,
        };
        let keys = columns.into_iter().map(|column| ComputedKey {
            source: KeySource::Column(column),
            order: ColumnOrder::ASCENDING,
        });
        let nulls_equal = constraint.nulls_not_distinct;
        let index = Index {
            oid: self.new_oid()?,
            name,
            primary: is_key,
            unique: checked.is_none(),
            nulls_equal,
            constraint: self.new_oid()?,
            checked,
            tree,
            include,
            ..index_of(keys.collect(), None, uses, nulls_equal && checked.is_none())
        };
        store::check_order(table, &index)?;
        super::partition::check_covers(table, &index)?;
        match is_key {
            true => table.indexes.insert(0, index),
            false => table.indexes.push(index),
        }
        Ok(())
    }

    /// Binds something of a table's definition, for the errors in it.
    pub(in crate::session) fn try_binding<T>(
        &self,
        text: &str,
        catalog: &Arc<Catalog>,
        bind: impl FnOnce(&mut Binder<'_>) -> Result<T>,
    ) -> Result<T> {
        self.bind_with(text, catalog, (None, &[], false), bind)
    }

    /// The same where these names are variables.
    pub(in crate::session) fn try_binding_with<T>(
        &self,
        text: &str,
        catalog: &Arc<Catalog>,
        variables: &dyn Variables,
        bind: impl FnOnce(&mut Binder<'_>) -> Result<T>,
    ) -> Result<T> {
        self.bind_with(text, catalog, (Some(variables), &[], false), bind)
    }

    /// The same where parameters have these types.
    pub(super) fn try_binding_typed<T>(
        &self,
        text: &str,
        catalog: &Arc<Catalog>,
        types: &[TypeId],
        bind: impl FnOnce(&mut Binder<'_>) -> Result<T>,
    ) -> Result<T> {
        self.bind_with(text, catalog, (None, types, false), bind)
    }

    /// The same where parameters may have other types, and more of them may be there.
    pub(in crate::session) fn try_binding_open<T>(
        &self,
        text: &str,
        catalog: &Arc<Catalog>,
        types: &[TypeId],
        bind: impl FnOnce(&mut Binder<'_>) -> Result<T>,
    ) -> Result<T> {
        self.bind_with(text, catalog, (None, types, true), bind)
    }

    fn bind_with<T>(
        &self,
        text: &str,
        catalog: &Arc<Catalog>,
        (variables, types, open): (Option<&dyn Variables>, &[TypeId], bool),
        bind: impl FnOnce(&mut Binder<'_>) -> Result<T>,
    ) -> Result<T> {
        let search_path = self.search_path(catalog);
        let cx = BindContext {
            catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text,
            literals: None,
            variables,
        };
        let row_security = self.shared.settings.parsed().row_security;
        parser::large_stack(|| {
            let mut binder = Binder::new(cx, types.to_vec(), open);
            binder.row_security = row_security;
            bind(&mut binder)
        })
    }
}

/// The integer type of a column whose type is serial.
fn serial_type(column: &ColumnDef) -> Option<TypeId> {
    let names = &column.type_name.as_ref()?.names;
    let [Some(NodeEnum::String(name))] =
        &names.iter().map(|n| n.node.as_ref()).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    match name.sval.as_str() {
        "serial" | "serial4" => Some(TypeId::INT4),
        "bigserial" | "serial8" => Some(TypeId::INT8),
        "smallserial" | "serial2" => Some(TypeId::INT2),
        _ => None,
    }
}

/// Puts constraints in the order in which they are made: the primary key first, foreign keys last,
/// which may refer to any other. Attributes that stand behind a constraint become its own.
pub(super) fn order_constraints(constraints: &mut Vec<(Constraint, Option<usize>)>) {
    let mut merged: Vec<(Constraint, Option<usize>)> = Vec::new();
    for (constraint, column) in constraints.drain(..) {
        let kind = ConstrType::try_from(constraint.contype);
        match (kind, merged.last_mut()) {
            (Ok(ConstrType::ConstrAttrDeferrable), Some((last, _))) => last.deferrable = true,
            (Ok(ConstrType::ConstrAttrDeferred), Some((last, _))) => {
                last.deferrable = true;
                last.initdeferred = true;
            }
            _ => merged.push((constraint, column)),
        }
    }
    *constraints = merged;
    constraints.sort_by_key(
        |(constraint, _)| match ConstrType::try_from(constraint.contype) {
            Ok(ConstrType::ConstrPrimary) => 0,
            Ok(ConstrType::ConstrForeign) => 2,
            _ => 1,
        },
    );
}

/// What stands behind a column's constraints must be about one that can be deferred, and be said once.
///
/// # Errors
/// 42601.
fn check_attributes(text: &str, constraints: &[Node]) -> Result<()> {
    use ConstrType::{
        ConstrAttrDeferrable, ConstrAttrDeferred, ConstrAttrImmediate, ConstrAttrNotDeferrable,
        ConstrExclusion, ConstrForeign, ConstrPrimary, ConstrUnique,
    };
    let mut can_wait = false;
    // What was said of the last one: whether it is deferrable, and whether it is deferred at first.
    let (mut deferrable, mut deferred) = (None, None);
    for node in constraints {
        let Some(NodeEnum::Constraint(constraint)) = &node.node else {
            continue;
        };
        let refused = |message: &str| Err(placed(text, constraint, message.to_owned()));
        let clause = match ConstrType::try_from(constraint.contype) {
            Ok(ConstrAttrDeferrable) => "DEFERRABLE",
            Ok(ConstrAttrNotDeferrable) => "NOT DEFERRABLE",
            Ok(ConstrAttrDeferred) => "INITIALLY DEFERRED",
            Ok(ConstrAttrImmediate) => "INITIALLY IMMEDIATE",
            kind => {
                let waiting = [ConstrPrimary, ConstrUnique, ConstrExclusion, ConstrForeign];
                can_wait = kind.is_ok_and(|kind| waiting.contains(&kind));
                (deferrable, deferred) = (None, None);
                continue;
            }
        };
        if !can_wait {
            return refused(&format!("misplaced {clause} clause"));
        }
        let (said, value) = match clause {
            "DEFERRABLE" | "NOT DEFERRABLE" => (&mut deferrable, clause == "DEFERRABLE"),
            _ => (&mut deferred, clause == "INITIALLY DEFERRED"),
        };
        if said.replace(value).is_some() {
            return refused(match clause {
                "DEFERRABLE" | "NOT DEFERRABLE" => {
                    "multiple DEFERRABLE/NOT DEFERRABLE clauses not allowed"
                }
                _ => "multiple INITIALLY IMMEDIATE/DEFERRED clauses not allowed",
            });
        }
        if (deferrable, deferred) == (Some(false), Some(true)) {
            return refused("constraint declared INITIALLY DEFERRED must be DEFERRABLE");
        }
    }
    Ok(())
}

/// 42601 for a column that is to have NULLs, and to have none.
fn conflicting_nulls(text: &str, constraint: &Constraint, column: &str, table: &str) -> Error {
    let message = format!(
        "conflicting NULL/NOT NULL declarations for column \"{column}\" of table \"{table}\""
    );
    placed(text, constraint, message)
}

/// 42601 at a constraint.
fn placed(text: &str, constraint: &Constraint, message: String) -> Error {
    let error = Error::new(SqlState::SYNTAX_ERROR, message);
    match parser::char_position(text, constraint.location) {
        Some(position) => error.at(position),
        None => error,
    }
}

/// A name cut to its longest length, at a character.
pub(super) fn cut_name(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// The name of a constraint that is an index: the one given, or one of the table's and these names that
/// is free.
///
/// # Errors
/// 42P07 for that of a relation, 42710 for that of another constraint of the table.
pub(super) fn index_constraint_name(
    catalog: &Catalog,
    table: &Table,
    constraint: &Constraint,
    middle: &str,
    suffix: &str,
) -> Result<String> {
    if constraint.conname.is_empty() {
        return Ok(choose_name(&table.name, middle, suffix, |name| {
            catalog.relation(table.schema, name).is_some()
                || table.indexes.iter().any(|index| index.name == name)
                || table.name == name
        }));
    }
    let name = cut_name(&constraint.conname);
    if catalog.relation(table.schema, &name).is_some() {
        return Err(duplicate_relation(&name));
    }
    check_no_constraint(table, &name)?;
    Ok(name)
}

/// `table_columns_suffix`, cut and numbered until it is free.
pub(super) fn choose_name(
    table: &str,
    columns: &str,
    suffix: &str,
    taken: impl Fn(&str) -> bool,
) -> String {
    let mut number = 0;
    loop {
        let numbered = match number {
            0 => suffix.to_owned(),
            number => format!("{suffix}{number}"),
        };
        let name = make_name(table, columns, &numbered);
        if !taken(&name) {
            return name;
        }
        number += 1;
    }
}

/// PostgreSQL's makeObjectName: the longer part is shortened first.
fn make_name(table: &str, columns: &str, suffix: &str) -> String {
    let (mut first, mut second) = (table.len(), columns.len());
    let separators = 1 + usize::from(!columns.is_empty());
    let room = NAME_BYTES_MAX.saturating_sub(suffix.len() + separators);
    while first + second > room {
        if first > second {
            first -= 1;
        } else {
            second -= 1;
        }
    }
    let part = |text: &str, mut end: usize| {
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text[..end].to_owned()
    };
    match columns.is_empty() {
        true => format!("{}_{suffix}", part(table, first)),
        false => format!("{}_{}_{suffix}", part(table, first), part(columns, second)),
    }
}
