//! Roles: CREATE, ALTER, DROP, membership, and the settings that a role begins with.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterRoleSetStmt, AlterRoleStmt, CreateRoleStmt, DefElem, DropRoleStmt, GrantRoleStmt, Node,
    RoleSpec, RoleSpecType, RoleStmtType,
};

use super::super::utility::{option_text, tag};
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::table::cut_name;
use crate::catalog::access::{Membership, DATABASE_OWNER};
use crate::catalog::cluster::{self, RoleSettings};
use crate::catalog::{Catalog, Object, Role};
use crate::functions::scram;
use crate::parser::{self, NodeEnum};
use crate::types::{self, Datum, TypeId, NO_TYPMOD};

fn denied(message: impl Into<String>) -> Error {
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

/// 42704.
pub(super) fn no_role(name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("role \"{name}\" does not exist"),
    )
}

/// Roles that options name: `IN ROLE`, `ROLE`, `ADMIN`.
#[derive(Default)]
struct Named {
    of: Vec<String>,
    members: Vec<String>,
    admins: Vec<String>,
}

impl Session {
    /// The role whose privileges count.
    pub(super) fn current_role(&mut self, catalog: &Catalog) -> Result<Role> {
        let name = self.shared.settings.current_user();
        catalog.role(name).cloned().ok_or_else(|| no_role(name))
    }

    /// The role that a name or a keyword means.
    pub(super) fn role_of(&mut self, catalog: &Catalog, spec: &RoleSpec) -> Result<Role> {
        let name = match RoleSpecType::try_from(spec.roletype) {
            Ok(RoleSpecType::RolespecCurrentRole | RoleSpecType::RolespecCurrentUser) => {
                self.shared.settings.current_user().to_owned()
            }
            Ok(RoleSpecType::RolespecSessionUser) => self.shared.settings.session_user().to_owned(),
            Ok(RoleSpecType::RolespecPublic) => "public".to_owned(),
            _ => spec.rolename.clone(),
        };
        catalog.role(&name).cloned().ok_or_else(|| no_role(&name))
    }

    pub(super) fn create_role(
        &mut self,
        text: &str,
        create: &CreateRoleStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let name = cut_name(&create.role);
        let mut role = Role {
            oid: self.new_oid()?,
            login: create.stmt_type == RoleStmtType::RolestmtUser as i32,
            ..Role::default()
        };
        let named = self.role_options(text, &mut role, &create.options, sink)?;
        if !own.superuser {
            let special = [
                (role.superuser, "must be superuser to create superusers"),
                (
                    role.replication,
                    "must be superuser to create replication users",
                ),
                (
                    role.bypass_rls,
                    "must be superuser to create bypassrls users",
                ),
                (!own.create_role, "permission denied to create role"),
            ];
            if let Some((_, message)) = special.into_iter().find(|special| special.0) {
                return Err(denied(message));
            }
        }
        if name.starts_with("pg_") {
            return Err(Error::new(
                SqlState::of("42939"),
                format!("role name \"{name}\" is reserved"),
            )
            .with_detail("Role names starting with \"pg_\" are reserved."));
        }
        role.name = name;
        let exists = catalog.role(&role.name).is_some();
        let inserted = match &mut self.open {
            Some(open) if !exists => cluster::insert_role(open.txn.as_mut(), &role)?,
            _ => false,
        };
        if !inserted {
            return Err(Error::new(
                SqlState::DUPLICATE_OBJECT,
                format!("role \"{}\" already exists", role.name),
            ));
        }
        let link = |session: &mut Session, group: u32, member: u32, admin: bool| {
            session.put_member(Membership {
                role: group,
                member,
                grantor: own.oid,
                admin,
            })
        };
        for group in &named.of {
            let group = catalog.role(group).ok_or_else(|| no_role(group))?.oid;
            link(self, group, role.oid, false)?;
        }
        for (names, admin) in [(&named.members, false), (&named.admins, true)] {
            for member in names {
                let member = catalog.role(member).ok_or_else(|| no_role(member))?.oid;
                link(self, role.oid, member, admin)?;
            }
        }
        Ok(tag("CREATE ROLE"))
    }

