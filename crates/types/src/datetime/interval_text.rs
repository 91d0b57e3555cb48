//! Text forms of intervals: `1 year 2 mons 3 days 04:05:06`, `1-2`, `P1Y2M3DT4H5M6S`, and back.

use base::error::{Error, Result, SqlState};

use super::interval::{is_minute_to_second, least_unit, out_of_range, Interval, Unit};
use super::parse::fraction_micros;
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::IntervalStyle;

/// A unit of time in an interval's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Micros(i64),
    Days(i64),
    Months(i64),
    /// Multiples of a year, whose fractions are rounded to months.
    Years(i64),
}

fn scale_named(word: &str) -> Option<Scale> {
    Some(match word {
        "us" | "usec" | "usecs" | "usecond" | "useconds" => Scale::Micros(1),
        _ if word.starts_with("microsecon") => Scale::Micros(1),
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Scale::Micros(1_000),
        _ if word.starts_with("millisecon") => Scale::Micros(1_000),
        "s" | "sec" | "secs" | "second" | "seconds" => Scale::Micros(SECOND),
        "m" | "min" | "mins" | "minute" | "minutes" => Scale::Micros(MINUTE),
        "h" | "hr" | "hrs" | "hour" | "hours" => Scale::Micros(HOUR),
        "d" | "day" | "days" => Scale::Days(1),
        "w" | "week" | "weeks" => Scale::Days(7),
        "mon" | "mons" | "month" | "months" => Scale::Months(1),
        "y" | "yr" | "yrs" | "year" | "years" => Scale::Years(1),
        "dec" | "decs" | "decade" | "decades" => Scale::Years(10),
        "c" | "cent" | "century" | "centuries" => Scale::Years(100),
        "mil" | "mils" | "millennia" => Scale::Years(1_000),
        _ if word.starts_with("millennium") => Scale::Years(1_000),
        _ => return None,
    })
}

enum Refusal {
    Syntax,
    Overflow,
}

/// A sum that an interval can keep.
fn bounded(sum: i64, more: i64) -> std::result::Result<i64, Refusal> {
    sum.checked_add(more)
        .filter(|total| i32::try_from(*total).is_ok())
        .ok_or(Refusal::Overflow)
}

/// Sums of what has been read; wider than an interval, so that only the end checks.
#[derive(Default)]
struct Sum {
    years: i64,
    months: i64,
    days: i64,
    micros: i64,
}

impl Sum {
    /// Adds `whole.fraction` units; the fraction has the sign of the whole.
    fn add(&mut self, scale: Scale, whole: i64, fraction: f64) -> std::result::Result<(), Refusal> {
        let product = |unit: i64| whole.checked_mul(unit).ok_or(Refusal::Overflow);
        match scale {
            Scale::Micros(unit) => {
                self.add_micros(product(unit)?)?;
                self.add_fraction(fraction, unit)?;
            }
            Scale::Days(unit) => {
                self.days = bounded(self.days, product(unit)?)?;
                self.add_days(fraction * unit as f64)?;
            }
            Scale::Months(unit) => {
                self.months = bounded(self.months, product(unit)?)?;
                self.add_days(fraction * 30.0)?;
            }
            Scale::Years(unit) => {
                self.years = bounded(self.years, product(unit)?)?;
                let more = (fraction * unit as f64 * 12.0).round_ties_even() as i64;
                self.months = bounded(self.months, more)?;
            }
        }
        Ok(())
    }

    fn add_micros(&mut self, more: i64) -> std::result::Result<(), Refusal> {
        self.micros = self.micros.checked_add(more).ok_or(Refusal::Overflow)?;
        Ok(())
    }

    fn add_days(&mut self, days: f64) -> std::result::Result<(), Refusal> {
        let whole = days.trunc();
        self.days = bounded(self.days, whole as i64)?;
        self.add_fraction(days - whole, DAY)
    }

