//! The SQL corpus: every script of tests/sql runs through the real psql and prints what PostgreSQL
//! 15 prints.
//!
//! `NAME.sql` has its output beside it in `NAME.out`. Outputs are made, never written by hand:
//! `make expected` runs all scripts on PostgreSQL, and a test fails if they are not what that gives.
//! Errors and notices are shown with SQLSTATE and every field (psql's `VERBOSITY verbose`) except
//! for the line of C that raised them.
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

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lab::host::{output, wait_for, Endpoint};

use crate::{shared, source};

/// The flag of `make expected`.
const REWRITE: &str = "QUORATE_REWRITE_EXPECTED";

/// No script may take longer.
const SCRIPT_TIME_MAX: Duration = Duration::from_secs(60);

/// The corpus is at least this large.
const STATEMENTS_MIN: usize = 400;

struct Script {
    name: String,
    sql: String,
    expected: String,
}

fn directory() -> PathBuf {
    source::root().join("tests/sql")
}

fn corpus() -> Vec<Script> {
    let paths = source::files("tests/sql", ".sql");
    let script = |path: &String| Script {
        name: Path::new(path)
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned(),
        sql: source::text(path),
        expected: fs::read_to_string(source::root().join(path).with_extension("out"))
            .unwrap_or_default(),
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
            expected: rename(&self.expected, &names),
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
    fn run(&self, endpoint: &Endpoint, dir: &Path) -> String {
        for table in self.tables() {
            let drop = format!("drop table if exists {table}");
            // A reserved word where a table's name should be is part of the script.
            let _ = output(endpoint.psql().args(["-c", &drop]));
        }
        let script = dir.join(format!("{}.sql", self.name));
        let log = dir.join(format!("{}.out", self.name));
        fs::write(&script, &self.sql).expect("a script");
        let out = fs::File::create(&log).expect("a file for the output");
        // From standard input, as a script typed in: messages have no file and line before them.
        let mut psql = endpoint
            .client("psql")
            .args(["-X", "-a", "-v", "VERBOSITY=verbose", "postgres"])
            .env("LC_ALL", "C")
            .env("PGCLIENTENCODING", "UTF8")
            .stdin(fs::File::open(&script).expect("the script"))
            .stdout(out.try_clone().expect("a descriptor"))
            .stderr(out)
            .spawn()
            .expect("psql");
        let ended = wait_for("psql", SCRIPT_TIME_MAX, || {
            !matches!(psql.try_wait(), Ok(None))
        });
        if ended.is_err() {
            psql.kill().expect("psql ends");
            psql.wait().expect("psql has ended");
        }
        let printed = String::from_utf8_lossy(&fs::read(&log).expect("the output")).into_owned();
        let mut text = String::new();
        for line in printed
            .lines()
            .filter(|line| !line.starts_with("LOCATION:  "))
        {
            text.push_str(line);
            text.push('\n');
        }
        if ended.is_err() {
            text.push_str("the script did not end\n");
        }
        fs::write(&log, &text).expect("the output");
        text
    }

    /// What is wrong with the output, as a difference.
    fn difference(&self, endpoint: &Endpoint, dir: &Path) -> Option<String> {
        let found = self.run(endpoint, dir);
        if found == self.expected {
            return None;
        }
        let expected = dir.join(format!("{}.expected", self.name));
        fs::write(&expected, &self.expected).expect("a file");
        let diff = output(
            Command::new("diff")
                .args(["-U", "3"])
                .arg(&expected)
                .arg(dir.join(format!("{}.out", self.name)))
                .stdout(Stdio::piped()),
        )
        .expect("diff");
        Some(String::from_utf8_lossy(&diff.stdout).into_owned())
    }
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
    let dir = results(configuration);
    let mut wrong = Vec::new();
    for script in scripts {
        if let Some(difference) = script.difference(endpoint, &dir) {
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

#[test]
fn expected_outputs_are_postgresqls() {
    let scripts = corpus();
    let endpoint = shared::postgres();
    if std::env::var_os(REWRITE).is_some() {
        let dir = results("rewrite");
        for script in &scripts {
            let file = directory().join(format!("{}.out", script.name));
            fs::write(file, script.run(endpoint, &dir)).expect("the expected output");
        }
        return;
    }
    assert_all("postgresql", endpoint, &scripts);
    // The new names must not change what a script means.
    let renamed: Vec<Script> = scripts.iter().map(Script::renamed).collect();
    assert_all("postgresql", endpoint, &renamed);
}

fn assert_corpus(configuration: &str, endpoint: &Endpoint) {
    let mut scripts = corpus();
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
fn names_change_part_by_part() {
    let text = "-- names: orders amount\nselect amount from orders, \"Orders\"; -- orders_amount_key amounts";
    let names = ["orders", "amount"];
    assert_eq!(
        rename(text, &names),
        "-- names: orders amount\nselect nzbhag from beqref, \"Beqref\"; -- beqref_nzbhag_key amounts"
    );
}
