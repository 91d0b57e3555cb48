//! Pages that are not in memory: where they are, who reads them, and what leaves when there is no
//! room.
//!
//! A page that nobody needs in memory is in one of two places:
//!
//! - where the page map of the published checkpoint says, if it has not changed since;
//! - else *away*: in a block of the store's file that no superblock names, with its versions in
//!   flight. Whoever opens the store after a crash finds such a block free.
//!
//! ```text
//!   changed, cold        ──write──►  away ──touched again──► in memory
//!                                     └──the next checkpoint──► named by the map as it is
//!   as published, cold   ──forget──►  in the map ──touched again──► in memory
//! ```
//!
//! So a page that leaves with changes is written once: if it needs no history when it leaves, the
//! checkpoint that is next to write it takes over its block.
//!
//! # Misses
//! Readers never read from the disk themselves. Where a page is not in memory they give up all
//! latches, and return a [`Miss`]; whoever called waits for it with no latch and no thread
//! ([`Pager::fetch`]), on the reactors for pages, and begins anew under a [`Visit`], which keeps
//! what was found so far. Where nobody can wait (a latch is held, or there is no coroutine) the page
//! is read on the spot.
//!
//! Scans have the pages read that they will come to ([`Pager::prefetch`]), well before they do, so
//! that reading and what is done with the rows go on side by side. Pages that somebody waits for are
//! read before those, and pages that lie side by side are read at once ([`requests`]).
//!
//! # What leaves
//! A clock goes over the frames; a page that was asked for since the hand last passed gets warmer,
//! one that was not gets colder, and a cold one leaves. What a scan has read stands in a queue of
//! its own and leaves first, in the order in which it came, unless somebody asks for it: so a scan
//! of a table larger than memory needs few frames and takes none from others. A task on the
//! reactors for pages keeps some frames free; who needs one and finds none makes room himself.
//!
//! The hand looks for many cold pages at one time, which then leave in the order of their numbers;
//! and the block that a page gets is as near as may be to the one of its number
//! ([`StoreFile::allocate_for`]). So the pages of a table that was loaded in order go on lying in
//! that order while they change at random, and a scan of it can read many of them at once.
//!
//! # Invariants
//! - A page that is not in memory is as its away block says, or else as the map says.
//! - An away block is written wholly before its page leaves memory; no block is freed that the
//!   checkpoint being written has taken over.
//! - The limit is kept but for what visits, latches and a full disk hold: then there are more.

mod publish;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use base::env::{Env, LocalBoxFuture, Reactor};
use base::hash::HashMap;
use base::sync::{latches_held, Mutex};
use base::{coro, usage, Error, Lsn, Result, SqlState};

use self::requests::Requests;
use crate::cache::{PageCache, PageRead, PageWrite, Touch, Visit, Word};
use crate::file::StoreFile;
use crate::page::{Page, PageId, PAGE_BYTES};
use crate::room::{Share, Sharer, UNDO_SHARE};
use crate::superblock::BlockRef;
use crate::undo::{UndoId, UndoStore};

/// Pages that leave at one time, and whose blocks are written together.
const BATCH_PAGES: usize = 32;

/// Pages that leave at one time when somebody waits for room.
const FOREGROUND_PAGES: usize = 4;

/// One of so many parts of the pages is looked for at one time that should leave.
const FOUND_SHARE: usize = 16;

/// The fewest pages that a store keeps room for: the ways of a few who read and write at once.
pub const CACHE_PAGES_MIN: usize = 4;

/// One of so many parts of the room for pages may be taken by copies for a checkpoint.
const COPIES_SHARE: usize = 32;

/// Pages that are looked at under one latch when a checkpoint is published.
const PLACES_PER_TURN: usize = 256;

/// Pages, and what the cache's table said of each when it was looked for.
pub(crate) type Pages = Vec<(PageId, Word)>;

/// Pages that somebody looked for and that are not in memory.
#[derive(Debug)]
pub(crate) struct Miss {
    /// What he needs before he can go on.
    pub(crate) needed: Pages,
    /// What he will need soon.
    pub(crate) ahead: Pages,
    /// Versions in the spill file that he needs, or those before them that are shown at an LSN.
    pub(crate) versions: Vec<(UndoId, Lsn)>,
    pub(crate) touch: Touch,
}

