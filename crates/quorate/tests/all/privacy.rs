//! What a node keeps is its owner's alone: made so, kept so, and noticed when it is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::host::{run, wait_for, PATIENCE};
use lab::quorate::Cluster;

use crate::kill::{open_directory, program};

/// A directory and all in it that others than its owner can do anything with.
fn wide(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.permissions().mode() & 0o077 != 0 {
            found.push(path.clone());
        }
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
    }
    found
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its permissions");
}

/// What `quorate start` says of a directory that it refuses.
fn refusal(node: &Path) -> String {
    let done = Command::new("timeout")
        .arg("30")
        .arg(program())
        .args(["start", "--data"])
        .arg(node)
        .output()
        .expect("it runs");
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn all_that_a_node_keeps_is_its_owners_alone() {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a cluster");
    let node = &cluster.nodes()[0];
    // Also what is made while it runs: the log's next segments, a checkpoint, undo on disk.
    node.query("create table t(id int primary key, word text)")
        .expect("a table");
    node.query("insert into t select i, repeat('word', 30) from generate_series(1, 20000) i")
        .expect("rows");
    node.query("checkpoint").expect("a checkpoint");
    assert_eq!(wide(cluster.data()), [] as [&Path; 0]);
    let data = cluster.data().to_owned();
    drop(cluster);
    assert_eq!(wide(&data), [] as [&Path; 0]);

    let n1 = data.join("n1");
    set_mode(&n1, 0o750);
    let said = refusal(&n1);
    let expected = format!(
        "data directory \"{}\" has invalid permissions (Permissions should be u=rwx (0700).",
        n1.display()
    );
    assert!(said.contains(&expected), "{said}");
    set_mode(&n1, 0o700);
    for (name, mode) in [("node.json", 0o604), ("group1/store/store", 0o640)] {
        let file = n1.join(name);
        set_mode(&file, mode);
        let said = refusal(&n1);
        let expected = format!(
            "file \"{}\" has group or world access (Permissions should be u=rw (0600).",
            file.display()
        );
        assert!(said.contains(&expected), "{said}");
        set_mode(&file, 0o600);
    }
    set_mode(&n1.join("group1"), 0o701);
    let said = refusal(&n1);
    assert!(said.contains("group1\" has invalid permissions"), "{said}");
    set_mode(&n1.join("group1"), 0o700);

    set_mode(&data.join("cluster.json"), 0o644);
    let done = Command::new(program())
        .args(["up", "--data"])
        .arg(&data)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        !done.status.success() && said.contains("cluster.json\" has group or world access"),
        "{done:?}"
    );
}

/// As a build left it that knew nothing of all this.
fn make_old(path: &Path) {
    let text = fs::read_to_string(path).expect("its settings");
    let mut settings: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let fields = settings.as_object_mut().expect("an object");
    assert_eq!(fields.remove("private"), Some(true.into()));
    fs::write(path, settings.to_string()).expect("older settings");
}

#[test]
fn what_an_earlier_build_made_is_narrowed_once() {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a cluster");
    let data = cluster.data().to_owned();
    drop(cluster);
    let n1 = data.join("n1");
    make_old(&data.join("cluster.json"));
    make_old(&n1.join("node.json"));
    run(Command::new("chmod").args(["-R", "a+rX"]).arg(&data)).expect("it is wide");
    assert!(wide(&data).len() > 5);

    let up = || {
        let mut command = Command::new(program());
        command.args(["up", "--data"]).arg(&data);
        lab::host::Process::start(&mut command, &dir.path().join("again.log")).expect("it starts")
    };
    let said = || fs::read_to_string(dir.path().join("again.log")).expect("a log");
    let process = up();
    wait_for("the node", PATIENCE, || said().contains("Ctrl-C")).expect("it starts");
    assert!(said().contains("an earlier version made"), "{}", said());
    let log = || fs::read_to_string(n1.join("node.log")).expect("a log");
    let lines = || log().matches("an earlier version made").count();
    assert_eq!(lines(), 1, "{}", log());
    assert_eq!(wide(&data), [] as [&Path; 0]);
    drop(process);

    let process = up();
    wait_for("the node", PATIENCE, || said().contains("Ctrl-C")).expect("it starts");
    assert!(!said().contains("an earlier version made"), "{}", said());
    assert_eq!(lines(), 1, "{}", log());
    drop(process);
    // Whoever widens it now has not made it.
    set_mode(&n1, 0o755);
    assert!(refusal(&n1).contains("has invalid permissions"));
}

#[test]
fn certificates_and_what_init_makes_are_their_owners_alone() {
    let dir = open_directory();
    let password = dir.path().join("password");
    fs::write(&password, "secret\n").expect("a file");
    let bank = dir.path().join("bank");
    run(Command::new(program())
        .args(["init", "--node", "n1=192.0.2.1", "--password-file"])
        .arg(&password)
        .arg("--data")
        .arg(&bank))
    .expect("the directories");
    run(Command::new(program())
        .args(["cert", "client", "ann", "--dir"])
        .arg(&bank))
    .expect("a certificate");
    assert_eq!(wide(&bank), [] as [&Path; 0]);
    set_mode(&bank.join("n1/node.crt"), 0o644);
    let said = refusal(&bank.join("n1"));
    assert!(
        said.contains("node.crt\" has group or world access"),
        "{said}"
    );
}
