//! FROM: tables, joins, functions and subqueries, and where each condition is tested.
//!
//! Items are bound to a tree of [`Source`]s whose columns stand side by side in one row.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{Alias, Node, RangeFunction, RangeSubselect, RangeVar, SelectStmt};

use super::expr::{Place, Sets};
use super::fields::Field;
use super::fixed::CalledItem;
use super::listed;
use super::locking::has_lockable;
use super::project_set::projection;
use super::rule::ROWS;
use super::scope::{
    plain_column, query_column, table_columns, ItemKind, Scope, ScopeColumn, ScopeTable,
};
use super::select::{Body, Query};
use super::view::is_unpopulated;
use super::{boxed, inner, rows_from, strings, Binder};
use crate::logical::{cross, lateral_of, Source, SourceKind, NOWHERE};
use crate::plan::compile;
use crate::plan::{Collated, Expr, ExprKind, Plan, RoutineCall, Scan};
use catalog::policy::PolicyCommand as For;
use catalog::RelationKind;
use syntax::parser::NodeEnum;
use types::TypeId;

/// The commands whose policies guard rows that are read, or read and locked.
pub(super) fn reads(with_lock: bool) -> &'static [For] {
    match with_lock {
        true => &[For::Select, For::Update],
        false => &[For::Select],
    }
}

/// The table as it is meant: with ONLY, without those that inherit from it.
///
/// # Errors
/// 0A000 for the rows of a partitioned table that are in no partition.
pub(super) fn as_meant(
    range: &RangeVar,
    table: Arc<catalog::Table>,
) -> Result<Arc<catalog::Table>> {
    match (range.inh, table.kind) {
        (true, _) => Ok(table),
        (false, RelationKind::Partitioned) => {
            Err(Error::unsupported("ONLY of a partitioned table"))
        }
        (false, _) => Ok(table.alone()),
    }
}

/// What the item that was added last is to a locking clause.
fn mark_last(scope: &mut Scope<'_>, kind: ItemKind) {
    if let Some(item) = scope.tables.last_mut() {
        item.kind = kind;
    }
}

