//! Finds circles of transactions that wait for one another.
//!
//! Each waiter waits for one lock, and so for the holders and the earlier waiters that its request
//! conflicts with. A circle can close only at the moment when one of its members begins to wait:
//! a grant adds no edge from anyone who waits to anyone who waits. So the search starts at the new
//! waiter and looks only for ways back to it.
//!
//! The first search takes one latch after the other, so what it sees need never have been true at
//! one moment. When it finds a circle, the search is repeated with all latches held; a true circle
//! is still there, since nobody in it can move. The one who finds it leaves the line before the
//! latches are given up, so exactly one of a circle fails even when two close it together.

use base::hash::HashSet;
use base::TxnId;

use super::modes::Mode;
use super::Name;

/// One step of a circle: who waits, for what, and for whom.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) waiter: TxnId,
    pub(super) name: Name,
    pub(super) mode: Mode,
    pub(super) blocker: TxnId,
}

/// What a transaction waits for, and whom.
pub(super) struct Blocked {
    pub(super) name: Name,
    pub(super) mode: Mode,
    pub(super) by: Vec<TxnId>,
}

/// The shortest circle through `origin`, beginning with its own step.
pub(super) fn find(
    origin: TxnId,
    mut blocked: impl FnMut(TxnId) -> Option<Blocked>,
) -> Option<Vec<Step>> {
    let mut seen = HashSet::default();
    // Breadth first; each entry knows the step that led to it.
    let mut steps: Vec<(Step, Option<usize>)> = Vec::new();
    let mut frontier = vec![(origin, None)];
    while !frontier.is_empty() {
        let mut next = Vec::new();
        for (waiter, parent) in frontier {
            let Some(Blocked { name, mode, by }) = blocked(waiter) else {
                continue;
            };
            for blocker in by {
                let step = Step {
                    waiter,
                    name: name.clone(),
                    mode,
                    blocker,
                };
                steps.push((step, parent));
                let place = steps.len() - 1;
                if blocker == origin {
                    return Some(path(&steps, place));
                }
                if seen.insert(blocker) {
                    next.push((blocker, Some(place)));
                }
            }
        }
        frontier = next;
    }
    None
}

fn path(steps: &[(Step, Option<usize>)], last: usize) -> Vec<Step> {
    let mut circle = Vec::new();
    let mut place = Some(last);
    while let Some(at) = place {
        circle.push(steps[at].0.clone());
        place = steps[at].1;
    }
    circle.reverse();
    circle
}
