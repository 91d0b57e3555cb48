//! The triggers that a statement may set off: settled when it is planned.
//!
//! ```text
//! update t set a = 1      triggers of t on UPDATE; columns that change: a, and what is generated from it
//! ```

use std::sync::Arc;

use super::program::Program;
use super::routine::RoutineCall;
use catalog::trigger::{Events, Timing};
use catalog::{Table, Trigger};

/// The triggers of a table.
#[derive(Debug, Default)]
pub struct Triggers {
    /// The table.
    pub table: Arc<Table>,
    /// They, in the order in which they fire. None of them is disabled.
    pub all: Vec<PlannedTrigger>,
    /// The columns that the statement changes, by their places.
    pub updated: Vec<usize>,
}

/// A trigger.
#[derive(Debug)]
pub struct PlannedTrigger {
    /// As the catalog has it.
    pub trigger: Trigger,
    /// Its function.
    pub call: RoutineCall,
    /// WHEN, over the old row followed by the new one.
    pub condition: Option<Program>,
}

impl Triggers {
    /// Whether there is any of that kind.
    pub fn any(&self, timing: Timing, for_each_row: bool, event: Events) -> bool {
        let mut all = self.all.iter();
        all.any(|planned| planned.trigger.is(timing, for_each_row, event))
    }

    /// The places of those that a change of these columns sets off, if it is an UPDATE.
    pub fn of<'t>(
        &'t self,
        timing: Timing,
        for_each_row: bool,
        event: Events,
        updated: &'t [usize],
    ) -> impl Iterator<Item = usize> + 't {
        let all = self.all.iter().enumerate();
        let wanted = all.filter(move |(_, planned)| {
            let trigger = &planned.trigger;
            let mut columns = trigger.columns.iter();
            trigger.is(timing, for_each_row, event)
                && (event != Events::UPDATE
                    || trigger.columns.is_empty()
                    || columns.any(|column| updated.contains(column)))
        });
        wanted.map(|(place, _)| place)
    }

    /// Whether rows must be kept for what refers to them as tables.
    pub fn keeps_rows(&self, event: Events) -> bool {
        self.all.iter().any(|planned| {
            let trigger = &planned.trigger;
            let named = trigger.old_table.is_some() || trigger.new_table.is_some();
            named && trigger.events.has(event)
        })
    }
}

/// The columns of a table that change with these, themselves and what is generated from them: all that
/// are generated if a trigger may change others before.
pub fn with_generated(table: &Table, changed: &[usize]) -> Vec<usize> {
    let mut all = changed.to_vec();
    let mut triggers = table.triggers.iter();
    let any = triggers.any(|known| known.is(Timing::Before, true, Events::UPDATE));
    for (place, column) in table.columns.iter().enumerate() {
        let mut from = column.generated_from.iter();
        let changes = column.generated && any || from.any(|place| changed.contains(place));
        if changes && !all.contains(&place) {
            all.push(place);
        }
    }
    all
}
