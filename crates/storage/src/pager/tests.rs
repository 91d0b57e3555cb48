//! Data several times the cache.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::coro;
use base::engine::{Direction, RowBatch};
use base::{GroupId, KeyRange, Lsn, TreeId};

use crate::cache::Touch;
use crate::page::{PageId, PAGE_BYTES};
use crate::pager::Miss;
use crate::superblock::BlockRef;
use crate::testing::{block_on, Random, TestEnv};
use crate::{Change, Owner, Room, Store, StoreOptions};

const T: TreeId = TreeId(20_000);

const ROWS: u64 = 20_000;

fn opened(env: &Arc<TestEnv>, pages: u64) -> Arc<Store> {
    open_in(env, "g1", &Room::of(pages * 8_192))
}

fn open_in(env: &Arc<TestEnv>, dir: &'static str, room: &Arc<Room>) -> Arc<Store> {
    let owner = Owner {
        cluster: 7,
        group: GroupId(1),
    };
    let room = room.clone();
    let options = StoreOptions { owner, room };
    block_on(Store::open(env.clone(), dir, options)).unwrap()
}

/// Several hundred leaves, of which so many pages fit into memory.
fn filled(env: &Arc<TestEnv>, pages: u64) -> Arc<Store> {
    fill(opened(env, pages))
}

fn fill(store: Arc<Store>) -> Arc<Store> {
    store.create_tree(Lsn(1), T).unwrap();
    for first in (0..ROWS).step_by(100) {
        let numbers = first..first + 100;
        let rows: Vec<_> = numbers.map(|n| (n.to_be_bytes(), [n as u8; 150])).collect();
        let rows: Vec<Change<'_>> = rows
            .iter()
            .map(|(key, row)| Change {
                tree: T,
                key,
                row: Some(row),
            })
            .collect();
        store.apply(Lsn(1 + first), &rows).unwrap();
    }
    store.release(store.applied(), usize::MAX).unwrap();
    store
}

/// The same tree, nothing of which is in memory, where all of it has room.
fn cold() -> (Arc<TestEnv>, Arc<Store>) {
    let env = TestEnv::new();
    checkpoint(&filled(&env, 64));
    let env = env.restart();
    let store = opened(&env, 4_096);
    (env, store)
}

fn read(store: &Store, number: u64) {
    let mut row = Vec::new();
    let found = store.get(T, &number.to_be_bytes(), Lsn::MAX, &mut row);
    assert!(found.unwrap().exists, "row {number}");
    assert_eq!(row, [number as u8; 150]);
}

/// How many rows a scan finds; `between` runs after each batch.
fn scan(store: &Store, direction: Direction, between: impl Fn()) -> u64 {
    let mut batch = RowBatch::default();
    let (mut rest, mut rows) = (Some(KeyRange::all()), 0);
    while let Some(range) = rest {
        let scanned = store.scan(T, &range, direction, Lsn::MAX, 256, &mut batch);
        rows += batch.len() as u64;
        rest = scanned.unwrap().rest;
        between();
    }
    rows
}

#[test]
fn the_limit_is_kept_and_every_row_is_there() {
    for pages in [4, 40] {
        let env = TestEnv::new();
        let store = filled(&env, pages);
        for number in 0..ROWS {
            read(&store, number * 7_919 % ROWS);
        }
        assert_eq!(scan(&store, Direction::Forward, || ()), ROWS);
        assert_eq!(scan(&store, Direction::Backward, || ()), ROWS);
        let stats = store.cache_stats();
        assert!(stats.evictions > 1_000, "{stats:?}");
        assert!(stats.resident as u64 <= pages + 8, "{stats:?}");
    }
}

#[test]
fn stores_of_one_room_have_its_pages_together() {
    let env = TestEnv::new();
    let room = Room::of(80 * 8_192);
    let stores = ["g1", "g2"].map(|dir| open_in(&env, dir, &room));
    let resident = || {
        env.run_tasks();
        stores.each_ref().map(|store| store.cache_stats().resident)
    };
    fill(stores[0].clone());
    let [alone, none] = resident();
    assert!(
        (70..=80).contains(&alone),
        "{alone} pages of 80, and {none}"
    );
    fill(stores[1].clone());
    let [first, second] = resident();
    assert!(
        (30..=40).contains(&first) && (30..=42).contains(&second),
        "{first} and {second} pages of 80"
    );
    for number in 0..ROWS {
        read(&stores[0], number);
        read(&stores[1], number);
    }
    let [first, second] = resident();
    assert!(first + second <= 88, "{first} and {second} pages of 80");
}

