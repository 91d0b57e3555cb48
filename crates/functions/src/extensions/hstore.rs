//! Extension `hstore`: sets of keys with values, what they hold and how they are changed.
//!
//! ```text
//! 'a=>1, b=>2'::hstore -> 'a'      1
//! 'a=>1' || 'a=>2, b=>3'           "a"=>"2", "b"=>"3"
//! ```
//! The value itself is [`types::hstore`]'s; what it is made of and becomes is
//! [`super::hstore_forms`]'s. Subscripts are found by the binder: `h['a']` reads as `->` does, and
//! [`ASSIGN`] is what `SET h['a'] = …` makes.
//!
//! Source: PostgreSQL 15 manual, section F.18.
//!
//! # What it leaves out
//! `hstore_in` and its kin, and the type `ghstore`: how a value is read and shown no function says
//! here, and no index has signatures.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::super::arguments::Arguments;
use super::super::table::{casts, functions, operators};
use super::super::{Body, Call, Function, Records, Rows, Volatility};
use types::hstore::{datum, find, pairs, Pair};
use types::{Array, Datum, TypeId};

functions! {
    9800 "fetchval" (HSTORE TEXT) TEXT "i" hstore::value_of;
    9801 "slice_array" (HSTORE TEXT_ARRAY) TEXT_ARRAY "i" hstore::values_of;
    9802 "slice" (HSTORE TEXT_ARRAY) HSTORE "i" hstore::slice;
    9803 "isexists" (HSTORE TEXT) BOOL "i" hstore::has_key;
    9804 "exist" (HSTORE TEXT) BOOL "i" hstore::has_key;
    9805 "exists_any" (HSTORE TEXT_ARRAY) BOOL "i" hstore::has_any;
    9806 "exists_all" (HSTORE TEXT_ARRAY) BOOL "i" hstore::has_all;
    9807 "isdefined" (HSTORE TEXT) BOOL "i" hstore::is_defined;
    9808 "defined" (HSTORE TEXT) BOOL "i" hstore::is_defined;
    9809 "delete" (HSTORE TEXT) HSTORE "i" hstore::without_key;
    9810 "delete" (HSTORE TEXT_ARRAY) HSTORE "i" hstore::without_keys;
    9811 "delete" (HSTORE HSTORE) HSTORE "i" hstore::without_pairs;
    9812 "hs_concat" (HSTORE HSTORE) HSTORE "i" hstore::concatenate;
    9813 "hs_contains" (HSTORE HSTORE) BOOL "i" hstore::contains;
    9814 "hs_contained" (HSTORE HSTORE) BOOL "i" hstore::contained;
    9815 "tconvert" (TEXT TEXT) HSTORE "in" hstore_forms::of_texts;
    9816 "hstore" (TEXT TEXT) HSTORE "in" hstore_forms::of_texts;
    9817 "hstore" (TEXT_ARRAY TEXT_ARRAY) HSTORE "in" hstore_forms::of_arrays;
    9818 "hstore" (TEXT_ARRAY) HSTORE "i" hstore_forms::of_array;
    9819 "hstore" (RECORD) HSTORE "in" hstore_forms::of_record;
    9820 "hstore_to_json" (HSTORE) JSON "i" hstore_forms::json;
    9821 "hstore_to_json_loose" (HSTORE) JSON "i" hstore_forms::json_loose;
    9822 "hstore_to_jsonb" (HSTORE) JSONB "i" hstore_forms::jsonb;
    9823 "hstore_to_jsonb_loose" (HSTORE) JSONB "i" hstore_forms::jsonb_loose;
    9824 "hstore_to_array" (HSTORE) TEXT_ARRAY "i" hstore_forms::array;
    9825 "hstore_to_matrix" (HSTORE) TEXT_ARRAY "i" hstore_forms::matrix;
    9826 "akeys" (HSTORE) TEXT_ARRAY "i" hstore::keys;
    9827 "avals" (HSTORE) TEXT_ARRAY "i" hstore::values;
    9828 "skeys" (HSTORE) TEXT "i" set hstore::each_key;
    9829 "svals" (HSTORE) TEXT "i" set hstore::each_value;
    9830 "each" (HSTORE) RECORD "i" records hstore::EACH;
    9831 "populate_record" (ANYELEMENT HSTORE) ANYELEMENT "in" hstore_forms::populate;
    9832 "hstore_eq" (HSTORE HSTORE) BOOL "i" comparison::eq;
    9833 "hstore_ne" (HSTORE HSTORE) BOOL "i" comparison::ne;
    9834 "hstore_lt" (HSTORE HSTORE) BOOL "i" comparison::lt;
    9835 "hstore_le" (HSTORE HSTORE) BOOL "i" comparison::le;
    9836 "hstore_gt" (HSTORE HSTORE) BOOL "i" comparison::gt;
    9837 "hstore_ge" (HSTORE HSTORE) BOOL "i" comparison::ge;
    9838 "hstore_cmp" (HSTORE HSTORE) INT4 "i" comparison::cmp;
    9839 "hstore_hash" (HSTORE) INT4 "i" system::hash;
    9840 "hstore_hash_extended" (HSTORE INT8) INT8 "i" unsupported;
    9841 "hstore_version_diag" (HSTORE) INT4 "i" unsupported;
}

