//! Dates and times in the usual written forms.
//!
//! The text is cut into words (`2024-02-29`, `12:34:56.7`, `Feb`, `PM`, `+01`, `Europe/Paris`), and
//! each word sets fields: year, month and day; the time of day; the zone. What is set twice, or
//! left open, is an error. The order of fields in dates with slashes is `DateStyle`'s.
//!
//! # What it leaves out
//! Time zones as POSIX rules.

use base::error::{Error, Result, SqlState};

use super::calendar::{self, days_in_month, Fields};
use super::zone::{Zone, OFFSET_MAX};
use super::{overflow, DAY, HOUR, MINUTE, SECOND};
use crate::{DateOrder, EvalContext};

/// What a date or time text says.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// Fields, and the zone if one was written.
    Moment {
        /// Date and time; the time is 00:00 if none was written.
        fields: Fields,
        /// Seconds east of Greenwich.
        offset: Option<i32>,
        /// Whether a date was written.
        has_date: bool,
        /// Whether a time was written.
        has_time: bool,
    },
    /// 1970-01-01 00:00 UTC.
    Epoch,
    /// The infinities.
    Infinity {
        /// Which of the two.
        negative: bool,
    },
    /// `now`.
    Now,
}

/// What is expected, for messages and for how digits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Expect {
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
}

impl Expect {
    fn name(self) -> &'static str {
        match self {
            Expect::Date => "date",
            Expect::Time => "time",
            Expect::TimeTz => "time with time zone",
            Expect::Timestamp => "timestamp",
            Expect::TimestampTz => "timestamp with time zone",
        }
    }
}

/// Why a text is refused, before the text is put into the message.
pub enum Refusal {
    /// It is no such text.
    Syntax,
    /// A field is out of its range.
    Field,
    /// So is a month or a day, perhaps because they are in another order.
    MonthOrDay,
    /// So is the displacement of a time zone.
    Displacement,
    /// There is no such time zone.
    Zone(String),
}

type Outcome<T> = std::result::Result<T, Refusal>;

/// The error for a refused text.
pub fn refuse(refusal: Refusal, kind: &str, text: &str) -> Error {
    match refusal {
        Refusal::Syntax => Error::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type {kind}: \"{text}\""),
        ),
        Refusal::Field => overflow(format!("date/time field value out of range: \"{text}\"")),
        Refusal::MonthOrDay => overflow(format!("date/time field value out of range: \"{text}\""))
            .with_hint("Perhaps you need a different \"datestyle\" setting."),
        Refusal::Displacement => Error::new(
            SqlState::of("22009"),
            format!("time zone displacement out of range: \"{text}\""),
        ),
        Refusal::Zone(zone) => Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("time zone \"{zone}\" not recognized"),
        ),
    }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

fn month_named(word: &str) -> Option<i64> {
    if word == "sept" {
        return Some(9);
    }
    let found = MONTHS
        .iter()
        .position(|name| word == *name || word == &name[..3])?;
    Some(found as i64 + 1)
}

fn is_weekday(word: &str) -> bool {
    matches!(word, "tues" | "weds" | "wednes" | "thur" | "thurs")
        || WEEKDAYS
            .iter()
            .any(|name| word == *name || word == &name[..3])
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Digits alone.
    Number,
    /// Digits and a fraction.
    Fraction,
    /// Digits with colons.
    Time,
    /// Digits (and perhaps a month's name) with `-`, `/` or `.` between.
    Date,
    /// A sign and digits.
    Offset,
    /// Letters, lower-cased.
    Word,
}

#[derive(Debug)]
struct Token {
    kind: Kind,
    text: String,
}

/// The end of a run of accepted bytes from `at`.
fn run(bytes: &[u8], mut at: usize, accept: impl Fn(u8) -> bool) -> usize {
    while bytes.get(at).is_some_and(|b| accept(*b)) {
        at += 1;
    }
    at
}

