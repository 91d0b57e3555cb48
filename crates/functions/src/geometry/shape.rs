//! Shapes as values: from the numbers of a datum, and back.
//!
//! A function of shapes is a line of [`shapes`]: its arguments with their types, and what it gives.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result};

use crate::integer::out_of_range;
use types::geometry::plane::{self, Line, Point};
use types::{Datum, TypeId};

/// What looking at a point of a shape of many counts for, in the units of [`coro::work`].
pub(crate) const POINT_WORK: usize = 16;

/// A line segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub from: Point,
    pub to: Point,
}

/// A box: its upper right corner, and its lower left one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rectangle {
    pub high: Point,
    pub low: Point,
}

/// A path, which closes or does not. It has a point at least.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub is_closed: bool,
    pub points: Vec<Point>,
}

/// A polygon. It has a point at least.
#[derive(Clone, Debug)]
pub(crate) struct Polygon {
    pub points: Vec<Point>,
}

/// A circle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circle {
    pub center: Point,
    pub radius: f64,
}

impl Segment {
    pub fn new(from: Point, to: Point) -> Segment {
        Segment { from, to }
    }
}

impl Rectangle {
    /// The box of which these are opposite corners.
    pub fn of_corners(a: Point, b: Point) -> Rectangle {
        let sides = |a: f64, b: f64| match types::float::compare_floats(a, b).is_gt() {
            true => (a, b),
            false => (b, a),
        };
        let ((right, left), (top, bottom)) = (sides(a.x, b.x), sides(a.y, b.y));
        Rectangle {
            high: Point::new(right, top),
            low: Point::new(left, bottom),
        }
    }

    /// The smallest box around points, of which there is one at least.
    pub fn around(points: &[Point]) -> Result<Rectangle> {
        coro::work(POINT_WORK * points.len())?;
        let first = points.first().copied().unwrap_or(Point::new(0.0, 0.0));
        let mut found = Rectangle {
            high: first,
            low: first,
        };
        for point in points {
            found.high.x = plane::greatest(point.x, found.high.x);
            found.high.y = plane::greatest(point.y, found.high.y);
            found.low.x = plane::least(point.x, found.low.x);
            found.low.y = plane::least(point.y, found.low.y);
        }
        Ok(found)
    }

    /// The four corners: the lower left, the upper left, the upper right, the lower right one.
    pub fn corners(self) -> [Point; 4] {
        let (high, low) = (self.high, self.low);
        let (upper_left, lower_right) = (Point::new(low.x, high.y), Point::new(high.x, low.y));
        [low, upper_left, high, lower_right]
    }

    /// The sides: left, upper, lower, right.
    pub fn sides(self) -> [Segment; 4] {
        let [low, upper_left, high, lower_right] = self.corners();
        [
            Segment::new(low, upper_left),
            Segment::new(high, upper_left),
            Segment::new(low, lower_right),
            Segment::new(high, lower_right),
        ]
    }
}

/// The segments from each point to the next; of what is closed first the one from the last point to
/// the first.
pub(crate) fn sides(
    points: &[Point],
    is_closed: bool,
) -> impl Iterator<Item = Segment> + Clone + '_ {
    let closing = match (points, is_closed) {
        ([first, .., last], true) => Some(Segment::new(*last, *first)),
        ([only], true) => Some(Segment::new(*only, *only)),
        _ => None,
    };
    let pairs = points.windows(2);
    let others = pairs.map(|pair| Segment::new(pair[0], pair[1]));
    closing.into_iter().chain(others)
}

fn point_of(numbers: &[f64]) -> Option<Point> {
    match numbers {
        [x, y] => Some(Point::new(*x, *y)),
        _ => None,
    }
}

fn points_of(numbers: &[f64]) -> Result<Vec<Point>> {
    coro::work(numbers.len())?;
    Ok(numbers.chunks_exact(2).filter_map(point_of).collect())
}

/// What a function takes.
pub(crate) trait Given: Sized {
    /// The argument, if it is such a one.
    fn given(value: &Datum) -> Result<Option<Self>>;

    /// The next argument.
    fn next<'d>(args: &mut impl Iterator<Item = &'d Datum>) -> Result<Self> {
        let value = args.next();
        let found = value.map_or(Ok(None), Self::given)?;
        found.ok_or_else(|| Error::internal(format!("{value:?} is not the shape that is wanted")))
    }
}

/// What a function gives.
pub(crate) trait Gives {
    /// It as a value.
    fn datum(self) -> Datum;
}

