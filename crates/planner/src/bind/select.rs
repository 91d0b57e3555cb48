//! SELECT, VALUES, and UNION and its kin.

use std::rc::Rc;

use base::engine::{LockWait, RowLock};
use base::{coro, Error, Result, SqlState};
use pg_query::protobuf::{
    LockClauseStrength, LockWaitPolicy, LockingClause, Node, SelectStmt, SetOperation as SetOp,
    SortBy, SortByDir, SortByNulls,
};

use super::access::scan_in_order;
use super::column_name::column_name;
use super::expr::Place;
use super::from::{all_of, conjuncts, filtered};
use super::group::{settle_places, Grouping};
use super::outputs::{Order, Outputs};
use super::scope::Scope;
use super::window_plan::windows;
use super::{boxed, inner, strings, Binder, OutputColumn};
use crate::plan::compile;
use crate::plan::{Expr, ExprKind, LockRows, Plan, SetColumn, SetOperation, SortKey};
use catalog::RelationKind;
use syntax::parser::NodeEnum;
use types::{Datum, TypeId};

/// A bound query.
pub struct Query {
    /// Its rows.
    pub plan: Plan,
    /// Its columns.
    pub columns: Vec<OutputColumn>,
    /// Whether it looks at rows of enclosing queries.
    pub escapes: bool,
    /// The columns that are literals without a type, which the query around may give them.
    pub literals: Vec<Option<Expr>>,
    /// Where each column stands.
    pub locations: Vec<i32>,
}

/// Queries may be nested this deep, UNION included; further is 54001. A statement runs them on its
/// own, smaller stack.
pub const QUERY_DEPTH_MAX: usize = 300;

/// What binding a query counts for, in the units of [`coro::work`].
const SELECT_WORK: usize = 4_000;

