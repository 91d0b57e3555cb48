//! Extensions: what is built into the binary and seen in a database only once CREATE EXTENSION has
//! said so.
//!
//! ```text
//! named("pgcrypto")                        version 1.3, its functions
//! by_symbol("pgcrypto.digest(text,text)")  the function that computes it
//! operators_of("pg_trgm")                  %, <%, …
//! ```
//! An extension's functions are written as the built-in ones are ([`super::table`]), but none of them
//! is in the registry: a name finds them by way of the catalog, whose routines in language `c` have
//! the *symbol* of one as body. A symbol is the extension's name and the function's signature, and
//! stays what it is in all versions, as databases keep it.
//!
//! Source: PostgreSQL 15 manual, appendix F.
//!
//! A type that an extension brings is built in as well ([`types::BASE_TYPES`]), and so are its casts:
//! nobody comes by a value of it where the extension is not. Its name is a row of the catalog.
//!
//! # What it leaves out
//! `cube`, `isn` and other extensions with types.

use std::sync::OnceLock;

use base::hash::HashMap;
use base::Result;

use super::sets::Records;
use super::table::{CastRow, OperatorRow};
use super::{Call, Function, Operator, Rows};
use types::{Array, Datum, TypeId};

pub(crate) mod citext;
mod crypt;
pub(crate) mod fuzzy;
pub mod hstore;
pub(crate) mod hstore_forms;
pub(crate) mod ltree;
pub(crate) mod pgcrypto;
pub mod statements;
pub mod trigram;
pub(crate) mod unaccent;
pub(crate) mod uuid;
pub(crate) mod vector_distances;
pub(crate) mod vectors;

/// An extension as CREATE EXTENSION makes it.
#[derive(Debug)]
pub struct Extension {
    /// Its name.
    pub name: &'static str,
    /// The version that is here, as PostgreSQL 15 brings it; of `vector` pgvector's.
    pub version: &'static str,
    /// What `pg_available_extensions` says of it.
    pub comment: &'static str,
    /// The extensions that it cannot do without.
    pub requires: &'static [&'static str],
    /// Whether whoever may create in the database may create it, and not superusers alone.
    pub trusted: bool,
    /// The types that it brings.
    pub types: &'static [TypeId],
    functions: &'static [Function],
    operators: &'static [OperatorRow],
    pub(super) casts: &'static [CastRow],
    inputs: &'static [Inputs],
    /// What is made beside its functions, one statement after the other; `@extschema@` stands for the
    /// schema.
    pub script: &'static [&'static str],
}

/// What the inputs of a function are called, and what they are if they are not given, as SQL.
pub(crate) type Inputs = (&'static str, &'static [Input]);

/// The name of an input, and its default.
pub type Input = (&'static str, Option<&'static str>);

/// An extension without a name, which brings nothing.
const NOTHING: Extension = Extension {
    name: "",
    version: "",
    comment: "",
    requires: &[],
    trusted: true,
    types: &[],
    functions: &[],
    operators: &[],
    casts: &[],
    inputs: &[],
    script: &[],
};

/// All of them, by name. Each may be moved to another schema.
pub static ALL: &[Extension] = &[
    Extension {
        name: "bloom",
        version: "1.0",
        comment: "bloom access method - signature file based index",
        trusted: false,
        ..NOTHING
    },
    Extension {
        name: "btree_gin",
        version: "1.3",
        comment: "support for indexing common datatypes in GIN",
        ..NOTHING
    },
    Extension {
        name: "btree_gist",
        version: "1.7",
        comment: "support for indexing common datatypes in GiST",
        ..NOTHING
    },
    Extension {
        name: "citext",
        version: "1.6",
        comment: "data type for case-insensitive character strings",
        types: &[TypeId::CITEXT],
        functions: citext::FUNCTIONS,
        operators: citext::OPERATORS,
        casts: citext::CASTS,
        ..NOTHING
    },
    Extension {
        name: "fuzzystrmatch",
        version: "1.1",
        comment: "determine similarities and distance between strings",
        functions: fuzzy::FUNCTIONS,
        ..NOTHING
    },
    Extension {
        name: "hstore",
        version: "1.8",
        comment: "data type for storing sets of (key, value) pairs",
        types: &[TypeId::HSTORE],
        functions: hstore::FUNCTIONS,
        operators: hstore::OPERATORS,
        casts: hstore::CASTS,
        ..NOTHING
    },
    Extension {
        name: "ltree",
        version: "1.2",
        comment: "data type for hierarchical tree-like structures",
        types: &[TypeId::LTREE, TypeId::LQUERY, TypeId::LTXTQUERY],
        functions: ltree::FUNCTIONS,
        operators: ltree::OPERATORS,
        ..NOTHING
    },
    Extension {
        name: "pg_stat_statements",
        version: "1.10",
        comment: "track planning and execution statistics of all SQL statements executed",
        trusted: false,
        functions: statements::FUNCTIONS,
        inputs: statements::INPUTS,
        script: statements::SCRIPT,
        ..NOTHING
    },
    Extension {
        name: "pg_trgm",
        version: "1.6",
        comment: "text similarity measurement and index searching based on trigrams",
        functions: trigram::FUNCTIONS,
        operators: trigram::OPERATORS,
        ..NOTHING
    },
    Extension {
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions",
        functions: pgcrypto::FUNCTIONS,
        ..NOTHING
    },
    Extension {
        name: "unaccent",
        version: "1.1",
        comment: "text search dictionary that removes accents",
        functions: unaccent::FUNCTIONS,
        ..NOTHING
    },
    Extension {
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
        functions: uuid::FUNCTIONS,
        ..NOTHING
    },
    Extension {
        name: "vector",
        version: "0.8.0",
        comment: "vector data type",
        types: &[TypeId::VECTOR, TypeId::HALFVEC, TypeId::SPARSEVEC],
        functions: vectors::FUNCTIONS,
        operators: vectors::OPERATORS,
        casts: vectors::CASTS,
        ..NOTHING
    },
];

