//! The server's log beside PostgreSQL 15's: the same script by the same psql, the records compared
//! field by field; passwords that stand in none of it; the audit; and what one role is shown of
//! another's session and rows.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lab::host::{output, wait_for, Endpoint, PATIENCE};
use lab::postgres::Postgres;
use lab::quorate::Cluster;
use postgres::{Config, NoTls};
use tempfile::TempDir;

use crate::kill::{open_directory, program};
use crate::stage::Stage;

/// What both servers are told, each in its own way.
const SETTINGS: [(&str, &str); 4] = [
    ("log_destination", "stderr,csvlog,jsonlog"),
    ("log_line_prefix", "%u|%d|%i|%e|%b|%5l|%-8a|%%|%Q: "),
    ("log_connections", "on"),
    ("log_disconnections", "on"),
];

/// What is said and logged alike. Passwords are not: PostgreSQL logs them.
const SCRIPT: &str = r#"
create table t (a int primary key, b int check (b > 0), c text not null);
insert into t values (1, 1, 'x');
insert into t values (1, 1, 'x');
insert into t values (2, -1, 'a "quoted" word');
insert into t values (3, 3, null);
selec 1;
select 1/0 as "x""y", 'a,b';
select nosuch(1);
select * from nosuch;
do $$ begin raise warning 'careful %', 1 using hint = 'h', detail = 'd'; end $$;
do $$ begin raise log 'to the log'; end $$;
do $$ begin raise notice 'to nobody but the client'; end $$;
do $$ begin perform 1/0; end $$;
set client_min_messages = error;
do $$ begin raise warning 'to the log alone'; end $$;
reset client_min_messages;
set log_min_messages = notice;
do $$ begin raise notice 'to the log, too'; end $$;
reset log_min_messages;
commit;
begin;
insert into t values (7, 7, 'x');
insert into t values (7, 7, 'x');
select 1;
rollback;
set log_min_error_statement = log;
select 2/0;
reset log_min_error_statement;
set log_error_verbosity = terse;
insert into t values (1, 1, 'x');
reset log_error_verbosity;
set log_min_messages = fatal;
select 3/0;
reset log_min_messages;
set log_statement = ddl;
create table u (a int);
insert into u values (1);
select 4;
drop table u;
set log_statement = mod;
insert into t values (8, 8, 'x');
update t set b = 9 where a = 8;
delete from t where a = 8;
truncate t;
select 5;
explain (costs off) insert into t values (9, 9, 'x');
explain (analyze off) insert into t values (9, 9, 'x');
explain (analyze 0, costs off) delete from t;
explain (analyze true, costs off, timing off, summary off) delete from t where a = 9;
set log_statement = 'all';
select 6;
select 7\; select 8;
prepare p as select $1::int;
execute p(3);
begin;
commit;
  -- a comment
select
  'two lines';
set log_min_duration_statement = 0;
select 9;
set log_statement = none;
select 10;
select 11/0;
set log_min_duration_statement = '1h';
select 12;
set log_duration = on;
select 13;
reset log_duration;
reset log_min_duration_statement;
set application_name = 'another';
select 14/0;
set application_name = '';
select 15/0;
drop table t;
"#;

/// PostgreSQL and one node of Quorate with the same settings, and their logs.
struct Both {
    postgres: Postgres,
    quorate: Cluster,
    dir: TempDir,
}

/// Which of them.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    Postgresql,
    Quorate,
}

impl Both {
    fn start() -> Both {
        let dir = open_directory();
        let mut lines: Vec<_> = SETTINGS
            .iter()
            .map(|(name, value)| format!("{name} = '{value}'"))
            .collect();
        lines.extend(
            [
                "fsync = off",
                "logging_collector = on",
                "log_directory = 'log'",
                "log_filename = 'server.log'",
            ]
            .map(str::to_owned),
        );
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let postgres = Postgres::primary(&dir.path().join("pg"), &lines).expect("PostgreSQL");
        let settings: Vec<_> = SETTINGS
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let settings: Vec<_> = settings.iter().map(String::as_str).collect();
        let quorate = Cluster::start(program(), dir.path(), 1, &settings).expect("a node");
        Both {
            postgres,
            quorate,
            dir,
        }
    }

    fn endpoint(&self, of: Server) -> Endpoint {
        let endpoint = match of {
            Server::Postgresql => self.postgres.endpoint(),
            Server::Quorate => &self.quorate.nodes()[0],
        };
        Endpoint::at(&endpoint.host, endpoint.port)
    }

