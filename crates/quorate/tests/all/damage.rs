//! Directories that a node must not run on, and nodes that do not belong: the one that is wrong
//! says what is wrong and ends, and the others do not notice.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::host::{free_port, output, run, signal, wait_for, Endpoint, Process, PATIENCE};
use lab::quorate::{Cluster, ADDRESSES};

use crate::kill::program;
use crate::source::root;

const LOG: &str = "group1/log/0000000000000001.seg";
const STORE: &str = "group1/store/store";

/// Bytes of a page of the store.
const PAGE: u64 = 8192;

/// What `quorate start` says of a directory that it must refuse.
fn refusal(node: &Path) -> String {
    let log = node.with_extension("said");
    let out = fs::File::create(&log).expect("a file");
    let mut child = Command::new(program())
        .args(["start", "--data"])
        .arg(node)
        .stdin(Stdio::null())
        .stdout(out.try_clone().expect("a descriptor"))
        .stderr(out)
        .spawn()
        .expect("it starts");
    let mut status = None;
    let ended = wait_for("the node to end", PATIENCE, || {
        status = child.try_wait().expect("its status");
        status.is_some()
    });
    if ended.is_err() {
        child.kill().expect("it ends");
        child.wait().expect("it has ended");
    }
    let said = fs::read_to_string(&log).expect("what it said");
    let status = status.unwrap_or_else(|| panic!("it runs: {said}"));
    assert!(!status.success(), "it ended in order: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// What `quorate check` says of a directory that is not sound.
fn complaint(node: &Path) -> String {
    let output = output(Command::new(program()).arg("check").arg(node)).expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "nothing wrong? {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-r").arg(from).arg(to)).expect("a copy");
}

fn bytes(file: &Path, offset: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let file = fs::File::open(file).expect("the file");
    file.read_exact_at(&mut bytes, offset).expect("its bytes");
    bytes
}

fn write(file: &Path, offset: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(file);
    let file = file.expect("the file");
    file.write_all_at(bytes, offset).expect("it is written");
}

/// Turns one bit.
fn flip(file: &Path, offset: u64) {
    let mut byte = bytes(file, offset, 1);
    byte[0] ^= 0x10;
    write(file, offset, &byte);
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 * (crc & 1))
        })
    };
    !bytes.iter().fold(!0, step)
}

/// A stopped node with a checkpoint, and a log with more than that.
fn filled(dir: &Path) -> PathBuf {
    let small = ["quorate.checkpoint_log_size=64kB"];
    let cluster = Cluster::start(program(), dir, 1, &small).expect("a node");
    let node = cluster.nodes()[0].clone();
    let store = cluster.data().join("n1").join(STORE);
    let superblocks = || bytes(&store, 0, 2 * PAGE as usize);
    let empty = superblocks();
    node.query("create table held(k int primary key, v text)")
        .expect("a table");
    let mut from = 0;
    wait_for("a checkpoint", PATIENCE, || {
        let rows = format!(
            "insert into held select g, repeat('x', 100) from generate_series({from}, {}) g",
            from + 999
        );
        node.query(&rows).expect("rows");
        from += 1_000;
        superblocks() != empty
    })
    .expect("a checkpoint");
    node.query("insert into held values (-1, 'after')")
        .expect("a row");
    let data = cluster.data().to_owned();
    // Not in order: the end of the log is not in the checkpoint.
    let pid = cluster.status().expect("a status")[0].pid.expect("it runs");
    signal(pid, "KILL").expect("the node is killed");
    drop(cluster);
    data.join("n1")
}

#[test]
fn a_damaged_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let sound = filled(dir.path());
    let damaged = |name: &str, damage: &dyn Fn(&Path)| {
        let node = dir.path().join(name);
        copy(&sound, &node);
        damage(&node);
        let (complaint, refusal) = (complaint(&node), refusal(&node));
        fs::remove_dir_all(&node).expect("it is removed");
        (complaint, refusal)
    };
    let says = |said: &(String, String), expected: &str| {
        assert!(said.0.contains(expected), "check: {}", said.0);
        assert!(said.1.contains(expected), "start: {}", said.1);
    };
    let log = |node: &Path| node.join(LOG);
    // Early in the log, below what later syncs recorded as durable: no torn tail.
    says(&damaged("frame", &|node| flip(&log(node), 300)), "log");
    says(&damaged("magic", &|node| flip(&log(node), 5)), "log");
    says(
        &damaged("segment", &|node| {
            fs::remove_file(log(node)).expect("it is removed");
        }),
        "log",
    );
    says(
        &damaged("version", &|node| {
            let mut header = bytes(&log(node), 0, 64);
            header[16] = 77;
            let crc = crc32c(&header[4..]).to_le_bytes();
            header[..4].copy_from_slice(&crc);
            write(&log(node), 0, &header);
        }),
        "version 77",
    );
    says(
        &damaged("superblocks", &|node| {
            flip(&node.join(STORE), 10);
            flip(&node.join(STORE), PAGE + 10);
        }),
        "superblock",
    );
    says(
        &damaged("format", &|node| {
            let file = node.join("node.json");
            let text = fs::read_to_string(&file).expect("its settings");
            let other = text.replace("\"format\": 18", "\"format\": 99");
            assert_ne!(text, other, "the format stands elsewhere");
            fs::write(&file, other).expect("other settings");
        }),
        "is of format 99",
    );
    says(
        &damaged("cluster", &|node| {
            let file = node.join("node.json");
            let mut settings: serde_json::Value =
                serde_json::from_str(&fs::read_to_string(&file).expect("its settings"))
                    .expect("JSON");
            settings["cluster"] = "00000000000000000000000000000001".into();
            fs::write(&file, settings.to_string()).expect("other settings");
        }),
        "cluster",
    );
    // The original has not suffered.
    let check = run(Command::new(program()).arg("check").arg(&sound)).expect("it is sound");
    assert!(check.contains("sound"), "{check}");
}

