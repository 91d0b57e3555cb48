//! Window functions: as expressions, and as a node of a plan.
//!
//! ```text
//! sum(b) OVER (PARTITION BY a ORDER BY c ROWS 2 PRECEDING)      a WindowCall in an expression
//!
//! Project
//!   Window      partition: column 0; order: column 1; frame: from 2 before to the row; sum(column 2)
//!     Sort      by columns 0 and 1
//!       Project a, c, b
//! ```
//!
//! A call holds its whole window, so that grouping may rewrite it like any other expression; calls
//! of equal windows then become one node.

use std::rc::Rc;

use super::{Agg, Expr, Plan, Program};
use functions::WindowFunction;
use types::TypeId;

/// What is called with OVER.
#[derive(Clone, Debug)]
pub enum Windowed {
    /// A function that there is for windows only.
    Own(&'static WindowFunction),
    /// An aggregate.
    Aggregate(Agg),
}

impl Windowed {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Windowed::Own(function) => function.name,
            Windowed::Aggregate(aggregate) => aggregate.name(),
        }
    }

    /// Its oid.
    pub fn oid(&self) -> u32 {
        match self {
            Windowed::Own(function) => function.oid,
            Windowed::Aggregate(aggregate) => aggregate.oid(),
        }
    }
}

impl PartialEq for Windowed {
    fn eq(&self, other: &Windowed) -> bool {
        self.oid() == other.oid()
    }
}

/// A call of a window function.
#[derive(Clone, Debug)]
pub struct WindowCall {
    /// Of what.
    pub function: Windowed,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// Their types.
    pub types: Vec<TypeId>,
    /// FILTER.
    pub filter: Option<Expr>,
    /// Over which rows.
    pub window: WindowSpec,
    /// How OVER names that.
    pub name: WindowName,
}

/// How OVER names a window; names are only shown.
#[derive(Clone, Debug)]
pub enum WindowName {
    /// `OVER (…)`.
    Given,
    /// `OVER name`.
    Named(String),
    /// `OVER (name …)`; whether the order is that of `name`.
    From(String, bool),
}

/// A window.
#[derive(Clone, Debug)]
pub struct WindowSpec {
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY: expression, descending, NULLs first.
    pub order: Vec<(Expr, bool, bool)>,
    /// The rows around a row that count.
    pub frame: Frame<Expr>,
    /// The frame as it was written, in PostgreSQL's bits.
    pub options: i32,
}

/// In what a frame is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrameMode {
    Rows,
    Range,
    Groups,
}

/// One end of a frame; an offset is a value that is the same for all rows.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Bound<E> {
    UnboundedPreceding,
    Preceding(E),
    CurrentRow,
    Following(E),
    UnboundedFollowing,
}

impl<E> Bound<E> {
    /// Its offset.
    pub fn offset(&self) -> Option<&E> {
        match self {
            Bound::Preceding(offset) | Bound::Following(offset) => Some(offset),
            _ => None,
        }
    }

    fn offset_mut(&mut self) -> Option<&mut E> {
        match self {
            Bound::Preceding(offset) | Bound::Following(offset) => Some(offset),
            _ => None,
        }
    }

    /// The same bound with its offset made into something else.
    pub fn map<F>(&self, f: impl FnOnce(&E) -> F) -> Bound<F> {
        match self {
            Bound::UnboundedPreceding => Bound::UnboundedPreceding,
            Bound::Preceding(offset) => Bound::Preceding(f(offset)),
            Bound::CurrentRow => Bound::CurrentRow,
            Bound::Following(offset) => Bound::Following(f(offset)),
            Bound::UnboundedFollowing => Bound::UnboundedFollowing,
        }
    }
}

/// What EXCLUDE leaves out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Exclusion {
    None,
    CurrentRow,
    Group,
    Ties,
}

/// The rows around a row that count.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<E> {
    /// In what it is counted.
    pub mode: FrameMode,
    /// Where it begins.
    pub start: Bound<E>,
    /// Where it ends.
    pub end: Bound<E>,
    /// What is left out.
    pub exclude: Exclusion,
}

impl WindowCall {
    /// The expressions it is made of.
    pub fn parts(&self) -> Vec<&Expr> {
        let own = self.args.iter().chain(&self.filter);
        own.chain(self.window.parts()).collect()
    }

    /// The expressions it is made of, to be changed.
    pub fn parts_mut(&mut self) -> Vec<&mut Expr> {
        let WindowSpec {
            partition,
            order,
            frame,
            ..
        } = &mut self.window;
        self.args
            .iter_mut()
            .chain(&mut self.filter)
            .chain(partition)
            .chain(order.iter_mut().map(|key| &mut key.0))
            .chain(frame.start.offset_mut())
            .chain(frame.end.offset_mut())
            .collect()
    }
}

impl WindowSpec {
    /// The expressions it is made of.
    pub fn parts(&self) -> Vec<&Expr> {
        self.partition
            .iter()
            .chain(self.order.iter().map(|key| &key.0))
            .chain(self.frame.start.offset())
            .chain(self.frame.end.offset())
            .collect()
    }
}

/// Window functions over rows that come in the order of partitions and, inside those, of the window.
#[derive(Debug)]
pub struct WindowPlan {
    /// The rows.
    pub input: Rc<Plan>,
    /// The columns whose values tell partitions apart.
    pub partition: Vec<(usize, TypeId)>,
    /// The columns that order a partition: place, type, descending, NULLs first.
    pub order: Vec<(usize, TypeId, bool, bool)>,
    /// The frame.
    pub frame: Frame<Program>,
    /// The functions, whose values follow each row.
    pub functions: Vec<WindowFunctionPlan>,
}

/// One function of a [`WindowPlan`].
#[derive(Debug)]
pub struct WindowFunctionPlan {
    /// Which.
    pub function: Windowed,
    /// Its arguments, over the input's rows.
    pub args: Vec<Program>,
    /// Their types.
    pub types: Vec<TypeId>,
    /// FILTER.
    pub filter: Option<Program>,
}
