//! Comparing what the replicas of a group hold while they work: range by range, in the background.
//!
//! The leader picks the position that it has applied last and asks every replica what the rows of a
//! range of keys add up to *there*. No replica can have gone past it for good: the question leaves
//! the leader before anything does that would tell of a higher commit index, and frames arrive in
//! order. So each takes a snapshot at that position, now or as soon as it has applied as much, and
//! sums up what that shows at leisure:
//!
//! ```text
//! n1 (leads)   applied 95 ── CheckRange (3, 95), tree 7 from k ──► n2, n3
//!              sums up 1,000 rows: 0x51, up to p
//! n2           applied 93 … 95: a snapshot at 95                   RangeSum 0x51, up to p ──► n1
//! n3           applied 95: a snapshot at 95                        RangeSum 0x77, up to p ──► n1
//! n1           n3 differs from n1 and n2: an alarm there, on n2 and n3; goes on at p, at LSN 103
//! ```
//! The first range of each comparison is the list of trees. A position is one of a term, so a replica
//! whose log is cut, or that is led by another meanwhile, has nothing to say, and is asked again.
//!
//! # What it costs
//! Nothing while none is under way but a look each second. While one is, every replica sums up at
//! most [`ROWS_MAX`] rows or [`BYTES_MAX`] bytes at a time and then rests for [`REST_SHARE`] times as long
//! as that took the leader, and for [`REST_MIN`] at least: 50,000 rows a second and a twentieth of one
//! core at most. Old versions are kept for one range's time, not for the whole comparison.
//!
//! # What it leaves out
//! A replica that cannot be reached, or has not answered for [`TRIES`] ranges' time, is not compared
//! further until the next comparison. Pages that nothing leads to, and the log, are not looked at:
//! those are for `quorate check`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::engine::{Consistency, Direction, Inconsistency, RowBatch};
use base::env::{sleep, Instant, Severity};
use base::sync::{Event, Mutex};
use base::turns::give_way;
use base::{ErrorClass, Key, KeyRange, NodeId, Position, Result, Term, TreeId};

use super::core::Core;
use super::follow::StandbyView;
use super::{not_leader, within, Group};
use crate::contents::{RangeSum, Sum};
use crate::frame::Frame;
use crate::history::agreeing;
use crate::txn::View;

/// Rows of a range at most.
const ROWS_MAX: u64 = 1_000;

/// A range ends when it has so many bytes of rows.
const BYTES_MAX: usize = 1 << 20;

/// Rows that are read in one turn.
const ROWS_PER_TURN: usize = 128;

/// After each range everybody rests for so many times as long as it took …
const REST_SHARE: u32 = 19;

/// … and at least so long.
const REST_MIN: Duration = Duration::from_millis(20);

/// A replica that has not answered by then is asked again, at a newer position …
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// … as often as this, and then left out.
const TRIES: usize = 3;

/// How often it is looked whether a comparison is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Differences that are remembered; a comparison ends when it has found as many.
pub const DIFFERENCES_MAX: usize = 100;

/// The list of trees, which is no tree.
const TREES: TreeId = TreeId(0);

/// A range that somebody wants summed up.
#[derive(Debug)]
struct Wanted {
    at: Position,
    by: NodeId,
    tree: TreeId,
    from: Key,
}

/// What other replicas have answered.
#[derive(Debug, Default)]
struct Answers {
    at: Position,
    sums: BTreeMap<NodeId, RangeSum>,
}

/// What a replica knows of comparisons.
#[derive(Debug, Default)]
pub struct Comparing {
    known: Mutex<Consistency>,
    /// What is to be summed up once that much is applied, and at which LSN that is; 0 for none.
    wanted: Mutex<Option<Wanted>>,
    wanted_lsn: AtomicU64,
    /// What can be summed up now.
    ready: Mutex<Option<(Wanted, StandbyView)>>,
    answers: Mutex<Answers>,
    /// How many comparisons were asked for, and how many of them have ended.
    asked: AtomicU64,
    ended: AtomicU64,
    pub(super) changed: Event,
}

/// What one range has shown.
struct Compared {
    rows: u64,
    difference: Option<Inconsistency>,
    /// Where the next begins.
    next: Option<(TreeId, Key)>,
    /// How long it took here.
    took: Duration,
}

impl Group {
    /// What is known of what the replicas hold.
    pub fn consistency(&self) -> Consistency {
        self.comparing.known.lock().clone()
    }

