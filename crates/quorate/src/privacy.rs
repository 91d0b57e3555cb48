//! Directories are their owner's alone, and so is all that is in them: 0700 and 0600.
//!
//! Everything that `quorate` makes is made so (`host::make_all_private`). What is found wider was
//! widened by somebody, and nobody knows who has read or changed it since: the node does not start,
//! as PostgreSQL's does not, and says what to do.
//!
//! Directories of builds that did not know this have no mark (`private` in `node.json` and
//! `cluster.json`). Nobody can be blamed for these: they are narrowed once, with a line for the
//! operator, and get the mark.
//!
//! | mark | wider than it may be | then |
//! |---|---|---|
//! | yes | no | go on |
//! | yes | yes | refused |
//! | no | either | narrowed, marked |
//!
//! # What it leaves out
//! What links lead to, and certificates whose setting names a place elsewhere; of those, keys are
//! looked at when they are read.

use std::io;
use std::path::Path;

use node::real::host;

use crate::layout::NodeFile;
use crate::Failure;

/// What an operator is told of a directory that was narrowed.
pub type Narrowed = String;

fn failed(path: &Path, error: &io::Error) -> Failure {
    format!(
        "could not look at the permissions of {}: {error}",
        path.display()
    )
}

/// Looks at a node's directory before the node starts, as the table has it. The caller writes the
/// mark.
///
/// # Errors
/// When it belongs to somebody else, or was widened; whatever the system refuses.
pub fn check_node(dir: &Path, file: &mut NodeFile) -> Result<Option<Narrowed>, Failure> {
    check_owner(dir)?;
    if file.private {
        return refuse_wide(dir).map(|()| None);
    }
    file.private = true;
    let count = host::narrow_all(dir).map_err(|error| failed(dir, &error))?;
    Ok(narrowed(dir, count))
}

/// Looks at a directory of a cluster and the files that are its own; the nodes' directories are
/// looked at when they start.
///
/// # Errors
/// As [`check_node`].
pub fn check_cluster(
    dir: &Path,
    files: &[&str],
    is_marked: bool,
) -> Result<Option<Narrowed>, Failure> {
    check_owner(dir)?;
    let mut count = 0;
    let all = std::iter::once(dir.to_owned()).chain(files.iter().map(|name| dir.join(name)));
    for path in all {
        let done = match is_marked {
            true => host::is_wide(&path),
            false => host::narrow(&path),
        };
        match done {
            Ok(true) if is_marked => return Err(wide(dir, &path)),
            Ok(was_wide) => count += usize::from(was_wide),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, &error)),
        }
    }
    Ok(narrowed(dir, count))
}

fn check_owner(dir: &Path) -> Result<(), Failure> {
    match host::is_own(dir).map_err(|error| failed(dir, &error))? {
        true => Ok(()),
        false => Err(format!(
            "data directory \"{}\" has wrong ownership (The server must be started by the user \
             that owns the data directory.)",
            dir.display()
        )),
    }
}

fn refuse_wide(dir: &Path) -> Result<(), Failure> {
    match host::first_wide(dir).map_err(|error| failed(dir, &error))? {
        None => Ok(()),
        Some(path) => Err(wide(dir, &path)),
    }
}

fn wide(dir: &Path, path: &Path) -> Failure {
    let shown = path.display();
    let what = match (path == dir, path.is_dir()) {
        (true, _) => format!("data directory \"{shown}\" has invalid permissions"),
        (_, true) => format!("directory \"{shown}\" has invalid permissions"),
        _ => format!("file \"{shown}\" has group or world access"),
    };
    let mode = match path.is_dir() {
        true => "u=rwx (0700)",
        false => "u=rw (0600)",
    };
    format!(
        "{what} (Permissions should be {mode}. Find out who may have read or changed what is in \
         it, then: chmod -R go-rwx {})",
        dir.display()
    )
}

fn narrowed(dir: &Path, count: usize) -> Option<Narrowed> {
    (count > 0).then(|| {
        format!(
            "an earlier version made {} so that others could use {count} of its directories and \
             files; they are their owner's alone from now on",
            dir.display()
        )
    })
}
