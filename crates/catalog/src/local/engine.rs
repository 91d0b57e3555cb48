//! An engine that knows what is local, around one that does not.

use std::sync::Arc;

use base::engine::*;
use base::{Debt, Result, SequenceId, TreeId};

use super::transaction::LocalTransaction;
use super::{Local, FIRST_OID, FIRST_TREE};

/// The engine of a session that has temporary objects.
pub struct LocalEngine {
    inner: Arc<Engine>,
    local: Local,
}

impl LocalEngine {
    /// Around an engine.
    pub fn new(inner: Arc<Engine>, local: Local) -> LocalEngine {
        LocalEngine { inner, local }
    }

    /// The engine of the session: transactions, sequences and sizes know of what is local, and
    /// nothing else does.
    pub fn to_engine(self: &Arc<LocalEngine>) -> Engine {
        Engine {
            transactions: self.clone(),
            sequences: self.clone(),
            storage: self.clone(),
            ..Engine::clone(&self.inner)
        }
    }

    /// Makes an open transaction one that knows what is local.
    pub fn wrap(&self, txn: Box<dyn Transaction>) -> Box<dyn Transaction> {
        Box::new(LocalTransaction::new(txn, self.local.clone()))
    }
}

/// From which bit on the generation of a catalog counts changes of its local part.
const OWN_GENERATION: u32 = 40;

/// Whether a sequence, or a counter of hidden row numbers, is local.
fn is_local(sequence: SequenceId) -> bool {
    let oids = u64::from(FIRST_OID)..1 << 32;
    sequence.0 >= FIRST_TREE.0 || oids.contains(&sequence.0)
}

impl Transactions for LocalEngine {
    fn begin(&self, options: TxnOptions) -> Result<Box<dyn Transaction>> {
        Ok(self.wrap(self.inner.transactions.begin(options)?))
    }

    fn catalog_version(&self) -> CatalogVersion {
        let mut version = self.inner.transactions.catalog_version();
        // Far above what the engine counts, so that no two states have one number.
        let own = self.local.inner.lock().changes.generation;
        version.generation = version.generation.wrapping_add(own << OWN_GENERATION);
        version
    }

    fn catalog_changes(&self, since: CatalogVersion) -> Option<CatalogChanges> {
        let shared = CatalogVersion {
            generation: since.generation & ((1 << OWN_GENERATION) - 1),
            lsn: since.lsn,
        };
        let mut found = self.inner.transactions.catalog_changes(shared)?;
        let local = self.local.inner.lock();
        let own = local.changes.since(since.generation >> OWN_GENERATION)?;
        found.keys.extend(own.cloned());
        let generation = local.changes.generation << OWN_GENERATION;
        found.to.generation = found.to.generation.wrapping_add(generation);
        Some(found)
    }
}

impl Sequences for LocalEngine {
    fn advance(&self, sequence: SequenceId, count: u64) -> Result<(u64, Debt)> {
        let mut local = self.local.inner.lock();
        if local.making == Some(true) {
            if let Some(number) = crate::layout::local_number(sequence, |counter| match counter {
                crate::layout::Counter::Oids => {
                    local.next_oid += 1;
                    u64::from(FIRST_OID + local.next_oid)
                }
                crate::layout::Counter::Trees => {
                    local.next_tree += 1;
                    FIRST_TREE.0 + local.next_tree
                }
            }) {
                return Ok((number, Debt::NONE));
            }
        }
        if !is_local(sequence) {
            drop(local);
            return self.inner.sequences.advance(sequence, count);
        }
        let next = local.counters.entry(sequence).or_insert(1);
        *next += count;
        Ok((*next - count, Debt::NONE))
    }

    fn next_values(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
        count: u64,
    ) -> Result<(SequenceValues, Debt)> {
        if !is_local(sequence) {
            return self.inner.sequences.next_values(sequence, spec, count);
        }
        let (at, _, debt) = self.sequence_position(sequence, spec)?;
        let Some(first) = spec.next(at) else {
            return Ok((SequenceValues { first: 0, count: 0 }, debt));
        };
        let count = count.min(spec.room(first)).max(1);
        let last = spec.after(first, count - 1);
        self.set_sequence(sequence, SequencePosition { last, called: true })?;
        Ok((SequenceValues { first, count }, debt))
    }

    fn set_sequence(&self, sequence: SequenceId, to: SequencePosition) -> Result<Debt> {
        if !is_local(sequence) {
            return self.inner.sequences.set_sequence(sequence, to);
        }
        self.local.inner.lock().positions.insert(sequence, to);
        Ok(Debt::NONE)
    }

    fn sequence_position(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
    ) -> Result<(SequencePosition, u64, Debt)> {
        if !is_local(sequence) {
            return self.inner.sequences.sequence_position(sequence, spec);
        }
        let known = self.local.inner.lock().positions.get(&sequence).copied();
        let fresh = SequencePosition {
            last: spec.begins_at,
            called: false,
        };
        Ok((known.unwrap_or(fresh), 0, Debt::NONE))
    }
}

impl StorageMonitor for LocalEngine {
    fn tree_size(&self, tree: TreeId) -> Option<TreeSize> {
        match tree >= FIRST_TREE {
            true => Some(self.local.inner.lock().store.size(tree)),
            false => self.inner.storage.tree_size(tree),
        }
    }

    fn storage(&self) -> Vec<StorageStatus> {
        self.inner.storage.storage()
    }
}
