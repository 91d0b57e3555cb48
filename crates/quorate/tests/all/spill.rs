//! Statements whose rows do not fit into `work_mem`: however they end, nothing of them is left in scratch
//! space, and a session has no more there than it may.

use std::process::Command;

use lab::host::{wait_for, Endpoint, PATIENCE};
use lab::quorate::Cluster;

use crate::kill::{open_directory, program};
use crate::questions::psql;

/// A sort, a join, a grouping and a cursor that do not fit, and how many rows each gives.
const STATEMENTS: [(&str, &str); 4] = [
    (
        "select count(*) from (select * from spilled order by s offset 0) x",
        "200000",
    ),
    (
        "select count(*) from spilled a join spilled b on a.s = b.s",
        "200000",
    ),
    (
        "select count(*) from (select s from spilled group by s) x",
        "200000",
    ),
    (
        "select count(*) from (select count(*) over () from spilled) x",
        "200000",
    ),
];

/// What psql says of a statement that fails under a setting.
fn failing(endpoint: &Endpoint, setting: &str, sql: &str) -> String {
    let mut command: Command = endpoint.client("psql");
    command.args(["-X", "-q", "-c", setting, "-c", sql, "postgres"]);
    let output = command.output().expect("psql");
    assert!(!output.status.success(), "{sql}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn nothing_is_left_in_scratch_space() {
    let dir = open_directory();
    let settings = ["work_mem=64kB"];
    let cluster = Cluster::start(program(), dir.path(), 1, &settings).expect("a cluster");
    let node = &cluster.nodes()[0];
    psql(
        node,
        "create table spilled as select i, md5(i::text) s from generate_series(1, 200000) i",
    );
    let scratch = cluster.data().join("n1/group1/statements.scratch");
    let bytes = || std::fs::metadata(&scratch).map_or(0, |file| file.len());
    let is_empty = |when: &str| {
        wait_for("an empty scratch file", PATIENCE, || bytes() == 0).unwrap_or_else(|error| {
            panic!("{when}: {error:?}");
        });
    };
    for (sql, rows) in STATEMENTS {
        assert_eq!(psql(node, sql), rows, "{sql}");
        is_empty(sql);
        let limited = "set temp_file_limit = '1MB'";
        let said = failing(node, limited, sql);
        assert!(
            said.contains("temporary file size exceeds temp_file_limit (1024kB)"),
            "{said}"
        );
        is_empty(limited);
        let cancelled = "set statement_timeout = '60ms'";
        let said = failing(node, cancelled, sql);
        assert!(
            said.contains("canceling statement due to statement timeout"),
            "{said}"
        );
        is_empty(cancelled);
    }
    // What the session keeps is there until it ends.
    let kept = "begin; declare c cursor with hold for select * from spilled order by s; commit; \
                fetch absolute 200000 from c";
    assert!(psql(node, kept).contains('|'));
    is_empty(kept);
    let error = "select 1 / (i - 199999) from (select i from spilled order by s) x";
    assert!(failing(node, "set work_mem = '64kB'", error).contains("division by zero"));
    is_empty(error);
}
