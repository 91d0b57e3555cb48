//! What columns and conditions of a plan's nodes are called.
//!
//! ```text
//! Sort                       (count(*)), a.k
//!   Aggregate                a.k, count(*)
//!     Join                   a.id, a.k, b.id
//! ```
//! A node's columns are those of its inputs, or what it computes of them. A condition is over the columns
//! of the inputs, and is written as expressions are elsewhere ([`planner::deparse`]).
//!
//! # What it leaves out
//! The names of functions, queries of WITH and queries in FROM that a plan no longer knows. What follows them
//! is called by what computes it.

use std::cell::RefCell;
use std::rc::Rc;

use base::hash::HashMap;

use functions::strings::quote_identifier;
use functions::{Call, Function, Volatility};
use planner::deparse::{decompiled, expression, Names, Style, Values};
use planner::plan::{
    AggregateCall, AggregatePlan, Expr, ExprKind, JoinKind, Plan, Program, Scan, SetColumn,
    SetOperation, SortKey, SubKind, SubQuery,
};
use types::{Datum, EvalContext, TypeId};

/// From here on places stand for subqueries.
const SUBQUERIES: usize = usize::MAX / 2;

/// How expressions are written.
const FLAT: Style = Style {
    pretty: false,
    indent: 0,
    flat: true,
    marked: false,
};

/// A column as it is called.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    /// The text: a name, or an expression in parentheses.
    pub(super) text: String,
    /// The text where it stands in the conditions of the node that computes it.
    bare: String,
    /// The type and the modifier, if they are known.
    pub(super) ty: Option<(TypeId, i32)>,
}

impl Column {
    /// As the conditions of the node call it that has it of itself.
    pub(super) fn own(&self) -> Column {
        Column {
            text: self.bare.clone(),
            ..self.clone()
        }
    }

    /// An expression over such columns.
    pub(super) fn of(text: String, ty: TypeId, typmod: i32) -> Column {
        Column {
            bare: text.clone(),
            text,
            ty: Some((ty, typmod)),
        }
    }
}

/// The columns of a node, or those that a subquery sees of the rows around it.
pub(super) type Columns = Rc<Vec<Column>>;

/// A subquery that an expression names.
pub(super) struct Found {
    pub(super) query: Rc<SubQuery>,
    /// As its plan is called.
    pub(super) title: String,
    /// As the plan for all rows around it is.
    pub(super) keyed: String,
    /// Whether it is computed once.
    pub(super) is_init: bool,
    /// What it sees of the rows around it.
    pub(super) outer: Vec<Columns>,
}

/// Who writes conditions.
pub(super) struct Writer<'a> {
    pub(super) context: &'a EvalContext,
    pub(super) literals: &'a [Datum],
    /// Whether columns are called with their tables.
    pub(super) qualified: bool,
    /// The subqueries met so far: number, and what stands for it in an expression.
    known: RefCell<Vec<(usize, String)>>,
    /// Those that no node shows yet.
    found: RefCell<Vec<Found>>,
    counts: RefCell<(usize, usize)>,
    /// The columns of nodes, by where these are.
    columns: RefCell<HashMap<usize, Columns>>,
}

/// The rows that an expression is over.
struct Over<'w> {
    writer: &'w Writer<'w>,
    row: &'w [Column],
    outer: &'w [Columns],
}

impl Values for Over<'_> {
    fn column(&self, place: usize) -> Option<(TypeId, i32)> {
        self.row.get(place).and_then(|column| column.ty)
    }

    fn outer(&self, level: usize, place: usize) -> Option<(TypeId, i32)> {
        let row = self.outer.len().checked_sub(level)?;
        self.outer[row].get(place)?.ty
    }

    fn folded(
        &self,
        function: &Function,
        args: &[Datum],
        types: &[TypeId],
        result: TypeId,
    ) -> Option<Datum> {
        let is_fixed = function.volatility == Volatility::Immutable && function.is_of_values();
        if !is_fixed || args.len() > 2 || args.iter().any(Datum::is_null) {
            return None;
        }
        let call = Call {
            context: self.writer.context,
            argument_types: types,
            result,
        };
        function.call(&call, args).ok()
    }

    fn literal(&self, number: usize) -> Option<Datum> {
        self.writer.literals.get(number).cloned()
    }

    fn subquery(&self, query: &Rc<SubQuery>, seen: Vec<(usize, Expr)>) -> usize {
        SUBQUERIES + self.writer.number_of(query, seen, self)
    }
}

