//! What a query asks for, before anything is known of how it is found: items of FROM, and the
//! conditions that their rows meet.
//!
//! ```text
//! from a join b on a.i = b.i left join c on c.j = b.j where a.k = 1
//!
//! Join Left  on c.j = b.j
//! ├─ Join Inner  on a.i = b.i
//! │  ├─ Scan a   places 0..3
//! │  └─ Scan b   places 3..5
//! └─ Scan c      places 5..9
//! ```
//!
//! All columns of a query's FROM stand side by side in one row, each at its *place*; expressions
//! name columns by it. [`crate::paths`] makes plans of it, in which columns may stand elsewhere.

use std::ops::Range;

use base::{Error, Result};
use catalog::system::facts;
use functions::Coercion;
use types::TypeId;

use crate::plan::{Expr, ExprKind, Func, How, JoinKind, Plan, Scan};

/// The places of what looks at none.
pub(crate) const NOWHERE: Range<usize> = Range {
    start: usize::MAX,
    end: 0,
};

/// A bound item of FROM.
pub struct Source {
    pub(crate) kind: SourceKind,
    /// Where its columns begin in the row.
    pub(crate) start: usize,
    /// How many it has.
    pub(crate) width: usize,
}

pub(crate) enum SourceKind {
    /// A table.
    Scan {
        scan: Box<Scan>,
        /// What its rows must meet before anything else looks at them ([`super::policy`]); none as
        /// long as that is not settled.
        guards: Option<Vec<Expr>>,
        /// What its rows must meet by themselves.
        own: Vec<Expr>,
    },
    /// A query of FROM and WHERE alone, which may become a part of the query around it.
    Derived(Box<Derived>),
    /// Whatever else has rows.
    Other {
        plan: Box<Plan>,
        /// Whether it looks at rows of enclosing queries.
        escapes: bool,
        /// The places that it looks at as a lateral item lie between these.
        reach: Range<usize>,
        /// By how much all places of its query have moved since it was planned, to the right.
        moved: isize,
    },
    Join {
        kind: JoinKind,
        left: Box<Source>,
        right: Box<Source>,
        on: Vec<Expr>,
        lateral: bool,
    },
}

/// A query of FROM and WHERE alone, or without either, that is an item of FROM. It holds nothing
/// volatile.
pub(crate) struct Derived {
    /// Its FROM; places in it are its own, from 0 on.
    pub(crate) source: Source,
    /// Its WHERE, over these places.
    pub(crate) conditions: Vec<Expr>,
    /// Its columns, over these places.
    pub(crate) exprs: Vec<Expr>,
    /// The first place that it looks at as a lateral item, which the items beside it are to it as an
    /// enclosing query; only its conditions and its columns look at them.
    pub(crate) reach: usize,
}

impl Derived {
    /// Gives what it looks at as a lateral item its new places.
    fn move_beside(&mut self, places: &[usize]) {
        fn walk(expr: &mut Expr, places: &[usize]) {
            if let ExprKind::Outer(1, place) = &mut expr.kind {
                *place = places[*place];
            }
            for part in expr.parts_mut() {
                walk(part, places);
            }
        }
        let exprs = self.conditions.iter_mut().chain(&mut self.exprs);
        exprs.for_each(|expr| walk(expr, places));
        if let Some(place) = places.get(self.reach) {
            self.reach = *place;
        }
    }

    /// The first place behind all that it uses.
    pub(crate) fn end(&self) -> usize {
        let exprs = self.conditions.iter().chain(&self.exprs);
        exprs.map(end_of).fold(self.source.end(), usize::max)
    }
}

/// The first place behind the columns that an expression names.
pub(crate) fn end_of(expr: &Expr) -> usize {
    columns_of(expr).last().map_or(0, |last| last + 1)
}

impl Source {
    /// One row without columns, at a place.
    pub(crate) fn one_row(start: usize) -> Source {
        Source::of_plan(Plan::Values(vec![Vec::new()]), start, 0)
    }

    /// The rows of a plan, which looks at none around it, at a place.
    pub(crate) fn of_plan(plan: Plan, start: usize, width: usize) -> Source {
        Source {
            kind: SourceKind::Other {
                plan: Box::new(plan),
                escapes: false,
                reach: NOWHERE,
                moved: 0,
            },
            start,
            width,
        }
    }