    /// A file of a server's log: of text, `csv` or `json`.
    fn log(&self, of: Server, form: &str) -> PathBuf {
        let (dir, name) = match of {
            Server::Postgresql => (self.dir.path().join("pg/log"), "server"),
            Server::Quorate => (self.dir.path().join("data/n1"), "node.log"),
        };
        dir.join(match (of, form) {
            (Server::Postgresql, "text") => "server.log".to_owned(),
            (Server::Quorate, "text") => name.to_owned(),
            (_, form) => format!("{name}.{form}"),
        })
    }

    fn run(&self, of: Server, script: &str) {
        let mut psql = self.endpoint(of).client("psql");
        psql.args(["-X", "-q", "-d", "postgres", "-c", "select 0"]);
        output(&mut psql).expect("psql runs");
        let file = self.dir.path().join("script.sql");
        std::fs::write(&file, script).expect("a file");
        let mut psql = self.endpoint(of).client("psql");
        let psql = psql.args(["-X", "-q", "-d", "postgres", "-f"]).arg(&file);
        output(psql).expect("psql runs");
        let mut config = Config::new();
        let endpoint = self.endpoint(of);
        config.host(&endpoint.host).port(endpoint.port);
        config
            .user("postgres")
            .dbname("postgres")
            .application_name("driver");
        let mut client = config.connect(NoTls).expect("a session");
        client
            .batch_execute("set log_statement = 'all'")
            .expect("a setting");
        let _ = client.query("select $1::text", &[&"it's"]);
        let none: Option<&str> = None;
        let _ = client.query("select $1::text", &[&none]);
        let _ = client.query("select nosuch($1)", &[&"x"]);
        client
            .batch_execute("set log_parameter_max_length = 4")
            .expect("a setting");
        let _ = client.query("select $1::text", &[&"longer than four"]);
        client.close().expect("a goodbye");
        // A client of a database that is not there, and one that is gone in a transaction.
        let mut psql = self.endpoint(of).client("psql");
        output(psql.args(["-X", "-d", "nowhere", "-c", "select 1"])).expect("psql runs");
    }
}

/// Whether a file ends in what a test has done last.
fn wait_for_end(path: &Path, end: &str) -> String {
    let mut text = String::new();
    wait_for("the last line of the log", PATIENCE, || {
        text = std::fs::read_to_string(path).unwrap_or_default();
        text.contains(end)
    })
    .unwrap_or_else(|error| panic!("{error}: {}: {text}", path.display()));
    // Whatever comes with it.
    std::thread::sleep(Duration::from_millis(200));
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Records of comma-separated values; a value without quotes that is empty is NULL.
fn csv(text: &str) -> Vec<Vec<Option<String>>> {
    let mut records = Vec::new();
    let (mut record, mut value, mut is_quoted, mut was_quoted) =
        (Vec::new(), String::new(), false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.next_if_eq(&'"').is_some() => value.push('"'),
            '"' => {
                is_quoted = !is_quoted;
                was_quoted = true;
            }
            ',' | '\n' if !is_quoted => {
                let value = std::mem::take(&mut value);
                let is_null = value.is_empty() && !std::mem::take(&mut was_quoted);
                record.push((!is_null).then_some(value));
                was_quoted = false;
                if c == '\n' {
                    records.push(std::mem::take(&mut record));
                }
            }
            c => value.push(c),
        }
    }
    records
}

/// The same text where times, ports and numbers of sessions stand in it.
fn settled(text: &str) -> String {
    let mut out = text.to_owned();
    for (before, after) in [
        ("duration: ", " ms"),
        ("session time: ", " user="),
        ("port=", ""),
        // Drivers count their statements.
        ("execute s", ":"),
    ] {
        if let Some(at) = out.find(before) {
            let from = at + before.len();
            let is_colon = before == "session time: ";
            let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ':' && is_colon;
            let end = out[from..]
                .find(|c| !is_part(c))
                .map_or(out.len(), |end| from + end);
            if out[end..].starts_with(after) {
                out.replace_range(from..end, "N");
            }
        }
    }
    out
}

/// PostgreSQL's columns by name.
const COLUMNS: [&str; 26] = [
    "log_time",
    "user_name",
    "database_name",
    "process_id",
    "connection_from",
    "session_id",
    "session_line_num",
    "command_tag",
    "session_start_time",
    "virtual_transaction_id",
    "transaction_id",
    "error_severity",
    "sql_state_code",
    "message",
    "detail",
    "hint",
    "internal_query",
    "internal_query_pos",
    "context",
    "query",
    "query_pos",
    "location",
    "application_name",
    "backend_type",
    "leader_pid",
    "query_id",
];

