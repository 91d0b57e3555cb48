//! Columns that are equal in every row, and what follows for one of them from the others.
//!
//! ```text
//! c.nation = s.nation and s.nation = n.id           so c.nation = n.id: c may be joined to n first
//! o.id = l.order_id and o.id = 7                    so l.order_id = 7: both are found by a key
//! ```
//! A *class* is what equalities hold together (PostgreSQL's equivalence classes). Every pair of its
//! columns has its equality, of which a join tests one: whatever is joined already is equal.
//!
//! # What it leaves out
//! Expressions that are no columns, columns of different types, and columns that an outer join may have
//! replaced by NULL.

use crate::logical::{looks_outside, names_columns};
use crate::paths::estimate::sides;
use crate::plan::{Expr, ExprKind};

/// Classes of more columns stay as they are written, since pairs are many.
const COLUMNS_MAX: usize = 12;

/// A condition.
pub(super) struct Classed {
    pub(super) expr: Expr,
    /// The class that it belongs to as an equality of two columns of it.
    pub(super) class: Option<usize>,
    /// Whether both columns equal a value that is known.
    pub(super) settled: bool,
}

impl Classed {
    fn plain(expr: Expr) -> Classed {
        Classed {
            expr,
            class: None,
            settled: false,
        }
    }
}

/// Columns that are equal.
struct Class {
    columns: Vec<Expr>,
    /// One of the equalities that say so.
    equality: Expr,
    /// Equalities of one of them with a value that is the same for all rows.
    fixed: Vec<(usize, Expr)>,
}

/// The conditions that all must hold, with what follows for columns of which `whole` says that no outer
/// join has replaced them.
pub(super) fn completed(conditions: Vec<Expr>, whole: &dyn Fn(usize) -> bool) -> Vec<Classed> {
    let mut classes: Vec<Class> = Vec::new();
    for condition in &conditions {
        if let Some((a, b)) = pair_of(condition, whole) {
            unite(&mut classes, a, b, condition);
        }
    }
    classes.retain(|class| class.columns.len() <= COLUMNS_MAX);
    if classes.is_empty() {
        return conditions.into_iter().map(Classed::plain).collect();
    }
    for condition in &conditions {
        if let Some((place, _)) = fixed_of(condition) {
            let mut classes = classes.iter_mut();
            if let Some(class) = classes.find(|class| class.has(place)) {
                class.fixed.push((place, condition.clone()));
            }
        }
    }
    let mut all: Vec<Classed> = Vec::new();
    for condition in conditions {
        let class = pair_of(&condition, whole)
            .and_then(|(a, _)| place_of(a))
            .and_then(|place| classes.iter().position(|class| class.has(place)));
        all.push(Classed {
            settled: class.is_some_and(|class| !classes[class].fixed.is_empty()),
            class,
            expr: condition,
        });
    }
    for (number, class) in classes.iter().enumerate() {
        class.add_pairs(number, &mut all);
        class.add_fixed(&mut all);
    }
    all
}

impl Class {
    fn has(&self, place: usize) -> bool {
        self.columns.iter().any(|one| place_of(one) == Some(place))
    }

    /// The equalities of pairs that nobody has written.
    fn add_pairs(&self, number: usize, all: &mut Vec<Classed>) {
        for (at, a) in self.columns.iter().enumerate() {
            for b in &self.columns[at + 1..] {
                let (place_a, place_b) = (place_of(a), place_of(b));
                let is_pair = |known: &Classed| {
                    known.class == Some(number)
                        && sides(&known.expr).is_some_and(|(left, right)| {
                            let pair = (place_of(left), place_of(right));
                            pair == (place_a, place_b) || pair == (place_b, place_a)
                        })
                };
                if all.iter().any(is_pair) {
                    continue;
                }
                let mut equality = self.equality.clone();
                if let ExprKind::Call(_, args, _) = &mut equality.kind {
                    *args = vec![a.clone(), b.clone()];
                }
                all.push(Classed {
                    expr: equality,
                    class: Some(number),
                    settled: !self.fixed.is_empty(),
                });
            }
        }
    }

