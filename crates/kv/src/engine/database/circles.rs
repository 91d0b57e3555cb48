//! Circles of sessions that wait for one another in groups which several nodes lead.
//!
//! Each lock table finds the circles that lie in itself and in those beside it
//! ([`crate::locks`]). One that leads over other nodes is found by whoever waits: every second it has
//! its lock table's node ask all nodes that lead a group for whom it waits, for whom those wait, and so
//! on.
//!
//! ```text
//! session 7 waits on n2 for 9     9 waits on n1 for 7         7 ─► 9 ─► 7: a circle
//!                                                             n2 looks for 7, n1 for 9; 9 gives up
//! ```
//! # Invariants
//! - What is seen need never have been true at one moment, so a circle counts when it is seen twice: in
//!   a true one nobody moves.
//! - Of a circle, one gives up: the one with the greatest number.
//!
//! # What it leaves out
//! Transactions without a session, and those that are prepared, wait for nobody here.

use std::time::Duration;

use base::coro;
use base::engine::LockManager;
use base::env::sleep;
use base::{Result, SessionId};

use super::super::branch::place::ask_blockers;
use super::Database;
use crate::locks::Elsewhere;

/// After this a circle that was seen is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A search that meets more sessions is given up.
const SESSIONS_MAX: usize = 1_000;

/// Whom a session waits for.
struct Blockers {
    of: SessionId,
    by: Vec<SessionId>,
}

impl Elsewhere for Database {
    fn is_victim(&self, session: SessionId) -> Result<bool> {
        // Where no other node is asked, the lock tables here have looked.
        if self.connections.is_none() || !self.is_last_of_circle(session)? {
            return Ok(false);
        }
        coro::wait(sleep(&**self.first.group().env(), LOOK_AGAIN))?;
        self.is_last_of_circle(session)
    }
}

impl Database {
    /// Whether a session waits for itself in the end, and is the one to give up.
    fn is_last_of_circle(&self, session: SessionId) -> Result<bool> {
        let mut met = vec![self.blockers_of(session)?];
        let mut seen = 0;
        while seen < met.len() {
            for other in met[seen].by.clone() {
                if met.iter().all(|known| known.of != other) {
                    if met.len() == SESSIONS_MAX {
                        return Ok(false);
                    }
                    met.push(self.blockers_of(other)?);
                }
            }
            seen += 1;
        }
        // Of all that it leads to, those from which there is a way back.
        let mut circle = vec![session];
        let mut seen = 0;
        while seen < circle.len() {
            let before = met.iter().filter(|one| one.by.contains(&circle[seen]));
            let before: Vec<_> = before.map(|one| one.of).collect();
            for one in before {
                if !circle.contains(&one) {
                    circle.push(one);
                }
            }
            seen += 1;
        }
        let is_closed = met.iter().any(|one| one.by.contains(&session));
        Ok(is_closed && circle.iter().max() == Some(&session))
    }

    fn blockers_of(&self, session: SessionId) -> Result<Blockers> {
        let by = self.waits_of(session)?;
        Ok(Blockers { of: session, by })
    }

    /// For whom a session waits, wherever it does.
    pub(super) fn waits_of(&self, session: SessionId) -> Result<Vec<SessionId>> {
        let mut by = self.blockers(session);
        for engine in self.engines() {
            if let Some(place) = self.place(&engine) {
                match ask_blockers(&place, session) {
                    Ok(sessions) => by.extend(sessions),
                    // Whoever waits there does not do so for long.
                    Err(error) if error.is_failover() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(by)
    }
}
