//! One client's session: statements in, rows and tags out.
//!
//! The protocol layer owns a [`Session`] and calls it inside a coroutine ([`base::coro`]), because
//! every statement may wait. What the session shows goes to a [`Sink`]:
//!
//! ```no_run
//! # use sql::session::*; use base::Result;
//! # fn example(session: &mut Session, sink: &mut dyn Sink) -> Result<()> {
//! // The simple protocol: one message, perhaps several statements.
//! session.simple_query("create table t(i int); insert into t values (1)", sink)?;
//! // The extended protocol: Parse, Bind, Execute, Sync.
//! let prepared = session.prepare("select i from t where i = $1", &[])?;
//! let value = Param { format: Format::Text, value: Some(b"1") };
//! let mut portal = session.bind(&prepared, &[value])?;
//! session.execute(&mut portal, 0, sink)?;
//! session.sync(sink)?;
//! # Ok(()) }
//! ```
//!
//! # Transactions
//! Outside a block, [`Session::simple_query`] runs the whole message in one implicit transaction
//! and [`Session::execute`] runs everything up to [`Session::sync`] in one, as PostgreSQL does. An
//! error that a method returns has already been taken into account: the implicit transaction is
//! rolled back, or the block is in the failed state.
//!
//! # Debt
//! Before anything is given to the sink, [`Sink::owe`] tells it what the following output rests
//! on; an error that a method returns rests on [`Session::owed`].

pub mod automatic;
mod behind;
mod by_shape;
mod characteristics;
mod constraints;
mod copy;
mod counted;
mod cursors;
mod ddl;
mod explain;
mod fastpath;
mod handover;
mod in_flight;
mod in_use;
mod lock_names;
mod logged;
pub mod login;
mod names;
mod notifications;
mod params;
mod plan;
mod plan_cache;
mod plpgsql;
mod portal;
mod read_params;
mod routines;
mod run;
mod search_trigger;
mod sizes;
mod sql_results;
mod statements;
mod temporary;
mod transaction;
mod triggers;
mod two_phase;
mod utility;

#[cfg(test)]
mod by_shape_tests;
#[cfg(test)]
mod catalog_tests;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod prepared_tests;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::engine::{Engine, Transaction, Transactions, TxnOptions};
use base::env::Env;
use base::memory::Reservation;
use base::{Debt, Durability, Error, Result, SqlState};

use catalog::shared::Catalogs;
use catalog::{store, Catalog, Role};
use execution::exec::point;
use execution::spool::SpoolRows;
use functions::search::dictionary::Config;
use statements::about;
use syntax::parser::{Shape, Strings};
use types::context::Similarity;
use types::{self, Datum, EvalContext, TypeId};

use cursors::NamedCursor;
use execution::settings::{Asker, Settings, Source};
use execution::state::activity::{Doing, SessionState, Times};
use execution::state::{Named, Stamp};
use in_flight::InFlight;
use in_use::InUse;
use params::Params;
use plan_cache::{PlanCache, World};
use plpgsql::place::Place;
use portal::{Forgotten, Running};
use transaction::{Loss, Open, Owed, State};

pub use fastpath::Called;
pub use logged::log_settings;

pub use execution::settings::{
    documented, DocumentedSetting, FollowerReads, LogLevel, LogSettings, LoggedStatements,
    NoticeSeverity, Verbosity, SERVER_VERSION,
};
pub use execution::state::{
    activity, secrets, statistics, Column, CommandTag, Format, LogContext, Notice, Oid, Param,
    Prepared, RowView, SessionStart, Shared, Sink, TransactionStatus,
};
pub use statements::statement_kinds;
pub use types::encoding::Encoding;

/// A prepared statement with its parameters, perhaps half executed.
#[derive(Debug)]
pub struct Portal {
    prepared: Rc<Prepared>,
    params: Params,
    progress: Progress,
}

/// How far a portal has come.
#[derive(Debug)]
enum Progress {
    Fresh,
    /// A cursor of that name, which FETCH and its kin know too.
    Cursor(String),
    /// A query that has more rows, perhaps.
    Query(Box<Running>),
    /// Rows that were computed and not yet asked for, their types, the command's tag.
    Rows(SpoolRows, Vec<TypeId>, CommandTag),
    Done,
}

