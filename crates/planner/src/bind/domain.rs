//! Domains: what a value must meet to be one of a domain, and expressions that are.
//!
//! An expression has its base type as its type, and the domain beside it ([`Expr::domain`]), for
//! whoever shows or keeps what it is of. A value becomes a domain's in one place,
//! [`Binder::coerce_to_domain`], which puts a [`DomainTest`] around it.

use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::Node;

use super::expr::Place;
use super::scope::{Scope, ScopeColumn, ScopeTable};
use super::Binder;
use crate::plan::{compile, Collated, DomainTest, Expr, ExprKind, Program};
use catalog::Domain;
use functions::CastContext;
use types::{Datum, TypeId, NO_TYPMOD};

/// What a check of a domain calls the value.
const VALUE: &str = "value";

/// What the parser calls a check of a domain.
const CHECK: Place = Place {
    no_subquery: Some("check constraint"),
    ..Place::plain("check constraints")
};

/// The domain that all values are of; none if 0.
pub(super) fn one_domain(values: &[Expr]) -> TypeId {
    let first = values.first().map_or(TypeId::NONE, |value| value.domain);
    match values.iter().all(|value| value.domain == first) {
        true => first,
        false => TypeId::NONE,
    }
}

impl Binder<'_> {
    /// The expression as a value of a domain, or of an array over one.
    ///
    /// # Errors
    /// 42704 where the catalog has no such domain, which may have been dropped meanwhile.
    pub(super) fn coerce_to_domain(
        &mut self,
        expr: Expr,
        domain: TypeId,
        context: CastContext,
    ) -> Result<Result<Expr, Expr>> {
        if expr.domain == domain {
            return Ok(Ok(expr));
        }
        let (base, typmod) = self.cx.catalog.base_type(domain);
        if base.is_of_domain() {
            let message = format!("type with OID {} does not exist", domain.0);
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
        }
        let expr = self.parameter_of(domain, base, expr);
        let inner = match self.try_coerce(expr, base, typmod, context)? {
            Ok(inner) => inner,
            Err(expr) => return Ok(Err(expr)),
        };
        let test = self.domain_test(domain)?;
        Ok(Ok(Expr {
            ty: base,
            typmod: inner.typmod,
            location: inner.location,
            collation: match self.cx.catalog.domain_collation(domain) {
                0 => inner.collation,
                given => inner.collation.given(given, inner.location.0),
            },
            kind: ExprKind::Domain(Box::new(inner), test, context == CastContext::Explicit),
            domain,
        }))
    }

    /// A parameter of no type yet becomes one of the domain.
    fn parameter_of(&mut self, domain: TypeId, base: TypeId, expr: Expr) -> Expr {
        let ExprKind::Param(place) = expr.kind else {
            return expr;
        };
        let known = self.params.get_mut(place).filter(|_| expr.is_untyped());
        match known {
            Some(known) if [TypeId::UNKNOWN, domain].contains(known) => {
                *known = domain;
                Expr { ty: base, ..expr }
            }
            _ => expr,
        }
    }

    /// A value as a plan tests it: of a domain's base type, or any other that becomes that by an
    /// assignment.
    ///
    /// # Errors
    /// 42804 if it cannot.
    pub fn domain_program(&mut self, from: TypeId, domain: TypeId) -> Result<Program> {
        let value = Expr::new(ExprKind::Param(0), from, -1);
        let value = match from {
            TypeId::UNKNOWN => Expr::constant(Datum::Null, TypeId::UNKNOWN, -1),
            _ => value,
        };
        match self.try_coerce(value, domain, NO_TYPMOD, CastContext::Explicit)? {
            Ok(value) => Ok(compile(&value)),
            Err(_) => Err(Error::new(
                SqlState::CANNOT_COERCE,
                format!("cannot cast type {from} to {domain}"),
            )),
        }
    }

    /// What values of a domain, or elements of an array over one, must meet.
    fn domain_test(&mut self, id: TypeId) -> Result<Rc<DomainTest>> {
        self.deeper(|binder| {
            let catalog = binder.cx.catalog;
            let mut test = DomainTest::of(id);
            if let Some(element) = id.array_element() {
                test.element = Some(binder.domain_test(element)?);
                return Ok(Rc::new(test));
            }
            if let Some(made) = catalog.user_type(id) {
                test.name.clone_from(&made.name);
                let schema = catalog.schema_by_oid(made.schema);
                test.schema = schema.map_or_else(String::new, |schema| schema.name.clone());
            }
            let line = catalog.domain_line(id);
            if let Some((_, last)) = line.last() {
                if last.over.is_of_domain() {
                    test.element = binder.domain_test(last.over)?.element.clone();
                }
            }
            test.not_null = line.iter().any(|(_, domain)| domain.not_null);
            for (_, domain) in line.iter().rev() {
                let mut checks: Vec<_> = domain.checks.iter().collect();
                checks.sort_by(|a, b| a.name.cmp(&b.name));
                for check in checks {
                    let condition = binder.domain_condition(domain, &check.condition)?;
                    let condition = binder.condition(condition, "CHECK")?;
                    test.checks.push((check.name.clone(), compile(&condition)));
                }
            }
            Ok(Rc::new(test))
        })
    }

    /// What the fields of a row of a type must meet, where nobody has tested them when they were made;
    /// none if none is of a domain.
    pub(super) fn row_test(&mut self, kind: TypeId) -> Result<Option<Rc<DomainTest>>> {
        if let Some(element) = kind.array_element() {
            let element = self.row_test(element)?;
            return Ok(element.map(|element| {
                Rc::new(DomainTest {
                    element: Some(element),
                    ..DomainTest::of(kind)
                })
            }));
        }
        let Some(fields) = self.cx.catalog.fields(kind) else {
            return Ok(None);
        };
        self.deeper(|binder| {
            let mut tests = Vec::new();
            for (place, field) in fields.into_iter().enumerate() {
                let of_row = binder.row_test(field.ty)?;
                let test = match field.domain {
                    TypeId::NONE => of_row,
                    domain => {
                        let mut test = (*binder.domain_test(domain)?).clone();
                        test.fields = of_row.map_or_else(Vec::new, |row| row.fields.clone());
                        Some(Rc::new(test))
                    }
                };
                tests.extend(test.map(|test| (place, test)));
            }
            let test = DomainTest {
                fields: tests,
                ..DomainTest::of(kind)
            };
            Ok((!test.fields.is_empty()).then(|| Rc::new(test)))
        })
    }

    /// What a function has made of JSON, with what its fields, or it, must meet.
    pub(super) fn tested_row(&mut self, made: Expr, domain: TypeId) -> Result<Expr> {
        let mut test = self.row_test(made.ty)?;
        if domain != TypeId::NONE {
            let mut own = (*self.domain_test(domain)?).clone();
            own.fields = test.map_or_else(Vec::new, |row| row.fields.clone());
            test = Some(Rc::new(own));
        }
        let Some(test) = test else {
            return Ok(made);
        };
        let (ty, typmod, location) = (made.ty, made.typmod, made.location);
        let collation = made.collation;
        Ok(Expr {
            ty,
            typmod,
            location,
            collation,
            kind: ExprKind::Domain(Box::new(made), test, false),
            domain,
        })
    }

    /// A check of a domain that the catalog keeps as text.
    pub fn domain_condition(&mut self, domain: &Domain, text: &str) -> Result<Expr> {
        let scope = self.value_scope(domain);
        self.stored(text, &scope, CHECK)
    }

    /// Binds a check of a domain as it is written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_domain_check(&mut self, domain: &Domain, node: &Node) -> Result<()> {
        let scope = self.value_scope(domain);
        let bound = self.node(node, &scope, CHECK)?;
        self.condition(bound, "CHECK").map(drop)
    }

    /// The program of one check, over the value.
    ///
    /// # Errors
    /// What binding it gives.
    pub fn domain_check(&mut self, domain: &Domain, text: &str) -> Result<Program> {
        let condition = self.domain_condition(domain, text)?;
        Ok(compile(&self.condition(condition, "CHECK")?))
    }

    /// The default of a domain, to be shown.
    ///
    /// # Errors
    /// What binding it gives.
    pub fn domain_default(&mut self, domain: &Domain, text: &str) -> Result<Expr> {
        let default = self.stored(text, &Scope::default(), Place::DEFAULT)?;
        match default.is_untyped() {
            true => self.assign(default, domain.over, NO_TYPMOD, VALUE),
            false => Ok(default),
        }
    }

    /// Binds the default of a domain as it is written.
    ///
    /// # Errors
    /// 42804 if it is of another type, and whatever else is wrong with it.
    pub fn check_domain_default(&mut self, name: &str, of: &Domain, node: &Node) -> Result<()> {
        let bound = self.node(node, &Scope::default(), Place::DEFAULT)?;
        let from = bound.ty;
        match self.try_coerce(bound, of.over, of.typmod, CastContext::Assignment)? {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "column \"{name}\" is of type {} but default expression is of type {from}",
                    of.over
                ),
            )
            .with_hint("You will need to rewrite or cast the expression.")),
        }
    }

    /// A row of one column, the value.
    fn value_scope(&self, domain: &Domain) -> Scope<'static> {
        let (over, catalog) = (domain.over, self.cx.catalog);
        let (ty, under) = catalog.base_type(over);
        let is_of_domain = over.is_of_domain();
        let column = ScopeColumn {
            name: VALUE.to_owned(),
            ty,
            typmod: if is_of_domain { under } else { domain.typmod },
            domain: if is_of_domain { over } else { TypeId::NONE },
            // As in PostgreSQL it is that of what the domain is over, whatever collation the domain has.
            collation: Collated::implicit(catalog.domain_collation(over)),
            origin: (0, 0),
            hidden: false,
            unlisted: false,
        };
        let mut scope = Scope::default();
        let tables = &mut scope.tables;
        tables.push(ScopeTable::of(String::new(), vec![column], 0));
        scope
    }
}
