//! Points, lines, line segments, boxes, paths, polygons and circles of the plane.
//!
//! ```
//! # use types::{EvalContext, TypeId};
//! let context = EvalContext::for_tests();
//! let value = types::input(&context, TypeId::BOX, -1, "0,1 , (2,0)").unwrap();
//! assert_eq!(types::output(&context, TypeId::BOX, &value).unwrap(), "(2,1),(0,0)");
//! ```
//! A value is a list of numbers, of which its type says what they mean:
//!
//! | type | numbers | bytes |
//! |---|---|---|
//! | point | x, y | the numbers |
//! | line | A, B, C of Ax + By + C = 0 | the numbers |
//! | lseg | its two points | the numbers |
//! | box | the upper right corner, the lower left one | the numbers |
//! | path | 1 for a closed one or 0, then its points | a byte, how many points in 4 bytes, the points |
//! | polygon | its points | how many in 4 bytes, the points |
//! | circle | the centre, the radius | the numbers |
//!
//! In rows a value has the bytes that clients are sent: numbers of 8 bytes, IEEE 754, big-endian.
//!
//! # Invariants
//! - Of a box, no coordinate of the first corner is below that of the second; NaN is above all.
//! - A path and a polygon have a point at least.
//! - The radius of a circle that was read is not negative; it may be NaN.
//!
//! # What it leaves out
//! What the values are to one another: `functions::geometry`. They have no order, and equality only
//! where an operator says what it is, so none is a key.
//!
//! Source: PostgreSQL 15 manual, section 8.8.

pub mod plane;
mod text;

use std::sync::Arc;

use base::error::{Error, Result, SqlState};

use super::float::compare_floats;
use super::{Datum, TypeId};

pub use text::{input, write};

/// What is said of a line without a direction.
const NO_LINE: &str = "invalid line specification: A and B cannot both be zero";

/// What is said of a line through one point.
pub const SAME_POINT: &str = "invalid line specification: must be two distinct points";

/// Points that a path or polygon from a client has at most.
const POINTS_MAX: usize = (i32::MAX as usize - 32) / 16;

/// A value of these numbers.
pub fn datum(numbers: &[f64]) -> Datum {
    Datum::Geometry(Arc::from(numbers))
}

/// The corners of a box in their order.
pub(crate) fn ordered_corners(numbers: &mut [f64]) {
    let [high_x, high_y, low_x, low_y] = numbers else {
        return;
    };
    if compare_floats(*low_x, *high_x).is_gt() {
        std::mem::swap(low_x, high_x);
    }
    if compare_floats(*low_y, *high_y).is_gt() {
        std::mem::swap(low_y, high_y);
    }
}

/// Appends the bytes of a value.
pub(crate) fn encode(kind: TypeId, numbers: &[f64], out: &mut Vec<u8>) {
    let points = match (kind, numbers) {
        (TypeId::PATH, [closed, points @ ..]) => {
            out.push(u8::from(*closed != 0.0));
            points
        }
        _ => numbers,
    };
    if matches!(kind, TypeId::PATH | TypeId::POLYGON) {
        out.extend_from_slice(&((points.len() / 2) as i32).to_be_bytes());
    }
    for number in points {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

/// The value of bytes that [`encode`] has made.
///
/// # Errors
/// XX001 when they are none.
pub(crate) fn decode(kind: TypeId, bytes: &[u8]) -> Result<Datum> {
    let wrong = || Error::corrupted(format!("a {kind} of {} bytes", bytes.len()));
    let (mut numbers, rest) = match (kind, bytes) {
        (TypeId::PATH, [closed, rest @ ..]) => (vec![f64::from(*closed)], rest),
        _ => (Vec::new(), bytes),
    };
    let rest = match kind {
        TypeId::PATH | TypeId::POLYGON => rest.get(4..).ok_or_else(wrong)?,
        _ => rest,
    };
    let (each, more) = rest.as_chunks::<8>();
    if !more.is_empty() {
        return Err(wrong());
    }
    numbers.extend(each.iter().map(|bytes| f64::from_be_bytes(*bytes)));
    Ok(Datum::Geometry(Arc::from(numbers)))
}

fn bad(what: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_BINARY_REPRESENTATION, what)
}

/// Reads what a client has sent.
///
/// # Errors
/// 08P01 where bytes are missing, 22P03 where they are no such value.
pub(crate) fn receive(kind: TypeId, bytes: &[u8]) -> Result<Datum> {
    let mut rest = bytes;
    let mut take = |count: usize| match rest.split_at_checked(count) {
        Some((head, tail)) => {
            rest = tail;
            Ok(head)
        }
        None => Err(Error::new(
            SqlState::PROTOCOL_VIOLATION,
            "insufficient data left in message",
        )),
    };
    let mut numbers = match kind {
        TypeId::PATH => {
            let closed = bytes.first().ok_or_else(|| {
                Error::new(SqlState::PROTOCOL_VIOLATION, "no data left in message")
            })?;
            take(1)?;
            vec![f64::from(u8::from(*closed != 0))]
        }
        _ => Vec::new(),
    };
    let count = match kind {
        TypeId::PATH | TypeId::POLYGON => {
            let count = take(4)?;
            let count = i32::from_be_bytes([count[0], count[1], count[2], count[3]]);
            let count = usize::try_from(count).unwrap_or(0);
            if count == 0 || count >= POINTS_MAX {
                let what = format!("invalid number of points in external \"{kind}\" value");
                return Err(bad(what));
            }
            2 * count
        }
        _ => usize::try_from(kind.len()).unwrap_or(0) / 8,
    };
    let (each, _) = take(8 * count)?.as_chunks::<8>();
    numbers.extend(each.iter().map(|bytes| f64::from_be_bytes(*bytes)));
    match (kind, &mut numbers[..]) {
        (TypeId::BOX, corners) => ordered_corners(corners),
        (TypeId::LINE, [a, b, _]) if plane::is_zero(*a) && plane::is_zero(*b) => {
            return Err(bad(NO_LINE));
        }
        (TypeId::CIRCLE, [_, _, radius]) if *radius < 0.0 => {
            return Err(bad("invalid radius in external \"circle\" value"));
        }
        _ => {}
    }
    match rest.is_empty() {
        true => Ok(datum(&numbers)),
        false => Err(bad("incorrect binary data format")),
    }
}

/// Where the element at a place is: the coordinate of a point or number of a line, or the point of a
/// line segment or a box, which have four numbers.
fn place_of(numbers: &[f64], place: i64) -> Option<std::ops::Range<usize>> {
    let size = if numbers.len() == 4 { 2 } else { 1 };
    let start = usize::try_from(place).ok()?.checked_mul(size)?;
    (start < numbers.len()).then_some(start..start + size)
}

/// The element of a value that is an array of a fixed length; NULL if there is none.
pub fn element(numbers: &[f64], place: i64) -> Datum {
    match place_of(numbers, place).map(|place| &numbers[place]) {
        Some([number]) => Datum::Float8(*number),
        Some(point) => datum(point),
        None => Datum::Null,
    }
}

/// The value with another element there; none if there is no such place.
pub fn with_element(numbers: &[f64], place: i64, element: &Datum) -> Option<Datum> {
    let place = place_of(numbers, place)?;
    let mut changed = numbers.to_vec();
    match element {
        Datum::Float8(number) => changed[place].fill(*number),
        Datum::Geometry(point) if point.len() == place.len() => {
            changed[place].copy_from_slice(point);
        }
        _ => return None,
    }
    Some(datum(&changed))
}
