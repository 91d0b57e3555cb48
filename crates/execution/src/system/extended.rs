//! `pg_statistic_ext` and `pg_statistic_ext_data`: extended statistics, and what ANALYZE has found of them
//! (manual, sections 53.51 and 53.52).
//!
//! ```text
//! {"1, 2": 3}               pg_ndistinct      three combinations of the first two columns
//! {"1 => 2": 0.980000}      pg_dependencies   the first column says the second, nearly always
//! ```

use std::fmt::Write;
use std::sync::Arc;

use super::rows::{array, char, flag, int, oid, small, text, vector, Rows};
use super::statistics;
use super::OfCatalog;
use catalog::extended::{Combined, CommonCombinations, Degree, Extended, Gathered};
use catalog::Catalog;
use functions::mcv_list;
use types::{Array, Datum, OwnKind, Record, TypeId};

pub(super) const ROWS: &[OfCatalog] = &[
    ("pg_statistic_ext", objects),
    ("pg_statistic_ext_data", found),
];

/// The oid of `pg_statistic`.
const STATISTIC: u32 = 2_619;

fn objects(catalog: &Catalog, rows: &mut Rows) {
    for made in catalog.all_extended() {
        let columns = made.columns.iter().map(|place| small(place + 1));
        let kinds = [
            (made.kinds.distinct, b'd'),
            (made.kinds.dependencies, b'f'),
            (made.kinds.common, b'm'),
            (!made.expressions.is_empty(), b'e'),
        ];
        let kinds = kinds.iter().filter(|kind| kind.0);
        let kinds = kinds.map(|kind| char(kind.1)).collect();
        rows.push([
            ("oid", oid(made.oid)),
            ("stxrelid", oid(made.table)),
            ("stxname", text(&made.name)),
            ("stxnamespace", oid(made.schema)),
            ("stxowner", oid(made.owner)),
            ("stxstattarget", int(made.target)),
            ("stxkeys", vector(TypeId::INT2, columns.collect())),
            ("stxkind", array(TypeId::CHAR, kinds)),
            ("stxexprs", expressions(made)),
        ]);
    }
}

fn expressions(made: &Extended) -> Datum {
    let texts = made.expressions.iter().map(|known| known.text.as_str());
    let node = planner::bind::stored::keys_node(&texts.collect::<Vec<_>>());
    node.map_or(Datum::Null, text)
}

fn found(catalog: &Catalog, rows: &mut Rows) {
    for made in catalog.all_extended() {
        let Some(found) = catalog.gathered(made) else {
            continue;
        };
        let common = found.common.as_ref();
        let distinct = found.distinct.as_deref().map(distinct_text);
        let degrees = found.dependencies.as_deref().map(dependencies_text);
        rows.push([
            ("stxoid", oid(made.oid)),
            ("stxdinherit", flag(false)),
            ("stxdndistinct", distinct.map_or(Datum::Null, text)),
            ("stxddependencies", degrees.map_or(Datum::Null, text)),
            (
                "stxdmcv",
                common.and_then(common_bytes).unwrap_or(Datum::Null),
            ),
            ("stxdexpr", of_expressions(catalog, found)),
        ]);
    }
}

fn numbers(parts: &[i16]) -> String {
    let parts: Vec<_> = parts.iter().map(i16::to_string).collect();
    parts.join(", ")
}

fn distinct_text(all: &[Combined]) -> String {
    let shown = all.iter().map(|one| {
        let parts = numbers(&one.parts);
        format!("\"{parts}\": {}", one.distinct as i64)
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
}

fn dependencies_text(all: &[Degree]) -> String {
    let mut out = String::from("{");
    for (place, one) in all.iter().enumerate() {
        if let Some((last, others)) = one.parts.split_last() {
            let separator = if place > 0 { ", " } else { "" };
            let others = numbers(others);
            // Writing into a String cannot fail.
            let _ = write!(out, "{separator}\"{others} => {last}\": {:.6}", one.degree);
        }
    }
    out.push('}');
    out
}

fn common_bytes(common: &CommonCombinations) -> Option<Datum> {
    let mut bytes = Vec::new();
    mcv_list::put(&mut bytes, common).ok()?;
    Some(Datum::bytea(&bytes))
}

/// A row of `pg_statistic` for each expression.
fn of_expressions(catalog: &Catalog, found: &Gathered) -> Datum {
    let row_type = TypeId::own(OwnKind::Row, STATISTIC);
    let table = catalog.table_by_oid(STATISTIC);
    let (Some(row_type), Some(table), false) = (row_type, table, found.expressions.is_empty())
    else {
        return Datum::Null;
    };
    let types: Vec<_> = table.columns.iter().map(|column| column.type_id).collect();
    let of_one = |known: &Option<Arc<_>>| {
        let Some(known) = known else {
            return Datum::Null;
        };
        let mut rows = Rows::new(table);
        statistics::put(known, &[], 0, &mut rows);
        match rows.rows.pop() {
            Some(values) => Datum::Record(Arc::new(Record {
                types: types.clone(),
                values,
                names: None,
            })),
            None => Datum::Null,
        }
    };
    let elements = found.expressions.iter().map(of_one).collect();
    Datum::Array(Arc::new(Array::of(row_type, elements)))
}
