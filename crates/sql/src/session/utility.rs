//! Statements that are carried out from their trees, and are too small for modules of their own:
//! transactions, settings, locks, prepared statements. [`super::statements`] has them run.

use std::rc::Rc;

use base::engine::{Isolation, LockWait, TableLock, TxnOptions};
use base::{coro, Error, Result, SqlState};
use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{
    DeallocateStmt, DefElem, DiscardMode, ExecuteStmt, ExplainStmt, LockStmt, Node, PrepareStmt,
    RangeVar, TransactionStmt, TransactionStmtKind, TypeCast, VariableSetKind, VariableSetStmt,
    VariableShowStmt,
};

use super::lock_names::named_table;
use super::plan::{text_column, text_row};
use super::statements::{discard_command, inner};
use super::transaction::State;
use super::{Column, CommandTag, Notice, NoticeSeverity, Session, Sink};
use catalog::access::{denied, Guarded, Privileges, CHECKPOINT};
use catalog::{RelationKind, Table};
use execution::settings::{is_guarded, is_private, isolation};
use execution::state::Prepared;
use functions::strings::quote_identifier;
use planner::bind::{self, BindContext};
use syntax::parser::{NodeEnum, Statement};
use types::datetime::{interval, interval_text};
use types::{Datum, IntervalStyle, TypeId};

/// A tag without a number.
pub(super) fn tag(name: &'static str) -> CommandTag {
    CommandTag { name, rows: None }
}

/// A node inside an optional box.
pub(super) fn node_of(node: &Option<Box<Node>>) -> Option<&NodeEnum> {
    node.as_ref().and_then(|node| node.node.as_ref())
}

impl Session {
    /// The columns of SHOW.
    pub(super) fn show_columns(&self, show: &VariableShowStmt) -> Result<Option<Vec<Column>>> {
        if show.name == "all" {
            let names = ["name", "setting", "description"];
            return Ok(Some(names.map(text_column).to_vec()));
        }
        let name = self.shared.settings.show(&show.name)?.0;
        Ok(Some(vec![text_column(&name)]))
    }

    /// The columns of what EXECUTE runs.
    pub(super) fn executed_columns(&self, execute: &ExecuteStmt) -> Result<Option<Vec<Column>>> {
        let prepared = self.prepared(&execute.name)?;
        Ok(prepared.columns().map(<[Column]>::to_vec))
    }

    pub(super) fn explain_statement(
        &mut self,
        statement: &Statement,
        explain: &ExplainStmt,
        (params, types): (&[Datum], &[TypeId]),
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let lines = self.explain(statement, explain, (params, types), sink)?;
        let rows: Vec<_> = lines.iter().map(|line| text_row(&[line])).collect();
        self.give_rows(&rows, &[TypeId::TEXT], sink)?;
        Ok(tag("EXPLAIN"))
    }

    pub(super) fn deallocate(&mut self, deallocate: &DeallocateStmt) -> Result<CommandTag> {
        if deallocate.name.is_empty() {
            self.drop_all_prepared();
            return Ok(tag("DEALLOCATE ALL"));
        }
        self.prepared(&deallocate.name)?;
        self.drop_prepared(&deallocate.name);
        Ok(tag("DEALLOCATE"))
    }

    pub(super) fn checkpoint(&mut self) -> Result<CommandTag> {
        self.must_checkpoint()?;
        coro::wait(self.shared.engine.administrator()?.checkpoint())??;
        Ok(tag("CHECKPOINT"))
    }

    /// Shows a message to the client if `client_min_messages` lets it through, and logs it.
    pub(super) fn notice(
        &mut self,
        severity: NoticeSeverity,
        body: Error,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if self.is_quiet() {
            self.keep_notice(severity, body);
            return Ok(());
        }
        self.shared.send_notices(sink)?;
        let body = self.eval.name_types_in(body);
        let notice = Notice { severity, body };
        self.shared.log_notice(&notice, sink);
        let wanted = match self.shared.settings.parsed().min_messages {
            None => false,
            // INFO is always sent.
            Some(least) => severity == NoticeSeverity::Info || severity >= least,
        };
        if !wanted {
            return Ok(());
        }
        self.tell(sink)?;
        sink.notice(&notice)
    }

