//! `to_char` for numbers (manual, table 9.30).
//!
//! A template is read into a [`Picture`]: how many digits it has room for before and after the
//! point, which marks of the sign it has, and what stands where. A number is written with as many
//! decimals as the picture shows and laid under its *slots* (`9`, `0`, the point) so that the points
//! meet; a slot to the left of the number is blank, or zero from the first `0` on.
//!
//! ```text
//! to_char(-12.5, '9990.99')
//!   slots     9 9 9 0 . 9 9
//!   number        1 2 . 5 0
//!   written     - 1 2 . 5 0      the sign before the first digit; FM leaves blanks and 5's 0 out
//! ```
//! A number that does not fit shows `#` in every slot.
//!
//! # What it leaves out
//! Locales: `D`, `G` and `L` mean what they do in the C locale. `MI`, `PL` and `SG` after `PR`, which
//! PostgreSQL takes and then closes the bracket one place too early.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::{Datum, Numeric};

/// Digits that a number's template may have.
const TEMPLATE_DIGITS_MAX: usize = 2_000;

/// What is written for a number in Roman numerals that has none.
const NO_ROMAN: &str = "###############";

/// What a pattern means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Nine,
    Zero,
    Point,
    Group,
    Currency,
    Shift,
    Exponent,
    Fill,
    Sign,
    Minus,
    Plus,
    PlusMinus,
    Brackets,
    /// In capitals or not, as the next.
    Roman(bool),
    Ordinal(bool),
    Blank,
    /// It is taken and writes nothing.
    Nothing,
}

/// Patterns, each in capitals and in small letters, longer ones before those they begin with.
const PATTERNS: [(&str, Pattern); 19] = [
    ("EEEE", Pattern::Exponent),
    ("FM", Pattern::Fill),
    ("MI", Pattern::Minus),
    ("PL", Pattern::Plus),
    ("PR", Pattern::Brackets),
    ("RN", Pattern::Roman(true)),
    ("SG", Pattern::PlusMinus),
    ("SP", Pattern::Nothing),
    ("TH", Pattern::Ordinal(true)),
    ("S", Pattern::Sign),
    ("B", Pattern::Blank),
    ("C", Pattern::Nothing),
    ("D", Pattern::Point),
    ("G", Pattern::Group),
    ("L", Pattern::Currency),
    ("V", Pattern::Shift),
    ("9", Pattern::Nine),
    ("0", Pattern::Zero),
    (",", Pattern::Group),
];

/// The pattern at the beginning of a text, and its length.
fn pattern_at(text: &str) -> Option<(Pattern, usize)> {
    if text.starts_with('.') {
        return Some((Pattern::Point, 1));
    }
    PATTERNS.iter().find_map(|(name, pattern)| {
        let small = name.to_ascii_lowercase();
        let pattern = match (text.starts_with(name), text.starts_with(&small), *pattern) {
            (true, _, pattern) => pattern,
            (_, true, Pattern::Roman(_)) => Pattern::Roman(false),
            (_, true, Pattern::Ordinal(_)) => Pattern::Ordinal(false),
            (_, true, pattern) => pattern,
            _ => return None,
        };
        Some((pattern, name.len()))
    })
}

#[derive(Debug)]
pub(crate) enum Item {
    Pattern(Pattern),
    Literal(char),
}

/// Where `S` has the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Before,
    After,
}

impl Anchor {
    /// Whether it is before the number.
    pub(crate) fn is_before(self) -> bool {
        self == Anchor::Before
    }
}

/// A template taken apart.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    pub(crate) items: Vec<Item>,
    /// Digits before the point, those after `V` not among them.
    pub(crate) whole: usize,
    /// Digits after it.
    pub(crate) decimals: usize,
    /// Digits after `V`, which the number is shifted by.
    pub(crate) shift: usize,
    /// The first `0` before the point: how many digits are before it.
    zero_from: Option<usize>,
    /// The last `0`: how many digits there are up to it.
    zero_to: usize,
    pub(crate) has_point: bool,
    shifts: bool,
    /// `FM`: without blanks and zeros that tell nothing.
    pub(crate) is_tight: bool,
    /// `S`, and how many digits are before it.
    pub(crate) sign: Option<(Anchor, usize)>,
    pub(crate) has_minus: bool,
    pub(crate) has_plus: bool,
    pub(crate) has_brackets: bool,
    pub(crate) has_exponent: bool,
    pub(crate) has_roman: bool,
    is_blank: bool,
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message.into())
}

