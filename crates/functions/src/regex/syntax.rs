//! What an expression says, as it was written.

use std::rc::Rc;

use super::set::CharSet;

/// No upper bound of a repetition.
pub const UNBOUNDED: u16 = u16::MAX;

/// The number of the set of all characters.
pub const ANY: usize = 0;

/// Which of several lengths is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    /// Nothing is said: what is inside decides.
    Neither,
    /// The longest.
    Longer,
    /// The shortest.
    Shorter,
}

/// Branches, one of which matches.
pub type Branches = Rc<[Rc<[Item]>]>;

/// An atom and how often it comes.
#[derive(Clone, Debug)]
pub struct Item {
    /// What comes.
    pub atom: Atom,
    /// At least so often.
    pub min: u16,
    /// At most so often; [`UNBOUNDED`]: any number.
    pub max: u16,
    /// What its quantifier prefers.
    pub prefer: Prefer,
}

/// A part of a branch.
#[derive(Clone, Debug)]
pub enum Atom {
    /// One character of a set, by its number.
    Set(usize),
    /// An expression in parentheses that capture nothing.
    Group(Branches),
    /// An expression in parentheses with that number, from 1.
    Capture(usize, Branches),
    /// What the parentheses with that number have matched.
    Back(usize),
    /// A condition on the place.
    Assert(Assert),
    /// A condition on what stands around, by its number.
    Look(usize),
}

/// Conditions on a place between two characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assert {
    /// The text begins.
    TextStart,
    /// The text ends.
    TextEnd,
    /// A line begins.
    LineStart,
    /// A line ends.
    LineEnd,
    /// A word begins.
    WordStart,
    /// A word ends.
    WordEnd,
    /// A word begins or ends.
    WordEdge,
    /// No word begins or ends.
    NoWordEdge,
}

/// A condition on what stands around a place.
#[derive(Clone, Debug)]
pub struct Look {
    /// Whether it is what stands before, rather than behind.
    pub behind: bool,
    /// Whether it must not stand there.
    pub negative: bool,
    /// What.
    pub what: Branches,
}

/// A whole expression.
#[derive(Clone, Debug)]
pub struct Syntax {
    /// Its branches.
    pub branches: Branches,
    /// The sets that it names.
    pub sets: Vec<CharSet>,
    /// The conditions on what stands around.
    pub looks: Vec<Look>,
    /// What the parentheses that capture hold, by number less one.
    pub captures: Vec<Branches>,
    /// Whether small letters and capitals are the same.
    pub fold: bool,
}
