//! What was counted ([`crate::state::statistics`]), one figure a function: `pg_stat_get_numscans` and its
//! kin, of which the views are made (`catalog/src/system/views.sql`).
//!
//! ```text
//! select pg_stat_get_tuples_inserted('t'::regclass)     what ended transactions have inserted on this node
//! ```
//! What is asked for first in a transaction settles what the others show
//! ([`Shared::statistics`](crate::state::Shared::statistics)).
//!
//! # What it leaves out
//! Blocks of single relations and databases, which nobody counts: NULL. `quorate.storage` has those of a
//! node. Rows that are updated without a change of their index entries are not told apart: 0, as are
//! dead rows, of which there are none.

use std::sync::Arc;

use base::engine::StorageStatus;
use base::{Error, Result, SqlState};

use super::{sizes, Exec};
use crate::state::activity::{Activity, Doing, SessionState};
use crate::state::secrets;
use crate::state::statistics::{
    Database, DatabaseCounts, Relation, RelationCounts, RoutineCounts, Statistics,
};
use catalog::statistics::TableStatistics;
use functions::session::StatisticsFunction;
use planner::plan::Scan;
use types::network::host_address;
use types::{Array, Datum, TypeId};

use StatisticsFunction as Figure;

/// What `pg_stat_reset_shared` takes.
const SHARED: [&str; 4] = ["archiver", "bgwriter", "recovery_prefetch", "wal"];

/// The kinds of statistics that there is one of, for `pg_stat_have_stats`.
const KINDS_OF_NODE: [&str; 5] = ["archiver", "bgwriter", "checkpointer", "slru", "wal"];

/// The relation for which a scan is counted, by its oid, and whether that is an index.
pub(super) fn counted(scan: &Scan) -> (u32, bool) {
    let access = &scan.access;
    let is_whole = access.equal.is_empty() && access.low.is_none() && access.high.is_none();
    match scan.by_index() {
        Some(index) if scan.index.is_some() || !is_whole => (index.oid, true),
        _ => (scan.table.oid, false),
    }
}

/// Computes one of the functions.
pub(super) fn call(cx: &mut Exec<'_>, which: StatisticsFunction, args: &[Datum]) -> Result<Datum> {
    if let Some(figure) = of_relation(which) {
        let known = relation(cx, oid(&args[0]))?;
        return Ok(number(figure(&known)));
    }
    if let Some(figure) = of_transaction(which) {
        let counting = &cx.host.shared().counting;
        let counts = counting.of_relation(oid(&args[0])).unwrap_or_default();
        return Ok(number(figure(&counts)));
    }
    if let Some(figure) = of_database(which) {
        let known = database(cx, oid(&args[0]))?;
        return Ok(number(figure(&known.counts)));
    }
    if let Some(time) = time_of_database(which) {
        let known = database(cx, oid(&args[0]))?;
        return Ok(milliseconds(time(&known.counts)));
    }
    if let Some(value) = of_node(cx, which)? {
        return Ok(value);
    }
    if which == Figure::BackendIdset {
        let sessions = cx.host.shared().sessions();
        let begun = sessions.iter().filter(|session| session.doing().is_some());
        let numbers = begun.map(|session| Datum::Int4(session.pid())).collect();
        return Ok(Datum::Array(Arc::new(Array::of(TypeId::INT4, numbers))));
    }
    if let Some(value) = of_backend(cx, which, args)? {
        return Ok(value);
    }
    if let Some(value) = of_routine(cx, which, args)? {
        return Ok(value);
    }
    if let Some(value) = of_analysis(cx, which, args)? {
        return Ok(value);
    }
    others(cx, which, args)
}

fn oid(datum: &Datum) -> u32 {
    match datum {
        Datum::Oid(oid) => *oid,
        other => other.as_i64().map_or(0, |oid| oid as u32),
    }
}

fn number(number: u64) -> Datum {
    Datum::Int8(i64::try_from(number).unwrap_or(i64::MAX))
}

fn milliseconds(micros: u64) -> Datum {
    Datum::Float8(micros as f64 / 1_000.0)
}

fn instant(at: Option<i64>) -> Datum {
    at.map_or(Datum::Null, Datum::TimestampTz)
}

fn relation(cx: &mut Exec<'_>, oid: u32) -> Result<Relation> {
    let of = cx.catalog.database.oid;
    let snapshot = cx.host.session().statistics(of)?;
    Ok(snapshot.relations.get(&oid).copied().unwrap_or_default())
}

