//! Queries inside expressions.
//!
//! A subquery becomes an expression whose parts are the columns of the row around it that it looks
//! at, so that it may move wherever those columns go: below a join, above a grouping.

use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{SubLink, SubLinkType};

use super::coerce::part_typmod;
use super::expr::Place;
use super::operation::Operation;
use super::own_operator::{declared, declared_column, Compared};
use super::project_set::projection;
use super::scope::Scope;
use super::select::Query;
use super::{boxed, inner, strings, Binder};
use crate::plan::{narrow_below, Collated, Expr, ExprKind, Func, SubKind, SubQuery};
use syntax::parser::NodeEnum;
use types::{TypeId, NO_TYPMOD};

/// What a subquery looks at outside of itself.
pub(super) struct Outer {
    /// Whether it looks at anything, at whatever level.
    pub(super) correlated: bool,
    /// Whether it looks further out than at the row around it.
    deep: bool,
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
        let (query, outer, test) = self.bind_sublink(link, scope, place)?;
        let expr = self.sublink_of(link, query, outer, test)?;
        Ok(self.with_keys(link, scope, place, expr))
    }

    /// Binds a subquery that stands in an expression, and what it is compared with, if anything.
    pub(super) fn bind_sublink(
        &mut self,
        link: &SubLink,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<(Query, Outer, Option<Expr>)> {
        self.check_endless_policy()?;
        let NodeEnum::SelectStmt(select) = boxed(&link.subselect)? else {
            return Err(Error::internal("a subquery that is no SELECT"));
        };
        if self.lays_out() {
            self.keep_text(link, select, scope)?;
        }
        let before = scope.seen_from_inside.borrow().len();
        let around = scope.inner_stands.replace(place);
        self.exists = link.sub_link_type == SubLinkType::ExistsSublink as i32;
        let escaped = scope.escapes.replace(false);
        let paused = self.pause_layout();
        let bound = self.subquery(select, scope);
        let deep = scope.escapes.replace(escaped || scope.escapes.get());
        self.resume_layout(paused);
        self.exists = false;
        scope.inner_stands.set(around);
        let (query, correlated) = bound?;
        let outer = Outer {
            correlated,
            deep,
            seen: scope.seen_since(before),
        };
        let test = match &link.testexpr {
            Some(test) => Some(self.expr(inner(test)?, scope, place)?),
            None => None,
        };
        if let Some(test) = &test {
            self.refuse_set_in_rows(test, link.location)?;
        }
        Ok((query, outer, test))
    }

    /// The expression that a bound subquery is.
    pub(super) fn sublink_of(
        &mut self,
        link: &SubLink,
        query: Query,
        outer: Outer,
        test: Option<Expr>,
    ) -> Result<Expr> {
        let location = link.location;
        let kind = SubLinkType::try_from(link.sub_link_type).unwrap_or(SubLinkType::Undefined);
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
                // Arrays are stacked: they have one dimension more, not another type.
                let stacked = element.array_element().map(|_| element);
                let array = stacked.or_else(|| element.array_of()).ok_or_else(|| {
                    self.error(
                        SqlState::UNDEFINED_OBJECT,
                        format!("could not find array type for data type {element}"),
                        location,
                    )
                })?;
                (SubKind::Array(element), none, array, None)
            }
            SubLinkType::AnySublink | SubLinkType::AllSublink => {
                let Some(test) = test else {
                    return Err(Error::internal("nothing to compare with a subquery"));
                };
                if test.is_row() {
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
                let names = if names.is_empty() { &["="][..] } else { &names };
                let operands = (declared(&test), declared_column(&query.columns[0]));
                let all = kind == SubLinkType::AllSublink;
                let found = match self.operation(names, operands, location)? {
                    Operation::BuiltIn(found) => found,
                    Operation::Own(found) => {
                        let compared = Compared { found, test, all };
                        return self.own_sublink(compared, names, query, outer, location);
                    }
                };
                self.check_yields_boolean(found.result, location)?;
                let of_rows = query.columns.first().map(|column| column.collation);
                let test = self.coerce_argument(test, found.argument_types[0])?;
                let rows = Expr {
                    collation: of_rows.unwrap_or_default(),
                    ..Expr::new(ExprKind::Column(0), found.argument_types[1], -1)
                };
                let declared = found.argument_types[1];
                let (found, test, rows) = self.compared(name, found, test, rows)?;
                let any = SubKind::Any(Func(found.operator.function), all);
                let types: Rc<[TypeId]> = Rc::from(found.argument_types.as_slice());
                let plan = self.plan_of(query.body)?;
                let plan = self.coerce_column(plan, column, declared)?;
                let plan = match rows.without_key().1 {
                    Some(_) => projection(plan, &[rows]),
                    None => plan,
                };
                return Ok(self.sub(any, plan, types, outer, TypeId::BOOL, Some(test), location));
            }
            _ => return Err(self.unsupported("this kind of subquery", location)),
        };
        let own = query.columns.first();
        let own = own.map(|column| (column.typmod, column.collation));
        let plan = self.plan_of(query.body)?;
        let made = self.sub(sub, plan, types, outer, ty, test, location);
        let (typmod, collation) = match own {
            Some(column) if kind != SubLinkType::ExistsSublink => column,
            _ => (NO_TYPMOD, Collated::default()),
        };
        Ok(Expr {
            typmod: part_typmod(ty, typmod),
            collation: collation.of_column(),
            ..made
        })
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn sub(
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
        let mut plan = plan;
        narrow_below(&mut plan);
        let query = SubQuery {
            kind,
            plan: Rc::new(plan),
            types,
            correlated: outer.correlated,
            deep: outer.deep,
            number: self.subqueries,
            keyed: None,
        };
        Expr::new(
            ExprKind::Sub(Rc::new(query), test.map(Box::new), outer.seen),
            ty,
            location,
        )
    }
}
