//! Who may connect, and how connections are encrypted.

use base::Result;

use super::rows::{array, flag, int, text};
use crate::exec::Exec;
use catalog::Catalog;
use planner::plan::Row;
use types::{Datum, Numeric, TypeId};

/// The rules of the node that serves the session.
pub(super) fn hba_rules(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let registry = cx.host.shared().start.registry.as_ref();
    let rules = registry.map_or(Vec::new(), |registry| registry.hba_rules());
    let list = |words: &[String], is_shown: bool| match is_shown {
        true => array(TypeId::TEXT, words.iter().map(text).collect()),
        false => Datum::Null,
    };
    Ok(rules
        .iter()
        .map(|rule| {
            let is_rule = rule.kind.is_some();
            vec![
                int(rule.line as i32),
                optional(rule.kind),
                list(&rule.databases, is_rule),
                list(&rule.users, is_rule),
                optional(rule.address.as_deref()),
                optional(rule.netmask.as_deref()),
                optional(rule.method),
                list(&rule.options, !rule.options.is_empty()),
                optional(rule.error.as_deref()),
            ]
        })
        .collect())
}

/// Only sessions whose details the role may see, as in PostgreSQL: of others it knows no port.
pub(super) fn ssl(catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let own = cx.host.shared().start.activity.clone();
    let all = match &cx.host.shared().start.registry {
        Some(registry) => registry.all(),
        None => vec![own],
    };
    let rows = all.iter().filter_map(|activity| {
        let doing = activity.doing()?;
        let asker = cx.host.shared().settings.current_role();
        if !catalog.sees_sessions_of(asker, doing.role) {
            return None;
        }
        let tls = doing.tls;
        let pid = int(activity.pid());
        let Some(tls) = tls else {
            let mut row = vec![pid, flag(false)];
            row.resize(8, Datum::Null);
            return Some(Ok(row));
        };
        let serial = match tls.client_serial.as_deref().map(Numeric::parse) {
            Some(Ok(serial)) => Datum::Numeric(serial),
            Some(Err(error)) => return Some(Err(error)),
            None => Datum::Null,
        };
        Some(Ok(vec![
            pid,
            flag(true),
            text(&tls.version),
            text(&tls.cipher),
            int(i32::from(tls.bits)),
            optional(tls.client_subject.as_deref()),
            serial,
            optional(tls.issuer.as_deref()),
        ]))
    });
    rows.collect()
}

fn optional(value: Option<&str>) -> Datum {
    value.map_or(Datum::Null, Datum::text)
}
