//! Extension `citext`: text that is compared without regard to case.
//!
//! ```text
//! 'Ann' = 'ANN'        true, and so is 'Ann' ~ 'an+'
//! select 'Ann'         Ann: a value stays as it was written
//! ```
//! Order, equality and hashes are those of the lower case ([`base::fold`], [`types::compare`]), so
//! what works on comparable values needs nothing from here. Here are the functions that `citext` has of
//! its own: those of patterns ask for the flag `i`, unless `c` is among the flags that are given.
//!
//! Source: PostgreSQL 15 manual, section F.10.
//!
//! # What it leaves out
//! `citextin`, `citextout`, `citextrecv`, `citextsend`: how a value is read and shown no function says
//! here, of any type.

use base::fold::folded;
use base::{coro, Result};

use super::super::arguments::Arguments;
use super::super::table::{casts, functions, operators};
use super::super::{comparison, regexp, strings, Call, Rows};
use types::{Datum, TypeId};

functions! {
    9700 "citext" (BPCHAR) CITEXT "i" citext::of_character;
    9701 "citext" (BOOL) CITEXT "i" citext::of_bool;
    9702 "citext" (INET) CITEXT "i" network::show;
    9703 "citext_eq" (CITEXT CITEXT) BOOL "i" comparison::eq;
    9704 "citext_ne" (CITEXT CITEXT) BOOL "i" comparison::ne;
    9705 "citext_lt" (CITEXT CITEXT) BOOL "i" comparison::lt;
    9706 "citext_le" (CITEXT CITEXT) BOOL "i" comparison::le;
    9707 "citext_gt" (CITEXT CITEXT) BOOL "i" comparison::gt;
    9708 "citext_ge" (CITEXT CITEXT) BOOL "i" comparison::ge;
    9709 "citext_cmp" (CITEXT CITEXT) INT4 "i" citext::cmp;
    9710 "citext_hash" (CITEXT) INT4 "i" system::hash;
    9711 "citext_hash_extended" (CITEXT INT8) INT8 "i" unsupported;
    9712 "citext_smaller" (CITEXT CITEXT) CITEXT "i" comparison::smaller;
    9713 "citext_larger" (CITEXT CITEXT) CITEXT "i" comparison::larger;
    9714 "texticlike" (CITEXT CITEXT) BOOL "i" pattern::text_ilike;
    9715 "texticnlike" (CITEXT CITEXT) BOOL "i" pattern::text_not_ilike;
    9716 "texticregexeq" (CITEXT CITEXT) BOOL "i" regexp::text_iregex;
    9717 "texticregexne" (CITEXT CITEXT) BOOL "i" regexp::text_not_iregex;
    9718 "texticlike" (CITEXT TEXT) BOOL "i" pattern::text_ilike;
    9719 "texticnlike" (CITEXT TEXT) BOOL "i" pattern::text_not_ilike;
    9720 "texticregexeq" (CITEXT TEXT) BOOL "i" regexp::text_iregex;
    9721 "texticregexne" (CITEXT TEXT) BOOL "i" regexp::text_not_iregex;
    9722 "citext_pattern_lt" (CITEXT CITEXT) BOOL "i" comparison::lt;
    9723 "citext_pattern_le" (CITEXT CITEXT) BOOL "i" comparison::le;
    9724 "citext_pattern_gt" (CITEXT CITEXT) BOOL "i" comparison::gt;
    9725 "citext_pattern_ge" (CITEXT CITEXT) BOOL "i" comparison::ge;
    9726 "citext_pattern_cmp" (CITEXT CITEXT) INT4 "i" citext::cmp;
    9727 "regexp_match" (CITEXT CITEXT) TEXT_ARRAY "i" citext::regexp_match;
    9728 "regexp_match" (CITEXT CITEXT TEXT) TEXT_ARRAY "i" citext::regexp_match;
    9729 "regexp_matches" (CITEXT CITEXT) TEXT_ARRAY "i" set citext::regexp_matches;
    9730 "regexp_matches" (CITEXT CITEXT TEXT) TEXT_ARRAY "i" set citext::regexp_matches;
    9731 "regexp_replace" (CITEXT CITEXT TEXT) TEXT "i" citext::regexp_replace;
    9732 "regexp_replace" (CITEXT CITEXT TEXT TEXT) TEXT "i" citext::regexp_replace;
    9733 "regexp_split_to_array" (CITEXT CITEXT) TEXT_ARRAY "i" citext::regexp_split_to_array;
    9734 "regexp_split_to_array" (CITEXT CITEXT TEXT) TEXT_ARRAY "i"
        citext::regexp_split_to_array;
    9735 "regexp_split_to_table" (CITEXT CITEXT) TEXT "i" set citext::regexp_split_to_table;
    9736 "regexp_split_to_table" (CITEXT CITEXT TEXT) TEXT "i" set
        citext::regexp_split_to_table;
    9737 "strpos" (CITEXT CITEXT) INT4 "i" citext::position;
    9738 "replace" (CITEXT CITEXT CITEXT) TEXT "i" citext::replace;
    9739 "split_part" (CITEXT CITEXT INT4) TEXT "i" citext::split_part;
    9740 "translate" (CITEXT CITEXT TEXT) TEXT "i" citext::translate;
}