fn database(cx: &mut Exec<'_>, oid: u32) -> Result<Database> {
    let of = cx.catalog.database.oid;
    let snapshot = cx.host.session().statistics(of)?;
    Ok(snapshot.databases.get(&oid).copied().unwrap_or_default())
}

/// A figure of a relation, as ended transactions have left it.
fn of_relation(which: Figure) -> Option<fn(&Relation) -> u64> {
    Some(match which {
        Figure::Numscans => |known| known.counts.scans,
        Figure::TuplesReturned => |known| known.counts.returned,
        Figure::TuplesFetched => |known| known.counts.fetched,
        Figure::TuplesInserted => |known| known.counts.inserted,
        Figure::TuplesUpdated => |known| known.counts.updated,
        Figure::TuplesDeleted => |known| known.counts.deleted,
        Figure::ModSinceAnalyze => Relation::changed,
        Figure::InsSinceVacuum => |known| known.counts.inserted.saturating_sub(known.inserted_then),
        Figure::VacuumCount => |known| known.vacuumed.map_or(0, |(_, count)| count),
        Figure::TuplesHotUpdated | Figure::DeadTuples | Figure::AutovacuumCount => |_| 0,
        _ => return None,
    })
}

/// A figure of a relation in the open transaction.
fn of_transaction(which: Figure) -> Option<fn(&RelationCounts) -> u64> {
    Some(match which {
        Figure::XactNumscans => |counts| counts.scans,
        Figure::XactTuplesReturned => |counts| counts.returned,
        Figure::XactTuplesFetched => |counts| counts.fetched,
        Figure::XactTuplesInserted => |counts| counts.inserted,
        Figure::XactTuplesUpdated => |counts| counts.updated,
        Figure::XactTuplesDeleted => |counts| counts.deleted,
        Figure::XactTuplesHotUpdated => |_| 0,
        _ => return None,
    })
}

/// A figure of a database.
fn of_database(which: Figure) -> Option<fn(&DatabaseCounts) -> u64> {
    Some(match which {
        Figure::DbXactCommit => |counts| counts.commits,
        Figure::DbXactRollback => |counts| counts.rollbacks,
        Figure::DbTuplesReturned => |counts| counts.relations.returned,
        Figure::DbTuplesFetched => |counts| counts.relations.fetched,
        Figure::DbTuplesInserted => |counts| counts.relations.inserted,
        Figure::DbTuplesUpdated => |counts| counts.relations.updated,
        Figure::DbTuplesDeleted => |counts| counts.relations.deleted,
        Figure::DbTempFiles => |counts| counts.temp_files,
        Figure::DbTempBytes => |counts| counts.temp_bytes,
        Figure::DbDeadlocks => |counts| counts.deadlocks,
        Figure::DbSessions => |counts| counts.sessions,
        Figure::DbSessionsAbandoned => |counts| counts.abandoned,
        Figure::DbSessionsFatal => |counts| counts.fatal,
        Figure::DbSessionsKilled => |counts| counts.killed,
        // A standby ends no query for what it replays.
        Figure::DbConflictAll
        | Figure::DbConflictTablespace
        | Figure::DbConflictLock
        | Figure::DbConflictSnapshot
        | Figure::DbConflictBufferpin
        | Figure::DbConflictStartupDeadlock => |_| 0,
        _ => return None,
    })
}

fn time_of_database(which: Figure) -> Option<fn(&DatabaseCounts) -> u64> {
    Some(match which {
        Figure::DbSessionTime => |counts| counts.session_time,
        Figure::DbActiveTime => |counts| counts.active_time,
        Figure::DbIdleInTransactionTime => |counts| counts.idle_in_transaction_time,
        _ => return None,
    })
}

/// What all replicas of the node have in memory and on disk, since statistics of that name were
/// forgotten, and when that was.
pub fn storage_since(
    cx: &mut Exec<'_>,
    what: &'static str,
) -> Result<(StorageStatus, Option<i64>)> {
    let of = cx.catalog.database.oid;
    let now = storage(cx);
    let snapshot = cx.host.session().statistics(of)?;
    let started = cx.host.shared().start.registry.as_ref();
    let started = started.and_then(|registry| registry.started());
    let Some((reset, then)) = snapshot.shared.get(what) else {
        return Ok((now, started));
    };
    let left = |now: u64, then: u64| now.saturating_sub(then);
    let write_time = now
        .checkpoint_write_time
        .checked_sub(then.checkpoint_write_time);
    let since = StorageStatus {
        pages_read: left(now.pages_read, then.pages_read),
        pages_written: left(now.pages_written, then.pages_written),
        log_appended_bytes: left(now.log_appended_bytes, then.log_appended_bytes),
        log_appended_frames: left(now.log_appended_frames, then.log_appended_frames),
        log_syncs: left(now.log_syncs, then.log_syncs),
        checkpoints_timed: left(now.checkpoints_timed, then.checkpoints_timed),
        checkpoints_requested: left(now.checkpoints_requested, then.checkpoints_requested),
        checkpoint_write_time: write_time.unwrap_or_default(),
        ..now
    };
    Ok((since, Some(*reset)))
}

