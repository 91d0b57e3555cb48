//! Which function or cast a call means; of operators, [`super::operands`].
//!
//! The rules are those of the manual's chapter 10: an exact match wins; else the candidates that
//! implicit casts allow are narrowed down by exact matches, by preferred types, and, for literals
//! without a type, by the category that most candidates agree on.
//!
//! Source: PostgreSQL 15 manual, chapter 10.

use base::error::{Error, Result, SqlState};

use super::aggregate::{aggregates_named, Aggregate};
use super::ranges::CONSTRUCTORS;
use super::registry::{cast_between, coercion_between, functions_named};
use super::table::CastContext;
use super::window::{windows_named, WindowFunction};
use super::Function;
use types::{Category, TypeId};

/// How a value gets from one type to another. The modifier is applied after it
/// (`types::apply_typmod`).
#[derive(Clone, Copy, Debug)]
pub enum Coercion {
    /// It stays as it is.
    Binary,
    /// By a function of one argument.
    Function(&'static Function),
    /// By the source's output and the target's input (`types::output`, `types::input`).
    InOut,
    /// Element by element.
    Array(&'static Coercion),
}

/// A function and what its arguments must become.
#[derive(Clone, Debug)]
pub struct FunctionMatch {
    /// The function.
    pub function: &'static Function,
    /// The types to which the arguments must be coerced, one for each argument given.
    pub argument_types: Vec<TypeId>,
    /// The type of the result.
    pub result: TypeId,
}

/// An aggregate and what its arguments must become.
#[derive(Clone, Debug)]
pub struct AggregateMatch {
    /// The aggregate.
    pub aggregate: &'static Aggregate,
    /// The types to which the arguments must be coerced.
    pub argument_types: Vec<TypeId>,
    /// The type of the result.
    pub result: TypeId,
}

/// A window function and what its arguments must become.
#[derive(Clone, Debug)]
pub struct WindowMatch {
    /// The function.
    pub function: &'static WindowFunction,
    /// The types to which the arguments must be coerced.
    pub argument_types: Vec<TypeId>,
    /// The type of the result.
    pub result: TypeId,
}

static IN_OUT: Coercion = Coercion::InOut;
static BINARY: Coercion = Coercion::Binary;
/// A range of one's own becomes its multirange.
static TO_MULTIRANGE: Coercion = Coercion::Function(&CONSTRUCTORS[3]);

/// How a value of type `source` becomes one of `target`; `None` when it cannot in that context.
/// From [`TypeId::UNKNOWN`] the way is always `InOut`.
pub fn find_coercion(source: TypeId, target: TypeId, context: CastContext) -> Option<Coercion> {
    coercion(source, target, context).copied()
}

fn coercion(source: TypeId, target: TypeId, context: CastContext) -> Option<&'static Coercion> {
    if source == target || target == TypeId::ANY {
        return Some(&BINARY);
    }
    if source == TypeId::UNKNOWN {
        return Some(&IN_OUT);
    }
    // A vector is an array of its elements that begins at 0.
    let vector = matches!(source, TypeId::INT2VECTOR | TypeId::OIDVECTOR);
    if vector {
        let (from, to) = (
            source.info().map(|info| info.element),
            target.array_element(),
        );
        if from == to {
            return Some(&BINARY);
        }
        if let (Some(from), Some(to)) = (from, to) {
            if let Some(Coercion::Binary) = coercion(from, to, context) {
                return Some(ARRAY_BINARY);
            }
        }
    }
    // What is written as a row becomes one of a type field by field, which the binder sees to.
    let is_row = |kind: TypeId| kind.category() == Category::Composite;
    if (target == TypeId::RECORD && is_row(source)) || (source == TypeId::RECORD && is_row(target))
    {
        return Some(&BINARY);
    }
    if let Some(cast) = cast_between(source, target) {
        return match cast.context <= context {
            true => coercion_between(source, target),
            false => None,
        };
    }
    if source.is_own() && source.range_multirange() == Some(target) {
        return (context == CastContext::Explicit).then_some(&TO_MULTIRANGE);
    }
    if let (Some(from), Some(to)) = (source.array_element(), target.array_element()) {
        return coercion(from, to, context).map(|inner| match inner {
            Coercion::Binary => ARRAY_BINARY,
            Coercion::InOut => ARRAY_IN_OUT,
            Coercion::Function(_) | Coercion::Array(_) => array_of(inner),
        });
    }
    let strings = |kind: TypeId| kind.category() == Category::String;
    let to_text = context >= CastContext::Assignment && strings(target);
    let from_text = context >= CastContext::Explicit && strings(source);
    (to_text || from_text).then_some(&IN_OUT)
}

static ARRAY_BINARY: &Coercion = &Coercion::Array(&BINARY);
static ARRAY_IN_OUT: &Coercion = &Coercion::Array(&IN_OUT);

/// The coercion of arrays whose elements are coerced so; one for each is kept for ever.
fn array_of(inner: &'static Coercion) -> &'static Coercion {
    use base::sync::Mutex;
    use std::sync::OnceLock;
    static MADE: OnceLock<Mutex<Vec<(&'static Coercion, &'static Coercion)>>> = OnceLock::new();
    let mut made = MADE.get_or_init(|| Mutex::new(Vec::new())).lock();
    if let Some((_, found)) = made.iter().find(|(known, _)| std::ptr::eq(*known, inner)) {
        return found;
    }
    let new: &'static Coercion = Box::leak(Box::new(Coercion::Array(inner)));
    made.push((inner, new));
    new
}

/// How arrays become others whose elements are cast through their text, or stay as they are.
pub fn each(inner: &Coercion) -> Option<Coercion> {
    match inner {
        Coercion::InOut => Some(*ARRAY_IN_OUT),
        Coercion::Binary => Some(*ARRAY_BINARY),
        Coercion::Function(_) | Coercion::Array(_) => None,
    }
}

/// The type of the elements of an array, or of a vector of the catalog, which is one too.
fn element_of(ty: TypeId) -> Option<TypeId> {
    match ty {
        TypeId::INT2VECTOR => Some(TypeId::INT2),
        TypeId::OIDVECTOR => Some(TypeId::OID),
        ty => ty.array_element(),
    }
}

/// Between which types users have made casts that are used unasked.
pub type Unasked<'c> = &'c [(TypeId, TypeId)];

/// Whether arguments of these types may stand for parameters of those, unasked.
fn can_coerce(sources: &[TypeId], targets: &[TypeId], unasked: Unasked<'_>) -> bool {
    let each = sources.iter().zip(targets).all(|(source, target)| {
        let array = element_of(*source).is_some();
        match *target {
            _ if *source == TypeId::UNKNOWN => true,
            TypeId::ANYARRAY | TypeId::ANYCOMPATIBLEARRAY => array,
            TypeId::ANYNONARRAY | TypeId::ANYCOMPATIBLENONARRAY => !array,
            TypeId::ANYENUM => source.is_enum(),
            TypeId::ANYRANGE | TypeId::ANYCOMPATIBLERANGE => source.is_range(),
            TypeId::ANYMULTIRANGE | TypeId::ANYCOMPATIBLEMULTIRANGE => source.is_multirange(),
            TypeId::ANYELEMENT | TypeId::ANYCOMPATIBLE => true,
            target if unasked.contains(&(*source, target)) => true,
            target => coercion(*source, target, CastContext::Implicit).is_some(),
        }
    });
    // Where all are literals without a type, none of them is an enum.
    let of_enums = targets.contains(&TypeId::ANYENUM);
    let is_known = !of_enums || sources.iter().any(|source| *source != TypeId::UNKNOWN);
    each && is_known && agree(sources, targets)
}

/// Whether the polymorphic parameters can be made concrete together.
fn agree(sources: &[TypeId], targets: &[TypeId]) -> bool {
    let polymorphic = targets.iter().any(|kind| kind.is_polymorphic());
    !polymorphic || concrete(sources, targets, TypeId::NONE).is_some()
}

/// One way to read a call: what is called, and the parameter types spread over the arguments.
pub(crate) struct Candidate<T> {
    pub(crate) item: T,
    pub(crate) parameters: Vec<TypeId>,
}

/// The one candidate that a call means, `Ok(None)` for none, `Err(())` for several.
pub(crate) fn select<T: Copy>(
    arguments: &[TypeId],
    candidates: Vec<Candidate<T>>,
    unasked: Unasked<'_>,
) -> std::result::Result<Option<Candidate<T>>, ()> {
    let mut fitting: Vec<_> = candidates
        .into_iter()
        .filter(|candidate| can_coerce(arguments, &candidate.parameters, unasked))
        .collect();
    if fitting.len() <= 1 {
        return Ok(fitting.pop());
    }
    let known = || {
        arguments
            .iter()
            .enumerate()
            .filter(|(_, kind)| **kind != TypeId::UNKNOWN)
    };
    keep_best(&mut fitting, |parameters| {
        known().filter(|(i, kind)| parameters[*i] == **kind).count()
    });
    if fitting.len() == 1 {
        return Ok(fitting.pop());
    }
    keep_best(&mut fitting, |parameters| {
        known()
            .filter(|(i, kind)| {
                let parameter = parameters[*i];
                parameter == **kind
                    || (parameter.category() == kind.category() && parameter.is_preferred())
            })
            .count()
    });
    if fitting.len() == 1 {
        return Ok(fitting.pop());
    }
    if known().count() == arguments.len() {
        return Err(());
    }
    resolve_unknowns(arguments, &mut fitting);
    if fitting.len() == 1 {
        return Ok(fitting.pop());
    }
    // All known arguments of one type: try the unknown ones as that type too.
    let mut types = known().map(|(_, kind)| *kind);
    if let Some(first) = types.next() {
        if types.all(|kind| kind == first) {
            let assumed = vec![first; arguments.len()];
            fitting.retain(|candidate| can_coerce(&assumed, &candidate.parameters, unasked));
            if fitting.len() == 1 {
                return Ok(fitting.pop());
            }
        }
    }
    Err(())
}

/// Keeps the candidates with the highest score.
fn keep_best<T>(candidates: &mut Vec<Candidate<T>>, score: impl Fn(&[TypeId]) -> usize) {
    let best = candidates
        .iter()
        .map(|candidate| score(&candidate.parameters))
        .max()
        .unwrap_or(0);
    candidates.retain(|candidate| score(&candidate.parameters) == best);
}

/// Keeps the candidates of the category that each unknown argument is taken to have: string if
/// any accepts that, else the one that all agree on; in it, the preferred type if any accepts it.
fn resolve_unknowns<T>(arguments: &[TypeId], candidates: &mut Vec<Candidate<T>>) {
    let mut slots: Vec<Option<(Category, bool)>> = vec![None; arguments.len()];
    for (index, slot) in slots.iter_mut().enumerate() {
        if arguments[index] != TypeId::UNKNOWN {
            continue;
        }
        let accepted = || candidates.iter().map(|c| c.parameters[index]);
        let first = accepted().next().map(TypeId::category);
        let string = accepted().any(|kind| kind.category() == Category::String);
        let category = match (string, first) {
            (true, _) => Category::String,
            (false, Some(first)) if accepted().all(|kind| kind.category() == first) => first,
            // No agreement: the whole step fails.
            _ => return,
        };
        let preferred = accepted().any(|kind| kind.category() == category && kind.is_preferred());
        *slot = Some((category, preferred));
    }
    let suits = |candidate: &Candidate<T>| {
        slots
            .iter()
            .zip(&candidate.parameters)
            .all(|(slot, kind)| match slot {
                None => true,
                Some((category, preferred)) => {
                    kind.category() == *category && (!preferred || kind.is_preferred())
                }
            })
    };
    if candidates.iter().any(suits) {
        candidates.retain(suits);
    }
}

/// Makes the polymorphic types of a call concrete: the arguments' and the result's. `None` when
/// the arguments do not agree.
pub(crate) fn concrete(
    given: &[TypeId],
    declared: &[TypeId],
    result: TypeId,
) -> Option<(Vec<TypeId>, TypeId)> {
    let polymorphic = declared.iter().any(|kind| kind.is_polymorphic());
    if !polymorphic && !result.is_polymorphic() {
        // "any" takes what it gets.
        let types = declared.iter().zip(given);
        let types = types.map(|(declared, given)| match *declared {
            TypeId::ANY => *given,
            declared => declared,
        });
        return Some((types.collect(), result));
    }
    let mut element = None;
    let mut range = None;
    let mut compatible = Vec::new();
    let mut compatible_range = None;
    for (declared, given) in declared.iter().zip(given) {
        if *given == TypeId::UNKNOWN {
            continue;
        }
        let this = match *declared {
            TypeId::ANYELEMENT | TypeId::ANYNONARRAY => *given,
            TypeId::ANYENUM if given.is_enum() => *given,
            TypeId::ANYENUM => return None,
            TypeId::ANYARRAY => element_of(*given)?,
            TypeId::ANYCOMPATIBLE | TypeId::ANYCOMPATIBLENONARRAY => {
                compatible.push(*given);
                continue;
            }
            TypeId::ANYCOMPATIBLEARRAY => {
                compatible.push(given.array_element()?);
                continue;
            }
            TypeId::ANYRANGE | TypeId::ANYMULTIRANGE => {
                let this = range_of(*given)?;
                if range.is_some_and(|known| known != this) {
                    return None;
                }
                range = Some(this);
                this.range_element()?
            }
            TypeId::ANYCOMPATIBLERANGE | TypeId::ANYCOMPATIBLEMULTIRANGE => {
                let this = range_of(*given)?;
                if compatible_range.is_some_and(|known| known != this) {
                    return None;
                }
                compatible_range = Some(this);
                compatible.push(this.range_element()?);
                continue;
            }
            _ => continue,
        };
        if element.is_some_and(|known| known != this) {
            return None;
        }
        element = Some(this);
    }
    let common = match compatible.is_empty() {
        true => Some(TypeId::TEXT),
        false => Some(select_common_type(&compatible, "").ok()?),
    };
    // What bounds a range is as it is.
    if compatible_range.is_some_and(|range| range.range_element() != common) {
        return None;
    }
    let replace = |kind: TypeId| match kind {
        TypeId::ANYELEMENT | TypeId::ANYNONARRAY | TypeId::ANYENUM => element,
        TypeId::ANYARRAY => element.and_then(TypeId::array_of),
        TypeId::ANYRANGE => range,
        TypeId::ANYMULTIRANGE => range.and_then(TypeId::range_multirange),
        TypeId::ANYCOMPATIBLERANGE => compatible_range,
        TypeId::ANYCOMPATIBLEMULTIRANGE => compatible_range.and_then(TypeId::range_multirange),
        TypeId::ANYCOMPATIBLE | TypeId::ANYCOMPATIBLENONARRAY => common,
        TypeId::ANYCOMPATIBLEARRAY => common.and_then(TypeId::array_of),
        other => Some(other),
    };
    let types = declared.iter().map(|kind| replace(*kind));
    // Where only literals without a type are given, the element type stays open.
    let open = element.is_none() && given.iter().all(|kind| *kind == TypeId::UNKNOWN);
    match (types.collect::<Option<Vec<_>>>(), result) {
        (Some(types), TypeId::NONE) => Some((types, result)),
        (Some(types), result) => Some((types, replace(result)?)),
        (None, TypeId::NONE) if open => Some((declared.to_vec(), result)),
        (None, _) => None,
    }
}

/// The range that a type is, or that its values are lists of.
fn range_of(ty: TypeId) -> Option<TypeId> {
    match ty.is_range() {
        true => Some(ty),
        false => ty.multirange_range(),
    }
}

pub(crate) fn indeterminate() -> Error {
    Error::new(
        SqlState::INDETERMINATE_DATATYPE,
        "could not determine polymorphic type because input has type unknown",
    )
}

/// The parameter types of a function spread over so many arguments; `None` if they do not fit.
fn spread(
    declared: &[TypeId],
    variadic: bool,
    defaults: usize,
    count: usize,
) -> Option<Vec<TypeId>> {
    if !variadic {
        let fits = count <= declared.len() && count + defaults >= declared.len();
        return fits.then(|| declared[..count].to_vec());
    }
    let (last, fixed) = declared.split_last()?;
    if count <= fixed.len() {
        // Nothing is gathered: the last one has its default too.
        return (count + defaults >= declared.len()).then(|| declared[..count].to_vec());
    }
    let element = match *last {
        TypeId::ANY => TypeId::ANY,
        TypeId::ANYARRAY => TypeId::ANYELEMENT,
        TypeId::ANYCOMPATIBLEARRAY => TypeId::ANYCOMPATIBLE,
        array => array.array_element()?,
    };
    let mut types = fixed.to_vec();
    types.resize(count, element);
    Some(types)
}

fn signature(name: &str, arguments: &[TypeId]) -> String {
    let shown: Vec<String> = arguments.iter().map(TypeId::to_string).collect();
    format!("{name}({})", shown.join(", "))
}

fn missing_function(name: &str, arguments: &[TypeId]) -> Error {
    Error::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("function {} does not exist", signature(name, arguments)),
    )
    .with_hint(
        "No function matches the given name and argument types. \
         You might need to add explicit type casts.",
    )
}

fn ambiguous_function(name: &str, arguments: &[TypeId]) -> Error {
    Error::new(
        SqlState::AMBIGUOUS_FUNCTION,
        format!("function {} is not unique", signature(name, arguments)),
    )
    .with_hint(
        "Could not choose a best candidate function. \
         You might need to add explicit type casts.",
    )
}

/// The candidate that arguments select, with its concrete types.
fn choose<T: Copy>(
    name: &str,
    arguments: &[TypeId],
    candidates: Vec<(Candidate<T>, TypeId)>,
    unasked: Unasked<'_>,
) -> Result<Option<(T, Vec<TypeId>, TypeId)>> {
    let exact = candidates
        .iter()
        .position(|(candidate, _)| candidate.parameters == arguments);
    let (pairs, results): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .enumerate()
        .map(|(index, (candidate, result))| {
            let pair = Candidate {
                item: (index, candidate.item),
                parameters: candidate.parameters,
            };
            (pair, result)
        })
        .unzip();
    let found = match exact {
        Some(index) => pairs.into_iter().nth(index),
        None => {
            select(arguments, pairs, unasked).map_err(|()| ambiguous_function(name, arguments))?
        }
    };
    let Some(Candidate {
        item: (index, item),
        parameters,
    }) = found
    else {
        return Ok(None);
    };
    match concrete(arguments, &parameters, results[index]) {
        Some((types, result)) => Ok(Some((item, types, result))),
        None if arguments.contains(&TypeId::UNKNOWN) => Err(indeterminate()),
        None => Ok(None),
    }
}

/// The function that `name(arguments)` means; aggregates are not found here.
///
/// # Errors
/// 42883 "function foo(integer) does not exist", 42725 "function foo(unknown) is not unique".
pub fn resolve_function(name: &str, arguments: &[TypeId]) -> Result<FunctionMatch> {
    resolve_function_with(name, arguments, &[])
}

/// As [`resolve_function`], with casts of users.
///
/// # Errors
/// As [`resolve_function`].
pub fn resolve_function_with(
    name: &str,
    arguments: &[TypeId],
    unasked: Unasked<'_>,
) -> Result<FunctionMatch> {
    // A name as it was written, with its schema, is for the messages.
    let plain = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let mut candidates: Vec<(Candidate<&'static Function>, TypeId)> = Vec::new();
    for function in functions_named(plain) {
        let defaults = usize::from(function.defaults);
        let spread = spread(
            function.arguments,
            function.variadic,
            defaults,
            arguments.len(),
        );
        let Some(parameters) = spread else { continue };
        // Of two functions with the same parameters, one without defaults wins.
        let same = candidates
            .iter_mut()
            .find(|(other, _)| other.parameters == parameters);
        let candidate = Candidate {
            item: *function,
            parameters,
        };
        match same {
            Some(other) if other.0.item.arguments.len() > function.arguments.len() => {
                *other = (candidate, function.result);
            }
            Some(_) => {}
            None => candidates.push((candidate, function.result)),
        }
    }
    let (function, argument_types, result) = choose(name, arguments, candidates, unasked)?
        .ok_or_else(|| missing_function(name, arguments))?;
    Ok(FunctionMatch {
        function,
        argument_types,
        result,
    })
}

/// The variadic function that `name(arguments)` means where the last argument is the array of VARIADIC.
///
/// # Errors
/// As [`resolve_function`].
pub fn resolve_with_array(name: &str, arguments: &[TypeId]) -> Result<FunctionMatch> {
    let fits = |function: &&&'static Function| {
        function.variadic && function.arguments.len() == arguments.len()
    };
    let candidates = functions_named(name).iter().filter(fits);
    let candidates = candidates.map(|function| {
        let parameters = function.arguments.to_vec();
        let item = *function;
        (Candidate { item, parameters }, function.result)
    });
    let (function, argument_types, result) = choose(name, arguments, candidates.collect(), &[])?
        .ok_or_else(|| missing_function(name, arguments))?;
    Ok(FunctionMatch {
        function,
        argument_types,
        result,
    })
}

/// The type that a call of one argument casts to, when its name is a type's and no function fits:
/// `date('2024-02-29')`, `float8(1)`.
pub fn resolve_type_function(name: &str, argument: TypeId) -> Option<TypeId> {
    let target = TypeId::by_name(name)?;
    match find_coercion(argument, target, CastContext::Explicit)? {
        Coercion::Binary => Some(target),
        Coercion::InOut if argument == TypeId::UNKNOWN => Some(target),
        Coercion::InOut => {
            let strings = |kind: TypeId| kind.category() == Category::String;
            (strings(target) && argument != TypeId::RECORD).then_some(target)
        }
        _ => None,
    }
}

/// The aggregate that `name(arguments)` means (`count(*)` has no arguments); `None` when no
/// aggregate has that name.
///
/// # Errors
/// As [`resolve_function`].
pub fn resolve_aggregate(name: &str, arguments: &[TypeId]) -> Result<Option<AggregateMatch>> {
    resolve_aggregate_among(name, arguments, aggregates_named(name), &[])
}

/// As [`resolve_aggregate`], among these, all of that name.
///
/// # Errors
/// As [`resolve_function`].
pub fn resolve_aggregate_among(
    name: &str,
    arguments: &[TypeId],
    named: &[&'static Aggregate],
    unasked: Unasked<'_>,
) -> Result<Option<AggregateMatch>> {
    if named.is_empty() {
        return Ok(None);
    }
    let candidates = named
        .iter()
        .filter(|aggregate| aggregate.arguments.len() == arguments.len())
        .map(|aggregate| {
            let candidate = Candidate {
                item: *aggregate,
                parameters: aggregate.arguments.to_vec(),
            };
            (candidate, aggregate.result)
        })
        .collect();
    let (aggregate, argument_types, result) = choose(name, arguments, candidates, unasked)?
        .ok_or_else(|| missing_function(name, arguments))?;
    Ok(Some(AggregateMatch {
        aggregate,
        argument_types,
        result,
    }))
}

/// The window function that `name(arguments)` means; `None` when none has that name.
///
/// # Errors
/// As [`resolve_function`].
pub fn resolve_window(name: &str, arguments: &[TypeId]) -> Result<Option<WindowMatch>> {
    let candidates: Vec<_> = windows_named(name)
        .filter(|function| function.arguments.len() == arguments.len())
        .map(|function| {
            let candidate = Candidate {
                item: function,
                parameters: function.arguments.to_vec(),
            };
            (candidate, function.result)
        })
        .collect();
    if candidates.is_empty() && windows_named(name).next().is_none() {
        return Ok(None);
    }
    let (function, argument_types, result) = choose(name, arguments, candidates, &[])?
        .ok_or_else(|| missing_function(name, arguments))?;
    Ok(Some(WindowMatch {
        function,
        argument_types,
        result,
    }))
}

/// The common type of CASE, UNION, VALUES, COALESCE, GREATEST and array constructors. `what` is
/// how the error message names them ("CASE", "UNION", …).
///
/// # Errors
/// 42804 "CASE types text and integer cannot be matched".
pub fn select_common_type(types: &[TypeId], what: &str) -> Result<TypeId> {
    let mut chosen = TypeId::UNKNOWN;
    for kind in types
        .iter()
        .copied()
        .filter(|kind| *kind != TypeId::UNKNOWN)
    {
        if chosen == TypeId::UNKNOWN || chosen == kind {
            chosen = kind;
            continue;
        }
        if chosen.category() != kind.category() {
            return Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!("{what} types {chosen} and {kind} cannot be matched"),
            ));
        }
        let implicit = |from, to| coercion(from, to, CastContext::Implicit).is_some();
        if !chosen.is_preferred() && implicit(chosen, kind) && !implicit(kind, chosen) {
            chosen = kind;
        }
    }
    match chosen {
        TypeId::UNKNOWN => Ok(TypeId::TEXT),
        chosen => Ok(chosen),
    }
}

