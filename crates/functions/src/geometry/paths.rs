//! Paths. What compares them with `<` and `=` looks at how many points they have.

use base::coro;
use base::error::{Error, Result, SqlState};

use super::inside;
use super::points::{moved, moved_back, turned, turned_back};
use super::shape::{count, shapes, sides, Path, Polygon, Rectangle, Segment, POINT_WORK};
use types::float::compare_floats;
use types::geometry::plane::{add, div, is_same, mul, sub, Point};

/// The least distance of the sides of one shape from those of another; none if one has no sides.
pub(super) fn least_distance(
    one: impl Iterator<Item = Segment>,
    other: impl Iterator<Item = Segment> + Clone,
) -> Result<Option<f64>> {
    let mut least: Option<f64> = None;
    for side in one {
        for of_other in other.clone() {
            coro::work(POINT_WORK)?;
            let distance = side.nearest_to_segment(of_other)?.1;
            let is_less = least.is_none_or(|least| compare_floats(distance, least).is_lt());
            if is_less {
                least = Some(distance);
            }
        }
    }
    Ok(least)
}

impl Path {
    fn sides(&self) -> impl Iterator<Item = Segment> + Clone + '_ {
        sides(&self.points, self.is_closed)
    }

    /// Whether a point is on it; of a closed one, in it.
    pub fn holds(&self, point: Point) -> Result<bool> {
        if self.is_closed {
            return inside::holds(&self.points, point);
        }
        coro::work(POINT_WORK * self.points.len())?;
        for side in self.sides() {
            let detour = add(point.distance(side.from)?, point.distance(side.to)?)?;
            if is_same(detour, side.length()?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How far its nearest side is from a point; 0 if it has none.
    pub fn distance_to_point(&self, point: Point) -> Result<f64> {
        coro::work(POINT_WORK * self.points.len())?;
        let mut least: Option<f64> = None;
        for side in self.sides() {
            let distance = side.nearest(point)?.1;
            if least.is_none_or(|least| compare_floats(distance, least).is_lt()) {
                least = Some(distance);
            }
        }
        Ok(least.unwrap_or(0.0))
    }

    fn length(&self) -> Result<f64> {
        coro::work(POINT_WORK * self.points.len())?;
        let mut sides = self.sides();
        sides.try_fold(0.0, |length, side| add(length, side.length()?))
    }

    /// What a closed one surrounds.
    fn area(&self) -> Result<Option<f64>> {
        if !self.is_closed {
            return Ok(None);
        }
        coro::work(POINT_WORK * self.points.len())?;
        let next = self.points.iter().cycle().skip(1);
        let mut area = 0.0;
        for (point, next) in self.points.iter().zip(next) {
            area = add(area, mul(point.x, next.y)?)?;
            area = sub(area, mul(point.y, next.x)?)?;
        }
        div(area.abs(), 2.0).map(Some)
    }

    fn intersects(&self, other: &Path) -> Result<bool> {
        let (one, two) = (
            Rectangle::around(&self.points)?,
            Rectangle::around(&other.points)?,
        );
        if !one.overlaps(two) {
            return Ok(false);
        }
        for side in self.sides() {
            for of_other in other.sides() {
                coro::work(POINT_WORK)?;
                if side.meeting(of_other)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The second behind the first, if both are open.
    fn joined(self, other: Path) -> Result<Option<Path>> {
        if self.is_closed || other.is_closed {
            return Ok(None);
        }
        coro::work(self.points.len() + other.points.len())?;
        let points = [self.points, other.points].concat();
        Ok(Some(Path {
            is_closed: false,
            points,
        }))
    }

    fn polygon(self) -> Result<Polygon> {
        match self.is_closed {
            true => Ok(Polygon {
                points: self.points,
            }),
            false => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "open path cannot be converted to polygon",
            )),
        }
    }
}

/// Each of its points by a function of it and another.
fn each(path: Path, by: Point, of: fn(Point, Point) -> Result<Point>) -> Result<Path> {
    coro::work(POINT_WORK * path.points.len())?;
    let points = path.points.iter().map(|point| of(*point, by));
    Ok(Path {
        is_closed: path.is_closed,
        points: points.collect::<Result<_>>()?,
    })
}

shapes! {
    lt(a: Path, b: Path) a.points.len() < b.points.len();
    le(a: Path, b: Path) a.points.len() <= b.points.len();
    eq(a: Path, b: Path) a.points.len() == b.points.len();
    ge(a: Path, b: Path) a.points.len() >= b.points.len();
    gt(a: Path, b: Path) a.points.len() > b.points.len();
    intersect(a: Path, b: Path) a.intersects(&b)?;
    distance(a: Path, b: Path) least_distance(a.sides(), b.sides())?;
    length(a: Path) a.length()?;
    area(a: Path) a.area()?;
    is_closed(a: Path) a.is_closed;
    is_open(a: Path) !a.is_closed;
    points(a: Path) count(&a.points)?;
    close(a: Path) Path { is_closed: true, ..a };
    open(a: Path) Path { is_closed: false, ..a };
    join(a: Path, b: Path) a.joined(b)?;
    plus(a: Path, by: Point) each(a, by, moved)?;
    minus(a: Path, by: Point) each(a, by, moved_back)?;
    times(a: Path, by: Point) each(a, by, turned)?;
    over(a: Path, by: Point) each(a, by, turned_back)?;
    to_polygon(a: Path) a.polygon()?;
}
