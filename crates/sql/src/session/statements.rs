//! The statements: a row for each kind that the grammar knows.
//!
//! A row says what a statement is called, what it may do where, and who runs it:
//!
//! ```text
//! CheckPointStmt(_) => "CHECKPOINT", UTILITY, session.checkpoint();
//! CommentStmt(it) => "COMMENT", DEFINITION, session.comment(it);
//! ```
//! [`about`] answers from the rows whatever the session asks of a statement before it runs: whether
//! it has a plan, whether a failed block takes it, at which `log_statement` it is logged.
//! [`Session::utility`] holds every statement to its row, and then has it run.
//!
//! The rows are arms of a `match`, so that to ask costs no more than that, and each arm has the
//! statement's node as `it`. Where one node of the grammar is several statements, a row has a
//! condition, or its first two entries depend on `it`.
//!
//! # What it leaves out
//! What can be told only once names are looked up, or options read, stands with who runs it: that
//! REINDEX of a schema must stand outside a block, or that COPY FROM writes.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    DefineStmt, DiscardMode, ExplainStmt, ObjectType, RenameStmt, TransactionStmt,
    TransactionStmtKind, VariableSetKind, VariableSetStmt,
};

use super::copy::options::truth_of;
use super::counted;
use super::explain;
use super::plan::has_into;
use super::utility::node_of;
use super::{Column, CommandTag, Session, Sink};
use execution::settings::LoggedStatements::{self, All, Ddl, Mod};
use syntax::parser::{NodeEnum, Statement};
use types::{Datum, TypeId};

/// What is known of a statement from its tree alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct About {
    /// Its command, as tags, logs (`%i`, `command_tag`) and the audit show it.
    pub command: &'static str,
    /// The least value of `log_statement` at which it is logged.
    pub logged: LoggedStatements,
    /// How it is carried out.
    pub how: How,
    /// Where it may not run.
    pub refused: Refused,
    /// What it is to a failed block.
    pub failed: FailedBlock,
    /// What it is called where it may stand neither in a block nor beside others in a message.
    pub outside: Option<&'static str>,
    /// What it is called where it changes what the session has, and so may not run in what is done for
    /// the owner of an object whoever asks for it.
    pub outlasting: Option<&'static str>,
    /// Whether PL/pgSQL may run it.
    pub in_plpgsql: InPlpgsql,
    /// Whether it takes the parameters of the statement inside of it.
    pub takes_inner_params: bool,
    /// Whether it is prepared without the catalog: a failed block can be ended where that cannot be
    /// read, on a leader that was lost.
    pub without_catalog: bool,
}

/// How a statement is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By its plan.
    Planned,
    /// From its tree.
    Utility,
    /// From its tree, by writing the catalog, which the audit notes.
    Definition,
    /// Not at all: 0A000 with its name.
    Unsupported,
}

/// Where a statement may not run. Plans say by themselves whether they write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Nowhere,
    /// In transactions that only read, which includes all of a standby; under this name, if it has
    /// another there.
    ReadOnly(Option<&'static str>),
    /// On a standby.
    Standby,
}

/// What a statement is to a failed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailedBlock {
    /// Refused.
    Refused,
    /// It ends the failure, and the session stays in a block.
    Continued,
    /// It ends the block.
    Ended,
}

/// Whether PL/pgSQL may run a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InPlpgsql {
    Allowed,
    /// No: the block stands inside the transaction.
    Transaction,
    /// No: the block has no client to copy from or to.
    Client,
}

/// What a statement is run with.
pub(super) struct Given<'g> {
    pub statement: &'g Statement,
    /// The values of its parameters, and their types where it was prepared with some.
    pub params: &'g [Datum],
    pub param_types: &'g [TypeId],
    pub sink: &'g mut dyn Sink,
    /// Whether it is the only one of its message.
    pub alone: bool,
}

const UTILITY: About = About {
    command: "",
    logged: All,
    how: How::Utility,
    refused: Refused::Nowhere,
    failed: FailedBlock::Refused,
    outside: None,
    outlasting: None,
    in_plpgsql: InPlpgsql::Allowed,
    takes_inner_params: false,
    without_catalog: false,
};

