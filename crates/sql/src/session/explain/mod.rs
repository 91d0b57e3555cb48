//! EXPLAIN: the nodes of a plan, what is expected of them, and how long planning took; with ANALYZE
//! also what each of them has done. For that the statement runs as it always does, to its end, and
//! nobody gets its rows ([`execution::exec::measure`]).
//!
//! | module | what |
//! |---|---|
//! | [`node`] | from a plan to what is shown of it |
//! | [`details`] | conditions and keys of nodes |
//! | [`names`] | what columns are called, and what is written of them |
//! | [`output`] | the columns of nodes |
//! | [`used`] | pages, scratch space and log that nodes have used |
//! | [`settings`] | the settings that differ |
//! | [`write`] | text, JSON, YAML and XML |
//!
//! # What it leaves out
//! `JIT`, as nothing is compiled.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use base::{coro, Error, Result, SqlState};
use pg_query::protobuf::{ExplainStmt, Node};

use super::copy::options::truth_of;
use super::cursors::cursor_query;
use super::plan::{has_into, text_column, typed_column};
use super::run::Output;
use super::sizes::Sizes;
use super::statements::{inner, Given};
use super::utility::node_of;
use super::{Column, Session, Sink};
use catalog::Catalog;
use execution::exec::{Measures, Meter};
use execution::state::prepared::Planned;
use planner::plan::Plan;
use syntax::parser::{char_position, NodeEnum, Statement};
use types::{Datum, TypeId};

mod details;
mod names;
mod node;
mod output;
mod settings;
mod used;
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
    verbose: bool,
    buffers: bool,
    wal: bool,
    settings: bool,
}

impl Options {
    /// What stands for a plan where there is none.
    fn dummy(&self, name: &str) -> Vec<String> {
        match self.form {
            Form::Text => vec![],
            Form::Json => vec![format!("[\n  \"{name}\"\n]")],
            Form::Yaml => vec![format!("- \"{name}\"")],
            Form::Xml => {
                let namespace = "http://www.postgresql.org/2009/explain";
                let tag = name.replace(' ', "-");
                vec![format!(
                    "<explain xmlns=\"{namespace}\">\n  <{tag} />\n</explain>"
                )]
            }
        }
    }
}

/// A table that EXPLAIN ANALYZE has made of a query.
#[derive(Debug, Default)]
pub(super) enum Making {
    /// There is none.
    #[default]
    Nothing,
    /// The next table that is made of a query is measured.
    Asked(Rc<Measures>),
    /// It is made, by this plan.
    Done(Rc<Planned>),
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

/// What a statement calls the table that it writes, if it names it.
fn alias_of(node: &NodeEnum) -> Option<&str> {
    let relation = match node {
        NodeEnum::InsertStmt(insert) => &insert.relation,
        NodeEnum::UpdateStmt(update) => &update.relation,
        NodeEnum::DeleteStmt(delete) => &delete.relation,
        NodeEnum::MergeStmt(merge) => &merge.relation,
        _ => return None,
    };
    let alias = relation.as_ref()?.alias.as_ref()?;
    Some(&alias.aliasname)
}

/// The statements that rules have made of one.
fn rewritten(planned: &Planned) -> Option<&[Rc<Plan>]> {
    match planned.bound.as_ref()?.plan.plan() {
        Plan::Rewritten(rewritten) => Some(&rewritten.statements),
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
        sink: &mut dyn Sink,
    ) -> Result<Vec<String>> {
        let options = read_options(statement.text(), &explain.options)?;
        let inner = statement.inner(inner);
        let whole = inner.ok_or_else(|| Error::internal("EXPLAIN of nothing"))?;
        let inner = match whole.node() {
            NodeEnum::DeclareCursorStmt(_) => cursor_query(&whole)?,
            NodeEnum::CreateTableAsStmt(_) => {
                let query = whole.inner(made_of);
                query.ok_or_else(|| Error::internal("a table of nothing"))?
            }
            _ => whole.clone(),
        };
        if options.analyze
            && matches!(inner.node(), NodeEnum::SelectStmt(select) if has_into(select))
        {
            return Err(Error::unsupported("EXPLAIN ANALYZE of SELECT INTO"));
        }
        let meter = || Meter::begin(self.shared.temp.clone());
        let meter = (options.buffers || options.wal).then(meter);
        let before = meter.as_ref().map(Meter::usage);
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
        // What makes a table counts itself.
        let makes_table = options.analyze && matches!(whole.node(), NodeEnum::CreateTableAsStmt(_));
        let mut planned = plan(self)?;
        if let Some(prepared) = executed.as_ref().filter(|_| !makes_table) {
            prepared.count_execution();
        }
        let planned_in = self.shared.env.now().since(begun);
        if planned.bound.is_none() {
            return Ok(match options.form {
                Form::Text => vec!["Utility statements have no plan structure".to_owned()],
                _ => options.dummy("Utility Statement"),
            });
        }
        let is_rewritten = rewritten(&planned).is_some();
        if is_rewritten && options.form != Form::Text {
            let what = "EXPLAIN in a form other than TEXT of what rules rewrite";
            return Err(Error::unsupported(what));
        }
        let planning = meter.as_ref().zip(before);
        let planning = planning.map(|(meter, before)| meter.usage().since(before));
        let (mut measured, mut is_made) = (None, false);
        if options.analyze {
            let clock = options.timing.then(|| self.shared.env.clone());
            let measures = Measures::new(clock, meter);
            let begun;
            if let NodeEnum::CreateTableAsStmt(create) = whole.node() {
                begun = self.shared.env.now();
                let made = self.explain_making(&whole, (&params, types), &measures, sink)?;
                let leaves_out = create.into.as_ref().is_some_and(|into| into.skip_data);
                match made {
                    Some(made) => (planned, is_made) = (made, true),
                    None if leaves_out => {}
                    // It was there already.
                    None => {
                        return Ok(options.dummy(super::statements::about(whole.node()).command))
                    }
                }
            } else {
                planned = self.settle_plan(planned, plan)?;
                begun = self.shared.env.now();
                self.run_plan(&planned, &params, &mut Output::Measured(&measures))?;
            }
            measured = Some((measures, self.shared.env.now().since(begun)));
        }
        let (measures, ran_in) = measured.unzip();
        let after = write::After {
            settings: match options.settings {
                true => settings::changed(&self.shared.settings)?,
                false => vec![],
            },
            id: match options.verbose {
                true => self.explained_id(&planned)?,
                false => None,
            },
            planned_in,
            planning: planning.filter(|_| options.buffers),
            triggers: measures.as_ref().map(|measures| measures.triggers()),
            ran_in,
        };
        let written = match &executed {
            Some(prepared) => prepared.statement().map(|statement| statement.node()),
            None => Some(inner.node()),
        };
        let (measures, alias) = (measures.as_deref(), written.and_then(alias_of));
        if let Some(statements) = rewritten(&planned) {
            return self.explain_each(&planned, statements, (measures, after), &options);
        }
        let permitted = self.permitted_to_see(&planned)?;
        let plan = match permitted.plan() {
            Plan::Insert(insert) if is_made => &insert.input,
            plan => plan,
        };
        let plan = self.explained(&planned.catalog, plan, (measures, alias), &options)?;
        Ok(write::write(&plan, &after, &options))
    }

    /// What is shown of the statements that rules have made of one.
    fn explain_each(
        &self,
        planned: &Planned,
        statements: &[Rc<Plan>],
        (measures, mut after): (Option<&Measures>, write::After),
        options: &Options,
    ) -> Result<Vec<String>> {
        self.permitted_to_see(planned)?;
        if statements.is_empty() {
            return Ok(vec!["Query rewrites to nothing".to_owned()]);
        }
        let mut lines = Vec::new();
        let mut triggers = after.triggers.take();
        for (place, plan) in statements.iter().enumerate() {
            if place + 1 == statements.len() {
                after.triggers = triggers.take();
            }
            if place > 0 {
                lines.push(String::new());
            }
            let writes = matches!(
                **plan,
                Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_) | Plan::With(_)
            );
            if !writes {
                lines.push("NOTIFY".to_owned());
                continue;
            }
            let plan = self.explained(&planned.catalog, plan, (measures, None), options)?;
            lines.extend(write::write(&plan, &after, options));
        }
        Ok(lines)
    }

