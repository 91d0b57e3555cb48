//! Where the entries of a log are, and the chain up to each: 16 bytes for each that is written.
//!
//! A gigabyte of small commits is ten million entries, so what they have in common is kept once.
//! Written entries are a prefix of the log, in *runs*: those of one run are of one term, in one
//! segment, and the chain is known of all or of none. The few that wait to be written are kept as they are.
//!
//! ```text
//!   runs                                                       waiting
//!   │ segment 7, term 3: 90,000 │ segment 8, term 3: 41,200 │  │ ? ? ? │
//!      each: offset, serial, bytes so far, as differences to the run's first
//! ```

use std::collections::VecDeque;

use base::{Chain, Term};

use super::frame::FilePosition;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) term: Term,
    pub(super) serial: u64,
    /// Sequence 0 while it is not written.
    pub(super) at: FilePosition,
    /// Bytes of the entry.
    pub(super) bytes: u32,
    /// Bytes of all entries up to this one, from some origin.
    pub(super) total: u64,
    /// The chain behind it, if it is known.
    pub(super) chain: Option<Chain>,
}

impl Place {
    fn is_written(&self) -> bool {
        self.at.sequence != 0
    }
}

/// A written entry, as differences to the first of its run.
#[derive(Clone, Copy, Debug)]
struct Packed {
    offset: u32,
    serial: u32,
    /// With its own bytes.
    total: u32,
    chain: u32,
}

/// Written entries of one term in one segment.
#[derive(Debug)]
struct Run {
    /// How many entries there were before it, from some origin.
    before: u64,
    term: Term,
    serial: u64,
    at: FilePosition,
    /// Bytes of all entries before it.
    total: u64,
    has_chain: bool,
    entries: Vec<Packed>,
}

impl Run {
    fn beginning_with(place: &Place, before: u64) -> Run {
        Run {
            before,
            term: place.term,
            serial: place.serial,
            at: place.at,
            total: place.total - u64::from(place.bytes),
            has_chain: place.chain.is_some(),
            entries: Vec::new(),
        }
    }

    /// The entry as one of this run, if it can be.
    fn pack(&self, place: &Place) -> Option<Packed> {
        let is_like = place.term == self.term && place.chain.is_some() == self.has_chain;
        if !is_like || place.at.sequence != self.at.sequence {
            return None;
        }
        let difference = |a: u64, b: u64| u32::try_from(a.checked_sub(b)?).ok();
        Some(Packed {
            offset: difference(place.at.offset, self.at.offset)?,
            serial: difference(place.serial, self.serial)?,
            total: difference(place.total, self.total)?,
            chain: place.chain.map_or(0, |chain| chain.0),
        })
    }

    fn place(&self, index: usize) -> Place {
        let packed = self.entries[index];
        let before = index.checked_sub(1).map_or(0, |at| self.entries[at].total);
        Place {
            term: self.term,
            serial: self.serial + u64::from(packed.serial),
            at: FilePosition {
                sequence: self.at.sequence,
                offset: self.at.offset + u64::from(packed.offset),
            },
            bytes: packed.total - before,
            total: self.total + u64::from(packed.total),
            chain: self.has_chain.then_some(Chain(packed.chain)),
        }
    }
}

/// Where the entries of a log are, in order, without holes.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// None of them is empty.
    runs: VecDeque<Run>,
    waiting: VecDeque<Place>,
}

impl Index {
    /// How many are written.
    pub(super) fn written(&self) -> usize {
        match (self.runs.front(), self.runs.back()) {
            (Some(first), Some(last)) => (last.before - first.before) as usize + last.entries.len(),
            _ => 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.written() + self.waiting.len()
    }

    /// The run of a written entry, and where it is in that.
    fn find(&self, slot: usize) -> Option<(&Run, usize)> {
        let at = self.runs.front()?.before + slot as u64;
        let run = self.runs.partition_point(|run| run.before <= at);
        let run = self.runs.get(run.checked_sub(1)?)?;
        Some((run, (at - run.before) as usize))
    }

    pub(super) fn get(&self, slot: usize) -> Option<Place> {
        match slot.checked_sub(self.written()) {
            Some(waiting) => self.waiting.get(waiting).copied(),
            None => self.find(slot).map(|(run, at)| run.place(at)),
        }
    }

    pub(super) fn front(&self) -> Option<Place> {
        self.get(0)
    }

    pub(super) fn back(&self) -> Option<Place> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The places from `slot` on.
    pub(super) fn from(&self, slot: usize) -> impl Iterator<Item = Place> + '_ {
        (slot..self.len()).map_while(|slot| self.get(slot))
    }

