//! What `pg_type`, `pg_enum`, `pg_range` and, of domains, `pg_constraint` say of types of one's own.

use super::builtin::{self, type_row};
use super::objects::{acl, user_tables};
use super::rows::{char, flag, int, oid, small, text, Rows};
use super::type_functions;
use catalog::cluster::Address;
use catalog::user_type::array_name;
use catalog::{collation, CastHow, Catalog, Column, Domain, RangeOf, Table, TypeBody, UserType};
use functions::CastContext;
use planner::bind::stored::{domain_check_node, domain_default_node};
use types::type_id::TypeInfo;
use types::{Datum, TypeId};

/// `pg_type` of the rows of a relation, and of the array over that.
pub(super) fn of_rows(catalog: Option<&Catalog>, table: &Table, rows: &mut Rows) {
    let Some(id) = table.row_type().filter(|_| table.has_row_type()) else {
        return;
    };
    for id in std::iter::once(id).chain(id.array_of()) {
        let Some(info) = id.info() else { continue };
        let is_array = id.array_element().is_some();
        let given = match catalog.filter(|_| !is_array) {
            Some(catalog) => acl(catalog, Address::TYPE, id.0, 0),
            None => Datum::Null,
        };
        let name = match is_array {
            true => array_name(&table.name),
            false => table.name.clone(),
        };
        let said = vec![
            ("typname", text(name)),
            ("typnamespace", oid(table.schema)),
            ("typowner", oid(table.owner)),
            ("typtype", char(if is_array { b'b' } else { b'c' })),
            ("typrelid", oid(if is_array { 0 } else { table.oid })),
            ("typacl", given),
        ];
        type_row(id, &info, said, rows);
    }
}

/// `pg_class` of composite types.
pub(super) fn classes(catalog: &Catalog, rows: &mut Rows) {
    for made in catalog.user_types.iter() {
        let Some(composite) = catalog.composite(made.id) else {
            continue;
        };
        rows.push([
            ("oid", oid(composite.relation)),
            ("relname", text(&made.name)),
            ("relnamespace", oid(made.schema)),
            ("reltype", oid(made.id.0)),
            ("relowner", oid(made.owner)),
            ("relpersistence", char(b'p')),
            ("relkind", char(b'c')),
            ("relnatts", small(composite.attributes.len())),
            ("relispopulated", flag(true)),
            ("relreplident", char(b'n')),
        ]);
    }
}

/// `pg_attribute` of composite types.
pub(super) fn attributes(catalog: &Catalog, rows: &mut Rows) {
    for made in catalog.user_types.iter() {
        let Some(composite) = catalog.composite(made.id) else {
            continue;
        };
        for (number, attribute) in (1usize..).zip(&composite.attributes) {
            let (base, _) = catalog.base_type(attribute.ty);
            let collation = match collation::of_type(base) {
                0 => 0,
                _ if attribute.collation != 0 => attribute.collation,
                usual => usual,
            };
            let column = Column {
                name: attribute.name.clone(),
                type_id: base,
                domain: match attribute.ty.is_of_domain() {
                    true => attribute.ty,
                    false => TypeId::NONE,
                },
                typmod: attribute.typmod,
                dropped: attribute.name.is_empty(),
                ..Column::default()
            };
            let extra = (Datum::Null, collation, None, (0, true));
            super::objects::attribute(composite.relation, &column, number, extra, rows);
        }
    }
}

/// `pg_type`: each type, and the array over it.
pub(super) fn types(catalog: &Catalog, rows: &mut Rows) {
    for table in user_tables(catalog) {
        of_rows(Some(catalog), table, rows);
    }
    for made in catalog.user_types.iter() {
        let array = made.id.array_of();
        for id in std::iter::once(made.id).chain(array) {
            put(catalog, made, id, rows);
        }
    }
}

fn put(catalog: &Catalog, made: &UserType, id: TypeId, rows: &mut Rows) {
    let Some(info) = id.info() else { return };
    let is_array = id != made.id;
    let name = match is_array {
        true => made.array_name(),
        false => made.name.clone(),
    };
    let kind = match &made.body {
        _ if is_array => b'b',
        TypeBody::Enum(_) => b'e',
        TypeBody::Domain(_) => b'd',
        TypeBody::Composite(_) => b'c',
        TypeBody::Base => b'b',
        TypeBody::Range(_) => b'r',
        TypeBody::Multirange => b'm',
    };
    // Whoever may use a type may use arrays of it: they have no list of their own.
    let given = match is_array {
        true => Datum::Null,
        false => acl(catalog, Address::TYPE, id.0, 0),
    };
    let mut said = vec![
        ("typname", text(name)),
        ("typnamespace", oid(made.schema)),
        ("typowner", oid(made.owner)),
        ("typtype", char(kind)),
        ("typacl", given),
    ];
    if let Some(composite) = catalog.composite(id) {
        said.push(("typrelid", oid(composite.relation)));
    }
    if id.is_of_domain() {
        let collation = match catalog.domain_collation(id) {
            0 => collation::of_type(catalog.base_type(id).0),
            given => given,
        };
        said.push(("typcollation", oid(collation)));
    }
    let domain = made.domain().filter(|_| !is_array);
    let info = match domain {
        None => info,
        Some(domain) => {
            said.extend(domain_columns(catalog, id, domain));
            let base = catalog.base_type(id).0.info().unwrap_or(info);
            TypeInfo {
                array: info.array,
                element: TypeId::NONE,
                preferred: false,
                ..base
            }
        }
    };
    type_row(id, &info, said, rows);
}

