//! Functions of FROM with a column definition list.
//!
//! ```text
//! f(x) AS t (a int)                 a routine: its rows are those columns
//! json_to_record(x) AS t (a int)    a call with names, types and modifiers as constants behind its own
//! coalesce(x, y) AS t (a int)       the same of a function that finds the row to be one of those columns
//! ```
//!
//! # What it leaves out
//! A list for a built-in function that gives a set of rows of no type, as `unnest` of an array of rows.
//! Columns of a domain.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Node, RangeFunction};

use super::scope::{plain_column, ScopeColumn};
use super::{inner, type_names, Binder};
use crate::plan::{Expr, ExprKind, Func};
use functions::{json, listed};
use syntax::parser::NodeEnum;
use types::{Array, Datum, TypeId};

/// The call of an item of FROM, and the column definition list behind it or behind the item.
pub(super) fn call_and_list<'f>(
    function: &'f RangeFunction,
    item: &'f Node,
) -> Result<(&'f Node, &'f [Node])> {
    let NodeEnum::List(list) = inner(item)? else {
        return Ok((item, &function.coldeflist));
    };
    let call = list.items.first();
    let call = call.ok_or_else(|| Error::internal("no function in FROM"))?;
    let own = list.items.get(1).and_then(|node| node.node.as_ref());
    Ok((
        call,
        match own {
            Some(NodeEnum::List(columns)) => &columns.items,
            _ => &function.coldeflist,
        },
    ))
}

/// Where a column definition list stands.
fn place_of(list: &[Node]) -> i32 {
    match list.first().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::ColumnDef(column)) => column.location,
        _ => -1,
    }
}

impl Binder<'_> {
    /// A call of a routine with the columns that a column definition list says.
    pub(super) fn routine_listed(&mut self, expr: Expr, list: &[Node]) -> Result<Expr> {
        let ExprKind::Routine(call, args) = &expr.kind else {
            return Ok(expr);
        };
        let is_open = call.result == TypeId::RECORD && call.columns.is_empty();
        if !is_open && list.is_empty() {
            return Ok(expr);
        }
        if !is_open {
            let (declared, _) = self.cx.catalog.base_type(call.routine.result);
            let is_named = declared.is_composite() || call.routine.result_relation != 0;
            return Err(self.superfluous_list(is_named, call.result, list));
        }
        let mut call = (**call).clone();
        let columns = self.list(&expr, list)?;
        call.typmods = columns.iter().map(|column| column.typmod).collect();
        let columns = columns.into_iter().map(|column| (column.name, column.ty));
        call.columns.extend(columns);
        Ok(Expr {
            kind: ExprKind::Routine(Rc::new(call), args.clone()),
            ..expr
        })
    }

    /// The columns of any other item with a column definition list, which becomes further arguments.
    pub(super) fn columns_listed(
        &mut self,
        function: &RangeFunction,
        list: &[Node],
        expr: &mut Expr,
    ) -> Result<Option<Vec<ScopeColumn>>> {
        let is_open = match &expr.kind {
            _ if expr.ty != TypeId::RECORD => false,
            ExprKind::SetCall(called, ..) | ExprKind::Call(called, ..) => {
                json::takes_columns(called.0) || called.0.result != TypeId::RECORD
            }
            _ => true,
        };
        let takes_list = match &expr.kind {
            ExprKind::SetCall(called, ..) | ExprKind::Call(called, ..) => {
                is_open && (json::takes_columns(called.0) || json::fills(called.0))
            }
            _ => false,
        };
        if list.is_empty() && !takes_list {
            return Ok(None);
        }
        if !is_open {
            return Err(self.superfluous_list(expr.ty.is_composite(), expr.ty, list));
        }
        if function.ordinality && !function.coldeflist.is_empty() {
            let message = "WITH ORDINALITY cannot be used with a column definition list";
            return Err(self
                .error(SqlState::SYNTAX_ERROR, message, place_of(list))
                .with_hint("Put the column definition list inside ROWS FROM()."));
        }
        let columns = self.list(expr, list)?;
        let (location, has_sets) = (expr.location.0, expr.has_sets());
        let (called, mut args) = match &mut expr.kind {
            ExprKind::SetCall(called, args, _) | ExprKind::Call(called, args, _) if takes_list => {
                (*called, std::mem::take(args))
            }
            _ if has_sets => {
                return Err(self.unsupported("a column definition list here", location));
            }
            _ => (Func(&listed::LISTED), vec![expr.clone()]),
        };
        let mut further = |element: TypeId, values: Vec<Datum>| {
            let array = Datum::Array(Arc::new(Array::of(element, values)));
            let ty = element.array_of().unwrap_or(TypeId::TEXT_ARRAY);
            args.push(Expr::constant(array, ty, -1));
        };
        let each = |of: fn(&ScopeColumn) -> Datum| columns.iter().map(of).collect();
        further(TypeId::TEXT, each(|column| Datum::text(&column.name)));
        further(TypeId::OID, each(|column| Datum::Oid(column.ty.0)));
        further(TypeId::INT4, each(|column| Datum::Int4(column.typmod)));
        let types: Rc<[TypeId]> = args.iter().map(|arg| arg.ty).collect();
        expr.kind = ExprKind::SetCall(called, args, types);
        Ok(Some(columns))
    }

    /// The columns of a list that must be there.
    fn list(&self, expr: &Expr, list: &[Node]) -> Result<Vec<ScopeColumn>> {
        if list.is_empty() {
            let message = "a column definition list is required for functions returning \"record\"";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, expr.location.0));
        }
        let mut columns = Vec::with_capacity(list.len());
        for node in list {
            let NodeEnum::ColumnDef(column) = inner(node)? else {
                continue;
            };
            let name = column.type_name.as_ref();
            let name = name.ok_or_else(|| Error::internal("a column without a type"))?;
            let (ty, typmod) = type_names::resolve_no_domain(&self.cx, name)?;
            columns.push(ScopeColumn {
                typmod,
                ..plain_column(&column.colname, ty)
            });
        }
        Ok(columns)
    }

    /// 42601 for a list where the columns are known.
    fn superfluous_list(&self, is_named: bool, result: TypeId, list: &[Node]) -> Error {
        let what = match (is_named, result) {
            (true, _) => "redundant for a function returning a named composite type",
            (false, TypeId::RECORD) => "redundant for a function with OUT parameters",
            (false, _) => "only allowed for functions returning \"record\"",
        };
        let message = format!("a column definition list is {what}");
        self.error(SqlState::SYNTAX_ERROR, message, place_of(list))
    }
}
