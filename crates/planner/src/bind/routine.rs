//! Calls of routines that users have made: which one a name and arguments mean, and what they are
//! given.
//!
//! ```text
//! f(1, b => 2)      names put in place, defaults filled in, the rest of VARIADIC gathered:
//! f(a, b, c default 3, variadic d)  →  Routine f (1, 2, 3, '{}')
//! ```
//! Where a name is also that of built-in functions, all of them are candidates; of two with the same
//! types the one wins whose schema comes first, `pg_catalog` before all others.
//!
//! Source: PostgreSQL 15 manual, sections 4.3, 10.3 and 38.5.

use std::rc::Rc;
use std::sync::Arc;

use base::{Result, SqlState};
use pg_query::protobuf::{FuncCall, NamedArgExpr, Node};

use super::expr::Place;
use super::own_aggregate::OwnCall;
use super::scope::Scope;
use super::{boxed, inner, type_names, Binder};
use crate::plan::{Collated, Expr, ExprKind, RoutineCall};
use catalog::depend::{routine_name, routine_path};
use catalog::routine::{Argument, Language, Mode};
use catalog::view::BY_OID;
use catalog::{Routine, RoutineKind, PG_CATALOG};
use functions::resolve::{concrete_type, resolve_offered, Chosen, Offer};
use functions::CastContext;
use syntax::parser::NodeEnum;
use types::TypeId;

/// The arguments of a call as they were written.
pub(super) struct Written<'w> {
    /// Those without a name come first.
    pub(super) args: Vec<Expr>,
    /// The names of the last of them.
    pub(super) names: Vec<&'w str>,
    /// Whether the last is the array of a VARIADIC.
    pub(super) variadic: bool,
}

impl Written<'_> {
    /// Arguments without names.
    pub(super) fn in_order(args: Vec<Expr>) -> Written<'static> {
        Written {
            args,
            names: Vec::new(),
            variadic: false,
        }
    }
}

/// What a name and arguments mean.
pub(super) enum Called {
    /// A call, which is bound.
    Expr(Expr),
    /// An aggregate, whose call depends on the query where it stands.
    Aggregate(OwnCall),
}

impl Called {
    /// The call.
    ///
    /// # Errors
    /// 42809 for an aggregate where none can be.
    pub(super) fn expr(self) -> Result<Expr> {
        match self {
            Called::Expr(expr) => Ok(expr),
            Called::Aggregate(_) => Err(base::Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                "an aggregate cannot be called here",
            )),
        }
    }
}

