//! `nextval`, `currval`, `setval`, `lastval`, and the one row of a sequence.
//!
//! The engine keeps where a sequence stands ([`base::engine::Sequences::next_values`]); the session
//! keeps the values that it has taken ahead (CACHE) and the last ones that it was given. A value
//! rests on the record that logged it, and so does whatever shows the value: the transaction owes
//! it.

use std::sync::Arc;

use base::engine::{LockWait, SequencePosition, TableLock};
use base::{Error, Result, SqlState};

use super::Exec;
use crate::state::Ahead;
use catalog::access::Privileges;
use catalog::depend::shown_name;
use catalog::local::is_local;
use catalog::store;
use catalog::{Sequence, Table};
use functions::session::{SequenceFunction, SEQUENCE_COLUMNS};
use planner::plan::Row;
use types::{Datum, Record, TypeId};

/// `nextval`, `currval`, `setval` or `lastval`.
pub(super) fn call(cx: &mut Exec<'_>, which: SequenceFunction, args: &[Datum]) -> Result<Datum> {
    let oid = match (which, args.first()) {
        (SequenceFunction::Last, _) => last_used(cx)?,
        (_, Some(Datum::Oid(oid))) => *oid,
        _ => return Err(Error::internal("a sequence that is no oid")),
    };
    let table = match cx.catalog.table_by_oid(oid) {
        Some(table) => table.clone(),
        None => return Err(no_sequence(cx, oid)),
    };
    let table = hold(cx, table)?;
    let Some(sequence) = &table.sequence else {
        return Err(no_sequence(cx, oid));
    };
    let privileges = match which {
        SequenceFunction::Next => Privileges::USAGE.with(Privileges::UPDATE),
        SequenceFunction::Set => Privileges::UPDATE,
        SequenceFunction::Current | SequenceFunction::Last => {
            Privileges::USAGE.with(Privileges::SELECT)
        }
    };
    // A second argument is that of an identity column (`bind::write`).
    if which != SequenceFunction::Next || args.len() == 1 {
        super::privilege_functions::require_any(cx, &table, privileges)?;
    }
    match which {
        SequenceFunction::Next => next(cx, &table, sequence).map(Datum::Int8),
        SequenceFunction::Set => {
            let value = args[1]
                .as_i64()
                .ok_or_else(|| Error::internal("setval to no integer"))?;
            let called = args.get(2).is_none_or(Datum::is_true);
            set(cx, &table, sequence, value, called).map(Datum::Int8)
        }
        SequenceFunction::Current | SequenceFunction::Last => {
            match cx.host.shared().sequence_values.get(&oid) {
                Some(value) => Ok(Datum::Int8(*value)),
                None => Err(Error::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!(
                        "currval of sequence \"{}\" is not yet defined in this session",
                        table.name
                    ),
                )),
            }
        }
    }
}

/// Locks a sequence as PostgreSQL does for all these functions, against whoever changes or drops it,
/// until the transaction ends; it is then as whoever was waited for has left it.
fn hold(cx: &mut Exec<'_>, table: Arc<Table>) -> Result<Arc<Table>> {
    let engine = cx.host.shared().engine.clone();
    if table.sequence.is_none() || engine.cluster.is_standby() {
        return Ok(table);
    }
    let mode = TableLock::RowExclusive;
    cx.host
        .txn()
        .lock_table(table.tree, mode, LockWait::Block)?;
    if engine.transactions.catalog_version() == cx.catalog.version {
        return Ok(table);
    }
    let database = cx.catalog.database.oid;
    let newest = store::newest_table(cx.host.txn(), database, table.oid)?;
    newest.map(Arc::new).ok_or_else(|| {
        let message = format!("could not open relation with OID {}", table.oid);
        Error::internal(message)
    })
}

fn last_used(cx: &Exec<'_>) -> Result<u32> {
    let last = cx.host.shared().last_sequence;
    last.filter(|oid| cx.catalog.table_by_oid(*oid).is_some())
        .ok_or_else(|| {
            Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "lastval is not yet defined in this session",
            )
        })
}

/// `pg_sequence_parameters`: how a sequence was defined.
///
/// # Errors
/// 42501; XX000 for what is no sequence.
pub(super) fn parameters(cx: &Exec<'_>, oid: u32) -> Result<Datum> {
    let table = cx.catalog.table_by_oid(oid);
    let found = table.and_then(|table| Some((table, table.sequence.as_ref()?)));
    let Some((table, sequence)) = found else {
        let message = format!("cache lookup failed for sequence {oid}");
        return Err(Error::internal(message));
    };
    let any = Privileges::USAGE.with(Privileges::UPDATE);
    super::privilege_functions::require_any(cx, table, any.with(Privileges::SELECT))?;
    let values = vec![
        Datum::Int8(sequence.start),
        Datum::Int8(sequence.min),
        Datum::Int8(sequence.max),
        Datum::Int8(sequence.increment),
        Datum::Bool(sequence.cycle),
        Datum::Int8(sequence.cache),
        Datum::Oid(sequence.type_id.0),
    ];
    Ok(Datum::Record(Arc::new(Record {
        types: SEQUENCE_COLUMNS.iter().map(|column| column.1).collect(),
        values,
        names: None,
    })))
}

