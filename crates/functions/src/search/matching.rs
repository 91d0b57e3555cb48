//! Whether a document is what a query asks for.
//!
//! ```text
//! 'a':1 'b':2 @@ 'a' <-> 'b'     places of a: {1}, of b: {2}; 1 + 1 = 2
//! ```
//! Below a phrase operator what matters is where its operands are met: at some places, at all but
//! some, or nobody knows, as the document has no positions.
//!
//! Source: PostgreSQL 15 manual, section 12.3, and the server's answers.

use base::{coro, Result};

use types::search::vector::entries;
use types::search::{Entry, Node, Operand, Position, Query};

/// Whether something is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It is not.
    No,
    /// It is.
    Yes,
    /// Positions would say.
    Maybe,
}

/// Where a part of a query is met.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Places that ascend, of the end of what is met.
    pub at: Vec<u16>,
    /// Whether it is met everywhere else instead.
    pub not: bool,
    /// How many places it takes, less one.
    width: i32,
}

/// What is looked into.
pub trait Document {
    /// Whether an operand is there, and where, if that is asked.
    ///
    /// # Errors
    /// The pending interrupt.
    fn has(&self, at: usize, operand: &Operand, places: Option<&mut Places>) -> Result<Met>;
}

/// A vector.
#[derive(Debug)]
pub struct Lexemes<'a>(pub Vec<Entry<'a>>);

impl<'a> Lexemes<'a> {
    /// The lexemes of a vector's bytes.
    ///
    /// # Errors
    /// XX001; the pending interrupt.
    pub fn of(bytes: &'a [u8]) -> Result<Lexemes<'a>> {
        entries(bytes).map(Lexemes)
    }

    /// The lexemes that an operand asks for, weights aside.
    pub fn asked(&self, operand: &Operand) -> &[Entry<'a>] {
        let from = self
            .0
            .partition_point(|entry| entry.text < operand.text.as_str());
        let rest = &self.0[from..];
        let end = match operand.prefix {
            true => rest.partition_point(|entry| operand.is_met_by(entry.text)),
            false => usize::from(rest.first().is_some_and(|entry| entry.text == operand.text)),
        };
        &rest[..end]
    }
}

/// Whether a position's weight is one of those asked for.
pub(super) fn counts(operand: &Operand, position: Position) -> bool {
    operand.weights == 0 || operand.weights & (1 << position.weight()) != 0
}

impl Document for Lexemes<'_> {
    fn has(&self, _: usize, operand: &Operand, places: Option<&mut Places>) -> Result<Met> {
        let asked = self.asked(operand);
        let Some(places) = places else {
            let met = asked.iter().any(|entry| {
                let any = entry.count() == 0 || operand.weights == 0;
                any || entry.positions().any(|position| counts(operand, position))
            });
            return Ok(if met { Met::Yes } else { Met::No });
        };
        for entry in asked {
            if entry.count() == 0 {
                places.at.clear();
                return Ok(Met::Maybe);
            }
            coro::work(2 * entry.count())?;
            let own = entry
                .positions()
                .filter(|position| counts(operand, *position));
            places.at.extend(own.map(Position::place));
        }
        if asked.len() > 1 {
            places.at.sort_unstable();
            places.at.dedup();
        }
        Ok(match places.at.is_empty() {
            true => Met::No,
            false => Met::Yes,
        })
    }
}

/// The places that two lists have, moved so that their ends are the same; those of both, of the left
/// one alone, of the right one alone.
fn merge(
    left: &Places,
    right: &Places,
    moves: (i32, i32),
    wanted: (bool, bool, bool),
) -> Result<Vec<u16>> {
    coro::work(left.at.len() + right.at.len())?;
    let (both, left_only, right_only) = wanted;
    let mut out = Vec::new();
    let mut lefts = left.at.iter().map(|at| i32::from(*at) + moves.0).peekable();
    let mut rights = right
        .at
        .iter()
        .map(|at| i32::from(*at) + moves.1)
        .peekable();
    loop {
        let (place, is_wanted) = match (lefts.peek().copied(), rights.peek().copied()) {
            (None, None) => break,
            (Some(a), Some(b)) if a == b => {
                lefts.next();
                rights.next();
                (a, both)
            }
            (Some(a), b) if b.is_none_or(|b| a < b) => {
                lefts.next();
                (a, left_only)
            }
            (_, Some(b)) => {
                rights.next();
                (b, right_only)
            }
            (Some(_), None) => break,
        };
        if is_wanted && place > 0 {
            out.push(place as u16);
        }
    }
    Ok(out)
}

fn outcome(places: &Places) -> Met {
    match places.at.is_empty() && !places.not {
        true => Met::No,
        false => Met::Yes,
    }
}