    /// Whether it is [`Source::one_row`].
    pub(crate) fn is_one_row(&self) -> bool {
        match &self.kind {
            SourceKind::Other { plan, .. } if self.width == 0 => match &**plan {
                Plan::Values(rows) => matches!(rows.as_slice(), [row] if row.is_empty()),
                _ => false,
            },
            _ => false,
        }
    }

    /// The first place behind all that it uses.
    pub(crate) fn end(&self) -> usize {
        let own = self.start + self.width;
        match &self.kind {
            SourceKind::Join {
                left, right, on, ..
            } => {
                let sides = left.end().max(right.end());
                on.iter().map(end_of).fold(own.max(sides), usize::max)
            }
            _ => own,
        }
    }

    /// Whether one of its items has the column at a place.
    pub(crate) fn covers(&self, place: usize) -> bool {
        match &self.kind {
            SourceKind::Join { left, right, .. } => left.covers(place) || right.covers(place),
            _ => (self.start..self.start + self.width).contains(&place),
        }
    }

    /// The places of its items' columns.
    pub(crate) fn ranges(&self) -> Vec<Range<usize>> {
        fn walk(source: &Source, ranges: &mut Vec<Range<usize>>) {
            match &source.kind {
                SourceKind::Join { left, right, .. } => {
                    walk(left, ranges);
                    walk(right, ranges);
                }
                _ => ranges.push(source.start..source.start + source.width),
            }
        }
        let mut ranges = Vec::new();
        walk(self, &mut ranges);
        ranges
    }

    /// Rows of a table must meet these too, the guards first.
    pub(crate) fn filter(&mut self, more: Vec<Expr>, conditions: Vec<Expr>) {
        if let SourceKind::Scan { guards, own, .. } = &mut self.kind {
            guards.get_or_insert_default().extend(more);
            own.extend(conditions);
        }
    }

    /// What the rows of the table whose columns begin there must meet by themselves.
    pub(crate) fn conditions_of(&self, place: usize) -> Vec<Expr> {
        match &self.kind {
            SourceKind::Scan { guards, own, .. } if self.start == place => {
                let guards = guards.iter().flatten().cloned().map(surely);
                guards.chain(own.iter().cloned()).collect()
            }
            SourceKind::Join { left, right, .. } => {
                let mut all = left.conditions_of(place);
                all.extend(right.conditions_of(place));
                all
            }
            _ => Vec::new(),
        }
    }

    /// Where the items begin in whose place an outer join may have NULLs.
    pub(crate) fn add_nullable(&self, nullable: bool, starts: &mut Vec<usize>) {
        match &self.kind {
            SourceKind::Join {
                kind, left, right, ..
            } => {
                let both = *kind == JoinKind::Full;
                let of_left = nullable || both || *kind == JoinKind::Right;
                let of_right = nullable || both || *kind == JoinKind::Left;
                left.add_nullable(of_left, starts);
                right.add_nullable(of_right, starts);
            }
            _ if nullable => starts.push(self.start),
            _ => {}
        }
    }

    /// The same, which looks at rows of enclosing queries or does not.
    pub(crate) fn escaping(mut self, outside: bool) -> Source {
        if let SourceKind::Other { escapes, .. } = &mut self.kind {
            *escapes = outside;
        }
        self
    }

    /// The first place that a lateral item in it looks at.
    fn reach(&self) -> usize {
        match &self.kind {
            SourceKind::Scan { .. } => usize::MAX,
            SourceKind::Derived(derived) => derived.reach,
            SourceKind::Other { reach, .. } => reach.start,
            SourceKind::Join { left, right, .. } => left.reach().min(right.reach()),
        }
    }

    /// Between which places those lie that it looks at as the lateral item of a join; none where it looks
    /// at nothing there, or that is not known.
    pub(crate) fn looked_at(&self) -> Option<Range<usize>> {
        let range = match &self.kind {
            SourceKind::Other { reach, moved, .. } if *reach != NOWHERE => {
                let now = |place: usize| place.saturating_add_signed(*moved);
                now(reach.start)..now(reach.end)
            }
            SourceKind::Derived(derived) => {
                let mut range = NOWHERE;
                for expr in derived.conditions.iter().chain(&derived.exprs) {
                    expr.visit(&mut |part| {
                        if let ExprKind::Outer(1, place) = part.kind {
                            range = range.start.min(place)..range.end.max(place + 1);
                        }
                    });
                }
                range
            }
            _ => NOWHERE,
        };
        (!range.is_empty()).then_some(range)
    }

