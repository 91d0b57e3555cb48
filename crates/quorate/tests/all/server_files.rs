//! COPY from and to files of the server: who may, what is refused, and that what was written can be
//! read again.

use std::fs;

use crate::shared::one_node;

/// What psql prints for a script, errors with their state.
fn say(script: &str) -> String {
    let node = &one_node().nodes()[0];
    let mut psql = node.psql();
    psql.args(["-v", "ON_ERROR_STOP=0", "-v", "VERBOSITY=sqlstate"]);
    // One command a statement, so that one which fails ends no other.
    for statement in script.split(';') {
        psql.arg("-c").arg(statement.trim());
    }
    let output = psql.output().expect("psql");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn rows_go_through_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("rows.csv");
    let (path, name) = (file.display(), "server_files_rows");
    say(&format!(
        "create table {name} as select n, 'row ' || n as t from generate_series(1, 20000) n"
    ));
    say(&format!("copy {name} to '{path}' csv header"));
    let written = fs::read_to_string(&file).expect("the file is there");
    assert!(written.starts_with("n,t\n1,row 1\n"), "{}", &written[..40]);
    assert_eq!(written.lines().count(), 20_001);
    // A shorter file takes the place of the longer one.
    say(&format!(
        "copy (select 1) to '{path}.short'; copy (select n from {name} limit 3) to '{path}'"
    ));
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "1\n2\n3\n");
    fs::write(&file, written).expect("it is written");
    let answer = say(&format!(
        "truncate {name}; copy {name} from '{path}' csv header; select count(*), sum(n) from {name}"
    ));
    assert!(answer.contains("20000|200010000"), "{answer}");
    fs::write(&file, "1\tone\nx\ttwo\n").expect("it is written");
    let answer = say(&format!(
        "copy {name} from '{path}'; select count(*) from {name}"
    ));
    assert!(
        answer.contains("22P02") && answer.contains("20000"),
        "{answer}"
    );
    say(&format!("copy {name} to '{path}' binary; truncate {name}"));
    let answer = say(&format!(
        "copy {name} from '{path}' binary; select count(*) from {name}; drop table {name}"
    ));
    assert!(answer.contains("20000"), "{answer}");
}

#[test]
fn who_may_not_and_what_is_no_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let here = dir.path().display();
    let file = dir.path().join("one.txt");
    fs::write(&file, "1\n").expect("it is written");
    let path = file.display();
    say("create role server_files_none; create role server_files_reader; grant pg_read_server_files to server_files_reader");
    say("create table server_files_one (a int); grant all on server_files_one to public");
    let as_role = |role: &str, statement: &str| {
        let node = &one_node().nodes()[0];
        let mut psql = node.psql();
        psql.args(["-v", "VERBOSITY=sqlstate", "-c"]);
        psql.arg(format!("set role {role}"))
            .arg("-c")
            .arg(statement);
        let output = psql.output().expect("psql");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (read, write) = (
        format!("copy server_files_one from '{path}'"),
        format!("copy server_files_one to '{here}/two.txt'"),
    );
    assert!(as_role("server_files_none", &read).contains("42501"));
    assert!(as_role("server_files_none", &write).contains("42501"));
    assert_eq!(as_role("server_files_reader", &read), "");
    assert!(as_role("server_files_reader", &write).contains("42501"));
    assert!(!dir.path().join("two.txt").exists());
    for (statement, state) in [
        (format!("copy server_files_one from '{here}/none'"), "58P01"),
        (format!("copy server_files_one from '{here}'"), "42809"),
        (format!("copy server_files_one to '{here}'"), "42809"),
        ("copy server_files_one from '/dev/zero'".to_owned(), "0A000"),
        ("copy server_files_one to 'relative'".to_owned(), "42602"),
        (
            format!("copy server_files_one from program 'cat {path}'"),
            "0A000",
        ),
    ] {
        let answer = as_role("postgres", &statement);
        assert!(answer.contains(state), "{statement}: {answer}");
    }
    let count = one_node().nodes()[0].query("select count(*) from server_files_one");
    assert_eq!(count.expect("a count"), "1");
    say("drop table server_files_one; drop role server_files_none; drop role server_files_reader");
}
