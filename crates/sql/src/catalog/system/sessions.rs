//! What this session has open.

use base::Result;

use super::SystemTable;
use crate::catalog::Catalog;
use crate::exec::Exec;
use crate::plan::Row;
use crate::types::Datum;

pub(super) const CURSORS: SystemTable = SystemTable {
    oid: 12_088,
    name: "pg_cursors",
    columns: "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, \
              creation_time timestamptz",
    rows: cursors,
};

fn cursors(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let cursors = cx.session.cursors.values();
    Ok(cursors
        .map(|cursor| {
            vec![
                Datum::text(&cursor.name),
                Datum::text(&cursor.statement),
                Datum::Bool(cursor.holdable),
                Datum::Bool(false),
                Datum::Bool(cursor.scrollable),
                Datum::TimestampTz(cursor.created),
            ]
        })
        .collect())
}
