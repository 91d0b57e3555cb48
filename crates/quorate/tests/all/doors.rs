//! Doors: nobody becomes somebody else, and nobody does what only others may. Cases are lines of
//! tests/doors, each tried on PostgreSQL 15 and on one node of Quorate, with the same outcome: rows,
//! SQLSTATEs, messages and notices.
//!
//! # The cases
//! `setup.sql` makes the roles. In the other files a line is a case, and ` // ` parts its statements:
//!
//! ```text
//! as maker                                   the role that the following lines connect as
//! create role x // drop role x               in a block that is rolled back
//! ! set role postgres // select current_user in no block, on a connection of its own
//! login plain -c role=staff: show role       a new session, with options
//! login owner@elsewhere: select 1            the same, in another database
//! open one member: set role staff            a session that stays and has a name
//! then one: select current_user              more of it
//! close one                                  its end
//! select pg_cancel_backend($one)             its process id
//! ```
//! Numbers of five digits and more are oids, which no two servers share: they are shown as `OID`.

use std::collections::BTreeMap;
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

use lab::host::{wait_for, Endpoint, PATIENCE};
use lab::postgres::Postgres;
use lab::quorate::Cluster;
use postgres::error::DbError;
use postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::kill::{open_directory, program};
use crate::source;

/// There are at least so many statements.
const STATEMENTS_MIN: usize = 2_500;

/// How many differences are shown.
const SHOWN_MAX: usize = 60;

/// No answer takes longer.
const ANSWER: Duration = Duration::from_secs(20);

/// A session with what the server has said to it besides answers.
struct Session {
    client: Client,
    notices: Receiver<DbError>,
    /// What `pg_backend_pid()` says, as text.
    pid: String,
}

impl Session {
    /// Connects as `user` or `user@database`.
    fn open(server: &Endpoint, user: &str, options: &str) -> Result<Session, String> {
        let (told, notices) = channel();
        let (user, database) = user.split_once('@').unwrap_or((user, "postgres"));
        Config::new()
            .host(&server.host)
            .port(server.port)
            .user(user)
            .dbname(database)
            .options(options)
            .connect_timeout(ANSWER)
            .notice_callback(move |notice| drop(told.send(notice)))
            .connect(NoTls)
            .map(|client| Session {
                client,
                notices,
                pid: String::new(),
            })
            .map_err(|error| shown_error(&error))
    }

    /// Asks for the session's process id.
    fn identified(mut self) -> Session {
        let messages = self.client.simple_query("select pg_backend_pid()");
        let messages = messages.expect("a process id");
        let pid = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        self.pid = pid.expect("a process id");
        self
    }

    /// What a statement gives: notices, then rows or the error.
    fn outcome(&mut self, statement: &str) -> String {
        let answer = match self.client.simple_query(statement) {
            Ok(messages) => shown_rows(&messages),
            Err(error) => shown_error(&error),
        };
        let mut lines: Vec<String> = self.notices.try_iter().map(|said| shown(&said)).collect();
        lines.push(answer);
        without_oids(&lines.join("; "))
    }

    fn outcomes(&mut self, statements: &str) -> Vec<String> {
        let statements = statements.split(" // ");
        statements.map(|text| self.outcome(text)).collect()
    }
}

fn shown(said: &DbError) -> String {
    let mut text = format!(
        "{} {}: {}",
        said.severity(),
        said.code().code(),
        said.message()
    );
    for extra in [said.detail(), said.hint()].into_iter().flatten() {
        text.push_str(" / ");
        text.push_str(extra);
    }
    text
}

fn shown_error(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => shown(said),
        None => format!("broken: {error}"),
    }
}

fn shown_rows(messages: &[SimpleQueryMessage]) -> String {
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let values = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
            Some(values.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    });
    format!("[{}]", rows.collect::<Vec<_>>().join(", "))
}

fn without_oids(text: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let number = std::mem::take(&mut digits);
        // A SQLSTATE has its colon.
        out.push_str(match number.len() >= 5 && c != ':' {
            true => "OID",
            false => &number,
        });
        out.push(c);
    }
    out.trim_end().to_owned()
}

