//! Extension `fuzzystrmatch`: how far texts are from each other, and how they sound.
//!
//! Source: PostgreSQL 15 manual, section F.15.
//!
//! # What it leaves out
//! `metaphone` and `dmetaphone`: 0A000.

use base::{coro, Error, Result, SqlState};

use super::super::arguments::Arguments;
use super::super::table::functions;
use super::super::Call;
use types::Datum;

functions! {
    9330 "levenshtein" (TEXT TEXT) INT4 "i" fuzzystrmatch::levenshtein;
    9331 "levenshtein" (TEXT TEXT INT4 INT4 INT4) INT4 "i" fuzzystrmatch::levenshtein;
    9332 "levenshtein_less_equal" (TEXT TEXT INT4) INT4 "i" fuzzystrmatch::levenshtein_up_to;
    9333 "levenshtein_less_equal" (TEXT TEXT INT4 INT4 INT4 INT4) INT4 "i"
        fuzzystrmatch::levenshtein_up_to;
    9334 "metaphone" (TEXT INT4) TEXT "i" unsupported;
    9335 "soundex" (TEXT) TEXT "i" fuzzystrmatch::soundex;
    9336 "text_soundex" (TEXT) TEXT "i" fuzzystrmatch::soundex;
    9337 "difference" (TEXT TEXT) INT4 "i" fuzzystrmatch::difference;
    9338 "dmetaphone" (TEXT) TEXT "i" unsupported;
    9339 "dmetaphone_alt" (TEXT) TEXT "i" unsupported;
}

/// Longer texts are refused, as in PostgreSQL.
const CHARACTERS_MAX: usize = 255;

/// What it takes to turn one text into another, character by character.
struct Costs {
    insert: i64,
    delete: i64,
    replace: i64,
}

/// The cheapest way from one text to another (Wagner and Fischer, *The String-to-String Correction
/// Problem*, 1974), a row of its table at a time.
fn distance(from: &str, to: &str, costs: &Costs) -> Result<i64> {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    if from.len().max(to.len()) > CHARACTERS_MAX {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("levenshtein argument exceeds maximum length of {CHARACTERS_MAX} characters"),
        ));
    }
    coro::work(from.len() * to.len())?;
    let mut row: Vec<i64> = (0..=to.len() as i64).map(|n| n * costs.insert).collect();
    for (place, char) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = (place as i64 + 1) * costs.delete;
        for (at, other) in to.iter().enumerate() {
            let replaced = diagonal + if char == other { 0 } else { costs.replace };
            diagonal = row[at + 1];
            row[at + 1] = replaced
                .min(diagonal + costs.delete)
                .min(row[at] + costs.insert);
        }
    }
    Ok(row[to.len()])
}

fn costs_of(args: &[Datum]) -> Result<Costs> {
    let mut all = [1; 3];
    if args.len() >= 5 {
        for (place, cost) in all.iter_mut().enumerate() {
            *cost = i64::from(args.int4(2 + place)?);
        }
    }
    let [insert, delete, replace] = all;
    Ok(Costs {
        insert,
        delete,
        replace,
    })
}

fn as_integer(distance: i64) -> Datum {
    Datum::Int4(i32::try_from(distance).unwrap_or(i32::MAX))
}

pub(crate) fn levenshtein(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    distance(args.text(0)?, args.text(1)?, &costs_of(args)?).map(as_integer)
}

/// The distance, or one more than the greatest that is wanted.
pub(crate) fn levenshtein_up_to(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let found = distance(args.text(0)?, args.text(1)?, &costs_of(args)?)?;
    let greatest = i64::from(args.int4(args.len() - 1)?);
    Ok(as_integer(match greatest >= 0 && found > greatest {
        true => greatest + 1,
        false => found,
    }))
}

/// The digit of a letter, 0 for what sounds too little; all else stands for itself.
fn sound(byte: u8) -> u8 {
    const SOUNDS: &[u8; 26] = b"01230120022455012623010202";
    match byte.to_ascii_uppercase() {
        letter @ b'A'..=b'Z' => SOUNDS[usize::from(letter - b'A')],
        other => other,
    }
}

/// The first letter and the sounds of the next that differ from what stands before them: four in all.
fn sounds(text: &str) -> String {
    let mut bytes = text.bytes().skip_while(|byte| !byte.is_ascii_alphabetic());
    let Some(first) = bytes.next() else {
        return String::new();
    };
    let mut out = String::from(char::from(first.to_ascii_uppercase()));
    let mut before = first;
    for byte in bytes {
        if out.len() == 4 {
            break;
        }
        let own = sound(byte);
        if byte.is_ascii_alphabetic() && own != sound(before) && own != b'0' {
            out.push(char::from(own));
        }
        before = byte;
    }
    while out.len() < 4 {
        out.push('0');
    }
    out
}

pub(crate) fn soundex(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    coro::work(text.len())?;
    Ok(Datum::text(sounds(text)))
}

/// In how many places two soundex codes agree.
pub(crate) fn difference(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (left, right) = (sounds(args.text(0)?), sounds(args.text(1)?));
    if left.is_empty() || right.is_empty() {
        // Both codes are nothing but ends then.
        return Ok(Datum::Int4(if left == right { 4 } else { 0 }));
    }
    let same = left.bytes().zip(right.bytes()).filter(|(a, b)| a == b);
    Ok(Datum::Int4(same.count() as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sounds_are_told_from_what_stands_before() {
        for (text, wanted) in [
            ("a1b", "A000"),
            ("ab-b", "A110"),
            ("Mc-Cc", "M220"),
            ("1bb", "B000"),
            ("bébb", "B100"),
            ("O'Brien", "O165"),
            ("", ""),
            ("Pfister", "P236"),
        ] {
            assert_eq!(sounds(text), wanted, "{text}");
        }
    }
}
