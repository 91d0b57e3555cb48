//! The large objects that the open transaction has opened.
//!
//! ```text
//! lo_open(24576, INV_READ)    0    what the statement saw is kept as a view
//! savepoint s                      mark: 1
//! lo_open(24577, INV_WRITE)   1
//! rollback to s                    1 is closed
//! ```
//! # Invariants
//! - A descriptor lives as long as the transaction in which it was opened, at most.
//! - The lowest number that is free is given next, as in PostgreSQL.

use base::engine::ViewId;
use base::memory::Reservation;
use base::{Error, Result, SqlState};

/// About what a descriptor takes, with its view.
const DESCRIPTOR_BYTES: usize = 256;

/// A large object that is open.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// The object.
    pub oid: u32,
    /// The view under which it is read; none for one that is written as well, which is read as it is.
    pub view: Option<ViewId>,
    /// Where reading and writing goes on.
    pub offset: u64,
    /// How many were opened before it.
    number: u64,
}

/// What the transaction has opened and done.
#[derive(Debug)]
pub struct LargeObjects {
    open: Vec<Option<Descriptor>>,
    opened: u64,
    memory: Reservation,
    /// Whether it has written anything.
    pub wrote: bool,
    /// Whether it has removed comments, of which the session's catalog does not know yet.
    pub uncommented: bool,
}

impl Default for LargeObjects {
    fn default() -> LargeObjects {
        LargeObjects {
            open: Vec::new(),
            opened: 0,
            memory: Reservation::of("Large objects"),
            wrote: false,
            uncommented: false,
        }
    }
}

impl LargeObjects {
    /// Opens an object; the descriptor's number.
    ///
    /// # Errors
    /// 53200.
    pub fn open(&mut self, oid: u32, view: Option<ViewId>) -> Result<i32> {
        let free = self.open.iter().position(Option::is_none);
        let place = match free {
            Some(place) => place,
            None => {
                self.memory.grow(DESCRIPTOR_BYTES)?;
                self.open.push(None);
                self.open.len() - 1
            }
        };
        self.open[place] = Some(Descriptor {
            oid,
            view,
            offset: 0,
            number: self.opened,
        });
        self.opened += 1;
        i32::try_from(place).map_err(|_| Error::internal("too many descriptors"))
    }

    fn slot(&mut self, descriptor: i32) -> Result<&mut Option<Descriptor>> {
        let place = usize::try_from(descriptor).ok();
        let slot = place.and_then(|place| self.open.get_mut(place));
        slot.filter(|slot| slot.is_some()).ok_or_else(|| {
            Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("invalid large-object descriptor: {descriptor}"),
            )
        })
    }

    /// What a descriptor stands for.
    ///
    /// # Errors
    /// 42704.
    pub fn get(&mut self, descriptor: i32) -> Result<Descriptor> {
        let slot = self.slot(descriptor)?;
        slot.ok_or_else(|| Error::internal("a closed descriptor"))
    }

    /// Says where reading and writing goes on.
    pub fn seek(&mut self, descriptor: i32, offset: u64) -> Result<()> {
        if let Some(open) = self.slot(descriptor)? {
            open.offset = offset;
        }
        Ok(())
    }

    /// Closes a descriptor; its view is to be given up.
    ///
    /// # Errors
    /// 42704.
    pub fn close(&mut self, descriptor: i32) -> Result<Option<ViewId>> {
        let closed = self.slot(descriptor)?.take();
        Ok(closed.and_then(|closed| closed.view))
    }

    fn close_all(&mut self, is_closed: impl Fn(&Descriptor) -> bool) -> Vec<ViewId> {
        let slots = self.open.iter_mut();
        let closed = slots.filter_map(|slot| slot.take_if(|open| is_closed(open)));
        closed.filter_map(|closed| closed.view).collect()
    }

    /// Closes all descriptors of an object; their views are to be given up.
    pub fn close_object(&mut self, oid: u32) -> Vec<ViewId> {
        self.close_all(|open| open.oid == oid)
    }

    /// Where it is now.
    pub fn mark(&self) -> u64 {
        self.opened
    }

    /// Closes what was opened since; their views are to be given up.
    pub fn roll_back_to(&mut self, mark: u64) -> Vec<ViewId> {
        self.close_all(|open| open.number >= mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savepoints_close_what_was_opened_since() {
        let mut objects = LargeObjects::default();
        assert_eq!(objects.open(7, None).unwrap(), 0);
        let mark = objects.mark();
        assert_eq!(objects.open(8, Some(ViewId(3))).unwrap(), 1);
        assert_eq!(objects.close(0).unwrap(), None);
        assert_eq!(objects.open(9, Some(ViewId(4))).unwrap(), 0);
        objects.seek(0, 5).unwrap();
        assert_eq!(objects.get(0).unwrap().offset, 5);
        assert_eq!(objects.roll_back_to(mark), [ViewId(4), ViewId(3)]);
        let error = objects.get(0).unwrap_err();
        assert_eq!(error.message(), "invalid large-object descriptor: 0");
        assert!(objects.get(-1).is_err());
    }

    #[test]
    fn what_is_removed_is_closed() {
        let mut objects = LargeObjects::default();
        let mark = objects.mark();
        objects.open(7, None).unwrap();
        objects.open(8, None).unwrap();
        assert!(objects.close_object(7).is_empty());
        assert!(objects.get(0).is_err());
        assert_eq!(objects.get(1).unwrap().oid, 8);
        objects.roll_back_to(mark);
        assert!(objects.get(1).is_err());
    }
}