    /// Compares what the replicas hold, now: in how many ranges they differ.
    ///
    /// # Errors
    /// [`not_leader`].
    pub(super) async fn check_consistency(&self) -> Result<u64> {
        let term = self.leading().ok_or_else(not_leader)?;
        let number = self.comparing.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.comparing.changed.notify_all();
        loop {
            if self.leading() != Some(term) || self.is_over() {
                return Err(not_leader());
            }
            let ended = &self.comparing.ended;
            if ended.load(Ordering::SeqCst) >= number {
                return Ok(self.consistency().inconsistencies.len() as u64);
            }
            let news = self.comparing.changed.until(|| {
                let is_ended = ended.load(Ordering::SeqCst) >= number;
                is_ended.then_some(())
            });
            // The end of leadership is no news here.
            within(&*self.env, LOOK_EVERY, news).await;
        }
    }

    // ---- Every replica ----

    /// The leader wants a range summed up at a position.
    pub(super) fn take_wanted(self: &Group, by: NodeId, at: Position, tree: TreeId, from: Key) {
        let mut core = self.lock();
        if core.failed || core.deaf || core.consensus.leader() != Some(by) {
            return;
        }
        let wanted = Wanted { at, by, tree, from };
        if core.applied.lsn < at.lsn {
            *self.comparing.wanted.lock() = Some(wanted);
            self.comparing.wanted_lsn.store(at.lsn.0, Ordering::SeqCst);
            return;
        }
        // What a snapshot there shows is still kept, unless more is known to be committed.
        let is_kept = core.applied == at || core.consensus.committed() <= at.lsn;
        if is_kept && self.log.term(at.lsn) == Some(at.term) {
            self.begin_sum(&mut core, wanted);
        }
    }

    /// An entry was applied: perhaps the one that a range is to be summed up at.
    pub(super) fn note_applied_for_comparing(&self, core: &mut Core) {
        let comparing = &self.comparing;
        if comparing.wanted_lsn.load(Ordering::Relaxed) != core.applied.lsn.0 {
            return;
        }
        comparing.wanted_lsn.store(0, Ordering::SeqCst);
        let wanted = comparing.wanted.lock().take();
        if let Some(wanted) = wanted.filter(|wanted| wanted.at == core.applied) {
            self.begin_sum(core, wanted);
        }
    }

    fn begin_sum(&self, core: &mut Core, wanted: Wanted) {
        if let Some(view) = self.view_at(core, wanted.at) {
            // Whoever asked before does not wait any more.
            *self.comparing.ready.lock() = Some((wanted, view));
            self.comparing.changed.notify_all();
        }
    }

    /// The task that sums up what the leader asks for.
    pub(super) async fn sum_up(self: Arc<Self>) {
        while !self.is_over() {
            let ready = &self.comparing.ready;
            let work = || {
                let work = ready.lock().take().map(Some);
                work.or_else(|| self.is_over().then_some(None))
            };
            let Some((wanted, view)) = self.comparing.changed.until(work).await else {
                return;
            };
            match sum(&view, wanted.tree, &wanted.from).await {
                Ok(sum) => {
                    let at = wanted.at;
                    let frame = Frame::RangeSum { at, sum }.encode(self.config.group);
                    self.transport.send(wanted.by, frame);
                    self.transport.flush();
                }
                Err(error) if error.class() == ErrorClass::Node => {
                    return self.fail(&mut self.lock(), &error);
                }
                // The log was cut meanwhile.
                Err(_) => {}
            }
        }
    }

    /// The leader says what the replicas hold.
    pub(super) fn take_consistency(&self, from: NodeId, told: Consistency) {
        if self.leader() == Some(from) {
            self.know_consistency(told);
        }
    }

    fn know_consistency(&self, now: Consistency) {
        let before = std::mem::replace(&mut *self.comparing.known.lock(), now.clone());
        let directory = self.directory();
        let name = |node: NodeId| match directory.member(node) {
            Some(member) => member.name.to_string(),
            None => format!("node {node}"),
        };
        for one in &now.inconsistencies {
            if !before.inconsistencies.iter().any(|old| old.is_like(one)) {
                let message = format!("replicas differ: {}", one.words(name));
                self.env.log(Severity::Error, &message);
            }
        }
    }

    // ---- The leader ----

    /// The task that compares, for as long as this node leads, when that is due or asked for.
    pub(super) async fn compare_replicas(self: Arc<Self>) {
        let every = self.config.settings.consistency_check;
        let (asked, ended) = (&self.comparing.asked, &self.comparing.ended);
        let is_asked = || asked.load(Ordering::SeqCst) > ended.load(Ordering::SeqCst);
        let mut last: Instant = self.env.now();
        while !self.is_over() {
            let news = || (is_asked() || self.is_over()).then_some(());
            within(&*self.env, LOOK_EVERY, self.comparing.changed.until(news)).await;
            let is_due = every.is_some_and(|every| self.env.now().since(last) >= every);
            let served = asked.load(Ordering::SeqCst);
            match self.leading() {
                Some(term) if is_due || is_asked() => {
                    self.compare_all(term).await;
                    last = self.env.now();
                }
                _ => {}
            }
            // Who asked a node that leads no more is told so.
            ended.fetch_max(served, Ordering::SeqCst);
            self.comparing.changed.notify_all();
        }
    }

