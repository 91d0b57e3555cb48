//! The nodes of a plan as EXPLAIN names them, with what is expected of each.
//!
//! ```text
//! Plan::Join ── Node { "Hash Join", Join Type: Inner, rows 40, plans: [Outer, Inner] }
//! ```
//! What changes neither the number of rows nor their order ([`Plan::Project`] and its kin) has no node, as
//! in PostgreSQL.
//!
//! # What it leaves out
//! What a partitioned table's scans are called beside their tables; what partitions that are written are called beside.

use std::time::Duration;

use super::details::{self, quoted_alias, Detail, Details, OUTPUT};
use super::names::{Columns, Writer};
use catalog::local::is_local;
use catalog::{Catalog, Index, Table, PG_CATALOG};
use execution::exec::{Figures, Measures};
use functions::strings::quote_identifier;
use planner::bind::sample::is_of_sample;
use planner::paths::{self, Statistics};
use planner::plan::{Expected, Insert, Join, JoinKind, Plan, Program, Scan, SetOperation};
use types::TypeId;

/// The nodes that list no columns of their own, as in PostgreSQL.
const LISTS_NOTHING: [&str; 3] = ["Append", "Recursive Union", "ModifyTable"];

/// The rows that WHERE of ON CONFLICT has left out.
pub(super) const REMOVED_BY_CONFLICT: &str = "Rows Removed by Conflict Filter";

/// The width of a value of which nothing is known.
const WIDTH_UNKNOWN: i32 = 32;

/// A node.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// As the text form has it.
    pub title: String,
    /// As the other forms have it.
    pub fields: Vec<(&'static str, Value)>,
    /// What is expected until the first row, and of all.
    pub startup: f64,
    pub expected: Expected,
    /// Bytes of a row.
    pub width: i32,
    /// What it has done, if that was measured.
    pub actual: Option<Figures>,
    /// What it says of itself.
    pub details: Details,
    /// Its inputs.
    pub plans: Vec<Node>,
    /// The subqueries of its expressions: whose plans they are, and what they are called.
    pub subplans: Vec<(Relation, String, Node)>,
}

impl Node {
    /// Takes the list of columns from what is computed of its rows, if it has such a list.
    fn list(&mut self, details: Details) {
        let is_list = |detail: &&mut (&'static str, Detail)| detail.0 == OUTPUT;
        let Some(computed) = details.into_iter().find(|detail| detail.0 == OUTPUT) else {
            return;
        };
        let lists = |field: &(&str, Value)| match &field.1 {
            Value::Text(name) => !LISTS_NOTHING.contains(&name.as_str()),
            _ => true,
        };
        match self.details.iter_mut().find(is_list) {
            Some(known) => *known = computed,
            None if self.fields.iter().take(1).all(lists) => self.details.insert(0, computed),
            None => {}
        }
    }
}

/// What a subquery's plan is to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// It is computed once.
    Init,
    /// It is computed for rows.
    Sub,
}

/// What is known of a plan beside it.
pub(super) struct View<'a> {
    pub(super) statistics: &'a dyn Statistics,
    /// What its nodes have done, if that was measured.
    pub(super) measures: Option<&'a Measures>,
    pub(super) writer: Writer<'a>,
    /// Knows the schemas.
    pub(super) catalog: &'a Catalog,
}

impl View<'_> {
    /// The name of a schema, if it is shown.
    fn schema(&self, oid: u32) -> Option<&str> {
        let schema = self
            .catalog
            .schema_by_oid(oid)
            .filter(|_| self.writer.verbose)?;
        Some(match is_local(schema.oid) {
            true => "pg_temp",
            false => &schema.name,
        })
    }

    /// What is in a schema, as the text form has it.
    fn within(&self, schema: u32, name: String) -> String {
        match self.schema(schema) {
            Some(schema) => format!("{}.{name}", quote_identifier(schema)),
            None => name,
        }
    }

    /// The field that says so.
    fn schema_field(&self, schema: u32) -> Option<(&'static str, Value)> {
        self.schema(schema)
            .map(|schema| ("Schema", Value::text(schema)))
    }
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// With so many decimals.
    Number(f64, usize),
    Truth(bool),
    /// A number that is a name.
    Id(i64),
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }
}

