//! Rows that belong to the whole cluster or hang on objects of any kind: databases, roles,
//! memberships, settings of roles and databases, comments, privileges.
//!
//! Comments and privileges are kept beside the objects they belong to, under the object's address:
//! the catalog it is listed in, its oid, and for a column its number. Those of databases, roles,
//! tablespaces and parameters have 0 for their database. Default privileges and the privileges of
//! parameters are lists that stand for themselves: their rows say of what they are.

use std::collections::BTreeMap;

use base::codec::{put_bytes, put_varint, Reader};
use base::engine::{Inserted, LockWait, Reading, RowLock, Transaction};
use base::row::{Row, RowBuilder};
use base::{Error, Result, TreeId};

use super::access::{self, Acl, Membership};
use super::default_acl::DefaultAcl;
use super::routine::{self, Routine};
use super::statistics;
use super::store::{self, claim_name, free_name, NameClass};
use super::user_type::{self, UserType};
use super::{Database, Locale, Role};
use crate::layout::{
    self, COMMENTS, MEMBERS, PRIVILEGES, ROUTINES, SETTINGS, STATISTICS, USER_TYPES,
};
use types::TypeId;

/// What a comment or a list of privileges hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The oid of the catalog that lists the object, `pg_class` for a table.
    pub class: u32,
    /// The object's oid.
    pub object: u32,
    /// The column's number, or 0.
    pub column: u32,
}

/// The oids of the catalogs that list objects.
#[allow(missing_docs)]
impl Address {
    pub const TYPE: u32 = 1_247;
    pub const CAST: u32 = 2_605;
    pub const COLLATION: u32 = 3_456;
    pub const OPERATOR: u32 = 2_617;
    pub const PROC: u32 = 1_255;
    pub const CLASS: u32 = 1_259;
    pub const ROLE: u32 = 1_260;
    pub const DATABASE: u32 = 1_262;
    pub const CONSTRAINT: u32 = 2_606;
    pub const NAMESPACE: u32 = 2_615;
    pub const POLICY: u32 = 3_256;
    pub const TRIGGER: u32 = 2_620;
    pub const REWRITE: u32 = 2_618;
    pub const EXTENSION: u32 = 3_079;
    pub const LANGUAGE: u32 = 2_612;
    pub const TABLESPACE: u32 = 1_213;
    pub const DEFAULT_ACL: u32 = 826;
    pub const PARAMETER_ACL: u32 = 6_243;
    pub const LARGE_OBJECT: u32 = layout::LARGE_OBJECT;
    pub const FOREIGN_DATA_WRAPPER: u32 = 2_328;
    pub const FOREIGN_SERVER: u32 = 1_417;
    pub const ATTRIBUTE: u32 = 1_249;
    pub const STATISTIC_EXT: u32 = 3_381;
}

impl Address {
    /// An object that is no column.
    pub const fn of(class: u32, object: u32) -> Address {
        Address {
            class,
            object,
            column: 0,
        }
    }

    /// Whether objects of that catalog belong to no database.
    pub const fn is_shared(self) -> bool {
        matches!(
            self.class,
            Address::ROLE | Address::DATABASE | Address::TABLESPACE | Address::PARAMETER_ACL
        )
    }

    fn key(self, database: u32) -> [u32; 4] {
        let database = if self.is_shared() { 0 } else { database };
        [database, self.class, self.object, self.column]
    }
}

/// Settings that a role has in a database when a session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSettings {
    /// The database, or 0 for all.
    pub database: u32,
    /// The role, or 0 for all.
    pub role: u32,
    /// Name and value, in the order in which they were made.
    pub values: Vec<(String, String)>,
}

