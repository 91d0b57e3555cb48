//! What the grammar has for JSON: subscripts of a `jsonb`, and assignment to its parts.
//!
//! ```text
//! j['a'][0]                                j at the path of texts {a,0}
//! UPDATE … SET j['a'] = '1'                j = a call of ASSIGN: j, the path, the value
//! ```

use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AIndices, Node};

use super::expr::Place;
use super::parts::Assigned;
use super::scope::{Scope, ScopeColumn};
use super::{boxed, inner, Binder};
use crate::plan::{Expr, ExprKind, Func, How};
use functions::{find_coercion, json, CastContext};
use syntax::parser::NodeEnum;
use types::{Datum, TypeId, NO_TYPMOD};

impl Binder<'_> {
    /// The texts that subscripts of a `jsonb` are, as an array; whether the first is an integer.
    fn path(
        &mut self,
        subscripts: &[&AIndices],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<(Expr, bool)> {
        let mut steps = Vec::new();
        let mut first_is_index = None;
        for indices in subscripts {
            if indices.is_slice {
                return Err(self.no_slices(indices, scope, place)?);
            }
            let step = self.expr(boxed(&indices.uidx)?, scope, place)?;
            let location = step.location.0;
            let fits = |target| {
                let how = find_coercion(step.ty, target, CastContext::Implicit);
                step.ty != TypeId::UNKNOWN && how.is_some()
            };
            let (index, text) = (fits(TypeId::INT4), fits(TypeId::TEXT));
            let step = match (index, text || step.ty == TypeId::UNKNOWN) {
                (true, false) => self.coerce_argument(step, TypeId::INT4)?,
                (false, true) => self.coerce_argument(step, TypeId::TEXT)?,
                _ => {
                    let message = format!("subscript type {} is not supported", step.ty);
                    let hint = "jsonb subscript must be coercible to either integer or text.";
                    let error = self.error(SqlState::DATATYPE_MISMATCH, message, location);
                    return Err(error.with_hint(hint));
                }
            };
            first_is_index.get_or_insert(index);
            steps.push(match index {
                false => step,
                true => {
                    let kind =
                        match find_coercion(TypeId::INT4, TypeId::TEXT, CastContext::Explicit) {
                            Some(how) => ExprKind::Coerce(Box::new(step), How(how, true)),
                            None => step.kind,
                        };
                    Expr::new(kind, TypeId::TEXT, location)
                }
            });
        }
        let kind = ExprKind::Array(steps, TypeId::TEXT);
        let path = Expr::new(kind, TypeId::TEXT_ARRAY, -1);
        Ok((path, first_is_index.unwrap_or(false)))
    }

    /// `value[a][b]` of a `jsonb`.
    pub(super) fn jsonb_subscripts(
        &mut self,
        value: Expr,
        subscripts: &[&AIndices],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = value.location.0;
        let (path, _) = self.path(subscripts, scope, place)?;
        let kind = ExprKind::Subscript(Box::new(value), Box::new(path));
        Ok(Expr::new(kind, TypeId::JSONB, location))
    }

    /// `target[a][b] = value`: what the whole becomes.
    pub(super) fn jsonb_assignment(
        &mut self,
        target: Expr,
        steps: &[Node],
        value: Expr,
        name: &str,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let location = target.location.0;
        let mut subscripts = Vec::new();
        for step in steps {
            match inner(step)? {
                NodeEnum::AIndices(indices) => subscripts.push(&**indices),
                _ => {
                    let message = format!(
                        "cannot assign to a field of column \"{name}\" because its type jsonb is \
                         not a composite type"
                    );
                    return Err(self.error(SqlState::DATATYPE_MISMATCH, message, location));
                }
            }
        }
        let place = Place::plain("UPDATE");
        let (path, index) = self.path(&subscripts, scope, place)?;
        let assigned = Assigned {
            name,
            location,
            subscripted: true,
        };
        let value = self.part_as(value, (TypeId::JSONB, NO_TYPMOD), assigned)?;
        let index = Expr::constant(Datum::Bool(index), TypeId::BOOL, -1);
        let args = vec![target, path, value, index];
        let types: Rc<[TypeId]> = args.iter().map(|arg| arg.ty).collect();
        let kind = ExprKind::Call(Func(&json::ASSIGN), args, types);
        Ok(Expr::new(kind, TypeId::JSONB, location))
    }

    /// 42804 for a slice, at its upper bound or else its lower one.
    fn no_slices(&mut self, slice: &AIndices, scope: &Scope<'_>, place: Place) -> Result<Error> {
        let location = match slice.uidx.as_deref().or(slice.lidx.as_deref()) {
            Some(bound) => self.expr(inner(bound)?, scope, place)?.location.0,
            None => -1,
        };
        let message = "jsonb subscript does not support slices";
        Ok(self.error(SqlState::DATATYPE_MISMATCH, message, location))
    }

    /// What a column of the table that is written holds before.
    pub(super) fn old_value(&self, name: &str, scope: &Scope<'_>, location: i32) -> Result<Expr> {
        let table = scope.tables.first();
        let named = |column: &ScopeColumn| column.name == name;
        let found = table.and_then(|table| Some((table, table.columns.iter().position(named)?)));
        match found {
            Some((table, place)) => Ok(scope.column_expr(table, place, location)),
            None => Err(Error::internal("an assignment to a column of no table")),
        }
    }

    /// 42883 for a type without equality.
    pub(super) fn check_equality(&self, ty: TypeId, location: i32) -> Result<()> {
        match self.holds_of_parts(ty, TypeId::has_equality) {
            true => Ok(()),
            false => Err(self.error(
                SqlState::UNDEFINED_FUNCTION,
                format!("could not identify an equality operator for type {ty}"),
                location,
            )),
        }
    }
}
