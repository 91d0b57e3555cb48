//! Prepared statements, the catalog they were planned with, and when both must be made anew.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::Isolation;
use base::{Error, Result, SqlState};
use pg_query::protobuf::SelectStmt;

use super::names::Names;
use super::sizes::{self, Sizes};
use super::statements::{about, inner, utility_columns, FailedBlock};
use super::transaction::{lost_block, Loss, OwnCatalog, State};
use super::{missing_database, Column, Oid, Session};
use catalog::{changes, shared, store, Catalog, Locale};
use execution::exec::point;
use execution::settings::planted;
use execution::state::prepared::{Counted, Planned, SearchPath};
use execution::state::Prepared;
use planner::bind::literals::{Literals, Watched};
use planner::bind::rule::Alone;
use planner::bind::{BindContext, Binder, OutputColumn, Variables};
use planner::plan::permit::BoundFor;
use syntax::parser::{self, Literal, NodeEnum, Statement};
use types::{Datum, TypeId};

/// 0A000 for a statement whose columns are others than when it was prepared. Drivers prepare it anew
/// where they find this routine in the error.
pub(super) fn changed_result() -> Error {
    let message = "cached plan must not change result type";
    let mut error = Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    error.fields_mut().routine = Some("RevalidateCachedQuery");
    error
}

impl Session {
    /// The catalog as the open transaction sees it, or the newest one.
    pub(super) fn current_catalog(&mut self) -> Result<Arc<Catalog>> {
        self.note_comments();
        if self.open.as_ref().is_some_and(|open| open.catalog_changed) {
            return self.own_catalog();
        }
        self.shared_catalog()
    }

    /// The same as it was when it was last asked for: nothing is read, and the snapshot of the statement at
    /// work stays. It has the types of all values that there are.
    pub(super) fn known_catalog(&self) -> &Arc<Catalog> {
        let own = self
            .open
            .as_ref()
            .and_then(|open| open.own_catalog.as_ref());
        own.map_or(&self.catalog, |own| &own.catalog)
    }

    /// Functions may have removed large objects with their comments.
    pub(super) fn note_comments(&mut self) {
        if std::mem::take(&mut self.shared.large_objects.uncommented) {
            self.changed_catalog();
        }
    }

    /// The newest catalog, without what the open transaction has changed.
    fn shared_catalog(&mut self) -> Result<Arc<Catalog>> {
        let transactions = &*self.shared.engine.transactions;
        if self.catalog.version == transactions.catalog_version() {
            return Ok(self.catalog.clone());
        }
        let name = &self.catalog.database.name;
        let current = match &self.shared.local {
            None => self.shared.start.catalogs.current(transactions, name)?,
            Some(_) => shared::next(transactions, Some(&self.catalog), name)?,
        };
        self.catalog = current.ok_or_else(|| missing_database(name))?;
        let catalog = self.catalog.clone();
        self.use_names(&catalog);
        Ok(catalog)
    }

    /// The catalog as the open transaction sees it, which has changed it: the shared one, and what
    /// it has written read again.
    fn own_catalog(&mut self) -> Result<Arc<Catalog>> {
        let nothing_open = || Error::internal("nothing is open");
        let open = self.open.as_mut().ok_or_else(nothing_open)?;
        let transactions = &*self.shared.engine.transactions;
        let follows = open.txn.isolation() == Isolation::ReadCommitted;
        let is_current = |own: &&OwnCatalog| {
            !own.is_stale && (!follows || own.catalog.version == transactions.catalog_version())
        };
        if let Some(own) = open.own_catalog.as_ref().filter(is_current) {
            return Ok(own.catalog.clone());
        }
        let before = open.own_catalog.take();
        let (known, seen) = match before {
            Some(own) => (own.catalog, own.written),
            None => (self.shared_catalog()?, 0),
        };
        let transactions = &*self.shared.engine.transactions;
        let open = self.open.as_mut().ok_or_else(nothing_open)?;
        let txn = open.txn.as_mut();
        // Those alone that are new: a transaction may make thousands of tables.
        let written = txn.catalog_writes();
        let (changed, written) = (written[seen.min(written.len())..].to_vec(), written.len());
        let made = match follows {
            true => shared::follow(&known, transactions, txn, &changed)?,
            // Of what others have changed meanwhile its snapshot shows nothing.
            false => {
                txn.begin_statement()?;
                changes::apply(&known, known.version, txn, &changed)?
            }
        };
        let catalog = match made {
            Some(made) => made,
            None => {
                txn.begin_statement()?;
                let version = transactions.catalog_version();
                let name = &self.catalog.database.name;
                let loaded = store::load(txn, version, name)?;
                loaded.ok_or_else(|| missing_database(name))?
            }
        };
        let catalog = Arc::new(catalog);
        open.own_catalog = Some(OwnCatalog {
            catalog: catalog.clone(),
            written,
            is_stale: false,
        });
        self.use_names(&catalog);
        Ok(catalog)
    }

