//! Who is a member of whom: GRANT and REVOKE of roles, and the members that CREATE ROLE and ALTER
//! GROUP name. Every change goes through [`Session::add_members`] and [`Session::remove_members`],
//! which ask who may:
//!
//! | the role that gets or loses members | who may change that |
//! |---|---|
//! | a superuser | superusers |
//! | any other | CREATEROLE, and whoever holds it WITH ADMIN OPTION |
//!
//! Source: PostgreSQL 15 manual, GRANT.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{GrantRoleStmt, Node, RoleSpec};

use super::super::utility::{option_text, tag};
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::role::{denied, no_role};
use catalog::access::{Membership, DATABASE_OWNER};
use catalog::cluster;
use catalog::{Catalog, Role};
use syntax::parser::NodeEnum;

/// The role specifications among nodes.
fn specs(nodes: &[Node]) -> Vec<RoleSpec> {
    let specs = nodes.iter().filter_map(|node| match &node.node {
        Some(NodeEnum::RoleSpec(spec)) => Some(spec.clone()),
        _ => None,
    });
    specs.collect()
}

/// Whether the right to make others members is given too, or alone is taken.
///
/// # Errors
/// 0A000 for options of later versions.
fn admin_option(grant: &GrantRoleStmt) -> Result<bool> {
    let mut admin = false;
    for node in &grant.opt {
        let Some(NodeEnum::DefElem(option)) = &node.node else {
            continue;
        };
        if option.defname != "admin" {
            let name = option.defname.to_ascii_uppercase();
            return Err(Error::unsupported(format!("the {name} option of GRANT")));
        }
        // REVOKE ADMIN OPTION FOR comes as the option with the value false.
        admin = !grant.is_grant || option_text(option) != "false";
    }
    Ok(admin)
}

impl Session {
    /// GRANT role TO role, and REVOKE.
    pub(in crate::session) fn grant_roles(
        &mut self,
        grant: &GrantRoleStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let admin = admin_option(grant)?;
        // PostgreSQL 15 takes GRANTED BY of a REVOKE for granted, and so reads no name from it.
        let grantor = match grant.grantor.as_ref().filter(|_| grant.is_grant) {
            Some(spec) => self.role_of(&catalog, spec)?.oid,
            None => self.shared.settings.current_role(),
        };
        let members = self.roles_named(&specs(&grant.grantee_roles))?;
        for node in &grant.granted_roles {
            let Some(NodeEnum::AccessPriv(named)) = &node.node else {
                continue;
            };
            if !named.cols.is_empty() || named.priv_name.is_empty() {
                return Err(Error::new(
                    SqlState::of("0LP01"),
                    "column names cannot be included in GRANT/REVOKE ROLE",
                ));
            }
            let name = &named.priv_name;
            let role = catalog.role(name).cloned().ok_or_else(|| no_role(name))?;
            match grant.is_grant {
                true => self.add_members(&role, &members, admin, grantor, sink)?,
                false => self.remove_members(&role, &members, admin, sink)?,
            }
        }
        Ok(tag(if grant.is_grant {
            "GRANT ROLE"
        } else {
            "REVOKE ROLE"
        }))
    }

    /// The oids of roles.
    pub(super) fn roles_named(&mut self, specs: &[RoleSpec]) -> Result<Vec<u32>> {
        let catalog = self.current_catalog()?;
        let roles = specs.iter().map(|spec| self.role_of(&catalog, spec));
        roles.map(|role| Ok(role?.oid)).collect()
    }

    /// Makes roles members of another.
    ///
    /// # Errors
    /// 42501 for who may not, 0LP01 where that would make a circle.
    pub(super) fn add_members(
        &mut self,
        role: &Role,
        members: &[u32],
        admin: bool,
        grantor: u32,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if members.is_empty() {
            return Ok(());
        }
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        check_may_change(&catalog, &own, grantor, role)?;
        if role.oid == DATABASE_OWNER {
            return Err(Error::new(
                SqlState::of("0LP01"),
                format!("role \"{}\" cannot have explicit members", role.name),
            ));
        }
        if grantor != own.oid && !own.superuser {
            return Err(denied("must be superuser to set grantor"));
        }
        for member in members {
            let catalog = self.current_catalog()?;
            let member = catalog.known_role(*member)?.clone();
            self.add_member(&catalog, role, &member, admin, grantor, sink)?;
            self.changed_catalog();
        }
        Ok(())
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
        if member.oid == DATABASE_OWNER {
            return Err(Error::new(
                SqlState::of("0LP01"),
                format!("role \"{}\" cannot be a member of any role", member.name),
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

    fn put_member(&mut self, member: Membership) -> Result<()> {
        match &mut self.open {
            Some(open) => cluster::put_member(open.txn.as_mut(), member),
            None => Err(Error::internal("nothing is open")),
        }
    }

    /// Ends memberships of a role, or takes only the right to make others members.
    ///
    /// # Errors
    /// 42501 for who may not.
    pub(super) fn remove_members(
        &mut self,
        role: &Role,
        members: &[u32],
        admin_only: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if members.is_empty() {
            return Ok(());
        }
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?;
        check_may_change(&catalog, &own, own.oid, role)?;
        for member in members {
            let catalog = self.current_catalog()?;
            let member = catalog.known_role(*member)?.clone();
            self.remove_member(&catalog, role, &member, admin_only, sink)?;
            self.changed_catalog();
        }
        Ok(())
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
}

/// 42501 unless this role may change who the members of another are, in the name of `grantor`.
fn check_may_change(catalog: &Catalog, own: &Role, grantor: u32, role: &Role) -> Result<()> {
    if role.superuser {
        return match own.superuser {
            true => Ok(()),
            false => Err(denied("must be superuser to alter superusers")),
        };
    }
    match own.superuser || own.create_role || catalog.is_admin(grantor, role.oid) {
        true => Ok(()),
        false => Err(denied(format!(
            "must have admin option on role \"{}\"",
            role.name
        ))),
    }
}
