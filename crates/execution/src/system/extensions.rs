//! Extensions: what is in every database beside PostgreSQL's own catalog.
//!
//! | extension | its members |
//! |---|---|
//! | `plpgsql` | the language |
//! | `quorate` | the schema of that name, its views and its functions |
//!
//! These are there from the start and stay, so their oids are below [`FIRST_USER_OID`], and pg_dump
//! writes neither them nor their members: it takes for granted that the database into which a dump
//! goes has them, or can do without.
//!
//! Others are there once CREATE EXTENSION has made them ([`catalog::extension`]).
//!
//! [`FIRST_USER_OID`]: catalog::layout::FIRST_USER_OID

use super::builtin::{self, function_name};
use super::rows::{char, flag, oid, text, Rows};
use super::{OfBinary, OfCatalog};
use catalog::access::{default_acl, AclItem, Guarded, Privileges};
use catalog::cluster::Address;
use catalog::operator_class::{OperatorClass, METHODS_OF_EXTENSIONS, OF_EXTENSIONS};
use catalog::system::{self, acl_items, PLPGSQL, PLPGSQL_EXTENSION, QUORATE_EXTENSION};
use catalog::{Catalog, Extension, PG_CATALOG, QUORATE, SUPERUSER};
use functions::extensions as built_in;
use functions::{Aggregate, Cast, Operator};
use types::TypeId;

pub(super) const ROWS: &[OfBinary] = &[("pg_depend", members), ("pg_extension", extensions)];

fn extensions(rows: &mut Rows) {
    for (extension, name, schema, version) in [
        (PLPGSQL_EXTENSION, "plpgsql", PG_CATALOG, "1.0"),
        (
            QUORATE_EXTENSION,
            "quorate",
            QUORATE,
            env!("CARGO_PKG_VERSION"),
        ),
    ] {
        rows.push([
            ("oid", oid(extension)),
            ("extname", text(name)),
            ("extowner", oid(SUPERUSER)),
            ("extnamespace", oid(schema)),
            ("extrelocatable", flag(false)),
            ("extversion", text(version)),
        ]);
    }
}

/// The rows of what CREATE EXTENSION has made.
pub(super) const MADE: &[OfCatalog] = &[
    ("pg_extension", |catalog, rows| {
        for made in &catalog.extensions {
            rows.push([
                ("oid", oid(made.oid)),
                ("extname", text(&made.name)),
                ("extowner", oid(made.owner)),
                ("extnamespace", oid(made.schema)),
                ("extrelocatable", flag(true)),
                ("extversion", text(&made.version)),
            ]);
        }
    }),
    ("pg_operator", operators),
    ("pg_depend", operators_of_extensions),
    ("pg_cast", casts),
    ("pg_proc", aggregates),
    ("pg_aggregate", |catalog, rows| {
        for (_, aggregate) in made_aggregates(catalog) {
            builtin::what_aggregates(aggregate, rows);
        }
    }),
    ("pg_am", |catalog, rows| {
        for (_, (method, name, kind)) in made_methods(catalog) {
            rows.push([
                ("oid", oid(*method)),
                ("amname", text(name)),
                ("amtype", char(*kind)),
            ]);
        }
    }),
    ("pg_depend", others_of_extensions),
    ("pg_init_privs", first_privileges),
    ("pg_opclass", classes),
    ("pg_opfamily", families),
    ("pg_depend", classes_of_extensions),
];