/// Columns and keys in which no two servers, or no two runs, agree.
const VOLATILE: [&str; 17] = [
    "log_time",
    "process_id",
    "connection_from",
    "session_id",
    "session_start_time",
    "virtual_transaction_id",
    "transaction_id",
    "location",
    "timestamp",
    "pid",
    "remote_port",
    "session_start",
    "vxid",
    "txid",
    "func_name",
    "file_name",
    "file_line_num",
];

/// The records of a log of comma-separated values, one a line, without what varies.
fn csv_records(text: &str) -> Vec<String> {
    let records = csv(text).into_iter().map(|record| {
        assert_eq!(record.len(), COLUMNS.len(), "{record:?}");
        let mut line = String::new();
        for (name, value) in COLUMNS.iter().zip(record) {
            let is_shown = !VOLATILE.contains(name);
            if let (true, Some(value)) = (is_shown, value) {
                let _ = write!(line, "{name}={} ", settled(&value));
            }
        }
        line
    });
    of_sessions(records.collect())
}

fn json_records(text: &str) -> Vec<String> {
    let records = text.lines().map(|line| {
        let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let object = object.as_object().expect("an object").clone();
        let mut line = String::new();
        for (name, value) in object {
            if !VOLATILE.contains(&name.as_str()) {
                let _ = write!(line, "{name}={} ", settled(&value.to_string()));
            }
        }
        line
    });
    of_sessions(records.collect())
}

/// Lines of text, those of sessions only.
fn text_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let is_sessions = line.contains("|client backend|") || line.contains("|not initialized|");
        // A server's own lines have another form, and what goes on begins with a tab.
        if is_sessions || line.starts_with('\t') && !lines.is_empty() {
            lines.push(settled(line));
        }
    }
    of_sessions(lines)
}

/// What belongs to sessions, from the script's own on: a server may have served others before.
fn of_sessions(records: Vec<String>) -> Vec<String> {
    let is_sessions = |record: &&String| {
        record.contains("client backend")
            || record.contains("not initialized")
            || record.starts_with('\t')
    };
    let records: Vec<_> = records.iter().filter(is_sessions).cloned().collect();
    let first = records
        .iter()
        .position(|record| record.contains("duplicate key"));
    let records = records[first.unwrap_or(0)..].iter().cloned();
    // The end of one session may come after the beginning of the next.
    let (mut ends, others): (Vec<_>, Vec<_>) =
        records.partition(|record| record.contains("disconnection: "));
    ends.sort();
    [others, ends].concat()
}

fn same(form: &str, theirs: &[String], ours: &[String]) {
    let pairs = theirs.iter().zip(ours).enumerate();
    let differences: Vec<_> = pairs
        .filter(|(_, (theirs, ours))| theirs != ours)
        .map(|(record, (theirs, ours))| format!("{record}\n  {theirs}\n  {ours}"))
        .collect();
    assert!(
        differences.is_empty(),
        "{form}:\n{}",
        differences.join("\n")
    );
    assert_eq!(ours.len(), theirs.len(), "records of {form}");
    assert!(ours.len() > 50, "{} records of {form}", ours.len());
}

#[test]
fn the_log_is_postgresqls() {
    let both = Both::start();
    let servers = [Server::Postgresql, Server::Quorate];
    for server in servers {
        both.run(server, SCRIPT);
    }
    let read = |server, form| {
        wait_for_end(
            &both.log(server, form),
            "database \"nowhere\" does not exist",
        )
    };
    let read = |server, form| match form {
        "csv" => wait_for_end(
            &both.log(server, form),
            "database \"\"nowhere\"\" does not exist",
        ),
        "json" => wait_for_end(
            &both.log(server, form),
            "database \\\"nowhere\\\" does not exist",
        ),
        _ => read(server, form),
    };
    let [theirs, ours] = servers.map(|server| csv_records(&read(server, "csv")));
    same("csvlog", &theirs, &ours);
    let [theirs, ours] = servers.map(|server| json_records(&read(server, "json")));
    same("jsonlog", &theirs, &ours);
    let [theirs, ours] = servers.map(|server| text_lines(&read(server, "text")));
    same("stderr", &theirs, &ours);
}

// ---- Passwords ----

