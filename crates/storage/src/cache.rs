//! The page cache: pages in memory, by id, at most so many.
//!
//! Two arrays. The *table* has a word for each page id: in which frame the page is, if it is in
//! memory. A *frame* is a latch with a page or nothing behind it. Neither is ever given back while
//! the store lives, so a reader follows a word without holding anything, and looks whether the page
//! is still there once it has the latch:
//!
//! ```text
//!   table   │ 0 │ 1 │ 2 │ 3 │ …          3: generation 7, frame 1
//!                         └──────┐
//!   frames  │ latch: page 9 │ latch: page 3 │ latch: nothing │ …
//! ```
//!
//! A page in memory costs its reader one latch, its own, and no memory. What a page that is not
//! there costs, and what leaves when there is no room, is the affair of [`crate::pager`].
//!
//! # Generations
//! A word's generation changes whenever its page leaves memory or ceases to exist. Whoever reads a
//! page from the disk notes the word before, and may only put the page there if the word is still
//! the same: so nothing old takes the place of something new, and a page that was given back does
//! not return.
//!
//! # Visits
//! Whoever needs several pages in memory at one time begins a [`Visit`] and touches them: a page
//! that was touched during a visit does not leave before the visit ends. That costs no pin and no
//! note per page, only the *era* of its last touch, which is written when the era has changed:
//!
//! ```text
//!   era         6        │ 7               │ 8
//!   visits         ├─────┼──────┤          │
//!                        │   ├────┤        │   era 8 begins when no visit of 6 is left
//!   may leave   pages touched before 6     │ before 7, as long as there is a visit of 7
//! ```
//!
//! # Latches
//! Readers go from parent to child and take the child's latch before they give up the parent's.
//! The only writer ([`crate::apply`]) latches top-down too. So nobody who holds a latch on a page
//! waits for one above it. Whoever makes room only tries.

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

// Not `crate::`: a model checker's may be beside this very file (`model.rs`).
use super::page::{Page, PageId};
use super::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering};
use super::sync::{Mutex, ReadGuard, RwLock, WriteGuard};

/// An array that grows and whose parts never move: each is as long as all before it together.
struct Parts<T, const FIRST_BITS: u32>([OnceLock<Box<[T]>>; 32]);

impl<T: Default, const FIRST_BITS: u32> Parts<T, FIRST_BITS> {
    fn new() -> Self {
        Parts(std::array::from_fn(|_| OnceLock::new()))
    }

    /// In which part an element is, and where in it.
    fn place(index: u32) -> (usize, usize) {
        let place = u64::from(index) + (1 << FIRST_BITS);
        let bits = place.ilog2();
        ((bits - FIRST_BITS) as usize, (place - (1 << bits)) as usize)
    }

    fn get(&self, index: u32) -> Option<&T> {
        let (part, at) = Self::place(index);
        self.0[part].get()?.get(at)
    }

    fn make(&self, index: u32) -> &T {
        let (part, at) = Self::place(index);
        let len = 1usize << (part as u32 + FIRST_BITS);
        let part = self.0[part].get_or_init(|| (0..len).map(|_| T::default()).collect());
        &part[at]
    }
}

/// A place for a page in memory, and its latch.
#[derive(Default)]
pub(crate) struct Frame {
    latch: RwLock<Option<Page>>,
    /// Which page is in it, 0 for none; a hint without the latch.
    page: AtomicU32,
    /// The era of the last touch.
    era: AtomicU32,
    /// Touched, other than by a scan, since it was last looked at whether it should leave.
    hot: AtomicBool,
    /// How often it was found hot.
    heat: AtomicU8,
}

/// How often a page must be found cold before it leaves, at most.
const HEAT_MAX: u8 = 3;

/// Why a page is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Somebody asked for just this page, and may do so again.
    Point,
    /// It lay on the way of a scan.
    Scan,
}

/// A page, latched for reading.
pub(crate) struct PageRead<'a>(ReadGuard<'a, Option<Page>>);

impl Deref for PageRead<'_> {
    type Target = Page;
    fn deref(&self) -> &Page {
        self.0.as_ref().expect("a frame that was found has a page")
    }
}

/// A page, latched for writing.
pub(crate) struct PageWrite<'a>(WriteGuard<'a, Option<Page>>);

impl Deref for PageWrite<'_> {
    type Target = Page;
    fn deref(&self) -> &Page {
        self.0.as_ref().expect("a frame that was found has a page")
    }
}

impl DerefMut for PageWrite<'_> {
    fn deref_mut(&mut self) -> &mut Page {
        self.0.as_mut().expect("a frame that was found has a page")
    }
}

/// What the table says of a page at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    fn new(generation: u32, frame: Option<u32>) -> Word {
        let frame = frame.map_or(0, |frame| u64::from(frame) + 1);
        Word(u64::from(generation) << 32 | frame)
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn frame(self) -> Option<u32> {
        (self.0 as u32).checked_sub(1)
    }

    /// Whether the page is in memory.
    pub(crate) fn is_resident(self) -> bool {
        self.frame().is_some()
    }
}

