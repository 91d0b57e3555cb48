//! How a match is taken apart: what each part prefers, and in which order parts get their share.
//!
//! Where an expression has no parentheses that capture, no back references, and does not mix long
//! and short, only the length of its match matters: it is one leaf, however long it is written. What
//! remains is a tree of those leaves.
//!
//! ```text
//! ab*(c|d)+e*?f
//!
//! then
//!   ab*                    a leaf, long
//!   then
//!     then                 (c|d)+ is what came before its last turn, and the last turn
//!       (?:c|d)*           a leaf, long
//!       (c|d)              captures
//!     e*?f                 a leaf, short
//! ```
//!
//! # Rules
//! PostgreSQL 15 manual, section 9.7.3.5, and where it leaves something open, what PostgreSQL does:
//! - a branch prefers what the first of its parts prefers that prefers anything; several branches
//!   prefer long;
//! - of two parts in a row, the first takes as much, or as little, as it can so that the rest still
//!   matches;
//! - of several branches, the first that matches the whole of what they were given is taken.

use base::coro;

use super::parse::{Refusal, TOO_COMPLEX};
use super::syntax::{Atom, Branches, Item, Prefer, Syntax};

/// Prefers the longest match.
const LONGER: u8 = 1;
/// Prefers the shortest match.
pub const SHORTER: u8 = 2;
/// Parts of it prefer the one, and parts the other.
const MIXED: u8 = 4;
/// It, or a part of it, captures.
const CAPTURES: u8 = 8;
/// It, or a part of it, refers back.
pub const REFERS: u8 = 16;

const PREFERENCE: u8 = LONGER | SHORTER;

/// What of an expression a node stands for.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Whole branches.
    Branches(Branches),
    /// A run of items, from one to before another, of the branch with that number.
    Run(Branches, usize, usize, usize),
    /// One item of a branch, so many times.
    Times(Branches, usize, usize, (u16, u16)),
}

/// How a node's match is taken apart.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Not at all.
    Leaf,
    /// Into two, one after the other.
    Then(usize, usize),
    /// It is that of one of these.
    OneOf(Vec<usize>),
    /// Into so many of the same.
    Times(usize, u16, u16),
    /// It repeats what the parentheses with that number matched, so many times.
    Back(usize, u16, u16),
    /// It is that of another node.
    Same(usize),
}

/// A part of an expression.
#[derive(Clone, Debug)]
pub struct Node {
    /// How it is taken apart.
    pub shape: Shape,
    /// What it prefers and holds.
    pub flags: u8,
    /// What it matches.
    pub piece: Piece,
    /// The number of the parentheses around it, or 0.
    pub capture: usize,
}

impl Node {
    /// Whether it prefers the shortest match.
    pub fn is_short(&self) -> bool {
        self.flags & SHORTER != 0
    }

    /// Whether a part of it refers back.
    pub fn refers(&self) -> bool {
        self.flags & REFERS != 0
    }
}

/// The tree of an expression. The root is the last node.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Its nodes.
    pub nodes: Vec<Node>,
}

/// What parts show of themselves to the whole.
fn up(flags: u8) -> u8 {
    let mixed = flags & PREFERENCE == PREFERENCE;
    (flags & !PREFERENCE) | if mixed { MIXED } else { 0 }
}

/// Both in a row.
fn combine(first: u8, second: u8) -> u8 {
    let preference = match first & PREFERENCE {
        0 => second & PREFERENCE,
        own => own,
    };
    up(first | second) | preference
}

fn is_simple(flags: u8) -> bool {
    flags & (MIXED | CAPTURES | REFERS) == 0
}

fn flag_of(prefer: Prefer) -> u8 {
    match prefer {
        Prefer::Neither => 0,
        Prefer::Longer => LONGER,
        Prefer::Shorter => SHORTER,
    }
}

/// A part of a branch that is taken apart by itself.
struct Part {
    /// The items before it that are a leaf, and what they prefer.
    before: (usize, usize, u8),
    node: usize,
    /// What it prefers, seen from its branch.
    flags: u8,
}

impl Tree {
    /// The tree of an expression.
    ///
    /// # Errors
    /// It is too complex.
    pub fn of(syntax: &Syntax) -> Result<Tree, Refusal> {
        let mut tree = Tree { nodes: Vec::new() };
        let root = tree.branches(&syntax.branches)?;
        let root = tree.nodes[root].clone();
        tree.nodes.push(root);
        Ok(tree)
    }

    fn add(&mut self, shape: Shape, flags: u8, piece: Piece) -> usize {
        self.nodes.push(Node {
            shape,
            flags,
            piece,
            capture: 0,
        });
        self.nodes.len() - 1
    }

