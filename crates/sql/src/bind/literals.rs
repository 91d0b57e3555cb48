//! Literals of a statement that its plan does not rest on.
//!
//! A plan is kept for the next statement of the same [`crate::parser::Shape`]. While it is made,
//! the binder sees the literals' values, as ever; where a constant is compiled that is a literal of
//! the text, an operation is compiled instead that takes the literal's value of the day. So what
//! binding makes of a value, its type and its place, is the same with and without.
//!
//! A literal is *fixed*, which means that the plan serves only the very same literal, when
//! - no constant was compiled of it: `ORDER BY 1`, `varchar(10)`;
//! - two constants of different types were;
//! - binding has looked at its value: two expressions were found equal that hold it (`GROUP BY
//!   a + 1`), or whoever looked has called [`fix`];
//! - the constant's type is read with more than the literal's text, like `regclass`;
//! - a constant stands at its place in another text that is bound as well.
//!
//! # Invariants
//! - A text other than the statement's own (a default, a view) is bound inside [`foreign`]. One that
//!   is parsed outside fixes everything.
//! - Binding may wait for pages of the catalog, while other statements of the thread are bound: each
//!   has a state of its own.

use std::cell::RefCell;

use base::coro;

use crate::parser::{Literal, LiteralKind};
use crate::types::{Datum, TypeId};

/// Types whose constants are what their literal's text says, and nothing else.
const PLAIN_TYPES: &[TypeId] = &[
    TypeId::BOOL,
    TypeId::INT2,
    TypeId::INT4,
    TypeId::INT8,
    TypeId::NUMERIC,
    TypeId::FLOAT4,
    TypeId::FLOAT8,
    TypeId::TEXT,
    TypeId::VARCHAR,
    TypeId::BPCHAR,
    TypeId::BYTEA,
    TypeId::UUID,
    TypeId::DATE,
    TypeId::TIME,
    TypeId::TIMESTAMP,
    TypeId::TIMESTAMPTZ,
    TypeId::INTERVAL,
];

/// What binding made of a literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The constant's type.
    pub ty: TypeId,
    /// The constant's value, to be compared with what the literal's text gives.
    pub value: Datum,
    /// Whether the constant includes a minus sign in front of the literal.
    pub negated: bool,
}

#[derive(Debug)]
struct Seen {
    start: i32,
    /// Where the minus sign in front of it stands, if there is one.
    minus: Option<i32>,
    is_number: bool,
    fixed: bool,
    taken: Option<Taken>,
}

#[derive(Debug, Default)]
struct Literals {
    seen: Vec<Seen>,
    foreign: usize,
    fleeting: bool,
}

thread_local! {
    /// Of each coroutine that binds now: a bind may wait for the catalog's pages, and others bind
    /// meanwhile.
    static LITERALS: RefCell<Vec<(usize, Literals)>> = const { RefCell::new(Vec::new()) };
}

fn take(number: usize) -> Option<Literals> {
    LITERALS.with(|watches| {
        let mut watches = watches.borrow_mut();
        let at = watches.iter().rposition(|(of, _)| *of == number)?;
        Some(watches.swap_remove(at).1)
    })
}

/// What was seen while a statement was bound.
#[derive(Debug, Default)]
pub struct Watched {
    /// What was made of each literal; none of those that are fixed.
    pub taken: Vec<Option<Taken>>,
    /// The literals that were found fixed when the plan already left them open: it is of no use,
    /// and they must be denied the next time.
    pub late: Vec<usize>,
    /// Whether the plan rests on the time at which it was made.
    pub fleeting: bool,
}

