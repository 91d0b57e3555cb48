//! Functions that give rows of several columns: what they are called in FROM, and their rows.
//!
//! Such a function has the result `record`; [`columns`] says which columns its records have, which
//! in PostgreSQL its OUT arguments say.

use std::sync::Arc;

use base::error::Result;

use super::arguments::Arguments;
use super::{Call, Rows};
use types::datetime::SECOND;
use types::{Datum, Interval, Record, TypeId, Zone};

/// The columns of the rows of a function, if they have several.
pub fn columns(oid: u32) -> Option<&'static [(&'static str, TypeId)]> {
    let columns: &'static [_] = match oid {
        1_689 => &[
            ("grantor", TypeId::OID),
            ("grantee", TypeId::OID),
            ("privilege_type", TypeId::TEXT),
            ("is_grantable", TypeId::BOOL),
        ],
        2_289 => &[
            ("option_name", TypeId::TEXT),
            ("option_value", TypeId::TEXT),
        ],
        2_856 => &[
            ("name", TypeId::TEXT),
            ("abbrev", TypeId::TEXT),
            ("utc_offset", TypeId::INTERVAL),
            ("is_dst", TypeId::BOOL),
        ],
        3_423 => &[
            ("relid", TypeId::REGCLASS),
            ("parentrelid", TypeId::REGCLASS),
            ("isleaf", TypeId::BOOL),
            ("level", TypeId::INT4),
        ],
        _ => return None,
    };
    Some(columns)
}

pub(super) fn record(call: &Call<'_>, oid: u32, values: Vec<Datum>) -> Datum {
    let _ = call;
    let columns = columns(oid).unwrap_or_default();
    assert_eq!(columns.len(), values.len(), "columns of function {oid}");
    Datum::Record(Arc::new(Record {
        types: columns.iter().map(|column| column.1).collect(),
        values,
    }))
}

/// `pg_options_to_table`: `name=value` pairs taken apart.
pub(crate) fn options(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let array = args.array(0)?;
    let row = |element: &Datum| {
        let (name, value) = match element.as_str().split_once('=') {
            Some((name, value)) => (name, Datum::text(value)),
            None => (element.as_str(), Datum::Null),
        };
        Ok(record(call, 2_289, vec![Datum::text(name), value]))
    };
    let rows: Vec<_> = array.elements.iter().map(row).collect();
    Ok(Box::new(rows.into_iter()))
}

/// `pg_timezone_names`: the zones that `TimeZone` takes by name, as they are now.
pub(crate) fn zones(call: &Call<'_>, _: &[Datum]) -> Result<Rows> {
    let now = call.context.transaction_start;
    let row = |zone: Zone| {
        let offset = zone.offset_at(now);
        let offset = Interval {
            months: 0,
            days: 0,
            micros: i64::from(offset) * SECOND,
        };
        let values = vec![
            Datum::text(zone.name()),
            Datum::text(zone.abbreviation_at(now)),
            Datum::Interval(offset),
            Datum::Bool(zone.is_daylight_at(now)),
        ];
        Ok(record(call, 2_856, values))
    };
    let rows: Vec<_> = Zone::all().map(row).collect();
    Ok(Box::new(rows.into_iter()))
}

/// `oidvectortypes`: the names of types, as arguments are listed.
pub(crate) fn type_names(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = args.array(0)?;
    let name = |element: &Datum| match element {
        Datum::Oid(oid) => TypeId(*oid).to_string(),
        _ => String::new(),
    };
    let names: Vec<_> = array.elements.iter().map(name).collect();
    Ok(Datum::text(names.join(", ")))
}
