//! What a node says of itself beside its name: conditions, keys.
//!
//! | node | says |
//! |---|---|
//! | a scan | `Index Cond`, `Filter` |
//! | a join | `Hash Cond`, `Join Filter` |
//! | a grouping | `Group Key` |
//! | a sort | `Sort Key` |
//! | what is decided once | `One-Time Filter` |
//! | INSERT with ON CONFLICT | `Conflict Resolution`, `Conflict Arbiter Indexes`, `Conflict Filter` |
//! | with VERBOSE, all | `Output`; functions that give rows `Function Call` |
//!
//! A condition that cannot be written is left out.

use catalog::Index;
use functions::strings::quote_identifier;
use planner::deparse::{expression, Names, Style};
use planner::plan::{CurrentOf, Insert, Join, Plan, Program, Scan, SetOperation};

use super::names::{Column, Columns, Sample, Writer};
use super::output;

/// What is said: a text, or a list of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Detail {
    Text(String),
    List(Vec<String>),
    Number(u64),
    Sample(Sample),
}

pub(super) type Details = Vec<(&'static str, Detail)>;

/// The name under which conditions on a node's rows stand.
pub(super) const FILTER: &str = "Filter";

/// The name under which a sample stands.
pub(super) const SAMPLING: &str = "Sampling";

/// The name under which VERBOSE lists columns.
pub(super) const OUTPUT: &str = "Output";

/// Whether a plan lists its columns; one without a node does so in the place of its input.
fn is_listed(plan: &Plan) -> bool {
    match plan {
        Plan::Filter(input, _) => is_one_row(input),
        Plan::Project(input, programs) => {
            let drops = programs.iter().all(|program| program.as_column().is_some());
            !(drops && output::hands_on(input))
        }
        Plan::Trim(..) | Plan::Anew(..) | Plan::With(_) => false,
        _ => true,
    }
}

/// What a node says, whose subqueries are met thereby.
pub(super) fn of(plan: &Plan, writer: &Writer<'_>, outer: &[Columns]) -> Details {
    let columns = |input: &Plan| writer.columns(input, outer);
    let mut details = Details::new();
    if writer.verbose && is_listed(plan) {
        let columns = output::of(plan, writer, outer);
        details.extend(columns.map(|columns| (OUTPUT, Detail::List(columns))));
    }
    let mut say = |name, text: Option<String>| {
        details.extend(text.map(|text| (name, Detail::Text(text))));
    };
    match plan {
        Plan::Scan(scan) => {
            let row = writer.columns_of_table(scan);
            let row: Vec<_> = row.iter().map(Column::own).collect();
            let cursor = scan.current_of.as_ref();
            say(
                "TID Cond",
                cursor.map(|cursor| match cursor {
                    CurrentOf::Named(name) | CurrentOf::Variable(_, name) => {
                        format!("CURRENT OF {}", quote_identifier(name))
                    }
                }),
            );
            let found = match scan.alternatives.is_empty() {
                true => ("Index Cond", index_condition(scan, &row, writer, outer)),
                false => ("Recheck Cond", alternatives(scan, &row, writer, outer)),
            };
            say(found.0, found.1);
            let filter = scan.filter.as_ref();
            let sampled = filter.and_then(|filter| writer.sample(filter, &row, outer));
            match (sampled, filter) {
                (Some((sample, rest)), _) => {
                    details.push((SAMPLING, Detail::Sample(sample)));
                    details.extend(rest.map(|rest| (FILTER, Detail::Text(rest))));
                }
                (None, Some(filter)) => say(FILTER, writer.text(filter, &row, outer)),
                (None, None) => {}
            }
        }
        Plan::Filter(input, condition) if is_one_row(input) => {
            say(
                "One-Time Filter",
                writer.text(condition, &columns(input), outer),
            );
        }
        Plan::Filter(input, condition) => {
            let mut row = columns(input).to_vec();
            if has_of_itself(input) {
                row = row.iter().map(Column::own).collect();
            }
            say(FILTER, writer.text(condition, &row, outer));
        }
        Plan::Once(_, condition) => say("One-Time Filter", writer.text(condition, &[], outer)),
        Plan::Join(join) => {
            let (hash, rest) = of_join(join, writer, outer);
            say("Hash Cond", hash);
            say("Join Filter", rest);
        }
        Plan::Aggregate {
            input,
            groups,
            sets,
            ..
        } if sets.len() == 1 && !groups.is_empty() => {
            let row = columns(input);
            let key = |program: &Program| writer.text(program, &row, outer);
            let keys: Option<Vec<_>> = groups.iter().map(|group| key(&group.0)).collect();
            details.extend(keys.map(|keys| ("Group Key", Detail::List(keys))));
            // Aggregates may hold subqueries.
            columns(plan);
        }
        Plan::Aggregate { .. } | Plan::ProjectSet(..) => drop(columns(plan)),
        Plan::SetOperation(SetOperation::Union, false, ..) => {
            let row = columns(plan);
            let keys: Vec<_> = row.iter().map(|column| column.text.clone()).collect();
            if keys.iter().all(|key| !key.is_empty()) {
                details.push(("Group Key", Detail::List(keys)));
            }
        }
        Plan::Sort(input, keys) => {
            let keys = writer.sort_keys(keys, &columns(input), outer);
            details.extend(keys.map(|keys| ("Sort Key", Detail::List(keys))));
        }
        Plan::Project(input, programs) => writer.meet(programs.iter(), &columns(input), outer),
        Plan::Function { .. } | Plan::Routine { .. } if writer.verbose => {
            say("Function Call", writer.function_call(plan, outer));
        }
        Plan::Insert(insert) => {
            details.extend(of_conflict(insert, writer, outer));
        }
        Plan::Values(rows) => {
            let programs = rows.iter().flatten();
            writer.meet(programs, &[], outer);
        }
        _ => {}
    }
    details
}

/// ON CONFLICT.
fn of_conflict(insert: &Insert, writer: &Writer<'_>, outer: &[Columns]) -> Details {
    let Some(conflict) = &insert.conflict else {
        return Details::new();
    };
    let what = if conflict.set.is_some() {
        "UPDATE"
    } else {
        "NOTHING"
    };
    let mut details = vec![("Conflict Resolution", Detail::Text(what.to_owned()))];
    let table = &insert.target.table;
    let index = |place: &usize| Some(quote_identifier(&table.indexes.get(*place)?.name));
    let indexes = conflict.indexes.iter().flatten().map(index).collect();
    let indexes: Option<Vec<_>> = indexes;
    let indexes = indexes.filter(|indexes| !indexes.is_empty());
    details.extend(indexes.map(|indexes| ("Conflict Arbiter Indexes", Detail::List(indexes))));
    let mut both = writer.columns_of(table).to_vec();
    let excluded = writer.columns_called(table, "excluded");
    both.extend(excluded.iter().cloned());
    let filter = conflict.condition.as_ref();
    let filter = filter.and_then(|filter| writer.text(filter, &both, outer));
    details.extend(filter.map(|filter| ("Conflict Filter", Detail::Text(filter))));
    details
}

/// Whether a node is a row that is computed, which conditions are decided for once.
pub(super) fn is_one_row(plan: &Plan) -> bool {
    matches!(plan, Plan::Values(rows) if rows.len() <= 1)
}

/// Whether the columns of a node are its own: of a table, or what it aggregates.
fn has_of_itself(plan: &Plan) -> bool {
    matches!(
        plan,
        Plan::Scan(_)
            | Plan::System(..)
            | Plan::Function { .. }
            | Plan::Aggregate { .. }
            | Plan::Shared(..)
    )
}

/// The conditions by which a join finds pairs, and those that it tests of each.
fn of_join(
    join: &Join,
    writer: &Writer<'_>,
    outer: &[Columns],
) -> (Option<String>, Option<String>) {
    let mut left = writer.columns(&join.left, outer).to_vec();
    left.resize(join.left_width, Column::default());
    let around = writer.around(join.lateral, &left, outer);
    let right = writer.columns(&join.right, &around);
    let equal = |(a, b, _): &(Program, Program, _)| {
        let (a, b) = (
            writer.text(a, &left, outer)?,
            writer.text(b, &right, outer)?,
        );
        Some(format!("({a} = {b})"))
    };
    let hash: Option<Vec<_>> = join.hash.iter().map(equal).collect();
    let hash = match join.lookup.is_some() {
        true => None,
        false => hash.and_then(all_of),
    };
    let mut both = left.clone();
    both.extend(right.iter().cloned());
    let rest = join.rest.as_ref();
    (hash, rest.and_then(|rest| writer.text(rest, &both, outer)))
}

/// The conditions that all must hold, as one.
fn all_of(mut conditions: Vec<String>) -> Option<String> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(format!("({})", conditions.join(" AND "))),
    }
}