    fn branches(&mut self, branches: &Branches) -> Result<usize, Refusal> {
        coro::check_depth().map_err(|_| TOO_COMPLEX)?;
        if branches.len() == 1 {
            return self.branch(branches, 0);
        }
        let mut flags = LONGER;
        let mut nodes = Vec::new();
        for branch in 0..branches.len() {
            let node = self.branch(branches, branch)?;
            flags |= up(flags | self.nodes[node].flags);
            nodes.push(node);
        }
        let shape = match is_simple(flags) {
            true => Shape::Leaf,
            false => Shape::OneOf(nodes),
        };
        Ok(self.add(shape, flags, Piece::Branches(branches.clone())))
    }

    fn branch(&mut self, branches: &Branches, number: usize) -> Result<usize, Refusal> {
        let items = &branches[number];
        let run = |from, to| Piece::Run(branches.clone(), number, from, to);
        let mut parts: Vec<Part> = Vec::new();
        let (mut from, mut flags) = (0, 0);
        for (at, item) in items.iter().enumerate() {
            let is_condition = matches!(item.atom, Atom::Assert(_) | Atom::Look(_));
            if is_condition || item.max == 0 {
                continue;
            }
            let inside = match &item.atom {
                Atom::Group(held) | Atom::Capture(_, held) => Some(self.branches(held)?),
                _ => None,
            };
            let own = match item.atom {
                Atom::Back(_) => REFERS,
                _ => inside.map_or(0, |node| self.nodes[node].flags),
            };
            let all = flags | flag_of(item.prefer) | own;
            let alone = matches!(item.atom, Atom::Capture(..) | Atom::Back(_));
            if !alone && is_simple(up(all)) {
                flags = all;
                continue;
            }
            let once = Piece::Times(branches.clone(), number, at, (1, 1));
            let atom = match (&item.atom, inside) {
                (Atom::Capture(capture, _), Some(inside)) => self.captured(inside, *capture),
                (_, Some(inside)) => inside,
                _ => self.add(Shape::Leaf, own, once),
            };
            let seen = combine(flag_of(item.prefer), self.nodes[atom].flags);
            let node = self.repeated(branches, (number, at), atom, item);
            parts.push(Part {
                before: (from, at, flags),
                node,
                flags: seen,
            });
            (from, flags) = (at + 1, 0);
        }
        let mut rest = match from < items.len() || parts.is_empty() {
            true => Some(self.add(Shape::Leaf, flags, run(from, items.len()))),
            false => None,
        };
        for part in parts.into_iter().rev() {
            let (start, at, flags) = part.before;
            let mut node = part.node;
            if let Some(rest) = rest {
                let seen = part.flags | combine(part.flags, self.nodes[rest].flags);
                node = self.add(Shape::Then(node, rest), seen, run(at, items.len()));
            }
            if start < at {
                let leaf = self.add(Shape::Leaf, flags, run(start, at));
                let seen = flags | combine(flags, self.nodes[node].flags);
                node = self.add(Shape::Then(leaf, node), seen, run(start, items.len()));
            }
            rest = Some(node);
        }
        Ok(rest.unwrap_or_else(|| self.add(Shape::Leaf, 0, run(0, 0))))
    }

    /// The same, captured.
    fn captured(&mut self, inside: usize, capture: usize) -> usize {
        let node = &mut self.nodes[inside];
        if node.capture == 0 {
            node.capture = capture;
            node.flags |= CAPTURES;
            return inside;
        }
        let (flags, piece) = (node.flags, node.piece.clone());
        let around = self.add(Shape::Same(inside), flags | CAPTURES, piece);
        self.nodes[around].capture = capture;
        around
    }

    /// An atom as often as its item says.
    fn repeated(
        &mut self,
        branches: &Branches,
        (number, at): (usize, usize),
        atom: usize,
        item: &Item,
    ) -> usize {
        let (min, max) = (item.min, item.max);
        let times = |min, max| Piece::Times(branches.clone(), number, at, (min, max));
        let prefer = flag_of(item.prefer);
        let own = self.nodes[atom].flags;
        let seen = combine(prefer, own);
        if let Atom::Back(capture) = item.atom {
            return self.add(Shape::Back(capture, min, max), seen, times(min, max));
        }
        let inside = own & (PREFERENCE | MIXED);
        if (min, max) == (1, 1) && (prefer == 0 || inside == 0 || prefer == inside) {
            return atom;
        }
        if own & (CAPTURES | REFERS) == 0 {
            return self.add(Shape::Leaf, seen, times(min, max));
        }
        if min > 0 && own & REFERS == 0 {
            // Only its last turn is captured.
            let fewer = match max {
                super::syntax::UNBOUNDED => max,
                max => max - 1,
            };
            let before = self.add(Shape::Leaf, seen & PREFERENCE, times(min - 1, fewer));
            return self.add(Shape::Then(before, atom), seen, times(min, max));
        }
        self.add(Shape::Times(atom, min, max), seen, times(min, max))
    }
}
