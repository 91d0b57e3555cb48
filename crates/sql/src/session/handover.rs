//! What a session is when it idles, so that another node can go on with it.
//!
//! A session lives on the node that leads. When that changes, the node that has the client makes
//! the session anew on the next leader: role, database and startup settings as when it began, and
//! then what it has become since, which the serving node has told with each answer
//! ([`Session::changes`]): settings, prepared statements, the values that sequences gave it, the
//! channels that it listens to.
//!
//! ```text
//! old leader   changes() ──► kept by who has the client ──► resume(), on the new leader
//! ```
//!
//! # What becomes of an open block
//! It is lost. The session that is made anew is *inside a lost block*: whatever the client sends
//! next fails with 40001, as on a leader that has lost its term; ROLLBACK and COMMIT end the block, the
//! first in peace and the second, if it comes first, with 40001 too. Savepoints, cursors and portals
//! of the block are gone, but no client is told just that, since its loop would not try again:
//!
//! | what comes | first | after an error |
//! |---|---|---|
//! | ROLLBACK | done | done |
//! | COMMIT | 40001, and the block has ended | ROLLBACK |
//! | ROLLBACK TO, AND CHAIN | 40001 | 40001 |
//! | any other statement, and whatever else is an error | 40001 | 25P02 |
//!
//! Drivers answer an error with ROLLBACK TO where they keep savepoints of their own, so that one is
//! told again. AND CHAIN cannot begin a block like one that nothing is known of.
//!
//! # What it leaves out
//! Advisory locks, held cursors and temporary tables cannot move: [`Session::is_pinned`]. The unnamed statement is
//! forgotten; clients parse it with each use. Of the text that a prepared statement came in only that
//! statement is handed on, and its executions are counted from 0. A prepared statement that
//! cannot be planned any more, because its tables are gone, is not there afterwards.

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::engine::{Channel, Flight, Heard};
use base::{Error, ErrorClass, Lsn, Result};

use super::transaction::{Loss, State};
use super::{Oid, Session, TransactionStatus};
use execution::state::{Nowhere, Stamp};
use syntax::parser::Strings;

/// The version of what [`Session::changes`] gives.
const FORMAT: u8 = 3;
/// The one before is read too: it had no channels, and no strings with escapes.
const FORMAT_BEFORE: u8 = 2;

/// What is said of a prepared statement: SQL's PREPARE made it.
const FROM_SQL: u8 = 1;
/// Its text is read with escapes in plain strings, whatever the settings say by then.
const ESCAPED: u8 = 2;

impl Session {
    /// What the session is, if that has changed since the last call.
    pub fn changes(&mut self) -> Option<Vec<u8>> {
        let stamp = self.stamp();
        if self.told == Some(stamp) {
            return None;
        }
        self.told = Some(stamp);
        Some(self.pack())
    }

    /// What the session is.
    pub fn pack(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        self.shared.settings.pack(&mut out);
        let mut statements: Vec<_> = self.shared.statements.iter().collect();
        statements.sort_unstable_by_key(|(name, _)| *name);
        put_varint(&mut out, statements.len() as u64);
        for (name, prepared) in statements {
            put_bytes(&mut out, name.as_bytes());
            let flag = |flag, is_set| if is_set { flag } else { 0 };
            let escaped = prepared.strings() == Strings::Escaped;
            out.push(flag(FROM_SQL, prepared.is_from_sql()) | flag(ESCAPED, escaped));
            put_bytes(&mut out, prepared.text_alone().unwrap_or("").as_bytes());
            put_varint(&mut out, prepared.param_types().len() as u64);
            for oid in prepared.param_types() {
                put_varint(&mut out, u64::from(oid.0));
            }
        }
        let mut values: Vec<_> = self.shared.sequence_values.iter().collect();
        values.sort_unstable();
        put_varint(&mut out, values.len() as u64);
        for (sequence, value) in values {
            put_varint(&mut out, u64::from(*sequence));
            put_signed(&mut out, *value);
        }
        put_varint(&mut out, self.shared.last_sequence.map_or(0, u64::from));
        for channel in self.shared.notify.channels() {
            put_bytes(&mut out, channel.name.as_bytes());
            put_varint(&mut out, channel.since.0);
        }
        out
    }

