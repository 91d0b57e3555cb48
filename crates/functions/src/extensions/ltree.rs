//! Extension `ltree`: paths in a tree of labels, what contains what, and what matches a pattern.
//!
//! ```text
//! 'Top.Science' @> 'Top.Science.Astronomy'          true: an ancestor
//! 'Top.Science.Astronomy' ~ '*.Sci*.*{1}'           true
//! 'Top.Science.Astronomy' @ 'Astro* & !Hobbies'     true
//! ```
//! The values and the parts of patterns are [`types::ltree`]'s.
//!
//! Source: PostgreSQL 15 manual, section F.23.
//!
//! # What it leaves out
//! `ltree_in` and its kin, and the type `ltree_gist`: no index has signatures. An index of method
//! gist is a tree in the order of paths, which serves `=` and comparisons.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::super::arguments::Arguments;
use super::super::table::{functions, operators};
use super::super::Call;
use types::ltree::{self as paths, Level, Term};
use types::{Array, Datum, TypeId};

functions! {
    8300 "ltree_lt" (LTREE LTREE) BOOL "i" comparison::lt;
    8301 "ltree_le" (LTREE LTREE) BOOL "i" comparison::le;
    8302 "ltree_eq" (LTREE LTREE) BOOL "i" comparison::eq;
    8303 "ltree_ge" (LTREE LTREE) BOOL "i" comparison::ge;
    8304 "ltree_gt" (LTREE LTREE) BOOL "i" comparison::gt;
    8305 "ltree_ne" (LTREE LTREE) BOOL "i" comparison::ne;
    8306 "ltree_cmp" (LTREE LTREE) INT4 "i" ltree::cmp;
    8307 "subltree" (LTREE INT4 INT4) LTREE "i" ltree::levels_between;
    8308 "subpath" (LTREE INT4 INT4) LTREE "i" ltree::part;
    8309 "subpath" (LTREE INT4) LTREE "i" ltree::part;
    8310 "index" (LTREE LTREE) INT4 "i" ltree::index;
    8311 "index" (LTREE LTREE INT4) INT4 "i" ltree::index;
    8312 "nlevel" (LTREE) INT4 "i" ltree::level_count;
    8313 "ltree2text" (LTREE) TEXT "i" ltree::text;
    8314 "text2ltree" (TEXT) LTREE "i" ltree::of_text;
    8315 "lca" (LTREE_ARRAY) LTREE "i" ltree::ancestor_of_array;
    8316 "lca" (LTREE LTREE) LTREE "i" ltree::ancestor;
    8317 "lca" (LTREE LTREE LTREE) LTREE "i" ltree::ancestor;
    8318 "lca" (LTREE LTREE LTREE LTREE) LTREE "i" ltree::ancestor;
    8319 "lca" (LTREE LTREE LTREE LTREE LTREE) LTREE "i" ltree::ancestor;
    8320 "lca" (LTREE LTREE LTREE LTREE LTREE LTREE) LTREE "i" ltree::ancestor;
    8321 "lca" (LTREE LTREE LTREE LTREE LTREE LTREE LTREE) LTREE "i" ltree::ancestor;
    8322 "lca" (LTREE LTREE LTREE LTREE LTREE LTREE LTREE LTREE) LTREE "i" ltree::ancestor;
    8323 "ltree_addltree" (LTREE LTREE) LTREE "i" ltree::joined;
    8324 "ltree_addtext" (LTREE TEXT) LTREE "i" ltree::joined;
    8325 "ltree_textadd" (TEXT LTREE) LTREE "i" ltree::joined;
    8326 "ltree_isparent" (LTREE LTREE) BOOL "i" ltree::contains;
    8327 "ltree_risparent" (LTREE LTREE) BOOL "i" ltree::is_contained;
    8328 "ltq_regex" (LTREE LQUERY) BOOL "i" ltree::matches;
    8329 "ltq_rregex" (LQUERY LTREE) BOOL "i" ltree::is_matched;
    8330 "lt_q_regex" (LTREE LQUERY_ARRAY) BOOL "i" ltree::matches_any;
    8331 "lt_q_rregex" (LQUERY_ARRAY LTREE) BOOL "i" ltree::any_matches;
    8332 "ltxtq_exec" (LTREE LTXTQUERY) BOOL "i" ltree::matches;
    8333 "ltxtq_rexec" (LTXTQUERY LTREE) BOOL "i" ltree::is_matched;
    8334 "_ltree_isparent" (LTREE_ARRAY LTREE) BOOL "i" ltree::some_contains;
    8335 "_ltree_r_isparent" (LTREE LTREE_ARRAY) BOOL "i" ltree::is_contained_in_some;
    8336 "_ltree_risparent" (LTREE_ARRAY LTREE) BOOL "i" ltree::some_is_contained;
    8337 "_ltree_r_risparent" (LTREE LTREE_ARRAY) BOOL "i" ltree::contains_some;
    8338 "_ltq_regex" (LTREE_ARRAY LQUERY) BOOL "i" ltree::some_matches;
    8339 "_ltq_rregex" (LQUERY LTREE_ARRAY) BOOL "i" ltree::matches_some;
    8340 "_lt_q_regex" (LTREE_ARRAY LQUERY_ARRAY) BOOL "i" ltree::some_matches_any;
    8341 "_lt_q_rregex" (LQUERY_ARRAY LTREE_ARRAY) BOOL "i" ltree::any_matches_some;
    8342 "_ltxtq_exec" (LTREE_ARRAY LTXTQUERY) BOOL "i" ltree::some_matches;
    8343 "_ltxtq_rexec" (LTXTQUERY LTREE_ARRAY) BOOL "i" ltree::matches_some;
    8344 "_ltree_extract_isparent" (LTREE_ARRAY LTREE) LTREE "i" ltree::first_that_contains;
    8345 "_ltree_extract_risparent" (LTREE_ARRAY LTREE) LTREE "i" ltree::first_contained;
    8346 "_ltq_extract_regex" (LTREE_ARRAY LQUERY) LTREE "i" ltree::first_that_matches;
    8347 "_ltxtq_extract_exec" (LTREE_ARRAY LTXTQUERY) LTREE "i" ltree::first_that_matches;
}

