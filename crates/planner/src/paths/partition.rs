//! Scans of partitioned tables: one of each partition that may have rows which are wanted.
//!
//! ```text
//! select … from m where k = 3     m by range (k): m1 [1, 9), m2 [9, 20)
//! Scan m1, k = 3
//! ```
//! A partition is left out when the plan is made if a constant in a condition says that none of its rows
//! meets it, and when the scan begins if a parameter does, or a value of a row outside.
//!
//! # Invariants
//! - Leaving out partitions changes no answer: where it is not clear, a partition is read.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use base::{Error, Result};

use super::access::OPERATORS;
use super::implies::fix_constants;
use super::Planner;
use crate::logical::{all_of, shifted};
use crate::plan::partition::{hidden_types, Leaf, Level};
use crate::plan::{compile, Expected, Expr, ExprKind, Func, Plan, Program, Scan, SetOperation};
use catalog::partition::{compare_end, Bound, Edge};
use functions::resolve_operator;
use types::{Datum, TypeId};

impl Planner<'_> {
    /// The rows of a partitioned table that meet conditions, which are over the columns from a place on,
    /// and what is expected of them.
    pub(super) fn append(
        &self,
        scan: &Scan,
        (guards, own): (Option<Vec<Expr>>, Vec<Expr>),
        conditions: Vec<Expr>,
        start: usize,
    ) -> Result<(Plan, Expected)> {
        let guards = guards.ok_or_else(|| Error::internal("a scan without guards"))?;
        let partitions = scan.partitions.as_ref();
        let partitions = partitions.ok_or_else(|| Error::internal("a scan of no partitions"))?;
        let guards = shifted(guards, start);
        let all = shifted(own.into_iter().chain(conditions).collect(), start);
        let mut parts = Vec::new();
        let mut sum = Expected::default();
        let mut read = Vec::new();
        for leaf in &partitions.leaves {
            let mut tests = guards.iter().chain(&all);
            let may_hold = |condition: &Expr| {
                let mut levels = leaf.levels.iter();
                levels.all(|(level, place)| may_meet(level, *place, condition))
            };
            if !tests.all(may_hold) || !leaf_may_hold(leaf, guards.iter().chain(&all)) {
                continue;
            }
            read.push(leaf);
        }
        for (number, leaf) in (1..).zip(&read) {
            let called = scan.alias.as_deref().unwrap_or(&scan.table.name);
            let called = match read.len() {
                1 => called.to_owned(),
                _ => format!("{called}_{number}"),
            };
            let (plan, expected) = self.leaf_plan(scan, leaf, called, (&guards, &all))?;
            let asked = guards.iter().chain(&all);
            let asked = asked.flat_map(|condition| asked_first(leaf, condition));
            let plan = filtered_once(plan, asked.collect());
            sum.rows += expected.rows;
            sum.cost += expected.cost;
            parts.push(plan);
        }
        let types = scan.table.columns.iter().map(|column| column.type_id);
        let types = types.chain(hidden_types(scan.with_key)).collect();
        let plan = match parts.len() {
            0 => {
                let never = Expr::constant(Datum::Bool(false), TypeId::BOOL, -1);
                Plan::Once(Rc::new(Plan::Values(vec![Vec::new()])), compile(&never))
            }
            1 => parts.remove(0),
            _ => Plan::SetOperation(SetOperation::Union, true, parts, types),
        };
        Ok((plan, sum))
    }

    fn leaf_plan(
        &self,
        scan: &Scan,
        leaf: &Leaf,
        called: String,
        (guards, conditions): (&[Expr], &[Expr]),
    ) -> Result<(Plan, Expected)> {
        let below = |conditions: &[Expr]| -> Result<Vec<Expr>> {
            conditions
                .iter()
                .map(|one| lowered(one, scan, leaf))
                .collect()
        };
        let (guards, conditions) = (below(guards)?, below(conditions)?);
        let own = Scan {
            table: leaf.table.clone(),
            needed: match leaf.columns {
                None => scan.needed.clone(),
                Some(_) => Rc::new(RefCell::new(vec![true; leaf.table.columns.len()])),
            },
            computed: leaf.computed.clone(),
            together: leaf.together.clone(),
            with_oid: true,
            partitions: None,
            alias: (called != leaf.table.name).then(|| called.into()),
            ..scan.clone()
        };
        let expected = self.estimate_scan(&own, &guards, &conditions);
        let mut own = self.choose_access(own, guards, conditions)?;
        own.expected = self.statistics.map(|_| Box::new(expected));
        let Some(map) = &leaf.columns else {
            return Ok((Plan::Scan(own), expected));
        };
        let width = leaf.table.columns.len();
        let hidden = 1 + usize::from(scan.with_key);
        let columns = map
            .iter()
            .zip(&scan.table.columns)
            .map(|(place, column)| match place {
                Some(place) => Expr::new(ExprKind::Column(*place), column.type_id, -1),
                None => Expr::constant(Datum::Null, column.type_id, -1),
            });
        let behind = (width..width + hidden).zip(hidden_types(scan.with_key));
        let behind = behind.map(|(place, ty)| Expr::new(ExprKind::Column(place), ty, -1));
        let columns: Vec<Program> = columns.chain(behind).map(|one| compile(&one)).collect();
        Ok((Plan::Project(Rc::new(Plan::Scan(own)), columns), expected))
    }
}