impl Binder<'_> {
    /// The routines that a name may mean, the nearest first.
    pub(super) fn routines_called(&self, names: &[&str]) -> Vec<Arc<Routine>> {
        let catalog = self.cx.catalog;
        if let ([BY_OID, oid], true) = (names, self.stored) {
            let routine = oid.parse().ok().and_then(|oid| catalog.routine(oid));
            return routine.cloned().into_iter().collect();
        }
        let Some(name) = names.last().filter(|name| catalog.knows_routine(name)) else {
            return Vec::new();
        };
        let schemas: Vec<u32> = match names {
            [_] => routine_path(self.cx.search_path),
            [.., schema, _] => catalog.schema(schema).map(|s| s.oid).into_iter().collect(),
            [] => Vec::new(),
        };
        let mut found: Vec<Arc<Routine>> = Vec::new();
        for schema in schemas {
            for routine in catalog.routines_named(schema, name) {
                let inputs = routine.input_types();
                if !found.iter().any(|known| known.input_types() == inputs) {
                    found.push(routine.clone());
                }
            }
        }
        found
    }

    /// A call in an expression, if the name is that of a routine; a call of a built-in function if
    /// that is what it means.
    pub(super) fn routine_call(
        &mut self,
        call: &FuncCall,
        names: &[&str],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Option<Called>> {
        let routines = self.routines_called(names);
        if routines.is_empty() {
            return Ok(None);
        }
        if let [schema, _] = names {
            if let Some(schema) = self.cx.catalog.schema(schema) {
                let allowed = self.cx.catalog.check_look_into(self.cx.role, schema);
                allowed.map_err(|error| self.place(error, call.location))?;
            }
        }
        let mut written = self.written_arguments(call, scope, place)?;
        // Of a literal without a type the name of a type makes a value of it, before any function does.
        let is_literal = matches!(written.args.as_slice(), [arg] if arg.is_untyped());
        if is_literal && written.names.is_empty() && !written.variadic {
            let ty = type_names::find(&self.cx, names)?;
            if let Some(ty) = ty.filter(|ty| ty.is_of_extension()) {
                let arg = written.args.remove(0);
                let value = self.cast(arg, ty, -1, call.location)?;
                return Ok(Some(Called::Expr(value)));
            }
        }
        self.call_of(call, names, &routines, written)
    }

    pub(super) fn written_arguments<'w>(
        &mut self,
        call: &'w FuncCall,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Written<'w>> {
        let (mut args, mut names) = (Vec::new(), Vec::new());
        for node in &call.args {
            let node = inner(node)?;
            match node {
                NodeEnum::NamedArgExpr(named) => {
                    if names.contains(&named.name.as_str()) {
                        return Err(self.named_twice(named));
                    }
                    names.push(named.name.as_str());
                    args.push(self.expr(boxed(&named.arg)?, scope, place)?);
                }
                node => {
                    let arg = self.expr(node, scope, place)?;
                    if !names.is_empty() {
                        return Err(self.error(
                            SqlState::SYNTAX_ERROR,
                            "positional argument cannot follow named argument",
                            arg.leftmost(),
                        ));
                    }
                    args.push(arg);
                }
            }
        }
        Ok(Written {
            args,
            names,
            variadic: call.func_variadic,
        })
    }

    fn named_twice(&self, named: &NamedArgExpr) -> base::Error {
        self.error(
            SqlState::SYNTAX_ERROR,
            format!("argument name \"{}\" used more than once", named.name),
            named.location,
        )
    }

    pub(super) fn call_of(
        &mut self,
        call: &FuncCall,
        names: &[&str],
        routines: &[Arc<Routine>],
        written: Written<'_>,
    ) -> Result<Option<Called>> {
        let location = call.location;
        let types: Vec<_> = written.args.iter().map(|arg| arg.ty).collect();
        let mut offers = Vec::new();
        for (place, routine) in routines.iter().enumerate() {
            offers.extend(offer(place, routine, &written, types.len()));
        }
        // Domains are found by their base types.
        for input in offers.iter_mut().flat_map(|offer| &mut offer.inputs) {
            *input = self.cx.catalog.base_type(*input).0;
        }
        // Each is offered with its own order of arguments, so types are compared in the order that
        // was written.
        let plain = written.names.is_empty() && !written.variadic;
        let with_built_in = (plain && names.len() == 1).then(|| {
            // The system's schema comes first, unless the path says otherwise.
            let path = self.cx.search_path;
            let system = path.iter().position(|schema| *schema == PG_CATALOG);
            let before = &path[..system.unwrap_or(0)];
            let nearer = |offer: &&Offer<usize>| before.contains(&offer.schema);
            offers.iter().take_while(nearer).count()
        });
        let shown = names.join(".");
        let chosen = resolve_offered(
            names[names.len() - 1],
            &types,
            with_built_in,
            &offers,
            &self.unasked(),
        );
        let chosen = chosen.map_err(|error| self.place_choice(error, location))?;
        match chosen {
            None if is_aggregate(names) => Ok(None),
            None if !written.names.is_empty() && matches!(names, [_]) => {
                match self.named_built_in(names[0], &written, location)? {
                    Some(call) => Ok(Some(Called::Expr(call))),
                    None => Err(self.no_routine(&shown, &types, &written, location)),
                }
            }
            None => Err(self.no_routine(&shown, &types, &written, location)),
            Some(Chosen::BuiltIn(found)) => {
                let call = self.call_found(found, written.args, location)?;
                Ok(Some(Called::Expr(call)))
            }
            Some(Chosen::Offered(place, argument_types, _)) => {
                let routine = routines[place].clone();
                if routine.kind == RoutineKind::Procedure && !self.calling {
                    let shown = shown_call(&shown, &types, &written.names);
                    let error = self.error(
                        SqlState::WRONG_OBJECT_TYPE,
                        format!("{shown} is a procedure"),
                        location,
                    );
                    return Err(error.with_hint("To call a procedure, use CALL."));
                }
                if routine.kind == RoutineKind::Aggregate {
                    let own = self.own_call(routine, written, &argument_types, call)?;
                    return Ok(Some(Called::Aggregate(own)));
                }
                let called = self.routine_found(routine, written, &argument_types, location)?;
                Ok(Some(Called::Expr(called)))
            }
        }
    }

    pub(super) fn no_routine(
        &self,
        name: &str,
        types: &[TypeId],
        written: &Written<'_>,
        location: i32,
    ) -> base::Error {
        let shown = shown_call(name, types, &written.names);
        let noun = if self.calling {
            "procedure"
        } else {
            "function"
        };
        let message = format!("{noun} {shown} does not exist");
        self.error(SqlState::UNDEFINED_FUNCTION, message, location)
            .with_hint(format!(
                "No {noun} matches the given name and argument types. You might need to add \
                 explicit type casts."
            ))
    }

    /// The call of a routine whose inputs are those that were written, of these types, and defaults.
    pub(super) fn routine_found(
        &mut self,
        routine: Arc<Routine>,
        written: Written<'_>,
        argument_types: &[TypeId],
        location: i32,
    ) -> Result<Expr> {
        self.calls(routine.oid);
        if let Some(recorded) = &mut self.recorded {
            recorded.routines.push((location, routine.oid));
        }
        let declared = routine.input_types();
        let order = places(&routine, &written, argument_types.len()).unwrap_or_default();
        let as_written = written_as(&order, &written, declared.len());
        if argument_types.iter().any(|ty| ty.is_polymorphic()) {
            let message = "could not determine polymorphic type because input has type unknown";
            return Err(base::Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let mut given: Vec<Option<Expr>> = declared.iter().map(|_| None).collect();
        let mut rest = Vec::new();
        let gathers = routine.is_variadic() && !written.variadic;
        for ((arg, ty), place) in written.args.into_iter().zip(argument_types).zip(order) {
            let arg = match *ty {
                TypeId::ANY | TypeId::UNKNOWN => arg,
                // It asks what the fields are called.
                TypeId::RECORD if routine.language == Language::C => self.settle(arg)?,
                ty => {
                    let domain = declared.get(place).filter(|ty| ty.is_of_domain());
                    let arg = self.coerce_argument(arg, domain.copied().unwrap_or(ty))?;
                    self.settle(arg)?
                }
            };
            match gathers && place + 1 >= declared.len() {
                true => rest.push(arg),
                false => given[place] = Some(arg),
            }
        }
        if gathers && !rest.is_empty() {
            let element = rest[0].ty;
            let array = element.array_of().unwrap_or(TypeId::ANYARRAY);
            let kind = ExprKind::Array(rest, element);
            if let Some(last) = given.last_mut() {
                *last = Some(Expr::new(kind, array, location));
            }
        }
        let known: Vec<TypeId> = given
            .iter()
            .map(|arg| arg.as_ref().map_or(TypeId::UNKNOWN, |arg| arg.ty))
            .collect();
        let concrete = |binder: &Self, ty: TypeId| {
            concrete_type(&known, &declared, ty).ok_or_else(|| {
                binder.error(
                    SqlState::DATATYPE_MISMATCH,
                    "could not determine polymorphic type because input has type unknown",
                    location,
                )
            })
        };
        let mut types = Vec::new();
        for ty in &declared {
            types.push(match (*ty, routine.language) {
                (TypeId::RECORD, Language::C) => known[types.len()],
                (ty, _) => concrete(self, ty)?,
            });
        }
        let result = concrete(self, routine.result)?;
        let (base, typmod) = self.cx.catalog.base_type(result);
        let mut args = Vec::new();
        for ((arg, input), ty) in given.into_iter().zip(routine.inputs()).zip(&types) {
            args.push(match (arg, &input.default) {
                (Some(arg), _) => arg,
                (None, Some(text)) => self.default_given(text, *ty)?,
                (None, None) => return Err(base::Error::internal("an argument without a value")),
            });
        }
        let mut columns = Vec::new();
        for (number, output) in routine.outputs().enumerate() {
            let name = match output.name.as_str() {
                "" => format!("column{}", number + 1),
                name => name.to_owned(),
            };
            columns.push((name, concrete(self, output.type_id)?));
        }
        let (mut of_rows, mut typmods) = (None, Vec::new());
        if let Some(table) = self.cx.catalog.table_by_oid(routine.result_relation) {
            let kept = table.columns.iter().filter(|column| !column.dropped);
            (columns, typmods) = kept
                .map(|column| ((column.name.clone(), column.type_id), column.typmod))
                .unzip();
            of_rows = table.row_type();
        }
        // A row of a type is given as a record of its fields.
        let mut gives = result;
        if let (true, Some(fields)) = (result.is_composite(), self.fields_of_type(result)) {
            (columns, typmods) = fields
                .into_iter()
                .map(|field| ((field.name, field.ty), field.typmod))
                .unzip();
            gives = TypeId::RECORD;
        }
        let base = of_rows.filter(|_| base == TypeId::RECORD).unwrap_or(base);
        let collation = Collated::of_all(&args).of_call();
        let call = RoutineCall {
            collation,
            types,
            result: gives,
            columns,
            typmods,
            shown: routine_name(self.cx.catalog, self.cx.search_path, &routine),
            written: as_written,
            routine,
            caller: self.acting,
            cast: None,
            operator: None,
        };
        let mut called = Expr::new(ExprKind::Routine(Rc::new(call), args), base, location);
        if result.is_of_domain() {
            (called.domain, called.typmod) = (result, typmod);
        }
        Ok(called)
    }

    /// What CALL runs: a call of a procedure, with NULL or anything in the places of outputs.
    ///
    /// # Errors
    /// 42883, 42809 for a function.
    pub fn procedure_call(&mut self, call: &FuncCall) -> Result<(Rc<RoutineCall>, super::Bound)> {
        self.calling = true;
        let names = super::strings(&call.funcname);
        let place = Place {
            no_subquery: Some("CALL argument"),
            ..Place::plain("CALL arguments")
        };
        let scope = Scope::default();
        // Outputs are arguments too: they say which procedure is meant.
        let routines = self
            .routines_called(&names)
            .iter()
            .map(given_in_full)
            .collect::<Vec<_>>();
        let written = self.written_arguments(call, &scope, place)?;
        let types: Vec<_> = written.args.iter().map(|arg| arg.ty).collect();
        let (name, last) = (names.join("."), names[names.len() - 1]);
        let shown = shown_call(&name, &types, &written.names);
        if routines.is_empty() {
            let is_function = functions::resolve_function(last, &types).is_ok();
            return Err(match is_function || is_aggregate(&names) {
                true => self.not_a_procedure(&shown, call.location),
                false => self.no_routine(&name, &types, &written, call.location),
            });
        }
        if let [schema, _] = names[..] {
            if let Some(schema) = self.cx.catalog.schema(schema) {
                let allowed = self.cx.catalog.check_look_into(self.cx.role, schema);
                allowed.map_err(|error| self.place(error, call.location))?;
            }
        }
        let found = self.call_of(call, &names, &routines, written)?;
        let Some(Called::Expr(Expr {
            kind: ExprKind::Routine(called, args),
            ..
        })) = found
        else {
            return Err(self.not_a_procedure(&shown, call.location));
        };
        if called.routine.kind != RoutineKind::Procedure {
            return Err(self.not_a_procedure(&shown, call.location));
        }
        let (called, args) = self.without_outputs(&called, args);
        let row = crate::plan::Plan::Values(vec![Vec::new()]);
        let args = args.iter().map(crate::plan::compile).collect();
        let plan = crate::plan::Plan::Project(Rc::new(row), args);
        Ok((called, self.bound(plan, Vec::new(), false)))
    }

    /// The call of a procedure without what stands in the places of its outputs, which nobody computes.
    fn without_outputs(
        &self,
        called: &RoutineCall,
        args: Vec<Expr>,
    ) -> (Rc<RoutineCall>, Vec<Expr>) {
        let catalog = self.cx.catalog;
        let routine = catalog
            .routine(called.routine.oid)
            .unwrap_or(&called.routine);
        let given = called.routine.arguments.iter().zip(&routine.arguments);
        let given = given.filter(|(full, _)| full.mode.is_input());
        let is_input: Vec<bool> = given.map(|(_, own)| own.mode.is_input()).collect();
        let kept = |place: &usize| is_input.get(*place).copied().unwrap_or(true);
        let types = called.types.iter().enumerate();
        let types = types.filter(|(place, _)| kept(place));
        let args = args.into_iter().enumerate();
        let args = args.filter(|(place, _)| kept(place));
        let call = RoutineCall {
            routine: routine.clone(),
            types: types.map(|(_, ty)| *ty).collect(),
            ..called.clone()
        };
        (Rc::new(call), args.map(|(_, arg)| arg).collect())
    }

    /// The default of an argument where none was given.
    pub(super) fn default_given(&mut self, text: &str, ty: TypeId) -> Result<Expr> {
        // Its places are those of another text.
        let recorded = self.recorded.take();
        let value = self.stored(text, &Scope::default(), Place::DEFAULT);
        let coerced = value.and_then(|value| {
            let coerced = self.try_coerce(value, ty, -1, CastContext::Assignment)?;
            coerced.map_err(|_| base::Error::internal("a default of another type"))
        });
        self.recorded = recorded;
        coerced
    }

    /// The default of an argument, to be shown.
    pub(super) fn stored_argument(&mut self, argument: &Argument, text: &str) -> Result<Expr> {
        let expr = self.stored(text, &Scope::default(), Place::DEFAULT)?;
        match expr.is_untyped() && !argument.type_id.is_polymorphic() {
            true => self.assign(expr, argument.type_id, -1, &argument.name),
            false => Ok(expr),
        }
    }

    /// Binds the default of an argument as it is written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_argument_default(&mut self, node: &Node, ty: TypeId) -> Result<()> {
        let bound = self.node(node, &Scope::default(), Place::DEFAULT)?;
        let from = bound.ty;
        match self.try_coerce(bound, ty, -1, CastContext::Assignment)? {
            Ok(_) => Ok(()),
            Err(_) if ty.is_polymorphic() => Ok(()),
            Err(_) => Err(base::Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of DEFAULT must be type {ty}, not type {from}"),
            )),
        }
    }

    pub(super) fn not_a_procedure(&self, shown: &str, location: i32) -> base::Error {
        let message = format!("{shown} is not a procedure");
        self.error(SqlState::WRONG_OBJECT_TYPE, message, location)
            .with_hint("To call a function, use SELECT.")
    }
}