impl Portal {
    /// The statement.
    pub fn prepared(&self) -> &Rc<Prepared> {
        &self.prepared
    }
}

/// How far an execution came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executed {
    /// To its end. An empty statement has no tag.
    Complete(Option<CommandTag>),
    /// To the number of rows that was asked for; there may be more.
    Suspended,
}

/// Prepared statements of a session that keep parse tree and plan; the others are made again when
/// they are used.
pub const PREPARED_WHOLE_MAX: usize = 256;

/// What an error says of the memory of prepared statements.
const PREPARED: &str = "A prepared statement";

/// One client's session.
pub struct Session {
    shared: Shared,
    eval: Rc<EvalContext>,
    /// The generation of the cluster's settings that this session follows.
    configuration: u64,
    /// What was told last of what the session is.
    told: Option<Stamp>,
    /// Whether the block that is open was lost with its leader.
    loss: Loss,
    /// The generation of the settings that `eval` was made with.
    eval_generation: u64,
    open: Option<Open>,
    /// A transaction that has ended, whose memory the next one may use.
    ended: Option<Box<dyn Transaction>>,
    state: State,
    /// Those of the transaction that was begun last.
    characteristics: TxnOptions,
    owed: Owed,
    /// A commit has begun whose outcome is not known yet.
    committing: bool,
    /// Whether the message at work has begun: its debt is collected until the next one begins.
    in_message: bool,
    in_flight: InFlight,
    in_use: InUse,
    catalog: Arc<Catalog>,
    cursors: BTreeMap<String, NamedCursor>,
    /// The routines that are at work, the innermost last.
    places: Vec<Place>,
    /// The memory of the cursors.
    cursor_memory: Reservation,
    /// How many cursors it has named itself.
    cursors_named: u64,
    forgotten: Forgotten,
    /// The prepared statements that have parse trees, those for longest first.
    whole_statements: RefCell<VecDeque<String>>,
    /// The memory that prepared statements take.
    statement_memory: RefCell<Reservation>,
    plans: Rc<PlanCache>,
    /// Where the plans hold that the session makes and uses now.
    world: World,
    /// How a text is read that was read elsewhere before, whatever the settings say.
    read_as: Option<Strings>,
    /// The shape of the text at hand.
    shape: Shape,
    /// The values of its literals that its plan leaves open.
    literals: Vec<Datum>,
    point: point::Buffers,
    /// The routines at work, the innermost last.
    nested: Vec<routines::Nested>,
    bodies: routines::Bodies,
    trigger_bodies: triggers::TriggerBodies,
    /// The table that EXPLAIN ANALYZE makes.
    making: explain::Making,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = &self.shared.start;
        write!(f, "Session({} at {})", start.user, start.database)
    }
}

/// Settings of the startup message that are no settings.
const STARTUP_WORDS: [&str; 4] = ["user", "database", "replication", "options"];

