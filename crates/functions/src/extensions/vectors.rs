//! Extension `vector`: vectors of floats, and how far they are from one another.
//!
//! ```text
//! order by embedding <-> '[3,1,2]' limit 5     the nearest five, found by looking at all
//! '[1,2]'::vector + '[3,4]'                    [4,6]
//! ```
//! The values themselves are [`types::vectors`]'s, distances [`super::vector_distances`]'s, sums and
//! averages [`super::super::vector_sums`]'s.
//!
//! Source: the README of pgvector 0.8.
//!
//! # What it leaves out
//! The access methods `hnsw` and `ivfflat` with their operator classes: a search looks at every row,
//! keeps the nearest and is exact. `vector_in`, `vector_accum` and their kin.

use base::coro;
use base::error::{Error, Result, SqlState};

use super::super::arguments::Arguments;
use super::super::float_sums::float_overflow;
use super::super::floating::underflow;
use super::super::table::{casts, functions, operators};
use super::super::Call;
use types::vectors::{self as values, Sparse};
use types::{Array, Bits, Datum, TypeId};

functions! {
    8000 "l2_distance" (VECTOR VECTOR) FLOAT8 "i" vector_distances::l2;
    8001 "inner_product" (VECTOR VECTOR) FLOAT8 "i" vector_distances::inner_product;
    8002 "cosine_distance" (VECTOR VECTOR) FLOAT8 "i" vector_distances::cosine;
    8003 "l1_distance" (VECTOR VECTOR) FLOAT8 "i" vector_distances::l1;
    8004 "vector_l2_squared_distance" (VECTOR VECTOR) FLOAT8 "i" vector_distances::l2_squared;
    8005 "vector_negative_inner_product" (VECTOR VECTOR) FLOAT8 "i"
        vector_distances::negative_inner_product;
    8006 "vector_spherical_distance" (VECTOR VECTOR) FLOAT8 "i" vector_distances::spherical;
    8007 "vector_dims" (VECTOR) INT4 "i" vectors::dimensions;
    8008 "binary_quantize" (VECTOR) BIT "i" vectors::quantized;
    8009 "subvector" (VECTOR INT4 INT4) VECTOR "i" vectors::part;
    8010 "vector_add" (VECTOR VECTOR) VECTOR "i" vectors::add;
    8011 "vector_sub" (VECTOR VECTOR) VECTOR "i" vectors::subtract;
    8012 "vector_mul" (VECTOR VECTOR) VECTOR "i" vectors::multiply;
    8013 "vector_concat" (VECTOR VECTOR) VECTOR "i" vectors::concatenated;
    8014 "vector_norm" (VECTOR) FLOAT8 "i" vectors::norm;
    8015 "l2_normalize" (VECTOR) VECTOR "i" vectors::normalized;
    8016 "vector_eq" (VECTOR VECTOR) BOOL "i" comparison::eq;
    8017 "vector_ne" (VECTOR VECTOR) BOOL "i" comparison::ne;
    8018 "vector_lt" (VECTOR VECTOR) BOOL "i" comparison::lt;
    8019 "vector_le" (VECTOR VECTOR) BOOL "i" comparison::le;
    8020 "vector_gt" (VECTOR VECTOR) BOOL "i" comparison::gt;
    8021 "vector_ge" (VECTOR VECTOR) BOOL "i" comparison::ge;
    8022 "vector_cmp" (VECTOR VECTOR) INT4 "i" comparison::cmp;
    8023 "vector" (VECTOR INT4 BOOL) VECTOR "i" vectors::converted;
    8024 "l2_distance" (HALFVEC HALFVEC) FLOAT8 "i" vector_distances::l2;
    8025 "inner_product" (HALFVEC HALFVEC) FLOAT8 "i" vector_distances::inner_product;
    8026 "cosine_distance" (HALFVEC HALFVEC) FLOAT8 "i" vector_distances::cosine;
    8027 "l1_distance" (HALFVEC HALFVEC) FLOAT8 "i" vector_distances::l1;
    8028 "halfvec_l2_squared_distance" (HALFVEC HALFVEC) FLOAT8 "i" vector_distances::l2_squared;
    8029 "halfvec_negative_inner_product" (HALFVEC HALFVEC) FLOAT8 "i"
        vector_distances::negative_inner_product;
    8030 "halfvec_spherical_distance" (HALFVEC HALFVEC) FLOAT8 "i" vector_distances::spherical;
    8031 "vector_dims" (HALFVEC) INT4 "i" vectors::dimensions;
    8032 "binary_quantize" (HALFVEC) BIT "i" vectors::quantized;
    8033 "subvector" (HALFVEC INT4 INT4) HALFVEC "i" vectors::part;
    8034 "halfvec_add" (HALFVEC HALFVEC) HALFVEC "i" vectors::add;
    8035 "halfvec_sub" (HALFVEC HALFVEC) HALFVEC "i" vectors::subtract;
    8036 "halfvec_mul" (HALFVEC HALFVEC) HALFVEC "i" vectors::multiply;
    8037 "halfvec_concat" (HALFVEC HALFVEC) HALFVEC "i" vectors::concatenated;
    8038 "l2_norm" (HALFVEC) FLOAT8 "i" vectors::norm;
    8039 "l2_normalize" (HALFVEC) HALFVEC "i" vectors::normalized;
    8040 "halfvec_eq" (HALFVEC HALFVEC) BOOL "i" comparison::eq;
    8041 "halfvec_ne" (HALFVEC HALFVEC) BOOL "i" comparison::ne;
    8042 "halfvec_lt" (HALFVEC HALFVEC) BOOL "i" comparison::lt;
    8043 "halfvec_le" (HALFVEC HALFVEC) BOOL "i" comparison::le;
    8044 "halfvec_gt" (HALFVEC HALFVEC) BOOL "i" comparison::gt;
    8045 "halfvec_ge" (HALFVEC HALFVEC) BOOL "i" comparison::ge;
    8046 "halfvec_cmp" (HALFVEC HALFVEC) INT4 "i" comparison::cmp;
    8047 "halfvec" (HALFVEC INT4 BOOL) HALFVEC "i" vectors::converted;
    8048 "l2_distance" (SPARSEVEC SPARSEVEC) FLOAT8 "i" vector_distances::l2;
    8049 "inner_product" (SPARSEVEC SPARSEVEC) FLOAT8 "i" vector_distances::inner_product;
    8050 "cosine_distance" (SPARSEVEC SPARSEVEC) FLOAT8 "i" vector_distances::cosine;
    8051 "l1_distance" (SPARSEVEC SPARSEVEC) FLOAT8 "i" vector_distances::l1;
    8052 "sparsevec_l2_squared_distance" (SPARSEVEC SPARSEVEC) FLOAT8 "i"
        vector_distances::l2_squared;
    8053 "sparsevec_negative_inner_product" (SPARSEVEC SPARSEVEC) FLOAT8 "i"
        vector_distances::negative_inner_product;
    8054 "l2_norm" (SPARSEVEC) FLOAT8 "i" vectors::norm;
    8055 "l2_normalize" (SPARSEVEC) SPARSEVEC "i" vectors::normalized;
    8056 "sparsevec_eq" (SPARSEVEC SPARSEVEC) BOOL "i" comparison::eq;
    8057 "sparsevec_ne" (SPARSEVEC SPARSEVEC) BOOL "i" comparison::ne;
    8058 "sparsevec_lt" (SPARSEVEC SPARSEVEC) BOOL "i" comparison::lt;
    8059 "sparsevec_le" (SPARSEVEC SPARSEVEC) BOOL "i" comparison::le;
    8060 "sparsevec_gt" (SPARSEVEC SPARSEVEC) BOOL "i" comparison::gt;
    8061 "sparsevec_ge" (SPARSEVEC SPARSEVEC) BOOL "i" comparison::ge;
    8062 "sparsevec_cmp" (SPARSEVEC SPARSEVEC) INT4 "i" comparison::cmp;
    8063 "sparsevec" (SPARSEVEC INT4 BOOL) SPARSEVEC "i" vectors::converted;
    8064 "hamming_distance" (BIT BIT) FLOAT8 "i" vector_distances::hamming;
    8065 "jaccard_distance" (BIT BIT) FLOAT8 "i" vector_distances::jaccard;
    8066 "array_to_vector" (INT4_ARRAY INT4 BOOL) VECTOR "i" vectors::of_array;
    8067 "array_to_halfvec" (INT4_ARRAY INT4 BOOL) HALFVEC "i" vectors::of_array;
    8068 "array_to_sparsevec" (INT4_ARRAY INT4 BOOL) SPARSEVEC "i" vectors::of_array;
    8069 "array_to_vector" (FLOAT4_ARRAY INT4 BOOL) VECTOR "i" vectors::of_array;
    8070 "array_to_halfvec" (FLOAT4_ARRAY INT4 BOOL) HALFVEC "i" vectors::of_array;
    8071 "array_to_sparsevec" (FLOAT4_ARRAY INT4 BOOL) SPARSEVEC "i" vectors::of_array;
    8072 "array_to_vector" (FLOAT8_ARRAY INT4 BOOL) VECTOR "i" vectors::of_array;
    8073 "array_to_halfvec" (FLOAT8_ARRAY INT4 BOOL) HALFVEC "i" vectors::of_array;
    8074 "array_to_sparsevec" (FLOAT8_ARRAY INT4 BOOL) SPARSEVEC "i" vectors::of_array;
    8075 "array_to_vector" (NUMERIC_ARRAY INT4 BOOL) VECTOR "i" vectors::of_array;
    8076 "array_to_halfvec" (NUMERIC_ARRAY INT4 BOOL) HALFVEC "i" vectors::of_array;
    8077 "array_to_sparsevec" (NUMERIC_ARRAY INT4 BOOL) SPARSEVEC "i" vectors::of_array;
    8078 "vector_to_float4" (VECTOR INT4 BOOL) FLOAT4_ARRAY "i" vectors::array;
    8079 "halfvec_to_float4" (HALFVEC INT4 BOOL) FLOAT4_ARRAY "i" vectors::array;
    8080 "vector_to_halfvec" (VECTOR INT4 BOOL) HALFVEC "i" vectors::converted;
    8081 "halfvec_to_vector" (HALFVEC INT4 BOOL) VECTOR "i" vectors::converted;
    8082 "vector_to_sparsevec" (VECTOR INT4 BOOL) SPARSEVEC "i" vectors::converted;
    8083 "sparsevec_to_vector" (SPARSEVEC INT4 BOOL) VECTOR "i" vectors::converted;
    8084 "halfvec_to_sparsevec" (HALFVEC INT4 BOOL) SPARSEVEC "i" vectors::converted;
    8085 "sparsevec_to_halfvec" (SPARSEVEC INT4 BOOL) HALFVEC "i" vectors::converted;
}

