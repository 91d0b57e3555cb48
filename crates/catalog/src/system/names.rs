//! Languages, tablespaces and other built-in objects that have a name and an oid, and what is said of
//! them.

use crate::cluster::Address;
pub use crate::layout::{BTREE, HEAP};
use crate::PG_CATALOG;

/// The language of functions that are built in.
pub const INTERNAL: u32 = 12;
/// The language of functions in libraries, of which there are none.
pub const C: u32 = 13;
/// The language `sql`.
pub const SQL: u32 = 14;
/// The language `plpgsql`.
pub const PLPGSQL: u32 = 13_563;
/// The oid that a handler of `plpgsql` would have.
pub const HANDLER: u32 = 13_560;
/// The extension `plpgsql`.
pub const PLPGSQL_EXTENSION: u32 = 13_559;
/// The extension `quorate`.
pub const QUORATE_EXTENSION: u32 = 9_101;

/// A language in which functions could be written.
pub struct Language {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// Whether it is for everybody, rather than for superusers.
    pub trusted: bool,
    /// Whether it has a handler.
    pub procedural: bool,
}

/// All of them.
pub const LANGUAGES: [Language; 4] = [
    Language {
        oid: INTERNAL,
        name: "internal",
        trusted: false,
        procedural: false,
    },
    Language {
        oid: C,
        name: "c",
        trusted: false,
        procedural: false,
    },
    Language {
        oid: SQL,
        name: "sql",
        trusted: true,
        procedural: false,
    },
    Language {
        oid: PLPGSQL,
        name: "plpgsql",
        trusted: true,
        procedural: true,
    },
];

/// The language of that name.
pub fn language_named(name: &str) -> Option<&'static Language> {
    LANGUAGES.iter().find(|known| known.name == name)
}

/// The tablespaces: oid and name.
pub const TABLESPACES: [(u32, &str); 2] = [(1_663, "pg_default"), (1_664, "pg_global")];

/// The oid of the tablespace of that name.
pub fn tablespace_named(name: &str) -> Option<u32> {
    let found = TABLESPACES.iter().find(|known| known.1 == name);
    found.map(|known| known.0)
}

/// The name of the language or the tablespace of that oid, or nothing.
pub fn language_or_tablespace(oid: u32) -> &'static str {
    let languages = LANGUAGES.iter().map(|known| (known.oid, known.name));
    let mut all = languages.chain(TABLESPACES);
    all.find(|known| known.0 == oid).map_or("", |known| known.1)
}

/// The comments on what is built in: the catalog that lists the object, its oid, the text.
pub const COMMENTS: &[(u32, u32, &str)] = &[
    (2_601, HEAP, "heap table access method"),
    (2_601, BTREE, "b-tree index access method"),
    (Address::LANGUAGE, INTERNAL, "built-in functions"),
    (Address::LANGUAGE, C, "dynamically-loaded C functions"),
    (Address::LANGUAGE, SQL, "SQL-language functions"),
    (Address::LANGUAGE, PLPGSQL, "PL/pgSQL procedural language"),
    (Address::NAMESPACE, PG_CATALOG, "system catalog schema"),
    (
        Address::EXTENSION,
        PLPGSQL_EXTENSION,
        "PL/pgSQL procedural language",
    ),
    (
        Address::EXTENSION,
        QUORATE_EXTENSION,
        "the cluster: its nodes, groups and storage",
    ),
];
