//! The serializable transactions of a term and what each has to know of the others.
//!
//! Time is counted in ticks: one for each transaction that begins or ends. A transaction's id is
//! the tick at which it began.
//!
//! A part of a transaction across groups is first [`State::Prepared`], at one LSN, and shown from
//! another LSN on, at which it is resolved. Where the order of commits matters it counts from the
//! first: others may have ended in between, and what comes from that are needless failures at most.
//! Whether it was seen goes by the second.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::{Lsn, Result, SessionId, TreeId};
use raft::planted::{is_planted, Bug};

use super::{failure, SerialId};

/// Committed transactions that are remembered one by one, at most.
pub const FINISHED_MAX: usize = if cfg!(test) { 16 } else { 8_192 };

/// Stands for the oldest committed transactions, when there were too many.
pub const OLD: SerialId = SerialId(0);

/// How far a transaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs, or is about to commit.
    Active,
    /// It is a part of a transaction across groups, whose outcome is not known here yet.
    Prepared,
    /// It has committed and written, at this LSN.
    Wrote(Lsn),
    /// It has committed and written nothing.
    ReadOnly,
}

#[derive(Debug)]
struct Node {
    session: Option<SessionId>,
    /// Declared READ ONLY.
    read_only: bool,
    /// What it sees; until the snapshot is taken, something older.
    snapshot: Lsn,
    /// What it sees above its snapshot: commits across groups.
    also: Vec<Lsn>,
    state: State,
    /// Where it was prepared, if it was.
    prepared: Option<Lsn>,
    /// When it committed.
    ended: u64,
    /// Has written; told before the first write.
    writes: bool,
    /// It must not write: then it would be the first of a dangerous structure.
    must_not_write: bool,
    /// It has failed, whatever its session makes of the error.
    doomed: bool,
    /// Who has read what this one is about to write.
    readers: Vec<SerialId>,
    /// The first commit of those who wrote what this one read without seeing it. For a committed
    /// transaction only commits before its own count.
    out: Option<Lsn>,
    /// For one that is declared READ ONLY: the writers that can still spoil its snapshot.
    pending: BTreeSet<SerialId>,
    /// Its snapshot is spoilt: it might see what fits no order.
    spoilt: bool,
    /// It waits until it knows that its snapshot is safe.
    waits: bool,
    /// Where its marks are, once it has ended.
    trees: Vec<TreeId>,
}

impl Node {
    /// Whether its snapshot shows what was committed at an LSN.
    fn sees(&self, lsn: Lsn) -> bool {
        lsn <= self.snapshot || self.also.contains(&lsn)
    }

    /// Where a commit shown from `lsn` on stands among the others.
    fn place(&self, lsn: Lsn) -> Lsn {
        self.prepared.map_or(lsn, |prepared| prepared.min(lsn))
    }

    /// It has read past a commit.
    fn goes_out_to(&mut self, commit: Lsn) {
        self.out = Some(self.out.map_or(commit, |out| out.min(commit)));
    }
}

/// Whether a snapshot can be read from without any further care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Nothing can go wrong.
    Safe,
    /// Something can.
    Spoilt,
    /// It depends on transactions that still run.
    Unknown,
}

/// What is to be done to marks once the graph's latch is given up.
#[derive(Debug, Default)]
pub struct Leftovers {
    pub forget: Vec<(SerialId, Vec<TreeId>)>,
    pub summarise: Vec<(SerialId, Vec<TreeId>)>,
}

/// The transactions.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: BTreeMap<SerialId, Node>,
    tick: u64,
    active: BTreeSet<SerialId>,
    /// Active and declared READ ONLY, with a snapshot.
    watching: BTreeSet<SerialId>,
    /// Committed, in the order of their ends; without [`OLD`].
    finished: VecDeque<SerialId>,
}

impl Graph {
    fn next_tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    /// A transaction that will take its snapshot at `visible` or later.
    pub fn begin(&mut self, session: Option<SessionId>, read_only: bool, visible: Lsn) -> SerialId {
        let id = SerialId(self.next_tick());
        let node = Node {
            session,
            read_only,
            snapshot: visible,
            also: Vec::new(),
            state: State::Active,
            prepared: None,
            ended: 0,
            writes: false,
            must_not_write: false,
            doomed: false,
            readers: Vec::new(),
            out: None,
            pending: BTreeSet::new(),
            spoilt: false,
            waits: false,
            trees: Vec::new(),
        };
        self.nodes.insert(id, node);
        self.active.insert(id);
        id
    }