/// A condition over rows of a partitioned table as one over rows of a leaf.
fn lowered(condition: &Expr, scan: &Scan, leaf: &Leaf) -> Result<Expr> {
    fn walk(expr: &mut Expr, above: usize, below: usize, map: &[Option<usize>]) -> Result<()> {
        if let ExprKind::Column(place) = &mut expr.kind {
            let moved = match place.checked_sub(above) {
                Some(hidden) => Some(below + hidden),
                None => map[*place],
            };
            *place = moved.ok_or_else(|| Error::internal("a condition on a dropped column"))?;
        }
        let mut parts = expr.parts_mut().into_iter();
        parts.try_for_each(|part| walk(part, above, below, map))
    }
    let mut condition = condition.clone();
    if let Some(map) = &leaf.columns {
        let (above, below) = (scan.table.columns.len(), leaf.table.columns.len());
        walk(&mut condition, above, below, map)?;
    }
    Ok(condition)
}

/// What a condition says of a part of a key: the operator, with the key on its left, and the value.
fn said<'e>(key: &Expr, condition: &'e Expr) -> Option<(&'static str, &'e Datum)> {
    let ExprKind::Call(function, args, _) = &condition.kind else {
        return None;
    };
    let [left, right] = args.as_slice() else {
        return None;
    };
    let constant = |expr: &'e Expr| match &expr.bare().kind {
        ExprKind::Const(value, _) if fits(key.ty, value) => Some((expr, value)),
        _ => None,
    };
    let is_key = |expr: &Expr| expr.bare().same(key.bare());
    let (swapped, (expr, value)) = match (constant(left), constant(right)) {
        (None, Some(value)) if is_key(left) => (false, value),
        (Some(value), None) if is_key(right) => (true, value),
        _ => return None,
    };
    let (name, other) = OPERATORS.into_iter().find(|(name, _)| {
        resolve_operator(name, left.ty, right.ty)
            .is_ok_and(|found| found.operator.function.oid == function.0.oid)
    })?;
    // Another value leaves other partitions.
    fix_constants(expr);
    Some((if swapped { other } else { name }, value))
}

/// Whether a constant is a value of the type of a key, so that both compare as the type does.
fn fits(ty: TypeId, value: &Datum) -> bool {
    match value {
        Datum::Bool(_) => ty == TypeId::BOOL,
        Datum::Int2(_) => ty == TypeId::INT2,
        Datum::Int4(_) => ty == TypeId::INT4,
        Datum::Int8(_) => ty == TypeId::INT8,
        Datum::Money(_) => ty == TypeId::MONEY,
        Datum::Numeric(_) => ty == TypeId::NUMERIC,
        Datum::Text(_) => matches!(ty, TypeId::TEXT | TypeId::VARCHAR | TypeId::CITEXT),
        Datum::Date(_) => ty == TypeId::DATE,
        Datum::Timestamp(_) => ty == TypeId::TIMESTAMP,
        Datum::TimestampTz(_) => ty == TypeId::TIMESTAMPTZ,
        Datum::Uuid(_) => ty == TypeId::UUID,
        Datum::Oid(_) => ty == TypeId::OID,
        _ => false,
    }
}

