//! The figures are what EXPLAIN of PostgreSQL 15 shows of
//!
//! ```text
//! create table t (k int primary key, s int, n int, w text, b bool);
//! insert into t select g, case when g <= 500 then 0 when g <= 800 then 1 else g end,
//!   case when g % 2 = 0 then g end, 'word ' || lpad((g % 200)::text, 3, '0'), g % 10 = 0
//!   from generate_series(1, 1000) g;
//! ```

use super::*;

const ROWS: f64 = 1_000.0;

fn facts(found: ColumnStatistics) -> Facts {
    Facts {
        found: Arc::new(found),
        rows: ROWS,
        unique: false,
    }
}

fn ints(values: impl Iterator<Item = i32>) -> Vec<Datum> {
    values.map(Datum::Int4).collect()
}

fn key() -> Facts {
    let found = ColumnStatistics {
        type_id: TypeId::INT4,
        width: 4,
        distinct: -1.0,
        histogram: ints((0..=100).map(|bound| 1 + bound * 999 / 100)),
        correlation: Some(1.0),
        ..ColumnStatistics::default()
    };
    Facts {
        unique: true,
        ..facts(found)
    }
}

fn skewed() -> Facts {
    facts(ColumnStatistics {
        type_id: TypeId::INT4,
        width: 4,
        distinct: -0.202,
        common: ints([0, 1].into_iter()),
        frequencies: vec![0.5, 0.3],
        histogram: ints((0..=100).map(|bound| 801 + bound * 199 / 100)),
        ..ColumnStatistics::default()
    })
}

fn half_null() -> Facts {
    facts(ColumnStatistics {
        type_id: TypeId::INT4,
        null_fraction: 0.5,
        width: 4,
        distinct: -0.5,
        histogram: ints((0..=100).map(|bound| 2 * (1 + bound * 499 / 100))),
        ..ColumnStatistics::default()
    })
}

fn words() -> Facts {
    let word = |number: usize| Datum::text(format!("word {number:03}"));
    facts(ColumnStatistics {
        type_id: TypeId::TEXT,
        width: 9,
        distinct: -0.2,
        common: (0..100).map(word).collect(),
        frequencies: vec![0.005; 100],
        histogram: (0..100)
            .map(|bound| word(100 + bound * 499 / 99 / 5))
            .collect(),
        ..ColumnStatistics::default()
    })
}

fn flags() -> Facts {
    facts(ColumnStatistics {
        type_id: TypeId::BOOL,
        width: 1,
        distinct: 2.0,
        common: vec![Datum::Bool(false), Datum::Bool(true)],
        frequencies: vec![0.9, 0.1],
        ..ColumnStatistics::default()
    })
}

fn rows(fraction: f64) -> f64 {
    (fraction * ROWS).round().max(1.0)
}

#[test]
fn equality() {
    let is = |facts: Facts, value: i32| rows(equal(&facts, Some(&Datum::Int4(value))));
    assert_eq!(is(key(), 5), 1.0);
    assert_eq!(is(skewed(), 0), 500.0);
    assert_eq!(is(skewed(), 1), 300.0);
    assert_eq!(is(skewed(), 900), 1.0);
    assert_eq!(is(half_null(), 4), 1.0);
    assert_eq!(equal(&skewed(), Some(&Datum::Null)), 0.0);
    // A constant of another type.
    assert_eq!(rows(equal(&skewed(), Some(&Datum::Int8(0)))), 500.0);
    assert_eq!(rows(differs(&skewed(), Some(&Datum::Int4(0)))), 500.0);
    let word = Datum::text("word 005");
    assert_eq!(rows(equal(&words(), Some(&word))), 5.0);
    // A value that is not known yet is one of all that there are.
    assert_eq!(rows(equal(&words(), None)), 5.0);
    assert_eq!(rows(equal(&skewed(), None)), 5.0);
    assert!(skewed().is_skewed() && !words().is_skewed() && !key().is_skewed());
}

#[test]
fn inequalities() {
    use Inequality::{Greater, GreaterOrEqual, Less, LessOrEqual};
    let is = |facts: Facts, operator, value: i32| {
        rows(inequality(&facts, operator, &Datum::Int4(value)))
    };
    assert_eq!(is(key(), Less, 100), 99.0);
    assert_eq!(is(key(), LessOrEqual, 500), 500.0);
    assert_eq!(is(key(), Greater, 990), 10.0);
    assert_eq!(is(key(), GreaterOrEqual, 1), 1_000.0);
    assert_eq!(is(key(), Less, 0), 1.0);
    assert_eq!(is(key(), Greater, 5_000), 1.0);
    assert_eq!(is(skewed(), Less, 1), 500.0);
    assert_eq!(is(skewed(), Less, 900), 899.0);
    assert_eq!(is(half_null(), Less, 500), 249.0);
    let word = Datum::text("word 150");
    assert_eq!(rows(inequality(&words(), GreaterOrEqual, &word)), 252.0);
}