operators! {
    8400 "<" LTREE LTREE 8300 ">" ">=";
    8401 "<=" LTREE LTREE 8301 ">=" ">";
    8402 ">=" LTREE LTREE 8303 "<=" "<";
    8403 ">" LTREE LTREE 8304 "<" "<=";
    8404 "=" LTREE LTREE 8302 "=" "<>";
    8405 "<>" LTREE LTREE 8305 "<>" "=";
    8406 "||" LTREE LTREE 8323 "" "";
    8407 "||" LTREE TEXT 8324 "" "";
    8408 "||" TEXT LTREE 8325 "" "";
    8409 "@>" LTREE LTREE 8326 "<@" "";
    8410 "<@" LTREE LTREE 8327 "@>" "";
    8411 "@>" LTREE_ARRAY LTREE 8334 "<@" "";
    8412 "<@" LTREE LTREE_ARRAY 8335 "@>" "";
    8413 "<@" LTREE_ARRAY LTREE 8336 "@>" "";
    8414 "@>" LTREE LTREE_ARRAY 8337 "<@" "";
    8415 "~" LTREE LQUERY 8328 "~" "";
    8416 "~" LQUERY LTREE 8329 "~" "";
    8417 "~" LTREE_ARRAY LQUERY 8338 "~" "";
    8418 "~" LQUERY LTREE_ARRAY 8339 "~" "";
    8419 "?" LTREE LQUERY_ARRAY 8330 "?" "";
    8420 "?" LQUERY_ARRAY LTREE 8331 "?" "";
    8421 "?" LTREE_ARRAY LQUERY_ARRAY 8340 "?" "";
    8422 "?" LQUERY_ARRAY LTREE_ARRAY 8341 "?" "";
    8423 "@" LTREE LTXTQUERY 8332 "@" "";
    8424 "@" LTXTQUERY LTREE 8333 "@" "";
    8425 "@" LTREE_ARRAY LTXTQUERY 8342 "@" "";
    8426 "@" LTXTQUERY LTREE_ARRAY 8343 "@" "";
    8427 "^@>" LTREE LTREE 8326 "^<@" "";
    8428 "^<@" LTREE LTREE 8327 "^@>" "";
    8429 "^@>" LTREE_ARRAY LTREE 8334 "^<@" "";
    8430 "^<@" LTREE LTREE_ARRAY 8335 "^@>" "";
    8431 "^<@" LTREE_ARRAY LTREE 8336 "^@>" "";
    8432 "^@>" LTREE LTREE_ARRAY 8337 "^<@" "";
    8433 "^~" LTREE LQUERY 8328 "^~" "";
    8434 "^~" LQUERY LTREE 8329 "^~" "";
    8435 "^~" LTREE_ARRAY LQUERY 8338 "^~" "";
    8436 "^~" LQUERY LTREE_ARRAY 8339 "^~" "";
    8437 "^?" LTREE LQUERY_ARRAY 8330 "^?" "";
    8438 "^?" LQUERY_ARRAY LTREE 8331 "^?" "";
    8439 "^?" LTREE_ARRAY LQUERY_ARRAY 8340 "^?" "";
    8440 "^?" LQUERY_ARRAY LTREE_ARRAY 8341 "^?" "";
    8441 "^@" LTREE LTXTQUERY 8332 "^@" "";
    8442 "^@" LTXTQUERY LTREE 8333 "^@" "";
    8443 "^@" LTREE_ARRAY LTXTQUERY 8342 "^@" "";
    8444 "^@" LTXTQUERY LTREE_ARRAY 8343 "^@" "";
    8445 "?@>" LTREE_ARRAY LTREE 8344 "" "";
    8446 "?<@" LTREE_ARRAY LTREE 8345 "" "";
    8447 "?~" LTREE_ARRAY LQUERY 8346 "" "";
    8448 "?@" LTREE_ARRAY LTXTQUERY 8347 "" "";
}

