//! Collations: those that are there from the start, and those that users have made.
//!
//! ```text
//! create collation german (provider = icu, locale = 'de-u-co-phonebk')
//! a row of COLLATIONS under (database, its oid), and its name among NAMES
//! ```
//! Texts are kept, indexed and grouped by their bytes whatever their collation is; where the order of one of
//! ICU is asked for, it is computed ([`functions::collator`]). So nothing that is kept depends on the version of
//! the library, and a column that changes its collation needs no other index.
//!
//! # What it leaves out
//! Locales of the C library other than its own `C`, `POSIX` and `C.UTF-8`: what they would order differently
//! would depend on the machine.

use std::sync::LazyLock;

use base::codec::{put_bytes, put_varint, Reader};
use base::hash::HashMap;
use base::row::{Row, RowBuilder};
use base::{Error, Result};

use super::{Catalog, PG_CATALOG, SUPERUSER};
use functions::collator::Collator;
use functions::strings::quote_identifier;
use types::{Category, TypeId};

/// The collation of the database.
pub const DEFAULT: u32 = 100;
/// The collation by bytes, which all texts of `pg_catalog` have.
pub const C: u32 = 950;

/// The collations of ICU's locales have oids from here on, in the order of the file.
const FIRST_ICU: u32 = 12_342;
/// ICU's locales.
const ICU_LOCALES: &str = include_str!("icu_locales.txt");

/// Who orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The database's own collation.
    Database,
    /// The C library, under `C` alone.
    Libc,
    /// ICU.
    Icu,
}

impl Provider {
    /// As `collprovider` says it.
    pub fn code(self) -> u8 {
        match self {
            Provider::Database => b'd',
            Provider::Libc => b'c',
            Provider::Icu => b'i',
        }
    }
}

/// A collation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collation {
    /// Its oid.
    pub oid: u32,
    /// The schema that it is in.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: u32,
    /// Who orders.
    pub provider: Provider,
    /// The locale; of the C library's that of order and that of letters.
    pub locale: (String, String),
    /// Whether only the same texts are equal.
    pub deterministic: bool,
    /// The encoding that it is for, or -1.
    pub encoding: i32,
}

static BUILT_IN: LazyLock<Vec<Collation>> = LazyLock::new(|| {
    let made = |oid, name: &str, provider, locale: &str, encoding| Collation {
        oid,
        schema: PG_CATALOG,
        name: name.to_owned(),
        owner: SUPERUSER,
        provider,
        locale: (locale.to_owned(), locale.to_owned()),
        deterministic: true,
        encoding,
    };
    let first = [
        made(DEFAULT, "default", Provider::Database, "", -1),
        made(C, "C", Provider::Libc, "C", -1),
        made(951, "POSIX", Provider::Libc, "POSIX", -1),
        made(12_340, "ucs_basic", Provider::Libc, "C", 6),
        made(12_341, "C.utf8", Provider::Libc, "C.utf8", 6),
    ];
    let icu = ICU_LOCALES.lines().zip(FIRST_ICU..).map(|(locale, oid)| {
        let name = format!("{locale}-x-icu");
        made(oid, &name, Provider::Icu, locale, -1)
    });
    first.into_iter().chain(icu).collect()
});

static BY_NAME: LazyLock<HashMap<&str, &Collation>> = LazyLock::new(|| {
    let all = BUILT_IN.iter();
    all.map(|known| (known.name.as_str(), known)).collect()
});

/// Those that are there from the start, by oid.
pub fn built_in() -> &'static [Collation] {
    &BUILT_IN
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

impl Collation {
    /// Whether texts have the order and the letters of the database under it.
    pub fn is_databases(&self) -> bool {
        match self.provider {
            Provider::Database => true,
            Provider::Libc => self.locale.1 == "C.utf8" || self.locale.1 == "C.UTF-8",
            Provider::Icu => false,
        }
    }

    /// Whether texts are ordered by their bytes under it.
    pub fn is_bytewise(&self) -> bool {
        self.provider != Provider::Icu
    }

