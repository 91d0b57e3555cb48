//! Values as numbers, so that it can be told how far one lies between two others.
//!
//! ```text
//! 'carrot' between 'apple' and 'orange'      digits of a number below 1 in base 26: 0.13
//! ```
//! It is what PostgreSQL's planner does; good enough to look into a part of a histogram.

use types::Datum;

const MICROS_OF_DAY: f64 = 86_400e6;
/// So many characters of a text say where it lies.
const CHARACTERS_MAX: usize = 12;

/// A value as a number; none for what is no number and no time.
pub(super) fn number(value: &Datum) -> Option<f64> {
    Some(match value {
        Datum::Bool(value) => f64::from(u8::from(*value)),
        Datum::Int2(value) => f64::from(*value),
        Datum::Int4(value) => f64::from(*value),
        Datum::Int8(value) | Datum::Money(value) => *value as f64,
        Datum::Float4(value) => f64::from(*value),
        Datum::Float8(value) => *value,
        Datum::Numeric(value) => value.to_f64().ok()?,
        Datum::Oid(value) => f64::from(*value),
        Datum::Unsigned8(value) => *value as f64,
        Datum::Date(value) => f64::from(*value) * MICROS_OF_DAY,
        Datum::Time(value) | Datum::Timestamp(value) | Datum::TimestampTz(value) => *value as f64,
        Datum::TimeTz(value, zone) => *value as f64 + f64::from(*zone) * 1e6,
        Datum::Interval(value) => {
            let days = f64::from(value.days) + f64::from(value.months) * 365.25 / 12.0;
            days * MICROS_OF_DAY + value.micros as f64
        }
        _ => return None,
    })
}

/// How far a value lies between two others, from 0 to 1; none if nobody can tell.
pub(super) fn fraction(value: &Datum, low: &Datum, high: &Datum) -> Option<f64> {
    let (value, low, high) = match (value, low, high) {
        (Datum::Text(value), Datum::Text(low), Datum::Text(high)) => {
            let (value, low, high) = (value.as_bytes(), low.as_bytes(), high.as_bytes());
            digits(value, low, high, alphabet(low, high))
        }
        (Datum::Bytea(value), Datum::Bytea(low), Datum::Bytea(high)) => {
            digits(value, low, high, (0, 255))
        }
        (Datum::Uuid(value), Datum::Uuid(low), Datum::Uuid(high)) => {
            digits(value, low, high, (0, 255))
        }
        _ => (number(value)?, number(low)?, number(high)?),
    };
    Some(match () {
        _ if high <= low => 0.5,
        _ if value <= low => 0.0,
        _ if value >= high => 1.0,
        _ => {
            let share = (value - low) / (high - low);
            if (0.0..=1.0).contains(&share) {
                share
            } else {
                0.5
            }
        }
    })
}

/// The characters that texts between two others are made of, the first and the last of them.
fn alphabet(low: &[u8], high: &[u8]) -> (u8, u8) {
    let seen = || low.iter().chain(high).copied();
    let (mut first, mut last) = match (seen().min(), seen().max()) {
        (Some(first), Some(last)) => (first, last),
        _ => (b' ', 127),
    };
    for (from, to) in [(b'A', b'Z'), (b'a', b'z'), (b'0', b'9')] {
        if first <= to && last >= from {
            (first, last) = (first.min(from), last.max(to));
        }
    }
    match last - first < 9 {
        true => (b' ', 127),
        false => (first, last),
    }
}

/// Three texts as numbers, without what all of them begin with.
fn digits(value: &[u8], low: &[u8], high: &[u8], (first, last): (u8, u8)) -> (f64, f64, f64) {
    let same = |place: &usize| {
        let at = |text: &[u8]| text.get(*place).copied();
        at(value).is_some() && at(value) == at(low) && at(low) == at(high)
    };
    let common = (0..value.len()).take_while(same).count();
    let base = f64::from(last) - f64::from(first) + 1.0;
    let of = |text: &[u8]| {
        let mut share = 1.0;
        let digit = |byte: &u8| match *byte {
            byte if byte < first => -1.0,
            byte if byte > last => base,
            byte => f64::from(byte - first),
        };
        let rest = text[common..].iter().take(CHARACTERS_MAX);
        rest.map(|byte| {
            share /= base;
            digit(byte) * share
        })
        .sum()
    };
    (of(value), of(low), of(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lie_between_others() {
        let of = |value, low, high| {
            let text = |text: &str| Datum::text(text);
            fraction(&text(value), &text(low), &text(high)).expect("texts")
        };
        assert_eq!(of("a", "b", "c"), 0.0);
        assert_eq!(of("d", "b", "c"), 1.0);
        let middle = of("customer#500", "customer#000", "customer#999");
        assert!((0.4..0.6).contains(&middle), "{middle}");
        let early = of("carrot", "apple", "orange");
        assert!((0.1..0.2).contains(&early), "{early}");
    }

    #[test]
    fn numbers_and_times_lie_between_others() {
        let of = |value: i32| {
            fraction(
                &Datum::Int8(value.into()),
                &Datum::Int4(10),
                &Datum::Int4(20),
            )
        };
        assert_eq!(of(12), Some(0.2));
        assert_eq!(of(30), Some(1.0));
        let day = Datum::Date(3);
        let low = Datum::Timestamp(0);
        let high = Datum::Timestamp(4 * 86_400_000_000);
        assert_eq!(fraction(&day, &low, &high), Some(0.75));
        assert_eq!(fraction(&Datum::Void, &low, &high), None);
    }
}
