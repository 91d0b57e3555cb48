//! What a replica's disk, and its share of the processor, have to do with who leads.
//!
//! A leader commits without its own disk, so one that hangs shows in nothing that it sends. Therefore
//! each replica is told by its driver how fit it is, followers pass that on with their answers, and
//! the leader's driver finds in [`Status::peers`] who would lead better. A replica whose disk hangs does
//! not stand for election, nor take over: its vote for itself would not get to the disk, and once it
//! did, the term that goes with it would end another's leadership.

use super::*;

impl<L: LogView> Consensus<L> {
    /// How fit this replica is, and whether the disk of its log hangs: a sync that is under way takes
    /// so long that nothing is to be expected of it.
    pub fn note_condition(&mut self, condition: Condition, disk_hangs: bool) {
        self.condition = condition;
        self.disk_hangs = disk_hangs;
    }

    /// Whether this replica leads because the leader before it has asked it to.
    pub fn was_handed_over(&self) -> bool {
        self.is_leader() && self.asked_term == self.term()
    }
}