/// Frames without a page.
#[derive(Default)]
struct Vacant {
    frames: Vec<u32>,
    /// No frame from here on was ever used.
    next: u32,
}

/// Pages in memory.
pub(crate) struct PageCache {
    table: Parts<AtomicU64, 10>,
    frames: Parts<Frame, 6>,
    vacant: Mutex<Vacant>,
    resident: AtomicUsize,
    visits: Visits,
}

impl std::fmt::Debug for PageCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PageCache({} pages)", self.resident())
    }
}

impl PageCache {
    pub(crate) fn new() -> PageCache {
        PageCache {
            table: Parts::new(),
            frames: Parts::new(),
            vacant: Mutex::default(),
            resident: AtomicUsize::new(0),
            visits: Visits::default(),
        }
    }

    /// How many pages are in memory.
    pub(crate) fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed)
    }

    /// What the table says of a page.
    pub(crate) fn word(&self, id: PageId) -> Word {
        let word = self.table.get(id.0);
        Word(word.map_or(0, |word| word.load(Ordering::Acquire)))
    }

    /// The page if it is in memory.
    pub(crate) fn read(&self, id: PageId, touch: Touch) -> Option<PageRead<'_>> {
        loop {
            let frame = self.frames.get(self.word(id).frame()?)?;
            let guard = frame.latch.read();
            if matches!(&*guard, Some(page) if page.id() == u64::from(id.0)) {
                self.touch(frame, touch);
                return Some(PageRead(guard));
            }
            // It left before the latch was free.
        }
    }

    /// The page if it is in memory, to be changed.
    pub(crate) fn write(&self, id: PageId) -> Option<PageWrite<'_>> {
        loop {
            let frame = self.frames.get(self.word(id).frame()?)?;
            let mut guard = frame.latch.write();
            if let Some(page) = guard.as_mut().filter(|page| page.id() == u64::from(id.0)) {
                page.version += 1;
                self.touch(frame, Touch::Point);
                return Some(PageWrite(guard));
            }
        }
    }

    fn touch(&self, frame: &Frame, touch: Touch) {
        let era = self.visits.era();
        if frame.era.load(Ordering::Relaxed) < era {
            // Never back: another may be slow, and store an earlier one.
            frame.era.fetch_max(era, Ordering::Relaxed);
        }
        if touch == Touch::Point && !frame.hot.load(Ordering::Relaxed) {
            frame.hot.store(true, Ordering::Relaxed);
        }
    }

    fn take_vacant(&self) -> u32 {
        let mut vacant = self.vacant.lock();
        vacant.frames.pop().unwrap_or_else(|| {
            vacant.next += 1;
            vacant.next - 1
        })
    }

    /// Puts a page into memory if the table still says what it said before the page was read;
    /// returns its frame then.
    pub(crate) fn install(&self, id: PageId, before: Word, page: Page) -> Option<u32> {
        assert!(!before.is_resident(), "page {} is in memory", id.0);
        let index = self.take_vacant();
        let frame = self.frames.make(index);
        let word = self.table.make(id.0);
        let mut guard = frame.latch.write();
        let after = Word::new(before.generation(), Some(index));
        let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        if word
            .compare_exchange(before.0, after.0, order, failed)
            .is_err()
        {
            drop(guard);
            self.vacant.lock().frames.push(index);
            return None;
        }
        frame.page.store(id.0, Ordering::Relaxed);
        frame.hot.store(false, Ordering::Relaxed);
        frame.heat.store(0, Ordering::Relaxed);
        frame.era.fetch_max(self.visits.era(), Ordering::Relaxed);
        *guard = Some(page);
        self.resident.fetch_add(1, Ordering::Relaxed);
        Some(index)
    }

    /// Adds a page that nobody has seen yet, whatever was under its id; returns its frame.
    pub(crate) fn insert(&self, id: PageId, page: Page) -> u32 {
        // Whoever still reads what was under this id finds another generation.
        self.remove(id);
        let installed = self.install(id, self.word(id), page);
        installed.unwrap_or_else(|| panic!("page {} is new, and somebody knows it", id.0))
    }

    /// Forgets a page that no longer exists.
    pub(crate) fn remove(&self, id: PageId) {
        let entry = self.table.make(id.0);
        loop {
            let word = Word(entry.load(Ordering::Acquire));
            let next = Word::new(word.generation().wrapping_add(1), None);
            match word.frame().and_then(|index| self.frames.get(index)) {
                None => {
                    let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
                    if entry
                        .compare_exchange(word.0, next.0, order, failed)
                        .is_ok()
                    {
                        return;
                    }
                }
                Some(frame) => {
                    let mut guard = frame.latch.write();
                    if Word(entry.load(Ordering::Acquire)) == word {
                        self.leave(id, word, frame, &mut guard);
                        return;
                    }
                }
            }
        }
    }

    /// Takes a page out of its frame, which is latched.
    fn leave(
        &self,
        id: PageId,
        word: Word,
        frame: &Frame,
        guard: &mut Option<Page>,
    ) -> Option<Page> {
        let index = word.frame().expect("a page that leaves has a frame");
        let next = Word::new(word.generation().wrapping_add(1), None);
        let entry = self.table.make(id.0);
        entry.store(next.0, Ordering::Release);
        let page = guard.take();
        frame.page.store(0, Ordering::Relaxed);
        self.vacant.lock().frames.push(index);
        self.resident.fetch_sub(1, Ordering::Relaxed);
        page
    }

    /// Takes the page in a frame out of memory if it may leave now and `may` agrees. Returns it when
    /// it has left.
    pub(crate) fn try_evict(
        &self,
        index: u32,
        may: impl FnOnce(PageId, Word, &Page) -> bool,
    ) -> Option<Page> {
        let frame = self.frames.get(index)?;
        let mut guard = frame.latch.try_write()?;
        let page = guard.as_ref()?;
        let id = PageId(page.id() as u32);
        let word = self.word(id);
        assert_eq!(word.frame(), Some(index), "page {} is elsewhere", id.0);
        // After the latch was taken: whoever touches it later finds it gone, and whoever has
        // touched it before has begun its visit before.
        if frame.era.load(Ordering::Relaxed) >= self.visits.protected_from() || !may(id, word, page)
        {
            return None;
        }
        self.leave(id, word, frame, &mut guard)
    }

    /// The page in a frame if it should leave; cools it a little if not.
    pub(crate) fn cold_page(&self, index: u32) -> Option<PageId> {
        let frame = self.frames.get(index)?;
        let is_protected = frame.era.load(Ordering::Relaxed) >= self.visits.protected_from();
        let page = frame.page.load(Ordering::Relaxed);
        if page == 0 || is_protected {
            return None;
        }
        let heat = frame.heat.load(Ordering::Relaxed);
        if frame.hot.swap(false, Ordering::Relaxed) {
            let warmer = heat.saturating_add(1).min(HEAT_MAX);
            frame.heat.store(warmer, Ordering::Relaxed);
            return None;
        }
        frame.heat.store(heat.saturating_sub(1), Ordering::Relaxed);
        (heat == 0).then_some(PageId(page))
    }

    /// Whether that page is in that frame, and whether it was asked for since it came.
    pub(crate) fn is_hot(&self, index: u32, id: PageId) -> Option<bool> {
        let frame = self.frames.get(index)?;
        let is_there = frame.page.load(Ordering::Relaxed) == id.0;
        is_there.then(|| frame.hot.load(Ordering::Relaxed))
    }

    /// No frame from here on has ever had a page.
    pub(crate) fn frames_end(&self) -> u32 {
        self.vacant.lock().next
    }

    /// From now on, until it is dropped, no page that is touched leaves memory.
    pub(crate) fn visit(&self) -> Visit<'_> {
        self.visits.begin()
    }

    /// Begins a new era, if no visit of the one before is left.
    pub(crate) fn next_era(&self) {
        self.visits.advance();
    }
}

