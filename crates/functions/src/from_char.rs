//! `to_date` and `to_timestamp`: a text read by a template (manual, section 9.8).
//!
//! The text is read pattern by pattern. Where a pattern is followed by another that is a number, it
//! takes as many characters as it is long, else all the digits there are; white space and separators
//! count for little unless the template says FX:
//!
//! ```text
//! to_timestamp('5  Dec 2000', 'DD-Mon-YYYY')     2000-12-05
//! to_timestamp('20001205', 'YYYYMMDD')           2000-12-05
//! ```
//! What was read are numbers of [`Told`]; a date and a time are made of them afterwards, since a day
//! may be told by its month, by its week, or by its number in the year.
//!
//! [`standard_moment`] reads by the templates of jsonpath, where nothing is passed over, and the patterns
//! say of which type the value is.
//!
//! # What it leaves out
//! Words of other locales (`TM`): they are always English.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::template::{is_separator, is_space, parts, standard_parts, Part, Pattern};
use super::to_char::{DAYS, MONTHS};
use super::Call;
use types::datetime::calendar::{
    civil_from_days, date_in_range, days_from_civil, days_in_month, iso_week_start, Fields,
    JULIAN_EPOCH,
};
use types::datetime::{timestamp, SECOND};
use types::{Datum, TypeId};

/// A zone is at most so many hours away.
const ZONE_HOURS_MAX: i64 = 15;

const FIXED_HINT: &str = "If your source string is not fixed-width, try using the \"FM\" modifier.";

const ROMAN: [&str; 12] = [
    "XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I",
];

/// What a text has told. Nothing is 0, as it is in PostgreSQL.
#[derive(Debug, Default)]
struct Told {
    convention: Option<Convention>,
    hour: i64,
    minute: i64,
    second: i64,
    seconds_of_day: i64,
    millis: i64,
    micros: i64,
    /// The digits of a second that FF1 to FF6 ask for.
    digits: Option<i32>,
    is_twelve_hours: bool,
    afternoon: i64,
    before_christ: i64,
    century: i64,
    year: i64,
    /// The digits of the pattern that told it.
    year_digits: i64,
    month: i64,
    week_of_month: i64,
    week: i64,
    day_of_year: i64,
    day: i64,
    /// From Sunday, which is 1.
    weekday: i64,
    julian: i64,
    zone_sign: i64,
    zone_hours: i64,
    zone_minutes: i64,
}

/// By what a date is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Convention {
    Gregorian,
    IsoWeek,
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

fn invalid(value: &str, pattern: &Pattern<'_>) -> Error {
    wrong(format!(
        "invalid value \"{value}\" for \"{}\"",
        pattern.written
    ))
}

/// Sets what is not told yet.
fn set(told: &mut i64, value: i64, pattern: &Pattern<'_>) -> Result<()> {
    if *told != 0 && *told != value {
        let message = format!(
            "conflicting values for \"{}\" field in formatting string",
            pattern.written
        );
        let detail = "This value contradicts a previous setting for the same field type.";
        return Err(wrong(message).with_detail(detail));
    }
    *told = value;
    Ok(())
}

/// A text as far as it is not read.
struct Reader<'s> {
    rest: &'s str,
    /// FX: what is in the template is in the text, character by character.
    is_fixed: bool,
    /// And is the same there.
    is_standard: bool,
    /// Characters that were passed over beyond those of the template.
    passed: i64,
    /// The character before the rest.
    before: Option<char>,
}

