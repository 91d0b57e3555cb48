//! Large objects: who owns them and what was said of them. Their bytes are in
//! [`large_object_pages`](super::large_object_pages).
//!
//! ```text
//! the tree of database 5
//!   24576      owner 10, its list of privileges
//!   24576, 0   2,048 bytes
//!   24576, 1     952 bytes
//!   24577      owner 16390
//! ```
//! Objects and pages are rows like those of a table: versions, rollback, savepoints, large transactions
//! and standbys know nothing of them. There may be millions, so they are no part of the
//! [`Catalog`](super::Catalog), and no plan depends on them. A database has its tree from the first large
//! object on that is made in it; who would make another meanwhile waits until that one is decided on.
//!
//! # Invariants
//! - Whoever writes an object's pages, or its row, holds the lock of the object ([`hold`]); so pages have
//!   none of their own.
//! - Pages are there only where the object is.
//!
//! # What it leaves out
//! An index by owners: who asks what a role owns goes over all objects of the database.

use base::engine::{
    Direction, Inserted, LockWait, Locking, Reading, RowBatch, RowLock, Transaction,
    TreeDescriptor, TreeKind,
};
use base::key::KeyRange;
use base::limits::{ROWS_PER_YIELD, WORK_PER_TURN};
use base::row::{Row, RowBuilder};
use base::{coro, Error, Key, Result, SqlState, TreeId};

use super::access::{self, default_acl, Acl, Guarded};
use super::layout::{COMMENTS, LARGE_OBJECT};
use super::store::{drop_tree, number, oid_key};

/// Set in the id of a tree of large objects, which is the database's oid otherwise.
const LARGE_OBJECT_TREE: u64 = 1 << 57;

const _: () = assert!(LARGE_OBJECT_TREE < super::local::FIRST_TREE.0);

/// What looking at a row counts for, in the units of [`coro::work`].
pub(super) const ROW_WORK: usize = WORK_PER_TURN / ROWS_PER_YIELD;

/// The constraint that a second object of an oid would break.
const UNIQUE: &str = "pg_largeobject_metadata_oid_index";

/// What is known of a large object beside its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeObject {
    /// Its oid.
    pub oid: u32,
    /// Its owner.
    pub owner: u32,
    /// Its privileges, if anything was said of them.
    pub acl: Option<Acl>,
}

impl LargeObject {
    /// What was said of its privileges, or what holds without that.
    pub fn acl(&self) -> Acl {
        let unsaid = || default_acl(Guarded::LargeObject, self.owner);
        self.acl.clone().unwrap_or_else(unsaid)
    }

    fn row(&self) -> Vec<u8> {
        let row = RowBuilder::new(2).value(&self.owner.to_be_bytes());
        match &self.acl {
            Some(acl) => row.value(&access::encode(acl)).finish(),
            None => row.null().finish(),
        }
    }

    fn of_row(oid: u32, row: &[u8]) -> Result<LargeObject> {
        let row = Row::parse(row)?;
        Ok(LargeObject {
            oid,
            owner: number(&row, 0)?,
            acl: row.column(1).map(access::decode).transpose()?,
        })
    }
}

/// Which state is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// What the statement at work sees.
    Statement,
    /// What is committed now, and all that this transaction has written: what whoever writes goes by.
    Newest,
}

impl Sight {
    /// Reads the next rows of a range; what is left of it.
    pub(super) fn scan(
        self,
        txn: &mut dyn Reading,
        tree: TreeId,
        range: &KeyRange,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        match self {
            Sight::Statement => txn.scan(tree, range, Direction::Forward, limit, batch),
            Sight::Newest => txn.scan_newest(tree, range, limit, batch),
        }
    }

    fn has(self, txn: &mut dyn Reading, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut batch = RowBatch::default();
        self.scan(txn, tree, &KeyRange::point(key), 1, &mut batch)?;
        Ok(match batch.is_empty() {
            true => None,
            false => Some(batch.get(0).1.to_vec()),
        })
    }
}

