use super::*;
use crate::testing::{block_on, Random, TestEnv};
use base::{ErrorClass, GroupId};
use std::future::Future;
use std::task::{Context, Waker};

const OWNER: Owner = Owner {
    cluster: 7,
    group: GroupId(1),
};

fn options() -> LogOptions {
    LogOptions {
        segment_bytes: 4096,
        cache_bytes: 500,
        ..LogOptions::new(OWNER)
    }
}

fn open(env: &Arc<TestEnv>) -> (Arc<Log>, LogRecovered) {
    try_open(env).unwrap()
}

fn try_open(env: &Arc<TestEnv>) -> Result<(Arc<Log>, LogRecovered)> {
    block_on(Log::open(env.clone(), "log", options()))
}

fn entry(term: u64, lsn: u64, len: usize) -> LogEntry {
    LogEntry {
        term: Term(term),
        lsn: Lsn(lsn),
        kind: (lsn % 3) as u8,
        data: vec![(term * 31 + lsn) as u8; len],
    }
}

fn position(term: u64, lsn: u64) -> Position {
    Position {
        term: Term(term),
        lsn: Lsn(lsn),
    }
}

fn all(log: &Log) -> Vec<LogEntry> {
    let entries = log
        .entries(log.first(), log.last().lsn.next(), usize::MAX)
        .unwrap();
    assert_eq!(entries.len() as u64, log.last().lsn.0 - log.base().lsn.0);
    entries
}

#[test]
fn what_was_appended_comes_back() {
    let env = TestEnv::new();
    let (log, found) = open(&env);
    assert_eq!(found.last, position(0, 0));
    let entries: Vec<_> = (1..=200).map(|lsn| entry(1, lsn, lsn as usize)).collect();
    for chunk in entries.chunks(7) {
        log.append(chunk.to_vec(), Some(b"state")).unwrap();
        assert_eq!(log.write().unwrap(), chunk.last().unwrap().position());
        assert!(log.durable() < log.written());
        block_on(log.sync()).unwrap();
        assert_eq!(log.durable(), chunk.last().unwrap().position());
        env.run_tasks();
    }
    assert_eq!(all(&log), entries);
    assert_eq!(log.term(Lsn(200)), Some(Term(1)));
    assert_eq!(log.term(Lsn(201)), None);
    assert_eq!(log.bytes_after(Lsn(198)), 199 + 200);
    assert_eq!(log.entries(Lsn(50), Lsn(60), 120).unwrap().len(), 2);
    drop(log);
    let (log, found) = open(&env.restart());
    assert_eq!(found.hard_state, b"state");
    assert_eq!(all(&log), entries);
    assert_eq!(log.durable(), position(1, 200));
}

#[test]
fn a_gap_is_refused_and_a_large_entry_is_not() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    assert!(log.append(vec![entry(1, 2, 1)], None).is_err());
    log.append(vec![entry(1, 1, 100_000)], None).unwrap();
    block_on(log.flush()).unwrap();
    env.run_tasks();
    block_on(log.reserve(50_000)).unwrap();
    assert!(log.room() >= 50_000);
    log.append(vec![entry(1, 2, 3)], None).unwrap();
    block_on(log.flush()).unwrap();
    let (log, _) = open(&env.restart());
    assert_eq!(all(&log), [entry(1, 1, 100_000), entry(1, 2, 3)]);
}

#[test]
fn no_entry_survives_without_the_hard_state_of_its_append() {
    let mut kept = 0;
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let env = TestEnv::new();
        let (log, _) = open(&env);
        log.append(vec![entry(1, 1, 400)], Some(b"term 1")).unwrap();
        block_on(log.flush()).unwrap();
        // Of any length, so that the end of a sector comes to lie between the two as well.
        let length = random.below(1_500);
        log.append(vec![entry(2, 2, length)], Some(b"term 2"))
            .unwrap();
        log.write().unwrap();
        env.disk.crash(&mut random);
        let (log, found) = open(&env.restart());
        let has_entry = log.last().lsn == Lsn(2);
        kept += u32::from(has_entry);
        assert!(!has_entry || found.hard_state == b"term 2", "seed {seed}");
    }
    assert!(
        (1..2_000).contains(&kept),
        "{kept} of 2,000 crashes kept the entry"
    );
}

