//! Where a group is led, and how its leader is asked: answers are waited for until the leader is lost, the
//! session is told to stop.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::coro;
use base::engine::LockInfo;
use base::env::sleep;
use base::{Error, NodeId, Result};

use super::calls::{decode_answer, Answer, Call, Condition};
use super::link::{Connection, Connections};
use crate::group::Group;

/// Who has been told to stop waiting says so within this, or is given up.
const CANCEL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Where a group is led.
#[derive(Clone)]
pub(in super::super) struct Place {
    /// The group, as this node has it.
    pub group: Arc<Group>,
    /// The node that leads it.
    pub node: NodeId,
    /// The connections to others.
    pub connections: Arc<Connections>,
}

/// What was answered, and what the branch is like since.
pub(super) type Answered = (Result<Answer>, Condition);

/// The branch's leader, or the connection to it, was lost.
pub(super) fn lost() -> Error {
    Error::failover()
}

pub(super) fn unexpected<T>() -> Result<T> {
    Err(Error::internal(
        "a branch of another group answers something else",
    ))
}

/// What ended the wait for an answer.
enum Woken {
    Answer(io::Result<Vec<u8>>),
    Lost,
}

/// How an answer is waited for.
#[derive(Clone, Copy)]
pub(super) enum Wait {
    /// Whatever is said to the session meanwhile.
    ToTheEnd,
    /// As long as the session may wait.
    Interruptible,
}

impl Place {
    /// Ready when this is not the group's leader any more, as far as is known here.
    async fn lost(&self) {
        let node = Some(self.node);
        self.group.until_leadership(|now| now.leader != node).await;
    }

    /// A connection, idle or new.
    pub(super) fn connected(&self) -> Result<Connection> {
        if let Some(idle) = self.connections.take(self.node) {
            return Ok(idle);
        }
        let connected = coro::wait(self.connections.connect(self.node))?;
        connected.map_err(|_| lost())
    }

    /// The answer to the last thing that is said on a connection, which is kept for others then.
    ///
    /// # Errors
    /// 40001 when it does not come.
    pub(super) fn last_answer(&self, connection: &mut Option<Connection>) -> Result<Answered> {
        // Nobody needs what was asked early any more, nor what was wrong with it.
        while connection.as_ref().is_some_and(|one| one.awaited() > 1) {
            let _unneeded = self.answer(connection, Wait::ToTheEnd)?;
        }
        let answer = self.answer(connection, Wait::ToTheEnd)?;
        if let Some(connection) = connection.take() {
            self.connections.give_back(self.node, connection);
        }
        Ok(answer)
    }

    /// Waits for the next answer. The connection is gone if anything else ends the wait, unless the other
    /// side has stopped then.
    pub(super) fn answer(
        &self,
        connection: &mut Option<Connection>,
        wait: Wait,
    ) -> Result<Answered> {
        let mut at_work = connection.take().ok_or_else(lost)?;
        let mut is_lost = pin!(self.lost());
        let woken = std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = at_work.poll_answer(cx) {
                return Poll::Ready(Woken::Answer(answer));
            }
            is_lost.as_mut().poll(cx).map(|()| Woken::Lost)
        });
        let woken = match wait {
            Wait::ToTheEnd => coro::wait_uninterrupted(woken),
            Wait::Interruptible => match coro::wait(woken) {
                Ok(woken) => woken,
                Err(interrupt) => {
                    *connection = self.cancel(at_work);
                    return Err(interrupt.into());
                }
            },
        };
        match woken {
            Woken::Answer(Ok(answer)) => {
                let decoded = decode_answer(&answer).map_err(|_| lost())?;
                *connection = Some(at_work);
                Ok(decoded)
            }
            Woken::Answer(Err(_)) | Woken::Lost => Err(lost()),
        }
    }

    /// Has the other side stop what it does, and waits until it has answered all; none if it does not.
    fn cancel(&self, mut connection: Connection) -> Option<Connection> {
        let mut frame = Vec::new();
        Call::Cancel.encode(&mut frame);
        connection.put(&frame);
        let mut limit = sleep(&**self.group.env(), CANCEL_WAIT_MAX);
        let mut is_lost = pin!(self.lost());
        let stopped = std::future::poll_fn(|cx| {
            while let Poll::Ready(answer) = connection.poll_answer(cx) {
                if answer.is_err() || connection.awaited() == 0 {
                    return Poll::Ready(answer.is_ok());
                }
            }
            if is_lost.as_mut().poll(cx).is_ready() {
                return Poll::Ready(false);
            }
            limit.as_mut().poll(cx).map(|()| false)
        });
        coro::wait_uninterrupted(stopped).then_some(connection)
    }
}

/// Asks another node something that belongs to no transaction.
fn ask_alone(place: &Place, call: &Call) -> Result<Answer> {
    let mut frame = Vec::new();
    call.encode(&mut frame);
    let mut connection = place.connected()?;
    connection.ask(&frame);
    let (answer, _) = place.last_answer(&mut Some(connection))?;
    answer
}

/// For whom a session waits in a group that another node leads.
///
/// # Errors
/// As a branch.
pub(in super::super) fn ask_blockers(
    place: &Place,
    session: base::SessionId,
) -> Result<Vec<base::SessionId>> {
    match ask_alone(place, &Call::Blockers(place.group.id(), session))? {
        Answer::Sessions(sessions) => Ok(sessions),
        _ => unexpected(),
    }
}

/// The locks in a group that another node leads.
///
/// # Errors
/// As a branch.
pub(in super::super) fn ask_locks(place: &Place) -> Result<Vec<LockInfo>> {
    match ask_alone(place, &Call::Locks(place.group.id()))? {
        Answer::Locks(infos) => Ok(infos),
        _ => unexpected(),
    }
}
