//! ALTER DEFAULT PRIVILEGES: what objects get that are yet to be made ([`catalog::default_acl`]).

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterDefaultPrivilegesStmt, DropBehavior, GrantStmt, Node, ObjectType, RoleSpec,
};

use super::items::with_default;
use super::{check_options, invalid, named_privileges, Change};
use crate::session::utility::tag;
use crate::session::{CommandTag, Session};
use catalog::access::{default_acl, sort, Acl, Guarded, Privileges};
use catalog::cluster::{self, Address};
use catalog::default_acl::DefaultAcl;
use catalog::{Catalog, Role};
use syntax::parser::NodeEnum;

impl Session {
    pub(in crate::session) fn alter_default_privileges(
        &mut self,
        alter: &AlterDefaultPrivilegesStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let grant = alter.action.as_ref();
        let grant = grant.ok_or_else(|| Error::internal("default privileges without any"))?;
        let grantees = self.grantees(&catalog, grant)?;
        let object = ObjectType::try_from(grant.objtype).ok();
        let kind = object.and_then(with_default);
        let (kind, noun) = kind.ok_or_else(|| {
            Error::unsupported("ALTER DEFAULT PRIVILEGES for this kind of object")
        })?;
        let privileges = asked(grant, noun, kind.all())?;
        let roles = self.makers(&catalog, &options(alter, "roles"))?;
        let schemas = schemas(&catalog, &options(alter, "schemas"), kind)?;
        check_options(grant, &grantees)?;
        for role in &roles {
            for schema in &schemas {
                let change = Change {
                    is_grant: grant.is_grant,
                    options: grant.grant_option,
                    cascade: grant.behavior == DropBehavior::DropCascade as i32,
                    privileges,
                    grantor: role.oid,
                    grantees: &grantees,
                };
                self.change_default(&catalog, (role.oid, *schema, kind), &change)?;
            }
        }
        Ok(tag("ALTER DEFAULT PRIVILEGES"))
    }

    /// The roles whose objects are meant: those named, of which the session's must be a member, or
    /// its own.
    fn makers(&mut self, catalog: &Catalog, named: &[Node]) -> Result<Vec<Role>> {
        let own = self.current_role(catalog)?;
        if named.is_empty() {
            return Ok(vec![own]);
        }
        let specs = named.iter().filter_map(|node| match &node.node {
            Some(NodeEnum::RoleSpec(spec)) => Some(spec),
            _ => None,
        });
        let specs: Vec<RoleSpec> = specs.cloned().collect();
        let mut roles: Vec<Role> = Vec::new();
        for spec in &specs {
            let role = self.role_of(catalog, spec)?;
            if !catalog.is_member(own.oid, role.oid) {
                return Err(Error::new(
                    SqlState::INSUFFICIENT_PRIVILEGE,
                    format!("must be member of role \"{}\"", role.name),
                ));
            }
            if roles.iter().all(|known| known.oid != role.oid) {
                roles.push(role);
            }
        }
        Ok(roles)
    }

    fn change_default(
        &mut self,
        catalog: &Catalog,
        (role, schema, kind): (u32, u32, Guarded),
        change: &Change<'_>,
    ) -> Result<()> {
        let known = catalog.default_acl(role, schema, kind).copied();
        let said = known.and_then(|known| catalog.acls.get(&address(known.oid)));
        let mut acl = match said {
            Some(acl) => acl.clone(),
            None => beginning(schema, kind, role),
        };
        change.apply(&mut acl, role)?;
        let default = match known {
            Some(known) => known,
            None => DefaultAcl {
                oid: self.new_oid()?,
                role,
                schema,
                kind,
            },
        };
        self.put_default_acl(catalog, &default, acl)
    }

    /// Writes what was said of new objects, or takes it away where that is what holds anyway.
    pub(in crate::session::ddl) fn put_default_acl(
        &mut self,
        catalog: &Catalog,
        default: &DefaultAcl,
        mut acl: Acl,
    ) -> Result<()> {
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| Error::internal("nothing is open"))?;
        let (txn, database) = (open.txn.as_mut(), catalog.database.oid);
        let mut plain = beginning(default.schema, default.kind, default.role);
        sort(&mut acl);
        sort(&mut plain);
        match acl == plain {
            true => cluster::put_acl(txn, database, address(default.oid), None),
            false => cluster::put_default_acl(txn, database, default, &acl),
        }
    }
}

fn address(oid: u32) -> Address {
    Address::of(Address::DEFAULT_ACL, oid)
}

/// What holds as long as nothing was said.
fn beginning(schema: u32, kind: Guarded, role: u32) -> Acl {
    match schema {
        0 => default_acl(kind, role),
        _ => Acl::new(),
    }
}

/// The nodes of FOR ROLE or IN SCHEMA.
fn options(alter: &AlterDefaultPrivilegesStmt, name: &str) -> Vec<Node> {
    let options = alter.options.iter().filter_map(|node| match &node.node {
        Some(NodeEnum::DefElem(option)) if option.defname == name => option.arg.as_ref(),
        _ => None,
    });
    let lists = options.filter_map(|arg| match &arg.node {
        Some(NodeEnum::List(list)) => Some(list.items.clone()),
        _ => None,
    });
    lists.flatten().collect()
}

/// The schemas that are meant; 0 alone for all.
fn schemas(catalog: &Catalog, named: &[Node], kind: Guarded) -> Result<Vec<u32>> {
    if named.is_empty() {
        return Ok(vec![0]);
    }
    if kind == Guarded::Schema {
        return Err(invalid(
            "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS",
        ));
    }
    let mut schemas = Vec::new();
    for name in super::super::texts(named) {
        let schema = catalog.schema(&name).ok_or_else(|| {
            Error::new(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{name}\" does not exist"),
            )
        })?;
        if !schemas.contains(&schema.oid) {
            schemas.push(schema.oid);
        }
    }
    Ok(schemas)
}

/// The privileges that are given or taken.
fn asked(grant: &GrantStmt, noun: &str, all: Privileges) -> Result<Privileges> {
    if grant.privileges.is_empty() {
        return Ok(all);
    }
    let mut asked = Privileges::NONE;
    for node in &grant.privileges {
        let Some(NodeEnum::AccessPriv(access)) = &node.node else {
            continue;
        };
        if !access.cols.is_empty() {
            return Err(invalid("default privileges cannot be set for columns"));
        }
        let found = named_privileges(&access.priv_name)?;
        if !all.has(found) {
            let name = access.priv_name.to_ascii_uppercase();
            return Err(invalid(format!("invalid privilege type {name} for {noun}")));
        }
        asked = asked.with(found);
    }
    Ok(asked)
}