fn no_sequence(cx: &Exec<'_>, oid: u32) -> Error {
    match cx.catalog.relation_name(oid) {
        Some((_, name)) => Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{name}\" is not a sequence"),
        ),
        None => Error::internal(format!("could not open relation with OID {oid}")),
    }
}

/// # Errors
/// 25006 for what would change a sequence in a transaction that only reads, unless it is temporary.
fn refuse_read_only(cx: &Exec<'_>, table: &Table, name: &str) -> Result<()> {
    if is_local(table.oid) {
        return Ok(());
    }
    match cx.host.shared().read_only || cx.host.shared().settings.made_read_only() {
        false => Ok(()),
        true => Err(Error::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {name}() in a read-only transaction"),
        )),
    }
}

/// The next value of a sequence.
///
/// # Errors
/// 2200H at its end, 25006 in a transaction that only reads.
pub fn next(cx: &mut Exec<'_>, table: &Table, sequence: &Sequence) -> Result<i64> {
    refuse_read_only(cx, table, "nextval")?;
    let value = match take_ahead(cx, sequence) {
        Some(value) => value,
        None => take(cx, table, sequence)?,
    };
    cx.host.session().sequence_values.insert(table.oid, value);
    cx.host.session().last_sequence = Some(table.oid);
    Ok(value)
}

fn take_ahead(cx: &mut Exec<'_>, sequence: &Sequence) -> Option<i64> {
    if sequence.cache <= 1 {
        return None;
    }
    let ahead = cx.host.session().sequences_ahead.get_mut(&sequence.state)?;
    if ahead.left == 0 || ahead.increment != sequence.increment {
        return None;
    }
    let value = ahead.next;
    ahead.left -= 1;
    ahead.next = value.saturating_add(ahead.increment);
    let debt = ahead.debt.clone();
    cx.host.txn().owe(&debt);
    Some(value)
}

fn take(cx: &mut Exec<'_>, table: &Table, sequence: &Sequence) -> Result<i64> {
    let count = u64::try_from(sequence.cache).unwrap_or(1).max(1);
    let sequences = &cx.host.shared().engine.sequences;
    let (values, debt) = sequences.next_values(sequence.state, &sequence.spec(), count)?;
    cx.host.txn().owe(&debt);
    if values.count == 0 {
        let (end, limit) = match sequence.increment > 0 {
            true => ("maximum", sequence.max),
            false => ("minimum", sequence.min),
        };
        return Err(Error::new(
            SqlState::of("2200H"),
            format!(
                "nextval: reached {end} value of sequence \"{}\" ({limit})",
                table.name
            ),
        ));
    }
    if values.count > 1 {
        let ahead = Ahead {
            next: values.first.saturating_add(sequence.increment),
            left: values.count - 1,
            increment: sequence.increment,
            debt,
        };
        cx.host
            .session()
            .sequences_ahead
            .insert(sequence.state, ahead);
    }
    Ok(values.first)
}

fn set(
    cx: &mut Exec<'_>,
    table: &Table,
    sequence: &Sequence,
    value: i64,
    called: bool,
) -> Result<i64> {
    refuse_read_only(cx, table, "setval")?;
    if !(sequence.min..=sequence.max).contains(&value) {
        return Err(Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!(
                "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                table.name, sequence.min, sequence.max
            ),
        ));
    }
    let sequences = &cx.host.shared().engine.sequences;
    let to = SequencePosition {
        last: value,
        called,
    };
    let debt = sequences.set_sequence(sequence.state, to)?;
    cx.host.txn().owe(&debt);
    cx.host.session().sequences_ahead.remove(&sequence.state);
    if called {
        cx.host.session().sequence_values.insert(table.oid, value);
    }
    Ok(value)
}

/// Where a sequence stands, and how many further values are logged.
///
/// # Errors
/// What the engine raises.
pub fn position(cx: &mut Exec<'_>, sequence: &Sequence) -> Result<(SequencePosition, u64)> {
    let sequences = &cx.host.shared().engine.sequences;
    let (at, left, debt) = sequences.sequence_position(sequence.state, &sequence.spec())?;
    cx.host.txn().owe(&debt);
    Ok((at, left))
}

/// What `SELECT * FROM` a sequence gives.
///
/// # Errors
/// As [`position`].
pub fn rows(table: &Table, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let Some(sequence) = &table.sequence else {
        return Ok(Vec::new());
    };
    let (at, left) = position(cx, sequence)?;
    Ok(vec![vec![
        Datum::Int8(at.last),
        Datum::Int8(i64::try_from(left).unwrap_or(i64::MAX)),
        Datum::Bool(at.called),
    ]])
}

/// `pg_get_serial_sequence`: the sequence that belongs to a column.
pub(super) fn of_column(cx: &Exec<'_>, table: &str, column: &str) -> Result<Datum> {
    let oid = cx.context.oid_of(TypeId::REGCLASS, table)?;
    let missing = || {
        Error::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{table}\" does not exist"),
        )
    };
    let table = cx.catalog.table_by_oid(oid).ok_or_else(missing)?;
    let place = table.column(column).ok_or_else(missing)?;
    let owned = cx.catalog.tables.iter().find(|other| {
        let owner = other.sequence.as_ref().and_then(|sequence| sequence.owner);
        owner.is_some_and(|owner| (owner.table, owner.column) == (oid, place))
    });
    let name = owned.and_then(|sequence| shown_name(cx.catalog, &[], sequence.oid));
    Ok(name.map_or(Datum::Null, Datum::text))
}
