//! Statistics of a node as a whole: `pg_stat_wal`, `pg_stat_archiver` and what there is none of here.
//!
//! The log is a group's, written by its members: `wal_records` are its entries, hard states and marks,
//! `wal_bytes` what `quorate.storage` calls `log_appended_bytes`. Nothing is archived, so nothing fails.

use base::Result;

use crate::exec::statistics::storage_since;
use crate::exec::Exec;
use catalog::Catalog;
use planner::plan::Row;
use types::numeric::Numeric;
use types::Datum;

fn number(number: u64) -> Datum {
    Datum::Int8(i64::try_from(number).unwrap_or(i64::MAX))
}

fn instant(at: Option<i64>) -> Datum {
    at.map_or(Datum::Null, Datum::TimestampTz)
}

pub(super) fn wal(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let (storage, reset) = storage_since(cx, "wal")?;
    let bytes = i64::try_from(storage.log_appended_bytes).unwrap_or(i64::MAX);
    Ok(vec![vec![
        number(storage.log_appended_frames),
        // The log holds rows, never pages.
        number(0),
        Datum::Numeric(Numeric::from(bytes)),
        number(0),
        number(storage.log_syncs),
        number(storage.log_syncs),
        Datum::Float8(0.0),
        Datum::Float8(0.0),
        instant(reset),
    ]])
}

pub(super) fn archiver(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let (_, reset) = storage_since(cx, "archiver")?;
    Ok(vec![vec![
        number(0),
        Datum::Null,
        Datum::Null,
        number(0),
        Datum::Null,
        Datum::Null,
        instant(reset),
    ]])
}

/// What PostgreSQL reads ahead while it replays: here a task does, and counts nothing.
pub(super) fn prefetch(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let (_, reset) = storage_since(cx, "recovery_prefetch")?;
    let mut row = vec![instant(reset)];
    row.extend((0..6).map(|_| number(0)));
    row.extend((0..3).map(|_| Datum::Int4(0)));
    Ok(vec![row])
}

/// Nobody comes in by GSSAPI.
pub(super) fn gssapi(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let asker = cx.host.shared().settings.current_role();
    let sessions = cx.host.shared().sessions();
    let seen = sessions.iter().filter(|session| {
        let role = session.read(|doing| doing.role);
        role.is_some_and(|role| catalog.sees_sessions_of(asker, role))
    });
    let row = |pid| {
        vec![
            Datum::Int4(pid),
            Datum::Bool(false),
            Datum::Null,
            Datum::Bool(false),
        ]
    };
    Ok(seen.map(|session| row(session.pid())).collect())
}