operators! {
    9850 "->" HSTORE TEXT 9800 "" "";
    9851 "->" HSTORE TEXT_ARRAY 9801 "" "";
    9852 "?" HSTORE TEXT 9804 "" "";
    9853 "?|" HSTORE TEXT_ARRAY 9805 "" "";
    9854 "?&" HSTORE TEXT_ARRAY 9806 "" "";
    9855 "-" HSTORE TEXT 9809 "" "";
    9856 "-" HSTORE TEXT_ARRAY 9810 "" "";
    9857 "-" HSTORE HSTORE 9811 "" "";
    9858 "||" HSTORE HSTORE 9812 "" "";
    9859 "@>" HSTORE HSTORE 9813 "<@" "";
    9860 "<@" HSTORE HSTORE 9814 "@>" "";
    9861 "%%" NONE HSTORE 9824 "" "";
    9862 "%#" NONE HSTORE 9825 "" "";
    9863 "#=" ANYELEMENT HSTORE 9831 "" "";
    9864 "=" HSTORE HSTORE 9832 "=" "<>";
    9865 "<>" HSTORE HSTORE 9833 "<>" "=";
    9866 "#<#" HSTORE HSTORE 9834 "#>#" "#>=#";
    9867 "#<=#" HSTORE HSTORE 9835 "#>=#" "#>#";
    9868 "#>#" HSTORE HSTORE 9836 "#<#" "#<=#";
    9869 "#>=#" HSTORE HSTORE 9837 "#<=#" "#<#";
}

casts! {
    TEXT_ARRAY HSTORE 9818 "e";
    HSTORE JSON 9820 "e";
    HSTORE JSONB 9822 "e";
}

/// The value with another value for a key: the value, what the key gets, the key. NULL as no pairs.
pub static ASSIGN: Function = Function {
    oid: u32::MAX - 8,
    name: "hstore_assign",
    arguments: &[TypeId::HSTORE, TypeId::TEXT, TypeId::TEXT],
    variadic: false,
    defaults: 0,
    result: TypeId::HSTORE,
    volatility: Volatility::Immutable,
    strict: false,
    body: Body::Native(assign),
};

fn assign(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [whole, value, key] = args else {
        return Err(Error::internal("an assignment to no key"));
    };
    if key.is_null() {
        let message = "hstore subscript in assignment must not be null";
        return Err(Error::new(SqlState::of("22004"), message));
    }
    let old: &[u8] = match whole {
        Datum::Hstore(bytes) => bytes,
        _ => &[],
    };
    let mut all = vec![(key.as_str(), text_of(value))];
    all.extend(pairs(old)?);
    datum(all)
}

/// The value that a key has; NULL for a key that is not there.
///
/// # Errors
/// XX001; the pending interrupt.
pub fn fetch(bytes: &[u8], key: &str) -> Result<Datum> {
    let pairs = pairs(bytes)?;
    let found = find(&pairs, key).and_then(|place| pairs[place].1);
    Ok(found.map_or(Datum::Null, Datum::text))
}

/// A text; none for NULL.
pub(super) fn text_of(value: &Datum) -> Option<&str> {
    match value {
        Datum::Text(text) => Some(text),
        _ => None,
    }
}

/// Texts as an array.
pub(super) fn texts<'a>(all: impl Iterator<Item = Option<&'a str>>) -> Datum {
    let elements = all.map(|text| text.map_or(Datum::Null, Datum::text));
    Datum::Array(Arc::new(Array::of(TypeId::TEXT, elements.collect())))
}

/// The elements of an array of keys, without NULLs.
fn wanted(array: &Array) -> impl Iterator<Item = &str> {
    array.elements.iter().filter_map(text_of)
}

pub(crate) fn value_of(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    fetch(&args.hstore(0)?, args.text(1)?)
}

/// The values of keys, in an array of the same form.
pub(crate) fn values_of(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, keys) = (args.hstore(0)?, args.array(1)?);
    let pairs = pairs(&bytes)?;
    let value = |key: &Datum| {
        let place = find(&pairs, text_of(key)?)?;
        pairs[place].1
    };
    let mut elements = Vec::with_capacity(keys.elements.len());
    for key in &keys.elements {
        coro::work(32)?;
        elements.push(value(key).map_or(Datum::Null, Datum::text));
    }
    Ok(Datum::Array(Arc::new(Array {
        element: TypeId::TEXT,
        dimensions: keys.dimensions.clone(),
        elements,
    })))
}