/// A time in milliseconds, as all of PostgreSQL's answer has it.
pub(super) fn milliseconds(time: Duration) -> Value {
    Value::Number(time.as_secs_f64() * 1_000.0, 3)
}

/// The tree of a plan's nodes, with what they have done if that was measured; the rows around it are called
/// so.
pub(super) fn of_plan(plan: &Plan, view: &View<'_>, outer: &[Columns]) -> Node {
    let View {
        statistics,
        measures,
        writer,
        ..
    } = view;
    let actual = measures.map(|measures| measures.of(plan));
    let mut details = details::of(plan, writer, outer);
    if let (Plan::Insert(insert), Some(measures)) = (plan, measures) {
        details.extend(conflicts(insert, measures));
    }
    let subplans = subplans(view);
    let (title, fields, inputs) = match named(plan, view) {
        Named::Node(title, fields, inputs) => (title, fields, inputs),
        Named::Input(input) => {
            let mut node = of_plan(input, view, outer);
            node.width = width(plan, *statistics);
            // What it computes takes time, leaves out nothing, and keeps nothing.
            let Figures { removed, space, .. } = node.actual.unwrap_or_default();
            node.actual = actual.map(|figures| Figures {
                removed,
                space,
                ..figures
            });
            node.list(details);
            node.subplans.splice(0..0, subplans);
            return node;
        }
        Named::Filtered(input) => {
            let mut node = of_plan(input, view, outer);
            let Figures { space, .. } = node.actual.unwrap_or_default();
            node.actual = actual.map(|figures| Figures { space, ..figures });
            node.expected = paths::expected(plan, *statistics);
            node.details.append(&mut details);
            node.subplans.extend(subplans);
            return node;
        }
    };
    let expected = paths::expected(plan, *statistics);
    let mut plans: Vec<_> = match plan {
        Plan::Join(join) => of_sides(join, view, outer),
        _ => {
            if let Plan::Insert(insert) = plan {
                // Constants are of the types of the columns that they are for.
                let types = insert.target.table.columns.iter();
                let types = types.map(|column| (column.type_id, column.typmod));
                writer.will_be(&insert.input, types.collect());
            }
            let inputs = inputs.iter();
            inputs.map(|input| of_plan(input, view, outer)).collect()
        }
    };
    let total = |node: Option<&Node>| node.map_or(0.0, |node| node.expected.cost);
    let startup = match plan {
        // Nothing comes before all of the input is there.
        Plan::Sort(..) | Plan::Aggregate { .. } | Plan::Distinct(..) => total(plans.first()),
        Plan::SetOperation(SetOperation::Union, true, ..) => 0.0,
        Plan::SetOperation(..) => plans.iter().map(|node| node.expected.cost).sum(),
        Plan::Join(join) if !join.hash.is_empty() && join.lookup.is_none() => {
            plans.first().map_or(0.0, |node| node.startup) + total(plans.get(1))
        }
        _ => plans.first().map_or(0.0, |node| node.startup),
    };
    if matches!(plan, Plan::Once(input, _) if matches!(**input, Plan::Values(_))) {
        // Its only row is computed by the node itself.
        plans.clear();
    }
    Node {
        title,
        fields,
        startup: startup.min(expected.cost),
        expected,
        width: match plan {
            // They give rows only to RETURNING.
            Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_) | Plan::Merge(_) => 0,
            Plan::Rewritten(_) => 0,
            _ => width(plan, *statistics),
        },
        actual,
        details,
        plans,
        subplans,
    }
}

/// What ON CONFLICT was about. A partitioned table's partitions do not say.
fn conflicts(insert: &Insert, measures: &Measures) -> Details {
    let is_told = insert.conflict.is_some() && insert.target.routes.is_none();
    if !is_told {
        return Details::new();
    }
    let met = measures.conflicts(insert);
    let inserted = measures.of(&insert.input).rows.saturating_sub(met.rows);
    let mut details = Details::new();
    if insert
        .conflict
        .as_ref()
        .is_some_and(|conflict| conflict.condition.is_some())
    {
        details.push((REMOVED_BY_CONFLICT, Detail::Number(met.removed)));
    }
    details.push(("Tuples Inserted", Detail::Number(inserted)));
    details.push(("Conflicting Tuples", Detail::Number(met.rows)));
    details
}

