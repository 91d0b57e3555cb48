//! FROM: tables, joins, functions and subqueries, and where each condition is tested.
//!
//! Items are first bound to a tree of [`Source`]s whose columns stand side by side in one row;
//! [`Binder::build`] then makes plans of it, each condition as far down as its columns allow.

use std::cell::RefCell;
use std::rc::Rc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    Alias, JoinExpr, JoinType, Node, RangeFunction, RangeSubselect, RangeVar,
};

use super::expr::{truth, Place};
use super::join_order::{rearrange, take_apart, Chain};
use super::policy::surely;
use super::scope::{plain_column, query_column, table_columns, Scope, ScopeColumn, ScopeTable};
use super::view::is_unpopulated;
use super::{boxed, inner, strings, Binder};
use crate::plan::compile;
use crate::plan::{Expr, ExprKind, Join, JoinKind, Plan, Scan};
use catalog::policy::PolicyCommand as For;
use catalog::RelationKind;
use functions::resolve_operator;
use syntax::parser::NodeEnum;
use types::TypeId;

/// A bound item of FROM.
pub struct Source {
    pub(super) kind: SourceKind,
    /// Where its columns begin in the row.
    pub(super) start: usize,
    /// How many it has.
    pub(super) width: usize,
}

pub(super) enum SourceKind {
    /// A table.
    Scan {
        scan: Box<Scan>,
        /// What its rows must meet before anything else looks at them ([`super::policy`]); none as
        /// long as that is not settled.
        guards: Option<Vec<Expr>>,
        /// What its rows must meet by themselves.
        own: Vec<Expr>,
    },
    Other(Plan),
    Join {
        kind: JoinKind,
        left: Box<Source>,
        right: Box<Source>,
        on: Vec<Expr>,
        lateral: bool,
    },
}

impl Source {
    /// Rows of a table must meet these too, the guards first.
    pub(super) fn filter(&mut self, more: Vec<Expr>, conditions: Vec<Expr>) {
        if let SourceKind::Scan { guards, own, .. } = &mut self.kind {
            guards.get_or_insert_default().extend(more);
            own.extend(conditions);
        }
    }

    /// What the rows of the table whose columns begin there must meet by themselves.
    pub(super) fn conditions_of(&self, place: usize) -> Vec<Expr> {
        match &self.kind {
            SourceKind::Scan { guards, own, .. } if self.start == place => {
                let guards = guards.iter().flatten().cloned().map(surely);
                guards.chain(own.iter().cloned()).collect()
            }
            SourceKind::Join { left, right, .. } => {
                let mut all = left.conditions_of(place);
                all.extend(right.conditions_of(place));
                all
            }
            _ => Vec::new(),
        }
    }

    /// Whether a place of the row is one of its columns.
    pub(super) fn holds(&self, place: usize) -> bool {
        (self.start..self.start + self.width).contains(&place)
    }

    /// Whether [`lateral_of`] has marked it.
    fn is_lateral(&self) -> bool {
        matches!(&self.kind, SourceKind::Join { lateral: true, left, .. } if left.width == 0)
    }

    /// Moves it to where its columns have gone.
    pub(super) fn move_columns(&mut self, places: &[usize]) {
        if self.width > 0 {
            self.start = places[self.start];
        }
        let conditions: Vec<&mut Expr> = match &mut self.kind {
            SourceKind::Scan { guards, own, .. } => {
                guards.iter_mut().flatten().chain(own).collect()
            }
            SourceKind::Other(_) => return,
            SourceKind::Join {
                left, right, on, ..
            } => {
                left.move_columns(places);
                right.move_columns(places);
                on.iter_mut().collect()
            }
        };
        for condition in conditions {
            super::join_order::move_columns(condition, places);
        }
    }
}

/// The commands whose policies guard rows that are read, or read and locked.
pub(super) fn reads(with_lock: bool) -> &'static [For] {
    match with_lock {
        true => &[For::Select, For::Update],
        false => &[For::Select],
    }
}

