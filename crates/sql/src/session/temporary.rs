//! Temporary objects of a session ([`catalog::local`]): their schema, what becomes of them at COMMIT,
//! and DISCARD.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{OnCommitAction, RangeVar};

use super::plan_cache::PlanCache;
use super::Session;
use catalog::access::{denied, Guarded, Privileges};
use catalog::local::{is_local, Local, LocalEngine, OnCommit};
use catalog::{store, Catalog, Routine, Schema};

impl Session {
    /// Whether a name asks for a temporary object.
    pub(super) fn is_temporary(&self, range: &RangeVar) -> bool {
        range.relpersistence == "t" || range.schemaname == "pg_temp"
    }

    /// The schema of temporary objects, in which the statement makes something; made when it is
    /// first asked for.
    pub(super) fn temporary_schema(&mut self, range: &RangeVar) -> Result<u32> {
        let own = self.temporary_schema_name();
        if !range.schemaname.is_empty() && range.schemaname != "pg_temp" && range.schemaname != own
        {
            return Err(Error::new(
                SqlState::of("42P16"),
                "cannot create temporary relation in non-temporary schema",
            ));
        }
        self.own_schema()
    }

    /// The schema of temporary objects, in which the statement makes something.
    pub(super) fn own_schema(&mut self) -> Result<u32> {
        self.may_create_temporary()?;
        let own = self.temporary_schema_name();
        let local = self.local();
        local.decide(true);
        let oid = match local.schema() {
            Some(oid) => oid,
            None => self.new_oid()?,
        };
        local.set_schema(oid);
        let catalog = self.current_catalog()?;
        if catalog.schema_by_oid(oid).is_some() {
            return Ok(oid);
        }
        let schema = Schema {
            oid,
            name: own,
            owner: self.own_role(&catalog)?,
        };
        if let Some(open) = &mut self.open {
            store::insert_nameless_schema(open.txn.as_mut(), catalog.database.oid, &schema)?;
        }
        self.changed_catalog();
        Ok(oid)
    }

