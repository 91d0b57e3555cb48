//! COPY: many rows in, or out, without a statement for each.
//!
//! ```text
//! COPY t FROM STDIN    client ─CopyData→ Sink::copy_data → lines → fields → values → INSERT
//! COPY … TO STDOUT     plan → row → line → Sink::copy_row ─CopyData→ client
//! ```
//! COPY FROM is an INSERT whose rows come from the client ([`from`]): they are checked as they are
//! read, and written some hundreds at a time, as PostgreSQL does, which decides what is found
//! first where several rows are wrong. It never holds more of the data than one line and one batch.
//! COPY TO runs a query and writes its rows another way ([`output`]).
//!
//! | module | what |
//! |---|---|
//! | [`options`] | options, checked |
//! | [`lines`] | text and CSV into fields |
//! | [`binary`] | the binary format |
//! | [`rows`] | fields into values, and the context of errors |
//! | [`from`], [`output`] | the two directions |
//! | [`file`] | a file of the server in the place of the client |
//!
//! # What it leaves out
//! Programs (0A000).

mod binary;
mod file;
mod from;
mod lines;
pub(super) mod options;
mod output;
mod rows;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::CopyStmt;

use super::plan::Way;
use super::run::Output;
use super::statements::inner;
use super::{CommandTag, Session, Sink};
use catalog::Table;
use execution::state::prepared::{Counted, Planned};
use file::Server;
use options::{Chosen, Options};
use output::CopyOut;
use planner::bind::rule::Alone;
use planner::bind::{self, BindContext, Binder, Bound};
use syntax::parser::{self, Statement};

/// 22P04.
fn bad_format(message: impl Into<String>) -> Error {
    Error::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

impl Session {
    /// COPY.
    pub(super) fn copy(
        &mut self,
        statement: &Statement,
        copy: &CopyStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let way = if copy.is_from { "FROM" } else { "TO" };
        if copy.is_program {
            return Err(Error::unsupported(format!("COPY {way} PROGRAM")));
        }
        let rows = match copy.filename.is_empty() {
            true => self.copy_through(statement, copy, sink)?,
            false => {
                self.must_use_server_files(copy)?;
                let env = self.shared.env.clone();
                self.copy_through(statement, copy, &mut Server::of(copy, env, sink)?)?
            }
        };
        Ok(CommandTag {
            name: "COPY",
            rows: Some(rows),
        })
    }

    fn copy_through(
        &mut self,
        statement: &Statement,
        copy: &CopyStmt,
        sink: &mut dyn Sink,
    ) -> Result<u64> {
        match copy.is_from {
            true => self.copy_from(statement, copy, sink),
            false => self.copy_to(statement, copy, sink),
        }
    }

    fn copy_to(
        &mut self,
        statement: &Statement,
        copy: &CopyStmt,
        sink: &mut dyn Sink,
    ) -> Result<u64> {
        let (planned, table) = match &copy.query {
            Some(_) => (self.plan_copied_query(statement)?, None),
            None => self.plan_copied_table(statement, copy)?,
        };
        let options = Options::read(&copy.options, false, statement.text())?;
        let Some(bound) = &planned.bound else {
            return Err(Error::internal("COPY without a plan"));
        };
        let names: Vec<_> = bound
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        check_referenced(&options.force_quote, "QUOTE", &names, table.as_deref())?;
        // Before the client is told that rows follow.
        self.permitted(&planned)?;
        self.tell(sink)?;
        let mut out = CopyOut::new(sink, &options, self.eval.encoding, &names);
        out.begin(&names)?;
        let rows = self.run_plan(&planned, &[], &mut Output::Copy(&mut out))?;
        out.end()?;
        Ok(rows)
    }

    fn plan_copied_table(
        &mut self,
        statement: &Statement,
        copy: &CopyStmt,
    ) -> Result<(Rc<Planned>, Option<Arc<Table>>)> {
        let copied = RefCell::new(None);
        let plan = |session: &mut Session| {
            let (planned, table) = session.plan_copy(statement, |binder| binder.copy_to(copy))?;
            *copied.borrow_mut() = Some(table);
            Ok(planned)
        };
        let planned = plan(self)?;
        let planned = self.settle_plan(planned, plan)?;
        Ok((planned, copied.into_inner()))
    }

    fn plan_copied_query(&mut self, statement: &Statement) -> Result<Rc<Planned>> {
        let inner = statement.inner(inner);
        let inner = inner.ok_or_else(|| Error::internal("COPY of nothing"))?;
        if matches!(inner.node(), syntax::parser::NodeEnum::MergeStmt(_)) {
            let message = "MERGE not supported in COPY";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let plan = |session: &mut Session| {
            let way = Way {
                alone: Some(Alone::Copy),
                ..Way::default()
            };
            let (planned, ..) = session.plan_watched(&inner, &[], false, None, way)?;
            Ok(Rc::new(planned))
        };
        let planned = plan(self)?;
        match &planned.bound {
            None => return Err(Error::unsupported("COPY of this statement")),
            Some(bound) if bound.writes && bound.columns.is_empty() => {
                return Err(Error::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "COPY query must have a RETURNING clause",
                ));
            }
            Some(_) => {}
        }
        self.settle_plan(planned, plan)
    }

    /// Binds a COPY as the catalog is now.
    fn plan_copy<T>(
        &mut self,
        statement: &Statement,
        bind: impl FnOnce(&mut Binder<'_>) -> Result<(Bound, T)>,
    ) -> Result<(Rc<Planned>, T)> {
        let catalog = self.current_catalog()?;
        let level = self.shared.settings.parsed().durability;
        self.owed.add(&catalog.debt, level);
        let path = self.found_path(&catalog);
        let seen = self.trees_seen()?;
        let cx = BindContext {
            catalog: &catalog,
            search_path: path.schemas(),
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text: statement.text(),
            literals: None,
            variables: None,
        };
        let row_security = self.shared.settings.parsed().row_security;
        let (bound, more) = parser::large_stack(|| {
            let mut binder = Binder::new(cx, Vec::new(), false);
            binder.trees_seen = seen.clone();
            binder.row_security = row_security;
            bind(&mut binder)
        })?;
        self.check_same_tables(&catalog, &bound)?;
        let planned = Planned {
            counted: Counted::default(),
            sizes: Vec::new(),
            seen,
            point: None,
            own: self.open.as_ref().is_some_and(|open| open.catalog_changed),
            path,
            columns: None,
            types: bound.columns.iter().map(|column| column.ty).collect(),
            bound: Some(bound),
            catalog,
        };
        Ok((Rc::new(planned), more))
    }
}

/// Checks that an option names only columns that are copied.
fn check_referenced(
    chosen: &Chosen,
    option: &str,
    names: &[&str],
    table: Option<&Table>,
) -> Result<()> {
    let Chosen::Named(chosen) = chosen else {
        return Ok(());
    };
    let Some(name) = chosen.iter().find(|name| !names.contains(&name.as_str())) else {
        return Ok(());
    };
    Err(match table {
        Some(table) if table.column(name).is_none() => bind::copy::no_column(table, name),
        Some(_) => Error::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("FORCE_{option} column \"{name}\" not referenced by COPY"),
        ),
        None => Error::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" does not exist"),
        ),
    })
}