/// Whether rows of a partition may meet a condition, by the first part of its key.
fn may_meet(level: &Level, place: usize, condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().all(|part| may_meet(level, place, part)),
        ExprKind::Or(parts) => parts.iter().any(|part| may_meet(level, place, part)),
        ExprKind::AnyArray(subject, list, function, types, false) => {
            let ExprKind::Array(elements, _) = &list.bare().kind else {
                return true;
            };
            elements.iter().any(|element| {
                let args = vec![(**subject).clone(), element.clone()];
                let one = ExprKind::Call(*function, args, types.clone());
                may_meet(level, place, &Expr::new(one, TypeId::BOOL, -1))
            })
        }
        ExprKind::IsNull(subject, is_null) if subject.bare().same(level.keys[0].bare()) => {
            match (&level.bounds[place], is_null) {
                (Bound::Range(..), true) => false,
                (Bound::List(values), true) => values.iter().any(Datum::is_null),
                (Bound::List(values), false) => !values.iter().all(Datum::is_null),
                _ => true,
            }
        }
        _ => match said(&level.keys[0], condition) {
            Some((operator, value)) => may_be(level, place, operator, value),
            None => true,
        },
    }
}

/// Whether a partition may have rows the first part of whose key compares so with a value.
fn may_be(level: &Level, place: usize, operator: &str, value: &Datum) -> bool {
    if value.is_null() {
        return false;
    }
    let ty = level.types[0];
    let holds = |known: &Datum| {
        let order = types::compare(ty, known, value);
        match operator {
            "=" => order == Ordering::Equal,
            "<" => order == Ordering::Less,
            "<=" => order != Ordering::Greater,
            ">" => order == Ordering::Greater,
            _ => order != Ordering::Less,
        }
    };
    let single = level.types.len() == 1;
    match &level.bounds[place] {
        Bound::List(values) => {
            let mut values = values.iter();
            values.any(|known| !known.is_null() && holds(known))
        }
        Bound::Range(low, high) => {
            let value = std::slice::from_ref(value);
            let below = compare_end(&level.types, high, value);
            let above = compare_end(&level.types, low, value);
            let reaches = match operator {
                // The upper end is not included; with more parts, what follows it may be.
                "=" | ">=" if single => below == Ordering::Greater,
                ">" if single => below == Ordering::Greater,
                "=" | ">=" => below != Ordering::Less,
                ">" => below == Ordering::Greater,
                _ => true,
            };
            let begins = match operator {
                "=" | "<=" => above != Ordering::Greater,
                "<" => above == Ordering::Less,
                _ => true,
            };
            reaches && begins
        }
        Bound::Default if operator == "=" && single => {
            level.place_of(std::slice::from_ref(value)) == Some(place)
        }
        _ => true,
    }
}

