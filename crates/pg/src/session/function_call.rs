//! FunctionCall: a function that is called by its oid (PostgreSQL 15 manual, section 55.2.4), as libpq does
//! with large objects.
//!
//! ```text
//! FunctionCall 954 (0, 4096)  ──►  FunctionCallResponse bytes  ReadyForQuery
//! ```
//! It is a cycle of its own, and its transaction is that of a Query.

use ::sql::session::{Called, Format, LogLevel, Oid, Param};
use base::error::{Error, Result, SqlState};

use super::{Session, Step};
use crate::channel::format;
use crate::frontend::FunctionCall;
use crate::log::Entry;
use crate::replies::Replies;
use crate::seam::Sql;

impl<S: Sql> Session<S> {
    /// Answers a call for whose arguments there is memory, or not.
    pub(super) fn function_call(
        &mut self,
        call: &FunctionCall<'_>,
        kept: Result<()>,
    ) -> Result<Step> {
        self.begin_statement();
        let channel = self.channel.clone();
        let format = match call.is_binary {
            true => Format::Binary,
            false => Format::Text,
        };
        let mut replies = Replies::to_call(&channel, format);
        let result = kept
            .inspect_err(|_| self.sql.fail())
            .and_then(|()| self.call_function(call, &mut replies));
        match result {
            Ok(()) => replies.finish(false),
            Err(error) if self.goes_elsewhere(&error) => return Ok(Step::Elsewhere),
            Err(error) => {
                replies.finish(false);
                self.error(&error, None)?;
                // The message has ended.
                let mut rest = Replies::to_call(&channel, format);
                self.sql.sync(&mut rest)?;
            }
        }
        self.in_batch = false;
        self.end_cycle();
        Ok(Step::Handled)
    }

    fn call_function(&mut self, call: &FunctionCall<'_>, replies: &mut Replies<'_>) -> Result<()> {
        let began = self.env.now();
        let called = self.sql.prepare_call(Oid(call.function))?;
        let what = format!(
            "fastpath function call: \"{}\" (OID {})",
            called.name, call.function
        );
        let was_logged = self.log_call(&called, &what);
        self.check_arguments(call, &called.prepared)?;
        let params: Vec<_> = call
            .values
            .iter()
            .enumerate()
            .map(|(index, value)| Param {
                format: format(&call.formats, index),
                value,
            })
            .collect();
        let bound = self.sql.bind(&called.prepared, &params);
        let mut portal = bound.map_err(|mut error| {
            // There is no portal that it could be a parameter of.
            error.fields_mut().context = None;
            error
        })?;
        self.sql.execute(&mut portal, 0, replies)?;
        self.sql.sync(replies)?;
        self.log_duration(began, was_logged, || what);
        Ok(())
    }

    fn check_arguments(&mut self, call: &FunctionCall<'_>, prepared: &S::Prepared) -> Result<()> {
        let (given, wanted) = (call.values.count(), S::param_types(prepared).len());
        let message = if given != wanted {
            format!(
                "function call message contains {given} arguments but function requires {wanted}"
            )
        } else if !call.formats.fits(given) {
            let formats = call.formats.count();
            format!(
                "function call message contains {formats} argument formats but {given} arguments"
            )
        } else {
            return Ok(());
        };
        Err(self.failed(Error::new(SqlState::PROTOCOL_VIOLATION, message)))
    }

    /// Logs a call that is about to be made, if `log_statement` wants it.
    fn log_call(&self, called: &Called<S::Prepared>, what: &str) -> bool {
        let Some(context) = self.sql.log_context_of(&called.prepared) else {
            return false;
        };
        let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, what);
        let entry = Entry {
            level: LogLevel::Log,
            body: &body,
            statement: None,
        };
        self.channel.log.write(&entry, &context);
        true
    }
}
