//! Extension `pg_trgm`: how alike texts are, by the groups of three characters that they share.
//!
//! ```text
//! 'word'       "  w" " wo" "wor" "ord" "rd "
//! 'two words'  … " wo" "wor" "ord" "rds" "ds "     similarity 4 of 11
//! ```
//! A word is letters and digits in a row, in lower case, with two blanks before and one behind. A
//! trigram of other than ASCII is known by a checksum of its bytes, as PostgreSQL keeps it: two of
//! them may be taken for one.
//!
//! Source: PostgreSQL 15 manual, section F.35.
//!
//! # What it leaves out
//! `set_limit`: the setting `pg_trgm.similarity_threshold` says the same.

use std::sync::OnceLock;

use base::{coro, Result};

use super::super::arguments::Arguments;
use super::super::strings::fold;
use super::super::table::{functions, operators};
use super::super::Call;
use types::{Array, Datum, TypeId};

functions! {
    9400 "set_limit" (FLOAT4) FLOAT4 "v" unsupported;
    9401 "show_limit" () FLOAT4 "s" trigram::limit;
    9402 "show_trgm" (TEXT) TEXT_ARRAY "i" trigram::show;
    9403 "similarity" (TEXT TEXT) FLOAT4 "i" trigram::similarity;
    9404 "similarity_op" (TEXT TEXT) BOOL "s" trigram::is_similar;
    9405 "word_similarity" (TEXT TEXT) FLOAT4 "i" trigram::word_similarity;
    9406 "word_similarity_op" (TEXT TEXT) BOOL "s" trigram::has_word;
    9407 "word_similarity_commutator_op" (TEXT TEXT) BOOL "s" trigram::is_word;
    9408 "similarity_dist" (TEXT TEXT) FLOAT4 "i" trigram::distance;
    9409 "word_similarity_dist_op" (TEXT TEXT) FLOAT4 "i" trigram::word_distance;
    9410 "word_similarity_dist_commutator_op" (TEXT TEXT) FLOAT4 "i" trigram::distance_of_word;
    9411 "strict_word_similarity" (TEXT TEXT) FLOAT4 "i" trigram::strict_similarity;
    9412 "strict_word_similarity_op" (TEXT TEXT) BOOL "s" trigram::has_strict_word;
    9413 "strict_word_similarity_commutator_op" (TEXT TEXT) BOOL "s" trigram::is_strict_word;
    9414 "strict_word_similarity_dist_op" (TEXT TEXT) FLOAT4 "i" trigram::strict_distance;
    9415 "strict_word_similarity_dist_commutator_op" (TEXT TEXT) FLOAT4 "i"
        trigram::distance_of_strict_word;
}

operators! {
    9420 "%" TEXT TEXT 9404 "%" "";
    9421 "%>" TEXT TEXT 9407 "<%" "";
    9422 "<%" TEXT TEXT 9406 "%>" "";
    9423 "<->" TEXT TEXT 9408 "<->" "";
    9424 "<->>" TEXT TEXT 9410 "<<->" "";
    9425 "<<->" TEXT TEXT 9409 "<->>" "";
    9426 "%>>" TEXT TEXT 9413 "<<%" "";
    9427 "<<%" TEXT TEXT 9412 "%>>" "";
    9428 "<->>>" TEXT TEXT 9415 "<<<->" "";
    9429 "<<<->" TEXT TEXT 9414 "<->>>" "";
}

/// A trigram; its order is that of signed bytes, as PostgreSQL's on the machines that it is built for
/// most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trigram([i8; 3]);

impl Trigram {
    fn of(characters: &[char]) -> Trigram {
        let text: String = characters.iter().collect();
        let bytes = match text.is_ascii() {
            true => [text.as_bytes()[0], text.as_bytes()[1], text.as_bytes()[2]],
            false => {
                let [first, second, third, _] = checksum(text.as_bytes()).to_le_bytes();
                [first, second, third]
            }
        };
        Trigram(bytes.map(|byte| byte as i8))
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; 3] {
        self.0.map(|byte| byte as u8)
    }

    fn shown(self) -> String {
        let bytes = self.bytes();
        match bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) {
            true => bytes.iter().map(|byte| char::from(*byte)).collect(),
            false => format!("0x{:02x}{:02x}{:02x}", bytes[0], bytes[1], bytes[2]),
        }
    }
}

/// PostgreSQL's older CRC-32: the table of the reflected polynomial, used as if it were not reflected.
fn checksum(bytes: &[u8]) -> u32 {
    static TABLE: OnceLock<[u32; 256]> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        std::array::from_fn(|byte| {
            (0..8).fold(byte as u32, |sum, _| match sum & 1 {
                1 => sum >> 1 ^ 0xedb8_8320,
                _ => sum >> 1,
            })
        })
    });
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        table[usize::from((sum >> 24) as u8 ^ byte)] ^ sum << 8
    });
    !sum
}