    /// The transaction has taken its snapshot, which shows these commits across groups besides. For
    /// one that only reads: whether it is safe.
    pub fn has_snapshot(
        &mut self,
        id: SerialId,
        (snapshot, also): (Lsn, &[Lsn]),
        waits: bool,
    ) -> Result<Safety> {
        let node = self.nodes.get(&id).ok_or_else(crate::group::term_is_over)?;
        let mut pending = BTreeSet::new();
        let mut spoilt = false;
        if node.read_only {
            for (other, node) in &self.nodes {
                match node.state {
                    State::Active if *other != id && !node.read_only => {
                        pending.insert(*other);
                    }
                    State::Wrote(lsn) if lsn > snapshot => {
                        spoilt |= node.out.is_some_and(|out| out <= snapshot);
                    }
                    _ => {}
                }
            }
            self.watching.insert(id);
        }
        let node = self.nodes.get_mut(&id).expect("it was just seen");
        node.snapshot = snapshot;
        node.also = also.to_vec();
        node.pending = pending;
        node.spoilt = spoilt;
        node.waits = waits;
        Ok(self.safety(id))
    }

    /// Lets a transaction see everything up to `to`, as if it had begun there, if nothing that it has
    /// read was written in between; false where something was.
    pub fn move_on(&mut self, id: SerialId, (to, also): (Lsn, &[Lsn])) -> bool {
        let Some(node) = self.nodes.get_mut(&id) else {
            return false;
        };
        assert!(to >= node.snapshot, "back from {} to {to}", node.snapshot);
        let moves = !node.doomed && node.out.is_none_or(|out| out > to);
        if moves {
            node.snapshot = to;
            node.also = also.to_vec();
        }
        moves
    }

    /// Whether a snapshot is safe by now.
    pub fn safety(&self, id: SerialId) -> Safety {
        match self.nodes.get(&id) {
            Some(node) if node.spoilt => Safety::Spoilt,
            Some(node) if node.read_only && node.pending.is_empty() => Safety::Safe,
            _ => Safety::Unknown,
        }
    }

    /// A read met published writes of others.
    ///
    /// # Errors
    /// 40001 when one of them is a pivot, which can no longer fail itself.
    pub fn read_past(&mut self, id: SerialId, writers: &[SerialId]) -> Result<()> {
        for writer in writers.iter().filter(|writer| **writer != id) {
            let Some(reader) = self.nodes.get(&id) else {
                return Err(crate::group::term_is_over());
            };
            let (snapshot, writes) = (reader.snapshot, reader.writes);
            let Some(writer) = self.known(*writer) else {
                continue;
            };
            let lsn = match self.nodes[&writer].state {
                State::Active => {
                    let other = self.nodes.get_mut(&writer).expect("it is known");
                    if other.readers.last() != Some(&id) {
                        other.readers.push(id);
                    }
                    continue;
                }
                State::Prepared => Lsn(u64::MAX),
                // Of many together it is not known which was read past.
                State::Wrote(lsn) if writer == OLD && lsn > snapshot => snapshot.next(),
                State::Wrote(lsn) if writer != OLD && !reader.sees(lsn) => lsn,
                _ => continue,
            };
            let other = &self.nodes[&writer];
            let (first, out) = (other.place(lsn), other.out);
            let reader = self.nodes.get_mut(&id).expect("it was just seen");
            reader.goes_out_to(first);
            let Some(out) = out else { continue };
            if writes || out <= snapshot {
                reader.doomed = true;
                return Err(failure(
                    "Canceled on conflict out to old pivot, during read.",
                ));
            }
            reader.must_not_write = true;
        }
        Ok(())
    }

    /// The transaction is about to write for the first time.
    ///
    /// # Errors
    /// 40001 when it must not.
    pub fn writes(&mut self, id: SerialId) -> Result<()> {
        let node = self.nodes.get_mut(&id);
        let node = node.ok_or_else(crate::group::term_is_over)?;
        node.writes = true;
        if node.must_not_write || node.doomed {
            node.doomed = true;
            return Err(failure(
                "Canceled on conflict out to old pivot, during write.",
            ));
        }
        Ok(())
    }

    /// Whether the transaction has neither been rolled back nor forgotten.
    pub fn knows(&self, id: SerialId) -> bool {
        self.nodes.contains_key(&id)
    }

    /// What stands for a transaction that has left marks. One that was rolled back leaves them a
    /// moment longer than itself, and so does one that has become part of [`OLD`]: which of the two
    /// it was is not known.
    fn known(&self, id: SerialId) -> Option<SerialId> {
        [id, OLD].into_iter().find(|id| self.nodes.contains_key(id))
    }

