//! Whose files these are.

use base::{Error, ErrorClass, GroupId, Result, SqlState};

/// Whose files these are. Files of another cluster or group are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The cluster, drawn at random when it was made.
    pub cluster: u64,
    /// The group.
    pub group: GroupId,
}

/// Compares what a file says of itself with what is expected.
///
/// # Errors
/// 55000, fatal for the node.
pub(crate) fn check(
    what: &str,
    version: u32,
    expected_version: u32,
    found: Owner,
    expected: Owner,
) -> Result<()> {
    let refuse = |detail: String| {
        Err(Error::of_class(
            ErrorClass::Node,
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("the {what} files are incompatible with this node"),
        )
        .with_detail(detail))
    };
    if version != expected_version {
        return refuse(format!(
            "They have format version {version}, this program has {expected_version}."
        ));
    }
    if found != expected {
        return refuse(format!(
            "They belong to cluster {:016x}, group {}; expected were cluster {:016x}, group {}.",
            found.cluster, found.group, expected.cluster, expected.group
        ));
    }
    Ok(())
}

/// Turns a failure to get space into 53100, which the node survives.
pub(crate) fn space_error(what: &str, cause: std::io::Error) -> Error {
    let words = match cause.kind() {
        std::io::ErrorKind::StorageFull => Some("No space left on device"),
        std::io::ErrorKind::QuotaExceeded => Some("Disk quota exceeded"),
        _ => None,
    };
    if let Some(words) = words {
        return Error::new(
            SqlState::DISK_FULL,
            format!("could not extend {what}: {words}"),
        )
        .with_hint("Check free disk space.");
    }
    Error::io(format_args!("extend {what}"), cause)
}