#[test]
fn compaction_keeps_the_rest_and_the_hard_state() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    log.append(vec![], Some(b"vote")).unwrap();
    for lsn in 1..=100 {
        log.append(vec![entry(2, lsn, 300)], None).unwrap();
        block_on(log.flush()).unwrap();
    }
    let files = env.disk.files().len();
    log.compact(Lsn(60)).unwrap();
    assert!(env.disk.files().len() < files);
    assert!(
        log.base().lsn <= Lsn(60) && log.base().lsn > Lsn(40),
        "{}",
        log.base().lsn
    );
    assert_eq!(log.term(log.base().lsn), Some(Term(2)));
    let before = all(&log);
    let (log, found) = open(&env.restart());
    assert_eq!(found.hard_state, b"vote");
    assert_eq!(all(&log), before);
    log.install(position(5, 1000), Some(Chain(77)));
    assert_eq!(log.chain(Lsn(1000)), Some(Chain(77)));
    assert_eq!(log.first(), Lsn(1001));
    log.append(vec![entry(5, 1001, 10)], None).unwrap();
    block_on(log.flush()).unwrap();
    log.compact(Lsn(1000)).unwrap();
    let (log, found) = open(&env.restart());
    assert_eq!(found.base, position(5, 1000));
    assert_eq!(all(&log), [entry(5, 1001, 10)]);
    assert_eq!(
        check(&*env.disk, "log", OWNER).unwrap().last,
        position(5, 1001)
    );
}

fn chains(log: &Log) -> Vec<Option<Chain>> {
    let lsns = log.base().lsn.0..=log.last().lsn.0;
    lsns.map(|lsn| log.chain(Lsn(lsn))).collect()
}

#[test]
fn the_chain_follows_from_the_entries_whatever_became_of_the_files() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    let mut expected = vec![Some(Chain::START)];
    for lsn in 1..=60 {
        // Some of the tail is of a leader that lost, and is replaced.
        log.append(vec![entry(1, lsn, 90)], Some(b"state")).unwrap();
        let kept = entry(2, lsn, 100);
        log.append(vec![kept.clone()], None).unwrap();
        block_on(log.flush()).unwrap();
        env.run_tasks();
        let digest = base::chain::digest(kept.position(), kept.kind, &kept.data);
        let before = expected.last().copied().flatten();
        expected.push(Chain::next(before, kept.kind, digest));
    }
    assert_eq!(chains(&log), expected);
    assert_eq!(log.chain(Lsn(61)), None);
    drop(log);
    let (log, _) = open(&env.restart());
    assert_eq!(chains(&log), expected);
    log.compact(Lsn(40)).unwrap();
    let base = log.base().lsn.0 as usize;
    assert!(base > 0);
    assert_eq!(chains(&log), expected[base..]);
    drop(log);
    let (log, _) = open(&env.restart());
    assert_eq!(chains(&log), expected[base..]);
}

#[test]
fn a_log_without_a_chain_gets_one_where_one_begins() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    log.install(position(3, 50), None);
    let begins = LogEntry {
        kind: base::chain::BEGINS,
        ..entry(3, 52, 10)
    };
    let entries = vec![entry(3, 51, 10), begins, entry(3, 53, 10)];
    log.append(entries, None).unwrap();
    block_on(log.flush()).unwrap();
    let found = chains(&log);
    assert_eq!(found[..2], [None, None]);
    assert!(found[2].is_some() && found[3].is_some());
    drop(log);
    let (log, _) = open(&env.restart());
    assert_eq!(chains(&log), found);
}

#[test]
fn a_failed_sync_is_final() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    log.append(vec![entry(1, 1, 10)], None).unwrap();
    env.disk.fail_sync_after(0);
    let error = block_on(log.flush()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Node);
    log.append(vec![entry(1, 2, 10)], None).unwrap();
    assert!(log.write().is_err());
    assert!(block_on(log.sync()).is_err());
    assert_eq!(log.durable(), position(0, 0));
}