    pub(super) fn warn(
        &mut self,
        state: SqlState,
        message: &str,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        self.notice(NoticeSeverity::Warning, Error::new(state, message), sink)
    }

    pub(super) fn transaction(
        &mut self,
        transaction: &TransactionStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        use TransactionStmtKind as Kind;
        let kind = Kind::try_from(transaction.kind).unwrap_or(Kind::Undefined);
        match kind {
            Kind::TransStmtBegin | Kind::TransStmtStart => {
                self.begin_block(&transaction.options, sink)?;
                let start = kind == Kind::TransStmtStart;
                Ok(tag(if start { "START TRANSACTION" } else { "BEGIN" }))
            }
            Kind::TransStmtCommit => {
                let chained = self.chained(transaction, "COMMIT")?;
                let outcome = match self.state {
                    State::Block => {
                        self.commit(sink)?;
                        "COMMIT"
                    }
                    State::Failed => {
                        self.roll_back();
                        "ROLLBACK"
                    }
                    State::None | State::Implicit => {
                        self.no_transaction(sink)?;
                        self.commit(sink)?;
                        "COMMIT"
                    }
                };
                self.chain(chained)?;
                Ok(tag(outcome))
            }
            Kind::TransStmtRollback => {
                let chained = self.chained(transaction, "ROLLBACK")?;
                if matches!(self.state, State::None | State::Implicit) {
                    self.no_transaction(sink)?;
                }
                self.roll_back();
                self.chain(chained)?;
                Ok(tag("ROLLBACK"))
            }
            Kind::TransStmtSavepoint => {
                self.require_begun("SAVEPOINT")?;
                self.make_savepoint(&transaction.savepoint_name)?;
                Ok(tag("SAVEPOINT"))
            }
            Kind::TransStmtRelease => {
                self.require_begun("RELEASE SAVEPOINT")?;
                self.release_savepoint(&transaction.savepoint_name)?;
                Ok(tag("RELEASE"))
            }
            Kind::TransStmtRollbackTo => {
                self.require_begun("ROLLBACK TO SAVEPOINT")?;
                self.roll_back_to_savepoint(&transaction.savepoint_name)?;
                Ok(tag("ROLLBACK"))
            }
            Kind::TransStmtPrepare => self.prepare_transaction(&transaction.gid, sink),
            Kind::TransStmtCommitPrepared => self.resolve_prepared(&transaction.gid, true, sink),
            Kind::TransStmtRollbackPrepared => self.resolve_prepared(&transaction.gid, false, sink),
            Kind::Undefined => Err(Error::internal("a transaction command without a kind")),
        }
    }

    pub(super) fn no_transaction(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let state = SqlState::NO_ACTIVE_SQL_TRANSACTION;
        self.warn(state, "there is no transaction in progress", sink)
    }

    /// AND CHAIN begins the next block at once, with the characteristics of the one that ended.
    fn chain(&mut self, options: Option<TxnOptions>) -> Result<()> {
        let Some(options) = options else {
            return Ok(());
        };
        self.begin(options)?;
        self.state = State::Block;
        let settings = &mut self.shared.settings;
        let read_only = if options.read_only { "on" } else { "off" };
        settings.set(None, "transaction_read_only", Some(read_only), true)?;
        let deferrable = if options.deferrable { "on" } else { "off" };
        settings.set(None, "transaction_deferrable", Some(deferrable), true)?;
        let level = match options.isolation {
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        };
        settings.set(None, "transaction_isolation", Some(level), true)
    }

