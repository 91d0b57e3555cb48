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

use super::modes::{Mode, Modes};
use super::owner::Party;
use super::Name;

/// One step of a circle: who waits, for what, and for whom.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) waiter: Party,
    pub(super) name: Name,
    pub(super) mode: Mode,
    pub(super) blocker: Party,
}

/// What a party waits for, and whom.
pub(super) struct Blocked {
    pub(super) name: Name,
    pub(super) mode: Mode,
    /// Where it stands in line, unless it also holds the lock.
    pub(super) place: Option<usize>,
    pub(super) by: Vec<Party>,
}

/// Where a search has looked at a line. Whoever stands ahead of there, in a mode that excludes no
/// more, waits only for some of those whom the search has met already (it cannot wait for the one
/// who stood there, who holds nothing). Without this, a line of n would cost n² steps.
pub(super) struct Met {
    name: Name,
    place: usize,
    mode: Mode,
}

impl Met {
    /// Whether nothing new can be found from there.
    pub(super) fn includes(&self, name: &Name, place: usize, mode: Mode) -> bool {
        let excluded = Modes::NONE.with(self.mode);
        place <= self.place && excluded.covers(mode) && *name == self.name
    }
}

/// A circle through `origin`, beginning with its own step. `blocked` says what a party waits for,
/// or none when that is included in what was met.
pub(super) fn find(
    origin: Party,
    mut blocked: impl FnMut(Party, &[Met]) -> Option<Blocked>,
) -> Option<Vec<Step>> {
    let mut seen = HashSet::default();
    let mut met: Vec<Met> = Vec::new();
    // Breadth first; each entry knows the step that led to it.
    let mut steps: Vec<(Step, Option<usize>)> = Vec::new();
    let mut frontier = vec![(origin, None)];
    while !frontier.is_empty() {
        let mut next = Vec::new();
        for (waiter, parent) in frontier {
            let Some(found) = blocked(waiter, &met) else {
                continue;
            };
            let (name, mode) = (found.name, found.mode);
            met.extend(found.place.map(|place| Met {
                name: name.clone(),
                place,
                mode,
            }));
            for blocker in found.by {
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

#[cfg(test)]
mod tests {
    use super::super::queue::{Answer, Lock};
    use super::*;
    use base::engine::RowLock;
    use base::TxnId;
    use std::sync::Arc;

    #[test]
    fn a_long_line_is_looked_at_once() {
        const WAITERS: u64 = 500;
        let party = |number| Party::Transaction(TxnId(number));
        let owner = |number| super::super::owner::Owner::transaction(party(number));
        let mode = Mode::from(RowLock::Update);
        let name: Name = Arc::from(&b"row"[..]);
        let mut lock = Lock::held(owner(0), mode);
        for number in 1..=WAITERS {
            assert!(matches!(
                lock.request(owner(number), mode),
                Answer::Conflict(_)
            ));
            lock.enqueue(owner(number), mode, Arc::default());
        }
        let mut edges = 0;
        let circle = find(party(WAITERS), |waiter, met| {
            let blocked = lock.blocked(waiter, &name, met)?;
            edges += blocked.by.len();
            Some(blocked)
        });
        assert!(circle.is_none());
        assert_eq!(
            edges, WAITERS as usize,
            "the last one's edges are all there are"
        );
    }
}
