//! SELECT.

use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Node, SelectStmt, SetOperation as SetOp, SortBy, SortByDir, SortByNulls};

use super::column_name::column_name;
use super::current_of::with_key;
use super::expr::Place;
use super::extreme;
use super::group::{settle_places, Grouping};
use super::keys::{Keys, Parts};
use super::locking::check_lockable;
use super::naming::parts_of;
use super::outputs::{output_location, Order, Outputs};
use super::postpone::Postponed;
use super::project_set::{self, projection};
use super::scope::{Scope, ScopeTable};
use super::window_plan::windows;
use super::{boxed, inner, strings, Binder, OutputColumn};
use crate::logical::{all_of, conjuncts, Source};
use crate::paths::access::scan_in_order;
use crate::paths::filtered;
use crate::paths::reduce::reduced;
use crate::plan::compile;
use crate::plan::{Expr, ExprKind, Plan, SortKey};
use catalog::access::Guarded;
use syntax::parser::NodeEnum;
use types::{Datum, TypeId};

/// A bound query.
pub struct Query {
    /// Its rows.
    pub(super) body: Body,
    /// Its columns.
    pub columns: Vec<OutputColumn>,
    /// Whether it looks at rows of enclosing queries.
    pub escapes: bool,
    /// The columns that are literals without a type, which the query around may give them.
    pub literals: Vec<Option<Expr>>,
    /// Where each column stands.
    pub locations: Vec<i32>,
}

/// The rows of a bound query.
pub(super) enum Body {
    /// As planned.
    Plan(Box<Plan>),
    /// Expressions over the rows of FROM that meet WHERE, and nothing else: not planned yet, so that
    /// the query around may take it apart ([`super::pull_up`], [`super::beside`]).
    Simple(Box<Simple>),
}

/// `SELECT … FROM … WHERE …` without anything else.
pub(super) struct Simple {
    /// FROM.
    pub(super) source: Source,
    /// WHERE.
    pub(super) conditions: Vec<Expr>,
    /// Its columns.
    pub(super) exprs: Vec<Expr>,
    /// How many places its rows and what is joined to them take.
    pub(super) span: usize,
}

impl Simple {
    /// Whether its columns and conditions are the same however often and wherever they are computed.
    pub(super) fn is_settled(&self) -> bool {
        are_settled(self.conditions.iter().chain(&self.exprs))
    }
}

/// Whether expressions are the same however often and wherever they are computed.
pub(super) fn are_settled<'e>(mut exprs: impl Iterator<Item = &'e Expr>) -> bool {
    !exprs.any(|expr| expr.any(&Expr::is_volatile_call))
}

/// Queries may be nested this deep, UNION included; further is 54001. A statement runs them on its
/// own, smaller stack.
pub const QUERY_DEPTH_MAX: usize = 300;

/// Whether FETCH FIRST gives the rows too that are equal to the last one.
pub(super) fn is_with_ties(select: &SelectStmt) -> bool {
    select.limit_option == pg_query::protobuf::LimitOption::WithTies as i32
}