/// One server, and the sessions on it.
struct House {
    server: Endpoint,
    /// One for each role, in which blocks are rolled back.
    visitors: BTreeMap<String, Session>,
    /// Those that stay.
    named: BTreeMap<String, Session>,
}

impl House {
    fn new(server: &Endpoint) -> House {
        let mut house = House {
            server: server.clone(),
            visitors: BTreeMap::new(),
            named: BTreeMap::new(),
        };
        for statement in source::text("tests/doors/setup.sql").lines() {
            let outcome = house.visit("postgres", statement);
            assert_eq!(outcome, "[]", "{statement}");
        }
        house
    }

    /// In no block, on a connection of its own.
    fn visit(&mut self, user: &str, statements: &str) -> String {
        self.login(user, "", statements).join("\n")
    }

    fn login(&mut self, user: &str, options: &str, statements: &str) -> Vec<String> {
        match Session::open(&self.server, user, options) {
            Ok(mut session) => session.outcomes(statements),
            Err(refusal) => vec![without_oids(&refusal)],
        }
    }

    /// In a block that is rolled back.
    fn in_block(&mut self, user: &str, statements: &str) -> Vec<String> {
        let visitor = self.visitors.remove(user);
        let visitor = visitor.map_or_else(|| Session::open(&self.server, user, ""), Ok);
        let mut visitor = match visitor {
            Ok(visitor) => visitor,
            Err(refusal) => return vec![refusal],
        };
        let mut outcomes = vec![visitor.outcome("begin")];
        outcomes.extend(visitor.outcomes(statements));
        outcomes.push(visitor.outcome("rollback"));
        self.visitors.insert(user.to_owned(), visitor);
        outcomes
    }

    fn case(&mut self, user: &str, line: &str) -> Vec<String> {
        let mut line = line.to_owned();
        for (name, session) in &self.named {
            line = line.replace(&format!("${name}"), &session.pid);
        }
        let line = line.as_str();
        let (words, statements) = line.split_once(": ").unwrap_or((line, ""));
        let words: Vec<&str> = words.split(' ').collect();
        match words.as_slice() {
            ["!", ..] => {
                let statements = line.trim_start_matches("! ");
                self.login(user, "", statements)
            }
            ["login", user, options @ ..] => self.login(user, &options.join(" "), statements),
            ["open", name, user] => match Session::open(&self.server, user, "") {
                Ok(mut session) => {
                    let outcomes = session.outcomes(statements);
                    self.named.insert((*name).to_owned(), session.identified());
                    outcomes
                }
                Err(refusal) => vec![refusal],
            },
            ["then", name] => match self.named.get_mut(*name) {
                Some(session) => session.outcomes(statements),
                None => vec![format!("no session {name}")],
            },
            ["close", names @ ..] => {
                names.iter().for_each(|name| drop(self.named.remove(*name)));
                Vec::new()
            }
            _ => self.in_block(user, line),
        }
    }
}

#[test]
fn doors_hold_as_postgresqls_do() {
    let dir = open_directory();
    let postgres = Postgres::primary(&dir.path().join("pg"), &["fsync = off"]).expect("PostgreSQL");
    let cluster = Cluster::start(program(), &dir.path().join("q"), 1, &[]).expect("a node");
    let mut model = House::new(postgres.endpoint());
    let mut house = House::new(&cluster.nodes()[0]);
    let mut statements = 0;
    let mut different = Vec::new();
    for path in source::files("tests/doors", ".txt") {
        let mut user = String::new();
        for (number, line) in source::text(&path).lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix("as ") {
                name.clone_into(&mut user);
                continue;
            }
            let expected = model.case(&user, line);
            let found = house.case(&user, line);
            statements += expected.len();
            if found != expected {
                let (expected, found) = (expected.join("\n      "), found.join("\n      "));
                different.push(format!(
                    "{path}:{}: as {user}: {line}\n  PG: {expected}\n  Q:  {found}",
                    number + 1
                ));
            }
        }
    }
    assert!(statements >= STATEMENTS_MIN, "{statements} statements");
    let shown = different.iter().take(SHOWN_MAX).cloned();
    assert!(
        different.is_empty(),
        "{} of {statements} differ:\n{}",
        different.len(),
        shown.collect::<Vec<_>>().join("\n")
    );
}

