//! Aggregates over pairs of numbers: correlation, covariance, and the line that fits best.
//!
//! ```text
//! regr_slope(y, x)      how much y grows where x grows by one
//! corr(y, x)            between -1 and 1
//! ```
//! The state is the number of pairs, both sums, and the sums of squared and of multiplied deviations,
//! which Youngs and Cramer's recurrence takes on from pair to pair. A pair with a NULL in it does not
//! count.
//!
//! Source: PostgreSQL 15 manual, table 9.60.

use base::error::Result;

use super::float_sums::{add_floats, float, float_overflow};
use types::Datum;

/// What is computed of the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Fit {
    Count,
    Sxx,
    Syy,
    Sxy,
    AverageX,
    AverageY,
    R2,
    Slope,
    Intercept,
    CovariancePopulation,
    CovarianceSample,
    Correlation,
}

/// The pairs so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pairs {
    count: f64,
    x: Sums,
    y: Sums,
    products: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    sum: f64,
    squares: f64,
}

impl Sums {
    /// Whether it became infinite though nothing infinite went in.
    fn overflows(&self, before: f64, value: f64) -> bool {
        let is_infinite = self.sum.is_infinite() || self.squares.is_infinite();
        is_infinite && !before.is_infinite() && !value.is_infinite()
    }
}

/// An infinite sum of deviations says nothing.
fn known(sum: f64) -> f64 {
    if sum.is_infinite() {
        f64::NAN
    } else {
        sum
    }
}

impl Pairs {
    /// Takes in a pair: y, then x.
    ///
    /// # Errors
    /// 22003 on overflow.
    pub(crate) fn step(&mut self, arguments: &[Datum]) -> Result<()> {
        let [y, x] = arguments else {
            return Ok(());
        };
        if y.is_null() || x.is_null() {
            return Ok(());
        }
        let (y, x) = (float(y)?, float(x)?);
        let before = *self;
        self.count += 1.0;
        self.x.sum += x;
        self.y.sum += y;
        if before.count > 0.0 {
            let of_x = x * self.count - self.x.sum;
            let of_y = y * self.count - self.y.sum;
            let scale = 1.0 / (self.count * before.count);
            self.x.squares += of_x * of_x * scale;
            self.y.squares += of_y * of_y * scale;
            self.products += of_x * of_y * scale;
            let finite = [x, y, before.x.sum, before.y.sum];
            let finite = !finite.iter().any(|value| value.is_infinite());
            if self.x.overflows(before.x.sum, x)
                || self.y.overflows(before.y.sum, y)
                || self.products.is_infinite() && finite
            {
                return Err(float_overflow());
            }
            self.x.squares = known(self.x.squares);
            self.y.squares = known(self.y.squares);
            self.products = known(self.products);
            return Ok(());
        }
        if !x.is_finite() {
            (self.x.squares, self.products) = (f64::NAN, f64::NAN);
        }
        if !y.is_finite() {
            (self.y.squares, self.products) = (f64::NAN, f64::NAN);
        }
        Ok(())
    }

    /// Takes in other pairs.
    ///
    /// # Errors
    /// 22003 on overflow.
    pub(crate) fn merge(&mut self, other: &Pairs) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = *other;
            return Ok(());
        }
        let total = self.count + other.count;
        let of_x = self.x.sum / self.count - other.x.sum / other.count;
        let of_y = self.y.sum / self.count - other.y.sum / other.count;
        let scale = self.count * other.count / total;
        self.x.sum = add_floats(self.x.sum, other.x.sum)?;
        self.y.sum = add_floats(self.y.sum, other.y.sum)?;
        self.x.squares += other.x.squares + scale * of_x * of_x;
        self.y.squares += other.y.squares + scale * of_y * of_y;
        self.products += other.products + scale * of_x * of_y;
        self.count = total;
        Ok(())
    }

    /// What is asked for; none where the pairs are too few, or lie above one another.
    pub(crate) fn finish(&self, fit: Fit) -> Datum {
        let (n, sxx, syy, sxy) = (self.count, self.x.squares, self.y.squares, self.products);
        if fit == Fit::Count {
            return Datum::Int8(n as i64);
        }
        let enough = match fit {
            Fit::CovarianceSample => n >= 2.0,
            Fit::R2 | Fit::Slope | Fit::Intercept => n >= 1.0 && sxx != 0.0,
            Fit::Correlation => n >= 1.0 && sxx != 0.0 && syy != 0.0,
            _ => n >= 1.0,
        };
        if !enough {
            return Datum::Null;
        }
        Datum::Float8(match fit {
            Fit::Count => n,
            Fit::Sxx => sxx,
            Fit::Syy => syy,
            Fit::Sxy => sxy,
            Fit::AverageX => self.x.sum / n,
            Fit::AverageY => self.y.sum / n,
            Fit::R2 if syy == 0.0 => 1.0,
            Fit::R2 => (sxy * sxy) / (sxx * syy),
            Fit::Slope => sxy / sxx,
            Fit::Intercept => (self.y.sum - self.x.sum * sxy / sxx) / n,
            Fit::CovariancePopulation => sxy / n,
            Fit::CovarianceSample => sxy / (n - 1.0),
            Fit::Correlation => sxy / (sxx * syy).sqrt(),
        })
    }
}