/// How a checkpoint comes by a page that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adoption {
    /// It has the page's block now.
    Taken(BlockRef),
    /// The block has versions in flight: the page must be written without.
    Raw,
    /// The published checkpoint has it as it is.
    Published,
}

impl Miss {
    pub(crate) fn of(id: PageId, word: Word, touch: Touch) -> Miss {
        Miss {
            needed: vec![(id, word)],
            ahead: Vec::new(),
            versions: Vec::new(),
            touch,
        }
    }

    pub(crate) fn of_versions(versions: Vec<(UndoId, Lsn)>) -> Miss {
        Miss {
            needed: Vec::new(),
            ahead: Vec::new(),
            versions,
            touch: Touch::Scan,
        }
    }
}

/// Why a reader could not go on.
#[derive(Debug)]
pub(crate) enum Stop {
    Miss(Miss),
    /// The tree has been given back.
    Gone,
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

/// What a reader has found, unless something was not in memory.
pub(crate) type Found<T> = std::result::Result<T, Stop>;

/// Where a page is that left memory with changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Away {
    block: BlockRef,
    /// The epoch of its newest change.
    epoch: u64,
    /// It has versions in flight, which no checkpoint may have; the newest of them.
    history: Option<Lsn>,
    /// The checkpoint that is being written has taken the block over.
    adopted: bool,
}

#[derive(Default)]
struct Places {
    away: HashMap<PageId, Away>,
    /// Pages of old versions, of which the next checkpoint knows nothing, and which retirement
    /// that was: under an id that was retired, given back and retired again there is another page.
    retired: HashMap<PageId, Retirement>,
    retirements: u64,
}

/// Names one retirement of one page; none is ever named again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Retirement(u64);

impl Places {
    /// The retirement of a page that nothing but the map leads to once it is not in memory.
    fn kept_by_map(&self, id: PageId) -> Option<Retirement> {
        let retirement = self.retired.get(&id).copied();
        retirement.filter(|_| !self.away.contains_key(&id))
    }
}

/// Where the search for what should leave stands.
#[derive(Default)]
struct Clock {
    hand: u32,
    /// Frames of pages that were found cold, in the order of the pages: those that lie side by side
    /// leave one after the other, and come to lie side by side again.
    found: VecDeque<(u32, PageId)>,
}

/// What the cache has done since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Pages in memory.
    pub resident: usize,
    /// As many as there should be at most.
    pub limit: usize,
    /// Pages that were read from the disk.
    pub reads: u64,
    /// Pages that left memory.
    pub evictions: u64,
    /// Pages that were written to leave memory.
    pub writes: u64,
    /// Pages that were read on the spot, because nobody could wait.
    pub stalls: u64,
    /// Pages that are away.
    pub away: usize,
}

#[derive(Default)]
struct Counters {
    reads: AtomicU64,
    evictions: AtomicU64,
    writes: AtomicU64,
    stalls: AtomicU64,
}

/// Pages, in memory and not.
pub(crate) struct Pager {
    env: Arc<dyn Env>,
    pub(crate) cache: PageCache,
    pub(crate) file: StoreFile,
    pub(crate) undo: Arc<UndoStore>,
    share: Share,
    /// How many pages there are.
    pages: AtomicUsize,
    /// Pages changed in this epoch or before are in the published checkpoint.
    clean_epoch: AtomicU64,
    places: Mutex<Places>,
    clock: Mutex<Clock>,
    /// Frames of pages that a scan has read, in the order in which they came.
    cold: Mutex<VecDeque<(u32, PageId)>>,
    requests: Mutex<Requests>,
    evicting: AtomicBool,
    counters: Counters,
}

impl std::fmt::Debug for Pager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pager({:?})", self.stats())
    }
}

