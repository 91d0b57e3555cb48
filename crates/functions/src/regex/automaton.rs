//! A program run over a text, with all its states at once: the time is that of text times program,
//! whatever the expression.
//!
//! Which states follow which is kept in a table, by sets of states and colours, as it is found out
//! (the lazy construction of a deterministic automaton). A row of the table stands for the states
//! right after a character and the kind of that character: conditions on the place are known once
//! the next character is, so what follows a row depends on that alone. Whether the program ends
//! before the next character does too.
//!
//! Where a program looks further around, its table would be wrong, and is not used.
//!
//! # Invariants
//! - The table takes at most [`BYTES_MAX`]; when it would take more, it begins anew.

use base::hash::HashMap;

use super::alphabet::{Alphabet, Kind};
use super::program::{Program, State};
use super::syntax::Assert;

/// The memory of one table.
pub const BYTES_MAX: usize = 1 << 20;

/// What the table says of a row and a colour: the row that follows, and whether the program may end
/// here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(u32);

impl Step {
    const UNKNOWN: Step = Step(u32::MAX);
    const NO_ROW: u32 = (1 << 31) - 1;

    fn new(row: Option<u32>, accepts: bool) -> Step {
        Step(row.unwrap_or(Step::NO_ROW) | u32::from(accepts) << 31)
    }

    /// Whether the program may end before the character.
    #[inline]
    pub fn accepts(self) -> bool {
        self.0 >> 31 == 1
    }

    /// The row after the character; none if nothing can follow.
    #[inline]
    pub fn row(self) -> Option<u32> {
        let row = self.0 & Step::NO_ROW;
        (row != Step::NO_ROW).then_some(row)
    }
}

#[derive(Debug)]
struct Row {
    states: Box<[u32]>,
    before: Kind,
}

/// A program with its table.
#[derive(Debug)]
pub struct Automaton {
    pub program: Program,
    /// Colours, and the end.
    width: usize,
    rows: Vec<Row>,
    numbers: HashMap<(Box<[u32]>, Kind), u32>,
    table: Vec<Step>,
    bytes: usize,
    /// How often the table has begun anew.
    clearings: u64,
    /// By state: the last turn in which it was met.
    met: Vec<u32>,
    turn: u32,
    /// Work space: states that wait to be looked at, and those that want a character.
    open: Vec<u32>,
    wanting: Vec<u32>,
}

impl Automaton {
    /// A program without a table.
    pub fn new(program: Program, alphabet: &Alphabet) -> Automaton {
        Automaton {
            width: alphabet.end() as usize + 1,
            rows: Vec::new(),
            numbers: HashMap::default(),
            table: Vec::new(),
            bytes: 0,
            clearings: 0,
            met: vec![0; program.states.len()],
            turn: 0,
            open: Vec::new(),
            wanting: Vec::new(),
            program,
        }
    }

    /// The memory that its table takes.
    pub fn bytes(&self) -> usize {
        self.bytes + self.met.len() * 4
    }

    /// The row in which a program begins behind such a character.
    pub fn begin(&mut self, before: Kind) -> u32 {
        self.row(Box::new([0]), before)
    }

    /// Whether a row is one in which a program begins.
    pub fn is_beginning(&self, row: u32) -> bool {
        *self.rows[row as usize].states == [0]
    }

    fn row(&mut self, states: Box<[u32]>, before: Kind) -> u32 {
        let key = (states, before);
        if let Some(known) = self.numbers.get(&key) {
            return *known;
        }
        let size = self.width * 4 + key.0.len() * 8 + 96;
        if self.bytes + size > BYTES_MAX {
            self.rows.clear();
            self.numbers.clear();
            self.table.clear();
            self.bytes = 0;
            self.clearings += 1;
        }
        let number = self.rows.len() as u32;
        self.bytes += size;
        self.rows.push(Row {
            states: key.0.clone(),
            before,
        });
        self.numbers.insert(key, number);
        let length = self.table.len() + self.width;
        self.table.resize(length, Step::UNKNOWN);
        number
    }

    /// What the table says, if it knows.
    #[inline]
    pub fn known(&self, row: u32, colour: u32) -> Option<Step> {
        let step = self.table[row as usize * self.width + colour as usize];
        (step != Step::UNKNOWN).then_some(step)
    }

    /// Finds out what follows a row. The row is no longer to be used afterwards: the table may have
    /// begun anew.
    pub fn find_out(&mut self, row: u32, colour: u32, alphabet: &Alphabet) -> Step {
        let Row { states, before } = &self.rows[row as usize];
        let (states, before) = (states.clone(), *before);
        let after = alphabet.kind(colour);
        let accepts = self.settle(&states, before, after, &mut |_| Ok::<_, ()>(false));
        let accepts = accepts.unwrap_or(false);
        let next = self.advance(colour, alphabet);
        let clearings = self.clearings;
        let next = (!next.is_empty()).then(|| self.row(next.into(), after));
        let step = Step::new(next, accepts);
        if self.clearings == clearings {
            self.table[row as usize * self.width + colour as usize] = step;
        }
        step
    }

    /// The states that want a character, of those that are reached without one; whether the program
    /// may end. `look` answers conditions on what stands around.
    pub fn settle<E>(
        &mut self,
        states: &[u32],
        before: Kind,
        after: Kind,
        look: &mut dyn FnMut(usize) -> Result<bool, E>,
    ) -> Result<bool, E> {
        self.turn = self.turn.wrapping_add(1);
        if self.turn == 0 {
            self.met.fill(0);
            self.turn = 1;
        }
        self.wanting.clear();
        self.open.clear();
        let mut accepts = false;
        for state in states {
            self.open.push(*state);
            while let Some(state) = self.open.pop() {
                let met = &mut self.met[state as usize];
                if *met == self.turn {
                    continue;
                }
                *met = self.turn;
                match &self.program.states[state as usize] {
                    State::Set(..) => self.wanting.push(state),
                    State::Split(one, other) => self.open.extend([*other, *one]),
                    State::Jump(next) => self.open.push(*next),
                    State::Assert(assert, next) => {
                        if holds(*assert, before, after) {
                            self.open.push(*next);
                        }
                    }
                    State::Look(number, next) => {
                        let (number, next) = (*number, *next);
                        if look(number)? {
                            self.open.push(next);
                        }
                    }
                    State::Match => accepts = true,
                }
            }
        }
        Ok(accepts)
    }

    /// The states after a character, in order, of those that [`Automaton::settle`] has found.
    pub fn advance(&mut self, colour: u32, alphabet: &Alphabet) -> Vec<u32> {
        if colour == alphabet.end() {
            return Vec::new();
        }
        let mut next = Vec::new();
        for state in &self.wanting {
            if let State::Set(set, to) = self.program.states[*state as usize] {
                if alphabet.has(set, colour) {
                    next.push(to);
                }
            }
        }
        next.sort_unstable();
        next.dedup();
        next
    }
}

/// Whether a condition holds between two such characters.
fn holds(assert: Assert, before: Kind, after: Kind) -> bool {
    let (word_before, word_after) = (before == Kind::Word, after == Kind::Word);
    match assert {
        Assert::TextStart => before == Kind::Edge,
        Assert::TextEnd => after == Kind::Edge,
        Assert::LineStart => matches!(before, Kind::Edge | Kind::Newline),
        Assert::LineEnd => matches!(after, Kind::Edge | Kind::Newline),
        Assert::WordStart => !word_before && word_after,
        Assert::WordEnd => word_before && !word_after,
        Assert::WordEdge => word_before != word_after,
        Assert::NoWordEdge => word_before == word_after,
    }
}
