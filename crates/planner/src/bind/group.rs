//! GROUP BY: expressions over the input become expressions over groups.

use std::rc::Rc;

use base::{Error, Result, SqlState};

use super::scope::Scope;
use super::Binder;
use crate::plan::compile;
use crate::plan::{
    Agg, AggregateCall, AggregatePlan, Expr, ExprKind, GroupingSet, Plan, Program, SortKey,
};
use functions::aggregate_by_oid;
use types::TypeId;

/// What a query groups by, and the aggregates met so far.
#[derive(Debug, Default)]
pub struct Grouping {
    /// The expressions grouped by, over the input.
    pub groups: Vec<Expr>,
    /// The output column that each of them was named as, if there are sets and one is; an output
    /// column that stands twice is grouped by twice then.
    pub owners: Vec<Option<usize>>,
    /// The aggregates, over the input.
    pub aggregates: Vec<AggregateCall>,
    /// The sets that rows are grouped by, each as places among the groups.
    pub sets: Vec<Vec<usize>>,
    /// What GROUPING is asked for, as places among the groups.
    pub questions: Vec<Vec<usize>>,
    /// The primary keys, by their constraints' oids, without which columns would have to be grouped by.
    pub keys: Vec<u32>,
}

impl Grouping {
    /// All rows as one group.
    pub fn whole() -> Grouping {
        Grouping {
            sets: vec![Vec::new()],
            ..Grouping::default()
        }
    }

    /// The group that is an expression: of several, that which the first output column is.
    fn place_of(&self, expr: &Expr) -> Option<usize> {
        let same = (0..self.groups.len()).filter(|place| self.groups[*place].same(expr));
        same.min_by_key(|place| {
            let owner = self.owners.get(*place).copied().flatten();
            owner.unwrap_or(usize::MAX)
        })
    }

    /// The group that is an output column.
    pub fn owned_by(&self, output: usize) -> Option<usize> {
        self.owners.iter().position(|owner| *owner == Some(output))
    }

    /// The bits of GROUPING in one set: the last argument's is the lowest, and 1 means that the set
    /// is without it.
    fn answers(&self, set: &[usize]) -> Vec<i32> {
        let bit = |bits: i32, group: &usize| bits << 1 | i32::from(!set.contains(group));
        let answer = |question: &Vec<usize>| question.iter().fold(0, bit);
        self.questions.iter().map(answer).collect()
    }

    /// What it computes from the rows of the input.
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        let aggregates = self.aggregates.iter_mut();
        let parts = aggregates.flat_map(AggregateCall::parts_mut);
        self.groups.iter_mut().chain(parts).collect()
    }

    /// The plan of the aggregation, grouped by what tells the groups apart: they themselves, or keys of those
    /// whose texts may be equal without being the same, of which the least is shown.
    ///
    /// # Errors
    /// 0A000 for keys in grouping sets.
    pub fn plan(&self, input: Plan, told_apart: Vec<Expr>) -> Result<Plan> {
        let is_key = |group: &Expr| group.without_key().1.is_some();
        if !told_apart.iter().any(is_key) {
            return Ok(self.plan_of(input, &told_apart, &self.aggregates));
        }
        if self.sets.len() > 1 {
            let what = "GROUPING SETS under a collation that is not deterministic";
            return Err(Error::unsupported(what));
        }
        let mut aggregates = self.aggregates.clone();
        let width = told_apart.len();
        let mut shown: Vec<usize> = (0..width).collect();
        for (place, group) in self.groups.iter().enumerate() {
            if !is_key(&told_apart[place]) {
                continue;
            }
            let least = match group.ty.array_element() {
                Some(_) => aggregate_by_oid(MIN_OF_ARRAY),
                None => aggregate_by_oid(MIN_OF_TEXT),
            };
            let least = least.ok_or_else(|| Error::internal("no least text"))?;
            shown[place] = width + aggregates.len();
            aggregates.push(AggregateCall {
                aggregate: Agg::BuiltIn(least),
                args: vec![group.clone()],
                types: vec![group.ty],
                distinct: false,
                filter: None,
                order: Vec::new(),
            });
        }
        shown.extend(width..width + self.aggregates.len());
        let answers = width + aggregates.len();
        shown.extend(answers..answers + self.questions.len());
        let columns = shown.into_iter().map(Program::column).collect();
        let plan = self.plan_of(input, &told_apart, &aggregates);
        Ok(Plan::Project(Rc::new(plan), columns))
    }

    fn plan_of(&self, input: Plan, groups: &[Expr], aggregates: &[AggregateCall]) -> Plan {
        let aggregates = aggregates
            .iter()
            .map(|call| AggregatePlan {
                aggregate: call.aggregate.clone(),
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
            groups: groups
                .iter()
                .map(|group| (compile(group), group.ty))
                .collect(),
            aggregates,
            sets: self
                .sets
                .iter()
                .map(|set| GroupingSet {
                    columns: set.clone(),
                    answers: self.answers(set),
                })
                .collect(),
        }
    }
}

/// The oids of `min(text)` and `min(anyarray)`.
const MIN_OF_TEXT: u32 = 2_145;
const MIN_OF_ARRAY: u32 = 2_051;

