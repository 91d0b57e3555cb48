//! Values, functions and casts compared with PostgreSQL 15.
//!
//! `tests/data/*.tsv` hold expressions with the type and the text that PostgreSQL gives them, or
//! its SQLSTATE and message; `tests/data/aggregates.tsv` holds aggregates over listed values.
//! `tests/remake.sh` makes the answers anew from a running server. `evaluate.rs` computes the
//! expressions through the registry alone, without binder or executor.

mod evaluate;

use base::error::Error;
use sql::functions::{find_coercion, resolve_aggregate, CastContext, Coercion};
use sql::types::{self, Datum, EvalContext, TypeId, NO_TYPMOD};

/// Mismatches that one run shows.
const SHOWN_MAX: usize = 60;

/// How a value is written in the files: `\N` for NULL, tabs and the like escaped.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
}

fn shown(context: &EvalContext, result: Result<(TypeId, Datum), Error>) -> String {
    let printed = result.and_then(|(kind, value)| match value {
        Datum::Null => Ok(format!("{kind}\t\\N")),
        value => {
            let text = types::output(context, kind, &value)?;
            Ok(format!("{kind}\t{}", escape(&text)))
        }
    });
    printed.unwrap_or_else(|error| format!("{}\t{}", error.state(), escape(error.message())))
}

/// Compares each line's answer, the last two columns, with ours.
fn check(file: &str, data: &str, answer: impl Fn(&EvalContext, &str) -> String) {
    let context = EvalContext::for_tests();
    let mut wrong = Vec::new();
    let mut lines = 0;
    for line in data.lines().filter(|line| !line.starts_with('#')) {
        lines += 1;
        let mut columns = line.rsplitn(3, '\t');
        let (text, kind, question) = (
            columns.next().unwrap_or(""),
            columns.next().unwrap_or(""),
            columns.next().unwrap_or(""),
        );
        let ours = answer(&context, question);
        if ours != format!("{kind}\t{text}") {
            wrong.push(format!(
                "{question}\n  PostgreSQL: {kind}\t{text}\n  Quorate:    {ours}"
            ));
        }
    }
    assert!(lines > 0, "{file} is empty");
    let shown = wrong.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>();
    assert!(
        wrong.is_empty(),
        "{} of {lines} lines of {file} differ:\n{}",
        wrong.len(),
        shown.join("\n")
    );
}

fn expression(context: &EvalContext, text: &str) -> String {
    shown(context, evaluate::evaluate(context, text))
}

macro_rules! expressions {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let file = concat!(stringify!($name), ".tsv");
            check(file, include_str!(concat!("../data/", stringify!($name), ".tsv")), expression);
        })*
    };
}

expressions! {
    basics numeric_random interval_random moments texts floats formats number_templates resolution
}

/// `name`, the type of the values, and the values between spaces (`-` for NULL).
fn aggregate(context: &EvalContext, question: &str) -> String {
    let compute = || {
        let mut columns = question.split('\t');
        let name = columns.next().unwrap_or("");
        let kind = TypeId::by_name(columns.next().unwrap_or("")).unwrap_or(TypeId::TEXT);
        let mut given = vec![kind];
        if name == "string_agg" {
            given.push(TypeId::TEXT);
        }
        let found = resolve_aggregate(name, &given)?
            .ok_or_else(|| Error::internal(format!("no aggregate {name}")))?;
        let values = columns
            .next()
            .unwrap_or("")
            .split(' ')
            .filter(|v| !v.is_empty());
        let (mut whole, mut halves) = (
            found.aggregate.start(&found.argument_types),
            vec![found.aggregate.start(&found.argument_types); 2],
        );
        for (index, value) in values.enumerate() {
            let mut datum = match value {
                "-" => Datum::Null,
                _ => types::input(context, kind, NO_TYPMOD, &value.replace('_', " "))?,
            };
            let way = find_coercion(kind, found.argument_types[0], CastContext::Implicit);
            if let (Some(Coercion::Function(function)), false) = (way, datum.is_null()) {
                datum = evaluate::call(
                    context,
                    function,
                    &[kind],
                    found.argument_types[0],
                    &[datum],
                )?;
            }
            let row = [datum, Datum::text(",")];
            whole.step(context, &row[..given.len()])?;
            halves[index % 2].step(context, &row[..given.len()])?;
        }
        let ordered = matches!(name, "string_agg" | "array_agg");
        let float = matches!(kind, TypeId::FLOAT4 | TypeId::FLOAT8);
        if !ordered && !float {
            let [first, second] = &mut halves[..] else {
                return Err(Error::internal("two halves"));
            };
            first.merge(second)?;
            let (merged, whole) = (first.finish(context)?, whole.finish(context)?);
            assert_eq!(merged, whole, "{question}: merged halves differ");
        }
        Ok((found.result, whole.finish(context)?))
    };
    shown(context, compute())
}

