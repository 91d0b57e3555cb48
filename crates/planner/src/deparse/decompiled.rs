//! Programs back as expressions, for whoever shows what a plan does.
//!
//! ```text
//! Column 0, Const 7, Call =, IfFalse 8, Column 1, IsNull, And      a = 7 AND b IS NULL
//! ```
//! The steps are followed with expressions in the place of values. A jump that leaves with the value on
//! the stack is a part of AND, OR, COALESCE or CASE, whose end is where it leads.
//!
//! # What it leaves out
//! What a program no longer knows: conversions that change nothing, and which casts were written. A constant
//! has the type of the argument that it is.

use std::rc::Rc;

use functions::collator::Collating;
use functions::{CastMethod, Coercion, Function};
use types::{Datum, TypeId, NO_TYPMOD};

use crate::plan::program::{Op, Program};
use crate::plan::{Expr, ExprKind, Func, How, SubQuery};

/// What a program does not say of itself.
pub trait Values {
    /// The type and the modifier of a column of its row, if they are known.
    fn column(&self, place: usize) -> Option<(TypeId, i32)>;

    /// The same of a column of the row of an enclosing query, so many levels up.
    fn outer(&self, level: usize, place: usize) -> Option<(TypeId, i32)>;

    /// The value of a function of constants, if it has one whenever it is computed.
    fn folded(
        &self,
        function: &Function,
        args: &[Datum],
        types: &[TypeId],
        result: TypeId,
    ) -> Option<Datum>;

    /// The value of a literal that its plan leaves open.
    fn literal(&self, number: usize) -> Option<Datum>;

    /// The place that stands for a subquery where columns are named, which sees these values of the row,
    /// each at its place.
    fn subquery(&self, query: &Rc<SubQuery>, seen: Vec<(usize, Expr)>) -> usize;
}

/// What is not complete before a step is reached.
enum Open {
    Coalesce(usize, Vec<Expr>),
    Case(usize, Vec<(Expr, Expr)>, Option<Expr>),
}

impl Open {
    fn end(&self) -> usize {
        match self {
            Open::Coalesce(end, _) | Open::Case(end, ..) => *end,
        }
    }
}

/// The expression that a program computes; none where its steps are not those of one.
pub fn decompiled(program: &Program, values: &dyn Values) -> Option<Expr> {
    let ops = program.ops();
    let mut stack: Vec<Expr> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for at in 0..=ops.len() {
        while open.last().is_some_and(|open| open.end() == at) {
            let mut last = stack.pop()?;
            if let Some(Open::Case(_, whens, _)) = open.last_mut() {
                let results = whens.iter_mut().map(|when| &mut when.1);
                agree(results.chain([&mut last]));
            }
            let ty = last.ty;
            let kind = match open.pop()? {
                Open::Coalesce(_, mut args) => {
                    args.push(last);
                    ExprKind::Coalesce(args)
                }
                Open::Case(_, whens, _) => ExprKind::Case(whens, Box::new(last)),
            };
            stack.push(Expr::new(kind, ty, -1));
        }
        match ops.get(at) {
            None => break,
            Some(Op::IfFalse(_) | Op::IfTrue(_)) => {}
            Some(Op::IfNotNull(end)) => {
                let arg = stack.pop()?;
                match open.last_mut() {
                    Some(Open::Coalesce(known, args)) if known == end => args.push(arg),
                    _ => open.push(Open::Coalesce(*end, vec![arg])),
                }
            }
            Some(Op::Unless(next)) => {
                let Some(Op::Jump(end)) = ops.get(next.checked_sub(1)?) else {
                    return None;
                };
                let condition = stack.pop()?;
                match open.last_mut() {
                    Some(Open::Case(known, _, tested)) if known == end && tested.is_none() => {
                        *tested = Some(condition);
                    }
                    _ => open.push(Open::Case(*end, Vec::new(), Some(condition))),
                }
            }
            Some(Op::Jump(_)) => {
                let result = stack.pop()?;
                let Some(Open::Case(_, whens, tested)) = open.last_mut() else {
                    return None;
                };
                whens.push((tested.take()?, result));
            }
            Some(op) => step(op, &mut stack, values)?,
        }
    }
    let whole = stack.pop()?;
    stack.is_empty().then_some(whole)
}

