//! What an operator asks of a cluster, or of a node, in a session.
//!
//! ```text
//! select quorate.promote_node('n4')   administer(PromoteNode("n4")) → 6702, the change's LSN
//! checkpoint                          checkpoint()
//! ```

use crate::cluster::Administration;
use crate::env::BoxFuture;
use crate::error::Result;

/// Does what an operator asks for.
pub trait Administrator: Send + Sync {
    /// Does what is asked of the cluster, on its leader; the answer is the wish's.
    ///
    /// # Errors
    /// As the wish.
    fn administer(&self, wish: Administration) -> BoxFuture<'static, Result<u64>>;

    /// Has a checkpoint made; ready when there is one of all that is visible now.
    ///
    /// # Errors
    /// 57P01 when this node does not lead any more; 53100.
    fn checkpoint(&self) -> BoxFuture<'static, Result<()>>;
}