    /// Whether [`lateral_of`] has marked it.
    pub(crate) fn is_lateral(&self) -> bool {
        matches!(&self.kind, SourceKind::Join { lateral: true, left, .. } if left.width == 0)
    }

    /// Moves it to where its columns have gone. Those that a lateral item looks at which is planned
    /// stay beside one another, as they were.
    pub(crate) fn move_columns(&mut self, places: &[usize]) {
        let before = self.start;
        if self.width > 0 {
            self.start = places[self.start];
        }
        let conditions: Vec<&mut Expr> = match &mut self.kind {
            SourceKind::Scan { guards, own, .. } => {
                guards.iter_mut().flatten().chain(own).collect()
            }
            SourceKind::Other { moved, .. } => {
                *moved += self.start as isize - before as isize;
                return;
            }
            SourceKind::Derived(_) => return,
            SourceKind::Join {
                left,
                right,
                on,
                lateral,
                ..
            } => {
                left.move_columns(places);
                right.move_columns(places);
                if let (SourceKind::Derived(derived), true) = (&mut right.kind, *lateral) {
                    derived.move_beside(places);
                }
                on.iter_mut().collect()
            }
        };
        for condition in conditions {
            move_columns(condition, places);
        }
    }
}

/// The conditions that must all be met.
pub(crate) fn conjuncts(condition: Option<Expr>) -> Vec<Expr> {
    match condition {
        None => Vec::new(),
        Some(Expr {
            kind: ExprKind::And(parts),
            ..
        }) => parts
            .into_iter()
            .flat_map(|part| conjuncts(Some(part)))
            .collect(),
        Some(other) => vec![other],
    }
}

/// All of the conditions as one.
pub(crate) fn all_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(truth(ExprKind::And(conditions), -1)),
    }
}

/// Whether it looks at rows of enclosing queries.
pub(crate) fn looks_outside(expr: &Expr) -> bool {
    expr.any(&|part| match &part.kind {
        ExprKind::Outer(..) => true,
        // What it sees of the row around it are parts of the expression.
        ExprKind::Sub(query, ..) => query.deep,
        _ => false,
    })
}

pub(crate) fn names_columns(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part.kind, ExprKind::Column(_)))
}

/// Marks a source as looking at those on its left, at places in this range.
pub(crate) fn lateral_of(mut source: Source, seen: Range<usize>) -> Source {
    let (start, width) = (source.start, source.width);
    match &mut source.kind {
        SourceKind::Other { reach, .. } => *reach = seen,
        SourceKind::Derived(derived) => derived.reach = seen.start,
        SourceKind::Scan { .. } | SourceKind::Join { .. } => {}
    }
    let nothing = Source::one_row(start);
    Source {
        kind: SourceKind::Join {
            kind: JoinKind::Inner,
            left: Box::new(nothing),
            right: Box::new(source),
            on: Vec::new(),
            lateral: true,
        },
        start,
        width,
    }
}

/// Two sources joined, the right one behind the left one's columns.
///
/// ```text
/// a join (b join lateral l(a, b) on p) on q      (a join b) join lateral l(a, b) on p, where q
/// ```
/// What stands beside a lateral item must be joined before it.
///
/// # Errors
/// 0A000 where that is on the side of an outer join that may be missing.
pub(crate) fn joined(kind: JoinKind, left: Source, right: Source, on: Vec<Expr>) -> Result<Source> {
    let of = |kind, left: Source, right: Source, on, lateral| Source {
        start: left.start,
        width: left.width + right.width,
        kind: SourceKind::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            on,
            lateral,
        },
    };
    let (start, width) = (right.start, right.width);
    let beyond = right.reach() < start;
    match right.kind {
        // The marker that `lateral_of` left is taken off: this join is the lateral one.
        SourceKind::Join {
            left: nothing,
            right,
            lateral: true,
            ..
        } if nothing.width == 0 => Ok(of(kind, left, *right, on, true)),
        SourceKind::Join {
            kind: inner,
            left: first,
            right: second,
            on: inner_on,
            lateral,
        } if beyond => {
            if kind != JoinKind::Inner || matches!(inner, JoinKind::Right | JoinKind::Full) {
                let what = "LATERAL inside of a joined item that looks out of an outer join";
                return Err(Error::unsupported(what));
            }
            let first = joined(JoinKind::Inner, left, *first, Vec::new())?;
            let both = match lateral {
                true => of(inner, first, *second, inner_on, true),
                false => joined(inner, first, *second, inner_on)?,
            };
            let end = both.start + both.width;
            let nothing = Source::one_row(end);
            // The condition is about all of them.
            Ok(match on.is_empty() {
                true => both,
                false => of(JoinKind::Inner, both, nothing, on, false),
            })
        }
        other => {
            let right = Source {
                kind: other,
                start,
                width,
            };
            Ok(of(kind, left, right, on, false))
        }
    }
}