impl Binder<'_> {
    /// Binds a query inside the scope of another.
    pub(super) fn subquery(
        &mut self,
        select: &SelectStmt,
        scope: &Scope<'_>,
    ) -> Result<(Query, bool)> {
        let joining = std::mem::take(&mut self.joining);
        self.sublinks += 1;
        let query = self.running_once(joining, |binder| binder.select(select, Some(scope)));
        self.sublinks -= 1;
        let query = query?;
        let correlated = query.escapes;
        Ok((query, correlated))
    }

    /// Binds something that runs as often as what is around it, or more often.
    pub(super) fn running_once<T>(
        &mut self,
        as_around: bool,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let around = self.runs_once;
        self.runs_once = around && as_around;
        let bound = bind(self);
        self.runs_once = around;
        bound
    }

    /// Binds a query.
    pub(super) fn select(
        &mut self,
        select: &SelectStmt,
        parent: Option<&Scope<'_>>,
    ) -> Result<Query> {
        if self.query_depth >= QUERY_DEPTH_MAX {
            return Err(Error::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                "stack depth limit exceeded",
            ));
        }
        let exists = std::mem::take(&mut self.exists);
        let keying = std::mem::take(&mut self.keying);
        let for_insert = std::mem::take(&mut self.for_insert);
        let for_cursor = std::mem::take(&mut self.for_cursor);
        let as_item = std::mem::take(&mut self.as_item);
        self.query_depth += 1;
        let bound = self.deeper(|binder| {
            let begun = binder.subqueries;
            let before =
                binder.with_clause(select.with_clause.as_ref(), || parts_of(select), parent)?;
            let anew = std::mem::take(&mut binder.with_escapes);
            check_lockable(select)?;
            let query = match SetOp::try_from(select.op) {
                Ok(SetOp::SetopNone) | Ok(SetOp::Undefined) | Err(_) => {
                    if select.values_lists.is_empty() {
                        binder.exists = exists;
                        binder.keying = keying;
                        binder.for_insert = for_insert;
                        binder.for_cursor = for_cursor;
                        binder.as_item = as_item;
                        binder.simple_select(select, parent)
                    } else {
                        binder.as_item = as_item;
                        binder.values(select, parent)
                    }
                }
                Ok(operation) => binder.set_operation(select, operation, parent),
            };
            binder.forget_ctes(before);
            let mut query = query?;
            if anew {
                let inside = begun + 1..binder.subqueries + 1;
                let plan = binder.plan_of(query.body)?;
                query.body = Body::Plan(Box::new(Plan::Anew(inside, Rc::new(plan))));
                query.escapes = true;
            }
            Ok(query)
        });
        self.query_depth -= 1;
        let mut bound = bound?;
        if self.query_depth == 0 {
            // Whoever is shown rows knows nothing of their columns.
            let columns = bound.columns.iter_mut();
            for column in columns.filter(|column| column.ty == TypeId::RECORD) {
                column.typmod = types::NO_TYPMOD;
            }
        }
        Ok(bound)
    }

    /// Leaves out the targets of EXISTS, which nobody looks at, and what their calls require, unless
    /// they have a say in how many rows there are.
    fn leave_out_targets(
        &mut self,
        required: usize,
        select: &SelectStmt,
        targets: &mut [(Expr, OutputColumn)],
    ) {
        let makes_rows = |part: &Expr| {
            part.is_set() || matches!(part.kind, ExprKind::Aggregate(_) | ExprKind::Window(_))
        };
        let counts = select.having_clause.is_some()
            || !select.group_clause.is_empty()
            || !select.distinct_clause.is_empty()
            || targets.iter().any(|target| target.0.any(&makes_rows));
        if counts {
            return;
        }
        let added = self.requires.split_off(required);
        let kept = added.into_iter();
        self.requires
            .extend(kept.filter(|required| required.kind != Guarded::Function));
        for (expr, column) in targets {
            *expr = Expr::constant(Datum::Null, column.ty, expr.location.0);
        }
    }

    fn simple_select(&mut self, select: &SelectStmt, parent: Option<&Scope<'_>>) -> Result<Query> {
        let exists = std::mem::take(&mut self.exists);
        let keying = std::mem::take(&mut self.keying);
        let as_item = std::mem::take(&mut self.as_item);
        // What is sorted or told apart has a type.
        let for_insert = std::mem::take(&mut self.for_insert)
            && select.sort_clause.is_empty()
            && select.distinct_clause.is_empty()
            && select.group_clause.is_empty();
        let for_cursor = std::mem::take(&mut self.for_cursor);
        if select.into_clause.is_some() {
            return Err(Error::unsupported("SELECT INTO"));
        }
        let mut scope = Scope::inside(parent);
        let locking = !select.locking_clause.is_empty();
        let mut next = 0;
        let locked = self.lock_by(select);
        let around = std::mem::take(&mut self.lifted);
        let source = self.bind_from(&select.from_clause, &mut scope, locking, &mut next);
        self.locked = locked;
        let lifted = std::mem::replace(&mut self.lifted, around);
        let mut source = source?;
        let keyed = match &mut source {
            Some(source) if for_cursor && !locking => with_key(source, &scope, &mut next),
            _ => None,
        };
        scope.beyond.set(next);
        let (source, mut conditions) = match (source, locking) {
            // What is locked is tested again, so that its conditions stay whole.
            (Some(source), false) => self.where_joined(&select.where_clause, &scope, source)?,
            (source, _) => {
                let condition = self.where_clause(&select.where_clause, &scope)?;
                let own = conjuncts(condition);
                (source, lifted.into_iter().chain(own).collect())
            }
        };
        let keys = keying.then(|| Keys::of(&mut conditions));
        self.window_clause(&select.window_clause, &mut scope)?;
        let required = self.requires.len();
        let mut targets = self.targets(&select.target_list, &scope)?;
        if exists {
            self.leave_out_targets(required, select, &mut targets);
        }
        let mut columns: Vec<_> = targets.iter().map(|target| target.1.clone()).collect();
        let mut exprs: Vec<_> = targets.into_iter().map(|target| target.0).collect();
        let order = self.order_by(&select.sort_clause, &scope, &mut exprs, &columns)?;
        let mut grouping = self.grouping(select, &scope, &mut exprs, &columns)?;
        let having = match &select.having_clause {
            None => None,
            Some(node) => {
                let having = self.expr(inner(node)?, &scope, Place::grouped("HAVING"))?;
                Some(self.condition(having, "HAVING")?)
            }
        };
        let locations: Vec<_> = exprs.iter().map(Expr::leftmost).collect();
        let is_open_parameter = |expr: &Expr| {
            for_insert && expr.is_untyped() && matches!(expr.kind, ExprKind::Param(_))
        };
        let literal = |expr: &Expr| {
            let open = expr.is_untyped() && matches!(expr.kind, ExprKind::Const(..));
            (open || is_open_parameter(expr)).then(|| expr.clone())
        };
        let literals: Vec<_> = exprs.iter().map(literal).collect();
        for (expr, column) in exprs.iter_mut().zip(&mut columns) {
            let taken = std::mem::replace(expr, Expr::constant(Datum::Null, TypeId::TEXT, -1));
            // INSERT has taken it as it is.
            if !is_open_parameter(&taken) {
                *expr = self.settle(taken)?;
            }
            column.ty = expr.ty;
            column.typmod = match self.query_depth {
                1 => expr.typmod,
                _ => self.record_column(expr),
            };
        }
        let distinct_on = self.distinct_on(select, &scope, &exprs, &columns)?;
        let mut outputs = Outputs {
            exprs,
            order,
            distinct_on,
            hidden: 0,
        };
        if let Some(keys) = keys {
            let parts = Parts {
                source: source.as_ref(),
                conditions: &conditions,
                having: having.as_ref(),
                grouping: &mut grouping,
                outputs: &mut outputs,
                columns: &mut columns,
            };
            self.add_keys(keys, parts);
        }
        let mut rechecks = Vec::new();
        let items = scope.tables.iter().filter(|_| locking);
        for item in items.flat_map(ScopeTable::in_row) {
            let own = source
                .iter()
                .flat_map(|source| source.conditions_of(item.start));
            let all = own.chain(conditions.iter().cloned()).collect();
            rechecks.push((item.start, all_of(all)));
        }
        let mut nullable = Vec::new();
        let source = match (source, locking) {
            (Some(source), true) => {
                let source = reduced(source, &conditions);
                source.add_nullable(false, &mut nullable);
                Some(source)
            }
            (source, _) => source,
        };
        let grouped = grouping.is_some() || having.is_some() || outputs.aggregates();
        let windowed = outputs.windows();
        if let Some((table, place)) = keyed.filter(|_| !grouped && !windowed) {
            let sets = outputs.all().any(Expr::has_sets);
            if select.distinct_clause.is_empty() && !sets {
                outputs.hidden = self.add_cursor_row(table, (place, None), &mut outputs.exprs);
            }
        }
        let simple = !(grouped || windowed || locking) && is_plain(select, &outputs);
        let one_row = simple && as_item && are_settled(conditions.iter().chain(&outputs.exprs));
        let source = source.or_else(|| one_row.then(|| Source::one_row(0)));
        let body = match source {
            Some(source) if simple => Body::Simple(Box::new(Simple {
                source,
                conditions,
                exprs: outputs.exprs,
                span: scope.beyond.get(),
            })),
            source => {
                let mut plan = match source {
                    None => filtered(Plan::Values(vec![Vec::new()]), conditions),
                    Some(source) => self.planner().plan(source, conditions)?,
                };
                if locking {
                    let sets = outputs.all().any(Expr::has_sets);
                    self.check_locking(select, (grouped, windowed, sets))?;
                    self.check_not_nullable(select, &nullable, &scope)?;
                    let (exprs, order) = (outputs.exprs, outputs.order);
                    self.for_cursor = for_cursor;
                    return self
                        .finish_locking(select, plan, exprs, order, columns, rechecks, &scope);
                }
                let mut groups = Vec::new();
                if grouped {
                    let grouping = grouping.unwrap_or_else(Grouping::whole);
                    (plan, groups) = self.group(plan, grouping, &mut outputs, having, &scope)?;
                }
                if windowed {
                    let distinct = !select.distinct_clause.is_empty();
                    plan = windows(plan, &mut outputs, &groups, &scope.windows, distinct);
                }
                Body::Plan(Box::new(
                    self.project(select, plan, outputs, &columns, &scope)?,
                ))
            }
        };
        Ok(Query {
            body,
            columns,
            escapes: scope.escapes.get(),
            literals,
            locations,
        })
    }

    /// The plan of a query's rows.
    pub(super) fn plan_of(&mut self, body: Body) -> Result<Plan> {
        match body {
            Body::Plan(plan) => Ok(*plan),
            Body::Simple(simple) => {
                let plan = self.planner().plan(simple.source, simple.conditions)?;
                Ok(projection(plan, &simple.exprs))
            }
        }
    }

    pub(super) fn where_clause(
        &mut self,
        node: &Option<Box<Node>>,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        match node {
            None => Ok(None),
            Some(node) => {
                let condition = self.expr(inner(node)?, scope, Place::plain("WHERE"))?;
                self.condition(condition, "WHERE").map(Some)
            }
        }
    }

    /// The target list: expressions and what they are called.
    pub(super) fn targets(
        &mut self,
        nodes: &[Node],
        scope: &Scope<'_>,
    ) -> Result<Vec<(Expr, OutputColumn)>> {
        let mut out = Vec::new();
        for node in nodes {
            let NodeEnum::ResTarget(target) = inner(node)? else {
                continue;
            };
            let value = boxed(&target.val)?;
            if !target.indirection.is_empty() {
                out.push(self.assigned_variable(target, scope)?);
                continue;
            }
            if let Some(fields) = self.fields_of(value, scope) {
                for name in &fields.names {
                    let names = [fields.record.as_str(), name];
                    let (expr, origin) = self.column(&names, scope, fields.location)?;
                    let column = OutputColumn {
                        name: name.clone(),
                        ty: expr.ty,
                        typmod: expr.typmod,
                        domain: expr.domain,
                        collation: expr.collation.nowhere(),
                        origin,
                    };
                    out.push((expr, column));
                }
                continue;
            }
            if let NodeEnum::ColumnRef(column) = value {
                let last = column.fields.last().and_then(|field| field.node.as_ref());
                if matches!(last, Some(NodeEnum::AStar(_))) {
                    let names = strings(&column.fields);
                    out.extend(self.star(&names, scope, column.location)?);
                    continue;
                }
            }
            if let Some(columns) = self.spread_star(value, scope, Place::TARGETS)? {
                out.extend(columns);
                continue;
            }
            let (expr, origin) = match value {
                NodeEnum::ColumnRef(column)
                    if strings(&column.fields).len() == column.fields.len() =>
                {
                    self.target_column_or_row(&strings(&column.fields), scope, column.location)?
                }
                _ => (self.expr(value, scope, Place::TARGETS)?, (0, 0)),
            };
            let name = match target.name.as_str() {
                "" => column_name(value),
                name => name.to_owned(),
            };
            let column = OutputColumn {
                name,
                ty: expr.ty,
                typmod: expr.typmod,
                domain: expr.domain,
                collation: expr.collation.nowhere(),
                origin,
            };
            out.push((expr, column));
        }
        Ok(out)
    }

    /// ORDER BY: an output column by name or number, or an expression over the input.
    fn order_by(
        &mut self,
        nodes: &[Node],
        scope: &Scope<'_>,
        exprs: &mut [Expr],
        columns: &[OutputColumn],
    ) -> Result<Vec<Order>> {
        let mut order = Vec::new();
        for node in nodes {
            let NodeEnum::SortBy(sort) = inner(node)? else {
                continue;
            };
            let node = boxed(&sort.node)?;
            let output = self.output_column(node, exprs, columns, "ORDER BY", true)?;
            let value = match output {
                Some(place) => exprs[place].clone(),
                None => self.expr(node, scope, Place::output("ORDER BY"))?,
            };
            let value = self.settle(value)?;
            let location = output.map_or(value.leftmost(), |_| output_location(node));
            self.check_sortable(value.ty, location)?;
            self.refuse_using(sort, value.ty)?;
            let value = match value.collation.is_conflict() {
                true => {
                    // As PostgreSQL, it is the output column's that is said to have two collations.
                    let known = exprs.iter().find(|known| known.same(&value));
                    let collation = known.map_or(value.collation, |known| known.collation);
                    self.ordered_by(Expr { collation, ..value })?
                }
                false => self.ordered_by(value)?,
            };
            let (descending, nulls_first) = sort_order(sort);
            order.push((value, descending, nulls_first));
        }
        Ok(order)
    }

    /// 0A000 for an operator of USING by which no class of its own sorts as it does by default. Those of
    /// texts' bytes do, as all texts are sorted by them.
    pub(super) fn refuse_using(&self, sort: &SortBy, ty: TypeId) -> Result<()> {
        if sort.sortby_dir != SortByDir::SortbyUsing as i32 {
            return Ok(());
        }
        let invalid = |name: &str| {
            let message = format!("operator {name} is not a valid ordering operator");
            let error = self.error(SqlState::WRONG_OBJECT_TYPE, message, sort.location);
            error.with_hint(
                "Ordering operators must be \"<\" or \">\" members of btree operator families.",
            )
        };
        let catalog = self.cx.catalog;
        match strings(&sort.use_op)[..] {
            [name] if catalog.finds_own_operator(self.cx.search_path, name, (ty, ty)) => {
                Err(invalid(name))
            }
            ["<" | ">"] | ["pg_catalog", "<" | ">"] => Ok(()),
            ["~<~" | "~>~"] | ["pg_catalog", "~<~" | "~>~"] if ty.is_text_like() => Ok(()),
            [.., name @ ("=" | "<>" | "<=" | ">=" | "~<=~" | "~>=~")] => Err(invalid(name)),
            _ => Err(self.unsupported("ORDER BY … USING such an operator", sort.location)),
        }
    }

    /// The output column that a name or a number in ORDER BY, GROUP BY or DISTINCT ON means.
    pub(super) fn output_column(
        &self,
        node: &NodeEnum,
        exprs: &[Expr],
        columns: &[OutputColumn],
        clause: &str,
        by_name: bool,
    ) -> Result<Option<usize>> {
        use pg_query::protobuf::a_const::Val;
        match node {
            NodeEnum::ColumnRef(column) if by_name => {
                let [name] = strings(&column.fields)[..] else {
                    return Ok(None);
                };
                let mut found: Option<usize> = None;
                for (place, output) in columns.iter().enumerate() {
                    if output.name != name || column.fields.len() != 1 {
                        continue;
                    }
                    if found.is_some_and(|other| !exprs[other].same(&exprs[place])) {
                        return Err(self.error(
                            SqlState::AMBIGUOUS_COLUMN,
                            format!("{clause} \"{name}\" is ambiguous"),
                            column.location,
                        ));
                    }
                    found = found.or(Some(place));
                }
                Ok(found)
            }
            NodeEnum::AConst(constant) => {
                let number = match &constant.val {
                    Some(Val::Ival(number)) => number.ival,
                    None if !constant.isnull => 0,
                    _ => {
                        return Err(self.error(
                            SqlState::SYNTAX_ERROR,
                            format!("non-integer constant in {clause}"),
                            constant.location,
                        ))
                    }
                };
                let place = usize::try_from(number)
                    .ok()
                    .and_then(|number| number.checked_sub(1));
                match place.filter(|place| *place < columns.len()) {
                    Some(place) => Ok(Some(place)),
                    None => Err(self.error(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        format!("{clause} position {number} is not in select list"),
                        constant.location,
                    )),
                }
            }
            _ => Ok(None),
        }
    }

    /// The grouping, and what it groups by as columns of its rows.
    fn group(
        &mut self,
        input: Plan,
        mut grouping: Grouping,
        outputs: &mut Outputs,
        having: Option<Expr>,
        scope: &Scope<'_>,
    ) -> Result<(Plan, Vec<Expr>)> {
        let keys = grouping.groups.len();
        for (place, expr) in outputs.all_mut().enumerate() {
            if let Some(own) = grouping.owned_by(place) {
                expr.kind = ExprKind::Column(own);
                continue;
            }
            let taken = std::mem::replace(expr, Expr::constant(Datum::Null, TypeId::TEXT, -1));
            *expr = self.regroup(taken, &mut grouping, scope)?;
        }
        let mut having = match having {
            Some(having) => Some(self.regroup(having, &mut grouping, scope)?),
            None => None,
        };
        if let Some(recorded) = &mut self.recorded {
            recorded.constraints.append(&mut grouping.keys);
        }
        let all = outputs.all_mut();
        all.chain(&mut having)
            .for_each(|expr| settle_places(expr, &grouping));
        if !self.names_only {
            self.check_groupable(&grouping, keys)?;
        }
        let as_column = |(place, group): (usize, &Expr)| Expr {
            kind: ExprKind::Column(place),
            ..group.clone()
        };
        let columns = grouping.groups.iter().enumerate().map(as_column).collect();
        let input = match grouping.groups.is_empty() && grouping.aggregates.is_empty() {
            // Nobody looks at any row, so there is one for each set whatever the rows are.
            true => Plan::Values(Vec::new()),
            false => project_set::below(input, &mut grouping.exprs_mut()),
        };
        let input = match self.methods.by_index() {
            true => extreme::cut(input, &grouping),
            false => input,
        };
        let told = grouping.groups.iter().cloned();
        let told = told.map(|group| self.told_apart(group));
        let told = told.collect::<Result<_>>()?;
        let plan = grouping.plan(input, told)?;
        let plan = match having {
            None => plan,
            Some(having) => Plan::Filter(Rc::new(plan), compile(&having)),
        };
        Ok((plan, columns))
    }

    /// Projects, removes duplicates, sorts, limits.
    fn project(
        &mut self,
        select: &SelectStmt,
        mut input: Plan,
        outputs: Outputs,
        columns: &[OutputColumn],
        scope: &Scope<'_>,
    ) -> Result<Plan> {
        let Outputs {
            mut exprs,
            mut order,
            distinct_on: on,
            hidden,
        } = outputs;
        let width = columns.len() + hidden;
        let distinct = !select.distinct_clause.is_empty();
        let with_ties = is_with_ties(select);
        if !distinct && !with_ties && in_order(&mut input, &order, self.few_wanted(select)) {
            order.clear();
        }
        // What is sorted by stands in the projected row, behind the output if need be.
        let mut keys = Vec::new();
        let mut sort_places = Vec::new();
        for (value, descending, nulls_first) in order {
            let (shown, collation) = value.without_key();
            let place = exprs.iter().position(|expr| expr.same(shown));
            let place = match place {
                Some(place) => place,
                None if distinct && on.is_empty() => {
                    return Err(self.error(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                        shown.location.0,
                    ))
                }
                None => {
                    exprs.push(shown.clone());
                    exprs.len() - 1
                }
            };
            sort_places.push(place);
            let column = Expr::new(ExprKind::Column(place), shown.ty, -1);
            keys.push(SortKey {
                value: compile(&match collation {
                    Some(used) => column.key(used),
                    None => column,
                }),
                ty: value.ty,
                descending,
                nulls_first,
            });
        }
        let mut distinct_on = Vec::new();
        let mut on_locations = Vec::new();
        let mut sorted: Vec<_> = sort_places.clone();
        let plain = on.is_empty();
        for (expr, location) in on {
            let place = exprs.iter().position(|known| known.same(&expr));
            let place = place.unwrap_or(exprs.len());
            self.check_equality(expr.ty, location)?;
            distinct_on.push(place);
            on_locations.push(location);
            if place == exprs.len() {
                exprs.push(expr);
            }
        }
        // The keys sorted by first must be those that are told apart.
        sorted.truncate(distinct_on.len());
        let first = |place: &usize| distinct_on.contains(place);
        if !distinct_on.is_empty() && !sorted.iter().all(first) {
            let missing = distinct_on.iter().position(|on| !sorted.contains(on));
            return Err(self.error(
                SqlState::INVALID_COLUMN_REFERENCE,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                on_locations[missing.unwrap_or(0)],
            ));
        }
        if distinct && plain && !self.names_only {
            let types: Vec<_> = columns.iter().map(|column| column.ty).collect();
            self.check_told_apart(&types, false, "DISTINCT")?;
        }
        // Rows are told apart by these.
        let told = match distinct && plain {
            true => (0..width).collect(),
            false => distinct_on,
        };
        let told = self.places_told_apart(&mut exprs, told)?;
        let full = exprs.len();
        let types: Vec<_> = exprs.iter().map(|expr| expr.ty).collect();
        let told: Vec<_> = told
            .into_iter()
            .map(|place| (place, types[place]))
            .collect();
        let is_limited = select.limit_count.is_some();
        let waiting = match keys.is_empty() || distinct {
            true => None,
            false => Postponed::of(&exprs, &sort_places, is_limited),
        };
        let row = waiting.as_ref().map_or(&exprs, |waiting| &waiting.below);
        let mut plan = projection(input, row);
        if distinct && plain {
            for expr in &exprs[..width] {
                self.check_equality(expr.ty, expr.leftmost())?;
            }
            plan = Plan::Distinct(Rc::new(plan), told.clone());
        }
        if !keys.is_empty() {
            plan = Plan::Sort(Rc::new(plan), keys);
        }
        if let Some(waiting) = waiting {
            plan = projection(plan, &waiting.above);
        }
        if !plain {
            plan = Plan::Distinct(Rc::new(plan), told);
        }
        let ties = sort_places.iter().map(|place| {
            let value = Expr::new(ExprKind::Column(*place), types[*place], -1);
            (compile(&value), types[*place])
        });
        let ties = ties.filter(|_| with_ties).collect();
        plan = self.limit(select, plan, ties, scope)?;
        if full > width {
            plan = Plan::Trim(Rc::new(plan), width);
        }
        Ok(plan)
    }

    /// Where what tells rows apart stands, by these columns: they themselves, or their keys behind the others.
    fn places_told_apart(&self, exprs: &mut Vec<Expr>, columns: Vec<usize>) -> Result<Vec<usize>> {
        let mut places = Vec::with_capacity(columns.len());
        for place in columns {
            match self.not_deterministic(exprs[place].collation)? {
                Some(used) => {
                    places.push(exprs.len());
                    exprs.push(self.key(exprs[place].clone(), &used)?);
                }
                None => places.push(place),
            }
        }
        Ok(places)
    }

    pub(super) fn limit(
        &mut self,
        select: &SelectStmt,
        plan: Plan,
        ties: Vec<(crate::plan::Program, TypeId)>,
        scope: &Scope<'_>,
    ) -> Result<Plan> {
        let count = select.limit_count.as_deref();
        let is_null = matches!(count.and_then(|node| node.node.as_ref()), Some(NodeEnum::AConst(count)) if count.isnull);
        if is_null && is_with_ties(select) {
            return Err(Error::new(
                SqlState::of("2201W"),
                "row count cannot be null in FETCH FIRST ... WITH TIES clause",
            ));
        }
        let mut bound = |node: &Option<Box<Node>>, clause: &'static str| -> Result<_> {
            let Some(node) = node else {
                return Ok(None);
            };
            let expr = self.expr(inner(node)?, scope, Place::plain(clause))?;
            let (from, location) = (expr.ty, expr.location.0);
            let context = functions::CastContext::Assignment;
            match self.try_coerce(expr, TypeId::INT8, -1, context)? {
                Ok(expr) if expr.any(&|part| matches!(part.kind, ExprKind::Column(_))) => Err(self
                    .error(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        format!("argument of {clause} must not contain variables"),
                        location,
                    )),
                Ok(expr) => Ok(Some(compile(&expr))),
                Err(_) => Err(self.error(
                    SqlState::DATATYPE_MISMATCH,
                    format!("argument of {clause} must be type bigint, not type {from}"),
                    location,
                )),
            }
        };
        let limit = bound(&select.limit_count, "LIMIT")?;
        let offset = bound(&select.limit_offset, "OFFSET")?;
        if limit.is_none() && offset.is_none() {
            return Ok(plan);
        }
        Ok(Plan::Limit(Rc::new(plan), limit, offset, ties))
    }

    /// Whether a query's order is worth an index that leads from entry to row.
    pub(super) fn few_wanted(&self, select: &SelectStmt) -> bool {
        let limited = select.limit_count.is_some();
        (limited && self.methods.by_index()) || !self.methods.sort
    }
}

