//! Whether two expressions are the same: by what they mean, not by where they stand.
//!
//! ```text
//! select a + 1 from t group by a + 1      the two sums are the same
//! ```
//! There is no `==` for expressions, because whoever finds that two are the same makes a plan that
//! rests on the literals in them.

use std::rc::Rc;

use super::{AggregateCall, Bound, Expr, ExprKind, SubQuery, WindowCall, WindowSpec};

impl Expr {
    /// Whether both mean the same. Literals that were found to be equal are fixed, so that a plan
    /// that was made because of it serves no others.
    pub fn same(&self, other: &Expr) -> bool {
        same_parts(&[self], &[other])
    }

    fn equals(&self, other: &Expr) -> bool {
        self.ty == other.ty
            && self.typmod == other.typmod
            && self.kind.alike(&other.kind)
            && equal_parts(&self.parts(), &other.parts())
    }

    /// Fixes literals of two that are equal, where they are not one and the same.
    fn fix_unlike(&self, other: &Expr) {
        if let (ExprKind::Const(_, a), ExprKind::Const(_, b)) = (&self.kind, &other.kind) {
            let one = match (a, b) {
                (Some(a), Some(b)) => Rc::ptr_eq(a, b),
                _ => false,
            };
            if !one {
                a.iter().chain(b).for_each(|literal| literal.fix());
            }
        }
        for (a, b) in self.parts().into_iter().zip(other.parts()) {
            a.fix_unlike(b);
        }
    }
}

fn equal_parts(a: &[&Expr], b: &[&Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
}

/// Whether the expressions of two lists are the same, one by one; see [`Expr::same`].
fn same_parts(a: &[&Expr], b: &[&Expr]) -> bool {
    let equal = equal_parts(a, b);
    if equal {
        a.iter().zip(b).for_each(|(a, b)| a.fix_unlike(b));
    }
    equal
}

impl ExprKind {
    /// Whether they are equal but for the expressions that they are made of.
    fn alike(&self, other: &ExprKind) -> bool {
        use ExprKind as E;
        match (self, other) {
            (E::Const(a, _), E::Const(b, _)) => a == b,
            (E::Column(a), E::Column(b)) | (E::Param(a), E::Param(b)) => a == b,
            (E::Outer(a, b), E::Outer(c, d)) => (a, b) == (c, d),
            (E::Call(f, _, a), E::Call(g, _, b)) | (E::SetCall(f, _, a), E::SetCall(g, _, b)) => {
                (f, a) == (g, b)
            }
            (E::Routine(a, _), E::Routine(b, _)) => a == b,
            (E::NullIf(_, f, _, a), E::NullIf(_, g, _, b)) => (f, a) == (g, b),
            (E::Distinct(_, _, f, a, p), E::Distinct(_, _, g, b, q))
            | (E::AnyArray(_, _, f, a, p), E::AnyArray(_, _, g, b, q)) => (f, a, p) == (g, b, q),
            (E::AnyOwn(_, _, a), E::AnyOwn(_, _, b)) => (&a.call, a.all) == (&b.call, b.all),
            (E::Fit(_, a), E::Fit(_, b))
            | (E::IsNull(_, a), E::IsNull(_, b))
            | (E::Extreme(_, a), E::Extreme(_, b)) => a == b,
            (E::IsTruth(_, a, p), E::IsTruth(_, b, q)) => (a, p) == (b, q),
            (E::Array(_, a), E::Array(_, b)) => a == b,
            (E::Sub(a, p, seen), E::Sub(b, q, others)) => {
                let places = |seen: &[(usize, Expr)]| -> Vec<usize> {
                    seen.iter().map(|column| column.0).collect()
                };
                a.is(b) && p.is_some() == q.is_some() && places(seen) == places(others)
            }
            (E::Aggregate(a), E::Aggregate(b)) => a.alike(b),
            (E::Window(a), E::Window(b)) => a.alike(b),
            (E::Domain(_, a, _), E::Domain(_, b, _)) => a.domain == b.domain,
            (E::Collate(_, a), E::Collate(_, b)) => a.oid == b.oid,
            (E::Collating(_, a, p), E::Collating(_, b, q)) => (a, p.oid) == (b, q.oid),
            (E::Coerce(..), E::Coerce(..))
            | (E::And(_), E::And(_))
            | (E::Or(_), E::Or(_))
            | (E::Not(_), E::Not(_))
            | (E::Case(..), E::Case(..))
            | (E::CaseValue(..), E::CaseValue(..))
            | (E::CaseInput, E::CaseInput)
            | (E::Coalesce(_), E::Coalesce(_))
            | (E::Record(..), E::Record(..))
            | (E::Grouping(_), E::Grouping(_))
            | (E::Subscript(..), E::Subscript(..)) => true,
            _ => false,
        }
    }
}

impl SubQuery {
    fn is(&self, other: &SubQuery) -> bool {
        std::ptr::eq(self, other)
    }
}

/// The directions of an order.
fn directions(order: &[(Expr, bool, bool)]) -> Vec<(bool, bool)> {
    order.iter().map(|key| (key.1, key.2)).collect()
}

impl AggregateCall {
    fn alike(&self, other: &AggregateCall) -> bool {
        self.aggregate == other.aggregate
            && self.types == other.types
            && self.distinct == other.distinct
            && self.args.len() == other.args.len()
            && self.filter.is_some() == other.filter.is_some()
            && directions(&self.order) == directions(&other.order)
    }

    /// Whether both are the same call; see [`Expr::same`].
    pub fn same(&self, other: &AggregateCall) -> bool {
        self.alike(other) && same_parts(&self.parts(), &other.parts())
    }
}

impl WindowCall {
    fn alike(&self, other: &WindowCall) -> bool {
        self.function == other.function
            && self.types == other.types
            && self.args.len() == other.args.len()
            && self.filter.is_some() == other.filter.is_some()
            && self.window.alike(&other.window)
    }

    /// Whether both are the same call; see [`Expr::same`].
    pub fn same(&self, other: &WindowCall) -> bool {
        self.alike(other) && same_parts(&self.parts(), &other.parts())
    }
}

impl WindowSpec {
    fn alike(&self, other: &WindowSpec) -> bool {
        let (a, b) = (&self.frame, &other.frame);
        self.options == other.options
            && self.partition.len() == other.partition.len()
            && directions(&self.order) == directions(&other.order)
            && (a.mode, a.exclude) == (b.mode, b.exclude)
            && a.start.alike(&b.start)
            && a.end.alike(&b.end)
    }

    /// Whether both are the same window; see [`Expr::same`].
    pub fn same(&self, other: &WindowSpec) -> bool {
        self.alike(other) && same_parts(&self.parts(), &other.parts())
    }
}

impl Bound<Expr> {
    fn alike(&self, other: &Bound<Expr>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
