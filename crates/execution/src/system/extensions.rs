//! Extensions: what is in every database beside PostgreSQL's own catalog.
//!
//! | extension | its members |
//! |---|---|
//! | `plpgsql` | the language |
//! | `quorate` | the schema of that name, its views and its functions |
//!
//! They are there from the start and stay, so their oids are below [`FIRST_USER_OID`], and pg_dump
//! writes neither them nor their members: it takes for granted that the database into which a dump
//! goes has them, or can do without.
//!
//! [`FIRST_USER_OID`]: catalog::layout::FIRST_USER_OID

use super::rows::{char, flag, oid, text, Rows};
use super::OfBinary;
use catalog::cluster::Address;
use catalog::system::{self, PLPGSQL, PLPGSQL_EXTENSION, QUORATE_EXTENSION};
use catalog::{PG_CATALOG, QUORATE, SUPERUSER};

pub(super) const ROWS: &[OfBinary] = &[("pg_depend", members), ("pg_extension", extensions)];

/// What the names of functions in schema `quorate` begin with, where functions are listed.
const PREFIX: &str = "quorate.";

/// The schema of a built-in function and its name there.
pub(super) fn function_name(listed: &str) -> (u32, &str) {
    match listed.strip_prefix(PREFIX) {
        Some(name) => (QUORATE, name),
        None => (PG_CATALOG, listed),
    }
}

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