/// An older build must not go on with what this one has written, so it refuses the directory.
#[test]
fn a_directory_of_the_format_before_becomes_one_of_this() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let node = cluster.nodes()[0].clone();
    node.query("create table kept(i int primary key)")
        .expect("a table");
    node.query("insert into kept values (7)").expect("a row");
    let n1 = cluster.data().join("n1");
    drop(cluster);
    let file = n1.join("node.json");
    let settings = || fs::read_to_string(&file).expect("its settings");
    let before = settings().replace("\"format\": 18", "\"format\": 17");
    assert_ne!(settings(), before, "the format stands elsewhere");
    fs::write(&file, before).expect("other settings");

    let mut command = Command::new(program());
    command.args(["start", "--data"]).arg(&n1);
    let process = Process::start(&mut command, &dir.path().join("out")).expect("it starts");
    node.wait().expect("it answers");
    let kept = node.query("select i from kept").expect("an answer");
    assert_eq!(kept, "7");
    assert!(settings().contains("\"format\": 18"), "{}", settings());
    drop(process);
}

/// What is kept in `tests/directories`.
const FORMATS: [&str; 15] = [
    "format-3",
    "format-4",
    "format-5",
    "format-6",
    "format-7",
    "format-8",
    "format-9",
    "format-10",
    "format-11",
    "format-12",
    "format-13",
    "format-14",
    "format-15",
    "format-16",
    "format-17",
];

/// Directories that the last builds of older formats made are served as if this one had made them.
#[test]
fn what_an_older_build_kept_is_as_it_was() {
    let scripts = root().join("tests/directories");
    let ask = |node: &Endpoint| {
        let mut psql = node.psql();
        let asked = output(psql.arg("-f").arg(scripts.join("asked.sql"))).expect("psql");
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        assert!(said.contains("Indexes:"), "{said}");
        let errors = String::from_utf8_lossy(&asked.stderr).into_owned();
        (said, errors)
    };
    let dir = tempfile::tempdir().expect("a directory");
    let new = Cluster::start(program(), &dir.path().join("new"), 1, &[]).expect("a node");
    let made = new.nodes()[0]
        .psql()
        .arg("-f")
        .arg(scripts.join("made.sql"))
        .output();
    let made = made.expect("psql");
    assert!(
        made.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let expected = ask(&new.nodes()[0]);
    drop(new);

    for format in FORMATS {
        let (process, node) = kept(dir.path(), format);
        assert_eq!(ask(&node), expected, "{format}");
        drop(process);
        fs::remove_dir_all(dir.path().join("n1")).expect("it is gone");
    }
}

/// Starts a node in `n1` of a directory, with what is kept under a name.
fn kept(dir: &Path, name: &str) -> (Process, Endpoint) {
    let archive = root().join("tests/directories").join(name);
    let mut tar = Command::new("tar");
    tar.arg("xzf").arg(archive.with_extension("tar.gz"));
    run(tar.arg("-C").arg(dir)).expect("its files");
    let n1 = dir.join("n1");
    let file = n1.join("node.json");
    let mut settings = fs::read_to_string(&file).expect("its settings");
    let ports = ["45833", "45933", "46833"].map(|old| {
        let port = free_port(&ADDRESSES).expect("a port");
        settings = settings.replace(old, &port.to_string());
        port
    });
    fs::write(&file, settings).expect("other ports");
    let mut command = Command::new(program());
    command.args(["start", "--data"]).arg(&n1);
    let process = Process::start(&mut command, &dir.join(name)).expect("it starts");
    let node = Endpoint::at("127.0.0.1", ports[0]);
    node.wait().expect("it answers");
    (process, node)
}

/// What `*` of a join with USING was when a view was made, stays so; of a new one it is as in PostgreSQL.
#[test]
fn columns_of_joins_that_an_older_build_kept_stay_in_their_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let (process, node) = kept(dir.path(), "using-15");
    let columns = |name: &str| {
        let sql = format!(
            "select string_agg(attname || ' ' || atttypid::regtype, ', ' order by attnum) \
             from pg_attribute where attrelid = '{name}'::regclass and attnum > 0"
        );
        node.query(&sql).expect("its columns")
    };
    let rows = |name: &str| {
        let sql = format!("select * from {name} order by title, author");
        node.query(&sql).expect("its rows")
    };
    let rest = "title text, note text, author text, year integer";
    node.query("refresh materialized view stored")
        .expect("it is filled");
    node.query(
        "create view inner_new as select * from pages join books using (edition, book); \
         create view full_new as select * from pages natural full join books",
    )
    .expect("views");
    for (name, first) in [
        ("inner_kept", "edition integer, book integer"),
        ("stored", "book integer, edition integer"),
        ("inner_new", "edition bigint, book bigint"),
        ("full_new", "book bigint, edition bigint"),
    ] {
        assert_eq!(columns(name), format!("{first}, {rest}"), "{name}");
    }
    for name in ["inner_kept", "inner_new"] {
        assert_eq!(
            rows(name),
            "10|1|one|a|Ann|1999\n10|2|three|c|Bob|2005",
            "{name}"
        );
    }
    let full = "1|10|one|a|Ann|1999\n2|10|three|c|Bob|2005\n1|11|two|b||";
    assert_eq!(rows("stored"), full);
    for name in ["full_kept", "full_new"] {
        assert_eq!(rows(name), format!("{full}\n3|12|||Cy|2010"), "{name}");
    }
    drop(process);
}

