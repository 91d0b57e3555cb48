//! The audit: who has changed what in the catalog, in rows of a tree of its own.
//!
//! ```text
//! select at, session_user_name, command, statement from quorate.audit;
//! 2026-11-22 09:07:48.076+00 | ann | GRANT | grant select on accounts to ben
//! ```
//! Each statement of DDL, of roles and of privileges writes a row in the very transaction that it is
//! part of. So whatever holds for its changes holds for the row: it is there on every node if the
//! change is, it is gone where the change was rolled back or lost, and nobody sees it before the
//! change. The tree belongs to no table, so no statement of SQL can change or remove a row.
//!
//! # Bounds
//! The newest `quorate.audit_entries` rows stay: who writes one removes up to [`REMOVED_AT_ONCE`] that are
//! older, unless somebody else does so at the moment. A statement is cut to [`STATEMENT_BYTES_MAX`].
//!
//! # What it leaves out
//! Statements that failed, which are in the server's log alone, and changes of temporary objects,
//! of which no other session knows.

use base::codec::{put_bytes, put_varint, Reader};
use base::engine::{
    Direction, Inserted, Isolation, LockWait, LockedRow, Reading, RowBatch, RowLock, Sequences,
    Transaction,
};
use base::row::{Row, RowBuilder};
use base::{Error, Key, KeyRange, Result};

use crate::layout::{AUDIT, AUDIT_NUMBERS};

/// A longer statement is cut.
pub const STATEMENT_BYTES_MAX: usize = 8 << 10;

/// Rows that are removed with a new one at most: more than one, so that a bound that was lowered is
/// reached some time.
pub const REMOVED_AT_ONCE: usize = 2;

/// One statement that has changed the catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its number: larger for what was done later in a session, and across sessions nearly so.
    pub number: u64,
    /// When the statement began, in microseconds since 2000.
    pub at: i64,
    /// The id of its transaction.
    pub xid: Option<u64>,
    /// The session's number.
    pub pid: i32,
    /// The role that the session belongs to.
    pub session_user: String,
    /// The role whose privileges counted.
    pub current_user: String,
    /// Where the client comes from; none for one without an address.
    pub client: Option<String>,
    /// The database.
    pub database: String,
    /// The command's name.
    pub command: String,
    /// The statement, without passwords.
    pub statement: String,
}

impl Entry {
    fn row(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.at as u64);
        put_varint(&mut out, self.xid.unwrap_or(0));
        put_varint(&mut out, u64::from(self.pid as u32));
        for text in [
            &self.session_user,
            &self.current_user,
            self.client.as_deref().unwrap_or_default(),
            &self.database,
            &self.command,
            &self.statement,
        ] {
            put_bytes(&mut out, text.as_bytes());
        }
        RowBuilder::new(1).value(&out).finish()
    }

    fn read(key: &[u8], row: &[u8]) -> Result<Entry> {
        let damaged = || Error::corrupted("a row of the audit");
        let number = key.try_into().map_err(|_| damaged())?;
        let row = Row::parse(row)?;
        let mut reader = Reader::new(row.column(0).ok_or_else(damaged)?);
        let (at, xid, pid) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let mut text = || reader.str().map(str::to_owned);
        Ok(Entry {
            number: u64::from_be_bytes(number),
            at: at as i64,
            xid: Some(xid).filter(|xid| *xid != 0),
            pid: u32::try_from(pid).map_err(|_| damaged())? as i32,
            session_user: text()?,
            current_user: text()?,
            client: Some(text()?).filter(|client| !client.is_empty()),
            database: text()?,
            command: text()?,
            statement: text()?,
        })
    }
}

/// The key of the row with a number.
pub fn key(number: u64) -> Key {
    number.to_be_bytes().into_iter().collect()
}

/// Writes a row, and removes some that are older than the newest `kept`.
///
/// # Errors
/// As writes.
pub fn write(
    txn: &mut dyn Transaction,
    sequences: &dyn Sequences,
    mut entry: Entry,
    kept: u64,
) -> Result<()> {
    let (number, _) = sequences.advance(AUDIT_NUMBERS, 1)?;
    entry.number = number;
    match txn.insert_new(AUDIT, &key(number), &entry.row())? {
        Inserted::Done => {}
        Inserted::Duplicate(_) => return Err(Error::internal("an audited number is taken")),
    }
    // Above that level a row that another has removed meanwhile would be an error.
    if txn.isolation() != Isolation::ReadCommitted {
        return Ok(());
    }
    let Some(last) = number.checked_sub(kept) else {
        return Ok(());
    };
    let mut batch = RowBatch::default();
    let (all, forward) = (KeyRange::all(), Direction::Forward);
    txn.scan(AUDIT, &all, forward, REMOVED_AT_ONCE, &mut batch)?;
    let last = key(last);
    let old = batch.iter().map(|(key, _)| key.to_vec());
    let old: Vec<_> = old.filter(|key| key[..] <= last[..]).collect();
    for key in old {
        let mut newest = Vec::new();
        let locked = txn.lock_row(AUDIT, &key, RowLock::Update, LockWait::Skip, &mut newest)?;
        if matches!(locked, LockedRow::Unchanged | LockedRow::Changed) {
            txn.delete(AUDIT, &key)?;
        }
    }
    Ok(())
}

/// All rows, by number.
///
/// # Errors
/// As reads.
pub fn read(txn: &mut dyn Reading) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut batch = RowBatch::default();
    let mut rest = Some(KeyRange::all());
    while let Some(range) = rest {
        rest = txn.scan(AUDIT, &range, Direction::Forward, usize::MAX, &mut batch)?;
        for (key, row) in batch.iter() {
            entries.push(Entry::read(key, row)?);
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let entry = Entry {
            number: 7,
            at: -5,
            xid: Some(9),
            pid: 3,
            session_user: "ann".to_owned(),
            command: "GRANT".to_owned(),
            statement: "grant a to b".to_owned(),
            ..Entry::default()
        };
        assert_eq!(Entry::read(&key(7), &entry.row()).unwrap(), entry);
        let entry = Entry::default();
        assert_eq!(Entry::read(&key(0), &entry.row()).unwrap(), entry);
    }
}
