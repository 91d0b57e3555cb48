//! Functions of the system that need nothing but their arguments.

use base::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::{Call, Records, Rows};
use types::text::NAME_BYTES_MAX;
use types::typmod::format_type;
use types::width::width;
use types::{compare, Datum, Numeric, TypeId};

/// The version of PostgreSQL whose behaviour is meant, as `server_version` shows it.
pub const SERVER_VERSION: &str = "15.0";

pub(crate) fn version(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(format!(
        "PostgreSQL {SERVER_VERSION} (Quorate {}) on {}-{}, 64-bit",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS
    )))
}

pub(crate) static PARTITIONS: Records = Records {
    columns: &[
        ("relid", TypeId::REGCLASS),
        ("parentrelid", TypeId::REGCLASS),
        ("isleaf", TypeId::BOOL),
        ("level", TypeId::INT4),
    ],
    rows: partition_tree,
};

pub(crate) static LAST_COMMIT: Records = Records {
    columns: &[
        ("xid", TypeId::XID),
        ("timestamp", TypeId::TIMESTAMPTZ),
        ("roident", TypeId::OID),
    ],
    rows: |_, _| Err(no_commit_timestamps()),
};

pub(crate) static COMMIT_ORIGIN: Records = Records {
    columns: &[("timestamp", TypeId::TIMESTAMPTZ), ("roident", TypeId::OID)],
    rows: |_, _| Err(no_commit_timestamps()),
};

/// `pg_xact_commit_timestamp`: nobody keeps when transactions have committed, as in PostgreSQL where
/// `track_commit_timestamp` is off.
pub(crate) fn commit_timestamp(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Err(no_commit_timestamps())
}

fn no_commit_timestamps() -> Error {
    let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
    Error::new(state, "could not get commit timestamp data")
        .with_hint("Make sure the configuration parameter \"track_commit_timestamp\" is set.")
}

fn ancestors(call: &Call<'_>, relation: u32) -> Vec<u32> {
    let names = call.context.names.as_ref();
    names.map_or_else(Vec::new, |names| names.partition_ancestors(relation))
}

/// `pg_partition_ancestors`.
pub(crate) fn partition_ancestors(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let Datum::Oid(relation) = args.any(0)? else {
        return Ok(Box::new(std::iter::empty()));
    };
    let all = ancestors(call, *relation).into_iter();
    Ok(Box::new(all.map(|oid| Ok(Datum::Oid(oid)))))
}

/// `pg_partition_root`.
pub(crate) fn partition_root(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Oid(relation) = args.any(0)? else {
        return Ok(Datum::Null);
    };
    let root = ancestors(call, *relation).pop();
    Ok(root.map_or(Datum::Null, Datum::Oid))
}

/// `pg_partition_tree`.
fn partition_tree(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let Datum::Oid(relation) = args.any(0)? else {
        return Ok(Box::new(std::iter::empty()));
    };
    let names = call.context.names.as_ref();
    let all = names.map_or_else(Vec::new, |names| names.partition_tree(*relation));
    let row = |(oid, is_leaf)| {
        let above = ancestors(call, oid);
        let level = above.iter().position(|known| known == relation);
        PARTITIONS.row(vec![
            Datum::Oid(oid),
            above.get(1).map_or(Datum::Null, |oid| Datum::Oid(*oid)),
            Datum::Bool(is_leaf),
            Datum::Int4(level.map_or(0, |level| level as i32)),
        ])
    };
    let rows: Vec<_> = all.into_iter().map(row).collect();
    Ok(Box::new(rows.into_iter().map(Ok)))
}

pub(crate) fn type_of(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    let kind = call.argument_types.first().copied();
    Ok(Datum::Oid(kind.unwrap_or(TypeId::UNKNOWN).0))
}

/// `pg_column_size`: what the value takes in a row. Nothing is compressed.
pub(crate) fn column_size(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let kind = call.argument_types.first().copied();
    let width = width(kind.unwrap_or(TypeId::UNKNOWN), args.any(0)?);
    Ok(Datum::Int4(i32::try_from(width.stored).unwrap_or(i32::MAX)))
}

/// `pg_column_compression`: no value is compressed.
pub(crate) fn column_compression(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Null)
}

