//! What a query computes from its rows: its columns, and what it sorts and tells rows apart by.
//!
//! Grouping and window functions change what the rows below are, and with it all of these.

use base::Result;
use pg_query::protobuf::SelectStmt;

use super::expr::Place;
use super::scope::Scope;
use super::{inner, Binder, OutputColumn};
use crate::plan::{Expr, ExprKind};
use syntax::parser::NodeEnum;

/// ORDER BY over something: the value, descending, NULLs first.
pub(super) type Order = (Expr, bool, bool);

/// Where a name or a number of an output column stands.
pub(super) fn output_location(node: &NodeEnum) -> i32 {
    match node {
        NodeEnum::AConst(constant) => constant.location,
        NodeEnum::ColumnRef(column) => column.location,
        _ => -1,
    }
}

/// The expressions of a query over its rows.
pub(super) struct Outputs {
    /// Its columns.
    pub exprs: Vec<Expr>,
    /// ORDER BY.
    pub order: Vec<Order>,
    /// DISTINCT ON, each with its place in the text.
    pub distinct_on: Vec<(Expr, i32)>,
    /// How many of the last columns are not the query's own, but a cursor's.
    pub hidden: usize,
}

impl Outputs {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Expr> {
        self.exprs
            .iter()
            .chain(self.order.iter().map(|key| &key.0))
            .chain(self.distinct_on.iter().map(|on| &on.0))
    }

    /// All of them, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.exprs
            .iter_mut()
            .chain(self.order.iter_mut().map(|key| &mut key.0))
            .chain(self.distinct_on.iter_mut().map(|on| &mut on.0))
    }

    /// Whether there is an aggregate, or GROUPING, among them.
    pub fn aggregates(&self) -> bool {
        let is_aggregate =
            |part: &Expr| matches!(part.kind, ExprKind::Aggregate(_) | ExprKind::Grouping(_));
        self.all().any(|expr| expr.any(&is_aggregate))
    }

    /// Whether there is a window function among them.
    pub fn windows(&self) -> bool {
        let is_window = |part: &Expr| matches!(part.kind, ExprKind::Window(_));
        self.all().any(|expr| expr.any(&is_window))
    }
}

impl Binder<'_> {
    /// DISTINCT ON: output columns, or expressions over the input.
    pub(super) fn distinct_on(
        &mut self,
        select: &SelectStmt,
        scope: &Scope<'_>,
        exprs: &[Expr],
        columns: &[OutputColumn],
    ) -> Result<Vec<(Expr, i32)>> {
        let mut out = Vec::new();
        for node in &select.distinct_clause {
            if node.node.is_none() {
                continue;
            }
            let node = inner(node)?;
            let output = self.output_column(node, exprs, columns, "DISTINCT ON", true)?;
            let bound = self.expr(node, scope, Place::output("DISTINCT ON"));
            let location = bound.as_ref().map_or(-1, |bound| bound.location.0);
            let expr = match output {
                Some(place) => exprs[place].clone(),
                None => bound?,
            };
            out.push((expr, location));
        }
        Ok(out)
    }
}
