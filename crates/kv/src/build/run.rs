//! One build on one replica: piece by piece through the table.

use std::collections::BTreeSet;

use base::engine::{Built, Direction, IndexDescriptor, RowBatch};
use base::row::Row;
use base::sync::Mutex;
use base::{Error, ErrorClass, Key, KeyRange, Lsn, NodeId, Result, TreeId};
use storage::Store;

use super::plan::{key_of_columns, NewKey, NewKeys, Plan};
use super::PIECE_ROWS;
use crate::registry::{has_null, index_key, index_prefix};

/// A build that is under way, and how far it has come here.
#[derive(Debug)]
pub struct OpenBuild {
    /// What is built.
    pub plan: Plan,
    /// Where it was begun.
    pub lsn: Lsn,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    state: State,
    /// The number of the next row.
    number: u64,
    /// Other replicas that are done.
    done: BTreeSet<NodeId>,
}

#[derive(Debug)]
enum State {
    /// This is left to be read.
    Running(KeyRange),
    /// Done, or refused because of the rows there are.
    Ended(Result<Built>),
    /// It is not under way any more.
    Over,
}

/// Entries for one index: the key, the length of the index's columns in it where these must be
/// unique, and which row of the piece it is of.
type Entries = Vec<(Key, Option<usize>, usize)>;

/// What one piece of rows becomes.
struct Piece {
    table: Vec<(Key, usize)>,
    indexes: Vec<Entries>,
}

impl OpenBuild {
    /// One of which nothing is done.
    pub(super) fn new(plan: Plan, lsn: Lsn) -> OpenBuild {
        let number = match &plan.rekeyed {
            Some((_, NewKeys::Numbers(first))) => *first,
            _ => 0,
        };
        let state = State::Running(KeyRange::all());
        OpenBuild {
            plan,
            lsn,
            progress: Mutex::new(Progress {
                state,
                number,
                done: BTreeSet::new(),
            }),
        }
    }

    /// Whether there is more to do here.
    pub fn is_running(&self) -> bool {
        matches!(self.progress.lock().state, State::Running(_))
    }

    /// Whether it is not under way any more.
    pub fn is_over(&self) -> bool {
        matches!(self.progress.lock().state, State::Over)
    }

