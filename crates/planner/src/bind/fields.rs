//! Fields of rows as values, and rows that are spread into them.
//!
//! ```text
//! (t.c).f         FIELD(c, the place of f, 'f')
//! (row).*         one column for each of its fields
//! f(t), t.f       the column f of t, or the function f of a row of t
//! ```
//! A type that says of which fields its rows consist is a table's, or one that CREATE TYPE … AS made;
//! of a `record` the expression says it, where it says anything.
//! Where a subquery gives a `record` as a column, its fields go with the column ([`Binder::record_column`]).
//!
//! # What it leaves out
//! The fields of a `record` that comes out of a subquery in an expression.

use std::sync::Arc;

use base::{Result, SqlState};
use pg_query::protobuf::Node;

use super::expr::Place;
use super::parts::internal_call;
use super::scope::Scope;
use super::{inner, strings, Binder, OutputColumn};
use crate::plan::{Collated, Expr, ExprKind};
use functions::fields::FIELD;
use syntax::parser::NodeEnum;
use types::{Datum, TypeId};

pub(super) use catalog::composite::Field;

impl Expr {
    /// Whether it is a row that was written as one: `ROW(…)`, `(a, b)`.
    pub fn is_row(&self) -> bool {
        matches!(self.kind, ExprKind::Record(_, None))
    }
}