/// 42704.
pub fn missing(oid: u32) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("large object {oid} does not exist"),
    )
}

/// 23505.
pub fn exists(oid: u32) -> Error {
    let message = format!("duplicate key value violates unique constraint \"{UNIQUE}\"");
    let mut error = Error::new(SqlState::UNIQUE_VIOLATION, message)
        .with_detail(format!("Key (oid)=({oid}) already exists."));
    let fields = error.fields_mut();
    fields.schema = Some("pg_catalog".to_owned());
    fields.table = Some("pg_largeobject_metadata".to_owned());
    fields.constraint = Some(UNIQUE.to_owned());
    error
}

/// The tree of a database's large objects, which is there once one was made.
pub fn tree_of(database: u32) -> TreeId {
    TreeId(LARGE_OBJECT_TREE | u64::from(database))
}

/// Whether a database has its tree. To who has an older snapshot than the tree there are no rows in it but
/// its own.
pub fn has_tree(txn: &mut dyn Reading, database: u32) -> Result<bool> {
    let key = tree_of(database).descriptor_key();
    let found = Sight::Newest.has(txn, TreeId::DESCRIPTORS, &key)?;
    Ok(found.is_some())
}

/// Makes the tree of a database, if nobody has.
fn ensure_tree(txn: &mut dyn Transaction, database: u32) -> Result<()> {
    if has_tree(txn, database)? {
        return Ok(());
    }
    let (id, kind) = (tree_of(database), TreeKind::Table);
    let row = TreeDescriptor { id, kind }.to_row();
    // Somebody else may have made it while this waited.
    txn.insert(TreeId::DESCRIPTORS, &id.descriptor_key(), &row)?;
    Ok(())
}

/// A large object, if it is there.
pub fn find(
    txn: &mut dyn Reading,
    database: u32,
    oid: u32,
    sight: Sight,
) -> Result<Option<LargeObject>> {
    if !has_tree(txn, database)? {
        return Ok(None);
    }
    let row = sight.has(txn, tree_of(database), &oid_key(&[oid]))?;
    row.map(|row| LargeObject::of_row(oid, &row)).transpose()
}

/// Locks a large object until the end of the transaction, to write it ([`RowLock::NoKeyUpdate`]) or to
/// remove it ([`RowLock::Update`]); what it is now, if it is there.
///
/// # Errors
/// 55P03; 40P01.
pub fn hold(
    txn: &mut dyn Transaction,
    database: u32,
    oid: u32,
    strength: RowLock,
) -> Result<Option<LargeObject>> {
    let locking: &mut dyn Locking = txn;
    locking.lock_key(
        tree_of(database),
        &oid_key(&[oid]),
        strength,
        LockWait::Block,
    )?;
    find(txn, database, oid, Sight::Newest)
}

/// Makes an empty large object.
///
/// # Errors
/// 23505 when there is one of that oid.
pub fn insert(txn: &mut dyn Transaction, database: u32, made: &LargeObject) -> Result<()> {
    ensure_tree(txn, database)?;
    let key = oid_key(&[made.oid]);
    match txn.insert(tree_of(database), &key, &made.row())? {
        Inserted::Done => Ok(()),
        Inserted::Duplicate(_) => Err(exists(made.oid)),
    }
}

/// Replaces what is known of a large object that is held.
pub fn update(txn: &mut dyn Transaction, database: u32, object: &LargeObject) -> Result<()> {
    let key = oid_key(&[object.oid]);
    txn.update(tree_of(database), &key, &object.row())?;
    Ok(())
}

/// Removes a large object that is held, with its pages and its comment; whether it had a comment.
pub fn remove(txn: &mut dyn Transaction, database: u32, oid: u32) -> Result<bool> {
    let tree = tree_of(database);
    let mut batch = RowBatch::default();
    let mut rest = Some(KeyRange::prefix(&oid_key(&[oid])));
    while let Some(range) = rest {
        rest = Sight::Newest.scan(txn, tree, &range, usize::MAX, &mut batch)?;
        for (key, _) in batch.iter() {
            coro::work(ROW_WORK)?;
            txn.delete(tree, key)?;
        }
    }
    forget_comment(txn, database, oid)
}