impl Binder<'_> {
    /// Binds a query inside the scope of another.
    pub(super) fn subquery(
        &mut self,
        select: &SelectStmt,
        scope: &Scope<'_>,
    ) -> Result<(Query, bool)> {
        self.sublinks += 1;
        let query = self.select(select, Some(scope));
        self.sublinks -= 1;
        let query = query?;
        let correlated = query.escapes;
        Ok((query, correlated))
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
        self.query_depth += 1;
        let bound = self.deeper(|binder| {
            let begun = binder.subqueries;
            let before = binder.with_clause(select.with_clause.as_ref(), parent)?;
            let anew = std::mem::take(&mut binder.with_escapes);
            let query = match SetOp::try_from(select.op) {
                Ok(SetOp::SetopNone) | Ok(SetOp::Undefined) | Err(_) => {
                    if select.values_lists.is_empty() {
                        binder.simple_select(select, parent)
                    } else {
                        binder.values(select, parent)
                    }
                }
                Ok(operation) => binder.set_operation(select, operation, parent),
            };
            binder.forget_ctes(before);
            let mut query = query?;
            if anew {
                let inside = begun + 1..binder.subqueries + 1;
                query.plan = Plan::Anew(inside, Rc::new(query.plan));
                query.escapes = true;
            }
            Ok(query)
        });
        self.query_depth -= 1;
        bound
    }

    fn simple_select(&mut self, select: &SelectStmt, parent: Option<&Scope<'_>>) -> Result<Query> {
        if select.into_clause.is_some() {
            return Err(Error::unsupported("SELECT INTO"));
        }
        let mut scope = Scope::inside(parent);
        let locking = !select.locking_clause.is_empty();
        let mut next = 0;
        let locked = std::mem::replace(&mut self.locked, locked_names(select));
        let source = self.bind_from(&select.from_clause, &mut scope, locking, &mut next);
        self.locked = locked;
        let source = source?;
        scope.beyond.set(next);
        let condition = self.where_clause(&select.where_clause, &scope)?;
        self.window_clause(&select.window_clause, &mut scope)?;
        let targets = self.targets(&select.target_list, &scope)?;
        let mut columns: Vec<_> = targets.iter().map(|target| target.1.clone()).collect();
        let mut exprs: Vec<_> = targets.into_iter().map(|target| target.0).collect();
        let order = self.order_by(&select.sort_clause, &scope, &mut exprs, &columns)?;
        let grouping = self.grouping(select, &scope, &mut exprs, &columns)?;
        let having = match &select.having_clause {
            None => None,
            Some(node) => {
                let having = self.expr(inner(node)?, &scope, Place::grouped("HAVING"))?;
                Some(self.condition(having, "HAVING")?)
            }
        };
        let locations: Vec<_> = exprs.iter().map(Expr::leftmost).collect();
        let literal = |expr: &Expr| {
            let open = expr.is_untyped() && matches!(expr.kind, ExprKind::Const(..));
            open.then(|| expr.clone())
        };
        let literals: Vec<_> = exprs.iter().map(literal).collect();
        for (expr, column) in exprs.iter_mut().zip(&mut columns) {
            let taken = std::mem::replace(expr, Expr::constant(Datum::Null, TypeId::TEXT, -1));
            *expr = self.settle(taken)?;
            column.ty = expr.ty;
            column.typmod = expr.typmod;
        }
        let distinct_on = self.distinct_on(select, &scope, &exprs, &columns)?;
        let mut outputs = Outputs {
            exprs,
            order,
            distinct_on,
        };
        let conditions = conjuncts(condition.clone());
        let mut rechecks = Vec::new();
        for item in scope.tables.iter().filter(|_| locking) {
            let own = source
                .iter()
                .flat_map(|source| source.conditions_of(item.start));
            rechecks.push(all_of(own.chain(conditions.iter().cloned()).collect()));
        }
        let mut plan = match source {
            None => filtered(Plan::Values(vec![Vec::new()]), conditions),
            Some(source) => self.build(source, conditions)?,
        };
        let grouped = grouping.is_some() || having.is_some() || outputs.aggregates();
        let windowed = outputs.windows();
        if locking {
            self.check_locking(select, grouped, windowed)?;
            let (exprs, order) = (outputs.exprs, outputs.order);
            return self.finish_locking(select, plan, exprs, order, columns, rechecks, &scope);
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
        let plan = self.project(select, plan, outputs, &columns, &scope)?;
        Ok(Query {
            plan,
            columns,
            escapes: scope.escapes.get(),
            literals,
            locations,
        })
    }

    /// FOR UPDATE takes rows of tables.
    fn check_locking(&self, select: &SelectStmt, grouped: bool, windowed: bool) -> Result<()> {
        let what = if !select.distinct_clause.is_empty() {
            "DISTINCT clause"
        } else if !select.group_clause.is_empty() {
            "GROUP BY clause"
        } else if select.having_clause.is_some() {
            "HAVING clause"
        } else if grouped {
            "aggregate functions"
        } else if windowed {
            "window functions"
        } else {
            return Ok(());
        };
        Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{} is not allowed with {what}", locking_words(select)),
        ))
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
            if let NodeEnum::ColumnRef(column) = value {
                let last = column.fields.last().and_then(|field| field.node.as_ref());
                if matches!(last, Some(NodeEnum::AStar(_))) {
                    let names = strings(&column.fields);
                    out.extend(self.star(names.last().copied(), scope, column.location)?);
                    continue;
                }
            }
            let (expr, origin) = match value {
                NodeEnum::ColumnRef(column)
                    if strings(&column.fields).len() == column.fields.len() =>
                {
                    self.column(&strings(&column.fields), scope, column.location)?
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
            self.refuse_using(sort)?;
            let node = boxed(&sort.node)?;
            let value = match self.output_column(node, exprs, columns, "ORDER BY", true)? {
                Some(place) => exprs[place].clone(),
                None => self.expr(node, scope, Place::output("ORDER BY"))?,
            };
            let value = self.settle(value)?;
            self.check_sortable(&value)?;
            let (descending, nulls_first) = sort_order(sort);
            order.push((value, descending, nulls_first));
        }
        Ok(order)
    }

    pub(super) fn refuse_using(&self, sort: &SortBy) -> Result<()> {
        match sort.sortby_dir == SortByDir::SortbyUsing as i32 {
            true => Err(self.unsupported("ORDER BY … USING", sort.location)),
            false => Ok(()),
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
        let all = outputs.all_mut();
        all.chain(&mut having)
            .for_each(|expr| settle_places(expr, &grouping));
        let as_column = |(place, group): (usize, &Expr)| Expr {
            kind: ExprKind::Column(place),
            ..group.clone()
        };
        let columns = grouping.groups.iter().enumerate().map(as_column).collect();
        let plan = grouping.plan(input);
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
        } = outputs;
        let width = columns.len();
        let distinct = !select.distinct_clause.is_empty();
        if !distinct && in_order(&mut input, &order, select) {
            order.clear();
        }
        // What is sorted by stands in the projected row, behind the output if need be.
        let mut keys = Vec::new();
        let mut sort_places = Vec::new();
        for (value, descending, nulls_first) in order {
            let place = exprs.iter().position(|expr| expr.same(&value));
            let place = match place {
                Some(place) => place,
                None if distinct && on.is_empty() => {
                    return Err(self.error(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                        value.location.0,
                    ))
                }
                None => {
                    exprs.push(value.clone());
                    exprs.len() - 1
                }
            };
            sort_places.push(place);
            keys.push(SortKey {
                value: compile(&Expr::new(ExprKind::Column(place), value.ty, -1)),
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
            distinct_on.push((place, expr.ty));
            on_locations.push(location);
            if place == exprs.len() {
                exprs.push(expr);
            }
        }
        // The keys sorted by first must be those that are told apart.
        sorted.truncate(distinct_on.len());
        let first = |place: &usize| distinct_on.iter().any(|on| on.0 == *place);
        if !distinct_on.is_empty() && !sorted.iter().all(first) {
            let missing = distinct_on.iter().position(|on| !sorted.contains(&on.0));
            return Err(self.error(
                SqlState::INVALID_COLUMN_REFERENCE,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                on_locations[missing.unwrap_or(0)],
            ));
        }
        let full = exprs.len();
        let types: Vec<_> = exprs.iter().map(|expr| expr.ty).collect();
        let mut plan = projection(input, &exprs);
        if distinct && plain {
            let columns = types[..width].iter().copied().enumerate().collect();
            plan = Plan::Distinct(Rc::new(plan), columns);
        }
        if !keys.is_empty() {
            plan = Plan::Sort(Rc::new(plan), keys);
        }
        if !distinct_on.is_empty() {
            plan = Plan::Distinct(Rc::new(plan), distinct_on);
        }
        plan = self.limit(select, plan, scope)?;
        if full > width {
            plan = Plan::Trim(Rc::new(plan), width);
        }
        Ok(plan)
    }

    fn limit(&mut self, select: &SelectStmt, plan: Plan, scope: &Scope<'_>) -> Result<Plan> {
        if select.limit_option == pg_query::protobuf::LimitOption::WithTies as i32 {
            return Err(Error::unsupported("FETCH FIRST … WITH TIES"));
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
        Ok(Plan::Limit(Rc::new(plan), limit, offset))
    }

    /// FOR UPDATE: sorts, locks and limits the input's rows, then projects them.
    #[allow(clippy::too_many_arguments)]
    fn finish_locking(
        &mut self,
        select: &SelectStmt,
        input: Plan,
        exprs: Vec<Expr>,
        order: Vec<Order>,
        columns: Vec<OutputColumn>,
        rechecks: Vec<Option<Expr>>,
        scope: &Scope<'_>,
    ) -> Result<Query> {
        let mut plan = input;
        if !order.is_empty() && !in_order(&mut plan, &order, select) {
            let keys = order
                .into_iter()
                .map(|(value, descending, nulls_first)| SortKey {
                    value: compile(&value),
                    ty: value.ty,
                    descending,
                    nulls_first,
                });
            plan = Plan::Sort(Rc::new(plan), keys.collect());
        }
        let mut locks = Vec::new();
        for node in &select.locking_clause {
            let NodeEnum::LockingClause(clause) = inner(node)? else {
                continue;
            };
            self.locking_clause(clause, &rechecks, scope, &mut locks)?;
        }
        plan = Plan::Lock(Rc::new(plan), locks);
        plan = self.limit(select, plan, scope)?;
        Ok(Query {
            plan: projection(plan, &exprs),
            literals: vec![None; columns.len()],
            locations: exprs.iter().map(|expr| expr.location.0).collect(),
            columns,
            escapes: scope.escapes.get(),
        })
    }

    fn locking_clause(
        &mut self,
        clause: &LockingClause,
        rechecks: &[Option<Expr>],
        scope: &Scope<'_>,
        locks: &mut Vec<LockRows>,
    ) -> Result<()> {
        let strength = match LockClauseStrength::try_from(clause.strength) {
            Ok(LockClauseStrength::LcsForkeyshare) => RowLock::KeyShare,
            Ok(LockClauseStrength::LcsForshare) => RowLock::Share,
            Ok(LockClauseStrength::LcsFornokeyupdate) => RowLock::NoKeyUpdate,
            _ => RowLock::Update,
        };
        let wait = match LockWaitPolicy::try_from(clause.wait_policy) {
            Ok(LockWaitPolicy::LockWaitSkip) => LockWait::Skip,
            Ok(LockWaitPolicy::LockWaitError) => LockWait::NoWait,
            _ => LockWait::Block,
        };
        let mut named = Vec::new();
        for node in &clause.locked_rels {
            let NodeEnum::RangeVar(range) = inner(node)? else {
                continue;
            };
            if !scope
                .tables
                .iter()
                .any(|table| table.alias == range.relname)
            {
                return Err(self.error(
                    SqlState::UNDEFINED_TABLE,
                    format!(
                        "relation \"{}\" in FOR UPDATE clause not found in FROM clause",
                        range.relname
                    ),
                    range.location,
                ));
            }
            named.push(range.relname.as_str());
        }
        for (item, recheck) in scope.tables.iter().zip(rechecks) {
            let Some(table) = item.base.as_ref().or(item.table.as_ref()) else {
                continue;
            };
            let wanted = named.is_empty() || named.contains(&item.alias.as_str());
            if wanted && table.kind == RelationKind::Table {
                locks.push(LockRows {
                    table: table.clone(),
                    start: item.start,
                    strength,
                    wait,
                    recheck: recheck.as_ref().map(compile),
                });
            }
        }
        Ok(())
    }

    fn values(&mut self, select: &SelectStmt, parent: Option<&Scope<'_>>) -> Result<Query> {
        let scope = Scope::inside(parent);
        let mut rows = Vec::new();
        for node in &select.values_lists {
            let NodeEnum::List(list) = inner(node)? else {
                continue;
            };
            rows.push(self.nodes(&list.items, &scope, Place::plain("VALUES"))?);
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
            let typmod = column.first().map_or(-1, |first| first.typmod);
            let same = column.iter().all(|expr| expr.typmod == typmod);
            columns.push(OutputColumn {
                name: format!("column{}", place + 1),
                ty,
                typmod: if same { typmod } else { -1 },
                origin: (0, 0),
            });
            unified.push(column);
        }
        let count = rows.len();
        let rows = (0..count)
            .map(|row| unified.iter().map(|column| compile(&column[row])).collect())
            .collect();
        let plan = Plan::Values(rows);
        let plan = self.finish_output(select, plan, &columns)?;
        Ok(Query {
            plan,
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
            .map(|(place, column)| Expr::new(ExprKind::Column(place), column.ty, -1))
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
            self.check_sortable(&exprs[place])?;
            let (descending, nulls_first) = sort_order(sort);
            keys.push(SortKey {
                value: compile(&exprs[place]),
                ty: exprs[place].ty,
                descending,
                nulls_first,
            });
        }
        if !keys.is_empty() {
            plan = Plan::Sort(Rc::new(plan), keys);
        }
        self.limit(select, plan, &Scope::default())
    }

    fn set_operation(
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
            if column.typmod != other.typmod || column.ty != other.ty {
                column.typmod = -1;
            }
            column.ty = ty;
            column.origin = (0, 0);
            types.push(ty);
        }
        let left_plan = self.as_types(left.plan, &left.columns, &left.literals, &types)?;
        let right_plan = self.as_types(right.plan, &right.columns, &right.literals, &types)?;
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
            plan,
            literals: vec![None; columns.len()],
            locations: left.locations,
            columns,
            escapes: left.escapes || right.escapes,
        })
    }

    /// The plan's rows as columns of these types.
    pub(super) fn as_types(
        &mut self,
        plan: Plan,
        columns: &[OutputColumn],
        literals: &[Option<Expr>],
        types: &[TypeId],
    ) -> Result<Plan> {
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

/// The items that the locking clauses name; none if one of them is for all.
fn locked_names(select: &SelectStmt) -> Vec<String> {
    let mut names = Vec::new();
    for node in &select.locking_clause {
        let Some(NodeEnum::LockingClause(clause)) = &node.node else {
            continue;
        };
        if clause.locked_rels.is_empty() {
            return Vec::new();
        }
        names.extend(
            clause
                .locked_rels
                .iter()
                .filter_map(|node| match &node.node {
                    Some(NodeEnum::RangeVar(range)) => Some(range.relname.clone()),
                    _ => None,
                }),
        );
    }
    names
}

/// The first locking clause as error messages name it.
fn locking_words(select: &SelectStmt) -> &'static str {
    let first = select
        .locking_clause
        .first()
        .and_then(|node| node.node.as_ref());
    let Some(NodeEnum::LockingClause(clause)) = first else {
        return "FOR UPDATE";
    };
    match LockClauseStrength::try_from(clause.strength) {
        Ok(LockClauseStrength::LcsForkeyshare) => "FOR KEY SHARE",
        Ok(LockClauseStrength::LcsForshare) => "FOR SHARE",
        Ok(LockClauseStrength::LcsFornokeyupdate) => "FOR NO KEY UPDATE",
        _ => "FOR UPDATE",
    }
}

/// Whether a plan gives its rows in an order, or can be made to.
fn in_order(plan: &mut Plan, order: &[Order], select: &SelectStmt) -> bool {
    match plan {
        Plan::Scan(scan) if !order.is_empty() => {
            scan_in_order(scan, order, select.limit_count.is_some())
        }
        _ => false,
    }
}

/// The plan's rows with other columns.
pub(super) fn projection(input: Plan, exprs: &[Expr]) -> Plan {
    let is_set = |expr: &Expr| matches!(expr.kind, ExprKind::SetCall(..));
    if !exprs.iter().any(is_set) {
        return Plan::Project(Rc::new(input), exprs.iter().map(compile).collect());
    }
    let columns = exprs
        .iter()
        .map(|expr| match &expr.kind {
            ExprKind::SetCall(function, args, types) => SetColumn::Set(
                *function,
                args.iter().map(compile).collect(),
                types.clone(),
                expr.ty,
            ),
            _ => SetColumn::One(compile(expr)),
        })
        .collect();
    Plan::ProjectSet(Rc::new(input), columns)
}

/// Descending, NULLs first.
pub(super) fn sort_order(sort: &SortBy) -> (bool, bool) {
    let descending = sort.sortby_dir == SortByDir::SortbyDesc as i32;
    let nulls_first = match SortByNulls::try_from(sort.sortby_nulls) {
        Ok(SortByNulls::SortbyNullsFirst) => true,
        Ok(SortByNulls::SortbyNullsLast) => false,
        _ => descending,
    };
    (descending, nulls_first)
}