#[test]
fn damage_to_what_was_durable_is_never_taken_for_a_torn_tail() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    for lsn in 1..=30 {
        log.append(vec![entry(1, lsn, 200)], None).unwrap();
        block_on(log.flush()).unwrap();
    }
    let (log, _) = open(&env.restart());
    drop(log);
    let mut random = Random::new(3);
    let mut refused = 0;
    for _ in 0..200 {
        let files = env.disk.files();
        let (name, content) = &files[random.below(files.len())];
        let used = content.iter().rposition(|byte| *byte != 0).unwrap();
        let offset = random.below(used + 1);
        env.disk.damage(name, offset);
        match check(&*env.disk, "log", OWNER) {
            Err(error) => {
                assert_eq!(error.class(), ErrorClass::Node, "{error}");
                refused += 1;
            }
            // What a recovery has written anew elsewhere does not count.
            Ok(report) => assert_eq!(report.last, position(1, 30), "{name} {offset}"),
        }
        env.disk.damage(name, offset);
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_segment_that_is_shorter_than_it_was_made_is_damage() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    for lsn in 1..=30 {
        log.append(vec![entry(1, lsn, 200)], None).unwrap();
        block_on(log.flush()).unwrap();
        // Segments are made ahead here, and so in no hurry.
        env.run_tasks();
    }
    drop(log);
    let files = env.disk.files();
    assert!(files.len() > 1, "{}", files.len());
    for (name, content) in &files {
        let file = env.disk().open(name, base::env::OpenMode::Existing);
        let file = file.unwrap();
        for cut in [1, 400, content.len() as u64 - SEGMENT_HEADER] {
            file.set_len(content.len() as u64 - cut).unwrap();
            let error = check(&*env.disk, "log", OWNER).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Node, "{name} {cut}: {error}");
            assert!(error.message().contains("was made of 4096"), "{error}");
            file.write_at(content, 0).unwrap();
        }
    }
    assert_eq!(
        check(&*env.disk, "log", OWNER).unwrap().last,
        position(1, 30)
    );
}

#[test]
fn a_segment_that_was_made_in_a_hurry_may_have_lost_its_header() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    log.append(vec![entry(1, 1, 200)], None).unwrap();
    block_on(log.flush()).unwrap();
    drop(log);
    for bytes in [0, 10, SEGMENT_HEADER] {
        let name = crate::log::segment::name("log", 9);
        let mode = base::env::OpenMode::Create;
        env.disk()
            .open(&name, mode)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        assert_eq!(open(&env).1.last, position(1, 1), "{bytes}");
    }
}

#[test]
fn bytes_that_are_gone_from_a_sealed_log_are_damage() {
    for is_sealed in [true, false] {
        let env = TestEnv::new();
        let (log, _) = open(&env);
        for lsn in 1..=3 {
            log.append(vec![entry(1, lsn, 200)], None).unwrap();
            block_on(log.flush()).unwrap();
        }
        if is_sealed {
            block_on(log.seal()).unwrap();
            block_on(log.seal()).unwrap();
        }
        drop(log);
        let (name, content) = env.disk.files().pop().unwrap();
        let end = content.iter().rposition(|byte| *byte != 0).unwrap();
        let file = env.disk().open(&name, base::env::OpenMode::Existing);
        // The middle of the last entry, and not the mark behind it.
        file.unwrap().write_at(&[0; 50], end as u64 - 150).unwrap();
        let found = try_open(&env).map(|(log, _)| log.last().lsn);
        match is_sealed {
            true => assert_eq!(found.unwrap_err().class(), ErrorClass::Node),
            // Nothing here tells it from a torn tail.
            false => assert_eq!(found.unwrap(), Lsn(2)),
        }
    }
}

#[test]
fn another_clusters_log_is_refused() {
    let env = TestEnv::new();
    drop(open(&env));
    let mut other = options();
    other.owner.cluster = 8;
    let error = block_on(Log::open(env.clone(), "log", other)).unwrap_err();
    assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert_eq!(error.class(), ErrorClass::Node);
}

#[test]
fn a_log_of_another_format_is_refused() {
    let env = TestEnv::new();
    drop(open(&env));
    let (name, mut content) = env.disk.files().pop().unwrap();
    content[16..20].copy_from_slice(&1u32.to_le_bytes());
    let crc = base::codec::checksum(&content[4..64]);
    content[..4].copy_from_slice(&crc.to_le_bytes());
    let file = env.disk().open(&name, base::env::OpenMode::Existing);
    file.unwrap().write_at(&content, 0).unwrap();
    let error = try_open(&env).unwrap_err();
    assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert_eq!(error.class(), ErrorClass::Node);
    assert!(
        format!("{error:?}").contains("format version 1"),
        "{error:?}"
    );
}