struct Found {
    by_symbol: HashMap<String, &'static Function>,
    symbols: HashMap<u32, String>,
    operators: HashMap<&'static str, Vec<&'static Operator>>,
}

/// Built at the first use; what the tables name is leaked, once per process.
fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut found = Found {
            by_symbol: HashMap::default(),
            symbols: HashMap::default(),
            operators: HashMap::default(),
        };
        for extension in ALL {
            for function in extension.functions {
                let symbol = extension.symbol(function);
                found.symbols.insert(function.oid, symbol.clone());
                found.by_symbol.insert(symbol, function);
            }
            let operators = extension.operators.iter();
            let operators = operators.map(|row| extension.operator(row)).collect();
            found.operators.insert(extension.name, operators);
        }
        found
    })
}

impl Extension {
    /// Its functions.
    pub fn functions(&self) -> &'static [Function] {
        self.functions
    }

    /// What the inputs of one of its functions are called, where they have names.
    pub fn inputs(&self, function: &Function) -> &'static [Input] {
        let mut named = self.inputs.iter();
        let found = named.find(|known| known.0 == function.name);
        found.map_or(&[], |known| known.1)
    }

    /// The symbol of one of its functions.
    pub fn symbol(&self, function: &Function) -> String {
        let types = function.arguments.iter().map(|own| own.fixed_name());
        let types: Vec<_> = types.collect();
        format!("{}.{}({})", self.name, function.name, types.join(","))
    }

    fn operator(&self, row: &OperatorRow) -> &'static Operator {
        let mut functions = self.functions.iter();
        let function = functions.find(|function| function.oid == row.function);
        Box::leak(Box::new(Operator {
            oid: row.oid,
            name: row.name,
            left: row.left,
            right: row.right,
            function: function.unwrap_or_else(|| {
                panic!(
                    "function {} is named in a table and is not there",
                    row.function
                )
            }),
            commutator: row.commutator,
            negator: row.negator,
        }))
    }
}

/// The extension of that name.
pub fn named(name: &str) -> Option<&'static Extension> {
    ALL.iter().find(|known| known.name == name)
}

/// The function of a symbol; none if this binary does not have it.
pub fn by_symbol(symbol: &str) -> Option<&'static Function> {
    found().by_symbol.get(symbol).copied()
}

/// The symbol of a function; none of what is there without an extension.
pub fn symbol_of(function: &Function) -> Option<&'static str> {
    found().symbols.get(&function.oid).map(String::as_str)
}

/// The extension that brings the function of that oid.
pub fn of_function(oid: u32) -> Option<&'static Extension> {
    let has = |known: &&Extension| known.functions.iter().any(|own| own.oid == oid);
    ALL.iter().find(has)
}

/// The operators of an extension.
pub fn operators_of(name: &str) -> impl Iterator<Item = &'static Operator> {
    let own = found().operators.get(name);
    own.into_iter().flatten().copied()
}

