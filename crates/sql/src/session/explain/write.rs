//! The four forms of EXPLAIN's answer.
//!
//! ```text
//! text   Sort  (cost=4.12..4.50 rows=40 width=8)        json   [{ "Plan": { "Node Type": "Sort", …
//!          ->  Seq Scan on t  (cost=…                   yaml   - Plan:
//!                                                       xml    <explain xmlns=…><Query><Plan>…
//! ```
//! The text form is a row for each line, the others are one row. All but the text write one tree of
//! fields ([`fields_of`]), each in its own notation, in PostgreSQL's layout.

use std::fmt::Write;

use std::time::Duration;

use super::details::{Detail, FILTER};
use super::node::{milliseconds, Node, Relation, Value, REMOVED_BY_CONFLICT};
use super::{used, Form, Options};
use execution::exec::{Called, Calls, Figures, Space, Usage};

/// What is said after a plan.
pub(super) struct After {
    /// Settings, and their values.
    pub settings: Vec<(&'static str, String)>,
    /// The id of the statement, if that is shown.
    pub id: Option<i64>,
    /// How long planning took.
    pub planned_in: Duration,
    /// What it used, if that was counted.
    pub planning: Option<Usage>,
    /// What was called, if it ran.
    pub triggers: Option<Vec<Calls>>,
    /// How long it ran, if it did.
    pub ran_in: Option<Duration>,
}

/// The rows of an answer: a plan, and what is said after it.
pub(super) fn write(plan: &Node, after: &After, options: &Options) -> Vec<String> {
    if options.form == Form::Text {
        let mut lines = Vec::new();
        write_text(plan, None, options, &mut lines);
        write_after(after, options, &mut lines);
        return lines;
    }
    let plan = fields_of(plan, options, None);
    let mut query = vec![("Plan", Tree::Group(plan))];
    query.extend(fields_after(after, options));
    let mut out = String::new();
    match options.form {
        Form::Text => {}
        Form::Json => {
            out.push_str("[\n  {\n");
            write_json(&query, 2, &mut out);
            out.push_str("\n  }\n]");
        }
        Form::Yaml => {
            write_yaml(&query, 0, true, &mut out);
            out.truncate(out.trim_end_matches('\n').len());
        }
        Form::Xml => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n");
            write_xml(&query, 2, &mut out);
            out.push_str("  </Query>\n</explain>");
        }
    }
    vec![out]
}

fn write_after(after: &After, options: &Options, lines: &mut Vec<String>) {
    if !after.settings.is_empty() {
        let settings = after.settings.iter();
        let settings: Vec<_> = settings
            .map(|(name, value)| format!("{name} = '{value}'"))
            .collect();
        lines.push(format!("Settings: {}", settings.join(", ")));
    }
    if let Some(id) = after.id {
        lines.push(format!("Query Identifier: {id}"));
    }
    if let Some(buffers) = after.planning.as_ref().and_then(used::buffers_line) {
        lines.push("Planning:".to_owned());
        lines.push(format!("  {buffers}"));
    }
    let time = |time: Duration| plain(&milliseconds(time));
    if options.summary {
        lines.push(format!("Planning Time: {} ms", time(after.planned_in)));
    }
    let triggers = after.triggers.as_deref().unwrap_or_default();
    let tables = triggers.windows(2);
    let several = tables
        .into_iter()
        .any(|two| two[0].table.0 != two[1].table.0);
    for calls in triggers {
        let mut line = "Trigger".to_owned();
        // Writing into a String cannot fail.
        let _ = match &calls.of {
            Called::ForeignKey(name) => write!(line, " for constraint {name}"),
            Called::Trigger(name, true) if options.verbose => {
                write!(line, " {name} for constraint {name}")
            }
            Called::Trigger(name, true) => write!(line, " for constraint {name}"),
            Called::Trigger(name, false) => write!(line, " {name}"),
        };
        if several {
            let _ = write!(line, " on {}", calls.table.1);
        }
        line.push(':');
        if options.timing {
            let _ = write!(line, " time={}", time(calls.time));
        }
        let _ = write!(line, " calls={}", calls.calls);
        lines.push(line);
    }
    if let Some(ran) = after.ran_in.filter(|_| options.summary) {
        lines.push(format!("Execution Time: {} ms", time(ran)));
    }
}