/// What a condition asks of values that are known when the scan begins, if a partition may have a row that
/// meets it: so it needs not be read for others.
///
/// ```text
/// m1 [1, 9), k = $1    $1 >= 1, $1 < 9
/// ```
fn asked_first(leaf: &Leaf, condition: &Expr) -> Vec<Expr> {
    let levels = leaf.levels.iter();
    let asked = levels.flat_map(|(level, place)| {
        let (operator, value) = said_later(&level.keys[0], condition)?;
        let single = level.types.len() == 1;
        let against = |operator: &str, own: &Datum| compared(value, operator, level.types[0], own);
        Some(match (&level.bounds[*place], operator) {
            (Bound::Range(low, high), _) => {
                let above = match (low.first(), operator) {
                    (Some(Edge::Value(own)), "=" | "<=") => against(">=", own),
                    (Some(Edge::Value(own)), "<") if single => against(">", own),
                    (Some(Edge::Value(own)), "<") => against(">=", own),
                    _ => None,
                };
                let below = match (high.first(), operator) {
                    (Some(Edge::Value(own)), "=" | ">=" | ">") if single => against("<", own),
                    (Some(Edge::Value(own)), "=" | ">=" | ">") => against("<=", own),
                    _ => None,
                };
                above.into_iter().chain(below).collect()
            }
            (Bound::List(values), "=") => {
                let known = values.iter().filter(|value| !value.is_null());
                let any: Option<Vec<Expr>> = known.map(|own| against("=", own)).collect();
                let any = any.map(|mut any| match any.len() {
                    0 => Expr::constant(Datum::Bool(false), TypeId::BOOL, -1),
                    1 => any.remove(0),
                    _ => Expr::new(ExprKind::Or(any), TypeId::BOOL, -1),
                });
                any.into_iter().collect()
            }
            _ => Vec::new(),
        })
    });
    asked.flatten().collect()
}

/// As [`said`], of what is computed from parameters and rows outside.
fn said_later<'e>(key: &Expr, condition: &'e Expr) -> Option<(&'static str, &'e Expr)> {
    let ExprKind::Call(function, args, _) = &condition.kind else {
        return None;
    };
    let [left, right] = args.as_slice() else {
        return None;
    };
    let is_known = |expr: &Expr| {
        !matches!(expr.bare().kind, ExprKind::Const(..))
            && !expr.any(&|part| match &part.kind {
                ExprKind::Param(_) | ExprKind::Outer(..) | ExprKind::Const(..) => false,
                ExprKind::Call(..) => part.is_volatile_call(),
                ExprKind::Coerce(..) => false,
                _ => true,
            })
    };
    let is_key = |expr: &Expr| expr.bare().same(key.bare());
    let (swapped, value) = match (is_key(left), is_key(right)) {
        (true, _) if is_known(right) => (false, right),
        (_, true) if is_known(left) => (true, left),
        _ => return None,
    };
    let (name, other) = OPERATORS.into_iter().find(|(name, _)| {
        resolve_operator(name, left.ty, right.ty)
            .is_ok_and(|found| found.operator.function.oid == function.0.oid)
    })?;
    Some((if swapped { other } else { name }, value))
}

/// A comparison of a value with one of a bound; none if there is no operator for just these types.
fn compared(value: &Expr, operator: &str, ty: TypeId, own: &Datum) -> Option<Expr> {
    let found = resolve_operator(operator, value.ty, ty).ok()?;
    let types: Rc<[TypeId]> = Rc::from(found.argument_types.as_slice());
    if *types != [value.ty, ty] {
        return None;
    }
    let args = vec![value.clone(), Expr::constant(own.clone(), ty, -1)];
    let call = ExprKind::Call(Func(found.operator.function), args, types);
    Some(Expr::new(call, TypeId::BOOL, -1))
}

/// The plan, whose rows are not asked for unless these conditions hold.
fn filtered_once(plan: Plan, conditions: Vec<Expr>) -> Plan {
    match all_of(conditions) {
        None => plan,
        Some(condition) => Plan::Once(Rc::new(plan), compile(&condition)),
    }
}

/// Whether a leaf may have rows that meet conditions, by all parts of a key that must equal constants.
fn leaf_may_hold<'e>(leaf: &Leaf, conditions: impl Iterator<Item = &'e Expr> + Clone) -> bool {
    leaf.levels.iter().all(|(level, place)| {
        let equal = |key: &Expr| {
            conditions
                .clone()
                .find_map(|condition| match said(key, condition) {
                    Some(("=", value)) if !value.is_null() => Some(value.clone()),
                    _ => None,
                })
        };
        let values: Option<Vec<Datum>> = level.keys.iter().map(equal).collect();
        values.is_none_or(|values| level.place_of(&values) == Some(*place))
    })
}
