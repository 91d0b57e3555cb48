//! The indexes that ON CONFLICT means.
//!
//! A constraint is named, or columns, expressions and a condition are: then these are the unique
//! indexes on just that whose own condition, if they have one, follows from the one given.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{InferClause, OnConflictAction, OnConflictClause};

use super::expr::Place;
use super::updatable::Writable;
use super::{inner, Binder};
use crate::logical::conjuncts;
use crate::paths::implies::{implied, normal};
use crate::plan::{ComputedAccess, Expr, ExprKind};
use catalog::access::Privileges;
use catalog::view::BY_OID;
use syntax::parser::NodeEnum;

/// What rows are told apart by.
#[derive(Default)]
struct Inferred {
    columns: Vec<usize>,
    expressions: Vec<Expr>,
    condition: Vec<Expr>,
}

impl Inferred {
    /// Whether an index of columns is on just these.
    fn is_on(&self, columns: &[usize]) -> bool {
        self.expressions.is_empty()
            && columns.len() == self.columns.len()
            && columns.iter().all(|column| self.columns.contains(column))
    }

    /// Whether a computed index is on just these, and has every row that the condition allows.
    fn is_served_by(&self, access: &ComputedAccess) -> bool {
        let has = |key: &Expr| match key.bare().kind {
            ExprKind::Column(place) => self.columns.contains(&place),
            _ => self
                .expressions
                .iter()
                .any(|own| own.bare().same(key.bare())),
        };
        let has_column = |place: &usize| {
            let mut keys = access.keys.iter();
            keys.any(|key| matches!(key.bare().kind, ExprKind::Column(at) if at == *place))
        };
        let has_expression = |own: &Expr| {
            let mut keys = access.keys.iter();
            keys.any(|key| key.bare().same(own.bare()))
        };
        access.keys.iter().all(has)
            && self.columns.iter().all(has_column)
            && self.expressions.iter().all(has_expression)
            && implied(&access.condition, &self.condition)
    }
}

impl Binder<'_> {
    /// The indexes that ON CONFLICT means, by their places; none: any. `name` is what the statement
    /// calls the table.
    pub(super) fn arbiter(
        &mut self,
        clause: &OnConflictClause,
        writable: &Writable,
        name: &str,
    ) -> Result<Option<Vec<usize>>> {
        let table = &writable.base;
        let Some(infer) = &clause.infer else {
            return Ok(None);
        };
        if !infer.conname.is_empty() {
            let fixed = infer.conname.strip_prefix(BY_OID).filter(|_| self.stored);
            let is_it = |index: &catalog::Index| match fixed {
                Some(oid) => oid.parse() == Ok(index.constraint),
                None => index.name == infer.conname && index.constraint != 0,
            };
            let found = table.indexes.iter().position(is_it);
            return match found {
                Some(place) => {
                    let index = &table.indexes[place];
                    if let Some(recorded) = &mut self.recorded {
                        recorded.arbiters.push((infer.location, index.constraint));
                    }
                    let updates = clause.action == OnConflictAction::OnconflictUpdate as i32;
                    if updates && index.exclusion.is_some() {
                        return Err(Error::new(
                            SqlState::WRONG_OBJECT_TYPE,
                            "ON CONFLICT DO UPDATE not supported with exclusion constraints",
                        ));
                    }
                    for column in (0..index.key_count()).filter_map(|at| index.key_column(at)) {
                        self.require_of(table, Privileges::SELECT, column as u32 + 1);
                    }
                    Ok(Some(vec![place]))
                }
                None => Err(Error::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!(
                        "constraint \"{}\" for table \"{}\" does not exist",
                        infer.conname, table.name
                    ),
                )),
            };
        }
        let inferred = self.inferred(infer, writable, name)?;
        let computed = self.computed_access(table)?;
        let catalog = self.cx.catalog;
        let fits = |place: usize| {
            let index = &table.indexes[place];
            let columns: Vec<_> = index.columns.iter().map(|column| column.column).collect();
            let mut computed = computed.iter().flat_map(|computed| computed.iter());
            // One that not all partitions have tells nothing.
            index.is_unique()
                && catalog.is_whole(table, index.oid)
                && match index.computed {
                    None => inferred.is_on(&columns),
                    Some(_) => computed
                        .any(|access| access.index == place && inferred.is_served_by(access)),
                }
        };
        let found: Vec<_> = (0..table.indexes.len()).filter(|at| fits(*at)).collect();
        match found.is_empty() {
            false => Ok(Some(found)),
            // There may be one by the time it runs.
            true if self.names_only => Ok(Some(Vec::new())),
            true => Err(Error::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                "there is no unique or exclusion constraint matching the ON CONFLICT \
                 specification",
            )),
        }
    }

    fn inferred(
        &mut self,
        infer: &InferClause,
        writable: &Writable,
        name: &str,
    ) -> Result<Inferred> {
        let mut inferred = Inferred::default();
        let scope = writable.scope(name);
        for node in &infer.index_elems {
            let NodeEnum::IndexElem(element) = inner(node)? else {
                continue;
            };
            if let Some(node) = &element.expr {
                let bound = self.node(node, &scope, Place::INDEX_KEY)?;
                let bound = self.settle(bound)?;
                match bound.bare().kind {
                    ExprKind::Column(place) if !inferred.columns.contains(&place) => {
                        inferred.columns.push(place);
                    }
                    ExprKind::Column(_) => {}
                    _ => inferred.expressions.push(bound),
                }
                continue;
            }
            let places = writable.places();
            let known = places.iter().find(|known| known.0 == element.name);
            let place = known.and_then(|known| known.1).ok_or_else(|| {
                self.error(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{}\" does not exist", element.name),
                    infer.location,
                )
            })?;
            if !inferred.columns.contains(&place) {
                inferred.columns.push(place);
            }
            self.require_named(writable, &element.name, Privileges::SELECT);
        }
        if let Some(node) = &infer.where_clause {
            let condition = self.node(node, &scope, Place::INDEX_CONDITION)?;
            let condition = self.condition(condition, "WHERE")?;
            inferred.condition = conjuncts(Some(normal(condition)));
        }
        Ok(inferred)
    }
}
