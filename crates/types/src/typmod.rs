//! Type modifiers: what stands in parentheses after a type's name, as one number.
//!
//! | type | modifier |
//! |---|---|
//! | `varchar(n)`, `char(n)` | n + 4 |
//! | `numeric(p, s)` | (p << 16 \| s in 11 bits) + 4 |
//! | `timestamp(p)`, `time(p)` and with time zone | p |
//! | `bit(n)`, `bit varying(n)`, `vector(n)` and its kin | n |
//! | `interval fields (p)` | fields << 16 \| p, either all ones when absent |

use base::error::{Error, Result, SqlState};

use super::datetime::{interval, time, timestamp};
use super::numeric::RESULT_SCALE_MAX;
use super::{bits, vectors, Datum, Numeric, TypeId};

/// The modifier of a type without one.
pub const NO_TYPMOD: i32 = -1;
/// What character and numeric modifiers are shifted by.
const HEADER: i32 = 4;
/// The longest `varchar(n)`.
pub const CHARACTERS_MAX: i32 = 10_485_760;
/// The longest `bit(n)`: eight for each byte that a value may have.
pub const BIT_LENGTH_MAX: i32 = 83_886_080;
/// Digits of a second.
pub const SECOND_DIGITS_MAX: i32 = 6;
/// The largest declared precision and scale of a numeric.
pub const NUMERIC_PRECISION_MAX: i32 = RESULT_SCALE_MAX;

/// The precision and scale of a numeric modifier.
pub fn numeric_precision(typmod: i32) -> Option<(i32, i32)> {
    if typmod < HEADER {
        return None;
    }
    let bits = typmod - HEADER;
    // The scale is signed, in 11 bits.
    let scale = ((bits & 0x7ff) ^ 1024) - 1024;
    Some((bits >> 16 & 0xffff, scale))
}

/// The length of a `varchar(n)` or `char(n)`.
pub fn character_length(typmod: i32) -> Option<usize> {
    usize::try_from(typmod - HEADER).ok()
}