impl Picture {
    pub(crate) fn read(template: &str) -> Result<Picture> {
        let mut picture = Picture::default();
        let mut rest = template;
        while let Some(first) = rest.chars().next() {
            if let Some((pattern, len)) = pattern_at(rest) {
                picture.add(pattern)?;
                picture.items.push(Item::Pattern(pattern));
                rest = &rest[len..];
                continue;
            }
            rest = &rest[first.len_utf8()..];
            match first {
                '"' => rest = picture.quoted(rest),
                '\\' if rest.starts_with('"') => {
                    picture.items.push(Item::Literal('"'));
                    rest = &rest[1..];
                }
                other => picture.items.push(Item::Literal(other)),
            }
        }
        match picture.whole + picture.decimals + picture.shift > TEMPLATE_DIGITS_MAX {
            true => Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "the template has too many digits",
            )),
            false => Ok(picture),
        }
    }

    /// Takes what stands between quotes; gives what follows.
    fn quoted<'a>(&mut self, text: &'a str) -> &'a str {
        let mut is_escaped = false;
        for (at, c) in text.char_indices() {
            match c {
                '"' if !is_escaped => return &text[at + 1..],
                '\\' if !is_escaped => {
                    is_escaped = true;
                    continue;
                }
                other => self.items.push(Item::Literal(other)),
            }
            is_escaped = false;
        }
        ""
    }

    /// Notes a pattern.
    ///
    /// # Errors
    /// 42601 where it may not stand beside those before it.
    fn add(&mut self, pattern: Pattern) -> Result<()> {
        if self.has_exponent && pattern != Pattern::Exponent {
            return Err(refused("\"EEEE\" must be the last pattern used"));
        }
        match pattern {
            Pattern::Nine if self.has_brackets => {
                return Err(refused("\"9\" must be ahead of \"PR\""))
            }
            Pattern::Zero if self.has_brackets => {
                return Err(refused("\"0\" must be ahead of \"PR\""))
            }
            Pattern::Nine if self.shifts => self.shift += 1,
            Pattern::Nine | Pattern::Zero => self.add_digit(pattern == Pattern::Zero),
            Pattern::Blank => self.is_blank |= self.whole == 0 && self.decimals == 0,
            Pattern::Point if self.has_point => return Err(refused("multiple decimal points")),
            Pattern::Point if self.shifts => return Err(point_and_shift()),
            Pattern::Point => self.has_point = true,
            Pattern::Shift if self.has_point => return Err(point_and_shift()),
            Pattern::Shift => self.shifts = true,
            Pattern::Fill => self.is_tight = true,
            Pattern::Sign if self.sign.is_some() => return Err(refused("cannot use \"S\" twice")),
            Pattern::Sign if self.has_plus || self.has_minus || self.has_brackets => {
                return Err(refused(
                    "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together",
                ))
            }
            Pattern::Sign if self.has_point => self.sign = Some((Anchor::After, 0)),
            Pattern::Sign => self.sign = Some((Anchor::Before, self.whole)),
            Pattern::Minus | Pattern::Plus | Pattern::PlusMinus if self.sign.is_some() => {
                let name = match pattern {
                    Pattern::Minus => "MI",
                    Pattern::Plus => "PL",
                    _ => "SG",
                };
                return Err(refused(format!("cannot use \"S\" and \"{name}\" together")));
            }
            Pattern::Minus => self.has_minus = true,
            Pattern::Plus => self.has_plus = true,
            Pattern::PlusMinus => (self.has_minus, self.has_plus) = (true, true),
            Pattern::Brackets if self.sign.is_some() || self.has_plus || self.has_minus => {
                return Err(refused(
                    "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together",
                ))
            }
            Pattern::Brackets => self.has_brackets = true,
            Pattern::Roman(_) => self.has_roman = true,
            Pattern::Exponent => self.add_exponent()?,
            Pattern::Group | Pattern::Currency | Pattern::Ordinal(_) | Pattern::Nothing => {}
        }
        Ok(())
    }

    fn add_digit(&mut self, is_zero: bool) {
        if is_zero && !self.has_point {
            self.zero_from.get_or_insert(self.whole);
        }
        match self.has_point {
            true => self.decimals += 1,
            false => self.whole += 1,
        }
        if is_zero {
            self.zero_to = self.whole + self.decimals;
        }
    }

    fn add_exponent(&mut self) -> Result<()> {
        if self.has_exponent {
            return Err(refused("cannot use \"EEEE\" twice"));
        }
        let has_mark = self.sign.is_some() || self.has_minus || self.has_plus || self.has_brackets;
        if has_mark || self.is_blank || self.is_tight || self.has_roman || self.shifts {
            return Err(refused("\"EEEE\" is incompatible with other formats"));
        }
        self.has_exponent = true;
        Ok(())
    }

    /// Digits that a number may have before the point when it is shifted.
    fn room(&self) -> usize {
        self.whole + self.shift
    }
}