    /// Whether the transaction would be a pivot if those had read what it writes; `certainly`
    /// counts only those that have committed.
    pub fn is_pivot(&self, id: SerialId, readers: &[SerialId], certainly: bool) -> bool {
        let Some(node) = self.nodes.get(&id) else {
            return false;
        };
        let Some(out) = node.out else {
            return false;
        };
        let known = readers.iter().filter_map(|reader| self.known(*reader));
        let concurrent: Vec<_> = known.filter(|r| self.are_concurrent(id, *r)).collect();
        concurrent
            .iter()
            .filter_map(|reader| self.nodes.get(reader))
            .any(|reader| match reader.state {
                State::Active if certainly || reader.doomed => false,
                State::Active => !reader.read_only || out <= reader.snapshot,
                State::Prepared => true,
                State::Wrote(lsn) => out <= lsn,
                State::ReadOnly => out <= reader.snapshot,
            })
    }

    /// Whether `other` had not ended when `id`, which runs, began to see.
    fn are_concurrent(&self, id: SerialId, other: SerialId) -> bool {
        let (Some(node), Some(other_node)) = (self.nodes.get(&id), self.nodes.get(&other)) else {
            return false;
        };
        id != other
            && match other_node.state {
                State::Active | State::Prepared => true,
                State::Wrote(lsn) => !node.sees(lsn),
                State::ReadOnly => other_node.ended > id.0,
            }
    }

