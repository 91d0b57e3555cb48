//! What `sum` and `avg` of vectors have seen: a sum for each dimension.
//!
//! A sum is as exact as repeated `+` is, an average as sums of 64 bits are.

use base::coro;
use base::error::{Error, Result};

use super::float_sums::float_overflow;
use types::{vectors, Datum, TypeId};

/// Sums by dimension, and of how many vectors.
#[derive(Clone, Debug)]
pub(crate) struct VectorSums {
    kind: TypeId,
    is_average: bool,
    count: u64,
    sums: Vec<f64>,
}

/// A sum as the type has it.
fn rounded(kind: TypeId, sum: f64) -> f64 {
    match kind {
        TypeId::HALFVEC => {
            let half = vectors::to_half(sum as f32).map(vectors::of_half);
            half.map_or(f64::INFINITY, f64::from)
        }
        _ => f64::from(sum as f32),
    }
}

impl VectorSums {
    pub fn new(kind: TypeId, is_average: bool) -> VectorSums {
        VectorSums {
            kind,
            is_average,
            count: 0,
            sums: Vec::new(),
        }
    }

    /// Takes a vector.
    ///
    /// # Errors
    /// 22000 for one of other dimensions than those before; 22003.
    pub fn step(&mut self, value: &Datum) -> Result<()> {
        let Datum::Vector(bytes) = value else {
            return Err(Error::internal(format!("{value:?} is no vector")));
        };
        coro::work(bytes.len())?;
        let numbers = vectors::numbers(self.kind, bytes);
        let numbers: Vec<f64> = numbers.into_iter().map(f64::from).collect();
        self.add(1, &numbers)
    }

    fn add(&mut self, count: u64, numbers: &[f64]) -> Result<()> {
        let known = self.sums.len();
        if self.count == 0 {
            self.sums = numbers.to_vec();
        } else if known != numbers.len() {
            let found = numbers.len();
            return Err(vectors::wrong(match self.is_average {
                true => format!("expected {known} dimensions, not {found}"),
                false => {
                    let name = self.kind.fixed_name();
                    format!("different {name} dimensions {known} and {found}")
                }
            }));
        } else {
            let (kind, is_average) = (self.kind, self.is_average);
            for (sum, number) in self.sums.iter_mut().zip(numbers) {
                *sum += number;
                if !is_average {
                    *sum = rounded(kind, *sum);
                }
            }
        }
        self.count += count;
        match self.sums.iter().all(|sum| sum.is_finite()) {
            true => Ok(()),
            false => Err(float_overflow()),
        }
    }

    pub fn merge(&mut self, other: &VectorSums) -> Result<()> {
        match other.count {
            0 => Ok(()),
            count => self.add(count, &other.sums),
        }
    }

    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.sums.capacity() * size_of::<f64>()
    }

    pub fn finish(&self) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let count = if self.is_average { self.count } else { 1 };
        let numbers: Vec<f32> = self
            .sums
            .iter()
            .map(|sum| (sum / count as f64) as f32)
            .collect();
        vectors::make(self.kind, &numbers)
    }
}