impl Session {
    /// Begins a session: looks up the role and the database, takes the settings.
    ///
    /// # Errors
    /// 28000 and 3D000 for a role or a database that does not exist; what the settings give.
    pub fn new(engine: Arc<Engine>, env: Arc<dyn Env>, start: SessionStart) -> Result<Session> {
        // Only where this may be read at all.
        let mut txn = engine.transactions.begin(TxnOptions::default())?;
        txn.begin_statement()?;
        // The role is checked before the database, as PostgreSQL does.
        let role_known = store::role_named(txn.as_mut(), &start.user)?.is_some();
        counted::look(&engine, &start, env.wall_clock().0)?;
        drop(txn);
        let no_such_role = || {
            Error::new(
                SqlState::INVALID_AUTHORIZATION,
                format!("role \"{}\" does not exist", start.user),
            )
        };
        if !role_known {
            return Err(no_such_role());
        }
        let catalog = start
            .catalogs
            .current(&*engine.transactions, &start.database)?;
        let catalog = catalog.ok_or_else(|| missing_database(&start.database))?;
        // Before the limits are looked at, so that no two can pass for the last of them.
        let role = catalog.role(&start.user).ok_or_else(no_such_role)?;
        show_start(&start, role.oid, env.wall_clock().0);
        check_entry(&catalog, role, &start)?;
        let mut settings = Settings::new(role);
        for (name, value) in &start.defaults {
            settings.begin_with(Asker::Configuration, name, value)?;
        }
        let configuration = engine.settings.generation();
        settings.load(&engine.settings.configuration());
        for (name, value) in start
            .registry
            .iter()
            .flat_map(|registry| registry.settings())
        {
            settings.fix(name, &value);
        }
        settings.fix("in_hot_standby", on_or_off(engine.cluster.is_standby()));
        // What counts for most comes first, and what comes later gives way to it.
        for (name, value) in startup_settings(&start.settings) {
            settings.begin_with(Asker::Client(&catalog), &name, &value)?;
        }
        let warnings = take_role_settings(&mut settings, &catalog, role);
        settings.take_reports();
        let clock = Arc::new(types::context::EnvClock(env.clone()));
        let plans = PlanCache::of_thread(&engine);
        let mut session = Session {
            eval: Rc::new(EvalContext::new(clock)),
            told: None,
            loss: Loss::None,
            eval_generation: u64::MAX,
            configuration,
            shared: Shared::new(engine, env, start, settings, warnings),
            open: None,
            ended: None,
            state: State::None,
            characteristics: TxnOptions::default(),
            owed: Owed::default(),
            committing: false,
            in_message: false,
            in_flight: InFlight::default(),
            in_use: InUse::default(),
            catalog,
            cursors: BTreeMap::new(),
            places: Vec::new(),
            cursor_memory: Reservation::of("Cursors"),
            cursors_named: 0,
            forgotten: Forgotten::default(),
            whole_statements: RefCell::default(),
            statement_memory: RefCell::new(Reservation::of(PREPARED)),
            world: plans.world(""),
            plans,
            shape: Shape::default(),
            read_as: None,
            literals: Vec::new(),
            point: point::Buffers::default(),
            nested: Vec::new(),
            bodies: routines::Bodies::default(),
            trigger_bodies: triggers::TriggerBodies::default(),
            making: explain::Making::default(),
        };
        session.refresh_eval();
        let database = session.catalog.database.oid;
        let start = &session.shared.start;
        start.activity.tally().begin(database, !start.is_automatic);
        Ok(session)
    }

    /// Runs one message of the simple protocol: every statement in turn, in one implicit
    /// transaction where they stand outside a block. The sink gets descriptions, rows and tags;
    /// an empty text gives [`Sink::empty_query`].
    pub fn simple_query(&mut self, text: &str, sink: &mut dyn Sink) -> Result<()> {
        self.begin_message();
        self.show_active(text);
        let outcome = self.simple_query_inner(text, sink);
        // What was said while it was planned comes before its error.
        let outcome = outcome.or_else(|error| self.hand_on_notices(sink).and(Err(error)));
        let outcome = outcome.map_err(|error| self.eval.name_types_in(error));
        if let Err(error) = &outcome {
            self.failed_by(error);
        }
        self.in_message = false;
        self.show_idle();
        outcome
    }

    fn simple_query_inner(&mut self, text: &str, sink: &mut dyn Sink) -> Result<()> {
        if let Some(kept) = self.plan_by_shape(text, None)? {
            self.log_statements(text, std::slice::from_ref(&kept.statement), sink);
            self.shared.command = about(kept.statement.node()).command;
            return self.run_kept(text, &kept, sink);
        }
        let statements = self.parse(text)?;
        self.log_statements(text, &statements, sink);
        if statements.is_empty() {
            self.tell(sink)?;
            return sink.empty_query();
        }
        let last = statements.len() - 1;
        for (number, statement) in statements.into_iter().enumerate() {
            let alone = last == 0;
            self.shared.command = about(statement.node()).command;
            let prepared = self.prepare_statement(statement, &[], false)?;
            if let Some(columns) = prepared.columns() {
                self.owe_catalog();
                self.tell(sink)?;
                sink.row_description(columns)?;
            }
            let tag = self.run_prepared(&prepared, &[], sink, alone)?;
            if number == last {
                self.end_implicit(sink)?;
            }
            self.tell(sink)?;
            sink.command_complete(&tag)?;
        }
        Ok(())
    }

