//! The lab's own commands: TPC-C's client and its checks, and the checker of any server.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use lab::host::{free_port, output, scratch_dir, wait_for, Process, PATIENCE};
use lab::postgres::Postgres;
use lab::quorate::Cluster;
use lab::real::relay::{Line, Relay};

use crate::kill::{open_directory, program};

fn lab(arguments: &[&str]) -> Output {
    output(Command::new(program()).arg("lab").args(arguments)).expect("the lab")
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn start_stub(dir: &Path) -> (Process, String) {
    let port = free_port(&["127.0.0.1"]).expect("a port");
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new(program());
    command.args(["lab", "tpcc", "stub", "--listen", &address]);
    let log = dir.join("stub.log");
    let stub = Process::start(&mut command, &log).expect("the stub");
    wait_for("the stub", PATIENCE, || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("answers at"))
    })
    .expect("it answers");
    (stub, format!("postgres://{address}"))
}

/// What a terminal takes is a few bytes, so thousands of warehouses fit; and thinking and typing
/// hold the rate where the specification has it.
#[test]
fn twenty_thousand_terminals_fit_a_small_client() {
    let dir = scratch_dir("quorate-test-stub").expect("a directory");
    let (_stub, url) = start_stub(dir.path());
    let json = dir.path().join("figures.json");
    let json_path = json.display().to_string();
    let arguments = [
        "tpcc",
        "run",
        "--url",
        &url,
        "--warehouses",
        "2000",
        "--connections",
        "16",
        "--warm-up",
        "2",
        "--seconds",
        "8",
        "--no-check",
        "--json",
        &json_path,
    ];
    let done = lab(&arguments);
    assert!(done.status.success(), "{}", said(&done));
    let text = std::fs::read_to_string(&json).expect("the figures");
    let figures: lab::tpcc::report::Figures = serde_json::from_str(&text).expect("figures");
    assert_eq!((figures.terminals, figures.failed()), (20_000, 0));
    let efficiency = figures.efficiency_percent;
    assert!(
        (75.0..105.0).contains(&efficiency),
        "{efficiency}% of the most"
    );
    let memory = figures.client.memory_bytes;
    assert!(memory < 150 << 20, "{memory} bytes");
    for kind in &figures.kinds {
        assert!(kind.completed > 0, "no {}", kind.name);
    }
}

#[test]
fn the_consistency_conditions_hold_and_are_looked_at() {
    let dir = open_directory();
    let postgres = Postgres::primary(&dir.path().join("pg"), &["fsync = off"]).expect("PostgreSQL");
    let url = format!("postgres://127.0.0.1:{}", postgres.endpoint().port);
    let loaded = lab(&["tpcc", "load", "--url", &url]);
    assert!(loaded.status.success(), "{}", said(&loaded));
    let done = lab(&[
        "tpcc",
        "run",
        "--url",
        &url,
        "--no-wait",
        "--connections",
        "4",
        "--warm-up",
        "1",
        "--seconds",
        "4",
    ]);
    assert!(done.status.success(), "{}", said(&done));
    assert!(
        said(&done).contains("all 12 consistency conditions hold"),
        "{}",
        said(&done)
    );
    for (harm, clauses) in [
        (
            "update district set d_ytd = d_ytd + 1 where d_id = 3",
            ["3.3.2.1 ", "3.3.2.9 "],
        ),
        (
            "delete from order_line where ol_d_id = 4 and ol_o_id = 7 and ol_number = 1",
            ["3.3.2.4 ", "3.3.2.6 "],
        ),
        (
            "update customer set c_balance = c_balance + 1 where c_id = 5",
            ["3.3.2.10 ", "3.3.2.12 "],
        ),
    ] {
        postgres.endpoint().query(harm).expect("harm is done");
        let checked = lab(&["tpcc", "check", "--url", &url]);
        assert!(!checked.status.success(), "{harm}");
        for clause in clauses {
            assert!(
                said(&checked).contains(clause),
                "{harm}: {}",
                said(&checked)
            );
        }
    }
}

/// The known weakness, as proof that the checker looks: what an asynchronous standby has not
/// received is lost when it is promoted, acknowledged or not.
#[test]
fn lost_commits_of_a_promoted_asynchronous_standby_are_found() {
    let dir = open_directory();
    let primary = Postgres::primary(&dir.path().join("n1"), &[]).expect("a primary");
    let target = ([127, 0, 0, 1], primary.endpoint().port).into();
    let relay = Relay::to(target).expect("a relay");
    let via = relay.address().port();
    let standby = primary
        .standby_through(&dir.path().join("n2"), "n2", via)
        .expect("a standby");
    // The handshake would take most of the time with such a delay.
    let streams = primary.wait_for_standbys(1, "true");
    streams.expect("a standby that streams");
    // What is on its way arrives even when its sender is dead: it must not before the promotion.
    relay.set_both(Line::delayed(Duration::from_secs(1)));
    let fault = format!(
        "kill -9 {}; psql -X -q -h 127.0.0.1 -p {} -U postgres -c 'select pg_promote(false)'",
        primary.pid().expect("its process"),
        standby.endpoint().port
    );
    let urls =
        [&primary, &standby].map(|one| format!("postgres://127.0.0.1:{}", one.endpoint().port));
    let done = lab(&[
        "check",
        "--url",
        &urls[0],
        "--url",
        &urls[1],
        "--seconds",
        "9",
        "--fault",
        &fault,
    ]);
    let said = said(&done);
    assert!(!done.status.success(), "{said}");
    assert!(said.contains("acknowledged rows are lost"), "{said}");
    assert!(said.contains("ok    the fault command ran"), "{said}");
    assert!(said.contains("ok    bank"), "{said}");
}

