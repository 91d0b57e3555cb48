//! The least or the greatest value of a column that an index has in order.
//!
//! ```text
//! select max(id) from t        Aggregate over the first row of t by its key, backwards
//! ```
//! # What it leaves out
//! Tables with conditions that a scan tests row by row, where the first that fits may be the last that is
//! read; several aggregates at a time.

use std::rc::Rc;

use super::group::Grouping;
use crate::paths::access::scan_in_order;
use crate::plan::{compile, Expr, ExprKind, Plan};
use types::{Datum, TypeId};

/// The rows that an aggregation needs: where it is one of `min` or `max` over all rows of a table, the
/// first by an index, if there is one in that order.
pub(super) fn cut(input: Plan, grouping: &Grouping) -> Plan {
    let Plan::Scan(mut scan) = input else {
        return input;
    };
    let Some((value, greatest)) = only_extreme(grouping) else {
        return Plan::Scan(scan);
    };
    let ExprKind::Column(place) = value.bare().kind else {
        return Plan::Scan(scan);
    };
    let order = [(value.bare().clone(), greatest, greatest)];
    let mut in_order = scan.clone();
    if !scan_in_order(&mut in_order, &order, true) || in_order.filter.is_some() {
        return Plan::Scan(scan);
    }
    scan = in_order;
    // The least comes first whenever there is one; before the greatest stand NULLs.
    let may_be_null = scan
        .table
        .columns
        .get(place)
        .is_none_or(|column| !column.not_null);
    let mut plan = Plan::Scan(scan);
    if greatest && may_be_null {
        let present = ExprKind::IsNull(Box::new(value.bare().clone()), false);
        let present = Expr::new(present, TypeId::BOOL, -1);
        plan = Plan::Filter(Rc::new(plan), compile(&present));
    }
    let one = Expr::constant(Datum::Int8(1), TypeId::INT8, -1);
    Plan::Limit(Rc::new(plan), Some(compile(&one)), None, Vec::new())
}

/// What the only aggregate of an aggregation is over, and whether it is `max`.
fn only_extreme(grouping: &Grouping) -> Option<(&Expr, bool)> {
    let [call] = grouping.aggregates.as_slice() else {
        return None;
    };
    let whole = grouping.groups.is_empty() && grouping.sets.iter().all(Vec::is_empty);
    let [value] = call.args.as_slice() else {
        return None;
    };
    if !whole || grouping.sets.len() != 1 || call.filter.is_some() {
        return None;
    }
    match call.aggregate.built_in()?.name {
        "min" => Some((value, false)),
        "max" => Some((value, true)),
        _ => None,
    }
}
