//! VALUES, and UNION, INTERSECT and EXCEPT.
//!
//! ```text
//! select 1 union all values ('2'), ('3')     columns of the types that both sides have in common
//! ```

use base::{coro, Error, Result, SqlState};
use pg_query::protobuf::{SelectStmt, SetOperation as SetOp};

use super::domain::one_domain;
use super::expr::Place;
use super::outputs::output_location;
use super::project_set::projection;
use super::scope::Scope;
use super::select::{are_settled, is_with_ties, sort_order, Body, Query, Simple};
use super::{boxed, inner, strings, Binder, OutputColumn};
use crate::plan::compile;
use crate::plan::{Collated, Expr, ExprKind, Plan, SetOperation, SortKey};
use std::rc::Rc;
use syntax::parser::NodeEnum;
use types::TypeId;

/// What binding a query counts for, in the units of [`coro::work`].
const SELECT_WORK: usize = 4_000;

/// The values of the only row, if VALUES has one and nothing else, by its columns.
fn only_row(select: &SelectStmt, columns: &[Vec<Expr>]) -> Option<Vec<Expr>> {
    let limited = select.limit_count.is_some() || select.limit_offset.is_some();
    if limited || !select.sort_clause.is_empty() || !select.locking_clause.is_empty() {
        return None;
    }
    let values = columns.iter().map(|column| match column.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    });
    let values: Vec<Expr> = values.collect::<Option<_>>()?;
    are_settled(values.iter()).then_some(values)
}