    /// What the others equal as well.
    fn add_fixed(&self, all: &mut Vec<Classed>) {
        let Some((_, first)) = self.fixed.first() else {
            return;
        };
        for column in &self.columns {
            let known = self
                .fixed
                .iter()
                .any(|(place, _)| place_of(column) == Some(*place));
            if known {
                continue;
            }
            all.push(Classed::plain(of_column(first, column)));
        }
    }
}

/// What an equality of a column with a value says if another column stands in its place.
fn of_column(equality: &Expr, column: &Expr) -> Expr {
    let mut other = equality.clone();
    if let ExprKind::Call(_, args, _) = &mut other.kind {
        if let Some(named) = args.iter_mut().find(|arg| names_columns(arg)) {
            *named = column.clone();
        }
    }
    other
}

/// What an outer or semi-join's equality says of its own column, if the other one equals a value that
/// is known: pairs of other rows than those are not looked for.
pub(super) fn carried(
    equality: &Expr,
    own: &dyn Fn(usize) -> bool,
    conditions: &[Classed],
) -> Option<Expr> {
    let (a, b) = pair_of(equality, &|_| true)?;
    let (column, other) = match (own(place_of(a)?), own(place_of(b)?)) {
        (true, false) => (a, place_of(b)?),
        (false, true) => (b, place_of(a)?),
        _ => return None,
    };
    let fixed = conditions.iter().find(|known| {
        let fixed = fixed_of(&known.expr);
        fixed.is_some_and(|(place, value)| place == other && value.ty == column.ty)
    });
    fixed.map(|known| of_column(&known.expr, column))
}

/// The column that an expression is.
fn place_of(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(place) => Some(place),
        _ => None,
    }
}

/// Both columns, if a condition is an equality of two of one type.
fn pair_of<'e>(condition: &'e Expr, whole: &dyn Fn(usize) -> bool) -> Option<(&'e Expr, &'e Expr)> {
    let (a, b) = sides(condition)?;
    let (place_a, place_b) = (place_of(a)?, place_of(b)?);
    let fits = a.ty == b.ty && a.ty.has_equality() && place_a != place_b;
    (fits && whole(place_a) && whole(place_b)).then_some((a, b))
}

/// The column that equals a value which is the same for all rows, and that value, of its type.
pub(super) fn fixed_of(condition: &Expr) -> Option<(usize, &Expr)> {
    let (a, b) = sides(condition)?;
    let (column, value) = match (place_of(a), place_of(b)) {
        (Some(place), None) => (place, b),
        (None, Some(place)) => (place, a),
        _ => return None,
    };
    let differs = |part: &Expr| {
        matches!(part.kind, ExprKind::Column(_) | ExprKind::Sub(..)) || part.is_volatile_call()
    };
    // Nothing is looked up in a table whose own conditions look at enclosing queries.
    let fits = a.ty == b.ty && !looks_outside(value);
    (fits && !value.any(&differs)).then_some((column, value))
}

fn unite(classes: &mut Vec<Class>, a: &Expr, b: &Expr, equality: &Expr) {
    let of = |expr: &Expr| {
        let place = place_of(expr);
        let mut classes = classes.iter();
        classes.position(|class| place.is_some_and(|place| class.has(place)))
    };
    match (of(a), of(b)) {
        (None, None) => classes.push(Class {
            columns: vec![a.clone(), b.clone()],
            equality: equality.clone(),
            fixed: Vec::new(),
        }),
        (Some(class), None) => classes[class].columns.push(b.clone()),
        (None, Some(class)) => classes[class].columns.push(a.clone()),
        (Some(one), Some(other)) if one != other => {
            let taken = classes.swap_remove(one.max(other));
            classes[one.min(other)].columns.extend(taken.columns);
        }
        _ => {}
    }
}
