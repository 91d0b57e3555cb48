//! Who may do what: memberships of roles, and the privileges that GRANT gives.
//!
//! An object without a stored list of privileges has its owner's and PUBLIC's by default
//! ([`default_acl`]); the first GRANT or REVOKE writes the list out, as in PostgreSQL, and it is
//! printed as PostgreSQL prints it ([`types::acl`]).

use base::codec::{put_varint, Reader};
use base::{Error, Result, SqlState};

use super::cluster::Address;
use super::{
    system, Catalog, RelationKind, Role, Schema, Table, INFORMATION_SCHEMA, PG_CATALOG, PUBLIC,
    QUORATE, SUPERUSER,
};
use crate::local::is_local;
use functions::function_by_oid;
use functions::Function;
pub use types::acl::{AclItem, Privileges};
use types::TypeId;

/// The role whose only member is the owner of the current database.
pub const DATABASE_OWNER: u32 = 6_171;
/// The role that may read all tables.
pub const READ_ALL_DATA: u32 = 6_181;
/// The role that may write all tables.
pub const WRITE_ALL_DATA: u32 = 6_182;
/// The role whose members see what all sessions do.
pub const READ_ALL_STATS: u32 = 3_375;
/// The role whose members may interrupt the sessions of all but superusers.
pub const SIGNAL_BACKEND: u32 = 4_200;
/// The role whose members may ask for a checkpoint.
pub const CHECKPOINT: u32 = 4_544;

/// The role whose members see every setting.
pub const READ_ALL_SETTINGS: u32 = 3_374;
/// The role whose members may have the server read any file that it can read.
pub const READ_SERVER_FILES: u32 = 4_569;
/// The role whose members may have the server write any file that it can write.
pub const WRITE_SERVER_FILES: u32 = 4_570;

/// The roles that are there from the start: oid and name.
pub const PREDEFINED: [(u32, &str); 12] = [
    (DATABASE_OWNER, "pg_database_owner"),
    (READ_ALL_DATA, "pg_read_all_data"),
    (WRITE_ALL_DATA, "pg_write_all_data"),
    (3_373, "pg_monitor"),
    (READ_ALL_SETTINGS, "pg_read_all_settings"),
    (READ_ALL_STATS, "pg_read_all_stats"),
    (3_377, "pg_stat_scan_tables"),
    (READ_SERVER_FILES, "pg_read_server_files"),
    (WRITE_SERVER_FILES, "pg_write_server_files"),
    (4_571, "pg_execute_server_program"),
    (SIGNAL_BACKEND, "pg_signal_backend"),
    (CHECKPOINT, "pg_checkpoint"),
];

/// The members that predefined roles have from the start: role and member.
const PREDEFINED_MEMBERS: [(u32, u32); 3] = [(3_374, 3_373), (3_375, 3_373), (3_377, 3_373)];

/// The columns that relations of stored rows have beside their own, in the order in which GRANT
/// speaks of them; the last has the number -1.
pub const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"];

/// The number of a system column of a relation. Views have none.
pub fn system_column(table: &Table, name: &str) -> Option<i16> {
    let is_view = match table.kind {
        RelationKind::View => true,
        RelationKind::System => system::kind(table) == b'v',
        _ => false,
    };
    if is_view {
        return None;
    }
    let place = SYSTEM_COLUMNS.iter().position(|known| *known == name)?;
    i16::try_from(place).ok()?.checked_sub(6)
}

/// A column's number as it stands in an [`Address`]; that of a system column is negative.
pub fn column_in_address(number: i16) -> u32 {
    i32::from(number) as u32
}

/// One role is a member of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The role that has members.
    pub role: u32,
    /// The member.
    pub member: u32,
    /// Who made it one.
    pub grantor: u32,
    /// Whether the member may make others members.
    pub admin: bool,
}

/// Whether a role is there from the start, and for good.
pub fn is_predefined(role: u32) -> bool {
    role == SUPERUSER || PREDEFINED.iter().any(|known| known.0 == role)
}

/// The predefined roles and their memberships.
pub fn predefined() -> (Vec<Role>, Vec<Membership>) {
    let roles = PREDEFINED.map(|(oid, name)| Role {
        oid,
        name: name.to_owned(),
        ..Role::default()
    });
    let members = PREDEFINED_MEMBERS.map(|(role, member)| Membership {
        role,
        member,
        grantor: SUPERUSER,
        admin: false,
    });
    (roles.to_vec(), members.to_vec())
}

