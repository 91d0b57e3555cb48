//! Functions that tell where the log stands: on the node that leads, or on a standby.

use base::engine::ReplicaStatus;
use base::{Error, Result, SqlState};

use super::Exec;
use functions::session::WalFunction;
use types::Datum;

/// Computes such a function.
pub fn call(cx: &mut Exec<'_>, which: WalFunction) -> Result<Datum> {
    let is_standby = cx.host.shared().engine.cluster.is_standby();
    match which {
        WalFunction::IsInRecovery => Ok(Datum::Bool(is_standby)),
        WalFunction::IsReplayPaused if is_standby => Ok(Datum::Bool(false)),
        WalFunction::ReplayPauseState if is_standby => Ok(Datum::text("not paused")),
        WalFunction::PauseReplay if is_standby => {
            Err(Error::unsupported("pausing what a standby applies"))
        }
        WalFunction::IsReplayPaused | WalFunction::ReplayPauseState | WalFunction::PauseReplay => {
            Err(refused(
                "recovery is not in progress",
                "Recovery control functions can only be executed during recovery.",
            ))
        }
        WalFunction::Written | WalFunction::Flushed if is_standby => Err(refused(
            "recovery is in progress",
            "WAL control functions cannot be executed during recovery.",
        )),
        WalFunction::Written => Ok(lsn(written(&own(cx)?))),
        WalFunction::Flushed => Ok(lsn(own(cx)?.flushed)),
        // A leader has replayed nothing.
        WalFunction::Received | WalFunction::Replayed | WalFunction::ReplayedUntil
            if !is_standby =>
        {
            Ok(Datum::Null)
        }
        WalFunction::Received => Ok(lsn(own(cx)?.flushed)),
        WalFunction::Replayed => Ok(lsn(own(cx)?.applied)),
        WalFunction::ReplayedUntil => {
            let until = cx.host.shared().engine.cluster.replayed_until();
            Ok(until.map_or(Datum::Null, |time| Datum::TimestampTz(time.0)))
        }
    }
}

fn refused(message: &str, hint: &str) -> Error {
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).with_hint(hint)
}

/// What is known of the node that serves the session.
fn own(cx: &Exec<'_>) -> Result<ReplicaStatus> {
    let status = cx.host.shared().engine.cluster.status();
    let mut replicas = status.replicas.into_iter();
    let own = replicas.find(|replica| replica.node == status.node);
    own.ok_or_else(|| Error::internal("a node that is no member"))
}

fn written(own: &ReplicaStatus) -> base::Lsn {
    own.received.max(own.flushed)
}

fn lsn(lsn: base::Lsn) -> Datum {
    Datum::Unsigned8(lsn.0)
}
