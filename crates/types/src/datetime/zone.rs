//! Time zones: rules by IANA name, fixed offsets, and abbreviations.
//!
//! Only the rules are jiff's, from the tables bundled with it, so that every node and every run
//! knows the same ones. jiff ends at the year 9999; beyond it years are taken back by whole cycles
//! of 400, after which calendar and rules repeat.

use std::sync::OnceLock;

use base::error::{Error, Result, SqlState};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};

use super::abbreviations::{self, meaning, Meaning};
use super::calendar::Fields;
use super::interval_text;
use super::{DAY, HOUR, SECOND, UNIX_TO_EPOCH_SECONDS};

/// A time zone.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    rules: Rules,
}

#[derive(Clone, Debug)]
enum Rules {
    /// Seconds east of Greenwich.
    Fixed(i32),
    Named(TimeZone),
    /// What an abbreviation, in capitals, meant there at any time.
    Abbreviated(TimeZone, String),
}

/// The largest offset of a zone, in seconds.
pub const OFFSET_MAX: i32 = 16 * 3_600 - 1;

/// A zone that an interval says is less than so many hours away, as in POSIX.
const POSIX_HOURS_END: i32 = 7 * 24;

/// A zone's next changes of its clock that are looked at.
const TRANSITIONS_MAX: usize = 300;

/// Seconds of 400 years.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
/// Seconds since 1970 between which jiff is asked directly: the years -9000 to 9000.
const DIRECT: std::ops::Range<i64> = -346_000_000_000..221_000_000_000;

fn database() -> &'static TimeZoneDatabase {
    static DATABASE: OnceLock<TimeZoneDatabase> = OnceLock::new();
    DATABASE.get_or_init(TimeZoneDatabase::bundled)
}

fn refused(setting: &str) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"TimeZone\": \"{setting}\""),
    )
}

impl Zone {
    /// UTC.
    pub fn utc() -> Zone {
        Zone {
            name: "UTC".to_owned(),
            rules: Rules::Fixed(0),
        }
    }

    /// So many seconds east of Greenwich.
    pub fn fixed(seconds: i32) -> Zone {
        let mut shown = String::new();
        write_offset(seconds, &mut shown);
        // POSIX names a zone by what must be added to reach UTC.
        let mut inverse = String::new();
        match seconds {
            0 => inverse.push_str("-00"),
            _ => write_offset(-seconds, &mut inverse),
        }
        Zone {
            name: format!("<{shown}>{inverse}"),
            rules: Rules::Fixed(seconds),
        }
    }

    /// All zones that have a name.
    pub fn all() -> impl Iterator<Item = Zone> {
        let names = database().available();
        names.filter_map(|name| Zone::named(name.as_str()))
    }

    /// Whether it is daylight-saving time there, at an instant in microseconds since 2000 UTC.
    pub fn is_daylight_at(&self, micros: i64) -> bool {
        match &self.rules {
            Rules::Fixed(_) => false,
            Rules::Named(rules) | Rules::Abbreviated(rules, _) => {
                let unix = micros.div_euclid(SECOND) + UNIX_TO_EPOCH_SECONDS;
                let instant = jiff::Timestamp::from_second(near(unix));
                instant.is_ok_and(|instant| rules.to_offset_info(instant).dst().is_dst())
            }
        }
    }

    /// The zone of an IANA name, in any case.
    pub fn named(name: &str) -> Option<Zone> {
        if name.eq_ignore_ascii_case("utc") {
            return Some(Zone::utc());
        }
        let rules = database().get(name).ok()?;
        let name = rules.iana_name().unwrap_or(name).to_owned();
        Some(Zone {
            name,
            rules: Rules::Named(rules),
        })
    }

