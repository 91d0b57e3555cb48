//! Messages on their way out: those to one node that are ready together leave in one frame.

use std::collections::BTreeMap;

use base::{GroupId, NodeId};
use raft::{Envelope, Message};

use crate::config::Transport;
use crate::frame::encode_consensus;

/// A frame is closed when it has so many bytes; only one message alone may make it longer.
const FRAME_BYTES: usize = 2 << 20;

/// Messages of one turn, by receiver.
#[derive(Debug, Default)]
pub struct Outbox {
    messages: BTreeMap<NodeId, Vec<Message>>,
}

impl Outbox {
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds a message.
    pub fn add(&mut self, envelope: Envelope) {
        let messages = self.messages.entry(envelope.to).or_default();
        messages.push(envelope.message);
    }

    /// Hands everything to the transport, unhurried where that is so; whether there was anything.
    pub fn send(
        &mut self,
        transport: &dyn Transport,
        group: GroupId,
        mut is_unhurried: impl FnMut(NodeId) -> bool,
    ) -> bool {
        let any = !self.is_empty();
        for (to, messages) in std::mem::take(&mut self.messages) {
            let unhurried = is_unhurried(to);
            let mut frame: Vec<Vec<u8>> = Vec::new();
            let mut bytes = 0;
            for message in messages {
                let message = message.encode();
                if !frame.is_empty() && bytes + message.len() > FRAME_BYTES {
                    transport.send(to, encode_consensus(group, &frame, unhurried));
                    frame.clear();
                    bytes = 0;
                }
                bytes += message.len();
                frame.push(message);
            }
            transport.send(to, encode_consensus(group, &frame, unhurried));
        }
        any
    }
}
