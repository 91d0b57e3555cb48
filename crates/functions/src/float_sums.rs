//! Sums of floats, as aggregates make them: an infinity that nothing infinite went into is an error.

use base::error::{Error, Result, SqlState};

use types::Datum;

pub(crate) fn float_overflow() -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: overflow",
    )
}

/// The value of a float of either size.
pub(crate) fn float(value: &Datum) -> Result<f64> {
    match value {
        Datum::Float8(v) => Ok(*v),
        Datum::Float4(v) => Ok(f64::from(*v)),
        _ => Err(Error::internal(format!(
            "an aggregate of floats cannot take {value:?}"
        ))),
    }
}

/// The sum of floats, an overflow unless an infinity went in.
pub(crate) fn add_floats(a: f64, b: f64) -> Result<f64> {
    let sum = a + b;
    match sum.is_infinite() && a.is_finite() && b.is_finite() {
        true => Err(float_overflow()),
        false => Ok(sum),
    }
}
