//! Literals of a statement that its plan does not rest on.
//!
//! A plan is kept for the next statement of the same shape, which differs in its literals. While it
//! is made, the binder sees the literals' values, as ever; where a constant that is a literal of the
//! text is compiled, the program takes the literal's value of the day instead. So what binding makes
//! of a value, its type and its place, is the same with and without.
//!
//! ```text
//! select a + 1 from t where b = 7      compiles to   a + $literal 0, b = $literal 1
//! select a + 1 from t group by a + 1   rests on both: the two were found to be the same
//! ```
//!
//! A literal is *fixed*, which means that the plan serves only the very same literal, when
//! - no constant was compiled of it: `ORDER BY 1`, `varchar(10)`;
//! - two constants of different types were;
//! - binding has looked at its value: two expressions were found the same that hold it
//!   ([`super::Expr::same`]), or whoever looked has called [`Literal::fix`];
//! - the constant's type is read with more than the literal's text, like `regclass`.
//!
//! # Invariants
//! - A constant knows its literal from where it was bound, so a text other than the statement's own
//!   (a default, a view) has none, wherever its expressions end up.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use types::{Datum, TypeId};

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
    TypeId::JSON,
    TypeId::JSONB,
    TypeId::JSONPATH,
    TypeId::UUID,
    TypeId::MONEY,
    TypeId::POINT,
    TypeId::LINE,
    TypeId::LSEG,
    TypeId::BOX,
    TypeId::PATH,
    TypeId::POLYGON,
    TypeId::CIRCLE,
    TypeId::DATE,
    TypeId::TIME,
    TypeId::TIMESTAMP,
    TypeId::TIMESTAMPTZ,
    TypeId::INTERVAL,
    TypeId::CITEXT,
    TypeId::HSTORE,
    TypeId::VECTOR,
    TypeId::HALFVEC,
    TypeId::SPARSEVEC,
    TypeId::LTREE,
    TypeId::LQUERY,
    TypeId::LTXTQUERY,
];

/// What was made of a literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The constant's type.
    pub ty: TypeId,
    /// The constant's value, to be compared with what the literal's text gives.
    pub value: Datum,
    /// Whether the constant includes a minus sign in front of the literal.
    pub negated: bool,
}

/// A literal of the statement's text, while its plan is made.
#[derive(Debug)]
pub struct Literal {
    number: usize,
    negated: Cell<bool>,
    fixed: Cell<bool>,
    taken: RefCell<Option<Taken>>,
}

impl Literal {
    /// The literal with this number among those of the text.
    pub fn new(number: usize, fixed: bool) -> Rc<Literal> {
        Rc::new(Literal {
            number,
            negated: Cell::new(false),
            fixed: Cell::new(fixed),
            taken: RefCell::default(),
        })
    }

    /// Its constant includes the minus sign in front of it, or does not.
    pub fn set_negated(&self, negated: bool) {
        self.negated.set(negated);
    }

    /// The plan rests on its value.
    pub fn fix(&self) {
        self.fixed.set(true);
    }

    /// Whether the plan rests on its value.
    pub fn is_fixed(&self) -> bool {
        self.fixed.get()
    }

    /// What was made of it, if a program takes its value of the day.
    pub fn taken(&self) -> Option<Taken> {
        self.taken.borrow().clone()
    }

    /// The number of the literal whose value a program is to take in place of this constant of it.
    pub fn instead_of(&self, value: &Datum, ty: TypeId) -> Option<usize> {
        let taken = Taken {
            ty,
            value: value.clone(),
            negated: self.negated.get(),
        };
        let mut known = self.taken.borrow_mut();
        let same = known.as_ref().is_none_or(|known| *known == taken);
        if !same || !PLAIN_TYPES.contains(&ty) || value.is_null() {
            self.fix();
        }
        if self.is_fixed() {
            return None;
        }
        *known = Some(taken);
        Some(self.number)
    }
}
