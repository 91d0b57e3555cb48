//! Parts of values that are assigned to, and slices that are read.
//!
//! ```text
//! a[2:3]                  SLICE(a, which bounds are left out, 2, 3)
//! SET a[2] = x            a = ASSIGN(a, x, 0, 1, 2)
//! SET a[2].f = x          a = ASSIGN(a, the element a[2] with x as its f, 0, 1, 2)
//! ```
//! An assignment to a part is one to the whole of what the value becomes, innermost part first.
//!
//! # What it leaves out
//! Slices of `name` and of the types of geometry, which PostgreSQL refuses too; assignment to the
//! characters of a `name`.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AIndices, Node};

use super::coerce::part_typmod;
use super::expr::Place;
use super::scope::Scope;
use super::{inner, Binder};
use crate::plan::{Expr, ExprKind, Func};
use functions::array_parts::{self, DIMENSIONS_MAX, IS_SLICE};
use functions::{CastContext, Function};
use syntax::parser::NodeEnum;
use types::{Array, Datum, TypeId, NO_TYPMOD};

/// What is assigned to, as errors call it, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assigned<'a> {
    /// The column, or the field of one.
    pub name: &'a str,
    /// Whether the part is an element or a slice, rather than a field.
    pub subscripted: bool,
    /// Where it stands.
    pub location: i32,
}

/// A call of a function that no name leads to.
pub(super) fn internal_call(
    function: &'static Function,
    args: Vec<Expr>,
    ty: TypeId,
    location: i32,
) -> Expr {
    let types: Rc<[TypeId]> = args.iter().map(|arg| arg.ty).collect();
    Expr::new(ExprKind::Call(Func(function), args, types), ty, location)
}

fn number(number: i32) -> Expr {
    Expr::constant(Datum::Int4(number), TypeId::INT4, -1)
}

