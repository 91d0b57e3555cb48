//! Expressions computed through the registry of functions alone.

use base::error::{Error, Result};
use pg_query::protobuf::{a_const::Val, node::Node as N, AExprKind, Node};
use sql::functions::{
    find_coercion, resolve_function, resolve_operator, resolve_type_function, select_common_type,
    Call, CastContext, Coercion, Function,
};
use sql::types::typmod::typmod_in;
use sql::types::{self, Array, Datum, EvalContext, TypeId, NO_TYPMOD};

type Value = (TypeId, Datum);

fn beyond(what: &str) -> Error {
    Error::unsupported(format!("{what} in this test"))
}

/// The value of an expression.
pub fn evaluate(context: &EvalContext, text: &str) -> Result<Value> {
    let parsed = pg_query::parse(&format!("select {text}"), 0)
        .map_err(|error| Error::internal(error.to_string()))?;
    let statement = parsed.protobuf.stmts.first().and_then(|s| s.stmt.as_ref());
    let Some(N::SelectStmt(select)) = statement.and_then(|s| s.node.as_ref()) else {
        return Err(beyond("a statement"));
    };
    let Some(N::ResTarget(target)) = select.target_list.first().and_then(|t| t.node.as_ref())
    else {
        return Err(beyond("an empty list"));
    };
    let (kind, value) = node(context, target.val.as_deref())?;
    match kind {
        TypeId::UNKNOWN => Ok((TypeId::TEXT, value)),
        _ => Ok((kind, value)),
    }
}

/// Calls a function.
pub fn call(
    context: &EvalContext,
    function: &'static Function,
    types: &[TypeId],
    result: TypeId,
    values: &[Datum],
) -> Result<Datum> {
    let call = Call {
        context,
        argument_types: types,
        result,
    };
    function.call(&call, values)
}

fn string(node: &Node) -> &str {
    match &node.node {
        Some(N::String(s)) => &s.sval,
        _ => "",
    }
}

fn node(context: &EvalContext, node: Option<&Node>) -> Result<Value> {
    match node.and_then(|n| n.node.as_ref()) {
        Some(N::AConst(constant)) => Ok(match &constant.val {
            None => (TypeId::UNKNOWN, Datum::Null),
            Some(Val::Ival(i)) => (TypeId::INT4, Datum::Int4(i.ival)),
            Some(Val::Boolval(b)) => (TypeId::BOOL, Datum::Bool(b.boolval)),
            Some(Val::Sval(s)) => (TypeId::UNKNOWN, Datum::text(&s.sval)),
            Some(Val::Fval(f)) => match f.fval.parse::<i64>() {
                Ok(narrow) if i32::try_from(narrow).is_ok() => {
                    (TypeId::INT4, Datum::Int4(narrow as i32))
                }
                Ok(wide) => (TypeId::INT8, Datum::Int8(wide)),
                Err(_) => {
                    let value = types::input(context, TypeId::NUMERIC, NO_TYPMOD, &f.fval)?;
                    (TypeId::NUMERIC, value)
                }
            },
            Some(Val::Bsval(b)) => (
                TypeId::BIT,
                types::bits::datum(types::bits::parse(&b.bsval)?),
            ),
        }),
        Some(N::TypeCast(cast)) => {
            let (kind, typmod) = type_name(cast.type_name.as_ref())?;
            if let (Some(N::AArrayExpr(_)), Some(_)) = (
                cast.arg.as_ref().and_then(|a| a.node.as_ref()),
                kind.array_element(),
            ) {
                let value = self::node(context, cast.arg.as_deref())?;
                return convert(context, value, kind, typmod, CastContext::Explicit);
            }
            let value = self::node(context, cast.arg.as_deref())?;
            convert(context, value, kind, typmod, CastContext::Explicit)
        }
        Some(N::AExpr(expr)) => operator(context, expr),
        Some(N::FuncCall(call)) => function(context, call),
        Some(N::NullTest(test)) => {
            let (_, value) = self::node(context, test.arg.as_deref())?;
            let is_null = test.nulltesttype() == pg_query::protobuf::NullTestType::IsNull;
            Ok((TypeId::BOOL, Datum::Bool(value.is_null() == is_null)))
        }
        Some(N::AArrayExpr(array)) => {
            let values = array
                .elements
                .iter()
                .map(|element| self::node(context, Some(element)))
                .collect::<Result<Vec<_>>>()?;
            let kinds: Vec<TypeId> = values.iter().map(|(kind, _)| *kind).collect();
            let kind = select_common_type(&kinds, "ARRAY")?;
            let elements = values
                .into_iter()
                .map(|value| Ok(convert(context, value, kind, -1, CastContext::Implicit)?.1))
                .collect::<Result<Vec<_>>>()?;
            let array_kind = kind.array_of().ok_or_else(|| beyond("such an array"))?;
            Ok((array_kind, Datum::Array(Array::of(kind, elements).into())))
        }
        other => Err(beyond(&format!("{other:?}"))),
    }
}