/// The inputs of a join, of which the right one may look at the left one's rows.
fn of_sides(join: &Join, view: &View<'_>, outer: &[Columns]) -> Vec<Node> {
    let left = view.writer.columns(&join.left, outer);
    let around = view.writer.around(join.lateral, &left, outer);
    let mut plans = vec![of_plan(&join.left, view, outer)];
    match &join.lookup {
        None => plans.push(of_plan(&join.right, view, &around)),
        Some(lookup) => {
            let around = view.writer.around(Some(0), &left, outer);
            plans.push(of_plan(lookup, view, &around));
            // There were more left rows than were looked up one by one.
            let measures = view.measures;
            if measures.is_some_and(|measures| measures.of(&join.right).loops > 0) {
                plans.push(of_plan(&join.right, view, outer));
            }
        }
    }
    plans
}

/// The plans of the subqueries that were met last.
fn subplans(view: &View<'_>) -> Vec<(Relation, String, Node)> {
    let mut plans = Vec::new();
    for found in view.writer.take_found() {
        let relation = match found.is_init {
            true => Relation::Init,
            false => Relation::Sub,
        };
        let node = of_plan(&found.query.plan, view, &found.outer);
        plans.push((relation, found.title, node));
        if let Some(keyed) = &found.query.keyed {
            let node = of_plan(&keyed.plan, view, &found.outer);
            plans.push((relation, found.keyed, node));
        }
    }
    plans
}

/// What a plan is called.
enum Named<'p> {
    Node(String, Vec<(&'static str, Value)>, Vec<&'p Plan>),
    /// As its input.
    Input(&'p Plan),
    /// As its input, which has conditions.
    Filtered(&'p Plan),
}

fn node<'p>(name: &str, more: Vec<(&'static str, Value)>, inputs: Vec<&'p Plan>) -> Named<'p> {
    titled(name.to_owned(), name, more, inputs)
}

fn titled<'p>(
    title: String,
    name: &str,
    more: Vec<(&'static str, Value)>,
    inputs: Vec<&'p Plan>,
) -> Named<'p> {
    let mut fields = vec![("Node Type", Value::text(name))];
    fields.extend(more);
    Named::Node(title, fields, inputs)
}