/// What commits pay beside their records: six bytes each, and at most eleven for each batch.
#[test]
fn little_stands_between_records() {
    for (batch, most) in [(1, 17), (10, 8), (100, 7)] {
        let env = TestEnv::new();
        let mut options = options();
        options.segment_bytes = 1 << 20;
        let (log, _) = block_on(Log::open(env.clone(), "log", options)).unwrap();
        let mut next = 1;
        let mut commit = || {
            let entries = (next..next + batch).map(|lsn| entry(1, lsn, 100));
            log.append(entries.collect(), None).unwrap();
            block_on(log.flush()).unwrap();
            next += batch;
        };
        commit();
        let before = log.appended_bytes();
        (0..20).for_each(|_| commit());
        let bytes = log.appended_bytes() - before;
        let entries = 20 * batch;
        assert!(
            bytes <= entries * (100 + most),
            "{bytes} for {entries} entries"
        );
        // The figure is what lies in the file.
        let used = |(_, bytes): &(String, Vec<u8>)| bytes.iter().rposition(|byte| *byte != 0);
        let file = env.disk.files().iter().filter_map(used).max().unwrap() as u64;
        let start = file + 1 - log.appended_bytes();
        assert!(
            (64 + 32..=64 + 32 + HEADER_MAX as u64).contains(&start),
            "{start}"
        );
    }
}

/// What a log must and may hold after a crash.
#[derive(Clone, Debug, Default)]
struct Model {
    entries: Vec<LogEntry>,
    base: u64,
    hard_state: Vec<u8>,
}

/// Appends, replaced tails, compaction, crashes at any point: what is found again is one of the
/// states since the last sync that ended, in the order in which they were appended.
#[test]
fn nothing_synced_is_lost_and_no_replaced_tail_comes_back() {
    for seed in 0..150 {
        crash_loop(seed);
    }
}

fn crash_loop(seed: u64) {
    let mut random = Random::new(seed);
    let mut env = TestEnv::new();
    let (mut log, _) = open(&env);
    // Every state since the last completed sync, the durable one first.
    let mut states = vec![Model::default()];
    let mut written = 0;
    let mut term = 1;
    for step in 0..120 {
        match random.below(12) {
            0..=4 => append_some(&log, &mut states, &mut random, &mut term),
            5 => {
                let mut next = states.last().unwrap().clone();
                next.hard_state = vec![step as u8; random.below(20)];
                log.append(vec![], Some(&next.hard_state)).unwrap();
                states.push(next);
            }
            6..=7 => {
                log.write().unwrap();
                written = states.len() - 1;
            }
            8..=9 => {
                let synced = written;
                let mut sync = Box::pin(log.sync());
                let mut cx = Context::from_waker(Waker::noop());
                if sync.as_mut().poll(&mut cx).is_pending() {
                    // What is written now is not made durable by this sync.
                    if random.one_in(2) {
                        append_some(&log, &mut states, &mut random, &mut term);
                        log.write().unwrap();
                        written = states.len() - 1;
                    }
                    if random.one_in(5) {
                        drop(sync);
                        continue;
                    }
                    block_on(sync).unwrap();
                }
                states.drain(..synced);
                written -= synced;
                let durable = &states[0];
                let last = durable.entries.last().map_or(durable.base, |e| e.lsn.0);
                assert!(log.durable().lsn.0 <= last, "seed {seed} step {step}");
            }
            10 => {
                let up_to = states.iter().map(|m| m.base + m.entries.len() as u64);
                let up_to = up_to.min().unwrap().saturating_sub(random.below(10) as u64);
                log.compact(Lsn(up_to)).unwrap();
                env.run_tasks();
            }
            _ => {
                if random.one_in(2) {
                    env.disk.crash(&mut random);
                }
                env = env.restart();
                let (reopened, found) = try_open(&env).unwrap_or_else(|e| panic!("{seed}: {e:?}"));
                log = reopened;
                let entries = all(&log);
                let base = found.base.lsn.0;
                let same = |m: &&Model| {
                    let skip = base.saturating_sub(m.base) as usize;
                    m.hard_state == found.hard_state
                        && base >= m.base
                        && m.entries.get(skip..) == Some(&entries[..])
                };
                let model = states.iter().rev().find(same);
                let Some(model) = model else {
                    let positions = |e: &[LogEntry]| {
                        let positions = e.iter().map(|e| (e.term.0, e.lsn.0));
                        positions.collect::<Vec<_>>()
                    };
                    states.iter().for_each(|m| {
                        eprintln!("{} {:?} {:?}", m.base, positions(&m.entries), m.hard_state);
                    });
                    panic!(
                        "seed {seed} step {step}: {found:?} {:?} is none of the states since the sync",
                        positions(&entries)
                    );
                };
                states = vec![model.clone()];
                written = 0;
                assert_eq!(log.durable(), found.last);
            }
        }
        let newest = states.last().unwrap();
        let skip = (log.base().lsn.0 - newest.base) as usize;
        assert_eq!(all(&log), newest.entries[skip..], "seed {seed} step {step}");
    }
}

