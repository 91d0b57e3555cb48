//! Triggers: functions that are called when rows of a table, or a table as a whole, are written
//! (PostgreSQL 15 manual, chapter 39).
//!
//! ```text
//! create trigger t before update of a on accounts for each row when (old.a <> new.a) execute function f('x')
//! kept:   BEFORE, row, UPDATE, columns [1], arguments ["x"], condition "old.a <> new.a" of columns (id, a)
//! ```
//! They stand in the descriptor of their table. A condition is kept as it was written, with the names
//! that the table's columns had then, so that it goes on meaning the same when they get others.
//!
//! # Invariants
//! - No two triggers of a table have the same name; they stand in the order of their names, in which
//!   they fire.

use std::sync::Arc;

use base::codec::{put_bytes, put_varint, Reader};
use base::row::put_optional;
use base::{Error, Result};

use super::lists::read_list;
use super::{Catalog, Table};

/// What sets triggers off; the bits are those of `pg_trigger.tgtype`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(pub u8);

#[allow(missing_docs)]
impl Events {
    pub const NONE: Events = Events(0);
    pub const INSERT: Events = Events(4);
    pub const DELETE: Events = Events(8);
    pub const UPDATE: Events = Events(16);
    pub const TRUNCATE: Events = Events(32);

    /// In the order in which definitions list them.
    pub const ALL: [Events; 4] = [
        Events::INSERT,
        Events::DELETE,
        Events::UPDATE,
        Events::TRUNCATE,
    ];

    /// Whether one of those is among these.
    pub const fn has(self, other: Events) -> bool {
        self.0 & other.0 != 0
    }

    /// These and those.
    pub const fn with(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }

    /// What a single one is called.
    pub const fn name(self) -> &'static str {
        match self {
            Events::INSERT => "INSERT",
            Events::DELETE => "DELETE",
            Events::UPDATE => "UPDATE",
            _ => "TRUNCATE",
        }
    }
}

/// When a trigger fires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// Before the row is written, or the statement begins.
    #[default]
    Before,
    /// When the statement is at its end, or the transaction.
    After,
    /// In the place of what a view cannot do.
    InsteadOf,
}

impl Timing {
    /// What definitions call it.
    pub const fn words(self) -> &'static str {
        match self {
            Timing::Before => "BEFORE",
            Timing::After => "AFTER",
            Timing::InsteadOf => "INSTEAD OF",
        }
    }
}

/// Whether a trigger fires, given `session_replication_role`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enabled {
    /// Unless the role is `replica`.
    #[default]
    Origin,
    /// Never.
    Disabled,
    /// Only if it is.
    Replica,
    /// Either way.
    Always,
}

impl Enabled {
    const ALL: [Enabled; 4] = [
        Enabled::Origin,
        Enabled::Disabled,
        Enabled::Replica,
        Enabled::Always,
    ];

    /// Whether what is so fires with that `session_replication_role`, be it `replica` or not.
    pub const fn fires(self, replica: bool) -> bool {
        match self {
            Enabled::Origin => !replica,
            Enabled::Disabled => false,
            Enabled::Replica => replica,
            Enabled::Always => true,
        }
    }

    /// What [`Enabled::letter`] made a letter of.
    pub(super) fn of_letter(letter: u8) -> Result<Enabled> {
        let mut all = Enabled::ALL.into_iter();
        let known = all.find(|known| known.letter() == letter);
        known.ok_or_else(|| Error::corrupted(format!("enabled as {letter}")))
    }

    /// As `pg_trigger.tgenabled` has it.
    pub const fn letter(self) -> u8 {
        match self {
            Enabled::Origin => b'O',
            Enabled::Disabled => b'D',
            Enabled::Replica => b'R',
            Enabled::Always => b'A',
        }
    }
}

/// WHEN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// As text over `old` and `new`.
    pub text: String,
    /// What the columns of the table were called when it was written, dropped ones included.
    pub names: Vec<String>,
    /// The places of those that it looks at.
    pub columns: Vec<usize>,
}

/// CREATE CONSTRAINT TRIGGER.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstraintTrigger {
    /// The oid of the constraint.
    pub oid: u32,
    /// FROM: another table, by oid, or 0.
    pub table: u32,
    /// Whether SET CONSTRAINTS may defer it.
    pub deferrable: bool,
    /// Whether it is deferred unless that says otherwise.
    pub initially_deferred: bool,
}

/// A trigger of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The function that it calls, by oid.
    pub function: u32,
    /// When it fires.
    pub timing: Timing,
    /// Whether once for each row, rather than for each statement.
    pub for_each_row: bool,
    /// What sets it off.
    pub events: Events,
    /// UPDATE OF: the places of the columns; none: all.
    pub columns: Vec<usize>,
    /// What the function finds in `TG_ARGV`.
    pub arguments: Vec<String>,
    /// WHEN.
    pub condition: Option<Condition>,
    /// Whether it fires at all.
    pub enabled: Enabled,
    /// REFERENCING OLD TABLE AS.
    pub old_table: Option<String>,
    /// REFERENCING NEW TABLE AS.
    pub new_table: Option<String>,
    /// What it is as a constraint, if it is one.
    pub constraint: Option<ConstraintTrigger>,
}

