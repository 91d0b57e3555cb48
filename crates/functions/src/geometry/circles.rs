//! Circles. What compares them with `<` and `=` looks at their areas.

use std::f64::consts::PI;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::points::{moved, moved_back, turned, turned_back};
use super::shape::{shapes, Circle, Polygon, Rectangle, POINT_WORK};
use crate::arguments::Arguments;
use crate::Call;
use types::geometry::plane::{
    add, differ, div, hypotenuse, is_above, is_at_least, is_at_most, is_below, is_same, is_zero,
    mul, sub, Point,
};
use types::{growth, Datum};

/// The points of a circle as a polygon, if nobody says how many.
const POINTS: i32 = 12;

/// Points of 16 bytes that a polygon has at most, however much memory there is.
const POINTS_MAX: i32 = (i32::MAX - 40) / 16;

impl Circle {
    fn area(self) -> Result<f64> {
        mul(mul(self.radius, self.radius)?, PI)
    }

    /// Whether a point is in it, to the last digit.
    pub fn holds(self, point: Point) -> Result<bool> {
        Ok(self.center.distance(point)? <= self.radius)
    }

    /// How far a point is; 0 if it is in it.
    pub fn distance_to_point(self, point: Point) -> Result<f64> {
        let distance = sub(point.distance(self.center)?, self.radius)?;
        Ok(if distance < 0.0 { 0.0 } else { distance })
    }

    fn distance(self, other: Circle) -> Result<f64> {
        let radii = add(self.radius, other.radius)?;
        let distance = sub(self.center.distance(other.center)?, radii)?;
        Ok(if distance < 0.0 { 0.0 } else { distance })
    }

    fn overlaps(self, other: Circle) -> Result<bool> {
        let radii = add(self.radius, other.radius)?;
        Ok(is_at_most(self.center.distance(other.center)?, radii))
    }

    fn contains(self, other: Circle) -> Result<bool> {
        let room = sub(self.radius, other.radius)?;
        Ok(is_at_most(self.center.distance(other.center)?, room))
    }

    fn is_same(self, other: Circle) -> bool {
        (self.radius.is_nan() && other.radius.is_nan() || is_same(self.radius, other.radius))
            && self.center.is_same(other.center)
    }

    fn right(self) -> Result<f64> {
        add(self.center.x, self.radius)
    }

    fn left(self) -> Result<f64> {
        sub(self.center.x, self.radius)
    }

    fn top(self) -> Result<f64> {
        add(self.center.y, self.radius)
    }

    fn bottom(self) -> Result<f64> {
        sub(self.center.y, self.radius)
    }

    /// The largest square in it.
    fn square(self) -> Result<Rectangle> {
        let half = div(self.radius, 2f64.sqrt())?;
        let half = Point::new(half, half);
        Ok(Rectangle {
            high: moved(self.center, half)?,
            low: moved_back(self.center, half)?,
        })
    }

    /// So many of its points.
    fn polygon(self, count: i32) -> Result<Polygon> {
        if is_zero(self.radius) {
            let message = "cannot convert circle with radius zero to polygon";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if count < 2 {
            let message = "must request at least 2 points";
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        if count > POINTS_MAX {
            let message = "too many points requested";
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let bytes = count as usize * size_of::<Point>();
        growth::check_room(0, bytes)?;
        growth::check_memory(2 * bytes)?;
        let step = div(2.0 * PI, f64::from(count))?;
        let points = (0..count).map(|number| {
            coro::work(POINT_WORK)?;
            let angle = mul(step, f64::from(number))?;
            let x = sub(self.center.x, mul(self.radius, angle.cos())?)?;
            let y = add(self.center.y, mul(self.radius, angle.sin())?)?;
            Ok(Point::new(x, y))
        });
        Ok(Polygon {
            points: points.collect::<Result<_>>()?,
        })
    }
}

fn by_area(a: Circle, b: Circle, holds: fn(f64, f64) -> bool) -> Result<bool> {
    Ok(holds(a.area()?, b.area()?))
}

fn with_center(circle: Circle, center: Point) -> Circle {
    Circle { center, ..circle }
}

fn scaled(
    circle: Circle,
    by: Point,
    turn: fn(Point, Point) -> Result<Point>,
    scale: fn(f64, f64) -> Result<f64>,
) -> Result<Circle> {
    Ok(Circle {
        center: turn(circle.center, by)?,
        radius: scale(circle.radius, hypotenuse(by.x, by.y)?)?,
    })
}

shapes! {
    same(a: Circle, b: Circle) a.is_same(b);
    overlap(a: Circle, b: Circle) a.overlaps(b)?;
    contain(a: Circle, b: Circle) a.contains(b)?;
    contained(a: Circle, b: Circle) b.contains(a)?;
    left(a: Circle, b: Circle) is_below(a.right()?, b.left()?);
    over_left(a: Circle, b: Circle) is_at_most(a.right()?, b.right()?);
    over_right(a: Circle, b: Circle) is_at_least(a.left()?, b.left()?);
    right(a: Circle, b: Circle) is_above(a.left()?, b.right()?);
    below(a: Circle, b: Circle) is_below(a.top()?, b.bottom()?);
    over_below(a: Circle, b: Circle) is_at_most(a.top()?, b.top()?);
    over_above(a: Circle, b: Circle) is_at_least(a.bottom()?, b.bottom()?);
    above(a: Circle, b: Circle) is_above(a.bottom()?, b.top()?);
    eq(a: Circle, b: Circle) by_area(a, b, is_same)?;
    ne(a: Circle, b: Circle) by_area(a, b, differ)?;
    lt(a: Circle, b: Circle) by_area(a, b, is_below)?;
    le(a: Circle, b: Circle) by_area(a, b, is_at_most)?;
    gt(a: Circle, b: Circle) by_area(a, b, is_above)?;
    ge(a: Circle, b: Circle) by_area(a, b, is_at_least)?;
    area(a: Circle) a.area()?;
    diameter(a: Circle) mul(a.radius, 2.0)?;
    radius(a: Circle) a.radius;
    center(a: Circle) a.center;
    distance(a: Circle, b: Circle) a.distance(b)?;
    make(center: Point, radius: f64) Circle { center, radius };
    plus(a: Circle, by: Point) with_center(a, moved(a.center, by)?);
    minus(a: Circle, by: Point) with_center(a, moved_back(a.center, by)?);
    times(a: Circle, by: Point) scaled(a, by, turned, mul)?;
    over(a: Circle, by: Point) scaled(a, by, turned_back, div)?;
    to_box(a: Circle) a.square()?;
    polygon(count: i32, a: Circle) a.polygon(count)?;
}

/// The polygon of a circle where nobody says how many points it is to have.
pub(crate) fn to_polygon(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    polygon(call, &[Datum::Int4(POINTS), args.any(0)?.clone()])
}
