//! What DDL leaves in the audit ([`catalog::audit`]).

use base::Result;

use crate::session::secrets::mask;
use crate::session::Session;
use catalog::audit::{self, Entry, STATEMENT_BYTES_MAX};

impl Session {
    /// Notes a statement that has changed the catalog, in its own transaction. One that has changed
    /// nothing but the session's own temporary objects leaves nothing.
    pub(in crate::session) fn audit(&mut self, command: &str, statement: &str) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        // An engine that gives no ids has no log either.
        let Ok(outcome) = open.txn.outcome() else {
            return Ok(());
        };
        let Some(xid) = outcome.xid(false)? else {
            return Ok(());
        };
        let mut entry = self.audited(command, statement)?;
        entry.xid = Some(xid.0);
        let kept = self.shared.settings.parsed().audit_entries;
        let engine = self.shared.engine.clone();
        match &mut self.open {
            Some(open) => audit::write(open.txn.as_mut(), &*engine.sequences, entry, kept),
            None => Ok(()),
        }
    }

    /// Who does something now.
    pub(super) fn audited(&mut self, command: &str, statement: &str) -> Result<Entry> {
        let settings = &self.shared.settings;
        let (session_role, current_role) = (settings.session_role(), settings.current_role());
        let session_user = self.role_name(session_role)?;
        let current_user = self.role_name(current_role)?;
        let start = &self.shared.start;
        let mut statement = mask(statement.trim()).into_owned();
        if statement.len() > STATEMENT_BYTES_MAX {
            let mut ends = (0..=STATEMENT_BYTES_MAX).rev();
            let end = ends.find(|end| statement.is_char_boundary(*end));
            statement.truncate(end.unwrap_or(0));
        }
        Ok(Entry {
            number: 0,
            at: self.eval.statement_start,
            xid: None,
            pid: start.backend_pid,
            session_user,
            current_user,
            client: start.client_address.clone(),
            database: start.database.clone(),
            command: command.to_owned(),
            statement,
        })
    }

    /// The name of a role; empty for one that is gone.
    fn role_name(&mut self, role: u32) -> Result<String> {
        // To read the catalog anew takes longer the more there is in it; most roles are older.
        if let Some(known) = self.catalog.role_by_oid(role) {
            return Ok(known.name.clone());
        }
        let catalog = self.current_catalog()?;
        let known = catalog.role_by_oid(role);
        Ok(known.map_or_else(String::new, |known| known.name.clone()))
    }
}
