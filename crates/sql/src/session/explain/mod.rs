//! EXPLAIN: the nodes of a plan, what is expected of them, and how long planning took; with ANALYZE
//! also what each of them has done. For that the statement runs as it always does, to its end, and
//! nobody gets its rows ([`execution::exec::measure`]).
//!
//! | module | what |
//! |---|---|
//! | [`node`] | from a plan to what is shown of it |
//! | [`details`] | conditions and keys of nodes |
//! | [`names`] | what columns are called, and what is written of them |
//! | [`write`] | text, JSON, YAML and XML |
//!
//! # What it leaves out
//! VERBOSE, BUFFERS, WAL and SETTINGS, which answer 0A000 where they are switched on, as ANALYZE does
//! of what makes a table. What triggers took is a part of the execution, and not shown by itself.

use std::borrow::Cow;
use std::rc::Rc;

use base::{coro, Error, Result, SqlState};
use pg_query::protobuf::{ExplainStmt, Node};

use super::copy::options::truth_of;
use super::cursors::cursor_query;
use super::plan::{text_column, typed_column};
use super::run::Output;
use super::sizes::Sizes;
use super::statements::inner;
use super::utility::node_of;
use super::{Column, Session};
use execution::exec::Measures;
use syntax::parser::{char_position, NodeEnum, Statement};
use types::{Datum, TypeId};

mod details;
mod names;
mod node;
mod write;

/// What an answer is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Text,
    Json,
    Yaml,
    Xml,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
struct Options {
    form: Form,
    costs: bool,
    summary: bool,
    analyze: bool,
    timing: bool,
}

/// The columns of an answer.
pub(super) fn columns(explain: &ExplainStmt) -> Vec<Column> {
    let name = "QUERY PLAN";
    // What is wrong with the options is said when the statement runs.
    match read_options("", &explain.options) {
        Ok(Options {
            form: Form::Json, ..
        }) => vec![typed_column(name, TypeId::JSON)],
        _ => vec![text_column(name)],
    }
}

/// The query of CREATE TABLE AS and CREATE MATERIALIZED VIEW.
fn made_of(node: &NodeEnum) -> Option<&NodeEnum> {
    match node {
        NodeEnum::CreateTableAsStmt(create) => node_of(&create.query),
        _ => None,
    }
}

impl Session {
    /// The lines that EXPLAIN shows.
    pub(super) fn explain(
        &mut self,
        statement: &Statement,
        explain: &ExplainStmt,
        (params, types): (&[Datum], &[TypeId]),
    ) -> Result<Vec<String>> {
        let options = read_options(statement.text(), &explain.options)?;
        let inner = statement.inner(inner);
        let inner = inner.ok_or_else(|| Error::internal("EXPLAIN of nothing"))?;
        let inner = match inner.node() {
            NodeEnum::DeclareCursorStmt(_) => cursor_query(&inner)?,
            NodeEnum::CreateTableAsStmt(_) => {
                if options.analyze {
                    return Err(Error::unsupported("EXPLAIN ANALYZE of what makes a table"));
                }
                let query = inner.inner(made_of);
                query.ok_or_else(|| Error::internal("a table of nothing"))?
            }
            _ => inner,
        };
        let begun = self.shared.env.now();
        let mut params = Cow::Borrowed(params);
        let executed = match inner.node() {
            NodeEnum::ExecuteStmt(execute) => {
                let (prepared, values) = self.named_execution(statement, execute)?;
                params = Cow::Owned(values);
                Some(prepared)
            }
            _ => None,
        };
        let plan = |session: &mut Session| match &executed {
            Some(prepared) => session.current_plan(prepared),
            // What is only looked at may leave its parameters open.
            None => {
                let is_open = !options.analyze;
                let (planned, _) = session.plan(&inner, types, is_open, None)?;
                Ok(Rc::new(planned))
            }
        };
        let mut planned = plan(self)?;
        let took = self.shared.env.now().since(begun);
        if planned.bound.is_none() {
            return Ok(match options.form {
                Form::Text => vec!["Utility statements have no plan structure".to_owned()],
                Form::Json => vec!["[\n  \"Utility Statement\"\n]".to_owned()],
                Form::Yaml => vec!["- \"Utility Statement\"".to_owned()],
                Form::Xml => {
                    let namespace = "http://www.postgresql.org/2009/explain";
                    let empty = "  <Utility-Statement />";
                    vec![format!(
                        "<explain xmlns=\"{namespace}\">\n{empty}\n</explain>"
                    )]
                }
            });
        }
        let mut measured = None;
        if options.analyze {
            planned = self.settle_plan(planned, plan)?;
            let clock = options.timing.then(|| self.shared.env.clone());
            let measures = Measures::new(clock);
            let begun = self.shared.env.now();
            self.run_plan(&planned, &params, &mut Output::Measured(&measures))?;
            measured = Some((measures, self.shared.env.now().since(begun)));
        }
        let catalog = planned.catalog.clone();
        let storage = self.shared.engine.storage.clone();
        let sizes = Sizes::of(&catalog, &*storage);
        let (measures, ran) = measured.unzip();
        let permitted = self.permitted_to_see(&planned)?;
        let eval = self.eval.clone();
        let view = node::View {
            statistics: &sizes,
            measures: measures.as_deref(),
            writer: names::Writer::new(&eval, &[], names::reads_several(permitted.plan())),
        };
        // Conditions may be as deep as they were written.
        let plan = coro::on_large_stack(|| node::of_plan(permitted.plan(), &view, &[]))?;
        let after = [("Planning Time", Some(took)), ("Execution Time", ran)];
        let after = after.into_iter().filter(|_| options.summary);
        let after = after.filter_map(|(name, took)| Some((name, node::milliseconds(took?))));
        Ok(write::write(&plan, &after.collect::<Vec<_>>(), &options))
    }
}

