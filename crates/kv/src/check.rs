//! Checking a group's directory without changing it.
//!
//! The checkpoint and the log are read and checked as they are on disk; then the log is replayed
//! on the checkpoint, in memory, as a start of the node would do it, and the outcome is checked:
//! pages and their order, and that indexes and tables agree. Every row has its entry in each
//! index, and an index has as many entries as its table has rows; entries end with the key of
//! their row, so there is none without a row.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::env::Env;
use base::row::Row;
use base::{Error, GroupId, Lsn, Position, Result, TreeId};
use storage::Store;

use crate::apply::for_each_row;
use crate::config::{GroupConfig, GroupSettings};
use crate::contents::Contents;
use crate::directory::Directory;
use crate::group::{history_of, replay_for_check};
use crate::history::History;
use crate::overlay::ReadOnly;
use crate::registry::{index_key, Registry};

/// What a check found, when everything is sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The group.
    pub group: GroupId,
    /// The LSN of the checkpoint.
    pub checkpoint: Lsn,
    /// The last entry of the log.
    pub last: Position,
    /// Segments of the log.
    pub segments: usize,
    /// Pages of the checkpoint.
    pub pages: usize,
    /// For each tree, how many rows or entries it has once the log is replayed.
    pub trees: BTreeMap<TreeId, u64>,
    /// What the log says of its history.
    pub history: History,
}

/// Checks a group's directory, which nobody has open.
///
/// # Errors
/// XX001 when something is not sound; 55000 when it is another cluster's or group's.
pub async fn check(
    env: Arc<dyn Env>,
    cluster: u64,
    group: GroupId,
    directory: &str,
) -> Result<CheckReport> {
    let env: Arc<dyn Env> = Arc::new(ReadOnly::new(env));
    let config = config(cluster, group, directory);
    let on_disk = config.check_disk(&*env)?;
    let history = history_of(&env, &config).await?;
    let registry = Registry::default();
    let replayed = replay_for_check(&env, &config, &registry, Lsn::MAX).await?;
    let (store, last) = replayed.ok_or_else(|| Error::internal("a log without an end"))?;
    let trees = store.check_trees(&mut |_, _, _| Ok(()))?.trees;
    check_indexes(&store, &registry, &trees)?;
    Ok(CheckReport {
        group,
        checkpoint: store.checkpoint().lsn,
        last,
        segments: on_disk.0,
        pages: on_disk.1,
        trees,
        history,
    })
}

fn config(cluster: u64, group: GroupId, directory: &str) -> GroupConfig {
    let settings = GroupSettings::default();
    GroupConfig {
        room: settings.room(),
        cluster,
        group,
        node: base::NodeId(0),
        directory: directory.to_owned(),
        founded: Directory::founded(&[], 1),
        settings,
    }
}

/// What a group's directory, which nobody has open, holds at an LSN. None where its checkpoint is
/// beyond that LSN, or its log ends before.
///
/// # Errors
/// As [`check`].
pub async fn contents_at(
    env: Arc<dyn Env>,
    cluster: u64,
    group: GroupId,
    directory: &str,
    lsn: Lsn,
) -> Result<Option<Contents>> {
    let env: Arc<dyn Env> = Arc::new(ReadOnly::new(env));
    let config = config(cluster, group, directory);
    let registry = Registry::default();
    let replayed = replay_for_check(&env, &config, &registry, lsn).await?;
    let Some((store, _)) = replayed.filter(|(_, last)| last.lsn == lsn) else {
        return Ok(None);
    };
    let mut contents = Contents::default();
    store.check_trees(&mut |tree, key, row| {
        contents.add(tree, key, row);
        Ok(())
    })?;
    Ok(Some(contents))
}

/// Every row has its entries, and there are no others.
fn check_indexes(store: &Store, registry: &Registry, trees: &BTreeMap<TreeId, u64>) -> Result<()> {
    let rows_of = |tree: TreeId| trees.get(&tree).copied().unwrap_or(0);
    let mut unused = Vec::new();
    for descriptor in registry.all() {
        let table = descriptor.id;
        let Some(indexes) = registry.indexes(table) else {
            continue;
        };
        for (index, _) in indexes.iter() {
            let (rows, entries) = (rows_of(table), rows_of(*index));
            if rows != entries {
                let message = format!("table {table} has {rows} rows, index {index} {entries}");
                return Err(Error::corrupted(message));
            }
        }
        for_each_row(store, table, |key, row| {
            let row = Row::parse(row)?;
            for (tree, index) in indexes.iter() {
                let entry = index_key(index, &row, key)?;
                if !store.get(*tree, &entry, Lsn::MAX, &mut unused)?.exists {
                    let message = format!("index {tree} has no entry for row {key:02x?}");
                    return Err(Error::corrupted(message));
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