    /// Parses and plans at most one statement. Parameter types of 0, or missing ones, are inferred.
    pub fn prepare(&mut self, text: &str, param_types: &[Oid]) -> Result<Rc<Prepared>> {
        self.begin_message();
        self.shared.command = "PARSE";
        let outcome = self.prepare_inner(text, param_types);
        let outcome = outcome.map_err(|error| self.eval.name_types_in(error));
        if let Err(error) = &outcome {
            self.failed_by(error);
        }
        outcome
    }

    fn prepare_inner(&mut self, text: &str, param_types: &[Oid]) -> Result<Rc<Prepared>> {
        let given: Vec<_> = param_types.iter().map(|oid| TypeId(oid.0)).collect();
        if let Some(kept) = self.plan_by_shape(text, Some(&given))? {
            let level = self.shared.settings.parsed().durability;
            self.owed.add(&kept.planned.catalog.debt, level);
            return Ok(Rc::new(Prepared::of_plan(
                kept.statement.clone(),
                kept.params.to_vec(),
                kept.planned.clone(),
            )));
        }
        let mut statements = self.parse(text)?;
        let Some(statement) = statements.pop() else {
            return Ok(Rc::new(Prepared::empty(given)));
        };
        if !statements.is_empty() {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "cannot insert multiple commands into a prepared statement",
            ));
        }
        self.prepare_statement(statement, &given, true)
    }

    /// Keeps a prepared statement under a name, which SQL's EXECUTE knows too.
    ///
    /// # Errors
    /// 42P05 when there is one of that name.
    pub fn keep_prepared(&mut self, name: &str, prepared: Rc<Prepared>) -> Result<()> {
        if self.shared.statements.contains_key(name) {
            return Err(Error::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let named = Named::new(prepared, self.eval.statement_start);
        self.statement_memory
            .borrow_mut()
            .grow(named.bytes() + 2 * name.len())?;
        self.shared.statements.insert(name.to_owned(), named);
        self.made_whole(name);
        Ok(())
    }

    /// The prepared statement of that name.
    ///
    /// # Errors
    /// 26000 when there is none.
    pub fn prepared(&self, name: &str) -> Result<Rc<Prepared>> {
        let Some(named) = self.shared.statements.get(name) else {
            return Err(Error::new(
                SqlState::INVALID_SQL_STATEMENT_NAME,
                format!("prepared statement \"{name}\" does not exist"),
            ));
        };
        if named.is_whole() {
            return named.whole();
        }
        let before = named.bytes();
        let prepared = named.whole()?;
        let more = named.bytes() - before;
        self.statement_memory.borrow_mut().grow(more)?;
        self.made_whole(name);
        Ok(prepared)
    }

    /// A prepared statement has a parse tree now; of those that have one for longest some lose it.
    fn made_whole(&self, name: &str) {
        let mut whole = self.whole_statements.borrow_mut();
        whole.push_back(name.to_owned());
        while whole.len() > PREPARED_WHOLE_MAX {
            let oldest = whole.pop_front();
            if let Some(named) = oldest.and_then(|name| self.shared.statements.get(&name)) {
                let before = named.bytes();
                named.rest();
                let less = before - named.bytes();
                self.statement_memory.borrow_mut().shrink(less);
            }
        }
    }

    /// Forgets a prepared statement, if there is one of that name.
    pub fn drop_prepared(&mut self, name: &str) {
        if let Some(named) = self.shared.statements.remove(name) {
            let less = named.bytes() + 2 * name.len();
            self.statement_memory.borrow_mut().shrink(less);
            // Another one of that name is no older than it is.
            let mut whole = self.whole_statements.borrow_mut();
            whole.retain(|known| known != name);
        }
    }

    /// Forgets all prepared statements.
    pub(crate) fn drop_all_prepared(&mut self) {
        self.shared.statements.clear();
        self.whole_statements.borrow_mut().clear();
        *self.statement_memory.borrow_mut() = Reservation::of(PREPARED);
    }

    /// Gives a prepared statement its parameters.
    pub fn bind(&mut self, prepared: &Rc<Prepared>, params: &[Param<'_>]) -> Result<Portal> {
        self.begin_message();
        self.shared.command = "BIND";
        let outcome = self.bind_inner("", prepared, params);
        let outcome = outcome.map_err(|error| self.eval.name_types_in(error));
        if outcome.is_err() {
            self.failed();
        }
        outcome
    }

    fn bind_inner(
        &mut self,
        name: &str,
        prepared: &Rc<Prepared>,
        params: &[Param<'_>],
    ) -> Result<Portal> {
        self.check_not_failed(prepared)?;
        let types = prepared.param_type_ids();
        if params.len() != types.len() {
            return Err(Error::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement requires {}",
                    params.len(),
                    types.len()
                ),
            ));
        }
        let mut values = Params::default();
        for (number, (param, ty)) in (1..).zip(params.iter().zip(types)) {
            let value = read_params::value(&self.eval, param, *ty);
            let value = value.and_then(|value| match ty.is_of_domain() {
                true => self
                    .parameter_of_domain(value, *ty)
                    .map_err(|error| read_params::Failed::of(error, param)),
                false => Ok(value),
            });
            values.push(value.map_err(|failed| failed.told_of(name, number))?);
        }
        prepared.count_execution();
        Ok(Portal {
            prepared: prepared.clone(),
            params: values,
            progress: Progress::Fresh,
        })
    }

    /// A value that was read, of which a domain's checks must hold.
    fn parameter_of_domain(&mut self, value: Datum, domain: TypeId) -> Result<Datum> {
        self.ensure_open()?;
        let (base, _) = self.current_catalog()?.base_type(domain);
        self.convert(value, base, domain, types::NO_TYPMOD)
    }

    /// Executes a portal, to its end or until it has given `max_rows` rows (0: to its end). The
    /// sink gets rows, notices and parameter changes; no description, no tag.
    pub fn execute(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        sink: &mut dyn Sink,
    ) -> Result<Executed> {
        self.begin_message();
        if let Some(statement) = portal.prepared.statement() {
            self.show_active(statement.text());
            self.shared.command = about(statement.node()).command;
        }
        let outcome = self.execute_inner(portal, max_rows, sink);
        let outcome = outcome.map_err(|error| self.eval.name_types_in(error));
        if let Err(error) = &outcome {
            portal.progress = Progress::Done;
            self.failed_by(error);
        }
        outcome
    }

    /// Ends the implicit transaction, if there is one: commits it, or gives it up after an error.
    /// To be called at Sync; [`Session::simple_query`] does it itself.
    pub fn sync(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let outcome = self.end_implicit(sink).and_then(|()| self.tell(sink));
        self.in_message = false;
        self.show_idle();
        outcome
    }

    /// Takes an error into account that the protocol layer found itself (a malformed message):
    /// the implicit transaction is rolled back, or the block is in the failed state.
    pub fn fail(&mut self) {
        self.failed();
    }

    /// What the client is told in the place of the first error, whatever that is, after its block was
    /// lost with its leader: a cursor, a savepoint or a portal is not there for that reason alone.
    pub fn tell_loss(&mut self) -> Option<Error> {
        let untold = self.loss == Loss::Untold;
        untold.then(|| {
            self.loss = Loss::Told;
            transaction::lost_block()
        })
    }

    /// The text of the statement that runs, or the beginning of a long one.
    pub fn running(&self) -> String {
        let doing = self.shared.start.activity.doing();
        doing.map(|doing| doing.query).unwrap_or_default()
    }

    /// Whether a commit has begun whose outcome is not known.
    pub fn is_committing(&self) -> bool {
        self.committing
    }

    /// What ReadyForQuery shows.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.status()
    }

    /// What the output of the current message rests on until now, by level: an error that is shown
    /// waits for this, unless its class is [`base::ErrorClass::Engine`].
    pub fn owed(&self) -> &[(Debt, Durability)] {
        self.owed.levels()
    }

    /// The value of a setting as SHOW prints it.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.shared.settings.show(name).ok().map(|shown| shown.1)
    }

    /// The settings that ParameterStatus reports at the start of a session, with their values.
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        self.shared.settings.reported()
    }

    /// What is to be told to a client whose session has begun.
    pub fn take_warnings(&mut self) -> Vec<Notice> {
        let severity = NoticeSeverity::Warning;
        let warnings = self.shared.warnings.drain(..);
        warnings.map(|body| Notice { severity, body }).collect()
    }

    /// The level of `synchronous_commit` in force.
    pub fn durability(&self) -> Durability {
        self.shared.settings.parsed().durability
    }

    /// `quorate.follower_reads`: whether and how the session reads on a standby.
    pub fn follower_reads(&self) -> FollowerReads {
        self.shared.settings.parsed().follower_reads
    }

    /// Time after which the statement that begins now is to be interrupted.
    pub fn statement_timeout(&self) -> Option<Duration> {
        some_time(self.shared.settings.parsed().statement_timeout)
    }

    /// Time after which a session that idles in a transaction is to be ended.
    pub fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        some_time(self.shared.settings.parsed().idle_in_transaction_timeout)
    }

    /// Time after which a session that idles outside of transactions is to be ended.
    pub fn idle_session_timeout(&self) -> Option<Duration> {
        some_time(self.shared.settings.parsed().idle_session_timeout)
    }

    /// A message begins: unless it goes on with one that has no end yet, its output owes nothing.
    fn begin_message(&mut self) {
        if !self.in_message {
            self.in_message = true;
            self.owed.clear();
            Rc::make_mut(&mut self.eval).statement_start = self.shared.env.wall_clock().0;
            self.shared.command = self.idle_command();
            if self.open.is_none() {
                self.shared.virtual_xid = 0;
                self.shared.xid = 0;
            }
            self.forget_in_flight();
            self.follow_configuration();
            if self.shared.settings.parsed().tracking.looks_anew {
                self.shared.counting.clear_snapshot();
            }
        }
        self.refresh_eval();
    }

    /// Follows the settings of the cluster, if others have come in force, and the node's role.
    fn follow_configuration(&mut self) {
        let is_standby = on_or_off(self.shared.engine.cluster.is_standby());
        self.shared.settings.fix("in_hot_standby", is_standby);
        let generation = self.shared.engine.settings.generation();
        if self.configuration != generation {
            self.configuration = generation;
            let configuration = self.shared.engine.settings.configuration();
            self.shared.settings.load(&configuration);
        }
    }

    /// Shows that a statement runs.
    fn show_active(&self, text: &str) {
        let statement = self.eval.statement_start;
        let transaction = match self.open {
            Some(_) => self.eval.transaction_start,
            None => statement,
        };
        let activity = &self.shared.start.activity;
        match self.shared.start.is_automatic {
            false => activity.begin(text, statement, transaction),
            true => activity.begin(&format!("autovacuum: {text}"), statement, transaction),
        }
    }

    /// Shows that the session waits for its client.
    fn show_idle(&self) {
        let now = self.shared.env.wall_clock().0;
        let transaction = self.eval.transaction_start;
        let (state, transaction) = match self.state {
            State::None | State::Implicit => (SessionState::Idle, None),
            State::Block => (SessionState::IdleInTransaction, Some(transaction)),
            State::Failed => (SessionState::IdleInFailedTransaction, Some(transaction)),
        };
        self.shared.start.activity.end(state, now, transaction);
    }

    /// `client_encoding`.
    pub fn client_encoding(&self) -> Encoding {
        self.shared.settings.parsed().encoding
    }

    /// Takes over what has changed in the settings.
    fn refresh_eval(&mut self) {
        let generation = self.shared.settings.generation();
        if self.eval_generation == generation {
            return;
        }
        self.eval_generation = generation;
        if let Ok((_, name)) = self.shared.settings.show("application_name") {
            let activity = &self.shared.start.activity;
            activity.change(|doing| doing.application = name);
        }
        let parsed = self.shared.settings.parsed();
        let eval = Rc::make_mut(&mut self.eval);
        eval.time_zone = parsed.time_zone.clone();
        eval.date_style = parsed.date_style;
        eval.interval_style = parsed.interval_style;
        eval.extra_float_digits = parsed.extra_float_digits;
        eval.encoding = parsed.encoding;
        eval.bytea_escape = parsed.bytea_escape;
        let settings = &self.shared.settings;
        eval.similarity = Similarity::of(|name| settings.show(name).ok().map(|shown| shown.1));
        let config = settings.show("default_text_search_config").ok();
        let config = config.and_then(|shown| Config::named(&shown.1));
        eval.search_config = config.unwrap_or(types::ENGLISH);
        eval.remarks = Arc::clone(&self.shared.remarks);
        self.refresh_names();
        self.world = self.plans.world(&self.describe_world());
    }

    /// Whatever besides its text and the catalog has a say in what a statement means.
    fn describe_world(&self) -> String {
        let eval = &self.eval;
        let mut out = format!(
            "{} {:?} {:?} {:?} {:?} {:?} {} {} {:?} {}",
            self.catalog.database.oid,
            self.shared.start.user,
            self.shared.settings.parsed().search_path,
            eval.time_zone,
            eval.date_style,
            eval.interval_style,
            eval.extra_float_digits,
            eval.bytea_escape,
            eval.similarity,
            eval.search_config,
        );
        let settings = &self.shared.settings;
        let (role, session_role) = (settings.current_role(), settings.session_role());
        let strings = settings.show("standard_conforming_strings").ok();
        let strings = strings.map(|shown| shown.1);
        let parsed = settings.parsed();
        let (row_security, methods) = (parsed.row_security, parsed.methods);
        out.push_str(&format!(
            " {role} {session_role} {strings:?} {row_security} {methods:?}"
        ));
        out
    }
}

