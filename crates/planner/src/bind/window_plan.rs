//! Window functions out of the expressions of a query and into nodes of its plan.
//!
//! ```text
//! SELECT rank() OVER (ORDER BY a), sum(b) OVER (PARTITION BY c), sum(b) OVER (ORDER BY a, d)
//!
//! Window  sum(b) … c
//!   Sort  c
//!     Window  rank() … a
//!       Window  sum(b) … a, d
//!         Sort  a, d
//!           Project  a, b, c, d
//! ```
//!
//! # Rules
//! - Calls of equal windows are one node; windows where one order begins with the other share a sort,
//!   the longer one first. The order of windows, which shows where a query has no ORDER BY, is
//!   PostgreSQL's: by the last key that the statement mentions.
//! - Below the windows only those columns go on that something above looks at, beside the keys.
//! - Where the rows come out in the order that the query asks for, they are not sorted again.

use std::rc::Rc;

use super::outputs::{Order, Outputs};
use super::window::NamedWindow;
use crate::paths::access::scan_in_order;
use crate::plan::compile;
use crate::plan::{
    Expr, ExprKind, Frame, Plan, SortKey, WindowCall, WindowFunctionPlan, WindowName, WindowPlan,
    WindowSpec,
};

/// Where results are numbered until the width of the rows below them is settled.
const RESULTS: usize = 1 << 33;

/// A window and the numbers of the calls over it.
struct Node {
    spec: WindowSpec,
    calls: Vec<usize>,
    /// Its place among the windows of the WINDOW clause; the others come after those.
    named: usize,
}

/// A key to sort by: the number of its expression, descending, NULLs first.
type Key = (usize, bool, bool);

/// The plan with the window functions of these expressions, which become columns. Of the ORDER BY
/// nothing is left if the rows come in that order. `groups` is how many of the input's columns are
/// grouped by.
pub(super) fn windows(
    mut input: Plan,
    outputs: &mut Outputs,
    groups: &[Expr],
    named: &[NamedWindow],
    keep_order: bool,
) -> Plan {
    let mut calls = Vec::new();
    outputs
        .all_mut()
        .for_each(|expr| take_out(expr, &mut calls));
    if calls.is_empty() {
        return input;
    }
    let mut nodes = nodes_of(&calls, named);
    let mut keys = Keys::new(&outputs.order, groups);
    // Keys are numbered as the windows are written, whatever the order in which they run.
    nodes.sort_by_key(|node| node.named);
    let mut orders: Vec<_> = nodes
        .iter()
        .map(|node| keys.of_window(&node.spec))
        .collect();
    let mut turns: Vec<_> = (0..nodes.len()).collect();
    turns.sort_by(|a, b| compare(&orders[*a], &orders[*b]));
    for order in &mut orders {
        keep_first(order);
    }
    let mut sorted = Vec::new();
    if let Plan::Scan(scan) = &mut input {
        let wanted = keys.as_order(&orders[turns[0]]);
        if !wanted.is_empty() && scan_in_order(scan, &wanted, false) {
            sorted.clone_from(&orders[turns[0]]);
        }
    }
    let mut below = Below::default();
    for node in &nodes {
        below.add_keys(&node.spec);
    }
    outputs.all_mut().for_each(|expr| below.settle(expr));
    for call in &mut calls {
        call.args
            .iter_mut()
            .chain(&mut call.filter)
            .for_each(|part| below.settle(part));
    }
    let mut width = below.columns.len();
    let mut plan = Plan::Project(Rc::new(input), below.columns.iter().map(compile).collect());
    let mut results = vec![0; calls.len()];
    for turn in turns {
        let (node, order) = (&nodes[turn], &orders[turn]);
        if !sorted.starts_with(order) {
            plan = Plan::Sort(Rc::new(plan), below.sort_keys(&keys, order));
            sorted.clone_from(order);
        }
        for (place, call) in node.calls.iter().enumerate() {
            results[*call] = width + place;
        }
        width += node.calls.len();
        plan = below.node(plan, node, &calls);
    }
    let wanted: Vec<_> = outputs
        .order
        .iter()
        .enumerate()
        .map(|(number, key)| (keys.asked[number], key.1, key.2))
        .collect();
    if !keep_order && sorted.starts_with(&wanted) {
        outputs.order.clear();
    }
    outputs
        .all_mut()
        .for_each(|expr| settle_results(expr, &results));
    plan
}

/// Puts a number in the place of each call.
fn take_out(expr: &mut Expr, calls: &mut Vec<WindowCall>) {
    if let ExprKind::Window(call) = &expr.kind {
        let known = calls.iter().position(|known| known.same(call));
        let number = known.unwrap_or(calls.len());
        let taken = std::mem::replace(&mut expr.kind, ExprKind::Column(RESULTS + number));
        if let (ExprKind::Window(call), None) = (taken, known) {
            calls.push(*call);
        }
        return;
    }
    for part in expr.parts_mut() {
        take_out(part, calls);
    }
}

fn settle_results(expr: &mut Expr, results: &[usize]) {
    if let ExprKind::Column(place) = &mut expr.kind {
        if *place >= RESULTS {
            *place = results[*place - RESULTS];
        }
    }
    for part in expr.parts_mut() {
        settle_results(part, results);
    }
}

