//! What a history of list-appends says, by Elle's method.
//!
//! Transactions append numbers to lists and read whole lists. A list tells in which order its
//! numbers were appended, so the longest read of a key is the order of its versions, and from it
//! follows who must come before whom:
//!
//! ```text
//! ww   T1 appended 3, T2 appended the next: [… 3 7 …]            T1 → T2
//! wr   T2's read ends with what T1 appended: [… 3]               T1 → T2
//! rw   T1's read lacks what T2 appended next: [… 3], then 7      T1 → T2
//! time T1 ended before T2 began                                  T1 → T2
//! ```
//! A circle means that no order of the transactions explains what they saw. Without edges of time,
//! the history is not what its levels promise; with them, not in the order of time.
//!
//! # What each level forbids
//! | transactions at | circles that must not be | because |
//! |---|---|---|
//! | SERIALIZABLE, among themselves | any | there is a serial order |
//! | REPEATABLE READ or above | any without two rw edges in a row | each edge but rw leads to a later snapshot, and an rw edge to a later commit |
//! | READ COMMITTED or above | any of ww, wr and time | each of these leads to a later commit |
//!
//! Each line looks at its own transactions only: what the others have appended lies between, and
//! order goes through them. In Elle's words, circles are G0 (ww), G1c (and wr), G-single (one rw),
//! G-nonadjacent (no two rw in a row) and G2.
//!
//! Beside circles: reads of one key that are no prefixes of one another, numbers that nobody
//! committed (G1a), reads of a transaction's half (G1b), numbers that are there twice, and
//! acknowledged numbers that the last read lacks. What was read by transactions that did not commit
//! counts here too, where it is known: it was shown to somebody.

use std::collections::BTreeMap;

use base::env::Instant;

/// How a transaction ended, as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It committed.
    Committed,
    /// It did not happen.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// What a transaction was promised. In order of strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// READ COMMITTED.
    Committed,
    /// REPEATABLE READ, as snapshots.
    Snapshot,
    /// SERIALIZABLE.
    Serializable,
}

impl Isolation {
    /// All of them.
    pub const ALL: [Isolation; 3] = [
        Isolation::Committed,
        Isolation::Snapshot,
        Isolation::Serializable,
    ];

    /// As in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::Committed => "read committed",
            Isolation::Snapshot => "repeatable read",
            Isolation::Serializable => "serializable",
        }
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A number at the end of a key's list.
    Append(u64, u64),
    /// A key's list; none where the answer is not known.
    Read(u64, Option<Vec<u64>>),
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// What it was promised.
    pub level: Isolation,
    /// What it did, in order.
    pub steps: Vec<Step>,
    /// When it was sent.
    pub began: Instant,
    /// When its answer came.
    pub ended: Instant,
    /// How it ended.
    pub end: End,
}

impl Transaction {
    /// Nobody knows any more what became of it, nor whether what it has seen still is so.
    pub fn forget(&mut self) {
        self.end = End::Unknown;
        for step in &mut self.steps {
            if let Step::Read(_, list) = step {
                *list = None;
            }
        }
    }
}

/// What is wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Not what the levels promise: what was seen, in a sentence.
    Serializable(String),
    /// What they promise, and against the order of time.
    Strict(String),
    /// An acknowledged append is gone.
    Lost(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    WriteWrite,
    WriteRead,
    ReadWrite,
    Time,
}

/// Sentences of one sort at most.
const SENTENCES_MAX: usize = 5;

/// Judges a history. `last` are the lists as they stood after everything had ended.
pub fn judge(history: &[Transaction], last: &BTreeMap<u64, Vec<u64>>) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let writers = writers(history);
    let orders = orders(history, last, &mut wrong);
    check_reads(history, &writers, &mut wrong);
    check_lost(history, last, &mut wrong);
    for level in Isolation::ALL.into_iter().rev() {
        let mut graph = dependencies(history, &writers, &orders, level);
        if let Some(found) = forbidden(&graph, level) {
            wrong.push(Wrong::Serializable(describe(&found, level)));
            break;
        }
        add_time(history, level, &mut graph);
        if let Some(found) = forbidden(&graph, level) {
            wrong.push(Wrong::Strict(describe(&found, level)));
            break;
        }
    }
    wrong
}

