//! CREATE VIEW, and materialized views: tables that remember the query they were filled by.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::{LockWait, TableLock};
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    CreateTableAsStmt, ExecuteStmt, IntoClause, Node, ObjectType, RefreshMatViewStmt, SelectStmt,
    ViewCheckOption, ViewStmt,
};

use super::super::explain::Making;
use super::super::run::Output;
use super::super::utility::{node_of, parameter_text, tag};
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::alter::set_options;
use super::table::cut_name;
use super::texts;
use catalog::collation::of_type;
use catalog::local::is_local;
use catalog::store::{self, duplicate_relation};
use catalog::view::{SECURITY_BARRIER, SECURITY_INVOKER};
use catalog::{Catalog, CheckOption, Column, RelationKind, RelationRef, Table, View};
use execution::state::prepared::{Counted, Planned, SearchPath};
use planner::bind::collation::of_column;
use planner::bind::fixed::FixedQuery;
use planner::bind::{Bound, OutputColumn};
use planner::plan::permit::UncheckedPlan;
use planner::plan::{Insert, Plan, Target};
use syntax::parser::{NodeEnum, Statement};
use types::text::parse_bool;
use types::typmod::format_type;
use types::{Category, Datum, TypeId};

/// How often a query is bound anew because the catalog changed while it waited for locks.
const REPLANS_MAX: usize = 100;

/// The query that a table is made of.
struct Filling<'q> {
    text: &'q str,
    select: &'q SelectStmt,
    /// The types of its parameters, and their values.
    types: &'q [TypeId],
    params: &'q [Datum],
    /// Whether it was prepared.
    executed: bool,
}

impl<'q> Filling<'q> {
    /// One without parameters.
    fn of(text: &'q str, select: &'q SelectStmt) -> Filling<'q> {
        Filling {
            text,
            select,
            types: &[],
            params: &[],
            executed: false,
        }
    }
}

