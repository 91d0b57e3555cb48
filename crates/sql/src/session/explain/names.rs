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

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use base::hash::HashMap;
use base::memory::Reservation;
use base::{coro, Error, Result, SqlState};

use functions::strings::quote_identifier;
use functions::{Call, Function, Volatility};
use planner::bind::sample::{is_of_sample, taken_out};
use planner::deparse::{decompiled, expression, folded, Names, Style, Values};
use planner::plan::{
    AggregateCall, AggregatePlan, Bound, Exclusion, Expr, ExprKind, Frame, FrameMode, JoinKind,
    Plan, Program, Scan, SetColumn, SetOperation, SortKey, SubKind, SubQuery, WindowCall,
    WindowFunctionPlan, WindowName, WindowSpec,
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
    /// Both as lists of columns have them, if these are asked for.
    listed: [String; 2],
    /// The type and the modifier, if they are known.
    pub(super) ty: Option<(TypeId, i32)>,
}

impl Column {
    /// As the conditions of the node call it that has it of itself.
    pub(super) fn own(&self) -> Column {
        let [_, bare] = &self.listed;
        Column {
            text: self.bare.clone(),
            bare: self.bare.clone(),
            listed: [bare.clone(), bare.clone()],
            ty: self.ty,
        }
    }

    /// As a list of columns has it: of the node that computes it, or of one above.
    pub(super) fn shown(&self, is_own: bool) -> String {
        self.listed[usize::from(is_own)].clone()
    }

    /// An expression over such columns.
    pub(super) fn of(text: String, ty: TypeId, typmod: i32) -> Column {
        Column {
            bare: text.clone(),
            listed: [text.clone(), text.clone()],
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

/// A sample that a scan takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub method: &'static str,
    pub percent: String,
    pub seed: Option<String>,
}

/// Who writes conditions.
pub(super) struct Writer<'a> {
    pub(super) context: &'a EvalContext,
    pub(super) literals: &'a [Datum],
    /// Whether columns are called with their tables where several are read.
    pub(super) qualified: bool,
    /// Whether columns are listed, and called with their tables in all conditions.
    pub(super) verbose: bool,
    /// What the statement calls the table that it writes, if not by its name.
    pub(super) alias: Option<&'a str>,
    /// The bytes that texts may have, all together, and those that they have.
    most: usize,
    written: RefCell<Reservation>,
    /// Why writing has ended.
    failed: RefCell<Option<Error>>,
    /// The subqueries met so far: number, and what stands for it in an expression.
    known: RefCell<Vec<(usize, String)>>,
    /// Those that no node shows yet.
    found: RefCell<Vec<Found>>,
    counts: RefCell<(usize, usize)>,
    /// The columns of nodes, by where these are.
    columns: RefCell<HashMap<usize, Columns>>,
    /// The types of the columns of nodes, where these say more than the values.
    types: RefCell<HashMap<usize, Vec<(TypeId, i32)>>>,
}

/// The rows that an expression is over.
struct Over<'w> {
    writer: &'w Writer<'w>,
    row: &'w [Column],
    outer: &'w [Columns],
    /// Whether columns are called as lists have them.
    listed: bool,
    /// Whether a column is not known.
    missing: &'w Cell<bool>,
}

