//! The tables of functions, operators and casts, and lookup in them by name, OID and types.

use std::sync::OnceLock;

use base::hash::HashMap;

use super::{Cast, Function, Operator};
use crate::types::TypeId;

struct Registry {
    by_oid: HashMap<u32, &'static Function>,
    by_name: HashMap<&'static str, Vec<&'static Function>>,
    operators: HashMap<&'static str, Vec<&'static Operator>>,
    casts: HashMap<(TypeId, TypeId), &'static Cast>,
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| Registry {
        by_oid: HashMap::default(),
        by_name: HashMap::default(),
        operators: HashMap::default(),
        casts: HashMap::default(),
    })
}

/// The functions of that name, in order of OID.
pub fn functions_named(name: &str) -> &'static [&'static Function] {
    registry().by_name.get(name).map_or(&[], Vec::as_slice)
}

/// The function of that OID.
pub fn function_by_oid(oid: u32) -> Option<&'static Function> {
    registry().by_oid.get(&oid).copied()
}

/// The operators of that name, in order of OID.
pub fn operators_named(name: &str) -> &'static [&'static Operator] {
    registry().operators.get(name).map_or(&[], Vec::as_slice)
}

/// The cast between two types.
pub fn cast_between(source: TypeId, target: TypeId) -> Option<&'static Cast> {
    registry().casts.get(&(source, target)).copied()
}
