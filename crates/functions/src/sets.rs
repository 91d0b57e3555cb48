//! Functions that give rows of several columns: what they are called in FROM, and their rows.
//!
//! Such a function has the result `record`; [`Records`] says which columns its records have, which
//! in PostgreSQL its OUT arguments say.

use std::sync::Arc;

use base::error::Result;

use super::arguments::Arguments;
use super::{Call, Rows, SetReturning};
use types::datetime::SECOND;
use types::{Datum, Interval, Record, TypeId, Zone};

/// A function that gives rows of several columns.
#[derive(Debug)]
pub struct Records {
    /// The names and types of the columns.
    pub columns: &'static [(&'static str, TypeId)],
    /// What makes the rows, each by [`Records::row`].
    pub rows: SetReturning,
}

impl Records {
    pub(super) fn row(&self, values: Vec<Datum>) -> Datum {
        let names = self.columns.iter().map(|column| column.0);
        assert_eq!(
            self.columns.len(),
            values.len(),
            "columns {:?}",
            names.collect::<Vec<_>>()
        );
        Datum::Record(Arc::new(Record {
            types: self.columns.iter().map(|column| column.1).collect(),
            values,
            names: None,
        }))
    }
}

pub(crate) static OPTIONS: Records = Records {
    columns: &[
        ("option_name", TypeId::TEXT),
        ("option_value", TypeId::TEXT),
    ],
    rows: options,
};

pub(crate) static ZONES: Records = Records {
    columns: &[
        ("name", TypeId::TEXT),
        ("abbrev", TypeId::TEXT),
        ("utc_offset", TypeId::INTERVAL),
        ("is_dst", TypeId::BOOL),
    ],
    rows: zones,
};

pub(crate) static ABBREVIATIONS: Records = Records {
    columns: &[
        ("abbrev", TypeId::TEXT),
        ("utc_offset", TypeId::INTERVAL),
        ("is_dst", TypeId::BOOL),
    ],
    rows: abbreviations,
};

/// `pg_options_to_table`: `name=value` pairs taken apart.
fn options(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let array = args.array(0)?;
    let row = |element: &Datum| {
        let (name, value) = match element.as_str().split_once('=') {
            Some((name, value)) => (name, Datum::text(value)),
            None => (element.as_str(), Datum::Null),
        };
        Ok(OPTIONS.row(vec![Datum::text(name), value]))
    };
    let rows: Vec<_> = array.elements.iter().map(row).collect();
    Ok(Box::new(rows.into_iter()))
}

/// `pg_timezone_names`: the zones that `TimeZone` takes by name, as they are now.
fn zones(call: &Call<'_>, _: &[Datum]) -> Result<Rows> {
    let now = call.context.transaction_start;
    let row = |zone: Zone| {
        let values = vec![
            Datum::text(zone.name()),
            Datum::text(zone.abbreviation_at(now)),
            interval_of(zone.offset_at(now)),
            Datum::Bool(zone.is_daylight_at(now)),
        ];
        Ok(ZONES.row(values))
    };
    let rows: Vec<_> = Zone::all().map(row).collect();
    Ok(Box::new(rows.into_iter()))
}

/// `pg_timezone_abbrevs`: the abbreviations of zones, as what they mean now.
fn abbreviations(call: &Call<'_>, _: &[Datum]) -> Result<Rows> {
    let now = call.context.transaction_start;
    let row = |(name, zone, is_daylight): (&str, Zone, bool)| {
        let values = vec![
            Datum::text(name.to_ascii_uppercase()),
            interval_of(zone.offset_at(now)),
            Datum::Bool(is_daylight || zone.is_daylight_at(now)),
        ];
        Ok(ABBREVIATIONS.row(values))
    };
    let rows: Vec<_> = Zone::abbreviations().map(row).collect();
    Ok(Box::new(rows.into_iter()))
}

fn interval_of(seconds: i32) -> Datum {
    Datum::Interval(Interval {
        months: 0,
        days: 0,
        micros: i64::from(seconds) * SECOND,
    })
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
