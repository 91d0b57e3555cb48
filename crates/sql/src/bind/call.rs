//! Calls of functions and aggregates.

use std::rc::Rc;

use base::{Result, SqlState};
use pg_query::protobuf::FuncCall;

use super::expr::Place;
use super::scope::Scope;
use super::select::sort_order;
use super::{boxed, inner, strings, Binder};
use crate::functions::{resolve_aggregate, resolve_function, FunctionMatch};
use crate::parser::NodeEnum;
use crate::plan::{Agg, AggregateCall, Expr, ExprKind, Func};
use crate::types::TypeId;

impl Binder<'_> {
    pub(super) fn function_call(
        &mut self,
        call: &FuncCall,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = call.location;
        let names = strings(&call.funcname);
        let name = names.last().copied().unwrap_or_default();
        let own = format!("quorate.{name}");
        let name = match names.as_slice() {
            ["quorate", _] => own.as_str(),
            _ => name,
        };
        if call.over.is_some() {
            return Err(self.unsupported("a window function", location));
        }
        if call.agg_within_group {
            return Err(self.unsupported("WITHIN GROUP", location));
        }
        if call.func_variadic {
            return Err(self.unsupported("VARIADIC in a call", location));
        }
        if call
            .args
            .iter()
            .any(|arg| matches!(arg.node, Some(NodeEnum::NamedArgExpr(_))))
        {
            return Err(self.unsupported("a named argument", location));
        }
        let below = Place {
            sets: false,
            ..place
        };
        if let [schema, _] = names.as_slice() {
            if !["pg_catalog", "quorate"].contains(schema) {
                let types = self.argument_types(call, scope, below)?;
                let message = format!("function {schema}.{name}({types}) does not exist");
                return Err(self.no_function(message, location));
            }
        }
        let args = self.nodes(&call.args, scope, below)?;
        let types: Vec<_> = args.iter().map(|arg| arg.ty).collect();
        let aggregate = match !call.agg_star && args.is_empty() {
            // Only `count(*)` has no arguments.
            true => None,
            false => {
                resolve_aggregate(name, &types).map_err(|error| self.place(error, location))?
            }
        };
        if let Some(found) = aggregate {
            if !place.aggregates {
                return Err(self.error(
                    SqlState::GROUPING_ERROR,
                    format!("aggregate functions are not allowed in {}", place.clause),
                    location,
                ));
            }
            return self.aggregate_call(call, found, args, scope);
        }
        for (used, what) in [
            (call.agg_distinct, "DISTINCT"),
            (call.agg_star, "*"),
            (!call.agg_order.is_empty(), "ORDER BY"),
            (call.agg_filter.is_some(), "FILTER"),
        ] {
            if used && resolve_function(name, &types).is_ok() {
                let message = format!("{what} specified, but {name} is not an aggregate function");
                return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, location));
            }
        }
        let out = self.call_by_name(name, args, location)?;
        if matches!(out.kind, ExprKind::SetCall(..)) && !place.sets {
            let message = match place.clause {
                "SELECT" => {
                    return Err(
                        self.unsupported("a set-returning function inside an expression", location)
                    )
                }
                clause => format!("set-returning functions are not allowed in {clause}"),
            };
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location));
        }
        Ok(out)
    }

    fn argument_types(
        &mut self,
        call: &FuncCall,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<String> {
        let args = self.nodes(&call.args, scope, place)?;
        let names: Vec<_> = args.iter().map(|arg| arg.ty.to_string()).collect();
        Ok(names.join(", "))
    }

    fn no_function(&self, message: String, location: i32) -> base::Error {
        self.error(SqlState::UNDEFINED_FUNCTION, message, location)
            .with_hint(
                "No function matches the given name and argument types. You might need to add \
             explicit type casts.",
            )
    }

    /// A call of a built-in function.
    pub(super) fn call_by_name(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        location: i32,
    ) -> Result<Expr> {
        let types: Vec<_> = args.iter().map(|arg| arg.ty).collect();
        let found = match resolve_function(name, &types) {
            Ok(found) => found,
            // `text(x)` and the like are casts (PostgreSQL 15 manual, section 10.3).
            Err(error) => match (TypeId::by_name(name), args.as_slice()) {
                (Some(ty), [_]) => {
                    let mut args = args;
                    let arg = args.remove(0);
                    return self.cast(arg, ty, -1, location);
                }
                _ => return Err(self.place(error, location)),
            },
        };
        self.call_found(found, args, location)
    }

    fn call_found(&mut self, found: FunctionMatch, args: Vec<Expr>, location: i32) -> Result<Expr> {
        let args = args
            .into_iter()
            .zip(&found.argument_types)
            .map(|(arg, ty)| match *ty {
                // A literal without a type stays one to a function of anything.
                TypeId::ANY | TypeId::UNKNOWN => Ok(arg),
                ty => {
                    let arg = self.coerce_argument(arg, ty)?;
                    self.settle(arg)
                }
            })
            .collect::<Result<Vec<_>>>()?;
        let types: Rc<[TypeId]> = args.iter().map(|arg| arg.ty).collect();
        let function = Func(found.function);
        let kind = match found.function.is_set_returning() {
            true => ExprKind::SetCall(function, args, types),
            false => ExprKind::Call(function, args, types),
        };
        Ok(Expr::new(kind, found.result, location))
    }

    fn aggregate_call(
        &mut self,
        call: &FuncCall,
        found: crate::functions::resolve::AggregateMatch,
        args: Vec<Expr>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let location = call.location;
        let nested = |expr: &Expr| expr.any(&|part| matches!(part.kind, ExprKind::Aggregate(_)));
        if let Some(arg) = args.iter().find(|arg| nested(arg)) {
            let mut at = location;
            arg.visit(&mut |part| {
                if matches!(part.kind, ExprKind::Aggregate(_)) {
                    at = part.location.0;
                }
            });
            return Err(self.error(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot be nested",
                at,
            ));
        }
        let args = args
            .into_iter()
            .zip(&found.argument_types)
            .map(|(arg, ty)| {
                let arg = self.coerce_argument(arg, *ty)?;
                self.settle(arg)
            })
            .collect::<Result<Vec<_>>>()?;
        let filter = match &call.agg_filter {
            None => None,
            Some(_) => {
                let place = Place::plain("FILTER");
                let filter = self.expr(boxed(&call.agg_filter)?, scope, place)?;
                Some(self.condition(filter, "FILTER")?)
            }
        };
        let mut order = Vec::new();
        for item in &call.agg_order {
            let NodeEnum::SortBy(sort) = inner(item)? else {
                continue;
            };
            let place = Place::plain("an aggregate's ORDER BY");
            let value = self.expr(boxed(&sort.node)?, scope, place)?;
            let value = self.settle(value)?;
            let (descending, nulls_first) = sort_order(sort);
            order.push((value, descending, nulls_first));
        }
        let aggregate = AggregateCall {
            aggregate: Agg(found.aggregate),
            types: args.iter().map(|arg| arg.ty).collect(),
            args,
            distinct: call.agg_distinct,
            filter,
            order,
        };
        let kind = ExprKind::Aggregate(Box::new(aggregate));
        Ok(Expr::new(kind, found.result, location))
    }
}
