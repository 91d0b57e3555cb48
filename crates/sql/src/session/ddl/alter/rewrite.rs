//! Going through the rows of a table: to check them, or to give them other values.

use std::sync::Arc;

use base::engine::{Inserted, RowBatch};
use base::{Error, KeyRange, Result, SequenceId, SqlState};

use super::super::super::in_use::Using;
use super::super::super::Session;
use catalog::{store, Catalog, Column, Table};
use execution::exec::program::Evaluate;
use execution::exec::{entries, long, rows, Exec};
use execution::system::Relations;
use planner::plan::permit::Permit;
use planner::plan::Program;
use types::Datum;

/// The value that a column gets in every row, computed from the row as it was or as it has become.
pub(in super::super) struct NewValue {
    pub place: usize,
    pub program: Program,
    /// Whether the program looks at the values that earlier programs have given.
    pub of_new: bool,
}

impl Session {
    /// Calls `check` with every row of a table as it is now.
    ///
    /// # Errors
    /// What `check` raises.
    pub(in super::super) fn for_each_row(
        &mut self,
        table: &Table,
        mut check: impl FnMut(&mut Exec<'_>, &[u8], &[Datum]) -> Result<()>,
    ) -> Result<()> {
        if !table.kind.has_rows() {
            return Ok(());
        }
        let catalog = self.current_catalog()?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.txn.begin_statement()?;
        self.using(Using::tables([table]), |session| {
            let permit = Permit::of_definition(&catalog);
            let eval = session.eval.clone();
            let mut cx = Exec::new(&Relations, session, permit, &eval, &[]);
            let mut batch = RowBatch::default();
            let mut rest = Some(KeyRange::all());
            while let Some(range) = rest {
                let txn = cx.host.txn();
                rest = txn.scan_newest(table.tree, &range, usize::MAX, &mut batch)?;
                for (key, bytes) in batch.iter() {
                    cx.tick()?;
                    let row = rows::decode(table, &[], bytes, key, false)?;
                    check(&mut cx, key, &row)?;
                }
            }
            Ok(())
        })
    }

    /// 23502 if a column is NULL in any row.
    pub(in super::super) fn check_not_null(&mut self, table: &Table, place: usize) -> Result<()> {
        let catalog = self.current_catalog()?;
        self.for_each_row(table, |_, _, row| match row[place].is_null() {
            true => Err(null_in(&catalog, table, &table.columns[place])),
            false => Ok(()),
        })
    }

    /// Gives every row of `old` new values and moves it into the new trees of `new`
    /// ([`Session::with_new_trees`]), which is put into the catalog; drops the old trees. Values
    /// are as the columns of `new` say; NOT NULL is checked.
    ///
    /// # Errors
    /// 23502, 23505, and what computing values raises.
    pub(in super::super) fn rewrite(
        &mut self,
        old: &Arc<Table>,
        new: &mut Table,
        values: &[NewValue],
    ) -> Result<()> {
        for column in &mut new.columns {
            column.missing = None;
        }
        let catalog = self.current_catalog()?;
        let database = catalog.database.oid;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        store::create_trees(open.txn.as_mut(), new)?;
        store::update_table(open.txn.as_mut(), database, new)?;
        let eval = self.eval.clone();
        let table = Arc::new(new.clone());
        let mut rules = self.try_binding("", &catalog, |binder| binder.entries(&table))?;
        // Whether rows conflict is looked at once all are there.
        rules.iter_mut().for_each(|rule| rule.exclusion = None);
        let row_by_row = |cx: &mut Exec<'_>, key: &[u8], row: &[Datum]| {
            let row = new_row(&catalog, row, new, values, cx)?;
            let key = match new.primary_key() {
                Some(index) => rows::index_key(new, index, &row)?,
                None if old.primary_key().is_none() => key.to_vec(),
                None => {
                    let number = cx
                        .host
                        .session()
                        .next_number(SequenceId(u64::from(new.oid)))?;
                    number.to_be_bytes().to_vec()
                }
            };
            let encoded = long::encode(new, &row, None, cx)?;
            match cx.host.txn().insert(new.tree, &key, &encoded.row)? {
                Inserted::Done => {
                    if let Some(taken) = entries::insert(&rules, new, &key, &row, cx)? {
                        let error = super::super::build::twice(new, &taken, cx);
                        return Err(about(error, &catalog, new));
                    }
                    encoded.store(new, cx.host.txn())
                }
                Inserted::Duplicate(tree) => {
                    let error = super::super::build::duplicated(new, tree, &encoded.row, &eval);
                    Err(about(error, &catalog, new))
                }
            }
        };
        // What indexes call must not run with the rights of whoever happens to change the table.
        match rules.is_empty() {
            true => self.for_each_row(old, row_by_row)?,
            false => self.as_owner(old.owner, |session| session.for_each_row(old, row_by_row))?,
        }
        self.check_equal(&table, |_| true)?;
        self.check_excluded(&table, |_| true)?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        store::drop_trees(open.txn.as_mut(), old)?;
        self.changed_catalog();
        Ok(())
    }
}

fn new_row(
    catalog: &Catalog,
    old: &[Datum],
    new: &Table,
    values: &[NewValue],
    cx: &mut Exec<'_>,
) -> Result<Vec<Datum>> {
    let mut row = old.to_vec();
    row.resize(new.columns.len(), Datum::Null);
    for value in values {
        row[value.place] = match value.of_new {
            true => value.program.eval(cx, &row)?,
            false => value.program.eval(cx, old)?,
        };
    }
    for (column, value) in new.columns.iter().zip(&row) {
        if column.not_null && value.is_null() && !column.dropped {
            return Err(null_in(catalog, new, column));
        }
    }
    Ok(row)
}

/// 23502 for a column that must not have NULL and has.
pub(super) fn null_in(catalog: &Catalog, table: &Table, column: &Column) -> Error {
    let message = format!(
        "column \"{}\" of relation \"{}\" contains null values",
        column.name, table.name
    );
    let mut error = Error::new(SqlState::NOT_NULL_VIOLATION, message);
    error.fields_mut().column = Some(column.name.clone());
    about(error, catalog, table)
}

/// The same error, about a table.
pub(in super::super) fn about(mut error: Error, catalog: &Catalog, table: &Table) -> Error {
    let schema = catalog.schema_by_oid(table.schema);
    error.fields_mut().schema = schema.map(|schema| schema.name.clone());
    error.fields_mut().table = Some(table.name.clone());
    error
}
