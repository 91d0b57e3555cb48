//! Lines and line segments.

use base::error::{Error, Result, SqlState};

use super::measure::known;
use super::shape::{shapes, swapped, Rectangle, Segment};
use types::float::compare_floats;
use types::geometry::plane::{
    div, hypotenuse, is_above, is_at_least, is_at_most, is_below, is_same, is_zero, mul, sub, Line,
    Point,
};
use types::geometry::SAME_POINT;

fn through(a: Point, b: Point) -> Result<Line> {
    match a.is_same(b) {
        true => Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, SAME_POINT)),
        false => Line::through(a, a.slope(b)?),
    }
}

fn are_perpendicular(a: Line, b: Line) -> Result<bool> {
    if is_zero(a.a) {
        return Ok(is_zero(b.b));
    }
    if is_zero(b.a) {
        return Ok(is_zero(a.b));
    }
    if is_zero(a.b) {
        return Ok(is_zero(b.a));
    }
    if is_zero(b.b) {
        return Ok(is_zero(a.a));
    }
    Ok(is_same(div(mul(a.a, b.a)?, mul(a.b, b.b)?)?, -1.0))
}

/// Whether the numbers of two lines are in proportion; where one is NaN, whether they are the same.
fn are_same(a: Line, b: Line) -> Result<bool> {
    let pairs = [(a.a, b.a), (a.b, b.b), (a.c, b.c)];
    if pairs.iter().any(|pair| pair.0.is_nan() || pair.1.is_nan()) {
        return Ok(pairs
            .iter()
            .all(|pair| compare_floats(pair.0, pair.1).is_eq()));
    }
    let ratio = match pairs.iter().find(|pair| !is_zero(pair.1)) {
        Some(pair) => div(pair.0, pair.1)?,
        None => 1.0,
    };
    for (a, b) in pairs {
        if !is_same(a, mul(ratio, b)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn apart(a: Line, b: Line) -> Result<f64> {
    if a.meeting(b)?.is_some() {
        return Ok(0.0);
    }
    let counts = |number: f64| !is_zero(number) && !number.is_nan();
    let ratio = if counts(a.a) && counts(b.a) {
        div(a.a, b.a)?
    } else if counts(a.b) && counts(b.b) {
        div(a.b, b.b)?
    } else {
        1.0
    };
    div(sub(a.c, mul(ratio, b.c)?)?.abs(), hypotenuse(a.a, a.b)?)
}

fn meets_box(line: Line, found: Rectangle) -> Result<bool> {
    let [low, upper_left, high, lower_right] = found.corners();
    let sides = [
        (low, upper_left),
        (high, upper_left),
        (high, lower_right),
        (low, lower_right),
    ];
    for (from, to) in sides {
        if Segment::new(from, to).meeting_line(line)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn nearest_of_segment_to_line(line: Line, segment: Segment) -> Result<Option<Point>> {
    match segment.slope()? == line.slope()? {
        true => Ok(None),
        false => Ok(known(segment.nearest_to_line(line)?)),
    }
}

/// The nearest point of the second segment to the first.
fn nearest_of_second(a: Segment, b: Segment) -> Result<Option<Point>> {
    match a.slope()? == b.slope()? {
        true => Ok(None),
        false => Ok(known(b.nearest_to_segment(a)?)),
    }
}

/// Whether a comparison of two segments' lengths holds.
fn by_length(a: Segment, b: Segment, holds: fn(f64, f64) -> bool) -> Result<bool> {
    Ok(holds(a.length()?, b.length()?))
}

fn have_same_ends(a: Segment, b: Segment) -> bool {
    a.from.is_same(b.from) && a.to.is_same(b.to)
}

shapes! {
    make(a: Point, b: Point) through(a, b)?;
    intersect(a: Line, b: Line) a.meeting(b)?.is_some();
    parallel(a: Line, b: Line) a.meeting(b)?.is_none();
    perpendicular(a: Line, b: Line) are_perpendicular(a, b)?;
    vertical(a: Line) is_zero(a.b);
    horizontal(a: Line) is_zero(a.a);
    eq(a: Line, b: Line) are_same(a, b)?;
    meeting(a: Line, b: Line) a.meeting(b)?;
    distance(a: Line, b: Line) apart(a, b)?;
    intersects_box(a: Line, found: Rectangle) meets_box(a, found)?;
    to_segment(a: Line, segment: Segment) segment.nearest_to_line(a)?.1;
    nearest_of_segment(a: Line, segment: Segment) nearest_of_segment_to_line(a, segment)?;

    segment_make(a: Point, b: Point) Segment::new(a, b);
    segment_intersect(a: Segment, b: Segment) a.meeting(b)?.is_some();
    segment_parallel(a: Segment, b: Segment) is_same(a.slope()?, b.slope()?);
    segment_perpendicular(a: Segment, b: Segment)
        is_same(a.slope()?, b.from.perpendicular_slope(b.to)?);
    segment_vertical(a: Segment) is_same(a.from.x, a.to.x);
    segment_horizontal(a: Segment) is_same(a.from.y, a.to.y);
    segment_eq(a: Segment, b: Segment) have_same_ends(a, b);
    segment_ne(a: Segment, b: Segment) !have_same_ends(a, b);
    segment_lt(a: Segment, b: Segment) by_length(a, b, is_below)?;
    segment_le(a: Segment, b: Segment) by_length(a, b, is_at_most)?;
    segment_gt(a: Segment, b: Segment) by_length(a, b, is_above)?;
    segment_ge(a: Segment, b: Segment) by_length(a, b, is_at_least)?;
    segment_length(a: Segment) a.length()?;
    segment_center(a: Segment) a.center()?;
    segment_meeting(a: Segment, b: Segment) a.meeting(b)?;
    segment_distance(a: Segment, b: Segment) a.nearest_to_segment(b)?.1;
    segment_nearest(a: Segment, b: Segment) nearest_of_second(a, b)?;
    segment_intersects_line(a: Segment, line: Line) a.meeting_line(line)?.is_some();
    segment_intersects_box(a: Segment, found: Rectangle) found.meets(a)?;
    segment_is_on_line(a: Segment, line: Line) line.holds(a.from)? && line.holds(a.to)?;
    segment_is_in_box(a: Segment, found: Rectangle) found.holds(a.from) && found.holds(a.to);
    segment_nearest_of_box(a: Segment, found: Rectangle) known(found.nearest_to_segment(a)?);
    segment_to_box(a: Segment, found: Rectangle) found.distance_to_segment(a)?;
}

swapped! {
    segment_to_line to_segment;
    box_to_segment segment_to_box;
}
