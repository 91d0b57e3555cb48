//! The functions and operators of geometry: what shapes of the plane are to one another.
//!
//! ```text
//! point '(1,1)' <@ circle '<(0,0),2>'        circles::holds_point
//! box '(2,2),(0,0)' && box '(3,3),(1,1)'     boxes::overlap
//! lseg '(0,0),(1,1)' ## point '(1,0)'        lines::closest_of_point
//! ```
//! | module | what |
//! |---|---|
//! | [`shape`] | the shapes as values, and how a function takes and gives them |
//! | [`measure`] | where shapes meet, and which of their points are the nearest |
//! | [`inside`] | what lies inside of a polygon |
//! | [`points`], [`lines`], [`boxes`], [`paths`], [`polygons`], [`circles`] | the functions that the table names |
//!
//! # Invariants
//! - Numbers are compared with `types::geometry::plane::EPSILON` between them, but where PostgreSQL
//!   compares them as they are: points in boxes and circles, and the edges of polygons.
//! - What is computed in several steps fails where one of them does: 22003, 22012.
//!
//! Source: PostgreSQL 15 manual, section 9.11, and its answers.

pub(crate) mod boxes;
pub(crate) mod circles;
pub(crate) mod inside;
pub(crate) mod lines;
pub(crate) mod measure;
pub(crate) mod paths;
pub(crate) mod points;
pub(crate) mod polygons;
pub(crate) mod shape;

use base::error::{Error, Result, SqlState};

use super::{Body, Call, Function, Volatility};
use types::{geometry, Datum, TypeId};

/// A value with another one for its element at a place: the value, the element, places. NULL, as the
/// value or the element, changes nothing.
pub static ASSIGN: Function = Function {
    oid: u32::MAX - 20,
    name: "fixed_array_assign",
    arguments: &[TypeId::ANYELEMENT, TypeId::ANY, TypeId::INT4],
    variadic: false,
    defaults: 0,
    result: TypeId::ANYELEMENT,
    volatility: Volatility::Immutable,
    strict: false,
    body: Body::Native(assign),
};

fn assign(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [whole, value, places @ ..] = args else {
        return Err(Error::internal("an assignment to no element"));
    };
    if places.iter().any(Datum::is_null) {
        let message = "array subscript in assignment must not be null";
        return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    }
    let (Datum::Geometry(numbers), false) = (whole, value.is_null()) else {
        return Ok(whole.clone());
    };
    let wrong = |message| Error::new(SqlState::of("2202E"), message);
    let [place] = places else {
        return Err(wrong("wrong number of array subscripts"));
    };
    let changed = place
        .as_i64()
        .and_then(|place| geometry::with_element(numbers, place, value));
    changed.ok_or_else(|| wrong("array subscript out of range"))
}
