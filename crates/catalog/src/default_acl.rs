//! Default privileges: what ALTER DEFAULT PRIVILEGES says of objects that are yet to be made.
//!
//! ```text
//! alter default privileges for role a grant select on tables to b;              of all of a's tables
//! alter default privileges for role a in schema s grant insert on tables to c;  of those in s, as well
//! create table s.t ();                                                          a=arwdDxt/a, b=r/a, c=a/a
//! ```
//! What holds everywhere begins as what holds anyway and may take from that; what holds in a schema
//! begins as nothing and is added. The owner of the new object counts, not whoever makes it.
//!
//! # Invariants
//! - An entry that says no more than what holds without it is not kept.
//! - A relation or a schema enters the catalog through [`super::store`] only, which asks here: no
//!   way to make one passes this by.
//!
//! # What it leaves out
//! There are no functions and types of one's own, so what is said of those is kept, shown, and acts
//! on nothing.
//!
//! Source: PostgreSQL 15 manual, ALTER DEFAULT PRIVILEGES.

use base::{Error, Result};

use super::access::{default_acl, grant, sort, Acl, Guarded};
use super::cluster::Address;
use super::{Catalog, RelationKind, Table};

/// What is said of new objects of one kind: the row of `pg_default_acl` without its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultAcl {
    /// Its oid.
    pub oid: u32,
    /// Whose objects.
    pub role: u32,
    /// In which schema, or 0 for all.
    pub schema: u32,
    /// Of which kind: tables, sequences, functions, types or schemas.
    pub kind: Guarded,
}

/// The kinds of objects that have default privileges: `defaclobjtype`, and how messages call many.
const KINDS: [(u8, Guarded, &str); 5] = [
    (b'r', Guarded::Table, "relations"),
    (b'S', Guarded::Sequence, "sequences"),
    (b'f', Guarded::Function, "functions"),
    (b'T', Guarded::Type, "types"),
    (b'n', Guarded::Schema, "schemas"),
];

impl DefaultAcl {
    /// `defaclobjtype`.
    pub fn letter(&self) -> u8 {
        let found = KINDS.iter().find(|known| known.1 == self.kind);
        found.map_or(b'r', |known| known.0)
    }

    /// As the row that has the list says it.
    pub fn encode(&self) -> Vec<u8> {
        let numbers = [self.role, self.schema];
        let mut out: Vec<u8> = numbers.into_iter().flat_map(u32::to_be_bytes).collect();
        out.push(self.letter());
        out
    }

    /// Reads what [`DefaultAcl::encode`] made.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn decode(oid: u32, bytes: Option<&[u8]>) -> Result<DefaultAcl> {
        let wrong = || Error::corrupted("default privileges of nothing");
        let bytes: &[u8; 9] = bytes
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(wrong)?;
        let [a, b, c, d, e, f, g, h, letter] = *bytes;
        let known = KINDS.iter().find(|known| known.0 == letter);
        Ok(DefaultAcl {
            oid,
            role: u32::from_be_bytes([a, b, c, d]),
            schema: u32::from_be_bytes([e, f, g, h]),
            kind: known.ok_or_else(wrong)?.1,
        })
    }

    /// What messages call it.
    pub fn describe(&self, catalog: &Catalog) -> String {
        let many = KINDS.iter().find(|known| known.1 == self.kind);
        let many = many.map_or("", |known| known.2);
        let role = catalog.role_by_oid(self.role);
        let role = role.map_or("", |role| &role.name);
        let mut out = format!("default privileges on new {many} belonging to role {role}");
        if let Some(schema) = catalog.schema_by_oid(self.schema) {
            out.push_str(&format!(" in schema {}", schema.name));
        }
        out
    }
}

/// The list of an object that gets what holds everywhere and what holds in its schema; none if that
/// is what holds anyway.
fn combined(
    kind: Guarded,
    owner: u32,
    everywhere: Option<&Acl>,
    here: Option<&Acl>,
) -> Option<Acl> {
    let mut plain = default_acl(kind, owner);
    let mut acl = everywhere.unwrap_or(&plain).clone();
    for item in here.into_iter().flatten() {
        grant(&mut acl, *item);
    }
    sort(&mut acl);
    sort(&mut plain);
    (acl != plain).then_some(acl)
}

impl Catalog {
    /// What was said of new objects of a kind, if something was.
    pub fn default_acl(&self, role: u32, schema: u32, kind: Guarded) -> Option<&DefaultAcl> {
        let mut known = self.defaults.iter();
        known.find(|known| (known.role, known.schema, known.kind) == (role, schema, kind))
    }

    /// The list that a new object of a role begins with, if one was said.
    pub fn acl_of_new(&self, kind: Guarded, owner: u32, schema: u32) -> Option<Acl> {
        let said = |schema: u32| {
            let known = self.default_acl(owner, schema, kind)?;
            self.acls.get(&Address::of(Address::DEFAULT_ACL, known.oid))
        };
        let here = if schema == 0 { None } else { said(schema) };
        combined(kind, owner, said(0), here)
    }

    /// The list that a new relation begins with, if one was said.
    pub fn acl_of_new_relation(&self, table: &Table) -> Option<Acl> {
        let kind = match table.kind {
            RelationKind::Sequence => Guarded::Sequence,
            _ => Guarded::Table,
        };
        self.acl_of_new(kind, table.owner, table.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::{AclItem, Privileges};
    use super::*;

    #[test]
    fn entries_come_back() {
        for (_, kind, _) in KINDS {
            let default = DefaultAcl {
                oid: 7,
                role: 20,
                schema: 2_200,
                kind,
            };
            let bytes = default.encode();
            assert_eq!(DefaultAcl::decode(7, Some(&bytes)).unwrap(), default);
        }
        assert!(DefaultAcl::decode(7, None).is_err());
        assert!(DefaultAcl::decode(7, Some(b"12345678x")).is_err());
    }

    #[test]
    fn what_holds_anyway_is_not_kept() {
        let plain = default_acl(Guarded::Function, 20);
        assert_eq!(combined(Guarded::Function, 20, Some(&plain), None), None);
        let to = |grantee| AclItem {
            grantee,
            grantor: 20,
            privileges: Privileges::SELECT,
            options: Privileges::NONE,
        };
        let here = vec![to(30)];
        let made = combined(Guarded::Table, 20, None, Some(&here)).unwrap();
        let grantees: Vec<_> = made.iter().map(|item| item.grantee).collect();
        assert_eq!(grantees, [20, 30]);
        // Nobody, not even the owner.
        let none = Acl::new();
        let made = combined(Guarded::Table, 20, Some(&none), Some(&here)).unwrap();
        assert_eq!(made, here);
    }
}