/// The visits under way, by era. There are at most two eras with visits.
#[derive(Debug)]
struct Visits {
    era: AtomicU32,
    under_way: [AtomicU32; 2],
}

impl Default for Visits {
    fn default() -> Visits {
        Visits {
            era: AtomicU32::new(2),
            under_way: Default::default(),
        }
    }
}

impl Visits {
    fn era(&self) -> u32 {
        self.era.load(Ordering::Relaxed)
    }

    fn of(&self, era: u32) -> &AtomicU32 {
        &self.under_way[era as usize % 2]
    }

    fn begin(&self) -> Visit<'_> {
        loop {
            let era = self.era.load(Ordering::SeqCst);
            self.of(era).fetch_add(1, Ordering::SeqCst);
            if self.era.load(Ordering::SeqCst) == era {
                return Visit { visits: self, era };
            }
            self.of(era).fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Pages touched in this era or later may be part of a visit.
    fn protected_from(&self) -> u32 {
        let era = self.era.load(Ordering::SeqCst);
        let under_way = |era| self.of(era).load(Ordering::SeqCst) > 0;
        match (under_way(era - 1), under_way(era)) {
            (true, _) => era - 1,
            (false, true) => era,
            (false, false) => era + 1,
        }
    }

    fn advance(&self) {
        let era = self.era.load(Ordering::SeqCst);
        if self.of(era + 1).load(Ordering::SeqCst) == 0 {
            // Of several who try, one does.
            let (order, failed) = (Ordering::SeqCst, Ordering::SeqCst);
            let _ = self.era.compare_exchange(era, era + 1, order, failed);
        }
    }
}

/// While it lives, pages that were touched since it began stay in memory.
#[derive(Debug)]
pub(crate) struct Visit<'a> {
    visits: &'a Visits,
    era: u32,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.visits.of(self.era).fetch_sub(1, Ordering::SeqCst);
    }
}
