//! Pages that tasks read: those that somebody waits for first, then those that will be needed soon.
//!
//! A disk gives many blocks that lie side by side for hardly more than one. So what is asked for
//! together is put in the order of its places and cut into *runs*, each of which is one read; what
//! lies between is read along and forgotten. Runs are read in the order in which their first pages
//! are needed.
//!
//! ```text
//!   needed, in this order   a  b  c  d  e  f
//!   their blocks            7 90  9 91  8 40
//!   runs                    7–9: a e c │ 90–91: b d │ 40: f
//! ```
//!
//! Of runs that nobody waits for yet, a task says to the system that it will read them, some dozens
//! at a time, and then reads one after the other, the first of which has come meanwhile.
//!
//! # Invariants
//! - A page is read by one task at a time; who asks for it meanwhile waits for that one.
//! - What comes early takes no more than its share of the room.
//!
//! A run is only a guess at where pages lie: one that has moved since, or that cannot be read so,
//! is read alone ([`Pager::load`]), which knows what to make of errors.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use base::env::{LocalBoxFuture, Reactor, PAGE_REACTORS};
use base::hash::HashMap;
use base::sync::{Event, Mutex};
use base::{usage, Error, ErrorClass, Lsn, Result};

use super::{Miss, Pager, Pages};
use crate::cache::{Touch, Word};
use crate::file::SPAN_BLOCKS_MAX;
use crate::page::{Page, PageId, PAGE_BYTES};
use crate::undo::UndoId;

/// There is a task that reads for each so many runs that will be needed soon. It says of all of
/// them what it will read before it reads the first: so the disk is busy with many while one thread
/// reads what is there, and hardly ever has to sleep and be woken.
const RUNS_PER_READER: usize = 32;

/// One of so many parts of the room for pages may be taken by what is read early: half of what
/// scans may keep.
const AHEAD_SHARE: usize = 16;

/// Blocks in a row that nobody wants and that are read along.
const GAP_BLOCKS_MAX: u32 = 3;

/// Somebody's wait for pages.
#[derive(Debug, Default)]
struct Wait {
    left: AtomicUsize,
    error: Mutex<Option<Error>>,
    done: Event,
}

impl Wait {
    /// One of the things that are waited for is there.
    fn arrive(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.done.notify_all();
        }
    }
}

struct Request {
    word: Word,
    touch: Touch,
    waiting: Vec<Arc<Wait>>,
    /// Somebody reads it.
    taken: bool,
}

/// Pages that are read at one time.
type Run = Vec<PageId>;

/// A run that somebody reads.
type Taken = Vec<(PageId, Word, Touch)>;

#[derive(Default)]
pub(super) struct Requests {
    /// Those that somebody waits for; they come first.
    needed: VecDeque<Run>,
    /// Those that will be needed soon. One that somebody waits for by now is in both.
    ahead: VecDeque<Run>,
    /// By page: those in the queues and those being read.
    by_page: HashMap<PageId, Request>,
    /// Which reactors read, a bit for each.
    reading: u64,
}

const _: () = assert!(PAGE_REACTORS <= 64, "there is a bit for each reactor");

impl Requests {
    /// Asks for a page; true if it must be put in a queue.
    fn ask(&mut self, id: PageId, word: Word, touch: Touch, wait: Option<&Arc<Wait>>) -> bool {
        let mut is_new = false;
        let request = self.by_page.entry(id).or_insert_with(|| {
            is_new = true;
            Request {
                word,
                touch,
                waiting: Vec::new(),
                taken: false,
            }
        });
        let is_first_to_wait = wait.is_some() && !request.taken && request.waiting.is_empty();
        request.waiting.extend(wait.cloned());
        is_new || is_first_to_wait
    }

    /// Asks for runs of pages, without those that are in a queue or being read already.
    fn ask_for(&mut self, runs: Vec<Pages>, touch: Touch, wait: Option<&Arc<Wait>>) {
        for found in runs {
            let found = found.into_iter();
            let new = found.filter(|(id, word)| self.ask(*id, *word, touch, wait));
            let run: Run = new.map(|(id, _)| id).collect();
            if run.is_empty() {
                continue;
            }
            match wait {
                Some(_) => self.needed.push_back(run),
                None => self.ahead.push_back(run),
            }
        }
    }

    /// The next pages to read that somebody waits for.
    fn take_needed(&mut self) -> Option<Taken> {
        take(&mut self.needed, &mut self.by_page)
    }

    /// The next pages to read that will be needed soon.
    fn take_ahead(&mut self) -> Option<Taken> {
        take(&mut self.ahead, &mut self.by_page)
    }
}