fn storage(cx: &Exec<'_>) -> StorageStatus {
    let mut sum = StorageStatus::default();
    for one in cx.host.shared().engine.storage.storage() {
        sum.pages_read += one.pages_read;
        sum.pages_written += one.pages_written;
        sum.log_appended_bytes += one.log_appended_bytes;
        sum.log_appended_frames += one.log_appended_frames;
        sum.log_syncs += one.log_syncs;
        sum.checkpoints_timed += one.checkpoints_timed;
        sum.checkpoints_requested += one.checkpoints_requested;
        sum.checkpoint_write_time += one.checkpoint_write_time;
    }
    sum
}

/// A figure of the node as a whole.
fn of_node(cx: &mut Exec<'_>, which: Figure) -> Result<Option<Datum>> {
    let figure = match which {
        Figure::BgwriterTimedCheckpoints => |storage: &StorageStatus| storage.checkpoints_timed,
        Figure::BgwriterRequestedCheckpoints => {
            |storage: &StorageStatus| storage.checkpoints_requested
        }
        Figure::BufWrittenBackend => |storage: &StorageStatus| storage.pages_written,
        Figure::BufAlloc => |storage: &StorageStatus| storage.pages_read,
        Figure::BgwriterBufWrittenClean
        | Figure::BgwriterMaxwrittenClean
        | Figure::BufFsyncBackend => |_: &StorageStatus| 0,
        Figure::BgwriterBufWrittenCheckpoints => return Ok(Some(Datum::Null)),
        // Pages are synced while they are written.
        Figure::CheckpointSyncTime => return Ok(Some(Datum::Float8(0.0))),
        Figure::CheckpointWriteTime => {
            let (storage, _) = storage_since(cx, "bgwriter")?;
            let seconds = storage.checkpoint_write_time.as_secs_f64();
            return Ok(Some(Datum::Float8((seconds * 1e6).round() / 1e3)));
        }
        Figure::BgwriterStatsReset => return Ok(Some(instant(storage_since(cx, "bgwriter")?.1))),
        _ => return Ok(None),
    };
    let (storage, _) = storage_since(cx, "bgwriter")?;
    Ok(Some(number(figure(&storage))))
}

/// The type and the name of what a session waits for, if it waits.
pub fn wait_of(
    activity: &Activity,
    state: SessionState,
    waits_for_lock: bool,
) -> Option<[&'static str; 2]> {
    if activity.is_held() {
        return Some(["IPC", "SyncRep"]);
    }
    match state {
        SessionState::Active if waits_for_lock => Some(["Lock", "transactionid"]),
        SessionState::Active => None,
        _ => Some(["Client", "ClientRead"]),
    }
}

/// What one session does; it is called by its number.
fn of_backend(cx: &mut Exec<'_>, which: Figure, args: &[Datum]) -> Result<Option<Datum>> {
    let is_known = matches!(
        which,
        Figure::BackendActivity
            | Figure::BackendActivityStart
            | Figure::BackendClientAddr
            | Figure::BackendClientPort
            | Figure::BackendDbid
            | Figure::BackendPid
            | Figure::BackendStart
            | Figure::BackendUserid
            | Figure::BackendWaitEvent
            | Figure::BackendWaitEventType
            | Figure::BackendXactStart
    );
    if !is_known {
        return Ok(None);
    }
    let wanted = args[0].as_i64();
    let sessions = cx.host.shared().sessions();
    let found = sessions
        .iter()
        .find(|session| Some(i64::from(session.pid())) == wanted);
    let found = found.and_then(|session| Some((session, session.doing()?)));
    let (may_see, gone) = (
        "<insufficient privilege>",
        "<backend information not available>",
    );
    let Some((session, doing)) = found else {
        return Ok(Some(match which {
            Figure::BackendActivity => Datum::text(gone),
            _ => Datum::Null,
        }));
    };
    let sees = cx.catalog.sees_sessions_of(cx.role(), doing.role);
    let databases = &cx.catalog.databases;
    let database = databases.iter().find(|known| known.name == doing.database);
    Ok(Some(match which {
        Figure::BackendPid => Datum::Int4(session.pid()),
        Figure::BackendUserid => Datum::Oid(doing.role),
        Figure::BackendDbid => database.map_or(Datum::Null, |known| Datum::Oid(known.oid)),
        Figure::BackendActivity if !sees => Datum::text(may_see),
        _ if !sees => Datum::Null,
        _ => details(cx, which, session, &doing),
    }))
}

