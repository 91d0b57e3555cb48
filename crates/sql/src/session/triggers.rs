//! The functions of triggers at work.
//!
//! ```text
//! insert into t …       Exec ─ Host::fire ─ NEW, OLD and TG_… into the variables of the body
//!                                         ├ its statements, as those of any routine
//!                                         └ RETURN: NULL, the row that was given, or another one
//! ```
//! A body is compiled once for each trigger, with what is the same for all its rows filled in, and kept
//! until the trigger's table or function changes.
//!
//! # Invariants
//! - However a call ends, the trigger is no longer among those at work.
//! - EXECUTE on the function was asked for when the trigger was made, and is not asked for again.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::Reading;
use base::hash::HashMap;
use base::{coro, Error, Result, SqlState};

use super::plpgsql::code::Code;
use super::plpgsql::piece::{add_context, Shape, Slot};
use super::plpgsql::returns::shape_of;
use super::routines::{signature_of, Nested};
use super::search_trigger;
use super::Session;
use catalog::depend::routine_text;
use catalog::trigger::{Events, Timing};
use catalog::{Routine, Table, Trigger};
use execution::exec::trigger::{Fired, Firing};
use execution::exec::{long, Host};
use execution::state::{ActiveTrigger, Nowhere};
use planner::plan::trigger::{PlannedTrigger, Triggers};
use planner::plan::Row;
use types::typmod::format_type;
use types::{Array, Datum, Dimension, Record, TypeId, NO_TYPMOD};

/// So many compiled bodies are kept; beyond that all are forgotten.
const BODIES_MAX: usize = 1_000;

/// The bodies that a session has compiled, by the oids of the triggers.
pub(super) type TriggerBodies = HashMap<u32, Rc<TriggerBody>>;

/// The function of one trigger, compiled.
pub(super) struct TriggerBody {
    routine: Arc<Routine>,
    trigger: Trigger,
    table: Arc<Table>,
    schema: String,
    code: Code,
    /// Its variables, those filled in that are the same for all rows.
    slots: Vec<Slot>,
    /// The columns of the table that are there: their names and types, and their places.
    shape: Rc<Shape>,
    places: Vec<usize>,
    /// The places of NEW, OLD and TG_OP.
    new: usize,
    old: usize,
    op: usize,
}

impl TriggerBody {
    /// A row of the table as the value of a variable.
    fn record(&self, row: &[Datum], txn: &mut dyn Reading) -> Result<Arc<Record>> {
        let values = self
            .places
            .iter()
            .map(|place| long::read(&row[*place], txn));
        Ok(Arc::new(Record {
            types: self.shape.columns.iter().map(|column| column.1).collect(),
            values: values.collect::<Result<_>>()?,
            names: self.shape.names.clone(),
        }))
    }

    /// What the function has given back as a row of the table. A long value that it has left alone
    /// is that of the row that it was given.
    fn row(&self, record: &Record, given: Option<(&[Datum], &Record)>) -> Result<Row> {
        let wrong = |detail: String| {
            let message =
                "returned row structure does not match the structure of the triggering table";
            let mut error = Error::new(SqlState::DATATYPE_MISMATCH, message).with_detail(detail);
            let line = format!("PL/pgSQL function {} during function exit", self.code.name);
            add_context(&mut error, &line);
            error
        };
        if record.values.len() != self.places.len() {
            return Err(wrong(format!(
                "Number of returned columns ({}) does not match expected column count ({}).",
                record.values.len(),
                self.places.len()
            )));
        }
        let types = record.types.iter().zip(&self.shape.columns);
        for (place, (given, (_, wanted))) in types.enumerate() {
            if given != wanted {
                let wanted = format_type(*wanted, self.shape.typmod(place));
                return Err(wrong(format!(
                    "Returned type {given} does not match expected type {wanted} in column {}.",
                    place + 1
                )));
            }
        }
        let mut row = vec![Datum::Null; self.table.columns.len()];
        for (at, (place, value)) in self.places.iter().zip(&record.values).enumerate() {
            let kept = given.filter(|(row, _)| row[*place].is_long());
            row[*place] = match kept {
                Some((row, record)) if record.values[at] == *value => row[*place].clone(),
                _ => value.clone(),
            };
        }
        Ok(row)
    }
}

impl Session {
    pub(super) fn fire_trigger(&mut self, firing: &Firing<'_>) -> Result<Fired> {
        coro::check_depth()?;
        match firing.role {
            Some(role) if role != self.shared.settings.current_role() => {
                self.as_role(role, false, |session| session.fire_as_now(firing))
            }
            _ => self.fire_as_now(firing),
        }
    }

    fn fire_as_now(&mut self, firing: &Firing<'_>) -> Result<Fired> {
        let planned = &firing.triggers.all[firing.place];
        let body = self.trigger_body(planned, firing.triggers)?;
        let mut slots = body.slots.clone();
        slots[body.op].value = Datum::text(firing.event.name());
        let mut record = |row: Option<&[Datum]>| match row {
            Some(row) => body.record(row, self.txn()).map(Some),
            None => Ok(None),
        };
        let (old, new) = (record(firing.old)?, record(firing.new)?);
        if planned.trigger.for_each_row {
            for (slot, row) in [(body.old, &old), (body.new, &new)] {
                slots[slot].shape = Some(body.shape.clone());
                slots[slot].fixed = Some(body.shape.clone());
                slots[slot].value = row.clone().map_or(Datum::Null, Datum::Record);
            }
        }
        let depth = self.shared.firing.len();
        self.shared.firing.push(ActiveTrigger {
            table: firing.triggers.table.oid,
            transition: firing.transition.cloned(),
        });
        let nested = Nested::of(&body.routine);
        let done = self.inside(&body.routine, nested, |session| {
            session.run_block(&body.code, slots, true, &mut Nowhere)
        });
        self.shared.firing.truncate(depth);
        let returned = done?.returned;
        let trigger = &planned.trigger;
        if !trigger.for_each_row || trigger.timing == Timing::After {
            return Ok(Fired::Same);
        }
        match returned {
            Datum::Record(record) => {
                let (given, row) = match firing.event {
                    Events::DELETE => (&old, firing.old),
                    _ => (&new, firing.new),
                };
                match given {
                    Some(given) if Arc::ptr_eq(given, &record) => Ok(Fired::Same),
                    given => {
                        let given = row.zip(given.as_deref());
                        let record = self.fitted(&body, record, given.map(|given| given.1))?;
                        body.row(&record, given).map(Fired::Row)
                    }
                }
            }
            _ => Ok(Fired::Nothing),
        }
    }