impl Pager {
    pub(crate) fn new(
        env: Arc<dyn Env>,
        file: StoreFile,
        undo: Arc<UndoStore>,
        share: Share,
    ) -> Pager {
        Pager {
            env,
            pages: AtomicUsize::new(file.mapped()),
            cache: PageCache::new(),
            file,
            undo,
            share,
            clean_epoch: AtomicU64::new(0),
            places: Mutex::default(),
            clock: Mutex::default(),
            cold: Mutex::default(),
            requests: Mutex::default(),
            evicting: AtomicBool::new(false),
            counters: Counters::default(),
        }
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStats {
            resident: self.cache.resident(),
            limit: self.limit(),
            reads: count(&self.counters.reads),
            evictions: count(&self.counters.evictions),
            writes: count(&self.counters.writes),
            stalls: count(&self.counters.stalls),
            away: self.places.lock().away.len(),
        }
    }

    /// As many pages as should be in memory at most: old versions take some of the room.
    fn limit(&self) -> usize {
        let pages = (self.share.bytes() / PAGE_BYTES).max(CACHE_PAGES_MIN);
        let undo = self.undo.memory() / PAGE_BYTES;
        pages - undo.min(pages / UNDO_SHARE)
    }

    /// How many pages there are.
    pub(crate) fn pages(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
    }

    /// Copies of pages that a checkpoint may have in memory beside the pages.
    pub(crate) fn copies_max(&self) -> usize {
        let pages = self.share.room().part() / PAGE_BYTES;
        (pages / COPIES_SHARE).max(BATCH_PAGES)
    }

    /// Pages that are away, and how.
    #[cfg(test)]
    pub(crate) fn away(&self) -> Vec<(PageId, String)> {
        let places = self.places.lock();
        let clean = self.clean_epoch.load(Ordering::Acquire);
        let tell = |(id, away): (&PageId, &Away)| {
            let (place, retired) = (self.file.place(*id), places.retired.contains_key(id));
            let told = format!("{away:?} of {clean}, published {place:?}, retired {retired}");
            (*id, told)
        };
        places.away.iter().map(tell).collect()
    }

    /// Whether there is no page that is not in memory now.
    pub(crate) fn is_all_in_memory(&self) -> bool {
        self.cache.resident() >= self.pages()
    }

    /// Keeps what is touched from now on in memory while it lives.
    pub(crate) fn visit(&self) -> Visit<'_> {
        self.cache.visit()
    }

    /// A page in memory, to be changed; read on the spot if it is not there.
    pub(crate) fn write(self: &Arc<Self>, id: PageId) -> Result<PageWrite<'_>> {
        loop {
            if let Some(page) = self.cache.write(id) {
                return Ok(page);
            }
            self.load_here(id, self.cache.word(id), Touch::Point)?;
        }
    }

    /// Adds a page that nobody has seen yet.
    pub(crate) fn insert(self: &Arc<Self>, id: PageId, page: Page) -> Result<()> {
        // The one writer does not wait for others' pages to be written, unless there are too many.
        if self.cache.resident() < self.limit() + self.excess() {
            self.evict_beside_if_full();
        } else {
            self.make_room()?;
        }
        self.cache.insert(id, page);
        self.pages.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A page in memory; read on the spot if it is not there.
    pub(crate) fn read_here(self: &Arc<Self>, id: PageId) -> Result<PageRead<'_>> {
        loop {
            if let Some(page) = self.cache.read(id, Touch::Point) {
                return Ok(page);
            }
            self.load_here(id, self.cache.word(id), Touch::Point)?;
        }
    }

    /// A page if it is in memory.
    pub(crate) fn find(&self, id: PageId, touch: Touch) -> Found<PageRead<'_>> {
        let page = self.cache.read(id, touch);
        if usage::is_counted() && page.is_some() {
            usage::found_page();
        }
        page.ok_or_else(|| Stop::Miss(Miss::of(id, self.cache.word(id), touch)))
    }

    /// Forgets a page that no longer exists.
    pub(crate) fn forget(&self, id: PageId) {
        self.cache.remove(id);
        self.pages.fetch_sub(1, Ordering::Relaxed);
        let mut places = self.places.lock();
        places.retired.remove(&id);
        if let Some(away) = places.away.remove(&id) {
            self.free(&away);
        }
    }

    fn free(&self, away: &Away) {
        if !away.adopted {
            self.file.free_published(&[away.block.location]);
        }
    }

    /// The pages of a long row are those of an old version now: the next checkpoint frees their
    /// places, and they are still needed.
    pub(crate) fn retire(&self, id: PageId) {
        let mut places = self.places.lock();
        places.retirements += 1;
        let retirement = Retirement(places.retirements);
        places.retired.insert(id, retirement);
    }

    /// Ends a [`Pager::retire`].
    pub(crate) fn restore(&self, id: PageId) {
        self.places.lock().retired.remove(&id);
    }

    /// Content of a page wherever it is, which stays there. Nobody changes it meanwhile.
    pub(crate) fn copy_of(&self, id: PageId) -> Result<Page> {
        loop {
            if let Some(page) = self.cache.read(id, Touch::Scan) {
                return Ok(page.clone());
            }
            if let Some(page) = self.read(id, self.cache.word(id))? {
                return Ok(page);
            }
        }
    }
}