    /// What AND CHAIN hands on.
    fn chained(&self, transaction: &TransactionStmt, name: &str) -> Result<Option<TxnOptions>> {
        if !transaction.chain {
            return Ok(None);
        }
        if !matches!(self.state, State::Block | State::Failed) {
            return Err(Error::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                format!("{name} AND CHAIN can only be used in transaction blocks"),
            ));
        }
        Ok(Some(self.characteristics))
    }

    /// 25P01 where no block was begun, also among several statements of one message.
    fn require_begun(&self, what: &str) -> Result<()> {
        self.require_block(what, true)
    }

    fn require_block(&self, what: &str, alone: bool) -> Result<()> {
        let inside = matches!(self.state, State::Block | State::Failed);
        if inside || (!alone && self.state == State::Implicit) {
            return Ok(());
        }
        Err(Error::new(
            SqlState::NO_ACTIVE_SQL_TRANSACTION,
            format!("{what} can only be used in transaction blocks"),
        ))
    }

    /// What BEGIN says of a transaction that there is already.
    fn set_characteristics(&mut self, options: &[Node]) -> Result<()> {
        for (name, value) in transaction_options(options) {
            self.set_characteristic(name, &value)?;
        }
        Ok(())
    }

    fn begin_block(&mut self, options: &[Node], sink: &mut dyn Sink) -> Result<()> {
        match self.state {
            State::Block => {
                let state = SqlState::ACTIVE_SQL_TRANSACTION;
                self.warn(state, "there is already a transaction in progress", sink)?;
                self.set_characteristics(options)?;
            }
            // The statements before BEGIN in the same message become part of the block.
            State::Implicit if self.open.is_some() => {
                self.state = State::Block;
                self.set_characteristics(options)?;
            }
            _ => {
                let parsed = self.shared.settings.parsed();
                let mut wanted = TxnOptions {
                    isolation: parsed.default_isolation,
                    read_only: parsed.default_read_only,
                    deferrable: parsed.default_deferrable,
                    ..TxnOptions::default()
                };
                for (name, value) in transaction_options(options) {
                    match name {
                        "transaction_isolation" => wanted.isolation = isolation(&value),
                        "transaction_read_only" => {
                            wanted.read_only = value == "on";
                            self.check_read_write(wanted.read_only)?;
                        }
                        "transaction_deferrable" => wanted.deferrable = value == "on",
                        _ => {}
                    }
                }
                self.begin(wanted)?;
                self.state = State::Block;
            }
        }
        for (name, value) in transaction_options(options) {
            let settings = &mut self.shared.settings;
            settings.set(None, name, Some(&value), true)?;
        }
        Ok(())
    }

    /// SET as one of the statements of a message, or alone in it.
    pub(super) fn set_in_message(
        &mut self,
        set: &VariableSetStmt,
        sink: &mut dyn Sink,
        alone: bool,
    ) -> Result<CommandTag> {
        let of_transaction = set.is_local || set.name.starts_with("TRANSACTION");
        if of_transaction && !alone {
            // Whatever else the message has is in the transaction too.
            self.ensure_open()?;
        }
        self.set_statement(set, sink)
    }

    pub(super) fn set_statement(
        &mut self,
        set: &VariableSetStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let kind = VariableSetKind::try_from(set.kind).unwrap_or(VariableSetKind::Undefined);
        match kind {
            VariableSetKind::VarSetValue => {
                if set.is_local && self.state == State::None {
                    let state = SqlState::NO_ACTIVE_SQL_TRANSACTION;
                    self.warn(
                        state,
                        "SET LOCAL can only be used in transaction blocks",
                        sink,
                    )?;
                }
                let value = setting_value(&set.name, &set.args)?;
                self.apply_setting(&set.name, Some(&value), set.is_local)?;
                Ok(tag("SET"))
            }
            VariableSetKind::VarSetDefault => {
                self.apply_setting(&set.name, None, set.is_local)?;
                Ok(tag("SET"))
            }
            VariableSetKind::VarReset => {
                self.apply_setting(&set.name, None, false)?;
                Ok(tag("RESET"))
            }
            VariableSetKind::VarResetAll => {
                self.shared.settings.reset_all();
                self.settings_changed();
                Ok(tag("RESET"))
            }
            VariableSetKind::VarSetMulti => self.set_transaction(set, sink),
            _ => Err(Error::unsupported("SET … FROM CURRENT")),
        }
    }

    /// Changes a setting; an implicit transaction takes it along.
    pub(super) fn apply_setting(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<()> {
        match name {
            "transaction_isolation" => {
                self.set_characteristic(name, value.unwrap_or("read committed"))?;
            }
            "transaction_read_only" | "transaction_deferrable" => {
                self.set_characteristic(name, value.unwrap_or("off"))?;
            }
            _ => {}
        }
        let catalog = match is_guarded(name) {
            true => Some(self.current_catalog()?),
            false => None,
        };
        let settings = &mut self.shared.settings;
        settings.set(catalog.as_deref(), name, value, local)?;
        self.settings_changed();
        Ok(())
    }

    /// As [`Session::setting_given`], without SET … FROM CURRENT.
    pub(super) fn value_given(
        &self,
        set: &VariableSetStmt,
    ) -> Result<Option<(String, Option<String>)>> {
        Ok(match VariableSetKind::try_from(set.kind) {
            Ok(VariableSetKind::VarSetValue) => {
                let value = setting_value(&set.name, &set.args)?;
                Some((set.name.clone(), Some(value)))
            }
            Ok(VariableSetKind::VarReset | VariableSetKind::VarSetDefault) => {
                Some((set.name.clone(), None))
            }
            _ => None,
        })
    }

    /// The setting that SET or RESET names, and its value; none for RESET ALL.
    pub(super) fn setting_given(
        &mut self,
        set: &VariableSetStmt,
    ) -> Result<Option<(String, Option<String>)>> {
        match VariableSetKind::try_from(set.kind) {
            Ok(VariableSetKind::VarSetCurrent) => {
                let value = self.shown(&set.name)?.1;
                Ok(Some((set.name.clone(), Some(value))))
            }
            _ => self.value_given(set),
        }
    }

    pub(super) fn settings_changed(&mut self) {
        self.refresh_eval();
        let timeout = self.shared.settings.parsed().lock_timeout;
        if let Some(open) = &mut self.open {
            open.txn.set_lock_timeout(timeout);
        }
    }

    /// SET TRANSACTION and SET SESSION CHARACTERISTICS.
    fn set_transaction(
        &mut self,
        set: &VariableSetStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let session = set.name == "SESSION CHARACTERISTICS";
        if !session && self.state == State::None {
            let state = SqlState::NO_ACTIVE_SQL_TRANSACTION;
            self.warn(
                state,
                "SET TRANSACTION can only be used in transaction blocks",
                sink,
            )?;
        }
        if set.name == "TRANSACTION SNAPSHOT" {
            self.import_snapshot(set.args.first().map_or("", constant_text))?;
        }
        for (name, value) in transaction_options(&set.args) {
            if session {
                self.apply_setting(&format!("default_{name}"), Some(&value), false)?;
                continue;
            }
            self.set_characteristic(name, &value)?;
            let settings = &mut self.shared.settings;
            settings.set(None, name, Some(&value), true)?;
        }
        Ok(tag("SET"))
    }

    pub(super) fn show(&mut self, name: &str, sink: &mut dyn Sink) -> Result<CommandTag> {
        if name == "all" {
            let catalog = self.current_catalog()?;
            let settings = &self.shared.settings;
            let all = settings.show_all();
            let rows: Vec<_> = all
                .iter()
                .filter(|(name, ..)| settings.is_visible(&catalog, name))
                .map(|(name, value, description)| text_row(&[name, value, description]))
                .collect();
            self.give_rows(&rows, &[TypeId::TEXT; 3], sink)?;
            return Ok(tag("SHOW"));
        }
        let value = self.shown(name)?.1;
        self.give_rows(&[text_row(&[&value])], &[TypeId::TEXT], sink)?;
        Ok(tag("SHOW"))
    }

    /// A setting's name and value, for who the session is.
    pub(super) fn shown(&mut self, name: &str) -> Result<(String, String)> {
        match is_private(name) {
            true => {
                let catalog = self.current_catalog()?;
                self.shared.settings.show_to_user(&catalog, name)
            }
            false => self.shared.settings.show(name),
        }
    }

    pub(super) fn prepare_sql(
        &mut self,
        statement: &Statement,
        prepare: &PrepareStmt,
    ) -> Result<CommandTag> {
        let catalog = self.current_catalog()?;
        let search_path = self.search_path(&catalog);
        let cx = BindContext {
            catalog: &catalog,
            search_path: &search_path,
            role: self.shared.settings.current_role(),
            eval: &self.eval,
            text: statement.text(),
            literals: None,
            variables: None,
        };
        let mut types = Vec::new();
        for node in &prepare.argtypes {
            if let Some(NodeEnum::TypeName(name)) = &node.node {
                types.push(bind::type_names::resolve(&cx, name)?.0);
            }
        }
        let inner = statement.inner(inner);
        let inner = inner.ok_or_else(|| Error::internal("PREPARE of nothing"))?;
        let prepared = self.prepare_statement(inner, &types, true)?;
        self.keep_prepared(&prepare.name, prepared)?;
        Ok(tag("PREPARE"))
    }

    /// What EXECUTE names, and the values that it gives.
    ///
    /// # Errors
    /// 26000 and 42601, and what computing the values raises.
    pub(super) fn named_execution(
        &mut self,
        statement: &Statement,
        execute: &ExecuteStmt,
    ) -> Result<(Rc<Prepared>, Vec<Datum>)> {
        let prepared = self.prepared(&execute.name)?;
        let types = prepared.param_type_ids();
        if types.len() != execute.params.len() {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "wrong number of parameters for prepared statement \"{}\"",
                    execute.name
                ),
            )
            .with_detail(format!(
                "Expected {} parameters but got {}.",
                types.len(),
                execute.params.len()
            )));
        }
        let mut params = Vec::with_capacity(types.len());
        for (number, (node, ty)) in (1..).zip(execute.params.iter().zip(types)) {
            params.push(self.execute_parameter(statement.text(), node, number, *ty)?);
        }
        Ok((prepared, params))
    }

    pub(super) fn execute_sql(
        &mut self,
        statement: &Statement,
        execute: &ExecuteStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let (prepared, params) = self.named_execution(statement, execute)?;
        self.current_plan(&prepared)?;
        prepared.count_execution();
        self.run_prepared(&prepared, &params, sink, false)
    }

    pub(super) fn discard(&mut self, target: i32) -> Result<CommandTag> {
        match DiscardMode::try_from(target) {
            Ok(DiscardMode::DiscardAll) => {
                self.discard_temporary()?;
                self.close_cursor("")?;
                self.drop_all_prepared();
                self.shared.forget_sequences();
                self.shared.settings.reset_all();
                let settings = &mut self.shared.settings;
                settings.set(None, "session_authorization", None, false)?;
                settings.end_transaction();
                self.settings_changed();
                if !self.shared.notify.channels().is_empty() {
                    self.unlisten("")?;
                }
                if let Some(locks) = &mut self.shared.advisory {
                    locks.unlock_all();
                }
            }
            Ok(DiscardMode::DiscardPlans) => {}
            Ok(DiscardMode::DiscardSequences) => self.shared.forget_sequences(),
            _ => self.discard_temporary()?,
        }
        Ok(tag(discard_command(target)))
    }

    /// 42501 for whoever may not ask for a checkpoint.
    fn must_checkpoint(&mut self) -> Result<()> {
        let catalog = self.current_catalog()?;
        match catalog.has_privileges_of(self.shared.settings.current_role(), CHECKPOINT) {
            true => Ok(()),
            false => Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT",
            )),
        }
    }

    /// LOCK TABLE: what the name means once it is locked is what was locked.
    fn lock_as_asked(&mut self, range: &RangeVar, mode: TableLock, wait: LockWait) -> Result<()> {
        loop {
            let table = self.find_table(range)?;
            self.must_hold(&table, enough_to_lock(mode))?;
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            let locked = open.txn.lock_table(table.tree, mode, wait);
            locked.map_err(|error| named_table(error, &table))?;
            let again = self.find_table(range)?;
            if again.tree == table.tree && again.oid == table.oid {
                return match range.inh {
                    true => self.lock_below(&again, &mut Vec::new(), mode, wait),
                    false => Ok(()),
                };
            }
        }
    }

    /// Locks what a view names too, for which its owner needs the privileges, or with
    /// `security_invoker` the session's role.
    fn lock_below(
        &mut self,
        view: &Table,
        above: &mut Vec<u32>,
        mode: TableLock,
        wait: LockWait,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        for table in catalog.below(view).iter().chain(&catalog.heirs(view)) {
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            let locked = open.txn.lock_table(table.tree, mode, wait);
            locked.map_err(|error| named_table(error, table))?;
        }
        let query = view.view.as_ref();
        let Some(query) = query.filter(|_| view.kind == RelationKind::View) else {
            return Ok(());
        };
        if above.contains(&view.oid) {
            return Err(bind::view::endless(view));
        }
        above.push(view.oid);
        let catalog = self.current_catalog()?;
        let role = match view.security_invoker() {
            true => self.shared.settings.current_role(),
            false => view.owner,
        };
        let named = query.uses.iter();
        let named = named.filter_map(|uses| catalog.table_by_oid(uses.relation));
        for table in named {
            let kinds = [
                RelationKind::Table,
                RelationKind::View,
                RelationKind::Partitioned,
            ];
            if !kinds.contains(&table.kind) {
                continue;
            }
            if !catalog.holds_any(role, Guarded::Table, table.oid, enough_to_lock(mode)) {
                return Err(denied(table.kind.noun(), &table.name));
            }
            let Some(open) = &mut self.open else {
                return Err(Error::internal("nothing is open"));
            };
            let locked = open.txn.lock_table(table.tree, mode, wait);
            locked.map_err(|error| named_table(error, table))?;
            self.lock_below(table, above, mode, wait)?;
        }
        above.pop();
        Ok(())
    }

    pub(super) fn lock_statement(&mut self, lock: &LockStmt, alone: bool) -> Result<CommandTag> {
        // Beside other statements, those of a function too, it stands in their transaction.
        if alone {
            self.require_block("LOCK TABLE", alone)?;
        }
        self.ensure_open()?;
        let mode = [
            TableLock::AccessShare,
            TableLock::RowShare,
            TableLock::RowExclusive,
            TableLock::ShareUpdateExclusive,
            TableLock::Share,
            TableLock::ShareRowExclusive,
            TableLock::Exclusive,
            TableLock::AccessExclusive,
        ]
        .get(usize::try_from(lock.mode - 1).unwrap_or(usize::MAX))
        .copied()
        .ok_or_else(|| Error::internal(format!("lock mode {}", lock.mode)))?;
        let wait = if lock.nowait {
            LockWait::NoWait
        } else {
            LockWait::Block
        };
        for node in &lock.relations {
            let Some(NodeEnum::RangeVar(range)) = &node.node else {
                continue;
            };
            self.lock_as_asked(range, mode, wait)?;
        }
        Ok(tag("LOCK TABLE"))
    }
}

