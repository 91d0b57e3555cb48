//! What is built into the binary: types, functions, operators, casts, and the relations of
//! `pg_catalog` themselves.

use super::rows::{array, char, flag, int, oid, small, text, vector, Rows};
use super::{type_functions, OfBinary};
use catalog::cluster::Address;
use catalog::collation::{self, Provider};
use catalog::layout::BTREE;
use catalog::operator_class::{OperatorClass, CLASSES, METHODS};
use catalog::system::facts;
use catalog::system::relations;
use catalog::system::{self, COMMENTS, HANDLER, INTERNAL, LANGUAGES, TABLESPACES};
use catalog::{Collation, Storage};
use catalog::{INFORMATION_SCHEMA, PG_CATALOG, PUBLIC, QUORATE, SUPERUSER};
use functions::collator;
use functions::search::dictionary;
use functions::{
    self, Aggregate, Cast, CastContext, CastMethod, Function, Volatility, WindowFunction,
};
use types::type_id::{TypeInfo, RANGES, TYPES};
use types::{Category, Datum, TypeId};

pub(super) const ROWS: &[OfBinary] = &[
    ("pg_aggregate", aggregates),
    ("pg_am", access_methods),
    ("pg_amop", |_| ()),
    ("pg_cast", casts),
    ("pg_collation", collations),
    ("pg_description", descriptions),
    ("pg_init_privs", first_privileges),
    ("pg_language", languages),
    ("pg_opclass", classes_of_operators),
    ("pg_opfamily", families),
    ("pg_operator", operators),
    ("pg_proc", procedures),
    ("pg_range", ranges),
    ("pg_tablespace", tablespaces),
    ("pg_ts_config", search_configs),
    ("pg_ts_config_map", search_mappings),
    ("pg_ts_dict", search_dictionaries),
    ("pg_ts_parser", search_parsers),
    ("pg_ts_template", search_templates),
    ("pg_type", types),
];

/// `typalign`, as PostgreSQL's types have it.
pub(super) fn alignment(ty: TypeId) -> u8 {
    match ty {
        TypeId::INTERVAL | TypeId::TIMETZ => b'd',
        ty if ty.is_geometric() => b'd',
        TypeId::MACADDR | TypeId::MACADDR8 => b'i',
        TypeId::TID => b's',
        TypeId::NAME | TypeId::UUID | TypeId::UNKNOWN | TypeId::CSTRING => b'c',
        ty => match ty.len() {
            8 => b'd',
            2 => b's',
            1 => b'c',
            -1 if matches!(inner(ty), Some(inner) if alignment(inner) == b'd') => b'd',
            _ => b'i',
        },
    }
}

/// What the values of a type are made of.
fn inner(ty: TypeId) -> Option<TypeId> {
    let of_range = || ty.range_element().or(ty.multirange_range());
    ty.array_element().or_else(of_range)
}

/// `typstorage`, as PostgreSQL's types have it.
pub(super) fn storage(ty: TypeId) -> u8 {
    Storage::of_type(ty).letter()
}

/// `typbyval`.
pub(super) fn by_value(ty: TypeId) -> bool {
    matches!(ty.len(), 1 | 2 | 4 | 8) && ty != TypeId::MACADDR8
}

fn types(rows: &mut Rows) {
    let arrays = TYPES.iter().filter_map(|info| info.id.array_of());
    for ty in TYPES.iter().map(|info| info.id).chain(arrays) {
        if let Some(info) = ty.info() {
            type_row(ty, &info, Vec::new(), rows);
        }
    }
}

