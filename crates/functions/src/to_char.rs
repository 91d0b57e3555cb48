//! `to_char` for moments and intervals; [`super::to_char_number`] has that of numbers, and
//! [`super::from_char`] goes the other way.
//!
//! # What it leaves out
//! Words of other locales (`TM`): they are always English.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::template::{self, Part};
use super::Call;
use types::datetime::calendar::{days_from_civil, iso_week, weekday, Fields, JULIAN_EPOCH};
use types::datetime::{timestamp, zone, HOUR, MINUTE, SECOND};
use types::{Datum, Interval};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The patterns of whole words.
const MONTH_OR_DAY: [&str; 6] = ["MONTH", "Month", "month", "DAY", "Day", "day"];

/// What a template may show: fields, and the zone of an instant.
struct Shown {
    fields: Fields,
    /// Whether there is a calendar date (an interval has none).
    dated: bool,
    offset: Option<i32>,
    zone: String,
}

fn cased(name: &str, pattern: &str) -> String {
    let first = pattern.chars().next().is_some_and(char::is_uppercase);
    let second = pattern.chars().nth(1).is_some_and(char::is_uppercase);
    match (first, second) {
        (true, true) => name.to_uppercase(),
        (true, false) => name.to_owned(),
        _ => name.to_lowercase(),
    }
}

pub(super) fn ordinal_suffix(number: &str, upper: bool) -> &'static str {
    let teen = number.len() > 1 && number.as_bytes()[number.len() - 2] == b'1';
    let index = match (teen, number.as_bytes().last()) {
        (false, Some(b'1')) => 0,
        (false, Some(b'2')) => 1,
        (false, Some(b'3')) => 2,
        _ => 3,
    };
    match upper {
        true => ["ST", "ND", "RD", "TH"][index],
        false => ["st", "nd", "rd", "th"][index],
    }
}

fn padded(value: i64, width: usize, fill: bool) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = value.unsigned_abs();
    match fill {
        true => format!("{sign}{digits:0width$}"),
        false => format!("{sign}{digits}"),
    }
}

fn named(names: &[&str], index: i64, pattern: &str, fill: bool) -> String {
    let name = names.get(index as usize).copied().unwrap_or("");
    let text = cased(name, pattern);
    // All full names are blank-padded to the longest.
    match fill {
        true => format!("{text:<9}"),
        false => text,
    }
}

/// The patterns of years; `None` for all others.
fn year_part(shown: &Shown, name: &str, fill: bool) -> Option<String> {
    let f = &shown.fields;
    let year = match (shown.dated, f.year) {
        (true, year) if year <= 0 => 1 - year,
        (_, year) => year,
    };
    let iso = iso_week(f.days()).0;
    let iso = match shown.dated && iso <= 0 {
        true => 1 - iso,
        false => iso,
    };
    // Its sign stands beside the digits where the calendar's year has one.
    let of_iso = |value: i64, digits: usize| {
        let digits = digits + usize::from(year < 0) - usize::from(value < 0);
        padded(value, digits, fill)
    };
    let modulo = |value: i64, width: u32| padded(value % 10i64.pow(width), width as usize, fill);
    Some(match name {
        "YYYY" => padded(year, 4, fill),
        "YYY" => modulo(year, 3),
        "YY" => modulo(year, 2),
        "Y" => modulo(year, 1),
        "Y,YYY" => format!("{},{:03}", year / 1_000, year % 1_000),
        "IYYY" => of_iso(iso, 4),
        "IYY" => of_iso(iso % 1_000, 3),
        "IY" => of_iso(iso % 100, 2),
        "I" => of_iso(iso % 10, 1),
        _ => return None,
    })
}