operators! {
    8200 "<->" VECTOR VECTOR 8000 "<->" "";
    8201 "<#>" VECTOR VECTOR 8005 "<#>" "";
    8202 "<=>" VECTOR VECTOR 8002 "<=>" "";
    8203 "<+>" VECTOR VECTOR 8003 "<+>" "";
    8204 "+" VECTOR VECTOR 8010 "+" "";
    8205 "-" VECTOR VECTOR 8011 "" "";
    8206 "*" VECTOR VECTOR 8012 "*" "";
    8207 "||" VECTOR VECTOR 8013 "" "";
    8208 "=" VECTOR VECTOR 8016 "=" "<>";
    8209 "<>" VECTOR VECTOR 8017 "<>" "=";
    8210 "<" VECTOR VECTOR 8018 ">" ">=";
    8211 "<=" VECTOR VECTOR 8019 ">=" ">";
    8212 ">" VECTOR VECTOR 8020 "<" "<=";
    8213 ">=" VECTOR VECTOR 8021 "<=" "<";
    8214 "<->" HALFVEC HALFVEC 8024 "<->" "";
    8215 "<#>" HALFVEC HALFVEC 8029 "<#>" "";
    8216 "<=>" HALFVEC HALFVEC 8026 "<=>" "";
    8217 "<+>" HALFVEC HALFVEC 8027 "<+>" "";
    8218 "+" HALFVEC HALFVEC 8034 "+" "";
    8219 "-" HALFVEC HALFVEC 8035 "" "";
    8220 "*" HALFVEC HALFVEC 8036 "*" "";
    8221 "||" HALFVEC HALFVEC 8037 "" "";
    8222 "=" HALFVEC HALFVEC 8040 "=" "<>";
    8223 "<>" HALFVEC HALFVEC 8041 "<>" "=";
    8224 "<" HALFVEC HALFVEC 8042 ">" ">=";
    8225 "<=" HALFVEC HALFVEC 8043 ">=" ">";
    8226 ">" HALFVEC HALFVEC 8044 "<" "<=";
    8227 ">=" HALFVEC HALFVEC 8045 "<=" "<";
    8228 "<->" SPARSEVEC SPARSEVEC 8048 "<->" "";
    8229 "<#>" SPARSEVEC SPARSEVEC 8053 "<#>" "";
    8230 "<=>" SPARSEVEC SPARSEVEC 8050 "<=>" "";
    8231 "<+>" SPARSEVEC SPARSEVEC 8051 "<+>" "";
    8232 "=" SPARSEVEC SPARSEVEC 8056 "=" "<>";
    8233 "<>" SPARSEVEC SPARSEVEC 8057 "<>" "=";
    8234 "<" SPARSEVEC SPARSEVEC 8058 ">" ">=";
    8235 "<=" SPARSEVEC SPARSEVEC 8059 ">=" ">";
    8236 ">" SPARSEVEC SPARSEVEC 8060 "<" "<=";
    8237 ">=" SPARSEVEC SPARSEVEC 8061 "<=" "<";
    8238 "<~>" BIT BIT 8064 "<~>" "";
    8239 "<%>" BIT BIT 8065 "<%>" "";
}

