//! Modules of a crate import downwards only: their imports have no cycle.
//!
//! ```text
//! exec uses crate::plan::Program        exec → plan
//! plan uses crate::exec::Exec           plan → exec: a cycle, refused
//! ```
//! A module is a file or directory right below `src`, with all that is in it. What counts is what its
//! code names by `crate::` (or by `super::` right below `src`); tests and comments may name anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::source;

/// Cycles that are left: the crate and the modules of the cycle. A line that no cycle needs any more
/// fails the test, so that the list only shrinks.
const CYCLES_LEFT: [(&str, &str); 14] = [
    ("catalog", "access cluster default_acl store system"),
    ("catalog", "computed descriptor policy sequence"),
    ("functions", "aggregate table_aggregates"),
    ("functions", "arrays strings"),
    ("functions", "registry resolve"),
    ("kv", "apply build bulk group locks registry serial txn"),
    ("kv", "config directory"),
    ("lab", "lists registers"),
    ("node", "administration clients real server starting"),
    ("sim", "cluster disk env faults mix net operator world"),
    (
        "storage",
        "apply bulk cache checkpoint file page pager pages reading size split store superblock tree \
         undo",
    ),
    ("types", "array text"),
    ("types", "datetime typmod"),
    ("types", "float numeric"),
];

/// What each module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The text without comments and without what follows the first module of tests in it.
fn code_of(text: &str) -> String {
    let lines = text.lines().map(|line| match line.find("//") {
        Some(comment) => &line[..comment],
        None => line,
    });
    let mut code = String::new();
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        let before_module = lines.peek().is_some_and(|next| {
            let next = next.trim_start();
            next.starts_with("mod ") && next.ends_with('{')
        });
        if line.trim() == "#[cfg(test)]" && before_module {
            break;
        }
        code.push_str(line);
        code.push('\n');
    }
    code
}

/// The first names of a path, or of a list of paths in braces.
fn first_names(path: &str) -> Vec<&str> {
    let name_of = |text: &'_ str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        end.unwrap_or(text.len())
    };
    let Some(list) = path.strip_prefix('{') else {
        return vec![&path[..name_of(path)]];
    };
    let (mut depth, mut begins, mut names) = (0, true, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                names.push(&list[at..at + name_of(&list[at..])]);
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// The modules of a crate and what they import.
fn imports_of(name: &str) -> Imports {
    let dir = format!("crates/{name}/src");
    let module_of = |file: &str| {
        let inside = &file[dir.len() + 1..];
        let first = inside.split('/').next().unwrap_or_default();
        first.trim_end_matches(".rs").to_owned()
    };
    let files = source::files(&dir, ".rs");
    let modules: BTreeSet<String> = files.iter().map(|file| module_of(file)).collect();
    let mut imports = Imports::new();
    for file in &files {
        let module = module_of(file);
        if matches!(module.as_str(), "lib" | "main" | "bin") || file.contains("tests") {
            continue;
        }
        let code = code_of(&source::text(file));
        let depth = file[dir.len() + 1..].matches('/').count();
        let is_top = depth == 0 || depth == 1 && file.ends_with("/mod.rs");
        let mut paths: Vec<&str> = code.split("crate::").skip(1).collect();
        if is_top {
            let above = code.split("super::").skip(1);
            paths.extend(above.filter(|path| !path.is_empty()));
        }
        let named = paths.into_iter().flat_map(first_names);
        let known = named.filter(|name| modules.contains(*name) && *name != module);
        let entry: BTreeSet<String> = known.map(str::to_owned).collect();
        imports.entry(module).or_default().extend(entry);
    }
    imports
}

/// All that a module imports, directly or not.
fn reach(imports: &Imports, from: &str) -> BTreeSet<String> {
    let (mut open, mut seen) = (vec![from.to_owned()], BTreeSet::new());
    while let Some(module) = open.pop() {
        for next in imports.get(&module).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}

/// The cycles of a crate, each as the names of its modules.
fn cycles_of(imports: &Imports) -> BTreeSet<String> {
    let reached: BTreeMap<&String, _> = imports.keys().map(|m| (m, reach(imports, m))).collect();
    let mut cycles = BTreeSet::new();
    for (module, all) in &reached {
        let with = |other: &&String| all.contains(*other) && reached[*other].contains(*module);
        if all.contains(*module) {
            let cycle: Vec<_> = imports.keys().filter(with).map(String::as_str).collect();
            cycles.insert(cycle.join(" "));
        }
    }
    cycles
}

#[test]
fn modules_import_without_cycles() {
    let mut wrong = Vec::new();
    for manifest in source::files("crates", "Cargo.toml") {
        let name = manifest.split('/').nth(1).unwrap_or_default();
        let found = cycles_of(&imports_of(name));
        let left = CYCLES_LEFT.iter().filter(|left| left.0 == name);
        let left: BTreeSet<String> = left.map(|left| left.1.to_owned()).collect();
        let new = found.difference(&left);
        wrong.extend(new.map(|cycle| format!("{name}: {cycle} import one another")));
        let gone = left.difference(&found);
        wrong.extend(gone.map(|cycle| format!("{name}: {cycle} are no such cycle any more")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_module_imports_is_found() {
    let code = code_of(
        "use crate::{a::B, c::{D, E}, f};\n// crate::g\n#[cfg(test)]\nmod tests {\ncrate::h",
    );
    let names: Vec<_> = code
        .split("crate::")
        .skip(1)
        .flat_map(first_names)
        .collect();
    assert_eq!(names, ["a", "c", "f"]);
    let imports = Imports::from([
        ("a".to_owned(), BTreeSet::from(["b".to_owned()])),
        ("b".to_owned(), BTreeSet::from(["c".to_owned()])),
        ("c".to_owned(), BTreeSet::from(["b".to_owned()])),
    ]);
    assert_eq!(cycles_of(&imports), BTreeSet::from(["b c".to_owned()]));
}
