//! The regular expressions of `like_regex`.

use base::error::Result;

use crate::regex::{Flags, Regex};

/// Compiles a pattern with the flags of a jsonpath, which say almost what those of a regular
/// expression do.
pub(super) fn compile(pattern: &str, flags: &str) -> Result<Regex> {
    let has = |flag: char| flags.contains(flag);
    let mut letters = Flags {
        fold: has('i'),
        ..Flags::default()
    };
    if has('q') {
        letters.set('q');
    } else {
        // Without `s` a point ends at a line's end; with `m` a line's ends are anchors.
        letters.stop_newline = !has('s');
        letters.anchor_newline = has('m');
    }
    Regex::new(pattern, letters)
}
