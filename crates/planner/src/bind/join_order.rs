//! In which order inner joins run, and how a join looks up rows instead of reading them all.
//!
//! There are no statistics. What decides is how well the conditions, with what is known by then,
//! lead to the rows of each item: by a whole unique key, by leading key columns, by a range, by
//! an equality that a hash table can serve, or not at all.
//!
//! ```sql
//! select … from stock, order_line
//! where ol_w_id = 1 and ol_o_id = 7 and s_w_id = 1 and s_i_id = ol_i_id
//! ```
//!
//! begins with `order_line`, whose key two constants begin, and then looks up the one row of
//! `stock` that each line names. Items that are equal in this stay in the order written.
//!
//! # What it leaves out
//! Outer and lateral joins stay where they are written; sizes of tables are not known.

use std::rc::Rc;

use base::Result;

use super::access::Reach;
use super::from::{looks_outside, names_columns, shifted, within, Source, SourceKind};
use super::Binder;
use crate::plan::{Expr, ExprKind, JoinKind, Plan};
use functions::resolve_operator;

/// How an item of FROM can be reached next; larger is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// All pairs.
    Cross,
    /// Its rows are read, then hashed by an equality.
    Hash,
    /// By keys, as far as the conditions lead.
    Keys(Reach),
}

/// Inner joins as a list of items and the conditions over all of them.
pub(super) struct Chain {
    pub(super) items: Vec<Source>,
    pub(super) conditions: Vec<Expr>,
}

/// Takes inner joins apart.
pub(super) fn take_apart(source: Source, chain: &mut Chain) {
    match source.kind {
        SourceKind::Join {
            kind: JoinKind::Inner,
            left,
            right,
            on,
            lateral: false,
        } => {
            take_apart(*left, chain);
            take_apart(*right, chain);
            chain.conditions.extend(on);
        }
        SourceKind::Scan { scan, guards, own } => {
            chain.conditions.extend(own);
            let own = Vec::new();
            let kind = SourceKind::Scan { scan, guards, own };
            chain.items.push(Source { kind, ..source });
        }
        kind => chain.items.push(Source { kind, ..source }),
    }
}

impl Binder<'_> {
    /// The places of the items in the order in which they are to be joined.
    pub(super) fn join_order(&self, chain: &Chain) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::new();
        while order.len() < chain.items.len() {
            let known: Vec<&Source> = order.iter().map(|place| &chain.items[*place]).collect();
            let step = |place: &usize| self.step(&chain.items[*place], &known, &chain.conditions);
            let rest = (0..chain.items.len()).filter(|place| !order.contains(place));
            // Of equals `max_by_key` takes the last, so they are seen from the last.
            let next = rest.rev().max_by_key(step).expect("an item is left");
            order.push(next);
        }
        order
    }

    /// How an item can be reached when the rows of others are known.
    fn step(&self, item: &Source, known: &[&Source], conditions: &[Expr]) -> Step {
        let is_known = |expr: &Expr| {
            !expr.any(&|part| match part.kind {
                ExprKind::Column(place) => !known.iter().any(|other| other.holds(place)),
                _ => false,
            })
        };
        let usable: Vec<Expr> = conditions
            .iter()
            .filter(|condition| within_or(condition, item, known))
            .map(|condition| seen_from(condition, item))
            .collect();
        let hashed = conditions.iter().any(|condition| {
            let Some((a, b)) = sides(condition) else {
                return false;
            };
            let own = |expr: &Expr| within(expr, item.start, item.width) && names_columns(expr);
            let other = |expr: &Expr| names_columns(expr) && is_known(expr);
            (own(a) && other(b)) || (own(b) && other(a))
        });
        match &item.kind {
            SourceKind::Scan { scan, guards, .. } => {
                let guards: Vec<_> = guards.iter().flatten().collect();
                let guards: Vec<_> = guards.iter().map(|guard| seen_from(guard, item)).collect();
                match self.reach_by(scan, &guards, &usable) {
                    Reach::All if hashed => Step::Hash,
                    Reach::All => Step::Cross,
                    reach => Step::Keys(reach),
                }
            }
            _ if hashed => Step::Hash,
            _ => Step::Cross,
        }
    }

    /// The plan that looks up the rows of the right input that a left row leads to, as if the
    /// left row were an enclosing query's; none where no key helps.
    pub(super) fn lookup(
        &mut self,
        left: &Source,
        right: &Source,
        right_only: &[Expr],
        pairs: &[Expr],
    ) -> Result<Option<Rc<Plan>>> {
        let SourceKind::Scan { scan, guards, own } = &right.kind else {
            return Ok(None);
        };
        let guards: Vec<_> = guards.iter().flatten().cloned().collect();
        let mut all = right_only.iter().chain(own).chain(pairs).chain(&guards);
        if all.any(looks_outside) {
            return Ok(None);
        }
        let guards = shifted(guards, right.start);
        let own = right_only.iter().chain(own).cloned().collect();
        let own = shifted(own, right.start);
        let alone = self.choose_access((**scan).clone(), guards.clone(), own.clone())?;
        let mut all = own;
        for pair in pairs.iter().filter(|pair| sides(pair).is_some()) {
            let mut pair = pair.clone();
            outside(&mut pair, left, right.start);
            all.push(pair);
        }
        let by_row = self.choose_access((**scan).clone(), guards, all)?;
        let better = by_row.access.equal.len() > alone.access.equal.len()
            && self.reach_of(&alone) < Reach::Row;
        Ok(better.then(|| Rc::new(Plan::Scan(by_row))))
    }
}

