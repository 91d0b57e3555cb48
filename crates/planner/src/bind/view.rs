//! Views: the query that a view stands for, in its place.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Alias, RangeVar, SelectStmt};

use super::locking::{has_lockable, Merged};
use super::scope::{table_columns, Scope};
use super::select::Query;
use super::{Binder, Bound};
use crate::logical::Source;
use catalog::cast::has_using_in_place;
use catalog::view::BY_OID;
use catalog::{Catalog, RelationKind, Table};
use syntax::parser::{self, NodeEnum};

impl Bound {
    /// To be called before it runs: it may be bound, and named by views, at any time.
    ///
    /// # Errors
    /// 55000 when it reads a materialized view without rows.
    pub fn check_populated(&self, catalog: &Catalog) -> Result<()> {
        let Some(oid) = self.unpopulated else {
            return Ok(());
        };
        let name = catalog.table_by_oid(oid).map_or("", |table| &table.name);
        Err(Error::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("materialized view \"{name}\" has not been populated"),
        )
        .with_hint("Use the REFRESH MATERIALIZED VIEW command."))
    }
}

/// Whether it is a materialized view without rows.
pub(super) fn is_unpopulated(table: &Table) -> bool {
    let view = table.view.as_ref();
    table.kind == RelationKind::MaterializedView && view.is_some_and(|view| !view.populated)
}

/// 42P17 for a view that names itself.
pub fn endless(view: &Table) -> Error {
    Error::new(
        SqlState::of("42P17"),
        format!(
            "infinite recursion detected in rules for relation \"{}\"",
            view.name
        ),
    )
}

/// The query that stored text is.
pub(super) fn query_of_text(text: &str) -> Result<SelectStmt> {
    let statements = parser::parse(text)?;
    match statements.first().map(|first| first.node()) {
        Some(NodeEnum::SelectStmt(select)) => Ok((**select).clone()),
        _ => Err(Error::internal("stored text of no query")),
    }
}

impl<'a> Binder<'a> {
    /// The relation that stored text names by its oid.
    pub(super) fn by_oid(&mut self, range: &RangeVar) -> Result<Option<Arc<Table>>> {
        if !self.stored || range.schemaname != BY_OID {
            return Ok(None);
        }
        let oid = range.relname.parse::<u32>().ok();
        let table = oid.and_then(|oid| self.cx.catalog.table_by_oid(oid));
        let table = table.ok_or_else(|| {
            Error::internal(format!("stored text names relation {}", range.relname))
        })?;
        self.positional = true;
        Ok(Some(table.clone()))
    }

    /// An item of FROM that is a view.
    pub(super) fn view(
        &mut self,
        table: &Arc<Table>,
        alias: Option<&Alias>,
        scope: &mut Scope<'_>,
        locked: bool,
        next: &mut usize,
    ) -> Result<Source> {
        let positional = std::mem::take(&mut self.positional);
        let shown = alias.map_or(table.name.as_str(), |alias| &alias.aliasname);
        if locked && self.may_merge() && !table.security_barrier() {
            let merged = self.merged_view(table, shown, next)?;
            self.positional = positional;
            if let Some(merged) = merged {
                let columns = table_columns(table);
                return self.merged_item(merged, Some(columns), (&table.name, alias), scope);
            }
            self.positional = false;
        }
        let query = self.expand(table, locked.then_some(shown))?;
        self.positional = positional;
        let columns = table_columns(table);
        if query.columns.len() != columns.len() {
            let message = format!("view \"{}\" has columns that its query lacks", table.name);
            return Err(Error::internal(message));
        }
        if table.security_barrier() {
            // Nothing of those around it may come before its own conditions.
            let plan = self.plan_of(query.body)?;
            return self.other(plan, columns, &table.name, alias, scope, next);
        }
        self.query_item(query.body, columns, &table.name, alias, scope, next)
    }

    /// The query of a view, bound; with the locking clauses for the item of that name, if there are any.
    pub(super) fn expand(&mut self, table: &Table, locked: Option<&str>) -> Result<Query> {
        let view = table.view.as_ref();
        let view = view.ok_or_else(|| Error::internal("a view without a query"))?;
        if self.expanding.contains(&table.oid) {
            return Err(endless(table));
        }
        let mut select = query_of_text(&view.query)?;
        if let Some(name) = locked.filter(|_| has_lockable(&select)) {
            select = self.locking(&select, name);
        }
        self.below(table, |binder| {
            binder.in_stored_text(&view.query, |binder| binder.select(&select, None))
        })
    }

    /// The query of a view whose rows are locked, as a part of the one around it.
    fn merged_view(
        &mut self,
        table: &Table,
        name: &str,
        next: &mut usize,
    ) -> Result<Option<Merged>> {
        if self.expanding.contains(&table.oid) {
            return Err(endless(table));
        }
        let view = table.view.as_ref();
        let view = view.ok_or_else(|| Error::internal("a view without a query"))?;
        let select = query_of_text(&view.query)?;
        let locking = self.locking(&select, name);
        self.below(table, |binder| {
            let merge = |binder: &mut Self| binder.merged(&select, &locking, None, next);
            binder.in_stored_text(&view.query, merge)
        })
    }

    /// Binds what stands below a view: for its owner, unless the view says that it is for whoever
    /// runs the statement.
    pub(super) fn below<T>(
        &mut self,
        view: &Table,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.expanding.push(view.oid);
        let role = (!view.security_invoker()).then_some(view.owner);
        let checked_as = std::mem::replace(&mut self.checked_as, role);
        let bound = bind(self);
        self.checked_as = checked_as;
        self.expanding.pop();
        bound
    }

    /// The query of a materialized view, as a statement.
    ///
    /// # Errors
    /// What has become of the relations that it names.
    pub fn query_of(&mut self, table: &Table) -> Result<Bound> {
        let query = self.expand(table, None)?;
        let plan = self.plan_of(query.body)?;
        Ok(self.bound(plan, query.columns, false))
    }

    /// Binds text of the catalog, which knows nothing of what stands around.
    pub(super) fn in_stored_text<T>(
        &mut self,
        text: &str,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let cx = self.cx;
        self.cx.text = "";
        self.cx.literals = None;
        self.cx.variables = None;
        let stored = std::mem::replace(&mut self.stored, true);
        let noted = self.cx.catalog.noted_in_text(text);
        let noted = std::mem::replace(&mut self.noted, noted);
        let using_first = std::mem::replace(&mut self.using_first, !has_using_in_place(text));
        let ctes = std::mem::take(&mut self.ctes);
        let recorded = self.recorded.take();
        let open_params = std::mem::replace(&mut self.open_params, false);
        let nullable = std::mem::take(&mut self.nullable);
        let bound = bind(self);
        self.nullable = nullable;
        self.open_params = open_params;
        self.recorded = recorded;
        self.ctes = ctes;
        self.stored = stored;
        self.noted = noted;
        self.using_first = using_first;
        self.cx = cx;
        bound
    }
}