/// Everything that this module keeps, as one database sees it.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The databases.
    pub databases: Vec<Database>,
    /// The roles.
    pub roles: Vec<Role>,
    /// The types that users have made.
    pub user_types: Vec<UserType>,
    /// The functions and procedures.
    pub routines: Vec<Routine>,
    /// The extensions that were created.
    pub extensions: Vec<super::Extension>,
    /// The casts that users have made.
    pub casts: Vec<super::OwnCast>,
    /// The collations that users have made.
    pub collations: Vec<super::Collation>,
    /// The operators that users have made.
    pub operators: Vec<super::OwnOperator>,
    /// What ANALYZE has found, and how much it is to find.
    pub statistics: Vec<(statistics::Place, statistics::Known)>,
    /// The memberships.
    pub members: Vec<Membership>,
    /// The settings of roles and databases.
    pub settings: Vec<RoleSettings>,
    /// The comments.
    pub comments: BTreeMap<Address, String>,
    /// The privileges of objects of which something was said.
    pub acls: BTreeMap<Address, Acl>,
    /// What ALTER DEFAULT PRIVILEGES has said; the lists are among `acls`.
    pub defaults: Vec<DefaultAcl>,
    /// The parameters of which something was said, by the oids of their lists among `acls`.
    pub parameters: BTreeMap<u32, String>,
}

const SUPERUSER: u8 = 1;
const LOGIN: u8 = 2;
const NO_INHERIT: u8 = 4;
const CREATE_ROLE: u8 = 8;
const CREATE_DATABASE: u8 = 16;
const REPLICATION: u8 = 32;
const BYPASS_RLS: u8 = 64;

fn role_row(role: &Role) -> Vec<u8> {
    let flags = [
        (role.superuser, SUPERUSER),
        (role.login, LOGIN),
        (!role.inherit, NO_INHERIT),
        (role.create_role, CREATE_ROLE),
        (role.create_database, CREATE_DATABASE),
        (role.replication, REPLICATION),
        (role.bypass_rls, BYPASS_RLS),
    ];
    let flags = flags
        .into_iter()
        .fold(0, |all, (set, bit)| if set { all | bit } else { all });
    let mut row = RowBuilder::new(5)
        .value(role.name.as_bytes())
        .value(&[flags])
        .value(&role.connection_limit.to_be_bytes());
    row = match &role.password {
        Some(password) => row.value(password.as_bytes()),
        None => row.null(),
    };
    row = match role.valid_until {
        Some(until) => row.value(&until.to_be_bytes()),
        None => row.null(),
    };
    row.finish()
}

/// Reads the row of a role.
pub(super) fn role_of(oid: u32, row: &Row<'_>) -> Result<Role> {
    let flags = row
        .column(1)
        .and_then(|bytes| bytes.first().copied())
        .unwrap_or(0);
    let set = |bit: u8| flags & bit != 0;
    Ok(Role {
        oid,
        name: store::text(row, 0)?,
        superuser: set(SUPERUSER),
        login: set(LOGIN),
        inherit: !set(NO_INHERIT),
        create_role: set(CREATE_ROLE),
        create_database: set(CREATE_DATABASE),
        replication: set(REPLICATION),
        bypass_rls: set(BYPASS_RLS),
        connection_limit: limit(row, 2),
        password: row
            .column(3)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .map(str::to_owned),
        valid_until: row
            .column(4)
            .and_then(|bytes| bytes.try_into().ok())
            .map(i64::from_be_bytes),
    })
}

fn limit(row: &Row<'_>, column: usize) -> i32 {
    row.column(column)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(-1, i32::from_be_bytes)
}

const TEMPLATE: u8 = 1;
const CLOSED: u8 = 2;
const COLLATE_C: u8 = 4;
const CTYPE_C: u8 = 8;

fn locale_flag(locale: Locale, flag: u8) -> u8 {
    match locale {
        Locale::C => flag,
        Locale::Utf8 => 0,
    }
}

fn locale_of(flags: u8, flag: u8) -> Locale {
    match flags & flag {
        0 => Locale::Utf8,
        _ => Locale::C,
    }
}

pub(super) fn database_row(database: &Database) -> Vec<u8> {
    let template = if database.template { TEMPLATE } else { 0 };
    let closed = if database.open { 0 } else { CLOSED };
    RowBuilder::new(4)
        .value(database.name.as_bytes())
        .value(&database.owner.to_be_bytes())
        .value(&[template
            | closed
            | locale_flag(database.collate, COLLATE_C)
            | locale_flag(database.ctype, CTYPE_C)])
        .value(&database.connection_limit.to_be_bytes())
        .finish()
}

