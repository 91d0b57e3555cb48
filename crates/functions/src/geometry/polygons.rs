//! Polygons. Where they lie to one another is told by the smallest boxes around them, digit by digit.

use base::coro;
use base::error::Result;

use super::inside;
use super::paths::least_distance;
use super::points::moved;
use super::shape::{count, shapes, sides, swapped, Circle, Path, Polygon, Segment, POINT_WORK};
use types::float::compare_floats;
use types::geometry::plane::{add, div, sub, Point};

impl Polygon {
    /// How far a point is; 0 if it is in it.
    pub fn distance_to_point(&self, point: Point) -> Result<f64> {
        if inside::holds(&self.points, point)? {
            return Ok(0.0);
        }
        coro::work(POINT_WORK * self.points.len())?;
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return Ok(0.0);
        };
        let mut least = Segment::new(*first, *last).nearest(point)?.1;
        for side in sides(&self.points, false) {
            let distance = side.nearest(point)?.1;
            if compare_floats(distance, least).is_lt() {
                least = distance;
            }
        }
        Ok(least)
    }

    fn distance(&self, other: &Polygon) -> Result<Option<f64>> {
        if self.overlaps(other)? {
            return Ok(Some(0.0));
        }
        least_distance(sides(&self.points, true), sides(&other.points, true))
    }

    fn distance_to_circle(&self, circle: Circle) -> Result<f64> {
        let distance = sub(self.distance_to_point(circle.center)?, circle.radius)?;
        Ok(if distance < 0.0 { 0.0 } else { distance })
    }

    /// Whether the points are the same, from any on, in either direction.
    fn is_same(&self, other: &Polygon) -> Result<bool> {
        let (points, others) = (&self.points, &other.points);
        if points.len() != others.len() {
            return Ok(false);
        }
        let count = points.len();
        for start in 0..count {
            if !others[start].is_same(points[0]) {
                continue;
            }
            coro::work(POINT_WORK * count)?;
            let fits = |place: &dyn Fn(usize) -> usize| {
                let mut steps = 1..count;
                steps.all(|step| others[place(step)].is_same(points[step]))
            };
            let (onwards, backwards) = (
                |step: usize| (start + step) % count,
                |step: usize| (start + count - step) % count,
            );
            if fits(&onwards) || fits(&backwards) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The circle around the mean of its points, as large as they are far from it in the mean.
    fn circle(&self) -> Result<Circle> {
        coro::work(POINT_WORK * self.points.len())?;
        let number = self.points.len() as f64;
        let mut points = self.points.iter();
        let sum = points.try_fold(Point::new(0.0, 0.0), |sum, point| moved(sum, *point))?;
        let center = Point::new(div(sum.x, number)?, div(sum.y, number)?);
        let mut distances = self.points.iter();
        let sum = distances.try_fold(0.0, |sum, point| add(sum, point.distance(center)?))?;
        Ok(Circle {
            center,
            radius: div(sum, number)?,
        })
    }
}

shapes! {
    left(a: Polygon, b: Polygon) a.bounds()?.high.x < b.bounds()?.low.x;
    over_left(a: Polygon, b: Polygon) a.bounds()?.high.x <= b.bounds()?.high.x;
    over_right(a: Polygon, b: Polygon) a.bounds()?.low.x >= b.bounds()?.low.x;
    right(a: Polygon, b: Polygon) a.bounds()?.low.x > b.bounds()?.high.x;
    below(a: Polygon, b: Polygon) a.bounds()?.high.y < b.bounds()?.low.y;
    over_below(a: Polygon, b: Polygon) a.bounds()?.high.y <= b.bounds()?.high.y;
    over_above(a: Polygon, b: Polygon) a.bounds()?.low.y >= b.bounds()?.low.y;
    above(a: Polygon, b: Polygon) a.bounds()?.low.y > b.bounds()?.high.y;
    same(a: Polygon, b: Polygon) a.is_same(&b)?;
    overlap(a: Polygon, b: Polygon) a.overlaps(&b)?;
    contain(a: Polygon, b: Polygon) a.contains(&b)?;
    contained(a: Polygon, b: Polygon) b.contains(&a)?;
    distance(a: Polygon, b: Polygon) a.distance(&b)?;
    to_circle(a: Polygon, circle: Circle) a.distance_to_circle(circle)?;
    points(a: Polygon) count(&a.points)?;
    center(a: Polygon) a.circle()?.center;
    around(a: Polygon) a.circle()?;
    bounds(a: Polygon) a.bounds()?;
    path(a: Polygon) Path { is_closed: true, points: a.points };
}

swapped! {
    from_circle to_circle;
}