    /// What is shown now rests on the catalog.
    pub(super) fn owe_catalog(&mut self) {
        let debt = self.catalog.debt.clone();
        self.owed
            .add(&debt, self.shared.settings.parsed().durability);
    }

    /// Takes over a catalog of the newest version that another session has read.
    pub(super) fn use_catalog(&mut self, catalog: &Arc<Catalog>) {
        if self.catalog.version != catalog.version {
            self.catalog = catalog.clone();
            self.use_names(catalog);
        }
    }

    pub(super) fn refresh_names(&mut self) {
        let catalog = self.catalog.clone();
        self.use_names(&catalog);
    }

    fn use_names(&mut self, catalog: &Arc<Catalog>) {
        let names = Names {
            catalog: catalog.clone(),
            search_path: self.search_path(catalog),
            role: self.shared.settings.current_role(),
            new_labels: match &self.open {
                Some(open) => open.new_labels.clone(),
                None => Vec::new(),
            },
        };
        let ctype = catalog.database.ctype;
        if self.eval.names.is_none() {
            self.shared.settings.fix("lc_ctype", ctype.name());
        }
        let eval = Rc::make_mut(&mut self.eval);
        eval.names = Some(Arc::new(names));
        eval.ascii_letters = ctype == Locale::C;
    }

    /// The schemas of `search_path` that exist and that the session's role may look into.
    pub(super) fn search_path(&self, catalog: &Catalog) -> Vec<u32> {
        let names = &self.shared.settings.parsed().search_path;
        let role = self.shared.settings.current_role();
        let named = names.iter().filter_map(|name| match name.as_str() {
            "$user" => {
                let role = catalog.role_by_oid(self.shared.settings.current_role());
                role.and_then(|role| catalog.schema(&role.name))
            }
            name => catalog.schema(name),
        });
        let named = named.filter(|schema| catalog.may_look_into(role, schema.oid));
        let filling = self.shared.filling.into_iter();
        let temporary = self.shared.local.as_ref().and_then(|_| {
            let own = catalog.schema("pg_temp").map(|schema| schema.oid);
            own.filter(|_| !names.iter().any(|name| name == "pg_temp"))
        });
        let first = temporary.into_iter().chain(filling);
        first.chain(named.map(|schema| schema.oid)).collect()
    }

    /// The search path as it is now.
    pub(super) fn found_path(&self, catalog: &Catalog) -> SearchPath {
        let settings = &self.shared.settings;
        SearchPath {
            names: settings.parsed().search_path.clone(),
            role: settings.current_role(),
            schemas: self.search_path(catalog),
        }
    }

    /// Whether names are looked for along this path now.
    fn looks_along(&self, path: &SearchPath, catalog: &Catalog) -> bool {
        let settings = &self.shared.settings;
        path.names == settings.parsed().search_path
            && (path.role == settings.current_role() || path.schemas == self.search_path(catalog))
    }

    /// 25P02 in a failed block, but for what ends it.
    pub(super) fn check_not_failed(&self, prepared: &Prepared) -> Result<()> {
        match prepared.statement() {
            Some(statement) => self.check_allowed(statement.node()),
            None => Ok(()),
        }
    }

    /// Whether a query may run.
    ///
    /// # Errors
    /// 25P02 in a failed block; 40001 in one that was lost with its leader.
    pub(super) fn check_may_query(&self) -> Result<()> {
        self.check_allowed(&NodeEnum::SelectStmt(Box::default()))
    }

    fn check_allowed(&self, node: &NodeEnum) -> Result<()> {
        if self.loss == Loss::None && self.state != State::Failed {
            return Ok(());
        }
        let failed = about(node).failed;
        // In a block that was lost with its leader, COMMIT fails by itself, and once the block has
        // failed all but what would go on with it is refused as in any other.
        let is_fit_for_lost_block = match failed {
            FailedBlock::Ended => true,
            FailedBlock::Continued => false,
            FailedBlock::Refused => self.state == State::Failed,
        };
        if self.loss != Loss::None && !is_fit_for_lost_block {
            return Err(lost_block());
        }
        if self.state != State::Failed || failed != FailedBlock::Refused {
            return Ok(());
        }
        Err(Error::new(
            SqlState::IN_FAILED_SQL_TRANSACTION,
            "current transaction is aborted, commands ignored until end of transaction block",
        ))
    }