    /// The nodes of a plan that the session's role may see.
    fn explained(
        &self,
        catalog: &Arc<Catalog>,
        plan: &Plan,
        (measures, alias): (Option<&Measures>, Option<&str>),
        options: &Options,
    ) -> Result<node::Node> {
        let storage = self.shared.engine.storage.clone();
        let sizes = Sizes::of(catalog, &*storage);
        let eval = self.eval.clone();
        let most = self.shared.settings.parsed().query_memory;
        let reads_several = names::reads_several(plan);
        let view = node::View {
            statistics: &sizes,
            measures,
            writer: names::Writer::new(&eval, &[], reads_several, alias, (options.verbose, most)),
            catalog,
        };
        // Conditions may be as deep as they were written.
        let plan = coro::on_large_stack(|| node::of_plan(plan, &view, &[]))?;
        view.writer.ended()?;
        Ok(plan)
    }

    /// Makes a table of a query, and measures that; its plan, or none if no query ran.
    fn explain_making(
        &mut self,
        create: &Statement,
        (params, param_types): (&[Datum], &[TypeId]),
        measures: &Rc<Measures>,
        sink: &mut dyn Sink,
    ) -> Result<Option<Rc<Planned>>> {
        self.making = Making::Asked(measures.clone());
        let made = self.utility(&mut Given {
            statement: create,
            params,
            param_types,
            sink,
            alone: false,
        });
        let making = std::mem::take(&mut self.making);
        made?;
        Ok(match making {
            Making::Done(planned) => Some(planned),
            _ => None,
        })
    }
}

/// What the options say.
///
/// # Errors
/// 42601 and 22023 for what is no option or value of one.
fn read_options(text: &str, options: &[Node]) -> Result<Options> {
    let mut asked = Options {
        form: Form::Text,
        costs: true,
        summary: false,
        analyze: false,
        timing: false,
        verbose: false,
        buffers: false,
        wal: false,
        settings: false,
    };
    let (mut summary, mut timing) = (None, None);
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
            "wal" => asked.wal = on,
            "verbose" => asked.verbose = on,
            "buffers" => asked.buffers = on,
            "settings" => asked.settings = on,
            "timing" => timing = Some(on),
            "costs" => asked.costs = on,
            "summary" => summary = Some(on),
            _ => {}
        }
    }
    asked.timing = timing.unwrap_or(asked.analyze);
    asked.summary = summary.unwrap_or(asked.analyze);
    for (name, on) in [("WAL", asked.wal), ("TIMING", asked.timing)] {
        if on && !asked.analyze {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("EXPLAIN option {name} requires ANALYZE"),
            ));
        }
    }
    Ok(asked)
}

/// The options beside FORMAT.
const OPTIONS: [&str; 8] = [
    "analyze", "verbose", "costs", "buffers", "wal", "settings", "timing", "summary",
];