impl Binder<'_> {
    pub(super) fn values(
        &mut self,
        select: &SelectStmt,
        parent: Option<&Scope<'_>>,
    ) -> Result<Query> {
        let as_item = std::mem::take(&mut self.as_item);
        let scope = Scope::inside(parent);
        let mut rows = Vec::new();
        for node in &select.values_lists {
            let NodeEnum::List(list) = inner(node)? else {
                continue;
            };
            rows.push(self.row_fields(&list.items, &scope, Place::plain("VALUES"))?);
        }
        let width = rows.first().map_or(0, Vec::len);
        if let Some(row) = rows.iter().find(|row| row.len() != width) {
            let location = row.first().map_or(-1, |expr| expr.location.0);
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                "VALUES lists must all be the same length",
                location,
            ));
        }
        let mut columns = Vec::new();
        let mut unified: Vec<Vec<Expr>> = Vec::new();
        for place in 0..width {
            let column: Vec<_> = rows.iter().map(|row| row[place].clone()).collect();
            let (column, ty) = match column.as_slice() {
                [only] => {
                    let only = self.settle(only.clone())?;
                    let ty = only.ty;
                    (vec![only], ty)
                }
                _ => self.unify(column, "VALUES")?,
            };
            let first = column.first();
            let is_record = ty == TypeId::RECORD;
            let same = is_record
                || column
                    .iter()
                    .all(|expr| Some(expr.typmod) == first.map(|first| first.typmod));
            let typmod = first.map_or(-1, |first| self.record_column(first));
            columns.push(OutputColumn {
                name: format!("column{}", place + 1),
                ty,
                typmod: if same { typmod } else { -1 },
                domain: one_domain(&column),
                collation: Collated::of_all(&column).nowhere(),
                origin: (0, 0),
            });
            unified.push(column);
        }
        let body = match as_item.then(|| only_row(select, &unified)).flatten() {
            Some(exprs) => Body::Simple(Box::new(Simple::of_one_row(exprs))),
            None => {
                let row = |row: usize| unified.iter().map(move |column| compile(&column[row]));
                let rows = (0..rows.len()).map(|place| row(place).collect());
                let plan = Plan::Values(rows.collect());
                Body::Plan(Box::new(self.finish_output(select, plan, &columns)?))
            }
        };
        Ok(Query {
            body,
            literals: vec![None; columns.len()],
            locations: vec![-1; columns.len()],
            columns,
            escapes: scope.escapes.get(),
        })
    }

    /// ORDER BY and LIMIT where only output columns can be named.
    fn finish_output(
        &mut self,
        select: &SelectStmt,
        mut plan: Plan,
        columns: &[OutputColumn],
    ) -> Result<Plan> {
        let exprs: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(place, column)| Expr {
                collation: column.collation,
                ..Expr::new(ExprKind::Column(place), column.ty, -1)
            })
            .collect();
        let mut keys = Vec::new();
        for node in &select.sort_clause {
            let NodeEnum::SortBy(sort) = inner(node)? else {
                continue;
            };
            let node = boxed(&sort.node)?;
            let Some(place) = self.output_column(node, &exprs, columns, "ORDER BY", true)? else {
                if let NodeEnum::ColumnRef(column) = node {
                    let names = strings(&column.fields);
                    return Err(self.error(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column \"{}\" does not exist", names.join(".")),
                        column.location,
                    ));
                }
                return Err(self
                    .error(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                        sort.location,
                    )
                    .with_detail(
                        "Only result column names can be used, not expressions or functions.",
                    )
                    .with_hint(
                        "Add the expression/function to every SELECT, or move the UNION into a \
                         FROM clause.",
                    ));
            };
            self.check_sortable(exprs[place].ty, output_location(node))?;
            self.refuse_using(sort, exprs[place].ty)?;
            let (descending, nulls_first) = sort_order(sort);
            let value = self.ordered_by(exprs[place].clone())?;
            keys.push(SortKey {
                value: compile(&value),
                ty: value.ty,
                descending,
                nulls_first,
            });
        }
        let ties = keys.iter().map(|key| (key.value.clone(), key.ty));
        let ties = ties.filter(|_| is_with_ties(select)).collect();
        if !keys.is_empty() {
            plan = Plan::Sort(Rc::new(plan), keys);
        }
        self.limit(select, plan, ties, &Scope::default())
    }

    pub(super) fn set_operation(
        &mut self,
        select: &SelectStmt,
        operation: SetOp,
        parent: Option<&Scope<'_>>,
    ) -> Result<Query> {
        fn side(side: &Option<Box<SelectStmt>>) -> Result<&SelectStmt> {
            let missing = || Error::internal("a set operation without a side");
            side.as_deref().ok_or_else(missing)
        }
        // `a UNION b UNION c …` leans to the left, as deep as it is long: from the inside out.
        let mut levels = vec![(select, operation)];
        let mut left = side(&select.larg)?;
        while left.with_clause.is_none() {
            let operation = match SetOp::try_from(left.op) {
                Ok(SetOp::SetopNone | SetOp::Undefined) | Err(_) => break,
                Ok(operation) => operation,
            };
            levels.push((left, operation));
            left = side(&left.larg)?;
        }
        let mut query = self.select(left, parent)?;
        for (level, operation) in levels.into_iter().rev() {
            coro::work(SELECT_WORK)?;
            let right = self.select(side(&level.rarg)?, parent)?;
            query = self.combine(level, operation, query, right)?;
        }
        Ok(query)
    }

    /// One set operation of two queries.
    fn combine(
        &mut self,
        select: &SelectStmt,
        operation: SetOp,
        left: Query,
        right: Query,
    ) -> Result<Query> {
        let (operation, name) = match operation {
            SetOp::SetopUnion => (SetOperation::Union, "UNION"),
            SetOp::SetopIntersect => (SetOperation::Intersect, "INTERSECT"),
            _ => (SetOperation::Except, "EXCEPT"),
        };
        if left.columns.len() != right.columns.len() {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                format!("each {name} query must have the same number of columns"),
                right.locations.iter().copied().min().unwrap_or(-1),
            ));
        }
        let mut columns = left.columns.clone();
        let mut types = Vec::new();
        for (place, column) in columns.iter_mut().enumerate() {
            let other = &right.columns[place];
            let of = |query: &Query, column: &OutputColumn| match query.literals[place] {
                Some(_) => TypeId::UNKNOWN,
                None => column.ty,
            };
            let pair = [of(&left, column), of(&right, other)];
            let ty = functions::select_common_type(&pair, name)
                .map_err(|error| self.place(error, right.locations[place]))?;
            let is_record = column.ty == TypeId::RECORD && other.ty == TypeId::RECORD;
            if !is_record && (column.typmod != other.typmod || column.ty != other.ty) {
                column.typmod = -1;
            }
            if operation != SetOperation::Union || !select.all {
                self.check_equality(ty, left.locations[place])?;
                let own = column.collation.with(other.collation);
                self.refuse_two(own.at_conflict(right.locations[place]))?;
                self.refuse_equal_texts(own, name, left.locations[place])?;
            }
            column.collation = column.collation.with(other.collation);
            if column.domain != other.domain {
                column.domain = TypeId::NONE;
            }
            column.ty = ty;
            column.origin = (0, 0);
            types.push(ty);
        }
        if (operation != SetOperation::Union || !select.all) && !self.names_only {
            self.check_told_apart(&types, false, name)?;
        }
        let left_plan = self.as_types(left.body, &left.columns, &left.literals, &types)?;
        let right_plan = self.as_types(right.body, &right.columns, &right.literals, &types)?;
        let plan = match left_plan {
            // Duplicates go at the end anyway, or nowhere.
            Plan::SetOperation(SetOperation::Union, all, mut parts, of)
                if operation == SetOperation::Union && (all || !select.all) && of == types =>
            {
                parts.push(right_plan);
                Plan::SetOperation(operation, select.all, parts, types)
            }
            left => Plan::SetOperation(operation, select.all, vec![left, right_plan], types),
        };
        let plan = self.finish_output(select, plan, &columns)?;
        Ok(Query {
            body: Body::Plan(Box::new(plan)),
            literals: vec![None; columns.len()],
            locations: left.locations,
            columns,
            escapes: left.escapes || right.escapes,
        })
    }

    /// The plan of the rows as columns of these types.
    pub(super) fn as_types(
        &mut self,
        body: Body,
        columns: &[OutputColumn],
        literals: &[Option<Expr>],
        types: &[TypeId],
    ) -> Result<Plan> {
        let plan = self.plan_of(body)?;
        if columns
            .iter()
            .zip(types)
            .all(|(column, ty)| column.ty == *ty)
        {
            return Ok(plan);
        }
        let mut exprs = Vec::new();
        for (place, (column, ty)) in columns.iter().zip(types).enumerate() {
            let expr = match &literals[place] {
                Some(literal) => literal.clone(),
                None => Expr::new(ExprKind::Column(place), column.ty, -1),
            };
            exprs.push(self.coerce_argument(expr, *ty)?);
        }
        Ok(projection(plan, &exprs))
    }

    /// The only column of a plan in another type.
    pub(super) fn coerce_column(&mut self, plan: Plan, from: TypeId, to: TypeId) -> Result<Plan> {
        if from == to {
            return Ok(plan);
        }
        let column = Expr::new(ExprKind::Column(0), from, -1);
        let column = self.coerce_argument(column, to)?;
        Ok(projection(plan, &[column]))
    }
}
