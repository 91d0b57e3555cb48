//! Which operator an expression means.
//!
//! ```text
//! 1 + 2.5        an operator of exactly these types? none; integers become numerics
//! a <-> 'x'      what has no type is taken to be of the other operand's, if there is such an operator
//! ```
//! The rules are those of the manual's section 10.2. Operators that users have made take part in the choice
//! beside the built-in ones ([`resolve_operator_offered`]); which of them a name may mean, and in which order, is
//! for the caller to say.
//!
//! Source: PostgreSQL 15 manual, section 10.2.

use base::error::{Error, Result, SqlState};

use super::registry::operators_for;
use super::resolve::{concrete, indeterminate, select, Candidate, Unasked};
use super::Operator;
use types::TypeId;

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

/// The operator that `left name right` means; `left` is [`TypeId::NONE`] for a prefix operator.
/// Literals without a type are [`TypeId::UNKNOWN`].
///
/// # Errors
/// 42883 "operator does not exist: text + integer", 42725 "operator is not unique: …".
pub fn resolve_operator(name: &str, left: TypeId, right: TypeId) -> Result<OperatorMatch> {
    let kind = if left.is_of_extension() { left } else { right };
    resolve_operator_among(name, left, right, &operators_for(name, kind), &[])
}

/// As [`resolve_operator`], among these, all of that name.
///
/// # Errors
/// As [`resolve_operator`].
pub fn resolve_operator_among(
    name: &str,
    left: TypeId,
    right: TypeId,
    operators: &[&'static Operator],
    unasked: Unasked<'_>,
) -> Result<OperatorMatch> {
    let prefix = left == TypeId::NONE;
    let all = operators
        .iter()
        .filter(|operator| (operator.left == TypeId::NONE) == prefix);
    let exact = exact_operator(all.clone().copied(), left, right);
    let choice = match exact {
        Some(operator) => vec![operand_types(operator)],
        None => all.map(|operator| operand_types(operator)).collect(),
    };
    let is_exact = exact.is_some();
    let types = (left, right);
    let (operator, argument_types, result) =
        choose_operator(name, [types, types], &choice, is_exact, unasked)?;
    Ok(OperatorMatch {
        operator,
        argument_types,
        result,
    })
}

/// An operator as it takes part in the choice.
#[derive(Clone, Copy, Debug)]
pub struct Operands<T> {
    /// What it is.
    pub item: T,
    /// The type of its left operand; [`TypeId::NONE`] for a prefix operator.
    pub left: TypeId,
    /// The type of its right operand.
    pub right: TypeId,
    /// The type of its result.
    pub result: TypeId,
}

impl<T> Operands<T> {
    fn is_prefix(&self) -> bool {
        self.left == TypeId::NONE
    }

    fn parameters(&self) -> Vec<TypeId> {
        match self.is_prefix() {
            true => vec![self.right],
            false => vec![self.left, self.right],
        }
    }
}

/// A built-in operator as it takes part in the choice.
pub fn operand_types(operator: &'static Operator) -> Operands<&'static Operator> {
    Operands {
        item: operator,
        left: operator.left,
        right: operator.right,
        result: operator.function.result,
    }
}

/// The operator that `left name right` means among these, the nearest first, of which no two have the same
/// operands: what it is, the types to which the operands must be coerced, and its result. Types of operands
/// may be domains, whose base type `base_of` knows.
///
/// # Errors
/// As [`resolve_operator`].
pub fn resolve_operator_offered<T: Copy>(
    name: &str,
    (left, right): (TypeId, TypeId),
    offers: &[Operands<T>],
    base_of: &dyn Fn(TypeId) -> TypeId,
    unasked: Unasked<'_>,
) -> Result<(T, Vec<TypeId>, TypeId)> {
    let prefix = left == TypeId::NONE;
    let same = offers.iter().filter(|offer| offer.is_prefix() == prefix);
    let based = |offer: &Operands<T>| Operands {
        left: base_of(offer.left),
        right: base_of(offer.right),
        ..*offer
    };
    let (a, b) = alike(left, right);
    let was_unknown = (a, b) != (left, right);
    let exact = |a: TypeId, b: TypeId| {
        same.clone()
            .find(|offer| (offer.left, offer.right) == (a, b))
    };
    let found = exact(a, b).or_else(|| {
        let base = base_of(a);
        exact(base, base).filter(|_| was_unknown)
    });
    let choice: Vec<_> = match found {
        Some(offer) => vec![based(offer)],
        None => {
            // One over domains never fits better than the same one over their base types.
            let offers: Vec<_> = same.collect();
            let is_based = |offer: &Operands<T>| based(offer).parameters() == offer.parameters();
            let is_hidden = |offer: &Operands<T>| {
                let parameters = based(offer).parameters();
                let mut others = offers.iter();
                !is_based(offer) && others.any(|other| other.parameters() == parameters)
            };
            let seen = offers.iter().filter(|offer| !is_hidden(offer));
            seen.map(|offer| based(offer)).collect()
        }
    };
    let types = (base_of(left), base_of(right));
    choose_operator(
        name,
        [(left, right), types],
        &choice,
        found.is_some(),
        unasked,
    )
}

/// The operator that operands of these types select, with its concrete types; the only one, if it is known
/// to fit. The types are given as messages show them, and as they count.
fn choose_operator<T: Copy>(
    name: &str,
    [shown, (left, right)]: [(TypeId, TypeId); 2],
    choice: &[Operands<T>],
    is_exact: bool,
    unasked: Unasked<'_>,
) -> Result<(T, Vec<TypeId>, TypeId)> {
    let prefix = left == TypeId::NONE;
    let arguments: Vec<TypeId> = match prefix {
        true => vec![right],
        false => vec![left, right],
    };
    let chosen = match is_exact {
        true => Ok(choice.first()),
        false => {
            let candidates = choice.iter().map(|operands| Candidate {
                item: operands,
                parameters: operands.parameters(),
            });
            let found = select(&arguments, candidates.collect(), unasked);
            found.map(|found| found.map(|found| found.item))
        }
    };
    let shown = match prefix {
        true => format!("{name} {}", shown.1),
        false => format!("{} {name} {}", shown.0, shown.1),
    };
    let operands = chosen
        .map_err(|()| {
            Error::new(
                SqlState::AMBIGUOUS_FUNCTION,
                format!("operator is not unique: {shown}"),
            )
            .with_hint(
                "Could not choose a best candidate operator. \
                 You might need to add explicit type casts.",
            )
        })?
        .ok_or_else(|| missing_operator(&shown, prefix))?;
    let (types, result) = concrete(&arguments, &operands.parameters(), operands.result)
        .ok_or_else(|| match arguments.contains(&TypeId::UNKNOWN) {
            true => indeterminate(),
            false => missing_operator(&shown, prefix),
        })?;
    Ok((operands.item, types, result))
}

fn missing_operator(shown: &str, prefix: bool) -> Error {
    let hint = match prefix {
        true => {
            "No operator matches the given name and argument type. \
             You might need to add an explicit type cast."
        }
        false => {
            "No operator matches the given name and argument types. \
             You might need to add explicit type casts."
        }
    };
    Error::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("operator does not exist: {shown}"),
    )
    .with_hint(hint)
}

/// The types of operands, where one that is unknown is taken to have the other's type.
fn alike(left: TypeId, right: TypeId) -> (TypeId, TypeId) {
    match (left, right) {
        (TypeId::NONE, right) => (left, right),
        (TypeId::UNKNOWN, right) => (right, right),
        (left, TypeId::UNKNOWN) => (left, left),
        both => both,
    }
}

/// The operator of exactly these types; one unknown operand is taken to have the other's type.
fn exact_operator(
    mut all: impl Iterator<Item = &'static Operator> + Clone,
    left: TypeId,
    right: TypeId,
) -> Option<&'static Operator> {
    let (a, b) = alike(left, right);
    all.find(|operator| operator.left == a && operator.right == b)
}
