//! What of a session its server's log is told.
//!
//! The session knows what it does and how much of that is to be logged; whoever has its client has
//! the log. So what happens while a statement runs goes through its [`Sink`], and what is said of
//! an error afterwards is asked for with [`Session::log_context`].

use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

use base::engine::ClusterSettings;
use base::Result;

use super::statements::about;
use super::transaction::State;
use super::{Format, Portal, Prepared, Session, Sink};
use execution::settings::{Asker, LogSettings, LoggedStatements, Settings};
use execution::state::secrets::is_secret;
use execution::state::LogContext;
use execution::state::RowView;
use syntax::parser::{NodeEnum, Statement};
use types::{Datum, TypeId};

/// How a node logs what belongs to no session that has begun; without the cluster's settings, as long as
/// it does not know them.
pub fn log_settings(
    cluster: Option<&dyn ClusterSettings>,
    defaults: &[(String, String)],
) -> Arc<LogSettings> {
    let mut settings = Settings::of_nobody();
    for (name, value) in defaults.iter().filter(|(name, _)| name.starts_with("log_")) {
        // What is wrong with it, the node has refused to start with.
        let _ = settings.begin_with(Asker::Configuration, name, value);
    }
    if let Some(cluster) = cluster {
        settings.load(&cluster.configuration());
    }
    settings.log().clone()
}

impl Session {
    /// What the session is to the log.
    pub fn log_context(&self) -> LogContext {
        self.shared.log_context()
    }

    /// How things are logged.
    pub fn log_settings(&self) -> &Arc<LogSettings> {
        self.shared.settings.log()
    }

    /// What the session does while no statement runs.
    pub(super) fn idle_command(&self) -> &'static str {
        match self.state {
            State::None | State::Implicit => "idle",
            State::Block => "idle in transaction",
            State::Failed => "idle in transaction (aborted)",
        }
    }

    /// Has a message of the simple protocol logged, if `log_statement` wants one of its statements.
    pub(super) fn log_statements(&self, text: &str, statements: &[Statement], sink: &mut dyn Sink) {
        if self.shared.settings.log().statements == LoggedStatements::None {
            return;
        }
        if !statements.iter().any(|one| self.is_logged(one)) {
            return;
        }
        let executed = statements.iter().find_map(|one| self.executed(one));
        let detail = executed.and_then(|prepared| {
            let statement = prepared.statement()?;
            Some(format!("prepare: {}", statement.text()))
        });
        // Nothing of it has begun.
        let context = LogContext {
            command: self.idle_command(),
            ..self.shared.log_context()
        };
        sink.log_statement(text, detail, &context);
    }

    /// What EXECUTE runs.
    fn executed(&self, statement: &Statement) -> Option<Rc<Prepared>> {
        match statement.node() {
            NodeEnum::ExecuteStmt(execute) => self.prepared(&execute.name).ok(),
            _ => None,
        }
    }

    fn is_logged(&self, statement: &Statement) -> bool {
        let logged = |statement: &Statement| about(statement.node()).logged;
        let class = match self.executed(statement) {
            Some(prepared) => prepared.statement().map_or(LoggedStatements::All, logged),
            None => logged(statement),
        };
        class <= self.shared.settings.log().statements
    }

    /// Whether `log_statement` wants a prepared statement logged when it is executed.
    pub fn logs(&self, prepared: &Prepared) -> bool {
        let statement = prepared.statement();
        self.shared.settings.log().statements != LoggedStatements::None
            && statement.is_some_and(|statement| self.is_logged(statement))
    }

    /// What the session is to the log when it begins to execute a prepared statement, if
    /// `log_statement` wants that logged.
    pub fn log_context_of(&self, prepared: &Prepared) -> Option<LogContext> {
        let statement = prepared.statement().filter(|_| self.logs(prepared))?;
        Some(LogContext {
            command: about(statement.node()).command,
            ..self.shared.log_context()
        })
    }

    /// The parameters of a portal, as the log shows them: `$1 = '5', $2 = NULL`. None where there are
    /// none, or none are to be shown.
    pub fn logged_parameters(&self, portal: &Portal) -> Option<String> {
        let values = portal.params.as_slice();
        let most = self.shared.settings.log().parameter_bytes_max;
        if values.is_empty() || most == Some(0) {
            return None;
        }
        let text = portal
            .prepared
            .statement()
            .map(|statement| statement.text().clone());
        let is_secret = text.is_some_and(|text| is_secret(&text));
        let types = portal.prepared.param_type_ids();
        let mut out = String::new();
        for (number, _) in values.iter().enumerate() {
            let before = if number == 0 { "" } else { ", " };
            // Writing to memory does not fail.
            let _ = write!(out, "{before}${} = ", number + 1);
            match self.parameter_text(values, types, number) {
                Ok(None) => out.push_str("NULL"),
                Ok(Some(_)) if is_secret => out.push_str("'********'"),
                Ok(Some(text)) => put_quoted(&mut out, &text, most),
                Err(_) => out.push_str("???"),
            }
        }
        Some(out)
    }

    fn parameter_text(
        &self,
        values: &[Datum],
        types: &[TypeId],
        number: usize,
    ) -> Result<Option<String>> {
        let row = RowView {
            values,
            types,
            context: &self.eval,
        };
        if row.is_null(number) {
            return Ok(None);
        }
        let mut out = Vec::new();
        row.put(number, Format::Text, &mut out)?;
        Ok(Some(String::from_utf8_lossy(&out).into_owned()))
    }
}

/// Appends a value in quotes, cut to so many bytes.
fn put_quoted(out: &mut String, text: &str, most: Option<usize>) {
    let most = most.unwrap_or(text.len()).min(text.len());
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
    let end = end.unwrap_or(0);
    out.push('\'');
    out.push_str(&text[..end].replace('\'', "''"));
    if end < text.len() {
        out.push_str("...");
    }
    out.push('\'');
}
