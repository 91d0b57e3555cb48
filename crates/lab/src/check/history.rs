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
//! the history is not serializable; with them, not strictly so.
//!
//! Beside circles: reads of one key that are no prefixes of one another, numbers that nobody
//! committed (G1a), reads of a transaction's half (G1b), numbers that are there twice, and
//! acknowledged numbers that the last read lacks.

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
    /// What it did, in order.
    pub steps: Vec<Step>,
    /// When it was sent.
    pub began: Instant,
    /// When its answer came.
    pub ended: Instant,
    /// How it ended.
    pub end: End,
}

/// What is wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Not serializable: what was seen, in a sentence.
    Serializable(String),
    /// Serializable, and against the order of time.
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
    let mut graph = dependencies(history, &writers, &orders);
    if let Some(found) = circle(&graph) {
        wrong.push(Wrong::Serializable(describe(&found, &graph)));
    } else {
        add_time(history, &mut graph);
        if let Some(found) = circle(&graph) {
            wrong.push(Wrong::Strict(describe(&found, &graph)));
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
            order.clone_from(list);
        }
    }
    orders
}

/// All reads whose answers count.
fn reads(history: &[Transaction]) -> impl Iterator<Item = (u64, &Vec<u64>)> {
    let told = history.iter().filter(|one| one.end == End::Committed);
    told.flat_map(|one| &one.steps)
        .filter_map(|step| match step {
            Step::Read(key, Some(list)) => Some((*key, list)),
            _ => None,
        })
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
        if reader.end != End::Committed {
            continue;
        }
        for step in &reader.steps {
            let Step::Read(key, Some(list)) = step else {
                continue;
            };
            let mut seen = std::collections::BTreeSet::new();
            for number in list {
                let sentence = match writers.get(number) {
                    _ if !seen.insert(*number) => format!("list {key} holds {number} twice"),
                    None => format!("list {key} holds {number}, which nobody appended"),
                    Some(writer) if history[*writer].end == End::Refused => {
                        format!("list {key} holds {number} of a transaction that was refused (G1a)")
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

/// Whether a transaction's place in the order matters: it happened, or may have.
fn counts(transaction: &Transaction) -> bool {
    transaction.end != End::Refused
}

fn dependencies(
    history: &[Transaction],
    writers: &BTreeMap<u64, usize>,
    orders: &BTreeMap<u64, Vec<u64>>,
) -> Graph {
    let mut graph: Graph = vec![Vec::new(); history.len()];
    let mut edge = |from: usize, to: usize, kind: Edge| {
        if from != to && counts(&history[from]) && counts(&history[to]) {
            graph[from].push((to, kind));
        }
    };
    for order in orders.values() {
        for pair in order.windows(2) {
            if let (Some(first), Some(second)) = (writers.get(&pair[0]), writers.get(&pair[1])) {
                edge(*first, *second, Edge::WriteWrite);
            }
        }
    }
    for (reader, transaction) in history.iter().enumerate() {
        if transaction.end != End::Committed {
            continue;
        }
        for step in &transaction.steps {
            let Step::Read(key, Some(list)) = step else {
                continue;
            };
            if let Some(writer) = list.last().and_then(|number| writers.get(number)) {
                edge(*writer, reader, Edge::WriteRead);
            }
            let order = orders.get(key).map_or(&[][..], Vec::as_slice);
            // Its own appends lie after what it read.
            let next = order.get(list.len()).and_then(|number| writers.get(number));
            if let Some(next) = next {
                edge(reader, *next, Edge::ReadWrite);
            }
        }
    }
    graph
}

/// Edges of time, as few as say the same: from those that had ended when another began and that
/// nobody follows who had ended too.
fn add_time(history: &[Transaction], graph: &mut Graph) {
    let mut events: Vec<(Instant, bool, usize)> = Vec::new();
    for (index, one) in history.iter().enumerate() {
        if counts(one) {
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

/// A short circle, if there is one: found by walking in depth, then shortened in breadth.
fn circle(graph: &Graph) -> Option<Vec<usize>> {
    let start = on_circle(graph)?;
    // The shortest way from there back.
    let mut came_from: Vec<Option<usize>> = vec![None; graph.len()];
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for (next, _) in &graph[at] {
            if *next == start {
                let mut circle = vec![at];
                let mut place = at;
                while let Some(before) = came_from[place] {
                    circle.push(before);
                    place = before;
                }
                circle.reverse();
                return Some(circle);
            }
            if came_from[*next].is_none() && *next != start {
                came_from[*next] = Some(at);
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

fn describe(circle: &[usize], graph: &Graph) -> String {
    let mut parts = Vec::new();
    let mut kinds = Vec::new();
    for (place, from) in circle.iter().enumerate() {
        let to = circle[(place + 1) % circle.len()];
        let kind = graph[*from].iter().find(|(next, _)| *next == to);
        let kind = kind.map_or(Edge::Time, |(_, kind)| *kind);
        kinds.push(kind);
        let name = match kind {
            Edge::WriteWrite => "ww",
            Edge::WriteRead => "wr",
            Edge::ReadWrite => "rw",
            Edge::Time => "time",
        };
        parts.push(format!("T{from} –{name}→"));
    }
    let anti = kinds
        .iter()
        .filter(|kind| **kind == Edge::ReadWrite)
        .count();
    let class = match anti {
        0 if kinds.iter().all(|kind| *kind == Edge::WriteWrite) => "G0",
        0 => "G1c",
        1 => "G-single",
        _ => "G2",
    };
    let time = if kinds.contains(&Edge::Time) {
        "-realtime"
    } else {
        ""
    };
    format!(
        "a circle ({class}{time}): {} T{}",
        parts.join(" "),
        circle[0]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(began: u64, ended: u64, steps: Vec<Step>) -> Transaction {
        Transaction {
            steps,
            began: Instant(began),
            ended: Instant(ended),
            end: End::Committed,
        }
    }

    fn read(key: u64, list: &[u64]) -> Step {
        Step::Read(key, Some(list.to_vec()))
    }

    fn last(lists: &[(u64, &[u64])]) -> BTreeMap<u64, Vec<u64>> {
        lists
            .iter()
            .map(|(key, list)| (*key, list.to_vec()))
            .collect()
    }

    #[test]
    fn what_some_order_explains_is_sound() {
        let history = [
            transaction(0, 1, vec![Step::Append(1, 10), read(2, &[])]),
            transaction(0, 5, vec![read(1, &[10]), Step::Append(2, 20)]),
            transaction(6, 7, vec![read(1, &[10]), read(2, &[20])]),
        ];
        assert_eq!(judge(&history, &last(&[(1, &[10]), (2, &[20])])), []);
    }

    #[test]
    fn write_skew_is_a_circle() {
        let history = [
            transaction(0, 9, vec![read(1, &[]), Step::Append(2, 20)]),
            transaction(0, 9, vec![read(2, &[]), Step::Append(1, 10)]),
        ];
        let wrong = judge(&history, &last(&[(1, &[10]), (2, &[20])]));
        let expected = "a circle (G2): T0 –rw→ T1 –rw→ T0";
        assert_eq!(wrong, [Wrong::Serializable(expected.to_owned())]);
    }

    #[test]
    fn half_a_transaction_is_a_circle() {
        let history = [
            transaction(0, 9, vec![Step::Append(1, 10), Step::Append(2, 20)]),
            transaction(0, 9, vec![read(1, &[10]), read(2, &[])]),
        ];
        let wrong = judge(&history, &last(&[(1, &[10]), (2, &[20])]));
        let [Wrong::Serializable(said)] = &wrong[..] else {
            panic!("{wrong:?}");
        };
        assert!(said.contains("G-single"), "{said}");
    }

    #[test]
    fn a_stale_read_is_against_time_only() {
        let history = [
            transaction(0, 1, vec![Step::Append(1, 10)]),
            transaction(2, 3, vec![read(1, &[])]),
        ];
        let wrong = judge(&history, &last(&[(1, &[10])]));
        let expected = "a circle (G-single-realtime): T1 –rw→ T0 –time→ T1";
        let other = "a circle (G-single-realtime): T0 –time→ T1 –rw→ T0";
        let [Wrong::Strict(said)] = &wrong[..] else {
            panic!("{wrong:?}");
        };
        assert!(said == expected || said == other, "{said}");
    }

    #[test]
    fn losses_ghosts_and_forks_are_found() {
        let mut refused = transaction(0, 1, vec![Step::Append(1, 11)]);
        refused.end = End::Refused;
        let history = [
            transaction(0, 1, vec![Step::Append(1, 10)]),
            refused,
            transaction(2, 3, vec![read(1, &[10, 11])]),
        ];
        let wrong = judge(&history, &last(&[(1, &[])]));
        assert!(
            wrong.iter().any(|one| matches!(one, Wrong::Lost(_))),
            "{wrong:?}"
        );
        assert!(
            wrong
                .iter()
                .any(|one| matches!(one, Wrong::Serializable(said) if said.contains("G1a"))),
            "{wrong:?}"
        );
        let fork = [
            transaction(0, 1, vec![Step::Append(1, 10)]),
            transaction(0, 1, vec![Step::Append(1, 11)]),
            transaction(2, 3, vec![read(1, &[10])]),
            transaction(2, 3, vec![read(1, &[11])]),
        ];
        let wrong = judge(&fork, &last(&[(1, &[10, 11])]));
        assert!(
            matches!(&wrong[0], Wrong::Serializable(said) if said.contains("neither the beginning")),
            "{wrong:?}"
        );
    }
}
