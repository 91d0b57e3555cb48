//! Triggers at work: which fire for a row, when, and what they make of it.
//!
//! ```text
//! statement begins    BEFORE … FOR EACH STATEMENT
//! each row            BEFORE … FOR EACH ROW, one after the other: the next gets what the one before
//!                     has made of the row; then its checks; then it is written
//!                     AFTER … FOR EACH ROW is queued, with the events of foreign keys, in the order of names
//! statement ends      what was queued, then AFTER … FOR EACH STATEMENT (constraint triggers perhaps at COMMIT)
//! ```
//! A function is called by [`Host::fire`](super::Host::fire), so nothing of the transaction is borrowed
//! meanwhile, and the statement goes on with what it saw before.
//!
//! # Invariants
//! - A row that a BEFORE trigger of the statement, or what that has called, has written is not written
//!   by the statement as well: 27000.
//! - Rows that wait for AFTER triggers count as held memory.
//!
//! # What it costs without triggers
//! One look at an `Option` for each row.

use std::cell::RefCell;
use std::rc::Rc;

use base::hash::HashSet;
use base::memory::Reservation;
use base::{Error, Key, Result, SqlState, TreeId};

use super::measure::Called;
use super::program::Evaluate;
use super::{events, long, Cursor, Exec};
use crate::kept::{row_bytes, HASHED_BYTES};
use crate::state::constraints::{Event, Fire, Transition};
use catalog::trigger::{Events, Timing};
use planner::plan::trigger::Triggers;
use planner::plan::Row;
use types::Datum;

/// The names of the triggers by which PostgreSQL has foreign keys carried out begin so, and so these
/// stand between others in the order of names.
const FOREIGN_KEYS: &str = "RI_ConstraintTrigger_";

/// The rows of a table and an event, as all triggers share them that refer to them.
type Shared = Rc<RefCell<Transition>>;

/// A table, by oid, and an event.
type TableEvent = (u32, u8);

/// How far the triggers are that a statement sets off.
#[derive(Default)]
pub(super) struct Underway {
    /// The memory that rows take which wait for triggers.
    held: Reservation,
    /// Of which the BEFORE triggers of the statement have fired.
    begun: Vec<TableEvent>,
    /// How often the AFTER triggers of the statement were queued.
    ended: Vec<(TableEvent, u64)>,
    /// The rows that triggers may refer to as tables.
    transitions: Vec<(TableEvent, Shared)>,
}

/// A call of a trigger's function.
#[derive(Clone, Copy)]
pub struct Firing<'f> {
    /// The triggers of the table.
    pub triggers: &'f Triggers,
    /// The place of the one that fires.
    pub place: usize,
    /// What sets it off.
    pub event: Events,
    /// The row as it was.
    pub old: Option<&'f [Datum]>,
    /// The row as it is to be, or is.
    pub new: Option<&'f [Datum]>,
    /// Whose rights it has, if not those of the session.
    pub role: Option<u32>,
    /// What it may refer to as tables.
    pub transition: Option<&'f Rc<RefCell<Transition>>>,
}

/// What such a function has given back.
#[derive(Debug)]
pub enum Fired {
    /// The row that it was given as NEW, or as OLD for DELETE.
    Same,
    /// NULL.
    Nothing,
    /// Another row.
    Row(Row),
}

/// The rows that a statement with triggers has written itself.
#[derive(Default)]
pub(super) struct OwnRows {
    keys: HashSet<Key>,
    held: Reservation,
}

impl OwnRows {
    /// Notes that the statement has written a row.
    pub(super) fn note(&mut self, key: &[u8], cx: &Exec<'_>) -> Result<()> {
        self.held
            .grow(HASHED_BYTES + size_of::<Key>() + key.len())?;
        self.keys.insert(key.to_vec());
        cx.check_held(self.held.bytes())
    }