fn digit_or_colon(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b':' | b'.')
}

/// Cuts a text into tokens.
fn tokenize(text: &str) -> Outcome<Vec<Token>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        let (kind, end) = match first {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | b',' => {
                at += 1;
                continue;
            }
            b'0'..=b'9' => digits_token(bytes, at),
            b'+' | b'-' => {
                let after = run(bytes, at + 1, |b| b.is_ascii_whitespace());
                match bytes.get(after) {
                    Some(b'0'..=b'9') => (Kind::Offset, run(bytes, after, digit_or_colon)),
                    Some(b) if b.is_ascii_alphabetic() => {
                        (Kind::Word, run(bytes, after, |b| b.is_ascii_alphabetic()))
                    }
                    _ => return Err(Refusal::Syntax),
                }
            }
            b if b.is_ascii_alphabetic() => word_token(bytes, text, at),
            // As in PostgreSQL, other signs only divide.
            b if b.is_ascii_punctuation() && b != b'.' => {
                at += 1;
                continue;
            }
            _ => return Err(Refusal::Syntax),
        };
        let mut body = text[at..end].to_ascii_lowercase();
        if matches!(kind, Kind::Offset | Kind::Word) {
            body.retain(|c| !c.is_ascii_whitespace());
        }
        tokens.push(Token { kind, text: body });
        at = end;
    }
    Ok(tokens)
}

/// A token that begins with a digit.
fn digits_token(bytes: &[u8], start: usize) -> (Kind, usize) {
    let at = run(bytes, start, |b| b.is_ascii_digit());
    match bytes.get(at) {
        Some(b':') => (Kind::Time, run(bytes, at, digit_or_colon)),
        Some(&separator @ (b'-' | b'/' | b'.')) => {
            let end = run(bytes, at, |b| b.is_ascii_alphanumeric() || b == separator);
            // A date has two separators, or a name in between; a fraction has one.
            if separator == b'.' && !bytes[at + 1..end].contains(&separator) {
                return (Kind::Fraction, run(bytes, at + 1, |b| b.is_ascii_digit()));
            }
            (Kind::Date, end_of_date(bytes, at, separator))
        }
        _ => (Kind::Number, at),
    }
}

/// A token that begins with a letter: a word, a zone's name, or a date as in `Feb-29-2024`.
fn word_token(bytes: &[u8], text: &str, start: usize) -> (Kind, usize) {
    let at = run(bytes, start, |b| b.is_ascii_alphabetic());
    let is_month = month_named(&text[start..at].to_ascii_lowercase()).is_some();
    match bytes.get(at) {
        Some(&separator @ (b'-' | b'/' | b'.')) if is_month => {
            let of_date = |b: u8| b.is_ascii_alphanumeric() || b == separator;
            (Kind::Date, run(bytes, at, of_date))
        }
        Some(b'/' | b'_') => {
            let of_zone =
                |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+');
            (Kind::Word, run(bytes, at, of_zone))
        }
        // Letters and an offset are a zone as POSIX has it.
        Some(b'+' | b'-')
            if at - start >= 3 && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) =>
        {
            let of_zone = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b':' | b'-' | b'+');
            (Kind::Word, run(bytes, at, of_zone))
        }
        _ => (Kind::Word, at),
    }
}

/// Where a date ends of which the first separator is here: before a `T` that follows its last digits.
fn end_of_date(bytes: &[u8], mut at: usize, separator: u8) -> usize {
    // A month's name may only be what stands in the middle.
    if bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic) {
        at = run(bytes, at + 1, |b| b.is_ascii_alphabetic());
    }
    run(bytes, at, |b| b == separator || b.is_ascii_digit())
}