/// Runs `bind`, and watches what it makes of the literals. Those in `deny` are fixed.
pub fn watch<R>(
    text: &str,
    literals: &[Literal],
    deny: &[usize],
    bind: impl FnOnce() -> R,
) -> (R, Watched) {
    let seen = literals
        .iter()
        .enumerate()
        .map(|(number, literal)| Seen {
            start: i32::try_from(literal.start).unwrap_or(-1),
            minus: minus_before(text, literal),
            is_number: literal.kind == LiteralKind::Number,
            fixed: deny.contains(&number),
            taken: None,
        })
        .collect();
    /// Ends the watch, also when `bind` panics or its statement is dropped.
    struct Guard(usize);
    impl Drop for Guard {
        fn drop(&mut self) {
            take(self.0);
        }
    }
    let literals = Literals {
        seen,
        ..Literals::default()
    };
    let number = coro::number();
    LITERALS.with(|watches| watches.borrow_mut().push((number, literals)));
    let guard = Guard(number);
    let result = bind();
    let literals = take(number);
    std::mem::forget(guard);
    let Literals { seen, fleeting, .. } = literals.unwrap_or_default();
    let late = (0..seen.len())
        .filter(|number| seen[*number].fixed && seen[*number].taken.is_some())
        .collect();
    let watched = Watched {
        taken: seen.into_iter().map(|seen| seen.taken).collect(),
        late,
        fleeting,
    };
    (result, watched)
}

/// Where a minus sign stands in front of a number, with nothing but white space between.
fn minus_before(text: &str, literal: &Literal) -> Option<i32> {
    let before = &text.as_bytes()[..literal.start];
    let at = before
        .iter()
        .rposition(|byte| !byte.is_ascii_whitespace())?;
    i32::try_from(at).ok().filter(|_| before[at] == b'-')
}

fn with<R>(f: impl FnOnce(&mut Literals) -> R) -> Option<R> {
    let number = coro::number();
    LITERALS.with(|watches| {
        let mut watches = watches.borrow_mut();
        let watch = watches.iter_mut().rev().find(|(of, _)| *of == number)?;
        Some(f(&mut watch.1))
    })
}

impl Literals {
    fn at(&mut self, location: i32) -> Option<(usize, &mut Seen)> {
        if location < 0 {
            return None;
        }
        self.seen.iter_mut().enumerate().find(|(_, seen)| {
            seen.start == location || (seen.is_number && seen.minus == Some(location))
        })
    }
}

/// Which literal's value to use instead of a constant that is compiled.
pub fn instead_of(value: &Datum, ty: TypeId, location: i32) -> Option<usize> {
    with(|literals| {
        let (number, seen) = literals.at(location)?;
        let taken = Taken {
            ty,
            value: value.clone(),
            negated: seen.start != location,
        };
        let same = seen.taken.as_ref().is_none_or(|known| *known == taken);
        if !same || !PLAIN_TYPES.contains(&ty) || value.is_null() {
            seen.fixed = true;
        }
        if seen.fixed {
            return None;
        }
        seen.taken = Some(taken);
        Some(number)
    })
    .flatten()
}

/// The plan rests on the value of the literal at this location, if there is one.
pub fn fix(location: i32) {
    with(|literals| {
        if let Some((_, seen)) = literals.at(location) {
            seen.fixed = true;
        }
    });
}

/// The plan rests on the time at which it is made (`'now'`).
pub fn fleeting() {
    with(|literals| literals.fleeting = true);
}

/// A constant of the text at hand is bound.
pub fn met(location: i32) {
    with(|literals| {
        if literals.foreign > 0 {
            if let Some((_, seen)) = literals.at(location) {
                seen.fixed = true;
            }
        }
    });
}

/// A text is parsed: unless it is known to be foreign, locations mean nothing any more.
pub fn parsed() {
    with(|literals| {
        if literals.foreign == 0 {
            for seen in &mut literals.seen {
                seen.fixed = true;
            }
        }
    });
}

/// Binds a text that is not the statement's own.
pub fn foreign<R>(bind: impl FnOnce() -> R) -> R {
    with(|literals| literals.foreign += 1);
    let result = bind();
    with(|literals| literals.foreign -= 1);
    result
}