fn calendar_part(shown: &Shown, name: &str, fill: bool) -> String {
    if let Some(text) = year_part(shown, name, fill) {
        return text;
    }
    let f = &shown.fields;
    let days = f.days();
    let iso = iso_week(days);
    // An interval's days, where a date has those of its year.
    let of_year = match shown.dated {
        true => days - days_from_civil(f.year, 1, 1) + 1,
        false => (f.year * 12 + f.month) * 30 + f.day,
    };
    match name {
        "MM" => padded(f.month, 2, fill),
        "MONTH" | "Month" | "month" => named(&MONTHS, f.month - 1, name, fill),
        "MON" | "Mon" | "mon" => cased(&MONTHS[((f.month - 1).clamp(0, 11)) as usize][..3], name),
        "RM" | "rm" => {
            const ROMAN: [&str; 12] = [
                "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
            ];
            let place = match (shown.dated, f.month) {
                (true, month) => month - 1,
                (false, 0) if f.year == 0 => return String::new(),
                (false, 0) => {
                    if f.year > 0 {
                        11
                    } else {
                        0
                    }
                }
                // Backwards from December.
                (false, month) if month < 0 => month + 12,
                (false, month) => month - 1,
            };
            let text = ROMAN[place.clamp(0, 11) as usize];
            let text = if name == "rm" {
                text.to_lowercase()
            } else {
                text.to_owned()
            };
            if fill {
                format!("{text:<4}")
            } else {
                text
            }
        }
        "DD" if fill => format!("{:02}", f.day),
        "DD" => f.day.to_string(),
        "DDD" => padded(of_year, 3, fill),
        "IDDD" => {
            let monday = days - (weekday(days) + 6) % 7;
            let of_iso_year = (iso.1 - 1) * 7 + (days - monday) + 1;
            padded(of_iso_year, 3, fill)
        }
        "DAY" | "Day" | "day" => named(&DAYS, weekday(days), name, fill),
        "DY" | "Dy" | "dy" => cased(&DAYS[weekday(days) as usize][..3], name),
        "D" => (weekday(days) + 1).to_string(),
        "ID" => ((weekday(days) + 6) % 7 + 1).to_string(),
        "WW" => padded((of_year - 1) / 7 + 1, 2, fill),
        "IW" => padded(iso.1, 2, fill),
        "W" => ((f.day - 1) / 7 + 1).to_string(),
        "Q" => match f.month {
            0 => String::new(),
            month => ((month - 1) / 3 + 1).to_string(),
        },
        "CC" => {
            let century = match f.year > 0 {
                _ if !shown.dated => f.year / 100,
                true => (f.year - 1) / 100 + 1,
                false => f.year / 100 - 1,
            };
            padded(century, 2, fill)
        }
        "J" => (days + JULIAN_EPOCH).to_string(),
        "AD" | "BC" | "ad" | "bc" | "A.D." | "B.C." | "a.d." | "b.c." => {
            let era = if f.year <= 0 { "BC" } else { "AD" };
            dotted(era, name)
        }
        _ => String::new(),
    }
}

fn dotted(text: &str, pattern: &str) -> String {
    let text = match pattern.starts_with(char::is_uppercase) {
        true => text.to_owned(),
        false => text.to_lowercase(),
    };
    match pattern.contains('.') {
        true => text.chars().flat_map(|c| [c, '.']).collect(),
        false => text,
    }
}

