//! What kind of statement one is: its command as a log names it, and which values of
//! `log_statement` log it.
//!
//! Source: PostgreSQL 15 manual, section 20.8.3, `log_statement`.

use pg_query::protobuf::{ObjectType, TransactionStmtKind, VariableSetKind};

use crate::parser::{NodeEnum, Statement};
use crate::settings::LoggedStatements;

/// The least value of `log_statement` at which a statement is logged.
pub(super) fn class_of(statement: &Statement) -> LoggedStatements {
    class(statement.node())
}

fn class(node: &NodeEnum) -> LoggedStatements {
    use LoggedStatements::{All, Ddl, Mod};
    match node {
        NodeEnum::InsertStmt(_)
        | NodeEnum::UpdateStmt(_)
        | NodeEnum::DeleteStmt(_)
        | NodeEnum::MergeStmt(_)
        | NodeEnum::TruncateStmt(_) => Mod,
        NodeEnum::CopyStmt(copy) if copy.is_from => Mod,
        NodeEnum::SelectStmt(select) if select.into_clause.is_some() => Ddl,
        NodeEnum::PrepareStmt(prepare) => {
            let inner = prepare.query.as_ref().and_then(|query| query.node.as_ref());
            inner.map_or(All, class)
        }
        NodeEnum::ExplainStmt(explain) => {
            let analyzes = explain.options.iter().any(|option| {
                matches!(&option.node, Some(NodeEnum::DefElem(option)) if option.defname == "analyze")
            });
            let inner = explain.query.as_ref().and_then(|query| query.node.as_ref());
            inner.filter(|_| analyzes).map_or(All, class)
        }
        NodeEnum::SelectStmt(_)
        | NodeEnum::TransactionStmt(_)
        | NodeEnum::DeclareCursorStmt(_)
        | NodeEnum::ClosePortalStmt(_)
        | NodeEnum::FetchStmt(_)
        | NodeEnum::CopyStmt(_)
        | NodeEnum::ExecuteStmt(_)
        | NodeEnum::DeallocateStmt(_)
        | NodeEnum::DoStmt(_)
        | NodeEnum::CallStmt(_)
        | NodeEnum::NotifyStmt(_)
        | NodeEnum::ListenStmt(_)
        | NodeEnum::UnlistenStmt(_)
        | NodeEnum::LoadStmt(_)
        | NodeEnum::VacuumStmt(_)
        | NodeEnum::VariableSetStmt(_)
        | NodeEnum::VariableShowStmt(_)
        | NodeEnum::DiscardStmt(_)
        | NodeEnum::LockStmt(_)
        | NodeEnum::ConstraintsSetStmt(_)
        | NodeEnum::CheckPointStmt(_)
        | NodeEnum::ReindexStmt(_) => All,
        _ => Ddl,
    }
}

/// The command of a statement, as `%i` and `command_tag` show it.
pub(super) fn command_of(statement: &Statement) -> &'static str {
    match statement.node() {
        NodeEnum::SelectStmt(_) => "SELECT",
        NodeEnum::InsertStmt(_) => "INSERT",
        NodeEnum::UpdateStmt(_) => "UPDATE",
        NodeEnum::DeleteStmt(_) => "DELETE",
        NodeEnum::MergeStmt(_) => "MERGE",
        NodeEnum::TransactionStmt(transaction) => transaction_command(transaction.kind),
        NodeEnum::DeclareCursorStmt(_) => "DECLARE CURSOR",
        NodeEnum::ClosePortalStmt(close) if close.portalname.is_empty() => "CLOSE CURSOR ALL",
        NodeEnum::ClosePortalStmt(_) => "CLOSE CURSOR",
        NodeEnum::FetchStmt(fetch) if fetch.ismove => "MOVE",
        NodeEnum::FetchStmt(_) => "FETCH",
        NodeEnum::CopyStmt(_) => "COPY",
        NodeEnum::PrepareStmt(_) => "PREPARE",
        NodeEnum::ExecuteStmt(_) => "EXECUTE",
        NodeEnum::DeallocateStmt(one) if one.name.is_empty() => "DEALLOCATE ALL",
        NodeEnum::DeallocateStmt(_) => "DEALLOCATE",
        NodeEnum::DoStmt(_) => "DO",
        NodeEnum::CallStmt(_) => "CALL",
        NodeEnum::ExplainStmt(_) => "EXPLAIN",
        NodeEnum::VacuumStmt(vacuum) if vacuum.is_vacuumcmd => "VACUUM",
        NodeEnum::VacuumStmt(_) => "ANALYZE",
        NodeEnum::VariableSetStmt(set) => match VariableSetKind::try_from(set.kind) {
            Ok(VariableSetKind::VarReset | VariableSetKind::VarResetAll) => "RESET",
            _ => "SET",
        },
        NodeEnum::VariableShowStmt(_) => "SHOW",
        NodeEnum::LockStmt(_) => "LOCK TABLE",
        NodeEnum::ConstraintsSetStmt(_) => "SET CONSTRAINTS",
        NodeEnum::CheckPointStmt(_) => "CHECKPOINT",
        NodeEnum::ReindexStmt(_) => "REINDEX",
        NodeEnum::DiscardStmt(_) => "DISCARD",
        NodeEnum::TruncateStmt(_) => "TRUNCATE TABLE",
        node => ddl_command(node),
    }
}