    /// A row that was not made by assigning to NEW may have values that are too long.
    fn fitted(
        &mut self,
        body: &TriggerBody,
        mut record: Arc<Record>,
        given: Option<&Record>,
    ) -> Result<Arc<Record>> {
        let shape = &body.shape;
        let limited = (0..shape.columns.len()).filter(|at| shape.typmod(*at) != NO_TYPMOD);
        for at in limited {
            let Some(value) = record.values.get(at) else {
                break;
            };
            let ty = shape.columns[at].1;
            let kept = given.is_some_and(|given| given.values[at] == *value);
            if kept || record.types[at] != ty {
                continue;
            }
            let fitted = self.convert(value.clone(), ty, ty, shape.typmod(at))?;
            Arc::make_mut(&mut record).values[at] = fitted;
        }
        Ok(record)
    }

    /// The compiled function of a trigger.
    fn trigger_body(
        &mut self,
        planned: &PlannedTrigger,
        triggers: &Triggers,
    ) -> Result<Rc<TriggerBody>> {
        let (trigger, table) = (&planned.trigger, &triggers.table);
        let catalog = self.current_catalog()?;
        let schema = catalog.schema_by_oid(table.schema);
        let schema = schema.map_or("", |schema| schema.name.as_str());
        // It may have been replaced since the trigger was deferred.
        let routine = catalog
            .routine(trigger.function)
            .unwrap_or(&planned.call.routine);
        if let Some(body) = self.trigger_bodies.get(&trigger.oid) {
            let same_table = Arc::ptr_eq(&body.table, table) || *body.table == **table;
            let same_code = Arc::ptr_eq(&body.routine, routine) || *body.routine == **routine;
            if same_table && same_code && body.schema == schema && body.trigger == *trigger {
                return Ok(body.clone());
            }
        }
        let shown = routine_text(&catalog, &self.search_path(&catalog), routine);
        let mut signature = signature_of(&planned.call, shown);
        for (name, is_new) in [(&trigger.old_table, false), (&trigger.new_table, true)] {
            let name = name
                .iter()
                .map(|name| (name.clone(), table.clone(), is_new));
            signature.rows.extend(name);
        }
        let made = search_trigger::body_of(routine.oid, trigger, table)?;
        let text = made.as_deref().unwrap_or(&routine.body);
        let code = self.compile_plpgsql(text, &signature)?;
        let body = Rc::new(filled_body(routine, (trigger, table, schema), code)?);
        if self.trigger_bodies.len() >= BODIES_MAX {
            self.trigger_bodies.clear();
        }
        self.trigger_bodies.insert(trigger.oid, body.clone());
        Ok(body)
    }
}

/// A compiled function with what it is told of its trigger.
fn filled_body(
    routine: &Arc<Routine>,
    (trigger, table, schema): (&Trigger, &Arc<Table>, &str),
    code: Code,
) -> Result<TriggerBody> {
    let mut slots = code.slots.clone();
    let place = |name: &str| {
        let place = code.slots.iter().position(|slot| &*slot.name == name);
        place.ok_or_else(|| Error::internal(format!("a trigger's function without {name}")))
    };
    let level = if trigger.for_each_row {
        "ROW"
    } else {
        "STATEMENT"
    };
    let count = i32::try_from(trigger.arguments.len()).unwrap_or(i32::MAX);
    let values = [
        ("tg_name", Datum::text(&trigger.name)),
        ("tg_when", Datum::text(trigger.timing.words())),
        ("tg_level", Datum::text(level)),
        ("tg_relid", Datum::Oid(table.oid)),
        ("tg_relname", Datum::text(&table.name)),
        ("tg_table_name", Datum::text(&table.name)),
        ("tg_table_schema", Datum::text(schema)),
        ("tg_nargs", Datum::Int4(count)),
        ("tg_argv", arguments(trigger, count)),
    ];
    for (name, value) in values {
        slots[place(name)?].value = value;
    }
    let kept = table.columns.iter().enumerate();
    let kept = kept.filter(|(_, column)| !column.dropped);
    Ok(TriggerBody {
        routine: routine.clone(),
        trigger: trigger.clone(),
        table: table.clone(),
        schema: schema.to_owned(),
        slots,
        shape: Rc::new(shape_of(table)),
        places: kept.map(|(place, _)| place).collect(),
        new: place("new")?,
        old: place("old")?,
        op: place("tg_op")?,
        code,
    })
}

/// `TG_ARGV`, which begins at 0.
fn arguments(trigger: &Trigger, count: i32) -> Datum {
    if count == 0 {
        return Datum::Null;
    }
    Datum::Array(Arc::new(Array {
        element: TypeId::TEXT,
        dimensions: vec![Dimension {
            len: count,
            lower: 0,
        }],
        elements: trigger.arguments.iter().map(Datum::text).collect(),
    }))
}
