//! Runs plans: each node a cursor that gives one row at a time.
//!
//! [`Exec`] is what a running statement knows: its transaction, parameters, the rows of enclosing
//! queries, and the session for the functions that ask it. Waits happen inside the transaction's
//! methods, so everything here is straight-line code.
//!
//! | module | what |
//! |---|---|
//! | [`program`] | expressions |
//! | [`permit`] | who may run what: the only way in |
//! | [`cursor`] | filters, projections, limits, sets |
//! | [`scan`] | scans |
//! | [`join`], [`group`], [`distinct`], [`sort`], [`window`] | what must see many rows at once |
//! | [`join_filter`] | which rows of a scan a join above can use |
//! | [`parts`] | rows that do not fit in memory, divided by a hash |
//! | [`write`] | INSERT, UPDATE, DELETE, row locks |
//! | [`new_row`] | what a new row must meet |
//! | [`foreign`] | what foreign keys make of it |
//! | [`trigger`] | what triggers make of it |
//! | [`measure`] | what each node has done, for EXPLAIN ANALYZE |
//! | [`rows`] | rows and keys as bytes |
//! | [`point`] | one row by its key, without cursors |
//! | [`subquery`] | queries inside expressions |
//! | [`members`] | long lists of constants |
//! | [`sequences`] | `nextval` and its kin |
//! | [`advisory`] | advisory locks, and who waits for whom |
//! | [`large_objects`] | large objects, and the descriptors that are open |
//! | [`session_functions`] | functions that ask the session or the cluster |
//! | [`statistics`] | what was counted |
//! | [`catalog_functions`], [`privilege_functions`] | functions that ask the catalog |

mod accumulate;
pub mod activity;
pub mod advisory;
mod ahead;
mod alternatives;
mod beside;
mod catalog_functions;
pub mod checked;
mod cluster_functions;
pub mod cursor;
mod distinct;
mod domain;
pub mod entries;
mod events;
pub mod exclusion;
pub mod foreign;
pub mod group;
pub mod host;
mod index_text;
mod inverted;
pub mod join;
mod join_filter;
mod large_objects;
pub mod long;
pub mod measure;
mod members;
mod merge;
pub mod new_row;
pub mod outcomes;
pub mod partition;
mod partition_text;
mod parts;
mod places;
pub mod point;
pub mod posted;
mod privilege_functions;
pub mod program;
mod replication;
mod rewritten;
mod routine;
mod routine_text;
pub mod rows;
mod rule_text;
mod scan;
pub mod sequences;
pub mod session_functions;
pub mod shared;
pub mod sizes;
pub mod sort;
mod sorted_groups;
mod spilled_join;
mod staged;
mod statements;
pub mod statistics;
mod statistics_text;
pub mod subquery;
pub mod trigger;
mod trigger_text;
mod update;
pub mod window;
pub mod write;

use std::rc::Rc;
use std::sync::Arc;

use base::hash::HashMap;
use base::limits::{ROWS_PER_YIELD, WORK_PER_TURN};
use base::memory::Reservation;
use base::{coro, Error, Result};

use crate::kept::RowStore;
use crate::settings::planted;
use crate::spool::{beyond_query_memory, RowSpool, Spill};
use catalog::{Catalog, Table};
use planner::plan::{Plan, Program, Row};
use types::{Datum, EvalContext};

use cursor::open as open_unchecked;
pub use cursor::{Cursor, KeptCursor};
use events::Events;
pub use host::Host;
use measure::Measuring;
pub use measure::{Called, Calls, Figures, Measures, Meter, Removed, Space, Usage};
use planner::plan::permit::{Permit, PermittedPlan};

/// What reading a row counts for, in the units of [`coro::work`].
const ROW_WORK: usize = WORK_PER_TURN / ROWS_PER_YIELD;

/// What writing one counts for beside reading it.
const WRITTEN_ROW_WORK: usize = 4 * ROW_WORK;