fn on_or_off(is_on: bool) -> &'static str {
    match is_on {
        true => "on",
        false => "off",
    }
}

fn some_time(time: Duration) -> Option<Duration> {
    (!time.is_zero()).then_some(time)
}

fn missing_database(name: &str) -> Error {
    Error::new(
        SqlState::INVALID_CATALOG_NAME,
        format!("database \"{name}\" does not exist"),
    )
}

/// Shows who the session is.
fn show_start(start: &SessionStart, role: u32, now: i64) {
    start.activity.change(|doing| {
        doing.user = Some(start.user.clone());
        doing.role = role;
        doing.database.clone_from(&start.database);
        doing.client_address.clone_from(&start.client_address);
        doing.client_port = start.client_port;
        doing.tls.clone_from(&start.tls);
        doing.started = now;
        doing.changed = now;
        doing.state = SessionState::Idle;
        doing.times = Times::default();
        doing.is_automatic = start.is_automatic;
    });
}

/// Whether a role may begin a session in a database.
fn check_entry(catalog: &Catalog, role: &Role, start: &SessionStart) -> Result<()> {
    use catalog::access::{Guarded, Privileges};
    if !role.login {
        return Err(Error::new(
            SqlState::INVALID_AUTHORIZATION,
            format!("role \"{}\" is not permitted to log in", role.name),
        ));
    }
    if !role.superuser {
        let own = |doing: &Doing| doing.user.is_some() && doing.role == role.oid;
        check_limit(start, role.connection_limit, own, || {
            format!("too many connections for role \"{}\"", role.name)
        })?;
    }
    if let Some(registry) = start.registry.as_ref().filter(|_| !start.is_automatic) {
        registry.admit(start.backend_pid, role.superuser)?;
    }
    let database = &catalog.database;
    if !database.open {
        return Err(Error::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "database \"{}\" is not currently accepting connections",
                database.name
            ),
        ));
    }
    let acl = catalog.acl_of(Guarded::Database, database.oid);
    let held = catalog.privileges(role.oid, &acl, Privileges::CONNECT);
    if held.is_none() {
        return Err(Error::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied for database \"{}\"", database.name),
        )
        .with_detail("User does not have CONNECT privilege."));
    }
    match role.superuser {
        true => Ok(()),
        false => check_limit(
            start,
            database.connection_limit,
            |doing| doing.user.is_some() && doing.database == database.name,
            || format!("too many connections for database \"{}\"", database.name),
        ),
    }
}