fn clock_part(shown: &Shown, name: &str, fill: bool) -> Option<String> {
    let f = &shown.fields;
    let fraction = |digits: u32| {
        let value = f.micros / 10i64.pow(6 - digits);
        format!("{value:0width$}", width = digits as usize)
    };
    let (hour12, afternoon) = ((f.hour % 12), f.hour % 24 >= 12);
    let zone = shown.offset.unwrap_or(0);
    Some(match name {
        "HH24" => padded(f.hour, 2, fill),
        "HH" | "HH12" => padded(if hour12 == 0 { 12 } else { hour12 }, 2, fill),
        "MI" => padded(f.minute, 2, fill),
        "SS" => padded(f.second, 2, fill),
        "SSSS" | "SSSSS" => (f.time() / SECOND).to_string(),
        "MS" => fraction(3),
        "US" => fraction(6),
        "FF1" => fraction(1),
        "FF2" => fraction(2),
        "FF3" => fraction(3),
        "FF4" => fraction(4),
        "FF5" => fraction(5),
        "FF6" => fraction(6),
        "AM" | "PM" | "am" | "pm" | "A.M." | "P.M." | "a.m." | "p.m." => {
            dotted(if afternoon { "PM" } else { "AM" }, name)
        }
        "TZ" => shown.zone.to_uppercase(),
        "tz" => shown.zone.to_lowercase(),
        "OF" => {
            let mut out = String::new();
            zone::write_offset(zone, &mut out);
            out
        }
        "TZH" => format!(
            "{}{:02}",
            if zone < 0 { '-' } else { '+' },
            zone.abs() / 3_600
        ),
        "TZM" => format!("{:02}", zone.abs() / 60 % 60),
        _ => return None,
    })
}

/// Whether an interval has what a pattern shows.
fn is_of_interval(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('.', "");
    !matches!(
        name.as_str(),
        "AD" | "BC" | "MONTH" | "MON" | "DAY" | "DY" | "D" | "ID" | "TZ" | "TZH" | "TZM" | "OF"
    )
}

fn format_moment(shown: &Shown, template: &str) -> Result<String> {
    let mut out = String::new();
    for part in template::parts(template) {
        let pattern = match part {
            Part::Text(c) | Part::Space(c) | Part::Separator(c) => {
                out.push(c);
                continue;
            }
            Part::Pattern(pattern) => pattern,
        };
        let name = pattern.name;
        if !shown.dated && !is_of_interval(name) {
            return Err(Error::new(
                SqlState::INVALID_DATETIME_FORMAT,
                "invalid format specification for an interval value",
            )
            .with_hint("Intervals are not tied to specific calendar dates."));
        }
        let is_word = MONTH_OR_DAY.contains(&name);
        let fill = pattern.fill && !(pattern.localized && is_word);
        let text =
            clock_part(shown, name, fill).unwrap_or_else(|| calendar_part(shown, name, fill));
        out.push_str(&text);
        if let (Some(upper), Some(b'0'..=b'9')) = (pattern.ordinal, text.bytes().last()) {
            out.push_str(ordinal_suffix(&text, upper));
        }
    }
    Ok(out)
}

pub(crate) fn of_timestamp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (at, template) = (args.timestamp(0)?, args.text(1)?);
    if template.is_empty() || !timestamp::is_finite(at) {
        return Ok(Datum::Null);
    }
    let shown = Shown {
        fields: Fields::of(at),
        dated: true,
        offset: None,
        zone: String::new(),
    };
    format_moment(&shown, template).map(Datum::text)
}

pub(crate) fn of_timestamptz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (at, template) = (args.timestamptz(0)?, args.text(1)?);
    if template.is_empty() || !timestamp::is_finite(at) {
        return Ok(Datum::Null);
    }
    let zone = &call.context.time_zone;
    let shown = Shown {
        fields: Fields::of(zone.to_local(at)),
        dated: true,
        offset: Some(zone.offset_at(at)),
        zone: zone.abbreviation_at(at),
    };
    format_moment(&shown, template).map(Datum::text)
}

pub(crate) fn of_interval(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (interval, template): (Interval, &str) = (args.interval(0)?, args.text(1)?);
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    let shown = Shown {
        fields: Fields {
            year: i64::from(interval.months / 12),
            month: i64::from(interval.months % 12),
            day: i64::from(interval.days),
            hour: interval.micros / HOUR,
            minute: interval.micros / MINUTE % 60,
            second: interval.micros / SECOND % 60,
            micros: interval.micros % SECOND,
        },
        dated: false,
        offset: None,
        zone: String::new(),
    };
    format_moment(&shown, template).map(Datum::text)
}