fn point_and_shift() -> Error {
    refused("cannot use \"V\" and decimal point together")
}

/// A number as it is laid under a picture.
struct Laid {
    is_negative: bool,
    /// Its digits, with the point where it has decimals.
    text: String,
    /// Slots before it.
    blanks: usize,
    /// Decimals of the picture that are shown; a float has no more than it knows.
    decimals: usize,
}

impl Laid {
    /// `text` has its sign.
    fn of(text: &str, decimals: usize, picture: &Picture) -> Laid {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let len = text.find('.').unwrap_or(text.len());
        let room = picture.room();
        let text = match len > room {
            true => format!("{}.{}", "#".repeat(room), "#".repeat(decimals)),
            false => text.to_owned(),
        };
        Laid {
            is_negative,
            text,
            blanks: room.saturating_sub(len),
            decimals,
        }
    }

    fn at(&self, place: usize) -> Option<char> {
        self.text.as_bytes().get(place).map(|c| char::from(*c))
    }

    /// The place of the last character that FM shows; none where it shows all.
    fn last_shown(&self, picture: &Picture) -> Option<usize> {
        if !picture.is_tight || !picture.has_point {
            return None;
        }
        let point = self.text.find('.')?;
        let last = self.text[point..].trim_end_matches('0').len() + point - 1;
        let zero = picture.zero_to.checked_sub(self.blanks);
        let zero = zero.filter(|zero| *zero > 0).unwrap_or(0);
        Some(last.max(zero.min(self.text.len() - 1)))
    }
}

/// Writes a number into a picture, from the first item to the last.
struct Pen<'a> {
    picture: &'a Picture,
    laid: &'a Laid,
    last_shown: Option<usize>,
    /// Slots behind the pen.
    slot: usize,
    has_sign: bool,
    /// The last slot shows a digit.
    has_digit: bool,
    /// A slot has met the number's end, and with it the text's.
    is_over: bool,
    out: String,
}