/// 53300 when there are more sessions of a kind than there may be; a negative limit is none.
fn check_limit(
    start: &SessionStart,
    limit: i32,
    is_counted: impl Fn(&Doing) -> bool,
    message: impl Fn() -> String,
) -> Result<()> {
    let (Ok(limit), Some(registry)) = (usize::try_from(limit), &start.registry) else {
        return Ok(());
    };
    let sessions = registry.all();
    let known = sessions.iter().filter_map(|activity| activity.doing());
    match known.filter(is_counted).count() > limit {
        true => Err(Error::new(SqlState::TOO_MANY_CONNECTIONS, message())),
        false => Ok(()),
    }
}

/// The settings that ALTER ROLE and ALTER DATABASE gave, the most special first. One that cannot be
/// taken any more keeps nobody out: it is passed over, with a warning.
fn take_role_settings(settings: &mut Settings, catalog: &Catalog, role: &Role) -> Vec<Error> {
    let own = catalog.database.oid;
    let mut warnings = Vec::new();
    for (database, role, source) in [
        (own, role.oid, Source::DatabaseRole),
        (0, role.oid, Source::Role),
        (own, 0, Source::Database),
        (0, 0, Source::Global),
    ] {
        let known = catalog.settings.iter();
        let known = known.filter(|known| (known.database, known.role) == (database, role));
        for (name, value) in known.flat_map(|known| &known.values) {
            let asker = Asker::Stored(catalog, source);
            let refused = settings.begin_with(asker, name, value).err();
            let least = settings.parsed().min_messages;
            let is_shown = least.is_some_and(|least| NoticeSeverity::Warning >= least);
            warnings.extend(refused.filter(|_| is_shown));
        }
    }
    warnings
}

