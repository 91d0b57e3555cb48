//! Lookup in the tables of functions, operators and casts by name, OID and types.

use std::borrow::Cow;
use std::sync::OnceLock;

use base::hash::HashMap;
use base::sync::Mutex;

use super::extensions::{self, Extension};
use super::resolve::Coercion;
use super::{integer, Body, Cast, CastMethod, Function, Native, Operator, Volatility};
use types::TypeId;

/// Between integers and OIDs PostgreSQL keeps the bits; here the two are kept apart.
static INTEGER_TO_OID: Function = bits_to("oid", TypeId::INT4, TypeId::OID, integer::bits_to_oid);
static OID_TO_INTEGER: Function = bits_to("int4", TypeId::OID, TypeId::INT4, integer::oid_to_bits);

const fn bits_to(name: &'static str, from: TypeId, to: TypeId, body: Native) -> Function {
    Function {
        oid: 0,
        name,
        arguments: match from {
            TypeId::OID => &[TypeId::OID],
            _ => &[TypeId::INT4],
        },
        variadic: false,
        defaults: 0,
        result: to,
        volatility: Volatility::Immutable,
        strict: true,
        body: Body::Native(body),
    }
}

struct Registry {
    by_oid: HashMap<u32, &'static Function>,
    by_name: HashMap<&'static str, Vec<&'static Function>>,
    operators: HashMap<&'static str, Vec<&'static Operator>>,
    operators_by_oid: HashMap<u32, &'static Operator>,
    casts: HashMap<(TypeId, TypeId), (&'static Cast, &'static Coercion)>,
}

/// Every function that is there without an extension.
fn listed() -> impl Iterator<Item = &'static Function> {
    [
        super::table_number::FUNCTIONS,
        super::table_compare::FUNCTIONS,
        super::table_string::FUNCTIONS,
        super::table_moment::FUNCTIONS,
        super::table_statistics::FUNCTIONS,
        super::table_system::FUNCTIONS,
        super::table_catalog::FUNCTIONS,
        super::table_sets::FUNCTIONS,
        super::table_io::FUNCTIONS,
        super::table_json::FUNCTIONS,
        super::table_search::FUNCTIONS,
        super::table_ranges::FUNCTIONS,
        super::table_network::FUNCTIONS,
        super::table_geometry::FUNCTIONS,
        super::table_money::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

/// Built at the first use; what the tables name is leaked, once per process.
fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(build)
}

fn build() -> Registry {
    let mut by_oid = HashMap::default();
    let mut by_name: HashMap<_, Vec<_>> = HashMap::default();
    for function in listed() {
        let before = by_oid.insert(function.oid, function);
        assert!(before.is_none(), "function {} is there twice", function.oid);
        by_name.entry(function.name).or_default().push(function);
    }
    by_name
        .values_mut()
        .for_each(|named| named.sort_by_key(|f| f.oid));
    let function = |oid: u32| -> &'static Function {
        let found = by_oid.get(&oid).copied();
        found.unwrap_or_else(|| panic!("function {oid} is named in a table and is not there"))
    };
    let mut operators: HashMap<_, Vec<&'static Operator>> = HashMap::default();
    let mut operators_by_oid = HashMap::default();
    let rows = [
        super::table_operators::OPERATORS,
        super::table_json::OPERATORS,
        super::table_search::OPERATORS,
        super::table_ranges::OPERATORS,
        super::table_network::OPERATORS,
        super::table_geometry::OPERATORS,
        super::table_money::OPERATORS,
    ];
    for row in rows.into_iter().flatten() {
        let operator: &'static Operator = Box::leak(Box::new(Operator {
            oid: row.oid,
            name: row.name,
            left: row.left,
            right: row.right,
            function: function(row.function),
            commutator: row.commutator,
            negator: row.negator,
        }));
        operators.entry(row.name).or_default().push(operator);
        operators_by_oid.insert(row.oid, operator);
    }
    let mut casts = HashMap::default();
    let rows = [
        super::table_casts::CASTS,
        super::table_json::CASTS,
        super::table_search::CASTS,
        super::table_ranges::CASTS,
        super::table_network::CASTS,
        super::table_geometry::CASTS,
        super::table_money::CASTS,
    ];
    let built_in = rows.into_iter().flatten().map(|row| (row, None));
    for (row, of_extension) in built_in.chain(extensions::casts()) {
        let named = |oid: u32| of_extension.unwrap_or_else(|| function(oid));
        let (method, coercion) = match row.how {
            0 => (CastMethod::Binary, Coercion::Binary),
            1 => (CastMethod::InOut, Coercion::InOut),
            2 => (
                CastMethod::Function(&INTEGER_TO_OID),
                Coercion::Function(&INTEGER_TO_OID),
            ),
            3 => (
                CastMethod::Function(&OID_TO_INTEGER),
                Coercion::Function(&OID_TO_INTEGER),
            ),
            oid => (
                CastMethod::Function(named(oid)),
                Coercion::Function(named(oid)),
            ),
        };
        let cast: &'static Cast = Box::leak(Box::new(Cast {
            source: row.source,
            target: row.target,
            method,
            context: row.context,
        }));
        let coercion: &'static Coercion = Box::leak(Box::new(coercion));
        casts.insert((row.source, row.target), (cast, coercion));
    }
    Registry {
        by_oid,
        by_name,
        operators,
        operators_by_oid,
        casts,
    }
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

