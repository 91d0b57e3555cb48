//! What the cluster does: standbys, slots, sessions.

use std::time::Duration;

use base::engine::{ReplicaStatus, SyncState};
use base::Result;

use super::SystemTable;
use crate::catalog::access::READ_ALL_STATS;
use crate::catalog::Catalog;
use crate::exec::Exec;
use crate::plan::Row;
use crate::types::{Datum, Interval};

pub(super) const REPLICATION: SystemTable = SystemTable {
    oid: 12_254,
    name: "pg_stat_replication",
    columns: "pid int4, usesysid oid, usename name, application_name text, client_addr inet, \
              client_hostname text, client_port int4, backend_start timestamptz, \
              backend_xmin xid, state text, sent_lsn pg_lsn, write_lsn pg_lsn, \
              flush_lsn pg_lsn, replay_lsn pg_lsn, write_lag interval, flush_lag interval, \
              replay_lag interval, sync_priority int4, sync_state text, reply_time timestamptz",
    rows: replication,
};

pub(super) const SLOTS: SystemTable = SystemTable {
    oid: 12_275,
    name: "pg_replication_slots",
    columns: "slot_name name, plugin name, slot_type text, datoid oid, database name, \
              temporary bool, active bool, active_pid int4, xmin xid, catalog_xmin xid, \
              restart_lsn pg_lsn, confirmed_flush_lsn pg_lsn, wal_status text, \
              safe_wal_size int8, two_phase bool",
    rows: slots,
};

pub(super) const RECEIVER: SystemTable = SystemTable {
    oid: 12_236,
    name: "pg_stat_wal_receiver",
    columns: "pid int4, status text, receive_start_lsn pg_lsn, receive_start_tli int4, \
              written_lsn pg_lsn, flushed_lsn pg_lsn, received_tli int4, \
              last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, \
              latest_end_lsn pg_lsn, latest_end_time timestamptz, slot_name text, \
              sender_host text, sender_port int4, conninfo text",
    rows: receiver,
};

/// What a standby gets from its leader. The timeline is the term.
fn receiver(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let rows = receiver_rows(cx)?;
    Ok(guarded(catalog, cx, 1, rows))
}

/// Rows as one sees them who may not know what the sessions of others do: the first columns alone.
fn guarded(catalog: &Catalog, cx: &Exec<'_>, open: usize, mut rows: Vec<Row>) -> Vec<Row> {
    let asker = cx.session.settings.current_role();
    if !catalog.has_privileges_of(asker, READ_ALL_STATS) {
        for row in &mut rows {
            row[open..].fill(Datum::Null);
        }
    }
    rows
}

fn receiver_rows(cx: &Exec<'_>) -> Result<Vec<Row>> {
    let status = cx.session.engine.status();
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
fn replication(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let status = cx.session.engine.status();
    let owner = catalog.role_by_oid(super::SUPERUSER);
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
            Datum::Oid(super::SUPERUSER),
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

fn slots(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let status = cx.session.engine.status();
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
