//! GROUP BY: what is grouped by, and in which sets.
//!
//! ```text
//! GROUP BY a, ROLLUP (b, c)     groups a, b, c      sets (a, b, c), (a, b), (a)
//! ```
//!
//! A query groups its rows once for each set; columns outside of it are NULL there. A query without
//! any such word has one set, of all columns.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    CoercionForm, GroupingFunc, GroupingSet, GroupingSetKind, Node, SelectStmt,
};

use super::expr::{Place, Sets};
use super::group::Grouping;
use super::level::Marks;
use super::scope::Scope;
use super::window::{clause_words, window_in};
use super::{inner, Binder, OutputColumn};
use crate::plan::{Expr, ExprKind};
use syntax::parser::NodeEnum;
use types::TypeId;

/// A query may group by so many sets; more is 54001.
const SETS_MAX: usize = 4_096;

/// CUBE takes so many elements; more is 54011.
const CUBE_MAX: usize = 12;

/// GROUPING takes so many arguments, one for each bit of its result but the sign; more is 54023.
const GROUPING_ARGUMENTS_MAX: usize = 31;

/// Where keys stand.
const KEY: Place = Place {
    sets: Sets::Anywhere,
    ..Place::plain("GROUP BY")
};

/// Places of expressions in the list of those that are grouped by.
type Set = Vec<usize>;

/// What keys of GROUP BY may name.
struct Named<'a, 's> {
    scope: &'a Scope<'s>,
    exprs: &'a mut [Expr],
    columns: &'a [OutputColumn],
    /// The expressions met so far.
    groups: Vec<Expr>,
    /// The output column that each of them is.
    owners: Vec<Option<usize>>,
    /// Whether there are sets, in which output columns are told apart even if they are equal.
    apart: bool,
}

