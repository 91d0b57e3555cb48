//! Changes of type.

use std::rc::Rc;

use base::{Error, Result, SqlState};

use super::Binder;
use crate::plan::{Collated, Expr, ExprKind, Func, How, Location};
use catalog::collation;
use functions::{find_coercion, ranges, select_common_type, CastContext, Coercion, Function};
use types::{self, Category, Datum, TypeId, NO_TYPMOD};

impl Expr {
    /// A value.
    pub fn constant(value: Datum, ty: TypeId, location: i32) -> Expr {
        Expr::new(ExprKind::Const(value, None), ty, location)
    }

    /// An expression without a modifier.
    pub fn new(kind: ExprKind, ty: TypeId, location: i32) -> Expr {
        let collation = match collation::of_type(ty) {
            0 => Collated::default(),
            _ => Collated::of(&kind, location),
        };
        Expr {
            kind,
            ty,
            typmod: NO_TYPMOD,
            location: Location(location),
            domain: TypeId::NONE,
            collation,
        }
    }

    /// Whether it is a literal or a parameter whose type is open.
    pub fn is_untyped(&self) -> bool {
        self.ty == TypeId::UNKNOWN && matches!(self.kind, ExprKind::Const(..) | ExprKind::Param(_))
    }
}

impl Binder<'_> {
    /// The expression as a value of a type and modifier; `None` when there is no way in that
    /// context.
    pub(super) fn try_coerce(
        &mut self,
        expr: Expr,
        ty: TypeId,
        typmod: i32,
        context: CastContext,
    ) -> Result<Result<Expr, Expr>> {
        if ty.is_of_domain() {
            return self.coerce_to_domain(expr, ty, context);
        }
        let explicit = context == CastContext::Explicit;
        if expr.is_untyped() {
            return self.coerce_untyped(expr, ty, typmod, explicit).map(Ok);
        }
        if expr.ty == ty {
            return Ok(Ok(fit(expr, typmod, explicit)));
        }
        if ty.is_polymorphic() || ty == TypeId::ANY {
            return Ok(Ok(expr));
        }
        if expr.ty == TypeId::RECORD && ty.category() == Category::Composite {
            return self.row_as(expr, ty, context, -1);
        }
        if expr.ty.category() == Category::Composite && ty == TypeId::RECORD {
            return Ok(Ok(self.row_as_record(expr)));
        }
        if let Some(made) = self.cast_of_own(expr.ty, ty, context)? {
            return match made {
                Some(cast) => self.by_own_cast(expr, cast, (ty, typmod), explicit).map(Ok),
                None => Ok(Err(expr)),
            };
        }
        let Some(how) = find_coercion(expr.ty, ty, context) else {
            return Ok(Err(expr));
        };
        if let Some(function) = called(&how) {
            // One of an extension, and of a range of one's own, is called by its routine.
            let catalog = self.cx.catalog;
            let routine = match ranges::is_constructor(function) {
                true => catalog.cast_to_multirange(ty.array_element().unwrap_or(ty)),
                false => catalog.routine_of_function(function),
            };
            self.calls(routine.unwrap_or(function.oid));
        }
        if let Coercion::Function(function) = how {
            if ty == TypeId::BIT && function.arguments.len() == 2 {
                return Ok(Ok(number_as_bits(expr, Func(function), typmod)));
            }
        }
        let through_text = matches!(how, Coercion::InOut);
        let location = expr.location;
        let kind = ExprKind::Coerce(Box::new(expr), How(how, explicit));
        let mut coerced = Expr::new(kind, ty, location.0);
        if through_text && !explicit {
            coerced.typmod = typmod;
        }
        Ok(Ok(fit(coerced, typmod, explicit)))
    }

    fn coerce_untyped(
        &mut self,
        mut expr: Expr,
        ty: TypeId,
        typmod: i32,
        explicit: bool,
    ) -> Result<Expr> {
        let location = expr.location.0;
        if ty == TypeId::UNKNOWN || ty.is_polymorphic() || ty == TypeId::ANY {
            return Ok(expr);
        }
        match &expr.kind {
            ExprKind::Param(place) => {
                let known = &mut self.params[*place];
                if *known == TypeId::UNKNOWN {
                    *known = ty;
                } else if *known != ty {
                    let known = *known;
                    expr.ty = known;
                    let context = CastContext::Explicit;
                    return match self.try_coerce(expr, ty, typmod, context)? {
                        Ok(expr) => Ok(expr),
                        Err(_) => Err(self.error(
                            SqlState::of("42P08"),
                            format!("inconsistent types deduced for parameter: {known} and {ty}"),
                            location,
                        )),
                    };
                }
                expr.ty = ty;
                Ok(fit(expr, typmod, explicit))
            }
            ExprKind::Const(Datum::Null, _) => {
                expr.ty = ty;
                // Nothing needs fitting, but clients are told of the modifier.
                expr.typmod = typmod;
                Ok(expr)
            }
            ExprKind::Const(value, literal) => {
                let text = value.as_str().to_owned();
                // The modifier of an interval says how its text is read; others are applied to
                // the value when the statement runs.
                let modifier = match ty {
                    TypeId::INTERVAL if typmod != NO_TYPMOD => {
                        literal.iter().for_each(|literal| literal.fix());
                        typmod
                    }
                    _ => NO_TYPMOD,
                };
                if is_of_the_day(ty, &text) {
                    self.fleeting = true;
                }
                let value = types::input(self.cx.eval, ty, modifier, &text)
                    .map_err(|error| self.place(error, location))?;
                if ty == TypeId::TSQUERY {
                    let remarks = &self.cx.eval.remarks;
                    remarks.change(|remark| self.place(remark, location));
                }
                if let Some(recorded) = &mut self.recorded {
                    recorded.constant(location, &value, ty);
                }
                let kind = ExprKind::Const(value, literal.clone());
                let constant = Expr::new(kind, ty, location);
                Ok(fit(constant, typmod, explicit))
            }
            _ => Ok(expr),
        }
    }

    /// The expression as an argument of that type, which resolution has already allowed.
    pub(super) fn coerce_argument(&mut self, expr: Expr, ty: TypeId) -> Result<Expr> {
        let (from, location) = (expr.ty, expr.location.0);
        match self.try_coerce(expr, ty, NO_TYPMOD, CastContext::Implicit)? {
            Ok(expr) if ty.is_of_domain() || expr.ty != ty => Ok(expr),
            Ok(expr) => Ok(of_base(expr, false)),
            Err(_) => Err(self.cannot_cast(from, ty, location)),
        }
    }

    /// `CAST(expr AS ty)`.
    pub(super) fn cast(
        &mut self,
        expr: Expr,
        ty: TypeId,
        typmod: i32,
        location: i32,
    ) -> Result<Expr> {
        let from = expr.ty;
        let context = CastContext::Explicit;
        let made = match expr.is_row() && ty.is_composite() {
            true => self.row_as(expr, ty, context, location)?,
            false => self.try_coerce(expr, ty, typmod, context)?,
        };
        match made {
            Ok(expr) if ty.is_of_domain() => Ok(expr),
            Ok(expr) => Ok(of_base(expr, true)),
            Err(_) => Err(self.cannot_cast(from, ty, location)),
        }
    }

    fn cannot_cast(&self, from: TypeId, to: TypeId, location: i32) -> Error {
        self.error(
            SqlState::CANNOT_COERCE,
            format!("cannot cast type {from} to {to}"),
            location,
        )
    }

    /// The expression as the new value of a column.
    pub(super) fn assign(
        &mut self,
        expr: Expr,
        ty: TypeId,
        typmod: i32,
        column: &str,
    ) -> Result<Expr> {
        let (from, location) = (expr.ty, expr.location.0);
        match self.try_coerce(expr, ty, typmod, CastContext::Assignment)? {
            Ok(expr) => Ok(expr),
            Err(_) => Err(self
                .error(
                    SqlState::DATATYPE_MISMATCH,
                    format!("column \"{column}\" is of type {ty} but expression is of type {from}"),
                    location,
                )
                .with_hint("You will need to rewrite or cast the expression.")),
        }
    }

    /// The expression as a condition; `what` is the clause it stands in.
    pub(super) fn condition(&mut self, expr: Expr, what: &str) -> Result<Expr> {
        let (from, location) = (expr.ty, expr.location.0);
        match self.try_coerce(expr, TypeId::BOOL, NO_TYPMOD, CastContext::Implicit)? {
            Ok(expr) if expr.has_sets() => Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {what} must not return a set"),
                expr.leftmost(),
            )),
            Ok(expr) => Ok(expr),
            Err(_) => Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {what} must be type boolean, not type {from}"),
                location,
            )),
        }
    }

    /// The expressions in their common type.
    pub(super) fn unify(&mut self, exprs: Vec<Expr>, what: &str) -> Result<(Vec<Expr>, TypeId)> {
        let list: Vec<_> = exprs.iter().map(|expr| expr.ty).collect();
        let common = select_common_type(&list, what).map_err(|error| {
            // The first that does not go with the ones before it.
            let at = (1..=list.len())
                .find(|count| select_common_type(&list[..*count], what).is_err())
                .map_or(0, |count| count - 1);
            self.place(error, exprs[at].location.0)
        })?;
        let first = exprs.first().map_or(TypeId::NONE, |expr| expr.domain);
        let of_one_domain = exprs.iter().all(|expr| expr.domain == first);
        let exprs = exprs
            .into_iter()
            .map(|expr| {
                let (from, location) = (expr.ty, expr.location.0);
                match self.try_coerce(expr, common, NO_TYPMOD, CastContext::Implicit)? {
                    Ok(expr) if of_one_domain => Ok(expr),
                    Ok(expr) => Ok(of_base(expr, false)),
                    Err(_) => Err(self.error(
                        SqlState::CANNOT_COERCE,
                        format!("{what} could not convert type {from} to {common}"),
                        location,
                    )),
                }
            })
            .collect::<Result<Vec<_>>>()?;
        Ok((exprs, common))
    }

    /// What is still a bare literal or parameter becomes text, as the output of a query does.
    pub(super) fn settle(&mut self, mut expr: Expr) -> Result<Expr> {
        if expr.is_untyped() {
            return self.coerce_untyped(expr, TypeId::TEXT, NO_TYPMOD, false);
        }
        if let ExprKind::Record(fields, _) = &mut expr.kind {
            for field in fields {
                let open = Expr::constant(Datum::Null, TypeId::TEXT, -1);
                let taken = std::mem::replace(field, open);
                *field = self.settle(taken)?;
            }
        }
        Ok(expr)
    }
}

