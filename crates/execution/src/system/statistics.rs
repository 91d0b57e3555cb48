//! `pg_statistic`: what ANALYZE has found of columns, in PostgreSQL's slots (manual, section 53.50).
//!
//! ```text
//! kind 1   the most common values and how often they are      operator =
//! kind 2   the bounds of the histogram                        operator <
//! kind 3   the correlation                                    operator <
//! ```

use std::sync::Arc;

use functions::resolve_operator;

use super::rows::{array, flag, int, oid, small, Rows};
use super::OfCatalog;
use catalog::statistics::ColumnStatistics;
use catalog::{collation, Catalog, Table};
use types::{Array, Datum, TypeId};

pub(super) const ROWS: &[OfCatalog] = &[("pg_statistic", statistics)];

/// The names of the columns of a slot: kind, operator, collation, numbers, values.
const SLOTS: [[&str; 5]; 3] = [
    [
        "stakind1",
        "staop1",
        "stacoll1",
        "stanumbers1",
        "stavalues1",
    ],
    [
        "stakind2",
        "staop2",
        "stacoll2",
        "stanumbers2",
        "stavalues2",
    ],
    [
        "stakind3",
        "staop3",
        "stacoll3",
        "stanumbers3",
        "stavalues3",
    ],
];

const COMMON: i16 = 1;
const HISTOGRAM: i16 = 2;
const CORRELATION: i16 = 3;

fn statistics(catalog: &Catalog, rows: &mut Rows) {
    for table in catalog.tables.iter().filter(|table| table.kind.has_rows()) {
        for place in 0..table.columns.len() {
            if let Some(found) = catalog.column_statistics(table, place) {
                put_column(table, place, found, rows);
            }
        }
    }
}

fn put_column(table: &Table, place: usize, found: &ColumnStatistics, rows: &mut Rows) {
    let of = [
        ("starelid", oid(table.oid)),
        ("staattnum", small(place + 1)),
        ("stainherit", flag(false)),
    ];
    put(found, &of, table.columns[place].collation, rows);
}

/// Puts the row of what was found, after these of its columns; of values with a collation, or 0 for that of
/// their type.
pub(super) fn put(
    found: &ColumnStatistics,
    of: &[(&'static str, Datum)],
    collation: u32,
    rows: &mut Rows,
) {
    let floats = |values: &[f32]| {
        let values = values.iter().map(|value| Datum::Float4(*value));
        array(TypeId::FLOAT4, values.collect())
    };
    let values =
        |values: &[Datum]| Datum::Array(Arc::new(Array::of(found.type_id, values.to_vec())));
    let mut slots = Vec::new();
    if !found.common.is_empty() {
        let frequencies = floats(&found.frequencies);
        slots.push((COMMON, "=", frequencies, values(&found.common)));
    }
    if !found.histogram.is_empty() {
        slots.push((HISTOGRAM, "<", Datum::Null, values(&found.histogram)));
    }
    if let Some(correlation) = found.correlation {
        slots.push((CORRELATION, "<", floats(&[correlation]), Datum::Null));
    }
    let collation = match (collation::of_type(found.type_id), collation) {
        (0, _) => 0,
        (usual, 0) => usual,
        (_, own) => own,
    };
    let mut row = of.to_vec();
    row.extend([
        ("stanullfrac", Datum::Float4(found.null_fraction)),
        ("stawidth", int(found.width)),
        ("stadistinct", Datum::Float4(found.distinct)),
    ]);
    for (names, (kind, operator, numbers, values)) in SLOTS.iter().zip(slots) {
        let found = resolve_operator(operator, found.type_id, found.type_id);
        let operator = found.map_or(0, |found| found.operator.oid);
        let columns = [
            Datum::Int2(kind),
            oid(operator),
            oid(collation),
            numbers,
            values,
        ];
        row.extend(names.iter().copied().zip(columns));
    }
    rows.push(row);
}
