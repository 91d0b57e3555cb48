//! ALTER TABLE and its kin.
//!
//! The table is locked first, then the actions are carried out one after another, each on the
//! definition that the one before has left, in PostgreSQL's order: what drops, changes of types, new
//! columns, new constraints, the rest. All changes of types go through the rows at once, as they
//! may look at one another's old values.
//!
//! ```text
//! alter table t drop a, add b int default 7, add unique (b)
//! lock t AccessExclusive │ drop a │ b is there: 7 is what older rows read │ rows get their b │ index
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`column`] | ADD COLUMN, ALTER COLUMN |
//! | [`constraint`] | ADD, VALIDATE, ALTER and DROP CONSTRAINT |
//! | [`partitions`] | what goes down to partitions, and what they cannot change |
//! | [`rename`] | RENAME of columns and constraints, OWNER TO, SET (…) |
//! | [`rewrite`] | going through the rows: checks, and rows with other values |
//! | [`storage`] | SET STORAGE, SET COMPRESSION |
//!
//! # When rows are rewritten
//! A new column costs nothing if its default is one value for all rows: rows that are older than
//! the column read it from the catalog ([`catalog::Column::missing`]). A default that each
//! row must compute and another type make new trees.
//!
//! # What it leaves out
//! Rules: 0A000. A rewrite goes through the
//! transaction's write set, so that it must fit into memory.

mod column;
mod constraint;
mod identity;
mod inherited;
mod parameters;
mod partitions;
mod rename;
mod rewrite;
mod storage;

pub(super) use constraint::{check_no_constraint, constraint_twice, has_constraint};
pub(super) use parameters::set_options;
pub(super) use rename::Part;
pub(super) use rewrite::about;
pub(super) use storage::compression_of;

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType as Type, ConstrType, Constraint, ObjectType,
    RangeVar,
};

use super::super::utility::tag;
use super::super::{CommandTag, NoticeSeverity, Session, Sink};
use super::of_type::refuse_typed;
use super::placement::says_placement;
use catalog::{store, Catalog, RelationKind, Table};
use planner::bind::qualified;
use syntax::parser::NodeEnum;

impl Session {
    /// ALTER TABLE, and what else the grammar makes of it.
    pub(in super::super) fn alter_table(
        &mut self,
        text: &str,
        alter: &AlterTableStmt,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let done = match ObjectType::try_from(alter.objtype) {
            Ok(ObjectType::ObjectType) => return self.alter_composite(alter, sink),
            Ok(ObjectType::ObjectTable) => tag("ALTER TABLE"),
            Ok(ObjectType::ObjectIndex) => tag("ALTER INDEX"),
            Ok(ObjectType::ObjectView) => tag("ALTER VIEW"),
            Ok(ObjectType::ObjectMatview) => tag("ALTER MATERIALIZED VIEW"),
            Ok(ObjectType::ObjectSequence) => tag("ALTER SEQUENCE"),
            _ => return Err(Error::unsupported("ALTER of this kind of object")),
        };
        let range = alter
            .relation
            .as_ref()
            .ok_or_else(|| Error::internal("ALTER TABLE of no table"))?;
        if alter.missing_ok && self.find_range(range)?.is_none() {
            self.skip(
                &format!("relation \"{}\" does not exist", qualified(range)),
                sink,
            )?;
            return Ok(done);
        }
        let mut commands: Vec<_> = alter
            .cmds
            .iter()
            .filter_map(|node| match &node.node {
                Some(NodeEnum::AlterTableCmd(command)) => Some(&**command),
                _ => None,
            })
            .collect();
        if let [command] = commands.as_slice() {
            if command.subtype == Type::AtAttachPartition as i32 && done == tag("ALTER INDEX") {
                return self.alter_index_partition(range, command).map(|()| done);
            }
        }
        let oid = self.lock_altered(range, &commands)?;
        commands.sort_by_key(|command| pass(command));
        for group in commands.chunk_by(|a, b| is_retype(a) && is_retype(b)) {
            if !self.alter_partitioned(text, oid, (group, !range.inh), sink)? {
                self.alter_step(text, oid, (group, !range.inh), sink)?;
            }
        }
        Ok(done)
    }

    /// Locks what ALTER names as strongly as its actions need, and returns its oid.
    fn lock_altered(&mut self, range: &RangeVar, commands: &[&AlterTableCmd]) -> Result<u32> {
        let modes = commands.iter().map(|command| lock_of(command));
        let mode = modes.max().unwrap_or(TableLock::AccessExclusive);
        loop {
            let table = self.find_table(range)?;
            self.must_own_relation(&table)?;
            self.check_kind(&table, commands)?;
            self.lock_mode(&table, mode)?;
            let again = self.find_table(range)?;
            if again.tree == table.tree && again.oid == table.oid {
                self.refuse_in_use(&again, "ALTER TABLE")?;
                return Ok(again.oid);
            }
        }
    }

