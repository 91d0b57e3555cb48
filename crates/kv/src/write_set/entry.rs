//! The form that rows have outside of the map: in a tail, and in a run.
//!
//! | part | form |
//! |---|---|
//! | key | its length, and it |
//! | flags | 1 byte: [`HAS_BASE`], [`HAS_OLDER`], [`IS_ROW`] of the newest version |
//! | base | row with its length, if there is one |
//! | older versions | how many, if there are any; each its command, serial number, 1 byte whether it is a row, and the row |
//! | newest version | command, serial number, and the row, if it is one |
//!
//! Most rows are *plain*: written once, and absent before. They have no base and no older version.

use base::codec::{put_bytes, put_varint, Reader};
use base::{CommandId, Key, Result};

use super::{Own, Stack, State, Version};

const HAS_BASE: u8 = 1;
const HAS_OLDER: u8 = 2;
const IS_ROW: u8 = 4;

/// A row and all that is known of it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) stack: Stack,
}

/// A row that was written once, and was absent before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<'a> {
    pub(super) key: &'a [u8],
    pub(super) command: CommandId,
    pub(super) serial: u64,
    pub(super) row: &'a [u8],
}

impl<'a> Plain<'a> {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.key);
        out.push(IS_ROW);
        put_varint(out, u64::from(self.command.0));
        put_varint(out, self.serial);
        put_bytes(out, self.row);
    }

    /// Reads what is known to be plain.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Plain<'a>> {
        let mut reader = Reader::new(bytes);
        let key = reader.bytes()?;
        let flags = reader.u8()?;
        assert_eq!(flags, IS_ROW, "the flags of a plain row");
        Ok(Plain {
            key,
            command: CommandId(reader.varint_as()?),
            serial: reader.varint()?,
            row: reader.bytes()?,
        })
    }

    pub(super) fn to_stack(self) -> Stack {
        Stack {
            base: None,
            newest: Version {
                command: self.command,
                serial: self.serial,
                state: Some(self.row.to_vec()),
            },
            older: Vec::new(),
        }
    }

    pub(super) fn to_entry(self) -> Entry {
        Entry {
            key: self.key.to_vec(),
            stack: self.to_stack(),
        }
    }

    pub(super) fn own(self) -> Own<'a> {
        Own {
            command: self.command,
            row: Some(self.row.into()),
        }
    }
}

impl Entry {
    /// The entry, in whose place an empty one is left.
    pub(super) fn take(&mut self) -> Entry {
        let empty = Stack {
            base: None,
            newest: Version {
                command: CommandId(0),
                serial: 0,
                state: None,
            },
            older: Vec::new(),
        };
        Entry {
            key: std::mem::take(&mut self.key),
            stack: std::mem::replace(&mut self.stack, empty),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let stack = &self.stack;
        put_bytes(out, &self.key);
        let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        out.push(
            flag(HAS_BASE, stack.base.is_some())
                | flag(HAS_OLDER, !stack.older.is_empty())
                | flag(IS_ROW, stack.newest.state.is_some()),
        );
        if let Some(base) = &stack.base {
            put_bytes(out, base);
        }
        if !stack.older.is_empty() {
            put_varint(out, stack.older.len() as u64);
        }
        for version in &stack.older {
            put_stamp(out, version);
            out.push(u8::from(version.state.is_some()));
            put_state(out, &version.state);
        }
        put_stamp(out, &stack.newest);
        put_state(out, &stack.newest.state);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Entry> {
        let key = reader.bytes()?.to_vec();
        let flags = reader.u8()?;
        let base = read_state(reader, flags & HAS_BASE != 0)?;
        let count: usize = match flags & HAS_OLDER {
            0 => 0,
            _ => reader.varint_as()?,
        };
        let mut older = Vec::with_capacity(count);
        for _ in 0..count {
            let (command, serial) = read_stamp(reader)?;
            let is_row = reader.u8()? != 0;
            older.push(Version {
                command,
                serial,
                state: read_state(reader, is_row)?,
            });
        }
        let (command, serial) = read_stamp(reader)?;
        let newest = Version {
            command,
            serial,
            state: read_state(reader, flags & IS_ROW != 0)?,
        };
        let stack = Stack {
            base,
            newest,
            older,
        };
        Ok(Entry { key, stack })
    }
}

fn put_stamp(out: &mut Vec<u8>, version: &Version) {
    put_varint(out, u64::from(version.command.0));
    put_varint(out, version.serial);
}

fn read_stamp(reader: &mut Reader<'_>) -> Result<(CommandId, u64)> {
    Ok((CommandId(reader.varint_as()?), reader.varint()?))
}

fn put_state(out: &mut Vec<u8>, state: &State) {
    if let Some(row) = state {
        put_bytes(out, row);
    }
}

fn read_state(reader: &mut Reader<'_>, is_row: bool) -> Result<State> {
    Ok(match is_row {
        true => Some(reader.bytes()?.to_vec()),
        false => None,
    })
}
