//! Calls of functions and procedures that users have made.

use std::rc::Rc;
use std::sync::Arc;

use super::{Collated, Expr, ExprKind, Program};
use catalog::routine::Language;
use catalog::Routine;
use functions::extensions::by_symbol;
use functions::{function_by_oid, ranges, Function};
use types::{TypeId, NO_TYPMOD};

/// A call, but for its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineCall {
    /// What is called.
    pub routine: Arc<Routine>,
    /// Who must be allowed to call it, in the place of whoever runs the statement: the owner of the
    /// aggregate that it is a part of.
    pub caller: Option<u32>,
    /// The types of all its inputs, where they are given; none is polymorphic.
    pub types: Vec<TypeId>,
    /// The type of its result.
    pub result: TypeId,
    /// The columns of its rows, if it gives records whose columns are known.
    pub columns: Vec<(String, TypeId)>,
    /// Their modifiers, as far as they have any.
    pub typmods: Vec<i32>,
    /// How it is called, with its schema where it must be.
    pub shown: String,
    /// Which inputs were given, under which names; the others have their defaults.
    pub written: Vec<(usize, Option<String>)>,
    /// The collation of its arguments, which its own variables have.
    pub collation: Collated,
    /// Whether it is what a cast does, and whether that was asked for.
    pub cast: Option<bool>,
    /// The operator that it was written as, as it is shown.
    pub operator: Option<String>,
}

/// How a value is compared with the elements of an array by an operator of a user's.
#[derive(Clone, Debug)]
pub struct OwnTest {
    /// The comparison, over the value and an element.
    pub condition: Rc<Program>,
    /// The call that the comparison is.
    pub call: Rc<RoutineCall>,
    /// Whether it must hold for all elements, or for any.
    pub all: bool,
}

impl RoutineCall {
    /// The modifier of the column at a place.
    pub fn typmod(&self, place: usize) -> i32 {
        self.typmods.get(place).copied().unwrap_or(NO_TYPMOD)
    }

    /// Whether its columns are those of a column definition list.
    pub fn is_listed(&self) -> bool {
        let routine = &self.routine;
        let is_open = routine.result == TypeId::RECORD && routine.result_relation == 0;
        is_open && !self.columns.is_empty() && routine.outputs().next().is_none()
    }

    /// The function that computes it, if it is of an extension or makes a range.
    pub fn function(&self) -> Option<&'static Function> {
        match self.routine.language {
            Language::C => by_symbol(&self.routine.body),
            Language::Internal => {
                let constructor = ranges::constructor(&self.routine.body);
                // What an operator of a user's calls.
                let by_oid = || function_by_oid(self.routine.body.parse().ok()?);
                constructor.or_else(by_oid)
            }
            Language::Sql | Language::PlPgSql => None,
        }
    }
}

impl Expr {
    /// Whether it gives any number of values.
    pub fn is_set(&self) -> bool {
        match &self.kind {
            ExprKind::SetCall(..) => true,
            ExprKind::Routine(call, _) => call.routine.set,
            _ => false,
        }
    }

    /// Whether it is a call, itself, of a routine that is not as it says: `i`, `s` or `v`.
    pub fn is_routine_of(&self, volatilities: &[u8]) -> bool {
        match &self.kind {
            ExprKind::Routine(call, _) => volatilities.contains(&call.routine.volatility),
            ExprKind::AnyOwn(_, _, test) => volatilities.contains(&test.call.routine.volatility),
            _ => false,
        }
    }
}
