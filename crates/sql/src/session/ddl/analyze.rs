//! ANALYZE of one table: a sample of its rows, and what it tells as rows of the catalog.
//!
//! The rows are read as the statement sees them, some at a time, so that others get their turns; all but
//! the sample are only counted. What is written is part of the transaction.
//!
//! # What it leaves out
//! Parts of a large table: all of its rows are passed by.

use std::sync::Arc;

use base::engine::{Direction, RowBatch};
use base::limits::{ROWS_PER_YIELD, WORK_PER_TURN};
use base::{coro, Error, KeyRange, Result, SqlState};

use super::super::automatic::ROWS_BETWEEN_RESTS;
use super::super::{NoticeSeverity, Session, Sink};
use super::gather;
use catalog::extended::{Extended, Gathered};
use catalog::statistics::{ColumnStatistics, TableStatistics};
use catalog::{statistics_store, Catalog, Column, Table};
use execution::analyze::column::{Sampled, Values};
use execution::analyze::{Sample, ROWS_PER_TARGET};
use execution::exec::{rows, sizes};
use types::Datum;

/// A sample has at least so many rows, if there are as many.
const ROWS_MIN: usize = 100;

/// What looking at a row counts for, in the units of [`coro::work`].
const ROW_WORK: usize = WORK_PER_TURN / ROWS_PER_YIELD;

/// PostgreSQL's pages.
const PAGE_BYTES: u64 = 8_192;

impl Session {
    /// Looks at the columns of a table with these places, all if there are none, and keeps what it
    /// finds. The table is locked.
    pub(super) fn analyze_table(
        &mut self,
        table: &Table,
        columns: &[usize],
        verbose: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let info = |message| Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
        if verbose {
            let schema = catalog.schema_by_oid(table.schema);
            let schema = schema.map_or("pg_temp", |schema| &schema.name);
            let message = format!("analyzing \"{schema}.{}\"", table.name);
            self.notice(NoticeSeverity::Info, info(message), sink)?;
        }
        let usual = self.shared.settings.parsed().statistics_target;
        let chosen = chosen_columns(&catalog, table, columns, usual);
        let (wanted, missing) = gather::wanted(&catalog, table, &chosen, usual);
        let targets = chosen.iter().map(|(_, target)| *target);
        let targets = targets.chain(wanted.iter().map(|(_, target)| *target));
        let most = targets.map(|target| target * ROWS_PER_TARGET);
        let sample = self.sample_of(table, most.max().unwrap_or(0).max(ROWS_MIN))?;
        let of = sample.seen();
        let (sampled, mut held) = sample.into_rows();
        // The values of one column after the other stand beside them.
        held.grow(held.bytes())?;
        if !wanted.is_empty() {
            held.grow(held.bytes())?;
        }
        if verbose {
            let storage = &*self.shared.engine.storage;
            let size = sizes::size_of_relation(&catalog, storage, table.oid);
            let pages = size.map_or(0, |size| size.bytes.div_ceil(PAGE_BYTES));
            let message = format!(
                "\"{}\": scanned {pages} of {pages} pages, containing {of} live rows and 0 dead \
                 rows; {} rows in sample, {of} estimated total rows",
                table.name,
                sampled.len(),
            );
            self.notice(NoticeSeverity::Info, info(message), sink)?;
        }
        let mut found = Vec::new();
        for (place, target) in chosen {
            let sampled_of = Sampled {
                rows: sampled.len(),
                of: of as f64,
                target,
            };
            if let Some(mut of_column) = analyze_column(table, place, &sampled, sampled_of)? {
                if let Some(said) = table.columns[place].said_distinct() {
                    of_column.distinct = said;
                }
                found.push((place, of_column));
            }
        }
        let mut gathered = Vec::new();
        if !sampled.is_empty() {
            if !self.shared.start.is_automatic {
                self.warn_of_missing(&catalog, table, &missing, sink)?;
            }
            gathered = self.gather(table, &wanted, &sampled, of as f64)?;
        }
        self.keep_statistics(table, of as f64, found, gathered)
    }

    /// A sample of a table's rows.
    fn sample_of(&mut self, table: &Table, rows_max: usize) -> Result<Sample> {
        let mut sample = Sample::new(rows_max, self.shared.env.random());
        let mut batch = RowBatch::default();
        let mut rest = Some(KeyRange::all());
        let (mut since, mut passed) = (self.shared.env.now(), 0);
        while let Some(range) = rest {
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            let (tree, forward) = (table.tree, Direction::Forward);
            rest = open
                .txn
                .scan(tree, &range, forward, usize::MAX, &mut batch)?;
            for (_, row) in batch.iter() {
                coro::work(ROW_WORK)?;
                sample.offer(row)?;
            }
            passed += batch.len();
            if self.shared.start.is_automatic && passed >= ROWS_BETWEEN_RESTS {
                self.rest(since)?;
                (since, passed) = (self.shared.env.now(), 0);
            }
        }
        Ok(sample)
    }

    fn keep_statistics(
        &mut self,
        table: &Table,
        rows: f64,
        found: Vec<(usize, ColumnStatistics)>,
        gathered: Vec<(Arc<Extended>, Gathered)>,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let before = catalog.table_statistics(table.oid);
        let mut of_table = TableStatistics {
            rows,
            ..before.map_or_else(TableStatistics::default, |before| (**before).clone())
        };
        let now = self.shared.env.wall_clock().0;
        match self.shared.start.is_automatic {
            true => {
                of_table.auto_analyzed = now;
                of_table.auto_count += 1;
            }
            false => {
                of_table.analyzed = now;
                of_table.count += 1;
            }
        }
        let database = catalog.database.oid;
        let registry = self.shared.start.registry.as_ref();
        if let Some(node) = registry.and_then(|registry| registry.statistics()) {
            node.analyzed(database, table.oid, &self.shared.sessions());
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let txn = open.txn.as_mut();
        statistics_store::put_table(txn, database, table.oid, of_table)?;
        for (place, of_column) in found {
            statistics_store::put_column(txn, database, (table.oid, place), of_column)?;
        }
        for (known, found) in gathered {
            statistics_store::put_gathered(txn, database, &known, found)?;
        }
        self.changed_catalog();
        Ok(())
    }
}

/// The columns that are looked at, with how much is to be found of each.
fn chosen_columns(
    catalog: &Catalog,
    table: &Table,
    columns: &[usize],
    usual: usize,
) -> Vec<(usize, usize)> {
    let is_chosen = |(place, column): &(usize, &Column)| {
        !column.dropped && (columns.is_empty() || columns.contains(place))
    };
    let target = |place| {
        let said = catalog.statistics_target(table.oid, place);
        said.map_or(Some(usual), |said| usize::try_from(said).ok())
    };
    let chosen = table.columns.iter().enumerate().filter(is_chosen);
    chosen
        .filter_map(|(place, _)| Some((place, target(place)?)))
        .filter(|(_, target)| *target > 0)
        .collect()
}

fn analyze_column(
    table: &Table,
    place: usize,
    sampled: &[Box<[u8]>],
    of: Sampled,
) -> Result<Option<ColumnStatistics>> {
    let needed: Vec<bool> = (0..table.columns.len())
        .map(|column| column == place)
        .collect();
    let mut values = Values::new(table.columns[place].type_id);
    let mut row = vec![Datum::Null; table.columns.len()];
    for bytes in sampled {
        coro::work(ROW_WORK)?;
        rows::decode_over(table, &needed, bytes, &mut row)?;
        values.take(std::mem::replace(&mut row[place], Datum::Null));
    }
    values.finish(of)
}
