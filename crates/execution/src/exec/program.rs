//! Programs at work: the machine with a stack of values that runs what expressions were compiled to
//! ([`planner::plan::program`]).
//!
//! ```text
//! a + b over the row (3, 4)      Column 0: 3      Column 1: 3 4      Call +: 7
//! ```
//! It runs without recursion, counts the work of its operations and gives way by them.

use std::ops::Range;
use std::rc::Rc;

use base::{coro, Error, Result, SqlState};

use super::{domain, long, session_functions, subquery, Exec};
use crate::kept::large_bytes;
use functions::array_parts::DIMENSIONS_MAX;
use functions::extensions::hstore;
use functions::{Body, Call, Coercion, Function};
use planner::plan::program::{Op, Program};
use planner::plan::OwnTest;
use types::{self, Array, Datum, Record, TypeId};

/// What an operation counts for, in the units of [`coro::work`]; and up to which sum they are only
/// added up.
const OP_WORK: usize = 16;
const OPS_COUNTED: usize = 64 << 10;

/// The values of a [`Program`].
pub trait Evaluate {
    /// The value for a row.
    ///
    /// # Errors
    /// What the functions in it raise.
    fn eval(&self, cx: &mut Exec<'_>, row: &[Datum]) -> Result<Datum>;

    /// Whether the value for a row is true. Of an AND the first condition that is not, NULL
    /// included, is the last that is computed.
    ///
    /// # Errors
    /// As [`Evaluate::eval`].
    fn test(&self, cx: &mut Exec<'_>, row: &[Datum]) -> Result<bool>;
}

impl Evaluate for Program {
    fn eval(&self, cx: &mut Exec<'_>, row: &[Datum]) -> Result<Datum> {
        match self.ops() {
            [Op::Column(index)] => return long::read(&row[*index], cx.host.txn()),
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
        eval_part(self, 0..self.ops().len(), (cx, row), false)
    }

    fn test(&self, cx: &mut Exec<'_>, row: &[Datum]) -> Result<bool> {
        match self.ops() {
            [_] => Ok(self.eval(cx, row)?.is_true()),
            ops => Ok(eval_part(self, 0..ops.len(), (cx, row), true)?.is_true()),
        }
    }
}

/// Whether the value of some of a program's steps, which stand by themselves, is true for a row.
///
/// # Errors
/// As [`Evaluate::eval`].
pub fn test_part(
    program: &Program,
    part: Range<usize>,
    cx: &mut Exec<'_>,
    row: &[Datum],
) -> Result<bool> {
    Ok(eval_part(program, part, (cx, row), false)?.is_true())
}

/// The value of a step that is the same for all rows.
///
/// # Errors
/// As [`Evaluate::eval`]; XX000 for any other step.
pub fn value_of_rows(op: &Op, cx: &mut Exec<'_>) -> Result<Datum> {
    match op {
        Op::Const(value) => Ok(value.clone()),
        Op::Param(index) => cx.param(*index),
        Op::Literal(number) => cx.literal(*number),
        Op::Once(program) => once(program, cx),
        Op::Sub(query, false, _) if !query.correlated => {
            subquery::eval(cx, query, None, &[], Vec::new())
        }
        _ => Err(Error::internal("a value that differs from row to row")),
    }
}

/// The value of some of a program's steps. Where `tests` says that only its truth matters, the first
/// condition of an AND that is not true ends it.
fn eval_part(
    program: &Program,
    part: Range<usize>,
    (cx, row): (&mut Exec<'_>, &[Datum]),
    tests: bool,
) -> Result<Datum> {
    let base = cx.stack.len();
    let outcome = run(program, part, (cx, row), tests);
    let value = cx.stack.pop();
    cx.stack.truncate(base);
    if base == 0 && cx.large.bytes() > 0 {
        // Whoever keeps the value counts it from here on.
        cx.large.shrink(usize::MAX);
    }
    outcome?;
    value.ok_or_else(|| Error::internal("an expression without a value"))
}

fn run(
    program: &Program,
    part: Range<usize>,
    (cx, row): (&mut Exec<'_>, &[Datum]),
    tests: bool,
) -> Result<()> {
    let mut at = part.start;
    let ops = &program.ops()[..part.end];
    let base = cx.stack.len();
    while let Some(op) = ops.get(at) {
        at += 1;
        cx.pending += OP_WORK;
        if cx.pending >= OPS_COUNTED {
            coro::work(std::mem::take(&mut cx.pending))?;
        }
        match op {
            Op::Const(value) => match quickly(cx, base, ops.get(at), value) {
                true => at += 1,
                false => cx.stack.push(value.clone()),
            },
            Op::Column(index) if quickly(cx, base, ops.get(at), &row[*index]) => at += 1,
            Op::Column(index) => {
                let value = long::read(&row[*index], cx.host.txn())?;
                cx.stack.push(value);
            }
            Op::Outer(depth, index) => {
                let outer = &cx.outer[cx.outer.len() - depth];
                let value = long::read(&outer[*index], cx.host.txn())?;
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
            Op::Once(program) => {
                let value = once(program, cx)?;
                cx.stack.push(value);
            }
            Op::Call {
                function,
                count,
                types,
                result,
            } => {
                if let ([.., a, b], 2) = (&mut cx.stack[base..], *count) {
                    if let Some(result) = function.quick(a, b) {
                        *a = result;
                        cx.stack.pop();
                        continue;
                    }
                }
                call(cx, function, *count, types, *result)?;
            }
            Op::IfFalse(target) => {
                // What leaves the program at its end is the outermost AND.
                let is_over = match cx.stack.last() {
                    Some(Datum::Bool(holds)) => !holds,
                    _ => tests && *target == ops.len(),
                };
                if is_over {
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
            Op::Routine(routine, count) => {
                let args = cx.pop_many(*count);
                coro::work(std::mem::take(&mut cx.pending))?;
                let value = match routine.routine.strict && args.iter().any(Datum::is_null) {
                    true => Datum::Null,
                    false => cx.host.call(routine, args)?,
                };
                cx.stack.push(value);
            }
            Op::AnyOwn(test) => {
                let (array, value) = (cx.pop(), cx.pop());
                let value = any_own(cx, test, value, &array)?;
                cx.stack.push(value);
            }
            other => step(cx, other)?,
        }
    }
    Ok(())
}

/// Whether a value compares so, by an operator of a user's, with any or all elements of an array.
fn any_own(cx: &mut Exec<'_>, test: &OwnTest, value: Datum, array: &Datum) -> Result<Datum> {
    let Datum::Array(array) = array else {
        return Ok(Datum::Null);
    };
    let strict = test.call.routine.strict;
    if strict && value.is_null() && !array.elements.is_empty() {
        return Ok(Datum::Null);
    }
    let mut unknown = false;
    let mut pair = [value, Datum::Null];
    for element in &array.elements {
        pair[1] = element.clone();
        match test.condition.eval(cx, &pair)? {
            Datum::Bool(holds) if holds != test.all => return Ok(Datum::Bool(holds)),
            Datum::Null => unknown = true,
            _ => {}
        }
    }
    Ok(match unknown {
        true => Datum::Null,
        false => Datum::Bool(test.all),
    })
}

/// Whether the next step is a call whose second argument this value is, and whose result could be put
/// in the place of the first one at once: most steps of most expressions need neither copy nor call.
#[inline]
fn quickly(cx: &mut Exec<'_>, base: usize, next: Option<&Op>, value: &Datum) -> bool {
    let Some(Op::Call {
        function, count: 2, ..
    }) = next
    else {
        return false;
    };
    let Some(first) = cx.stack[base..].last_mut() else {
        return false;
    };
    match function.quick(first, value) {
        Some(result) => {
            *first = result;
            true
        }
        None => false,
    }
}

/// A value that is the same for all rows.
fn once(program: &Rc<Program>, cx: &mut Exec<'_>) -> Result<Datum> {
    let place = Rc::as_ptr(program) as usize;
    if let Some((_, value)) = cx.fixed.get(&place) {
        return Ok(value.clone());
    }
    let value = program.eval(cx, &[])?;
    // Kept, so that no other program comes to stand there.
    cx.fixed.insert(place, (program.clone(), value.clone()));
    Ok(value)
}

fn call(
    cx: &mut Exec<'_>,
    function: &'static Function,
    count: usize,
    types: &[TypeId],
    result: TypeId,
) -> Result<()> {
    let start = cx.stack.len() - count;
    let large: usize = cx.stack[start..].iter().map(large_bytes).sum();
    if large > 0 {
        // What is made of long values is often as long.
        cx.large.probe(large)?;
        cx.large.shrink(large);
    }
    let value = match function.body {
        Body::Session(which) => {
            let args: Vec<Datum> = cx.stack.drain(start..).collect();
            match function.is_null_for(&args) {
                true => Datum::Null,
                false => session_functions::call(cx, function, which, &args)?,
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
    match large_bytes(&value) {
        0 => {}
        bytes => cx.large.grow(bytes)?,
    }
    cx.stack.push(value);
    Ok(())
}

/// What is made of a long text by a type's input, but for arrays, takes at most so many times its bytes.
const INPUT_FACTOR: usize = 4;

/// The steps that are neither calls nor jumps.
fn step(cx: &mut Exec<'_>, op: &Op) -> Result<()> {
    let value = match op {
        Op::InOut(from, to, typmod) => {
            let value = cx.pop();
            // An array counts its elements as they are read; others are there at once.
            match large_bytes(&value) {
                0 => {}
                bytes => cx.large.probe(INPUT_FACTOR * bytes)?,
            }
            let value = in_out(cx, *from, *to, *typmod, value)?;
            cx.large.grow(large_bytes(&value))?;
            value
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
        Op::Collating(what, used) => {
            let value = cx.pop();
            match large_bytes(&value) {
                0 => {}
                // A key is longer than its text.
                bytes => cx.large.probe(INPUT_FACTOR * bytes)?,
            }
            let value = used.collator.apply(*what, &value)?;
            cx.large.grow(large_bytes(&value))?;
            value
        }
        Op::Domain(test) => {
            let value = cx.pop();
            domain::check(cx, test, &value)?;
            value
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
        Op::Array {
            count,
            element,
            nested,
        } => {
            let elements = cx.pop_many(*count);
            match nested {
                false => Datum::Array(std::sync::Arc::new(Array::of(*element, elements))),
                true => array_of_arrays(*element, &elements)?,
            }
        }
        Op::Record(types, names) => Datum::Record(std::sync::Arc::new(Record {
            values: cx.pop_many(types.len()),
            types: types.clone(),
            names: names.clone(),
        })),
        Op::Subscript => {
            let (index, array) = (cx.pop(), cx.pop());
            match (&array, &index) {
                (Datum::Jsonb(_), Datum::Array(_)) => functions::json::subscript(&[array, index])?,
                (Datum::Hstore(bytes), Datum::Text(key)) => hstore::fetch(bytes, key)?,
                _ => subscript(&array, &index),
            }
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
        .collect::<Result<Vec<_>>>()?;
    // A vector without elements has a dimension, which no array of none has.
    let made = match elements.is_empty() {
        true => Array::of(target, elements),
        false => Array {
            element: target,
            dimensions: array.dimensions.clone(),
            elements,
        },
    };
    Ok(Datum::Array(std::sync::Arc::new(made)))
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
        let compared = match function.quick(value, element) {
            Some(compared) => compared,
            None => compare(cx, function, types, &[value.clone(), element.clone()])?,
        };
        match compared {
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

/// An array of arrays of one shape, with one more dimension; of NULLs and empty arrays alone an empty
/// one.
fn array_of_arrays(element: TypeId, values: &[Datum]) -> Result<Datum> {
    let filled = values.iter().filter_map(|value| match value {
        Datum::Array(array) if !array.dimensions.is_empty() => Some(array.clone()),
        _ => None,
    });
    let nested: Vec<_> = filled.collect();
    if nested.is_empty() {
        return Ok(Datum::Array(std::sync::Arc::new(Array::of(
            element,
            Vec::new(),
        ))));
    }
    let shape = &nested[0].dimensions;
    let is_other = |array: &std::sync::Arc<Array>| array.dimensions != *shape;
    if nested.len() != values.len() || nested.iter().any(is_other) {
        return Err(Error::new(
            SqlState::of("2202E"),
            "multidimensional arrays must have array expressions with matching dimensions",
        ));
    }
    let mut dimensions = vec![types::Dimension {
        len: nested.len() as i32,
        lower: 1,
    }];
    dimensions.extend(shape.iter().copied());
    if dimensions.len() > DIMENSIONS_MAX {
        let count = dimensions.len();
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
            ),
        ));
    }
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
        Datum::Geometry(numbers) => {
            return match indexes[..] {
                [index] => types::geometry::element(numbers, index),
                _ => Datum::Null,
            };
        }
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
