//! Values that are more than words: times, sizes, ages.

use std::time::Duration;

use base::engine::Isolation;
use base::Result;

use super::{invalid, parse_bool, INT_MAX};

const MEMORY_UNITS: [(&str, i64); 3] = [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10)];

pub(super) fn with_memory_unit(kilobytes: i64) -> String {
    let fits = |(_, factor): &&(&str, i64)| kilobytes > 0 && kilobytes % factor == 0;
    match MEMORY_UNITS.iter().find(fits) {
        Some((unit, factor)) => format!("{}{unit}", kilobytes / factor),
        None => format!("{kilobytes}kB"),
    }
}

/// A size; the error says whether it is its unit that is wrong.
pub(super) fn size(text: &str) -> Result<i64, bool> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '-' && c != '+' && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().map_err(|_| false)?;
    let unit = text[end..].trim();
    let factor = match unit {
        "" | "kB" => 1.0,
        "B" => 1.0 / 1_024.0,
        _ => {
            let known = MEMORY_UNITS.iter().find(|known| known.0 == unit);
            known.map(|known| known.1 as f64).ok_or(true)?
        }
    };
    let kilobytes = (number * factor).round();
    match kilobytes.abs() <= INT_MAX as f64 {
        true => Ok(kilobytes as i64),
        false => Err(false),
    }
}

pub(super) fn kilobytes(text: &str) -> Option<i64> {
    size(text).ok()
}

pub(super) fn with_unit(millis: i64) -> String {
    for (unit, factor) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("min", 60_000),
        ("s", 1_000),
    ] {
        if millis % factor == 0 {
            return format!("{}{unit}", millis / factor);
        }
    }
    format!("{millis}ms")
}

pub(super) fn with_unit_of_seconds(seconds: i64) -> String {
    with_unit(seconds * 1_000)
}

/// A time of which a number without a unit counts seconds.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) => (number.abs() <= INT_MAX as f64).then_some(number.round() as i64),
        Err(_) => milliseconds(text).map(|millis| (millis + 500).div_euclid(1_000)),
    }
}

pub(super) fn milliseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '-' && c != '+' && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim() {
        "" | "ms" => 1.0,
        "us" => 0.001,
        "s" => 1_000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    let millis = (number * factor).round();
    (millis.abs() <= INT_MAX as f64).then_some(millis as i64)
}

/// Reads on standbys: not at all, as far as the standby knows, or at most so old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FollowerReads {
    /// Sessions are passed on to the leader.
    #[default]
    Off,
    /// What the standby has, once that is settled.
    Settled,
    /// The same, and at most so old.
    Within(Duration),
}

pub(super) fn follower_reads_text(name: &str, value: &str) -> Result<String> {
    let lower = value.trim().to_ascii_lowercase();
    if lower == "settled" {
        return Ok(lower);
    }
    if parse_bool(&lower) == Some(false) && lower != "0" {
        return Ok("off".to_owned());
    }
    match milliseconds(&lower) {
        Some(millis) if millis >= 0 => Ok(format!("{millis}ms")),
        _ => {
            Err(invalid(name, value)
                .with_hint("A value is off, settled, or a time such as '200ms'."))
        }
    }
}

pub(super) fn follower_reads(text: &str) -> FollowerReads {
    match text {
        "off" => FollowerReads::Off,
        "settled" => FollowerReads::Settled,
        time => {
            let millis = milliseconds(time).and_then(|millis| u64::try_from(millis).ok());
            FollowerReads::Within(Duration::from_millis(millis.unwrap_or(0)))
        }
    }
}

/// The isolation level of that name.
pub fn isolation(name: &str) -> Isolation {
    match name {
        "serializable" => Isolation::Serializable,
        "repeatable read" => Isolation::RepeatableRead,
        _ => Isolation::ReadCommitted,
    }
}
