//! Distances of extension `vector`.
//!
//! ```text
//! a  | 8 numbers | 8 numbers | … | rest        each of 8 sums takes one number of each block
//! b  | 8 numbers | 8 numbers | … | rest        so that a block is one step of the processor's vectors
//! ```
//! A sum of floats depends on its order, so a compiler may not turn one running sum into several: they
//! are written as several here. Numbers are read where they lie, of 16 bits made ones of 32 on the way.
//! Sums have 32 bits, as pgvector's.

use base::coro;
use base::error::Result;

use super::super::arguments::Arguments;
use super::super::Call;
use types::vectors::{of_half, same_dimensions, wrong, Sparse};
use types::{Datum, TypeId};

/// So many sums are made beside one another.
const LANES: usize = 8;

/// `N` sums over the pairs of numbers, each of which has `W` bytes.
#[inline]
fn sums<const W: usize, const N: usize>(
    a: &[u8],
    b: &[u8],
    read: impl Fn([u8; W]) -> f32,
    terms: impl Fn(f32, f32) -> [f32; N],
) -> [f32; N] {
    let (a, b) = (a.as_chunks::<W>().0, b.as_chunks::<W>().0);
    let (blocks_a, rest_a) = a.as_chunks::<LANES>();
    let (blocks_b, rest_b) = b.as_chunks::<LANES>();
    let mut lanes = [[0_f32; LANES]; N];
    for (block_a, block_b) in blocks_a.iter().zip(blocks_b) {
        for lane in 0..LANES {
            let terms = terms(read(block_a[lane]), read(block_b[lane]));
            for (sums, term) in lanes.iter_mut().zip(terms) {
                sums[lane] += term;
            }
        }
    }
    let mut totals = lanes.map(|lanes| lanes.iter().sum::<f32>());
    for (a, b) in rest_a.iter().zip(rest_b) {
        let terms = terms(read(*a), read(*b));
        for (total, term) in totals.iter_mut().zip(terms) {
            *total += term;
        }
    }
    totals
}

/// The same over two sparse vectors: of pairs of which neither number is zero, and of those of which
/// one is.
fn sparse_sums<const N: usize>(
    a: &[u8],
    b: &[u8],
    terms: impl Fn(f32, f32) -> [f32; N],
) -> [f32; N] {
    let mut a = Sparse::of(a).entries().peekable();
    let mut b = Sparse::of(b).entries().peekable();
    let mut totals = [0_f32; N];
    loop {
        let (at_a, at_b) = (a.peek().map(|own| own.0), b.peek().map(|own| own.0));
        let least = match (at_a, at_b) {
            (None, None) => return totals,
            (Some(place), None) | (None, Some(place)) => place,
            (Some(at_a), Some(at_b)) => at_a.min(at_b),
        };
        let own_a = a.next_if(|own| own.0 == least).map_or(0.0, |own| own.1);
        let own_b = b.next_if(|own| own.0 == least).map_or(0.0, |own| own.1);
        for (total, term) in totals.iter_mut().zip(terms(own_a, own_b)) {
            *total += term;
        }
    }
}

/// Sums over the arguments, two vectors of one type.
#[inline]
fn of_arguments<const N: usize>(
    call: &Call<'_>,
    args: &[Datum],
    terms: impl Fn(f32, f32) -> [f32; N],
) -> Result<[f32; N]> {
    let (a, b) = (args.vector(0)?, args.vector(1)?);
    let kind = call.argument_types.first().copied().unwrap_or_default();
    same_dimensions(kind, &a, &b)?;
    coro::work((a.len() + b.len()) / 8)?;
    Ok(match kind {
        TypeId::SPARSEVEC => sparse_sums(&a, &b, terms),
        TypeId::HALFVEC => sums(&a, &b, |bytes| of_half(u16::from_le_bytes(bytes)), terms),
        _ => sums(&a, &b, f32::from_le_bytes, terms),
    })
}

fn squared(call: &Call<'_>, args: &[Datum]) -> Result<f64> {
    let square = |a: f32, b: f32| {
        let difference = a - b;
        [difference * difference]
    };
    let [sum] = of_arguments(call, args, square)?;
    Ok(f64::from(sum))
}

fn product(call: &Call<'_>, args: &[Datum]) -> Result<f64> {
    let [sum] = of_arguments(call, args, |a, b| [a * b])?;
    Ok(f64::from(sum))
}

pub(crate) fn l2(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    squared(call, args).map(|sum| Datum::Float8(sum.sqrt()))
}

pub(crate) fn l2_squared(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    squared(call, args).map(Datum::Float8)
}

pub(crate) fn inner_product(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    product(call, args).map(Datum::Float8)
}

pub(crate) fn negative_inner_product(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    product(call, args).map(|sum| Datum::Float8(-sum))
}

/// One less the cosine of the angle; NaN where there is none, as a vector is zero.
pub(crate) fn cosine(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [both, of_a, of_b] = of_arguments(call, args, |a, b| [a * b, a * a, b * b])?;
    let similarity = f64::from(both) / (f64::from(of_a) * f64::from(of_b)).sqrt();
    Ok(Datum::Float8(1.0 - similarity.clamp(-1.0, 1.0)))
}

pub(crate) fn l1(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [sum] = of_arguments(call, args, |a, b| [(a - b).abs()])?;
    Ok(Datum::Float8(f64::from(sum)))
}

/// The angle of two vectors of length one, as a part of half a circle.
pub(crate) fn spherical(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let product = product(call, args)?.clamp(-1.0, 1.0);
    Ok(Datum::Float8(product.acos() / std::f64::consts::PI))
}

/// How many bits are set in both, in the first, in the second, and in one of them alone.
fn bits(args: &[Datum]) -> Result<[u64; 4]> {
    let (a, b) = (args.bits(0)?, args.bits(1)?);
    if a.len() != b.len() {
        let message = format!("different bit lengths {} and {}", a.len(), b.len());
        return Err(wrong(message));
    }
    coro::work(a.bytes().len())?;
    let mut counts = [0; 4];
    for (a, b) in a.bytes().iter().zip(b.bytes()) {
        let all = [a & b, *a, *b, a ^ b];
        for (count, byte) in counts.iter_mut().zip(all) {
            *count += u64::from(byte.count_ones());
        }
    }
    Ok(counts)
}

pub(crate) fn hamming(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [_, _, _, differing] = bits(args)?;
    Ok(Datum::Float8(differing as f64))
}

pub(crate) fn jaccard(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [both, of_a, of_b, _] = bits(args)?;
    Ok(Datum::Float8(match both {
        0 => 1.0,
        _ => 1.0 - both as f64 / (of_a + of_b - both) as f64,
    }))
}
