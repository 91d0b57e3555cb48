//! What an operator asks of the cluster, at whatever node: it is done where the leader is.
//!
//! ```text
//! quorate node promote n4 ──► n2, its socket ──► Hello(administer) ──► n1, peer port: leads
//!        7412 ◄── Outcome ◄───────────── Welcome, Outcome ◄──────────────┘
//! ```
//! What is asked in SQL is asked of the leader already, which serves the session.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::cluster::Administration;
use base::env::{sleep, write_all, Stream};
use base::framed::{put_framed, Incoming};
use base::{Error, NodeId, Result, SqlState};
use kv::group::is_not_leader;

use crate::peers::answer;
use crate::server::{no_leader, Node, LEADER_LOOK, LEADER_WAIT_MAX};
use crate::wait::timeout;
use crate::wire::{Answer, Outcome, Purpose, HELLO_BYTES_MAX};

/// A leader that has not answered after this is given up; what becomes of the wish is unknown then.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(120);

impl Node {
    /// Does what an operator asks for, here or where the leader is.
    ///
    /// # Errors
    /// As [`kv::Group::administer`]; 57P03 without a leader; 08007 when the leader was lost on the
    /// way.
    pub async fn administer(&self, wish: Administration) -> Result<u64> {
        if wish.is_local() {
            return self.hosting.promote_alone().await;
        }
        let deadline = self.env.now().after(LEADER_WAIT_MAX);
        loop {
            let outcome = match self.group.leader() {
                Some(leader) if leader != self.config.node => self.forward(leader, &wish).await,
                _ => Some(self.administer_here(&wish).await),
            };
            match outcome {
                Some(Err(error)) if is_not_leader(&error) => {}
                Some(outcome) => return outcome,
                None => {}
            }
            if self.env.now() >= deadline {
                return Err(no_leader(self));
            }
            sleep(&*self.env, LEADER_LOOK).await;
        }
    }

    /// As the leader, if this node leads. One that is to vote no more hands over first, and then
    /// it is the next leader's to do.
    pub(crate) async fn administer_here(&self, wish: &Administration) -> Result<u64> {
        let leaves = match wish {
            Administration::RemoveNode(name) | Administration::DemoteNode(name) => Some(name),
            _ => None,
        };
        let directory = self.group.directory();
        let this = directory.member(self.config.node);
        let votes_no_more = this.is_some_and(|this| leaves == Some(&this.name) && this.voter);
        if votes_no_more && self.group.leading().is_some() {
            self.group.switchover(None).await?;
        }
        let in_first = async |wish| self.group.administer(wish).await;
        self.hosting.administer(wish.clone(), in_first).await
    }

    /// Asks the leader; nothing when it does not lead or cannot be reached.
    async fn forward(&self, leader: NodeId, wish: &Administration) -> Option<Result<u64>> {
        let member = self.group.directory().member(leader)?.clone();
        let purpose = Purpose::Administer(wish.clone());
        let hello = self.peers.hello(leader, purpose);
        let (mut stream, first) = self.peers.greet(&member, &hello).await.ok()?;
        let mut incoming = Incoming::after(first);
        let outcome = incoming.frame(&mut *stream, HELLO_BYTES_MAX);
        let outcome = match timeout(&*self.env, ANSWER_WAIT_MAX, outcome).await {
            Some(Ok(Some(bytes))) => Outcome::decode(bytes),
            _ => Err(Error::new(
                SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
                "the leader was lost before it said what became of it",
            )),
        };
        Some(outcome.and_then(|outcome| outcome.0))
    }
}

/// Does what another node asks for in an operator's name.
pub(crate) async fn serve(
    node: &Arc<Node>,
    wish: Administration,
    stream: &mut dyn Stream,
) -> io::Result<()> {
    if node.group.leading().is_none() || wish.is_local() {
        return answer(stream, &Answer::NotLeader).await;
    }
    answer(stream, &Answer::Welcome).await?;
    let outcome = Outcome(node.administer_here(&wish).await);
    let mut out = Vec::new();
    put_framed(&mut out, &outcome.encode());
    write_all(stream, &out).await
}
