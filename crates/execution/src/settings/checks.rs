//! Which values a setting takes: text as it was given becomes text as it is kept.
//!
//! `SET lock_timeout = '1min'` is kept as `60000ms`, `SET synchronous_commit = ON` as `on`; what a
//! setting does not take is refused with PostgreSQL's words, and a hint at what it would take.
//!
//! Source: PostgreSQL 15 manual, section 20.1.

use base::{Durability, Error, Result, SqlState};
use functions::search::dictionary::{self, Config};

use super::about::{about, Context};
use super::logging::{check_destinations, check_time_or_off};
use super::procedural::{is_list_of_checks, Checks};
use super::values::{follower_reads_text, milliseconds, seconds, size};
use super::{unknown, without_effect, Definition, Kind};
use types::encoding::Encoding;
use types::{DateStyle, Zone};

/// When a setting is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// The node is told.
    Configured,
    /// A session begins.
    Beginning,
    /// A session runs.
    Running,
}

/// Whether a setting may change then, by its context. `name` is as it was given.
///
/// # Errors
/// 55P02 where nobody may, 42501 where only superusers may.
pub(super) fn check_context(
    definition: &Definition,
    name: &str,
    when: When,
    is_superuser: impl FnOnce() -> bool,
) -> Result<()> {
    if when == When::Configured {
        return Ok(());
    }
    let context = about(definition.name).context;
    let rule = context.rule();
    if rule.superuser && !is_superuser() {
        return Err(denied(name));
    }
    if let Some(refused) = refused_to_all(context, name) {
        return Err(refused);
    }
    if when == When::Running && !rule.running {
        let message = format!("parameter \"{name}\" cannot be set after connection start");
        return Err(Error::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message));
    }
    Ok(())
}

/// 55P02 for a setting of a context in which no session sets anything.
pub(super) fn refused_to_all(context: Context, name: &str) -> Option<Error> {
    let when = match context {
        Context::Internal => "",
        Context::Postmaster => " without restarting the server",
        Context::Sighup => " now",
        _ => return None,
    };
    let message = format!("parameter \"{name}\" cannot be changed{when}");
    Some(Error::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message))
}

/// Whether a setting that is not listed may have that name: identifiers with dots between, outside
/// of the namespace of what is listed.
///
/// # Errors
/// 42704, 42602.
pub(super) fn check_custom_name(name: &str) -> Result<()> {
    if !name.contains('.') || name.to_ascii_lowercase().starts_with("quorate.") {
        return Err(unknown(name));
    }
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let is_word = |word: &str| {
        let rest = |c: char| is_start(c) || c.is_ascii_digit() || c == '$';
        word.starts_with(is_start) && word.chars().all(rest)
    };
    match name.split('.').all(is_word) {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::of("42602"),
            format!("invalid configuration parameter name \"{name}\""),
        )
        .with_detail(
            "Custom parameter names must be two or more simple identifiers separated by dots.",
        )),
    }
}

/// Whether privileges can be said of a parameter of that name: a setting, or what could be one of
/// other software.
///
/// # Errors
/// 42602.
pub fn check_parameter_name(name: &str) -> Result<()> {
    let is_known = super::find(name).is_some() || without_effect::find(name).is_some();
    if is_known || check_custom_name(name).is_ok() {
        return Ok(());
    }
    Err(Error::new(
        SqlState::of("42602"),
        format!("invalid parameter name \"{name}\""),
    ))
}

/// 42501.
pub(super) fn denied(name: &str) -> Error {
    Error::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!("permission denied to set parameter \"{name}\""),
    )
}

/// For what decides where a session is served, and so before it begins.
pub(super) fn too_late(name: &str) -> Error {
    Error::new(
        SqlState::CANT_CHANGE_RUNTIME_PARAM,
        format!("parameter \"{name}\" cannot be set after connection start"),
    )
    .with_hint("Connect with it, or set it for the role or the database.")
}

pub(super) fn unchangeable(name: &str) -> Error {
    Error::new(
        SqlState::CANT_CHANGE_RUNTIME_PARAM,
        format!("parameter \"{name}\" cannot be changed"),
    )
}

pub(super) fn invalid(name: &str, value: &str) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"{name}\": \"{value}\""),
    )
}

