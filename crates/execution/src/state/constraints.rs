//! What constraints have to look at before a transaction commits, and which of them wait so long.
//!
//! ```text
//! set constraints all deferred      modes: all → true
//! insert into c values (1, 7)       queue: [Refers c → p]
//! savepoint s                       mark: 1 event, none done
//! set constraints c_fkey immediate  looks; done: [0]
//! rollback to s                     done: []: it is to be looked at again
//! ```

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::coro;
use base::large::{Large, DROP_WORK};
use base::memory::Reservation;
use base::{Key, Result};

use crate::kept::{apart, row_bytes};
use catalog::trigger::{ConstraintTrigger, Events};
use catalog::{Catalog, ForeignKey, Index, Table};
use planner::plan::trigger::Triggers;
use planner::plan::{EntryRule, Row, Rules};
use types::Datum;

/// Something that must be looked at when the statement, or the transaction, ends.
#[derive(Clone, Debug)]
pub enum Event {
    /// A row refers to these values.
    Refers {
        /// The rules that the link is of.
        rules: Rc<Rules>,
        /// The link.
        link: usize,
        /// The key of the row.
        row: Key,
        /// The values, in the constraint's order.
        values: Vec<Datum>,
    },
    /// Other rows may have the values of a row in the index of a constraint that is checked later.
    Equal {
        /// The table.
        table: Arc<Table>,
        /// The place of the index.
        index: usize,
        /// The key of the row.
        row: Key,
        /// The values, as keys of the index begin.
        values: Key,
    },
    /// Other rows may conflict with a row under an exclusion constraint that is checked later.
    Excluded {
        /// The table.
        table: Arc<Table>,
        /// How entries of its indexes are made.
        rules: Rc<[EntryRule]>,
        /// The one of the constraint.
        rule: usize,
        /// The key of the row.
        row: Key,
    },
    /// A trigger fires.
    Fire(Fire),
    /// A row that others may refer to left these values: it was deleted, or has others now.
    Left {
        /// The rules that the link is of.
        rules: Rc<Rules>,
        /// The link.
        link: usize,
        /// The values that it had.
        old: Vec<Datum>,
        /// The values that it has; none: it was deleted.
        new: Option<Vec<Datum>>,
    },
}

/// The rows that a statement has written for triggers that refer to them as tables.
#[derive(Debug, Default)]
pub struct Transition {
    /// As they were.
    pub old: Large<Vec<Row>>,
    /// As they are.
    pub new: Large<Vec<Row>>,
}

/// A trigger that fires when the statement, or the transaction, ends.
#[derive(Clone, Debug)]
pub struct Fire {
    /// The triggers of the table.
    pub triggers: Rc<Triggers>,
    /// The place of the one that fires.
    pub place: usize,
    /// What has set it off.
    pub event: Events,
    /// The row as it was.
    pub old: Option<Rc<[Datum]>>,
    /// The row as it is.
    pub new: Option<Rc<[Datum]>>,
    /// What it may refer to as tables.
    pub transition: Option<Rc<RefCell<Transition>>>,
    /// How often triggers of statements were queued for the table and the event until then: only the
    /// last ones fire. 0 for those of rows.
    pub turn: u64,
}

impl Event {
    /// Whether looking at one is looking at the other.
    pub fn is_like(&self, other: &Event) -> bool {
        match (self, other) {
            (
                Event::Refers {
                    rules,
                    link,
                    values,
                    ..
                },
                Event::Refers {
                    rules: other_rules,
                    link: other_link,
                    values: other_values,
                    ..
                },
            ) => Rc::ptr_eq(rules, other_rules) && link == other_link && values == other_values,
            _ => false,
        }
    }
}

impl Event {
    /// The tables of an event: their trees must stay as they are until it is carried out.
    pub fn tables(&self) -> [&Arc<Table>; 2] {
        match self {
            Event::Equal { table, .. } | Event::Excluded { table, .. } => [table; 2],
            Event::Fire(fire) => [&fire.triggers.table; 2],
            Event::Refers { rules, link, .. } | Event::Left { rules, link, .. } => {
                let link = &rules.links[*link];
                [link.child, link.parent].map(|place| &rules.tables[place].table)
            }
        }
    }

    /// The memory that it takes while it waits, in bytes, but for rows that triggers share.
    pub fn bytes(&self) -> usize {
        let apart = match self {
            Event::Refers { row, values, .. } => row.len() + row_bytes(values),
            Event::Equal { row, values, .. } => row.len() + values.len(),
            Event::Excluded { row, .. } => row.len(),
            Event::Left { old, new, .. } => row_bytes(old) + new.as_ref().map_or(0, row_bytes),
            Event::Fire(_) => 0,
        };
        size_of::<(Event, bool)>() + apart
    }

