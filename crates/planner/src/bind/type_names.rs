//! Type names.

use base::{Error, Result, SqlState};
use pg_query::protobuf::TypeName;

use super::{inner, strings, BindContext};
use syntax::parser::{char_position, NodeEnum};
use types::{typmod, TypeId, NO_TYPMOD};

/// The type and the modifier that a type name means.
///
/// # Errors
/// 42704 when there is no such type; 22023 for a bad modifier.
pub fn resolve(cx: &BindContext<'_>, name: &TypeName) -> Result<(TypeId, i32)> {
    let place = |error: Error| match char_position(cx.text, name.location) {
        Some(position) if error.fields().position.is_none() => error.at(position),
        _ => error,
    };
    let names = strings(&name.names);
    let last = names.last().copied().unwrap_or_default();
    if name.setof || name.pct_type {
        return Err(place(Error::unsupported("SETOF and %TYPE")));
    }
    let found = match names.as_slice() {
        [_] | ["pg_catalog", _] => TypeId::by_name(last),
        _ => None,
    };
    let base = found.ok_or_else(|| {
        place(Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("type \"{}\" does not exist", names.join(".")),
        ))
    })?;
    let modifier = match name.typmods.is_empty() {
        true => NO_TYPMOD,
        false => {
            let arguments = name
                .typmods
                .iter()
                .map(|node| integer(inner(node)?))
                .collect::<Result<Vec<_>>>()
                .map_err(place)?;
            typmod::typmod_in(base, &arguments).map_err(place)?
        }
    };
    if name.array_bounds.is_empty() {
        return Ok((base, modifier));
    }
    let array = base.array_of().ok_or_else(|| {
        place(Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("type \"{last}[]\" does not exist"),
        ))
    })?;
    Ok((array, modifier))
}

fn integer(node: &NodeEnum) -> Result<i32> {
    use pg_query::protobuf::a_const::Val;
    match node {
        NodeEnum::AConst(constant) => match &constant.val {
            Some(Val::Ival(integer)) => Ok(integer.ival),
            _ => Err(not_constant()),
        },
        _ => Err(not_constant()),
    }
}

fn not_constant() -> Error {
    Error::new(
        SqlState::SYNTAX_ERROR,
        "type modifiers must be simple constants or identifiers",
    )
}