/// Reads the row of a database.
pub(super) fn database_of(oid: u32, row: &Row<'_>) -> Result<Database> {
    let flags = row
        .column(2)
        .and_then(|bytes| bytes.first().copied())
        .unwrap_or(0);
    Ok(Database {
        oid,
        name: store::text(row, 0)?,
        owner: store::number(row, 1)?,
        template: flags & TEMPLATE != 0,
        open: flags & CLOSED == 0,
        connection_limit: limit(row, 3),
        collate: locale_of(flags, COLLATE_C),
        ctype: locale_of(flags, CTYPE_C),
    })
}

/// Inserts a role; false when the name is taken.
pub fn insert_role(txn: &mut dyn Transaction, role: &Role) -> Result<bool> {
    if !claim_name(txn, NameClass::Role, 0, 0, &role.name, role.oid)? {
        return Ok(false);
    }
    let key = store::oid_key(&[role.oid]);
    Ok(txn.insert(layout::ROLES, &key, &role_row(role))? == Inserted::Done)
}

/// Replaces a role; false when it has a new name that is taken.
pub fn update_role(txn: &mut dyn Transaction, old: &Role, new: &Role) -> Result<bool> {
    if old.name != new.name {
        free_name(txn, NameClass::Role, 0, 0, &old.name)?;
        if !claim_name(txn, NameClass::Role, 0, 0, &new.name, new.oid)? {
            return Ok(false);
        }
    }
    put(txn, layout::ROLES, &[new.oid], &role_row(new))?;
    Ok(true)
}

/// Removes a role with its memberships, settings and comment.
pub fn drop_role(txn: &mut dyn Transaction, cluster: &Cluster, role: &Role) -> Result<()> {
    free_name(txn, NameClass::Role, 0, 0, &role.name)?;
    store::remove(txn, layout::ROLES, &store::oid_key(&[role.oid]))?;
    for member in &cluster.members {
        if member.role == role.oid || member.member == role.oid {
            erase(txn, MEMBERS, &[member.role, member.member])?;
        }
    }
    for settings in &cluster.settings {
        if settings.role == role.oid {
            erase(txn, SETTINGS, &[settings.database, settings.role])?;
        }
    }
    put_comment(txn, 0, Address::of(Address::ROLE, role.oid), None)
}

/// Replaces a database; false when it has a new name that is taken.
pub fn update_database(txn: &mut dyn Transaction, old: &Database, new: &Database) -> Result<bool> {
    if old.name != new.name {
        free_name(txn, NameClass::Database, 0, 0, &old.name)?;
        if !claim_name(txn, NameClass::Database, 0, 0, &new.name, new.oid)? {
            return Ok(false);
        }
    }
    put(txn, layout::DATABASES, &[new.oid], &database_row(new))?;
    Ok(true)
}

/// Removes the row and the name of a database, its settings, comments and privileges. Its tables
/// and schemas are the caller's affair.
pub fn drop_database(txn: &mut dyn Transaction, database: &Database) -> Result<()> {
    free_name(txn, NameClass::Database, 0, 0, &database.name)?;
    store::remove(txn, layout::DATABASES, &store::oid_key(&[database.oid]))?;
    let own = Address::of(Address::DATABASE, database.oid);
    put_comment(txn, 0, own, None)?;
    put_acl(txn, 0, own, None)?;
    for (tree, parts) in [(COMMENTS, 4), (PRIVILEGES, 4), (SETTINGS, 2)] {
        let mut keys = Vec::new();
        store::scan(txn, tree, &[database.oid], parts, |oids, _| {
            keys.push(oids.to_vec());
            Ok(())
        })?;
        for key in keys {
            erase(txn, tree, &key)?;
        }
    }
    forget_statistics(txn, &[database.oid])
}

/// Makes a role a member of another, or changes how.
pub fn put_member(txn: &mut dyn Transaction, member: Membership) -> Result<()> {
    let row = RowBuilder::new(2)
        .value(&member.grantor.to_be_bytes())
        .value(&[u8::from(member.admin)])
        .finish();
    put(txn, MEMBERS, &[member.role, member.member], &row)
}

/// Ends a membership.
pub fn drop_member(txn: &mut dyn Transaction, role: u32, member: u32) -> Result<()> {
    erase(txn, MEMBERS, &[role, member])
}

