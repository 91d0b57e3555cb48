//! Which functions read and write a type, as `pg_type` says it.
//!
//! ```text
//! int4    int4in   int4out   int4recv   int4send      a function for each, by the type's name
//! _int4   array_in array_out array_recv array_send    one for all arrays, ranges, enums, rows
//! ```
//! Drivers tell by these what a type is: whoever has `array_in` is an array.

use super::rows::oid;
use types::{Category, Datum, TypeId};

/// The columns of `pg_type` that name functions.
pub(super) fn of_type(ty: TypeId) -> Vec<(&'static str, Datum)> {
    let kind = family(ty);
    let named = |ending: &str| match kind {
        Some(kind) => function(&format!("{kind}_{ending}")),
        None => own_function(ty, ending),
    };
    let modified = match kind {
        Some("array") => ty.array_element().unwrap_or(ty),
        _ => ty,
    };
    let analyzer = match (kind, ty) {
        (Some(kind @ ("array" | "range" | "multirange")), _) => format!("{kind}_typanalyze"),
        (_, TypeId::TSVECTOR) => "ts_typanalyze".to_owned(),
        _ => String::new(),
    };
    let subscript = match (kind, ty) {
        (Some("array"), _) | (_, TypeId::INT2VECTOR | TypeId::OIDVECTOR) => {
            "array_subscript_handler"
        }
        _ if ty.fixed_element().is_some() => "raw_array_subscript_handler",
        (_, TypeId::JSONB) => "jsonb_subscript_handler",
        _ => "",
    };
    vec![
        ("typsubscript", oid(function(subscript))),
        ("typinput", oid(named("in"))),
        ("typoutput", oid(named("out"))),
        ("typreceive", oid(named("recv"))),
        ("typsend", oid(named("send"))),
        ("typmodin", oid(own_function(modified, "typmodin"))),
        ("typmodout", oid(own_function(modified, "typmodout"))),
        ("typanalyze", oid(function(&analyzer))),
    ]
}

/// The same of a domain over a type: what is read is checked, and written as that type's.
pub(super) fn of_domain(base: TypeId) -> Vec<(&'static str, Datum)> {
    let of_base = of_type(base).into_iter();
    let own = of_base.map(|(name, known)| match name {
        "typinput" => (name, oid(function("domain_in"))),
        "typreceive" => (name, oid(function("domain_recv"))),
        "typsubscript" | "typmodin" | "typmodout" => (name, oid(0)),
        _ => (name, known),
    });
    own.collect()
}

/// What the functions are called after that a type shares with others of its kind.
fn family(ty: TypeId) -> Option<&'static str> {
    let info = ty.info()?;
    match info.category {
        Category::Array if !is_vector(ty) => Some("array"),
        Category::Enum => Some("enum"),
        Category::Composite => Some("record"),
        _ if ty.is_of_domain() => Some("domain"),
        _ if ty.is_range() => Some("range"),
        _ if ty.is_multirange() => Some("multirange"),
        _ => None,
    }
}

fn is_vector(ty: TypeId) -> bool {
    matches!(ty, TypeId::INT2VECTOR | TypeId::OIDVECTOR)
}

/// A function that is called after the type.
fn own_function(ty: TypeId, ending: &str) -> u32 {
    let name = match ty {
        TypeId::POLYGON => "poly",
        TypeId::MONEY => "cash",
        ty => ty.info().map_or("", |info| info.name),
    };
    match function(&format!("{name}{ending}")) {
        0 => function(&format!("{name}_{ending}")),
        found => found,
    }
}

/// The oid of a built-in function, 0 for none.
fn function(name: &str) -> u32 {
    let named = functions::functions_named(name).first();
    named.map_or(0, |known| known.oid)
}