fn named<'p>(plan: &'p Plan, view: &View<'_>) -> Named<'p> {
    let strategy = |name| ("Strategy", Value::text(name));
    let simple = || ("Partial Mode", Value::text("Simple"));
    match plan {
        Plan::Values(rows) if rows.len() == 1 => node("Result", vec![], vec![]),
        Plan::Values(_) => {
            let alias = vec![("Alias", Value::text("*VALUES*"))];
            titled(
                "Values Scan on \"*VALUES*\"".to_owned(),
                "Values Scan",
                alias,
                vec![],
            )
        }
        Plan::Scan(scan) => of_scan(scan, view),
        Plan::System(table, ..) => of_table("Seq Scan", table, view),
        Plan::Function { function, .. } => of_function(function.0.name, PG_CATALOG, view),
        Plan::Routine { call, .. } => of_function(&call.routine.name, call.routine.schema, view),
        Plan::Beside(parts, _) => match parts.first() {
            Some((first, _)) => match &**first {
                Plan::Shared(_, input) => named(input, view),
                first => named(first, view),
            },
            None => of_function("", PG_CATALOG, view),
        },
        Plan::Project(input, _) | Plan::Trim(input, _) | Plan::Anew(_, input) => {
            Named::Input(input)
        }
        Plan::With(with) => Named::Input(&with.body),
        Plan::Filter(input, _) if details::is_one_row(input) => node("Result", vec![], vec![]),
        Plan::Once(input, _) => node("Result", vec![], vec![&**input]),
        Plan::Filter(input, _) if takes_filter(input) => Named::Filtered(input),
        Plan::Filter(input, _) => node("Filter", vec![], vec![&**input]),
        Plan::ProjectSet(input, _) => node("ProjectSet", vec![], vec![&**input]),
        Plan::Join(join) => {
            let looped = join.hash.is_empty() || join.lookup.is_some();
            let right = join.lookup.as_ref().unwrap_or(&join.right);
            of_join(join.kind, looped, vec![&*join.left, &**right])
        }
        Plan::Aggregate { input, sets, .. } => {
            let plain = sets.iter().all(|set| set.columns.is_empty());
            let (title, how) = match plan.sorted_groups() {
                _ if plain => ("Aggregate", "Plain"),
                Some(_) => ("GroupAggregate", "Sorted"),
                None => ("HashAggregate", "Hashed"),
            };
            titled(
                title.to_owned(),
                "Aggregate",
                vec![strategy(how), simple()],
                vec![&**input],
            )
        }
        Plan::Window(window) => node("WindowAgg", vec![], vec![&*window.input]),
        Plan::Sort(input, _) => node("Sort", vec![], vec![&**input]),
        Plan::Distinct(input, _) => node("Unique", vec![], vec![&**input]),
        Plan::Limit(input, ..) => node("Limit", vec![], vec![&**input]),
        Plan::SetOperation(operation, all, parts, _) => {
            let inputs: Vec<_> = parts.iter().collect();
            let except = |command| vec![strategy("Hashed"), ("Command", Value::text(command))];
            match (operation, all) {
                (SetOperation::Union, true) => node("Append", vec![], inputs),
                (SetOperation::Union, false) => {
                    let how = vec![strategy("Hashed"), simple()];
                    titled("HashAggregate".to_owned(), "Aggregate", how, inputs)
                }
                (SetOperation::Intersect, _) => {
                    let title = "HashSetOp Intersect".to_owned();
                    titled(title, "SetOp", except("Intersect"), inputs)
                }
                (SetOperation::Except, _) => {
                    let title = "HashSetOp Except".to_owned();
                    titled(title, "SetOp", except("Except"), inputs)
                }
            }
        }
        Plan::Shared(_, input) => node("CTE Scan", vec![], vec![&**input]),
        Plan::Recursive(recursive) => {
            let inputs = vec![&*recursive.first, &*recursive.step];
            node("Recursive Union", vec![], inputs)
        }
        Plan::Working(_) => node("WorkTable Scan", vec![], vec![]),
        Plan::Transition(_) => node("Named Tuplestore Scan", vec![], vec![]),
        Plan::Lock(input, _) => node("LockRows", vec![], vec![&**input]),
        Plan::Insert(insert) => of_change("Insert", &insert.target.table, &insert.input, view),
        Plan::Update(update) => of_change("Update", &update.target.table, &update.input, view),
        Plan::Delete(delete) => of_change("Delete", &delete.target.table, &delete.input, view),
        Plan::Merge(merge) => of_change("Merge", &merge.table, &merge.input, view),
        Plan::Rewritten(_) => node("Result", vec![], vec![]),
    }
}

/// Whether conditions on a plan's rows are shown as those of its node.
fn takes_filter(plan: &Plan) -> bool {
    match plan {
        Plan::Project(input, _) | Plan::Trim(input, _) => takes_filter(input),
        Plan::Scan(scan) => scan.filter.is_none(),
        Plan::System(..)
        | Plan::Function { .. }
        | Plan::Routine { .. }
        | Plan::Values(_)
        | Plan::Join(_)
        | Plan::Aggregate { .. }
        | Plan::Shared(..)
        | Plan::Working(_)
        | Plan::Transition(_) => true,
        _ => false,
    }
}

fn of_table<'p>(name: &str, table: &Table, view: &View<'_>) -> Named<'p> {
    let mut relation = vec![("Relation Name", Value::text(&table.name))];
    relation.extend(view.schema_field(table.schema));
    let shown = view.within(table.schema, quote_identifier(&table.name));
    titled(format!("{name} on {shown}"), name, relation, vec![])
}