fn transaction_command(kind: i32) -> &'static str {
    use TransactionStmtKind as Kind;
    match Kind::try_from(kind) {
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

fn ddl_command(node: &NodeEnum) -> &'static str {
    match node {
        NodeEnum::CreateStmt(_) => "CREATE TABLE",
        NodeEnum::CreateTableAsStmt(create) => match object(create.objtype) {
            ObjectType::ObjectMatview => "CREATE MATERIALIZED VIEW",
            _ => "CREATE TABLE AS",
        },
        NodeEnum::IndexStmt(_) => "CREATE INDEX",
        NodeEnum::ViewStmt(_) => "CREATE VIEW",
        NodeEnum::CreateSeqStmt(_) => "CREATE SEQUENCE",
        NodeEnum::AlterSeqStmt(_) => "ALTER SEQUENCE",
        NodeEnum::CreateSchemaStmt(_) => "CREATE SCHEMA",
        NodeEnum::RefreshMatViewStmt(_) => "REFRESH MATERIALIZED VIEW",
        NodeEnum::CreatedbStmt(_) => "CREATE DATABASE",
        NodeEnum::DropdbStmt(_) => "DROP DATABASE",
        NodeEnum::AlterDatabaseStmt(_) | NodeEnum::AlterDatabaseSetStmt(_) => "ALTER DATABASE",
        NodeEnum::AlterSystemStmt(_) => "ALTER SYSTEM",
        NodeEnum::CreateRoleStmt(_) => "CREATE ROLE",
        NodeEnum::AlterRoleStmt(_) | NodeEnum::AlterRoleSetStmt(_) => "ALTER ROLE",
        NodeEnum::DropRoleStmt(_) => "DROP ROLE",
        NodeEnum::GrantRoleStmt(grant) if grant.is_grant => "GRANT ROLE",
        NodeEnum::GrantRoleStmt(_) => "REVOKE ROLE",
        NodeEnum::GrantStmt(grant) if grant.is_grant => "GRANT",
        NodeEnum::GrantStmt(_) => "REVOKE",
        NodeEnum::AlterDefaultPrivilegesStmt(_) => "ALTER DEFAULT PRIVILEGES",
        NodeEnum::CreatePolicyStmt(_) => "CREATE POLICY",
        NodeEnum::AlterPolicyStmt(_) => "ALTER POLICY",
        NodeEnum::ReassignOwnedStmt(_) => "REASSIGN OWNED",
        NodeEnum::DropOwnedStmt(_) => "DROP OWNED",
        NodeEnum::CommentStmt(_) => "COMMENT",
        NodeEnum::CreateExtensionStmt(_) => "CREATE EXTENSION",
        NodeEnum::CreateFunctionStmt(create) if create.is_procedure => "CREATE PROCEDURE",
        NodeEnum::CreateFunctionStmt(_) => "CREATE FUNCTION",
        NodeEnum::DropStmt(drop) => drop_command(object(drop.remove_type)),
        NodeEnum::AlterTableStmt(alter) => alter_command(object(alter.objtype)),
        NodeEnum::RenameStmt(rename) => match object(rename.rename_type) {
            ObjectType::ObjectColumn | ObjectType::ObjectTabconstraint => {
                alter_command(object(rename.relation_type))
            }
            kind => alter_command(kind),
        },
        NodeEnum::AlterObjectSchemaStmt(alter) => alter_command(object(alter.object_type)),
        NodeEnum::AlterOwnerStmt(alter) => alter_command(object(alter.object_type)),
        _ => "???",
    }
}