/// What comparing a label counts for, in the units of [`coro::work`].
const LABEL_WORK: usize = 16;

fn invalid(message: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn labels(path: &str) -> Result<Vec<&str>> {
    coro::work(path.len())?;
    Ok(paths::labels(path).collect())
}

/// Ten for each level that is left where the two part, by how the labels there differ.
pub(crate) fn cmp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (labels(args.text(0)?)?, labels(args.text(1)?)?);
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let left = (a.len() - same) as i64;
    let difference = match (a.get(same), b.get(same)) {
        (Some(a), Some(b)) => {
            let shared = a.len().min(b.len());
            match a.as_bytes()[..shared].cmp(&b.as_bytes()[..shared]) {
                std::cmp::Ordering::Equal => a.len() as i64 - b.len() as i64,
                order => order as i64,
            }
        }
        _ => a.len() as i64 - b.len() as i64,
    };
    Ok(Datum::Int4((difference * 10 * (left + 1)) as i32))
}

pub(crate) fn level_count(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(labels(args.text(0)?)?.len() as i32))
}

pub(crate) fn text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.any(0).cloned()
}

pub(crate) fn of_text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    paths::input(args.text(0)?)
}

/// The labels from one place to before another.
fn between(labels: &[&str], start: i64, end: i64) -> Result<Datum> {
    let count = labels.len() as i64;
    if start < 0 || end < 0 || start >= count || start > end {
        return Err(invalid("invalid positions"));
    }
    let chosen = &labels[start as usize..end.min(count) as usize];
    Ok(Datum::text(chosen.join(".")))
}

pub(crate) fn levels_between(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let labels = labels(args.text(0)?)?;
    between(&labels, i64::from(args.int4(1)?), i64::from(args.int4(2)?))
}

/// So many labels from one on; below zero counts from the end.
pub(crate) fn part(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let labels = labels(args.text(0)?)?;
    let count = labels.len() as i64;
    let mut start = i64::from(args.int4(1)?);
    // What is before the first label counts from the end a second time.
    for _ in 0..2 {
        if start < 0 {
            start += count;
        }
    }
    let end = match args.get(2) {
        None => count.max(start),
        Some(_) => match i64::from(args.int4(2)?) {
            length if length < 0 => count + length,
            length => start + length,
        },
    };
    between(&labels, start, end)
}

/// Where the labels of a path come in another, from a place on.
pub(crate) fn index(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (whole, part) = (labels(args.text(0)?)?, labels(args.text(1)?)?);
    let mut start = match args.get(2) {
        None => 0,
        Some(_) => i64::from(args.int4(2)?),
    };
    if start < 0 {
        start = (whole.len() as i64 + start).max(0);
    }
    let rest = usize::try_from(start).ok().and_then(|at| whole.get(at..));
    let rest = rest.filter(|_| !part.is_empty()).unwrap_or_default();
    for (place, window) in rest.windows(part.len().max(1)).enumerate() {
        coro::work(LABEL_WORK)?;
        if window == part {
            return Ok(Datum::Int4((start + place as i64) as i32));
        }
    }
    Ok(Datum::Int4(-1))
}

