//! The source tree, for tests that read it.

use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().and_then(Path::parent);
    root.expect("crates/quorate stands two levels below")
        .to_owned()
}

/// All files below `dir` whose names end in `suffix`, sorted, as paths relative to the workspace.
pub fn files(dir: &str, suffix: &str) -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut open = vec![root.join(dir)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).expect("a readable directory") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                let relative = path.strip_prefix(&root).expect("below the root");
                found.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// The text of a file of the workspace.
pub fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
