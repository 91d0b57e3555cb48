//! Subqueries of WHERE that become joins.
//!
//! ```sql
//! select … from orders o where exists (select 1 from line l where l.order_id = o.id and l.late)
//! ```
//!
//! runs its subquery for every order if nothing is done about it. Here it becomes a semi-join of
//! `orders` with the late lines, each of which is read once or looked up by its key, whatever is
//! less; NOT EXISTS becomes an anti-join. `x IN (SELECT …)` is the same with one more equality.
//!
//! Invariants: only what stands in WHERE by itself or beneath AND is taken, where NULL is as good as
//! false. A subquery is taken apart only if it is FROM and WHERE and nothing else, holds nothing
//! volatile, and only its own conditions look outside: what is planned already counts the queries
//! around it, of which there is one less afterwards. One that looks at nothing around it is computed once
//! for all rows ([`execution::exec::subquery`]), however often the query runs that it stands in; so it
//! becomes a join only where that query runs once, or becomes a part of one that does
//! ([`Binder::runs_once`]).
//!
//! # What it leaves out
//! NOT IN, whose NULLs no anti-join knows; subqueries in the conditions of a join, and in statements
//! that lock or write rows, which test their conditions again.

use base::{Error, Result};
use pg_query::protobuf::{BoolExpr, BoolExprType, Node, SubLink, SubLinkType};

use super::expr::Place;
use super::scope::Scope;
use super::select::{Body, Query};
use super::{boxed, inner, strings, Binder};
use crate::logical::{conjuncts, inward, looks_outside, move_columns, truth, Source, SourceKind};
use crate::plan::{Expr, ExprKind, JoinKind};
use syntax::parser::NodeEnum;

impl Binder<'_> {
    /// Binds WHERE: the source, with what subqueries have become, and the conditions left.
    pub(super) fn where_joined(
        &mut self,
        node: &Option<Box<Node>>,
        scope: &Scope<'_>,
        source: Source,
    ) -> Result<(Option<Source>, Vec<Expr>)> {
        let (mut source, mut conditions) = (source, Vec::new());
        if let Some(node) = node {
            source = self.conjunct(inner(node)?, "WHERE", scope, source, &mut conditions)?;
        }
        Ok((Some(source), conditions))
    }

    fn conjunct(
        &mut self,
        node: &NodeEnum,
        clause: &'static str,
        scope: &Scope<'_>,
        mut source: Source,
        conditions: &mut Vec<Expr>,
    ) -> Result<Source> {
        match node {
            NodeEnum::BoolExpr(logic) if is(logic, BoolExprType::AndExpr) => {
                for arg in &logic.args {
                    source = self.deeper(|binder| {
                        binder.conjunct(inner(arg)?, "AND", scope, source, conditions)
                    })?;
                }
                return Ok(source);
            }
            NodeEnum::BoolExpr(logic) if is(logic, BoolExprType::NotExpr) => {
                let arg = logic.args.first().map(inner).transpose()?;
                if let Some(NodeEnum::SubLink(link)) = arg {
                    if link.sub_link_type == SubLinkType::ExistsSublink as i32 {
                        return self.subquery_condition(link, true, scope, source, conditions);
                    }
                }
            }
            NodeEnum::SubLink(link) => {
                return self.subquery_condition(link, false, scope, source, conditions)
            }
            _ => {}
        }
        let condition = self.expr(node, scope, Place::plain("WHERE"))?;
        let condition = self.condition(condition, clause)?;
        conditions.extend(conjuncts(Some(condition)));
        Ok(source)
    }

    /// The source joined with a subquery that stands as a condition, or the condition that it is.
    fn subquery_condition(
        &mut self,
        link: &SubLink,
        negated: bool,
        scope: &Scope<'_>,
        source: Source,
        conditions: &mut Vec<Expr>,
    ) -> Result<Source> {
        let place = Place::plain("WHERE");
        self.joining = is_plain(link);
        let (query, outer, test) = self.bind_sublink(link, scope, place)?;
        let looks_around = outer.correlated || self.runs_once && test.is_some();
        if !(looks_around && to_be_joined(link, &query, test.as_ref())) {
            let condition = self.sublink_of(link, query, outer, test)?;
            let mut condition = self.with_keys(link, scope, place, condition);
            if negated {
                condition = truth(ExprKind::Not(Box::new(condition)), link.location);
            }
            conditions.push(self.condition(condition, "WHERE")?);
            return Ok(source);
        }
        let Body::Simple(simple) = query.body else {
            return Err(Error::internal("a planned subquery is to be joined"));
        };
        let offset = scope.beyond.get();
        scope.beyond.set(offset + simple.span);
        let places: Vec<usize> = (offset..offset + simple.span).collect();
        let mut on = Vec::new();
        if let (Some(test), Some(output)) = (test, simple.exprs.into_iter().next()) {
            let equal = self.binary("=", test, pulled_up(output, &places), link.location)?;
            on.push(self.yielding_boolean(equal)?);
        }
        let inside = simple.conditions.into_iter();
        on.extend(inside.map(|condition| pulled_up(condition, &places)));
        let mut right = simple.source;
        right.move_columns(&places);
        let kind = match negated {
            true => JoinKind::Anti,
            false => JoinKind::Semi,
        };
        Ok(Source {
            start: source.start,
            width: source.width,
            kind: SourceKind::Join {
                kind,
                left: Box::new(source),
                right: Box::new(right),
                on,
                lateral: false,
            },
        })
    }
}

