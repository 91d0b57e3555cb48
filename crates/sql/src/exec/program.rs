//! Expressions as flat code for a machine with a stack of values.
//!
//! A parse tree may be thousands of levels deep while a coroutine has a megabyte of stack, so
//! expressions are compiled on the thread's own stack and run without recursion. `a + b` becomes
//! `Column 0, Column 1, Call +`; AND, OR, CASE and COALESCE become jumps.

use std::rc::Rc;

use base::{coro, Error, Result};

use super::members::Members;
use super::{long, session_functions, subquery, Exec};
use crate::functions::{Body, Call, Coercion, Function};
use crate::plan::{Expr, ExprKind, SubQuery};
use crate::types::{self, Array, Datum, Record, TypeId};

/// What an operation counts for, in the units of [`coro::work`]; and up to which sum they are only
/// added up.
const OP_WORK: usize = 16;
const OPS_COUNTED: usize = 64 << 10;

/// An expression, compiled.
#[derive(Clone, Debug, Default)]
pub struct Program {
    ops: Vec<Op>,
}

/// One step.
#[derive(Clone, Debug)]
enum Op {
    Const(Datum),
    Column(usize),
    Outer(usize, usize),
    Param(usize),
    /// The value of a literal of the statement's text.
    Literal(usize),
    Call {
        function: &'static Function,
        count: usize,
        types: Rc<[TypeId]>,
        result: TypeId,
    },
    InOut(TypeId, TypeId, i32),
    ArrayCoerce(&'static Coercion, TypeId, TypeId),
    Fit(TypeId, i32, bool),
    /// The top is false: keep it and jump. Else go on.
    IfFalse(usize),
    /// The top is true: keep it and jump.
    IfTrue(usize),
    /// Pops a condition; jumps unless it is true.
    Unless(usize),
    /// The top is not NULL: keep it and jump; else pop it.
    IfNotNull(usize),
    Jump(usize),
    And,
    Or,
    Not,
    IsNull(bool),
    IsTruth(Option<bool>, bool),
    Distinct(&'static Function, Rc<[TypeId]>, bool),
    Extreme(usize, TypeId, bool),
    NullIf(&'static Function, Rc<[TypeId]>),
    AnyArray(&'static Function, Rc<[TypeId]>, bool),
    /// Whether the top is in a list.
    Member(Rc<Members>),
    Array(usize, TypeId),
    Record(Vec<TypeId>),
    Sub(Rc<SubQuery>, bool, Rc<[usize]>),
    Subscript,
    /// Pushes a copy of the value so many places below the top of the case stack.
    CaseInput,
    CasePush,
    CasePop,
}

/// Compiles an expression.
///
/// # Panics
/// On an aggregate or a set, whose places are elsewhere.
pub fn compile(expr: &Expr) -> Program {
    let mut program = Program::default();
    program.add(expr);
    program
}

impl Program {
    /// The column that the whole expression is, if it is one.
    pub fn as_column(&self) -> Option<usize> {
        match self.ops.as_slice() {
            [Op::Column(index)] => Some(*index),
            _ => None,
        }
    }

    /// Whether its value is there before anything runs.
    pub fn is_given(&self) -> bool {
        matches!(
            self.ops.as_slice(),
            [Op::Const(_) | Op::Param(_) | Op::Literal(_)]
        )
    }

    /// The value that is there before anything runs.
    ///
    /// # Errors
    /// XX000 when there is none.
    pub fn given<'a>(&'a self, params: &'a [Datum], literals: &'a [Datum]) -> Result<&'a Datum> {
        let value = match self.ops.as_slice() {
            [Op::Const(value)] => Some(value),
            [Op::Param(index)] => params.get(*index),
            [Op::Literal(number)] => literals.get(*number),
            _ => None,
        };
        value.ok_or_else(|| Error::internal("a value that is not given"))
    }

    fn list(&mut self, exprs: &[Expr]) {
        for expr in exprs {
            self.add(expr);
        }
    }

    fn add(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Const(value, literal) => {
                let literal = literal.as_ref();
                let number = literal.and_then(|literal| literal.instead_of(value, expr.ty));
                self.ops.push(match number {
                    Some(number) => Op::Literal(number),
                    None => Op::Const(value.clone()),
                });
            }
            ExprKind::Column(index) => self.ops.push(Op::Column(*index)),
            ExprKind::Outer(depth, index) => self.ops.push(Op::Outer(*depth, *index)),
            ExprKind::Param(index) => self.ops.push(Op::Param(*index)),
            ExprKind::Call(function, args, types) => {
                self.list(args);
                self.ops.push(Op::Call {
                    function: function.0,
                    count: args.len(),
                    types: types.clone(),
                    result: expr.ty,
                });
            }
            ExprKind::Coerce(arg, how) => self.add_coercion(arg, how.0, expr),
            ExprKind::Fit(arg, explicit) => {
                self.add(arg);
                self.ops.push(Op::Fit(expr.ty, expr.typmod, *explicit));
            }
            ExprKind::And(parts) => self.add_logic(parts, true),
            ExprKind::Or(parts) => self.add_logic(parts, false),
            ExprKind::Not(arg) => self.add_unary(arg, Op::Not),
            ExprKind::IsNull(arg, wanted) => self.add_unary(arg, Op::IsNull(*wanted)),
            ExprKind::IsTruth(arg, truth, negate) => {
                self.add_unary(arg, Op::IsTruth(*truth, *negate));
            }
            ExprKind::Case(whens, otherwise) => self.add_case(whens, otherwise),
            ExprKind::CaseValue(value, case) => {
                self.add_unary(value, Op::CasePush);
                self.add_unary(case, Op::CasePop);
            }
            ExprKind::CaseInput => self.ops.push(Op::CaseInput),
            ExprKind::Coalesce(args) => self.add_coalesce(args),
            ExprKind::Subscript(array, index) => {
                self.add(array);
                self.add_unary(index, Op::Subscript);
            }
            ExprKind::Extreme(args, greatest) => {
                self.list(args);
                self.ops.push(Op::Extreme(args.len(), expr.ty, *greatest));
            }
            ExprKind::NullIf(first, function, args, types) => {
                self.add(first);
                self.list(args);
                self.ops.push(Op::NullIf(function.0, types.clone()));
            }
            ExprKind::Distinct(left, right, function, types, wanted) => {
                self.add(left);
                self.add_unary(right, Op::Distinct(function.0, types.clone(), *wanted));
            }
            ExprKind::AnyArray(left, right, function, types, all) => {
                self.add(left);
                if let Some(members) = Members::of(right, *function, types, *all) {
                    self.ops.push(Op::Member(Rc::new(members)));
                    return;
                }
                self.add_unary(right, Op::AnyArray(function.0, types.clone(), *all));
            }
            ExprKind::Array(elements, element) => {
                self.list(elements);
                self.ops.push(Op::Array(elements.len(), *element));
            }
            ExprKind::Record(fields) => {
                self.list(fields);
                let types = fields.iter().map(|field| field.ty).collect();
                self.ops.push(Op::Record(types));
            }
            ExprKind::Sub(query, test, seen) => {
                seen.iter().for_each(|column| self.add(&column.1));
                if let Some(test) = test {
                    self.add(test);
                }
                let places = seen.iter().map(|column| column.0).collect();
                self.ops
                    .push(Op::Sub(query.clone(), test.is_some(), places));
            }
            ExprKind::Aggregate(_)
            | ExprKind::Grouping(_)
            | ExprKind::Window(_)
            | ExprKind::SetCall(..) => {
                unreachable!("aggregates and sets are taken out before expressions are compiled")
            }
        }
    }

    fn add_unary(&mut self, arg: &Expr, op: Op) {
        self.add(arg);
        self.ops.push(op);
    }

    fn add_coercion(&mut self, arg: &Expr, how: Coercion, expr: &Expr) {
        self.add(arg);
        match how {
            Coercion::Binary => {}
            Coercion::Function(function) => self.ops.push(Op::Call {
                function,
                count: 1,
                types: Rc::from([arg.ty]),
                result: expr.ty,
            }),
            Coercion::InOut => self.ops.push(Op::InOut(arg.ty, expr.ty, expr.typmod)),
            Coercion::Array(inner) => self.ops.push(Op::ArrayCoerce(inner, arg.ty, expr.ty)),
        }
    }

    /// AND (`all`) or OR: after each part, a value that decides everything leaves at once.
    fn add_logic(&mut self, parts: &[Expr], all: bool) {
        let mut exits = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            self.add(part);
            if number > 0 {
                self.ops.push(if all { Op::And } else { Op::Or });
            }
            if number + 1 < parts.len() {
                exits.push(self.ops.len());
                self.ops.push(Op::Jump(0));
            }
        }
        let end = self.ops.len();
        for exit in exits {
            self.ops[exit] = if all {
                Op::IfFalse(end)
            } else {
                Op::IfTrue(end)
            };
        }
    }