#[test]
fn a_damaged_page_stops_the_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = filled(dir.path());
    let store = node.join(STORE);
    // Every page that is in use, superblocks aside.
    let pages = fs::metadata(&store).expect("the store").len() / PAGE;
    for page in 2..pages {
        if bytes(&store, page * PAGE, PAGE as usize)
            .iter()
            .any(|byte| *byte != 0)
        {
            flip(&store, page * PAGE + PAGE / 2);
        }
    }
    complaint(&node);
    refusal(&node);
}

#[test]
fn a_damaged_follower_leaves_the_others_in_peace() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
    let leader = cluster.leader().expect("a leader");
    let follower = (leader + 1) % 3;
    let other = &cluster.nodes()[leader];
    other
        .query("create table held(k int primary key)")
        .expect("a table");
    let count = |expected: &str| {
        let count = other.query("select count(*) from held").expect("a count");
        assert_eq!(count, expected);
    };
    let pid = cluster.status().expect("a status")[follower]
        .pid
        .expect("it runs");
    // Every commit is in a frame of its own, synced.
    for k in 0..20 {
        let insert = format!("insert into held values ({k})");
        other.query(&insert).expect("a row");
    }
    signal(pid, "KILL").expect("the follower is killed");
    let node = cluster.data().join(format!("n{}", follower + 1));
    flip(&node.join(LOG), 300);
    other.query("insert into held values (20)").expect("a row");
    refusal(&node);
    other.query("insert into held values (21)").expect("a row");
    count("22");
}

#[test]
fn a_node_of_another_cluster_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = free_port(&ADDRESSES).expect("a port").to_string();
    let http = free_port(&ADDRESSES).expect("a port").to_string();
    let peer = free_port(&ADDRESSES).expect("a port").to_string();
    // Two clusters whose nodes are at the same addresses; never both at once, until now.
    let made = ["ours", "theirs"].map(|name| {
        let data = dir.path().join(name);
        let mut up = Process::start(
            Command::new(program())
                .args([
                    "up",
                    "--port",
                    &port,
                    "--http-port",
                    &http,
                    "--peer-port",
                    &peer,
                ])
                .arg("--data")
                .arg(&data),
            &dir.path().join(format!("{name}.log")),
        )
        .expect("a cluster");
        let node = lab::host::Endpoint::at(ADDRESSES[0], port.parse().expect("a number"));
        node.wait().expect("an answer");
        let table = format!("create table {name}(k int primary key)");
        node.query(&table).expect("a table");
        up.signal("TERM").expect("it runs");
        up.wait().expect("it stops");
        (data, node)
    });
    let [(ours, node), (theirs, _)] = &made;
    let start = |dir: PathBuf| {
        let log = dir.join("again.log");
        let mut command = Command::new(program());
        Process::start(command.args(["start", "--data"]).arg(&dir), &log).expect("a node")
    };
    let _nodes = [ours.join("n1"), ours.join("n2"), theirs.join("n3")].map(start);
    node.wait().expect("two of three are a majority");
    node.query("insert into ours values (1)").expect("a row");
    wait_for("the refusal in the log", PATIENCE, || {
        ["n1", "n2"].iter().any(|name| {
            let log = fs::read_to_string(ours.join(name).join("node.log"));
            log.is_ok_and(|log| log.contains("belongs to another cluster"))
        })
    })
    .expect("it is logged");
    assert_eq!(node.query("select k from ours").expect("a row"), "1");
    node.query("select k from theirs").expect_err("not ours");
}