/// A NULL among results is of the type of the others.
fn agree<'e>(results: impl Iterator<Item = &'e mut Expr>) {
    let (open, typed): (Vec<_>, Vec<_>) = results.partition(|result| {
        let is_null = matches!(&result.kind, ExprKind::Const(value, _) if value.is_null());
        is_null && result.ty == TypeId::UNKNOWN
    });
    if let Some(known) = typed.first() {
        open.into_iter().for_each(|null| null.ty = known.ty);
    }
}

/// What a step leaves on the stack.
fn step(op: &Op, stack: &mut Vec<Expr>, values: &dyn Values) -> Option<()> {
    let truth = |kind| Expr::new(kind, TypeId::BOOL, -1);
    let expr = match op {
        Op::Const(value) => constant(value.clone()),
        Op::Literal(number) => constant(values.literal(*number)?),
        Op::Column(place) => named(ExprKind::Column(*place), values.column(*place)),
        Op::Outer(level, place) => {
            let known = values.outer(*level, *place);
            named(ExprKind::Outer(*level, *place), known)
        }
        Op::Param(place) => Expr::new(ExprKind::Param(*place), TypeId::UNKNOWN, -1),
        Op::Once(program) => decompiled(program, values)?,
        Op::Call {
            function,
            count,
            types,
            result,
        } => {
            let args = taken(stack, *count)?;
            called(function, args, (types, *result), values)
        }
        Op::InOut(from, to, typmod) => {
            let arg = typed(stack.pop()?, *from);
            let mut cast = Expr::new(coerced(arg, Coercion::InOut), *to, -1);
            cast.typmod = *typmod;
            cast
        }
        Op::ArrayCoerce(inner, from, to) => {
            let arg = typed(stack.pop()?, *from);
            Expr::new(coerced(arg, Coercion::Array(inner)), *to, -1)
        }
        Op::Fit(ty, typmod, _) => {
            let arg = typed(stack.pop()?, *ty);
            let mut fit = Expr::new(ExprKind::Fit(Box::new(arg), true), *ty, -1);
            fit.typmod = *typmod;
            fit
        }
        Op::Domain(_) => stack.pop()?,
        Op::Collating(what, used) => {
            let arg = Box::new(stack.pop()?);
            match what {
                Collating::Key => {
                    Expr::new(ExprKind::Collate(arg, used.clone()), TypeId::BYTEA, -1)
                }
                _ => Expr::new(
                    ExprKind::Collating(arg, *what, used.clone()),
                    TypeId::TEXT,
                    -1,
                ),
            }
        }
        Op::And => truth(joined(stack, true)?),
        Op::Or => truth(joined(stack, false)?),
        Op::Not => truth(ExprKind::Not(Box::new(stack.pop()?))),
        Op::IsNull(is) => truth(ExprKind::IsNull(Box::new(stack.pop()?), *is)),
        Op::IsTruth(value, negated) => {
            // `surely` says what a condition must be for others to be computed at all.
            let of = stack.pop()?;
            match (value, negated) {
                (Some(true), false) => of,
                _ => truth(ExprKind::IsTruth(Box::new(of), *value, *negated)),
            }
        }
        Op::Distinct(function, types, wanted) => {
            let args = taken(stack, 2)?;
            let [left, right]: [Expr; 2] = with_types(args, types).try_into().ok()?;
            let (left, right) = (Box::new(left), Box::new(right));
            truth(ExprKind::Distinct(
                left,
                right,
                Func(function),
                types.clone(),
                *wanted,
            ))
        }
        Op::Extreme(count, ty, greatest) => {
            let args = taken(stack, *count)?;
            Expr::new(ExprKind::Extreme(args, *greatest), *ty, -1)
        }
        Op::NullIf(function, types) => {
            let args = taken(stack, 2)?;
            let first = Box::new(stack.pop()?);
            let ty = first.ty;
            let args = with_types(args, types);
            Expr::new(
                ExprKind::NullIf(first, Func(function), args, types.clone()),
                ty,
                -1,
            )
        }
        Op::AnyArray(function, types, all) => {
            let args = taken(stack, 2)?;
            let [left, right]: [Expr; 2] = args.try_into().ok()?;
            let of_left = types.first().copied().unwrap_or(TypeId::UNKNOWN);
            let left = typed(left, of_left);
            let (left, right) = (Box::new(left), Box::new(folded(right)));
            truth(ExprKind::AnyArray(
                left,
                right,
                Func(function),
                types.clone(),
                *all,
            ))
        }
        Op::AnyOwn(test) => {
            let args = taken(stack, 2)?;
            let [left, right]: [Expr; 2] = args.try_into().ok()?;
            let of_left = test.call.types.first().copied();
            let left = typed(left, of_left.unwrap_or(TypeId::UNKNOWN));
            let (left, right) = (Box::new(left), Box::new(folded(right)));
            truth(ExprKind::AnyOwn(left, right, test.clone()))
        }
        Op::Member(members) => {
            let (function, all) = members.comparison()?;
            let (ty, list) = members.list();
            let array = ty.array_of()?;
            let left = Box::new(typed(stack.pop()?, ty));
            let right = Box::new(Expr::constant(list, array, -1));
            let types = [ty, ty].into();
            truth(ExprKind::AnyArray(left, right, Func(function), types, all))
        }
        Op::Array {
            count,
            element,
            nested,
        } => {
            let args = taken(stack, *count)?;
            let ty = element.array_of().unwrap_or(TypeId::UNKNOWN);
            let of = if *nested { ty } else { *element };
            let args = args.into_iter().map(|arg| typed(arg, of)).collect();
            Expr::new(ExprKind::Array(args, *element), ty, -1)
        }
        Op::Record(types, names) => {
            let args = taken(stack, types.len())?;
            let args = with_types(args, types);
            Expr::new(ExprKind::Record(args, names.clone()), TypeId::RECORD, -1)
        }
        Op::Sub(query, tested, places) => {
            let values_seen = taken(stack, places.len() + usize::from(*tested))?;
            let seen = places.iter().copied().zip(values_seen).collect();
            let place = values.subquery(query, seen);
            Expr::new(ExprKind::Column(place), TypeId::UNKNOWN, -1)
        }
        Op::Subscript => {
            let [array, index]: [Expr; 2] = taken(stack, 2)?.try_into().ok()?;
            let kind = ExprKind::Subscript(Box::new(array), Box::new(index));
            Expr::new(kind, TypeId::UNKNOWN, -1)
        }
        Op::CaseInput => Expr::new(ExprKind::CaseInput, TypeId::UNKNOWN, -1),
        // The value stays below what it is compared with.
        Op::CasePush => return Some(()),
        Op::CasePop => {
            let case = stack.pop()?;
            let value = stack.pop()?;
            let ty = case.ty;
            let kind = ExprKind::CaseValue(Box::new(value), Box::new(case));
            Expr::new(kind, ty, -1)
        }
        Op::Routine(call, count) => {
            let args = with_types(taken(stack, *count)?, &call.types);
            Expr::new(ExprKind::Routine(call.clone(), args), call.result, -1)
        }
        Op::IfFalse(_) | Op::IfTrue(_) | Op::Unless(_) | Op::IfNotNull(_) | Op::Jump(_) => {
            return None
        }
    };
    stack.push(expr);
    Some(())
}

