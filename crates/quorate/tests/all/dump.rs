//! Dumps by the real pg_dump and pg_dumpall, restored by psql and pg_restore, into PostgreSQL and
//! into Quorate, and dumped there again.
//!
//! | script of tests/dump | what its dumps must be |
//! |---|---|
//! | `roles.sql` | roles and databases: the same as PostgreSQL's |
//! | `objects.sql` | objects of one database: the same as PostgreSQL's, wherever they are restored |
//! | `queries.sql` | views in a layout of Quorate's own: the same after a restore, and with the same rows |
//!
//! A dump has the rows of all tables in it, so that two equal dumps are of equal rows.

use std::path::Path;
use std::process::Command;

use lab::host::{output, Endpoint};
use lab::postgres::Postgres;
use lab::quorate::Cluster;

use crate::kill::{open_directory, program};
use crate::source;
use crate::stage::{Refusal, Stage};

/// How a dump is written, and how it is read.
#[derive(Clone, Copy, Debug)]
enum Format {
    Plain,
    Custom,
    /// By two sessions that share a snapshot.
    Directory,
}

const FORMATS: [Format; 3] = [Format::Plain, Format::Custom, Format::Directory];

/// Runs a program, which must succeed and have nothing to say beside its output.
fn quietly(command: &mut Command) -> String {
    let done = output(command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {said}");
    assert_eq!(said, "", "{command:?}");
    String::from_utf8(done.stdout).expect("a text")
}

/// psql in a database, saying nothing of what went well.
fn client(server: &Endpoint, database: &str) -> Command {
    let mut psql = server.client("psql");
    psql.args([
        "-X",
        "-q",
        "-A",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-d",
        database,
    ]);
    psql.env("PGOPTIONS", "-c client_min_messages=warning");
    psql
}

fn psql(server: &Endpoint, database: &str, sql: &str) -> String {
    quietly(client(server, database).args(["-c", sql]))
}

/// Runs a script of tests/dump.
fn load(server: &Endpoint, database: &str, script: &str) {
    let path = source::root().join("tests/dump").join(script);
    quietly(
        client(server, database)
            .args(["-o", "/dev/null", "-f"])
            .arg(path),
    );
}

/// A dump without what each run has of its own: versions, and the key of psql's restricted mode.
fn comparable(dump: &str) -> String {
    let own = ["\\restrict ", "\\unrestrict ", "-- Dumped "];
    let lines = dump.lines();
    let kept = lines.filter(|line| own.iter().all(|own| !line.starts_with(own)));
    kept.map(|line| format!("{line}\n")).collect()
}

fn dump(server: &Endpoint, database: &str) -> String {
    comparable(&quietly(server.client("pg_dump").args(["-d", database])))
}

fn dump_all(server: &Endpoint) -> String {
    comparable(&quietly(&mut server.client("pg_dumpall")))
}

/// Dumps a database and restores it elsewhere under another name.
fn copy(from: &Endpoint, database: &str, to: &Endpoint, copy: &str, format: Format, dir: &Path) {
    let file = dir.join(format!("{copy}.{format:?}"));
    let _ = std::fs::remove_dir_all(&file);
    let mut dump = from.client("pg_dump");
    dump.args(["-d", database, "-f"]).arg(&file);
    match format {
        Format::Plain => dump.arg("-Fp"),
        Format::Custom => dump.arg("-Fc"),
        Format::Directory => dump.args(["-Fd", "-j", "2"]),
    };
    quietly(&mut dump);
    psql(to, "postgres", &format!("drop database if exists {copy}"));
    psql(to, "postgres", &format!("create database {copy}"));
    let mut restore = match format {
        Format::Plain => client(to, copy),
        _ => to.client("pg_restore"),
    };
    match format {
        Format::Plain => restore.args(["-o", "/dev/null", "-f"]),
        Format::Custom => restore.args(["--exit-on-error", "-d", copy]),
        Format::Directory => restore.args(["--exit-on-error", "-j", "2", "-d", copy]),
    };
    quietly(restore.arg(&file));
}

/// The first lines in which two texts differ.
#[track_caller]
fn assert_same(ours: &str, theirs: &str, what: &str) {
    let (mut ours, mut theirs) = (ours.lines(), theirs.lines());
    for line in 1.. {
        match (ours.next(), theirs.next()) {
            (None, None) => return,
            (one, other) => assert_eq!(one, other, "{what}, line {line}"),
        }
    }
}

/// The rows of every view of a database.
fn rows_of_views(server: &Endpoint, database: &str) -> String {
    let views = "select viewname from pg_views where schemaname = 'public' order by 1";
    let views = psql(server, database, views);
    let rows = views.lines().map(|view| {
        let sql = format!("select * from \"{view}\" order by 1, 2");
        let sql = match view {
            "numbers" => "select * from numbers order by 1".to_owned(),
            _ => sql,
        };
        format!("{view}\n{}", psql(server, database, &sql))
    });
    rows.collect()
}

/// PostgreSQL and one node of Quorate, which hold nothing but what the scripts make.
struct Servers {
    quorate: Cluster,
    postgres: Postgres,
    dir: tempfile::TempDir,
}

impl Servers {
    fn start() -> Servers {
        let dir = open_directory();
        let settings = ["fsync = off"];
        let postgres = Postgres::primary(&dir.path().join("pg"), &settings).expect("PostgreSQL");
        let quorate =
            Cluster::start(program(), &dir.path().join("q"), 1, &[]).expect("a node of Quorate");
        let servers = Servers {
            quorate,
            postgres,
            dir,
        };
        for server in [servers.quorate(), servers.postgres()] {
            load(server, "postgres", "roles.sql");
            load(server, "dump_objects", "objects.sql");
            load(server, "dump_queries", "queries.sql");
        }
        servers
    }

    fn quorate(&self) -> &Endpoint {
        &self.quorate.nodes()[0]
    }

    fn postgres(&self) -> &Endpoint {
        self.postgres.endpoint()
    }

    /// From where to where dumps are taken, Quorate being one of them.
    fn ways(&self) -> [(&str, &Endpoint, &Endpoint); 3] {
        let (quorate, postgres) = (self.quorate(), self.postgres());
        [
            ("Quorate to Quorate", quorate, quorate),
            ("Quorate to PostgreSQL", quorate, postgres),
            ("PostgreSQL to Quorate", postgres, quorate),
        ]
    }
}

/// Takes away what the scripts have made.
fn drop_all(server: &Endpoint) {
    for database in ["dump_objects", "dump_queries", "dump_empty"] {
        psql(server, "postgres", &format!("drop database {database}"));
    }
    let roles =
        "select string_agg(quote_ident(rolname), ', ') from pg_roles where rolname like 'dump%'";
    let roles = psql(server, "postgres", roles);
    // What was given on settings is of no database.
    psql(
        server,
        "postgres",
        &format!("drop owned by {}", roles.trim()),
    );
    psql(server, "postgres", &format!("drop role {}", roles.trim()));
}

#[test]
fn dumps_restore_what_was_dumped() {
    let servers = Servers::start();
    let (quorate, postgres) = (servers.quorate(), servers.postgres());
    let empty = dump(quorate, "dump_empty");
    assert_same(&empty, &dump(postgres, "dump_empty"), "an empty database");
    let objects = dump(postgres, "dump_objects");
    assert_same(&dump(quorate, "dump_objects"), &objects, "objects");
    for format in FORMATS {
        for (way, from, to) in servers.ways() {
            let dir = servers.dir.path();
            copy(from, "dump_objects", to, "dump_copy", format, dir);
            let again = dump(to, "dump_copy");
            assert_same(&again, &objects, &format!("{format:?}, {way}"));
        }
    }

    let queries = dump(quorate, "dump_queries");
    let rows = rows_of_views(postgres, "dump_queries");
    assert_same(&rows_of_views(quorate, "dump_queries"), &rows, "views");
    for (way, from, to) in servers.ways() {
        copy(
            from,
            "dump_queries",
            to,
            "dump_copy",
            Format::Custom,
            servers.dir.path(),
        );
        assert_same(&rows_of_views(to, "dump_copy"), &rows, way);
        if way == "Quorate to Quorate" {
            assert_same(&dump(to, "dump_copy"), &queries, way);
        }
    }
    for server in [quorate, postgres] {
        psql(server, "postgres", "drop database dump_copy");
    }

    // Everything of a cluster, into the same one without it, and into PostgreSQL.
    let all = dump_all(quorate);
    let file = servers.dir.path().join("all.sql");
    std::fs::write(&file, quietly(&mut quorate.client("pg_dumpall"))).expect("a file");
    for server in [quorate, postgres] {
        drop_all(server);
        let mut restore = server.client("psql");
        restore.args(["-X", "-q", "-o", "/dev/null", "-d", "postgres", "-f"]);
        let done = output(restore.arg(&file)).expect("psql");
        let said = String::from_utf8_lossy(&done.stderr);
        let known = said.lines().all(|line| line.ends_with("already exists"));
        assert!(done.status.success() && known, "{said}");
    }
    assert_same(&dump_all(quorate), &all, "pg_dumpall, Quorate to Quorate");
    let roles =
        |server: &Endpoint| comparable(&quietly(server.client("pg_dumpall").arg("--globals-only")));
    assert_same(&roles(postgres), &roles(quorate), "roles in PostgreSQL");
    let objects = dump(quorate, "dump_objects");
    assert_same(
        &dump(postgres, "dump_objects"),
        &objects,
        "objects in PostgreSQL",
    );
    drop_all(quorate);
}

/// A transaction sees what another one exported, and nothing that came later: also where a table
/// has been made or emptied since.
fn snapshots_are_shared_on(stage: &Stage) {
    stage.table("exported", "i int primary key", "(1), (2)");
    stage.session().ok("drop table if exists exported_later");
    let (lender, borrower, other) = (stage.session(), stage.session(), stage.session());
    lender.ok("begin isolation level repeatable read; insert into exported values (3)");
    let name = lender.ok("select pg_export_snapshot()");
    assert!(
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| b"0123456789ABCDEF-".contains(&byte))
    );
    other.ok("insert into exported values (4)");
    other.ok("create table exported_later as select 1 as i");
    let import = format!("set transaction snapshot '{name}'");
    borrower.ok(&format!("begin isolation level repeatable read; {import}"));
    assert_eq!(borrower.ok("select i from exported order by i"), "1\n2");
    assert_eq!(borrower.ok("select count(*) from exported_later"), "0");
    assert_eq!(lender.ok("select i from exported order by i"), "1\n2\n3");
    lender.ok("commit");
    other.ok("delete from exported");
    // Whoever has it keeps it; nobody else gets it any more.
    assert_eq!(borrower.ok("select i from exported order by i"), "1\n2");
    borrower.ok("commit");
    let again = borrower.answer(&format!("begin isolation level repeatable read; {import}"));
    let again = again.expect_err("its lender has gone");
    assert_eq!(again.state, "22023");
    assert_eq!(
        again.message,
        format!("invalid snapshot identifier: \"{name}\"")
    );
    borrower.ok("rollback");
    for table in ["exported", "exported_later"] {
        other.ok(&format!("drop table {table}"));
    }
}

