//! The recorded answers of crates/sql/tests/data are PostgreSQL's: made anew by their own script,
//! from the PostgreSQL 15 that the tests share, they are the same, as far as [`crate::recorded`] asks
//! for that. `make expected` writes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use lab::host::run;

use crate::recorded::{self, Recorded, Versions};
use crate::{shared, source};

/// Where the script and, below it, the answers are.
const DIRECTORY: &str = "crates/sql/tests";

fn answers(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory.join("data")).expect("the answers");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tsv"))
        .collect();
    files.sort();
    files
}

#[test]
fn expected_outputs_of_values_are_postgresqls() {
    let committed = source::root().join(DIRECTORY);
    let rewrite = recorded::is_rewritten();
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
    let installed = Versions::of_server(postgres);
    let data = format!("{DIRECTORY}/data");
    if rewrite {
        return installed.write(&data);
    }
    let output = |file: &PathBuf| {
        let name = file.file_name().expect("a name").to_string_lossy();
        let path = format!("{data}/{name}");
        Recorded {
            expected: source::text(&path),
            found: std::fs::read_to_string(file).expect("an answer"),
            path,
        }
    };
    let outputs: Vec<_> = answers(directory).iter().map(output).collect();
    recorded::assert_recorded(&data, &installed, &outputs);
}
