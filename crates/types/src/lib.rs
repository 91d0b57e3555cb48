//! The value layer of SQL: what a value is, what its type is called, and how it looks as text, on
//! the wire, in a row and in a key.
//!
//! A [`Datum`] knows only how it is kept in memory; what it means is said by the [`TypeId`] and the
//! type modifier that travel beside it: the same `Datum::Text` is a `text`, a `varchar` or a
//! `name`. Everything here is a plain function over the two:
//!
//! ```
//! use types::{self, Datum, EvalContext, TypeId, NO_TYPMOD};
//! let context = EvalContext::for_tests();
//! let value = types::input(&context, TypeId::NUMERIC, NO_TYPMOD, "1.50").unwrap();
//! assert_eq!(types::output(&context, TypeId::NUMERIC, &value).unwrap(), "1.50");
//! let mut column = Vec::new();
//! types::encode_column(TypeId::NUMERIC, NO_TYPMOD, &value, &mut column).unwrap();
//! assert_eq!(types::decode_column(TypeId::NUMERIC, NO_TYPMOD, &column).unwrap(), value);
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`acl`] | privileges and `aclitem` |
//! | [`type_id`] | OIDs, names, categories, `format_type` |
//! | [`own`] | OIDs of types of one's own, and the places of enums' labels |
//! | [`datum`] | the value itself, arrays and records |
//! | [`context`] | what evaluation may know of its session: instants, time zone, settings |
//! | [`typmod`] | `varchar(n)`, `numeric(p,s)`, `timestamp(p)`: encoding and enforcement |
//! | [`text`] | text forms, in and out |
//! | [`binary`] | binary forms of the extended protocol |
//! | [`packed`] | bytes in scratch space, which say what they are |
//! | [`column`] | bytes in rows, and the [`base::key::KeyKind`] that orders them |
//! | [`compare`] | order, equality and hashing |
//! | [`range`] | ranges and multiranges: order, arithmetic, text |
//! | [`network`] | inet, cidr, macaddr, macaddr8 |
//! | [`bits`] | bit, bit varying |
//! | [`geometry`] | point, line, lseg, box, path, polygon, circle |
//! | [`money`] | money |
//! | [`growth`] | how long a value may become |
//! | [`json`] | json, jsonb, jsonpath |
//! | [`hstore`] | hstore |
//! | [`ltree`] | ltree, lquery, ltxtquery |
//! | [`vectors`] | vector, halfvec, sparsevec |
//! | [`search`] | tsvector, tsquery |
//! | [`numeric`] | decimal arithmetic |
//! | [`float`] | text forms of binary floating point |
//! | [`datetime`] | dates, times, time zones, intervals |
//!
//! Behaviour and wording are PostgreSQL 15's, compared with the server in `tests/golden.rs`.
//!
//! # What it leaves out
//! Collations other than C; arrays and records beyond their text form,
//! equality and order.

pub mod acl;
pub mod array;
pub mod binary;
pub mod bits;
pub mod column;
pub mod compare;
pub mod context;
pub mod datetime;
pub mod datum;
pub mod encoding;
pub mod float;
pub mod geometry;
pub mod growth;
pub mod hstore;
pub mod invalid;
pub mod json;
pub mod ltree;
pub mod money;
pub mod network;
pub mod numeric;
pub mod own;
pub mod packed;
pub mod range;
pub mod search;
pub mod text;
pub mod type_id;
pub mod typmod;
pub mod vectors;
pub mod width;

pub use binary::{receive, send};
pub use bits::Bits;
pub use column::{
    compare_column, compare_columns, decode_column, decode_column_into, encode_column, fixed_len,
    key_kind,
};
pub use compare::{compare, equal, hash, hash_row, hash_values};
pub(crate) use context::row_of;
pub use context::{Clock, DateOrder, EvalContext, IntervalStyle, NameLookup, RowField};
pub use context::{Remarks, ENGLISH};
pub use datetime::interval::Interval;
pub use datetime::style::DateStyle;
pub use datetime::zone::Zone;
pub use datum::{Array, Datum, Dimension, LongValue, Record};
pub use network::Network;
pub use numeric::Numeric;
pub use own::{BaseType, OwnKind, BASE_TYPES};
pub use range::{Bound, Multirange, Range};
pub use text::{input, output};
pub use type_id::{Category, TypeId, TypeInfo};
pub use typmod::{apply_typmod, format_type, NO_TYPMOD};
