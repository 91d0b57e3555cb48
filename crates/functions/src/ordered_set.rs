//! Aggregates over sorted rows: percentiles, the mode, and the place that a row would have.
//!
//! ```text
//! percentile_cont(0.5) within group (order by x)      direct argument 0.5, value x
//! rank(7) within group (order by x desc)              how many rows come before one with x = 7
//! ```
//! Their rows come in the order of WITHIN GROUP; each has the direct arguments, which are the same for
//! all of a group, and then the values that are sorted by.
//!
//! Source: PostgreSQL 15 manual, section 9.21.

use std::cmp::Ordering;
use std::sync::Arc;

use base::error::{Error, Result, SqlState};

use types::{compare, growth, Array, Datum, TypeId};

/// What such an aggregate computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedSet {
    /// The first value at which so much of the rows has come.
    Discrete,
    /// The same between two values.
    Continuous,
    /// The most frequent value.
    Mode,
    /// One more than the rows before.
    Rank,
    /// That as a share of the rows.
    PercentRank,
    /// The share of the rows that come no later.
    CumulativeDistribution,
    /// One more than the different rows before.
    DenseRank,
}

impl OrderedSet {
    /// Whether the direct arguments are a row that might be there.
    pub fn is_hypothetical(self) -> bool {
        matches!(
            self,
            OrderedSet::Rank
                | OrderedSet::PercentRank
                | OrderedSet::CumulativeDistribution
                | OrderedSet::DenseRank
        )
    }
}

/// How a value is sorted by: whether large ones come first, and whether NULLs do.
pub type Direction = (bool, bool);

/// What has come so far.
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    what: OrderedSet,
    types: Vec<TypeId>,
    order: Vec<Direction>,
    /// The first direct argument.
    direct: Datum,
    /// The values, where all are needed.
    values: Vec<Datum>,
    bytes: usize,
    /// All rows, those before the one that might be there, and those that are its equals.
    rows: i64,
    before: i64,
    equal: i64,
    /// The different ones before.
    different: i64,
    last: Option<Vec<Datum>>,
    /// The value at work and how often it has come; and the most frequent one.
    run: (Datum, i64),
    best: (Datum, i64),
}

fn out_of_range(fraction: f64) -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("percentile value {fraction} is not between 0 and 1"),
    )
}

impl Sorted {
    pub(crate) fn new(what: OrderedSet, types: &[TypeId]) -> Sorted {
        Sorted {
            what,
            types: types.to_vec(),
            order: Vec::new(),
            direct: Datum::Null,
            values: Vec::new(),
            bytes: 0,
            rows: 0,
            before: 0,
            equal: 0,
            different: 0,
            last: None,
            run: (Datum::Null, 0),
            best: (Datum::Null, 0),
        }
    }

    pub(crate) fn sort_by(&mut self, order: Vec<Direction>) {
        self.order = order;
    }

    /// What the direct argument is, where no row has told it.
    pub(crate) fn set_direct(&mut self, direct: Datum) {
        self.direct = direct;
    }