    fn add_fraction(&mut self, fraction: f64, unit: i64) -> std::result::Result<(), Refusal> {
        if fraction == 0.0 {
            return Ok(());
        }
        let micros = fraction * unit as f64;
        let whole = micros.trunc();
        let rest = micros - whole;
        let mut more = whole as i64;
        if rest > 0.5 {
            more += 1;
        } else if rest < -0.5 {
            more -= 1;
        }
        self.add_micros(more)
    }

    /// Adds a number of ISO 8601 without a designator: `yyyymmdd` or years, `hhmmss` or hours.
    fn add_undesignated(
        &mut self,
        (negative, whole, part): (bool, i64, f64),
        width: usize,
        in_time: bool,
    ) -> std::result::Result<(), Refusal> {
        let (mut units, mut rest) = ([0; 3], whole);
        match (in_time, width) {
            (false, 8) | (true, 6) => {
                for unit in units.iter_mut().rev() {
                    (*unit, rest) = (rest % 100, rest / 100);
                }
                units[0] += rest * 100;
            }
            _ => units[0] = whole,
        }
        let scales = match in_time {
            false => [Scale::Years(1), Scale::Months(1), Scale::Days(1)],
            true => [HOUR, MINUTE, SECOND].map(Scale::Micros),
        };
        let parts = match (in_time, width) {
            (false, 8) => [0.0, 0.0, part],
            // PostgreSQL leaves the fraction out.
            (true, 6) => [0.0; 3],
            _ => [part, 0.0, 0.0],
        };
        let sign = if negative { -1 } else { 1 };
        for ((scale, unit), part) in scales.into_iter().zip(units).zip(parts) {
            self.add(scale, sign * unit, sign as f64 * part)?;
        }
        Ok(())
    }

    fn negate(&mut self) -> std::result::Result<(), Refusal> {
        for part in [&mut self.years, &mut self.months, &mut self.days] {
            *part = bounded(0, -*part)?;
        }
        self.micros = self.micros.checked_neg().ok_or(Refusal::Overflow)?;
        Ok(())
    }
}

/// Reads an interval; the modifier says what a number without a unit counts.
///
/// # Errors
/// 22007, 22008, 22015.
pub fn parse(text: &str, typmod: i32, standard: bool) -> Result<Interval> {
    let refused = |refusal| match refusal {
        Refusal::Syntax => Error::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type interval: \"{text}\""),
        ),
        Refusal::Overflow => Error::new(
            SqlState::INTERVAL_FIELD_OVERFLOW,
            format!("interval field value out of range: \"{text}\""),
        ),
    };
    let sum = match text.trim_start().strip_prefix('P') {
        Some(body) => parse_iso(body.trim_end()).map_err(refused)?,
        None => parse_words(text, typmod, standard).map_err(refused)?,
    };
    let narrow = |part: i64| i32::try_from(part).map_err(|_| out_of_range());
    Ok(Interval {
        months: narrow(sum.years * 12 + sum.months)?,
        days: narrow(sum.days)?,
        micros: sum.micros,
    })
}

#[derive(Debug)]
enum Token {
    /// Sign, digits, fraction digits.
    Number(bool, String, Option<String>),
    /// Sign, the text with colons.
    Clock(bool, String),
    /// Sign, years, months.
    YearMonth(bool, String, String),
    Word(String),
}

/// Whether a minus stands in front and no other sign anywhere: under `sql_standard` it is of all that
/// follows.
fn is_led_by_minus(text: &str) -> bool {
    let Some(rest) = text.trim_start().strip_prefix('-') else {
        return false;
    };
    let mut before = ' ';
    rest.trim_start().chars().all(|c| {
        let is_sign = matches!(c, '+' | '-') && !before.is_ascii_digit();
        before = c;
        !is_sign
    })
}

/// The units that a digit may follow at once; with others that is how dates are written.
const BEFORE_DIGITS: [&str; 7] = ["d", "dec", "h", "m", "mon", "s", "y"];

