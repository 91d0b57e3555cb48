//! ON CONFLICT: the indexes that it means, and what becomes of the row that is in the way.
//!
//! A constraint is named, or columns, expressions and a condition are: then these are the unique
//! indexes on just that whose own condition, if they have one, follows from the one given, and which have
//! the operator classes and collations that are given.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    IndexElem, InferClause, OnConflictAction, OnConflictClause, SortByDir, SortByNulls,
};

use super::collation::named;
use super::expr::Place;
use super::scope::{Scope, ScopeTable, EXCLUDED};
use super::updatable::{Verb, Writable};
use super::write::{is_called, sets_keys, Reads};
use super::{inner, strings, Binder};
use crate::logical::conjuncts;
use crate::paths::implies::{implied, normal};
use crate::plan::{compile, ComputedAccess, Conflict, Expr, ExprKind};
use catalog::access::Privileges;
use catalog::layout::BTREE;
use catalog::operator_class::OperatorClass;
use catalog::view::BY_OID;
use catalog::{collation, Catalog, Index, Table};
use syntax::parser::NodeEnum;

/// By which indexes rows are found that are in the way.
enum Arbiter {
    /// Any.
    Any,
    /// These, by their places.
    Named(Vec<usize>),
    /// Those on these columns and expressions.
    Inferred(Inferred),
}

/// What rows are told apart by.
#[derive(Default)]
struct Inferred {
    columns: Vec<usize>,
    expressions: Vec<Expr>,
    condition: Vec<Expr>,
    /// What is said of the order of some of them.
    said: Vec<Said>,
}

/// What is said of the order of a column or an expression by which rows are told apart.
struct Said {
    key: Expr,
    class: Option<&'static OperatorClass>,
    /// The oid of a collation.
    collation: Option<u32>,
}

impl Said {
    /// Whether an index has it in that order; `access` says what it is on if it is a computed one.
    fn is_so_in(&self, index: &Index, table: &Table, access: Option<&ComputedAccess>) -> bool {
        (0..index.key_count()).any(|at| {
            let column = index
                .key_column(at)
                .map(|place| (place, &table.columns[place]));
            let computed = access.and_then(|access| access.keys.get(at));
            let (is_it, ty, own) = match (column, computed) {
                (Some((place, column)), _) => {
                    let is_it =
                        matches!(self.key.bare().kind, ExprKind::Column(key) if key == place);
                    (is_it, column.type_id, column.collation)
                }
                (None, Some(key)) => (self.key.bare().same(key.bare()), key.ty, key.collation.oid),
                (None, None) => return false,
            };
            let known = |oid: u32| {
                if oid == 0 {
                    collation::of_type(ty)
                } else {
                    oid
                }
            };
            let class = OperatorClass::by_oid(index.form.class_for(at, ty));
            let of_class = |class: &OperatorClass| (class.family, class.input);
            let collation = match index.form.collation(at) {
                0 => known(own),
                given => given,
            };
            is_it
                && (self.class.is_none() || self.class.map(of_class) == class.map(of_class))
                && self.collation.is_none_or(|given| given == collation)
        })
    }
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

/// The row that was to be inserted, behind the one that is in its way.
pub(super) fn excluded(writable: &Writable) -> ScopeTable {
    ScopeTable {
        table: None,
        needed: None,
        ..writable.item(EXCLUDED, writable.base.columns.len())
    }
}

impl Binder<'_> {
    /// ON CONFLICT of an INSERT into what it calls so.
    pub(super) fn on_conflict(
        &mut self,
        clause: &OnConflictClause,
        writable: &Writable,
        name: &str,
        reads: &mut Reads,
    ) -> Result<Conflict> {
        let updates = clause.action == OnConflictAction::OnconflictUpdate as i32;
        let excluded = updates.then(|| excluded(writable));
        let arbiter = self.arbiter(clause, writable, (name, excluded.as_ref()))?;
        // What is in the way is found by its values.
        reads.0 |= !matches!(arbiter, Arbiter::Any);
        let Some(excluded) = excluded else {
            return Ok(Conflict {
                indexes: self.arbiter_indexes(arbiter, &writable.base)?,
                ..Conflict::default()
            });
        };
        if matches!(arbiter, Arbiter::Any) {
            return Err(self
                .error(
                    SqlState::SYNTAX_ERROR,
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                    clause.location,
                )
                .with_hint("For example, ON CONFLICT (column_name)."));
        }
        let mut scope = writable.scope(name);
        scope.tables.push(excluded);
        let width = 2 * writable.base.columns.len();
        let hidden = writable
            .places()
            .into_iter()
            .filter(|known| known.1.is_none());
        for (name, _) in hidden {
            if clause.target_list.iter().any(|item| is_called(item, &name)) {
                // It is an INSERT that would set it.
                return Err(writable.not_writable(&name, Verb::Insert));
            }
        }
        let set = self.assignments(&clause.target_list, writable, &scope, width)?;
        let condition = self.where_clause(&clause.where_clause, &scope)?;
        reads.note(&scope);
        Ok(Conflict {
            indexes: self.arbiter_indexes(arbiter, &writable.base)?,
            sets_keys: sets_keys(&writable.base, &set),
            set: Some(set),
            condition: condition.as_ref().map(compile),
            ..Conflict::default()
        })
    }

