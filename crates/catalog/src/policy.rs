//! Row security: which rows of a table a role may see and write (PostgreSQL 15 manual, section 5.8).
//!
//! A policy's condition is kept as the query that it would be over its table alone, with fixed names
//! ([`super::view`]), so that its text goes on meaning the same when columns or tables get other
//! names:
//!
//! ```text
//! create policy own on accounts using (owner = current_user)
//! stored:   SELECT owner = current_user FROM "#"."16384" AS accounts(id, owner, balance)
//! ```
//!
//! # Invariants
//! - Whom a table guards its rows from is said in one place, [`Catalog::row_security`].
//! - A role for which no permissive policy speaks sees nothing.

use base::codec::{put_bytes, put_varint, Reader};
use base::{Error, Result};

use super::descriptor::{put_text, read_text};
use super::lists::read_list;
use super::view::{put_uses, read_uses};
use super::{Catalog, Table, Uses};

/// The role that stands for everybody.
pub const PUBLIC_ROLE: u32 = 0;

/// What a policy is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyCommand {
    /// Everything.
    #[default]
    All,
    /// What is read.
    Select,
    /// New rows.
    Insert,
    /// Rows that are changed, and what they become.
    Update,
    /// Rows that are deleted.
    Delete,
}

impl PolicyCommand {
    /// As `pg_policy.polcmd` has it.
    pub const fn code(self) -> u8 {
        match self {
            PolicyCommand::All => b'*',
            PolicyCommand::Select => b'r',
            PolicyCommand::Insert => b'a',
            PolicyCommand::Update => b'w',
            PolicyCommand::Delete => b'd',
        }
    }

    fn of_code(code: u8) -> Result<PolicyCommand> {
        Ok(match code {
            b'*' => PolicyCommand::All,
            b'r' => PolicyCommand::Select,
            b'a' => PolicyCommand::Insert,
            b'w' => PolicyCommand::Update,
            b'd' => PolicyCommand::Delete,
            other => return Err(Error::corrupted(format!("a policy for command {other}"))),
        })
    }
}

/// A policy of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Its oid.
    pub oid: u32,
    /// Its name, which no other policy of the table has.
    pub name: String,
    /// What it is for.
    pub command: PolicyCommand,
    /// Whether it lets rows through, rather than holding some back that others let through.
    pub permissive: bool,
    /// Whom it is for: roles by oid, [`PUBLIC_ROLE`] alone for all.
    pub roles: Vec<u32>,
    /// What rows must meet that are there, as stored text.
    pub using: Option<String>,
    /// What new rows must meet, as stored text; without one it is `using`.
    pub check: Option<String>,
    /// What both name.
    pub uses: Vec<Uses>,
}

/// Whether a table guards its rows from a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSecurity {
    /// The table guards its rows from nobody.
    Off,
    /// Not from this role.
    Bypassed,
    /// By its policies. Whether the role owns the table.
    On {
        /// Then it is FORCE that says so.
        owner: bool,
    },
}

impl Catalog {
    /// Whether a table guards its rows from a role.
    pub fn row_security(&self, role: u32, table: &Table) -> RowSecurity {
        if !table.row_security {
            return RowSecurity::Off;
        }
        let known = self.role_by_oid(role);
        if known.is_some_and(|known| known.superuser || known.bypass_rls) {
            return RowSecurity::Bypassed;
        }
        let owner = self.has_privileges_of(role, table.owner);
        match owner && !table.force_row_security {
            true => RowSecurity::Bypassed,
            false => RowSecurity::On { owner },
        }
    }

    /// Whether policies decide which rows of a table a role sees.
    pub fn guards_rows(&self, role: u32, table: &Table) -> bool {
        matches!(self.row_security(role, table), RowSecurity::On { .. })
    }

    /// The policies of a table that speak for a role about a command, by name; those that let rows
    /// through, and those that hold some back.
    pub fn policies<'t>(
        &self,
        role: u32,
        table: &'t Table,
        command: PolicyCommand,
    ) -> (Vec<&'t Policy>, Vec<&'t Policy>) {
        let is_for = |policy: &&Policy| {
            let mut roles = policy.roles.iter();
            [PolicyCommand::All, command].contains(&policy.command)
                && roles.any(|of| *of == PUBLIC_ROLE || self.has_privileges_of(role, *of))
        };
        let mut speaking: Vec<_> = table.policies.iter().filter(is_for).collect();
        speaking.sort_by(|a, b| a.name.cmp(&b.name));
        speaking.into_iter().partition(|policy| policy.permissive)
    }
}

pub(super) fn put(out: &mut Vec<u8>, policy: &Policy) {
    put_varint(out, u64::from(policy.oid));
    put_bytes(out, policy.name.as_bytes());
    out.push(policy.command.code());
    out.push(u8::from(policy.permissive));
    put_varint(out, policy.roles.len() as u64);
    for role in &policy.roles {
        put_varint(out, u64::from(*role));
    }
    put_text(out, policy.using.as_deref());
    put_text(out, policy.check.as_deref());
    put_uses(out, &policy.uses);
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Policy> {
    Ok(Policy {
        oid: reader.varint_as()?,
        name: reader.str()?.to_owned(),
        command: PolicyCommand::of_code(reader.u8()?)?,
        permissive: reader.u8()? != 0,
        roles: read_list(reader, |reader| reader.varint_as())?,
        using: read_text(reader)?,
        check: read_text(reader)?,
        uses: read_uses(reader)?,
    })
}