/// Whether a subquery has no FROM.
fn reads_nothing(query: &RangeSubselect) -> bool {
    match boxed(&query.subquery) {
        Ok(NodeEnum::SelectStmt(select)) => select.from_clause.is_empty() && has_lockable(select),
        _ => false,
    }
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
                Some(left) => cross(left, source)?,
            });
        }
        self.check_aliases(scope)?;
        Ok(whole)
    }

    /// 42712 for two items of one name.
    pub(super) fn check_aliases(&self, scope: &Scope<'_>) -> Result<()> {
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

    /// Binds an item of FROM; its columns are added to the scope.
    pub(super) fn bind_item(
        &mut self,
        node: &NodeEnum,
        scope: &mut Scope<'_>,
        with_keys: bool,
        next: &mut usize,
    ) -> Result<Source> {
        self.deeper(|binder| match node {
            NodeEnum::RangeVar(range) => binder.range_var(range, scope, with_keys, next),
            NodeEnum::JoinExpr(join) => binder.join(join, scope, with_keys, next),
            NodeEnum::RangeSubselect(query) => {
                let source = binder.range_subselect(query, scope, with_keys, next);
                if reads_nothing(query) {
                    mark_last(scope, ItemKind::Constant);
                }
                source
            }
            NodeEnum::RangeFunction(function) => {
                let source = binder.range_function(function, scope, next);
                mark_last(scope, ItemKind::Function);
                source
            }
            NodeEnum::RangeTableSample(sample) => {
                binder.range_sample(sample, scope, with_keys, next)
            }
            _ => Err(Error::unsupported("this kind of FROM item")),
        })
    }

    pub(super) fn range_var(
        &mut self,
        range: &RangeVar,
        scope: &mut Scope<'_>,
        with_keys: bool,
        next: &mut usize,
    ) -> Result<Source> {
        if self.stored && range.schemaname == ROWS && self.frame.is_some() {
            return self.rows_of_rule(scope, next);
        }
        if let Some((body, columns, listed)) = self.query_of_with(range)? {
            let mut columns: Vec<_> = columns.iter().map(query_column).collect();
            for column in columns.iter_mut().skip(listed) {
                column.unlisted = true;
            }
            let alias = range.alias.as_ref();
            let source = self.query_item(body, columns, &range.relname, alias, scope, next);
            mark_last(scope, ItemKind::With);
            return source;
        }
        let alias = range.alias.as_ref();
        let variables = self.cx.variables.filter(|_| range.schemaname.is_empty());
        if let Some((table, is_new)) = variables.and_then(|known| known.rows_named(&range.relname))
        {
            let mut columns = table_columns(&table);
            for column in &mut columns {
                column.origin = (0, 0);
            }
            let plan = Plan::Transition(is_new);
            return self.other(plan, columns, &range.relname, alias, scope, next);
        }
        let locked = with_keys && self.is_locked(alias, &range.relname);
        let lock = if locked {
            TableLock::RowShare
        } else {
            TableLock::AccessShare
        };
        let table = as_meant(range, self.table(range, lock)?)?;
        let source = match table.kind {
            RelationKind::System | RelationKind::Sequence => {
                let plan = self.system(&table)?;
                let columns = table_columns(&table);
                self.other(plan, columns, &table.name, alias, scope, next)?
            }
            RelationKind::View => match self.pull_up(&table, alias, scope, with_keys, next)? {
                Some(source) => source,
                None => self.view(&table, alias, scope, locked, next)?,
            },
            RelationKind::Table | RelationKind::MaterializedView | RelationKind::Partitioned => {
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
        table: Arc<catalog::Table>,
        alias: Option<&Alias>,
        scope: &mut Scope<'_>,
        with_key: bool,
        next: &mut usize,
    ) -> Result<Source> {
        let start = *next;
        let partitions = self.leaves(&table)?;
        let oid = start + table.columns.len() + usize::from(with_key);
        let width = oid - start + usize::from(partitions.is_some());
        *next += width;
        // Whoever writes or locks a row needs it whole.
        let needed = Rc::new(RefCell::new(vec![with_key; table.columns.len()]));
        let mut columns = table_columns(&table);
        let name = self.alias(alias, &table.name, &mut columns)?;
        let called = (name != table.name).then(|| Rc::from(name.as_str()));
        scope.tables.push(ScopeTable {
            table: Some(table.clone()),
            needed: Some(needed.clone()),
            oid: partitions.as_ref().map(|_| oid),
            ..ScopeTable::of(name, columns, start)
        });
        let table = self.with_trees_seen(table);
        let computed = match &partitions {
            None => self.computed_access(&table)?,
            Some(_) => None,
        };
        let together = self.known_together(&table)?;
        let scan = Scan {
            table,
            index: None,
            access: crate::plan::Access::default(),
            inverted: None,
            alternatives: Vec::new(),
            slower: None,
            needed,
            kept: None,
            filter: None,
            with_key,
            with_oid: false,
            partitions,
            current_of: None,
            backward: false,
            computed,
            together,
            expected: None,
            alias: called,
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
        columns: Vec<ScopeColumn>,
        name: &str,
        alias: Option<&Alias>,
        scope: &mut Scope<'_>,
        next: &mut usize,
    ) -> Result<Source> {
        let kind = SourceKind::Other {
            plan: Box::new(plan),
            escapes: false,
            reach: NOWHERE,
            moved: 0,
        };
        self.item_of(kind, columns, name, alias, scope, next)
    }

    /// An item of FROM that is a query, added to the scope.
    pub(super) fn query_item(
        &mut self,
        body: Body,
        columns: Vec<ScopeColumn>,
        name: &str,
        alias: Option<&Alias>,
        scope: &mut Scope<'_>,
        next: &mut usize,
    ) -> Result<Source> {
        match body {
            Body::Simple(simple) if simple.is_settled() => {
                let kind = SourceKind::Derived(Box::new(simple.into_derived()));
                self.item_of(kind, columns, name, alias, scope, next)
            }
            body => {
                let plan = self.plan_of(body)?;
                self.other(plan, columns, name, alias, scope, next)
            }
        }
    }

    fn item_of(
        &mut self,
        kind: SourceKind,
        mut columns: Vec<ScopeColumn>,
        name: &str,
        alias: Option<&Alias>,
        scope: &mut Scope<'_>,
        next: &mut usize,
    ) -> Result<Source> {
        let (start, width) = (*next, columns.len());
        *next += width;
        let alias = self.alias(alias, name, &mut columns)?;
        scope.tables.push(ScopeTable::of(alias, columns, start));
        Ok(Source { kind, start, width })
    }

    fn range_subselect(
        &mut self,
        query: &RangeSubselect,
        scope: &mut Scope<'_>,
        with_keys: bool,
        next: &mut usize,
    ) -> Result<Source> {
        let NodeEnum::SelectStmt(select) = boxed(&query.subquery)? else {
            return Err(Error::internal("a subquery in FROM that is no SELECT"));
        };
        let locking = (with_keys && select.values_lists.is_empty()).then(|| {
            let alias = query.alias.as_ref();
            self.locking(select, alias.map_or("", |alias| &alias.aliasname))
        });
        if let Some(locking) = locking
            .as_ref()
            .filter(|_| !query.lateral && self.may_merge())
        {
            if let Some(merged) = self.merged(select, locking, scope.parent, next)? {
                let named = ("", query.alias.as_ref());
                return self.merged_item(merged, None, named, scope);
            }
        }
        let select = locking.as_ref().unwrap_or(select);
        let mut from = NOWHERE;
        let bound = if query.lateral {
            let beside = beside(scope);
            let bound = self.running_once(false, |binder| binder.item(select, Some(&beside)))?;
            from = beside.seen();
            if beside.escapes.get() {
                scope.escapes.set(true);
            }
            bound
        } else {
            let bound = self.item(select, scope.parent)?;
            if bound.escapes {
                scope.escapes.set(true);
            }
            bound
        };
        let (escapes, lateral) = (bound.escapes, query.lateral && bound.escapes);
        let columns = bound.columns.iter().map(query_column).collect();
        let alias = query.alias.as_ref();
        if !lateral {
            let source = self.query_item(bound.body, columns, "", alias, scope, next)?;
            return Ok(source.escaping(escapes));
        }
        let mut body = bound.body;
        let may_be_part = match &mut body {
            Body::Simple(simple) => simple.may_stand_beside(),
            Body::Plan(_) => false,
        };
        let source = match may_be_part {
            true => self.query_item(body, columns, "", alias, scope, next)?,
            false => {
                let plan = self.plan_of(body)?;
                self.other(plan, columns, "", alias, scope, next)?
            }
        };
        Ok(lateral_of(source.escaping(escapes), from))
    }

    /// Binds a query that is an item of FROM.
    fn item(&mut self, select: &SelectStmt, parent: Option<&Scope<'_>>) -> Result<Query> {
        self.as_item = true;
        let query = self.select(select, parent);
        self.as_item = false;
        query
    }

    pub(super) fn range_function(
        &mut self,
        function: &RangeFunction,
        scope: &mut Scope<'_>,
        next: &mut usize,
    ) -> Result<Source> {
        let parts = rows_from::several(function)?;
        if !parts.is_empty() {
            return self.rows_from(function, &parts, scope, next);
        }
        let [item] = function.functions.as_slice() else {
            return Err(Error::internal("no function in FROM"));
        };
        let (call, listed) = listed::call_and_list(function, item)?;
        let beside = beside(scope);
        let place = Place {
            sets: Sets::Whole,
            ..Place::plain("functions in FROM")
        };
        beside.inner_stands.set(place);
        let level = Scope::inside(Some(&beside));
        let mut expr = self.node(call, &level, place)?;
        let defined = match expr.kind {
            ExprKind::Routine(..) => {
                expr = self.routine_listed(expr, listed)?;
                self.record_called(&expr, function, inner(call)?)?;
                columns_of_routine(&expr)
            }
            _ => self.columns_listed(function, listed, &mut expr)?,
        };
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
            ExprKind::SetCall(called, _, types) => called.0.columns_of(types),
            _ => None,
        };
        let own = match &expr.kind {
            ExprKind::SetCall(called, ..) => functions::json::column_of(called.0),
            _ => None,
        };
        // The only output of a routine names its column, whatever the alias is.
        let output = match &expr.kind {
            ExprKind::Routine(call, _) => call.routine.only_output().map(str::to_owned),
            _ => None,
        };
        // A row of a type is spread into its fields.
        let fields = match (&of_record, &defined) {
            (None, None) => match expr.kind {
                ExprKind::Call(called, ..) if called.0.columns().is_some() => {
                    self.fields_of_value(&expr)
                }
                _ => self.fields_of_type(expr.ty),
            },
            _ => None,
        };
        let defined = defined.or_else(|| {
            let fields = fields.as_ref()?.iter();
            let column = |field: &Field| ScopeColumn {
                typmod: field.typmod,
                domain: field.domain,
                collation: Collated::implicit(field.collation),
                ..plain_column(&field.name, field.ty)
            };
            Some(fields.map(column).collect())
        });
        if matches!(expr.kind, ExprKind::Routine(..)) && expr.ty.is_composite() {
            expr.ty = TypeId::RECORD;
        }
        let mut columns = match (of_record, defined) {
            (_, Some(columns)) => columns,
            (Some(columns), None) => columns
                .iter()
                .map(|(name, ty)| plain_column(name, *ty))
                .collect(),
            (None, None) => {
                let output = output.as_deref().or(own);
                vec![plain_column(output.unwrap_or(&name), expr.ty)]
            }
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
                width: fields.as_ref().map_or(0, Vec::len),
                ordinality: function.ordinality,
            },
            ExprKind::Routine(call, args) => {
                let fixed = self.fixed_columns(&call, function);
                // A row of a domain is a value.
                let of_value = (fields.as_deref()).filter(|_| call.result != TypeId::RECORD);
                let plan = Plan::Routine {
                    call,
                    args: args.iter().map(compile).collect(),
                    ordinality: function.ordinality,
                };
                match fixed {
                    None => match of_value {
                        Some(fields) => self.spread_row(plan, fields, function.ordinality),
                        None => plan,
                    },
                    Some(kept) => {
                        // WITH ORDINALITY adds the last.
                        let number = columns.len() - usize::from(function.ordinality);
                        let places = (0..kept).chain(number..columns.len());
                        let kept: Vec<_> = places.map(|at| (at, columns[at].clone())).collect();
                        columns = kept.iter().map(|column| column.1.clone()).collect();
                        let of = |(at, column): &(usize, ScopeColumn)| {
                            compile(&Expr::new(ExprKind::Column(*at), column.ty, -1))
                        };
                        Plan::Project(Rc::new(plan), kept.iter().map(of).collect())
                    }
                }
            }
            _ if function.ordinality => return Err(Error::unsupported("WITH ORDINALITY here")),
            _ if fields.is_some() => {
                let value = projection(Plan::Values(vec![Vec::new()]), &[expr]);
                self.spread_row(value, &fields.unwrap_or_default(), false)
            }
            _ => Plan::Values(vec![vec![compile(&expr)]]),
        };
        let source = self.other(plan, columns, &name, function.alias.as_ref(), scope, next)?;
        let source = source.escaping(lateral);
        if let (Some(_), Some(item)) = (own, scope.tables.last_mut()) {
            item.is_scalar = !function.ordinality;
        }
        Ok(match lateral {
            true => lateral_of(source, beside.seen()),
            false => source,
        })
    }

    /// The fields of the row that a plan gives, and the number behind it if there is one.
    fn spread_row(&self, plan: Plan, fields: &[Field], is_numbered: bool) -> Plan {
        let row = Expr::new(ExprKind::Column(0), TypeId::RECORD, -1);
        let parts = (0..fields.len()).map(|at| self.field_at(row.clone(), fields, at, -1));
        let number = Expr::new(ExprKind::Column(1), TypeId::INT8, -1);
        let all = parts.chain(is_numbered.then_some(number));
        Plan::Project(Rc::new(plan), all.map(|part| compile(&part)).collect())
    }

    /// Notes a call whose columns stored text fixes.
    fn record_called(
        &mut self,
        expr: &Expr,
        function: &RangeFunction,
        node: &NodeEnum,
    ) -> Result<()> {
        let (ExprKind::Routine(call, _), NodeEnum::FuncCall(written)) = (&expr.kind, node) else {
            return Ok(());
        };
        let catalog = self.cx.catalog;
        let table = catalog.table_by_oid(call.routine.result_relation);
        let (Some(table), Some(recorded)) = (table, &mut self.recorded) else {
            return Ok(());
        };
        let places = 0..table.columns.len();
        recorded.items.push(CalledItem {
            location: written.location,
            alias: function.alias.clone(),
            name: super::column_name::column_name(node),
            columns: call.columns.iter().map(|column| column.0.clone()).collect(),
            table: table.oid,
            places: places
                .filter(|place| !table.columns[*place].dropped)
                .collect(),
        });
        Ok(())
    }

    /// How many columns a call in stored text has, where its table has got more since.
    fn fixed_columns(&self, call: &RoutineCall, function: &RangeFunction) -> Option<usize> {
        let named = function
            .alias
            .as_ref()
            .map_or(0, |alias| alias.colnames.len());
        let is_fixed = self.stored && call.routine.result_relation != 0;
        (is_fixed && named < call.columns.len() && named > 0).then_some(named)
    }
}

/// The items so far as the scope of a lateral one.
pub(super) fn beside<'s>(scope: &Scope<'s>) -> Scope<'s> {
    let target = scope.tables.first().filter(|_| scope.has_target);
    Scope {
        parent: scope.parent,
        tables: scope.tables.clone(),
        merged: scope.merged.clone(),
        covered: scope.covered.clone(),
        barred: target.map(|target| target.alias.clone()),
        ..Scope::default()
    }
}

/// The columns of a routine that gives records.
fn columns_of_routine(expr: &Expr) -> Option<Vec<ScopeColumn>> {
    let ExprKind::Routine(call, _) = &expr.kind else {
        return None;
    };
    let columns = call.columns.iter().enumerate();
    let columns = columns.map(|(place, (name, ty))| ScopeColumn {
        typmod: call.typmod(place),
        ..plain_column(name, *ty)
    });
    let columns = columns.collect();
    (call.result == TypeId::RECORD).then_some(columns)
}
