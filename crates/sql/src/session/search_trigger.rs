//! The triggers that keep a `tsvector` column: `tsvector_update_trigger` and
//! `tsvector_update_trigger_column`.
//!
//! ```text
//! create trigger … before insert or update on pages for each row
//!   execute function tsvector_update_trigger(tsv, 'pg_catalog.english', title, body)
//!
//! begin
//!   if tg_op = 'INSERT' or (new.title, new.body) is distinct from (old.title, old.body) then
//!     new.tsv := to_tsvector('pg_catalog.english'::regconfig, coalesce(new.title, '') || …);
//!   end if;
//!   return new;
//! end
//! ```
//! They are carried out as a body in PL/pgSQL that follows from the trigger's arguments.
//!
//! # What it leaves out
//! An UPDATE that sets a column to the value that it has computes nothing anew.

use base::{Error, Result, SqlState};

use catalog::routine::{TSVECTOR_UPDATE, TSVECTOR_UPDATE_COLUMN};
use catalog::trigger::{Events, Timing};
use catalog::{Column, Table, Trigger};
use functions::strings::quote_identifier;
use types::TypeId;

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn wrong_type(name: &str, what: &str) -> Error {
    let message = format!("column \"{name}\" is not of {what} type");
    Error::new(SqlState::DATATYPE_MISMATCH, message)
}

fn column<'t>(table: &'t Table, name: &str, what: &str) -> Result<&'t Column> {
    let mut columns = table.columns.iter().filter(|column| !column.dropped);
    columns.find(|column| column.name == name).ok_or_else(|| {
        let message = format!("{what}column \"{name}\" does not exist");
        Error::new(SqlState::UNDEFINED_COLUMN, message)
    })
}

/// The body of one of the two functions for a trigger; none for other functions.
///
/// # Errors
/// 42703, 42804, 22023 and XX000 for arguments that do not fit.
pub(super) fn body_of(function: u32, trigger: &Trigger, table: &Table) -> Result<Option<String>> {
    if function != TSVECTOR_UPDATE && function != TSVECTOR_UPDATE_COLUMN {
        return Ok(None);
    }
    let by_column = function == TSVECTOR_UPDATE_COLUMN;
    let internal = |what: &str| Err(Error::internal(format!("tsvector_update_trigger: {what}")));
    if !trigger.for_each_row {
        return internal("must be fired for row");
    }
    if trigger.timing != Timing::Before {
        return internal("must be fired BEFORE event");
    }
    if trigger.events.has(Events::DELETE) {
        return internal("must be fired for INSERT or UPDATE");
    }
    let [vector, config, texts @ ..] = trigger.arguments.as_slice() else {
        return internal("arguments must be tsvector_field, ts_config, text_field1, ...)");
    };
    if texts.is_empty() {
        return internal("arguments must be tsvector_field, ts_config, text_field1, ...)");
    }
    if column(table, vector, "tsvector ")?.type_id != TypeId::TSVECTOR {
        return Err(wrong_type(vector, "tsvector"));
    }
    let mut checks = String::new();
    let config = match by_column {
        true => {
            if column(table, config, "configuration ")?.type_id != TypeId::REGCONFIG {
                return Err(wrong_type(config, "regconfig"));
            }
            let quoted = quote_identifier(config);
            let message = format!("configuration column \"{config}\" must not be null");
            let message = literal(&message);
            checks = format!(
                "if new.{quoted} is null then raise exception using errcode = '22004', \
                 message = {message}; end if; "
            );
            format!("new.{quoted}")
        }
        false if !config.contains('.') => {
            let message =
                format!("text search configuration name \"{config}\" must be schema-qualified");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        false => format!("{}::pg_catalog.regconfig", literal(config)),
    };
    let (mut values, mut changes) = (Vec::new(), Vec::new());
    for name in texts {
        let kind = column(table, name, "")?.type_id;
        if !matches!(kind, TypeId::TEXT | TypeId::VARCHAR) {
            return Err(wrong_type(name, "a character"));
        }
        let quoted = quote_identifier(name);
        values.push(format!("coalesce(new.{quoted}::pg_catalog.text, '')"));
        changes.push(format!("new.{quoted} is distinct from old.{quoted}"));
    }
    let (values, changes) = (values.join(" || E'\\n' || "), changes.join(" or "));
    let vector = quote_identifier(vector);
    let make = format!("{checks}new.{vector} := pg_catalog.to_tsvector({config}, {values});");
    Ok(Some(format!(
        "begin if tg_op = 'INSERT' then {make} elsif {changes} then {make} end if; return new; end"
    )))
}
