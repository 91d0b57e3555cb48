//! Arithmetic of coordinates, and the points and lines that all other shapes are made of.
//!
//! Numbers are compared with [`EPSILON`] between them, so that what was computed in two ways is the
//! same; arithmetic fails where `double precision` does.
//!
//! ```
//! use types::geometry::plane::{Line, Point};
//! let (a, b) = (Point::new(0.0, 0.0), Point::new(2.0, 1.0));
//! let line = Line::through(a, a.slope(b).unwrap()).unwrap();
//! assert!(line.holds(Point::new(4.0, 2.0)).unwrap());
//! ```
//!
//! # Invariants
//! - Two points are the same if each coordinate is, with [`EPSILON`] between them; where one is NaN,
//!   only if they are the very same.

use base::error::{Error, Result, SqlState};

use crate::float::compare_floats;

/// Numbers that differ by no more are taken for equal.
pub const EPSILON: f64 = 1e-6;

/// Whether a number is taken for zero.
pub fn is_zero(value: f64) -> bool {
    value.abs() <= EPSILON
}

/// Whether two numbers are taken for equal.
pub fn is_same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= EPSILON
}

/// Whether two numbers differ; of NaN nobody knows.
pub fn differ(a: f64, b: f64) -> bool {
    a != b && (a - b).abs() > EPSILON
}

/// Whether a number is below another, and not equal.
pub fn is_below(a: f64, b: f64) -> bool {
    a + EPSILON < b
}

/// Whether a number is below another or equal.
pub fn is_at_most(a: f64, b: f64) -> bool {
    a <= b + EPSILON
}

/// Whether a number is above another, and not equal.
pub fn is_above(a: f64, b: f64) -> bool {
    a > b + EPSILON
}

/// Whether a number is above another or equal.
pub fn is_at_least(a: f64, b: f64) -> bool {
    a + EPSILON >= b
}

/// The lesser of two numbers, where NaN is above all others.
pub fn least(a: f64, b: f64) -> f64 {
    match compare_floats(a, b).is_lt() {
        true => a,
        false => b,
    }
}

/// The greater of two numbers, where NaN is above all others.
pub fn greatest(a: f64, b: f64) -> f64 {
    match compare_floats(a, b).is_gt() {
        true => a,
        false => b,
    }
}

fn out_of_range(how: &str) -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("value out of range: {how}"),
    )
}

/// An infinite result of finite numbers is an overflow.
fn finite(result: f64, a: f64, b: f64) -> Result<f64> {
    match result.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        true => Err(out_of_range("overflow")),
        false => Ok(result),
    }
}

/// A sum.
///
/// # Errors
/// 22003.
pub fn add(a: f64, b: f64) -> Result<f64> {
    finite(a + b, a, b)
}

/// A difference.
///
/// # Errors
/// 22003.
pub fn sub(a: f64, b: f64) -> Result<f64> {
    finite(a - b, a, b)
}

/// A product.
///
/// # Errors
/// 22003, also for what is too small.
pub fn mul(a: f64, b: f64) -> Result<f64> {
    let product = finite(a * b, a, b)?;
    match product == 0.0 && a != 0.0 && b != 0.0 {
        true => Err(out_of_range("underflow")),
        false => Ok(product),
    }
}

