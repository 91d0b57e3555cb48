//! Settings as `pg_settings` shows them.

use super::place::{self, without_octal};
use super::{
    about, kilobytes, milliseconds, seconds, Definition, Kind, Settings, Source, DEFINITIONS,
};

/// One setting, as PostgreSQL's view of that name has it.
#[derive(Debug)]
pub struct SettingRow {
    /// Its name.
    pub name: &'static str,
    /// Its value, without a unit.
    pub setting: String,
    /// What numbers of it mean.
    pub unit: Option<&'static str>,
    /// What it belongs to.
    pub category: &'static str,
    /// What it is for.
    pub short: &'static str,
    /// Further words.
    pub extra: Option<&'static str>,
    /// Who may change it, and when.
    pub context: &'static str,
    /// The type of its values.
    pub vartype: &'static str,
    /// Where its value comes from.
    pub source: &'static str,
    /// The least value.
    pub min: Option<String>,
    /// The greatest value.
    pub max: Option<String>,
    /// The values there are.
    pub values: Option<Vec<&'static str>>,
    /// The built-in value.
    pub boot: String,
    /// What RESET would make of it.
    pub reset: String,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::Configuration => "configuration file",
            Source::Global => "global",
            Source::Database => "database",
            Source::Role => "user",
            Source::DatabaseRole => "database user",
            Source::Client => "client",
            Source::Override => "override",
            Source::Session => "session",
        }
    }
}

const LEVELS: &[&str] = &["local", "remote_write", "remote_apply", "on", "off"];
const COMPRESSIONS: &[&str] = &["pglz", "lz4", "zstd", "on", "off"];
const WAL_LEVELS: &[&str] = &["minimal", "replica", "logical"];

fn values(definition: &Definition) -> Option<&'static [&'static str]> {
    match (definition.kind, definition.name) {
        (Kind::Enum(values), _) => Some(values),
        (Kind::Level, _) => Some(LEVELS),
        (_, "wal_compression") => Some(COMPRESSIONS),
        (_, "wal_level") => Some(WAL_LEVELS),
        _ => None,
    }
}

fn vartype(definition: &Definition) -> &'static str {
    match definition.kind {
        _ if values(definition).is_some() => "enum",
        Kind::Bool => "bool",
        Kind::Time | Kind::TimeOrOff | Kind::Memory(_) | Kind::Int(..) => "integer",
        Kind::Seconds(..) => "integer",
        Kind::Real | Kind::Multiplier | Kind::Share => "real",
        _ if is_in_blocks(definition) || is_in_kilobytes(definition) => "integer",
        _ if is_in_seconds(definition) || is_in_bytes(definition) => "integer",
        Kind::Fixed if matches!(definition.default, "on" | "off") => "bool",
        Kind::Fixed if definition.default.parse::<u64>().is_ok() => "integer",
        _ => "string",
    }
}

/// The least and the greatest value.
fn range(definition: &Definition) -> (Option<String>, Option<String>) {
    if let Some((least, greatest)) = place::range(definition.name) {
        return (Some(least.to_string()), Some(greatest.to_string()));
    }
    let (least, greatest) = match definition.kind {
        Kind::Time => (
            i64::from(definition.name == "deadlock_timeout"),
            i64::from(i32::MAX),
        ),
        Kind::TimeOrOff => (-1, i64::from(i32::MAX)),
        Kind::Memory(least) => (least, i64::from(i32::MAX)),
        Kind::Int(least, greatest) => (least, greatest),
        Kind::Multiplier => (1, 1_000),
        Kind::Share => (0, 100),
        Kind::Seconds(least, greatest) => (least, greatest),
        Kind::Real => return (Some("0".to_owned()), Some("1.79769e+308".to_owned())),
        Kind::Fixed if definition.name == "max_connections" => (1, 262_143),
        Kind::Fixed if definition.name == "superuser_reserved_connections" => (0, 262_143),
        Kind::Fixed if definition.name == "log_rotation_size" => (0, i64::from(i32::MAX) / 1_024),
        _ if is_in_seconds(definition) => (1, 600),
        _ if is_in_blocks(definition) => (16, 1_073_741_823),
        _ if is_in_kilobytes(definition) => (1, i64::from(i32::MAX)),
        Kind::Fixed if vartype(definition) == "integer" => {
            let value = definition.default.to_owned();
            return (Some(value.clone()), Some(value));
        }
        _ => return (None, None),
    };
    (Some(least.to_string()), Some(greatest.to_string()))
}

/// Whether a setting's unit is a block of 8 kB.
fn is_in_blocks(definition: &Definition) -> bool {
    definition.name == "shared_buffers"
}