impl Binder<'_> {
    /// `value[lower:upper]…`.
    pub(super) fn slice(
        &mut self,
        value: Expr,
        subscripts: &[&AIndices],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = value.location.0;
        let ty = match value.ty {
            TypeId::INT2VECTOR => TypeId::INT2.array_of(),
            TypeId::OIDVECTOR => TypeId::OID.array_of(),
            ty => ty.array_element().map(|_| ty),
        };
        let Some(ty) = ty else {
            let message = "slices of fixed-length arrays not implemented";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        };
        let (typmod, domain) = (value.typmod, value.domain);
        let (mask, bounds) = self.bounds(subscripts, scope, place)?;
        let args = [value, mask].into_iter().chain(bounds).collect();
        let element = self.cx.catalog.element_domain(domain);
        let domain = element.array_of().unwrap_or(TypeId::NONE);
        Ok(Expr {
            typmod,
            domain,
            ..internal_call(&array_parts::SLICE, args, ty, location)
        })
    }

    /// Which bounds of subscripts are left out, and the bounds, as [`functions::array_parts`] takes
    /// them: where one is a slice, a mere index is one from 1.
    fn bounds(
        &mut self,
        subscripts: &[&AIndices],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<(Expr, Vec<Expr>)> {
        self.check_dimensions(subscripts.len())?;
        let is_slice = subscripts.iter().any(|indices| indices.is_slice);
        let mut mask = if is_slice { IS_SLICE } else { 0 };
        let mut bounds = Vec::new();
        for indices in subscripts {
            let lower = indices.lidx.as_deref().filter(|_| indices.is_slice);
            for (node, given) in [(lower, indices.is_slice), (indices.uidx.as_deref(), true)] {
                bounds.push(match node {
                    Some(node) => self.subscript_bound(node, scope, place)?,
                    None if given => {
                        mask |= 1 << bounds.len();
                        number(0)
                    }
                    None => number(1),
                });
            }
        }
        Ok((number(mask), bounds))
    }

    /// 54000 for more subscripts than an array has dimensions.
    pub(super) fn check_dimensions(&self, count: usize) -> Result<()> {
        match count > DIMENSIONS_MAX {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "number of array dimensions ({count}) exceeds the maximum allowed \
                     ({DIMENSIONS_MAX})"
                ),
            )),
        }
    }

    /// A subscript of an array.
    pub(super) fn subscript_bound(
        &mut self,
        node: &Node,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let bound = self.node(node, scope, place)?;
        self.subscript_as(
            bound,
            TypeId::INT4,
            "array subscript must have type integer",
        )
    }

    /// A subscript as a value of the type that subscripts of this kind have.
    ///
    /// # Errors
    /// 42804 with that message.
    pub(super) fn subscript_as(
        &mut self,
        subscript: Expr,
        ty: TypeId,
        message: &str,
    ) -> Result<Expr> {
        let location = subscript.location.0;
        self.try_coerce(subscript, ty, NO_TYPMOD, CastContext::Assignment)?
            .map_err(|_| self.error(SqlState::DATATYPE_MISMATCH, message, location))
    }

    /// What is assigned to an element, or to a field, as a value of its type.
    ///
    /// # Errors
    /// 42804.
    pub(super) fn part_as(
        &mut self,
        value: Expr,
        (wanted, typmod): (TypeId, i32),
        assigned: Assigned<'_>,
    ) -> Result<Expr> {
        let (from, name) = (value.ty, assigned.name);
        self.try_coerce(value, wanted, typmod, CastContext::Assignment)?
            .map_err(|_| {
                let message = match assigned.subscripted {
                    true => format!(
                        "subscripted assignment to \"{name}\" requires type {wanted} but \
                         expression is of type {from}"
                    ),
                    false => format!(
                        "subfield \"{name}\" is of type {wanted} but expression is of type {from}"
                    ),
                };
                self.error(SqlState::DATATYPE_MISMATCH, message, assigned.location)
                    .with_hint("You will need to rewrite or cast the expression.")
            })
    }

    /// What `target` becomes when the part of it that the steps lead to gets a value.
    pub(super) fn assign_part(
        &mut self,
        target: Expr,
        steps: &[Node],
        value: Expr,
        assigned: Assigned<'_>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if steps.is_empty() {
            return self.assign_whole_part(&target, value, assigned);
        }
        if target.ty == TypeId::JSONB {
            return self.jsonb_assignment(target, steps, value, assigned.name, scope);
        }
        let mut subscripts = Vec::new();
        for step in steps {
            match inner(step)? {
                NodeEnum::AIndices(indices) => subscripts.push(&**indices),
                _ => break,
            }
        }
        if target.ty == TypeId::HSTORE && subscripts.len() == steps.len() {
            return self.hstore_assignment(target, &subscripts, value, assigned, scope);
        }
        if subscripts.is_empty() {
            return self.assign_field(target, steps, value, assigned, scope);
        }
        let rest = &steps[subscripts.len()..];
        if let (Some(element), true) = (target.ty.fixed_element(), target.ty.is_geometric()) {
            let steps = (&subscripts[..], rest);
            return self.fixed_assignment(target, element, steps, value, assigned, scope);
        }
        self.assign_subscripts(target, &subscripts, rest, value, assigned, scope)
    }

    fn assign_whole_part(
        &mut self,
        target: &Expr,
        value: Expr,
        assigned: Assigned<'_>,
    ) -> Result<Expr> {
        let wanted = match target.domain {
            TypeId::NONE => target.ty,
            domain => domain,
        };
        self.part_as(value, (wanted, target.typmod), assigned)
    }

    fn assign_subscripts(
        &mut self,
        target: Expr,
        subscripts: &[&AIndices],
        rest: &[Node],
        value: Expr,
        assigned: Assigned<'_>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let (ty, typmod, domain) = (target.ty, target.typmod, target.domain);
        let Some(element) = ty.array_element() else {
            return Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                format!("cannot subscript type {ty} because it does not support subscripting"),
                assigned.location,
            ));
        };
        let place = Place::plain("UPDATE");
        let (mask, bounds) = self.bounds(subscripts, scope, place)?;
        let is_slice = subscripts.iter().any(|indices| indices.is_slice);
        let element_domain = self.cx.catalog.element_domain(domain);
        let part = match is_slice {
            true => {
                let args = [target.clone(), mask.clone()].into_iter();
                let args = args.chain(bounds.iter().cloned()).collect();
                Expr {
                    typmod,
                    domain: element_domain.array_of().unwrap_or(TypeId::NONE),
                    ..internal_call(&array_parts::SLICE, args, ty, assigned.location)
                }
            }
            false => {
                let indexes: Vec<Expr> = bounds.iter().skip(1).step_by(2).cloned().collect();
                Expr {
                    typmod,
                    domain: element_domain,
                    ..element_of(target.clone(), indexes, element, assigned.location)
                }
            }
        };
        let assigned_part = Assigned {
            subscripted: true,
            ..assigned
        };
        let value = self.assign_part(part, rest, value, assigned_part, scope)?;
        let args = [target, value, mask].into_iter().chain(bounds).collect();
        let whole = Expr {
            typmod,
            ..internal_call(&array_parts::ASSIGN, args, ty, assigned.location)
        };
        self.changed_value(whole, domain)
    }

    /// A value of which a part was assigned to, as one of its domain, if it was of one.
    pub(super) fn changed_value(&mut self, whole: Expr, domain: TypeId) -> Result<Expr> {
        if domain == TypeId::NONE {
            return Ok(whole);
        }
        match self.coerce_to_domain(whole, domain, CastContext::Assignment)? {
            Ok(tested) => Ok(tested),
            Err(whole) => Err(Error::internal(format!("no {domain} of {}", whole.ty))),
        }
    }

    fn assign_field(
        &mut self,
        target: Expr,
        steps: &[Node],
        value: Expr,
        assigned: Assigned<'_>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let Some(NodeEnum::String(field)) = steps.first().map(inner).transpose()? else {
            let message = "row expansion via \"*\" is not supported here";
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, assigned.location));
        };
        let (name, field) = (assigned.name, field.sval.as_str());
        let ty = match target.domain {
            TypeId::NONE => target.ty,
            domain => domain,
        };
        let Some(fields) = self.fields_of_type(target.ty) else {
            return Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot assign to field \"{field}\" of column \"{name}\" because its type {ty} \
                     is not a composite type"
                ),
                assigned.location,
            ));
        };
        let Some(place) = self.place_of_field(target.ty, &fields, field) else {
            return Err(self.error(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "cannot assign to field \"{field}\" of column \"{name}\" because there is no \
                     such column in data type {ty}"
                ),
                assigned.location,
            ));
        };
        let part = self.field_at(target.clone(), &fields, place, assigned.location);
        let of_field = Assigned {
            name: field,
            subscripted: false,
            location: assigned.location,
        };
        let value = self.assign_part(part, &steps[1..], value, of_field, scope)?;
        let oids = fields.iter().map(|field| Datum::Oid(field.ty.0)).collect();
        let types = Datum::Array(Arc::new(Array::of(TypeId::OID, oids)));
        let types = Expr::constant(types, TypeId::OID.array_of().unwrap_or_default(), -1);
        let (whole, typmod, domain) = (target.ty, target.typmod, target.domain);
        let place = number(i32::try_from(place).unwrap_or(i32::MAX));
        let args = vec![target, place, types, value];
        let whole = Expr {
            typmod,
            ..internal_call(&functions::fields::ASSIGN, args, whole, assigned.location)
        };
        self.changed_value(whole, domain)
    }
}

/// `array[index]…`.
pub(super) fn element_of(
    array: Expr,
    mut indexes: Vec<Expr>,
    element: TypeId,
    location: i32,
) -> Expr {
    let index = match indexes.len() {
        1 => indexes.remove(0),
        _ => {
            let kind = ExprKind::Array(indexes, TypeId::INT4);
            Expr::new(kind, TypeId::INT4_ARRAY, location)
        }
    };
    let typmod = part_typmod(element, array.typmod);
    let kind = ExprKind::Subscript(Box::new(array), Box::new(index));
    Expr {
        typmod,
        ..Expr::new(kind, element, location)
    }
}
