//! What the crates below are allowed to be, as `deny.toml` says it, compared with what Cargo knows:
//! licences, sources, bans, and versions that are there twice.
//!
//! cargo-deny reads the same file. What it can do beyond this is look up advisories, for which it
//! needs a network, so the build does not ask for it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::source;

/// The packages that builds on this machine's kind could use, as `cargo metadata` lists them.
fn packages() -> Vec<Value> {
    let rustc = Command::new("rustc").arg("-vV").output();
    let about = String::from_utf8(rustc.expect("rustc runs").stdout).expect("text");
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let out = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--all-features",
        ])
        .args(["--filter-platform", host.expect("a host")])
        .current_dir(source::root())
        .output()
        .expect("cargo runs");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let mut all: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    // The list of packages is that of the lock file; what is resolved is what this kind needs.
    let needed: BTreeSet<String> = all["resolve"]["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| node["id"].as_str().expect("an id").to_owned())
        .collect();
    let Value::Array(packages) = all["packages"].take() else {
        panic!("no packages");
    };
    let is_needed = |package: &Value| package["id"].as_str().is_some_and(|id| needed.contains(id));
    packages.into_iter().filter(is_needed).collect()
}

fn rules() -> toml::Table {
    source::text("deny.toml").parse().expect("TOML")
}

/// The values of a list of rules, of which each is a text or a table with such a key.
fn listed<'r>(rules: &'r toml::Table, section: &str, list: &str, key: &str) -> Vec<&'r str> {
    let list = rules[section][list].as_array().expect("a list");
    list.iter()
        .map(|rule| match rule {
            toml::Value::String(text) => text.as_str(),
            rule => {
                let reason = rule.get("reason").and_then(toml::Value::as_str);
                assert!(reason.is_some_and(|reason| !reason.is_empty()), "{rule:?}");
                rule[key].as_str().expect("a text")
            }
        })
        .collect()
}

fn text<'p>(package: &'p Value, field: &str) -> &'p str {
    package[field].as_str().unwrap_or_default()
}

/// Whether an SPDX expression can be met with licences that are allowed. OR binds less than AND.
fn is_met(expression: &str, allowed: &[&str]) -> bool {
    let mut depth = 0;
    let mut parts: [Vec<String>; 2] = [vec![String::new()], vec![String::new()]];
    for word in expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .split_whitespace()
    {
        depth += i32::from(word == "(") - i32::from(word == ")");
        for (own, between) in ["OR", "AND"].into_iter().enumerate() {
            match depth == 0 && word == between {
                true => parts[own].push(String::new()),
                false => {
                    let part = parts[own].last_mut().expect("a part");
                    part.push_str(word);
                    part.push(' ');
                }
            }
        }
    }
    let [either, all] = &parts;
    if either.len() > 1 {
        return either.iter().any(|part| is_met(part, allowed));
    }
    if all.len() > 1 {
        return all.iter().all(|part| is_met(part, allowed));
    }
    let one = expression.trim();
    match one
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        Some(inside) => is_met(inside, allowed),
        None => allowed.contains(&one),
    }
}

#[test]
fn licences_are_understood() {
    let allowed = ["MIT", "ISC"];
    for (expression, met) in [
        ("MIT", true),
        ("GPL-2.0-only", false),
        ("GPL-2.0-only OR MIT", true),
        ("MIT AND ISC", true),
        ("MIT AND GPL-2.0-only", false),
        ("(MIT OR GPL-2.0-only) AND ISC", true),
        ("(MIT OR ISC) AND GPL-2.0-only", false),
        ("Apache-2.0 WITH LLVM-exception OR MIT", true),
        ("Apache-2.0 WITH LLVM-exception", false),
    ] {
        assert_eq!(is_met(expression, &allowed), met, "{expression}");
    }
}

#[test]
fn every_crate_is_one_that_may_be_here() {
    let (packages, rules) = (packages(), rules());
    let allowed = listed(&rules, "licenses", "allow", "allow");
    let banned = listed(&rules, "bans", "deny", "crate");
    let twice = listed(&rules, "bans", "skip", "crate");
    let mut wrong = Vec::new();
    let mut registries = BTreeSet::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &packages {
        let (name, version) = (text(package, "name"), text(package, "version"));
        versions.entry(name).or_default().insert(version);
        // An older way to write OR.
        let licence = text(package, "license").replace('/', " OR ");
        if !is_met(&licence, &allowed) {
            wrong.push(format!("{name} {version}: the licence {licence}"));
        }
        if banned.contains(&name) {
            wrong.push(format!("{name} {version}: banned"));
        }
        match package["source"].as_str() {
            None => {
                let ours = source::root().join("crates");
                if !text(package, "manifest_path").starts_with(&*ours.to_string_lossy()) {
                    wrong.push(format!("{name} {version}: a path outside of the workspace"));
                }
            }
            Some(registry) if registry.starts_with("registry+") => {
                registries.insert(registry);
            }
            Some(other) => wrong.push(format!("{name} {version}: from {other}")),
        }
    }
    if registries.len() > 1 {
        wrong.push(format!("several registries: {registries:?}"));
    }
    for (name, versions) in &versions {
        let is_listed = |version: &&str| {
            let plain = version.split('+').next().unwrap_or_default();
            twice.contains(&format!("{name}@{plain}").as_str())
        };
        let unlisted = versions
            .iter()
            .filter(|version| !is_listed(version))
            .count();
        if unlisted > 1 {
            wrong.push(format!(
                "{name}: {versions:?}, and deny.toml names no reason"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_allowed_that_is_not_here() {
    let locked: toml::Table = source::text("Cargo.lock").parse().expect("TOML");
    let locked = locked["package"].as_array().expect("packages");
    let is_locked = |rule: &str| {
        let (name, version) = rule.split_once('@').expect("a version");
        locked.iter().any(|package| {
            let known = package["version"].as_str().unwrap_or_default();
            package["name"].as_str() == Some(name) && known.split('+').next() == Some(version)
        })
    };
    let rules = rules();
    let gone = listed(&rules, "bans", "skip", "crate");
    let gone: Vec<_> = gone.into_iter().filter(|rule| !is_locked(rule)).collect();
    assert!(gone.is_empty(), "not there any more: {gone:?}");
    // Each advisory that is passed over has its reason where dependencies are explained.
    let explained = source::text("docs/DEPENDENCIES.md");
    for advisory in listed(&rules, "advisories", "ignore", "id") {
        assert!(explained.contains(advisory), "{advisory}");
    }
}

/// What makes the advisory on protobuf's parser no concern of Quorate's.
#[test]
fn protobuf_parses_nothing() {
    let parsers = [
        "parse_from_",
        "merge_from_bytes",
        "CodedInputStream",
        "::protobuf",
    ];
    for path in source::files("crates", ".rs") {
        if path.ends_with("tests/all/supply.rs") {
            continue;
        }
        let code = source::text(&path);
        // The grammar's trees are prost's.
        let code = code.replace("pg_query::protobuf", "");
        for parser in parsers {
            assert!(!code.contains(parser), "{path}: {parser}");
        }
    }
}