const PLANNED: About = About {
    how: How::Planned,
    ..UTILITY
};

const DEFINITION: About = About {
    logged: Ddl,
    how: How::Definition,
    refused: Refused::ReadOnly(None),
    ..UTILITY
};

const UNSUPPORTED: About = About {
    logged: Ddl,
    how: How::Unsupported,
    ..UTILITY
};

impl About {
    const fn logged(self, logged: LoggedStatements) -> About {
        About { logged, ..self }
    }

    const fn outside(self, name: &'static str) -> About {
        self.outside_if(true, name)
    }

    const fn outside_if(self, is_it: bool, name: &'static str) -> About {
        let outside = if is_it { Some(name) } else { None };
        About { outside, ..self }
    }

    const fn outlasting(self, name: &'static str) -> About {
        About {
            outlasting: Some(name),
            ..self
        }
    }

    const fn refused(self, refused: Refused) -> About {
        About { refused, ..self }
    }

    const fn in_plpgsql(self, in_plpgsql: InPlpgsql) -> About {
        About { in_plpgsql, ..self }
    }

    const fn takes_inner_params(self) -> About {
        About {
            takes_inner_params: true,
            ..self
        }
    }

    /// Whether it is carried out by its plan.
    pub fn is_planned(&self) -> bool {
        self.how == How::Planned
    }
}

macro_rules! statements {
    (
        ($session:ident, $statement:ident $text:ident $params:ident $types:ident $sink:ident
         $alone:ident)
        planned { $($planned:ident($p:tt) => $p_command:expr, $p_about:expr;)* }
        utilities {
            $($node:ident($it:tt) $(if $condition:expr)? => $command:expr, $about:expr, $run:expr
              $(, rows $columns:expr)?;)*
        }
        unsupported { $($missing:ident($m:tt) => $m_command:expr, $m_logged:expr;)* }
    ) => {
        /// What is known of a statement from its tree alone.
        #[allow(unused_variables)]
        pub(super) fn about(node: &NodeEnum) -> About {
            match node {
                $(NodeEnum::$node($it) $(if $condition)? => About { command: $command, ..$about },)*
                $(NodeEnum::$planned($p) => About { command: $p_command, ..$p_about },)*
                $(NodeEnum::$missing($m) => About {
                    command: $m_command,
                    ..UNSUPPORTED.logged($m_logged)
                },)*
                _ => About { command: "this statement", ..UNSUPPORTED },
            }
        }

        /// Has who runs a statement run it.
        #[allow(unused_variables)]
        fn run($session: &mut Session, given: &mut Given<'_>) -> Result<CommandTag> {
            let ($statement, $alone) = (given.statement, given.alone);
            let ($params, $types) = (given.params, given.param_types);
            let ($text, $sink) = ($statement.text(), &mut *given.sink);
            match $statement.node() {
                $(NodeEnum::$node($it) $(if $condition)? => $run,)*
                other => Err(Error::internal(format!("nobody runs {}", about(other).command))),
            }
        }

        /// The columns of the rows that a utility statement gives, if it gives any.
        #[allow(unused_variables)]
        pub(super) fn utility_columns(
            $session: &mut Session,
            node: &NodeEnum,
            $types: &[TypeId],
        ) -> Result<Option<Vec<Column>>> {
            match node {
                $($(NodeEnum::$node($it) => $columns,)?)*
                _ => Ok(None),
            }
        }

        /// Every kind of statement by the name of its node, and whether it is supported.
        pub fn statement_kinds() -> impl Iterator<Item = (&'static str, bool)> {
            let known = [$(stringify!($planned),)* $(stringify!($node),)*].into_iter();
            let missing = [$(stringify!($missing),)*].into_iter();
            known.map(|name| (name, true)).chain(missing.map(|name| (name, false)))
        }
    };
}

