//! Arguments by position, with their expected kinds.
//!
//! A value of another kind is a bug of the binder, not of the user: XX000.

use std::sync::Arc;

use base::error::{Error, Result};

use types::{Array, Bits, Datum, Interval, Network, Numeric};

#[cold]
fn unexpected(index: usize, wanted: &str, value: Option<&Datum>) -> Error {
    Error::internal(format!(
        "argument {index} is {value:?} where {wanted} is wanted"
    ))
}

macro_rules! getters {
    ($($name:ident $variant:ident $type:ty;)*) => {
        $(fn $name(&self, index: usize) -> Result<$type> {
            match self.slice().get(index) {
                Some(Datum::$variant(value)) => Ok(value.clone()),
                other => Err(unexpected(index, stringify!($variant), other)),
            }
        })*
    };
}

/// Typed access to a list of values.
pub(crate) trait Arguments {
    /// The values.
    fn slice(&self) -> &[Datum];

    getters! {
        bool Bool bool;
        date Date i32;
        time Time i64;
        timestamp Timestamp i64;
        timestamptz TimestampTz i64;
        interval Interval Interval;
        unsigned8 Unsigned8 u64;
        bytea Bytea Arc<[u8]>;
        array Array Arc<Array>;
        hstore Hstore Arc<[u8]>;
        vector Vector Arc<[u8]>;
        bits Bits Arc<Bits>;
        money Money i64;
        network Network Network;
        character Char u8;
    }

    /// A value of any type.
    fn any(&self, index: usize) -> Result<&Datum> {
        self.slice()
            .get(index)
            .ok_or_else(|| unexpected(index, "a value", None))
    }

    /// An integer of any width.
    fn int(&self, index: usize) -> Result<i64> {
        let value = self.slice().get(index);
        value
            .and_then(Datum::as_i64)
            .ok_or_else(|| unexpected(index, "an integer", value))
    }

    /// An integer of 32 bits.
    fn int4(&self, index: usize) -> Result<i32> {
        match self.slice().get(index) {
            Some(Datum::Int4(value)) => Ok(*value),
            other => Err(unexpected(index, "Int4", other)),
        }
    }

    /// A float of either width.
    fn float(&self, index: usize) -> Result<f64> {
        match self.slice().get(index) {
            Some(Datum::Float8(value)) => Ok(*value),
            Some(Datum::Float4(value)) => Ok(f64::from(*value)),
            other => Err(unexpected(index, "a float", other)),
        }
    }

    /// A decimal number.
    fn numeric(&self, index: usize) -> Result<&Numeric> {
        match self.slice().get(index) {
            Some(Datum::Numeric(value)) => Ok(value),
            other => Err(unexpected(index, "Numeric", other)),
        }
    }

    /// A text.
    fn text(&self, index: usize) -> Result<&str> {
        match self.slice().get(index) {
            Some(Datum::Text(value)) => Ok(value),
            other => Err(unexpected(index, "Text", other)),
        }
    }

    /// A time with time zone.
    fn timetz(&self, index: usize) -> Result<(i64, i32)> {
        match self.slice().get(index) {
            Some(Datum::TimeTz(micros, zone)) => Ok((*micros, *zone)),
            other => Err(unexpected(index, "TimeTz", other)),
        }
    }
}

impl Arguments for [Datum] {
    fn slice(&self) -> &[Datum] {
        self
    }
}