/// Whether a name is that of an aggregate or a window function too.
fn is_aggregate(names: &[&str]) -> bool {
    match names {
        [name] | ["pg_catalog", name] => {
            !functions::aggregates_named(name).is_empty()
                || functions::windows_named(name).next().is_some()
        }
        _ => false,
    }
}

/// A procedure whose outputs are given as well, as CALL has them.
fn given_in_full(routine: &Arc<Routine>) -> Arc<Routine> {
    let is_output = |argument: &Argument| argument.mode == Mode::Out;
    if routine.kind != RoutineKind::Procedure || !routine.arguments.iter().any(is_output) {
        return routine.clone();
    }
    let mut full = (**routine).clone();
    for argument in &mut full.arguments {
        if is_output(argument) {
            argument.mode = Mode::InOut;
        }
    }
    Arc::new(full)
}

/// A call as messages show it: with the types of what is given, and the names of the last of it.
fn shown_call(name: &str, types: &[TypeId], names: &[&str]) -> String {
    let first_named = types.len() - names.len();
    let shown = types.iter().enumerate().map(|(at, ty)| {
        let name = at.checked_sub(first_named).and_then(|at| names.get(at));
        match name {
            Some(name) => format!("{name} => {ty}"),
            None => ty.to_string(),
        }
    });
    format!("{name}({})", shown.collect::<Vec<_>>().join(", "))
}

