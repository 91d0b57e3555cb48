//! `has_table_privilege` and its kin: whether a role may do something.
//!
//! All have the same shape: perhaps a role, an object by name or oid, perhaps a column, and the
//! privileges as a text, of which one must be held: `'SELECT, UPDATE WITH GRANT OPTION'`.

use base::{Error, Result, SqlState};

use super::Exec;
use crate::catalog::access::{denied, Acl, Guarded, Privileges};
use crate::catalog::cluster::Address;
use crate::catalog::{Catalog, RelationKind, Table};
use crate::functions::Function;
use crate::types::{Datum, TypeId};

/// Computes such a function.
pub(super) fn call(cx: &mut Exec<'_>, function: &Function, args: &[Datum]) -> Result<Datum> {
    if function.name == "pg_has_role" {
        return has_role(cx, args);
    }
    let with_column = function.name == "has_column_privilege";
    let objects = if with_column { 2 } else { 1 };
    let (role, rest) = match args.len() > objects + 1 {
        true => (role_of(cx, &args[0])?, &args[1..]),
        false => (own_role(cx), args),
    };
    let Some(role) = role else {
        return Ok(Datum::Null);
    };
    let Some(wanted) = rest.last().map(Datum::as_str) else {
        return Err(Error::internal("no privilege is asked for"));
    };
    let catalog = cx.catalog.clone();
    match function.name {
        "has_table_privilege"
        | "has_any_column_privilege"
        | "has_sequence_privilege"
        | "has_column_privilege" => {
            let oid = object(cx, &rest[0], TypeId::REGCLASS)?;
            let kind = match function.name {
                "has_sequence_privilege" => Guarded::Sequence,
                "has_table_privilege" => Guarded::Table,
                _ => Guarded::Column,
            };
            let asked = asked(wanted, kind)?;
            let Some((table, _)) = relation(&catalog, oid) else {
                return Ok(Datum::Null);
            };
            let acl = catalog.acl_of(Guarded::Table, oid);
            let mut held = holds(&catalog, role, table.1, &acl, &asked)
                || holds_by_group(&catalog, role, kind, &asked);
            if !held && kind == Guarded::Column {
                held = columns_hold(&catalog, role, table, rest.get(1), with_column, &asked);
            }
            Ok(Datum::Bool(held))
        }
        "has_database_privilege" => {
            let oid = match &rest[0] {
                Datum::Oid(oid) => *oid,
                name => database_named(&catalog, name.as_str())?,
            };
            let asked = asked(wanted, Guarded::Database)?;
            let Some(owner) = catalog.database_by_oid(oid).map(|known| known.owner) else {
                return Ok(Datum::Null);
            };
            let acl = catalog.acl_of(Guarded::Database, oid);
            Ok(Datum::Bool(holds(&catalog, role, owner, &acl, &asked)))
        }
        "has_schema_privilege" => {
            let oid = object(cx, &rest[0], TypeId::REGNAMESPACE)?;
            let asked = asked(wanted, Guarded::Schema)?;
            let Some(owner) = catalog.schema_by_oid(oid).map(|known| known.owner) else {
                return Ok(Datum::Null);
            };
            let acl = catalog.acl_of(Guarded::Schema, oid);
            let held = holds(&catalog, role, owner, &acl, &asked)
                || holds_by_group(&catalog, role, Guarded::Schema, &asked);
            Ok(Datum::Bool(held))
        }
        "has_function_privilege" => {
            asked(wanted, Guarded::Function)?;
            Ok(Datum::Bool(true))
        }
        "has_language_privilege" => {
            asked(wanted, Guarded::Language)?;
            Ok(Datum::Bool(true))
        }
        "has_type_privilege" => {
            asked(wanted, Guarded::Type)?;
            Ok(Datum::Bool(true))
        }
        "has_tablespace_privilege" => {
            asked(wanted, Guarded::Tablespace)?;
            Ok(Datum::Bool(catalog.is_superuser(role)))
        }
        "has_parameter_privilege" => Ok(Datum::Bool(catalog.is_superuser(role))),
        name => Err(Error::unsupported(format!("function {name}"))),
    }
}

/// 42501 unless the session's role has one of these privileges on a sequence.
pub(super) fn require_any(cx: &Exec<'_>, table: &Table, privileges: Privileges) -> Result<()> {
    let catalog = cx.catalog;
    let role = cx.session.settings.current_role();
    match catalog.holds_any(role, Guarded::Sequence, table.oid, privileges) {
        true => Ok(()),
        false => Err(denied("sequence", &table.name)),
    }
}

fn own_role(cx: &Exec<'_>) -> Option<u32> {
    Some(cx.session.settings.current_role())
}

/// A role or PUBLIC.
fn role_of(cx: &Exec<'_>, role: &Datum) -> Result<Option<u32>> {
    match role {
        Datum::Oid(_) => one_role(cx, role),
        name if name.as_str() == "public" => Ok(Some(0)),
        _ => one_role(cx, role),
    }
}