casts! {
    INT4_ARRAY VECTOR 8066 "a";
    INT4_ARRAY HALFVEC 8067 "a";
    INT4_ARRAY SPARSEVEC 8068 "a";
    FLOAT4_ARRAY VECTOR 8069 "a";
    FLOAT4_ARRAY HALFVEC 8070 "a";
    FLOAT4_ARRAY SPARSEVEC 8071 "a";
    FLOAT8_ARRAY VECTOR 8072 "a";
    FLOAT8_ARRAY HALFVEC 8073 "a";
    FLOAT8_ARRAY SPARSEVEC 8074 "a";
    NUMERIC_ARRAY VECTOR 8075 "a";
    NUMERIC_ARRAY HALFVEC 8076 "a";
    NUMERIC_ARRAY SPARSEVEC 8077 "a";
    VECTOR FLOAT4_ARRAY 8078 "i";
    HALFVEC FLOAT4_ARRAY 8079 "a";
    VECTOR HALFVEC 8080 "i";
    HALFVEC VECTOR 8081 "a";
    VECTOR SPARSEVEC 8082 "i";
    SPARSEVEC VECTOR 8083 "a";
    HALFVEC SPARSEVEC 8084 "i";
    SPARSEVEC HALFVEC 8085 "a";
}

/// The type of the first argument.
fn kind(call: &Call<'_>) -> TypeId {
    call.argument_types.first().copied().unwrap_or_default()
}