    fn add_case(&mut self, whens: &[(Expr, Expr)], otherwise: &Expr) {
        let mut exits = Vec::new();
        for (condition, result) in whens {
            self.add(condition);
            let test = self.ops.len();
            self.ops.push(Op::Jump(0));
            self.add(result);
            exits.push(self.ops.len());
            self.ops.push(Op::Jump(0));
            self.ops[test] = Op::Unless(self.ops.len());
        }
        self.add(otherwise);
        let end = self.ops.len();
        for exit in exits {
            self.ops[exit] = Op::Jump(end);
        }
    }

    fn add_coalesce(&mut self, args: &[Expr]) {
        let mut exits = Vec::new();
        for (number, arg) in args.iter().enumerate() {
            self.add(arg);
            if number + 1 < args.len() {
                exits.push(self.ops.len());
                self.ops.push(Op::Jump(0));
            }
        }
        let end = self.ops.len();
        for exit in exits {
            self.ops[exit] = Op::IfNotNull(end);
        }
    }

    /// The value for a row.
    ///
    /// # Errors
    /// What the functions in it raise.
    pub fn eval(&self, cx: &mut Exec<'_>, row: &[Datum]) -> Result<Datum> {
        match self.ops.as_slice() {
            [Op::Column(index)] => return long::read(&row[*index], cx.txn),
            [Op::Const(value)] => return Ok(value.clone()),
            [Op::Param(index)] => return cx.param(*index),
            [Op::Literal(number)] => return cx.literal(*number),
            [Op::Column(index), Op::Call {
                function,
                count: 1,
                types,
                result,
            }] if function.is_of_values() && !row[*index].is_long() => {
                let call = Call {
                    context: cx.context,
                    argument_types: types,
                    result: *result,
                };
                return function.call(&call, &row[*index..=*index]);
            }
            _ => {}
        }
        let base = cx.stack.len();
        let outcome = self.run(cx, row);
        let value = cx.stack.pop();
        cx.stack.truncate(base);
        outcome?;
        value.ok_or_else(|| Error::internal("an expression without a value"))
    }