macro_rules! simple_shapes {
    ($($shape:ty, $numbers:pat => $given:expr, $value:ident => $datum:expr;)*) => {
        $(impl Given for $shape {
            fn given(value: &Datum) -> Result<Option<Self>> {
                Ok(match value {
                    Datum::Geometry(numbers) => match numbers[..] {
                        $numbers => Some($given),
                        _ => None,
                    },
                    _ => None,
                })
            }
        }

        impl Gives for $shape {
            fn datum(self) -> Datum {
                let $value = self;
                types::geometry::datum(&$datum)
            }
        })*
    };
}

simple_shapes! {
    Point, [x, y] => Point::new(x, y), point => [point.x, point.y];
    Line, [a, b, c] => Line { a, b, c }, line => [line.a, line.b, line.c];
    Segment,
        [x, y, z, w] => Segment::new(Point::new(x, y), Point::new(z, w)),
        segment => [segment.from.x, segment.from.y, segment.to.x, segment.to.y];
    Rectangle,
        [right, top, left, bottom] => Rectangle {
            high: Point::new(right, top),
            low: Point::new(left, bottom),
        },
        found => [found.high.x, found.high.y, found.low.x, found.low.y];
    Circle,
        [x, y, radius] => Circle { center: Point::new(x, y), radius },
        circle => [circle.center.x, circle.center.y, circle.radius];
}

impl Given for Path {
    fn given(value: &Datum) -> Result<Option<Path>> {
        let Datum::Geometry(numbers) = value else {
            return Ok(None);
        };
        let [closed, points @ ..] = &numbers[..] else {
            return Ok(None);
        };
        Ok(Some(Path {
            is_closed: *closed != 0.0,
            points: points_of(points)?,
        }))
    }
}

impl Gives for Path {
    fn datum(self) -> Datum {
        let closed = f64::from(u8::from(self.is_closed));
        let numbers = self.points.iter().flat_map(|point| [point.x, point.y]);
        Datum::Geometry(std::iter::once(closed).chain(numbers).collect())
    }
}

impl Given for Polygon {
    fn given(value: &Datum) -> Result<Option<Polygon>> {
        let Datum::Geometry(numbers) = value else {
            return Ok(None);
        };
        let points = points_of(numbers)?;
        Ok(Some(Polygon { points }))
    }
}

impl Gives for Polygon {
    fn datum(self) -> Datum {
        let numbers = self.points.iter().flat_map(|point| [point.x, point.y]);
        Datum::Geometry(numbers.collect::<Arc<[f64]>>())
    }
}

impl Given for f64 {
    fn given(value: &Datum) -> Result<Option<f64>> {
        Ok(match value {
            Datum::Float8(value) => Some(*value),
            _ => None,
        })
    }
}

impl Given for i32 {
    fn given(value: &Datum) -> Result<Option<i32>> {
        Ok(match value {
            Datum::Int4(value) => Some(*value),
            _ => None,
        })
    }
}

impl Gives for f64 {
    fn datum(self) -> Datum {
        Datum::Float8(self)
    }
}

impl Gives for bool {
    fn datum(self) -> Datum {
        Datum::Bool(self)
    }
}

impl Gives for i32 {
    fn datum(self) -> Datum {
        Datum::Int4(self)
    }
}

impl<T: Gives> Gives for Option<T> {
    fn datum(self) -> Datum {
        self.map_or(Datum::Null, T::datum)
    }
}

/// How many points a path or polygon has.
///
/// # Errors
/// 22003.
pub(crate) fn count(points: &[Point]) -> Result<i32> {
    i32::try_from(points.len()).map_err(|_| out_of_range(TypeId::INT4))
}

/// Functions by their arguments and what they give, which may fail.
macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $answer:expr;)*) => {
        $($(#[$doc])*
        pub(crate) fn $name(_: &$crate::Call<'_>, args: &[::types::Datum]) -> ::base::Result<::types::Datum> {
            let mut args = args.iter();
            $(let $argument = <$type as $crate::geometry::shape::Given>::next(&mut args)?;)*
            let answer = $answer;
            Ok($crate::geometry::shape::Gives::datum(answer))
        })*
    };
}

/// The same functions with their two arguments the other way round.
macro_rules! swapped {
    ($($name:ident $other:ident;)*) => {
        $(pub(crate) fn $name(call: &$crate::Call<'_>, args: &[::types::Datum]) -> ::base::Result<::types::Datum> {
            match args {
                [a, b] => $other(call, &[b.clone(), a.clone()]),
                _ => $other(call, args),
            }
        })*
    };
}

pub(crate) use {shapes, swapped};
