//! Functions that tell where the log stands: on the node that leads, or on a standby.

use base::engine::ReplicaStatus;
use base::{Error, Result, SqlState};

use super::Exec;
use types::Datum;

const CURRENT: [&str; 3] = [
    "pg_current_wal_lsn",
    "pg_current_wal_insert_lsn",
    "pg_current_wal_flush_lsn",
];

const OF_STANDBY: [&str; 5] = [
    "pg_is_in_recovery",
    "pg_last_wal_receive_lsn",
    "pg_last_wal_replay_lsn",
    "pg_last_xact_replay_timestamp",
    "pg_is_wal_replay_paused",
];

/// Whether a function is one of these.
pub fn is_one(name: &str) -> bool {
    CURRENT.contains(&name) || OF_STANDBY.contains(&name)
}

/// Computes one of them.
pub fn call(cx: &mut Exec<'_>, name: &str) -> Result<Datum> {
    let engine = &cx.session.engine;
    let is_standby = engine.is_standby();
    if name == "pg_is_in_recovery" {
        return Ok(Datum::Bool(is_standby));
    }
    let refused = |message: &str, hint: &str| {
        let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        Error::new(state, message).with_hint(hint)
    };
    if CURRENT.contains(&name) && is_standby {
        return Err(refused(
            "recovery is in progress",
            "WAL control functions cannot be executed during recovery.",
        ));
    }
    if name == "pg_is_wal_replay_paused" {
        return match is_standby {
            true => Ok(Datum::Bool(false)),
            false => Err(refused(
                "recovery is not in progress",
                "Recovery control functions can only be executed during recovery.",
            )),
        };
    }
    let status = engine.status();
    let mut replicas = status.replicas.iter();
    let own = replicas.find(|replica| replica.node == status.node);
    let own = own.ok_or_else(|| Error::internal("a node that is no member"))?;
    Ok(match name {
        "pg_current_wal_flush_lsn" => lsn(own.flushed),
        _ if CURRENT.contains(&name) => lsn(written(own)),
        // A leader has replayed nothing.
        _ if !is_standby => Datum::Null,
        "pg_last_wal_receive_lsn" => lsn(own.flushed),
        "pg_last_wal_replay_lsn" => lsn(own.applied),
        _ => engine
            .replayed_until()
            .map_or(Datum::Null, |time| Datum::TimestampTz(time.0)),
    })
}

fn written(own: &ReplicaStatus) -> base::Lsn {
    own.received.max(own.flushed)
}

fn lsn(lsn: base::Lsn) -> Datum {
    Datum::Unsigned8(lsn.0)
}