/// The kinds of objects that have privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Guarded {
    Table,
    Sequence,
    Column,
    Database,
    Schema,
    Function,
    Language,
    Tablespace,
    Type,
    Parameter,
    LargeObject,
    ForeignDataWrapper,
    ForeignServer,
}

impl Guarded {
    /// The kind of a letter, as `acldefault` takes them, but for 'S'.
    pub const fn lettered(letter: u8) -> Option<Guarded> {
        Some(match letter {
            b'c' => Guarded::Column,
            b'r' => Guarded::Table,
            b's' => Guarded::Sequence,
            b'd' => Guarded::Database,
            b'f' => Guarded::Function,
            b'l' => Guarded::Language,
            b'L' => Guarded::LargeObject,
            b'n' => Guarded::Schema,
            b'p' => Guarded::Parameter,
            b't' => Guarded::Tablespace,
            b'T' => Guarded::Type,
            b'F' => Guarded::ForeignDataWrapper,
            _ => return None,
        })
    }

    /// The catalog that lists such objects.
    pub const fn class(self) -> u32 {
        match self {
            Guarded::Table | Guarded::Sequence | Guarded::Column => Address::CLASS,
            Guarded::Database => Address::DATABASE,
            Guarded::Schema => Address::NAMESPACE,
            Guarded::Function => Address::PROC,
            Guarded::Language => Address::LANGUAGE,
            Guarded::Tablespace => Address::TABLESPACE,
            Guarded::Type => Address::TYPE,
            Guarded::Parameter => Address::PARAMETER_ACL,
            Guarded::LargeObject => Address::LARGE_OBJECT,
            Guarded::ForeignDataWrapper => Address::FOREIGN_DATA_WRAPPER,
            Guarded::ForeignServer => Address::FOREIGN_SERVER,
        }
    }

    /// All privileges that such an object has.
    pub const fn all(self) -> Privileges {
        match self {
            Guarded::Table => Privileges(0b111_1111),
            Guarded::Sequence => Privileges::USAGE
                .with(Privileges::SELECT)
                .with(Privileges::UPDATE),
            Guarded::Column => Privileges::INSERT
                .with(Privileges::SELECT)
                .with(Privileges::UPDATE)
                .with(Privileges::REFERENCES),
            Guarded::Database => Privileges::CREATE
                .with(Privileges::TEMPORARY)
                .with(Privileges::CONNECT),
            Guarded::Schema => Privileges::USAGE.with(Privileges::CREATE),
            Guarded::Function => Privileges::EXECUTE,
            Guarded::Language
            | Guarded::Type
            | Guarded::ForeignDataWrapper
            | Guarded::ForeignServer => Privileges::USAGE,
            Guarded::Tablespace => Privileges::CREATE,
            Guarded::Parameter => Privileges::SET.with(Privileges::ALTER_SYSTEM),
            Guarded::LargeObject => Privileges::SELECT.with(Privileges::UPDATE),
        }
    }

    /// What PUBLIC may do as long as nobody has said otherwise.
    pub const fn public(self) -> Privileges {
        match self {
            Guarded::Database => Privileges::TEMPORARY.with(Privileges::CONNECT),
            Guarded::Function => Privileges::EXECUTE,
            Guarded::Language | Guarded::Type => Privileges::USAGE,
            _ => Privileges::NONE,
        }
    }
}

/// The privileges of one object.
pub type Acl = Vec<AclItem>;

/// Whether PUBLIC may not call a function that is built in.
fn is_restricted(function: u32) -> bool {
    function_by_oid(function).is_some_and(Function::is_restricted)
}

/// The privileges of an object of which nothing was said.
pub fn default_acl(kind: Guarded, owner: u32) -> Acl {
    let mut acl = Vec::new();
    let public = kind.public();
    if !public.is_none() {
        acl.push(AclItem {
            grantee: 0,
            grantor: owner,
            privileges: public,
            options: Privileges::NONE,
        });
    }
    acl.push(AclItem {
        grantee: owner,
        grantor: owner,
        privileges: kind.all(),
        options: Privileges::NONE,
    });
    acl
}

/// Gives privileges to a role.
pub fn grant(acl: &mut Acl, given: AclItem) {
    let same = |item: &&mut AclItem| (item.grantee, item.grantor) == (given.grantee, given.grantor);
    match acl.iter_mut().find(same) {
        Some(item) => {
            item.privileges = item.privileges.with(given.privileges);
            item.options = item.options.with(given.options);
        }
        None => acl.push(given),
    }
}