    /// It, at work.
    ///
    /// # Errors
    /// As [`Collator::icu`].
    pub fn collator(&self) -> Result<Collator> {
        match self.provider {
            Provider::Icu => Collator::icu(&self.locale.0, self.deterministic),
            Provider::Database | Provider::Libc => Ok(Collator::c()),
        }
    }
}

impl Catalog {
    /// The collation of that oid.
    pub fn collation(&self, oid: u32) -> Option<&Collation> {
        let own = self.collations.iter().find(|known| known.oid == oid);
        let all = built_in();
        own.or_else(|| {
            let place = all.binary_search_by_key(&oid, |known| known.oid);
            place.ok().map(|place| &all[place])
        })
    }

    /// The collation of that name in a schema.
    pub fn collation_named(&self, schema: u32, name: &str) -> Option<&Collation> {
        if schema == PG_CATALOG {
            return BY_NAME.get(name).copied();
        }
        let mut own = self.collations.iter();
        own.find(|known| known.schema == schema && known.name == name)
    }

    /// The collation that a name without a schema means.
    pub fn visible_collation(&self, search_path: &[u32], name: &str) -> Option<&Collation> {
        let first = (!search_path.contains(&PG_CATALOG)).then_some(PG_CATALOG);
        let mut path = first.into_iter().chain(search_path.iter().copied());
        path.find_map(|schema| self.collation_named(schema, name))
    }

    /// The name of a collation, quoted where it must be, with its schema unless the search path finds it.
    pub fn shown_collation(&self, search_path: &[u32], oid: u32) -> Option<String> {
        let known = self.collation(oid)?;
        let name = quote_identifier(&known.name);
        let visible = self.visible_collation(search_path, &known.name);
        match visible.is_some_and(|found| found.oid == oid) {
            true => Some(name),
            false => {
                let schema = self.schema_by_oid(known.schema)?;
                Some(format!("{}.{name}", quote_identifier(&schema.name)))
            }
        }
    }
}

// ---- Rows ----

pub(super) fn encode(collation: &Collation) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, u64::from(collation.schema));
    put_bytes(&mut out, collation.name.as_bytes());
    put_varint(&mut out, u64::from(collation.owner));
    out.push(collation.provider.code());
    put_bytes(&mut out, collation.locale.0.as_bytes());
    put_bytes(&mut out, collation.locale.1.as_bytes());
    out.push(u8::from(collation.deterministic));
    put_varint(&mut out, (i64::from(collation.encoding) + 1).unsigned_abs());
    RowBuilder::new(1).value(&out).finish()
}

pub(super) fn decode(oid: u32, row: &[u8]) -> Result<Collation> {
    let row = Row::parse(row)?;
    let bytes = row.column(0);
    let bytes = bytes.ok_or_else(|| Error::corrupted("a collation without a row"))?;
    let mut reader = Reader::new(bytes);
    Ok(Collation {
        oid,
        schema: reader.varint_as()?,
        name: reader.str()?.to_owned(),
        owner: reader.varint_as()?,
        provider: match reader.u8()? {
            b'c' => Provider::Libc,
            b'i' => Provider::Icu,
            other => return Err(Error::corrupted(format!("a collation of kind {other}"))),
        },
        locale: (reader.str()?.to_owned(), reader.str()?.to_owned()),
        deterministic: reader.u8()? != 0,
        encoding: reader.varint_as::<i32>()? - 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let made = Collation {
            oid: 16_400,
            schema: 2_200,
            name: "german".to_owned(),
            owner: 10,
            provider: Provider::Icu,
            locale: ("de".to_owned(), String::new()),
            deterministic: false,
            encoding: -1,
        };
        assert_eq!(decode(16_400, &encode(&made)).unwrap(), made);
    }

    #[test]
    fn each_locale_of_icu_can_be_opened() {
        assert!(built_in().windows(2).all(|two| two[0].oid < two[1].oid));
        for known in built_in() {
            known.collator().unwrap();
        }
    }
}