/// Takes the first run of a queue of which there is something that nobody reads yet.
fn take(queue: &mut VecDeque<Run>, by_page: &mut HashMap<PageId, Request>) -> Option<Taken> {
    let mut claim = |id: PageId| {
        let request = by_page.get_mut(&id).filter(|request| !request.taken)?;
        request.taken = true;
        Some((id, request.word, request.touch))
    };
    let mut runs = std::iter::from_fn(|| queue.pop_front());
    runs.find_map(|run| {
        let taken: Taken = run.into_iter().filter_map(&mut claim).collect();
        (!taken.is_empty()).then_some(taken)
    })
}

impl Pager {
    /// As [`Pager::fetch`], for a task.
    pub(crate) async fn fetched(self: &Arc<Self>, miss: Miss) -> Result<()> {
        let wait = Arc::new(Wait {
            left: AtomicUsize::new(miss.needed.len() + usize::from(!miss.versions.is_empty())),
            ..Wait::default()
        });
        let runs = self.runs(&miss.needed);
        {
            let mut requests = self.requests.lock();
            requests.ask_for(runs, miss.touch, Some(&wait));
            let wanted = requests.reading.count_ones() as usize + requests.needed.len();
            self.employ(&mut requests, wanted);
        }
        if !miss.versions.is_empty() {
            self.recall_beside(miss.versions, &wait);
        }
        self.prefetch(&miss.ahead, miss.touch);
        let left = || (wait.left.load(Ordering::SeqCst) == 0).then_some(());
        wait.done.until(left).await;
        let error = wait.error.lock().take();
        error.map_or(Ok(()), Err)
    }