pub(super) fn signature(name: &str, types: &[TypeId]) -> String {
    let shown: Vec<_> = types.iter().map(TypeId::to_string).collect();
    format!("{name}({})", shown.join(", "))
}

/// The inputs that were given, in the order in which they were written; what VARIADIC gathers is one.
fn written_as(
    order: &[usize],
    written: &Written<'_>,
    inputs: usize,
) -> Vec<(usize, Option<String>)> {
    let first_named = order.len() - written.names.len();
    let named = order.iter().enumerate().map(|(at, place)| {
        let name = at.checked_sub(first_named).map(|at| written.names[at]);
        (*place, name.map(str::to_owned))
    });
    named.filter(|(place, _)| *place < inputs).collect()
}

/// To which input each argument that was written goes; none if they do not fit.
fn places(routine: &Routine, written: &Written<'_>, count: usize) -> Option<Vec<usize>> {
    let positional = count - written.names.len();
    let mut order: Vec<usize> = (0..positional).collect();
    for name in &written.names {
        let place = routine.inputs().position(|input| input.name == **name)?;
        if order.contains(&place) {
            return None;
        }
        order.push(place);
    }
    Some(order)
}

/// A routine as a candidate for a call, if it fits by its number of arguments and their names.
fn offer(
    place: usize,
    routine: &Routine,
    written: &Written<'_>,
    count: usize,
) -> Option<Offer<usize>> {
    let inputs = routine.input_types();
    let defaults = routine
        .inputs()
        .filter(|input| input.default.is_some())
        .count();
    if written.names.is_empty() {
        let is_array = written.variadic;
        if is_array && (!routine.is_variadic() || count != inputs.len()) {
            return None;
        }
        // A variadic one may be called without any of its rest only if that has a default.
        return Some(Offer {
            item: place,
            schema: routine.schema,
            inputs,
            variadic: routine.is_variadic() && !is_array,
            defaults,
            result: TypeId::NONE,
        });
    }
    let order = places(routine, written, count)?;
    let missing = |at: usize| !order.contains(&at);
    let lacks = routine
        .inputs()
        .enumerate()
        .any(|(at, input)| missing(at) && input.default.is_none());
    if lacks || routine.is_variadic() && !written.variadic {
        return None;
    }
    Some(Offer {
        item: place,
        schema: routine.schema,
        inputs: order.iter().map(|at| inputs[*at]).collect(),
        variadic: false,
        defaults: 0,
        result: TypeId::NONE,
    })
}