    /// Whether this transaction has read past a commit.
    pub fn has_out(&self, id: SerialId) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.out.is_some())
    }

    /// These have read what the transaction, which has published its writes, is about to write. It
    /// leaves marks in these trees, and no more.
    ///
    /// # Errors
    /// 40001 when the term is over.
    pub fn was_read(
        &mut self,
        id: SerialId,
        readers: Vec<SerialId>,
        trees: Vec<TreeId>,
    ) -> Result<()> {
        let node = self.nodes.get_mut(&id);
        let node = node.ok_or_else(crate::group::term_is_over)?;
        // Some may have been noted already: they met the published writes.
        node.readers.extend(readers);
        node.readers.sort_unstable();
        node.readers.dedup();
        node.trees = trees;
        Ok(())
    }

    /// Whether the transaction may commit now.
    ///
    /// # Errors
    /// 40001 when not.
    pub fn validate(&mut self, id: SerialId) -> Result<()> {
        let node = self.nodes.get(&id).ok_or_else(crate::group::term_is_over)?;
        if node.doomed || node.must_not_write {
            return Err(failure(
                "Canceled on commit attempt with conflict in from prepared pivot.",
            ));
        }
        if self.is_pivot(id, &node.readers, false) {
            let reason = "Canceled on identification as a pivot, during commit attempt.";
            return Err(failure(reason));
        }
        match self.is_read_by_prepared(id) {
            true => Err(failure(
                "Canceled on commit attempt with conflict in from a part that is prepared.",
            )),
            false => Ok(()),
        }
    }

    /// Whether what this one writes was read by a part whose outcome is not known yet.
    pub fn is_read_by_prepared(&self, id: SerialId) -> bool {
        let node = self.nodes.get(&id);
        let mut readers = node.into_iter().flat_map(|node| &node.readers);
        readers.any(|reader| {
            let reader = self.nodes.get(reader).filter(|_| *reader != id);
            let is_prepared = |reader: &Node| reader.state == State::Prepared;
            !is_planted(Bug::ReadsChanged) && reader.is_some_and(is_prepared)
        })
    }

    /// Whether the transaction may be prepared now as a part of one across groups: whatever it has
    /// read is as it was, so it might as well do everything now.
    ///
    /// # Errors
    /// 40001 when not.
    pub fn validate_part(&mut self, id: SerialId) -> Result<()> {
        self.validate(id)?;
        match self.has_out(id) && !is_planted(Bug::ReadsChanged) {
            true => Err(failure(
                "Canceled on commit attempt across groups with conflict out.",
            )),
            false => Ok(()),
        }
    }

    /// The part, which was validated, has its place in the log.
    pub fn prepared(&mut self, id: SerialId, lsn: Lsn) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        node.state = State::Prepared;
        node.prepared = Some(lsn);
        for reader in std::mem::take(&mut node.readers) {
            let reader = self.nodes.get_mut(&reader);
            if let Some(reader) = reader.filter(|reader| reader.state == State::Active) {
                reader.goes_out_to(lsn);
            }
        }
        // It has no conflict out, and never gets one to what is committed before it.
        self.no_longer_pending(id, None);
    }

    /// The transaction, which was validated, has its place in the log; or the part, which was
    /// prepared, is committed there.
    pub fn committed(&mut self, id: SerialId, lsn: Lsn) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        node.state = State::Wrote(lsn);
        let (out, readers) = (node.out, std::mem::take(&mut node.readers));
        for reader in readers {
            if let Some(reader) = self.nodes.get_mut(&reader) {
                // Whoever has a newer snapshot has seen it, although it met it as published.
                if reader.state == State::Active && reader.snapshot < lsn {
                    reader.goes_out_to(lsn);
                }
            }
        }
        self.no_longer_pending(id, out);
        self.ended(id);
    }

    /// The transaction has ended without having written anything; it leaves marks in these trees.
    ///
    /// # Errors
    /// 40001 when it has failed before.
    pub fn committed_read_only(&mut self, id: SerialId, trees: Vec<TreeId>) -> Result<()> {
        let node = self.nodes.get_mut(&id);
        let node = node.ok_or_else(crate::group::term_is_over)?;
        if node.doomed {
            return Err(failure("Canceled on commit attempt."));
        }
        node.state = State::ReadOnly;
        node.trees = trees;
        self.no_longer_pending(id, None);
        self.ended(id);
        Ok(())
    }

    fn ended(&mut self, id: SerialId) {
        let tick = self.next_tick();
        if let Some(node) = self.nodes.get_mut(&id) {
            node.ended = tick;
        }
        self.active.remove(&id);
        self.watching.remove(&id);
        self.finished.push_back(id);
    }

    /// The transaction is rolled back, or needs no more care.
    pub fn forget(&mut self, id: SerialId) {
        self.no_longer_pending(id, None);
        self.active.remove(&id);
        self.watching.remove(&id);
        self.nodes.remove(&id);
    }

    fn no_longer_pending(&mut self, id: SerialId, out: Option<Lsn>) {
        for watcher in &self.watching {
            if let Some(node) = self.nodes.get_mut(watcher) {
                if node.pending.remove(&id) {
                    node.spoilt |= out.is_some_and(|out| out <= node.snapshot);
                }
            }
        }
    }

    /// Takes out whatever no running transaction can meet any more, and too many of the others.
    pub fn sweep(&mut self) -> Leftovers {
        let mut left = Leftovers::default();
        let oldest = self.active.first().map_or(u64::MAX, |id| id.0);
        while let Some(id) = self.finished.front().copied() {
            let is_over = self.nodes.get(&id).is_none_or(|node| node.ended < oldest);
            if !is_over && self.finished.len() <= FINISHED_MAX {
                break;
            }
            self.finished.pop_front();
            let Some(node) = self.nodes.remove(&id) else {
                continue;
            };
            if is_over {
                left.forget.push((id, node.trees));
            } else {
                left.summarise.push((id, node.trees.clone()));
                self.summarise(node);
            }
        }
        if self.nodes.get(&OLD).is_some_and(|old| old.ended < oldest) {
            let old = self.nodes.remove(&OLD).expect("it was just seen");
            left.forget.push((OLD, old.trees));
        }
        left
    }

    /// [`OLD`] becomes what stands for itself and one more: it may have done whatever either did,
    /// at the worst time.
    fn summarise(&mut self, node: Node) {
        let lsn = match node.state {
            State::Wrote(lsn) => lsn,
            _ => node.snapshot,
        };
        let old = self.nodes.entry(OLD).or_insert(Node {
            state: State::Wrote(lsn),
            readers: Vec::new(),
            pending: BTreeSet::new(),
            also: Vec::new(),
            trees: Vec::new(),
            out: None,
            ..node
        });
        old.prepared = [old.prepared, node.prepared].into_iter().flatten().min();
        if let State::Wrote(newest) = &mut old.state {
            *newest = (*newest).max(lsn);
        }
        old.ended = old.ended.max(node.ended);
        old.out = match (old.out, node.out) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        old.trees.extend(node.trees);
        old.trees.sort_unstable();
        old.trees.dedup();
    }

    /// The sessions that one which waits for a safe snapshot waits for.
    pub fn snapshot_blockers(&self, session: SessionId) -> Vec<SessionId> {
        let waiting = self
            .watching
            .iter()
            .filter_map(|id| self.nodes.get(id))
            .find(|node| node.waits && node.session == Some(session));
        let pending = waiting.into_iter().flat_map(|node| &node.pending);
        pending
            .filter_map(|id| self.nodes.get(id)?.session)
            .collect()
    }

    /// Forgets everything: another term has begun. Ticks go on, so no id is used again.
    pub fn clear(&mut self) {
        *self = Graph {
            tick: self.tick,
            ..Graph::default()
        };
    }

    /// How many transactions are remembered.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }
}