/// A running statement.
pub struct Exec<'a> {
    /// Its transaction and its session.
    pub host: &'a mut dyn Host,
    /// Who shows the system relations.
    pub relations: &'a dyn SystemRelations,
    /// The catalog that its plan was made with.
    pub catalog: &'a Arc<Catalog>,
    /// What it was permitted.
    pub permit: Permit<'a>,
    /// Instants and settings.
    pub context: &'a EvalContext,
    /// The parameters.
    pub params: &'a [Datum],
    /// The values of the literals that its plan leaves open.
    pub literals: &'a [Datum],
    /// Rows of enclosing queries, the innermost last.
    pub outer: Vec<Row>,
    /// Where it is noted what each node does, if anybody asks.
    pub measures: Option<Rc<Measures>>,
    /// The rows that a writing node has written.
    pub written: u64,
    /// Those that statements of WITH have written.
    pub written_beside: u64,
    /// What foreign keys have to look at, and which triggers fire, when the statement ends.
    pub events: Events,
    /// The rows of which it is not known yet whether their values are free.
    pub posted: posted::Posted,
    /// How far the triggers are that it sets off.
    triggers: trigger::Underway,
    /// The owner of a table whose rows a foreign key changes: the role meanwhile.
    acting: Option<u32>,
    stack: Vec<Datum>,
    cases: Vec<Datum>,
    values: HashMap<usize, Datum>,
    /// What programs compute once, by where these stand.
    fixed: HashMap<usize, (Rc<Program>, Datum)>,
    shared: HashMap<usize, shared::Stored>,
    working: HashMap<usize, Rc<RowSpool>>,
    /// The subqueries that look at rows of enclosing queries, by their numbers, and how many
    /// enclosing rows there were where they are defined.
    levels: Vec<(std::ops::Range<usize>, usize)>,
    members: HashMap<usize, Rc<members::Members>>,
    by_key: HashMap<usize, subquery::ByKey>,
    memos: HashMap<usize, subquery::Memo>,
    /// The long values on the stack that functions have made.
    large: Reservation,
    /// Work that was done where nothing could give way, for the next [`Exec::tick`].
    pending: usize,
}

/// Who knows the rows of the system relations; it stands above the executor.
pub trait SystemRelations {
    /// The rows of a relation; with a key, only those whose column has that value.
    ///
    /// # Errors
    /// What computing them raises.
    fn rows(
        &self,
        table: &Arc<Table>,
        catalog: &Catalog,
        key: Option<(usize, Datum)>,
        cx: &mut Exec<'_>,
    ) -> Result<Vec<Row>>;
}

/// What a statement has computed once and for all: kept while its rows are read piece by piece.
#[derive(Default)]
pub struct Computed {
    values: HashMap<usize, Datum>,
    shared: HashMap<usize, shared::Stored>,
}

impl<'a> Exec<'a> {
    /// To be asked by whatever keeps rows in memory and cannot do without ([`Spill`] is for the rest),
    /// with how many bytes they take. That there is such memory is another matter ([`base::memory`]).
    ///
    /// # Errors
    /// 53200 when that is more than `quorate.query_mem`.
    pub fn check_held(&self, bytes: usize) -> Result<()> {
        let most = self.host.shared().settings.parsed().query_memory;
        if bytes <= most {
            return Ok(());
        }
        Err(beyond_query_memory(most))
    }

    /// When the rows of a sort, a cursor or a WITH query go to scratch space.
    fn spill(&self) -> Spill {
        self.host.shared().spill()
    }

    /// Whether a hash table that takes so many bytes is to take no more rows.
    ///
    /// # Errors
    /// As [`Spill::is_due`].
    #[inline]
    fn is_hash_due(&self, bytes: usize) -> Result<bool> {
        let parsed = self.host.shared().settings.parsed();
        match bytes <= parsed.hash_memory.min(parsed.query_memory) {
            true => Ok(false),
            false => self.hash_spill().is_due(bytes),
        }
    }

    /// When the rows of a hash table do.
    fn hash_spill(&self) -> Spill {
        self.host.shared().hash_spill()
    }

    /// Leaves what a row has set off to the end of the transaction.
    ///
    /// # Errors
    /// 42501 in what is done for the owner of an object whoever asks for it: it would run with the rights
    /// of whoever asked.
    fn defer(&mut self, event: foreign::Event) -> Result<()> {
        let settings = &self.host.shared().settings;
        settings.check_unrestricted("fire deferred trigger")?;
        let catalog = self.catalog.clone();
        self.host.session().constraints.defer(event, catalog)
    }

    /// Takes up what was computed before.
    pub fn take_up(&mut self, computed: Computed) {
        self.values = computed.values;
        self.shared = computed.shared;
    }

    /// Gives back what has been computed.
    pub fn into_computed(self) -> Computed {
        Computed {
            values: self.values,
            shared: self.shared,
        }
    }

