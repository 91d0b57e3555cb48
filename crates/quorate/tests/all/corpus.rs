//! The SQL corpus: every script of tests/sql runs through the real psql and prints what PostgreSQL
//! 15 prints.
//!
//! `NAME.sql` has its output beside it in `NAME.out`. Outputs are made, never written by hand:
//! `make expected` runs all scripts on PostgreSQL, and a test fails if they are not what that gives;
//! with another minor version than made them, [`crate::recorded`] says what holds. Errors and notices
//! are shown with SQLSTATE and every field (psql's `VERBOSITY verbose`) except for the line of C that
//! raised them.
//!
//! # Other names
//! Nothing may depend on what tables and columns are called, so every script also runs with other
//! names: the first line declares them (`-- names: orders amount`), and each becomes a name of the
//! same length with every letter moved by 13 places. The same is done to the expected output, where
//! columns stay aligned and carets stay in place. Names that PostgreSQL derives follow along:
//! `orders_amount_key` is renamed part by part. A name must therefore be no word that means
//! something else in its script or output.
//!
//! # What a script must not do
//! Print what differs from run to run (times, OIDs, process ids, rows without ORDER BY), or leave
//! tables behind.
//!
//! # COPY FROM STDIN
//! Some versions of psql read up to `\.` after a COPY that the server has refused, others take the
//! next line for the next statement. So every such COPY is followed by its `\.`, at once where it is
//! refused; what psql says of a `\.` that it did not wait for is left out of the output.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use lab::host::{output, wait_for, Endpoint};
use lab::quorate::Cluster;

use crate::recorded::{self, Answers, Recorded, Versions};
use crate::{shared, source};

/// Where the scripts are, with what they print.
const DIRECTORY: &str = "tests/sql";

/// No script may take longer.
const SCRIPT_TIME_MAX: Duration = Duration::from_secs(60);

/// The corpus is at least this large.
const STATEMENTS_MIN: usize = 400;

struct Script {
    name: String,
    sql: String,
    answers: Answers,
}

/// A psql and the server that it talks to.
struct Psql<'a> {
    program: PathBuf,
    endpoint: &'a Endpoint,
    /// Settings that its sessions begin with, as `PGOPTIONS` has them.
    options: &'static str,
}

impl Psql<'_> {
    /// The psql of this machine.
    fn at(endpoint: &Endpoint) -> Psql<'_> {
        Psql {
            program: PathBuf::from("psql"),
            endpoint,
            options: "",
        }
    }

    fn versions(&self) -> Versions {
        Versions::of_psql(&self.program, self.endpoint)
    }
}

/// The scripts with their recorded outputs.
fn corpus() -> Vec<Script> {
    let paths = source::files(DIRECTORY, ".sql");
    let script = |path: &String| Script {
        name: Path::new(path)
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned(),
        sql: source::text(path),
        answers: Answers::recorded(
            fs::read_to_string(source::root().join(path).with_extension("out")).unwrap_or_default(),
        ),
    };
    paths.iter().map(script).collect()
}

impl Script {
    /// The names that it declares.
    fn names(&self) -> Vec<&str> {
        let line = self.sql.lines().next().unwrap_or_default();
        line.strip_prefix("-- names: ")
            .map(|names| names.split_whitespace().collect())
            .unwrap_or_default()
    }

    /// The same script with other names.
    fn renamed(&self) -> Script {
        let names = self.names();
        Script {
            name: format!("{}.renamed", self.name),
            sql: rename(&self.sql, &names),
            answers: self.answers.map(|text| rename(text, &names)),
        }
    }

    /// The tables that it makes, so that an earlier run that broke off cannot disturb this one.
    fn tables(&self) -> Vec<String> {
        let mut tables: Vec<String> = Vec::new();
        for line in self.sql.lines() {
            for rest in line.split("create table ").skip(1) {
                let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
                if !name.is_empty() && !tables.contains(&name) {
                    tables.push(name);
                }
            }
        }
        tables
    }

    /// Runs it and returns what psql prints.
    fn run(&self, psql: &Psql<'_>, dir: &Path) -> String {
        let endpoint = psql.endpoint;
        // A reserved word where a table's name should be is part of the script.
        let drops = self.tables().into_iter();
        let drops = drops.map(|table| format!("-cdrop table if exists {table}"));
        // Without any, psql would read its standard input.
        let _ = output(endpoint.psql().arg("-cselect").args(drops));
        let script = dir.join(format!("{}.sql", self.name));
        let log = dir.join(format!("{}.out", self.name));
        fs::write(&script, &self.sql).expect("a script");
        let out = fs::File::create(&log).expect("a file for the output");
        // From standard input, as a script typed in: messages have no file and line before them.
        let mut child = endpoint
            .client(&psql.program)
            .args(["-X", "-a", "-v", "VERBOSITY=verbose", "postgres"])
            .env("LC_ALL", "C")
            .env("PGCLIENTENCODING", "UTF8")
            .env("PGOPTIONS", psql.options)
            .stdin(fs::File::open(&script).expect("the script"))
            .stdout(out.try_clone().expect("a descriptor"))
            .stderr(out)
            .spawn()
            .expect("psql");
        let ended = wait_for("psql", SCRIPT_TIME_MAX, || {
            !matches!(child.try_wait(), Ok(None))
        });
        if ended.is_err() {
            child.kill().expect("psql ends");
            child.wait().expect("psql has ended");
        }
        let printed = String::from_utf8_lossy(&fs::read(&log).expect("the output")).into_owned();
        let mut text = compared(&printed);
        if ended.is_err() {
            text.push_str("the script did not end\n");
        }
        fs::write(&log, &text).expect("the output");
        text
    }