    /// Views, sequences and the like have few actions.
    fn check_kind(&mut self, table: &Table, commands: &[&AlterTableCmd]) -> Result<()> {
        let mut typed = commands.iter();
        typed.try_for_each(|command| refuse_typed(table, command))?;
        if table.kind == RelationKind::Table && table.partition_of.is_none() {
            return Ok(());
        }
        if matches!(table.kind, RelationKind::Table | RelationKind::Partitioned) {
            let catalog = self.current_catalog()?;
            let refuse = |command: &&AlterTableCmd| partitions::refuse(&catalog, table, command);
            return commands.iter().try_for_each(refuse);
        }
        for command in commands {
            let kind = Type::try_from(command.subtype).unwrap_or(Type::Undefined);
            let of_view = matches!(kind, Type::AtSetRelOptions | Type::AtResetRelOptions);
            let of_rows = matches!(
                kind,
                Type::AtSetStatistics
                    | Type::AtSetOptions
                    | Type::AtResetOptions
                    | Type::AtSetStorage
                    | Type::AtSetCompression
                    | Type::AtClusterOn
                    | Type::AtDropCluster
                    | Type::AtReplicaIdentity
            ) && table.kind.has_rows();
            let of_sequence = matches!(kind, Type::AtSetLogged | Type::AtSetUnLogged)
                && table.kind == RelationKind::Sequence;
            if matches!(kind, Type::AtChangeOwner)
                || of_rows
                || of_sequence
                || (of_view || kind == Type::AtColumnDefault) && table.kind == RelationKind::View
            {
                continue;
            }
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "ALTER action {} cannot be performed on relation \"{}\"",
                    action_name(kind),
                    table.name
                ),
            )
            .with_detail(format!(
                "This operation is not supported for {}s.",
                table.kind.noun()
            )));
        }
        Ok(())
    }

    /// Carries out one action, or several changes of types at once.
    fn alter_step(
        &mut self,
        text: &str,
        oid: u32,
        (group, only): (&[&AlterTableCmd], bool),
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let (catalog, table) = self.own_table(oid)?;
        let Some(command) = group.first() else {
            return Ok(());
        };
        let kind = Type::try_from(command.subtype).unwrap_or(Type::Undefined);
        if matches!(
            kind,
            Type::AtAddColumn | Type::AtDropColumn | Type::AtAlterColumnType
        ) {
            super::composite::check_rows_unused(&catalog, &table)?;
        }
        match kind {
            Type::AtAddColumn => self.alter_add_column(text, &catalog, &table, command, sink),
            Type::AtDropColumn => self.alter_drop_column(&table, command, sink),
            Type::AtAlterColumnType => self.alter_types(text, &catalog, &table, group),
            Type::AtColumnDefault => self.alter_default(text, &catalog, &table, command),
            Type::AtSetNotNull => self.alter_not_null(&table, command, true),
            Type::AtDropNotNull => self.alter_not_null(&table, command, false),
            Type::AtSetStatistics => self.alter_statistics(&catalog, &table, command, sink),
            Type::AtSetOptions | Type::AtResetOptions => self.alter_column_options(&table, command),
            Type::AtSetStorage => self.alter_storage(&table, command),
            Type::AtSetCompression => self.alter_compression(&table, command),
            Type::AtClusterOn => self.alter_cluster(&catalog, &table, Some(&command.name)),
            Type::AtDropCluster => self.alter_cluster(&catalog, &table, None),
            Type::AtReplicaIdentity => self.alter_replica_identity(&catalog, &table, command),
            Type::AtAddConstraint => {
                self.alter_add_constraint(text, &catalog, &table, command, sink)
            }
            Type::AtValidateConstraint => self.alter_validate(&table, command),
            Type::AtAlterConstraint => self.alter_constraint(&table, command),
            Type::AtDropConstraint => self.alter_drop_constraint(&table, command, sink),
            Type::AtChangeOwner => self.alter_owner(&catalog, &table, command),
            Type::AtSetRelOptions | Type::AtResetRelOptions => self.alter_options(&table, command),
            Type::AtAddIdentity => self.alter_add_identity(text, &catalog, &table, command),
            Type::AtSetIdentity => self.alter_set_identity(text, &table, command),
            Type::AtDropIdentity => self.alter_drop_identity(&table, command, sink),
            Type::AtEnableRowSecurity | Type::AtDisableRowSecurity => {
                let mut new = (*table).clone();
                new.row_security = kind == Type::AtEnableRowSecurity;
                self.put_table(&new)
            }
            Type::AtForceRowSecurity | Type::AtNoForceRowSecurity => {
                let mut new = (*table).clone();
                new.force_row_security = kind == Type::AtForceRowSecurity;
                self.put_table(&new)
            }
            Type::AtEnableTrig
            | Type::AtEnableAlwaysTrig
            | Type::AtEnableReplicaTrig
            | Type::AtDisableTrig
            | Type::AtEnableTrigAll
            | Type::AtDisableTrigAll
            | Type::AtEnableTrigUser
            | Type::AtDisableTrigUser => {
                self.alter_triggers(&catalog, &table, (command, only), kind)
            }
            Type::AtEnableRule
            | Type::AtEnableAlwaysRule
            | Type::AtEnableReplicaRule
            | Type::AtDisableRule => self.alter_rule(&table, command, kind),
            Type::AtSetLogged => self.alter_logged(&catalog, &table, false),
            Type::AtSetUnLogged => self.alter_logged(&catalog, &table, true),
            Type::AtAttachPartition => self.attach_partition(text, &table, command),
            Type::AtDetachPartition => self.detach_partition(&table, command),
            Type::AtAddInherit => self.alter_inherit(&table, command),
            Type::AtDropInherit => self.alter_no_inherit(&table, command),
            Type::AtAddOf => self.alter_of(&catalog, &table, command),
            Type::AtDropOf => self.alter_not_of(&table),
            kind => Err(Error::unsupported(format!(
                "ALTER TABLE {}",
                action_name(kind)
            ))),
        }
    }

    /// Carries out an action on a table, which is locked, because its type has changed so.
    pub(super) fn alter_by_type(
        &mut self,
        oid: u32,
        command: &AlterTableCmd,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let commands = [command];
        let group = (commands.as_slice(), false);
        match self.alter_partitioned("", oid, group, sink)? {
            true => Ok(()),
            false => self.alter_step("", oid, group, sink),
        }
    }

    /// The table of that oid as this transaction sees it.
    pub(super) fn own_table(&mut self, oid: u32) -> Result<(Arc<Catalog>, Arc<Table>)> {
        let catalog = self.current_catalog()?;
        let table = catalog.table_by_oid(oid).cloned();
        let table = table.ok_or_else(|| Error::internal(format!("table {oid} is gone")))?;
        Ok((catalog, table))
    }

    /// Puts the new definition of a table into the catalog.
    pub(super) fn put_table(&mut self, new: &Table) -> Result<()> {
        let database = self.current_catalog()?.database.oid;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        store::update_table(open.txn.as_mut(), database, new)?;
        self.changed_catalog();
        Ok(())
    }

    /// NOTICE: what IF EXISTS passes over.
    fn skip(&mut self, message: &str, sink: &mut dyn Sink) -> Result<()> {
        let message = format!("{message}, skipping");
        let body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
        self.notice(NoticeSeverity::Notice, body, sink)
    }
}

