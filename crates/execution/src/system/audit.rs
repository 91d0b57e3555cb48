//! `quorate.audit`: what has changed the catalog; see [`catalog::audit`].

use base::{Lsn, Result};

use crate::exec::Exec;
use catalog::audit::{self, Entry};
use catalog::layout::AUDIT;
use catalog::Catalog;
use planner::plan::Row;
use types::Datum;

pub(super) fn entries(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let entries = audit::read(cx.host.txn())?;
    let outcomes = cx.host.shared().engine.outcomes.as_deref();
    let place = |entry: &Entry| match outcomes {
        Some(outcomes) => outcomes.row_place(AUDIT, &audit::key(entry.number)),
        None => Ok(None),
    };
    let rows = entries.iter().map(|entry| Ok(row(entry, place(entry)?)));
    rows.collect()
}

fn row(entry: &Entry, place: Option<Lsn>) -> Row {
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
        place.map_or(Datum::Null, |place| Datum::Unsigned8(place.0)),
    ]
}