    /// The memory of what is kept, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.values.capacity() * growth::ELEMENT_BYTES + self.bytes
    }

    /// Takes the next row.
    pub(crate) fn step(&mut self, arguments: &[Datum]) -> Result<()> {
        let wrong = || Error::internal("an ordered-set aggregate without its values");
        if self.what.is_hypothetical() {
            let (direct, values) = arguments.split_at(arguments.len() / 2);
            self.place(direct, values);
            return Ok(());
        }
        let (value, direct) = arguments.split_last().ok_or_else(wrong)?;
        if let Some(direct) = direct.first() {
            self.direct.clone_from(direct);
        }
        if value.is_null() {
            return Ok(());
        }
        if self.what != OrderedSet::Mode {
            self.bytes += growth::bytes_of(value);
            growth::check_elements(self.values.len() + 1)?;
            self.values.push(value.clone());
            return Ok(());
        }
        let kind = self.types.last().copied().unwrap_or(TypeId::NONE);
        match self.run.1 > 0 && compare::equal(kind, &self.run.0, value) {
            true => self.run.1 += 1,
            false => self.run = (value.clone(), 1),
        }
        if self.run.1 > self.best.1 {
            self.best.clone_from(&self.run);
        }
        Ok(())
    }

    /// How a row lies to the one that might be there.
    fn place(&mut self, direct: &[Datum], values: &[Datum]) {
        self.rows += 1;
        match self.compare(values, direct) {
            Ordering::Greater => {}
            Ordering::Equal => self.equal += 1,
            Ordering::Less => {
                self.before += 1;
                let last = self.last.as_deref();
                if last.is_none_or(|last| self.compare(last, values).is_ne()) {
                    self.different += 1;
                    self.last = Some(values.to_vec());
                }
            }
        }
    }

    fn compare(&self, a: &[Datum], b: &[Datum]) -> Ordering {
        let kinds = &self.types[self.types.len() / 2..];
        let mut keys = a.iter().zip(b).zip(kinds).zip(&self.order);
        let first = keys.find_map(|(((a, b), kind), (descending, nulls_first))| {
            let order = match (a.is_null(), b.is_null()) {
                (true, true) => Ordering::Equal,
                (true, false) if *nulls_first => Ordering::Less,
                (true, false) => Ordering::Greater,
                (false, true) if *nulls_first => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ if *descending => compare::compare(*kind, b, a),
                _ => compare::compare(*kind, a, b),
            };
            order.is_ne().then_some(order)
        });
        first.unwrap_or(Ordering::Equal)
    }

    /// The result.
    pub(crate) fn finish(&self) -> Result<Datum> {
        Ok(match self.what {
            OrderedSet::Mode => self.best.0.clone(),
            OrderedSet::Rank => Datum::Int8(self.before + 1),
            OrderedSet::DenseRank => Datum::Int8(self.different + 1),
            OrderedSet::PercentRank if self.rows == 0 => Datum::Float8(0.0),
            OrderedSet::PercentRank => Datum::Float8(self.before as f64 / self.rows as f64),
            OrderedSet::CumulativeDistribution => {
                let until = self.before + self.equal + 1;
                Datum::Float8(until as f64 / (self.rows + 1) as f64)
            }
            OrderedSet::Discrete | OrderedSet::Continuous => return self.percentiles(),
        })
    }

    fn percentiles(&self) -> Result<Datum> {
        if let Datum::Float8(fraction) = self.direct {
            if !(0.0..=1.0).contains(&fraction) {
                return Err(out_of_range(fraction));
            }
        }
        if self.values.is_empty() {
            return Ok(Datum::Null);
        }
        let one = |fraction: &Datum| match fraction {
            Datum::Float8(fraction) if (0.0..=1.0).contains(fraction) => self.percentile(*fraction),
            Datum::Float8(fraction) => Err(out_of_range(*fraction)),
            _ => Ok(Datum::Null),
        };
        let Datum::Array(fractions) = &self.direct else {
            return one(&self.direct);
        };
        let elements = fractions.elements.iter().map(one);
        Ok(Datum::Array(Arc::new(Array {
            element: self.types.last().copied().unwrap_or(TypeId::NONE),
            dimensions: fractions.dimensions.clone(),
            elements: elements.collect::<Result<_>>()?,
        })))
    }

    fn percentile(&self, fraction: f64) -> Result<Datum> {
        let count = self.values.len();
        let at = |place: f64| &self.values[(place as usize).min(count - 1)];
        if self.what == OrderedSet::Discrete {
            let place = (fraction * count as f64).ceil() - 1.0;
            return Ok(at(place.max(0.0)).clone());
        }
        let place = fraction * (count - 1) as f64;
        let (low, high) = (place.floor(), place.ceil());
        let share = place - low;
        if low == high {
            return Ok(at(low).clone());
        }
        match (at(low), at(high)) {
            (Datum::Float8(low), Datum::Float8(high)) => {
                Ok(Datum::Float8(low + share * (high - low)))
            }
            (Datum::Interval(low), Datum::Interval(high)) => {
                let apart = high.sub(low)?.mul(share)?;
                Ok(Datum::Interval(apart.add(low)?))
            }
            _ => Err(Error::internal("a percentile between such values")),
        }
    }
}