fn taken(stack: &mut Vec<Expr>, count: usize) -> Option<Vec<Expr>> {
    let start = stack.len().checked_sub(count)?;
    Some(stack.split_off(start))
}

fn coerced(arg: Expr, how: Coercion) -> ExprKind {
    ExprKind::Coerce(Box::new(arg), How(how, true))
}

/// AND or OR of the two upper conditions; of three and more it is one.
fn joined(stack: &mut Vec<Expr>, all: bool) -> Option<ExprKind> {
    let (last, first) = (stack.pop()?, stack.pop()?);
    let mut parts = Vec::new();
    for part in [first, last] {
        match part.kind {
            ExprKind::And(inner) if all => parts.extend(inner),
            ExprKind::Or(inner) if !all => parts.extend(inner),
            _ => parts.push(part),
        }
    }
    Some(match all {
        true => ExprKind::And(parts),
        false => ExprKind::Or(parts),
    })
}

/// A call, or the cast that a function of one type's values is.
fn called(
    function: &'static Function,
    args: Vec<Expr>,
    (types, result): (&[TypeId], TypeId),
    values: &dyn Values,
) -> Expr {
    let constants: Option<Vec<_>> = args.iter().map(value_of).collect();
    let folded = constants.and_then(|args| values.folded(function, &args, types, result));
    if let Some(value) = folded {
        return Expr::constant(value, result, -1);
    }
    let mut args = with_types(args, types);
    let is_cast = args.len() == 1 && is_cast(function, args[0].ty, result);
    if let (true, Some(arg)) = (is_cast, args.pop_if(|_| is_cast)) {
        return Expr::new(coerced(arg, Coercion::Function(function)), result, -1);
    }
    Expr::new(
        ExprKind::Call(Func(function), args, types.into()),
        result,
        -1,
    )
}

