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
            let (mut bytes, mut count) = (Vec::new(), 0);
            for message in messages {
                let message = message.encode();
                if count > 0 && bytes.len() + message.len() > FRAME_BYTES {
                    transport.send(to, encode_consensus(group, count, &bytes, unhurried));
                    (bytes, count) = (Vec::new(), 0);
                }
                base::codec::put_bytes(&mut bytes, &message);
                count += 1;
            }
            transport.send(to, encode_consensus(group, count, &bytes, unhurried));
        }
        any
    }
}
