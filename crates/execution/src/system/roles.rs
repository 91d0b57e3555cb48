//! Roles, databases, and what hangs on them.

use super::objects::acl;
use super::rows::{array, char, flag, int, oid, text, Rows};
use super::OfCatalog;
use catalog::cluster::{Address, RoleSettings};
use catalog::Catalog;
use types::{Datum, TypeId};

pub(super) const ROWS: &[OfCatalog] = &[
    ("pg_auth_members", members),
    ("pg_authid", roles),
    ("pg_database", databases),
    ("pg_db_role_setting", settings),
    ("pg_parameter_acl", parameters),
    ("pg_shdescription", comments),
];

fn roles(catalog: &Catalog, rows: &mut Rows) {
    for role in &catalog.roles {
        let until = role.valid_until.map_or(Datum::Null, Datum::TimestampTz);
        rows.push([
            ("oid", oid(role.oid)),
            ("rolname", text(&role.name)),
            ("rolsuper", flag(role.superuser)),
            ("rolinherit", flag(role.inherit)),
            ("rolcreaterole", flag(role.create_role)),
            ("rolcreatedb", flag(role.create_database)),
            ("rolcanlogin", flag(role.login)),
            ("rolreplication", flag(role.replication)),
            ("rolbypassrls", flag(role.bypass_rls)),
            ("rolconnlimit", int(role.connection_limit)),
            (
                "rolpassword",
                role.password.as_ref().map_or(Datum::Null, text),
            ),
            ("rolvaliduntil", until),
        ]);
    }
}

fn members(catalog: &Catalog, rows: &mut Rows) {
    for member in &catalog.members {
        rows.push([
            ("roleid", oid(member.role)),
            ("member", oid(member.member)),
            ("grantor", oid(member.grantor)),
            ("admin_option", flag(member.admin)),
        ]);
    }
}

/// The tablespace in which everything is.
const DEFAULT_TABLESPACE: u32 = 1_663;

fn databases(catalog: &Catalog, rows: &mut Rows) {
    const UTF8: i32 = 6;
    for database in &catalog.databases {
        rows.push([
            ("oid", oid(database.oid)),
            ("datname", text(&database.name)),
            ("datdba", oid(database.owner)),
            ("encoding", int(UTF8)),
            ("datlocprovider", char(b'c')),
            ("datistemplate", flag(database.template)),
            ("datallowconn", flag(database.open)),
            ("datconnlimit", int(database.connection_limit)),
            ("dattablespace", oid(DEFAULT_TABLESPACE)),
            ("datcollate", text(database.collate.name())),
            ("datctype", text(database.ctype.name())),
            ("datacl", acl(catalog, Address::DATABASE, database.oid, 0)),
        ]);
    }
}

/// `name=value` of settings, as `setconfig` has them.
pub(super) fn config(settings: &RoleSettings) -> Datum {
    let values = settings.values.iter();
    let values = values.map(|(name, value)| text(format!("{name}={value}")));
    array(TypeId::TEXT, values.collect())
}

fn settings(catalog: &Catalog, rows: &mut Rows) {
    for settings in &catalog.settings {
        rows.push([
            ("setdatabase", oid(settings.database)),
            ("setrole", oid(settings.role)),
            ("setconfig", config(settings)),
        ]);
    }
}

fn parameters(catalog: &Catalog, rows: &mut Rows) {
    for (parameter, name) in &catalog.parameters {
        rows.push([
            ("oid", oid(*parameter)),
            ("parname", text(name)),
            (
                "paracl",
                acl(catalog, Address::PARAMETER_ACL, *parameter, 0),
            ),
        ]);
    }
}

fn comments(catalog: &Catalog, rows: &mut Rows) {
    for (address, comment) in &catalog.comments {
        if address.is_shared() {
            rows.push([
                ("objoid", oid(address.object)),
                ("classoid", oid(address.class)),
                ("description", text(comment)),
            ]);
        }
    }
}