impl Session {
    pub(in crate::session) fn create_view(
        &mut self,
        text: &str,
        create: &ViewStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let range = create
            .view
            .as_ref()
            .ok_or_else(|| Error::internal("a view without a name"))?;
        let Some(NodeEnum::SelectStmt(select)) = node_of(&create.query) else {
            return Err(Error::internal("a view of no query"));
        };
        if select.into_clause.is_some() {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "views must not contain SELECT INTO",
            ));
        }
        let query = self.fixed_query(text, select)?;
        let catalog = self.current_catalog()?;
        let mut range = range.clone();
        let mut uses = query.uses.iter();
        if uses.any(|uses| is_local(uses.relation)) && !self.is_temporary(&range) {
            let message = format!("view \"{}\" will be a temporary view", range.relname);
            let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
            self.notice(NoticeSeverity::Notice, body, sink)?;
            range.relpersistence = "t".to_owned();
        }
        let schema = self.schema_for(&catalog, "", &range)?;
        let columns = columns_of(
            &query.columns,
            &create.aliases,
            "CREATE VIEW specifies more column names than columns",
        )?;
        let name = cut_name(&range.relname);
        let mut view = Table {
            schema,
            name,
            owner: self.own_role(&catalog)?,
            kind: RelationKind::View,
            columns,
            view: Some(View {
                query: query.text,
                uses: query.uses,
                check_option: CheckOption::None,
                populated: true,
            }),
            ..Table::default()
        };
        self.view_options(create, &mut view)?;
        match catalog.relation(schema, &view.name) {
            None => {
                view.oid = self.new_oid()?;
                view.tree = store::new_tree(&*self.shared.engine.sequences)?;
                self.insert_relation(&catalog, &view)?;
            }
            Some(_) if !create.replace => return Err(duplicate_relation(&view.name)),
            Some(RelationRef::Table(place)) if catalog.tables[place].kind == RelationKind::View => {
                let old = catalog.tables[place].clone();
                check_same_columns(&catalog, &old, &view)?;
                self.lock_exclusively(&old)?;
                view.oid = old.oid;
                view.tree = old.tree;
                view.owner = old.owner;
                for (column, old) in view.columns.iter_mut().zip(&old.columns) {
                    column.default.clone_from(&old.default);
                    column.default_uses.clone_from(&old.default_uses);
                }
                view.triggers = old.triggers.clone();
                view.rules = old.rules.clone();
                if let Some(open) = &mut self.open {
                    store::update_table(open.txn.as_mut(), catalog.database.oid, &view)?;
                }
            }
            Some(_) => {
                return Err(Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not a view", view.name),
                ))
            }
        }
        Ok(tag("CREATE VIEW"))
    }

    fn view_options(&mut self, create: &ViewStmt, view: &mut Table) -> Result<()> {
        let check = match ViewCheckOption::try_from(create.with_check_option) {
            Ok(ViewCheckOption::LocalCheckOption) => CheckOption::Local,
            Ok(ViewCheckOption::CascadedCheckOption) => CheckOption::Cascaded,
            _ => CheckOption::None,
        };
        if let Some(view) = &mut view.view {
            view.check_option = check;
        }
        self.set_view_options(view, &create.options)
    }

    /// Takes over the options of WITH (…) or SET (…).
    ///
    /// # Errors
    /// 22023 for one that there is not, or not with that value; 0A000 for a check option of a view
    /// through which nothing can be written.
    pub(super) fn set_view_options(&mut self, view: &mut Table, options: &[Node]) -> Result<()> {
        let refused = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
        let mut check = view
            .view
            .as_ref()
            .map_or(CheckOption::None, |view| view.check_option);
        for node in options {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            let name = option.defname.as_str();
            let value = parameter_text(option);
            match name {
                "check_option" if value == "local" => check = CheckOption::Local,
                "check_option" if value == "cascaded" => check = CheckOption::Cascaded,
                "check_option" => {
                    let message =
                        format!("invalid value for enum option \"check_option\": {value}");
                    return Err(refused(message)
                        .with_detail("Valid values are \"local\" and \"cascaded\"."));
                }
                SECURITY_BARRIER | SECURITY_INVOKER => {
                    if parse_bool(&value).is_none() {
                        let message =
                            format!("invalid value for boolean option \"{name}\": {value}");
                        return Err(refused(message));
                    }
                    view.options.retain(|known| known.0 != name);
                    view.options.push((name.to_owned(), value));
                }
                other => return Err(refused(format!("unrecognized parameter \"{other}\""))),
            }
        }
        if check != CheckOption::None {
            let catalog = self.current_catalog()?;
            let so_far = view.clone();
            self.try_binding("", &catalog, |binder| binder.check_updatable(&so_far))?;
        }
        if let Some(view) = &mut view.view {
            view.check_option = check;
        }
        Ok(())
    }

    pub(super) fn insert_relation(&mut self, catalog: &Catalog, table: &Table) -> Result<()> {
        for column in &table.columns {
            self.may_use_type(catalog, column.declared().0)?;
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        store::insert_table(open.txn.as_mut(), catalog, table)
    }

    /// A query as the catalog keeps it, and the tables that it names locked against DDL.
    fn fixed_query(&mut self, text: &str, select: &SelectStmt) -> Result<FixedQuery> {
        let (bound, _) = self.bind_and_lock(text, select, true, &[])?;
        let catalog = self.current_catalog()?;
        drop(bound);
        let fixed = self.try_binding("", &catalog, |binder| binder.fixed_query(select))?;
        self.may_use_types_of(&catalog, fixed.uses.iter().map(|uses| uses.relation))?;
        Ok(fixed)
    }

    /// A bound query whose tables are locked, and the catalog that it was bound with; perhaps one
    /// that is not to be run.
    pub(super) fn bind_and_lock(
        &mut self,
        text: &str,
        select: &SelectStmt,
        names_only: bool,
        types: &[TypeId],
    ) -> Result<(Bound, Arc<Catalog>)> {
        let mut locked = Vec::new();
        for _ in 0..REPLANS_MAX {
            let catalog = self.current_catalog()?;
            let bound = self.try_binding_typed(text, &catalog, types, |binder| {
                binder.names_only = names_only;
                binder.statement(&NodeEnum::SelectStmt(Box::new(select.clone())))
            })?;
            let mut waited = false;
            for (tree, mode) in &bound.locks {
                if locked.contains(tree) {
                    continue;
                }
                let Some(open) = &mut self.open else {
                    return Err(Error::internal("nothing is open"));
                };
                open.txn.lock_table(*tree, *mode, LockWait::Block)?;
                locked.push(*tree);
                waited = true;
            }
            if !waited {
                return Ok((bound, catalog));
            }
            self.forget_own_catalog();
        }
        Err(Error::serialization(
            "could not serialize access: the catalog keeps changing",
        ))
    }

    /// CREATE TABLE AS and CREATE MATERIALIZED VIEW.
    pub(in crate::session) fn table_as(
        &mut self,
        statement: &Statement,
        create: &CreateTableAsStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let text = statement.text();
        let into = create
            .into
            .as_ref()
            .ok_or_else(|| Error::internal("a table without a name"))?;
        let select = match node_of(&create.query) {
            Some(NodeEnum::SelectStmt(select)) => select,
            Some(NodeEnum::ExecuteStmt(execute)) => {
                return self.table_as_executed(statement, execute, (into, create), sink)
            }
            _ => return Err(Error::internal("a table of no query")),
        };
        let kind = match ObjectType::try_from(create.objtype) {
            Ok(ObjectType::ObjectMatview) => RelationKind::MaterializedView,
            _ => RelationKind::Table,
        };
        let query = Filling::of(text, select);
        self.create_table_as(query, into, kind, create.if_not_exists, sink)
    }

    /// CREATE TABLE AS EXECUTE.
    fn table_as_executed(
        &mut self,
        statement: &Statement,
        execute: &ExecuteStmt,
        (into, create): (&IntoClause, &CreateTableAsStmt),
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let (prepared, params) = self.named_execution(statement, execute)?;
        self.current_plan(&prepared)?;
        prepared.count_execution();
        let known = prepared.statement();
        let (Some(known), Some(NodeEnum::SelectStmt(select))) =
            (known, known.map(|known| known.node()))
        else {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                "prepared statement is not a SELECT",
            ));
        };
        let types = prepared.param_type_ids();
        let query = Filling {
            text: known.text(),
            select,
            types,
            params: &params,
            executed: true,
        };
        self.create_table_as(query, into, RelationKind::Table, create.if_not_exists, sink)
    }

    /// SELECT INTO; the clause stands in the first SELECT of a UNION.
    pub(in crate::session) fn select_into(
        &mut self,
        text: &str,
        select: &SelectStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let mut select = select.clone();
        let mut first = &mut select;
        while let Some(left) = first.larg.as_mut().filter(|_| first.into_clause.is_none()) {
            first = left;
        }
        let into = first.into_clause.take();
        let into = into.ok_or_else(|| Error::internal("SELECT INTO nothing"))?;
        let query = Filling::of(text, &select);
        self.create_table_as(query, &into, RelationKind::Table, false, sink)
    }

    /// Makes a table of the rows of a query.
    fn create_table_as(
        &mut self,
        query: Filling<'_>,
        into: &IntoClause,
        kind: RelationKind,
        if_not_exists: bool,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let range = into
            .rel
            .as_ref()
            .ok_or_else(|| Error::internal("a table without a name"))?;
        let done = match kind {
            RelationKind::MaterializedView => "CREATE MATERIALIZED VIEW",
            _ => "CREATE TABLE AS",
        };
        let catalog = self.current_catalog()?;
        let schema = self.schema_for(&catalog, "", range)?;
        self.check_tablespace(&catalog, &into.table_space_name, false)?;
        let name = cut_name(&range.relname);
        if catalog.has_relation(schema, &name) {
            self.pass_over_existing(&name, if_not_exists, sink)?;
            return Ok(tag(done));
        }
        let (bound, catalog) =
            self.bind_and_lock(query.text, query.select, into.skip_data, query.types)?;
        let mut table = Table {
            oid: self.new_oid()?,
            schema,
            name,
            owner: self.own_role(&catalog)?,
            kind,
            tree: self.new_rows_tree(&into.options, None)?,
            columns: columns_of(
                &bound.columns,
                &into.col_names,
                "too many column names were specified",
            )?,
            unlogged: range.relpersistence == "u",
            ..Table::default()
        };
        set_options(&mut table, &into.options)?;
        self.note_on_commit(table.oid, into.on_commit, is_local(table.oid))?;
        if kind == RelationKind::MaterializedView {
            let fixed =
                self.try_binding("", &catalog, |binder| binder.fixed_query(query.select))?;
            if fixed.uses.iter().any(|uses| is_local(uses.relation)) {
                return Err(Error::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "materialized views must not use temporary tables or views",
                ));
            }
            table.view = Some(View {
                query: fixed.text,
                uses: fixed.uses,
                check_option: CheckOption::None,
                populated: !into.skip_data,
            });
        }
        table.long_tree = store::long_tree(&table);
        let uses = table.view.iter().flat_map(|view| &view.uses);
        let named: Vec<u32> = uses.map(|uses| uses.relation).collect();
        self.insert_relation(&catalog, &table)?;
        self.changed_catalog();
        if into.skip_data {
            self.may_use_types_of(&catalog, named)?;
            return Ok(match query.executed {
                true => CommandTag {
                    name: "SELECT",
                    rows: Some(0),
                },
                false => tag(done),
            });
        }
        bound.check_populated(&catalog)?;
        let rows = match kind {
            RelationKind::MaterializedView => {
                let owner = table.owner;
                self.as_owner(owner, |session| {
                    session.fill_table(table, bound.plan, query.params)
                })?
            }
            _ => self.fill_table(table, bound.plan, query.params)?,
        };
        // Who may not read the tables hears of that first.
        self.may_use_types_of(&catalog, named)?;
        Ok(CommandTag {
            name: "SELECT",
            rows: Some(rows),
        })
    }

    /// Inserts the rows of a plan into a new table.
    fn fill_table(&mut self, table: Table, source: UncheckedPlan, params: &[Datum]) -> Result<u64> {
        let (table, catalog) = (Arc::new(table), self.current_catalog()?);
        let entries = self.try_binding("", &catalog, |binder| binder.entries(&table))?;
        let target = Target {
            table,
            entries: entries.into(),
            ..Target::default()
        };
        let plan = source.wrap(|input| {
            Plan::Insert(Box::new(Insert {
                target,
                input,
                conflict: None,
            }))
        });
        let planned = Rc::new(Planned {
            counted: Counted::default(),
            sizes: Vec::new(),
            seen: None,
            point: None,
            catalog: self.current_catalog()?,
            own: true,
            path: SearchPath::default(),
            columns: None,
            types: Vec::new(),
            bound: Some(Bound {
                plan,
                columns: Vec::new(),
                locks: Vec::new(),
                writes: true,
                locks_rows: None,
                unpopulated: None,
                cursor_tables: Vec::new(),
                fleeting: false,
            }),
        });
        match std::mem::take(&mut self.making) {
            Making::Asked(measures) => {
                let rows = self.run_plan(&planned, params, &mut Output::Measured(&measures))?;
                self.making = Making::Done(planned);
                Ok(rows)
            }
            _ => self.run_plan(&planned, params, &mut Output::Nowhere),
        }
    }

    pub(in crate::session) fn refresh(
        &mut self,
        refresh: &RefreshMatViewStmt,
    ) -> Result<CommandTag> {
        if refresh.concurrent {
            return Err(Error::unsupported("REFRESH MATERIALIZED VIEW CONCURRENTLY"));
        }
        let range = refresh
            .relation
            .as_ref()
            .ok_or_else(|| Error::internal("a view without a name"))?;
        let old = self.lock_table(range)?;
        if old.kind != RelationKind::MaterializedView {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("\"{}\" is not a materialized view", old.name),
            ));
        }
        self.refuse_in_use(&old, "REFRESH MATERIALIZED VIEW")?;
        self.as_owner(old.owner, |session| session.refill(&old, refresh.skip_data))?;
        Ok(tag("REFRESH MATERIALIZED VIEW"))
    }

    /// Gives a materialized view the rows that its query has now, for the role that the session acts
    /// as.
    fn refill(&mut self, old: &Table, skip_data: bool) -> Result<()> {
        let catalog = self.current_catalog()?;
        let bound = self.try_binding("", &catalog, |binder| binder.query_of(old))?;
        for (tree, _) in &bound.locks {
            if let Some(open) = &mut self.open {
                open.txn
                    .lock_table(*tree, TableLock::AccessShare, LockWait::Block)?;
            }
        }
        let mut new = self.with_new_trees(old)?;
        if let Some(view) = &mut new.view {
            view.populated = !skip_data;
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        store::create_trees(open.txn.as_mut(), &new)?;
        store::update_table(open.txn.as_mut(), catalog.database.oid, &new)?;
        store::drop_trees(open.txn.as_mut(), old)?;
        self.changed_catalog();
        if !skip_data {
            bound.check_populated(&catalog)?;
            self.fill_table(new, bound.plan, &[])?;
        }
        Ok(())
    }
}

