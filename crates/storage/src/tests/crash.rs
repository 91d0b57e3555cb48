//! Everything that can go wrong with a disk, at every place where it can.
//!
//! A small workload, log and trees together, as a group of one node has them: rows come, change
//! and go, pages split and merge, old versions are kept until they are spilled, pages leave memory,
//! trees are made and dropped, checkpoints are written beside all that. It changes files some
//! hundred times, and always in the same way. So each test runs it again and again, and lets
//! something go wrong at the first change, at the second, and so on:
//!
//! ```text
//!   run to change 17 ── power fails ── what was not synced is lost, kept or torn ── open, replay
//!                                       what was acknowledged is there, and is sound
//! ```

use std::pin::Pin;
use std::task::Poll;

use super::*;
use crate::log::{self, Log, LogEntry, LogOptions};
use base::{Error, Term};

/// Records of the workload.
const RECORDS: u64 = 160;

/// Bits that flip in each file, spread over what is used of it.
const FLIPS: usize = 300;

/// An old snapshot holds versions back from the first of these to the second.
const SNAPSHOT: (u64, u64) = (8, 110);

const OTHER: TreeId = TreeId(20_001);
const LATER: TreeId = TreeId(20_002);

type Rows = BTreeMap<(TreeId, Key), Vec<u8>>;

/// What the record of an LSN does.
#[derive(Clone, Default)]
struct Record {
    created: Vec<TreeId>,
    dropped: Vec<TreeId>,
    rows: Vec<(TreeId, Key, Option<Vec<u8>>)>,
}

/// The records, and the rows after each.
struct Course {
    records: Vec<Record>,
    rows: Vec<Rows>,
}

fn course() -> Course {
    let mut random = Random::new(11);
    let mut records = vec![Record::default()];
    let mut rows: Vec<Rows> = vec![Rows::new()];
    for lsn in 1..=RECORDS {
        let mut now = rows[rows.len() - 1].clone();
        let mut record = Record::default();
        match lsn {
            1 => record.created = vec![T, OTHER],
            75 => (record.dropped, record.created) = (vec![OTHER], vec![LATER]),
            _ => {}
        }
        now.retain(|(tree, _), _| !record.dropped.contains(tree));
        let tree = if lsn < 75 { OTHER } else { LATER };
        let tree = if lsn % 4 == 3 { tree } else { T };
        let mut write = |tree: TreeId, key: Key, row: Option<Vec<u8>>| {
            if row.is_some() || now.contains_key(&(tree, key.clone())) {
                match &row {
                    Some(row) => drop(now.insert((tree, key.clone()), row.clone())),
                    None => drop(now.remove(&(tree, key.clone()))),
                }
                record.rows.push((tree, key, row));
            }
        };
        for _ in 0..14 {
            let key = format!("{:03}", random.below(120)).into_bytes();
            let long = if random.one_in(40) { 9_000 } else { 250 };
            write(tree, key, Some(vec![lsn as u8; long + random.below(60)]));
        }
        // Leaves become empty, one after the other.
        let from = (lsn as usize * 17) % 120;
        for number in from..from + 12 {
            write(tree, format!("{number:03}").into_bytes(), None);
        }
        records.push(record);
        rows.push(now);
    }
    Course { records, rows }
}

/// A node: a log, trees, and what is under way.
struct Node {
    env: Arc<TestEnv>,
    log: Arc<Log>,
    store: Arc<Store>,
    writing: Option<Pin<Box<dyn Future<Output = Result<bool>>>>>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.env.end();
    }
}

impl Node {
    fn open(env: &Arc<TestEnv>, course: &Course) -> Result<Node> {
        let options = LogOptions {
            segment_bytes: 6 << 10,
            ..LogOptions::new(OWNER)
        };
        let (log, _) = block_on(Log::open(env.clone(), "g1/log", options))?;
        let options = StoreOptions {
            owner: OWNER,
            room: Room::of(10 * 8_192),
        };
        let store = block_on(Store::open(env.clone(), "g1", options))?;
        let mut node = Node {
            env: env.clone(),
            log,
            store,
            writing: None,
        };
        let after = node.store.applied();
        let end = node.log.last().lsn.next();
        for entry in node.log.entries(after.next(), end, usize::MAX)? {
            node.apply(course, entry.lsn.0)?;
        }
        assert_eq!(node.store.applied(), node.log.last().lsn.max(after));
        Ok(node)
    }

    fn apply(&mut self, course: &Course, lsn: u64) -> Result<()> {
        let record = &course.records[lsn as usize];
        let lsn = Lsn(lsn);
        let mut dropped = record.dropped.iter();
        dropped.try_for_each(|tree| self.store.drop_tree(lsn, *tree))?;
        let mut created = record.created.iter();
        created.try_for_each(|tree| self.store.create_tree(lsn, *tree))?;
        self.store.apply(lsn, &borrowed(&record.rows))
    }

