//! FOR UPDATE and its kin: which rows of which tables a query locks.
//!
//! ```sql
//! select * from v join t using (a) for update of v    -- v is a view over other tables
//! ```
//!
//! A table is locked above the rows that the query gives, in its plan's [`Plan::Lock`]. A view that is
//! no table with other columns, or a subquery, gets the clause that is for it ([`Binder::locking`]), as
//! if it were written there: its own tables are locked below it, and what cannot be locked is refused.
//!
//! One of FROM and WHERE alone becomes a part of the query around it instead ([`Binder::merged`]), so that
//! what meets no condition of that is not locked.
//!
//! # What it leaves out
//! Merging such a query where it has subqueries, or stands in an outer join where its rows may be missing.

use std::rc::Rc;

use base::engine::{LockWait, RowLock};
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    Alias, LockClauseStrength, LockWaitPolicy, LockingClause, Node, SelectStmt, SetOperation,
};

use super::outputs::Order;
use super::project_set::projection;
use super::scope::{query_column, ItemKind, Scope, ScopeColumn, ScopeTable};
use super::select::{in_order, is_with_ties, Body, Query};
use super::{inner, Binder, OutputColumn};
use crate::logical::{conjuncts, Source};
use crate::plan::{compile, Expr, ExprKind, LockRows, Plan, SortKey};
use catalog::local::is_local;
use catalog::RelationKind;
use syntax::parser::NodeEnum;

