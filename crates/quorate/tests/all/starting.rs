//! A node that replays a long log: what it says to clients, to their lists of hosts, and to operators.

use std::process::Command;
use std::time::{Duration, Instant};

use lab::host::{output, wait_for, PATIENCE};
use node::real::host::http_get;
use postgres::error::SqlState;

use crate::kill::{program, Patient};
use crate::questions::psql;
use crate::writers::{connect, create_table};

/// Records that are to be replayed: so many take a second at least.
const RECORDS: u32 = 40_000;

/// A client is told within this that it has to go elsewhere.
const REFUSED_WITHIN: Duration = Duration::from_millis(500);

/// A page of the node's, or why there is none.
fn page(address: &str, path: &str) -> String {
    let address = address.parse().expect("an address");
    http_get(address, path, REFUSED_WITHIN).unwrap_or_else(|error| error.to_string())
}

#[test]
fn a_node_that_replays_its_log_refuses_clients_at_once() {
    let mut patient = Patient::new(3);
    let nodes = patient.nodes().to_vec();
    create_table(&nodes[0]);
    let filled = format!(
        "do $$ begin for i in 1..{RECORDS} loop insert into kept values (0, i); commit; \
         end loop; end $$"
    );
    psql(&nodes[0], &filled);
    patient.wait_until_caught_up();
    let leader = patient.cluster.leader().expect("a leader");
    let late = (leader + 1) % 3;
    let http = std::fs::read_to_string(patient.cluster.node_dir(late).join("node.json"));
    let http: serde_json::Value = serde_json::from_str(&http.expect("its file")).expect("JSON");
    let http = http["nodes"][late]["http_address"]
        .as_str()
        .expect("an address")
        .to_owned();
    patient.kill(late);
    patient.start(late);

    // It listens before it opens anything, so the first who get through are refused.
    let (mut refused, mut slowest) = (0, Duration::ZERO);
    let mut said = String::new();
    let mut led_on = Duration::MAX;
    wait_for("the node to serve", PATIENCE, || {
        let begun = Instant::now();
        let Err(error) = connect(&nodes[late]) else {
            return true;
        };
        if let Some(answer) = error.as_db_error() {
            assert_eq!(*answer.code(), SqlState::CANNOT_CONNECT_NOW, "{answer}");
            assert_eq!(answer.message(), "the database system is starting up");
            slowest = slowest.max(begun.elapsed());
            refused += 1;
        }
        if refused == 1 && said.is_empty() {
            said = page(&http, "/status");
            let both = format!("{},{}", nodes[late].host, nodes[leader].host);
            let begun = Instant::now();
            let mut listed = nodes[late].client("psql");
            let listed = listed.args(["-h", &both, "-Atc", "select count(*) from kept"]);
            let listed = output(listed).expect("psql runs");
            led_on = begun.elapsed();
            let answer = String::from_utf8_lossy(&listed.stdout).trim().to_owned();
            assert_eq!(answer, RECORDS.to_string(), "{listed:?}");
            let shown = patient.cluster.status().expect("a status");
            assert_eq!(shown[late].role, "starting");
            let mut status = Command::new(program());
            let status = status
                .args(["status", "--data"])
                .arg(patient.cluster.data());
            let status = output(status).expect("it runs");
            assert_eq!(status.status.code(), Some(1));
            let status = String::from_utf8_lossy(&status.stdout).into_owned();
            let expected = format!("degraded: n{} is starting\n", late + 1);
            assert!(status.starts_with(&expected), "{status}");
        }
        false
    })
    .expect("it serves");
    assert!(refused > 1, "nobody was refused while the log was replayed");
    assert!(slowest < REFUSED_WITHIN, "a refusal took {slowest:?}");
    assert!(said.contains("\"role\":\"starting\""), "{said}");
    assert!(
        led_on < Duration::from_secs(2),
        "the next host took {led_on:?}"
    );
    patient.wait_until_caught_up();
}
