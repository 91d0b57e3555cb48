//! Boxes. What compares them with `<` and `=` looks at their areas.

use base::error::Result;

use super::points::{moved, moved_back, turned, turned_back};
use super::shape::{shapes, Circle, Polygon, Rectangle, Segment};
use types::geometry::plane::{
    greatest, is_above, is_at_least, is_at_most, is_below, is_same, least, mul, sub, Point,
};

impl Rectangle {
    fn width(self) -> Result<f64> {
        sub(self.high.x, self.low.x)
    }

    fn height(self) -> Result<f64> {
        sub(self.high.y, self.low.y)
    }

    fn area(self) -> Result<f64> {
        mul(self.width()?, self.height()?)
    }

    fn common(self, other: Rectangle) -> Rectangle {
        Rectangle {
            high: Point::new(
                least(self.high.x, other.high.x),
                least(self.high.y, other.high.y),
            ),
            low: Point::new(
                greatest(self.low.x, other.low.x),
                greatest(self.low.y, other.low.y),
            ),
        }
    }

    fn joined(self, other: Rectangle) -> Rectangle {
        Rectangle {
            high: Point::new(
                greatest(self.high.x, other.high.x),
                greatest(self.high.y, other.high.y),
            ),
            low: Point::new(
                least(self.low.x, other.low.x),
                least(self.low.y, other.low.y),
            ),
        }
    }

    fn circle(self) -> Result<Circle> {
        let center = self.center()?;
        let radius = center.distance(self.high)?;
        Ok(Circle { center, radius })
    }
}

fn by_area(a: Rectangle, b: Rectangle, holds: fn(f64, f64) -> bool) -> Result<bool> {
    Ok(holds(a.area()?, b.area()?))
}

/// Both corners by a function of each and a point.
fn corners(
    found: Rectangle,
    by: Point,
    of: fn(Point, Point) -> Result<Point>,
) -> Result<Rectangle> {
    Ok(Rectangle {
        high: of(found.high, by)?,
        low: of(found.low, by)?,
    })
}

/// The same, where that may turn the box.
fn turned_corners(
    found: Rectangle,
    by: Point,
    of: fn(Point, Point) -> Result<Point>,
) -> Result<Rectangle> {
    let turned = corners(found, by, of)?;
    Ok(Rectangle::of_corners(turned.high, turned.low))
}

shapes! {
    left(a: Rectangle, b: Rectangle) is_below(a.high.x, b.low.x);
    over_left(a: Rectangle, b: Rectangle) is_at_most(a.high.x, b.high.x);
    over_right(a: Rectangle, b: Rectangle) is_at_least(a.low.x, b.low.x);
    right(a: Rectangle, b: Rectangle) is_above(a.low.x, b.high.x);
    below(a: Rectangle, b: Rectangle) is_below(a.high.y, b.low.y);
    over_below(a: Rectangle, b: Rectangle) is_at_most(a.high.y, b.high.y);
    over_above(a: Rectangle, b: Rectangle) is_at_least(a.low.y, b.low.y);
    above(a: Rectangle, b: Rectangle) is_above(a.low.y, b.high.y);
    below_eq(a: Rectangle, b: Rectangle) is_at_most(a.high.y, b.low.y);
    above_eq(a: Rectangle, b: Rectangle) is_at_least(a.low.y, b.high.y);
    overlap(a: Rectangle, b: Rectangle) a.overlaps(b);
    contain(a: Rectangle, b: Rectangle) a.contains(b);
    contained(a: Rectangle, b: Rectangle) b.contains(a);
    same(a: Rectangle, b: Rectangle) a.high.is_same(b.high) && a.low.is_same(b.low);
    lt(a: Rectangle, b: Rectangle) by_area(a, b, is_below)?;
    le(a: Rectangle, b: Rectangle) by_area(a, b, is_at_most)?;
    eq(a: Rectangle, b: Rectangle) by_area(a, b, is_same)?;
    ge(a: Rectangle, b: Rectangle) by_area(a, b, is_at_least)?;
    gt(a: Rectangle, b: Rectangle) by_area(a, b, is_above)?;
    area(a: Rectangle) a.area()?;
    width(a: Rectangle) a.width()?;
    height(a: Rectangle) a.height()?;
    center(a: Rectangle) a.center()?;
    distance(a: Rectangle, b: Rectangle) a.center()?.distance(b.center()?)?;
    intersection(a: Rectangle, b: Rectangle) a.overlaps(b).then(|| a.common(b));
    union(a: Rectangle, b: Rectangle) a.joined(b);
    diagonal(a: Rectangle) Segment::new(a.high, a.low);
    make(a: Point, b: Point) Rectangle::of_corners(a, b);
    of_point(a: Point) Rectangle { high: a, low: a };
    plus(a: Rectangle, by: Point) corners(a, by, moved)?;
    minus(a: Rectangle, by: Point) corners(a, by, moved_back)?;
    times(a: Rectangle, by: Point) turned_corners(a, by, turned)?;
    over(a: Rectangle, by: Point) turned_corners(a, by, turned_back)?;
    to_polygon(a: Rectangle) Polygon { points: a.corners().to_vec() };
    to_circle(a: Rectangle) a.circle()?;
}