/// The last 32 bits of an id.
pub(crate) fn xid_of_xid8(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match args.any(0)? {
        Datum::Unsigned8(id) => Ok(Datum::Oid(*id as u32)),
        _ => Err(Error::internal("an xid8 is wanted")),
    }
}

/// `mxid_age`: several transactions lock a row without an id in common, so the first one is next for ever.
pub(crate) fn mxid_age(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    const FIRST: u32 = 1;
    Ok(match args.any(0)? {
        Datum::Oid(0) => Datum::Int4(i32::MAX),
        Datum::Oid(id) => Datum::Int4(FIRST.wrapping_sub(*id) as i32),
        _ => Datum::Null,
    })
}

pub(crate) fn type_name(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Oid(oid) = args.any(0)? else {
        return Ok(Datum::Null);
    };
    let typmod = match args.any(1)? {
        Datum::Int4(typmod) => *typmod,
        // Without a modifier at all, "character" needs no quotes.
        _ => {
            let name = TypeId(*oid).to_string();
            return Ok(Datum::text(call.context.name_types(name)));
        }
    };
    let name = format_type(TypeId(*oid), typmod);
    Ok(Datum::text(call.context.name_types(name)))
}

pub(crate) fn hash(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let kind = call.argument_types.first().copied();
    let wide = compare::hash(kind.unwrap_or(TypeId::UNKNOWN), args.any(0)?);
    Ok(Datum::Int4((wide ^ wide >> 32) as i32))
}

pub(crate) fn random_uuid(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    let mut uuid = [0; 16];
    // Applications use them as tokens that nobody can guess, so not from the generator whose other
    // numbers anybody sees in random().
    uuid.copy_from_slice(&call.context.clock.secret()[..16]);
    // Version 4, variant 1.
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(Datum::Uuid(uuid))
}

pub(crate) fn count_nulls(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(
        args.iter().filter(|v| v.is_null()).count() as i32
    ))
}

/// A name with an OID behind it, cut where both together are too long for a name.
pub(crate) fn name_with_oid(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Oid(oid) = args.any(1)? else {
        return Err(Error::internal("an oid that is none"));
    };
    let (name, suffix) = (args.text(0)?, format!("_{oid}"));
    let mut end = name.len().min(NAME_BYTES_MAX - suffix.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Ok(Datum::text(format!("{}{suffix}", &name[..end])))
}

/// Nothing is compiled to machine code.
pub(crate) fn jit_available(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(false))
}

pub(crate) fn count_nonnulls(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(
        args.iter().filter(|v| !v.is_null()).count() as i32
    ))
}

/// Bytes between two positions in a log.
pub(crate) fn lsn_difference(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.unsigned8(0)?, args.unsigned8(1)?);
    Ok(Datum::Numeric(Numeric::new(
        i128::from(a) - i128::from(b),
        0,
    )))
}

/// A position so many further on, or back.
fn moved(lsn: u64, by: &Numeric, back: bool) -> Result<Datum> {
    let unsupported = |message: &str| Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    if by.is_nan() {
        return Err(unsupported(match back {
            true => "cannot subtract NaN from pg_lsn",
            false => "cannot add NaN to pg_lsn",
        }));
    }
    if !by.is_finite() {
        return Err(unsupported("cannot convert infinity to pg_lsn"));
    }
    let lsn = Numeric::new(i128::from(lsn), 0);
    let moved = if back { lsn.sub(by)? } else { lsn.add(by)? };
    let moved = moved.round(0)?.to_string().parse();
    moved
        .map(Datum::Unsigned8)
        .map_err(|_| Error::new(SqlState::INVALID_PARAMETER_VALUE, "pg_lsn out of range"))
}

/// `pg_lsn(numeric)`.
pub(crate) fn lsn_of(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let number = args.numeric(0)?;
    if number.is_nan() {
        let message = "cannot convert NaN to pg_lsn";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    moved(0, number, false)
}

pub(crate) fn lsn_plus(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    moved(args.unsigned8(0)?, args.numeric(1)?, false)
}

pub(crate) fn plus_lsn(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    moved(args.unsigned8(1)?, args.numeric(0)?, false)
}

pub(crate) fn lsn_minus(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    moved(args.unsigned8(0)?, args.numeric(1)?, true)
}
