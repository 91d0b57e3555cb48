//! Calls that give the array of a VARIADIC in the place of its elements.
//!
//! ```text
//! concat('a', VARIADIC array[1, 2])   →  concat('a', 1, 2), of what the array holds then
//! ```
//! [`with_array`] is the function of such a call: the same with another body, which takes the array
//! apart and calls the one that there is.
//!
//! # Invariant
//! It has the oid of the other, and is not variadic itself: that tells the two apart.

use std::sync::OnceLock;

use base::{coro, Error, Result};

use super::{function_by_oid, Body, Call, Function, Native};
use types::{Datum, TypeId};

/// `format`, which takes NULL for an array of nothing.
const FORMAT: u32 = 3_539;

macro_rules! spreading {
    ($($oid:literal)*) => {
        /// The functions of any number of values, each with the body that takes an array of them.
        const SPREADING: &[(u32, Native)] = &[$(($oid, spread::<$oid>)),*];
    };
}

spreading! {
    438 440 3058 3059 3198 3200 3217 3271 3273 3343 3539 3940 3951 3953
}

/// Calls a function with the elements of the last argument in its place.
fn spread<const OID: u32>(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let lacking = || Error::internal(format!("function {OID} with an array"));
    let function = function_by_oid(OID).ok_or_else(lacking)?;
    let Body::Native(native) = function.body else {
        return Err(lacking());
    };
    let (last, fixed) = args.split_last().ok_or_else(lacking)?;
    let (kind, kinds) = call.argument_types.split_last().ok_or_else(lacking)?;
    let mut values = fixed.to_vec();
    let mut types = kinds.to_vec();
    match last {
        Datum::Array(array) => {
            coro::work(array.elements.len())?;
            values.extend(array.elements.iter().cloned());
            types.resize(values.len(), kind.array_element().unwrap_or(TypeId::ANY));
        }
        Datum::Null if OID == FORMAT => {}
        Datum::Null => return Ok(Datum::Null),
        _ => return Err(lacking()),
    }
    if function.is_null_for(&values) {
        return Ok(Datum::Null);
    }
    let call = Call {
        argument_types: &types,
        ..*call
    };
    native(&call, &values)
}

/// The function of a call of a variadic one that gives the array itself.
pub fn with_array(function: &'static Function) -> Option<&'static Function> {
    static MADE: OnceLock<Vec<Function>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let spreading = SPREADING.iter().filter_map(|(oid, body)| {
            let known = function_by_oid(*oid)?;
            Some(Function {
                variadic: false,
                body: Body::Native(*body),
                ..*known
            })
        });
        // Those that make a multirange take an array as it is.
        let multiranges = super::all_functions().filter(|known| known.variadic);
        let multiranges = multiranges.filter(|known| known.result.is_multirange());
        let multiranges = multiranges.map(|known| Function {
            variadic: false,
            ..*known
        });
        spreading.chain(multiranges).collect()
    });
    made.iter().find(|known| known.oid == function.oid)
}

/// Whether a function is one of a call that gives an array.
pub fn takes_array(function: &Function) -> bool {
    let listed = function_by_oid(function.oid);
    !function.variadic && listed.is_some_and(|known| known.variadic)
}