pub(super) fn parse_bool(value: &str) -> Option<bool> {
    let value = value.trim().to_ascii_lowercase();
    let is = |word: &str| !value.is_empty() && word.starts_with(&value);
    if is("true") || is("yes") || value == "on" || value == "1" {
        return Some(true);
    }
    let off = value == "of" || value == "off" || value == "0";
    (is("false") || is("no") || off).then_some(false)
}

/// The value as it is kept.
pub(super) fn checked(definition: &Definition, value: &str, current: DateStyle) -> Result<String> {
    let name = definition.name;
    match definition.kind {
        // Who a session is comes from a check, not from a text.
        Kind::Fixed | Kind::Role | Kind::SessionUser => Err(unchangeable(name)),
        Kind::Text if name == "client_encoding" => {
            let encoding = Encoding::by_name(value).ok_or_else(|| invalid(name, value))?;
            if !encoding.is_convertible() {
                let shown = encoding.name();
                let detail = format!("Conversion between {shown} and UTF8 is not supported.");
                let message = invalid(name, value).message().to_owned();
                let state = SqlState::FEATURE_NOT_SUPPORTED;
                return Err(Error::new(state, message).with_detail(detail));
            }
            // As PostgreSQL, for drivers that look for the very name that they have given.
            match value {
                "UNICODE" => Ok(value.to_owned()),
                _ => Ok(encoding.name().to_owned()),
            }
        }
        // As PostgreSQL: it is shown where nothing is known of encodings.
        Kind::Text if name == "application_name" => Ok(printable(value)),
        Kind::Text => check_text(name, value).map(|()| value.to_owned()),
        Kind::Bool => match parse_bool(value) {
            Some(true) if name == "default_with_oids" => {
                let message = "tables declared WITH OIDS are not supported";
                Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
            Some(true) => Ok("on".to_owned()),
            Some(false) => Ok("off".to_owned()),
            None => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("parameter \"{name}\" requires a Boolean value"),
            )),
        },
        Kind::Time => match milliseconds(value) {
            None => Err(invalid(name, value).with_hint(TIME_UNITS)),
            Some(millis) if millis < i64::from(name == "deadlock_timeout") => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "{millis} ms is outside the valid range for parameter \"{name}\" \
                     ({} .. 2147483647)",
                    i64::from(name == "deadlock_timeout")
                ),
            )),
            Some(millis) => Ok(format!("{millis}ms")),
        },
        Kind::Memory(least) => match size(value) {
            Err(true) => Err(invalid(name, value).with_hint(
                "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".",
            )),
            Err(false) => Err(invalid(name, value)),
            Ok(kilobytes) if kilobytes < least => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "{kilobytes} kB is outside the valid range for parameter \"{name}\" \
                     ({least} .. 2147483647)"
                ),
            )),
            Ok(kilobytes) => Ok(format!("{kilobytes}kB")),
        },
        Kind::Real => match value.trim().parse::<f64>() {
            Ok(number) if number >= 0.0 && number.is_finite() => Ok(number.to_string()),
            Ok(number) if number < 0.0 => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "{number} is outside the valid range for parameter \"{name}\" \
                     (0 .. 1.79769e+308)"
                ),
            )),
            _ => Err(invalid(name, value)),
        },
        Kind::Share => match value.trim().parse::<f64>() {
            Ok(number) if (0.0..=100.0).contains(&number) => Ok(number.to_string()),
            Ok(number) if !number.is_nan() => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("{number} is outside the valid range for parameter \"{name}\" (0 .. 100)"),
            )),
            _ => Err(invalid(name, value)),
        },
        Kind::Seconds(least, greatest) => match seconds(value) {
            None => Err(invalid(name, value).with_hint(TIME_UNITS)),
            Some(seconds) if seconds < least || seconds > greatest => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "{seconds} s is outside the valid range for parameter \"{name}\" \
                     ({least} .. {greatest})"
                ),
            )),
            Some(seconds) => Ok(format!("{seconds}s")),
        },
        Kind::Multiplier => match value.trim().parse::<f64>() {
            Ok(number) if (1.0..=1_000.0).contains(&number) => Ok(number.to_string()),
            Ok(number) if !number.is_nan() => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("{number} is outside the valid range for parameter \"{name}\" (1 .. 1000)"),
            )),
            _ => Err(invalid(name, value)),
        },
        Kind::TimeOrOff => check_time_or_off(name, value),
        Kind::LogDestination => check_destinations(name, value),
        Kind::FollowerReads => follower_reads_text(name, value),
        Kind::Int(low, high) => match value.trim().parse::<i64>() {
            Err(_) => Err(invalid(name, value)),
            Ok(number) if number < low || number > high => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "{number} is outside the valid range for parameter \"{name}\" ({low} .. {high})"
                ),
            )),
            Ok(number) => Ok(number.to_string()),
        },
        Kind::Enum(values) => {
            let lower = value.to_ascii_lowercase();
            let wanted = match parse_bool(value) {
                Some(true) if values.contains(&"on") => "on",
                Some(false) if values.contains(&"off") => "off",
                _ => lower.as_str(),
            };
            match values.iter().find(|known| **known == wanted) {
                Some(known) => Ok((*known).to_owned()),
                None => Err(invalid(name, value)
                    .with_hint(format!("Available values: {}.", values.join(", ")))),
            }
        }
        Kind::Level => match Durability::parse(value) {
            Some(level) => Ok(level.name().to_owned()),
            None => Err(invalid(name, value)
                .with_hint("Available values: local, remote_write, remote_apply, on, off.")),
        },
        Kind::Zone => match Zone::from_setting(value) {
            Ok(zone) => Ok(zone.name().to_owned()),
            Err(error) => Err(match error.fields().detail.clone() {
                Some(detail) => invalid(name, value).with_detail(detail),
                None => invalid(name, value),
            }),
        },
        Kind::SearchConfig => match Config::named(value.trim_matches('"')) {
            Some(oid) => Ok(configuration_name(oid)),
            None => Err(invalid(name, value)),
        },
        Kind::DateStyle => Ok(current.changed(value)?.show()),
    }
}

