//! Dates and times of a jsonpath: what `datetime()` reads, and their order.

use std::cmp::Ordering;

use base::error::{Error, Result, SqlState};

use types::datetime::timestamp;
use types::{Datum, EvalContext, TypeId, NO_TYPMOD};

/// A date, a time or a timestamp.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    kind: TypeId,
    value: Datum,
    /// Seconds east of Greenwich, of a timestamp with a zone.
    offset: i64,
}

/// The shapes of ISO 8601 that are read, `9` for a digit, in the order in which they are tried.
const SHAPES: &[(&str, TypeId)] = &[
    ("9999-99-99", TypeId::DATE),
    ("99:99:99Z", TypeId::TIMETZ),
    ("99:99:99", TypeId::TIME),
    ("9999-99-99 99:99:99Z", TypeId::TIMESTAMPTZ),
    ("9999-99-99T99:99:99Z", TypeId::TIMESTAMPTZ),
    ("9999-99-99 99:99:99", TypeId::TIMESTAMP),
    ("9999-99-99T99:99:99", TypeId::TIMESTAMP),
];

/// What is left of a text behind a shape; a `Z` of the shape stands for a zone.
fn fits(shape: &str, text: &str) -> bool {
    let mut rest = text;
    for wanted in shape.chars() {
        if wanted == 'Z' {
            return is_zone(rest);
        }
        let mut chars = rest.chars();
        match (wanted, chars.next()) {
            ('9', Some(c)) if c.is_ascii_digit() => {}
            (wanted, Some(c)) if wanted == c => {}
            _ => return false,
        }
        rest = chars.as_str();
        // Behind seconds there may be a fraction.
        let seconds = shape.ends_with("99:99:99Z") || shape.ends_with("99:99:99");
        let read = text.len() - rest.len();
        if seconds && read == shape.trim_end_matches('Z').len() {
            if let Some(fraction) = rest.strip_prefix('.') {
                rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            }
        }
    }
    rest.is_empty()
}

/// `+1`, `-03`, `+03:30`, `+03:30:15`, perhaps behind a space.
fn is_zone(text: &str) -> bool {
    let body = text.strip_prefix(' ').unwrap_or(text);
    let Some(body) = body.strip_prefix(['+', '-']) else {
        return false;
    };
    let mut parts = body.split(':');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let hours = parts.next().unwrap_or_default();
    let rest: Vec<_> = parts.collect();
    matches!(hours.len(), 1 | 2)
        && digits(hours)
        && rest.len() <= 1
        && rest.iter().all(|part| part.len() == 2 && digits(part))
}

/// Reads a text; `None` if it is of none of the shapes.
pub(super) fn parse(context: &EvalContext, text: &str) -> Option<Moment> {
    let (_, kind) = SHAPES.iter().find(|(shape, _)| fits(shape, text))?;
    let value = types::input(context, *kind, NO_TYPMOD, text).ok()?;
    let mut offset = 0;
    if let Datum::TimestampTz(micros) = &value {
        // The same text without its zone is what a clock there shows.
        let local = text[..10].len() + text[10..].rfind(['+', '-'])?;
        let local = types::input(
            context,
            TypeId::TIMESTAMP,
            NO_TYPMOD,
            text[..local].trim_end(),
        );
        if let Ok(Datum::Timestamp(local)) = local {
            offset = (local - micros) / 1_000_000;
        }
    }
    let kind = *kind;
    Some(Moment {
        kind,
        value,
        offset,
    })
}

/// Reads a text by a template; the inner error is one of the text.
pub(super) fn parse_by(text: &str, template: &str) -> std::result::Result<Result<Moment>, Error> {
    let read = crate::from_char::standard_moment(text, template)?;
    Ok(read.map(|(kind, value, offset)| Moment {
        kind,
        value,
        offset,
    }))
}

fn needs_zone(from: TypeId, to: TypeId) -> Error {
    let (from, to) = (from.name(), to.name());
    let message = format!("cannot convert value from {from} to {to} without time zone usage");
    let hint = "Use *_tz() function for time zone support.";
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint(hint)
}

impl Moment {
    /// What `type()` calls it.
    pub(super) fn type_name(&self) -> &'static str {
        match self.kind {
            TypeId::DATE => "date",
            TypeId::TIME => "time without time zone",
            TypeId::TIMETZ => "time with time zone",
            TypeId::TIMESTAMP => "timestamp without time zone",
            _ => "timestamp with time zone",
        }
    }

    /// Its text in ISO 8601.
    pub(super) fn to_text(&self, context: &EvalContext) -> Result<String> {
        let Datum::TimestampTz(micros) = self.value else {
            return super::make::moment_text(context, self.kind, &self.value);
        };
        let local = Datum::Timestamp(micros + self.offset * 1_000_000);
        let text = super::make::moment_text(context, TypeId::TIMESTAMP, &local)?;
        let sign = if self.offset < 0 { '-' } else { '+' };
        let offset = self.offset.abs();
        let (hours, minutes) = (offset / 3_600, offset / 60 % 60);
        Ok(format!("{text}{sign}{hours:02}:{minutes:02}"))
    }

    /// The instant, and whether the session's zone was needed for it.
    fn instant(&self, context: &EvalContext) -> (i64, bool) {
        let local = |micros: i64| {
            let offset = context.time_zone.offset_of_local(micros);
            micros - i64::from(offset) * 1_000_000
        };
        match self.value {
            Datum::TimestampTz(micros) => (micros, false),
            Datum::Timestamp(micros) => (local(micros), true),
            Datum::Date(days) => (local(i64::from(days) * 86_400_000_000), true),
            _ => (timestamp::INFINITY, true),
        }
    }

    /// A date or a timestamp on the session's clock.
    fn local(&self) -> Option<i64> {
        match self.value {
            Datum::Timestamp(micros) => Some(micros),
            Datum::Date(days) => Some(i64::from(days) * 86_400_000_000),
            _ => None,
        }
    }
}

/// The order of two moments; `None` if they cannot be compared.
pub(super) fn compare(
    context: &EvalContext,
    a: &Moment,
    b: &Moment,
    with_zone: bool,
) -> Result<Option<Ordering>> {
    if a.kind == b.kind {
        return Ok(Some(types::compare(a.kind, &a.value, &b.value)));
    }
    let time = |moment: &Moment| matches!(moment.kind, TypeId::TIME | TypeId::TIMETZ);
    if time(a) != time(b) {
        return Ok(None);
    }
    let zoned = |kind| matches!(kind, TypeId::TIMETZ | TypeId::TIMESTAMPTZ);
    if !with_zone && zoned(a.kind) != zoned(b.kind) {
        let (from, to) = match zoned(a.kind) {
            true => (b.kind, a.kind),
            false => (a.kind, b.kind),
        };
        return Err(needs_zone(from, to));
    }
    if time(a) {
        let with = |moment: &Moment| match moment.value {
            Datum::Time(micros) => {
                let offset = context.time_zone.offset_at(context.transaction_start);
                Datum::TimeTz(micros, -offset)
            }
            ref value => value.clone(),
        };
        return Ok(Some(types::compare(TypeId::TIMETZ, &with(a), &with(b))));
    }
    Ok(Some(match (a.local(), b.local()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.instant(context).0.cmp(&b.instant(context).0),
    }))
}