/// What is refused of exports and imports, with PostgreSQL's words.
fn snapshots_are_refused_on(stage: &Stage) -> Vec<Refusal> {
    let (lender, session) = (stage.session(), stage.session());
    lender.ok("begin isolation level repeatable read");
    let name = lender.ok("select pg_export_snapshot()");
    let import = format!("set transaction snapshot '{name}'");
    let import = import.as_str();
    let repeatable = "begin isolation level repeatable read";
    let imported = format!("{repeatable}; {import}");
    let imported = imported.as_str();
    let mut refused = Vec::new();
    for statements in [
        [repeatable, "set transaction snapshot 'no such'"],
        [repeatable, "set transaction snapshot '00000000-00000000-1'"],
        ["begin", import],
        ["begin isolation level repeatable read; select 1", import],
        ["begin isolation level repeatable read; savepoint s", import],
        [imported, "set transaction isolation level serializable"],
        [imported, import],
        ["begin; savepoint s", "select pg_export_snapshot()"],
    ] {
        session.ok(statements[0]);
        refused.push(session.answer(statements[1]).expect_err(statements[1]));
        session.ok("rollback");
    }
    lender.ok("rollback");
    refused
}

#[test]
fn snapshots_are_shared() {
    for stage in [Stage::postgresql(), Stage::quorate(), Stage::one_node()] {
        snapshots_are_shared_on(&stage);
    }
    let expected = snapshots_are_refused_on(&Stage::postgresql());
    assert_eq!(snapshots_are_refused_on(&Stage::quorate()), expected);
    let serializable = Stage::one_node().session();
    serializable.ok("begin isolation level serializable");
    assert_eq!(
        serializable.refused("set transaction snapshot 'A'"),
        "0A000"
    );
}