/// The row of a type, in which `other` stands instead of what built-in ones have.
pub(super) fn type_row(
    ty: TypeId,
    info: &TypeInfo,
    other: Vec<(&'static str, Datum)>,
    rows: &mut Rows,
) {
    let category = match info.category {
        Category::Array => b'A',
        Category::Bits => b'V',
        Category::Boolean => b'B',
        Category::Composite => b'C',
        Category::DateTime => b'D',
        Category::Network => b'I',
        Category::Enum => b'E',
        Category::Geometric => b'G',
        Category::Numeric => b'N',
        Category::Pseudo => b'P',
        Category::Range => b'R',
        Category::String => b'S',
        Category::Timespan => b'T',
        Category::User => b'U',
        Category::Unknown => b'X',
        Category::Internal => b'Z',
    };
    let pseudo = matches!(info.category, Category::Pseudo | Category::Unknown);
    let own = [
        ("oid", oid(ty.0)),
        ("typname", text(ty.name())),
        ("typnamespace", oid(PG_CATALOG)),
        ("typowner", oid(SUPERUSER)),
        ("typlen", Datum::Int2(info.len)),
        ("typbyval", flag(by_value(ty))),
        (
            "typtype",
            char(match ty {
                _ if pseudo => b'p',
                _ if ty.is_range() => b'r',
                _ if ty.is_multirange() => b'm',
                _ => b'b',
            }),
        ),
        ("typcategory", char(category)),
        ("typispreferred", flag(info.preferred)),
        ("typisdefined", flag(true)),
        ("typdelim", char(ty.delimiter() as u8)),
        ("typelem", oid(info.element.0)),
        ("typarray", oid(info.array.0)),
        ("typalign", char(alignment(ty))),
        ("typstorage", char(storage(ty))),
        ("typtypmod", int(-1)),
        ("typcollation", oid(collation::of_type(ty))),
    ];
    let own = own.into_iter().chain(type_functions::of_type(ty));
    let is_other = |name: &str| other.iter().any(|known| known.0 == name);
    let kept: Vec<_> = own.filter(|known| !is_other(known.0)).collect();
    rows.push(kept.into_iter().chain(other));
}

fn ranges(rows: &mut Rows) {
    for (range, element, multirange) in RANGES {
        let class = OperatorClass::default_of(BTREE, *element).map_or(0, |class| class.oid);
        let (canonical, difference) = match *range {
            TypeId::INT4RANGE => (3_914, 3_922),
            TypeId::INT8RANGE => (3_928, 3_923),
            TypeId::DATERANGE => (3_915, 3_925),
            TypeId::NUMRANGE => (0, 3_924),
            TypeId::TSRANGE => (0, 3_929),
            _ => (0, 3_930),
        };
        rows.push([
            ("rngtypid", oid(range.0)),
            ("rngsubtype", oid(element.0)),
            ("rngmultitypid", oid(multirange.0)),
            ("rngcollation", oid(0)),
            ("rngsubopc", oid(class)),
            ("rngcanonical", oid(canonical)),
            ("rngsubdiff", oid(difference)),
        ]);
    }
}

fn procedures(rows: &mut Rows) {
    for function in functions::all_functions() {
        procedure_row(function, rows);
    }
    for aggregate in functions::all_aggregates() {
        aggregate_row(aggregate, (PG_CATALOG, SUPERUSER), rows);
    }
    functions::all_windows().for_each(|window| window_row(window, rows));
}

/// The schemas beside `pg_catalog` that functions are listed with.
const SCHEMAS: &[(&str, u32)] = &[
    ("quorate", QUORATE),
    ("information_schema", INFORMATION_SCHEMA),
];

/// The schema of a built-in function and its name there.
pub(super) fn function_name(listed: &str) -> (u32, &str) {
    let found = listed.split_once('.').and_then(|(schema, name)| {
        let mut known = SCHEMAS.iter();
        let known = known.find(|known| known.0 == schema)?;
        Some((known.1, name))
    });
    found.unwrap_or((PG_CATALOG, listed))
}

fn procedure_row(function: &Function, rows: &mut Rows) {
    let arguments = function.arguments.iter().map(|ty| oid(ty.0)).collect();
    let volatility = match function.volatility {
        Volatility::Immutable => b'i',
        Volatility::Stable => b's',
        Volatility::Volatile => b'v',
    };
    let fact = facts::of_function(function.oid);
    // A function that gives one row is carried out as one that gives a set.
    let set = fact.map_or(function.is_set_returning(), |fact| fact.rows > 0.0);
    let (schema, name) = function_name(function.name);
    let outputs = function.columns().unwrap_or_default();
    let inputs = function.arguments;
    let all = inputs.iter().chain(outputs.iter().map(|column| &column.1));
    let all = all.map(|ty| oid(ty.0)).collect();
    let modes = (function.variadic || !outputs.is_empty()).then_some((
        inputs.len(),
        function.variadic,
        outputs.len(),
    ));
    rows.push([
        ("oid", oid(function.oid)),
        ("proname", text(name)),
        ("pronamespace", oid(schema)),
        ("proowner", oid(SUPERUSER)),
        ("prolang", oid(INTERNAL)),
        ("procost", Datum::Float4(fact.map_or(1.0, |fact| fact.cost))),
        ("prorows", Datum::Float4(fact.map_or(0.0, |fact| fact.rows))),
        (
            "provariadic",
            oid(match (function.variadic, function.arguments.last()) {
                (true, Some(last)) => last.0,
                _ => 0,
            }),
        ),
        ("prokind", char(b'f')),
        (
            "proleakproof",
            flag(fact.is_some_and(|fact| fact.leakproof)),
        ),
        ("proisstrict", flag(function.strict)),
        ("proretset", flag(set)),
        ("provolatile", char(volatility)),
        ("proparallel", char(fact.map_or(b's', |fact| fact.parallel))),
        ("pronargs", small(function.arguments.len())),
        ("pronargdefaults", small(usize::from(function.defaults))),
        ("prorettype", oid(function.result.0)),
        ("proargtypes", vector(TypeId::OID, arguments)),
        (
            "proallargtypes",
            modes.map_or(Datum::Null, |_| array(TypeId::OID, all)),
        ),
        ("proargmodes", modes.map_or(Datum::Null, argument_modes)),
        ("proargnames", argument_names(fact)),
        ("prosrc", text(fact.map_or(name, |fact| fact.source))),
    ]);
}

/// `proargmodes` of so many inputs, the last of which takes the rest or not, and outputs.
fn argument_modes((inputs, variadic, outputs): (usize, bool, usize)) -> Datum {
    let input = |at| match variadic && at + 1 == inputs {
        true => b'v',
        false => b'i',
    };
    let outputs = std::iter::repeat_n(b'o', outputs);
    let modes = (0..inputs).map(input).chain(outputs).map(char);
    array(TypeId::CHAR, modes.collect())
}

/// `proargnames`.
fn argument_names(fact: Option<&facts::Fact>) -> Datum {
    match fact.map_or("", |fact| fact.names) {
        "" => Datum::Null,
        names => array(TypeId::TEXT, names.split(',').map(text).collect()),
    }
}

/// `pg_proc` of an aggregate in that schema, of that owner.
pub(super) fn aggregate_row(aggregate: &Aggregate, (schema, owner): (u32, u32), rows: &mut Rows) {
    let arguments = aggregate.arguments.iter().map(|ty| oid(ty.0)).collect();
    rows.push([
        ("oid", oid(aggregate.oid)),
        ("proname", text(aggregate.name)),
        ("pronamespace", oid(schema)),
        ("proowner", oid(owner)),
        ("prolang", oid(INTERNAL)),
        ("procost", Datum::Float4(1.0)),
        ("prokind", char(b'a')),
        (
            "provariadic",
            oid(match aggregate.kind_code().0 {
                b'h' => TypeId::ANY.0,
                _ => 0,
            }),
        ),
        (
            "provolatile",
            char(if aggregate.is_stable() { b's' } else { b'i' }),
        ),
        ("proparallel", char(b's')),
        ("pronargs", small(aggregate.arguments.len())),
        ("prorettype", oid(aggregate.result.0)),
        ("proargtypes", vector(TypeId::OID, arguments)),
        ("prosrc", text("aggregate_dummy")),
    ]);
}

fn window_row(window: &WindowFunction, rows: &mut Rows) {
    let arguments = window.arguments.iter().map(|ty| oid(ty.0)).collect();
    let fact = facts::of_function(window.oid);
    rows.push([
        ("oid", oid(window.oid)),
        ("proname", text(window.name)),
        ("pronamespace", oid(PG_CATALOG)),
        ("proowner", oid(SUPERUSER)),
        ("prolang", oid(INTERNAL)),
        ("procost", Datum::Float4(1.0)),
        ("prokind", char(b'w')),
        ("proisstrict", flag(window.is_strict())),
        ("provolatile", char(b'i')),
        ("proparallel", char(b's')),
        ("pronargs", small(window.arguments.len())),
        ("prorettype", oid(window.result.0)),
        ("proargtypes", vector(TypeId::OID, arguments)),
        ("prosrc", text(fact.map_or(window.name, |fact| fact.source))),
    ]);
}

fn aggregates(rows: &mut Rows) {
    functions::all_aggregates().for_each(|aggregate| what_aggregates(aggregate, rows));
}

/// `pg_aggregate`.
pub(super) fn what_aggregates(aggregate: &Aggregate, rows: &mut Rows) {
    rows.push([
        ("aggfnoid", oid(aggregate.oid)),
        ("aggkind", char(aggregate.kind_code().0)),
        ("aggnumdirectargs", Datum::Int2(aggregate.kind_code().1)),
        ("aggfinalmodify", char(b'r')),
        ("aggmfinalmodify", char(b'r')),
    ]);
}

/// Whether equal values of two types have one hash: numbers of all widths and texts do, moments do not.
fn hashes_alike(left: TypeId, right: TypeId) -> bool {
    let differs = left.category() == Category::DateTime || left == TypeId::XID;
    left.is_hashable() && (left == right || !differs)
}

fn operators(rows: &mut Rows) {
    let other = |name: &str, left: TypeId, right: TypeId| {
        let named = functions::operators_named(name).iter();
        let found = named.filter(|other| (other.left, other.right) == (left, right));
        oid(found.map(|other| other.oid).next().unwrap_or(0))
    };
    for operator in functions::all_operators() {
        let (left, right) = (operator.left, operator.right);
        let kind = if left == TypeId::NONE { b'l' } else { b'b' };
        let equal = operator.name == "=";
        let merges = equal && left.is_sortable() || operator.name == "*=";
        rows.push([
            ("oid", oid(operator.oid)),
            ("oprname", text(operator.name)),
            ("oprnamespace", oid(PG_CATALOG)),
            ("oprowner", oid(SUPERUSER)),
            ("oprkind", char(kind)),
            ("oprcanmerge", flag(merges)),
            ("oprcanhash", flag(equal && hashes_alike(left, right))),
            ("oprleft", oid(left.0)),
            ("oprright", oid(right.0)),
            ("oprresult", oid(operator.function.result.0)),
            ("oprcom", other(operator.commutator, right, left)),
            ("oprnegate", other(operator.negator, left, right)),
            ("oprcode", oid(operator.function.oid)),
        ]);
    }
}

/// The oids of casts begin here; PostgreSQL's own are given anew at each initdb.
const FIRST_CAST: u32 = 10_100;

fn casts(rows: &mut Rows) {
    for (cast, number) in functions::all_casts().zip(FIRST_CAST..) {
        cast_row(cast, number, |function| function.oid, rows);
    }
}

/// `pg_cast` of a cast, whose function has an oid there.
pub(super) fn cast_row(
    cast: &Cast,
    number: u32,
    oid_of: impl Fn(&'static Function) -> u32,
    rows: &mut Rows,
) {
    let (function, method) = match cast.method {
        CastMethod::Binary => (0, b'b'),
        // Between integers and oids PostgreSQL keeps the bits.
        CastMethod::Function(function) if function.oid == 0 => (0, b'b'),
        CastMethod::Function(function) => (oid_of(function), b'f'),
        CastMethod::InOut => (0, b'i'),
    };
    let context = match cast.context {
        CastContext::Implicit => b'i',
        CastContext::Assignment => b'a',
        CastContext::Explicit => b'e',
    };
    rows.push([
        ("oid", oid(number)),
        ("castsource", oid(cast.source.0)),
        ("casttarget", oid(cast.target.0)),
        ("castfunc", oid(function)),
        ("castcontext", char(context)),
        ("castmethod", char(method)),
    ]);
}

fn access_methods(rows: &mut Rows) {
    for (method, name, kind) in METHODS {
        rows.push([
            ("oid", oid(method)),
            ("amname", text(name)),
            ("amtype", char(kind)),
        ]);
    }
}

fn collations(rows: &mut Rows) {
    for known in collation::built_in() {
        put_collation(known, rows);
    }
}

/// A row of `pg_collation`.
pub(super) fn put_collation(known: &Collation, rows: &mut Rows) {
    let (order, letters, icu) = match known.provider {
        Provider::Database => (Datum::Null, Datum::Null, Datum::Null),
        Provider::Libc => (text(&known.locale.0), text(&known.locale.1), Datum::Null),
        Provider::Icu => (Datum::Null, Datum::Null, text(&known.locale.0)),
    };
    let version = match known.provider {
        Provider::Icu => text(collator::VERSION),
        _ => Datum::Null,
    };
    rows.push([
        ("oid", oid(known.oid)),
        ("collname", text(&known.name)),
        ("collnamespace", oid(known.schema)),
        ("collowner", oid(known.owner)),
        ("collprovider", char(known.provider.code())),
        ("collisdeterministic", flag(known.deterministic)),
        ("collencoding", int(known.encoding)),
        ("collcollate", order),
        ("collctype", letters),
        ("colliculocale", icu),
        ("collversion", version),
    ]);
}

fn languages(rows: &mut Rows) {
    for language in &LANGUAGES {
        let handler = if language.procedural { HANDLER } else { 0 };
        rows.push([
            ("oid", oid(language.oid)),
            ("lanname", text(language.name)),
            ("lanowner", oid(SUPERUSER)),
            ("lanispl", flag(language.procedural)),
            ("lanpltrusted", flag(language.trusted)),
            ("lanplcallfoid", oid(handler)),
        ]);
    }
}

fn tablespaces(rows: &mut Rows) {
    for (tablespace, name) in TABLESPACES {
        rows.push([
            ("oid", oid(tablespace)),
            ("spcname", text(name)),
            ("spcowner", oid(SUPERUSER)),
        ]);
    }
}

fn classes_of_operators(rows: &mut Rows) {
    for class in CLASSES {
        rows.push([
            ("oid", oid(class.oid)),
            ("opcmethod", oid(class.method)),
            ("opcname", text(class.name)),
            ("opcnamespace", oid(PG_CATALOG)),
            ("opcowner", oid(SUPERUSER)),
            ("opcfamily", oid(class.family)),
            ("opcintype", oid(class.input.0)),
            ("opcdefault", flag(class.is_default)),
        ]);
    }
}

fn families(rows: &mut Rows) {
    let mut seen = Vec::new();
    for class in CLASSES {
        if seen.contains(&class.family) {
            continue;
        }
        seen.push(class.family);
        rows.push([
            ("oid", oid(class.family)),
            ("opfmethod", oid(class.method)),
            ("opfname", text(class.family_name)),
            ("opfnamespace", oid(PG_CATALOG)),
            ("opfowner", oid(SUPERUSER)),
        ]);
    }
}

fn descriptions(rows: &mut Rows) {
    for (class, object, comment) in COMMENTS {
        rows.push([
            ("objoid", oid(*object)),
            ("classoid", oid(*class)),
            ("description", text(comment)),
        ]);
    }
    describe_search(rows);
    for (address, comment) in facts::descriptions() {
        rows.push([
            ("objoid", oid(address.object)),
            ("classoid", oid(address.class)),
            ("description", text(comment)),
        ]);
    }
}

/// The privileges on a relation that is there from the start.
pub(super) fn privileges(table: u32) -> Datum {
    let items = ["postgres=arwdDxt/postgres", "=r/postgres"];
    let count = if system::is_readable(table) { 2 } else { 1 };
    array(
        TypeId::ACLITEM,
        items.into_iter().take(count).map(text).collect(),
    )
}

/// The privileges that were there from the start, which a dump leaves out.
fn first_privileges(rows: &mut Rows) {
    let mut add = |class: u32, object: u32, schema: u32, privileges: Datum| {
        // Of initdb, or of CREATE EXTENSION.
        let kind = if schema == QUORATE { b'e' } else { b'i' };
        rows.push([
            ("objoid", oid(object)),
            ("classoid", oid(class)),
            ("privtype", char(kind)),
            ("initprivs", privileges),
        ]);
    };
    // What a dump leaves out by its name has none, as in PostgreSQL.
    let tables = system::tables().iter();
    for table in tables.filter(|table| table.schema != INFORMATION_SCHEMA) {
        add(
            Address::CLASS,
            table.oid,
            table.schema,
            privileges(table.oid),
        );
    }
    for (schema, owner) in [
        (PG_CATALOG, "postgres"),
        (PUBLIC, "pg_database_owner"),
        (QUORATE, "postgres"),
    ] {
        let items = [format!("{owner}=UC/{owner}"), format!("=U/{owner}")];
        let items = items.iter().map(text).collect();
        let items = array(TypeId::ACLITEM, items);
        add(Address::NAMESPACE, schema, schema, items);
    }
}

/// Whether a relation lists what is of the whole cluster.
pub(super) fn is_shared(table: u32) -> bool {
    relations::by_oid(table).is_some_and(|relation| relation.shared)
}

/// What is said of the objects of text search.
fn describe_search(rows: &mut Rows) {
    const CONFIG: u32 = 3_602;
    const DICTIONARY: u32 = 3_600;
    const PARSER: u32 = 3_601;
    const TEMPLATE: u32 = 3_764;
    const SIMPLE: &str = "simple dictionary: just lower case and check for stopword";
    let configs = dictionary::configs().map(|(config, name)| {
        let said = match config {
            dictionary::SIMPLE => "simple configuration".to_owned(),
            _ => format!("configuration for {name} language"),
        };
        (config, CONFIG, said)
    });
    let dictionaries = dictionary::dictionaries().map(|(own, name, _)| {
        let said = match name.strip_suffix("_stem") {
            Some(language) => format!("snowball stemmer for {language} language"),
            None => SIMPLE.to_owned(),
        };
        (own, DICTIONARY, said)
    });
    let others = [
        (dictionary::PARSER, PARSER, "default word parser"),
        (dictionary::SIMPLE_TEMPLATE, TEMPLATE, SIMPLE),
        (dictionary::SNOWBALL, TEMPLATE, "snowball stemmer"),
    ];
    let others = others.map(|(own, class, said)| (own, class, said.to_owned()));
    for (own, class, said) in configs.chain(dictionaries).chain(others) {
        rows.push([
            ("objoid", oid(own)),
            ("classoid", oid(class)),
            ("description", text(said)),
        ]);
    }
}

fn search_configs(rows: &mut Rows) {
    for (config, name) in dictionary::configs() {
        rows.push([
            ("oid", oid(config)),
            ("cfgname", text(name)),
            ("cfgnamespace", oid(PG_CATALOG)),
            ("cfgowner", oid(SUPERUSER)),
            ("cfgparser", oid(dictionary::PARSER)),
        ]);
    }
}

fn search_mappings(rows: &mut Rows) {
    for (config, _) in dictionary::configs() {
        for (kind, dictionary) in dictionary::mappings(config) {
            rows.push([
                ("mapcfg", oid(config)),
                ("maptokentype", int(i32::from(kind))),
                ("mapseqno", int(1)),
                ("mapdict", oid(dictionary)),
            ]);
        }
    }
}

fn search_dictionaries(rows: &mut Rows) {
    for (own, name, options) in dictionary::dictionaries() {
        let template = match options {
            Some(_) => dictionary::SNOWBALL,
            None => dictionary::SIMPLE_TEMPLATE,
        };
        rows.push([
            ("oid", oid(own)),
            ("dictname", text(name)),
            ("dictnamespace", oid(PG_CATALOG)),
            ("dictowner", oid(SUPERUSER)),
            ("dicttemplate", oid(template)),
            ("dictinitoption", options.map_or(Datum::Null, text)),
        ]);
    }
}

fn search_parsers(rows: &mut Rows) {
    rows.push([
        ("oid", oid(dictionary::PARSER)),
        ("prsname", text("default")),
        ("prsnamespace", oid(PG_CATALOG)),
        ("prsstart", oid(3_717)),
        ("prstoken", oid(3_718)),
        ("prsend", oid(3_719)),
        ("prsheadline", oid(3_720)),
        ("prslextype", oid(3_721)),
    ]);
}

fn search_templates(rows: &mut Rows) {
    for (own, name, init, lexize) in [
        (dictionary::SIMPLE_TEMPLATE, "simple", 3_725, 3_726),
        (dictionary::SNOWBALL, "snowball", 13_148, 13_149),
    ] {
        rows.push([
            ("oid", oid(own)),
            ("tmplname", text(name)),
            ("tmplnamespace", oid(PG_CATALOG)),
            ("tmplinit", oid(init)),
            ("tmpllexize", oid(lexize)),
        ]);
    }
}
