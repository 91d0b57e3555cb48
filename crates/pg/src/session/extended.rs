//! The extended query protocol: Parse, Bind, Describe, Execute, Close and Sync, and the statements
//! and portals that they name (PostgreSQL 15 manual, section 55.2.3).
//!
//! ```text
//! Parse ──► statement ──Bind──► portal ──Execute──► rows, up to a limit ──Execute──► the rest
//! ```
//! A named statement is SQL's own, so EXECUTE finds it too, and a cursor of SQL is a portal here.

use std::rc::Rc;

use ::sql::session::{secrets, LogLevel, LogSettings};
use base::error::{Error, Result, SqlState};
use sql::session as sql;
use sql::{Executed, Format, Oid, Param};

use super::{utf8, OpenPortal, RowFormats, Session, Step, INLINE_PARAMS};
use crate::backend::{self, Backend, TransactionStatus};
use crate::channel::format;
use crate::frontend::{Bind, Parse, Target};
use crate::log::Entry;
use crate::output::Content;
use crate::replies::{put_description, put_tag, Replies};
use crate::seam::Sql;

/// What the log calls a statement without a name.
const UNNAMED: &str = "<unnamed>";

fn shown_name(name: &str) -> &str {
    match name {
        "" => UNNAMED,
        name => name,
    }
}

impl<S: Sql> Session<S> {
    /// Runs one message of the extended protocol; an error is answered once and the rest of the
    /// cycle skipped.
    pub(super) fn extended(
        &mut self,
        work: impl FnOnce(&mut Session<S>) -> Result<()>,
    ) -> Result<Step> {
        let begun = std::mem::replace(&mut self.in_batch, true);
        if !begun || self.channel.deadline.get().is_none() {
            self.begin_statement();
        }
        let status = self.status();
        if let Err(error) = work(self) {
            if self.goes_elsewhere(&error) {
                return Ok(Step::Elsewhere);
            }
            self.skipping = true;
            let unprepared = self.unprepared.take();
            let at_work = self.at_work.take();
            let prepared = at_work.as_ref().and_then(|prepared| S::text(prepared));
            self.error(&error, unprepared.as_deref().or(prepared))?;
            // A client that asks for the answer with Flush waits for it before it sends Sync.
            self.channel.output.borrow_mut().flush();
        }
        if status != TransactionStatus::Idle && self.status() == TransactionStatus::Idle {
            self.drop_portals();
        }
        self.at_work = None;
        self.channel.output.borrow_mut().end_message();
        Ok(Step::Handled)
    }

    pub(super) fn parse(&mut self, parse: &Parse<'_>) -> Result<()> {
        let began = self.env.now();
        let name = self.name(parse.name)?;
        let text = utf8(parse.text).inspect_err(|_| self.sql.fail())?;
        let prepared = if parse.types.iter().len() == 0 {
            self.sql.prepare(text, &[])
        } else {
            let types: Vec<Oid> = parse.types.iter().map(Oid).collect();
            self.sql.prepare(text, &types)
        };
        let prepared = prepared.inspect_err(|_| self.unprepared = Some(text.to_owned()))?;
        self.log_duration(began, false, || {
            format!("parse {}: {text}", shown_name(name))
        });
        if name.is_empty() {
            self.unnamed_statement = Some(prepared);
        } else {
            // It would be there already when the cycle comes again.
            self.repeatable = None;
            self.sql
                .keep_prepared(name, prepared)
                .inspect_err(|_| self.sql.fail())?;
        }
        self.answer(&Backend::ParseComplete);
        Ok(())
    }

    pub(super) fn bind(&mut self, bind: &Bind<'_>) -> Result<()> {
        let began = self.env.now();
        let portal_name = self.name(bind.portal)?;
        let prepared = self.statement(bind.statement)?;
        self.at_work = Some(prepared.clone());
        self.check_bind(bind, &prepared)?;
        let taken = self.portals.get(portal_name);
        if taken.is_some_and(|taken| self.sql.is_open(&taken.portal)) {
            let message = format!("cursor \"{portal_name}\" already exists");
            return Err(self.failed(Error::new(SqlState::DUPLICATE_CURSOR, message)));
        }
        let param = |(index, value)| Param {
            format: format(&bind.formats, index),
            value,
        };
        let count = bind.values.count();
        let portal = if count <= INLINE_PARAMS {
            let mut params = [Param {
                format: Format::Text,
                value: None,
            }; INLINE_PARAMS];
            for item in bind.values.iter().enumerate() {
                params[item.0] = param(item);
            }
            self.bind_portal(portal_name, &prepared, &params[..count])?
        } else {
            let params: Vec<_> = bind.values.iter().enumerate().map(param).collect();
            self.bind_portal(portal_name, &prepared, &params)?
        };
        let logs =
            self.sql.logs(&prepared) || self.sql.log_settings().is_some_and(LogSettings::times);
        let open = OpenPortal {
            portal,
            formats: RowFormats::of(&bind.result_formats),
            complete: false,
            of_sql: false,
            logged_as: logs.then(|| {
                let statement = String::from_utf8_lossy(bind.statement);
                let statement = shown_name(&statement);
                match portal_name {
                    "" => statement.to_owned(),
                    portal => format!("{statement}/{portal}"),
                }
            }),
        };
        if let Some(name) = &open.logged_as {
            self.log_duration(began, false, || {
                format!("bind {name}: {}", S::text(&prepared).unwrap_or_default())
            });
        }
        if portal_name.is_empty() {
            self.unnamed_portal = Some(open);
        } else {
            self.portals.insert(portal_name.to_owned(), open);
        }
        self.answer(&Backend::BindComplete);
        Ok(())
    }