/// The operator of that OID.
pub fn operator_by_oid(oid: u32) -> Option<&'static Operator> {
    registry().operators_by_oid.get(&oid).copied()
}

/// The operator of that OID, built in or of any extension.
pub fn any_operator_by_oid(oid: u32) -> Option<&'static Operator> {
    let of_extensions = || {
        let mut all = extensions::ALL.iter();
        all.find_map(|own| extensions::operators_of(own.name).find(|known| known.oid == oid))
    };
    operator_by_oid(oid).or_else(of_extensions)
}

/// The cast between two types.
pub fn cast_between(source: TypeId, target: TypeId) -> Option<&'static Cast> {
    registry().casts.get(&(source, target)).map(|found| found.0)
}

/// The coercion of the cast between two types.
pub(crate) fn coercion_between(source: TypeId, target: TypeId) -> Option<&'static Coercion> {
    registry().casts.get(&(source, target)).map(|found| found.1)
}

/// Every function, in order of OID.
pub fn all_functions() -> impl Iterator<Item = &'static Function> {
    let mut all: Vec<_> = registry().by_oid.values().copied().collect();
    all.sort_by_key(|function| function.oid);
    all.into_iter()
}

/// Every operator, in order of OID.
pub fn all_operators() -> impl Iterator<Item = &'static Operator> {
    let mut all: Vec<_> = registry().operators_by_oid.values().copied().collect();
    all.sort_by_key(|operator| operator.oid);
    all.into_iter()
}

/// What is needed to compare values of a type, whether its extension is seen or not: the operators of
/// that name that are built in, and those of the extension that brings it.
pub fn operators_for(name: &str, kind: TypeId) -> Cow<'static, [&'static Operator]> {
    let mut all = Cow::Borrowed(operators_named(name));
    if let Some(extension) = extensions::of_type(kind) {
        let own = extensions::operators_of(extension.name);
        all.to_mut()
            .extend(own.filter(|operator| operator.name == name));
    }
    all
}

/// The casts of an extension.
pub fn casts_of(extension: &'static Extension) -> impl Iterator<Item = &'static Cast> {
    let rows = extension.casts.iter();
    rows.filter_map(|row| cast_between(row.source, row.target))
}

/// Every cast that is there without an extension, by source and target.
pub fn all_casts() -> impl Iterator<Item = &'static Cast> {
    let all = registry().casts.values().map(|found| found.0);
    let is_built_in =
        |cast: &&Cast| !cast.source.is_of_extension() && !cast.target.is_of_extension();
    let mut all: Vec<_> = all.filter(is_built_in).collect();
    all.sort_by_key(|cast| (cast.source, cast.target));
    all.into_iter()
}

/// The same function under the keyword that it was written as, so that it can be shown so.
pub fn under_keyword(function: &'static Function, keyword: &'static str) -> &'static Function {
    static NAMED: Mutex<Vec<&'static Function>> = Mutex::new(Vec::new());
    let mut named = NAMED.lock();
    let same = |known: &&&Function| known.oid == function.oid && known.name == keyword;
    if let Some(known) = named.iter().find(same) {
        return known;
    }
    // There are only so many keywords.
    let made: &'static Function = Box::leak(Box::new(Function {
        name: keyword,
        ..*function
    }));
    named.push(made);
    made
}
