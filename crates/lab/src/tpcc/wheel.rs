//! A timer wheel: who is due in which hundredth of a second.
//!
//! A terminal costs four bytes here: each slot is a list whose links lie in one array, indexed by
//! terminal. A task with a timer of its own for each of 150,000 terminals would take a hundred
//! times as much.
//!
//! ```text
//! heads  [ 7 | - | 2 | - | … ]     slot 0 is due at tick 0, 16384, …
//!          │       │
//! next   7 ─▶ 3   2 ─▶ none
//! ```
//! Invariant: a terminal is in at most one list, and nobody is scheduled further ahead than the
//! wheel goes round, so everyone in a slot is due at the same tick.

/// Slots; a power of two.
const SLOTS: usize = 1 << 14;

/// Nobody.
const NONE: u32 = u32::MAX;

/// The most ticks ahead.
pub const TICKS_MAX: u64 = SLOTS as u64 - 1;

/// The wheel.
#[derive(Debug)]
pub struct Wheel {
    heads: Vec<u32>,
    next: Vec<u32>,
    /// Everyone due up to this tick has been taken out.
    now: u64,
}

impl Wheel {
    /// A wheel for so many terminals, at tick 0.
    pub fn new(terminals: usize) -> Wheel {
        assert!(terminals < NONE as usize, "{terminals} terminals");
        Wheel {
            heads: vec![NONE; SLOTS],
            next: vec![NONE; terminals],
            now: 0,
        }
    }

    /// Puts a terminal in, so many ticks ahead: at least one, at most [`TICKS_MAX`].
    pub fn schedule(&mut self, terminal: u32, ticks: u64) {
        let slot = (self.now + ticks.clamp(1, TICKS_MAX)) as usize % SLOTS;
        self.next[terminal as usize] = self.heads[slot];
        self.heads[slot] = terminal;
    }

    /// Moves on to a tick and takes out everyone who is due.
    pub fn advance(&mut self, tick: u64, mut due: impl FnMut(u32)) {
        while self.now < tick {
            self.now += 1;
            let slot = self.now as usize % SLOTS;
            let mut terminal = std::mem::replace(&mut self.heads[slot], NONE);
            while terminal != NONE {
                let next = std::mem::replace(&mut self.next[terminal as usize], NONE);
                due(terminal);
                terminal = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_comes_out_when_due_and_once() {
        let mut wheel = Wheel::new(1_000);
        for terminal in 0..1_000u32 {
            wheel.schedule(terminal, u64::from(terminal) * 17 + 1);
        }
        let mut seen = Vec::new();
        for tick in [0, 1, 5, 18, 10_000, 17_000] {
            wheel.advance(tick, |terminal| seen.push(terminal));
            let expected = (0..1_000u64)
                .filter(|terminal| (terminal * 17 + 1).min(TICKS_MAX) <= tick)
                .count();
            assert_eq!(seen.len(), expected, "tick {tick}");
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1_000);
        wheel.schedule(3, 0);
        wheel.advance(17_001, |terminal| assert_eq!(terminal, 3));
    }
}