/// What has been read so far.
#[derive(Default)]
struct State {
    year: Option<(i64, usize)>,
    month: Option<i64>,
    /// Whether the month was written as a word.
    month_named: bool,
    day: Option<i64>,
    day_of_year: Option<i64>,
    days: Option<i64>,
    time: Option<i64>,
    offset: Option<i32>,
    zone: Option<Zone>,
    bc: bool,
    half: Option<bool>,
    special: Option<&'static str>,
    julian_next: bool,
    time_next: bool,
}

/// Reads a text.
///
/// # Errors
/// 22007, 22008, 22009, 22023.
pub fn parse(context: &EvalContext, expect: Expect, text: &str) -> Result<Parsed> {
    read(context, expect, text).map_err(|refusal| refuse(refusal, expect.name(), text))
}

fn read(context: &EvalContext, expect: Expect, text: &str) -> Outcome<Parsed> {
    let mut state = State::default();
    let tokens = tokenize(text)?;
    if tokens.is_empty() {
        return Err(Refusal::Syntax);
    }
    for token in &tokens {
        match token.kind {
            Kind::Word => state.word(token)?,
            Kind::Date => state.date(&token.text, context.date_style.order)?,
            Kind::Time => state.set_time(clock(&token.text)?)?,
            Kind::Offset => state.offset(&token.text, expect)?,
            Kind::Number => state.number(&token.text, expect, context.date_style.order)?,
            Kind::Fraction => state.fraction(&token.text, expect)?,
        }
    }
    state.finish(context, expect)
}

/// `hh:mm[:ss[.ffffff]]` in microseconds; hours are not bounded here.
fn clock(text: &str) -> Outcome<i64> {
    let mut parts = text.splitn(3, ':');
    let number = |part: Option<&str>| -> Outcome<i64> {
        part.filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
            .ok_or(Refusal::Syntax)?
            .parse()
            .map_err(|_| Refusal::Field)
    };
    let hour = number(parts.next())?;
    let second_part = parts.next();
    let third = parts.next();
    let (minute_text, seconds_text) = match (second_part, third) {
        // `mm:ss.f` has no hours.
        (Some(part), None) if part.contains('.') => return minutes_and_seconds(hour, part),
        (minute, seconds) => (minute, seconds),
    };
    let minute = number(minute_text)?;
    let (second, micros) = match seconds_text {
        None => (0, 0),
        Some(seconds) => seconds_of(seconds)?,
    };
    if minute > 59 || second > 60 || hour > 24 * 365 * 300_000 {
        return Err(Refusal::Field);
    }
    if hour > 24 {
        return Err(Refusal::Field);
    }
    let total = hour * HOUR + minute * MINUTE + second * SECOND + micros;
    if total > DAY {
        return Err(Refusal::Field);
    }
    Ok(total)
}

fn minutes_and_seconds(minute: i64, part: &str) -> Outcome<i64> {
    let (second, micros) = seconds_of(part)?;
    if minute > 59 || second > 60 {
        return Err(Refusal::Field);
    }
    Ok(minute * MINUTE + second * SECOND + micros)
}

/// Seconds and rounded microseconds of `ss[.ffffff]`.
fn seconds_of(text: &str) -> Outcome<(i64, i64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(Refusal::Syntax);
    }
    let seconds = whole.parse().map_err(|_| Refusal::Field)?;
    Ok((seconds, fraction_micros(fraction)))
}

/// The microseconds of the digits after a point, rounded.
pub fn fraction_micros(digits: &str) -> i64 {
    if digits.is_empty() {
        return 0;
    }
    let value: f64 = format!("0.{digits}").parse().unwrap_or(0.0);
    (value * 1e6).round_ties_even() as i64
}