    /// Whether the value for a row is true.
    ///
    /// # Errors
    /// As [`Program::eval`].
    pub fn test(&self, cx: &mut Exec<'_>, row: &[Datum]) -> Result<bool> {
        Ok(self.eval(cx, row)?.is_true())
    }

    fn run(&self, cx: &mut Exec<'_>, row: &[Datum]) -> Result<()> {
        let mut at = 0;
        while let Some(op) = self.ops.get(at) {
            at += 1;
            cx.pending += OP_WORK;
            if cx.pending >= OPS_COUNTED {
                coro::work(std::mem::take(&mut cx.pending))?;
            }
            match op {
                Op::Const(value) => cx.stack.push(value.clone()),
                Op::Column(index) => {
                    let value = long::read(&row[*index], cx.txn)?;
                    cx.stack.push(value);
                }
                Op::Outer(depth, index) => {
                    let outer = &cx.outer[cx.outer.len() - depth];
                    let value = long::read(&outer[*index], cx.txn)?;
                    cx.stack.push(value);
                }
                Op::Param(index) => {
                    let value = cx.param(*index)?;
                    cx.stack.push(value);
                }
                Op::Literal(number) => {
                    let value = cx.literal(*number)?;
                    cx.stack.push(value);
                }
                Op::Call {
                    function,
                    count,
                    types,
                    result,
                } => call(cx, function, *count, types, *result)?,
                Op::IfFalse(target) => {
                    if matches!(cx.stack.last(), Some(Datum::Bool(false))) {
                        at = *target;
                    }
                }
                Op::IfTrue(target) => {
                    if matches!(cx.stack.last(), Some(Datum::Bool(true))) {
                        at = *target;
                    }
                }
                Op::Unless(target) => {
                    if !cx.pop().is_true() {
                        at = *target;
                    }
                }
                Op::IfNotNull(target) => {
                    if cx.stack.last().is_some_and(|value| !value.is_null()) {
                        at = *target;
                    } else {
                        cx.stack.pop();
                    }
                }
                Op::Jump(target) => at = *target,
                Op::CasePush => {
                    let value = cx.pop();
                    cx.cases.push(value);
                }
                Op::CasePop => {
                    cx.cases.pop();
                }
                Op::CaseInput => {
                    let value = cx.cases.last().cloned().unwrap_or(Datum::Null);
                    cx.stack.push(value);
                }
                Op::Sub(query, has_test, places) => {
                    let test = has_test.then(|| cx.pop());
                    let seen = cx.pop_many(places.len());
                    let value = subquery::eval(cx, query, test, places, seen)?;
                    cx.stack.push(value);
                }
                other => step(cx, other)?,
            }
        }
        Ok(())
    }
}

