//! Long values on real servers: in the row, compressed, or in pieces elsewhere; what stays of them
//! after updates, rollbacks, rewrites and restarts, and what a statement reads of them.

use std::io::Write;
use std::time::Duration;

use lab::host::{run, wait_for, Endpoint};
use lab::quorate::Cluster;

use crate::kill::{open_directory, program, Patient};
use crate::questions::{number, psql};

/// A text of so many times 32 characters that cannot be compressed well, as SQL.
fn noise(seed: u32, times: u32) -> String {
    format!("(select string_agg(md5(n::text || '{seed}'), '') from generate_series(1, {times}) n)")
}

/// Bytes of a table's rows and long values, and of its rows alone.
fn sizes(leader: &Endpoint) -> (i64, i64) {
    let size = |what: &str| number(leader, &format!("select pg_{what}_size('long')"));
    (size("table"), size("relation"))
}

const SUMS: &str = "select string_agg(id || ':' || mark || ':' || length(note) || ':' || \
                    md5(note), ' ' order by id) from long";

fn values_stay_what_they_are(cluster: &Cluster) {
    let leader = cluster.nodes()[cluster.leader().expect("a leader")].clone();
    let sql = |sql: &str| psql(&leader, sql);
    sql("create table long (id int primary key, mark int, note text)");
    // Short, compressed in the row, in one piece, in several.
    for (id, note) in [
        (1, "'short'".to_owned()),
        (2, "repeat('abc', 10000)".to_owned()),
        (3, noise(3, 300)),
        (4, noise(4, 20_000)),
        (5, "repeat('abcdefgh', 500000)".to_owned()),
    ] {
        sql(&format!("insert into long values ({id}, 0, {note})"));
        // What is read is what was computed.
        let same = format!("select note = {note} from long where id = {id}");
        assert_eq!(sql(&same), "t", "row {id}");
    }
    let before = sql(SUMS);
    let (whole, rows) = sizes(&leader);
    assert!(rows <= 2 * 8_192, "{rows} bytes of rows");
    assert!((600_000..1_500_000).contains(&whole), "{whole} bytes");

    // UPDATE of another column writes neither value nor pieces.
    let log = "select log_bytes_since_checkpoint from quorate.storage";
    sql("checkpoint");
    let log_before = number(&leader, log);
    sql("update long set mark = mark + 1");
    let written = number(&leader, log) - log_before;
    assert!(written < 5_000, "{written} bytes of log");
    assert_eq!(sql(SUMS), before.replace(":0:", ":1:"));
    let before = sql(SUMS);

    // What is rolled back leaves nothing, savepoints included.
    sql(&format!(
        "begin; update long set note = {} where id > 3; savepoint a; \
         update long set note = {} where id = 4; rollback to a; \
         insert into long values (6, 0, {}); delete from long where id = 3; rollback",
        noise(7, 9_000),
        noise(8, 9_000),
        noise(9, 9_000)
    ));
    assert_eq!(sql(SUMS), before);

    // A snapshot has its own versions; the newest are seen by others.
    let old = "select md5(string_agg(note, '' order by id)) from long";
    let shown = sql(&format!(
        "begin isolation level repeatable read; {old}; \
         declare c cursor for select note from long where id = 4; \
         update long set note = {} where id = 4; \
         fetch c; rollback",
        noise(10, 100)
    ));
    let held = sql("select note from long where id = 4");
    assert!(shown.contains(&held), "a cursor has what was there before");
    assert_eq!(sql(SUMS), before);

    // Values are replaced, and space is given back.
    sql(&format!(
        "update long set note = {} where id = 4 returning length(note)",
        noise(11, 10)
    ));
    sql("delete from long where id = 5");
    let fell = || sizes(&leader).0 < 200_000;
    wait_for("space given back", Duration::from_secs(20), fell).expect("pieces go");

    // ON CONFLICT, RETURNING of what was not changed, rows from rows, and rewrites.
    let conflict = format!(
        "insert into long values (3, 5, 'x') on conflict (id) do update set mark = 7 \
         returning md5(note) = md5({})",
        noise(3, 300)
    );
    assert_eq!(sql(&conflict), "t");
    sql("insert into long select id + 10, mark, note from long where id = 3");
    let returned = format!(
        "delete from long where id = 3 returning note = {}",
        noise(3, 300)
    );
    assert_eq!(sql(&returned), "t");
    let copy = format!("select note = {} from long where id = 13", noise(3, 300));
    assert_eq!(sql(&copy), "t");
    sql("alter table long add column more text default 'm'");
    sql("alter table long alter column mark type bigint using mark * 2");
    assert_eq!(sql(&copy), "t");
    sql("alter table long drop constraint long_pkey");
    sql("alter table long add primary key (mark, id)");
    assert_eq!(sql(&copy), "t");
    sql("create table other as select * from long");
    sql("truncate long");
    assert_eq!(sizes(&leader).0, 2 * 8_192, "two empty trees");
    let copied = format!("select note = {} from other where id = 13", noise(3, 300));
    assert_eq!(sql(&copied), "t");
    sql("drop table other");

    // In no index; and a table that gets its first long column later.
    sql("create index on long (note)");
    let refused = leader.query("insert into long values (1, 1, repeat('x', 9000))");
    let refused = refused.expect_err("a long value in an index");
    let refused = refused.to_string();
    assert!(refused.contains("index row size"), "{refused}");
    sql("drop table long");
    sql("create table long (id int)");
    sql("alter table long add column note text");
    sql(&format!("insert into long values (1, {})", noise(1, 5_000)));
    assert!(sizes(&leader).1 <= 8_192);
    sql("drop table long");
}