/// After leadership has gone to another node, a session is who it was, or ends.
#[test]
fn sessions_that_are_handed_over_are_who_they_were() {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("three nodes");
    let at = |user: &str| Session::open(&cluster.nodes()[0], user, "").expect("a session");
    let mut boss = at("postgres");
    for statement in [
        "create role member login",
        "create role boss superuser",
        "create role staff",
        "create role brief",
        "create role gone",
        "grant staff, brief, gone to member",
    ] {
        assert_eq!(boss.outcome(statement), "[]", "{statement}");
    }
    let (mut stays, mut loses, mut misses) = (at("member"), at("member"), at("member"));
    assert_eq!(stays.outcome("set role staff"), "[]");
    assert_eq!(loses.outcome("set role brief"), "[]");
    assert_eq!(misses.outcome("set role gone"), "[]");
    let mut acts = at("postgres");
    assert_eq!(acts.outcome("set session authorization member"), "[]");
    for statement in [
        "revoke brief from member",
        "drop role gone",
        "create role gone superuser",
        "alter role staff rename to people",
        "create role staff superuser",
    ] {
        assert_eq!(boss.outcome(statement), "[]", "{statement}");
    }
    nobody_administers(&mut at("member"));
    let led = cluster.leader().expect("a leader");
    boss.outcome("select quorate.switchover()");
    wait_for("another leader", PATIENCE, || {
        cluster.leader().is_ok_and(|leader| leader != led)
    })
    .expect("another leader");
    let who = "select current_user, session_user";
    assert_eq!(stays.outcome(who), "[people|member]");
    assert_eq!(
        stays.outcome("set role boss"),
        "ERROR 42501: permission denied to set role \"boss\""
    );
    assert_eq!(acts.outcome(who), "[member|member]");
    assert_eq!(
        acts.outcome("create role x"),
        "ERROR 42501: permission denied to create role"
    );
    assert_eq!(acts.outcome("reset session authorization"), "[]");
    assert_eq!(acts.outcome(who), "[postgres|postgres]");
    assert_eq!(
        loses.outcome(who),
        "FATAL 42501: permission denied to set role \"brief\""
    );
    assert_eq!(
        misses.outcome(who),
        "FATAL 22023: role \"gone\" does not exist"
    );
}

/// The functions by which the cluster is administered.
const ADMINISTRATION: [(&str, &str); 9] = [
    ("add_group", ""),
    ("add_node", "'n9', '127.0.0.9:1', '127.0.0.9:2'"),
    ("check_consistency", ""),
    ("demote_node", "'n1'"),
    ("promote_node", "'n1'"),
    ("remove_node", "'n3'"),
    ("set_leader_zone", "'z'"),
    ("set_node", "'n1', 'z', 1"),
    ("switchover", "'n2'"),
];

/// Whoever is no superuser changes nothing of the cluster.
fn nobody_administers(plain: &mut Session) {
    for (name, arguments) in ADMINISTRATION {
        assert_eq!(
            plain.outcome(&format!("select quorate.{name}({arguments})")),
            format!("ERROR 42501: permission denied for function {name}")
        );
    }
}

/// What is computed before a policy has let a row through is what PostgreSQL calls leakproof; what both
/// have is the same function to both.
#[test]
fn functions_tell_no_more_of_rows_than_postgresqls() {
    let facts =
        "select oid, proname, proleakproof, provolatile, proisstrict, prokind from pg_proc \
                 where oid < 10000 and pronamespace = 'pg_catalog'::regnamespace";
    let [theirs, ours] = [
        crate::shared::postgres(),
        &crate::shared::one_node().nodes()[0],
    ]
    .map(|server| server.query(facts).expect("the functions"));
    let theirs: std::collections::BTreeSet<_> = theirs.lines().collect();
    let others: Vec<_> = ours.lines().filter(|line| !theirs.contains(line)).collect();
    let is_leakproof = |line: &&str| line.split('|').nth(2) == Some("t");
    assert!(others.is_empty(), "{}", others.join("\n"));
    assert!(ours.lines().filter(is_leakproof).count() > 200);
}