fn of_function<'p>(function: &str, schema: u32, view: &View<'_>) -> Named<'p> {
    let mut called = vec![("Function Name", Value::text(function))];
    called.extend(view.schema_field(schema));
    let shown = view.within(schema, quote_identifier(function));
    titled(
        format!("Function Scan on {shown}"),
        "Function Scan",
        called,
        vec![],
    )
}

fn of_change<'p>(operation: &str, table: &Table, input: &'p Plan, view: &View<'_>) -> Named<'p> {
    let mut fields = vec![
        ("Operation", Value::text(operation)),
        ("Relation Name", Value::text(&table.name)),
    ];
    fields.extend(view.schema_field(table.schema));
    let alias = view.writer.alias.filter(|alias| *alias != table.name);
    fields.push(("Alias", Value::text(alias.unwrap_or(&table.name))));
    let shown = view.within(table.schema, quoted_alias(&table.name, alias));
    titled(
        format!("{operation} on {shown}"),
        "ModifyTable",
        fields,
        vec![input],
    )
}

fn of_scan<'p>(scan: &Scan, view: &View<'_>) -> Named<'p> {
    if let Some(access) = &scan.inverted {
        let index = &scan.table.indexes[access.index];
        return of_index(index, scan, "Forward", view);
    }
    let access = &scan.access;
    let keyed = !access.equal.is_empty() || access.low.is_some() || access.high.is_some();
    let directed = keyed || scan.index.is_some() || scan.backward;
    let index = scan.by_index().filter(|_| directed);
    let Some(index) = index else {
        let alias = scan.alias.as_deref();
        let title = quoted_alias(&scan.table.name, alias);
        let title = view.within(scan.table.schema, title);
        let fields = relation(scan, view);
        let name = match scan.current_of {
            _ if !scan.alternatives.is_empty() => "Bitmap Heap Scan",
            Some(_) => "Tid Scan",
            None if scan.filter.as_ref().is_some_and(is_of_sample) => "Sample Scan",
            None => "Seq Scan",
        };
        return titled(format!("{name} on {title}"), name, fields, vec![]);
    };
    let direction = if scan.backward { "Backward" } else { "Forward" };
    of_index(index, scan, direction, view)
}

fn of_index<'p>(index: &Index, scan: &Scan, direction: &str, view: &View<'_>) -> Named<'p> {
    let mut fields = vec![
        ("Scan Direction", Value::text(direction)),
        ("Index Name", Value::text(&index.name)),
    ];
    fields.extend(relation(scan, view));
    let index = quote_identifier(&index.name);
    let table = quoted_alias(&scan.table.name, scan.alias.as_deref());
    let table = view.within(scan.table.schema, table);
    let backward = if scan.backward { " Backward" } else { "" };
    let title = format!("Index Scan{backward} using {index} on {table}");
    titled(title, "Index Scan", fields, vec![])
}

/// The table of a scan, and what it is called.
fn relation(scan: &Scan, view: &View<'_>) -> Vec<(&'static str, Value)> {
    let alias = scan.alias.as_deref().unwrap_or(&scan.table.name);
    let mut fields = vec![("Relation Name", Value::text(&scan.table.name))];
    fields.extend(view.schema_field(scan.table.schema));
    fields.push(("Alias", Value::text(alias)));
    fields
}

fn of_join(kind: JoinKind, looped: bool, inputs: Vec<&Plan>) -> Named<'_> {
    let (kind, suffix) = match kind {
        JoinKind::Inner if looped => ("Inner", ""),
        JoinKind::Inner => ("Inner", " Join"),
        JoinKind::Left => ("Left", " Left Join"),
        JoinKind::Right => ("Right", " Right Join"),
        JoinKind::Full => ("Full", " Full Join"),
        JoinKind::Semi => ("Semi", " Semi Join"),
        JoinKind::Anti => ("Anti", " Anti Join"),
    };
    let (method, name) = match looped {
        true => ("Nested Loop", "Nested Loop"),
        false => ("Hash", "Hash Join"),
    };
    let fields = vec![("Join Type", Value::text(kind))];
    titled(format!("{method}{suffix}"), name, fields, inputs)
}