    /// What `AT TIME ZONE` takes: an abbreviation, an IANA name, or a POSIX specification such as
    /// `EST5EDT` or `UTC+3` (which lies *west*).
    ///
    /// # Errors
    /// 22023 `time zone "…" not recognized`.
    pub fn parse(name: &str) -> Result<Zone> {
        let unknown = || {
            Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("time zone \"{name}\" not recognized"),
            )
        };
        let zone = Zone::abbreviated(name).or_else(|| Zone::named(name));
        zone.or_else(|| Zone::posix(name)).ok_or_else(unknown)
    }

    /// All abbreviations in small letters, with what each stands for, and whether that is
    /// daylight-saving time whenever it is used.
    pub fn abbreviations() -> impl Iterator<Item = (&'static str, Zone, bool)> {
        abbreviations::all().filter_map(|(name, meaning)| {
            let is_daylight = matches!(meaning, Meaning::Fixed(_, true));
            Some((name, Zone::abbreviated(name)?, is_daylight))
        })
    }

    /// The zone that an abbreviation stands for.
    pub fn abbreviated(name: &str) -> Option<Zone> {
        let rules = match meaning(name)? {
            Meaning::Fixed(seconds, _) => Rules::Fixed(seconds),
            Meaning::In(zone) => {
                Rules::Abbreviated(database().get(zone).ok()?, name.to_ascii_uppercase())
            }
        };
        Some(Zone {
            name: name.to_owned(),
            rules,
        })
    }

    /// The zone of a POSIX specification: a name (perhaps none), an offset counted west, and, where
    /// there is daylight-saving time, its name, its offset and its rule. Without an offset it is an
    /// hour ahead, without a rule it is as in the United States since 2007.
    pub fn posix(name: &str) -> Option<Zone> {
        let (standard, rest) = posix_name(name)?;
        let (west, rest) = posix_offset(rest)?;
        let rules = match posix_name(rest)? {
            ("", "") => Rules::Fixed(-west),
            ("", _) => return None,
            (daylight, rest) => {
                let (ahead, rule) = match posix_offset(rest) {
                    Some(given) => given,
                    None => (west - 3_600, rest),
                };
                let rule = match rule.is_empty() {
                    true => ",M3.2.0,M11.1.0",
                    false => rule,
                };
                let (standard, daylight) = (abbreviation(standard), abbreviation(daylight));
                let (west, ahead) = (posix_time(west), posix_time(ahead));
                let whole = format!("<{standard}>{west}<{daylight}>{ahead}{rule}");
                Rules::Named(TimeZone::posix(&whole).ok()?)
            }
        };
        Some(Zone {
            name: name.to_owned(),
            rules,
        })
    }

    /// Seconds east of Greenwich, if that is the same at all times.
    pub fn fixed_offset(&self) -> Option<i32> {
        match self.rules {
            Rules::Fixed(seconds) => Some(seconds),
            _ => None,
        }
    }

    /// Whether it is an abbreviation whose meaning depends on the time.
    pub fn is_abbreviation(&self) -> bool {
        matches!(self.rules, Rules::Abbreviated(..))
    }

    /// What `SET timezone` takes: hours east, perhaps with a fraction, or a name; IANA names go
    /// before abbreviations.
    ///
    /// # Errors
    /// 22023 `invalid value for parameter "TimeZone": "…"`; those of the input of an interval.
    pub fn from_setting(text: &str) -> Result<Zone> {
        const INTERVAL: &str = "interval";
        let (word, rest) = text.split_at_checked(INTERVAL.len()).unwrap_or_default();
        if word.eq_ignore_ascii_case(INTERVAL) {
            let given = rest.trim_start().strip_prefix('\'');
            let given = given.and_then(|rest| rest.strip_suffix('\''));
            let given = given.filter(|given| !given.contains('\''));
            return Zone::from_interval(text, given.ok_or_else(|| refused(text))?);
        }
        if let Ok(hours) = text.trim().parse::<f64>() {
            if hours.abs() < 16.0 {
                return Ok(Zone::fixed((hours * 3_600.0).round() as i32));
            }
        }
        if let Some(zone) = Zone::named(text) {
            return Ok(zone);
        }
        Zone::parse(text).map_err(|_| refused(text))
    }

    /// What `SET TIME ZONE INTERVAL '…'` takes: a time east, as the setting's text has it.
    fn from_interval(setting: &str, given: &str) -> Result<Zone> {
        let far = interval_text::parse(given, crate::NO_TYPMOD, false)?;
        let refuse = |why: &str| Err(refused(setting).with_detail(why));
        if far.months != 0 {
            return refuse("Cannot specify months in time zone interval.");
        }
        if far.days != 0 {
            return refuse("Cannot specify days in time zone interval.");
        }
        match i32::try_from(far.micros / SECOND) {
            Ok(seconds) if seconds.abs() < POSIX_HOURS_END * 3_600 => Ok(Zone::fixed(seconds)),
            _ => refuse("UTC timezone offset is out of range."),
        }
    }

    /// What `SHOW timezone` says.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seconds east of Greenwich at an instant (microseconds since 2000 UTC).
    pub fn offset_at(&self, micros: i64) -> i32 {
        let rules = match &self.rules {
            Rules::Fixed(seconds) => return *seconds,
            Rules::Named(rules) => rules,
            Rules::Abbreviated(rules, name) => return meant_at(rules, name, micros),
        };
        let unix = micros.div_euclid(SECOND) + UNIX_TO_EPOCH_SECONDS;
        match jiff::Timestamp::from_second(near(unix)) {
            Ok(instant) => rules.to_offset(instant).seconds(),
            Err(_) => 0,
        }
    }

    /// The abbreviation in force at an instant.
    pub fn abbreviation_at(&self, micros: i64) -> String {
        let unix = micros.div_euclid(SECOND) + UNIX_TO_EPOCH_SECONDS;
        match (&self.rules, jiff::Timestamp::from_second(near(unix))) {
            (Rules::Named(rules), Ok(instant)) => {
                rules.to_offset_info(instant).abbreviation().to_owned()
            }
            (Rules::Fixed(seconds), _) if self.name.starts_with('<') => {
                let mut out = String::new();
                write_offset(*seconds, &mut out);
                out
            }
            _ => self.name.clone(),
        }
    }

    /// Seconds east of Greenwich at a local time (microseconds since 2000 on the zone's own
    /// clock). A local time that was skipped is taken as if the clock had not been set; one that
    /// came twice is taken as the second.
    pub fn offset_of_local(&self, local: i64) -> i32 {
        let rules = match &self.rules {
            Rules::Fixed(seconds) => return *seconds,
            Rules::Named(rules) => rules,
            Rules::Abbreviated(rules, name) => {
                let zone = Zone {
                    name: String::new(),
                    rules: Rules::Named(rules.clone()),
                };
                let seconds = i64::from(zone.offset_of_local(local));
                return meant_at(rules, name, local - seconds * SECOND);
            }
        };
        let unix = near(local.div_euclid(SECOND) + UNIX_TO_EPOCH_SECONDS);
        let fields = Fields::of((unix - UNIX_TO_EPOCH_SECONDS) * SECOND);
        let civil = jiff::civil::DateTime::new(
            fields.year as i16,
            fields.month as i8,
            fields.day as i8,
            fields.hour as i8,
            fields.minute as i8,
            fields.second as i8,
            0,
        );
        let offset = match civil.map(|civil| rules.to_ambiguous_timestamp(civil).offset()) {
            Ok(AmbiguousOffset::Unambiguous { offset }) => offset,
            Ok(AmbiguousOffset::Gap { before, .. }) => before,
            Ok(AmbiguousOffset::Fold { after, .. }) => after,
            Err(_) => Offset::UTC,
        };
        offset.seconds()
    }

    /// The local time at an instant.
    pub fn to_local(&self, micros: i64) -> i64 {
        micros + i64::from(self.offset_at(micros)) * SECOND
    }

    /// The instant of a local time; `None` when out of range.
    pub fn to_utc(&self, local: i64) -> Option<i64> {
        let utc = local.checked_sub(i64::from(self.offset_of_local(local)) * SECOND)?;
        super::calendar::in_range(utc).then_some(utc)
    }
}