fn tokenize(text: &str) -> std::result::Result<Vec<Token>, Refusal> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    let run = |mut at: usize, accept: fn(u8) -> bool| {
        while bytes.get(at).is_some_and(|b| accept(*b)) {
            at += 1;
        }
        at
    };
    while let Some(&first) = bytes.get(at) {
        match first {
            // As in PostgreSQL, signs that have no meaning only divide.
            b if b.is_ascii_punctuation() && !matches!(b, b'+' | b'-' | b'.') => at += 1,
            b if b.is_ascii_whitespace() || b == 0x0b => at += 1,
            b if b.is_ascii_alphabetic() => {
                let end = run(at, |b| b.is_ascii_alphabetic());
                let word = text[at..end].to_ascii_lowercase();
                let is_dated = match bytes.get(end) {
                    Some(b'-' | b'/' | b'.') => true,
                    Some(b'+' | b'0'..=b'9') => !BEFORE_DIGITS.contains(&word.as_str()),
                    _ => false,
                };
                if is_dated {
                    return Err(Refusal::Syntax);
                }
                tokens.push(Token::Word(word));
                at = end;
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => {
                let negative = first == b'-';
                if matches!(first, b'+' | b'-') {
                    at = run(at + 1, |b| b.is_ascii_whitespace());
                }
                let end = run(at, |b| b.is_ascii_digit());
                let digits = text[at..end].to_owned();
                match bytes.get(end) {
                    Some(b':') => {
                        let stop = run(end, |b| b.is_ascii_digit() || matches!(b, b':' | b'.'));
                        tokens.push(Token::Clock(negative, text[at..stop].to_owned()));
                        at = stop;
                    }
                    Some(b'-') if !digits.is_empty() => {
                        let stop = run(end + 1, |b| b.is_ascii_digit());
                        let months = text[end + 1..stop].to_owned();
                        if months.is_empty() || bytes.get(stop) == Some(&b'-') {
                            return Err(Refusal::Syntax);
                        }
                        tokens.push(Token::YearMonth(negative, digits, months));
                        at = stop;
                    }
                    Some(b'.') => {
                        let stop = run(end + 1, |b| b.is_ascii_digit());
                        let fraction = text[end + 1..stop].to_owned();
                        if digits.is_empty() && fraction.is_empty() {
                            return Err(Refusal::Syntax);
                        }
                        tokens.push(Token::Number(negative, digits, Some(fraction)));
                        at = stop;
                    }
                    _ if digits.is_empty() => return Err(Refusal::Syntax),
                    _ => {
                        tokens.push(Token::Number(negative, digits, None));
                        at = end;
                    }
                }
            }
            _ => return Err(Refusal::Syntax),
        }
    }
    Ok(tokens)
}

/// The units that have been given: none may come twice. Seconds with a fraction stand for
/// milliseconds and microseconds too, a time of day for everything below a day.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    const SECONDS: u32 = 0b111;
    const CLOCK: u32 = 0b1_1111;

    fn mark(&mut self, scale: Scale, fraction: Option<&str>) -> std::result::Result<(), Refusal> {
        self.set(match scale {
            Scale::Micros(1) => 1,
            Scale::Micros(1_000) => 1 << 1,
            Scale::Micros(SECOND) if fraction_of(fraction) != 0.0 => Seen::SECONDS,
            Scale::Micros(SECOND) => 1 << 2,
            Scale::Micros(MINUTE) => 1 << 3,
            Scale::Micros(_) => 1 << 4,
            Scale::Days(1) => 1 << 5,
            Scale::Days(_) => 1 << 6,
            Scale::Months(_) => 1 << 7,
            Scale::Years(1) => 1 << 8,
            Scale::Years(10) => 1 << 9,
            Scale::Years(100) => 1 << 10,
            Scale::Years(_) => 1 << 11,
        })
    }

    fn mark_clock(&mut self) -> std::result::Result<(), Refusal> {
        self.set(Seen::CLOCK)
    }

    fn set(&mut self, bits: u32) -> std::result::Result<(), Refusal> {
        if self.0 & bits != 0 {
            return Err(Refusal::Syntax);
        }
        self.0 |= bits;
        Ok(())
    }
}

fn fraction_of(digits: Option<&str>) -> f64 {
    match digits {
        None | Some("") => 0.0,
        Some(digits) => format!("0.{digits}").parse().unwrap_or(0.0),
    }
}