/// The privileges of which one is enough to lock a table so.
fn enough_to_lock(mode: TableLock) -> Privileges {
    let write = Privileges::UPDATE
        .with(Privileges::DELETE)
        .with(Privileges::TRUNCATE);
    match mode {
        TableLock::AccessShare => Privileges::SELECT,
        TableLock::RowExclusive => write.with(Privileges::INSERT),
        _ => write,
    }
}

/// The options of BEGIN and SET TRANSACTION: setting and value.
fn transaction_options(options: &[Node]) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    for node in options {
        let Some(NodeEnum::DefElem(option)) = &node.node else {
            continue;
        };
        match option.defname.as_str() {
            "transaction_isolation" => out.push(("transaction_isolation", option_text(option))),
            "transaction_read_only" => out.push(("transaction_read_only", option_flag(option))),
            "transaction_deferrable" => out.push(("transaction_deferrable", option_flag(option))),
            _ => {}
        }
    }
    out
}

/// The text of a constant.
fn constant_text(node: &Node) -> &str {
    match &node.node {
        Some(NodeEnum::AConst(constant)) => match &constant.val {
            Some(Val::Sval(text)) => &text.sval,
            _ => "",
        },
        _ => "",
    }
}

/// The value of a storage parameter: one that is only named is on.
pub(super) fn parameter_text(option: &DefElem) -> String {
    match option.arg {
        None => "true".to_owned(),
        Some(_) => option_text(option),
    }
}

