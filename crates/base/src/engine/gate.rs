//! When what a transaction showed may leave the server.
//!
//! ```text
//! commit           → debt (term 3, LSN 41)
//! is_settled?      no: two of three disks have LSN 40
//! settle(debt, On) …ready once the commit index has reached 41 in term 3
//! ```
//! Source: PostgreSQL 15 manual, section 20.5 (`synchronous_commit`, of which the levels are values).

use crate::durability::{Debt, Durability};
use crate::env::BoxFuture;
use crate::error::Result;

/// Says when replies may leave.
///
/// # Invariant
/// A debt of nothing is settled at every level.
pub trait Gate: Send + Sync {
    /// Whether a reply with this debt may leave now.
    fn is_settled(&self, debt: &Debt, durability: Durability) -> bool;

    /// Ready when a reply with this debt may leave; starts whatever flush that needs.
    ///
    /// # Errors
    /// 40001 when the debt rests on what a failover took back; for the session's own commit that
    /// means it never happened.
    fn settle(&self, debt: Debt, durability: Durability) -> BoxFuture<'static, Result<()>>;
}