/// The conditions that must all be met.
pub(super) fn conjuncts(condition: Option<Expr>) -> Vec<Expr> {
    match condition {
        None => Vec::new(),
        Some(Expr {
            kind: ExprKind::And(parts),
            ..
        }) => parts
            .into_iter()
            .flat_map(|part| conjuncts(Some(part)))
            .collect(),
        Some(other) => vec![other],
    }
}

/// All of the conditions as one.
pub(super) fn all_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(truth(ExprKind::And(conditions), -1)),
    }
}

/// Whether all columns that it names lie in a range.
pub(super) fn within(expr: &Expr, start: usize, width: usize) -> bool {
    !expr.any(&|part| match part.kind {
        ExprKind::Column(place) => place < start || place >= start + width,
        _ => false,
    })
}

/// Whether it looks at rows of enclosing queries.
pub(super) fn looks_outside(expr: &Expr) -> bool {
    expr.any(&|part| match &part.kind {
        ExprKind::Outer(..) => true,
        ExprKind::Sub(query, ..) => query.correlated,
        _ => false,
    })
}

pub(super) fn names_columns(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part.kind, ExprKind::Column(_)))
}

impl Binder<'_> {
    /// Binds the items of FROM; their columns are added to the scope. None when there is no item.
    pub(super) fn bind_from(
        &mut self,
        items: &[Node],
        scope: &mut Scope<'_>,
        with_keys: bool,
        next: &mut usize,
    ) -> Result<Option<Source>> {
        let mut whole: Option<Source> = None;
        for item in items {
            let source = self.bind_item(inner(item)?, scope, with_keys, next)?;
            whole = Some(match whole {
                None => source,
                Some(left) => cross(left, source),
            });
        }
        self.check_aliases(scope)?;
        Ok(whole)
    }

    fn check_aliases(&self, scope: &Scope<'_>) -> Result<()> {
        for (place, table) in scope.tables.iter().enumerate() {
            let same = |other: &ScopeTable| other.alias == table.alias && !table.alias.is_empty();
            if scope.tables[..place].iter().any(same) {
                return Err(Error::new(
                    SqlState::DUPLICATE_ALIAS,
                    format!("table name \"{}\" specified more than once", table.alias),
                ));
            }
        }
        Ok(())
    }

    fn bind_item(
        &mut self,
        node: &NodeEnum,
        scope: &mut Scope<'_>,
        with_keys: bool,
        next: &mut usize,
    ) -> Result<Source> {
        self.deeper(|binder| match node {
            NodeEnum::RangeVar(range) => binder.range_var(range, scope, with_keys, next),
            NodeEnum::JoinExpr(join) => binder.join(join, scope, with_keys, next),
            NodeEnum::RangeSubselect(query) => binder.range_subselect(query, scope, next),
            NodeEnum::RangeFunction(function) => binder.range_function(function, scope, next),
            NodeEnum::RangeTableSample(_) => Err(Error::unsupported("TABLESAMPLE")),
            _ => Err(Error::unsupported("this kind of FROM item")),
        })
    }

    fn range_var(
        &mut self,
        range: &RangeVar,
        scope: &mut Scope<'_>,
        with_keys: bool,
        next: &mut usize,
    ) -> Result<Source> {
        if let Some((plan, columns)) = self.query_of_with(range)? {
            let columns = columns.iter().map(query_column).collect();
            let alias = range.alias.as_ref();
            return self.other(plan, columns, &range.relname, alias, scope, next);
        }
        let alias = range.alias.as_ref();
        let locked = with_keys && self.is_locked(alias, &range.relname);
        let lock = if locked {
            TableLock::RowShare
        } else {
            TableLock::AccessShare
        };
        let table = self.table(range, lock)?;
        let source = match table.kind {
            RelationKind::System | RelationKind::Sequence => {
                let plan = self.system(&table)?;
                let columns = table_columns(&table);
                self.other(plan, columns, &table.name, alias, scope, next)?
            }
            RelationKind::View => match self.pull_up(&table, alias, scope, with_keys, next)? {
                Some(source) => source,
                None => self.view(&table, alias, scope, next)?,
            },
            RelationKind::Table | RelationKind::MaterializedView => {
                if is_unpopulated(&table) {
                    self.unpopulated.get_or_insert(table.oid);
                }
                let source = self.scan(table.clone(), alias, scope, with_keys, next)?;
                self.guarded(source, reads(locked))?
            }
        };
        let item = scope.tables.last_mut();
        let item = item.ok_or_else(|| Error::internal("an item that is not in scope"))?;
        if let Some(recorded) = &mut self.recorded {
            item.needed = Some(recorded.relation(range, &table, item.needed.take()));
        }
        if alias.is_none() || self.stored {
            item.table = Some(table);
        }
        Ok(source)
    }

    /// Whether locking clauses, if there are any, mean an item of that alias or name.
    pub(super) fn is_locked(&self, alias: Option<&Alias>, name: &str) -> bool {
        let shown = alias.map_or(name, |alias| alias.aliasname.as_str());
        self.locked.is_empty() || self.locked.iter().any(|locked| locked == shown)
    }

    /// The same scan with what policies ask of its rows, for these commands.
    pub(super) fn guarded(&mut self, mut source: Source, commands: &[For]) -> Result<Source> {
        let start = source.start;
        if let SourceKind::Scan { scan, guards, .. } = &mut source.kind {
            *guards = Some(self.guards(&scan.table, start, &scan.needed, commands)?);
        }
        Ok(source)
    }

    /// A scan of a table, added to the scope; [`Binder::guarded`] completes it.
    pub(super) fn scan(
        &mut self,
        table: std::sync::Arc<catalog::Table>,
        alias: Option<&Alias>,
        scope: &mut Scope<'_>,
        with_key: bool,
        next: &mut usize,
    ) -> Result<Source> {
        let start = *next;
        let width = table.columns.len() + usize::from(with_key);
        *next += width;
        // Whoever writes or locks a row needs it whole.
        let needed = Rc::new(RefCell::new(vec![with_key; table.columns.len()]));
        let mut columns = table_columns(&table);
        let name = self.alias(alias, &table.name, &mut columns)?;
        scope.tables.push(ScopeTable {
            alias: name,
            table: Some(table.clone()),
            columns,
            start,
            needed: Some(needed.clone()),
            exprs: None,
            base: None,
            qualified_only: false,
        });
        let table = match &self.trees_seen {
            None => table,
            Some(seen) => {
                let mut shown = (*table).clone();
                shown
                    .indexes
                    .retain(|index| index.primary || seen.contains(&index.tree));
                std::sync::Arc::new(shown)
            }
        };
        let computed = self.computed_access(&table)?;
        let scan = Scan {
            table,
            index: None,
            access: crate::plan::Access::default(),
            needed,
            filter: None,
            with_key,
            backward: false,
            computed,
        };
        Ok(Source {
            kind: SourceKind::Scan {
                scan: Box::new(scan),
                guards: None,
                own: Vec::new(),
            },
            start,
            width,
        })
    }

    pub(super) fn alias(
        &mut self,
        alias: Option<&Alias>,
        name: &str,
        columns: &mut [ScopeColumn],
    ) -> Result<String> {
        let Some(alias) = alias else {
            return Ok(name.to_owned());
        };
        let names = strings(&alias.colnames);
        if std::mem::take(&mut self.positional) {
            let mut names = names.into_iter();
            for column in columns {
                let name = names.next().filter(|_| !column.name.is_empty());
                column.name = name.unwrap_or("").to_owned();
            }
            return Ok(alias.aliasname.clone());
        }
        let shown: Vec<_> = columns
            .iter_mut()
            .filter(|column| !column.name.is_empty())
            .collect();
        if names.len() > shown.len() {
            return Err(Error::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "table \"{}\" has {} columns available but {} columns specified",
                    alias.aliasname,
                    shown.len(),
                    names.len()
                ),
            ));
        }
        for (column, name) in shown.into_iter().zip(names) {
            column.name = name.to_owned();
        }
        Ok(alias.aliasname.clone())
    }

    pub(super) fn other(
        &mut self,
        plan: Plan,
        mut columns: Vec<ScopeColumn>,
        name: &str,
        alias: Option<&Alias>,
        scope: &mut Scope<'_>,
        next: &mut usize,
    ) -> Result<Source> {
        let (start, width) = (*next, columns.len());
        *next += width;
        let alias = self.alias(alias, name, &mut columns)?;
        scope.tables.push(ScopeTable {
            alias,
            table: None,
            columns,
            start,
            needed: None,
            exprs: None,
            base: None,
            qualified_only: false,
        });
        Ok(Source {
            kind: SourceKind::Other(plan),
            start,
            width,
        })
    }

    fn range_subselect(
        &mut self,
        query: &RangeSubselect,
        scope: &mut Scope<'_>,
        next: &mut usize,
    ) -> Result<Source> {
        let NodeEnum::SelectStmt(select) = boxed(&query.subquery)? else {
            return Err(Error::internal("a subquery in FROM that is no SELECT"));
        };
        let bound = if query.lateral {
            let beside = beside(scope);
            let bound = self.select(select, Some(&beside))?;
            if beside.escapes.get() {
                scope.escapes.set(true);
            }
            bound
        } else {
            let bound = self.select(select, scope.parent)?;
            if bound.escapes {
                scope.escapes.set(true);
            }
            bound
        };
        let lateral = query.lateral && bound.escapes;
        let columns = bound.columns.iter().map(query_column).collect();
        let mut source = self.other(bound.plan, columns, "", query.alias.as_ref(), scope, next)?;
        if lateral {
            source = lateral_of(source);
        }
        Ok(source)
    }

    fn range_function(
        &mut self,
        function: &RangeFunction,
        scope: &mut Scope<'_>,
        next: &mut usize,
    ) -> Result<Source> {
        let [item] = function.functions.as_slice() else {
            return Err(Error::unsupported("ROWS FROM"));
        };
        let call = match inner(item)? {
            NodeEnum::List(list) => list
                .items
                .first()
                .ok_or_else(|| Error::internal("no function in FROM"))?,
            _ => item,
        };
        if !function.coldeflist.is_empty() {
            return Err(Error::unsupported("a column definition list"));
        }
        let beside = beside(scope);
        let place = Place {
            sets: true,
            ..Place::plain("functions in FROM")
        };
        beside.inner_stands.set(place);
        let level = Scope::inside(Some(&beside));
        let expr = self.node(call, &level, place)?;
        let lateral = level.escapes.get();
        if beside.escapes.get() {
            scope.escapes.set(true);
        }
        let name = super::column_name::column_name(inner(call)?);
        let name = function
            .alias
            .as_ref()
            .map_or(name, |alias| alias.aliasname.clone());
        let of_record = match &expr.kind {
            ExprKind::SetCall(called, ..) => called.0.columns(),
            _ => None,
        };
        let mut columns = match of_record {
            Some(columns) => columns
                .iter()
                .map(|(name, ty)| plain_column(name, *ty))
                .collect(),
            None => vec![plain_column(&name, expr.ty)],
        };
        if function.ordinality {
            columns.push(plain_column("ordinality", TypeId::INT8));
        }
        let plan = match expr.kind {
            ExprKind::SetCall(function_called, args, types) => Plan::Function {
                function: function_called,
                args: args.iter().map(compile).collect(),
                types,
                result: expr.ty,
                ordinality: function.ordinality,
            },
            _ if function.ordinality => return Err(Error::unsupported("WITH ORDINALITY here")),
            _ => Plan::Values(vec![vec![compile(&expr)]]),
        };
        let source = self.other(plan, columns, &name, function.alias.as_ref(), scope, next)?;
        Ok(if lateral { lateral_of(source) } else { source })
    }

    fn join(
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
        let names = match join.is_natural {
            true => common_names(&scope.tables[first..middle], &scope.tables[middle..]),
            false => strings(&join.using_clause)
                .into_iter()
                .map(str::to_owned)
                .collect(),
        };
        let mut on = Vec::new();
        for name in names {
            on.push(self.merge(&name, kind, scope, (first, middle, first_merged))?);
        }
        if let Some(quals) = &join.quals {
            let view = Scope {
                parent: scope.parent,
                tables: scope.tables[first..].to_vec(),
                merged: scope.merged[first_merged..].to_vec(),
                ..Scope::default()
            };
            let condition = self.expr(inner(quals)?, &view, Place::plain("JOIN/ON"))?;
            let condition = self.condition(condition, "JOIN/ON")?;
            if view.escapes.get() {
                scope.escapes.set(true);
            }
            on.extend(conjuncts(Some(condition)));
        }
        if let Some(alias) = &join.alias {
            self.alias_join(alias, scope, first, first_merged)?;
        }
        Ok(joined(kind, left, right, on))
    }

    /// Merges a column of JOIN USING: the equality it means.
    fn merge(
        &mut self,
        name: &str,
        kind: JoinKind,
        scope: &mut Scope<'_>,
        (first, middle, first_merged): (usize, usize, usize),
    ) -> Result<Expr> {
        let side = |tables: &[ScopeTable], merged: &[(String, Expr)]| Scope {
            tables: tables.to_vec(),
            merged: merged.to_vec(),
            ..Scope::default()
        };
        let left = side(&scope.tables[first..middle], &scope.merged[first_merged..]);
        let right = side(&scope.tables[middle..], &[]);
        let variables = self.cx.variables.take();
        let left = self.column(&[name], &left, -1);
        let right = self.column(&[name], &right, -1);
        self.cx.variables = variables;
        let missing = |side: &str| {
            Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{name}\" specified in USING clause does not exist in {side} table"
                ),
            )
        };
        let left = left.map_err(|_| missing("left"))?.0;
        let right = right.map_err(|_| missing("right"))?.0;
        for table in &mut scope.tables[first..] {
            for column in table
                .columns
                .iter_mut()
                .filter(|column| column.name == name)
            {
                column.hidden = true;
            }
        }
        scope.merged.retain(|merged| merged.0 != name);
        let merged = match kind {
            JoinKind::Inner | JoinKind::Left => left.clone(),
            JoinKind::Right => right.clone(),
            JoinKind::Full => {
                let (args, ty) = self.unify(vec![left.clone(), right.clone()], "JOIN/USING")?;
                Expr::new(ExprKind::Coalesce(args), ty, -1)
            }
        };
        scope.merged.push((name.to_owned(), merged));
        self.binary("=", left, right, -1)
    }

    /// `(a JOIN b …) AS j`: one item with all columns.
    fn alias_join(
        &mut self,
        alias: &Alias,
        scope: &mut Scope<'_>,
        first: usize,
        first_merged: usize,
    ) -> Result<()> {
        if scope.merged.len() > first_merged {
            return Err(Error::unsupported("an alias for a join with USING"));
        }
        let tables = scope.tables.split_off(first);
        let start = tables.first().map_or(0, |table| table.start);
        let mut columns = Vec::new();
        for table in &tables {
            if let Some(needed) = &table.needed {
                needed.borrow_mut().fill(true);
            }
            // A hidden key between two tables has no name.
            while start + columns.len() < table.start {
                columns.push(plain_column("", TypeId::UNKNOWN));
            }
            columns.extend(table.columns.iter().cloned());
        }
        let name = self.alias(Some(alias), "", &mut columns)?;
        scope.tables.push(ScopeTable {
            alias: name,
            table: None,
            columns,
            start,
            needed: None,
            exprs: None,
            base: None,
            qualified_only: false,
        });
        Ok(())
    }

    /// The plan of a source whose rows meet the conditions.
    pub(super) fn build(&mut self, source: Source, conditions: Vec<Expr>) -> Result<Plan> {
        let start = source.start;
        match source.kind {
            SourceKind::Scan { scan, guards, own } => {
                let guards = guards.ok_or_else(|| Error::internal("a scan without guards"))?;
                let all = own.into_iter().chain(conditions).collect();
                let (guards, local) = (shifted(guards, start), shifted(all, start));
                Ok(Plan::Scan(self.choose_access(*scan, guards, local)?))
            }
            SourceKind::Other(plan) => {
                let local = shifted(conditions, start);
                Ok(filtered(super::system::keyed(plan, &local), local))
            }
            SourceKind::Join {
                kind: JoinKind::Inner,
                lateral: false,
                ..
            } => self.build_chain(source, conditions),
            SourceKind::Join {
                kind,
                left,
                right,
                on,
                lateral,
            } => self.build_join(kind, *left, *right, on, lateral, conditions, start),
        }
    }

    /// The plan of inner joins, in a good order.
    fn build_chain(&mut self, source: Source, conditions: Vec<Expr>) -> Result<Plan> {
        let (start, width) = (source.start, source.width);
        let mut chain = Chain {
            items: Vec::new(),
            conditions,
        };
        take_apart(source, &mut chain);
        let order = self.join_order(&chain);
        let places = rearrange(&mut chain, &order);
        let mut items = chain.items.into_iter();
        let (Some(mut left), Some(mut right)) = (items.next(), items.next()) else {
            return Err(Error::internal("a join of fewer than two items"));
        };
        for next in items {
            left = cross(left, right);
            right = next;
        }
        let (kind, none) = (JoinKind::Inner, Vec::new());
        let plan = self.build_join(kind, left, right, none, false, chain.conditions, start)?;
        if order.is_sorted() {
            return Ok(plan);
        }
        // Back to where the rest of the query looks for them.
        let column = |place: usize| {
            let column = ExprKind::Column(places[place] - start);
            compile(&Expr::new(column, TypeId::UNKNOWN, -1))
        };
        Ok(Plan::Project(
            Rc::new(plan),
            (0..width).map(column).collect(),
        ))
    }

    #[allow(clippy::too_many_arguments)]
    fn build_join(
        &mut self,
        kind: JoinKind,
        left: Source,
        right: Source,
        on: Vec<Expr>,
        lateral: bool,
        conditions: Vec<Expr>,
        start: usize,
    ) -> Result<Plan> {
        let in_left = |expr: &Expr| within(expr, left.start, left.width) && names_columns(expr);
        // A lateral input sees the left row as one more enclosing query: what looks outside on its
        // own account stays out of it.
        let in_right = |expr: &Expr| {
            within(expr, right.start, right.width)
                && names_columns(expr)
                && !(lateral && looks_outside(expr))
        };
        let (mut to_left, mut to_right) = (Vec::new(), Vec::new());
        let (mut here, mut above) = (Vec::new(), Vec::new());
        for condition in on {
            // A condition of ON may be tested early only on the side that is not kept whole.
            if in_left(&condition) && matches!(kind, JoinKind::Inner | JoinKind::Right) {
                to_left.push(condition);
            } else if in_right(&condition) && matches!(kind, JoinKind::Inner | JoinKind::Left) {
                to_right.push(condition);
            } else {
                here.push(condition);
            }
        }
        for condition in conditions {
            if in_left(&condition) && matches!(kind, JoinKind::Inner | JoinKind::Left) {
                to_left.push(condition);
            } else if in_right(&condition) && matches!(kind, JoinKind::Inner | JoinKind::Right) {
                to_right.push(condition);
            } else if kind == JoinKind::Inner {
                here.push(condition);
            } else {
                above.push(condition);
            }
        }
        let mut hash = Vec::new();
        if !lateral {
            for condition in &here {
                hash.extend(equi_pair(condition, &left, &right));
            }
        }
        let lookup = match kind {
            JoinKind::Inner | JoinKind::Left if !lateral => {
                self.lookup(&left, &right, &to_right, &here)?
            }
            _ => None,
        };
        let join = Join {
            kind,
            lookup,
            left_width: left.width,
            right_width: right.width,
            left: Rc::new(self.build(left, to_left)?),
            right: Rc::new(self.build(right, to_right)?),
            hash,
            condition: all_of(shifted(here, start)).as_ref().map(compile),
            lateral,
        };
        Ok(filtered(Plan::Join(Box::new(join)), shifted(above, start)))
    }
}

