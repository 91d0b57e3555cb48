//! An engine that knows what is local, around one that does not.

use std::sync::Arc;

use base::cluster::Administration;
use base::engine::*;
use base::env::BoxFuture;
use base::{Debt, Durability, Lsn, Result, SequenceId, SessionId, Timestamp, TreeId, Xid};

use super::transaction::LocalTransaction;
use super::{Local, FIRST_OID, FIRST_TREE};

/// The engine of a session that has temporary objects.
pub struct LocalEngine {
    inner: Arc<dyn Engine>,
    local: Local,
}

impl LocalEngine {
    /// Around an engine.
    pub fn new(inner: Arc<dyn Engine>, local: Local) -> LocalEngine {
        LocalEngine { inner, local }
    }

    /// Makes an open transaction one that knows what is local.
    pub fn wrap(&self, txn: Box<dyn Transaction>) -> Box<dyn Transaction> {
        Box::new(LocalTransaction::new(txn, self.local.clone()))
    }
}

/// Whether a sequence, or a counter of hidden row numbers, is local.
fn is_local(sequence: SequenceId) -> bool {
    let oids = u64::from(FIRST_OID)..1 << 32;
    sequence.0 >= FIRST_TREE.0 || oids.contains(&sequence.0)
}

impl Engine for LocalEngine {
    fn begin(&self, options: TxnOptions) -> Result<Box<dyn Transaction>> {
        Ok(self.wrap(self.inner.begin(options)?))
    }

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
            return self.inner.advance(sequence, count);
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
            return self.inner.next_values(sequence, spec, count);
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
            return self.inner.set_sequence(sequence, to);
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
            return self.inner.sequence_position(sequence, spec);
        }
        let known = self.local.inner.lock().positions.get(&sequence).copied();
        let fresh = SequencePosition {
            last: spec.begins_at,
            called: false,
        };
        Ok((known.unwrap_or(fresh), 0, Debt::NONE))
    }

    fn catalog_version(&self) -> CatalogVersion {
        let mut version = self.inner.catalog_version();
        // Far above what the engine counts, so that no two states have one number.
        let own = self.local.inner.lock().generation;
        version.generation = version.generation.wrapping_add(own << 40);
        version
    }

    fn is_settled(&self, debt: &Debt, durability: Durability) -> bool {
        self.inner.is_settled(debt, durability)
    }

    fn settle(&self, debt: Debt, durability: Durability) -> BoxFuture<'static, Result<()>> {
        self.inner.settle(debt, durability)
    }

    fn status(&self) -> ClusterStatus {
        self.inner.status()
    }

    fn configuration(&self) -> Arc<Configuration> {
        self.inner.configuration()
    }

    fn configuration_generation(&self) -> u64 {
        self.inner.configuration_generation()
    }

    fn check_configuration(&self, name: &str, value: &str) -> Result<()> {
        self.inner.check_configuration(name, value)
    }

    fn configured(&self, debt: Debt) -> BoxFuture<'static, Result<()>> {
        self.inner.configured(debt)
    }

    fn session_locks(&self, session: SessionId) -> Result<Box<dyn SessionLocks>> {
        self.inner.session_locks(session)
    }

    fn blockers(&self, session: SessionId) -> Vec<SessionId> {
        self.inner.blockers(session)
    }

    fn snapshot_blockers(&self, session: SessionId) -> Vec<SessionId> {
        self.inner.snapshot_blockers(session)
    }

    fn committed_xid(&self, commit: &Debt) -> Option<Xid> {
        self.inner.committed_xid(commit)
    }

    fn xid_status(&self, xid: Xid) -> Result<Option<XidStatus>> {
        self.inner.xid_status(xid)
    }

    fn flight_outcome(&self, flight: Flight, since: Lsn) -> Result<Option<Xid>> {
        self.inner.flight_outcome(flight, since)
    }

    fn administer(&self, wish: Administration) -> BoxFuture<'static, Result<u64>> {
        self.inner.administer(wish)
    }

    fn lock_infos(&self) -> Vec<LockInfo> {
        self.inner.lock_infos()
    }

    fn is_standby(&self) -> bool {
        self.inner.is_standby()
    }

    fn replayed_until(&self) -> Option<Timestamp> {
        self.inner.replayed_until()
    }

    fn checkpoint(&self) -> BoxFuture<'static, Result<()>> {
        self.inner.checkpoint()
    }

    fn tree_size(&self, tree: TreeId) -> Option<TreeSize> {
        match tree >= FIRST_TREE {
            true => Some(self.local.inner.lock().store.size(tree)),
            false => self.inner.tree_size(tree),
        }
    }

    fn storage(&self) -> Vec<StorageStatus> {
        self.inner.storage()
    }
}
