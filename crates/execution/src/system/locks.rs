//! `pg_locks`.

use base::engine::{LockInfo, LockTarget};
use base::{Result, TreeId};

use crate::exec::Exec;
use catalog::Catalog;
use planner::plan::Row;
use types::Datum;

/// The OID of the relation that has a tree.
fn relation(catalog: &Catalog, tree: TreeId) -> Datum {
    for table in &catalog.tables {
        if table.tree == tree {
            return Datum::Oid(table.oid);
        }
        if let Some(index) = table.index_of_tree(tree) {
            return Datum::Oid(index.oid);
        }
    }
    Datum::Null
}

pub(super) fn locks(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let row = |info: LockInfo| {
        let mut row = vec![Datum::Null; 16];
        match info.target {
            LockTarget::Tree(tree) | LockTarget::Row(tree, _) => {
                let is_row = matches!(info.target, LockTarget::Row(..));
                row[0] = Datum::text(if is_row { "tuple" } else { "relation" });
                row[1] = Datum::Oid(catalog.database.oid);
                row[2] = relation(catalog, tree);
            }
            LockTarget::Advisory(key) => {
                row[0] = Datum::text("advisory");
                row[1] = Datum::Oid(key.database);
                row[7] = Datum::Oid(key.class);
                row[8] = Datum::Oid(key.object);
                row[9] = Datum::Int2(if key.two { 2 } else { 1 });
            }
        }
        let session = info.session;
        row[11] = session.map_or(Datum::Null, |session| Datum::Int4(session.0 as i32));
        row[12] = Datum::text(info.mode);
        row[13] = Datum::Bool(info.granted);
        row[14] = Datum::Bool(false);
        row
    };
    let locks = cx.host.shared().engine.locks.as_deref();
    let infos = locks.map_or_else(Vec::new, |locks| locks.lock_infos());
    Ok(infos.into_iter().map(row).collect())
}