/// A quotient.
///
/// # Errors
/// 22003, also for what is too small; 22012.
pub fn div(a: f64, b: f64) -> Result<f64> {
    if b == 0.0 && !a.is_nan() {
        return Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    let quotient = a / b;
    if quotient.is_infinite() && !a.is_infinite() {
        return Err(out_of_range("overflow"));
    }
    match quotient == 0.0 && a != 0.0 && !b.is_infinite() {
        true => Err(out_of_range("underflow")),
        false => Ok(quotient),
    }
}

/// The length of the longest side of a triangle with a right angle.
///
/// # Errors
/// 22003.
pub fn hypotenuse(x: f64, y: f64) -> Result<f64> {
    if x.is_infinite() || y.is_infinite() {
        return Ok(f64::INFINITY);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    let (x, y) = (x.abs(), y.abs());
    let (long, short) = if x < y { (y, x) } else { (x, y) };
    if short == 0.0 {
        return Ok(long);
    }
    let ratio = short / long;
    let length = long * (1.0 + ratio * ratio).sqrt();
    match length {
        length if length.is_infinite() => Err(out_of_range("overflow")),
        0.0 => Err(out_of_range("underflow")),
        length => Ok(length),
    }
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

impl Point {
    /// The point of these coordinates.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }

    /// Whether it is taken for the same as another.
    pub fn is_same(self, other: Point) -> bool {
        let numbers = [self.x, self.y, other.x, other.y];
        if numbers.iter().any(|number| number.is_nan()) {
            let is_equal = |a, b| compare_floats(a, b).is_eq();
            return is_equal(self.x, other.x) && is_equal(self.y, other.y);
        }
        is_same(self.x, other.x) && is_same(self.y, other.y)
    }

    /// How far it is from another.
    ///
    /// # Errors
    /// 22003.
    pub fn distance(self, other: Point) -> Result<f64> {
        hypotenuse(sub(self.x, other.x)?, sub(self.y, other.y)?)
    }

    /// The slope of the line through it and another, infinite for a vertical one.
    ///
    /// # Errors
    /// 22003.
    pub fn slope(self, other: Point) -> Result<f64> {
        if is_same(self.x, other.x) {
            return Ok(f64::INFINITY);
        }
        if is_same(self.y, other.y) {
            return Ok(0.0);
        }
        div(sub(self.y, other.y)?, sub(self.x, other.x)?)
    }

    /// The slope of what is perpendicular to that line.
    ///
    /// # Errors
    /// 22003.
    pub fn perpendicular_slope(self, other: Point) -> Result<f64> {
        if is_same(self.x, other.x) {
            return Ok(0.0);
        }
        if is_same(self.y, other.y) {
            return Ok(f64::INFINITY);
        }
        div(sub(self.x, other.x)?, sub(other.y, self.y)?)
    }
}

/// A line: the points of which Ax + By + C is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Line {
    pub a: f64,
    pub b: f64,
    pub c: f64,
}

impl Line {
    /// The line through a point with a slope.
    ///
    /// # Errors
    /// 22003.
    pub fn through(point: Point, slope: f64) -> Result<Line> {
        let (a, b, c) = if slope.is_infinite() {
            (-1.0, 0.0, point.x)
        } else if slope == 0.0 {
            (0.0, -1.0, point.y)
        } else {
            // Adding zero turns -0 into 0.
            let c = sub(point.y, mul(slope, point.x)?)? + 0.0;
            (slope, -1.0, c)
        };
        Ok(Line { a, b, c })
    }

    /// Its slope, infinite for a vertical one.
    ///
    /// # Errors
    /// 22003.
    pub fn slope(self) -> Result<f64> {
        if is_zero(self.a) {
            return Ok(0.0);
        }
        if is_zero(self.b) {
            return Ok(f64::INFINITY);
        }
        div(self.a, -self.b)
    }

    /// The slope of what is perpendicular to it.
    ///
    /// # Errors
    /// 22003.
    pub fn perpendicular_slope(self) -> Result<f64> {
        if is_zero(self.a) {
            return Ok(f64::INFINITY);
        }
        if is_zero(self.b) {
            return Ok(0.0);
        }
        div(self.b, self.a)
    }

    /// Whether a point is on it.
    ///
    /// # Errors
    /// 22003.
    pub fn holds(self, point: Point) -> Result<bool> {
        let sum = add(mul(self.a, point.x)?, mul(self.b, point.y)?)?;
        Ok(is_zero(add(sum, self.c)?))
    }

    /// Where it meets another; none if they are parallel.
    ///
    /// # Errors
    /// 22003.
    pub fn meeting(self, other: Line) -> Result<Option<Point>> {
        let (one, two) = if !is_zero(self.b) {
            (self, other)
        } else if !is_zero(other.b) {
            (other, self)
        } else {
            return Ok(None);
        };
        if is_same(two.a, mul(one.a, div(two.b, one.b)?)?) {
            return Ok(None);
        }
        let above = sub(mul(one.b, two.c)?, mul(two.b, one.c)?)?;
        let below = sub(mul(one.a, two.b)?, mul(two.a, one.b)?)?;
        let x = div(above, below)?;
        let y = div(-add(mul(one.a, x)?, one.c)?, one.b)?;
        Ok(Some(Point::new(x + 0.0, y + 0.0)))
    }
}