/// The number with which a text begins after white space, and how many bytes that takes: none if there
/// is no number.
fn number(text: &str) -> (i64, usize) {
    let body = text.trim_start_matches(is_space);
    let (sign, digits) = match body.as_bytes().first() {
        Some(b'-') => (-1, &body[1..]),
        Some(b'+') => (1, &body[1..]),
        _ => (1, body),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let digits = &digits[..end.unwrap_or(digits.len())];
    if digits.is_empty() {
        return (0, 0);
    }
    let magnitude = digits.parse().unwrap_or(i64::MAX);
    let end = digits.as_ptr() as usize - text.as_ptr() as usize + digits.len();
    (sign * magnitude, end)
}

/// The beginning of a text, of at most so many bytes.
fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl<'s> Reader<'s> {
    fn skip(&mut self, bytes: usize) {
        self.before = self.rest[..bytes].chars().next_back().or(self.before);
        self.rest = &self.rest[bytes..];
    }

    fn skip_character(&mut self) {
        let bytes = self.rest.chars().next().map_or(0, char::len_utf8);
        self.skip(bytes);
    }

    fn skip_spaces(&mut self) {
        while self.rest.starts_with(is_space) {
            self.skip_character();
            self.passed += 1;
        }
    }

    /// A character of the template that is no pattern.
    fn pass(&mut self, part: Part<'_>) -> Result<()> {
        if self.is_standard {
            let (c, what) = match part {
                Part::Text(c) => (c, "character"),
                Part::Space(c) | Part::Separator(c) => (c, "separator"),
                Part::Pattern(_) => return Ok(()),
            };
            if !self.rest.starts_with(c) {
                return Err(wrong(format!("unmatched format {what} \"{c}\"")));
            }
        }
        if self.is_fixed {
            self.skip_character();
            return Ok(());
        }
        match part {
            Part::Text(_) if self.passed > 0 => self.passed -= 1,
            Part::Text(_) => self.skip_character(),
            _ => {
                self.passed -= 1;
                if self.rest.starts_with(|c| is_space(c) || is_separator(c)) {
                    self.skip_character();
                    self.passed += 1;
                }
            }
        }
        Ok(())
    }

    /// A number of so many digits, or of any where nothing that is a number comes after it; also how
    /// many bytes it took.
    fn number(&mut self, len: usize, pattern: &Pattern<'_>, is_open: bool) -> Result<(i64, usize)> {
        let whole = self.rest;
        let text = whole.trim_start_matches(is_space);
        let copy = head(text, len);
        let value = if !pattern.fill || is_open {
            let (value, used) = number(whole);
            self.skip(used);
            value
        } else {
            if text.len() < len {
                let message = format!(
                    "source string too short for \"{}\" formatting field",
                    pattern.written
                );
                let detail = format!(
                    "Field requires {len} characters, but only {} remain.",
                    text.len()
                );
                return Err(wrong(message).with_detail(detail).with_hint(FIXED_HINT));
            }
            let (value, used) = number(copy);
            if used > 0 && used < len {
                let detail =
                    format!("Field requires {len} characters, but only {used} could be parsed.");
                let error = invalid(copy, pattern);
                return Err(error.with_detail(detail).with_hint(FIXED_HINT));
            }
            self.skip(whole.len() - text.len() + used);
            value
        };
        let used = whole.len() - self.rest.len();
        if used == 0 {
            return Err(invalid(copy, pattern).with_detail("Value must be an integer."));
        }
        check_size(value, pattern)?;
        Ok((value, used))
    }

    /// The place of the first of these words that comes next, in any case.
    fn word(&mut self, words: &[&str], pattern: &Pattern<'_>) -> Result<i64> {
        let is_next = |word: &&str| {
            let next = self.rest.as_bytes().get(..word.len());
            next.is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()))
        };
        let Some(place) = words.iter().position(is_next) else {
            let end = self.rest.find(is_space).unwrap_or(self.rest.len());
            let detail = "The given value did not match any of the allowed values for this field.";
            return Err(invalid(&self.rest[..end], pattern).with_detail(detail));
        };
        self.skip(words[place].len());
        Ok(place as i64)
    }

    /// `Y,YYY`.
    fn thousands(&mut self, pattern: &Pattern<'_>) -> Result<i64> {
        let missing = || wrong("invalid input string for \"Y,YYY\"");
        let (thousands, used) = number(self.rest);
        let rest = self.rest[used..].strip_prefix(',').filter(|_| used > 0);
        let rest = rest.ok_or_else(missing)?;
        let spaces = rest.len() - rest.trim_start_matches(is_space).len();
        let (years, of_years) = number(head(rest, spaces + 3));
        if of_years == 0 {
            return Err(missing());
        }
        self.skip(used + 1 + of_years);
        let year = thousands.saturating_mul(1_000).saturating_add(years);
        check_size(year, pattern)?;
        Ok(year)
    }
}