/// Removes the comment of an object that is held, also one that the statement does not see: nobody
/// comments on the object while it is held.
fn forget_comment(txn: &mut dyn Transaction, database: u32, oid: u32) -> Result<bool> {
    let key = oid_key(&[database, LARGE_OBJECT, oid, 0]);
    if Sight::Newest.has(txn, COMMENTS, &key)?.is_none() {
        return Ok(false);
    }
    txn.lock_key(COMMENTS, &key, RowLock::Update, LockWait::Block)?;
    txn.delete(COMMENTS, &key)?;
    Ok(true)
}

/// Goes over all large objects of a database, in the order of their oids.
pub fn for_each(
    txn: &mut dyn Reading,
    database: u32,
    sight: Sight,
    mut take: impl FnMut(LargeObject) -> Result<()>,
) -> Result<()> {
    if !has_tree(txn, database)? {
        return Ok(());
    }
    let mut batch = RowBatch::default();
    let mut rest = Some(KeyRange::all());
    while let Some(range) = rest {
        coro::work(ROW_WORK)?;
        // The next row is an object's, or lies among the pages of the one before.
        sight.scan(txn, tree_of(database), &range, 1, &mut batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        let (key, row) = batch.get(0);
        let oid = oid_of(key)?;
        if key.len() == size_of::<u32>() {
            take(LargeObject::of_row(oid, row)?)?;
        }
        rest = oid.checked_add(1).map(|next| KeyRange {
            start: oid_key(&[next]),
            end: None,
        });
    }
    Ok(())
}

/// All large objects of a database that are wanted.
pub fn all(
    txn: &mut dyn Reading,
    database: u32,
    sight: Sight,
    is_wanted: impl Fn(&LargeObject) -> bool,
) -> Result<Vec<LargeObject>> {
    let mut found = Vec::new();
    for_each(txn, database, sight, |object| {
        if is_wanted(&object) {
            found.push(object);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Whether a database has any.
pub fn has_any(txn: &mut dyn Reading, database: u32) -> Result<bool> {
    if !has_tree(txn, database)? {
        return Ok(false);
    }
    let mut batch = RowBatch::default();
    Sight::Newest.scan(txn, tree_of(database), &KeyRange::all(), 1, &mut batch)?;
    Ok(!batch.is_empty())
}

/// Removes all large objects of a database, which goes. What was said of them is the caller's affair.
pub fn remove_all(txn: &mut dyn Transaction, database: u32) -> Result<()> {
    match has_tree(txn, database)? {
        true => drop_tree(txn, tree_of(database)),
        false => Ok(()),
    }
}

/// The object that a key of the tree is about.
pub(super) fn oid_of(key: &[u8]) -> Result<u32> {
    let oid = key.first_chunk();
    let oid = oid.ok_or_else(|| Error::corrupted("the key of a large object"))?;
    Ok(u32::from_be_bytes(*oid))
}

/// The key of a page.
pub(super) fn page_key(oid: u32, page: u32) -> Key {
    oid_key(&[oid, page])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        for acl in [None, Some(default_acl(Guarded::LargeObject, 7))] {
            let object = LargeObject {
                oid: 9,
                owner: 7,
                acl,
            };
            assert_eq!(LargeObject::of_row(9, &object.row()).unwrap(), object);
        }
    }

    #[test]
    fn trees_lie_in_the_first_group_and_are_no_catalog() {
        let tree = tree_of(u32::MAX);
        assert_eq!(tree.group(), base::ids::FIRST_GROUP);
        assert!(!tree.is_catalog());
        assert_ne!(tree, tree_of(5));
    }
}