/// The operators of an extension that are there, with the oids of their routines.
fn operators_with_routines<'c>(
    catalog: &'c Catalog,
    extension: &'c Extension,
) -> impl Iterator<Item = (&'static Operator, u32)> + 'c {
    let operators = built_in::operators_of(&extension.name);
    operators.filter_map(|operator| Some((operator, catalog.routine_of_operator(operator)?)))
}

fn operators(catalog: &Catalog, rows: &mut Rows) {
    for made in &catalog.extensions {
        for (operator, routine) in operators_with_routines(catalog, made) {
            let (left, right) = (operator.left, operator.right);
            let other = |name: &str, left: TypeId, right: TypeId| {
                let mut own = built_in::operators_of(&made.name);
                let is =
                    |own: &&Operator| own.name == name && (own.left, own.right) == (left, right);
                oid(own.find(is).map_or(0, |own| own.oid))
            };
            let equal = operator.name == "=";
            rows.push([
                ("oid", oid(operator.oid)),
                ("oprname", text(operator.name)),
                ("oprnamespace", oid(made.schema)),
                ("oprowner", oid(made.owner)),
                (
                    "oprkind",
                    char(if left == TypeId::NONE { b'l' } else { b'b' }),
                ),
                ("oprcanmerge", flag(equal)),
                ("oprcanhash", flag(equal)),
                ("oprleft", oid(left.0)),
                ("oprright", oid(right.0)),
                ("oprresult", oid(operator.function.result.0)),
                ("oprcom", other(operator.commutator, right, left)),
                ("oprnegate", other(operator.negator, left, right)),
                ("oprcode", oid(routine)),
            ]);
        }
    }
}

/// The oids of casts of extensions begin here.
const FIRST_CAST: u32 = 9_900;

/// The casts that are there, each with its extension and an oid, which is the same everywhere.
fn made_casts(catalog: &Catalog) -> impl Iterator<Item = (&Extension, &'static Cast, u32)> {
    let all = built_in::ALL.iter();
    let all = all.flat_map(|own| functions::casts_of(own).map(move |cast| (own.name, cast)));
    all.zip(FIRST_CAST..)
        .filter_map(|((name, cast), number)| Some((catalog.extension(name)?, cast, number)))
}

fn casts(catalog: &Catalog, rows: &mut Rows) {
    for (_, cast, number) in made_casts(catalog) {
        let routine = |function| catalog.routine_of_function(function).unwrap_or(0);
        builtin::cast_row(cast, number, routine, rows);
    }
}

/// The aggregates that are there, each with its extension.
fn made_aggregates(catalog: &Catalog) -> impl Iterator<Item = (&Extension, &'static Aggregate)> {
    let types = catalog.extensions.iter();
    let types = types.flat_map(|made| made.types().iter().map(move |id| (made, id)));
    types.flat_map(|(made, id)| functions::aggregates_of_type(*id).map(move |own| (made, own)))
}

fn aggregates(catalog: &Catalog, rows: &mut Rows) {
    for (made, aggregate) in made_aggregates(catalog) {
        builtin::aggregate_row(aggregate, (made.schema, made.owner), rows);
    }
}

/// The access methods that are there, each with its extension.
fn made_methods(
    catalog: &Catalog,
) -> impl Iterator<Item = (&Extension, &'static (u32, &'static str, u8))> {
    let all = METHODS_OF_EXTENSIONS.iter();
    all.filter_map(|(name, method)| Some((catalog.extension(name)?, method)))
}

/// The privileges that members have had from the start, where the extension's script has said so: everybody
/// reads its views, and nobody calls what it has revoked. A dump has what differs.
fn first_privileges(catalog: &Catalog, rows: &mut Rows) {
    let scripted = catalog.extensions.iter().filter(|made| {
        let own = made.built_in();
        own.is_some_and(|own| !own.script.is_empty())
    });
    for member in scripted.flat_map(|made| &made.members) {
        let view = catalog.table_by_oid(*member);
        let (class, kind, owner) = match (view, catalog.routine(*member)) {
            (Some(view), _) => (Address::CLASS, Guarded::Table, view.owner),
            (None, Some(routine)) => (Address::PROC, Guarded::Function, routine.owner),
            (None, None) => continue,
        };
        if view.is_none() && !catalog.acls.contains_key(&Address::of(class, *member)) {
            continue;
        }
        let mut acl = default_acl(kind, owner);
        acl.retain(|item| item.grantee != 0);
        if view.is_some() {
            acl.push(AclItem {
                grantee: 0,
                grantor: owner,
                privileges: Privileges::SELECT,
                options: Privileges::NONE,
            });
        }
        rows.push([
            ("objoid", oid(*member)),
            ("classoid", oid(class)),
            ("privtype", char(b'e')),
            ("initprivs", acl_items(catalog, &acl)),
        ]);
    }
}