    fn bind_portal(
        &mut self,
        name: &str,
        prepared: &Rc<S::Prepared>,
        params: &[Param<'_>],
    ) -> Result<S::Portal> {
        match name {
            "" => self.sql.bind(prepared, params),
            name => self.sql.bind_named(name, prepared, params),
        }
    }

    fn check_bind(&mut self, bind: &Bind<'_>, prepared: &S::Prepared) -> Result<()> {
        let given = bind.values.count();
        let wanted = S::param_types(prepared).len();
        let message = if !bind.formats.fits(given) {
            format!(
                "bind message has {} parameter formats but {given} parameters",
                bind.formats.count()
            )
        } else if given != wanted {
            format!(
                "bind message supplies {given} parameters, but prepared statement \"{}\" requires {wanted}",
                String::from_utf8_lossy(bind.statement)
            )
        } else {
            let columns = S::columns(prepared).map_or(0, <[_]>::len);
            if bind.result_formats.fits(columns) {
                return Ok(());
            }
            format!(
                "bind message has {} result formats but query has {columns} columns",
                bind.result_formats.count()
            )
        };
        Err(self.failed(Error::new(SqlState::PROTOCOL_VIOLATION, message)))
    }

    pub(super) fn describe(&mut self, target: Target<'_>) -> Result<()> {
        match target {
            Target::Statement(name) => {
                let prepared = self.statement(name)?;
                self.check_describable(S::columns(&prepared).is_some())?;
                let types = S::param_types(&prepared).iter().map(|oid| oid.0);
                let encoding = self.channel.encoding.get();
                let formats = RowFormats::All(Format::Text);
                let mut output = self.channel.output.borrow_mut();
                let put = output.try_push(Content::Free, |out| {
                    backend::put_parameter_description(out, types);
                    put_description(out, S::columns(&prepared), &formats, encoding)
                });
                drop(output);
                put.map_err(|error| self.failed(error))?;
            }
            Target::Portal(name) => {
                let portal = self.take_portal(name)?;
                let prepared = S::prepared_of(&portal.portal).clone();
                let formats = portal.formats.clone();
                self.put_portal(name, portal);
                self.check_describable(S::columns(&prepared).is_some())?;
                let encoding = self.channel.encoding.get();
                let mut output = self.channel.output.borrow_mut();
                let put = output.try_push(Content::Free, |out| {
                    put_description(out, S::columns(&prepared), &formats, encoding)
                });
                drop(output);
                put.map_err(|error| self.failed(error))?;
            }
        }
        Ok(())
    }

    /// A failed block refuses to describe what returns rows, as PostgreSQL does.
    fn check_describable(&mut self, returns_rows: bool) -> Result<()> {
        if returns_rows && self.status() == TransactionStatus::Failed {
            return Err(Error::new(
                SqlState::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        Ok(())
    }

    pub(super) fn execute(&mut self, name: &[u8], rows_max: u32) -> Result<()> {
        let mut open = self.take_portal(name)?;
        let result = self.execute_portal(&mut open, rows_max);
        self.put_portal(name, open);
        self.channel.deadline.set(None);
        result
    }

    fn execute_portal(&mut self, open: &mut OpenPortal<S>, rows_max: u32) -> Result<()> {
        let returns_rows = S::columns(S::prepared_of(&open.portal)).is_some();
        if open.complete && !returns_rows {
            let message = "portal cannot be run again";
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(self.failed(Error::new(state, message)));
        }
        let before = self.status();
        let began = self.env.now();
        let prepared = S::prepared_of(&open.portal).clone();
        self.at_work = Some(prepared.clone());
        let was_logged = self.log_execute(open, &prepared);
        let channel = self.channel.clone();
        let mut replies = Replies::new(&channel, open.formats.clone(), S::text(&prepared));
        let executed = self
            .sql
            .execute(&mut open.portal, u64::from(rows_max), &mut replies)?;
        self.log_duration(began, was_logged, || self.executes(open, &prepared));
        let shown = returns_rows || replies.shown;
        let in_block = before == TransactionStatus::Block && before == self.status();
        let content = match in_block && !shown {
            true => Content::Free,
            false => Content::Tag,
        };
        open.complete = executed != Executed::Suspended;
        self.channel
            .output
            .borrow_mut()
            .push(content, |out| match executed {
                Executed::Suspended => Backend::PortalSuspended.encode(out),
                Executed::Complete(None) => Backend::EmptyQueryResponse.encode(out),
                Executed::Complete(Some(tag)) => put_tag(out, &tag),
            });
        Ok(())
    }

    /// What is logged of the execution of a portal.
    fn executes(&self, open: &OpenPortal<S>, prepared: &S::Prepared) -> String {
        let name = open.logged_as.as_deref().unwrap_or(UNNAMED);
        format!("execute {name}: {}", S::text(prepared).unwrap_or_default())
    }

    /// Logs a statement that is about to be executed, if `log_statement` wants it.
    fn log_execute(&mut self, open: &OpenPortal<S>, prepared: &S::Prepared) -> bool {
        let Some(context) = self.sql.log_context_of(prepared) else {
            return false;
        };
        let message = self.executes(open, prepared);
        let message = secrets::mask(&message);
        let mut body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
        let parameters = self.sql.logged_parameters(&open.portal);
        body.fields_mut().detail = parameters.map(|shown| format!("parameters: {shown}"));
        let entry = Entry {
            level: LogLevel::Log,
            body: &body,
            statement: None,
        };
        self.channel.log.write(&entry, &context);
        true
    }

    pub(super) fn close(&mut self, target: Target<'_>) -> Result<()> {
        match target {
            Target::Statement(b"") => self.unnamed_statement = None,
            Target::Portal(b"") => self.unnamed_portal = None,
            Target::Statement(name) => {
                let name = self.name(name)?;
                self.repeatable = None;
                self.sql.drop_prepared(name);
            }
            Target::Portal(name) => {
                let name = self.name(name)?;
                self.portals.remove(name);
                self.sql.close_portal(name);
            }
        }
        self.answer(&Backend::CloseComplete);
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<Step> {
        let channel = self.channel.clone();
        let mut replies = Replies::new(&channel, RowFormats::All(Format::Text), None);
        if let Err(error) = self.sql.sync(&mut replies) {
            if self.goes_elsewhere(&error) {
                return Ok(Step::Elsewhere);
            }
            self.error(&error, None)?;
        }
        self.skipping = false;
        self.in_batch = false;
        self.end_cycle();
        Ok(Step::Handled)
    }

    fn statement(&mut self, name: &[u8]) -> Result<Rc<S::Prepared>> {
        if name.is_empty() {
            return self.unnamed_statement.clone().ok_or_else(|| {
                let message = "unnamed prepared statement does not exist";
                self.failed(Error::new(SqlState::INVALID_SQL_STATEMENT_NAME, message))
            });
        }
        let name = self.name(name)?;
        self.sql.prepared(name).inspect_err(|_| self.sql.fail())
    }

    /// Takes a portal out; [`Session::put_portal`] puts it back.
    fn take_portal(&mut self, name: &[u8]) -> Result<OpenPortal<S>> {
        let taken = match name {
            b"" => self.unnamed_portal.take(),
            name => {
                let name = self.name(name)?;
                let portal = self.portals.remove(name);
                let portal = portal.filter(|known| self.sql.is_open(&known.portal));
                // What SQL has declared is a portal too.
                portal.or_else(|| {
                    Some(OpenPortal {
                        portal: self.sql.cursor_portal(name)?,
                        formats: RowFormats::All(Format::Text),
                        complete: false,
                        of_sql: true,
                        logged_as: None,
                    })
                })
            }
        };
        taken.ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            let message = format!("portal \"{name}\" does not exist");
            self.failed(Error::new(SqlState::INVALID_CURSOR_NAME, message))
        })
    }

    fn put_portal(&mut self, name: &[u8], portal: OpenPortal<S>) {
        // SQL may close it and declare another of its name.
        if portal.of_sql {
            return;
        }
        match std::str::from_utf8(name) {
            Ok("") | Err(_) => self.unnamed_portal = Some(portal),
            Ok(name) => {
                self.portals.insert(name.to_owned(), portal);
            }
        }
    }
}