/// Statements in which a password stands, in ways that people have found.
const SECRETS: [&str; 20] = [
    "create role w1 login password 'sesame'",
    "alter role w1 with encrypted password 'sesame' valid until '2030-01-01'",
    "alter user w1 password e'ses\\141me'",
    "alter role w1 password $x$sesame$x$",
    "alter role w1 password 'sesame' 'sesame'",
    "alter role w1 pasword 'sesame'",
    "alter role w1 password sesame",
    "alter role nobody_here password 'sesame'",
    "do $$ begin alter role w1 password 'sesame'; end $$",
    "do $$ begin execute 'alter role w1 password ''sesame'''; end $$",
    "do $$ begin execute 'alter role nobody_here password ''sesame'''; end $$",
    "do $$ begin execute format('alter role w1 password %L', 'sesame') ; perform 1/0; end $$",
    "do $$ declare p text := 'sesame'; begin execute format('alter user w1 password %L', p); end $$",
    "do $x$ begin execute $y$create role w2 password 'sesame'$y$; raise 'no'; end $x$",
    "prepare p as alter role w1 password 'sesame'",
    "prepare p(text) as select format('alter role w1 password %L', $1); execute p('sesame')",
    "explain alter role w1 password 'sesame'",
    "select set_config('w.x', 'alter role w1 password ''sesame''', false)",
    "select 1; alter role w1 password 'sesame'; select 2/0",
    "alter role w1 password 'sesame",
];

#[test]
fn passwords_stand_nowhere() {
    let dir = open_directory();
    let settings = [
        "log_destination=stderr,csvlog,jsonlog",
        "log_statement=all",
        "log_duration=on",
        "log_min_duration_statement=0",
        "log_min_messages=debug1",
    ];
    let cluster = Cluster::start(program(), dir.path(), 1, &settings).expect("a node");
    let node = &cluster.nodes()[0];
    for statement in SECRETS {
        let mut psql = node.client("psql");
        let psql = psql.args(["-X", "-d", "postgres", "-c", statement]);
        // Its client may see what it has said.
        output(psql).expect("psql runs");
        // While it idles, what it did last is shown.
        let mut client = crate::writers::connect(node).expect("a session");
        let _ = client.simple_query(statement);
        let shown = "select query from pg_stat_activity where query not like '%pg_stat%'";
        let shown = node.query(shown).expect("an answer");
        let is_masked = !shown.contains("sesame") && !shown.contains("ses\\141me");
        assert!(
            is_masked && shown.contains('*') || shown.is_empty(),
            "{shown}"
        );
        let mut prepared = crate::writers::connect(node).expect("a session");
        let _ = prepared.prepare(statement);
    }
    node.query("select 'the end'").expect("an answer");
    for file in ["node.log", "node.log.csv", "node.log.json"] {
        let text = wait_for_end(&dir.path().join("data/n1").join(file), "the end");
        for word in ["sesame", "ses\\141me", "ses\\\\141me"] {
            let found = text.lines().find(|line| line.contains(word));
            assert_eq!(found, None, "{file}");
        }
        assert!(text.contains("********"), "{file}");
    }
    let audited = node
        .query("select statement from quorate.audit")
        .expect("the audit");
    assert!(
        !audited.contains("sesame") && audited.contains("********"),
        "{audited}"
    );
    assert!(audited.contains("valid until '2030-01-01'"), "{audited}");
}

