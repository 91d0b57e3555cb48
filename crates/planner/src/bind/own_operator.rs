//! Operators that CREATE OPERATOR has made.
//!
//! ```text
//! create operator <-> (function = distance, leftarg = spot, rightarg = spot)
//! a <-> b               distance(a, b), which is shown as it was written
//! a <-> ANY (array)     distance(a, e) for each element e
//! ```
//! They take part in the choice beside the built-in ones of their names: of two with the same operands the one
//! wins whose schema comes first, `pg_catalog` before all others. An operator is a call of the function behind it,
//! so whoever runs the statement must be allowed to call that. What is stored knows the operators that it uses by
//! their oids ([`catalog::operator`]).
//!
//! # What it leaves out
//! IS DISTINCT FROM, NULLIF and the ordering of rows by operators of users (0A000), such operators over built-in
//! functions where operands have a collation of their own (0A000), and those that give sets (0A000). Rows of
//! several columns are compared by operators of btree families only, as in PostgreSQL.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};

use super::operation::Operation;
use super::project_set::projection;
use super::routine::Written;
use super::select::Query;
use super::sublink::Outer;
use super::{Binder, OutputColumn};
use crate::logical::truth;
use crate::plan::{compile, Collated, Expr, ExprKind, OwnTest, RoutineCall, SubKind};
use catalog::local::is_local;
use catalog::routine::Language;
use catalog::view::BY_OID;
use catalog::{OwnOperator, Routine, PG_CATALOG};
use functions::operands::{operand_types, resolve_operator_offered, Operands};
use functions::strings::quote_identifier;
use functions::{operators_named, Operator, OperatorMatch};
use types::TypeId;

/// An operator that a user has made, and what its operands must become.
pub(super) struct OwnMatch {
    pub(super) operator: Arc<OwnOperator>,
    /// The function behind it.
    pub(super) routine: Arc<Routine>,
    /// The types to which the operands must be coerced.
    pub(super) argument_types: Vec<TypeId>,
    /// The type of the result.
    pub(super) result: TypeId,
}

/// What is compared with the rows of a subquery.
pub(super) struct Compared {
    pub(super) found: OwnMatch,
    pub(super) test: Expr,
    /// Whether the comparison must hold for all rows, or for any.
    pub(super) all: bool,
}

/// An operator as it takes part in the choice.
#[derive(Clone, Copy)]
enum Item<'c> {
    BuiltIn(&'static Operator),
    Own(&'c Arc<OwnOperator>),
}

/// The type that an expression is of, which may be a domain.
pub(super) fn declared(expr: &Expr) -> TypeId {
    match expr.domain {
        TypeId::NONE => expr.ty,
        domain => domain,
    }
}

/// The same of a column of a query.
pub(super) fn declared_column(column: &OutputColumn) -> TypeId {
    match column.domain {
        TypeId::NONE => column.ty,
        domain => domain,
    }
}

/// Whether an expression was written as an operator of a user's.
pub(super) fn is_own_operation(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Routine(call, _) => call.operator.is_some(),
        _ => false,
    }
}

fn offered<'c>(operator: &'c Arc<OwnOperator>) -> Operands<Item<'c>> {
    Operands {
        item: Item::Own(operator),
        left: operator.left,
        right: operator.right,
        result: operator.result,
    }
}

fn built_in<'c>(operator: &'static Operator) -> Operands<Item<'c>> {
    let operands = operand_types(operator);
    Operands {
        item: Item::BuiltIn(operator),
        left: operands.left,
        right: operands.right,
        result: operands.result,
    }
}

impl<'a> Binder<'a> {
    /// # Errors
    /// 3F000 for a schema that is not there, 42501 for one that the role may not look into.
    pub(super) fn check_operator_schema(&self, schema: &str, location: i32) -> Result<u32> {
        let catalog = self.cx.catalog;
        let known = catalog.schema(schema).ok_or_else(|| {
            let message = format!("schema \"{schema}\" does not exist");
            self.error(SqlState::INVALID_SCHEMA_NAME, message, location)
        })?;
        let allowed = catalog.check_look_into(self.cx.role, known);
        allowed.map_err(|error| self.place(error, location))?;
        Ok(known.oid)
    }

