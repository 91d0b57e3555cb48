//! Functions and procedures at work.
//!
//! ```text
//! select f(a) from t
//!   └ Exec of the SELECT ─ Host::call ─ enter f: view kept, rights, settings
//!                                       ├ its statements, each with an Exec of its own
//!                                       └ leave f: view back, rights, settings
//! ```
//! What a volatile function's statements see is as new as each of them; the statement around it goes on
//! with what it saw before ([`Nested::view`]). A stable or immutable one sees what the statement around
//! it sees, and may not write. Notices wait until the statement around can send them.
//!
//! Bodies are compiled once for each list of types that they are called with, and kept by the session
//! until the routine changes; the plans in them hold as long as all plans do.
//!
//! # Invariants
//! - Whatever way a call ends, the view, the rights and the settings of its SET clauses are as before.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::{Transaction, ViewId};
use base::hash::HashMap;
use base::{coro, Error, Result, SqlState};
use pg_query::protobuf::CallStmt;

use super::plpgsql::code::{Code, ReturnKind, Signature};
use super::plpgsql::piece::{add_context, Names, Piece, PieceKind, Slot, View};
use super::plpgsql::place::At;
use super::sql_results::{kind_of, Gave};
use super::statements::{about, Given};
use super::transaction::State;
use super::utility::tag;
use super::{Column, CommandTag, NoticeSeverity, Session, Sink};
use catalog::access::{denied, Guarded, Privileges};
use catalog::cluster::Address;
use catalog::depend::routine_text;
use catalog::routine::Language;
use catalog::view::BY_OID;
use catalog::{Routine, RoutineKind};
use execution::exec::trigger::{Fired, Firing};
use execution::exec::{self, Exec, Host};
use execution::kept::RowStore;
use execution::settings::TrackedRoutines;
use execution::state::{KeptRows, Nowhere, Shared};
use execution::system::Relations;
use planner::bind::{Bound, Conflict};
use planner::plan::{Collated, RoutineCall};
use syntax::parser::{self, NodeEnum};
use types::{Datum, TypeId};

/// So many compiled bodies are kept; beyond that all are forgotten.
const BODIES_MAX: usize = 1_000;

/// A routine that is being called.
pub(super) struct Nested {
    /// Whether it may not write, and sees what the statement around it sees.
    reads_only: bool,
    /// Whether nothing of it can be sent until the statement around goes on.
    quiet: bool,
    /// What the statement around it sees, once the routine has looked at something newer.
    view: Option<ViewId>,
}

impl Nested {
    /// A function that a statement calls.
    pub(super) fn of(routine: &Routine) -> Nested {
        Nested {
            reads_only: routine.volatility != b'v',
            quiet: true,
            view: None,
        }
    }
}

/// The bodies that a session has compiled, by routine and types.
pub(super) type Bodies = HashMap<(u32, Vec<TypeId>, Collated), Rc<Body>>;

/// A compiled routine.
pub(super) struct Body {
    routine: Arc<Routine>,
    columns: Vec<(String, TypeId)>,
    code: BodyCode,
}

enum BodyCode {
    Sql(SqlCode),
    PlPgSql(Box<Code>),
}

/// The statements of a function in SQL.
struct SqlCode {
    name: Rc<str>,
    /// Whether PostgreSQL would put it in the place of its call, as errors say.
    inlined: bool,
    statements: Vec<Piece>,
    slots: Vec<Slot>,
}

/// Calls that are nested deeper than this go on on a large stack, so that recursion reaches as far as
/// in PostgreSQL. Beyond that is 54001.
const DEEP_CALLS: usize = 32;

impl Host for Session {
    fn txn(&mut self) -> &mut dyn Transaction {
        let open = self.open.as_mut();
        open.expect("a statement runs in an open transaction")
            .txn
            .as_mut()
    }

    fn session(&mut self) -> &mut Shared {
        &mut self.shared
    }

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn call(&mut self, call: &RoutineCall, args: Vec<Datum>) -> Result<Datum> {
        Ok(self.call_routine(call, args)?.value)
    }

    fn call_rows(&mut self, call: &RoutineCall, args: Vec<Datum>) -> Result<RowStore> {
        Ok(self.call_routine(call, args)?.rows)
    }

    fn fire(&mut self, firing: &Firing<'_>) -> Result<Fired> {
        self.fire_trigger(firing)
    }
}