impl Binder<'_> {
    /// GROUP BY: an input column, or an output column by name or number, or an expression; or sets of
    /// those.
    pub(super) fn grouping(
        &mut self,
        select: &SelectStmt,
        scope: &Scope<'_>,
        exprs: &mut [Expr],
        columns: &[OutputColumn],
    ) -> Result<Option<Grouping>> {
        if select.group_clause.is_empty() {
            return Ok(None);
        }
        let is_set = |node: &Node| matches!(node.node, Some(NodeEnum::GroupingSet(_)));
        let mut named = Named {
            scope,
            exprs,
            columns,
            groups: Vec::new(),
            owners: Vec::new(),
            apart: select.group_clause.iter().any(is_set),
        };
        let mut sets: Vec<Set> = vec![Vec::new()];
        for node in &select.group_clause {
            let more = self.sets_of(node, &mut named)?;
            if sets.len() * more.len() > SETS_MAX {
                return Err(too_many_sets());
            }
            let both = |set: &Set| {
                let more = more.iter();
                more.map(|more| set.iter().chain(more).copied().collect())
                    .collect::<Vec<Set>>()
            };
            sets = sets.iter().flat_map(both).collect();
        }
        for set in &mut sets {
            set.sort_unstable();
            set.dedup();
        }
        if select.group_distinct {
            let mut seen = Vec::new();
            sets.retain(|set| {
                let new = !seen.contains(set);
                seen.push(set.clone());
                new
            });
        }
        Ok(Some(Grouping {
            groups: named.groups,
            owners: named.owners,
            sets,
            ..Grouping::default()
        }))
    }

    /// The sets that one item of GROUP BY or GROUPING SETS stands for.
    fn sets_of(&mut self, node: &Node, named: &mut Named<'_, '_>) -> Result<Vec<Set>> {
        let NodeEnum::GroupingSet(set) = inner(node)? else {
            return Ok(vec![self.element(node, named)?]);
        };
        match GroupingSetKind::try_from(set.kind) {
            Ok(GroupingSetKind::GroupingSetRollup) => {
                let elements = self.elements(set, named)?;
                let first = |count: usize| elements[..count].concat();
                Ok((0..=elements.len()).rev().map(first).collect())
            }
            Ok(GroupingSetKind::GroupingSetCube) => {
                if set.content.len() > CUBE_MAX {
                    return Err(self.error(
                        SqlState::TOO_MANY_COLUMNS,
                        format!("CUBE is limited to {CUBE_MAX} elements"),
                        set.location,
                    ));
                }
                let elements = self.elements(set, named)?;
                let chosen = |bits: usize| {
                    let numbered = elements.iter().enumerate();
                    let chosen = numbered.filter(|(place, _)| bits >> place & 1 == 1);
                    chosen.flat_map(|(_, element)| element.clone()).collect()
                };
                Ok((0..1 << elements.len()).rev().map(chosen).collect())
            }
            Ok(GroupingSetKind::GroupingSetSets) => {
                let mut sets = Vec::new();
                for node in &set.content {
                    sets.extend(self.deeper(|binder| binder.sets_of(node, named))?);
                    if sets.len() > SETS_MAX {
                        return Err(too_many_sets());
                    }
                }
                Ok(sets)
            }
            _ => Ok(vec![Vec::new()]),
        }
    }

    fn elements(&mut self, set: &GroupingSet, named: &mut Named<'_, '_>) -> Result<Vec<Set>> {
        let nodes = set.content.iter();
        nodes.map(|node| self.element(node, named)).collect()
    }

    /// An expression, or several in parentheses.
    fn element(&mut self, node: &Node, named: &mut Named<'_, '_>) -> Result<Set> {
        match inner(node)? {
            NodeEnum::RowExpr(row) if row.row_format == CoercionForm::CoerceImplicitCast as i32 => {
                let mut set = Vec::new();
                for node in &row.args {
                    set.extend(self.deeper(|binder| binder.element(node, named))?);
                }
                Ok(set)
            }
            node => Ok(vec![self.group_key(node, named)?]),
        }
    }

    /// The place of what one key means.
    fn group_key(&mut self, node: &NodeEnum, named: &mut Named<'_, '_>) -> Result<usize> {
        let (scope, columns) = (named.scope, named.columns);
        let is_name = matches!(node, NodeEnum::ColumnRef(_));
        let input = match is_name {
            true => self.expr(node, scope, KEY),
            false => Err(Error::internal("no name")),
        };
        let (expr, output) = match input {
            Ok(expr) => (expr, None),
            Err(missing) => {
                match self.output_column(node, named.exprs, columns, "GROUP BY", true)? {
                    Some(place) => {
                        let taken = named.exprs[place].clone();
                        named.exprs[place] = self.settle(taken)?;
                        (named.exprs[place].clone(), Some(place))
                    }
                    None if is_name => return Err(missing),
                    None => (self.expr(node, scope, KEY)?, None),
                }
            }
        };
        self.check_group_key(&expr)?;
        let expr = self.settle(expr)?;
        let output = match named.apart {
            true => output.or_else(|| named.exprs.iter().position(|own| own.same(&expr))),
            false => None,
        };
        let known = match output {
            Some(_) => named.owners.iter().position(|owner| *owner == output),
            None => named.groups.iter().position(|known| known.same(&expr)),
        };
        Ok(known.unwrap_or_else(|| {
            named.groups.push(expr);
            named.owners.push(output);
            named.groups.len() - 1
        }))
    }

    /// An output column may be what cannot be grouped by.
    fn check_group_key(&self, expr: &Expr) -> Result<()> {
        let is_of_groups =
            |part: &Expr| matches!(part.kind, ExprKind::Aggregate(_) | ExprKind::Grouping(_));
        if expr.any(&is_of_groups) {
            return Err(self.error(
                SqlState::GROUPING_ERROR,
                "aggregate functions are not allowed in GROUP BY",
                expr.location.0,
            ));
        }
        if let Some(window) = window_in(expr) {
            return Err(self.error(
                SqlState::WINDOWING_ERROR,
                "window functions are not allowed in GROUP BY",
                window.location.0,
            ));
        }
        self.check_equality(expr.ty, expr.leftmost())
    }

    /// GROUPING(…).
    pub(super) fn grouping_call(
        &mut self,
        call: &GroupingFunc,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        if call.args.len() > GROUPING_ARGUMENTS_MAX {
            return Err(self.error(
                SqlState::TOO_MANY_ARGUMENTS,
                "GROUPING must have fewer than 32 arguments",
                call.location,
            ));
        }
        let marks = Marks::of(scope);
        let args = self.nodes(&call.args, scope, place)?;
        let own = Expr::new(ExprKind::Grouping(args), TypeId::INT4, call.location);
        let what = "grouping operations";
        if let Some(shown) = self.of_outer_query(&own, what, scope, &marks)? {
            return Ok(shown);
        }
        if !place.aggregates {
            let words = clause_words(place.clause);
            return Err(self.error(
                SqlState::GROUPING_ERROR,
                format!("{what} are not allowed in {words}"),
                call.location,
            ));
        }
        Ok(own)
    }
}

fn too_many_sets() -> Error {
    Error::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        format!("too many grouping sets present (maximum {SETS_MAX})"),
    )
}
