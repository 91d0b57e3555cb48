//! What a part of an expression matches, as a graph of states (Thompson 1968).

use base::coro;

use super::parse::{Refusal, TOO_COMPLEX};
use super::syntax::{Assert, Atom, Branches, Item, Syntax, ANY, UNBOUNDED};
use super::tree::Piece;

/// The states of all parts of one expression together.
pub const STATES_MAX: usize = 200_000;

/// A state: what is needed to go on, and where to.
#[derive(Clone, Debug)]
pub enum State {
    /// A character of a set.
    Set(usize, u32),
    /// Nothing; two ways.
    Split(u32, u32),
    /// Nothing.
    Jump(u32),
    /// A condition on the place.
    Assert(Assert, u32),
    /// A condition on what stands around.
    Look(usize, u32),
    /// The end.
    Match,
}

/// The states of a part; it begins at the first.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The states.
    pub states: Vec<State>,
    /// Whether a state looks at more of the text than the characters on both sides.
    pub looks: bool,
}

/// Builds programs, within what states are left.
pub struct Compiler<'s> {
    syntax: &'s Syntax,
    left: usize,
    program: Program,
    /// Whether conditions are left out, as in what is referred back to.
    bare: bool,
    depth: usize,
}

/// Groups within groups that are compiled; references back may nest them further than they are
/// written.
const DEPTH_MAX: usize = 400;

/// The states of a piece, of at most `left`; `anywhere`: it may begin later in the text.
///
/// # Errors
/// It is too complex.
pub fn compile(
    syntax: &Syntax,
    piece: &Piece,
    anywhere: bool,
    left: usize,
) -> Result<Program, Refusal> {
    let mut compiler = Compiler {
        syntax,
        left,
        program: Program::default(),
        bare: false,
        depth: 0,
    };
    if anywhere {
        compiler.add(State::Split(2, 1))?;
        compiler.add(State::Set(ANY, 0))?;
    }
    match piece {
        Piece::Branches(branches) => compiler.branches(branches)?,
        Piece::Run(branches, number, from, to) => compiler.items(&branches[*number][*from..*to])?,
        Piece::Times(branches, number, at, (min, max)) => {
            compiler.repeat(&branches[*number][*at].atom, *min, *max)?;
        }
    }
    compiler.add(State::Match)?;
    Ok(compiler.program)
}

impl Compiler<'_> {
    fn here(&self) -> u32 {
        self.program.states.len() as u32
    }

    fn add(&mut self, state: State) -> Result<usize, Refusal> {
        if self.program.states.len() >= self.left {
            return Err(TOO_COMPLEX);
        }
        self.program.states.push(state);
        Ok(self.program.states.len() - 1)
    }

    /// Sets where the second way of a split, or a jump, leads.
    fn lead(&mut self, at: usize, to: u32) {
        match &mut self.program.states[at] {
            State::Split(_, second) => *second = to,
            State::Jump(next) => *next = to,
            _ => {}
        }
    }

    fn branches(&mut self, branches: &Branches) -> Result<(), Refusal> {
        if self.depth >= DEPTH_MAX || coro::check_depth().is_err() {
            return Err(TOO_COMPLEX);
        }
        self.depth += 1;
        let mut ends = Vec::new();
        for (number, branch) in branches.iter().enumerate() {
            let is_last = number + 1 == branches.len();
            let split = match is_last {
                true => None,
                false => Some(self.add(State::Split(self.here() + 1, 0))?),
            };
            self.items(branch)?;
            if let Some(split) = split {
                ends.push(self.add(State::Jump(0))?);
                let next = self.here();
                self.lead(split, next);
            }
        }
        let end = self.here();
        ends.into_iter().for_each(|at| self.lead(at, end));
        self.depth -= 1;
        Ok(())
    }

    fn items(&mut self, items: &[Item]) -> Result<(), Refusal> {
        items
            .iter()
            .try_for_each(|item| self.repeat(&item.atom, item.min, item.max))
    }

    fn repeat(&mut self, atom: &Atom, min: u16, max: u16) -> Result<(), Refusal> {
        for _ in 1..min {
            self.atom(atom)?;
        }
        if max == UNBOUNDED {
            // The last that must come is the one that may come again.
            let skip = match min {
                0 => Some(self.add(State::Split(self.here() + 1, 0))?),
                _ => None,
            };
            let again = self.here();
            self.atom(atom)?;
            let next = self.here() + 1;
            self.add(State::Split(again, next))?;
            if let Some(skip) = skip {
                self.lead(skip, next);
            }
            return Ok(());
        }
        if min > 0 {
            self.atom(atom)?;
        }
        let mut skips = Vec::new();
        for _ in min..max {
            skips.push(self.add(State::Split(self.here() + 1, 0))?);
            self.atom(atom)?;
        }
        let end = self.here();
        skips.into_iter().for_each(|at| self.lead(at, end));
        Ok(())
    }

    fn atom(&mut self, atom: &Atom) -> Result<(), Refusal> {
        let next = self.here() + 1;
        match atom {
            Atom::Set(set) => self.add(State::Set(*set, next)).map(drop),
            Atom::Group(held) | Atom::Capture(_, held) => self.branches(held),
            Atom::Back(number) => {
                let held = &self.syntax.captures[number - 1];
                let around = std::mem::replace(&mut self.bare, true);
                let done = self.branches(held);
                self.bare = around;
                done
            }
            Atom::Assert(_) | Atom::Look(_) if self.bare => Ok(()),
            Atom::Assert(assert) => self.add(State::Assert(*assert, next)).map(drop),
            Atom::Look(look) => {
                self.program.looks = true;
                self.add(State::Look(*look, next)).map(drop)
            }
        }
    }
}
