//! CREATE, ALTER and RENAME of policies; DROP POLICY is [`super::drop`]'s, ENABLE ROW LEVEL SECURITY
//! and its kin are [`super::alter`]'s.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterPolicyStmt, CreatePolicyStmt, Node, RangeVar, RoleSpecType};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::table::cut_name;
use catalog::access::must_own;
use catalog::policy::PUBLIC_ROLE;
use catalog::{Catalog, Policy, PolicyCommand, RelationKind, Table, Uses};
use syntax::parser::NodeEnum;

/// 42704.
pub(super) fn no_policy(table: &Table, name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!(
            "policy \"{name}\" for table \"{}\" does not exist",
            table.name
        ),
    )
}

fn exists(table: &Table, name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_OBJECT,
        format!(
            "policy \"{name}\" for table \"{}\" already exists",
            table.name
        ),
    )
}

fn misplaced(message: &str) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

/// What two conditions name together.
fn both(mut uses: Vec<Uses>, more: Vec<Uses>) -> Vec<Uses> {
    for other in more {
        match uses.iter_mut().find(|own| own.relation == other.relation) {
            Some(own) => {
                own.columns.extend(other.columns);
                own.columns.sort_unstable();
                own.columns.dedup();
            }
            None => uses.push(other),
        }
    }
    uses.sort_by_key(|uses| uses.relation);
    uses
}