    /// What is wrong with the output, as a difference.
    fn difference(&self, psql: &Psql<'_>, dir: &Path) -> Option<String> {
        let found = self.run(psql, dir);
        (!self.answers.accept(&found)).then(|| self.answers.difference(&found))
    }
}

/// What psql printed without where in C an error was raised, and without a `\.` that no COPY waited
/// for: psql echoes that and calls it invalid.
fn compared(printed: &str) -> String {
    let mut text = String::new();
    let mut lines = printed.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "\\." && lines.next_if_eq(&"invalid command \\.").is_some() {
            continue;
        }
        if !line.starts_with("LOCATION:  ") {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Every part of every word that is one of the names becomes its other name.
fn rename(text: &str, names: &[&str]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut part = String::new();
    let flush = |part: &mut String, out: &mut String| {
        match names.contains(&part.to_ascii_lowercase().as_str()) {
            true => out.extend(part.chars().map(rotated)),
            false => out.push_str(part),
        }
        part.clear();
    };
    // The first line declares the names; it stays.
    let body = text.find('\n').unwrap_or(0);
    out.push_str(&text[..body]);
    for c in text[body..].chars() {
        if c.is_ascii_alphanumeric() {
            part.push(c);
        } else {
            flush(&mut part, &mut out);
            out.push(c);
        }
    }
    flush(&mut part, &mut out);
    out
}

fn rotated(c: char) -> char {
    let turn = |first: u8| char::from(first + (c as u8 - first + 13) % 26);
    match c {
        'a'..='z' => turn(b'a'),
        'A'..='Z' => turn(b'A'),
        other => other,
    }
}

/// Where outputs are left for whoever looks into a failure.
fn results(configuration: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("sql")
        .join(configuration);
    fs::create_dir_all(&dir).expect("a directory for results");
    dir
}

fn assert_all(configuration: &str, endpoint: &Endpoint, scripts: &[Script]) {
    assert_all_by(configuration, &Psql::at(endpoint), scripts);
}

fn assert_all_by(configuration: &str, psql: &Psql<'_>, scripts: &[Script]) {
    let dir = results(configuration);
    let mut wrong = Vec::new();
    for script in scripts {
        if let Some(difference) = script.difference(psql, &dir) {
            wrong.push(format!("== {}\n{difference}", script.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} scripts differ on {configuration} (outputs in {}):\n{}",
        wrong.len(),
        scripts.len(),
        dir.display(),
        wrong.join("\n")
    );
}

/// What the installed PostgreSQL prints of each script.
fn live() -> &'static BTreeMap<String, String> {
    static LIVE: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    // Once: two runs at a time would be in the way of one another.
    LIVE.get_or_init(|| {
        let (psql, dir) = (Psql::at(shared::postgres()), results("postgresql"));
        let run = |script: Script| (script.name.clone(), script.run(&psql, &dir));
        corpus().into_iter().map(run).collect()
    })
}

#[test]
fn expected_outputs_are_postgresqls() {
    let endpoint = shared::postgres();
    let installed = Psql::at(endpoint).versions();
    if recorded::is_rewritten() {
        for (name, text) in live() {
            let file = source::root().join(DIRECTORY).join(format!("{name}.out"));
            fs::write(file, text).expect("the expected output");
        }
        installed.write(DIRECTORY);
        return;
    }
    let mut scripts = corpus();
    let output = |script: &Script| Recorded {
        path: format!("{DIRECTORY}/{}.out", script.name),
        expected: script.answers.recorded.clone(),
        found: live()[&script.name].clone(),
    };
    let outputs: Vec<_> = scripts.iter().map(output).collect();
    recorded::assert_recorded(DIRECTORY, &installed, &outputs);
    // The new names must not change what a script means.
    for script in &mut scripts {
        script.answers = Answers::recorded(live()[&script.name].clone());
    }
    let renamed: Vec<Script> = scripts.iter().map(Script::renamed).collect();
    assert_all("postgresql", endpoint, &renamed);
}

/// The scripts, with what is known of how the installed PostgreSQL differs from the recorded one.
fn expected() -> Vec<Script> {
    let mut scripts = corpus();
    let installed = Psql::at(shared::postgres()).versions();
    if Versions::recorded(DIRECTORY) != installed {
        for script in &mut scripts {
            script.answers.live = live().get(&script.name).cloned();
        }
    }
    scripts
}

fn assert_corpus(configuration: &str, endpoint: &Endpoint) {
    let mut scripts = expected();
    let renamed: Vec<Script> = scripts.iter().map(Script::renamed).collect();
    scripts.extend(renamed);
    assert_all(configuration, endpoint, &scripts);
}

#[test]
fn the_corpus_prints_the_same_on_one_node() {
    assert_corpus("one-node", &shared::one_node().nodes()[0]);
}

#[test]
fn the_corpus_prints_the_same_on_three_nodes() {
    assert_corpus("three-nodes", &shared::follower_first()[0]);
}

/// Scripts of what there is in the first group alone: PREPARE TRANSACTION.
const OF_ONE_GROUP: [&str; 2] = ["notify", "two_phase"];

#[test]
fn the_corpus_prints_the_same_in_a_further_group() {
    let dir = crate::kill::open_directory();
    let cluster = Cluster::start(crate::kill::program(), dir.path(), 1, &[]).expect("a node");
    let endpoint = &cluster.nodes()[0];
    let mut psql = endpoint.psql();
    let added = output(psql.args(["-Atc", "select quorate.add_group()"])).expect("psql");
    assert_eq!(added.stdout, b"2\n", "{added:?}");
    let mut scripts = expected();
    scripts.retain(|script| !OF_ONE_GROUP.contains(&&*script.name));
    let psql = Psql {
        options: "-c quorate.default_group=2",
        ..Psql::at(endpoint)
    };
    assert_all_by("further-group", &psql, &scripts);
}

#[test]
fn the_corpus_is_large_and_its_names_can_be_changed() {
    let scripts = corpus();
    let statements: usize = scripts
        .iter()
        .map(|script| {
            script
                .sql
                .lines()
                .filter(|line| line.ends_with(';'))
                .count()
        })
        .sum();
    assert!(
        statements >= STATEMENTS_MIN,
        "{statements} statements, fewer than {STATEMENTS_MIN}"
    );
    for script in &scripts {
        for name in script.names() {
            let usable = name.len() >= 3 && name.chars().all(|c| c.is_ascii_lowercase());
            assert!(
                usable,
                "{}: {name} is no name that can be changed",
                script.name
            );
        }
        for table in script.tables() {
            let known = script.names().iter().any(|name| table.starts_with(name));
            let is_word = ["if", "public", "nosuchschema"].contains(&table.as_str());
            assert!(known || is_word, "{}: {table} is not declared", script.name);
        }
    }
}

#[test]
fn every_copy_from_stdin_is_ended() {
    for script in corpus() {
        let mut open: Option<&str> = None;
        for line in script.sql.lines() {
            let begins = line.starts_with("copy ") || line.starts_with("\\copy ");
            if line == "\\." {
                open = None;
            } else if begins && line.contains(" from stdin") {
                assert_eq!(open, None, "{}: no \\. before {line}", script.name);
                open = Some(line);
            } else if open.is_some() {
                // Data, which psql would read as a statement if the COPY were refused.
                let is_statement = line.ends_with(';') && !line.contains('\t');
                assert!(!is_statement, "{}: no \\. before {line}", script.name);
            }
        }
        assert_eq!(open, None, "{}: no \\. at its end", script.name);
    }
}

#[test]
fn names_change_part_by_part() {
    let text = "-- names: orders amount\nselect amount from orders, \"Orders\"; -- orders_amount_key amounts";
    let names = ["orders", "amount"];
    assert_eq!(
        rename(text, &names),
        "-- names: orders amount\nselect nzbhag from beqref, \"Beqref\"; -- beqref_nzbhag_key amounts"
    );
}

/// The stand-in for a minor version that nobody has seen: its psql prints one thing differently, and
/// its server lists settings that Quorate does not know.
#[test]
fn an_unknown_minor_version_is_as_good() {
    const SQL: &str = "select lower(name) from pg_settings
where name in ('lock_timeout', 'work_mem') or name like 'plpgsql.%' order by 1;
select 1 union all select 2;
select nosuch;
";
    let dir = tempfile::tempdir().expect("a directory");
    let strange = |endpoint, options| Psql {
        program: source::root().join("crates/quorate/tests/all/strange_psql.sh"),
        endpoint,
        options,
    };
    let (theirs, ours) = (shared::postgres(), &shared::one_node().nodes()[0]);
    let mut script = Script {
        name: "unknown_version".to_owned(),
        sql: SQL.to_owned(),
        answers: Answers::recorded(String::new()),
    };
    script.answers.recorded = script.run(&Psql::at(theirs), dir.path());
    let unknown = strange(theirs, "-c session_preload_libraries=plpgsql");
    assert_ne!(unknown.versions(), Psql::at(theirs).versions());
    let live = script.run(&unknown, dir.path());
    for new in ["(2 lines)", "plpgsql.extra_errors"] {
        assert!(live.contains(new), "{live}");
    }
    // Without the live answer, Quorate through that psql is wrong.
    assert!(script.difference(&strange(ours, ""), dir.path()).is_some());
    script.answers.live = Some(live);
    for psql in [strange(ours, ""), Psql::at(ours)] {
        assert_eq!(script.difference(&psql, dir.path()), None);
    }
    // A difference that is no version's stays one.
    script.sql = script.sql.replace("select 2", "select 3");
    assert!(script.difference(&strange(ours, ""), dir.path()).is_some());
}