/// What a domain has of its base type, and what is its own.
fn domain_columns(catalog: &Catalog, id: TypeId, domain: &Domain) -> Vec<(&'static str, Datum)> {
    let (base, _) = catalog.base_type(id);
    let dimensions = i32::from(domain.over.array_element().is_some());
    let mut said = vec![
        ("typbyval", flag(builtin::by_value(base))),
        ("typalign", char(builtin::alignment(base))),
        ("typstorage", char(builtin::storage(base))),
        ("typdelim", char(base.delimiter() as u8)),
        ("typbasetype", oid(domain.over.0)),
        ("typtypmod", int(domain.typmod)),
        ("typnotnull", flag(domain.not_null)),
        ("typndims", int(dimensions)),
    ];
    said.extend(type_functions::of_domain(base));
    if let Some(default) = &domain.default {
        said.push(("typdefaultbin", text(domain_default_node(id, default))));
        said.push(("typdefault", text(&domain.default_shown)));
    }
    said
}

/// The checks of domains among `pg_constraint`.
pub(super) fn constraints(catalog: &Catalog, rows: &mut Rows) {
    for made in catalog.user_types.iter() {
        let checks = made.domain().map_or(&[][..], |domain| &domain.checks);
        for check in checks {
            rows.push([
                ("oid", oid(check.oid)),
                ("conname", text(&check.name)),
                ("connamespace", oid(made.schema)),
                ("contype", char(b'c')),
                ("convalidated", flag(check.validated)),
                ("contypid", oid(made.id.0)),
                ("confupdtype", char(b' ')),
                ("confdeltype", char(b' ')),
                ("confmatchtype", char(b' ')),
                ("conislocal", flag(true)),
                ("conbin", text(domain_check_node(check))),
            ]);
        }
    }
}

/// `pg_enum`.
pub(super) fn labels(catalog: &Catalog, rows: &mut Rows) {
    for made in catalog.user_types.iter() {
        for label in made.labels() {
            rows.push([
                ("oid", oid(label.oid)),
                ("enumtypid", oid(made.id.0)),
                ("enumsortorder", Datum::Float4(label.order)),
                ("enumlabel", text(&label.name)),
            ]);
        }
    }
}

/// The ranges, each with its multirange, and what is known of it.
fn made_ranges(catalog: &Catalog) -> impl Iterator<Item = (TypeId, TypeId, &RangeOf)> {
    let all = catalog.user_types.iter();
    all.filter_map(|made| Some((made.id, made.id.range_multirange()?, made.range()?)))
}

/// `pg_range`.
pub(super) fn ranges(catalog: &Catalog, rows: &mut Rows) {
    for (range, multirange, of) in made_ranges(catalog) {
        rows.push([
            ("rngtypid", oid(range.0)),
            (
                "rngsubtype",
                oid(range.range_element().map_or(0, |ty| ty.0)),
            ),
            ("rngmultitypid", oid(multirange.0)),
            ("rngcollation", oid(of.collation)),
            ("rngsubopc", oid(of.class)),
            ("rngcanonical", oid(0)),
            ("rngsubdiff", oid(of.difference)),
        ]);
    }
}

/// `pg_cast`: the casts that users have made, and each range becomes its multirange where that is asked
/// for.
pub(super) fn casts(catalog: &Catalog, rows: &mut Rows) {
    for cast in catalog.casts.iter() {
        rows.push([
            ("oid", oid(cast.oid)),
            ("castsource", oid(cast.source.0)),
            ("casttarget", oid(cast.target.0)),
            ("castfunc", oid(cast.function())),
            (
                "castcontext",
                char(match cast.context {
                    CastContext::Implicit => b'i',
                    CastContext::Assignment => b'a',
                    CastContext::Explicit => b'e',
                }),
            ),
            (
                "castmethod",
                char(match cast.how {
                    CastHow::Function(_) => b'f',
                    CastHow::InOut => b'i',
                    CastHow::Binary => b'b',
                }),
            ),
        ]);
    }
    for (range, multirange, of) in made_ranges(catalog) {
        let function = catalog.cast_to_multirange(multirange);
        rows.push([
            ("oid", oid(of.cast)),
            ("castsource", oid(range.0)),
            ("casttarget", oid(multirange.0)),
            ("castfunc", oid(function.unwrap_or(0))),
            ("castcontext", char(b'e')),
            ("castmethod", char(b'f')),
        ]);
    }
}

/// That these casts are parts of their types and functions.
pub(super) fn dependencies_of_casts(catalog: &Catalog, rows: &mut Rows) {
    for (range, multirange, of) in made_ranges(catalog) {
        let function = catalog.cast_to_multirange(multirange);
        let types = [range, multirange].map(|ty| (Address::TYPE, ty.0));
        let function = function.map(|function| (Address::PROC, function));
        for (class, object) in types.into_iter().chain(function) {
            rows.push([
                ("classid", oid(Address::CAST)),
                ("objid", oid(of.cast)),
                ("refclassid", oid(class)),
                ("refobjid", oid(object)),
                ("deptype", char(b'i')),
            ]);
        }
    }
}