/// Which transaction appended each number.
fn writers(history: &[Transaction]) -> BTreeMap<u64, usize> {
    let mut writers = BTreeMap::new();
    for (index, transaction) in history.iter().enumerate() {
        for step in &transaction.steps {
            if let Step::Append(_, number) = step {
                writers.insert(*number, index);
            }
        }
    }
    writers
}

/// The order of each key's versions: its longest read, of which all others are beginnings.
fn orders(
    history: &[Transaction],
    last: &BTreeMap<u64, Vec<u64>>,
    wrong: &mut Vec<Wrong>,
) -> BTreeMap<u64, Vec<u64>> {
    let mut orders = last.clone();
    let mut said = 0;
    for (key, list) in reads(history) {
        let order = orders.entry(key).or_default();
        let shared = order.len().min(list.len());
        if order[..shared] != list[..shared] && said < SENTENCES_MAX {
            said += 1;
            wrong.push(Wrong::Serializable(format!(
                "list {key} was read as {} and as {}, neither the beginning of the other",
                tail(order),
                tail(list)
            )));
        }
        if list.len() > order.len() {
            *order = list.to_vec();
        }
    }
    orders
}

/// All reads whose answers are known, but for what their own transactions appended before.
fn reads(history: &[Transaction]) -> impl Iterator<Item = (u64, &[u64])> {
    history.iter().flat_map(|one| {
        one.steps.iter().filter_map(|step| match step {
            Step::Read(key, Some(list)) if one.end == End::Committed => Some((*key, &list[..])),
            Step::Read(key, Some(list)) => Some((*key, before_own(one, list))),
            _ => None,
        })
    })
}

/// The beginning of a list, up to what the transaction itself appended.
fn before_own<'a>(transaction: &Transaction, list: &'a [u64]) -> &'a [u64] {
    let is_own = |number: &u64| {
        let mut steps = transaction.steps.iter();
        steps.any(|step| matches!(step, Step::Append(_, own) if own == number))
    };
    let end = list.iter().position(is_own).unwrap_or(list.len());
    &list[..end]
}

fn tail(list: &[u64]) -> String {
    let from = list.len().saturating_sub(4);
    let dots = if from > 0 { "…, " } else { "" };
    let numbers: Vec<String> = list[from..].iter().map(u64::to_string).collect();
    format!("[{dots}{}]", numbers.join(", "))
}

/// Numbers of nobody, of refused transactions, twice, and of halves of transactions.
fn check_reads(history: &[Transaction], writers: &BTreeMap<u64, usize>, wrong: &mut Vec<Wrong>) {
    let mut said = 0;
    for (index, reader) in history.iter().enumerate() {
        for step in &reader.steps {
            let Step::Read(key, Some(list)) = step else {
                continue;
            };
            let list = match reader.end {
                End::Committed => &list[..],
                _ => before_own(reader, list),
            };
            let mut seen = std::collections::BTreeSet::new();
            for number in list {
                let sentence = match writers.get(number) {
                    _ if !seen.insert(*number) => format!("list {key} holds {number} twice"),
                    None => format!("list {key} holds {number}, which nobody appended"),
                    Some(writer) if history[*writer].end == End::Refused => {
                        let (began, ended) = (history[*writer].began, history[*writer].ended);
                        format!(
                            "list {key} holds {number} of a transaction that was refused (G1a), \
                             T{writer}, from {began:?} to {ended:?}"
                        )
                    }
                    _ => continue,
                };
                said += 1;
                if said <= SENTENCES_MAX {
                    wrong.push(Wrong::Serializable(sentence));
                }
            }
            let half = list.last().and_then(|number| {
                let writer = writers.get(number).filter(|writer| **writer != index)?;
                let steps = history[*writer].steps.iter();
                let last = steps.rev().find_map(|step| match step {
                    Step::Append(other, number) if other == key => Some(*number),
                    _ => None,
                })?;
                (last != *number).then_some(*number)
            });
            if let Some(number) = half {
                let sentence = format!(
                    "a read of list {key} ends with {number}, in the middle of a transaction (G1b)"
                );
                wrong.push(Wrong::Serializable(sentence));
            }
        }
    }
}