/// Replaces the settings of a role in a database.
pub fn put_settings(txn: &mut dyn Transaction, settings: &RoleSettings) -> Result<()> {
    let key = [settings.database, settings.role];
    if settings.values.is_empty() {
        return erase(txn, SETTINGS, &key);
    }
    let mut bytes = Vec::new();
    put_varint(&mut bytes, settings.values.len() as u64);
    for (name, value) in &settings.values {
        put_bytes(&mut bytes, name.as_bytes());
        put_bytes(&mut bytes, value.as_bytes());
    }
    put(
        txn,
        SETTINGS,
        &key,
        &RowBuilder::new(1).value(&bytes).finish(),
    )
}

/// Replaces the comment of an object, or takes it away.
pub fn put_comment(
    txn: &mut dyn Transaction,
    database: u32,
    address: Address,
    comment: Option<&str>,
) -> Result<()> {
    let key = address.key(database);
    match comment {
        Some(text) => {
            let row = RowBuilder::new(1).value(text.as_bytes()).finish();
            put(txn, COMMENTS, &key, &row)
        }
        None => erase(txn, COMMENTS, &key),
    }
}

/// Replaces the privileges of an object, or takes away what was said of them. A list that stands
/// for itself, of [`Address::DEFAULT_ACL`] or [`Address::PARAMETER_ACL`], goes on saying of what it
/// is.
pub fn put_acl(
    txn: &mut dyn Transaction,
    database: u32,
    address: Address,
    acl: Option<&Acl>,
) -> Result<()> {
    let key = address.key(database);
    match acl {
        Some(acl) => {
            let mut old = Vec::new();
            let subject = match txn.get(PRIVILEGES, &store::oid_key(&key), &mut old)? {
                true => Row::parse(&old)?.column(1).map(<[u8]>::to_vec),
                false => None,
            };
            put(txn, PRIVILEGES, &key, &acl_row(acl, subject.as_deref()))
        }
        None => erase(txn, PRIVILEGES, &key),
    }
}

fn acl_row(acl: &Acl, subject: Option<&[u8]>) -> Vec<u8> {
    let acl = access::encode(acl);
    match subject {
        None => RowBuilder::new(1).value(&acl).finish(),
        Some(subject) => RowBuilder::new(2).value(&acl).value(subject).finish(),
    }
}

/// Inserts or replaces what objects of a kind get when a role makes them.
pub fn put_default_acl(
    txn: &mut dyn Transaction,
    database: u32,
    default: &DefaultAcl,
    acl: &Acl,
) -> Result<()> {
    let key = Address::of(Address::DEFAULT_ACL, default.oid).key(database);
    let subject = default.encode();
    put(txn, PRIVILEGES, &key, &acl_row(acl, Some(&subject)))
}

/// Inserts or replaces the privileges of a parameter.
pub fn put_parameter_acl(txn: &mut dyn Transaction, oid: u32, name: &str, acl: &Acl) -> Result<()> {
    let key = Address::of(Address::PARAMETER_ACL, oid).key(0);
    let row = acl_row(acl, Some(name.as_bytes()));
    put(txn, PRIVILEGES, &key, &row)
}

/// Takes away what objects get that are made in a schema.
pub fn forget_defaults_in(txn: &mut dyn Transaction, database: u32, schema: u32) -> Result<()> {
    let mut keys = Vec::new();
    let prefix = [database, Address::DEFAULT_ACL];
    store::scan(txn, PRIVILEGES, &prefix, 4, |oids, row| {
        let default = DefaultAcl::decode(oids[2], Row::parse(row)?.column(1))?;
        if default.schema == schema {
            keys.push(oids.to_vec());
        }
        Ok(())
    })?;
    for key in keys {
        erase(txn, PRIVILEGES, &key)?;
    }
    Ok(())
}

/// Takes away what hangs on an object that is dropped, its columns included.
pub fn forget_object(
    txn: &mut dyn Transaction,
    database: u32,
    class: u32,
    object: u32,
) -> Result<()> {
    for tree in [COMMENTS, PRIVILEGES] {
        let mut keys = Vec::new();
        store::scan(txn, tree, &[database, class, object], 4, |oids, _| {
            keys.push(oids.to_vec());
            Ok(())
        })?;
        for key in keys {
            erase(txn, tree, &key)?;
        }
    }
    match class {
        Address::CLASS => forget_statistics(txn, &[database, object]),
        _ => Ok(()),
    }
}

