//! Lower case as `lower` of SQL gives it: character by character, where a character's lower case is
//! one character.
//!
//! Keys of `citext` are folded ([`crate::key::KeyKind::Folded`]), so what is said here is a format:
//! all replicas of a group must fold alike, and what was folded once must be found again. A test
//! holds a checksum of the whole mapping.

use std::cmp::Ordering;

/// The lower case of a character.
#[inline]
pub fn lower(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut mapped = c.to_lowercase();
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// The text in lower case.
pub fn folded(text: &str) -> String {
    text.chars().map(lower).collect()
}

/// How two texts are ordered by the bytes of their lower case.
pub fn compare(a: &str, b: &str) -> Ordering {
    // UTF-8's bytes are in the order of characters.
    a.chars().map(lower).cmp(b.chars().map(lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_is_the_one_that_keys_were_made_with() {
        let mut sum = 0_u64;
        for c in '\0'..=char::MAX {
            let pair = u64::from(u32::from(c)) << 32 | u64::from(u32::from(lower(c)));
            sum = sum.rotate_left(5).wrapping_mul(0x517c_c1b7_2722_0a95) ^ pair;
        }
        assert_eq!(sum, 0x2991_9135_75ff_3219);
    }

    #[test]
    fn texts_are_ordered_as_their_lower_case() {
        let all = ["", "A", "a", "aB", "Ab", "b", "É", "é", "İ", "ß", "Z", "_"];
        for a in all {
            for b in all {
                assert_eq!(compare(a, b), folded(a).cmp(&folded(b)), "{a} {b}");
            }
        }
        assert_eq!(folded("ÀÉİ ẞ"), "àéİ ß");
    }
}
