//! Outer joins whose missing rows a condition above leaves out anyway.
//!
//! ```text
//! a left join b on a.i = b.i where b.x = 1     b.x is never NULL in what is left: an inner join
//! a full join b on a.i = b.i where a.x = 1     a's rows all there: a left join
//! ```
//! A row with NULLs in the place of one side fails a condition that is not true of NULL; so the join may as
//! well not make it. An inner join may come at any time and be found from both sides.

use crate::logical::{columns_of, Source, SourceKind};
use crate::plan::{Expr, ExprKind, How, JoinKind};
use functions::Coercion;

/// The joins that give the same rows where the conditions hold.
pub(crate) fn reduced(source: Source, conditions: &[Expr]) -> Source {
    match has_outer(&source) {
        true => reduce(source, &forced_by(conditions)),
        false => source,
    }
}

fn has_outer(source: &Source) -> bool {
    match &source.kind {
        SourceKind::Join {
            kind, left, right, ..
        } => {
            let outer = matches!(kind, JoinKind::Left | JoinKind::Right | JoinKind::Full);
            outer || has_outer(left) || has_outer(right)
        }
        _ => false,
    }
}

/// As [`reduced`], where these columns are not NULL.
fn reduce(source: Source, forced: &[usize]) -> Source {
    let Source { kind, start, width } = source;
    let SourceKind::Join {
        kind,
        left,
        right,
        on,
        lateral,
    } = kind
    else {
        return Source { kind, start, width };
    };
    let in_left = forced.iter().any(|place| left.covers(*place));
    let in_right = forced.iter().any(|place| right.covers(*place));
    let kind = match kind {
        JoinKind::Left if in_right => JoinKind::Inner,
        JoinKind::Right if in_left => JoinKind::Inner,
        JoinKind::Full => match (in_left, in_right) {
            (true, true) => JoinKind::Inner,
            (true, false) => JoinKind::Left,
            (false, true) => JoinKind::Right,
            (false, false) => JoinKind::Full,
        },
        kind => kind,
    };
    let of_on = forced_by(&on);
    let both = [forced, &of_on].concat();
    let (for_left, for_right): (&[usize], &[usize]) = match kind {
        JoinKind::Inner => (&both, &both),
        JoinKind::Left => (forced, &of_on),
        JoinKind::Right => (&of_on, forced),
        JoinKind::Full => (&[], &[]),
        JoinKind::Semi => (&both, &of_on),
        JoinKind::Anti => (forced, &of_on),
    };
    let left = Box::new(reduce(*left, for_left));
    let right = Box::new(reduce(*right, for_right));
    let kind = SourceKind::Join {
        kind,
        left,
        right,
        on,
        lateral,
    };
    Source { kind, start, width }
}

/// The columns that are not NULL where all of the conditions are true.
fn forced_by(conditions: &[Expr]) -> Vec<usize> {
    conditions.iter().flat_map(forced_by_truth).collect()
}

/// The columns that are not NULL where a condition is true.
fn forced_by_truth(condition: &Expr) -> Vec<usize> {
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().flat_map(forced_by_truth).collect(),
        ExprKind::Or(parts) => common(parts.iter().map(forced_by_truth)),
        ExprKind::IsTruth(of, Some(true), false) => forced_by_truth(of),
        ExprKind::IsTruth(of, Some(false), false) | ExprKind::IsTruth(of, None, true) => strict(of),
        // A row value is not NULL by a rule of its own.
        ExprKind::IsNull(of, false) if !matches!(of.kind, ExprKind::Record(..)) => strict(of),
        // NULL equals no element, and there may be none.
        ExprKind::AnyArray(value, _, function, _, false) if function.0.strict => strict(value),
        _ => strict(condition),
    }
}

/// The columns any of which being NULL makes the value NULL.
fn strict(expr: &Expr) -> Vec<usize> {
    match &expr.kind {
        ExprKind::Column(_) => columns_of(expr),
        ExprKind::Call(function, args, _) if function.0.strict => {
            args.iter().flat_map(strict).collect()
        }
        ExprKind::Coerce(of, How(Coercion::Binary, _)) | ExprKind::Not(of) => strict(of),
        ExprKind::Coerce(of, How(Coercion::Function(function), _)) if function.strict => strict(of),
        // Where only one part is NULL, the others decide.
        ExprKind::And(parts) | ExprKind::Or(parts) => common(parts.iter().map(strict)),
        _ => Vec::new(),
    }
}

/// What all lists have.
fn common(mut lists: impl Iterator<Item = Vec<usize>>) -> Vec<usize> {
    let Some(mut first) = lists.next() else {
        return Vec::new();
    };
    for list in lists {
        first.retain(|place| list.contains(place));
    }
    first
}