impl Pen<'_> {
    fn blank(&mut self) {
        if !self.picture.is_tight {
            self.out.push(' ');
        }
    }

    /// What marks the sign before the digits.
    fn sign(&self) -> &'static str {
        let picture = self.picture;
        match (self.laid.is_negative, picture.sign, picture.has_brackets) {
            (true, None, true) => "<",
            (true, ..) => "-",
            (false, Some(_), _) => "+",
            (false, None, _) if picture.is_tight => "",
            (false, None, _) => " ",
        }
    }

    fn is_after(&self) -> bool {
        match self.picture.sign {
            Some((Anchor::After, _)) => true,
            Some((Anchor::Before, digits)) => digits == self.picture.room(),
            None => false,
        }
    }

    /// Whether a slot is left of the number and of the first zero.
    fn is_left(&self) -> bool {
        let is_zero = self.picture.zero_from.is_some_and(|from| from <= self.slot);
        self.slot < self.laid.blanks && !is_zero
    }

    /// Whether the slot has the only digit before the point, a zero that need not be shown.
    fn is_idle_zero(&self) -> bool {
        self.picture.zero_from.is_none()
            && self.slot == self.laid.blanks
            && self.laid.at(0) == Some('0')
            && self.laid.decimals > 0
    }

    /// Whether FM ends the number at its point.
    fn ends_at_point(&self) -> bool {
        let last = self.last_shown.and_then(|last| self.laid.at(last));
        last == Some('.')
    }

    fn slot(&mut self, pattern: Pattern) {
        let is_idle = self.is_idle_zero();
        let is_begun = !self.is_left() && (!is_idle || self.ends_at_point());
        let has_own = self.picture.has_minus || self.picture.has_plus;
        let is_pending = !self.has_sign && !self.is_after();
        if is_pending && is_begun && (!has_own || !self.picture.has_minus) {
            let sign = self.sign();
            self.out.push_str(sign);
            self.has_sign = true;
        }
        self.has_digit = false;
        if self.is_left() {
            self.blank();
        } else if self.slot < self.laid.blanks {
            self.out.push('0');
            self.has_digit = true;
        } else {
            self.digit(pattern, is_idle);
        }
        self.slot += 1;
    }

    fn digit(&mut self, pattern: Pattern, is_idle: bool) {
        let place = self.slot - self.laid.blanks;
        let is_dropped =
            self.last_shown.is_some_and(|last| place > last) && pattern != Pattern::Zero;
        match self.laid.at(place) {
            Some('.') => self.out.push('.'),
            _ if is_dropped => {}
            _ if is_idle && !self.picture.is_tight => self.out.push(' '),
            _ if is_idle && !self.ends_at_point() => {}
            Some(digit) => {
                self.out.push(digit);
                self.has_digit = !is_idle;
            }
            None => self.is_over = true,
        }
    }

    /// What marks the sign after the digits.
    fn close(&mut self) {
        let is_negative = self.laid.is_negative;
        if self.picture.has_brackets && self.has_sign {
            match is_negative {
                true => self.out.push('>'),
                false => self.blank(),
            }
        } else if self.is_after() {
            self.out.push(if is_negative { '-' } else { '+' });
        }
    }

    fn mark(&mut self, pattern: Pattern) {
        let is_negative = self.laid.is_negative;
        match pattern {
            Pattern::Group if self.has_digit => self.out.push(','),
            Pattern::Group => self.blank(),
            Pattern::Currency => self.out.push(' '),
            Pattern::Minus if is_negative => self.out.push('-'),
            Pattern::Plus if !is_negative => self.out.push('+'),
            Pattern::Minus | Pattern::Plus => self.blank(),
            Pattern::PlusMinus => self.out.push(if is_negative { '-' } else { '+' }),
            _ => {}
        }
    }

    fn ordinal(&mut self, is_upper: bool) -> Result<()> {
        if self.picture.has_point || self.laid.is_negative || self.laid.text.starts_with('#') {
            return Ok(());
        }
        let text = &self.laid.text;
        if !text.ends_with(|c: char| c.is_ascii_digit()) {
            return Err(Error::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("\"{text}\" is not a number"),
            ));
        }
        self.out
            .push_str(super::to_char::ordinal_suffix(text, is_upper));
        Ok(())
    }
}

fn write(picture: &Picture, laid: &Laid) -> Result<String> {
    let mut pen = Pen {
        picture,
        laid,
        last_shown: laid.last_shown(picture),
        slot: 0,
        has_sign: false,
        has_digit: false,
        is_over: false,
        out: String::new(),
    };
    let slots = picture.room() + laid.decimals + usize::from(picture.has_point);
    for item in &picture.items {
        match item {
            Item::Literal(c) => pen.out.push(*c),
            Item::Pattern(pattern @ (Pattern::Nine | Pattern::Zero | Pattern::Point)) => {
                pen.slot(*pattern);
                if pen.slot == slots && !pen.is_over {
                    pen.close();
                }
            }
            Item::Pattern(Pattern::Ordinal(is_upper)) => pen.ordinal(*is_upper)?,
            Item::Pattern(pattern) => pen.mark(*pattern),
        }
        if pen.is_over {
            break;
        }
    }
    Ok(pen.out)
}

