//! Collations. Texts are ordered by their bytes, and so is everything under any of these; a column
//! keeps the name that it was given, for whoever takes it elsewhere.

use types::{Category, TypeId};

/// The collation of the database.
pub const DEFAULT: u32 = 100;
/// The collation by bytes, which all texts of `pg_catalog` have.
pub const C: u32 = 950;

/// What there is of a collation.
#[derive(Clone, Copy, Debug)]
pub struct Collation {
    /// Its oid.
    pub oid: u32,
    /// Its name, in schema `pg_catalog`.
    pub name: &'static str,
    /// Who orders by it, as `collprovider` says it.
    pub provider: u8,
    /// The locale, if that is not the database's.
    pub locale: Option<&'static str>,
    /// The encoding that it is for, or -1.
    pub encoding: i32,
}

/// All of them.
pub const ALL: [Collation; 4] = [
    Collation {
        oid: DEFAULT,
        name: "default",
        provider: b'd',
        locale: None,
        encoding: -1,
    },
    Collation {
        oid: C,
        name: "C",
        provider: b'c',
        locale: Some("C"),
        encoding: -1,
    },
    Collation {
        oid: 951,
        name: "POSIX",
        provider: b'c',
        locale: Some("POSIX"),
        encoding: -1,
    },
    Collation {
        oid: 12_340,
        name: "ucs_basic",
        provider: b'c',
        locale: Some("C"),
        encoding: 6,
    },
];

/// The oid of the collation of that name.
pub fn named(name: &str) -> Option<u32> {
    let found = ALL.iter().find(|known| known.name == name)?;
    Some(found.oid)
}

/// The collation of values of a type, or 0 if they have none.
pub fn of_type(ty: TypeId) -> u32 {
    let ty = ty.array_element().unwrap_or(ty);
    match ty {
        TypeId::NAME => C,
        TypeId::PG_NODE_TREE => DEFAULT,
        ty if ty.category() == Category::String => DEFAULT,
        _ => 0,
    }
}
