//! Leaders lost one after the other, under load: killed, frozen, cut off. Writers keep on disk what
//! was acknowledged; nothing of it may be missing at the end, and writes must go on soon. While
//! leaders are killed, nodes are added, promoted and removed.
//!
//! `QUORATE_LOSSES=100,30,30,10` says how many of each, and how many nodes come and go; `make soak`
//! does, and has the times written into `docs/TESTING.md` (`QUORATE_LOSSES_DOCUMENT`).

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab::host::{run, signal, wait_for, Endpoint, Process, PATIENCE};
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

/// A node that is added stays so long as a voter.
const VOTES_FOR: Duration = Duration::from_secs(1);

/// How often to lose a leader, by kind, and how many nodes come and go while leaders are killed.
fn counts() -> [usize; 4] {
    let text = std::env::var("QUORATE_LOSSES").unwrap_or_else(|_| "3,2,1,1".to_owned());
    let counts: Vec<usize> = text
        .split(',')
        .map(|count| count.trim().parse().expect("a number"))
        .collect();
    counts.try_into().expect("four numbers")
}

/// Waits until writes go on; how long that took since `start`.
fn pause(writers: &Writers, start: Instant, what: &str) -> Duration {
    std::thread::sleep(ON_ITS_WAY);
    let went_on = writers.wait_for_more(1, PAUSE_MAX);
    went_on.unwrap_or_else(|| panic!("{what}: no commit within {PAUSE_MAX:?}"));
    start.elapsed()
}

/// Whether a command of the program about the cluster was obeyed. One that was interrupted by the
/// loss of the leader may have been, and says that it was not.
fn is_obeyed(arguments: &[&str], data: &Path) -> bool {
    let mut command = Command::new(program());
    run(command.args(arguments).arg("--data").arg(data)).is_ok()
}

/// Gives a command again and again until it is obeyed, or a query, asked of any node, gives this.
fn insist(arguments: &[&str], data: &Path, nodes: &[Endpoint], query: &str, wanted: &str) {
    let is_so = |node: &Endpoint| node.query(query).is_ok_and(|answer| answer == wanted);
    wait_for(&arguments.join(" "), PATIENCE, || {
        is_obeyed(arguments, data) || nodes.iter().any(is_so)
    })
    .expect("it does what it is asked");
}

/// Adds so many nodes, one after the other, lets each vote for a while, and removes it.
fn come_and_go(data: &Path, nodes: &[Endpoint], count: usize) {
    for number in nodes.len() + 1..=nodes.len() + count {
        let name = format!("n{number}");
        wait_for("a node to be added", PATIENCE, || {
            let is_added = is_obeyed(&["node", "add", &name], data);
            // A member without a directory is of no use.
            if !is_added {
                is_obeyed(&["node", "remove", &name], data);
            }
            is_added
        })
        .expect("it is added");
        let mut start = Command::new(program());
        start.args(["start", "--data"]).arg(data.join(&name));
        let process = Process::start(&mut start, &data.join(&name).join("process.log"));
        let process = process.expect("it starts");
        let votes = format!("select voter from quorate.nodes where name = '{name}'");
        insist(&["node", "promote", &name], data, nodes, &votes, "t");
        std::thread::sleep(VOTES_FOR);
        let is_there = format!("select count(*) from quorate.nodes where name = '{name}'");
        insist(&["node", "remove", &name], data, nodes, &is_there, "0");
        drop(process);
    }
}

/// Kills leaders while nodes come and go: for how long nobody could commit, and for how long each
/// session could not.
fn kills(count: usize, changes: usize) -> [Vec<Duration>; 2] {
    let mut patient = Patient::new(3);
    create_table(&patient.nodes()[0]);
    let writers = Writers::start(patient.nodes(), WRITERS, patient.dir.path());
    let mut times = Vec::new();
    let is_changing = AtomicBool::new(true);
    let (data, nodes) = (
        patient.cluster.data().to_owned(),
        patient.nodes().to_owned(),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            come_and_go(&data, &nodes, changes);
            is_changing.store(false, Ordering::SeqCst);
        });
        while times.len() < count || is_changing.load(Ordering::SeqCst) {
            let begun = writers.wait_for_more(BETWEEN, PATIENCE);
            begun.unwrap_or_else(|| panic!("no commits before kill {}", times.len()));
            let leader = patient.cluster.leader().expect("a leader");
            if leader >= nodes.len() {
                // One that is to go again: it need not be there any more when this arrives.
                is_obeyed(&["switchover", "n1"], &data);
                continue;
            }
            let pid = patient.pid(leader);
            let start = Instant::now();
            signal(pid, "KILL").expect("the leader is killed");
            times.push(pause(&writers, start, "killed"));
            patient.start(leader);
            patient.wait_until_answering(leader);
        }
    });
    let pauses = writers.pauses();
    let promises = writers.finish();
    patient.nodes().iter().for_each(|node| promises.check(node));
    [times, pauses]
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
    let [killed, frozen, cut, changes] = counts();
    let [kills, sessions] = kills(killed, changes);
    let [freezes, cuts] = absences(frozen, cut);
    let commit = std::env::var("QUORATE_COMMIT").unwrap_or_else(|_| "this".to_owned());
    let lines = [
        line(&commit, "killed", &kills),
        line(&commit, "killed: each session's pause", &sessions),
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
        for times in [&kills, &sessions] {
            let late = slow(times, Duration::from_secs(1));
            assert!(late * 100 <= times.len(), "{late} of {}", times.len());
        }
        let gone = [freezes, cuts].concat();
        assert_eq!(slow(&gone, Duration::from_secs(2)), 0, "{gone:?}");
    }
}
