//! As whom the session works besides who it is: the owners of routines and objects; and what the SET
//! clauses of routines leave.
//!
//! ```text
//! select f()        f belongs to o, SECURITY DEFINER, SET work_mem = '1MB'
//!   start_acting(o)   current_user is o, and SET ROLE is refused
//!   SET LOCAL work_mem
//!   end_routine       work_mem is as before; what f has set besides stays set
//!   stop_acting
//! ```
//! What is *restricted* is done for the owner of an object whoever asks for it (REFRESH, CREATE INDEX),
//! and may leave nothing behind that would run later with the rights of whoever asked.

use base::{Error, Result, SqlState};

use super::identity::Identity;
use super::{find, Change, Settings, DEFINITIONS};
use catalog::Role;

/// As whose owner the session acts.
pub(super) struct Acting {
    pub(super) identity: Identity,
    pub(super) restricted: bool,
}

impl Settings {
    /// Lets the session act as a role until [`Settings::stop_acting`], whatever is set meanwhile: for a
    /// routine that runs with the rights of its owner, and for what is done for the owner of an object
    /// whoever asks for it. What is `restricted` may leave nothing behind that would run later with the
    /// rights of whoever asked.
    pub fn start_acting(&mut self, role: &Role, restricted: bool) {
        let restricted = restricted || self.is_restricted();
        self.acting.push(Acting {
            identity: Identity::logged_in(role),
            restricted,
        });
        self.parse();
        self.generation += 1;
    }

    /// Ends the last [`Settings::start_acting`].
    pub fn stop_acting(&mut self) {
        self.acting.pop();
        self.parse();
        self.generation += 1;
    }

    /// Whether the session acts as the owner of an object.
    pub fn is_acting(&self) -> bool {
        !self.acting.is_empty()
    }

    /// # Errors
    /// 42501 for what would outlast an operation that is done for the owner of an object.
    pub fn check_unrestricted(&self, what: &str) -> Result<()> {
        match self.is_restricted() {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("cannot {what} within security-restricted operation"),
            )),
        }
    }

    fn is_restricted(&self) -> bool {
        self.acting.last().is_some_and(|acting| acting.restricted)
    }

    /// A routine ends whose SET clauses gave values to these settings since a point: they are again
    /// what they were there, unless the routine has set one by SET without LOCAL. Other settings that
    /// it has changed stay changed.
    pub fn end_routine(&mut self, mark: usize, names: &[(String, String)]) {
        let is_own = |change: &Change| {
            let name = match change {
                Change::Listed { setting, .. } => DEFINITIONS[*setting].name,
                Change::Custom(before) => &before.name,
            };
            names.iter().any(|own| own.0.eq_ignore_ascii_case(name))
        };
        let outlasts = |change: &Change| match change {
            Change::Listed {
                setting, session, ..
            } => self.values[*setting].session != *session,
            Change::Custom(before) => self.custom.iter().any(|custom| {
                custom.name.eq_ignore_ascii_case(&before.name) && custom.session != before.session
            }),
        };
        let mut changes = self.journal.iter().skip(mark);
        if changes.all(|change| is_own(change) && !outlasts(change)) {
            return self.roll_back_to(mark);
        }
        for (name, _) in names {
            match find(name) {
                Some(setting) => self.end_clause(mark, setting),
                None => self.end_custom_clause(mark, name),
            }
        }
    }

    fn end_clause(&mut self, mark: usize, setting: usize) {
        let mut changes = self.journal.iter().skip(mark);
        let first = changes.find_map(|change| match change {
            Change::Listed {
                setting: of,
                session,
                current,
            } if *of == setting => Some((session.clone(), current.clone())),
            _ => None,
        });
        let Some((session, current)) = first else {
            return;
        };
        let now = &self.values[setting].session;
        let back = if *now == session {
            current
        } else {
            now.clone()
        };
        self.assign(setting, back, true);
    }

    fn end_custom_clause(&mut self, mark: usize, name: &str) {
        let mut changes = self.journal.iter().skip(mark);
        let first = changes.find_map(|change| match change {
            Change::Custom(before) if before.name.eq_ignore_ascii_case(name) => Some(before),
            _ => None,
        });
        let Some(before) = first.cloned() else { return };
        let custom = self.custom_named(name);
        let now = custom.clone();
        custom.current = match custom.session == before.session {
            true => before.current,
            false => custom.session.clone(),
        };
        self.journal.push(Change::Custom(now));
        self.generation += 1;
    }
}
