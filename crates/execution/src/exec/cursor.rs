//! The plain cursors: filters, projections, limits, sets.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::RowLock;
use base::memory::Reservation;
use base::{Error, Result, SqlState};
use self_cell::self_cell;

use super::beside::BesideCursor;
use super::distinct::{DistinctCursor, SetCursor};
use super::group::open_groups;
use super::join::JoinCursor;
use super::join_filter::JoinFilter;
use super::measure::{MeasuredCursor, Measuring, Removed};
use super::merge::MergeCursor;
use super::rewritten::RewrittenCursor;
use super::scan::ScanCursor;
use super::shared::{AnewCursor, SharedCursor, WithCursor, WorkingCursor};
use super::sort::SortCursor;
use super::trigger::TransitionCursor;
use super::update::{DeleteCursor, UpdateCursor};
use super::window::WindowCursor;
use super::write::{InsertCursor, LockCursor};
use super::{sequences, Exec};
use crate::exec::program::Evaluate;
use crate::kept::{large_bytes, RowStore};
use crate::spool::SpoolRows;
use catalog::{Catalog, RelationKind};
use functions::{Body, Call, Rows};
use planner::plan::permit::{Permit, PermittedPlan};
use planner::plan::Program;
use planner::plan::{Plan, Row, SetColumn, SetOperation};
use types::{Datum, TypeId};

/// Gives rows, one at a time.
pub trait Cursor {
    /// The next row.
    ///
    /// # Errors
    /// What computing it raises; the cursor is not used after that.
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>>;

    /// As [`Cursor::next`], into a row whose memory is used again; false when there is none. For
    /// who looks at each row and keeps none.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    fn next_into(&mut self, cx: &mut Exec<'_>, row: &mut Row) -> Result<bool> {
        let next = self.next(cx)?;
        Ok(next.map(|next| *row = next).is_some())
    }

    /// Its first row will be wanted, whatever comes before: what it reads of other nodes is asked for now,
    /// where nothing has to be computed for that. It need not.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    fn begin_ahead(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        let _ = cx;
        Ok(())
    }

    /// Begins again, for other rows of enclosing queries; false where it cannot.
    fn rewind(&mut self) -> bool {
        false
    }

    /// Lets it leave out rows that a filter does not pass: nobody wants them. It need not.
    fn restrict(&mut self, filter: &JoinFilter) {
        let _ = filter;
    }

    /// Says that nobody will ask for more than so many rows. It may give more all the same.
    fn at_most(&mut self, rows: u64) {
        let _ = rows;
    }

    /// How many rows it has left out until now.
    fn removed(&self) -> Removed {
        Removed::default()
    }
}

type OpenCursor<'p> = Box<dyn Cursor + 'p>;

self_cell! {
    /// A cursor that keeps its plan.
    pub struct PlanCursor {
        owner: Rc<Plan>,
        #[covariant]
        dependent: OpenCursor,
    }
}

impl PlanCursor {
    /// A cursor over the rows of a part of a plan.
    pub(super) fn open(plan: Rc<Plan>, measures: Measuring<'_>) -> PlanCursor {
        PlanCursor::new(plan, |plan| open(plan, measures))
    }
}

/// A cursor that stays open longer than a call, with what was permitted when it was opened.
pub struct KeptCursor {
    rows: PlanCursor,
    catalog: Arc<Catalog>,
}

impl KeptCursor {
    /// A cursor over the rows of a plan.
    pub fn open(permitted: PermittedPlan<'_>) -> KeptCursor {
        KeptCursor {
            rows: PlanCursor::open(permitted.shared(), None),
            catalog: permitted.catalog().clone(),
        }
    }

    /// Begins again with the first row.
    pub fn restart(&mut self) {
        self.rows = PlanCursor::open(self.rows.borrow_owner().clone(), None);
    }

    /// The rows, and with what they are read.
    pub fn parts(&mut self) -> (&mut PlanCursor, Permit<'_>) {
        (&mut self.rows, Permit::of_open_cursor(&self.catalog))
    }
}

impl Cursor for PlanCursor {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        self.with_dependent_mut(|_, cursor| cursor.next(cx))
    }

    fn next_into(&mut self, cx: &mut Exec<'_>, row: &mut Row) -> Result<bool> {
        self.with_dependent_mut(|_, cursor| cursor.next_into(cx, row))
    }
}