// Reading.
impl Pager {
    fn source(&self, id: PageId) -> Option<(BlockRef, u64)> {
        let away = self.places.lock().away.get(&id).copied();
        match away {
            Some(away) => Some((away.block, away.epoch)),
            None => {
                let block = self.file.place(id);
                (block.location != 0).then_some((block, 0))
            }
        }
    }

    /// Reads a page from the disk; nothing if the table does not say `word` any more.
    fn read(&self, id: PageId, word: Word) -> Result<Option<Page>> {
        loop {
            let source = self.source(id);
            let page = match source {
                None => Err(Error::corrupted(format!("page {} is not there", id.0))),
                Some((block, _)) => self.file.read_block(block, u64::from(id.0)),
            };
            if self.cache.word(id) != word {
                return Ok(None);
            }
            match (page, source) {
                (Ok(mut page), Some((_, epoch))) => {
                    page.epoch = epoch;
                    self.counters.reads.fetch_add(1, Ordering::Relaxed);
                    return Ok(Some(page));
                }
                (Err(error), _) if self.source(id) == source => return Err(error),
                // Its block was given up while it was read: a checkpoint has another.
                _ => {}
            }
        }
    }

    /// Reads a page into memory, unless the table does not say `word` any more.
    fn load(self: &Arc<Self>, id: PageId, word: Word, touch: Touch) -> Result<()> {
        if id == PageId::NONE {
            return Err(Error::corrupted("a link to no page"));
        }
        if word.is_resident() {
            return Ok(());
        }
        let Some(page) = self.read(id, word)? else {
            return Ok(());
        };
        self.install(id, word, page, touch)
    }

    /// Puts a page that was read into memory, unless the table does not say `word` any more.
    fn install(self: &Arc<Self>, id: PageId, word: Word, page: Page, touch: Touch) -> Result<()> {
        self.make_room()?;
        if let Some(frame) = self.cache.install(id, word, page) {
            if touch == Touch::Scan {
                self.cold.lock().push_back((frame, id));
            }
        }
        Ok(())
    }

    fn load_here(self: &Arc<Self>, id: PageId, word: Word, touch: Touch) -> Result<()> {
        self.counters.stalls.fetch_add(1, Ordering::Relaxed);
        self.load(id, word, touch)
    }

    /// Gets what was missed into memory; the caller has begun a visit and tries again. Waits
    /// inside a coroutine that holds no latch; elsewhere it blocks.
    pub(crate) fn fetch(self: &Arc<Self>, miss: Miss) -> Result<()> {
        if usage::is_counted() {
            usage::read_pages(miss.needed.len());
        }
        if coro::inside() && latches_held() == 0 {
            return coro::wait(self.fetched(miss))?;
        }
        self.fetch_here(miss)
    }

    /// As [`Pager::fetch`], and blocks wherever it is called.
    pub(crate) fn fetch_here(self: &Arc<Self>, miss: Miss) -> Result<()> {
        self.prefetch(&miss.ahead, miss.touch);
        for (id, word) in miss.needed {
            self.load_here(id, word, miss.touch)?;
        }
        // What is needed first comes last, so that it is still there when the others have come.
        for (id, at) in miss.versions.into_iter().rev() {
            self.undo.recall(id, at)?;
        }
        Ok(())
    }
}

/// A page that is written to leave.
struct Leaving {
    frame: u32,
    id: PageId,
    word: Word,
    page: Page,
}

/// What becomes of a page that should leave.
enum Fate {
    /// It is as the map or its away block says.
    Forgotten,
    Written,
}