/// The settings of a startup message, `options` (`-c name=value`) taken apart.
fn startup_settings(given: &[(String, String)]) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (name, value) in given {
        if name == "options" {
            let words: Vec<_> = value.split_whitespace().collect();
            let mut words = words.into_iter();
            while let Some(word) = words.next() {
                let pair = match word.strip_prefix("-c") {
                    Some("") => words.next(),
                    Some(pair) => Some(pair),
                    None => word.strip_prefix("--"),
                };
                if let Some((name, value)) = pair.and_then(|pair| pair.split_once('=')) {
                    out.push((name.replace('-', "_"), value.to_owned()));
                }
            }
        } else if !STARTUP_WORDS.contains(&name.as_str()) && !name.starts_with("_pq_.") {
            out.push((name.clone(), value.clone()));
        }
    }
    out
}

/// Whether a node can give its sessions a setting.
///
/// # Errors
/// What every session would fail with: 42704, 22023, 55P02.
pub fn check_setting(name: &str, value: &str) -> Result<()> {
    Settings::of_nobody().begin_with(Asker::Configuration, name, value)
}

/// Whether the catalog's first rows are there, as far as this node shows.
///
/// # Errors
/// As a read.
pub fn has_catalog(transactions: &dyn Transactions) -> Result<bool> {
    let mut txn = transactions.begin(TxnOptions::default())?;
    txn.begin_statement()?;
    store::is_there(txn.as_mut())
}

