//! DECLARE, FETCH, MOVE, CLOSE.
//!
//! A cursor stands before the first row, on a row, or behind the last one:
//!
//! ```text
//! position  0   1   2   3   4 = behind the last of three rows
//!           │ r1  r2  r3 │
//! ```
//! While it only goes forward its query gives rows as they are asked for ([`super::portal`]). Where
//! it first goes back, the query is run again from its start under the same view and its rows are
//! kept from then on. WITH HOLD keeps all rows when the transaction commits. What is kept goes to scratch
//! space beyond `work_mem`.
//!
//! # What it leaves out
//! BINARY cursors (0A000). WHERE CURRENT OF ([`execution::state::cursor`]) of a cursor over a partitioned
//! table that locks no rows, and of a portal that no DECLARE has made (24000).

use std::rc::Rc;

use base::engine::RowLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{DeclareCursorStmt, FetchDirection, FetchStmt};

use super::portal::Running;
use super::run::Output;
use super::statements::inner;
use super::transaction::{Open, State};
use super::utility::tag;
use super::{Column, CommandTag, Executed, Param, Portal, Prepared, Progress, Session, Sink};
use execution::spool::{RowSpool, SpoolReader};
use execution::state::prepared::Planned;
use execution::state::CursorInfo;
use planner::plan::Plan;
use syntax::parser::Statement;
use types::{Datum, TypeId};

/// What a cursor takes beside its rows, about.
const CURSOR_BYTES: usize = 4 << 10;

/// The bits of a DECLARE's options.
mod option {
    pub const BINARY: i32 = 0x1;
    pub const SCROLL: i32 = 0x2;
    pub const NO_SCROLL: i32 = 0x4;
    pub const INSENSITIVE: i32 = 0x8;
    pub const HOLD: i32 = 0x20;
}

/// What the rows of a cursor are.
#[derive(Debug)]
pub(super) struct Shape {
    pub columns: Vec<Column>,
    pub types: Vec<TypeId>,
}

/// A cursor.
#[derive(Debug)]
pub(super) struct NamedCursor {
    info: CursorInfo,
    shape: Rc<Shape>,
    /// What gives further rows; none once the rows are held for good.
    query: Option<Running>,
    /// The first rows, as many as were read, if it may have to go back.
    kept: Option<RowSpool>,
    /// Where it is in those of them that are in scratch space.
    reader: Option<Box<SpoolReader>>,
    /// Rows that were read from the query.
    read: u64,
    /// Whether there are no more than that.
    ended: bool,
    /// Where it stands.
    position: u64,
    /// How many savepoints there were when it was declared ([`Open::depth`](super::transaction::Open::depth)).
    savepoints: usize,
    /// A loop goes over it: it cannot be closed, and outlives the end of the transaction.
    pinned: bool,
    /// It failed, and is of no use any more.
    failed: bool,
}

impl NamedCursor {
    /// What stands behind the columns of the row that it is on, if it is on one.
    fn hidden(&mut self) -> Option<Vec<Datum>> {
        if self.info.tables.is_empty() || self.position == 0 || self.position > self.read {
            return None;
        }
        let Some(kept) = &self.kept else {
            return self.query.as_ref().map(|query| query.hidden().to_vec());
        };
        let row = kept.get(self.position as usize - 1, &mut self.reader);
        let row = row.ok().flatten()?;
        row.get(self.shape.types.len()..).map(<[Datum]>::to_vec)
    }

    /// Once moving has failed, it uses nothing any more.
    fn note(&mut self, moved: &Result<u64>) {
        if moved.is_err() {
            self.failed = true;
            self.query.iter_mut().for_each(Running::let_go);
        }
    }
}

/// Where rows go that are only moved over.
fn given(sink: Option<&mut dyn Sink>) -> Output<'_> {
    match sink {
        Some(sink) => Output::Sink(sink),
        None => Output::Nowhere,
    }
}

fn forward_only() -> Error {
    Error::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "cursor can only scan forward",
    )
    .with_hint("Declare it with SCROLL option to enable backward scan.")
}

fn duplicate(name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_CURSOR,
        format!("cursor \"{name}\" already exists"),
    )
}

fn missing(name: &str) -> Error {
    Error::new(
        SqlState::INVALID_CURSOR_NAME,
        format!("cursor \"{name}\" does not exist"),
    )
}