pub(crate) fn slice(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, keys) = (args.hstore(0)?, args.array(1)?);
    let pairs = pairs(&bytes)?;
    let found = wanted(&keys).filter_map(|key| find(&pairs, key));
    datum(found.map(|place| pairs[place]).collect())
}

pub(crate) fn has_key(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.hstore(0)?;
    let found = find(&pairs(&bytes)?, args.text(1)?);
    Ok(Datum::Bool(found.is_some()))
}

pub(crate) fn has_any(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, keys) = (args.hstore(0)?, args.array(1)?);
    let pairs = pairs(&bytes)?;
    let has = wanted(&keys).any(|key| find(&pairs, key).is_some());
    Ok(Datum::Bool(has))
}

pub(crate) fn has_all(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, keys) = (args.hstore(0)?, args.array(1)?);
    let pairs = pairs(&bytes)?;
    let has = wanted(&keys).all(|key| find(&pairs, key).is_some());
    Ok(Datum::Bool(has))
}

pub(crate) fn is_defined(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.hstore(0)?;
    let pairs = pairs(&bytes)?;
    let found = find(&pairs, args.text(1)?);
    Ok(Datum::Bool(
        found.is_some_and(|place| pairs[place].1.is_some()),
    ))
}

/// The pairs that are kept.
fn kept(bytes: &[u8], keep: impl Fn(&Pair<'_>) -> bool) -> Result<Datum> {
    let mut all = pairs(bytes)?;
    all.retain(keep);
    datum(all)
}

pub(crate) fn without_key(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let key = args.text(1)?;
    kept(&args.hstore(0)?, |pair| pair.0 != key)
}

pub(crate) fn without_keys(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let keys = args.array(1)?;
    let mut gone: Vec<&str> = wanted(&keys).collect();
    gone.sort_unstable();
    kept(&args.hstore(0)?, |pair| {
        gone.binary_search(&pair.0).is_err()
    })
}

/// Whether a pair is among pairs.
fn has_pair(pairs: &[Pair<'_>], pair: &Pair<'_>) -> bool {
    find(pairs, pair.0).is_some_and(|place| pairs[place].1 == pair.1)
}

pub(crate) fn without_pairs(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let other = args.hstore(1)?;
    let gone = pairs(&other)?;
    kept(&args.hstore(0)?, |pair| !has_pair(&gone, pair))
}

pub(crate) fn concatenate(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (left, right) = (args.hstore(0)?, args.hstore(1)?);
    // Of two with the same key the first counts.
    let mut all = pairs(&right)?;
    all.extend(pairs(&left)?);
    datum(all)
}

fn is_contained(part: &[u8], whole: &[u8]) -> Result<Datum> {
    let whole = pairs(whole)?;
    let contained = pairs(part)?.iter().all(|pair| has_pair(&whole, pair));
    Ok(Datum::Bool(contained))
}

pub(crate) fn contains(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    is_contained(&args.hstore(1)?, &args.hstore(0)?)
}

pub(crate) fn contained(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    is_contained(&args.hstore(0)?, &args.hstore(1)?)
}

pub(crate) fn keys(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.hstore(0)?;
    Ok(texts(pairs(&bytes)?.iter().map(|pair| Some(pair.0))))
}

pub(crate) fn values(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.hstore(0)?;
    Ok(texts(pairs(&bytes)?.iter().map(|pair| pair.1)))
}

fn rows(all: Vec<Datum>) -> Rows {
    Box::new(all.into_iter().map(Ok))
}

pub(crate) fn each_key(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let bytes = args.hstore(0)?;
    let keys = pairs(&bytes)?.into_iter().map(|pair| Datum::text(pair.0));
    Ok(rows(keys.collect()))
}

pub(crate) fn each_value(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let bytes = args.hstore(0)?;
    let values = pairs(&bytes)?.into_iter().map(|pair| pair.1);
    let values = values.map(|value| value.map_or(Datum::Null, Datum::text));
    Ok(rows(values.collect()))
}

pub(crate) static EACH: Records = Records {
    columns: &[("key", TypeId::TEXT), ("value", TypeId::TEXT)],
    rows: each,
};

fn each(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let bytes = args.hstore(0)?;
    let row = |(key, value): Pair<'_>| {
        let value = value.map_or(Datum::Null, Datum::text);
        EACH.row(vec![Datum::text(key), value])
    };
    Ok(rows(pairs(&bytes)?.into_iter().map(row).collect()))
}
