//! Characters by what an expression can tell apart.
//!
//! Two characters that stand in the same sets have the same colour, so that a table by colours is
//! short, however many characters there are.

use super::parse::{Refusal, TOO_COMPLEX};
use super::set::{CharSet, Class};

/// Ranges that may be coloured, each as often as a set has it.
const WORK_MAX: usize = 20_000_000;

/// What conditions on a place can tell of a character beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// There is none.
    Edge,
    /// A newline.
    Newline,
    /// A character of words.
    Word,
    /// Any other.
    Other,
}

/// The colours of an expression.
#[derive(Debug)]
pub struct Alphabet {
    ascii: [u32; 128],
    /// Where each range begins; the first at 0.
    starts: Vec<u32>,
    /// The colour of each range.
    colours: Vec<u32>,
    /// What conditions can tell of each colour.
    kinds: Vec<Kind>,
    /// The colours of each set, by 64.
    members: Vec<Box<[u64]>>,
}

impl Alphabet {
    /// The colours that tell these sets apart, and the kinds of characters.
    ///
    /// # Errors
    /// It is too complex.
    pub fn of(sets: &[CharSet]) -> Result<Alphabet, Refusal> {
        let newline = CharSet::one('\n');
        let all = || sets.iter().chain([&newline, Class::Word.set()]);
        let edges = |set: &CharSet| {
            let ranges = set.ranges().iter();
            ranges
                .flat_map(|range| [range.0, range.1.saturating_add(1)])
                .collect::<Vec<_>>()
        };
        let mut starts: Vec<u32> = all().flat_map(edges).chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut alphabet = Alphabet {
            ascii: [0; 128],
            colours: vec![0; starts.len()],
            starts,
            kinds: Vec::new(),
            members: Vec::new(),
        };
        let mut count = 1;
        let mut work = 0;
        for set in all() {
            let before = count;
            let mut split = vec![u32::MAX; before as usize];
            work += before as usize;
            for place in alphabet.places(set) {
                let split = &mut split[alphabet.colours[place] as usize];
                if *split == u32::MAX {
                    *split = count;
                    count += 1;
                }
                alphabet.colours[place] = *split;
                work += 1;
            }
            count = alphabet.renumber();
            work += alphabet.colours.len();
            if work > WORK_MAX {
                return Err(TOO_COMPLEX);
            }
        }
        alphabet.finish(sets, count);
        Ok(alphabet)
    }

    /// The ranges of a set, by their places.
    fn places(&self, set: &CharSet) -> Vec<usize> {
        let place = |c: u32| self.starts.partition_point(|start| *start < c);
        let ranges = set.ranges().iter();
        ranges
            .flat_map(|range| place(range.0)..place(range.1.saturating_add(1)))
            .collect()
    }

    /// Numbers the colours without gaps, and counts them.
    fn renumber(&mut self) -> u32 {
        let most = self.colours.iter().max().map_or(0, |most| *most as usize);
        let mut numbers = vec![u32::MAX; most + 1];
        let mut count = 0;
        for colour in &mut self.colours {
            let number = &mut numbers[*colour as usize];
            if *number == u32::MAX {
                *number = count;
                count += 1;
            }
            *colour = *number;
        }
        count
    }

    fn finish(&mut self, sets: &[CharSet], count: u32) {
        self.kinds = vec![Kind::Other; count as usize];
        for (start, colour) in self.starts.iter().zip(&self.colours) {
            self.kinds[*colour as usize] = match *start {
                10 => Kind::Newline,
                start if Class::Word.set().contains(start) => Kind::Word,
                _ => Kind::Other,
            };
        }
        for set in sets {
            let mut members = vec![0u64; count as usize / 64 + 1];
            for place in self.places(set) {
                let colour = self.colours[place];
                members[colour as usize / 64] |= 1 << (colour % 64);
            }
            self.members.push(members.into());
        }
        for c in 0..128 {
            self.ascii[c as usize] = self.look_up(c);
        }
    }

    fn look_up(&self, c: u32) -> u32 {
        self.colours[self.starts.partition_point(|start| *start <= c) - 1]
    }

    /// How many colours there are; this number stands for the end of the text.
    pub fn end(&self) -> u32 {
        self.kinds.len() as u32
    }

    /// The colour of a character.
    #[inline]
    pub fn colour(&self, c: char) -> u32 {
        match self.ascii.get(c as usize) {
            Some(colour) => *colour,
            None => self.look_up(c as u32),
        }
    }

    /// The kind of a colour, or of the end.
    pub fn kind(&self, colour: u32) -> Kind {
        let kind = self.kinds.get(colour as usize);
        kind.copied().unwrap_or(Kind::Edge)
    }

    /// Whether a set has a colour.
    #[inline]
    pub fn has(&self, set: usize, colour: u32) -> bool {
        self.members[set][colour as usize / 64] >> (colour % 64) & 1 == 1
    }
}
