//! Extensions that were created in a database, as the catalog keeps them.
//!
//! What an extension brings is built into the binary ([`functions::extensions`]); CREATE EXTENSION
//! makes it visible in one database:
//!
//! ```text
//! create extension pgcrypto
//! a row of EXTENSIONS: pgcrypto, its schema and version, members [16390, 16391, …]
//! rows of ROUTINES:    16390 digest(text, text), language c, body "pgcrypto.digest(text,text)"
//! rows of USER_TYPES:  none here; of citext the type of that name ([`super::user_type`])
//! ```
//! The body of such a routine is a *symbol*, by which the function is found that computes it. The
//! routines are routines like others otherwise: they have privileges, can be granted, and what calls
//! them depends on them. Operators, operator classes, casts, aggregates and access methods have no
//! rows: they are there where their extension is, with oids that are the same everywhere.
//!
//! # Invariants
//! - Each member is a routine or a view of the database in the extension's schema, and of one extension
//!   only.
//!
//! # What it leaves out
//! Extensions that are not here; scripts and members of one's own (ALTER EXTENSION
//! … ADD).

use base::codec::{put_bytes, put_varint, Reader};
use base::row::{Row, RowBuilder};
use base::{Error, Result};

use super::lists::read_list;
use super::Catalog;
use functions::extensions as built_in;
use functions::{Function, Operator};
use types::TypeId;

/// An extension of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extension {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: u32,
    /// The schema that its members are in.
    pub schema: u32,
    /// Which version of it there is.
    pub version: String,
    /// The routines and views that it has made, by oid.
    pub members: Vec<u32>,
}

impl Extension {
    /// What it is; none for one that this binary does not have.
    pub fn built_in(&self) -> Option<&'static built_in::Extension> {
        built_in::named(&self.name)
    }

    /// The types that it brings.
    pub fn types(&self) -> &'static [TypeId] {
        self.built_in().map_or(&[], |own| own.types)
    }

    /// The extensions that this one cannot do without.
    pub fn requires(&self) -> &'static [&'static str] {
        self.built_in().map_or(&[], |own| own.requires)
    }
}

impl Catalog {
    /// The extension of that name, if it was created here.
    pub fn extension(&self, name: &str) -> Option<&Extension> {
        self.extensions.iter().find(|known| known.name == name)
    }

    /// The extension of that oid.
    pub fn extension_by_oid(&self, oid: u32) -> Option<&Extension> {
        self.extensions.iter().find(|known| known.oid == oid)
    }

    /// The extension whose member a routine or a view is.
    pub fn extension_of_member(&self, oid: u32) -> Option<&Extension> {
        let mut all = self.extensions.iter();
        all.find(|known| known.members.contains(&oid))
    }

    /// The operators of that name that extensions in these schemas have; those of all for `None`.
    pub fn operators_of_extensions(
        &self,
        name: &str,
        schemas: Option<&[u32]>,
    ) -> Vec<&'static Operator> {
        let seen = |known: &&Extension| schemas.is_none_or(|all| all.contains(&known.schema));
        let here = self.extensions.iter().filter(seen);
        let named = here.flat_map(|known| built_in::operators_of(&known.name));
        named.filter(|operator| operator.name == name).collect()
    }

    /// The routine by which an operator of an extension is computed.
    pub fn routine_of_operator(&self, operator: &Operator) -> Option<u32> {
        self.routine_of_function(operator.function)
    }

    /// The routine that has a function of an extension.
    pub fn routine_of_function(&self, function: &Function) -> Option<u32> {
        let symbol = built_in::symbol_of(function)?;
        let members = self.extensions.iter().flat_map(|known| &known.members);
        let mut members = members.filter_map(|oid| self.routine(*oid));
        members
            .find(|routine| routine.body == symbol)
            .map(|routine| routine.oid)
    }
}

/// The row of an extension.
pub(super) fn encode(extension: &Extension) -> Vec<u8> {
    let mut out = Vec::new();
    for number in [extension.oid, extension.owner, extension.schema] {
        put_varint(&mut out, u64::from(number));
    }
    put_bytes(&mut out, extension.name.as_bytes());
    put_bytes(&mut out, extension.version.as_bytes());
    put_varint(&mut out, extension.members.len() as u64);
    for member in &extension.members {
        put_varint(&mut out, u64::from(*member));
    }
    RowBuilder::new(1).value(&out).finish()
}

/// The extension of a row.
///
/// # Errors
/// XX001 for a row that is none.
pub(super) fn decode(row: &[u8]) -> Result<Extension> {
    let row = Row::parse(row)?;
    let bytes = row.column(0);
    let bytes = bytes.ok_or_else(|| Error::corrupted("an extension without its row"))?;
    let mut reader = Reader::new(bytes);
    let reader = &mut reader;
    Ok(Extension {
        oid: reader.varint_as()?,
        owner: reader.varint_as()?,
        schema: reader.varint_as()?,
        name: reader.str()?.to_owned(),
        version: reader.str()?.to_owned(),
        members: read_list(reader, |reader| reader.varint_as())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let extension = Extension {
            oid: 16_384,
            name: "pgcrypto".to_owned(),
            owner: 10,
            schema: 2_200,
            version: "1.3".to_owned(),
            members: vec![16_385, 16_400],
        };
        assert_eq!(decode(&encode(&extension)).unwrap(), extension);
    }
}