fn is_cast(function: &Function, source: TypeId, target: TypeId) -> bool {
    let found = functions::cast_between(source, target).map(|cast| &cast.method);
    matches!(found, Some(CastMethod::Function(known)) if known.oid == function.oid)
}

fn with_types(args: Vec<Expr>, types: &[TypeId]) -> Vec<Expr> {
    let args = args.into_iter().enumerate();
    let typed = |(place, arg)| match types.get(place) {
        Some(ty) => typed(arg, *ty),
        None => arg,
    };
    args.map(typed).collect()
}

/// A value as one of a type: what had none has it now, and what had another is seen as this.
fn typed(mut expr: Expr, ty: TypeId) -> Expr {
    let is_value = matches!(expr.kind, ExprKind::Const(..));
    if expr.ty == ty || ty == TypeId::UNKNOWN {
        return expr;
    }
    if expr.ty == TypeId::UNKNOWN || is_value {
        expr.ty = ty;
        return expr;
    }
    Expr::new(coerced(expr, Coercion::Binary), ty, -1)
}

fn value_of(expr: &Expr) -> Option<Datum> {
    match &expr.kind {
        ExprKind::Const(value, _) => Some(value.clone()),
        _ => None,
    }
}

/// A column with its type, if that is known.
fn named(kind: ExprKind, known: Option<(TypeId, i32)>) -> Expr {
    let (ty, typmod) = known.unwrap_or((TypeId::UNKNOWN, NO_TYPMOD));
    let mut column = Expr::new(kind, ty, -1);
    column.typmod = typmod;
    column
}

/// A value of which only its own form says the type.
fn constant(value: Datum) -> Expr {
    let ty = match &value {
        Datum::Bool(_) => TypeId::BOOL,
        Datum::Int2(_) => TypeId::INT2,
        Datum::Int4(_) => TypeId::INT4,
        Datum::Int8(_) => TypeId::INT8,
        Datum::Float4(_) => TypeId::FLOAT4,
        Datum::Float8(_) => TypeId::FLOAT8,
        Datum::Numeric(_) => TypeId::NUMERIC,
        Datum::Text(_) => TypeId::TEXT,
        Datum::Date(_) => TypeId::DATE,
        Datum::Time(_) => TypeId::TIME,
        Datum::Timestamp(_) => TypeId::TIMESTAMP,
        Datum::TimestampTz(_) => TypeId::TIMESTAMPTZ,
        Datum::Interval(_) => TypeId::INTERVAL,
        Datum::Uuid(_) => TypeId::UUID,
        _ => TypeId::UNKNOWN,
    };
    Expr::constant(value, ty, -1)
}

/// An array of constants as one constant, whatever else as it is.
pub fn folded(array: Expr) -> Expr {
    let ExprKind::Array(elements, element) = &array.kind else {
        return array;
    };
    match elements.iter().map(value_of).collect::<Option<Vec<_>>>() {
        Some(values) if !values.is_empty() => {
            let values = types::Array::of(*element, values);
            Expr::constant(Datum::Array(std::sync::Arc::new(values)), array.ty, -1)
        }
        _ => array,
    }
}