impl Session {
    /// Whether notices wait: what is at work has nobody to send them to.
    pub(super) fn is_quiet(&self) -> bool {
        self.nested.last().is_some_and(|nested| nested.quiet)
    }

    /// Sends the notices that wait, if they can be sent.
    pub(super) fn hand_on_notices(&mut self, sink: &mut dyn Sink) -> Result<()> {
        self.shared.gather_remarks();
        if self.shared.notices.is_empty() || self.is_quiet() {
            return Ok(());
        }
        self.tell(sink)?;
        self.shared.send_notices(sink)
    }

    /// Keeps a notice until the statement around can send it.
    pub(super) fn keep_notice(&mut self, severity: NoticeSeverity, body: Error) {
        self.shared.notices.push((severity, body));
    }

    /// A statement of the transaction begins. What the one around a routine sees is kept for it.
    pub(super) fn begin_statement(&mut self) -> Result<()> {
        if self.nested.last().is_some_and(|nested| nested.reads_only) {
            return Ok(());
        }
        self.keep_outer_view()?;
        match &mut self.open {
            Some(open) => open.txn.begin_statement(),
            None => Err(Error::internal("nothing is open")),
        }
    }

    /// Keeps what the statement around the routine at work sees, before anything changes that.
    pub(super) fn keep_outer_view(&mut self) -> Result<()> {
        let (Some(nested), Some(open)) = (self.nested.last_mut(), &mut self.open) else {
            return Ok(());
        };
        if !nested.quiet || nested.view.is_some() {
            return Ok(());
        }
        let txn = open.txn.as_mut();
        let kept = match txn.keep_view() {
            Ok(view) => view,
            // An expression of PL/pgSQL that looks at no table has begun nothing.
            Err(_) => {
                txn.begin_statement()?;
                txn.keep_view()?
            }
        };
        nested.view = Some(kept);
        Ok(())
    }

