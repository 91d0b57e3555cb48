//! Correlated subqueries bound a second time, without the equalities by which they look at the row
//! around them ([`crate::plan::keyed`]).
//!
//! ```text
//! select max(x) from t where t.k = o.k and t.y > 0
//!     keys     inner t.k, outer o.k
//!     bound    select max(x), t.k from t where t.y > 0 group by t.k
//! ```
//! The text is bound anew, as what is bound is planned already where it has groups. What stands inside
//! of it is not bound that often: only the outermost of what is bound anew gets keys.

use std::rc::Rc;

use pg_query::protobuf::{SelectStmt, SetOperation as SetOp, SubLink, SubLinkType};

use super::expr::Place;
use super::group::Grouping;
use super::keys::{Keys, Parts};
use super::pull_up::can_move_source;
use super::scope::Scope;
use super::select::Query;
use super::{boxed, Binder, OutputColumn};
use crate::logical::looks_outside;
use crate::paths::estimate::{BUILD, DESCENT};
use crate::plan::keyed::Keyed;
use crate::plan::{compile, narrow_below, Expr, ExprKind, Plan, SubKind};
use syntax::parser::NodeEnum;
use types::TypeId;

/// A query that costs so many times what the subquery does is not kept ready.
const RUNS_MAX: f64 = 1e6;

/// Whether a query has only what a query by keys may have.
fn may_have_keys(select: &SelectStmt) -> bool {
    let plain = matches!(
        SetOp::try_from(select.op),
        Ok(SetOp::SetopNone | SetOp::Undefined)
    );
    let limited = select.limit_count.is_some() || select.limit_offset.is_some();
    plain
        && select.values_lists.is_empty()
        && select.with_clause.is_none()
        && select.where_clause.is_some()
        && select.distinct_clause.is_empty()
        && select.sort_clause.is_empty()
        && select.window_clause.is_empty()
        && select.locking_clause.is_empty()
        && !limited
}

impl Binder<'_> {
    /// Adds the keys to the columns of the query at work, and to what it groups by; unless it looks
    /// around it otherwise.
    pub(super) fn add_keys(&mut self, mut keys: Keys, parts: Parts<'_>) {
        let Parts {
            source,
            conditions,
            having,
            grouping,
            outputs,
            columns,
        } = parts;
        let grouped = grouping.is_some() || having.is_some() || outputs.aggregates();
        let groups = grouping.iter().flat_map(|grouping| &grouping.groups);
        let exprs = conditions.iter().chain(having).chain(groups);
        let mut exprs = exprs.chain(&outputs.exprs);
        let free = !exprs.any(looks_outside)
            && source.is_some_and(can_move_source)
            && !outputs.exprs.iter().any(Expr::has_sets);
        if keys.inner.is_empty() || !free || outputs.windows() {
            return;
        }
        if grouped {
            let grouping = grouping.get_or_insert_with(Grouping::whole);
            let [set] = grouping.sets.as_mut_slice() else {
                return;
            };
            keys.is_never_empty = set.is_empty();
            if keys.is_never_empty && having.is_some() {
                return;
            }
            for inner in &keys.inner {
                set.push(grouping.groups.len());
                grouping.groups.push(inner.clone());
            }
        }
        for inner in &keys.inner {
            outputs.exprs.push(inner.clone());
            columns.push(OutputColumn {
                name: String::new(),
                ty: inner.ty,
                typmod: inner.typmod,
                domain: inner.domain,
                collation: inner.collation.nowhere(),
                origin: (0, 0),
            });
        }
        self.keys = Some(keys);
    }

    /// Has a subquery's rows found by keys, where it is correlated by equalities alone.
    pub(super) fn with_keys(
        &mut self,
        link: &SubLink,
        scope: &Scope<'_>,
        place: Place,
        mut expr: Expr,
    ) -> Expr {
        let ExprKind::Sub(query, _, seen) = &mut expr.kind else {
            return expr;
        };
        if !query.correlated || self.within_keys || self.names_only || !query.plan.is_settled() {
            return expr;
        }
        let Ok(NodeEnum::SelectStmt(select)) = boxed(&link.subselect) else {
            return expr;
        };
        if !may_have_keys(select) {
            return expr;
        }
        let Some((bound, keys)) = self.bound_by_keys(link, select, scope, place) else {
            return expr;
        };
        let width = bound.columns.len() - keys.inner.len();
        let fits = |place: usize, ty: TypeId| bound.columns[place].ty == ty;
        let as_wanted = match &query.kind {
            SubKind::Scalar | SubKind::Exists => true,
            SubKind::Any(..) => width == 1 && query.types.get(1).is_some_and(|ty| fits(0, *ty)),
            SubKind::AnyRow(columns) => {
                let mut columns = columns.iter().enumerate();
                columns.all(|(place, (_, types))| types.get(1).is_some_and(|ty| fits(place, *ty)))
            }
            _ => false,
        };
        let sees = |key: &Expr| {
            !key.any(&|part| match part.kind {
                ExprKind::Outer(_, place) => seen.iter().all(|known| known.0 != place),
                _ => false,
            })
        };
        if !as_wanted || !keys.outer.iter().all(sees) {
            return expr;
        }
        let Ok(mut plan) = self.plan_of(bound.body) else {
            return expr;
        };
        let Some(after) = self
            .runs_worth(&query.plan, &plan)
            .filter(|_| plan.is_settled())
        else {
            return expr;
        };
        narrow_below(&mut plan);
        let outer = keys
            .outer
            .iter()
            .map(|key| compile(&over_seen(key.clone())));
        let keyed = Keyed {
            plan: Rc::new(plan),
            width,
            keys: outer.zip(keys.types()).collect(),
            is_never_empty: keys.is_never_empty,
            after,
        };
        if let Some(query) = Rc::get_mut(query) {
            query.keyed = Some(keyed);
        }
        expr
    }

    /// The subquery without the equalities, and these.
    fn bound_by_keys(
        &mut self,
        link: &SubLink,
        select: &SelectStmt,
        scope: &Scope<'_>,
        place: Place,
    ) -> Option<(Query, Keys)> {
        let before: Vec<usize> = scope.levels().map(Scope::seen_count).collect();
        let around = scope.inner_stands.replace(place);
        self.exists = link.sub_link_type == SubLinkType::ExistsSublink as i32;
        self.keying = true;
        self.within_keys = true;
        let bound = self.subquery(select, scope);
        self.within_keys = false;
        self.keying = false;
        self.exists = false;
        scope.inner_stands.set(around);
        // All of it was seen when it was bound first.
        for (level, count) in scope.levels().zip(before) {
            level.forget_seen(count);
        }
        let keys = self.keys.take();
        bound.ok().map(|bound| bound.0).zip(keys)
    }

    /// After how many runs of the subquery its rows by keys have cost less; none if never.
    fn runs_worth(&self, single: &Plan, keyed: &Plan) -> Option<usize> {
        let planner = self.planner();
        let (single, keyed) = (planner.estimate_plan(single), planner.estimate_plan(keyed));
        let all = keyed.cost + keyed.rows * BUILD;
        let runs = all / (single.cost + DESCENT);
        (runs < RUNS_MAX).then_some((runs as usize).max(1))
    }
}

/// What names columns of the row around as one over that row.
fn over_seen(mut expr: Expr) -> Expr {
    fn walk(expr: &mut Expr) {
        if let ExprKind::Outer(1, place) = expr.kind {
            expr.kind = ExprKind::Column(place);
        }
        expr.parts_mut().into_iter().for_each(walk);
    }
    walk(&mut expr);
    expr
}