/// A text search configuration with its schema.
fn configuration_name(oid: u32) -> String {
    let mut known = dictionary::configs();
    let name = known
        .find(|known| known.0 == oid)
        .map_or("", |known| known.1);
    format!("pg_catalog.{name}")
}

/// What a time may be followed by.
const TIME_UNITS: &str =
    "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";

/// The locales that there are.
const LOCALES: [&str; 4] = ["C", "POSIX", "C.UTF-8", "C.utf8"];

/// A text with `?` for every byte that is none of printable ASCII.
fn printable(text: &str) -> String {
    let shown = |byte: u8| match byte {
        b' '..=b'~' => char::from(byte),
        _ => '?',
    };
    text.bytes().map(shown).collect()
}

/// Whether a setting takes a text that only some are values of. What would have an effect in
/// PostgreSQL that there is none of here is refused.
///
/// # Errors
/// 22023; 0A000.
fn check_text(name: &str, value: &str) -> Result<()> {
    let refused = |detail: String| Err(invalid(name, value).with_detail(detail));
    match name {
        "default_table_access_method" if value.is_empty() => {
            refused(format!("{name} cannot be empty."))
        }
        "default_table_access_method" if value != "heap" => {
            refused(format!("Table access method \"{value}\" does not exist."))
        }
        "default_tablespace" if value == "pg_global" => {
            let what = "parameter \"default_tablespace\" with the value pg_global";
            Err(Error::unsupported(what))
        }
        "default_tablespace" if !matches!(value, "" | "pg_default") => {
            refused(format!("Tablespace \"{value}\" does not exist."))
        }
        // The environment's is C.UTF-8.
        "lc_monetary" | "lc_numeric" | "lc_time" if value.is_empty() => Ok(()),
        "lc_messages" | "lc_monetary" | "lc_numeric" | "lc_time" => {
            match LOCALES.contains(&value) {
                true => Ok(()),
                false => Err(invalid(name, value)),
            }
        }
        _ if is_list_of_checks(name) => match Checks::read(value) {
            Ok(_) => Ok(()),
            Err(error) => refused(error.fields().detail.clone().unwrap_or_default()),
        },
        _ => Ok(()),
    }
}

/// The names of a list of identifiers, quoted or not.
pub(super) fn split_path(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"').unwrap_or(quoted.len());
                let after = quoted.get(end + 1..).unwrap_or("");
                (quoted[..end].to_owned(), after)
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_lowercase(), &rest[end..])
            }
        };
        if !name.is_empty() {
            names.push(name);
        }
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    names
}