#[test]
fn the_nodes_own_lines_take_all_forms() {
    let dir = open_directory();
    let settings = [
        "log_destination=stderr,csvlog,jsonlog",
        "log_statement=all",
        "log_line_prefix=%v|%b|%x: ",
    ];
    let cluster = Cluster::start(program(), dir.path(), 1, &settings).expect("a node");
    let node = cluster.nodes()[0].clone();
    node.query("select 1; select 2/0")
        .expect_err("a division by zero");
    node.query("select pg_current_xact_id(); select 'x'::int")
        .expect_err("no number");
    let pid = cluster.pid(0).expect("it runs");
    lab::host::signal(pid, "TERM").expect("it is told");
    let log = |file: &str| wait_for_end(&dir.path().join("data/n1").join(file), "told to stop");
    let records = csv(&log("node.log.csv"));
    let column = |name: &str| COLUMNS.iter().position(|known| *known == name).expect("it");
    let of = |record: &[Option<String>], name: &str| record[column(name)].clone();
    let own: Vec<_> = records
        .iter()
        .filter(|record| of(record, "backend_type").as_deref() == Some("node"))
        .collect();
    assert!(own.len() > 1, "{records:?}");
    for (number, record) in own.iter().enumerate() {
        assert_eq!(record.len(), COLUMNS.len());
        assert_eq!(of(record, "process_id"), Some(pid.to_string()));
        assert_eq!(
            of(record, "session_line_num"),
            Some((number + 1).to_string())
        );
        assert_eq!(of(record, "application_name").as_deref(), Some("n1"));
        assert_eq!((of(record, "user_name"), of(record, "query")), (None, None));
    }
    let json = log("node.log.json");
    let is_own = |line: &&str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line["backend_type"] == "node"
    };
    assert_eq!(json.lines().filter(is_own).count(), own.len());
    // One transaction for the whole message, and the error is its too.
    let text = log("node.log");
    let of_session = |line: &&str| line.contains("|client backend|");
    let numbers = text.lines().filter(of_session).map(|line| {
        let (number, rest) = line.split_once('|').expect("a prefix");
        let number = number.split_once('/').expect("two numbers").1;
        (number.to_owned(), rest.contains("division"))
    });
    let failed: Vec<_> = numbers.filter(|(_, failed)| *failed).collect();
    assert_eq!(failed, [("1".to_owned(), true)], "{text}");
    // Its id stands where it was asked for.
    let id = |error: &str| {
        let line = text.lines().find(|line| line.contains(error));
        let (_, rest) = line?.split_once("|client backend|")?;
        rest.split_once(": ")?.0.parse::<u64>().ok()
    };
    assert_eq!(id("ERROR:  division"), Some(0), "{text}");
    let xid = id("ERROR:  invalid input").expect("its id");
    assert!(xid > 0, "{text}");
    assert!(json.contains(&format!("\"txid\":{xid},")), "{json}");
    let in_csv = |record: &Vec<_>| of(record, "transaction_id") == Some(xid.to_string());
    assert!(records.iter().any(in_csv), "{records:?}");
}

#[test]
fn the_audit_keeps_the_newest() {
    let dir = open_directory();
    let settings = ["quorate.audit_entries=1200"];
    let cluster = Cluster::start(program(), dir.path(), 1, &settings).expect("a node");
    let node = &cluster.nodes()[0];
    node.query("create table kept (i int)").expect("a table");
    let comment = |count: u32| {
        let block = format!(
            "do $$ begin for i in 1..{count} loop \
             execute format('comment on table kept is %L', i); end loop; end $$"
        );
        node.query(&block).expect("comments");
    };
    let kept = || {
        let kept = "select count(*), max(number) - min(number) from quorate.audit";
        node.query(kept).expect("the audit")
    };
    // Many in one transaction, and then one by one.
    comment(1_300);
    let many = kept();
    for number in 0..20 {
        node.query(&format!("comment on table kept is 'n{number}'"))
            .expect("a comment");
    }
    assert_eq!((many.as_str(), kept().as_str()), ("1200|1199", "1200|1199"));
    let newest = node.query("select statement from quorate.audit order by number desc limit 1");
    assert_eq!(newest.expect("it"), "comment on table kept is 'n19'");
    // The places in the log are in the order of the changes.
    let places = "select count(*), count(distinct lsn), bool_and(lsn > '0/0') and \
                  array_agg(number order by number) = array_agg(number order by lsn, number) \
                  from (select * from quorate.audit order by number desc limit 20) a";
    assert_eq!(node.query(places).expect("places"), "20|20|t");
    // A bound that was lowered is reached by and by, and nothing that is rolled back counts.
    node.query("alter system set quorate.audit_entries = 1000")
        .expect("a setting");
    node.query("select pg_reload_conf()").expect("it is read");
    comment(300);
    node.query("begin; comment on table kept is 'never'; rollback")
        .expect("a rollback");
    assert!(kept().starts_with("1000|"), "{}", kept());
    let newest = node.query("select statement from quorate.audit order by number desc limit 1");
    assert!(newest.expect("it").ends_with("'300'"));
}

// ---- Who fails to log in ----