/// Whether a query without groups and windows has nothing but columns.
fn is_plain(select: &SelectStmt, outputs: &Outputs) -> bool {
    select.distinct_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
        && outputs.order.is_empty()
        && !outputs.exprs.iter().any(Expr::has_sets)
}

/// Whether a plan gives its rows in an order, or can be made to.
pub(super) fn in_order(plan: &mut Plan, order: &[Order], few: bool) -> bool {
    match plan {
        Plan::Scan(scan) if !order.is_empty() => scan_in_order(scan, order, few),
        Plan::Once(input, _) => {
            let input = Rc::get_mut(input);
            input.is_some_and(|input| in_order(input, order, few))
        }
        // The order of an item of FROM is that of what its columns are.
        Plan::Project(input, columns) => {
            let below = |(value, descending, nulls_first): &Order| {
                let ExprKind::Column(place) = value.kind else {
                    return None;
                };
                let mut below = value.clone();
                below.kind = ExprKind::Column(columns.get(place)?.as_column()?);
                Some((below, *descending, *nulls_first))
            };
            let below: Option<Vec<Order>> = order.iter().map(below).collect();
            let input = Rc::get_mut(input);
            below
                .zip(input)
                .is_some_and(|(below, input)| in_order(input, &below, few))
        }
        _ => false,
    }
}

/// Descending, NULLs first.
pub(super) fn sort_order(sort: &SortBy) -> (bool, bool) {
    let by_greater = || matches!(strings(&sort.use_op)[..], [.., ">" | "~>~"]);
    let descending = match SortByDir::try_from(sort.sortby_dir) {
        Ok(SortByDir::SortbyUsing) => by_greater(),
        direction => direction == Ok(SortByDir::SortbyDesc),
    };
    let nulls_first = match SortByNulls::try_from(sort.sortby_nulls) {
        Ok(SortByNulls::SortbyNullsFirst) => true,
        Ok(SortByNulls::SortbyNullsLast) => false,
        _ => descending,
    };
    (descending, nulls_first)
}