/// Bytes of a row of a plan.
fn width(plan: &Plan, statistics: &dyn Statistics) -> i32 {
    let of = |input: &Plan| width(input, statistics);
    match plan {
        Plan::Scan(scan) => {
            let needed = scan.needed.borrow();
            let is_kept = |place: &usize| match &scan.kept {
                Some(kept) => kept.contains(place),
                None => needed[*place],
            };
            let places = (0..needed.len()).filter(is_kept);
            let widths = places.map(|place| of_column(&scan.table, place, statistics));
            widths.sum()
        }
        Plan::System(table, ..) => {
            let columns = table.columns.iter();
            columns.map(|column| of_type(column.type_id)).sum()
        }
        Plan::Values(rows) => rows.first().map_or(0, |row| computed(row.len())),
        Plan::Function { result, .. } => of_type(*result),
        Plan::Beside(parts, _) => parts.iter().map(|part| of(&part.0)).sum(),
        Plan::Project(input, columns) => {
            let of_one = |column: &Program| of_program(column, input, statistics);
            columns.iter().map(of_one).sum()
        }
        Plan::Aggregate {
            input,
            groups,
            aggregates,
            ..
        } => {
            let groups = groups.iter();
            let groups: i32 = groups
                .map(|group| of_program(&group.0, input, statistics))
                .sum();
            groups + computed(aggregates.len())
        }
        Plan::Join(join) => match (&join.kept, join.kind) {
            (Some(kept), _) => {
                let origins = (0..kept.len()).map(|place| paths::origin_of(plan, place));
                let widths = origins.map(|origin| of_origin(origin, statistics));
                widths.fold(0, i32::saturating_add)
            }
            (None, JoinKind::Semi | JoinKind::Anti) => of(&join.left),
            (None, _) => of(&join.left).saturating_add(of(&join.right)),
        },
        Plan::Window(window) => of(&window.input),
        Plan::SetOperation(_, _, parts, _) => parts.first().map_or(0, of),
        Plan::Recursive(recursive) => of(&recursive.first),
        Plan::Filter(input, _)
        | Plan::Once(input, _)
        | Plan::Sort(input, _)
        | Plan::Distinct(input, _)
        | Plan::Limit(input, ..)
        | Plan::Trim(input, _)
        | Plan::Lock(input, _)
        | Plan::Anew(_, input)
        | Plan::Shared(_, input)
        | Plan::ProjectSet(input, _) => of(input),
        Plan::With(with) => of(&with.body),
        Plan::Insert(insert) => of(&insert.input),
        Plan::Update(update) => of(&update.input),
        Plan::Delete(delete) => of(&delete.input),
        Plan::Merge(merge) => of(&merge.input),
        Plan::Rewritten(_) => 0,
        Plan::Routine { .. } | Plan::Working(_) | Plan::Transition(_) => WIDTH_UNKNOWN,
    }
}

/// Of values that are computed most are numbers.
fn computed(values: usize) -> i32 {
    i32::try_from(values * 8).unwrap_or(i32::MAX)
}

fn of_program(program: &Program, input: &Plan, statistics: &dyn Statistics) -> i32 {
    let origin = program
        .as_column()
        .and_then(|place| paths::origin_of(input, place));
    of_origin(origin, statistics)
}

/// The width of a value that is this column of a table, or is computed.
fn of_origin(origin: Option<(&Scan, usize)>, statistics: &dyn Statistics) -> i32 {
    match origin {
        Some((scan, place)) => of_column(&scan.table, place, statistics),
        None => computed(1),
    }
}

fn of_column(table: &Table, place: usize, statistics: &dyn Statistics) -> i32 {
    let found = statistics.column(table, place).map(|found| found.width);
    match found.filter(|width| *width > 0) {
        Some(width) => width,
        None => table
            .columns
            .get(place)
            .map_or(0, |column| of_type(column.type_id)),
    }
}

fn of_type(ty: TypeId) -> i32 {
    match i32::from(ty.len()) {
        fixed if fixed > 0 => fixed,
        _ => WIDTH_UNKNOWN,
    }
}
