//! What the cluster does: standbys, slots, sessions.

use std::time::Duration;

use base::engine::{ReplicaStatus, SyncState};
use base::Result;

use crate::exec::Exec;
use catalog::access::READ_ALL_STATS;
use catalog::{Catalog, SUPERUSER};
use planner::plan::Row;
use types::{Datum, Interval};

/// What a standby gets from its leader. The timeline is the term.
pub(super) fn receiver(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let rows = receiver_rows(cx)?;
    Ok(guarded(catalog, cx, 1, rows))
}

/// Rows as one sees them who may not know what the sessions of others do: the first columns alone.
fn guarded(catalog: &Catalog, cx: &Exec<'_>, open: usize, mut rows: Vec<Row>) -> Vec<Row> {
    let asker = cx.host.shared().settings.current_role();
    if !catalog.has_privileges_of(asker, READ_ALL_STATS) {
        for row in &mut rows {
            row[open..].fill(Datum::Null);
        }
    }
    rows
}

fn receiver_rows(cx: &Exec<'_>) -> Result<Vec<Row>> {
    let status = cx.host.shared().engine.cluster.status();
    let of = |node| status.replicas.iter().find(|replica| replica.node == node);
    let leader = status.leader.filter(|leader| *leader != status.node);
    let (Some(own), Some(leader)) = (of(status.node), leader.and_then(of)) else {
        return Ok(Vec::new());
    };
    let (host, port) = host_and_port(&leader.peer_address);
    let timeline = i32::try_from(status.term.0).unwrap_or(i32::MAX);
    let lsn = |lsn: base::Lsn| Datum::Unsigned8(lsn.0);
    Ok(vec![vec![
        pid(leader),
        Datum::text("streaming"),
        Datum::Null,
        Datum::Null,
        lsn(own.received.max(own.flushed)),
        lsn(own.flushed),
        Datum::Int4(timeline),
        Datum::Null,
        time(leader.reported_at),
        lsn(status.commit),
        Datum::Null,
        Datum::text(&*own.name),
        host,
        port,
        Datum::text(format!("application_name={}", own.name)),
    ]])
}

pub(super) fn text_or_null(text: Option<&str>) -> Datum {
    text.map_or(Datum::Null, Datum::text)
}

fn lag(lag: Option<Duration>) -> Datum {
    let micros = lag.and_then(|lag| i64::try_from(lag.as_micros()).ok());
    micros.map_or(Datum::Null, |micros| {
        Datum::Interval(Interval {
            months: 0,
            days: 0,
            micros,
        })
    })
}

fn time(time: Option<base::Timestamp>) -> Datum {
    time.map_or(Datum::Null, |time| Datum::TimestampTz(time.0))
}

/// A number for a node's process that is the same each time it is asked for.
fn pid(replica: &ReplicaStatus) -> Datum {
    Datum::Int4(i32::try_from(replica.node.0).unwrap_or(i32::MAX))
}

fn host_and_port(address: &str) -> (Datum, Datum) {
    match address.rsplit_once(':') {
        Some((host, port)) => (
            Datum::text(host),
            port.parse().map_or(Datum::Null, Datum::Int4),
        ),
        None => (Datum::Null, Datum::Null),
    }
}

/// Those that are connected, as in PostgreSQL, and those that were given up: of these nobody would
/// know otherwise why no commit waits for them.
pub(super) fn replication(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let status = cx.host.shared().engine.cluster.status();
    let owner = catalog.role_by_oid(SUPERUSER);
    let mut rows = Vec::new();
    for replica in &status.replicas {
        let is_shown = replica.connected || replica.sync_state == SyncState::GivenUp;
        if replica.node == status.node || !is_shown {
            continue;
        }
        let (host, port) = host_and_port(&replica.peer_address);
        let behind = replica.received < replica.sent && replica.write_lag.is_none();
        let state = match behind {
            _ if !replica.connected => "silent",
            true => "catchup",
            false => "streaming",
        };
        rows.push(vec![
            pid(replica),
            Datum::Oid(SUPERUSER),
            text_or_null(owner.map(|role| role.name.as_str())),
            Datum::text(&*replica.name),
            host,
            Datum::Null,
            port,
            time(replica.connected_since),
            Datum::Null,
            Datum::text(state),
            Datum::Unsigned8(replica.sent.0),
            Datum::Unsigned8(replica.received.0),
            Datum::Unsigned8(replica.flushed.0),
            Datum::Unsigned8(replica.applied.0),
            lag(replica.write_lag),
            lag(replica.flush_lag),
            lag(replica.replay_lag),
            Datum::Int4(i32::try_from(replica.sync_priority).unwrap_or(i32::MAX)),
            Datum::text(replica.sync_state.name()),
            time(replica.reported_at),
        ]);
    }
    Ok(guarded(catalog, cx, 4, rows))
}

pub(super) fn slots(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let status = cx.host.shared().engine.cluster.status();
    // A standby keeps log for nobody.
    let leads = status.leader == Some(status.node);
    let others = status
        .replicas
        .iter()
        .filter(|replica| leads && replica.node != status.node);
    Ok(others
        .map(|replica| {
            vec![
                Datum::text(&*replica.name),
                Datum::Null,
                Datum::text("physical"),
                Datum::Null,
                Datum::Null,
                Datum::Bool(false),
                Datum::Bool(replica.connected),
                if replica.connected {
                    pid(replica)
                } else {
                    Datum::Null
                },
                Datum::Null,
                Datum::Null,
                match replica.log_left {
                    Some(_) => Datum::Unsigned8(replica.flushed.0),
                    None => Datum::Null,
                },
                Datum::Null,
                Datum::text(match replica.log_left {
                    Some(_) => "reserved",
                    None => "lost",
                }),
                replica.log_left.map_or(Datum::Null, |left| {
                    Datum::Int8(i64::try_from(left).unwrap_or(i64::MAX))
                }),
                Datum::Bool(false),
            ]
        })
        .collect())
}