/// A number that waits for its unit: sign, digits, digits after the point.
type Pending<'a> = (bool, &'a str, Option<&'a str>);

/// What has been read of an interval in words.
struct Words<'a> {
    sum: Sum,
    seen: Seen,
    pending: Option<Pending<'a>>,
    /// A number before that one, which counts days if that counts hours.
    days: Option<Pending<'a>>,
    /// What a number without a unit counts.
    bare: Scale,
}

impl<'a> Words<'a> {
    fn add(&mut self, number: Pending<'a>, scale: Scale) -> std::result::Result<(), Refusal> {
        let (negative, digits, fraction) = number;
        self.seen.mark(scale, fraction)?;
        let sign = if negative { "-" } else { "" };
        let whole: i64 = match digits {
            "" => 0,
            digits => format!("{sign}{digits}")
                .parse()
                .map_err(|_| Refusal::Overflow)?,
        };
        let part = fraction_of(fraction);
        self.sum
            .add(scale, whole, if negative { -part } else { part })?;
        match (self.days.take(), scale) {
            // A number before that of hours, without a unit, counts days.
            (Some(days), Scale::Micros(HOUR)) => self.add(days, Scale::Days(1)),
            (Some(_), _) => Err(Refusal::Syntax),
            (None, _) => Ok(()),
        }
    }

    /// Counts a number that no unit followed.
    fn settle(&mut self, scale: Scale) -> std::result::Result<(), Refusal> {
        match self.pending.take() {
            Some(number) => self.add(number, scale),
            None => Ok(()),
        }
    }

    fn token(&mut self, token: &'a Token, typmod: i32) -> std::result::Result<(), Refusal> {
        match token {
            Token::Number(negative, digits, fraction) => {
                if self.days.is_some() {
                    return Err(Refusal::Syntax);
                }
                self.days = self.pending.take();
                self.pending = Some((*negative, digits, fraction.as_deref()));
                Ok(())
            }
            Token::Word(word) => {
                let scale = scale_named(word).ok_or(Refusal::Syntax)?;
                // A unit without a number counts nothing.
                self.settle(scale)
            }
            Token::Clock(negative, clock) => {
                // A number before a time, without a unit, counts days.
                self.settle(Scale::Days(1))?;
                self.seen.mark_clock()?;
                let micros = clock_micros(clock, typmod)?;
                self.sum
                    .add_micros(if *negative { -micros } else { micros })
            }
            Token::YearMonth(negative, years, months) => {
                if self.pending.is_some() {
                    return Err(Refusal::Syntax);
                }
                self.seen.mark(Scale::Months(1), None)?;
                let years: i64 = years.parse().map_err(|_| Refusal::Overflow)?;
                let months: i64 = months.parse().map_err(|_| Refusal::Overflow)?;
                if !(0..12).contains(&months) {
                    return Err(Refusal::Overflow);
                }
                let sign = if *negative { -1 } else { 1 };
                self.sum.add(Scale::Years(1), sign * years, 0.0)?;
                self.sum.add(Scale::Months(1), sign * months, 0.0)
            }
        }
    }
}

fn parse_words(text: &str, typmod: i32, standard: bool) -> std::result::Result<Sum, Refusal> {
    let mut tokens = tokenize(text)?;
    if standard && is_led_by_minus(text) {
        for token in &mut tokens {
            match token {
                Token::Number(negative, ..)
                | Token::Clock(negative, _)
                | Token::YearMonth(negative, ..) => *negative = true,
                Token::Word(_) => {}
            }
        }
    }
    let ago = |token: &&Token| matches!(token, Token::Word(word) if word == "ago");
    let trailing = tokens.iter().rev().take_while(ago).count();
    let (backward, tokens) = (trailing > 0, &tokens[..tokens.len() - trailing]);
    let is_counted = |token: &Token| !matches!(token, Token::Word(_));
    // A number is followed by its unit before it is said to be ago.
    let bare_ago = backward && matches!(tokens.last(), Some(Token::Number(..)));
    if bare_ago || !tokens.iter().any(is_counted) {
        return Err(Refusal::Syntax);
    }
    let mut words = Words {
        sum: Sum::default(),
        seen: Seen::default(),
        pending: None,
        days: None,
        bare: match least_unit(typmod) {
            Unit::Year => Scale::Years(1),
            Unit::Month => Scale::Months(1),
            Unit::Day => Scale::Days(1),
            Unit::Hour => Scale::Micros(HOUR),
            Unit::Minute => Scale::Micros(MINUTE),
            Unit::Second => Scale::Micros(SECOND),
        },
    };
    for token in tokens {
        words.token(token, typmod)?;
    }
    words.settle(words.bare)?;
    if backward {
        words.sum.negate()?;
    }
    Ok(words.sum)
}

