//! What a disjunction says of its parts.
//!
//! ```text
//! (a.i = b.i and a.x = 1) or (a.i = b.i and a.x = 2 and b.y = 3)
//!     common to all arms      a.i = b.i
//!     left                    a.x = 1 or (a.x = 2 and b.y = 3)
//!     so that of a alone      a.x = 1 or a.x = 2
//! ```
//! What is common to all arms may join; what follows for one item alone filters it early.

use crate::logical::{all_of, conjuncts, truth};
use crate::plan::{Expr, ExprKind};

/// More arms are left as they are.
const ARMS_MAX: usize = 64;

/// The conditions that all must hold, with what is common to the arms of disjunctions by itself.
pub(super) fn factored(conditions: Vec<Expr>) -> Vec<Expr> {
    conditions.into_iter().flat_map(factor).collect()
}

fn factor(condition: Expr) -> Vec<Expr> {
    let ExprKind::Or(arms) = &condition.kind else {
        return vec![condition];
    };
    let location = condition.location.0;
    let arms: Vec<_> = arms
        .iter()
        .map(|arm| conjuncts(Some(arm.clone())))
        .collect();
    let [first, others @ ..] = arms.as_slice() else {
        return vec![condition];
    };
    if arms.len() > ARMS_MAX || arms.iter().any(|arm| arm.len() > ARMS_MAX) {
        return vec![condition];
    }
    // Whoever has no conjunction has nothing in common with others but itself.
    if arms.iter().all(|arm| arm.len() == 1) {
        return vec![condition];
    }
    let in_all = |part: &&Expr| {
        others
            .iter()
            .all(|arm| arm.iter().any(|other| other.same(part)))
    };
    let common: Vec<Expr> = first.iter().filter(in_all).cloned().collect();
    if common.is_empty() {
        return vec![condition];
    }
    let is_common = |part: &Expr| common.iter().any(|known| known.same(part));
    let mut rests = Vec::new();
    for arm in &arms {
        let rest: Vec<_> = arm
            .iter()
            .filter(|part| !is_common(part))
            .cloned()
            .collect();
        match all_of(rest) {
            Some(rest) => rests.push(rest),
            // An arm that says nothing more holds wherever the common part does.
            None => return common,
        }
    }
    let mut all = common;
    all.push(truth(ExprKind::Or(rests), location));
    all
}

/// What a disjunction over several items says of those rows alone of which `own` says that an
/// expression is over them; none if some arm says nothing.
pub(super) fn implied_of(condition: &Expr, own: &dyn Fn(&Expr) -> bool) -> Option<Expr> {
    let ExprKind::Or(arms) = &condition.kind else {
        return None;
    };
    let mut of_arms = Vec::with_capacity(arms.len());
    for arm in arms {
        let parts = conjuncts(Some(arm.clone()));
        of_arms.push(all_of(parts.into_iter().filter(own).collect())?);
    }
    Some(truth(ExprKind::Or(of_arms), condition.location.0))
}
