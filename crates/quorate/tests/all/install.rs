//! What `make install` promises: the program with what belongs to it under a prefix, and nothing of
//! it left afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::host::run;

use crate::kill::program;
use crate::source;

fn install(arguments: [&Path; 2]) -> String {
    let script = source::root().join("scripts/install.sh");
    run(Command::new("bash").arg(script).args(arguments)).expect("it is done")
}

/// All files below a directory.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn what_is_installed_works_and_goes_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let prefix = dir.path().join("a prefix");
    let foreign = prefix.join("bin/other");
    fs::create_dir_all(prefix.join("bin")).expect("a directory");
    fs::write(&foreign, "of somebody else").expect("a file");
    // Twice: the second time it takes the place of what is there.
    for _ in 0..2 {
        let said = install([program(), &prefix]);
        assert!(said.contains("is not on your PATH"), "{said}");
    }
    let installed = prefix.join("bin/quorate");
    let version = run(Command::new(&installed).arg("--version")).expect("it runs");
    assert!(version.starts_with("quorate "), "{version}");

    let sections = |path: &Path| run(Command::new("readelf").args(["-S", "-W"]).arg(path));
    let stripped = sections(&installed).expect("its sections");
    for gone in [".debug_info", ".symtab"] {
        assert!(!stripped.contains(gone), "{stripped}");
    }
    assert!(stripped.contains(".gnu_debuglink"), "{stripped}");
    let symbols = prefix.join("bin/.debug/quorate.debug");
    let symbols = sections(&symbols).expect("the sections of its symbols");
    assert!(symbols.contains(".debug_info"), "{symbols}");

    let share = prefix.join("share");
    let completions = share.join("bash-completion/completions/quorate");
    let completed = format!(
        "source '{}'; COMP_WORDS=(quorate sto); COMP_CWORD=1; _quorate quorate sto quorate; \
         echo \"${{COMPREPLY[*]}}\"",
        completions.display()
    );
    let completed = run(Command::new("bash").args(["-c", &completed])).expect("a completion");
    assert_eq!(completed.trim(), "stop");
    for (file, part) in [
        ("zsh/site-functions/_quorate", "#compdef quorate"),
        ("fish/vendor_completions.d/quorate.fish", "switchover"),
        ("man/man1/quorate.1", ".TH quorate 1"),
        ("man/man1/quorate-node-add.1", "sql\\-address"),
    ] {
        let text = fs::read_to_string(share.join(file)).expect(file);
        assert!(text.contains(part), "{file}: {text}");
    }

    install([Path::new("--remove"), &prefix]);
    assert_eq!(files_below(&prefix), [foreign]);
}

#[test]
fn make_hands_the_prefix_on() {
    let mut make = Command::new("make");
    make.current_dir(source::root());
    let said = run(make.args(["--dry-run", "install", "PREFIX=/a prefix"])).expect("a plan");
    assert!(said.contains("scripts/install.sh"), "{said}");
    assert!(said.contains("\"/a prefix\""), "{said}");
}