pub(crate) fn dimensions(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(
        values::dimensions(kind(call), &args.vector(0)?) as i32,
    ))
}

/// The numbers that are not zero, of any of the types.
fn nonzero(kind: TypeId, bytes: &[u8]) -> Vec<f32> {
    match kind {
        TypeId::SPARSEVEC => Sparse::of(bytes).entries().map(|own| own.1).collect(),
        _ => values::numbers(kind, bytes),
    }
}

fn length(kind: TypeId, bytes: &[u8]) -> Result<f64> {
    coro::work(bytes.len())?;
    let squares = nonzero(kind, bytes).into_iter().map(|number| {
        let number = f64::from(number);
        number * number
    });
    Ok(squares.sum::<f64>().sqrt())
}

pub(crate) fn norm(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    length(kind(call), &args.vector(0)?).map(Datum::Float8)
}

/// A value of the type; 22003 where a number of it overflows.
fn made(kind: TypeId, numbers: &[f32]) -> Result<Datum> {
    let fits = |number: &f32| match kind {
        TypeId::HALFVEC => values::to_half(*number).is_some(),
        _ => number.is_finite(),
    };
    match numbers.iter().all(fits) {
        true => values::make(kind, numbers),
        false => Err(float_overflow()),
    }
}

/// The vector of length one in the same direction; one of zeros stays what it is.
pub(crate) fn normalized(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (kind, bytes) = (kind(call), args.vector(0)?);
    let length = length(kind, &bytes)?;
    if length == 0.0 {
        return Ok(Datum::Vector(bytes));
    }
    let scaled = |number: f32| (f64::from(number) / length) as f32;
    if kind == TypeId::SPARSEVEC {
        let sparse = Sparse::of(&bytes);
        let entries = sparse.entries().map(|(at, number)| (at, scaled(number)));
        let entries = entries.filter(|own| own.1 != 0.0).collect();
        return values::make_sparse(sparse.dimensions, entries);
    }
    let numbers: Vec<f32> = values::numbers(kind, &bytes)
        .into_iter()
        .map(scaled)
        .collect();
    made(kind, &numbers)
}

/// A bit for each number: whether it is above zero.
pub(crate) fn quantized(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let numbers = values::numbers(kind(call), &args.vector(0)?);
    coro::work(numbers.len())?;
    let mut bytes = vec![0; numbers.len().div_ceil(8)];
    for (place, number) in numbers.iter().enumerate() {
        if *number > 0.0 {
            bytes[place / 8] |= 0x80 >> (place % 8);
        }
    }
    Ok(Datum::Bits(Bits::new(numbers.len(), bytes).into()))
}

