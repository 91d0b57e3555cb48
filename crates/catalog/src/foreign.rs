//! Foreign keys as the catalog keeps them: with the table that refers, never with the one that is
//! referred to, so that making or dropping one changes one descriptor.
//!
//! ```text
//! create table c (a int references p (k) on delete cascade)
//! c.foreign_keys = [{columns [0], table p, referenced [0], on_delete Cascade, …}]
//! ```
//!
//! Which foreign keys point at a table is what [`super::Catalog::referrers`] knows.

use base::codec::{put_bytes, put_varint, Reader};
use base::{Error, Result};

/// What happens to the rows that refer to a row which is deleted or gets another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Action {
    /// It is an error if they are still there when the constraint is checked.
    #[default]
    NoAction,
    /// It is an error, at the end of the statement.
    Restrict,
    /// They are deleted, or follow to the new key.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns get their defaults.
    SetDefault,
}

impl Action {
    const ALL: [Action; 5] = [
        Action::NoAction,
        Action::Restrict,
        Action::Cascade,
        Action::SetNull,
        Action::SetDefault,
    ];

    /// The letter of `pg_constraint.confdeltype` and of the parse tree.
    pub fn letter(self) -> char {
        match self {
            Action::NoAction => 'a',
            Action::Restrict => 'r',
            Action::Cascade => 'c',
            Action::SetNull => 'n',
            Action::SetDefault => 'd',
        }
    }

    /// The action of that letter; without one it is NO ACTION.
    pub fn of_letter(letter: &str) -> Action {
        let same = |action: &&Action| letter.starts_with(action.letter());
        Action::ALL.iter().find(same).copied().unwrap_or_default()
    }

    /// Whether rows are changed.
    pub fn writes(self) -> bool {
        matches!(self, Action::Cascade | Action::SetNull | Action::SetDefault)
    }
}

/// A FOREIGN KEY constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The places of the columns that refer.
    pub columns: Vec<usize>,
    /// The oid of the table that they refer to.
    pub table: u32,
    /// The places of the columns that they refer to.
    pub referenced: Vec<usize>,
    /// The oid of the unique index over those.
    pub index: u32,
    /// MATCH FULL.
    pub match_full: bool,
    /// ON DELETE.
    pub on_delete: Action,
    /// ON UPDATE.
    pub on_update: Action,
    /// The columns that ON DELETE SET NULL or SET DEFAULT names; empty: all.
    pub set_columns: Vec<usize>,
    /// Whether SET CONSTRAINTS may defer it.
    pub deferrable: bool,
    /// Whether it is deferred from the start.
    pub initially_deferred: bool,
    /// Whether the rows that were there when it was made are known to meet it.
    pub validated: bool,
}

/// What a foreign key to a partitioned table is called where it has to do with one partition of that,
/// at whatever depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignPart {
    /// The foreign key, by oid.
    pub key: u32,
    /// The partition, by oid.
    pub partition: u32,
    /// The oid of the constraint that this is in the catalog.
    pub oid: u32,
    /// Its name.
    pub name: String,
}

pub(super) fn put_foreign_part(out: &mut Vec<u8>, part: &ForeignPart) {
    put_varint(out, u64::from(part.key));
    put_varint(out, u64::from(part.partition));
    put_varint(out, u64::from(part.oid));
    put_bytes(out, part.name.as_bytes());
}

pub(super) fn read_foreign_part(reader: &mut Reader<'_>) -> Result<ForeignPart> {
    Ok(ForeignPart {
        key: reader.varint_as()?,
        partition: reader.varint_as()?,
        oid: reader.varint_as()?,
        name: reader.str()?.to_owned(),
    })
}

impl ForeignKey {
    /// The columns that ON DELETE SET NULL or SET DEFAULT sets.
    pub fn set_on_delete(&self) -> &[usize] {
        match self.set_columns.is_empty() {
            true => &self.columns,
            false => &self.set_columns,
        }
    }
}

pub(super) fn put(out: &mut Vec<u8>, key: &ForeignKey) {
    put_varint(out, u64::from(key.oid));
    put_bytes(out, key.name.as_bytes());
    put_places(out, &key.columns);
    put_varint(out, u64::from(key.table));
    put_places(out, &key.referenced);
    put_varint(out, u64::from(key.index));
    out.push(u8::from(key.match_full));
    out.push(key.on_delete as u8);
    out.push(key.on_update as u8);
    put_places(out, &key.set_columns);
    out.push(u8::from(key.deferrable));
    out.push(u8::from(key.initially_deferred));
    out.push(u8::from(key.validated));
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<ForeignKey> {
    Ok(ForeignKey {
        oid: reader.varint_as()?,
        name: reader.str()?.to_owned(),
        columns: read_places(reader)?,
        table: reader.varint_as()?,
        referenced: read_places(reader)?,
        index: reader.varint_as()?,
        match_full: reader.u8()? != 0,
        on_delete: read_action(reader)?,
        on_update: read_action(reader)?,
        set_columns: read_places(reader)?,
        deferrable: reader.u8()? != 0,
        initially_deferred: reader.u8()? != 0,
        validated: reader.u8()? != 0,
    })
}

fn put_places(out: &mut Vec<u8>, places: &[usize]) {
    put_varint(out, places.len() as u64);
    for place in places {
        put_varint(out, *place as u64);
    }
}

fn read_places(reader: &mut Reader<'_>) -> Result<Vec<usize>> {
    let count: usize = reader.varint_as()?;
    (0..count).map(|_| reader.varint_as()).collect()
}

fn read_action(reader: &mut Reader<'_>) -> Result<Action> {
    let code = usize::from(reader.u8()?);
    let action = Action::ALL.get(code).copied();
    action.ok_or_else(|| Error::corrupted(format!("a foreign key with action {code}")))
}