#[test]
fn a_killed_leader_loses_nothing() {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
    let leader = cluster.leader().expect("a leader");
    let pid = cluster.status().expect("a status")[leader]
        .pid
        .expect("it runs");
    let mut arguments = vec!["check".to_owned(), "--strict".to_owned()];
    // The leader first: it has most to lose.
    for index in [leader, (leader + 1) % 3, (leader + 2) % 3] {
        let node = &cluster.nodes()[index];
        arguments.extend([
            "--url".to_owned(),
            format!("postgres://{}:{}", node.host, node.port),
        ]);
    }
    let fault = format!("kill -9 {pid}");
    arguments.extend(["--seconds", "9", "--fault", &fault].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = lab(&arguments);
    assert!(done.status.success(), "{}", said(&done));
}

/// As the role and in the database that its URL names; and without a PostgreSQL to start the rest
/// goes on.
#[test]
fn a_running_server_is_measured_without_any_other() {
    let dir = open_directory();
    let postgres = Postgres::primary(&dir.path().join("pg"), &["fsync = off"]).expect("PostgreSQL");
    for sql in ["create role ann login", "create database bank owner ann"] {
        postgres.endpoint().query(sql).expect(sql);
    }
    let out = dir.path().join("out");
    let (out_path, port) = (out.display().to_string(), postgres.endpoint().port);
    let url = format!("mine=postgres://ann@127.0.0.1:{port}/bank");
    let done = lab(&[
        "run",
        "open-loop",
        "--quick",
        "--seconds",
        "1",
        "--rows",
        "1000",
        "--against",
        "postgres",
        "--pg-bin",
        "/nowhere",
        "--url",
        &url,
        "--out",
        &out_path,
    ]);
    let said = said(&done);
    assert!(done.status.success(), "{said}");
    assert!(
        said.contains("There is no PostgreSQL in /nowhere"),
        "{said}"
    );
    assert!(said.contains("apt-get install postgresql-15"), "{said}");
    // A note of what is not the experiment's own extent, and of what is doubtful about the server.
    assert!(said.contains("1 seconds in the place of 4"), "{said}");
    assert!(said.contains("fsync is off"), "{said}");
    let report = std::fs::read_to_string(out.join("report.json")).expect("a report");
    assert!(report.contains(r#""series": "mine""#), "{report}");
    let owner = "select tableowner from pg_tables where tablename = 'test2'";
    let mut psql = postgres.endpoint().client("psql");
    let shown = output(psql.args(["-X", "-A", "-t", "-c", owner, "bank"])).expect("psql");
    assert_eq!(String::from_utf8_lossy(&shown.stdout).trim(), "ann");
}

#[test]
fn reports_are_compared() {
    let dir = scratch_dir("quorate-test-compare").expect("a directory");
    let report = |name: &str, rounds: &str| {
        let text = format!(
            r#"{{"format": 1, "made": "", "quick": true, "conditions": [], "experiments": [
            {{"name": "x", "title": "", "question": "", "checks": [], "notes": [], "warnings": [],
            "charts": [{{"title": "rate", "form": "bars", "unit": "rows/s", "across": "level",
            "better": "more", "bars": [{{"group": "on", "series": "one node", "rounds": {rounds},
            "median": 0}}]}}]}}]}}"#
        );
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a report");
        path.display().to_string()
    };
    let (old, new) = (
        report("old", "[100, 101, 99]"),
        report("new", "[80, 82, 81]"),
    );
    let compared = said(&lab(&["compare", &old, &new]));
    assert!(compared.contains("0.81× | worse"), "{compared}");
    let compared = said(&lab(&["compare", &old, &old]));
    assert!(
        compared.contains("1 of 1 figures did not change"),
        "{compared}"
    );
}

/// As in `quorate lab list | head -1`.
#[test]
fn a_list_ends_quietly_when_nobody_reads_it() {
    let mut list = Command::new(program())
        .args(["lab", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the lab");
    drop(list.stdout.take());
    let ended = list.wait_with_output().expect("an end");
    assert_eq!(said(&ended), "", "{}", ended.status);
}

/// TPC-H's 22 queries over tables of a hundredth of the usual size: answered as by PostgreSQL.
#[test]
fn the_queries_of_tpch_are_answered_as_by_postgresql() {
    let dir = open_directory();
    let out = dir.path().display().to_string();
    let arguments = ["run", "tpch", "--quick", "--scale", "0.01", "--out", &out];
    let done = lab(&arguments);
    let said = said(&done);
    assert!(done.status.success(), "{said}");
    let same = said.matches("every system gives the same answer").count();
    assert_eq!(same, 22, "{said}");
}