fn call(
    cx: &mut Exec<'_>,
    function: &'static Function,
    count: usize,
    types: &[TypeId],
    result: TypeId,
) -> Result<()> {
    let start = cx.stack.len() - count;
    let value = match function.body {
        Body::Session => {
            let args: Vec<Datum> = cx.stack.drain(start..).collect();
            match function.strict && args.iter().any(Datum::is_null) {
                true => Datum::Null,
                false => session_functions::call(cx, function, &args)?,
            }
        }
        _ => {
            let call = Call {
                context: cx.context,
                argument_types: types,
                result,
            };
            function.call(&call, &cx.stack[start..])?
        }
    };
    cx.stack.truncate(start);
    cx.stack.push(value);
    Ok(())
}

/// The steps that are neither calls nor jumps.
fn step(cx: &mut Exec<'_>, op: &Op) -> Result<()> {
    let value = match op {
        Op::InOut(from, to, typmod) => {
            let value = cx.pop();
            in_out(cx, *from, *to, *typmod, value)?
        }
        Op::ArrayCoerce(inner, from, to) => {
            let value = cx.pop();
            coerce_array(cx, inner, *from, *to, value)?
        }
        Op::Fit(ty, typmod, explicit) => {
            let value = cx.pop();
            match value {
                Datum::Null => Datum::Null,
                value => types::apply_typmod(*ty, *typmod, value, *explicit)?,
            }
        }
        Op::And => {
            let (right, left) = (cx.pop(), cx.pop());
            match (&left, &right) {
                (Datum::Bool(false), _) | (_, Datum::Bool(false)) => Datum::Bool(false),
                (Datum::Null, _) | (_, Datum::Null) => Datum::Null,
                _ => Datum::Bool(true),
            }
        }
        Op::Or => {
            let (right, left) = (cx.pop(), cx.pop());
            match (&left, &right) {
                (Datum::Bool(true), _) | (_, Datum::Bool(true)) => Datum::Bool(true),
                (Datum::Null, _) | (_, Datum::Null) => Datum::Null,
                _ => Datum::Bool(false),
            }
        }
        Op::Not => match cx.pop() {
            Datum::Bool(value) => Datum::Bool(!value),
            _ => Datum::Null,
        },
        Op::IsNull(wanted) => Datum::Bool(is_null(&cx.pop(), *wanted)),
        Op::IsTruth(truth, negate) => {
            let value = match cx.pop() {
                Datum::Bool(value) => Some(value),
                _ => None,
            };
            Datum::Bool((value == *truth) != *negate)
        }
        Op::Distinct(function, types, wanted) => {
            let pair = cx.pop_many(2);
            let distinct = match (pair[0].is_null(), pair[1].is_null()) {
                (true, true) => false,
                (true, false) | (false, true) => true,
                (false, false) => !compare(cx, function, types, &pair)?.is_true(),
            };
            Datum::Bool(distinct == *wanted)
        }
        Op::Extreme(count, ty, greatest) => {
            let args = cx.pop_many(*count);
            let present = args.into_iter().filter(|arg| !arg.is_null());
            let best = match greatest {
                true => present.reduce(|a, b| {
                    if types::compare(*ty, &b, &a).is_gt() {
                        b
                    } else {
                        a
                    }
                }),
                false => present.reduce(|a, b| {
                    if types::compare(*ty, &b, &a).is_lt() {
                        b
                    } else {
                        a
                    }
                }),
            };
            best.unwrap_or(Datum::Null)
        }
        Op::NullIf(function, types) => {
            let pair = cx.pop_many(2);
            let first = cx.pop();
            match compare(cx, function, types, &pair)?.is_true() {
                true => Datum::Null,
                false => first,
            }
        }
        Op::AnyArray(function, types, all) => {
            let (array, value) = (cx.pop(), cx.pop());
            any_array(cx, function, types, *all, &value, &array)?
        }
        Op::Member(members) => members.test(&cx.pop()),
        Op::Array(count, element) => {
            let elements = cx.pop_many(*count);
            make_array(*element, elements)?
        }
        Op::Record(types) => Datum::Record(std::sync::Arc::new(Record {
            values: cx.pop_many(types.len()),
            types: types.clone(),
        })),
        Op::Subscript => {
            let (index, array) = (cx.pop(), cx.pop());
            subscript(&array, &index)
        }
        _ => return Err(Error::internal("an operation out of place")),
    };
    cx.stack.push(value);
    Ok(())
}

