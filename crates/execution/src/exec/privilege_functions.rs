//! `has_table_privilege` and its kin: whether a role may do something.
//!
//! All have the same shape: perhaps a role, an object by name or oid, perhaps a column, and the
//! privileges as a text, of which one must be held: `'SELECT, UPDATE WITH GRANT OPTION'`.

use base::{Error, Result, SqlState};

use super::catalog_functions::type_is_known;
use super::Exec;
use catalog::access::{
    column_in_address, denied, system_column, Guarded, Privileges, SYSTEM_COLUMNS,
};
use catalog::cluster::Address;
use catalog::{system, Catalog, RelationKind, Table};
use functions::session::PrivilegeFunction;
use types::{Datum, TypeId};

/// Computes such a function.
pub(super) fn call(cx: &mut Exec<'_>, which: PrivilegeFunction, args: &[Datum]) -> Result<Datum> {
    let objects = if which == PrivilegeFunction::Column {
        2
    } else {
        1
    };
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
    let kind = match which {
        PrivilegeFunction::Table => {
            let oid = object(cx, &rest[0], TypeId::REGCLASS)?;
            let asked = asked(wanted, Guarded::Table)?;
            return held(relation_holds(&catalog, role, oid, Of::Table, &asked));
        }
        PrivilegeFunction::AnyColumn => {
            let oid = object(cx, &rest[0], TypeId::REGCLASS)?;
            let asked = asked(wanted, Guarded::Column)?;
            return held(relation_holds(&catalog, role, oid, Of::AnyColumn, &asked));
        }
        PrivilegeFunction::Column => {
            let oid = object(cx, &rest[0], TypeId::REGCLASS)?;
            let column = Of::Column(column_of(&catalog, oid, &rest[1])?);
            let asked = asked(wanted, Guarded::Column)?;
            return held(relation_holds(&catalog, role, oid, column, &asked));
        }
        PrivilegeFunction::Sequence => {
            let oid = object(cx, &rest[0], TypeId::REGCLASS)?;
            let asked = asked(wanted, Guarded::Sequence)?;
            let table = catalog.table_by_oid(oid);
            if let Some(other) = table.filter(|table| table.kind != RelationKind::Sequence) {
                return Err(Error::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not a sequence", other.name),
                ));
            }
            return held(table.map(|_| holds(&catalog, role, Guarded::Sequence, oid, &asked)));
        }
        PrivilegeFunction::Parameter => {
            let asked = asked(wanted, Guarded::Parameter)?;
            let name = rest[0].as_str().to_ascii_lowercase();
            let mut known = catalog.parameters.iter();
            let known = known.find(|known| *known.1 == name).map(|known| *known.0);
            return held(Some(match known {
                Some(oid) => holds(&catalog, role, Guarded::Parameter, oid, &asked),
                None => catalog.is_superuser(role),
            }));
        }
        PrivilegeFunction::Database => Guarded::Database,
        PrivilegeFunction::Schema => Guarded::Schema,
        PrivilegeFunction::Function => Guarded::Function,
        PrivilegeFunction::Language => Guarded::Language,
        PrivilegeFunction::Type => Guarded::Type,
        PrivilegeFunction::Tablespace => Guarded::Tablespace,
        PrivilegeFunction::ForeignDataWrapper => Guarded::ForeignDataWrapper,
        PrivilegeFunction::ForeignServer => Guarded::ForeignServer,
    };
    let found = named_object(cx, kind, &rest[0])?;
    let asked = asked(wanted, kind)?;
    // Superusers may look into schemas that are not there.
    let of_nothing = kind == Guarded::Schema && catalog.is_superuser(role);
    held(match found {
        Some(oid) => Some(holds(&catalog, role, kind, oid, &asked)),
        None => of_nothing.then_some(true),
    })
}

fn held(held: Option<bool>) -> Result<Datum> {
    Ok(held.map_or(Datum::Null, Datum::Bool))
}

/// The oid of an object that is given by it or by its name; none for an oid of nothing.
fn named_object(cx: &Exec<'_>, kind: Guarded, named: &Datum) -> Result<Option<u32>> {
    if let Datum::Oid(oid) = named {
        return Ok(is_there(cx.catalog, kind, *oid).then_some(*oid));
    }
    let name = named.as_str();
    let missing = |what: &str| {
        let message = format!("{what} \"{name}\" does not exist");
        Error::new(SqlState::UNDEFINED_OBJECT, message)
    };
    let oid = match kind {
        Guarded::Database => database_named(cx.catalog, name)?,
        Guarded::Schema => object(cx, named, TypeId::REGNAMESPACE)?,
        Guarded::Function => object(cx, named, TypeId::REGPROCEDURE)?,
        Guarded::Type => object(cx, named, TypeId::REGTYPE)?,
        Guarded::Language => {
            let language = system::language_named(name);
            language.ok_or_else(|| missing("language"))?.oid
        }
        Guarded::Tablespace => {
            system::tablespace_named(name).ok_or_else(|| missing("tablespace"))?
        }
        Guarded::ForeignServer => return Err(missing("server")),
        _ => return Err(missing("foreign-data wrapper")),
    };
    Ok(Some(oid))
}