    /// 42501 for a role that may make nothing temporary in this database.
    fn may_create_temporary(&mut self) -> Result<()> {
        let settings = &self.shared.settings;
        settings.check_unrestricted("create temporary table")?;
        let catalog = self.current_catalog()?;
        let (role, database) = (self.shared.settings.current_role(), &catalog.database);
        let temporary = Privileges::TEMPORARY;
        match catalog.holds(role, Guarded::Database, database.oid, temporary) {
            true => Ok(()),
            // Who could make the schema is refused by it.
            false if catalog.schema(&self.temporary_schema_name()).is_some() => {
                Err(denied("schema", &self.temporary_schema_name()))
            }
            false => Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!(
                    "permission denied to create temporary tables in database \"{}\"",
                    database.name
                ),
            )),
        }
    }

    fn temporary_schema_name(&self) -> String {
        format!("pg_temp_{}", self.shared.start.backend_pid)
    }

    /// What the session has to itself. From the first time on, its engine knows of it.
    fn local(&mut self) -> Local {
        if let Some(local) = &self.shared.local {
            return local.clone();
        }
        let local = Local::default();
        let engine = Arc::new(LocalEngine::new(self.shared.engine.clone(), local.clone()));
        if let Some(mut open) = self.open.take() {
            open.txn = engine.wrap(open.txn);
            self.open = Some(open);
        }
        self.ended = None;
        self.shared.engine = Arc::new(engine.to_engine());
        self.shared.local = Some(local.clone());
        // What others have planned knows nothing of it.
        self.plans = PlanCache::of_thread(&self.shared.engine);
        self.settings_changed();
        local
    }

    /// ON COMMIT of a table that is made.
    pub(super) fn note_on_commit(
        &mut self,
        table: u32,
        action: i32,
        temporary: bool,
    ) -> Result<()> {
        let action = match OnCommitAction::try_from(action) {
            Ok(OnCommitAction::OncommitDeleteRows) => OnCommit::Delete,
            Ok(OnCommitAction::OncommitDrop) => OnCommit::Drop,
            Ok(OnCommitAction::OncommitPreserveRows) if !temporary => {
                return Err(only_temporary());
            }
            _ => return Ok(()),
        };
        if !temporary {
            return Err(only_temporary());
        }
        self.local().set_on_commit(table, action);
        Ok(())
    }

    /// Carries out ON COMMIT DROP, and returns the trees that ON COMMIT DELETE ROWS empties once
    /// the transaction has been committed.
    pub(super) fn before_commit(&mut self) -> Result<Vec<base::TreeId>> {
        let Some(local) = self.shared.local.clone() else {
            return Ok(Vec::new());
        };
        let mut emptied = Vec::new();
        let actions = local.on_commit();
        if actions.is_empty() || self.open.is_none() {
            return Ok(emptied);
        }
        let catalog = self.current_catalog()?;
        check_emptied(&catalog, &actions)?;
        for (oid, action) in actions {
            let Some(table) = catalog.table_by_oid(oid) else {
                continue;
            };
            match action {
                OnCommit::Delete => emptied.push(table.tree),
                OnCommit::Drop => {
                    self.drop_temporary(|table| table == oid)?;
                }
            }
        }
        Ok(emptied)
    }

    /// Removes the rows that ON COMMIT DELETE ROWS does not keep.
    pub(super) fn after_commit(&mut self, emptied: Vec<base::TreeId>) {
        if let Some(local) = &self.shared.local {
            emptied.into_iter().for_each(|tree| local.clear(tree));
        }
    }

    /// DISCARD TEMP.
    pub(super) fn discard_temporary(&mut self) -> Result<()> {
        if self.shared.local.is_none() {
            return Ok(());
        }
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let own = catalog.tables.iter().filter(|table| is_local(table.oid));
        for table in own {
            self.refuse_in_use(table, "DROP TABLE")?;
        }
        self.drop_temporary(|_| true)?;
        let catalog = self.current_catalog()?;
        for routine in catalog.routines.iter() {
            if is_local(routine.oid) {
                self.drop_temporary_routine(catalog.database.oid, routine)?;
            }
        }
        Ok(())
    }

    fn drop_temporary_routine(&mut self, database: u32, routine: &Routine) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.txn.begin_statement()?;
        store::drop_routine(open.txn.as_mut(), database, routine)?;
        self.changed_catalog();
        Ok(())
    }

    /// Drops temporary objects, and what belongs to them.
    fn drop_temporary(&mut self, wanted: impl Fn(u32) -> bool) -> Result<()> {
        let catalog = self.current_catalog()?;
        let owner = |table: &catalog::Table| {
            let sequence = table.sequence.as_ref()?;
            sequence.owner.map(|owner| owner.table)
        };
        for table in &catalog.tables {
            let uses = table.view.iter().flat_map(|view| &view.uses);
            let chosen = wanted(table.oid)
                || owner(table).is_some_and(&wanted)
                || uses.into_iter().any(|uses| wanted(uses.relation));
            if !is_local(table.oid) || !chosen {
                continue;
            }
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            open.txn.begin_statement()?;
            store::drop_table(open.txn.as_mut(), catalog.database.oid, table)?;
            if let Some(local) = &self.shared.local {
                local.forget_on_commit(table.oid);
            }
            self.changed_catalog();
            // Routines that name its rows go with it.
            let catalog = self.current_catalog()?;
            let names_rows = |routine: &Routine| {
                let arguments = routine.arguments.iter().map(|argument| argument.type_id);
                let mut types = arguments.chain([routine.result]);
                let rows = table.row_type();
                routine.result_relation == table.oid || types.any(|id| Some(id) == rows)
            };
            for routine in catalog.routines.iter() {
                if is_local(routine.oid) && names_rows(routine) {
                    self.drop_temporary_routine(catalog.database.oid, routine)?;
                }
            }
        }
        Ok(())
    }
}

/// 0A000 for what would become temporary, or no longer be so.
pub(super) fn moved_temporary() -> Error {
    let message = "cannot move objects into or out of temporary schemas";
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// # Errors
/// 0A000 for tables that COMMIT empties, and that others refer to which it does not empty.
fn check_emptied(catalog: &Catalog, actions: &[(u32, OnCommit)]) -> Result<()> {
    let is_emptied = |table: u32| {
        let mut actions = actions.iter();
        actions.any(|known| known.0 == table && matches!(known.1, OnCommit::Delete))
    };
    for (oid, _) in actions.iter().filter(|known| is_emptied(known.0)) {
        let mut children = catalog.referrers(*oid);
        let Some((child, _)) = children.find(|(child, _)| !is_emptied(child.oid)) else {
            continue;
        };
        let name = catalog.table_by_oid(*oid).map_or("", |table| &table.name);
        let message = "unsupported ON COMMIT and foreign key combination";
        let detail = format!(
            "Table \"{}\" references \"{name}\", but they do not have the same ON COMMIT setting.",
            child.name
        );
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(detail));
    }
    Ok(())
}

fn only_temporary() -> Error {
    Error::new(
        SqlState::of("42P16"),
        "ON COMMIT can only be used on temporary tables",
    )
}
