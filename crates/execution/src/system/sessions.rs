//! What the sessions do, and what this one has open.

use base::engine::PreparedTransaction;
use base::{Result, SessionId};

use crate::exec::statistics::wait_of;
use crate::exec::Exec;
use crate::state::activity::{Activity, Doing, SessionState};
use crate::state::secrets;
use catalog::system::relations;
use catalog::Catalog;
use planner::plan::Row;
use types::network::host_address;
use types::Datum;

/// The oid of `pg_stat_activity`.
const ACTIVITY_OID: u32 = 12_222;

pub(super) fn cursors(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let cursors = cx.host.shared().cursors.values();
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

pub(super) fn prepared_transactions(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let Some(prepared) = cx.host.shared().engine.prepared.clone() else {
        return Ok(Vec::new());
    };
    let (prepared, debt) = prepared.prepared()?;
    cx.host.txn().owe(&debt);
    let or_null = |name: Option<&str>| name.map_or(Datum::Null, Datum::text);
    let row = |prepared: PreparedTransaction| {
        let preparation = &prepared.preparation;
        let owner = catalog.role_by_oid(preparation.owner);
        let database = catalog.database_by_oid(preparation.database);
        vec![
            Datum::Oid(prepared.xid.0 as u32),
            Datum::text(&preparation.name),
            Datum::TimestampTz(prepared.prepared_at.0),
            or_null(owner.map(|role| &role.name[..])),
            or_null(database.map(|database| &database.name[..])),
        ]
    };
    Ok(prepared.into_iter().map(row).collect())
}

pub(super) fn activity(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let own = cx.host.shared().start.activity.clone();
    let all = match &cx.host.shared().start.registry {
        Some(registry) => registry.all(),
        None => vec![own],
    };
    let locks = cx.host.shared().engine.locks.as_deref();
    Ok(all
        .iter()
        .filter_map(|activity| {
            let doing = activity.doing()?;
            let session = SessionId(activity.pid() as u32);
            let waits = locks.is_some_and(|locks| !locks.blockers(session).is_empty());
            let asker = cx.host.shared().settings.current_role();
            let row = activity_row(catalog, activity, &doing, waits);
            Some(match catalog.sees_sessions_of(asker, doing.role) {
                true => row,
                false => without_details(row),
            })
        })
        .collect())
}

/// The columns of `pg_stat_activity` that everybody sees of every session.
const OPEN: [&str; 8] = [
    "datid",
    "datname",
    "pid",
    "usesysid",
    "usename",
    "application_name",
    "backend_xid",
    "backend_xmin",
];

/// A row as one sees it who may not know what the session does.
fn without_details(row: Row) -> Row {
    let activity = relations::by_oid(ACTIVITY_OID);
    let columns = activity.map_or(&[][..], |relation| &relation.table.columns);
    let names = columns.iter().map(|column| column.name.as_str());
    let columns = names.zip(row);
    columns
        .map(|(name, value)| match name {
            "query" => Datum::text("<insufficient privilege>"),
            name if OPEN.contains(&name) => value,
            _ => Datum::Null,
        })
        .collect()
}

fn activity_row(
    catalog: &Catalog,
    activity: &Activity,
    doing: &Doing,
    waits_for_lock: bool,
) -> Row {
    let text = |text: Option<&str>| text.map_or(Datum::Null, Datum::text);
    let instant = |at: Option<i64>| at.map_or(Datum::Null, Datum::TimestampTz);
    let role = catalog.role_by_oid(doing.role);
    let mut databases = catalog.databases.iter();
    let database = databases.find(|database| database.name == doing.database);
    let wait = wait_of(activity, doing.state, waits_for_lock);
    // To its client a session whose reply is held still works.
    let state = match activity.is_held() {
        true => SessionState::Active,
        false => doing.state,
    };
    vec![
        database.map_or(Datum::Null, |database| Datum::Oid(database.oid)),
        Datum::text(&doing.database),
        Datum::Int4(activity.pid()),
        Datum::Null,
        role.map_or(Datum::Null, |role| Datum::Oid(role.oid)),
        text(role.map(|role| role.name.as_str())),
        Datum::text(&doing.application),
        host_address(doing.client_address.as_deref()),
        Datum::Null,
        doing
            .client_port
            .map_or(Datum::Null, |port| Datum::Int4(i32::from(port))),
        Datum::TimestampTz(doing.started),
        instant(doing.transaction),
        instant(doing.statement),
        Datum::TimestampTz(doing.changed),
        text(wait.map(|wait| wait[0])),
        text(wait.map(|wait| wait[1])),
        Datum::text(state.name()),
        Datum::Null,
        Datum::Null,
        activity.query_id().map_or(Datum::Null, Datum::Int8),
        Datum::text(secrets::mask(&doing.query)),
        Datum::text(match doing.is_automatic {
            true => "autovacuum worker",
            false => "client backend",
        }),
    ]
}

/// The memory of the session: it is counted as one.
pub(super) fn memory(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let reserved = cx.host.shared().start.interrupts.memory().reserved();
    let bytes = Datum::Int8(i64::try_from(reserved).unwrap_or(i64::MAX));
    Ok(vec![vec![
        Datum::text("Session"),
        Datum::Null,
        Datum::Null,
        Datum::Int4(0),
        bytes.clone(),
        Datum::Int8(1),
        Datum::Int8(0),
        Datum::Int8(0),
        bytes,
    ]])
}
