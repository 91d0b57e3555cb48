//! ANALYZE that runs by itself, and what is counted: on the node that leads, after a failover too, seen by
//! who looks, and out of the way of who does something else.

use std::time::Duration;

use lab::host::{wait_for, Endpoint};
use lab::quorate::Cluster;
use tempfile::TempDir;

use crate::kill::program;
use crate::questions::psql;

const PATIENCE: Duration = Duration::from_secs(60);

fn start(nodes: usize) -> (Cluster, TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let settings = ["autovacuum_naptime=1s"];
    let cluster = Cluster::start(program(), dir.path(), nodes, &settings).expect("a cluster");
    (cluster, dir)
}

fn until(what: &str, node: &Endpoint, question: &str, answer: &str) {
    let is_so = || psql(node, question) == answer;
    wait_for(what, PATIENCE, is_so).unwrap_or_else(|error| {
        let said = psql(node, question);
        panic!("{what}: {said} instead of {answer}: {error}")
    });
}

const COUNTS: &str = "select autoanalyze_count, analyze_count, n_mod_since_analyze,
    last_autoanalyze > now() - interval '1 hour' from pg_stat_user_tables where relname = 'auto_some'";

#[test]
fn tables_are_analyzed_when_enough_has_changed() {
    let (cluster, _dir) = start(1);
    let node = &cluster.nodes()[0];
    psql(
        node,
        "create table auto_some (id int primary key, v int);
         create table auto_few (v int);
         create table auto_never (v int) with (autovacuum_enabled = off);
         create table auto_often (v int) with (autovacuum_analyze_threshold = 1);
         insert into auto_some select g, g % 3 from generate_series(1, 200) g;
         insert into auto_few select g from generate_series(1, 50) g;
         insert into auto_never select g from generate_series(1, 500) g;
         insert into auto_often select g from generate_series(1, 2) g",
    );
    until("the first time", node, COUNTS, "1|0|0|t");
    let columns = "select string_agg(attname, ' ' order by attname) from pg_stats where tablename = 'auto_some'";
    assert_eq!(psql(node, columns), "id v");
    // 50 + 0.1 * 200 is not enough.
    psql(node, "update auto_some set v = v + 1 where id <= 70");
    until(
        "often",
        node,
        "select autoanalyze_count from pg_stat_user_tables where relname = 'auto_often'",
        "1",
    );
    assert_eq!(psql(node, COUNTS), "1|0|70|t");
    psql(node, "update auto_some set v = v + 1 where id = 71");
    until("the second time", node, COUNTS, "2|0|0|t");
    let others = "select string_agg(autoanalyze_count::text, ' ') from pg_stat_user_tables
        where relname in ('auto_few', 'auto_never')";
    assert_eq!(psql(node, others), "0 0");
    // It is off for all, and then by what counts.
    psql(node, "alter system set autovacuum = off");
    psql(node, "select pg_reload_conf()");
    psql(
        node,
        "insert into auto_some select g, 7 from generate_series(201, 600) g",
    );
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(psql(node, COUNTS), "2|0|400|t");
    psql(node, "alter system set autovacuum = on");
    psql(node, "select pg_reload_conf()");
    until("the third time", node, COUNTS, "3|0|0|t");
    psql(node, "analyze auto_some");
    assert_eq!(psql(node, COUNTS), "3|1|0|t");
}

#[test]
fn whoever_needs_the_table_or_the_database_gets_it() {
    let (cluster, _dir) = start(1);
    let node = &cluster.nodes()[0];
    psql(node, "create database auto_other");
    psql(
        node,
        "create table auto_long (id int primary key, v text) with (autovacuum_enabled = off)",
    );
    psql(
        node,
        "insert into auto_long select g, 'v' || g from generate_series(1, 300000) g",
    );
    psql(node, "alter table auto_long set (autovacuum_enabled = on)");
    let at_work = "select count(*) from pg_stat_activity where backend_type = 'autovacuum worker'
        and query like '%auto_long%' and state = 'active'";
    until("it is at work", node, at_work, "1");
    psql(
        node,
        "set lock_timeout = '20s'; alter table auto_long add column w int",
    );
    let columns =
        "select count(*) from pg_attribute where attrelid = 'auto_long'::regclass and attnum > 0";
    assert_eq!(psql(node, columns), "3");
    until("it is at work again", node, at_work, "1");
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where backend_type = 'autovacuum worker'";
    psql(node, end);
    psql(node, "drop database auto_other");
    let done = "select autoanalyze_count > 0 from pg_stat_user_tables where relname = 'auto_long'";
    until("it ends", node, done, "t");
    assert_eq!(
        psql(
            node,
            "select count(*) from pg_stat_activity where datname is null"
        ),
        "0"
    );
}

#[test]
fn a_new_leader_goes_on() {
    let (cluster, _dir) = start(3);
    let leader = cluster.leader().expect("a leader");
    let node = cluster.nodes()[leader].clone();
    psql(
        &node,
        "create table auto_some (id int primary key, v int);
         insert into auto_some select g, g % 3 from generate_series(1, 200) g",
    );
    until("the first time", &node, COUNTS, "1|0|0|t");
    let names =
        "select name from quorate.nodes where role <> 'leader' and voter order by name limit 1";
    let next = psql(&node, names);
    psql(&node, &format!("select quorate.switchover('{next}')"));
    // What was counted stays with the node that counted; what was found does not.
    until("the new leader", &node, COUNTS, "1|0|0|t");
    psql(
        &node,
        "insert into auto_some select g, 7 from generate_series(201, 400) g",
    );
    until("the second time", &node, COUNTS, "2|0|0|t");
}