/// # Errors
/// 22008 for what is no `integer`.
fn check_size(value: i64, pattern: &Pattern<'_>) -> Result<()> {
    if i32::try_from(value).is_ok() {
        return Ok(());
    }
    let message = format!(
        "value for \"{}\" in source string is out of range",
        pattern.written
    );
    let (least, most) = (i32::MIN, i32::MAX);
    let detail = format!("Value must be in the range {least} to {most}.");
    let state = SqlState::DATETIME_FIELD_OVERFLOW;
    Err(Error::new(state, message).with_detail(detail))
}

/// A year of which only the last digits were told, near 2020.
fn near_2020(year: i64) -> i64 {
    match year {
        0..70 | 100..520 => year + 2_000,
        70..100 => year + 1_900,
        520..1_000 => year + 1_000,
        _ => year,
    }
}

/// Whether what comes after a pattern is no number, so that its own may be of any length.
fn is_open(pattern: &Pattern<'_>, next: Option<&Part<'_>>) -> bool {
    if pattern.ordinal.is_some() {
        return true;
    }
    match next {
        None => true,
        Some(Part::Pattern(next)) => !is_number(next.name),
        Some(Part::Text(c) | Part::Space(c) | Part::Separator(c)) => !c.is_ascii_digit(),
    }
}

/// Whether what a pattern stands for is a number.
fn is_number(name: &str) -> bool {
    match name {
        "FX" | "TZH" | "OF" | "TZ" | "tz" => false,
        name => !is_word(name),
    }
}

/// Whether it is a word.
fn is_word(name: &str) -> bool {
    let plain = name.to_ascii_uppercase().replace('.', "");
    matches!(
        plain.as_str(),
        "AD" | "BC" | "AM" | "PM" | "MONTH" | "MON" | "DAY" | "DY" | "RM"
    )
}

fn convention_of(name: &str) -> Option<Convention> {
    match name {
        "IDDD" | "ID" | "IW" | "IYYY" | "IYY" | "IY" | "I" => Some(Convention::IsoWeek),
        "DDD" | "DD" | "D" | "MM" | "MONTH" | "Month" | "month" | "MON" | "Mon" | "mon" | "RM"
        | "rm" | "WW" | "W" | "Y,YYY" | "YYYY" | "YYY" | "YY" | "Y" => Some(Convention::Gregorian),
        _ => None,
    }
}

impl Told {
    /// What a text tells, read by a template.
    fn read(text: &str, template: &str) -> Result<Told> {
        Told::read_parts(text, &parts(template), false)
    }