/// Whether a client that is on a standby should read there: what it asks for in its startup packet,
/// else what its role, the database and the cluster say.
pub fn wants_follower_reads(
    (engine, catalogs): (&Engine, &Catalogs),
    defaults: &[(String, String)],
    (given, user, database): (&[(String, String)], &str, &str),
) -> Result<bool> {
    let mut settings = Settings::of_nobody();
    for (name, value) in defaults {
        settings.begin_with(Asker::Configuration, name, value)?;
    }
    settings.load(&engine.settings.configuration());
    let own = startup_settings(given).into_iter();
    let own: Vec<_> = own
        .filter(|(name, _)| name.eq_ignore_ascii_case("quorate.follower_reads"))
        .collect();
    if own.is_empty() {
        let catalog = catalogs.current(&*engine.transactions, database)?;
        let catalog = catalog.as_deref();
        if let Some((catalog, role)) = catalog.and_then(|all| Some((all, all.role(user)?))) {
            take_role_settings(&mut settings, catalog, role);
        }
    }
    let nothing = Catalog::none();
    for (name, value) in own {
        settings.begin_with(Asker::Client(&nothing), &name, &value)?;
    }
    Ok(settings.parsed().follower_reads != FollowerReads::Off)
}

/// First start of a cluster: writes the catalog's first rows, in one ordinary transaction, and
/// returns what must settle before anyone is let in. Does nothing when they are there.
///
/// The database and role `postgres` and those of `user` will exist.
pub fn bootstrap(
    engine: &Engine,
    env: &dyn Env,
    user: &str,
    password: Option<&str>,
) -> Result<Debt> {
    let _ = env;
    let mut txn = engine.transactions.begin(TxnOptions::default())?;
    txn.begin_statement()?;
    store::bootstrap(txn.as_mut(), &*engine.sequences, user, password)?;
    let mut debt = txn.debt().clone();
    debt.merge(&txn.commit(Durability::On)?);
    Ok(debt)
}
