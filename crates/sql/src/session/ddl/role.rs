//! Roles: CREATE, ALTER, DROP. Who is a member of whom is in [`super::members`], with what settings
//! a role begins in [`super::role_settings`].

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterRoleStmt, CreateRoleStmt, DefElem, DropRoleStmt, Node, RoleSpec, RoleSpecType,
    RoleStmtType,
};

use super::super::utility::{option_text, tag};
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::table::cut_name;
use catalog::access::{is_predefined, AclItem, Guarded};
use catalog::cluster::{self, Address};
use catalog::local::is_local;
use catalog::{system, Catalog, Object, Role, SUPERUSER};
use functions::{self, scram};
use syntax::parser::{self, NodeEnum};
use types::{self, Datum, TypeId, NO_TYPMOD};

pub(super) fn denied(message: impl Into<String>) -> Error {
    Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

/// 42704.
pub(super) fn no_role(name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("role \"{name}\" does not exist"),
    )
}

/// What the options of a statement say besides what becomes of the role's own attributes.
#[derive(Default)]
struct Named {
    /// `IN ROLE`, `ROLE`, `ADMIN`.
    of: Vec<RoleSpec>,
    members: Vec<RoleSpec>,
    admins: Vec<RoleSpec>,
    /// All options that are given, by PostgreSQL's names of them.
    given: Vec<String>,
}

impl Named {
    fn has(&self, option: &str) -> bool {
        self.given.iter().any(|given| given == option)
    }
}

impl Session {
    /// The role whose privileges count. One that is gone may do nothing.
    pub(super) fn current_role(&mut self, catalog: &Catalog) -> Result<Role> {
        let oid = self.shared.settings.current_role();
        let gone = || Role {
            oid,
            ..Role::default()
        };
        Ok(catalog.role_by_oid(oid).cloned().unwrap_or_else(gone))
    }

    /// The role that a name or a keyword means.
    pub(super) fn role_of(&mut self, catalog: &Catalog, spec: &RoleSpec) -> Result<Role> {
        let settings = &self.shared.settings;
        match RoleSpecType::try_from(spec.roletype) {
            Ok(RoleSpecType::RolespecCurrentRole | RoleSpecType::RolespecCurrentUser) => {
                catalog.known_role(settings.current_role()).cloned()
            }
            Ok(RoleSpecType::RolespecSessionUser) => {
                catalog.known_role(settings.session_role()).cloned()
            }
            Ok(RoleSpecType::RolespecPublic) => Err(no_role("public")),
            _ => {
                let name = &spec.rolename;
                catalog.role(name).cloned().ok_or_else(|| no_role(name))
            }
        }
    }