fn is_null(value: &Datum, wanted: bool) -> bool {
    // A row is null when all its fields are, and not null when none is.
    match value {
        Datum::Record(record) => record.values.iter().all(|field| field.is_null() == wanted),
        value => value.is_null() == wanted,
    }
}

fn compare(
    cx: &Exec<'_>,
    function: &'static Function,
    types: &[TypeId],
    pair: &[Datum],
) -> Result<Datum> {
    let call = Call {
        context: cx.context,
        argument_types: types,
        result: TypeId::BOOL,
    };
    function.call(&call, pair)
}

/// A value through its text form.
fn in_out(cx: &Exec<'_>, from: TypeId, to: TypeId, typmod: i32, value: Datum) -> Result<Datum> {
    match value {
        Datum::Null => Ok(Datum::Null),
        Datum::Text(text) if from == TypeId::UNKNOWN => types::input(cx.context, to, typmod, &text),
        value => {
            let text = types::output(cx.context, from, &value)?;
            types::input(cx.context, to, typmod, &text)
        }
    }
}

fn coerce_array(
    cx: &Exec<'_>,
    inner: &Coercion,
    from: TypeId,
    to: TypeId,
    value: Datum,
) -> Result<Datum> {
    let Datum::Array(array) = value else {
        return Ok(Datum::Null);
    };
    let source = from.array_element().unwrap_or(array.element);
    let target = to.array_element().unwrap_or(array.element);
    let elements = array
        .elements
        .iter()
        .map(|element| match inner {
            Coercion::Binary => Ok(element.clone()),
            Coercion::Function(function) => {
                let call = Call {
                    context: cx.context,
                    argument_types: &[source],
                    result: target,
                };
                function.call(&call, std::slice::from_ref(element))
            }
            _ => in_out(cx, source, target, types::NO_TYPMOD, element.clone()),
        })
        .collect::<Result<_>>()?;
    Ok(Datum::Array(std::sync::Arc::new(Array {
        element: target,
        dimensions: array.dimensions.clone(),
        elements,
    })))
}