    /// The memory of the rows that triggers share, in bytes.
    fn shared_bytes(&self) -> usize {
        let Event::Fire(fire) = self else {
            return 0;
        };
        let rows = fire.old.iter().chain(&fire.new);
        rows.map(|row| size_of_val(&**row) + row.iter().map(apart).sum::<usize>())
            .sum()
    }

    /// The oid of an event's constraint.
    pub fn constraint(&self) -> u32 {
        match self {
            Event::Equal { table, index, .. } => table.indexes[*index].constraint,
            Event::Excluded {
                table, rules, rule, ..
            } => table.indexes[rules[*rule].index].constraint,
            Event::Fire(fire) => {
                let trigger = &fire.triggers.all[fire.place].trigger;
                trigger.constraint.as_ref().map_or(0, |known| known.oid)
            }
            Event::Refers { rules, link, .. } | Event::Left { rules, link, .. } => {
                rules.links[*link].key.oid
            }
        }
    }
}

/// What the constraints of the open transaction wait for.
#[derive(Debug)]
pub struct Constraints {
    /// What SET CONSTRAINTS has said.
    pub modes: Modes,
    /// What is to be looked at, and whether it was.
    pub queue: Large<Vec<(Event, bool)>>,
    /// The places in the queue that are done, in the order in which they were.
    pub done: Vec<usize>,
    /// The catalog with which the last was queued.
    pub catalog: Option<Arc<Catalog>>,
    /// The memory of the queue.
    memory: Reservation,
}

impl Default for Constraints {
    fn default() -> Constraints {
        Constraints {
            modes: Modes::default(),
            queue: Large::default(),
            done: Vec::new(),
            catalog: None,
            memory: Reservation::of("Deferred constraints"),
        }
    }
}

/// What SET CONSTRAINTS has said.
#[derive(Clone, Debug, Default)]
pub struct Modes {
    /// Of all constraints: whether they are deferred.
    pub all: Option<bool>,
    /// Of single ones, since then, by oid.
    pub each: Vec<(u32, bool)>,
}

/// Where a savepoint stands.
#[derive(Clone, Debug)]
pub struct Mark {
    modes: Modes,
    queued: usize,
    done: usize,
}

impl Mark {
    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Mark>() + size_of_val(&self.modes.each[..])
    }
}

impl Constraints {
    /// Whether a constraint is looked at when the transaction commits.
    pub fn is_deferred(&self, key: &ForeignKey) -> bool {
        key.deferrable && self.mode_of(key.oid, key.initially_deferred)
    }

    /// Whether the constraint of an index is looked at when the transaction commits.
    pub fn is_deferred_index(&self, index: &Index) -> bool {
        index.is_deferrable() && self.mode_of(index.constraint, index.is_initially_deferred())
    }

    /// Whether a trigger fires when the transaction commits.
    pub fn is_deferred_trigger(&self, trigger: &ConstraintTrigger) -> bool {
        trigger.deferrable && self.mode_of(trigger.oid, trigger.initially_deferred)
    }

    fn mode_of(&self, oid: u32, initially: bool) -> bool {
        let own = self.modes.each.iter().rfind(|mode| mode.0 == oid);
        let said = own.map(|mode| mode.1).or(self.modes.all);
        said.unwrap_or(initially)
    }

    /// Keeps an event until then.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn defer(&mut self, event: Event, catalog: Arc<Catalog>) -> Result<()> {
        self.memory.grow(event.bytes() + event.shared_bytes())?;
        self.queue.push((event, false));
        self.catalog = Some(catalog);
        Ok(())
    }

    /// Where a savepoint stands.
    pub fn mark(&self) -> Mark {
        Mark {
            modes: self.modes.clone(),
            queued: self.queue.len(),
            done: self.done.len(),
        }
    }

    /// Goes back to a savepoint.
    pub fn roll_back_to(&mut self, mark: &Mark) {
        self.modes = mark.modes.clone();
        for place in self.done.drain(mark.done..) {
            self.queue[place].1 = false;
        }
        for (event, _) in self.queue.split_off(mark.queued) {
            self.memory.shrink(event.bytes() + event.shared_bytes());
            coro::work_uninterrupted(2 * DROP_WORK);
        }
    }

    /// Whether something is still to be looked at.
    pub fn has_pending(&self) -> bool {
        self.queue.len() > self.done.len()
    }

    /// Whether a table has something that is still to be looked at.
    pub fn waits_for(&self, table: &Table) -> bool {
        let mut waiting = self.queue.iter().filter(|(_, done)| !done);
        waiting.any(|(event, _)| event.tables().iter().any(|t| t.oid == table.oid))
    }
}
