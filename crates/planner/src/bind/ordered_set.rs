//! Calls with WITHIN GROUP.
//!
//! ```text
//! percentile_cont(0.5) within group (order by x)     arguments 0.5, x; sorted by x
//! rank(7, 'a') within group (order by x, y desc)     arguments 7, 'a', x, y; sorted by x, y desc
//! ```
//!
//! # What it leaves out
//! Direct arguments that name columns, grouped by or not.

use base::{Result, SqlState};
use pg_query::protobuf::FuncCall;

use super::collation::type_of_keys;
use super::expr::Place;
use super::level::Marks;
use super::scope::Scope;
use super::select::sort_order;
use super::{boxed, inner, Binder};
use crate::logical::names_columns;
use crate::plan::{Agg, AggregateCall, Expr, ExprKind};
use functions::ordered_set::OrderedSet;
use functions::{
    aggregates_named, resolve_aggregate, resolve_function, select_common_type, Aggregate,
};
use syntax::parser::NodeEnum;
use types::{Datum, TypeId};

/// What stands where another expression is made.
fn null() -> Expr {
    Expr::constant(Datum::Null, TypeId::UNKNOWN, -1)
}

type Order = Vec<(Expr, bool, bool)>;

impl Binder<'_> {
    pub(super) fn ordered_set_call(
        &mut self,
        call: &FuncCall,
        name: &str,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        let location = call.location;
        let below = place.inside();
        let marks = Marks::of(scope);
        let direct = self.nodes(&call.args, scope, below)?;
        self.refuse_sets(&direct, "aggregate")?;
        let order = self.within_group(call, scope)?;
        let mut known = aggregates_named(name).iter();
        let hypothetical = known.find(|known| {
            let what = known.ordered_set();
            what.is_some_and(OrderedSet::is_hypothetical)
        });
        let (aggregate, args, result) = match hypothetical {
            Some(aggregate) => {
                let args = self.hypothetical(name, direct, &order, location)?;
                (*aggregate, args, aggregate.result)
            }
            None => self.percentile(name, direct, &order, location)?,
        };
        if call.over.is_some() {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location));
        }
        self.calls(aggregate.oid);
        let (mut args, mut values) = args;
        if args.iter().any(names_columns) {
            let what = "a direct argument of an ordered-set aggregate that names columns";
            return Err(self.unsupported(what, location));
        }
        // Under a collation of ICU all is about keys, of which one is shown as its text.
        let mut keyed = None;
        for (place, value) in values.iter_mut().enumerate() {
            let given = args.get_mut(place).filter(|_| hypothetical.is_some());
            let own = given.as_ref().map(|given| given.collation);
            let Some(used) = self.ordering(value.collation.with(own.unwrap_or_default()))? else {
                continue;
            };
            for expr in given.into_iter().chain([value]) {
                *expr = self.key(std::mem::replace(expr, null()), &used)?;
            }
            keyed = Some(used);
        }
        let keyed = keyed.filter(|_| hypothetical.is_none());
        let aggregated = match keyed {
            Some(_) => type_of_keys(result),
            None => result,
        };
        let filter = self.call_filter(call, scope)?;
        let directions = order.iter().map(|key| (key.1, key.2));
        let order = values.iter().cloned().zip(directions);
        let order = order.map(|(value, (descending, first))| (value, descending, first));
        let order = order.collect();
        let args: Vec<Expr> = args.into_iter().chain(values).collect();
        let own = AggregateCall {
            aggregate: Agg::BuiltIn(aggregate),
            types: args.iter().map(|arg| arg.ty).collect(),
            args,
            distinct: false,
            filter,
            order,
        };
        let own = Expr::new(ExprKind::Aggregate(Box::new(own)), aggregated, location);
        let what = "aggregate functions";
        if let Some(shown) = self.of_outer_query(&own, what, scope, &marks)? {
            return Ok(shown.original(keyed, result));
        }
        self.check_own_aggregate(&own, place)?;
        Ok(own.original(keyed, result))
    }

    fn within_group(&mut self, call: &FuncCall, scope: &Scope<'_>) -> Result<Order> {
        let mut order = Vec::new();
        for item in &call.agg_order {
            let NodeEnum::SortBy(sort) = inner(item)? else {
                continue;
            };
            let place = Place::plain("an aggregate's ORDER BY");
            let value = self.expr(boxed(&sort.node)?, scope, place)?;
            self.refuse_using(sort, value.ty)?;
            let (descending, nulls_first) = sort_order(sort);
            order.push((value, descending, nulls_first));
        }
        Ok(order)
    }

    /// The row that might be there and those that are, in the same types.
    fn hypothetical(
        &mut self,
        name: &str,
        direct: Vec<Expr>,
        order: &Order,
        location: i32,
    ) -> Result<(Vec<Expr>, Vec<Expr>)> {
        if direct.len() != order.len() {
            let all = direct.iter().chain(order.iter().map(|key| &key.0));
            let types: Vec<_> = all.map(|arg| arg.ty.to_string()).collect();
            let message = format!("function {name}({}) does not exist", types.join(", "));
            let hint = format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct \
                 arguments (here {}) must match the number of ordering columns (here {}).",
                direct.len(),
                order.len()
            );
            let error = self.error(SqlState::UNDEFINED_FUNCTION, message, location);
            return Err(error.with_hint(hint));
        }
        let (mut given, mut sorted) = (Vec::new(), Vec::new());
        for (own, (value, ..)) in direct.into_iter().zip(order) {
            let ty = select_common_type(&[value.ty, own.ty], "WITHIN GROUP");
            let ty = ty.map_err(|error| self.place(error, own.leftmost()))?;
            let own = self.coerce_argument(own, ty)?;
            given.push(self.settle(own)?);
            let value = self.coerce_argument(value.clone(), ty)?;
            let value = self.settle(value)?;
            self.check_sortable(value.ty, value.leftmost())?;
            sorted.push(value);
        }
        Ok((given, sorted))
    }

    /// A percentile or the mode, what it takes, and the type of what it gives.
    #[allow(clippy::type_complexity)]
    fn percentile(
        &mut self,
        name: &str,
        direct: Vec<Expr>,
        order: &Order,
        location: i32,
    ) -> Result<(&'static Aggregate, (Vec<Expr>, Vec<Expr>), TypeId)> {
        let count = direct.len();
        let args: Vec<Expr> = direct
            .into_iter()
            .chain(order.iter().map(|key| key.0.clone()))
            .collect();
        let types: Vec<_> = args.iter().map(|arg| arg.ty).collect();
        let found = resolve_aggregate(name, &types).map_err(|error| self.place(error, location))?;
        let Some(found) = found else {
            let shown: Vec<_> = types.iter().map(TypeId::to_string).collect();
            if resolve_function(name, &types).is_ok() {
                let message =
                    format!("WITHIN GROUP specified, but {name} is not an aggregate function");
                return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, location));
            }
            let message = format!("function {name}({}) does not exist", shown.join(", "));
            return Err(self.no_function(message, location));
        };
        let aggregate = found.aggregate;
        let wanted = usize::try_from(aggregate.kind_code().1).unwrap_or(0);
        if aggregate.ordered_set().is_none() || count != wanted {
            let message =
                format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP");
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, location));
        }
        let mut args = self.call_arguments(args, &found.argument_types)?;
        let values = args.split_off(count);
        for value in &values {
            self.check_sortable(value.ty, value.leftmost())?;
        }
        Ok((aggregate, (args, values), found.result))
    }
}