/// What the options say; those whose figures are not kept are refused where they are switched on.
///
/// # Errors
/// 42601 and 22023 for what is no option or value of one; 0A000 for what is not supported.
fn read_options(text: &str, options: &[Node]) -> Result<Options> {
    let mut asked = Options {
        form: Form::Text,
        costs: true,
        summary: false,
        analyze: false,
        timing: false,
    };
    let (mut summary, mut timing, mut wal) = (None, None, false);
    for option in options {
        let Some(NodeEnum::DefElem(option)) = &option.node else {
            continue;
        };
        let place = |error: Error| match char_position(text, option.location) {
            Some(position) => error.at(position),
            None => error,
        };
        let name = option.defname.as_str();
        if name == "format" {
            let value = option.arg.as_ref().and_then(|arg| arg.node.as_ref());
            let value = match value {
                Some(NodeEnum::String(value)) => value.sval.as_str(),
                _ => "",
            };
            asked.form = match value {
                "text" => Form::Text,
                "json" => Form::Json,
                "xml" => Form::Xml,
                "yaml" => Form::Yaml,
                _ => {
                    return Err(place(Error::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("unrecognized value for EXPLAIN option \"format\": \"{value}\""),
                    )))
                }
            };
            continue;
        }
        if !OPTIONS.contains(&name) {
            return Err(place(Error::new(
                SqlState::SYNTAX_ERROR,
                format!("unrecognized EXPLAIN option \"{name}\""),
            )));
        }
        let on = truth_of(option).ok_or_else(|| {
            let message = format!("{name} requires a Boolean value");
            Error::new(SqlState::SYNTAX_ERROR, message)
        })?;
        match name {
            "analyze" => asked.analyze = on,
            "wal" => wal = on,
            "timing" => timing = Some(on),
            "costs" => asked.costs = on,
            "summary" => summary = Some(on),
            "verbose" | "buffers" | "settings" if on => {
                let upper = name.to_uppercase();
                return Err(Error::unsupported(format!("EXPLAIN ({upper})")));
            }
            _ => {}
        }
    }
    asked.timing = timing.unwrap_or(asked.analyze);
    asked.summary = summary.unwrap_or(asked.analyze);
    for (name, on) in [("WAL", wal), ("TIMING", asked.timing)] {
        if on && !asked.analyze {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("EXPLAIN option {name} requires ANALYZE"),
            ));
        }
    }
    match wal {
        true => Err(Error::unsupported("EXPLAIN (WAL)")),
        false => Ok(asked),
    }
}

/// The options beside FORMAT.
const OPTIONS: [&str; 8] = [
    "analyze", "verbose", "costs", "buffers", "wal", "settings", "timing", "summary",
];