    /// What ON CONFLICT means. `name` is what the statement calls the table; the row that was to be
    /// inserted is there, but cannot be named.
    fn arbiter(
        &mut self,
        clause: &OnConflictClause,
        writable: &Writable,
        (name, excluded): (&str, Option<&ScopeTable>),
    ) -> Result<Arbiter> {
        let table = &writable.base;
        let Some(infer) = &clause.infer else {
            return Ok(Arbiter::Any);
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
                    Ok(Arbiter::Named(vec![place]))
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
        let mut scope = writable.scope(name);
        scope.covered.extend(excluded.cloned());
        Ok(Arbiter::Inferred(self.inferred(infer, writable, &scope)?))
    }

    /// The indexes by which rows are found that are in the way, by their places; none: any.
    fn arbiter_indexes(
        &mut self,
        arbiter: Arbiter,
        table: &Arc<Table>,
    ) -> Result<Option<Vec<usize>>> {
        let inferred = match arbiter {
            Arbiter::Any => return Ok(None),
            Arbiter::Named(places) => return Ok(Some(places)),
            Arbiter::Inferred(inferred) => inferred,
        };
        let computed = self.computed_access(table)?;
        let catalog = self.cx.catalog;
        let fits = |place: usize| {
            let index = &table.indexes[place];
            let columns: Vec<_> = index.columns.iter().map(|column| column.column).collect();
            let mut computed = computed.iter().flat_map(|computed| computed.iter());
            // One that not all partitions have tells nothing.
            let access = computed.find(|access| access.index == place);
            index.is_unique()
                && catalog.is_whole(table, index.oid)
                && match (&index.computed, access) {
                    (None, _) => inferred.is_on(&columns),
                    (Some(_), Some(access)) => inferred.is_served_by(access),
                    (Some(_), None) => false,
                }
                && inferred
                    .said
                    .iter()
                    .all(|said| said.is_so_in(index, table, access))
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

    /// # Errors
    /// 42P10 for an element that says in which order its values stand.
    fn refuse_order(&self, element: &IndexElem, location: i32) -> Result<()> {
        let ordering = SortByDir::try_from(element.ordering);
        let nulls = SortByNulls::try_from(element.nulls_ordering);
        let what = match (ordering, nulls) {
            (Ok(SortByDir::SortbyAsc | SortByDir::SortbyDesc), _) => "ASC/DESC",
            (_, Ok(SortByNulls::SortbyNullsFirst | SortByNulls::SortbyNullsLast)) => {
                "NULLS FIRST/LAST"
            }
            _ => return Ok(()),
        };
        let message = format!("{what} is not allowed in ON CONFLICT clause");
        Err(self.error(SqlState::INVALID_COLUMN_REFERENCE, message, location))
    }

    /// The operator class and the collation that are given for an element.
    fn said(&self, element: &IndexElem, key: Expr) -> Result<Said> {
        let (class, collation) = (strings(&element.opclass), strings(&element.collation));
        let class = match class.last() {
            None => None,
            Some(name) => {
                let found = OperatorClass::named(BTREE, name).next();
                Some(found.ok_or_else(|| {
                    let names = class.join(".");
                    let message = format!(
                        "operator class \"{names}\" does not exist for access method \"btree\""
                    );
                    Error::new(SqlState::UNDEFINED_OBJECT, message)
                })?)
            }
        };
        let catalog: &Catalog = self.cx.catalog;
        let looked_in = (catalog, self.cx.search_path, self.cx.role);
        let collation = match collation.is_empty() {
            true => None,
            false => Some(named(looked_in, &collation)?.oid),
        };
        Ok(Said {
            key,
            class,
            collation,
        })
    }

    fn inferred(
        &mut self,
        infer: &InferClause,
        writable: &Writable,
        scope: &Scope<'_>,
    ) -> Result<Inferred> {
        let mut inferred = Inferred::default();
        for node in &infer.index_elems {
            let NodeEnum::IndexElem(element) = inner(node)? else {
                continue;
            };
            self.refuse_order(element, infer.location)?;
            let key = match &element.expr {
                Some(node) => {
                    let bound = self.node(node, scope, Place::INDEX_KEY)?;
                    self.settle(bound)?
                }
                None => {
                    let places = writable.places();
                    let known = places.iter().find(|known| known.0 == element.name);
                    let place = known.and_then(|known| known.1).ok_or_else(|| {
                        self.missing_column(&[&element.name], scope, infer.location)
                    })?;
                    self.require_named(writable, &element.name, Privileges::SELECT);
                    let ty = writable.base.columns[place].type_id;
                    Expr::new(ExprKind::Column(place), ty, -1)
                }
            };
            match key.bare().kind {
                ExprKind::Column(place) if !inferred.columns.contains(&place) => {
                    inferred.columns.push(place);
                }
                ExprKind::Column(_) => {}
                _ => inferred.expressions.push(key.clone()),
            }
            if !element.opclass.is_empty() || !element.collation.is_empty() {
                inferred.said.push(self.said(element, key)?);
            }
        }
        if let Some(node) = &infer.where_clause {
            let condition = self.node(node, scope, Place::INDEX_CONDITION)?;
            let condition = self.condition(condition, "WHERE")?;
            inferred.condition = conjuncts(Some(normal(condition)));
        }
        Ok(inferred)
    }
}
