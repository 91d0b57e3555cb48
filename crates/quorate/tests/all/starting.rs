//! A node that replays a long log: what it says to clients, to their lists of hosts, and to operators.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use lab::host::{output, wait_for, Endpoint, PATIENCE};
use node::real::host::http_get;
use postgres::error::SqlState;

use crate::kill::{program, Patient};
use crate::questions::psql;
use crate::writers::{connect, create_table};

/// Records that are to be replayed at first. Where a machine replays them before all was asked, there
/// are twice as many the next time.
const RECORDS: u32 = 40_000;

/// Times that there are more records. After the last of them there are over a million.
const ROUNDS: u32 = 5;

/// A client is told within this that it has to go elsewhere.
const REFUSED_WITHIN: Duration = Duration::from_millis(500);

/// What was seen of a node while it replayed its log.
struct Seen {
    slowest_refusal: Duration,
    page: String,
    psql: Output,
    led_on: Duration,
    role: String,
    status: Output,
}

/// How long it took the node to refuse a client; none if it serves.
fn refusal(node: &Endpoint) -> Option<Duration> {
    let mut took = None;
    wait_for("the node to serve or refuse", PATIENCE, || {
        let begun = Instant::now();
        let Err(error) = connect(node) else {
            return true;
        };
        let Some(answer) = error.as_db_error() else {
            return false;
        };
        assert_eq!(*answer.code(), SqlState::CANNOT_CONNECT_NOW, "{answer}");
        assert_eq!(answer.message(), "the database system is starting up");
        took = Some(begun.elapsed());
        true
    })
    .expect("it answers");
    took
}

/// Asks a node that has just been started for everything; none if it served before all was asked.
fn ask(patient: &Patient, late: usize, leader: usize) -> Option<Seen> {
    let nodes = patient.nodes();
    let first = refusal(&nodes[late])?;
    let http = patient.cluster.http_address(late).expect("an address");
    let page = http_get(http, "/status", REFUSED_WITHIN);
    let both = format!("{},{}", nodes[late].host, nodes[leader].host);
    let begun = Instant::now();
    let mut psql = nodes[late].client("psql");
    let psql = psql.args(["-h", &both, "-Atc", "select count(*) from kept"]);
    let psql = output(psql).expect("psql runs");
    let led_on = begun.elapsed();
    let role = patient.cluster.status().expect("a status")[late]
        .role
        .clone();
    let mut status = Command::new(program());
    let status = status
        .args(["status", "--data"])
        .arg(patient.cluster.data());
    let status = output(status).expect("it runs");
    // Whoever is refused now was refused all the time.
    let last = refusal(&nodes[late])?;
    Some(Seen {
        slowest_refusal: first.max(last),
        page: page.unwrap_or_else(|error| error.to_string()),
        psql,
        led_on,
        role,
        status,
    })
}

#[test]
fn a_node_that_replays_its_log_refuses_clients_at_once() {
    // Nothing but the log has what is to be replayed.
    let settings = [
        "checkpoint_timeout=1h",
        "quorate.checkpoint_log_records=10000000",
    ];
    let mut patient = Patient::with_settings(3, &settings);
    let nodes = patient.nodes().to_vec();
    create_table(&nodes[0]);
    let mut kept = 0;
    for _ in 0..ROUNDS {
        let before = kept;
        kept = RECORDS.max(2 * kept);
        let filled = format!(
            "do $$ begin for i in {before} + 1..{kept} loop insert into kept values (0, i); commit; \
             end loop; end $$"
        );
        psql(&nodes[0], &filled);
        patient.wait_until_caught_up();
        let leader = patient.cluster.leader().expect("a leader");
        let late = (leader + 1) % 3;
        patient.kill(late);
        patient.start(late);
        let seen = ask(&patient, late, leader);
        patient.wait_until_answering(late);
        patient.wait_until_caught_up();
        let Some(seen) = seen else {
            continue;
        };
        assert!(
            seen.slowest_refusal < REFUSED_WITHIN,
            "{:?}",
            seen.slowest_refusal
        );
        assert!(seen.page.contains("\"role\":\"starting\""), "{}", seen.page);
        let answer = String::from_utf8_lossy(&seen.psql.stdout).trim().to_owned();
        assert_eq!(answer, kept.to_string(), "{:?}", seen.psql);
        assert!(
            seen.led_on < Duration::from_secs(2),
            "the next host took {:?}",
            seen.led_on
        );
        assert_eq!(seen.role, "starting");
        assert_eq!(seen.status.status.code(), Some(1));
        let status = String::from_utf8_lossy(&seen.status.stdout).into_owned();
        let expected = format!("degraded: n{} is starting\n", late + 1);
        assert!(status.starts_with(&expected), "{status}");
        return;
    }
    panic!("{kept} records were replayed before all was asked");
}
