//! Calls of aggregates that CREATE AGGREGATE has made.
//!
//! ```text
//! create aggregate join_up (text) (sfunc = append, stype = text)
//! join_up(b)     step: append($0, $1), over the state and the argument of a row; the state is the result
//! ```
//! The functions are bound with the call, to the types that it has there, over rows of their own: the
//! state and what follows it. Whoever owns the aggregate must be allowed to call them.
//!
//! # What it leaves out
//! VARIADIC arguments, aggregates over sorted sets, and names of arguments: CREATE AGGREGATE refuses
//! the first two, and a call the last (42883).

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::FuncCall;

use super::routine::{signature, Written};
use super::scope::Scope;
use super::Binder;
use crate::plan::{compile, Agg, Expr, ExprKind, Finish, OwnAggregate};
use catalog::depend::routine_name;
use catalog::routine::AggregateParts;
use catalog::Routine;
use functions::resolve::concrete_type;
use functions::resolve_function;
use types::TypeId;

/// A call of an aggregate of one's own whose arguments are bound.
pub(super) struct OwnCall {
    routine: Arc<Routine>,
    args: Vec<Expr>,
    types: Vec<TypeId>,
}

/// A function that an aggregate is made of.
#[derive(Clone, Debug)]
pub struct PartFound {
    /// Its oid.
    pub oid: u32,
    /// The type of its result.
    pub result: TypeId,
    /// Whether NULL makes its result NULL.
    pub strict: bool,
    /// The declared types of its arguments.
    pub inputs: Vec<TypeId>,
    /// Whether its result depends on the arguments alone.
    pub immutable: bool,
}

/// A call of an aggregate of one's own.
pub(super) struct BoundCall {
    aggregate: Agg,
    /// In the aggregate's types.
    args: Vec<Expr>,
    /// Those types.
    types: Vec<TypeId>,
    /// The result's type.
    result: TypeId,
}