fn fields_after(after: &After, options: &Options) -> Vec<(&'static str, Tree)> {
    let mut fields = Vec::new();
    if options.settings {
        let settings = after.settings.iter();
        let settings = settings.map(|(name, value)| (*name, Tree::Leaf(Value::text(value))));
        fields.push(("Settings", Tree::Group(settings.collect())));
    }
    if let Some(id) = after.id {
        fields.push(("Query Identifier", Tree::Leaf(Value::Id(id))));
    }
    if let Some(usage) = &after.planning {
        fields.push(("Planning", Tree::Group(used::buffers_fields(usage))));
    }
    let time = |time: Duration| Tree::Leaf(milliseconds(time));
    if options.summary {
        fields.push(("Planning Time", time(after.planned_in)));
    }
    if let Some(triggers) = &after.triggers {
        let triggers = triggers.iter().map(|calls| {
            let mut fields = Vec::new();
            let name = |name: &str| Tree::Leaf(Value::text(name));
            match &calls.of {
                Called::ForeignKey(constraint) => {
                    fields.push(("Constraint Name", name(constraint)));
                }
                Called::Trigger(trigger, is_constraint) => {
                    fields.push(("Trigger Name", name(trigger)));
                    fields.extend(is_constraint.then(|| ("Constraint Name", name(trigger))));
                }
            }
            fields.push(("Relation", name(&calls.table.1)));
            fields.extend(options.timing.then(|| ("Time", time(calls.time))));
            let number = Value::Number(calls.calls as f64, 0);
            fields.push(("Calls", Tree::Leaf(number)));
            fields
        });
        fields.push(("Triggers", Tree::List("Trigger", triggers.collect())));
    }
    if let Some(ran) = after.ran_in.filter(|_| options.summary) {
        fields.push(("Execution Time", time(ran)));
    }
    fields
}

/// What a sort or a grouping kept of rows, in PostgreSQL's words.
enum Kept {
    Sort(&'static str, u64, &'static str),
    Hash(u64, u64, u64),
}

impl Kept {
    /// Of a node that ran and notes it.
    fn of(node: &Node) -> Option<Kept> {
        let actual = node.actual.as_ref().filter(|actual| actual.loops > 0)?;
        let Space {
            batches,
            memory,
            disk,
        } = actual.space;
        let kilobytes = |bytes: u64| bytes.div_ceil(1_024);
        match node.title.as_str() {
            _ if batches == 0 => None,
            "Sort" if disk > 0 => Some(Kept::Sort("external merge", kilobytes(disk), "Disk")),
            "Sort" => Some(Kept::Sort("quicksort", kilobytes(memory), "Memory")),
            "HashAggregate" => Some(Kept::Hash(batches, kilobytes(memory), kilobytes(disk))),
            _ => None,
        }
    }

    fn line(&self) -> String {
        match self {
            Kept::Sort(method, size, kind) => format!("Sort Method: {method}  {kind}: {size}kB"),
            Kept::Hash(batches, memory, disk) => {
                let disk = match disk {
                    0 => String::new(),
                    disk => format!("  Disk Usage: {disk}kB"),
                };
                format!("Batches: {batches}  Memory Usage: {memory}kB{disk}")
            }
        }
    }

    fn fields(&self) -> Vec<(&'static str, Tree)> {
        let number = |number: u64| Tree::Leaf(Value::Number(number as f64, 0));
        match self {
            Kept::Sort(method, size, kind) => vec![
                ("Sort Method", Tree::Leaf(Value::text(*method))),
                ("Sort Space Used", number(*size)),
                ("Sort Space Type", Tree::Leaf(Value::text(*kind))),
            ],
            Kept::Hash(batches, memory, disk) => vec![
                ("HashAgg Batches", number(*batches)),
                ("Peak Memory Usage", number(*memory)),
                ("Disk Usage", number(*disk)),
            ],
        }
    }
}