/// A cursor over the rows of a plan, or of a part of one.
pub(super) fn open<'p>(plan: &'p Plan, measures: Measuring<'_>) -> Box<dyn Cursor + 'p> {
    measured(plan, measures, open_node(plan, measures))
}

/// A cursor, or one before it that measures.
fn measured<'p>(
    plan: &Plan,
    measures: Measuring<'_>,
    cursor: Box<dyn Cursor + 'p>,
) -> Box<dyn Cursor + 'p> {
    match measures {
        None => cursor,
        Some(measures) => Box::new(MeasuredCursor::new(plan, measures, cursor)),
    }
}

fn open_node<'p>(plan: &'p Plan, measures: Measuring<'_>) -> Box<dyn Cursor + 'p> {
    match plan {
        Plan::Values(rows) => Box::new(ValuesCursor { rows, at: 0 }),
        Plan::Scan(scan) => Box::new(ScanCursor::new(scan)),
        Plan::System(table, catalog, key) => Box::new(Later::new(move |cx| {
            let key = match key {
                Some((column, value)) => Some((*column, value.eval(cx, &[])?)),
                None => None,
            };
            let relations = cx.relations;
            let rows = match table.kind {
                RelationKind::Sequence => sequences::rows(table, cx)?,
                _ => relations.rows(table, catalog, key, cx)?,
            };
            Ok(RowStore::counted("A relation", rows)?.into())
        })),
        Plan::Beside(parts, ordinality) => Box::new(BesideCursor::new(parts, *ordinality)),
        Plan::Function {
            function,
            args,
            types,
            result,
            width,
            ordinality,
        } => Box::new(FunctionCursor {
            width: *width,
            set: SetCall {
                function: function.0,
                args,
                types,
                result: *result,
            },
            ordinality: *ordinality,
            rows: None,
            number: 0,
        }),
        Plan::Routine {
            call,
            args,
            ordinality,
        } => Box::new(Later::new(move |cx| {
            Ok(super::routine::rows(call, args, *ordinality, cx)?.into())
        })),
        Plan::Filter(input, condition) => Box::new(FilterCursor {
            input: open(input, measures),
            condition,
            removed: Removed::default(),
        }),
        Plan::Once(input, condition) => Box::new(OnceCursor {
            input: open(input, measures),
            condition,
            holds: None,
        }),
        Plan::Project(input, columns) => Box::new(ProjectCursor {
            input: open(input, measures),
            columns,
            row: Row::new(),
            large: Reservation::of("A row"),
        }),
        Plan::ProjectSet(input, columns) => Box::new(ProjectSetCursor {
            input: open(input, measures),
            columns,
            row: Vec::new(),
            sets: Vec::new(),
        }),
        Plan::Join(join) => Box::new(JoinCursor::new(join, measures)),
        Plan::Aggregate { .. } => open_groups(plan, measures),
        Plan::Window(window) => Box::new(WindowCursor::new(window, measures)),
        Plan::Sort(input, keys) => Box::new(SortCursor::new(plan, input, keys)),
        Plan::Distinct(input, columns) => {
            Box::new(DistinctCursor::new(open(input, measures), columns))
        }
        Plan::Trim(input, width) => Box::new(TrimCursor {
            input: open(input, measures),
            width: *width,
        }),
        Plan::Limit(input, limit, offset, ties) => Box::new(LimitCursor {
            input: open(input, measures),
            limit: limit.as_ref(),
            offset: offset.as_ref(),
            ties,
            left: None,
            last: None,
        }),
        Plan::SetOperation(operation, all, parts, types) => {
            let (operation, all) = (*operation, *all);
            if operation == SetOperation::Union && all {
                return Box::new(AppendCursor {
                    inputs: parts
                        .iter()
                        .rev()
                        .map(|part| open(part, measures))
                        .collect(),
                    has_begun: false,
                });
            }
            Box::new(SetCursor::new(operation, all, parts, types))
        }
        Plan::Shared(number, plan) => Box::new(SharedCursor::new(*number, plan)),
        Plan::Recursive(_) => Box::new(Later::new(|_| {
            Err(Error::internal("a recursion that is not shared"))
        })),
        Plan::Working(number) => Box::new(WorkingCursor::new(*number)),
        Plan::Transition(is_new) => Box::new(TransitionCursor::new(*is_new)),
        Plan::Anew(inside, input) => Box::new(AnewCursor::new(inside, input, measures)),
        Plan::With(with) => Box::new(WithCursor::new(with, measures)),
        Plan::Lock(input, tables) => Box::new(LockCursor::new(input, tables, measures)),
        Plan::Insert(insert) => Box::new(InsertCursor::new(insert, measures)),
        Plan::Update(update) => Box::new(UpdateCursor::new(update, measures)),
        Plan::Delete(delete) => Box::new(DeleteCursor::new(delete, measures)),
        Plan::Merge(merge) => Box::new(MergeCursor::new(merge, measures)),
        Plan::Rewritten(rewritten) => Box::new(RewrittenCursor::new(rewritten)),
    }
}