// Making room.
impl Pager {
    /// Pages fewer than the limit that the task in the background keeps.
    fn reserve(&self) -> usize {
        (self.limit() / 32).clamp(1, 4 * BATCH_PAGES)
    }

    /// Sees to it that there is room for one more page.
    fn make_room(self: &Arc<Self>) -> Result<()> {
        let resident = self.cache.resident();
        self.evict_beside_if_full();
        if resident < self.limit() {
            return Ok(());
        }
        // Somebody else is at it: a few more than the limit do no harm.
        let mut clock = match self.clock.try_lock() {
            Some(clock) => clock,
            None if resident < self.limit() + self.excess() => return Ok(()),
            None => self.clock.lock(),
        };
        let want = (resident.saturating_sub(self.limit()) + FOREGROUND_PAGES).min(BATCH_PAGES);
        self.evict(&mut clock, want)?;
        Ok(())
    }

    /// Pages above the limit that may be there for a moment.
    fn excess(&self) -> usize {
        self.limit() / 8 + BATCH_PAGES
    }

    /// Has room made by tasks, where there is little and none is at it: in this store, and in the
    /// others that share its room if they have more than is left for them.
    fn evict_beside_if_full(self: &Arc<Self>) {
        self.share.note(self.cache.resident() * PAGE_BYTES);
        self.share.room().relieve();
        self.clone().make_room_beside();
    }
}

impl Sharer for Pager {
    fn make_room_beside(self: Arc<Self>) {
        if self.cache.resident() + self.reserve() / 2 < self.limit()
            || self.evicting.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let env = self.env.clone();
        let task = move || -> LocalBoxFuture<'static, ()> { Box::pin(self.keep_room()) };
        env.spawn(Reactor::Pages(0), "page writer", Box::new(task));
    }
}

impl Pager {
    async fn keep_room(self: Arc<Self>) {
        loop {
            let most = self.limit() - self.reserve();
            let want = self.cache.resident().saturating_sub(most);
            let left = match want {
                0 => Ok(0),
                _ => self.evict(&mut self.clock.lock(), want.min(BATCH_PAGES)),
            };
            match left {
                Ok(0) => break,
                Ok(_) => base::turns::give_way().await,
                Err(error) => {
                    self.env.stop_node(&error.to_string());
                    break;
                }
            }
        }
        self.evicting.store(false, Ordering::Release);
    }

    /// Makes so many pages leave; fewer when too many are in use.
    fn evict(&self, clock: &mut Clock, want: usize) -> Result<usize> {
        self.cache.next_era();
        // Once around for each degree of heat, and once more.
        let mut steps = 5 * self.cache.frames_end() as usize;
        let mut left = 0;
        while left < want {
            let batch = (want - left).min(BATCH_PAGES);
            let chosen = self.choose(clock, batch, &mut steps);
            if chosen.is_empty() {
                break;
            }
            left += match self.evict_frames(&chosen) {
                // What is as it was on disk may leave even now.
                Err(error) if error.state() == SqlState::DISK_FULL => 0,
                left => left?,
            };
        }
        self.share.note(self.cache.resident() * PAGE_BYTES);
        Ok(left)
    }

    /// Chooses pages that should leave.
    fn choose(&self, clock: &mut Clock, count: usize, steps: &mut usize) -> Vec<u32> {
        let mut chosen = Vec::with_capacity(count);
        {
            let mut cold = self.cold.lock();
            let mut tries = cold.len().saturating_sub(self.limit() / 8).min(2 * count);
            while chosen.len() < count && tries > 0 {
                tries -= 1;
                let Some((frame, id)) = cold.pop_front() else {
                    break;
                };
                // Who is asked for is the clock's affair from now on.
                if self.cache.is_hot(frame, id) == Some(false) {
                    chosen.push(frame);
                }
            }
        }
        while chosen.len() < count {
            let Some((frame, id)) = clock.found.pop_front() else {
                self.find_cold(clock, steps);
                if clock.found.is_empty() {
                    break;
                }
                continue;
            };
            if self.cache.is_hot(frame, id) == Some(false) {
                chosen.push(frame);
            }
        }
        chosen
    }

