//! Which function, operator or cast a call means.
//!
//! Source: PostgreSQL 15 manual, chapter 10.

use base::error::{Error, Result};

use super::aggregate::Aggregate;
use super::{Function, Operator};
use crate::types::TypeId;

/// How explicit a conversion is; each allows what the ones before it allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// In an expression, unasked.
    Implicit,
    /// To the type of a column that is assigned to.
    Assignment,
    /// `CAST` and `::`.
    Explicit,
}

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

/// An operator and what its operands must become.
#[derive(Clone, Debug)]
pub struct OperatorMatch {
    /// The operator.
    pub operator: &'static Operator,
    /// The types to which the operands must be coerced: one for a prefix operator, else two.
    pub argument_types: Vec<TypeId>,
    /// The type of the result.
    pub result: TypeId,
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

/// The operator that `left name right` means; `left` is [`TypeId::NONE`] for a prefix operator.
/// Literals without a type are [`TypeId::UNKNOWN`].
///
/// # Errors
/// 42883 "operator does not exist: text + integer", 42725 "operator is not unique: …".
pub fn resolve_operator(name: &str, left: TypeId, right: TypeId) -> Result<OperatorMatch> {
    let _ = (left, right);
    Err(Error::unsupported(format!("operator {name}")))
}

/// The function that `name(arguments)` means; aggregates are not found here.
///
/// # Errors
/// 42883 "function foo(integer) does not exist", 42725 "function foo(unknown) is not unique".
pub fn resolve_function(name: &str, arguments: &[TypeId]) -> Result<FunctionMatch> {
    let _ = arguments;
    Err(Error::unsupported(format!("function {name}")))
}

/// The aggregate that `name(arguments)` means (`count(*)` has no arguments); `None` when no
/// aggregate has that name.
///
/// # Errors
/// As [`resolve_function`].
pub fn resolve_aggregate(name: &str, arguments: &[TypeId]) -> Result<Option<AggregateMatch>> {
    let _ = (name, arguments);
    Ok(None)
}

/// How a value of type `source` becomes one of `target`; `None` when it cannot in that context.
/// From [`TypeId::UNKNOWN`] the way is always `InOut`.
pub fn find_coercion(source: TypeId, target: TypeId, context: CastContext) -> Option<Coercion> {
    let _ = context;
    (source == target).then_some(Coercion::Binary)
}

/// The common type of CASE, UNION, VALUES, COALESCE, GREATEST and array constructors. `what` is
/// how the error message names them ("CASE", "UNION", …).
///
/// # Errors
/// 42804 "CASE types text and integer cannot be matched".
pub fn select_common_type(types: &[TypeId], what: &str) -> Result<TypeId> {
    let _ = what;
    types
        .first()
        .copied()
        .ok_or_else(|| Error::internal("no types"))
}