    pub(super) fn push(&mut self, place: Place) {
        self.waiting.push_back(place);
        self.pack_written();
    }

    pub(super) fn pop_back(&mut self) {
        if self.waiting.pop_back().is_some() {
            return;
        }
        if let Some(last) = self.runs.back_mut() {
            last.entries.pop();
            if last.entries.is_empty() {
                self.runs.pop_back();
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Index::default();
    }

    /// Notes where an entry was written, if it is still that of this serial.
    pub(super) fn note_written(&mut self, slot: usize, serial: u64, at: FilePosition) {
        let waiting = slot.checked_sub(self.written());
        let waiting = waiting.and_then(|slot| self.waiting.get_mut(slot));
        if let Some(place) = waiting.filter(|place| place.serial == serial) {
            place.at = at;
            self.pack_written();
        }
    }

    fn pack_written(&mut self) {
        while let Some(place) = self.waiting.front().filter(|place| place.is_written()) {
            let packed = self.runs.back().and_then(|run| run.pack(place));
            if let (Some(run), Some(packed)) = (self.runs.back_mut(), packed) {
                run.entries.push(packed);
                self.waiting.pop_front();
                continue;
            }
            let end = |run: &Run| run.before + run.entries.len() as u64;
            let before = self.runs.back().map_or(0, end);
            self.runs.push_back(Run::beginning_with(place, before));
        }
    }

    /// How many entries lie in segments up to one.
    pub(super) fn count_up_to(&self, sequence: u64) -> usize {
        let old = self.runs.iter();
        let old = old.take_while(|run| run.at.sequence <= sequence);
        old.map(|run| run.entries.len()).sum()
    }

    /// Forgets the entries in segments up to one.
    pub(super) fn drop_up_to(&mut self, sequence: u64) {
        while self
            .runs
            .front()
            .is_some_and(|run| run.at.sequence <= sequence)
        {
            self.runs.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Against a plain list: entries come, are written, are replaced, and go in whole segments.
    #[test]
    fn it_is_a_list_of_places() {
        let mut random = Random::new(11);
        let (mut index, mut list) = (Index::default(), VecDeque::<Place>::new());
        let (mut serial, mut total, mut term) = (1, 0, 1);
        let mut end = FilePosition {
            sequence: 1,
            offset: 64,
        };
        for _ in 0..20_000 {
            match random.below(12) {
                0 if random.one_in(8) => {
                    let sequence = list.front().map_or(0, |place| place.at.sequence);
                    if sequence > 0 && sequence < end.sequence {
                        let in_segment = |place: &Place| place.at.sequence == sequence;
                        let count = list.iter().take_while(|place| in_segment(place)).count();
                        assert_eq!(index.count_up_to(sequence), count);
                        index.drop_up_to(sequence);
                        list.drain(..count);
                    }
                }
                1 if random.one_in(4) => {
                    for _ in 0..random.below(5).min(list.len()) {
                        list.pop_back();
                        index.pop_back();
                    }
                    total = list.back().map_or(total, |place| place.total);
                    term += 1;
                }
                2..=5 => {
                    let first = list.iter().position(|place| !place.is_written());
                    for slot in first.unwrap_or(list.len())..list.len() {
                        if random.one_in(40) {
                            end.sequence += 1;
                            end.offset = 64;
                        }
                        list[slot].at = end;
                        end.offset += u64::from(list[slot].bytes) + 40;
                        index.note_written(slot, serial + 1_000_000, end);
                        index.note_written(slot, list[slot].serial, list[slot].at);
                    }
                }
                _ => {
                    let bytes = random.below(300) as u32;
                    serial += 1 + random.below(2) as u64;
                    total += u64::from(bytes);
                    let place = Place {
                        term: Term(term),
                        serial,
                        at: FilePosition::default(),
                        bytes,
                        total,
                        chain: (term % 3 > 0).then_some(Chain(serial as u32)),
                    };
                    list.push_back(place);
                    index.push(place);
                }
            }
            assert_eq!(index.len(), list.len());
            assert_eq!(index.front(), list.front().copied());
            assert_eq!(index.back(), list.back().copied());
            let slot = random.below(list.len() + 2);
            assert_eq!(index.get(slot), list.get(slot).copied());
            let written = list.iter().filter(|place| place.is_written()).count();
            assert_eq!(index.written(), written);
        }
        let all: Vec<Place> = index.from(0).collect();
        assert_eq!(all, Vec::from(list));
    }
}