/// Takes away what hangs on a column that is dropped.
pub fn forget_column(
    txn: &mut dyn Transaction,
    database: u32,
    table: u32,
    column: u32,
) -> Result<()> {
    let address = Address {
        class: Address::CLASS,
        object: table,
        column,
    };
    put_comment(txn, database, address, None)?;
    put_acl(txn, database, address, None)?;
    forget_statistics(txn, &[database, table, column])
}

/// Reads what one database sees of all that.
pub(super) fn load(txn: &mut dyn Reading, database: u32) -> Result<Cluster> {
    let mut cluster = Cluster {
        members: load_members(txn)?,
        settings: load_settings(txn)?,
        user_types: load_user_types(txn, database)?,
        routines: load_routines(txn, database)?,
        extensions: load_extensions(txn, database)?,
        casts: load_casts(txn, database)?,
        collations: load_collations(txn, database)?,
        operators: load_operators(txn, database)?,
        statistics: load_statistics(txn, database)?,
        ..Cluster::default()
    };
    for prefix in [0, database] {
        store::scan(txn, COMMENTS, &[prefix], 4, |oids, row| {
            let text = store::text(&Row::parse(row)?, 0)?;
            cluster.comments.insert(address_of(oids), text);
            Ok(())
        })?;
        store::scan(txn, PRIVILEGES, &[prefix], 4, |oids, row| {
            let address = address_of(oids);
            let said = Said::read(address, row)?;
            cluster.defaults.extend(said.default);
            if let Some(name) = said.parameter {
                cluster.parameters.insert(address.object, name);
            }
            cluster.acls.insert(address, said.acl);
            Ok(())
        })?;
    }
    Ok(cluster)
}

/// Reads the memberships of roles.
pub(super) fn load_members(txn: &mut dyn Reading) -> Result<Vec<Membership>> {
    let mut members = Vec::new();
    store::scan(txn, MEMBERS, &[], 2, |oids, row| {
        let row = Row::parse(row)?;
        members.push(Membership {
            role: oids[0],
            member: oids[1],
            grantor: store::number(&row, 0)?,
            admin: row.column(1).is_some_and(|bytes| bytes == [1]),
        });
        Ok(())
    })?;
    Ok(members)
}

/// Reads the settings of roles and databases.
pub(super) fn load_settings(txn: &mut dyn Reading) -> Result<Vec<RoleSettings>> {
    let mut settings = Vec::new();
    store::scan(txn, SETTINGS, &[], 2, |oids, row| {
        let row = Row::parse(row)?;
        let mut reader = Reader::new(row.column(0).unwrap_or_default());
        let count: usize = reader.varint_as()?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push((reader.str()?.to_owned(), reader.str()?.to_owned()));
        }
        settings.push(RoleSettings {
            database: oids[0],
            role: oids[1],
            values,
        });
        Ok(())
    })?;
    Ok(settings)
}