/// The text of an option's argument.
pub(super) fn option_text(option: &DefElem) -> String {
    match node_of(&option.arg) {
        Some(NodeEnum::AConst(constant)) => match &constant.val {
            Some(Val::Sval(text)) => text.sval.clone(),
            Some(Val::Ival(number)) => number.ival.to_string(),
            Some(Val::Fval(number)) => number.fval.clone(),
            Some(Val::Boolval(value)) => value.boolval.to_string(),
            _ => "0".to_owned(),
        },
        Some(NodeEnum::String(text)) => text.sval.clone(),
        Some(NodeEnum::Integer(number)) => number.ival.to_string(),
        Some(NodeEnum::Float(number)) => number.fval.clone(),
        Some(NodeEnum::Boolean(value)) => value.boolval.to_string(),
        Some(NodeEnum::TypeName(name)) => {
            let last = name.names.last().and_then(|node| node.node.as_ref());
            match last {
                Some(NodeEnum::String(text)) => text.sval.clone(),
                _ => String::new(),
            }
        }
        _ => String::new(),
    }
}

fn option_flag(option: &DefElem) -> String {
    match option_text(option).as_str() {
        "0" | "false" | "off" => "off".to_owned(),
        _ => "on".to_owned(),
    }
}

/// The value of `SET TIME ZONE INTERVAL '…'`: the same with what its fields and precision leave.
fn zone_interval(cast: &TypeCast) -> Result<String> {
    let text = match node_of(&cast.arg) {
        Some(NodeEnum::AConst(constant)) => match &constant.val {
            Some(Val::Sval(text)) => &text.sval,
            _ => "",
        },
        _ => "",
    };
    let modifiers = cast.type_name.iter().flat_map(|name| &name.typmods);
    let modifiers: Vec<i32> = modifiers
        .filter_map(|node| match &node.node {
            Some(NodeEnum::AConst(constant)) => match &constant.val {
                Some(Val::Ival(number)) => Some(number.ival),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let typmod = match modifiers.is_empty() {
        true => types::NO_TYPMOD,
        false => types::typmod::typmod_in(TypeId::INTERVAL, &modifiers)?,
    };
    let read = interval_text::parse(text, typmod, false)?;
    let read = interval::apply_typmod(read, typmod)?;
    let mut shown = "INTERVAL '".to_owned();
    interval::write(IntervalStyle::Postgres, &read, &mut shown);
    shown.push('\'');
    Ok(shown)
}

/// The value that SET gives, as text.
fn setting_value(name: &str, args: &[Node]) -> Result<String> {
    let mut parts = Vec::new();
    for node in args {
        let text = match &node.node {
            Some(NodeEnum::AConst(constant)) => match &constant.val {
                Some(Val::Sval(text)) => text.sval.clone(),
                Some(Val::Ival(number)) => number.ival.to_string(),
                Some(Val::Fval(number)) => number.fval.clone(),
                Some(Val::Boolval(value)) => value.boolval.to_string(),
                _ => "0".to_owned(),
            },
            Some(NodeEnum::TypeCast(cast)) => zone_interval(cast)?,
            _ => return Err(Error::internal("SET to no constant")),
        };
        parts.push(text);
    }
    if name == "search_path" {
        let quoted: Vec<_> = parts.iter().map(|part| quote_identifier(part)).collect();
        return Ok(quoted.join(", "));
    }
    Ok(parts.join(", "))
}
