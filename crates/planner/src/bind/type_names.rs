//! Type names.

use base::{Error, Result, SqlState};
use pg_query::protobuf::TypeName;

use super::{inner, strings, BindContext};
use catalog::view::BY_OID;
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
    let found = find(cx, &names).map_err(place)?;
    let is_array = |ty: TypeId| {
        let element = ty.array_element().filter(|_| ty.is_of_domain());
        element.is_some_and(|domain| cx.catalog.base_type(domain).0.array_element().is_some())
    };
    let unsupported = || place(Error::unsupported("an array of a domain over an array"));
    if found.is_some_and(is_array) {
        return Err(unsupported());
    }
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
    match is_array(array) {
        true => Err(unsupported()),
        false => Ok((array, modifier)),
    }
}

/// As [`resolve`], where values of domains are not known how to be tested.
///
/// # Errors
/// 0A000 for a domain.
pub fn resolve_no_domain(cx: &BindContext<'_>, name: &TypeName) -> Result<(TypeId, i32)> {
    match resolve(cx, name)? {
        (ty, _) if ty.is_of_domain() => Err(Error::unsupported("a column definition of a domain")),
        found => Ok(found),
    }
}

/// The type of that name, looked for along the search path if it has no schema.
///
/// # Errors
/// 3F000 for a schema that is not there, 42501 for one that the role may not look into.
pub fn find(cx: &BindContext<'_>, names: &[&str]) -> Result<Option<TypeId>> {
    let catalog = cx.catalog;
    match names {
        [name] => {
            let built_in = TypeId::by_name(name);
            let mut path = cx.search_path.iter();
            let built_in = built_in.or_else(|| catalog.type_named(catalog::PG_CATALOG, name));
            Ok(built_in.or_else(|| path.find_map(|schema| catalog.type_named(*schema, name))))
        }
        ["pg_catalog", name] => Ok(catalog.type_named(catalog::PG_CATALOG, name)),
        // So stored text names them; no user can make such a schema.
        [BY_OID, oid] => {
            let found = oid.parse().ok().map(TypeId);
            Ok(found.filter(|id| catalog.has_own_type(*id)))
        }
        [database, schema, name] if *database == catalog.database.name => find(cx, &[schema, name]),
        [schema, name] => {
            let schema = catalog.schema(schema).ok_or_else(|| {
                Error::new(
                    SqlState::INVALID_SCHEMA_NAME,
                    format!("schema \"{schema}\" does not exist"),
                )
            })?;
            catalog.check_look_into(cx.role, schema)?;
            Ok(catalog.type_named(schema.oid, name))
        }
        _ => Ok(None),
    }
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