/// `hh:mm[:ss[.ffffff]]`, hours of any size.
fn clock_micros(text: &str, typmod: i32) -> std::result::Result<i64, Refusal> {
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &str| -> std::result::Result<i64, Refusal> {
        match part {
            "" => Err(Refusal::Syntax),
            digits if digits.contains('.') => Err(Refusal::Syntax),
            digits => digits.parse().map_err(|_| Refusal::Overflow),
        }
    };
    let (hours, minutes, seconds) = match parts[..] {
        [h, m, s] => (number(h)?, number(m)?, s),
        [m, s] if s.contains('.') || is_minute_to_second(typmod) => (0, number(m)?, s),
        [h, m] => (number(h)?, number(m)?, "0"),
        _ => return Err(Refusal::Syntax),
    };
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    if fraction.contains('.') {
        return Err(Refusal::Syntax);
    }
    let second = number(second)?;
    if !(0..60).contains(&minutes) || !(0..=60).contains(&second) {
        return Err(Refusal::Overflow);
    }
    hours
        .checked_mul(HOUR)
        .and_then(|micros| {
            micros.checked_add(minutes * MINUTE + second * SECOND + fraction_micros(fraction))
        })
        .ok_or(Refusal::Overflow)
}

/// ISO 8601 after the `P`: designators, or the alternative `0001-02-03T04:05:06`.
fn parse_iso(body: &str) -> std::result::Result<Sum, Refusal> {
    let mut sum = Sum::default();
    // Whether a designator stood before in this part, after which every number needs one.
    let (mut in_time, mut designated) = (false, false);
    let mut rest = body;
    if rest.is_empty() {
        return Err(Refusal::Syntax);
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            if in_time {
                return Err(Refusal::Syntax);
            }
            (in_time, designated) = (true, false);
            rest = after;
            continue;
        }
        let end = end_of_number(rest);
        // A minus inside is the alternative format, and so is a colon.
        let number = &rest[..end];
        let inner = number.trim_start_matches(['+', '-']);
        if inner.contains('-') || rest[end..].starts_with(':') {
            rest = parse_alternative(&mut sum, rest, &mut in_time)?;
            continue;
        }
        let negative = number.starts_with('-');
        let width = inner.split('.').next().map_or(0, str::len);
        let (whole, part) = iso_number(inner)?;
        let designator = rest[end..].chars().next().unwrap_or('T');
        let scale = match (designator, in_time) {
            ('T', _) if designated => return Err(Refusal::Syntax),
            ('T', _) => {
                sum.add_undesignated((negative, whole, part), width, in_time)?;
                rest = &rest[end..];
                continue;
            }
            ('Y', false) => Scale::Years(1),
            ('M', false) => Scale::Months(1),
            ('W', false) => Scale::Days(7),
            ('D', false) => Scale::Days(1),
            ('H', true) => Scale::Micros(HOUR),
            ('M', true) => Scale::Micros(MINUTE),
            ('S', true) => Scale::Micros(SECOND),
            _ => return Err(Refusal::Syntax),
        };
        match negative {
            true => sum.add(scale, -whole, -part)?,
            false => sum.add(scale, whole, part)?,
        }
        designated = true;
        rest = &rest[end + 1..];
    }
    Ok(sum)
}