/// The items so far as the scope of a lateral one.
fn beside<'s>(scope: &Scope<'s>) -> Scope<'s> {
    Scope {
        parent: scope.parent,
        tables: scope.tables.clone(),
        merged: scope.merged.clone(),
        ..Scope::default()
    }
}

/// Marks a source as looking at those on its left.
fn lateral_of(source: Source) -> Source {
    let (start, width) = (source.start, source.width);
    let nothing = Source {
        kind: SourceKind::Other(Plan::Values(vec![Vec::new()])),
        start,
        width: 0,
    };
    Source {
        kind: SourceKind::Join {
            kind: JoinKind::Inner,
            left: Box::new(nothing),
            right: Box::new(source),
            on: Vec::new(),
            lateral: true,
        },
        start,
        width,
    }
}

pub(super) fn cross(left: Source, right: Source) -> Source {
    joined(JoinKind::Inner, left, right, Vec::new())
}

fn joined(kind: JoinKind, left: Source, right: Source, on: Vec<Expr>) -> Source {
    let (start, width) = (left.start, left.width + right.width);
    // The marker that `lateral_of` left is taken off: this join is the lateral one.
    let (right, lateral) = match right.kind {
        SourceKind::Join {
            right,
            lateral: true,
            left: nothing,
            ..
        } if nothing.width == 0 => (*right, true),
        kind => (
            Source {
                kind,
                start: right.start,
                width: right.width,
            },
            false,
        ),
    };
    Source {
        kind: SourceKind::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            on,
            lateral,
        },
        start,
        width,
    }
}

