//! ANALYZE of extended statistics: what the sample of a table's rows tells of several columns together, and
//! of expressions ([`execution::analyze::together`]).
//!
//! ```text
//! s (dependencies) on city, zip, (lower(name))
//!   each row of the sample  →  city, zip, lower(name)  →  dependencies; lower(name) as a column has them
//! ```
//! Expressions are computed with the rights of the table's owner, whoever looks at it.

use std::sync::Arc;

use base::{Error, Result, SqlState};

use super::super::{NoticeSeverity, Session, Sink};
use catalog::extended::{Extended, Gathered, Kinds};
use catalog::{Catalog, Table};
use execution::analyze::column::{Sampled, Values};
use execution::analyze::together::Together;
use execution::exec::program::Evaluate;
use execution::exec::{rows, Exec};
use execution::system::Relations;
use planner::plan::permit::Permit;
use planner::plan::{compile, Program};
use types::Datum;

/// Extended statistics that are looked at, with how much is to be kept of each.
pub(super) type Wanted = (Arc<Extended>, usize);

/// The extended statistics of a table of which these columns, by their places, are all that is needed; and
/// those of which it is not.
pub(super) fn wanted(
    catalog: &Catalog,
    table: &Table,
    chosen: &[(usize, usize)],
    usual: usize,
) -> (Vec<Wanted>, Vec<Arc<Extended>>) {
    let (mut wanted, mut missing) = (Vec::new(), Vec::new());
    for known in catalog.extended_of(table.oid) {
        let is_chosen = |place: &usize| chosen.iter().any(|one| one.0 == *place);
        if !known.columns.iter().all(is_chosen) {
            missing.push(known.clone());
            continue;
        }
        let of_columns = known.columns.iter();
        let of_columns = of_columns.filter_map(|at| catalog.statistics_target(table.oid, *at));
        let target = match known.target {
            said if said >= 0 => said,
            _ => of_columns.max().unwrap_or(-1),
        };
        match usize::try_from(target) {
            Ok(0) => {}
            Ok(target) => wanted.push((known.clone(), target)),
            Err(_) => wanted.push((known.clone(), usual)),
        }
    }
    (wanted, missing)
}

impl Session {
    /// WARNING: statistics that could not be computed, because some column was not looked at.
    pub(super) fn warn_of_missing(
        &mut self,
        catalog: &Catalog,
        table: &Table,
        missing: &[Arc<Extended>],
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let schema = |oid: u32| {
            let known = catalog.schema_by_oid(oid);
            known.map_or("", |known| known.name.as_str())
        };
        for known in missing {
            let message = format!(
                "statistics object \"{}.{}\" could not be computed for relation \"{}.{}\"",
                schema(known.schema),
                known.name,
                schema(table.schema),
                table.name
            );
            let mut warning = Error::new(SqlState::of("42P17"), message);
            let fields = warning.fields_mut();
            fields.schema = Some(schema(table.schema).to_owned());
            fields.table = Some(table.name.clone());
            self.notice(NoticeSeverity::Warning, warning, sink)?;
        }
        Ok(())
    }

    /// What the rows of a sample, of a table of so many rows, tell of what is wanted.
    pub(super) fn gather(
        &mut self,
        table: &Table,
        wanted: &[Wanted],
        sampled: &[Box<[u8]>],
        of: f64,
    ) -> Result<Vec<(Arc<Extended>, Gathered)>> {
        let mut all = Vec::with_capacity(wanted.len());
        for (known, target) in wanted {
            let values = self.values_of_parts(table, known, sampled)?;
            let found = gathered(known, table, values, (of, *target))?;
            all.push((known.clone(), found));
        }
        Ok(all)
    }

    /// The values of each part in each row.
    fn values_of_parts(
        &mut self,
        table: &Table,
        known: &Extended,
        sampled: &[Box<[u8]>],
    ) -> Result<Vec<Vec<Datum>>> {
        let catalog = self.current_catalog()?;
        let mut needed = vec![false; table.columns.len()];
        let uses = known.expressions.iter().flat_map(|own| &own.uses);
        for place in known.columns.iter().chain(uses) {
            if let Some(needed) = needed.get_mut(*place) {
                *needed = true;
            }
        }
        let shared = Arc::new(table.clone());
        let mut programs: Vec<Program> = Vec::with_capacity(known.expressions.len());
        for expression in &known.expressions {
            let bound = self.try_binding("", &catalog, |binder| {
                binder.index_expression(&shared, &expression.text)
            })?;
            programs.push(compile(&bound));
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.txn.begin_statement()?;
        self.as_owner(table.owner, |session| {
            let permit = Permit::of_definition(&catalog);
            let eval = session.eval.clone();
            let mut cx = Exec::new(&Relations, session, permit, &eval, &[]);
            let parts = known.columns.len() + programs.len();
            let mut values = vec![Vec::with_capacity(sampled.len()); parts];
            let mut row = vec![Datum::Null; table.columns.len()];
            for bytes in sampled {
                cx.tick()?;
                rows::decode_over(table, &needed, bytes, &mut row)?;
                let (of_columns, of_expressions) = values.split_at_mut(known.columns.len());
                for (place, values) in known.columns.iter().zip(of_columns) {
                    values.push(row[*place].clone());
                }
                for (program, values) in programs.iter().zip(of_expressions) {
                    values.push(program.eval(&mut cx, &row)?);
                }
            }
            Ok(values)
        })
    }
}

/// What the values of the parts tell, in a sample of a table of so many rows; so much is kept.
fn gathered(
    known: &Extended,
    table: &Table,
    values: Vec<Vec<Datum>>,
    (of, target): (f64, usize),
) -> Result<Gathered> {
    let mut found = Gathered::default();
    for (place, expression) in known.expressions.iter().enumerate() {
        let own = &values[known.columns.len() + place];
        let sampled = Sampled {
            rows: own.len(),
            of,
            target,
        };
        let mut of_expression = Values::of_expression(expression.type_id);
        own.iter()
            .for_each(|value| of_expression.take(value.clone()));
        found
            .expressions
            .push(of_expression.finish(sampled)?.map(Arc::new));
    }
    if known.kinds == Kinds::default() {
        return Ok(found);
    }
    let together = Together::new(known.types(table), known.parts(), values, of)?;
    if known.kinds.distinct {
        found.distinct = Some(together.distinct()?);
    }
    if known.kinds.dependencies {
        found.dependencies = together.dependencies()?;
    }
    if known.kinds.common {
        found.common = together.common(target)?;
    }
    Ok(found)
}