#[test]
fn a_scan_leaves_in_memory_what_is_asked_for_often() {
    let store = filled(&TestEnv::new(), 120);
    let often: Vec<u64> = (0..60).map(|n| n * ROWS / 60).collect();
    for _ in 0..5 {
        often.iter().for_each(|number| read(&store, *number));
    }
    let before = store.cache_stats().reads;
    for direction in [Direction::Forward, Direction::Backward] {
        assert_eq!(scan(&store, direction, || ()), ROWS);
    }
    let scanned = store.cache_stats().reads;
    assert!(scanned > before + 500, "{scanned} pages were read");
    often.iter().for_each(|number| read(&store, *number));
    let again = store.cache_stats().reads - scanned;
    assert!(again < 6, "{again} of 60 pages had left memory");
}

/// Neither latch nor thread is held while a page is read: the statement is put aside.
#[test]
fn a_statement_waits_for_its_page_in_its_coroutine() {
    let env = TestEnv::new();
    let store = filled(&env, 8);
    env.run_tasks();
    let inside = store.clone();
    let mut statement = coro::run(Arc::default(), move || {
        (0..20).for_each(|number| read(&inside, number * ROWS / 20));
    });
    let mut cx = Context::from_waker(Waker::noop());
    let (mut waits, stalls) = (0, store.cache_stats().stalls);
    while Pin::new(&mut statement).poll(&mut cx) == Poll::Pending {
        waits += 1;
        env.run_tasks();
    }
    assert!(waits >= 12, "{waits} waits");
    assert_eq!(store.cache_stats().stalls, stalls);
}

/// A scan has pages read before it comes to them, so that it hardly ever waits.
#[test]
fn a_scan_finds_most_of_its_pages_in_memory() {
    const PAGES: u64 = 1_600;
    for direction in [Direction::Forward, Direction::Backward] {
        let env = TestEnv::new();
        checkpoint(&filled(&env, PAGES));
        let store = opened(&env, PAGES);
        let before = store.cache_stats();
        assert_eq!(scan(&store, direction, || env.run_tasks()), ROWS);
        let after = store.cache_stats();
        let (read, stalls) = (after.reads - before.reads, after.stalls - before.stalls);
        assert!(read > 400, "{read} pages were read");
        assert!(stalls < 40, "{stalls} of {read} pages were waited for");
    }
}

/// A scan that ends after a few rows has not had megabytes read.
#[test]
fn a_scan_looks_the_further_ahead_the_further_it_has_come() {
    let (env, store) = cold();
    let mut batch = RowBatch::default();
    let mut rest = Some(KeyRange::all());
    let mut reads = Vec::new();
    while let Some(range) = rest {
        let scanned = store.scan(T, &range, Direction::Forward, Lsn::MAX, 60, &mut batch);
        rest = scanned.unwrap().rest;
        env.run_tasks();
        reads.push(store.cache_stats().reads);
    }
    assert!((30..60).contains(&reads[0]), "{reads:?} pages were read");
    let steps = reads.windows(2).map(|pair| pair[1] - pair[0]);
    let most = steps.max();
    assert!(most > Some(100), "{most:?} pages at one time");
    let stalls = store.cache_stats().stalls;
    assert!(stalls < 20, "{stalls} pages were waited for");
}

/// Wherever a scan begins, it looks at so many leaves at least.
#[test]
fn a_scan_looks_ahead_over_the_end_of_an_inner_page() {
    let env = TestEnv::new();
    checkpoint(&wide(&env, 256, LEAF_ROW));
    let store = opened(&env.restart(), 4_096);
    // All inner pages come into memory, and one leaf of a hundred.
    for number in (0..WIDE_ROWS).step_by(400) {
        let mut row = Vec::new();
        store.get(T, &key(number), Lsn::MAX, &mut row).unwrap();
    }
    let tree = store.tree(T).unwrap();
    let ahead = |direction, start: Vec<u8>, end| {
        let range = KeyRange { start, end };
        store.leaves_ahead(&tree, direction, &range).unwrap().len()
    };
    for number in (200..WIDE_ROWS - 200).step_by(10) {
        let forward = ahead(Direction::Forward, key(number).to_vec(), None);
        let backward = ahead(Direction::Backward, Vec::new(), Some(key(number).to_vec()));
        for leaves in [forward, backward] {
            assert!(leaves >= 31, "{leaves} leaves from row {number} on");
        }
    }
}