/// Takes privileges from a role; with `options_only`, only the right to give them on.
pub fn revoke(acl: &mut Acl, taken: AclItem, options_only: bool) {
    for item in acl.iter_mut() {
        if (item.grantee, item.grantor) == (taken.grantee, taken.grantor) {
            item.options = item.options.without(taken.privileges);
            if !options_only {
                item.privileges = item.privileges.without(taken.privileges);
            }
        }
    }
    acl.retain(|item| !item.privileges.is_none());
}

/// Orders a list so that two that say the same are equal.
pub fn sort(acl: &mut Acl) {
    acl.sort_by_key(|item| (item.grantee, item.grantor));
}

/// As stored.
pub fn encode(acl: &Acl) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, acl.len() as u64);
    for item in acl {
        for number in [
            item.grantee,
            item.grantor,
            item.privileges.0,
            item.options.0,
        ] {
            put_varint(&mut out, u64::from(number));
        }
    }
    out
}

/// Reads what [`encode`] made.
///
/// # Errors
/// XX001 when it is something else.
pub fn decode(bytes: &[u8]) -> Result<Acl> {
    let mut reader = Reader::new(bytes);
    let count: usize = reader.varint_as()?;
    let mut acl = Vec::new();
    for _ in 0..count {
        acl.push(AclItem {
            grantee: reader.varint_as()?,
            grantor: reader.varint_as()?,
            privileges: Privileges(reader.varint_as()?),
            options: Privileges(reader.varint_as()?),
        });
    }
    reader
        .finish()
        .map_err(|_| Error::corrupted("a list of privileges with something after it"))?;
    Ok(acl)
}

/// 42501 for who lacks a privilege on an object.
pub fn denied(noun: &str, name: &str) -> Error {
    Error::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!("permission denied for {noun} {name}"),
    )
}

/// 42501 for who does not have its owner's privileges.
pub fn must_own(noun: &str, name: &str) -> Error {
    Error::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!("must be owner of {noun} {name}"),
    )
}

impl Catalog {
    /// Whether a role is there and a superuser.
    pub fn is_superuser(&self, role: u32) -> bool {
        self.role_by_oid(role).is_some_and(|known| known.superuser)
    }