/// A trigram where it stands.
struct Placed {
    trigram: Trigram,
    /// Whether its word begins with it.
    first: bool,
    /// Whether its word ends with it.
    last: bool,
}

/// The trigrams of a text in their order, as often as they are there.
fn placed(text: &str) -> Result<Vec<Placed>> {
    coro::work(4 * text.len())?;
    let mut out = Vec::new();
    let lower = fold(text)?;
    for word in lower.split(|char: char| !char.is_alphanumeric()) {
        if word.is_empty() {
            continue;
        }
        let padded: Vec<char> = "  ".chars().chain(word.chars()).chain([' ']).collect();
        let count = padded.len() - 2;
        for (place, characters) in padded.windows(3).enumerate() {
            out.push(Placed {
                trigram: Trigram::of(characters),
                first: place == 0,
                last: place + 1 == count,
            });
        }
    }
    Ok(out)
}

/// The trigrams of a text, each once, in their order.
///
/// # Errors
/// The pending interrupt.
pub fn trigrams(text: &str) -> Result<Vec<Trigram>> {
    let mut all: Vec<_> = placed(text)?.iter().map(|known| known.trigram).collect();
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The trigrams that every text has which a pattern of LIKE or ILIKE matches, each once.
///
/// # Errors
/// The pending interrupt.
pub fn of_pattern(pattern: &str) -> Result<Vec<Trigram>> {
    coro::work(4 * pattern.len())?;
    let mut all = Vec::new();
    // What stands between wildcards, which stand for any characters; the ends of the pattern are
    // those of the text.
    let mut part = vec![' '];
    let mut chars = pattern.chars();
    loop {
        let char = chars.next();
        match char {
            Some('%' | '_') => {
                put_part(&part, &mut all)?;
                part.clear();
            }
            Some('\\') => part.extend(chars.next()),
            Some(char) => part.push(char),
            None => {
                part.push(' ');
                put_part(&part, &mut all)?;
                break;
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The trigrams of words of which a part is known: blanks stand beside a word only where it ends.
fn put_part(part: &[char], all: &mut Vec<Trigram>) -> Result<()> {
    let lower: Vec<char> = fold(&part.iter().collect::<String>())?.chars().collect();
    let mut at = 0;
    while at < lower.len() {
        let rest = lower[at..].iter();
        let length = rest.take_while(|char| char.is_alphanumeric()).count();
        if length == 0 {
            at += 1;
            continue;
        }
        let mut padded: Vec<char> = Vec::with_capacity(length + 3);
        if at > 0 {
            padded.extend([' ', ' ']);
        }
        padded.extend(&lower[at..at + length]);
        at += length;
        if at < lower.len() {
            padded.push(' ');
        }
        all.extend(padded.windows(3).map(Trigram::of));
    }
    Ok(())
}

/// How much of so many different ones is shared.
fn share(common: usize, left: usize, right: usize) -> f32 {
    common as f32 / (left + right - common) as f32
}

fn similarity_of(left: &str, right: &str) -> Result<f32> {
    let (left, right) = (trigrams(left)?, trigrams(right)?);
    if left.is_empty() || right.is_empty() {
        return Ok(0.0);
    }
    let common = left.iter().filter(|own| right.binary_search(own).is_ok());
    Ok(share(common.count(), left.len(), right.len()))
}

/// The greatest similarity of a text to any part of another: to trigrams in a row, or to whole words
/// in a row (`strict`). The part grows by one at its end; whenever it ends where it may, it is cut at
/// its beginning as is best.
fn word_similarity_of(word: &str, text: &str, strict: bool) -> Result<f32> {
    let (wanted, parts) = (trigrams(word)?, placed(text)?);
    if wanted.is_empty() || parts.is_empty() {
        return Ok(0.0);
    }
    let mut all: Vec<_> = parts.iter().map(|part| part.trigram).collect();
    all.sort_unstable();
    all.dedup();
    let number = |part: &Placed| all.binary_search(&part.trigram).unwrap_or(0);
    let numbers: Vec<usize> = parts.iter().map(number).collect();
    let is_wanted: Vec<bool> = all
        .iter()
        .map(|own| wanted.binary_search(own).is_ok())
        .collect();
    let mut extent = Extent {
        wanted: wanted.len(),
        numbers: &numbers,
        is_wanted: &is_wanted,
        last: vec![None; all.len()],
        common: 0,
        different: 0,
        begin: strict.then_some(0),
    };
    let mut best = 0.0_f32;
    for (place, part) in parts.iter().enumerate() {
        let found = is_wanted[numbers[place]];
        extent.take(place, found);
        if if strict { part.last } else { found } {
            let may_begin = |at: usize| !strict || parts[at].first;
            best = best.max(extent.cut(place, may_begin)?);
        }
    }
    Ok(best)
}

/// Trigrams in a row, up to the one that was taken last.
struct Extent<'a> {
    /// How many different ones are wanted.
    wanted: usize,
    /// Each place's number among the different ones.
    numbers: &'a [usize],
    is_wanted: &'a [bool],
    /// Where each was seen last.
    last: Vec<Option<usize>>,
    /// How many of its different ones are wanted.
    common: usize,
    /// How many different ones it has.
    different: usize,
    begin: Option<usize>,
}

impl Extent<'_> {
    fn take(&mut self, place: usize, found: bool) {
        let number = self.numbers[place];
        if self.begin.is_none() && !found {
            return;
        }
        if self.last[number].is_none() {
            self.different += 1;
            self.common += usize::from(found);
        }
        self.last[number] = Some(place);
    }

    fn share(&self) -> f32 {
        share(self.common, self.wanted, self.different)
    }

    /// The similarity of what ends here once it begins at the best place.
    fn cut(&mut self, end: usize, may_begin: impl Fn(usize) -> bool) -> Result<f32> {
        let begin = match self.begin {
            Some(begin) => begin,
            None => {
                self.different = 1;
                end
            }
        };
        self.begin = Some(begin);
        coro::work(end - begin)?;
        let mut best = self.share();
        let (mut common, mut different) = (self.common, self.different);
        let mut chosen = begin;
        for place in begin..=end {
            if may_begin(place) {
                let here = share(common, self.wanted, different);
                if here > best {
                    (best, chosen) = (here, place);
                    (self.common, self.different) = (common, different);
                }
            }
            let number = self.numbers[place];
            if self.last[number] == Some(place) {
                different -= 1;
                common -= usize::from(self.is_wanted[number]);
            }
        }
        for place in begin..chosen {
            let number = self.numbers[place];
            if self.last[number] == Some(place) {
                self.last[number] = None;
            }
        }
        self.begin = Some(chosen);
        Ok(best)
    }
}

pub(crate) fn limit(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float4(call.context.similarity.any as f32))
}

pub(crate) fn show(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let all = trigrams(args.text(0)?)?;
    let shown = all.iter().map(|own| Datum::text(own.shown())).collect();
    Ok(Datum::Array(std::sync::Arc::new(Array::of(
        TypeId::TEXT,
        shown,
    ))))
}

/// The arguments, the second first if it is asked so.
fn pair(args: &[Datum], swapped: bool) -> Result<(&str, &str)> {
    let (left, right) = (args.text(0)?, args.text(1)?);
    Ok(if swapped {
        (right, left)
    } else {
        (left, right)
    })
}

macro_rules! measures {
    ($($name:ident $swapped:literal |$left:ident, $right:ident| $measured:expr;)*) => {
        $(pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let ($left, $right) = pair(args, $swapped)?;
            Ok(Datum::Float4($measured))
        })*
    };
}

measures! {
    similarity false |a, b| similarity_of(a, b)?;
    distance false |a, b| 1.0 - similarity_of(a, b)?;
    word_similarity false |a, b| word_similarity_of(a, b, false)?;
    word_distance false |a, b| 1.0 - word_similarity_of(a, b, false)?;
    distance_of_word true |a, b| 1.0 - word_similarity_of(a, b, false)?;
    strict_similarity false |a, b| word_similarity_of(a, b, true)?;
    strict_distance false |a, b| 1.0 - word_similarity_of(a, b, true)?;
    distance_of_strict_word true |a, b| 1.0 - word_similarity_of(a, b, true)?;
}

macro_rules! tests_of {
    ($($name:ident $swapped:literal $limit:ident |$left:ident, $right:ident| $measured:expr;)*) => {
        $(pub(crate) fn $name(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let ($left, $right) = pair(args, $swapped)?;
            Ok(Datum::Bool(f64::from($measured) >= call.context.similarity.$limit))
        })*
    };
}

tests_of! {
    is_similar false any |a, b| similarity_of(a, b)?;
    has_word false word |a, b| word_similarity_of(a, b, false)?;
    is_word true word |a, b| word_similarity_of(a, b, false)?;
    has_strict_word false strict_word |a, b| word_similarity_of(a, b, true)?;
    is_strict_word true strict_word |a, b| word_similarity_of(a, b, true)?;
}