/// The place of a column.
///
/// # Errors
/// 42703.
fn column_place(table: &Table, name: &str) -> Result<usize> {
    table.column(name).ok_or_else(|| {
        Error::new(
            SqlState::UNDEFINED_COLUMN,
            format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            ),
        )
    })
}

fn is_retype(command: &AlterTableCmd) -> bool {
    command.subtype == Type::AtAlterColumnType as i32
}

/// The order of actions.
fn pass(command: &AlterTableCmd) -> u8 {
    match Type::try_from(command.subtype) {
        Ok(
            Type::AtDropColumn
            | Type::AtDropConstraint
            | Type::AtDropNotNull
            | Type::AtDropIdentity,
        ) => 0,
        Ok(Type::AtColumnDefault) if command.def.is_none() => 0,
        Ok(Type::AtAlterColumnType) => 1,
        Ok(Type::AtAddColumn) => 2,
        Ok(Type::AtSetNotNull) => 3,
        Ok(Type::AtColumnDefault | Type::AtAddIdentity) => 5,
        Ok(Type::AtAddConstraint) => match constraint_of(command) {
            Some(ConstrType::ConstrPrimary | ConstrType::ConstrUnique) => 4,
            Some(ConstrType::ConstrForeign) => 6,
            _ => 5,
        },
        _ => 7,
    }
}

fn constraint_of(command: &AlterTableCmd) -> Option<ConstrType> {
    let constraint = constraint_said(command)?;
    ConstrType::try_from(constraint.contype).ok()
}

/// The constraint that an action adds.
fn constraint_said(command: &AlterTableCmd) -> Option<&Constraint> {
    match command.def.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::Constraint(constraint)) => Some(constraint),
        _ => None,
    }
}

