//! What a fixed beginning says of the order of texts: `a LIKE 'abc%'` lies from `'abc'` to `'abd'`.
//!
//! Texts are ordered by their bytes, so all that begin with `abc` stand together, whatever operator
//! class the index has. The condition itself is still tested.
//!
//! # What it leaves out
//! Patterns that are parameters: the plan is made before their values are known. Regular expressions
//! and ILIKE.

use crate::plan::{Expr, ExprKind};
use functions::pattern::like_prefix;
use types::{Datum, TypeId};

/// `text ~~ text` and `character ~~ text`.
const LIKE: [u32; 2] = [850, 1_631];
/// `starts_with(text, text)`, which is `^@` too.
const STARTS_WITH: u32 = 3_696;

/// Operators and values that something lies between.
type Bounds = Vec<(&'static str, Expr)>;

/// What a condition tests, the pattern that it must match, and the bounds that follow.
pub(super) fn bounds_of(condition: &Expr) -> Option<(&Expr, &Expr, Bounds)> {
    let ExprKind::Call(function, args, _) = &condition.kind else {
        return None;
    };
    let [subject, pattern] = args.as_slice() else {
        return None;
    };
    let ExprKind::Const(Datum::Text(text), _) = &pattern.bare().kind else {
        return None;
    };
    let (prefix, whole) = match function.0.oid {
        STARTS_WITH => (text.to_string(), false),
        oid if LIKE.contains(&oid) => like_prefix(text),
        _ => return None,
    };
    let ty = match subject.bare().ty {
        TypeId::BPCHAR => TypeId::BPCHAR,
        TypeId::TEXT | TypeId::VARCHAR => TypeId::TEXT,
        _ => return None,
    };
    let constant = |text: String| Expr::constant(Datum::text(text), ty, -1);
    if whole {
        return Some((subject, pattern, vec![("=", constant(prefix))]));
    }
    let above = after_all_with(&prefix)?;
    // `character` is compared without the spaces at its end.
    if ty == TypeId::BPCHAR && above.ends_with(' ') {
        return None;
    }
    let bounds = vec![(">=", constant(prefix)), ("<", constant(above))];
    Some((subject, pattern, bounds))
}

/// The least text above all that begin so; none if there is none.
pub(super) fn after_all_with(prefix: &str) -> Option<String> {
    let mut above = prefix.to_owned();
    while let Some(last) = above.pop() {
        let next = match last {
            // What lies between is no character.
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            above.push(next);
            return Some(above);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_text_above_a_prefix() {
        assert_eq!(after_all_with("abc").as_deref(), Some("abd"));
        assert_eq!(after_all_with("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(after_all_with("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(after_all_with("\u{10ffff}"), None);
        assert_eq!(after_all_with(""), None);
    }
}