    /// Has the hand go on until it has found as many cold pages as leave in one order.
    fn find_cold(&self, clock: &mut Clock, steps: &mut usize) {
        let end = self.cache.frames_end();
        let most = (self.limit() / FOUND_SHARE).max(BATCH_PAGES);
        let mut found = Vec::new();
        while found.len() < most && *steps > 0 && end > 0 {
            *steps -= 1;
            clock.hand = (clock.hand + 1) % end;
            found.extend(self.cache.cold_page(clock.hand).map(|id| (id, clock.hand)));
        }
        found.sort_unstable();
        let found = found.into_iter().map(|(id, frame)| (frame, id));
        clock.found.extend(found);
    }

    fn fate(&self, id: PageId, page: &Page) -> Fate {
        let is_away = self.places.lock().away.contains_key(&id);
        let is_unchanged = page.version == 0 && is_away;
        let is_published = page.epoch <= self.clean_epoch.load(Ordering::Acquire);
        // As it was read from there, where no page has history.
        let is_as_read = page.version == 0 && page.epoch == 0;
        let may_have_history = || !is_as_read && page.has_history(&self.undo);
        if is_unchanged || is_published && self.file.place(id).location != 0 && !may_have_history()
        {
            return Fate::Forgotten;
        }
        Fate::Written
    }

    /// Makes pages leave, as far as they may; returns how many have.
    fn evict_frames(&self, frames: &[u32]) -> Result<usize> {
        let mut gone: Vec<Page> = Vec::new();
        let mut changed: Vec<Leaving> = Vec::new();
        for frame in frames {
            let left = self.cache.try_evict(*frame, |id, word, page| {
                match self.fate(id, page) {
                    Fate::Forgotten => {
                        self.note_forgotten(id, page);
                        return true;
                    }
                    Fate::Written => changed.push(Leaving {
                        frame: *frame,
                        id,
                        word,
                        page: page.clone(),
                    }),
                }
                false
            });
            gone.extend(left);
        }
        if !changed.is_empty() {
            self.evict_changed(changed, &mut gone)?;
        }
        let left = gone.len();
        self.file.reuse(gone.into_iter().map(Page::into_buffer));
        self.counters
            .evictions
            .fetch_add(left as u64, Ordering::Relaxed);
        Ok(left)
    }

    /// Writes pages and makes them leave, unless they have changed meanwhile; adds those that have
    /// left.
    fn evict_changed(&self, mut changed: Vec<Leaving>, gone: &mut Vec<Page>) -> Result<()> {
        changed.sort_unstable_by_key(|leaving| leaving.id);
        let ids = changed.iter().map(|leaving| leaving.id);
        let locations = self.file.allocate_for(ids)?;
        let mut away = Vec::with_capacity(changed.len());
        for (leaving, location) in changed.iter_mut().zip(&locations) {
            let page = &mut leaving.page;
            let history = page.forget_history(&self.undo);
            let (location, crc) = (*location, page.stamp());
            away.push(Away {
                block: BlockRef { location, crc },
                epoch: page.epoch,
                history,
                adopted: false,
            });
        }
        let contents: Vec<(u32, &[u8])> = changed
            .iter()
            .zip(&locations)
            .map(|(leaving, location)| (*location, &leaving.page.bytes()[..]))
            .collect();
        self.file.write(&contents)?;
        for (leaving, away) in changed.iter().zip(&away) {
            let left = self.cache.try_evict(leaving.frame, |_, word, current| {
                let is_same = word == leaving.word && current.version == leaving.page.version;
                if is_same {
                    self.note_away(leaving.id, *away);
                }
                is_same
            });
            if left.is_none() {
                self.file.free_unpublished([away.block.location]);
            }
            gone.extend(left);
        }
        let count = changed.len() as u64;
        self.counters.writes.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    /// A page leaves that is as its block says: an away block of what it was before goes.
    fn note_forgotten(&self, id: PageId, page: &Page) {
        if page.version == 0 {
            return;
        }
        if let Some(away) = self.places.lock().away.remove(&id) {
            self.free(&away);
        }
    }

    fn note_away(&self, id: PageId, away: Away) {
        if let Some(before) = self.places.lock().away.insert(id, away) {
            self.free(&before);
        }
    }
}