impl<'w> Over<'w> {
    fn new(
        writer: &'w Writer<'w>,
        row: &'w [Column],
        outer: &'w [Columns],
        missing: &'w Cell<bool>,
    ) -> Over<'w> {
        Over {
            writer,
            row,
            outer,
            listed: false,
            missing,
        }
    }
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
        let text = column.map(|column| match self.listed {
            true => &column.listed[0],
            false => &column.text,
        });
        match text.filter(|text| !text.is_empty() && self.writer.spends(text.len())) {
            Some(text) => text.clone(),
            None => {
                self.missing.set(true);
                String::new()
            }
        }
    }
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        context: &'a EvalContext,
        literals: &'a [Datum],
        qualified: bool,
        alias: Option<&'a str>,
        (verbose, most): (bool, usize),
    ) -> Writer<'a> {
        Writer {
            context,
            literals,
            qualified,
            verbose,
            alias,
            most,
            written: RefCell::new(Reservation::of("EXPLAIN")),
            failed: RefCell::default(),
            known: RefCell::default(),
            found: RefCell::default(),
            counts: RefCell::default(),
            columns: RefCell::default(),
            types: RefCell::default(),
        }
    }

    /// The values of a node are for columns of these types.
    pub(super) fn will_be(&self, plan: &Plan, types: Vec<(TypeId, i32)>) {
        let place = std::ptr::from_ref(plan) as usize;
        self.types.borrow_mut().insert(place, types);
    }

    /// Counts the bytes of a text that becomes a part of another: these grow by their product. Gives way to
    /// others; false when there are too many, or the statement is to end ([`Writer::ended`]).
    fn spends(&self, bytes: usize) -> bool {
        if self.failed.borrow().is_some() {
            return false;
        }
        let mut written = self.written.borrow_mut();
        let mut outcome = coro::work(bytes).map_err(Error::from);
        outcome = outcome.and_then(|()| written.grow(bytes));
        if written.bytes() > self.most {
            let most = self.most;
            let detail = format!("The texts of a plan need more than {most} bytes.");
            let error = Error::new(SqlState::OUT_OF_MEMORY, "out of memory");
            outcome = Err(error.with_detail(detail));
        }
        let failed = outcome.err();
        let may = failed.is_none();
        *self.failed.borrow_mut() = failed;
        may
    }

    /// Says that all is written.
    ///
    /// # Errors
    /// Why not: the pending interrupt, or 53200.
    pub(super) fn ended(&self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
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
        let missing = Cell::default();
        let over = Over::new(self, row, outer, &missing);
        let expr = decompiled(program, &over)?;
        let text = expression(&expr, &over, self.context, FLAT, false).ok();
        text.filter(|text| !missing.get() && self.spends(text.len()))
    }

    /// The sample that a scan with this condition takes, and the rest of the condition.
    pub(super) fn sample(
        &self,
        program: &Program,
        row: &[Column],
        outer: &[Columns],
    ) -> Option<(Sample, Option<String>)> {
        if !is_of_sample(program) {
            return None;
        }
        let missing = Cell::default();
        let over = Over::new(self, row, outer, &missing);
        let (sampling, rest) = taken_out(decompiled(program, &over)?);
        let sampling = sampling?;
        let text = |expr: &Expr, casts| {
            let text = expression(expr, &over, self.context, FLAT, casts).ok();
            text.filter(|text| !missing.get() && self.spends(text.len()))
        };
        let sample = Sample {
            method: sampling.method,
            percent: text(&sampling.percent, true)?,
            seed: sampling.seed.and_then(|seed| text(&seed, true)),
        };
        let rest = rest.and_then(|rest| text(&rest, false));
        Some((sample, rest))
    }

    /// A value that a key of a type is compared with.
    pub(super) fn value(
        &self,
        program: &Program,
        ty: Option<(TypeId, i32)>,
        outer: &[Columns],
    ) -> Option<String> {
        let missing = Cell::default();
        let over = Over::new(self, &[], outer, &missing);
        let mut expr = folded(decompiled(program, &over)?);
        if let (ExprKind::Const(..), Some((ty, _))) = (&expr.kind, ty) {
            expr.ty = match ty {
                TypeId::VARCHAR => TypeId::TEXT,
                ty => ty,
            };
        }
        let text = expression(&expr, &over, self.context, FLAT, true).ok();
        text.filter(|_| !missing.get())
    }

    /// What a program computes as a column of the node above.
    pub(super) fn computed(&self, program: &Program, row: &[Column], outer: &[Columns]) -> Column {
        self.computed_as(program, row, outer, None)
    }

    /// The same of a value of a type, if that is known.
    fn computed_as(
        &self,
        program: &Program,
        row: &[Column],
        outer: &[Columns],
        ty: Option<(TypeId, i32)>,
    ) -> Column {
        let missing = Cell::default();
        let over = Over::new(self, row, outer, &missing);
        let Some(mut expr) = decompiled(program, &over) else {
            return Column::default();
        };
        match (&expr.kind, ty) {
            (ExprKind::Const(..), Some((ty, typmod))) => (expr.ty, expr.typmod) = (ty, typmod),
            (ExprKind::Const(Datum::Null, _), None) if expr.ty == TypeId::UNKNOWN => {
                expr.ty = TypeId::TEXT;
            }
            _ => {}
        }
        self.column_of(&expr, &over)
    }

    fn column_of(&self, expr: &Expr, over: &Over<'_>) -> Column {
        let text = expression(expr, over, self.context, FLAT, true);
        let bare = text.unwrap_or_default();
        // Casts that nobody wrote are shown above the node that does them.
        let listed = [true, false].map(|casts| {
            if !self.verbose {
                return String::new();
            }
            let over = Over {
                listed: true,
                ..*over
            };
            let text = expression(expr, &over, self.context, FLAT, casts);
            text.unwrap_or_default()
        });
        if over.missing.get() || !self.spends(bare.len() + listed[0].len() + listed[1].len()) {
            return Column::default();
        }
        let is_name = matches!(
            expr.kind,
            ExprKind::Column(_) | ExprKind::Outer(..) | ExprKind::Const(..) | ExprKind::Param(_)
        );
        let ty = (expr.ty != TypeId::UNKNOWN).then_some((expr.ty, expr.typmod));
        let above = |text: &String| match is_name || text.is_empty() {
            true => text.clone(),
            false => format!("({text})"),
        };
        Column {
            text: above(&bare),
            bare,
            listed: [above(&listed[0]), listed[1].clone()],
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
            let keyed = key.value.without_key();
            let program = keyed.as_ref().map_or(&key.value, |keyed| &keyed.0);
            let column = self.computed(program, row, outer);
            if column.text.is_empty() {
                return None;
            }
            let collate = keyed
                .as_ref()
                .map(|keyed| format!(" COLLATE {}", keyed.1.shown));
            let collate = collate.unwrap_or_default();
            let direction = if key.descending { " DESC" } else { "" };
            let nulls = match (key.descending, key.nulls_first) {
                (false, true) => " NULLS FIRST",
                (true, false) => " NULLS LAST",
                _ => "",
            };
            Some(format!("{}{collate}{direction}{nulls}", column.text))
        };
        keys.iter().map(of_key).collect()
    }

    fn of_aggregate(&self, plan: &AggregatePlan, row: &[Column], outer: &[Columns]) -> Column {
        let missing = Cell::default();
        let over = Over::new(self, row, outer, &missing);
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
        let types = self.types.borrow();
        let types = types.get(&(std::ptr::from_ref(plan) as usize));
        let typed = |place: usize| types.and_then(|types| types.get(place)).copied();
        match plan {
            Plan::Scan(scan) => {
                let row = self.columns_of_table(scan);
                let mut row = match &scan.kept {
                    Some(kept) => kept.iter().map(|place| row[*place].clone()).collect(),
                    None => row.to_vec(),
                };
                let alias = quote_identifier(scan.alias.as_deref().unwrap_or(&scan.table.name));
                let behind = [(scan.with_key, "ctid"), (scan.with_oid, "tableoid")];
                let behind = behind.into_iter().filter(|(is_there, _)| *is_there);
                row.extend(behind.map(|(_, name)| self.named(&alias, name)));
                Rc::new(row)
            }
            Plan::System(table, ..) => self.of_table(table, &table.name),
            Plan::Values(rows) if rows.len() == 1 => {
                let one = |(place, program)| self.computed_as(program, &[], outer, typed(place));
                Rc::new(rows[0].iter().enumerate().map(one).collect())
            }
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
            Plan::Project(input, columns) => {
                let row = of(input);
                // What a node computes of what it has computed is one expression.
                let own = matches!(scanned(input), Plan::Aggregate { .. });
                let within: Vec<Column> = match own {
                    true => row.iter().map(Column::own).collect(),
                    false => row.to_vec(),
                };
                let one = |(at, program): (usize, &Program)| match program.as_column() {
                    Some(place) if own => row.get(place).cloned().unwrap_or_default(),
                    _ => self.computed_as(program, &within, outer, typed(at)),
                };
                Rc::new(columns.iter().enumerate().map(one).collect())
            }
            Plan::ProjectSet(input, columns) => {
                let row = of(input);
                let column = |column: &SetColumn| self.set_column(column, &row, outer);
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
            // They are not what its first rows are computed of.
            Plan::Recursive(recursive) => Rc::new(vec![Column::default(); recursive.types.len()]),
            Plan::Window(window) => {
                let row = of(&window.input);
                let calls = window.functions.iter();
                let calls = calls.map(|call| self.of_window(call, &row, outer));
                Rc::new(row.iter().cloned().chain(calls).collect())
            }
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
        let whole = format!("{table}.{bare}");
        let called = |qualified| match qualified {
            true => whole.clone(),
            false => bare.clone(),
        };
        let listed = match self.verbose {
            true => called(self.qualified),
            false => String::new(),
        };
        Column {
            text: called(self.qualified || self.verbose),
            bare: called(self.verbose),
            listed: [listed.clone(), listed],
            ty: None,
        }
    }

    /// A column of a node that gives several rows for one.
    fn set_column(&self, column: &SetColumn, row: &[Column], outer: &[Columns]) -> Column {
        let program = match column {
            SetColumn::One(program) => return self.computed(program, row, outer),
            SetColumn::Set(function, args, types, result) => {
                let missing = Cell::default();
                let over = Over::new(self, row, outer, &missing);
                let Some(args) = self.arguments(args, types, &over) else {
                    return Column::default();
                };
                let kind = ExprKind::SetCall(*function, args, types.clone());
                return self.column_of(&Expr::new(kind, *result, -1), &over);
            }
            SetColumn::Routine(call, args) => (call, args),
        };
        let missing = Cell::default();
        let over = Over::new(self, row, outer, &missing);
        let args: Option<Vec<_>> = program.1.iter().map(|arg| decompiled(arg, &over)).collect();
        match args {
            Some(args) => {
                let kind = ExprKind::Routine(program.0.clone(), args);
                self.column_of(&Expr::new(kind, program.0.result, -1), &over)
            }
            None => Column::default(),
        }
    }

    /// The call of a function that gives rows.
    pub(super) fn function_call(&self, plan: &Plan, outer: &[Columns]) -> Option<String> {
        let column = match plan {
            Plan::Function {
                function,
                args,
                types,
                result,
                ..
            } => {
                let missing = Cell::default();
                let over = Over::new(self, &[], outer, &missing);
                let args = self.arguments(args, types, &over)?;
                let kind = ExprKind::SetCall(*function, args, types.clone());
                self.column_of(&Expr::new(kind, *result, -1), &over)
            }
            Plan::Routine { call, args, .. } => {
                let missing = Cell::default();
                let over = Over::new(self, &[], outer, &missing);
                let args: Option<Vec<_>> = args.iter().map(|arg| decompiled(arg, &over)).collect();
                let kind = ExprKind::Routine(call.clone(), args?);
                self.column_of(&Expr::new(kind, call.result, -1), &over)
            }
            _ => return None,
        };
        Some(column.bare).filter(|text| !text.is_empty())
    }

    /// Arguments of these types.
    fn arguments(
        &self,
        programs: &[Program],
        types: &[TypeId],
        over: &Over<'_>,
    ) -> Option<Vec<Expr>> {
        let typed = |(place, program): (usize, &Program)| {
            let mut expr = decompiled(program, over)?;
            if let (ExprKind::Const(..), Some(ty)) = (&expr.kind, types.get(place)) {
                expr.ty = *ty;
            }
            Some(expr)
        };
        programs.iter().enumerate().map(typed).collect()
    }

    /// What a window function makes of rows. Which window, a plan does not say: `(?)`, as in PostgreSQL.
    fn of_window(&self, call: &WindowFunctionPlan, row: &[Column], outer: &[Columns]) -> Column {
        let missing = Cell::default();
        let over = Over::new(self, row, outer, &missing);
        let args = self.arguments(&call.args, &call.types, &over);
        let filter = call.filter.as_ref();
        let filter = filter.map(|filter| decompiled(filter, &over));
        let (Some(args), false) = (args, matches!(filter, Some(None))) else {
            return Column::default();
        };
        let named = WindowName::Named("?".to_owned());
        let window = WindowSpec {
            partition: Vec::new(),
            order: Vec::new(),
            frame: Frame {
                mode: FrameMode::Range,
                start: Bound::UnboundedPreceding,
                end: Bound::CurrentRow,
                exclude: Exclusion::None,
            },
            options: 0,
        };
        let kind = ExprKind::Window(Box::new(WindowCall {
            function: call.function.clone(),
            args,
            types: call.types.clone(),
            filter: filter.flatten(),
            window,
            name: named,
        }));
        let column = self.column_of(&Expr::new(kind, TypeId::UNKNOWN, -1), &over);
        let opened = |text: String| text.replacen(" OVER \"?\"", " OVER (?)", 1);
        Column {
            text: opened(column.text),
            bare: opened(column.bare),
            listed: column.listed.map(opened),
            ty: None,
        }
    }

    /// The columns of a table, as a statement calls them that writes it.
    pub(super) fn columns_of(&self, table: &catalog::Table) -> Columns {
        self.of_table(table, self.alias.unwrap_or(&table.name))
    }

    /// The same under another name, as several tables have them.
    pub(super) fn columns_called(&self, table: &catalog::Table, name: &str) -> Columns {
        self.of_table(table, name)
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

/// What a node's conditions are about.
fn scanned(plan: &Plan) -> &Plan {
    match plan {
        Plan::Filter(input, _) => scanned(input),
        plan => plan,
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
            Plan::Update(update) => count(&update.input),
            Plan::Delete(delete) => count(&delete.input),
            Plan::Insert(insert) => {
                let conflict = insert.conflict.as_ref();
                let excluded = conflict.is_some_and(|conflict| conflict.set.is_some());
                1 + usize::from(excluded) + count(&insert.input).max(1)
            }
            Plan::Merge(_) | Plan::With(_) | Plan::Rewritten(_) => 2,
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