fn append_some(log: &Log, states: &mut Vec<Model>, random: &mut Random, term: &mut u64) {
    let newest = states.last().unwrap();
    let last = newest.base + newest.entries.len() as u64;
    let mut lsn = last + 1;
    if random.one_in(4) {
        *term += 1;
        let first = log.base().lsn.0 + 1;
        lsn = lsn.saturating_sub(random.below(6) as u64).max(first);
    }
    for lsn in lsn..lsn + 1 + random.below(3) as u64 {
        let len = random.below(400);
        let new = entry(*term, lsn, len);
        let before = states.last().unwrap().clone();
        // Each frame may be the last that survives: a replaced tail goes before its successor comes.
        let mut cut = before;
        cut.entries.truncate((lsn - 1 - cut.base) as usize);
        states.push(cut.clone());
        cut.entries.push(new.clone());
        states.push(cut);
        log.append(vec![new], None).unwrap();
    }
}

#[test]
fn who_is_given_up_while_it_makes_space_holds_up_nobody() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    let turn = log.take_turn().unwrap();
    assert!(log.take_turn().is_none());
    drop(turn);
    let room = log.room();
    block_on(log.reserve(room + 1)).unwrap();
    assert!(log.room() > room);
}

#[test]
fn what_the_disk_has_no_space_for_waits_in_memory() {
    let env = TestEnv::new();
    let (log, _) = open(&env);
    log.append(vec![entry(1, 1, 100)], Some(b"vote")).unwrap();
    block_on(log.flush()).unwrap();
    env.disk.full_at(1);
    assert!(!log.is_full(1_000_000), "nobody has been told so yet");
    // More than a segment, and one that fits none.
    let more: Vec<_> = (2..=40).map(|lsn| entry(1, lsn, 300)).collect();
    log.append(more.clone(), Some(b"another vote")).unwrap();
    log.append(vec![entry(1, 41, 10_000)], None).unwrap();
    for _ in 0..3 {
        let error = log.write().unwrap_err();
        assert_eq!(error.state(), SqlState::DISK_FULL);
        assert_ne!(error.class(), ErrorClass::Node);
        assert_eq!(log.written(), position(1, 1));
        assert!(log.has_unwritten() && log.lacks_space() && log.is_full(1));
        assert_eq!(all(&log).len(), 41);
        block_on(log.sync()).unwrap();
        env.run_tasks();
    }
    let files = env.disk.files();
    let whole = |(name, bytes): &(String, Vec<u8>)| name.ends_with(".seg") && bytes.len() >= 4096;
    assert!(files.iter().all(whole), "what was not made is gone");
    env.disk.full_at(0);
    assert_eq!(block_on(log.flush()).unwrap(), position(1, 41));
    assert!(!log.lacks_space());
    env.run_tasks();
    let before = all(&log);
    let (log, found) = open(&env.restart());
    assert_eq!(found.hard_state, b"another vote");
    assert_eq!(all(&log), before);
}

#[test]
fn space_comes_and_goes_under_batches_of_any_size() {
    let mut refused = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let env = TestEnv::new();
        let (log, _) = open(&env);
        let mut lsn = 0;
        for _ in 0..60 {
            let growths = env.disk.done().growths;
            match random.below(6) {
                0 => env.disk.full_at(growths + 1 + random.below(4) as u64),
                1 => env.disk.full_at(0),
                2 => {
                    env.run_tasks();
                    drop(block_on(log.reserve(random.below(9_000) as u64)));
                }
                _ => {}
            }
            let mut batch = Vec::new();
            for _ in 0..random.below(12) {
                let most = [40, 900, 9_000][random.below(3)];
                lsn += 1;
                batch.push(entry(1, lsn, random.below(most)));
            }
            let state = vec![lsn as u8; random.below(200)];
            let state = random.one_in(3).then_some(&state[..]);
            log.append(batch, state).unwrap();
            match log.write() {
                Ok(_) => drop(block_on(log.sync()).unwrap()),
                Err(error) => {
                    assert_eq!(error.state(), SqlState::DISK_FULL, "seed {seed}");
                    refused += 1;
                }
            }
            if random.one_in(3) {
                env.run_tasks();
            }
        }
        env.disk.full_at(0);
        block_on(log.flush()).unwrap();
        let before = all(&log);
        assert_eq!(before.len() as u64, lsn, "seed {seed}");
        env.disk.crash(&mut random);
        let (log, _) = open(&env.restart());
        assert_eq!(all(&log), before, "seed {seed}");
    }
    assert!(refused > 500, "{refused} refused");
}