statements! {
    (session, statement text params types sink alone)
    planned {
        SelectStmt(_) => "SELECT", PLANNED;
        InsertStmt(_) => "INSERT", PLANNED.logged(Mod);
        UpdateStmt(_) => "UPDATE", PLANNED.logged(Mod);
        DeleteStmt(_) => "DELETE", PLANNED.logged(Mod);
        MergeStmt(_) => "MERGE", PLANNED.logged(Mod);
    }
    utilities {
        // Transactions.
        TransactionStmt(it) => transaction_command(it), transaction_about(it),
            session.transaction(it, sink);
        LockStmt(it) => "LOCK TABLE", UTILITY, session.lock_statement(it, alone);
        ConstraintsSetStmt(it) => "SET CONSTRAINTS", UTILITY, session.set_constraints(it, sink);

        // What the session has.
        VariableSetStmt(it) => set_command(it), UTILITY, session.set_in_message(it, sink, alone);
        VariableShowStmt(it) => "SHOW", UTILITY,
            session.show(&it.name, sink), rows session.show_columns(it);
        DiscardStmt(it) => discard_command(it.target),
            UTILITY.outside_if(is_discard_all(it.target), "DISCARD ALL").outlasting("DISCARD"),
            session.discard(it.target);
        PrepareStmt(it) => "PREPARE",
            UTILITY.logged(logged_inside(node_of(&it.query))).outlasting("PREPARE"),
            session.prepare_sql(statement, it);
        ExecuteStmt(it) => "EXECUTE", UTILITY,
            session.execute_sql(statement, it, sink), rows session.executed_columns(it);
        DeallocateStmt(it) => if it.name.is_empty() { "DEALLOCATE ALL" } else { "DEALLOCATE" },
            UTILITY.outlasting("DEALLOCATE"), session.deallocate(it);
        DeclareCursorStmt(it) => "DECLARE CURSOR", UTILITY.takes_inner_params(),
            session.declare_cursor(statement, it, params, types);
        FetchStmt(it) => if it.ismove { "MOVE" } else { "FETCH" }, UTILITY,
            session.fetch(it, sink), rows session.fetch_columns(it);
        ClosePortalStmt(it) =>
            if it.portalname.is_empty() { "CLOSE CURSOR ALL" } else { "CLOSE CURSOR" },
            UTILITY.outlasting("CLOSE"), session.close_cursor(&it.portalname);

        // What sessions tell one another.
        ListenStmt(it) => "LISTEN",
            UTILITY.refused(Refused::Standby).outlasting("LISTEN"),
            session.listen(&it.conditionname);
        UnlistenStmt(it) => "UNLISTEN", UTILITY.outlasting("UNLISTEN"),
            session.unlisten(&it.conditionname);
        NotifyStmt(it) => "NOTIFY", UTILITY.refused(Refused::Standby),
            session.notify(&it.conditionname, &it.payload);

        // What runs others, copies, or tends to what is there.
        DoStmt(it) => "DO", UTILITY, session.do_block(text, it, sink, alone);
        CallStmt(it) => "CALL", UTILITY,
            session.call_statement(text, it, (params, types), sink, alone),
            rows session.call_columns(it, types);
        ExplainStmt(it) => "EXPLAIN", UTILITY.logged(explain_logged(it)).takes_inner_params(),
            session.explain_statement(statement, it, (params, types), sink),
            rows Ok(Some(explain::columns(it)));
        CopyStmt(it) => "COPY",
            UTILITY.logged(if it.is_from { Mod } else { All }).in_plpgsql(copy_in_plpgsql(it)),
            session.copy(statement, it, sink);
        VacuumStmt(it) => if it.is_vacuumcmd { "VACUUM" } else { "ANALYZE" },
            UTILITY.refused(Refused::Standby), session.vacuum(text, it, sink, alone);
        ReindexStmt(it) => "REINDEX", DEFINITION.logged(All).refused(Refused::Standby),
            session.reindex(it, alone);
        ClusterStmt(it) => "CLUSTER", DEFINITION.refused(Refused::Standby),
            session.cluster(text, it, alone);
        CheckPointStmt(_) => "CHECKPOINT", UTILITY, session.checkpoint();
        AlterSystemStmt(it) => "ALTER SYSTEM", UTILITY.logged(Ddl).outside("ALTER SYSTEM"),
            session.alter_system(statement.own_text(), it);

        // Tables and what is like them.
        CreateStmt(it) => "CREATE TABLE", DEFINITION, session.create_table(text, it, sink);
        CreateTableAsStmt(it) => create_as_command(it.objtype), DEFINITION,
            session.table_as(statement, it, sink);
        SelectStmt(it) if has_into(it) => "SELECT", select_into_about(it.into_clause.is_some()),
            session.select_into(text, it, sink);
        AlterTableStmt(it) => alter_command(it.objtype), DEFINITION,
            session.alter_table(text, it, sink);
        TruncateStmt(it) => "TRUNCATE TABLE", DEFINITION.logged(Mod), session.truncate(it, sink);
        IndexStmt(it) => "CREATE INDEX",
            DEFINITION.outside_if(it.concurrent, "CREATE INDEX CONCURRENTLY"),
            session.create_index(text, it, sink);
        ViewStmt(it) => "CREATE VIEW", DEFINITION, session.create_view(text, it, sink);
        RefreshMatViewStmt(it) => "REFRESH MATERIALIZED VIEW", DEFINITION, session.refresh(it);
        CreateSeqStmt(it) => "CREATE SEQUENCE", DEFINITION, session.create_sequence(text, it, sink);
        AlterSeqStmt(it) => "ALTER SEQUENCE", DEFINITION, session.alter_sequence(text, it, sink);
        CreatePolicyStmt(it) => "CREATE POLICY", DEFINITION, session.create_policy(it, sink);
        AlterPolicyStmt(it) => "ALTER POLICY", DEFINITION, session.alter_policy(it, sink);

        CreateEnumStmt(it) => "CREATE TYPE", DEFINITION, session.create_enum(it);
        CompositeTypeStmt(it) => "CREATE TYPE", DEFINITION, session.create_composite(it);
        CreateRangeStmt(it) => "CREATE TYPE", DEFINITION, session.create_range(text, it, sink);
        AlterEnumStmt(it) => "ALTER TYPE", DEFINITION, session.alter_enum(it, sink);
        CreateDomainStmt(it) => "CREATE DOMAIN", DEFINITION, session.create_domain(it);
        AlterDomainStmt(it) => "ALTER DOMAIN", DEFINITION, session.alter_domain(it, sink);

        // Functions and procedures.
        CreateFunctionStmt(it) =>
            if it.is_procedure { "CREATE PROCEDURE" } else { "CREATE FUNCTION" },
            DEFINITION, session.create_routine(text, it, sink);
        DefineStmt(it) if object(it.kind) == ObjectType::ObjectAggregate => "CREATE AGGREGATE",
            DEFINITION, session.create_aggregate(it, sink);
        DefineStmt(it) if object(it.kind) == ObjectType::ObjectCollation => "CREATE COLLATION",
            DEFINITION, session.create_collation(text, it, sink);
        DefineStmt(it) if object(it.kind) == ObjectType::ObjectOperator => "CREATE OPERATOR",
            DEFINITION, session.create_operator(it, sink);
        AlterOperatorStmt(it) => "ALTER OPERATOR", DEFINITION, session.alter_operator(it);
        AlterCollationStmt(it) => "ALTER COLLATION", DEFINITION,
            session.refresh_collation(it, sink);
        AlterFunctionStmt(it) => alter_command(it.objtype), DEFINITION,
            session.alter_routine(text, it);

        CreateCastStmt(it) => "CREATE CAST", DEFINITION, session.create_cast(it, sink);
        CreateStatsStmt(it) => "CREATE STATISTICS", DEFINITION,
            session.create_statistics(text, it, sink);
        AlterStatsStmt(it) => "ALTER STATISTICS", DEFINITION,
            session.alter_statistics_target(it, sink);

        // What every kind of object takes.
        DropStmt(it) => drop_command(it.remove_type), DEFINITION, session.drop(it, sink);
        RenameStmt(it) => rename_command(it), DEFINITION, session.rename(it, sink);
        AlterObjectSchemaStmt(it) => alter_command(it.object_type), DEFINITION,
            session.set_schema(it, sink);
        AlterOwnerStmt(it) => alter_command(it.object_type), DEFINITION, session.alter_owner_of(it);
        CommentStmt(it) => "COMMENT", DEFINITION, session.comment(it);

        // Schemas, databases, extensions.
        CreateSchemaStmt(it) => "CREATE SCHEMA", DEFINITION, session.create_schema(text, it, sink);
        CreatedbStmt(it) => "CREATE DATABASE", DEFINITION.outside("CREATE DATABASE"),
            session.create_database(it);
        DropdbStmt(it) => "DROP DATABASE", DEFINITION.outside("DROP DATABASE"),
            session.drop_database(it, sink);
        AlterDatabaseStmt(it) => "ALTER DATABASE", DEFINITION, session.alter_database(it);
        AlterDatabaseSetStmt(it) => "ALTER DATABASE", DEFINITION,
            session.alter_database_set(it, sink);
        CreateTrigStmt(it) => "CREATE TRIGGER", DEFINITION, session.create_trigger(text, it);
        RuleStmt(it) => "CREATE RULE", DEFINITION, session.create_rule(text, it);
        CreateExtensionStmt(it) => "CREATE EXTENSION", DEFINITION,
            session.create_extension(it, sink);
        AlterExtensionStmt(it) => "ALTER EXTENSION", DEFINITION, session.alter_extension(it, sink);

        // Roles and what they may do.
        CreateRoleStmt(it) => "CREATE ROLE", DEFINITION, session.create_role(text, it, sink);
        AlterRoleStmt(it) => "ALTER ROLE", DEFINITION, session.alter_role(text, it, sink);
        AlterRoleSetStmt(it) => "ALTER ROLE", DEFINITION, session.alter_role_set(it, sink);
        DropRoleStmt(it) => "DROP ROLE", DEFINITION, session.drop_roles(it, sink);
        GrantRoleStmt(it) => if it.is_grant { "GRANT ROLE" } else { "REVOKE ROLE" }, DEFINITION,
            session.grant_roles(it, sink);
        GrantStmt(it) => if it.is_grant { "GRANT" } else { "REVOKE" }, DEFINITION,
            session.grant(it, sink);
        AlterDefaultPrivilegesStmt(it) => "ALTER DEFAULT PRIVILEGES", DEFINITION,
            session.alter_default_privileges(it);
        ReassignOwnedStmt(it) => "REASSIGN OWNED", DEFINITION, session.reassign_owned(it);
        DropOwnedStmt(it) => "DROP OWNED", DEFINITION, session.drop_owned(it, sink);
    }
    unsupported {
        LoadStmt(_) => "LOAD", All;
        CreateEventTrigStmt(_) => "CREATE EVENT TRIGGER", Ddl;
        AlterEventTrigStmt(_) => "ALTER EVENT TRIGGER", Ddl;
        AlterTypeStmt(_) => "ALTER TYPE", Ddl;
        DefineStmt(it) => define_command(it), Ddl;
        CreateOpClassStmt(_) => "CREATE OPERATOR CLASS", Ddl;
        CreateOpFamilyStmt(_) => "CREATE OPERATOR FAMILY", Ddl;
        AlterOpFamilyStmt(_) => "ALTER OPERATOR FAMILY", Ddl;
        CreateConversionStmt(_) => "CREATE CONVERSION", Ddl;
        CreateTransformStmt(_) => "CREATE TRANSFORM", Ddl;
        CreatePlangStmt(_) => "CREATE LANGUAGE", Ddl;
        CreateAmStmt(_) => "CREATE ACCESS METHOD", Ddl;
        AlterTsdictionaryStmt(_) => "ALTER TEXT SEARCH DICTIONARY", Ddl;
        AlterTsconfigurationStmt(_) => "ALTER TEXT SEARCH CONFIGURATION", Ddl;
        AlterObjectDependsStmt(it) => alter_command(it.object_type), Ddl;
        SecLabelStmt(_) => "SECURITY LABEL", Ddl;
        AlterDatabaseRefreshCollStmt(_) => "ALTER DATABASE", Ddl;
        AlterExtensionContentsStmt(_) => "ALTER EXTENSION", Ddl;
        CreateTableSpaceStmt(_) => "CREATE TABLESPACE", Ddl;
        DropTableSpaceStmt(_) => "DROP TABLESPACE", Ddl;
        AlterTableSpaceOptionsStmt(_) => "ALTER TABLESPACE", Ddl;
        AlterTableMoveAllStmt(it) => alter_command(it.objtype), Ddl;
        CreateFdwStmt(_) => "CREATE FOREIGN DATA WRAPPER", Ddl;
        AlterFdwStmt(_) => "ALTER FOREIGN DATA WRAPPER", Ddl;
        CreateForeignServerStmt(_) => "CREATE SERVER", Ddl;
        AlterForeignServerStmt(_) => "ALTER SERVER", Ddl;
        CreateForeignTableStmt(_) => "CREATE FOREIGN TABLE", Ddl;
        ImportForeignSchemaStmt(_) => "IMPORT FOREIGN SCHEMA", Ddl;
        CreateUserMappingStmt(_) => "CREATE USER MAPPING", Ddl;
        AlterUserMappingStmt(_) => "ALTER USER MAPPING", Ddl;
        DropUserMappingStmt(_) => "DROP USER MAPPING", Ddl;
        CreatePublicationStmt(_) => "CREATE PUBLICATION", Ddl;
        AlterPublicationStmt(_) => "ALTER PUBLICATION", Ddl;
        CreateSubscriptionStmt(_) => "CREATE SUBSCRIPTION", Ddl;
        AlterSubscriptionStmt(_) => "ALTER SUBSCRIPTION", Ddl;
        DropSubscriptionStmt(_) => "DROP SUBSCRIPTION", Ddl;
    }
}