fn check_lost(history: &[Transaction], last: &BTreeMap<u64, Vec<u64>>, wrong: &mut Vec<Wrong>) {
    let mut lost = Vec::new();
    for one in history.iter().filter(|one| one.end == End::Committed) {
        for step in &one.steps {
            if let Step::Append(key, number) = step {
                if !last.get(key).is_some_and(|list| list.contains(number)) {
                    lost.push(*number);
                }
            }
        }
    }
    if !lost.is_empty() {
        wrong.push(Wrong::Lost(format!(
            "{} acknowledged appends are gone, the first of them {}",
            lost.len(),
            tail(&lost[..lost.len().min(4)])
        )));
    }
}

type Graph = Vec<Vec<(usize, Edge)>>;

/// A circle: its transactions, each with the edge that leaves it.
type Circle = Vec<(usize, Edge)>;

/// Whether a transaction's place in the order matters: it happened, or may have, and was promised
/// as much as is looked at.
fn counts(transaction: &Transaction, level: Isolation) -> bool {
    transaction.end != End::Refused && transaction.level >= level
}

/// Who comes before whom among the transactions of a level or above. Others' appends lie between
/// theirs, and are passed over.
fn dependencies(
    history: &[Transaction],
    writers: &BTreeMap<u64, usize>,
    orders: &BTreeMap<u64, Vec<u64>>,
    level: Isolation,
) -> Graph {
    let mut graph: Graph = vec![Vec::new(); history.len()];
    let mut edge = |from: usize, to: usize, kind: Edge| {
        if from != to {
            graph[from].push((to, kind));
        }
    };
    let writer = |number: &u64| {
        let writer = writers.get(number).copied();
        writer.filter(|writer| counts(&history[*writer], level))
    };
    for order in orders.values() {
        let known: Vec<usize> = order.iter().filter_map(writer).collect();
        for pair in known.windows(2) {
            edge(pair[0], pair[1], Edge::WriteWrite);
        }
    }
    for (reader, transaction) in history.iter().enumerate() {
        if transaction.end != End::Committed || !counts(transaction, level) {
            continue;
        }
        for step in &transaction.steps {
            let Step::Read(key, Some(list)) = step else {
                continue;
            };
            if let Some(writer) = list.iter().rev().find_map(writer) {
                edge(writer, reader, Edge::WriteRead);
            }
            let order = orders.get(key).map_or(&[][..], Vec::as_slice);
            // Its own appends lie after what it read.
            let unread = order.get(list.len()..).unwrap_or_default();
            if let Some(next) = unread.iter().find_map(writer) {
                // At READ COMMITTED each statement has its own snapshot.
                if level > Isolation::Committed {
                    edge(reader, next, Edge::ReadWrite);
                }
            }
        }
    }
    graph
}

/// Edges of time, as few as say the same: from those that had ended when another began and that
/// nobody follows who had ended too.
fn add_time(history: &[Transaction], level: Isolation, graph: &mut Graph) {
    let mut events: Vec<(Instant, bool, usize)> = Vec::new();
    for (index, one) in history.iter().enumerate() {
        if counts(one, level) {
            events.push((one.began, true, index));
            if one.end == End::Committed {
                events.push((one.ended, false, index));
            }
        }
    }
    // What ends at the moment when another begins is not before it.
    events.sort_by_key(|(at, begins, index)| (*at, !*begins, *index));
    let mut frontier: Vec<usize> = Vec::new();
    for (_, begins, index) in events {
        if begins {
            for earlier in &frontier {
                graph[*earlier].push((index, Edge::Time));
            }
        } else {
            let began = history[index].began;
            frontier.retain(|earlier| history[*earlier].ended >= began);
            frontier.push(index);
        }
    }
}