/// So many numbers from that place on, which counts from one, as far as there are any.
pub(crate) fn part(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (kind, bytes) = (kind(call), args.vector(0)?);
    let (start, count) = (i64::from(args.int4(1)?), i64::from(args.int4(2)?));
    let numbers = values::numbers(kind, &bytes);
    let end = (start + count.max(0)).clamp(1, numbers.len() as i64 + 1) as usize;
    let start = start.clamp(1, end as i64) as usize;
    values::make(kind, &numbers[start - 1..end - 1])
}

/// Number by number.
fn paired(call: &Call<'_>, args: &[Datum], f: impl Fn(f32, f32) -> Result<f32>) -> Result<Datum> {
    let (kind, a, b) = (kind(call), args.vector(0)?, args.vector(1)?);
    values::same_dimensions(kind, &a, &b)?;
    coro::work(a.len())?;
    let pairs = values::numbers(kind, &a).into_iter();
    let pairs = pairs.zip(values::numbers(kind, &b));
    let numbers = pairs.map(|(a, b)| f(a, b)).collect::<Result<Vec<f32>>>()?;
    made(kind, &numbers)
}

pub(crate) fn add(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    paired(call, args, |a, b| Ok(a + b))
}

pub(crate) fn subtract(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    paired(call, args, |a, b| Ok(a - b))
}

pub(crate) fn multiply(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let is_half = kind(call) == TypeId::HALFVEC;
    paired(call, args, |a, b| {
        let product = a * b;
        let vanishes = match is_half {
            true => values::to_half(product).is_some_and(|half| half & 0x7fff == 0),
            false => product == 0.0,
        };
        match vanishes && a != 0.0 && b != 0.0 {
            true => Err(underflow()),
            false => Ok(product),
        }
    })
}

pub(crate) fn concatenated(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let kind = kind(call);
    let mut numbers = values::numbers(kind, &args.vector(0)?);
    numbers.extend(values::numbers(kind, &args.vector(1)?));
    values::make(kind, &numbers)
}

// ---- Conversions ----

/// The value, if it has the dimensions that the second argument says; a cast has none.
fn fitting(call: &Call<'_>, args: &[Datum], value: Datum) -> Result<Datum> {
    if let (Some(Datum::Int4(typmod)), Datum::Vector(bytes)) = (args.get(1), &value) {
        values::check_expected(call.result, *typmod, bytes)?;
    }
    Ok(value)
}

/// A vector of one of the types as one of another, or with other dimensions asked for.
pub(crate) fn converted(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (from, to, bytes) = (kind(call), call.result, args.vector(0)?);
    let value = match from {
        _ if from == to => Datum::Vector(bytes),
        TypeId::SPARSEVEC => {
            let sparse = Sparse::of(&bytes);
            values::check_dimensions(to, sparse.dimensions as i64)?;
            let mut numbers = vec![0.0; sparse.dimensions];
            for (place, number) in sparse.entries() {
                if let Some(own) = numbers.get_mut(place as usize) {
                    *own = number;
                }
            }
            values::make(to, &numbers)?
        }
        _ => values::make(to, &values::numbers(from, &bytes))?,
    };
    fitting(call, args, value)
}

/// `real[]`.
pub(crate) fn array(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let numbers = values::numbers(kind(call), &args.vector(0)?).into_iter();
    let elements = numbers.map(Datum::Float4).collect();
    Ok(Datum::Array(Array::of(TypeId::FLOAT4, elements).into()))
}

fn number(value: &Datum) -> Result<f32> {
    Ok(match value {
        Datum::Int4(v) => *v as f32,
        Datum::Float4(v) => *v,
        Datum::Float8(v) => *v as f32,
        Datum::Numeric(v) => types::float::parse_f32(&v.to_string())?,
        Datum::Null => {
            let message = "array must not contain nulls";
            return Err(Error::new(SqlState::of("22004"), message));
        }
        other => return Err(Error::internal(format!("{other:?} is no number"))),
    })
}

pub(crate) fn of_array(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = args.array(0)?;
    if array.dimensions.len() > 1 {
        return Err(values::wrong("array must be 1-D"));
    }
    let has_null = array.elements.iter().find(|element| element.is_null());
    has_null.map(number).transpose()?;
    let count = i64::try_from(array.elements.len()).unwrap_or(i64::MAX);
    values::check_dimensions(call.result, count)?;
    let mut numbers = Vec::with_capacity(array.elements.len());
    for element in &array.elements {
        coro::work(16)?;
        numbers.push(number(element)?);
    }
    let value = values::make(call.result, &numbers)?;
    fitting(call, args, value)
}
