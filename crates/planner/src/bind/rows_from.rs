//! Several functions side by side: `ROWS FROM (f(…), g(…))`, and `unnest` of several arrays.
//!
//! ```text
//! rows from (generate_series(1, 3), unnest(array['a', 'b']))
//!   1  a
//!   2  b
//!   3  NULL       those that end before others have NULLs
//! ```

use std::ops::Range;
use std::rc::Rc;

use base::{Error, Result};
use pg_query::protobuf::{FuncCall, List, Node, RangeFunction};

use super::scope::{plain_column, Scope};
use super::{inner, strings, Binder};
use crate::logical::{lateral_of, Source, SourceKind, NOWHERE};
use crate::plan::Plan;
use syntax::parser::NodeEnum;
use types::TypeId;

/// Whether it is `unnest` of several arrays, which stands for several functions.
fn is_unnest(call: &FuncCall) -> bool {
    let names = strings(&call.funcname);
    let plain = call.agg_order.is_empty()
        && call.agg_filter.is_none()
        && call.over.is_none()
        && !(call.agg_star || call.agg_distinct || call.func_variadic || call.agg_within_group);
    let named = matches!(names.as_slice(), ["unnest"] | ["pg_catalog", "unnest"]);
    plain && named && call.args.len() > 1
}

fn node(node: NodeEnum) -> Node {
    Node { node: Some(node) }
}

/// The functions of an item of FROM, each as an item of its own; nothing if it is one.
pub(super) fn several(function: &RangeFunction) -> Result<Vec<RangeFunction>> {
    let mut all = Vec::new();
    for item in &function.functions {
        let (call, defined) = match inner(item)? {
            NodeEnum::List(list) => {
                let first = list.items.first();
                let first = first.ok_or_else(|| Error::internal("no function in FROM"))?;
                let defined = match list.items.get(1).and_then(|node| node.node.as_ref()) {
                    Some(NodeEnum::List(columns)) => columns.items.clone(),
                    _ => Vec::new(),
                };
                (first, defined)
            }
            _ => (item, Vec::new()),
        };
        let alone = |call: Node, coldeflist: Vec<Node>| RangeFunction {
            functions: vec![node(NodeEnum::List(List { items: vec![call] }))],
            coldeflist,
            ..RangeFunction::default()
        };
        match inner(call)? {
            NodeEnum::FuncCall(written) if is_unnest(written) => {
                for arg in &written.args {
                    let one = FuncCall {
                        args: vec![arg.clone()],
                        ..(**written).clone()
                    };
                    all.push(alone(node(NodeEnum::FuncCall(Box::new(one))), Vec::new()));
                }
            }
            _ => all.push(alone(call.clone(), defined)),
        }
    }
    match all.len() {
        1 => Ok(Vec::new()),
        _ => Ok(all),
    }
}

impl Binder<'_> {
    pub(super) fn rows_from(
        &mut self,
        function: &RangeFunction,
        parts: &[RangeFunction],
        scope: &mut Scope<'_>,
        next: &mut usize,
    ) -> Result<Source> {
        let (mut plans, mut columns, mut closed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut name, mut from, mut lateral) = (None, NOWHERE, false);
        for part in parts {
            // Each sees what stands beside all of them, and nothing of the others.
            let mut beside = Scope {
                parent: scope.parent,
                tables: scope.tables.clone(),
                merged: scope.merged.clone(),
                covered: scope.covered.clone(),
                has_target: scope.has_target,
                ..Scope::default()
            };
            let source = self.range_function(part, &mut beside, &mut next.clone())?;
            if beside.escapes.get() {
                scope.escapes.set(true);
            }
            let item = beside.tables.pop();
            let item = item.ok_or_else(|| Error::internal("an item that is not in scope"))?;
            name.get_or_insert(item.alias);
            let (plan, escapes, reach) = plan_of(source)?;
            from = from.start.min(reach.start)..from.end.max(reach.end);
            lateral |= escapes;
            plans.push((Rc::new(plan), item.columns.len()));
            closed.push(!escapes);
            columns.extend(item.columns);
        }
        // What looks at no row around it is called once, and not again for each of these.
        for ((plan, _), closed) in plans.iter_mut().zip(closed) {
            if closed && lateral {
                *plan = Rc::new(Plan::Shared(self.next_number(), plan.clone()));
            }
        }
        if function.ordinality {
            columns.push(plain_column("ordinality", TypeId::INT8));
        }
        let alias = function.alias.as_ref();
        let name = alias.map(|alias| alias.aliasname.clone()).or(name);
        let plan = Plan::Beside(plans, function.ordinality);
        let name = name.unwrap_or_default();
        let source = self.other(plan, columns, &name, alias, scope, next)?;
        let source = source.escaping(lateral);
        Ok(match lateral {
            true => lateral_of(source, from),
            false => source,
        })
    }
}

/// The plan of a function in FROM, whether it looks outside, and between which places.
fn plan_of(source: Source) -> Result<(Plan, bool, Range<usize>)> {
    match source.kind {
        SourceKind::Other {
            plan,
            escapes,
            reach,
            ..
        } => Ok((*plan, escapes, reach)),
        SourceKind::Join { right, .. } => plan_of(*right),
        _ => Err(Error::internal("a function in FROM that is none")),
    }
}