/// All pairs of two sources' rows.
pub(crate) fn cross(left: Source, right: Source) -> Result<Source> {
    joined(JoinKind::Inner, left, right, Vec::new())
}

pub(crate) fn shifted(mut conditions: Vec<Expr>, by: usize) -> Vec<Expr> {
    if by > 0 {
        conditions
            .iter_mut()
            .for_each(|condition| condition.shift(by));
    }
    conditions
}

/// Gives the columns that an expression names their new places.
pub(crate) fn move_columns(expr: &mut Expr, places: &[usize]) {
    if let ExprKind::Column(place) = &mut expr.kind {
        *place = places[*place];
    }
    for part in expr.parts_mut() {
        move_columns(part, places);
    }
}

/// The same expression, as seen from so many levels further out.
pub(crate) fn inward(expr: &mut Expr, depth: usize) {
    match &mut expr.kind {
        ExprKind::Outer(up, place) if *up == depth => expr.kind = ExprKind::Column(*place),
        ExprKind::Outer(up, _) => *up -= depth,
        _ => expr
            .parts_mut()
            .into_iter()
            .for_each(|part| inward(part, depth)),
    }
}

/// The places of the columns that an expression names, in ascending order.
pub(crate) fn columns_of(expr: &Expr) -> Vec<usize> {
    let mut places = Vec::new();
    expr.visit(&mut |part| {
        if let ExprKind::Column(place) = part.kind {
            places.push(place);
        }
    });
    places.sort_unstable();
    places.dedup();
    places
}

/// Whether computing it over a row may tell of the row's values otherwise than by its result: an
/// error that names them, say.
pub(crate) fn leaks(expr: &Expr) -> bool {
    let names_row = |expr: &Expr| {
        expr.any(&|part| matches!(part.kind, ExprKind::Column(_) | ExprKind::Outer(..)))
    };
    let tells = |function: &Func| !facts::of_function(function.0.oid).is_some_and(|f| f.leakproof);
    expr.any(&|part| {
        let may_tell = match &part.kind {
            ExprKind::Call(function, ..)
            | ExprKind::SetCall(function, ..)
            | ExprKind::NullIf(_, function, ..)
            | ExprKind::Distinct(_, _, function, ..)
            | ExprKind::AnyArray(_, _, function, ..) => tells(function),
            ExprKind::Routine(call, _) => !call.routine.leakproof,
            ExprKind::AnyOwn(_, _, test) => !test.call.routine.leakproof,
            ExprKind::Coerce(_, How(how, _)) => !matches!(how, Coercion::Binary),
            ExprKind::Const(..)
            | ExprKind::Column(_)
            | ExprKind::Outer(..)
            | ExprKind::Param(_)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Not(_)
            | ExprKind::Case(..)
            | ExprKind::CaseValue(..)
            | ExprKind::CaseInput
            | ExprKind::Coalesce(_)
            | ExprKind::Collate(..)
            | ExprKind::IsNull(..)
            | ExprKind::IsTruth(..)
            | ExprKind::Array(..)
            | ExprKind::Record(..)
            | ExprKind::Subscript(..) => false,
            ExprKind::Sub(..) => return true,
            _ => true,
        };
        may_tell && names_row(part)
    })
}

/// The condition as one that is never NULL, so that what follows it in a conjunction is not computed
/// where it is not true.
pub(crate) fn surely(condition: Expr) -> Expr {
    let location = condition.location.0;
    truth(
        ExprKind::IsTruth(Box::new(condition), Some(true), false),
        location,
    )
}

/// A boolean expression.
pub(crate) fn truth(kind: ExprKind, location: i32) -> Expr {
    Expr::new(kind, TypeId::BOOL, location)
}
