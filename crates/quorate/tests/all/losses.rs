//! Leaders lost one after the other, under load: killed, frozen, cut off. Writers keep on disk what
//! was acknowledged; nothing of it may be missing at the end, and writes must go on soon.
//!
//! `QUORATE_LOSSES=100,30,30` says how many of each; `make soak` does, and has the times written
//! into `docs/TESTING.md` (`QUORATE_LOSSES_DOCUMENT`).

use std::path::Path;
use std::time::{Duration, Instant};

use lab::host::{signal, PATIENCE};
use lab::quorate::{Cluster, Topology};

use crate::kill::{program, Patient};
use crate::writers::{create_table, Writers};

/// Writers, spread over the nodes.
const WRITERS: usize = 6;

/// Commits before each loss.
const BETWEEN: u64 = 20;

/// What is acknowledged so soon after a loss was on its way before.
const ON_ITS_WAY: Duration = Duration::from_millis(20);

/// Writes go on within this, on a busy machine too.
const PAUSE_MAX: Duration = Duration::from_secs(6);

/// A frozen or cut-off leader stays so for this long.
const GONE_FOR: Duration = Duration::from_millis(1_500);

/// Times are counted up to each of these, in milliseconds.
const STEPS: [u128; 9] = [200, 300, 400, 500, 700, 1_000, 1_500, 2_000, 6_000];

/// How often to lose a leader, by kind.
fn counts() -> [usize; 3] {
    let text = std::env::var("QUORATE_LOSSES").unwrap_or_else(|_| "3,2,1".to_owned());
    let counts: Vec<usize> = text
        .split(',')
        .map(|count| count.trim().parse().expect("a number"))
        .collect();
    counts.try_into().expect("three numbers")
}

/// Waits until writes go on; how long that took since `start`.
fn pause(writers: &Writers, start: Instant, what: &str) -> Duration {
    std::thread::sleep(ON_ITS_WAY);
    let went_on = writers.wait_for_more(1, PAUSE_MAX);
    went_on.unwrap_or_else(|| panic!("{what}: no commit within {PAUSE_MAX:?}"));
    start.elapsed()
}

fn kills(count: usize) -> Vec<Duration> {
    let mut patient = Patient::new(3);
    create_table(&patient.nodes()[0]);
    let writers = Writers::start(patient.nodes(), WRITERS, patient.dir.path());
    let mut times = Vec::new();
    for round in 0..count {
        let begun = writers.wait_for_more(BETWEEN, PATIENCE);
        begun.unwrap_or_else(|| panic!("no commits before kill {round}"));
        let leader = patient.cluster.leader().expect("a leader");
        let pid = patient.pid(leader);
        let start = Instant::now();
        signal(pid, "KILL").expect("the leader is killed");
        times.push(pause(&writers, start, "killed"));
        patient.start(leader);
        patient.wait_until_answering(leader);
    }
    let promises = writers.finish();
    patient.nodes().iter().for_each(|node| promises.check(node));
    times
}

/// Freezes leaders, then cuts them off.
fn absences(freezes: usize, cuts: usize) -> [Vec<Duration>; 2] {
    let dir = tempfile::tempdir().expect("a directory");
    let topology = Topology {
        voters: 3,
        learners: 0,
    };
    let cluster = Cluster::start_relayed(program(), &dir.path().join("c"), topology, &[]);
    let cluster = cluster.expect("a cluster");
    create_table(&cluster.nodes()[0]);
    let writers = Writers::start(cluster.nodes(), WRITERS, dir.path());
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..freezes + cuts {
        let begun = writers.wait_for_more(BETWEEN, PATIENCE);
        begun.unwrap_or_else(|| panic!("no commits before loss {round}"));
        let leader = cluster.leader().expect("a leader");
        let pid = cluster.status().expect("a status")[leader]
            .pid
            .expect("it runs");
        let freezes = round < freezes;
        let start = Instant::now();
        match freezes {
            true => signal(pid, "STOP").expect("the leader freezes"),
            false => cluster.cut_off(leader, true),
        }
        let what = if freezes { "frozen" } else { "cut off" };
        times[usize::from(!freezes)].push(pause(&writers, start, what));
        std::thread::sleep(GONE_FOR.saturating_sub(start.elapsed()));
        match freezes {
            true => signal(pid, "CONT").expect("the leader wakes"),
            false => cluster.cut_off(leader, false),
        }
    }
    let promises = writers.finish();
    cluster.nodes().iter().for_each(|node| promises.check(node));
    times
}

/// One line of a table: how many took at most so long.
fn line(commit: &str, what: &str, times: &[Duration]) -> String {
    let mut sorted: Vec<u128> = times.iter().map(Duration::as_millis).collect();
    sorted.sort_unstable();
    let mut line = format!("| {commit} | {what} | {} |", sorted.len());
    let mut below = 0;
    for step in STEPS {
        let count = sorted.iter().filter(|time| **time <= step).count();
        line.push_str(&format!(" {} |", count - below));
        below = count;
    }
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let worst = sorted.last().copied().unwrap_or(0);
    line.push_str(&format!(" {median} ms | {worst} ms |"));
    line
}

/// Puts the lines into the page, in the place of those that were there.
fn record(page: &Path, lines: &[String]) {
    let text = std::fs::read_to_string(page).expect("the page");
    let begin = "<!-- losses -->\n";
    let start = text.find(begin).expect("a place for the times") + begin.len();
    let end = start + text[start..].find("<!-- end -->").expect("its end");
    let steps: Vec<String> = STEPS.iter().map(|step| format!("≤ {step} ms")).collect();
    let columns = steps.len() + 5;
    let table = format!(
        "| commit | the leader is | times | {} | median | longest |\n|{}\n{}\n",
        steps.join(" | "),
        "---|".repeat(columns),
        lines.join("\n")
    );
    let text = [&text[..start], &table, &text[end..]].concat();
    std::fs::write(page, text).expect("the page is written");
}

#[test]
fn nothing_acknowledged_is_lost_with_leaders() {
    let [killed, frozen, cut] = counts();
    let kills = kills(killed);
    let [freezes, cuts] = absences(frozen, cut);
    let commit = std::env::var("QUORATE_COMMIT").unwrap_or_else(|_| "this".to_owned());
    let lines = [
        line(&commit, "killed", &kills),
        line(&commit, "frozen", &freezes),
        line(&commit, "cut off", &cuts),
    ];
    println!("{}", lines.join("\n"));
    if let Ok(page) = std::env::var("QUORATE_LOSSES_DOCUMENT") {
        record(Path::new(&page), &lines);
        let slow = |times: &[Duration], most| times.iter().filter(|time| **time > most).count();
        let half = slow(&kills, Duration::from_millis(500));
        assert!(
            half * 2 <= kills.len(),
            "{half} of {} kills took longer",
            kills.len()
        );
        let slow_kills = slow(&kills, Duration::from_secs(1));
        assert!(
            slow_kills * 100 <= kills.len(),
            "{slow_kills} of {}",
            kills.len()
        );
        let gone = [freezes, cuts].concat();
        assert_eq!(slow(&gone, Duration::from_secs(2)), 0, "{gone:?}");
    }
}