    /// Plans a statement.
    pub(super) fn prepare_statement(
        &mut self,
        statement: Statement,
        given: &[TypeId],
        open_params: bool,
    ) -> Result<Rc<Prepared>> {
        self.check_allowed(statement.node())?;
        let (planned, params) = self.plan(&statement, given, open_params, None)?;
        let prepared = Prepared::of_plan(statement, params, Rc::new(planned));
        Ok(Rc::new(prepared))
    }

    /// The plan of a prepared statement as the catalog is now.
    ///
    /// # Errors
    /// 0A000 when its columns would change.
    pub(super) fn current_plan(&mut self, prepared: &Prepared) -> Result<Rc<Planned>> {
        let planned = prepared.planned.borrow().clone();
        let Some(statement) = prepared.statement() else {
            let missing = || Error::internal("no statement, and no plan for none");
            return planned.ok_or_else(missing);
        };
        if let Some(planned) = planned {
            if planned.bound.is_none() || self.holds(&planned) {
                return Ok(planned);
            }
        }
        let (anew, _) = self.plan(statement, &prepared.params, false, None)?;
        if anew.types != prepared.types {
            return Err(changed_result());
        }
        let anew = Rc::new(anew);
        *prepared.planned.borrow_mut() = Some(anew.clone());
        Ok(anew)
    }

    /// Whether the policies in a plan, if there are any, are those for the session's role.
    pub(super) fn is_for_this_role(&self, planned: &Planned) -> bool {
        let settings = &self.shared.settings;
        let now = BoundFor {
            role: settings.current_role(),
            row_security: settings.parsed().row_security,
            replica: settings.parsed().replica,
        };
        let bound = planned.bound.as_ref();
        bound.is_none_or(|bound| bound.plan.is_for(now))
    }

    /// Whether a plan holds now.
    pub(super) fn holds(&self, planned: &Planned) -> bool {
        if !self.is_for_this_role(planned) {
            return false;
        }
        match self.open.as_ref().filter(|open| open.catalog_changed) {
            Some(open) => {
                let own = open.own_catalog.as_ref();
                own.is_some_and(|own| !own.is_stale && Arc::ptr_eq(&own.catalog, &planned.catalog))
            }
            None => {
                !planned.own
                    && self.sees_like(planned.seen.as_ref())
                    && planned.catalog.version == self.shared.engine.transactions.catalog_version()
                    && self.looks_along(&planned.path, &planned.catalog)
                    && sizes::are_alike(&planned.sizes, &*self.shared.engine.storage)
            }
        }
    }

    /// Binds the query of a cursor, whose rows tell of which rows of tables they are.
    pub(super) fn plan_cursor(
        &mut self,
        statement: &Statement,
        given: &[TypeId],
    ) -> Result<Planned> {
        let way = Way {
            for_cursor: true,
            ..Way::default()
        };
        Ok(self.plan_watched(statement, given, false, None, way)?.0)
    }

    /// Binds a statement; also the types of its parameters.
    pub(super) fn plan(
        &mut self,
        statement: &Statement,
        given: &[TypeId],
        open_params: bool,
        variables: Option<&dyn Variables>,
    ) -> Result<(Planned, Vec<TypeId>)> {
        let (planned, params, _) =
            self.plan_watched(statement, given, open_params, variables, Way::default())?;
        Ok((planned, params))
    }

