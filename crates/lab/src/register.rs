//! The oracle for acknowledged commits and stale or vanishing reads: registers with one writer.
//!
//! A register is a row that one client inserts, updates and deletes, and that all read. Its writes
//! are numbered, and write `n` stores `n` (a delete stores nothing), so a read names the write that
//! it saw; an absence may be any of the deletes, or the time before the first write.
//!
//! ```
//! use lab::register::Register;
//! let mut register = Register::default();
//! let first = register.write(true);
//! register.acknowledged(first);
//! let read = register.begin_read();
//! assert!(register.end_read(read, Some(first)).is_ok());
//! let read = register.begin_read();
//! assert!(register.end_read(read, None).is_err(), "what was acknowledged has vanished");
//! ```
//!
//! # What is checked
//! A read must have seen a state between the *floor* at its beginning and the newest write tried
//! until its end. The floor is the newest write that was acknowledged or seen by a read that had
//! ended: nothing visible may vanish (P2), and reads are linearizable. A write that was refused
//! (its outcome was "it never happened") may never be seen.
//!
//! # What the writer must do
//! After an outcome that it does not know, a writer leaves the register alone for good: a write
//! still on its way could otherwise come after later ones.

/// One write of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Not known, perhaps for ever.
    Open,
    Acknowledged,
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    present: bool,
    outcome: Outcome,
}

/// The number of a write, from 1; 0 is the state before the first.
pub type WriteNumber = usize;

/// The history of one register.
#[derive(Clone, Debug, Default)]
pub struct Register {
    writes: Vec<Write>,
    floor: WriteNumber,
}

/// A read that has begun, and the floor at that time.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    floor: WriteNumber,
}

impl Register {
    /// A write is about to be sent: of a value, or a delete.
    pub fn write(&mut self, present: bool) -> WriteNumber {
        self.writes.push(Write {
            present,
            outcome: Outcome::Open,
        });
        self.writes.len()
    }

    /// The write was acknowledged at a level that survives the faults of this world.
    pub fn acknowledged(&mut self, number: WriteNumber) {
        self.set(number, Outcome::Acknowledged);
        self.floor = self.floor.max(number);
    }

    /// The write was acknowledged at a level that a failover may take back.
    pub fn acknowledged_weakly(&mut self, _number: WriteNumber) {}

    /// The answer was that the write never happened.
    pub fn refused(&mut self, number: WriteNumber) {
        self.set(number, Outcome::Refused);
    }

    /// A read is about to be sent.
    pub fn begin_read(&self) -> Read {
        Read { floor: self.floor }
    }

    /// A read is about to be sent that may show the past, but not what comes before `seen`, which
    /// the same session has been shown.
    pub fn begin_read_of_past(&self, seen: WriteNumber) -> Read {
        Read { floor: seen }
    }

    /// A read has ended with this value, or with no row; returns the state that it has shown.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn end_read(
        &mut self,
        read: Read,
        seen: Option<WriteNumber>,
    ) -> Result<WriteNumber, String> {
        let state = match seen {
            Some(number) => number,
            None => self.first_absence(read.floor)?,
        };
        if state > self.writes.len() {
            return Err(format!(
                "write {state} was read, and only {} were tried",
                self.writes.len()
            ));
        }
        if state < read.floor {
            return Err(format!(
                "write {state} was read after write {} was acknowledged or seen",
                read.floor
            ));
        }
        if state > 0 && self.writes[state - 1].outcome == Outcome::Refused {
            return Err(format!("write {state} was refused and yet read"));
        }
        self.floor = self.floor.max(state);
        Ok(state)
    }

    /// What was promised since `then` is promised no more: it may or may not have happened.
    pub fn forget_since(&mut self, then: &Register) {
        self.floor = then.floor;
        for (number, write) in self.writes.iter_mut().enumerate() {
            let before = then.writes.get(number);
            write.outcome = before.map_or(Outcome::Open, |before| before.outcome);
        }
    }

    /// A read whose session has been shown this state before; what comes earlier is wrong.
    pub fn after(&self, read: Read, seen: WriteNumber) -> Read {
        Read {
            floor: read.floor.max(seen),
        }
    }

    /// The earliest state without a row, from `floor` on.
    fn first_absence(&self, floor: WriteNumber) -> Result<WriteNumber, String> {
        if floor == 0 {
            return Ok(0);
        }
        (floor..=self.writes.len())
            .find(|number| {
                let write = self.writes[number - 1];
                !write.present && write.outcome != Outcome::Refused
            })
            .ok_or_else(|| {
                format!("no row was read after write {floor} was acknowledged or seen, and no later write deletes it")
            })
    }

    fn set(&mut self, number: WriteNumber, outcome: Outcome) {
        let write = &mut self.writes[number - 1];
        assert_eq!(
            write.outcome,
            Outcome::Open,
            "write {number} has one outcome"
        );
        write.outcome = outcome;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_the_past_goes_on_from_what_was_shown() {
        let mut register = Register::default();
        let first = register.write(true);
        register.acknowledged(first);
        let second = register.write(true);
        register.acknowledged(second);
        let old = register.begin_read_of_past(0);
        assert_eq!(register.end_read(old, Some(first)), Ok(first));
        let back = register.begin_read_of_past(second);
        assert!(register.end_read(back, Some(first)).is_err());
        // What was shown, whoever saw it, does not vanish.
        let third = register.write(true);
        let new = register.begin_read_of_past(second);
        assert_eq!(register.end_read(new, Some(third)), Ok(third));
        assert!(read(&mut register, Some(second)).is_err());
    }

    #[test]
    fn what_is_forgotten_may_have_happened_or_not() {
        let mut register = Register::default();
        let first = register.write(true);
        register.acknowledged(first);
        let then = register.clone();
        let second = register.write(true);
        register.acknowledged(second);
        let third = register.write(true);
        register.refused(third);
        let mut other = register.clone();
        register.forget_since(&then);
        other.forget_since(&then);
        assert!(read(&mut register, Some(first)).is_ok());
        assert!(
            read(&mut register, None).is_err(),
            "the first was not forgotten"
        );
        assert!(read(&mut other, Some(third)).is_ok());
    }

    fn read(register: &mut Register, seen: Option<WriteNumber>) -> Result<WriteNumber, String> {
        let read = register.begin_read();
        register.end_read(read, seen)
    }

    #[test]
    fn an_open_write_may_be_seen_or_not_but_not_unseen() {
        let mut register = Register::default();
        let first = register.write(true);
        assert!(read(&mut register, None).is_ok());
        assert!(read(&mut register, Some(first)).is_ok());
        assert!(read(&mut register, None).is_err());
    }

    #[test]
    fn an_absence_that_vanishes_is_found() {
        let mut register = Register::default();
        let first = register.write(true);
        register.acknowledged(first);
        register.write(false);
        assert!(read(&mut register, None).is_ok());
        assert!(read(&mut register, Some(first)).is_err());
    }

    #[test]
    fn a_read_that_began_earlier_may_see_older_states() {
        let mut register = Register::default();
        let first = register.write(true);
        register.acknowledged(first);
        let early = register.begin_read();
        let second = register.write(true);
        register.acknowledged(second);
        assert!(register.end_read(early, Some(first)).is_ok());
        assert!(read(&mut register, Some(first)).is_err());
    }

    #[test]
    fn a_refused_write_is_never_seen() {
        let mut register = Register::default();
        let first = register.write(true);
        register.refused(first);
        assert!(read(&mut register, None).is_ok());
        assert!(read(&mut register, Some(first)).is_err());
    }
}