    /// Has versions recalled from the spill file by a task.
    fn recall_beside(self: &Arc<Self>, versions: Vec<(UndoId, Lsn)>, wait: &Arc<Wait>) {
        let (this, wait) = (self.clone(), wait.clone());
        let reactor = Reactor::Pages(versions[0].0 .0 as usize / PAGE_BYTES % PAGE_REACTORS);
        let task = move || -> LocalBoxFuture<'static, ()> {
            Box::pin(async move {
                for (id, at) in versions.into_iter().rev() {
                    if let Err(error) = this.undo.recall(id, at) {
                        this.tell(std::slice::from_ref(&wait), &error);
                        break;
                    }
                }
                wait.arrive();
            })
        };
        self.env.spawn(reactor, "version reader", Box::new(task));
    }

    /// Notes what went wrong for those who wait.
    fn tell(&self, waiting: &[Arc<Wait>], error: &Error) {
        if error.class() == ErrorClass::Node {
            self.env.stop_node(&error.to_string());
        }
        for wait in waiting {
            wait.error.lock().get_or_insert_with(|| error.clone());
        }
    }

    /// Whether all that a miss needs is in a queue or being read.
    pub(crate) fn is_asked_for(&self, miss: &Miss) -> bool {
        let requests = self.requests.lock();
        let is_known = |(id, _): &(PageId, Word)| requests.by_page.contains_key(id);
        miss.needed.iter().all(is_known)
    }

    /// Pages that may be read early at one time.
    pub(crate) fn room_ahead(&self) -> usize {
        self.limit() / AHEAD_SHARE
    }

    /// Has pages read that will be needed soon, the first ones first.
    pub(crate) fn prefetch(self: &Arc<Self>, pages: &[(PageId, Word)], touch: Touch) {
        if pages.is_empty() {
            return;
        }
        // What comes early must not drive out what is needed now, nor others that come early.
        let room = self.room_ahead();
        let mut wanted = pages[..pages.len().min(room)].to_vec();
        {
            let requests = self.requests.lock();
            wanted.retain(|(id, _)| !requests.by_page.contains_key(id));
            let left = room
                .max(PAGE_REACTORS)
                .saturating_sub(requests.by_page.len());
            wanted.truncate(left);
        }
        if usage::is_counted() {
            usage::read_pages(wanted.len());
        }
        let runs = self.runs(&wanted);
        let mut requests = self.requests.lock();
        requests.ask_for(runs, touch, None);
        let wanted = requests.ahead.len().div_ceil(RUNS_PER_READER);
        self.employ(&mut requests, wanted);
    }

    /// Cuts pages into those that one read brings.
    pub(super) fn runs(&self, pages: &[(PageId, Word)]) -> Vec<Pages> {
        if let [page] = pages {
            return vec![vec![*page]];
        }
        let location = |id| self.source(id).map_or(0, |(block, _)| block.location);
        let places = pages.iter().enumerate();
        let mut places: Vec<(u32, usize)> = places
            .map(|(rank, (id, _))| (location(*id), rank))
            .collect();
        places.sort_unstable();
        let mut runs: Vec<(usize, Pages)> = Vec::new();
        let (mut first, mut last) = (0, 0);
        for (location, rank) in places {
            let begins_anew = location.saturating_sub(last) > 1 + GAP_BLOCKS_MAX
                || location - first >= SPAN_BLOCKS_MAX;
            if begins_anew || runs.is_empty() {
                runs.push((rank, Vec::new()));
                first = location;
            }
            last = location;
            if let Some((needed, run)) = runs.last_mut() {
                *needed = rank.min(*needed);
                run.push(pages[rank]);
            }
        }
        runs.sort_unstable_by_key(|(rank, _)| *rank);
        runs.into_iter().map(|(_, run)| run).collect()
    }

    /// Sees to it that so many tasks read, if there may be so many.
    fn employ(self: &Arc<Self>, requests: &mut Requests, wanted: usize) {
        // The first reactor also writes what leaves memory.
        for reactor in (1..PAGE_REACTORS).chain([0]) {
            if requests.reading.count_ones() as usize >= wanted {
                break;
            }
            if requests.reading & (1 << reactor) != 0 {
                continue;
            }
            requests.reading |= 1 << reactor;
            let this = self.clone();
            let task = move || -> LocalBoxFuture<'static, ()> { Box::pin(this.serve(reactor)) };
            self.env
                .spawn(Reactor::Pages(reactor), "page reader", Box::new(task));
        }
    }

    /// Reads what was asked for until there is nothing more.
    async fn serve(self: Arc<Self>, reactor: usize) {
        let mut announced = VecDeque::new();
        while let Some(run) = self.next_run(reactor, &mut announced) {
            let read = self.read_run(&run);
            for ((id, word, touch), page) in run.into_iter().zip(read) {
                let loaded = match page {
                    Some(page) => self.install(id, word, page, touch),
                    None => self.load(id, word, touch),
                };
                self.answer(id, loaded);
            }
            base::turns::give_way().await;
        }
    }

    /// What the task on a reactor reads next; it ends when there is nothing more. Of what nobody
    /// waits for it says first that it will read it.
    pub(super) fn next_run(
        &self,
        reactor: usize,
        announced: &mut VecDeque<Taken>,
    ) -> Option<Taken> {
        loop {
            let ahead = {
                let mut requests = self.requests.lock();
                let needed = requests.take_needed();
                if needed.is_some() {
                    return needed;
                }
                let may_announce = announced.len() < RUNS_PER_READER;
                let ahead = may_announce.then(|| requests.take_ahead()).flatten();
                if ahead.is_none() && announced.is_empty() {
                    requests.reading &= !(1 << reactor);
                }
                ahead
            };
            let Some(run) = ahead else {
                return announced.pop_front();
            };
            self.announce(&run);
            announced.push_back(run);
        }
    }

    /// Says that a run will be read.
    fn announce(&self, run: &Taken) {
        let sources = run.iter().filter_map(|(id, _, _)| self.source(*id));
        let locations: Vec<u32> = sources.map(|(block, _)| block.location).collect();
        self.file.will_read(&locations);
    }

    /// Tells those who wait for a page.
    fn answer(&self, id: PageId, loaded: Result<()>) {
        let request = self.requests.lock().by_page.remove(&id);
        let waiting = request.map_or_else(Vec::new, |request| request.waiting);
        if let Err(error) = &loaded {
            self.tell(&waiting, error);
        }
        waiting.iter().for_each(|wait| wait.arrive());
    }

    /// What one read brings of a run: nothing for a page that it does not bring.
    pub(super) fn read_run(&self, run: &Taken) -> Vec<Option<Page>> {
        let nothing = || run.iter().map(|_| None).collect();
        let sources: Option<Vec<_>> = run.iter().map(|(id, _, _)| self.source(*id)).collect();
        let Some(sources) = sources.filter(|sources| sources.len() > 1) else {
            return nothing();
        };
        let blocks = sources.iter().zip(run);
        let blocks = blocks.map(|((block, _), (id, _, _))| (*block, u64::from(id.0)));
        let Ok(read) = self.file.read_blocks(&blocks.collect::<Vec<_>>()) else {
            return nothing();
        };
        let pages = read.into_iter().zip(sources).zip(run);
        let page =
            |((page, (_, epoch)), (id, word, _)): ((Result<Page>, _), &(PageId, Word, _))| {
                let mut page = page.ok()?;
                // It was not in memory when it was asked for, and nothing has come in its place.
                if word.is_resident() || self.cache.word(*id) != *word {
                    return None;
                }
                page.epoch = epoch;
                self.counters.reads.fetch_add(1, Ordering::Relaxed);
                Some(page)
            };
        pages.map(page).collect()
    }
}