    /// The same, by the parts of a template; as the SQL standard has it, the text has just those.
    fn read_parts(text: &str, parts: &[Part<'_>], is_standard: bool) -> Result<Told> {
        let mut told = Told::default();
        let mut reader = Reader {
            rest: text,
            is_fixed: is_standard,
            is_standard,
            passed: 0,
            before: None,
        };
        for (place, part) in parts.iter().enumerate() {
            if reader.rest.is_empty() && is_standard {
                return Err(wrong("input string is too short for datetime format"));
            }
            if reader.rest.is_empty() {
                break;
            }
            let is_loose = match part {
                Part::Pattern(pattern) => pattern.name != "FX",
                _ => place == 0,
            };
            if !reader.is_fixed && is_loose {
                reader.skip_spaces();
            }
            let Part::Pattern(pattern) = part else {
                reader.pass(*part)?;
                continue;
            };
            if let Some(convention) = convention_of(pattern.name) {
                if *told.convention.get_or_insert(convention) != convention {
                    let hint =
                        "Do not mix Gregorian and ISO week date conventions in a formatting \
                                template.";
                    let error = wrong("invalid combination of date conventions");
                    return Err(error.with_hint(hint));
                }
            }
            told.take(&mut reader, pattern, is_open(pattern, parts.get(place + 1)))?;
            if !reader.is_fixed {
                reader.passed = 0;
                reader.skip_spaces();
            }
        }
        if is_standard && !reader.rest.trim_start_matches(is_space).is_empty() {
            return Err(wrong(
                "trailing characters remain in input string after datetime format",
            ));
        }
        Ok(told)
    }

    /// Reads what one pattern stands for.
    fn take(&mut self, reader: &mut Reader<'_>, pattern: &Pattern<'_>, open: bool) -> Result<()> {
        if pattern.name == "FX" {
            reader.is_fixed = true;
            return Ok(());
        }
        let is_word = self.take_word(reader, pattern)?;
        let is_read = is_word || self.take_fraction(reader, pattern, open)?;
        if !is_read {
            self.take_number(reader, pattern, open)?;
        }
        let is_zone = matches!(pattern.name, "TZH" | "TZM");
        if pattern.ordinal.is_some() && !is_word && !is_zone {
            reader.skip_character();
            reader.skip_character();
        }
        Ok(())
    }

    /// Whether a pattern is a word, which is read then.
    fn take_word(&mut self, reader: &mut Reader<'_>, pattern: &Pattern<'_>) -> Result<bool> {
        let short =
            |names: &[&'static str]| names.iter().map(|name| &name[..3]).collect::<Vec<_>>();
        match pattern.name {
            "A.M." | "P.M." | "a.m." | "p.m." => {
                let value = reader.word(&["a.m.", "p.m."], pattern)?;
                set(&mut self.afternoon, value, pattern)?;
                self.is_twelve_hours = true;
            }
            "AM" | "PM" | "am" | "pm" => {
                let value = reader.word(&["am", "pm"], pattern)?;
                set(&mut self.afternoon, value, pattern)?;
                self.is_twelve_hours = true;
            }
            "A.D." | "B.C." | "a.d." | "b.c." => {
                let value = reader.word(&["a.d.", "b.c."], pattern)?;
                set(&mut self.before_christ, value, pattern)?;
            }
            "AD" | "BC" | "ad" | "bc" => {
                let value = reader.word(&["ad", "bc"], pattern)?;
                set(&mut self.before_christ, value, pattern)?;
            }
            "MONTH" | "Month" | "month" => {
                let value = reader.word(&MONTHS, pattern)?;
                set(&mut self.month, value + 1, pattern)?;
            }
            "MON" | "Mon" | "mon" => {
                let value = reader.word(&short(&MONTHS), pattern)?;
                set(&mut self.month, value + 1, pattern)?;
            }
            "RM" | "rm" => {
                let value = reader.word(&ROMAN, pattern)?;
                set(&mut self.month, 12 - value, pattern)?;
            }
            "DAY" | "Day" | "day" => {
                let value = reader.word(&DAYS, pattern)?;
                set(&mut self.weekday, value, pattern)?;
                self.weekday += 1;
            }
            "DY" | "Dy" | "dy" => {
                let value = reader.word(&short(&DAYS), pattern)?;
                set(&mut self.weekday, value, pattern)?;
                self.weekday += 1;
            }
            "TZ" | "tz" | "OF" => {
                let message = format!(
                    "formatting field \"{}\" is only supported in to_char",
                    pattern.written
                );
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether a pattern is a fraction of a second, which is read then: its digits are the first ones.
    fn take_fraction(
        &mut self,
        reader: &mut Reader<'_>,
        pattern: &Pattern<'_>,
        open: bool,
    ) -> Result<bool> {
        let digits = match pattern.name {
            "MS" => 3,
            "US" => 6,
            name => match name
                .strip_prefix("FF")
                .and_then(|digits| digits.parse().ok())
            {
                Some(digits) => {
                    self.digits = i32::try_from(digits).ok();
                    digits
                }
                None => return Ok(false),
            },
        };
        let (value, used) = reader.number(digits, pattern, open)?;
        let (told, of_unit) = match pattern.name {
            "MS" => (&mut self.millis, 3),
            _ => (&mut self.micros, 6),
        };
        set(told, value, pattern)?;
        *told *= 10_i64.pow(u32::try_from(of_unit - used.min(of_unit)).unwrap_or(0));
        Ok(true)
    }

    fn take_number(
        &mut self,
        reader: &mut Reader<'_>,
        pattern: &Pattern<'_>,
        open: bool,
    ) -> Result<()> {
        let mut number = |len: usize| reader.number(len, pattern, open);
        match pattern.name {
            "HH" | "HH12" => {
                self.is_twelve_hours = true;
                set(&mut self.hour, number(2)?.0, pattern)
            }
            "HH24" => set(&mut self.hour, number(2)?.0, pattern),
            "MI" => set(&mut self.minute, number(2)?.0, pattern),
            "SS" => set(&mut self.second, number(2)?.0, pattern),
            "SSSS" | "SSSSS" => {
                let len = pattern.name.len();
                set(&mut self.seconds_of_day, number(len)?.0, pattern)
            }
            "TZH" => self.take_zone(reader, pattern, open),
            "TZM" => {
                if self.zone_sign == 0 {
                    self.zone_sign = 1;
                }
                set(&mut self.zone_minutes, number(2)?.0, pattern)
            }
            "MM" => set(&mut self.month, number(2)?.0, pattern),
            "DDD" | "IDDD" => set(&mut self.day_of_year, number(3)?.0, pattern),
            "DD" => set(&mut self.day, number(2)?.0, pattern),
            "D" => set(&mut self.weekday, number(1)?.0, pattern),
            "ID" => {
                set(&mut self.weekday, number(1)?.0, pattern)?;
                self.weekday += 1;
                if self.weekday > 7 {
                    self.weekday = 1;
                }
                Ok(())
            }
            "WW" | "IW" => set(&mut self.week, number(2)?.0, pattern),
            "W" => set(&mut self.week_of_month, number(1)?.0, pattern),
            // Which of its days is meant nobody knows.
            "Q" => number(1).map(|_| ()),
            "CC" => set(&mut self.century, number(2)?.0, pattern),
            "J" => set(&mut self.julian, number(1)?.0, pattern),
            "Y,YYY" => {
                let year = reader.thousands(pattern)?;
                self.year_digits = 4;
                set(&mut self.year, year, pattern)
            }
            name => {
                let len = name.len();
                let (year, used) = number(len)?;
                self.year_digits = len as i64;
                set(&mut self.year, year, pattern)?;
                if len < 4 && used < 4 {
                    self.year = near_2020(year);
                }
                Ok(())
            }
        }
    }

    /// The hours of a zone. Their minus may have been passed over as a separator.
    fn take_zone(
        &mut self,
        reader: &mut Reader<'_>,
        pattern: &Pattern<'_>,
        open: bool,
    ) -> Result<()> {
        let is_minus = |c: char| c == '-';
        self.zone_sign = match reader.rest.starts_with(['+', '-', ' ']) {
            true => {
                let sign = if reader.rest.starts_with(is_minus) {
                    -1
                } else {
                    1
                };
                reader.skip_character();
                sign
            }
            false if reader.passed > 0 && reader.before.is_some_and(is_minus) => -1,
            false => 1,
        };
        let (hours, _) = reader.number(2, pattern, open)?;
        set(&mut self.zone_hours, hours, pattern)
    }

    /// The date and the time; `whole` is the text that told them.
    fn fields(&self, whole: &str) -> Result<Fields> {
        let overflow = || {
            let message = format!("date/time field value out of range: \"{whole}\"");
            Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
        };
        let [hour, minute, second] = self.time()?;
        let (year, month, day) = self.date(overflow)?;
        let micros = self.millis * 1_000 + self.micros;
        let is_time = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..SECOND).contains(&micros);
        if !is_time {
            return Err(overflow());
        }
        let is_zone =
            (0..=ZONE_HOURS_MAX).contains(&self.zone_hours) && (0..60).contains(&self.zone_minutes);
        if self.zone_sign != 0 && !is_zone {
            return Err(Error::new(
                SqlState::of("22009"),
                format!("time zone displacement out of range: \"{whole}\""),
            ));
        }
        Ok(Fields {
            year,
            month,
            day,
            hour,
            minute,
            second,
            micros,
        })
    }

    fn time(&self) -> Result<[i64; 3]> {
        let of_day = self.seconds_of_day;
        let or = |told: i64, other: i64| if told == 0 { other } else { told };
        let mut hour = or(self.hour, of_day / 3_600);
        let minute = or(self.minute, of_day % 3_600 / 60);
        let second = or(self.second, of_day % 60);
        if self.is_twelve_hours {
            if !(1..=12).contains(&hour) {
                let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                let hint = "Use the 24-hour clock, or give an hour between 1 and 12.";
                return Err(wrong(message).with_hint(hint));
            }
            hour = hour % 12 + 12 * i64::from(self.afternoon != 0);
        }
        Ok([hour, minute, second])
    }

    /// The year, if it was told; 0 is 1 BC.
    fn year(&self) -> Option<i64> {
        let is_bc = self.before_christ != 0;
        let century = if is_bc { -self.century } else { self.century };
        if self.year == 0 {
            return match century {
                0 => None,
                1.. => Some((century - 1) * 100 + 1),
                _ => Some(century * 100 + 1),
            };
        }
        if self.century == 0 || self.year_digits > 2 {
            let year = if is_bc { -self.year } else { self.year };
            return Some(if year < 0 { year + 1 } else { year });
        }
        Some(match (self.year % 100, century >= 0) {
            (0, true) => century * 100,
            (0, false) => century * 100 + 1,
            (year, true) => (century - 1) * 100 + year,
            (year, false) => (century + 1) * 100 - year + 1,
        })
    }

    fn date(&self, overflow: impl Fn() -> Error) -> Result<(i64, i64, i64)> {
        let told_year = self.year();
        let mut is_told = [told_year.is_some(), false, false];
        let (mut year, mut month, mut day) = (told_year.unwrap_or(0), 1, 1);
        let mut day_of_year = self.day_of_year;
        if self.julian != 0 {
            (year, month, day) = civil_from_days(self.julian - JULIAN_EPOCH);
            is_told = [true; 3];
        }
        let is_iso = self.convention == Some(Convention::IsoWeek);
        if self.week != 0 && is_iso {
            let monday = iso_week_start(year, self.week);
            let days = match self.weekday {
                0 => 0,
                1 => 6,
                weekday => weekday - 2,
            };
            (year, month, day) = civil_from_days(monday + days);
            is_told = [true; 3];
        } else if self.week != 0 {
            day_of_year = (self.week - 1) * 7 + 1;
        }
        let told_day = match self.week_of_month {
            0 => self.day,
            week => (week - 1) * 7 + 1,
        };
        if told_day != 0 {
            day = told_day;
            is_told[2] = true;
        }
        if self.month != 0 {
            month = self.month;
            is_told[1] = true;
        }
        if day_of_year != 0 && (month <= 1 || day <= 1) {
            if year == 0 && self.before_christ == 0 {
                return Err(wrong(
                    "cannot calculate day of year without year information",
                ));
            }
            if is_iso {
                let first = iso_week_start(year, 1);
                (year, month, day) = civil_from_days(first - 1 + day_of_year);
            } else {
                let (of_month, of_day) = place_in_year(year, day_of_year);
                month = if month <= 1 { of_month } else { month };
                day = if day <= 1 { of_day } else { day };
            }
            is_told = [is_told[0] || is_iso, true, true];
        }
        let is_month = !is_told[1] || (1..=12).contains(&month);
        let is_day = !is_told[2] || (1..=31).contains(&day);
        let fits = is_told != [true; 3] || is_month && day <= days_in_month(year, month);
        match is_month && is_day && fits {
            true => Ok((year, month, day)),
            false => Err(overflow()),
        }
    }
}

/// The month and the day of a day of a year; month 13 if the year has fewer days.
fn place_in_year(year: i64, day_of_year: i64) -> (i64, i64) {
    let mut before = 0;
    for month in 1..=12 {
        let days = days_in_month(year, month);
        if day_of_year <= before + days {
            return (month, day_of_year - before);
        }
        before += days;
    }
    (13, day_of_year - before)
}

pub(crate) fn to_timestamp(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, template) = (args.text(0)?, args.text(1)?);
    let told = Told::read(text, template)?;
    let fields = told.fields(text)?;
    let at = match told.zone_sign {
        0 => {
            let local = fields.timestamp().ok_or_else(timestamp::out_of_range)?;
            timestamp::to_utc(&call.context.time_zone, local)?
        }
        sign => {
            let offset = sign * (told.zone_hours * 3_600 + told.zone_minutes * 60);
            let second = fields.second - offset;
            let fields = Fields { second, ..fields };
            fields.timestamp().ok_or_else(timestamp::out_of_range)?
        }
    };
    let rounded = match told.digits {
        Some(digits) => timestamp::round(at, digits)?,
        None => at,
    };
    Ok(Datum::TimestampTz(rounded))
}

/// Which kinds of values a template has patterns of: a date, a time, a zone.
fn kinds_of(parts: &[Part<'_>]) -> [bool; 3] {
    let mut has = [false; 3];
    for part in parts {
        let Part::Pattern(pattern) = part else {
            continue;
        };
        let plain = pattern.name.to_ascii_uppercase().replace('.', "");
        let kind = match plain.as_str() {
            "FX" => continue,
            "AM" | "PM" | "HH" | "HH12" | "HH24" | "MI" | "SS" | "SSSS" | "SSSSS" | "MS" | "US" => {
                1
            }
            "TZ" | "TZH" | "TZM" | "OF" => 2,
            name if name.starts_with("FF") => 1,
            _ => 0,
        };
        has[kind] = true;
    }
    has
}

/// What the template of a jsonpath makes of a text: its type, the value, and of what has a zone the
/// seconds east of Greenwich.
pub(crate) fn standard_moment(
    text: &str,
    template: &str,
) -> std::result::Result<Result<(TypeId, Datum, i64)>, Error> {
    let parts = standard_parts(template)
        .map_err(|stray| wrong(format!("invalid datetime format separator: \"{stray}\"")))?;
    Ok(moment_by(text, &parts))
}

fn moment_by(text: &str, parts: &[Part<'_>]) -> Result<(TypeId, Datum, i64)> {
    let told = Told::read_parts(text, parts, true)?;
    let fields = told.fields(text)?;
    let round = |micros: i64| match told.digits {
        Some(digits) => timestamp::round(micros, digits),
        None => Ok(micros),
    };
    let of_day = ((fields.hour * 60 + fields.minute) * 60 + fields.second) * SECOND + fields.micros;
    let offset = told.zone_sign * (told.zone_hours * 3_600 + told.zone_minutes * 60);
    let local = || fields.timestamp().ok_or_else(timestamp::out_of_range);
    Ok(match kinds_of(parts) {
        [true, true, true] => {
            let at = round(local()?)? - offset * SECOND;
            (TypeId::TIMESTAMPTZ, Datum::TimestampTz(at), offset)
        }
        [true, true, false] => (TypeId::TIMESTAMP, Datum::Timestamp(round(local()?)?), 0),
        [true, false, true] => return Err(wrong("datetime format is zoned but not timed")),
        [true, false, false] => (TypeId::DATE, date_of(&fields, text)?, 0),
        [false, true, true] => {
            let zone = i32::try_from(-offset).unwrap_or(0);
            (TypeId::TIMETZ, Datum::TimeTz(round(of_day)?, zone), offset)
        }
        [false, true, false] => (TypeId::TIME, Datum::Time(round(of_day)?), 0),
        [false, false, _] => return Err(wrong("datetime format is not dated and not timed")),
    })
}

fn date_of(fields: &Fields, text: &str) -> Result<Datum> {
    let days = days_from_civil(fields.year, fields.month, fields.day);
    match i32::try_from(days) {
        Ok(days) if date_in_range(i64::from(days)) => Ok(Datum::Date(days)),
        _ => Err(Error::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date out of range: \"{text}\""),
        )),
    }
}

pub(crate) fn to_date(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, template) = (args.text(0)?, args.text(1)?);
    date_of(&Told::read(text, template)?.fields(text)?, text)
}
