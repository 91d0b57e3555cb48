//! Settings and prepared statements of this session.

use base::Result;

use crate::exec::Exec;
use crate::settings::SettingRow;
use catalog::Catalog;
use planner::plan::Row;
use std::sync::Arc;
use types::{Array, Datum, TypeId};

fn text(text: impl AsRef<str>) -> Datum {
    Datum::text(text)
}

pub(super) fn settings(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let rows = cx.host.shared().settings.rows();
    Ok(rows.into_iter().map(row).collect())
}

fn row(setting: SettingRow) -> Row {
    let optional = |value: Option<&str>| value.map_or(Datum::Null, text);
    let values = setting.values.map_or(Datum::Null, |values| {
        let values = values.into_iter().map(text).collect();
        Datum::Array(Arc::new(Array::of(TypeId::TEXT, values)))
    });
    vec![
        text(setting.name),
        text(setting.setting),
        optional(setting.unit),
        text(setting.category),
        text(setting.short),
        optional(setting.extra),
        text(setting.context),
        text(setting.vartype),
        text(setting.source),
        optional(setting.min.as_deref()),
        optional(setting.max.as_deref()),
        values,
        text(setting.boot),
        text(setting.reset),
        Datum::Null,
        Datum::Null,
        Datum::Bool(false),
    ]
}

pub(super) fn prepared(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let mut statements: Vec<_> = cx.host.shared().statements.iter().collect();
    statements.sort_by_key(|known| known.0.clone());
    let row = |(name, prepared): (&String, &crate::state::Named)| {
        let types = prepared.param_types().iter().map(|ty| Datum::Oid(ty.0));
        vec![
            text(name),
            prepared.text().map_or(Datum::Null, text),
            Datum::TimestampTz(prepared.made_at()),
            Datum::Array(Arc::new(Array::of(TypeId::REGTYPE, types.collect()))),
            Datum::Bool(prepared.is_from_sql()),
            Datum::Int8(0),
            Datum::Int8(0),
        ]
    };
    Ok(statements.into_iter().map(row).collect())
}