    /// The role of an oid that sessions act as.
    ///
    /// # Errors
    /// 42704 when it is gone.
    pub fn known_role(&self, oid: u32) -> Result<&Role> {
        self.role_by_oid(oid).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("invalid role OID: {oid}"),
            )
        })
    }

    /// Whether a role is another, or a member of it, directly or not. Superusers are of every role.
    pub fn is_member(&self, member: u32, role: u32) -> bool {
        self.is_superuser(member) || self.roles_of(member, false).contains(&role)
    }

    /// Whether a role has the privileges of another without SET ROLE.
    pub fn has_privileges_of(&self, member: u32, role: u32) -> bool {
        self.is_superuser(member) || self.roles_of(member, true).contains(&role)
    }

    /// The role and all whose member it is; with `inherited`, only through roles that inherit.
    pub fn roles_of(&self, member: u32, inherited: bool) -> Vec<u32> {
        let mut found = vec![member];
        let mut at = 0;
        while at < found.len() {
            let role = found[at];
            at += 1;
            let inherits = self.role_by_oid(role).is_none_or(|known| known.inherit);
            if inherited && !inherits {
                continue;
            }
            if role == self.database.owner && !found.contains(&DATABASE_OWNER) {
                found.push(DATABASE_OWNER);
            }
            for membership in &self.members {
                if membership.member == role && !found.contains(&membership.role) {
                    found.push(membership.role);
                }
            }
        }
        found
    }

    /// Whether a role may make others members of another.
    pub fn is_admin(&self, member: u32, role: u32) -> bool {
        self.is_superuser(member) || {
            let roles = self.roles_of(member, false);
            let mut admins = self.members.iter().filter(|known| known.admin);
            admins.any(|known| known.role == role && roles.contains(&known.member))
        }
    }

    /// Who owns such an object; what is built in belongs to the first superuser.
    pub fn owner_of(&self, kind: Guarded, object: u32) -> u32 {
        let owner = match kind {
            Guarded::Database => self.database_by_oid(object).map(|known| known.owner),
            Guarded::Schema => self.schema_by_oid(object).map(|known| known.owner),
            Guarded::Table | Guarded::Sequence | Guarded::Column => {
                self.table_by_oid(object).map(|known| known.owner)
            }
            Guarded::Type => {
                let id = TypeId(object);
                let of_rows = || self.table_of_rows(id).map(|table| table.owner);
                let made = self.user_type(id).map(|known| known.owner);
                made.or_else(of_rows)
            }
            Guarded::Function => self.routine(object).map(|known| known.owner),
            _ => None,
        };
        owner.unwrap_or(SUPERUSER)
    }

    /// What was said of an object, or what holds without that.
    pub fn acl_of(&self, kind: Guarded, object: u32) -> Acl {
        if let Some(acl) = self.acls.get(&Address::of(kind.class(), object)) {
            return acl.clone();
        }
        let owner = self.owner_of(kind, object);
        let mut acl = default_acl(kind, owner);
        if kind == Guarded::Function && is_restricted(object) {
            acl.retain(|item| item.grantee != 0);
        }
        let open = match kind {
            Guarded::Schema => matches!(object, PG_CATALOG | PUBLIC | INFORMATION_SCHEMA | QUORATE),
            Guarded::Table => system::is_readable(object),
            _ => false,
        };
        let reader = match kind {
            Guarded::Table => system::reader(object),
            _ => None,
        };
        if let Some(grantee) = reader.or(open.then_some(0)) {
            acl.push(AclItem {
                grantee,
                grantor: owner,
                privileges: match kind {
                    Guarded::Schema => Privileges::USAGE,
                    _ => Privileges::SELECT,
                },
                options: Privileges::NONE,
            });
        }
        acl
    }

    /// Whether a role sees what the sessions of another do: `pg_stat_activity` and its kin.
    pub fn sees_sessions_of(&self, role: u32, other: u32) -> bool {
        self.has_privileges_of(role, READ_ALL_STATS) || self.has_privileges_of(role, other)
    }

    /// The comment on an object.
    pub fn comment(&self, address: Address) -> Option<&str> {
        if let Some(comment) = self.comments.get(&address) {
            return (!comment.is_empty()).then_some(comment.as_str());
        }
        system::comment(address)
    }

    /// What of these privileges a role has by an object's list.
    pub fn privileges(&self, role: u32, acl: &Acl, asked: Privileges) -> Privileges {
        if self.role_by_oid(role).is_some_and(|known| known.superuser) {
            return asked;
        }
        let roles = self.roles_of(role, true);
        let mut held = Privileges::NONE;
        for item in acl {
            if item.grantee == 0 || roles.contains(&item.grantee) {
                held = held.with(item.privileges);
            }
        }
        held.and(asked)
    }

    /// What of these privileges a role holds on an object as a whole.
    pub fn held(&self, role: u32, kind: Guarded, object: u32, asked: Privileges) -> Privileges {
        if self.role_by_oid(role).is_some_and(|known| known.superuser) {
            return asked;
        }
        let held = self.privileges(role, &self.acl_of(kind, object), asked);
        match held.has(asked) {
            true => held,
            false => held.with(self.held_everywhere(role, kind)).and(asked),
        }
    }

    /// Whether a role holds all of these privileges on an object as a whole.
    pub fn holds(&self, role: u32, kind: Guarded, object: u32, asked: Privileges) -> bool {
        self.held(role, kind, object, asked).has(asked)
    }

    /// Whether a role holds one of these privileges on an object as a whole.
    pub fn holds_any(&self, role: u32, kind: Guarded, object: u32, asked: Privileges) -> bool {
        !self.held(role, kind, object, asked).is_none()
    }

    /// Whether names in a schema are known to a role.
    pub fn may_look_into(&self, role: u32, schema: u32) -> bool {
        is_local(schema) || self.holds(role, Guarded::Schema, schema, Privileges::USAGE)
    }

    /// 42501 unless names in a schema are known to a role.
    ///
    /// # Errors
    /// 42501.
    pub fn check_look_into(&self, role: u32, schema: &Schema) -> Result<()> {
        match self.may_look_into(role, schema.oid) {
            true => Ok(()),
            false => Err(denied("schema", &schema.name)),
        }
    }

    /// Whether a role holds a privilege on a column of a table by that column's own list; on any
    /// column, for 0.
    pub fn holds_column(&self, role: u32, table: u32, column: u32, asked: Privileges) -> bool {
        let is_held = |column: u32| {
            let address = Address {
                class: Address::CLASS,
                object: table,
                column,
            };
            let acl = self.acls.get(&address);
            acl.is_some_and(|acl| self.privileges(role, acl, asked).has(asked))
        };
        match column {
            0 => {
                let columns = self.table_by_oid(table).map(|table| &table.columns);
                let columns = columns.into_iter().flatten().zip(1..);
                let mut kept = columns.filter(|(column, _)| !column.dropped);
                kept.any(|(_, number)| is_held(number))
            }
            column => is_held(column),
        }
    }

    /// Whether a role may read these columns of a table, by their places, as far as privileges go.
    pub fn may_read(
        &self,
        role: u32,
        table: u32,
        mut columns: impl Iterator<Item = usize>,
    ) -> bool {
        let see = Privileges::SELECT;
        self.holds(role, Guarded::Table, table, see)
            || columns.all(|place| {
                let number = u32::try_from(place)
                    .ok()
                    .and_then(|place| place.checked_add(1));
                number.is_some_and(|number| self.holds_column(role, table, number, see))
            })
    }

    /// What a role holds on all objects of a kind, by the roles that are there from the start.
    fn held_everywhere(&self, role: u32, kind: Guarded) -> Privileges {
        let (read, write) = match kind {
            Guarded::Schema => (Privileges::USAGE, Privileges::USAGE),
            Guarded::Table | Guarded::Column | Guarded::Sequence => {
                let write = Privileges::INSERT.with(Privileges::UPDATE);
                (Privileges::SELECT, write.with(Privileges::DELETE))
            }
            _ => return Privileges::NONE,
        };
        [(READ_ALL_DATA, read), (WRITE_ALL_DATA, write)]
            .into_iter()
            .filter(|(group, _)| self.has_privileges_of(role, *group))
            .fold(Privileges::NONE, |held, (_, given)| held.with(given))
    }

    /// Whether a role may set a parameter that only superusers set otherwise, or write it with ALTER
    /// SYSTEM.
    pub fn holds_parameter(&self, role: u32, name: &str, asked: Privileges) -> bool {
        let mut known = self.parameters.iter();
        let known = known.find(|known| known.1.eq_ignore_ascii_case(name));
        self.is_superuser(role)
            || known.is_some_and(|(oid, _)| self.holds(role, Guarded::Parameter, *oid, asked))
    }

    /// In whose name a role gives or takes these privileges on an object, and which of them it may:
    /// the owner's if it has that, or else the role among its own that may most.
    pub fn best_grantor(
        &self,
        role: u32,
        owner: u32,
        acl: &Acl,
        asked: Privileges,
    ) -> (u32, Privileges) {
        if self.has_privileges_of(role, owner) {
            return (owner, asked);
        }
        let mut best = (role, Privileges::NONE);
        for own in self.roles_of(role, true) {
            let given = acl.iter().filter(|item| item.grantee == own);
            let options = given
                .fold(Privileges::NONE, |held, item| held.with(item.options))
                .and(asked);
            if options == asked {
                return (own, options);
            }
            if options.0.count_ones() > best.1 .0.count_ones() {
                best = (own, options);
            }
        }
        best
    }

    /// What of these privileges a role may give to others.
    pub fn grantable(&self, role: u32, owner: u32, acl: &Acl) -> Privileges {
        if self.has_privileges_of(role, owner) {
            return Privileges(u32::MAX);
        }
        let roles = self.roles_of(role, true);
        acl.iter()
            .filter(|item| roles.contains(&item.grantee))
            .fold(Privileges::NONE, |held, item| held.with(item.options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_and_print() {
        let mut acl = default_acl(Guarded::Table, 10);
        grant(
            &mut acl,
            AclItem {
                grantee: 20,
                grantor: 10,
                privileges: Privileges::SELECT.with(Privileges::INSERT),
                options: Privileges::SELECT,
            },
        );
        assert_eq!(decode(&encode(&acl)).unwrap(), acl);
        let name = |oid: u32| format!("r-{oid}");
        let shown: Vec<_> = acl.iter().map(|item| item.print(&name)).collect();
        assert_eq!(
            shown,
            ["\"r-10\"=arwdDxt/\"r-10\"", "\"r-20\"=ar*/\"r-10\""]
        );
        let taken = AclItem {
            privileges: Privileges::SELECT,
            ..acl[1]
        };
        revoke(&mut acl, taken, false);
        assert_eq!(acl[1].privileges, Privileges::INSERT);
        assert!(acl[1].options.is_none());
    }
}
