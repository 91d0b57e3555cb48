//! What bounds mean, as conditions: `pg_get_partition_constraintdef` (PostgreSQL 15 manual, section 5.11).
//!
//! ```text
//! for values from (1, 'x') to (1, 'z')    ((a IS NOT NULL) AND (b IS NOT NULL) AND (a = 1) AND (b >= 'x') AND (b < 'z'))
//! default, beside in (1)                  (NOT ((a IS NOT NULL) AND (a = 1)))
//! ```
//! A partition of a partition has the conditions of both, those of the topmost first.

use std::sync::Arc;

use base::Result;

use super::index_text::{bound, expression};
use super::Exec;
use catalog::partition::{Bound, Edge, PartitionKey, PartitionOf, Strategy};
use catalog::{KeySource, Table};
use functions::strings::quote_identifier;
use planner::bind::stored;
use types::{self, Datum, TypeId};

/// A part of a key.
struct Part {
    /// As it is written.
    text: String,
    /// As it is compared.
    compared: String,
    ty: TypeId,
    typmod: i32,
}

fn parts(cx: &Exec<'_>, table: &Arc<Table>, key: &PartitionKey) -> Result<Vec<Part>> {
    let part = |source: &KeySource| {
        let (text, ty, typmod) = match source {
            KeySource::Column(place) => {
                let column = &table.columns[*place];
                let name = quote_identifier(&column.name);
                (name, column.type_id, column.typmod)
            }
            KeySource::Expression {
                text,
                type_id,
                typmod,
                ..
            } => (expression(cx, table, text, false)?, *type_id, *typmod),
        };
        let compared = match ty {
            TypeId::VARCHAR => format!("({text})::text"),
            _ => text.clone(),
        };
        Ok(Part {
            text,
            compared,
            ty,
            typmod,
        })
    };
    key.parts.iter().map(|own| part(&own.source)).collect()
}

impl Part {
    fn value(&self, cx: &Exec<'_>, value: &Datum) -> Result<String> {
        bound(cx, |bind| {
            stored::constant(bind, value, self.ty, self.typmod)
        })
    }

    fn compare(&self, cx: &Exec<'_>, operator: &str, value: &Datum) -> Result<String> {
        let value = self.value(cx, value)?;
        Ok(format!("({} {operator} {value})", self.compared))
    }

    fn is_null(&self, is: bool) -> String {
        let not = if is { "" } else { "NOT " };
        format!("({} IS {not}NULL)", self.text)
    }
}

/// Several conditions as one.
fn joined(mut all: Vec<String>, word: &str) -> String {
    match all.len() {
        1 => all.remove(0),
        _ => format!("({})", all.join(word)),
    }
}

/// That a key is one of some values.
fn of_list(cx: &Exec<'_>, part: &Part, values: &[Datum]) -> Result<Vec<String>> {
    let known: Vec<_> = values.iter().filter(|value| !value.is_null()).collect();
    let is_one = match known.as_slice() {
        [] => None,
        [one] => Some(part.compare(cx, "=", one)?),
        _ => {
            let shown: Result<Vec<_>> = known.iter().map(|value| part.value(cx, value)).collect();
            let shown = shown?.join(", ");
            Some(format!("({} = ANY (ARRAY[{shown}]))", part.compared))
        }
    };
    let has_null = known.len() < values.len();
    Ok(match (has_null, is_one) {
        (true, None) => vec![part.is_null(true)],
        (true, Some(is_one)) => vec![joined(vec![part.is_null(true), is_one], " OR ")],
        (false, is_one) => std::iter::once(part.is_null(false)).chain(is_one).collect(),
    })
}