/// Seconds east of `±hh[:mm[:ss]]`, `±hhmm`.
pub fn displacement(text: &str) -> Outcome<i32> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = |part: &str| part.parse::<i32>().map_err(|_| Refusal::Syntax);
    // Behind a colon there may be nothing.
    let part = |part: &str| match part {
        "" => Ok(0),
        part => number(part),
    };
    let parts: Vec<&str> = digits.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [h] if h.len() > 2 => (number(&h[..h.len() - 2])?, number(&h[h.len() - 2..])?, 0),
        [h] => (number(h)?, 0, 0),
        [h, m] => (number(h)?, part(m)?, 0),
        [h, m, s] => (number(h)?, part(m)?, part(s)?),
        _ => return Err(Refusal::Syntax),
    };
    if !(0..=15).contains(&hours) || !(0..60).contains(&minutes) || !(0..60).contains(&seconds) {
        return Err(Refusal::Displacement);
    }
    let total = hours * 3_600 + minutes * 60 + seconds;
    assert!(total <= OFFSET_MAX, "offset {total} > {OFFSET_MAX}");
    Ok(sign * total)
}

impl State {
    fn set_time(&mut self, micros: i64) -> Outcome<()> {
        match self.time.replace(micros) {
            None => Ok(()),
            Some(_) => Err(Refusal::Syntax),
        }
    }

    fn set_year(&mut self, digits: &str) -> Outcome<()> {
        let year = digits.parse::<i32>().map_err(|_| Refusal::Field)?;
        match self.year.replace((i64::from(year), digits.len())) {
            None => Ok(()),
            Some(_) => Err(Refusal::Syntax),
        }
    }

    fn set_month(&mut self, month: i64) -> Outcome<()> {
        // `1 Jan` after a number taken for a month: that number was the day.
        match (self.month, self.day) {
            (None, _) => {}
            (Some(before @ 1..=31), None) if !self.month_named => self.day = Some(before),
            _ => return Err(Refusal::Syntax),
        }
        (self.month, self.month_named) = (Some(month), true);
        Ok(())
    }

    fn set_day(&mut self, day: i64) -> Outcome<()> {
        match self.day.replace(day) {
            None => Ok(()),
            Some(_) => Err(Refusal::Syntax),
        }
    }

    fn word(&mut self, token: &Token) -> Outcome<()> {
        let word = token.text.as_str();
        if let Some(month) = month_named(word) {
            return self.set_month(month);
        }
        match word {
            "am" | "a.m." => self.half = Some(false),
            "pm" | "p.m." => self.half = Some(true),
            "ad" => self.bc = false,
            "bc" => self.bc = true,
            "t" => self.time_next = true,
            "j" | "jd" | "julian" => self.julian_next = true,
            "at" | "on" => {}
            "allballs" => {
                self.set_time(0)?;
                self.offset = Some(0);
            }
            "dst" => self.offset = self.offset.map(|offset| offset + 3_600),
            "now" => self.set_special("now")?,
            "today" => self.set_special("today")?,
            "tomorrow" => self.set_special("tomorrow")?,
            "yesterday" => self.set_special("yesterday")?,
            "epoch" => self.set_special("epoch")?,
            "infinity" | "+infinity" => self.set_special("infinity")?,
            "-infinity" => self.set_special("-infinity")?,
            _ if is_weekday(word) => {}
            _ => return self.zone_word(word),
        }
        Ok(())
    }

    fn zone_word(&mut self, word: &str) -> Outcome<()> {
        if self.offset.is_some() || self.zone.is_some() {
            return Err(Refusal::Syntax);
        }
        let abbreviated = Zone::abbreviated(word);
        if let Some(seconds) = abbreviated.as_ref().and_then(Zone::fixed_offset) {
            self.offset = Some(seconds);
            return Ok(());
        }
        let posix = || {
            word.contains(['+', '-'])
                .then(|| Zone::posix(word))
                .flatten()
        };
        match abbreviated.or_else(|| Zone::named(word)).or_else(posix) {
            Some(zone) => {
                match zone.fixed_offset() {
                    Some(seconds) => self.offset = Some(seconds),
                    None => self.zone = Some(zone),
                }
                Ok(())
            }
            None if word.contains('/') => Err(Refusal::Zone(word.to_owned())),
            None => Err(Refusal::Syntax),
        }
    }