/// What only those see of a session who see all of it.
fn details(cx: &Exec<'_>, which: Figure, session: &Arc<Activity>, doing: &Doing) -> Datum {
    let wait = |place: usize| {
        let locks = cx.host.shared().engine.locks.as_deref();
        let number = base::SessionId(session.pid() as u32);
        let waits = locks.is_some_and(|locks| !locks.blockers(number).is_empty());
        let wait = wait_of(session, doing.state, waits);
        wait.map_or(Datum::Null, |wait| Datum::text(wait[place]))
    };
    match which {
        Figure::BackendActivity => Datum::text(secrets::mask(&doing.query)),
        Figure::BackendActivityStart => instant(doing.statement),
        Figure::BackendXactStart => instant(doing.transaction),
        Figure::BackendStart => Datum::TimestampTz(doing.started),
        Figure::BackendClientAddr => host_address(doing.client_address.as_deref()),
        Figure::BackendClientPort => {
            let port = doing.client_port;
            port.map_or(Datum::Null, |port| Datum::Int4(i32::from(port)))
        }
        Figure::BackendWaitEventType => wait(0),
        Figure::BackendWaitEvent => wait(1),
        _ => Datum::Null,
    }
}

/// How a routine was called; NULL if it never was.
fn of_routine(cx: &mut Exec<'_>, which: Figure, args: &[Datum]) -> Result<Option<Datum>> {
    let figure: fn(&RoutineCounts) -> Datum = match which {
        Figure::FunctionCalls | Figure::XactFunctionCalls => |counts| number(counts.calls),
        Figure::FunctionTotalTime | Figure::XactFunctionTotalTime => {
            |counts| milliseconds(counts.total)
        }
        Figure::FunctionSelfTime | Figure::XactFunctionSelfTime => {
            |counts| milliseconds(counts.own)
        }
        _ => return Ok(None),
    };
    let of_transaction = matches!(
        which,
        Figure::XactFunctionCalls | Figure::XactFunctionTotalTime | Figure::XactFunctionSelfTime
    );
    let (routine, of) = (oid(&args[0]), cx.catalog.database.oid);
    let counts = match of_transaction {
        true => cx.host.shared().counting.of_routine(routine),
        false => cx
            .host
            .session()
            .statistics(of)?
            .routines
            .get(&routine)
            .copied(),
    };
    Ok(Some(counts.map_or(Datum::Null, |counts| figure(&counts))))
}

/// When and how often ANALYZE and VACUUM have looked at a table, and what it has now.
fn of_analysis(cx: &mut Exec<'_>, which: Figure, args: &[Datum]) -> Result<Option<Datum>> {
    let is_known = matches!(
        which,
        Figure::LastAnalyzeTime
            | Figure::LastAutoanalyzeTime
            | Figure::AnalyzeCount
            | Figure::AutoanalyzeCount
            | Figure::LastVacuumTime
            | Figure::LastAutovacuumTime
            | Figure::LiveTuples
    );
    if !is_known {
        return Ok(None);
    }
    let (table, of) = (oid(&args[0]), cx.catalog.database.oid);
    let known = relation(cx, table)?;
    let cleared = database(cx, of)?.cleared.max(known.reset);
    let found = cx.catalog.table_statistics(table);
    let since = |last: fn(&TableStatistics) -> Option<i64>| {
        let last = found.and_then(|found| last(found));
        last.filter(|last| cleared.is_none_or(|cleared| *last > cleared))
    };
    let count = |last: fn(&TableStatistics) -> Option<i64>, count: fn(&TableStatistics) -> u64| {
        number(since(last).and(found).map_or(0, |found| count(found)))
    };
    Ok(Some(match which {
        Figure::LastAnalyzeTime => instant(since(TableStatistics::last_analyze)),
        Figure::LastAutoanalyzeTime => instant(since(TableStatistics::last_auto_analyze)),
        Figure::AnalyzeCount => count(TableStatistics::last_analyze, |found| found.count),
        Figure::AutoanalyzeCount => {
            count(TableStatistics::last_auto_analyze, |found| found.auto_count)
        }
        Figure::LastVacuumTime => instant(known.vacuumed.map(|(at, _)| at)),
        Figure::LiveTuples => {
            let storage = &*cx.host.shared().engine.storage;
            let size = sizes::size_of_relation(cx.catalog, storage, table);
            let is_table = cx.catalog.table_by_oid(table).is_some();
            number(size.filter(|_| is_table).map_or(0, |size| size.rows))
        }
        _ => Datum::Null,
    }))
}

