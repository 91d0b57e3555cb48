//! DO.

use base::{Error, Result};
use pg_query::protobuf::DoStmt;

use super::{CommandTag, Session, Sink};

impl Session {
    pub(super) fn do_block(&mut self, block: &DoStmt, sink: &mut dyn Sink) -> Result<CommandTag> {
        let _ = (block, sink);
        Err(Error::unsupported("DO"))
    }
}