/// Writes a node: after an arrow that is indented so far, or by itself.
fn write_text(node: &Node, arrow: Option<usize>, options: &Options, lines: &mut Vec<String>) {
    let mut line = match arrow {
        None => node.title.clone(),
        Some(indent) => format!("{}->  {}", " ".repeat(indent), node.title),
    };
    if options.costs {
        let (total, rows) = (node.expected.cost, node.expected.rows);
        let (startup, width) = (node.startup, node.width);
        // Writing into a String cannot fail.
        let _ = write!(
            line,
            "  (cost={startup:.2}..{total:.2} rows={rows:.0} width={width})"
        );
    }
    if let Some(actual) = &node.actual {
        let (first, all, rows) = per_loop(actual);
        let (first, all, rows) = (plain(&first), plain(&all), plain(&rows));
        let loops = actual.loops;
        let _ = match (loops, options.timing) {
            (0, _) => write!(line, " (never executed)"),
            (_, true) => write!(
                line,
                " (actual time={first}..{all} rows={rows} loops={loops})"
            ),
            (_, false) => write!(line, " (actual rows={rows} loops={loops})"),
        };
    }
    lines.push(line);
    let indent = arrow.map_or(2, |arrow| arrow + 6);
    let own = " ".repeat(indent);
    let is_filter = |name: &str| name.contains(FILTER);
    let line = |name: &str, removed: Value| format!("{own}{name}: {}", plain(&removed));
    let mut by_filter = removed_by_filter(node).map(|removed| line(REMOVED, removed));
    let kept = Kept::of(node);
    for (name, detail) in &node.details {
        let text = match detail {
            Detail::Text(text) => text.clone(),
            Detail::List(texts) => texts.join(", "),
            Detail::Number(0) if *name == REMOVED_BY_CONFLICT => continue,
            Detail::Number(number) => number.to_string(),
            Detail::Sample(sample) => {
                let seed = sample.seed.as_ref();
                let seed = seed.map(|seed| format!(" REPEATABLE ({seed})"));
                let seed = seed.unwrap_or_default();
                format!("{} ({}){seed}", sample.method, sample.percent)
            }
        };
        lines.push(format!("{own}{name}: {text}"));
        lines.extend(by_filter.take_if(|_| kept.is_none() && is_filter(name)));
    }
    lines.extend(kept.map(|kept| format!("{own}{}", kept.line())));
    lines.extend(by_filter);
    lines.extend(removed_by_join(node).map(|removed| line(REMOVED_BY_JOIN, removed)));
    if let Some(actual) = &node.actual {
        let buffers = options.buffers.then(|| used::buffers_line(&actual.usage));
        let wal = options.wal.then(|| used::wal_line(&actual.usage));
        let both = buffers.flatten().into_iter().chain(wal.flatten());
        lines.extend(both.map(|line| format!("{own}{line}")));
    }
    let subplans = |wanted: Relation, lines: &mut Vec<String>| {
        let plans = node.subplans.iter();
        for (_, title, plan) in plans.filter(|(relation, ..)| *relation == wanted) {
            lines.push(format!("{own}{title}"));
            write_text(plan, Some(indent + 2), options, lines);
        }
    };
    subplans(Relation::Init, lines);
    for input in &node.plans {
        write_text(input, Some(indent), options, lines);
    }
    subplans(Relation::Sub, lines);
}

/// The time until the first row and the last, and the rows, of one run on the average.
fn per_loop(actual: &Figures) -> (Value, Value, Value) {
    let loops = u32::try_from(actual.loops.max(1)).unwrap_or(u32::MAX);
    let rows = actual.rows as f64 / f64::from(loops);
    (
        milliseconds(actual.first / loops),
        milliseconds(actual.all / loops),
        Value::Number(rows, 0),
    )
}

const REMOVED: &str = "Rows Removed by Filter";

const REMOVED_BY_JOIN: &str = "Rows Removed by Join Filter";

/// The rows that a node has left out by a condition of its own, in one run on the average.
fn removed_by_filter(node: &Node) -> Option<Value> {
    per_run(node, |actual| actual.removed.by_condition)
}

/// Those that it has left out as a join above finds no pair for them. PostgreSQL's scans know of no such
/// field, so that is said in the text form alone.
fn removed_by_join(node: &Node) -> Option<Value> {
    per_run(node, |actual| actual.removed.by_join)
}

/// A number of rows of all runs as that of one on the average; none if there are none.
fn per_run(node: &Node, rows: impl Fn(&Figures) -> u64) -> Option<Value> {
    let actual = node.actual.as_ref().filter(|actual| rows(actual) > 0)?;
    Some(Value::Number(rows(actual) as f64 / actual.loops as f64, 0))
}

