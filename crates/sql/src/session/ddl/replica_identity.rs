//! ALTER TABLE … REPLICA IDENTITY: what of a row that changes is told to whoever follows the table's changes.
//!
//! ```text
//! alter table t replica identity using index t_b_key     pg_class.relreplident i, pg_index.indisreplident
//! ```
//! Nobody follows them here (logical replication answers 0A000), so it is kept, shown and dumped: a dump of PostgreSQL
//! can be restored, and one of this restored there.
//!
//! Source: PostgreSQL 15 manual, ALTER TABLE.

use base::{Error, Result, SqlState};
use pg_query::protobuf::AlterTableCmd;

use super::super::Session;
use super::cluster::index_named;
use catalog::{Catalog, Index, ReplicaIdentity, Table};
use syntax::parser::NodeEnum;

impl Session {
    /// Keeps it.
    ///
    /// # Errors
    /// 42704, 42809, 0A000 for an index that cannot be it.
    pub(super) fn alter_replica_identity(
        &mut self,
        catalog: &Catalog,
        table: &Table,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let said = command.def.as_ref().and_then(|node| node.node.as_ref());
        let Some(NodeEnum::ReplicaIdentityStmt(said)) = said else {
            return Err(Error::internal("REPLICA IDENTITY of nothing"));
        };
        let letter = said.identity_type.bytes().next().unwrap_or_default();
        let identity = ReplicaIdentity::of_letter(letter);
        let identity = identity.ok_or_else(|| Error::internal("a replica identity of no kind"))?;
        let index = match identity {
            ReplicaIdentity::Index => {
                let oid = index_named(catalog, table, &said.name)?;
                check_identifies(table, oid)?;
                Some(oid)
            }
            _ => None,
        };
        let mut new = table.clone();
        new.replica_identity = identity;
        for known in &mut new.indexes {
            known.replica_identity = Some(known.oid) == index;
        }
        match new == *table {
            true => Ok(()),
            false => self.put_table(&new),
        }
    }
}

/// # Errors
/// 42809 and 0A000 for an index whose keys do not tell every row from all others.
fn check_identifies(table: &Table, oid: u32) -> Result<()> {
    let Some(index) = table.indexes.iter().find(|index| index.oid == oid) else {
        return Err(Error::internal("an index that is gone"));
    };
    let refused = |state, what: &str| {
        let message = format!(
            "cannot use {what} index \"{}\" as replica identity",
            index.name
        );
        Err(Error::new(state, message))
    };
    if !is_unique(index) {
        return refused(SqlState::WRONG_OBJECT_TYPE, "non-unique");
    }
    if index.is_deferrable() {
        return refused(SqlState::FEATURE_NOT_SUPPORTED, "non-immediate");
    }
    if let Some(computed) = &index.computed {
        return match computed.condition {
            None => refused(SqlState::FEATURE_NOT_SUPPORTED, "expression"),
            Some(_) => refused(SqlState::FEATURE_NOT_SUPPORTED, "partial"),
        };
    }
    let mut columns = index.columns.iter().map(|key| &table.columns[key.column]);
    match columns.find(|column| !column.not_null) {
        None => Ok(()),
        Some(column) => Err(Error::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!(
                "index \"{}\" cannot be used as replica identity because column \"{}\" is nullable",
                index.name, column.name
            ),
        )),
    }
}

fn is_unique(index: &Index) -> bool {
    index.is_unique() && index.exclusion.is_none()
}