impl Session {
    /// Carries out a statement from its tree, if its row lets it run here.
    pub(super) fn utility(&mut self, given: &mut Given<'_>) -> Result<CommandTag> {
        if let Some(local) = &self.shared.local {
            local.forget_decision();
        }
        let about = about(given.statement.node());
        if about.how == How::Unsupported {
            return Err(Error::unsupported(about.command));
        }
        self.check_refused(&about)?;
        if about.how == How::Definition {
            self.begin_definition()?;
        }
        if let Some(name) = about.outlasting {
            let settings = &self.shared.settings;
            settings.check_unrestricted(&format!("execute {name}"))?;
        }
        if let Some(name) = about.outside {
            self.require_no_block(name, given.alone)?;
        }
        if !self.nested.is_empty() {
            // As in PostgreSQL, also what would change nothing.
            self.check_may_write(about.command)?;
            self.keep_outer_view()?;
        }
        let begun = self.begin_counted_utility(given.statement);
        let done = run(self, given)?;
        self.end_counted(begun, counted::rows_of(&done));
        if about.how == How::Definition {
            self.changed_catalog();
            self.audit(done.name, given.statement.own_text())?;
        }
        Ok(done)
    }

    /// # Errors
    /// 25006 for a statement that may not run in such a transaction, or on such a node.
    fn check_refused(&mut self, about: &About) -> Result<()> {
        let (is_refused, name, place) = match about.refused {
            Refused::Nowhere => return Ok(()),
            Refused::ReadOnly(other) => {
                // Whether it only reads is settled when it begins.
                self.ensure_open()?;
                let name = other.unwrap_or(about.command);
                (self.is_read_only(), name, "in a read-only transaction")
            }
            Refused::Standby => {
                let is_standby = self.shared.engine.cluster.is_standby();
                (is_standby, about.command, "during recovery")
            }
        };
        match is_refused {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {name} {place}"),
            )),
        }
    }
}