/// Who waits for a page does not wait for those that others will need soon.
#[test]
fn a_page_that_is_needed_is_read_before_those_ahead() {
    let env = TestEnv::new();
    let store = filled(&env, 300);
    let words = |ids: std::ops::Range<u32>| -> Vec<_> {
        let ids = ids.map(PageId);
        let words = ids.map(|id| (id, store.pager.cache.word(id)));
        words.filter(|(_, word)| !word.is_resident()).collect()
    };
    let away = words(1..200);
    assert!(away.len() > 35, "{} pages are not in memory", away.len());
    let (needed, ahead) = (away[34], &away[..35]);
    store.pager.prefetch(ahead, Touch::Scan);
    let pager = store.pager.clone();
    let mut wait = Box::pin(async move {
        let (id, word) = needed;
        pager.fetched(Miss::of(id, word, Touch::Point)).await
    });
    let mut cx = Context::from_waker(Waker::noop());
    assert!(wait.as_mut().poll(&mut cx).is_pending());
    let mut announced = VecDeque::new();
    let mut run = || store.pager.next_run(0, &mut announced).map(|run| run[0].0);
    assert_eq!(run(), Some(needed.0));
    assert_eq!(run(), Some(ahead[0].0));
}

/// Random changes of a table larger than memory leave its pages about where they were: few reads
/// bring many of them, and what a scan comes to next is read together.
#[test]
fn pages_keep_to_their_neighbours_however_often_they_change() {
    let store = wide(&TestEnv::new(), 256, LONG_ROW);
    let pages = store.pager.pages();
    let mut random = Random::new(1);
    for round in 0..5 {
        for change in 0..WIDE_ROWS / 10 {
            let number = random.below(WIDE_ROWS as usize) as u64;
            let lsn = store.applied().0 + 1;
            put(&store, lsn, &key(number), &[change as u8; LONG_ROW]);
        }
        store.release(store.applied(), usize::MAX).unwrap();
        checkpoint(&store);
        let blocks = store.file_space().0 as usize / PAGE_BYTES;
        assert!(4 * blocks < 7 * pages, "{blocks} blocks in round {round}");
    }
    let ids = (1..store.pager.pages() as u32).map(PageId);
    let pages = ids.map(|id| (id, store.pager.cache.word(id)));
    let is_there = |id: PageId| store.pager.source(id).is_some();
    let pages: Vec<_> = pages.filter(|(id, _)| is_there(*id)).collect();
    let runs = pages.chunks(64).flat_map(|near| store.pager.runs(near));
    let runs: Vec<_> = runs.collect();
    let most = runs.iter().map(Vec::len).max();
    assert!(most <= Some(16), "{most:?} pages in one read");
    let (pages, reads) = (pages.len(), runs.len());
    assert!(pages > 5 * reads, "{pages} pages in {reads} reads");
}

/// One read brings pages that lie side by side, and not what lies far away.
#[test]
fn a_run_is_read_as_its_pages_would_be() {
    let env = TestEnv::new();
    let store = filled(&env, 300);
    checkpoint(&store);
    let store = {
        drop(store);
        opened(&env.restart(), 300)
    };
    let pages: Vec<_> = (2..40)
        .map(|id| (PageId(id), store.pager.cache.word(PageId(id))))
        .collect();
    for run in store.pager.runs(&pages) {
        let asked: Vec<_> = run
            .iter()
            .map(|(id, word)| (*id, *word, Touch::Scan))
            .collect();
        let read = store.pager.read_run(&asked);
        for ((id, word), page) in run.iter().zip(&read) {
            let alone = store.pager.read(*id, *word).unwrap().unwrap();
            let page = page.as_ref();
            assert_eq!(page.is_some(), run.len() > 1, "page {} of {run:?}", id.0);
            assert!(page.is_none_or(|page| page.bytes() == alone.bytes()));
        }
    }
}

