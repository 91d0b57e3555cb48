//! Points: where they lie to one another, what is computed with them, how far they are from others.

use base::error::Result;

use super::inside;
use super::measure::{known, on_line};
use super::shape::{shapes, swapped, Circle, Path, Polygon, Rectangle, Segment};
use types::geometry::plane::{add, div, is_above, is_below, is_same, mul, sub, Line, Point};

/// Both coordinates by a function of those of two points.
fn each(a: Point, b: Point, of: fn(f64, f64) -> Result<f64>) -> Result<Point> {
    Ok(Point::new(of(a.x, b.x)?, of(a.y, b.y)?))
}

/// A point moved by another.
pub(super) fn moved(a: Point, by: Point) -> Result<Point> {
    each(a, by, add)
}

/// A point moved back by another.
pub(super) fn moved_back(a: Point, by: Point) -> Result<Point> {
    each(a, by, sub)
}

/// The product of two as complex numbers, which turns and scales.
pub(super) fn turned(a: Point, by: Point) -> Result<Point> {
    let x = sub(mul(a.x, by.x)?, mul(a.y, by.y)?)?;
    let y = add(mul(a.x, by.y)?, mul(a.y, by.x)?)?;
    Ok(Point::new(x, y))
}

/// Their quotient.
pub(super) fn turned_back(a: Point, by: Point) -> Result<Point> {
    let square = add(mul(by.x, by.x)?, mul(by.y, by.y)?)?;
    let x = add(mul(a.x, by.x)?, mul(a.y, by.y)?)?;
    let y = sub(mul(a.y, by.x)?, mul(a.x, by.y)?)?;
    Ok(Point::new(div(x, square)?, div(y, square)?))
}

shapes! {
    above(a: Point, b: Point) is_above(a.y, b.y);
    below(a: Point, b: Point) is_below(a.y, b.y);
    left(a: Point, b: Point) is_below(a.x, b.x);
    right(a: Point, b: Point) is_above(a.x, b.x);
    vertical(a: Point, b: Point) is_same(a.x, b.x);
    horizontal(a: Point, b: Point) is_same(a.y, b.y);
    eq(a: Point, b: Point) a.is_same(b);
    ne(a: Point, b: Point) !a.is_same(b);
    distance(a: Point, b: Point) a.distance(b)?;
    slope(a: Point, b: Point) a.slope(b)?;
    make(x: f64, y: f64) Point::new(x, y);
    plus(a: Point, b: Point) moved(a, b)?;
    minus(a: Point, b: Point) moved_back(a, b)?;
    times(a: Point, b: Point) turned(a, b)?;
    over(a: Point, b: Point) turned_back(a, b)?;
    is_on_line(a: Point, line: Line) line.holds(a)?;
    is_on_segment(a: Point, segment: Segment) segment.holds(a)?;
    is_in_box(a: Point, found: Rectangle) found.holds(a);
    is_on_path(a: Point, path: Path) path.holds(a)?;
    is_in_polygon(a: Point, polygon: Polygon) inside::holds(&polygon.points, a)?;
    is_in_circle(a: Point, circle: Circle) circle.holds(a)?;
    nearest_of_line(a: Point, line: Line) known(on_line(line, a)?);
    nearest_of_segment(a: Point, segment: Segment) known(segment.nearest(a)?);
    nearest_of_box(a: Point, found: Rectangle) known(found.nearest(a)?);
    to_line(a: Point, line: Line) on_line(line, a)?.1;
    to_segment(a: Point, segment: Segment) segment.nearest(a)?.1;
    to_box(a: Point, found: Rectangle) found.nearest(a)?.1;
    to_path(a: Point, path: Path) path.distance_to_point(a)?;
    to_polygon(a: Point, polygon: Polygon) polygon.distance_to_point(a)?;
    to_circle(a: Point, circle: Circle) circle.distance_to_point(a)?;
}

swapped! {
    box_holds is_in_box;
    path_holds is_on_path;
    polygon_holds is_in_polygon;
    circle_holds is_in_circle;
    from_line to_line;
    from_segment to_segment;
    from_box to_box;
    from_path to_path;
    from_polygon to_polygon;
    from_circle to_circle;
}
