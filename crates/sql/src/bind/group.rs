//! GROUP BY: expressions over the input become expressions over groups.

use std::rc::Rc;

use base::{Result, SqlState};

use super::scope::Scope;
use super::Binder;
use crate::exec::program::compile;
use crate::plan::{AggregateCall, AggregatePlan, Expr, ExprKind, Plan, SortKey};

/// What a query groups by, and the aggregates met so far.
#[derive(Debug, Default)]
pub struct Grouping {
    /// The expressions grouped by, over the input.
    pub groups: Vec<Expr>,
    /// The aggregates, over the input.
    pub aggregates: Vec<AggregateCall>,
}

impl Grouping {
    /// The plan of the aggregation.
    pub fn plan(&self, input: Plan, plain: bool) -> Plan {
        let aggregates = self
            .aggregates
            .iter()
            .map(|call| AggregatePlan {
                aggregate: call.aggregate.0,
                args: call.args.iter().map(compile).collect(),
                types: call.types.clone(),
                distinct: call.distinct,
                filter: call.filter.as_ref().map(compile),
                order: call
                    .order
                    .iter()
                    .map(|(value, descending, nulls_first)| SortKey {
                        ty: value.ty,
                        value: compile(value),
                        descending: *descending,
                        nulls_first: *nulls_first,
                    })
                    .collect(),
            })
            .collect();
        Plan::Aggregate {
            input: Rc::new(input),
            groups: self
                .groups
                .iter()
                .map(|group| (compile(group), group.ty))
                .collect(),
            aggregates,
            plain,
        }
    }
}

impl Binder<'_> {
    /// The expression over groups.
    ///
    /// # Errors
    /// 42803 for a column that is neither grouped nor inside an aggregate.
    pub(super) fn regroup(
        &self,
        mut expr: Expr,
        grouping: &mut Grouping,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        if let Some(place) = grouping.groups.iter().position(|group| *group == expr) {
            expr.kind = ExprKind::Column(place);
            return Ok(expr);
        }
        match expr.kind {
            ExprKind::Aggregate(call) => {
                let known = grouping.aggregates.iter().position(|known| *known == *call);
                let place = known.unwrap_or(grouping.aggregates.len());
                if known.is_none() {
                    grouping.aggregates.push(*call);
                }
                // Groups may still be added while aggregates are numbered; see `settle_places`.
                expr.kind = ExprKind::Column(AGGREGATES + place);
                return Ok(expr);
            }
            ExprKind::Column(place) => {
                if let Some(kept) = self.functionally_dependent(place, grouping, scope) {
                    grouping.groups.push(kept);
                    expr.kind = ExprKind::Column(grouping.groups.len() - 1);
                    return Ok(expr);
                }
                return Err(self.error(
                    SqlState::GROUPING_ERROR,
                    format!(
                        "column \"{}\" must appear in the GROUP BY clause or be used in an \
                         aggregate function",
                        scope.name_of(place)
                    ),
                    expr.location.0,
                ));
            }
            ExprKind::Sub(_, _, ref mut seen) => {
                for (_, column) in seen {
                    let placeholder = Expr::new(ExprKind::CaseInput, column.ty, -1);
                    let taken = std::mem::replace(column, placeholder);
                    let (place, location) = (taken.kind.clone(), taken.location.0);
                    *column = self.regroup(taken, grouping, scope).map_err(|error| {
                        let ExprKind::Column(place) = place else {
                            return error;
                        };
                        self.error(
                            SqlState::GROUPING_ERROR,
                            format!(
                                "subquery uses ungrouped column \"{}\" from outer query",
                                scope.name_of(place)
                            ),
                            location,
                        )
                    })?;
                }
                if let ExprKind::Sub(_, Some(test), _) = &mut expr.kind {
                    let placeholder = Expr::new(ExprKind::CaseInput, test.ty, -1);
                    let taken = std::mem::replace(&mut **test, placeholder);
                    **test = self.regroup(taken, grouping, scope)?;
                }
                return Ok(expr);
            }
            _ => {}
        }
        for part in expr.parts_mut() {
            let placeholder = Expr::new(ExprKind::CaseInput, part.ty, -1);
            let taken = std::mem::replace(part, placeholder);
            *part = self.regroup(taken, grouping, scope)?;
        }
        Ok(expr)
    }

    /// A column of a table whose whole primary key is grouped by depends on the group.
    fn functionally_dependent(
        &self,
        place: usize,
        grouping: &Grouping,
        scope: &Scope<'_>,
    ) -> Option<Expr> {
        let (item, at) = scope.table_at(place)?;
        let table = item.table.as_ref()?;
        let key = table.primary_key()?;
        let grouped = |column: usize| {
            grouping
                .groups
                .iter()
                .any(|group| matches!(group.kind, ExprKind::Column(p) if p == item.start + column))
        };
        if !key.columns.iter().all(|column| grouped(column.column)) {
            return None;
        }
        let column = &item.columns[at];
        let mut expr = Expr::new(ExprKind::Column(place), column.ty, -1);
        expr.typmod = column.typmod;
        Some(expr)
    }
}

/// Where aggregates are numbered until the number of groups is settled.
const AGGREGATES: usize = 1 << 32;

/// Gives aggregates their final places, after the groups.
pub(super) fn settle_places(expr: &mut Expr, groups: usize) {
    if let ExprKind::Column(place) = &mut expr.kind {
        if *place >= AGGREGATES {
            *place = *place - AGGREGATES + groups;
        }
    }
    for part in expr.parts_mut() {
        settle_places(part, groups);
    }
}