/// A page that has come into memory just before somebody asked for it is no harm to those that are
/// read with it.
#[test]
fn a_run_may_have_pages_that_are_in_memory() {
    let (env, store) = cold();
    let ids = [PageId(20), PageId(21)];
    drop(store.pager.read_here(ids[0]).unwrap());
    let words = ids.map(|id| (id, store.pager.cache.word(id)));
    assert_eq!(words.map(|(_, word)| word.is_resident()), [true, false]);
    assert_eq!(store.pager.runs(&words).len(), 1);
    let mut miss = Miss::of(words[0].0, words[0].1, Touch::Point);
    miss.needed.push(words[1]);
    let pager = store.pager.clone();
    let mut wait = Box::pin(async move { pager.fetched(miss).await });
    let mut cx = Context::from_waker(Waker::noop());
    assert!(wait.as_mut().poll(&mut cx).is_pending());
    env.run_tasks();
    assert_eq!(wait.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    let is_here = |id| store.pager.cache.word(id).is_resident();
    assert_eq!(ids.map(is_here), [true, true]);
}

/// What is touched during a visit stays, however much else comes.
#[test]
fn a_visit_keeps_what_it_touches() {
    let store = filled(&TestEnv::new(), 8);
    let keys: Vec<[u8; 8]> = (0..30).map(|n| (n * ROWS / 30).to_be_bytes()).collect();
    let places = || keys.iter().map(|key| (T, &key[..]));
    let visit = store.visit();
    while let Some(missing) = store.find_missing(places()).unwrap() {
        store.fetch(missing).unwrap();
    }
    for number in 0..500 {
        read(&store, number * 7_919 % ROWS);
    }
    assert!(store.find_missing(places()).unwrap().is_none());
    drop(visit);
    for number in 0..3_000 {
        read(&store, number * 7_919 % ROWS);
    }
    assert!(store.find_missing(places()).unwrap().is_some());
    let stats = store.cache_stats();
    assert!(stats.resident <= 16, "{stats:?}");
}

/// A row of which a leaf holds four.
const LEAF_ROW: usize = 1_900;

/// A row that has a page of its own.
const LONG_ROW: usize = 3_000;

const WIDE_ROWS: u64 = 8_000;

/// The key of a row of [`wide`].
fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A tree of many pages; of leaf rows, several inner ones.
fn wide(env: &Arc<TestEnv>, memory: u64, row: usize) -> Arc<Store> {
    let store = opened(env, memory);
    store.create_tree(Lsn(1), T).unwrap();
    for number in 0..WIDE_ROWS {
        put(&store, 2 + number, &key(number), &vec![1; row]);
    }
    store.release(store.applied(), usize::MAX).unwrap();
    store
}

const LONG: usize = 20_000;

fn put(store: &Store, lsn: u64, key: &[u8], row: &[u8]) {
    let row = Some(row);
    store
        .apply(Lsn(lsn), &[Change { tree: T, key, row }])
        .unwrap();
}

fn checkpoint(store: &Store) {
    store.start_checkpoint(Vec::new()).unwrap();
    assert!(block_on(store.write_checkpoint(25)).unwrap());
    assert!(block_on(store.publish_checkpoint()).unwrap());
}

fn seen(store: &Store, key: &[u8], at: u64) -> Vec<u8> {
    let mut row = Vec::new();
    assert!(store.get(T, key, Lsn(at), &mut row).unwrap().exists);
    row
}

/// While a checkpoint is published, the writer gives pages of an old version back, and makes and
/// retires others under their ids: those are not taken for what they were.
#[test]
fn a_page_that_was_retired_twice_is_not_its_predecessor() {
    let store = filled(&TestEnv::new(), 40);
    let first = store.applied().0;
    put(&store, first + 1, b"a", &[1; LONG]);
    checkpoint(&store);
    let ids: Vec<PageId> = {
        let mapped = store.pager.file.map();
        let ids = (0..mapped.len() as u32).map(PageId);
        ids.filter(|id| mapped[id.0 as usize].location != 0)
            .collect()
    };
    let changes = ids.iter().map(|id| (*id, BlockRef::default())).collect();
    put(&store, first + 2, b"a", b"short");
    let retired = store.pager.retired_pages(&changes);
    assert_eq!(retired.len(), 3, "{retired:?}");
    store.release(Lsn(first + 2), usize::MAX).unwrap();
    put(&store, first + 3, b"b", &[2; LONG]);
    put(&store, first + 4, b"b", b"short");
    let again = store.pager.retired_pages(&changes);
    assert!(again.is_empty(), "{again:?} are taken for older pages");
    assert!(store.pager.keep_retired(&retired).is_empty());
    assert_eq!(seen(&store, b"b", first + 3), [2; LONG]);
    store.release(store.applied(), usize::MAX).unwrap();
    store.check_trees(&mut |_, _, _| Ok(())).unwrap();
}

/// A page of an old version that was made since the last checkpoint, under an id that another has
/// there, is still itself once the next checkpoint is published.
#[test]
fn an_old_version_does_not_turn_into_what_was_under_its_ids() {
    let store = filled(&TestEnv::new(), 40);
    let first = store.applied().0;
    put(&store, first + 1, b"a", &[1; LONG]);
    checkpoint(&store);
    put(&store, first + 2, b"a", b"short");
    store.release(Lsn(first + 2), usize::MAX).unwrap();
    put(&store, first + 3, b"b", &[2; LONG]);
    put(&store, first + 4, b"b", b"short");
    checkpoint(&store);
    // All that can leave memory does.
    for number in 0..ROWS / 4 {
        read(&store, number * 7_919 % ROWS);
    }
    assert_eq!(seen(&store, b"b", first + 3), [2; LONG]);
    store.release(store.applied(), usize::MAX).unwrap();
    store.check_trees(&mut |_, _, _| Ok(())).unwrap();
}