#[test]
fn failed_logins_are_explained_in_the_log_alone() {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let node = &cluster.nodes()[0];
    node.query(
        "create role ann login password 'sesame'; create role blank login; \
         create role late login password 'sesame' valid until '2001-01-01'",
    )
    .expect("the roles");
    let rules = "# rules\nhost all postgres all trust\n\nhost all all 127.0.0.1/32 scram-sha-256\n";
    let file = dir.path().join("data/n1/pg_hba.conf");
    std::fs::write(&file, rules).expect("the rules");
    node.query("select pg_reload_conf()")
        .expect("they are read");
    let login = |user: &str, password: &str| {
        let mut psql = Command::new("psql");
        let connection = format!(
            "host={} port={} user={user} dbname=postgres",
            node.host, node.port
        );
        let psql = psql.args(["-X", "-d", &connection, "-c", "select 1"]);
        let done = output(psql.env("PGPASSWORD", password)).expect("psql runs");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let log = dir.path().join("data/n1/node.log");
    let rule = "Connection matched pg_hba.conf line 4: \"host all all 127.0.0.1/32 scram-sha-256\"";
    for (user, reason) in [
        ("ann", ""),
        ("blank", "User \"blank\" has no password assigned.\n\t"),
        ("late", "User \"late\" has an expired password.\n\t"),
        ("nobody", "Role \"nobody\" does not exist.\n\t"),
    ] {
        let message = format!("FATAL:  password authentication failed for user \"{user}\"");
        let told = login(user, "wrong");
        assert!(told.trim_end().ends_with(&message), "{told}");
        let detail = format!("DETAIL:  {reason}{rule}\n");
        let text = wait_for_end(&log, &detail);
        assert!(text.contains(&format!("] {message}\n")), "{text}");
    }
    assert_eq!(login("ann", "sesame"), "");
    let text = std::fs::read_to_string(&log).expect("the log");
    assert!(!text.contains("connection authorized"), "{text}");
}

// ---- The files of the log ----

#[test]
fn a_flood_of_lines_fills_no_disk() {
    let dir = open_directory();
    let settings = [
        "log_rotation_size=64kB",
        "quorate.log_files=3",
        "log_destination=stderr,jsonlog",
        "log_statement=all",
    ];
    let cluster = Cluster::start(program(), dir.path(), 1, &settings).expect("a node");
    let node = &cluster.nodes()[0];
    assert_eq!(
        node.query("show log_rotation_size").as_deref().ok(),
        Some("64kB")
    );
    let mut client = crate::writers::connect(node).expect("a session");
    let long = "x".repeat(1_000);
    for _ in 0..600 {
        client
            .simple_query(&format!("select '{long}'"))
            .expect("an answer");
    }
    client.simple_query("select 'the end'").expect("an answer");
    let data = dir.path().join("data/n1");
    wait_for_end(&data.join("node.log.json"), "the end");
    let files = std::fs::read_dir(&data).expect("the directory");
    let mut sizes: Vec<_> = files
        .map(|file| file.expect("a file"))
        .filter(|file| file.file_name().to_string_lossy().starts_with("node.log"))
        .map(|file| {
            (
                file.file_name().into_string().expect("a name"),
                file.metadata().expect("a file"),
            )
        })
        .collect();
    sizes.sort_by(|one, other| one.0.cmp(&other.0));
    let names: Vec<_> = sizes.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "node.log",
        "node.log.1",
        "node.log.2",
        "node.log.3",
        "node.log.json",
        "node.log.json.1",
        "node.log.json.2",
        "node.log.json.3",
    ];
    assert_eq!(names, expected);
    for (name, file) in sizes {
        use std::os::unix::fs::PermissionsExt;
        assert!(file.len() <= 64 << 10, "{name}: {}", file.len());
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

// ---- The audit ----

#[test]
fn the_audit_is_part_of_what_it_tells_of() {
    let stage = Stage::quorate();
    let session = stage.session();
    session.ok("drop role if exists auditor; drop role if exists audited");
    let before: i64 = session
        .ok("select coalesce(max(number), 0) from quorate.audit")
        .parse()
        .expect("a number");
    session.ok("create role audited; create role auditor login in role pg_read_all_stats");
    session.ok("begin; create table audited_t (a int); rollback");
    session.ok("begin; create table audited_t (a int); savepoint s; drop table audited_t");
    session.ok("rollback to s; commit");
    session.refused("create table audited_t (a int)");
    session.ok("grant select on audited_t to audited");
    session.ok("do $$ begin comment on table audited_t is 'x'; end $$");
    session.ok("create temp table audited_temp (a int); drop table audited_temp");
    session.ok("set role audited");
    let refused = session
        .answer("select * from quorate.audit")
        .expect_err("a refusal");
    assert_eq!(refused.message, "permission denied for view audit");
    session.ok("reset role");
    for statement in [
        "delete from quorate.audit",
        "insert into quorate.audit select * from quorate.audit",
        "update quorate.audit set command = ''",
        "truncate quorate.audit",
        "drop view quorate.audit",
    ] {
        session
            .answer(statement)
            .expect_err("nobody changes the audit");
    }
    session.ok("alter role audited set work_mem = '1MB'");
    session.ok("drop table audited_t; drop role audited");
    session.ok("set role auditor");
    let shown = format!(
        "select session_user_name, current_user_name, database, command, statement \
         from quorate.audit where number > {before} \
         and statement ~ 'audit(ed|or)' order by number"
    );
    let expected = "\
postgres|postgres|postgres|CREATE ROLE|create role audited
postgres|postgres|postgres|CREATE ROLE|create role auditor login in role pg_read_all_stats
postgres|postgres|postgres|CREATE TABLE|create table audited_t (a int)
postgres|postgres|postgres|GRANT|grant select on audited_t to audited
postgres|postgres|postgres|COMMENT|comment on table audited_t is 'x'
postgres|postgres|postgres|ALTER ROLE|alter role audited set work_mem = '1MB'
postgres|postgres|postgres|DROP TABLE|drop table audited_t
postgres|postgres|postgres|DROP ROLE|drop role audited";
    assert_eq!(session.ok(&shown), expected);
    session.ok("reset role");
    let status = "select distinct txid_status(xid) from quorate.audit where statement ~ 'audit' and number > ";
    assert_eq!(session.ok(&format!("{status}{before}")), "committed");
    // Every node has the same.
    let whole = "select md5(string_agg(concat_ws('|', number, at, xid, pid, session_user_name, \
                 client_addr, command, statement), ',' order by number)) from quorate.audit \
                 where statement ~ 'audit(ed|or)'";
    let here = session.ok(whole);
    for node in stage.nodes() {
        let mut psql = node.psql();
        let psql = psql.args(["-c", whole]);
        let psql = psql.env("PGOPTIONS", "-c quorate.follower_reads=0ms");
        let there = output(psql).expect("psql runs");
        assert_eq!(String::from_utf8_lossy(&there.stdout).trim_end(), here);
    }
    session.ok("drop role auditor");
}

// ---- What others see ----

/// Runs something on both servers, and holds that they answer alike.
fn alike(postgresql: &Endpoint, quorate: &Endpoint, script: &str) -> String {
    let [theirs, ours] = [postgresql, quorate].map(|endpoint| {
        let mut psql = endpoint.client("psql");
        let psql = psql.args([
            "-X",
            "-q",
            "-A",
            "-d",
            "postgres",
            "-c",
            "\\set VERBOSITY default",
        ]);
        for line in script.lines().filter(|line| !line.trim().is_empty()) {
            psql.args(["-c", line]);
        }
        let done = output(psql).expect("psql runs");
        String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
    });
    assert_eq!(ours, theirs);
    ours
}

/// Rows of errors, seen by a role that may see all, some, or none of the columns.
const ROWS: &str = "
drop table if exists seen_child, seen_parent
drop role if exists seer
create role seer
create table seen_parent (a int, b int, primary key (a, b))
create table seen_child (a int, b int, c int check (c > 0), d text not null, unique (a, c), foreign key (a, b) references seen_parent)
insert into seen_parent values (1, 1)
insert into seen_child values (1, 1, 1, 'x')
grant insert, update, delete on seen_child, seen_parent to seer
set role seer
insert into seen_child values (5, 6, 7, 'secret')
reset role
set role seer
insert into seen_child values (1, 1, 1, 'x')
reset role
set role seer
insert into seen_child (a, b, c, d) values (1, 1, -1, 'x')
reset role
set role seer
insert into seen_child (b, c) values (1, 1)
reset role
set role seer
update seen_child set c = -1
reset role
set role seer
update seen_child set d = null
reset role
set role seer
delete from seen_parent
reset role
grant select (a) on seen_child, seen_parent to seer
set role seer
insert into seen_child values (5, 6, 7, 'secret')
reset role
set role seer
insert into seen_child values (1, 1, 1, 'x')
reset role
set role seer
delete from seen_parent
reset role
set role seer
update seen_child set c = -1
reset role
grant select (b, c) on seen_child to seer; grant select (b) on seen_parent to seer
set role seer
insert into seen_child values (5, 6, 7, 'secret')
reset role
set role seer
insert into seen_child values (1, 1, 1, 'x')
reset role
set role seer
delete from seen_parent
reset role
grant select on seen_child to seer
set role seer
insert into seen_child values (5, 6, 7, 'secret')
reset role
set role seer
insert into seen_child values (1, 1, -1, null)
reset role
set role seer
insert into seen_child values (1, 1, 1, 'x')
reset role
drop table seen_child, seen_parent
drop role seer
";

#[test]
fn errors_show_rows_to_whom_postgresql_shows_them() {
    let (theirs, ours) = (Stage::postgresql(), Stage::one_node());
    let [theirs, ours] = [&theirs, &ours].map(|stage| {
        let node = &stage.nodes()[0];
        Endpoint::at(&node.host, node.port)
    });
    let answered = alike(&theirs, &ours, ROWS);
    assert!(answered.contains("Key is not present"), "{answered}");
    assert!(
        answered.contains("Key (a, b)=(1, 1) is still referenced"),
        "{answered}"
    );
}

#[test]
fn sessions_show_themselves_to_whom_postgresql_shows_them() {
    const COLUMNS: &str = "datname, usename, application_name, client_addr is null, \
                           client_port is null, backend_start is null, xact_start is null, \
                           query_start is null, state_change is null, state, \
                           query, backend_type";
    for asker in [
        "watched", "stranger", "friend", "reader", "monitor", "postgres",
    ] {
        let [theirs, ours] = [Stage::postgresql(), Stage::one_node()].map(|stage| {
            let session = stage.session();
            session.ok("set client_min_messages = error");
            for role in ["watched", "stranger", "friend", "reader", "monitor"] {
                session.ok(&format!("drop role if exists {role}"));
            }
            session.ok("create role watched login; create role stranger; \
                 create role friend in role watched; \
                 create role reader in role pg_read_all_stats; \
                 create role monitor in role pg_monitor");
            let node = &stage.nodes()[0];
            let mut config = Config::new();
            config.host(&node.host).port(node.port);
            config
                .user("watched")
                .dbname("postgres")
                .application_name("app");
            let mut watched = config.connect(NoTls).expect("a session");
            watched
                .simple_query("begin; select 'what I do'")
                .expect("an answer");
            let pid = watched
                .query_one("select pg_backend_pid()", &[])
                .expect("a row");
            let pid: i32 = pid.get(0);
            watched
                .simple_query("select 'what I do'")
                .expect("an answer");
            session.ok(&format!("set role {asker}"));
            let shown = session.ok(&format!(
                "select {COLUMNS} from pg_stat_activity where pid = {pid}"
            ));
            let encrypted = session.ok(&format!(
                "select count(*), min(ssl::int) from pg_stat_ssl where pid = {pid}"
            ));
            session.ok("reset role");
            drop(watched);
            wait_for("the end of the session", PATIENCE, || {
                let count = "select count(*) from pg_stat_activity where usename = 'watched'";
                session.ok(count) == "0"
            })
            .expect("it ends");
            session.ok("drop role watched, stranger, friend, reader, monitor");
            (shown, encrypted)
        });
        assert_eq!(ours, theirs, "to {asker}");
    }
}

#[test]
fn settings_of_nodes_are_shown_as_they_are() {
    let dir = open_directory();
    let settings = [
        "authentication_timeout=90s",
        "superuser_reserved_connections=5",
    ];
    let cluster = Cluster::start(program(), dir.path(), 1, &settings).expect("a node");
    let node = &cluster.nodes()[0];
    let shown = node.query(
        "select name, setting, unit, context from pg_settings where name in \
         ('authentication_timeout', 'superuser_reserved_connections', 'ssl_crl_file', \
          'log_rotation_size') order by 1",
    );
    let expected = "authentication_timeout|90|s|sighup\nlog_rotation_size|10240|kB|sighup\n\
                    ssl_crl_file|||sighup\nsuperuser_reserved_connections|5||postmaster";
    assert_eq!(shown.as_deref().ok(), Some(expected));
    assert_eq!(
        node.query("show authentication_timeout").as_deref().ok(),
        Some("90s")
    );
    let hashes = node.query(
        "select sha224('abc'), sha256('abc'), left(sha384('abc')::text, 12), \
         left(sha512('')::text, 12)",
    );
    let expected = "\\x23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7|\
                    \\xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad|\
                    \\xcb00753f45|\\xcf83e1357e";
    assert_eq!(hashes.as_deref().ok(), Some(expected));
}