impl InPlpgsql {
    /// # Errors
    /// 0A000 for a statement that PL/pgSQL may not run; `dynamic` for EXECUTE.
    pub(super) fn check(self, dynamic: bool) -> Result<()> {
        let message = match (self, dynamic) {
            (InPlpgsql::Allowed, _) => return Ok(()),
            (InPlpgsql::Transaction, false) => "unsupported transaction command in PL/pgSQL",
            (InPlpgsql::Transaction, true) => "EXECUTE of transaction commands is not implemented",
            (InPlpgsql::Client, _) => "cannot COPY to/from client in PL/pgSQL",
        };
        Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }
}

/// The statement inside of one that prepares, explains, declares or copies another.
pub(super) fn inner(node: &NodeEnum) -> Option<&NodeEnum> {
    match node {
        NodeEnum::PrepareStmt(prepare) => node_of(&prepare.query),
        NodeEnum::ExplainStmt(explain) => node_of(&explain.query),
        NodeEnum::DeclareCursorStmt(declare) => node_of(&declare.query),
        NodeEnum::CopyStmt(copy) => node_of(&copy.query),
        _ => None,
    }
}

fn transaction_command(transaction: &TransactionStmt) -> &'static str {
    use TransactionStmtKind as Kind;
    match Kind::try_from(transaction.kind) {
        Ok(Kind::TransStmtBegin) => "BEGIN",
        Ok(Kind::TransStmtStart) => "START TRANSACTION",
        Ok(Kind::TransStmtCommit) => "COMMIT",
        Ok(Kind::TransStmtSavepoint) => "SAVEPOINT",
        Ok(Kind::TransStmtRelease) => "RELEASE",
        Ok(Kind::TransStmtPrepare) => "PREPARE TRANSACTION",
        Ok(Kind::TransStmtCommitPrepared) => "COMMIT PREPARED",
        Ok(Kind::TransStmtRollbackPrepared) => "ROLLBACK PREPARED",
        _ => "ROLLBACK",
    }
}

