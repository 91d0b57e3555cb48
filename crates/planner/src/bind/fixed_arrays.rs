//! Parts of values that are arrays of a fixed length: the numbers of points and lines, the ends of
//! line segments, the corners of boxes.
//!
//! ```text
//! SET p[0] = 1        p = ASSIGN(p, 1, 0)
//! ```
//! They are read as elements of arrays are ([`super::indirection`]).

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AIndices, Node};

use super::expr::Place;
use super::parts::{element_of, internal_call, Assigned};
use super::scope::Scope;
use super::Binder;
use crate::plan::Expr;
use functions::geometry::ASSIGN;
use types::{TypeId, NO_TYPMOD};

impl Binder<'_> {
    /// What `target` becomes when its element there gets a value, or the part of the element that
    /// further steps lead to.
    pub(super) fn fixed_assignment(
        &mut self,
        target: Expr,
        element: TypeId,
        (subscripts, rest): (&[&AIndices], &[Node]),
        value: Expr,
        assigned: Assigned<'_>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let part_assigned = Assigned {
            subscripted: true,
            ..assigned
        };
        if subscripts.iter().any(|indices| indices.is_slice) {
            self.part_as(value, (target.ty, NO_TYPMOD), part_assigned)?;
            let message = "slices of fixed-length arrays not implemented";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.check_dimensions(subscripts.len())?;
        let place = Place::plain("UPDATE");
        let mut indexes = Vec::new();
        for indices in subscripts {
            let Some(index) = indices.uidx.as_deref() else {
                return Err(Error::internal("a subscript without an index"));
            };
            indexes.push(self.subscript_bound(index, scope, place)?);
        }
        let (ty, domain, location) = (target.ty, target.domain, assigned.location);
        let part = element_of(target.clone(), indexes.clone(), element, location);
        let value = self.assign_part(part, rest, value, part_assigned, scope)?;
        let args = [target, value].into_iter().chain(indexes).collect();
        let whole = internal_call(&ASSIGN, args, ty, location);
        self.changed_value(whole, domain)
    }
}