    /// How it ended here, if it has.
    pub fn outcome(&self) -> Option<Result<Built>> {
        match &self.progress.lock().state {
            State::Ended(outcome) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// Notes that another replica is done.
    pub fn note_done(&self, node: NodeId) {
        self.progress.lock().done.insert(node);
    }

    /// The other replicas that are done.
    pub fn done_elsewhere(&self) -> BTreeSet<NodeId> {
        self.progress.lock().done.clone()
    }

    /// It is not under way any more: nothing further is done.
    pub(super) fn stop(&self) {
        self.progress.lock().state = State::Over;
    }

    /// Reads the next rows and puts them where they belong; false when there is no more to do.
    ///
    /// # Errors
    /// Only errors that stop the node.
    pub fn step<S: std::ops::Deref<Target = Store>>(
        &self,
        store: impl FnOnce() -> S,
    ) -> Result<bool> {
        let mut progress = self.progress.lock();
        let State::Running(range) = &progress.state else {
            return Ok(false);
        };
        // Asked for here: while this latch is held, no other store takes its place.
        let store = store();
        let mut rows = RowBatch::default();
        let (direction, source) = (Direction::Forward, self.plan.source);
        let scanned = store.scan(source, range, direction, Lsn::MAX, PIECE_ROWS, &mut rows)?;
        let outcome = match self.put(&store, &rows, &mut progress.number) {
            Ok(None) if scanned.rest.is_some() => None,
            Ok(None) => Some(Ok(Built::Done)),
            Ok(Some(refused)) => Some(Ok(refused)),
            Err(error) if error.class() == ErrorClass::Node => return Err(error),
            Err(error) => Some(Err(error)),
        };
        progress.state = match (outcome, scanned.rest) {
            (None, Some(rest)) => State::Running(rest),
            (None, None) => State::Ended(Ok(Built::Done)),
            (Some(outcome), _) => State::Ended(outcome),
        };
        Ok(matches!(progress.state, State::Running(_)))
    }

    /// Puts rows where they belong; returns why they cannot be.
    fn put(&self, store: &Store, rows: &RowBatch, number: &mut u64) -> Result<Option<Built>> {
        let mut piece = match self.piece(rows, number)? {
            Ok(piece) => piece,
            Err(refused) => return Ok(Some(refused)),
        };
        if let Some((tree, _)) = &self.plan.rekeyed {
            let entries: Vec<_> = piece
                .table
                .iter()
                .map(|(key, at)| (&key[..], rows.get(*at).1))
                .collect();
            if let Some(key) = store.build(*tree, self.lsn, &entries)? {
                let row = entries.iter().rfind(|entry| entry.0 == key);
                let row = row.map_or(Vec::new(), |entry| entry.1.to_vec());
                return Ok(Some(Built::Duplicate { tree: *tree, row }));
            }
        }
        for ((tree, index), entries) in self.plan.indexes.iter().zip(&mut piece.indexes) {
            // In order, neighbours are on one page.
            entries.sort_unstable();
            let twice = match index.unique {
                true => self.put_unique(store, *tree, entries)?,
                false => {
                    let entries: Vec<_> = entries.iter().map(|e| (&e.0[..], &b""[..])).collect();
                    let twice = store.build(*tree, self.lsn, &entries)?;
                    if let Some(entry) = twice {
                        let message = format!("entry {entry:02x?} of tree {tree} is there twice");
                        return Err(Error::internal(message));
                    }
                    None
                }
            };
            if let Some(row) = twice {
                let row = rows.get(row).1.to_vec();
                return Ok(Some(Built::Duplicate { tree: *tree, row }));
            }
        }
        Ok(None)
    }

    /// The entries of all trees for some rows, or why there are none.
    fn piece(
        &self,
        rows: &RowBatch,
        number: &mut u64,
    ) -> Result<std::result::Result<Piece, Built>> {
        let mut piece = Piece {
            table: Vec::new(),
            indexes: vec![Entries::new(); self.plan.indexes.len()],
        };
        for (at, (old_key, bytes)) in rows.iter().enumerate() {
            if self.plan.rekeyed.is_some() && self.plan.except.contains(old_key) {
                continue;
            }
            let row = Row::parse(bytes)?;
            let key = match &self.plan.rekeyed {
                None => old_key.to_vec(),
                Some((_, NewKeys::Numbers(_))) => {
                    *number += 1;
                    (*number - 1).to_be_bytes().to_vec()
                }
                Some((_, NewKeys::Columns(columns))) => match key_of_columns(columns, &row)? {
                    NewKey::Is(key) => key,
                    NewKey::Null(column) => return Ok(Err(Built::NullKey { column })),
                },
            };
            for ((_, index), entries) in self.plan.indexes.iter().zip(&mut piece.indexes) {
                let columns = self.columns_to_compare(index, &row, old_key)?;
                entries.push((index_key(index, &row, &key)?, columns, at));
            }
            if self.plan.rekeyed.is_some() {
                piece.table.push((key, at));
            }
        }
        Ok(Ok(piece))
    }

    /// How many bytes of a row's entry no other may have, if any.
    fn columns_to_compare(
        &self,
        index: &IndexDescriptor,
        row: &Row<'_>,
        row_key: &[u8],
    ) -> Result<Option<usize>> {
        if !index.unique || has_null(index, row) || self.plan.except.contains(row_key) {
            return Ok(None);
        }
        let mut columns = Key::new();
        index_prefix(index, row, &mut columns)?;
        Ok(Some(columns.len()))
    }

    /// Puts entries into a unique index; returns the row that another one equals.
    fn put_unique(&self, store: &Store, tree: TreeId, entries: &Entries) -> Result<Option<usize>> {
        for (entry, columns, row) in entries {
            if let Some(columns) = columns {
                if self.has_equal(store, tree, &entry[..*columns])? {
                    return Ok(Some(*row));
                }
            }
            store.build(tree, self.lsn, &[(entry, b"")])?;
        }
        Ok(None)
    }

    /// Whether an index has an entry of these columns, of a row that the transaction has not
    /// changed.
    fn has_equal(&self, store: &Store, tree: TreeId, columns: &[u8]) -> Result<bool> {
        let mut rest = Some(KeyRange::prefix(columns));
        let mut found = RowBatch::default();
        while let Some(range) = rest {
            let direction = Direction::Forward;
            let scanned = store.scan(tree, &range, direction, Lsn::MAX, PIECE_ROWS, &mut found)?;
            // Under new keys, rows that the transaction has changed are not here at all.
            let kept = self.plan.rekeyed.is_none();
            let is_own = |key: &[u8]| kept && self.plan.except.contains(key);
            let mut others = found.iter().map(|(entry, _)| &entry[columns.len()..]);
            if others.any(|key| !is_own(key)) {
                return Ok(true);
            }
            rest = scanned.rest;
        }
        Ok(false)
    }
}
