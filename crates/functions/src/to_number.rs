//! `to_number`: a text read by a template (manual, section 9.8).
//!
//! ```text
//! to_number('12,454.8-', '99G999D9S')      -12454.8
//! ```
//! Template and text go side by side: a digit or the point of the template takes one of the text if
//! there is one, a group mark takes itself, and any other character takes one that is no part of a
//! number. What the text has besides is passed over.

use base::error::{Error, Result};

use super::arguments::Arguments;
use super::to_char_number::{Item, Pattern, Picture};
use super::Call;
use types::{apply_typmod, typmod, Datum, Numeric, TypeId};

/// What a number is made of.
const DATA: &str = "0123456789.,+-";

/// A text as it is read.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    picture: &'a Picture,
    sign: u8,
    digits: String,
    /// Digits before the point and behind it.
    whole: usize,
    decimals: usize,
    has_point: bool,
}

/// `to_number(text, template)`; NULL without a template.
pub(crate) fn read(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, template) = (args.text(0)?, args.text(1)?);
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    let picture = Picture::read(template)?;
    for (is_there, name) in [(picture.has_exponent, "EEEE"), (picture.has_roman, "RN")] {
        if is_there {
            let message = format!("\"{name}\" not supported for input");
            let state = base::SqlState::FEATURE_NOT_SUPPORTED;
            return Err(Error::new(state, message));
        }
    }
    let mut reader = Reader {
        text: text.as_bytes(),
        at: 0,
        picture: &picture,
        sign: b' ',
        digits: String::new(),
        whole: 0,
        decimals: 0,
        has_point: false,
    };
    reader.run();
    let mut number = String::from(char::from(reader.sign));
    number.push_str(reader.digits.strip_suffix('.').unwrap_or(&reader.digits));
    let number = Datum::Numeric(Numeric::parse(&number)?);
    let scale = i32::try_from(reader.decimals).unwrap_or(0);
    let precision = i32::try_from(picture.whole + picture.shift).unwrap_or(0) + scale;
    let number = match precision {
        0 => number,
        _ => {
            let modifier = typmod::typmod_in(TypeId::NUMERIC, &[precision, scale])?;
            apply_typmod(TypeId::NUMERIC, modifier, number, false)?
        }
    };
    match (number, picture.shift) {
        (Datum::Numeric(number), shift @ 1..) => {
            let by = Numeric::from(10i64).power(&Numeric::from(-(shift as i64)))?;
            number.mul(&by).map(Datum::Numeric)
        }
        (number, _) => Ok(number),
    }
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// Goes on behind the character at work.
    fn step(&mut self) {
        self.at += 1;
        while self.peek(0).is_some_and(|byte| byte & 0xc0 == 0x80) {
            self.at += 1;
        }
    }

    fn run(&mut self) {
        let picture = self.picture;
        for item in &picture.items {
            let Some(byte) = self.peek(0) else {
                return;
            };
            match item {
                Item::Literal(_) => self.step(),
                // What a pattern takes has one byte, and so has what it passes over in its place.
                Item::Pattern(pattern) => {
                    let takes = self.meet(*pattern, byte);
                    self.at += usize::from(takes && self.peek(0).is_some());
                }
            }
        }
    }

    /// A pattern meets what is at work: whether that is done with.
    fn meet(&mut self, pattern: Pattern, byte: u8) -> bool {
        match pattern {
            Pattern::Nine | Pattern::Zero | Pattern::Point => {
                self.digit(pattern);
                true
            }
            Pattern::Group => !self.picture.is_tight && byte == b',',
            Pattern::Currency => self.pass(1),
            Pattern::Ordinal(_) => self.pass(2),
            Pattern::Minus if byte == b'-' => self.signed(byte),
            Pattern::Plus if byte == b'+' => self.signed(byte),
            Pattern::PlusMinus if matches!(byte, b'-' | b'+') => self.signed(byte),
            Pattern::Minus | Pattern::Plus | Pattern::PlusMinus => self.pass(1),
            _ => false,
        }
    }

    fn signed(&mut self, sign: u8) -> bool {
        self.sign = sign;
        true
    }

    /// Passes over characters that are no part of a number.
    fn pass(&mut self, count: usize) -> bool {
        for _ in 0..count {
            match self.peek(0) {
                Some(byte) if !DATA.as_bytes().contains(&byte) => self.step(),
                _ => break,
            }
        }
        false
    }

    /// Whether the sign of `S` stands before the digits.
    fn sign_is_first(&self) -> bool {
        let sign = self.picture.sign;
        sign.is_some_and(|(anchor, digits)| anchor.is_before() && digits != self.picture.whole)
    }

    fn digit(&mut self, pattern: Pattern) {
        if self.peek(0) == Some(b' ') {
            self.at += 1;
        }
        let has_digits = self.whole + self.decimals > 0;
        if self.sign == b' ' && pattern != Pattern::Point && !has_digits {
            self.sign_before();
        }
        let Some(byte) = self.peek(0) else {
            return;
        };
        let mut is_read = false;
        if byte.is_ascii_digit() {
            if self.has_point && self.decimals == self.picture.decimals {
                return;
            }
            self.digits.push(char::from(byte));
            match self.has_point {
                true => self.decimals += 1,
                false => self.whole += 1,
            }
            is_read = true;
        } else if self.picture.has_point && !self.has_point && byte == b'.' {
            self.digits.push('.');
            self.has_point = true;
            is_read = true;
        }
        if self.sign == b' ' && self.whole + self.decimals > 0 {
            self.sign_behind(is_read, byte);
        }
    }

    fn sign_before(&mut self) {
        let Some(byte) = self.peek(0) else {
            return;
        };
        let is_sign = match self.picture.sign {
            Some(_) if !self.sign_is_first() => false,
            Some(_) => matches!(byte, b'-' | b'+'),
            None => matches!(byte, b'-' | b'+') || self.picture.has_brackets && byte == b'<',
        };
        // Where S stands behind, a sign before is taken as well.
        let is_plain = self.picture.sign.is_some() && matches!(byte, b'-' | b'+');
        if is_sign || is_plain {
            self.sign = if byte == b'+' { b'+' } else { b'-' };
            self.at += 1;
        }
    }

    fn sign_behind(&mut self, is_read: bool, byte: u8) {
        if self.picture.sign.is_some() {
            match self.peek(1) {
                Some(next @ (b'-' | b'+')) if is_read => {
                    self.sign = next;
                    self.at += 1;
                }
                _ => {}
            }
        } else if !is_read
            && (self.picture.has_plus || self.picture.has_minus)
            && matches!(byte, b'-' | b'+')
        {
            // As `MI` has no place of its own where digits are fewer than in the template.
            self.sign = byte;
        }
    }
}