/// How an action locks the table.
fn lock_of(command: &AlterTableCmd) -> TableLock {
    match Type::try_from(command.subtype) {
        Ok(Type::AtSetRelOptions | Type::AtResetRelOptions) if says_placement(command) => {
            TableLock::AccessExclusive
        }
        Ok(
            Type::AtValidateConstraint
            | Type::AtSetStatistics
            | Type::AtSetOptions
            | Type::AtResetOptions
            | Type::AtSetRelOptions
            | Type::AtResetRelOptions
            | Type::AtClusterOn
            | Type::AtDropCluster,
        ) => TableLock::ShareUpdateExclusive,
        Ok(Type::AtAddConstraint) if constraint_of(command) == Some(ConstrType::ConstrForeign) => {
            TableLock::ShareRowExclusive
        }
        Ok(
            Type::AtEnableTrig
            | Type::AtEnableAlwaysTrig
            | Type::AtEnableReplicaTrig
            | Type::AtDisableTrig
            | Type::AtEnableTrigAll
            | Type::AtDisableTrigAll
            | Type::AtEnableTrigUser
            | Type::AtDisableTrigUser,
        ) => TableLock::ShareRowExclusive,
        _ => TableLock::AccessExclusive,
    }
}

/// What messages call an action.
fn action_name(kind: Type) -> &'static str {
    match kind {
        Type::AtAddColumn => "ADD COLUMN",
        Type::AtColumnDefault => "ALTER COLUMN ... SET DEFAULT",
        Type::AtDropNotNull => "ALTER COLUMN ... DROP NOT NULL",
        Type::AtSetNotNull => "ALTER COLUMN ... SET NOT NULL",
        Type::AtSetExpression => "ALTER COLUMN ... SET EXPRESSION",
        Type::AtDropExpression => "ALTER COLUMN ... DROP EXPRESSION",
        Type::AtSetStatistics => "ALTER COLUMN ... SET STATISTICS",
        Type::AtSetOptions => "ALTER COLUMN ... SET",
        Type::AtResetOptions => "ALTER COLUMN ... RESET",
        Type::AtSetStorage => "ALTER COLUMN ... SET STORAGE",
        Type::AtSetCompression => "ALTER COLUMN ... SET COMPRESSION",
        Type::AtDropColumn => "DROP COLUMN",
        Type::AtAddConstraint | Type::AtAddIndexConstraint => "ADD CONSTRAINT",
        Type::AtAlterConstraint => "ALTER CONSTRAINT",
        Type::AtValidateConstraint => "VALIDATE CONSTRAINT",
        Type::AtDropConstraint => "DROP CONSTRAINT",
        Type::AtAlterColumnType => "ALTER COLUMN ... SET DATA TYPE",
        Type::AtChangeOwner => "OWNER TO",
        Type::AtClusterOn => "CLUSTER ON",
        Type::AtDropCluster => "SET WITHOUT CLUSTER",
        Type::AtSetLogged => "SET LOGGED",
        Type::AtSetUnLogged => "SET UNLOGGED",
        Type::AtSetAccessMethod => "SET ACCESS METHOD",
        Type::AtSetTableSpace => "SET TABLESPACE",
        Type::AtSetRelOptions => "SET",
        Type::AtResetRelOptions => "RESET",
        Type::AtAddInherit => "INHERIT",
        Type::AtDropInherit => "NO INHERIT",
        Type::AtAddOf => "OF",
        Type::AtDropOf => "NOT OF",
        Type::AtReplicaIdentity => "REPLICA IDENTITY",
        Type::AtEnableRowSecurity => "ENABLE ROW SECURITY",
        Type::AtDisableRowSecurity => "DISABLE ROW SECURITY",
        Type::AtForceRowSecurity => "FORCE ROW SECURITY",
        Type::AtNoForceRowSecurity => "NO FORCE ROW SECURITY",
        Type::AtAttachPartition => "ATTACH PARTITION",
        Type::AtDetachPartition | Type::AtDetachPartitionFinalize => "DETACH PARTITION",
        Type::AtAddIdentity => "ALTER COLUMN ... ADD IDENTITY",
        Type::AtSetIdentity => "ALTER COLUMN ... SET",
        Type::AtDropIdentity => "ALTER COLUMN ... DROP IDENTITY",
        Type::AtEnableTrig | Type::AtEnableTrigAll | Type::AtEnableTrigUser => "ENABLE TRIGGER",
        Type::AtDisableTrig | Type::AtDisableTrigAll | Type::AtDisableTrigUser => "DISABLE TRIGGER",
        Type::AtEnableAlwaysTrig => "ENABLE ALWAYS TRIGGER",
        Type::AtEnableReplicaTrig => "ENABLE REPLICA TRIGGER",
        Type::AtEnableRule => "ENABLE RULE",
        Type::AtEnableAlwaysRule => "ENABLE ALWAYS RULE",
        Type::AtEnableReplicaRule => "ENABLE REPLICA RULE",
        Type::AtDisableRule => "DISABLE RULE",
        _ => "with this action",
    }
}