    async fn compare_all(self: &Arc<Self>, term: Term) {
        let before = self.consistency();
        let mut known = Consistency {
            is_running: true,
            rows: 0,
            ..before.clone()
        };
        self.tell_consistency(&known);
        let mut found: Vec<Inconsistency> = Vec::new();
        let mut absent = BTreeSet::new();
        let mut next = Some((TREES, Key::new()));
        while let Some((tree, from)) = next.take() {
            let compared = match self.compare_range(term, tree, &from, &mut absent).await {
                Some(compared) => compared,
                None => {
                    known.is_running = false;
                    known.rows = before.rows;
                    return self.know_consistency(known);
                }
            };
            known.rows += compared.rows;
            if let Some(difference) = compared.difference {
                if !known
                    .inconsistencies
                    .iter()
                    .any(|one| one.is_like(&difference))
                {
                    known.inconsistencies.push(difference.clone());
                    self.tell_consistency(&known);
                }
                found.push(difference);
            }
            if found.len() < DIFFERENCES_MAX {
                next = compared.next;
            }
            sleep(&*self.env, (compared.took * REST_SHARE).max(REST_MIN)).await;
        }
        let rows = known.rows;
        let message = match found.len() {
            0 => format!("compared {rows} rows and entries of all replicas: they hold the same"),
            ranges => {
                format!("compared {rows} rows and entries: replicas differ in {ranges} ranges")
            }
        };
        self.env.log(Severity::Info, &message);
        self.tell_consistency(&Consistency {
            is_running: false,
            checked_at: Some(self.env.wall_clock()),
            rows,
            inconsistencies: found,
        });
    }

    /// Lets every replica know.
    fn tell_consistency(&self, now: &Consistency) {
        let frame = Frame::Consistency(now.clone()).encode(self.config.group);
        for member in &self.directory().members {
            if member.node != self.config.node {
                self.transport.send(member.node, frame.clone());
            }
        }
        self.transport.flush();
        self.know_consistency(now.clone());
    }

    /// Compares one range; none when this node leads no more in that term.
    async fn compare_range(
        self: &Arc<Self>,
        term: Term,
        tree: TreeId,
        from: &Key,
        absent: &mut BTreeSet<NodeId>,
    ) -> Option<Compared> {
        for attempt in 1.. {
            let (view, others) = self.ask_for_sums(term, tree, from, absent)?;
            let begun = self.env.now();
            let own = match sum(&view, tree, from).await {
                Ok(own) => own,
                Err(error) if error.class() == ErrorClass::Node => {
                    self.fail(&mut self.lock(), &error);
                    return None;
                }
                Err(_) => return None,
            };
            let took = self.env.now().since(begun);
            let all = self.comparing.changed.until(|| {
                let is_all = self.comparing.answers.lock().sums.len() >= others.len();
                (is_all || self.is_over()).then_some(())
            });
            within(&*self.env, ANSWER_MAX, all).await;
            if self.leading() != Some(term) || self.is_over() {
                return None;
            }
            let mut sums = std::mem::take(&mut self.comparing.answers.lock().sums);
            let silent = others.iter().filter(|node| !sums.contains_key(node));
            let silent: BTreeSet<NodeId> = silent.copied().collect();
            if !silent.is_empty() && attempt < TRIES {
                continue;
            }
            absent.extend(silent);
            let next = match &own.end {
                Some(key) => Some((tree, key.clone())),
                None => view.tree_after(tree).map(|tree| (tree, Key::new())),
            };
            let rows = own.sum.rows;
            sums.insert(self.config.node, own);
            let position = view.position();
            return Some(Compared {
                rows,
                difference: judge(&sums, tree, from, position),
                next,
                took,
            });
        }
        None
    }

    /// Takes a snapshot, and asks others for what it is at theirs.
    fn ask_for_sums(
        self: &Arc<Self>,
        term: Term,
        tree: TreeId,
        from: &Key,
        absent: &BTreeSet<NodeId>,
    ) -> Option<(StandbyView, Vec<NodeId>)> {
        let members = self.directory();
        let members = members.members.iter().map(|member| member.node);
        let others: Vec<NodeId> = members
            .filter(|node| *node != self.config.node && !absent.contains(node))
            .filter(|node| self.transport.is_connected(*node))
            .collect();
        let mut core = self.lock();
        if core.failed || core.deaf || core.led != Some(term) {
            return None;
        }
        let at = core.applied;
        let view = self.view_at(&core, at)?;
        *self.comparing.answers.lock() = Answers {
            at,
            sums: BTreeMap::new(),
        };
        let frame = Frame::CheckRange {
            at,
            tree,
            from: from.clone(),
        };
        let frame = frame.encode(self.config.group);
        // With the latch held: nothing that tells of more goes before it.
        for other in &others {
            self.transport.send(*other, frame.clone());
        }
        core.after.send = true;
        Some((view, others))
    }

