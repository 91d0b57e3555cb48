//! CLUSTER, and ALTER TABLE … CLUSTER ON and SET WITHOUT CLUSTER.
//!
//! Rows lie in the order of their primary key and of no other index, so CLUSTER moves none. What it says is
//! checked as PostgreSQL checks it; the table is locked against everyone, and its index has the mark by which
//! CLUSTER without USING goes on, and which dumps have.
//!
//! # What it leaves out
//! VERBOSE (0A000), since there is nothing to tell, and CLUSTER of system catalogs (0A000). CLUSTER of all
//! tables is one statement, and holds its locks until it ends, where PostgreSQL has a transaction for each.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{ClusterStmt, RangeVar};

use super::super::copy::options::truth_of;
use super::super::utility::tag;
use super::super::{CommandTag, Session};
use catalog::access::must_own;
use catalog::layout::BTREE;
use catalog::operator_class::GIST;
use catalog::{Catalog, RelationKind, Table};
use syntax::parser::{char_position, NodeEnum};

/// The oid of the table's index of that name.
///
/// # Errors
/// 42704, 42809 where it has none.
pub(super) fn index_named(catalog: &Catalog, table: &Table, name: &str) -> Result<u32> {
    let own = table.indexes.iter().find(|index| index.name == name);
    match own {
        Some(index) => Ok(index.oid),
        None => match catalog.relation(table.schema, name) {
            None => Err(Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "index \"{name}\" for table \"{}\" does not exist",
                    table.name
                ),
            )),
            Some(_) => Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not an index for table \"{}\"", table.name),
            )),
        },
    }
}

/// # Errors
/// 0A000 for an index that rows cannot be ordered by.
fn check_orders(table: &Table, oid: u32) -> Result<()> {
    let Some(index) = table.indexes.iter().find(|index| index.oid == oid) else {
        return Err(Error::internal("an index that is gone"));
    };
    let refused = |message: String| Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    if ![BTREE, GIST].contains(&index.form.method) {
        return refused(format!(
            "cannot cluster on index \"{}\" because access method does not support clustering",
            index.name
        ));
    }
    let computed = index.computed.as_ref();
    if computed.is_some_and(|computed| computed.condition.is_some()) {
        return refused(format!(
            "cannot cluster on partial index \"{}\"",
            index.name
        ));
    }
    Ok(())
}

impl Session {
    /// CLUSTER.
    ///
    /// # Errors
    /// 42601 for options that there are not; 42P01, 42704 and 42809 for what is not there, or not to be
    /// clustered; 42501 for who does not own it; 25001 in a block where it is of several tables.
    pub(in super::super) fn cluster(
        &mut self,
        text: &str,
        cluster: &ClusterStmt,
        alone: bool,
    ) -> Result<CommandTag> {
        check_options(text, cluster)?;
        let done = tag("CLUSTER");
        let Some(range) = &cluster.relation else {
            self.require_no_block("CLUSTER", alone)?;
            return self.cluster_all().map(|()| done);
        };
        let table = self.lock_clustered(range)?;
        let catalog = self.current_catalog()?;
        let index = match cluster.indexname.as_str() {
            "" => {
                let known = table.indexes.iter().find(|index| index.clustered);
                let known = known.map(|index| index.oid);
                known.ok_or_else(|| {
                    let name = &table.name;
                    let message =
                        format!("there is no previously clustered index for table \"{name}\"");
                    Error::new(SqlState::UNDEFINED_OBJECT, message)
                })?
            }
            name => index_named(&catalog, &table, name)?,
        };
        if table.kind == RelationKind::Partitioned {
            self.require_no_block("CLUSTER", alone)?;
            check_orders(&table, index)?;
            return self.cluster_parts(&table, index).map(|()| done);
        }
        self.refuse_in_use(&table, "CLUSTER")?;
        check_orders(&table, index)?;
        self.mark_clustered(&table, Some(index))?;
        Ok(done)
    }

    /// The relation that CLUSTER names, locked against everyone.
    fn lock_clustered(&mut self, range: &RangeVar) -> Result<Arc<Table>> {
        loop {
            let table = self.named_clustered(range)?;
            self.lock_mode(&table, TableLock::AccessExclusive)?;
            let again = self.named_clustered(range)?;
            if again.tree == table.tree && again.oid == table.oid {
                return Ok(again);
            }
        }
    }