fn type_name(name: Option<&pg_query::protobuf::TypeName>) -> Result<(TypeId, i32)> {
    let name = name.ok_or_else(|| beyond("no type"))?;
    let last = name.names.last().map_or("", string);
    let mut kind = TypeId::by_name(last).ok_or_else(|| beyond(last))?;
    let modifiers: Vec<i32> = name
        .typmods
        .iter()
        .map(|node| match &node.node {
            Some(N::AConst(c)) => match &c.val {
                Some(Val::Ival(i)) => Ok(i.ival),
                _ => Err(beyond("such a modifier")),
            },
            _ => negative(node),
        })
        .collect::<Result<Vec<_>>>()?;
    let typmod = match modifiers.is_empty() {
        true => NO_TYPMOD,
        false => typmod_in(kind, &modifiers)?,
    };
    if !name.array_bounds.is_empty() {
        kind = kind.array_of().ok_or_else(|| beyond("such an array"))?;
    }
    Ok((kind, typmod))
}

/// A negative integer constant.
fn negative(node: &Node) -> Result<i32> {
    if let Some(N::AExpr(expr)) = &node.node {
        if let Some(N::AConst(c)) = expr.rexpr.as_ref().and_then(|n| n.node.as_ref()) {
            if let Some(Val::Ival(i)) = &c.val {
                return Ok(-i.ival);
            }
        }
    }
    Err(beyond("such a modifier"))
}

fn convert(
    context: &EvalContext,
    (source, value): Value,
    target: TypeId,
    typmod: i32,
    how: CastContext,
) -> Result<Value> {
    if value.is_null() {
        return Ok((target, Datum::Null));
    }
    let coercion = find_coercion(source, target, how).ok_or_else(|| {
        Error::new(
            base::SqlState::CANNOT_COERCE,
            format!("cannot cast type {source} to {target}"),
        )
    })?;
    let value = match (source, target) {
        // A literal is read with the modifier only by interval, as in PostgreSQL.
        (TypeId::UNKNOWN, TypeId::INTERVAL) => {
            types::input(context, target, typmod, value.as_str())?
        }
        _ => apply(context, coercion, source, target, value)?,
    };
    let value = types::apply_typmod(target, typmod, value, how == CastContext::Explicit)?;
    Ok((target, value))
}

fn apply(
    context: &EvalContext,
    coercion: Coercion,
    source: TypeId,
    target: TypeId,
    value: Datum,
) -> Result<Datum> {
    match coercion {
        Coercion::Binary => Ok(value),
        Coercion::Function(function) => call(context, function, &[source], target, &[value]),
        Coercion::InOut => {
            let text = types::output(context, source, &value)?;
            types::input(context, target, NO_TYPMOD, &text)
        }
        Coercion::Array(inner) => {
            let Datum::Array(array) = value else {
                return Err(beyond("no array"));
            };
            let (from, to) = (
                array.element,
                target.array_element().unwrap_or(TypeId::NONE),
            );
            let mut result = (*array).clone();
            result.element = to;
            for element in &mut result.elements {
                if !element.is_null() {
                    *element = apply(context, *inner, from, to, element.clone())?;
                }
            }
            Ok(Datum::Array(result.into()))
        }
    }
}

