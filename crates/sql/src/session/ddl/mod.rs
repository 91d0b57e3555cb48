//! DDL: writes of the catalog, as transactional as any other.

mod aggregate;
mod alter;
mod analyze;
mod attach;
mod audit;
mod build;
mod cast;
mod cluster;
mod collation;
mod comment;
mod composite;
mod database;
mod domain;
mod drop;
mod drop_absent;
mod exclusion;
mod extended;
mod extension;
mod foreign;
mod gather;
pub(crate) mod grant;
mod index;
mod inherit;
mod large_object;
mod like;
mod members;
mod of_type;
mod operator;
mod owned;
mod partition;
mod placement;
mod policy;
mod range;
mod rename;
mod replica_identity;
mod role;
mod role_settings;
mod routine;
mod routine_options;
mod routine_result;
mod rule;
mod schema;
mod sequence;
mod sql_body;
pub(crate) mod system;
mod table;
mod tablespace;
mod trigger;
mod truncate;
mod user_type;
mod vacuum;
mod view;

use std::sync::Arc;

use base::engine::{RowLock, TableLock};
use base::{Error, Result, SqlState};
use pg_query::protobuf::{Node, RangeVar};

use super::{NoticeSeverity, Session, Sink};
use catalog::access::{denied, must_own, Guarded, Privileges};
use catalog::local::is_local;
use catalog::store::{self, duplicate_relation};
use catalog::{Catalog, Index, RelationKind, RelationRef, Table, PG_CATALOG};
use execution::exec::{self, Exec};
use execution::system::Relations;
use planner::bind::{self, qualified, BindContext, Binder};
use schema::check_schema_name;
use syntax::parser::{self, NodeEnum};
use types::{Datum, TypeId};

impl Session {
    /// Begins a statement that writes the catalog.
    pub(super) fn begin_definition(&mut self) -> Result<()> {
        self.ensure_open()?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.begun = true;
        open.txn.begin_statement()
    }

    pub(super) fn changed_catalog(&mut self) {
        if let Some(open) = &mut self.open {
            open.catalog_changed = true;
            open.wrote = true;
            open.forget_own_catalog();
        }
    }

    /// The table that a name means, now.
    pub(super) fn find_table(&mut self, range: &RangeVar) -> Result<Arc<Table>> {
        let table = self.find_table_in("", range)?;
        if table.kind == RelationKind::System {
            return Err(system_table(&table.name));
        }
        Ok(table)
    }

    /// The table that a name in a text means, built-in ones included.
    fn find_table_in(&mut self, text: &str, range: &RangeVar) -> Result<Arc<Table>> {
        let catalog = self.current_catalog()?;
        let search_path = self.search_path(&catalog);
        let cx = BindContext {
            catalog: &catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text,
            literals: None,
            variables: None,
        };
        bind::find_table(&cx, range)
    }

