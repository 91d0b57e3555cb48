use types::{Datum, TypeId};

use super::*;

fn found(values: impl IntoIterator<Item = Datum>, ty: TypeId, of: f64) -> ColumnStatistics {
    let mut taken = Values::new(ty);
    let mut rows = 0;
    for value in values {
        taken.take(value);
        rows += 1;
    }
    let sampled = Sampled {
        rows,
        of: if of == 0.0 { rows as f64 } else { of },
        target: 100,
    };
    taken.finish(sampled).expect("no interrupt").expect("rows")
}

fn numbers(values: impl IntoIterator<Item = i32>) -> ColumnStatistics {
    found(values.into_iter().map(Datum::Int4), TypeId::INT4, 0.0)
}

fn ints(values: &[Datum]) -> Vec<i32> {
    let int = |value: &Datum| match value {
        Datum::Int4(value) => *value,
        other => panic!("{other:?}"),
    };
    values.iter().map(int).collect()
}

/// `insert into t select g from generate_series(1, 1000) g`.
#[test]
fn a_key_has_bounds_and_no_common_values() {
    let found = numbers(1..=1_000);
    assert_eq!(found.distinct, -1.0);
    assert!(found.common.is_empty());
    assert_eq!(found.correlation, Some(1.0));
    let bounds = ints(&found.histogram);
    assert_eq!(bounds.len(), 101);
    assert_eq!(&bounds[..4], [1, 10, 20, 30]);
    assert_eq!(&bounds[98..], [980, 990, 1_000]);
}

/// `select g % 3`: every value more than once, all of them kept.
#[test]
fn few_values_are_all_common() {
    let found = numbers((0..10).map(|value| value % 3));
    assert_eq!(found.distinct, -0.3);
    assert_eq!(ints(&found.common), [0, 1, 2]);
    assert_eq!(found.frequencies, [0.4, 0.3, 0.3]);
    assert!(found.histogram.is_empty());
    let many = numbers((0..1_000).map(|value| value % 3));
    assert_eq!(many.distinct, 3.0);
}

#[test]
fn the_histogram_is_over_what_is_not_common() {
    // a a a b c c d e f
    let found = numbers([1, 1, 1, 2, 3, 3, 4, 5, 6]);
    assert_eq!(ints(&found.common), [1, 3]);
    assert_eq!(ints(&found.histogram), [2, 4, 5, 6]);
    assert_eq!(found.distinct, -(6.0 / 9.0_f32));
}

#[test]
fn nulls_and_wide_values() {
    let nulls = found(vec![Datum::Null; 4], TypeId::TEXT, 0.0);
    assert_eq!(
        (nulls.null_fraction, nulls.width, nulls.distinct),
        (1.0, 0, 0.0)
    );
    let wide = vec![Datum::text("x".repeat(2_000)), Datum::Null];
    let wide = found(wide, TypeId::TEXT, 0.0);
    assert_eq!(
        (wide.null_fraction, wide.width, wide.distinct),
        (0.5, 2_004, -0.5)
    );
    assert!(wide.histogram.is_empty() && wide.correlation.is_none());
}

#[test]
fn what_has_no_order_has_a_width() {
    let json = vec![Datum::text("{}"), Datum::text("{}")];
    let json = found(json, TypeId::JSON, 0.0);
    assert_eq!((json.width, json.distinct), (3, 0.0));
    assert!(json.common.is_empty());
}

/// A sample of 300 of 100,000 rows, of which 100 have one value and the others one each: 0.33 of the
/// rows is too many for chance, and `n d / (n - f1 + f1 n / N)` is 60,300 / 100.6.
#[test]
fn a_sample_of_a_large_table() {
    let values = (0..300).map(|number| if number < 100 { 0 } else { number });
    let found = found(values.map(Datum::Int4), TypeId::INT4, 100_000.0);
    assert_eq!(ints(&found.common), [0]);
    assert_eq!(found.distinct, 599.0);
    assert_eq!(found.histogram.len(), 101);
}

/// Pairs by chance are no common values.
#[test]
fn chance_makes_no_common_values() {
    let values = (0..300).map(|number| number / 2);
    let found = found(values.map(Datum::Int4), TypeId::INT4, 100_000.0);
    assert!(
        found.common.is_empty() || found.distinct == 150.0,
        "{found:?}"
    );
}