    /// As [`Session::plan`], and leaves literals open if asked to watch them.
    pub(super) fn plan_watched(
        &mut self,
        statement: &Statement,
        given: &[TypeId],
        open_params: bool,
        variables: Option<&dyn Variables>,
        Way {
            watch,
            for_cursor,
            alone,
        }: Way<'_>,
    ) -> Result<(Planned, Vec<TypeId>, Watched)> {
        let node = statement.node();
        let about = about(node);
        let catalog = match about.without_catalog {
            true => Catalog::none(),
            false => self.current_catalog()?,
        };
        // Errors in names rest on the catalog as much as plans do.
        let level = self.shared.settings.parsed().durability;
        self.owed.add(&catalog.debt, level);
        let path = self.found_path(&catalog);
        let seen = self.trees_seen()?;
        let own = self.open.as_ref().is_some_and(|open| open.catalog_changed);
        let kept_seen = seen.clone();
        if !about.is_planned() {
            let inner = statement.inner(inner);
            let params = match (inner.filter(|_| about.takes_inner_params), node) {
                (Some(inner), _) => self.plan(&inner, given, open_params, variables)?.1,
                (None, NodeEnum::CallStmt(call)) if open_params => {
                    self.call_parameters(call, given)?
                }
                (None, _) => given.to_vec(),
            };
            let columns = utility_columns(self, node, &params)?;
            let types = columns
                .iter()
                .flatten()
                .map(|column| TypeId(column.type_oid.0))
                .collect();
            let planned = Planned {
                counted: Counted::default(),
                seen: seen.clone(),
                sizes: Vec::new(),
                catalog,
                own,
                path,
                columns,
                types,
                bound: None,
                point: None,
            };
            return Ok((planned, params, Watched::default()));
        }
        let begun = self.planning_begins();
        let literals = watch.map(|watch| {
            let text = statement.text();
            Literals::of(text, watch.literals, watch.denied)
        });
        let cx = BindContext {
            catalog: &catalog,
            search_path: path.schemas(),
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text: statement.text(),
            literals: literals.as_ref(),
            variables,
        };
        let settings = &self.shared.settings;
        let (row_security, replica) = (settings.parsed().row_security, settings.parsed().replica);
        let methods = settings.parsed().methods;
        let sizes = Sizes::of(&catalog, &*self.shared.engine.storage);
        let bind = || {
            planted::panic_at(settings, "bind");
            let mut binder = Binder::new(cx, given.to_vec(), open_params);
            binder.trees_seen = seen;
            binder.row_security = row_security;
            binder.replica = replica;
            binder.alone = alone;
            binder.methods = methods;
            binder.statistics = Some(&sizes);
            binder.for_cursor = for_cursor;
            let bound = binder.statement(node)?;
            Ok::<_, Error>((bound, binder.finish_params()?))
        };
        let (bound, params) = parser::deep(cx.text, bind)??;
        let sizes = sizes.asked.into_inner();
        self.check_same_tables(&catalog, &bound)?;
        let watched = literals.map(|literals| literals.watched());
        let returns_rows = !bound.columns.is_empty() || matches!(node, NodeEnum::SelectStmt(_));
        let planned = Planned {
            counted: Counted::of(
                statement,
                begun.map(|begun| self.shared.env.now().since(begun)),
            ),
            seen: kept_seen,
            sizes,
            own,
            columns: returns_rows.then(|| describe(&bound.columns)),
            types: bound.columns.iter().map(|column| column.ty).collect(),
            point: point::columns_of(bound.plan.plan()),
            bound: Some(bound),
            path,
            catalog,
        };
        Ok((planned, params, watched.unwrap_or_default()))
    }
}

/// Whether it is SELECT INTO, which is DDL.
pub(super) fn has_into(select: &SelectStmt) -> bool {
    let mut first = std::iter::successors(Some(select), |select| select.larg.as_deref());
    first.any(|select| select.into_clause.is_some())
}

/// How a statement is bound.
#[derive(Clone, Copy, Default)]
pub(super) struct Way<'a> {
    /// What of its text the plan may leave open.
    pub watch: Option<Watch<'a>>,
    /// Whether it is the query of a cursor.
    pub for_cursor: bool,
    /// In what it stands, if rules can put one statement alone in its place.
    pub alone: Option<Alone>,
}

/// The literals of a statement's text that its plan may leave open.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    /// All of them.
    pub literals: &'a [Literal],
    /// The numbers of those that are to be fixed.
    pub denied: &'a [usize],
}

/// The row description of a query's columns.
pub(super) fn describe(columns: &[OutputColumn]) -> Vec<Column> {
    columns
        .iter()
        .map(|column| Column {
            name: column.name.clone(),
            table: Oid(column.origin.0),
            number: column.origin.1,
            type_oid: Oid(column.ty.0),
            type_len: column.ty.len(),
            type_mod: column.typmod,
        })
        .collect()
}

/// A column of text, for statements like SHOW.
pub(super) fn text_column(name: &str) -> Column {
    typed_column(name, TypeId::TEXT)
}

/// A column of a type.
pub(super) fn typed_column(name: &str, ty: TypeId) -> Column {
    Column {
        name: name.to_owned(),
        table: Oid(0),
        number: 0,
        type_oid: Oid(ty.0),
        type_len: ty.len(),
        type_mod: -1,
    }
}

/// Rows of text.
pub(super) fn text_row(values: &[&str]) -> Vec<Datum> {
    values.iter().map(Datum::text).collect()
}
