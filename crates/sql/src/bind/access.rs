//! Which keys of a table its conditions leave.

use base::Result;

use super::from::all_of;
use super::Binder;
use crate::catalog::{Index, Table};
use crate::exec::program::compile;
use crate::functions::resolve_operator;
use crate::plan::{Expr, ExprKind, Scan};
use crate::types::TypeId;

/// A condition of the form `column operator value`.
struct Bound<'e> {
    /// Which condition it is.
    number: usize,
    column: usize,
    operator: &'static str,
    value: &'e Expr,
}

const OPERATORS: [(&str, &str); 5] = [
    ("=", "="),
    ("<", ">"),
    ("<=", ">="),
    (">", "<"),
    (">=", "<="),
];

/// How well conditions lead to the rows of a table; larger is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// Every row is read.
    All,
    /// A range of an index.
    Range,
    /// The rows that agree in so many leading columns of an index.
    Prefix(usize),
    /// At most one row.
    Row,
}

impl Binder<'_> {
    /// How well these conditions lead to the table's rows.
    pub(super) fn reach_by(&self, scan: &Scan, conditions: &[Expr]) -> Reach {
        let bounds: Vec<_> = conditions
            .iter()
            .enumerate()
            .filter_map(|(number, condition)| bound(&scan.table, number, condition))
            .collect();
        let of = |index: &Index| {
            let used = usable(index, &bounds);
            let equal = used.iter().filter(|bound| bound.operator == "=").count();
            match used.len() {
                0 => Reach::All,
                _ if index.unique && equal == index.columns.len() => Reach::Row,
                _ if equal == 0 => Reach::Range,
                _ => Reach::Prefix(equal),
            }
        };
        let reaches = scan.table.indexes.iter().map(of);
        reaches.max().unwrap_or(Reach::All)
    }

    /// How well a scan's access leads to its rows.
    pub(super) fn reach_of(&self, scan: &Scan) -> Reach {
        let Some(index) = scan.by_index() else {
            return Reach::All;
        };
        let access = &scan.access;
        match access.equal.len() {
            0 if access.low.is_none() && access.high.is_none() => Reach::All,
            0 => Reach::Range,
            equal if index.unique && equal == index.columns.len() => Reach::Row,
            equal => Reach::Prefix(equal),
        }
    }

    /// The scan with the best way to the rows that meet the conditions.
    pub(super) fn choose_access(&mut self, mut scan: Scan, conditions: Vec<Expr>) -> Result<Scan> {
        let bounds: Vec<_> = conditions
            .iter()
            .enumerate()
            .filter_map(|(number, condition)| bound(&scan.table, number, condition))
            .collect();
        let best = scan
            .table
            .indexes
            .iter()
            .enumerate()
            .map(|(place, index)| (place, usable(index, &bounds)))
            .filter(|(_, used)| !used.is_empty())
            .max_by_key(|(place, used)| {
                let index = &scan.table.indexes[*place];
                let equal = used.iter().filter(|bound| bound.operator == "=").count();
                let whole = index.unique && equal == index.columns.len();
                (whole, equal, used.len(), index.primary)
            });
        let mut used_up = Vec::new();
        if let Some((place, used)) = best {
            let primary = scan.table.indexes[place].primary;
            scan.index = (!primary).then_some(place);
            for bound in used {
                used_up.push(bound.number);
                let value = compile(bound.value);
                match bound.operator {
                    "=" => scan.access.equal.push(value),
                    ">" | ">=" => scan.access.low = Some((value, bound.operator == ">=")),
                    _ => scan.access.high = Some((value, bound.operator == "<=")),
                }
            }
        }
        let rest = conditions
            .into_iter()
            .enumerate()
            .filter(|(number, _)| !used_up.contains(number))
            .map(|(_, condition)| condition)
            .collect();
        scan.filter = all_of(rest).as_ref().map(compile);
        Ok(scan)
    }
}