    fn named_clustered(&mut self, range: &RangeVar) -> Result<Arc<Table>> {
        let catalog = self.current_catalog()?;
        let table = self.relation_named(range)?;
        let can_be = |table: &Arc<Table>| match table.kind {
            RelationKind::Partitioned => true,
            RelationKind::System => catalog::system::kind(table) != b'v',
            kind => kind.has_rows(),
        };
        let Some(table) = table.filter(can_be) else {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a table or materialized view", range.relname),
            ));
        };
        if !catalog.has_privileges_of(self.shared.settings.current_role(), table.owner) {
            return Err(must_own("table", &table.name));
        }
        match table.kind {
            RelationKind::System => Err(Error::unsupported("CLUSTER of a system catalog")),
            _ => Ok(table),
        }
    }

    /// All tables of the role's that have been clustered, one after the other.
    fn cluster_all(&mut self) -> Result<()> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?.oid;
        let tables = catalog.tables.iter();
        let is_wanted = |table: &&Arc<Table>| {
            let mut indexes = table.indexes.iter();
            table.kind.has_rows()
                && indexes.any(|index| index.clustered)
                && catalog.has_privileges_of(own, table.owner)
        };
        let tables: Vec<_> = tables.filter(is_wanted).cloned().collect();
        for table in tables {
            self.lock_mode(&table, TableLock::AccessExclusive)?;
            self.refuse_in_use(&table, "CLUSTER")?;
        }
        Ok(())
    }

    /// The partitions below a partitioned table that the role owns, each by its part of an index.
    fn cluster_parts(&mut self, whole: &Arc<Table>, index: u32) -> Result<()> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?.oid;
        let mut parts = vec![index];
        for below in catalog.below(whole) {
            let part = below.indexes.iter().find(|part| {
                let above = below.part_above(part.oid);
                above.is_some_and(|above| parts.contains(&above))
            });
            let Some(part) = part.map(|part| part.oid) else {
                continue;
            };
            parts.push(part);
            let owns = catalog.has_privileges_of(own, below.owner)
                || catalog.has_privileges_of(own, catalog.database.owner);
            if !below.kind.has_rows() || !owns {
                continue;
            }
            self.lock_mode(&below, TableLock::AccessExclusive)?;
            self.refuse_in_use(&below, "CLUSTER")?;
            let now = self.current_catalog()?;
            if let Some(table) = now.table_by_oid(below.oid) {
                self.mark_clustered(table, Some(part))?;
            }
        }
        Ok(())
    }

    /// ALTER TABLE … CLUSTER ON an index, or SET WITHOUT CLUSTER for none.
    pub(super) fn alter_cluster(
        &mut self,
        catalog: &Catalog,
        table: &Table,
        index: Option<&str>,
    ) -> Result<()> {
        let index = match index {
            None => None,
            Some(name) => {
                let oid = index_named(catalog, table, name)?;
                check_orders(table, oid)?;
                Some(oid)
            }
        };
        match table.kind {
            RelationKind::Partitioned => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot mark index clustered in partitioned table",
            )),
            _ => self.mark_clustered(table, index),
        }
    }

    fn mark_clustered(&mut self, table: &Table, index: Option<u32>) -> Result<()> {
        let is_it = |oid: u32| Some(oid) == index;
        let mut indexes = table.indexes.iter();
        if indexes.all(|index| index.clustered == is_it(index.oid)) {
            return Ok(());
        }
        let mut new = table.clone();
        for index in &mut new.indexes {
            index.clustered = is_it(index.oid);
        }
        self.put_table(&new)
    }
}

/// # Errors
/// 42601 for an option that there is not; 0A000 for VERBOSE.
fn check_options(text: &str, cluster: &ClusterStmt) -> Result<()> {
    let mut verbose = false;
    for node in &cluster.params {
        let Some(NodeEnum::DefElem(option)) = &node.node else {
            continue;
        };
        let name = &option.defname;
        if name != "verbose" {
            let message = format!("unrecognized CLUSTER option \"{name}\"");
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            return Err(match char_position(text, option.location) {
                Some(position) => error.at(position),
                None => error,
            });
        }
        verbose = truth_of(option).ok_or_else(|| {
            let message = format!("{name} requires a Boolean value");
            Error::new(SqlState::SYNTAX_ERROR, message)
        })?;
    }
    match verbose {
        true => Err(Error::unsupported("CLUSTER (VERBOSE)")),
        false => Ok(()),
    }
}