fn transaction_about(transaction: &TransactionStmt) -> About {
    use TransactionStmtKind as Kind;
    let failed = match Kind::try_from(transaction.kind) {
        Ok(Kind::TransStmtRollbackTo) => FailedBlock::Continued,
        Ok(Kind::TransStmtCommit | Kind::TransStmtRollback) => match transaction.chain {
            true => FailedBlock::Continued,
            false => FailedBlock::Ended,
        },
        Ok(Kind::TransStmtPrepare) => FailedBlock::Ended,
        _ => FailedBlock::Refused,
    };
    let command = transaction_command(transaction);
    let (refused, outside) = match Kind::try_from(transaction.kind) {
        Ok(Kind::TransStmtPrepare) => (Refused::Standby, None),
        Ok(Kind::TransStmtCommitPrepared | Kind::TransStmtRollbackPrepared) => {
            (Refused::Standby, Some(command))
        }
        _ => (Refused::Nowhere, None),
    };
    About {
        failed,
        refused,
        outside,
        in_plpgsql: InPlpgsql::Transaction,
        without_catalog: true,
        ..UTILITY
    }
}

fn set_command(set: &VariableSetStmt) -> &'static str {
    match VariableSetKind::try_from(set.kind) {
        Ok(VariableSetKind::VarReset | VariableSetKind::VarResetAll) => "RESET",
        _ => "SET",
    }
}