/// What an abbreviation meant in a zone at an instant: as it was used last before that, or else first
/// after it; where the zone never used it, what the zone's clocks showed.
fn meant_at(rules: &TimeZone, name: &str, micros: i64) -> i32 {
    let unix = micros.div_euclid(SECOND) + UNIX_TO_EPOCH_SECONDS;
    let Ok(instant) = jiff::Timestamp::from_second(near(unix)) else {
        return 0;
    };
    // The rules that are in force count as used.
    let now = rules.to_offset_info(instant);
    if now.abbreviation() == name {
        return now.offset().seconds();
    }
    let mut before = rules.preceding(instant);
    let used = before.find(|used| used.abbreviation() == name);
    let used = used.map(|used| used.offset()).or_else(|| {
        // Rules without an end would be looked through for ever.
        let mut after = rules.following(instant).take(TRANSITIONS_MAX);
        let used = after.find(|used| used.abbreviation() == name);
        used.map(|used| used.offset())
    });
    used.unwrap_or(now.offset()).seconds()
}

/// An instant at which the rules are the same and which jiff knows.
fn near(unix: i64) -> i64 {
    if DIRECT.contains(&unix) {
        return unix;
    }
    if unix > 0 {
        let cycles = (unix - DIRECT.end) / CYCLE_SECONDS + 1;
        unix - cycles * CYCLE_SECONDS
    } else {
        let cycles = (DIRECT.start - unix) / CYCLE_SECONDS + 1;
        unix + cycles * CYCLE_SECONDS
    }
}

