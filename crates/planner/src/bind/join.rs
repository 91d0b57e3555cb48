//! Joins of FROM, and the columns that USING merges.
//!
//! ```text
//! a JOIN b USING (k)          one column k, before all others of the join
//! a JOIN b USING (k) AS u     and an item u of that column alone, which only qualified names find
//! (a JOIN b USING (k)) AS j   an item j of all columns; a and b are not seen
//! ```
//!
//! # What it leaves out
//! The rows of a join with an alias cannot be locked.

use std::ops::Range;
use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Alias, JoinExpr, JoinType};

use super::expr::Place;
use super::scope::{
    output, plain_column, query_column, ItemKind, MergedColumn, Scope, ScopeColumn, ScopeTable,
};
use super::{boxed, inner, strings, Binder};
use crate::logical::{conjuncts, joined, Source};
use crate::plan::{Expr, ExprKind, JoinKind};
use types::TypeId;

impl Binder<'_> {
    /// `a JOIN b …`; its items are added to the scope.
    pub(super) fn join(
        &mut self,
        join: &JoinExpr,
        scope: &mut Scope<'_>,
        with_keys: bool,
        next: &mut usize,
    ) -> Result<Source> {
        let first = scope.tables.len();
        let first_merged = scope.merged.len();
        let kind = match JoinType::try_from(join.jointype) {
            Ok(JoinType::JoinInner) => JoinKind::Inner,
            Ok(JoinType::JoinLeft) => JoinKind::Left,
            Ok(JoinType::JoinRight) => JoinKind::Right,
            Ok(JoinType::JoinFull) => JoinKind::Full,
            _ => return Err(Error::unsupported("this kind of join")),
        };
        let nullable = self.nullable;
        self.nullable += usize::from(matches!(kind, JoinKind::Right | JoinKind::Full));
        let left = self.bind_item(boxed(&join.larg)?, scope, with_keys, next)?;
        let middle = scope.tables.len();
        self.nullable = nullable + usize::from(matches!(kind, JoinKind::Left | JoinKind::Full));
        let right = self.bind_item(boxed(&join.rarg)?, scope, with_keys, next)?;
        self.nullable = nullable;
        if right.is_lateral() && matches!(kind, JoinKind::Right | JoinKind::Full) {
            let left = scope.tables[first..middle].first();
            return Err(Error::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "invalid reference to FROM-clause entry for table \"{}\"",
                    left.map_or("", |table| &table.alias)
                ),
            )
            .with_detail(
                "The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
            ));
        }
        for (place, item) in scope.tables.iter_mut().enumerate().skip(first) {
            item.joined = true;
            item.nullable |= match place < middle {
                true => matches!(kind, JoinKind::Right | JoinKind::Full),
                false => matches!(kind, JoinKind::Left | JoinKind::Full),
            };
        }
        let names: Vec<String> = match join.is_natural {
            true => {
                let known = match self.using_first {
                    true => &[],
                    false => &scope.merged[first_merged..],
                };
                common_names(&scope.tables, known, (first, middle))
            }
            false => strings(&join.using_clause)
                .into_iter()
                .map(str::to_owned)
                .collect(),
        };
        if let (Some(recorded), false) = (&mut self.recorded, names.is_empty()) {
            recorded.has_using = true;
        }
        if let Some(twice) = first_repeated(&names) {
            return Err(Error::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column name \"{twice}\" appears more than once in USING clause"),
            ));
        }
        let mut on = Vec::new();
        for (place, name) in names.iter().enumerate() {
            on.push(match self.using_first {
                true => self.merge_first(name, kind, scope, (first, middle, first_merged))?,
                false => self.merge(name, kind, scope, (first, middle, first_merged + place))?,
            });
        }
        if let Some(quals) = &join.quals {
            let view = Scope {
                parent: scope.parent,
                tables: scope.tables[first..].to_vec(),
                merged: scope.merged[first_merged..].to_vec(),
                covered: scope.covered.clone(),
                ..Scope::default()
            };
            let condition = self.expr(inner(quals)?, &view, Place::plain("JOIN/ON"))?;
            let condition = self.condition(condition, "JOIN/ON")?;
            if view.escapes.get() {
                scope.escapes.set(true);
            }
            on.extend(conjuncts(Some(condition)));
        }
        if let Some(alias) = &join.join_using_alias {
            self.alias_using(
                alias,
                scope,
                first,
                first_merged..first_merged + names.len(),
            )?;
        }
        if let Some(alias) = &join.alias {
            if with_keys && self.locks_all() {
                return Err(Error::unsupported("an alias for a join of locked rows"));
            }
            self.alias_join(alias, scope, first, first_merged)?;
        }
        joined(kind, left, right, on)
    }

    /// Merges a column of JOIN USING, which is put at that place of those that are merged: the equality
    /// it means.
    fn merge(
        &mut self,
        name: &str,
        kind: JoinKind,
        scope: &mut Scope<'_>,
        (first, middle, place): (usize, usize, usize),
    ) -> Result<Expr> {
        let merged = scope.merged[place..].iter().cloned();
        let merged = merged.partition(|merged| merged.before < middle);
        let (left, right) = self.using_columns(name, scope, (first, middle), merged)?;
        let inside = scope.merged.split_off(place);
        let (args, ty) = self.unify(vec![left.clone(), right.clone()], "JOIN/USING")?;
        let expr = merged_value(kind, args, ty);
        scope.merged.push(MergedColumn {
            name: name.to_owned(),
            expr,
            before: first,
        });
        let others = inside.into_iter().filter(|merged| merged.name != name);
        scope.merged.extend(others);
        self.binary("=", left, right, -1)
    }

    /// The same in text that was kept when such columns came first of all, each as it is on one side.
    fn merge_first(
        &mut self,
        name: &str,
        kind: JoinKind,
        scope: &mut Scope<'_>,
        (first, middle, first_merged): (usize, usize, usize),
    ) -> Result<Expr> {
        let merged = scope.merged[first_merged..].to_vec();
        let merged = (merged, Vec::new());
        let (left, right) = self.using_columns(name, scope, (first, middle), merged)?;
        scope.merged.retain(|merged| merged.name != name);
        let expr = match kind {
            JoinKind::Right => right.clone(),
            JoinKind::Full => {
                let (args, ty) = self.unify(vec![left.clone(), right.clone()], "JOIN/USING")?;
                merged_value(kind, args, ty)
            }
            JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti => left.clone(),
        };
        scope.merged.push(MergedColumn {
            name: name.to_owned(),
            expr,
            before: 0,
        });
        self.binary("=", left, right, -1)
    }

    /// The columns of that name on both sides of JOIN USING, of which some are merged already; from now on both are
    /// hidden.
    fn using_columns(
        &mut self,
        name: &str,
        scope: &mut Scope<'_>,
        (first, middle): (usize, usize),
        (left, right): (Vec<MergedColumn>, Vec<MergedColumn>),
    ) -> Result<(Expr, Expr)> {
        let side = |tables: &[ScopeTable], merged| Scope {
            tables: tables.to_vec(),
            merged,
            ..Scope::default()
        };
        let left = side(&scope.tables[first..middle], left);
        let right = side(&scope.tables[middle..], right);
        let left = self.using_column(name, &left, "left")?;
        let right = self.using_column(name, &right, "right")?;
        for table in &mut scope.tables[first..] {
            let columns = table.columns.iter_mut();
            for column in columns.filter(|column| column.name == name) {
                column.hidden = true;
            }
        }
        Ok((left, right))
    }

    /// The column of that name on one side of JOIN USING.
    fn using_column(&mut self, name: &str, side: &Scope<'_>, which: &str) -> Result<Expr> {
        let variables = self.cx.variables.take();
        let found = self.column(&[name], side, -1);
        self.cx.variables = variables;
        let wrong = |state, what: String| Err(Error::new(state, what));
        match found {
            Ok((column, _)) => Ok(column),
            Err(error) if error.state() == SqlState::AMBIGUOUS_COLUMN => wrong(
                SqlState::AMBIGUOUS_COLUMN,
                format!("common column name \"{name}\" appears more than once in {which} table"),
            ),
            Err(_) => wrong(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{name}\" specified in USING clause does not exist in {which} table"
                ),
            ),
        }
    }

    /// `a JOIN b USING (…) AS j`: an item of the merged columns, which only qualified names find.
    fn alias_using(
        &mut self,
        alias: &Alias,
        scope: &mut Scope<'_>,
        first: usize,
        places: Range<usize>,
    ) -> Result<()> {
        let merged = &scope.merged[places];
        let columns = merged.iter().map(|column| {
            let expr = &column.expr;
            query_column(&output(&column.name, expr, (0, 0)))
        });
        let start = scope.tables.get(first).map_or(0, |table| table.start);
        for column in merged {
            let expr = &column.expr;
            scope.tables.iter().for_each(|table| table.mark(expr));
        }
        let exprs = merged.iter().map(|column| column.expr.clone());
        let item = ScopeTable {
            exprs: Some(Rc::new(exprs.collect())),
            qualified_only: true,
            kind: ItemKind::Join,
            ..ScopeTable::of(alias.aliasname.clone(), columns.collect(), start)
        };
        scope.tables.push(item);
        self.check_aliases(scope)
    }

    /// `(a JOIN b …) AS j`: one item with all columns.
    fn alias_join(
        &mut self,
        alias: &Alias,
        scope: &mut Scope<'_>,
        first: usize,
        first_merged: usize,
    ) -> Result<()> {
        let merged = scope.merged.split_off(first_merged);
        let tables = scope.tables.split_off(first);
        let is_named =
            |table: &&ScopeTable| !(table.qualified_only && table.kind == ItemKind::Join);
        let covered = tables.iter().filter(is_named).cloned();
        scope.covered.extend(covered);
        let start = tables.first().map_or(0, |table| table.start);
        for table in &tables {
            if let Some(needed) = &table.needed {
                needed.borrow_mut().fill(true);
            }
        }
        let (mut columns, exprs) = match merged.is_empty() {
            true => (columns_of_join(&tables, start), None),
            false => {
                let inside = Scope {
                    merged: merged
                        .into_iter()
                        .map(|column| column.after(first))
                        .collect(),
                    tables,
                    ..Scope::default()
                };
                let mut all = Vec::new();
                inside.push_all(-1, &mut all);
                let columns = all.iter().map(|column| query_column(&column.1)).collect();
                let exprs = all.into_iter().map(|column| column.0).collect();
                (columns, Some(Rc::new(exprs)))
            }
        };
        let shown = columns.iter().filter(|column| !column.name.is_empty());
        let (has, given) = (shown.count(), alias.colnames.len());
        if given > has {
            let name = &alias.aliasname;
            let message = format!(
                "join expression \"{name}\" has {has} columns available but {given} columns specified"
            );
            return Err(Error::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        let name = self.alias(Some(alias), "", &mut columns)?;
        scope.tables.push(ScopeTable {
            exprs,
            kind: ItemKind::Join,
            ..ScopeTable::of(name, columns, start)
        });
        Ok(())
    }
}

/// What a merged column is, of both columns in their common type.
fn merged_value(kind: JoinKind, mut sides: Vec<Expr>, ty: TypeId) -> Expr {
    let is_plain = |side: &Expr| matches!(side.kind, ExprKind::Column(_));
    let place = match kind {
        JoinKind::Full => return Expr::new(ExprKind::Coalesce(sides), ty, -1),
        JoinKind::Right => 1,
        JoinKind::Left | JoinKind::Semi | JoinKind::Anti => 0,
        JoinKind::Inner => usize::from(!is_plain(&sides[0]) && is_plain(&sides[1])),
    };
    sides.swap_remove(place)
}

/// The columns of joined items as they stand in the row.
fn columns_of_join(tables: &[ScopeTable], start: usize) -> Vec<ScopeColumn> {
    let mut columns = Vec::new();
    for table in tables {
        // A hidden key between two tables has no name.
        while start + columns.len() < table.start {
            columns.push(plain_column("", TypeId::UNKNOWN));
        }
        columns.extend(table.columns.iter().cloned());
    }
    columns
}

fn first_repeated(names: &[String]) -> Option<&String> {
    let repeated = |(place, name): &(usize, &String)| names[..*place].contains(name);
    let found = names.iter().enumerate().find(repeated);
    found.map(|(_, name)| name)
}

/// The names that columns on both sides of a join have, of which those are merged already.
fn common_names(
    tables: &[ScopeTable],
    merged: &[MergedColumn],
    (first, middle): (usize, usize),
) -> Vec<String> {
    let names = |from: usize, to: usize| {
        let mut names = Vec::new();
        for (place, table) in tables.iter().enumerate().take(to).skip(from) {
            let before = merged.iter().filter(|column| column.before == place);
            names.extend(before.map(|column| column.name.clone()));
            let shown = |column: &&ScopeColumn| !column.hidden && !table.qualified_only;
            let columns = table.columns.iter().filter(shown);
            names.extend(columns.map(|column| column.name.clone()));
        }
        names.retain(|name| !name.is_empty());
        names
    };
    let right = names(middle, tables.len());
    let left = names(first, middle).into_iter();
    left.filter(|name| right.contains(name)).collect()
}
