//! PostgreSQL's settings that nothing here depends on, so that SHOW, SET and `pg_settings` know all of them.
//!
//! `without_effect.txt` lists them as PostgreSQL 15's `pg_settings` has them, with what SET may say:
//!
//! | word | for which | SET |
//! |---|---|---|
//! | `any` | hints: costs, limits of parts that there are not here | takes what PostgreSQL takes |
//! | `default` | what would do something there | the default; another value is 0A000 |
//! | `fixed` | what no session sets | 55P02 |
//!
//! They are hundreds, and no session needs a place for each: a value that was set is kept like those of other
//! software's settings ([`Custom`](super::Custom)), and the others are the list's.
//!
//! # What it leaves out
//! `restrict_nonsystem_relation_kind`, which later minor versions of PostgreSQL 15 have: its name is unknown (42704).
//! What a server tells of its own files, addresses and sizes is in `place.rs`.

use std::sync::LazyLock;

use base::{Error, Result, SqlState};

use super::about::Context;
use super::checks::{invalid, refused_to_all};
use super::place::without_octal;
use super::values::size;
use super::view::SettingRow;
use super::{milliseconds, parse_bool, with_memory_unit, with_unit, Settings};

const LISTED: &str = include_str!("without_effect.txt");

/// What is said of them beside PostgreSQL's words.
const REASON: &str = "Nothing here depends on it.";

/// What SET may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Any,
    Default,
    Nothing,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Unused {
    pub(super) name: &'static str,
    context: Context,
    takes: Takes,
    vartype: &'static str,
    unit: Option<&'static str>,
    min: Option<&'static str>,
    max: Option<&'static str>,
    values: Vec<&'static str>,
    default: &'static str,
    category: &'static str,
    description: &'static str,
}

/// All of them, by name.
static UNUSED: LazyLock<Vec<Unused>> = LazyLock::new(|| {
    let lines = LISTED.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(read).collect()
});

fn read(line: &'static str) -> Option<Unused> {
    let fields: Vec<&'static str> = line.split('\t').collect();
    let [name, context, takes, vartype, unit, min, max, values, default, category, description] =
        fields[..]
    else {
        return None;
    };
    let some = |text: &'static str| (!text.is_empty()).then_some(text);
    Some(Unused {
        name,
        context: Context::named(context)?,
        takes: match takes {
            "any" => Takes::Any,
            "default" => Takes::Default,
            _ => Takes::Nothing,
        },
        vartype,
        unit: some(unit),
        min: some(min),
        max: some(max),
        values: values
            .split(',')
            .filter(|value| !value.is_empty())
            .collect(),
        default,
        category,
        description,
    })
}

/// The one of that name.
pub(super) fn find(name: &str) -> Option<&'static Unused> {
    UNUSED
        .iter()
        .find(|known| known.name.eq_ignore_ascii_case(name))
}

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Unused> {
    UNUSED.iter()
}

impl Unused {
    /// Whether only superusers set it.
    pub(super) fn is_guarded(&self) -> bool {
        self.context.rule().superuser
    }

    /// Whether a session may set it at all.
    pub(super) fn is_settable(&self) -> bool {
        self.takes != Takes::Nothing
    }

    /// Who may change it.
    pub(super) fn context(&self) -> Context {
        self.context
    }

