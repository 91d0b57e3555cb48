//! The node's memory: what its own parts take for good, and a budget for all that its sessions keep
//! ([`base::budget`]). All groups of a node share the room for pages; the log in memory is each one's
//! own, so each further group takes something for good when it is opened.
//!
//! The status page shows it:
//! ```text
//! "memory": { "budget_bytes": 644245094, "fixed_bytes": 402653184, "used_bytes": 402718720,
//!             "largest_bytes": 65536, "refusals": 0 }
//! ```

use std::sync::Arc;
use std::time::Duration;

use base::budget::Budget;
use base::env::{sleep, Env, Severity};
use kv::GroupSettings;

use crate::config::{NodeSettings, SESSIONS_MEMORY_MIN};

/// A statement that finds the node's memory used up waits so long for the one that has most of it
/// and was told to end.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The budget of a node with these settings, where they have one.
pub(crate) fn budget(env: &Arc<dyn Env>, settings: &NodeSettings) -> Option<Arc<Budget>> {
    let fixed = settings.group.shared_bytes() + settings.group.own_bytes() as u64;
    let fixed = usize::try_from(fixed).unwrap_or(usize::MAX);
    let limit = settings.memory_budget?.max(fixed);
    let env = env.clone();
    let pause = Box::new(move || sleep(&*env, WAIT_MAX));
    Some(Arc::new(Budget::new(limit, fixed, pause)))
}

/// Takes from the budget what a further group with these settings takes for good.
pub(crate) fn open_group(env: &dyn Env, budget: &Budget, settings: &GroupSettings) {
    if budget.fix(settings.own_bytes(), SESSIONS_MEMORY_MIN as usize) {
        let message = format!(
            "quorate.memory_budget is too small for so many groups; it is {} MB from now on",
            budget.limit() >> 20
        );
        env.log(Severity::Warning, &message);
    }
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
