//! Parts of values: elements of arrays, fields of rows.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AIndices, AIndirection, Node};

use super::expr::Place;
use super::parts::element_of;
use super::scope::Scope;
use super::{boxed, inner, strings, Binder};
use crate::plan::Expr;
use syntax::parser::NodeEnum;
use types::TypeId;

impl Binder<'_> {
    /// `value[1]`, `value[1][2]`, `(value).f`.
    pub(super) fn indirection(
        &mut self,
        indirection: &AIndirection,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let value = boxed(&indirection.arg)?;
        self.indirection_of(value, &indirection.indirection, scope, place)
    }

    /// The part of a value that the steps lead to.
    pub(super) fn indirection_of(
        &mut self,
        node: &NodeEnum,
        steps: &[Node],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let mut steps = steps;
        let mut value = match self.field_of_item(node, steps, scope, place)? {
            Some(column) => {
                steps = &steps[1..];
                column
            }
            None => self.expr(node, scope, place)?,
        };
        while let Some(step) = steps.first() {
            let location = value.location.0;
            let mut subscripts = Vec::new();
            for step in steps {
                match inner(step)? {
                    NodeEnum::AIndices(indices) => subscripts.push(&**indices),
                    _ => break,
                }
            }
            if !subscripts.is_empty() {
                steps = &steps[subscripts.len()..];
                value = self.subscripts(value, &subscripts, scope, place)?;
                continue;
            }
            steps = &steps[1..];
            value = match inner(step)? {
                NodeEnum::String(name) => self.field_or_function(value, &name.sval, location)?,
                _ => {
                    let message = "row expansion via \"*\" is not supported here";
                    let state = SqlState::FEATURE_NOT_SUPPORTED;
                    return Err(self.error(state, message, location));
                }
            };
        }
        Ok(value)
    }

    /// `(t).f` where `t` is an item of FROM, or a row of a rule, is its column `t.f`.
    fn field_of_item(
        &mut self,
        node: &NodeEnum,
        steps: &[Node],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Option<Expr>> {
        let (NodeEnum::ColumnRef(column), Some(first)) = (node, steps.first()) else {
            return Ok(None);
        };
        let ([item], NodeEnum::String(name)) = (&strings(&column.fields)[..], inner(first)?) else {
            return Ok(None);
        };
        if !place.columns || column.fields.len() != 1 {
            return Ok(None);
        }
        let location = column.location;
        if !self.names_item(item, scope)? {
            let rows = self.cx.variables.filter(|known| known.are_rows_of_rule());
            let is_column = rows.is_some_and(|rows| {
                let fields = rows.fields(item).unwrap_or_default();
                fields.contains(&name.sval)
            });
            return match is_column {
                true => self
                    .column_or_row(&[item, &name.sval], scope, location)
                    .map(Some),
                false => Ok(None),
            };
        }
        if let Some(found) = self.qualified_column(item, &name.sval, scope, location)? {
            // All of the row is looked at, as far as privileges go.
            self.whole_row(node, scope)?;
            return Ok(Some(found));
        }
        self.column_or_row(&[item, &name.sval], scope, location)
            .map(Some)
    }

    fn subscripts(
        &mut self,
        value: Expr,
        subscripts: &[&AIndices],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = value.location.0;
        if value.ty == TypeId::JSONB {
            return self.jsonb_subscripts(value, subscripts, scope, place);
        }
        if value.ty == TypeId::HSTORE {
            return self.hstore_subscript(value, subscripts, scope, place);
        }
        let element = match value.ty {
            TypeId::INT2VECTOR => Some(TypeId::INT2),
            TypeId::OIDVECTOR => Some(TypeId::OID),
            ty => ty.array_element().or(ty.fixed_element()),
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
            return self.slice(value, subscripts, scope, place);
        }
        self.check_dimensions(subscripts.len())?;
        let mut indexes = Vec::new();
        for indices in subscripts {
            let Some(index) = indices.uidx.as_deref() else {
                return Err(Error::internal("a subscript without an index"));
            };
            indexes.push(self.subscript_bound(index, scope, place)?);
        }
        let domain = self.cx.catalog.element_domain(value.domain);
        let typmod = value.typmod;
        Ok(Expr {
            domain,
            typmod,
            ..element_of(value, indexes, element, location)
        })
    }
}
