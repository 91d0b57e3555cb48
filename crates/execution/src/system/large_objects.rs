//! `pg_largeobject` and `pg_largeobject_metadata`: read where they are asked for, as no catalog holds them.

use base::memory::Reservation;
use base::Result;

use crate::exec::Exec;
use catalog::large_object::{self, Sight};
use catalog::large_object_pages;
use catalog::layout::LARGE_OBJECT;
use catalog::system::acl_items;
use catalog::Catalog;
use planner::plan::Row;
use types::Datum;

/// `pg_largeobject`.
const PAGES_OID: u32 = LARGE_OBJECT;
/// `pg_largeobject_metadata`.
const METADATA_OID: u32 = 2_995;

/// What a row takes beside its data, about.
const ROW_BYTES: usize = 160;

/// The rows of one of these relations; with a key, only those whose column has that value. None for another
/// relation.
pub(super) fn rows(
    relation: u32,
    catalog: &Catalog,
    key: Option<&(usize, Datum)>,
    cx: &mut Exec<'_>,
) -> Result<Option<Vec<Row>>> {
    let rows = match relation {
        PAGES_OID => pages(catalog, key, cx)?,
        METADATA_OID => objects(catalog, key, cx)?,
        _ => return Ok(None),
    };
    Ok(Some(rows))
}

/// The oid that a key asks for in a column.
fn asked(key: Option<&(usize, Datum)>, column: usize) -> Option<u32> {
    match key {
        Some((asked, Datum::Oid(oid))) if *asked == column => Some(*oid),
        _ => None,
    }
}

fn pages(catalog: &Catalog, key: Option<&(usize, Datum)>, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let database = catalog.database.oid;
    let mut rows: Vec<Row> = Vec::new();
    if !large_object::has_tree(cx.host.txn(), database)? {
        return Ok(rows);
    }
    let mut held = Reservation::of("Large objects");
    let object = asked(key, 0);
    large_object_pages::for_each(cx.host.txn(), database, object, &mut |oid, page, data| {
        held.grow(ROW_BYTES + data.len())?;
        rows.push(vec![
            Datum::Oid(oid),
            Datum::Int4(i32::try_from(page).unwrap_or(i32::MAX)),
            Datum::Bytea(data.into()),
        ]);
        Ok(())
    })?;
    cx.check_held(held.bytes())?;
    Ok(rows)
}

fn objects(catalog: &Catalog, key: Option<&(usize, Datum)>, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let database = catalog.database.oid;
    let mut found = Vec::new();
    match asked(key, 0) {
        Some(oid) => {
            let object = large_object::find(cx.host.txn(), database, oid, Sight::Statement)?;
            found.extend(object);
        }
        None => {
            let owner = asked(key, 1);
            let is_asked =
                |object: &catalog::LargeObject| owner.is_none_or(|owner| object.owner == owner);
            let sight = Sight::Statement;
            found = large_object::all(cx.host.txn(), database, sight, is_asked)?;
        }
    }
    let rows = found.into_iter().map(|object| {
        vec![
            Datum::Oid(object.oid),
            Datum::Oid(object.owner),
            match &object.acl {
                Some(acl) => acl_items(catalog, acl),
                None => Datum::Null,
            },
        ]
    });
    Ok(rows.collect())
}
