//! Which query an aggregate belongs to.
//!
//! ```text
//! SELECT (SELECT sum(t.x + s.a) FROM s), (SELECT sum(t.x) FROM s) FROM t
//!                 of the inner query              of the outer query, which it makes one row
//! ```
//!
//! An aggregate is computed by the innermost query whose columns it looks at, wherever it is written;
//! one that looks at no column is of the query where it stands (PostgreSQL 15 manual, section
//! 4.2.7). To the queries inside of its own its value is one more column of the rows around them.
//!
//! # What it leaves out
//! A subquery inside such an aggregate of an outer query is bound to the levels of the place where
//! it stands, and cannot be moved outwards: 0A000.

use base::{Result, SqlState};

use super::scope::Scope;
use super::window::clause_words;
use super::Binder;
use crate::logical::inward;
use crate::plan::{Expr, ExprKind};

/// How much inner queries had looked at, of each query from the innermost outwards.
pub(super) struct Marks(Vec<usize>);

impl Marks {
    /// As of now.
    pub fn of(scope: &Scope<'_>) -> Marks {
        let looked_at = |scope: &Scope<'_>| scope.seen_from_inside.borrow().len();
        Marks(scope.levels().map(looked_at).collect())
    }
}

impl Binder<'_> {
    /// What an aggregate, or GROUPING, is in the query where it stands, given the parts that were
    /// bound since the marks were made; none if it is that query's own.
    ///
    /// # Errors
    /// 42803 if its query may not have it where the inner query stands, and if it holds another one
    /// of the same query; 0A000 if it holds a subquery.
    pub(super) fn of_outer_query(
        &mut self,
        call: &Expr,
        what: &str,
        scope: &Scope<'_>,
        marks: &Marks,
    ) -> Result<Option<Expr>> {
        let is_own = |part: &Expr| matches!(part.kind, ExprKind::Column(_));
        let grown =
            |(scope, before): (&Scope<'_>, &usize)| scope.seen_from_inside.borrow().len() > *before;
        let mut levels = scope.levels().zip(&marks.0);
        if call.any(&is_own) || levels.next().is_some_and(grown) {
            return Ok(None);
        }
        let Some(depth) = levels.position(grown).map(|above| above + 1) else {
            return Ok(None);
        };
        let Some(home) = scope.levels().nth(depth) else {
            return Ok(None);
        };
        let place = home.inner_stands.get();
        if !place.aggregates {
            let words = clause_words(place.clause);
            return Err(self.error(
                SqlState::GROUPING_ERROR,
                format!("{what} are not allowed in {words}"),
                call.location.0,
            ));
        }
        let looked_at = home.seen_from_inside.borrow_mut().split_off(marks.0[depth]);
        let nested = looked_at
            .iter()
            .find(|(_, seen)| !matches!(seen.kind, ExprKind::Column(_)));
        if let Some((_, nested)) = nested {
            return Err(self.error(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot be nested",
                nested.location.0,
            ));
        }
        if call.any(&|part| matches!(part.kind, ExprKind::Sub(..))) {
            let what = "a subquery in an aggregate of an outer query";
            return Err(self.unsupported(what, call.location.0));
        }
        let mut moved = call.clone();
        inward(&mut moved, depth);
        scope
            .levels()
            .take(depth)
            .for_each(|level| level.escapes.set(true));
        let mut shown = call.clone();
        shown.kind = ExprKind::Outer(depth, home.show_value(moved));
        Ok(Some(shown))
    }
}
