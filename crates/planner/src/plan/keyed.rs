//! Subqueries that look at the row around them by equalities alone, as queries that do not look at it.
//!
//! ```text
//! (select sum(l.price) from line l where l.order_id = o.id and l.late)         for one order
//! select sum(l.price), l.order_id from line l where l.late group by l.order_id  for all of them
//! ```
//! The second is run once, where many different rows come, and its rows are kept by the hash of their
//! keys; what an order's is, its hash says. Nobody knows how many rows will come, so that the first few
//! are answered by the subquery as it is written, which may find its rows by an index: as many as cost
//! what the second does.
//!
//! # Invariants
//! - Both have the same answers: the second holds nothing volatile, looks at nothing around it, and has
//!   every condition of the first but the equalities that became keys.
//! - An error of the second is nobody's: it may be about rows that were not asked for. Whoever gets one
//!   goes on with the first.
//! - NULL is no key: it equals nothing.
//!
//! # What it leaves out
//! Subqueries with LIMIT, DISTINCT, ORDER BY, windows, WITH or UNION, and those with other conditions on
//! the row around them.

use std::rc::Rc;

use super::{Plan, Program};
use types::TypeId;

/// The rows of a subquery for all rows around it.
#[derive(Debug)]
pub struct Keyed {
    /// The rows: the columns of the subquery, followed by their keys.
    pub plan: Rc<Plan>,
    /// How many columns come before the keys.
    pub width: usize,
    /// The key of a row around it, over the columns that the subquery sees of it.
    pub keys: Vec<(Program, TypeId)>,
    /// Whether the subquery has a row where there is none to aggregate.
    pub is_never_empty: bool,
    /// After how many rows it is worth it.
    pub after: usize,
}
