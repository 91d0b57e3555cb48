//! `DateStyle`: how dates and timestamps are written, and in which order their fields are read.
//!
//! | style | date | timestamp with time zone |
//! |---|---|---|
//! | ISO | `2024-02-29` | `2024-02-29 12:34:56.5+01` |
//! | SQL | `02/29/2024` | `02/29/2024 12:34:56.5 CET` |
//! | Postgres | `02-29-2024` | `Thu Feb 29 12:34:56.5 2024 CET` |
//! | German | `29.02.2024` | `29.02.2024 12:34:56.5 CET` |
//!
//! SQL and Postgres put the day first where the order of fields is day, month, year.
//!
//! Source: PostgreSQL 15 manual, section 8.5.2.

use base::error::{Error, Result, SqlState};

use super::calendar::{weekday, Fields};
use super::date::put_two;
use super::{time, DAY};
use crate::{DateOrder, Zone};

/// The first part of `DateStyle`: how dates are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum DateOutput {
    #[default]
    Iso,
    Sql,
    Postgres,
    German,
}

/// `DateStyle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DateStyle {
    /// How dates are written.
    pub output: DateOutput,
    /// The order of fields in dates like `1/2/2024`.
    pub order: DateOrder,
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

impl DateStyle {
    /// Takes the words of a SET; what they leave open stays as it was.
    ///
    /// # Errors
    /// 22023 for an unknown word, and for two words that contradict each other.
    pub fn changed(self, text: &str) -> Result<DateStyle> {
        let wrong = |detail: String| {
            Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"DateStyle\": \"{text}\""),
            )
            .with_detail(detail)
        };
        let (mut output, mut order) = (None, None);
        for word in text.split(',').map(str::trim) {
            let upper = word.to_ascii_uppercase();
            let (new_output, new_order) = match upper.as_str() {
                "ISO" => (Some(DateOutput::Iso), None),
                "SQL" => (Some(DateOutput::Sql), None),
                "GERMAN" => (Some(DateOutput::German), None),
                "YMD" => (None, Some(DateOrder::YearMonthDay)),
                "DMY" => (None, Some(DateOrder::DayMonthYear)),
                "MDY" | "US" => (None, Some(DateOrder::MonthDayYear)),
                "DEFAULT" => (
                    output.is_none().then_some(DateOutput::Iso),
                    order.is_none().then_some(DateOrder::MonthDayYear),
                ),
                _ if upper.starts_with("POSTGRES") => (Some(DateOutput::Postgres), None),
                _ if upper.starts_with("EURO") => (None, Some(DateOrder::DayMonthYear)),
                _ if upper.starts_with("NONEURO") => (None, Some(DateOrder::MonthDayYear)),
                _ => return Err(wrong(format!("Unrecognized key word: \"{word}\"."))),
            };
            let clash = |old: bool, new: bool| old && new;
            if clash(
                output.is_some() && output != new_output,
                new_output.is_some(),
            ) || clash(order.is_some() && order != new_order, new_order.is_some())
            {
                return Err(wrong(
                    "Conflicting \"datestyle\" specifications.".to_owned(),
                ));
            }
            output = output.or(new_output);
            order = order.or(new_order);
        }
        if output == Some(DateOutput::German) {
            order = order.or(Some(DateOrder::DayMonthYear));
        }
        Ok(DateStyle {
            output: output.unwrap_or(self.output),
            order: order.unwrap_or(self.order),
        })
    }

    /// As SHOW prints it.
    pub fn show(self) -> String {
        let output = match self.output {
            DateOutput::Iso => "ISO",
            DateOutput::Sql => "SQL",
            DateOutput::Postgres => "Postgres",
            DateOutput::German => "German",
        };
        let order = match self.order {
            DateOrder::MonthDayYear => "MDY",
            DateOrder::DayMonthYear => "DMY",
            DateOrder::YearMonthDay => "YMD",
        };
        format!("{output}, {order}")
    }

    fn day_first(self) -> bool {
        self.order == DateOrder::DayMonthYear
    }

    /// Appends a date without its era, in a style other than ISO.
    fn write_numbers(self, year: i64, month: i64, day: i64, separator: char, out: &mut String) {
        let day_first = self.day_first() || self.output == DateOutput::German;
        let (first, second) = if day_first {
            (day, month)
        } else {
            (month, day)
        };
        put_two(first, out);
        out.push(separator);
        put_two(second, out);
        out.push(separator);
        write_year(year, out);
    }

    /// Appends a date in a style other than ISO.
    pub(super) fn write_date(self, year: i64, month: i64, day: i64, out: &mut String) {
        let separator = match self.output {
            DateOutput::Sql => '/',
            DateOutput::German => '.',
            DateOutput::Iso | DateOutput::Postgres => '-',
        };
        self.write_numbers(year, month, day, separator, out);
        if year <= 0 {
            out.push_str(" BC");
        }
    }

    /// Appends a local time in a style other than ISO; with the abbreviation of its zone, if it
    /// has one.
    pub(super) fn write_timestamp(self, local: i64, zone: Option<(&Zone, i64)>, out: &mut String) {
        let fields = Fields::of(local);
        if self.output == DateOutput::Postgres {
            out.push_str(WEEKDAYS[weekday(local.div_euclid(DAY)) as usize]);
            out.push(' ');
            let month = MONTHS[fields.month as usize - 1];
            if self.day_first() {
                put_two(fields.day, out);
                out.push(' ');
                out.push_str(month);
            } else {
                out.push_str(month);
                out.push(' ');
                put_two(fields.day, out);
            }
            out.push(' ');
            time::write(fields.time(), out);
            out.push(' ');
            write_year(fields.year, out);
        } else {
            let separator = if self.output == DateOutput::Sql {
                '/'
            } else {
                '.'
            };
            self.write_numbers(fields.year, fields.month, fields.day, separator, out);
            out.push(' ');
            time::write(fields.time(), out);
        }
        if let Some((zone, instant)) = zone {
            out.push(' ');
            out.push_str(&zone.abbreviation_at(instant));
        }
        if fields.year <= 0 {
            out.push_str(" BC");
        }
    }
}

/// Appends a year of at least four digits, without its era.
fn write_year(year: i64, out: &mut String) {
    let shown = if year <= 0 { 1 - year } else { year };
    out.push_str(&format!("{shown:04}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_change_what_they_name() {
        let iso = DateStyle::default();
        assert_eq!(iso.show(), "ISO, MDY");
        assert_eq!(iso.changed("German").unwrap().show(), "German, DMY");
        assert_eq!(iso.changed("german, mdy").unwrap().show(), "German, MDY");
        let sql = iso.changed("sql,european").unwrap();
        assert_eq!(sql.show(), "SQL, DMY");
        assert_eq!(sql.changed("postgresql").unwrap().show(), "Postgres, DMY");
        assert!(iso.changed("sql, iso").is_err());
        assert!(iso.changed("dmy, mdy").is_err());
        assert!(iso.changed("roman").is_err());
    }
}
