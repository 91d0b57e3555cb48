//! Queries of FROM that look at the items beside them, as parts of the query around.
//!
//! ```sql
//! select … from a, lateral (select b.y from b where b.x = a.x) s      a and b, where b.x = a.x
//! select … from a, lateral (values (a.x + 1)) s(x), b where b.k = s.x  a and b, where b.k = a.x + 1
//! ```
//! Items beside a LATERAL one are an enclosing query to it, as long as it is bound; if it becomes a part
//! of the query around it ([`crate::paths`]), they are items like its own.
//!
//! # Invariants
//! - Only the conditions and the columns of such a query look at the items beside it. Those that joins
//!   of its own name are put among its conditions where that is the same.
//! - Nothing in it looks at further enclosing queries from within: what is planned already counts the
//!   queries around it, of which there is one less afterwards.
//!
//! # What it leaves out
//! Subqueries that look beyond the query that they stand in, functions that look at the items beside, and
//! LATERAL items inside of LATERAL items: such queries are planned by themselves.

use super::pull_up::{can_move, can_move_source};
use super::select::Simple;
use crate::logical::{looks_outside, Derived, Source, SourceKind};
use crate::plan::{Expr, JoinKind};

impl Simple {
    /// One row without FROM.
    pub(super) fn of_one_row(exprs: Vec<Expr>) -> Simple {
        Simple {
            source: Source::one_row(0),
            conditions: Vec::new(),
            exprs,
            span: 0,
        }
    }

    /// As an item of FROM.
    pub(super) fn into_derived(self) -> Derived {
        Derived {
            source: self.source,
            conditions: self.conditions,
            exprs: self.exprs,
            reach: usize::MAX,
        }
    }

    /// Whether it may become a part of the query around it as a LATERAL item.
    pub(super) fn may_stand_beside(&mut self) -> bool {
        lift(&mut self.source, &mut self.conditions);
        let mut exprs = self.conditions.iter().chain(&self.exprs);
        exprs.all(can_move) && can_move_source(&self.source)
    }
}

/// Takes the conditions that look outside from inner joins.
fn lift(source: &mut Source, into: &mut Vec<Expr>) {
    if let SourceKind::Join {
        kind: JoinKind::Inner,
        left,
        right,
        on,
        lateral: false,
    } = &mut source.kind
    {
        let (outside, own) = std::mem::take(on).into_iter().partition(looks_outside);
        into.extend::<Vec<_>>(outside);
        *on = own;
        lift(left, into);
        lift(right, into);
    }
}