/// One end of a range, over the parts of the key from `from` on, as a disjunction: of each arm, all parts
/// but its last are equal to the end's.
fn of_end(
    cx: &Exec<'_>,
    parts: &[Part],
    end: &[Edge],
    from: usize,
    is_low: bool,
) -> Result<Option<String>> {
    let unbounded = if is_low { Edge::Min } else { Edge::Max };
    let mut arms = Vec::new();
    for last in from..parts.len() {
        let Edge::Value(value) = &end[last] else {
            break;
        };
        let mut arm = Vec::new();
        for (part, edge) in parts.iter().zip(end).take(last).skip(from) {
            if let Edge::Value(value) = edge {
                arm.push(part.compare(cx, "=", value)?);
            }
        }
        let next = end.get(last + 1);
        // The lower end is included, and all that an unbounded rest leaves.
        let operator = match (is_low, next) {
            (true, None) => ">=",
            (true, Some(next)) if *next == unbounded => ">=",
            (true, _) => ">",
            (false, Some(next)) if *next == unbounded => "<=",
            (false, _) => "<",
        };
        arm.push(parts[last].compare(cx, operator, value)?);
        arms.push(joined(arm, " AND "));
        if !matches!(next, Some(Edge::Value(_))) {
            break;
        }
    }
    Ok((!arms.is_empty()).then(|| joined(arms, " OR ")))
}

/// That a key lies in a range, if it is not NULL.
fn of_range(cx: &Exec<'_>, parts: &[Part], low: &[Edge], high: &[Edge]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    let mut from = 0;
    for (part, (a, b)) in parts.iter().zip(low.iter().zip(high)) {
        match (a, b) {
            (Edge::Value(value), Edge::Value(other)) if types::equal(part.ty, value, other) => {
                all.push(part.compare(cx, "=", value)?);
            }
            _ => break,
        }
        from += 1;
    }
    all.extend(of_end(cx, parts, low, from, true)?);
    all.extend(of_end(cx, parts, high, from, false)?);
    Ok(all)
}

/// What the default partition leaves to others; nothing if there are none.
fn of_default(cx: &Exec<'_>, table: &Table, parts: &[Part]) -> Result<Vec<String>> {
    let mut siblings: Vec<&PartitionOf> = cx.catalog.partitions(table).map(|own| own.1).collect();
    siblings.retain(|of| of.bound != Bound::Default);
    siblings.sort_by(|a, b| a.bound.order(&a.types, &b.bound));
    let not_null = parts.iter().map(|part| part.is_null(false));
    let (mut values, mut ranges) = (Vec::new(), Vec::new());
    for of in &siblings {
        match &of.bound {
            Bound::List(own) => values.extend(own.iter().cloned()),
            Bound::Range(low, high) => {
                let range = of_range(cx, parts, low, high)?;
                ranges.push(match range.is_empty() {
                    // As PostgreSQL has it for all values.
                    true => joined(not_null.clone().collect(), " AND "),
                    false => joined(range, " AND "),
                });
            }
            _ => {}
        }
    }
    let taken = match (values.is_empty(), ranges.is_empty()) {
        (true, true) => return Ok(Vec::new()),
        (false, _) => {
            let ty = parts[0].ty;
            values.sort_by(|a, b| match (a.is_null(), b.is_null()) {
                (false, false) => types::compare(ty, a, b),
                (a, b) => a.cmp(&b),
            });
            of_list(cx, &parts[0], &values)?
        }
        (true, false) => not_null.chain([joined(ranges, " OR ")]).collect(),
    };
    Ok(vec![format!("(NOT {})", joined(taken, " AND "))])
}

/// The condition that a table has for being a partition; none for one that has none.
pub(super) fn constraint(cx: &Exec<'_>, table: &Arc<Table>) -> Result<Option<String>> {
    let mut all = Vec::new();
    let chain = cx.catalog.with_ancestors(table);
    for pair in chain.windows(2).rev() {
        let (own, parent) = (pair[0], pair[1]);
        let Some(of) = &own.partition_of else {
            continue;
        };
        let key = parent.partitioning()?;
        let parts = parts(cx, parent, key)?;
        match &of.bound {
            Bound::Default => all.extend(of_default(cx, parent, &parts)?),
            Bound::List(values) => all.extend(of_list(cx, &parts[0], values)?),
            Bound::Range(low, high) => {
                all.extend(parts.iter().map(|part| part.is_null(false)));
                all.extend(of_range(cx, &parts, low, high)?);
            }
            Bound::Hash { modulus, remainder } => {
                debug_assert_eq!(key.strategy, Strategy::Hash);
                let names: Vec<_> = parts.iter().map(|part| part.text.as_str()).collect();
                all.push(format!(
                    "satisfies_hash_partition('{}'::oid, {modulus}, {remainder}, {})",
                    parent.oid,
                    names.join(", ")
                ));
            }
        }
    }
    Ok((!all.is_empty()).then(|| joined(all, " AND ")))
}