/// What the other forms show.
pub(super) enum Tree {
    Leaf(Value),
    Group(Vec<(&'static str, Tree)>),
    Texts(Vec<String>),
    List(&'static str, Vec<Vec<(&'static str, Tree)>>),
}

/// The fields that stand before the one that says whose input a node is.
const FIRST: [&str; 4] = ["Node Type", "Strategy", "Partial Mode", "Operation"];

fn fields_of(
    node: &Node,
    options: &Options,
    parent: Option<(&'static str, Option<&str>)>,
) -> Vec<(&'static str, Tree)> {
    let mut fields = Vec::new();
    let leaf = |(name, value): &(&'static str, Value)| (*name, Tree::Leaf(value.clone()));
    let is_first = |(name, _): &&(&'static str, Value)| FIRST.contains(name);
    let (first, own): (Vec<_>, Vec<_>) = node.fields.iter().partition(is_first);
    fields.extend(first.into_iter().map(leaf));
    if let Some((relation, name)) = parent {
        let relation = Tree::Leaf(Value::text(relation));
        fields.push(("Parent Relationship", relation));
        fields.extend(name.map(|name| ("Subplan Name", Tree::Leaf(Value::text(name)))));
    }
    let never = || Tree::Leaf(Value::Truth(false));
    fields.push(("Parallel Aware", never()));
    fields.push(("Async Capable", never()));
    fields.extend(own.into_iter().map(leaf));
    if options.costs {
        let number = |value, decimals| Tree::Leaf(Value::Number(value, decimals));
        fields.push(("Startup Cost", number(node.startup, 2)));
        fields.push(("Total Cost", number(node.expected.cost, 2)));
        fields.push(("Plan Rows", number(node.expected.rows, 0)));
        fields.push(("Plan Width", number(f64::from(node.width), 0)));
    }
    if let Some(actual) = &node.actual {
        let (first, all, rows) = per_loop(actual);
        if options.timing {
            fields.push(("Actual Startup Time", Tree::Leaf(first)));
            fields.push(("Actual Total Time", Tree::Leaf(all)));
        }
        let loops = Value::Number(actual.loops as f64, 0);
        fields.push(("Actual Rows", Tree::Leaf(rows)));
        fields.push(("Actual Loops", Tree::Leaf(loops)));
    }
    let is_filtered = node.details.iter().any(|(name, _)| *name == FILTER);
    let none = (is_filtered && node.actual.is_some()).then_some(Value::Number(0.0, 0));
    let by_filter = removed_by_filter(node).or(none);
    let mut by_filter = by_filter.map(|removed| (REMOVED, Tree::Leaf(removed)));
    let kept = Kept::of(node);
    for (name, detail) in &node.details {
        let tree = match detail {
            Detail::Text(text) => Tree::Leaf(Value::text(text)),
            Detail::List(texts) => Tree::Texts(texts.clone()),
            Detail::Number(number) => Tree::Leaf(Value::Number(*number as f64, 0)),
            Detail::Sample(sample) => {
                let method = Tree::Leaf(Value::text(sample.method));
                fields.push(("Sampling Method", method));
                let percent = vec![sample.percent.clone()];
                fields.push(("Sampling Parameters", Tree::Texts(percent)));
                let seed = sample.seed.as_ref().map(Value::text);
                fields.extend(seed.map(|seed| ("Repeatable Seed", Tree::Leaf(seed))));
                continue;
            }
        };
        fields.push((*name, tree));
        fields.extend(by_filter.take_if(|_| kept.is_none() && name.contains(FILTER)));
    }
    fields.extend(kept.iter().flat_map(Kept::fields));
    fields.extend(by_filter);
    let usage = node.actual.map(|actual| actual.usage).unwrap_or_default();
    if options.buffers {
        fields.extend(used::buffers_fields(&usage));
    }
    if options.wal {
        fields.extend(used::wal_fields(&usage));
    }
    let is_append = node.title == "Append";
    if is_append {
        let none = Value::Number(0.0, 0);
        fields.push(("Subplans Removed", Tree::Leaf(none)));
    }
    let relation = |place| match place {
        _ if is_append => "Member",
        0 => "Outer",
        _ => "Inner",
    };
    let plans = node.plans.iter().enumerate();
    let plans = plans.map(|(place, plan)| fields_of(plan, options, Some((relation(place), None))));
    let subplans = |wanted: Relation, parent: &'static str| {
        let plans = node.subplans.iter();
        let plans = plans.filter(move |(relation, ..)| *relation == wanted);
        plans.map(move |(_, title, plan)| fields_of(plan, options, Some((parent, Some(title)))))
    };
    let init = subplans(Relation::Init, "InitPlan");
    let all: Vec<_> = init
        .chain(plans)
        .chain(subplans(Relation::Sub, "SubPlan"))
        .collect();
    if !all.is_empty() {
        fields.push(("Plans", Tree::List("Plan", all)));
    }
    fields
}

fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Number(number, decimals) => format!("{number:.decimals$}"),
        Value::Truth(truth) => truth.to_string(),
        Value::Id(id) => id.to_string(),
    }
}

/// A value in JSON, which is what YAML takes as well.
fn quoted(value: &Value) -> String {
    let Value::Text(text) = value else {
        return plain(value);
    };
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            character if character < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out.push('"');
    out
}

fn write_json(fields: &[(&'static str, Tree)], depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for (place, (name, tree)) in fields.iter().enumerate() {
        if place > 0 {
            out.push_str(",\n");
        }
        let _ = write!(out, "{indent}\"{name}\": ");
        match tree {
            Tree::Leaf(value) => out.push_str(&quoted(value)),
            Tree::Group(fields) => {
                out.push_str("{\n");
                write_json(fields, depth + 1, out);
                let line = if fields.is_empty() { "" } else { "\n" };
                let _ = write!(out, "{line}{indent}}}");
            }
            Tree::Texts(texts) => {
                let texts: Vec<_> = texts
                    .iter()
                    .map(|text| quoted(&Value::text(text)))
                    .collect();
                let _ = write!(out, "[{}]", texts.join(", "));
            }
            Tree::List(_, members) => {
                out.push('[');
                for (place, member) in members.iter().enumerate() {
                    let comma = if place > 0 { "," } else { "" };
                    let _ = write!(out, "{comma}\n{indent}  {{\n");
                    write_json(member, depth + 2, out);
                    let _ = write!(out, "\n{indent}  }}");
                }
                let _ = write!(out, "\n{indent}]");
            }
        }
    }
}

fn write_yaml(fields: &[(&'static str, Tree)], depth: usize, is_member: bool, out: &mut String) {
    let indent = "  ".repeat(depth);
    for (place, (name, tree)) in fields.iter().enumerate() {
        let mark = match (is_member, place) {
            (true, 0) => "- ",
            (true, _) => "  ",
            (false, _) => "",
        };
        let _ = write!(out, "{indent}{mark}{name}: ");
        let deeper = depth + 1 + usize::from(is_member);
        match tree {
            Tree::Leaf(value) => {
                out.push_str(&quoted(value));
                out.push('\n');
            }
            Tree::Group(fields) => {
                out.push('\n');
                write_yaml(fields, deeper, false, out);
            }
            Tree::Texts(texts) => {
                out.push('\n');
                let indent = "  ".repeat(deeper);
                for text in texts {
                    let _ = writeln!(out, "{indent}- {}", quoted(&Value::text(text)));
                }
            }
            Tree::List(_, members) => {
                out.push('\n');
                for member in members {
                    write_yaml(member, deeper, true, out);
                }
            }
        }
    }
}

fn write_xml(fields: &[(&'static str, Tree)], depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for (name, tree) in fields {
        let tag = name.replace(' ', "-");
        match tree {
            Tree::Leaf(value) => {
                let value = escaped(&plain(value));
                let _ = writeln!(out, "{indent}<{tag}>{value}</{tag}>");
            }
            Tree::Group(fields) => {
                let _ = writeln!(out, "{indent}<{tag}>");
                write_xml(fields, depth + 1, out);
                let _ = writeln!(out, "{indent}</{tag}>");
            }
            Tree::Texts(texts) => {
                let _ = writeln!(out, "{indent}<{tag}>");
                for text in texts {
                    let _ = writeln!(out, "{indent}  <Item>{}</Item>", escaped(text));
                }
                let _ = writeln!(out, "{indent}</{tag}>");
            }
            Tree::List(member, members) => {
                let _ = writeln!(out, "{indent}<{tag}>");
                for fields in members {
                    let _ = writeln!(out, "{indent}  <{member}>");
                    write_xml(fields, depth + 2, out);
                    let _ = writeln!(out, "{indent}  </{member}>");
                }
                let _ = writeln!(out, "{indent}</{tag}>");
            }
        }
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#x0d;"),
            character => out.push(character),
        }
    }
    out
}
