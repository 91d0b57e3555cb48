//! Computed indexes: what they are on and their conditions, as they are written and as they are
//! kept ([`catalog::computed`]).
//!
//! The catalog has SQL, which is bound anew for each statement that looks for rows of the table or
//! writes them: for the planner as expressions, to be found again in the statement's conditions,
//! and for the executor as programs that make entries.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::Node;

use super::column_name::index_column_name;
use super::expr::Place;
use super::write::target_scope;
use super::{inner, Binder};
use crate::logical::{columns_of, conjuncts};
use crate::paths::implies::normal;
use crate::plan::compile;
use crate::plan::{ComputedAccess, Expr, ExprKind, How};
use crate::plan::{EntryRule, KeyValue, KnownTogether};
use catalog::extended::Expression;
use catalog::{Computed, Index, KeyOrder, KeySource, Table, Uses};
use functions::{Coercion, Volatility};
use types::{self, TypeId};

/// An expression or a condition over a table's rows that is found right.
#[derive(Debug)]
pub struct Checked<T> {
    /// As the catalog keeps it.
    pub kept: T,
    /// The places of the columns that it looks at.
    pub columns: Vec<usize>,
    /// What it names besides.
    pub uses: Vec<Uses>,
}

impl Binder<'_> {
    /// How the entries of a table's computed indexes are made.
    ///
    /// # Errors
    /// What binding them gives.
    pub fn entries(&mut self, table: &Arc<Table>) -> Result<Vec<EntryRule>> {
        let mut rules = Vec::new();
        for (place, index) in table.indexes.iter().enumerate() {
            let Some(computed) = &index.computed else {
                continue;
            };
            let mut keys = Vec::with_capacity(computed.keys.len());
            for at in index.stored_order() {
                let key = &computed.keys[at];
                let order = index.key_order(table, at);
                let order = order.ok_or_else(|| Error::internal("a key that is not there"))?;
                let value = match &key.source {
                    KeySource::Column(place) => KeyValue::Column(*place),
                    KeySource::Expression { text, .. } => {
                        KeyValue::Program(compile(&self.kept_key(table, text, order)?))
                    }
                };
                keys.push((value, order));
            }
            let condition = match &computed.condition {
                Some(text) => Some(compile(&self.kept_condition(table, text)?)),
                None => None,
            };
            rules.push(EntryRule {
                index: place,
                exclusion: self.exclusion_rule(index, &keys)?,
                keys,
                condition,
            });
        }
        Ok(rules)
    }

    /// A key of an index as it is kept; it must have the type that the index's entries have.
    fn kept_key(&mut self, table: &Arc<Table>, text: &str, order: KeyOrder) -> Result<Expr> {
        let key = self.index_expression(table, text)?;
        match key.ty == order.type_id {
            true => Ok(key),
            false => Err(Error::internal(format!(
                "a key of type {} in an index of {}",
                key.ty, order.type_id
            ))),
        }
    }

    /// An expression of an index, as it is kept.
    ///
    /// # Errors
    /// What binding it gives.
    pub fn index_expression(&mut self, table: &Arc<Table>, text: &str) -> Result<Expr> {
        let scope = target_scope(table, &table.name);
        let key = self.stored(text, &scope, Place::INDEX_KEY)?;
        self.settle(key)
    }

    /// The condition of an index, as it is kept.
    ///
    /// # Errors
    /// What binding it gives.
    pub fn kept_condition(&mut self, table: &Arc<Table>, text: &str) -> Result<Expr> {
        let scope = target_scope(table, &table.name);
        let condition = self.stored(text, &scope, Place::INDEX_CONDITION)?;
        self.condition(condition, "WHERE")
    }

    /// The computed indexes of a table as the planner sees them, those left out whose entries are in
    /// another order than their keys; none if it has none.
    pub(super) fn computed_access(
        &mut self,
        table: &Arc<Table>,
    ) -> Result<Option<Rc<[ComputedAccess]>>> {
        let mut found = Vec::new();
        for (place, index) in table.indexes.iter().enumerate() {
            if index.is_reordered() {
                continue;
            }
            if let Some(computed) = &index.computed {
                found.push(self.access_of(table, place, computed)?);
            }
        }
        Ok((!found.is_empty()).then(|| found.into()))
    }

    fn access_of(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        computed: &Computed,
    ) -> Result<ComputedAccess> {
        let mut keys = Vec::with_capacity(computed.keys.len());
        for key in &computed.keys {
            keys.push(match &key.source {
                KeySource::Column(place) => {
                    let column = &table.columns[*place];
                    let mut own = Expr::new(ExprKind::Column(*place), column.type_id, -1);
                    own.typmod = column.typmod;
                    own
                }
                KeySource::Expression { text, .. } => self.index_expression(table, text)?,
            });
        }
        let condition = match &computed.condition {
            Some(text) => Some(normal(self.kept_condition(table, text)?)),
            None => None,
        };
        Ok(ComputedAccess {
            index,
            keys,
            condition: conjuncts(condition),
        })
    }

    /// Binds an expression that an index is to be on, as it is written; its name in the index and the
    /// type come with it.
    ///
    /// # Errors
    /// What is wrong with it; 42P17 if its value may change.
    pub fn check_index_key(
        &mut self,
        table: &Arc<Table>,
        node: &Node,
    ) -> Result<Checked<KeySource>> {
        let scope = target_scope(table, &table.name);
        let key = self.node(node, &scope, Place::INDEX_KEY)?;
        let key = self.settle(key)?;
        let name = index_column_name(inner(node)?);
        if key.ty.category() == types::Category::Pseudo {
            let message = format!("column \"{name}\" has pseudo-type {}", key.ty);
            return Err(Error::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        if changes(&key) {
            return Err(mutable("expression"));
        }
        let (text, recorded) = self.fixed_part(node, |binder, node| {
            let key = binder.node(node, &scope, Place::INDEX_KEY)?;
            binder.settle(key).map(drop)
        })?;
        Ok(Checked {
            kept: KeySource::Expression {
                name,
                text,
                type_id: key.ty,
                typmod: key.typmod,
            },
            columns: columns_of(&key),
            uses: recorded.uses(),
        })
    }

    /// Binds an expression that extended statistics are to be about, as it is written; the place of a column
    /// that is all of it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_statistics_expression(
        &mut self,
        table: &Arc<Table>,
        node: &Node,
    ) -> Result<Checked<std::result::Result<usize, Expression>>> {
        let scope = target_scope(table, &table.name);
        let bound = self.node(node, &scope, Place::STATISTICS)?;
        let bound = self.settle(bound)?;
        let columns = columns_of(&bound);
        if let ExprKind::Column(place) = bound.kind {
            return Ok(Checked {
                kept: Ok(place),
                columns,
                uses: Vec::new(),
            });
        }
        let (text, recorded) = self.fixed_part(node, |binder, node| {
            let bound = binder.node(node, &scope, Place::STATISTICS)?;
            binder.settle(bound).map(drop)
        })?;
        let expression = Expression {
            text,
            type_id: bound.ty,
            typmod: bound.typmod,
            uses: columns.clone(),
        };
        Ok(Checked {
            kept: Err(expression),
            columns,
            uses: recorded.uses(),
        })
    }

    /// What is known of several columns of a table together, as the planner sees it; none if nothing is.
    pub(super) fn known_together(
        &mut self,
        table: &Arc<Table>,
    ) -> Result<Option<Rc<[KnownTogether]>>> {
        let catalog = self.cx.catalog;
        let mut known = Vec::new();
        for made in catalog.extended_of(table.oid) {
            let Some(found) = catalog.gathered(made) else {
                continue;
            };
            let mut expressions = Vec::with_capacity(made.expressions.len());
            for expression in &made.expressions {
                expressions.push(self.index_expression(table, &expression.text)?);
            }
            known.push(KnownTogether {
                made: made.clone(),
                found: found.clone(),
                expressions,
            });
        }
        Ok((!known.is_empty()).then(|| known.into()))
    }

    /// Binds the condition of an index, as it is written.
    ///
    /// # Errors
    /// What is wrong with it; 42P17 if its value may change.
    pub fn check_index_condition(
        &mut self,
        table: &Arc<Table>,
        node: &Node,
    ) -> Result<Checked<String>> {
        let scope = target_scope(table, &table.name);
        let condition = self.node(node, &scope, Place::INDEX_CONDITION)?;
        let condition = self.condition(condition, "WHERE")?;
        if changes(&condition) {
            return Err(mutable("predicate"));
        }
        let (text, recorded) = self.fixed_part(node, |binder, node| {
            let condition = binder.node(node, &scope, Place::INDEX_CONDITION)?;
            binder.condition(condition, "WHERE").map(drop)
        })?;
        Ok(Checked {
            kept: text,
            columns: columns_of(&condition),
            uses: recorded.uses(),
        })
    }

    /// The types that the expressions of an index have now that columns have other types.
    ///
    /// # Errors
    /// What binding them gives; 42P17 if their values may change now.
    pub fn retype_index(&mut self, table: &Arc<Table>, index: &mut Index) -> Result<()> {
        let Some(computed) = &mut index.computed else {
            return Ok(());
        };
        for key in &mut computed.keys {
            if let KeySource::Expression {
                text,
                type_id,
                typmod,
                ..
            } = &mut key.source
            {
                let key = self.index_expression(table, text)?;
                if changes(&key) {
                    return Err(mutable("expression"));
                }
                (*type_id, *typmod) = (key.ty, key.typmod);
            }
        }
        if let Some(text) = &computed.condition {
            if changes(&self.kept_condition(table, text)?) {
                return Err(mutable("predicate"));
            }
        }
        self.retype_exclusion(table, index)
    }
}

