//! Rules of style that a test can hold. Each says what to write instead.

use crate::source;

/// Lines of a source file, tests in files of their own not counted.
const FILE_LINES_MAX: usize = 1_000;

/// What no source file contains, and why.
const BANNED: [(&str, &str); 7] = [
    (concat!("todo", "!("), "write it, or answer 0A000"),
    (concat!("unimplemented", "!("), "write it, or answer 0A000"),
    (concat!("dbg", "!("), "log through Env"),
    (concat!("FIX", "ME"), "mend it or open an issue"),
    (concat!("TO", "DO"), "do it or open an issue"),
    (concat!("#[ign", "ore]"), "say why, and where it runs"),
    (concat!("thread", "_rng"), "use Env::random"),
];

/// What touches the machine, allowed in [`may_touch`] only.
const TOUCHING: [&str; 7] = [
    concat!("std::", "time::Instant"),
    concat!("std::", "time::SystemTime"),
    concat!("std::", "net::Tcp"),
    concat!("std::", "thread::"),
    concat!("std::", "fs::"),
    concat!("use ", "tokio"),
    concat!("allow(clippy::", "disallowed"),
];

/// Whether a panic unwinds is no matter of the machine.
const PANICKING: &str = concat!("std::", "thread::panicking()");

/// Where the machine may be touched: the module that implements Env, the one that names fixed
/// hashing, the lab's processes and relay, and code that never runs in a node.
fn may_touch(path: &str) -> bool {
    path.starts_with("crates/node/src/real/")
        || path == "crates/base/src/hash.rs"
        || path == "crates/lab/src/host.rs"
        || path.starts_with("crates/lab/src/real/")
        || path.contains("/tests/")
        || path.contains("/benches/")
        || path.ends_with("tests.rs")
        || path.ends_with("stress.rs")
}

#[test]
fn no_source_file_is_too_long() {
    for path in source::files("crates", ".rs") {
        let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
        let lines = source::text(&path).lines().count();
        assert!(
            is_test || lines <= FILE_LINES_MAX,
            "{path} has {lines} lines, more than {FILE_LINES_MAX}: split it"
        );
    }
}

#[test]
fn nothing_is_left_undone() {
    let mut wrong = Vec::new();
    for path in source::files("crates", ".rs") {
        for (number, line) in source::text(&path).lines().enumerate() {
            for (banned, instead) in BANNED {
                if line.contains(banned) {
                    wrong.push(format!("{path}:{}: {banned}: {instead}", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_real_env_touches_the_machine() {
    let mut wrong = Vec::new();
    for path in source::files("crates", ".rs") {
        if may_touch(&path) {
            continue;
        }
        // What follows the marker of a test module is no product code.
        let text = source::text(&path);
        let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (number, line) in product.lines().enumerate() {
            let line = line.replace(PANICKING, "");
            if let Some(touching) = TOUCHING.iter().find(|name| line.contains(**name)) {
                wrong.push(format!("{path}:{}: {touching}: use base::env", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_workspace_dependency_has_its_line() {
    let manifest = source::text("Cargo.toml");
    let documented = source::text("docs/DEPENDENCIES.md");
    let dependencies = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .and_then(|rest| rest.split("\n[").next())
        .expect("the table of dependencies");
    for line in dependencies.lines().filter(|line| !line.contains("path =")) {
        if let Some((name, _)) = line.split_once('=') {
            let name = name.trim();
            assert!(
                documented.contains(&format!("`{name}`")),
                "{name} has no line in docs/DEPENDENCIES.md"
            );
        }
    }
}