fn any_array(
    cx: &Exec<'_>,
    function: &'static Function,
    types: &[TypeId],
    all: bool,
    value: &Datum,
    array: &Datum,
) -> Result<Datum> {
    let Datum::Array(array) = array else {
        return Ok(Datum::Null);
    };
    let mut unknown = false;
    for element in &array.elements {
        coro::work(OP_WORK)?;
        let pair = [value.clone(), element.clone()];
        match compare(cx, function, types, &pair)? {
            Datum::Bool(holds) if holds != all => return Ok(Datum::Bool(holds)),
            Datum::Null => unknown = true,
            _ => {}
        }
    }
    Ok(if unknown {
        Datum::Null
    } else {
        Datum::Bool(all)
    })
}

/// An array of values, or of arrays of one shape.
fn make_array(element: TypeId, elements: Vec<Datum>) -> Result<Datum> {
    let nested: Vec<_> = elements
        .iter()
        .filter_map(|value| match value {
            Datum::Array(array) => Some(array.clone()),
            _ => None,
        })
        .collect();
    if nested.is_empty() || nested.len() != elements.len() {
        return Ok(Datum::Array(std::sync::Arc::new(Array::of(
            element, elements,
        ))));
    }
    let shape = &nested[0].dimensions;
    if nested.iter().any(|array| array.dimensions != *shape) {
        return Err(Error::new(
            base::SqlState::of("2202E"),
            "multidimensional arrays must have array expressions with matching dimensions",
        ));
    }
    let mut dimensions = vec![types::Dimension {
        len: nested.len() as i32,
        lower: 1,
    }];
    dimensions.extend(shape.iter().copied());
    Ok(Datum::Array(std::sync::Arc::new(Array {
        element: nested[0].element,
        dimensions,
        elements: nested
            .iter()
            .flat_map(|array| array.elements.clone())
            .collect(),
    })))
}

/// An element of an array, or a byte of a name; several indexes come as an array.
fn subscript(array: &Datum, index: &Datum) -> Datum {
    let indexes: Option<Vec<i64>> = match index {
        Datum::Array(indexes) => indexes.elements.iter().map(Datum::as_i64).collect(),
        index => index.as_i64().map(|index| vec![index]),
    };
    let Some(indexes) = indexes else {
        return Datum::Null;
    };
    let array = match array {
        Datum::Array(array) => array,
        Datum::Text(name) => {
            let place = usize::try_from(indexes[0]).unwrap_or(usize::MAX);
            let byte = name.as_bytes().get(place);
            return byte.map_or(Datum::Null, |byte| Datum::Char(*byte));
        }
        _ => return Datum::Null,
    };
    if array.dimensions.len() != indexes.len() {
        return Datum::Null;
    }
    let mut place = 0;
    for (dimension, index) in array.dimensions.iter().zip(indexes) {
        let offset = index - i64::from(dimension.lower);
        if !(0..i64::from(dimension.len)).contains(&offset) {
            return Datum::Null;
        }
        place = place * i64::from(dimension.len) + offset;
    }
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    array.elements.get(place).cloned().unwrap_or(Datum::Null)
}