/// The extension that brings a type, or the type that an array is over.
pub fn of_type(kind: TypeId) -> Option<&'static Extension> {
    if !kind.is_of_extension() {
        return None;
    }
    let own = kind.array_element().unwrap_or(kind);
    ALL.iter().find(|known| known.types.contains(&own))
}

/// The casts of all extensions, and the functions that these name.
pub(super) fn casts() -> impl Iterator<Item = (&'static CastRow, Option<&'static Function>)> {
    ALL.iter().flat_map(|known| {
        let function = |row: &CastRow| known.functions.iter().find(|own| own.oid == row.how);
        known.casts.iter().map(move |row| (row, function(row)))
    })
}

/// The operators of all extensions.
pub fn all_operators() -> impl Iterator<Item = &'static Operator> {
    ALL.iter().flat_map(|known| operators_of(known.name))
}

/// The extensions that are there from the start: name, version, schema, comment.
pub const FROM_THE_START: [(&str, &str, &str, &str); 2] = [
    (
        "plpgsql",
        "1.0",
        "pg_catalog",
        "PL/pgSQL procedural language",
    ),
    (
        "quorate",
        env!("CARGO_PKG_VERSION"),
        "quorate",
        "the cluster: its nodes, groups and storage",
    ),
];

pub(crate) static AVAILABLE: Records = Records {
    columns: &[
        ("name", TypeId::NAME),
        ("default_version", TypeId::TEXT),
        ("comment", TypeId::TEXT),
    ],
    rows: available,
};

pub(crate) static VERSIONS: Records = Records {
    columns: &[
        ("name", TypeId::NAME),
        ("version", TypeId::TEXT),
        ("superuser", TypeId::BOOL),
        ("trusted", TypeId::BOOL),
        ("relocatable", TypeId::BOOL),
        ("schema", TypeId::NAME),
        ("requires", TypeId::NAME_ARRAY),
        ("comment", TypeId::TEXT),
    ],
    rows: versions,
};

fn available(_: &Call<'_>, _: &[Datum]) -> Result<Rows> {
    let fixed = FROM_THE_START.iter().map(|own| (own.0, own.1, own.3));
    let others = ALL.iter().map(|own| (own.name, own.version, own.comment));
    let row = |(name, version, comment): (&str, &str, &str)| {
        Ok(AVAILABLE.row([name, version, comment].map(Datum::text).into()))
    };
    Ok(Box::new(fixed.chain(others).map(row)))
}

fn versions(_: &Call<'_>, _: &[Datum]) -> Result<Rows> {
    let fixed = FROM_THE_START
        .iter()
        .map(|(name, version, schema, comment)| {
            let schema = Datum::text(schema);
            (*name, *version, *comment, schema, &[][..], true)
        });
    let others = ALL.iter().map(|own| {
        (
            own.name,
            own.version,
            own.comment,
            Datum::Null,
            own.requires,
            own.trusted,
        )
    });
    let rows = fixed
        .chain(others)
        .map(|(name, version, comment, schema, requires, trusted)| {
            let requires = match requires {
                [] => Datum::Null,
                names => {
                    let names = names.iter().map(Datum::text).collect();
                    Datum::Array(std::sync::Arc::new(Array::of(TypeId::NAME, names)))
                }
            };
            Ok(VERSIONS.row(vec![
                Datum::text(name),
                Datum::text(version),
                Datum::Bool(true),
                Datum::Bool(trusted),
                Datum::Bool(schema.is_null()),
                schema,
                requires,
                Datum::text(comment),
            ]))
        });
    Ok(Box::new(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oids_are_given_once() {
        let mut oids: Vec<u32> = crate::all_signatures().iter().map(|row| row.0).collect();
        for extension in ALL {
            oids.extend(extension.functions.iter().map(|function| function.oid));
            let types = extension.types.iter();
            let aggregates = types.flat_map(|id| crate::aggregate::aggregates_of_type(*id));
            oids.extend(aggregates.map(|own| own.oid));
        }
        let count = oids.len();
        oids.sort_unstable();
        oids.dedup();
        assert_eq!(oids.len(), count);
        let mut operators: Vec<u32> = crate::all_operators().map(|own| own.oid).collect();
        operators.extend(all_operators().map(|own| own.oid));
        let count = operators.len();
        operators.sort_unstable();
        operators.dedup();
        assert_eq!(operators.len(), count);
    }

    #[test]
    fn symbols_find_their_functions() {
        let digest = by_symbol("pgcrypto.digest(text,text)").expect("digest");
        assert_eq!(symbol_of(digest), Some("pgcrypto.digest(text,text)"));
        assert!(by_symbol("pgcrypto.no_such()").is_none());
    }
}