    /// A replica answers.
    pub(super) fn take_sum(&self, from: NodeId, at: Position, sum: RangeSum) {
        let mut answers = self.comparing.answers.lock();
        if answers.at == at {
            answers.sums.insert(from, sum);
            drop(answers);
            self.comparing.changed.notify_all();
        }
    }
}

/// Who differs, if anybody does.
fn judge(
    sums: &BTreeMap<NodeId, RangeSum>,
    tree: TreeId,
    from: &Key,
    at: Position,
) -> Option<Inconsistency> {
    let all: Vec<(&NodeId, &RangeSum)> = sums.iter().collect();
    let parties = agreeing(all.len(), |a, b| all[a].1 == all[b].1);
    if parties.len() < 2 {
        return None;
    }
    let is_majority = parties[0].len() > all.len() / 2;
    let agreeing = &parties[0][..if is_majority { parties[0].len() } else { 0 }];
    let agreeing: Vec<NodeId> = agreeing.iter().map(|place| *all[*place].0).collect();
    let nodes = all.iter().map(|(node, _)| **node);
    let deviating = nodes.filter(|node| !agreeing.contains(node)).collect();
    let ends = all.iter().map(|(_, sum)| sum.end.clone());
    // No end is the farthest.
    let to = ends.reduce(|one, other| one.zip(other).map(|(one, other)| one.max(other)));
    Some(Inconsistency {
        tree,
        from: from.clone(),
        to: to.flatten(),
        lsn: at.lsn,
        deviating,
        agreeing,
    })
}

/// Sums up a range of a tree from a key on, as far as a range goes.
async fn sum(view: &StandbyView, tree: TreeId, from: &Key) -> Result<RangeSum> {
    let mut sum = Sum::default();
    if tree == TREES {
        for tree in view.trees() {
            sum.add(TREES, &tree.0.to_be_bytes(), &[]);
        }
        view.check()?;
        return Ok(RangeSum { sum, end: None });
    }
    let lsn = view.position().lsn;
    let mut range = KeyRange {
        start: from.clone(),
        end: None,
    };
    let (mut bytes, mut batch) = (0, RowBatch::default());
    loop {
        let forward = Direction::Forward;
        let scanned = view.scan(tree, &range, forward, lsn, ROWS_PER_TURN, &mut batch)?;
        for (key, row) in batch.iter() {
            if sum.rows == ROWS_MAX || bytes >= BYTES_MAX {
                let end = Some(key.to_vec());
                return Ok(RangeSum { sum, end });
            }
            sum.add(tree, key, row);
            bytes += key.len() + row.len();
        }
        match scanned.rest {
            Some(rest) => range = rest,
            None => return Ok(RangeSum { sum, end: None }),
        }
        give_way().await;
    }
}

#[cfg(test)]
mod tests {
    use base::Lsn;

    use super::*;

    fn judged(sums: &[(u64, Option<&[u8]>)]) -> Option<Inconsistency> {
        let sum = |(checksum, end): &(u64, Option<&[u8]>)| RangeSum {
            sum: Sum {
                rows: 3,
                checksum: *checksum,
            },
            end: end.map(<[u8]>::to_vec),
        };
        let sums = (1..).map(NodeId).zip(sums.iter().map(sum)).collect();
        let at = Position {
            term: Term(3),
            lsn: Lsn(95),
        };
        judge(&sums, TreeId(7), &vec![4], at)
    }

    #[test]
    fn who_differs_is_named_where_a_majority_agrees() {
        let end = Some(&[9][..]);
        assert_eq!(judged(&[(1, end), (1, end), (1, end)]), None);
        assert_eq!(judged(&[(1, end)]), None);
        let name = |node: NodeId| format!("n{node}");
        for (sums, expected) in [
            (
                &[(1, end), (2, Some(&[8][..])), (1, end)][..],
                "n2 differs from n1 and n3 at LSN 95: tree 7, keys from 04 to before 09",
            ),
            (
                &[(1, end), (1, None)],
                "n1 and n2 differ at LSN 95: tree 7, keys from 04 on",
            ),
            (
                &[(1, end), (2, end), (3, end), (1, end), (1, end)],
                "n2 and n3 differ from n1, n4 and n5 at LSN 95: tree 7, keys from 04 to before 09",
            ),
        ] {
            assert_eq!(judged(sums).expect("a difference").words(name), expected);
        }
    }
}
