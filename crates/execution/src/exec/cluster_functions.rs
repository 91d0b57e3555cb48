//! The functions of schema `quorate`, by which a superuser changes who belongs to the cluster.
//!
//! ```text
//! select quorate.add_node('n4', '10.0.0.4:6433', '10.0.0.4:5433');        4, its number
//! select quorate.promote_node('n4');                                      0/1A2B
//! select quorate.switchover('n4');                                        n4
//! select quorate.add_group();                                             2, its number
//! select quorate.check_consistency();                                     0, ranges that differ
//! ```
//! They do what `quorate node` and `quorate switchover` do. A change is in effect when the function
//! returns, whatever becomes of the transaction. A switchover begins when the statement is over,
//! because its own transaction would stand in the way; the session goes the way of all others.

use std::sync::Arc;

use base::cluster::{Administration, NewNode};
use base::coro;
use base::{Error, Result, SqlState};

use super::Exec;
use functions::session::ClusterFunction;
use types::Datum;

/// The priority of a node for which nobody asks another.
const PRIORITY_USUAL: u32 = 100;

/// Calls one of them.
///
/// # Errors
/// As the engine.
pub(super) fn call(cx: &mut Exec<'_>, which: ClusterFunction, args: &[Datum]) -> Result<Datum> {
    let wish = wish(which, args)?;
    if which == ClusterFunction::PromoteAlone && leads(cx) {
        let message = "recovery is not in progress";
        let hint = "Recovery control functions can only be executed during recovery.";
        let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        return Err(Error::new(state, message).with_hint(hint));
    }
    let answer = cx.host.shared().engine.administrator()?.administer(wish);
    let number = coro::wait(answer)??;
    Ok(match which {
        ClusterFunction::PromoteAlone => Datum::Bool(true),
        ClusterFunction::AddNode | ClusterFunction::CheckConsistency => {
            Datum::Int8(i64::try_from(number).unwrap_or(i64::MAX))
        }
        ClusterFunction::AddGroup => Datum::Int4(i32::try_from(number).unwrap_or(i32::MAX)),
        ClusterFunction::Switchover => {
            let status = cx.host.shared().engine.cluster.status();
            let mut replicas = status.replicas.iter();
            let found = replicas.find(|replica| replica.node.0 == number);
            found.map_or(Datum::Null, |replica| Datum::text(&*replica.name))
        }
        ClusterFunction::RemoveNode
        | ClusterFunction::PromoteNode
        | ClusterFunction::DemoteNode
        | ClusterFunction::SetNode
        | ClusterFunction::SetLeaderZone => Datum::Unsigned8(number),
    })
}

fn leads(cx: &Exec<'_>) -> bool {
    let status = cx.host.shared().engine.cluster.status();
    status.leader == Some(status.node)
}

fn wish(which: ClusterFunction, args: &[Datum]) -> Result<Administration> {
    let text = |place: usize| text(args, place);
    let needed = |place: usize| {
        text(place).ok_or_else(|| {
            let message = "names and addresses of nodes must not be null";
            Error::new(SqlState::of("22004"), message)
        })
    };
    Ok(match which {
        ClusterFunction::AddNode => Administration::AddNode(NewNode {
            name: needed(0)?,
            peer_address: needed(1)?,
            sql_address: needed(2)?,
            zone: text(3).unwrap_or_else(|| Arc::from("")),
            priority: priority(args, 4)?.unwrap_or(PRIORITY_USUAL),
        }),
        ClusterFunction::RemoveNode => Administration::RemoveNode(needed(0)?),
        ClusterFunction::PromoteNode => Administration::PromoteNode(needed(0)?),
        ClusterFunction::DemoteNode => Administration::DemoteNode(needed(0)?),
        ClusterFunction::SetNode => Administration::SetNode {
            name: needed(0)?,
            zone: text(1),
            priority: priority(args, 2)?,
            key: None,
        },
        ClusterFunction::SetLeaderZone => Administration::SetLeaderZone(needed(0)?),
        ClusterFunction::Switchover => Administration::Switchover(text(0)),
        ClusterFunction::AddGroup => Administration::AddGroup,
        ClusterFunction::CheckConsistency => Administration::CheckConsistency,
        ClusterFunction::PromoteAlone => Administration::PromoteAlone,
    })
}

fn text(args: &[Datum], place: usize) -> Option<Arc<str>> {
    match args.get(place) {
        Some(Datum::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

fn priority(args: &[Datum], place: usize) -> Result<Option<u32>> {
    let Some(given) = args.get(place).and_then(Datum::as_i64) else {
        return Ok(None);
    };
    let priority = u32::try_from(given).map_err(|_| {
        let message = "a priority must not be negative";
        Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
    });
    priority.map(Some)
}
