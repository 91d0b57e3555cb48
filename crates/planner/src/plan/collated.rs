//! Which collation an expression has, and where from (PostgreSQL 15 manual, section 24.2.1).
//!
//! ```text
//! name                          implicit, that of the column
//! name || ', ' || town          implicit, if both columns have the same; else there is none to be told
//! name || town collate "C"      explicit, whatever the columns have
//! ```
//! It follows from the parts of an expression when that is made ([`Collated::of`]). Only who needs to know it
//! minds that there are two ([`crate::bind::collation`]).

use super::{Expr, ExprKind};
use functions::collator::Collator;

/// A collation as an expression uses it.
#[derive(Debug)]
pub struct UsedCollation {
    /// Its oid.
    pub oid: u32,
    /// Its name as it is shown.
    pub shown: String,
    /// It, at work.
    pub collator: Collator,
}

/// How an expression came to its collation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Derivation {
    /// It is that of its type, or its parts have none.
    #[default]
    Default,
    /// From a column.
    Implicit,
    /// From COLLATE.
    Explicit,
    /// Its parts have several; this is another one.
    Conflict(u32),
    /// Several were written, of which this is another one.
    Mismatch(u32),
}

/// The collation of an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Collated {
    /// Its oid; 0 is that of its type.
    pub oid: u32,
    /// Where it is from.
    pub how: Derivation,
    /// Where in the text that stands; where there are several, the other one.
    pub location: i32,
}

impl Collated {
    /// That of a column which was given a collation, or 0.
    pub fn implicit(oid: u32) -> Collated {
        Collated {
            oid,
            how: match oid {
                0 => Derivation::Default,
                _ => Derivation::Implicit,
            },
            location: -1,
        }
    }

    /// Whether it is that of its type, and nobody said so.
    pub fn is_plain(self) -> bool {
        self.how == Derivation::Default
    }

    /// Whether there are several.
    pub fn is_conflict(self) -> bool {
        matches!(self.how, Derivation::Conflict(_) | Derivation::Mismatch(_))
    }

    /// The same, of something that stands there.
    pub fn at(self, location: i32) -> Collated {
        match self.how {
            Derivation::Implicit | Derivation::Explicit => Collated { location, ..self },
            _ => self,
        }
    }

    /// That of something that is made of two.
    pub fn with(self, other: Collated) -> Collated {
        use Derivation::{Conflict, Default, Explicit, Implicit, Mismatch};
        let both = |how| Collated {
            how,
            location: other.location,
            ..self
        };
        match (self.how, other.how) {
            (Mismatch(_), _) => self,
            (_, Mismatch(_)) => other,
            (Explicit, Explicit) if self.oid != other.oid => both(Mismatch(other.oid)),
            (Explicit, _) => self,
            (_, Explicit) => other,
            (Conflict(_), _) => self,
            (_, Conflict(_)) => other,
            (Implicit, Implicit) if self.oid != other.oid => both(Conflict(other.oid)),
            (Default, _) => other,
            _ => self,
        }
    }

    /// That of the same as a value of a domain, or as a field, which was given a collation.
    pub fn given(self, oid: u32, location: i32) -> Collated {
        match self.how {
            Derivation::Explicit => self,
            _ => Collated::implicit(oid).at(location),
        }
    }

    /// The same, if there are several, of which the other one stands there.
    pub fn at_conflict(self, location: i32) -> Collated {
        match self.is_conflict() {
            true => Collated { location, ..self },
            false => self,
        }
    }

    /// That of what is called with such an expression: of several none is the one.
    pub fn of_call(self) -> Collated {
        match self.how {
            Derivation::Implicit | Derivation::Explicit => Collated::implicit(self.oid),
            _ => Collated::default(),
        }
    }

    /// The same of what stands nowhere in the text.
    pub fn nowhere(self) -> Collated {
        Collated {
            location: -1,
            ..self
        }
    }

    /// That of a column which is such an expression.
    pub fn of_column(self) -> Collated {
        match self.how {
            Derivation::Explicit => Collated::implicit(self.oid),
            _ => self.nowhere(),
        }
    }

    /// That of several together.
    pub fn of_all<'e>(parts: impl IntoIterator<Item = &'e Expr>) -> Collated {
        let own = parts.into_iter().map(|part| part.collation);
        own.fold(Collated::default(), Collated::with)
    }

    /// That of an expression, by what it is made of. A column's, a parameter's and a subquery's is for those
    /// to say who make them.
    pub(crate) fn of(kind: &ExprKind, location: i32) -> Collated {
        match kind {
            ExprKind::Call(_, args, _)
            | ExprKind::SetCall(_, args, _)
            | ExprKind::Coalesce(args)
            | ExprKind::Extreme(args, _)
            | ExprKind::Array(args, _)
            | ExprKind::Routine(_, args) => Collated::of_all(args),
            ExprKind::Coerce(arg, _)
            | ExprKind::Fit(arg, _)
            | ExprKind::Domain(arg, ..)
            | ExprKind::Collating(arg, ..)
            | ExprKind::CaseValue(_, arg)
            | ExprKind::Subscript(arg, _)
            | ExprKind::NullIf(arg, ..) => arg.collation,
            ExprKind::Case(whens, otherwise) => {
                let results = whens.iter().map(|(_, result)| result);
                Collated::of_all(results.chain([&**otherwise]))
            }
            ExprKind::Aggregate(call) => Collated::of_all(&call.args),
            ExprKind::Window(call) => Collated::of_all(&call.args),
            ExprKind::Collate(_, used) => Collated {
                oid: used.oid,
                how: Derivation::Explicit,
                location,
            },
            _ => Collated::default(),
        }
    }
}