fn is_discard_all(target: i32) -> bool {
    DiscardMode::try_from(target) == Ok(DiscardMode::DiscardAll)
}

pub(super) fn discard_command(target: i32) -> &'static str {
    match DiscardMode::try_from(target) {
        Ok(DiscardMode::DiscardAll) => "DISCARD ALL",
        Ok(DiscardMode::DiscardPlans) => "DISCARD PLANS",
        Ok(DiscardMode::DiscardSequences) => "DISCARD SEQUENCES",
        _ => "DISCARD TEMP",
    }
}

/// At what a statement is logged that has another inside.
fn logged_inside(inner: Option<&NodeEnum>) -> LoggedStatements {
    inner.map_or(All, |inner| about(inner).logged)
}

/// A file of the server is no client.
fn copy_in_plpgsql(copy: &pg_query::protobuf::CopyStmt) -> InPlpgsql {
    match copy.filename.is_empty() {
        true => InPlpgsql::Client,
        false => InPlpgsql::Allowed,
    }
}

fn explain_logged(explain: &ExplainStmt) -> LoggedStatements {
    let analyze_of = |option: &pg_query::protobuf::Node| match &option.node {
        Some(NodeEnum::DefElem(option)) if option.defname == "analyze" => Some(truth_of(option)),
        _ => None,
    };
    // Of several the last counts; what is no truth value is refused when it runs.
    let said = explain.options.iter().rev().find_map(analyze_of);
    let analyzes = said.flatten().unwrap_or(false);
    logged_inside(node_of(&explain.query).filter(|_| analyzes))
}