/// Where a number of ISO 8601 ends, or what is the alternative format.
fn end_of_number(text: &str) -> usize {
    let is_plain = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    let end = text.find(|c| !is_plain(c)).unwrap_or(text.len());
    // An exponent is taken too, as in PostgreSQL.
    let Some(exponent) = text[end..].strip_prefix(['e', 'E']) else {
        return end;
    };
    let digits = exponent.trim_start_matches(['+', '-']);
    let past = digits.find(|c: char| !c.is_ascii_digit());
    match past.unwrap_or(digits.len()) {
        0 => end,
        past => text.len() - digits.len() + past,
    }
}

/// A number without its sign, whole and fraction. It is read as one of double precision, as in
/// PostgreSQL: of a large one the last digits of the fraction are lost.
fn iso_number(digits: &str) -> std::result::Result<(i64, f64), Refusal> {
    const MAX: f64 = 1e15;
    let number: f64 =
        match digits.starts_with(['.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
            true => digits.parse().map_err(|_| Refusal::Syntax)?,
            false => return Err(Refusal::Syntax),
        };
    match number {
        _ if !number.is_finite() => Err(Refusal::Syntax),
        _ if number > MAX => Err(Refusal::Overflow),
        _ => Ok((number.floor() as i64, number - number.floor())),
    }
}

/// The alternative format, up to a `T` that begins its time: `0001-02-03` or `04:05:06`. Each number
/// may have a sign and a fraction, and is of any size.
fn parse_alternative<'a>(
    sum: &mut Sum,
    text: &'a str,
    in_time: &mut bool,
) -> std::result::Result<&'a str, Refusal> {
    let (separator, scales) = match *in_time {
        true => (':', [HOUR, MINUTE, SECOND].map(Scale::Micros)),
        false => ('-', [Scale::Years(1), Scale::Months(1), Scale::Days(1)]),
    };
    let mut rest = text;
    for (at, scale) in scales.into_iter().enumerate() {
        let signed = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let end = signed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = signed.split_at(end.unwrap_or(signed.len()));
        let (whole, part) = iso_number(number)?;
        match rest.starts_with('-') {
            true => sum.add(scale, -whole, -part)?,
            false => sum.add(scale, whole, part)?,
        }
        rest = match after.strip_prefix(separator) {
            Some(further) if at < 2 => further,
            // Two of them are enough; a time stands behind a date only.
            _ if at > 0 && (after.is_empty() || after.starts_with('T') && !*in_time) => {
                return Ok(after);
            }
            _ => return Err(Refusal::Syntax),
        };
    }
    Ok(rest)
}

/// An interval taken apart for printing; all parts may be negative.
struct Parts {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
}

impl Parts {
    fn of(value: &Interval) -> Parts {
        Parts {
            years: i64::from(value.months / 12),
            months: i64::from(value.months % 12),
            days: i64::from(value.days),
            hours: value.micros / HOUR,
            minutes: value.micros / MINUTE % 60,
            seconds: value.micros / SECOND % 60,
            micros: value.micros % SECOND,
        }
    }

    fn seconds_text(&self, width: usize) -> String {
        let mut out = format!("{:0width$}", self.seconds.abs());
        super::time::write_fraction(self.micros.abs(), &mut out);
        out
    }
}

/// Appends an interval in a style.
pub fn write(style: IntervalStyle, value: &Interval, out: &mut String) {
    let parts = Parts::of(value);
    match style {
        IntervalStyle::Postgres => write_postgres(&parts, value.micros, out),
        IntervalStyle::PostgresVerbose => write_verbose(&parts, out),
        IntervalStyle::SqlStandard => write_standard(value, out),
        IntervalStyle::Iso8601 => write_iso(&parts, out),
    }
}

