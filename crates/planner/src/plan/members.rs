//! `x IN (1, 2, 3, …)` with a long list of constants: looked up, not compared one by one.
//!
//! ```text
//! x IN (1, 5, NULL)      5 → true, 7 → NULL, NULL → NULL
//! x NOT IN (1, 5, NULL)  5 → false, 7 → NULL
//! ```
//! A list is one of these if it has more than [`LIST_LENGTH_MIN`] elements, all of them constants
//! of the type of `x`, and the comparison is plain equality. Shorter ones are compared: their
//! literals may be left open in a plan that is kept ([`super::Literal`]).

use std::sync::Arc;

use base::hash::HashMap;

use super::{Expr, ExprKind, Func};
use functions::{operators_for, Function, Operator};
use syntax::parser::shape::SHAPE_LITERALS_MAX;
use types::{self, hash_row, Array, Datum, TypeId};

/// Statements with so many literals have no shape, so none of theirs is left open.
const LIST_LENGTH_MIN: usize = SHAPE_LITERALS_MAX;

/// The elements of a list, by their hash.
#[derive(Debug)]
pub struct Members {
    ty: TypeId,
    values: Vec<Datum>,
    /// The first value of each hash; further ones of the same hash by the place of the one before.
    first: HashMap<u64, usize>,
    next: Vec<Option<usize>>,
    has_null: bool,
    /// NOT IN.
    negated: bool,
}

impl Members {
    /// The list of an ANY or ALL, if it is one that can be looked up.
    pub(super) fn of(list: &Expr, function: Func, types: &[TypeId], all: bool) -> Option<Members> {
        let ExprKind::Array(elements, _) = &list.kind else {
            return None;
        };
        let [left, ty] = types else {
            return None;
        };
        let name = if all { "<>" } else { "=" };
        let operators = operators_for(name, *ty);
        let is_plain = operators
            .iter()
            .any(|known| std::ptr::eq(known.function, function.0));
        if elements.len() <= LIST_LENGTH_MIN || left != ty || !is_plain {
            return None;
        }
        let mut members = Members {
            ty: *ty,
            values: Vec::with_capacity(elements.len()),
            first: HashMap::default(),
            next: Vec::with_capacity(elements.len()),
            has_null: false,
            negated: all,
        };
        for element in elements {
            match &element.kind {
                ExprKind::Const(Datum::Null, _) => members.has_null = true,
                ExprKind::Const(value, _) if element.ty == *ty => members.add(value),
                _ => return None,
            }
        }
        Some(members)
    }

    /// The comparison, and whether it must hold with all of the list.
    pub fn comparison(&self) -> Option<(&'static Function, bool)> {
        let name = if self.negated { "<>" } else { "=" };
        let of_type = |operator: &&&Operator| operator.left == self.ty && operator.right == self.ty;
        let operators = operators_for(name, self.ty);
        let found = operators.iter().find(of_type)?;
        Some((found.function, self.negated))
    }

    /// The type of the elements, and these as an array.
    pub fn list(&self) -> (TypeId, Datum) {
        let mut values = self.values.clone();
        values.extend(self.has_null.then_some(Datum::Null));
        let array = Array::of(self.ty, values);
        (self.ty, Datum::Array(Arc::new(array)))
    }

    fn hash(&self, value: &Datum) -> u64 {
        hash_row(&[self.ty], std::slice::from_ref(value))
    }

    fn add(&mut self, value: &Datum) {
        if self.has(value) {
            return;
        }
        let place = self.values.len();
        self.next.push(self.first.insert(self.hash(value), place));
        self.values.push(value.clone());
    }

    fn has(&self, value: &Datum) -> bool {
        let mut at = self.first.get(&self.hash(value)).copied();
        while let Some(place) = at {
            if types::equal(self.ty, &self.values[place], value) {
                return true;
            }
            at = self.next[place];
        }
        false
    }

    /// Whether a value is in the list, or, for NOT IN, is not.
    pub fn test(&self, value: &Datum) -> Datum {
        match value {
            Datum::Null => Datum::Null,
            value if self.has(value) => Datum::Bool(!self.negated),
            _ if self.has_null => Datum::Null,
            _ => Datum::Bool(self.negated),
        }
    }
}