/// The windows, each once, in the order in which calls name them.
fn nodes_of(calls: &[WindowCall], named: &[NamedWindow]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let place = match &call.name {
            WindowName::Named(name) => named.iter().position(|known| known.name == *name),
            _ => None,
        };
        let place = place.unwrap_or(named.len());
        match nodes.iter_mut().find(|known| known.spec.same(&call.window)) {
            Some(known) => {
                known.calls.push(number);
                known.named = known.named.min(place);
            }
            None => nodes.push(Node {
                spec: call.window.clone(),
                calls: vec![number],
                named: place,
            }),
        }
    }
    nodes
}

/// PostgreSQL's order of windows: those first whose keys were mentioned last, and of two that begin
/// alike the longer one.
fn compare(a: &[Key], b: &[Key]) -> std::cmp::Ordering {
    let keys = a.iter().zip(b).map(|(a, b)| b.cmp(a));
    let longer = b.len().cmp(&a.len());
    keys.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        .then(longer)
}

/// Leaves out keys that an earlier one decides.
fn keep_first(order: &mut Vec<Key>) {
    let mut seen = Vec::new();
    order.retain(|key| {
        let new = !seen.contains(&key.0);
        seen.push(key.0);
        new
    });
}

/// The expressions that something is sorted by, in the order in which they are mentioned.
struct Keys {
    exprs: Vec<Expr>,
    /// The numbers of those of the query's ORDER BY.
    asked: Vec<usize>,
}

impl Keys {
    fn new(order: &[Order], groups: &[Expr]) -> Keys {
        let mut keys = Keys {
            exprs: Vec::new(),
            asked: Vec::new(),
        };
        for key in order {
            let number = keys.number(&key.0);
            keys.asked.push(number);
        }
        for group in groups {
            keys.number(group);
        }
        keys
    }

    fn number(&mut self, expr: &Expr) -> usize {
        let known = self.exprs.iter().position(|known| known.same(expr));
        known.unwrap_or_else(|| {
            self.exprs.push(expr.clone());
            self.exprs.len() - 1
        })
    }

    /// What the rows of a window must be sorted by: its partitions, then its order.
    fn of_window(&mut self, spec: &WindowSpec) -> Vec<Key> {
        let order: Vec<Key> = spec
            .order
            .iter()
            .map(|(expr, descending, nulls_first)| (self.number(expr), *descending, *nulls_first))
            .collect();
        let mut all = Vec::new();
        for expr in &spec.partition {
            let number = self.number(expr);
            let same = order.iter().find(|key| key.0 == number);
            all.push(*same.unwrap_or(&(number, false, false)));
        }
        for key in order {
            if !all.contains(&key) {
                all.push(key);
            }
        }
        all
    }

    fn as_order(&self, keys: &[Key]) -> Vec<Order> {
        keys.iter()
            .map(|(number, descending, first)| (self.exprs[*number].clone(), *descending, *first))
            .collect()
    }
}

/// The columns of the rows below the windows.
#[derive(Default)]
struct Below {
    columns: Vec<Expr>,
}

impl Below {
    /// The column that an expression has become; it is added if need be.
    fn place(&mut self, expr: &Expr) -> usize {
        let known = self.columns.iter().position(|known| known.same(expr));
        known.unwrap_or_else(|| {
            self.columns.push(expr.clone());
            self.columns.len() - 1
        })
    }

    fn known(&self, expr: &Expr) -> usize {
        let known = self.columns.iter().position(|known| known.same(expr));
        known.expect("the keys of every window are columns")
    }

    fn add_keys(&mut self, spec: &WindowSpec) {
        for expr in spec
            .partition
            .iter()
            .chain(spec.order.iter().map(|key| &key.0))
        {
            self.place(expr);
        }
    }

    /// Makes an expression over the input one over the columns.
    fn settle(&mut self, expr: &mut Expr) {
        let is_result = |place: usize| place >= RESULTS;
        let place = match expr.kind {
            ExprKind::Column(place) if is_result(place) => return,
            ExprKind::Column(_) => Some(self.place(expr)),
            _ => self.columns.iter().position(|known| known.same(expr)),
        };
        if let Some(place) = place {
            expr.kind = ExprKind::Column(place);
            return;
        }
        for part in expr.parts_mut() {
            self.settle(part);
        }
    }

    fn sort_keys(&self, keys: &Keys, order: &[Key]) -> Vec<SortKey> {
        let sorted = keys.as_order(order);
        let key = |(expr, descending, nulls_first): Order| SortKey {
            value: compile(&Expr::new(ExprKind::Column(self.known(&expr)), expr.ty, -1)),
            ty: expr.ty,
            descending,
            nulls_first,
        };
        sorted.into_iter().map(key).collect()
    }

    fn node(&self, input: Plan, node: &Node, calls: &[WindowCall]) -> Plan {
        let spec = &node.spec;
        let partition = spec.partition.iter();
        let order = spec.order.iter();
        let functions = node.calls.iter().map(|number| {
            let call = &calls[*number];
            WindowFunctionPlan {
                function: call.function.clone(),
                args: call.args.iter().map(compile).collect(),
                types: call.types.clone(),
                filter: call.filter.as_ref().map(compile),
            }
        });
        Plan::Window(Box::new(WindowPlan {
            input: Rc::new(input),
            partition: partition.map(|expr| (self.known(expr), expr.ty)).collect(),
            order: order
                .map(|(expr, descending, first)| (self.known(expr), expr.ty, *descending, *first))
                .collect(),
            frame: Frame {
                mode: spec.frame.mode,
                start: spec.frame.start.map(compile),
                end: spec.frame.end.map(compile),
                exclude: spec.frame.exclude,
            },
            functions: functions.collect(),
        }))
    }
}