/// Whether a condition names columns of the item, and else only of those known.
fn within_or(condition: &Expr, item: &Source, known: &[&Source]) -> bool {
    let mut own = false;
    let mut strange = false;
    condition.visit(&mut |part| {
        if let ExprKind::Column(place) = part.kind {
            if item.holds(place) {
                own = true;
            } else {
                strange |= !known.iter().any(|other| other.holds(place));
            }
        }
    });
    own && !strange
}

/// The condition as the item's scan would see it: other items' columns are fixed.
fn seen_from(condition: &Expr, item: &Source) -> Expr {
    let mut condition = condition.clone();
    fn walk(expr: &mut Expr, item: &Source) {
        if let ExprKind::Column(place) = expr.kind {
            expr.kind = match item.holds(place) {
                true => ExprKind::Column(place - item.start),
                false => ExprKind::Outer(1, place),
            };
        }
        for part in expr.parts_mut() {
            walk(part, item);
        }
    }
    walk(&mut condition, item);
    condition
}

/// Makes columns of the left input those of the enclosing row, and others local.
fn outside(expr: &mut Expr, left: &Source, right_start: usize) {
    if let ExprKind::Column(place) = expr.kind {
        expr.kind = match left.holds(place) {
            true => ExprKind::Outer(1, place - left.start),
            false => ExprKind::Column(place - right_start),
        };
    }
    for part in expr.parts_mut() {
        outside(part, left, right_start);
    }
}

/// Both sides of an equality.
fn sides(condition: &Expr) -> Option<(&Expr, &Expr)> {
    let ExprKind::Call(function, args, _) = &condition.kind else {
        return None;
    };
    let [a, b] = args.as_slice() else {
        return None;
    };
    let equality = resolve_operator("=", a.ty, b.ty).ok()?;
    (equality.operator.function.oid == function.0.oid).then_some((a, b))
}

/// Moves items side by side in a new order. Returns the place that each old column got.
pub(super) fn rearrange(chain: &mut Chain, order: &[usize]) -> Vec<usize> {
    let first = chain.items.iter().map(|item| item.start).min().unwrap_or(0);
    let width: usize = chain.items.iter().map(|item| item.width).sum();
    let mut places = vec![0; first + width];
    let mut next = first;
    for place in order {
        let item = &chain.items[*place];
        for at in 0..item.width {
            places[item.start + at] = next + at;
        }
        next += item.width;
    }
    let mut items: Vec<Option<Source>> = chain.items.drain(..).map(Some).collect();
    for place in order {
        let mut item = items[*place].take().expect("each place comes once");
        item.move_columns(&places);
        chain.items.push(item);
    }
    for condition in &mut chain.conditions {
        move_columns(condition, &places);
    }
    places.split_off(first)
}

/// Gives the columns that an expression names their new places.
pub(super) fn move_columns(expr: &mut Expr, places: &[usize]) {
    if let ExprKind::Column(place) = &mut expr.kind {
        *place = places[*place];
    }
    for part in expr.parts_mut() {
        move_columns(part, places);
    }
}
