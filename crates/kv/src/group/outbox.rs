//! Messages on their way out: those to one node that are ready together leave in one frame.

use std::collections::BTreeMap;

use base::{GroupId, NodeId};
use raft::{Envelope, Message};

use crate::config::Transport;
use crate::frame::Frame;

/// Messages of one turn, by receiver.
#[derive(Debug, Default)]
pub struct Outbox {
    messages: BTreeMap<NodeId, Vec<Message>>,
}

impl Outbox {
    /// Adds a message.
    pub fn add(&mut self, envelope: Envelope) {
        let messages = self.messages.entry(envelope.to).or_default();
        messages.push(envelope.message);
    }

    /// Hands everything to the transport.
    pub fn send(self, transport: &dyn Transport, group: GroupId) {
        for (to, messages) in self.messages {
            transport.send(to, Frame::Consensus(messages).encode(group));
        }
    }
}
