//! The literals of the statement's text, as binding meets them ([`crate::plan::Literal`]).
//!
//! ```text
//! select -5, 'a'     literals 0 (with its minus sign) and 1, at bytes 8 and 11
//! ```
//! They stand in the [`super::BindContext`] beside the text that they are of; another text that is
//! bound on the way (a view's, a default's) has none.

use std::rc::Rc;

use crate::plan::{Literal, Taken};
use syntax::parser::{self, LiteralKind};

#[derive(Debug)]
struct Place {
    start: i32,
    /// Where the minus sign in front of it stands, if there is one.
    minus: Option<i32>,
    literal: Rc<Literal>,
}

/// The literals of a text, by their places.
#[derive(Debug, Default)]
pub struct Literals {
    places: Vec<Place>,
}

/// What was seen while a statement was bound.
#[derive(Debug, Default)]
pub struct Watched {
    /// What was made of each literal; none of those that are fixed.
    pub taken: Vec<Option<Taken>>,
    /// The literals that were found fixed when the plan already left them open: it is of no use,
    /// and they must be denied the next time.
    pub late: Vec<usize>,
}

impl Literals {
    /// The literals of a text, those in `deny` fixed.
    pub fn of(text: &str, literals: &[parser::Literal], deny: &[usize]) -> Literals {
        let place = |(number, literal): (usize, &parser::Literal)| Place {
            start: i32::try_from(literal.start).unwrap_or(-1),
            minus: match literal.kind {
                LiteralKind::Number => minus_before(text, literal),
                _ => None,
            },
            literal: Literal::new(number, deny.contains(&number)),
        };
        Literals {
            places: literals.iter().enumerate().map(place).collect(),
        }
    }

    /// The literal that a constant at this location is.
    pub(super) fn at(&self, location: i32) -> Option<Rc<Literal>> {
        if location < 0 {
            return None;
        }
        let mut places = self.places.iter();
        let found = places.find(|at| at.start == location || at.minus == Some(location))?;
        found.literal.set_negated(found.start != location);
        Some(found.literal.clone())
    }

    /// What became of them, once the statement is bound.
    pub fn watched(&self) -> Watched {
        let literals = || self.places.iter().map(|at| &at.literal);
        let is_late = |literal: &Literal| literal.is_fixed() && literal.taken().is_some();
        Watched {
            taken: literals().map(|literal| literal.taken()).collect(),
            late: literals()
                .enumerate()
                .filter(|(_, literal)| is_late(literal))
                .map(|(number, _)| number)
                .collect(),
        }
    }
}

/// Where a minus sign stands in front of a number, with nothing but white space between.
fn minus_before(text: &str, literal: &parser::Literal) -> Option<i32> {
    let before = &text.as_bytes()[..literal.start];
    let at = before
        .iter()
        .rposition(|byte| !byte.is_ascii_whitespace())?;
    i32::try_from(at).ok().filter(|_| before[at] == b'-')
}
