//! EXPLAIN in its plain form: the nodes of a plan, without costs.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{ExplainStmt, Node};

use super::copy::options::truth_of;
use super::cursors::cursor_query;
use super::statements::inner;
use super::Session;
use planner::plan::{JoinKind, Plan, Scan, SetOperation};
use syntax::parser::{char_position, NodeEnum, Statement};
use types::Datum;

impl Session {
    /// The lines that EXPLAIN shows.
    pub(super) fn explain(
        &mut self,
        statement: &Statement,
        explain: &ExplainStmt,
        params: &[Datum],
    ) -> Result<Vec<String>> {
        let _ = params;
        check_options(statement.text(), &explain.options)?;
        let inner = statement.inner(inner);
        let inner = inner.ok_or_else(|| Error::internal("EXPLAIN of nothing"))?;
        let inner = match inner.node() {
            NodeEnum::DeclareCursorStmt(_) => cursor_query(&inner)?,
            _ => inner,
        };
        let (planned, _) = self.plan(&inner, &[], true, None)?;
        if planned.bound.is_none() {
            return Ok(vec!["Utility Statement".to_owned()]);
        }
        let mut lines = Vec::new();
        describe(self.permitted_to_see(&planned)?.plan(), 0, &mut lines);
        Ok(lines)
    }
}

/// Costs and the like are never shown, so that options which only add such are refused where they
/// are switched on.
///
/// # Errors
/// 42601 and 22023 for what is no option or value of one; 0A000 for what is not supported.
fn check_options(text: &str, options: &[Node]) -> Result<()> {
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
            match value {
                "text" => continue,
                "json" | "xml" | "yaml" => {
                    let format = value.to_uppercase();
                    return Err(Error::unsupported(format!("EXPLAIN (FORMAT {format})")));
                }
                _ => {
                    return Err(place(Error::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("unrecognized value for EXPLAIN option \"format\": \"{value}\""),
                    )))
                }
            }
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
            "analyze" if on => return Err(Error::unsupported("EXPLAIN ANALYZE")),
            "wal" | "timing" if on => {
                let upper = name.to_uppercase();
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("EXPLAIN option {upper} requires ANALYZE"),
                ));
            }
            "summary" | "verbose" if on => {
                let upper = name.to_uppercase();
                return Err(Error::unsupported(format!("EXPLAIN ({upper})")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The options beside FORMAT.
const OPTIONS: [&str; 8] = [
    "analyze", "verbose", "costs", "buffers", "wal", "settings", "timing", "summary",
];

fn describe(plan: &Plan, depth: usize, lines: &mut Vec<String>) {
    let (name, inputs): (String, Vec<&Plan>) = match plan {
        Plan::Values(rows) if rows.len() == 1 => ("Result".to_owned(), vec![]),
        Plan::Values(_) => ("Values Scan on \"*VALUES*\"".to_owned(), vec![]),
        Plan::Scan(scan) => (scan_name(scan), vec![]),
        Plan::System(table, ..) => (format!("Seq Scan on {}", table.name), vec![]),
        Plan::Function { function, .. } => {
            (format!("Function Scan on {}", function.0.name), vec![])
        }
        // These change no rows' number or order; PostgreSQL shows none of them either.
        Plan::Project(input, _) | Plan::Trim(input, _) => return describe(input, depth, lines),
        Plan::Filter(input, _) if matches!(**input, Plan::Values(_)) => {
            ("Result".to_owned(), vec![])
        }
        Plan::Filter(input, _) => ("Filter".to_owned(), vec![&**input]),
        Plan::ProjectSet(input, _) => ("ProjectSet".to_owned(), vec![&**input]),
        Plan::Join(join) => {
            let looped = join.hash.is_empty() || join.lookup.is_some();
            let method = if looped { "Nested Loop" } else { "Hash" };
            let kind = match join.kind {
                JoinKind::Inner if looped => "",
                JoinKind::Inner => " Join",
                JoinKind::Left => " Left Join",
                JoinKind::Right => " Right Join",
                JoinKind::Full => " Full Join",
            };
            let right = join.lookup.as_ref().unwrap_or(&join.right);
            (format!("{method}{kind}"), vec![&*join.left, &**right])
        }
        Plan::Aggregate { input, sets, .. } => {
            let plain = sets.iter().all(|set| set.columns.is_empty());
            let name = if plain { "Aggregate" } else { "HashAggregate" };
            (name.to_owned(), vec![&**input])
        }
        Plan::Window(window) => ("WindowAgg".to_owned(), vec![&*window.input]),
        Plan::Sort(input, _) => ("Sort".to_owned(), vec![&**input]),
        Plan::Distinct(input, _) => ("Unique".to_owned(), vec![&**input]),
        Plan::Limit(input, _, _) => ("Limit".to_owned(), vec![&**input]),
        Plan::SetOperation(operation, all, parts, _) => {
            let name = match (operation, all) {
                (SetOperation::Union, true) => "Append",
                (SetOperation::Union, false) => "HashAggregate",
                (SetOperation::Intersect, _) => "HashSetOp Intersect",
                (SetOperation::Except, _) => "HashSetOp Except",
            };
            (name.to_owned(), parts.iter().collect())
        }
        Plan::Shared(_, input) => ("CTE Scan".to_owned(), vec![&**input]),
        Plan::Recursive(recursive) => (
            "Recursive Union".to_owned(),
            vec![&*recursive.first, &*recursive.step],
        ),
        Plan::Working(_) => ("WorkTable Scan".to_owned(), vec![]),
        Plan::Anew(_, input) => return describe(input, depth, lines),
        Plan::With(with) => return describe(&with.body, depth, lines),
        Plan::Lock(input, _) => ("LockRows".to_owned(), vec![&**input]),
        Plan::Insert(insert) => (
            format!("Insert on {}", insert.target.table.name),
            vec![&*insert.input],
        ),
        Plan::Update(update) => (
            format!("Update on {}", update.target.table.name),
            vec![&*update.input],
        ),
        Plan::Delete(delete) => (
            format!("Delete on {}", delete.target.table.name),
            vec![&*delete.input],
        ),
    };
    let line = match depth {
        0 => name,
        depth => format!("{}->  {name}", " ".repeat(depth * 6 - 4)),
    };
    lines.push(line);
    for input in inputs {
        describe(input, depth + 1, lines);
    }
}

fn scan_name(scan: &Scan) -> String {
    let keyed =
        !scan.access.equal.is_empty() || scan.access.low.is_some() || scan.access.high.is_some();
    match scan.by_index() {
        Some(index) if keyed || scan.index.is_some() => {
            format!("Index Scan using {} on {}", index.name, scan.table.name)
        }
        _ => format!("Seq Scan on {}", scan.table.name),
    }
}
