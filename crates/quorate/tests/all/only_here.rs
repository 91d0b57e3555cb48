//! What PostgreSQL's packages do not have, or the server of the tests does not load, and so cannot answer
//! for: scripts of tests/quorate, whose
//! output stands beside them and was read by somebody. They run through psql on one node, each in a
//! database of its own; with `QUORATE_REWRITE_EXPECTED` their outputs are written anew, to be read
//! again.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use lab::host::Endpoint;

use crate::questions::psql;
use crate::{shared, source};

/// Where the scripts are, with what they print.
const DIRECTORY: &str = "tests/quorate";

/// What a script prints, errors where they come.
fn printed(endpoint: &Endpoint, database: &str, script: &Path) -> String {
    let both = tempfile::NamedTempFile::new().expect("a file");
    let file = |path: &Path| -> Stdio {
        let opened = File::options().append(true).open(path);
        opened.expect("the file").into()
    };
    let status = endpoint
        .client("psql")
        .args(["-X", "-q", "-a", "-d", database, "-v", "VERBOSITY=verbose"])
        .args(["-v", "SHOW_CONTEXT=errors", "-f"])
        .arg(script)
        .stdin(Stdio::null())
        .stdout(file(both.path()))
        .stderr(file(both.path()))
        .status();
    assert!(status.expect("psql").success(), "{}", script.display());
    let text = fs::read_to_string(both.path()).expect("the output");
    let name = format!("psql:{}:", script.display());
    let lines = text.lines().filter(|line| !line.starts_with("LOCATION:"));
    let lines = lines.map(|line| format!("{}\n", line.replace(&name, "line ")));
    lines.collect()
}

#[test]
fn scripts_print_what_stands_beside_them() {
    let endpoint = &shared::one_node().nodes()[0];
    let scripts = fs::read_dir(source::root().join(DIRECTORY)).expect("the scripts");
    let scripts = scripts.map(|entry| entry.expect("an entry").path());
    let is_script = |path: &std::path::PathBuf| path.extension().is_some_and(|own| own == "sql");
    let mut count = 0;
    for script in scripts.filter(is_script) {
        count += 1;
        let name = script.file_stem().expect("a name").to_string_lossy();
        let database = format!("only_here_{name}");
        psql(endpoint, &format!("create database {database}"));
        let printed = printed(endpoint, &database, &script);
        psql(endpoint, &format!("drop database {database}"));
        let beside = script.with_extension("out");
        if std::env::var_os("QUORATE_REWRITE_EXPECTED").is_some() {
            fs::write(&beside, &printed).expect("the output is written");
        }
        let wanted = fs::read_to_string(&beside).unwrap_or_default();
        assert!(printed == wanted, "{} prints\n{printed}", script.display());
    }
    assert!(count > 0, "no scripts in {DIRECTORY}");
}
