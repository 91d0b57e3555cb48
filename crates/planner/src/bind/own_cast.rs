//! Casts that CREATE CAST has made.
//!
//! ```text
//! create cast (varchar as mood) with function to_mood(text) as implicit
//! x::mood        to_mood(x), which is shown as it was written
//! takes(x)       takes(to_mood(x)), where takes(mood) is all that there is of that name
//! ```
//! A cast of users comes before what would be done without it, and where it may not be used (it is
//! AS ASSIGNMENT, and nobody assigns), nothing else is.
//!
//! # What it leaves out
//! Functions of users for the elements of arrays (0A000), and casts of users in calls of window
//! functions, of VARIADIC arrays, and in the common type of CASE and its kin. The assignment of a
//! default, or of what a generated column is computed from, asks for the casts of now, while the text
//! itself has those that it was kept with. A prepared statement asks anew once the catalog has changed.

use std::borrow::Cow;
use std::rc::Rc;

use base::{Error, Result};

use super::routine::Written;
use super::Binder;
use crate::plan::{compile, Expr, ExprKind, How, Program};
use catalog::{CastHow, OwnCast, Routine};
use functions::resolve::each;
use functions::{function_by_oid, CastContext, Coercion};
use types::{Datum, TypeId};

/// A cast of users, of values themselves or of the elements of arrays.
#[derive(Clone, Copy)]
pub(super) struct Found {
    cast: OwnCast,
    of_elements: bool,
}

impl Binder<'_> {
    /// Whether the text at work may use a cast: what is kept knows those that were there before it.
    fn may_use(&self, cast: &OwnCast) -> bool {
        let kept = self.noted.as_ref();
        kept.is_none_or(|kept| kept.contains(&cast.oid))
    }

    /// Between which types users have made casts that are used unasked.
    pub(super) fn unasked(&self) -> Cow<'_, [(TypeId, TypeId)]> {
        let casts = &self.cx.catalog.casts;
        if self.noted.is_none() {
            return Cow::Borrowed(casts.implicit());
        }
        let implicit = casts
            .iter()
            .filter(|cast| cast.context == CastContext::Implicit);
        let implicit = implicit.filter(|cast| self.may_use(cast));
        implicit.map(|cast| (cast.source, cast.target)).collect()
    }

    /// The cast that users have made between two types: none if there is none, and nothing of it if it
    /// is not used in that context.
    pub(super) fn cast_of_own(
        &mut self,
        source: TypeId,
        target: TypeId,
        context: CastContext,
    ) -> Result<Option<Option<Found>>> {
        let catalog = self.cx.catalog;
        if catalog.casts.is_empty() {
            return Ok(None);
        }
        let whole = catalog.own_cast(source, target).copied();
        let found = match (whole, source.array_element(), target.array_element()) {
            (Some(cast), _, _) => Some((cast, false)),
            (None, Some(from), Some(to)) => catalog.own_cast(from, to).map(|cast| (*cast, true)),
            _ => None,
        };
        let found = found.filter(|(cast, _)| self.may_use(cast));
        let Some((cast, of_elements)) = found else {
            return Ok(None);
        };
        if cast.context > context {
            return Ok(Some(None));
        }
        if let Some(recorded) = &mut self.recorded {
            recorded.casts.push(cast.oid);
        }
        Ok(Some(Some(Found { cast, of_elements })))
    }

    /// A value as one of the type that a cast of users gives.
    pub(super) fn by_own_cast(
        &mut self,
        expr: Expr,
        found: Found,
        (ty, typmod): (TypeId, i32),
        explicit: bool,
    ) -> Result<Expr> {
        let location = expr.location.0;
        let how = match found.cast.how {
            CastHow::InOut => Coercion::InOut,
            CastHow::Binary => Coercion::Binary,
            CastHow::Function(_) if found.of_elements => {
                return Err(Error::unsupported(
                    "a cast of arrays by a function of users' cast",
                ));
            }
            CastHow::Function(oid) => match self.cx.catalog.routine(oid).cloned() {
                Some(routine) => {
                    let made = self.by_routine(expr, &routine, typmod, explicit)?;
                    return self.as_target(made, ty, typmod, explicit, routine.result);
                }
                None => {
                    let function = function_by_oid(oid);
                    let function =
                        function.ok_or_else(|| Error::internal("a cast by no function"))?;
                    self.calls(oid);
                    let value = self.coerce_argument(expr, function.arguments[0])?;
                    let how = How(Coercion::Function(function), explicit);
                    let made = Expr::new(
                        ExprKind::Coerce(Box::new(value), how),
                        function.result,
                        location,
                    );
                    return self.as_target(made, ty, typmod, explicit, function.result);
                }
            },
        };
        let how = match found.of_elements {
            true => each(&how).unwrap_or(how),
            false => how,
        };
        let made = Expr::new(
            ExprKind::Coerce(Box::new(expr), How(how, explicit)),
            ty,
            location,
        );
        Ok(super::coerce::fit(made, typmod, explicit))
    }

    /// What a cast's function gives, which stands for a value of the target.
    fn as_target(
        &mut self,
        made: Expr,
        ty: TypeId,
        typmod: i32,
        explicit: bool,
        result: TypeId,
    ) -> Result<Expr> {
        let location = made.location.0;
        let made = match result == ty {
            true => made,
            false => {
                let how = How(Coercion::Binary, false);
                Expr::new(ExprKind::Coerce(Box::new(made), how), ty, location)
            }
        };
        Ok(super::coerce::fit(made, typmod, explicit))
    }

    /// The call of a routine that a cast is made of: with the modifier and whether the cast was asked
    /// for, if it takes them.
    fn by_routine(
        &mut self,
        expr: Expr,
        routine: &std::sync::Arc<Routine>,
        typmod: i32,
        explicit: bool,
    ) -> Result<Expr> {
        let location = expr.location.0;
        let inputs = routine.input_types();
        let mut args = vec![expr];
        if inputs.len() > 1 {
            args.push(Expr::constant(Datum::Int4(typmod), TypeId::INT4, -1));
        }
        if inputs.len() > 2 {
            args.push(Expr::constant(Datum::Bool(explicit), TypeId::BOOL, -1));
        }
        // No name of it stands in the text.
        let recorded = self.recorded.take();
        let called =
            self.routine_found(routine.clone(), Written::in_order(args), &inputs, location);
        self.recorded = recorded;
        if let Some(recorded) = &mut self.recorded {
            recorded.casts.push(routine.oid);
        }
        let mut called = called?;
        if let ExprKind::Routine(call, _) = &mut called.kind {
            Rc::make_mut(call).cast = Some(explicit);
        }
        Ok(called)
    }

    /// What an assignment of PL/pgSQL does where users have made a cast; none where they have not, or
    /// where it is not for assignments.
    ///
    /// # Errors
    /// What binding the cast gives.
    pub fn own_cast_program(
        &mut self,
        from: TypeId,
        to: TypeId,
        typmod: i32,
    ) -> Result<Option<Program>> {
        let value = Expr::new(ExprKind::Param(0), from, -1);
        let found = self
            .cast_of_own(from, to, CastContext::Assignment)?
            .flatten();
        let Some(found) = found else {
            return Ok(None);
        };
        let made = self.by_own_cast(value, found, (to, typmod), false)?;
        Ok(Some(compile(&made)))
    }
}
