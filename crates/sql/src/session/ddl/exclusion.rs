//! EXCLUDE of CREATE TABLE and ALTER TABLE ([`catalog::exclusion`]).

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Constraint, IndexElem, IndexStmt, Node};

use super::super::Session;
use super::index::{access_method, index_element};
use super::table::index_constraint_name;
use super::texts;
use catalog::operator_class::{method_name, OperatorClass, BLOOM, BRIN, GIN};
use catalog::store;
use catalog::{Catalog, Computed, Exclusion, Index, IndexedColumn, RelationKind, Table};
use catalog::{ComputedKey, KeySource};
use syntax::parser::{self, NodeEnum};

impl Session {
    /// Adds the index of an exclusion constraint to a table.
    pub(super) fn add_exclusion(
        &mut self,
        text: &str,
        catalog: &Arc<Catalog>,
        constraint: &Constraint,
        table: &mut Table,
    ) -> Result<()> {
        if table.kind == RelationKind::Partitioned {
            let message = "exclusion constraints are not supported on partitioned tables";
            let error = Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(placed(text, constraint, error));
        }
        self.check_tablespace(catalog, &constraint.indexspace, false)?;
        let (mut elements, mut operators) = (Vec::new(), Vec::new());
        for node in &constraint.exclusions {
            let Some(NodeEnum::List(pair)) = &node.node else {
                return Err(Error::internal("an exclusion of no pair"));
            };
            let [element, operator] = pair.items.as_slice() else {
                return Err(Error::internal("an exclusion of no pair"));
            };
            elements.push(element.clone());
            let Some(NodeEnum::List(names)) = &operator.node else {
                return Err(Error::internal("an operator without a name"));
            };
            operators.push(texts(&names.items));
        }
        let create = IndexStmt {
            access_method: constraint.access_method.clone(),
            index_params: elements,
            index_including_params: included(text, constraint, table)?,
            where_clause: constraint.where_clause.clone(),
            options: constraint.options.clone(),
            ..IndexStmt::default()
        };
        let method = access_method(catalog, &create)?;
        if matches!(method, GIN | BRIN | BLOOM) {
            let message = format!(
                "access method \"{}\" does not support exclusion constraints",
                method_name(method)
            );
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        check_columns(&create, table)?;
        let so_far = Arc::new(table.clone());
        let index = self.index_keys(text, catalog, &so_far, &create, method)?;
        let mut found = Vec::with_capacity(operators.len());
        for (place, names) in operators.iter().enumerate() {
            let order = index.key_order(table, place);
            let ty = order.ok_or_else(|| Error::internal("an exclusion without a key"))?;
            let class = OperatorClass::by_oid(index.form.class_for(place, ty.type_id));
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            found.push(self.try_binding(text, catalog, |binder| {
                binder.exclusion_operator(&names, ty.type_id, class)
            })?);
        }
        let names = index.shown_columns(table).into_iter().map(|own| own.name);
        let middle = names.collect::<Vec<_>>().join("_");
        let name = index_constraint_name(catalog, table, constraint, &middle, "excl")?;
        let index = Index {
            oid: self.new_oid()?,
            name,
            constraint: self.new_oid()?,
            tree: self.new_tree_beside(table.tree)?,
            exclusion: Some(Box::new(Exclusion {
                operators: found,
                deferrable: constraint.deferrable,
                initially_deferred: constraint.initdeferred,
            })),
            ..computed(index)
        };
        store::check_order(table, &index)?;
        table.indexes.push(index);
        Ok(())
    }
}

/// The same index as one whose entries are made where rows are written.
fn computed(mut index: Index) -> Index {
    if index.computed.is_some() {
        return index;
    }
    let mut uses: Vec<_> = index.columns.iter().map(|own| own.column).collect();
    uses.sort_unstable();
    uses.dedup();
    let key = |own: &IndexedColumn| ComputedKey {
        source: KeySource::Column(own.column),
        order: own.order,
    };
    index.computed = Some(Box::new(Computed {
        keys: index.columns.iter().map(key).collect(),
        condition: None,
        uses,
    }));
    index.columns.clear();
    index
}

/// INCLUDE as CREATE INDEX has it.
fn included(text: &str, constraint: &Constraint, table: &Table) -> Result<Vec<Node>> {
    let mut included = Vec::new();
    for node in &constraint.including {
        let Some(NodeEnum::String(name)) = &node.node else {
            continue;
        };
        if table.column(&name.sval).is_none() {
            return Err(placed(text, constraint, no_column(&name.sval)));
        }
        let element = IndexElem {
            name: name.sval.clone(),
            ..IndexElem::default()
        };
        included.push(Node {
            node: Some(NodeEnum::IndexElem(Box::new(element))),
        });
    }
    Ok(included)
}

/// 42703 for a column that is not there.
fn check_columns(create: &IndexStmt, table: &Table) -> Result<()> {
    for node in &create.index_params {
        let element = index_element(node)?;
        if element.expr.is_none() && table.column(&element.name).is_none() {
            return Err(no_column(&element.name));
        }
    }
    Ok(())
}

fn no_column(name: &str) -> Error {
    let message = format!("column \"{name}\" named in key does not exist");
    Error::new(SqlState::UNDEFINED_COLUMN, message)
}

fn placed(text: &str, constraint: &Constraint, error: Error) -> Error {
    match parser::char_position(text, constraint.location) {
        Some(position) => error.at(position),
        None => error,
    }
}