/// Writes a number in Roman numerals where the picture says so, and blanks for other marks.
fn write_roman(picture: &Picture, number: i64) -> String {
    let mut out = String::new();
    for item in &picture.items {
        match item {
            Item::Literal(c) => out.push(*c),
            Item::Pattern(Pattern::Roman(is_upper)) => {
                let text = match is_upper {
                    true => roman(number),
                    false => roman(number).to_lowercase(),
                };
                match picture.is_tight {
                    true => out.push_str(&text),
                    false => out.push_str(&format!("{text:>15}")),
                }
            }
            Item::Pattern(Pattern::Currency) => out.push(' '),
            // There is no sign, and the text ends where it would be.
            Item::Pattern(Pattern::PlusMinus) => break,
            Item::Pattern(Pattern::Group | Pattern::Minus | Pattern::Plus) if !picture.is_tight => {
                out.push(' ');
            }
            _ => {}
        }
    }
    out
}

fn roman(number: i64) -> String {
    const NUMERALS: [(i64, &str); 13] = [
        (1_000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..=3_999).contains(&number) {
        return NO_ROMAN.to_owned();
    }
    let mut rest = number;
    let mut out = String::new();
    for (value, numeral) in NUMERALS {
        while rest >= value {
            out.push_str(numeral);
            rest -= value;
        }
    }
    out
}

/// A number in scientific notation, with a blank in the place of a plus.
fn signed_scientific(text: String) -> String {
    match text.starts_with('-') {
        true => text,
        false => format!(" {text}"),
    }
}

/// What a number without digits shows in scientific notation.
fn no_scientific(picture: &Picture) -> String {
    let before = "#".repeat(picture.whole);
    // The exponent has four characters.
    let after = "#".repeat(picture.decimals + 4);
    format!(" {before}.{after}")
}

fn scientific_exponent(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

fn scientific_numeric(number: &Numeric, picture: &Picture) -> Result<String> {
    if !number.is_finite() {
        return Ok(no_scientific(picture));
    }
    let decimals = picture.decimals;
    let exponent_of = |number: &Numeric| {
        let text = number.abs().to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        match whole.trim_start_matches('0').len() {
            0 => fraction.find(|c| c != '0').map_or(0, |at| -(at as i32) - 1),
            len => len as i32 - 1,
        }
    };
    let exponent = exponent_of(number);
    let rounded = number.round(decimals as i32 - exponent)?;
    // What is rounded up to the next power of ten keeps its exponent in PostgreSQL: 10.00e+00.
    let whole = match exponent_of(&rounded) > exponent {
        true => 2,
        false => 1,
    };
    let text = rounded.abs().to_string();
    let digits: String = text.chars().filter(|c| *c != '.').collect();
    let digits = digits.trim_start_matches('0');
    let digits = format!("{digits:0<width$}", width = decimals + whole);
    let sign = if number.is_negative() { "-" } else { "" };
    let point = if decimals > 0 { "." } else { "" };
    let (before, after) = (&digits[..whole], &digits[whole..whole + decimals]);
    let exponent = scientific_exponent(exponent);
    Ok(signed_scientific(format!(
        "{sign}{before}{point}{after}{exponent}"
    )))
}

fn scientific_float(value: f64, picture: &Picture) -> String {
    if !value.is_finite() {
        return no_scientific(picture);
    }
    let text = format!("{value:.decimals$e}", decimals = picture.decimals);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent = scientific_exponent(exponent.parse().unwrap_or(0));
    signed_scientific(format!("{digits}{exponent}"))
}

/// A number written with the decimals of the picture.
fn of_numeric(number: &Numeric, picture: &Picture) -> Result<String> {
    if picture.has_roman {
        let whole = number.round(0)?.to_integer("integer")?;
        let whole = i32::try_from(whole).map_err(|_| out_of_range("integer"))?;
        return Ok(write_roman(picture, i64::from(whole)));
    }
    if picture.has_exponent {
        return scientific_numeric(number, picture);
    }
    let shifted = match picture.shift {
        0 => number.clone(),
        shift => number.mul(&Numeric::parse(&format!("1e{shift}"))?)?,
    };
    let text = shifted.round(picture.decimals as i32)?.to_string();
    write(picture, &Laid::of(&text, picture.decimals, picture))
}

fn of_integer(number: i64, picture: &Picture) -> Result<String> {
    let zeros = match picture.decimals {
        0 => String::new(),
        decimals => format!(".{}", "0".repeat(decimals)),
    };
    let text = format!("{number}{zeros}");
    write(picture, &Laid::of(&text, picture.decimals, picture))
}

/// `digits` is what the type holds for certain.
fn of_float(value: f64, digits: usize, picture: &Picture) -> Result<String> {
    if picture.has_roman {
        // What is no number has no numeral either.
        let whole = match value.is_finite() {
            true => value.round_ties_even(),
            false => 0.0,
        };
        return Ok(write_roman(picture, whole as i64));
    }
    if picture.has_exponent {
        return Ok(scientific_float(value, picture));
    }
    let shifted = match picture.shift {
        0 => value,
        shift => value * 10f64.powi(shift as i32),
    };
    let plain = |value: f64, decimals: usize| match (value.is_nan(), value.is_infinite()) {
        (true, _) => "NaN".to_owned(),
        (_, true) if value < 0.0 => "-Infinity".to_owned(),
        (_, true) => "Infinity".to_owned(),
        _ => format!("{value:.decimals$}"),
    };
    let known = digits.saturating_sub(plain(shifted.abs(), 0).len());
    let decimals = picture.decimals.min(known);
    let text = plain(shifted, decimals);
    write(picture, &Laid::of(&text, decimals, picture))
}

fn out_of_range(name: &str) -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{name} out of range"),
    )
}