fn operator(context: &EvalContext, expr: &pg_query::protobuf::AExpr) -> Result<Value> {
    let supported = matches!(
        expr.kind(),
        AExprKind::AexprOp | AExprKind::AexprLike | AExprKind::AexprIlike | AExprKind::AexprSimilar
    );
    if !supported {
        return Err(beyond("such an operator"));
    }
    let name = expr.name.last().map_or("", string);
    let mut values = Vec::new();
    let mut left_kind = TypeId::NONE;
    if let Some(left) = expr.lexpr.as_deref() {
        let left = node(context, Some(left))?;
        left_kind = left.0;
        values.push(left);
    }
    values.push(node(context, expr.rexpr.as_deref())?);
    // The grammar makes a negative constant of a minus before a number.
    let right_kind = values[values.len() - 1].0;
    if name == "-" && left_kind == TypeId::NONE {
        if let Some(folded) = fold_minus(context, expr)? {
            return Ok(folded);
        }
    }
    let found = resolve_operator(name, left_kind, right_kind)?;
    let values = arguments(context, values, &found.argument_types)?;
    let result = call(
        context,
        found.operator.function,
        &found.argument_types,
        found.result,
        &values,
    )?;
    Ok((found.result, result))
}

/// `-5` as the constant that PostgreSQL makes of it, not the negation of 5.
fn fold_minus(context: &EvalContext, expr: &pg_query::protobuf::AExpr) -> Result<Option<Value>> {
    let Some(N::AConst(constant)) = expr.rexpr.as_ref().and_then(|n| n.node.as_ref()) else {
        return Ok(None);
    };
    Ok(match &constant.val {
        Some(Val::Ival(i)) => Some((TypeId::INT4, Datum::Int4(-i.ival))),
        Some(Val::Fval(f)) => {
            let text = format!("-{}", f.fval);
            if let Ok(narrow) = text.parse::<i32>() {
                return Ok(Some((TypeId::INT4, Datum::Int4(narrow))));
            }
            match text.parse::<i64>() {
                Ok(wide) => Some((TypeId::INT8, Datum::Int8(wide))),
                Err(_) => Some((
                    TypeId::NUMERIC,
                    types::input(context, TypeId::NUMERIC, NO_TYPMOD, &text)?,
                )),
            }
        }
        _ => None,
    })
}

fn arguments(context: &EvalContext, values: Vec<Value>, wanted: &[TypeId]) -> Result<Vec<Datum>> {
    values
        .into_iter()
        .zip(wanted)
        .map(|(value, kind)| {
            Ok(convert(context, value, *kind, NO_TYPMOD, CastContext::Implicit)?.1)
        })
        .collect()
}

fn function(context: &EvalContext, written: &pg_query::protobuf::FuncCall) -> Result<Value> {
    let name: Vec<&str> = written.funcname.iter().map(string).collect();
    let name = name.join(".");
    let name = name.as_str();
    let values = written
        .args
        .iter()
        .map(|argument| node(context, Some(argument)))
        .collect::<Result<Vec<_>>>()?;
    let kinds: Vec<TypeId> = values.iter().map(|(kind, _)| *kind).collect();
    let found = match resolve_function(name, &kinds) {
        Ok(found) => found,
        Err(error) => {
            let [kind] = kinds[..] else {
                return Err(error);
            };
            let Some(target) = resolve_type_function(name, kind) else {
                return Err(error);
            };
            let only = values.into_iter().next().unwrap_or((kind, Datum::Null));
            return convert(context, only, target, NO_TYPMOD, CastContext::Explicit);
        }
    };
    let values = arguments(context, values, &found.argument_types)?;
    let result = call(
        context,
        found.function,
        &found.argument_types,
        found.result,
        &values,
    )?;
    Ok((found.result, result))
}