fn object(kind: i32) -> ObjectType {
    ObjectType::try_from(kind).unwrap_or(ObjectType::Undefined)
}

fn drop_command(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::ObjectView => "DROP VIEW",
        ObjectType::ObjectMatview => "DROP MATERIALIZED VIEW",
        ObjectType::ObjectIndex => "DROP INDEX",
        ObjectType::ObjectSequence => "DROP SEQUENCE",
        ObjectType::ObjectSchema => "DROP SCHEMA",
        ObjectType::ObjectExtension => "DROP EXTENSION",
        ObjectType::ObjectFunction => "DROP FUNCTION",
        ObjectType::ObjectPolicy => "DROP POLICY",
        ObjectType::ObjectTrigger => "DROP TRIGGER",
        ObjectType::ObjectType => "DROP TYPE",
        ObjectType::ObjectDomain => "DROP DOMAIN",
        _ => "DROP TABLE",
    }
}

fn alter_command(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::ObjectView => "ALTER VIEW",
        ObjectType::ObjectMatview => "ALTER MATERIALIZED VIEW",
        ObjectType::ObjectIndex => "ALTER INDEX",
        ObjectType::ObjectSequence => "ALTER SEQUENCE",
        ObjectType::ObjectSchema => "ALTER SCHEMA",
        ObjectType::ObjectDatabase => "ALTER DATABASE",
        ObjectType::ObjectRole => "ALTER ROLE",
        ObjectType::ObjectFunction => "ALTER FUNCTION",
        ObjectType::ObjectPolicy => "ALTER POLICY",
        ObjectType::ObjectType => "ALTER TYPE",
        ObjectType::ObjectDomain => "ALTER DOMAIN",
        _ => "ALTER TABLE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser;

    #[test]
    fn statements_have_their_class_and_command() {
        for (text, class, command) in [
            ("select 1", LoggedStatements::All, "SELECT"),
            ("select 1 into t", LoggedStatements::Ddl, "SELECT"),
            ("copy t from stdin", LoggedStatements::Mod, "COPY"),
            ("copy t to stdout", LoggedStatements::All, "COPY"),
            (
                "prepare p as insert into t values (1)",
                LoggedStatements::Mod,
                "PREPARE",
            ),
            (
                "explain insert into t values (1)",
                LoggedStatements::All,
                "EXPLAIN",
            ),
            (
                "explain analyze insert into t values (1)",
                LoggedStatements::Mod,
                "EXPLAIN",
            ),
            ("truncate t", LoggedStatements::Mod, "TRUNCATE TABLE"),
            ("grant a to b", LoggedStatements::Ddl, "GRANT ROLE"),
            (
                "alter view v rename to w",
                LoggedStatements::Ddl,
                "ALTER VIEW",
            ),
            (
                "alter table t rename a to b",
                LoggedStatements::Ddl,
                "ALTER TABLE",
            ),
            ("drop index i", LoggedStatements::Ddl, "DROP INDEX"),
            ("reset all", LoggedStatements::All, "RESET"),
            ("reset work_mem", LoggedStatements::All, "RESET"),
            ("set work_mem to default", LoggedStatements::All, "SET"),
            ("rollback to x", LoggedStatements::All, "ROLLBACK"),
            (
                "alter system set work_mem = 1",
                LoggedStatements::Ddl,
                "ALTER SYSTEM",
            ),
        ] {
            let statement = parser::parse(text).unwrap().pop().unwrap();
            assert_eq!(class_of(&statement), class, "{text}");
            assert_eq!(command_of(&statement), command, "{text}");
        }
    }
}