impl Session {
    /// The table of a policy, locked against everyone.
    fn guarded_table(&mut self, range: Option<&RangeVar>) -> Result<Arc<Table>> {
        let range = range.ok_or_else(|| Error::internal("a policy without a table"))?;
        let table = self.find_table(range)?;
        let catalog = self.current_catalog()?;
        if !catalog.has_privileges_of(self.shared.settings.current_role(), table.owner) {
            return Err(must_own(table.kind.noun(), &table.name));
        }
        if !matches!(table.kind, RelationKind::Table | RelationKind::Partitioned) {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a table", table.name),
            ));
        }
        self.lock_table(range)
    }

    /// Whom a policy is for.
    fn policy_roles(
        &mut self,
        catalog: &Catalog,
        nodes: &[Node],
        sink: &mut dyn Sink,
    ) -> Result<Vec<u32>> {
        let mut roles = Vec::new();
        for node in nodes {
            let Some(NodeEnum::RoleSpec(spec)) = &node.node else {
                continue;
            };
            if spec.roletype == RoleSpecType::RolespecPublic as i32 {
                if nodes.len() > 1 {
                    let message = "ignoring specified roles other than PUBLIC";
                    let body = Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
                        .with_hint("All roles are members of the PUBLIC role.");
                    self.notice(NoticeSeverity::Warning, body, sink)?;
                }
                return Ok(vec![PUBLIC_ROLE]);
            }
            roles.push(self.role_of(catalog, spec)?.oid);
        }
        match roles.is_empty() {
            true => Ok(vec![PUBLIC_ROLE]),
            false => Ok(roles),
        }
    }

    /// A condition as the catalog keeps it, and what it names. Errors say no position, as in
    /// PostgreSQL.
    fn policy_text(
        &mut self,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        node: &Option<Box<Node>>,
    ) -> Result<(Option<String>, Vec<Uses>)> {
        let Some(node) = node else {
            return Ok((None, Vec::new()));
        };
        let fixed = self.try_binding("", catalog, |binder| binder.fixed_policy(table, node))?;
        self.may_use_types_of(catalog, fixed.uses.iter().map(|uses| uses.relation))?;
        Ok((Some(fixed.text), fixed.uses))
    }

    pub(in crate::session) fn create_policy(
        &mut self,
        create: &CreatePolicyStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let command = match create.cmd_name.as_str() {
            "select" => PolicyCommand::Select,
            "insert" => PolicyCommand::Insert,
            "update" => PolicyCommand::Update,
            "delete" => PolicyCommand::Delete,
            _ => PolicyCommand::All,
        };
        let reads_only = matches!(command, PolicyCommand::Select | PolicyCommand::Delete);
        if reads_only && create.with_check.is_some() {
            return Err(misplaced(
                "WITH CHECK cannot be applied to SELECT or DELETE",
            ));
        }
        if command == PolicyCommand::Insert && create.qual.is_some() {
            return Err(misplaced("only WITH CHECK expression allowed for INSERT"));
        }
        let catalog = self.current_catalog()?;
        let roles = self.policy_roles(&catalog, &create.roles, sink)?;
        let table = self.guarded_table(create.table.as_ref())?;
        let catalog = self.current_catalog()?;
        let (using, read) = self.policy_text(&catalog, &table, &create.qual)?;
        let (check, written) = self.policy_text(&catalog, &table, &create.with_check)?;
        let name = cut_name(&create.policy_name);
        if table.policies.iter().any(|policy| policy.name == name) {
            return Err(exists(&table, &name));
        }
        let mut new = (*table).clone();
        new.policies.push(Policy {
            oid: self.new_oid()?,
            name,
            command,
            permissive: create.permissive,
            roles,
            using,
            check,
            uses: both(read, written),
        });
        self.put_table(&new)?;
        Ok(tag("CREATE POLICY"))
    }

    pub(in crate::session) fn alter_policy(
        &mut self,
        alter: &AlterPolicyStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let roles = match alter.roles.as_slice() {
            [] => None,
            roles => Some(self.policy_roles(&catalog, roles, sink)?),
        };
        let table = self.guarded_table(alter.table.as_ref())?;
        let catalog = self.current_catalog()?;
        let (using, read) = self.policy_text(&catalog, &table, &alter.qual)?;
        let (check, written) = self.policy_text(&catalog, &table, &alter.with_check)?;
        let mut new = (*table).clone();
        let name = cut_name(&alter.policy_name);
        let policy = new.policies.iter_mut().find(|policy| policy.name == name);
        let policy = policy.ok_or_else(|| no_policy(&table, &name))?;
        match policy.command {
            PolicyCommand::Select | PolicyCommand::Delete if check.is_some() => {
                return Err(misplaced(
                    "only USING expression allowed for SELECT, DELETE",
                ));
            }
            PolicyCommand::Insert if using.is_some() => {
                return Err(misplaced("only WITH CHECK expression allowed for INSERT"));
            }
            _ => {}
        }
        let kept = self.uses_kept(&catalog, &table, policy, using.is_some(), check.is_some())?;
        policy.roles = roles.unwrap_or_else(|| std::mem::take(&mut policy.roles));
        policy.using = using.or(policy.using.take());
        policy.check = check.or(policy.check.take());
        policy.uses = both(kept, both(read, written));
        self.put_table(&new)?;
        Ok(tag("ALTER POLICY"))
    }

    /// What those conditions of a policy name that are not replaced.
    fn uses_kept(
        &mut self,
        catalog: &Arc<Catalog>,
        table: &Arc<Table>,
        policy: &Policy,
        new_using: bool,
        new_check: bool,
    ) -> Result<Vec<Uses>> {
        let using = policy.using.as_ref().filter(|_| !new_using);
        let check = policy.check.as_ref().filter(|_| !new_check);
        let mut kept = Vec::new();
        for text in using.into_iter().chain(check) {
            let uses = self.try_binding("", catalog, |binder| binder.policy_uses(table, text))?;
            kept = both(kept, uses);
        }
        Ok(kept)
    }

    /// ALTER POLICY … RENAME TO.
    pub(super) fn rename_policy(
        &mut self,
        range: Option<&RangeVar>,
        from: &str,
        to: &str,
    ) -> Result<CommandTag> {
        let table = self.guarded_table(range)?;
        let to = cut_name(to);
        if table.policies.iter().any(|policy| policy.name == to) {
            return Err(exists(&table, &to));
        }
        let mut new = (*table).clone();
        let policy = new.policies.iter_mut().find(|policy| policy.name == from);
        policy.ok_or_else(|| no_policy(&table, from))?.name = to;
        self.put_table(&new)?;
        Ok(tag("ALTER POLICY"))
    }

    /// Writes the conditions of a table's policies anew, for a table or columns with other names.
    pub(super) fn restate_policies(&mut self, old: &Arc<Table>, new: &mut Table) -> Result<()> {
        let catalog = self.current_catalog()?;
        let named = new.clone();
        for policy in &mut new.policies {
            for text in policy.using.iter_mut().chain(&mut policy.check) {
                let anew = self.try_binding("", &catalog, |binder| {
                    binder.restated_policy(old, &named, text)
                })?;
                *text = anew;
            }
        }
        Ok(())
    }
}