fn one_role(cx: &Exec<'_>, role: &Datum) -> Result<Option<u32>> {
    match role {
        Datum::Oid(oid) => Ok(Some(*oid)),
        name => match cx.catalog.role(name.as_str()) {
            Some(role) => Ok(Some(role.oid)),
            None => Err(Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("role \"{}\" does not exist", name.as_str()),
            )),
        },
    }
}

fn object(cx: &Exec<'_>, object: &Datum, kind: TypeId) -> Result<u32> {
    match object {
        Datum::Oid(oid) => Ok(*oid),
        name => cx.context.oid_of(kind, name.as_str()),
    }
}

fn database_named(catalog: &Catalog, name: &str) -> Result<u32> {
    let found = catalog.databases.iter().find(|known| known.name == name);
    found.map(|known| known.oid).ok_or_else(|| {
        Error::new(
            SqlState::INVALID_CATALOG_NAME,
            format!("database \"{name}\" does not exist"),
        )
    })
}

/// The oid and the owner of a relation, and whether it is a sequence.
fn relation(catalog: &Catalog, oid: u32) -> Option<((u32, u32), bool)> {
    let table = catalog.table_by_oid(oid)?;
    let sequence = table.kind == RelationKind::Sequence;
    Some(((oid, table.owner), sequence))
}

/// One privilege that is asked for, and whether with the right to give it on.
type Asked = (Privileges, bool);

/// The privileges of a text.
fn asked(text: &str, kind: Guarded) -> Result<Vec<Asked>> {
    let unknown = |word: &str| {
        Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unrecognized privilege type: \"{word}\""),
        )
    };
    text.split(',')
        .map(|word| {
            let word = word.trim();
            let upper = word.to_ascii_uppercase();
            let (name, option) = match upper.strip_suffix(" WITH GRANT OPTION") {
                Some(name) => (name.trim(), true),
                None => (upper.as_str(), false),
            };
            let found = Privileges::named(name).filter(|found| kind.all().has(*found));
            // Any privilege of tables may be asked of columns and sequences by their own names.
            found
                .map(|found| (found, option))
                .ok_or_else(|| unknown(word))
        })
        .collect()
}

/// Whether one of these is held.
fn holds(catalog: &Catalog, role: u32, owner: u32, acl: &Acl, asked: &[Asked]) -> bool {
    asked.iter().any(|(privileges, option)| match option {
        true => catalog.grantable(role, owner, acl).has(*privileges),
        false => catalog.privileges(role, acl, *privileges).has(*privileges),
    })
}

/// Whether one of these is held on everything of a kind.
fn holds_by_group(catalog: &Catalog, role: u32, kind: Guarded, asked: &[Asked]) -> bool {
    asked
        .iter()
        .any(|(privileges, option)| !option && catalog.holds_on_everything(role, kind, *privileges))
}

/// Whether one of these is held of a column, or of any.
fn columns_hold(
    catalog: &Catalog,
    role: u32,
    (oid, owner): (u32, u32),
    column: Option<&Datum>,
    one: bool,
    asked: &[Asked],
) -> bool {
    let Some(table) = catalog.table_by_oid(oid) else {
        return false;
    };
    let wanted = match (one, column) {
        (true, Some(Datum::Int2(number))) => u32::try_from(*number).ok(),
        (true, Some(name)) => table
            .column(name.as_str())
            .and_then(|place| u32::try_from(place + 1).ok()),
        _ => None,
    };
    let first = Address {
        class: Address::CLASS,
        object: oid,
        column: 1,
    };
    let last = Address {
        column: u32::MAX,
        ..first
    };
    catalog
        .acls
        .range(first..=last)
        .filter(|(address, _)| !one || Some(address.column) == wanted)
        .any(|(_, acl)| holds(catalog, role, owner, acl, asked))
}

fn has_role(cx: &Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let (member, rest) = match args.len() {
        3 => (one_role(cx, &args[0])?, &args[1..]),
        _ => (own_role(cx), args),
    };
    let (Some(member), Some(role)) = (member, one_role(cx, &rest[0])?) else {
        return Ok(Datum::Null);
    };
    let catalog = cx.catalog;
    let mut held = false;
    for word in rest[1].as_str().split(',') {
        held |= match word.trim().to_ascii_uppercase().as_str() {
            "MEMBER" => catalog.is_member(member, role),
            "USAGE" => catalog.has_privileges_of(member, role),
            "MEMBER WITH ADMIN OPTION"
            | "MEMBER WITH GRANT OPTION"
            | "USAGE WITH ADMIN OPTION"
            | "USAGE WITH GRANT OPTION" => catalog.is_admin(member, role),
            _ => {
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("unrecognized privilege type: \"{}\"", word.trim()),
                ))
            }
        };
    }
    Ok(Datum::Bool(held))
}
