//! Runs planned statements: locks, snapshot, rows.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::{LockWait, Reading, TableLock};
use base::{Debt, Error, Result, SqlState, TreeId};

use super::in_use::Using;
use super::lock_names::named;
use super::portal::Read;
use super::statements::{about, Given};
use super::transaction::State;
use super::{CommandTag, Executed, Portal, Prepared, Progress, Session, Sink};
use catalog::local::is_local;
use catalog::Catalog;
use execution::exec::{self, point, Exec, Measures};
use execution::kept::RowStore;
use execution::settings::planted;
use execution::spool::RowSpool;
use execution::state::prepared::Planned;
use execution::state::{KeptRows, RowView};
use execution::system::Relations;
use planner::bind::Bound;
use planner::plan::permit::PermittedPlan;
use planner::plan::{Plan, Row};
use syntax::parser::NodeEnum;
use types::{Datum, TypeId};

/// How often a statement is planned anew because the catalog changed while it waited for locks.
const REPLANS_MAX: usize = 100;

/// After so many plans, what others have changed meanwhile counts only if the statement rests on it.
const REPLANS_FOR_ANYTHING: usize = 2;

/// Where rows go.
pub(super) enum Output<'o> {
    /// To the client.
    Sink(&'o mut dyn Sink),
    /// Into memory, at most so many.
    Rows(&'o mut RowStore, usize),
    /// Into memory, and beyond `work_mem` into scratch space.
    Spool(&'o mut RowSpool),
    /// Into nothing.
    Nowhere,
    /// Into nothing, and it is noted what each node does.
    Measured(&'o Rc<Measures>),
    /// To the client, which has been told what this rests on.
    Copy(&'o mut dyn Sink),
}

impl Session {
    /// Runs a prepared statement to its end. `alone` says that it is the only one of its message.
    pub(super) fn run_prepared(
        &mut self,
        prepared: &Prepared,
        params: &[Datum],
        sink: &mut dyn Sink,
        alone: bool,
    ) -> Result<CommandTag> {
        self.check_not_failed(prepared)?;
        let Some(statement) = prepared.statement() else {
            return Err(Error::internal("an empty statement is run"));
        };
        self.refresh_eval();
        let planned = self.current_plan(prepared)?;
        let outcome = match planned.bound.is_none() {
            true => self.utility(&mut Given {
                statement,
                params,
                param_types: prepared.param_type_ids(),
                sink,
                alone,
            }),
            false => self.run_planned(prepared, planned, params, &mut Output::Sink(sink)),
        };
        self.hand_on_notices(sink)?;
        outcome
    }

    fn run_planned(
        &mut self,
        prepared: &Prepared,
        planned: Rc<Planned>,
        params: &[Datum],
        output: &mut Output<'_>,
    ) -> Result<CommandTag> {
        let planned = self.settle_plan(planned, |session| session.current_plan(prepared))?;
        let begun = self.begin_counted(&planned)?;
        let rows = self.run_plan(&planned, params, output)?;
        self.end_counted(begun, rows);
        let node = prepared.statement().map(|statement| statement.node());
        Ok(tag_of(node, rows))
    }

    /// Takes the locks of a plan, and plans anew until nothing changed on the way.
    ///
    /// Where planning takes long and others change the catalog all the time, that would never be. So
    /// after a while only the tables must be the same, which are locked by then, and everybody's rights:
    /// the statement came before whatever else has changed.
    pub(super) fn settle_plan(
        &mut self,
        mut planned: Rc<Planned>,
        mut anew: impl FnMut(&mut Session) -> Result<Rc<Planned>>,
    ) -> Result<Rc<Planned>> {
        self.ensure_open()?;
        for replans in 0..REPLANS_MAX {
            let Some(bound) = &planned.bound else {
                return Ok(planned);
            };
            let is_read_only = self.is_read_only();
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            if is_read_only {
                check_reads_only(bound, &planned.catalog)?;
            }
            if bound.locks.len() > 1 {
                open.txn.lock_tables_ahead(&bound.locks)?;
            }
            for (tree, mode) in &bound.locks {
                let locked = open.txn.lock_table(*tree, *mode, LockWait::Block);
                locked.map_err(|error| named(error, &planned.catalog))?;
            }
            let had_its_chance = replans >= REPLANS_FOR_ANYTHING;
            if self.holds(&planned) || had_its_chance && self.rests_on_the_same(&planned)? {
                return Ok(planned);
            }
            planned = anew(self)?;
        }
        Err(Error::serialization(
            "could not serialize access: the catalog keeps changing",
        ))
    }

    /// Whether the tables and views of a plan, whose locks are taken, are as they were when it was made,
    /// for the same role, and neither types were changed nor privileges since: what is read may be newer.
    fn rests_on_the_same(&mut self, planned: &Planned) -> Result<bool> {
        if !self.is_for_this_role(planned) || !self.sees_like(planned.seen.as_ref()) {
            return Ok(false);
        }
        let now = self.current_catalog()?;
        if !now.has_rights_of(&planned.catalog) || !now.has_types_of(&planned.catalog) {
            return Ok(false);
        }
        let locks = planned.bound.iter().flat_map(|bound| &bound.locks);
        Ok(locks.into_iter().all(|(tree, _)| {
            let of_tree = |catalog: &Catalog| {
                let mut tables = catalog.tables.iter();
                tables.find(|table| table.tree == *tree).cloned()
            };
            match (of_tree(&planned.catalog), of_tree(&now)) {
                (Some(then), Some(now)) => Arc::ptr_eq(&then, &now),
                _ => false,
            }
        }))
    }

    /// A plan to run, if the session's role may run it, and all is there that it reads.
    ///
    /// # Errors
    /// 42501; 55000 for a materialized view without rows.
    pub(super) fn permitted<'p>(&self, planned: &'p Planned) -> Result<PermittedPlan<'p>> {
        let permitted = self.permitted_to_see(planned)?;
        if let Some(bound) = &planned.bound {
            bound.check_populated(&planned.catalog)?;
        }
        Ok(permitted)
    }

    /// What a plan would do, if the session's role may do it.
    ///
    /// # Errors
    /// 42501.
    pub(super) fn permitted_to_see<'p>(&self, planned: &'p Planned) -> Result<PermittedPlan<'p>> {
        let role = self.shared.settings.current_role();
        match &planned.bound {
            Some(bound) => bound.plan.permit(&planned.catalog, role),
            None => Err(Error::internal("a statement without a plan")),
        }
    }

    /// Runs a plan whose locks are taken; returns how many rows it gave or wrote.
    pub(super) fn run_plan(
        &mut self,
        planned: &Rc<Planned>,
        params: &[Datum],
        output: &mut Output<'_>,
    ) -> Result<u64> {
        self.run_plan_with(planned, params, &[], output)
    }

    /// As [`Session::run_plan`], with the values of literals that the plan leaves open.
    pub(super) fn run_plan_with(
        &mut self,
        planned: &Rc<Planned>,
        params: &[Datum],
        literals: &[Datum],
        output: &mut Output<'_>,
    ) -> Result<u64> {
        let ran = self.run_plan_unnamed(planned, params, literals, output);
        if let Output::Sink(sink) = output {
            self.hand_on_notices(*sink)?;
        }
        ran.map_err(|error| named(error, &planned.catalog))
    }

    fn run_plan_unnamed(
        &mut self,
        planned: &Rc<Planned>,
        params: &[Datum],
        literals: &[Datum],
        output: &mut Output<'_>,
    ) -> Result<u64> {
        let Some(bound) = &planned.bound else {
            return Err(Error::internal("a statement without a plan"));
        };
        let permitted = self.permitted(planned)?;
        self.owed.add(
            &planned.catalog.debt,
            self.shared.settings.parsed().durability,
        );
        let durability = self.shared.settings.parsed().durability;
        if let Output::Sink(sink) = output {
            self.tell(*sink)?;
        }
        self.shared.read_only = self.is_read_only();
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        open.begun = true;
        match self.nested.is_empty() {
            true => open.txn.begin_statement()?,
            false => self.begin_statement()?,
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        if let (Some(columns), Output::Sink(sink)) = (&planned.point, &mut *output) {
            let values = (params, literals);
            let (txn, buffers) = (open.txn.as_mut(), &mut self.point);
            let counted = (&mut *txn as &mut dyn Reading, &mut self.shared.counting);
            if !point::read(permitted, columns, counted, values, buffers)? {
                return Ok(0);
            }
            sink.owe(txn.debt(), durability);
            sink.row(&RowView {
                values: &self.point.row,
                types: &planned.types,
                context: &self.eval,
            })?;
            return Ok(1);
        }
        self.using(Using::Plan(planned.clone()), |session| {
            let values = (params, literals);
            session.run_cursor(planned, (bound, permitted), values, output)
        })
    }

    /// Takes all rows of a plan.
    fn run_cursor(
        &mut self,
        planned: &Planned,
        (bound, permitted): (&Bound, PermittedPlan<'_>),
        (params, literals): (&[Datum], &[Datum]),
        output: &mut Output<'_>,
    ) -> Result<u64> {
        let durability = self.shared.settings.parsed().durability;
        let mut told = Debt::NONE;
        let eval = self.eval.clone();
        let mut cx = Exec::new(&Relations, self, permitted.permit(), &eval, params);
        cx.literals = literals;
        if let Output::Measured(measures) = output {
            cx.measures = Some(measures.clone());
        }
        let mut cursor = exec::open(permitted, cx.measures.as_ref());
        let mut given = 0;
        while let Some(row) = cursor.next(&mut cx)? {
            planted::panic_at(&cx.host.shared().settings, "exec");
            given += 1;
            match output {
                Output::Rows(rows, most) => {
                    if rows.len() < *most {
                        rows.push(row)?;
                    }
                    // What writes is run to its end.
                    if rows.len() >= *most && !bound.writes {
                        break;
                    }
                }
                Output::Spool(rows) => rows.push(row)?,
                Output::Nowhere | Output::Measured(_) => {}
                Output::Sink(sink) | Output::Copy(sink) => {
                    if *cx.host.txn().debt() != told {
                        told = cx.host.txn().debt().clone();
                        sink.owe(&told, durability);
                    }
                    cx.host.session().send_notices(*sink)?;
                    for warning in std::mem::take(&mut cx.host.session().warnings) {
                        cx.host.session().warn(warning, *sink)?;
                    }
                    sink.row(&RowView {
                        values: &row,
                        types: &planned.types,
                        context: cx.context,
                    })?;
                }
            }
        }
        exec::foreign::finish(&mut cx)?;
        let (written, beside) = (cx.written, cx.written_beside);
        self.note_comments();
        if let Some(open) = &mut self.open {
            open.wrote |= bound.writes && written + beside > 0;
        }
        Ok(if bound.writes { written } else { given })
    }

    pub(super) fn execute_inner(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn Sink,
    ) -> Result<Executed> {
        let prepared = portal.prepared.clone();
        if let Progress::Cursor(name) = &portal.progress {
            return self.execute_cursor(&name.clone(), max_rows, sink);
        }
        if prepared.is_empty() {
            portal.progress = Progress::Done;
            return Ok(Executed::Complete(None));
        }
        if matches!(portal.progress, Progress::Fresh) {
            let planned = self.current_plan(&prepared)?;
            self.check_not_failed(&prepared)?;
            if max_rows == 0 || planned.columns.is_none() {
                portal.progress = Progress::Done;
                let tag = self.run_prepared(&prepared, portal.params.as_slice(), sink, true)?;
                self.tell(sink)?;
                return Ok(Executed::Complete(Some(tag)));
            }
            portal.progress =
                self.begin_portal(&prepared, planned, portal.params.as_slice(), sink)?;
        }
        self.tell(sink)?;
        self.next_rows(portal, max_rows, sink)
    }

    /// Begins what gives rows in portions. Only queries are read as they are asked for; what
    /// writes is run to its end, and its rows are kept.
    fn begin_portal(
        &mut self,
        prepared: &Prepared,
        planned: Rc<Planned>,
        params: &[Datum],
        sink: &mut dyn Sink,
    ) -> Result<Progress> {
        let types = planned.types.clone();
        match &planned.bound {
            Some(bound) if !bound.writes => {
                let anew = |session: &mut Session| session.current_plan(prepared);
                let planned = self.settle_plan(planned, anew)?;
                let begun = self.begin_counted(&planned)?;
                let mut query = self.start_query(planned, params.into())?;
                query.counted = begun;
                Ok(Progress::Query(Box::new(query)))
            }
            Some(_) => {
                let mut rows = RowSpool::new(self.shared.spill(), "A portal");
                let mut output = Output::Spool(&mut rows);
                let tag = self.run_planned(prepared, planned, params, &mut output)?;
                Ok(Progress::Rows(rows.into_rows(), types, tag))
            }
            None => {
                let mut kept = KeptRows::new(sink);
                let tag = self.run_prepared(prepared, params, &mut kept, true)?;
                Ok(Progress::Rows(kept.into_rows().into(), types, tag))
            }
        }
    }

    /// Gives the next rows of a portal.
    fn next_rows(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn Sink,
    ) -> Result<Executed> {
        let most = if max_rows == 0 { u64::MAX } else { max_rows };
        let select = CommandTag {
            name: "SELECT",
            rows: Some(0),
        };
        let (tag, read) = match &mut portal.progress {
            Progress::Query(query) => {
                let read = self.read_query(query, most, &mut Output::Sink(sink))?;
                (select, read)
            }
            Progress::Rows(rows, types, tag) => {
                let mut given = 0;
                let ended = loop {
                    if given >= most {
                        break false;
                    }
                    let Some(row) = rows.next_row()? else {
                        break true;
                    };
                    given += 1;
                    sink.row(&RowView {
                        values: &row,
                        types,
                        context: &self.eval,
                    })?;
                };
                let rows = given;
                (*tag, Read { rows, ended })
            }
            Progress::Cursor(_) | Progress::Fresh | Progress::Done => {
                let (rows, ended) = (0, true);
                (select, Read { rows, ended })
            }
        };
        if !read.ended {
            return Ok(Executed::Suspended);
        }
        portal.progress = Progress::Done;
        Ok(Executed::Complete(Some(CommandTag {
            name: tag.name,
            rows: tag.rows.map(|_| read.rows),
        })))
    }

    /// Gives rows that a utility statement made.
    pub(super) fn give_rows(
        &mut self,
        rows: &[Row],
        types: &[TypeId],
        sink: &mut dyn Sink,
    ) -> Result<()> {
        self.tell(sink)?;
        for row in rows {
            sink.row(&RowView {
                // Behind its columns a row of a cursor has what nobody sees.
                values: &row[..types.len().min(row.len())],
                types,
                context: &self.eval,
            })?;
        }
        Ok(())
    }

    /// Whether a statement that must not stand in a block may run.
    pub(super) fn require_no_block(&self, what: &str, alone: bool) -> Result<()> {
        if self.state == State::Block || !alone {
            return Err(Error::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                format!("{what} cannot run inside a transaction block"),
            ));
        }
        Ok(())
    }
}

/// What a statement writes to is looked at twice: what it needs privileges on, which are the relations that
/// it names, views with rules or triggers among them, and what it locks as one that writes.
///
/// # Errors
/// 25006 for a plan that writes to other relations than temporary ones, or locks their rows.
fn check_reads_only(bound: &Bound, catalog: &Catalog) -> Result<()> {
    let is_shared = |lock: &(TreeId, TableLock)| {
        let mut own = catalog.tables.iter().filter(|table| is_local(table.oid));
        lock.1 >= TableLock::RowExclusive && !own.any(|table| table.tree == lock.0)
    };
    let is_refused = bound.locks_rows.is_some()
        || bound.writes
            && (bound.plan.changes().any(|relation| !is_local(relation))
                || bound.locks.iter().any(is_shared));
    if !is_refused {
        return Ok(());
    }
    let name = match (verb_of(bound.plan.plan()), bound.locks_rows) {
        ("SELECT", Some(name)) => name,
        (verb, _) => verb,
    };
    Err(Error::new(
        SqlState::READ_ONLY_SQL_TRANSACTION,
        format!("cannot execute {name} in a read-only transaction"),
    ))
}

/// Whether it writes to a temporary table.
fn is_on_own(plan: &Plan) -> bool {
    let target = match plan {
        Plan::Insert(insert) => &insert.target,
        Plan::Update(update) => &update.target,
        Plan::Delete(delete) => &delete.target,
        _ => return false,
    };
    is_local(target.table.oid)
}

fn verb_of(plan: &Plan) -> &'static str {
    match plan {
        Plan::Insert(_) => "INSERT",
        Plan::Update(_) => "UPDATE",
        Plan::Delete(_) => "DELETE",
        Plan::Merge(_) => "MERGE",
        Plan::With(with) => verb_of(&with.body),
        Plan::Rewritten(rewritten) => {
            let mut statements = rewritten.statements.iter();
            let first = rewritten.statements.first();
            let refused = statements.find(|statement| !is_on_own(statement));
            refused.or(first).map_or("SELECT", |plan| verb_of(plan))
        }
        _ => "SELECT",
    }
}

/// The tag of a statement with rows.
pub(super) fn tag_of(node: Option<&NodeEnum>, rows: u64) -> CommandTag {
    CommandTag {
        name: node.map_or("SELECT", |node| about(node).command),
        rows: Some(rows),
    }
}