/// Letters that cannot be compressed.
fn letters(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        b'a' + ((state >> 40) % 26) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// A value of 64 MB: INSERT, SELECT, COPY in both directions, UPDATE of another column.
fn very_long_values(cluster: &Cluster, dir: &std::path::Path) {
    const BYTES: usize = 64 << 20;
    let leader = cluster.nodes()[cluster.leader().expect("a leader")].clone();
    let sql = |sql: &str| psql(&leader, sql);
    sql("create table long (id int primary key, mark int, note text)");
    let file = dir.join("long.copy");
    let line = [b"1\t0\t", &letters(1, BYTES)[..], b"\n"].concat();
    let mut out = std::fs::File::create(&file).expect("a file");
    out.write_all(&line).expect("it is written");
    sql(&format!("\\copy long from '{}'", file.display()));
    assert_eq!(sql("select length(note) from long"), BYTES.to_string());
    sql("update long set mark = 0 where id = 1");
    let back = dir.join("long.back");
    sql(&format!("\\copy long to '{}'", back.display()));
    assert!(
        std::fs::read(&back).expect("a file") == line,
        "it comes back"
    );
    sql("insert into long select 2, 0, note || 'z' from long");
    let same = "select left(b.note, -1) = a.note from long a, long b where a.id = 1 and b.id = 2";
    assert_eq!(sql(same), "t");
    let selected = psql(&leader, "select note from long where id = 1");
    assert!(selected.as_bytes() == &line[4..line.len() - 1]);
    sql("delete from long where id = 1");
    let fell = || number(&leader, "select pg_table_size('long')") < (BYTES as i64) * 3 / 2;
    wait_for("space given back", Duration::from_secs(60), fell).expect("pieces go");
    sql("drop table long");
}

#[test]
fn long_values_on_one_node() {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    values_stay_what_they_are(&cluster);
    very_long_values(&cluster, dir.path());
}

#[test]
fn long_values_on_three_nodes() {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("three nodes");
    values_stay_what_they_are(&cluster);
    very_long_values(&cluster, dir.path());
}

/// What was committed comes back from the checkpoint and from the log; an index is built over it.
#[test]
fn long_values_survive_a_kill() {
    let mut patient = Patient::new(1);
    let node = patient.nodes()[0].clone();
    let sql = |sql: &str| psql(&node, sql);
    sql("create table long (id int primary key, mark int, note text)");
    sql(&format!(
        "insert into long values (1, 7, {})",
        noise(1, 5_000)
    ));
    sql("checkpoint");
    sql(&format!(
        "insert into long values (2, 8, {})",
        noise(2, 5_000)
    ));
    sql("update long set mark = 9 where id = 1");
    let before = sql(SUMS);
    patient.kill(0);
    patient.start(0);
    patient.wait_until_answering(0);
    assert_eq!(sql(SUMS), before);
    sql("create index on long (mark)");
    assert_eq!(sql(SUMS), before);
    assert_eq!(
        sql(&format!(
            "select id from long where mark = 8 and note = {}",
            noise(2, 5_000)
        )),
        "2"
    );
}

/// A node that was away for longer than the log reaches back is sent the checkpoint's pages, those
/// of long values among them, and goes on from there.
#[test]
fn long_values_reach_a_node_with_a_checkpoint() {
    let settings = [
        "quorate.absent_log_size=1MB",
        "quorate.log_segment_size=4MB",
    ];
    let mut patient = Patient::with_settings(3, &settings);
    let leader = patient.cluster.leader().expect("a leader");
    let away = (leader + 1) % 3;
    let node = patient.nodes()[leader].clone();
    let sql = |sql: &str| psql(&node, sql);
    sql("create table long (id int primary key, mark int, note text)");
    sql(&format!(
        "insert into long values (1, 1, {})",
        noise(1, 5_000)
    ));
    patient.kill(away);
    // More log than every replica keeps for others.
    for id in 2..5u8 {
        let row = format!("{id}\t{id}\t").into_bytes();
        let line = [&row[..], &letters(u64::from(id), 30 << 20), b"\n"].concat();
        let file = patient.dir.path().join("long.copy");
        std::fs::write(&file, line).expect("a file");
        sql(&format!("\\copy long from '{}'", file.display()));
    }
    sql(&format!(
        "update long set note = {} where id = 1",
        noise(7, 9_000)
    ));
    sql("delete from long where id = 3");
    sql("checkpoint");
    // What comes after it is in the log.
    sql(&format!(
        "insert into long values (9, 9, {})",
        noise(9, 700)
    ));
    sql("update long set mark = 5 where id = 2");
    patient.start(away);
    patient.wait_until_answering(away);
    patient.wait_until_caught_up();
    let said = patient.cluster.node_dir(away).join("node.log");
    let said = std::fs::read_to_string(said).expect("its log");
    assert!(said.contains("continuing from checkpoint"), "{said}");
    let mut there = patient.nodes()[away].psql();
    there.env("PGOPTIONS", "-c quorate.follower_reads=settled");
    let shown = run(there.args(["-c", SUMS])).expect("its rows");
    assert_eq!(shown.trim_end(), sql(SUMS));
    // And its own checkpoint and log bring them back.
    patient.kill(away);
    patient.check(away);
    patient.start(away);
    patient.wait_until_answering(away);
    patient.wait_until_caught_up();
    let mut there = patient.nodes()[away].psql();
    there.env("PGOPTIONS", "-c quorate.follower_reads=settled");
    let shown = run(there.args(["-c", SUMS])).expect("its rows");
    assert_eq!(shown.trim_end(), sql(SUMS));
}
