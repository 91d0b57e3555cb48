//! TABLESAMPLE: which rows a sample has.
//!
//! A row is in a sample or not by a hash of its key and of the sample's seed, so that one look at the row tells:
//!
//! ```text
//! t TABLESAMPLE BERNOULLI (10) REPEATABLE (5)     rows of t whose hash(5, key) is among the lowest tenth of hashes
//! ```
//! So a sample that is REPEATABLE has the same rows however they are found, and while they are there. One that is
//! not has a seed of the statement that the client has sent.
//!
//! # What it leaves out
//! SYSTEM takes rows one by one too. PostgreSQL takes whole pages, so as to read fewer; here keys that are neighbours
//! are mostly of the same time, and pages differ between replicas.
//!
//! Source: PostgreSQL 15 manual, SELECT; the arguments' names and types are those of its methods.

use base::error::{Error, Result, SqlState};

use super::{Body, Call, Function, Volatility};
use types::{encode_column, Datum, TypeId, NO_TYPMOD};

/// The method that takes each row by itself.
pub static BERNOULLI: Function = method(3313, "bernoulli");
/// The method that may take several rows together.
pub static SYSTEM: Function = method(3314, "system");

/// Whether a row is in a sample: the percentage, the seed, the columns of the row's key. A seed that is no `float8`
/// is not the sample's own: it tells it from others of its statement.
const fn method(oid: u32, name: &'static str) -> Function {
    Function {
        oid,
        name,
        arguments: &[TypeId::FLOAT4, TypeId::FLOAT8, TypeId::ANY],
        variadic: false,
        defaults: 0,
        result: TypeId::BOOL,
        volatility: Volatility::Stable,
        strict: false,
        body: Body::Native(is_taken),
    }
}

/// The method of that name.
pub fn named(name: &str) -> Option<&'static Function> {
    [&BERNOULLI, &SYSTEM]
        .into_iter()
        .find(|method| method.name == name)
}

/// Whether a function is one of the methods.
pub fn is_method(function: &Function) -> bool {
    function.oid == BERNOULLI.oid || function.oid == SYSTEM.oid
}

fn is_taken(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [percent, seed, key @ ..] = args else {
        return Err(Error::internal("a sample of nothing"));
    };
    let share = share_of(percent)?;
    let seed = match seed {
        Datum::Null => {
            let message = "TABLESAMPLE REPEATABLE parameter cannot be null";
            return Err(Error::new(SqlState::of("2202G"), message));
        }
        // 0 has two forms.
        Datum::Float8(seed) => (seed + 0.0).to_bits(),
        other => {
            let place = other.as_i64().unwrap_or(0);
            mixed(call.context.statement_start as u64).wrapping_add(place as u64)
        }
    };
    let mut bytes = Vec::new();
    for (value, type_id) in key.iter().zip(call.argument_types.iter().skip(2)) {
        encode_column(*type_id, NO_TYPMOD, value, &mut bytes)?;
        bytes.push(0);
    }
    Ok(Datum::Bool(u64::from(hash(seed, &bytes)) < share))
}

/// How many of all hashes are taken.
fn share_of(percent: &Datum) -> Result<u64> {
    let wrong = |message| Error::new(SqlState::of("2202H"), message);
    match percent {
        Datum::Float4(percent) if (0.0..=100.0).contains(percent) => {
            Ok(((f64::from(*percent) / 100.0) * (1_u64 << 32) as f64).round() as u64)
        }
        Datum::Null => Err(wrong("TABLESAMPLE parameter cannot be null")),
        _ => Err(wrong("sample percentage must be between 0 and 100")),
    }
}

/// The same for the same bytes, in every version: whoever has taken a sample may take it again.
fn hash(seed: u64, bytes: &[u8]) -> u32 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let start = mixed(seed);
    let sum = bytes.iter().fold(start, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(PRIME)
    });
    (mixed(sum) >> 32) as u32
}

/// Bits of a number that depend on all others of it (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number
/// Generators*, 2014).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(percent: f32, seed: u64) -> Vec<u32> {
        let share = share_of(&Datum::Float4(percent)).unwrap();
        let rows = 0..10_000_u32;
        rows.filter(|row| u64::from(hash(seed, &row.to_be_bytes())) < share)
            .collect()
    }

    #[test]
    fn about_as_many_rows_as_were_asked_for() {
        for seed in 0..20 {
            let count = taken(10.0, seed).len();
            assert!((850..=1_150).contains(&count), "{count} for {seed}");
        }
        assert_eq!(taken(100.0, 1).len(), 10_000);
        assert_eq!(taken(0.0, 1).len(), 0);
    }

    #[test]
    fn seeds_choose() {
        assert_eq!(taken(10.0, 1), taken(10.0, 1));
        assert_ne!(taken(10.0, 1), taken(10.0, 2));
        let (few, more) = (taken(10.0, 1), taken(20.0, 1));
        assert!(few.iter().all(|row| more.contains(row)));
    }

    #[test]
    fn percentages_have_bounds() {
        for wrong in [
            Datum::Float4(-1.0),
            Datum::Float4(100.1),
            Datum::Float4(f32::NAN),
        ] {
            assert_eq!(share_of(&wrong).unwrap_err().state(), SqlState::of("2202H"));
        }
        assert!(share_of(&Datum::Null).is_err());
    }
}
