//! Sequences: what CREATE SEQUENCE says of one.
//!
//! The definition is a row of the catalog, as transactional as any other. Where the sequence
//! stands is not: the engine keeps that under [`Sequence::state`] and never takes it back
//! ([`base::engine::Sequences::next_values`]). What must be transactional nevertheless (RESTART,
//! TRUNCATE … RESTART IDENTITY) gives the sequence another state, which begins at
//! [`Sequence::begins_at`].

use base::codec::{put_signed, put_varint, Reader};
use base::engine::SequenceSpec;
use base::{Result, SequenceId};

use super::descriptor;
use types::TypeId;

/// A sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Where the engine keeps how far it has come.
    pub state: SequenceId,
    /// INT2, INT4 or INT8.
    pub type_id: TypeId,
    /// START WITH.
    pub start: i64,
    /// INCREMENT BY.
    pub increment: i64,
    /// MINVALUE.
    pub min: i64,
    /// MAXVALUE.
    pub max: i64,
    /// CACHE: so many values a session takes at a time.
    pub cache: i64,
    /// Whether it begins anew at its end.
    pub cycle: bool,
    /// The first value of its state; where START says in most cases.
    pub begins_at: i64,
    /// The column that it belongs to.
    pub owner: Option<Owner>,
}

/// The column that a sequence belongs to, and with which it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The table's oid.
    pub table: u32,
    /// The column's place.
    pub column: usize,
    /// Whether the column is an identity column; else OWNED BY or serial said so.
    pub identity: bool,
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence {
            state: SequenceId(0),
            type_id: TypeId::INT8,
            start: 1,
            increment: 1,
            min: 1,
            max: i64::MAX,
            cache: 1,
            cycle: false,
            begins_at: 1,
            owner: None,
        }
    }
}

impl Sequence {
    /// The least and the greatest value of its type.
    pub fn limits(&self) -> (i64, i64) {
        limits_of(self.type_id)
    }

    /// What the engine must know to give values.
    pub fn spec(&self) -> SequenceSpec {
        SequenceSpec {
            begins_at: self.begins_at,
            increment: self.increment,
            min: self.min,
            max: self.max,
            cycle: self.cycle,
        }
    }
}

/// The least and the greatest value of an integer type.
pub fn limits_of(type_id: TypeId) -> (i64, i64) {
    match type_id {
        TypeId::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        TypeId::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

pub(super) fn encode(sequence: &Sequence, out: &mut Vec<u8>) {
    put_varint(out, sequence.state.0);
    put_varint(out, u64::from(sequence.type_id.0));
    let numbers = [
        sequence.start,
        sequence.increment,
        sequence.min,
        sequence.max,
        sequence.cache,
        sequence.begins_at,
    ];
    for number in numbers {
        put_signed(out, number);
    }
    out.push(u8::from(sequence.cycle));
    descriptor::put_part(out, sequence.owner.as_ref(), |owner, out| {
        put_varint(out, u64::from(owner.table));
        put_varint(out, owner.column as u64);
        out.push(u8::from(owner.identity));
    });
}

pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Sequence> {
    Ok(Sequence {
        state: SequenceId(reader.varint()?),
        type_id: TypeId(reader.varint_as()?),
        start: reader.signed()?,
        increment: reader.signed()?,
        min: reader.signed()?,
        max: reader.signed()?,
        cache: reader.signed()?,
        begins_at: reader.signed()?,
        cycle: reader.u8()? != 0,
        owner: descriptor::read_part(reader, |reader| {
            Ok(Owner {
                table: reader.varint_as()?,
                column: reader.varint_as()?,
                identity: reader.u8()? != 0,
            })
        })?,
    })
}
