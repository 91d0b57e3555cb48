//! The very source of the page cache under a model checker (`base/src/model.rs` says what that
//! shows and what not). Pages are stood in for by a number that is changed.

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../base/src/model/threads.rs"]
mod threads;

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../base/src/sync.rs"]
mod sync;

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "cache.rs"]
mod cache;

/// What the cache knows of pages.
mod page {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct PageId(pub(crate) u32);

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Page {
        pub(crate) id: u64,
        pub(crate) version: u64,
        pub(crate) value: u64,
    }

    impl Page {
        pub(crate) fn id(&self) -> u64 {
            self.id
        }
    }
}

use std::sync::Arc;

use cache::{PageCache, Touch};
use page::{Page, PageId};
use sync::atomic::{AtomicU64, Ordering};
use sync::RwLock;

use shuttle::thread;
use threads::check;

const ID: PageId = PageId(3);

fn page(value: u64) -> Page {
    Page {
        id: u64::from(ID.0),
        version: 0,
        value,
    }
}

/// A cache, and what the disk has of the one page.
struct Shared {
    cache: PageCache,
    disk: AtomicU64,
}

impl Shared {
    fn new(disk: u64) -> Arc<Shared> {
        Arc::new(Shared {
            cache: PageCache::new(),
            disk: AtomicU64::new(disk),
        })
    }

    /// As the pager does: what the table says is noted before the disk is read.
    fn load(&self) {
        let word = self.cache.word(ID);
        if !word.is_resident() {
            let value = self.disk.load(Ordering::SeqCst);
            self.cache.install(ID, word, page(value));
        }
    }

    /// Lets the page leave, if it may, having written it.
    fn evict(&self) -> bool {
        self.cache.next_era();
        let end = self.cache.frames_end();
        let may = |_, _, page: &Page| {
            self.disk.store(page.value, Ordering::SeqCst);
            true
        };
        (0..end).any(|frame| self.cache.try_evict(frame, may).is_some())
    }
}

/// A page that several read from the disk, change and write back: no change gets lost, though
/// somebody may have read the disk long before.
#[test]
fn nothing_old_takes_the_place_of_something_new() {
    check(|| {
        let shared = Shared::new(0);
        let changers = [(); 2].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || loop {
                shared.load();
                if let Some(mut page) = shared.cache.write(ID) {
                    page.value += 1;
                    return;
                }
            })
        });
        let evictor = shared.clone();
        let evictor = thread::spawn(move || {
            evictor.evict();
            evictor.evict();
        });
        for one in changers {
            one.join().unwrap();
        }
        evictor.join().unwrap();
        shared.load();
        let page = shared.cache.read(ID, Touch::Point).expect("it was loaded");
        assert_eq!(page.value, 2);
    });
}

/// A page is given back and its id used again, while somebody who found the id in the page above
/// reads the old one from the disk. Only under the latch of the page above is an id known.
#[test]
fn a_page_that_was_given_back_does_not_return() {
    check(|| {
        let shared = Shared::new(1);
        let above = Arc::new(RwLock::new(true));
        let (reader, link) = (shared.clone(), above.clone());
        let reader = thread::spawn(move || {
            let mut seen = 0;
            for _ in 0..3 {
                let is_there = link.read();
                if !*is_there {
                    continue;
                }
                let word = reader.cache.word(ID);
                if let Some(page) = reader.cache.read(ID, Touch::Scan) {
                    assert!(page.value >= seen, "{} after {seen}", page.value);
                    seen = page.value;
                    continue;
                }
                drop(is_there);
                let value = reader.disk.load(Ordering::SeqCst);
                if !word.is_resident() {
                    reader.cache.install(ID, word, page(value));
                }
            }
        });
        *above.write() = false;
        shared.cache.remove(ID);
        shared.cache.insert(ID, page(2));
        *above.write() = true;
        let found = shared.cache.read(ID, Touch::Point).map(|page| page.value);
        assert_eq!(found, Some(2));
        reader.join().unwrap();
        assert_eq!(shared.cache.resident(), 1);
    });
}

/// Two visits, of eras that differ by chance, and two who make room.
#[test]
fn what_was_touched_stays_until_the_visit_ends() {
    check(|| {
        let shared = Shared::new(7);
        shared.load();
        let visitors = [(); 2].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || {
                let visit = shared.cache.visit();
                shared.load();
                let touched = shared.cache.read(ID, Touch::Point).is_some();
                thread::yield_now();
                let is_there = shared.cache.word(ID).is_resident();
                assert!(is_there || !touched, "it left in the middle of a visit");
                drop(visit);
            })
        });
        let evictors = [(); 2].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    shared.evict();
                }
            })
        });
        for one in visitors {
            one.join().unwrap();
        }
        for one in evictors {
            one.join().unwrap();
        }
        // With nobody there, two eras later at the latest, it may leave.
        let resident = shared.cache.resident() > 0;
        let left = (0..3).any(|_| shared.evict());
        assert_eq!(left, resident);
        assert_eq!(shared.cache.resident(), 0);
    });
}

/// Without the generations of words, old content comes back: the checker finds it.
#[test]
#[should_panic(expected = "an old page came back")]
fn a_table_without_generations_is_found_out() {
    check(|| {
        // What the page's place in the table says: nothing, or the value that was put there.
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(1)));
        let loader = shared.clone();
        let loader = thread::spawn(move || {
            let (table, disk) = &*loader;
            let before = table.load(Ordering::SeqCst);
            let value = disk.load(Ordering::SeqCst);
            let order = Ordering::SeqCst;
            let _ = table.compare_exchange(before, value, order, order);
        });
        let (table, disk) = &*shared;
        // It comes, changes, is written and leaves.
        table.store(2, Ordering::SeqCst);
        disk.store(2, Ordering::SeqCst);
        table.store(0, Ordering::SeqCst);
        loader.join().unwrap();
        let found = table.load(Ordering::SeqCst);
        assert!(found != 1, "an old page came back");
    });
}