#[test]
fn a_database_is_dropped_with_what_was_said_of_its_objects() {
    let node = &Stage::one_node().nodes()[0].clone();
    let inside = [
        "create table t (a int); grant select on t to public",
        "create table t (a int primary key); comment on table t is 'x'; comment on column t.a is 'x'",
        "create table t (a int check (a > 0)); comment on constraint t_a_check on t is 'x'",
        "create table t (a int); create index i on t (a); comment on index i is 'x'",
        "create table t (a int); grant select (a) on t to public",
        "create sequence s; comment on sequence s is 'x'; grant usage on sequence s to public",
        "create view v as select 1 as a; comment on column v.a is 'x'; grant select on v to public",
        "create materialized view v as select 1 as a; comment on materialized view v is 'x'",
        "create schema s; grant usage on schema s to public; comment on schema s is 'x'",
        "comment on schema public is 'x'; revoke all on schema public from public",
        "revoke all on pg_class from public; comment on table pg_class is 'x'",
        "comment on database dropped is 'x'; grant connect on database dropped to public",
        "alter database dropped set work_mem = '9MB'",
        "alter role all in database dropped set work_mem = '9MB'",
        "alter role postgres in database dropped set work_mem = '9MB'",
        "create table t (a serial, b int generated always as identity, c text default 'x')",
    ];
    for statements in inside {
        psql(node, "postgres", "create database dropped");
        psql(node, "dropped", statements);
        let oid = "select oid from pg_database where datname = 'dropped'";
        let oid = psql(node, "postgres", oid);
        psql(node, "postgres", "drop database dropped");
        let left = format!(
            "select (select count(*) from pg_db_role_setting where setdatabase = {oid})
                  + (select count(*) from pg_shdescription where objoid = {oid})"
        );
        assert_eq!(psql(node, "postgres", &left).trim(), "0", "{statements}");
    }
}
