//! Dates and times of a jsonpath: what `datetime()` reads, and their order.

use std::cmp::Ordering;

use base::error::{Error, Result, SqlState};

use types::datetime::timestamp;
use types::{Datum, EvalContext, TypeId};

/// A date, a time or a timestamp.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    kind: TypeId,
    value: Datum,
    /// Seconds east of Greenwich, of a timestamp with a zone.
    offset: i64,
}

/// The templates that are tried where none is given, of texts with a time of day: behind a date or
/// alone, with a fraction or without, with a zone or without.
const BEFORE_TIME: &[&str] = &["", "yyyy-mm-dd ", "yyyy-mm-dd\"T\""];
const FRACTIONS: &[&str] = &[".US", ""];
const ZONES: &[&str] = &["TZH:TZM", "TZH", ""];

/// Reads a text by the first of PostgreSQL's templates that fits; `None` if none does.
pub(super) fn parse(text: &str) -> Option<Moment> {
    let by = |template: &str| parse_by(text, template).ok()?.ok();
    if !text.contains(':') {
        return by("yyyy-mm-dd");
    }
    let mut templates = BEFORE_TIME.iter().flat_map(|date| {
        let fractions = FRACTIONS.iter();
        fractions.flat_map(move |part| {
            let zones = ZONES.iter();
            zones.map(move |zone| format!("{date}HH24:MI:SS{part}{zone}"))
        })
    });
    templates.find_map(|template| by(&template))
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
            Datum::Date(days) => match midnight(days) {
                far @ (i64::MIN | i64::MAX) => (far, true),
                micros => (local(micros), true),
            },
            _ => (timestamp::INFINITY, true),
        }
    }

    /// A date or a timestamp on the session's clock.
    fn local(&self) -> Option<i64> {
        match self.value {
            Datum::Timestamp(micros) => Some(micros),
            Datum::Date(days) => Some(midnight(days)),
            _ => None,
        }
    }
}

/// The beginning of a day; of one that no timestamp reaches, what is beyond all of them.
fn midnight(days: i32) -> i64 {
    i64::from(days).saturating_mul(86_400_000_000)
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