impl Session {
    /// DECLARE.
    pub(super) fn declare_cursor(
        &mut self,
        statement: &Statement,
        declare: &DeclareCursorStmt,
        params: &[Datum],
        types: &[TypeId],
    ) -> Result<CommandTag> {
        let name = &declare.portalname;
        let holdable = declare.options & option::HOLD != 0;
        if declare.options & option::BINARY != 0 {
            return Err(Error::unsupported("DECLARE BINARY CURSOR"));
        }
        // A function runs inside of a transaction, whoever has begun that.
        if !holdable && !matches!(self.state, State::Block) && self.nested.is_empty() {
            return Err(Error::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        if holdable {
            let settings = &self.shared.settings;
            settings.check_unrestricted("create a cursor WITH HOLD")?;
        }
        let inner = cursor_query(statement)?;
        let plan = |session: &mut Session| {
            let planned = session.plan_cursor(&inner, types)?;
            Ok(Rc::new(planned))
        };
        let planned = plan(self)?;
        check_declaration(declare, &planned)?;
        let scrollable = match declare.options {
            options if options & option::NO_SCROLL != 0 => false,
            options if options & option::SCROLL != 0 => true,
            _ => planned
                .bound
                .as_ref()
                .is_some_and(|bound| scrolls(bound.plan.plan())),
        };
        if self.shared.cursors.contains_key(name) {
            return Err(duplicate(name));
        }
        let planned = self.settle_plan(planned, plan)?;
        let info = CursorInfo {
            name: name.clone(),
            statement: statement.text().to_string(),
            holdable,
            scrollable,
            created: self.eval.statement_start,
            ..CursorInfo::default()
        };
        self.open_cursor(info, planned, params.into())?;
        Ok(tag("DECLARE CURSOR"))
    }

    /// Begins the query of a cursor whose locks are taken.
    pub(super) fn open_cursor(
        &mut self,
        mut info: CursorInfo,
        planned: Rc<Planned>,
        params: Rc<[Datum]>,
    ) -> Result<()> {
        if let Some(bound) = &planned.bound {
            let plan = bound.plan.plan();
            info.locks = row_lock_of(plan).is_some();
            if info.locks || is_scan(plan) {
                info.tables.clone_from(&bound.cursor_tables);
            }
        }
        let count = self.cursors.len() + 1;
        self.cursor_memory.set(count * CURSOR_BYTES)?;
        let begun = self.begin_counted_at(&planned, false)?;
        let mut query = self.start_query(planned.clone(), params)?;
        query.counted = begun;
        let savepoints = self.open.as_ref().map_or(0, Open::depth);
        let name = info.name.clone();
        let cursor = NamedCursor {
            info: info.clone(),
            shape: Rc::new(Shape {
                columns: planned.columns.clone().unwrap_or_default(),
                types: planned.types.clone(),
            }),
            query: Some(query),
            kept: None,
            reader: None,
            read: 0,
            ended: false,
            position: 0,
            savepoints,
            pinned: false,
            failed: false,
        };
        self.shared.cursors.insert(name.clone(), info);
        self.cursors.insert(name, cursor);
        Ok(())
    }

    /// Gives a prepared statement its parameters and the portal a name. The portal of a query is a
    /// cursor, which SQL's FETCH, MOVE and CLOSE know too; it sees what there is now.
    pub fn bind_named(
        &mut self,
        name: &str,
        prepared: &Rc<Prepared>,
        params: &[Param<'_>],
    ) -> Result<Portal> {
        self.begin_message();
        let outcome = self.bind_named_inner(name, prepared, params);
        if outcome.is_err() {
            self.failed();
        }
        outcome
    }

    fn bind_named_inner(
        &mut self,
        name: &str,
        prepared: &Rc<Prepared>,
        params: &[Param<'_>],
    ) -> Result<Portal> {
        let mut portal = self.bind_inner(name, prepared, params)?;
        if self.cursors.contains_key(name) {
            return Err(duplicate(name));
        }
        let Some(statement) = prepared.statement() else {
            return Ok(portal);
        };
        let planned = self.current_plan(prepared)?;
        let is_query = planned.bound.as_ref().is_some_and(|bound| !bound.writes);
        if !is_query || planned.columns.is_none() {
            return Ok(portal);
        }
        let planned = self.settle_plan(planned, |session| session.current_plan(prepared))?;
        let info = CursorInfo {
            name: name.to_owned(),
            statement: statement.text().to_string(),
            holdable: false,
            scrollable: false,
            created: self.eval.statement_start,
            ..CursorInfo::default()
        };
        self.open_cursor(info, planned, portal.params.as_slice().into())?;
        portal.progress = Progress::Cursor(name.to_owned());
        Ok(portal)
    }

    /// The cursor of that name as a portal.
    pub fn cursor_portal(&self, name: &str) -> Option<Portal> {
        let cursor = self.cursors.get(name)?;
        Some(Portal {
            prepared: Rc::new(Prepared::of_columns(cursor.shape.columns.clone())),
            params: Default::default(),
            progress: Progress::Cursor(name.to_owned()),
        })
    }

    /// Whether a portal can still be run: a cursor may have been closed by SQL.
    pub fn is_open(&self, portal: &Portal) -> bool {
        match &portal.progress {
            Progress::Cursor(name) => self.cursors.contains_key(name),
            _ => true,
        }
    }

    /// Closes the cursor of that name, if there is one.
    pub fn close_portal(&mut self, name: &str) {
        self.shared.cursors.remove(name);
        self.cursors.remove(name);
        self.give_cursor_memory_back();
    }

    fn give_cursor_memory_back(&mut self) {
        let kept = self.cursors.len() * CURSOR_BYTES;
        let counted = self.cursor_memory.bytes();
        self.cursor_memory.shrink(counted.saturating_sub(kept));
    }

    /// Execute of a cursor.
    pub(super) fn execute_cursor(
        &mut self,
        name: &str,
        max_rows: u64,
        sink: &mut dyn Sink,
    ) -> Result<Executed> {
        let most = if max_rows == 0 { u64::MAX } else { max_rows };
        let mut cursor = self.take_cursor(name)?;
        let moved = self.forward(&mut cursor, most, Some(sink));
        self.moved(name, cursor, &moved);
        let rows = moved?;
        if rows == most {
            return Ok(Executed::Suspended);
        }
        Ok(Executed::Complete(Some(CommandTag {
            name: "SELECT",
            rows: Some(rows),
        })))
    }

    /// Puts back a cursor that has been moved, and notes the row that it is on.
    fn moved(&mut self, name: &str, mut cursor: NamedCursor, moved: &Result<u64>) {
        cursor.note(moved);
        let row = cursor.hidden();
        if let Some(info) = self.shared.cursors.get_mut(name) {
            info.row = row;
        }
        self.cursors.insert(name.to_owned(), cursor);
    }

    /// Takes a cursor out, to be put back once it has moved.
    fn take_cursor(&mut self, name: &str) -> Result<NamedCursor> {
        match self.cursors.get(name) {
            None => Err(missing(name)),
            Some(cursor) if cursor.failed => Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("portal \"{name}\" cannot be run"),
            )),
            Some(_) => self.cursors.remove(name).ok_or_else(|| missing(name)),
        }
    }

    /// The columns that FETCH returns.
    ///
    /// # Errors
    /// 34000 for a cursor that is not there.
    pub(super) fn fetch_columns(&self, fetch: &FetchStmt) -> Result<Option<Vec<Column>>> {
        let name = &fetch.portalname;
        let cursor = self.cursors.get(name).ok_or_else(|| missing(name))?;
        Ok((!fetch.ismove).then(|| cursor.shape.columns.clone()))
    }

    /// FETCH and MOVE.
    pub(super) fn fetch(&mut self, fetch: &FetchStmt, sink: &mut dyn Sink) -> Result<CommandTag> {
        let name = &fetch.portalname;
        let mut cursor = self.take_cursor(name)?;
        let to = (!fetch.ismove).then_some(sink);
        let moved = self.go(&mut cursor, fetch, to);
        self.moved(name, cursor, &moved);
        Ok(CommandTag {
            name: if fetch.ismove { "MOVE" } else { "FETCH" },
            rows: Some(moved?),
        })
    }

    /// Moves a cursor and gives the rows it comes over; says how many these are.
    fn go(
        &mut self,
        cursor: &mut NamedCursor,
        fetch: &FetchStmt,
        to: Option<&mut dyn Sink>,
    ) -> Result<u64> {
        use FetchDirection as Direction;
        let direction = Direction::try_from(fetch.direction).unwrap_or(Direction::FetchForward);
        let count = fetch.how_many;
        let many = count.unsigned_abs();
        match direction {
            Direction::FetchForward if count > 0 => self.forward(cursor, many, to),
            Direction::FetchBackward if count < 0 => self.forward(cursor, many, to),
            Direction::FetchForward if count < 0 => self.backward(cursor, many, to),
            Direction::FetchBackward if count > 0 => self.backward(cursor, many, to),
            Direction::FetchRelative if count > 0 => {
                self.forward(cursor, many - 1, None)?;
                self.forward(cursor, 1, to)
            }
            Direction::FetchRelative if count < 0 => {
                self.backward(cursor, many - 1, None)?;
                self.backward(cursor, 1, to)
            }
            Direction::FetchAbsolute => self.absolute(cursor, count, to),
            _ => self.again(cursor, to),
        }
    }

    fn absolute(
        &mut self,
        cursor: &mut NamedCursor,
        count: i64,
        to: Option<&mut dyn Sink>,
    ) -> Result<u64> {
        if count < 0 {
            self.forward(cursor, u64::MAX, None)?;
            self.backward(cursor, count.unsigned_abs() - 1, None)?;
            return self.backward(cursor, 1, to);
        }
        let wanted = count.unsigned_abs();
        if wanted <= cursor.position {
            if cursor.position > 0 {
                self.keep_rows(cursor)?;
            }
            cursor.position = 0;
        }
        if wanted == 0 {
            return Ok(0);
        }
        let skipped = wanted - cursor.position - 1;
        self.forward(cursor, skipped, None)?;
        self.forward(cursor, 1, to)
    }

    /// The row that the cursor stands on.
    fn again(&mut self, cursor: &mut NamedCursor, to: Option<&mut dyn Sink>) -> Result<u64> {
        let behind = cursor.ended && cursor.position > cursor.read;
        if cursor.position == 0 || behind {
            return Ok(0);
        }
        if to.is_none() {
            return Ok(1);
        }
        self.keep_rows(cursor)?;
        cursor.position -= 1;
        self.forward(cursor, 1, to)
    }

    fn forward(
        &mut self,
        cursor: &mut NamedCursor,
        count: u64,
        mut to: Option<&mut dyn Sink>,
    ) -> Result<u64> {
        let mut left = count;
        // First what is kept, then what the query still has.
        let kept = cursor.kept.as_ref().map_or(0, RowSpool::len);
        let start = (cursor.position as usize).min(kept);
        let end = start.saturating_add(usize::try_from(left).unwrap_or(usize::MAX));
        let rows = start..end.min(kept);
        let passed = rows.len() as u64;
        if let Some(sink) = to.as_deref_mut() {
            self.give_kept(cursor, rows, sink)?;
        }
        cursor.position += passed;
        left -= passed;
        if left > 0 && !cursor.ended {
            let read = self.read_on(cursor, left, to)?;
            cursor.position += read;
            left -= read;
        }
        if left > 0 {
            cursor.position = cursor.read + 1;
        }
        Ok(count - left)
    }

    /// Reads rows from the query, and keeps them if the cursor keeps rows.
    fn read_on(
        &mut self,
        cursor: &mut NamedCursor,
        most: u64,
        to: Option<&mut dyn Sink>,
    ) -> Result<u64> {
        let Some(query) = &mut cursor.query else {
            cursor.ended = true;
            return Ok(0);
        };
        let read = match &mut cursor.kept {
            None => self.read_query(query, most, &mut given(to))?,
            Some(kept) => {
                let before = kept.len();
                let read = self.read_query(query, most, &mut Output::Spool(kept))?;
                let rows = before..kept.len();
                if let Some(sink) = to {
                    self.give_kept(cursor, rows, sink)?;
                }
                read
            }
        };
        cursor.read += read.rows;
        cursor.ended |= read.ended;
        Ok(read.rows)
    }

    fn backward(
        &mut self,
        cursor: &mut NamedCursor,
        count: u64,
        to: Option<&mut dyn Sink>,
    ) -> Result<u64> {
        if count == 0 {
            return Ok(0);
        }
        self.keep_rows(cursor)?;
        let before = cursor.position.saturating_sub(1);
        let moved = before.min(count);
        if let Some(sink) = to {
            let rows = (before - moved) as usize..before as usize;
            self.give_kept(cursor, rows.rev(), sink)?;
        }
        cursor.position = match moved < count {
            true => 0,
            false => cursor.position - moved,
        };
        Ok(moved)
    }

    /// Gives rows of those that it keeps, by their numbers.
    fn give_kept(
        &mut self,
        cursor: &mut NamedCursor,
        numbers: impl Iterator<Item = usize>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        for number in numbers {
            let kept = cursor.kept.as_ref();
            let row = kept.map(|kept| kept.get(number, &mut cursor.reader));
            let Some(row) = row.transpose()?.flatten() else {
                break;
            };
            self.give_rows(std::slice::from_ref(&row), &cursor.shape.types, sink)?;
        }
        Ok(())
    }

    fn no_rows(&self) -> RowSpool {
        RowSpool::new(self.shared.spill(), "A cursor")
    }

    /// From now on the cursor keeps the rows that it has read.
    fn keep_rows(&mut self, cursor: &mut NamedCursor) -> Result<()> {
        if !cursor.info.scrollable {
            return Err(forward_only());
        }
        if cursor.kept.is_some() {
            return Ok(());
        }
        let mut kept = self.no_rows();
        if let Some(query) = &mut cursor.query {
            query.restart();
            self.read_query(query, cursor.read, &mut Output::Spool(&mut kept))?;
        }
        cursor.kept = Some(kept);
        Ok(())
    }

    /// CLOSE; without a name, all.
    pub(super) fn close_cursor(&mut self, name: &str) -> Result<CommandTag> {
        if name.is_empty() {
            self.drop_cursors(|_| true);
            return Ok(tag("CLOSE CURSOR ALL"));
        }
        match self.cursors.get(name) {
            None => return Err(missing(name)),
            Some(cursor) if cursor.pinned => {
                return Err(Error::new(
                    SqlState::INVALID_CURSOR_STATE,
                    format!("cannot drop pinned portal \"{name}\""),
                ))
            }
            Some(_) => {}
        }
        self.close_portal(name);
        Ok(tag("CLOSE CURSOR"))
    }

    /// A loop goes over the cursor of that name, or does no longer.
    pub(super) fn pin_cursor(&mut self, name: &str, pinned: bool) {
        if let Some(cursor) = self.cursors.get_mut(name) {
            cursor.pinned = pinned;
        }
    }

    /// What a cursor's rows are.
    ///
    /// # Errors
    /// 34000 for a cursor that is not there.
    pub(super) fn cursor_shape(&self, name: &str) -> Result<Rc<Shape>> {
        let cursor = self.cursors.get(name).ok_or_else(|| missing(name))?;
        Ok(cursor.shape.clone())
    }

    /// A name that no cursor has.
    pub(super) fn new_cursor_name(&mut self) -> String {
        loop {
            self.cursors_named += 1;
            let name = format!("<unnamed portal {}>", self.cursors_named);
            if !self.cursors.contains_key(&name) {
                return name;
            }
        }
    }

    fn drop_cursors(&mut self, gone: impl Fn(&NamedCursor) -> bool) {
        if self.cursors.is_empty() {
            return;
        }
        self.cursors.retain(|_, cursor| !gone(cursor));
        let cursors = &self.cursors;
        self.shared
            .cursors
            .retain(|name, _| cursors.contains_key(name));
        self.give_cursor_memory_back();
    }

    /// Whether the transaction has made a cursor that is to outlive it.
    pub(super) fn has_new_holdable_cursor(&self) -> bool {
        let mut cursors = self.cursors.values();
        cursors.any(|cursor| cursor.info.holdable && cursor.query.is_some())
    }

    /// The transaction is about to commit: what is to be held is read to its end.
    pub(super) fn hold_cursors(&mut self) -> Result<()> {
        if self.cursors.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = self
            .cursors
            .iter()
            .filter(|(_, cursor)| cursor.info.holdable && cursor.query.is_some())
            .map(|(name, _)| name.clone())
            .collect();
        self.hold_each(names)
    }

    /// The transaction is about to end inside of loops over cursors: those are read to their end.
    pub(super) fn hold_pinned_cursors(&mut self) -> Result<()> {
        let pinned = self.cursors.iter().filter(|(_, cursor)| cursor.pinned);
        let names = pinned.map(|(name, _)| name.clone()).collect();
        self.hold_each(names)
    }

    fn hold_each(&mut self, names: Vec<String>) -> Result<()> {
        for name in names {
            let Some(mut cursor) = self.cursors.remove(&name) else {
                continue;
            };
            let held = self.hold(&mut cursor);
            self.cursors.insert(name, cursor);
            held?;
        }
        Ok(())
    }

    fn hold(&mut self, cursor: &mut NamedCursor) -> Result<()> {
        if cursor.failed || cursor.query.is_none() {
            return Ok(());
        }
        if cursor.kept.is_none() {
            if cursor.info.scrollable {
                self.keep_rows(cursor)?;
            } else {
                // What it has passed it never comes back to.
                cursor.position -= cursor.read.min(cursor.position);
                cursor.read = 0;
                cursor.kept = Some(self.no_rows());
            }
        }
        if !cursor.ended {
            self.read_on(cursor, u64::MAX, None)?;
        }
        cursor.query = None;
        cursor.ended = true;
        if let Some(info) = self.shared.cursors.get_mut(&cursor.info.name) {
            info.held = true;
        }
        Ok(())
    }

    /// The transaction has ended: only held cursors are left.
    pub(super) fn end_cursors(&mut self) {
        self.drop_cursors(|cursor| cursor.query.is_some());
    }

    /// A savepoint was gone back to, so that so many are left, itself included.
    pub(super) fn roll_back_cursors(&mut self, savepoints: usize) {
        self.drop_cursors(|cursor| cursor.query.is_some() && cursor.savepoints >= savepoints);
    }

    /// Savepoints were released, so that so many are left.
    pub(super) fn release_cursors(&mut self, savepoints: usize) {
        for cursor in self.cursors.values_mut() {
            cursor.savepoints = cursor.savepoints.min(savepoints);
        }
    }
}

/// The query of a DECLARE.
pub(super) fn cursor_query(statement: &Statement) -> Result<Statement> {
    let inner = statement.inner(inner);
    inner.ok_or_else(|| Error::internal("DECLARE of nothing"))
}

fn check_declaration(declare: &DeclareCursorStmt, planned: &Planned) -> Result<()> {
    let both = option::SCROLL | option::NO_SCROLL;
    if declare.options & both == both {
        return Err(Error::new(
            SqlState::INVALID_CURSOR_DEFINITION,
            "cannot specify both SCROLL and NO SCROLL",
        ));
    }
    let Some(bound) = &planned.bound else {
        return Err(Error::unsupported("DECLARE CURSOR of this statement"));
    };
    if bound.writes {
        return Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "DECLARE CURSOR must not contain data-modifying statements in WITH",
        ));
    }
    if row_lock_of(bound.plan.plan()).is_none() {
        return Ok(());
    }
    let refused = |kind: &str, state: SqlState, verb: &str, detail: &str| {
        let message = format!("DECLARE {kind} ... FOR UPDATE is not {verb}");
        Err(Error::new(state, message).with_detail(format!("{detail} cursors must be READ ONLY.")))
    };
    let unsupported = SqlState::FEATURE_NOT_SUPPORTED;
    if declare.options & option::HOLD != 0 {
        return refused("CURSOR WITH HOLD", unsupported, "supported", "Holdable");
    }
    if declare.options & option::SCROLL != 0 {
        return refused("SCROLL CURSOR", unsupported, "supported", "Scrollable");
    }
    if declare.options & option::INSENSITIVE != 0 {
        let state = SqlState::INVALID_CURSOR_DEFINITION;
        return refused("INSENSITIVE CURSOR", state, "valid", "Insensitive");
    }
    Ok(())
}