    /// Whether the statement has written a row already, so that it passes it over.
    ///
    /// # Errors
    /// 27000 for one that something else has written which the statement has set off.
    pub(super) fn has(&self, tree: TreeId, key: &[u8], cx: &mut Exec<'_>) -> Result<bool> {
        if !cx.host.txn().is_written_by_command(tree, key) {
            return Ok(false);
        }
        match self.keys.contains(key) {
            true => Ok(true),
            false => Err(already_modified("updated")),
        }
    }
}

/// 27000.
pub(super) fn already_modified(what: &str) -> Error {
    Error::new(
        SqlState::of("27000"),
        format!(
            "tuple to be {what} was already modified by an operation triggered by the current command"
        ),
    )
    .with_hint(
        "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other \
         rows.",
    )
}

/// Refuses a row that a BEFORE trigger has written meanwhile.
pub(super) fn check_untouched(
    tree: TreeId,
    key: &[u8],
    what: &str,
    cx: &mut Exec<'_>,
) -> Result<()> {
    match cx.host.txn().is_written_by_command(tree, key) {
        true => Err(already_modified(what)),
        false => Ok(()),
    }
}

/// Calls the function of a trigger, and notes that if the statement is measured.
fn called(firing: &Firing<'_>, cx: &mut Exec<'_>) -> Result<Fired> {
    let Some(measures) = cx.measures.clone() else {
        return cx.host.fire(firing);
    };
    let trigger = &firing.triggers.all[firing.place].trigger;
    let table = &firing.triggers.table;
    let of = Called::Trigger(trigger.name.clone(), trigger.constraint.is_some());
    measures.calls(of, (table.oid, &table.name), || cx.host.fire(firing))
}

/// Whether a trigger fires in this session, and its condition lets it.
fn is_due(
    triggers: &Triggers,
    place: usize,
    (old, new): (Option<&[Datum]>, Option<&[Datum]>),
    cx: &mut Exec<'_>,
) -> Result<bool> {
    let planned = &triggers.all[place];
    let replica = cx.host.shared().settings.parsed().replica;
    if !planned.trigger.fires(replica) {
        return Ok(false);
    }
    let Some(condition) = &planned.condition else {
        return Ok(true);
    };
    let width = triggers.table.columns.len();
    let mut both = Vec::with_capacity(2 * width);
    for row in [old, new] {
        match row {
            Some(row) => both.extend_from_slice(&row[..width]),
            None => both.extend(std::iter::repeat_n(Datum::Null, width)),
        }
    }
    condition.test(cx, &both)
}

/// Fires BEFORE or INSTEAD OF triggers of a row; none if one says that it is to be passed over.
pub(super) fn row(
    triggers: &Triggers,
    (timing, event): (Timing, Events),
    updated: &[usize],
    old: Option<&[Datum]>,
    mut new: Option<Row>,
    cx: &mut Exec<'_>,
) -> Result<Option<Option<Row>>> {
    if timing == Timing::Before {
        // They are computed when these are through.
        if let Some(row) = &mut new {
            for (place, column) in triggers.table.columns.iter().enumerate() {
                if column.generated {
                    row[place] = Datum::Null;
                }
            }
        }
    }
    for place in triggers.of(timing, true, event, updated) {
        if !is_due(triggers, place, (old, new.as_deref()), cx)? {
            continue;
        }
        let role = cx.acting();
        let fired = called(
            &Firing {
                triggers,
                place,
                event,
                old,
                new: new.as_deref(),
                role,
                transition: None,
            },
            cx,
        )?;
        match fired {
            Fired::Same => {}
            Fired::Nothing => return Ok(None),
            // What DELETE gives back says only that it goes on.
            Fired::Row(row) if event != Events::DELETE => new = Some(row),
            Fired::Row(_) => {}
        }
    }
    Ok(Some(new))
}

/// The same for an INSERT or UPDATE.
pub(super) fn before(
    triggers: &Triggers,
    event: Events,
    updated: &[usize],
    old: Option<&[Datum]>,
    new: Row,
    cx: &mut Exec<'_>,
) -> Result<Option<Row>> {
    let kept = row(
        triggers,
        (Timing::Before, event),
        updated,
        old,
        Some(new),
        cx,
    )?;
    Ok(kept.flatten())
}

