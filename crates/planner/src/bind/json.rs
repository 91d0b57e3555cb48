//! What the grammar has for JSON: subscripts of a `jsonb`, assignment to its parts, and functions
//! that give rows of a column definition list.
//!
//! ```text
//! j['a'][0]                                j at the path of texts {a,0}
//! UPDATE … SET j['a'] = '1'                j = a call of ASSIGN: j, the path, the value
//! json_to_record(x) AS t (a int)           a call with names, types and modifiers as constants
//! ```

use std::rc::Rc;
use std::sync::Arc;

use base::{Result, SqlState};
use pg_query::protobuf::{AIndices, Node, RangeFunction};

use super::expr::Place;
use super::parts::Assigned;
use super::scope::{plain_column, Scope, ScopeColumn};
use super::{boxed, inner, type_names, Binder};
use crate::plan::{Expr, ExprKind, Func, How};
use functions::{find_coercion, json, CastContext, Function};
use syntax::parser::NodeEnum;
use types::{Array, Datum, TypeId, NO_TYPMOD};

/// `json_populate_record` and its kin.
const FILLING: [u32; 4] = [3_209, 3_475, 3_960, 3_961];

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
            let step = self.expr(boxed(&indices.uidx)?, scope, place)?;
            let location = step.location.0;
            if indices.is_slice {
                return Err(self.error(
                    SqlState::DATATYPE_MISMATCH,
                    "jsonb subscript does not support slices",
                    location,
                ));
            }
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

    /// What a column of the table that is written holds before.
    pub(super) fn old_value(&self, name: &str, scope: &Scope<'_>, location: i32) -> Result<Expr> {
        let table = scope.tables.first();
        let named = |column: &ScopeColumn| column.name == name;
        let found = table.and_then(|table| Some((table, table.columns.iter().position(named)?)));
        match found {
            Some((table, place)) => Ok(scope.column_expr(table, place, location)),
            None => Err(base::Error::internal(
                "an assignment to a column of no table",
            )),
        }
    }

    /// A function in FROM with a column definition list: the call with the list as further
    /// arguments, and its columns.
    pub(super) fn defined_columns(
        &mut self,
        function: &RangeFunction,
        expr: &mut Expr,
    ) -> Result<Option<Vec<ScopeColumn>>> {
        let location = expr.location.0;
        let (called, args, types) = match &mut expr.kind {
            ExprKind::SetCall(called, args, types) | ExprKind::Call(called, args, types)
                if json::takes_columns(called.0) =>
            {
                (*called, args, types)
            }
            _ if function.coldeflist.is_empty() => return Ok(None),
            _ if expr.ty == TypeId::RECORD => {
                return Err(self.unsupported("a column definition list here", location));
            }
            _ => {
                let list = function.coldeflist.first().map(inner).transpose()?;
                let location = match list {
                    Some(NodeEnum::ColumnDef(definition)) => definition.location,
                    _ => location,
                };
                return Err(self.error(
                    SqlState::SYNTAX_ERROR,
                    "a column definition list is only allowed for functions returning \"record\"",
                    location,
                ));
            }
        };
        if function.coldeflist.is_empty() {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                "a column definition list is required for functions returning \"record\"",
                location,
            ));
        }
        if function.ordinality {
            let message = "WITH ORDINALITY cannot be used with a column definition list";
            let first = function.coldeflist.first().map(inner).transpose()?;
            let location = match first {
                Some(NodeEnum::ColumnDef(definition)) => definition.location,
                _ => location,
            };
            return Err(self
                .error(SqlState::SYNTAX_ERROR, message, location)
                .with_hint("Put the column definition list inside ROWS FROM()."));
        }
        let mut columns = Vec::new();
        for node in &function.coldeflist {
            let NodeEnum::ColumnDef(definition) = inner(node)? else {
                continue;
            };
            let Some(name) = &definition.type_name else {
                continue;
            };
            let (ty, typmod) = type_names::resolve_no_domain(&self.cx, name)?;
            columns.push(ScopeColumn {
                typmod,
                ..plain_column(&definition.colname, ty)
            });
        }
        let mut list = |element: TypeId, values: Vec<Datum>| {
            let array = Datum::Array(Arc::new(Array::of(element, values)));
            let ty = element.array_of().unwrap_or(TypeId::TEXT_ARRAY);
            args.push(Expr::constant(array, ty, -1));
        };
        let each = |of: fn(&ScopeColumn) -> Datum| columns.iter().map(of).collect();
        list(TypeId::TEXT, each(|column| Datum::text(&column.name)));
        list(TypeId::OID, each(|column| Datum::Oid(column.ty.0)));
        list(TypeId::INT4, each(|column| Datum::Int4(column.typmod)));
        let of_args: Rc<[TypeId]> = args.iter().map(|arg| arg.ty).collect();
        *types = of_args.clone();
        expr.kind = ExprKind::SetCall(called, std::mem::take(args), of_args);
        Ok(Some(columns))
    }

    /// 0A000 for a function that fills a row of no type with JSON, whether or not it would be called:
    /// what it is given is looked at when constants are folded, which no row needs.
    pub(super) fn refuse_filling(
        &self,
        function: &Function,
        args: &[Expr],
        location: i32,
    ) -> Result<()> {
        let of_domain = |row: &Expr| row.domain != TypeId::NONE && function.is_set_returning();
        if FILLING.contains(&function.oid) && args.first().is_some_and(of_domain) {
            let what = format!("function {} with a row of a domain", function.name);
            return Err(self.unsupported(&what, location));
        }
        let of_row = args.first().is_some_and(|row| row.ty.is_composite());
        match FILLING.contains(&function.oid) && !of_row {
            true => {
                let what = format!("function {} with a row of no type", function.name);
                Err(self.unsupported(&what, location))
            }
            false => Ok(()),
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
