//! `quorate.storage`: what this node's replica of a group has in memory and on disk; and the sizes
//! and ids in `pg_class` and `pg_database`, which no catalog version knows.

use std::time::Duration;

use base::Result;

use crate::exec::outcomes::{self, FIRST_NORMAL};
use crate::exec::{sizes, Exec};
use catalog::cluster::Address;
use catalog::layout::FIRST_USER_OID;
use catalog::{Catalog, Table};
use planner::plan::Row;
use types::{Datum, Interval};

/// `pg_class`.
pub(super) const CLASS_OID: u32 = 1_259;

/// `relpages` counts pages of so many bytes, as PostgreSQL does.
const PAGE_BYTES: u64 = 8_192;

fn number(number: u64) -> Datum {
    Datum::Int8(i64::try_from(number).unwrap_or(i64::MAX))
}

fn age(age: Option<Duration>) -> Datum {
    let micros = age.and_then(|age| i64::try_from(age.as_micros()).ok());
    micros.map_or(Datum::Null, |micros| {
        Datum::Interval(Interval {
            months: 0,
            days: 0,
            micros,
        })
    })
}

pub(super) fn storage(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let replicas = cx.host.shared().engine.storage.storage();
    let row = |one: &base::engine::StorageStatus| {
        vec![
            Datum::Int4(i32::try_from(one.group.0).unwrap_or(i32::MAX)),
            number(one.cached_bytes),
            number(one.cache_bytes_max),
            number(one.dirty_bytes),
            number(one.away_bytes),
            number(one.pages_read),
            number(one.pages_written),
            number(one.undo_versions),
            number(one.undo_bytes),
            number(one.undo_spilled_bytes),
            Datum::Unsigned8(one.checkpoint.0),
            age(one.checkpoint_age),
            number(one.log_bytes_since_checkpoint),
            number(one.log_bytes),
            number(one.file_bytes),
            number(one.free_bytes),
            number(one.log_appended_bytes),
        ]
    };
    Ok(replicas.iter().map(row).collect())
}

/// Puts up to which id nothing of a table or a database waits for VACUUM: nothing ever does, so that is the newest.
/// Of rows that several transactions lock nobody keeps ids: the first is next for ever.
pub(super) fn put_ages(table: &Table, cx: &Exec<'_>, rows: &mut [Row]) {
    let names = match table.oid {
        CLASS_OID => ["relfrozenxid", "relminmxid"],
        Address::DATABASE => ["datfrozenxid", "datminmxid"],
        _ => return,
    };
    let [Some(frozen), Some(first)] = names.map(|name| table.column(name)) else {
        return;
    };
    // On a standby nobody knows.
    let newest = outcomes::newest(cx).ok().flatten();
    let newest = newest.map_or(0, |newest| (newest.0 as u32).max(FIRST_NORMAL));
    let kind = table.column("relkind");
    for row in rows {
        let has_rows = kind.is_none_or(|kind| matches!(row[kind], Datum::Char(b'r' | b'm')));
        if has_rows {
            row[frozen] = Datum::Oid(newest);
            row[first] = Datum::Oid(1);
        }
    }
}

/// Puts how large they are into rows of `pg_class`: as they are now, not as of some ANALYZE.
pub(super) fn put_sizes(table: &Table, catalog: &Catalog, cx: &Exec<'_>, rows: &mut [Row]) {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let places = (place("oid"), place("relpages"), place("reltuples"));
    let (Some(oid), Some(pages), Some(tuples)) = places else {
        return;
    };
    let storage = &*cx.host.shared().engine.storage;
    for row in rows {
        let Datum::Oid(relation) = row[oid] else {
            continue;
        };
        if relation < FIRST_USER_OID {
            continue;
        }
        let size = sizes::size_of_relation(catalog, storage, relation);
        let Some(size) = size.filter(|size| size.bytes > 0) else {
            continue;
        };
        let count = size.bytes / PAGE_BYTES;
        row[pages] = Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX));
        row[tuples] = Datum::Float4(size.rows as f32);
    }
}