impl Trigger {
    /// `pg_trigger.tgtype`.
    pub fn type_bits(&self) -> i16 {
        let timing = match self.timing {
            Timing::Before => 2,
            Timing::After => 0,
            Timing::InsteadOf => 64,
        };
        i16::from(self.for_each_row) | timing | i16::from(self.events.0)
    }

    /// Whether it fires with that `session_replication_role`, be it `replica` or not.
    pub fn fires(&self, replica: bool) -> bool {
        self.enabled.fires(replica)
    }

    /// Whether it is of that kind.
    pub fn is(&self, timing: Timing, for_each_row: bool, event: Events) -> bool {
        self.timing == timing && self.for_each_row == for_each_row && self.events.has(event)
    }
}

impl Table {
    /// The trigger of that name.
    pub fn trigger(&self, name: &str) -> Option<&Trigger> {
        self.triggers.iter().find(|trigger| trigger.name == name)
    }

    /// Whether triggers stand in the place of what is done to a view.
    pub fn has_instead_of(&self, event: Events) -> bool {
        let mut triggers = self.triggers.iter();
        triggers.any(|trigger| trigger.is(Timing::InsteadOf, true, event))
    }

    /// Adds a trigger, in the place of one of its name.
    pub fn put_trigger(&mut self, trigger: Trigger) {
        self.triggers.retain(|known| known.name != trigger.name);
        let place = self
            .triggers
            .partition_point(|known| known.name < trigger.name);
        self.triggers.insert(place, trigger);
    }
}

impl Catalog {
    /// The trigger of that oid, with its table.
    pub fn trigger(&self, oid: u32) -> Option<(&Arc<Table>, &Trigger)> {
        self.tables.iter().find_map(|table| {
            let mut triggers = table.triggers.iter();
            Some((table, triggers.find(|trigger| trigger.oid == oid)?))
        })
    }
}

fn put_places(out: &mut Vec<u8>, places: &[usize]) {
    put_varint(out, places.len() as u64);
    for place in places {
        put_varint(out, *place as u64);
    }
}

fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    put_varint(out, texts.len() as u64);
    for text in texts {
        put_bytes(out, text.as_bytes());
    }
}

fn read_texts(reader: &mut Reader<'_>) -> Result<Vec<String>> {
    read_list(reader, |reader| Ok(reader.str()?.to_owned()))
}

pub(super) fn read_optional(reader: &mut Reader<'_>) -> Result<Option<String>> {
    Ok(match reader.varint()? {
        0 => None,
        _ => Some(reader.str()?.to_owned()),
    })
}

pub(super) fn put(out: &mut Vec<u8>, trigger: &Trigger) {
    put_varint(out, u64::from(trigger.oid));
    put_bytes(out, trigger.name.as_bytes());
    put_varint(out, u64::from(trigger.function));
    out.push(match trigger.timing {
        Timing::Before => 0,
        Timing::After => 1,
        Timing::InsteadOf => 2,
    });
    out.push(u8::from(trigger.for_each_row));
    out.push(trigger.events.0);
    put_places(out, &trigger.columns);
    put_texts(out, &trigger.arguments);
    out.push(u8::from(trigger.condition.is_some()));
    if let Some(condition) = &trigger.condition {
        put_bytes(out, condition.text.as_bytes());
        put_texts(out, &condition.names);
        put_places(out, &condition.columns);
    }
    out.push(trigger.enabled.letter());
    for name in [&trigger.old_table, &trigger.new_table] {
        put_optional(out, name.as_ref().map(|name| name.as_bytes()));
    }
    out.push(u8::from(trigger.constraint.is_some()));
    if let Some(constraint) = &trigger.constraint {
        put_varint(out, u64::from(constraint.oid));
        put_varint(out, u64::from(constraint.table));
        out.push(u8::from(constraint.deferrable) | u8::from(constraint.initially_deferred) << 1);
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Trigger> {
    Ok(Trigger {
        oid: reader.varint_as()?,
        name: reader.str()?.to_owned(),
        function: reader.varint_as()?,
        timing: match reader.u8()? {
            0 => Timing::Before,
            1 => Timing::After,
            2 => Timing::InsteadOf,
            other => return Err(Error::corrupted(format!("a trigger of timing {other}"))),
        },
        for_each_row: reader.u8()? != 0,
        events: Events(reader.u8()?),
        columns: read_list(reader, |reader| reader.varint_as())?,
        arguments: read_texts(reader)?,
        condition: match reader.u8()? {
            0 => None,
            _ => Some(Condition {
                text: reader.str()?.to_owned(),
                names: read_texts(reader)?,
                columns: read_list(reader, |reader| reader.varint_as())?,
            }),
        },
        enabled: Enabled::of_letter(reader.u8()?)?,
        old_table: read_optional(reader)?,
        new_table: read_optional(reader)?,
        constraint: match reader.u8()? {
            0 => None,
            _ => {
                let (oid, table) = (reader.varint_as()?, reader.varint_as()?);
                let flags = reader.u8()?;
                Some(ConstraintTrigger {
                    oid,
                    table,
                    deferrable: flags & 1 != 0,
                    initially_deferred: flags & 2 != 0,
                })
            }
        },
    })
}