/// Whether a subquery that stands as a condition becomes a join; `test` is what stands before IN.
fn to_be_joined(link: &SubLink, query: &Query, test: Option<&Expr>) -> bool {
    let Body::Simple(simple) = &query.body else {
        return false;
    };
    let exprs: &[Expr] = match (SubLinkType::try_from(link.sub_link_type), test) {
        (Ok(SubLinkType::ExistsSublink), _) => &[],
        (Ok(SubLinkType::AnySublink), Some(test)) => {
            let names = strings(&link.oper_name);
            let equality = matches!(names[..], [] | ["="]);
            let row = test.is_row();
            // A join may compute it for every pair of rows.
            let settled = !test.any(&Expr::is_volatile_call);
            if !equality || row || !settled || simple.exprs.len() != 1 {
                return false;
            }
            &simple.exprs
        }
        _ => return false,
    };
    let mut exprs = simple.conditions.iter().chain(exprs);
    exprs.all(can_move) && can_move_source(&simple.source)
}

/// Whether a subquery has nothing but FROM and WHERE, as far as its clauses tell.
fn is_plain(link: &SubLink) -> bool {
    let Ok(NodeEnum::SelectStmt(select)) = boxed(&link.subselect) else {
        return false;
    };
    let limited = select.limit_count.is_some() || select.limit_offset.is_some();
    !select.from_clause.is_empty()
        && select.group_clause.is_empty()
        && select.having_clause.is_none()
        && select.distinct_clause.is_empty()
        && select.sort_clause.is_empty()
        && select.with_clause.is_none()
        && !limited
}

fn is(logic: &BoolExpr, kind: BoolExprType) -> bool {
    logic.boolop == kind as i32
}

/// Whether an expression of a subquery means the same in the query around it.
pub(super) fn can_move(expr: &Expr) -> bool {
    !expr.any(&|part| match &part.kind {
        ExprKind::Sub(query, ..) => query.deep,
        _ => part.is_volatile_call(),
    })
}

/// Whether nothing in it looks at rows of enclosing queries.
pub(super) fn can_move_source(source: &Source) -> bool {
    match &source.kind {
        SourceKind::Scan { .. } => true,
        SourceKind::Other { escapes, .. } => !escapes,
        SourceKind::Derived(derived) => {
            let mut exprs = derived.conditions.iter().chain(&derived.exprs);
            exprs.all(|expr| !looks_outside(expr) && can_move(expr))
                && can_move_source(&derived.source)
        }
        SourceKind::Join {
            left,
            right,
            on,
            lateral,
            ..
        } => {
            let settled = |condition| !looks_outside(condition) && can_move(condition);
            !lateral && on.iter().all(settled) && can_move_source(left) && can_move_source(right)
        }
    }
}

/// An expression of a subquery as one of the query around it, where its columns have these places.
fn pulled_up(mut expr: Expr, places: &[usize]) -> Expr {
    move_columns(&mut expr, places);
    inward(&mut expr, 1);
    expr
}