    fn set_special(&mut self, word: &'static str) -> Outcome<()> {
        match self.special.replace(word) {
            None => Ok(()),
            Some(_) => Err(Refusal::Syntax),
        }
    }

    /// A date in one word: `2024-02-29`, `2/29/2024`, `29-Feb-2024`, `2024.060`.
    fn date(&mut self, text: &str, order: DateOrder) -> Outcome<()> {
        let separator = text
            .chars()
            .find(|c| matches!(c, '-' | '/' | '.'))
            .unwrap_or('-');
        let parts: Vec<&str> = text.split(separator).filter(|p| !p.is_empty()).collect();
        if parts.len() < 2 || parts.len() > 3 {
            return Err(Refusal::Syntax);
        }
        if self.year.is_some() || self.day.is_some() {
            return Err(Refusal::Syntax);
        }
        let named = parts.iter().position(|part| month_named(part).is_some());
        let number = |part: &str| match part.bytes().all(|b| b.is_ascii_digit()) {
            true => part
                .parse::<i32>()
                .map(i64::from)
                .map_err(|_| Refusal::Field),
            false => Err(Refusal::Syntax),
        };
        if let Some(index) = named {
            self.set_month(month_named(parts[index]).unwrap_or(0))?;
            let others: Vec<&str> = (0..parts.len())
                .filter(|i| *i != index)
                .map(|i| parts[i])
                .collect();
            let [first, second] = others[..] else {
                return Err(Refusal::Syntax);
            };
            // What is first is the year where it is long or the style says so, but for a short one
            // that a long one follows.
            let long = |part: &str| part.len() > 2;
            let year_first = long(first) || order == DateOrder::YearMonthDay && !long(second);
            let (year, day) = match year_first {
                true => (first, second),
                false => (second, first),
            };
            number(year)?;
            self.set_year(year)?;
            return self.set_day(number(day)?);
        }
        if parts[0].len() >= 3 && parts.len() == 2 && parts[1].len() == 3 {
            number(parts[0])?;
            self.set_year(parts[0])?;
            self.day_of_year = Some(number(parts[1])?);
            return Ok(());
        }
        let [first, second, third] = parts[..] else {
            return Err(Refusal::Syntax);
        };
        let (year, month, day) = match first.len() {
            0..=2 => match order {
                DateOrder::MonthDayYear => (third, first, second),
                DateOrder::DayMonthYear => (third, second, first),
                DateOrder::YearMonthDay => (first, second, third),
            },
            _ => (first, second, third),
        };
        number(year)?;
        self.set_year(year)?;
        self.month = Some(number(month)?);
        self.set_day(number(day)?)
    }

    /// Digits alone: a part of a date by what is still missing, a whole date, or a time.
    fn number(&mut self, text: &str, expect: Expect, order: DateOrder) -> Outcome<()> {
        let value = text.parse::<i32>().map_err(|_| Refusal::Field)?;
        let value = i64::from(value);
        if std::mem::take(&mut self.julian_next) {
            self.days = Some(value - calendar::JULIAN_EPOCH);
            return Ok(());
        }
        let time_only = matches!(expect, Expect::Time | Expect::TimeTz);
        let have_date = self.year.is_some() && self.month.is_some() && self.day.is_some();
        let after_mark = std::mem::take(&mut self.time_next);
        if after_mark || have_date || (time_only && self.month.is_none()) {
            return self.digits_of_time(text, "", after_mark);
        }
        if text.len() >= 6 && self.year.is_none() && self.month.is_none() && self.day.is_none() {
            // yyyymmdd or yymmdd
            let split = text.len() - 4;
            self.set_year(&text[..split])?;
            self.month = text[split..split + 2].parse().ok();
            self.day = text[split + 2..].parse().ok();
            return Ok(());
        }
        match (self.year, self.month, self.day) {
            (None, _, _) if text.len() >= 3 => match text.len() {
                3 if self.year.is_some() => {
                    self.day_of_year = Some(value);
                    Ok(())
                }
                _ => self.set_year(text),
            },
            (Some(_), None, None) if text.len() == 3 => {
                self.day_of_year = Some(value);
                Ok(())
            }
            (None, None, None) if order == DateOrder::YearMonthDay => self.set_year(text),
            (None, None, None) if order == DateOrder::DayMonthYear => self.set_day(value),
            (None, Some(_), None) if self.month_named && order == DateOrder::YearMonthDay => {
                self.set_year(text)
            }
            // `08 Jan 1999`, where the year is expected first: that was the day.
            (Some((day, 1..=2)), Some(_), None) if self.month_named && text.len() >= 3 => {
                self.year = None;
                self.set_day(day)?;
                self.set_year(text)
            }
            (_, None, _) => {
                self.month = Some(value);
                Ok(())
            }
            (_, Some(_), None) => self.set_day(value),
            (None, Some(_), Some(_)) => self.set_year(text),
            _ => Err(Refusal::Syntax),
        }
    }