/// A cursor over the rows of a plan whose every row is then locked at this strength.
pub(super) fn open_to_lock<'p>(
    plan: &'p Plan,
    strength: RowLock,
    measures: Measuring<'_>,
) -> Box<dyn Cursor + 'p> {
    match plan {
        // A condition may leave out the row, which is then not to be locked.
        Plan::Scan(scan) if scan.filter.is_none() => {
            let cursor = ScanCursor::to_lock(scan, strength);
            measured(plan, measures, Box::new(cursor))
        }
        _ => open(plan, measures),
    }
}

struct ValuesCursor<'p> {
    rows: &'p [Vec<Program>],
    at: usize,
}

impl Cursor for ValuesCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let Some(row) = self.rows.get(self.at) else {
            return Ok(None);
        };
        self.at += 1;
        cx.tick()?;
        row.iter()
            .map(|value| value.eval(cx, &[]))
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// The rows of its input, if a condition holds that is the same for all of them.
struct OnceCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    condition: &'p Program,
    holds: Option<bool>,
}

impl OnceCursor<'_> {
    fn holds(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        if let Some(holds) = self.holds {
            return Ok(holds);
        }
        let holds = self.condition.test(cx, &[])?;
        self.holds = Some(holds);
        Ok(holds)
    }
}

impl Cursor for OnceCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        match self.holds(cx)? {
            true => self.input.next(cx),
            false => Ok(None),
        }
    }

    fn next_into(&mut self, cx: &mut Exec<'_>, row: &mut Row) -> Result<bool> {
        Ok(self.holds(cx)? && self.input.next_into(cx, row)?)
    }

    fn restrict(&mut self, filter: &JoinFilter) {
        self.input.restrict(filter);
    }
}

/// Rows that are computed all at once when the first is asked for.
struct Later<F> {
    compute: Option<F>,
    rows: Option<SpoolRows>,
}

impl<F: FnOnce(&mut Exec<'_>) -> Result<SpoolRows>> Later<F> {
    fn new(compute: F) -> Later<F> {
        Later {
            compute: Some(compute),
            rows: None,
        }
    }
}

impl<F: FnOnce(&mut Exec<'_>) -> Result<SpoolRows>> Cursor for Later<F> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if let Some(compute) = self.compute.take() {
            self.rows = Some(compute(cx)?);
        }
        match &mut self.rows {
            Some(rows) => rows.next_row(),
            None => Ok(None),
        }
    }
}

/// A call of a set-returning function.
struct SetCall<'p> {
    function: &'static functions::Function,
    args: &'p [Program],
    types: &'p Rc<[TypeId]>,
    result: TypeId,
}

impl SetCall<'_> {
    fn start(&self, cx: &mut Exec<'_>, row: &[Datum]) -> Result<Rows> {
        let args = self
            .args
            .iter()
            .map(|arg| arg.eval(cx, row))
            .collect::<Result<Vec<_>>>()?;
        if self.function.strict && args.iter().any(Datum::is_null) {
            return Ok(Box::new(std::iter::empty()));
        }
        let call = Call {
            context: cx.context,
            argument_types: self.types,
            result: self.result,
        };
        match self.function.body {
            Body::Set(set) => set(&call, &args),
            Body::Records(records) => (records.rows)(&call, &args),
            Body::Native(native) => {
                let value = native(&call, &args);
                Ok(Box::new(std::iter::once(value)))
            }
            Body::Session(which) => {
                let value = super::session_functions::call(cx, self.function, which, &args);
                match value {
                    Ok(Datum::Array(array)) if which.gives_rows() => {
                        let elements = array.elements.clone();
                        Ok(Box::new(elements.into_iter().map(Ok)))
                    }
                    value => Ok(Box::new(std::iter::once(value))),
                }
            }
        }
    }
}

struct FunctionCursor<'p> {
    set: SetCall<'p>,
    width: usize,
    ordinality: bool,
    rows: Option<Rows>,
    number: i64,
}

