//! `enum_first`, `enum_last` and `enum_range`: they look at the type of their argument, and at its
//! value only for a bound.

use base::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::{Array, Datum, TypeId};

/// The enum that a call is about.
fn kind_of(call: &Call<'_>) -> Result<TypeId> {
    let mut given = call.argument_types.iter().copied();
    given.find(|kind| kind.is_enum()).ok_or_else(|| {
        Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "could not determine actual enum type",
        )
    })
}

fn end(call: &Call<'_>, pick: impl FnOnce(&[u64]) -> Option<&u64>) -> Result<Datum> {
    let kind = kind_of(call)?;
    let places = call.context.enum_places(kind);
    let place = *pick(&places).ok_or_else(|| {
        Error::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("enum {kind} contains no values"),
        )
    })?;
    call.context.check_label(kind, place)?;
    Ok(Datum::Unsigned8(place))
}

pub(crate) fn first(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    end(call, <[u64]>::first)
}

pub(crate) fn last(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    end(call, <[u64]>::last)
}

fn between(call: &Call<'_>, lower: Option<u64>, upper: Option<u64>) -> Result<Datum> {
    let kind = kind_of(call)?;
    let mut places = call.context.enum_places(kind);
    places.retain(|place| {
        lower.is_none_or(|lower| lower <= *place) && upper.is_none_or(|upper| *place <= upper)
    });
    for place in &places {
        call.context.check_label(kind, *place)?;
    }
    let places = places.into_iter().map(Datum::Unsigned8).collect();
    Ok(Datum::Array(Array::of(kind, places).into()))
}

pub(crate) fn range(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    between(call, None, None)
}

/// From one label to another; NULL is no bound.
pub(crate) fn range_between(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bound = |at: usize| match args.any(at)? {
        Datum::Null => Ok(None),
        _ => args.unsigned8(at).map(Some),
    };
    between(call, bound(0)?, bound(1)?)
}
