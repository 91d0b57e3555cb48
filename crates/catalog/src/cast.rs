//! Casts that users have made, as the catalog keeps them.
//!
//! ```text
//! create cast (varchar as mood) with inout as implicit
//! a row of CASTS under (database, varchar, mood): its oid, through the text, unasked
//! ```
//! Between two types there is one cast at most, built in or not, so what a cast is between is its key.
//!
//! # What needs a cast
//! PostgreSQL keeps what a cast was made of in an expression, and drops the cast all the same. Here
//! text is kept, which asks for the cast again; so what was stored and uses a cast depends on it, and
//! names it in a comment behind it ([`note`]), where [`super::view::named_by_oid`] finds it. Casts that
//! it does not name were made later, and are not for it ([`Catalog::noted_in_text`]). The comment also says in which
//! order `*` has columns, where that has not always been the same ([`has_using_in_place`]).

use base::codec::{put_varint, Reader};
use base::row::{Row, RowBuilder};
use base::{Error, Result};

use super::view::BY_OID;
use super::Catalog;
use functions::CastContext;
use types::TypeId;

/// What a note says of joins with USING.
const USING_IN_PLACE: &str = "\"#\".using";

/// How a value gets from one type to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastHow {
    /// By the function of that oid.
    Function(u32),
    /// Through its text.
    InOut,
    /// It stays as it is.
    Binary,
}

/// A cast that a user has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCast {
    /// Its oid.
    pub oid: u32,
    /// From.
    pub source: TypeId,
    /// To.
    pub target: TypeId,
    /// How.
    pub how: CastHow,
    /// The least explicit context in which it is used.
    pub context: CastContext,
}

impl OwnCast {
    /// The oid of its function, or 0.
    pub fn function(&self) -> u32 {
        match self.how {
            CastHow::Function(oid) => oid,
            CastHow::InOut | CastHow::Binary => 0,
        }
    }
}

/// The casts that users have made in a database.
#[derive(Clone, Debug, Default)]
pub struct Casts {
    /// By source and target.
    all: Vec<OwnCast>,
    /// Those that are used unasked.
    implicit: Vec<(TypeId, TypeId)>,
}

impl Casts {
    pub(super) fn new(mut all: Vec<OwnCast>) -> Casts {
        all.sort_by_key(|cast| (cast.source, cast.target));
        let implicit = all
            .iter()
            .filter(|cast| cast.context == CastContext::Implicit);
        Casts {
            implicit: implicit.map(|cast| (cast.source, cast.target)).collect(),
            all,
        }
    }

    /// All of them, by source and target.
    pub fn iter(&self) -> impl Iterator<Item = &OwnCast> {
        self.all.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Between which types values are cast unasked.
    pub fn implicit(&self) -> &[(TypeId, TypeId)] {
        &self.implicit
    }
}

impl Catalog {
    /// The cast between two types, if a user has made it.
    pub fn own_cast(&self, source: TypeId, target: TypeId) -> Option<&OwnCast> {
        let all = &self.casts.all;
        let place = all.binary_search_by_key(&(source, target), |cast| (cast.source, cast.target));
        place.ok().map(|place| &all[place])
    }

    /// The cast of that oid, if a user has made it.
    pub fn cast_by_oid(&self, oid: u32) -> Option<&OwnCast> {
        self.casts.iter().find(|cast| cast.oid == oid)
    }

    /// The source and the target of the cast of that oid, which may be that of a range of one's own.
    pub fn types_of_cast(&self, oid: u32) -> Option<(TypeId, TypeId)> {
        let own = self.cast_by_oid(oid);
        let own = own.map(|cast| (cast.source, cast.target));
        own.or_else(|| self.range_of_cast(oid))
    }
}

/// Kept text without what [`note`] has put behind it.
pub fn without_note(text: &str) -> &str {
    let start = format!(" /* \"{BY_OID}\".");
    let at = text.rfind(&start).filter(|_| text.ends_with("*/"));
    at.map_or(text, |at| &text[..at])
}

/// What kept text says of the casts and operators of users that it uses, and of the casts' functions; and, if it
/// has joins with USING, that their columns stand in their place ([`has_using_in_place`]).
pub fn note(has_using: bool, used: &[u32]) -> String {
    let using = has_using.then(|| USING_IN_PLACE.to_owned());
    let named = used.iter().map(|oid| format!("\"{BY_OID}\".\"{oid}\""));
    let named: Vec<_> = using.into_iter().chain(named).collect();
    match named.is_empty() {
        true => String::new(),
        false => format!(" /* {} */", named.join(", ")),
    }
}

/// Whether `*` in kept text has the columns that USING merges before those of their join, each of the type that
/// both sides have in common. Text with joins whose note does not say so was kept when they came first of all
/// columns of the query, each of the type of one side, and goes on meaning that.
pub fn has_using_in_place(text: &str) -> bool {
    text[without_note(text).len()..].contains(USING_IN_PLACE)
}

// ---- Rows ----

pub(super) fn encode(cast: &OwnCast) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, u64::from(cast.oid));
    put_varint(&mut out, u64::from(cast.function()));
    out.push(match cast.how {
        CastHow::Function(_) => 0,
        CastHow::InOut => 1,
        CastHow::Binary => 2,
    });
    out.push(match cast.context {
        CastContext::Implicit => 0,
        CastContext::Assignment => 1,
        CastContext::Explicit => 2,
    });
    RowBuilder::new(1).value(&out).finish()
}

pub(super) fn decode(source: TypeId, target: TypeId, row: &[u8]) -> Result<OwnCast> {
    let row = Row::parse(row)?;
    let bytes = row.column(0);
    let mut reader = Reader::new(bytes.ok_or_else(|| Error::corrupted("a cast without a row"))?);
    let oid = reader.varint_as()?;
    let function = reader.varint_as()?;
    let how = match reader.u8()? {
        0 => CastHow::Function(function),
        1 => CastHow::InOut,
        2 => CastHow::Binary,
        other => return Err(Error::corrupted(format!("a cast of kind {other}"))),
    };
    let context = match reader.u8()? {
        0 => CastContext::Implicit,
        1 => CastContext::Assignment,
        2 => CastContext::Explicit,
        other => return Err(Error::corrupted(format!("a cast of context {other}"))),
    };
    Ok(OwnCast {
        oid,
        source,
        target,
        how,
        context,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::named_by_oid;

    #[test]
    fn rows_come_back() {
        for how in [CastHow::Function(77), CastHow::InOut, CastHow::Binary] {
            for context in [
                CastContext::Implicit,
                CastContext::Assignment,
                CastContext::Explicit,
            ] {
                let cast = OwnCast {
                    oid: 16_400,
                    source: TypeId::VARCHAR,
                    target: TypeId::INT4,
                    how,
                    context,
                };
                let read = decode(cast.source, cast.target, &encode(&cast));
                assert_eq!(read.unwrap(), cast);
            }
        }
    }

    #[test]
    fn text_names_its_casts() {
        let text = format!("x > 'a'{}", note(false, &[16_400, 16_401]));
        assert_eq!(named_by_oid(&text), [16_400, 16_401]);
        assert!(!has_using_in_place(&text));
        assert_eq!(without_note(&text), "x > 'a'");
        assert_eq!(without_note("x > 'a'"), "x > 'a'");
        assert_eq!(note(false, &[]), "");
        let text = format!("x{}", note(true, &[16_400]));
        assert_eq!(named_by_oid(&text), [16_400]);
        assert_eq!(without_note(&text), "x");
        assert!(has_using_in_place(&text));
        assert!(!has_using_in_place("'\"#\".using'"));
    }
}