#[test]
fn aggregates() {
    check(
        "aggregates.tsv",
        include_str!("../data/aggregates.tsv"),
        aggregate,
    );
}

/// Every value that an expression of the files has comes back from its column and its binary form,
/// and keys are in the order of the values.
#[test]
fn values_come_back() {
    let context = EvalContext::for_tests();
    let files = [
        include_str!("../data/basics.tsv"),
        include_str!("../data/numeric_random.tsv"),
        include_str!("../data/interval_random.tsv"),
        include_str!("../data/moments.tsv"),
    ];
    let mut seen: Vec<(TypeId, Vec<Datum>)> = Vec::new();
    for line in files.iter().flat_map(|data| data.lines()) {
        let question = line.split('\t').next().unwrap_or("");
        let Ok((kind, value)) = evaluate::evaluate(&context, question) else {
            continue;
        };
        if value.is_null() || value == Datum::Void {
            continue;
        }
        let text = types::output(&context, kind, &value).unwrap();
        // Rounding may bring a timestamp just out of range.
        if text.starts_with("294277-01-01") {
            continue;
        }
        let mut column = Vec::new();
        types::encode_column(kind, NO_TYPMOD, &value, &mut column).unwrap();
        let back = types::decode_column(kind, NO_TYPMOD, &column).unwrap();
        let back_text = types::output(&context, kind, &back).unwrap();
        assert_eq!(back_text, text, "{question}");
        if kind != TypeId::RECORD {
            let mut message = Vec::new();
            types::send(&context, kind, &value, &mut message).unwrap();
            let back = types::receive(&context, kind, NO_TYPMOD, &message).unwrap();
            assert_eq!(
                types::output(&context, kind, &back).unwrap(),
                text,
                "{question}"
            );
            let back = types::input(&context, kind, NO_TYPMOD, &text).unwrap();
            assert!(types::equal(kind, &back, &value), "{question}: {text}");
        }
        match seen.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, values)) => values.push(value),
            None => seen.push((kind, vec![value])),
        }
    }
    for (kind, mut values) in seen {
        let Some(key_kind) = types::key_kind(kind) else {
            continue;
        };
        values.sort_by(|a, b| types::compare(kind, a, b));
        let keys: Vec<Vec<u8>> = values
            .iter()
            .map(|value| {
                let (mut column, mut key) = (Vec::new(), Vec::new());
                types::encode_column(kind, NO_TYPMOD, value, &mut column).unwrap();
                base::key::put_key_column(
                    &mut key,
                    key_kind,
                    base::key::ColumnOrder::ASCENDING,
                    Some(&column),
                )
                .unwrap();
                key
            })
            .collect();
        for (pair, key) in values.windows(2).zip(keys.windows(2)) {
            let order = types::compare(kind, &pair[0], &pair[1]);
            assert_eq!(key[0].cmp(&key[1]), order, "keys of {kind} {pair:?}");
            if order.is_eq() {
                let hash = |value| types::compare::hash(kind, value);
                assert_eq!(hash(&pair[0]), hash(&pair[1]), "hashes of {kind} {pair:?}");
            }
        }
    }
}