impl Names for Over<'_> {
    fn column(&self, place: usize, level: usize) -> String {
        if let Some(subquery) = place.checked_sub(SUBQUERIES) {
            let known = self.writer.known.borrow();
            return known
                .get(subquery)
                .map_or(String::new(), |known| known.1.clone());
        }
        let row = match level {
            0 => Some(self.row),
            level => {
                let row = self.outer.len().checked_sub(level);
                row.map(|row| self.outer[row].as_slice())
            }
        };
        let column = row.and_then(|row| row.get(place));
        column.map_or(String::new(), |column| column.text.clone())
    }
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        context: &'a EvalContext,
        literals: &'a [Datum],
        qualified: bool,
    ) -> Writer<'a> {
        Writer {
            context,
            literals,
            qualified,
            known: RefCell::default(),
            found: RefCell::default(),
            counts: RefCell::default(),
            columns: RefCell::default(),
        }
    }

    /// The subqueries that were met since the last time.
    pub(super) fn take_found(&self) -> Vec<Found> {
        self.found.take()
    }

    /// The place of a subquery among those that are known.
    fn number_of(&self, query: &Rc<SubQuery>, seen: Vec<(usize, Expr)>, over: &Over<'_>) -> usize {
        let known = self
            .known
            .borrow()
            .iter()
            .position(|known| known.0 == query.number);
        if let Some(known) = known {
            return known;
        }
        let width = seen.iter().map(|(place, _)| place + 1).max().unwrap_or(0);
        let mut row = vec![Column::default(); width];
        for (place, value) in seen {
            row[place] = self.column_of(&value, over);
        }
        let mut counts = self.counts.borrow_mut();
        counts.0 += 1;
        let number = counts.0;
        let tests = matches!(
            query.kind,
            SubKind::Any(..) | SubKind::AnyRow(_) | SubKind::Compare(..)
        );
        let is_init = !query.correlated && !tests;
        let (title, text) = match (is_init, query.correlated) {
            (true, _) => {
                let place = counts.1;
                counts.1 += 1;
                (
                    format!("InitPlan {number} (returns ${place})"),
                    format!("${place}"),
                )
            }
            (false, false) if is_hashed(query) => (
                format!("SubPlan {number}"),
                format!("(hashed SubPlan {number})"),
            ),
            _ => (format!("SubPlan {number}"), format!("(SubPlan {number})")),
        };
        let mut outer = over.outer.to_vec();
        outer.push(Rc::new(row));
        self.found.borrow_mut().push(Found {
            query: query.clone(),
            title,
            keyed: format!("SubPlan {number} (hashed by key)"),
            is_init,
            outer,
        });
        let mut known = self.known.borrow_mut();
        known.push((query.number, text));
        known.len() - 1
    }

    /// What a program computes over a row, as a condition is shown.
    pub(super) fn text(
        &self,
        program: &Program,
        row: &[Column],
        outer: &[Columns],
    ) -> Option<String> {
        let over = Over {
            writer: self,
            row,
            outer,
        };
        let expr = decompiled(program, &over)?;
        expression(&expr, &over, self.context, FLAT, false).ok()
    }

    /// A value that a key of a type is compared with.
    pub(super) fn value(
        &self,
        program: &Program,
        ty: Option<(TypeId, i32)>,
        outer: &[Columns],
    ) -> Option<String> {
        let over = Over {
            writer: self,
            row: &[],
            outer,
        };
        let mut expr = decompiled(program, &over)?;
        if let (ExprKind::Const(..), Some((ty, _))) = (&expr.kind, ty) {
            expr.ty = match ty {
                TypeId::VARCHAR => TypeId::TEXT,
                ty => ty,
            };
        }
        expression(&expr, &over, self.context, FLAT, true).ok()
    }

    /// What a program computes as a column of the node above.
    fn computed(&self, program: &Program, row: &[Column], outer: &[Columns]) -> Column {
        let over = Over {
            writer: self,
            row,
            outer,
        };
        match decompiled(program, &over) {
            Some(expr) => self.column_of(&expr, &over),
            None => Column::default(),
        }
    }

    fn column_of(&self, expr: &Expr, over: &Over<'_>) -> Column {
        let text = expression(expr, over, self.context, FLAT, true);
        let text = text.unwrap_or_default();
        let is_name = matches!(
            expr.kind,
            ExprKind::Column(_) | ExprKind::Outer(..) | ExprKind::Const(..) | ExprKind::Param(_)
        );
        let ty = (expr.ty != TypeId::UNKNOWN).then_some((expr.ty, expr.typmod));
        let bare = text.clone();
        Column {
            text: match is_name {
                true => text,
                false => format!("({text})"),
            },
            bare,
            ty,
        }
    }

    /// Whether one of the programs has a subquery, which is then met.
    pub(super) fn meet<'p>(
        &self,
        programs: impl Iterator<Item = &'p Program>,
        row: &[Column],
        outer: &[Columns],
    ) {
        use planner::plan::program::Op;
        for program in programs {
            if program.ops().iter().any(|op| matches!(op, Op::Sub(..))) {
                self.computed(program, row, outer);
            }
        }
    }

    /// The keys of a sort.
    pub(super) fn sort_keys(
        &self,
        keys: &[SortKey],
        row: &[Column],
        outer: &[Columns],
    ) -> Option<Vec<String>> {
        let of_key = |key: &SortKey| {
            let column = self.computed(&key.value, row, outer);
            if column.text.is_empty() {
                return None;
            }
            let direction = if key.descending { " DESC" } else { "" };
            let nulls = match (key.descending, key.nulls_first) {
                (false, true) => " NULLS FIRST",
                (true, false) => " NULLS LAST",
                _ => "",
            };
            Some(format!("{}{direction}{nulls}", column.text))
        };
        keys.iter().map(of_key).collect()
    }

    fn of_aggregate(&self, plan: &AggregatePlan, row: &[Column], outer: &[Columns]) -> Column {
        let over = Over {
            writer: self,
            row,
            outer,
        };
        let of = |program: &Program| decompiled(program, &over);
        let typed = |(place, program): (usize, &Program)| {
            let mut expr = of(program)?;
            let ty = plan.types.get(place).copied();
            if let (ExprKind::Const(..), Some(ty)) = (&expr.kind, ty) {
                expr.ty = ty;
            }
            Some(expr)
        };
        let args: Option<Vec<_>> = plan.args.iter().enumerate().map(typed).collect();
        let filter = plan.filter.as_ref().map(of);
        let order: Option<Vec<_>> = plan
            .order
            .iter()
            .map(|key| Some((of(&key.value)?, key.descending, key.nulls_first)))
            .collect();
        let (Some(args), Some(order)) = (args, order) else {
            return Column::default();
        };
        let call = AggregateCall {
            aggregate: plan.aggregate.clone(),
            args,
            types: plan.types.clone(),
            distinct: plan.distinct,
            filter: filter.flatten(),
            order,
        };
        let expr = Expr::new(ExprKind::Aggregate(Box::new(call)), TypeId::UNKNOWN, -1);
        self.column_of(&expr, &over)
    }

    /// The columns of a node's rows.
    pub(super) fn columns(&self, plan: &Plan, outer: &[Columns]) -> Columns {
        let place = std::ptr::from_ref(plan) as usize;
        if let Some(known) = self.columns.borrow().get(&place) {
            return known.clone();
        }
        let columns = self.computed_columns(plan, outer);
        self.columns.borrow_mut().insert(place, columns.clone());
        columns
    }

    fn computed_columns(&self, plan: &Plan, outer: &[Columns]) -> Columns {
        let of = |input: &Plan| self.columns(input, outer);
        let computed = |programs: &[Program], row: &[Column]| {
            let programs = programs.iter();
            Rc::new(programs.map(|one| self.computed(one, row, outer)).collect())
        };
        match plan {
            Plan::Scan(scan) => {
                let row = self.columns_of_table(scan);
                match &scan.kept {
                    Some(kept) => Rc::new(kept.iter().map(|place| row[*place].clone()).collect()),
                    None => row,
                }
            }
            Plan::System(table, ..) => self.of_table(table, &table.name),
            Plan::Values(rows) if rows.len() == 1 => computed(&rows[0], &[]),
            Plan::Values(rows) => {
                let width = rows.first().map_or(0, Vec::len);
                let named =
                    |place: usize| self.named("\"*VALUES*\"", &format!("column{}", place + 1));
                Rc::new((0..width).map(named).collect())
            }
            Plan::Function {
                function, width, ..
            } => {
                let column = self.named(&quote_identifier(function.0.name), function.0.name);
                Rc::new(vec![column; (*width).max(1)])
            }
            Plan::Project(input, columns) => computed(columns, &of(input)),
            Plan::ProjectSet(input, columns) => {
                let row = of(input);
                let column = |column: &SetColumn| match column {
                    SetColumn::One(program) => self.computed(program, &row, outer),
                    _ => Column::default(),
                };
                Rc::new(columns.iter().map(column).collect())
            }
            Plan::Join(join) => {
                let mut both = of(&join.left).to_vec();
                both.resize(join.left_width, Column::default());
                if !matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                    let around = self.around(join.lateral, &both, outer);
                    both.extend(self.columns(&join.right, &around).iter().cloned());
                }
                if let Some(kept) = &join.kept {
                    let kept = kept.iter().map(|place| both.get(*place).cloned());
                    both = kept.map(Option::unwrap_or_default).collect();
                }
                Rc::new(both)
            }
            Plan::Aggregate {
                input,
                groups,
                aggregates,
                ..
            } => {
                let row = of(input);
                let keys = groups.iter();
                let keys = keys.map(|(group, _)| self.computed(group, &row, outer));
                let of_one = |one: &AggregatePlan| self.of_aggregate(one, &row, outer);
                Rc::new(keys.chain(aggregates.iter().map(of_one)).collect())
            }
            Plan::Trim(input, width) => {
                let mut row = of(input).to_vec();
                row.truncate(*width);
                Rc::new(row)
            }
            Plan::SetOperation(_, _, parts, _) => parts.first().map_or_else(Columns::default, of),
            Plan::Recursive(recursive) => of(&recursive.first),
            Plan::Window(window) => of(&window.input),
            Plan::With(with) => of(&with.body),
            plan => plan.same_columns().map_or_else(Columns::default, of),
        }
    }

    /// The rows around the right input of a join.
    pub(super) fn around(
        &self,
        lateral: Option<usize>,
        left: &[Column],
        outer: &[Columns],
    ) -> Vec<Columns> {
        let mut around = outer.to_vec();
        if let Some(before) = lateral {
            let mut row = vec![Column::default(); before];
            row.extend(left.iter().cloned());
            around.push(Rc::new(row));
        }
        around
    }

    fn named(&self, table: &str, column: &str) -> Column {
        let bare = quote_identifier(column);
        Column {
            text: match self.qualified {
                true => format!("{table}.{bare}"),
                false => bare.clone(),
            },
            bare,
            ty: None,
        }
    }

    /// The columns of the table that a scan reads.
    pub(super) fn columns_of_table(&self, scan: &Scan) -> Columns {
        let alias = scan.alias.as_deref().unwrap_or(&scan.table.name);
        self.of_table(&scan.table, alias)
    }

    fn of_table(&self, table: &catalog::Table, alias: &str) -> Columns {
        let alias = quote_identifier(alias);
        let columns = table.columns.iter().map(|column| Column {
            ty: Some((column.type_id, column.typmod)),
            ..self.named(&alias, &column.name)
        });
        Rc::new(columns.collect())
    }
}