/// Only where INTO stands in the outermost SELECT, `log_statement` takes it for a definition.
fn select_into_about(outermost: bool) -> About {
    let about = DEFINITION.refused(Refused::ReadOnly(Some("SELECT INTO")));
    about.logged(if outermost { Ddl } else { All })
}

fn create_as_command(kind: i32) -> &'static str {
    match object(kind) {
        ObjectType::ObjectMatview => "CREATE MATERIALIZED VIEW",
        _ => "CREATE TABLE AS",
    }
}

fn rename_command(rename: &RenameStmt) -> &'static str {
    match object(rename.rename_type) {
        ObjectType::ObjectColumn => alter_command(rename.relation_type),
        _ => alter_command(rename.rename_type),
    }
}

fn object(kind: i32) -> ObjectType {
    ObjectType::try_from(kind).unwrap_or(ObjectType::Undefined)
}

macro_rules! objects {
    ($($kind:ident $name:literal;)*) => {
        fn alter_command(kind: i32) -> &'static str {
            match object(kind) {
                $(ObjectType::$kind => concat!("ALTER ", $name),)*
                _ => "ALTER TABLE",
            }
        }

        fn drop_command(kind: i32) -> &'static str {
            match object(kind) {
                $(ObjectType::$kind => concat!("DROP ", $name),)*
                _ => "DROP TABLE",
            }
        }

        fn define_command(define: &DefineStmt) -> &'static str {
            match object(define.kind) {
                $(ObjectType::$kind => concat!("CREATE ", $name),)*
                _ => "CREATE TYPE",
            }
        }
    };
}

objects! {
    ObjectAccessMethod "ACCESS METHOD";
    ObjectAggregate "AGGREGATE";
    ObjectAttribute "TYPE";
    ObjectCast "CAST";
    ObjectCollation "COLLATION";
    ObjectConversion "CONVERSION";
    ObjectDatabase "DATABASE";
    ObjectDomain "DOMAIN";
    ObjectDomconstraint "DOMAIN";
    ObjectEventTrigger "EVENT TRIGGER";
    ObjectExtension "EXTENSION";
    ObjectFdw "FOREIGN DATA WRAPPER";
    ObjectForeignServer "SERVER";
    ObjectForeignTable "FOREIGN TABLE";
    ObjectFunction "FUNCTION";
    ObjectIndex "INDEX";
    ObjectLanguage "LANGUAGE";
    ObjectLargeobject "LARGE OBJECT";
    ObjectMatview "MATERIALIZED VIEW";
    ObjectOpclass "OPERATOR CLASS";
    ObjectOperator "OPERATOR";
    ObjectOpfamily "OPERATOR FAMILY";
    ObjectPolicy "POLICY";
    ObjectProcedure "PROCEDURE";
    ObjectPublication "PUBLICATION";
    ObjectRole "ROLE";
    ObjectRoutine "ROUTINE";
    ObjectRule "RULE";
    ObjectSchema "SCHEMA";
    ObjectSequence "SEQUENCE";
    ObjectStatisticExt "STATISTICS";
    ObjectSubscription "SUBSCRIPTION";
    ObjectTablespace "TABLESPACE";
    ObjectTransform "TRANSFORM";
    ObjectTrigger "TRIGGER";
    ObjectTsconfiguration "TEXT SEARCH CONFIGURATION";
    ObjectTsdictionary "TEXT SEARCH DICTIONARY";
    ObjectTsparser "TEXT SEARCH PARSER";
    ObjectTstemplate "TEXT SEARCH TEMPLATE";
    ObjectType "TYPE";
    ObjectView "VIEW";
}

#[cfg(test)]
#[path = "statements_tests.rs"]
mod tests;