fn shifted_int4(number: i32, shift: usize) -> Result<i32> {
    let power = u32::try_from(shift).ok();
    let power = power.and_then(|shift| 10i32.checked_pow(shift));
    let shifted = power.and_then(|power| number.checked_mul(power));
    shifted.ok_or_else(|| out_of_range("integer"))
}

fn shifted_int8(number: i64, shift: usize) -> Result<i64> {
    let power = u32::try_from(shift).ok();
    let power = power.and_then(|shift| 10i64.checked_pow(shift));
    let shifted = power.and_then(|power| number.checked_mul(power));
    shifted.ok_or_else(|| out_of_range("bigint"))
}

pub(crate) fn of_number(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let template = args.text(1)?;
    if template.is_empty() {
        return Ok(Datum::text(String::new()));
    }
    let picture = Picture::read(template)?;
    Ok(Datum::text(match args.any(0)? {
        Datum::Numeric(number) => of_numeric(number, &picture)?,
        Datum::Float8(value) => of_float(*value, f64::DIGITS as usize, &picture)?,
        Datum::Float4(value) => of_float(f64::from(*value), f32::DIGITS as usize, &picture)?,
        Datum::Int4(number) if picture.has_roman => write_roman(&picture, i64::from(*number)),
        Datum::Int4(number) if picture.has_exponent => {
            scientific_float(f64::from(*number), &picture)
        }
        Datum::Int4(number) => {
            let shifted = shifted_int4(*number, picture.shift)?;
            of_integer(i64::from(shifted), &picture)?
        }
        _ => {
            let number = args.int(0)?;
            match picture.has_roman || picture.has_exponent {
                true => of_numeric(&Numeric::from(number), &picture)?,
                false => of_integer(shifted_int8(number, picture.shift)?, &picture)?,
            }
        }
    }))
}
