//! Page ids that are free, as runs of ids that follow one another: a long row takes a run.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::PageId;

/// Free page ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreePages {
    /// Where each run begins, and its length. No two runs touch.
    runs: BTreeMap<u32, u32>,
    /// The same by length.
    by_len: BTreeSet<(u32, u32)>,
    count: usize,
}

impl FreePages {
    pub(crate) fn of(ids: impl IntoIterator<Item = PageId>) -> FreePages {
        let mut free = FreePages::default();
        ids.into_iter().for_each(|id| free.give_back(id));
        free
    }

    /// How many ids are free.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PageId> + '_ {
        let ids = |(first, len): (&u32, &u32)| *first..first + len;
        self.runs.iter().flat_map(ids).map(PageId)
    }

    /// Takes the first of so many ids that follow one another, out of the shortest run that has
    /// them.
    pub(crate) fn take(&mut self, count: u32) -> Option<PageId> {
        let (len, first) = *self.by_len.range((count, 0)..).next()?;
        self.remove(first, len);
        if len > count {
            self.insert(first + count, len - count);
        }
        self.count -= count as usize;
        Some(PageId(first))
    }

    /// Gives an id back.
    pub(crate) fn give_back(&mut self, id: PageId) {
        let (mut first, mut end) = (id.0, id.0 + 1);
        let before = self.runs.range(..=id.0).next_back();
        if let Some((start, len)) = before.map(|(start, len)| (*start, *len)) {
            assert!(
                start + len <= id.0,
                "page {} is free twice, in {len} from {start}",
                id.0
            );
            if start + len == first {
                self.remove(start, len);
                first = start;
            }
        }
        if let Some(len) = self.runs.get(&end).copied() {
            self.remove(end, len);
            end += len;
        }
        self.insert(first, end - first);
        self.count += 1;
    }

    fn insert(&mut self, first: u32, len: u32) {
        self.runs.insert(first, len);
        self.by_len.insert((len, first));
    }

    fn remove(&mut self, first: u32, len: u32) {
        self.runs.remove(&first);
        self.by_len.remove(&(len, first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_and_are_cut() {
        let mut free = FreePages::of([5, 3, 9, 4, 8].map(PageId));
        assert_eq!(free.take(3), Some(PageId(3)));
        assert_eq!(free.take(3), None);
        assert_eq!(free.take(1), Some(PageId(8)));
        assert_eq!(free.iter().collect::<Vec<_>>(), [PageId(9)]);
        assert_eq!(free.len(), 1);
    }
}