/// The name of a type as `format_type` gives it: `character varying(10)`, `numeric(10,2)`.
pub fn format_type(kind: TypeId, typmod: i32) -> String {
    if let Some(element) = kind.array_element() {
        return format!("{}[]", format_type(element, typmod));
    }
    if typmod < 0 {
        // The grammar's CHARACTER is character(1), so the type without a length has its own name.
        return match kind {
            TypeId::BPCHAR => "bpchar".to_owned(),
            // BIT is bit(1) likewise.
            TypeId::BIT => "\"bit\"".to_owned(),
            _ => kind.to_string(),
        };
    }
    match kind {
        TypeId::VARCHAR | TypeId::BPCHAR => format!("{kind}({})", typmod - HEADER),
        TypeId::NUMERIC => match numeric_precision(typmod) {
            Some((precision, scale)) => format!("numeric({precision},{scale})"),
            None => kind.to_string(),
        },
        TypeId::TIME => format!("time({typmod}) without time zone"),
        TypeId::TIMETZ => format!("time({typmod}) with time zone"),
        TypeId::TIMESTAMP => format!("timestamp({typmod}) without time zone"),
        TypeId::TIMESTAMPTZ => format!("timestamp({typmod}) with time zone"),
        _ if kind.is_vector() => format!("{kind}({typmod})"),
        TypeId::BIT | TypeId::VARBIT => format!("{kind}({typmod})"),
        TypeId::INTERVAL => interval::format_typmod(typmod),
        _ => kind.to_string(),
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The modifier for what stands in parentheses after a type's name.
///
/// `arguments` are the integer constants, as PostgreSQL's grammar gives them (for an interval: the
/// mask of fields first, then the precision).
///
/// # Errors
/// 22023 when they are not right for the type; 42601 when it takes none.
pub fn typmod_in(kind: TypeId, arguments: &[i32]) -> Result<i32> {
    match kind {
        TypeId::VARCHAR | TypeId::BPCHAR => {
            let name = if kind == TypeId::VARCHAR {
                "varchar"
            } else {
                "char"
            };
            match arguments {
                [n] if *n < 1 => Err(bad(format!("length for type {name} must be at least 1"))),
                [n] if *n > CHARACTERS_MAX => Err(bad(format!(
                    "length for type {name} cannot exceed {CHARACTERS_MAX}"
                ))),
                [n] => Ok(n + HEADER),
                _ => Err(bad("invalid type modifier")),
            }
        }
        TypeId::NUMERIC => {
            let (precision, scale) = match arguments {
                [precision] => (*precision, 0),
                [precision, scale] => (*precision, *scale),
                _ => return Err(bad("invalid NUMERIC type modifier")),
            };
            let max = NUMERIC_PRECISION_MAX;
            if !(1..=max).contains(&precision) {
                return Err(bad(format!(
                    "NUMERIC precision {precision} must be between 1 and {max}"
                )));
            }
            if !(-max..=max).contains(&scale) {
                return Err(bad(format!(
                    "NUMERIC scale {scale} must be between -{max} and {max}"
                )));
            }
            Ok((precision << 16 | scale & 0x7ff) + HEADER)
        }
        TypeId::TIME | TypeId::TIMETZ | TypeId::TIMESTAMP | TypeId::TIMESTAMPTZ => {
            let (name, zone) = match kind {
                TypeId::TIME => ("TIME", ""),
                TypeId::TIMETZ => ("TIME", " WITH TIME ZONE"),
                TypeId::TIMESTAMP => ("TIMESTAMP", ""),
                _ => ("TIMESTAMP", " WITH TIME ZONE"),
            };
            match arguments {
                [p] if *p < 0 => Err(bad(format!(
                    "{name}({p}){zone} precision must not be negative"
                ))),
                // PostgreSQL warns and takes the maximum.
                [p] => Ok((*p).min(SECOND_DIGITS_MAX)),
                _ => Err(bad("invalid type modifier")),
            }
        }
        TypeId::BIT | TypeId::VARBIT => {
            let name = if kind == TypeId::BIT { "bit" } else { "varbit" };
            match arguments {
                [n] if *n < 1 => Err(bad(format!("length for type {name} must be at least 1"))),
                [n] if *n > BIT_LENGTH_MAX => Err(bad(format!(
                    "length for type {name} cannot exceed {BIT_LENGTH_MAX}"
                ))),
                [n] => Ok(*n),
                _ => Err(bad("invalid type modifier")),
            }
        }
        TypeId::INTERVAL => interval::typmod_in(arguments),
        _ if kind.is_vector() => vectors::typmod_in(kind, arguments),
        _ => Err(Error::new(
            SqlState::SYNTAX_ERROR,
            format!("type modifier is not allowed for type \"{}\"", kind.name()),
        )),
    }
}

/// Makes a value of a type fit a modifier: rounds, pads, or refuses. An explicit cast to
/// `varchar(n)` or `char(n)` truncates where another is 22001.
///
/// # Errors
/// 22001, 22003.
pub fn apply_typmod(kind: TypeId, typmod: i32, value: Datum, explicit: bool) -> Result<Datum> {
    if typmod < 0 {
        return Ok(value);
    }
    match (kind, value) {
        (TypeId::VARCHAR, Datum::Text(text)) => fit_varchar(typmod, text, explicit),
        (TypeId::BPCHAR, Datum::Text(text)) => fit_bpchar(typmod, text, explicit),
        (TypeId::BIT | TypeId::VARBIT, Datum::Bits(bits)) => {
            bits::fit(kind, typmod, bits, explicit)
        }
        (_, Datum::Vector(bytes)) => {
            vectors::check_expected(kind, typmod, &bytes)?;
            Ok(Datum::Vector(bytes))
        }
        (TypeId::NUMERIC, Datum::Numeric(number)) => {
            fit_numeric(typmod, &number).map(Datum::Numeric)
        }
        (_, Datum::Time(micros)) => Ok(Datum::Time(time::round(micros, typmod))),
        (_, Datum::TimeTz(micros, zone)) => Ok(Datum::TimeTz(time::round(micros, typmod), zone)),
        (_, Datum::Timestamp(micros)) => timestamp::round(micros, typmod).map(Datum::Timestamp),
        (_, Datum::TimestampTz(micros)) => timestamp::round(micros, typmod).map(Datum::TimestampTz),
        (_, Datum::Interval(value)) => interval::apply_typmod(value, typmod).map(Datum::Interval),
        (_, Datum::Array(array)) => {
            let elements = array
                .elements
                .iter()
                .map(|element| apply_typmod(array.element, typmod, element.clone(), explicit))
                .collect::<Result<Vec<_>>>()?;
            let mut fitted = (*array).clone();
            fitted.elements = elements;
            Ok(Datum::Array(fitted.into()))
        }
        (_, value) => Ok(value),
    }
}

fn too_long(kind: TypeId, length: usize) -> Error {
    Error::new(
        SqlState::STRING_DATA_RIGHT_TRUNCATION,
        format!("value too long for type {kind}({length})"),
    )
}

type Text = std::sync::Arc<str>;

fn fit_varchar(typmod: i32, text: Text, explicit: bool) -> Result<Datum> {
    let Some(length) = character_length(typmod) else {
        return Ok(Datum::Text(text));
    };
    let Some((end, _)) = text.char_indices().nth(length) else {
        return Ok(Datum::Text(text));
    };
    if !explicit && text[end..].bytes().any(|b| b != b' ') {
        return Err(too_long(TypeId::VARCHAR, length));
    }
    Ok(Datum::text(&text[..end]))
}

fn fit_bpchar(typmod: i32, text: Text, explicit: bool) -> Result<Datum> {
    let Some(length) = character_length(typmod) else {
        return Ok(Datum::Text(text));
    };
    if let Some((end, _)) = text.char_indices().nth(length) {
        if !explicit && text[end..].bytes().any(|b| b != b' ') {
            return Err(too_long(TypeId::BPCHAR, length));
        }
        return Ok(Datum::text(&text[..end]));
    }
    let missing = length - text.chars().count();
    if missing == 0 {
        return Ok(Datum::Text(text));
    }
    let mut padded = String::with_capacity(text.len() + missing);
    padded.push_str(&text);
    // COPY fills such columns by the million, so it is done by blocks.
    const SPACES: &str = "                                                                ";
    let mut left = missing;
    while left > 0 {
        let block = left.min(SPACES.len());
        padded.push_str(&SPACES[..block]);
        left -= block;
    }
    Ok(Datum::text(padded))
}

fn fit_numeric(typmod: i32, number: &Numeric) -> Result<Numeric> {
    let Some((precision, scale)) = numeric_precision(typmod) else {
        return Ok(number.clone());
    };
    let field_overflow = |detail: String| {
        Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "numeric field overflow",
        )
        .with_detail(detail)
    };
    if number.is_nan() {
        return Ok(number.clone());
    }
    if !number.is_finite() {
        return Err(field_overflow(format!(
            "A field with precision {precision}, scale {scale} cannot hold an infinite value."
        )));
    }
    let rounded = number.round(scale)?;
    if rounded.integer_digits() > precision - scale {
        let power = precision - scale;
        let bound = match power {
            0 => "1".to_owned(),
            _ => format!("10^{power}"),
        };
        return Err(field_overflow(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
        )));
    }
    Ok(rounded)
}
