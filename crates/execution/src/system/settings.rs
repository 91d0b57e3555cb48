//! Settings and prepared statements of this session, and the settings in its node's file.

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

pub(super) fn settings(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let settings = &cx.host.shared().settings;
    let rows = settings.rows().into_iter();
    let seen = rows.filter(|row| settings.is_visible(catalog, row.name));
    Ok(seen.map(row).collect())
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

/// What the node was started with, in its file. A line of JSON has no number that a reader would look for. What
/// ALTER SYSTEM gives wins, so a setting of the file that it names is not applied.
pub(super) fn of_file(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let shared = cx.host.shared();
    let given = shared.start.registry.as_ref();
    let given = given.map_or(Vec::new(), |registry| registry.file_settings());
    let file = shared.settings.show("config_file")?.1;
    let configuration = shared.engine.settings.configuration();
    let row = |(place, (name, value)): (usize, (String, String))| {
        let is_replaced = configuration
            .values
            .contains_key(&name.to_ascii_lowercase());
        vec![
            text(&file),
            Datum::Null,
            Datum::Int4(i32::try_from(place + 1).unwrap_or(i32::MAX)),
            text(name),
            text(value),
            Datum::Bool(!is_replaced),
            Datum::Null,
        ]
    };
    Ok(given.into_iter().enumerate().map(row).collect())
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
            // A plan holds for whatever values parameters have.
            Datum::Int8(prepared.executions()),
            Datum::Int8(0),
        ]
    };
    Ok(statements.into_iter().map(row).collect())
}
