//! Settings and prepared statements of this session.

use super::SystemTable;
use crate::types::{Array, Datum, TypeId};
use std::sync::Arc;

fn text(text: impl AsRef<str>) -> Datum {
    Datum::text(text)
}

pub(super) const SETTINGS: SystemTable = SystemTable {
    oid: 12_104,
    name: "pg_settings",
    columns: "",
    rows: |_, cx| {
        let all = cx.session.settings.show_all();
        let row = |(name, value, description): (&'static str, String, &'static str)| {
            let value = text(value);
            vec![
                text(name),
                value.clone(),
                Datum::Null,
                text("Quorate"),
                text(description),
                Datum::Null,
                text("user"),
                text("string"),
                text("default"),
                Datum::Null,
                Datum::Null,
                Datum::Null,
                value.clone(),
                value,
                Datum::Null,
                Datum::Null,
                Datum::Bool(false),
            ]
        };
        Ok(all.into_iter().map(row).collect())
    },
};

pub(super) const PREPARED: SystemTable = SystemTable {
    oid: 12_095,
    name: "pg_prepared_statements",
    columns: "",
    rows: |_, cx| {
        let mut statements: Vec<_> = cx.session.statements.iter().collect();
        statements.sort_by_key(|known| known.0.clone());
        let row = |(name, prepared): (&String, &std::rc::Rc<crate::session::Prepared>)| {
            let types = prepared.param_types().iter().map(|ty| Datum::Oid(ty.0));
            vec![
                text(name),
                prepared.text().map_or(Datum::Null, text),
                Datum::Null,
                Datum::Array(Arc::new(Array::of(TypeId::REGTYPE, types.collect()))),
                Datum::Bool(prepared.is_from_sql()),
                Datum::Int8(0),
                Datum::Int8(0),
            ]
        };
        Ok(statements.into_iter().map(row).collect())
    },
};