impl Binder<'_> {
    /// A call of an aggregate, given its arguments.
    pub(super) fn own_call(
        &mut self,
        routine: Arc<Routine>,
        written: Written<'_>,
        types: &[TypeId],
        call: &FuncCall,
    ) -> Result<OwnCall> {
        let location = call.location;
        if self.calling {
            let shown = signature(&routine.name, &routine.input_types());
            return Err(self.not_a_procedure(&shown, location));
        }
        if call.agg_within_group {
            let message = format!(
                "{} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
                routine.name
            );
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, location));
        }
        if written.args.is_empty() && !call.agg_star {
            let message = format!(
                "{}(*) must be used to call a parameterless aggregate function",
                routine.name
            );
            return Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, location));
        }
        self.calls_over(routine.oid, call.over.is_some());
        if let Some(recorded) = &mut self.recorded {
            recorded.routines.push((location, routine.oid));
        }
        let (args, types) = (written.args, types.to_vec());
        Ok(OwnCall {
            routine,
            args,
            types,
        })
    }

    /// What a call calls, with what.
    pub(super) fn own_aggregate(&mut self, call: OwnCall) -> Result<BoundCall> {
        let routine = call.routine;
        let parts = routine.aggregate.as_deref();
        let parts = parts.ok_or_else(|| Error::internal("an aggregate without parts"))?;
        let declared = routine.input_types();
        if call.types.iter().any(|ty| ty.is_polymorphic()) {
            let message = "could not determine polymorphic type because input has type unknown";
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let args = self.call_arguments(call.args, &call.types)?;
        let types: Vec<TypeId> = args.iter().map(|arg| arg.ty).collect();
        let state = concrete_type(&types, &declared, parts.state);
        let state = state.ok_or_else(|| Error::internal("a state of no type"))?;
        // What it is made of is no part of the statement's text, and its owner's to call.
        let (recorded, acting) = (self.recorded.take(), self.acting.take());
        self.acting = Some(routine.owner);
        let bound = self.own_parts(&routine, parts, state, &types);
        (self.recorded, self.acting) = (recorded, acting);
        let (own, result) = bound?;
        Ok(BoundCall {
            aggregate: Agg::Own(Rc::new(own)),
            args,
            types,
            result,
        })
    }

    fn own_parts(
        &mut self,
        routine: &Arc<Routine>,
        parts: &AggregateParts,
        state: TypeId,
        types: &[TypeId],
    ) -> Result<(OwnAggregate, TypeId)> {
        let all: Vec<TypeId> = std::iter::once(state)
            .chain(types.iter().copied())
            .collect();
        let step = self.part_call(parts.transition, &all)?;
        let (base, _) = self.cx.catalog.base_type(state);
        let mut result = base;
        let finish = match parts.last {
            0 => None,
            last => {
                let given = match parts.last_extra {
                    true => &all[..],
                    false => &all[..1],
                };
                let value = self.part_call(last, given)?;
                result = value.ty;
                Some(Finish {
                    value: compile(&value),
                    nulls: given.len() - 1,
                })
            }
        };
        let own = OwnAggregate {
            shown: routine_name(self.cx.catalog, self.cx.search_path, routine),
            routine: routine.clone(),
            state: base,
            initial: parts.initial.clone(),
            is_strict: self.is_strict(parts.transition),
            step: compile(&step),
            finish,
        };
        Ok((own, result))
    }

    /// Whether NULL makes the result of a function NULL.
    fn is_strict(&self, function: u32) -> bool {
        match self.cx.catalog.routine(function) {
            Some(routine) => routine.strict,
            None => functions::function_by_oid(function).is_some_and(|known| known.strict),
        }
    }

    /// A call of a function over a row of values of these types.
    fn part_call(&mut self, function: u32, types: &[TypeId]) -> Result<Expr> {
        let column = |(place, ty): (usize, &TypeId)| {
            let (base, _) = self.cx.catalog.base_type(*ty);
            Expr::new(ExprKind::Column(place), base, -1)
        };
        let args: Vec<Expr> = types.iter().enumerate().map(column).collect();
        let given: Vec<TypeId> = args.iter().map(|arg| arg.ty).collect();
        match self.cx.catalog.routine(function).cloned() {
            Some(routine) => {
                let declared = routine.input_types();
                let concrete = |ty: &TypeId| concrete_type(&given, &declared, *ty);
                let wanted: Option<Vec<TypeId>> = declared.iter().map(concrete).collect();
                let wanted = wanted.unwrap_or_else(|| given.clone());
                self.routine_found(routine, Written::in_order(args), &wanted, -1)
            }
            None => {
                let known = functions::function_by_oid(function);
                let known = known.ok_or_else(|| Error::internal("an aggregate of no function"))?;
                let found = resolve_function(known.name, &given)?;
                self.call_found(found, args, -1)
            }
        }
    }

    /// The function of that name over these types, which an aggregate is to be made of. Types that
    /// are polymorphic are those that it must declare.
    ///
    /// # Errors
    /// 42883, 42804 for a set.
    pub fn aggregate_part(&mut self, names: &[&str], types: &[TypeId]) -> Result<PartFound> {
        let name = names.last().copied().unwrap_or_default();
        let missing = || {
            let message = format!(
                "function {} does not exist",
                signature(&names.join("."), types)
            );
            Error::new(SqlState::UNDEFINED_FUNCTION, message)
        };
        let routines = self.routines_called(names);
        let named = routines.iter().find(|known| known.input_types() == types);
        if let Some(routine) = named {
            return self.as_part(routine.oid).ok_or_else(missing);
        }
        let system = matches!(names, [_] | ["pg_catalog", _]);
        let built_in = functions::functions_named(name).iter();
        let built_in = built_in.filter(|known| system && known.arguments == types);
        if let Some(function) = built_in.clone().next() {
            return self.as_part(function.oid).ok_or_else(missing);
        }
        if types.iter().any(|ty| ty.is_polymorphic()) {
            return Err(missing());
        }
        let column = |(place, ty): (usize, &TypeId)| Expr::new(ExprKind::Column(place), *ty, -1);
        let args: Vec<Expr> = types.iter().enumerate().map(column).collect();
        let found = match routines.is_empty() {
            true if system => self.call_by_name(name, args, -1).map(Some),
            true => Ok(None),
            false => {
                let call = FuncCall::default();
                let called = self.call_of(&call, names, &routines, Written::in_order(args));
                called.and_then(|called| called.map(|called| called.expr()).transpose())
            }
        };
        let oid = match found.map_err(|_| missing())?.map(|expr| expr.kind) {
            Some(ExprKind::Call(function, ..) | ExprKind::SetCall(function, ..)) => function.0.oid,
            Some(ExprKind::Routine(call, _)) => call.routine.oid,
            _ => return Err(missing()),
        };
        self.as_part(oid).ok_or_else(missing)
    }

    fn as_part(&self, oid: u32) -> Option<PartFound> {
        if let Some(routine) = self.cx.catalog.routine(oid) {
            let plain = !routine.set && routine.kind == catalog::RoutineKind::Function;
            return plain.then(|| PartFound {
                oid,
                result: routine.result,
                strict: routine.strict,
                inputs: routine.input_types(),
                immutable: routine.volatility == b'i',
            });
        }
        let function = functions::function_by_oid(oid)?;
        (!function.is_set_returning()).then(|| PartFound {
            oid,
            result: function.result,
            strict: function.strict,
            inputs: function.arguments.to_vec(),
            immutable: function.volatility == functions::Volatility::Immutable,
        })
    }

    /// An aggregate of one's own with OVER, or of the query.
    pub(super) fn own_call_placed(
        &mut self,
        call: &FuncCall,
        own: OwnCall,
        scope: &Scope<'_>,
        place: super::expr::Place,
        marks: &super::level::Marks,
    ) -> Result<Expr> {
        let what = match call.over {
            Some(_) => "window",
            None => "aggregate",
        };
        self.refuse_sets(&own.args, what)?;
        let BoundCall {
            aggregate,
            args,
            types,
            result,
        } = self.own_aggregate(own)?;
        if call.over.is_some() {
            return self.own_over(call, aggregate, args, (&types, result), scope, place);
        }
        let own = self.aggregate_call(call, aggregate, result, args, scope)?;
        if let Some(shown) = self.of_outer_query(&own, "aggregate functions", scope, marks)? {
            return Ok(shown);
        }
        self.check_own_aggregate(&own, place)?;
        Ok(own)
    }
}