    /// One record; tells up to where everything is acknowledged.
    fn step(&mut self, course: &Course, lsn: u64, acknowledged: &mut u64) -> Result<()> {
        let data = vec![lsn as u8; 100 + 7 * lsn as usize % 300];
        block_on(self.log.reserve(data.len() as u64 + 2_048))?;
        let entry = LogEntry {
            term: Term(1),
            lsn: Lsn(lsn),
            kind: 1,
            data,
        };
        self.log.append(vec![entry], None)?;
        self.apply(course, lsn)?;
        self.log.write()?;
        if lsn % 3 == 0 {
            *acknowledged = block_on(self.log.sync())?.lsn.0;
        }
        let held = lsn >= SNAPSHOT.0 && lsn < SNAPSHOT.1;
        let horizon = if held {
            SNAPSHOT.0
        } else {
            lsn.saturating_sub(4)
        };
        self.store.release_in_memory(Lsn(horizon), 200)?;
        self.env.run_tasks();
        if lsn % 10 == 5 {
            let store = self.store.clone();
            store.start_checkpoint(lsn.to_be_bytes().to_vec())?;
            self.writing = Some(Box::pin(async move { store.write_checkpoint(25).await }));
        }
        self.go_on()
    }

    /// Lets the checkpoint go on for a little.
    fn go_on(&mut self) -> Result<()> {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            let Some(writing) = &mut self.writing else {
                break;
            };
            if let Poll::Ready(done) = writing.as_mut().poll(&mut cx) {
                self.writing = None;
                match done {
                    Err(error) if error.state() == SqlState::DISK_FULL => {}
                    done => drop(done?),
                }
            }
        }
        let pending = self.store.pending_checkpoint();
        if let Some((lsn, true)) = pending.filter(|(lsn, _)| *lsn <= self.log.durable().lsn) {
            if block_on(self.store.publish_checkpoint())? {
                self.log.compact(lsn)?;
            }
        }
        Ok(())
    }

    fn run(&mut self, course: &Course, from: u64, acknowledged: &mut u64) -> Result<()> {
        (from..=RECORDS).try_for_each(|lsn| self.step(course, lsn, acknowledged))
    }

    /// Reads everything.
    fn rows(&self) -> Result<Rows> {
        let mut rows = Rows::new();
        let mut batch = RowBatch::default();
        for tree in [T, OTHER, LATER] {
            let mut rest = Some(KeyRange::all());
            while let Some(range) = rest {
                let at = self.store.applied();
                let forward = Direction::Forward;
                let scanned = self.store.scan(tree, &range, forward, at, 50, &mut batch)?;
                let found = batch.iter();
                rows.extend(found.map(|(key, row)| ((tree, key.to_vec()), row.to_vec())));
                rest = scanned.rest;
            }
        }
        Ok(rows)
    }

    /// What is read is what should be there, and everything is sound, also as a checkpoint.
    fn is_sound(&mut self, course: &Course, context: &str) {
        let lsn = self.store.applied().0;
        let same = self.rows().unwrap() == course.rows[lsn as usize];
        assert!(same, "{context}: other rows as of {lsn}");
        let none = &mut |_: TreeId, _: &[u8], _: &[u8]| Ok(());
        self.store.check_trees(none).unwrap();
        block_on(self.log.flush()).unwrap();
        checkpoint(&self.store);
        let report = check(&*self.env.disk, "g1", OWNER, none).unwrap();
        assert_eq!(report.info.lsn, Lsn(lsn), "{context}");
        log::check(&*self.env.disk, "g1/log", OWNER).unwrap();
    }
}

/// Opens what a crash has left: all that was acknowledged is there.
fn recover(env: &Arc<TestEnv>, course: &Course, acknowledged: u64, context: &str) -> Node {
    let mut node = Node::open(&env.restart(), course)
        .unwrap_or_else(|error| panic!("{context}: not opened: {error}"));
    let found = node.store.applied().0;
    assert!(
        found >= acknowledged,
        "{context}: {found} of {acknowledged} acknowledged"
    );
    node.is_sound(course, context);
    node
}

/// Runs without a fault; what was done, and that the workload is worth it.
fn sound_run(course: &Course) -> (Arc<TestEnv>, crate::testing::Done) {
    let env = TestEnv::new();
    let mut node = Node::open(&env, course).unwrap();
    let mut spilled = 0;
    for lsn in 1..=RECORDS {
        node.step(course, lsn, &mut 0).unwrap();
        spilled = spilled.max(node.store.undo_stats().spilled);
    }
    let stats = node.store.cache_stats();
    assert!(stats.writes > 20, "{stats:?}");
    assert!(spilled > 0, "nothing was spilled");
    assert!(node.store.checkpoint_lsn() > Lsn(30));
    assert!(node.log.base().lsn > Lsn(10), "{:?}", node.log.base());
    let done = env.disk.done();
    node.is_sound(course, "no fault");
    (env, done)
}