/// Lets a scan give its rows in an order (value, descending, NULLs first), if an index can.
///
/// The index that the conditions have chosen stays. Where they have chosen none, another one is
/// taken for the order's sake only if `few` rows are wanted: each of its entries costs a look at the
/// row.
pub(super) fn scan_in_order(scan: &mut Scan, order: &[(Expr, bool, bool)], few: bool) -> bool {
    let bounded =
        !scan.access.equal.is_empty() || scan.access.low.is_some() || scan.access.high.is_some();
    let own = scan.by_index();
    if let Some(backward) = own.and_then(|index| order_of(scan, index, order)) {
        scan.backward = backward;
        return true;
    }
    if bounded || !few {
        return false;
    }
    let indexes = scan.table.indexes.iter().enumerate();
    let found = indexes
        .filter(|(_, index)| !index.primary)
        .find_map(|(place, index)| order_of(scan, index, order).map(|backward| (place, backward)));
    if let Some((place, backward)) = found {
        scan.index = Some(place);
        scan.backward = backward;
    }
    found.is_some()
}

/// Whether an index has its rows in an order; true: read backwards.
fn order_of(scan: &Scan, index: &Index, order: &[(Expr, bool, bool)]) -> Option<bool> {
    let fixed = scan.access.equal.len();
    let mut columns = index.columns.iter().enumerate();
    let mut direction = None;
    for (value, descending, nulls_first) in order {
        let place = column_of(value)?;
        // A column that equals one value takes no part in the order.
        let mut equal = index.columns[..fixed].iter();
        if equal.any(|column| column.column == place) {
            continue;
        }
        let column = loop {
            let (at, column) = columns.next()?;
            if column.column == place {
                break column;
            }
            if at >= fixed {
                return None;
            }
        };
        let backward = column.descending != *descending;
        let described = scan.table.columns.get(place)?;
        // NULLs stand last in an index, and first where it is read or kept the other way.
        if !described.not_null && *nulls_first != *descending {
            return None;
        }
        if *direction.get_or_insert(backward) != backward {
            return None;
        }
    }
    direction.or(Some(false))
}

/// The bounds on leading columns of an index, in their order.
fn usable<'b, 'e>(index: &Index, bounds: &'b [Bound<'e>]) -> Vec<&'b Bound<'e>> {
    let mut used = Vec::new();
    for column in &index.columns {
        let own: Vec<_> = bounds
            .iter()
            .filter(|bound| bound.column == column.column)
            .collect();
        if let Some(equal) = own.iter().find(|bound| bound.operator == "=") {
            used.push(*equal);
            continue;
        }
        used.extend(own.iter().find(|bound| bound.operator.starts_with('>')));
        used.extend(own.iter().find(|bound| bound.operator.starts_with('<')));
        break;
    }
    used
}

fn bound<'e>(table: &Table, number: usize, condition: &'e Expr) -> Option<Bound<'e>> {
    let ExprKind::Call(function, args, _) = &condition.kind else {
        return None;
    };
    let [left, right] = args.as_slice() else {
        return None;
    };
    let (column, value, swapped) = match (column_of(left), column_of(right)) {
        (Some(column), None) => (column, right, false),
        (None, Some(column)) => (column, left, true),
        _ => return None,
    };
    let own = &table.columns.get(column)?;
    if !is_fixed(value) || !comparable(own.type_id, value.ty) {
        return None;
    }
    let (name, swapped_name) = OPERATORS.into_iter().find(|(name, _)| {
        resolve_operator(name, left.ty, right.ty)
            .is_ok_and(|found| found.operator.function.oid == function.0.oid)
    })?;
    Some(Bound {
        number,
        column,
        operator: if swapped { swapped_name } else { name },
        value,
    })
}

fn column_of(expr: &Expr) -> Option<usize> {
    match expr.bare().kind {
        ExprKind::Column(place) => Some(place),
        _ => None,
    }
}

/// Whether its value is the same for every row of the scan.
fn is_fixed(expr: &Expr) -> bool {
    use crate::functions::Volatility;
    !expr.any(&|part| match &part.kind {
        ExprKind::Column(_) => true,
        ExprKind::Call(function, ..) => function.0.volatility == Volatility::Volatile,
        _ => false,
    })
}

/// Whether values of the second type can be bounds on a key of the first.
fn comparable(column: TypeId, value: TypeId) -> bool {
    let integer = |ty| matches!(ty, TypeId::INT2 | TypeId::INT4 | TypeId::INT8);
    let text = |ty| matches!(ty, TypeId::TEXT | TypeId::VARCHAR);
    column == value || (integer(column) && integer(value)) || (text(column) && text(value))
}
