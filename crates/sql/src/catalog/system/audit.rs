//! `quorate.audit`: what has changed the catalog; see [`crate::catalog::audit`].

use base::Result;

use super::SystemTable;
use crate::catalog::audit::{self, Entry};
use crate::catalog::Catalog;
use crate::exec::Exec;
use crate::plan::Row;
use crate::types::Datum;

pub(super) const AUDIT_OID: u32 = 9_114;

pub(super) const AUDIT: SystemTable = SystemTable {
    oid: AUDIT_OID,
    name: "audit",
    columns: "number int8, at timestamptz, xid int8, pid int4, session_user_name name, \
              current_user_name name, client_addr inet, database name, command text, \
              statement text",
    rows: entries,
};

fn entries(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let entries = audit::read(cx.txn)?;
    Ok(entries.iter().map(row).collect())
}

fn row(entry: &Entry) -> Row {
    let client = entry.client.as_deref();
    let number = |number: u64| Datum::Int8(i64::try_from(number).unwrap_or(i64::MAX));
    vec![
        number(entry.number),
        Datum::TimestampTz(entry.at),
        entry.xid.map_or(Datum::Null, number),
        Datum::Int4(entry.pid),
        Datum::text(&entry.session_user),
        Datum::text(&entry.current_user),
        client.map_or(Datum::Null, Datum::text),
        Datum::text(&entry.database),
        Datum::text(&entry.command),
        Datum::text(&entry.statement),
    ]
}