/// That casts, aggregates and access methods are members of extensions.
fn others_of_extensions(catalog: &Catalog, rows: &mut Rows) {
    /// The oid of `pg_am`.
    const METHODS: u32 = 2_601;
    let casts = made_casts(catalog).map(|(made, _, number)| (made, Address::CAST, number));
    let aggregates = made_aggregates(catalog);
    let aggregates = aggregates.map(|(made, own)| (made, Address::PROC, own.oid));
    let methods = made_methods(catalog).map(|(made, method)| (made, METHODS, method.0));
    for (made, class, object) in casts.chain(aggregates).chain(methods) {
        rows.push([
            ("classid", oid(class)),
            ("objid", oid(object)),
            ("refclassid", oid(Address::EXTENSION)),
            ("refobjid", oid(made.oid)),
            ("deptype", char(b'e')),
        ]);
    }
}

/// The operator classes that are there, each with its extension.
fn made_classes(catalog: &Catalog) -> impl Iterator<Item = (&Extension, &'static OperatorClass)> {
    let all = OF_EXTENSIONS.iter().filter_map(|(name, own)| {
        let extension = catalog.extension(name)?;
        Some(own.iter().map(move |class| (extension, class)))
    });
    all.flatten()
}

fn classes(catalog: &Catalog, rows: &mut Rows) {
    for (made, class) in made_classes(catalog) {
        rows.push([
            ("oid", oid(class.oid)),
            ("opcmethod", oid(class.method)),
            ("opcname", text(class.name)),
            ("opcnamespace", oid(made.schema)),
            ("opcowner", oid(made.owner)),
            ("opcfamily", oid(class.family)),
            ("opcintype", oid(class.input.0)),
            ("opcdefault", flag(class.is_default)),
        ]);
    }
}

fn families(catalog: &Catalog, rows: &mut Rows) {
    for (made, class) in made_classes(catalog) {
        rows.push([
            ("oid", oid(class.family)),
            ("opfmethod", oid(class.method)),
            ("opfname", text(class.family_name)),
            ("opfnamespace", oid(made.schema)),
            ("opfowner", oid(made.owner)),
        ]);
    }
}

fn classes_of_extensions(catalog: &Catalog, rows: &mut Rows) {
    /// The oids of `pg_opclass` and `pg_opfamily`.
    const CLASSES: u32 = 2_616;
    const FAMILIES: u32 = 2_753;
    for (made, class) in made_classes(catalog) {
        for (catalog, object) in [(CLASSES, class.oid), (FAMILIES, class.family)] {
            rows.push([
                ("classid", oid(catalog)),
                ("objid", oid(object)),
                ("refclassid", oid(Address::EXTENSION)),
                ("refobjid", oid(made.oid)),
                ("deptype", char(b'e')),
            ]);
        }
    }
}

fn operators_of_extensions(catalog: &Catalog, rows: &mut Rows) {
    /// The oid of `pg_operator`.
    const OPERATORS: u32 = 2_617;
    for made in &catalog.extensions {
        for (operator, _) in operators_with_routines(catalog, made) {
            rows.push([
                ("classid", oid(OPERATORS)),
                ("objid", oid(operator.oid)),
                ("refclassid", oid(Address::EXTENSION)),
                ("refobjid", oid(made.oid)),
                ("deptype", char(b'e')),
            ]);
        }
    }
}

fn members(rows: &mut Rows) {
    let mut add = |class: u32, object: u32, extension: u32| {
        rows.push([
            ("classid", oid(class)),
            ("objid", oid(object)),
            ("refclassid", oid(Address::EXTENSION)),
            ("refobjid", oid(extension)),
            ("deptype", char(b'e')),
        ]);
    };
    add(Address::LANGUAGE, PLPGSQL, PLPGSQL_EXTENSION);
    add(Address::NAMESPACE, QUORATE, QUORATE_EXTENSION);
    let tables = system::tables().iter();
    for table in tables.filter(|table| table.schema == QUORATE) {
        add(Address::CLASS, table.oid, QUORATE_EXTENSION);
    }
    let functions = functions::all_functions();
    for function in functions.filter(|function| function_name(function.name).0 == QUORATE) {
        add(Address::PROC, function.oid, QUORATE_EXTENSION);
    }
}