/// A circle that the level forbids.
fn forbidden(graph: &Graph, level: Isolation) -> Option<Circle> {
    if level != Isolation::Snapshot {
        return circle(graph);
    }
    // Each transaction stands there twice: as reached by an rw edge, and as reached by another. Who
    // was reached by one is left by another only.
    let mut doubled: Graph = vec![Vec::new(); 2 * graph.len()];
    for (from, edges) in graph.iter().enumerate() {
        for (to, kind) in edges {
            let by_rw = usize::from(*kind == Edge::ReadWrite);
            doubled[2 * from].push((2 * to + by_rw, *kind));
            if by_rw == 0 {
                doubled[2 * from + 1].push((2 * to, *kind));
            }
        }
    }
    let found = circle(&doubled)?;
    Some(found.into_iter().map(|(at, kind)| (at / 2, kind)).collect())
}

/// A short circle, if there is one: found by walking in depth, then shortened in breadth.
fn circle(graph: &Graph) -> Option<Circle> {
    let start = on_circle(graph)?;
    // The shortest way from there back.
    let mut came_from: Vec<Option<(usize, Edge)>> = vec![None; graph.len()];
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for (next, kind) in &graph[at] {
            if *next == start {
                let mut circle = vec![(at, *kind)];
                let mut place = at;
                while let Some((before, kind)) = came_from[place] {
                    circle.push((before, kind));
                    place = before;
                }
                circle.reverse();
                return Some(circle);
            }
            if came_from[*next].is_none() {
                came_from[*next] = Some((at, *kind));
                queue.push_back(*next);
            }
        }
    }
    None
}

/// A place on a circle: where a walk in depth meets its own path.
fn on_circle(graph: &Graph) -> Option<usize> {
    const NEW: u8 = 0;
    const ON_PATH: u8 = 1;
    const DONE: u8 = 2;
    let mut state = vec![NEW; graph.len()];
    for root in 0..graph.len() {
        if state[root] != NEW {
            continue;
        }
        let mut path = vec![(root, 0)];
        state[root] = ON_PATH;
        while let Some((at, edge)) = path.last_mut() {
            let Some((next, _)) = graph[*at].get(*edge) else {
                state[*at] = DONE;
                path.pop();
                continue;
            };
            *edge += 1;
            match state[*next] {
                ON_PATH => return Some(*next),
                NEW => {
                    state[*next] = ON_PATH;
                    path.push((*next, 0));
                }
                _ => {}
            }
        }
    }
    None
}

fn describe(circle: &Circle, level: Isolation) -> String {
    let mut parts = Vec::new();
    for (from, kind) in circle {
        let name = match kind {
            Edge::WriteWrite => "ww",
            Edge::WriteRead => "wr",
            Edge::ReadWrite => "rw",
            Edge::Time => "time",
        };
        parts.push(format!("T{from} –{name}→"));
    }
    let is_rw = |place: usize| circle[place % circle.len()].1 == Edge::ReadWrite;
    let places = 0..circle.len();
    let class = match places.clone().filter(|place| is_rw(*place)).count() {
        0 if circle.iter().all(|(_, kind)| *kind == Edge::WriteWrite) => "G0",
        0 => "G1c",
        1 => "G-single",
        _ if places.clone().any(|place| is_rw(place) && is_rw(place + 1)) => "G2",
        _ => "G-nonadjacent",
    };
    let has_time = circle.iter().any(|(_, kind)| *kind == Edge::Time);
    let time = if has_time { "-realtime" } else { "" };
    format!(
        "a circle at {} or above ({class}{time}): {} T{}",
        level.name().to_uppercase(),
        parts.join(" "),
        circle[0].0
    )
}

#[cfg(test)]
mod tests;