/// Where the part of a query that stands at a place is met.
fn phrase(query: &Query, at: usize, document: &impl Document, out: &mut Places) -> Result<Met> {
    coro::check_depth()?;
    coro::work(16)?;
    let node = &query.nodes()[at];
    let distance = match node {
        Node::Operand(operand) => return document.has(at, operand, Some(out)),
        Node::Not => {
            return Ok(match phrase(query, at + 1, document, out)? {
                Met::No => {
                    out.at.clear();
                    out.not = true;
                    Met::Yes
                }
                Met::Yes => {
                    out.not = !out.not;
                    outcome(out)
                }
                Met::Maybe => Met::Maybe,
            })
        }
        Node::Phrase(distance) => Some(i32::from(*distance)),
        Node::And | Node::Or => None,
    };
    let is_or = *node == Node::Or;
    let (mut left, mut right) = (Places::default(), Places::default());
    let left_met = phrase(query, query.left(at), document, &mut left)?;
    if left_met == Met::No && !is_or {
        return Ok(Met::No);
    }
    let right_met = phrase(query, at + 1, document, &mut right)?;
    if right_met == Met::No && (!is_or || left_met == Met::No) {
        return Ok(Met::No);
    }
    if left_met == Met::Maybe || right_met == Met::Maybe {
        return Ok(Met::Maybe);
    }
    if left_met == Met::No {
        left = Places::default();
    }
    if right_met == Met::No {
        right = Places::default();
    }
    let widest = left.width.max(right.width);
    let moves = match distance {
        Some(distance) => {
            out.width = distance + left.width + right.width;
            (distance + right.width, 0)
        }
        None => {
            out.width = widest;
            (widest - left.width, widest - right.width)
        }
    };
    // What is met everywhere but at some places is the opposite of what is met there.
    let (wanted, not) = match (left.not, right.not, is_or) {
        (true, true, false) | (false, false, true) => ((true, true, true), !is_or),
        (true, true, true) | (false, false, false) => ((true, false, false), is_or),
        (true, false, true) | (false, true, false) => ((false, true, false), is_or),
        (true, false, false) | (false, true, true) => ((false, false, true), is_or),
    };
    out.at = merge(&left, &right, moves, wanted)?;
    out.not = not;
    Ok(outcome(out))
}

/// Whether the part of a query that stands at a place is met.
fn part(query: &Query, at: usize, document: &impl Document) -> Result<Met> {
    coro::check_depth()?;
    coro::work(8)?;
    let (decides, other) = match &query.nodes()[at] {
        Node::Operand(operand) => return document.has(at, operand, None),
        Node::Not => {
            return Ok(match part(query, at + 1, document)? {
                Met::No => Met::Yes,
                Met::Yes => Met::No,
                Met::Maybe => Met::Maybe,
            })
        }
        Node::Phrase(_) => {
            let mut places = Places::default();
            return Ok(match phrase(query, at, document, &mut places)? {
                Met::Yes => Met::Yes,
                Met::No | Met::Maybe => Met::No,
            });
        }
        Node::And => (Met::No, Met::Yes),
        Node::Or => (Met::Yes, Met::No),
    };
    let left = part(query, query.left(at), document)?;
    if left == decides {
        return Ok(decides);
    }
    let right = part(query, at + 1, document)?;
    Ok(if right == other { left } else { right })
}

/// Whether a document is what a query asks for; none is what an empty one does.
///
/// # Errors
/// 54001 for a query that is too deep; the pending interrupt.
pub fn is_met(query: &Query, document: &impl Document) -> Result<bool> {
    match query.is_empty() {
        true => Ok(false),
        false => part(query, 0, document).map(|met| met != Met::No),
    }
}

/// The lexemes of which a document that meets the query has at least one of each list; none if one
/// may have none of them.
pub fn needed(query: &Query) -> Option<Vec<Vec<&Operand>>> {
    let mut stack: Vec<Option<Vec<Vec<&Operand>>>> = Vec::new();
    for node in query.nodes().iter().rev() {
        let made = match node {
            Node::Operand(operand) => Some(vec![vec![operand]]),
            Node::Not => {
                stack.pop();
                None
            }
            _ => {
                let right = stack.pop().flatten();
                let left = stack.pop().flatten();
                match (right, left) {
                    // Of either side one list, the shorter the better.
                    (Some(right), Some(left)) if *node == Node::Or => {
                        let shortest = |lists: Vec<Vec<_>>| lists.into_iter().min_by_key(Vec::len);
                        let mut one = shortest(right).unwrap_or_default();
                        one.extend(shortest(left).unwrap_or_default());
                        Some(vec![one])
                    }
                    _ if *node == Node::Or => None,
                    (Some(mut right), Some(left)) => {
                        right.extend(left);
                        Some(right)
                    }
                    (right, left) => right.or(left),
                }
            }
        };
        stack.push(made);
    }
    stack.pop().flatten()
}
