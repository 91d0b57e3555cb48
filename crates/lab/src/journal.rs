//! The oracle for loops that commit as they go: journals with one writer.
//!
//! A journal is the numbers 1, 2, 3, … that one client appends, several commits in one DO block,
//! each number a transaction of its own. Whatever a failover takes, it takes from the end: a reader
//! must find the numbers from 1 up to some number and none missing in between, at least up to what
//! was acknowledged or seen before, and no more than was tried.
//!
//! After an outcome that it does not know, a writer leaves the journal alone for good.

/// The history of one journal.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    tried: u64,
    floor: u64,
}

/// A read that has begun, and what it must find at least.
#[derive(Clone, Copy, Debug)]
pub struct JournalRead {
    floor: u64,
}

impl Journal {
    /// So many more numbers are about to be sent; returns the first and the last.
    pub fn append(&mut self, count: u64) -> (u64, u64) {
        let first = self.tried + 1;
        self.tried += count;
        (first, self.tried)
    }

    /// Everything up to this number was acknowledged at a level that survives.
    pub fn acknowledged(&mut self, number: u64) {
        self.floor = self.floor.max(number);
    }

    /// What was promised since `then` is promised no more.
    pub fn forget_since(&mut self, then: &Journal) {
        self.floor = then.floor;
    }

    /// A read is about to be sent.
    pub fn begin_read(&self) -> JournalRead {
        JournalRead { floor: self.floor }
    }

    /// A read has found so many numbers, this the largest.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn end_read(&mut self, read: JournalRead, count: u64, largest: u64) -> Result<(), String> {
        if count != largest {
            return Err(format!("{count} numbers were read, up to {largest}"));
        }
        if largest > self.tried {
            return Err(format!("{largest} was read, and {} tried", self.tried));
        }
        if largest < read.floor {
            return Err(format!(
                "up to {largest} was read after {} was acknowledged or seen",
                read.floor
            ));
        }
        self.floor = self.floor.max(largest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_may_be_missing_and_only_before_it_was_seen() {
        let mut journal = Journal::default();
        assert_eq!(journal.append(3), (1, 3));
        journal.acknowledged(3);
        assert_eq!(journal.append(4), (4, 7));
        let read = journal.begin_read();
        assert!(journal.end_read(read, 2, 2).is_err(), "3 was acknowledged");
        assert!(journal.end_read(read, 4, 5).is_err(), "one is missing");
        assert!(journal.end_read(read, 8, 8).is_err(), "nobody sent it");
        assert!(journal.end_read(read, 5, 5).is_ok());
        let later = journal.begin_read();
        assert!(journal.end_read(later, 4, 4).is_err(), "5 was seen");
        assert!(journal.end_read(read, 4, 4).is_ok(), "it began before");
    }
}
