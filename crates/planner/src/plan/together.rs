//! What is known of several columns of a scanned table together, and of expressions over them
//! ([`catalog::extended`]), with the expressions as the planner compares them.

use std::sync::Arc;

use super::Expr;
use catalog::extended::{Extended, Gathered};

/// Extended statistics of a table of which ANALYZE has found something.
#[derive(Clone, Debug)]
pub struct KnownTogether {
    /// What they are about.
    pub made: Arc<Extended>,
    /// What was found.
    pub found: Arc<Gathered>,
    /// Their expressions, over the columns of the table.
    pub expressions: Vec<Expr>,
}

impl KnownTogether {
    /// The place of the part that an expression is, columns first; none if it is no part.
    pub fn part(&self, expr: &Expr) -> Option<usize> {
        let expr = expr.bare();
        if let super::ExprKind::Column(place) = expr.kind {
            return self.made.columns.iter().position(|known| *known == place);
        }
        let known = self.expression(expr)?;
        Some(self.made.columns.len() + known)
    }

    /// The place among its expressions that an expression has.
    pub fn expression(&self, expr: &Expr) -> Option<usize> {
        let expr = expr.bare();
        let mut known = self.expressions.iter();
        known.position(|known| known.bare().same(expr))
    }
}
