//! `pg_trigger`'s rows of triggers that users have made. What foreign keys do is no trigger here.

use super::objects::user_tables;
use super::rows::{char, flag, oid, small, text, vector, Rows};
use catalog::{Catalog, Table, Trigger};
use types::{Datum, TypeId};

pub(super) fn rows(catalog: &Catalog, rows: &mut Rows) {
    for table in user_tables(catalog) {
        for trigger in &table.triggers {
            row(table, trigger, rows);
        }
    }
}

fn row(table: &Table, trigger: &Trigger, rows: &mut Rows) {
    let or_null = |name: &Option<String>| name.as_ref().map_or(Datum::Null, text);
    let columns = trigger.columns.iter().map(|place| small(place + 1));
    let mut arguments = Vec::new();
    for argument in &trigger.arguments {
        arguments.extend_from_slice(argument.as_bytes());
        arguments.push(0);
    }
    let constraint = trigger.constraint.clone().unwrap_or_default();
    rows.push([
        ("oid", oid(trigger.oid)),
        ("tgrelid", oid(table.oid)),
        ("tgname", text(&trigger.name)),
        ("tgfoid", oid(trigger.function)),
        (
            "tgparentid",
            oid(table.part_above(trigger.oid).unwrap_or(0)),
        ),
        ("tgtype", Datum::Int2(trigger.type_bits())),
        ("tgenabled", char(trigger.enabled.letter())),
        ("tgconstrrelid", oid(constraint.table)),
        ("tgconstraint", oid(constraint.oid)),
        ("tgdeferrable", flag(constraint.deferrable)),
        ("tginitdeferred", flag(constraint.initially_deferred)),
        ("tgnargs", small(trigger.arguments.len())),
        ("tgattr", vector(TypeId::INT2, columns.collect())),
        ("tgargs", Datum::Bytea(arguments.into())),
        (
            "tgqual",
            match planner::bind::stored::trigger_node(trigger) {
                Some(node) => text(node),
                None => Datum::Null,
            },
        ),
        ("tgoldtable", or_null(&trigger.old_table)),
        ("tgnewtable", or_null(&trigger.new_table)),
    ]);
}

/// The constraints that triggers are, among `pg_constraint`'s rows.
pub(super) fn constraints(table: &Table, rows: &mut Rows) {
    for trigger in &table.triggers {
        let Some(constraint) = &trigger.constraint else {
            continue;
        };
        rows.push([
            ("oid", oid(constraint.oid)),
            ("conname", text(&trigger.name)),
            ("connamespace", oid(table.schema)),
            ("contype", char(b't')),
            ("condeferrable", flag(constraint.deferrable)),
            ("condeferred", flag(constraint.initially_deferred)),
            ("convalidated", flag(true)),
            ("conrelid", oid(table.oid)),
            ("confupdtype", char(b' ')),
            ("confdeltype", char(b' ')),
            ("confmatchtype", char(b' ')),
            ("conislocal", flag(true)),
            ("connoinherit", flag(true)),
        ]);
    }
}
