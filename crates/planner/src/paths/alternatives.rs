//! Several ways to the rows of one table, for a condition with OR of which each part has its own.
//!
//! ```text
//! k = 1 OR n = 5 AND m < 3     index (k): 1, index (n): 5     the keys of both, each once, then the rows
//! ```
//! What a PostgreSQL would find by a BitmapOr. The whole condition is tested on the rows that are found.
//!
//! # What it leaves out
//! Conditions of which several indexes serve each one part with AND (BitmapAnd), and several ways where
//! another condition has a way of its own.

use super::Planner;
use crate::logical::conjuncts;
use crate::plan::{Expr, ExprKind, Scan, Way};

/// A condition with more parts is tested on each row.
const WAYS_MAX: usize = 100;

impl Planner<'_> {
    /// The ways of the best condition that has some, and what they cost; none where the table is read for
    /// less.
    pub(super) fn alternatives(&self, scan: &Scan, conditions: &[Expr]) -> (Vec<Way>, f64) {
        let mut cheapest = (Vec::new(), self.cost_of_whole(scan));
        for condition in conditions {
            let ExprKind::Or(parts) = &condition.kind else {
                continue;
            };
            let Some((ways, cost)) = self.ways_of(scan, parts) else {
                continue;
            };
            if cost < cheapest.1 {
                cheapest = (ways, cost);
            }
        }
        cheapest
    }

    /// A way for each of these conditions, and what all of them cost; where that is not known, less than
    /// reading the table.
    fn ways_of(&self, scan: &Scan, parts: &[Expr]) -> Option<(Vec<Way>, f64)> {
        if parts.len() > WAYS_MAX {
            return None;
        }
        let (mut ways, mut cost) = (Vec::new(), 0.0);
        for part in parts {
            let conditions = conjuncts(Some(part.clone()));
            let bounds = self.bounds(scan, &conditions);
            let (place, used) = self.way(scan, &bounds, &conditions)?;
            cost += match self.cost_of_way(scan, place, &used, &conditions) {
                Some(cost) => cost,
                None if used.equal() > 0 => 0.0,
                None => return None,
            };
            let primary = scan.table.indexes[place].primary;
            ways.push(Way {
                index: (!primary).then_some(place),
                access: used.access(),
            });
        }
        Some((ways, cost))
    }
}