impl Binder<'_> {
    /// The fields of values of a type; none if it is no type of rows.
    pub(super) fn fields_of_type(&self, ty: TypeId) -> Option<Vec<Field>> {
        self.cx.catalog.fields(ty)
    }

    /// Whether something holds of a type and, of rows, of each of their fields.
    pub(super) fn holds_of_parts(&self, ty: TypeId, holds: fn(TypeId) -> bool) -> bool {
        let fields = self.fields_of_type(ty.array_element().unwrap_or(ty));
        let mut fields = fields.iter().flatten();
        holds(ty) && fields.all(|field| self.holds_of_parts(field.ty, holds))
    }

    /// The fields of a value; none if it is no row, or one of which nothing is known.
    pub(super) fn fields_of_value(&self, value: &Expr) -> Option<Vec<Field>> {
        let named = |name: String, ty, typmod, domain| Field {
            name,
            ty,
            typmod,
            domain,
            collation: 0,
        };
        match &value.kind {
            _ if value.ty != TypeId::RECORD => self.fields_of_type(value.ty),
            ExprKind::Column(_) | ExprKind::Outer(..) => {
                let place = usize::try_from(value.typmod).ok()?;
                self.records.get(place).cloned()
            }
            ExprKind::Record(fields, names) => {
                let name = |at: usize| match names {
                    Some(names) => names.get(at).cloned().unwrap_or_default(),
                    None => format!("f{}", at + 1),
                };
                let fields = fields.iter().enumerate();
                let fields = fields.map(|(at, field)| Field {
                    collation: field.collation.oid,
                    ..named(name(at), field.ty, field.typmod, field.domain)
                });
                Some(fields.collect())
            }
            // The row of an item of FROM that may be missing.
            ExprKind::Case(_, row) => self.fields_of_value(row),
            ExprKind::Call(function, _, types) | ExprKind::SetCall(function, _, types) => {
                let columns = function.0.columns_of(types)?.into_iter();
                let field = |(name, ty): (&str, TypeId)| {
                    named(name.to_owned(), ty, types::NO_TYPMOD, TypeId::NONE)
                };
                Some(columns.map(field).collect())
            }
            ExprKind::Routine(call, _) if !call.columns.is_empty() => {
                let field = |(place, column): (usize, &(String, TypeId))| {
                    let (base, mut typmod) = self.cx.catalog.base_type(column.1);
                    if typmod == types::NO_TYPMOD {
                        typmod = call.typmod(place);
                    }
                    let domain = match column.1.is_of_domain() {
                        true => column.1,
                        false => TypeId::NONE,
                    };
                    named(column.0.clone(), base, typmod, domain)
                };
                Some(call.columns.iter().enumerate().map(field).collect())
            }
            _ => None,
        }
    }

    /// The modifier by which the query around knows the fields of a column of type `record`.
    pub(super) fn record_column(&mut self, value: &Expr) -> i32 {
        match self.fields_of_value(value) {
            Some(fields) if value.ty == TypeId::RECORD => {
                self.records.push(fields);
                i32::try_from(self.records.len() - 1).unwrap_or(types::NO_TYPMOD)
            }
            _ => value.typmod,
        }
    }

    /// The field at a place of a row.
    pub(super) fn field_at(
        &self,
        value: Expr,
        fields: &[Field],
        place: usize,
        location: i32,
    ) -> Expr {
        let field = &fields[place];
        if let ExprKind::Record(parts, _) = &value.kind {
            if let Some(part) = parts.get(place) {
                let collation = match field.collation {
                    0 => part.collation,
                    given => part.collation.given(given, location),
                };
                return Expr {
                    collation,
                    ..part.clone()
                };
            }
        }
        let number = i32::try_from(place).unwrap_or(i32::MAX);
        let args = vec![
            value,
            Expr::constant(Datum::Int4(number), TypeId::INT4, -1),
            Expr::constant(Datum::text(&field.name), TypeId::TEXT, -1),
        ];
        Expr {
            typmod: field.typmod,
            domain: field.domain,
            collation: Collated::implicit(field.collation).at(location),
            ..internal_call(&FIELD, args, field.ty, location)
        }
    }

    /// `(value).name`.
    ///
    /// # Errors
    /// 42809 for a value that is no row, 42703 where there is no such field.
    pub(super) fn field(&mut self, value: Expr, name: &str, location: i32) -> Result<Expr> {
        let ty = value.ty;
        let Some(fields) = self.fields_of_value(&value) else {
            if ty == TypeId::RECORD {
                return Err(self.error(
                    SqlState::UNDEFINED_COLUMN,
                    format!("could not identify column \"{name}\" in record data type"),
                    location,
                ));
            }
            return Err(self.error(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "column notation .{name} applied to type {ty}, which is not a composite type"
                ),
                location,
            ));
        };
        match self.place_of_field(ty, &fields, name) {
            Some(place) => Ok(self.field_at(value, &fields, place, location)),
            None => Err(self.error(
                SqlState::UNDEFINED_COLUMN,
                match ty {
                    TypeId::RECORD => {
                        format!("could not identify column \"{name}\" in record data type")
                    }
                    ty => format!("column \"{name}\" not found in data type {ty}"),
                },
                location,
            )),
        }
    }

    /// The place of a field among those of a row of a type, by the name that the text at work has for it.
    pub(super) fn place_of_field(
        &mut self,
        ty: TypeId,
        fields: &[Field],
        name: &str,
    ) -> Option<usize> {
        let numbers = self.cx.catalog.field_numbers(ty);
        let body = self.cx.variables.and_then(|known| known.sql_body());
        let known = body.and_then(|body| body.named(ty.0));
        let place = match (&numbers, known) {
            (Some(numbers), Some(known)) => numbers
                .iter()
                .position(|number| known.columns.get(*number).is_some_and(|own| own == name)),
            _ => fields.iter().position(|field| field.name == name),
        }?;
        if let (Some(recorded), Some(numbers)) = (&mut self.recorded, numbers) {
            recorded.fields.push((ty, numbers[place]));
        }
        Some(place)
    }

    /// `(value).name`: a field, or what a function of that name makes of the row.
    pub(super) fn field_or_function(
        &mut self,
        value: Expr,
        name: &str,
        location: i32,
    ) -> Result<Expr> {
        if value.ty != TypeId::RECORD && self.fields_of_type(value.ty).is_some() {
            let fields = self.fields_of_value(&value).unwrap_or_default();
            if !fields.iter().any(|field| field.name == name) {
                if let Ok(made) = self.call_by_name(name, vec![value.clone()], location) {
                    return Ok(made);
                }
            }
        }
        self.field(value, name, location)
    }

    /// All fields of a value that is spread.
    pub(super) fn spread_value(
        &mut self,
        value: Expr,
        location: i32,
    ) -> Result<Vec<(Expr, OutputColumn)>> {
        let Some(fields) = self.fields_of_value(&value) else {
            if value.ty == TypeId::RECORD {
                return Err(base::Error::new(
                    SqlState::DATATYPE_MISMATCH,
                    "record type has not been registered",
                ));
            }
            return Err(self.error(
                SqlState::WRONG_OBJECT_TYPE,
                format!("type {} is not composite", value.ty),
                location,
            ));
        };
        let columns = (0..fields.len()).map(|place| {
            let expr = self.field_at(value.clone(), &fields, place, location);
            let field = &fields[place];
            let column = OutputColumn {
                name: field.name.clone(),
                ty: field.ty,
                typmod: field.typmod,
                domain: field.domain,
                collation: expr.collation.nowhere(),
                origin: (0, 0),
            };
            (expr, column)
        });
        Ok(columns.collect())
    }

    /// What `(value).*`, `t.c.*` or `t.*` among targets or values means; none if it is no such.
    pub(super) fn spread_star(
        &mut self,
        node: &NodeEnum,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Option<Vec<(Expr, OutputColumn)>>> {
        let is_star = |node: &Node| matches!(node.node, Some(NodeEnum::AStar(_)));
        match node {
            NodeEnum::AIndirection(part) if part.indirection.last().is_some_and(is_star) => {
                let steps = &part.indirection[..part.indirection.len() - 1];
                let value = match part.arg.as_deref() {
                    Some(arg) => inner(arg)?,
                    None => return Ok(None),
                };
                // `(t).*` is `t.*`.
                if let (NodeEnum::ColumnRef(column), true) = (value, steps.is_empty()) {
                    if let [name] = strings(&column.fields)[..] {
                        if self.names_item(name, scope)? {
                            return self.star(&[name], scope, column.location).map(Some);
                        }
                    }
                }
                let value = self.indirection_of(value, steps, scope, place)?;
                let location = value.location.0;
                self.spread_value(value, location).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Whether a name alone means an item of FROM, and no column or variable.
    pub(super) fn names_item(&mut self, name: &str, scope: &Scope<'_>) -> Result<bool> {
        let mut levels = scope.levels();
        if !levels.any(|level| level.tables.iter().any(|table| table.alias == name)) {
            return Ok(false);
        }
        if let Some(known) = self.cx.variables {
            if known.find(&[name]).ok().flatten().is_some() {
                return Ok(false);
            }
        }
        Ok(!self.is_column(name, scope)?)
    }

    /// The names of fields, as a record has them.
    pub(super) fn names_of(fields: &[Field]) -> Arc<[String]> {
        fields.iter().map(|field| field.name.clone()).collect()
    }
}