impl Cursor for FunctionCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if self.rows.is_none() {
            self.rows = Some(self.set.start(cx, &[])?);
        }
        cx.tick()?;
        let Some(value) = self.rows.as_mut().and_then(Iterator::next) else {
            return Ok(None);
        };
        let mut row = match value? {
            Datum::Record(record) if self.set.result == TypeId::RECORD || self.width > 0 => {
                record.values.clone()
            }
            Datum::Null if self.width > 0 => vec![Datum::Null; self.width],
            value => vec![value],
        };
        if self.ordinality {
            self.number += 1;
            row.push(Datum::Int8(self.number));
        }
        Ok(Some(row))
    }
}

struct FilterCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    condition: &'p Program,
    removed: Removed,
}

impl Cursor for FilterCursor<'_> {
    fn begin_ahead(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        self.input.begin_ahead(cx)
    }

    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let mut row = Row::new();
        Ok(self.next_into(cx, &mut row)?.then_some(row))
    }

    fn next_into(&mut self, cx: &mut Exec<'_>, row: &mut Row) -> Result<bool> {
        while self.input.next_into(cx, row)? {
            if self.condition.test(cx, row)? {
                return Ok(true);
            }
            self.removed.by_condition += 1;
        }
        Ok(false)
    }

    fn restrict(&mut self, filter: &JoinFilter) {
        if self.condition.is_settled() {
            self.input.restrict(filter);
        }
    }

    fn removed(&self) -> Removed {
        self.removed
    }
}

struct ProjectCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    columns: &'p [Program],
    row: Row,
    /// The long values of the row that it has made last.
    large: Reservation,
}

impl Cursor for ProjectCursor<'_> {
    fn begin_ahead(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        self.input.begin_ahead(cx)
    }

    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let mut out = Row::new();
        Ok(self.next_into(cx, &mut out)?.then_some(out))
    }

    fn next_into(&mut self, cx: &mut Exec<'_>, out: &mut Row) -> Result<bool> {
        if !self.input.next_into(cx, &mut self.row)? {
            return Ok(false);
        }
        out.clear();
        out.reserve(self.columns.len());
        if self.large.bytes() > 0 {
            self.large.shrink(usize::MAX);
        }
        for column in self.columns {
            let value = column.eval(cx, &self.row)?;
            match large_bytes(&value) {
                0 => {}
                bytes => self.large.grow(bytes)?,
            }
            out.push(value);
        }
        Ok(true)
    }

    fn at_most(&mut self, rows: u64) {
        self.input.at_most(rows);
    }

    fn restrict(&mut self, filter: &JoinFilter) {
        // Whoever counts the rows that it is computed for would miss some.
        let is_settled = self.columns.iter().all(Program::is_settled);
        let of_input = filter.moved(|place| self.columns.get(place)?.as_column());
        if let Some(filter) = of_input.filter(|_| is_settled) {
            self.input.restrict(&filter);
        }
    }
}

struct ProjectSetCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    columns: &'p [SetColumn],
    row: Row,
    /// The sets of the current input row, in the order of their columns; empty between rows.
    sets: Vec<Rows>,
}

impl Cursor for ProjectSetCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        loop {
            if self.sets.is_empty() {
                let Some(row) = self.input.next(cx)? else {
                    return Ok(None);
                };
                self.row = row;
                for column in self.columns {
                    if let SetColumn::Set(function, args, types, result) = column {
                        let call = SetCall {
                            function: function.0,
                            args,
                            types,
                            result: *result,
                        };
                        self.sets.push(call.start(cx, &self.row)?);
                    }
                    if let SetColumn::Routine(call, args) = column {
                        let values = super::routine::values(call, args, &self.row, cx)?;
                        self.sets.push(Box::new(values.into_iter().map(Ok)));
                    }
                }
            }
            cx.tick()?;
            // Sets go on in step; one that has ended gives NULL until all have.
            let values = self
                .sets
                .iter_mut()
                .map(|set| set.next().transpose())
                .collect::<Result<Vec<_>>>()?;
            if values.iter().all(Option::is_none) {
                self.sets.clear();
                continue;
            }
            let mut values = values.into_iter();
            let mut out = Vec::with_capacity(self.columns.len());
            for column in self.columns {
                out.push(match column {
                    SetColumn::One(program) => program.eval(cx, &self.row)?,
                    SetColumn::Set(..) | SetColumn::Routine(..) => {
                        values.next().flatten().unwrap_or(Datum::Null)
                    }
                });
            }
            return Ok(Some(out));
        }
    }
}

