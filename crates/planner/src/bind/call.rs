//! Calls of functions and aggregates.

use std::rc::Rc;

use base::{Result, SqlState};
use pg_query::protobuf::{CoercionForm, FuncCall};

use super::expr::{Place, Sets};
use super::level::Marks;
use super::routine::Called;
use super::scope::Scope;
use super::select::sort_order;
use super::window::{clause_words, window_in};
use super::{boxed, inner, strings, Binder};
use crate::plan::{Agg, AggregateCall, Expr, ExprKind, Func, How};
use functions::extensions::of_type;
use functions::resolve::{resolve_aggregate, resolve_aggregate_among, resolve_function_with};
use functions::{
    aggregates_named, resolve_function, resolve_window, resolve_with_array, with_array, Aggregate,
    Function, FunctionMatch,
};
use syntax::parser::NodeEnum;
use types::{Category, TypeId};

/// What is advised where a set cannot stand.
const TO_LATERAL: &str =
    "You might be able to move the set-returning function into a LATERAL FROM item.";

/// The oid of `pg_typeof`.
const PG_TYPEOF: u32 = 1_619;

/// A function under the words of SQL that it was called by, so that it is shown so.
fn written_in_words(function: &'static Function) -> &'static Function {
    let words = match function.name {
        "timezone" => "AT TIME ZONE",
        "pg_collation_for" => "COLLATION FOR",
        "extract" => "EXTRACT",
        "is_normalized" => "IS NORMALIZED",
        "normalize" => "NORMALIZE",
        "overlaps" => "OVERLAPS",
        "overlay" => "OVERLAY",
        "position" => "POSITION",
        // A pattern is shown as an argument of a function.
        "substring" if !matches!(function.arguments, [_, TypeId::TEXT]) => "SUBSTRING",
        "btrim" => "TRIM BOTH",
        "ltrim" => "TRIM LEADING",
        "rtrim" => "TRIM TRAILING",
        _ => return function,
    };
    functions::under_keyword(function, words)
}

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
        let own = names.join(".");
        let name = match names.as_slice() {
            ["quorate" | "information_schema", _] => own.as_str(),
            _ => name,
        };
        if call.agg_within_group {
            return self.ordered_set_call(call, name, scope, place);
        }
        let below = place.inside();
        let marks = Marks::of(scope);
        match self.routine_call(call, &names, scope, below)? {
            Some(Called::Expr(out)) => {
                self.refuse_words_of_aggregates(call, &out)?;
                return self.check_set_place(out, place, location);
            }
            Some(Called::Aggregate(own)) => {
                return self.own_call_placed(call, own, scope, place, &marks);
            }
            None => {}
        }
        if call.func_variadic {
            return self.array_call(call, &names, name, scope, below);
        }
        if call
            .args
            .iter()
            .any(|arg| matches!(arg.node, Some(NodeEnum::NamedArgExpr(_))))
        {
            return self.named_call(call, &names, scope, place);
        }
        let aggregates = self.aggregates_seen(&names, name);
        if let [schema, _] = names.as_slice() {
            let listed = ["pg_catalog", "quorate", "information_schema"];
            if !listed.contains(schema) && aggregates.is_empty() {
                let types = self.argument_types(call, scope, below)?;
                self.refuse_missing_schema(schema, location)?;
                let message = format!("function {schema}.{name}({types}) does not exist");
                return Err(self.no_function(message, location));
            }
        }
        let args = self.nodes(&call.args, scope, below)?;
        if let ("pg_collation_for", [arg]) = (name, &args[..]) {
            return self.collation_for(arg.clone(), location);
        }
        let types: Vec<_> = args.iter().map(|arg| arg.ty).collect();
        let window = resolve_window(name, &types);
        let window = window.map_err(|error| self.place_choice(error, location))?;
        if let Some(found) = window {
            self.calls(found.function.oid);
            self.refuse_sets(&args, "window")?;
            return self.window_function(call, &found, args, scope, place);
        }
        let aggregate = match !call.agg_star && args.is_empty() {
            // Only `count(*)` has no arguments.
            true => self.refuse_without_star(name, location)?,
            false => {
                let unasked = self.unasked();
                let found =
                    resolve_aggregate_among(&names.join("."), &types, &aggregates, &unasked);
                found.map_err(|error| self.place_choice(error, location))?
            }
        };
        if self.recorded.is_some() && names.len() == 1 {
            let other = resolve_aggregate(name, &types).ok().flatten();
            let chosen = aggregate.as_ref().map(|found| found.aggregate.oid);
            let other = other.map(|found| found.aggregate.oid);
            self.refuse_hidden(aggregate.is_some() && other != chosen, name, location)?;
        }
        if let Some(found) = aggregate {
            if found.aggregate.ordered_set().is_some() {
                let message = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
                return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, location));
            }
            self.calls_over(found.aggregate.oid, call.over.is_some());
            let what = match call.over {
                Some(_) => "window",
                None => "aggregate",
            };
            self.refuse_sets(&args, what)?;
            if call.over.is_some() {
                return match found.aggregate.is_extreme() {
                    true => {
                        let args = self.call_arguments(args, &found.argument_types)?;
                        self.extreme_of(args, |binder, args| {
                            let types: Vec<_> = args.iter().map(|arg| arg.ty).collect();
                            let result = types.first().copied().unwrap_or(found.result);
                            let types = (types.as_slice(), result);
                            binder.aggregate_over(call, found.aggregate, args, types, scope, place)
                        })
                    }
                    false => {
                        let types = (found.argument_types.as_slice(), found.result);
                        self.aggregate_over(call, found.aggregate, args, types, scope, place)
                    }
                };
            }
            let aggregate = Agg::BuiltIn(found.aggregate);
            let args = self.call_arguments(args, &found.argument_types)?;
            let placed = |binder: &mut Self, result, args| {
                let own = binder.aggregate_call(call, aggregate, result, args, scope)?;
                let what = "aggregate functions";
                if let Some(shown) = binder.of_outer_query(&own, what, scope, &marks)? {
                    return Ok(shown);
                }
                binder.check_own_aggregate(&own, place)?;
                Ok(own)
            };
            return match found.aggregate.is_extreme() {
                true => self.extreme_of(args, |binder, args| {
                    let result = args.first().map_or(found.result, |arg| arg.ty);
                    placed(binder, result, args)
                }),
                false => placed(self, found.result, args),
            };
        }
        self.refuse_aggregate_words(call, name, || resolve_function(name, &types).is_ok())?;
        let mut out = self.call_by_name(name, args, location)?;
        if call.funcformat == CoercionForm::CoerceSqlSyntax as i32 {
            if let ExprKind::Call(function, ..) = &mut out.kind {
                *function = Func(written_in_words(function.0));
            }
        }
        self.check_set_place(out, place, location)
    }

    /// A call of a built-in function whose last argument is the array of VARIADIC.
    fn array_call(
        &mut self,
        call: &FuncCall,
        names: &[&str],
        name: &str,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = call.location;
        let args = self.nodes(&call.args, scope, place)?;
        let types: Vec<_> = args.iter().map(|arg| arg.ty).collect();
        let found = resolve_with_array(name, &types).and_then(|found| {
            let function = with_array(found.function).ok_or_else(|| {
                base::Error::unsupported(format!("VARIADIC in a call of {}", names.join(".")))
            })?;
            Ok(FunctionMatch { function, ..found })
        });
        let found = found.map_err(|error| self.place(error, location))?;
        let (Some(last), Some(declared)) = (args.last(), found.function.arguments.last()) else {
            return Err(base::Error::internal("VARIADIC of nothing"));
        };
        if *declared == TypeId::ANY && last.ty.array_element().is_none() {
            let message = "VARIADIC argument must be an array";
            return Err(self.error(SqlState::DATATYPE_MISMATCH, message, last.leftmost()));
        }
        self.refuse_aggregate_words(call, name, || true)?;
        self.call_found(found, args, location)
    }

    /// A call with named arguments of what is no routine.
    fn named_call(
        &mut self,
        call: &FuncCall,
        names: &[&str],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let written = self.written_arguments(call, scope, place.inside())?;
        let types: Vec<_> = written.args.iter().map(|arg| arg.ty).collect();
        let found = match names {
            [name] | ["pg_catalog", name] => {
                let found = self.named_built_in(name, &written, call.location)?;
                self.refuse_aggregate_words(call, name, || found.is_some())?;
                found
            }
            [schema, _] => {
                self.refuse_missing_schema(schema, call.location)?;
                None
            }
            _ => None,
        };
        match found {
            Some(out) => self.check_set_place(out, place, call.location),
            None => Err(self.no_routine(&names.join("."), &types, &written, call.location)),
        }
    }

    /// 3F000 for what is named in a schema that is not there.
    fn refuse_missing_schema(&self, schema: &str, location: i32) -> Result<()> {
        match self.cx.catalog.schema(schema) {
            Some(_) => Ok(()),
            None => Err(self.error(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{schema}\" does not exist"),
                location,
            )),
        }
    }

    /// The aggregates that a name may mean. Those of extensions are where their extension is.
    fn aggregates_seen(&self, names: &[&str], name: &str) -> Vec<&'static Aggregate> {
        let catalog = self.cx.catalog;
        let is_seen = |aggregate: &&&Aggregate| {
            let written = names.len().checked_sub(2).map(|at| names[at]);
            let Some(extension) = of_type(aggregate.result) else {
                return written.is_none_or(|schema| ["pg_catalog", "quorate"].contains(&schema));
            };
            let Some(known) = catalog.extension(extension.name) else {
                return false;
            };
            // What is stored was found once, wherever its extension is now.
            if self.stored {
                return written != Some("pg_catalog");
            }
            match written.map(|schema| catalog.schema(schema)) {
                Some(schema) => schema.is_some_and(|schema| schema.oid == known.schema),
                None => self.cx.search_path.contains(&known.schema),
            }
        };
        let named = aggregates_named(name).iter();
        named.filter(is_seen).copied().collect()
    }

    /// DISTINCT and the like are for aggregates.
    fn refuse_words_of_aggregates(&self, call: &FuncCall, out: &Expr) -> Result<()> {
        let ExprKind::Routine(called, _) = &out.kind else {
            return Ok(());
        };
        let name = &called.routine.name;
        for (used, what) in [
            (call.agg_star, format!("{name}(*)")),
            (call.agg_distinct, "DISTINCT".to_owned()),
            (!call.agg_order.is_empty(), "ORDER BY".to_owned()),
            (call.agg_filter.is_some(), "FILTER".to_owned()),
            (call.over.is_some(), "OVER".to_owned()),
        ] {
            if used {
                let what_not = match what.as_str() {
                    "OVER" => "a window function nor an aggregate function",
                    _ => "an aggregate function",
                };
                let message = format!("{what} specified, but {name} is not {what_not}");
                return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location));
            }
        }
        Ok(())
    }

    /// 0A000 for a set where none may stand.
    fn check_set_place(&self, out: Expr, place: Place, location: i32) -> Result<Expr> {
        let allowed = matches!(place.sets, Sets::Anywhere | Sets::Whole);
        if out.is_set() && !allowed {
            let message = match place.clause {
                _ if place.sets == Sets::Below => {
                    "set-returning functions must appear at top level of FROM".to_owned()
                }
                "window definitions" => {
                    let what = "a set-returning function in a window definition";
                    return Err(self.unsupported(what, location));
                }
                "window ROWS" | "window RANGE" | "window GROUPS" => {
                    "set-returning functions are not allowed in window definitions".to_owned()
                }
                clause => {
                    let clause = match place.sets {
                        Sets::Within(construct) => construct,
                        _ => clause_words(clause),
                    };
                    format!("set-returning functions are not allowed in {clause}")
                }
            };
            let error = self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location);
            return Err(match place.sets {
                Sets::Within(_) => error.with_hint(TO_LATERAL),
                _ => error,
            });
        }
        Ok(out)
    }

    /// 0A000 for a set among the arguments of an aggregate or a window function.
    pub(super) fn refuse_sets(&self, args: &[Expr], what: &str) -> Result<()> {
        let mut set = None;
        let mut look = |part: &Expr| {
            if part.is_set() {
                set.get_or_insert(part.location.0);
            }
        };
        args.iter().for_each(|arg| arg.visit(&mut look));
        let Some(location) = set else {
            return Ok(());
        };
        let message = format!("{what} function calls cannot contain set-returning function calls");
        let error = self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location);
        Err(error.with_hint(TO_LATERAL))
    }

    /// 42804 for a set in a row that is compared with another.
    pub(super) fn refuse_set_in_rows(&self, row: &Expr, location: i32) -> Result<()> {
        match row.has_sets() {
            true => Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                "row comparison operator must not return a set",
                location,
            )),
            false => Ok(()),
        }
    }

    /// `count()` lacks its star.
    fn refuse_without_star<T>(&self, name: &str, location: i32) -> Result<Option<T>> {
        let takes_none = |aggregate: &&&Aggregate| aggregate.arguments.is_empty();
        match aggregates_named(name).iter().find(takes_none) {
            None => Ok(None),
            Some(_) => Err(self.error(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{name}(*) must be used to call a parameterless aggregate function"),
                location,
            )),
        }
    }

    /// What only an aggregate or a window function may be called with.
    fn refuse_aggregate_words(
        &self,
        call: &FuncCall,
        name: &str,
        is_function: impl Fn() -> bool,
    ) -> Result<()> {
        let star = format!("{name}(*)");
        let no_aggregate = format!("{name} is not an aggregate function");
        let no_window = format!("{name} is not a window function nor an aggregate function");
        for (used, what, why) in [
            (call.agg_star, star.as_str(), &no_aggregate),
            (call.agg_distinct, "DISTINCT", &no_aggregate),
            (!call.agg_order.is_empty(), "ORDER BY", &no_aggregate),
            (call.agg_filter.is_some(), "FILTER", &no_aggregate),
            (call.over.is_some(), "OVER", &no_window),
        ] {
            if used && is_function() {
                let message = format!("{what} specified, but {why}");
                return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location));
            }
        }
        Ok(())
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

    pub(super) fn no_function(&self, message: String, location: i32) -> base::Error {
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
        // A literal in the parentheses of a type's name is one of it, whatever functions there are.
        if let [arg] = args.as_slice() {
            let is_literal = arg.is_untyped() && matches!(arg.kind, ExprKind::Const(..));
            if let Some(ty) = is_literal.then(|| TypeId::by_name(name)).flatten() {
                return self.cast(arg.clone(), ty, -1, location);
            }
        }
        let types: Vec<_> = args.iter().map(|arg| arg.ty).collect();
        let chosen = resolve_function_with(name, &types, &self.unasked());
        let found = match chosen {
            Ok(found) => found,
            // `text(x)` and the like are casts (PostgreSQL 15 manual, section 10.3).
            Err(error) => match (TypeId::by_name(name), args.as_slice()) {
                // No row, though, is made a text so.
                (Some(ty), [row])
                    if ty.category() == Category::String
                        && (row.ty == TypeId::RECORD || row.ty.is_composite()) =>
                {
                    return Err(self.place_choice(error, location));
                }
                (Some(ty), [_]) => {
                    let mut args = args;
                    let arg = args.remove(0);
                    return self.cast(arg, ty, -1, location);
                }
                (_, [row]) => {
                    // `f(row)` is `row.f`.
                    let fields = self.fields_of_value(row).unwrap_or_default();
                    return match fields.iter().position(|field| field.name == name) {
                        Some(place) => Ok(self.field_at(args[0].clone(), &fields, place, location)),
                        None => Err(self.place_choice(error, location)),
                    };
                }
                _ => return Err(self.place_choice(error, location)),
            },
        };
        self.call_found(found, args, location)
    }

    pub(super) fn call_found(
        &mut self,
        found: FunctionMatch,
        args: Vec<Expr>,
        location: i32,
    ) -> Result<Expr> {
        self.calls(found.function.oid);
        let declared = found.function.arguments;
        let takes_any = |place: usize| {
            let declared = declared.get(place).or(declared.last());
            declared.is_some_and(|ty| ty.is_polymorphic() || *ty == TypeId::ANY)
        };
        let args = args
            .into_iter()
            .zip(&found.argument_types)
            .enumerate()
            .map(|(place, (arg, ty))| match *ty {
                // A literal without a type stays one to a function of anything.
                TypeId::ANY | TypeId::UNKNOWN => Ok(arg),
                // So does a value of a domain.
                ty if takes_any(place) && arg.ty == ty => self.settle(arg),
                ty => {
                    let arg = self.coerce_argument(arg, ty)?;
                    self.settle(arg)
                }
            })
            .collect::<Result<Vec<_>>>()?;
        let fills = functions::json::fills(found.function);
        let of_domain = args.first().filter(|_| fills).map(|base| base.domain);
        // One function shows of which domain a value is; to all others it is of its base type.
        let type_of = |arg: &Expr| match arg.domain {
            domain if domain != TypeId::NONE && found.function.oid == PG_TYPEOF => domain,
            _ => arg.ty,
        };
        let types: Rc<[TypeId]> = args.iter().map(type_of).collect();
        let function = Func(found.function);
        let kind = match found.function.is_set_returning() {
            true => ExprKind::SetCall(function, args, types),
            false => ExprKind::Call(function, args, types),
        };
        let made = self.refuse_mismatch(Expr::new(kind, found.result, location))?;
        let made = self.call_under_collation(made)?;
        match of_domain {
            Some(domain) => self.tested_row(made, domain),
            None => Ok(made),
        }
    }

    /// An aggregate of the query where it stands.
    pub(super) fn check_own_aggregate(&self, own: &Expr, place: Place) -> Result<()> {
        if !place.aggregates {
            let words = clause_words(place.clause);
            return Err(self.error(
                SqlState::GROUPING_ERROR,
                format!("aggregate functions are not allowed in {words}"),
                own.location.0,
            ));
        }
        let mut inside = None;
        for part in own.parts() {
            part.visit(&mut |part| {
                if matches!(part.kind, ExprKind::Aggregate(_) | ExprKind::Grouping(_)) {
                    inside = Some(part.location.0);
                }
            });
        }
        match inside {
            None => Ok(()),
            Some(location) => Err(self.error(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot be nested",
                location,
            )),
        }
    }

    /// What an aggregate with DISTINCT is sorted by is one of its arguments.
    fn check_distinct_order(&self, args: &[Expr], value: &Expr) -> Result<()> {
        let is_it = |arg: &Expr| match &arg.kind {
            ExprKind::Coerce(inner, How(_, false)) | ExprKind::Fit(inner, false) => {
                inner.same(value) || arg.same(value)
            }
            _ => arg.same(value),
        };
        match !value.is_untyped() && args.iter().any(is_it) {
            true => Ok(()),
            false => Err(self.error(
                SqlState::INVALID_COLUMN_REFERENCE,
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                value.leftmost(),
            )),
        }
    }

    /// A call of an aggregate; its arguments are in its types.
    pub(super) fn aggregate_call(
        &mut self,
        call: &FuncCall,
        aggregate: Agg,
        result: TypeId,
        mut args: Vec<Expr>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let location = call.location;
        if let Some(inside) = args.iter().find_map(window_in) {
            return Err(self.error(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot contain window function calls",
                inside.location.0,
            ));
        }
        let filter = self.call_filter(call, scope)?;
        let mut order = Vec::new();
        for item in &call.agg_order {
            let NodeEnum::SortBy(sort) = inner(item)? else {
                continue;
            };
            let place = Place {
                sets: Sets::Anywhere,
                ..Place::plain("an aggregate's ORDER BY")
            };
            let value = self.expr(boxed(&sort.node)?, scope, place)?;
            self.refuse_sets(std::slice::from_ref(&value), "aggregate")?;
            if call.agg_distinct {
                self.check_distinct_order(&args, &value)?;
            }
            let value = self.settle(value)?;
            self.check_sortable(value.ty, value.leftmost())?;
            self.refuse_using(sort, value.ty)?;
            let value = self.ordered_by(value)?;
            let (descending, nulls_first) = sort_order(sort);
            order.push((value, descending, nulls_first));
        }
        if call.agg_distinct {
            let equal = |arg: &Expr| self.check_equality(arg.ty, arg.leftmost());
            args.iter().try_for_each(equal)?;
            args.iter()
                .try_for_each(|arg| self.check_sortable(arg.ty, arg.leftmost()))?;
            if aggregate.name() == "count" {
                let keys = args.into_iter().map(|arg| self.told_apart(arg));
                args = keys.collect::<Result<_>>()?;
            }
            for arg in &args {
                let what = "an aggregate with DISTINCT";
                self.refuse_equal_texts(arg.collation, what, arg.location.0)?;
            }
        }
        let aggregate = AggregateCall {
            aggregate,
            types: args.iter().map(|arg| arg.ty).collect(),
            args,
            distinct: call.agg_distinct,
            filter,
            order,
        };
        let kind = ExprKind::Aggregate(Box::new(aggregate));
        Ok(Expr::new(kind, result, location))
    }

    /// The arguments of an aggregate or a window function in the types that it takes.
    pub(super) fn call_arguments(
        &mut self,
        args: Vec<Expr>,
        types: &[TypeId],
    ) -> Result<Vec<Expr>> {
        let coerced = args.into_iter().zip(types).map(|(arg, ty)| {
            let arg = self.coerce_argument(arg, *ty)?;
            self.settle(arg)
        });
        coerced.collect()
    }

    /// FILTER.
    pub(super) fn call_filter(
        &mut self,
        call: &FuncCall,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        if call.agg_filter.is_none() {
            return Ok(None);
        }
        let place = Place::plain("FILTER");
        let filter = self.expr(boxed(&call.agg_filter)?, scope, place)?;
        self.condition(filter, "FILTER").map(Some)
    }
}
