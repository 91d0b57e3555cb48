//! The recorded answers of crates/sql/tests/data are PostgreSQL's: made anew by their own script,
//! from the PostgreSQL 15 that the tests share, they are the same. `make expected` writes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use lab::host::run;

use crate::{shared, source};

/// Where the script and, below it, the answers are.
const DIRECTORY: &str = "crates/sql/tests";

fn answers(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory.join("data")).expect("the answers");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

#[test]
fn expected_outputs_of_values_are_postgresqls() {
    let committed = source::root().join(DIRECTORY);
    let rewrite = std::env::var_os("QUORATE_REWRITE_EXPECTED").is_some();
    let scratch = tempfile::tempdir().expect("a directory");
    let directory = if rewrite { &committed } else { scratch.path() };
    if !rewrite {
        std::fs::create_dir(directory.join("data")).expect("a directory");
        let mut files = answers(&committed);
        files.push(committed.join("remake.sh"));
        for file in files {
            let relative = file.strip_prefix(&committed).expect("below it");
            std::fs::copy(&file, directory.join(relative)).expect("a copy");
        }
    }
    let postgres = shared::postgres();
    run(Command::new("bash")
        .arg(directory.join("remake.sh"))
        .env("PGHOST", &postgres.host)
        .env("PGPORT", postgres.port.to_string())
        .env("PGUSER", "postgres")
        .env("PGDATABASE", "postgres"))
    .expect("the answers are made anew");
    for file in answers(directory) {
        let name = file.file_name().expect("a name");
        let expected = std::fs::read_to_string(&file).expect("an answer");
        let found = source::text(&format!("{DIRECTORY}/data/{}", name.to_string_lossy()));
        let first = expected
            .lines()
            .zip(found.lines())
            .find(|(one, other)| one != other);
        assert!(
            expected == found,
            "{name:?} is not what PostgreSQL answers, first here: {first:?}; make expected writes it anew"
        );
    }
}