    fn stamp(&self) -> Stamp {
        let shared = &self.shared;
        Stamp {
            settings: shared.settings.generation(),
            statements: shared.statements.version(),
            sequences: shared.sequence_values.version(),
            channels: shared.notify.version,
        }
    }

    /// Why the session cannot move, if it cannot: what it holds that lives on one node.
    pub fn is_pinned(&self) -> Option<&'static str> {
        let advisory = self.shared.advisory.as_ref();
        let is_held = self.shared.cursors.values().any(|cursor| cursor.holdable);
        if advisory.is_some_and(|locks| !locks.is_empty()) {
            Some("advisory locks")
        } else if is_held {
            Some("held cursors")
        } else if self.shared.local.is_some() {
            Some("temporary tables")
        } else {
            None
        }
    }

    /// Becomes what another session was: to be called right after [`Session::new`].
    ///
    /// # Errors
    /// XX001 when `packed` is nothing that [`Session::changes`] gave; 28000, 22023 and 42501 when the
    /// session may no longer be who it was.
    pub fn resume(
        &mut self,
        packed: &[u8],
        status: TransactionStatus,
        heard: Option<Heard>,
    ) -> Result<()> {
        let mut reader = Reader::new(packed);
        let format = reader.u8()?;
        if format != FORMAT && format != FORMAT_BEFORE {
            return Err(Error::corrupted(format!("a session of format {format}")));
        }
        let configuration = self.shared.engine.settings.configuration();
        let catalog = self.catalog.clone();
        let settings = &mut self.shared.settings;
        settings.unpack(&mut reader, &configuration, &catalog)?;
        // The client has been told when its session began.
        self.shared.warnings.clear();
        self.settings_changed();
        let count: usize = reader.varint_as()?;
        for _ in 0..count {
            self.resume_statement(&mut reader)?;
        }
        let count: usize = reader.varint_as()?;
        for _ in 0..count {
            let sequence: u32 = reader.varint_as()?;
            let value = reader.signed()?;
            self.shared.sequence_values.insert(sequence, value);
        }
        let last: u32 = reader.varint_as()?;
        self.shared.last_sequence = (last != 0).then_some(last);
        let mut channels = Vec::new();
        while !reader.is_empty() {
            channels.push(Channel {
                name: reader.str()?.to_owned(),
                since: Lsn(reader.varint()?),
            });
        }
        self.resume_listening(channels, heard)?;
        self.told = Some(self.stamp());
        match status {
            TransactionStatus::Idle => {}
            // A block that has failed may have done so after the client was last told.
            TransactionStatus::InBlock | TransactionStatus::Failed => {
                self.state = State::Block;
                self.loss = Loss::Untold;
            }
        }
        self.show_idle();
        Ok(())
    }

    fn resume_statement(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let name = reader.str()?;
        let flags = reader.u8()?;
        let text = reader.str()?;
        let count: usize = reader.varint_as()?;
        let mut types = Vec::new();
        for _ in 0..count {
            types.push(Oid(reader.varint_as()?));
        }
        self.read_as = Some(match flags & ESCAPED {
            0 => Strings::Conforming,
            _ => Strings::Escaped,
        });
        let prepared = match flags & FROM_SQL != 0 {
            true => self.simple_query(text, &mut Nowhere),
            false => self
                .prepare(text, &types)
                .and_then(|prepared| self.keep_prepared(name, prepared)),
        };
        self.read_as = None;
        // Planning may have looked something up.
        self.roll_back();
        self.in_message = false;
        match prepared {
            Err(error) if matches!(error.class(), ErrorClass::Session | ErrorClass::Node) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// What the commits from here on are noted under.
    pub fn set_flight(&mut self, flight: Flight) {
        self.shared.flight = Some(flight);
    }
}
