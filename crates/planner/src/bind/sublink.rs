//! Queries inside expressions.
//!
//! A subquery becomes an expression whose parts are the columns of the row around it that it looks
//! at, so that it may move wherever those columns go: below a join, above a grouping.

use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{SubLink, SubLinkType};

use super::expr::Place;
use super::scope::Scope;
use super::{boxed, strings, Binder};
use crate::plan::{Expr, ExprKind, Func, SubKind, SubQuery};
use syntax::parser::NodeEnum;
use types::TypeId;

/// What a subquery looks at outside of itself.
struct Outer {
    /// Whether it looks at anything, at whatever level.
    correlated: bool,
    /// The columns of the row around it, each with its place there.
    seen: Vec<(usize, Expr)>,
}

impl Binder<'_> {
    pub(super) fn sublink(
        &mut self,
        link: &SubLink,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Expr> {
        self.check_endless_policy()?;
        let location = link.location;
        let NodeEnum::SelectStmt(select) = boxed(&link.subselect)? else {
            return Err(Error::internal("a subquery that is no SELECT"));
        };
        let kind = SubLinkType::try_from(link.sub_link_type).unwrap_or(SubLinkType::Undefined);
        let before = scope.seen_from_inside.borrow().len();
        let around = scope.inner_stands.replace(place);
        let bound = self.subquery(select, scope);
        scope.inner_stands.set(around);
        let (query, correlated) = bound?;
        let outer = Outer {
            correlated,
            seen: scope.seen_since(before),
        };
        let one_column = |binder: &Self| match query.columns.as_slice() {
            [column] => Ok(column.ty),
            _ => Err(binder.error(
                SqlState::SYNTAX_ERROR,
                "subquery must return only one column",
                location,
            )),
        };
        let none: Rc<[TypeId]> = Rc::from([]);
        let (sub, types, ty, test) = match kind {
            SubLinkType::ExistsSublink => (SubKind::Exists, none, TypeId::BOOL, None),
            SubLinkType::ExprSublink => (SubKind::Scalar, none, one_column(self)?, None),
            SubLinkType::ArraySublink => {
                let element = one_column(self)?;
                let array = element.array_of().ok_or_else(|| {
                    self.error(
                        SqlState::UNDEFINED_OBJECT,
                        format!("could not find array type for data type {element}"),
                        location,
                    )
                })?;
                (SubKind::Array(element), none, array, None)
            }
            SubLinkType::AnySublink | SubLinkType::AllSublink => {
                let test = self.expr(boxed(&link.testexpr)?, scope, place)?;
                if matches!(test.kind, ExprKind::Record(_)) {
                    return self.row_sublink(link, test, query, outer);
                }
                let names = strings(&link.oper_name);
                let name = names.last().copied().unwrap_or("=");
                let column = match query.columns.as_slice() {
                    [column] => column.ty,
                    [] => return Err(Error::internal("a subquery without columns")),
                    _ => {
                        return Err(self.error(
                            SqlState::SYNTAX_ERROR,
                            "subquery has too many columns",
                            location,
                        ))
                    }
                };
                let found = self.operator(name, test.ty, column, location)?;
                let test = self.coerce_argument(test, found.argument_types[0])?;
                let all = kind == SubLinkType::AllSublink;
                let any = SubKind::Any(Func(found.operator.function), all);
                let types: Rc<[TypeId]> = Rc::from(found.argument_types.as_slice());
                let wanted = found.argument_types[1];
                let plan = self.coerce_column(query.plan, column, wanted)?;
                return Ok(self.sub(any, plan, types, outer, TypeId::BOOL, Some(test), location));
            }
            _ => return Err(self.unsupported("this kind of subquery", location)),
        };
        Ok(self.sub(sub, query.plan, types, outer, ty, test, location))
    }

    /// `(a, b) IN (SELECT …)`.
    fn row_sublink(
        &mut self,
        link: &SubLink,
        test: Expr,
        query: super::select::Query,
        outer: Outer,
    ) -> Result<Expr> {
        let location = link.location;
        let names = strings(&link.oper_name);
        let any = link.sub_link_type == SubLinkType::AnySublink as i32;
        if !any || names.last().is_some_and(|name| *name != "=") {
            return Err(self.unsupported("this comparison of a row with a subquery", location));
        }
        let ExprKind::Record(fields) = test.kind else {
            return Err(Error::internal("no row to compare"));
        };
        if fields.len() != query.columns.len() {
            let wrong = if fields.len() < query.columns.len() {
                "many"
            } else {
                "few"
            };
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                format!("subquery has too {wrong} columns"),
                location,
            ));
        }
        let mut functions = Vec::new();
        let mut tests = Vec::new();
        let mut outputs = Vec::new();
        for (place, (field, column)) in fields.into_iter().zip(&query.columns).enumerate() {
            let found = self.operator("=", field.ty, column.ty, location)?;
            tests.push(self.coerce_argument(field, found.argument_types[0])?);
            let output = Expr::new(ExprKind::Column(place), column.ty, -1);
            outputs.push(self.coerce_argument(output, found.argument_types[1])?);
            let types: Rc<[TypeId]> = Rc::from(found.argument_types.as_slice());
            functions.push((Func(found.operator.function), types));
        }
        let plan = super::select::projection(query.plan, &outputs);
        let test = Expr::new(ExprKind::Record(tests), TypeId::RECORD, location);
        let kind = SubKind::AnyRow(Rc::from(functions));
        let none: Rc<[TypeId]> = Rc::from([]);
        Ok(self.sub(kind, plan, none, outer, TypeId::BOOL, Some(test), location))
    }

    #[allow(clippy::too_many_arguments)]
    fn sub(
        &mut self,
        kind: SubKind,
        plan: crate::plan::Plan,
        types: Rc<[TypeId]>,
        outer: Outer,
        ty: TypeId,
        test: Option<Expr>,
        location: i32,
    ) -> Expr {
        self.subqueries += 1;
        let query = SubQuery {
            kind,
            plan: Rc::new(plan),
            types,
            correlated: outer.correlated,
            number: self.subqueries,
        };
        Expr::new(
            ExprKind::Sub(Rc::new(query), test.map(Box::new), outer.seen),
            ty,
            location,
        )
    }
}