/// The rows that several indexes lead to.
fn alternatives(
    scan: &Scan,
    row: &[Column],
    writer: &Writer<'_>,
    outer: &[Columns],
) -> Option<String> {
    let each = scan.alternatives.iter().map(|way| {
        let by_it = Scan {
            index: way.index,
            access: way.access.clone(),
            ..scan.clone()
        };
        index_condition(&by_it, row, writer, outer)
    });
    let each: Option<Vec<String>> = each.collect();
    Some(format!("({})", each?.join(" OR ")))
}

/// The rows that an index leads to.
fn index_condition(
    scan: &Scan,
    row: &[Column],
    writer: &Writer<'_>,
    outer: &[Columns],
) -> Option<String> {
    let index = scan.by_index().filter(|_| scan.inverted.is_none())?;
    let mut conditions = Vec::new();
    let access = &scan.access;
    let mut say = |place: usize, operator: &str, value: &Program| -> Option<()> {
        let key = key_of(scan, index, place, row, writer)?;
        let text = &key.text;
        conditions.push(match access.among == Some(place) {
            true => {
                let array = key.ty.and_then(|(ty, _)| Some((ty.array_of()?, -1)));
                let quoted = writer.value(value, array, outer)?;
                format!("({text} {operator} ANY ({quoted}))")
            }
            false => {
                let quoted = writer.value(value, key.ty, outer)?;
                format!("({text} {operator} {quoted})")
            }
        });
        Some(())
    };
    for (place, value) in access.equal.iter().enumerate() {
        say(place, "=", value)?;
    }
    let next = access.equal.len();
    if let Some((value, inclusive)) = access.low.as_deref() {
        say(next, if *inclusive { ">=" } else { ">" }, value)?;
    }
    if let Some((value, inclusive)) = access.high.as_deref() {
        say(next, if *inclusive { "<=" } else { "<" }, value)?;
    }
    all_of(conditions)
}

/// A key of an index.
fn key_of(
    scan: &Scan,
    index: &Index,
    place: usize,
    row: &[Column],
    writer: &Writer<'_>,
) -> Option<Column> {
    if index.computed.is_none() {
        let column = index.columns.get(place)?.column;
        return row.get(column).cloned();
    }
    let mut known = scan.computed.iter().flat_map(|known| known.iter());
    let known = known.find(|known| Some(known.index) == scan.index)?;
    let key = known.keys.get(place)?;
    let text = expression(key, &Row(row), writer.context, Style::default(), true).ok()?;
    Some(Column::of(text, key.ty, key.typmod))
}

/// Columns by their places.
struct Row<'r>(&'r [Column]);

impl Names for Row<'_> {
    fn column(&self, place: usize, _: usize) -> String {
        self.0
            .get(place)
            .map_or(String::new(), |column| column.text.clone())
    }
}

/// A table, and what it is called.
pub(super) fn quoted_alias(table: &str, alias: Option<&str>) -> String {
    match alias {
        None => quote_identifier(table),
        Some(alias) => format!("{} {}", quote_identifier(table), quote_identifier(alias)),
    }
}