/// The longest path that is above all of these.
fn common(all: &[&str]) -> Result<Datum> {
    let Some((first, others)) = all.split_first() else {
        return Ok(Datum::Null);
    };
    let first = labels(first)?;
    let mut count = first.len().saturating_sub(1);
    let mut has_empty = first.is_empty();
    for other in others {
        let other = labels(other)?;
        has_empty |= other.is_empty();
        count = count.min(other.len().saturating_sub(1));
        let pairs = first[..count].iter().zip(&other);
        count = pairs.take_while(|(a, b)| a == b).count();
    }
    Ok(match has_empty {
        true => Datum::Null,
        false => Datum::text(first[..count].join(".")),
    })
}

pub(crate) fn ancestor(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let all: Vec<_> = args.iter().map(Datum::as_str).collect();
    common(&all)
}

pub(crate) fn ancestor_of_array(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = checked(args, 0)?;
    let all: Vec<_> = array.elements.iter().map(Datum::as_str).collect();
    common(&all)
}

/// Two paths, of which either may be a text, as one.
pub(crate) fn joined(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let path = |place: usize| -> Result<Datum> {
        match call.argument_types.get(place) {
            Some(&TypeId::LTREE) => args.any(place).cloned(),
            _ => paths::input(args.text(place)?),
        }
    };
    let (a, b) = (path(0)?, path(1)?);
    if a.as_str().is_empty() || b.as_str().is_empty() {
        return Ok(if a.as_str().is_empty() { b } else { a });
    }
    let count = labels(a.as_str())?.len() + labels(b.as_str())?.len();
    if count > paths::LEVELS_MAX {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "number of ltree levels ({count}) exceeds the maximum allowed ({})",
                paths::LEVELS_MAX
            ),
        ));
    }
    Ok(Datum::text(format!("{}.{}", a.as_str(), b.as_str())))
}

// ---- What contains what ----

/// Whether a path is another or above it.
fn is_above(above: &str, below: &str) -> bool {
    match below.strip_prefix(above) {
        Some(rest) => above.is_empty() || rest.is_empty() || rest.starts_with('.'),
        None => false,
    }
}

pub(crate) fn contains(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(is_above(args.text(0)?, args.text(1)?)))
}

pub(crate) fn is_contained(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(is_above(args.text(1)?, args.text(0)?)))
}

/// An array of one dimension without NULLs.
fn checked(args: &[Datum], place: usize) -> Result<Arc<Array>> {
    let array = args.array(place)?;
    if array.dimensions.len() > 1 {
        let message = "array must be one-dimensional";
        return Err(Error::new(SqlState::of("2202E"), message));
    }
    if array.elements.iter().any(Datum::is_null) {
        let message = "array must not contain nulls";
        return Err(Error::new(SqlState::of("22004"), message));
    }
    Ok(array)
}

/// The first path of an array that is as wanted.
fn first_path(
    args: &[Datum],
    place: usize,
    mut wanted: impl FnMut(&str) -> Result<bool>,
) -> Result<Option<Datum>> {
    for element in &checked(args, place)?.elements {
        coro::work(LABEL_WORK)?;
        if wanted(element.as_str())? {
            return Ok(Some(element.clone()));
        }
    }
    Ok(None)
}

fn first(found: Option<Datum>) -> Result<Datum> {
    Ok(found.unwrap_or(Datum::Null))
}

fn any(found: Option<Datum>) -> Result<Datum> {
    Ok(Datum::Bool(found.is_some()))
}

fn above(args: &[Datum], array: usize) -> Result<Option<Datum>> {
    let path = args.text(1 - array)?;
    first_path(args, array, |own| Ok(is_above(own, path)))
}

fn below(args: &[Datum], array: usize) -> Result<Option<Datum>> {
    let path = args.text(1 - array)?;
    first_path(args, array, |own| Ok(is_above(path, own)))
}

pub(crate) fn some_contains(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    any(above(args, 0)?)
}

pub(crate) fn is_contained_in_some(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    any(above(args, 1)?)
}

pub(crate) fn some_is_contained(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    any(below(args, 0)?)
}

pub(crate) fn contains_some(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    any(below(args, 1)?)
}

pub(crate) fn first_that_contains(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    first(above(args, 0)?)
}

pub(crate) fn first_contained(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    first(below(args, 0)?)
}

// ---- Patterns ----

/// A pattern of either form.
enum Pattern {
    Levels(Vec<Level>),
    Terms(Vec<Term>),
}

impl Pattern {
    fn of(kind: TypeId, text: &str) -> Result<Pattern> {
        Ok(match kind {
            TypeId::LTXTQUERY => Pattern::Terms(paths::terms(text)?),
            _ => Pattern::Levels(paths::levels(text)?),
        })
    }