    fn put_member(&mut self, member: Membership) -> Result<()> {
        match &mut self.open {
            Some(open) => cluster::put_member(open.txn.as_mut(), member),
            None => Err(Error::internal("nothing is open")),
        }
    }

    /// Takes the options of CREATE and ALTER ROLE.
    fn role_options(
        &mut self,
        text: &str,
        role: &mut Role,
        options: &[Node],
        sink: &mut dyn Sink,
    ) -> Result<Named> {
        let mut named = Named::default();
        let mut seen: Vec<&str> = Vec::new();
        for node in options {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            if seen.contains(&option.defname.as_str()) {
                let message = "conflicting or redundant options";
                let error = Error::new(SqlState::SYNTAX_ERROR, message);
                let position = parser::char_position(text, option.location);
                return Err(match position {
                    Some(position) => error.at(position),
                    None => error,
                });
            }
            seen.push(&option.defname);
            let on = || option_text(option) == "true";
            match option.defname.as_str() {
                "superuser" => role.superuser = on(),
                "inherit" => role.inherit = on(),
                "createrole" => role.create_role = on(),
                "createdb" => role.create_database = on(),
                "canlogin" => role.login = on(),
                "isreplication" => role.replication = on(),
                "bypassrls" => role.bypass_rls = on(),
                "connectionlimit" => {
                    let limit = option_text(option).parse().unwrap_or(-2);
                    if limit < -1 {
                        return Err(Error::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            format!("invalid connection limit: {}", option_text(option)),
                        ));
                    }
                    role.connection_limit = limit;
                }
                "password" => role.password = self.password(option, sink)?,
                "validUntil" => {
                    let text = option_text(option);
                    let ty = TypeId::TIMESTAMPTZ;
                    role.valid_until = match types::input(&self.eval, ty, NO_TYPMOD, &text)? {
                        Datum::TimestampTz(until) => Some(until),
                        _ => None,
                    };
                }
                "sysid" => {
                    let body = Error::new(
                        SqlState::SUCCESSFUL_COMPLETION,
                        "SYSID can no longer be specified",
                    );
                    self.notice(NoticeSeverity::Notice, body, sink)?;
                }
                "addroleto" => named.of = role_names(option),
                "rolemembers" => named.members = role_names(option),
                "adminmembers" => named.admins = role_names(option),
                other => return Err(Error::unsupported(format!("the role option {other}"))),
            }
        }
        Ok(named)
    }

    /// What is kept of a password; none for NULL and the empty one.
    fn password(&mut self, option: &DefElem, sink: &mut dyn Sink) -> Result<Option<String>> {
        if option.arg.is_none() {
            return Ok(None);
        }
        let text = option_text(option);
        if text.is_empty() {
            let body = Error::new(
                SqlState::SUCCESSFUL_COMPLETION,
                "empty string is not a valid password, clearing password",
            );
            self.notice(NoticeSeverity::Notice, body, sink)?;
            return Ok(None);
        }
        if scram::is_verifier(&text) {
            return Ok(Some(text));
        }
        let secret = self.shared.env.secret();
        Ok(Some(scram::verifier(&text, &secret[..scram::SALT_BYTES])))
    }

    pub(super) fn alter_role(
        &mut self,
        text: &str,
        alter: &AlterRoleStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let spec = alter
            .role
            .as_ref()
            .ok_or_else(|| Error::internal("ALTER ROLE of nothing"))?;
        let old = self.role_of(&catalog, spec)?;
        check_not_predefined(&old)?;
        let mut new = old.clone();
        let named = self.role_options(text, &mut new, &alter.options, sink)?;
        let special = old.superuser
            || new.superuser != old.superuser
            || new.replication != old.replication
            || new.bypass_rls != old.bypass_rls;
        let password_only = Role {
            password: new.password.clone(),
            ..old.clone()
        } == new;
        if !own.superuser {
            let own_password = old.oid == own.oid && password_only;
            if special && !own_password {
                let what = match old.superuser || new.superuser {
                    true => "must be superuser to alter superuser roles or change superuser attribute",
                    false if new.replication != old.replication => {
                        "must be superuser to alter replication roles or change replication attribute"
                    }
                    false => "must be superuser to change bypassrls attribute",
                };
                return Err(denied(what));
            }
            if !own.create_role && !own_password {
                return Err(denied("permission denied"));
            }
        }
        if let Some(open) = &mut self.open {
            cluster::update_role(open.txn.as_mut(), &old, &new)?;
        }
        for member in &named.members {
            let member = catalog.role(member).ok_or_else(|| no_role(member))?;
            match alter.action > 0 {
                true => self.add_member(&catalog, &old, member, false, own.oid, sink)?,
                false => self.remove_member(&catalog, &old, member, false, sink)?,
            }
        }
        Ok(tag("ALTER ROLE"))
    }

    pub(super) fn drop_roles(
        &mut self,
        drop: &DropRoleStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        if !own.superuser && !own.create_role {
            return Err(denied("permission denied to drop role"));
        }
        let mut dropped: Vec<u32> = Vec::new();
        for node in &drop.roles {
            let Some(NodeEnum::RoleSpec(spec)) = &node.node else {
                continue;
            };
            let role = match self.role_of(&catalog, spec) {
                Ok(role) => role,
                Err(missing) if drop.missing_ok => {
                    let message = format!("{}, skipping", missing.message());
                    let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
                    self.notice(NoticeSeverity::Notice, body, sink)?;
                    continue;
                }
                Err(missing) => return Err(missing),
            };
            let in_use = |message: &str| Error::new(SqlState::OBJECT_IN_USE, message);
            if role.oid == own.oid {
                return Err(in_use("current user cannot be dropped"));
            }
            if role.name == self.shared.settings.session_user() {
                return Err(in_use("session user cannot be dropped"));
            }
            if role.superuser && !own.superuser {
                return Err(denied("must be superuser to drop superusers"));
            }
            let needed = self.role_is_needed(&catalog, &role)?;
            if !needed.is_empty() {
                return Err(Error::new(
                    SqlState::of("2BP01"),
                    format!(
                        "role \"{}\" cannot be dropped because some objects depend on it",
                        role.name
                    ),
                )
                .with_detail(needed.join("\n")));
            }
            if let Some(open) = &mut self.open {
                // The memberships of those dropped before are gone already.
                let members = catalog.members.iter().copied();
                let is_gone = |oid: &u32| dropped.contains(oid);
                let members =
                    members.filter(|known| ![known.role, known.member].iter().any(is_gone));
                let kept = cluster::Cluster {
                    members: members.collect(),
                    settings: catalog.settings.clone(),
                    ..cluster::Cluster::default()
                };
                cluster::drop_role(open.txn.as_mut(), &kept, &role)?;
                dropped.push(role.oid);
            }
        }
        Ok(tag("DROP ROLE"))
    }

    /// What a role owns or was given, as messages list it; other databases are looked into too.
    fn role_is_needed(&mut self, catalog: &Catalog, role: &Role) -> Result<Vec<String>> {
        let mut needed = Vec::new();
        let search_path = self.search_path(catalog);
        for database in &catalog.databases {
            if database.owner == role.oid {
                needed.push(format!("owner of database {}", database.name));
            }
        }
        for schema in catalog.schemas.iter().filter(|s| s.owner == role.oid) {
            needed.push(format!("owner of schema {}", schema.name));
        }
        for table in catalog.tables.iter().filter(|t| t.owner == role.oid) {
            let shown = Object::Relation(table.oid).describe(catalog, &search_path);
            needed.push(format!("owner of {shown}"));
        }
        for (address, acl) in &catalog.acls {
            let named = |item: &crate::catalog::access::AclItem| {
                item.grantee == role.oid || item.grantor == role.oid
            };
            if !acl.iter().any(named) {
                continue;
            }
            let what = match address.class {
                cluster::Address::DATABASE => {
                    let database = catalog.database_by_oid(address.object);
                    let name = database.map_or("", |database| &database.name);
                    format!("database {name}")
                }
                cluster::Address::NAMESPACE => {
                    Object::Schema(address.object).describe(catalog, &search_path)
                }
                _ => match usize::try_from(address.column) {
                    Ok(column @ 1..) => Object::Column(address.object, column - 1),
                    _ => Object::Relation(address.object),
                }
                .describe(catalog, &search_path),
            };
            needed.push(format!("privileges for {what}"));
        }
        for database in catalog.databases.clone() {
            if database.oid == catalog.database.oid {
                continue;
            }
            let count = self.owned_elsewhere(&database.name, role.oid)?;
            if count > 0 {
                let plural = if count == 1 { "" } else { "s" };
                needed.push(format!(
                    "{count} object{plural} in database {}",
                    database.name
                ));
            }
        }
        Ok(needed)
    }

    fn owned_elsewhere(&mut self, database: &str, role: u32) -> Result<usize> {
        let version = self.shared.engine.catalog_version();
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let loaded = crate::catalog::store::load(open.txn.as_mut(), version, database)?;
        Ok(loaded.map_or(0, |other| {
            let tables = other.tables.iter().filter(|table| table.owner == role);
            let schemas = other.schemas.iter().filter(|schema| schema.owner == role);
            tables.count() + schemas.count()
        }))
    }

    /// GRANT role TO role, and REVOKE.
    pub(super) fn grant_roles(
        &mut self,
        grant: &GrantRoleStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let admin = grant.opt.iter().any(|node| match &node.node {
            Some(NodeEnum::DefElem(option)) => {
                option.defname == "admin" && option_text(option) != "false"
            }
            _ => false,
        });
        for node in &grant.granted_roles {
            let Some(NodeEnum::AccessPriv(named)) = &node.node else {
                continue;
            };
            let name = &named.priv_name;
            let role = catalog.role(name).cloned().ok_or_else(|| no_role(name))?;
            for node in &grant.grantee_roles {
                let Some(NodeEnum::RoleSpec(spec)) = &node.node else {
                    continue;
                };
                let member = self.role_of(&catalog, spec)?;
                check_may_grant(&catalog, &own, &role)?;
                let catalog = self.current_catalog()?;
                match grant.is_grant {
                    true => self.add_member(&catalog, &role, &member, admin, own.oid, sink)?,
                    false => self.remove_member(&catalog, &role, &member, admin, sink)?,
                }
                self.changed_catalog();
            }
        }
        Ok(tag(if grant.is_grant {
            "GRANT ROLE"
        } else {
            "REVOKE ROLE"
        }))
    }

    fn add_member(
        &mut self,
        catalog: &Catalog,
        role: &Role,
        member: &Role,
        admin: bool,
        grantor: u32,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if role.oid == DATABASE_OWNER {
            return Err(Error::new(
                SqlState::of("0LP01"),
                format!("role \"{}\" cannot have explicit members", role.name),
            ));
        }
        if catalog.roles_of(role.oid, false).contains(&member.oid) {
            return Err(Error::new(
                SqlState::of("0LP01"),
                format!(
                    "role \"{}\" is a member of role \"{}\"",
                    role.name, member.name
                ),
            ));
        }
        let known = |known: &&Membership| (known.role, known.member) == (role.oid, member.oid);
        let already = catalog.members.iter().find(known);
        if already.is_some_and(|already| already.admin || !admin) {
            let message = format!(
                "role \"{}\" is already a member of role \"{}\"",
                member.name, role.name
            );
            let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
            return self.notice(NoticeSeverity::Notice, body, sink);
        }
        self.put_member(Membership {
            role: role.oid,
            member: member.oid,
            grantor,
            admin,
        })
    }

    fn remove_member(
        &mut self,
        catalog: &Catalog,
        role: &Role,
        member: &Role,
        admin_only: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let known = |known: &&Membership| (known.role, known.member) == (role.oid, member.oid);
        let Some(found) = catalog.members.iter().find(known).copied() else {
            let message = format!(
                "role \"{}\" is not a member of role \"{}\"",
                member.name, role.name
            );
            let body = Error::new(SqlState::of("01000"), message);
            return self.notice(NoticeSeverity::Warning, body, sink);
        };
        if admin_only {
            return self.put_member(Membership {
                admin: false,
                ..found
            });
        }
        match &mut self.open {
            Some(open) => cluster::drop_member(open.txn.as_mut(), role.oid, member.oid),
            None => Err(Error::internal("nothing is open")),
        }
    }

    /// ALTER ROLE … SET.
    pub(super) fn alter_role_set(&mut self, alter: &AlterRoleSetStmt) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let role = match &alter.role {
            Some(spec) => {
                let role = self.role_of(&catalog, spec)?;
                check_not_predefined(&role)?;
                let allowed =
                    own.superuser || role.oid == own.oid || (own.create_role && !role.superuser);
                if !allowed {
                    return Err(match role.superuser {
                        true => denied("must be superuser to alter superusers"),
                        false => denied("permission denied"),
                    });
                }
                role.oid
            }
            None if own.superuser => 0,
            None => return Err(denied("must be superuser to alter settings globally")),
        };
        let database = match alter.database.as_str() {
            "" => 0,
            name => super::database::named(&catalog, name)?.oid,
        };
        let set = alter.setstmt.as_ref();
        let set = set.ok_or_else(|| Error::internal("ALTER ROLE SET of nothing"))?;
        self.change_settings(&catalog, database, role, set)?;
        Ok(tag("ALTER ROLE"))
    }

    /// Changes the settings of a role in a database as SET and RESET say.
    pub(super) fn change_settings(
        &mut self,
        catalog: &Catalog,
        database: u32,
        role: u32,
        set: &pg_query::protobuf::VariableSetStmt,
    ) -> Result<()> {
        let same = |known: &&RoleSettings| (known.database, known.role) == (database, role);
        let mut settings = match catalog.settings.iter().find(same) {
            Some(known) => known.clone(),
            None => RoleSettings {
                database,
                role,
                values: Vec::new(),
            },
        };
        match self.setting_given(set)? {
            None => settings.values.clear(),
            Some((name, value)) => {
                let place = settings.values.iter().position(|known| known.0 == name);
                match (place, value) {
                    (Some(place), Some(value)) => settings.values[place].1 = value,
                    (Some(place), None) => {
                        settings.values.remove(place);
                    }
                    (None, Some(value)) => settings.values.push((name, value)),
                    (None, None) => {}
                }
            }
        }
        match &mut self.open {
            Some(open) => cluster::put_settings(open.txn.as_mut(), &settings),
            None => Err(Error::internal("nothing is open")),
        }
    }

    /// ALTER ROLE … RENAME TO.
    pub(super) fn rename_role(&mut self, old: &str, new: &str) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let role = catalog.role(old).cloned().ok_or_else(|| no_role(old))?;
        check_not_predefined(&role)?;
        if role.name == self.shared.settings.session_user() {
            return Err(Error::unsupported("session user cannot be renamed"));
        }
        if role.oid == own.oid {
            return Err(Error::unsupported("current user cannot be renamed"));
        }
        if !own.superuser && (role.superuser || !own.create_role) {
            return Err(match role.superuser {
                true => denied("must be superuser to rename superusers"),
                false => denied("permission denied to rename role"),
            });
        }
        let renamed = Role {
            name: cut_name(new),
            ..role.clone()
        };
        let free = catalog.role(&renamed.name).is_none();
        let done = match &mut self.open {
            Some(open) if free => cluster::update_role(open.txn.as_mut(), &role, &renamed)?,
            _ => false,
        };
        match done {
            true => Ok(tag("ALTER ROLE")),
            false => Err(Error::new(
                SqlState::DUPLICATE_OBJECT,
                format!("role \"{}\" already exists", renamed.name),
            )),
        }
    }
}

fn role_names(option: &DefElem) -> Vec<String> {
    let Some(NodeEnum::List(list)) = option.arg.as_ref().and_then(|arg| arg.node.as_ref()) else {
        return Vec::new();
    };
    let names = list.items.iter().filter_map(|node| match &node.node {
        Some(NodeEnum::RoleSpec(spec)) => Some(spec.rolename.clone()),
        _ => None,
    });
    names.collect()
}

fn check_not_predefined(role: &Role) -> Result<()> {
    match role.name.starts_with("pg_") {
        true => Err(Error::new(
            SqlState::of("42939"),
            format!("role name \"{}\" is reserved", role.name),
        )
        .with_detail("Cannot alter reserved roles.")),
        false => Ok(()),
    }
}

fn check_may_grant(catalog: &Catalog, own: &Role, role: &Role) -> Result<()> {
    if role.superuser {
        return match own.superuser {
            true => Ok(()),
            false => Err(denied("must be superuser to alter superusers")),
        };
    }
    match own.create_role || catalog.is_admin(own.oid, role.oid) {
        true => Ok(()),
        false => Err(denied(format!(
            "must have admin option on role \"{}\"",
            role.name
        ))),
    }
}