operators! {
    9750 "=" CITEXT CITEXT 9703 "=" "<>";
    9751 "<>" CITEXT CITEXT 9704 "<>" "=";
    9752 "<" CITEXT CITEXT 9705 ">" ">=";
    9753 "<=" CITEXT CITEXT 9706 ">=" ">";
    9754 ">" CITEXT CITEXT 9707 "<" "<=";
    9755 ">=" CITEXT CITEXT 9708 "<=" "<";
    9756 "~~" CITEXT CITEXT 9714 "" "!~~";
    9757 "~~*" CITEXT CITEXT 9714 "" "!~~*";
    9758 "!~~" CITEXT CITEXT 9715 "" "~~";
    9759 "!~~*" CITEXT CITEXT 9715 "" "~~*";
    9760 "~" CITEXT CITEXT 9716 "" "!~";
    9761 "~*" CITEXT CITEXT 9716 "" "!~*";
    9762 "!~" CITEXT CITEXT 9717 "" "~";
    9763 "!~*" CITEXT CITEXT 9717 "" "~*";
    9764 "~~" CITEXT TEXT 9718 "" "!~~";
    9765 "~~*" CITEXT TEXT 9718 "" "!~~*";
    9766 "!~~" CITEXT TEXT 9719 "" "~~";
    9767 "!~~*" CITEXT TEXT 9719 "" "~~*";
    9768 "~" CITEXT TEXT 9720 "" "!~";
    9769 "~*" CITEXT TEXT 9720 "" "!~*";
    9770 "!~" CITEXT TEXT 9721 "" "~";
    9771 "!~*" CITEXT TEXT 9721 "" "~*";
    9772 "~<~" CITEXT CITEXT 9722 "~>~" "~>=~";
    9773 "~<=~" CITEXT CITEXT 9723 "~>=~" "~>~";
    9774 "~>~" CITEXT CITEXT 9724 "~<~" "~<=~";
    9775 "~>=~" CITEXT CITEXT 9725 "~<=~" "~<~";
}

casts! {
    CITEXT TEXT 0 "i";
    CITEXT VARCHAR 0 "i";
    CITEXT BPCHAR 0 "a";
    TEXT CITEXT 0 "a";
    VARCHAR CITEXT 0 "a";
    BPCHAR CITEXT 9700 "a";
    BOOL CITEXT 9701 "a";
    INET CITEXT 9702 "a";
}

pub(crate) fn of_character(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(args.text(0)?.trim_end_matches(' ')))
}

pub(crate) fn of_bool(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(args.bool(0)?.to_string()))
}

/// An argument in lower case.
fn lower(args: &[Datum], index: usize) -> Result<String> {
    let text = args.text(index)?;
    coro::work(text.len())?;
    Ok(folded(text))
}

/// What the bytes of the lower case differ by.
pub(crate) fn cmp(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let texts = [Datum::text(lower(args, 0)?), Datum::text(lower(args, 1)?)];
    let of_texts = Call {
        argument_types: &[TypeId::TEXT, TypeId::TEXT],
        ..*call
    };
    comparison::cmp(&of_texts, &texts)
}

/// The arguments with `i` among the flags, which stand at that place if they are given.
fn ignoring_case(args: &[Datum], flags: usize) -> Result<Vec<Datum>> {
    let mut all = args.to_vec();
    match all.get(flags).map(Datum::as_str) {
        None => all.push(Datum::text("i")),
        Some(given) if !given.contains('c') => all[flags] = Datum::text(format!("{given}i")),
        Some(_) => {}
    }
    Ok(all)
}

pub(crate) fn regexp_match(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    regexp::regexp_match(call, &ignoring_case(args, 2)?)
}

pub(crate) fn regexp_matches(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    regexp::regexp_matches(call, &ignoring_case(args, 2)?)
}

pub(crate) fn regexp_replace(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    regexp::regexp_replace(call, &ignoring_case(args, 3)?)
}

pub(crate) fn regexp_split_to_array(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    regexp::regexp_split_to_array(call, &ignoring_case(args, 2)?)
}

pub(crate) fn regexp_split_to_table(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    regexp::regexp_split_to_table(call, &ignoring_case(args, 2)?)
}

/// `strpos(citext, citext)`.
pub(crate) fn position(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let texts = [Datum::text(lower(args, 0)?), Datum::text(lower(args, 1)?)];
    strings::position(call, &texts)
}

/// A text as a regular expression that matches it alone.
fn literally(text: &str) -> Datum {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_ascii_alphanumeric() && c != '_' {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    Datum::text(pattern)
}

/// `replace(citext, citext, citext)`.
pub(crate) fn replace(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let pattern = literally(args.text(1)?);
    let all = [
        args.any(0)?.clone(),
        pattern,
        args.any(2)?.clone(),
        Datum::text("gi"),
    ];
    regexp::regexp_replace(call, &all)
}

/// `split_part(citext, citext, integer)`: the element of the parts with that number, if there is one.
pub(crate) fn split_part(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let pattern = literally(args.text(1)?);
    let all = [args.any(0)?.clone(), pattern, Datum::text("i")];
    let Datum::Array(parts) = regexp::regexp_split_to_array(call, &all)? else {
        return Ok(Datum::Null);
    };
    let place = usize::try_from(i64::from(args.int4(2)?) - 1);
    let part = place.ok().and_then(|place| parts.elements.get(place));
    Ok(part.cloned().unwrap_or(Datum::Null))
}

/// `translate(citext, citext, text)`: of each character both its lower and its upper case.
pub(crate) fn translate(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let from = std::slice::from_ref(args.any(1)?);
    let (lower, upper) = (strings::lower(call, from)?, strings::upper(call, from)?);
    let to = args.any(2)?;
    let once = strings::translate(call, &[args.any(0)?.clone(), lower, to.clone()])?;
    strings::translate(call, &[once, upper, to.clone()])
}
