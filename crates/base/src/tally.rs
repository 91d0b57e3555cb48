//! The figures of what a session has used, kept beside its interrupts ([`crate::usage`]).

use std::sync::atomic::AtomicU64;

/// What a session has used while somebody counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) found: AtomicU64,
    pub(crate) read: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
}