fn mutable(what: &str) -> Error {
    let message = format!("functions in index {what} must be marked IMMUTABLE");
    Error::new(SqlState::of("42P17"), message)
}

/// Whether the value of an expression may change while its columns do not.
fn changes(expr: &Expr) -> bool {
    expr.any(&|part| match &part.kind {
        ExprKind::Call(function, ..)
        | ExprKind::SetCall(function, ..)
        | ExprKind::NullIf(_, function, ..)
        | ExprKind::Distinct(_, _, function, ..)
        | ExprKind::AnyArray(_, _, function, ..) => function.0.volatility != Volatility::Immutable,
        ExprKind::Coerce(from, How(coercion, _)) => converts_anew(coercion, from.ty, part.ty),
        ExprKind::Sub(..) => true,
        _ => part.is_routine_of(b"sv"),
    })
}

fn converts_anew(coercion: &Coercion, from: TypeId, to: TypeId) -> bool {
    match coercion {
        Coercion::Binary => false,
        Coercion::Function(function) => function.volatility != Volatility::Immutable,
        Coercion::InOut => reads_settings(from, false) || reads_settings(to, true),
        Coercion::Array(each) => {
            let element = |ty: TypeId| ty.array_element().unwrap_or(ty);
            converts_anew(each, element(from), element(to))
        }
    }
}

/// Whether the text of a type's values depends on settings or the catalog: read, or written.
fn reads_settings(ty: TypeId, read: bool) -> bool {
    match ty {
        TypeId::DATE | TypeId::TIMESTAMP | TypeId::TIMESTAMPTZ | TypeId::INTERVAL => true,
        TypeId::TIME | TypeId::TIMETZ => read,
        ty => {
            ty.array_element().is_some()
                || ty == TypeId::RECORD
                || ty.name().starts_with("reg")
                || ty.name() == "aclitem"
        }
    }
}