    /// The operators that a name may mean, the nearest first.
    fn operators_called(&self, names: &[&str], location: i32) -> Result<Vec<Operands<Item<'a>>>> {
        let catalog: &'a catalog::Catalog = self.cx.catalog;
        let name = names.last().copied().unwrap_or_default();
        let of_extensions = |schemas: Option<&[u32]>| {
            let all = catalog.operators_of_extensions(name, schemas);
            all.into_iter().map(built_in)
        };
        let of_system = || operators_named(name).iter().map(|known| built_in(known));
        let of_schema = |schema: u32| -> Vec<Operands<Item<'a>>> {
            let system = (schema == PG_CATALOG).then(of_system).into_iter().flatten();
            let own = catalog.operators.named(name);
            let own = own.filter(|known| known.schema == schema).map(offered);
            let others = of_extensions(Some(&[schema]));
            system.chain(others).chain(own).collect()
        };
        let mut found: Vec<Operands<Item<'a>>> = Vec::new();
        match names {
            [BY_OID, oid, _] if self.stored => {
                let operator = oid.parse().ok().and_then(|oid| catalog.own_operator(oid));
                found.extend(operator.map(offered));
            }
            // What is stored was found once, wherever its extension is now.
            [.., schema, _] if self.stored && *schema != "pg_catalog" => {
                found.extend(of_extensions(None));
            }
            [.., schema, _] => {
                found.extend(of_schema(self.check_operator_schema(schema, location)?));
            }
            _ if self.stored => {
                let noted = self.noted.as_deref().unwrap_or_default();
                let own = catalog.operators.named(name);
                let own = own.filter(|known| noted.contains(&known.oid));
                found.extend(own.map(offered));
                found.extend(of_system());
                found.extend(of_extensions(None));
            }
            _ => {
                let path = self.cx.search_path;
                let first = (!path.contains(&PG_CATALOG)).then_some(PG_CATALOG);
                let schemas = first.into_iter().chain(path.iter().copied());
                for schema in schemas.filter(|schema| !is_local(*schema)) {
                    found.extend(of_schema(schema));
                }
            }
        }
        let mut nearest: Vec<Operands<Item<'a>>> = Vec::with_capacity(found.len());
        for operands in found {
            let types = (operands.left, operands.right);
            if !nearest
                .iter()
                .any(|known| (known.left, known.right) == types)
            {
                nearest.push(operands);
            }
        }
        Ok(nearest)
    }

    /// What a name means of which users have made operators.
    pub(super) fn own_or_built_in(
        &mut self,
        names: &[&str],
        (left, right): (TypeId, TypeId),
        location: i32,
    ) -> Result<Operation> {
        let catalog = self.cx.catalog;
        let offers = self.operators_called(names, location)?;
        let base_of = |ty: TypeId| match ty.is_of_domain() {
            true => catalog.base_type(ty).0,
            false => ty,
        };
        let shown = names.join(".");
        let chosen =
            resolve_operator_offered(&shown, (left, right), &offers, &base_of, &self.unasked());
        let (item, argument_types, result) =
            chosen.map_err(|error| self.place_choice(error, location))?;
        let operator = match item {
            Item::BuiltIn(operator) => {
                let found = OperatorMatch {
                    operator,
                    argument_types,
                    result,
                };
                let operands = (base_of(left), base_of(right));
                self.note_built_in(&found, names, operands, location)?;
                return Ok(Operation::BuiltIn(found));
            }
            Item::Own(operator) => operator.clone(),
        };
        let Some(routine) = catalog.routine_behind(&operator) else {
            let before = match left {
                TypeId::NONE => String::new(),
                left => format!("{left} "),
            };
            let message = format!("operator is only a shell: {before}{shown} {right}");
            return Err(self.error(SqlState::UNDEFINED_FUNCTION, message, location));
        };
        Ok(Operation::Own(OwnMatch {
            operator,
            routine,
            argument_types,
            result,
        }))
    }

    /// How an operator of a user's is shown between operands of these types: with its schema where its name
    /// would mean another.
    fn shown_operation(&mut self, operator: &OwnOperator, types: &[TypeId]) -> String {
        let catalog = self.cx.catalog;
        let (left, right) = match types {
            [left, right] => (*left, *right),
            [right] => (TypeId::NONE, *right),
            _ => (TypeId::NONE, TypeId::NONE),
        };
        let stored = std::mem::take(&mut self.stored);
        let offers = self.operators_called(&[&operator.name], -1);
        self.stored = stored;
        let base_of = |ty: TypeId| catalog.base_type(ty).0;
        let found = offers.and_then(|offers| {
            let name = &operator.name;
            resolve_operator_offered(name, (left, right), &offers, &base_of, &self.unasked())
        });
        match (found, catalog.schema_by_oid(operator.schema)) {
            (Ok((Item::Own(found), ..)), _) if found.oid == operator.oid => operator.name.clone(),
            (_, Some(schema)) => {
                format!(
                    "OPERATOR({}.{})",
                    quote_identifier(&schema.name),
                    operator.name
                )
            }
            (_, None) => operator.name.clone(),
        }
    }

    /// The call that an operator of a user's is between these operands.
    pub(super) fn own_operation(
        &mut self,
        found: &OwnMatch,
        names: &[&str],
        args: Vec<Expr>,
        location: i32,
    ) -> Result<Expr> {
        let (operator, routine) = (&found.operator, &found.routine);
        if routine.set {
            let what = format!("operator {}, which gives a set,", operator.name);
            return Err(self.unsupported(&what, location));
        }
        if routine.language == Language::Internal && !Collated::of_all(&args).is_plain() {
            let what = format!(
                "operator {} over a built-in function under a collation",
                operator.name
            );
            return Err(self.unsupported(&what, location));
        }
        // No name of the function stands in the text.
        let recorded = self.recorded.take();
        let written = Written {
            variadic: routine.is_variadic(),
            ..Written::in_order(args)
        };
        let called = self.routine_found(routine.clone(), written, &found.argument_types, location);
        self.recorded = recorded;
        if let Some(recorded) = &mut self.recorded {
            recorded.operator(location, names.len() - 1, operator.oid);
        }
        let mut called = called?;
        if let ExprKind::Routine(call, args) = &mut called.kind {
            let types: Vec<TypeId> = args.iter().map(declared).collect();
            let shown = self.shown_operation(operator, &types);
            Rc::make_mut(call).operator = Some(shown);
        }
        Ok(called)
    }

    /// The same between columns of a row, as a condition of its own: what is compared, in its place, and how.
    fn own_condition(
        &mut self,
        found: &OwnMatch,
        names: &[&str],
        args: Vec<Expr>,
        location: i32,
    ) -> Result<(Expr, Rc<RoutineCall>)> {
        let condition = self.own_operation(found, names, args, location)?;
        match &condition.kind {
            ExprKind::Routine(call, _) => {
                let call = call.clone();
                Ok((condition, call))
            }
            _ => Err(Error::internal("an operator without its call")),
        }
    }

    /// `left name ANY (array)` by an operator of a user's.
    pub(super) fn own_any_array(
        &mut self,
        found: &OwnMatch,
        names: &[&str],
        (left, right): (Expr, Expr),
        all: bool,
        location: i32,
    ) -> Result<Expr> {
        let left = self.coerce_argument(left, found.argument_types[0])?;
        let left = self.settle(left)?;
        let right = match found.argument_types[1].array_of() {
            Some(wanted) => self.coerce_argument(right, wanted)?,
            None => right,
        };
        let element = right.ty.array_element().unwrap_or(right.ty);
        let column = |place: usize, ty: TypeId, of: &Expr| Expr {
            collation: of.collation,
            ..Expr::new(ExprKind::Column(place), ty, -1)
        };
        let args = vec![column(0, left.ty, &left), column(1, element, &right)];
        let (condition, call) = self.own_condition(found, names, args, location)?;
        let test = OwnTest {
            condition: Rc::new(compile(&condition)),
            call,
            all,
        };
        let (left, right) = (Box::new(left), Box::new(right));
        let kind = ExprKind::AnyOwn(left, right, Rc::new(test));
        Ok(truth(kind, location))
    }

    /// `test name ANY (SELECT …)` by an operator of a user's.
    pub(super) fn own_sublink(
        &mut self,
        compared: Compared,
        names: &[&str],
        query: Query,
        outer: Outer,
        location: i32,
    ) -> Result<Expr> {
        let Compared { found, test, all } = compared;
        self.check_yields_boolean(found.result, location)?;
        let [column] = query.columns.as_slice() else {
            return Err(Error::internal("a subquery of several columns"));
        };
        let rows = |place: usize| Expr {
            collation: column.collation,
            domain: column.domain,
            typmod: column.typmod,
            ..Expr::new(ExprKind::Column(place), column.ty, -1)
        };
        // What the condition looks at: the value, then the column.
        let left = match test.is_untyped() {
            true => test.clone(),
            false => Expr {
                collation: test.collation,
                domain: test.domain,
                ..Expr::new(ExprKind::Column(0), test.ty, test.location.0)
            },
        };
        let (condition, call) = self.own_condition(&found, names, vec![left, rows(1)], location)?;
        let shown = call.operator.clone();
        let kind = SubKind::Compare(Rc::new(compile(&condition)), all, shown);
        let output = rows(0);
        let test = self.settle(test)?;
        let test = Expr::new(ExprKind::Record(vec![test], None), TypeId::RECORD, location);
        let plan = projection(self.plan_of(query.body)?, &[output]);
        let none: Rc<[TypeId]> = Rc::from([]);
        Ok(self.sub(kind, plan, none, outer, TypeId::BOOL, Some(test), location))
    }

    /// 42804 for an operator between a value and rows that does not say whether it holds.
    pub(super) fn check_yields_boolean(&self, result: TypeId, location: i32) -> Result<()> {
        match result {
            TypeId::BOOL => Ok(()),
            ty => Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                format!("row comparison operator must yield type boolean, not type {ty}"),
                location,
            )),
        }
    }

    /// A comparison, if it is one.
    ///
    /// # Errors
    /// As [`Binder::check_yields_boolean`].
    pub(super) fn yielding_boolean(&self, made: Expr) -> Result<Expr> {
        self.check_yields_boolean(made.ty, made.location.0)?;
        Ok(made)
    }

    /// 0A000 for an operator that does not say how rows are compared by it.
    pub(super) fn no_row_comparison(&self, name: &str, location: i32) -> Error {
        let message =
            format!("could not determine interpretation of row comparison operator {name}");
        self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location)
            .with_hint("Row comparison operators must be associated with btree operator families.")
    }

    /// # Errors
    /// As [`Binder::no_row_comparison`], for an operator of a user's.
    pub(super) fn refuse_own_operation(
        &self,
        part: &Expr,
        name: &str,
        location: i32,
    ) -> Result<()> {
        match is_own_operation(part) {
            true => {
                self.check_yields_boolean(part.ty, location)?;
                Err(self.no_row_comparison(name, location))
            }
            false => Ok(()),
        }
    }
}
