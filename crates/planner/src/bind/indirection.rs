//! Parts of values: elements of arrays.

use base::{Result, SqlState};
use pg_query::protobuf::{AIndices, AIndirection};

use super::expr::Place;
use super::scope::Scope;
use super::{boxed, inner, Binder};
use crate::plan::{Expr, ExprKind};
use syntax::parser::NodeEnum;
use types::TypeId;

impl Binder<'_> {
    /// `value[1]`, `value[1][2]`.
    pub(super) fn indirection(
        &mut self,
        indirection: &AIndirection,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let value = self.expr(boxed(&indirection.arg)?, scope, place)?;
        let location = value.location.0;
        let mut subscripts = Vec::new();
        for step in &indirection.indirection {
            match inner(step)? {
                NodeEnum::AIndices(indices) => subscripts.push(&**indices),
                _ => return Err(self.unsupported("a field of a composite value", location)),
            }
        }
        self.subscripts(value, &subscripts, scope, place)
    }

    fn subscripts(
        &mut self,
        value: Expr,
        subscripts: &[&AIndices],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = value.location.0;
        let element = match value.ty {
            TypeId::INT2VECTOR => Some(TypeId::INT2),
            TypeId::OIDVECTOR => Some(TypeId::OID),
            TypeId::NAME => Some(TypeId::CHAR),
            ty => ty.array_element(),
        };
        let Some(element) = element else {
            return Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    value.ty
                ),
                location,
            ));
        };
        if subscripts.iter().any(|indices| indices.is_slice) {
            return Err(self.unsupported("a slice of an array", location));
        }
        let mut indexes = Vec::new();
        for indices in subscripts {
            let index = self.expr(boxed(&indices.uidx)?, scope, place)?;
            indexes.push(self.coerce_argument(index, TypeId::INT4)?);
        }
        let index = match indexes.len() {
            1 => indexes.remove(0),
            _ => {
                let kind = ExprKind::Array(indexes, TypeId::INT4);
                Expr::new(kind, TypeId::INT4_ARRAY, location)
            }
        };
        let kind = ExprKind::Subscript(Box::new(value), Box::new(index));
        Ok(Expr::new(kind, element, location))
    }
}