    /// A value as it is kept: a number without a unit, a word.
    ///
    /// # Errors
    /// 55P02 for what no session sets; 22023; 0A000 for what would do something.
    pub(super) fn checked(&self, value: &str) -> Result<String> {
        if self.takes == Takes::Nothing {
            let refused = refused_to_all(self.context, self.name);
            return Err(refused.unwrap_or_else(|| {
                let message = format!(
                    "parameter \"{}\" cannot be set after connection start",
                    self.name
                );
                Error::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message)
            }));
        }
        let text = self.normal(value)?;
        match self.takes == Takes::Default && text != self.default {
            true => Err(Error::unsupported(format!(
                "parameter \"{}\" set to {value}",
                self.name
            ))),
            false => Ok(text),
        }
    }

    fn normal(&self, value: &str) -> Result<String> {
        let wrong = || invalid(self.name, value);
        match self.vartype {
            "bool" => match parse_bool(value) {
                Some(is_on) => Ok(if is_on { "on" } else { "off" }.to_owned()),
                None => Err(Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("parameter \"{}\" requires a Boolean value", self.name),
                )),
            },
            "enum" => {
                let lower = value.to_ascii_lowercase();
                let known = self.values.iter().find(|known| **known == lower);
                let hint = || format!("Available values: {}.", self.values.join(", "));
                known.map_or_else(
                    || Err(wrong().with_hint(hint())),
                    |known| Ok((*known).to_owned()),
                )
            }
            "integer" => {
                let number = self.number(value).ok_or_else(wrong)?;
                self.check_range(number as f64, &number.to_string())?;
                Ok(number.to_string())
            }
            "real" => {
                let number = match self.unit {
                    Some("ms") if value.trim().parse::<f64>().is_err() => {
                        milliseconds(value).map(|millis| millis as f64)
                    }
                    _ => value.trim().parse::<f64>().ok(),
                };
                let number = number
                    .filter(|number| number.is_finite())
                    .ok_or_else(wrong)?;
                self.check_range(number, &number.to_string())?;
                Ok(number.to_string())
            }
            _ => Ok(value.to_owned()),
        }
    }

    /// A whole number in the setting's unit.
    fn number(&self, value: &str) -> Option<i64> {
        let value = value.trim();
        if let Ok(number) = value.parse::<f64>() {
            return number.is_finite().then_some(number.round() as i64);
        }
        let per = |whole: i64, unit: i64| (whole + unit / 2).div_euclid(unit);
        match self.unit? {
            "ms" => milliseconds(value),
            "s" => milliseconds(value).map(|millis| per(millis, 1_000)),
            "min" => milliseconds(value).map(|millis| per(millis, 60_000)),
            "kB" => size(value).ok(),
            "8kB" => size(value).ok().map(|kilobytes| per(kilobytes, 8)),
            "MB" => size(value).ok().map(|kilobytes| per(kilobytes, 1_024)),
            "B" => size(value)
                .ok()
                .map(|kilobytes| kilobytes.saturating_mul(1_024)),
            _ => None,
        }
    }

    fn check_range(&self, number: f64, shown: &str) -> Result<()> {
        let bound = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
        let least = bound(self.min).is_none_or(|least| number >= least);
        let greatest = bound(self.max).is_none_or(|greatest| number <= greatest);
        if least && greatest {
            return Ok(());
        }
        let unit = self
            .unit
            .map_or_else(String::new, |unit| format!(" {unit}"));
        let (min, max) = (self.min.unwrap_or_default(), self.max.unwrap_or_default());
        Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!(
                "{shown}{unit} is outside the valid range for parameter \"{}\" ({min} .. {max})",
                self.name
            ),
        ))
    }

    /// A value that is kept as SHOW prints it.
    pub(super) fn shown(&self, kept: &str) -> String {
        let (Some(unit), Ok(number)) = (self.unit, kept.parse::<i64>()) else {
            return kept.to_owned();
        };
        match unit {
            _ if number <= 0 => number.to_string(),
            "ms" => with_unit(number),
            "s" => with_unit(number.saturating_mul(1_000)),
            "min" => with_unit(number.saturating_mul(60_000)),
            "kB" => with_memory_unit(number),
            "8kB" => with_memory_unit(number.saturating_mul(8)),
            "MB" => with_memory_unit(number.saturating_mul(1_024)),
            "B" if number % 1_024 == 0 => with_memory_unit(number / 1_024),
            unit => format!("{number}{unit}"),
        }
    }

    /// The built-in value.
    pub(super) fn default(&self) -> &'static str {
        self.default
    }

    /// What it is for, and why it does not matter here.
    pub(super) fn meaning(&self) -> String {
        format!("{} {REASON}", self.description)
    }

    /// What PostgreSQL says of it.
    pub(super) fn description(&self) -> &'static str {
        self.description
    }

    /// What is said of its unit.
    pub(super) fn unit(&self) -> Option<&'static str> {
        self.unit
    }

    /// The values that it takes, in words.
    pub(super) fn range_text(&self) -> String {
        match (self.takes, self.vartype, self.min, self.max) {
            (Takes::Default | Takes::Nothing, ..) if self.default.is_empty() => "empty".to_owned(),
            (Takes::Default | Takes::Nothing, ..) => self.shown(self.default),
            (_, "bool", ..) => "on, off".to_owned(),
            (_, "enum", ..) => self.values.join(", "),
            (_, _, Some(min), Some(max)) => format!("{min} to {max}"),
            _ => "text".to_owned(),
        }
    }
}