fn is_there(catalog: &Catalog, kind: Guarded, oid: u32) -> bool {
    match kind {
        Guarded::Database => catalog.database_by_oid(oid).is_some(),
        Guarded::Schema => catalog.schema_by_oid(oid).is_some(),
        Guarded::Function => functions::signature_of(oid).is_some(),
        Guarded::Type => type_is_known(catalog, TypeId(oid)),
        Guarded::Language | Guarded::Tablespace => !system::language_or_tablespace(oid).is_empty(),
        _ => false,
    }
}

/// What of a relation is asked about.
#[derive(Clone, Copy)]
enum Of {
    Table,
    AnyColumn,
    /// None for one that is dropped or was never there.
    Column(Option<u32>),
}

/// The number of a column of a relation.
///
/// # Errors
/// 42703 for a name that no column has, or had.
fn column_of(catalog: &Catalog, oid: u32, column: &Datum) -> Result<Option<u32>> {
    let Some(table) = catalog.table_by_oid(oid) else {
        return Ok(None);
    };
    let number = match column {
        Datum::Int2(number) => SYSTEM_COLUMNS
            .iter()
            .find_map(|name| system_column(table, name).filter(|known| known == number)),
        name => system_column(table, name.as_str()),
    };
    if let Some(number) = number {
        return Ok(Some(column_in_address(number)));
    }
    let place = match column {
        Datum::Int2(number) => usize::try_from(*number).ok().and_then(|n| n.checked_sub(1)),
        name => {
            let name = name.as_str();
            let dropped = name
                .strip_prefix("........pg.dropped.")
                .and_then(|rest| rest.strip_suffix("........"));
            let place = table.column(name);
            if place.is_none() && dropped.is_none() {
                return Err(Error::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!(
                        "column \"{name}\" of relation \"{}\" does not exist",
                        table.name
                    ),
                ));
            }
            place
        }
    };
    let known = place.filter(|place| table.columns.get(*place).is_some_and(|c| !c.dropped));
    Ok(known.and_then(|place| u32::try_from(place + 1).ok()))
}

/// Whether one of these is held of a relation; none where it is not there.
fn relation_holds(catalog: &Catalog, role: u32, oid: u32, of: Of, asked: &[Asked]) -> Option<bool> {
    let table = catalog.table_by_oid(oid)?;
    if matches!(of, Of::Column(None)) {
        return None;
    }
    let kind = match table.kind {
        RelationKind::Sequence => Guarded::Sequence,
        _ => Guarded::Table,
    };
    if holds(catalog, role, kind, oid, asked) {
        return Some(true);
    }
    Some(match of {
        Of::Table => false,
        Of::Column(column) => columns_hold(catalog, role, (oid, table.owner), column, asked),
        Of::AnyColumn => columns_hold(catalog, role, (oid, table.owner), None, asked),
    })
}

/// 42501 unless the session's role has one of these privileges on a sequence.
pub(super) fn require_any(cx: &Exec<'_>, table: &Table, privileges: Privileges) -> Result<()> {
    let catalog = cx.catalog;
    let role = cx.role();
    match catalog.holds_any(role, Guarded::Sequence, table.oid, privileges) {
        true => Ok(()),
        false => Err(denied("sequence", &table.name)),
    }
}

fn own_role(cx: &Exec<'_>) -> Option<u32> {
    Some(cx.role())
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
            // There was a privilege of that name once; nobody holds it.
            if matches!(kind, Guarded::Table) && name == "RULE" {
                return Ok((Privileges::NONE, option));
            }
            let found = Privileges::named(name).filter(|found| kind.all().has(*found));
            found
                .map(|found| (found, option))
                .ok_or_else(|| unknown(word))
        })
        .collect()
}

/// Whether one of these is held on an object as a whole.
fn holds(catalog: &Catalog, role: u32, kind: Guarded, object: u32, asked: &[Asked]) -> bool {
    let acl = catalog.acl_of(kind, object);
    let owner = catalog.owner_of(kind, object);
    asked.iter().any(|(privileges, option)| match option {
        _ if privileges.is_none() => false,
        true => catalog.grantable(role, owner, &acl).has(*privileges),
        false => catalog.holds(role, kind, object, *privileges),
    })
}

/// Whether one of these is held of a column by its own list, or of any.
fn columns_hold(
    catalog: &Catalog,
    role: u32,
    (oid, owner): (u32, u32),
    column: Option<u32>,
    asked: &[Asked],
) -> bool {
    let first = Address {
        class: Address::CLASS,
        object: oid,
        column: 1,
    };
    // Behind those of its own stand the system columns, which are none of "any".
    let last = Address {
        column: match column {
            Some(_) => u32::MAX,
            None => u32::MAX >> 1,
        },
        ..first
    };
    let lists = catalog.acls.range(first..=last);
    let mut lists = lists.filter(|(address, _)| column.is_none_or(|known| known == address.column));
    lists.any(|(_, acl)| {
        asked.iter().any(|(privileges, option)| match option {
            true => catalog.grantable(role, owner, acl).has(*privileges),
            false => catalog.privileges(role, acl, *privileges).has(*privileges),
        })
    })
}

/// `pg_has_role`.
pub(super) fn has_role(cx: &Exec<'_>, args: &[Datum]) -> Result<Datum> {
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
