//! Semi-joins with a table of which no row has more than one pair: inner joins.
//!
//! ```text
//! select … from partsupp where ps_partkey in (select p_partkey from part where p_name like 'forest%')
//!
//! Join Inner     p_partkey = ps_partkey     p_partkey is the key of part: no row comes twice
//! ├─ Scan partsupp
//! └─ Scan part
//! ```
//! A semi-join comes after what its condition names; an inner one may come at any time and be found from
//! both sides, here from the few parts.
//!
//! # Invariants
//! - Both sides of an equality with a column of the key are of the column's type: of another type several
//!   values may equal one.
//! - What the table's columns equal does not look at the table.

use crate::logical::{columns_of, Source, SourceKind};
use crate::paths::estimate::sides;
use crate::plan::{Expr, ExprKind, JoinKind, Scan};

/// The joins that give the same rows.
pub(super) fn with_single_pairs(source: Source) -> Source {
    let Source { kind, start, width } = source;
    let kind = match kind {
        SourceKind::Join {
            kind,
            left,
            right,
            on,
            lateral,
        } => SourceKind::Join {
            kind: match kind {
                JoinKind::Semi if !lateral && has_single_pairs(&right, &on) => JoinKind::Inner,
                kind => kind,
            },
            left: Box::new(with_single_pairs(*left)),
            right: Box::new(with_single_pairs(*right)),
            on,
            lateral,
        },
        kind => kind,
    };
    Source { kind, start, width }
}

/// Whether at most one of a source's rows meets conditions together with any other row.
fn has_single_pairs(source: &Source, on: &[Expr]) -> bool {
    let SourceKind::Scan { scan, .. } = &source.kind else {
        return false;
    };
    if scan.partitions.is_some() {
        return false;
    }
    let fixed: Vec<usize> = on
        .iter()
        .filter_map(|condition| fixed_column(condition, source, scan))
        .collect();
    scan.table.indexes.iter().any(|index| {
        let keys = &mut index.columns.iter().map(|key| key.column);
        let is_key = index.unique && index.computed.is_none() && !index.columns.is_empty();
        is_key && keys.all(|key| fixed.contains(&key))
    })
}

/// The column of a table of which a condition says what it is for another row.
fn fixed_column(condition: &Expr, source: &Source, scan: &Scan) -> Option<usize> {
    let (a, b) = sides(condition)?;
    let own = |expr: &Expr| match expr.kind {
        ExprKind::Column(place) => {
            let column = place.checked_sub(source.start)?;
            let known = scan.table.columns.get(column)?;
            (known.type_id == expr.ty).then_some(column)
        }
        _ => None,
    };
    let is_other = |expr: &Expr| {
        let places = columns_of(expr);
        !places.iter().any(|place| source.covers(*place)) && !expr.any(&Expr::is_volatile_call)
    };
    let found = match (own(a), own(b)) {
        (Some(column), None) if is_other(b) => column,
        (None, Some(column)) if is_other(a) => column,
        _ => return None,
    };
    (a.ty == b.ty).then_some(found)
}
