//! The columns of nodes, for VERBOSE.
//!
//! ```text
//! Sort                                Output: b, ((count(*) * 2))
//!   HashAggregate                     Output: b, (count(*) * 2)
//!     Seq Scan on public.t            Output: b
//! ```
//! What a node computes of its rows without a node of its own ([`Plan::Project`]) is its output, as in
//! PostgreSQL. Columns are qualified where the statement reads several tables.
//!
//! # What it leaves out
//! Lists with a column that cannot be written.

use super::names::{Column, Columns, Writer};
use planner::plan::{Plan, Program, Target};

/// The columns of a node's rows; none for those of which PostgreSQL lists none either.
pub(super) fn of(plan: &Plan, writer: &Writer<'_>, outer: &[Columns]) -> Option<Vec<String>> {
    let columns: Vec<String> = match plan {
        Plan::SetOperation(planner::plan::SetOperation::Union, true, ..) | Plan::Recursive(_) => {
            return None
        }
        Plan::Insert(insert) => returned(&insert.target, writer, outer)?,
        Plan::Update(update) => returned(&update.target, writer, outer)?,
        Plan::Delete(delete) => returned(&delete.target, writer, outer)?,
        Plan::Merge(_) | Plan::Rewritten(_) => return None,
        Plan::Project(input, programs) => {
            let row = writer.columns(input, outer);
            let computed = writer.columns(plan, outer);
            let own = own_from(input, writer, outer);
            let both = programs.iter().zip(computed.iter());
            let one = |(program, column): (&Program, &Column)| {
                let passed = program.as_column();
                let passed = passed.and_then(|place| Some((row.get(place)?, place)));
                match passed {
                    Some((column, place)) => column.shown(place >= own),
                    None => column.shown(true),
                }
            };
            both.map(one).collect()
        }
        _ => {
            let own = own_from(plan, writer, outer);
            let columns = writer.columns(plan, outer);
            let columns = columns.iter().enumerate();
            let shown = columns.map(|(place, column)| column.shown(place >= own));
            shown.collect()
        }
    };
    let is_known = !columns.is_empty() && columns.iter().all(|column| !column.is_empty());
    is_known.then_some(columns)
}

/// From which of the columns of its rows on a node computes them itself.
fn own_from(plan: &Plan, writer: &Writer<'_>, outer: &[Columns]) -> usize {
    match plan {
        Plan::Filter(input, _) => own_from(input, writer, outer),
        Plan::Window(window) => writer.columns(&window.input, outer).len(),
        Plan::Aggregate { .. } | Plan::ProjectSet(..) => 0,
        Plan::Values(_) | Plan::Scan(_) | Plan::System(..) => 0,
        _ => usize::MAX,
    }
}

/// Whether a node cannot compute anything of the rows that it hands on: columns that a [`Plan::Project`]
/// above drops are in its rows.
pub(super) fn hands_on(plan: &Plan) -> bool {
    match plan {
        Plan::Sort(..) | Plan::Distinct(..) | Plan::Limit(..) | Plan::Lock(..) => true,
        Plan::SetOperation(..) => true,
        Plan::Trim(input, _) | Plan::Anew(_, input) => hands_on(input),
        _ => false,
    }
}

/// What RETURNING gives.
fn returned(target: &Target, writer: &Writer<'_>, outer: &[Columns]) -> Option<Vec<String>> {
    let programs = target.returning.as_ref()?;
    let row = writer.columns_of(&target.table);
    let computed = |program: &Program| writer.computed(program, &row, outer).shown(true);
    Some(programs.iter().map(computed).collect())
}
