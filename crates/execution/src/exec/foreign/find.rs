//! Finding rows as they are now: by key, and by what they refer to.

use base::engine::RowBatch;
use base::{Key, KeyRange, Result};

use super::refers_to;
use super::{Compare, Found, Link, Rules};
use crate::exec::rows::{self, KeyFit};
use crate::exec::Exec;
use catalog::{Index, Table};
use planner::plan::Row;
use types::Datum;

/// The newest version of a row.
pub fn newest_row(table: &Table, key: &[u8], cx: &mut Exec<'_>) -> Result<Option<Row>> {
    let mut batch = RowBatch::default();
    let range = KeyRange::point(key);
    cx.host
        .txn()
        .scan_newest(table.tree, &range, 1, &mut batch)?;
    if batch.is_empty() {
        return Ok(None);
    }
    let (key, bytes) = batch.get(0);
    rows::decode(table, &[], bytes, key, false).map(Some)
}

/// Rows of the child that refer to a key of the parent, one after another.
pub struct Referrers<'r> {
    rules: &'r Rules,
    link: &'r Link,
    key: Key,
    /// The index that it goes by; none: the table's own tree.
    index: Option<&'r Index>,
    rest: Option<KeyRange>,
    batch: RowBatch,
    at: usize,
}

impl<'r> Referrers<'r> {
    /// Those that refer to these values of the parent.
    pub fn new(rules: &'r Rules, link: &'r Link, values: &[Datum]) -> Result<Referrers<'r>> {
        let (parent, index) = link.parent_index(rules);
        let mut key = Key::new();
        for indexed in &index.columns {
            let at = link.columns.iter().position(|c| c.parent == indexed.column);
            let value = at.map_or(&Datum::Null, |at| &values[at]);
            rows::put_key_value(parent, indexed, value, &mut key)?;
        }
        let (index, rest) = place(&rules.tables[link.child].table, link, values)?;
        Ok(Referrers {
            rules,
            link,
            key,
            index,
            rest,
            batch: RowBatch::default(),
            at: 0,
        })
    }

    /// The next row as it is now, with its key.
    pub fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Found>> {
        let table: &'r Table = &self.rules.tables[self.link.child].table;
        loop {
            while self.at < self.batch.len() {
                let (key, bytes) = self.batch.get(self.at);
                self.at += 1;
                let found = match self.index {
                    None => Some((key.to_vec(), rows::decode(table, &[], bytes, key, false)?)),
                    Some(index) => {
                        let key = rows::row_key_of_entry(table, index, (key, bytes))?.to_vec();
                        newest_row(table, &key, cx)?.map(|row| (key, row))
                    }
                };
                cx.tick()?;
                let Some((key, row)) = found else { continue };
                if self.holds(&row, cx)? {
                    return Ok(Some((key, row)));
                }
            }
            let Some(range) = self.rest.take() else {
                return Ok(None);
            };
            let tree = self.index.map_or(table.tree, |index| index.tree);
            self.at = 0;
            self.rest = cx
                .host
                .txn()
                .scan_newest(tree, &range, usize::MAX, &mut self.batch)?;
        }
    }

    /// Whether a row refers to the key.
    pub fn holds(&self, row: &[Datum], cx: &mut Exec<'_>) -> Result<bool> {
        let values = self.link.child_values(row);
        refers_to(self.link, self.rules, &values, &self.key, cx)
    }
}

/// Where the rows lie that can refer to these values: the index with the longest run of leading
/// columns that the foreign key has, and a range of it. No range: there are none.
fn place<'t>(
    table: &'t Table,
    link: &Link,
    values: &[Datum],
) -> Result<(Option<&'t Index>, Option<KeyRange>)> {
    let link_column = |place: usize| {
        let at = link.columns.iter().position(|c| c.child == place)?;
        // A value of another type has no place among the child's own.
        (!matches!(link.columns[at].compare, Compare::Cast(_))).then_some(at)
    };
    let run = |index: &Index| {
        let columns = index.columns.iter();
        columns
            .take_while(|column| link_column(column.column).is_some())
            .count()
    };
    let best = table.indexes.iter().max_by_key(|index| run(index));
    let Some(index) = best.filter(|index| run(index) > 0) else {
        return Ok((None, Some(KeyRange::all())));
    };
    let mut prefix = Key::new();
    for indexed in index.columns.iter().take(run(index)) {
        let Some(at) = link_column(indexed.column) else {
            break;
        };
        let KeyFit::Value(value) =
            rows::fit_key(table.columns[indexed.column].type_id, &values[at])
        else {
            return Ok((None, None));
        };
        rows::put_key_value(table, indexed, &value, &mut prefix)?;
    }
    let range = KeyRange::prefix(&prefix);
    Ok(((!index.primary).then_some(index), Some(range)))
}