fn others(cx: &mut Exec<'_>, which: Figure, args: &[Datum]) -> Result<Datum> {
    match which {
        Figure::DbNumbackends => {
            let sessions = database(cx, oid(&args[0]))?.sessions;
            Ok(Datum::Int4(i32::try_from(sessions).unwrap_or(i32::MAX)))
        }
        Figure::DbStatsReset => Ok(instant(database(cx, oid(&args[0]))?.reset)),
        Figure::SnapshotTimestamp => {
            let mode = cx.host.shared().settings.show("stats_fetch_consistency");
            let is_shown = mode.is_ok_and(|(_, mode)| mode == "snapshot");
            let taken = cx.host.shared().counting.snapshot();
            Ok(instant(taken.filter(|_| is_shown).map(|taken| taken.at)))
        }
        Figure::PostmasterStartTime => {
            let registry = cx.host.shared().start.registry.as_ref();
            Ok(instant(registry.and_then(|registry| registry.started())))
        }
        // Whatever has ended is seen at once.
        Figure::ForceNextFlush => Ok(Datum::Void),
        Figure::ClearSnapshot => {
            cx.host.session().counting.clear_snapshot();
            Ok(Datum::Void)
        }
        Figure::HaveStats => have_stats(cx, args),
        Figure::Reset
        | Figure::ResetShared
        | Figure::ResetSlru
        | Figure::ResetSingleTableCounters
        | Figure::ResetSingleFunctionCounters
        | Figure::ResetReplicationSlot
        | Figure::ResetSubscriptionStats => reset(cx, which, args).map(|()| Datum::Void),
        // Nobody counts them.
        _ => Ok(Datum::Null),
    }
}

fn have_stats(cx: &mut Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let (kind, of, object) = (args[0].as_str().to_owned(), oid(&args[1]), oid(&args[2]));
    let own = cx.catalog.database.oid;
    let snapshot = cx.host.session().statistics(own)?;
    let has = match kind.as_str() {
        "database" => object == 0 && snapshot.databases.contains_key(&of),
        "relation" => of == own && snapshot.relations.contains_key(&object),
        "function" => of == own && snapshot.routines.contains_key(&object),
        "replslot" | "subscription" => false,
        kind if KINDS_OF_NODE.contains(&kind) => true,
        kind => {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid statistics kind: \"{kind}\""),
            ))
        }
    };
    Ok(Datum::Bool(has))
}

/// Forgets what was counted. What the transaction has looked at stays as it was, as in PostgreSQL.
fn reset(cx: &mut Exec<'_>, which: Figure, args: &[Datum]) -> Result<()> {
    let shared = cx.host.shared();
    let (sessions, now) = (shared.sessions(), shared.env.wall_clock().0);
    let registry = shared.start.registry.as_ref();
    let node: Option<Arc<Statistics>> = registry.and_then(|registry| registry.statistics());
    let of = cx.catalog.database.oid;
    let node = node.unwrap_or_default();
    match which {
        Figure::Reset => node.reset(of, &sessions, now),
        Figure::ResetSingleTableCounters => {
            node.reset_relation(of, oid(&args[0]), &sessions, now);
        }
        Figure::ResetSingleFunctionCounters => {
            node.reset_routine(of, oid(&args[0]), &sessions, now);
        }
        Figure::ResetShared => {
            let target = args[0].as_str();
            let Some(what) = SHARED.iter().find(|known| **known == target) else {
                let message = format!("unrecognized reset target: \"{target}\"");
                let hint =
                    "Target must be \"archiver\", \"bgwriter\", \"recovery_prefetch\", or \"wal\".";
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint));
            };
            node.reset_shared(what, now, storage(cx));
        }
        Figure::ResetReplicationSlot => check_slot(cx, &args[0])?,
        Figure::ResetSubscriptionStats => {
            if let Datum::Oid(0) = args[0] {
                let message = "invalid subscription OID 0";
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        // There are no such caches.
        _ => {}
    }
    Ok(())
}

/// # Errors
/// 22023 where there is no replication slot of that name.
fn check_slot(cx: &Exec<'_>, name: &Datum) -> Result<()> {
    if name.is_null() {
        return Ok(());
    }
    let name = name.as_str();
    let status = cx.host.shared().engine.cluster.status();
    match status.replicas.iter().any(|replica| &*replica.name == name) {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("replication slot \"{name}\" does not exist"),
        )),
    }
}
