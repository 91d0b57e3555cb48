//! `pg_partitioned_table`'s and `pg_inherits`' rows: what is divided by which key, whose partitions there
//! are, and who inherits from whom.

use super::objects::user_tables;
use super::rows::{char, oid, small, text, vector, Rows};
use catalog::operator_class::OperatorClass;
use catalog::partition::{Bound, Strategy};
use catalog::{collation, Catalog, KeySource};
use types::{Datum, TypeId};

/// The methods whose operator classes keys have.
const BTREE: u32 = 403;
const HASH: u32 = 405;

fn class_of(strategy: Strategy, ty: TypeId) -> u32 {
    let method = match strategy {
        Strategy::Hash => HASH,
        Strategy::Range | Strategy::List => BTREE,
    };
    OperatorClass::default_of(method, ty).map_or(0, |class| class.oid)
}

pub(super) fn tables(catalog: &Catalog, rows: &mut Rows) {
    for table in user_tables(catalog) {
        let Some(key) = &table.partition_key else {
            continue;
        };
        let default = catalog
            .partitions(table)
            .find(|(_, of)| of.bound == Bound::Default);
        let place = |source: &KeySource| match source {
            KeySource::Column(place) => small(place + 1),
            KeySource::Expression { .. } => small(0),
        };
        let places = key.parts.iter().map(|part| place(&part.source)).collect();
        let of_parts = |what: &dyn Fn(TypeId) -> u32| {
            let types = key.parts.iter().map(|part| part.type_id(table));
            vector(TypeId::OID, types.map(|ty| oid(what(ty))).collect())
        };
        let texts = key.parts.iter().filter_map(|part| match &part.source {
            KeySource::Expression { text, .. } => Some(text.as_str()),
            KeySource::Column(_) => None,
        });
        let texts: Vec<_> = texts.collect();
        let lengths: Vec<_> = texts.iter().map(|text| text.len().to_string()).collect();
        let exprs = format!("{{KEYS {}}} {}", lengths.join(","), texts.concat());
        rows.push([
            ("partrelid", oid(table.oid)),
            ("partstrat", char(key.strategy.letter())),
            ("partnatts", small(key.parts.len())),
            (
                "partdefid",
                oid(default.map_or(0, |(default, _)| default.oid)),
            ),
            ("partattrs", vector(TypeId::INT2, places)),
            ("partclass", of_parts(&|ty| class_of(key.strategy, ty))),
            ("partcollation", of_parts(&|ty| collation::of_type(ty))),
            (
                "partexprs",
                if texts.is_empty() {
                    Datum::Null
                } else {
                    text(exprs)
                },
            ),
        ]);
    }
}

pub(super) fn inherits(catalog: &Catalog, rows: &mut Rows) {
    for table in user_tables(catalog) {
        for (place, parent) in table.inherits_from().iter().enumerate() {
            rows.push([
                ("inhrelid", oid(table.oid)),
                ("inhparent", oid(*parent)),
                ("inhseqno", Datum::Int4(place as i32 + 1)),
            ]);
        }
        if let Some(of) = &table.partition_of {
            rows.push([
                ("inhrelid", oid(table.oid)),
                ("inhparent", oid(of.parent)),
                ("inhseqno", Datum::Int4(1)),
            ]);
            let is_index = |oid: u32| table.indexes.iter().any(|index| index.oid == oid);
            for (index, above) in of.parts.iter().filter(|part| is_index(part.0)) {
                rows.push([
                    ("inhrelid", oid(*index)),
                    ("inhparent", oid(*above)),
                    ("inhseqno", Datum::Int4(1)),
                ]);
            }
        }
    }
}