/// How a plan locks the rows that it gives, if it does.
pub(super) fn row_lock_of(plan: &Plan) -> Option<RowLock> {
    match plan {
        Plan::Lock(_, locks) => locks.first().map(|lock| lock.strength),
        Plan::Filter(input, _)
        | Plan::Project(input, _)
        | Plan::ProjectSet(input, _)
        | Plan::Sort(input, _)
        | Plan::Trim(input, _)
        | Plan::Limit(input, ..) => row_lock_of(input),
        _ => None,
    }
}

/// Whether a plan gives the rows of one scan, so that a cursor is on a row of its table.
fn is_scan(plan: &Plan) -> bool {
    match plan {
        Plan::Scan(_) => true,
        Plan::Filter(input, _)
        | Plan::Once(input, _)
        | Plan::Project(input, _)
        | Plan::Trim(input, _)
        | Plan::Limit(input, ..) => is_scan(input),
        _ => false,
    }
}

/// Whether PostgreSQL's plan of the same shape could run backwards, so that a cursor may scroll
/// without being told to.
pub(super) fn scrolls(plan: &Plan) -> bool {
    match plan {
        // A single row is computed, not scanned.
        Plan::Values(rows) => rows.len() > 1,
        Plan::Scan(_)
        | Plan::System(..)
        | Plan::Function { .. }
        | Plan::Routine { .. }
        | Plan::Beside(..)
        | Plan::Sort(..) => true,
        Plan::Filter(input, _)
        | Plan::Once(input, _)
        | Plan::Project(input, _)
        | Plan::Trim(input, _)
        | Plan::Limit(input, ..) => scrolls(input),
        _ => false,
    }
}