struct TrimCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    width: usize,
}

impl Cursor for TrimCursor<'_> {
    fn begin_ahead(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        self.input.begin_ahead(cx)
    }

    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let mut row = self.input.next(cx)?;
        if let Some(row) = &mut row {
            row.truncate(self.width);
        }
        Ok(row)
    }

    fn at_most(&mut self, rows: u64) {
        self.input.at_most(rows);
    }
}

struct LimitCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    limit: Option<&'p Program>,
    offset: Option<&'p Program>,
    /// What rows behind the last one must have in common with it to be given too.
    ties: &'p [(Program, TypeId)],
    left: Option<u64>,
    /// The values of the last one.
    last: Option<Vec<Datum>>,
}

impl LimitCursor<'_> {
    fn start(&mut self, cx: &mut Exec<'_>) -> Result<u64> {
        let limit = match self.limit {
            Some(limit) => count(limit, cx, "LIMIT", "2201W")?,
            None => None,
        };
        let offset = match self.offset {
            Some(offset) => count(offset, cx, "OFFSET", "2201X")?,
            None => None,
        };
        let limit = limit.unwrap_or(u64::MAX);
        if self.ties.is_empty() {
            self.input
                .at_most(limit.saturating_add(offset.unwrap_or(0)));
        }
        if limit > 0 {
            for _ in 0..offset.unwrap_or(0) {
                if self.input.next(cx)?.is_none() {
                    return Ok(0);
                }
            }
        }
        Ok(limit)
    }
}

fn count(program: &Program, cx: &mut Exec<'_>, what: &str, state: &str) -> Result<Option<u64>> {
    match program.eval(cx, &[])?.as_i64() {
        None => Ok(None),
        Some(value) => u64::try_from(value)
            .map(Some)
            .map_err(|_| Error::new(SqlState::of(state), format!("{what} must not be negative"))),
    }
}

impl Cursor for LimitCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let left = match self.left {
            Some(left) => left,
            None => self.start(cx)?,
        };
        self.left = Some(left.saturating_sub(1));
        match left {
            0 if self.last.is_some() => self.tie(cx),
            0 => Ok(None),
            1 if !self.ties.is_empty() => {
                let row = self.input.next(cx)?;
                self.last = match &row {
                    Some(row) => Some(values(self.ties, row, cx)?),
                    None => None,
                };
                Ok(row)
            }
            _ => self.input.next(cx),
        }
    }
}

fn values(programs: &[(Program, TypeId)], row: &[Datum], cx: &mut Exec<'_>) -> Result<Vec<Datum>> {
    let each = programs.iter();
    each.map(|(program, _)| program.eval(cx, row)).collect()
}

impl LimitCursor<'_> {
    /// The next row, if it is equal to the last one that was asked for.
    fn tie(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let Some(row) = self.input.next(cx)? else {
            self.last = None;
            return Ok(None);
        };
        let own = values(self.ties, &row, cx)?;
        let last = self.last.as_deref().unwrap_or_default();
        let mut pairs = own.iter().zip(last).zip(self.ties);
        match pairs.all(|((own, last), (_, ty))| types::equal(*ty, own, last)) {
            true => Ok(Some(row)),
            false => {
                self.last = None;
                Ok(None)
            }
        }
    }
}

struct AppendCursor<'p> {
    /// What is left, the next last.
    inputs: Vec<Box<dyn Cursor + 'p>>,
    has_begun: bool,
}

impl AppendCursor<'_> {
    /// Other nodes read what they have of it all at once.
    fn begin(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            for input in self.inputs.iter_mut().rev() {
                input.begin_ahead(cx)?;
            }
        }
        Ok(())
    }
}

impl Cursor for AppendCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        self.begin(cx)?;
        while let Some(input) = self.inputs.last_mut() {
            if let Some(row) = input.next(cx)? {
                return Ok(Some(row));
            }
            self.inputs.pop();
        }
        Ok(None)
    }

    fn next_into(&mut self, cx: &mut Exec<'_>, row: &mut Row) -> Result<bool> {
        self.begin(cx)?;
        while let Some(input) = self.inputs.last_mut() {
            if input.next_into(cx, row)? {
                return Ok(true);
            }
            self.inputs.pop();
        }
        Ok(false)
    }

    fn restrict(&mut self, filter: &JoinFilter) {
        for input in &mut self.inputs {
            input.restrict(filter);
        }
    }
}
