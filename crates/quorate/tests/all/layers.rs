//! What may import what (docs/ARCHITECTURE.md), read from every crate's Cargo.toml.

use crate::source;

/// A crate and the crates of Quorate that it may import. `quorate` may import all.
const LAYERS: [(&str, &[&str]); 16] = [
    ("base", &[]),
    ("raft", &["base"]),
    ("spanning", &["base"]),
    ("storage", &["base"]),
    ("types", &["base"]),
    ("functions", &["base", "types"]),
    ("syntax", &["base"]),
    ("catalog", &["base", "types", "functions"]),
    (
        "planner",
        &["base", "types", "functions", "syntax", "catalog"],
    ),
    (
        "execution",
        &["base", "types", "functions", "syntax", "catalog", "planner"],
    ),
    (
        "sql",
        &[
            "base",
            "types",
            "functions",
            "syntax",
            "catalog",
            "planner",
            "execution",
        ],
    ),
    ("kv", &["base", "raft", "spanning", "storage"]),
    ("pg", &["base", "sql"]),
    ("node", &["base", "kv", "sql", "pg"]),
    ("lab", &["base", "pg"]),
    ("sim", &["base", "kv", "sql", "pg", "node", "lab"]),
];

/// Libraries that reach the outside world by themselves, and the crates that may import them.
const OUTSIDE: [(&str, &[&str]); 4] = [
    ("tokio", &["node"]),
    ("axum", &["node"]),
    ("socket2", &["node", "lab"]),
    ("libc", &["node", "quorate"]),
];

/// The names on the left of every table of dependencies, those for tests and builds included.
fn imports(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(section) = line.strip_prefix('[') {
            inside = section.trim_end_matches(']').ends_with("dependencies");
            assert!(
                !section.contains("dependencies."),
                "write [{section} as one line of its table"
            );
        } else if inside {
            if let Some((name, _)) = line.split_once('=') {
                let name = name.split('.').next().unwrap_or_default();
                names.push(name.trim().to_owned());
            }
        }
    }
    names
}

#[test]
fn crates_import_only_what_stands_below_them() {
    let mut wrong = Vec::new();
    for (name, allowed) in LAYERS {
        for import in imports(&source::text(&format!("crates/{name}/Cargo.toml"))) {
            let is_ours = import == "quorate" || LAYERS.iter().any(|(other, _)| *other == import);
            if is_ours && !allowed.contains(&import.as_str()) {
                wrong.push(format!("{name} must not import {import}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_node_reaches_the_outside_world() {
    let mut wrong = Vec::new();
    for manifest in source::files("crates", "Cargo.toml") {
        let name = manifest.split('/').nth(1).unwrap_or_default();
        for import in imports(&source::text(&manifest)) {
            let rule = OUTSIDE.iter().find(|(library, _)| *library == import);
            if rule.is_some_and(|(_, allowed)| !allowed.contains(&name)) {
                wrong.push(format!("{name} must not import {import}; use base::env"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_crate_has_its_layer() {
    for manifest in source::files("crates", "Cargo.toml") {
        let name = manifest.split('/').nth(1).unwrap_or_default();
        let known = name == "quorate" || LAYERS.iter().any(|(layer, _)| *layer == name);
        assert!(known, "{name} stands in no layer; add it to LAYERS");
    }
}
