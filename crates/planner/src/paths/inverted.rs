//! Which conditions an inverted index can be asked for.

use super::access::{column_of, is_fixed};
use super::implies::fix_constants;
use crate::plan::{compile, Asked, ComputedAccess, Expr, ExprKind, InvertedAccess, Scan, Term};
use catalog::inverted::Items;
use functions::{resolve_operator, Function};

/// The key's side of an operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
    Either,
}

/// What the operators of each class ask, by the oids of their functions.
fn asked_by(items: Items, function: &Function) -> Option<(Asked, Side)> {
    use Asked::{Contains, Exists, ExistsAll, ExistsAny, Like, Meets, Overlaps};
    use Asked::{Similar, SimilarWord, SimilarWords};
    use Side::{Either, Left, Right};
    Some(match (items, function.oid) {
        (Items::Elements(_), 744) => (Contains, Either),
        (Items::Elements(_), 2_747) => (Overlaps, Either),
        (Items::Elements(_), 2_748) => (Contains, Left),
        (Items::Elements(_), 2_749) => (Contains, Right),
        (Items::Jsonb | Items::JsonbPaths, 4_046) => (Contains, Left),
        (Items::Jsonb | Items::JsonbPaths, 4_050) => (Contains, Right),
        (Items::Jsonb, 4_047) => (Exists, Left),
        (Items::Jsonb, 4_048) => (ExistsAny, Left),
        (Items::Jsonb, 4_049) => (ExistsAll, Left),
        (Items::Pairs, 9_813) => (Contains, Left),
        (Items::Pairs, 9_814) => (Contains, Right),
        (Items::Pairs, 9_804) => (Exists, Left),
        (Items::Pairs, 9_805) => (ExistsAny, Left),
        (Items::Pairs, 9_806) => (ExistsAll, Left),
        (Items::Lexemes, 3_634) => (Meets, Left),
        (Items::Lexemes, 3_635) => (Meets, Right),
        (Items::Trigrams, 67) => (Contains, Either),
        (Items::Trigrams, 850 | 1_633) => (Like, Left),
        (Items::Trigrams, 9_404) => (Similar, Either),
        (Items::Trigrams, 9_406) => (SimilarWord, Right),
        (Items::Trigrams, 9_407) => (SimilarWord, Left),
        (Items::Trigrams, 9_412) => (SimilarWords, Right),
        (Items::Trigrams, 9_413) => (SimilarWords, Left),
        _ => return None,
    })
}

/// What a condition asks of a key, if that is all that it looks at.
fn term(key: usize, own: &Expr, items: Items, condition: &Expr) -> Option<Term> {
    let ExprKind::Call(function, args, _) = &condition.kind else {
        return None;
    };
    let [left, right] = args.as_slice() else {
        return None;
    };
    let is_key = |expr: &Expr| match (column_of(own), column_of(expr)) {
        (Some(own), Some(column)) => own == column,
        (None, None) => own.bare().same(expr.bare()),
        _ => false,
    };
    let (value, side) = match (is_key(left), is_key(right)) {
        (true, false) => (right, Side::Left),
        (false, true) => (left, Side::Right),
        _ => return None,
    };
    if !is_fixed(value) {
        return None;
    }
    let (asked, wanted) = match items {
        Items::Whole(ty) => {
            // Of the very type of the key, whose items are values of it.
            let found = resolve_operator("=", left.ty, right.ty).ok()?;
            let is_equality = found.operator.function.oid == function.0.oid;
            (is_equality && value.ty == ty).then_some((Asked::Contains, Side::Either))?
        }
        items => asked_by(items, function.0)?,
    };
    if wanted != Side::Either && wanted != side {
        return None;
    }
    if column_of(own).is_none() {
        // Another literal in it would be another expression.
        fix_constants(if side == Side::Left { left } else { right });
    }
    Some(Term {
        key,
        asked,
        value: compile(value),
    })
}

/// The inverted index that is asked most, and what it is asked.
pub(super) fn access_of(scan: &Scan, conditions: &[Expr]) -> Option<InvertedAccess> {
    let computed = scan.computed.iter().flat_map(|computed| computed.iter());
    let ways = computed.filter_map(|access| {
        let terms = terms_of(scan, access, conditions);
        (!terms.is_empty()).then_some(InvertedAccess {
            index: access.index,
            terms,
        })
    });
    ways.max_by_key(|way| way.terms.len())
}

fn terms_of(scan: &Scan, access: &ComputedAccess, conditions: &[Expr]) -> Vec<Term> {
    let Some(index) = scan.table.indexes.get(access.index) else {
        return Vec::new();
    };
    if !index.is_inverted() {
        return Vec::new();
    }
    let mut terms = Vec::new();
    for (place, own) in access.keys.iter().enumerate() {
        let Some(items) = index.items(&scan.table, place) else {
            continue;
        };
        let own_terms = conditions.iter();
        terms.extend(own_terms.filter_map(|condition| term(place, own, items, condition)));
    }
    terms
}
