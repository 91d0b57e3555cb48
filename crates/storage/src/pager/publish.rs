//! What checkpoints do with pages that are not in memory.
//!
//! A checkpoint takes over the blocks of pages that are away and as they should be ([`Pager::adopt`]),
//! shares the blocks that it wrote itself ([`Pager::share`]), and settles all others when it is
//! published ([`Pager::publish`]): what the map then has as it is needs no block of its own.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use base::hash::HashSet;
use base::Lsn;

use super::{Adoption, Away, Pager, Places, Retirement, PLACES_PER_TURN};
use crate::cache::Touch;
use crate::page::PageId;
use crate::superblock::BlockRef;

impl Pager {
    /// Lets the checkpoint that is being written take over the block of a page that is not in
    /// memory, as it is there.
    pub(crate) fn adopt(&self, id: PageId) -> Adoption {
        let mut places = self.places.lock();
        match places.away.get_mut(&id) {
            Some(away) if away.history.is_some() => Adoption::Raw,
            Some(away) => {
                away.adopted = true;
                Adoption::Taken(away.block)
            }
            None => Adoption::Published,
        }
    }

    /// The checkpoint of an epoch has written pages without their versions in flight. Where those
    /// are released by now, that is how the pages are, and their blocks are the checkpoint's.
    pub(crate) fn share<'a>(
        &self,
        written: impl Iterator<Item = (&'a PageId, &'a BlockRef)>,
        (epoch, released): (u64, Lsn),
    ) {
        let mut places = self.places.lock();
        for (id, block) in written {
            let Some(away) = places.away.get_mut(id) else {
                continue;
            };
            let is_same = away.epoch <= epoch && away.history.is_some_and(|lsn| lsn <= released);
            if is_same && !away.adopted {
                self.free(away);
                *away = Away {
                    block: *block,
                    history: None,
                    adopted: true,
                    ..*away
                };
            }
        }
    }

    /// A checkpoint that has written pages to these blocks was given up: which of them are free.
    pub(crate) fn give_up<'a>(
        &self,
        moved: impl Iterator<Item = (&'a PageId, &'a BlockRef)>,
    ) -> Vec<u32> {
        let mut places = self.places.lock();
        let is_free = |(id, block): &(&PageId, &BlockRef)| match places.away.get_mut(id) {
            Some(away) if away.adopted && away.block == **block => {
                away.adopted = false;
                false
            }
            _ => true,
        };
        moved
            .filter(is_free)
            .map(|(_, block)| block.location)
            .collect()
    }

    /// The checkpoint of an epoch is published: pages are where it has put them. Returns the blocks
    /// that are free.
    pub(crate) fn publish(
        &self,
        changes: &BTreeMap<PageId, BlockRef>,
        next_page: u32,
        (epoch, released): (u64, Lsn),
    ) -> Vec<u32> {
        let kept = self.keep_retired(&self.retired_pages(changes));
        // Until the old blocks are given back, both places are good.
        let mut free = self.file.update_map(changes, next_page);
        free.retain(|block| !kept.contains(block));
        self.clean_epoch.store(epoch, Ordering::Release);
        let mut away: Vec<PageId> = self.places.lock().away.keys().copied().collect();
        away.sort_unstable();
        for ids in away.chunks(PLACES_PER_TURN) {
            let mut places = self.places.lock();
            free.extend(
                ids.iter()
                    .filter_map(|id| self.settle(&mut places, *id, epoch, released)),
            );
        }
        free
    }

    /// The pages of old versions that the checkpoint to be published does not have, and the last
    /// one has as they are.
    pub(super) fn retired_pages(
        &self,
        changes: &BTreeMap<PageId, BlockRef>,
    ) -> Vec<(PageId, Retirement)> {
        let gone = changes.iter().filter(|(_, block)| block.location == 0);
        let mut retired: Vec<(PageId, Retirement)> = {
            let places = self.places.lock();
            let gone = gone.filter_map(|(id, _)| Some((*id, places.kept_by_map(*id)?)));
            gone.collect()
        };
        // A page that was made since the last checkpoint has its predecessor's block there. It is
        // in memory, because a page that has left it since is away.
        let clean = self.clean_epoch.load(Ordering::Acquire);
        let is_new = |id: PageId| {
            let page = self.cache.read(id, Touch::Scan);
            page.is_some_and(|page| page.epoch > clean)
        };
        retired.retain(|(id, _)| !is_new(*id));
        retired
    }

    /// Notes as away, where the last checkpoint has them, pages that are still those that were
    /// found retired; returns their blocks.
    pub(super) fn keep_retired(&self, retired: &[(PageId, Retirement)]) -> HashSet<u32> {
        let mut kept: HashSet<u32> = HashSet::default();
        for part in retired.chunks(PLACES_PER_TURN) {
            let mut places = self.places.lock();
            for (id, retirement) in part {
                let block = self.file.place(*id);
                // The writer goes on meanwhile: it may have given the page back, and made and
                // retired another under its id, which this block has not.
                if block.location == 0 || places.kept_by_map(*id) != Some(*retirement) {
                    continue;
                }
                kept.insert(block.location);
                let away = Away {
                    block,
                    epoch: 0,
                    history: None,
                    adopted: false,
                };
                places.away.insert(*id, away);
            }
        }
        kept
    }

    /// Forgets where a page is away if the map has it as it is there; returns its block if that is
    /// free.
    fn settle(&self, places: &mut Places, id: PageId, epoch: u64, released: Lsn) -> Option<u32> {
        let away = *places.away.get(&id)?;
        let published = self.file.place(id);
        if away.adopted && published == away.block {
            places.away.remove(&id);
            return None;
        }
        let is_same = away.epoch <= epoch && away.history.is_none_or(|lsn| lsn <= released);
        if away.adopted || !is_same || published.location == 0 || places.retired.contains_key(&id) {
            return None;
        }
        places.away.remove(&id);
        Some(away.block.location)
    }
}