#[test]
fn ranges() {
    use Inequality::{GreaterOrEqual, LessOrEqual};
    let between = |facts: Facts, low: i32, high: i32| {
        let low = inequality(&facts, GreaterOrEqual, &Datum::Int4(low));
        let high = inequality(&facts, LessOrEqual, &Datum::Int4(high));
        rows(range(&facts, low, high))
    };
    assert_eq!(between(key(), 100, 200), 101.0);
    assert_eq!(between(key(), 200, 100), 5.0);
    assert_eq!(between(half_null(), 100, 300), 101.0);
}

#[test]
fn nulls_and_truth_values() {
    assert_eq!(rows(null(&half_null(), true)), 500.0);
    assert_eq!(rows(null(&half_null(), false)), 500.0);
    assert_eq!(rows(truth(&flags(), Some(true))), 100.0);
    assert_eq!(rows(truth(&flags(), Some(false))), 900.0);
    assert_eq!(truth(&flags(), None), 0.0);
}

#[test]
fn lists() {
    let of = |facts: &Facts, values: &[i32]| -> Vec<f64> {
        let values = values.iter().map(|value| Datum::Int4(*value));
        values.map(|value| equal(facts, Some(&value))).collect()
    };
    let any = |facts: Facts, values: &[i32]| rows(list(of(&facts, values).into_iter(), false));
    assert_eq!(any(half_null(), &[2, 4, 6]), 3.0);
    assert_eq!(any(skewed(), &[0, 1]), 800.0);
    assert_eq!(any(key(), &[1, 2, 3]), 3.0);
    let each = [0, 900].map(|value| differs(&skewed(), Some(&Datum::Int4(value))));
    assert_eq!(rows(list(each.into_iter(), true)), 499.0);
    assert_eq!(list([0.9, 0.9].into_iter(), false), 0.99);
}

#[test]
fn patterns() {
    let like = |text: &str, beginning: &str, whole| rows(pattern(&words(), text, beginning, whole));
    assert_eq!(like("word 0%", "word 0", false), 500.0);
    assert_eq!(like("%9", "", false), 96.0);
    assert_eq!(like("word 005", "word 005", true), 5.0);
    // Without a histogram the pattern speaks for itself.
    let mut few = (*words().found).clone();
    few.common.clear();
    few.frequencies.clear();
    few.histogram.clear();
    let matched = pattern(&facts(few), "%abc%", "", false);
    assert!((0.03..0.05).contains(&matched), "{matched}");
}

/// `select * from t, o where t.k = o.k`, where o is
/// `select g, case when g <= 1000 then 0 when g <= 1500 then 1 else g end from generate_series(1, 4000) g`.
#[test]
fn joins() {
    let pairs = |fraction: f64| (fraction * ROWS * 4_000.0).round();
    let other_key = Facts {
        found: Arc::new(ColumnStatistics {
            type_id: TypeId::INT4,
            distinct: -1.0,
            ..ColumnStatistics::default()
        }),
        rows: 4_000.0,
        unique: false,
    };
    assert_eq!(pairs(join(&key(), &other_key)), 1_000.0);
    let other = Facts {
        found: Arc::new(ColumnStatistics {
            type_id: TypeId::INT4,
            distinct: -0.6255,
            common: ints([0, 1].into_iter()),
            frequencies: vec![0.25, 0.125],
            ..ColumnStatistics::default()
        }),
        rows: 4_000.0,
        unique: false,
    };
    assert_eq!(pairs(join(&skewed(), &other)), 650_200.0);
    assert_eq!(pairs(join(&other, &skewed())), 650_200.0);
}

#[test]
fn groups_of_rows() {
    assert_eq!(groups(&[202.0], ROWS, ROWS), 202.0);
    assert_eq!(groups(&[200.0], 99.0, ROWS), 81.0);
    assert_eq!(groups(&[500.0], ROWS, ROWS), 500.0);
    // Two columns have something to do with one another.
    assert_eq!(groups(&[202.0, 50.0], ROWS, ROWS), 202.0);
    assert_eq!(groups(&[20.0, 30.0], ROWS, ROWS), 100.0);
}