/// The columns of a relation that a query makes, under the names given.
fn columns_of(from: &[OutputColumn], names: &[Node], too_many: &str) -> Result<Vec<Column>> {
    let names = texts(names);
    if names.len() > from.len() {
        return Err(Error::new(SqlState::SYNTAX_ERROR, too_many));
    }
    let mut columns: Vec<Column> = Vec::with_capacity(from.len());
    for (place, column) in from.iter().enumerate() {
        let name = cut_name(names.get(place).unwrap_or(&column.name));
        if columns.iter().any(|other| other.name == name) {
            return Err(Error::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        if column.ty.category() == Category::Pseudo || column.ty == TypeId::UNKNOWN {
            return Err(Error::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("column \"{name}\" has pseudo-type {}", column.ty),
            ));
        }
        columns.push(Column {
            type_id: column.ty,
            typmod: column.typmod,
            domain: column.domain,
            collation: of_column(&name, column)?,
            name,
            ..Column::default()
        });
    }
    Ok(columns)
}

/// 42P16 when a view would lose columns or they would change.
fn check_same_columns(catalog: &Catalog, old: &Table, new: &Table) -> Result<()> {
    let refused = |message: String| Error::new(SqlState::INVALID_TABLE_DEFINITION, message);
    if new.columns.len() < old.columns.len() {
        return Err(refused("cannot drop columns from view".to_owned()));
    }
    for (old, new) in old.columns.iter().zip(&new.columns) {
        if old.name != new.name {
            return Err(refused(format!(
                "cannot change name of view column \"{}\" to \"{}\"",
                old.name, new.name
            ))
            .with_hint(
                "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            ));
        }
        let (before, after) = (old.declared(), new.declared());
        if before != after {
            return Err(refused(format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                old.name,
                format_type(before.0, before.1),
                format_type(after.0, after.1)
            )));
        }
        if old.collation != new.collation {
            let shown = |column: &Column| {
                let oid = match column.collation {
                    0 => of_type(column.type_id),
                    given => given,
                };
                let known = catalog.collation(oid);
                known.map_or_else(|| oid.to_string(), |known| known.name.clone())
            };
            return Err(refused(format!(
                "cannot change collation of view column \"{}\" from \"{}\" to \"{}\"",
                old.name,
                shown(old),
                shown(new)
            )));
        }
    }
    Ok(())
}
