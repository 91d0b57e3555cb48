//! What lies inside of a polygon.
//!
//! A point does if a ray from it to the right crosses the edges more often in one direction than in
//! the other; edges count twice, and one that only ends on the ray once.
//!
//! ```text
//!    +-----+
//!    |  p--|------>     crossed once: inside
//!    +-----+
//! ```
//! A segment does if each of its parts between the edges that it crosses does.

use base::coro;
use base::error::Result;

use super::shape::{sides, Polygon, Rectangle, Segment, POINT_WORK};
use types::geometry::plane::{self, is_above, is_at_least, is_at_most, is_below, is_zero, Point};

/// What a ray has to do with an edge.
enum Crossing {
    /// How often it is crossed upwards; downwards counts below zero.
    Times(i64),
    /// It begins on the edge.
    Touched,
}

/// Whether a point is in what these points surround, or on its edge.
pub(crate) fn holds(points: &[Point], point: Point) -> Result<bool> {
    coro::work(POINT_WORK * points.len())?;
    let relative = |other: &Point| -> Result<Point> {
        let x = plane::sub(other.x, point.x)?;
        Ok(Point::new(x, plane::sub(other.y, point.y)?))
    };
    let Some((first, others)) = points.split_first() else {
        return Ok(false);
    };
    let mut before = relative(first)?;
    let mut total = 0;
    for next in others.iter().chain([first]) {
        let next = relative(next)?;
        match crossing(next, before)? {
            Crossing::Touched => return Ok(true),
            Crossing::Times(times) => total += times,
        }
        before = next;
    }
    Ok(total != 0)
}

/// How the ray from the origin to the right crosses the edge from one point to the next.
fn crossing(next: Point, before: Point) -> Result<Crossing> {
    if is_zero(next.y) {
        return Ok(crossing_at_end(next, before));
    }
    let upwards = is_above(next.y, 0.0);
    let direction = if upwards { 1 } else { -1 };
    let is_same_side = |y: f64| match upwards {
        true => is_above(y, 0.0),
        false => is_below(y, 0.0),
    };
    if is_zero(before.y) {
        let times = if is_below(before.x, 0.0) {
            0
        } else {
            direction
        };
        return Ok(Crossing::Times(times));
    }
    if is_same_side(before.y) {
        return Ok(Crossing::Times(0));
    }
    if is_at_least(next.x, 0.0) && is_above(before.x, 0.0) {
        return Ok(Crossing::Times(2 * direction));
    }
    if is_below(next.x, 0.0) && is_at_most(before.x, 0.0) {
        return Ok(Crossing::Times(0));
    }
    let (dx, dy) = (plane::sub(next.x, before.x)?, plane::sub(next.y, before.y)?);
    let turn = plane::sub(plane::mul(dx, next.y)?, plane::mul(dy, next.x)?)?;
    Ok(match () {
        _ if is_zero(turn) => Crossing::Touched,
        _ if is_same_side(turn) => Crossing::Times(0),
        _ => Crossing::Times(2 * direction),
    })
}

/// The same of an edge that ends on the axis.
fn crossing_at_end(next: Point, before: Point) -> Crossing {
    let comes_along = is_zero(before.y);
    if is_zero(next.x) {
        return Crossing::Touched;
    }
    let is_right = is_above(next.x, 0.0);
    let stays = match is_right {
        true => is_above(before.x, 0.0),
        false => is_below(before.x, 0.0),
    };
    match (comes_along, is_right) {
        (true, _) if stays => Crossing::Times(0),
        (true, _) => Crossing::Touched,
        (false, false) => Crossing::Times(0),
        (false, true) if is_below(before.y, 0.0) => Crossing::Times(1),
        (false, true) => Crossing::Times(-1),
    }
}

impl Polygon {
    /// The smallest box around it.
    pub fn bounds(&self) -> Result<Rectangle> {
        Rectangle::around(&self.points)
    }

    /// Whether all of another is in it.
    pub fn contains(&self, other: &Polygon) -> Result<bool> {
        if !self.bounds()?.contains(other.bounds()?) {
            return Ok(false);
        }
        for side in sides(&other.points, true) {
            if !self.holds_segment(side, 0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether two have a point in common.
    pub fn overlaps(&self, other: &Polygon) -> Result<bool> {
        if !self.bounds()?.overlaps(other.bounds()?) {
            return Ok(false);
        }
        for side in sides(&self.points, true) {
            coro::work(POINT_WORK * other.points.len())?;
            for of_other in sides(&other.points, true) {
                if side.meeting(of_other)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(holds(&other.points, self.points[0])? || holds(&self.points, other.points[0])?)
    }

    /// Whether a segment is in it, as far as edges from the one that ends at this point go.
    fn holds_segment(&self, segment: Segment, start: usize) -> Result<bool> {
        coro::check_depth()?;
        coro::work(POINT_WORK * self.points.len())?;
        let mut is_cut = false;
        for (place, edge) in sides(&self.points, true).enumerate().skip(start) {
            let next = place + 1;
            let is_inside = if edge.holds(segment.from)? {
                if edge.holds(segment.to)? {
                    return Ok(true);
                }
                self.holds_touching(segment, edge, next)?
            } else if edge.holds(segment.to)? {
                let turned = Segment::new(segment.to, segment.from);
                self.holds_touching(turned, edge, next)?
            } else if let Some(cut) = segment.meeting(edge)? {
                is_cut = true;
                self.holds_segment(Segment::new(segment.from, cut), next)?
                    && self.holds_segment(Segment::new(segment.to, cut), next)?
            } else {
                true
            };
            if !is_inside {
                return Ok(false);
            }
        }
        match is_cut {
            true => Ok(true),
            false => holds(&self.points, segment.center()?),
        }
    }

    /// The same of a segment that begins on an edge: where it goes along it, of what is left behind
    /// the edge's end. Whether it may be there at all is seen later.
    fn holds_touching(&self, segment: Segment, edge: Segment, next: usize) -> Result<bool> {
        let is_at = |end: Point| segment.from.is_same(end);
        let ends: &[Point] = match () {
            _ if is_at(edge.from) => &[edge.to],
            _ if is_at(edge.to) => &[edge.from],
            _ => &[edge.from, edge.to],
        };
        for end in ends {
            if segment.holds(*end)? {
                return self.holds_segment(Segment::new(segment.to, *end), next);
            }
        }
        Ok(true)
    }
}