    /// # Errors
    /// 0A000 for what writes, in a routine that says that it does not.
    pub(super) fn check_may_write(&self, command: &str) -> Result<()> {
        match self.nested.last().is_some_and(|nested| nested.reads_only) {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("{command} is not allowed in a non-volatile function"),
            )),
        }
    }

    /// What is computed for a definition asks for no privileges before, so each call does.
    ///
    /// # Errors
    /// 42501.
    fn check_may_call(&self, routine: &Routine, caller: Option<u32>) -> Result<()> {
        let catalog = self.known_catalog();
        let address = Address::of(Address::PROC, routine.oid);
        let role = caller.unwrap_or_else(|| self.shared.settings.current_role());
        let execute = Privileges::EXECUTE;
        let is_free = !catalog.acls.contains_key(&address);
        match is_free || catalog.holds(role, Guarded::Function, routine.oid, execute) {
            true => Ok(()),
            false => Err(denied(routine.kind.noun(), &routine.name)),
        }
    }

    fn call_routine(&mut self, call: &RoutineCall, args: Vec<Datum>) -> Result<Gave> {
        coro::check_depth()?;
        self.check_may_call(&call.routine, call.caller)?;
        if call.result == TypeId::TRIGGER {
            let message = "trigger functions can only be called as triggers";
            let mut error = Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            let name = &call.routine.name;
            let line = format!("compilation of PL/pgSQL function \"{name}\" near line 1");
            add_context(&mut error, &line);
            return Err(error);
        }
        let body = self.body_of(call)?;
        let nested = Nested::of(&call.routine);
        self.inside(&call.routine, nested, |session| match &body.code {
            BodyCode::Sql(code) => session.run_sql_body(call, &body, code, args),
            BodyCode::PlPgSql(code) => {
                let slots = filled(&code.slots, &code.inputs, args);
                let done = session.run_block(code, slots, true, &mut Nowhere)?;
                Ok(Gave {
                    value: done.returned,
                    rows: done.rows,
                })
            }
        })
    }

    /// Does something as a routine does, and counts that it was called, if that is asked for.
    pub(super) fn inside<T>(
        &mut self,
        routine: &Routine,
        nested: Nested,
        run: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        let least = match routine.language {
            Language::Sql => TrackedRoutines::All,
            _ => TrackedRoutines::Procedural,
        };
        if self.shared.settings.parsed().tracking.routines < least {
            return self.inside_uncounted(routine, nested, run);
        }
        let begun = self.shared.env.now();
        let before = self.shared.counting.called();
        let outcome = self.inside_uncounted(routine, nested, run);
        if outcome.is_ok() {
            let took = self.shared.env.now().since(begun).as_micros();
            let took = u64::try_from(took).unwrap_or(u64::MAX);
            let counting = &mut self.shared.counting;
            counting.came_back(routine.oid, took, before);
        }
        outcome
    }

    /// Does something as a routine does: with its rights, its settings, its view.
    fn inside_uncounted<T>(
        &mut self,
        routine: &Routine,
        nested: Nested,
        run: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        let depth = self.nested.len();
        let mark = self.shared.settings.mark();
        let acts = routine.security_definer;
        let sets = !routine.settings.is_empty();
        if acts {
            let catalog = self.current_catalog()?;
            let owner = catalog.role_by_oid(routine.owner);
            let owner = owner.ok_or_else(|| Error::internal("a routine without an owner"))?;
            self.shared.settings.start_acting(owner, false);
            self.settings_changed();
        }
        self.nested.push(nested);
        let mut outcome = Ok(());
        for (name, value) in &routine.settings {
            outcome = outcome.and_then(|()| self.apply_setting(name, Some(value), true));
        }
        let outcome = outcome.and_then(|()| match depth == DEEP_CALLS {
            true => coro::on_large_stack(|| run(self))?,
            false => run(self),
        });
        let left = self.nested.pop();
        self.nested.truncate(depth);
        if let (Some(view), Some(open)) = (left.and_then(|left| left.view), &mut self.open) {
            let swapped = open.txn.swap_view(view);
            open.txn.drop_view(view);
            if outcome.is_ok() {
                swapped?;
            }
        }
        if sets {
            let settings = &mut self.shared.settings;
            match &outcome {
                Ok(_) => settings.end_routine(mark, &routine.settings),
                Err(_) => settings.roll_back_to(mark),
            }
        }
        if acts {
            self.shared.settings.stop_acting();
        }
        if acts || sets {
            self.settings_changed();
        }
        outcome
    }

    /// Does what is done for the owner of an object, whoever asks for it: what its expressions call
    /// runs with the owner's rights, and what that sets ends with it.
    ///
    /// # Errors
    /// Those of what is done.
    pub(super) fn as_owner<T>(
        &mut self,
        owner: u32,
        run: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        self.as_role(owner, true, |session| {
            let mark = session.shared.settings.mark();
            let outcome = run(session);
            session.shared.settings.roll_back_to(mark);
            outcome
        })
    }

    /// Does something with the rights of a role; `restricted` as for [`Settings::start_acting`].
    ///
    /// [`Settings::start_acting`]: execution::settings::Settings::start_acting
    ///
    /// # Errors
    /// Those of what is done.
    pub(super) fn as_role<T>(
        &mut self,
        role: u32,
        restricted: bool,
        run: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        let catalog = self.current_catalog()?;
        let role = catalog.known_role(role)?;
        self.shared.settings.start_acting(role, restricted);
        self.settings_changed();
        let outcome = run(self);
        self.shared.settings.stop_acting();
        self.settings_changed();
        // Names are looked for with the role's privileges.
        self.forget_own_catalog();
        self.refresh_names();
        outcome
    }

    /// The compiled body of a routine for these types.
    fn body_of(&mut self, call: &RoutineCall) -> Result<Rc<Body>> {
        let key = (call.routine.oid, call.types.clone(), call.collation);
        if let Some(body) = self.bodies.get(&key) {
            let same = Arc::ptr_eq(&body.routine, &call.routine) || *body.routine == *call.routine;
            if same && body.columns == call.columns {
                return Ok(body.clone());
            }
        }
        let body = Rc::new(self.compile_body(call)?);
        if self.bodies.len() >= BODIES_MAX {
            self.bodies.clear();
        }
        self.bodies.insert(key, body.clone());
        Ok(body)
    }

    fn compile_body(&mut self, call: &RoutineCall) -> Result<Body> {
        let catalog = self.current_catalog()?;
        let routine = &call.routine;
        let shown = routine_text(&catalog, &self.search_path(&catalog), routine);
        let code = match routine.language {
            Language::Sql => BodyCode::Sql(self.compile_sql(call)?),
            Language::PlPgSql => {
                let signature = signature_of(call, shown);
                BodyCode::PlPgSql(Box::new(self.compile_plpgsql(&routine.body, &signature)?))
            }
            // What is there is computed where it is called.
            Language::C | Language::Internal => {
                let message = format!("could not find function \"{}\"", routine.body);
                return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
            }
        };
        Ok(Body {
            routine: routine.clone(),
            columns: call.columns.clone(),
            code,
        })
    }

    pub(super) fn compile_plpgsql(&mut self, text: &str, signature: &Signature) -> Result<Code> {
        self.refuse_escapes(text)?;
        let tree = syntax::plpgsql::parse::parse(text)?;
        self.compile_block(text, &tree, signature)
    }

    fn compile_sql(&mut self, call: &RoutineCall) -> Result<SqlCode> {
        let routine = &call.routine;
        let (names, slots) = arguments_of(call);
        let names = Rc::new(names);
        let texts = self.texts_of(routine)?;
        let simple = texts.len() == 1 && !routine.security_definer && !routine.set;
        let count = texts.len();
        let statements = texts.into_iter().map(|text| {
            // Errors show the whole body, and where in it they are.
            let before = routine.body.find(&text).unwrap_or(0);
            let before = routine.body.get(..before).unwrap_or_default();
            Piece {
                kind: PieceKind::Function,
                shown: routine.body.as_str().into(),
                text,
                shift: -(before.chars().count() as i64),
                names: names.clone(),
                simple,
                part: None,
                planned: Default::default(),
            }
        });
        let plain = !routine.security_definer && routine.settings.is_empty();
        let inlined = match routine.set {
            false => plain && call.result != TypeId::RECORD,
            true => plain && routine.volatility != b'v' && !routine.strict,
        };
        Ok(SqlCode {
            name: routine.name.as_str().into(),
            inlined: inlined && count == 1 && routine.kind == RoutineKind::Function,
            statements: statements.collect(),
            slots,
        })
    }

    /// The statements of a function in SQL.
    fn texts_of(&self, routine: &Routine) -> Result<Vec<String>> {
        if let Some(body) = &routine.sql_body {
            let texts = body.statements.iter();
            return Ok(texts.map(|statement| statement.text.clone()).collect());
        }
        self.refuse_escapes(&routine.body)?;
        let statements = parser::parse(&routine.body)?;
        let texts = statements.iter().map(|statement| statement.own_text());
        Ok(texts.map(|text| text.trim().to_owned()).collect())
    }

    /// Refuses the body of a function in SQL that could not run.
    ///
    /// # Errors
    /// What binding its statements gives; 42P13 for a last one that gives something else.
    pub(super) fn check_sql_body(&mut self, call: &RoutineCall) -> Result<()> {
        let code = self.compile_sql(call)?;
        let mut last = None;
        // Those of a body in standard SQL have been bound; only what the last one gives is to be known.
        let bound = match (&call.routine.sql_body, kind_of(call)) {
            (None, _) => 0,
            (Some(_), ReturnKind::Nothing | ReturnKind::Procedure) => code.statements.len(),
            (Some(_), _) => code.statements.len().saturating_sub(1),
        };
        for piece in code.statements.iter().skip(bound) {
            let compiled = self.compiled(piece, &code.slots)?;
            if let NodeEnum::CallStmt(call) = compiled.statement.node() {
                let (called, ..) = self.procedure_named(call, piece, &code.slots)?;
                refuse_outputs(&called, piece)?;
            }
            last = Some((
                compiled.planned.types.clone(),
                compiled.planned.columns.is_some(),
            ));
        }
        self.check_last(call, last)
    }

    fn run_sql_body(
        &mut self,
        call: &RoutineCall,
        body: &Body,
        code: &SqlCode,
        args: Vec<Datum>,
    ) -> Result<Gave> {
        self.placed(&code.name, At::Statement(1), |session| {
            session.run_sql_statements(call, body, code, args)
        })
    }

    fn run_sql_statements(
        &mut self,
        call: &RoutineCall,
        body: &Body,
        code: &SqlCode,
        args: Vec<Datum>,
    ) -> Result<Gave> {
        let places: Vec<usize> = (0..code.slots.len()).collect();
        let slots = filled(&code.slots, &places, args);
        let mut last = (RowStore::default(), Vec::new());
        for (place, piece) in code.statements.iter().enumerate() {
            self.go_to(At::Statement(place + 1));
            let is_last = place + 1 == code.statements.len();
            let most = match is_last {
                true if !call.routine.set => 1,
                true => usize::MAX,
                false => usize::MAX,
            };
            let located = |mut error: Error| {
                let line = format!("SQL function \"{}\" statement {}", code.name, place + 1);
                add_context(&mut error, &line);
                error
            };
            let compiled = self.compiled(piece, &slots);
            let compiled = compiled.map_err(|error| starting(error, code))?;
            if compiled.simple && is_last {
                // As if it stood in the statement itself.
                let (value, ty) = self.value_of(piece, &slots)?;
                let mut rows = RowStore::default();
                rows.push(vec![value])?;
                last = (rows, vec![ty]);
                continue;
            }
            if is_last && call.is_listed() {
                let planned = &compiled.planned;
                let last = (planned.types.clone(), planned.columns.is_some());
                let fits = self.check_last(call, Some(last));
                fits.map_err(|error| starting(error, code))?;
            }
            let ran = match &compiled.planned.bound {
                Some(bound) => {
                    let may = self.check_bound(bound, compiled.statement.node());
                    may.map_err(|error| in_function(error, &code.name, "during startup"))?;
                    let mut rows = RowStore::of("The rows of a statement");
                    let most = if bound.writes { usize::MAX } else { most };
                    let ran = self.run_piece(piece, &slots, &mut rows, most);
                    ran.map(|_| rows)
                }
                None => match compiled.statement.node() {
                    NodeEnum::CallStmt(call) => self.call_in_sql(call, piece, &slots),
                    _ => self.run_utility_in_sql(&compiled.statement, &slots),
                },
            };
            let rows = ran.map_err(|error| located(piece.explain(error)))?;
            last = (rows, compiled.planned.types.clone());
        }
        self.sql_result(call, &body.columns, last)
    }

    /// CALL in a function in SQL, which may name its arguments.
    fn call_in_sql(&mut self, call: &CallStmt, piece: &Piece, slots: &[Slot]) -> Result<RowStore> {
        let (called, args) = self.procedure_of(call, piece, slots)?;
        refuse_outputs(&called, piece)?;
        self.call_procedure(&called, args, true, &mut Nowhere)?;
        Ok(RowStore::default())
    }

    /// A statement without a plan of its own; one with a query in it takes arguments by their numbers.
    fn run_utility_in_sql(
        &mut self,
        statement: &parser::Statement,
        slots: &[Slot],
    ) -> Result<RowStore> {
        let about = about(statement.node());
        let slots = if about.takes_inner_params { slots } else { &[] };
        let params: Vec<_> = slots.iter().map(|slot| slot.value.clone()).collect();
        let types: Vec<_> = slots.iter().map(|slot| slot.ty).collect();
        about.in_plpgsql.check(false).map_err(|_| {
            Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("{} is not allowed in a SQL function", about.command),
            )
        })?;
        let mut nowhere = Nowhere;
        let mut kept = KeptRows::new(&mut nowhere);
        self.utility(&mut Given {
            statement,
            params: &params,
            param_types: &types,
            sink: &mut kept,
            alone: false,
        })?;
        Ok(kept.into_rows())
    }

    /// # Errors
    /// 0A000 for a statement that writes or locks rows in a routine that does not.
    pub(super) fn check_bound(&self, bound: &Bound, node: &NodeEnum) -> Result<()> {
        match (bound.writes, bound.locks_rows) {
            (true, _) => self.check_may_write(about(node).command),
            (false, Some(name)) => self.check_may_write(name),
            (false, None) => Ok(()),
        }
    }

    /// What CALL names, the plan of what it gives, and the values that this looks at.
    fn procedure_named(
        &mut self,
        call: &CallStmt,
        piece: &Piece,
        slots: &[Slot],
    ) -> Result<(Rc<RoutineCall>, Bound, Vec<Datum>)> {
        let Some(written) = &call.funccall else {
            return Err(Error::internal("CALL of nothing"));
        };
        self.ensure_open()?;
        let catalog = self.current_catalog()?;
        let view = View::of(&piece.names, slots);
        let (called, bound) = self.try_binding_with(&piece.text, &catalog, &view, |binder| {
            binder.procedure_call(written)
        })?;
        let sources = view.into_sources();
        let params = super::plpgsql::piece::values_of(&sources, slots);
        Ok((called, bound, params))
    }

    /// What CALL names, and the values that it gives.
    pub(super) fn procedure_of(
        &mut self,
        call: &CallStmt,
        piece: &Piece,
        slots: &[Slot],
    ) -> Result<(Rc<RoutineCall>, Vec<Datum>)> {
        let (called, bound, params) = self.procedure_named(call, piece, slots)?;
        let catalog = self.current_catalog()?;
        let args = self.call_arguments(&catalog, &bound, &params)?;
        Ok((called, args))
    }

    fn call_arguments(
        &mut self,
        catalog: &Arc<catalog::Catalog>,
        bound: &Bound,
        params: &[Datum],
    ) -> Result<Vec<Datum>> {
        let role = self.shared.settings.current_role();
        let permitted = bound.plan.permit(catalog, role)?;
        self.begin_statement()?;
        let eval = self.eval.clone();
        let mut cx = Exec::new(&Relations, self, permitted.permit(), &eval, params);
        let row = exec::open(permitted, None).next(&mut cx)?;
        Ok(row.unwrap_or_default())
    }

    /// Runs a procedure; its outputs as a record.
    pub(super) fn call_procedure(
        &mut self,
        call: &RoutineCall,
        args: Vec<Datum>,
        atomic: bool,
        sink: &mut dyn Sink,
    ) -> Result<Datum> {
        coro::check_depth()?;
        let body = self.body_of(call)?;
        let nested = Nested {
            reads_only: false,
            quiet: self.is_quiet(),
            view: None,
        };
        // Rights and settings that end with the call would not outlast a transaction.
        let routine = &call.routine;
        let atomic = atomic || routine.security_definer || !routine.settings.is_empty();
        let done = self.inside(routine, nested, |session| match &body.code {
            BodyCode::Sql(code) => session.run_sql_body(call, &body, code, args),
            BodyCode::PlPgSql(code) => {
                let slots = filled(&code.slots, &code.inputs, args);
                let done = session.run_block(code, slots, atomic, sink)?;
                Ok(Gave {
                    value: done.returned,
                    rows: RowStore::default(),
                })
            }
        })?;
        Ok(done.value)
    }

    /// CALL, as a client gives it.
    pub(super) fn call_statement(
        &mut self,
        text: &str,
        call: &CallStmt,
        given: (&[Datum], &[TypeId]),
        sink: &mut dyn Sink,
        alone: bool,
    ) -> Result<CommandTag> {
        let (piece, slots) = call_piece(text, given);
        let (called, args) = self.procedure_of(call, &piece, &slots)?;
        let atomic = self.state == State::Block || !alone;
        let done = self.call_procedure(&called, args, atomic, sink)?;
        self.hand_on_notices(sink)?;
        if let (Datum::Record(record), false) = (&done, called.columns.is_empty()) {
            self.give_rows(std::slice::from_ref(&record.values), &record.types, sink)?;
        }
        Ok(tag("CALL"))
    }

    /// The types of the parameters of CALL, of which these are given.
    pub(super) fn call_parameters(
        &mut self,
        call: &CallStmt,
        given: &[TypeId],
    ) -> Result<Vec<TypeId>> {
        let Some(written) = &call.funccall else {
            return Ok(given.to_vec());
        };
        let catalog = self.current_catalog()?;
        let bound = self.try_binding_open("", &catalog, given, |binder| {
            binder.procedure_call(written)?;
            binder.finish_params()
        });
        // What is wrong is said when it is run, with its place.
        Ok(bound.unwrap_or_else(|_| given.to_vec()))
    }

    /// The columns of what CALL gives, if there is any.
    pub(super) fn call_columns(
        &mut self,
        call: &CallStmt,
        types: &[TypeId],
    ) -> Result<Option<Vec<Column>>> {
        let Some(written) = &call.funccall else {
            return Ok(None);
        };
        let catalog = self.current_catalog()?;
        let unknown = vec![Datum::Null; types.len()];
        let (piece, slots) = call_piece("", (&unknown, types));
        let view = View::of(&piece.names, &slots);
        let bound =
            self.try_binding_with("", &catalog, &view, |binder| binder.procedure_call(written));
        // What is wrong is said when it is run, with its place.
        let Ok((called, _)) = bound else {
            return Ok(None);
        };
        let columns = called.columns.iter();
        let columns: Vec<_> = columns
            .map(|(name, ty)| super::plan::typed_column(name, *ty))
            .collect();
        Ok((!columns.is_empty()).then_some(columns))
    }
}