fn write_postgres(parts: &Parts, micros: i64, out: &mut String) {
    let mut first = true;
    let mut before = false;
    for (value, unit) in [
        (parts.years, "year"),
        (parts.months, "mon"),
        (parts.days, "day"),
    ] {
        if value == 0 {
            continue;
        }
        if !first {
            out.push(' ');
        }
        // A plus where the part before was negative.
        if before && value > 0 {
            out.push('+');
        }
        let plural = if value == 1 { "" } else { "s" };
        out.push_str(&format!("{value} {unit}{plural}"));
        before = value < 0;
        first = false;
    }
    if first || micros != 0 {
        if !first {
            out.push(' ');
        }
        out.push_str(match (micros < 0, before) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        });
        let (hours, minutes) = (parts.hours.abs(), parts.minutes.abs());
        out.push_str(&format!(
            "{hours:02}:{minutes:02}:{}",
            parts.seconds_text(2)
        ));
    }
}

fn write_verbose(parts: &Parts, out: &mut String) {
    let mut first = true;
    let mut ago = false;
    out.push('@');
    for (value, unit) in [
        (parts.years, "year"),
        (parts.months, "mon"),
        (parts.days, "day"),
        (parts.hours, "hour"),
        (parts.minutes, "min"),
    ] {
        if value == 0 {
            continue;
        }
        let shown = if first {
            ago = value < 0;
            value.abs()
        } else if ago {
            -value
        } else {
            value
        };
        let plural = if shown == 1 { "" } else { "s" };
        out.push_str(&format!(" {shown} {unit}{plural}"));
        first = false;
    }
    if parts.seconds != 0 || parts.micros != 0 {
        let negative = parts.seconds < 0 || parts.micros < 0;
        out.push(' ');
        if negative && first {
            ago = true;
        } else if negative != ago {
            out.push('-');
        }
        out.push_str(&parts.seconds_text(1));
        let plural = parts.seconds.abs() != 1 || parts.micros != 0;
        out.push_str(if plural { " secs" } else { " sec" });
        first = false;
    }
    if first {
        out.push_str(" 0");
    }
    if ago {
        out.push_str(" ago");
    }
}

fn write_standard(value: &Interval, out: &mut String) {
    let numbers = [i64::from(value.months), i64::from(value.days), value.micros];
    let negative = numbers.iter().any(|n| *n < 0);
    let positive = numbers.iter().any(|n| *n > 0);
    let (has_months, has_rest) = (value.months != 0, value.days != 0 || value.micros != 0);
    let mixed = (negative && positive) || (has_months && has_rest);
    let parts = Parts::of(value);
    let sign = |value: i64| if value < 0 { '-' } else { '+' };
    let clock = |parts: &Parts| {
        format!(
            "{}:{:02}:{}",
            parts.hours.abs(),
            parts.minutes.abs(),
            parts.seconds_text(2)
        )
    };
    if !negative && !positive {
        out.push('0');
    } else if mixed {
        out.push_str(&format!(
            "{}{}-{} {}{} {}{}",
            sign(i64::from(value.months)),
            parts.years.abs(),
            parts.months.abs(),
            sign(parts.days),
            parts.days.abs(),
            sign(value.micros),
            clock(&parts)
        ));
    } else {
        if negative {
            out.push('-');
        }
        if has_months {
            out.push_str(&format!("{}-{}", parts.years.abs(), parts.months.abs()));
        } else if parts.days != 0 {
            out.push_str(&format!("{} {}", parts.days.abs(), clock(&parts)));
        } else {
            out.push_str(&clock(&parts));
        }
    }
}

fn write_iso(parts: &Parts, out: &mut String) {
    let start = out.len();
    out.push('P');
    for (value, unit) in [(parts.years, 'Y'), (parts.months, 'M'), (parts.days, 'D')] {
        if value != 0 {
            out.push_str(&format!("{value}{unit}"));
        }
    }
    let seconds = parts.seconds != 0 || parts.micros != 0;
    if parts.hours != 0 || parts.minutes != 0 || seconds {
        out.push('T');
        for (value, unit) in [(parts.hours, 'H'), (parts.minutes, 'M')] {
            if value != 0 {
                out.push_str(&format!("{value}{unit}"));
            }
        }
        if seconds {
            if parts.seconds < 0 || parts.micros < 0 {
                out.push('-');
            }
            out.push_str(&parts.seconds_text(1));
            out.push('S');
        }
    }
    if out.len() == start + 1 {
        out.push_str("T0S");
    }
}