/// Whether a subquery's rows are found by hash.
fn is_hashed(query: &SubQuery) -> bool {
    match &query.kind {
        SubKind::AnyRow(columns) => columns.iter().all(|column| match &*column.1 {
            [left, right] => left == right,
            _ => false,
        }),
        SubKind::Any(..) => matches!(&*query.types, [left, right] if left == right),
        _ => false,
    }
}

/// Whether a plan reads more than one thing, so that columns are called with their tables.
pub(super) fn reads_several(plan: &Plan) -> bool {
    fn count(plan: &Plan) -> usize {
        match plan {
            Plan::Join(_) | Plan::Shared(..) | Plan::Recursive(_) => 2,
            Plan::SetOperation(SetOperation::Union, _, parts, _) => parts.iter().map(count).sum(),
            Plan::SetOperation(..) => 2,
            Plan::Scan(_) | Plan::System(..) | Plan::Function { .. } => 1 + subqueries(plan),
            Plan::Project(input, _)
            | Plan::ProjectSet(input, _)
            | Plan::Aggregate { input, .. } => count(input) + subqueries(plan),
            Plan::Window(window) => count(&window.input),
            Plan::Update(update) => 1 + count(&update.input),
            Plan::Delete(delete) => count(&delete.input),
            Plan::Insert(insert) => 1 + count(&insert.input),
            Plan::Merge(_) | Plan::With(_) => 2,
            plan => {
                let input = plan.same_columns();
                input.map_or(0, |input| count(input) + subqueries(plan))
            }
        }
    }
    count(plan) > 1
}

/// How many of the programs of a node itself have subqueries.
fn subqueries(plan: &Plan) -> usize {
    use planner::plan::program::Op;
    let has = |program: &&Program| program.ops().iter().any(|op| matches!(op, Op::Sub(..)));
    match plan {
        Plan::Scan(scan) => scan.filter.iter().filter(has).count(),
        Plan::Filter(_, condition) | Plan::Once(_, condition) => usize::from(has(&condition)),
        Plan::Project(_, columns) => columns.iter().filter(has).count(),
        _ => 0,
    }
}