    /// What begins to run, and was permitted.
    pub fn new(
        relations: &'a dyn SystemRelations,
        host: &'a mut dyn Host,
        permit: Permit<'a>,
        context: &'a EvalContext,
        params: &'a [Datum],
    ) -> Exec<'a> {
        Exec {
            relations,
            host,
            catalog: permit.catalog(),
            permit,
            context,
            params,
            literals: &[],
            outer: Vec::new(),
            measures: None,
            written: 0,
            written_beside: 0,
            events: Events::default(),
            posted: posted::Posted::default(),
            triggers: trigger::Underway::default(),
            acting: None,
            stack: Vec::new(),
            cases: Vec::new(),
            values: HashMap::default(),
            fixed: HashMap::default(),
            shared: HashMap::default(),
            working: HashMap::default(),
            levels: Vec::new(),
            members: HashMap::default(),
            by_key: HashMap::default(),
            memos: HashMap::default(),
            large: Reservation::of("A value"),
            pending: 0,
        }
    }

    /// Whose rights count for what is done now, if not those of the session.
    fn acting(&self) -> Option<u32> {
        self.acting
    }

    /// Whose rights count for what is computed, changed and shown now.
    pub fn role(&self) -> u32 {
        let session = || self.host.shared().settings.current_role();
        self.acting.unwrap_or_else(session)
    }

    /// Whether what is said now may show these columns of a table's rows, whatever rows, by their
    /// places; one that is not there stands for the whole table.
    fn may_see(&self, table: &Table, columns: impl Iterator<Item = usize>) -> bool {
        let role = self.role();
        // No policy holds back anything from a foreign key's own queries.
        let is_guarded = self.acting != Some(table.owner) && self.catalog.guards_rows(role, table);
        !is_guarded && self.catalog.may_read(role, table.oid, columns)
    }

    /// Does something as another role.
    fn as_role<T>(&mut self, role: u32, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.acting.replace(role);
        let outcome = run(self);
        self.acting = before;
        outcome
    }

    /// Counts a row; gives way to others now and then.
    ///
    /// # Errors
    /// The pending interrupt.
    pub fn tick(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        Ok(coro::work(ROW_WORK + pending)?)
    }

    /// Counts a row that was written, for the next [`Exec::tick`] too.
    pub fn note_written(&mut self) {
        planted::panic_at(&self.host.shared().settings, "write");
        self.written += 1;
        self.pending += WRITTEN_ROW_WORK;
    }

    /// Forgets what subqueries with these numbers have computed.
    fn forget(&mut self, numbers: &std::ops::Range<usize>) {
        self.values.retain(|number, _| !numbers.contains(number));
        self.shared.retain(|number, _| !numbers.contains(number));
        self.members.retain(|number, _| !numbers.contains(number));
        self.by_key.retain(|number, _| !numbers.contains(number));
        self.memos.retain(|number, _| !numbers.contains(number));
    }

    fn param(&self, index: usize) -> Result<Datum> {
        self.params
            .get(index)
            .cloned()
            .ok_or_else(|| Error::internal(format!("parameter ${} has no value", index + 1)))
    }

    fn literal(&self, number: usize) -> Result<Datum> {
        self.literals
            .get(number)
            .cloned()
            .ok_or_else(|| Error::internal(format!("literal {number} has no value")))
    }

    fn pop(&mut self) -> Datum {
        self.stack.pop().unwrap_or(Datum::Null)
    }

    fn pop_many(&mut self, count: usize) -> Vec<Datum> {
        let start = self.stack.len() - count;
        self.stack.split_off(start)
    }
}

/// A cursor over the rows of a plan, which is measured if that is asked for.
pub fn open<'p>(permitted: PermittedPlan<'p>, measures: Measuring<'_>) -> Box<dyn Cursor + 'p> {
    open_unchecked(permitted.plan(), measures)
}

/// All rows of a part of a plan, in memory, for what an error names so.
///
/// # Errors
/// As [`Exec::check_held`].
fn collect_in_memory(plan: &Plan, what: &'static str, cx: &mut Exec<'_>) -> Result<RowStore> {
    coro::check_depth()?;
    let mut cursor = open_unchecked(plan, cx.measures.as_ref());
    let mut rows = RowStore::of(what);
    while let Some(row) = cursor.next(cx)? {
        rows.push(row)?;
        cx.check_held(rows.bytes())?;
    }
    Ok(rows)
}

/// All rows of a part of a plan, for what an error names so.
fn collect(plan: &Plan, what: &'static str, cx: &mut Exec<'_>) -> Result<RowSpool> {
    coro::check_depth()?;
    let mut cursor = open_unchecked(plan, cx.measures.as_ref());
    let mut rows = RowSpool::new(cx.spill(), what);
    while let Some(row) = cursor.next(cx)? {
        rows.push(row)?;
    }
    Ok(rows)
}