    fn fraction(&mut self, text: &str, expect: Expect) -> Outcome<()> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if std::mem::take(&mut self.julian_next) {
            let day = whole.parse::<i32>().map_err(|_| Refusal::Field)?;
            let day = i64::from(day);
            self.days = Some(day - calendar::JULIAN_EPOCH);
            let part: f64 = format!("0.{fraction}").parse().unwrap_or(0.0);
            return self.set_time((part * DAY as f64).round() as i64);
        }
        let no_date = self.year.is_none() && self.month.is_none();
        if no_date
            && matches!(
                expect,
                Expect::Date | Expect::Timestamp | Expect::TimestampTz
            )
        {
            if fraction.len() == 3 && whole.len() >= 3 && whole.len() <= 6 {
                self.set_year(whole)?;
                self.day_of_year = fraction.parse().ok();
                return Ok(());
            }
            return Err(Refusal::Syntax);
        }
        self.digits_of_time(whole, fraction, false)
    }

    /// `hhmmss`, `hhmm`, and `hh` after a `T`.
    fn digits_of_time(&mut self, digits: &str, fraction: &str, after_mark: bool) -> Outcome<()> {
        let number = |part: &str| part.parse::<i64>().map_err(|_| Refusal::Syntax);
        let (hour, minute, second) = match digits.len() {
            6 => (
                number(&digits[..2])?,
                number(&digits[2..4])?,
                number(&digits[4..])?,
            ),
            4 if fraction.is_empty() => (number(&digits[..2])?, number(&digits[2..])?, 0),
            2 if after_mark && fraction.is_empty() => (number(digits)?, 0, 0),
            _ => return Err(Refusal::Syntax),
        };
        if hour > 24 || minute > 59 || second > 60 {
            return Err(Refusal::Field);
        }
        let micros = fraction_micros(fraction);
        self.set_time(hour * HOUR + minute * MINUTE + second * SECOND + micros)
    }

    /// A sign and digits: a zone, or the second part of a date.
    fn offset(&mut self, text: &str, expect: Expect) -> Outcome<()> {
        let time_known = self.time.is_some()
            || matches!(
                expect,
                Expect::Date | Expect::TimestampTz | Expect::Timestamp
            ) && (self.day.is_some() || self.special.is_some());
        if !time_known && self.offset.is_none() && self.zone.is_none() {
            return Err(Refusal::Syntax);
        }
        let seconds = displacement(text)?;
        self.offset = Some(match self.offset {
            // `UTC+3` and the like lie west, as POSIX has it.
            Some(base) => base - seconds,
            None => seconds,
        });
        Ok(())
    }

    fn finish(mut self, context: &EvalContext, expect: Expect) -> Outcome<Parsed> {
        if let Some(special) = self.special {
            return self.finish_special(context, special);
        }
        let mut time = self.time.unwrap_or(0);
        if let Some(afternoon) = self.half {
            let hour = time / HOUR;
            if hour > 12 || self.time.is_none() {
                return Err(Refusal::Field);
            }
            match (afternoon, hour) {
                (true, 0..=11) => time += 12 * HOUR,
                (false, 12) => time -= 12 * HOUR,
                _ => {}
            }
        }
        let mut fields = Fields::of_time(time);
        let has_date = self.year.is_some()
            || self.month.is_some()
            || self.day.is_some()
            || self.days.is_some();
        let time_type = matches!(expect, Expect::Time | Expect::TimeTz);
        if has_date {
            (fields.year, fields.month, fields.day) = self.finish_date()?;
        } else if !time_type || self.time.is_none() {
            return Err(Refusal::Syntax);
        }
        let offset = match (&self.zone, self.offset) {
            (None, offset) => offset,
            (Some(zone), None) => {
                if time_type && !has_date && zone.is_abbreviation() {
                    Some(zone.offset_at(context.transaction_start))
                } else if time_type && !has_date {
                    // The offset of a zone with rules depends on a date.
                    return Err(Refusal::Syntax);
                } else {
                    let local = fields.timestamp().unwrap_or(i64::MAX / 2);
                    Some(zone.offset_of_local(local))
                }
            }
            (Some(_), Some(_)) => return Err(Refusal::Syntax),
        };
        Ok(Parsed::Moment {
            fields,
            offset,
            has_date,
            has_time: self.time.is_some(),
        })
    }

    fn finish_special(&self, context: &EvalContext, special: &str) -> Outcome<Parsed> {
        let has_date = self.year.is_some() || self.month.is_some() || self.day.is_some();
        if has_date {
            return Err(Refusal::Syntax);
        }
        let shift = match special {
            "now" if self.time.is_none() => return Ok(Parsed::Now),
            "epoch" if self.time.is_none() => return Ok(Parsed::Epoch),
            "infinity" if self.time.is_none() => return Ok(Parsed::Infinity { negative: false }),
            "-infinity" if self.time.is_none() => return Ok(Parsed::Infinity { negative: true }),
            "today" => 0,
            "tomorrow" => 1,
            "yesterday" => -1,
            _ => return Err(Refusal::Syntax),
        };
        let now = context.time_zone.to_local(context.transaction_start);
        let (year, month, day) = calendar::civil_from_days(now.div_euclid(DAY) + shift);
        let mut fields = Fields::of_time(self.time.unwrap_or(0));
        (fields.year, fields.month, fields.day) = (year, month, day);
        Ok(Parsed::Moment {
            fields,
            offset: self.offset,
            has_date: true,
            has_time: self.time.is_some(),
        })
    }

    fn finish_date(&mut self) -> Outcome<(i64, i64, i64)> {
        if let Some(days) = self.days {
            return Ok(calendar::civil_from_days(days));
        }
        let Some((mut year, width)) = self.year else {
            return Err(Refusal::Syntax);
        };
        if self.bc {
            if year <= 0 {
                return Err(Refusal::Field);
            }
            year = 1 - year;
        } else if width <= 2 {
            year += if year < 70 { 2000 } else { 1900 };
        } else if year == 0 {
            return Err(Refusal::Field);
        }
        if let Some(of_year) = self.day_of_year {
            if !(1..=365 + i64::from(calendar::is_leap(year))).contains(&of_year) {
                return Err(Refusal::Field);
            }
            let days = calendar::days_from_civil(year, 1, of_year);
            return Ok(calendar::civil_from_days(days));
        }
        let (Some(month), Some(day)) = (self.month, self.day) else {
            return Err(Refusal::Syntax);
        };
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(Refusal::MonthOrDay);
        }
        if day > days_in_month(year, month) {
            return Err(Refusal::Field);
        }
        Ok((year, month, day))
    }
}