    /// The pattern that is an argument.
    fn at(call: &Call<'_>, args: &[Datum], place: usize) -> Result<Pattern> {
        let kind = call.argument_types.get(place).copied().unwrap_or_default();
        Pattern::of(kind, args.text(place)?)
    }

    fn matches(&self, path: &str) -> Result<bool> {
        let labels = labels(path)?;
        match self {
            Pattern::Levels(levels) => match_levels(levels, &labels),
            Pattern::Terms(terms) => match_terms(terms, &labels),
        }
    }
}

/// Whether the labels are what the levels say, one after the other.
///
/// ```text
/// a.*{1,2}.c   before   after a   after *{1,2}   after c
/// places       0        1         2 3            3 4       of a path a.b.c.c: the last is its end
/// ```
/// For each level, the places up to which the labels may go are found from those of the one before:
/// a place is one if some of the places from `high` to `low` before it was, and all labels since are
/// as the level says.
fn match_levels(levels: &[Level], labels: &[&str]) -> Result<bool> {
    let mut before = vec![false; labels.len() + 1];
    before[0] = true;
    for level in levels {
        let mut after = vec![false; labels.len() + 1];
        // So many of the places before that one were reached.
        let mut reached = vec![0_usize; labels.len() + 2];
        let mut since = 0;
        for place in 0..=labels.len() {
            coro::work(LABEL_WORK * (1 + level.words.len()))?;
            if place > 0 && level.high > 0 && !level.matches(labels[place - 1]) {
                since = place;
            }
            reached[place + 1] = reached[place] + usize::from(before[place]);
            let Some(last) = place.checked_sub(level.low) else {
                continue;
            };
            let earliest = if level.high == 0 { place } else { since };
            let earliest = earliest.max(place.saturating_sub(level.high));
            after[place] = earliest <= last && reached[last + 1] > reached[earliest];
        }
        before = after;
    }
    Ok(before[labels.len()])
}

/// Whether the words are among the labels as the operators say.
fn match_terms(terms: &[Term], labels: &[&str]) -> Result<bool> {
    let mut values = Vec::new();
    for term in terms {
        let value = match term {
            Term::Word(word) => {
                coro::work(LABEL_WORK * (1 + labels.len()))?;
                labels.iter().any(|label| word.matches(label))
            }
            Term::Not => !values.pop().unwrap_or(false),
            operator => {
                let (b, a) = (values.pop(), values.pop());
                let (a, b) = (a.unwrap_or(false), b.unwrap_or(false));
                match operator {
                    Term::And => a && b,
                    _ => a || b,
                }
            }
        };
        values.push(value);
    }
    Ok(values.pop().unwrap_or(false))
}

pub(crate) fn matches(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let pattern = Pattern::at(call, args, 1)?;
    pattern.matches(args.text(0)?).map(Datum::Bool)
}

pub(crate) fn is_matched(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let pattern = Pattern::at(call, args, 0)?;
    pattern.matches(args.text(1)?).map(Datum::Bool)
}

/// The patterns of an array.
fn patterns(args: &[Datum], place: usize) -> Result<Vec<Pattern>> {
    let array = checked(args, place)?;
    let each = array.elements.iter();
    each.map(|own| Pattern::of(TypeId::LQUERY, own.as_str()))
        .collect()
}

fn one_matches(patterns: &[Pattern], path: &str) -> Result<bool> {
    for pattern in patterns {
        if pattern.matches(path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn matches_any(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    one_matches(&patterns(args, 1)?, args.text(0)?).map(Datum::Bool)
}

pub(crate) fn any_matches(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    one_matches(&patterns(args, 0)?, args.text(1)?).map(Datum::Bool)
}

pub(crate) fn some_matches_any(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let patterns = patterns(args, 1)?;
    any(first_path(args, 0, |path| one_matches(&patterns, path))?)
}

pub(crate) fn any_matches_some(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let patterns = patterns(args, 0)?;
    any(first_path(args, 1, |path| one_matches(&patterns, path))?)
}

fn matching(call: &Call<'_>, args: &[Datum], array: usize) -> Result<Option<Datum>> {
    let pattern = Pattern::at(call, args, 1 - array)?;
    first_path(args, array, |path| pattern.matches(path))
}

pub(crate) fn some_matches(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    any(matching(call, args, 0)?)
}

pub(crate) fn matches_some(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    any(matching(call, args, 1)?)
}

pub(crate) fn first_that_matches(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    first(matching(call, args, 0)?)
}