impl Binder<'_> {
    /// Refuses what PostgreSQL can neither sort nor hash by: of each set some keys have no order, and
    /// others no hash, or aggregates need their rows in order. The first groups are what is grouped by.
    ///
    /// # Errors
    /// 0A000.
    pub(super) fn check_groupable(&self, grouping: &Grouping, keys: usize) -> Result<()> {
        let mut aggregates = grouping.aggregates.iter();
        let ordered = aggregates.any(|call| call.distinct || !call.order.is_empty());
        let types = |set: &Vec<usize>| -> Vec<TypeId> {
            let keys = set.iter().filter(|place| **place < keys);
            keys.map(|place| grouping.groups[*place].ty).collect()
        };
        let mut sets = grouping.sets.iter();
        sets.try_for_each(|set| self.check_told_apart(&types(set), ordered, "GROUP BY"))
    }

    /// Refuses to tell rows apart by values of such types, which may only be sorted where `ordered`.
    ///
    /// # Errors
    /// 0A000.
    pub(super) fn check_told_apart(
        &self,
        types: &[TypeId],
        ordered: bool,
        clause: &str,
    ) -> Result<()> {
        let lacks = |holds: fn(TypeId) -> bool| {
            let mut types = types.iter();
            types.any(|ty| !self.holds_of_parts(*ty, holds))
        };
        // What cannot be equal at all is refused as that.
        let is_refused = !lacks(TypeId::has_equality)
            && lacks(TypeId::is_sortable)
            && (ordered || lacks(TypeId::is_hashable));
        match is_refused {
            false => Ok(()),
            true => {
                let message = format!("could not implement {clause}");
                Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(
                    "Some of the datatypes only support hashing, while others only support sorting.",
                ))
            }
        }
    }

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
        if let Some(place) = grouping.place_of(&expr) {
            expr.kind = ExprKind::Column(place);
            return Ok(expr);
        }
        match expr.kind {
            ExprKind::Aggregate(call) => {
                let known = grouping
                    .aggregates
                    .iter()
                    .position(|known| known.same(&call));
                let place = known.unwrap_or(grouping.aggregates.len());
                if known.is_none() {
                    grouping.aggregates.push(*call);
                }
                // Groups may still be added while aggregates are numbered; see `settle_places`.
                expr.kind = ExprKind::Column(AGGREGATES + place);
                return Ok(expr);
            }
            ExprKind::Grouping(args) => {
                expr.kind = ExprKind::Column(self.question(&args, grouping)?);
                return Ok(expr);
            }
            ExprKind::Column(place) => {
                if let Some((kept, key)) = self.functionally_dependent(place, grouping, scope) {
                    grouping.keys.push(key);
                    let new = grouping.groups.len();
                    grouping.groups.push(kept);
                    grouping.sets.iter_mut().for_each(|set| set.push(new));
                    expr.kind = ExprKind::Column(new);
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

    /// The place of what GROUPING gives, to be settled by [`settle_places`].
    fn question(&self, args: &[Expr], grouping: &mut Grouping) -> Result<usize> {
        let mut question = Vec::new();
        for arg in args {
            question.push(grouping.place_of(arg).ok_or_else(|| {
                self.error(
                    SqlState::GROUPING_ERROR,
                    "arguments to GROUPING must be grouping expressions of the associated query \
                     level",
                    arg.leftmost(),
                )
            })?);
        }
        let known = grouping
            .questions
            .iter()
            .position(|known| *known == question);
        let number = known.unwrap_or(grouping.questions.len());
        if known.is_none() {
            grouping.questions.push(question);
        }
        Ok(QUESTIONS + number)
    }

    /// A column of a table whose whole primary key is grouped by, in all sets, depends on the group; with
    /// the oid of the key's constraint.
    fn functionally_dependent(
        &self,
        place: usize,
        grouping: &Grouping,
        scope: &Scope<'_>,
    ) -> Option<(Expr, u32)> {
        let (item, at) = scope.table_at(place)?;
        let table = item.table.as_ref()?;
        let key = table.primary_key()?;
        let grouped = |column: usize| {
            let mut groups = grouping.groups.iter();
            let own = groups.position(
                |group| matches!(group.kind, ExprKind::Column(p) if p == item.start + column),
            );
            own.is_some_and(|own| grouping.sets.iter().all(|set| set.contains(&own)))
        };
        if !key.columns.iter().all(|column| grouped(column.column)) {
            return None;
        }
        let column = &item.columns[at];
        let mut expr = Expr::new(ExprKind::Column(place), column.ty, -1);
        expr.typmod = column.typmod;
        Some((expr, key.constraint))
    }
}

/// Where aggregates are numbered until the number of groups is settled.
const AGGREGATES: usize = 1 << 32;

/// Where what GROUPING gives is numbered until then; above what window functions number.
const QUESTIONS: usize = 1 << 34;

/// Gives aggregates and what GROUPING gives their final places, after the groups.
pub(super) fn settle_places(expr: &mut Expr, grouping: &Grouping) {
    if let ExprKind::Column(place) = &mut expr.kind {
        let groups = grouping.groups.len();
        if *place >= QUESTIONS {
            *place = *place - QUESTIONS + groups + grouping.aggregates.len();
        } else if *place >= AGGREGATES {
            *place = *place - AGGREGATES + groups;
        }
    }
    for part in expr.parts_mut() {
        settle_places(part, grouping);
    }
}