    pub(in crate::session) fn create_role(
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
        role.name.clone_from(&name);
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
        check_not_reserved(&name)?;
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
        self.changed_catalog();
        let made = std::slice::from_ref(&role.oid);
        for spec in &named.of {
            let catalog = self.current_catalog()?;
            let group = self.role_of(&catalog, spec)?;
            self.add_members(&group, made, false, own.oid, sink)?;
        }
        for (specs, admin) in [(&named.admins, true), (&named.members, false)] {
            let members = self.roles_named(specs)?;
            self.add_members(&role, &members, admin, own.oid, sink)?;
        }
        Ok(tag("CREATE ROLE"))
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
        for node in options {
            let Some(NodeEnum::DefElem(option)) = &node.node else {
                continue;
            };
            if named.has(&option.defname) {
                let message = "conflicting or redundant options";
                let error = Error::new(SqlState::SYNTAX_ERROR, message);
                let position = parser::char_position(text, option.location);
                return Err(match position {
                    Some(position) => error.at(position),
                    None => error,
                });
            }
            named.given.push(option.defname.clone());
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
                "password" => {
                    let name = role.name.clone();
                    role.password = self.password(&name, option, sink)?;
                }
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
                "addroleto" => named.of = role_specs(option),
                "rolemembers" => named.members = role_specs(option),
                "adminmembers" => named.admins = role_specs(option),
                other => return Err(Error::unsupported(format!("the role option {other}"))),
            }
        }
        Ok(named)
    }

    /// What is kept of a password; none for NULL and the empty one.
    fn password(
        &mut self,
        role: &str,
        option: &DefElem,
        sink: &mut dyn Sink,
    ) -> Result<Option<String>> {
        if option.arg.is_none() {
            return Ok(None);
        }
        let text = option_text(option);
        if text.is_empty() || scram::is_verifier(&text) && scram::is_of_empty(&text, role) {
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

    pub(in crate::session) fn alter_role(
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
        check_may_alter(&own, &old, &named)?;
        if let Some(open) = &mut self.open {
            cluster::update_role(open.txn.as_mut(), &old, &new)?;
        }
        self.changed_catalog();
        let members = self.roles_named(&named.members)?;
        match alter.action > 0 {
            true => self.add_members(&old, &members, false, own.oid, sink)?,
            false => self.remove_members(&old, &members, false, sink)?,
        }
        Ok(tag("ALTER ROLE"))
    }

    pub(in crate::session) fn drop_roles(
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
            if spec.roletype != RoleSpecType::RolespecCstring as i32 {
                let message = "cannot use special role specifier in DROP ROLE";
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
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
            if role.oid == self.shared.settings.session_role() {
                return Err(in_use("session user cannot be dropped"));
            }
            if role.superuser && !own.superuser {
                return Err(denied("must be superuser to drop superusers"));
            }
            if is_predefined(role.oid) {
                return Err(Error::new(
                    SqlState::of("2BP01"),
                    format!(
                        "cannot drop role {} because it is required by the database system",
                        role.name
                    ),
                ));
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
                    settings: catalog.settings.to_vec(),
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
        let search_path = self.search_path(catalog);
        let mut needed = owned_by(catalog, role.oid, &search_path);
        for (address, acl) in &catalog.acls {
            let named = |item: &AclItem| item.grantee == role.oid || item.grantor == role.oid;
            // What an owner holds goes with what it owns.
            if !acl.iter().any(named) || owner_of(catalog, *address) == Some(role.oid) {
                continue;
            }
            let what = described(catalog, *address, &search_path);
            needed.push((address.object, format!("privileges for {what}")));
        }
        for table in &catalog.tables {
            for policy in table
                .policies
                .iter()
                .filter(|own| own.roles.contains(&role.oid))
            {
                let what = Object::Policy(policy.oid).describe(catalog, &search_path);
                needed.push((policy.oid, format!("target of {what}")));
            }
        }
        needed.extend(self.large_objects_needing(catalog.database.oid, role.oid)?);
        needed.sort_by_key(|known| known.0);
        let mut needed: Vec<_> = needed.into_iter().map(|known| known.1).collect();
        for database in &catalog.databases {
            if database.oid == catalog.database.oid {
                continue;
            }
            let count = self.owned_elsewhere(&database.name, role.oid)?
                + self.large_objects_needing(database.oid, role.oid)?.len();
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
        let version = self.shared.engine.transactions.catalog_version();
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let loaded = catalog::store::load(open.txn.as_mut(), version, database)?;
        Ok(loaded.map_or(0, |other| {
            let tables = other.tables.iter().filter(|table| table.owner == role);
            let schemas = other.schemas.iter().filter(|schema| schema.owner == role);
            let policies = other.tables.iter().flat_map(|table| &table.policies);
            let policies = policies.filter(|policy| policy.roles.contains(&role));
            let defaults = other.defaults.iter().filter(|known| known.role == role);
            let named = |item: &AclItem| item.grantee == role || item.grantor == role;
            let lists = other.acls.iter().filter(|(address, acl)| {
                !address.is_shared()
                    && acl.iter().any(named)
                    && owner_of(&other, **address) != Some(role)
            });
            let types = other.user_types.iter().filter(|made| made.owner == role);
            let statistics = other.all_extended();
            let statistics = statistics.filter(|known| known.owner == role);
            types.count()
                + statistics.count()
                + tables.count()
                + schemas.count()
                + policies.count()
                + defaults.count()
                + other
                    .extensions
                    .iter()
                    .filter(|known| known.owner == role)
                    .count()
                + other
                    .collations
                    .iter()
                    .filter(|known| known.owner == role)
                    .count()
                + other
                    .operators
                    .iter()
                    .filter(|known| known.owner == role)
                    .count()
                + lists.count()
        }))
    }

    /// ALTER ROLE … RENAME TO.
    pub(super) fn rename_role(
        &mut self,
        old: &str,
        new: &str,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        let role = catalog.role(old).cloned().ok_or_else(|| no_role(old))?;
        let itself = |message: &str| Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        if role.oid == self.shared.settings.session_role() {
            return Err(itself("session user cannot be renamed"));
        }
        if role.oid == own.oid {
            return Err(itself("current user cannot be renamed"));
        }
        let new = cut_name(new);
        check_not_reserved(&role.name)?;
        check_not_reserved(&new)?;
        let exists = || {
            Error::new(
                SqlState::DUPLICATE_OBJECT,
                format!("role \"{new}\" already exists"),
            )
        };
        if catalog.role(&new).is_some() {
            return Err(exists());
        }
        if !own.superuser && (role.superuser || !own.create_role) {
            return Err(match role.superuser {
                true => denied("must be superuser to rename superusers"),
                false => denied("permission denied to rename role"),
            });
        }
        let mut renamed = Role {
            name: new.clone(),
            ..role.clone()
        };
        // The old name is part of what was hashed.
        let md5 = renamed.password.take_if(|kept| kept.starts_with("md5"));
        if md5.is_some() {
            let body = Error::new(
                SqlState::SUCCESSFUL_COMPLETION,
                "MD5 password cleared because of role rename",
            );
            self.notice(NoticeSeverity::Notice, body, sink)?;
        }
        let done = match &mut self.open {
            Some(open) => cluster::update_role(open.txn.as_mut(), &role, &renamed)?,
            None => false,
        };
        match done {
            true => Ok(tag("ALTER ROLE")),
            false => Err(exists()),
        }
    }
}

/// What a role owns, with the oids, as messages list it.
fn owned_by(catalog: &Catalog, role: u32, search_path: &[u32]) -> Vec<(u32, String)> {
    let databases = catalog.databases.iter();
    let databases = databases.filter(|known| known.owner == role);
    let databases = databases.map(|known| (known.oid, format!("database {}", known.name)));
    let schemas = catalog.schemas.iter().filter(|known| known.owner == role);
    // That of temporary tables is the session's.
    let schemas = schemas.filter(|known| !is_local(known.oid));
    let schemas = schemas.map(|known| (known.oid, format!("schema {}", known.name)));
    let tables = catalog.tables.iter().filter(|known| known.owner == role);
    let tables = tables.map(|known| {
        let shown = Object::Relation(known.oid).describe(catalog, search_path);
        (known.oid, shown)
    });
    let defaults = catalog.defaults.iter().filter(|known| known.role == role);
    let defaults = defaults.map(|known| (known.oid, known.describe(catalog)));
    let types = catalog
        .user_types
        .iter()
        .filter(|known| known.owner == role);
    let types = types.map(|known| {
        let shown = Object::Type(known.id).describe(catalog, search_path);
        (known.id.0, shown)
    });
    let routines = catalog.routines.iter().filter(|known| known.owner == role);
    let routines = routines.map(|known| {
        let shown = Object::Routine(known.oid).describe(catalog, search_path);
        (known.oid, shown)
    });
    let owned = databases.chain(schemas).chain(tables).chain(types);
    let extensions = catalog
        .extensions
        .iter()
        .filter(|known| known.owner == role);
    let extensions = extensions.map(|known| {
        let shown = Object::Extension(known.oid).describe(catalog, search_path);
        (known.oid, shown)
    });
    let collations = catalog.collations.iter();
    let collations = collations.filter(|known| known.owner == role);
    let collations = collations.map(|known| {
        let shown = Object::Collation(known.oid).describe(catalog, search_path);
        (known.oid, shown)
    });
    let owned = owned.chain(routines).chain(extensions).chain(defaults);
    let operators = catalog.operators.iter();
    let operators = operators.filter(|known| known.owner == role);
    let operators = operators.map(|known| {
        let shown = Object::Operator(known.oid).describe(catalog, search_path);
        (known.oid, shown)
    });
    let statistics = catalog.all_extended();
    let statistics = statistics.filter(|known| known.owner == role);
    let statistics = statistics.map(|known| {
        let shown = Object::Statistics(known.oid).describe(catalog, search_path);
        (known.oid, shown)
    });
    let owned = owned.chain(collations).chain(operators).chain(statistics);
    owned
        .map(|(oid, what)| (oid, format!("owner of {what}")))
        .collect()
}

fn owner_of(catalog: &Catalog, address: Address) -> Option<u32> {
    match address.class {
        Address::DATABASE => {
            let database = catalog.database_by_oid(address.object);
            database.map(|known| known.owner)
        }
        Address::NAMESPACE => {
            let schema = catalog.schema_by_oid(address.object);
            schema.map(|known| known.owner)
        }
        Address::DEFAULT_ACL => {
            let mut known = catalog.defaults.iter();
            let default = known.find(|known| known.oid == address.object);
            default.map(|known| known.role)
        }
        Address::CLASS => {
            let table = catalog.table_by_oid(address.object);
            table.map(|known| known.owner)
        }
        Address::TYPE => Some(catalog.owner_of(Guarded::Type, address.object)),
        Address::PROC => Some(catalog.owner_of(Guarded::Function, address.object)),
        _ => Some(SUPERUSER),
    }
}

/// What messages call something that has a list of privileges.
fn described(catalog: &Catalog, address: Address, search_path: &[u32]) -> String {
    match address.class {
        Address::DATABASE => {
            let database = catalog.database_by_oid(address.object);
            let name = database.map_or("", |database| &database.name);
            format!("database {name}")
        }
        Address::NAMESPACE => Object::Schema(address.object).describe(catalog, search_path),
        Address::TYPE if TypeId(address.object).is_own() => {
            Object::Type(TypeId(address.object)).describe(catalog, search_path)
        }
        Address::PROC if catalog.routine(address.object).is_some() => {
            Object::Routine(address.object).describe(catalog, search_path)
        }
        Address::DEFAULT_ACL => {
            let mut known = catalog.defaults.iter();
            let default = known.find(|known| known.oid == address.object);
            default.map_or_else(String::new, |known| known.describe(catalog))
        }
        Address::PARAMETER_ACL => {
            let name = catalog.parameters.get(&address.object);
            format!("parameter {}", name.map_or("", String::as_str))
        }
        Address::CLASS => match usize::try_from(address.column) {
            Ok(column @ 1..) => Object::Column(address.object, column - 1),
            _ => Object::Relation(address.object),
        }
        .describe(catalog, search_path),
        class => built_in_name(class, address.object),
    }
}

/// What messages call something that is built in.
fn built_in_name(class: u32, object: u32) -> String {
    match class {
        Address::TYPE => format!("type {}", TypeId(object)),
        Address::PROC => {
            let shown = functions::signature_of(object).unwrap_or_default();
            format!("function {shown}")
        }
        Address::LANGUAGE => format!("language {}", system::language_or_tablespace(object)),
        _ => format!("tablespace {}", system::language_or_tablespace(object)),
    }
}

fn role_specs(option: &DefElem) -> Vec<RoleSpec> {
    let Some(NodeEnum::List(list)) = option.arg.as_ref().and_then(|arg| arg.node.as_ref()) else {
        return Vec::new();
    };
    let specs = list.items.iter().filter_map(|node| match &node.node {
        Some(NodeEnum::RoleSpec(spec)) => Some(spec.clone()),
        _ => None,
    });
    specs.collect()
}

/// Who may alter a role. What counts is which options are given, not whether they change anything.
///
/// | the role, or what is altered | who may |
/// |---|---|
/// | a superuser, SUPERUSER | superusers |
/// | one for replication, REPLICATION | superusers |
/// | BYPASSRLS | superusers |
/// | the password of the current role | the role itself |
/// | all else | CREATEROLE |
fn check_may_alter(own: &Role, role: &Role, named: &Named) -> Result<()> {
    if own.superuser {
        return Ok(());
    }
    let own_password = role.oid == own.oid && named.given == ["password"];
    let message = if role.superuser || named.has("superuser") {
        "must be superuser to alter superuser roles or change superuser attribute"
    } else if role.replication || named.has("isreplication") {
        "must be superuser to alter replication roles or change replication attribute"
    } else if named.has("bypassrls") {
        "must be superuser to change bypassrls attribute"
    } else if own.create_role || own_password {
        return Ok(());
    } else {
        "permission denied"
    };
    Err(denied(message))
}

/// 42939 for a name that only predefined roles have.
fn check_not_reserved(name: &str) -> Result<()> {
    match name.starts_with("pg_") {
        true => Err(Error::new(
            SqlState::of("42939"),
            format!("role name \"{name}\" is reserved"),
        )
        .with_detail("Role names starting with \"pg_\" are reserved.")),
        false => Ok(()),
    }
}

pub(super) fn check_not_predefined(role: &Role) -> Result<()> {
    match role.name.starts_with("pg_") {
        true => Err(Error::new(
            SqlState::of("42939"),
            format!("role name \"{}\" is reserved", role.name),
        )
        .with_detail("Cannot alter reserved roles.")),
        false => Ok(()),
    }
}
