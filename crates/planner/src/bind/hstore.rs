//! Subscripts of `hstore`: `h['a']`, read and assigned to.
//!
//! Source: PostgreSQL 15 manual, section F.18.

use base::{Error, Result, SqlState};
use pg_query::protobuf::AIndices;

use super::expr::Place;
use super::parts::{internal_call, Assigned};
use super::scope::Scope;
use super::Binder;
use crate::plan::{Expr, ExprKind};
use functions::extensions::hstore::ASSIGN;
use types::{TypeId, NO_TYPMOD};

impl Binder<'_> {
    /// The key that a subscript names.
    fn hstore_key(
        &mut self,
        subscripts: &[&AIndices],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let index = match subscripts {
            [one] if !one.is_slice => one.uidx.as_deref(),
            _ => None,
        };
        let Some(index) = index else {
            let message = "hstore allows only one subscript";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        };
        let key = self.node(index, scope, place)?;
        self.subscript_as(key, TypeId::TEXT, "hstore subscript must have type text")
    }

    /// `value[key]`.
    pub(super) fn hstore_subscript(
        &mut self,
        value: Expr,
        subscripts: &[&AIndices],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = value.location.0;
        let key = self.hstore_key(subscripts, scope, place)?;
        let kind = ExprKind::Subscript(Box::new(value), Box::new(key));
        Ok(Expr::new(kind, TypeId::TEXT, location))
    }

    /// `target[key] = value`: what the whole becomes.
    pub(super) fn hstore_assignment(
        &mut self,
        target: Expr,
        subscripts: &[&AIndices],
        value: Expr,
        assigned: Assigned<'_>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let location = assigned.location;
        let key = self.hstore_key(subscripts, scope, Place::plain("UPDATE"))?;
        let subscripted = Assigned {
            subscripted: true,
            ..assigned
        };
        let value = self.part_as(value, (TypeId::TEXT, NO_TYPMOD), subscripted)?;
        let domain = target.domain;
        Ok(Expr {
            domain,
            ..internal_call(&ASSIGN, vec![target, value, key], TypeId::HSTORE, location)
        })
    }
}
