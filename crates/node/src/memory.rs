//! The node's memory: what its own parts take for good, and a budget for all that its sessions keep
//! ([`base::budget`]).
//!
//! The status page shows it:
//! ```text
//! "memory": { "budget_bytes": 644245094, "fixed_bytes": 402653184, "used_bytes": 402718720,
//!             "largest_bytes": 65536, "refusals": 0 }
//! ```

use std::sync::Arc;
use std::time::Duration;

use base::budget::Budget;
use base::env::{sleep, Env};

use crate::config::NodeSettings;

/// A statement that finds the node's memory used up waits so long for the one that has most of it
/// and was told to end.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The budget of a node with these settings, where they have one.
pub(crate) fn budget(env: &Arc<dyn Env>, settings: &NodeSettings) -> Option<Arc<Budget>> {
    let fixed = usize::try_from(settings.group.memory_bytes()).unwrap_or(usize::MAX);
    let limit = settings.memory_budget?.max(fixed);
    let env = env.clone();
    let pause = Box::new(move || sleep(&*env, WAIT_MAX));
    Some(Arc::new(Budget::new(limit, fixed, pause)))
}

/// How much memory is taken, as a status page shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MemoryStatus {
    /// `quorate.memory_budget`.
    pub budget_bytes: usize,
    /// What pages, old versions and the log take at most.
    pub fixed_bytes: usize,
    /// What is taken, that included.
    pub used_bytes: usize,
    /// What the session has that has most.
    pub largest_bytes: usize,
    /// How often a statement was refused memory, or told to end for the sake of others.
    pub refusals: u64,
}

impl MemoryStatus {
    /// That of a budget.
    pub fn of(budget: &Budget) -> MemoryStatus {
        MemoryStatus {
            budget_bytes: budget.limit(),
            fixed_bytes: budget.fixed(),
            used_bytes: budget.used(),
            largest_bytes: budget.largest(),
            refusals: budget.refusals(),
        }
    }
}