/// The name at the beginning of what is left of a POSIX specification, and what follows it. As
/// PostgreSQL takes them, names go to the next digit, sign or comma, and may be empty.
fn posix_name(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>'),
        None => {
            let end = text.find(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ','));
            Some(text.split_at(end.unwrap_or(text.len())))
        }
    }
}

/// The `±hh[:mm[:ss]]` at the beginning of what is left of a POSIX specification, as seconds west,
/// and what follows it.
fn posix_offset(text: &str) -> Option<(i32, &str)> {
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => (1, text),
    };
    let mut seconds = 0;
    for (unit, most) in [(3_600, 167), (60, 59), (1, 60)] {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let (digits, after) = rest.split_at(end.unwrap_or(rest.len()));
        seconds += unit
            * digits
                .parse::<i32>()
                .ok()
                .filter(|number| *number <= most)?;
        match after.strip_prefix(':') {
            Some(further) if unit > 1 => rest = further,
            _ => return Some((sign * seconds, after)),
        }
    }
    None
}

/// Seconds as POSIX writes them.
fn posix_time(seconds: i32) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let all = seconds.unsigned_abs();
    let (minutes, seconds) = (all / 60 % 60, all % 60);
    format!("{sign}{}:{minutes:02}:{seconds:02}", all / 3_600)
}

/// A name that jiff takes: of three letters and more, or this one.
fn abbreviation(name: &str) -> &str {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-');
    match (3..=30).contains(&name.len()) && name.chars().all(known) {
        true => name,
        false => "LOC",
    }
}

/// Appends an offset as ISO output shows it: `+00`, `-05:30`, `+00:19:32`.
pub fn write_offset(seconds: i32, out: &mut String) {
    out.push(if seconds < 0 { '-' } else { '+' });
    let all = seconds.abs();
    let (hours, minutes, rest) = (all / 3_600, all / 60 % 60, all % 60);
    out.push_str(&format!("{hours:02}"));
    if minutes != 0 || rest != 0 {
        out.push_str(&format!(":{minutes:02}"));
    }
    if rest != 0 {
        out.push_str(&format!(":{rest:02}"));
    }
}

const _: () = assert!(DAY == 24 * HOUR);