impl Settings {
    /// The value of one that is in force.
    pub(super) fn unused(&self, unused: &'static Unused) -> &str {
        let mut custom = self.custom.iter();
        let set = custom.find(|custom| custom.name == unused.name);
        // One whose change was taken back is empty.
        let set = set.map(|custom| custom.current.as_str());
        set.filter(|value| !value.is_empty())
            .unwrap_or(unused.default)
    }

    /// All of them as `pg_settings` has them.
    pub(super) fn unused_rows(&self) -> impl Iterator<Item = SettingRow> + '_ {
        UNUSED.iter().map(|unused| {
            let value = self.unused(unused);
            SettingRow {
                name: unused.name,
                setting: value.to_owned(),
                unit: unused.unit,
                category: unused.category,
                short: unused.description,
                extra: Some(REASON),
                context: unused.context.name(),
                vartype: unused.vartype,
                source: match value == unused.default {
                    true => "default",
                    false => "session",
                },
                min: unused.min.map(str::to_owned),
                max: unused.max.map(str::to_owned),
                values: (!unused.values.is_empty()).then(|| unused.values.clone()),
                boot: without_octal(unused.vartype, unused.default),
                reset: without_octal(unused.vartype, unused.default),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_setting_and_none_is_one_already() {
        let lines = LISTED.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.count(), UNUSED.len());
        for unused in UNUSED.iter() {
            assert!(super::super::find(unused.name).is_none(), "{}", unused.name);
            if unused.takes != Takes::Nothing {
                let kept = unused.checked(unused.default).expect(unused.name);
                assert_eq!(kept, unused.default, "{}", unused.name);
            }
        }
    }

    #[test]
    fn values_are_those_of_postgresql() {
        let mut settings = Settings::of_nobody();
        let set = |settings: &mut Settings, name: &str, value: &str| {
            settings
                .set(None, name, Some(value), false)
                .map_err(|error| error.state().to_string())
        };
        assert_eq!(settings.show("effective_cache_size").unwrap().1, "4GB");
        assert_eq!(set(&mut settings, "effective_cache_size", "2 GB"), Ok(()));
        assert_eq!(settings.show("Effective_Cache_Size").unwrap().1, "2GB");
        settings.end_transaction();
        assert_eq!(
            set(&mut settings, "effective_cache_size", "0"),
            Err("22023".to_owned())
        );
        assert_eq!(set(&mut settings, "array_nulls", "on"), Ok(()));
        assert_eq!(
            set(&mut settings, "array_nulls", "off"),
            Err("0A000".to_owned())
        );
        assert_eq!(
            set(&mut settings, "bgwriter_delay", "10"),
            Err("55P02".to_owned())
        );
        settings
            .set(None, "effective_cache_size", None, false)
            .unwrap();
        assert_eq!(settings.show("effective_cache_size").unwrap().1, "4GB");
    }
}