    /// Where names are bound, for who the session acts as.
    pub(super) fn bind_context<'c>(
        &'c self,
        text: &'c str,
        catalog: &'c Arc<Catalog>,
        search_path: &'c [u32],
    ) -> BindContext<'c> {
        BindContext {
            catalog,
            search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text,
            literals: None,
            variables: None,
        }
    }

    /// The relation of a name; none for an index.
    ///
    /// # Errors
    /// 42P01 where there is none.
    fn relation_named(&mut self, range: &RangeVar) -> Result<Option<Arc<Table>>> {
        let catalog = self.current_catalog()?;
        match self.find_range(range)? {
            None => Err(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", qualified(range)),
            )),
            Some(RelationRef::Table(place)) => Ok(Some(catalog.tables[place].clone())),
            Some(RelationRef::Index(..)) => Ok(None),
        }
    }

    /// The table that a name means once it is locked against everyone.
    fn lock_table(&mut self, range: &RangeVar) -> Result<Arc<Table>> {
        self.lock_table_so(range, TableLock::AccessExclusive)
    }

    /// The same in another mode.
    fn lock_table_so(&mut self, range: &RangeVar, mode: TableLock) -> Result<Arc<Table>> {
        self.lock_table_for(range, Privileges::NONE, mode)
    }

    /// The same for one who owns the table or holds a privilege on it.
    fn lock_table_for(
        &mut self,
        range: &RangeVar,
        enough: Privileges,
        mode: TableLock,
    ) -> Result<Arc<Table>> {
        loop {
            let table = self.find_table(range)?;
            match enough.is_none() {
                true => self.must_own_relation(&table)?,
                false => self.must_hold(&table, enough)?,
            }
            self.lock_mode(&table, mode)?;
            let again = self.find_table(range)?;
            if again.tree == table.tree && again.oid == table.oid {
                return Ok(again);
            }
        }
    }

    /// 42501 for a relation on which the role holds none of these privileges.
    pub(super) fn must_hold(&mut self, table: &Table, privileges: Privileges) -> Result<()> {
        let catalog = self.current_catalog()?;
        let own = self.shared.settings.current_role();
        match catalog.holds_any(own, Guarded::Table, table.oid, privileges) {
            true => Ok(()),
            false => Err(denied(table.kind.noun(), &table.name)),
        }
    }

    /// 42501 for a relation of another role.
    fn must_own_relation(&mut self, table: &Table) -> Result<()> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        match catalog.has_privileges_of(own.oid, table.owner) {
            true => Ok(()),
            false => Err(must_own(table.kind.noun(), &table.name)),
        }
    }

    /// 42501 for an index of another role's table.
    fn must_own_index(&mut self, table: &Table, index: &Index) -> Result<()> {
        let catalog = self.current_catalog()?;
        match catalog.has_privileges_of(self.shared.settings.current_role(), table.owner) {
            true => Ok(()),
            false => Err(must_own("index", &index.name)),
        }
    }

    fn lock_exclusively(&mut self, table: &Table) -> Result<()> {
        self.must_own_relation(table)?;
        self.lock_fully(table)
    }

    fn lock_fully(&mut self, table: &Table) -> Result<()> {
        self.lock_mode(table, TableLock::AccessExclusive)
    }

    /// The schema in which something is made.
    fn creation_schema(&self, catalog: &Catalog, named: &str) -> Result<u32> {
        let oid = self.named_schema(catalog, named)?;
        self.may_create_in(catalog, oid).map(|()| oid)
    }

    /// 42501 for a schema in which the role may not make anything.
    fn may_create_in(&self, catalog: &Catalog, schema: u32) -> Result<()> {
        let role = self.shared.settings.current_role();
        if is_local(schema) || catalog.holds(role, Guarded::Schema, schema, Privileges::CREATE) {
            return Ok(());
        }
        let schema = catalog.schema_by_oid(schema);
        Err(denied("schema", schema.map_or("", |schema| &schema.name)))
    }

    /// 42501 for a type of which the role may make no columns.
    ///
    /// A type of one's own is held until the transaction ends, so that nobody drops it meanwhile.
    pub(super) fn may_use_type(&mut self, catalog: &Catalog, ty: TypeId) -> Result<()> {
        let ty = ty.array_element().unwrap_or(ty);
        let role = self.shared.settings.current_role();
        match catalog.holds(role, Guarded::Type, ty.0, Privileges::USAGE) {
            true => self.lock_type(catalog, ty, RowLock::KeyShare),
            false => Err(denied("type", &ty.to_string())),
        }
    }

    /// 42501 if among the objects that stored text names is a type that the role may not use.
    pub(super) fn may_use_types_of(
        &mut self,
        catalog: &Catalog,
        named: impl IntoIterator<Item = u32>,
    ) -> Result<()> {
        let mut types = named.into_iter().map(TypeId).filter(|ty| ty.is_own());
        types.try_for_each(|ty| self.may_use_type(catalog, ty))
    }

    /// The schema of that name, or the first of the search path.
    fn named_schema(&self, catalog: &Catalog, named: &str) -> Result<u32> {
        if named.is_empty() {
            let path = self.search_path(catalog);
            let mut path = path.into_iter().filter(|oid| !is_local(*oid));
            return path.next().ok_or_else(|| {
                Error::new(
                    SqlState::INVALID_SCHEMA_NAME,
                    "no schema has been selected to create in",
                )
            });
        }
        let schema = catalog.schema(named).ok_or_else(|| {
            Error::new(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{named}\" does not exist"),
            )
        })?;
        if schema.oid == PG_CATALOG {
            return Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                "permission denied for schema pg_catalog",
            ));
        }
        Ok(schema.oid)
    }

    /// Says that a relation of that name exists: as a notice where a statement with IF NOT EXISTS
    /// passes over it, otherwise as the error 42P07.
    fn pass_over_existing(
        &mut self,
        name: &str,
        if_not_exists: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if !if_not_exists {
            return Err(duplicate_relation(name));
        }
        let message = format!("relation \"{name}\" already exists, skipping");
        let body = Error::new(SqlState::DUPLICATE_TABLE, message);
        self.notice(NoticeSeverity::Notice, body, sink)
    }

    pub(super) fn new_oid(&self) -> Result<u32> {
        store::new_oid(&*self.shared.engine.sequences)
    }

    /// The value that EXECUTE gives for a parameter of a type.
    pub(super) fn execute_parameter(
        &mut self,
        text: &str,
        node: &Node,
        number: usize,
        ty: TypeId,
    ) -> Result<Datum> {
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let search_path = self.search_path(&catalog);
        let cx = BindContext {
            catalog: &catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text,
            literals: None,
            variables: None,
        };
        let plan = parser::large_stack(|| {
            let mut binder = Binder::new(cx, Vec::new(), false);
            binder.execute_parameter(node, number, ty)
        })?;
        let permitted = plan.permit(&catalog, self.shared.settings.current_role())?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.txn.begin_statement()?;
        let permit = permitted.permit();
        let eval = self.eval.clone();
        let mut cx = Exec::new(&Relations, self, permit, &eval, &[]);
        let value = exec::open(permitted, None).next(&mut cx)?;
        let value = value.and_then(|row| row.into_iter().next());
        value.ok_or_else(|| Error::internal("a parameter without a value"))
    }
}

fn texts(nodes: &[Node]) -> Vec<String> {
    nodes
        .iter()
        .filter_map(|node| match &node.node {
            Some(NodeEnum::String(text)) => Some(text.sval.clone()),
            _ => None,
        })
        .collect()
}

fn system_table(name: &str) -> Error {
    Error::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!("permission denied: \"{name}\" is a system catalog"),
    )
}