/// Whether a setting that no session changes is a size in bytes.
fn is_in_bytes(definition: &Definition) -> bool {
    definition.name == "wal_segment_size"
}

/// Whether a setting that no session changes is a size in kB.
fn is_in_kilobytes(definition: &Definition) -> bool {
    matches!(
        definition.name,
        "quorate.memory_budget" | "quorate.txn_mem" | "log_rotation_size"
    )
}

/// Whether a setting that no session changes is a time in seconds.
fn is_in_seconds(definition: &Definition) -> bool {
    definition.name == "authentication_timeout"
}

/// What a number without a unit counts.
fn unit(definition: &Definition) -> Option<&'static str> {
    match definition.kind {
        Kind::Time | Kind::TimeOrOff => Some("ms"),
        Kind::Seconds(..) => Some("s"),
        Kind::Memory(_) => Some("kB"),
        _ if is_in_blocks(definition) => Some("8kB"),
        _ if is_in_kilobytes(definition) => Some("kB"),
        _ if is_in_seconds(definition) => Some("s"),
        Kind::Int(..) if definition.name == "log_parameter_max_length" => Some("B"),
        _ if is_in_bytes(definition) => Some("B"),
        _ => None,
    }
}

/// The unit of a setting, and the values that it takes, in words.
pub(super) fn range_text(definition: &Definition) -> (Option<&'static str>, String) {
    let said = match (values(definition), range(definition)) {
        (Some(values), _) => values.join(", "),
        (None, (Some(least), Some(greatest))) if least == greatest => least,
        (None, (Some(least), Some(greatest))) => format!("{least} to {greatest}"),
        _ => match definition.kind {
            Kind::Bool => "on, off".to_owned(),
            Kind::LogDestination => "any of stderr, csvlog, jsonlog".to_owned(),
            Kind::FollowerReads => "off, settled, or a time".to_owned(),
            Kind::Zone => "a time zone".to_owned(),
            Kind::DateStyle => "ISO, SQL, Postgres or German; DMY, MDY or YMD".to_owned(),
            _ if definition.name == "client_encoding" => "a character set".to_owned(),
            _ if vartype(definition) == "bool" => "on, off".to_owned(),
            _ => "text".to_owned(),
        },
    };
    (unit(definition), said)
}

/// A value without its unit.
fn bare(definition: &Definition, value: &str) -> String {
    let number = match definition.kind {
        Kind::Time | Kind::TimeOrOff => milliseconds(value),
        Kind::Seconds(..) => seconds(value),
        Kind::Memory(_) => kilobytes(value),
        _ if is_in_blocks(definition) => kilobytes(value).map(|size| size / 8),
        _ if is_in_kilobytes(definition) => kilobytes(value),
        _ if is_in_bytes(definition) => kilobytes(value).map(|size| size * 1_024),
        _ if is_in_seconds(definition) => milliseconds(value).map(|millis| millis / 1_000),
        _ => None,
    };
    number.map_or_else(|| value.to_owned(), |number| number.to_string())
}

impl Settings {
    /// Every setting that is shown, by name.
    pub fn rows(&self) -> Vec<SettingRow> {
        let mut rows: Vec<_> = DEFINITIONS
            .iter()
            .enumerate()
            .filter(|(_, definition)| !is_hidden(definition.name))
            .map(|(setting, definition)| self.row(setting, definition))
            .chain(self.unused_rows())
            .collect();
        rows.sort_by_key(|row| row.name.to_ascii_lowercase());
        rows
    }

    fn row(&self, setting: usize, definition: &'static Definition) -> SettingRow {
        let value = &self.values[self.in_force(setting)];
        let about = about(definition.name);
        let (min, max) = range(definition);
        let source = match definition.name.starts_with("transaction_") {
            true => Source::Override,
            false => value.current.source,
        };
        SettingRow {
            name: definition.name,
            setting: bare(definition, &value.current.text),
            unit: unit(definition),
            category: about.category,
            short: definition.description,
            extra: Some(about.extra).filter(|extra| !extra.is_empty()),
            context: about.context.name(),
            vartype: vartype(definition),
            source: source.name(),
            min,
            max,
            values: values(definition).map(<[_]>::to_vec),
            boot: without_octal(vartype(definition), &bare(definition, definition.default)),
            reset: without_octal(vartype(definition), &bare(definition, &value.start.text)),
        }
    }
}

/// Settings that SHOW ALL passes over.
pub(super) fn is_hidden(name: &str) -> bool {
    matches!(
        name,
        "default_with_oids" | "is_superuser" | "role" | "session_authorization"
    )
}
