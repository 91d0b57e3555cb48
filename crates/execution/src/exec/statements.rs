//! What was counted of statements ([`crate::state::statements`]): the functions of `pg_stat_statements`.
//!
//! ```text
//! select query, calls from pg_stat_statements(true)     what this node's sessions have run
//! ```
//! Who is no member of `pg_read_all_stats` sees of other roles' statements neither text nor id.
//!
//! # What it leaves out
//! Blocks, scratch space, the log and compilation are not counted by statement: 0.

use std::sync::Arc;

use base::memory::Reservation;
use base::{coro, Result};

use super::Exec;
use crate::state::statements::{Counts, Key, Statements, Times};
use catalog::access::READ_ALL_STATS;
use functions::session::StatementsFunction;
use functions::statement_columns::{COLUMNS, INFO_COLUMNS};
use types::{Array, Datum, Record, TypeId};

/// What a row takes in memory beside its text, about.
const ROW_BYTES: usize = COLUMNS.len() * size_of::<(Datum, TypeId)>();

/// Computes one of the functions.
pub(super) fn call(cx: &mut Exec<'_>, which: StatementsFunction, args: &[Datum]) -> Result<Datum> {
    let node = cx.host.shared().node_statistics.clone();
    let node = node.as_deref().map(|node| &node.statements);
    match which {
        StatementsFunction::List => list(cx, node, args[0].is_true()),
        StatementsFunction::Info => {
            let (evictions, since) = node.map_or((0, 0), Statements::info);
            let values = vec![Datum::Int8(evictions), Datum::TimestampTz(since)];
            Ok(record(INFO_COLUMNS, values))
        }
        StatementsFunction::Reset => {
            let now = cx.host.shared().env.wall_clock().0;
            let number = |place: usize| args[place].as_i64().unwrap_or(0);
            let oid = |place: usize| match args[place] {
                Datum::Oid(oid) => oid,
                _ => number(place) as u32,
            };
            if let Some(node) = node {
                node.reset(oid(0), oid(1), number(2), now);
            }
            Ok(Datum::Void)
        }
    }
}

fn record(columns: &[(&str, TypeId)], values: Vec<Datum>) -> Datum {
    Datum::Record(Arc::new(Record {
        types: columns.iter().map(|column| column.1).collect(),
        values,
        names: None,
    }))
}

/// All statements, as an array of rows.
fn list(cx: &mut Exec<'_>, node: Option<&Statements>, with_text: bool) -> Result<Datum> {
    let own = cx.role();
    let sees_all = cx.catalog.has_privileges_of(own, READ_ALL_STATS);
    let mut held = Reservation::of("The statements that were counted");
    let mut rows = Vec::new();
    for (key, text, counts) in node.map(Statements::all).unwrap_or_default() {
        coro::work(COLUMNS.len())?;
        let is_seen = sees_all || key.user == own;
        let text = match (with_text, is_seen) {
            (false, _) => Datum::Null,
            (true, true) => Datum::text(&text),
            (true, false) => Datum::text("<insufficient privilege>"),
        };
        let bytes = if let Datum::Text(text) = &text {
            text.len()
        } else {
            0
        };
        held.grow(ROW_BYTES + bytes)?;
        rows.push(record(COLUMNS, row(&key, is_seen, text, &counts)));
    }
    Ok(Datum::Array(Arc::new(Array::of(TypeId::RECORD, rows))))
}

fn row(key: &Key, is_seen: bool, text: Datum, counts: &Counts) -> Vec<Datum> {
    let number = |number: u64| Datum::Int8(i64::try_from(number).unwrap_or(i64::MAX));
    let times = |times: &Times| {
        let figures = [times.total, times.min, times.max, times.mean];
        let figures = figures.into_iter().chain([times.deviation()]);
        figures.map(Datum::Float8).collect::<Vec<_>>()
    };
    let mut row = vec![
        Datum::Oid(key.user),
        Datum::Oid(key.database),
        Datum::Bool(key.toplevel),
        if is_seen {
            Datum::Int8(key.id)
        } else {
            Datum::Null
        },
        text,
        number(counts.planning.count),
    ];
    row.extend(times(&counts.planning));
    row.push(number(counts.running.count));
    row.extend(times(&counts.running));
    row.push(number(counts.rows));
    let left = COLUMNS[row.len()..].iter();
    row.extend(left.map(|(_, ty)| match *ty {
        TypeId::FLOAT8 => Datum::Float8(0.0),
        TypeId::NUMERIC => Datum::Numeric(0_i64.into()),
        _ => Datum::Int8(0),
    }));
    row
}
