//! What a scan comes to next: the leaves that it should have read before.
//!
//! A scan looks ahead from the inner pages above its leaves, which name many leaves at once, and
//! over the ends of those pages. The further it has come, the further it looks, so that one which
//! ends after a few rows does not read megabytes. How far it has come is seen from what lies behind
//! it in memory, and needs no note:
//!
//! ```text
//!   leaves    in memory: 10 11 12 13 │ 14 …        at 14: four behind it
//!   looks ahead                       14 ─────────► 14 + 32 + 2 · 4
//! ```
//!
//! Half of what it looks at is behind it before it looks again. So many pages are asked for at one
//! time, and those that lie side by side are read together ([`crate::pager`]).

use base::engine::Direction;
use base::{Key, KeyRange, Result};

use super::{Aim, Bounds, Tree};
use crate::pager::{Found, Pages, Stop};
use crate::store::Store;

/// Leaves that a scan looks ahead when it begins.
const AHEAD_MIN: usize = 32;

/// Leaves that a scan looks ahead, at most.
const AHEAD_MAX: usize = 1_024;

/// A look ahead, from one inner page to the next.
struct Look {
    direction: Direction,
    /// Leaves that are still to be looked at; none before the first inner page.
    left: Option<usize>,
    found: Pages,
}

impl Store {
    /// After how many leaves a scan looks again whether those ahead are in memory.
    pub(super) fn look_every(&self) -> usize {
        (self.pager.room_ahead().min(AHEAD_MAX) / 2).max(1)
    }

    /// The leaves that a scan of a range comes to next and that are not in memory; at last the
    /// inner page that leads to more of them, if that is not in memory either.
    ///
    /// # Errors
    /// XX001, fatal for the node.
    pub(crate) fn leaves_ahead(
        &self,
        tree: &Tree,
        direction: Direction,
        range: &KeyRange,
    ) -> Result<Pages> {
        let mut look = Look {
            direction,
            left: None,
            found: Vec::new(),
        };
        let mut rest = Some(range.clone());
        while let Some(range) = rest {
            rest = match self.look_ahead(tree, &range, &mut look) {
                Ok(rest) => rest.filter(|_| look.left != Some(0)),
                Err(Stop::Gone) => None,
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Miss(miss)) => {
                    look.found.extend(miss.needed);
                    None
                }
            };
        }
        Ok(look.found)
    }

    /// Looks at the leaves of a range that one inner page leads to; returns the rest of the range.
    fn look_ahead(
        &self,
        tree: &Tree,
        range: &KeyRange,
        look: &mut Look,
    ) -> Found<Option<KeyRange>> {
        let mut bounds = Bounds::default();
        let forward = look.direction == Direction::Forward;
        let aim = Aim::of(look.direction, range);
        let (page, _) = self.find_inner(tree, aim, &mut bounds)?;
        if page.is_leaf() {
            return Ok(None);
        }
        let index = aim.child_index(&page);
        let word = |at: usize| self.pager.cache.word(page.child(at));
        let most = look.left.unwrap_or_else(|| {
            let is_here = |at: &usize| word(*at).is_resident();
            let (behind, is_all) = match forward {
                true => {
                    let behind = (0..index).rev().take_while(is_here).count();
                    (behind, behind == index && !bounds.low.is_empty())
                }
                false => {
                    let behind = (index + 1..=page.count()).take_while(is_here).count();
                    (
                        behind,
                        index + behind == page.count() && bounds.high.is_some(),
                    )
                }
            };
            // Who has all that this page leads to behind him has come from the page before it.
            match is_all {
                true => AHEAD_MAX,
                false => AHEAD_MAX.min(AHEAD_MIN + 2 * behind),
            }
        });
        let last = match (forward, range.end.as_deref()) {
            (true, None) => page.count(),
            (true, Some(end)) => page.child_index_below(end).max(index),
            (false, _) => page.child_index(&range.start).min(index),
        };
        let count = most.min(index.abs_diff(last) + 1);
        look.left = Some(most - count);
        for step in 0..count {
            let at = if forward { index + step } else { index - step };
            let (id, word) = (page.child(at), word(at));
            if !word.is_resident() {
                look.found.push((id, word));
            }
        }
        Ok(match forward {
            true => {
                let goes_on = |high: &Key| range.end.as_ref().is_none_or(|end| high < end);
                bounds.high.filter(goes_on).map(|start| KeyRange {
                    start,
                    end: range.end.clone(),
                })
            }
            false => (bounds.low > range.start).then(|| KeyRange {
                start: range.start.clone(),
                end: Some(bounds.low),
            }),
        })
    }
}
