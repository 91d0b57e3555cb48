//! Rows that are written as such: `ROW(…)` and `(a, b)`, and what they are compared with.
//!
//! Two of them are compared column by column, each pair by the operator of its types; every other
//! row is a value, which the operators of `record` compare as a whole.
//!
//! Source: PostgreSQL 15 manual, sections 9.24.5 and 9.24.6.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Node, SubLink};

use super::expr::Place;
use super::operation::Operation;
use super::own_operator::is_own_operation;
use super::parts::internal_call;
use super::project_set::projection;
use super::scope::Scope;
use super::select::Query;
use super::sublink::Outer;
use super::{inner, strings, Binder};
use crate::logical::truth;
use crate::plan::{compile, Expr, ExprKind, SubKind};
use functions::fields::{FIELD, NAMED};
use functions::CastContext;
use syntax::parser::NodeEnum;
use types::{Array, Datum, TypeId};

impl Binder<'_> {
    /// The fields of a row, with those of other rows in the place of `t.*`.
    pub(super) fn row_fields(
        &mut self,
        args: &[Node],
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Vec<Expr>> {
        let spread = self.spread(args, scope);
        let args = spread.as_deref().unwrap_or(args);
        let mut fields = Vec::with_capacity(args.len());
        for arg in args {
            match self.values_of_star(inner(arg)?, scope, place)? {
                Some(values) => fields.extend(values),
                None => fields.push(self.node(arg, scope, place)?),
            }
        }
        Ok(fields)
    }

    /// The values that `t.*` or `(value).*` in a row means; none if it is no such.
    pub(super) fn values_of_star(
        &mut self,
        node: &NodeEnum,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Option<Vec<Expr>>> {
        let star = match node {
            NodeEnum::ColumnRef(column) if strings(&column.fields).len() < column.fields.len() => {
                let names = strings(&column.fields);
                Some(self.star(&names, scope, column.location)?)
            }
            node => self.spread_star(node, scope, place)?,
        };
        Ok(star.map(|columns| columns.into_iter().map(|column| column.0).collect()))
    }

    /// A row as one of a type, field by field.
    ///
    /// # Errors
    /// 42846 where a field does not become what the type has in its place.
    pub(super) fn row_as(
        &mut self,
        expr: Expr,
        ty: TypeId,
        context: CastContext,
        location: i32,
    ) -> Result<std::result::Result<Expr, Expr>> {
        let Some(fields) = self.fields_of_type(ty) else {
            return Ok(Err(expr));
        };
        let at = expr.location.0;
        let ExprKind::Record(parts, _) = expr.kind else {
            return Ok(Err(expr));
        };
        // Where a cast is written, that is at fault.
        let refused = |binder: &Self, detail: String, part: i32| {
            let message = format!("cannot cast type record to {ty}");
            let at = if location < 0 { part } else { location };
            let error = binder.error(SqlState::CANNOT_COERCE, message, at);
            error.with_detail(detail)
        };
        if parts.len() != fields.len() {
            let many = if parts.len() < fields.len() {
                "few"
            } else {
                "many"
            };
            return Err(refused(self, format!("Input has too {many} columns."), at));
        }
        let mut values = Vec::with_capacity(parts.len());
        for ((part, field), number) in parts.into_iter().zip(&fields).zip(1..) {
            let (from, of_part) = (part.ty, part.location.0);
            let wanted = match field.domain {
                TypeId::NONE => field.ty,
                domain => domain,
            };
            match self.try_coerce(part, wanted, field.typmod, context)? {
                Ok(value) => values.push(value),
                Err(_) => {
                    let detail = format!("Cannot cast type {from} to {wanted} in column {number}.");
                    return Err(refused(self, detail, of_part));
                }
            }
        }
        let kind = ExprKind::Record(values, Some(Self::names_of(&fields)));
        Ok(Ok(Expr::new(kind, ty, at)))
    }

    /// A row of a type as a mere record, which keeps the names of its fields.
    pub(super) fn row_as_record(&self, expr: Expr) -> Expr {
        let location = expr.location.0;
        let ty = TypeId::RECORD;
        match (&expr.kind, self.fields_of_type(expr.ty)) {
            (ExprKind::Record(..), _) => Expr { ty, ..expr },
            (_, fields) => {
                let fields = fields.unwrap_or_default().into_iter();
                let names = fields.map(|field| Datum::text(field.name)).collect();
                let names = Datum::Array(Arc::new(Array::of(TypeId::TEXT, names)));
                let names = Expr::constant(names, TypeId::TEXT_ARRAY, -1);
                internal_call(&NAMED, vec![expr, names], ty, location)
            }
        }
    }

    /// `(a, b) < (c, d)`: equality column by column, order lexicographically.
    pub(super) fn compare_rows(
        &mut self,
        names: &[&str],
        left: Expr,
        right: Expr,
        location: i32,
    ) -> Result<Expr> {
        let name = names.last().copied().unwrap_or_default();
        let pairs = self.row_pairs(left, right, location)?;
        if let ([(left, right)], true) = (&pairs[..], self.cx.catalog.operators.knows(name)) {
            let made = self.binary_in(names, left.clone(), right.clone(), location)?;
            if is_own_operation(&made) {
                return self.yielding_boolean(made);
            }
        }
        let is_geometric =
            |pair: &(Expr, Expr)| pair.0.ty.is_geometric() || pair.1.ty.is_geometric();
        if pairs.len() > 1 && pairs.iter().any(is_geometric) {
            for (left, right) in pairs {
                self.binary_in(names, left, right, location)?;
            }
            return Err(self.no_row_comparison(name, location));
        }
        match name {
            _ if pairs.is_empty() => Err(self.error(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot compare rows of zero length",
                location,
            )),
            "=" | "<>" => {
                let mut parts = Vec::with_capacity(pairs.len());
                for (left, right) in pairs {
                    let part = self.binary_in(names, left, right, location)?;
                    self.refuse_own_operation(&part, name, location)?;
                    parts.push(part);
                }
                let kind = match name {
                    "=" => ExprKind::And(parts),
                    _ => ExprKind::Or(parts),
                };
                Ok(truth(kind, location))
            }
            "<" | "<=" | ">" | ">=" => {
                let beside = |name| [&names[..names.len() - 1], &[name]].concat();
                let (strict, equal) = (beside(&name[..1]), beside("="));
                let mut rest: Option<Expr> = None;
                for (left, right) in pairs.into_iter().rev() {
                    if self.cx.catalog.operators.knows(name) {
                        let part = self.binary_in(names, left.clone(), right.clone(), location)?;
                        self.refuse_own_operation(&part, name, location)?;
                    }
                    rest = Some(match rest {
                        None => self.binary_in(names, left, right, location)?,
                        Some(rest) => {
                            let above =
                                self.binary_in(&strict, left.clone(), right.clone(), location)?;
                            let equal = self.binary_in(&equal, left, right, location)?;
                            let both = truth(ExprKind::And(vec![equal, rest]), location);
                            truth(ExprKind::Or(vec![above, both]), location)
                        }
                    });
                }
                rest.ok_or_else(|| Error::internal("rows without columns"))
            }
            _ => {
                for (left, right) in pairs {
                    self.binary_in(names, left, right, location)?;
                }
                Err(self.no_row_comparison(name, location))
            }
        }
    }

    fn row_pairs(&self, left: Expr, right: Expr, location: i32) -> Result<Vec<(Expr, Expr)>> {
        let (ExprKind::Record(left, _), ExprKind::Record(right, _)) = (left.kind, right.kind)
        else {
            return Err(Error::internal("no rows to compare"));
        };
        if left.len() != right.len() {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                "unequal number of entries in row expressions",
                location,
            ));
        }
        Ok(left.into_iter().zip(right).collect())
    }

    /// `(a, b) IS [NOT] DISTINCT FROM (c, d)`.
    pub(super) fn distinct_rows(
        &mut self,
        left: Expr,
        right: Expr,
        wanted: bool,
        location: i32,
    ) -> Result<Expr> {
        let mut parts = Vec::new();
        for (left, right) in self.row_pairs(left, right, location)? {
            let part = match left.is_row() && right.is_row() {
                true => self.distinct_rows(left, right, wanted, location)?,
                false => {
                    let (left, right, function, types) = self.equality(left, right, location)?;
                    let (left, right) = (Box::new(left), Box::new(right));
                    let kind = ExprKind::Distinct(left, right, function, types, wanted);
                    truth(kind, location)
                }
            };
            parts.push(part);
        }
        if parts.is_empty() {
            return Ok(Expr::constant(Datum::Bool(!wanted), TypeId::BOOL, location));
        }
        let kind = match wanted {
            true => ExprKind::Or(parts),
            false => ExprKind::And(parts),
        };
        Ok(truth(kind, location))
    }

    /// A subquery's only row as a value, with its columns.
    pub(super) fn row_of_subquery(
        &mut self,
        link: &SubLink,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<(Expr, Vec<Expr>)> {
        let (query, outer, _) = self.bind_sublink(link, scope, place)?;
        let columns: Vec<Expr> = (query.columns.iter().enumerate())
            .map(|(at, column)| Expr {
                typmod: column.typmod,
                domain: column.domain,
                collation: column.collation.of_column(),
                ..Expr::new(ExprKind::Column(at), column.ty, query.locations[at])
            })
            .collect();
        let mut outputs = Vec::with_capacity(columns.len());
        for column in &columns {
            outputs.push(self.settle(column.clone())?);
        }
        let types: Rc<[TypeId]> = outputs.iter().map(|output| output.ty).collect();
        let plan = projection(self.plan_of(query.body)?, &outputs);
        let kind = SubKind::Row(types.clone());
        let row = self.sub(
            kind,
            plan,
            types,
            outer,
            TypeId::RECORD,
            None,
            link.location,
        );
        Ok((row, columns))
    }

    /// The columns of a row that another expression gives, as fields of that.
    pub(super) fn columns_in(row: &Expr, columns: &[Expr]) -> Vec<Expr> {
        let field = |(at, column): (usize, &Expr)| {
            let number = Expr::constant(Datum::Int4(at as i32), TypeId::INT4, -1);
            let args = vec![row.clone(), number];
            Expr {
                typmod: column.typmod,
                domain: column.domain,
                collation: column.collation,
                ..internal_call(&FIELD, args, column.ty, column.location.0)
            }
        };
        columns.iter().enumerate().map(field).collect()
    }

    /// `(a, b) < (SELECT …)`: the subquery's row is computed once, and its fields are compared.
    pub(super) fn compare_with_subquery(
        &mut self,
        names: &[&str],
        left: Expr,
        link: &SubLink,
        scope: &Scope<'_>,
        place: Place,
        location: i32,
    ) -> Result<Expr> {
        let (row, columns) = self.row_of_subquery(link, scope, place)?;
        let ExprKind::Record(fields, _) = &left.kind else {
            return Err(Error::internal("no row to compare"));
        };
        self.check_widths(fields.len(), columns.len(), location)?;
        let input = Expr::new(ExprKind::CaseInput, TypeId::RECORD, location);
        let right = ExprKind::Record(Self::columns_in(&input, &columns), None);
        let right = Expr::new(right, TypeId::RECORD, location);
        let condition = self.compare_rows(names, left, right, location)?;
        let kind = ExprKind::CaseValue(Box::new(row), Box::new(condition));
        Ok(truth(kind, location))
    }

    fn check_widths(&self, fields: usize, columns: usize, location: i32) -> Result<()> {
        let wrong = match fields.cmp(&columns) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => "many",
            std::cmp::Ordering::Greater => "few",
        };
        Err(self.error(
            SqlState::SYNTAX_ERROR,
            format!("subquery has too {wrong} columns"),
            location,
        ))
    }

    /// `(a, b) IN (SELECT …)`, `(a, b) < ALL (SELECT …)`.
    pub(super) fn row_sublink(
        &mut self,
        link: &SubLink,
        test: Expr,
        query: Query,
        outer: Outer,
    ) -> Result<Expr> {
        let location = link.location;
        let names = strings(&link.oper_name);
        let name = names.last().copied().unwrap_or("=");
        let any = link.sub_link_type == pg_query::protobuf::SubLinkType::AnySublink as i32;
        let ExprKind::Record(fields, _) = test.kind else {
            return Err(Error::internal("no row to compare"));
        };
        self.check_widths(fields.len(), query.columns.len(), location)?;
        let none: Rc<[TypeId]> = Rc::from([]);
        let column = |(place, column): (usize, &super::OutputColumn)| {
            Expr::new(ExprKind::Column(place), column.ty, -1)
        };
        let columns: Vec<Expr> = query.columns.iter().enumerate().map(column).collect();
        if !any || name != "=" {
            let row = |fields| Expr::new(ExprKind::Record(fields, None), TypeId::RECORD, location);
            // What the condition looks at: the fields of the row, then the columns.
            let width = fields.len();
            let left = (fields.iter().enumerate()).map(|(place, field)| match field.is_untyped() {
                true => field.clone(),
                false => Expr {
                    collation: field.collation,
                    ..Expr::new(ExprKind::Column(place), field.ty, field.location.0)
                },
            });
            let left = row(left.collect());
            let right = columns.iter().enumerate().map(|(place, column)| Expr {
                collation: column.collation,
                ..Expr::new(ExprKind::Column(width + place), column.ty, -1)
            });
            let right = row(right.collect());
            let names: &[&str] = if names.is_empty() { &["="] } else { &names };
            let condition = self.compare_rows(names, left, right, location)?;
            let kind = SubKind::Compare(Rc::new(compile(&condition)), !any, None);
            let fields = fields.into_iter().map(|field| self.settle(field));
            let test = row(fields.collect::<Result<_>>()?);
            let plan = projection(self.plan_of(query.body)?, &columns);
            return Ok(self.sub(kind, plan, none, outer, TypeId::BOOL, Some(test), location));
        }
        let names_of = if names.is_empty() { vec!["="] } else { names };
        let mut functions = Vec::new();
        let mut tests = Vec::new();
        let mut outputs = Vec::new();
        for (field, column) in fields.into_iter().zip(columns) {
            let found = match self.operation(&names_of, (field.ty, column.ty), location)? {
                Operation::BuiltIn(found) => found,
                Operation::Own(_) => return Err(self.no_row_comparison(name, location)),
            };
            let field = self.coerce_argument(field, found.argument_types[0])?;
            let column = self.coerce_argument(column, found.argument_types[1])?;
            let (found, field, column) = self.compared("=", found, field, column)?;
            tests.push(field);
            outputs.push(column);
            let types: Rc<[TypeId]> = Rc::from(found.argument_types.as_slice());
            functions.push((crate::plan::Func(found.operator.function), types));
        }
        let plan = projection(self.plan_of(query.body)?, &outputs);
        let test = Expr::new(ExprKind::Record(tests, None), TypeId::RECORD, location);
        let kind = SubKind::AnyRow(Rc::from(functions));
        Ok(self.sub(kind, plan, none, outer, TypeId::BOOL, Some(test), location))
    }
}