/// A function that is not built in, as it takes part in the choice.
#[derive(Clone, Debug)]
pub struct Offer<T> {
    /// What it is.
    pub item: T,
    /// Its schema.
    pub schema: u32,
    /// The types of its inputs.
    pub inputs: Vec<TypeId>,
    /// Whether the last of them takes any number of values.
    pub variadic: bool,
    /// How many of the last have defaults.
    pub defaults: usize,
    /// The type of its result.
    pub result: TypeId,
}

/// What a call means among built-in functions and others.
#[derive(Clone, Debug)]
pub enum Chosen<T> {
    /// A built-in function.
    BuiltIn(FunctionMatch),
    /// Another: what it is, the types to which the arguments must be coerced, its result.
    Offered(T, Vec<TypeId>, TypeId),
}

/// The function that `name(arguments)` means among those that are offered, the nearest first, and the
/// built-in ones, if they count: they come before the offer of that place. None if there is none that
/// fits.
///
/// # Errors
/// 42725 "function foo(unknown) is not unique"; 42804 where a polymorphic type stays open.
pub fn resolve_offered<T: Copy>(
    name: &str,
    arguments: &[TypeId],
    built_in: Option<usize>,
    offers: &[Offer<T>],
    unasked: Unasked<'_>,
) -> Result<Option<Chosen<T>>> {
    let count = arguments.len();
    let mut known: Vec<(Candidate<Item<'_, T>>, TypeId)> = Vec::new();
    let add_built_in = |known: &mut Vec<(Candidate<Item<'_, T>>, TypeId)>| {
        for function in functions_named(name) {
            let (inputs, defaults) = (function.arguments, usize::from(function.defaults));
            let parameters = spread(inputs, function.variadic, defaults, count);
            let item = Item::BuiltIn(function);
            known.extend(parameters.and_then(|parameters| {
                let hidden = known
                    .iter()
                    .any(|(known, _)| known.parameters == parameters);
                (!hidden).then_some((Candidate { item, parameters }, function.result))
            }));
        }
    };
    for (place, offer) in offers.iter().enumerate() {
        if built_in == Some(place) {
            add_built_in(&mut known);
        }
        let spread = spread(&offer.inputs, offer.variadic, offer.defaults, count);
        let Some(parameters) = spread else { continue };
        let same = known
            .iter_mut()
            .find(|(known, _)| known.parameters == parameters);
        match same {
            None => {
                let item = Item::Offered(offer);
                known.push((Candidate { item, parameters }, offer.result));
            }
            Some((same, _)) => same.item = same.item.beside(offer),
        }
    }
    if built_in.is_some_and(|place| place >= offers.len()) {
        add_built_in(&mut known);
    }
    let chosen = choose(name, arguments, known, unasked)?;
    let Some((item, argument_types, result)) = chosen else {
        return Ok(None);
    };
    Ok(Some(match item {
        Item::BuiltIn(function) => Chosen::BuiltIn(FunctionMatch {
            function,
            argument_types,
            result,
        }),
        Item::Offered(offer) => Chosen::Offered(offer.item, argument_types, result),
        Item::Several => return Err(ambiguous_function(name, arguments)),
    }))
}

/// What takes part in the choice.
#[derive(Debug)]
enum Item<'o, T> {
    BuiltIn(&'static Function),
    Offered(&'o Offer<T>),
    /// Offers of one schema that arguments do not tell apart.
    Several,
}

impl<T> Clone for Item<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Item<'_, T> {}

impl<'o, T> Item<'o, T> {
    /// What stands for it and an offer that comes later and takes the same arguments: the nearest
    /// hides others; in one schema, the one that gathers nothing does.
    fn beside(self, offer: &'o Offer<T>) -> Self {
        match self {
            Item::Offered(known) if known.schema == offer.schema => {
                match (known.variadic, offer.variadic) {
                    (true, false) => Item::Offered(offer),
                    (false, true) => self,
                    _ => Item::Several,
                }
            }
            other => other,
        }
    }
}

/// What a declared type is where arguments of these types stand for those that were declared.
pub fn concrete_type(given: &[TypeId], declared: &[TypeId], wanted: TypeId) -> Option<TypeId> {
    match wanted.is_polymorphic() {
        true => concrete(given, declared, wanted).map(|found| found.1),
        false => Some(wanted),
    }
}