/// # Errors
/// 0A000 for a procedure that gives something back, where a function in SQL calls it; not in a body in
/// standard SQL, as in PostgreSQL.
fn refuse_outputs(called: &RoutineCall, piece: &Piece) -> Result<()> {
    if called.columns.is_empty() || piece.names.sql_body.is_some() {
        return Ok(());
    }
    let message = "calling procedures with output arguments is not supported in SQL functions";
    Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// A CALL outside of any block, whose parameters are variables.
fn call_piece(text: &str, (params, types): (&[Datum], &[TypeId])) -> (Piece, Vec<Slot>) {
    let mut names = Names::default();
    let mut slots = Vec::new();
    for (place, (value, ty)) in params.iter().zip(types).enumerate() {
        names.variables.push((format!("${}", place + 1), place));
        let mut slot = Slot::of("", *ty);
        slot.value = value.clone();
        slots.push(slot);
    }
    let piece = Piece {
        kind: PieceKind::Function,
        shown: text.into(),
        text: text.to_owned(),
        shift: 0,
        names: Rc::new(names),
        simple: false,
        part: None,
        planned: Default::default(),
    };
    (piece, slots)
}

/// An error of a function in SQL before its first statement.
fn starting(error: Error, code: &SqlCode) -> Error {
    let when = match code.inlined {
        true => "during inlining",
        false => "during startup",
    };
    in_function(error, &code.name, when)
}

fn in_function(mut error: Error, name: &str, when: &str) -> Error {
    add_context(&mut error, &format!("SQL function \"{name}\" {when}"));
    error
}

/// The variables of a body with what it is given.
fn filled(slots: &[Slot], inputs: &[usize], args: Vec<Datum>) -> Vec<Slot> {
    let mut slots = slots.to_vec();
    for (place, value) in inputs.iter().zip(args) {
        slots[*place].value = value;
    }
    slots
}

/// The arguments of a function in SQL as its statements name them. Those of a body in standard SQL are
/// called as the catalog has them there.
pub(super) fn arguments_of(call: &RoutineCall) -> (Names, Vec<Slot>) {
    let routine = &call.routine;
    let label = match &routine.sql_body {
        None => routine.name.as_str(),
        Some(_) => BY_OID,
    };
    let mut names = Names {
        label: Some(label.to_owned()),
        conflict: Conflict::Column,
        sql_body: routine.sql_body.clone(),
        ..Names::default()
    };
    // What a body in standard SQL means was settled when it was made.
    let collation = match routine.sql_body {
        Some(_) => Collated::default(),
        None => call.collation,
    };
    let mut slots = Vec::new();
    for (place, (input, ty)) in routine.inputs().zip(&call.types).enumerate() {
        names.variables.push((format!("${}", place + 1), place));
        if !input.name.is_empty() {
            names.variables.push((input.name.clone(), place));
        }
        slots.push(Slot {
            collation,
            ..Slot::of(&input.name, *ty)
        });
    }
    (names, slots)
}

/// What the compiler is told of a routine.
pub(super) fn signature_of(call: &RoutineCall, shown: String) -> Signature {
    let routine = &call.routine;
    let mut types = call.types.iter();
    let mut outputs = call.columns.iter();
    let arguments = routine.arguments.iter().map(|argument| {
        let input = argument.mode.is_input();
        let output = argument.mode.is_output();
        let given = if input { types.next().copied() } else { None };
        let back = if output {
            outputs.next().map(|column| column.1)
        } else {
            None
        };
        let ty = given.or(back).unwrap_or(argument.type_id);
        (argument.name.clone(), ty, input, output)
    });
    Signature {
        shown,
        name: routine.name.clone(),
        arguments: arguments.collect(),
        kind: kind_of(call),
        set: routine.set,
        trigger: call.result == TypeId::TRIGGER,
        rows: Vec::new(),
        is_new: false,
        collation: call.collation,
    }
}
