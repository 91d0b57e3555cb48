//! Inverted indexes (GIN): several entries for a row, one for each item of its values.
//!
//! ```text
//! create index on posts using gin (tags)
//!
//!   posts:  7 │ {red,big}       its tree:  0 'big' │ 7
//!           8 │ {red}                      0 'red' │ 7
//!                                          0 'red' │ 8
//! ```
//! An entry is the number of the key, an item, the row's key. Such an index is a computed one
//! ([`super::computed`]), even on columns: its entries are made where the row is written. It leads to
//! rows that may meet a condition; each of them is tested.
//!
//! | class | items of a value |
//! |---|---|
//! | `array_ops` | elements |
//! | `jsonb_ops` | keys and scalars, wherever they stand |
//! | `jsonb_path_ops` | scalars with the keys that lead to them |
//! | `gin_trgm_ops` | trigrams |
//! | `tsvector_ops` | lexemes |
//! | `gin_hstore_ops`, `gist_hstore_ops` | keys, and keys with their values |
//! | those of `btree_gin` | the value |
//!
//! An index of method gist is such a one where its first key is a `tsvector` or an `hstore`.
//!
//! A NULL has no items, so no condition that a NULL meets is looked for here.

use base::{Error, Result, SqlState};

use super::operator_class::{
    is_inverted_gist, OperatorClass, GIN, GIST, HSTORE_OPS_GIST, TSVECTOR_OPS_GIST,
};
use super::{Index, Table};
use types::TypeId;

/// What of a value has entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    /// The elements of an array, of this type.
    Elements(TypeId),
    /// The keys and scalars of a `jsonb`.
    Jsonb,
    /// The scalars of a `jsonb` with their paths.
    JsonbPaths,
    /// The trigrams of a text.
    Trigrams,
    /// The lexemes of a `tsvector`.
    Lexemes,
    /// The keys of an `hstore`, and its pairs.
    Pairs,
    /// The value, of this type.
    Whole(TypeId),
}

/// The oid of `array_ops`.
pub const ARRAY_OPS: u32 = 10_064;
/// The oid of `jsonb_ops`.
pub const JSONB_OPS: u32 = 10_090;
/// The oid of `jsonb_path_ops`.
pub const JSONB_PATH_OPS: u32 = 10_091;
/// The oid of `tsvector_ops` of gin.
pub const TSVECTOR_OPS: u32 = 10_073;
/// The oid of `gin_hstore_ops`, of `hstore`.
pub const HSTORE_OPS: u32 = 9_683;
/// The oid of `gin_trgm_ops`, of `pg_trgm`.
pub const TRIGRAM_OPS: u32 = 9_501;

impl Items {
    /// What an operator class makes of values of a type; none if it is none of these.
    pub fn of(class: u32, ty: TypeId) -> Option<Items> {
        let known =
            OperatorClass::by_oid(class).filter(|known| matches!(known.method, GIN | GIST))?;
        Some(match known.oid {
            ARRAY_OPS => Items::Elements(ty.array_element()?),
            JSONB_OPS => Items::Jsonb,
            JSONB_PATH_OPS => Items::JsonbPaths,
            TRIGRAM_OPS => Items::Trigrams,
            TSVECTOR_OPS | TSVECTOR_OPS_GIST => Items::Lexemes,
            HSTORE_OPS | HSTORE_OPS_GIST => Items::Pairs,
            _ => Items::Whole(ty),
        })
    }
}

impl Index {
    /// Whether it is an inverted one.
    pub fn is_inverted(&self) -> bool {
        let first = self.form.class(0);
        self.form.method == GIN || is_inverted_gist(first)
    }

    /// What of one of its keys has entries, if it is an inverted one.
    pub fn items(&self, table: &Table, place: usize) -> Option<Items> {
        let ty = self.key_order(table, place)?.type_id;
        Items::of(self.form.class_for(place, ty), ty)
    }

    /// Checks that the values of a key have items, and these an order.
    ///
    /// # Errors
    /// 42704 if not.
    pub(super) fn check_items(&self, table: &Table, place: usize) -> Result<()> {
        let Some(order) = self.key_order(table, place) else {
            return Ok(());
        };
        let kept = match self.items(table, place) {
            Some(Items::Elements(ty) | Items::Whole(ty)) => types::key_kind(ty).is_some(),
            items => items.is_some(),
        };
        if kept {
            return Ok(());
        }
        let ty = order.type_id;
        Err(Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("data type {ty} has no default operator class for access method \"gin\""),
        )
        .with_hint(
            "You must specify an operator class for the index or define a default operator class \
             for the data type.",
        ))
    }
}