/// A value of a domain as one of its base type, which shows as a cast.
fn of_base(expr: Expr, explicit: bool) -> Expr {
    if expr.domain == TypeId::NONE {
        return expr;
    }
    let (ty, location) = (expr.ty, expr.location);
    let kind = ExprKind::Coerce(Box::new(expr), How(Coercion::Binary, explicit));
    Expr::new(kind, ty, location.0)
}

/// The function by which values change.
fn called(how: &Coercion) -> Option<&'static Function> {
    match how {
        Coercion::Function(function) => Some(function),
        Coercion::Array(of_elements) => called(of_elements),
        Coercion::Binary | Coercion::InOut => None,
    }
}

/// Whether a text may mean another instant at another time.
fn is_of_the_day(ty: TypeId, text: &str) -> bool {
    const WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];
    let instant = matches!(
        ty,
        TypeId::DATE | TypeId::TIME | TypeId::TIMETZ | TypeId::TIMESTAMP | TypeId::TIMESTAMPTZ
    );
    instant && {
        let text = text.to_ascii_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    }
}

/// The modifier that values of one type have in common, if they have.
pub(super) fn one_typmod(values: &[Expr]) -> i32 {
    let first = values.first().map_or(NO_TYPMOD, |value| value.typmod);
    match values.iter().all(|value| value.typmod == first) {
        true => first,
        false => NO_TYPMOD,
    }
}

/// The modifier of what an expression is made of, or the other way round: that of a record says which
/// columns it has, and is its own.
pub(super) fn part_typmod(ty: TypeId, typmod: i32) -> i32 {
    match ty {
        TypeId::RECORD => NO_TYPMOD,
        _ => typmod,
    }
}

pub(super) fn fit(expr: Expr, typmod: i32, explicit: bool) -> Expr {
    if typmod == NO_TYPMOD || expr.typmod == typmod {
        return expr;
    }
    let (ty, location) = (expr.ty, expr.location);
    let kind = ExprKind::Fit(Box::new(expr), explicit);
    Expr {
        typmod,
        ..Expr::new(kind, ty, location.0)
    }
}

/// A number as so many bits: how many there are says which of its digits they are, so that cannot be
/// seen to afterwards.
fn number_as_bits(number: Expr, function: Func, typmod: i32) -> Expr {
    let location = number.location.0;
    let types = Rc::from([number.ty, TypeId::INT4]);
    let length = Expr::constant(Datum::Int4(typmod), TypeId::INT4, -1);
    let kind = ExprKind::Call(function, vec![number, length], types);
    let mut bits = Expr::new(kind, TypeId::BIT, location);
    bits.typmod = typmod.max(1);
    bits
}
