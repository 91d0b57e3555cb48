//! `pg_locks`.

use std::sync::Arc;

use base::engine::{LockInfo, LockTarget};
use base::{Result, TreeId};

use crate::exec::Exec;
use crate::state::activity::Activity;
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
    let sessions = cx.host.shared().sessions();
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
        let number = session.map_or(0, |session| session.0);
        row[10] = match session {
            Some(_) => transaction(&sessions, number),
            None => Datum::text("-1/0"),
        };
        row[11] = session.map_or(Datum::Null, |session| Datum::Int4(session.0 as i32));
        row[12] = Datum::text(info.mode);
        row[13] = Datum::Bool(info.granted);
        row[14] = Datum::Bool(false);
        let since = info.waits_since;
        row[15] = since.map_or(Datum::Null, |since| Datum::TimestampTz(since.0));
        row
    };
    let locks = cx.host.shared().engine.locks.as_deref();
    let infos = match locks {
        Some(locks) => locks.lock_infos()?,
        None => Vec::new(),
    };
    let rows = infos.into_iter().map(row);
    let own = sessions
        .iter()
        .filter_map(|session| virtual_transaction(session));
    Ok(rows.chain(own).collect())
}

/// The transaction of a session that is known by its number.
fn transaction(sessions: &[Arc<Activity>], number: u32) -> Datum {
    let known = sessions
        .iter()
        .find(|session| session.pid() as u32 == number);
    Datum::text(format!(
        "{number}/{}",
        known.map_or(0, |session| session.transaction())
    ))
}

/// The lock that each transaction has on its own number.
fn virtual_transaction(session: &Activity) -> Option<Row> {
    let number = session.transaction();
    if number == 0 {
        return None;
    }
    let name = Datum::text(format!("{}/{number}", session.pid()));
    let mut row = vec![Datum::Null; 16];
    row[0] = Datum::text("virtualxid");
    row[5] = name.clone();
    row[10] = name;
    row[11] = Datum::Int4(session.pid());
    row[12] = Datum::text("ExclusiveLock");
    row[13] = Datum::Bool(true);
    row[14] = Datum::Bool(true);
    Some(row)
}