impl Binder<'_> {
    /// What is bound next is locked by the clauses of this query; gives those before.
    pub(super) fn lock_by(&mut self, select: &SelectStmt) -> Vec<LockingClause> {
        let clauses = clauses_of(select).into_iter().cloned();
        std::mem::replace(&mut self.locked, clauses.collect())
    }

    /// Whether a locking clause is for all items.
    pub(super) fn locks_all(&self) -> bool {
        let mut clauses = self.locked.iter();
        clauses.any(|clause| clause.locked_rels.is_empty())
    }

    /// Whether locking clauses, if there are any, mean an item of that alias or name.
    pub(super) fn is_locked(&self, alias: Option<&Alias>, name: &str) -> bool {
        let shown = alias.map_or(name, |alias| alias.aliasname.as_str());
        let mut clauses = self.locked.iter();
        self.locked.is_empty() || clauses.any(|clause| means(clause, shown))
    }

    /// A query that stands in FROM under that name, with the locking clauses around it that are for it.
    pub(super) fn locking(&self, select: &SelectStmt, name: &str) -> SelectStmt {
        let mut select = select.clone();
        for clause in self.locked.iter().filter(|clause| means(clause, name)) {
            let whole = LockingClause {
                locked_rels: Vec::new(),
                ..clause.clone()
            };
            select.locking_clause.push(Node {
                node: Some(NodeEnum::LockingClause(whole)),
            });
        }
        select
    }

    /// FOR UPDATE takes rows of tables.
    pub(super) fn check_locking(
        &self,
        select: &SelectStmt,
        (grouped, windowed, sets): (bool, bool, bool),
    ) -> Result<()> {
        let what = if !select.distinct_clause.is_empty() {
            "DISTINCT clause"
        } else if !select.group_clause.is_empty() {
            "GROUP BY clause"
        } else if select.having_clause.is_some() {
            "HAVING clause"
        } else if grouped {
            "aggregate functions"
        } else if windowed {
            "window functions"
        } else if sets {
            "set-returning functions in the target list"
        } else {
            return Ok(());
        };
        Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{} is not allowed with {what}", locking_words(select)),
        ))
    }

    /// What an outer join may have no row of cannot be locked.
    pub(super) fn check_not_nullable(
        &self,
        select: &SelectStmt,
        starts: &[usize],
        scope: &Scope<'_>,
    ) -> Result<()> {
        let clauses = clauses_of(select);
        for item in &scope.tables {
            let mut parts = item.in_row().into_iter();
            let is_missing =
                |part: &ScopeTable| starts.contains(&part.start) && part.kind == ItemKind::Lockable;
            let mut clauses = clauses.iter();
            let clause = clauses.find(|clause| means(clause, &item.alias));
            if let Some(clause) = clause.filter(|_| parts.any(is_missing)) {
                let what = words_of(clause);
                let message =
                    format!("{what} cannot be applied to the nullable side of an outer join");
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
        }
        Ok(())
    }

    /// FOR UPDATE: sorts, locks and limits the input's rows, then projects them.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn finish_locking(
        &mut self,
        select: &SelectStmt,
        input: Plan,
        mut exprs: Vec<Expr>,
        order: Vec<Order>,
        columns: Vec<OutputColumn>,
        rechecks: Vec<(usize, Option<Expr>)>,
        scope: &Scope<'_>,
    ) -> Result<Query> {
        let for_cursor = std::mem::take(&mut self.for_cursor);
        let mut plan = input;
        if !order.is_empty() && !in_order(&mut plan, &order, self.few_wanted(select)) {
            let keys = order
                .into_iter()
                .map(|(value, descending, nulls_first)| SortKey {
                    value: compile(&value),
                    ty: value.ty,
                    descending,
                    nulls_first,
                });
            plan = Plan::Sort(Rc::new(plan), keys.collect());
        }
        let mut locks = Vec::new();
        for node in &select.locking_clause {
            let NodeEnum::LockingClause(clause) = inner(node)? else {
                continue;
            };
            self.locking_clause(clause, &rechecks, scope, &mut locks)?;
        }
        self.note_locks(&locks);
        let locations = exprs.iter().map(|expr| expr.location.0).collect();
        for (number, lock) in locks.iter().enumerate().filter(|_| for_cursor) {
            if locks[..number]
                .iter()
                .all(|other| other.start != lock.start)
            {
                let key = lock.start + lock.table.columns.len();
                let oid = lock.partitions.as_ref().map(|_| key + 1);
                self.add_cursor_row(lock.table.oid, (key, oid), &mut exprs);
            }
        }
        plan = Plan::Lock(Rc::new(plan), locks);
        if is_with_ties(select) {
            return Err(Error::unsupported("FETCH FIRST … WITH TIES of locked rows"));
        }
        plan = self.limit(select, plan, Vec::new(), scope)?;
        Ok(Query {
            body: Body::Plan(Box::new(projection(plan, &exprs))),
            literals: vec![None; columns.len()],
            locations,
            columns,
            escapes: scope.escapes.get(),
        })
    }

    /// A statement with locking clauses is called after the outermost, by how that locks the first of
    /// its tables. Temporary tables are nobody else's.
    fn note_locks(&mut self, locks: &[LockRows]) {
        let shared = locks.iter().any(|lock| !is_local(lock.table.oid));
        if !shared && self.locks_rows.is_none() {
            return;
        }
        self.locks_rows = Some(match locks.first().map(|lock| lock.strength) {
            None => "SELECT",
            Some(RowLock::KeyShare) => "SELECT FOR KEY SHARE",
            Some(RowLock::Share) => "SELECT FOR SHARE",
            Some(RowLock::NoKeyUpdate) => "SELECT FOR NO KEY UPDATE",
            Some(RowLock::Update) => "SELECT FOR UPDATE",
        });
    }

    fn locking_clause(
        &mut self,
        clause: &LockingClause,
        rechecks: &[(usize, Option<Expr>)],
        scope: &Scope<'_>,
        locks: &mut Vec<LockRows>,
    ) -> Result<()> {
        let strength = match LockClauseStrength::try_from(clause.strength) {
            Ok(LockClauseStrength::LcsForkeyshare) => RowLock::KeyShare,
            Ok(LockClauseStrength::LcsForshare) => RowLock::Share,
            Ok(LockClauseStrength::LcsFornokeyupdate) => RowLock::NoKeyUpdate,
            _ => RowLock::Update,
        };
        let wait = match LockWaitPolicy::try_from(clause.wait_policy) {
            Ok(LockWaitPolicy::LockWaitSkip) => LockWait::Skip,
            Ok(LockWaitPolicy::LockWaitError) => LockWait::NoWait,
            _ => LockWait::Block,
        };
        let mut named = Vec::new();
        for node in &clause.locked_rels {
            let NodeEnum::RangeVar(range) = inner(node)? else {
                continue;
            };
            let words = words_of(clause);
            let at = |state, message| self.error(state, message, range.location);
            if !range.schemaname.is_empty() {
                let message = format!("{words} must specify unqualified relation names");
                return Err(at(SqlState::SYNTAX_ERROR, message));
            }
            let mut items = scope.tables.iter();
            let Some(item) = items.find(|item| item.alias == range.relname) else {
                let message = format!(
                    "relation \"{}\" in {words} clause not found in FROM clause",
                    range.relname
                );
                return Err(at(SqlState::UNDEFINED_TABLE, message));
            };
            let unlockable = match item.kind {
                ItemKind::Lockable | ItemKind::Constant => None,
                ItemKind::With => Some("WITH query"),
                ItemKind::Function => Some("function"),
                ItemKind::Join => Some("join"),
            };
            if let Some(what) = unlockable {
                let message = format!("{words} cannot be applied to a {what}");
                return Err(at(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            named.push(range.relname.as_str());
        }
        let wanted = |item: &&ScopeTable| named.is_empty() || named.contains(&item.alias.as_str());
        let items = scope.tables.iter().filter(wanted);
        let items = items.flat_map(ScopeTable::in_row);
        for item in items.filter(|item| item.kind != ItemKind::Constant) {
            let Some(table) = item.base.as_ref().or(item.table.as_ref()) else {
                continue;
            };
            if table.kind == RelationKind::MaterializedView {
                let message = format!("cannot lock rows in materialized view \"{}\"", table.name);
                return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            if matches!(table.kind, RelationKind::Table | RelationKind::Partitioned) {
                let partitions = self.leaves(table)?;
                let mut rechecks = rechecks.iter();
                let recheck = rechecks.find(|(start, _)| *start == item.start);
                let recheck = recheck.and_then(|(_, recheck)| recheck.as_ref());
                locks.push(LockRows {
                    partitions,
                    table: table.clone(),
                    start: item.start,
                    strength,
                    wait,
                    recheck: recheck.map(compile),
                });
            }
        }
        Ok(())
    }
}

/// A query of FROM and WHERE that becomes a part of the one around it.
pub(super) struct Merged {
    source: Source,
    conditions: Vec<Expr>,
    targets: Vec<(Expr, OutputColumn)>,
    items: Vec<ScopeTable>,
    escapes: bool,
}

impl Binder<'_> {
    /// Binds a query in FROM whose rows are locked as a part of the one around it, so that only those are
    /// locked which meet the conditions of both; none where it has more than FROM and WHERE, or may
    /// have no row.
    pub(super) fn merged(
        &mut self,
        select: &SelectStmt,
        locking: &SelectStmt,
        parent: Option<&Scope<'_>>,
        next: &mut usize,
    ) -> Result<Option<Merged>> {
        if !is_mergeable(select) {
            return Ok(None);
        }
        let (locks, subqueries, required) =
            (self.locks.clone(), self.subqueries, self.requires.len());
        let (first, lifted) = (*next, self.lifted.len());
        let locked = self.lock_by(locking);
        let merged = self.merged_parts(select, parent, next);
        self.locked = locked;
        let merged = merged?;
        if merged.is_none() {
            self.locks = locks;
            self.subqueries = subqueries;
            self.requires.truncate(required);
            self.lifted.truncate(lifted);
            *next = first;
        }
        Ok(merged)
    }

    fn merged_parts(
        &mut self,
        select: &SelectStmt,
        parent: Option<&Scope<'_>>,
        next: &mut usize,
    ) -> Result<Option<Merged>> {
        let mut scope = Scope::inside(parent);
        let source = self.bind_from(&select.from_clause, &mut scope, true, next)?;
        let condition = self.where_clause(&select.where_clause, &scope)?;
        let mut targets = Vec::new();
        for (expr, column) in self.targets(&select.target_list, &scope)? {
            let expr = self.settle(expr)?;
            let ty = expr.ty;
            targets.push((expr, OutputColumn { ty, ..column }));
        }
        let is_more = |part: &Expr| {
            let of_groups = matches!(
                part.kind,
                ExprKind::Aggregate(_) | ExprKind::Window(_) | ExprKind::Sub(..)
            );
            of_groups || part.is_set() || part.is_volatile_call()
        };
        let conditions = conjuncts(condition);
        let mut all = conditions
            .iter()
            .chain(targets.iter().map(|target| &target.0));
        if all.any(|expr| expr.any(&is_more)) {
            return Ok(None);
        }
        Ok(source.map(|source| Merged {
            source,
            conditions,
            targets,
            items: scope.tables,
            escapes: scope.escapes.get(),
        }))
    }

    /// Adds a query that has been merged to the scope, under the names of these columns or of its own.
    pub(super) fn merged_item(
        &mut self,
        merged: Merged,
        columns: Option<Vec<ScopeColumn>>,
        (name, alias): (&str, Option<&Alias>),
        scope: &mut Scope<'_>,
    ) -> Result<Source> {
        let own = merged.targets.iter().map(|target| query_column(&target.1));
        let mut columns = columns.unwrap_or_else(|| own.collect());
        let shown = self.alias(alias, name, &mut columns)?;
        let exprs = merged.targets.into_iter().map(|target| target.0);
        scope.tables.push(ScopeTable {
            exprs: Some(Rc::new(exprs.collect())),
            parts: merged.items,
            ..ScopeTable::of(shown, columns, merged.source.start)
        });
        self.lifted.extend(merged.conditions);
        if merged.escapes {
            scope.escapes.set(true);
        }
        Ok(merged.source)
    }

    /// Whether items of FROM can be merged where the binder is: none may be missing in an outer join, and
    /// none is recorded by its name.
    pub(super) fn may_merge(&self) -> bool {
        self.nullable == 0 && self.recorded.is_none()
    }
}

/// Whether a query has FROM and WHERE alone.
fn is_mergeable(select: &SelectStmt) -> bool {
    let plain = SelectStmt {
        from_clause: select.from_clause.clone(),
        where_clause: select.where_clause.clone(),
        target_list: select.target_list.clone(),
        limit_option: select.limit_option,
        op: select.op,
        ..SelectStmt::default()
    };
    has_lockable(select) && !select.from_clause.is_empty() && *select == plain
}

/// The locking clauses of a query.
fn clauses_of(select: &SelectStmt) -> Vec<&LockingClause> {
    let clauses = select.locking_clause.iter();
    let clauses = clauses.filter_map(|node| match &node.node {
        Some(NodeEnum::LockingClause(clause)) => Some(clause),
        _ => None,
    });
    clauses.collect()
}

/// 0A000 for locking clauses of a set operation, of its parts, or of VALUES.
pub(super) fn check_lockable(select: &SelectStmt) -> Result<()> {
    let parts = [&select.larg, &select.rarg];
    let all = std::iter::once(select).chain(parts.into_iter().flatten().map(|part| &**part));
    let what = match has_lockable(select) {
        true => return Ok(()),
        false if select.values_lists.is_empty() => "is not allowed with UNION/INTERSECT/EXCEPT",
        false => "cannot be applied to VALUES",
    };
    let mut clauses = all.flat_map(clauses_of);
    clauses.next().map_or(Ok(()), |clause| {
        let message = format!("{} {what}", words_of(clause));
        Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    })
}

/// Whether a query has rows of tables, of its own or of queries in its FROM, rather than those that a
/// set operation makes or VALUES.
pub(super) fn has_lockable(select: &SelectStmt) -> bool {
    select.op == SetOperation::SetopNone as i32 && select.values_lists.is_empty()
}

/// Whether a clause is for an item of that alias.
fn means(clause: &LockingClause, alias: &str) -> bool {
    let named = |node: &Node| match &node.node {
        Some(NodeEnum::RangeVar(range)) => range.relname == alias,
        _ => false,
    };
    clause.locked_rels.is_empty() || clause.locked_rels.iter().any(named)
}

/// A locking clause as error messages name it.
fn words_of(clause: &LockingClause) -> &'static str {
    match LockClauseStrength::try_from(clause.strength) {
        Ok(LockClauseStrength::LcsForkeyshare) => "FOR KEY SHARE",
        Ok(LockClauseStrength::LcsForshare) => "FOR SHARE",
        Ok(LockClauseStrength::LcsFornokeyupdate) => "FOR NO KEY UPDATE",
        _ => "FOR UPDATE",
    }
}

/// The first locking clause of a query as error messages name it.
fn locking_words(select: &SelectStmt) -> &'static str {
    let clauses = clauses_of(select);
    clauses
        .first()
        .map_or("FOR UPDATE", |clause| words_of(clause))
}