/// Reads the rows of a database in a tree of the catalog whose keys have so many parts.
fn load_rows<T>(
    txn: &mut dyn Reading,
    (tree, parts): (TreeId, usize),
    database: u32,
    decode: impl Fn(&[u32], &[u8]) -> Result<T>,
) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    store::scan(txn, tree, &[database], parts, |oids, row| {
        rows.push(decode(oids, row)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Reads the types that users have made in a database.
pub(super) fn load_user_types(txn: &mut dyn Reading, database: u32) -> Result<Vec<UserType>> {
    load_rows(txn, (USER_TYPES, 2), database, |_, row| {
        user_type::decode(row)
    })
}

/// Reads the functions and procedures of a database.
pub(super) fn load_routines(txn: &mut dyn Reading, database: u32) -> Result<Vec<Routine>> {
    load_rows(txn, (ROUTINES, 2), database, |_, row| routine::decode(row))
}

/// Reads the extensions of a database.
pub(super) fn load_extensions(
    txn: &mut dyn Reading,
    database: u32,
) -> Result<Vec<super::Extension>> {
    let of = (layout::EXTENSIONS, 2);
    load_rows(txn, of, database, |_, row| super::extension::decode(row))
}

/// Reads the casts that users have made in a database.
pub(super) fn load_casts(txn: &mut dyn Reading, database: u32) -> Result<Vec<super::OwnCast>> {
    load_rows(txn, (layout::CASTS, 3), database, |oids, row| {
        super::cast::decode(TypeId(oids[1]), TypeId(oids[2]), row)
    })
}

/// Reads the collations that users have made in a database.
pub(super) fn load_collations(
    txn: &mut dyn Reading,
    database: u32,
) -> Result<Vec<super::Collation>> {
    load_rows(txn, (layout::COLLATIONS, 2), database, |oids, row| {
        super::collation::decode(oids[1], row)
    })
}

/// Reads the operators that users have made in a database.
pub(super) fn load_operators(
    txn: &mut dyn Reading,
    database: u32,
) -> Result<Vec<super::OwnOperator>> {
    load_rows(txn, (layout::OPERATORS, 2), database, |oids, row| {
        super::operator::decode(oids[1], row)
    })
}

/// Reads what ANALYZE has found in a database.
fn load_statistics(
    txn: &mut dyn Reading,
    database: u32,
) -> Result<Vec<(statistics::Place, statistics::Known)>> {
    load_rows(txn, (STATISTICS, 4), database, |oids, row| {
        Ok((statistics::place_of(oids), statistics::decode(row)?))
    })
}

/// Forgets all that ANALYZE has found of a database, a table, or a column, by what the keys begin with.
fn forget_statistics(txn: &mut dyn Transaction, prefix: &[u32]) -> Result<()> {
    let mut keys = Vec::new();
    store::scan(txn, STATISTICS, prefix, 4, |oids, _| {
        keys.push(oids.to_vec());
        Ok(())
    })?;
    keys.iter().try_for_each(|key| erase(txn, STATISTICS, key))
}

/// What a row of privileges says.
pub(super) struct Said {
    /// The list.
    pub acl: Acl,
    /// Of which new objects, if it is a list of default privileges.
    pub default: Option<DefaultAcl>,
    /// Of which parameter, if it is a list of one.
    pub parameter: Option<String>,
}

impl Said {
    /// Reads the row of an address.
    pub(super) fn read(address: Address, row: &[u8]) -> Result<Said> {
        let row = Row::parse(row)?;
        let mut said = Said {
            acl: access::decode(row.column(0).unwrap_or_default())?,
            default: None,
            parameter: None,
        };
        match address.class {
            Address::DEFAULT_ACL => {
                said.default = Some(DefaultAcl::decode(address.object, row.column(1))?);
            }
            Address::PARAMETER_ACL => said.parameter = Some(store::text(&row, 1)?),
            _ => {}
        }
        Ok(said)
    }
}

/// The address that a key names, whose first part is the database.
pub(super) fn address_of(oids: &[u32]) -> Address {
    Address {
        class: oids[1],
        object: oids[2],
        column: oids[3],
    }
}

/// Inserts or replaces a row.
pub(super) fn put(txn: &mut dyn Transaction, tree: TreeId, key: &[u32], row: &[u8]) -> Result<()> {
    let key = store::oid_key(key);
    let mut old = Vec::new();
    let outcome = if txn.get(tree, &key, &mut old)? {
        txn.lock_row(tree, &key, RowLock::Update, LockWait::Block, &mut old)?;
        txn.update(tree, &key, row)?
    } else {
        txn.insert(tree, &key, row)?
    };
    match outcome {
        Inserted::Done => Ok(()),
        Inserted::Duplicate(_) => Err(Error::internal("tuple concurrently updated")),
    }
}

/// Deletes a row, if it is there.
pub(super) fn erase(txn: &mut dyn Transaction, tree: TreeId, key: &[u32]) -> Result<()> {
    let key = store::oid_key(key);
    let mut old = Vec::new();
    if txn.get(tree, &key, &mut old)? {
        txn.lock_row(tree, &key, RowLock::Update, LockWait::Block, &mut old)?;
        txn.delete(tree, &key)?;
    }
    Ok(())
}
