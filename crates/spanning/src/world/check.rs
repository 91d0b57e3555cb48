//! Whether what sessions were told can be true.

use std::collections::{BTreeMap, BTreeSet};

use super::{Item, Report, Row, Values};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    Committed,
    Aborted,
    /// Nobody has said.
    Unknown,
}

pub(super) struct Write {
    pub(super) client: usize,
    pub(super) item: Item,
    pub(super) rows: Vec<Row>,
    /// When its client was told.
    pub(super) end: u64,
    pub(super) outcome: WriteOutcome,
    pub(super) order: u64,
}

pub(super) struct Read {
    pub(super) client: usize,
    pub(super) values: Values,
    pub(super) begin: u64,
    pub(super) order: u64,
}

/// All that sessions did and were told.
#[derive(Default)]
pub(super) struct History {
    pub(super) writes: Vec<Write>,
    pub(super) reads: Vec<Read>,
    /// Two reads at one timestamp that differ.
    pub(super) unstable: Option<String>,
    orders: std::cell::Cell<u64>,
}

impl History {
    /// Numbers what happens, for the order within a session.
    pub(super) fn order(&self) -> u64 {
        self.orders.set(self.orders.get() + 1);
        self.orders.get()
    }

    pub(super) fn report(&self) -> Report {
        let writes = self.writes.iter();
        let committed = writes.filter(|write| write.outcome == WriteOutcome::Committed);
        let spans = |write: &&Write| {
            let groups: BTreeSet<_> = write.rows.iter().map(|row| row.0).collect();
            groups.len() > 1
        };
        Report {
            commits: committed.clone().count(),
            spanning: committed.filter(spans).count(),
            reads: self.reads.len(),
            ..Report::default()
        }
    }

    /// What is wrong, with the lists as they are in the end.
    pub(super) fn check(&self, lists: &Values) -> Option<String> {
        let found = self.unstable.clone();
        let found = found.or_else(|| self.check_writes(lists));
        let found = found.or_else(|| self.check_reads(lists));
        found.or_else(|| self.check_order(lists))
    }

    /// Whether each write happened wholly or not at all, once, and as its client was told.
    fn check_writes(&self, lists: &Values) -> Option<String> {
        let mut places: BTreeMap<Item, Vec<Row>> = BTreeMap::new();
        for (row, items) in lists {
            for item in items {
                places.entry(*item).or_default().push(*row);
            }
        }
        for write in &self.writes {
            let mut rows = write.rows.clone();
            rows.sort_unstable();
            let found = places.get(&write.item);
            match (found, write.outcome) {
                (None, WriteOutcome::Committed) => {
                    return Some(format!("write {} is lost", write.item));
                }
                (Some(_), WriteOutcome::Aborted) => {
                    return Some(format!("write {} was not aborted", write.item));
                }
                (Some(found), _) if *found != rows => {
                    let item = write.item;
                    return Some(format!("write {item} is in {found:?} instead of {rows:?}"));
                }
                _ => {}
            }
        }
        None
    }

    /// Whether each read saw lists as they once were, with all that was acknowledged before.
    fn check_reads(&self, lists: &Values) -> Option<String> {
        let mut acknowledged: BTreeMap<Row, Vec<(u64, Item)>> = BTreeMap::new();
        for write in &self.writes {
            if write.outcome == WriteOutcome::Committed {
                for row in &write.rows {
                    let of_row = acknowledged.entry(*row).or_default();
                    of_row.push((write.end, write.item));
                }
            }
        }
        for read in &self.reads {
            for (row, items) in &read.values {
                if !lists.get(row).is_some_and(|list| list.starts_with(items)) {
                    let (client, list) = (read.client, &lists[row]);
                    return Some(format!(
                        "client {client} read {items:?} in {row:?}, which became {list:?}"
                    ));
                }
                let of_row = acknowledged.get(row).into_iter().flatten();
                for (end, item) in of_row {
                    if *end < read.begin && !items.contains(item) {
                        let client = read.client;
                        return Some(format!("client {client} did not see {item} in {row:?}"));
                    }
                }
            }
        }
        None
    }

    /// Whether there is one order of all writes and reads: no cycle of what comes before what.
    fn check_order(&self, lists: &Values) -> Option<String> {
        // Nodes are writes by item, and reads behind them.
        let greatest = self.writes.iter().map(|write| write.item).max();
        let reads = greatest.unwrap_or(0) as usize + 1;
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); reads + self.reads.len()];
        for items in lists.values() {
            for pair in items.windows(2) {
                after[pair[0] as usize].push(pair[1] as usize);
            }
        }
        for (at, read) in self.reads.iter().enumerate() {
            for (row, items) in &read.values {
                if let Some(last) = items.last() {
                    after[*last as usize].push(reads + at);
                }
                if let Some(next) = lists[row].get(items.len()) {
                    after[reads + at].push(*next as usize);
                }
            }
        }
        // A session's own order.
        let mut sessions: BTreeMap<usize, Vec<(u64, usize)>> = BTreeMap::new();
        for write in &self.writes {
            if write.outcome == WriteOutcome::Committed {
                let of_client = sessions.entry(write.client).or_default();
                of_client.push((write.order, write.item as usize));
            }
        }
        for (at, read) in self.reads.iter().enumerate() {
            let of_client = sessions.entry(read.client).or_default();
            of_client.push((read.order, reads + at));
        }
        for of_client in sessions.values_mut() {
            of_client.sort_unstable();
            for pair in of_client.windows(2) {
                after[pair[0].1].push(pair[1].1);
            }
        }
        cycle(&after).map(|cycle| {
            let name = |node: &usize| match node.checked_sub(reads) {
                Some(at) => format!("read {at} {:?}", self.reads[at].values),
                None => format!("write {node}"),
            };
            let names: Vec<String> = cycle.iter().map(name).collect();
            format!("no order: {}", names.join(" < "))
        })
    }
}

/// A cycle of a graph, if it has one.
fn cycle(after: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut left: Vec<usize> = vec![0; after.len()];
    for to in after.iter().flatten() {
        left[*to] += 1;
    }
    let mut ready: Vec<usize> = (0..after.len()).filter(|node| left[*node] == 0).collect();
    while let Some(node) = ready.pop() {
        for to in &after[node] {
            left[*to] -= 1;
            if left[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    // What is left lies on cycles or behind them: go back until a node comes again.
    let mut before: Vec<Option<usize>> = vec![None; after.len()];
    for (from, all) in after.iter().enumerate() {
        for to in all {
            if left[from] > 0 && left[*to] > 0 {
                before[*to] = Some(from);
            }
        }
    }
    let mut node = (0..after.len()).find(|node| left[*node] > 0)?;
    let mut seen = Vec::new();
    while !seen.contains(&node) {
        seen.push(node);
        node = before[node]?;
    }
    let begin = seen.iter().position(|one| *one == node)?;
    let mut cycle = seen.split_off(begin);
    cycle.reverse();
    Some(cycle)
}
