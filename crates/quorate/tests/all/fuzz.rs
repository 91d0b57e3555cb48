//! Random statements, on PostgreSQL 15 and on one node, for about a minute: no difference that no
//! rule explains (`lab::fuzz`).
//!
//! `QUORATE_FUZZ_SECONDS` and `QUORATE_FUZZ_SEED` say how long and from which seed; `make soak` does.

use std::process::Command;

use lab::host::{output, Endpoint};

use crate::kill::program;
use crate::shared;

/// A bound for a machine in trouble.
const SECONDS: u64 = 400;

/// The usual run ends with these, so that every machine looks at the same ones.
const STATEMENTS: u64 = 8_000;

/// With other seeds it finds what nobody knows yet; this one fails for what is new.
const SEED: u64 = 20_240_229;

/// Where its tables are, apart from those of other tests.
const DATABASE: &str = "fuzz";

fn number(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(usual, |text| text.parse().expect(name))
}

fn url(server: &Endpoint) -> String {
    let done = server.query(&format!("create database {DATABASE}"));
    done.expect("a database of its own");
    format!("postgres://{}:{}/{DATABASE}", server.host, server.port)
}

#[test]
fn random_statements_are_answered_as_by_postgresql() {
    let ours = url(&shared::one_node().nodes()[0]);
    let theirs = url(shared::postgres());
    let seconds = number("QUORATE_FUZZ_SECONDS", SECONDS).to_string();
    let seed = number("QUORATE_FUZZ_SEED", SEED).to_string();
    let statements = match std::env::var_os("QUORATE_FUZZ_SECONDS") {
        Some(_) => u64::MAX,
        None => STATEMENTS,
    };
    let statements = statements.to_string();
    let arguments = [
        "lab",
        "fuzz",
        "--url",
        &ours,
        "--beside",
        &theirs,
        "--seconds",
        &seconds,
        "--seed",
        &seed,
        "--statements",
        &statements,
        "--differences",
        "3",
    ];
    let mut command = Command::new(program());
    command.args(arguments);
    // The long run is of a program that is as fast as it can be, on a machine of its own.
    if std::env::var_os("QUORATE_FUZZ_SECONDS").is_some() {
        let status = shared::one_node().http_address(0).expect("an address");
        command.arg("--status").arg(status.to_string());
    }
    let done = output(&mut command).expect("the lab");
    let said = [&done.stdout[..], &done.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    println!("{said}");
    assert!(done.status.success(), "{said}");
}