#[test]
fn power_fails_at_every_change() {
    let course = course();
    let (_, done) = sound_run(&course);
    assert!(done.changes > 200, "{done:?}");
    let mut random = Random::new(1);
    for change in 1..=done.changes {
        let context = format!("power off at change {change}");
        let env = TestEnv::new();
        env.may_stop();
        env.disk.power_off_at(change);
        let mut acknowledged = 0;
        let result =
            Node::open(&env, &course).and_then(|mut node| node.run(&course, 1, &mut acknowledged));
        assert!(result.is_err() || env.has_stopped(), "{context}: goes on");
        env.disk.power_off_at(0);
        env.disk.crash(&mut random);
        let mut node = recover(&env, &course, acknowledged, &context);
        if change % 8 == 0 {
            let from = node.store.applied().0 + 1;
            node.run(&course, from, &mut acknowledged).unwrap();
            node.env.disk.crash(&mut random);
            drop(recover(&node.env, &course, acknowledged, &context));
        }
    }
}

/// A sync that fails stops the node, whatever it was for: nothing is tried again.
#[test]
fn every_sync_fails_once() {
    let course = course();
    let (_, done) = sound_run(&course);
    let mut random = Random::new(2);
    for sync in 0..done.syncs {
        let context = format!("sync {sync} fails");
        let env = TestEnv::new();
        env.may_stop();
        env.disk.fail_sync_after(sync);
        let mut acknowledged = 0;
        let result =
            Node::open(&env, &course).and_then(|mut node| node.run(&course, 1, &mut acknowledged));
        let stops = |error: &Error| error.class() == ErrorClass::Node;
        // A segment that was made ahead of need is only tried again.
        let ahead = result.is_ok();
        assert!(
            ahead || result.as_ref().is_err_and(stops),
            "{context}: {result:?}"
        );
        env.disk.crash(&mut random);
        drop(recover(&env, &course, acknowledged, &context));
    }
}

/// From any point on there is no space, for a while: writers are told so, what is there is read,
/// and once there is space everything goes on.
#[test]
fn the_disk_is_full_from_every_point_on() {
    let course = course();
    let (_, done) = sound_run(&course);
    assert!(done.growths > 10, "{done:?}");
    let mut refused = 0;
    for growth in 1..=done.growths {
        let context = format!("full from growth {growth} on");
        let env = TestEnv::new();
        env.disk.full_at(growth);
        let mut acknowledged = 0;
        let node = Node::open(&env, &course);
        let mut node = match node {
            Ok(node) => node,
            Err(error) => {
                assert_eq!(error.state(), SqlState::DISK_FULL, "{context}: {error}");
                env.disk.full_at(0);
                Node::open(&env, &course).unwrap()
            }
        };
        for lsn in 1..=RECORDS {
            if let Err(error) = node.step(&course, lsn, &mut acknowledged) {
                assert_eq!(error.state(), SqlState::DISK_FULL, "{context}: {error}");
                assert_ne!(error.class(), ErrorClass::Node, "{context}: {error}");
                assert_eq!(node.store.applied(), Lsn(lsn - 1), "{context}");
                let same = node.rows().unwrap() == course.rows[lsn as usize - 1];
                assert!(same, "{context}: other rows");
                refused += 1;
                env.disk.full_at(0);
                node.step(&course, lsn, &mut acknowledged).unwrap();
            }
        }
        env.disk.full_at(0);
        while node.writing.is_some() || node.store.pending_checkpoint().is_some() {
            block_on(node.log.flush()).unwrap();
            node.go_on().unwrap();
        }
        node.is_sound(&course, &context);
    }
    assert!(refused > 3, "{refused} refused");
}

/// One bit is wrong somewhere: that is found, or it does not matter. There is no wrong answer.
#[test]
fn no_bit_that_flips_makes_a_wrong_answer() {
    let course = course();
    let (env, _) = sound_run(&course);
    let files = env.disk.files();
    let (mut found, mut harmless) = (0, 0);
    for (name, content) in &files {
        let used = content.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        for offset in (0..used).step_by(used / FLIPS + 1) {
            // What is read changes files.
            let env = env.copy();
            env.may_stop();
            env.disk.damage(name, offset);
            let context = format!("\"{name}\" at {offset}");
            let read = Node::open(&env, &course).and_then(|node| {
                let rows = node.rows()?;
                Ok((node.store.applied().0, rows))
            });
            match read {
                Ok((lsn, rows)) => {
                    harmless += 1;
                    // Whatever is read is right, and nothing is missing.
                    assert_eq!(lsn, RECORDS, "{context}");
                    assert!(rows == course.rows[lsn as usize], "{context}: other rows");
                }
                Err(error) => {
                    env.end();
                    found += 1;
                    assert_eq!(error.class(), ErrorClass::Node, "{context}: {error}");
                }
            }
        }
    }
    assert!(found > 100, "{found} found, {harmless} harmless");
}