fn common_names(left: &[ScopeTable], right: &[ScopeTable]) -> Vec<String> {
    let names = |tables: &[ScopeTable]| {
        let columns = tables.iter().flat_map(|table| table.columns.clone());
        columns
            .filter(|column| !column.hidden)
            .map(|column| column.name)
            .collect::<Vec<_>>()
    };
    let right = names(right);
    names(left)
        .into_iter()
        .filter(|name| right.contains(name))
        .collect()
}

pub(super) fn shifted(mut conditions: Vec<Expr>, by: usize) -> Vec<Expr> {
    if by > 0 {
        conditions
            .iter_mut()
            .for_each(|condition| condition.shift(by));
    }
    conditions
}

/// The plan's rows that meet the conditions.
pub(super) fn filtered(plan: Plan, conditions: Vec<Expr>) -> Plan {
    match all_of(conditions) {
        None => plan,
        Some(condition) => Plan::Filter(Rc::new(plan), compile(&condition)),
    }
}

/// Both sides of an equality between the two sources, if the condition is one.
fn equi_pair(
    condition: &Expr,
    left: &Source,
    right: &Source,
) -> Option<(crate::plan::Program, crate::plan::Program, TypeId)> {
    let ExprKind::Call(function, args, _) = &condition.kind else {
        return None;
    };
    let [a, b] = args.as_slice() else {
        return None;
    };
    if a.ty != b.ty {
        return None;
    }
    let equality = resolve_operator("=", a.ty, b.ty).ok()?;
    if equality.operator.function.oid != function.0.oid {
        return None;
    }
    let on =
        |expr: &Expr, side: &Source| within(expr, side.start, side.width) && names_columns(expr);
    let (a, b) = match (on(a, left) && on(b, right), on(b, left) && on(a, right)) {
        (true, _) => (a, b),
        (_, true) => (b, a),
        _ => return None,
    };
    let local = |expr: &Expr, side: &Source| {
        let mut expr = expr.clone();
        expr.shift(side.start);
        compile(&expr)
    };
    Some((local(a, left), local(b, right), a.ty))
}
