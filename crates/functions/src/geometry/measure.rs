//! Where shapes meet, and which point of one is the nearest to another.
//!
//! ```text
//!        p                the line through p perpendicular to the segment meets it at q:
//!        |                q is the nearest, |pq| the distance. Where it does not meet it, one of
//!   a----q-----b          the ends is.
//! ```
//! A distance is NaN where there is no such line, as with coordinates that are NaN; then there is no
//! nearest point.

use base::error::Result;

use super::shape::{Rectangle, Segment};
use types::float::compare_floats;
use types::geometry::plane::{self, is_same, Line, Point};

/// The nearest point, and how far it is.
pub(crate) type Nearest = (Point, f64);

/// The point, unless it is at no distance that is a number.
pub(crate) fn known((point, distance): Nearest) -> Option<Point> {
    (!distance.is_nan()).then_some(point)
}

/// The nearer of two, where NaN is further than all others; the first if neither is.
fn nearer(one: Nearest, other: Nearest) -> Nearest {
    match compare_floats(other.1, one.1).is_lt() {
        true => other,
        false => one,
    }
}

/// The nearest point on a line.
pub(crate) fn on_line(line: Line, point: Point) -> Result<Nearest> {
    let perpendicular = Line::through(point, line.perpendicular_slope()?)?;
    Ok(match perpendicular.meeting(line)? {
        Some(found) => (found, found.distance(point)?),
        None => (point, f64::NAN),
    })
}

impl Segment {
    /// Its length.
    pub fn length(self) -> Result<f64> {
        self.from.distance(self.to)
    }

    /// Its slope, infinite for a vertical one.
    pub fn slope(self) -> Result<f64> {
        self.from.slope(self.to)
    }

    /// The line that it is a part of.
    pub fn line(self) -> Result<Line> {
        Line::through(self.from, self.slope()?)
    }

    /// Whether a point is on it: it is no detour between the ends.
    pub fn holds(self, point: Point) -> Result<bool> {
        let detour = point.distance(self.from)? + point.distance(self.to)?;
        Ok(is_same(detour, self.length()?))
    }

    /// Where it meets a line.
    pub fn meeting_line(self, line: Line) -> Result<Option<Point>> {
        let Some(found) = self.line()?.meeting(line)? else {
            return Ok(None);
        };
        if !self.holds(found)? {
            return Ok(None);
        }
        let ends = [self.from, self.to];
        let end = ends.into_iter().find(|end| end.is_same(found));
        Ok(Some(end.unwrap_or(found)))
    }

    /// Where it meets another one.
    pub fn meeting(self, other: Segment) -> Result<Option<Point>> {
        let Some(found) = self.meeting_line(other.line()?)? else {
            return Ok(None);
        };
        Ok(other.holds(found)?.then_some(found))
    }

    /// Its nearest point to a line.
    pub fn nearest_to_line(self, line: Line) -> Result<Nearest> {
        if let Some(found) = self.meeting_line(line)? {
            return Ok((found, 0.0));
        }
        let (from, to) = (on_line(line, self.from)?.1, on_line(line, self.to)?.1);
        Ok(match from < to {
            true => (self.from, from),
            false => (self.to, to),
        })
    }

    /// Its nearest point to a point.
    pub fn nearest(self, point: Point) -> Result<Nearest> {
        let slope = self.from.perpendicular_slope(self.to)?;
        let (found, _) = self.nearest_to_line(Line::through(point, slope)?)?;
        Ok((found, found.distance(point)?))
    }

    /// Its nearest point to another segment.
    pub fn nearest_to_segment(self, other: Segment) -> Result<Nearest> {
        if let Some(found) = self.meeting(other)? {
            return Ok((found, 0.0));
        }
        let mut found = self.nearest(other.from)?;
        found = nearer(found, self.nearest(other.to)?);
        for end in [self.from, self.to] {
            found = nearer(found, (end, other.nearest(end)?.1));
        }
        Ok(found)
    }

    /// The point half-way.
    pub fn center(self) -> Result<Point> {
        let x = plane::div(plane::add(self.from.x, self.to.x)?, 2.0)?;
        let y = plane::div(plane::add(self.from.y, self.to.y)?, 2.0)?;
        Ok(Point::new(x, y))
    }
}

impl Rectangle {
    /// Whether a point is in it, to the last digit.
    pub fn holds(self, point: Point) -> bool {
        self.high.x >= point.x
            && self.low.x <= point.x
            && self.high.y >= point.y
            && self.low.y <= point.y
    }

    /// Whether two have a point in common.
    pub fn overlaps(self, other: Rectangle) -> bool {
        plane::is_at_most(self.low.x, other.high.x)
            && plane::is_at_most(other.low.x, self.high.x)
            && plane::is_at_most(self.low.y, other.high.y)
            && plane::is_at_most(other.low.y, self.high.y)
    }

    /// Whether all of another is in it.
    pub fn contains(self, other: Rectangle) -> bool {
        plane::is_at_least(self.high.x, other.high.x)
            && plane::is_at_most(self.low.x, other.low.x)
            && plane::is_at_least(self.high.y, other.high.y)
            && plane::is_at_most(self.low.y, other.low.y)
    }

    /// The point in the middle.
    pub fn center(self) -> Result<Point> {
        Segment::new(self.high, self.low).center()
    }

    /// Whether a segment has a point in it.
    pub fn meets(self, segment: Segment) -> Result<bool> {
        let around = Rectangle::of_corners(segment.from, segment.to);
        if !around.overlaps(self) {
            return Ok(false);
        }
        if self.holds(segment.from) || self.holds(segment.to) {
            return Ok(true);
        }
        for side in self.sides() {
            if side.meeting(segment)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Its nearest point to a point.
    pub fn nearest(self, point: Point) -> Result<Nearest> {
        if self.holds(point) {
            return Ok((point, 0.0));
        }
        self.nearest_of_sides(|side| side.nearest(point))
    }

    /// How far a segment is.
    pub fn distance_to_segment(self, segment: Segment) -> Result<f64> {
        match self.meets(segment)? {
            true => Ok(0.0),
            false => Ok(self.nearest_side_to(segment)?.1),
        }
    }

    /// Its nearest point to a segment; where that goes through it, the segment's nearest point to its
    /// center.
    pub fn nearest_to_segment(self, segment: Segment) -> Result<Nearest> {
        match self.meets(segment)? {
            true => Ok((segment.nearest(self.center()?)?.0, 0.0)),
            false => self.nearest_side_to(segment),
        }
    }

    fn nearest_side_to(self, segment: Segment) -> Result<Nearest> {
        self.nearest_of_sides(|side| side.nearest_to_segment(segment))
    }

    fn nearest_of_sides(self, nearest: impl Fn(Segment) -> Result<Nearest>) -> Result<Nearest> {
        let [left, others @ ..] = self.sides();
        let mut found = nearest(left)?;
        for side in others {
            found = nearer(found, nearest(side)?);
        }
        Ok(found)
    }
}