/// A row was written: queues its AFTER triggers and, in their order, what `foreign_keys` queues.
pub(super) fn after(
    triggers: &Rc<Triggers>,
    event: Events,
    updated: &[usize],
    rows: (Option<&[Datum]>, Option<&[Datum]>),
    cx: &mut Exec<'_>,
    foreign_keys: impl FnOnce(&mut Exec<'_>) -> Result<()>,
) -> Result<()> {
    let transition = keep_rows(triggers, event, rows, cx)?;
    let mut kept = None;
    let mut foreign_keys = Some(foreign_keys);
    for place in triggers.of(Timing::After, true, event, updated) {
        let trigger = &triggers.all[place].trigger;
        if trigger.name.as_str() > FOREIGN_KEYS {
            if let Some(foreign_keys) = foreign_keys.take() {
                foreign_keys(cx)?;
            }
        }
        if !is_due(triggers, place, rows, cx)? {
            continue;
        }
        let constraint = trigger.constraint.as_ref();
        let deferred = constraint.is_some_and(|constraint| {
            let modes = &cx.host.shared().constraints;
            modes.is_deferred_trigger(constraint)
        });
        if kept.is_none() {
            let (old, new) = rows;
            let old = old.map(|row| whole(row, cx)).transpose()?;
            let new = new.map(|row| whole(row, cx)).transpose()?;
            for row in old.iter().chain(&new) {
                cx.triggers.held.grow(row_bytes(row))?;
            }
            cx.check_held(cx.triggers.held.bytes())?;
            kept = Some((old.map(Rc::from), new.map(Rc::from)));
        }
        let (old, new): SharedRows = kept.clone().unwrap_or_default();
        let fire = Fire {
            triggers: triggers.clone(),
            place,
            event,
            old,
            new,
            transition: transition.clone(),
            turn: 0,
        };
        if deferred {
            cx.defer(Event::Fire(fire))?;
        } else {
            events::wait(Event::Fire(fire), cx)?;
        }
    }
    if let Some(foreign_keys) = foreign_keys.take() {
        foreign_keys(cx)?;
    }
    Ok(())
}

/// The old row and the new one, as all triggers that they set off share them.
type SharedRows = (Option<Rc<[Datum]>>, Option<Rc<[Datum]>>);

/// A row with all its values, which may be gone when they are asked for.
fn whole(row: &[Datum], cx: &mut Exec<'_>) -> Result<Row> {
    let txn = cx.host.txn();
    row.iter().map(|value| long::read(value, txn)).collect()
}

/// Keeps a row for triggers that refer to rows as tables.
fn keep_rows(
    triggers: &Rc<Triggers>,
    event: Events,
    (old, new): (Option<&[Datum]>, Option<&[Datum]>),
    cx: &mut Exec<'_>,
) -> Result<Option<Shared>> {
    let Some(kept) = transition_of(triggers, event, cx) else {
        return Ok(None);
    };
    let old = old.map(|row| whole(row, cx)).transpose()?;
    let new = new.map(|row| whole(row, cx)).transpose()?;
    for row in old.iter().chain(&new) {
        cx.triggers.held.grow(row_bytes(row))?;
    }
    let mut rows = kept.borrow_mut();
    rows.old.extend(old);
    rows.new.extend(new);
    drop(rows);
    cx.check_held(cx.triggers.held.bytes())?;
    Ok(Some(kept))
}

/// Keeps a row of a partition, as the partitioned table that the statement writes has it, for the
/// triggers of that.
pub(super) fn keep(
    triggers: Option<&Rc<Triggers>>,
    event: Events,
    rows: (Option<&[Datum]>, Option<&[Datum]>),
    cx: &mut Exec<'_>,
) -> Result<()> {
    match triggers {
        Some(triggers) => keep_rows(triggers, event, rows, cx).map(drop),
        None => Ok(()),
    }
}

/// Where the rows are kept that the statement writes so.
fn transition_of(triggers: &Triggers, event: Events, cx: &mut Exec<'_>) -> Option<Shared> {
    if !triggers.keeps_rows(event) {
        return None;
    }
    let key = (triggers.table.oid, event.0);
    let known = cx.triggers.transitions.iter().find(|known| known.0 == key);
    Some(match known {
        Some((_, known)) => known.clone(),
        None => {
            let made = Shared::default();
            cx.triggers.transitions.push((key, made.clone()));
            made
        }
    })
}

/// Fires the BEFORE triggers of a statement, once for each table and event, whatever else writes the table
/// so: foreign keys, or another part of the statement.
pub(super) fn before_statement(
    triggers: &Triggers,
    event: Events,
    updated: &[usize],
    cx: &mut Exec<'_>,
) -> Result<()> {
    if !triggers.any(Timing::Before, false, event) {
        return Ok(());
    }
    let key = (triggers.table.oid, event.0);
    if cx.triggers.begun.contains(&key) {
        return Ok(());
    }
    cx.triggers.begun.push(key);
    for place in triggers.of(Timing::Before, false, event, updated) {
        if is_due(triggers, place, (None, None), cx)? {
            let role = cx.acting();
            called(
                &Firing {
                    triggers,
                    place,
                    event,
                    old: None,
                    new: None,
                    role,
                    transition: None,
                },
                cx,
            )?;
        }
    }
    Ok(())
}

/// Queues the AFTER triggers of a statement, in the place of those that wait for the same table and event.
pub(super) fn after_statement(
    triggers: &Rc<Triggers>,
    event: Events,
    updated: &[usize],
    cx: &mut Exec<'_>,
) -> Result<()> {
    if !triggers.any(Timing::After, false, event) {
        return Ok(());
    }
    let key = (triggers.table.oid, event.0);
    let known = cx.triggers.ended.iter().position(|known| known.0 == key);
    let known = known.unwrap_or_else(|| {
        cx.triggers.ended.push((key, 0));
        cx.triggers.ended.len() - 1
    });
    cx.triggers.ended[known].1 += 1;
    let turn = cx.triggers.ended[known].1;
    let transition = transition_of(triggers, event, cx);
    for place in triggers.of(Timing::After, false, event, updated) {
        if is_due(triggers, place, (None, None), cx)? {
            let fire = Fire {
                triggers: triggers.clone(),
                place,
                event,
                old: None,
                new: None,
                transition: transition.clone(),
                turn,
            };
            events::wait(Event::Fire(fire), cx)?;
        }
    }
    Ok(())
}

/// Calls what was queued.
///
/// # Errors
/// What the function raises.
pub(super) fn run(fire: &Fire, cx: &mut Exec<'_>) -> Result<()> {
    let key = (fire.triggers.table.oid, fire.event.0);
    let newest = cx.triggers.ended.iter().find(|known| known.0 == key);
    if fire.turn != 0 && newest.is_some_and(|known| known.1 != fire.turn) {
        return Ok(());
    }
    called(
        &Firing {
            triggers: &fire.triggers,
            place: fire.place,
            event: fire.event,
            old: fire.old.as_deref(),
            new: fire.new.as_deref(),
            role: None,
            transition: fire.transition.as_ref(),
        },
        cx,
    )?;
    // What it has written is there for what follows.
    cx.host.txn().next_command();
    Ok(())
}

/// The rows that a trigger refers to as a table.
pub(super) struct TransitionCursor {
    is_new: bool,
    at: usize,
}

impl TransitionCursor {
    /// Those as they are, or as they were.
    pub(super) fn new(is_new: bool) -> TransitionCursor {
        TransitionCursor { is_new, at: 0 }
    }
}

impl Cursor for TransitionCursor {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        cx.tick()?;
        self.at += 1;
        let firing = cx.host.shared().firing.last();
        let Some(rows) = firing.and_then(|trigger| trigger.transition.as_ref()) else {
            return Err(Error::internal(
                "a trigger without the rows that it refers to",
            ));
        };
        let rows = rows.borrow();
        let rows = if self.is_new { &rows.new } else { &rows.old };
        Ok(rows.get(self.at - 1).cloned())
    }
}
